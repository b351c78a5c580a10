"""What a fleet's saves and failures took, line by line and cell by cell, and what that comes to at
a place: the bill of many nodes.

Joules are as metered, or at the facility where a scenario says the PUE. Dollars and carbon follow
as in a statement of one run: GPU time at the price of the cluster, electricity by the tariff unless
that price has it in. What a window or node does not know is not in the sums, and how much that is
stands beside them.

A line is about what has it: a save that nothing drains of has no training to slow down, a save of
one node nobody to wait for. Such saves are neither known nor lacking. Of what has it at least half
must be known of a job's run on a day, or the sum would be of what happens to be known, and nothing
of that day is in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf, nan
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import numpy as np

from ckptcost.first.core import money
from ckptcost.first.core.bill import electricity_usd_per_j, has_no_total, storage_usd_per_j
from ckptcost.first.core.domain import Scenario
from ckptcost.first.core.estimates import Floats
from ckptcost.first.core.lines import KINDS, OF_THE_JOB
from ckptcost.first.core.quantities import DERIVED, FIELDS, LineField
from ckptcost.first.fleet.grouping import Places, add_by_place, sum_by_place

if TYPE_CHECKING:
    from ckptcost.first.scenario import Resolved

LINES: Final = (
    "gpu_wait",
    "waiting",
    "host_wait",
    "slowdown",
    "storage_write",
    "loading",
    "missing_nodes",
    "redone_work",
    "restart",
)
ESTIMATED: Final = frozenset({"missing_nodes", "redone_work"})
"""they follow from what was measured; the others were"""
NEEDED: Final = (OF_THE_JOB | {"waiting"}) - {"restart", "slowdown"}
"""a sum that lacks one of these is none, as in every bill. Between two runs nobody records, and how
much longer training took beside a drain nobody sees: that is said beside the sum, or most jobs
would have none"""
_LEAST: Final = 1e-6
"""ends that differ by less are one: bounds are kept with seven digits"""


class FleetAmount(NamedTuple):
    """NaN: not known. An infinite high end: none is known."""

    value: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        return self.value == self.value


NOTHING: Final = FleetAmount(0.0, 0.0, 0.0)
UNKNOWN: Final = FleetAmount(nan, nan, nan)


class FleetAmounts(NamedTuple):
    """One a cell, and how much is in it."""

    value: Floats
    low: Floats
    high: Floats
    known: Floats
    """windows times nodes, or runs, whose amount is known and in the sum"""
    of: Floats
    """all that have it; where none has, the amount is zero"""
    partly: Floats | float = 0.0
    """further windows or runs of which a part is in the sum, and the rest is not known: rent
    without its electricity"""

    @classmethod
    def of_sums(
        cls, value: Floats, low: Floats, high: Floats, known: Floats, of: Floats
    ) -> FleetAmounts:
        """Unknown where nothing is known of something that is there."""
        lacking = (known == 0) & (of > 0)
        near = _LEAST * np.abs(value)
        low, high = (
            np.where(low < value - near, low, value),
            np.where(high > value + near, high, value),
        )
        value, low, high = (np.where(lacking, nan, each) for each in (value, low, high))
        return cls(value, low, high, known, of)

    @classmethod
    def exact(cls, value: Floats, known: Floats, of: Floats) -> FleetAmounts:
        return cls.of_sums(value, value, value, known, of)

    @classmethod
    def nothing(cls, cells: int) -> FleetAmounts:
        return cls(*np.zeros((5, cells)))

    def times(self, factor: float) -> FleetAmounts:
        """An unknown factor makes everything unknown that is something; nothing times anything is
        nothing."""
        if factor == 0:
            return self._replace(
                value=0.0 * self.of, low=0.0 * self.of, high=0.0 * self.of, known=self.of
            )
        value, low, high = (_times(each, factor) for each in self[:3])
        return self._replace(
            value=value, low=low, high=high, known=np.where(np.isnan(value), 0.0, self.known)
        )

    def plus(self, other: FleetAmounts) -> FleetAmounts:
        value, low, high = (mine + its for mine, its in zip(self[:3], other[:3], strict=True))
        return FleetAmounts(
            value, low, high, np.minimum(self.known, other.known), np.maximum(self.of, other.of)
        )

    def among(self, which: Places, groups: int) -> list[tuple[FleetAmount, float, float]]:
        """By group: the sum of what is known; of how much it is known, and of how much. Of a cell
        that is known of less than half nothing is in the sum: judged by cell, so that groups add up
        however they are made."""
        partly_known = self.partly + np.zeros(len(self.of))
        told = 2.0 * (self.known + partly_known) >= self.of
        known, of, there = (
            add_by_place(each, which, groups)
            for each in (self.known, self.of, np.where(told, self.of, 0.0))
        )
        lacking = (there == 0) & (of > 0)
        columns = [
            np.where(lacking, nan, sum_by_place(np.where(told, each, nan), which, groups)).tolist()
            for each in self[:3]
        ]
        return [
            (FleetAmount(*each[:3]), *each[3:])
            for each in zip(*columns, known.tolist(), of.tolist(), strict=True)
        ]


def _times(values: Floats, factor: float) -> Floats:
    return np.multiply(values, factor, where=values != 0, out=np.where(values == 0, 0.0, nan))


Amount = TypeVar("Amount", FleetAmount, FleetAmounts)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfEachQuantity(Generic[Amount]):
    """One amount of each of core.quantities.QUANTITIES."""

    energy_j: Amount
    gpu_s: Amount
    cost_usd: Amount
    location_kgco2e: Amount
    market_kgco2e: Amount
    embodied_kgco2e: Amount
    water_l: Amount


@dataclass(frozen=True, slots=True)
class CellLine(OfEachQuantity[FleetAmounts]):
    """One line, one value a cell of each quantity."""

    id: str


def line_of(
    s: Scenario | None,
    name: str,
    energy: FleetAmounts,
    gpu_s: FleetAmounts,
    both: tuple[FleetAmounts, Floats] | None = None,
    costs: FleetAmounts | None = None,
) -> CellLine:
    """Quantities first, prices last; the PUE is applied here. `both`: joules and GPU-seconds of
    what has the two, where that is not all; `costs`: dollars, where they are known otherwise."""
    if s is None:
        of = np.maximum(gpu_s.of, energy.of)
        unknown = FleetAmounts.exact(0.0 * of, 0.0 * of, of)
        return _cell_line(name, energy, gpu_s, *(unknown for _ in FIELDS[2:]))
    pue = float(s.site.pue)
    if costs is None:
        paid_energy, timed = (energy, None) if both is None else both
        costs = _costs(s, name, paid_energy.times(pue), gpu_s, timed)
    energy = energy.times(pue)
    bases = {"energy": energy, "gpu_time_lost": gpu_s}
    rest = [bases[d.of].times(float(d.product(1.0, d.rate(s)))) for d in DERIVED]
    return _cell_line(name, energy, gpu_s, costs, *rest)


def _cell_line(name: str, *amounts: FleetAmounts) -> CellLine:
    return CellLine(name, **dict(zip(FIELDS, amounts, strict=True)))


def scenario_of(resolved: Resolved | None, priced: bool) -> Scenario | None:
    """`priced`: whether GPU time has the price that it says, or only its site counts."""
    from ckptcost.first.report.statements.run_lines import without_prices

    if resolved is None or priced:
        return resolved and resolved.scenario
    return without_prices(resolved.scenario)


def _costs(
    s: Scenario, name: str, energy: FleetAmounts, gpu_s: FleetAmounts, timed: Floats | None
) -> FleetAmounts:
    """Of what has joules and GPU-seconds both, unless the one or the other costs nothing."""
    of_storage = name == "storage_write"
    tariff = storage_usd_per_j(s, s.tier) if of_storage else electricity_usd_per_j(s)
    paid = energy.times(float(money.electricity_usd(1.0, tariff)))
    if not KINDS[name].holds_gpus:
        return paid
    if timed is not None and tariff != 0:
        gpu_s = gpu_s._replace(value=timed, low=timed, high=timed)
    price = float(s.cluster.usd_per_gpu_s)
    rent = gpu_s.times(float(money.gpu_usd(1.0, price)))
    return rent.plus(paid)


@dataclass(frozen=True, slots=True)
class FleetLine(OfEachQuantity[FleetAmount]):
    """Of a group."""

    id: str
    estimated: bool
    known: Mapping[LineField, tuple[float, float]]
    """by quantity, of how many windows (times nodes) or runs it is known, and how many have it"""


@dataclass(frozen=True, slots=True)
class FleetTotals(OfEachQuantity[FleetAmount]):
    """Sums of lines and nothing else."""

    lacks: Mapping[LineField, tuple[str, ...]]
    """by quantity, the lines that are not in the sum, or not all of them"""


def lines_of(
    cell_lines: Sequence[CellLine], which: Places, groups: int
) -> list[tuple[FleetLine, ...]]:
    """By group, every line that it has anything of."""
    columns: list[list[FleetLine]] = []
    for line in cell_lines:
        sums: dict[Any, list[tuple[FleetAmount, float, float]]] = {
            q: getattr(line, q).among(which, groups) for q in FIELDS
        }
        columns.append(
            [
                FleetLine(
                    line.id,
                    line.id in ESTIMATED,
                    {q: sums[q][at][1:] for q in FIELDS},
                    **{q: sums[q][at][0] for q in FIELDS},
                )
                for at in range(groups)
            ]
        )
    return [
        tuple(line for line in each if any(of for _, of in line.known.values()))
        for each in zip(*columns, strict=True)
    ]


def totals_of(lines: tuple[FleetLine, ...]) -> FleetTotals:
    sums: dict[Any, FleetAmount] = {}
    lacks: dict[LineField, tuple[str, ...]] = {}
    for quantity in FIELDS:
        each = [(line.id, getattr(line, quantity), line.known[quantity]) for line in lines]
        known = [amount for _, amount, _ in each if amount.known]
        whole = not has_no_total((not amount.known, name in NEEDED) for name, amount, _ in each)
        sums[quantity] = (
            FleetAmount(*(_sum(ends) for ends in zip(*known, strict=True)))
            if whole
            else UNKNOWN
            if each
            else NOTHING
        )
        lacks[quantity] = tuple(
            name for name, amount, (some, of) in each if not amount.known or some < of
        )
    return FleetTotals(lacks, **sums)


def _sum(ends: tuple[float, ...]) -> float:
    return inf if inf in ends else -inf if -inf in ends else fsum(ends)
