"""The columns of FOCUS 1.2 that are written, and what a component's rows say in words.

Those that the specification has come first, by its own names; ours begin with x_ and come last, as
it asks. It has no columns for energy or carbon yet: x_EmissionsLocationKgCO2e and
x_EmissionsMarketKgCO2e keep the two apart, as the proposal for them does. x_GridMethod says what
the location-based factor counts: add up rows of one method only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from ckptcost.report.parts import Component, Factor, Quantity
from ckptcost.report.statement import QUANTITIES, Statement
from ckptcost.report.to_csv import safe

Cell = str | float | None

MANDATORY = (
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "ServiceCategory",
    "ServiceName",
)
CONDITIONAL = (
    "BillingAccountType",
    "ChargeFrequency",
    "CommitmentDiscountStatus",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedUnitPrice",
    "InvoiceId",
    "ListUnitPrice",
    "PricingCategory",
    "PricingCurrency",
    "PricingCurrencyContractedUnitPrice",
    "PricingCurrencyEffectiveCost",
    "PricingCurrencyListUnitPrice",
    "RegionId",
    "RegionName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceSubcategory",
    "SkuId",
    "SkuMeter",
    "SkuPriceDetails",
    "SkuPriceId",
    "SubAccountId",
    "SubAccountName",
    "SubAccountType",
    "Tags",
)
"""there where a provider has prices, accounts, regions, tags; the status of a discount is always
null: rules on others ask for it"""
AMOUNTS = {
    "energy": "EnergyKwh",
    "emissions_location": "EmissionsLocationKgCO2e",
    "emissions_market": "EmissionsMarketKgCO2e",
    "embodied": "EmbodiedKgCO2e",
    "gpu_time_lost": "GpuHours",
    "cost": "BilledCost",
    "water": "WaterLitres",
}
"""quantity of the document: ours (the cost itself is in FOCUS's columns, its low and high in
ours)"""
RATED = ("emissions_location", "emissions_market", "embodied", "cost")
CUSTOM = (
    *[
        f"x_{ours}{end}"
        for field, ours in AMOUNTS.items()
        for end in ("", "Low", "High")
        if end or field != "cost"
    ],
    "x_Checkpoints",
    "x_CostOfRow",
    "x_CostOfRun",
    "x_EnergyOfRun",
    "x_UnpricedComponents",
    "x_GpuHourPrice",
    "x_Component",
    "x_Cause",
    "x_Boundary",
    "x_Basis",
    "x_RestsOn",
    "x_Kind",
    "x_Simulated",
    "x_InventoryTreatment",
    "x_GridZone",
    "x_GridMethod",
    "x_RunId",
    "x_RunName",
    "x_Uncertainty",
    "x_Factors",
    "x_MethodVersion",
)
COLUMNS = (*MANDATORY, *CONDITIONAL, *CUSTOM)

PROVIDER = "ckptcost (memo)"
"""nobody's invoice: a report that groups by provider or issuer shows these rows apart from the bill
that already contains them"""
SERVICES = {
    True: ("Checkpoint storage", "Storage", "Other (Storage)"),
    False: ("Checkpoint compute", "Compute", "Other (Compute)"),
}
"""by whether it is in a drive or a storage system; the specification wants one category for one
service"""


def _json(pairs: dict[str, str | float | bool]) -> str:
    return json.dumps(pairs, ensure_ascii=True, allow_nan=False)


def _told(factor: Factor) -> str:
    """A factor with who says so and under which licence.

    >>> _told(
    ...     Factor(
    ...         id="site.pue",
    ...         name="",
    ...         value=1.15,
    ...         unit="",
    ...         text="1.15",
    ...         origin="default",
    ...         set_by="no flag",
    ...     )
    ... )
    '1.15 (default, no flag)'
    """
    whence = "; ".join(
        ", ".join(part for part in (s.title, s.publisher, s.licence) if part)
        for s in factor.sources
    )
    return f"{factor.text or factor.value} ({whence or f'{factor.origin}, {factor.set_by}'})"


def state_of(total: Quantity) -> str:
    """Of a sum: whether it is all of it."""
    return "unknown" if total.value is None else "at least" if total.excludes else "known"


def sku_of(component: Component) -> str:
    return component.sku or f"checkpoint/{component.id}"


def tags_of(statement: Statement, component: Component) -> str:
    """The user's own tags as they are; ours under a prefix, which the specification asks of a
    provider and keeps the two from meeting."""
    subject = statement.subject
    ours: dict[str, str | bool | None] = {
        "inventory_treatment": statement.boundary.inventory_treatment,
        "run_id": subject.run_id,
        "run_name": subject.name,
        "statement": statement.id,
        "component": component.id,
        "cause": component.cause,
        "basis": component.basis,
        "simulated": statement.simulated,
        "organisation": subject.organisation,
        "team": subject.team,
        "tier": subject.tier,
        "cluster": subject.cluster,
        "site": subject.site,
        "cloud_provider": subject.cloud_provider,
        **{
            f"{field}_excludes": " ".join(getattr(statement.totals, field).excludes) or None
            for field in QUANTITIES
        },
    }
    return _json(
        {
            **subject.tags,
            **{f"ckptcost/{key}": value for key, value in ours.items() if value is not None},
        }
    )


def rates_of(statement: Statement, component: Component) -> str:
    """What turns its kWh and GPU-hours into kgCO2e and dollars, with sources. What those themselves
    rest on would not fit into a cell."""
    used = [
        {name for field in fields for name in getattr(component, field).factors}
        for fields in (RATED, ("energy", "gpu_time_lost"))
    ]
    return _json(
        {factor.id: _told(factor) for factor in statement.factors if factor.id in used[0] - used[1]}
    )


def words_of(
    statement: Statement, component: Component, unpriced: Iterable[str]
) -> dict[str, Cell]:
    """What is the same on all rows of a component; None is a null."""
    subject, account = statement.subject, statement.subject.organisation or "ckptcost"
    service, category, subcategory = SERVICES[component.boundary in ("drive", "storage-system")]
    region = subject.cloud_region or subject.site_id or subject.region or subject.grid_zone
    said: dict[str, Cell] = {
        "BillingAccountId": account,
        "BillingAccountName": account,
        "BillingAccountType": "Memo account",
        "BillingCurrency": statement.currency,
        "ChargeCategory": "Usage",
        "ChargeClass": None,
        "ChargeFrequency": "Usage-Based",
        "ChargeDescription": (
            f"(memo) {'simulated: ' * statement.simulated}{component.label}: {subject.name}"
        ),
        "InvoiceId": None,
        "CommitmentDiscountStatus": None,
        "PricingCurrency": statement.currency,
        "InvoiceIssuerName": PROVIDER,
        "ProviderName": PROVIDER,
        "PublisherName": "ckptcost",
        "RegionId": region,
        "RegionName": region and (subject.region or subject.site or region),
        "ResourceId": subject.run_id,
        "ResourceName": subject.name,
        "ResourceType": "Training run",
        "ServiceCategory": category,
        "ServiceName": service,
        "ServiceSubcategory": subcategory,
        "SkuId": sku_of(component),
        "SkuMeter": component.label,
        "SubAccountId": subject.team,
        "SubAccountName": subject.team,
        "SubAccountType": subject.team and "Team",
        "Tags": tags_of(statement, component),
        "x_Component": component.id,
        "x_Cause": component.cause,
        "x_Boundary": component.boundary,
        "x_Basis": component.basis,
        "x_RestsOn": component.rests_on,
        "x_Kind": statement.kind,
        "x_Simulated": str(statement.simulated).lower(),
        "x_InventoryTreatment": statement.boundary.inventory_treatment,
        "x_GridZone": subject.grid_zone,
        "x_GridMethod": statement.grid_method,
        "x_RunId": subject.run_id,
        "x_RunName": subject.name,
        "x_CostOfRun": state_of(statement.totals.cost),
        "x_EnergyOfRun": state_of(statement.totals.energy),
        "x_UnpricedComponents": " ".join(unpriced) or None,
        "x_Uncertainty": statement.uncertainty,
        "x_Factors": rates_of(statement, component),
        "x_MethodVersion": statement.method_version,
    }
    return {name: safe(cell) if isinstance(cell, str) else cell for name, cell in said.items()}
