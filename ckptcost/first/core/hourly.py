"""Amounts over rows of time, and factors that change by the hour or quicker: each row's emissions
are its energy times its own factor.

row = sum of amount * (time of the stretch inside the row) / (time of the stretch)         spread
factor of a row = time-weighted mean of the steps inside it, unknown unless they cover it  mean_over
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
WIDTHS_S = (3600.0, 1800.0, 900.0, 300.0, 60.0)
"""how wide a row can be: the widest in which no factor changes"""


class Steps(NamedTuple):
    """A factor that holds from each start until the end beside it; between an end and the next
    start it is not known."""

    start_s: Floats
    """Unix time, rising"""
    end_s: Floats
    value: Floats


def width_for(*steps: Steps | None) -> float:
    """The widest row in which none of the factors changes, as long as rows begin at whole multiples
    of it.

    >>> half_past = Steps(
    ...     np.array([1800.0, 5400.0]), np.array([5400.0, 9000.0]), np.array([0.1, 0.2])
    ... )
    >>> width_for(None), width_for(half_past)
    (3600.0, 1800.0)
    """
    changes = [np.concatenate([each.start_s, each.end_s]) for each in steps if each is not None]
    for width_s in WIDTHS_S:
        if all(not np.any(each % width_s) for each in changes):
            return width_s
    return WIDTHS_S[-1]


def edges_of(begin_s: float, end_s: float, width_s: float) -> Floats:
    """Where rows begin and end: at whole multiples of the width, and at both ends of the time.

    >>> edges_of(1800.0, 9000.0, 3600.0).tolist()
    [1800.0, 3600.0, 7200.0, 9000.0]
    """
    inner = np.arange(np.floor(begin_s / width_s) + 1, np.ceil(end_s / width_s)) * width_s
    edges: Floats = np.concatenate([[begin_s], inner, [end_s]])
    return edges


def shares(begin_s: float, end_s: float, edges: Floats) -> tuple[int, Floats]:
    """Which rows a stretch lies in: the first, and its share in that one and those after it. They
    add up to 1.

    >>> first, parts = shares(3000.0, 4200.0, np.array([0.0, 3600.0, 7200.0]))
    >>> first, parts.tolist()
    (0, [0.5, 0.5])
    """
    last = len(edges) - 2
    first = min(max(int(np.searchsorted(edges, begin_s, side="right")) - 1, 0), last)
    until = min(max(int(np.searchsorted(edges, end_s, side="left")) - 1, first), last)
    if until == first or not end_s > begin_s:
        return first, np.ones(1)
    cuts = np.concatenate([[begin_s], edges[first + 1 : until + 1], [end_s]])
    parts: Floats = np.diff(cuts) / (end_s - begin_s)
    return first, parts


def spread(
    stretches: Sequence[tuple[float, float]], amounts: Sequence[float], edges: Floats
) -> Floats:
    """Amounts, each evenly over its stretch, as sums of rows. What is not known leaves its rows
    unknown.

    >>> spread(
    ...     [(0.0, 7200.0), (3600.0, 3601.0)], [10.0, 1.0], np.array([0.0, 3600.0, 7200.0])
    ... ).tolist()
    [5.0, 6.0]
    """
    rows = np.zeros(len(edges) - 1)
    for (begin_s, end_s), amount in zip(stretches, amounts, strict=True):
        first, parts = shares(begin_s, end_s, edges)
        rows[first : first + len(parts)] += amount * parts
    return rows


def mean_over(steps: Steps, edges: Floats) -> Floats:
    """The factor of each row; NaN where the steps do not cover all of it.

    >>> steps = Steps(np.array([0.0, 3600.0]), np.array([3600.0, 7200.0]), np.array([0.2, 0.4]))
    >>> [
    ...     round(each, 9)
    ...     for each in mean_over(steps, np.array([0.0, 1800.0, 5400.0, 9000.0])).tolist()
    ... ]
    [0.2, 0.3, nan]
    """
    points = np.sort(np.unique(np.concatenate([steps.start_s, steps.end_s, edges])))
    middles, lengths = (points[1:] + points[:-1]) / 2, np.diff(points)
    at = np.searchsorted(steps.start_s, middles, side="right") - 1
    held = np.where(
        (at >= 0) & (middles < steps.end_s[np.maximum(at, 0)]),
        steps.value[np.maximum(at, 0)],
        np.nan,
    )
    row = np.searchsorted(edges, middles, side="right") - 1
    inside = (row >= 0) & (row < len(edges) - 1)
    found: Floats = np.bincount(row[inside], (held * lengths)[inside], len(edges) - 1) / np.diff(
        edges
    )
    alone = inside & (
        np.bincount(row[inside], minlength=len(edges) - 1)[np.clip(row, 0, len(edges) - 2)] == 1
    )
    found[row[alone]] = held[
        alone
    ]  # a row in which nothing changes has the factor to the last digit
    return found


def contract_factor(shares_: Sequence[float], factors: Sequence[float], residual: float) -> float:
    """Market-based factor of what contracts cover, and of the rest; NaN where the rest has none.

    >>> contract_factor([0.5, 0.25], [0.0, 0.1], residual=0.4)
    0.125
    """
    covered = sum(shares_)
    said = sum(share * factor for share, factor in zip(shares_, factors, strict=True))
    return said if covered >= 1.0 - 1e-12 else said + (1.0 - covered) * residual
