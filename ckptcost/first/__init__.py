"""The first edition: what AI-training checkpoints cost, in kWh, GPU-hours, dollars and kgCO2e.

>>> import ckptcost
>>> report = ckptcost.model("gpt4-scale-2tb")
>>> report.rows("cases")[0]["stall_s"]
10005.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ckptcost.first.version import __version__

if TYPE_CHECKING:
    from ckptcost.first.api import (
        audit,
        baseline,
        calibrate,
        compare,
        diff,
        doctor,
        export,
        fits,
        gap,
        lead,
        load_report,
        measure,
        model,
        optimize,
        price,
        probe,
        review,
        roll_up,
        sensitivity,
        simulate,
        solve,
        sweep,
    )
    from ckptcost.first.hooks.own_recording import record
    from ckptcost.first.hooks.steps import step, steps
    from ckptcost.first.hooks.window import begin, window
else:
    _HOOKS = {
        "begin": "window",
        "window": "window",
        "step": "steps",
        "steps": "steps",
        "record": "own_recording",
    }
    """what is for training scripts, and its module: none of these loads numpy, `record` apart"""

    def __getattr__(name):
        """Public names are fetched on first use: importing the package must not cost a training job
        anything. Type checkers do not see this: to them a name that is none is an error."""
        from importlib import import_module

        if name not in __all__:
            raise AttributeError(f"module 'ckptcost.first' has no attribute {name!r}")
        home = f"hooks.{_HOOKS[name]}" if name in _HOOKS else "api"
        globals()[name] = found = getattr(import_module(f"ckptcost.first.{home}"), name)
        return found


__all__ = [
    "__version__",
    "audit",
    "baseline",
    "begin",
    "calibrate",
    "compare",
    "diff",
    "doctor",
    "export",
    "fits",
    "gap",
    "lead",
    "load_report",
    "measure",
    "model",
    "optimize",
    "price",
    "probe",
    "record",
    "review",
    "roll_up",
    "sensitivity",
    "simulate",
    "solve",
    "step",
    "steps",
    "sweep",
    "window",
]


def __dir__() -> list[str]:
    return sorted(__all__)
