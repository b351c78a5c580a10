"""A study from its document, for the same views: what `report FILE` shows."""

from __future__ import annotations

from typing import Any

from ckptcost.jobs.gates import Verdict, gate_of
from ckptcost.report.statements.reading import judged
from ckptcost.report.study import Column, Study, Table
from ckptcost.report.study_document import SCHEMA_VERSION, StudyDocument


def read(raw: dict[str, Any], source: str) -> StudyDocument:
    """The document, judged by its schema."""
    return judged(raw, StudyDocument, SCHEMA_VERSION, source)


def study_of(document: StudyDocument) -> Study:
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
        for name, part in document.tables.items()
    ]
    nan = float("nan")
    verdicts = [
        Verdict(gate_of(r.text, "requirements"), nan if r.value is None else r.value, r.met, r.of)
        for r in document.requirements
    ]
    warnings = [(each.code, each.message) for each in document.warnings]
    return Study(
        document.kind,
        document.title,
        document.about,
        document.question,
        tables,
        document.findings,
        warnings,
        verdicts,
        simulated=document.simulated,
    )
