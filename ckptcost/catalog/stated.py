"""What a claim's text says: "2 TB", "15 to 20 kWh", "about 700 kWh", "over 2 MWh", "up to 12 %"."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from ckptcost.core.audit import Stated
from ckptcost.core.intervals import Interval
from ckptcost.core.readings import ABOUT
from ckptcost.core.units import UNITS, parse
from ckptcost.errors import InputError, UnitError, brief

MOST: Final = 1e30
_WORDS: Final = (
    ("exact", r"exactly\s+|="),
    (
        "about",
        r"(?:about|approximately|approx\.?|around|roughly|circa|ca\.|some|nearly|almost)\s+|~|≈",
    ),
    ("at_least", r"(?:at least|no less than)\s+|>=|≥"),
    ("at_most", r"(?:up to|at most|as much as|no more than)\s+|<=|≤"),
    ("over", r"(?:over|more than|above|greater than)\s+|>"),
    ("under", r"(?:less than|under|below)\s+|<"),
)
_NUMBER = r"[+-]?(?:\d[\d,_]*(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?(?![eE][+-]?\d)"
_ONE = re.compile(rf"({_NUMBER})\s*(.*)$", re.S)
_TWO = re.compile(
    rf"(?:between\s+)?({_NUMBER})\s*([^\s\d]*?(?:/\w+)?)\s*(?:\bto\b|\band\b|-|\u2013|\u2014)\s*({_NUMBER})\s*(.*)$",
    re.S,
)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(?:\.\d+)?$")


def stated_of(raw: Any, unit: str, floor: float = 0.0) -> Stated:
    """A stated value in base units. `floor` is the least it can be, which "less than" and "up to"
    reach down to.

    A range is taken as it stands. A single number stands for all that round to its last digit, a
    whole number without a unit for itself, and an approximate word allows 10 % to either side.

    >>> stated_of("about 2.8 h", "s").printed, stated_of("2.8 h", "s").allowed
    (Interval(low=10080.0, high=10080.0), Interval(low=9900.0, high=10260.0))
    """
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise UnitError(f"expected a quantity such as {UNITS[unit][1]!r}, got {type(raw).__name__}")
    text = raw if isinstance(raw, str) else repr(raw)
    if len(text) > 200:
        raise UnitError(
            "a quantity of more than 200 characters", remedy=f"write e.g. {UNITS[unit][1]!r}"
        )
    body, kinds = text.strip(), []
    while word := next(
        ((kind, found) for kind, said in _WORDS if (found := re.match(said, body, re.I))), None
    ):
        kinds.append(word[0])
        body = body[word[1].end() :].strip()
    if len(kinds) > 1 and set(kinds) - {"about"}:
        raise InputError(
            f"{brief(text)} says two things at once",
            remedy='write one of "about", "over", "at least", "up to", "less than"',
        )
    kind = kinds[0] if kinds else ""
    pair = _TWO.match(body)
    if pair:
        if kind not in ("", "about", "exact", "at_most"):
            raise InputError(
                f"{brief(text)} is a range and a bound at once",
                remedy='write e.g. "15 to 20 kWh" or "over 15 kWh"',
            )
        return _range(text, pair, unit, kind, floor)
    one = _ONE.match(body)
    if not one:
        parse(body, unit)  # the unit's own complaint
        raise UnitError(
            f"{brief(text)} cannot be read",
            remedy=f'write e.g. {UNITS[unit][1]!r} or "15 to 20 kWh"',
        )
    value = _parse_number(one[1], one[2], unit, text, floor)
    half = (
        0.0
        if kind == "exact" or _counts(one[1], one[2], unit)
        else _half_digit(one[1], one[2], unit)
    )
    allowed = Interval(max(value - half, floor), value + half)
    if kind == "about":
        wide = max(half, ABOUT * abs(value))
        allowed = Interval(max(value - wide, floor), value + wide)
    point = Interval(value, value)
    if kind in ("over", "at_least"):
        bound = Interval(value, math.inf)
        return Stated(text, bound, bound, one[2].strip(), True, "low" if kind == "over" else "")
    if kind in ("under", "at_most"):
        bound = Interval(min(floor, value), value)
        return Stated(text, bound, bound, one[2].strip(), True, "high" if kind == "under" else "")
    return Stated(text, point, allowed, one[2].strip(), kind == "about")


def _range(text: str, pair: re.Match[str], unit: str, kind: str, floor: float) -> Stated:
    low_unit, high_unit = pair[2].strip() or pair[4].strip(), pair[4].strip()
    low, high = (
        _parse_number(pair[1], low_unit, unit, text, floor),
        _parse_number(pair[3], high_unit, unit, text, floor),
    )
    if low > high:
        raise InputError(f"{brief(text)} ends below its start", remedy="write the lower end first")
    printed = Interval(floor if kind == "at_most" and math.isfinite(floor) else low, high)
    wide = ABOUT if kind == "about" else 0.0
    allowed = Interval(
        max(printed.low - wide * abs(printed.low), floor), printed.high + wide * abs(printed.high)
    )
    return Stated(text, printed, allowed, high_unit, kind in ("about", "at_most"))


def _parse_number(digits: str, unit_text: str, unit: str, text: str, floor: float) -> float:
    if "," in digits and not _THOUSANDS.match(digits):
        raise UnitError(
            f"{brief(text)} has a comma in its number",
            remedy="write a decimal point, and commas between thousands only",
        )
    value = parse(f"{digits.replace(',', '')} {unit_text}".strip(), unit)
    if value < floor:
        raise InputError(f"{brief(text)} is negative", remedy="a quantity here is 0 or more")
    if abs(value) > MOST:
        raise InputError(f"{brief(text)} is out of range", remedy="no checkpoint has that")
    return value


def _counts(digits: str, unit_text: str, unit: str) -> bool:
    """A whole number without a unit counts things."""
    return not UNITS[unit][0] and not unit_text.strip() and not set(digits) & set(".eE")


def _half_digit(digits: str, unit_text: str, unit: str) -> float:
    """Half a unit of the last digit written."""
    mantissa, _, power = digits.lower().partition("e")
    places = len(mantissa.partition(".")[2])
    return abs(parse(f"{0.5 * 10.0**-places!r} {unit_text}".strip(), unit)) * 10.0 ** int(
        power or 0
    )
