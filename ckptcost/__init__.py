"""What AI training checkpoints cost: kWh, GPU-hours, dollars, kgCO2e.

>>> import ckptcost
>>> answer = ckptcost.model("gpt4-scale-2tb", tier=["nas-hdd", "generic-pfs"], saves=[100])
>>> [row[0] for row in answer.table("cases").rows]
['nas-hdd, 100 saves', 'generic-pfs, 100 saves']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ckptcost.questions import VERBS

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
    from ckptcost.questions import *  # noqa: F403
else:

    def __getattr__(name):
        """Fetched on first use: importing the package must not cost a training job anything. Type
        checkers do not see this: to them a name that is none is an error."""
        from importlib import import_module

        if name not in __all__:
            raise AttributeError(f"module 'ckptcost' has no attribute {name!r}")
        home = f"ckptcost.questions.{name}" if name in QUESTIONS else "ckptcost.first"
        globals()[name] = found = getattr(import_module(home), name)
        return found


QUESTIONS = [name for name, verb in VERBS.items() if verb.is_question]
__all__ = ["__version__", "baseline", "begin", "calibrate", "doctor", "gap", "load_report"]
__all__ += ["measure", "probe", "record", "review", "roll_up", "step", "steps", "window"]
__all__ += [*QUESTIONS]  # noqa: PLE0604


def __dir__() -> list[str]:
    return sorted(__all__)
