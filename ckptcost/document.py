"""An Answer as a JSON document of the schema ckptcost.answer/3, with every figure that went in.

Numbers of tables are in the units that their keys name; those of inputs are in SI and exact. null
is "not known", and "inf" has no end. Types are in `reading`, which costs 100 ms to import.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
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
        "says": [_say(each) for each in answer.says],
        "tables": _tables(answer.tables),
        "notes": [_say(each) for each in answer.notes],
        "cautions": [
            {"code": c.code, "words": c.words, "cases": [*c.cases], "blocks": c.blocks}
            for c in answer.cautions
        ],
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


def _say(say: Say) -> dict[str, str]:
    return {key: value for key, value in say._asdict().items() if value or key == "words"}


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
    """What does not apply has no key; what is not known is null."""
    rows = []
    for row in table.rows:
        found: dict[str, Any] = {}
        for column, cell in zip(table.columns, row, strict=True):
            if cell is not None:
                found |= entries(column, _unknown(cell), in_unit)
        rows.append(found)
    return rows


def _unknown(cell: Cell) -> Cell:
    """What is not known has no ends either."""
    if isinstance(cell, Quantity):
        return Quantity(_without_ends(cell.range), cell.unit)
    return _without_ends(cell) if isinstance(cell, Range) else cell


def _without_ends(range_: Range) -> Range:
    return range_ if range_.value == range_.value else Range(math.nan, math.nan, math.nan)


def in_unit(value: Any, unit: str) -> Any:
    """A number in a unit, to twelve digits, as JSON can hold it."""
    if isinstance(value, (str, bool)) or value is None:
        return value
    if unit == "text" or not math.isfinite(value):
        return exact(float(value))
    return exact(float(f"{value / per(unit):.12g}"))


def exact(value: float) -> float | str | None:
    if math.isfinite(value):
        return int(value) if value == int(value) and abs(value) < 1e15 else value
    return None if value != value else "inf" if value > 0 else "-inf"


def _plot(plot: Plot) -> dict[str, Any]:
    lines = [{"name": line.name, "x": _twelve(line.x), "y": _twelve(line.y)} for line in plot.lines]
    marks = [{"name": name, "x": x, "y": y} for name, *place in plot.marks
             for x, y in [_twelve(place)]]  # fmt: skip
    return {
        "title": plot.title,
        "x": plot.x,
        "y": plot.y,
        "lines": lines,
        "marks": marks,
        "log_x": plot.log_x,
    }


def _twelve(values: Sequence[float]) -> list[Any]:
    return [in_unit(float(x), "") for x in values]


# --- what went in ---------------------------------------------------------------------------------


def _inputs(
    cases: Mapping[str, Scenario],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Each distinct figure and word once, with the cases that have it."""
    found: dict[tuple[str, Any], list[str]] = {}
    for case, scenario in cases.items():
        for section, said in scenario.said.items():
            for key, value in said.items():
                found.setdefault((f"{section}.{key}", value), []).append(case)
    figures, words = [], []
    for (path, value), names in found.items():
        where = {"cases": ALL if len(names) == len(cases) else names}
        if isinstance(value, Figure):
            figures.append({"path": path, **_figure(value), **where})
        else:
            words.append({"path": path, "value": value, **where})
    return figures, words


def _figure(figure: Figure) -> dict[str, Any]:
    ends = {"low": figure.low, "high": figure.high} if figure.ranged else {}
    found = {key: exact(value) for key, value in ({"value": figure.value} | ends).items()}
    said = {key: getattr(figure, key) for key in PEDIGREE}
    return found | {key: value for key, value in said.items() if value}


def _scenarios(cases: Mapping[str, Scenario]) -> list[dict[str, Any]]:
    """What is known of cases besides their figures, once for all cases of which it is the same."""
    found: list[dict[str, Any]] = []
    for case, scenario in cases.items():
        said = {
            "name": scenario.name,
            "names": scenario.names,
            "claims": [*scenario.claims],
            "lacking": scenario.lacking,
        }
        same = next((each for each in found if all(each[k] == v for k, v in said.items())), None)
        if same is None:
            found.append({**said, "cases": [case]})
        else:
            same["cases"].append(case)
    for each in found:
        each["cases"] = ALL if len(each["cases"]) == len(cases) else each["cases"]
    return found


# --- as text --------------------------------------------------------------------------------------


def _lines(value: Any, depth: int, indent: str = "") -> str:
    """JSON with a line for each member down to a depth, and for each row."""
    inside = [*value.values()] if isinstance(value, dict) else value
    nested = isinstance(value, (dict, list)) and any(isinstance(x, (dict, list)) for x in inside)
    if not depth or not nested:
        return json.dumps(value, allow_nan=False)
    deeper = f"{indent} "
    if isinstance(value, list):
        parts = [_lines(each, depth - 1, deeper) for each in value]
    else:
        parts = [
            f"{json.dumps(key)}: {_lines(each, depth - 1, deeper)}" for key, each in value.items()
        ]
    opening, closing = "[]" if isinstance(value, list) else "{}"
    return f"{opening}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{closing}"
