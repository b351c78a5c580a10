"""How far each node's clock is off the job's, from the begins of saves that all nodes take part in.

    the job's clock in a window    median of the nodes' begins, their offsets taken off a node's
    offset                lower median over its windows of (its begin - the job's clock there) the
    zero                       lower median of the offsets

All in whole nanoseconds: nodes that begin together in most windows come out exactly.
"""

from __future__ import annotations

from math import nan, pi, sqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.groups import Ints, blocks, lower_median

Floats = NDArray[np.float64]

_NS: Final = 1e-9
_TO_SIGMA: Final = 1.4826
"""a median deviation in standard deviations, were the law normal"""
_OF_MEDIAN: Final = sqrt(pi / 2)
"""the standard error of a median in that of a mean, were the law normal"""


class Offsets(NamedTuple):
    """One value a node. To bring an instant to the job's clock, take the node's offset off."""

    offset_ns: Ints
    """positive: the node's clock is ahead; 0 where nothing is known (no windows)"""
    unsure_s: Floats
    """standard error of it; NaN where there is nothing to tell it from"""
    windows: Ints
    """that it was told from: those in which another node was, too"""
    scatter_s: Floats
    """how much later or earlier than the others it begins from window to window, as a standard
    deviation; single late begins do not move it; NaN below two windows"""


def offsets_of(window: Ints, node: Ints, begin_ns: Ints) -> Offsets:
    """One row a window and node; windows and nodes are numbered from 0, begins are by the node's
    own clock.

    >>> together = np.array([0, 60_000_000_000, 120_000_000_000])
    >>> found = offsets_of(
    ...     np.repeat([0, 1, 2], 3),
    ...     np.tile([0, 1, 2], 3),
    ...     (together[:, None] + [-7, 0, 1_000_000]).ravel(),
    ... )
    >>> found.offset_ns.tolist(), found.unsure_s.tolist()
    ([-7, 0, 1000000], [0.0, 0.0, 0.0])
    """
    window, node = np.asarray(window, dtype=np.int64), np.asarray(node, dtype=np.int64)
    begin_ns = np.asarray(begin_ns, dtype=np.int64)
    if not len(window) == len(node) == len(begin_ns):
        raise ValueError("one window, node and begin a row")
    nodes = int(node.max()) + 1 if len(node) else 0
    in_windows = [
        rows
        for _, rows in blocks(window, int(window.max()) + 1 if len(window) else 0)
        if rows.shape[1] > 1
    ]
    compared = np.zeros(len(node), dtype=bool)
    for rows in in_windows:
        compared[rows] = True
    kept = np.flatnonzero(compared)
    by_node = [(which, kept[rows]) for which, rows in blocks(node[kept], nodes)]
    counts = np.bincount(node[kept], minlength=nodes).astype(np.int64)
    offset_ns = np.zeros(nodes, dtype=np.int64)
    # where nodes lack windows, the middle one is another from window to window: once their offsets
    # are off, that matters no more
    for _ in range(2):
        offset_ns += _medians(_late_ns(begin_ns - offset_ns[node], in_windows), by_node, nodes)
    late_ns = _later_than_others_ns(begin_ns - offset_ns[node], in_windows)
    scatter_s = _scatter_s(late_ns, by_node, nodes)
    for rows in in_windows:
        # of n nodes, one that is off by x is off by x * n/(n - 1) from the others, which are held
        # against it, too
        late_ns[rows] -= late_ns[rows] // rows.shape[1]
    offset_ns += _medians(late_ns, by_node, nodes)
    if (counts > 0).any():
        offset_ns[counts > 0] -= lower_median(offset_ns[counts > 0])
    return Offsets(offset_ns, _unsure_s(scatter_s, counts), counts, scatter_s)


def _late_ns(begin_ns: Ints, in_windows: list[Ints]) -> Ints:
    """Begins less their window's, which is that of a node: of two it is always the earlier."""
    late_ns = np.zeros(len(begin_ns), dtype=np.int64)
    for rows in in_windows:
        late_ns[rows] = begin_ns[rows] - lower_median(begin_ns[rows])[:, None]
    return late_ns


def _later_than_others_ns(begin_ns: Ints, in_windows: list[Ints]) -> Ints:
    """Begins less the median of the other nodes': a node that is compared with itself seems nearer
    and surer than it is."""
    late_ns = np.zeros(len(begin_ns), dtype=np.int64)
    for rows in in_windows:
        nodes, there = rows.shape[1], begin_ns[rows]
        low, high = (nodes - 2) // 2, (nodes + 1) // 2
        around = np.partition(there, range(low, high + 1), axis=1)[:, low : high + 1]
        since = around[:, :1]
        around = around - since
        # without the node itself two are left in the middle of an even number, and one of an odd
        # one
        others = around.sum(axis=1, keepdims=True) - np.clip(there - since, 0, around[:, -1:])
        late_ns[rows] = there - since - (others // 2 if nodes % 2 else others)
    return late_ns


def _medians(late_ns: Ints, by_node: list[tuple[Ints, Ints]], nodes: int) -> Ints:
    found = np.zeros(nodes, dtype=np.int64)
    for which, rows in by_node:
        found[which] = lower_median(late_ns[rows])
    return found


def _scatter_s(late_ns: Ints, by_node: list[tuple[Ints, Ints]], nodes: int) -> Floats:
    found = np.full(nodes, nan)
    for which, rows in by_node:
        if rows.shape[1] > 1:
            here = late_ns[rows]
            away_s = np.abs(here - lower_median(here)[:, None]) * _NS
            found[which] = _TO_SIGMA * np.median(away_s, axis=1)
    return found


def _unsure_s(scatter_s: Floats, counts: Ints) -> Floats:
    """By the node's own scatter and no less than by the middle node's: a few windows may lie close
    together by chance."""
    known = scatter_s[~np.isnan(scatter_s)]
    usual_s = float(np.median(known)) if len(known) else nan
    return np.where(
        counts > 0, _OF_MEDIAN * np.fmax(scatter_s, usual_s) / np.sqrt(np.maximum(counts, 1)), nan
    )
