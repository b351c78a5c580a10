"""Rows that belong together, as matrices: groups of one size are rows of one matrix, so a million
rows need a few numpy calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
AT_ONCE: Final = 1 << 16
"""rows of one matrix, unless one group has more: what is made of them stays in the processor's
cache"""
Scalar = TypeVar("Scalar", bound=np.generic)


def blocks(group: Ints, groups: int) -> Iterator[tuple[Ints, Ints]]:
    """Groups of one size: which they are, and the places of their rows, one group a line, in the
    order they came in.

    `group` is the place 0..groups-1 that each row belongs to; groups without a row are in no block.
    There are at most sqrt(2n) sizes.

    >>> for which, rows in blocks(np.array([2, 0, 2, 1, 0]), 4):
    ...     print(which.tolist(), rows.tolist())
    [1] [[3]]
    [0, 2] [[1, 4], [0, 2]]
    """
    group, n = np.asarray(group, dtype=np.int64), len(group)
    if not n:
        return
    if group.min() < 0 or group.max() >= groups:
        raise ValueError(f"a group that is not one of {groups}")
    order = np.arange(n)
    if (group[1:] < group[:-1]).any():
        # sorting the keys themselves is several times as quick as sorting places by them
        order = (
            np.sort(group * n + order) % n
            if groups < 2**62 // n
            else np.argsort(group, kind="stable")
        )
    counts = np.bincount(group, minlength=groups)
    starts = np.cumsum(counts) - counts
    for size in np.unique(counts[counts > 0]).tolist():
        which, lines = np.flatnonzero(counts == size), max(AT_ONCE // size, 1)
        for at in range(0, len(which), lines):
            some = which[at : at + lines]
            yield some, order[starts[some][:, None] + np.arange(size)]


def lower_median(values: NDArray[Scalar]) -> NDArray[Scalar]:
    """Of each line; of an even number the lower of the two in the middle, so that it is one of
    them, exactly.

    >>> lower_median(np.array([[4, 1, 3, 2]])).tolist()
    [2]
    """
    middle = (values.shape[-1] - 1) // 2
    found: NDArray[Scalar] = np.partition(values, middle, axis=-1)[..., middle]
    return found
