"""The document, schema ckptcost.report 2.0: what was asked, the answer in sentences, tables by
name, statements of costs, and all that it rests on. One shape for every question; parts that say
nothing of one are empty. Null = unknown, 0 = known to be zero.

Written strictly (unknown keys and numbers that are not finite are refused); a newer minor version
is read, what it adds is ignored.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ckptcost.first.errors import UnknownName
from ckptcost.first.report.difference import Difference
from ckptcost.first.report.parts import DocumentPart, Factor, FactorSet, InputFile, Tool, Warned
from ckptcost.first.report.statement import Statement
from ckptcost.first.report.study import UNITS

SCHEMA_NAME, SCHEMA_VERSION = "ckptcost.report", "2.0"
Unit = Literal[
    "",
    "1",
    "count",
    "share",
    "s",
    "bytes",
    "bytes_per_s",
    "W",
    "kWh",
    "GPU-h",
    "USD",
    "kgCO2e",
    "L",
    "h",
    "USD/h",
    "J",
    "GPU-s",
    "bool",
    "@unit",
    "@difference",
]
Kind = Literal[
    "model",
    "simulation",
    "optimum",
    "solution",
    "comparison",
    "sensitivity",
    "audit",
    "measurement",
    "checkup",
    "probe",
    "calibration",
    "gap",
    "runs",
    "fleet",
    "selftest",
    "statements",
    "difference",
]


class ColumnPart(DocumentPart):
    label: str
    unit: Unit = Field(
        description="; ".join(f"{unit or 'empty'}: {meaning}" for unit, meaning in UNITS.items())
    )
    meaning: str = ""
    shown: bool = Field(default=True, description="in views for people")


class TablePart(DocumentPart):
    title: str
    columns: dict[str, ColumnPart]
    rows: list[dict[str, float | bool | str | None]] = Field(
        description="by column id; null = unknown or without bound"
    )
    note: str = ""
    shown: bool = Field(default=True, description="in views for people")


class GatePart(DocumentPart):
    text: str
    measure: str
    statistic: str
    operator: Literal["<=", ">=", "<", ">"]
    limit: float = Field(description="in base units")
    value: float | None
    unit: str = Field(description="base unit of limit and value")
    of: str
    met: bool


class ScenarioPart(DocumentPart):
    """The inputs of one way to do the job: in full, or by what differs from those of the first
    statement."""

    name: str
    by_difference: bool = Field(
        default=False,
        description="factors, dropped and choices are what differs from the first statement's",
    )
    factors: list[Factor]
    dropped: list[str] = Field(
        default=[], description="ids of the first statement's factors that this one does not have"
    )
    choices: dict[str, Any]


class Reproducible(DocumentPart):
    inputs_sha256: str = Field(description="over every scenario's factors and choices")
    inputs: list[InputFile]
    factor_set: FactorSet
    result_sha256: str = Field(
        description=(
            "over everything but schema, report_id, generated_at, tool and this section, of which"
            " bytes and sha256 of the inputs count"
        )
    )


class Report(DocumentPart):
    schema_name: Literal["ckptcost.report"]
    schema_version: str = Field(pattern=r"^2\.\d+$")
    report_id: str = Field(
        pattern=r"^urn:sha256:[0-9a-f]{32}$",
        description="the same for the same question of the same inputs, files and recordings",
    )
    generated_at: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
    tool: Tool
    kind: Kind
    title: str
    about: list[str] = Field(description="what was asked, in words")
    question: dict[str, Any] = Field(description="what was asked, for machines")
    simulated: bool = Field(
        description=(
            "measured figures come from a simulation, recorded or not, and not from a machine's"
            " meters"
        ),
    )
    currency: Literal["USD"]
    findings: list[str] = Field(description="the answer in sentences, the most telling first")
    remarks: list[str] = Field(description="what else there is to say")
    tables: dict[str, TablePart]
    statements: list[Statement] = Field(
        description="the costs line by line, which exports are made of"
    )
    difference: Difference | None = Field(
        default=None, description="of two statements, past and current"
    )
    warnings: list[Warned]
    requirements: list[GatePart]
    scenarios: list[ScenarioPart]
    reproducibility: Reproducible

    def __repr__(self) -> str:
        """The answer as the terminal has it; `to_json` has all of it."""
        from ckptcost.first.report import render

        return render.answer(self)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        from ckptcost.first.report import render

        return render.notebook(self)

    def rows(self, table: str | None = None) -> list[dict[str, Any]]:
        """One table's rows by column id, of the first table unless another is named."""
        return [dict(row) for row in self._table(table).rows]

    def to_frame(self, table: str | None = None) -> Any:
        """One table as a pandas frame, the first unless another is named."""
        from ckptcost.first.report.frame import frame_of_table

        part = self._table(table)
        units = {name: column.unit for name, column in part.columns.items()}
        return frame_of_table(part.rows, units)

    def _table(self, name: str | None) -> TablePart:
        if name is None and self.tables:
            return next(iter(self.tables.values()))
        if name is None or name not in self.tables:
            raise UnknownName("table", name or "", self.tables)
        return self.tables[name]

    def to_json(self) -> str:
        from ckptcost.first.report.canonical import pretty

        return pretty(self.plain())

    def plain(self) -> dict[str, Any]:
        """As files have it: what says nothing, because it is what the schema takes for granted, is
        left out."""
        return self.model_dump(mode="json", exclude_defaults=True)
