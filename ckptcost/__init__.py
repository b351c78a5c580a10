"""ckptcost: what AI-training checkpoints cost, in kWh, GPU-hours, dollars and kgCO2e.

>>> import ckptcost
>>> report = ckptcost.model("gpt4-scale-2tb")
>>> report.rows("cases")[0]["stall_s"]
10005.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ckptcost.first import (
        audit,
        baseline,
        begin,
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
        record,
        review,
        roll_up,
        sensitivity,
        simulate,
        solve,
        step,
        steps,
        sweep,
        window,
    )
else:

    def __getattr__(name):
        """Public names are fetched on first use: importing the package must not cost a training job
        anything. Type checkers do not see this: to them a name that is none is an error."""
        if name not in __all__:
            raise AttributeError(f"module 'ckptcost' has no attribute {name!r}")
        from ckptcost import first

        globals()[name] = found = getattr(first, name)
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
