"""`ckptcost diff`."""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ckptcost.report.diff_document import Budget, Change, Delta
    from ckptcost.report.statement import Statement, StatementDocument

EPILOG = """\
examples:
  ckptcost diff before.json after.json
  ckptcost diff main.json branch.json -f md -o comment.md
  ckptcost diff main.json branch.json --budget-change "usd<=5 %"
  ckptcost diff a.json b.json --budget-change "kwh/checkpoint<=-10 %"
OLD and NEW are reports, studies or statements as JSON, or recorded runs.
budgets: gpu_hours, kwh, usd, kgco2e, market_kgco2e, embodied_kgco2e; of all, or
/checkpoint and the like; a share of OLD's or an amount. Below 0: less is asked.
An unknown change meets no budget.
exit codes: 2 also where the two cannot be compared (--anyway compares them),
3 a budget is exceeded
"""
QUANTITY_OF = {
    "gpu_hours": "gpu_time_lost",
    "kwh": "energy",
    "usd": "cost",
    "kgco2e": "emissions_location",
    "market_kgco2e": "emissions_market",
    "embodied_kgco2e": "embodied",
}
_ASKED = re.compile(r"\s*([a-z0-9_]+)(?:\s*/\s*([a-z0-9_]+))?\s*(<=|<)\s*([+-]?)\s*(.+?)\s*$", re.S)
EXCEEDED = 3


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", help="a JSON file, or a recorded run")
    parser.add_argument("new", metavar="NEW", help="what is held against it")
    parser.add_argument(
        "--case",
        action="append",
        default=[],
        metavar="ID",
        help="which statement, where a file holds several; twice: OLD's and NEW's",
    )
    parser.add_argument(
        "--budget-change",
        action="append",
        default=[],
        metavar="LIMIT",
        help='e.g. "usd<=5 %%" or "kwh<=100 kWh"; exit code 3 when it is exceeded; may repeat',
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="compare what cannot be compared, and say why it cannot",
    )
    parser.add_argument(
        "-f",
        "--format",
        choices=("text", "md", "json", "csv"),
        default="text",
        help="default: text",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of stdout")


def run(options: argparse.Namespace) -> int:
    from ckptcost.cli import output, telling
    from ckptcost.errors import InputError
    from ckptcost.report import diff, diff_reasons
    from ckptcost.report.build import METHOD_VERSION, generated_at
    from ckptcost.report.diff_document import document_of, side_of
    from ckptcost.report.diff_views import VIEWS, budget_text
    from ckptcost.version import __version__

    asked = [asked_of(text) for text in options.budget_change]
    if len(options.case) > 2:
        raise InputError(
            "is given more than twice",
            where="--case",
            remedy="give one for both, or OLD's and NEW's",
        )
    cases = [*options.case, *options.case, "", ""][:2]  # one counts for both
    past, current = (
        statement_of(name, case)
        for name, case in zip((options.old, options.new), cases, strict=True)
    )
    delta = diff.delta_of(past[1], current[1])
    reasons = diff_reasons.reasons_of(past[1], current[1], delta.factors)
    refused = [each.message for each in reasons if each.refuses]
    if refused and not options.anyway:
        raise InputError(
            f"cannot be compared with {os.path.basename(options.old)}: {'; '.join(refused)}",
            where=os.path.basename(options.new),
            remedy="--anyway compares them",
        )
    budgets = [judged(each, delta) for each in asked]
    document = document_of(
        side_of(*past, os.path.basename(options.old.rstrip(os.sep))),
        side_of(*current, os.path.basename(options.new.rstrip(os.sep))),
        delta,
        reasons,
        diff_reasons.notes_of(past[1], current[1], delta),
        budgets,
        generated_at(),
        {
            "version": __version__,
            "command": telling.command_of(options),
            "method_version": METHOD_VERSION,
        },
    )
    output.write([VIEWS[options.format](document)], options.output)
    exceeded = [each for each in budgets if not each.met]
    for each in exceeded:
        print(f"ckptcost: {budget_text(each)}", file=sys.stderr)
    return EXCEEDED if exceeded else 0


# ---- reading


def statement_of(source: str, case: str) -> tuple[StatementDocument, Statement]:
    """The document of a file or run, and the statement of it that is meant. The one place where OLD
    and NEW are read."""
    from ckptcost.questions.statements import statement_document
    from ckptcost.report.statements import reading

    with reading.spooled(source) as kept:
        # of a report's cases one is asked for; of other documents all are read, and one is chosen
        of_report = (
            reading.is_document(kept) and reading.raw_of(kept)["schema_name"] == "ckptcost.report"
        )
        document = statement_document([kept], reading.Placing(case=case if of_report else ""))
    return document, named(document, "" if of_report else case, os.path.basename(source))


def named(document: StatementDocument, case: str, where: str) -> Statement:
    """The one statement, or the one that is meant: by id, run id, name or tier, or by a part of an
    id that only one has."""
    from ckptcost.errors import InputError, brief

    found = document.statements
    if case:
        exact = [
            s for s in found if case in (s.id, s.subject.run_id, s.subject.name, s.subject.tier)
        ]
        found = exact or [s for s in found if case in s.id]
    if len(found) == 1:
        return found[0]
    known = ", ".join(brief(s.subject.run_id, 80) for s in document.statements[:8]) or "none"
    told = f"{len(found) or 'no'} statement{'' if len(found) == 1 else 's'}" + (
        f" named {brief(case)}" if case else ""
    )
    raise InputError(f"holds {told}", where=where, remedy=f"choose with --case; it has: {known}")


# ---- budgets


def asked_of(text: str) -> Budget:
    """A budget from "usd<=5 %" or "kwh/checkpoint<=0.5 kWh", not judged yet."""
    from ckptcost.core.measures import MEASURES
    from ckptcost.core.units import to_hours, to_kwh
    from ckptcost.errors import InputError, brief
    from ckptcost.jobs.gates import limit_of
    from ckptcost.report.diff_document import Budget

    flag, found = "--budget-change", _ASKED.match(text)
    if not found:
        raise InputError(
            f"{brief(text)} is not name<=change",
            where=flag,
            remedy='write e.g. "usd<=5 %" or "kwh<=100 kWh"',
        )
    name, per, operator, sign, said = found.groups()
    if name not in QUANTITY_OF:
        raise InputError(
            f"no quantity named {brief(name)}",
            where=flag,
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
        raise error.at(flag, name) from None
    except ValueError:
        raise InputError(
            f"{brief(said)} is no percentage", where=flag, key=name, remedy='write e.g. "usd<=5 %"'
        ) from None
    if not 0 <= limit < float("inf"):
        raise InputError(f"{brief(said)} is no limit", where=flag, key=name)
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


def judged(budget: Budget, delta: Delta) -> Budget:
    """A change held against its budget. What is not known meets none; from 0 to more exceeds every
    share, from 0 to 0 is a change of 0."""
    from math import isclose

    from ckptcost.report.diff import SAME

    change = _change(budget, delta)
    value = (
        0.0 if change.direction == "same" else change.relative if budget.relative else change.change
    )
    # figures hold 12 digits: what differs by less is the limit itself
    at_limit = value is not None and isclose(value, budget.limit, rel_tol=SAME)
    met = value is not None and (budget.operator == "<=" if at_limit else value < budget.limit)
    return budget.model_copy(update={"value": value, "met": met})


def _change(budget: Budget, delta: Delta) -> Change:
    from ckptcost.errors import InputError

    if budget.per is None:
        found: Change = getattr(delta.totals, budget.quantity)
        return found
    known = {unit.name.replace(" ", "_"): unit for unit in delta.per}
    if budget.per not in known:
        raise InputError(
            f"not both count {budget.per}s",
            where="--budget-change",
            remedy=f"known: {', '.join(known) or 'none'}",
        )
    of_unit: Change = getattr(known[budget.per], budget.quantity)
    return of_unit
