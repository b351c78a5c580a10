"""A training state in PyTorch's tensors, shaped as a checkpoint: what the PyTorch engines save, and
compare with what they read.

Memory holds all of it, as in training; some engines need it twice (a load, a copy to write in the
background).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ckptcost.errors import InputError, MeterUnavailable, OutputError
from ckptcost.savers.base import FileShape, Kind, Settings, Shape
from ckptcost.savers.content import Bytes, Content

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


class Part(NamedTuple):
    """A tensor of a file: its key, and which bytes of the file's content it holds."""

    key: str
    offset: int
    size_bytes: int
    dtype: str


def parts_of(file: FileShape) -> Iterator[Part]:
    """
    >>> [part[1:] for part in parts_of(FileShape("weights-00000", (64 << 20) + 5, 0, "weights"))]
    [(0, 67108864, 'bfloat16'), (67108864, 5, 'uint8')]
    """
    dtype = _DTYPES[file.kind]
    whole = file.size_bytes - file.size_bytes % 8
    for number, offset in enumerate(range(0, whole, TENSOR_BYTES)):
        yield Part(f"{file.kind}.{number}", offset, min(TENSOR_BYTES, whole - offset), dtype)
    if whole < file.size_bytes:
        yield Part(f"{file.kind}.rest", whole, file.size_bytes - whole, "uint8")


def bytes_of(tensor: Tensor) -> Bytes:
    """Its memory. Numbers would not do: among random ones are NaN, which equal nothing, and numpy
    has no bfloat16."""
    torch = library("torch")
    found: Bytes = tensor.reshape(-1).view(torch.uint8).numpy()
    return found


class State:
    """The tensors of each file. The memory is taken once for a shape, and filled anew for each
    save, outside of what is timed."""

    def __init__(self) -> None:
        self._shape: Shape | None = None
        self._memory: dict[str, Bytes] = {}
        self.tensors: dict[str, dict[str, Tensor]] = {}
        """by file and key"""

    def fill(self, shape: Shape, settings: Settings, number: int) -> None:
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


def fits(tensors: dict[str, Tensor], file: FileShape, where: str) -> None:
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
    """As `fits`, and where one has another content."""
    fits(tensors, file, where)
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
