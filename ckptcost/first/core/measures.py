"""What a run is judged by: one name for each result that a target, a budget, a comparison or a
front can speak of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from ckptcost.first.core.domain import Number
from ckptcost.first.core.numeric import ratio
from ckptcost.first.core.outcome import Outcome
from ckptcost.first.core.quantities import Quantity, in_order
from ckptcost.first.core.units import DAY_S


class Measure(NamedTuple):
    """One result of a run, in base units."""

    id: str
    label: str
    unit: str
    """the suffix of `core.units.UNITS` its value is in"""
    better: Literal["high", "low"]
    of: Callable[[Outcome], Number]


def saves_per_day(outcome: Outcome) -> Number:
    """Saves in a day of the failure-free rhythm: one each interval and stall."""
    return ratio(DAY_S, outcome.interval_s + outcome.mean_stall_s)


def _total(q: Quantity) -> Measure:
    return Measure(q.measure, q.added, q.base, "low", lambda outcome: outcome.run.total(q.field))


BILLED = {q.measure: q for q in in_order("gpu_time_lost")}
"""measures that are a total of the run's bill"""
MEASURES: dict[str, Measure] = {
    m.id: m
    for m in (
        Measure("goodput", "goodput", "", "high", lambda o: o.goodput),
        Measure("wall", "duration of the run", "s", "low", lambda o: o.wall_s),
        *map(_total, BILLED.values()),
        Measure("stall", "training held up by a save", "s", "low", lambda o: o.mean_stall_s),
        Measure("interval", "training time between saves", "s", "low", lambda o: o.interval_s),
        Measure("saves", "saves in the run", "", "low", lambda o: o.saves),
        Measure("saves_per_day", "saves in a day without failures", "", "low", saves_per_day),
        Measure("failures", "failures in the run", "", "low", lambda o: o.failures),
    )
}
