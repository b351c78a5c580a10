"""Datadog Custom Costs: a CSV of dollars by component and UTC day, with a column a tag.

The format (https://docs.datadoghq.com/cloud_cost_management/custom/): six columns in this order, then tags; a comma between; no blank
value, none longer than 1000 characters; dates YYYY-MM-DD, the last one inclusive; US dollars; no day that is still to come.

These dollars are on the real bill already: `inventory_treatment` and the description say that they are memo items. What has no known
cost has no row; a cost of 0 has one. A row of series over midnight is shared by the seconds of each day. Two statements may be
alternatives: tell them apart by `run_id` before adding up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal

from ckptcost.errors import InputError
from ckptcost.exports.formats import Files
from ckptcost.report.statement import Statement, StatementDocument, utc
from ckptcost.report.to_csv import lines, safe

REQUIRED = (
    "ProviderName",
    "ChargeDescription",
    "ChargePeriodStart",
    "ChargePeriodEnd",
    "BilledCost",
    "BillingCurrency",
)
LONGEST = 1000
"""characters of any name or value"""
NOT_GIVEN = "not given"
"""in a tag that another row has: a blank is refused"""
DAY = timedelta(days=1)
Charge = tuple[str, date, date, float]
"""component, first and last day, dollars"""


def export(document: StatementDocument) -> Files:
    charges = [list(_charges(s)) for s in document.statements]
    if not any(charges):
        names = ", ".join(s.subject.name for s in document.statements)
        raise InputError(
            f"no cost is known of {names}",
            where="--to datadog",
            remedy="give prices, e.g. --set cluster.gpu_price='2.5 USD/h'",
        )
    today = utc(document.generated_at).date()
    for s, rows in zip(document.statements, charges, strict=True):
        last = max((row[2] for row in rows), default=today)
        if last > today:
            earlier = (utc(s.period_start or "") - (last - today)).date()
            raise InputError(
                f"Datadog takes no cost of days to come, and {s.subject.name} has some of {last}; this statement is of {today}",
                where="--to datadog",
                remedy=f"export it after that day, or let it begin earlier: --start {earlier}T00:00Z",
            )
    return {"datadog-costs.csv": _pieces(document, charges)}


def _charges(s: Statement) -> Iterator[Charge]:
    """Dollars of each component and day; those without rows in the series over the whole time."""
    days: dict[str, dict[date, float]] = defaultdict(lambda: defaultdict(float))
    known = {c.id: c.cost.value for c in s.marginal() if c.cost.value is not None}
    if s.series:
        shares: dict[tuple[str, float], Mapping[date, float]] = {}
        for start, seconds, line, usd in zip(
            s.series.start, s.series.duration_s, s.series.component, s.series.cost_usd, strict=True
        ):
            if usd is not None and line in known:
                share = shares.get((start, seconds)) or shares.setdefault(
                    (start, seconds), _by_day(utc(start), seconds)
                )
                for day, part in share.items():
                    days[line][day] += usd * part
    for line, usd in known.items():
        if line in days:
            yield from ((line, day, day, total) for day, total in sorted(days[line].items()))
        elif s.period_start and s.period_end:
            begin, end = utc(s.period_start), utc(s.period_end)
            yield (
                line,
                begin.date(),
                max(begin.date(), (end - timedelta(microseconds=1)).date()),
                usd,
            )


def _by_day(start: datetime, seconds: float) -> dict[date, float]:
    """Which share of an interval lies on which day.

    >>> {str(day): share for day, share in _by_day(utc("2026-09-01T18:00:00Z"), 8 * 3600.0).items()}
    {'2026-09-01': 0.75, '2026-09-02': 0.25}
    """
    end = start + timedelta(seconds=seconds)
    midnight = start.replace(hour=0, minute=0, second=0, microsecond=0) + DAY
    if end <= midnight:
        return {start.date(): 1.0}
    shares, whole = {}, end - start
    while start < end:
        until = min(midnight, end)
        shares[start.date()] = (until - start) / whole
        start, midnight = until, midnight + DAY
    return shares


def _pieces(document: StatementDocument, charges: list[list[Charge]]) -> Iterator[str]:
    about = [_about(document, s) for s in document.statements]
    names = list(dict.fromkeys(name for tags in about for name in tags))
    taken = {
        name.lower() for name in (*REQUIRED, *names, "component", "cause", "basis", "rests_on")
    }
    own: dict[str, str] = {}
    for key in dict.fromkeys(key for s in document.statements for key in s.subject.tags):
        if (column := safe(_cell(key))).lower() not in taken:
            own[key] = column
            taken.add(column.lower())
    yield lines([[*REQUIRED, "component", "cause", "basis", "rests_on", *names, *own.values()]])
    for s, tags, rows in zip(document.statements, about, charges, strict=True):
        mark = ", meters simulated" if s.simulated else ""
        parts = {c.id: c for c in s.components}
        common = [_cell(tags.get(name)) for name in names] + [
            _cell(s.subject.tags.get(key)) for key in own
        ]
        lead = {
            line: (
                _cell(f"checkpoint cost (memo item, already in other bills{mark}): {c.label}"),
                [_cell(c.id), c.cause, c.cost.basis, c.rests_on, *common],
            )
            for line, c in parts.items()
        }
        yield lines(
            [
                "ckptcost",
                lead[r[0]][0],
                r[1].isoformat(),
                r[2].isoformat(),
                _decimal(r[3]),
                s.currency,
                *lead[r[0]][1],
            ]
            for r in rows
        )


def _about(document: StatementDocument, s: Statement) -> dict[str, str | None]:
    """Tags of every row of a statement."""
    known = {
        "inventory_treatment": s.boundary.inventory_treatment,
        "run_id": s.subject.run_id,
        "run_name": s.subject.name,
        "kind": s.kind,
        "simulated": str(s.simulated).lower(),
        "method_version": s.method_version,
        "ckptcost_version": document.tool.version,
        "organisation": s.subject.organisation,
        "team": s.subject.team,
        "cluster": s.subject.cluster,
        "site": s.subject.site,
        "grid_zone": s.subject.grid_zone,
        "region": s.subject.region,
        "cloud_provider": s.subject.cloud_provider,
        "cloud_region": s.subject.cloud_region,
        "without_cost": " ".join(s.totals.cost.excludes) or "none",
    }
    return {name: value for name, value in known.items() if value is not None}


def _cell(text: str | None) -> str:
    """On one line, not blank, not NULL, not too long, and no formula.

    >>> _cell("=1+1"), _cell(" two\\n lines "), _cell(""), _cell("null"), len(_cell("x" * 2000))
    ("'=1+1", 'two lines', 'not given', '"null"', 1000)
    """
    line = " ".join((text or "").split())
    return safe(f'"{line}"' if line.upper() == "NULL" else line)[:LONGEST] or NOT_GIVEN


def _decimal(value: float) -> str:
    """All digits and no exponent.

    >>> _decimal(1.5e-07), _decimal(16305.0), _decimal(0.0)
    ('0.00000015', '16305.0', '0.0')
    """
    return format(Decimal(repr(value)), "f")
