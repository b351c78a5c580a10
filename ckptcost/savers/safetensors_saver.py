"""safetensors: each file is a header and the tensors behind each other. It is written to a
temporary name, renamed and not synced."""

from __future__ import annotations

import numpy as np

from ckptcost.savers.torch_files import OneCallSaver
from ckptcost.savers.torch_state import Tensor, bytes_of, library


class Safetensors(OneCallSaver):
    """Loading maps the file and reads nothing yet, so a load here includes the copy of every tensor
    to where training has it."""

    name = "safetensors"
    call = "safetensors.torch.save_file"
    note = (
        "save_file writes to a temporary name, renames it and does not sync: this program syncs"
        " each file afterwards"
    )

    def __init__(self) -> None:
        super().__init__()
        library("safetensors.torch")

    def _write(self, tensors: dict[str, Tensor], path: str) -> None:
        library("safetensors.torch").save_file(tensors, path)

    def _read(self, path: str) -> dict[str, Tensor]:
        found: dict[str, Tensor] = library("safetensors.torch").load_file(path)
        return found

    def _fetch(self, found: dict[str, Tensor], into: dict[str, Tensor]) -> None:
        for key, tensor in into.items():
            np.copyto(bytes_of(tensor), bytes_of(found[key]))

    @property
    def _refusals(self) -> tuple[type[Exception], ...]:
        error: type[Exception] = library("safetensors").SafetensorError
        return (error, RuntimeError, FileNotFoundError)  # the last without errno
