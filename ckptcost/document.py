"""An Answer as a JSON document of the schema ckptcost.answer/3, with every figure that went in.

Numbers of tables are in the units that their keys name; those of inputs are in SI and exact. null
is "not known", and "inf" has no end. Types are in `reading`, which costs 100 ms to import.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import isfinite, nan
from typing import TYPE_CHECKING, Any

from ckptcost import __version__
from ckptcost.answer import SCHEMA, Answer, Cell, Plot, Quantity, Range, Say, Table, entries
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.units import per

if TYPE_CHECKING:
    from ckptcost.reading import Document

ALL = "all"
"""instead of the names of all cases"""
PEDIGREE = [each.name for each in fields(Figure) if each.name not in ("value", "low", "high")]


def to_json(answer: Answer) -> str:
    """The whole answer; a row a line, so that two documents can be compared by lines."""
    return _lines(document_of(answer), depth=4)


def read_answer(path: str) -> Document:
    """A document that somebody saved; a complaint in one line if it is none."""
    from ckptcost.reading import read

    return read(path)


def document_of(answer: Answer) -> dict[str, Any]:
    figures, words = _inputs(answer.cases)
    return {
        "schema": SCHEMA,
        "tool": __version__,
        "question": answer.question,
        "command": answer.command,
        "title": answer.title,
        "about": answer.about,
        "says": _says(answer.says),
        "tables": _tables(answer.tables),
        "notes": _says(answer.notes),
        "cautions": [each._asdict() | {"cases": [*each.cases]} for each in answer.cautions],
        "missed": answer.missed,
        "plots": [_plot(each) for each in answer.plots],
        "draws": answer.draws,
        "cases": [*answer.cases],
        "options": answer.options,
        "inputs": figures,
        "words": words,
        "scenarios": _scenarios(answer.cases),
    }


# --- what is printed ------------------------------------------------------------------------------


def _says(says: Sequence[Say]) -> list[dict[str, str]]:
    return [{k: v for k, v in say._asdict().items() if v or k == "words"} for say in says]


def _tables(tables: Sequence[Table]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for table in tables:
        name = table.name if table.name not in found else f"{table.name}_{len(found)}"
        columns = [
            {k: v for k, v in column._asdict().items() if (k, v) != ("screen", "value")}
            for column in table.columns
        ]
        found[name] = {"title": table.title, "columns": columns, "rows": _rows(table)}
        found[name] |= {"note": table.note} if table.note else {}
        found[name] |= {} if table.shown else {"shown": False}
    return found


def _rows(table: Table) -> list[dict[str, Any]]:
    """What does not apply has no key; what is not known is null, and its ends are too."""
    return [
        {
            key: in_unit(value, unit)
            for column, cell in zip(table.columns, row, strict=True)
            if cell is not None
            for key, value, unit in entries(column, _unknown(cell))
        }
        for row in table.rows
    ]


def _unknown(cell: Cell) -> Cell:
    """Without ends if it has no value."""
    if isinstance(cell, Quantity):
        return cell if cell.range.value == cell.range.value else Quantity(NOT_KNOWN, cell.unit)
    return NOT_KNOWN if isinstance(cell, Range) and cell.value != cell.value else cell


NOT_KNOWN = Range(nan, nan, nan)


def in_unit(value: Any, unit: str) -> Any:
    """A number in a unit, to twelve digits, as JSON can hold it."""
    if isinstance(value, (str, bool)) or value is None:
        return value
    if unit == "text" or not isfinite(value):
        return exact(float(value))
    return exact(float(f"{value / per(unit):.12g}"))


def exact(value: float) -> float | str | None:
    if isfinite(value):
        return int(value) if value == int(value) and abs(value) < 1e15 else value
    return None if value != value else "inf" if value > 0 else "-inf"


def _plot(plot: Plot) -> dict[str, Any]:
    lines = [{"name": line.name, "x": _twelve(line.x), "y": _twelve(line.y)} for line in plot.lines]
    marks = [{"name": name, "x": in_unit(x, ""), "y": in_unit(y, "")} for name, x, y in plot.marks]
    return plot._asdict() | {"lines": lines, "marks": marks}


def _twelve(values: Sequence[float]) -> list[Any]:
    return [in_unit(float(x), "") for x in values]


# --- what went in ---------------------------------------------------------------------------------


def _inputs(cases: Mapping[str, Scenario]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Each distinct figure and word once, with the cases that have it."""
    found: dict[tuple[str, Any], list[str]] = {}
    for case, scenario in cases.items():
        for section, said in scenario.said.items():
            for key, value in said.items():
                found.setdefault((f"{section}.{key}", value), []).append(case)
    figures, words = [], []
    for (path, value), names in found.items():
        row: dict[str, Any] = {"path": path}
        if isinstance(value, Figure):
            figures.append(row)
            ends = ("value", "low", "high") if value.ranged else ("value",)
            row |= {end: exact(getattr(value, end)) for end in ends}
            row |= {key: getattr(value, key) for key in PEDIGREE if getattr(value, key)}
        else:
            words.append(row)
            row["value"] = value
        row["cases"] = ALL if len(names) == len(cases) else names
    return figures, words


def _scenarios(cases: Mapping[str, Scenario]) -> list[dict[str, Any]]:
    """What is known of cases besides their figures, once for all cases of which it is the same."""
    found: list[tuple[dict[str, Any], list[str]]] = []
    for case, each in cases.items():
        said = {"name": each.name, "names": each.names, "claims": [*each.claims]}
        said |= {"lacking": each.lacking}
        names = next((names for other, names in found if other == said), None)
        if names is None:
            found.append((said, names := []))
        names.append(case)
    return [said | {"cases": ALL if len(names) == len(cases) else names} for said, names in found]


# --- as text --------------------------------------------------------------------------------------


def _lines(value: Any, depth: int, indent: str = "") -> str:
    """JSON with a line for each member down to a depth, and for each row."""
    inside = [*value.values()] if isinstance(value, dict) else value
    nested = isinstance(value, (dict, list)) and any(isinstance(x, (dict, list)) for x in inside)
    if not depth or not nested:
        return json.dumps(value, allow_nan=False)
    deeper = f"{indent} "
    parts = [_lines(each, depth - 1, deeper) for each in inside]
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {part}" for key, part in zip(value, parts, strict=True)]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{closing}"
