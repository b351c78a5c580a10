"""Which runs may be held against each other, and how sure their order is: the one rule behind every
best, tick and front.

Two totals of which one lacks a line that the other has say nothing of each other: the tier without
a price would always be the cheapest. Where both have the same lines, the order is as sure as the
ranges of the inputs leave it: the share of paired draws in which one costs less than the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ckptcost.core.bill import Bill
from ckptcost.core.draws import SAMPLES
from ckptcost.core.lines import tier_and_kind
from ckptcost.core.outcome import Outcome
from ckptcost.core.quantities import BY_OBJECTIVE, LineField
from ckptcost.core.regret import cost_of
from ckptcost.jobs.compare import outcomes_together
from ckptcost.scenario import Resolved

COUNTED: dict[str, LineField | None] = {
    "time": None,
    **{name: q.field for name, q in BY_OBJECTIVE.items()},
}
"""what of a bill an objective counts; the wall time lacks nothing"""
_SAME = 1e-9
"""relative: a difference that rounding makes is none"""
SURE = 0.95
"""an order that holds in fewer draws is said with its share"""


class Order(NamedTuple):
    """The runs by what they cost, the least first; and in how many draws the first costs less than
    each."""

    at: tuple[int, ...]
    cheaper: tuple[float, ...]
    """share of the paired draws in which the first of the order costs less; by place of the runs,
    NaN for the first itself and for those that cost the same in every draw"""
    alike: tuple[int, ...] = ()
    """places of the runs that cost as much as the first in every draw: nothing tells them apart"""


def missing_keys(bills: Sequence[Bill], quantity: LineField | None) -> tuple[str, ...]:
    """Keys of lines that some of the bills have and others lack; empty where all can be held
    against each other."""
    if quantity is None:
        return ()
    lacking = [set(bill.unknown(quantity)) for bill in bills]
    lines = {line for each in lacking for line in each if not all(line in x for x in lacking)}
    return tuple(sorted({key_of(line) for line in lines}))


def key_of(line_id: str) -> str:
    """The input that would supply an unknown line.

    >>> key_of("retention"), key_of("second_network"), key_of("gpu_wait")
    ('tier.storage_price', 'second_tier.network_energy', 'cluster (gpu_wait)')
    """
    tier, kind = tier_and_kind(line_id)
    return f"{tier}.{kind.rate}" if kind.rate else f"cluster ({line_id})"


def undecided(outcomes: Sequence[Outcome], objective: str) -> tuple[str, ...]:
    """Keys that decide the order of runs for an objective and are given for some of them only."""
    return missing_keys([outcome.run for outcome in outcomes], COUNTED[objective])


def ordered(
    runs: Sequence[tuple[Resolved, Outcome]], objective: str, draws: int = SAMPLES
) -> Order:
    """Runs that lack the same lines, by their cost; of those alike, the first named."""
    costs = [float(cost_of(outcome, objective)) for _, outcome in runs]
    at = sorted(range(len(runs)), key=lambda i: (costs[i] != costs[i], costs[i]))
    if len(runs) < 2:
        return Order(tuple(at), (float("nan"),) * len(runs))
    with np.errstate(over="ignore", invalid="ignore"):
        drawn = [
            np.asarray(cost_of(outcome, objective), dtype=float)
            for outcome in outcomes_together(runs, draws)
        ]
        first = drawn[at[0]]
        cheaper = [float(np.mean(first < other)) for other in drawn]
    alike = tuple(i for i in at[1:] if np.allclose(drawn[i], first, rtol=_SAME, atol=0.0))
    unsaid = {at[0], *alike}
    return Order(
        tuple(at),
        tuple(float("nan") if i in unsaid else each for i, each in enumerate(cheaper)),
        alike,
    )
