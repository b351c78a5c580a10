"""The statement itself."""

from __future__ import annotations

from ckptcost.exports.formats import Files
from ckptcost.report.statement import StatementDocument


def export(document: StatementDocument) -> Files:
    return {"statement.json": [document.to_json()]}
