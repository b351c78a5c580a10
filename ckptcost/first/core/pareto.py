"""Points that no other point beats in everything: the Pareto front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

_CHUNK = 256
"""points compared with each other at once: 256 x 256 x objectives truths stay in the cache"""


def front(points: Any, senses: Sequence[Literal["high", "low"]]) -> NDArray[np.bool_]:
    """Which rows of `points` (one column an objective) no other row dominates.

    A row dominates another if it is at least as good in every column and better in one, so equal
    rows stay together. A row with an unknown (NaN) is not on the front and dominates nothing:
    nobody can say.

    >>> front(
    ...     [[0.9, 100.0], [0.8, 50.0], [0.8, 60.0], [0.95, float("nan")]], senses=("high", "low")
    ... ).tolist()
    [True, True, False, False]
    """
    signs = np.where(np.array([sense == "high" for sense in senses], dtype=bool), -1.0, 1.0)
    costs = np.asarray(points, dtype=float).reshape(-1, len(signs)) * signs
    kept = np.zeros(len(costs), dtype=bool)
    known = np.flatnonzero(~np.isnan(costs).any(axis=1))
    # in this order whoever dominates a row stands before it: only rows already on the front need to
    # be asked
    ordered = known[np.lexsort(costs[known].T[::-1])] if len(signs) else known
    best = np.empty((0, len(signs)))
    for start in range(0, len(ordered), _CHUNK):
        rows = ordered[start : start + _CHUNK]
        rows = rows[~_dominated_rows(costs[rows], best)]
        rows = rows[~_dominated_rows(costs[rows], costs[rows])]
        kept[rows] = True
        best = np.concatenate([best, costs[rows]])
    return kept


def _dominated_rows(costs: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows another set has a better row for."""
    no_worse = np.ones((len(costs), len(others)), dtype=bool)
    better = np.zeros_like(no_worse)
    for mine, theirs in zip(costs.T, others.T, strict=True):
        no_worse &= theirs[None, :] <= mine[:, None]
        better |= theirs[None, :] < mine[:, None]
    beaten: NDArray[np.bool_] = np.any(no_worse & better, axis=1)
    return beaten
