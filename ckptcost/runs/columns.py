"""Channels out of many tables: where each stands, and at what times. Worked out once for all
channels that have the same times.

A node with 256 GPUs has 1,500 channels in a few dozen tables; to look through all of them for each
would be quadratic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.core.channels import Channel, Series
from ckptcost.runs.tables import Key, Readings, key_of

MOST_KEPT = 200_000
"""times that are kept for the next channel that has them; those of the last one always are"""


class _Times(NamedTuple):
    """Of the channels that have these rows of these tables."""

    t_s: NDArray[np.float64]
    took_s: NDArray[np.float64]
    pick: NDArray[np.intp]
    """places in the values of all tables, one table behind the other"""


class Columns:
    """Readings of a node by channel. What is kept is used only while the tables' rows are what they
    were."""

    def __init__(self, tables: Sequence[tuple[Readings, int]], origin_ns: int) -> None:
        """With what to add to each table's times."""
        self.tables, self.origin_ns = tables, origin_ns
        self._places: dict[Key, list[tuple[Readings, int, int]]] = {}
        self._times: dict[tuple[object, ...], _Times] = {}
        keys_of: dict[
            int, list[Key]
        ] = {}  # tables of one meter have the same channels; they hold them, so ids stay theirs
        for table, ahead_ns in tables:
            keys = keys_of.get(id(table.channels))
            if keys is None:
                keys = keys_of[id(table.channels)] = [key_of(channel) for channel in table.channels]
            for index, key in enumerate(keys):
                self._places.setdefault(key, []).append((table, index, ahead_ns))

    def has(self, channel: Channel) -> bool:
        return key_of(channel) in self._places

    def answered(self, channel: Channel) -> bool:
        """Whether its series has a number."""
        return any(table.answered(index) for table, index, _ in self._places[key_of(channel)])

    def series(self, channel: Channel) -> Series:
        """All readings by time, in seconds. Channels with the same times share their arrays, which
        nobody may write."""
        found = self._places[key_of(channel)]
        version = tuple(table.version(index) for table, index, _ in found)
        times = self._times.get(version)
        if times is None:
            kept = sum(len(one.t_s) for one in self._times.values())
            if kept > MOST_KEPT:
                self._times.clear()
            times = self._times[version] = _times(found, self.origin_ns)
        values = np.concatenate([part for table, index, _ in found for part in table.values(index)])
        return Series(times.t_s, values[times.pick], times.took_s)


def _times(found: Sequence[tuple[Readings, int, int]], origin_ns: int) -> _Times:
    at, took, pick, before = [], [], [], 0
    for table, index, ahead_ns in found:
        rows = table.rows(index)
        at.append(rows.t_ns + ahead_ns)
        took.append(rows.took_ns)
        pick.append(rows.pick + before)
        before += sum(table.size)
    at_ns, took_ns, places = (np.concatenate(part) for part in (at, took, pick))
    if not (at_ns[1:] >= at_ns[:-1]).all():
        order = np.argsort(at_ns, kind="stable")
        at_ns, took_ns, places = at_ns[order], took_ns[order], places[order]
    t_s, took_s = (at_ns - origin_ns) / 1e9, took_ns / 1e9
    for shared in (t_s, took_s):
        shared.flags.writeable = False
    return _Times(t_s, took_s, places)
