"""Which row of which node belongs to which save: the same run, label and direction, and the same time round where a label comes again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ckptcost.fleet.kept.node_day import Rows

Ints = NDArray[np.int64]

_AGAIN: Final = -7046029254386353131
"""times how often a label was there before, this tells the saves of one label apart: 2**64 over the golden ratio, odd"""


def places_of(nodes: Sequence[Rows]) -> tuple[Ints, int]:
    """Of one run: the place of the window of each row, nodes one after another, and how many windows there are.

    Nearly all nodes have the same saves in the same order. Each such sequence is looked at once, so that places cost little more than
    putting the rows one after another.

    >>> one = {"key": np.array([7, 8, 7]), "load": np.array([False, False, True]), "begin_ns": np.array([0, 1, 2])}
    >>> window, windows = places_of([one, {name: values[:2] for name, values in one.items()}])
    >>> windows, bool((window[:2] == window[3:]).all()), len(set(window[:3].tolist()))
    (3, True, 3)
    """
    sequences: dict[bytes, int] = {}
    distinct: list[Ints] = []
    which: list[int] = []
    repeats: list[bool] = []
    for rows in nodes:
        names = names_of(rows)
        raw = names.tobytes()
        place = sequences.get(raw)
        if place is not None and repeats[place]:
            names = _told_apart(names, rows["begin_ns"])
            raw = names.tobytes()
            place = sequences.get(raw)
        elif place is None and len(np.unique(names)) < len(names):
            # remembered, so that the next node with this sequence is told apart by its own begins, too
            sequences[raw] = len(distinct)
            distinct.append(names[:0])
            repeats.append(True)
            names = _told_apart(names, rows["begin_ns"])
            raw = names.tobytes()
            place = sequences.get(raw)
        if place is None:
            place = sequences[raw] = len(distinct)
            distinct.append(names)
            repeats.append(False)
        which.append(place)
    if not which:
        return np.zeros(0, dtype=np.int64), 0
    known, inverse = np.unique(np.concatenate(distinct), return_inverse=True)
    pieces = np.split(inverse.astype(np.int64, copy=False), np.cumsum([len(names) for names in distinct])[:-1])
    return np.concatenate([pieces[place] for place in which]), len(known)


def names_of(rows: Mapping[str, Any]) -> Ints:
    """A number for the label and the direction."""
    found: Ints = np.where(rows["load"], ~rows["key"], rows["key"])
    return found


def _told_apart(names: Ints, begin_ns: Ints) -> Ints:
    order = np.lexsort((begin_ns, names))
    ordered = names[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    before = np.arange(len(names)) - np.repeat(starts, np.diff(np.r_[starts, len(names)]))
    found = names.copy()
    found[order] += before * np.int64(_AGAIN)
    return found
