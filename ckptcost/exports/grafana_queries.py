"""What a dashboard and rules ask Prometheus: queries over the names in `metric_names`, each figure
in the unit that people read.

A sum is of one family, and location- and market-based carbon are two, so no query adds them. Of a
figure that several places serve, or that changed its basis, the largest copy counts.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from ckptcost.core.units import HOUR_S, KWH_J
from ckptcost.exports import metric_names as names
from ckptcost.exports.metric_names import Family

CHOSEN, OVER_RANGE, IN_WINDOW = 'run=~"$run"', "last_over_time([$__range])", "increase([$window])"


class Shown(NamedTuple):
    """A counter as people read it."""

    id: str
    title: str
    unit: str
    """Grafana's"""
    family: Family
    divisor: float
    rated: bool = False
    """energy times a factor"""

    def joined(self, change: str, where: str, by: str) -> str:
        """Its counters after `change`, one copy of each, added up. Saves have no component: the
        label is then empty for all.

        >>> SHOWN["gpu_hours_lost"].joined("increase([1d])", "", "run")
        'sum by (run) (max by (run, run_id, component) (increase(ckptcost_gpu_lost_seconds_total[1d]))) / 3600'
        """
        series = self.family.sample + (f"{{{where}}}" if where else "")
        total = (
            f"sum by ({by}) (max by (run, run_id, component)"
            f" ({change.replace('([', f'({series}[')}))"
        )
        return total if self.divisor == 1 else f"{total} / {self.divisor:.0f}"


SHOWN = {
    each.id: each
    for each in (
        Shown("energy_kwh", "Energy", "kwatth", names.ENERGY, KWH_J),
        Shown("gpu_hours_lost", "GPU-hours lost", "suffix: GPU-h", names.GPU_SECONDS, HOUR_S),
        Shown("cost_usd", "Cost", "currencyUSD", names.COST, 1.0),
        Shown(
            "emissions_location_kg",
            "Emissions, location-based",
            "suffix: kgCO2e",
            names.LOCATION,
            names.KG_G,
            rated=True,
        ),
        Shown(
            "emissions_market_kg",
            "Emissions, market-based",
            "suffix: kgCO2e",
            names.MARKET,
            names.KG_G,
            rated=True,
        ),
        Shown("embodied_kg", "Embodied carbon", "suffix: kgCO2e", names.EMBODIED, names.KG_G),
        Shown("checkpoints", "Checkpoints", "short", names.CHECKPOINTS, 1.0),
    )
}


def total(shown: Shown, by: str) -> str:
    return shown.joined(OVER_RANGE, CHOSEN, by)


def per_save(shown: Shown) -> str:
    return f"{total(shown, 'run, run_id')} / ({total(SHOWN['checkpoints'], 'run, run_id')} > 0)"


def factor(shown: Shown) -> str:
    """gCO2e per kWh as it came out, over the components whose carbon is known."""
    each = f"max by (run, run_id, component) ({OVER_RANGE.replace('([', '({}[')})"
    grams = each.format(f"{shown.family.sample}{{{CHOSEN}}}")
    joules = each.format(f"{names.ENERGY.sample}{{{CHOSEN}}}")
    return f"sum by (run) ({grams}) / (sum by (run) ({joules} and {grams}) > 0) * {KWH_J:.0f}"


def bound(shown: Shown, end: Literal["low", "high"]) -> str:
    family = names.bound(shown.family, end, "run")
    value = f"max by (run, run_id) (last_over_time({family.name}{{{CHOSEN}}}[$__range]))"
    return value if shown.divisor == 1 else f"{value} / {shown.divisor:.0f}"


def share() -> str:
    lost = total(SHOWN["gpu_hours_lost"], "run, run_id").replace(f" / {HOUR_S:.0f}", "")
    return (
        f"{lost} / ({labels(names.ACCELERATORS, 'run, run_id')} *"
        f" {labels(names.RUN_LENGTH, 'run, run_id')} > 0)"
    )


def about() -> str:
    return labels(
        names.STATEMENT,
        "run, run_id, kind, simulated, tier, site, grid_zone, grid_method, method_version,"
        " inventory_treatment",
    )


def labels(family: Family, by: str) -> str:
    return f"max by ({by}) (last_over_time({family.sample}{{{CHOSEN}}}[$__range]))"
