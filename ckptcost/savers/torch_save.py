"""torch.save of each file: what most training scripts do. It is not synced, and not renamed into
place."""

from __future__ import annotations

from ckptcost.savers.torch_files import OneCallSaver
from ckptcost.savers.torch_state import Tensor, library


class TorchSave(OneCallSaver):
    """A zip archive with a record for each tensor and a CRC32 of each, which takes a good part of
    the time on fast storage."""

    name = "torch_save"
    call = "torch.save"
    note = (
        "torch.save does not sync: training would go on at `returned`, and this program syncs each"
        " file afterwards"
    )

    def _write(self, tensors: dict[str, Tensor], path: str) -> None:
        library("torch").save(tensors, path)

    def _read(self, path: str) -> dict[str, Tensor]:
        found: dict[str, Tensor] = library("torch").load(path, weights_only=True)
        return found

    @property
    def _refusals(self) -> tuple[type[Exception], ...]:
        from pickle import UnpicklingError

        return (RuntimeError, EOFError, UnpicklingError)
