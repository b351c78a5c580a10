"""FOCUS 1.2 as CSV: a row for each component and UTC day, for FinOps tools and warehouses.

What a reader has to know, since the format has no place for it:

* These dollars are on the real invoice already. Every row is a memo item of an issuer of its own, without an invoice.
* A run of which the sum of costs is unknown is refused: FOCUS forbids a null cost, and 0 would be a
  claim.
* A component whose cost is unknown has rows all the same, so that every sum of kWh, kgCO2e and
  GPU-hours is the run's. They bill 0, have no price and no quantity (ChargeCategory "Adjustment",
  which may be without), and say so: x_CostOfRow "unknown", "no price" in the description. Every row
  of such a run says that its bill is one of at least: x_CostOfRun, and x_UnpricedComponents.
* Where the run's sum of another quantity is unknown, its cells are empty on every row.
* A price multiplied by its quantity is the cost, always. Lines that hold GPUs are priced by the GPU-hour; where their cost contains
  electricity besides, the unit price is the mean of that day with the electricity in it
  (PricingCategory "Other"), and x_GpuHourPrice is the price of the GPU-hour alone. All other lines
  are priced by the hour that they last.
* Low and high are the row's share of its component's: they add up over one component's rows, not over components.
* A component that the series leaves out (it is zero throughout, or there is no series) is spread evenly over the run.
* Instants have whole seconds there: a run's first second and its last are begun ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.errors import InputError
from ckptcost.exports.focus_columns import (
    AMOUNTS,
    COLUMNS,
    Cell,
    sku_of,
    words_of,
)
from ckptcost.exports.formats import Files
from ckptcost.report.document import Report
from ckptcost.report.parts import Component
from ckptcost.report.statement import SERIES_OF, Statement, instant, utc
from ckptcost.report.to_csv import lines

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

DAY_S = 86400.0
SUMMED = (*AMOUNTS, "checkpoints")


class Pieces(NamedTuple):
    """Parts of components in time, none longer than its UTC day. NaN is null."""

    begin_s: Floats
    end_s: Floats
    component: Places
    """in the list of marginal components"""
    amounts: dict[str, Floats]

    def taken(self, which: Any) -> Pieces:
        return Pieces(
            self.begin_s[which],
            self.end_s[which],
            self.component[which],
            {key: each[which] for key, each in self.amounts.items()},
        )

    def days(self) -> Places:
        return np.floor(self.begin_s / DAY_S).astype(np.intp)


def _midnights(whole: Pieces) -> Pieces:
    """The same, cut where a UTC day ends; amounts evenly."""
    first = whole.days()
    days = np.maximum(np.ceil(whole.end_s / DAY_S).astype(np.intp) - first, 1)
    if not np.any(days > 1):
        return whole
    which = np.repeat(np.arange(len(days)), days)
    later = np.arange(len(which)) - np.repeat(np.cumsum(days) - days, days)
    cut = whole.taken(which)
    begin_s = np.where(later > 0, (first[which] + later) * DAY_S, cut.begin_s)
    end_s = np.minimum((first[which] + later + 1) * DAY_S, cut.end_s)
    long_s = np.where(days[which] > 1, cut.end_s - cut.begin_s, 1.0)
    share = np.where(days[which] > 1, (end_s - begin_s) / long_s, 1.0)
    return Pieces(
        begin_s, end_s, cut.component, {key: each * share for key, each in cut.amounts.items()}
    )


def _pieces(statement: Statement, components: list[Component]) -> Pieces:
    if statement.period_start is None or statement.period_end is None:
        raise InputError(
            "has no dates, and every FOCUS row has a charge period", where=statement.subject.name
        )
    series, place = statement.series, {component.id: n for n, component in enumerate(components)}
    names = series.component if series else []
    dated = set(names)
    rest = [component for component in components if component.id not in dated]
    ends = [utc(statement.period_start).timestamp(), utc(statement.period_end).timestamp()]
    seconds = {text: utc(text).timestamp() for text in set(series.start)} if series else {}
    begin_s = np.array([seconds[text] for text in series.start] if series else [], dtype=float)
    amounts = {}
    for field in AMOUNTS:
        column = SERIES_OF[field]
        amounts[field] = np.array(
            [
                *(getattr(series, column) if series else ()),
                *(getattr(c, field).value for c in rest),
            ],
            dtype=float,
        )
        if getattr(statement.totals, field).value is None:
            amounts[field][:] = np.nan
    saves = [*series.checkpoints] if series else []
    saves += [
        statement.totals.checkpoints.value or 0.0 if not names and n == 0 else 0.0
        for n in range(len(rest))
    ]
    whole = Pieces(
        np.round(np.append(begin_s, [ends[0]] * len(rest)), 3),
        np.round(
            np.append(
                begin_s + np.array(series.duration_s if series else [], dtype=float),
                [ends[1]] * len(rest),
            ),
            3,
        ),
        np.array(
            [
                *(place.get(name, -1) for name in names),
                *(place[component.id] for component in rest),
            ],
            dtype=np.intp,
        ),
        {**amounts, "checkpoints": np.array(saves, dtype=float)},
    )
    return _midnights(whole.taken(whole.component >= 0))


def _sums(of: Places, count: int, values: Floats) -> Floats:
    """Sums by group; NaN where nothing in a group is known."""
    known = ~np.isnan(values)
    sums = np.bincount(of, np.where(known, values, 0.0), count)
    return np.where(np.bincount(of[known], minlength=count) > 0, sums, np.nan)


def _cells(values: Floats) -> list[Cell]:
    return [None if value != value else value for value in values.tolist()]


def _month(day: int) -> tuple[str, str]:
    """The calendar month of a day since 1970.

    >>> _month(20453)
    ('2025-12-01T00:00:00Z', '2026-01-01T00:00:00Z')
    """
    first = datetime.fromtimestamp(day * DAY_S, UTC).replace(day=1)
    later = (first + timedelta(days=31)).replace(day=1)
    return instant(first.timestamp()), instant(later.timestamp())


def _ranges(
    rows: dict[str, list[Cell]],
    sums: dict[str, Floats],
    of: Places,
    hours: Floats,
    components: list[Component],
) -> None:
    """A row's share of its component's low and high: by the amount, by time where that is zero."""
    long = np.bincount(of, hours, len(components))
    for field, ours in AMOUNTS.items():
        quantities = [getattr(component, field) for component in components]
        value = np.array([quantity.value for quantity in quantities], dtype=float)[of]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(value == 0, hours / long[of], sums[field] / value)
        share[np.isnan(sums[field])] = np.nan
        for end in ("low", "high"):
            ends = np.array([getattr(quantity, end) for quantity in quantities], dtype=float)[of]
            rows[f"x_{ours}{end.title()}"] = _cells(ends * share)


def _prices(
    rows: dict[str, list[Cell]],
    sums: dict[str, Floats],
    of: list[int],
    hours: Floats,
    components: list[Component],
) -> None:
    """A quantity with a unit, and the price of one, for each row: their product is the cost."""
    found: dict[str, list[Cell]] = {
        "quantity": [],
        "unit": [],
        "price": [],
        "category": [],
        "id": [],
        "alone": [],
    }
    for at, cost, gpu_hours, hour in zip(
        of, sums["cost"].tolist(), sums["gpu_time_lost"].tolist(), hours.tolist(), strict=True
    ):
        component = components[at]
        if cost != cost:
            for cells in found.values():
                cells.append(None)
            continue
        by_gpu = component.price_unit == "GPU-h" and gpu_hours > 0
        quantity, unit = (
            (gpu_hours, "GPU-Hours") if by_gpu else (hour, "Hours") if hour > 0 else (1.0, "Runs")
        )
        alone = component.unit_price if by_gpu else None
        standard = alone is not None and abs(alone * quantity - cost) <= 1e-10 * cost
        found["quantity"].append(quantity)
        found["unit"].append(unit)
        found["price"].append(alone if standard else cost / quantity)
        found["category"].append("Standard" if standard else "Other")
        found["id"].append(f"{sku_of(component)}/{unit}")
        found["alone"].append(alone)
    rows["PricingQuantity"] = rows["ConsumedQuantity"] = found["quantity"]
    rows["PricingUnit"] = rows["ConsumedUnit"] = found["unit"]
    for name in ("ListUnitPrice", "ContractedUnitPrice"):
        rows[name] = rows[f"PricingCurrency{name}"] = found["price"]
    rows["PricingCategory"], rows["SkuPriceId"], rows["x_GpuHourPrice"] = (
        found["category"],
        found["id"],
        found["alone"],
    )
    rows["SkuPriceDetails"] = [
        None if each is None else f'{{"x_GpuHourPrice": {each!r}}}' for each in found["alone"]
    ]


def _saves(days: Places, pieces: Pieces) -> list[Cell]:
    """Those of a day on the first of its rows, or of the next day that has rows, or of the last."""
    of_day, first = np.unique(days, return_index=True)
    count = len(of_day)
    at = np.minimum(np.searchsorted(of_day, pieces.days()), count - 1)
    cells: list[Cell] = [None] * len(days)
    for row, cell in zip(
        first.tolist(), _cells(_sums(at, count, pieces.amounts["checkpoints"])), strict=True
    ):
        cells[row] = cell
    return cells


def _rows(statement: Statement) -> Iterator[tuple[Cell, ...]]:
    components = statement.marginal()
    pieces = _pieces(statement, components)
    priced = ~np.isnan(pieces.amounts["cost"])
    known = pieces.taken(
        priced | np.any([np.nan_to_num(pieces.amounts[each]) != 0 for each in AMOUNTS], axis=0)
    )
    keys, group = np.unique(known.days() * len(components) + known.component, return_inverse=True)
    count, days, of = len(keys), keys // len(components), keys % len(components)
    sums = {each: _sums(group, count, known.amounts[each]) for each in SUMMED}
    begin_s, end_s = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(begin_s, group, np.floor(known.begin_s))
    np.maximum.at(end_s, group, np.maximum(np.ceil(known.end_s), np.floor(known.begin_s) + 1.0))
    hours = np.bincount(group, known.end_s - known.begin_s, count) / 3600.0
    lacking = set(pieces.component[~priced].tolist())
    lacks = np.bincount(group, np.isnan(known.amounts["cost"]), count) > 0
    told = np.where(np.isnan(sums["cost"]), "unknown", np.where(lacks, "at least", "known"))
    unpriced = [component.id for n, component in enumerate(components) if n in lacking]
    words = [words_of(statement, component, unpriced) for component in components]
    months = {day: _month(day) for day in set(days.tolist())}
    rows: dict[str, list[Cell]] = {
        name: [words[at][name] for at in of.tolist()] for name in words[0]
    }
    rows["BillingPeriodStart"] = [months[day][0] for day in days.tolist()]
    rows["BillingPeriodEnd"] = [months[day][1] for day in days.tolist()]
    rows["ChargePeriodStart"] = [instant(each) for each in begin_s.tolist()]
    rows["ChargePeriodEnd"] = [instant(each) for each in end_s.tolist()]
    rows["x_CostOfRow"] = told.tolist()
    for at in np.flatnonzero(told == "unknown").tolist():
        rows["ChargeCategory"][at] = "Adjustment"
        rows["ChargeDescription"][at] = str(rows["ChargeDescription"][at]).replace(
            "(memo)", "(memo) no price:", 1
        )
    for name in (
        "BilledCost",
        "ContractedCost",
        "EffectiveCost",
        "ListCost",
        "PricingCurrencyEffectiveCost",
    ):
        rows[name] = np.nan_to_num(sums["cost"]).tolist()
    for field, ours in AMOUNTS.items():
        if field != "cost":
            rows[f"x_{ours}"] = _cells(sums[field])
    _ranges(rows, sums, of, hours, components)
    _prices(rows, sums, of.tolist(), hours, components)
    rows["x_Checkpoints"] = _saves(days, pieces)
    return zip(*[rows[name] for name in COLUMNS], strict=True)


def export(document: Report) -> Files:
    written = [lines([COLUMNS])]
    for statement in document.statements:
        written.append(lines(_rows(statement)))
    return {"focus.csv": written}
