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

COLUMNS = """
BilledCost BillingAccountId BillingAccountName BillingCurrency BillingPeriodEnd BillingPeriodStart
ChargeCategory ChargeClass ChargeDescription ChargePeriodEnd ChargePeriodStart ContractedCost
EffectiveCost InvoiceIssuerName ListCost PricingQuantity PricingUnit ProviderName PublisherName
ServiceCategory ServiceName BillingAccountType ChargeFrequency CommitmentDiscountStatus
ConsumedQuantity ConsumedUnit ContractedUnitPrice InvoiceId ListUnitPrice PricingCategory
PricingCurrency PricingCurrencyContractedUnitPrice PricingCurrencyEffectiveCost
PricingCurrencyListUnitPrice RegionId RegionName ResourceId ResourceName ResourceType
ServiceSubcategory SkuId SkuMeter SkuPriceDetails SkuPriceId SubAccountId SubAccountName
SubAccountType Tags
""".split()  # noqa: SIM905
OURS = {
    f"x_{q.title().replace('_', '')}{about.unit.replace('-', '')}": q
    for q, about in QUANTITIES.items()
    if q != "cost"
}
COSTS = """
BilledCost ContractedCost EffectiveCost ListCost PricingCurrencyEffectiveCost
""".split()  # noqa: SIM905
PRICES = """
ListUnitPrice ContractedUnitPrice PricingCurrencyListUnitPrice PricingCurrencyContractedUnitPrice
""".split()  # noqa: SIM905
ISSUER = "ckptcost (memo)"
STORAGE = ("storage_write", "network", "requests", "retention")


def write(bills: Bills) -> Files:
    rows: list[dict[str, Any]] = []
    for s in bills.needing("FOCUS", "cost"):
        tags = {f"ckptcost/{name}": said for name, said in s.words.items()}
        if lacks := bills.of(s, "cost").lacks:
            tags["ckptcost/lacks"] = lacks
        for line in bills.lines(s):
            rows += rows_of(bills, s, line, json.dumps(tags))
    return {"focus.csv": text([*COLUMNS, *OURS, "x_Line", "x_Kind"], rows)}


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
        cost = priced * share
        yield {
            **words(s, line),
            **prices(line, mine["gpu_time"] or 0.0, cost, (end - begin).total_seconds() / 3600),
            "BillingPeriodStart": instant(first),
            "BillingPeriodEnd": instant(after),
            "ChargePeriodStart": instant(begin),
            "ChargePeriodEnd": instant(end),
            "ChargeCategory": "Usage",
            "Tags": tags,
            **dict.fromkeys(COSTS, cost),
            **{ours: mine[q] for ours, q in OURS.items()},
        }


def prices(line: str, held: float, cost: float, hours: float) -> dict[str, Any]:
    """Quantity and unit price, whose product is the cost: by the GPU-hour if GPUs are held."""
    quantity, unit = (held, "GPU-Hours") if held > 0 else (hours, "Hours")
    return {
        **dict.fromkeys(("PricingQuantity", "ConsumedQuantity"), quantity),
        **dict.fromkeys(("PricingUnit", "ConsumedUnit"), unit),
        **dict.fromkeys(PRICES, cost / quantity),
        "PricingCategory": "Other",
        "SkuPriceId": f"checkpoint/{line}/{unit}",
    }


def words(s: Subject, line: str) -> dict[str, Any]:
    storage = line.removeprefix("second_") in STORAGE
    return {
        "BillingAccountId": "ckptcost",
        "BillingAccountName": "ckptcost",
        "BillingAccountType": "Memo account",
        "BillingCurrency": "USD",
        "PricingCurrency": "USD",
        "ChargeDescription": f"(memo) {line.replace('_', ' ')}: {s.name}",
        "ChargeFrequency": "Usage-Based",
        "InvoiceIssuerName": ISSUER,
        "ProviderName": ISSUER,
        "PublisherName": "ckptcost",
        "RegionId": s.words.get("site"),
        "RegionName": s.words.get("site"),
        "ResourceId": s.id,
        "ResourceName": s.name,
        "ResourceType": "Training run",
        "ServiceCategory": "Storage" if storage else "Compute",
        "ServiceName": "Checkpoint storage" if storage else "Checkpoint compute",
        "ServiceSubcategory": "Other (Storage)" if storage else "Other (Compute)",
        "SkuId": f"checkpoint/{line}",
        "SkuMeter": line.replace("_", " "),
        "x_Line": line,
        "x_Kind": s.kind,
    }
