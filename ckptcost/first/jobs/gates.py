"""Targets and budgets: "goodput>=0.95", "usd<=10000". A pipeline stops on a miss (exit code 3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ckptcost.first.core.measures import MEASURES, Measure
from ckptcost.first.core.quantities import QUANTITIES
from ckptcost.first.core.units import UNITS, parse
from ckptcost.first.errors import InputError, UnitError, UnknownName, brief

STATISTICS = ("mean", "p5", "p50", "p95")
_ASKED = re.compile(r"\s*([a-z0-9_]+)(?:\.([a-z0-9]+))?\s*(<=|>=|<|>)\s*(.+?)\s*$", re.S)
_PLAIN = {q.base: q.unit for q in QUANTITIES}
"""what a number without a unit is in"""


class Gate(NamedTuple):
    """One target or budget, in base units."""

    text: str
    measure: Measure
    statistic: str
    """mean, p5, p50 or p95 of a simulation; "" where nothing was said"""
    operator: str
    limit: float

    def holds(self, value: float) -> bool:
        """Whether a value meets it; an unknown value does not."""
        if self.operator.startswith(">"):
            return value >= self.limit if self.operator == ">=" else value > self.limit
        return value <= self.limit if self.operator == "<=" else value < self.limit


class GateVerdict(NamedTuple):
    """A gate and the value it was held against."""

    gate: Gate
    value: float
    met: bool
    of: str = ""
    """which case or scenario, where there are several"""


def gate_of(text: str, where: str) -> Gate:
    """A gate from "goodput>=0.95", "usd.p95<=10000" or "wall<60 days"."""
    found = _ASKED.match(text)
    if not found:
        raise InputError(
            f"{brief(text)} is not name>=value",
            where=where,
            remedy="write e.g. goodput>=0.95 or usd<=10000",
        )
    name, statistic, operator, said = found.groups()
    if name not in MEASURES:
        raise InputError(
            f"no result named {brief(name)}", where=where, remedy="known: " + ", ".join(MEASURES)
        )
    if statistic and statistic not in STATISTICS:
        raise UnknownName("statistic", statistic, STATISTICS, where=where)
    measure = MEASURES[name]
    try:
        limit = limit_of(measure, said)
    except InputError as error:
        raise error.at(where, name) from None
    return Gate(text.strip(), measure, statistic or "", operator, limit)


def limit_of(measure: Measure, said: str) -> float:
    """A value of a measure in base units; plain numbers are kWh, GPU-hours, dollars and kgCO2e, a
    share may be 0.95 or 95 %."""
    try:
        limit = parse(
            float(said) if _is_plain(said) and not UNITS[measure.unit][0] else said, measure.unit
        )
    except UnitError:
        if not _is_plain(said) or measure.unit not in _PLAIN:
            raise
        limit = parse(f"{said} {_PLAIN[measure.unit]}", measure.unit)
    if limit < 0:
        raise InputError(f"{brief(said)} is negative", remedy=f"{measure.id} never is")
    if measure.id == "goodput" and not 0 < limit < 1:
        raise InputError(
            f"{brief(said)} is no share of time that can be reached",
            remedy="goodput lies between 0 and 1, e.g. 0.95",
        )
    return limit


def _is_plain(said: str) -> bool:
    try:
        float(said)
    except ValueError:
        return False
    return True


def no_percentiles(gates: Sequence[Gate], where: str = "") -> None:
    """A closed form gives one figure; percentiles are of many runs."""
    for gate in gates:
        if gate.statistic:
            raise InputError(
                f"{gate.text!r} asks for a percentile of a single figure",
                where=where,
                remedy="`ckptcost simulate` has percentiles",
            )


def check_gates(
    gates: Sequence[Gate], value_of: Callable[[Gate], float], of: str = ""
) -> list[GateVerdict]:
    """Each gate against the value that a result gives for it."""
    verdicts = []
    for gate in gates:
        value = float(value_of(gate))
        verdicts.append(GateVerdict(gate, value, gate.holds(value), of))
    return verdicts
