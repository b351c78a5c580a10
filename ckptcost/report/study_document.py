"""The document of a study, schema ckptcost.study 1.4: tables by name, a unit for every column, null
= unknown.

Written strictly: unknown keys and non-finite numbers are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ckptcost.catalog.store import Catalog
from ckptcost.errors import UnknownName
from ckptcost.report.build import FACTOR_SET, METHOD_VERSION, generated_at, input_part
from ckptcost.report.canonical import pretty, sha256, tidy
from ckptcost.report.document import Factor, FactorSet, InputFile, Tool, Warned
from ckptcost.report.factors import Part, factor_of, plain_factor
from ckptcost.report.statement import Statement
from ckptcost.report.study import UNITS, Study, Table
from ckptcost.version import __version__

SCHEMA_NAME, SCHEMA_VERSION = "ckptcost.study", "1.4"
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
    "h",
    "USD/h",
    "J",
    "GPU-s",
    "bool",
    "@unit",
    "@difference",
]
Kind = Literal[
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
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True, defer_build=True)


class ColumnPart(_Part):
    label: str
    unit: Unit = Field(
        description="; ".join(f"{unit or 'empty'}: {meaning}" for unit, meaning in UNITS.items())
    )
    meaning: str = ""
    shown: bool = Field(default=True, description="in views for people; since 1.3")


class TablePart(_Part):
    title: str
    columns: dict[str, ColumnPart]
    rows: list[dict[str, float | bool | str | None]] = Field(
        description="by column id; null = unknown or without bound"
    )
    note: str = ""
    shown: bool = Field(default=True, description="in views for people; since 1.3")


class GatePart(_Part):
    text: str
    measure: str
    statistic: str
    operator: Literal["<=", ">=", "<", ">"]
    limit: float = Field(description="in base units")
    value: float | None
    unit: str = Field(description="base unit of limit and value")
    of: str
    met: bool


class ScenarioPart(_Part):
    name: str
    factors: list[Factor]
    choices: dict[str, Any]


class Reproducible(_Part):
    inputs_sha256: str = Field(
        description="over the question and every scenario's factors and choices"
    )
    inputs: list[InputFile]
    factor_set: FactorSet
    result_sha256: str = Field(
        description="over everything but schema, generated_at, tool and this section"
    )


class StudyDocument(_Part):
    schema_name: Literal["ckptcost.study"]
    schema_version: str = Field(pattern=r"^1\.\d+$")
    kind: Kind
    generated_at: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
    tool: Tool
    title: str
    about: list[str]
    question: dict[str, Any]
    tables: dict[str, TablePart]
    findings: list[str]
    warnings: list[Warned]
    requirements: list[GatePart]
    simulated: bool = Field(
        False,
        description=(
            "measured figures come from a simulation, recorded or not, and not from a machine's"
            " meters"
        ),
    )
    scenarios: list[ScenarioPart]
    statements: list[Statement] = Field(
        default=[], description="the costs line by line, which exports are made of; since 1.3"
    )
    reproducibility: Reproducible

    def __repr__(self) -> str:
        """The answer as the terminal has it; `to_json` has all of it."""
        from ckptcost.report import brief, study_again

        return brief.of_study(study_again.study_of(self))

    __str__ = __repr__

    def _repr_html_(self) -> str:
        from ckptcost.report import brief, notebook, study_again

        return notebook.html(brief.told_of_study(study_again.study_of(self)))

    def to_frame(self, table: str | None = None) -> Any:
        """One table as a pandas frame, the first unless another is named."""
        from ckptcost.report.frame import frame_of_table

        name = next(iter(self.tables)) if table is None else table
        if name not in self.tables:
            raise UnknownName("table", name, self.tables)
        return frame_of_table(self.tables[name].rows, list(self.tables[name].columns))

    def to_json(self) -> str:
        return pretty(self.model_dump(mode="json"))


def document_of(
    study: Study,
    catalog: Catalog,
    command: Sequence[str] = (),
    files: Sequence[tuple[str, bytes]] = (),
) -> dict[str, Any]:
    """The study as plain values, hashes included."""
    scenarios: list[Part] = [
        {
            "name": each.name or "scenario",
            "factors": [factor_of(i, catalog) for i in each.inputs],
            "choices": dict(sorted(each.words.items())),
        }
        for each in study.resolved
    ]
    plain = [
        {"factors": [plain_factor(f) for f in s["factors"]], "choices": s["choices"]}
        for s in scenarios
    ]
    body: dict[str, Any] = {
        "kind": study.kind,
        "title": study.title,
        "about": study.about,
        "question": study.question,
        "tables": {table.id: _table(table) for table in study.tables},
        "findings": study.findings,
        "warnings": [{"code": code, "message": message} for code, message in study.warnings],
        "requirements": [
            {
                "text": v.gate.text,
                "measure": v.gate.measure.id,
                "statistic": v.gate.statistic,
                "operator": v.gate.operator,
                "limit": tidy(v.gate.limit),
                "value": tidy(v.value),
                "unit": v.gate.measure.unit,
                "of": v.of,
                "met": v.met,
            }
            for v in study.gates
        ],
        "simulated": study.simulated,
        "scenarios": scenarios,
        "statements": [
            each.model_dump(mode="json")
            for each in (study.bills(catalog) if study.bills is not None else [])
        ],
    }
    return {
        "schema_name": SCHEMA_NAME,
        "schema_version": SCHEMA_VERSION,
        "generated_at": generated_at(),
        "tool": {
            "name": "ckptcost",
            "version": __version__,
            "command": list(command),
            "method_version": METHOD_VERSION,
        },
        **body,
        "reproducibility": {
            "inputs_sha256": sha256({"question": study.question, "scenarios": plain}),
            "inputs": [input_part(name, raw) for name, raw in files],
            "factor_set": {
                "name": FACTOR_SET,
                "version": __version__,
                "sha256": sha256([f for s in plain for f in s["factors"]]),
            },
            "result_sha256": sha256(body),
        },
    }


def _table(table: Table) -> dict[str, Any]:
    return {
        "title": table.title,
        "columns": {
            c.id: {"label": c.label, "unit": c.unit, "meaning": c.meaning, "shown": c.shown}
            for c in table.columns
        },
        "rows": [{c.id: _plain(row.get(c.id)) for c in table.columns} for row in table.rows],
        "note": table.note,
        "shown": table.shown,
    }


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | bool) else tidy(float(value))


def build(
    study: Study,
    catalog: Catalog,
    command: Sequence[str] = (),
    files: Sequence[tuple[str, bytes]] = (),
) -> StudyDocument:
    """The document, judged by its schema."""
    return StudyDocument.model_validate(document_of(study, catalog, command, files))
