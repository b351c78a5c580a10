"""A figure: a value with its range, what it rests on, and who says so."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from ckptcost.first.core.units import parse
from ckptcost.first.errors import InputError, UnitError, UnknownName, brief

Basis = Literal["measured", "published", "derived", "vendor", "user", "assumed"]
BASES: tuple[str, ...] = get_args(Basis)
"""from the firmest to the softest; a result rests on the softest of its inputs"""

_KEYS = ("value", "low", "high", "basis", "source", "boundary", "note", "date")

_DAY = r"20\d\d(-(Q[1-4]|(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?))?"
_NOT_ONE_LINE = re.compile(r"[\x00-\x1f\ud800-\udfff]")
_DATE = re.compile(rf"{_DAY}( to {_DAY})?")


@dataclass(frozen=True, slots=True)
class Figure:
    value: float
    low: float | None = None
    high: float | None = None
    basis: str = ""
    source: str = ""
    boundary: str = ""
    note: str = ""
    text: str = ""
    """the value as it was written, unit included"""
    date: str = ""
    """of when it is, as exactly as that is known: a day, a month, a quarter, a year, or "A to B";
    prices need one"""

    @property
    def remark(self) -> str:
        """What is to be said beside the figure: of when it is, and its note."""
        return "; ".join(filter(None, (f"as of {self.date}" if self.date else "", self.note)))

    def or_else(self, basis: str, source: str) -> Figure:
        """The figure with its file's basis and source where it has none of its own."""
        return replace(self, basis=self.basis or basis, source=self.source or source)

    def scaled(self, factor: Figure, note: str) -> Figure:
        """Product of two figures, ranges and all; it is as soft as the softer of the two."""
        low = (self.value if self.low is None else self.low) * (
            factor.value if factor.low is None else factor.low
        )
        high = (self.value if self.high is None else self.high) * (
            factor.value if factor.high is None else factor.high
        )
        value = self.value * factor.value
        source = "; ".join(dict.fromkeys(part for part in (self.source, factor.source) if part))
        ranged = low < high
        return Figure(
            value,
            low if ranged else None,
            high if ranged else None,
            softest((self.basis, factor.basis)),
            source,
            self.boundary,
            note,
        )


def softest(bases: tuple[str, ...]) -> str:
    """The least firm of several bases."""
    known = [BASES.index(basis) for basis in bases if basis in BASES]
    return BASES[max(known)] if known else "assumed"


def figure_of(raw: Any, unit: str) -> Figure:
    """A figure from "30 GB/s" or from a table with value, low, high, basis, source, boundary, note,
    date."""
    if isinstance(raw, Figure):
        return raw
    if not isinstance(raw, dict):
        return Figure(_number(raw, unit), text=str(raw))
    for key in raw:
        if key not in _KEYS:
            raise UnknownName("key of a figure", str(key), _KEYS)
    if "value" not in raw:
        raise InputError(
            "a figure's table needs a value",
            remedy='write e.g. { value = "30 GB/s", low = "20 GB/s", high = "40 GB/s" }',
        )
    if ("low" in raw) != ("high" in raw):
        raise InputError("low and high come together", remedy="give both, or neither")
    value = _number(raw["value"], unit)
    low = high = None
    if "low" in raw:
        low, high = _number(raw["low"], unit), _number(raw["high"], unit)
        if not low <= value <= high:
            raise InputError(
                f"{raw['low']} <= {raw['value']} <= {raw['high']} does not hold",
                remedy="order them low <= value <= high",
            )
    return Figure(value, low, high, text=str(raw["value"]), **_words_of(raw))


def _words_of(raw: dict[Any, Any]) -> dict[str, str]:
    """What a figure's table says beside its numbers."""
    words = {key: raw.get(key, "") for key in ("basis", "source", "boundary", "note", "date")}
    for key, word in words.items():
        if not isinstance(word, str):
            raise InputError(f"{key} must be text")
        if len(word) > 4000 or _NOT_ONE_LINE.search(word):
            raise InputError(f"{key} must be one line of at most 4,000 characters")
    if words["basis"] and words["basis"] not in BASES:
        raise UnknownName("basis", words["basis"], BASES)
    if words["date"] and not _DATE.fullmatch(words["date"]):
        raise InputError(
            f"{brief(words['date'])} is no date of a figure",
            remedy='write "2026-07-13", "2026-07", "2026-Q3", "2026" or "2026-07 to 2026-09"',
        )
    return words


def _number(raw: Any, unit: str) -> float:
    value = parse(raw, unit)
    if value < 0:
        raise UnitError(f"{brief(raw)} is negative", remedy="no quantity here can be")
    return value
