"""What lines and sums come to, in people's units: cells and columns of the bill's six quantities,
and what each sum lacks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from ckptcost.core.quantities import LineField
from ckptcost.core.units import to_hours, to_kwh
from ckptcost.fleet.figures.figures import Group
from ckptcost.fleet.figures.lines import Amount
from ckptcost.present.words import line_label
from ckptcost.report.study import Column

BILLED: Final[tuple[tuple[str, LineField, str, str, Callable[[float], float]], ...]] = (
    ("gpu_hours", "gpu_s", "GPU-h lost", "GPU-h", to_hours),
    ("kwh", "energy_j", "kWh", "kWh", to_kwh),
    ("usd", "cost_usd", "USD", "USD", float),
    ("kgco2e", "location_kgco2e", "kgCO2e", "kgCO2e", float),
    ("market_kgco2e", "market_kgco2e", "kgCO2e, market", "kgCO2e", float),
    ("embodied_kgco2e", "embodied_kgco2e", "kgCO2e, embodied", "kgCO2e", float),
)
PRICED: Final = ("usd", "kgco2e")
HIDDEN: Final = ("market_kgco2e", "embodied_kgco2e")


def plain(value: float | None) -> float | None:
    """For a document: neither NaN nor an end that is none."""
    return None if value is None or not math.isfinite(value) else float(value)


def billed(amounts: object, placed: bool) -> dict[str, Any]:
    """The quantities of a line or of totals, in people's units, with their ends."""
    row: dict[str, Any] = {}
    for name, attribute, _, _, people in BILLED:
        if not placed and name not in ("gpu_hours", "kwh"):
            continue
        amount: Amount = getattr(amounts, attribute)
        row[name] = plain(people(amount.value))
        row[f"{name}_low"], row[f"{name}_high"] = (
            plain(people(amount.low)),
            plain(people(amount.high)),
        )
    return row


def billed_columns(placed: bool, ends: bool = False) -> tuple[Column, ...]:
    found = []
    for name, _, label, unit, _ in BILLED:
        if not placed and name not in ("gpu_hours", "kwh"):
            continue
        found.append(Column(name, label, unit, shown=name not in HIDDEN))
        shown = ends and name == "kwh"
        found += [
            Column(f"{name}_low", "low", unit, shown=shown),
            Column(f"{name}_high", "high", unit, "null: without bound, or not known", shown=shown),
        ]
    return tuple(found)


def lacking(group: Group, placed: bool) -> dict[str, str]:
    """By what is shown, the lines that are not in its sum, or not all of them. Of what has no
    factor at all there is no sum to be in."""
    found = {}
    for name, attribute, _, _, _ in BILLED:
        if name in HIDDEN or (name in PRICED and not placed):
            continue
        some = any(
            amount.known and amount.value
            for line in group.lines
            if (amount := getattr(line, attribute))
        )
        names = group.totals.lacks[attribute] if some or name not in PRICED else ()
        found[f"lacks_{name}"] = "; ".join(sorted(map(line_label, names)))
    return found


def lacking_columns(placed: bool) -> tuple[Column, ...]:
    return tuple(
        Column(
            f"lacks_{name}",
            f"not in {name}",
            meaning="lines that are not in the sum, or not all of them",
            shown=False,
        )
        for name, *_ in BILLED
        if name not in HIDDEN and (placed or name not in PRICED)
    )
