"""What a run is judged by: one name for each result that a target, a budget, a comparison or a
front can speak of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from ckptcost.core.bill import Quantity
from ckptcost.core.domain import Number
from ckptcost.core.numeric import ratio
from ckptcost.core.outcome import Outcome
from ckptcost.core.units import DAY_S


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


BILLED: dict[str, Quantity] = {
    "gpu_hours": "gpu_s",
    "kwh": "energy_j",
    "usd": "cost_usd",
    "kgco2e": "location_kgco2e",
    "market_kgco2e": "market_kgco2e",
    "embodied_kgco2e": "embodied_kgco2e",
}
"""measures that are a total of the run's bill, and which"""


def _billed(name: str, label: str, unit: str) -> Measure:
    return Measure(name, label, unit, "low", lambda outcome: outcome.run.total(BILLED[name]))


MEASURES: dict[str, Measure] = {
    m.id: m
    for m in (
        Measure("goodput", "goodput", "", "high", lambda o: o.goodput),
        Measure("wall", "duration of the run", "s", "low", lambda o: o.wall_s),
        _billed("gpu_hours", "GPU-hours lost", "gpu_s"),
        _billed("kwh", "energy added", "j"),
        _billed("usd", "cost added", "usd"),
        _billed("kgco2e", "emissions added, location-based", "kgco2e"),
        _billed("market_kgco2e", "emissions added, market-based", "kgco2e"),
        _billed("embodied_kgco2e", "embodied share of the GPU time lost", "kgco2e"),
        Measure("stall", "training held up by a save", "s", "low", lambda o: o.mean_stall_s),
        Measure("interval", "training time between saves", "s", "low", lambda o: o.interval_s),
        Measure("saves", "saves in the run", "", "low", lambda o: o.saves),
        Measure("saves_per_day", "saves in a day without failures", "", "low", saves_per_day),
        Measure("failures", "failures in the run", "", "low", lambda o: o.failures),
    )
}
