"""An Answer as a JSON document of the schema ckptcost.answer/3, with every figure that went in.

Numbers of tables are in the units that their keys name; those of inputs are in SI and exact. null
is "not known", and "inf" has no end. Types are in `reading`, which costs 100 ms to import.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from math import isfinite
from typing import TYPE_CHECKING, Any

from ckptcost import __version__
from ckptcost.answer import SCHEMA, Answer, Table
from ckptcost.plot import drawable
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.resolve import Scenario

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
    said = said_in(answer.cases)
    figures = [_figure(*each) for each in said if isinstance(each[1], Figure)]
    words = [
        {"path": path, "value": value, "cases": cases}
        for path, value, cases in said
        if not isinstance(value, Figure)
    ]
    return {
        "schema": SCHEMA,
        "tool": __version__,
        "question": answer.question,
        "command": answer.command,
        "title": answer.title,
        "about": answer.about,
        "says": [*map(asdict, answer.says)],
        "tables": {table.name: _table(table) for table in answer.tables},
        "notes": [*map(asdict, answer.notes)],
        "cautions": [*map(asdict, answer.cautions)],
        "missed": answer.missed,
        "plots": [asdict(drawable(each)) for each in answer.plots],
        "draws": answer.draws,
        "cases": {
            case: {"name": s.name, "names": s.names, "claims": [*s.claims], "lacking": s.lacking}
            for case, s in answer.cases.items()
        },
        "options": answer.options,
        "inputs": figures,
        "words": words,
    }


def _table(table: Table) -> dict[str, Any]:
    """What does not apply has no key in its row; what is not known is null."""
    keys, rows = table.flat()
    return {
        "title": table.title,
        "columns": [*map(asdict, table.columns)],
        "rows": [
            {k: exact(cell, 12) for k, cell in zip(keys, row, strict=True) if cell is not None}
            for row in rows
        ],
        "note": table.note,
        "shown": table.shown,
    }


def exact(value: Any, digits: int = 17) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, (str, bool)):
        return value
    if not isfinite(value):
        return None if value != value else "inf" if value > 0 else "-inf"
    value = float(f"{value:.{digits}g}")
    return int(value) if value == int(value) and abs(value) < 1e15 else value


# --- what went in ---------------------------------------------------------------------------------


def said_in(cases: Mapping[str, Scenario]) -> list[tuple[str, Any, Any]]:
    """Paths of figures and words, their values, and the cases that say so: each once."""
    found: dict[tuple[str, Any], list[str]] = {}
    for case, scenario in cases.items():
        for section, said in scenario.said.items():
            for key, value in said.items():
                found.setdefault((f"{section}.{key}", value), []).append(case)
    return [
        (path, value, ALL if len(names) == len(cases) else names)
        for (path, value), names in found.items()
    ]


def _figure(path: str, figure: Figure, cases: Any) -> dict[str, Any]:
    ends = ("value", "low", "high") if figure.ranged else ("value",)
    row = {"path": path} | {end: exact(getattr(figure, end)) for end in ends}
    return row | {k: v for k in PEDIGREE if (v := getattr(figure, k))} | {"cases": cases}


# --- as text --------------------------------------------------------------------------------------


def _lines(value: Any, depth: int) -> str:
    """JSON with a line for each member down to a depth."""
    if not depth or not value or not isinstance(value, (dict, list)):
        return json.dumps(value, allow_nan=False)
    if isinstance(value, dict):
        parts = [f"{json.dumps(k)}: {_lines(v, depth - 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(parts) + "\n}"
    return "[\n" + ",\n".join(_lines(each, depth - 1) for each in value) + "\n]"
