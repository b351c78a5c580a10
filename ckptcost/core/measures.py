"""What a run is judged by: one name for each result that a target, a budget, a comparison or a front can speak of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

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


MEASURES: dict[str, Measure] = {
    m.id: m
    for m in (
        Measure("goodput", "goodput", "", "high", lambda o: o.goodput),
        Measure("wall", "duration of the run", "s", "low", lambda o: o.wall_s),
        Measure("gpu_hours", "GPU-hours lost", "gpu_s", "low", lambda o: o.run.total("gpu_s")),
        Measure("kwh", "energy added", "j", "low", lambda o: o.run.total("energy_j")),
        Measure("usd", "cost added", "usd", "low", lambda o: o.run.total("cost_usd")),
        Measure("kgco2e", "emissions added, location-based", "kgco2e", "low", lambda o: o.run.total("location_kgco2e")),
        Measure("market_kgco2e", "emissions added, market-based", "kgco2e", "low", lambda o: o.run.total("market_kgco2e")),
        Measure("embodied_kgco2e", "embodied share of the GPU time lost", "kgco2e", "low", lambda o: o.run.total("embodied_kgco2e")),
        Measure("stall", "training held up by a save", "s", "low", lambda o: o.mean_stall_s),
        Measure("interval", "training time between saves", "s", "low", lambda o: o.interval_s),
        Measure("saves", "saves in the run", "", "low", lambda o: o.saves),
        Measure("saves_per_day", "saves in a day without failures", "", "low", saves_per_day),
        Measure("failures", "failures in the run", "", "low", lambda o: o.failures),
    )
}
