"""What lines and sums come to, in people's units: cells and columns of the bill's six quantities,
and what each sum lacks."""

from __future__ import annotations

import math
from typing import Any, Final

from ckptcost.core.quantities import Quantity, in_order
from ckptcost.fleet.figures.figures import Group
from ckptcost.fleet.figures.lines import Amount
from ckptcost.present.words import line_label
from ckptcost.report.study import Column

BILLED: Final = in_order("gpu_time_lost")
"""in the order of a fleet's columns"""


def plain(value: float | None) -> float | None:
    """For a document: neither NaN nor an end that is none."""
    return None if value is None or not math.isfinite(value) else float(value)


def billed(amounts: object, placed: bool) -> dict[str, Any]:
    """The quantities of a line or of totals, in people's units, with their ends."""
    row: dict[str, Any] = {}
    for q in BILLED:
        if placed or q.metered:
            row |= with_ends(q, getattr(amounts, q.field))
    return row


def with_ends(q: Quantity, amount: Amount) -> dict[str, float | None]:
    """One quantity in people's units, by column."""
    ends = {"": amount.value, "_low": amount.low, "_high": amount.high}
    return {q.measure + end: plain(q.people(value)) for end, value in ends.items()}


def billed_columns(placed: bool, ends: bool = False) -> tuple[Column, ...]:
    found = []
    for q in BILLED:
        if not (placed or q.metered):
            continue
        label = q.header.removesuffix(", location")
        found.append(Column(q.measure, label, q.unit, shown=not _is_hidden(q)))
        shown, without = ends and q.id == "energy", "null: without bound, or not known"
        found += [
            Column(f"{q.measure}_low", "low", q.unit, shown=shown),
            Column(f"{q.measure}_high", "high", q.unit, without, shown=shown),
        ]
    return tuple(found)


def _is_hidden(q: Quantity) -> bool:
    return q.derived is not None and not q.objective


def _shown(placed: bool) -> tuple[Quantity, ...]:
    return tuple(q for q in BILLED if not _is_hidden(q) and (placed or q.metered))


def lacking(group: Group, placed: bool) -> dict[str, str]:
    """By what is shown, the lines that are not in its sum, or not all of them. Of what has no
    factor at all there is no sum to be in."""
    found = {}
    for q in _shown(placed):
        some = any(
            amount.known and amount.value
            for line in group.lines
            if (amount := getattr(line, q.field))
        )
        names = group.totals.lacks[q.field] if some or q.metered else ()
        found[f"lacks_{q.measure}"] = "; ".join(sorted(map(line_label, names)))
    return found


def lacking_columns(placed: bool) -> tuple[Column, ...]:
    return tuple(
        Column(
            f"lacks_{q.measure}",
            f"not in {q.measure}",
            meaning="lines that are not in the sum, or not all of them",
            shown=False,
        )
        for q in _shown(placed)
    )
