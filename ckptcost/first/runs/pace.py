"""How often to ask: rarely at rest, often around every mark, because an edge lies between two
readings and the counter between two ticks.

Ticks lie on a lattice of the quick period's multiples from the first tick on, so that lateness
never adds up. Those between two ticks at rest are moved off it, each by another share of the
period.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ckptcost.first.runs.clocks import S
from ckptcost.first.runs.lines import Raw, Second, Values

SAFE = frozenset({"durable", "synced"})
"""marks after which a save that returned is over"""
GOLDEN = (5**0.5 - 1.0) / 2.0
ROUTINE = frozenset({"steps"})
"""marks of training itself, once a second: nobody looks closer for them"""


@dataclass(frozen=True, slots=True)
class Pace:
    """The settings; all are in a run's header."""

    rest_s: float = 0.2
    quick_s: float = 0.02
    off_beat: float = 0.75
    """quick ticks are moved by up to this share of their period: in step with a counter's own ticks
    they would see each of them from the same side, and its jitter not at all"""
    quick_for_s: float = 1.5
    """after each mark, and before one that is expected"""
    around_s: float = 2.0
    """single ticks are kept so long before and after every mark"""
    window_most_s: float = 7200.0
    """a window that never returns is given up after this"""
    drain_most_s: float = 600.0
    """one that returned, and of which nobody says when it was safe, after this"""
    retry_s: float = 10.0
    """a lost meter is tried again"""

    def __post_init__(self) -> None:
        if (
            not 0.001 <= self.quick_s <= self.rest_s <= 10.0
            or not 0.0 <= self.off_beat < 1.0
            or min(
                self.quick_for_s, self.around_s, self.window_most_s, self.drain_most_s, self.retry_s
            )
            < 0
        ):
            raise ValueError(
                "a pace asks every 1 ms to 10 s, quick no slower than at rest, and off the beat by"
                f" less than a period: {self}"
            )

    def settings(self) -> dict[str, float]:
        return asdict(self)


class Tempo:
    """What the pace is now."""

    def __init__(self, pace: Pace, origin_ns: int) -> None:
        self.pace = pace
        self.origin_ns = origin_ns
        self.quick_ns = round(pace.quick_s * S)
        self.rest_ns = max(1, round(pace.rest_s / pace.quick_s)) * self.quick_ns
        self.spacing_ns = self.quick_ns // 4
        """marks that come in crowds share a tick"""
        self.quick_until_ns = origin_ns
        self.keep_until_ns = origin_ns
        self.windows: dict[str, int] = {}
        """open ones, and until when they are believed to be"""
        self._marks: dict[str, set[str]] = {}

    def on_mark(self, name: str, window: str, t_ns: int) -> None:
        if name in ROUTINE:
            return
        self.quick_until_ns = max(self.quick_until_ns, t_ns + round(self.pace.quick_for_s * S))
        self.keep_until_ns = max(self.keep_until_ns, t_ns + round(self.pace.around_s * S))
        if name == "begin":
            self.windows[window] = t_ns + round(self.pace.window_most_s * S)
            self._marks[window] = set()
        elif window in self.windows:
            marks = self._marks[window]
            marks.add(name)
            if name == "end" or ("returned" in marks and marks & SAFE):
                self._close(window)
            elif name == "returned":
                self.windows[window] = t_ns + round(self.pace.drain_most_s * S)

    def _close(self, window: str) -> None:
        del self.windows[window], self._marks[window]

    def expect(self, until_ns: int) -> None:
        """A mark is going to come before then: be quick already."""
        self.quick_until_ns = max(self.quick_until_ns, until_ns)

    def abandoned(self, t_ns: int) -> list[str]:
        """Windows that never ended: given up, once."""
        gone = (
            [window for window, until_ns in self.windows.items() if t_ns > until_ns]
            if self.windows
            else []
        )
        for window in gone:
            self._close(window)
        return gone

    def keeping(self, t_ns: int) -> bool:
        return t_ns <= self.keep_until_ns or bool(self.windows)

    def next_ns(self, t_ns: int) -> int:
        """The first point of the lattice after t_ns."""
        step_ns = self.quick_ns if t_ns < self.quick_until_ns else self.rest_ns
        number = (t_ns - self.origin_ns) // step_ns
        if step_ns != self.rest_ns:
            at_ns = self._quick_ns(number)
            return at_ns if at_ns > t_ns else self._quick_ns(number + 1)
        return self.origin_ns + (number + 1) * step_ns

    def _quick_ns(self, number: int) -> int:
        """A quick tick, off the beat: multiples of the golden ratio leave no phase out for long."""
        at_ns = self.origin_ns + number * self.quick_ns
        if number * self.quick_ns % self.rest_ns == 0:
            return at_ns
        return at_ns + round(self.pace.off_beat * (number * GOLDEN % 1.0) * self.quick_ns)


# How often a source renews its value, as seen: published periods are wrong by driver and by board.


ENOUGH = 5
"""changes before anything is said"""
MOST = 500
"""changes after which nobody looks any more: this costs about 0.1 us a channel and tick"""


class Renewals:
    """Of one meter's channels."""

    __slots__ = ("_changed_ns", "_counts", "_last", "_last_ns", "_spans_ns", "_watching")

    def __init__(self, channels: int) -> None:
        self._last: Values | None = None
        self._last_ns = 0
        self._changed_ns: list[int] = [-1] * channels
        """when it changed last within this stretch; -1: not yet"""
        self._spans_ns = [0] * channels
        self._counts = [0] * channels
        self._watching = channels > 0

    def see(self, t_ns: int, values: Values, apart_ns: int) -> None:
        """A reading; further than apart_ns from the one before it begins a new stretch."""
        last, self._last = self._last, values
        gap_ns, self._last_ns = t_ns - self._last_ns, t_ns
        if not self._watching:
            return
        if last is None or gap_ns > apart_ns:
            self._changed_ns = [-1] * len(self._changed_ns)
            return
        changed = self._changed_ns
        for channel, (now, before) in enumerate(zip(values, last, strict=True)):
            if now != before:
                if now - before != now - before:  # NaN: it did not answer
                    changed[channel] = -1
                    continue
                if changed[channel] >= 0:
                    self._spans_ns[channel] += t_ns - changed[channel]
                    self._counts[channel] += 1
                changed[channel] = t_ns
        self._watching = max(self._counts) < MOST

    def periods_s(self) -> tuple[float, ...]:
        """Mean time between changes; NaN where there were too few."""
        return tuple(
            round(span / count * 1e-9, 6) if count >= ENOUGH else math.nan
            for span, count in zip(self._spans_ns, self._counts, strict=True)
        )


def differ(
    before: Sequence[Sequence[float]], now: Sequence[Sequence[float]], by: float = 0.1
) -> bool:
    """Is there something new to say?"""
    if not before:
        return any(math.isfinite(period) for of_meter in now for period in of_meter)
    return any(
        math.isfinite(new) and not abs(new - old) <= by * old
        for row, of_meter in zip(before, now, strict=True)
        for old, new in zip(row, of_meter, strict=True)
    )


# What is kept of the ticks: a summary of every second, and the single ticks themselves around
# marks and within windows.


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
        entries = [
            _counter(ticks, meter, channel, last.t_ns) if of_meter[channel] else _gauge(column)
            for channel, column in enumerate(zip(*asked, strict=True))
        ]
        values.append(entries if asked else None)
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
