"""Intervals of nested tiers: the first-order rule for any number of levels, and the exact search
over (interval, every n-th save).

Level l is saved to each T_l, at a stall of C_l; failures of rate l_l need that level and no higher
one. To first order a level wastes C_l/T_l + l_l*T_l/2 and, whatever the intervals, l_l*L_l for
getting back. Real tiers are fed from the one below, so that each interval is a whole multiple of
the one before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.domain import Number, Scenario
from ckptcost.first.core.draws import replace_at
from ckptcost.first.core.numeric import maximum, ratio, sqrt
from ckptcost.first.core.outcome import Plan, best_interval_s, cost_at
from ckptcost.first.core.timing import turnaround_s


def level_interval_s(stall_s: Number, failures_per_s: Number) -> Number:
    """Interval of one level by itself, to first order: sqrt(2*C/l)

    >>> round(level_interval_s(stall_s=5.0, failures_per_s=1e-5), 6)
    1000.0
    """
    return sqrt(ratio(2.0 * stall_s, failures_per_s))


def level_waste(stall_s: Number, failures_per_s: Number, lost_s: Number) -> Number:
    """Share of the time that one level wastes at its own interval: sqrt(2*l*C) + l*L

    >>> round(level_waste(stall_s=5.0, failures_per_s=1e-5, lost_s=300.0), 6)
    0.013
    """
    return sqrt(2.0 * failures_per_s * stall_s) + failures_per_s * lost_s


def first_order_levels(
    stalls_s: Sequence[float], rates_per_s: Sequence[float], least_s: Sequence[float] = ()
) -> tuple[float, ...]:
    """T_l = sqrt(2*C_l/l_l) for each level, the lowest first; infinite for a level that no failure
    needs.

    A level cannot be saved to more often than the one that feeds it. Where the rule says so, the
    two are one level with both stalls and both rates, which is the least waste under that
    condition. `least_s` is what filling a level takes (B/BW of its drain).

    >>> first_order_levels([2.0, 50.0], [1e-5, 1e-6])
    (632.45..., 10000.0)
    """
    pools: list[tuple[float, float, int]] = []
    for stall_s, rate in zip(stalls_s, rates_per_s, strict=True):
        pools.append((stall_s, rate, 1))
        while len(pools) > 1 and _pooled_s(pools[-2]) > _pooled_s(pools[-1]):
            (stall, rate_, count), (below, rate_below, count_below) = pools.pop(), pools.pop()
            pools.append((stall + below, rate_ + rate_below, count + count_below))
    alone = [_pooled_s(pool) for pool in pools for _ in range(pool[2])]
    floors = [*least_s, *[0.0] * (len(alone) - len(least_s))]
    found = 0.0
    intervals = []
    for interval_s, floor_s in zip(alone, floors, strict=True):
        found = max(found, interval_s, floor_s)
        intervals.append(found)
    return tuple(intervals)


def _pooled_s(pool: tuple[float, float, int]) -> float:
    return float(level_interval_s(pool[0], pool[1])) if pool[1] > 0 else math.inf


class Nested(NamedTuple):
    """Saves each `base_s` on the first level; each `multiples[l]`-th of them also on level l."""

    base_s: float
    multiples: tuple[float, ...]
    """whole, each a multiple of the one before it; the first is 1; infinite where a level is never
    needed"""


def nest_intervals(intervals_s: Sequence[float]) -> Nested:
    """Intervals rounded to whole multiples of each other, by ratio: 1.4 times counts as once, 1.5
    times as twice.

    >>> nest_intervals([600.0, 6500.0, 70_000.0])
    Nested(base_s=600.0, multiples=(1.0, 11.0, 121.0))
    """
    base_s = intervals_s[0]
    multiples = [1.0]
    for interval_s in intervals_s[1:]:
        step = interval_s / (base_s * multiples[-1]) if base_s * multiples[-1] < math.inf else 1.0
        whole = math.floor(step) if step < math.inf else math.inf
        # r and 1/r waste alike, so the halfway mark between n and n+1 is their geometric mean
        multiples.append(
            multiples[-1]
            * max(1.0, whole + 1.0 if step > math.sqrt(whole * (whole + 1.0)) else whole)
        )
    return Nested(base_s, tuple(multiples))


def nested_base_s(
    stalls_s: Sequence[float], rates_per_s: Sequence[float], multiples: Sequence[float]
) -> float:
    """Best base interval for given multiples, to first order: sqrt(2*sum(C_l/m_l)/sum(l_l*m_l)).

    >>> nested_base_s([2.0, 50.0], [1e-5, 1e-6], [1.0, 16.0])
    627.87...
    """
    stall_s = sum(stall / many for stall, many in zip(stalls_s, multiples, strict=True))
    rate = sum(
        rate * many if rate else 0.0 for rate, many in zip(rates_per_s, multiples, strict=True)
    )
    return float(level_interval_s(stall_s, rate))


def least_interval_s(s: Scenario, plan: Plan) -> float:
    """How soon after a save the next one finds a buffer on the first tier."""
    p, saved = s.policy, plan.saved
    held_s = saved.stall_s + p.slowdown_fraction * saved.lag_s
    return max(0.0, float(turnaround_s(saved, p) / p.in_flight - held_s))


def nested_rule(
    stalls_s: Sequence[float], rates_per_s: Sequence[float], least_s: Sequence[float]
) -> tuple[tuple[float, ...], Nested]:
    """The first-order interval of each level by itself, and these rounded to multiples, with room
    for each level to be filled.

    >>> nested_rule([2.0, 50.0], [1e-5, 1e-6], [0.0, 12000.0])[1]
    Nested(base_s=631.57..., multiples=(1.0, 19.0))
    """
    alone_s = first_order_levels(stalls_s, rates_per_s, least_s)
    multiples = nest_intervals(alone_s).multiples
    base_s = alone_s[0]
    if multiples[-1] < math.inf:
        base_s = nested_base_s(stalls_s, rates_per_s, multiples)
    floors = (floor_s / many for floor_s, many in zip(least_s, multiples, strict=True))
    return alone_s, Nested(max(base_s, *floors), multiples)


def fed_interval_s(s: Scenario, plan: Plan, interval_s: Number, second_every: Number) -> Number:
    """The interval, or the least at which the second tier is written before its next save comes:
    n*(interval+stall) >= B/BW."""
    if plan.second is None or s.policy.mode == "sync":
        return interval_s  # training waits for the second tier, so it cannot fall behind
    drag_s = s.policy.slowdown_fraction * plan.saved.lag_s
    return maximum(interval_s, plan.second.write_s / second_every - plan.saved.stall_s - drag_s)


class Joint(NamedTuple):
    """The best pair: an interval, and how many of them make the second tier's."""

    interval_s: float
    second_every: float
    cost: float
    at_end: bool
    """so rare that the run has hardly one save on the second tier: it would rather have none"""


_MOST_EVERY = 1e6
_AT_ONCE = 48
"""values of n searched side by side"""


def joint_interval_s(s: Scenario, plan: Plan, objective: str) -> Joint:
    """Interval and n with the least cost by the run's own bill: n on a geometric grid, then every n
    between the best one's neighbours."""
    grid = _whole(1.0, _MOST_EVERY)
    while True:
        costs = _least_costs(s, plan, objective, grid)
        at = int(np.argmin(costs))
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
        if np.all(np.diff(grid) == 1.0):
            break
        grid = _whole(low, high)
    every = float(grid[at])
    fixed = replace_at(s, "policy.second_every", every)
    interval_s = float(fed_interval_s(s, plan, best_interval_s(fixed, plan, objective), every))
    return Joint(interval_s, every, float(costs[at]), interval_s * (every + 1.0) > float(s.work_s))


def _whole(low: float, high: float) -> NDArray[np.float64]:
    if high - low < 2 * _AT_ONCE:
        return np.arange(low, high + 1.0)
    return np.unique(np.round(np.geomspace(low, high, _AT_ONCE)))


@np.errstate(over="ignore", invalid="ignore")
def _least_costs(
    s: Scenario, plan: Plan, objective: str, every: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Cost at the best interval of each n; infinite where the run ends before its first save on the
    second tier."""
    wide = replace_at(s, "policy.second_every", every)
    interval_s = fed_interval_s(s, plan, best_interval_s(wide, plan, objective), every)
    costs = cost_at(
        wide, plan, objective, interval_s
    )  # an overflow is a job that never ends; it loses
    out_of_reach = (interval_s * every > s.work_s) & (every > 1.0)
    return np.where(out_of_reach | np.isnan(costs), np.inf, costs)
