"""Through the page cache: write(), then fsync, as nearly every framework saves.

Each rank writes its files one after the other, with one request in flight, and then syncs them. So
one save tells both instants: when the last write returned, and training would have gone on had
nobody synced; and when all was durable. Before a load the files are dropped from the page cache,
and what the kernel did not let go of is counted. What a server or a drive keeps in a cache of its
own cannot be seen.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ClassVar, TypeVar

from ckptcost.first.savers.base import FileShape, Io, Saver, SaverSettings, Shape, Tally
from ckptcost.first.savers.blocks import buffers, notes_of
from ckptcost.first.savers.content import Bytes, Content, damage_error, wrong_length
from ckptcost.first.savers.crew import Crew, now_ns
from ckptcost.first.savers.dealer import naming
from ckptcost.first.savers.page_cache import cached_bytes, drop, pad
from ckptcost.first.savers.place import SaveFolder, SavePlace

_Tool = TypeVar("_Tool")
_STRETCH_BYTES = 1 << 20
"""handing over to another thread costs 50 us"""
_WORTH_SAYING = 0.01
"""of the bytes"""


class Posix(Saver):
    name: ClassVar[str] = "posix"

    def save(self, place: SavePlace, shape: Shape, settings: SaverSettings, number: int) -> Io:
        content, files = Content(settings.seed, number), _CutFiles()
        ahead = [_Ahead(content, settings.block_bytes) for _ in range(_writers(shape, settings))]
        try:
            with place.saving(number, shape.size_bytes) as save:
                ranks = _Ranks(shape, settings)
                begin_ns = now_ns()
                ranks.go(ahead, partial(_write_rank, save, files, settings.block_bytes), files.cut)
                synced_ns = now_ns()
                save.commit()
                durable_ns = now_ns()
        finally:
            for each in ahead:
                each.close()
        ranks.crew.report(Tally(), 0, [(synced_ns, durable_ns)])
        marks = (("written", ranks.crew.last_ns), ("synced", synced_ns), ("committed", durable_ns))
        return ranks.io(begin_ns, durable_ns, marks)

    def load(self, place: SavePlace, shape: Shape, settings: SaverSettings, number: int) -> Io:
        memory = buffers(settings.block_bytes, _writers(shape, settings))
        with place.loading(number) as save:
            cached = _drop_cached(save, shape)
            ranks = _Ranks(shape, settings)
            begin_ns = now_ns()
            ranks.go(memory, partial(_read_rank, save, None))
        return ranks.io(begin_ns)._replace(cached_bytes=cached, notes=_notes(cached, shape))

    def verify(self, place: SavePlace, shape: Shape, settings: SaverSettings, number: int) -> None:
        memory = buffers(settings.block_bytes, _writers(shape, settings))
        with place.loading(number) as save:
            _drop_cached(save, shape)
            _Ranks(shape, settings).go(
                memory, partial(_read_rank, save, Content(settings.seed, number))
            )


def _writers(shape: Shape, settings: SaverSettings) -> int:
    return min(settings.threads or shape.ranks, shape.ranks)


class _Ranks:
    """Every rank's part done once, by so many threads at a time as there are tools (what a thread
    works with)."""

    def __init__(self, shape: Shape, settings: SaverSettings) -> None:
        self.crew, self._shape = Crew(settings.control), shape
        self._left = list(reversed(range(shape.ranks)))
        self._ends: list[tuple[int, int]] = []

    def go(
        self,
        tools: Sequence[_Tool],
        part: Callable[[Crew, Sequence[FileShape], _Tool], None],
        hurry: Callable[[], None] | None = None,
    ) -> None:
        self.crew.run([partial(self._thread, part, tool) for tool in tools], hurry)

    def _thread(
        self, part: Callable[[Crew, Sequence[FileShape], _Tool], None], tool: _Tool
    ) -> None:
        while not self.crew.stopped:
            try:
                rank = self._left.pop()
            except IndexError:
                return
            files = self._shape.of_rank(rank)
            part(self.crew, files, tool)
            if files:
                self._ends.append((rank, now_ns()))

    def io(
        self, begin_ns: int, durable_ns: int | None = None, marks: tuple[tuple[str, int], ...] = ()
    ) -> Io:
        return notes_of(self.crew, self._shape, self._ends, begin_ns, durable_ns, marks)


class _CutFiles:
    """Those open for writing."""

    def __init__(self) -> None:
        self._fds: set[int] = set()
        self._lock = threading.Lock()

    def add(self, fd: int) -> int:
        with self._lock:
            self._fds.add(fd)
        return fd

    def close(self, fd: int) -> None:
        with self._lock:
            self._fds.discard(fd)
            os.close(fd)

    def cut(self) -> None:
        """When it has to end early: an fsync would go on until all that is dirty is written, unless
        there is nothing left to write."""
        with self._lock:
            for fd in self._fds:
                try:
                    os.ftruncate(fd, 0)
                except OSError:
                    continue  # the fsync then takes as long as it takes


class _Ahead:
    """Content in stretches of blocks, one of them made ahead by a thread of its own: the writer
    should wait for the storage alone."""

    def __init__(self, content: Content, block_bytes: int) -> None:
        self._content = content
        self._two = buffers(block_bytes * max(_STRETCH_BYTES // block_bytes, 1), 2)
        self._thread = ThreadPoolExecutor(1, "ckptcost-content")
        self.close = self._thread.shutdown

    def parts(self, files: Sequence[FileShape]) -> Iterator[tuple[FileShape, Bytes]]:
        """All of the files in order, the first part with the file's first byte; an empty file is
        one part of nothing. A part holds until the next is asked for."""
        length, made = len(self._two[0]), None
        spots = ((file, at) for file in files for at in range(0, max(file.size_bytes, 1), length))
        for turn, (file, at) in enumerate(spots):
            coming = self._thread.submit(self._fill, self._two[turn % 2], file, at)
            if made:
                yield made.result()
            made = coming
        if made:
            yield made.result()

    def _fill(self, whole: Bytes, file: FileShape, at: int) -> tuple[FileShape, Bytes]:
        left = file.size_bytes - at
        self._content.fill(whole[: pad(left)], file.name, at)
        return file, whole[:left]


def _write_rank(
    save: SaveFolder,
    opened: _CutFiles,
    block_bytes: int,
    crew: Crew,
    files: Sequence[FileShape],
    ahead: _Ahead,
) -> None:
    tally, syncs, last_ns, fds = Tally(), [], 0, dict[str, int]()
    try:
        for file, part in ahead.parts(files):
            with naming(file.name):
                if file.name not in fds:
                    fds[file.name] = opened.add(save.create(file.name, os.O_RDWR))
                    last_ns = now_ns()
                for at in range(0, len(part), block_bytes):
                    if crew.stopped:
                        return
                    last_ns = _write(fds[file.name], part[at : at + block_bytes], tally)
                    crew.moved(min(block_bytes, len(part) - at))
        for name, fd in fds.items():
            if crew.stopped:
                return
            with naming(name):
                start_ns = now_ns()
                os.fsync(fd)
                syncs.append((start_ns, now_ns()))
    finally:
        for fd in fds.values():
            opened.close(fd)
    crew.report(tally, last_ns, syncs)


def _write(fd: int, part: Bytes, tally: Tally) -> int:
    at = 0
    while True:
        start_ns = now_ns()
        at += os.write(fd, part[at:].data)
        end_ns = now_ns()
        tally.add((end_ns - start_ns) * 1e-9)
        if at >= len(part):
            return end_ns


def _read_rank(
    save: SaveFolder, content: Content | None, crew: Crew, files: Sequence[FileShape], buffer: Bytes
) -> None:
    """With a content, compare."""
    tally, last_ns = Tally(), 0
    for file in files:
        with naming(file.name):
            fd = save.open(file.name)
            try:
                length = os.fstat(fd).st_size
                if length != file.size_bytes:
                    raise wrong_length(file.name, file.size_bytes, length, save.shown)
                at, last_ns = 0, now_ns()
                while at < file.size_bytes and not crew.stopped:
                    part = buffer[: file.size_bytes - at]
                    start_ns = now_ns()
                    count = os.readv(fd, [part.data])
                    last_ns = now_ns()
                    tally.add((last_ns - start_ns) * 1e-9)
                    if not count:
                        raise damage_error(file.name, at, "the file ends there", save.shown)
                    if content:
                        content.check(part[:count], file.name, at, where=save.shown)
                    at += count
                    crew.moved(count)
            finally:
                os.close(fd)
    crew.report(tally, last_ns)


def _drop_cached(save: SaveFolder, shape: Shape) -> int | None:
    """Drop all from the page cache; what is there still."""
    cached: int | None = 0
    for file in shape.files:
        with naming(file.name):
            fd = save.open(file.name, os.O_RDWR)
            try:
                drop(fd)
                left = cached_bytes(fd)
            finally:
                os.close(fd)
        cached = None if left is None or cached is None else cached + left
    return cached


def _notes(cached: int | None, shape: Shape) -> tuple[str, ...]:
    if cached is None:
        return (
            (
                "it cannot be told here whether the page cache still held the files when they were"
                " read"
            ),
        )
    if cached > _WORTH_SAYING * shape.size_bytes:
        return (
            (
                f"{cached / shape.size_bytes:.0%} of the bytes were still in the page cache when"
                " they were read"
            ),
        )
    return ()
