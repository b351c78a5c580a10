"""Levers: the inputs of a scenario as things that can be moved, each with the inputs that are the
same figure once more."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ckptcost.core.domain import Number, Scenario
from ckptcost.core.draws import drawn, replace_at
from ckptcost.jobs.model import Case, as_planned
from ckptcost.scenario import Input, Resolved, ranges_of, ties_of

INTERVAL = "policy.interval"
LEAST_SHARE = 0.01
"""of a spread: who explains less decides nothing"""


class Lever(NamedTuple):
    """One input that can be moved, with those that are the same figure once more."""

    path: str
    fields: tuple[str, ...]
    """of the core's scenario; the copies after the original"""
    unit: str
    value: float
    low: float
    high: float
    """NaN where the input has no range"""
    basis: str
    copies: tuple[str, ...] = ()
    """paths of the copies"""

    @property
    def has_range(self) -> bool:
        return self.low < self.high


def _own(resolved: Resolved) -> list[Input]:
    """Inputs of the world: the cadence is part of the plan."""
    return [i for i in resolved.inputs if i.field != "policy.every"]


def levers_of(resolved: Resolved, ties: Mapping[str, str]) -> list[Lever]:
    """Every input once, tied copies with their original."""
    inputs = _own(resolved)
    copies: dict[str, list[Input]] = {}
    for i in inputs:
        if i.field in ties:
            copies.setdefault(ties[i.field], []).append(i)
    levers = []
    for i in inputs:
        if i.field in ties:
            continue
        low, high = (math.nan if end is None else end for end in (i.figure.low, i.figure.high))
        mine = copies.get(i.field, [])
        fields = (i.field, *(copy.field for copy in mine))
        levers.append(
            Lever(
                i.path,
                fields,
                i.unit,
                i.figure.value,
                low,
                high,
                i.figure.basis or "assumed",
                tuple(copy.path for copy in mine),
            )
        )
    return levers


def copies_of(resolved: Resolved) -> dict[str, str]:
    """Ties among all inputs: `ties_of` looks at those with a range, so each one without gets
    one."""
    lent = [
        (
            i
            if i.figure.low is not None
            else i._replace(
                figure=replace(i.figure, low=i.figure.value * 0.5, high=i.figure.value * 2.0)
            )
        )
        for i in resolved.inputs
    ]
    return ties_of(resolved._replace(inputs=tuple(lent)))


def chosen_interval(case: Case) -> Lever:
    """The chosen interval: at its optimum the result it is best for does not notice a small
    change."""
    return Lever(
        INTERVAL,
        ("policy.every",),
        "s",
        float(case.outcome.interval_s),
        math.nan,
        math.nan,
        "chosen",
    )


def decided_by(case: Case, most: int = 3) -> list[str]:
    """The inputs whose ranges explain most of the spread of the energy, the most first: by the
    draws that its range comes from, as `sensitivity` finds them."""
    from ckptcost.core.sensitivity import variance_shares

    energy_j = case.spread.run.total("energy_j")
    ties = ties_of(case.resolved)
    levers = [lever for lever in levers_of(case.resolved, ties) if lever.has_range]
    if not levers or np.ndim(energy_j) == 0 or not np.isfinite(energy_j).all():
        return []
    ranges = ranges_of(case.resolved)
    ranges.pop("policy.every", None)
    many = drawn(as_planned(case.scenario, case.outcome), ranges, ties, case.draws)
    values = np.array([at(many, lever.fields[0]) for lever in levers])
    shares = variance_shares(values, np.asarray(energy_j)).each.tolist()
    told = sorted(zip(shares, levers, strict=True), key=lambda each: -each[0])[:most]
    return [lever.path for share, lever in told if share > LEAST_SHARE]


def moved_to(world: Scenario, lever: Lever, value: Number) -> Scenario:
    """The scenario with an input, and its copies, at a value."""
    for field in lever.fields:
        world = replace_at(world, field, value)
    return world


def at(scenario: Scenario, field: str) -> Number:
    """The value of a field, by its path."""
    section, _, name = field.rpartition(".")
    found: Number = getattr(getattr(scenario, section) if section else scenario, name)
    return found
