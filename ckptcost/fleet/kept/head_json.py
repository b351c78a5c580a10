"""The head of a node's day as JSON: NaN is null, an infinite number its name as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import date
from typing import Any, Final

from ckptcost.fleet.kept.node_day import Head

LATEST_NS: Final = 7_258_118_400_000_000_000
"""the year 2200: a clock that says more is none"""
NEEDED: Final = ("job", "run", "host", "day")


def _float_out(value: Any) -> float | str | None:
    number = float(value)
    if math.isfinite(number):
        return number
    return None if number != number else str(number)


def _float_in(value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, str) and value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(value)
    return float(value)


def _exactly(kind: type) -> Callable[[Any], Any]:
    def taken(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(value)
        return value

    return taken


def _labels_in(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise TypeError(value)
    return value


_int_in = _exactly(int)
_KINDS: Final[Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    "str": (str, _exactly(str)),
    "float": (_float_out, _float_in),
    "int": (int, _int_in),
    "bool": (bool, _exactly(bool)),
    "int | None": (
        lambda value: None if value is None else int(value),
        lambda value: None if value is None else _int_in(value),
    ),
    "Mapping[str, str]": (
        lambda value: {str(key): str(each) for key, each in value.items()},
        _labels_in,
    ),
}
_FIELDS: Final = tuple((each.name, *_KINDS[str(each.type)]) for each in fields(Head))


def to_plain(head: Head) -> dict[str, Any]:
    return {name: out(getattr(head, name)) for name, out, _ in _FIELDS}


def from_plain(known: Mapping[str, Any]) -> Head:
    """Keys of a newer minor version are passed over. Raises ValueError, KeyError, TypeError or
    OverflowError."""
    for name in NEEDED:
        known[name]
    head = Head(**{name: taken(known[name]) for name, _, taken in _FIELDS if name in known})
    judge(head)
    return head


def judge(head: Head) -> None:
    """Raises ValueError for days and times that cannot be."""
    if len(head.day) != 10 or date.fromisoformat(head.day).isoformat() != head.day:
        raise ValueError(f"no day: {head.day!r}")
    for name in ("began_ns", "until_ns", "run_began_ns"):
        if not 0 <= getattr(head, name) < LATEST_NS:
            raise ValueError(f"{name} is no time: {getattr(head, name)}")
