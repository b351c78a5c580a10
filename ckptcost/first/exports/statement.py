"""The statement itself."""

from __future__ import annotations

from ckptcost.first.exports.formats import Files
from ckptcost.first.report.document import Report


def export(document: Report) -> Files:
    return {"statement.json": [document.to_json()]}
