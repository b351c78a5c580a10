"""Two documents or recorded runs held against each other, for a pull request."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptcost.first.errors import Argument, InputError, brief
from ckptcost.first.questions.parameters import PathText, texts
from ckptcost.first.questions.statements import statement_document

if TYPE_CHECKING:
    from ckptcost.first.report.difference import Budget, Change, Delta, Side
    from ckptcost.first.report.document import Report
    from ckptcost.first.report.statement import Statement

QUANTITY_OF = {
    "gpu_hours": "gpu_time_lost",
    "kwh": "energy",
    "usd": "cost",
    "kgco2e": "emissions_location",
    "market_kgco2e": "emissions_market",
    "embodied_kgco2e": "embodied",
    "water_l": "water",
}
_ASKED = re.compile(r"\s*([a-z0-9_]+)(?:\s*/\s*([a-z0-9_]+))?\s*(<=|<)\s*([+-]?)\s*(.+?)\s*$", re.S)


def diff(
    old: PathText,
    new: PathText,
    *,
    case: str | Sequence[str] = (),
    budget_change: str | Sequence[str] = (),
    anyway: bool = False,
    command: Sequence[str] = (),
) -> Report:
    """What changed from `old` to `new`, line by line, and whether budgets such as "usd<=5 %" hold
    it; `case` where a file holds several, two for OLD's and NEW's. What cannot be compared is
    refused, unless `anyway`."""
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.report import diff as of_statements
    from ckptcost.first.report import diff_reasons
    from ckptcost.first.report.build import build
    from ckptcost.first.report.diff_views import study_of
    from ckptcost.first.report.difference import Difference

    asked = [asked_of(text) for text in texts(budget_change)]
    names = [os.fspath(old), os.fspath(new)]
    past, current = map(statement_of, names, _cases(case))
    delta = of_statements.delta_of(past[1], current[1])
    reasons = diff_reasons.reasons_of(past[1], current[1], delta.factors)
    refused = [each.message for each in reasons if each.refuses]
    shown = [os.path.basename(name.rstrip(os.sep)) for name in names]
    if refused and not anyway:
        raise InputError(
            f"cannot be compared with {os.path.basename(names[0])}: {'; '.join(refused)}",
            where=os.path.basename(names[1]),
            remedy="--anyway compares them",
        )
    difference = Difference(
        past=side_of(*past, shown[0]),
        current=side_of(*current, shown[1]),
        delta=delta,
        comparable=not reasons,
        incomparable_reasons=list(reasons),
        notes=diff_reasons.notes_of(past[1], current[1], delta),
        budgets=[check_budget(each, delta) for each in asked],
    )
    question = {
        "of": [each.statement_sha256 for each in (difference.past, difference.current)],
        "budgets": [each.text for each in asked],
    }
    return build(study_of(difference, question), Catalog(), command)


def _cases(case: str | Sequence[str]) -> list[str]:
    """OLD's and NEW's; one counts for both."""
    said = texts(case)
    if len(said) > 2:
        raise InputError(
            "is given more than twice",
            where=Argument("case"),
            remedy="give one for both, or OLD's and NEW's",
        )
    return [*said, *said, "", ""][:2]


def side_of(report: Report, statement: Statement, source: str) -> Side:
    """One of the two, as the document holds it."""
    from ckptcost.first.report.canonical import sha256
    from ckptcost.first.report.difference import Side

    return Side(
        source=source,
        generated_at=report.generated_at,
        tool_version=report.tool.version,
        inputs=report.reproducibility.inputs,
        result_sha256=report.reproducibility.result_sha256,
        statement_sha256=sha256(statement.model_dump(mode="json")),
        statement=statement.model_copy(update={"series": None}),
    )


# ---- reading


def statement_of(source: str, case: str) -> tuple[Report, Statement]:
    """The document of a file or run, and the statement of it that is meant. The one place where OLD
    and NEW are read."""
    from ckptcost.first.report.statements import reading

    with reading.spool_pipe(source) as kept:
        # of a model's cases one is asked for; of other documents all are read, and one is chosen
        of_model = bool(reading.cases_of(kept))
        document = statement_document([kept], reading.Placing(case=case if of_model else ""))
    return document, statement_named(document, "" if of_model else case, os.path.basename(source))


def statement_named(document: Report, case: str, where: str) -> Statement:
    """The one statement, or the one that is meant: by id, run id, name or tier, or by a part of an
    id that only one has."""
    found = _named(document.statements, case) if case else document.statements
    if len(found) == 1:
        return found[0]
    known = ", ".join(brief(s.subject.run_id, 80) for s in document.statements[:8]) or "none"
    told = f"{len(found) or 'no'} statement{'' if len(found) == 1 else 's'}" + (
        f" named {brief(case)}" if case else ""
    )
    raise InputError(f"holds {told}", where=where, remedy=f"choose with --case; it has: {known}")


def _named(statements: list[Statement], case: str) -> list[Statement]:
    exact = [
        s for s in statements if case in (s.id, s.subject.run_id, s.subject.name, s.subject.tier)
    ]
    return exact or [s for s in statements if case in s.id]


# ---- budgets


def asked_of(text: str) -> Budget:
    """A budget from "usd<=5 %" or "kwh/checkpoint<=0.5 kWh", not judged yet."""
    from ckptcost.first.core.measures import MEASURES
    from ckptcost.first.core.units import to_hours, to_kwh
    from ckptcost.first.jobs.gates import limit_of
    from ckptcost.first.report.difference import Budget

    where, found = Argument("budget_change"), _ASKED.match(text)
    if not found:
        raise InputError(
            f"{brief(text)} is not name<=change",
            where=where,
            remedy='write e.g. "usd<=5 %" or "kwh<=100 kWh"',
        )
    name, per, operator, sign, said = found.groups()
    if name not in QUANTITY_OF:
        raise InputError(
            f"no quantity named {brief(name)}",
            where=where,
            remedy="known: " + ", ".join(QUANTITY_OF),
        )
    relative = said.endswith("%")
    try:
        if relative:
            limit = float(said[:-1]) / 100
        else:
            base = limit_of(MEASURES[name], said)
            limit = {"j": to_kwh, "gpu_s": to_hours}.get(MEASURES[name].unit, float)(base)
    except InputError as error:
        raise error.at(where, name) from None
    except ValueError:
        raise InputError(
            f"{brief(said)} is no percentage", where=where, key=name, remedy='write e.g. "usd<=5 %"'
        ) from None
    if not 0 <= limit < float("inf"):
        raise InputError(f"{brief(said)} is no limit", where=where, key=name)
    signed = -limit if sign == "-" else limit
    return Budget(
        text=text.strip(),
        quantity=QUANTITY_OF[name],
        per=per,
        operator="<=" if operator == "<=" else "<",
        limit=signed,
        relative=relative,
        value=None,
        met=False,
    )


def check_budget(budget: Budget, delta: Delta) -> Budget:
    """A change held against its budget. What is not known meets none; from 0 to more exceeds every
    share, from 0 to 0 is a change of 0."""
    from math import isclose

    from ckptcost.first.report.diff import SAME

    change = _change(budget, delta)
    value = (
        0.0 if change.direction == "same" else change.relative if budget.relative else change.change
    )
    # figures hold 12 digits: what differs by less is the limit itself
    at_limit = value is not None and isclose(value, budget.limit, rel_tol=SAME)
    met = value is not None and (budget.operator == "<=" if at_limit else value < budget.limit)
    return budget.model_copy(update={"value": value, "met": met})


def _change(budget: Budget, delta: Delta) -> Change:
    if budget.per is None:
        found: Change = getattr(delta.totals, budget.quantity)
        return found
    known = {unit.name.replace(" ", "_"): unit for unit in delta.per}
    if budget.per not in known:
        raise InputError(
            f"not both count {budget.per}s",
            where=Argument("budget_change"),
            remedy=f"known: {', '.join(known) or 'none'}",
        )
    of_unit: Change = getattr(known[budget.per], budget.quantity)
    return of_unit
