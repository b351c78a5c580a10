"""Who waited for whom in a save: nodes that are done stand until the last one is.

    wait of a node            from its own return until the last one of its window blamed on a node
    between two returns that follow each other, what the nodes that are done wait, in equal parts on
    those that
                              are not

Blames of a window add up to its waits.
"""

from __future__ import annotations

from math import nan
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.groups import Ints, blocks

Floats = NDArray[np.float64]

_NS: Final = 1e-9


class Stragglers(NamedTuple):
    """The first five are one value a row, the last three one a window. NaN: a return, the GPUs or
    the watts are not known."""

    wait_s: Floats
    wait_gpu_s: Floats
    wait_j: Floats
    blamed_gpu_s: Floats
    """others' waiting that this row caused"""
    blamed_j: Floats
    begin_ns: Ints
    """the first one; 0 where a window has no row"""
    stall_s: Floats
    """from the first begin to the last return"""
    slowest: Ints
    """which row returned last, the first of several; -1: not known"""


def stragglers_of(
    window: Ints, windows: int, begin_ns: Ints, stall_s: Floats, gpus: Floats, stall_w: Floats
) -> Stragglers:
    """One row a window and node: begins on one clock, each node's own stall, its GPUs, and its
    watts while it stands.

    A row whose stall is not known leaves its window's stall and waits unknown. One whose GPUs or
    watts are not known leaves unknown what it waits, and what is blamed on those that it waits for.

    >>> found = stragglers_of(
    ...     np.zeros(3, int),
    ...     1,
    ...     np.zeros(3, int),
    ...     np.array([1.0, 2.0, 4.0]),
    ...     np.full(3, 8.0),
    ...     np.full(3, 500.0),
    ... )
    >>> found.wait_s.tolist(), found.wait_gpu_s.tolist(), found.blamed_gpu_s.tolist()
    ([3.0, 2.0, 0.0], [24.0, 16.0, 0.0], [0.0, 4.0, 36.0])
    >>> float(found.stall_s[0]), int(found.slowest[0])
    (4.0, 2)
    """
    begin_ns = np.asarray(begin_ns, dtype=np.int64)
    stall_s, gpus, stall_w = (
        np.asarray(each, dtype=np.float64) for each in (stall_s, gpus, stall_w)
    )
    n = len(begin_ns)
    if {len(window), len(stall_s), len(gpus), len(stall_w)} != {n}:
        raise ValueError("one value a row, of each")
    wait_s, wait_gpu_s, wait_j, blamed_gpu_s, blamed_j = np.full((5, n), nan)
    found = Stragglers(
        wait_s,
        wait_gpu_s,
        wait_j,
        blamed_gpu_s,
        blamed_j,
        begin_ns=np.zeros(windows, np.int64),
        stall_s=np.full(windows, nan),
        slowest=np.full(windows, -1, np.int64),
    )
    for which, rows in blocks(window, windows):
        begins = begin_ns[rows]
        first_ns = begins.min(axis=1)
        found.begin_ns[which] = first_ns
        # seconds since the window's own begin: an instant of the calendar has no room for
        # nanoseconds in a float
        done_s = (begins - first_ns[:, None]) * _NS + stall_s[rows]
        last_s = done_s.max(axis=1)
        known = ~np.isnan(last_s)
        if not known.all():
            which, rows = which[known], rows[known]  # noqa: PLW2901
            done_s, last_s = done_s[known], last_s[known]
        found.stall_s[which] = last_s
        found.slowest[which] = rows[np.arange(len(rows)), done_s.argmax(axis=1)]
        waits_s = last_s[:, None] - done_s
        wait_s[rows] = waits_s
        in_turn = np.argsort(done_s, axis=1)
        returned_s = np.take_along_axis(done_s, in_turn, axis=1)
        # time between returns, divided by the nodes that are not done yet
        each_s: Floats = np.diff(returned_s, axis=1) / np.arange(returned_s.shape[1] - 1, 0, -1)
        ordered = np.take_along_axis(rows, in_turn, axis=1)
        for rate, waits, blames in ((gpus, wait_gpu_s, blamed_gpu_s), (stall_w, wait_j, blamed_j)):
            waits[rows] = _times(waits_s, rate[rows])
            blames[ordered] = _blames(each_s, rate[ordered])
    return found


def _blames(each_s: Floats, rate: Floats) -> Floats:
    """By order of return: the sum over the times until then of what waits."""
    found = np.zeros(rate.shape)
    np.cumsum(_times(each_s, np.cumsum(rate[:, :-1], axis=1)), axis=1, out=found[:, 1:])
    return found


def _times(time_s: Floats, rate: Floats) -> Floats:
    """No time takes nothing, whatever the rate."""
    product = time_s * rate
    if np.isnan(product).any():
        product[time_s == 0] = 0.0
    return product
