"""Which amounts of a run, or of one save, the tiers are held against each other by, and which kgCO2e are meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ckptcost.core.bill import Quantity
from ckptcost.core.domain import Number
from ckptcost.core.outcome import Outcome
from ckptcost.core.regret import cost_of
from ckptcost.report.rows import columns_of

CARBON = "carbon_kgco2e"
"""behind run_: what the objective carbon minimises and `optimize` prints, location-based with the embodied share where that is known"""
COUNTED = {"time": "gpu_hours", "energy": "energy_kwh", "usd": "cost_usd", "carbon": CARBON}
"""what the ratio to the baseline is of, by objective; lost GPU-hours stand for time, which is nearly the same for every tier"""
UNITS = {
    "gpu_hours": "GPU-h",
    "energy_kwh": "kWh",
    "cost_usd": "USD",
    "location_kgco2e": "kgCO2e",
    CARBON: "kgCO2e",
}
QUANTITIES: dict[str, Quantity] = {
    "gpu_hours": "gpu_s",
    "energy_kwh": "energy_j",
    "cost_usd": "cost_usd",
    "location_kgco2e": "location_kgco2e",
    CARBON: "location_kgco2e",
}
"""of a bill, whose unknown lines an amount lacks"""
_RUN = ("gpu_hours", "energy_kwh", "cost_usd", CARBON)
AMOUNTS: dict[Literal["best", "asked", "save"], tuple[str, ...]] = {
    "best": _RUN,
    "asked": _RUN,
    "save": ("gpu_hours", "energy_kwh", "cost_usd", "location_kgco2e"),
}
"""columns; of one save no command prints kgCO2e with the embodied share"""
RANKS = {"gpu_hours": 4, "energy_kwh": 3, "cost_usd": 2, "location_kgco2e": 5, CARBON: 5}
"""which columns give way first, but for the one that is asked about"""


def amounts_of(outcome: Outcome) -> dict[str, Number]:
    """The columns of a run, and what it emits in all; arrays stay arrays."""
    return {**columns_of(outcome), f"run_{CARBON}": cost_of(outcome, "carbon")}


def carbon_said(outcomes: Iterable[Outcome | None]) -> str:
    """Which kgCO2e of runs are shown, in every table of them."""
    embodied = any(
        bool(run.run.total("embodied_kgco2e") > 0) for run in outcomes if run is not None
    )
    return "location-based with embodied" if embodied else "location-based"


def carbon_unit(said: str) -> str:
    """The unit where there is little room.

    >>> carbon_unit("location-based with embodied"), carbon_unit("location-based")
    ('kgCO2e with embodied', 'kgCO2e location-based')
    """
    return f"{UNITS[CARBON]} {said.removeprefix('location-based ')}"
