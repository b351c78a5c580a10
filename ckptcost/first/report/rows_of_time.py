"""Rows by time and component: a statement's amounts over the hours, or quicker, in which they were
spent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ckptcost.first.core.hourly import Floats, spread
from ckptcost.first.core.quantities import QUANTITIES
from ckptcost.first.report.statement import COLUMNS, Series, Statement, instant, utc

SPREAD = tuple(q for q in QUANTITIES if not (q.derived and q.derived.hourly))
"""what lies in rows as it was spent; the others follow from a row's energy and its hour"""
AMOUNTS = tuple(q.id for q in SPREAD)


class PlacedAmounts(NamedTuple):
    """A component's amounts, each over its own stretch of Unix time; NaN where unknown."""

    component: str
    stretches: Sequence[tuple[float, float]]
    amounts: Mapping[str, Sequence[float]]
    """by quantity: energy, gpu_time_lost, cost, embodied"""

    @property
    def says_anything(self) -> bool:
        """Whether an amount is known and not nothing."""
        return any(x and x == x for parts in self.amounts.values() for x in parts)


class RowFactors(NamedTuple):
    """Grid factors of every row, in kgCO2e per kWh; None where not known."""

    location: Floats | None
    market: Floats | None


def placed_of(s: Statement, begin_s: float, end_s: float) -> list[PlacedAmounts]:
    """Where the amounts lie: in the rows that are there, else evenly over the whole period."""
    if s.series is None:
        found = [
            PlacedAmounts(
                c.id,
                [(begin_s, end_s)],
                {what: [number_or_nan(getattr(c, what).value)] for what in AMOUNTS},
            )
            for c in s.marginal()
        ]
        return [each for each in found if each.says_anything]
    rows: dict[str, list[int]] = {}
    for at, name in enumerate(s.series.component):
        rows.setdefault(name, []).append(at)
    stretches = _stretches(s.series, range(len(s.series.start)))
    return [
        PlacedAmounts(
            name,
            [stretches[at] for at in mine],
            {q.id: [number_or_nan(getattr(s.series, q.column)[at]) for at in mine] for q in SPREAD},
        )
        for name, mine in rows.items()
    ]


def _stretches(series: Series, at: Iterable[int]) -> list[tuple[float, float]]:
    """From when to when some of its rows are."""
    begins = [(utc(series.start[n]).timestamp(), series.duration_s[n]) for n in at]
    return [(begin_s, begin_s + length_s) for begin_s, length_s in begins]


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
    by_time = (
        ("grid_kgco2e_per_kwh", factors.location, "emissions_location_kgco2e"),
        ("market_kgco2e_per_kwh", factors.market, "emissions_market_kgco2e"),
    )
    for n, each in enumerate(placed):
        rows = {what: spread(each.stretches, each.amounts[what], edges) for what in AMOUNTS}
        some = np.any(np.nan_to_num([*rows.values()]) != 0, axis=0)
        keep = np.arange(len(lengths)) if n == 0 else np.flatnonzero(some)
        columns["start"] += starts[keep].tolist()
        columns["duration_s"] += [round(value, 6) for value in lengths[keep].tolist()]
        columns["component"] += [each.component] * len(keep)
        for q in SPREAD:
            known = not np.all(np.isnan(each.amounts[q.id]))
            columns[q.column] += _as_list(rows[q.id][keep], known)
        columns["checkpoints"] += checkpoints[keep].tolist() if n == 0 else [0.0] * len(keep)
        for name, factor, sum_name in by_time:
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
        return spread(_stretches(s.series, at), [s.series.checkpoints[n] for n in at], edges)
    return spread([(float(edges[0]), float(edges[-1]))], [s.totals.checkpoints.value or 0.0], edges)
