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
from ckptcost.scenario.schema import KEYS, is_figure
from ckptcost.scenario.units import per

Number = FiniteFloat | Literal["inf", "-inf"]
Cases = list[str] | Literal["all"]


class Part(BaseModel):
    """Every part refuses keys that it does not know, and takes no text for a number; so do the
    parts of an Answer that stand in a document as they are."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TablePart(Part):
    title: str
    columns: Annotated[list[Column], Field(min_length=1)]
    rows: list[dict[str, bool | FiniteFloat | str | None]]
    note: str
    shown: bool

    def table(self, name: str) -> Table:
        rows = [[_cell(column, row) for column in self.columns] for row in self.rows]
        return Table(name, self.title, self.columns, rows, self.note, self.shown)


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
        ends = (self.value if end is None else end for end in (self.low, self.high))
        value, low, high = map(float, (self.value, *ends))
        if not low <= value <= high:
            raise InputError(f"{low:g} <= {value:g} <= {high:g} does not hold", self.path)
        said = self.model_dump(exclude={"path", "value", "low", "high", "follows", "cases"})
        return Figure(value, low, high, **said, follows=tuple(self.follows))


class WordPart(Part):
    path: str
    value: str | bool
    cases: Cases

    def checked(self) -> str | bool:
        return self.value


class CasePart(Part):
    name: str
    names: dict[str, str]
    claims: list[dict[str, JsonValue]]
    lacking: dict[str, str]


class Document(Part):
    """An answer of ckptcost, with all that it was computed from."""

    model_config = ConfigDict(title="ckptcost answer")

    schema_: Annotated[Literal["ckptcost.answer/3"], Field(alias="schema")]
    tool: str
    question: str
    command: str
    title: str
    about: str
    says: list[Say]
    tables: dict[str, TablePart]
    notes: list[Say]
    cautions: list[Caution]
    missed: list[str]
    plots: list[Plot]
    draws: int
    cases: dict[str, CasePart]
    options: dict[str, JsonValue]
    inputs: list[InputPart]
    words: list[WordPart]

    def answer(self) -> Answer:
        """What the question returned."""
        return Answer(
            self.question,
            self.title,
            self.about,
            self.says,
            [each.table(name) for name, each in self.tables.items()],
            self.notes,
            self.cautions,
            self.plots,
            self.missed,
            self.scenarios(),
            dict(self.options),
            self.draws,
            self.command,
        )

    def scenarios(self) -> dict[str, Scenario]:
        """The cases with every figure, as they went into the question."""
        said: dict[str, Said] = {case: {section: {} for section in KEYS} for case in self.cases}
        rows: list[InputPart | WordPart] = [*self.inputs, *self.words]
        for row in rows:
            section, _, key = row.path.partition(".")
            known = key in KEYS.get(section, {})
            if not known or is_figure(section, key) != isinstance(row, InputPart):
                raise InputError("is no figure or word of a job", row.path)
            for case in self.cases if row.cases == ALL else row.cases:
                if case not in said:
                    raise unknown_name("case", case, said, row.path)
                said[case][section][key] = row.checked()
        return {
            case: Scenario(s.name, said[case], s.names, tuple(s.claims), s.lacking)
            for case, s in self.cases.items()
        }


def _cell(column: Column, row: Mapping[str, Any]) -> Cell:
    """What does not apply has no key."""
    key = key_of(column)
    if key not in row:
        return None
    unit = column.unit or str(row.get(f"{key}_unit", ""))
    if f"{key}_low" in row:
        ends = Range(*(_float(row.get(f"{key}{end}"), unit) for end in ("", "_low", "_high")))
        return ends if column.unit else Quantity(ends, unit)
    found = row[key]
    is_text = isinstance(found, str | bool) and found not in ("inf", "-inf")
    return found if is_text else _float(found, unit)


def _float(value: Any, unit: str) -> float:
    """In SI; null is not known."""
    try:
        return nan if value is None else float(value) * per(unit)
    except ValueError:
        raise InputError(f"{value[:40]!r} is no number", "a table") from None


# --- files ----------------------------------------------------------------------------------------


def read(path: str) -> Document:
    """A document; a complaint in one line, with a remedy, if it is none."""
    remedy = "write one with: ckptcost model JOB -o FILE.json"
    try:
        return Document.model_validate_json(Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path, remedy) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        raise InputError(f"is no JSON ({first['ctx']['error']})", path, remedy)
    if first["loc"] == ("schema",) or not first["loc"]:
        raise InputError(f"is no answer of the schema {SCHEMA}", path, remedy)
    place = ".".join(map(str, first["loc"][:6]))
    raise InputError(f"{place}: {first['msg'].lower()}", path, remedy)


def json_schema() -> str:
    """docs/reference/answer-3.schema.json, made from the types."""
    found = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(found | Document.model_json_schema(), indent=1) + "\n"


if __name__ == "__main__":
    print(json_schema(), end="")
