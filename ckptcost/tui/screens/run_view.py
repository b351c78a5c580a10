"""One recorded run on a screen: the study that `ckptcost report` prints, its tables one at a time,
and the traces of the whole of it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol

from ckptcost.jobs.measure import reviewed
from ckptcost.jobs.measured import Measured
from ckptcost.present.amounts import count, duration, size
from ckptcost.present.chart import Traces
from ckptcost.present.grid import Grid, Tone
from ckptcost.report.studies.measure import study_of
from ckptcost.report.study import Study
from ckptcost.runs.header import stamp
from ckptcost.tui.run_reader import READER
from ckptcost.tui.screens.checkpoint_view import Recording
from ckptcost.tui.screens.run_traces import traces_of
from ckptcost.tui.screens.runs_entries import Learned, Source
from ckptcost.tui.study_grids import grid_of, paragraphs

CHECKPOINTS = "windows"
"""the table whose rows can be opened"""
_KEPT = 2
"""runs whose evaluation stays in memory: the one looked at, and the one before"""


class HostView(Protocol):
    """What is shown of one host of a run."""

    @property
    def study(self) -> Study: ...
    @property
    def host(self) -> str: ...
    @property
    def hosts(self) -> tuple[str, ...]: ...
    @property
    def head(self) -> str: ...
    @property
    def lines(self) -> list[tuple[str, Tone]]: ...
    @property
    def tables(self) -> list[Grid]: ...


class RunView(NamedTuple):
    """What the screen of a run shows, of one of its hosts."""

    source: Source
    study: Study
    host: str
    hosts: tuple[str, ...]
    head: str
    traces: Traces
    learned: Learned
    problems: tuple[str, ...]
    """all that is wrong with its files; the study names the first"""
    goes_on: bool

    @property
    def tables(self) -> list[Grid]:
        """Those with a row, the checkpoints first; what people are not shown in a text is there
        too."""
        tables = sorted(
            (table for table in self.study.tables if table.rows),
            key=lambda table: table.id != CHECKPOINTS,
        )
        return [grid_of(table) for table in tables]

    @property
    def table_ids(self) -> list[str]:
        return [
            table.id
            for table in sorted(
                (t for t in self.study.tables if t.rows), key=lambda table: table.id != CHECKPOINTS
            )
        ]

    @property
    def lines(self) -> list[tuple[str, Tone]]:
        """What is said of it: findings first, then what to mind, then what was asked."""
        said = paragraphs(self.study)
        about = set(self.study.about)
        lines = [line for line in said if line[0] not in about]
        named = "\n".join(text for text, _ in said)
        lines += [(f"{problem}.", "warn") for problem in self.problems if problem not in named]
        return lines + [line for line in said if line[0] in about]


def seen_of(source: Source, host: str = "") -> Measured:
    """The run, evaluated; the same again costs nothing as long as its files are as they were.
    Raises CkptcostError."""
    return _seen(source.path, source.run, host, _stamps(Path(source.path)))


@lru_cache(maxsize=_KEPT)
def _seen(path: str, run: str, host: str, stamps: tuple[tuple[str, int, int], ...]) -> Measured:
    return reviewed(path, host=host, run_id=run)


def _stamps(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, size and time of every file: another tuple where something was written meanwhile."""
    try:
        files = (
            [entry for entry in os.scandir(path) if entry.name.endswith(".jsonl")]
            if path.is_dir()
            else []
        )
        found = [(entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in files]
        return tuple(sorted(found)) or ((path.name, path.stat().st_size, path.stat().st_mtime_ns),)
    except OSError:
        return ()  # the reader says why


def read(source: Source, host: str = "", goes_on: bool = False) -> RunView:
    """Everything that the screen shows. Raises CkptcostError where the run cannot be read, or holds
    no reading."""
    seen = seen_of(source, host)
    study = study_of(seen)
    node = seen.energies.node
    began = stamp(node.headers[0].wall_ns)
    saves = sum(what.of == "save" for what in seen.contents)
    where = f" on {node.host}"
    if len(seen.run.hosts) > 1:
        where = (
            f", host {node.host} ({seen.run.hosts.index(node.host) + 1} of {len(seen.run.hosts)})"
        )
    elif seen.simulated:
        where = ", simulated"
    head = (
        f"Run {source.short}{where}, {began[:10]} {began[11:16]} UTC: {duration(seen.length_s)}, "
        f"{count(saves)} checkpoint{'' if saves == 1 else 's'}, {size(source.bytes)} on disk"
    )
    problems = tuple(str(problem) for problem in seen.run.problems)
    return RunView(
        source,
        study,
        node.host,
        seen.run.hosts,
        head,
        traces_of(seen),
        _learned(seen, study),
        problems,
        goes_on,
    )


def learned_of(source: Source) -> Learned:
    """For the list of runs: of the first host, as `ckptcost report` takes it."""
    seen = seen_of(source)
    return _learned(seen, study_of(seen))


def _learned(seen: Measured, study: Study) -> Learned:
    sizes = [what.bytes for what in seen.contents if what.of == "save" and what.bytes == what.bytes]
    mean, parts = seen.mean_save, seen.node.parts
    return Learned(
        sum(sizes) if sizes else None,
        None if mean is None else mean.stall_s,
        parts.value if parts.known else None,
        tuple(study.findings),
    )


def next_host(view: HostView) -> str:
    """The one after the host that is shown; empty where the run has one only."""
    if len(view.hosts) < 2:
        return ""
    return view.hosts[(view.hosts.index(view.host) + 1) % len(view.hosts)]


def command_of(source: Source, host: str = "", hosts: int = 1) -> str:
    """The command that prints the study."""
    return shlex.join(
        ["ckptcost", "report", source.word, *(["--host", host] if host and hosts > 1 else [])]
    )


class OfRun(Recording):
    """Checkpoints of a run that is evaluated already."""

    def __init__(self, source: Source, seen: Measured) -> None:
        self.run, self.seen = source.path, seen
        self._word = source.word

    @property
    def command(self) -> str:
        return shlex.join(["ckptcost", "report", self._word])


def recording_of(source: Source, host: str, stopped: Callable[[], bool]) -> Recording:
    """For the screen of one checkpoint. Raises GivenUp where `stopped` says so."""
    return OfRun(source, READER.ask(seen_of, source, host, weight=source.weight, stopped=stopped))
