"""Documents of the schema ckptcost.answer/3 as they are read: their types, judged by pydantic, and
the Answer and Scenarios that one holds. Nothing that writes an answer imports this."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from math import nan
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, JsonValue, ValidationError

from ckptcost.answer import (
    SCHEMA,
    Answer,
    Caution,
    Cell,
    Column,
    Line,
    Plot,
    Quantity,
    Range,
    Say,
    Table,
    key_of,
)
from ckptcost.document import ALL
from ckptcost.errors import InputError, unknown_name
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.resolve import Said, Scenario
from ckptcost.scenario.schema import KEYS
from ckptcost.scenario.units import per

LARGEST = 50_000_000
"""bytes of a document; the largest grid is a tenth of it"""

Number = FiniteFloat | Literal["inf", "-inf"]
Value = bool | FiniteFloat | str | None
Cases = list[str] | Literal["all"]


class Part(BaseModel):
    """Every part refuses keys that it does not know, and takes no text for a number."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SayPart(Part):
    words: str
    label: str = ""
    command: str = ""


class ColumnPart(Part):
    key: str
    header: str
    unit: str = "text"
    screen: Literal["value", "range", "both", "ends", "bar", "no"] = "value"


class TablePart(Part):
    title: str
    columns: Annotated[list[ColumnPart], Field(min_length=1)]
    rows: list[dict[str, Value]]
    note: str = ""
    shown: bool = True


class CautionPart(Part):
    code: str
    words: str
    cases: list[str]
    blocks: bool = False


class LinePart(Part):
    name: str
    x: list[Number | None]
    y: list[Number | None]


class MarkPart(Part):
    name: str
    x: Number | None
    y: Number | None


class PlotPart(Part):
    title: str
    x: str
    y: str
    lines: list[LinePart]
    marks: list[MarkPart] = []
    log_x: bool = False


class InputPart(Part):
    """A figure in SI; low and high are those of its range if it has one."""

    path: str
    value: Number
    low: Number | None = None
    high: Number | None = None
    basis: str = ""
    source: str = ""
    note: str = ""
    date: str = ""
    boundary: str = ""
    text: str = ""
    origin: str = ""
    follows: list[str] = []
    cases: Cases


class WordPart(Part):
    path: str
    value: str | bool
    cases: Cases


class ScenarioPart(Part):
    name: str
    names: dict[str, str]
    claims: list[dict[str, JsonValue]] = []
    lacking: dict[str, str] = {}
    cases: Cases


class Document(Part):
    """An answer of ckptcost, with all that it was computed from."""

    model_config = ConfigDict(extra="forbid", strict=True, title="ckptcost answer")

    schema_: Annotated[Literal["ckptcost.answer/3"], Field(alias="schema")]
    tool: str
    question: str
    command: str = ""
    title: str
    about: str
    says: list[SayPart]
    tables: dict[str, TablePart]
    notes: list[SayPart] = []
    cautions: list[CautionPart] = []
    missed: list[str] = []
    plots: list[PlotPart] = []
    draws: int
    cases: list[str]
    options: dict[str, JsonValue] = {}
    inputs: list[InputPart] = []
    words: list[WordPart] = []
    scenarios: list[ScenarioPart] = []

    def answer(self) -> Answer:
        """What the question returned."""
        return Answer(
            self.question,
            self.title,
            self.about,
            [Say(**each.model_dump()) for each in self.says],
            [_table(name, each) for name, each in self.tables.items()],
            [Say(**each.model_dump()) for each in self.notes],
            [Caution(c.code, c.words, tuple(c.cases), c.blocks) for c in self.cautions],
            [_plot(each) for each in self.plots],
            self.missed,
            self.scenarios_by_case(),
            dict(self.options),
            self.draws,
            self.command,
        )

    def scenarios_by_case(self) -> dict[str, Scenario]:
        """The cases with every figure, as they went into the question."""
        said: dict[str, Said] = {case: {section: {} for section in KEYS} for case in self.cases}
        rows: list[InputPart | WordPart] = [*self.inputs, *self.words]
        for row in rows:
            section, key = _known(row.path)
            value = _figure(row) if isinstance(row, InputPart) else row.value
            for case in self._cases(row.cases, row.path):
                said[case][section][key] = value
        found = {}
        for each in self.scenarios:
            rest = each.names, tuple(each.claims), each.lacking
            for case in self._cases(each.cases, each.name):
                found[case] = Scenario(each.name, said[case], *rest)
        if found.keys() != said.keys():
            raise InputError("a case has no scenario", ", ".join(said.keys() - found.keys()))
        return {case: found[case] for case in self.cases}

    def _cases(self, cases: Cases, where: str) -> list[str]:
        named = self.cases if cases == ALL else list(cases)
        for unknown in (each for each in named if each not in self.cases):
            raise unknown_name("case", unknown, self.cases, where)
        return named


def _known(path: str) -> tuple[str, str]:
    section, _, key = path.partition(".")
    if section not in KEYS or key not in KEYS[section]:
        known = [f"{section}.{key}" for section, keys in KEYS.items() for key in keys]
        raise unknown_name("figure", path, known)
    return section, key


def _figure(row: InputPart) -> Figure:
    value = float(row.value)
    low, high = (value if end is None else float(end) for end in (row.low, row.high))
    if "example" not in KEYS[row.path.split(".")[0]][row.path.split(".")[1]].metadata:
        raise InputError("is a word and no figure", row.path)
    if not low <= value <= high:
        raise InputError(f"{low:g} <= {value:g} <= {high:g} does not hold", row.path)
    said = row.model_dump(exclude={"path", "value", "low", "high", "follows", "cases"})
    return Figure(value, low, high, **said, follows=tuple(row.follows))


# --- tables and plots -----------------------------------------------------------------------------


def _table(name: str, part: TablePart) -> Table:
    columns = [Column(**each.model_dump()) for each in part.columns]
    rows = [[_cell(column, row) for column in columns] for row in part.rows]
    return Table(name, part.title, columns, rows, part.note, part.shown)


def _cell(column: Column, row: Mapping[str, Any]) -> Cell:
    """What does not apply has no key."""
    key = key_of(column)
    unit = str(row.get(f"{key}_unit", "")) if not column.unit else column.unit
    if key not in row:
        return None
    if f"{key}_low" not in row:
        found: Cell = _number(row[key], unit)
        return found
    try:
        ends = Range(*(_number(row.get(f"{key}{end}"), unit) for end in ("", "_low", "_high")))
    except InputError as error:
        raise error.at(f"column {key}") from None
    return ends if column.unit else Quantity(ends, unit)


def _number(value: Any, unit: str) -> Any:
    """In SI; a text stays one."""
    if value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, (str, bool)):
        return value
    return nan if value is None else float(value) * per(unit)


def _plot(part: PlotPart) -> Plot:
    lines = [Line(each.name, _floats(each.x), _floats(each.y)) for each in part.lines]
    marks = tuple((each.name, *_floats([each.x, each.y])) for each in part.marks)
    return Plot(part.title, part.x, part.y, lines, marks, part.log_x)  # type: ignore[arg-type]


def _floats(values: list[Number | None]) -> list[float]:
    return [nan if each is None else float(each) for each in values]


# --- files ----------------------------------------------------------------------------------------


def read(path: str) -> Document:
    """A document; a complaint in one line, with a remedy, if it is none."""
    raw = _parsed(path)
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise InputError(*_foreign(raw, path))
    try:
        return Document.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(each) for each in first["loc"][:6])
        problem = f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}"
        raise InputError(problem, path, "write it again: -f json -o FILE.json") from None


def _parsed(path: str) -> Any:
    remedy = "write one with -f json -o FILE.json"
    try:
        if os.path.getsize(path) > LARGEST:
            raise InputError(f"is larger than {LARGEST / 1e6:.0f} MB", path, remedy)
        with open(path, encoding="utf-8") as file:
            return json.load(file, parse_constant=_refuse)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path, remedy) from None
    except RecursionError:
        raise InputError("is nested too deep to be an answer", path, remedy) from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"is no JSON ({error})", path, remedy) from None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")


def _foreign(raw: Any, path: str) -> tuple[str, str, str]:
    """What it is instead."""
    said = str(raw.get("schema") or raw.get("schema_name") or "") if isinstance(raw, dict) else ""
    again = "ask again: ckptcost model JOB -f json -o FILE.json"
    if said.startswith("ckptcost.answer/"):
        return f"is of {said[:40]}, this version reads {SCHEMA}", path, again
    if said.startswith("ckptcost"):
        return "was written by ckptcost 0.1, which also reads it", path, again
    return "is no answer of ckptcost", path, again


def json_schema() -> str:
    """docs/reference/answer-3.schema.json, made from the types."""
    found = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(found | Document.model_json_schema(), indent=1) + "\n"


if __name__ == "__main__":
    print(json_schema(), end="")
