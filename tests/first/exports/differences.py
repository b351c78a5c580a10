"""Differences of made-up statements, and the reports of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from statements import document

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.questions.diff import side_of
from ckptcost.first.report.build import build
from ckptcost.first.report.diff import delta_of
from ckptcost.first.report.diff_reasons import notes_of, reasons_of
from ckptcost.first.report.diff_views import study_of
from ckptcost.first.report.difference import Budget, Difference
from ckptcost.first.report.document import Report
from ckptcost.first.report.statement import Statement


def difference_of(
    past: Statement,
    current: Statement,
    budgets: Sequence[Budget] = (),
    source: str = "a.json",
    documents: tuple[Report, Report] | None = None,
    **more: Any,
) -> Difference:
    """`documents`: those that hold the two, where they hold more; `more`: other reasons or notes
    than those that follow."""
    delta = delta_of(past, current)
    told = {
        "reasons": reasons_of(past, current, delta.factors),
        "notes": notes_of(past, current, delta),
        **more,
    }
    one, two = documents or (document(past), document(current))
    return Difference(
        past=side_of(one, past, source),
        current=side_of(two, current, "b.json"),
        delta=delta,
        comparable=not told["reasons"],
        incomparable_reasons=list(told["reasons"]),
        notes=list(told["notes"]),
        budgets=list(budgets),
    )


def report_of(found: Difference) -> Report:
    """As the command writes it."""
    question = {
        "of": [side.statement_sha256 for side in (found.past, found.current)],
        "budgets": [each.text for each in found.budgets],
    }
    return build(study_of(found, question), Catalog(), ["ckptcost", "diff"])
