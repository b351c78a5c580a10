"""What another interval than the best one costs: regret, and the plateau around the best within which nobody would notice.

The cost of an objective is what `core.outcome.cost_at` minimises: the wall time of the run for time; for energy, dollars and carbon
what checkpoints and failures add to the run (the marginal totals; carbon is location-based plus the embodied share, where known).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ckptcost.core.domain import Number
from ckptcost.core.numeric import known, ratio, where
from ckptcost.core.outcome import Outcome

OBJECTIVES = ("time", "energy", "usd", "carbon")
WITHIN = 0.01
"""the plateau: a cost at most 1 % above the least"""
ROUNDING = 1e-12
"""two costs this close are the same cost, summed in another order"""


def cost_of(outcome: Outcome, objective: str) -> Number:
    """What an outcome costs in an objective's unit (s, J, USD, kgCO2e); the same figure that decides the best interval."""
    if objective == "time":
        return outcome.wall_s
    if objective == "energy":
        return outcome.run.total("energy_j")
    if objective == "usd":
        return outcome.run.total("cost_usd")
    return outcome.run.total("location_kgco2e") + known(outcome.run.total("embodied_kgco2e"), 0.0)


def regret(cost: Number, least: Number) -> Number:
    """Share by which a cost exceeds the least one; a difference that rounding makes is none.

    >>> regret(103.0, 100.0), regret(100.0 + 1e-11, 100.0)
    (0.03, 0.0)
    """
    with np.errstate(invalid="ignore"):  # where even the least is infinite there is nothing to compare with: NaN
        more = ratio(cost - least, least)
    return where(abs(more) < ROUNDING, 0.0, more)


class Plateau(NamedTuple):
    """The interval's lowest and highest value whose cost is within a share of the least."""

    low_s: float
    high_s: float
    low_is_bound: bool = False
    """the cost is still within at the lowest interval there is: a bound, not a crossing"""
    high_is_bound: bool = False


def plateau_s(
    cost: Callable[[float], Number],
    best_s: float,
    within: float = WITHIN,
    lowest_s: float = 0.0,
    highest_s: float = math.inf,
) -> Plateau:
    """Where a cost with one valley crosses (1 + within) x its least, on each side of the least.

    >>> ends = plateau_s(lambda x: x / 2 + 50 / x, best_s=10.0, within=0.25)        # x^2 - 25 x + 100 = 0
    >>> round(ends.low_s, 9), round(ends.high_s, 9)
    (5.0, 20.0)
    """
    target = (1.0 + within) * float(cost(best_s))
    if not (0 < best_s < math.inf and target < math.inf) or best_s > highest_s:
        return Plateau(math.nan, math.nan)

    def above(log_s: float) -> float:
        value = float(cost(math.exp(log_s)))
        return math.inf if value != value else value / target - 1.0  # what cannot be computed any more is past the plateau

    low_s, low_is_bound = _crossing_s(above, best_s, max(min(lowest_s, best_s), best_s * 1e-12))
    high_s, high_is_bound = _crossing_s(above, best_s, min(highest_s, best_s * 1e12))
    return Plateau(low_s, high_s, low_is_bound, high_is_bound)


def _crossing_s(above: Callable[[float], float], best_s: float, end_s: float) -> tuple[float, bool]:
    """(interval between the best and the end where `above` turns positive, or the end, whether it is the end)."""
    inside, f_inside = math.log(best_s), above(math.log(best_s))
    end = math.log(end_s)
    way = math.copysign(1.0, end - inside)
    step = 0.125
    while True:
        outside = inside + way * step
        outside = min(outside, end) if way > 0 else max(outside, end)
        f_outside = above(outside)
        if f_outside > 0:
            break
        if outside == end:
            return end_s, True
        inside, f_inside = outside, f_outside
        step *= 2.0
    return math.exp(_root(above, inside, f_inside, outside, f_outside)), False


def _root(f: Callable[[float], float], x0: float, f0: float, x1: float, f1: float) -> float:
    """Root between x0 (f <= 0) and x1 (f > 0) by false position that halves the weight of an end which stays (Illinois)."""
    w0, w1 = f0, f1
    for _ in range(200):
        if abs(x1 - x0) <= 1e-13 * max(abs(x0), abs(x1), 1.0):
            break
        x = (x0 * w1 - x1 * w0) / (w1 - w0) if math.isfinite(w1) and w1 != w0 else (x0 + x1) / 2.0
        x = x if min(x0, x1) < x < max(x0, x1) else (x0 + x1) / 2.0
        fx = f(x)
        if abs(fx) < 1e-14:
            return x
        if fx > 0:
            x1, w1, w0 = x, fx, w0 / 2.0
        else:
            x0, w0, w1 = x, fx, w1 / 2.0
    return x0 if abs(f(x0)) < abs(f(x1)) else x1
