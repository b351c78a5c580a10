"""Engines with a library that writes one file in one call: each rank is a thread, which writes its
files one after the other.

The library hands the bytes to the page cache and returns; the fsync of each file comes after all
have returned, as a training job that cares would do it.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from time import monotonic_ns
from typing import ClassVar

from ckptcost.savers.base import FileShape, Io, Saver, Settings, Shape
from ckptcost.savers.content import Content
from ckptcost.savers.crew import Crew, covered_ns
from ckptcost.savers.latencies import NONE
from ckptcost.savers.page_cache import cached_bytes, drop
from ckptcost.savers.place import Place, Save
from ckptcost.savers.torch_refusals import refusal
from ckptcost.savers.torch_state import State, Tensor, check, fits, library

NAN = float("nan")


class OneCallSaver(Saver):
    call: ClassVar[str]
    """as it is known to who reads about it"""
    note: ClassVar[str]

    def __init__(self) -> None:
        library("torch")
        self._state = State()

    @abstractmethod
    def _write(self, tensors: dict[str, Tensor], path: str) -> None: ...

    @abstractmethod
    def _read(self, path: str) -> dict[str, Tensor]:
        """All of it in memory, or as far as the library goes by itself."""

    def _fetch(self, found: dict[str, Tensor], into: dict[str, Tensor]) -> None:
        """The rest of a load, where `_read` has not read everything."""

    @property
    @abstractmethod
    def _refusals(self) -> tuple[type[Exception], ...]:
        """What the library raises where a storage refuses."""

    def save(self, place: Place, shape: Shape, settings: Settings, number: int) -> Io:
        self._state.fill(shape, settings, number)
        with place.saving(number, shape.size_bytes) as save:
            written, synced, syncs = [0] * shape.ranks, [0] * shape.ranks, list[tuple[int, int]]()

            def write(file: FileShape) -> None:
                self._told(
                    save,
                    self.call,
                    lambda path: self._write(self._state.tensors[file.name], path),
                    file,
                    file.size_bytes,
                )
                written[file.rank] = monotonic_ns()
                _moved(settings, file)

            def sync(file: FileShape) -> None:
                fd, begin = save.open(file.name), monotonic_ns()
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)
                synced[file.rank] = monotonic_ns()
                syncs.append((begin, synced[file.rank]))

            begin_ns = monotonic_ns()
            _by_ranks(shape, settings, write, partial(cut_short, save))
            returned_ns = monotonic_ns()
            _by_ranks(shape, settings, sync, partial(cut_short, save))
            synced_ns = monotonic_ns()
            save.commit()
            durable_ns = monotonic_ns()
            syncs.append((synced_ns, durable_ns))
            sizes = sizes_of(save)
        marks = (("written", returned_ns), ("synced", synced_ns), ("committed", durable_ns))
        by_rank_s = tuple(
            (max(ends) - begin_ns) * 1e-9 if any(ends) else NAN
            for ends in zip(written, synced, strict=True)
        )
        fsync_s, notes = covered_ns(syncs) * 1e-9, (self.note,)
        return Io(
            begin_ns,
            returned_ns,
            durable_ns,
            sum(sizes),
            len(sizes),
            fsync_s,
            NONE,
            NAN,
            marks,
            by_rank_s,
            None,
            notes,
        )

    def load(self, place: Place, shape: Shape, settings: Settings, number: int) -> Io:
        self._state.make(shape)
        with place.loading(number) as save:
            sizes, cached, ended = sizes_of(save), forget(save), [0] * shape.ranks

            def read(file: FileShape) -> None:
                found: dict[str, Tensor] = {}
                self._told(save, "loading", lambda path: found.update(self._read(path)), file)
                fits(found, file, save.shown)
                self._fetch(found, self._state.tensors[file.name])
                ended[file.rank] = monotonic_ns()
                _moved(settings, file)

            begin_ns = monotonic_ns()
            _by_ranks(shape, settings, read)
            returned_ns = monotonic_ns()
        by_rank_s = tuple((end - begin_ns) * 1e-9 if end else NAN for end in ended)
        return Io(
            begin_ns,
            returned_ns,
            None,
            sum(sizes),
            len(sizes),
            0.0,
            NONE,
            NAN,
            (),
            by_rank_s,
            cached,
        )

    def verify(self, place: Place, shape: Shape, settings: Settings, number: int) -> None:
        content = Content(settings.seed, number)
        with place.loading(number) as save:
            forget(save)
            for file in shape.files:
                found: dict[str, Tensor] = {}
                self._told(
                    save,
                    "reading back",
                    lambda path, found=found: found.update(self._read(path)),  # type: ignore[misc]
                    file,
                )
                check(found, file, content, save.shown)
                _moved(settings, file)

    def _told(
        self,
        save: Save,
        doing: str,
        act: Callable[[str], None],
        file: FileShape,
        size_bytes: int | None = None,
    ) -> None:
        """`act` on the path of the file, with the library's error in our words."""
        try:
            act(f"{save.path}/{file.name}")
        except self._refusals as error:
            raise refusal(error, save, f"{doing} of {file.name}", size_bytes) from error


def _moved(settings: Settings, file: FileShape) -> None:
    """One file more, which is as often as a library that writes one in one call can be asked to
    stop."""
    if settings.control is not None:
        settings.control.check()
        settings.control.moved(file.size_bytes)


def _by_ranks(
    shape: Shape,
    settings: Settings,
    act: Callable[[FileShape], None],
    hurry: Callable[[], None] | None = None,
) -> None:
    """Once for each file, in a thread for each rank or in as many as `threads` says."""
    crew, count = Crew(settings.control), min(settings.threads or shape.ranks, shape.ranks)

    def task(first: int) -> None:
        for rank in range(first, shape.ranks, count):
            for file in shape.of_rank(rank):
                if crew.stopped:
                    return
                act(file)

    crew.run([partial(task, first) for first in range(count)], hurry)


def cut_short(save: Save) -> None:
    """When it has to end early: an fsync would go on until all that is dirty is written, unless
    there is nothing left to write."""
    for name in os.listdir(save.fd):
        try:
            fd = save.open(name, os.O_WRONLY)
            try:
                os.ftruncate(fd, 0)
            finally:
                os.close(fd)
        except OSError:
            continue  # renamed meanwhile, or it cannot be: the fsync then takes as long as it takes


def sizes_of(save: Save) -> list[int]:
    """Of all files that are there, whatever names the library gave them."""
    return [
        os.stat(name, dir_fd=save.fd, follow_symlinks=False).st_size for name in os.listdir(save.fd)
    ]


def forget(save: Save) -> int | None:
    """Ask the page cache to let go of every file. How much of them it holds still."""
    total: int | None = 0
    for name in os.listdir(save.fd):
        fd = save.open(name)
        try:
            drop(fd)
            cached = cached_bytes(fd)
            total = None if total is None or cached is None else total + cached
        finally:
            os.close(fd)
    return total
