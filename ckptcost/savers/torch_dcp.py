"""PyTorch's distributed checkpointing (DCP), in one process: each rank is a writer thread with a
file, and an index comes last.

DCP syncs its data files. It asks for the sync of the index before the index leaves Python's buffer
(seen in 2.13), and syncs no directory, so both are done here before a save counts as durable.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic_ns
from typing import Any, ClassVar

from ckptcost.savers.base import Io, Saver, Settings, Shape
from ckptcost.savers.content import Content
from ckptcost.savers.latencies import NONE
from ckptcost.savers.place import Place, Save
from ckptcost.savers.torch_files import NAN, cut_short, forget, sizes_of
from ckptcost.savers.torch_refusals import refusal
from ckptcost.savers.torch_state import State, Tensor, check, library
from ckptcost.savers.torch_streams import Streams

_DCP = "torch.distributed.checkpoint"
_ALONE = "torch.distributed is (disabled|unavailable)"
"""a warning; one process is what is meant, and not every version takes `no_dist` in every call"""
_NOTES = (
    (
        "DCP syncs its data files itself, so `returned` includes that; fsync_s is only what this"
        " program syncs after it"
    ),
    (
        "ranks are threads of one process; between processes DCP also exchanges its plan, which is"
        " not measured here"
    ),
)


class TorchDcp(Saver):
    """dcp.save: training waits until the data is on the storage."""

    name: ClassVar[str] = "torch_dcp"
    _notes: ClassVar[tuple[str, ...]] = _NOTES

    def __init__(self) -> None:
        self._dcp = library(_DCP)
        self._filesystem = library(f"{_DCP}.filesystem").FileSystem
        self._refused: type[BaseException] = library(f"{_DCP}.api").CheckpointException
        self._state = State()

    def save(self, place: Place, shape: Shape, settings: Settings, number: int) -> Io:
        self._state.fill(shape, settings, number)
        tensors = self._flat()
        with place.saving(number, shape.size_bytes) as save, warnings.catch_warnings():
            warnings.filterwarnings("ignore", _ALONE)
            streams = Streams(settings.control)
            begin_ns = monotonic_ns()
            try:
                with self._told(save, "dcp.save", settings, 0):
                    metadata, returned_ns, marks = self._write(
                        tensors, self._writer(save, settings.threads or shape.ranks, streams)
                    )
            except BaseException:
                cut_short(save)
                raise
            finally:
                streams.close()
            _check(settings)
            if streams.problems:
                raise refusal(streams.problems[0], save, "dcp.save", 0) from streams.problems[0]
            if len(metadata.storage_data) < len(
                tensors
            ):  # a writer thread that ends with an error is no error for DCP
                raise refusal(
                    RuntimeError("a writer thread failed, and the checkpoint lacks its tensors"),
                    save,
                    "dcp.save",
                    0,
                )
            written_ns = monotonic_ns()
            save.sync_files()
            synced_ns = monotonic_ns()
            save.commit()
            durable_ns = monotonic_ns()
            sizes = sizes_of(save)
        marks += (("written", written_ns), ("synced", synced_ns), ("committed", durable_ns))
        by_rank_s = tuple(
            (ended - begin_ns) * 1e-9
            for name, ended in sorted(streams.ended.items())
            if name.endswith(".distcp")
        )
        fsync_s = (durable_ns - written_ns) * 1e-9
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
            self._notes,
        )

    def _write(
        self, tensors: dict[str, Tensor], writer: Any
    ) -> tuple[Any, int, tuple[tuple[str, int], ...]]:
        """What was written, when training would go on, and further instants."""
        metadata = self._dcp.save(tensors, storage_writer=writer)
        return metadata, monotonic_ns(), ()

    def load(self, place: Place, shape: Shape, settings: Settings, number: int) -> Io:
        self._state.make(shape)
        with place.loading(number) as save:
            sizes, cached = sizes_of(save), forget(save)
            begin_ns = monotonic_ns()
            self._read(save, "dcp.load", settings)
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
            (),
            cached,
            ("dcp.load reads with one thread",),
        )

    def verify(self, place: Place, shape: Shape, settings: Settings, number: int) -> None:
        content = Content(settings.seed, number)
        self._state.blank(shape)
        with place.loading(number) as save:
            forget(save)
            self._read(save, "reading back", settings)
            for file in shape.files:
                check(self._state.tensors[file.name], file, content, save.shown)

    def _read(self, save: Save, doing: str, settings: Settings) -> None:
        reader = self._dcp.FileSystemReader(save.path)
        if settings.control is not None:
            reader.fs = self._watched(Streams(settings.control))
        with warnings.catch_warnings(), self._told(save, doing, settings):
            warnings.filterwarnings("ignore", _ALONE)
            self._dcp.load(self._flat(), storage_reader=reader)

    def _flat(self) -> dict[str, Tensor]:
        return {
            f"{name}/{key}": tensor
            for name, tensors in self._state.tensors.items()
            for key, tensor in tensors.items()
        }

    def _writer(self, save: Save, threads: int, streams: Streams) -> Any:
        writer = self._dcp.FileSystemWriter(save.path, thread_count=threads)
        writer.fs = self._watched(streams)
        return writer

    def _watched(self, streams: Streams) -> Any:
        class Watched(self._filesystem):  # type: ignore[misc, name-defined]
            def create_stream(self, path: Any, mode: str) -> Any:
                file = super().create_stream(path, mode)
                return streams.reading(file) if mode == "rb" else streams.one(path.name, file)

        return Watched()

    @contextmanager
    def _told(
        self, save: Save, doing: str, settings: Settings, size_bytes: int | None = None
    ) -> Iterator[None]:
        """DCP's errors in our words; it wraps whatever happens in an exception that is no
        Exception."""
        try:
            yield
        except OSError:
            _check(settings)
            raise
        except (self._refused, RuntimeError, EOFError) as error:
            _check(settings)
            raise refusal(error, save, doing, size_bytes) from error


def _check(settings: Settings) -> None:
    """A library that was stopped raises errors of its own."""
    if settings.control is not None:
        settings.control.check()


class TorchDcpAsync(TorchDcp):
    """dcp.async_save: training waits for a copy in memory, and a thread writes it. One process
    needs no process group for that."""

    name = "torch_dcp_async"
    _notes = (
        *_NOTES,
        (
            "nothing trains while the thread writes; in a job both want the processor, the memory"
            " and the interpreter"
        ),
    )

    def _write(
        self, tensors: dict[str, Tensor], writer: Any
    ) -> tuple[Any, int, tuple[tuple[str, int], ...]]:
        staging = library(f"{_DCP}.staging")
        more = {}
        if hasattr(
            staging, "DefaultStager"
        ):  # as without a writer of one's own; FileSystemWriter copies at a third of the speed
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
