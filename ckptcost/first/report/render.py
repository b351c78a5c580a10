"""A document or an answer in a format: text, Markdown, CSV, JSON, a page, or the output of a
notebook's cell."""

from __future__ import annotations

from collections.abc import Sequence

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.report import diff_views, statement_views
from ckptcost.first.report.brief import (
    CAUTIONS,
    SENTENCES,
    TABLES,
    BriefAnswer,
    Shown,
    rows_of,
    told_of_study,
)
from ckptcost.first.report.build import input_part
from ckptcost.first.report.document import Report
from ckptcost.first.report.html.extras import extras_of
from ckptcost.first.report.html.markup import Markup, bullets, el
from ckptcost.first.report.html.page import page_of
from ckptcost.first.report.parts import InputFile
from ckptcost.first.report.read import read, study_of
from ckptcost.first.report.statement import Statement
from ckptcost.first.report.statements.reading import gather_statements
from ckptcost.first.report.study import Study
from ckptcost.first.report.study_views import view


def answer(report: Report) -> str:
    """What the terminal says of it, on one screen where there is more."""
    return text_of(report, "text")


def text_of(report: Report, form: str, table: str | None = None, full: bool = False) -> str:
    """The document in a format; text is its answer, or all of it."""
    if form == "json":
        return report.to_json()
    if form == "html":
        inputs = report.reproducibility.inputs
        return page(study_of(report), report.statements, report.tool.command, inputs)
    if report.kind == "statements":
        return statement_views.VIEWS[form](report)
    if report.kind == "difference" and form in diff_views.VIEWS:
        return diff_views.VIEWS[form](report)
    return view(study_of(report), form, table, full)


def file_text(source: str, form: str, table: str | None = None, full: bool = False) -> str:
    """The document in a file, in a format."""
    return text_of(read(source), form, table, full)


def page_of_study(
    study: Study,
    catalog: Catalog,
    command: Sequence[str],
    files: Sequence[tuple[str, bytes]] = (),
) -> str:
    """The page of what was just found, before it was written anywhere."""
    statements = [] if study.bills is None else study.bills(catalog)
    return page(study, statements, command, [InputFile(**input_part(*each)) for each in files])


def page(
    study: Study,
    statements: Sequence[Statement],
    command: Sequence[str],
    inputs: Sequence[InputFile] = (),
) -> str:
    """The page of an answer, with its statements or the same under other factors."""
    return page_of(gather_statements(statements, command, inputs), extras_of(study, statements))


# ---- in a notebook: what the terminal says first, as HTML

ROWS = 20
"""of a table; the frame of the same answer has all of them"""


def notebook(report: Report) -> str:
    """What is said of statements and differences is laid out for a terminal: as it is there."""
    if report.kind in ("statements", "difference"):
        return el("pre", answer(report))
    return html(told_of_study(study_of(report)))


def html(told: BriefAnswer) -> str:
    """Sentences, the tables that carry the answer, and cautions that may turn a decision."""
    weighty = [each for each in told.weighty[:CAUTIONS] if each]
    return el(
        "div",
        el("h4", told.title),
        [el("p", line) for line in told.about],
        bullets(told.sentences[:SENTENCES]),
        bullets(told.targets),
        [_table(table) for table in told.tables[:TABLES]],
        [el("p", el("b", "Take care")), bullets(weighty)] if weighty else None,
        el("p", told.basis) if told.basis else None,
    )


def _table(table: Shown) -> Markup:
    rows = rows_of(table, min(ROWS, len(table.rows)))
    cut = f" ({len(rows)} of {len(table.rows)} rows)" if len(rows) < len(table.rows) else ""
    head = el("tr", [el("th", each, scope="col") for each in table.header])
    body = [
        el(
            "tr",
            [
                el("td", cell, style=f"text-align:{'left' if at < table.left else 'right'}")
                for at, cell in enumerate(row)
            ],
        )
        for row in rows
    ]
    note = el("p", el("small", table.note)) if table.note else None
    inside = el("table", el("thead", head), el("tbody", body))
    return el("div", el("p", el("b", table.title), cut), inside, note)
