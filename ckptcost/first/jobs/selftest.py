"""What this tool can be trusted with in one folder: real saves with known truth, under the watcher
and recorder of `ckptcost run`.

The truth of begin and stall is the writer's own clock. When a save was safe is known between two
instants: not before the folder's disks had taken as many bytes, by their own counters, and no later
than the return of an fsync. Whatever others write makes the first instant earlier, never later, so
the bracket holds on a busy machine too.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf, isnan, nan
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.core.contents import contents_of
from ckptcost.first.core.joining import join_marks
from ckptcost.first.core.phases import windows_of
from ckptcost.first.errors import CkptcostError
from ckptcost.first.interpreter import python
from ckptcost.first.jobs.checkup import Checkup, checkup
from ckptcost.first.jobs.command import CommandEnd
from ckptcost.first.jobs.instruments import instruments
from ckptcost.first.jobs.load_step import NOT_ASKED, Loaded, make_loads
from ckptcost.first.jobs.observe import WatchOptions
from ckptcost.first.jobs.selftest_children import serve_saves
from ckptcost.first.jobs.wrap import wrap
from ckptcost.first.meters.block import DiskHome, device_of
from ckptcost.first.meters.found import Wanted
from ckptcost.first.runs.reader import load
from ckptcost.first.savers.base import output_error
from ckptcost.first.savers.place import SavePlace
from ckptcost.first.watch.filesystems import Mounted, kind_of

ASKED_S = 1.5
"""so long after a save without fsync we ask for its write-back: nobody waits half a minute for the
kernel's timer"""
LOOK_S = 0.005
INSTANT_S, POLLED_S = 0.1, 1.0
"""how far an instant may be off as the documentation says it: of inotify on a busy machine, and of
a folder that is polled"""
LIVING = 2
"""saves that are there at a time, at most"""
SETTLE_S = 5.0


class SelftestRequest(NamedTuple):
    directory: Path
    size_bytes: int = 32_000_000
    rounds: int = 1
    within_s: float = 90.0
    """no save is begun that would not be over then"""
    load: bool = True
    """whether a known load may be made beside the meters of joules"""


class SaveTrial(NamedTuple):
    """One save: the truth, what was said of it, and the differences; NaN is not known, None was not
    said."""

    number: int
    way: str
    bytes: float
    is_found: bool
    bytes_error: float = nan
    begin_error_s: float = nan
    stall_s: float = nan
    stall_error_s: float = nan
    safe_from_s: float = nan
    """after the begin: the disks had not taken all of it before"""
    safe_to_s: float = nan
    """an fsync had returned; infinite of a save that was deleted first"""
    said_safe_s: float = nan
    safe_error_s: float = nan
    """how far outside the bracket; negative is too early"""
    how: str = ""
    why: str = ""
    """code: why nothing was said of its safety"""
    agrees: bool = False


class Tested(NamedTuple):
    asked: SelftestRequest
    host: str
    mounted: Mounted
    home: DiskHome
    saves: Sequence[SaveTrial]
    others: int
    """windows that are none of the saves"""
    skipped: Sequence[str]
    meters: Checkup
    tolerance_s: float
    folder: Path
    run_id: str
    ended: CommandEnd
    notes: Sequence[str]
    load: Loaded

    @property
    def agrees(self) -> bool:
        """Where there was no time for a single save, nothing does."""
        all_agree = bool(self.saves) and all(one.agrees for one in self.saves)
        return not self.ended.status and not self.others and all_agree


class _Beside:
    """Two threads that stand beside the job: one reads the disks' counters, one asks for
    write-back."""

    def __init__(self, notes: int, folder: int, disks: Sequence[str]) -> None:
        self._notes, self._folder = notes, folder
        self._stats = [Path("/sys/class/block") / disk / "stat" for disk in disks]
        self.seen: list[tuple[int, int]] = []
        self.synced_ns: dict[int, int] = {}
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=each, daemon=True) for each in (self._count, self._ask)
        ]

    def lines(self) -> list[dict[str, Any]]:
        """What the writer has noted so far; a last line that is being written is left out."""
        size = os.fstat(self._notes).st_size
        return [json.loads(line) for line in os.pread(self._notes, size, 0).split(b"\n")[:-1]]

    def _count(self) -> None:
        while self._stats:
            try:
                taken = sum(int(stat.read_text("ascii").split()[6]) * 512 for stat in self._stats)
            except (OSError, ValueError, IndexError):
                self.seen.clear()
                return
            self.seen.append((time.monotonic_ns(), taken))
            if self._over.wait(LOOK_S):
                return

    def _ask(self) -> None:
        done: set[int] = set()
        while not self._over.wait(0.05):
            for line in self.lines():
                if "begin_ns" not in line or line["way"] == "rotation" or line["number"] in done:
                    continue
                if "fsync" in line["way"]:
                    done.add(line["number"])
                    self.synced_ns[line["number"]] = line["returned_ns"]
                elif time.monotonic_ns() - line["returned_ns"] >= ASKED_S * 1e9:
                    done.add(line["number"])
                    if self._sync(line["files"]):
                        self.synced_ns[line["number"]] = time.monotonic_ns()

    def _sync(self, files: Sequence[str]) -> bool:
        try:
            for file in files:
                fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self._folder)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)
        except OSError:
            return False
        return True

    def taken_ns(self, since_ns: int, size_bytes: float) -> int | None:
        """The last look at which the disks had not taken so many bytes more; None where they never
        did."""
        before = max((at for at in self.seen if at[0] <= since_ns), default=None)
        if before is None:
            return None
        last_ns = since_ns
        for ns, taken in self.seen:
            if ns > since_ns and taken - before[1] >= size_bytes:
                return last_ns
            last_ns = max(ns, since_ns)
        return None

    def safe_between_ns(self, line: Mapping[str, Any]) -> tuple[int | None, int | None]:
        """A save was not safe before, and was safe after; None where that is not known."""
        from_ns = self.taken_ns(line["begin_ns"], line["bytes"])
        to_ns = self.synced_ns.get(line["number"])
        if from_ns is not None and to_ns is not None and from_ns > to_ns:
            from_ns = None  # the counter is behind, or not of these bytes
        return from_ns, to_ns

    def __enter__(self) -> _Beside:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


def selftest(
    asked: SelftestRequest,
    meters: str,
    wanted: Wanted,
    directory: Path | None = None,
    mask: set[int] | None = None,
) -> Tested:
    """Everything that was written is gone afterwards, whatever ends it. `mask`: signals are held
    back already, as `run` has it."""
    with SavePlace(asked.directory, LIVING * asked.size_bytes) as place:
        mounted, home = kind_of(asked.directory), device_of(asked.directory)
        folder = Path(os.path.realpath(asked.directory)) / place.name
        notes = os.memfd_create("selftest")
        try:
            code = (
                f"from {serve_saves.__module__} import serve_saves; "
                f"serve_saves({str(folder)!r}, {asked.size_bytes}, {asked.rounds}, "
                f"{asked.within_s!r}, '/proc/{os.getpid()}/fd/{notes}', {os.getpid()})"
            )
            look = WatchOptions(
                (folder,), least_bytes=min(1e6, asked.size_bytes / 8), settle_s=SETTLE_S
            )
            with _Beside(notes, place.fd, home.disks) as beside:
                taken = wrap(
                    python(code), meters, wanted, look, directory, mask=mask, purpose="selftest"
                )
            lines = beside.lines()
        finally:
            os.close(notes)
    assert taken.ended is not None
    _check_writer(taken.ended, lines, asked.directory)
    tolerance_s = POLLED_S if mounted.blind else INSTANT_S
    saves, others = _save_trials(lines, beside, taken.folder, tolerance_s)
    seen = checkup(instruments(meters, wanted, 0.0))
    made = Loaded((), 0, (NOT_ASKED,))
    if asked.load:
        made = make_loads(instruments(meters, wanted, 0.0), seen, taken.folder / "load-step")
    return Tested(
        asked,
        seen.host,
        mounted,
        home,
        saves,
        others,
        [str(line["skipped"]) for line in lines if "skipped" in line],
        seen,
        tolerance_s,
        taken.folder,
        taken.run_id,
        taken.ended,
        [*place.notes, *taken.troubles],
        made,
    )


def _check_writer(ended: CommandEnd, lines: Sequence[dict[str, Any]], directory: Path) -> None:
    """Raises where it could not write, or somebody interrupted it."""
    failed = next((line for line in lines if "failed" in line), None)
    if failed is not None:
        error = OSError(failed["errno"], os.strerror(failed["errno"]))
        raise output_error(error, str(directory), failed["failed"])
    if ended.signal in (2, 15):  # Ctrl-C and SIGTERM reach the writer, and mean us
        raise KeyboardInterrupt
    if ended.status and not ended.signal:
        raise CkptcostError("the self-test's writer could not work; it says why above")


def _save_trials(
    lines: Sequence[dict[str, Any]], beside: _Beside, folder: Path, tolerance_s: float
) -> tuple[list[SaveTrial], int]:
    """What was done beside what was found; a window belongs to the save during which it began."""
    run = load(folder)
    origin_s = run.node().origin_ns / 1e9
    marks = join_marks(run.marks)
    windows = windows_of(marks)
    found = [
        (window, what)
        for window, what in zip(windows, contents_of(marks, windows), strict=True)
        if window.begin_s is not None
    ]
    deleted = {line["number"]: line["deleted_ns"] for line in lines if "deleted_ns" in line}
    done = [line for line in lines if "begin_ns" in line]
    begins = [line["begin_ns"] / 1e9 - origin_s for line in done]
    saves = []
    for line, (begin_s, next_s) in zip(done, pairwise([*begins, inf]), strict=True):
        mine = None
        for each in found:
            if begin_s - tolerance_s <= (each[0].begin_s or 0.0) < next_s - tolerance_s:
                mine = each
                found.remove(each)
                break
        gone_ns = deleted.get(line["number"]) if line["way"] == "rotation" else None
        bracket = beside.safe_between_ns(line)
        saves.append(_save_trial(line, begin_s, mine, *bracket, gone_ns, tolerance_s))
    return saves, len(found)


def _save_trial(
    line: dict[str, Any],
    begin_s: float,
    said: Any,
    from_ns: int | None,
    to_ns: int | None,
    gone_ns: int | None,
    tolerance_s: float,
) -> SaveTrial:
    none = SaveTrial(line["number"], line["way"], line["bytes"], False)
    if said is None:
        return none
    window, what = said

    def after_begin_s(at_ns: int | None) -> float:
        return nan if at_ns is None else (at_ns - line["begin_ns"]) / 1e9

    stall_s, early_s, late_s = map(after_begin_s, (line["returned_ns"], from_ns, to_ns))
    safe_s = nan if window.durable_s is None else window.durable_s - begin_s
    if gone_ns is not None and (from_ns is None or from_ns > gone_ns):
        late_s = inf  # it never was safe: -inf where it was called so
    error_s = _outside_s(safe_s, what.unsure_s, early_s, late_s)
    begin_error_s = (window.begin_s or 0.0) - begin_s
    stall_error_s = nan if window.stall_s is None else window.stall_s - stall_s
    errors_s = (begin_error_s, stall_error_s, error_s)
    is_exact = not any(abs(each) > tolerance_s for each in errors_s)  # what is unknown is no error
    return none._replace(
        is_found=True,
        bytes_error=what.bytes / line["bytes"] - 1.0,
        begin_error_s=begin_error_s,
        stall_s=stall_s,
        stall_error_s=stall_error_s,
        safe_from_s=early_s,
        safe_to_s=late_s,
        said_safe_s=safe_s,
        safe_error_s=error_s,
        how=what.how,
        why=what.why,
        agrees=what.bytes == line["bytes"] and is_exact,
    )


def _outside_s(safe_s: float, unsure_s: float, early_s: float, late_s: float) -> float:
    """How far an instant is outside its bracket, either end of which may be unknown; negative is
    too early, NaN not known."""
    if late_s == inf:
        return safe_s - late_s
    above = safe_s - (0.0 if isnan(unsure_s) else unsure_s) - late_s
    if above > 0:
        return above
    if early_s > safe_s:
        return safe_s - early_s
    return nan if isnan(early_s) and isnan(late_s) else safe_s - safe_s
