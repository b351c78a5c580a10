"""Which row of which node belongs to which save: the same run, label and direction, and the same
time round where a label comes again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.fleet.node_day import Rows

Ints = NDArray[np.int64]

_AGAIN: Final = -7046029254386353131
"""times how many saves of a label were there before, this tells them apart: 2**64 over the golden
ratio, odd"""
APART_NS: Final = 300 * 10**9
"""rows of one save are not so far from each other: clocks are not, or their files do not count"""


def places_of(nodes: Sequence[Rows]) -> tuple[Ints, int]:
    """Of one run: the place of the window of each row, nodes one after another, and how many
    windows there are.

    Nearly all nodes have the same saves in the same order. Each such sequence is looked at once, so
    that places cost little more than putting the rows one after another. Labels that come again,
    such as `last.ckpt`, are told apart by their time.

    >>> one = {
    ...     "key": np.array([7, 8, 7]),
    ...     "load": np.array([False, False, True]),
    ...     "begin_ns": np.array([0, 1, 2]),
    ... }
    >>> window, windows = places_of([one, {name: values[:2] for name, values in one.items()}])
    >>> windows, bool((window[:2] == window[3:]).all()), len(set(window[:3].tolist()))
    (3, True, 3)
    """
    if not nodes:
        return np.zeros(0, dtype=np.int64), 0
    sequences: dict[bytes, int] = {}
    distinct: list[Ints] = []
    which: list[int] = []
    for rows in nodes:
        names = names_of(rows)
        place = sequences.setdefault(names.tobytes(), len(distinct))
        if place == len(distinct):
            distinct.append(names)
        which.append(place)
    again = _repeated_names(distinct)
    if len(again):
        return _by_time(nodes, again)
    known, inverse = np.unique(np.concatenate(distinct), return_inverse=True)
    pieces = np.split(
        inverse.astype(np.int64, copy=False), np.cumsum([len(names) for names in distinct])[:-1]
    )
    return np.concatenate([pieces[place] for place in which]), len(known)


def names_of(rows: Mapping[str, Any]) -> Ints:
    """A number for the label and the direction."""
    found: Ints = np.where(rows["load"], ~rows["key"], rows["key"])
    return found


def _repeated_names(distinct: Sequence[Ints]) -> Ints:
    """Names that any node has more than once."""
    found = [np.zeros(0, dtype=np.int64)]
    for names in distinct:
        known, counts = np.unique(names, return_counts=True)
        found.append(known[counts > 1])
    return np.unique(np.concatenate(found))


def _by_time(nodes: Sequence[Rows], again: Ints) -> tuple[Ints, int]:
    names = np.concatenate([names_of(rows) for rows in nodes])
    begin_ns = np.concatenate([rows["begin_ns"] for rows in nodes])
    node = np.repeat(np.arange(len(nodes), dtype=np.int64), [len(rows["key"]) for rows in nodes])
    rows = np.flatnonzero(np.isin(names, again))
    names[rows] += again_of(names[rows], node[rows], begin_ns[rows]) * np.int64(_AGAIN)
    known, window = np.unique(names, return_inverse=True)
    return window.astype(np.int64, copy=False), len(known)


def again_of(name: Ints, node: Ints, begin_ns: Ints) -> Ints:
    """For each row, which of the saves of its name it belongs to: rows are of one save until a
    pause of half the time that lies between two saves of a node, or until a node comes that has
    been there. So a node that lacks one shifts no other.

    >>> S = 10**9
    >>> again_of(
    ...     np.zeros(5, np.int64),
    ...     np.array([0, 0, 0, 1, 1]),
    ...     np.array([0, 600 * S, 1200 * S, 601 * S, 1201 * S]),
    ... ).tolist()
    [0, 1, 2, 1, 2]
    """
    _, name = np.unique(name, return_inverse=True)
    pause_ns = _pauses(name, node, begin_ns)
    order = np.lexsort((node, begin_ns, name))
    ordered, begins = name[order], begin_ns[order]
    new = np.r_[True, (ordered[1:] != ordered[:-1]) | (np.diff(begins) > pause_ns[ordered[1:]])]
    new[_there_before(np.cumsum(new), node[order])] = True
    save = np.empty(len(name), dtype=np.int64)
    save[order] = np.cumsum(new)
    # numbered within the name
    first = np.full(int(name.max(initial=0)) + 1, len(save) + 1, dtype=np.int64)
    np.minimum.at(first, name, save)
    found: Ints = save - first[name]
    return found


def _there_before(cluster: Ints, node: Ints) -> list[int]:
    """Places, by time, at which a node comes that its save has already. Only clusters that have a
    node twice are gone through."""
    pairs = cluster * (int(node.max(initial=0)) + 1) + node
    known, counts = np.unique(pairs, return_counts=True)
    odd = np.unique(known[counts > 1] // (int(node.max(initial=0)) + 1))
    found = []
    here: set[int] = set()
    at = -1
    for place in np.flatnonzero(np.isin(cluster, odd)).tolist():
        if cluster[place] != at:
            at, here = int(cluster[place]), set()
        elif int(node[place]) in here:
            found.append(place)
            here = set()
        here.add(int(node[place]))
    return found


def _pauses(name: Ints, node: Ints, begin_ns: Ints) -> Ints:
    """By name: half of a short time between two of a node (a quarter of all are shorter), and never
    more than APART_NS."""
    order = np.lexsort((begin_ns, node, name))
    names, nodes = name[order], node[order]
    gaps = np.diff(begin_ns[order])
    same = (names[1:] == names[:-1]) & (nodes[1:] == nodes[:-1])
    found = np.full(int(name.max(initial=0)) + 1, APART_NS, dtype=np.int64)
    of, gaps = names[1:][same], gaps[same]
    by_size = np.lexsort((gaps, of))
    of, gaps = of[by_size], gaps[by_size]
    known, starts, counts = np.unique(of, return_index=True, return_counts=True)
    found[known] = np.minimum(gaps[starts + (counts - 1) // 4] // 2, APART_NS)
    return found
