"""Rows by time and component: a statement's amounts over the hours, or quicker, in which they were
spent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ckptcost.core.hourly import Floats, spread
from ckptcost.core.quantities import QUANTITIES
from ckptcost.report.statement import COLUMNS, Series, Statement, instant, utc

SPREAD = tuple(q for q in QUANTITIES if not (q.derived and q.derived.hourly))
"""what lies in rows as it was spent; the others follow from a row's energy and its hour"""
AMOUNTS = tuple(q.id for q in SPREAD)


class PlacedAmounts(NamedTuple):
    """A component's amounts, each over its own stretch of Unix time; NaN where unknown."""

    component: str
    stretches: Sequence[tuple[float, float]]
    amounts: Mapping[str, Sequence[float]]
    """by quantity: energy, gpu_time_lost, cost, embodied"""


class RowFactors(NamedTuple):
    """Grid factors of every row, in kgCO2e per kWh; None where not known."""

    location: Floats | None
    market: Floats | None


def placed_of(s: Statement, begin_s: float, end_s: float) -> list[PlacedAmounts]:
    """Where the amounts lie: in the rows that are there, else evenly over the whole period."""
    if s.series is None:
        found = []
        for c in s.marginal():
            amounts = {what: [number_or_nan(getattr(c, what).value)] for what in AMOUNTS}
            if any(each[0] for each in amounts.values() if each[0] == each[0]):
                found.append(PlacedAmounts(c.id, [(begin_s, end_s)], amounts))
        return found
    rows: dict[str, list[int]] = {}
    for at, name in enumerate(s.series.component):
        rows.setdefault(name, []).append(at)
    starts = [utc(text).timestamp() for text in s.series.start]
    stretches = [
        (start, start + length) for start, length in zip(starts, s.series.duration_s, strict=True)
    ]
    return [
        PlacedAmounts(
            name,
            [stretches[at] for at in mine],
            {q.id: [number_or_nan(getattr(s.series, q.column)[at]) for at in mine] for q in SPREAD},
        )
        for name, mine in rows.items()
    ]


def series_of(
    placed: Sequence[PlacedAmounts],
    edges: Floats,
    width_s: float,
    factors: RowFactors,
    checkpoints: Floats,
) -> Series:
    """The rows. A component has none where nothing of it happened; the first has all, because it
    carries the checkpoints."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    starts = np.array([instant(each) for each in edges[:-1]], dtype=object)
    lengths = np.diff(edges)
    for n, each in enumerate(placed):
        rows = {what: spread(each.stretches, each.amounts[what], edges) for what in AMOUNTS}
        some = np.any([np.nan_to_num(values) != 0 for values in rows.values()], axis=0)
        keep = np.flatnonzero(some) if n else np.arange(len(lengths))
        columns["start"] += starts[keep].tolist()
        columns["duration_s"] += [round(value, 6) for value in lengths[keep].tolist()]
        columns["component"] += [each.component] * len(keep)
        for q in SPREAD:
            columns[q.column] += _as_list(
                rows[q.id][keep], known=not np.all(np.isnan(each.amounts[q.id]))
            )
        columns["checkpoints"] += checkpoints[keep].tolist() if n == 0 else [0.0] * len(keep)
        for name, factor, sum_name in (
            ("grid_kgco2e_per_kwh", factors.location, "emissions_location_kgco2e"),
            ("market_kgco2e_per_kwh", factors.market, "emissions_market_kgco2e"),
        ):
            at = np.full(len(keep), np.nan) if factor is None else factor[keep]
            columns[name] += _as_list(at)
            columns[sum_name] += _as_list(rows["energy"][keep] * at)
    return Series(width_s=width_s, **columns)


def _as_list(values: Floats, known: bool = True) -> list[float | None]:
    return [value if known and value == value else None for value in values.tolist()]


def number_or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def checkpoints_of(s: Statement, placed: Sequence[PlacedAmounts], edges: Floats) -> Floats:
    if s.series is not None and placed:
        first = placed[0].component
        at = [n for n, name in enumerate(s.series.component) if name == first]
        starts = [utc(s.series.start[n]).timestamp() for n in at]
        stretches = [
            (start, start + s.series.duration_s[n]) for start, n in zip(starts, at, strict=True)
        ]
        return spread(stretches, [s.series.checkpoints[n] for n in at], edges)
    return spread([(float(edges[0]), float(edges[-1]))], [s.totals.checkpoints.value or 0.0], edges)
