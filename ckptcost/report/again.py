"""A document told again: as text, Markdown, CSV, JSON or a page, from its file alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ckptcost.catalog.store import Catalog
from ckptcost.report import brief, check, statement_views, study_again, study_views, to_csv
from ckptcost.report import text as report_views
from ckptcost.report.build import input_part
from ckptcost.report.document import InputFile, Report
from ckptcost.report.html.extras import Extras
from ckptcost.report.html.page import page_of
from ckptcost.report.page_extras import of_report, of_study, sci_of
from ckptcost.report.statement import StatementDocument
from ckptcost.report.statements import reading
from ckptcost.report.statements.modelled import statement_of
from ckptcost.report.study import Study


def told(source: str, form: str, table: str | None = None, full: bool = False) -> str:
    """The file's content in a format; text is its answer, or all of it."""
    raw = reading.raw_of(source)
    if raw["schema_name"] == "ckptcost.report":
        report = check.read(source)
        if form == "json":
            return report.to_json()
        if form == "html":
            return _page_of_report(report)
        if form == "csv":
            return to_csv.of_report(report)
        if form == "md":
            return report_views.to_markdown(report)
        return report_views.text(report) if full else brief.of_report(report)
    if raw["schema_name"] == "ckptcost.study":
        document = study_again.read(raw, source)
        if form == "json":
            return document.to_json()
        study = study_again.study_of(document)
        if form == "html":
            inputs = document.reproducibility.inputs
            return page_of(
                reading.gathered(document.statements, document.tool.command, inputs),
                of_study(study, document.statements),
            )
        return _of_study(study, form, table, full)
    statements = reading.again(raw, source)
    return page(statements, source, None) if form == "html" else of_statements(statements, form)


def _of_study(study: Study, form: str, table: str | None, full: bool) -> str:
    if form == "csv":
        return study_views.to_csv(study, table)
    if form == "md":
        return study_views.to_markdown(study)
    return study_views.text(study) if full else brief.of_study(study)


def _page_of_report(report: Report) -> str:
    statement = statement_of(report)
    return page_of(
        reading.gathered([statement], report.tool.command, report.reproducibility.inputs),
        of_report(report, statement),
    )


def of_statements(document: StatementDocument, form: str) -> str:
    if form == "json":
        return document.to_json()
    if form == "csv":
        return statement_views.to_csv(document)
    return statement_views.to_markdown(document) if form == "md" else statement_views.text(document)


def page(document: StatementDocument, source: str, study: Study | None, case: str = "") -> str:
    """The page of what `source` was read into: its statements, and what else there is to draw.
    `study`: of a recorded run."""
    return page_of(
        document,
        (
            of_study(study, document.statements)
            if study is not None
            else _extras(document, source, case)
        ),
    )


def page_of_answer(
    answer: Report | Study,
    catalog: Catalog,
    command: Sequence[str],
    files: Sequence[tuple[str, bytes]] = (),
) -> str:
    """The page of what was just found, before it was written anywhere."""
    if isinstance(answer, Report):
        return _page_of_report(answer)
    statements = [] if answer.bills is None else answer.bills(catalog)
    inputs = [InputFile(**input_part(name, raw)) for name, raw in files]
    return page_of(reading.gathered(statements, command, inputs), of_study(answer, statements))


def _extras(document: StatementDocument, source: str, case: str) -> Extras:
    raw: dict[str, Any] = reading.raw_of(source)
    if raw["schema_name"] == "ckptcost.report":
        return of_report(check.read(source), document.statements[0], case)
    if raw["schema_name"] == "ckptcost.study":
        return of_study(study_again.study_of(study_again.read(raw, source)), document.statements)
    if len(document.statements) == 1:
        return Extras(sci=sci_of(document.statements[0]))
    return Extras(each={s.subject.run_id: Extras(sci=sci_of(s)) for s in document.statements})
