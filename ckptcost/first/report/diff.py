"""What changed from one statement to another: arithmetic only. Whether the two may be compared is
judged in `diff_reasons`.

A change is after less before. Unknown on either side stays unknown, and so does a change of sums
that leave out different lines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ckptcost.first.core.gap import product_parts
from ckptcost.first.core.units import HOUR_S
from ckptcost.first.present.amounts import some as some_of
from ckptcost.first.present.words import METHODS
from ckptcost.first.report.canonical import tidy
from ckptcost.first.report.difference import (
    Amount,
    Change,
    Changes,
    ComponentChanges,
    Delta,
    FactorChange,
    FactorValue,
    Split,
    SplitPart,
    TotalChanges,
    UnitChanges,
)
from ckptcost.first.report.parts import Component, Factor, Quantity, Totals
from ckptcost.first.report.statement import QUANTITIES, Statement
from ckptcost.first.report.study import shortened

SAME = 1e-9
"""relative: documents hold 12 digits"""
_CONVERTS = ("price", "tariff", "embodied")


def _amount(q: Quantity, count: float = 1.0) -> Amount:
    scaled: dict[str, Any] = {
        name: None if getattr(q, name) is None else tidy(getattr(q, name) / count)
        for name in ("value", "low", "high")
    }
    return Amount(**scaled, interval=q.interval, basis=q.basis, excludes=q.excludes)


def _bare(value: float | None) -> Amount:
    return Amount(value=value, high=None, excludes=[])


def change_of(
    unit: Any, before: Amount | None, after: Amount | None, *, unlike: str | None = None
) -> Change:
    """One quantity before and after; `unlike` says why it is not the same quantity.

    >>> found = change_of(
    ...     "kWh",
    ...     Amount(value=100.0, low=90.0, high=110.0),
    ...     Amount(value=104.0, low=95.0, high=115.0),
    ... )
    >>> found.change, found.relative, found.direction, found.ranges_overlap
    (4.0, 0.04, 'more', True)
    >>> change_of("kWh", Amount(value=None), Amount(value=104.0)).reason
    'not known before'
    """
    reason = _unknown(before, after) or unlike
    if before and after and reason is None:
        return _known_change(unit, before, after)
    return _unknown_change(unit, before, after, reason)


def _known_change(unit: Any, before: Amount, after: Amount) -> Change:
    one, two = before.value or 0.0, after.value or 0.0
    change = tidy(two - one)
    if change is None:
        return _unknown_change(unit, before, after, "too large to be told")
    same = abs(change) <= SAME * max(abs(one), abs(two))
    return Change(
        unit=unit,
        before=before,
        after=after,
        change=change,
        relative=tidy(change / abs(one)) if one else None,
        direction="same" if same else "more" if change > 0 else "less",
        ranges_overlap=overlap(before, after),
        reason=None if one or same else "it was 0 before",
    )


def _unknown_change(
    unit: Any, before: Amount | None, after: Amount | None, reason: str | None
) -> Change:
    return Change(
        unit=unit,
        before=before,
        after=after,
        change=None,
        relative=None,
        direction="unknown",
        ranges_overlap=None,
        reason=reason,
    )


def _unknown(before: Amount | None, after: Amount | None) -> str | None:
    """Why there is no change to tell."""
    if before is None or after is None:
        return "only in the current one" if before is None else "only in the past one"
    unknown = before.value is None, after.value is None
    if any(unknown):
        return (
            "not known in either"
            if all(unknown)
            else "not known before"
            if unknown[0]
            else "not known now"
        )
    lacking = sorted({*before.excludes} ^ {*after.excludes})
    return f"unknown in one of the two only: {some(lacking)}" if lacking else None


def overlap(before: Amount, after: Amount) -> bool | None:
    """Whether two ranges have a value in common; a figure without a range is its own range."""
    if before.low is None and after.low is None:
        return None
    (low, high), (other_low, other_high) = _ends(before), _ends(after)
    return low <= other_high and other_low <= high


def _ends(amount: Amount) -> tuple[float, float]:
    value = math.nan if amount.value is None else amount.value
    return (
        (value, value)
        if amount.low is None
        else (amount.low, math.inf if amount.high is None else amount.high)
    )


def other_grid_method(past: Statement, current: Statement) -> str | None:
    """Why location-based emissions have no difference: one grid factor counts the life cycle, the
    other combustion alone."""
    before, now = past.grid_method, current.grid_method
    if before == now:
        return None
    return f"the grid's factor is of {METHODS[before]} before, of {METHODS[now]} now"


def _six(
    before: Any,
    after: Any,
    counts: tuple[float, float] = (1.0, 1.0),
    other_grid: str | None = None,
) -> dict[str, Change]:
    sides = [(before, counts[0]), (after, counts[1])]
    told = {}
    for what in QUANTITIES:
        pair = [
            None if side is None else _amount(getattr(side, what), count) for side, count in sides
        ]
        unlike = other_grid if what == "emissions_location" else None
        told[what] = change_of(getattr(before or after, what).unit, *pair, unlike=unlike)
    return told


def delta_of(past: Statement, current: Statement) -> Delta:
    """All changes, however comparable the two are."""
    other_grid = other_grid_method(past, current)
    totals = TotalChanges(
        **_six(past.totals, current.totals, other_grid=other_grid),
        checkpoints=change_of(
            "1", _amount(past.totals.checkpoints), _amount(current.totals.checkpoints)
        ),
        length=change_of("s", _bare(past.length_s), _bare(current.length_s)),
    )
    standing: tuple[Totals | None, Totals | None] = (past.allocated, current.allocated)
    return Delta(
        totals=totals,
        allocated=Changes(**_six(*standing, other_grid=other_grid)) if all(standing) else None,
        components=_components(past, current),
        per=_per_unit(past, current),
        factors=changed_factors(past.factors, current.factors),
        splits=_splits(past, current),
    )


def _components(past: Statement, current: Statement) -> list[ComponentChanges]:
    one, two = ({c.id: c for c in s.components} for s in (past, current))
    found = []
    for name, shown in (one | two).items():
        before, after = one.get(name), two.get(name)
        only: Any = "current" if before is None else "past" if after is None else None
        changes = _six(before, after, other_grid=other_grid_method(past, current))
        found.append(
            ComponentChanges(
                id=name,
                label=shown.label,
                cause=shown.cause,
                ledger=shown.ledger,
                only_in=only,
                **changes,
            )
        )
    return found


def _per_unit(past: Statement, current: Statement) -> list[UnitChanges]:
    """For each functional unit that both count, and for each hour."""
    one, two = ({unit.name: unit.count for unit in s.functional_units} for s in (past, current))
    pairs = [(name, one[name], two[name]) for name in one if name in two]
    name, lengths = "hour of training", [value_of(s, "run.work") for s in (past, current)]
    if not all(lengths):
        name, lengths = "hour of the run", [past.length_s, current.length_s]
    before_h, after_h = ((each or 0.0) / HOUR_S for each in lengths)
    pairs.append((name, before_h, after_h))
    return [
        UnitChanges(
            name=name,
            before_count=before,
            after_count=after,
            **_six(past.totals, current.totals, (before, after), other_grid_method(past, current)),
        )
        for name, before, after in pairs
        if before > 0 and after > 0
    ]


def value_of(statement: Statement, factor_id: str) -> float | None:
    return next((f.value for f in statement.factors if f.id == factor_id), None)


def changed_factors(past: Sequence[Factor], current: Sequence[Factor]) -> list[FactorChange]:
    """Factors with another value or range, or that one of the two lacks; prices and the like
    first."""
    one, two = ({f.id: f for f in factors} for factors in (past, current))

    def figure(f: Factor | None) -> Any:
        return f and (f.value, f.low, f.high)

    found = []
    for name in sorted({*one, *two}):
        before, after = one.get(name), two.get(name)
        shown = after or before
        if shown is not None and figure(before) != figure(after):
            found.append(
                FactorChange(
                    id=name,
                    name=shown.name,
                    unit=shown.unit,
                    before=_factor_value(before),
                    after=_factor_value(after),
                    converts=converts(name),
                )
            )
    return sorted(found, key=lambda each: not each.converts)


def _factor_value(f: Factor | None) -> FactorValue | None:
    return (
        None
        if f is None
        else FactorValue(value=f.value, low=f.low, high=f.high, text=f.text, origin=f.origin)
    )


def converts(factor_id: str) -> bool:
    """A price, grid or facility factor: what amounts are multiplied by, not what makes them.

    >>> converts("site.pue"), converts("cluster.gpu_price"), converts("tier.write")
    (True, True, False)
    """
    return factor_id.startswith("site.") or any(word in factor_id for word in _CONVERTS)


# ---- at constant factors


class _Known(NamedTuple):
    """A total that both know, over the same lines and, on a grid, by the same method."""

    before: float
    after: float
    lines: frozenset[str]


def _known_amounts(past: Statement, current: Statement, what: str) -> _Known | None:
    if what == "emissions_location" and other_grid_method(past, current):
        return None
    one, two = getattr(past.totals, what), getattr(current.totals, what)
    if one.value is None or two.value is None or {*one.excludes} != {*two.excludes}:
        return None
    return _Known(one.value, two.value, frozenset(one.excludes))


def _differ(one: float, two: float) -> bool:
    return abs(one - two) > 1e-6 * max(abs(one), abs(two))  # of quotients of rounded figures


class _Product(NamedTuple):
    """A quantity that is an amount times a factor."""

    what: str
    amount: str
    factor: str
    label: str


_PRODUCTS = (
    _Product("emissions_location", "energy", "site.grid_location", "the grid's factor"),
    _Product("emissions_market", "energy", "site.grid_market", "the contracts' factor"),
    _Product("embodied", "gpu_time_lost", "cluster.gpu_embodied", "embodied carbon of a GPU-hour"),
)
_AMOUNTS = {
    "gpu_time_lost": "GPU time lost",
    "machines": "energy of the machines themselves",
    "energy": "energy",
}


def _splits(past: Statement, current: Statement) -> list[Split]:
    found = [
        _energy(past, current),
        *(_by_product(past, current, each) for each in _PRODUCTS),
        _cost(past, current),
    ]
    return [each for each in found if each is not None]


def _energy(past: Statement, current: Statement) -> Split | None:
    energy, pues = _known_amounts(past, current, "energy"), _pues(past, current)
    if energy is None or not pues:
        return None
    return _split("energy", "kWh", "machines", (), energy, pues)


def _pues(past: Statement, current: Statement) -> tuple[float, ...]:
    """The two, where they are in the energies and not the same."""
    one, two = past.boundary, current.boundary
    if (
        one.pue
        and two.pue
        and one.pue_included_in_energy
        and two.pue_included_in_energy
        and _differ(one.pue, two.pue)
    ):
        return one.pue, two.pue
    return ()


def _by_product(past: Statement, current: Statement, product: _Product) -> Split | None:
    """The mean factor is the quotient of the two, whatever the hours were."""
    amount = _known_amounts(past, current, product.amount)
    whole = _known_amounts(past, current, product.what)
    if amount is None or whole is None or whole.lines != amount.lines:
        return None
    if not (amount.before and amount.after):
        return None
    pues = _pues(past, current) if product.amount == "energy" else ()
    each = whole.before / amount.before, whole.after / amount.after
    if not _differ(*each) and not pues:
        return None
    cause = "machines" if pues else product.amount
    return _split(
        product.what, "kgCO2e", cause, (product.factor, product.label, each), amount, pues
    )


def _split(
    what: str,
    unit: str,
    cause: str,
    factor: tuple[Any, ...],
    amount: _Known,
    pues: tuple[float, ...],
) -> Split:
    each_before, each_after = factor[2] if factor else (1.0, 1.0)
    of_amount, of_factor = _floats(amount.before, each_before, amount.after, each_after)
    parts = [(cause, _AMOUNTS[cause], of_amount)]
    if pues:  # the machines first, at the old PUE; then what the PUE makes of the new amount
        of_machines, of_pue = _floats(
            amount.before / pues[0], pues[0], amount.after / pues[1], pues[1]
        )
        parts = [
            (cause, _AMOUNTS[cause], of_machines * each_before),
            ("site.pue", "power usage effectiveness", of_pue * each_before),
        ]
    if factor:
        parts.append((factor[0], factor[1], of_factor))
    least = SAME * max(abs(value) for _, _, value in parts)  # what rounding of figures leaves
    told = [
        SplitPart(cause=name, label=label, change=tidy(value) or 0.0 if abs(value) > least else 0.0)
        for name, label, value in parts
    ]
    return Split(quantity=what, unit=unit, parts=told, at_constant_factors=told[0].change)


def _floats(
    amount: float, each: float, other_amount: float, other_each: float
) -> tuple[float, float]:
    of_amount, of_each = product_parts(amount, each, other_amount, other_each)
    return float(of_amount), float(of_each)


def _cost(past: Statement, current: Statement) -> Split | None:
    """Where the price of a GPU-hour is the only price that changed."""
    whole = _known_amounts(past, current, "cost")
    before, now = _gpu_price(past), _gpu_price(current)
    if whole is None or before is None or now is None:
        return None
    lines = [c for c in current.marginal() if c.id not in whole.lines]
    if not _only_gpu_price(past, current) or any(map(_is_unpriced, lines)):
        return None
    of_price = math.fsum(c.price_qty for c in lines if c.price_qty) * (now - before)
    parts = [
        SplitPart(cause=cause, label=label, change=tidy(change) or 0.0)
        for cause, label, change in (
            ("amounts", "GPU time and the rest", whole.after - whole.before - of_price),
            ("cluster.gpu_price", "price of a GPU-hour", of_price),
        )
    ]
    return Split(quantity="cost", unit="USD", parts=parts, at_constant_factors=parts[0].change)


def _only_gpu_price(past: Statement, current: Statement) -> bool:
    changed = [f.id for f in changed_factors(past.factors, current.factors)]
    return {id_ for id_ in changed if "price" in id_ or "tariff" in id_} == {"cluster.gpu_price"}


def _is_unpriced(c: Component) -> bool:
    """Whether it takes GPU time that has no price."""
    return c.price_qty is None and bool(c.gpu_time_lost.value)


def _gpu_price(s: Statement) -> float | None:
    """The one price of all its GPU-hours."""
    prices = {c.unit_price for c in s.marginal() if c.price_qty}
    return prices.pop() if len(prices) == 1 else None


def some(names: Sequence[str]) -> str:
    """A list of names, none of which drowns a message."""
    return some_of([shortened(name, 80) for name in names])
