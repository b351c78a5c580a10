"""What the PyTorch engines share: a training state in tensors, shaped as a checkpoint; what a
storage refused, found in what the library raises, since PyTorch and safetensors keep errno to
themselves; and the files that writer threads have open.

Memory holds all of the state, as in training; some engines need it twice (a load, a copy to write
in the background).
"""

from __future__ import annotations

import errno
import importlib
import os
import re
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import monotonic_ns
from typing import Any, NamedTuple

import numpy as np

from ckptcost.first.errors import InputError, MeterUnavailable, OutputError
from ckptcost.first.savers.base import Control, FileShape, Kind, SaverSettings, Shape
from ckptcost.first.savers.content import Bytes, Content
from ckptcost.first.savers.place import SaveFolder

Tensor = Any
"""torch.Tensor; the library is optional"""
TENSOR_BYTES = 64 << 20
"""of one tensor at most: a layer's matrix of a large model"""
_DTYPES: dict[Kind, str] = {"weights": "bfloat16", "optimizer": "float32", "other": "uint8"}
REMEDY = "pip install 'ckptcost[torch]'"


def library(name: str) -> Any:
    """An optional module. Raises MeterUnavailable where it is missing, or does not load."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        missing = (
            isinstance(error, ModuleNotFoundError)
            and (error.name or "").partition(".")[0] == package
        )
        reason = f"{package} is not installed" if missing else f"{name} cannot be loaded: {error}"
    except OSError as error:  # a shared library of its own
        reason = f"{name} cannot be loaded: {error}"
    raise MeterUnavailable(reason, REMEDY)


class TensorPart(NamedTuple):
    """A tensor of a file: its key, and which bytes of the file's content it holds."""

    key: str
    offset: int
    size_bytes: int
    dtype: str


def parts_of(file: FileShape) -> Iterator[TensorPart]:
    """
    >>> [part[1:] for part in parts_of(FileShape("weights-00000", (64 << 20) + 5, 0, "weights"))]
    [(0, 67108864, 'bfloat16'), (67108864, 5, 'uint8')]
    """
    dtype = _DTYPES[file.kind]
    whole = file.size_bytes - file.size_bytes % 8
    for number, offset in enumerate(range(0, whole, TENSOR_BYTES)):
        yield TensorPart(f"{file.kind}.{number}", offset, min(TENSOR_BYTES, whole - offset), dtype)
    if whole < file.size_bytes:
        yield TensorPart(f"{file.kind}.rest", whole, file.size_bytes - whole, "uint8")


def bytes_of(tensor: Tensor) -> Bytes:
    """Its memory. Numbers would not do: among random ones are NaN, which equal nothing, and numpy
    has no bfloat16."""
    torch = library("torch")
    found: Bytes = tensor.reshape(-1).view(torch.uint8).numpy()
    return found


class TensorState:
    """The tensors of each file. The memory is taken once for a shape, and filled anew for each
    save, outside of what is timed."""

    def __init__(self) -> None:
        self._shape: Shape | None = None
        self._memory: dict[str, Bytes] = {}
        self.tensors: dict[str, dict[str, Tensor]] = {}
        """by file and key"""

    def fill(self, shape: Shape, settings: SaverSettings, number: int) -> None:
        self.make(shape)
        content = Content(settings.seed, number)
        for name, memory in self._memory.items():
            if settings.control is not None:
                settings.control.check()
            content.fill(memory, name, 0)

    def blank(self, shape: Shape) -> None:
        """Zeros, so that nothing passes for read that was not."""
        self.make(shape)
        for memory in self._memory.values():
            memory[:] = 0

    def make(self, shape: Shape) -> None:
        """Raises InputError where it does not fit in memory."""
        if shape == self._shape:
            return
        torch = library("torch")
        self._shape, self._memory, self.tensors = None, {}, {}
        _check_memory(2 * shape.size_bytes)
        for file in shape.files:
            memory = self._memory[file.name] = np.zeros(-(-file.size_bytes // 8) * 8, np.uint8)
            self.tensors[file.name] = {
                part.key: (
                    torch.from_numpy(memory[part.offset : part.offset + part.size_bytes]).view(
                        getattr(torch, part.dtype)
                    )
                )
                for part in parts_of(file)
            }
        self._shape = shape


def check_shape(tensors: dict[str, Tensor], file: FileShape, where: str) -> None:
    """Raises OutputError where a tensor is missing, or has another type or size."""
    for part in parts_of(file):
        tensor = tensors.get(part.key)
        if (
            tensor is None
            or str(tensor.dtype) != f"torch.{part.dtype}"
            or tensor.nbytes != part.size_bytes
        ):
            what = "is missing" if tensor is None else f"is {tensor.nbytes} bytes of {tensor.dtype}"
            raise OutputError(
                f"{where}: {file.name}: read back wrongly: tensor {part.key} at offset"
                f" {part.offset} {what}"
            )


def check(tensors: dict[str, Tensor], file: FileShape, content: Content, where: str) -> None:
    """As `check_shape`, and where one has another content."""
    check_shape(tensors, file, where)
    for part in parts_of(file):
        content.check(bytes_of(tensors[part.key]), file.name, part.offset, where=where)


def _check_memory(needed_bytes: int, meminfo: Path = Path("/proc/meminfo")) -> None:
    found = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.M)
    free_bytes = int(found[1]) * 1024 if found else needed_bytes
    if needed_bytes > free_bytes:
        raise InputError(
            f"a state and its copy, {needed_bytes / 1e9:.3g} GB, do not fit in memory, of which"
            f" {free_bytes / 1e9:.3g} GB are free",
            remedy="give a smaller size, or take direct or posix, which hold a few blocks only",
        )


_TRIAL_BYTES = 1 << 20


def refusal(
    error: BaseException, save: SaveFolder, doing: str, size_bytes: int | None = None
) -> OSError | OutputError | KeyboardInterrupt:
    """The error of the system behind it; where none is found and a write of so many bytes failed, a
    trial write, which ends a file of that size, asks the storage again; else the library's own
    words. Ctrl-C stays Ctrl-C, which the libraries wrap as an error of their own.
    """
    if interrupted(error):
        return KeyboardInterrupt()
    for behind in _chain(error):
        if (number := _error_number(behind)) is not None:
            return OSError(number, os.strerror(number))
    if size_bytes is not None:
        try:
            _try_to_write(save, size_bytes)
        except OSError as found:
            return OSError(found.errno, os.strerror(found.errno or 0))
    said_by = next((behind for behind in _chain(error) if not hasattr(behind, "failures")), error)
    words = str(said_by).strip().splitlines() or [type(said_by).__name__]
    return OutputError(f"{save.shown}: {doing} failed: {words[0]}")


def _error_number(error: BaseException) -> int | None:
    """Of the system's error, or of one that is told of in words as Rust does."""
    if isinstance(error, OSError):
        return error.errno or (errno.ENOENT if isinstance(error, FileNotFoundError) else errno.EIO)
    said = re.search(r"\(os error (\d+)\)", str(error))
    return int(said[1]) if said else None


def _try_to_write(save: SaveFolder, size_bytes: int) -> None:
    fd = save.create(f".trial-{threading.get_ident()}", os.O_WRONLY)
    try:
        at, left = max(size_bytes - _TRIAL_BYTES, 0), _TRIAL_BYTES
        while left:
            count = os.pwrite(fd, b"\1" * left, at)
            at, left = at + count, left - count
        os.fsync(fd)
    finally:
        os.close(fd)


def interrupted(error: BaseException) -> bool:
    """Whether Ctrl-C is behind it."""
    return any(isinstance(behind, KeyboardInterrupt) for behind in _chain(error))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """It, what it wraps (`failures` of a CheckpointException: by rank, with the stack), and what it
    came from."""
    waiting, seen = [error], set()
    while waiting:
        this = waiting.pop(0)
        if id(this) in seen:
            continue
        seen.add(id(this))
        yield this
        failures = getattr(this, "failures", None)
        inside = (
            [each[0] if isinstance(each, tuple) else each for each in failures.values()]
            if isinstance(failures, dict)
            else []
        )
        waiting += [
            found
            for found in (*inside, this.__cause__, this.__context__)
            if isinstance(found, BaseException)
        ]


class Streams:
    """The files that writer threads have open in one save or load: when each was complete, what
    went wrong, and that none is left.

    A thread of DCP's that fails ends with a traceback, and the save succeeds without its tensors;
    one that still writes when Ctrl-C has ended the save would write through a path that means
    nothing any more. So every file is opened through here.
    """

    def __init__(self, control: Control | None = None) -> None:
        self.control = control
        self.ended: dict[str, int] = {}
        """by name: when it was closed"""
        self.problems: list[Exception] = []
        self._idle = threading.Condition()
        self._open = 0
        self.closed = False

    @contextmanager
    def one(self, name: str, file: AbstractContextManager[Any]) -> Iterator[Any]:
        """An error while it is written is kept for who drives the save, and does not go on into the
        thread; Ctrl-C does, however it is wrapped."""
        with self._idle:
            if self.closed:
                raise SystemExit  # which ends a thread without a word
            self._open += 1
        given = False
        try:
            with file as stream:
                given = True
                yield _Stoppable(stream, self)
            self.ended[name] = monotonic_ns()
        except Exception as error:
            self.problems.append(error)
            if not given or interrupted(error):
                raise
        finally:
            with self._idle:
                self._open -= 1
                self._idle.notify_all()

    @contextmanager
    def reading(self, file: AbstractContextManager[Any]) -> Iterator[Any]:
        """One that is read, in the thread that asked for it."""
        with file as stream:
            yield _Stoppable(stream, self)

    def close(self) -> None:
        """No file is opened from now on, those that are open take no more, and then none is. Ctrl-C
        waits until then."""
        interrupt: KeyboardInterrupt | None = None
        while True:
            try:
                with self._idle:
                    self.closed = True
                    if self._idle.wait_for(lambda: not self._open, 1.0):
                        break
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


class _Stoppable:
    """A file that is written to or read as long as the save or load goes on."""

    def __init__(self, stream: Any, streams: Streams) -> None:
        self._stream, self._streams = stream, streams

    def write(self, data: Any) -> int:
        self._raise_if_stopped()
        count: int = self._stream.write(data)
        self._count(count)
        return count

    def readinto(self, buffer: Any) -> int:
        self._raise_if_stopped()
        count: int = self._stream.readinto(buffer)
        self._count(count)
        return count

    def read(self, size: int = -1) -> bytes:
        self._raise_if_stopped()
        data: bytes = self._stream.read(size)
        self._count(len(data))
        return data

    def _raise_if_stopped(self) -> None:
        control = self._streams.control
        if self._streams.closed or (control is not None and control.stopped):
            raise OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))

    def _count(self, count: int) -> None:
        if self._streams.control is not None:
            self._streams.control.moved(count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
