"""Intervals of nested tiers held against simulated runs; for three tiers, where there is no closed
form, found by them.

Every combination is walked with the same random numbers, so that a difference between two of them
is far surer than either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ckptcost.first.core.domain import Scenario
from ckptcost.first.core.failures import mtbf_s
from ckptcost.first.core.interruptions import Floats
from ckptcost.first.core.nested import Nested, least_interval_s, level_waste, nested_rule
from ckptcost.first.core.outcome import Plan, evaluate
from ckptcost.first.core.quantities import BY_OBJECTIVE
from ckptcost.first.core.simulate import kinds_of, third_of
from ckptcost.first.core.timing import load_s
from ckptcost.first.errors import Argument, InputError
from ckptcost.first.jobs.simulate import Simulation, simulate
from ckptcost.first.jobs.walks import SimulationRequest
from ckptcost.first.scenario import Resolved

RUNS = 200
MOST_FAILURES = 10_000
"""expected in one run: each is a step that all runs take together, so many take a second or two"""
_COSTS = {"time": "wall", **{name: q.measure for name, q in BY_OBJECTIVE.items()}}


class TiersTrial(NamedTuple):
    """One combination, simulated."""

    interval_s: float
    second_every: float
    third_every: float
    found: Simulation

    def cost(self, objective: str) -> Floats:
        """What is minimised, run by run."""
        return self.found.values[_COSTS[objective]]


class TierLevel(NamedTuple):
    """What the first-order rule is told of one tier, and what it says."""

    stall_s: float
    mtbf_s: float
    alone_s: float
    multiple: float
    waste: float


class ThreeTiers(NamedTuple):
    """Interval, n and m found by simulation, beside the rule's and the scenario's own."""

    resolved: Resolved
    objective: str
    levels: tuple[TierLevel, ...]
    best: TiersTrial
    rule: TiersTrial
    now: TiersTrial | None
    tried: tuple[TiersTrial, ...]


def simulate_combination(
    resolved: Resolved,
    interval_s: float,
    second_every: float,
    third_every: float,
    runs: int,
    seed: int,
) -> TiersTrial:
    """One combination of interval, every n-th and every m-th of those."""
    s = resolved.scenario
    policy = replace(
        s.policy,
        cadence="interval",
        every=interval_s,
        second_every=second_every,
        third_every=third_every,
    )
    found = simulate(
        resolved._replace(scenario=replace(s, policy=policy)), SimulationRequest(runs, seed)
    )
    return TiersTrial(interval_s, second_every, third_every, found)


def is_walkable(failures: float) -> bool:
    """Whether runs of so many expected failures are simulated; not so where they never end."""
    return failures <= MOST_FAILURES


def difference(one: TiersTrial, other: TiersTrial, objective: str) -> tuple[float, float]:
    """(mean relative excess of `one` over `other`, its standard error), run by run with the same
    random numbers."""
    costs, others = one.cost(objective), other.cost(objective)
    excess = costs / np.mean(others) - others / np.mean(others)
    error = np.std(excess, ddof=1) / math.sqrt(len(excess)) if len(excess) > 1 else math.nan
    return float(np.mean(excess)), float(error)


def three_tiers(
    resolved: Resolved,
    objective: str,
    timed: bool,
    runs: int = RUNS,
    seed: int = 1,
) -> ThreeTiers:
    """Start at the rule, then take the best of the neighbours until none is better."""
    on_two = evaluate(replace(resolved.scenario, third_tier=None))
    _check_search(runs, float(on_two.failures))
    levels, (base_s, multiples) = _rule(resolved)
    if not all(math.isfinite(each) for each in (base_s, *multiples)):
        raise _no_failure_needs(levels)
    seen: dict[tuple[float, float, float], TiersTrial] = {}

    def at(interval_s: float, n: float, m: float) -> TiersTrial:
        key = (interval_s, n, m)
        if key not in seen:
            seen[key] = simulate_combination(resolved, *key, runs, seed)
        return seen[key]

    def mean_cost(trial: TiersTrial) -> float:
        return float(np.mean(trial.cost(objective)))

    def descend(best: TiersTrial, factor: float) -> TiersTrial:
        while True:
            around = [at(*key) for key in _neighbours(best, factor, work_s)]
            better = min(around, key=mean_cost)
            if not mean_cost(better) < mean_cost(best):
                return best
            best = better

    work_s = float(resolved.scenario.work_s)
    rule = best = at(base_s, multiples[1], multiples[2] / multiples[1])
    for factor in (1.6, 1.25, 1.1):
        best = descend(best, factor)
    now = None
    if timed:
        p = resolved.scenario.policy
        now = at(float(on_two.interval_s), float(p.second_every), float(p.third_every))
    return ThreeTiers(
        resolved, objective, levels, best, rule, now, tuple(seen[key] for key in sorted(seen))
    )


def _check_search(runs: int, failures: float) -> None:
    if runs < 2:
        raise InputError(
            "three tiers have no closed form",
            where=Argument("check"),
            remedy="they need at least 2 simulated runs",
        )
    if not is_walkable(failures):
        raise InputError(
            f"a run meets {failures:,.0f} failures on two tiers already, too many for a search by"
            " simulation",
            key="failures",
            remedy=f"shorten run.work: up to {MOST_FAILURES:,} are walked through",
        )


def _no_failure_needs(levels: Sequence[TierLevel]) -> InputError:
    named = zip(("first", "second", "third"), levels, strict=True)
    idle = next((name for name, level in named if not level.mtbf_s < math.inf), "last")
    return InputError(
        f"no failure needs the {idle} tier, so it has no best interval",
        key="failures",
        remedy=(
            "set failures.node_loss_fraction and failures.second_loss_fraction, or leave that"
            " tier out"
        ),
    )


def _neighbours(here: TiersTrial, factor: float, work_s: float) -> list[tuple[float, float, float]]:
    n, m = here.second_every, here.third_every
    keys = [(here.interval_s * factor, n, m), (here.interval_s / factor, n, m)]
    keys += [(here.interval_s, other, m) for other in _steps(n, factor)] + [
        (here.interval_s, n, other) for other in _steps(m, factor)
    ]
    return [key for key in keys if key[0] <= work_s]


def _steps(value: float, factor: float) -> Sequence[float]:
    """Whole numbers a factor away, at least one."""
    return [
        max(1.0, min(math.floor(value / factor), value - 1.0)),
        max(math.ceil(value * factor), value + 1.0),
    ]


def _rule(resolved: Resolved) -> tuple[tuple[TierLevel, ...], Nested]:
    """Each level by itself, and the nested rule: base interval and multiples."""
    s = resolved.scenario
    outcome = evaluate(replace(s, third_tier=None))
    plan, third = outcome.plan, third_of(s)
    if plan.second is None or third is None or s.second_tier is None or s.third_tier is None:
        raise InputError("there are no three tiers", key="third_tier")
    saves = (plan.saved, plan.second, third)
    waits, fills = [save.stall_s for save in saves], [0.0, 0.0]
    if s.policy.mode == "async":
        waits = [plan.saved.stall_s, 0.0, 0.0]
        fills = [float(plan.second.write_s), float(third.write_s)]
    stalls = [
        float(wait + s.policy.slowdown_fraction * save.lag_s)
        for wait, save in zip(waits, saves, strict=True)
    ]
    least = [least_interval_s(s, plan), *fills]
    rates = _rates(s, plan)
    recovery = plan.recovery
    fixed_s = float(recovery.down_s + recovery.exposed_s - recovery.load_s)
    tiers = (s.tier, s.second_tier, s.third_tier)
    lost = [fixed_s + float(load_s(s.checkpoint, tier, s.cluster)) for tier in tiers]
    alone, nested = nested_rule(stalls, rates, least)
    levels = map(_level, stalls, rates, alone, nested.multiples, lost)
    return tuple(levels), nested


def _rates(s: Scenario, plan: Plan) -> list[float]:
    """Failures per second that come back from each tier."""
    rates = [0.0, 0.0, 0.0]
    for kind in kinds_of(s, plan):
        rates[kind.level] += float(plan.failures_per_s * kind.share)
    return rates


def _level(stall_s: float, rate: float, alone_s: float, many: float, back_s: float) -> TierLevel:
    waste = float(level_waste(stall_s, rate, back_s))
    return TierLevel(stall_s, float(mtbf_s(rate)), alone_s, many, waste)
