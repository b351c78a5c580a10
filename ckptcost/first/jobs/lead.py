"""Lead time: how early the last save must begin, of a scenario within its ranges or of a recorded
run."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ckptcost.first.core.draws import drawn
from ckptcost.first.core.lead import SIGNAL_MOST_S, lead_s, p99
from ckptcost.first.core.outcome import plan_of
from ckptcost.first.errors import InputError
from ckptcost.first.jobs.measured import Measured
from ckptcost.first.scenario import Resolved, ranges_of, ties_of


class Lead(NamedTuple):
    """Seconds from the signal until the save can be loaded."""

    usual_s: float
    """as the inputs are stated; of a run the median save"""
    p99_s: float
    step_s: float
    """part of it that waits for the step under way; NaN where it is not known"""
    saves: int
    """measured ones; 0: from the ranges of a scenario"""
    resolved: Resolved | None = None

    @property
    def signal_s(self) -> int:
        """Whole seconds, as Slurm wants them."""
        return math.ceil(self.p99_s)

    @property
    def can_be_said(self) -> bool:
        return self.signal_s <= SIGNAL_MOST_S


def of_scenario(resolved: Resolved) -> Lead:
    s = resolved.scenario
    wide = drawn(s, ranges_of(resolved), ties_of(resolved))
    many = np.atleast_1d(np.asarray(lead_s(plan_of(wide).saved, wide.policy), dtype=float))
    usual_s = float(lead_s(plan_of(s).saved, s.policy))
    if not math.isfinite(usual_s):
        raise InputError("how long a save takes is not known", key="tier", remedy="give tier.write")
    # an input that is drawn to nothing known says nothing of the others
    longest_s = p99(many[np.isfinite(many)])
    return Lead(usual_s, max(usual_s, longest_s), float(s.policy.step_s), 0, resolved)


def of_run(measured: Measured) -> Lead:
    """Of the saves that are known to be safe; one that was never seen safe has no length."""
    lengths_s = [
        window.durable_s - window.begin_s
        for window in measured.windows
        if window.begin_s is not None and window.durable_s is not None
    ]
    if not lengths_s:
        raise InputError(
            "no save of this run has both a begin and an instant at which it was safe",
            where="RUN",
            remedy="ask for a scenario instead: ckptcost lead -s FILE",
        )
    steps = measured.steps
    step_s = math.nan
    if steps is not None and len(steps.split.quiet_s):
        step_s = p99(steps.split.quiet_s)
    more_s = 0.0 if math.isnan(step_s) else step_s
    return Lead(
        float(np.median(lengths_s)) + more_s, p99(lengths_s) + more_s, step_s, len(lengths_s)
    )
