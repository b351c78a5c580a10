"""What every engine that really writes a checkpoint is given, and what it gives back: settings, a
way to stop it, instants, latencies of requests, and what a storage refused, in our words.

A save makes the directory `save-<number>` of a `Place` with one file for each `FileShape`, and
returns when all of it is durable. Engines see neither meters nor windows: `Io` carries the instants
(CLOCK_MONOTONIC, ns) from which others make marks.
"""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from ckptcost.first.errors import InputError

if TYPE_CHECKING:
    from ckptcost.first.savers.place import SavePlace
import errno

from ckptcost.first.errors import OutputError

_LOOK_S = 0.05


class Control:
    """Between who drives a probe and who watches it from another thread. To be stopped is as
    Ctrl-C, so that what cleans up after the one cleans up after the other: engines look between two
    requests and raise KeyboardInterrupt."""

    def __init__(self, also: Callable[[], bool] | None = None) -> None:
        """`also` stops it as well; it is asked between two requests."""
        self._also = also
        self._asked = threading.Event()
        self._lock = threading.Lock()
        self.what, self.number = "", 0
        """save, verify, load or warm-up, and of which round"""
        self.whole_bytes = 0
        self.moved_bytes = 0
        """of the pass under way"""

    def stop(self) -> None:
        """From any thread, any number of times."""
        self._asked.set()

    @property
    def stopped(self) -> bool:
        return self._asked.is_set() or (self._also is not None and self._also())

    def check(self) -> None:
        if self.stopped:
            raise KeyboardInterrupt

    def rest(self, seconds: float) -> None:
        """Sleep, and wake up to stop."""
        until_s = time.monotonic() + seconds
        self.check()
        while (left_s := until_s - time.monotonic()) > 0:
            self._asked.wait(min(left_s, _LOOK_S))
            self.check()

    def begin(self, what: str, number: int, whole_bytes: int) -> None:
        """A pass begins."""
        self.check()
        with self._lock:
            self.what, self.number, self.whole_bytes, self.moved_bytes = (
                what,
                number,
                whole_bytes,
                0,
            )

    def moved(self, bytes_: int) -> None:
        with self._lock:
            self.moved_bytes += bytes_


_GROWTH = math.log(1.02)
_LEAST_S = 1e-7


@dataclass(frozen=True, slots=True)
class Latencies:
    """Of `count` requests; NaN where there was none."""

    count: int
    mean: float
    p50: float
    p95: float
    p99: float
    max: float


NONE = Latencies(0, *[math.nan] * 5)


class Tally:
    """Of one thread; `together` joins them. 0.3 us a request."""

    __slots__ = ("bins", "count", "most_s", "sum_s")

    def __init__(self) -> None:
        self.bins: dict[int, int] = {}
        self.count, self.sum_s, self.most_s = 0, 0.0, 0.0

    def add(self, took_s: float) -> None:
        number = int(math.log(max(took_s, _LEAST_S) / _LEAST_S) / _GROWTH)
        self.bins[number] = self.bins.get(number, 0) + 1
        self.count += 1
        self.sum_s += took_s
        self.most_s = max(self.most_s, took_s)

    def join(self, other: Tally) -> None:
        for number, count in other.bins.items():
            self.bins[number] = self.bins.get(number, 0) + count
        self.count += other.count
        self.sum_s += other.sum_s
        self.most_s = max(self.most_s, other.most_s)

    def quantile(self, share: float) -> float:
        """The smallest latency that `share` of all do not exceed."""
        if not self.count:
            return math.nan
        left = max(math.ceil(share * self.count), 1)
        for number in sorted(self.bins):
            left -= self.bins[number]
            if left <= 0:
                return min(_LEAST_S * math.exp((number + 0.5) * _GROWTH), self.most_s)
        return self.most_s

    def latencies(self) -> Latencies:
        if not self.count:
            return NONE
        return Latencies(
            self.count,
            self.sum_s / self.count,
            self.quantile(0.5),
            self.quantile(0.95),
            self.quantile(0.99),
            self.most_s,
        )


Kind = Literal["weights", "optimizer", "other"]
PAGE_BYTES = 4096
"""direct I/O is aligned to it: enough for every file system we know of"""


@dataclass(frozen=True, slots=True)
class FileShape:
    """A file of a checkpoint; `rank` is the process that writes it."""

    name: str
    size_bytes: int
    rank: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class Shape:
    files: tuple[FileShape, ...]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def ranks(self) -> int:
        """The number of writers; ranks count from 0."""
        return max((file.rank for file in self.files), default=-1) + 1

    def of_rank(self, rank: int) -> tuple[FileShape, ...]:
        return tuple(file for file in self.files if file.rank == rank)


@dataclass(frozen=True, slots=True)
class SaverSettings:
    """How it is written. An engine takes what it understands."""

    block_bytes: int = 4 << 20
    """of a request"""
    depth: int = 16
    """requests in flight, of all ranks together"""
    threads: int = 0
    """writers at the same time in engines that write a file with one thread; 0 = one for each
    rank"""
    seed: int = 0
    """of the content"""
    preallocate: bool = True
    """reserve a file's blocks before the first is written (the direct engine)"""
    verify: bool = True
    """read everything back and compare, in a pass that is not timed; for who drives an engine"""
    control: Control | None = field(default=None, compare=False, repr=False)
    """who watches from another thread, and may stop it"""

    def __post_init__(self) -> None:
        if self.block_bytes < PAGE_BYTES or self.block_bytes % PAGE_BYTES:
            raise InputError(
                f"a block of {self.block_bytes} bytes",
                remedy=f"give a multiple of {PAGE_BYTES} bytes, 4 MiB for example",
            )
        if self.block_bytes > 1 << 30:
            raise InputError(
                f"a block of {self.block_bytes} bytes",
                remedy="give at most 1 GiB, the most that one request takes",
            )
        if not 1 <= self.depth <= 1024:
            raise InputError(f"{self.depth} requests in flight", remedy="give 1 to 1024")
        if not 0 <= self.threads <= 1024:
            raise InputError(
                f"{self.threads} threads", remedy="give 1 to 1024, or 0 for one a rank"
            )


class Io(NamedTuple):
    """What one pass, a save or a load, did."""

    begin_ns: int
    returned_ns: int
    """of a save: the last write returned, and training would go on; of a load: the last byte is
    here"""
    durable_ns: int | None
    """of a save: everything is safe, the directory and its name too; None of a load"""
    bytes: int
    files: int
    fsync_s: float
    """during so much of it at least one fsync was under way"""
    latencies_s: Latencies
    """of single requests (one write or read call)"""
    depth: float
    """requests in flight in the mean between begin and returned, as this program knows it"""
    marks: tuple[tuple[str, int], ...]
    """further instants: ("snapshotted", ns), ("written", ns), ("synced", ns), ("committed", ns)"""
    by_rank_s: tuple[float, ...]
    """how long each rank took: of a save up to its last fsync, of a load up to its last byte"""
    cached_bytes: int | None = None
    """of a load: so much of the files was in the page cache when it began; None = not known, or it
    makes no difference (direct I/O)"""
    notes: tuple[str, ...] = ()
    """what a reader of the figures has to know, in sentences"""

    @property
    def duration_s(self) -> float:
        """To durable, where that is known; else to the return."""
        return (
            (self.returned_ns if self.durable_ns is None else self.durable_ns) - self.begin_ns
        ) * 1e-9

    @property
    def bytes_per_s(self) -> float:
        return self.bytes / self.duration_s if self.duration_s > 0.0 else float("nan")


class Saver(ABC):
    """An engine. Making one raises MeterUnavailable where its library is missing. Every method
    raises OutputError where the storage refuses (full, quota, EIO, no permission), and leaves
    nothing of an unfinished save, of an interrupted one neither.
    """

    name: ClassVar[str]

    @abstractmethod
    def save(self, place: SavePlace, shape: Shape, settings: SaverSettings, number: int) -> Io:
        """Write checkpoint `number`, until it is durable. It stays until `place.remove(number)`."""

    @abstractmethod
    def load(self, place: SavePlace, shape: Shape, settings: SaverSettings, number: int) -> Io:
        """Read it, from the storage and not from the page cache as far as that can be had."""

    @abstractmethod
    def verify(self, place: SavePlace, shape: Shape, settings: SaverSettings, number: int) -> None:
        """Read it and compare with what was written. Raises CkptcostError naming the file and the
        offset. Not timed."""


_WORDS = {
    errno.ENOSPC: "no space is left on the file system",
    errno.EDQUOT: "the quota of this user or project is used up",
    errno.EIO: "the storage reports an input/output error",
    errno.EROFS: "the file system is mounted read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOENT: "it is gone; somebody removed it meanwhile",
    errno.ESTALE: "it is gone on the server",
    errno.EFBIG: "a file would become larger than allowed (ulimit -f, or the file system's limit)",
    errno.EMFILE: "too many open files (ulimit -n)",
    errno.ENOMEM: "no memory is left",
}
_REMEDIES = {
    errno.ENOSPC: "Give a smaller size, or another directory",
    errno.EDQUOT: "Give a smaller size, or another directory",
    errno.EIO: "The kernel's log (dmesg) says more",
}


def output_error(error: OSError, where: str, doing: str = "") -> OutputError:
    """`where` is the directory as the user knows it; the file in it comes from the error."""
    name = error.filename if isinstance(error.filename, str) and "/" not in error.filename else ""
    place = f"{where}: {name}" if name else where
    words = _WORDS.get(error.errno or 0, error.strerror or str(error) or type(error).__name__)
    text = f"{place}: {doing}: {words}" if doing else f"{place}: {words}"
    remedy = _REMEDIES.get(error.errno or 0, "")
    return OutputError(f"{text}. {remedy}" if remedy else text)
