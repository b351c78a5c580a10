"""A scenario as a job to walk through, and what its runs cost: the same bill as the closed form's,
one value a run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ckptcost.first.core import timing
from ckptcost.first.core.bill import Bill, Spent, bill_of
from ckptcost.first.core.domain import Number, Scenario
from ckptcost.first.core.interruptions import NEVER, Floats, InterruptionKind
from ckptcost.first.core.job import Job, Runs
from ckptcost.first.core.money import kept_saves
from ckptcost.first.core.outcome import Plan, first_lost_fraction
from ckptcost.first.core.rhythm import rhythm_of
from ckptcost.first.core.timing import Save


def third_of(s: Scenario) -> Save | None:
    """A save on the third tier."""
    return (
        None
        if s.third_tier is None
        else timing.save(s.checkpoint, s.third_tier, s.cluster, s.policy, staged=False)
    )


def kinds_of(s: Scenario, plan: Plan) -> tuple[InterruptionKind, ...]:
    """The kinds of interruption that the scenario itself speaks of: by the tier whose copy
    survives."""
    f = s.failures
    if s.second_tier is None:
        names = {"failure": 1.0}
    else:
        node = float(first_lost_fraction(s))
        worst = min(float(f.second_loss_fraction), node) if s.third_tier is not None else 0.0
        names = {
            "first tier survives": 1.0 - node,
            "node lost": node - worst,
            "second tier lost": worst,
        }
    return tuple(
        InterruptionKind(name, share, level, f.detect_s, f.reschedule_s, f.init_s, f.warmup_s)
        for level, (name, share) in enumerate(names.items())
        if share > 0
    )


def job_of(
    s: Scenario,
    plan: Plan,
    interval_s: Number,
    kinds: tuple[InterruptionKind, ...],
    limit_s: float = NEVER,
) -> Job:
    """What the walk needs to know of a scenario at one interval."""
    third = third_of(s)
    tiers = [
        s.tier,
        *([s.second_tier] if s.second_tier else []),
        *([s.third_tier] if s.third_tier else []),
    ]
    loads_s = tuple(timing.load_s(s.checkpoint, tier, s.cluster) for tier in tiers)
    saves = [save for save in (plan.saved, plan.second, third) if save is not None]
    emergency_s = tuple(save.stall_s + save.lag_s for save in saves)
    return Job(
        s.work_s, rhythm_of(s, plan, third, interval_s), kinds, loads_s, emergency_s, limit_s
    )


def spent_of(s: Scenario, plan: Plan, job: Job, runs: Runs) -> Spent:
    """What each run spent, in the bill's terms."""
    p, third = s.policy, third_of(s)
    intervals = runs.kept_s / job.rhythm.kept_s
    slowed_s = intervals * job.rhythm.drag_s
    made = intervals  # saves that last: fewer than the work asks for where a limit stopped the run
    held = kept_saves(made, p.keep_last) * plan.saved.stored_bytes
    second_held = (
        kept_saves(made / p.second_every, p.second_keep_last) * plan.second.stored_bytes
        if plan.second
        else 0.0
    )
    third_held = (
        kept_saves(made / p.second_every / p.third_every, p.third_keep_last) * third.stored_bytes
        if third
        else 0.0
    )
    return Spent(
        runs.stall_s,
        slowed_s,
        runs.trained_s - runs.kept_s - slowed_s,
        runs.detect_s,
        runs.reschedule_s,
        runs.init_s,
        runs.load_s,
        runs.warmup_s,
        runs.saves,
        runs.second_saves,
        held,
        second_held,
        runs.wall_s,
        runs.third_saves,
        third_held,
    )


def bills_of(s: Scenario, plan: Plan, spent: Spent) -> Bill:
    """The run's bill, one value a run."""
    return bill_of(s, spent, plan.saved, plan.second, third_of(s))


class QuantitySummary(NamedTuple):
    """What many runs say of one quantity."""

    mean: float
    error: float
    """standard error of the mean"""
    p5: float
    p50: float
    p95: float
    low: float
    high: float


def summary_of(values: Floats) -> QuantitySummary:
    """Mean with its standard error, and percentiles; NaN where a run's value is not known."""
    count = len(values)
    mean = float(np.mean(values))
    error = float(np.std(values, ddof=1) / np.sqrt(count)) if count > 1 else float("nan")
    error = 0.0 if error < 1e-12 * abs(mean) else error  # all alike but for the last bits
    p5, p50, p95 = (float(x) for x in np.quantile(values, (0.05, 0.5, 0.95)))
    return QuantitySummary(mean, error, p5, p50, p95, float(np.min(values)), float(np.max(values)))


def ratio_summary(parts: Floats, wholes: Floats) -> QuantitySummary:
    """The same of a share: its mean is all parts over all wholes, as a fleet of such runs would see
    it.

    The mean of the runs' own shares would lean towards short runs. Error of a ratio: residuals part
    - mean*whole over the mean whole.
    """
    shares = np.divide(parts, wholes)
    mean = float(np.sum(parts) / np.sum(wholes))
    count = len(parts)
    residuals = parts - mean * wholes
    error = (
        float(np.std(residuals, ddof=1) / np.sqrt(count) / np.mean(wholes))
        if count > 1
        else float("nan")
    )
    return summary_of(shares)._replace(mean=mean, error=error)
