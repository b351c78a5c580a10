"""What is kept of the ticks: a summary of every second, and the single ticks themselves around
marks and within windows.

The second is the unit: its ticks are kept all or none, so that a reader never mixes part of a
second with its mean.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ckptcost.runs.clocks import S
from ckptcost.runs.lines import Raw, Second

Kinds = tuple[tuple[bool, ...], ...]
"""by meter and channel: is it a counter"""


def _counter(ticks: Sequence[Raw], meter: int, channel: int, last_ns: int) -> Any:
    for tick in reversed(ticks):
        row = tick.values[meter]
        if row is not None and math.isfinite(row[channel]):
            back_ns = last_ns - tick.t_ns
            return [row[channel], back_ns] if back_ns else row[channel]
    return None


def _gauge(column: Sequence[float]) -> Any:
    total = sum(column)
    if not math.isfinite(total):
        column = [value for value in column if math.isfinite(value)]
        if not column:
            return None
        total = sum(column)
    low, high = min(column), max(column)
    if low == high:
        return low
    return [
        float(f"{total / len(column):.9g}"),
        low,
        high,
        len(column),
    ]  # a mean of some readings has no more digits than that


def _when(ticks: Sequence[Raw], meter: int) -> int | tuple[int, int, int]:
    asked_ns = [tick.t_ns for tick in ticks if tick.values[meter] is not None]
    last_ns = ticks[-1].t_ns
    return (len(asked_ns), last_ns - asked_ns[0], last_ns - asked_ns[-1]) if asked_ns else 0


def summarise(ticks: Sequence[Raw], kinds: Kinds) -> Second:
    """The summary of a second's ticks.

    >>> both = ((True, False),)
    >>> summarise([Raw(0, (9,), ((5.0, 100.0),)), Raw(200, (7,), ((6.5, 300.0),))], both)
    Second(from_ns=0, t_ns=200, counts=(2,), took_ns=(9,),
           values=([6.5, [200.0, 100.0, 300.0, 2]],))
    """
    last = ticks[-1]
    counts: list[int | tuple[int, int, int]] = []
    took: list[int] = []
    values: list[list[Any] | None] = []
    for meter, of_meter in enumerate(kinds):
        rows = [tick.values[meter] for tick in ticks]
        asked = [row for row in rows if row is not None]
        counts.append(
            len(asked) if rows[0] is not None and rows[-1] is not None else _when(ticks, meter)
        )
        took.append(max(tick.took_ns[meter] for tick in ticks))
        if not asked:
            values.append(None)
            continue
        newest = rows[-1]
        entries: list[Any] = []
        for channel, column in enumerate(zip(*asked, strict=True)):
            if not of_meter[channel]:
                entries.append(_gauge(column))
            elif newest is not None and math.isfinite(newest[channel]):
                entries.append(newest[channel])
            else:
                entries.append(_counter(ticks, meter, channel, last.t_ns))
        values.append(entries)
    return Second(ticks[0].t_ns, last.t_ns, tuple(counts), tuple(took), tuple(values))


class _Bucket:
    __slots__ = ("end_ns", "kept", "ticks")

    def __init__(self, end_ns: int, kept: bool) -> None:
        self.end_ns = end_ns
        self.kept = kept
        self.ticks: list[Raw] = []


class Thinner:
    """Takes ticks, gives summaries and kept ticks to `put`. In memory are the seconds that a mark
    may still call back."""

    def __init__(
        self, kinds: Kinds, put: Callable[[Raw | Second], None], origin_ns: int, around_s: float
    ) -> None:
        self._kinds, self._put = kinds, put
        self._origin_ns, self._around_ns = origin_ns, round(around_s * S)
        self._ring: deque[_Bucket] = deque()
        self._now = _Bucket(origin_ns, False)

    def add(self, tick: Raw, keep: bool) -> None:
        bucket = self._now
        if tick.t_ns >= bucket.end_ns:
            self._close()
            end_ns = self._origin_ns + ((tick.t_ns - self._origin_ns) // S + 1) * S
            bucket = self._now = _Bucket(end_ns, keep)
        bucket.ticks.append(tick)
        if bucket.kept:
            self._put(tick)

    def keep_since(self, t_ns: int) -> None:
        """A mark at t_ns: the seconds before it that reach into what is to be kept, the current one
        among them."""
        for bucket in (*self._ring, self._now):
            if not bucket.kept and bucket.end_ns > t_ns - self._around_ns:
                bucket.kept = True
                for tick in bucket.ticks:
                    self._put(tick)

    def _close(self) -> None:
        bucket = self._now
        if bucket.ticks:
            self._put(summarise(bucket.ticks, self._kinds))
            self._ring.append(bucket)
            while self._ring and self._ring[0].end_ns <= bucket.end_ns - self._around_ns - S:
                self._ring.popleft()

    def close(self) -> None:
        self._close()
        self._now = _Bucket(self._now.end_ns, False)

    def held(self) -> int:
        """Ticks in memory."""
        return len(self._now.ticks) + sum(len(bucket.ticks) for bucket in self._ring)
