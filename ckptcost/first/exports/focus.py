"""FOCUS 1.2 as CSV: a row for each component and UTC day, for FinOps tools and warehouses.

What a reader has to know, since the format has no place for it:

* These dollars are on the real invoice already. Every row is a memo item of an issuer of its own,
  without an invoice.
* A run of which the sum of costs is unknown is refused: FOCUS forbids a null cost, and 0 would be a
  claim.
* A component whose cost is unknown has rows all the same, so that every sum of kWh, kgCO2e and
  GPU-hours is the run's. They bill 0, have no price and no quantity (ChargeCategory "Adjustment",
  which may be without), and say so: x_CostOfRow "unknown", "no price" in the description. Every row
  of such a run says that its bill is one of at least: x_CostOfRun, and x_UnpricedComponents.
* Where the run's sum of another quantity is unknown, its cells are empty on every row.
* A price multiplied by its quantity is the cost, always. Lines that hold GPUs are priced by the
  GPU-hour; where their cost contains electricity besides, the unit price is the mean of that day
  with the electricity in it (PricingCategory "Other"), and x_GpuHourPrice is the price of the
  GPU-hour alone. All other lines are priced by the hour that they last.
* Low and high are the row's share of its component's: they add up over one component's rows, not
  over components.
* A component that the series leaves out (it is zero throughout, or there is no series) is spread
  evenly over the run.
* Instants have whole seconds there: a run's first second and its last are begun ones.

The columns that the specification has come first, by its own names; ours begin with x_ and come
last, as it asks. It has no columns for energy or carbon yet: x_EmissionsLocationKgCO2e and
x_EmissionsMarketKgCO2e keep the two apart, as the proposal for them does. x_GridMethod says what
the location-based factor counts: add up rows of one method only.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import repeat

from ckptcost.first.core.quantities import IN_DOCUMENTS
from ckptcost.first.errors import InputError
from ckptcost.first.exports.formats import Files
from ckptcost.first.report.document import Report
from ckptcost.first.report.parts import Component, Factor, Quantity
from ckptcost.first.report.statement import SERIES_OF, Series, Statement, Subject, instant, utc
from ckptcost.first.report.to_csv import lines, safe

Cell = str | float | None
Amounts = list[float | None]
"""of each of AMOUNTS, and the saves; None is unknown"""
Piece = tuple[int, float, float, Amounts]
"""whose or which day's, from, until, how much"""

_MANDATORY = """
BilledCost BillingAccountId BillingAccountName BillingCurrency BillingPeriodEnd BillingPeriodStart
ChargeCategory ChargeClass ChargeDescription ChargePeriodEnd ChargePeriodStart ContractedCost
EffectiveCost InvoiceIssuerName ListCost PricingQuantity PricingUnit ProviderName PublisherName
ServiceCategory ServiceName
"""
_CONDITIONAL = """
BillingAccountType ChargeFrequency CommitmentDiscountStatus ConsumedQuantity ConsumedUnit
ContractedUnitPrice InvoiceId ListUnitPrice PricingCategory PricingCurrency
PricingCurrencyContractedUnitPrice PricingCurrencyEffectiveCost PricingCurrencyListUnitPrice
RegionId RegionName ResourceId ResourceName ResourceType ServiceSubcategory SkuId SkuMeter
SkuPriceDetails SkuPriceId SubAccountId SubAccountName SubAccountType Tags
"""
"""there where a provider has prices, accounts, regions, tags; the status of a discount is always
null: rules on others ask for it"""
_OURS = """
x_Checkpoints x_CostOfRow x_CostOfRun x_EnergyOfRun x_UnpricedComponents x_GpuHourPrice
x_Component x_Cause x_Boundary x_Basis x_RestsOn x_Kind x_Simulated x_InventoryTreatment
x_GridZone x_GridMethod x_RunId x_RunName x_Uncertainty x_Factors x_MethodVersion
"""
_CALLED = {"gpu_time_lost": "GpuHours", "cost": "BilledCost"}
_UNITS = {"kWh": "Kwh", "kgCO2e": "KgCO2e", "L": "Litres"}


def _focus_name(quantity: str, unit: str) -> str:
    words = quantity.title().replace("_", "")
    return _CALLED.get(quantity) or words + _UNITS.get(unit, unit)


AMOUNTS = {q.id: _focus_name(q.id, q.unit) for q in IN_DOCUMENTS}
"""quantity of the document: ours (the cost itself is in FOCUS's columns, its low and high in
ours)"""
METERED = {q.id for q in IN_DOCUMENTS if q.metered}
MANDATORY = tuple(_MANDATORY.split())
COLUMNS = (
    *MANDATORY,
    *_CONDITIONAL.split(),
    *[
        f"x_{ours}{end}"
        for what, ours in AMOUNTS.items()
        for end in ("", "Low", "High")
        if end or what != "cost"
    ],
    *_OURS.split(),
)
COSTS = (
    "BilledCost",
    "ContractedCost",
    "EffectiveCost",
    "ListCost",
    "PricingCurrencyEffectiveCost",
)
UNIT_PRICES = (
    "ListUnitPrice",
    "ContractedUnitPrice",
    "PricingCurrencyListUnitPrice",
    "PricingCurrencyContractedUnitPrice",
)
COST_AT = list(AMOUNTS).index("cost")
DAY_S = 86400.0
PROVIDER = "ckptcost (memo)"
"""nobody's invoice: a report that groups by provider or issuer shows these rows apart from the bill
that already contains them"""
SERVICES = {
    True: ("Checkpoint storage", "Storage", "Other (Storage)"),
    False: ("Checkpoint compute", "Compute", "Other (Compute)"),
}
"""by whether it is in a drive or a storage system; the specification wants one category for one
service"""


class ComponentDay:
    """What a component did on one UTC day: a row."""

    def __init__(self) -> None:
        self.begin_s, self.end_s, self.seconds = math.inf, -math.inf, 0.0
        self.amounts: dict[str, float | None] = dict.fromkeys(AMOUNTS)
        self.lacks_cost = False
        """of some of its time"""

    def add(self, begin_s: float, end_s: float, amounts: Amounts) -> None:
        first = math.floor(begin_s)
        self.begin_s = min(self.begin_s, first)
        self.end_s = max(self.end_s, math.ceil(end_s), first + 1)
        self.seconds += end_s - begin_s
        for what, amount in zip(AMOUNTS, amounts, strict=False):
            if amount is not None:
                self.amounts[what] = (self.amounts[what] or 0.0) + amount
            elif what == "cost":
                self.lacks_cost = True

    @property
    def hours(self) -> float:
        return self.seconds / 3600.0


def _pieces(statement: Statement, components: Sequence[Component]) -> Iterator[Piece]:
    """Whose (its number), from, until, how much: rows of the series, and what is not among them
    over the whole run."""
    begin_s, end_s = _period_s(statement)
    known = {what for what in AMOUNTS if statement.known(what)}
    dated: set[str] = set()
    if statement.series is not None:
        yield from _rows_in_time(statement.series, known, components)
        dated = set(statement.series.component)
    saves = 0.0 if dated else statement.totals.checkpoints.value or 0.0
    for n, component in enumerate(components):
        if component.id not in dated:
            values = [getattr(component, w).value if w in known else None for w in AMOUNTS]
            yield n, begin_s, end_s, [*values, saves]
            saves = 0.0


def _period_s(statement: Statement) -> tuple[float, float]:
    if statement.period_start is None or statement.period_end is None:
        raise InputError(
            "has no dates, and every FOCUS row has a charge period", where=statement.subject.name
        )
    return utc(statement.period_start).timestamp(), utc(statement.period_end).timestamp()


def _rows_in_time(
    series: Series, known: Collection[str], components: Sequence[Component]
) -> Iterator[Piece]:
    number = {component.id: n for n, component in enumerate(components)}
    seconds = {text: utc(text).timestamp() for text in set(series.start)}
    columns = [getattr(series, SERIES_OF[w]) if w in known else repeat(None) for w in AMOUNTS]
    times = zip(series.component, series.start, series.duration_s, strict=True)
    amounts = zip(*columns, series.checkpoints, strict=False)
    for (name, start, long_s), each in zip(times, amounts, strict=True):
        if name in number:
            yield number[name], seconds[start], seconds[start] + long_s, list(each)


def _by_day(begin_s: float, end_s: float, amounts: Amounts) -> Iterator[Piece]:
    """A piece cut where a UTC day ends, amounts evenly; with the day."""
    begin_s, end_s = (round(each * 1000.0) / 1000.0 for each in (begin_s, end_s))
    first, last = math.floor(begin_s / DAY_S), math.ceil(end_s / DAY_S) - 1
    if last <= first:
        yield first, begin_s, end_s, amounts
        return
    for day in range(first, last + 1):
        start_s, stop_s = max(begin_s, day * DAY_S), min(end_s, (day + 1) * DAY_S)
        share = (stop_s - start_s) / (end_s - begin_s)
        yield day, start_s, stop_s, [None if each is None else each * share for each in amounts]


def _month(day: int) -> tuple[str, str]:
    """The calendar month of a day since 1970.

    >>> _month(20453)
    ('2025-12-01T00:00:00Z', '2026-01-01T00:00:00Z')
    """
    first = datetime.fromtimestamp(day * DAY_S, UTC).replace(day=1)
    later = (first + timedelta(days=31)).replace(day=1)
    return instant(first.timestamp()), instant(later.timestamp())


def _ranges(row: ComponentDay, component: Component, of_hours: float) -> dict[str, Cell]:
    """A row's share of its component's low and high: by the amount, by time where that is zero."""
    found: dict[str, Cell] = {}
    for what, ours in AMOUNTS.items():
        quantity, amount = getattr(component, what), row.amounts[what]
        if amount is None or quantity.value is None or not (quantity.value or of_hours):
            continue
        share = amount / quantity.value if quantity.value else row.hours / of_hours
        for end, value in (("Low", quantity.low), ("High", quantity.high)):
            found[f"x_{ours}{end}"] = None if value is None else value * share
    return found


def _prices(row: ComponentDay, component: Component) -> dict[str, Cell]:
    """A quantity with a unit, and the price of one: their product is the cost."""
    cost = row.amounts["cost"]
    if cost is None:
        return {}
    quantity, unit, alone = _priced_by(row, component)
    standard = alone is not None and abs(alone * quantity - cost) <= 1e-10 * cost
    price = alone if standard else cost / quantity
    return {
        **dict.fromkeys(("PricingQuantity", "ConsumedQuantity"), quantity),
        **dict.fromkeys(("PricingUnit", "ConsumedUnit"), unit),
        **dict.fromkeys(UNIT_PRICES, price),
        "PricingCategory": "Standard" if standard else "Other",
        "SkuPriceId": f"{sku_of(component)}/{unit}",
        "SkuPriceDetails": None if alone is None else f'{{"x_GpuHourPrice": {alone!r}}}',
        "x_GpuHourPrice": alone,
    }


def _priced_by(row: ComponentDay, component: Component) -> tuple[float, str, float | None]:
    """A quantity, its unit, and the price of a GPU-hour alone where it is by the GPU-hour."""
    gpu_hours = row.amounts["gpu_time_lost"] or 0.0
    if component.price_unit == "GPU-h" and gpu_hours > 0:
        return gpu_hours, "GPU-Hours", component.unit_price
    return (row.hours, "Hours", None) if row.hours > 0 else (1.0, "Runs", None)


class RunDays:
    """What a run's components did day by day."""

    def __init__(self, statement: Statement, components: Sequence[Component]) -> None:
        found: dict[tuple[int, int], ComponentDay] = {}
        self.unpriced: set[int] = set()
        saved: list[tuple[int, float]] = []
        for n, since_s, until_s, whole in _pieces(statement, components):
            for day, begin_s, end_s, (*amounts, saves) in _by_day(since_s, until_s, whole):
                if saves:
                    saved.append((day, saves))
                if no_price := amounts[COST_AT] is None:
                    self.unpriced.add(n)
                if not no_price or any(amounts):
                    found.setdefault((day, n), ComponentDay()).add(begin_s, end_s, amounts)
        self.rows = sorted(found.items())
        self.saves = _saves_by_day(saved, sorted({day for day, _ in found}))


def _rows(statement: Statement) -> Iterator[list[Cell]]:
    components = statement.marginal()
    days = RunDays(statement, components)
    hours = [0.0] * len(components)
    for (_, n), row in days.rows:
        hours[n] += row.hours
    names = [component.id for n, component in enumerate(components) if n in days.unpriced]
    words = [words_of(statement, component, names) for component in components]
    for (day, n), row in days.rows:
        cells = {
            **words[n],
            **_cells_of_day(row, day),
            **_ranges(row, components[n], hours[n]),
            **_prices(row, components[n]),
            "x_Checkpoints": days.saves.pop(day, None),
        }
        if row.amounts["cost"] is None:
            said = str(cells["ChargeDescription"])
            cells["ChargeCategory"] = "Adjustment"
            cells["ChargeDescription"] = said.replace("(memo)", "(memo) no price:", 1)
        yield [cells.get(name) for name in COLUMNS]


def _saves_by_day(saved: Iterable[tuple[int, float]], days: Sequence[int]) -> dict[int, float]:
    """Those of a day on the first of its rows, or of the next day that has rows, or of the last."""
    found = dict.fromkeys(days, 0.0)
    for day, saves in saved if days else ():
        found[days[min(bisect_left(days, day), len(days) - 1)]] += saves
    return found


def _cells_of_day(row: ComponentDay, day: int) -> dict[str, Cell]:
    cost, month = row.amounts["cost"], _month(day)
    return {
        "BillingPeriodStart": month[0],
        "BillingPeriodEnd": month[1],
        "ChargePeriodStart": instant(row.begin_s),
        "ChargePeriodEnd": instant(row.end_s),
        "x_CostOfRow": "unknown" if cost is None else "at least" if row.lacks_cost else "known",
        **{f"x_{ours}": row.amounts[what] for what, ours in AMOUNTS.items()},
        **dict.fromkeys(COSTS, cost or 0.0),
    }


def export(document: Report) -> Files:
    return {"focus.csv": [lines([COLUMNS]), *(lines(_rows(s)) for s in document.statements)]}


def _json(pairs: Mapping[str, str | float | bool]) -> str:
    return json.dumps(pairs, ensure_ascii=True, allow_nan=False)


def _factor_text(factor: Factor) -> str:
    """A factor with who says so and under which licence.

    >>> _factor_text(
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
            f"{what}_excludes": " ".join(getattr(statement.totals, what).excludes) or None
            for what in AMOUNTS
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
    rated, metered = (
        {name for what in fields for name in statement.rests_of(getattr(component, what))}
        for fields in ([what for what in AMOUNTS if what not in METERED], METERED)
    )
    used = rated - metered
    rates = {factor.id: _factor_text(factor) for factor in statement.factors if factor.id in used}
    return _json(rates)


def _region(subject: Subject) -> dict[str, Cell]:
    region = subject.cloud_region or subject.site_id or subject.region or subject.grid_zone
    name = region and (subject.region or subject.site or region)
    return {"RegionId": region, "RegionName": name}


def words_of(
    statement: Statement, component: Component, unpriced: Iterable[str]
) -> dict[str, Cell]:
    """What is the same on all rows of a component; None is a null."""
    subject, account = statement.subject, statement.subject.organisation or "ckptcost"
    service, category, subcategory = SERVICES[component.boundary in ("drive", "storage-system")]
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
        **_region(subject),
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
