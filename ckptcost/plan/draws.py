"""From scenarios to arrays: a row a case; column 0 the stated values, then draws from the ranges.

Each figure with a range is a triangle with its mode at the stated value, on a logarithmic scale
(on a linear one if its low end is 0). Latin hypercube: one draw in the middle of each of N strata,
in an order that depends on the figure's path alone, so that cases share their worlds and can be
compared draw by draw, and a further figure changes no other's draws. A figure that was taken from
others moves with their draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any
from zlib import crc32

import numpy as np

from ckptcost.scenario.figures import Figure
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import CADENCES, KEYS, SECTIONS, Array, World


@cache
def share(path: str, draws: int) -> Array:
    """Middles of the strata of [0, 1], in the order of this figure."""
    keys = np.arange(draws, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ np.uint64(crc32(path.encode()))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(31))) * np.uint64(0x94D049BB133111EB)
    keys, low = keys ^ (keys >> np.uint64(29)), np.uint64(2**18 - 1)
    # each key's number in its low bits: sorting is twice as fast as to ask for the order
    keys = np.sort((keys & ~low) | np.arange(draws, dtype=np.uint64))
    return ((keys & low).astype(float) + 0.5) / draws


def triangle(low: float, mode: float, high: float, share: Array) -> Array:
    """Quantiles of a triangular law, on a logarithmic scale where low > 0.

    >>> triangle(0.0, 1.0, 2.0, np.array([0.125, 0.5, 0.875])).tolist()
    [0.5, 1.0, 1.5]
    """
    if low > 0:
        return np.exp(_triangle(np.log(low), np.log(mode), np.log(high), share))
    return _triangle(low, mode, high, share)


def _triangle(low: float, mode: float, high: float, share: Array) -> Array:
    below = low + np.sqrt(share * (high - low) * (mode - low))
    above = high - np.sqrt((1.0 - share) * (high - low) * (high - mode))
    return np.where(share < (mode - low) / (high - low), below, above)


def worlds(scenarios: Sequence[Scenario], draws: int = 0) -> World:
    """All cases as one World; a figure without a range has one column."""
    sections = {
        section: kind(**{key: _stacked(scenarios, section, key, draws) for key in KEYS[section]})
        for section, kind in SECTIONS.items()
    }
    return World(**sections)


def _stacked(scenarios: Sequence[Scenario], section: str, key: str, draws: int) -> Any:
    """A row a case."""
    default = KEYS[section][key].default
    said = [each.said[section].get(key, default) for each in scenarios]
    if not any(isinstance(each, Figure) for each in said):
        return np.array(said, dtype=object if key == "name" else None)[:, None]
    rows = [_row(each, section, key, draws) for each in scenarios]
    width = max(map(len, rows))
    return np.array([np.broadcast_to(row, width) for row in rows])


def _row(scenario: Scenario, section: str, key: str, draws: int) -> Array:
    """The stated value, and draws behind it if it has a range or follows a figure that has."""
    figure = scenario.said[section].get(key)
    if figure is None:
        return np.array([KEYS[section][key].default])
    row = np.array([figure.value])
    if not draws or f"{section}.{key}" in PLANNED:
        return row
    if figure.ranged:
        row = _drawn(f"{section}.{key}", figure.low, figure.value, figure.high, draws)
    for path in figure.follows:
        row = row * _relative(scenario, path, draws)
    return row


@lru_cache(maxsize=128)
def _drawn(path: str, low: float, value: float, high: float, draws: int) -> Array:
    """Cached, since many cases share their figures."""
    return np.append(value, triangle(low, value, high, share(path, draws)))


PLANNED = tuple(f"policy.{key}" for key in CADENCES)
"""how often to save is chosen, not drawn: only the world varies"""


def _relative(scenario: Scenario, path: str, draws: int) -> Array:
    """Draws of a figure over its stated value."""
    section, key = path.split(".")
    row = _row(scenario, section, key, draws)
    return row / row[0] if 0 < row[0] < np.inf else np.ones(1)


def ends(table: Array) -> tuple[Array, Array]:
    """5th and 95th percentile of each row's draws, widened to contain its stated value's result."""
    stated, drawn = table[:, :1], table[:, 1:]
    if not drawn.shape[1]:
        return table[:, 0], table[:, 0]
    known = np.maximum(np.count_nonzero(~np.isnan(drawn), axis=1, keepdims=True), 1)
    place = np.array((0.05, 0.95)) * (known - 1)
    below = place.astype(int)
    needed = sorted({*below.flat, *np.minimum(below + 1, known - 1).flat})
    ordered = np.partition(np.clip(drawn, -ENDLESS, ENDLESS), needed, axis=1)  # NaN last
    low, high = (np.take_along_axis(ordered, np.minimum(below + i, known - 1), 1) for i in (0, 1))
    both = low + (place - below) * (high - low)
    both = np.where(np.abs(both) < ENDLESS, both, np.copysign(np.inf, both))
    return np.fmin(both[:, :1], stated)[:, 0], np.fmax(both[:, 1:], stated)[:, 0]


ENDLESS = 1e300
"""no difference of infinities between two draws"""
