"""The lines and sums of a statement, one way for whatever they come from: a closed form, simulated
runs, a recording, a fleet."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ckptcost.first.core.draws import p5_p95
from ckptcost.first.core.lines import Ledger, tier_and_kind
from ckptcost.first.core.quantities import IN_DOCUMENTS, Quantity
from ckptcost.first.present.words import line_label
from ckptcost.first.report.canonical import tidy
from ckptcost.first.report.factors import Part

if TYPE_CHECKING:
    from ckptcost.first.core.interruptions import Floats

Interval = Literal["p5-p95", "bounds"]
UNKNOWN_ENDS = (math.nan, math.nan, math.nan)


class BilledAmount(NamedTuple):
    """An amount in people's units; NaN where it is not known."""

    value: float
    low: float
    high: float
    """infinite: there is no bound"""
    lacks: Sequence[str] = ()
    """what is unknown and therefore not in it"""
    measured: bool = False


class BilledLine(NamedTuple):
    id: str
    boundary: str
    amounts: Mapping[str, BilledAmount]
    """by quantity"""
    basis: str
    rests_on: str
    needed: bool | None = None


Total = Callable[[Ledger, Quantity], BilledAmount]


class Rests:
    """Ids of the factors that a line's quantity rests on: each list once, amounts point at theirs
    by number."""

    def __init__(
        self, of: Callable[[str, str], Sequence[str]] | None = None, told: Sequence[list[str]] = ()
    ) -> None:
        self._of = of or (lambda line, quantity: ())
        self._numbers = {tuple(each): number for number, each in enumerate(told)}

    def of_sum(self, lines: Sequence[str], quantity: str) -> int | None:
        """Of a sum over lines."""
        return self.number(sorted({name for line in lines for name in self._of(line, quantity)}))

    def of_line(self, line: str, quantity: str) -> int | None:
        return self.number(self._of(line, quantity))

    def number(self, names: Sequence[str]) -> int | None:
        if not names:
            return None
        return self._numbers.setdefault(tuple(names), len(self._numbers))

    @property
    def lists(self) -> list[list[str]]:
        return [list(each) for each in self._numbers]


def draws_amount(q: Quantity, value: Any, draws: Any, lacks: Sequence[str] = ()) -> BilledAmount:
    """An amount with its range over draws, or over runs; both in base units."""
    point = float(q.people(value))
    low, high = p5_p95(q.people(draws), point)
    return BilledAmount(point, low, high, lacks)


def runs_mean(runs: Floats, lacks: Sequence[str] = ()) -> BilledAmount:
    """The mean over runs with their range, in people's units; not known where any run's is not."""
    mean = float(np.mean(runs))
    return BilledAmount(mean, *p5_p95(runs, mean), lacks)


def bill_part(
    lines: Sequence[BilledLine],
    total: Total,
    rests: Rests,
    interval: Interval,
    usd_per_gpu_hour: float,
) -> Part:
    """Components, totals and the allocated ledger of a statement, and the lists of factors."""
    bill = {
        "components": [line_part(each, rests, interval, usd_per_gpu_hour) for each in lines],
        "totals": sums_part(lines, "marginal", total, rests, interval),
        "allocated": (
            sums_part(lines, "allocated", total, rests, interval)
            if any(ledger_of(each.id) == "allocated" for each in lines)
            else None
        ),
    }
    return bill | {"rests": rests.lists}


def line_part(line: BilledLine, rests: Rests, interval: Interval, usd_per_gpu_hour: float) -> Part:
    """A component; priced by the GPU-hour where GPU time has a price."""
    kind = tier_and_kind(line.id)[1]
    amounts = {
        q.id: amount_part(q.unit, line.amounts[q.id], rests.of_line(line.id, q.id), interval)
        for q in IN_DOCUMENTS
    }
    hours = amounts["gpu_time_lost"]["value"]
    price = tidy(usd_per_gpu_hour)
    is_priced = bool(hours) and price is not None and amounts["cost"]["value"] is not None
    return {
        "id": line.id,
        "label": line_label(line.id),
        "cause": kind.cause,
        "ledger": kind.ledger,
        "boundary": line.boundary,
        "basis": line.basis,
        "rests_on": line.rests_on,
        **amounts,
        "price_qty": hours if is_priced else None,
        "price_unit": "GPU-h" if is_priced else None,
        "unit_price": price if is_priced else None,
        "sku": None,
        "needed": line.needed,
    }


def sums_part(
    lines: Sequence[BilledLine], ledger: Ledger, total: Total, rests: Rests, interval: Interval
) -> Part:
    """The sums of one ledger's lines."""
    mine = [each.id for each in lines if ledger_of(each.id) == ledger]
    return {
        q.id: amount_part(q.unit, total(ledger, q), rests.of_sum(mine, q.id), interval)
        for q in IN_DOCUMENTS
    }


def ledger_of(line_id: str) -> Ledger:
    return tier_and_kind(line_id)[1].ledger


def amount_part(unit: str, found: BilledAmount, rests: int | None, interval: Interval) -> Part:
    """A quantity with its unit, range and basis; `rests`: which list of factors."""
    part: Part = {
        "value": tidy(found.value),
        "unit": unit,
        "basis": "measured" if found.measured else "modelled",
        "low": None,
        "high": None,
        "interval": None,
        "rests": rests,
        "excludes": list(found.lacks),
    }
    low, high = tidy(found.low), tidy(found.high)  # ends that differ in rounding alone are no range
    if part["value"] is not None and found.low < found.high and low != high:
        part |= {"low": low, "high": high, "interval": interval}
    return part


def count_part(count: float, basis: Literal["modelled", "measured"] = "modelled") -> Part:
    """How many checkpoints there are."""
    return amount_part(
        "1", BilledAmount(count, count, count, measured=basis == "measured"), None, "bounds"
    )
