"""Stands in for PyTorch with CUDA: its cards do nothing but write down when they are busy, for the
fake NVML to draw power by.

Work takes a millisecond a product. `STAND_IN_LOAD` names the file, `STAND_IN_CARDS` says how many
cards there are.
"""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from types import SimpleNamespace

__version__ = "stand-in"
version = SimpleNamespace(cuda="0.0")
float16 = "float16"
PRODUCT_S, SPINNING = 0.001, 0.4
_until_s = 0.0


def _draw(share: float) -> None:
    with open(os.environ["STAND_IN_LOAD"], "a", encoding="ascii") as file:
        file.write(f"{time.monotonic_ns()} {share}\n")


def _work(seconds: float, share: float) -> None:
    global _until_s  # noqa: PLW0603  # one queue for all cards
    now_s = time.monotonic()
    if _until_s == 0.0:
        _draw(share)
    _until_s = max(_until_s, now_s) + seconds


def _synchronize(card: int) -> None:
    global _until_s  # noqa: PLW0603
    if _until_s == 0.0:
        return
    while time.monotonic() < _until_s:
        pass
    _until_s = 0.0
    _draw(0.0)


def randn(*shape: int, device: str, dtype: str) -> str:
    return device


empty = randn


def mm(a: str, b: str, out: str) -> None:
    if out == "cuda:0":
        _work(PRODUCT_S, 1.0)


cuda = SimpleNamespace(
    is_available=lambda: int(os.environ.get("STAND_IN_CARDS", "1")) > 0,
    device_count=lambda: int(os.environ.get("STAND_IN_CARDS", "1")),
    device=lambda card: nullcontext(),
    synchronize=_synchronize,
    _sleep=lambda cycles: _work(0.004, SPINNING),
)
