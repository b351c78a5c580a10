"""What the page cache still owes the drives, and when a save's share of it had been paid.

Dirty + Writeback of /proc/meminfo is all that was written and is not on its way or on its way and
not there, of the whole host. A second, slower meter has nr_written of /proc/vmstat: all pages that
write-back ever sent, on whatever device (its file takes ten times as long to read). Direct I/O
passes by both.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.channels import Channel, Series
from ckptcost.first.core.page_cache import dirty_limit_bytes
from ckptcost.first.errors import MeterLost
from ckptcost.first.meters.base import NOTHING, Absence, Basic, FoundMeters
from ckptcost.first.meters.kept import OpenFile, os_error_text

KIB = 1024.0
MOST_SLACK_BYTES = 1 << 20
_AVAILABLE = re.compile(rb"^MemAvailable:\s+(\d+) kB", re.M)
_DIRTY = re.compile(rb"^Dirty:\s+(\d+) kB", re.M)
_WRITEBACK = re.compile(rb"^Writeback:\s+(\d+) kB", re.M)
_WRITTEN = re.compile(rb"^nr_written (\d+)", re.M)


def _number(pattern: re.Pattern[bytes], text: bytes, unit: float) -> float:
    found = pattern.search(text)
    return float(found[1]) * unit if found else NOTHING


def dirty_limit_of_host(procfs: Path = Path("/proc")) -> float | None:
    """Dirty bytes of this host at which a writer waits for the drives; None where the kernel does
    not say."""
    try:
        vm = {
            name: float((procfs / "sys" / "vm" / name).read_text("ascii"))
            for name in (
                "dirty_ratio",
                "dirty_bytes",
                "dirty_background_ratio",
                "dirty_background_bytes",
            )
        }
        memory = (procfs / "meminfo").read_bytes()
    except (OSError, ValueError):
        return None
    available = _number(_AVAILABLE, memory, KIB)
    return dirty_limit_bytes(vm, available) if available == available else None


class Writeback(Basic):
    """Bytes that are dirty and bytes under write-back."""

    def __init__(self, path: Path) -> None:
        super().__init__("writeback")
        self._kept = OpenFile(path)
        dirty = Channel(
            "host", "dirty_bytes", f"{path} Dirty", "host", role="detail", resolution=KIB
        )
        under_way = replace(dirty, quantity="writeback_bytes", source=f"{path} Writeback")
        self.channels = dirty, under_way

    def read(self, t_ns: int) -> tuple[float, float]:
        try:
            text = self._kept.read(8192)
        except OSError as error:
            raise MeterLost(f"{self._kept.path}: {os_error_text(error)}") from error
        return _number(_DIRTY, text, KIB), _number(_WRITEBACK, text, KIB)

    def close(self) -> None:
        self._kept.close()


class WrittenMeter(Basic):
    """Bytes that write-back has sent, since boot."""

    def __init__(self, path: Path, page_bytes: float) -> None:
        super().__init__("vmstat", least_s=0.5)
        self._kept = OpenFile(path)
        self._page_bytes = page_bytes
        note = "page cache only, on any device or server; direct I/O passes by"
        self.channels = (
            Channel(
                "host",
                "written_bytes",
                f"{path} nr_written",
                "host",
                role="detail",
                resolution=page_bytes,
                note=note,
            ),
        )

    def read(self, t_ns: int) -> tuple[float]:
        try:
            text = self._kept.read_all()
        except OSError as error:
            raise MeterLost(f"{self._kept.path}: {os_error_text(error)}") from error
        return (_number(_WRITTEN, text, self._page_bytes),)

    def close(self) -> None:
        self._kept.close()


def find(
    *, procfs: Path = Path("/proc"), sysfs: Path = Path("/sys"), page_bytes: int | None = None
) -> FoundMeters:
    """The meters `writeback` (meminfo) and `vmstat`."""
    remedy = "the kernel's own /proc; containers with a made-up meminfo (lxcfs) need the host's"
    meters: list[Writeback | WrittenMeter] = []
    absences = []
    page = float(page_bytes or os.sysconf("SC_PAGE_SIZE"))
    for name in ("meminfo", "vmstat"):
        path = procfs / name
        what = "writeback" if name == "meminfo" else name
        try:
            meter = Writeback(path) if name == "meminfo" else WrittenMeter(path, page)
            values = meter.read(0)
        except (OSError, MeterLost) as error:
            reason = (
                f"{path}: {os_error_text(error)}" if isinstance(error, OSError) else error.reason
            )
            absences.append(Absence(what, reason, remedy, "storage"))
            continue
        if all(value != value for value in values):
            meter.close()
            lines = "Dirty and Writeback" if name == "meminfo" else "nr_written"
            absences.append(Absence(what, f"{path} has no line {lines}", remedy, "storage"))
        else:
            meters.append(meter)
    return FoundMeters(tuple(meters), tuple(absences))


class Drained(NamedTuple):
    """When what a save left in the page cache had reached the device; NaN for what the readings do
    not show."""

    at_s: float
    """the level is back where it was before the save, and the device has taken as much as the save
    wrote"""
    after_s: float
    """the last reading at which that did not hold yet: the truth lies between this and `at_s`"""
    surely_s: float
    """the host owed the device nothing at all any more; NaN where other writers kept it dirty"""
    left_bytes: float
    """above the level before the save, at the last reading"""
    enough: bool | None
    """the device took at least the save's bytes by the last reading; None where either is unknown.
    False with a level that fell: the bytes were deleted or cut before write-back, or went to
    another device"""


def _moved_since(
    written: Series, begin_s: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Times of a counter's readings, and what it counted from the last one by `begin_s` on; None
    where there is none. A counter that fell says nothing either."""
    there = ~np.isnan(written.value)
    t_s, counted = written.t_s[there], written.value[there]
    begin = np.flatnonzero(t_s <= begin_s)
    if not len(begin) or np.any(np.diff(counted[begin[-1] :]) < 0):
        return None
    return t_s, counted - counted[begin[-1]]


def drain_times(
    owed: Series,
    written: Series | None,
    *,
    begin_s: float,
    returned_s: float,
    size_bytes: float = NOTHING,
    slack_bytes: float = NOTHING,
) -> Drained:
    """When the write-back of a save that began at `begin_s` and returned at `returned_s` had
    drained.

    `owed` is Dirty + Writeback, `written` the device's counter of bytes written, `size_bytes` what
    the save wrote less what was cancelled. Draining takes both conditions: the level alone falls
    while somebody else's pages are written, the bytes alone may be somebody else's. Another writer
    can make the answer late (the level does not come back) but early only where it had as much
    dirty before the save as it writes during it; `surely_s` is free of that. `slack_bytes` (by
    default 1 % of the save, at most 1 MiB) is what a journal and its kin keep dirty.

    >>> from ckptcost.first.core.channels import series
    >>> owed, disk = (
    ...     series([0, 1, 2, 3, 4], [0, 90e6, 60e6, 30e6, 0]),
    ...     series([0, 1, 2, 3, 4], [5e6, 15e6, 45e6, 75e6, 105e6]),
    ... )
    >>> drain_times(owed, disk, begin_s=0.0, returned_s=1.0, size_bytes=100e6)[:3]
    (4.0, 3.0, 4.0)
    """
    known = ~np.isnan(owed.value)
    t_s, level = owed.t_s[known], owed.value[known]
    before = np.flatnonzero(t_s <= begin_s)
    if not len(t_s) or not len(before):
        return Drained(NOTHING, NOTHING, NOTHING, NOTHING, None)
    start_bytes = float(level[before[-1]])
    slack = (
        slack_bytes
        if slack_bytes == slack_bytes
        else min(0.01 * size_bytes if size_bytes == size_bytes else np.inf, MOST_SLACK_BYTES)
    )
    back = level <= start_bytes + slack
    taken = np.ones(len(t_s), dtype=bool)
    enough: bool | None = None
    moved = None if written is None else _moved_since(written, begin_s)
    if moved is not None and size_bytes == size_bytes:
        read_s, moved_bytes = moved
        # the latest reading of the device at each reading of the level
        upto = np.maximum(np.searchsorted(read_s, t_s, side="right") - 1, 0)
        taken = moved_bytes[upto] >= size_bytes - slack
        enough = bool(moved_bytes[-1] >= size_bytes - slack)
    later = t_s >= returned_s
    left = max(float(level[-1]) - start_bytes, 0.0)

    def first(met: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[float, float]:
        hits = np.flatnonzero(met & later)
        if not len(hits):
            return NOTHING, NOTHING
        at = int(hits[0])
        # what holds at the first reading after the return was so when it returned, or came between
        return float(t_s[at]), max(float(t_s[at - 1]), begin_s) if at else begin_s

    at_s, after_s = first(back & taken)
    surely_s, _ = first((level <= slack) & taken)
    return Drained(at_s, after_s, surely_s, left, enough)
