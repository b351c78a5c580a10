"""An answer in a notebook: what the terminal says first, as HTML."""

from __future__ import annotations

from ckptcost.report import render
from ckptcost.report.brief import (
    CAUTIONS,
    SENTENCES,
    TABLES,
    BriefAnswer,
    Shown,
    rows_of,
    told_of_study,
)
from ckptcost.report.document import Report
from ckptcost.report.html.markup import Markup, bullets, el
from ckptcost.report.read import study_of

ROWS = 20
"""of a table; the frame of the same answer has all of them"""


def of_report(report: Report) -> str:
    """What is said of statements and differences is laid out for a terminal: as it is there."""
    if report.kind in ("statements", "difference"):
        return el("pre", render.answer(report))
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
            [el("td", cell, style=_side(at < table.left)) for at, cell in enumerate(row)],
        )
        for row in rows
    ]
    note = el("p", el("small", table.note)) if table.note else None
    inside = el("table", el("thead", head), el("tbody", body))
    return el("div", el("p", el("b", table.title), cut), inside, note)


def _side(is_text: bool) -> str:
    return f"text-align:{'left' if is_text else 'right'}"
