"""PyTorch's ways to write a checkpoint: torch.save and safetensors file by file, and distributed
checkpointing (DCP). One engine; a library says how it writes, reads and refuses."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic_ns
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ckptcost.first.savers.base import NONE, FileShape, Io, Saver, SaverSettings, Shape
from ckptcost.first.savers.content import Content
from ckptcost.first.savers.crew import Crew, covered_ns
from ckptcost.first.savers.page_cache import cached_bytes, drop
from ckptcost.first.savers.place import SaveFolder, SavePlace
from ckptcost.first.savers.torch_state import (
    Streams,
    Tensor,
    TensorState,
    bytes_of,
    check,
    check_shape,
    library,
    refusal,
)

NAN = float("nan")


class WriteTimes(NamedTuple):
    """What a library's save was, as far as the page cache."""

    begin_ns: int
    returned_ns: int
    """training would go on"""
    written_ns: int
    ended_ns: list[int]
    """of each rank; 0 where it wrote nothing"""
    marks: tuple[tuple[str, int], ...] = ()


class TorchSaver(Saver):
    """What is the same with every library: memory is filled before, files are synced and committed
    after, its errors come out in our words."""

    notes: ClassVar[tuple[str, ...]]
    load_notes: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        library("torch")
        self._state = TensorState()

    @abstractmethod
    def _write(self, save: SaveFolder, shape: Shape, settings: SaverSettings) -> WriteTimes: ...

    @abstractmethod
    def _sync(
        self, save: SaveFolder, shape: Shape, settings: SaverSettings, ended_ns: list[int]
    ) -> list[tuple[int, int]]:
        """Begin and end of each fsync."""

    @abstractmethod
    def _read(self, save: SaveFolder, shape: Shape, settings: SaverSettings) -> list[int]:
        """Into the state; when each rank was done, where that is known."""

    @abstractmethod
    def _read_back(
        self, save: SaveFolder, shape: Shape, settings: SaverSettings
    ) -> Iterator[tuple[FileShape, dict[str, Tensor]]]:
        """The tensors of each file, as they are on the storage."""

    @property
    @abstractmethod
    def _refusals(self) -> tuple[type[BaseException], ...]:
        """What the library raises where a storage refuses."""

    def save(self, place: SavePlace, shape: Shape, settings: SaverSettings, number: int) -> Io:
        self._state.fill(shape, settings, number)
        with place.saving(number, shape.size_bytes) as save:
            done = self._write(save, shape, settings)
            syncs = self._sync(save, shape, settings, done.ended_ns)
            synced_ns = monotonic_ns()
            save.commit()
            durable_ns = monotonic_ns()
            sizes = sizes_of(save)
        return Io(
            done.begin_ns,
            done.returned_ns,
            durable_ns,
            sum(sizes),
            len(sizes),
            covered_ns([*syncs, (synced_ns, durable_ns)]) * 1e-9,
            NONE,
            NAN,
            (
                *done.marks,
                ("written", done.written_ns),
                ("synced", synced_ns),
                ("committed", durable_ns),
            ),
            durations_s(done.ended_ns, done.begin_ns),
            None,
            self.notes,
        )

    def load(self, place: SavePlace, shape: Shape, settings: SaverSettings, number: int) -> Io:
        self._state.make(shape)
        with place.loading(number) as save:
            sizes, cached = sizes_of(save), forget(save)
            begin_ns = monotonic_ns()
            ended_ns = self._read(save, shape, settings)
            returned_ns = monotonic_ns()
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
            durations_s(ended_ns, begin_ns),
            cached,
            self.load_notes,
        )

    def verify(self, place: SavePlace, shape: Shape, settings: SaverSettings, number: int) -> None:
        content = Content(settings.seed, number)
        with place.loading(number) as save:
            forget(save)
            for file, tensors in self._read_back(save, shape, settings):
                check(tensors, file, content, save.shown)

    @contextmanager
    def _translate_errors(
        self, save: SaveFolder, doing: str, settings: SaverSettings, size_bytes: int | None = None
    ) -> Iterator[None]:
        """The library's errors; one that was stopped raises errors of its own."""
        try:
            yield
        except self._refusals as error:
            raise_if_stopped(settings)
            raise refusal(error, save, doing, size_bytes) from error
        except OSError:
            raise_if_stopped(settings)
            raise


class OneCallSaver(TorchSaver):
    """A library that writes one file in one call: each rank is a thread, which writes its files one
    after the other.

    The library hands the bytes to the page cache and returns; the fsync of each file comes after
    all have returned, as a training job that cares would do it.
    """

    call: ClassVar[str]
    """as it is known to who reads about it"""

    @abstractmethod
    def _write_file(self, tensors: dict[str, Tensor], path: str) -> None: ...

    @abstractmethod
    def _read_file(self, path: str) -> dict[str, Tensor]:
        """All of it in memory, or as far as the library goes by itself."""

    def _fetch(self, found: dict[str, Tensor], into: dict[str, Tensor]) -> None:
        """The rest of a load, where `_read_file` has not read everything."""

    def _write(self, save: SaveFolder, shape: Shape, settings: SaverSettings) -> WriteTimes:
        ended_ns = [0] * shape.ranks

        def write(file: FileShape) -> None:
            doing = f"{self.call} of {file.name}"
            with self._translate_errors(save, doing, settings, file.size_bytes):
                self._write_file(self._state.tensors[file.name], f"{save.path}/{file.name}")
            ended_ns[file.rank] = monotonic_ns()
            count_moved(settings, file)

        begin_ns = monotonic_ns()
        by_ranks(shape, settings, write, partial(cut_short, save))
        returned_ns = monotonic_ns()
        return WriteTimes(begin_ns, returned_ns, returned_ns, ended_ns)

    def _sync(
        self, save: SaveFolder, shape: Shape, settings: SaverSettings, ended_ns: list[int]
    ) -> list[tuple[int, int]]:
        syncs: list[tuple[int, int]] = []

        def sync(file: FileShape) -> None:
            fd, begin_ns = save.open(file.name), monotonic_ns()
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
            ended_ns[file.rank] = monotonic_ns()
            syncs.append((begin_ns, ended_ns[file.rank]))

        by_ranks(shape, settings, sync, partial(cut_short, save))
        return syncs

    def _file(
        self, save: SaveFolder, file: FileShape, doing: str, settings: SaverSettings
    ) -> dict[str, Tensor]:
        with self._translate_errors(save, f"{doing} of {file.name}", settings):
            return self._read_file(f"{save.path}/{file.name}")

    def _read(self, save: SaveFolder, shape: Shape, settings: SaverSettings) -> list[int]:
        ended_ns = [0] * shape.ranks

        def read(file: FileShape) -> None:
            found = self._file(save, file, "loading", settings)
            check_shape(found, file, save.shown)
            self._fetch(found, self._state.tensors[file.name])
            ended_ns[file.rank] = monotonic_ns()
            count_moved(settings, file)

        by_ranks(shape, settings, read)
        return ended_ns

    def _read_back(
        self, save: SaveFolder, shape: Shape, settings: SaverSettings
    ) -> Iterator[tuple[FileShape, dict[str, Tensor]]]:
        for file in shape.files:
            yield file, self._file(save, file, "reading back", settings)
            count_moved(settings, file)


class TorchSave(OneCallSaver):
    """torch.save of each file: what most training scripts do. A zip archive with a record for each
    tensor and a CRC32 of each, which takes a good part of the time on fast storage."""

    name = "torch_save"
    call = "torch.save"
    notes = (
        (
            "torch.save does not sync: training would go on at `returned`, and this program syncs"
            " each file afterwards"
        ),
    )

    def _write_file(self, tensors: dict[str, Tensor], path: str) -> None:
        library("torch").save(tensors, path)

    def _read_file(self, path: str) -> dict[str, Tensor]:
        found: dict[str, Tensor] = library("torch").load(path, weights_only=True)
        return found

    @property
    def _refusals(self) -> tuple[type[BaseException], ...]:
        from pickle import UnpicklingError

        return (RuntimeError, EOFError, UnpicklingError)


class Safetensors(OneCallSaver):
    """safetensors: each file is a header and the tensors behind each other. Loading maps the file
    and reads nothing yet, so a load here includes the copy of every tensor to where training has
    it."""

    name = "safetensors"
    call = "safetensors.torch.save_file"
    notes = (
        (
            "save_file writes to a temporary name, renames it and does not sync: this program syncs"
            " each file afterwards"
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        library("safetensors.torch")

    def _write_file(self, tensors: dict[str, Tensor], path: str) -> None:
        library("safetensors.torch").save_file(tensors, path)

    def _read_file(self, path: str) -> dict[str, Tensor]:
        found: dict[str, Tensor] = library("safetensors.torch").load_file(path)
        return found

    def _fetch(self, found: dict[str, Tensor], into: dict[str, Tensor]) -> None:
        for key, tensor in into.items():
            np.copyto(bytes_of(tensor), bytes_of(found[key]))

    @property
    def _refusals(self) -> tuple[type[BaseException], ...]:
        error: type[Exception] = library("safetensors").SafetensorError
        return (error, RuntimeError, FileNotFoundError)  # the last without errno


_DCP = "torch.distributed.checkpoint"
_ALONE = "torch.distributed is (disabled|unavailable)"
"""a warning; one process is what is meant, and not every version takes `no_dist` in every call"""


class TorchDcp(TorchSaver):
    """PyTorch's distributed checkpointing in one process, by dcp.save: each rank is a writer thread
    with a file, an index comes last, and training waits until the data is on the storage.

    DCP syncs its data files. It asks for the sync of the index before the index leaves Python's
    buffer (seen in 2.13), and syncs no directory, so both are done here before a save counts as
    durable.
    """

    name: ClassVar[str] = "torch_dcp"
    notes: ClassVar[tuple[str, ...]] = (
        (
            "DCP syncs its data files itself, so `returned` includes that; fsync_s is only what"
            " this program syncs after it"
        ),
        (
            "ranks are threads of one process; between processes DCP also exchanges its plan, which"
            " is not measured here"
        ),
    )
    load_notes = ("dcp.load reads with one thread",)

    def __init__(self) -> None:
        super().__init__()
        self._dcp = library(_DCP)
        self._filesystem = library(f"{_DCP}.filesystem").FileSystem
        self._refused: type[BaseException] = library(f"{_DCP}.api").CheckpointException

    @property
    def _refusals(self) -> tuple[type[BaseException], ...]:
        """DCP wraps whatever happens in an exception that is no Exception."""
        return (self._refused, RuntimeError, EOFError)

    def _write(self, save: SaveFolder, shape: Shape, settings: SaverSettings) -> WriteTimes:
        tensors, streams = self._flat(), Streams(settings.control)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", _ALONE)
            begin_ns = monotonic_ns()
            try:
                with self._translate_errors(save, "dcp.save", settings, 0):
                    writer = self._dcp.FileSystemWriter(
                        save.path, thread_count=settings.threads or shape.ranks
                    )
                    writer.fs = self._watch(streams)
                    metadata, returned_ns, marks = self._call(tensors, writer)
            except BaseException:
                cut_short(save)
                raise
            finally:
                streams.close()
        raise_if_stopped(settings)
        if streams.problems:
            raise refusal(streams.problems[0], save, "dcp.save", 0) from streams.problems[0]
        if len(metadata.storage_data) < len(tensors):
            # a writer thread that ends with an error is no error for DCP
            lacks = RuntimeError("a writer thread failed, and the checkpoint lacks its tensors")
            raise refusal(lacks, save, "dcp.save", 0)
        ended_ns = [t for name, t in sorted(streams.ended.items()) if name.endswith(".distcp")]
        return WriteTimes(begin_ns, returned_ns, monotonic_ns(), ended_ns, marks)

    def _call(
        self, tensors: dict[str, Tensor], writer: Any
    ) -> tuple[Any, int, tuple[tuple[str, int], ...]]:
        """What was written, when training would go on, and further instants."""
        metadata = self._dcp.save(tensors, storage_writer=writer)
        return metadata, monotonic_ns(), ()

    def _sync(
        self, save: SaveFolder, shape: Shape, settings: SaverSettings, ended_ns: list[int]
    ) -> list[tuple[int, int]]:
        begin_ns = monotonic_ns()
        save.sync_files()
        return [(begin_ns, monotonic_ns())]

    def _read(self, save: SaveFolder, shape: Shape, settings: SaverSettings) -> list[int]:
        self._load(save, "dcp.load", settings)
        return []

    def _read_back(
        self, save: SaveFolder, shape: Shape, settings: SaverSettings
    ) -> Iterator[tuple[FileShape, dict[str, Tensor]]]:
        self._state.blank(shape)
        self._load(save, "reading back", settings)
        for file in shape.files:
            yield file, self._state.tensors[file.name]

    def _load(self, save: SaveFolder, doing: str, settings: SaverSettings) -> None:
        reader = self._dcp.FileSystemReader(save.path)
        if settings.control is not None:
            reader.fs = self._watch(Streams(settings.control))
        with warnings.catch_warnings(), self._translate_errors(save, doing, settings):
            warnings.filterwarnings("ignore", _ALONE)
            self._dcp.load(self._flat(), storage_reader=reader)

    def _flat(self) -> dict[str, Tensor]:
        return {
            f"{name}/{key}": tensor
            for name, tensors in self._state.tensors.items()
            for key, tensor in tensors.items()
        }

    def _watch(self, streams: Streams) -> Any:
        class Watched(self._filesystem):  # type: ignore[misc, name-defined]
            def create_stream(self, path: Any, mode: str) -> Any:
                file = super().create_stream(path, mode)
                return streams.reading(file) if mode == "rb" else streams.one(path.name, file)

        return Watched()


class TorchDcpAsync(TorchDcp):
    """dcp.async_save: training waits for a copy in memory, and a thread writes it. One process
    needs no process group for that."""

    name = "torch_dcp_async"
    notes = (
        *TorchDcp.notes,
        (
            "nothing trains while the thread writes; in a job both want the processor, the memory"
            " and the interpreter"
        ),
    )

    def _call(
        self, tensors: dict[str, Tensor], writer: Any
    ) -> tuple[Any, int, tuple[tuple[str, int], ...]]:
        staging = library(f"{_DCP}.staging")
        more = {}
        if hasattr(staging, "DefaultStager"):
            # as without a writer of one's own; FileSystemWriter copies at a third of the speed
            more["async_stager"] = staging.DefaultStager(
                staging.StagingOptions(False, False, False, False)
            )
        try:
            done = self._dcp.async_save(tensors, storage_writer=writer, **more)
            returned_ns = monotonic_ns()
            return done.result(), returned_ns, (("snapshotted", returned_ns),)
        finally:
            for stager in more.values():
                stager.close()


def durations_s(ended_ns: list[int], begin_ns: int) -> tuple[float, ...]:
    """How long each rank took; NaN for one that had nothing to do."""
    return tuple((end - begin_ns) * 1e-9 if end else NAN for end in ended_ns)


def raise_if_stopped(settings: SaverSettings) -> None:
    if settings.control is not None:
        settings.control.check()


def count_moved(settings: SaverSettings, file: FileShape) -> None:
    """One file more, which is as often as a library that writes one in one call can be asked to
    stop."""
    if settings.control is not None:
        settings.control.check()
        settings.control.moved(file.size_bytes)


def by_ranks(
    shape: Shape,
    settings: SaverSettings,
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


def cut_short(save: SaveFolder) -> None:
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


def sizes_of(save: SaveFolder) -> list[int]:
    """Of all files that are there, whatever names the library gave them."""
    return [
        os.stat(name, dir_fd=save.fd, follow_symlinks=False).st_size for name in os.listdir(save.fd)
    ]


def forget(save: SaveFolder) -> int | None:
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
