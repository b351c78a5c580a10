"""A recorded run, read and evaluated once for all screens that show it: the run itself, one of its
checkpoints, the comparison with the model, its report. The last few stay in memory for as long as
their files are as they were."""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Final

from ckptcost.errors import UnknownName
from ckptcost.jobs.measure import reviewed
from ckptcost.jobs.measured import Measured
from ckptcost.present.chart import Traces
from ckptcost.present.grid import Tone
from ckptcost.report.studies.measure import study_of
from ckptcost.report.study import Study
from ckptcost.tui.run_reader import LOOK_S, READER, GivenUp, Tell
from ckptcost.tui.screens.run_traces import around, traces_of
from ckptcost.tui.screens.runs_entries import Learned, Source
from ckptcost.tui.study_grids import paragraphs

Stamps = tuple[tuple[str, int, int], ...]


class RecordedRun:
    """One host of a run, as `ckptcost report` has it."""

    def __init__(self, source: Source, seen: Measured) -> None:
        self.source, self.seen = source, seen
        self._near: dict[int, Traces] = {}

    @property
    def host(self) -> str:
        return self.seen.energies.node.host

    @property
    def hosts(self) -> tuple[str, ...]:
        return self.seen.run.hosts

    @property
    def host_place(self) -> str:
        """Which of several hosts it is; empty where there is one."""
        if len(self.hosts) < 2:
            return ""
        return f", host {self.host} ({self.hosts.index(self.host) + 1} of {len(self.hosts)})"

    @property
    def next_host(self) -> str:
        """Empty where the run has one only."""
        if len(self.hosts) < 2:
            return ""
        return self.hosts[(self.hosts.index(self.host) + 1) % len(self.hosts)]

    @cached_property
    def study(self) -> Study:
        return study_of(self.seen)

    @cached_property
    def traces(self) -> Traces:
        return traces_of(self.seen)

    def near(self, place: int) -> Traces:
        """Around one checkpoint."""
        if place not in self._near:
            self._near[place] = around(self.seen, place)
        return self._near[place]

    @property
    def learned(self) -> Learned:
        """For the list of runs."""
        seen = self.seen
        sizes = [what.bytes for what in seen.contents if what.of == "save"]
        known = [bytes_ for bytes_ in sizes if bytes_ == bytes_]
        mean, parts = seen.mean_save, seen.node.parts
        return Learned(
            sum(known) if known else None,
            None if mean is None else mean.stall_s,
            parts.value if parts.known else None,
            tuple(self.study.findings),
        )

    @property
    def names(self) -> list[str]:
        """Of its checkpoints."""
        return [window.name for window in self.seen.windows]

    def place(self, which: str) -> int:
        """A checkpoint by its name, or by its number, from 1. Raises UnknownName."""
        names = self.names
        if which in names:
            return names.index(which)
        if which.isdigit() and 0 < int(which) <= len(names):
            return int(which) - 1
        raise UnknownName("checkpoint", which, names, where=Path(self.source.path).name)

    @property
    def command(self) -> str:
        """The command that prints the study."""
        host = ["--host", self.host] if len(self.hosts) > 1 else []
        return shlex.join(["ckptcost", "report", self.source.word, *host])


class KeptRuns:
    """The runs that were looked at last."""

    MOST: Final = 3

    def __init__(self) -> None:
        self._runs: list[tuple[Stamps, RecordedRun]] = []
        self._reading = threading.Lock()

    def find(self, source: Source, host: str = "") -> RecordedRun | None:
        """None where it is not in memory, or its files were written to since."""
        stamps = _stamps(Path(source.path))
        for kept in reversed(self._runs):
            run = kept[1]
            same = (run.source.path, run.source.run) == (source.path, source.run)
            if kept[0] == stamps and same and run.host == (host or run.hosts[0]):
                return run
        return None

    def load(
        self,
        source: Source,
        host: str = "",
        stopped: Callable[[], bool] = lambda: False,
        tell: Tell | None = None,
    ) -> RecordedRun:
        """The run, read unless it is in memory; a large one in the process beside. Raises
        CkptcostError, and GivenUp where `stopped` says so."""
        while not self._reading.acquire(timeout=LOOK_S):
            if stopped():
                raise GivenUp("given up")
        try:
            if (found := self.find(source, host)) is not None:
                return self._keep(_stamps(Path(source.path)), found)
            stamps, tell = _stamps(Path(source.path)), tell or _unheard
            run = READER.ask(
                read_run, source, host, weight=source.weight, stopped=stopped, tell=tell
            )
            return self._keep(stamps, run)
        finally:
            self._reading.release()

    def load_here(self, source: Source, host: str = "") -> RecordedRun:
        """The same for work that is in the process beside already; no more than it asks for."""
        stamps = _stamps(Path(source.path))
        found = self.find(source, host)
        return self._keep(
            stamps,
            found or RecordedRun(source, reviewed(source.path, host=host, run_id=source.run)),
        )

    def _keep(self, stamps: Stamps, run: RecordedRun) -> RecordedRun:
        def is_other(kept: RecordedRun) -> bool:
            mine = (run.source.path, run.source.run, run.host)
            return (kept.source.path, kept.source.run, kept.host) != mine

        others = [kept for kept in self._runs if is_other(kept[1])]
        self._runs = [*others, (stamps, run)][-self.MOST :]
        return run


RUNS: Final = KeptRuns()
"""what all screens share"""


def read_run(source: Source, host: str = "", tell: Tell | None = None) -> RecordedRun:
    """Everything that screens show of a run. Raises CkptcostError where it cannot be read, or holds
    no reading."""
    seen = reviewed(source.path, host=host, run_id=source.run, tell=tell)
    run = RecordedRun(source, seen)
    _ = run.study, run.traces  # here, where nobody waits at a key
    return run


def learn_run(source: Source) -> Learned:
    """For the list of runs: of the first host, as `ckptcost report` takes it."""
    return RecordedRun(source, reviewed(source.path, run_id=source.run)).learned


def _unheard(what: str, share: float) -> None:
    """Nobody wants to know how far it is."""


def _stamps(path: Path) -> Stamps:
    """Name, size and time of every file: another tuple where something was written meanwhile."""
    try:
        if not path.is_dir():
            return ((path.name, path.stat().st_size, path.stat().st_mtime_ns),)
        files = [entry for entry in os.scandir(path) if entry.name.endswith(".jsonl")]
        return tuple(
            sorted((entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in files)
        )
    except OSError:
        return ()  # the reader says why


def findings_first(study: Study, *between: tuple[str, Tone]) -> list[tuple[str, Tone]]:
    """What a study says: what follows and what to mind come before what was asked."""
    said, about = paragraphs(study), set(study.about)
    return [
        *(line for line in said if line[0] not in about),
        *between,
        *(line for line in said if line[0] in about),
    ]
