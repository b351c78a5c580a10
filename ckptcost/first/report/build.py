"""An answer as a document: judged by its schema, with its hashes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.errors import InputError, brief
from ckptcost.first.report.canonical import sha256, tidy
from ckptcost.first.report.factors import Part, factor_of, plain_factor, plain_input
from ckptcost.first.version import __version__

if TYPE_CHECKING:
    from ckptcost.first.report.document import Report
    from ckptcost.first.report.statement import Statement
    from ckptcost.first.report.study import Study, Table
    from ckptcost.first.scenario import Input, Resolved

METHOD_VERSION = "2026.1"
FACTOR_SET = "ckptcost catalogue"
OF_A_FILE = {"source", "generated_at", "tool_version", "result_sha256"}
"""of the two sides of a difference: their figures are the same under any file name, and written on
any day"""
NOT_HASHED = {
    "schema_name",
    "schema_version",
    "report_id",
    "generated_at",
    "tool",
    "reproducibility",
}


def build(
    study: Study,
    catalog: Catalog,
    command: Sequence[str] = (),
    files: Sequence[tuple[str, bytes]] = (),
    inputs: Sequence[Part] = (),
) -> Report:
    """The document. `files` are the user's own, `inputs` those that are known by their hash
    already."""
    from ckptcost.first.report.document import SCHEMA_NAME, SCHEMA_VERSION, Report

    body = _body(study, catalog)
    plain = plain_scenarios(study.resolved, study.cases)
    inputs_sha256 = inputs_hash(plain)
    told = [sha256_of(raw) for _, raw in files]
    name = id_of(study.kind, study.question, inputs_sha256, told, body["statements"])
    whole = {
        "schema_name": SCHEMA_NAME,
        "schema_version": SCHEMA_VERSION,
        "report_id": name,
        "generated_at": generated_at(),
        "tool": tool_part(command),
        **body,
        "scenarios": list(_scenarios(study, catalog)),
        "reproducibility": {
            "inputs_sha256": inputs_sha256,
            "inputs": [*inputs, *(input_part(name, raw) for name, raw in files)],
            "factor_set": {
                "name": FACTOR_SET,
                "version": __version__,
                "sha256": sha256([f for each in plain for f in each["factors"]]),
            },
            "result_sha256": "",
        },
    }
    report = Report.model_validate(whole)
    digest = result_hash(report)
    kept = report.reproducibility.model_copy(update={"result_sha256": digest})
    return report.model_copy(update={"reproducibility": kept})


def id_of(
    kind: str, question: Part, inputs_sha256: str, files: list[str], of: Sequence[Statement]
) -> str:
    """The same for the same question of the same inputs, files and recordings."""
    asked = {
        "kind": kind,
        "question": question,
        "inputs": inputs_sha256,
        "files": files,
        "statements": [each.id for each in of],
    }
    return f"urn:sha256:{sha256(asked)[:32]}"


def _body(study: Study, catalog: Catalog) -> dict[str, Any]:
    statements = study.bills(catalog) if study.bills is not None else []
    return {
        "kind": study.kind,
        "title": study.title,
        "about": list(study.about),
        "question": study.question,
        "simulated": study.simulated,
        "currency": "USD",
        "findings": list(study.findings),
        "remarks": list(study.remarks),
        "tables": {table.id: _table(table) for table in study.tables},
        "statements": statements,
        "difference": study.difference,
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
    }


def scenario_part(
    resolved: Sequence[Resolved], cases: Sequence[str], at: int, told: Callable[[Input], Part]
) -> Part:
    """One of the scenarios with all its inputs, each as `told` has it; where they are `cases` of
    one job, those behind the first by what differs from it."""
    mine, first = resolved[at], resolved[0]
    name = cases[at] if cases else mine.name or "scenario"
    if not cases or at == 0:
        factors = [told(i) for i in mine.inputs]
        return {"name": name, "factors": factors, "choices": dict(sorted(mine.words.items()))}
    inputs, theirs = ({i.path: i for i in each.inputs} for each in (mine, first))
    words = sorted({*mine.words, *first.words})
    return {
        "name": name,
        "by_difference": True,
        "factors": [told(i) for path, i in inputs.items() if theirs.get(path) != i],
        "dropped": [path for path in theirs if path not in inputs],
        "choices": {w: mine.words.get(w) for w in words if mine.words.get(w) != first.words.get(w)},
    }


def _scenarios(study: Study, catalog: Catalog) -> Iterator[Part]:
    """As a document has them: where they are ways to do one job, the inputs of the first are its
    statement's."""
    for at in range(len(study.resolved)):
        if study.cases and at == 0:
            same: Part = {"by_difference": True, "factors": [], "dropped": [], "choices": {}}
            yield {"name": study.cases[0], **same}
        else:
            yield scenario_part(
                study.resolved, study.cases, at, lambda each: factor_of(each, catalog)
            )


def plain_scenarios(resolved: Sequence[Resolved], cases: Sequence[str]) -> list[Part]:
    """What the hash of a document's inputs is over."""
    return [scenario_part(resolved, cases, at, plain_input) for at in range(len(resolved))]


def inputs_hash(scenarios: Sequence[Part]) -> str:
    """Over the factors and choices of all scenarios."""
    plain = [
        {"factors": [plain_factor(f) for f in each["factors"]], "choices": each["choices"]}
        | ({"dropped": each["dropped"]} if each.get("by_difference") else {})
        for each in scenarios
    ]
    return sha256(plain)


def _table(table: Table) -> Part:
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


def tool_part(command: Sequence[str]) -> Part:
    return {
        "name": "ckptcost",
        "version": __version__,
        "command": list(command),
        "method_version": METHOD_VERSION,
    }


def input_part(name: str, raw: bytes) -> Part:
    """A file of the user's as a document names it: without its folder."""
    return {"path": os.path.basename(name), "bytes": len(raw), "sha256": sha256_of(raw)}


def sha256_of(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def result_hash(report: Report) -> str:
    """The hash that `reproducibility.result_sha256` should hold: over all that describes the
    result, and what its files were, under any name."""
    plain = {key: value for key, value in report.plain().items() if key not in NOT_HASHED}
    if files := report.reproducibility.inputs:
        plain["files"] = [[each.bytes, each.sha256] for each in files]
    if "difference" in plain:
        sides = {
            side: {
                key: each for key, each in plain["difference"][side].items() if key not in OF_A_FILE
            }
            for side in ("past", "current")
        }
        plain["difference"] = plain["difference"] | sides
    return sha256(plain)


def generated_at() -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        when = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    except (ValueError, OverflowError, OSError):
        raise InputError(
            f"{brief(epoch)} is no time in seconds",
            where="SOURCE_DATE_EPOCH",
            remedy="unset it, or e.g. SOURCE_DATE_EPOCH=0",
        ) from None
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def statements_study(found: Sequence[Statement]) -> Study:
    """Statements alone, as an answer."""
    from ckptcost.first.report.study import Bills, Study

    names = [s.subject.name for s in found]
    told = names[0] if len(names) == 1 else f"{len(names)} statements"
    return Study(
        "statements",
        f"What checkpoints cost: {told}",
        [],
        {"of": [s.id for s in found]},
        [],
        [],
        simulated=any(s.simulated for s in found),
        bills=Bills(lambda _: list(found), list(found)),
    )
