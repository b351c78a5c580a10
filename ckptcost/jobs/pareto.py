"""Tiers, modes and intervals held against each other: which points no other beats in goodput,
energy, dollars and carbon at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.core.domain import Scenario
from ckptcost.core.outcome import Outcome, Plan, best_interval_s, outcome_at, plan_of
from ckptcost.core.pareto import front
from ckptcost.core.regret import OBJECTIVES, cost_of
from ckptcost.errors import InputError
from ckptcost.jobs.model import two_tiers_at_most
from ckptcost.jobs.needs import unknown_inputs
from ckptcost.jobs.ranking import undecided
from ckptcost.scenario import Resolved

_INSIDE, _AROUND, _WIDER = 121, 33, 4.0
"""intervals between the shortest and the longest optimum, and in the four times wider range around
them"""
_SAME = 1e-9
"""intervals this close are one: no cost can tell them apart"""


class Option(NamedTuple):
    """One tier in one mode, and its best interval for each objective; NaN where a figure is
    lacking."""

    tier_id: str
    mode: str
    resolved: Resolved
    plan: Plan
    best: dict[str, float]
    lacking: dict[str, tuple[str, ...]]
    """inputs that are not known, by objective"""

    @property
    def scenario(self) -> Scenario:
        return self.resolved.scenario

    @property
    def known(self) -> tuple[str, ...]:
        return tuple(objective for objective in OBJECTIVES if self.best[objective] > 0)

    def at(self, interval_s: Any) -> Outcome:
        with np.errstate(over="ignore"):
            return outcome_at(self.scenario, self.plan, interval_s)


class Candidates(NamedTuple):
    """The intervals of one option that were looked at."""

    option: Option
    interval_s: NDArray[np.float64]
    outcome: Outcome
    best_for: tuple[tuple[str, ...], ...]
    """objectives whose optimum each interval is"""
    on_front: NDArray[np.bool_]


class Front(NamedTuple):
    """What was compared, and what could not be."""

    objectives: tuple[str, ...]
    left_out: tuple[str, ...]
    """objectives that are unknown for all, have no option in common, or lack a line for some
    only"""
    candidates: tuple[Candidates, ...]
    apart: tuple[Option, ...]
    """options that lack one of the objectives: neither on the front nor beaten"""


def option_of(resolved: Resolved) -> Option:
    """A resolved scenario with its best intervals."""
    s = resolved.scenario
    two_tiers_at_most(s)
    with np.errstate(over="ignore"):
        plan = plan_of(s)
        found = {objective: float(best_interval_s(s, plan, objective)) for objective in OBJECTIVES}
    if found["time"] == math.inf:
        raise InputError(
            "without failures the best interval is never to save",
            key="failures.rate",
            remedy='give one, e.g. --set failures.rate="3.8 /1000 node-days"',
        )
    best = {
        objective: interval_s if 0 < interval_s < math.inf else math.nan
        for objective, interval_s in found.items()
    }
    lacking = {objective: tuple(unknown_inputs(s, objective)) for objective in OBJECTIVES}
    return Option(
        str(resolved.words.get("tier.id", "tier")), s.policy.mode, resolved, plan, best, lacking
    )


def pareto(options: Sequence[Option]) -> Front:
    """The front over all options and their intervals, each objective's exact optimum among them."""
    objectives = tuple(o for o in OBJECTIVES if any(o in option.known for option in options))
    if not any(set(objectives) <= set(option.known) for option in options):
        objectives = tuple(o for o in OBJECTIVES if all(o in option.known for option in options))
    judged = [option for option in options if set(objectives) <= set(option.known)]
    runs = [option.at(option.best["time"]) for option in judged]
    objectives = tuple(o for o in objectives if not undecided(runs, o))
    tried = [_tried(option, objectives) for option in judged]
    costs = [
        np.stack([_rounded(cost_of(each.outcome, o)) for o in objectives], axis=1) for each in tried
    ]
    kept = front(np.concatenate(costs), ["low"] * len(objectives))
    parts = np.split(kept, np.cumsum([len(each.interval_s) for each in tried])[:-1])
    return Front(
        objectives,
        tuple(o for o in OBJECTIVES if o not in objectives),
        tuple(each._replace(on_front=part) for each, part in zip(tried, parts, strict=True)),
        tuple(option for option in options if option not in judged),
    )


def _tried(option: Option, objectives: Sequence[str]) -> Candidates:
    """Every interval worth a look: outside the range of the optima all objectives get worse
    together."""
    best = {o: option.best[o] for o in objectives}
    low_s, high_s = min(best.values()), max(best.values())
    most_s = max(float(option.scenario.work_s), high_s)
    inside = np.geomspace(low_s, high_s, _INSIDE) if high_s > low_s else np.array([low_s])
    around = np.geomspace(low_s / _WIDER, high_s * _WIDER, _AROUND)
    exact = _distinct(np.array(list(best.values())))
    grid = _distinct(np.concatenate([inside, around[around <= most_s]]))
    grid = grid[
        (np.abs(grid[:, None] / exact[None, :] - 1.0) > _SAME).all(axis=1)
    ]  # an optimum once, not beside itself
    interval_s = np.sort(np.concatenate([grid, exact]))
    marks = tuple(
        tuple(o for o, at in best.items() if abs(at - each) <= _SAME * at)
        for each in interval_s.tolist()
    )
    return Candidates(
        option, interval_s, option.at(interval_s), marks, np.zeros(len(interval_s), dtype=bool)
    )


def _distinct(intervals_s: NDArray[np.float64]) -> NDArray[np.float64]:
    ordered = np.sort(intervals_s)
    return ordered[np.diff(ordered, prepend=0.0) > _SAME * ordered]


def _rounded(costs: Any) -> NDArray[np.float64]:
    """12 significant digits: what rounding alone makes different is the same, and beats nothing."""
    values = np.asarray(costs, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scale = 10.0 ** (np.floor(np.log10(np.abs(values))) - 11.0)
        rounded = np.round(values / scale) * scale
    return np.where(np.isfinite(rounded) & (values != 0), rounded, values)
