"""All blocks of a checkpoint moved once, with many requests in flight: what writing, reading and
comparing have in common."""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial

import numpy as np

from ckptcost.first.errors import InputError
from ckptcost.first.savers.base import PAGE_BYTES, FileShape, Io, SaverSettings, Shape, Tally
from ckptcost.first.savers.content import Bytes
from ckptcost.first.savers.crew import Crew, Span, now_ns
from ckptcost.first.savers.dealer import Dealer, DealtFile, naming
from ckptcost.first.savers.page_cache import pad
from ckptcost.first.savers.place import SaveFolder


def buffers(block_bytes: int, count: int) -> list[Bytes]:
    """So many blocks. They are touched here: the first touch of 64 MiB takes as long as writing a
    tenth of a gigabyte. Huge pages where there are some: the kernel has fewer of them to pin for a
    request."""
    size = block_bytes * count
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if size > memory // 2:
        raise InputError(
            f"{count} buffers of {block_bytes} bytes are more than half of the memory",
            remedy="give fewer or smaller requests",
        )
    try:
        arena = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise InputError(
            f"no memory for {count} buffers of {block_bytes} bytes",
            remedy="give fewer or smaller requests",
        ) from error
    with contextlib.suppress(OSError, AttributeError):  # a kernel, or a Python, without
        arena.madvise(mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(arena, np.uint8)
    whole[::PAGE_BYTES] = 1
    return [whole[at : at + block_bytes] for at in range(0, size, block_bytes)]


class Blocks(ABC):
    """One pass. A thread for each buffer; at most `depth` of them are in `move` at a time."""

    def __init__(self, save: SaveFolder, shape: Shape, settings: SaverSettings) -> None:
        self.save, self.shape, self.settings = save, shape, settings
        self._crew = Crew(settings.control)
        self._slots = threading.BoundedSemaphore(settings.depth)
        self._ends: list[tuple[int, int]] = []

    @abstractmethod
    def open(self, file: FileShape) -> int:
        """The open file."""

    @abstractmethod
    def move(self, file: DealtFile, offset: int, buffer: Bytes) -> int:
        """The request that is timed. How many bytes of the buffer count."""

    def before(self, file: DealtFile, offset: int, buffer: Bytes) -> None:  # noqa: B027
        """While others are in `move`; to do nothing is right for most."""

    def after(self, file: DealtFile, offset: int, moved: Bytes) -> None:  # noqa: B027
        """With what was moved."""

    def last(self, file: DealtFile) -> Span | None:
        """When all blocks of a file are through: the time its fsync took."""
        return None

    def go(self, buffers: list[Bytes]) -> None:
        dealer = Dealer(self.shape, self.settings.block_bytes, self.open)
        try:
            self._crew.run([partial(self._thread, dealer, buffer) for buffer in buffers])
        finally:
            dealer.close()

    def _thread(self, dealer: Dealer, buffer: Bytes) -> None:
        tally, syncs, moved_ns = Tally(), [], 0
        while not self._crew.stopped and (dealt := dealer.take()):
            file, offset = dealt
            with naming(file.shape.name):
                part = buffer[: pad(file.shape.size_bytes - offset)]
                if len(part):
                    self.before(file, offset, part)
                    with self._slots:
                        start_ns = now_ns()
                        count = self.move(file, offset, part)
                        moved_ns = now_ns()
                    tally.add((moved_ns - start_ns) * 1e-9)
                    self.after(file, offset, part[:count])
                    self._crew.moved(min(count, file.shape.size_bytes - offset))
                else:
                    moved_ns = now_ns()
                if dealer.done(file):
                    if span := self.last(file):
                        syncs.append(span)
                    dealer.finish(file)
                    self._ends.append((file.shape.rank, now_ns()))
        self._crew.report(tally, moved_ns, syncs)

    def synced(self, span: Span) -> None:
        """An fsync of directories, when all files have had theirs."""
        self._crew.report(Tally(), 0, [span])

    @property
    def moved_ns(self) -> int:
        """When the last request returned."""
        return self._crew.last_ns

    def io(
        self,
        begin_ns: int,
        durable_ns: int | None = None,
        marks: tuple[tuple[str, int], ...] = (),
        notes: tuple[str, ...] = (),
    ) -> Io:
        return notes_of(self._crew, self.shape, self._ends, begin_ns, durable_ns, marks)._replace(
            notes=notes
        )


def notes_of(
    crew: Crew,
    shape: Shape,
    ends: Sequence[tuple[int, int]],
    begin_ns: int,
    durable_ns: int | None,
    marks: tuple[tuple[str, int], ...],
) -> Io:
    """What a crew did; `ends` has (rank, ns) of each file or rank that is through."""
    span_s = max(crew.last_ns - begin_ns, 1) * 1e-9
    return Io(
        begin_ns=begin_ns,
        returned_ns=crew.last_ns,
        durable_ns=durable_ns,
        bytes=shape.size_bytes,
        files=len(shape.files),
        fsync_s=crew.fsync_s,
        latencies_s=crew.tally.latencies(),
        depth=crew.tally.sum_s / span_s,
        marks=marks,
        by_rank_s=by_rank_s(shape.ranks, ends, begin_ns),
    )


def by_rank_s(ranks: int, ends: Sequence[tuple[int, int]], begin_ns: int) -> tuple[float, ...]:
    """Seconds to each rank's last end; NaN of a rank without a file.

    >>> by_rank_s(3, [(1, 10**9), (0, 3 * 10**9), (1, 2 * 10**9)], 0)
    (3.0, 2.0, nan)
    """
    last = [math.nan] * ranks
    for rank, at_ns in sorted(ends):
        last[rank] = (at_ns - begin_ns) * 1e-9
    return tuple(last)
