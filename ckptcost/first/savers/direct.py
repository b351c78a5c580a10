"""Past the page cache: O_DIRECT with many requests in flight, as FastPersist writes and as storage
is benchmarked.

`depth` threads are each in one pwrite or preadv, without the interpreter's lock; one thread more
fills the next block meanwhile. A request costs some 10 us of Python, so blocks of megabytes cost
nothing to speak of. The end of a file that fills no page is written with padding, and the file cut
to its length. Each file gets its fsync when its last block is written, while others are still being
written.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from ckptcost.first.errors import InputError
from ckptcost.first.savers.base import FileShape, Io, Saver, SaverSettings, Shape
from ckptcost.first.savers.blocks import Blocks, buffers
from ckptcost.first.savers.content import Bytes, Content, damage_error, wrong_length
from ckptcost.first.savers.crew import Span, now_ns
from ckptcost.first.savers.dealer import DealtFile
from ckptcost.first.savers.page_cache import cached_bytes, pad, reserve
from ckptcost.first.savers.place import SaveFolder, SavePlace

_SPARE = 1
"""threads that fill a block while `depth` are in flight"""
_MOST_CACHED = 0.05
"""of the bytes; direct I/O leaves none"""
BUFFERED = (
    "direct I/O was accepted here, but the data is in the page cache: these are the figures of"
    " buffered I/O"
)


class Direct(Saver):
    name: ClassVar[str] = "direct"

    def save(self, place: SavePlace, shape: Shape, settings: SaverSettings, number: int) -> Io:
        memory = buffers(settings.block_bytes, settings.depth + _SPARE)
        content = Content(settings.seed, number)
        with place.saving(number, shape.size_bytes) as save:
            begin_ns = now_ns()
            write = _Write(save, shape, settings, content)
            with _refusals(place):
                write.go(memory)
            synced_ns = now_ns()
            save.commit()
            durable_ns = now_ns()
            write.synced((synced_ns, durable_ns))
            notes = _notes(save, shape)
        return write.io(
            begin_ns,
            durable_ns,
            (("written", write.moved_ns), ("synced", synced_ns), ("committed", durable_ns)),
            notes,
        )

    def load(self, place: SavePlace, shape: Shape, settings: SaverSettings, number: int) -> Io:
        memory = buffers(settings.block_bytes, settings.depth)
        with place.loading(number) as save:
            begin_ns = now_ns()
            read = _Read(save, shape, settings)
            with _refusals(place):
                read.go(memory)
            notes = _notes(save, shape)
        return read.io(begin_ns, notes=notes)

    def verify(self, place: SavePlace, shape: Shape, settings: SaverSettings, number: int) -> None:
        with place.loading(number) as save, _refusals(place):
            _Compare(save, shape, settings, Content(settings.seed, number)).go(
                buffers(settings.block_bytes, settings.depth)
            )


class _Write(Blocks):
    def __init__(
        self, save: SaveFolder, shape: Shape, settings: SaverSettings, content: Content
    ) -> None:
        super().__init__(save, shape, settings)
        self._content = content

    def open(self, file: FileShape) -> int:
        fd = self.save.create(file.name, os.O_RDWR | os.O_DIRECT)
        if self.settings.preallocate and file.size_bytes:
            try:
                reserve(fd, pad(file.size_bytes))
            except OSError:
                os.close(fd)
                raise
        return fd

    def before(self, file: DealtFile, offset: int, buffer: Bytes) -> None:
        self._content.fill(buffer, file.shape.name, offset)

    def move(self, file: DealtFile, offset: int, buffer: Bytes) -> int:
        at = os.pwrite(file.fd, buffer.data, offset)
        while at < len(buffer):
            at += os.pwrite(file.fd, buffer[at:].data, offset + at)
        return at

    def last(self, file: DealtFile) -> Span:
        size = file.shape.size_bytes
        if pad(size) != size:
            os.ftruncate(file.fd, size)
        start_ns = now_ns()
        os.fsync(file.fd)
        return start_ns, now_ns()


class _Read(Blocks):
    def open(self, file: FileShape) -> int:
        fd = self.save.open(file.name, os.O_RDONLY | os.O_DIRECT)
        size = os.fstat(fd).st_size
        if size != file.size_bytes:
            os.close(fd)
            raise wrong_length(file.name, file.size_bytes, size, self.save.shown)
        return fd

    def move(self, file: DealtFile, offset: int, buffer: Bytes) -> int:
        want, at = min(len(buffer), file.shape.size_bytes - offset), 0
        while at < want:
            count = os.preadv(file.fd, [buffer[at:].data], offset + at)
            if not count:
                raise damage_error(
                    file.shape.name, offset + at, "the file ends there", self.save.shown
                )
            at += count
        return want


class _Compare(_Read):
    def __init__(
        self, save: SaveFolder, shape: Shape, settings: SaverSettings, content: Content
    ) -> None:
        super().__init__(save, shape, settings)
        self._content = content

    def after(self, file: DealtFile, offset: int, moved: Bytes) -> None:
        self._content.check(moved, file.shape.name, offset, where=self.save.shown)


@contextmanager
def _refusals(place: SavePlace) -> Iterator[None]:
    """EINVAL is how a file system says that it knows no direct I/O, when a file is opened or with
    the first request."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
        raise InputError(
            "the file system there refuses direct I/O (O_DIRECT)",
            where=place.shown,
            remedy="`--saver posix` writes through the page cache",
        ) from error


def _notes(save: SaveFolder, shape: Shape) -> tuple[str, ...]:
    """Some file systems take O_DIRECT and do not mean it."""
    cached = 0
    for file in shape.files:
        fd = save.open(file.name)
        try:
            cached += cached_bytes(fd) or 0
        finally:
            os.close(fd)
    return (BUFFERED,) if cached > _MOST_CACHED * shape.size_bytes else ()
