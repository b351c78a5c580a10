"""The statement itself."""

from __future__ import annotations

from ckptcost.exports.formats import Files
from ckptcost.report.document import Report


def export(document: Report) -> Files:
    return {"statement.json": [document.to_json()]}
