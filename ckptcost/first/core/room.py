"""Whether a place has room for the checkpoints that are kept and those being written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class SavesHeld(NamedTuple):
    """What is held at the same time."""

    full_bytes: float
    delta_bytes: float
    full_every: int
    """every k-th save is full, the others are deltas of it"""
    keep_last: float
    writing: int
    """being written while the old ones are still there"""
    files: float
    """of one save"""
    made: float = math.inf
    """in the whole run, where it is known: more are never there"""


class Limit(NamedTuple):
    """What a place allows; NaN where it is not known."""

    name: str
    bytes_: float
    files: float


def saves_held(saves: SavesHeld, keep_last: float) -> float:
    """Saves that are there at worst: the oldest kept may be a delta, whose chain begins at a full
    save before it."""
    return min(keep_last + saves.writing + (saves.full_every - 1), saves.made)


def needed_bytes(saves: SavesHeld, keep_last: float) -> float:
    """Bytes at worst.

    >>> needed_bytes(SavesHeld(10.0, 10.0, 1, 3, 1, 0.0), keep_last=3)
    40.0
    >>> needed_bytes(SavesHeld(10.0, 1.0, 4, 2, 1, 0.0), keep_last=2)  # 6 saves, 2 full
    24.0
    >>> needed_bytes(SavesHeld(10.0, 1.0, 4, 6, 1, 0.0, made=6), keep_last=6)  # all of a run
    24.0
    """
    count = saves_held(saves, keep_last)
    if math.isinf(count):
        return math.inf
    full = math.ceil(count / saves.full_every)
    return full * saves.full_bytes + (count - full) * saves.delta_bytes


def fits(saves: SavesHeld, limit: Limit, keep_last: float) -> bool:
    """A limit that is not known forbids nothing."""
    too_big = needed_bytes(saves, keep_last) > limit.bytes_
    too_many = saves.files > 0 and saves_held(saves, keep_last) * saves.files > limit.files
    return not (too_big or too_many)


def most_saves_kept(saves: SavesHeld, limits: Sequence[Limit]) -> int | None:
    """The largest keep_last that fits, 0 where not one does; None where nothing limits it.

    >>> most_saves_kept(SavesHeld(10.0, 10.0, 1, 3, 1, 0.0), [Limit("free space", 35.0, math.nan)])
    2
    """

    def all_fit(keep_last: float) -> bool:
        return all(fits(saves, limit, keep_last) for limit in limits)

    most = 2**40
    if all_fit(most):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if all_fit(middle) else (low, middle)
    return low


def evenly_bytes(free_bytes: Sequence[float]) -> float:
    """What can be spread evenly over targets: the fullest of them ends it for all.

    >>> evenly_bytes([459e9, 100e9, 0.0])
    0.0
    """
    return min(free_bytes) * len(free_bytes)
