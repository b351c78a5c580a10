"""Documents of the schema ckptcost.answer/3 as they are read: their types, judged by pydantic, and
the Answer and Scenarios that one holds. Nothing that writes an answer imports this."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import nan
from pathlib import Path
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


class CautionPart(Part):
    code: str
    words: str
    cases: list[str]
    blocks: bool = False


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

    def table(self, name: str) -> Table:
        columns = [Column(**each.model_dump()) for each in self.columns]
        rows = [[_cell(column, row) for column in columns] for row in self.rows]
        return Table(name, self.title, columns, rows, self.note, self.shown)


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

    def plot(self) -> Plot:
        lines = [Line(e.name, [*map(_float, e.x)], [*map(_float, e.y)]) for e in self.lines]
        marks = tuple((each.name, _float(each.x), _float(each.y)) for each in self.marks)
        return Plot(self.title, self.x, self.y, lines, marks, self.log_x)


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

    def checked(self) -> Figure:
        if not _known(self.path, figure=True):
            raise InputError("is no figure", self.path)
        value = float(self.value)
        low, high = (value if end is None else float(end) for end in (self.low, self.high))
        if not low <= value <= high:
            raise InputError(f"{low:g} <= {value:g} <= {high:g} does not hold", self.path)
        said = self.model_dump(exclude={"path", "value", "low", "high", "follows", "cases"})
        return Figure(value, low, high, **said, follows=tuple(self.follows))


class WordPart(Part):
    path: str
    value: str | bool
    cases: Cases

    def checked(self) -> str | bool:
        if not _known(self.path, figure=False):
            raise InputError("is no word", self.path)
        return self.value


class ScenarioPart(Part):
    name: str
    names: dict[str, str]
    claims: list[dict[str, JsonValue]] = []
    lacking: dict[str, str] = {}
    cases: Cases


class Document(Part):
    """An answer of ckptcost, with all that it was computed from."""

    model_config = ConfigDict(title="ckptcost answer")

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
            [each.table(name) for name, each in self.tables.items()],
            [Say(**each.model_dump()) for each in self.notes],
            [Caution(c.code, c.words, tuple(c.cases), c.blocks) for c in self.cautions],
            [each.plot() for each in self.plots],
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
            section, _, key = row.path.partition(".")
            for case in self._cases(row.cases, row.path):
                said[case][section][key] = row.checked()
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


def _known(path: str, figure: bool) -> bool:
    section, _, key = path.partition(".")
    known = KEYS.get(section, {})
    return key in known and ("example" in known[key].metadata) == figure


def _cell(column: Column, row: Mapping[str, Any]) -> Cell:
    """What does not apply has no key."""
    key = key_of(column)
    if key not in row:
        return None
    unit = column.unit or str(row.get(f"{key}_unit", ""))
    found: Any = row[key] if isinstance(row[key], str | bool) else _float(row[key], unit)
    if f"{key}_low" not in row:
        return float(found) if found in ("inf", "-inf") else found
    ends = (_float(row.get(f"{key}{end}"), unit) for end in ("", "_low", "_high"))
    return Range(*ends) if column.unit else Quantity(Range(*ends), unit)


def _float(value: Any, unit: str = "") -> float:
    """In SI; null is not known."""
    if isinstance(value, str) and value not in ("inf", "-inf"):
        raise InputError(f"{value[:40]!r} is no number", "a table")
    return nan if value is None else float(value) * per(unit)


# --- files ----------------------------------------------------------------------------------------


def read(path: str) -> Document:
    """A document; a complaint in one line, with a remedy, if it is none."""
    remedy = "write one with -f json -o FILE.json"
    try:
        if Path(path).stat().st_size > LARGEST:
            raise InputError(f"is larger than {LARGEST / 1e6:.0f} MB", path, remedy)
        return Document.model_validate_json(Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path, remedy) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        raise InputError(f"is no JSON ({first['ctx']['error']})", path, remedy)
    if first["loc"][:1] in ((), ("schema",)):
        raise InputError(
            _foreign(first["input"]), path, "ask again: ckptcost model JOB -o FILE.json"
        )
    place = ".".join(map(str, first["loc"][:6]))
    problem = f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}"
    raise InputError(problem, path, "write it again: -f json -o FILE.json")


def _foreign(raw: Any) -> str:
    """What it is instead."""
    said = str(raw.get("schema_name", "") if isinstance(raw, dict) else raw)
    if said.startswith("ckptcost.answer/"):
        return f"is of {said[:40]}, this version reads {SCHEMA}"
    if said.startswith("ckptcost"):
        return "was written by ckptcost 0.1, which also reads it"
    return "is no answer of ckptcost"


def json_schema() -> str:
    """docs/reference/answer-3.schema.json, made from the types."""
    found = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(found | Document.model_json_schema(), indent=1) + "\n"


if __name__ == "__main__":
    print(json_schema(), end="")
