"""What is counted of checkpoints: the quantities of every bill, declared here and nowhere else.

A line of a bill holds one number of each in base units; people read it in `unit`. A further
quantity is one more row here, with what it is a product of, and a field of the lines.

Location-based and market-based carbon stay apart; embodied carbon is a third figure, never folded
into either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from ckptcost.first.core.domain import Number, Scenario
from ckptcost.first.core.units import HOUR_S, KWH_J


def litres(energy_j: Number, water_l_per_j: Number, pue: Number = 1.0) -> Number:
    """Water used on site for energy at the facility. A site's factor (WUE, The Green Grid) is for
    each kWh of IT equipment, for which the facility draws PUE times as much.

    >>> round(litres(energy_j=1.15 * 3.6e6, water_l_per_j=1.8 / 3.6e6, pue=1.15), 9)
    1.8
    """
    return energy_j * (water_l_per_j / pue)


def operational_kgco2e(energy_j: Number, kgco2e_per_j: Number) -> Number:
    """Emissions of using energy.

    >>> operational_kgco2e(energy_j=5e8, kgco2e_per_j=1e-7)
    50.0
    """
    return energy_j * kgco2e_per_j


def embodied_kgco2e(gpu_s: Number, kgco2e_per_gpu_s: Number) -> Number:
    """Share of making the hardware that the time takes up: M = TE * TS * RS
    (SCI, ISO/IEC 21031)"""
    return gpu_s * kgco2e_per_gpu_s


LineField = Literal[
    "energy_j",
    "gpu_s",
    "cost_usd",
    "location_kgco2e",
    "market_kgco2e",
    "embodied_kgco2e",
    "water_l",
]
"""of a bill's line, in base units"""


class Derived(NamedTuple):
    """A quantity that follows from joules or GPU-seconds and one rate of the place."""

    of: Literal["energy", "gpu_time_lost"]
    product: Callable[[Number, Number], Number]
    rate: Callable[[Scenario], Number]
    hourly: bool = False
    """the rate is another one at another hour"""


class Quantity(NamedTuple):
    id: str
    """in documents and exports"""
    field: LineField
    measure: str
    """in targets, budgets, comparisons and fleets"""
    unit: str
    """what people read it in"""
    per_unit: float
    """base units in one of `unit`"""
    base: str
    """the suffix of `core.units.UNITS` that its base values are in"""
    column: str
    """of tables by case, by save and by time"""
    label: str
    added: str
    """what a run has more of for its checkpoints and failures"""
    header: str
    """of a column, unit and kind"""
    rests_on: tuple[str, ...] = ()
    """the place's inputs and prices that it is a product of, besides seconds and watts"""
    objective: str = ""
    """whose best interval is that of least of it"""
    metered: bool = False
    """read off meters and clocks; else it follows from what is"""
    derived: Derived | None = None

    def people(self, value: Any) -> Any:
        """A base value, or an array of them, in `unit`."""
        return value / self.per_unit


QUANTITIES = (
    Quantity(
        "energy",
        "energy_j",
        "kwh",
        "kWh",
        KWH_J,
        "j",
        "energy_kwh",
        "energy",
        "energy added",
        "kWh",
        ("site.pue",),
        objective="energy",
        metered=True,
    ),
    Quantity(
        "gpu_time_lost",
        "gpu_s",
        "gpu_hours",
        "GPU-h",
        HOUR_S,
        "gpu_s",
        "gpu_hours",
        "GPU time lost",
        "GPU-hours lost",
        "GPU-h lost",
        metered=True,
    ),
    Quantity(
        "cost",
        "cost_usd",
        "usd",
        "USD",
        1.0,
        "usd",
        "cost_usd",
        "cost",
        "cost added",
        "USD",
        ("site.pue", "site.tariff", "cluster.gpu_price"),
        objective="usd",
    ),
    Quantity(
        "emissions_location",
        "location_kgco2e",
        "kgco2e",
        "kgCO2e",
        1.0,
        "kgco2e",
        "location_kgco2e",
        "emissions, location-based",
        "emissions added, location-based",
        "kgCO2e, location",
        ("site.pue", "site.grid_location"),
        objective="carbon",
        derived=Derived("energy", operational_kgco2e, lambda s: s.site.kgco2e_per_j, True),
    ),
    Quantity(
        "emissions_market",
        "market_kgco2e",
        "market_kgco2e",
        "kgCO2e",
        1.0,
        "kgco2e",
        "market_kgco2e",
        "emissions, market-based",
        "emissions added, market-based",
        "kgCO2e, market",
        ("site.pue", "site.grid_market"),
        derived=Derived("energy", operational_kgco2e, lambda s: s.site.market_kgco2e_per_j, True),
    ),
    Quantity(
        "embodied",
        "embodied_kgco2e",
        "embodied_kgco2e",
        "kgCO2e",
        1.0,
        "kgco2e",
        "embodied_kgco2e",
        "embodied share of the GPU time lost",
        "embodied share of the GPU time lost",
        "kgCO2e, embodied",
        ("cluster.gpu_embodied",),
        derived=Derived(
            "gpu_time_lost", embodied_kgco2e, lambda s: s.cluster.embodied_kgco2e_per_gpu_s
        ),
    ),
    Quantity(
        "water",
        "water_l",
        "water_l",
        "L",
        1.0,
        "l",
        "water_l",
        "water for cooling",
        "water for cooling added",
        "L, water",
        ("site.pue", "site.water"),
        derived=Derived(
            "energy",
            operational_kgco2e,
            lambda s: litres(1.0, s.site.water_l_per_j, s.site.pue),
        ),
    ),
)
"""in the order of a line's fields"""
FIELDS = tuple(q.field for q in QUANTITIES)
BY_ID = {q.id: q for q in QUANTITIES}
BY_OBJECTIVE = {q.objective: q for q in QUANTITIES if q.objective}
_READ_IN = {q.base: q for q in QUANTITIES}


def unit_of_people(base: str) -> str:
    """What people read values of a base unit in.

    >>> unit_of_people("j"), unit_of_people("s")
    ('kWh', 's')
    """
    return _READ_IN[base].unit if base in _READ_IN else base


def in_people(value: Any, base: str) -> Any:
    """A value in a base unit, or an array of them, in what people read it in."""
    return _READ_IN[base].people(value) if base in _READ_IN else value


def pick(*ids: str) -> tuple[Quantity, ...]:
    """Some of them, in an order of one's own.

    >>> [q.unit for q in pick("gpu_time_lost", "energy")]
    ['GPU-h', 'kWh']
    """
    return tuple(BY_ID[name] for name in ids)


def in_order(*ids: str) -> tuple[Quantity, ...]:
    """All of them, these before the others.

    >>> [q.measure for q in in_order("cost")]
    ['usd', 'kwh', 'gpu_hours', 'kgco2e', 'market_kgco2e', 'embodied_kgco2e', 'water_l']
    """
    return pick(*ids, *(q.id for q in QUANTITIES if q.id not in ids))


DERIVED = tuple(q.derived for q in QUANTITIES if q.derived)


def derivation(s: Scenario) -> Callable[[Number, Number], list[Number]]:
    """What follows from joules and GPU-seconds in this place, in the order of a line's last
    fields."""
    rates = [(d.of == "energy", d.product(1.0, d.rate(s))) for d in DERIVED]

    def of(energy_j: Number, gpu_s: Number) -> list[Number]:
        return [(energy_j if of_energy else gpu_s) * rate for of_energy, rate in rates]

    return of


IN_DOCUMENTS = in_order("energy", "emissions_location", "emissions_market", "embodied")
"""in the order of documents"""
EVERYDAY = pick("gpu_time_lost", "energy", "cost", "emissions_location")
"""those that short tables and sentences show"""
