"""FOCUS 1.2: a row for each line and calendar month of a bill, for FinOps tools.

The dollars are on a real invoice already, so every row is a memo item of an issuer of its own.
FOCUS has no place for an unknown cost: a case whose sum is not known is refused, and a line without
a price inside a known sum has no row; the tag ckptcost/lacks names it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from ckptcost.exports import QUANTITIES, Bills, Files, Subject, instant
from ckptcost.exports.csv import text

COSTS = ("BilledCost", "ContractedCost", "EffectiveCost", "ListCost")
OURS = {
    f"x_{q.title().replace('_', '')}{about.unit.replace('-', '')}": q
    for q, about in QUANTITIES.items()
    if q != "cost"
}
ISSUER = "ckptcost (memo)"
STORAGE = ("storage_write", "network", "requests", "retention")


def write(bills: Bills) -> Files:
    found: list[dict[str, Any]] = []
    for s in bills.needing("FOCUS", "cost"):
        tags = {f"ckptcost/{name}": said for name, said in s.words.items()}
        if lacks := bills.of(s, "cost").lacks:
            tags["ckptcost/lacks"] = lacks
        for line in bills.lines(s):
            found += rows_of(bills, s, line, json.dumps(tags))
    return {"focus.csv": text(next(iter(found), {}), found)}


def months(s: Subject) -> Iterator[tuple[datetime, datetime, datetime, datetime, float]]:
    """Month's begin and end, the charge's begin and end in it, and its share of the whole."""
    at, end = s.period
    whole = (end - at).total_seconds()
    while at < end:
        first = at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        after = (first + timedelta(days=32)).replace(day=1)
        stop = min(after, end)
        yield first, after, at, stop, (stop - at).total_seconds() / whole
        at = stop


def rows_of(bills: Bills, s: Subject, line: str, tags: str) -> Iterator[dict[str, Any]]:
    """By calendar month; none for a line without a price, or in which nothing happens."""
    amounts = {q: bills.of(s, q, line).value for q in QUANTITIES}
    priced = amounts["cost"]
    if priced is None or not any(amounts.values()):
        return
    for first, after, begin, end, share in months(s):
        mine = {q: None if value is None else value * share for q, value in amounts.items()}
        cost, hours = priced * share, (end - begin).total_seconds() / 3600
        yield {
            **words(s, line),
            "PricingQuantity": mine["gpu_time"] or hours,
            "PricingUnit": "GPU-Hours" if mine["gpu_time"] else "Hours",
            "BillingPeriodStart": instant(first),
            "BillingPeriodEnd": instant(after),
            "ChargePeriodStart": instant(begin),
            "ChargePeriodEnd": instant(end),
            **dict.fromkeys(COSTS, cost),
            "Tags": tags,
            **{ours: mine[q] for ours, q in OURS.items()},
            "x_Line": line,
        }


def words(s: Subject, line: str) -> dict[str, Any]:
    kind = "Storage" if line.removeprefix("second_") in STORAGE else "Compute"
    return {
        "BillingAccountId": "ckptcost",
        "BillingAccountName": "ckptcost",
        "BillingCurrency": "USD",
        "ChargeCategory": "Usage",
        "ChargeClass": None,
        "ChargeDescription": f"(memo) {line.replace('_', ' ')}: {s.name}",
        "ChargeFrequency": "Usage-Based",
        "InvoiceId": None,
        "InvoiceIssuerName": ISSUER,
        "ProviderName": ISSUER,
        "PublisherName": "ckptcost",
        "RegionId": s.words.get("site"),
        "RegionName": s.words.get("site"),
        "ResourceId": s.id,
        "ResourceName": s.name,
        "ResourceType": "Training run",
        "ServiceCategory": kind,
        "ServiceName": f"Checkpoint {kind.lower()}",
        "ServiceSubcategory": f"Other ({kind})",
    }
