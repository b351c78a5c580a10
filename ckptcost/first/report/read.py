"""Documents from their JSON files: judged by the schema, and as answers that any view shows. A key
that comes twice in a file is refused: readers differ on which counts."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ckptcost.first.catalog.files import text_of
from ckptcost.first.core.regret import OBJECTIVES
from ckptcost.first.errors import InputError, brief
from ckptcost.first.jobs.gates import GateVerdict, gate_of
from ckptcost.first.report.build import result_hash
from ckptcost.first.report.diff_views import NAMES
from ckptcost.first.report.document import SCHEMA_NAME, SCHEMA_VERSION, Report, TablePart
from ckptcost.first.report.statement import MOST_AMOUNT, QUANTITIES, Statement
from ckptcost.first.report.study import ROW_DIFFERENCE, ROW_UNIT, Bills, Column, Study, Table

MOST_BYTES = 300_000_000
OF_A_MODEL = ("cases", "one_save", "all_saves", "whole_run", "bill")
OF_A_CASE = frozenset({"tier", "case", "tier_name"})
OF_A_CHANGE = frozenset(
    (
        *("of", "label", "quantity", "unit", "before", "after"),
        *("change", "change_share", "ranges_overlap", "reason"),
    )
)
"""columns that a page of a difference shows"""
OF_A_SWEEP = "ckptcost.sweep"
"""rows of a grid, which have a schema of their own (`report/sweeps.py`)"""
OLDER = ("ckptcost.study", "ckptcost.statement", "ckptcost.diff")
"""schemas of documents before all were reports"""


def read(source: str) -> Report:
    """The document in a file. A newer minor version is read without what it adds; one of statements
    alone must be as it was written, because exports are made of it."""
    raw = parse_json(source)
    version = _version_of(raw, source)
    newer = version != SCHEMA_VERSION
    try:
        report = Report.model_validate(raw, extra="ignore" if newer else None)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        said = first["msg"].removeprefix("Value error, ")
        problem = said[0].lower() + said[1:]
        raise _broken(problem, source, ".".join(map(str, first["loc"]))) from None
    for name, table in report.tables.items():
        _require_cells(table, newer, source, f"tables.{name}.rows")
    for problem, key in _lacking(report, newer):
        raise _broken(problem, source, key)
    return report


def _lacking(report: Report, newer: bool) -> Iterator[tuple[str, str]]:
    """What its kind cannot do without: the problem and where."""
    if report.kind == "difference":
        yield from _lacking_of_a_difference(report)
    if report.kind == "model":
        yield from _lacking_of_a_model(report)
    yield from _immense(report)
    told = report.reproducibility.result_sha256
    if report.kind == "statements" and not newer and (found := result_hash(report)) != told:
        problem = f"its hash is {found[:16]}..., it says {brief(told)}"
        yield problem, "reproducibility.result_sha256"


def _version_of(raw: Any, source: str) -> str:
    """Its version, where it is a document that this program reads."""
    name = raw.get("schema_name") if isinstance(raw, dict) else None
    if name == OF_A_SWEEP:
        raise InputError(
            "is no document but the rows of a sweep, for other programs to read",
            where=source,
            key="schema_name",
            remedy="show the sweep with `ckptcost sweep -f text`, or one of its jobs with"
            " `ckptcost model`",
        )
    if name not in (SCHEMA_NAME, *OLDER):
        raise InputError(
            "is no document of ckptcost's",
            where=source,
            key="schema_name",
            remedy="write one with -f json, e.g. `ckptcost model -f json -o report.json`",
        )
    version = str(raw.get("schema_version"))
    if name in OLDER or not version.startswith("2."):
        older = name in OLDER or version.startswith("1.")
        raise InputError(
            f"is of the schema {name} {brief(version)}, this program reads {SCHEMA_NAME} 2.x",
            where=source,
            key="schema_version",
            remedy="write it again with this ckptcost" if older else "use a newer ckptcost",
        )
    return version


def _require_cells(table: TablePart, newer: bool, source: str, where: str) -> None:
    """Whether its rows have the cells of its columns, which views take for granted."""
    keys = table.columns.keys()
    of_the_row = ("", ROW_UNIT, ROW_DIFFERENCE)
    numbers = [column for column, each in table.columns.items() if each.unit not in of_the_row]
    for at, row in enumerate(table.rows):
        if row.keys() != keys and not newer:
            raise _broken("has not the cells of its columns", source, f"{where}.{at}")
    for at, row in enumerate(table.rows):
        for column in numbers:
            if isinstance(row.get(column), str):
                raise _broken("is no number", source, f"{where}.{at}.{column}")


def _immense(report: Report) -> Iterator[tuple[str, str]]:
    """Amounts of which sums and other units may not be finite."""
    for at, s in enumerate(report.statements):
        for where, line in (("totals", s.totals), *((c.id, c) for c in s.components)):
            for what in QUANTITIES:
                q = getattr(line, what)
                if any(abs(v) > MOST_AMOUNT for v in (q.value, q.low, q.high) if v is not None):
                    yield f"is more than {MOST_AMOUNT:g}", f"statements.{at}.{where}.{what}"
        for f in s.factors:
            if isinstance(f.value, int | float) and abs(f.value) > MOST_AMOUNT:
                yield f"is more than {MOST_AMOUNT:g}", f"statements.{at}.factors.{f.id}"


def _lacking_of_a_difference(report: Report) -> Iterator[tuple[str, str]]:
    if report.difference is None:
        yield "is missing", "difference"
    changes = next(iter(report.tables.items()), None)
    if changes is None or changes[0] != "changes" or not changes[1].columns.keys() >= OF_A_CHANGE:
        yield "is missing or has not its columns", "tables.changes"
        return
    for at, row in enumerate(changes[1].rows):
        if row.get("quantity") not in NAMES:
            yield "is no quantity", f"tables.changes.rows.{at}.quantity"


def _lacking_of_a_model(report: Report) -> Iterator[tuple[str, str]]:
    """What a model's document has not, of what views, pages, exports and checks take for granted:
    the problem and where."""
    for name in OF_A_MODEL:
        if name not in report.tables:
            yield "is missing or empty", f"tables.{name}"
    cases = report.rows("cases")
    if not cases or not all(row.keys() >= OF_A_CASE for row in cases):
        yield "is missing or empty", "tables.cases"
    yield from _lacking_of_statements(report.statements)
    names = [row["case"] for row in cases]
    if [each.name for each in report.scenarios][: len(names)] != names:
        yield "are not those of the cases", "scenarios"
    if report.question.get("cases") != names:
        yield "are not those of the table", "question.cases"


def _lacking_of_statements(statements: Sequence[Statement]) -> Iterator[tuple[str, str]]:
    """The same of a model's statements."""
    if not statements:
        yield "is empty", "statements"
    for at, each in enumerate(statements):
        judged = each.schedule and each.schedule.rules_judged_by
        if judged is not None and judged not in OBJECTIVES:
            yield "is no objective", f"statements.{at}.schedule.rules_judged_by"
    for name in ("schedule", "allocated", "one_save", "drawn"):
        if getattr(statements[0], name) is None:
            yield "is missing", f"statements.0.{name}"


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


# ---- JSON: one sentence for each way in which it is none

_LARGE = re.compile(r"\d[eE]\+?\d{3}|\d{300}")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(source: str) -> Any:
    """What is in the file."""
    text = text_of(Path(source), source, MOST_BYTES)
    try:
        found = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)
        if isinstance(found, dict) and _LARGE.search(text):  # few files: it takes time
            json.loads(text, parse_float=_no_infinity)
        if _HALF.search(text):
            _refuse_halves(found)
        return found
    except RecursionError:
        raise InputError("is not valid JSON: nested too deep", where=source) from None
    except InputError as error:
        raise error.at(source) from None
    except ValueError as error:
        said = (
            "a number of thousands of digits" if "digits" in str(error) else brief(str(error), 200)
        )
        raise InputError(f"is not valid JSON: {said}", where=source) from None


def _refuse_halves(found: Any) -> None:
    """Half of a pair of surrogates is a letter to JSON, and to nobody who writes UTF-8."""
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError("is not valid JSON: it holds half of a letter") from None


def _no_constant(word: str) -> Any:
    raise InputError(f"holds {word}, which is not JSON")


def _no_infinity(digits: str) -> float:
    """A number too large for a float becomes infinity without a word."""
    if math.isinf(value := float(digits)):
        raise InputError(f"holds {brief(digits)}, which is too large for a number")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"has the key {brief(twice)} twice in one place")
    return found
