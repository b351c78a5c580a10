"""What another interval than the best one costs: regret, and the plateau around the best within
which nobody would notice.

The cost of an objective is what `core.outcome.cost_at` minimises: the wall time of the run for
time; for energy, dollars and carbon what checkpoints and failures add to the run (the marginal
totals; carbon is location-based, without the embodied share).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ckptcost.first.core.domain import Number
from ckptcost.first.core.outcome import Outcome, objective_amount
from ckptcost.first.core.solve import boundary

OBJECTIVES = ("time", "energy", "usd", "carbon")
WITHIN = 0.01
"""the plateau: a cost at most 1 % above the least"""


def cost_of(outcome: Outcome, objective: str) -> Number:
    """What an outcome costs in an objective's unit (s, J, USD, kgCO2e); the same figure that
    decides the best interval."""
    return outcome.wall_s if objective == "time" else objective_amount(outcome.run, objective)


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

    >>> ends = plateau_s(lambda x: x / 2 + 50 / x, best_s=10.0, within=0.25)  # x^2 - 25 x + 100 = 0
    >>> round(ends.low_s, 9), round(ends.high_s, 9)
    (5.0, 20.0)
    """
    target = (1.0 + within) * float(cost(best_s))
    if not (0 < best_s < math.inf and target < math.inf) or best_s > highest_s:
        return Plateau(math.nan, math.nan)

    def gap(interval_s: float) -> float:
        return (
            1.0 - float(cost(interval_s)) / target
        )  # what cannot be computed any more is past the plateau

    first_s, last_s = max(min(lowest_s, best_s), best_s * 1e-12), min(highest_s, best_s * 1e12)
    low_s, high_s = boundary(gap, best_s, first_s), boundary(gap, best_s, last_s)
    return Plateau(low_s, high_s, low_s == first_s, high_s == last_s)
