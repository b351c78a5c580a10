"""Claims of a vendor's sheet held against each other."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ckptcost.first.errors import Argument, InputError
from ckptcost.first.questions.parameters import PathText
from ckptcost.first.questions.results import StudyResult

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog


def audit(
    claims: PathText | None = None,
    *,
    arithmetic: bool = False,
    vocabulary: bool = False,
    catalog: Catalog | None = None,
) -> StudyResult:
    """The claims of a sheet, shipped or a TOML file of yours, held against each other; without one,
    how those that ship fare. `vocabulary`: what a claim can speak of instead."""
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.jobs.audit import audit as audit_job
    from ckptcost.first.jobs.audit import shipped_audits
    from ckptcost.first.report.studies import audit as studies

    catalog = catalog or Catalog()
    if vocabulary:
        if claims is not None:
            raise InputError(
                "shows no claims", where=Argument("vocabulary"), remedy="leave the name away"
            )
        return StudyResult(studies.vocabulary(), catalog)
    if claims is None:
        return StudyResult(studies.overview(shipped_audits(catalog)), catalog)
    audited, files = audit_job(catalog, os.fspath(claims))
    return StudyResult(studies.study_of(audited, catalog.sources, arithmetic), catalog, files)


def contradictions(result: StudyResult) -> int:
    """How many claims are inconsistent."""
    from ckptcost.first.core.audit import INCONSISTENT

    rows = [row for table in result.study.tables for row in table.rows]
    return sum(
        int(row.get(INCONSISTENT) or 0) + (row.get("verdict") == INCONSISTENT) for row in rows
    )
