"""Columns of one meter while a run is being read: flat arrays of machine numbers, eight bytes a
value."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.core.channels import Channel, Series

_NAN = float("nan")
Key = tuple[str, ...]


def key_of(channel: Channel) -> Key:
    """What makes a channel of one part the same as one of the next; facts such as a tick may be
    known better by then."""
    return channel.domain, channel.quantity, channel.source, channel.scope


def _one(entry: Any) -> float:
    if entry is None:
        return _NAN
    if type(entry) is list:
        return _NAN if entry[0] is None else float(entry[0])
    return float(entry)


class Rows(NamedTuple):
    """Which readings of a table count, in order of time."""

    size: tuple[int, int]
    """ticks and summaries of the table at that time"""
    t_ns: NDArray[np.int64]
    took_ns: NDArray[np.int64]
    pick: NDArray[np.intp]
    """places in the ticks with the summaries behind them"""


class Table:
    """Ticks and summaries of one meter on one clock."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        self.channels = tuple(channels)
        self._width = len(self.channels)
        self._counters = tuple(channel.is_counter for channel in self.channels)
        self._ticks = array("q")
        """t, took, and when it was asked after t, by turns"""
        self._values = array("d")
        self._spans = array("q")
        """from, t, count, took by turns"""
        self._sums = array("d")
        self._back: dict[int, list[tuple[int, int]]] = {}
        """by channel: rows of counters whose last answer was so many ns before the row"""
        self._kept: dict[bool, Rows] = {}
        """of counters, and of gauges"""
        self._finite: dict[bool, tuple[Rows, NDArray[np.bool_]]] = {}

    def tick(self, t_ns: int, took_ns: int, row: Sequence[Any], begun_ns: int = 0) -> None:
        """A tick at `t_ns`, at which this meter was asked `begun_ns` later and had answered
        `took_ns` later."""
        try:
            numbers = array("d", row)
        except TypeError:
            numbers = array("d", map(_one, row))
        when = array("q", (t_ns, took_ns, begun_ns))  # raises before anything is added
        self._ticks.extend(when)
        self._values.extend(numbers)

    def second(
        self,
        from_ns: int,
        t_ns: int,
        count: int,
        took_ns: int,
        row: Sequence[Any],
        before_ns: int = 0,
    ) -> None:
        """`before_ns`: t_ns is so long before the time of the line, from which the entries
        count."""
        numbers = array("d", [entry if type(entry) is float else _one(entry) for entry in row])
        place = len(self._spans) // 4
        back = [
            (i, int(entry[1]) - before_ns)
            for i, entry in enumerate(row)
            if type(entry) is list and len(entry) == 2 and self._counters[i]
        ]
        when = array("q", (from_ns, t_ns, count, took_ns))
        self._spans.extend(when)
        self._sums.extend(numbers)
        for i, back_ns in back:
            self._back.setdefault(i, []).append((place, back_ns))

    def spans(self) -> NDArray[np.int64]:
        """First and last tick of everything that was read, unsorted."""
        ticks = np.frombuffer(self._ticks, np.int64).reshape(-1, 3)[:, :1]
        return np.concatenate(
            [
                np.repeat(ticks, 2, axis=1),
                np.frombuffer(self._spans, np.int64).reshape(-1, 4)[:, :2],
            ]
        )

    def rows(self, index: int) -> Rows:
        """Which readings count for a channel, in order; no second is there twice.

        Ticks win over the summary of their second where at least half of them are there; otherwise
        a gauge's mean wins, while every reading of a counter is as good as any other. It is the
        same for all counters and for all gauges of a table, unless a counter answered last before
        the end of a second, so it is kept until something is added.
        """
        counter = self._counters[index]
        back = self._back.get(index) if counter else None
        size = (len(self._ticks) // 3, len(self._spans) // 4)
        if back is not None:
            return self._rows_of(counter, size, back)
        kept = self._kept.get(counter)
        if kept is None or kept.size != size:
            kept = self._kept[counter] = self._rows_of(counter, size, ())
        return kept

    def _rows_of(
        self, counter: bool, size: tuple[int, int], back: Sequence[tuple[int, int]]
    ) -> Rows:
        ticks = np.frombuffer(self._ticks, np.int64).reshape(-1, 3)
        spans = np.frombuffer(self._spans, np.int64).reshape(-1, 4)
        pick = np.argsort(ticks[:, 0], kind="stable")
        at, took, begun = ticks[pick].T
        if len(spans):
            first, last = (
                np.searchsorted(at, spans[:, 0], "left"),
                np.searchsorted(at, spans[:, 1], "right"),
            )
            there = (last - first) * 2 >= spans[:, 2]
            alone = ~there | (spans[:, 2] == 0)
            if counter:
                when = spans[:, 1].copy()
                for row, back_ns in back:
                    when[row] -= back_ns
            else:
                when = (spans[:, 0] + spans[:, 1]) // 2
                doubled = np.zeros(len(at) + 1, np.int64)
                np.add.at(doubled, first[alone], 1)
                np.add.at(doubled, last[alone], -1)
                single = np.cumsum(doubled[:-1]) == 0
                at, took, begun, pick = at[single], took[single], begun[single], pick[single]
            at = np.concatenate([at + begun, when[alone]])
            took = np.concatenate([took - begun, spans[alone, 3]])
            pick = np.concatenate([pick, len(ticks) + np.flatnonzero(alone)])
        else:
            at, took = at + begun, took - begun
        at, unique = np.unique(at, return_index=True)
        return Rows(size, at, took[unique], pick[unique])

    def values(self, index: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """All that a channel said, ticks and summaries, as they came."""
        return (
            np.frombuffer(self._values, np.float64)[index :: self._width],
            np.frombuffer(self._sums, np.float64)[index :: self._width],
        )

    def column(
        self, index: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """Times, values and how long the answers took of one channel: those of its `rows`."""
        rows = self.rows(index)
        return rows.t_ns, np.concatenate(self.values(index))[rows.pick], rows.took_ns

    def answered(self, index: int) -> bool:
        """Whether there is a number among what counts for a channel; of all channels at once, as
        long as nothing is added."""
        rows = self.rows(index)
        if index in self._back and self._counters[index]:
            return bool(np.isfinite(np.concatenate(self.values(index))[rows.pick]).any())
        kept = self._finite.get(self._counters[index])
        if kept is None or kept[0] is not rows:
            ticks = rows.size[0]
            of_ticks, of_sums = rows.pick[rows.pick < ticks], rows.pick[rows.pick >= ticks] - ticks
            ticked = np.isfinite(np.frombuffer(self._values, np.float64)).reshape(-1, self._width)[
                of_ticks
            ]
            summed = np.isfinite(np.frombuffer(self._sums, np.float64)).reshape(-1, self._width)[
                of_sums
            ]
            seen: NDArray[np.bool_] = np.logical_or.reduce(np.concatenate([ticked, summed]))
            kept = self._finite[self._counters[index]] = (rows, seen)
        return bool(kept[1][index])


def joined(tables: Sequence[tuple[Table, int, int]], origin_ns: int) -> Series:
    """One channel from several tables: each with its column and what to add to its clock."""
    pieces = [
        (at + ahead_ns, value, took)
        for table, index, ahead_ns in tables
        for at, value, took in [table.column(index)]
    ]
    if not pieces:
        nothing = np.empty(0)
        return Series(nothing, nothing, nothing)
    at = np.concatenate([piece[0] for piece in pieces])
    order = np.argsort(at, kind="stable")
    value = np.concatenate([piece[1] for piece in pieces])[order]
    took = np.concatenate([piece[2] for piece in pieces])[order]
    return Series((at[order] - origin_ns) / 1e9, value, took / 1e9)
