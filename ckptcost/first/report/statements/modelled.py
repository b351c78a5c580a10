"""The closed form's statement, judged by its schema: of a case as it was computed, or of a document
whose cases are rebuilt from the inputs that it carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ckptcost.first.errors import Argument, UnknownName
from ckptcost.first.jobs.model import Answer, Case, case_names
from ckptcost.first.report.document import Report
from ckptcost.first.report.statement import Statement
from ckptcost.first.report.statements.closed_form import case_text, plain_id, statement_part
from ckptcost.first.report.studies.model import digest_of, warnings_of


def statement_of(report: Report, case: str = "") -> Statement:
    """One case of a model; the first, which the document bills in full, unless another is named: by
    its id, or by its tier where that has one case."""
    from ckptcost.first.report import check

    rows = report.rows("cases")
    names = [str(row["case"]) for row in rows]
    at = _place_of(rows, names, case)
    first = report.statements[0]
    if at == 0:
        return first
    case = names[at]
    digest = first.id.removeprefix("urn:sha256:").partition("#")[0]
    told = [each.model_dump() for each in report.warnings]
    part = statement_part(
        check.case_rebuilt(report, at),
        check.NO_SOURCES,
        digest,
        case,
        names,
        [each for each in told if "[" not in each["message"] or case in each["message"]],
    )
    # names and sources are the document's: a case that was rebuilt knows ids alone
    subject = first.subject.model_dump() | {
        "tier": str(rows[at]["tier_name"]) or None,
        "name": f"{report.title}, {case_text(case, names)}",
        "run_id": part["subject"]["run_id"],
    }
    told_factors = check.factors_of(report, at)
    return Statement.model_validate(part | {"factors": told_factors, "subject": subject})


def _place_of(rows: Sequence[Mapping[str, Any]], names: Sequence[str], case: str) -> int:
    if not case:
        return 0
    own = [at for at, row in enumerate(rows) if row["tier"] == case]
    if len(own) == 1:
        return own[0]
    if case not in names:
        raise UnknownName("case", case, names, where=Argument("case"), lists="the report's cases")
    return names.index(case)


def of_case(case: Case, catalog: Any, name: str = "") -> Statement:
    """A case on its own, as a comparison has them."""
    answer = Answer((case,), None)
    names = case_names(answer.cases)
    part = statement_part(case, catalog, digest_of(answer), names[0], names, warnings_of(answer))
    found = Statement.model_validate(part)
    if not name:
        return found
    named = {"name": name, "run_id": plain_id(f"{found.subject.run_id}-{name}")}
    return found.model_copy(update={"subject": found.subject.model_copy(update=named)})
