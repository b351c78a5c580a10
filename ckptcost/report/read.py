"""Documents from their JSON files: judged by the schema, and as answers that any view shows."""

from __future__ import annotations

from pydantic import ValidationError

from ckptcost.errors import InputError, brief
from ckptcost.jobs.gates import GateVerdict, gate_of
from ckptcost.report.build import result_hash
from ckptcost.report.document import SCHEMA_NAME, SCHEMA_VERSION, Report
from ckptcost.report.json_text import parse_json
from ckptcost.report.study import Bills, Column, Study, Table

MOST_BYTES = 300_000_000
OF_A_MODEL = ("cases", "one_save", "all_saves", "whole_run", "bill")
OF_A_CASE = frozenset({"tier", "case", "tier_name"})
OF_A_SWEEP = "ckptcost.sweep"
"""rows of a grid, which have a schema of their own (`report/sweeps.py`)"""
OLDER = ("ckptcost.study", "ckptcost.statement", "ckptcost.diff")
"""schemas of documents before all were reports"""


def read(source: str) -> Report:
    """The document in a file. A newer minor version is read without what it adds; one of statements
    alone must be as it was written, because exports are made of it."""
    raw = parse_json(source, MOST_BYTES)
    name = raw.get("schema_name") if isinstance(raw, dict) else None
    if name == OF_A_SWEEP:
        raise InputError(
            "is no document but the rows of a sweep, for other programs to read",
            where=source,
            key="schema_name",
            remedy="show the sweep with `ckptcost sweep -f text`, or one of its jobs with"
            " `ckptcost model`",
        )
    if not isinstance(raw, dict) or name not in (SCHEMA_NAME, *OLDER):
        raise InputError(
            "is no document of ckptcost's",
            where=source,
            key="schema_name",
            remedy="write one with -f json, e.g. `ckptcost model -f json -o report.json`",
        )
    version = str(raw.get("schema_version"))
    if name in OLDER or not version.startswith("2."):
        raise InputError(
            f"is of the schema {name} {brief(version)}, this program reads {SCHEMA_NAME} 2.x",
            where=source,
            key="schema_version",
            remedy=(
                "write it again with this ckptcost"
                if name in OLDER or version.startswith("1.")
                else "use a newer ckptcost"
            ),
        )
    newer = version != SCHEMA_VERSION
    try:
        report = Report.model_validate(raw, extra="ignore" if newer else None)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        said = first["msg"].removeprefix("Value error, ")
        problem = said[0].lower() + said[1:]
        raise _broken(problem, source, ".".join(map(str, first["loc"]))) from None
    _require_parts(report, source, newer)
    said = report.reproducibility.result_sha256
    if report.kind == "statements" and not newer and (found := result_hash(report)) != said:
        problem = f"its hash is {found[:16]}..., it says {brief(said)}"
        raise _broken(problem, source, "reproducibility.result_sha256")
    return report


def _require_parts(report: Report, source: str, newer: bool) -> None:
    """Whether it has the parts that its kind cannot do without: views, pages, exports and checks
    take them for granted."""
    for name, table in report.tables.items():
        keys = table.columns.keys()
        odd = next((at for at, row in enumerate(table.rows) if row.keys() != keys), None)
        if odd is not None and not newer:
            raise _broken("has not the cells of its columns", source, f"tables.{name}.rows.{odd}")
        seconds = [column for column, each in table.columns.items() if each.unit == "s"]
        for at, row in enumerate(table.rows):
            for column in seconds:
                if isinstance(row.get(column), str):
                    raise _broken("is no number", source, f"tables.{name}.rows.{at}.{column}")
    if report.kind == "difference" and report.difference is None:
        raise _broken("is missing", source, "difference")
    if report.kind != "model":
        return
    lacking = [name for name in OF_A_MODEL if name not in report.tables]
    cases = [] if lacking else report.rows("cases")
    if not cases or not all(row.keys() >= OF_A_CASE for row in cases):
        lacking = [*lacking, "cases"]
        raise _broken("is missing or empty", source, f"tables.{lacking[0]}")
    if not report.statements:
        raise _broken("is empty", source, "statements")
    first, names = report.statements[0], [row["case"] for row in cases]
    for name in ("schedule", "allocated", "one_save", "drawn"):
        if getattr(first, name) is None:
            raise _broken("is missing", source, f"statements.0.{name}")
    if [each.name for each in report.scenarios][: len(names)] != names:
        raise _broken("are not those of the cases", source, "scenarios")
    if report.question.get("cases") != names:
        raise _broken("are not those of the table", source, "question.cases")


def _broken(problem: str, source: str, key: str) -> InputError:
    remedy = "it was changed after it was written: write it again, or take the original"
    return InputError(problem, where=source, key=key, remedy=remedy)


def study_of(report: Report) -> Study:
    """Tables, findings and targets as they were; the scenarios stay in the document."""
    tables = [
        Table(
            name,
            part.title,
            tuple(
                Column(column, each.label, each.unit, each.meaning, each.shown)
                for column, each in part.columns.items()
            ),
            [dict(row) for row in part.rows],
            part.note,
            part.shown,
        )
        for name, part in report.tables.items()
    ]
    nan = float("nan")
    verdicts = [
        GateVerdict(
            gate_of(r.text, "requirements"), nan if r.value is None else r.value, r.met, r.of
        )
        for r in report.requirements
    ]
    return Study(
        report.kind,
        report.title,
        report.about,
        report.question,
        tables,
        report.findings,
        [(each.code, each.message) for each in report.warnings],
        verdicts,
        simulated=report.simulated,
        bills=Bills(lambda _: report.statements, report.statements),
        remarks=report.remarks,
        factors=report.statements[0].factors if report.kind == "model" else (),
        difference=report.difference,
    )
