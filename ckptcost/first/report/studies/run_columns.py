"""The columns of a run at one interval, which every table of `optimize` shares."""

from __future__ import annotations

from typing import Any

from ckptcost.first.core.outcome import Outcome
from ckptcost.first.core.quantities import BY_ID, QUANTITIES
from ckptcost.first.core.regret import cost_of
from ckptcost.first.jobs.optimize import Optimum, name_of
from ckptcost.first.report.study import Column, hidden

COSTS = {
    "time": "wall time",
    "energy": "energy added",
    "usd": "dollars added",
    "carbon": "emissions added",
}


def stay(objective: str) -> str:
    """The verb of a cost: dollars and emissions are more than one.

    >>> stay("time"), stay("usd")
    ('stays', 'stay')
    """
    return "stay" if objective in ("usd", "carbon") else "stays"


AMOUNTS = (
    Column("goodput", "goodput", "share", "useful training time over wall time"),
    Column("energy", "kWh", "kWh", "energy that checkpoints and failures add"),
    Column("cost", "USD", "USD", "dollars that they add"),
    Column(
        "carbon",
        "kgCO2e",
        "kgCO2e",
        "what the objective carbon minimises: emissions added, location-based",
    ),
    *hidden(
        Column("wall", "wall", "s", "expected duration of the run"),
        Column("gpu_hours", "GPU-h lost", "GPU-h", "GPU-hours lost, failures included"),
        Column("location", "location-based", "kgCO2e", "emissions added, location-based"),
        Column("market", "market-based", "kgCO2e", "emissions added, market-based"),
        Column("embodied", "embodied", "kgCO2e", "embodied share of the GPU time lost"),
        Column("water", "water", "L", "water for cooling added"),
        Column("saves", "saves", "count", "saves in the run"),
        Column("failures", "failures", "count", "expected failures"),
    ),
)
INTERVAL = Column("interval", "interval", "s", "training time between saves")

_OF_BILL = {q.id.removeprefix("emissions_"): q for q in QUANTITIES if not q.metered} | {
    "energy": BY_ID["energy"],
    "gpu_hours": BY_ID["gpu_time_lost"],
}


def amounts_of(outcome: Outcome) -> dict[str, Any]:
    """The columns of AMOUNTS; arrays stay arrays."""
    run = outcome.run
    return {
        "goodput": outcome.goodput,
        **{name: q.people(run.total(q.field)) for name, q in _OF_BILL.items()},
        "carbon": cost_of(outcome, "carbon"),
        "wall": outcome.wall_s,
        "saves": outcome.saves,
        "failures": outcome.failures,
    }


def known_value(value: Any) -> float | None:
    """A number, or None where it is unknown."""
    return None if value != value else float(value)


def row_of(outcome: Outcome) -> dict[str, float | None]:
    """One run as a row."""
    return {name: known_value(value) for name, value in amounts_of(outcome).items()}


def regret_value(share: float) -> float | None:
    """A regret to a hundred-thousandth of a per cent: what is below is the shape of rounding, not
    of the run."""
    return None if share != share else round(share, 7)


def two_digits(value: float | None) -> float | None:
    """What holds of an end of a range that comes from draws, for people; programs get all of it."""
    return None if value is None else float(f"{value:.2g}")


def share_of_draws(fraction: float) -> float:
    """To a whole per cent, which is what holds; all and none are said only where it is all and
    none.

    >>> share_of_draws(0.2168), share_of_draws(0.9987), share_of_draws(1.0), share_of_draws(0.0002)
    (0.22, 0.99, 1.0, 0.01)
    """
    return fraction if fraction in (0.0, 1.0) else min(max(round(fraction, 2), 0.01), 0.99)


def duration_in_two_digits(seconds: float) -> float:
    """Seconds that read as two digits in the unit they are shown in.

    >>> from ckptcost.first.present.amounts import duration
    >>> duration(duration_in_two_digits(45_123.0)), duration(duration_in_two_digits(243.0))
    ('13 h', '240 s')
    """
    unit = next(
        (scale for most, scale in ((10_800.0, 1.0), (172_800.0, 3600.0)) if seconds <= most),
        86_400.0,
    )
    return float(f"{seconds / unit:.2g}") * unit


def where_of(found: Optimum) -> str:
    """On which tier and how, where there is a choice."""
    return f" on {name_of(found.option)}" if len(found.options) > 1 else ""
