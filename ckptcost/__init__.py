"""What AI training checkpoints cost: kWh, GPU-hours, dollars, kgCO2e.

>>> import ckptcost
>>> answer = ckptcost.model("gpt4-scale-2tb", tier=["nas-hdd", "generic-pfs"], saves=[100])
>>> [row[0] for row in answer.table("cases").rows]
['nas-hdd, 100 saves', 'generic-pfs, 100 saves']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.2.0"

if TYPE_CHECKING:
    from ckptcost.first import (
        baseline,
        begin,
        calibrate,
        doctor,
        gap,
        load_report,
        measure,
        probe,
        record,
        review,
        roll_up,
        step,
        steps,
        window,
    )
    from ckptcost.questions.audit import audit
    from ckptcost.questions.catalog import catalog
    from ckptcost.questions.compare import compare
    from ckptcost.questions.export import export
    from ckptcost.questions.init import init
    from ckptcost.questions.interval import interval
    from ckptcost.questions.model import model
    from ckptcost.questions.need import need
    from ckptcost.questions.report import report
    from ckptcost.questions.simulate import simulate
else:

    def __getattr__(name):
        """Fetched on first use: importing the package must not cost a training job anything. Type
        checkers do not see this: to them a name that is none is an error."""
        from importlib import import_module

        from ckptcost.questions import VERBS

        if name not in __all__:
            raise AttributeError(f"module 'ckptcost' has no attribute {name!r}")
        is_question = name in VERBS and VERBS[name].is_question
        home = f"ckptcost.questions.{name}" if is_question else "ckptcost.first"
        globals()[name] = found = getattr(import_module(home), name)
        return found


__all__ = ["__version__", "audit", "baseline", "begin", "calibrate", "catalog", "compare"]
__all__ += ["doctor", "export", "gap", "init", "interval", "load_report", "measure", "model"]
__all__ += ["need", "probe", "record", "report", "review", "roll_up", "simulate", "step", "steps"]
__all__ += ["window"]


def __dir__() -> list[str]:
    return sorted(__all__)
