"""What every engine that really writes a checkpoint is given, and what it gives back.

A save makes the directory `save-<number>` of a `Place` with one file for each `FileShape`, and
returns when all of it is durable. Engines see neither meters nor windows: `Io` carries the instants
(CLOCK_MONOTONIC, ns) from which others make marks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from ckptcost.errors import InputError
from ckptcost.savers.latencies import Latencies

if TYPE_CHECKING:
    from ckptcost.savers.control import Control
    from ckptcost.savers.place import Place

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
class Settings:
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
    def save(self, place: Place, shape: Shape, settings: Settings, number: int) -> Io:
        """Write checkpoint `number`, until it is durable. It stays until `place.remove(number)`."""

    @abstractmethod
    def load(self, place: Place, shape: Shape, settings: Settings, number: int) -> Io:
        """Read it, from the storage and not from the page cache as far as that can be had."""

    @abstractmethod
    def verify(self, place: Place, shape: Shape, settings: Settings, number: int) -> None:
        """Read it and compare with what was written. Raises CkptcostError naming the file and the
        offset. Not timed."""
