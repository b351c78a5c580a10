"""The interval to advise where the inputs are uncertain: it costs least on average over what the
ranges allow.

In one world the best interval has no regret. Over many worlds (draws from the ranges of the inputs)
no interval has: an interval is held against each world's own best, and the one with the least mean
regret is robust. The mean, not the maximum: a draw counts as often as the ranges make it likely, so
that no corner that hardly ever comes decides alone. What it costs in the worst corner stands beside
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.domain import Scenario
from ckptcost.first.core.draws import SAMPLES, Ranges, drawn, p5_p95, scenario_at_quantiles
from ckptcost.first.core.optimum import golden_interval_s
from ckptcost.first.core.outcome import best_interval_s, cost_at, plan_of

MOVES = 2.0
"""an optimum whose range is wider than this factor is no advice"""
WORLDS = SAMPLES
"""draws: the least of a mean is sure with far fewer, but the percentiles and the mean regret that
stand beside it are not"""
MOST_CORNERS = 10
"""inputs whose ends are combined: two to this many worlds"""
_LEAST_MOVE = 1.02
"""an input that moves the optimum by less over its whole range makes no corner"""
_MOST_REGRET = 1e6
"""a world that never ends at an interval counts as this, so that one of them is not all that is
seen"""
_PLACES = 33

Costs = Callable[[float], NDArray[np.float64]]
"""what an interval costs in each of several worlds"""


class Robust(NamedTuple):
    """The interval of least mean regret, and what it and the best interval at the stated values
    risk."""

    interval_s: float
    best_s: float
    """best at the stated values"""
    low_s: float
    high_s: float
    """5th and 95th percentile of the best interval over the draws"""
    mean_at: Callable[[float], float]
    """mean regret of an interval over the draws"""
    worst_at: Callable[[float], float]
    """its largest regret in any corner of the ranges"""
    corners: int
    movers: tuple[str, ...]
    """inputs whose range moves the best interval, the one that moves it most first"""
    draws: int

    @property
    def moves(self) -> bool:
        """Whether the ranges leave the best interval so open that the robust one is the advice."""
        return self.high_s > MOVES * self.low_s

    @property
    def regret(self) -> float:
        """Mean regret of the robust interval."""
        return self.mean_at(self.interval_s)

    @property
    def worst(self) -> float:
        """What the robust interval costs in the worst corner."""
        return self.worst_at(self.interval_s)


def regrets_at(costs: Costs, least: NDArray[np.float64], interval_s: float) -> NDArray[np.float64]:
    """Regret of one interval in every world; a world without any good interval is left out as NaN.

    >>> regrets_at(lambda x: np.array([x, 2.0 / x]), np.array([1.0, 1.0]), 1.5).round(3).tolist()
    [0.5, 0.333]
    """
    with np.errstate(invalid="ignore", over="ignore"):
        over = np.asarray(costs(interval_s), dtype=float) / least - 1.0
    over = np.where(np.isnan(over), np.inf, over)
    return np.where(np.isfinite(least) & (least > 0), np.clip(over, 0.0, _MOST_REGRET), np.nan)


def least_regret_s(
    costs: Costs, least: NDArray[np.float64], low_s: float, high_s: float
) -> tuple[float, float]:
    """(interval with the least mean regret, that regret), between the least and the greatest best
    interval of the worlds.

    First the best of a few places, then a golden section between its neighbours, so that a second
    valley is not fallen into.

    >>> bests = np.array([1.0, 4.0])  # cost x/b + b/x: least at b, where it is 2
    >>> found, regret = least_regret_s(
    ...     lambda x: x / bests + bests / x, np.array([2.0, 2.0]), 1.0, 4.0
    ... )
    >>> round(found, 6), round(regret, 6)
    (2.0, 0.25)
    """

    def mean(interval_s: float) -> float:
        return _over(np.mean, regrets_at(costs, least, interval_s))

    if not high_s > low_s:
        return low_s, mean(low_s)
    places = np.geomspace(low_s, high_s, _PLACES)
    values = [mean(float(place)) for place in places]
    at = int(np.nanargmin(values)) if not np.all(np.isnan(values)) else 0
    around = places[max(at - 1, 0)], places[min(at + 1, _PLACES - 1)]
    found = float(golden_interval_s(lambda x: mean(float(x)), float(around[0]), float(around[1])))
    value = mean(found)
    return (found, value) if not value > values[at] else (float(places[at]), values[at])


def robust_of(
    s: Scenario,
    ranges: Ranges,
    ties: dict[str, str] | None = None,
    objective: str = "time",
    samples: int = WORLDS,
) -> Robust:
    """The robust interval of a scenario over the ranges of its inputs; without any it is the best
    one."""
    ties = ties or {}
    best_s = float(best_interval_s(s, plan_of(s), objective))
    if not ranges:
        return Robust(best_s, best_s, best_s, best_s, *(_no_regret_of(s, objective),) * 2, 0, (), 0)
    costs, bests_s, least = _world_costs(drawn(s, ranges, ties, samples), objective, samples)
    seen = bests_s[np.isfinite(bests_s)]
    low_s, high_s = p5_p95(bests_s, best_s)
    interval_s, _ = least_regret_s(
        costs, least, float(np.min(seen, initial=best_s)), float(np.max(seen, initial=best_s))
    )
    movers = _movers(s, ranges, ties, objective)
    corners, count = _corners(s, ranges, ties, movers[:MOST_CORNERS])
    corner_costs, _, corner_least = _world_costs(corners, objective, count)
    return Robust(
        interval_s,
        best_s,
        low_s,
        high_s,
        lambda at_s: _over(np.mean, regrets_at(costs, least, at_s)),
        lambda at_s: _over(np.max, regrets_at(corner_costs, corner_least, at_s)),
        count,
        tuple(movers),
        samples,
    )


def _no_regret_of(s: Scenario, objective: str) -> Callable[[float], float]:
    """Regret in the one world there is."""
    costs, _, least = _world_costs(s, objective, 1)
    return lambda at_s: _over(np.mean, regrets_at(costs, least, at_s))


def _over(of: Callable[[Any], Any], regrets: NDArray[np.float64]) -> float:
    """A figure of the worlds that have any good interval."""
    seen = regrets[~np.isnan(regrets)]
    return float(of(seen)) if seen.size else np.nan


def _world_costs(
    worlds: Scenario, objective: str, count: int
) -> tuple[Costs, NDArray[np.float64], NDArray[np.float64]]:
    """What an interval costs in each world, each world's best interval, and what that costs."""
    with np.errstate(over="ignore", invalid="ignore"):
        plan = plan_of(worlds)
        best_s = _broadcast(best_interval_s(worlds, plan, objective), count)
        least = _broadcast(cost_at(worlds, plan, objective, best_s), count)

    def costs(interval_s: float) -> NDArray[np.float64]:
        with np.errstate(over="ignore", invalid="ignore"):
            return _broadcast(cost_at(worlds, plan, objective, np.full(count, interval_s)), count)

    return costs, best_s, least


def _broadcast(value: Any, count: int) -> NDArray[np.float64]:
    return np.broadcast_to(np.asarray(value, dtype=float), (count,))


def _movers(s: Scenario, ranges: Ranges, ties: dict[str, str], objective: str) -> list[str]:
    """Inputs that move the best interval when they go through their range alone, the furthest
    first."""
    found = []
    for path in sorted(ranges.keys() - ties.keys()):
        alone = {p: ends for p, ends in ranges.items() if ties.get(p, p) == path}
        ends, count = _corners(s, alone, {p: path for p in alone if p != path}, [path])
        bests_s = _world_costs(ends, objective, count)[1]
        moved = float(np.max(bests_s) / np.min(bests_s)) if np.min(bests_s) > 0 else np.nan
        if moved > _LEAST_MOVE:
            found.append((moved, path))
    return [path for _, path in sorted(found, key=lambda each: (-each[0], each[1]))]


def _corners(
    s: Scenario, ranges: Ranges, ties: dict[str, str], movers: list[str]
) -> tuple[Scenario, int]:
    """Every combination of the ends of some inputs, the others as stated."""
    count = 2 ** len(movers)
    mine = {p: ends for p, ends in ranges.items() if ties.get(p, p) in movers}
    order = {path: figure for figure, path in enumerate(sorted(mine))}
    bits = {order[path]: (np.arange(count) >> i) & 1 for i, path in enumerate(movers)}
    return (
        scenario_at_quantiles(
            s,
            mine,
            {p: path for p, path in ties.items() if p in mine},
            "triangle",
            lambda figure: bits[figure].astype(float),
        ),
        count,
    )
