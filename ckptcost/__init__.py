"""ckptcost: what AI-training checkpoints cost, in kWh, GPU-hours, dollars and kgCO2e.

>>> import ckptcost
>>> report = ckptcost.model("gpt4-scale-2tb")
>>> report.schedule.stall_s
10005.0
"""

from __future__ import annotations

from typing import Any

from ckptcost.version import __version__

__all__ = [
    "__version__",
    "audit",
    "begin",
    "compare",
    "doctor",
    "export",
    "fits",
    "lead",
    "load_report",
    "measure",
    "model",
    "optimize",
    "record",
    "roll_up",
    "sensitivity",
    "simulate",
    "solve",
    "step",
    "steps",
    "sweep",
    "window",
]

_HOOKS = {
    "begin": "window",
    "window": "window",
    "step": "steps",
    "steps": "steps",
    "record": "own_recording",
}
"""what is for training scripts, and its module: none of these loads numpy, `record` apart"""


def __getattr__(name: str) -> Any:
    """Public names are fetched on first use: importing the package must not cost a training job
    anything."""
    if name in _HOOKS:
        from importlib import import_module

        globals()[name] = found = getattr(import_module(f"ckptcost.hooks.{_HOOKS[name]}"), name)
        return found
    if name in __all__:
        from ckptcost import api

        return getattr(api, name)
    raise AttributeError(f"module 'ckptcost' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
