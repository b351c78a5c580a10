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
from ckptcost.runs.tables import Key, Rows, Table, key_of


class _Times(NamedTuple):
    """Of the channels that have these rows of these tables."""

    rows: list[Rows]
    t_s: NDArray[np.float64]
    took_s: NDArray[np.float64]
    pick: NDArray[np.intp]
    """places in the values of all tables, one table behind the other"""


class Columns:
    """Readings of a node by channel. What is kept is used only while the tables' rows are what they
    were."""

    def __init__(self, tables: Sequence[tuple[Table, int]], origin_ns: int) -> None:
        """With what to add to each table's times."""
        self.tables, self.origin_ns = tables, origin_ns
        self._places: dict[Key, list[tuple[Table, int, int]]] = {}
        self._times: dict[int, _Times] = {}
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
        rows = [table.rows(index) for table, index, _ in found]
        times = self._times.get(id(rows[0]))
        if (
            times is None
            or len(times.rows) != len(rows)
            or any(a is not b for a, b in zip(times.rows, rows, strict=True))
        ):
            times = self._times[id(rows[0])] = _times(rows, found, self.origin_ns)
        values = np.concatenate([part for table, index, _ in found for part in table.values(index)])
        return Series(times.t_s, values[times.pick], times.took_s)


def _times(rows: list[Rows], found: Sequence[tuple[Table, int, int]], origin_ns: int) -> _Times:
    at = np.concatenate(
        [of.t_ns + ahead_ns for of, (_, _, ahead_ns) in zip(rows, found, strict=True)]
    )
    took = np.concatenate([of.took_ns for of in rows])
    sizes = [sum(of.size) for of in rows]
    before = np.cumsum([0, *sizes[:-1]])
    pick = np.concatenate(
        [of.pick + first for of, first in zip(rows, before.tolist(), strict=True)]
    )
    order = np.argsort(at, kind="stable")
    t_s, took_s = (at[order] - origin_ns) / 1e9, took[order] / 1e9
    for shared in (t_s, took_s):
        shared.flags.writeable = False
    return _Times(rows, t_s, took_s, pick[order])
