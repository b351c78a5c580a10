"""The engines by name; each is imported when it is asked for, since two of them load PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from ckptcost.first.errors import Argument, UnknownName
from ckptcost.first.savers.base import Saver

SAVERS: Final[Mapping[str, tuple[str, str, str]]] = {
    "direct": ("direct", "Direct", "O_DIRECT, many requests in flight: what the storage can do"),
    "posix": ("buffered", "Posix", "write and fsync through the page cache: what most programs do"),
    "torch_save": ("torch_savers", "TorchSave", "torch.save, then fsync"),
    "torch_dcp": ("torch_savers", "TorchDcp", "torch.distributed.checkpoint.save"),
    "torch_dcp_async": ("torch_savers", "TorchDcpAsync", "torch.distributed.checkpoint.async_save"),
    "safetensors": ("torch_savers", "Safetensors", "safetensors.torch.save_file, then fsync"),
}
"""module, class, and what it is"""


def saver_of(name: str) -> Saver:
    """Raises UnknownName, and MeterUnavailable where a library is missing."""
    if name not in SAVERS:
        raise UnknownName("saver", name, SAVERS, where=Argument("saver"), lists=", ".join(SAVERS))
    module, kind, _ = SAVERS[name]
    saver = getattr(import_module(f"ckptcost.first.savers.{module}"), kind)()
    assert isinstance(saver, Saver)
    return saver
