"""Who does which block next: one file of each rank at a time, the ranks in turn, as when they all
write at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from ckptcost.first.savers.base import FileShape, Shape


class DealtFile:
    """A file at work: opened with its first block, closed with its last."""

    __slots__ = ("fd", "left", "next", "shape")

    def __init__(self, shape: FileShape, fd: int, blocks: int) -> None:
        self.shape, self.fd, self.left, self.next = shape, fd, blocks, 0


class Dealer:
    """Deals (file, offset) to any number of threads. `close` closes what an error left open, when
    all of them are through."""

    def __init__(
        self, shape: Shape, block_bytes: int, open_file: Callable[[FileShape], int]
    ) -> None:
        self._block, self._open = block_bytes, open_file
        self._queues = [list(reversed(shape.of_rank(rank))) for rank in range(shape.ranks)]
        self._current: list[DealtFile | None] = [None] * shape.ranks
        self._turn = 0
        self._lock = threading.Lock()
        self._fds: set[int] = set()

    def take(self) -> tuple[DealtFile, int] | None:
        """The next block; None when all are dealt. An empty file is one block of nothing."""
        with self._lock:
            for _ in self._queues:
                rank, self._turn = self._turn, (self._turn + 1) % len(self._queues)
                file = self._current[rank] or self._begin(rank)
                if file is None:
                    continue
                offset = file.next
                file.next += self._block
                self._current[rank] = file if file.next < file.shape.size_bytes else None
                return file, offset
        return None

    def _begin(self, rank: int) -> DealtFile | None:
        if not self._queues[rank]:
            return None
        shape = self._queues[rank].pop()
        with naming(shape.name):
            fd = self._open(shape)
        self._fds.add(fd)
        return DealtFile(shape, fd, max(-(-shape.size_bytes // self._block), 1))

    def done(self, file: DealtFile) -> bool:
        """A block is through; True with the last one of its file."""
        with self._lock:
            file.left -= 1
            return file.left == 0

    def finish(self, file: DealtFile) -> None:
        with self._lock:
            self._fds.discard(file.fd)
            os.close(file.fd)

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()


class naming:  # noqa: N801 - it reads as the word it is
    """An error of the system inside gets the name of the file."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, OSError):
            error.filename = self._name
