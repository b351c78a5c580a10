"""Amounts of an audit in words: in the unit the claim was made in, else in the usual one; bounds
and ranges as people write them."""

from __future__ import annotations

import math
import re

from ckptcost.first.core.audit import Fact, Stated, Verdict
from ckptcost.first.core.intervals import Interval
from ckptcost.first.core.relations import QUANTITIES
from ckptcost.first.core.units import parse
from ckptcost.first.present.amounts import number

_STEPS = {
    "bytes": ("B", "kB", "MB", "GB", "TB", "PB"),
    "bytes_per_s": ("B/s", "kB/s", "MB/s", "GB/s", "TB/s"),
    "w": ("W", "kW", "MW", "GW"),
    "j": ("J", "Wh", "kWh", "MWh", "GWh"),
    "s": ("ms", "s", "min", "h", "d"),
    "j_per_byte": ("J/GB",),
    "bytes_per_param": ("B",),
    "usd": ("USD",),
    "kgco2e": ("kg",),
    "usd_per_s": ("USD/h",),
    "gpu_s": ("GPU-h",),
}


def amount(value: Interval, unit: str, like: str = "", at_most: bool = False) -> str:
    """An interval in the unit `like`, else in the largest usual one that leaves a number above 1.

    >>> (
    ...     amount(Interval(5.4e9, 7.2e9), "j", "MWh"),
    ...     amount(Interval(5400.0, 7200.0), "w"),
    ...     amount(Interval(0.0, 0.12), "", "%"),
    ... )
    ('1.5 to 2 MWh', '5.4 to 7.2 kW', 'up to 12 %')
    """
    like = like or _usual(value, unit)
    scale = parse(f"1 {like}".strip(), unit) if like else 1.0
    low, high = value.low / scale, value.high / scale
    tail = f" {like}" if like else ""
    if math.isinf(high):
        return f"{_number(low)}{tail} or more"
    if math.isinf(low) or (low == 0 and high > 0):
        return f"up to {_number(high)}{tail}"
    shown = _number(low) if _number(low) == _number(high) else f"{_number(low)} to {_number(high)}"
    return f"{'at most ' if at_most else ''}{shown}{tail}"


def _number(value: float) -> str:
    """Three digits; thousands to the last one, as claims are."""
    return f"{round(value):,}" if 1e3 <= abs(value) < 1e6 else number(value)


def _usual(value: Interval, unit: str) -> str:
    size = max((abs(end) for end in (value.low, value.high) if math.isfinite(end)), default=0.0)
    steps = _STEPS.get(unit, ("",))
    fitting = (
        [step for step in steps if size >= parse(f"1 {step}".strip(), unit)]
        if len(steps) > 1
        else []
    )
    return fitting[-1] if fitting else steps[0]


def binary(like: str) -> bool:
    return bool(re.search(r"[KMGTPE]i[Bb]", like))


def follows(fact: Fact, unit: str, like: str = "") -> str:
    """What follows, as a table shows it."""
    return amount(fact.printed, unit, like, fact.at_most)


def arithmetic(fact: Fact, unit: str, like: str = "") -> str:
    """The formula with its numbers in it.

    >>> of = (("size", Interval(2e12, 2e12), "TB"), ("write", Interval(2e8, 2e8), "MB/s"))
    >>> arithmetic(
    ...     Fact(Interval(1e4, 1e4), Interval(1e4, 1e4), frozenset(), how="size / write", of=of),
    ...     "s",
    ...     "h",
    ... )
    'size / write = 2 TB / 200 MB/s = 2.78 h'
    """
    values = {name: (value, written) for name, value, written in fact.of}

    def put(found: re.Match[str]) -> str:
        if found[0] not in values:
            return found[0]
        value, written = values[found[0]]
        text = amount(value, QUANTITIES[found[0].rpartition(".")[2]].unit, written)
        return text if value.low == value.high else f"({text})"

    filled = re.sub(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?", put, fact.how)
    return f"{fact.how} = {filled} = {follows(fact, unit, like)}"


def apart(verdict: Verdict) -> str:
    """By how much, in a few words."""
    if verdict.fact is None:
        return ""
    match verdict.how:
        case "overlaps":
            return "in part"
        case "rounding":
            return "by rounding"
        case "touches":
            return "only the ends meet"
        case "elsewhere":
            return "need not hold"
        case "apart":
            return distance(verdict.factor) or difference(
                verdict.stated, verdict.fact, verdict.unit
            )
    return ""


def distance(factor: float) -> str:
    """How far the nearest ends are from each other: percent up to twice, then times.

    >>> distance(1.08668), distance(4.80769), distance(float("nan"))
    ('8.7 %', '4.81 times', '')
    """
    if math.isnan(factor):
        return ""
    if factor < 2:
        return f"{number((factor - 1) * 100, 2)} %"
    return f"{number(factor)} times"


def difference(stated: Stated, fact: Fact, unit: str) -> str:
    """The nearest ends' difference, where a ratio says nothing: other signs, or zero."""
    gap = max(stated.printed.low - fact.printed.high, fact.printed.low - stated.printed.high)
    points = "points" if stated.unit == "%" else stated.unit
    return f"{number(gap / parse(f'1 {stated.unit}'.strip(), unit))} {points}".rstrip()
