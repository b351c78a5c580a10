"""A recorded run, read and evaluated once for all screens that show it: the run itself, one of its
checkpoints, the comparison with the model, its report. The last few stay in memory for as long as
their files are as they were."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from ckptcost.first.errors import UnknownName
from ckptcost.first.jobs.measure import reviewed
from ckptcost.first.jobs.measured import Measured
from ckptcost.first.present.amounts import count, share, size
from ckptcost.first.present.chart import Traces
from ckptcost.first.present.grid import Tone
from ckptcost.first.report.studies.measure import study_of
from ckptcost.first.report.studies.runs import SHORT, place_text
from ckptcost.first.report.study import Study
from ckptcost.first.tui.run_reader import LOOK_S, READER, GivenUp, Tell
from ckptcost.first.tui.screens.run_traces import around, traces_of
from ckptcost.first.tui.study_grids import paragraphs

Stamps = tuple[tuple[str, int, int], ...]
SAVE_BYTES = 150_000
"""evaluating one checkpoint takes as long as reading so much"""
MANY = 100
"""checkpoints of a run whose marks were not counted yet"""


class RunSource(NamedTuple):
    """Which run: what a screen that opens it needs to know."""

    path: str
    run: str
    """the whole id"""
    bytes: int
    alone: bool = True
    """no other run is in its folder"""
    saves: int | None = None
    """checkpoints by its marks, where they were counted"""

    @property
    def short(self) -> str:
        return self.run[:SHORT]

    @property
    def word(self) -> str:
        """As a command line names it: its place, or its id where the place holds several runs."""
        return self.path if self.alone else self.run

    @property
    def title(self) -> str:
        """Before anything is known of it."""
        return f"Run {self.short}, {place_text(Path(self.path))}"

    @property
    def weight(self) -> int:
        """How long it takes to evaluate, as bytes of readings: each checkpoint is worth some."""
        return self.bytes + SAVE_BYTES * (MANY if self.saves is None else self.saves)


class Learned(NamedTuple):
    """What only the readings tell, as `ckptcost report` has it; None is not known."""

    written: float | None
    stall: float | None
    joules: float | None
    findings: tuple[str, ...]


class RecordedRun:
    """One host of a run, as `ckptcost report` has it."""

    def __init__(self, source: RunSource, seen: Measured) -> None:
        self.source, self.seen = source, seen
        self._near: dict[int, Traces] = {}

    @property
    def host(self) -> str:
        return self.seen.energies.node.host

    @property
    def hosts(self) -> tuple[str, ...]:
        return self.seen.run.hosts

    @property
    def key(self) -> tuple[str, str, str]:
        return self.source.path, self.source.run, self.host

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

    def find(self, source: RunSource, host: str = "") -> RecordedRun | None:
        """None where it is not in memory, or its files were written to since."""
        for stamps, run in self._runs:
            asked = (source.path, source.run, host or run.hosts[0])
            if run.key == asked and stamps == _stamps(source):
                return run
        return None

    def load(
        self,
        source: RunSource,
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
            stamps, found = _stamps(source), self.find(source, host)
            if found is None:
                tell = tell or (lambda what, share: None)
                weight = source.weight
                found = READER.ask(
                    read_run, source, host, weight=weight, stopped=stopped, tell=tell
                )
            return self._keep(stamps, found)
        finally:
            self._reading.release()

    def load_here(self, source: RunSource, host: str = "") -> RecordedRun:
        """The same for work that is in the process beside already; no more than it asks for."""
        stamps, found = _stamps(source), self.find(source, host)
        if found is None:
            found = RecordedRun(source, reviewed(source.path, host=host, run_id=source.run))
        return self._keep(stamps, found)

    def _keep(self, stamps: Stamps, run: RecordedRun) -> RecordedRun:
        others = [kept for kept in self._runs if kept[1].key != run.key]
        self._runs = [*others, (stamps, run)][-self.MOST :]
        return run


RUNS: Final = KeptRuns()
"""what all screens share"""


def read_run(source: RunSource, host: str = "", tell: Tell | None = None) -> RecordedRun:
    """Everything that screens show of a run. Raises CkptcostError where it cannot be read, or holds
    no reading."""
    run = RecordedRun(source, reviewed(source.path, host=host, run_id=source.run, tell=tell))
    _ = run.study, run.traces  # here, where nobody waits at a key
    return run


def learn_run(source: RunSource) -> Learned:
    """For the list of runs: of the first host, as `ckptcost report` takes it."""
    return RecordedRun(source, reviewed(source.path, run_id=source.run)).learned


def _stamps(source: RunSource) -> Stamps:
    """Name, size and time of every file: another tuple where something was written meanwhile."""
    path = Path(source.path)
    try:
        files = path.glob("*.jsonl") if path.is_dir() else [path]
        found = ((file.name, file.stat()) for file in files)
        return tuple(sorted((name, of.st_size, of.st_mtime_ns) for name, of in found))
    except OSError:
        return ()  # the reader says why


def reading_text(*sources: RunSource, what: str = "", part: float = 0.0) -> str:
    """While one or more are read; `what` is done just now, and what part of it."""
    which = f"run {sources[0].short}" if len(sources) == 1 else f"{count(len(sources))} runs"
    so_far = f": {what}, {share(part)}" if what else ""
    bytes_ = size(sum(source.bytes for source in sources))
    return f"Reading {which}, {bytes_}{so_far} ... Escape gives up."


def refusal(text: str) -> list[tuple[str, Tone]]:
    """Why there is nothing to show, as a paragraph."""
    return [(text, "bad")]


def findings_first(study: Study) -> list[tuple[str, Tone]]:
    """What a study says: what follows and what to mind come before what was asked."""
    about: list[tuple[str, Tone]] = [(line, "muted") for line in study.about]
    return [*paragraphs(study._replace(about=[])), *about]
