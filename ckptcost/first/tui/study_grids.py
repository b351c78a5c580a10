"""A study on a screen: each of its tables as a grid, and what it says as paragraphs with a tone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ckptcost.first.present.amounts import DASH
from ckptcost.first.present.grid import Grid, GridHead, Order, Row, Tone
from ckptcost.first.present.words import gate_text
from ckptcost.first.report.study import Column, Study, Table, shown_cells


def grid_of(
    table: Table,
    keys: Sequence[str] = (),
    tone: Callable[[dict[str, Any]], Tone] = lambda row: "",
    first: Sequence[str] = (),
    marked: str | None = None,
) -> Grid:
    """The columns that people are shown; later ones give way first, but for those that go `first`.
    `keys`: what its rows are, else their leading texts; `marked`: the one that is ticked."""
    columns = [column for column in table.columns if column.shown]
    labels, cells, left = shown_cells(table)
    values = [[row.get(column.id) for row in table.rows] for column in columns]
    heads = tuple(
        GridHead(
            column.id,
            label,
            _is_text(column, each),
            0 if place < min(left, 2) or column.id in first else place,
        )
        for place, (column, label, each) in enumerate(zip(columns, labels, values, strict=True))
    )
    names = keys or _distinct([" / ".join(row[:left]) for row in cells])
    orders = zip(*map(_orders, values), strict=True)
    rows = [
        Row(name, tuple(shown), order, tone(of), name == marked)
        for name, shown, order, of in zip(names, cells, orders, table.rows, strict=True)
    ]
    return Grid(heads, rows, table.title, table.note, "Nothing to list here.")


def toned_grid(
    table: Table, tone: Callable[[dict[str, Any]], Tone], first: Sequence[str] = ()
) -> Grid:
    """The same with a tone for each row, whose key is its place."""
    return grid_of(table, [str(place) for place in range(len(table.rows))], tone, first)


def with_columns(table: Table, labels: Mapping[str, str], *more: Column) -> Table:
    """Only the columns that are named, in this order and under these labels; `more`: those that
    the report's table lacks."""
    known = {column.id: column for column in (*table.columns, *more)}
    return table._replace(
        columns=tuple(
            known[name]._replace(label=label, shown=True) for name, label in labels.items()
        )
    )


_RANGE = re.compile(r">?(\d[\d,]*\.?\d*(?:e[+-]?\d+)?)(?:-\d[\d,.e+]*)?")


def _orders(values: Sequence[object]) -> list[Order]:
    """What the cells of a column are sorted by: ranges by their low ends, where all are ranges.

    >>> _orders(["15-20", "", "1-2"]), _orders(["15-20", "as stated"]), _orders([True, None, 2])
    ([15.0, None, 1.0], ['15-20', 'as stated'], [1.0, None, 2.0])
    """
    lows = [_RANGE.fullmatch(value) for value in values if isinstance(value, str) and value]
    if not lows or None in lows:
        return [_order(value) for value in values]
    found = [_RANGE.fullmatch(value) if isinstance(value, str) else None for value in values]
    return [None if low is None else float(low[1].replace(",", "")) for low in found]


def _is_text(column: Column, values: Sequence[object]) -> bool:
    """Whether a column stands at the left: ranges of numbers do not, as numbers do not."""
    if column.unit not in ("", "bool"):
        return False
    said = [value for value in values if isinstance(value, str) and value not in ("", DASH)]
    return not said or not all(map(_RANGE.fullmatch, said))


def _order(value: object) -> Order:
    if value is None or isinstance(value, str):
        return value
    return float(value)  # type: ignore[arg-type]


def _distinct(names: Sequence[str]) -> list[str]:
    """Rows of the same name are told apart by a number."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return out


def paragraphs(study: Study) -> list[tuple[str, Tone]]:
    """What was asked, what follows, whether targets are met, and what to take care of: in the order
    and the words of the text report."""
    from ckptcost.first.report.study_views import SIMULATED

    out: list[tuple[str, Tone]] = [(SIMULATED, "warn")] if study.simulated else []
    out += [(line, "muted") for line in study.about]
    out += [(line, "") for line in study.findings]
    out += [(gate_text(verdict), "good" if verdict.met else "bad") for verdict in study.gates]
    out += [(f"{message} ({code})", "warn") for code, message in study.warnings]
    return out


def tables_of(study: Study) -> list[Grid]:
    """Its tables that people are shown and that have a row."""
    return [grid_of(table) for table in study.tables if table.shown and table.rows]
