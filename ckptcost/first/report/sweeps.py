"""A sweep as CSV, JSON or a table: one row a grid point, its axes first, then the columns of a
case. Written a chunk at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ckptcost.first.axes import Over
from ckptcost.first.catalog.keys import meaning_of, unit_of
from ckptcost.first.core.quantities import EVERYDAY
from ckptcost.first.errors import InputError
from ckptcost.first.jobs.sweep import Sweep, SweepPiece
from ckptcost.first.present.amounts import count, quantity
from ckptcost.first.present.words import METHODS
from ckptcost.first.report.canonical import tidy
from ckptcost.first.report.rows import COLUMNS, SWEPT_WORDS, columns_of, swept_words
from ckptcost.first.report.rows import unit_of as rows_unit_of
from ckptcost.first.report.study import Column, Table
from ckptcost.first.report.to_csv import lines, safe
from ckptcost.first.report.writers import table_markdown, table_text

MOST_TEXT_ROWS = 2000
SCHEMA_NAME, SCHEMA_VERSION = "ckptcost.sweep", "1.0"

_SHOWN = {
    "stall": "stall_s",
    "goodput": "goodput",
    **{q.header.partition(",")[0]: f"run_{q.column}" for q in EVERYDAY},
}


def _cells(piece: SweepPiece) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Header and rows; an axis called like a column (saves) takes its place."""
    named = {
        **piece.axes,
        **{
            name: value
            for name, value in columns_of(piece.outcome).items()
            if name not in piece.axes
        },
    }
    named |= swept_words(piece)
    return list(named), zip(*(_column(value, piece.rows) for value in named.values()), strict=True)


def _column(value: Any, rows: int) -> list[Any]:
    if isinstance(value, str):
        return [safe(value)] * rows
    return [tidy(each) for each in np.broadcast_to(value, (rows,)).tolist()]


def to_csv(sweep: Sweep) -> Iterator[str]:
    """Numbers in the unit their column's name ends in; axes in base units, as `axes_of` says."""
    first = True
    for piece in sweep.pieces:
        header, rows = _cells(piece)
        yield lines([header, *rows] if first else rows)
        first = False


def records(pieces: Iterable[SweepPiece]) -> Iterator[dict[str, Any]]:
    """One dictionary a row."""
    for piece in pieces:
        header, rows = _cells(piece)
        for row in rows:
            yield dict(zip(header, row, strict=True))


def axes_of(sweep: Sweep) -> list[dict[str, str]]:
    """What each axis is and the base unit its numbers are in."""
    found = []
    for over in sweep.overs:
        unit, meaning = "", "catalogue entry or choice"
        if not isinstance(over.values[0], str):
            unit, meaning = unit_of(over.section, over.key), meaning_of(over.section, over.key)
        key = f"{over.section}.{over.key}"
        found.append({"name": over.name, "input": key, "unit": unit, "meaning": meaning})
    return found


def to_json(sweep: Sweep) -> Iterator[str]:
    """The document ckptcost.sweep 1.0."""
    head = {
        "schema_name": SCHEMA_NAME,
        "schema_version": SCHEMA_VERSION,
        "axes": axes_of(sweep),
        "columns": COLUMNS | SWEPT_WORDS,
    }
    yield json.dumps(head, indent=1)[:-2] + ',\n "rows": ['
    for i, row in enumerate(records(sweep.pieces)):
        yield (",\n  " if i else "\n  ") + json.dumps(row, allow_nan=False)
    yield "\n ]\n}\n"


def to_table(sweep: Sweep, form: str) -> str:
    """Text of 80 columns, or Markdown."""
    rows = list(islice(records(sweep.pieces), MOST_TEXT_ROWS + 1))
    if len(rows) > MOST_TEXT_ROWS:
        raise InputError(
            f"more than {MOST_TEXT_ROWS:,} rows make no readable table",
            where="--format",
            remedy="use -f csv or -f json",
        )
    axes = [Column(over.name, over.name) for over in sweep.overs]
    results = [Column(name, label, rows_unit_of(name)) for label, name in _SHOWN.items()]
    named = [
        row | {over.name: _value(over, row[over.name]) for over in sweep.overs} for row in rows
    ]
    table = Table("sweep", "", (*axes, *results), named, _note(sweep, rows))
    write = table_markdown if form == "md" else table_text
    return "\n".join(write(table)) + "\n"


def _note(sweep: Sweep, rows: Sequence[dict[str, Any]]) -> str:
    """What is left out, and what is not to be held against what."""
    lacking = dict.fromkeys(
        f"{what}: {row[f'{what}_without']}"
        for row in rows
        for what in ("energy", "cost")
        if row[f"{what}_without"]
    )
    notes = ["left out because unknown: " + "; ".join(lacking)] if lacking else []
    if len(sweep.grid_methods) > 1:
        counted = " and of ".join(METHODS[method] for method in sweep.grid_methods)
        notes.append(
            f"kgCO2e: grid factors of {counted}; hold no row's against one of the other method"
        )
    return ". ".join(notes)


def _value(over: Over, value: Any) -> str:
    if isinstance(value, str):
        return value
    unit = unit_of(over.section, over.key)
    return quantity(value, unit) if unit else count(value)
