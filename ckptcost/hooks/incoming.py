"""A line that came from a training process, judged: a broken or hostile sender must not put
nonsense into a run."""

from __future__ import annotations

import json
import math
from typing import Any, Final, NamedTuple

from ckptcost.core.phases import MARKS

NAMES: Final = frozenset({*MARKS, "note", "steps"})
LONGEST_LINE: Final = 4000
MOST_RANK: Final = 10_000_000
PAST_NS: Final = 86_400 * 1_000_000_000
"""a part of a save is told when the whole returns, a training step with the next one"""
FUTURE_NS: Final = 1_000_000_000
_RESERVED: Final = frozenset({"self", "name", "window", "by", "rank", "t_ns"})
_MOST_KEYS: Final = 20
_LONGEST_TEXT: Final = 4000
_LONGEST_LABEL: Final = 200
_MOST_STEPS: Final = 1000


class IncomingMark(NamedTuple):
    t_ns: int
    name: str
    window: str
    rank: int
    detail: dict[str, Any]


def parse_line(line: bytes, now_ns: int) -> IncomingMark | None:
    """None: refused.

    >>> parse_line(b'{"t": 5, "name": "begin", "window": "step 1", "rank": 3}', now_ns=9)
    IncomingMark(t_ns=5, name='begin', window='step 1', rank=3, detail={})
    """
    if len(line) > LONGEST_LINE:
        return None
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if type(said) is not dict:
        return None
    name, window, rank, detail = (
        said.get("name"),
        said.get("window", ""),
        said.get("rank", 0),
        said.get("detail", {}),
    )
    if (
        type(name) is not str
        or name not in NAMES
        or type(window) is not str
        or type(detail) is not dict
    ):
        return None
    if type(rank) is not int or not 0 <= rank <= MOST_RANK or not _in_time(said.get("t"), now_ns):
        return None
    if name == "steps":
        steps = _steps(detail, now_ns)
        return None if steps is None else IncomingMark(said["t"], name, "", rank, steps)
    return IncomingMark(said["t"], name, printable(window), rank, _detail(detail))


def _in_time(t_ns: object, now_ns: int) -> bool:
    return type(t_ns) is int and max(1, now_ns - PAST_NS) <= t_ns <= now_ns + FUTURE_NS


def printable(text: str) -> str:
    """Fit for a screen and a file: cut, and without what does not print."""
    text = text[:_LONGEST_LABEL]
    return (
        text
        if text.isprintable()
        else "".join(sign if sign.isprintable() else "?" for sign in text)
    )


def _detail(detail: dict[str, Any]) -> dict[str, Any]:
    """What can be kept of it."""
    kept: dict[str, Any] = {}
    for key, value in detail.items():
        if len(kept) >= _MOST_KEYS or not key.isidentifier() or len(key) > 32 or key in _RESERVED:
            continue
        if (
            type(value) is bool
            or (type(value) is int and abs(value) < 1 << 63)
            or (type(value) is float and math.isfinite(value))
        ):
            kept[key] = value
        elif type(value) is str:
            kept[key] = value[:_LONGEST_TEXT]
    return kept


def _steps(detail: dict[str, Any], now_ns: int) -> dict[str, Any] | None:
    """Ends of training steps, in order."""
    ends_ms, base_ns = detail.get("ends_ms"), detail.get("base")
    if (
        type(ends_ms) is not list
        or not 0 < len(ends_ms) <= _MOST_STEPS
        or not _in_time(base_ns, now_ns)
    ):
        return None
    if not all(type(end) in (int, float) and 0 <= end <= PAST_NS / 1e6 for end in ends_ms):
        return None
    return _detail(detail) | {"ends_ms": ends_ms, "base": base_ns}
