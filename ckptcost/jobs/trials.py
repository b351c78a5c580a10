"""Trials of a search: the model at one value of a knob, each with the interval that is best there,
or the one to be kept."""

from __future__ import annotations

from collections.abc import Callable
from math import isinf
from typing import NamedTuple

import numpy as np

from ckptcost.core import outcome as core
from ckptcost.core.domain import Scenario
from ckptcost.core.outcome import Outcome, Plan
from ckptcost.core.quantities import BY_OBJECTIVE
from ckptcost.core.solve import boundary
from ckptcost.jobs.gates import Gate
from ckptcost.jobs.knobs import Knob
from ckptcost.jobs.needs import unknown_inputs, what_is_missing
from ckptcost.scenario import Resolved

OBJECTIVES = {
    "goodput": "time",
    "wall": "time",
    "gpu_hours": "time",
    **{q.measure: objective for objective, q in BY_OBJECTIVE.items()},
}
"""measures a target may name, and what the interval is best for"""
LEAST_INTERVAL_S = 1e-6

Change = Callable[[Plan], Plan]


def unchanged(plan: Plan) -> Plan:
    return plan


class Reached(NamedTuple):
    """The model at one value of the knob."""

    value: float
    outcome: Outcome
    measured: float
    """what the target counts"""

    @property
    def interval_s(self) -> float:
        return float(self.outcome.interval_s)


class Found(NamedTuple):
    """What a search found: the best that can be had, the value needed, and the far end of a
    range."""

    at_best: Reached
    needed: Reached | None
    longest: Reached | None = None


class Trials:
    """A scenario and a target, ready to be tried at any value of any knob."""

    def __init__(self, resolved: Resolved, gate: Gate, keep_interval: bool = False) -> None:
        self.resolved, self.gate, self.s = resolved, gate, resolved.scenario
        self.objective = OBJECTIVES[gate.measure.id]
        chosen_for = (self.s.policy.objective,) if self.s.policy.cadence == "optimal" else ()
        for objective in (self.objective, *chosen_for):
            if unknown_inputs(self.s, objective):
                raise what_is_missing(resolved, objective)
        with np.errstate(over="ignore"):
            self.plan = core.plan_of(self.s)
            asked_s = float(core.interval_of(self.s, self.plan))
        self.asked_s = float(self.s.work_s) if isinf(asked_s) else asked_s
        self.kept_s = self.asked_s if keep_interval else None

    def gap(self, reached: Reached) -> float:
        """How far the target is exceeded, relative to it; negative where it is missed, NaN where
        the run does not end."""
        limit = self.gate.limit
        gap = (
            reached.measured - limit
            if self.gate.measure.better == "high"
            else limit - reached.measured
        )
        gap = gap / limit if limit else gap
        return min(gap, -5e-324) if gap == gap and not self.gate.holds(reached.measured) else gap

    def met(self, reached: Reached) -> bool:
        return self.gap(reached) >= 0

    def best_s(self, s: Scenario, plan: Plan) -> float:
        """The interval a trial chooses, one save in the run at least.

        Emissions of electricity are least where its energy is: what the making of the hardware
        emitted is in no target.
        """
        with np.errstate(over="ignore"):
            best_s = float(
                core.best_interval_s(
                    s, plan, "energy" if self.objective == "carbon" else self.objective
                )
            )
        if best_s != best_s:  # a trial so far off that the run never ends
            best_s = self.asked_s
        return max(min(best_s, float(s.work_s)), LEAST_INTERVAL_S)

    def reached(self, s: Scenario, plan: Plan, value: float, interval_s: float) -> Reached:
        with np.errstate(over="ignore"):
            outcome = core.outcome_at(s, plan, interval_s)
        return Reached(value, outcome, float(self.gate.measure.of(outcome)))

    def as_it_stands(self, knob: Knob | None) -> Reached:
        return self.reached(
            self.s, self.plan, knob.today(self.s, self.plan) if knob else self.asked_s, self.asked_s
        )

    def today_at_best(self, knob: Knob | None) -> Reached:
        """Nothing changed but the interval."""
        kept_s = self.best_s(self.s, self.plan) if self.kept_s is None else self.kept_s
        return self.reached(
            self.s, self.plan, knob.today(self.s, self.plan) if knob else kept_s, kept_s
        )

    def at(self, knob: Knob, value: float, change: Change = unchanged) -> Reached:
        """The knob at a value."""
        s, plan = knob.put(self.s, self.plan, value)
        plan = change(plan)
        return self.reached(
            s, plan, value, self.best_s(s, plan) if self.kept_s is None else self.kept_s
        )

    def turned(self, knob: Knob, change: Change = unchanged) -> Found:
        """The knob turned from its best end until the target is just met."""
        best = self.at(knob, knob.best, change)
        if not self.met(best):
            return Found(best, None)
        value = boundary(lambda v: self.gap(self.at(knob, v, change)), knob.best, knob.worst)
        return Found(best, self.at(knob, value, change))

    def window(self, change: Change = unchanged) -> Found:
        """The shortest and the longest interval that meet the target."""
        s, plan = self.s, change(self.plan)

        def at(interval_s: float) -> Reached:
            return self.reached(s, plan, interval_s, interval_s)

        best_s = self.best_s(s, plan)
        best = at(best_s)
        if not self.met(best):
            return Found(best, None)
        floor_s = best_s * 1e-9
        if (
            s.policy.when_busy == "skip"
        ):  # shorter than a drain allows, saves are left out: such an interval is never really made
            drag_s = s.policy.slowdown_fraction * plan.saved.lag_s
            busy_s = (
                core.busiest_s(plan, s.policy) / s.policy.in_flight - plan.saved.stall_s - drag_s
            )
            floor_s = min(max(floor_s, float(busy_s)), best_s)
        shortest = boundary(lambda v: self.gap(at(v)), best_s, floor_s)
        longest = boundary(lambda v: self.gap(at(v)), best_s, max(float(s.work_s), best_s))
        return Found(best, at(shortest), at(longest))
