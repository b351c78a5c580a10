"""A probe under way: run in a thread, watched from the screen, stopped between two requests; and
its run until it is kept."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ckptcost.catalog.store import Catalog
from ckptcost.errors import OutputError
from ckptcost.jobs.probe import Probed, ProbeProgress, probe
from ckptcost.meters.found import Wanted
from ckptcost.report.studies.probe import study_of
from ckptcost.report.study import Study
from ckptcost.runs import store
from ckptcost.savers.base import Io
from ckptcost.savers.control import Control
from ckptcost.savers.owners import PREFIX
from ckptcost.tui.desk import by_flags
from ckptcost.tui.screens.probe_form import Wish, asked

STEP_NS = 50_000_000
"""between two looks at how far a pass is"""


class Pass:
    """A save, a load or a comparison, as far as it is."""

    def __init__(self, what: str, number: int, whole_bytes: int, begin_ns: int) -> None:
        self.what, self.number, self.whole_bytes, self.begin_ns = (
            what,
            number,
            whole_bytes,
            begin_ns,
        )
        self.moves: list[tuple[int, int]] = []
        """when how many bytes were through"""
        self.io: Io | None = None
        """what the engine says of it when it is over"""


class Watch(Control):
    """Everything that the screen draws while it runs. The engine's threads write, the screen's
    reads."""

    def __init__(self) -> None:
        super().__init__()
        self.passes: list[Pass] = []
        self.all_bytes = 0
        """moved in all"""
        self.begin_ns = time.monotonic_ns()

    def begin(self, what: str, number: int, whole_bytes: int) -> None:
        super().begin(what, number, whole_bytes)
        self.passes.append(Pass(what, number, whole_bytes, time.monotonic_ns()))

    def moved(self, bytes_: int) -> None:
        super().moved(bytes_)
        self.all_bytes += bytes_  # a byte lost between two threads is none on a screen
        now_ns, moves = time.monotonic_ns(), self.passes[-1].moves
        if not moves or now_ns - moves[-1][0] >= STEP_NS:
            moves.append((now_ns, self.moved_bytes))

    def tell(self, told: ProbeProgress) -> None:
        """The job says what the pass before was."""
        if told.io is not None:
            last = next(
                (
                    one
                    for one in reversed(self.passes)
                    if one.what in ("save", "load") and one.io is None
                ),
                None,
            )
            if last is not None:
                last.io = told.io

    def stopped_by(self, also: Callable[[], bool]) -> None:
        self._also = also


class Ended(NamedTuple):
    """How it ended. Without passes there is neither a study nor a run."""

    cancelled: bool
    probed: Probed | None = None
    study: Study | None = None
    folder: Path | None = None
    """of the run, among temporary files until it is kept"""
    left: tuple[str, ...] = ()
    """what could not be removed, or is another probe's"""


class Running:
    """One probe."""

    def __init__(self, wish: Wish, meters: str) -> None:
        self.wish, self.meters, self.watch = wish, meters, Watch()
        self._over = threading.Event()

    def stop(self, wait_s: float = 0.0) -> bool:
        """Whether it is over, everything removed, after at most so long."""
        self.watch.stop()
        return self._over.wait(wait_s)

    def work(self, stopped: Callable[[], bool]) -> Ended:
        """In a thread of its own. Raises what the storage, a library or a meter refuses; nothing is
        left then either."""
        self.watch.stopped_by(stopped)
        try:
            ended = self._probe()
            if stopped() and ended.study is not None:  # nobody is there any more who could keep it
                forget(ended)
                return Ended(True, left=ended.left)
            return ended
        finally:
            self._over.set()

    def _probe(self) -> Ended:
        try:
            scratch = Path(tempfile.mkdtemp(prefix="ckptcost-run-"))
        except OSError as error:
            raise OutputError(
                f"{tempfile.gettempdir()}: no folder for the run: {error.strerror or error}"
            ) from error
        probed: Probed | None = None
        try:
            with by_flags():
                probed = probe(
                    asked(self.wish, self.watch),
                    self.meters,
                    Wanted(),
                    scratch / "run",
                    self.watch.tell,
                )
        except KeyboardInterrupt:
            return Ended(True, left=left_in(self.wish.directory))
        finally:
            if probed is None:
                shutil.rmtree(scratch, ignore_errors=True)
        return Ended(
            probed.interrupted,
            probed,
            study_of(probed, Catalog()),
            scratch / "run",
            left_in(self.wish.directory),
        )


def left_in(directory: Path) -> tuple[str, ...]:
    """Folders of probes that are still there."""
    try:
        return tuple(sorted(name for name in os.listdir(directory) if name.startswith(PREFIX)))
    except OSError:
        return ()


def keep(ended: Ended) -> Path:
    """Put the run among the user's own. Raises OutputError."""
    assert ended.folder is not None
    assert ended.probed is not None
    if ended.folder.parent == store.home():
        return ended.folder
    target = store.new_folder(run=ended.probed.measured.run.id)
    try:
        for file in sorted(ended.folder.iterdir()):
            shutil.move(str(file), target / file.name)
    except OSError as error:
        raise OutputError(
            f"{target}: the run could not be kept: {error.strerror or error}"
        ) from error
    forget(ended)
    return target


def forget(ended: Ended) -> None:
    """Drop a run that was not kept. Only what this module made."""
    if ended.folder is not None and ended.folder.parent.name.startswith("ckptcost-run-"):
        shutil.rmtree(ended.folder.parent, ignore_errors=True)
