"""Joules of a window, from a counter that moves in steps: what it says at the window's edges, and
between which bounds.

What a counter had counted at an instant follows from the ticks around it (`edges`). The ticks
around all instants of a stretch are found once (`Counter.around`), and the edges of many windows
are judged in one pass.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core import ticks
from ckptcost.first.core.channels import Series
from ckptcost.first.core.edges import (
    EMPTY,
    FEW,
    REASONS,
    STANDS,
    STUCK,
    TINY,
    Around,
    Edge,
    EdgeReadings,
    Edges,
    around,
    edges,
)

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

MOST_AROUND: Final = 64
"""stretches whose ticks are kept"""
AT_ONCE: Final = 1024
"""windows judged in one pass: more take more memory and are no quicker"""
NEAR_S: Final = 3.0
NEAR: Final = 384
"""what is looked at on either side of an edge, seconds and readings: enough ticks for a lattice,
few enough to be quick"""
BESIDE: Final = 6
"""moves on either side of an edge that are looked at in any case"""
CAUGHT_UP: Final = 0.1
"""of what is usual in the time it stood still: with more than that in the next move, the counter
had gone on counting"""
LAGS: Final = 5
"""how many lags are tried between none and the most that a counter may have"""

RESET, WRAPS, IMPLAUSIBLE = "reset", "maybe-more-than-one-wrap", "implausible"
"""why a number is missing, or less than it seems"""
_REASONS: Final = ("", RESET, IMPLAUSIBLE, WRAPS)


class CounterGap(NamedTuple):
    """A span whose joules are not known."""

    begin_s: float
    end_s: float
    reason: str


class CountedAmount(NamedTuple):
    """What was used in a window: an estimate, and an interval that ought to hold the truth. NaN is
    not known."""

    value: float
    low: float
    high: float
    coverage: float
    """share of the window that is not in gaps: value, low and high are of this part and are not
    scaled up"""
    ticks: int
    """points known inside the window"""
    gaps: tuple[CounterGap, ...]
    short: bool
    """fewer than five such points: the edges are most of the answer"""
    resolved_s: float
    """distance of these points, the measured period where there is one"""
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Counter:
    """A counter without its wraps: what it counted since the first reading. Readings without an
    answer are left out."""

    t_s: Floats
    took_s: Floats
    total: Floats
    moves: NDArray[np.intp]
    """readings that saw another value than the one before"""
    gaps: tuple[CounterGap, ...] = ()
    """where nothing is counted, because nothing is known"""
    breaks: tuple[int, ...] = ()
    """the first reading after each gap"""
    stuck: tuple[CounterGap, ...] = ()
    """where it answered, did not move, and did not catch up afterwards: nothing is known of this
    time"""
    stood: tuple[CounterGap, ...] = ()
    """where it did not move and caught up: the joules are there, when they were used is not
    known"""
    tick_s: float | None = None
    resolution: float = 0.0
    most_per_s: float = math.nan
    lag_s: float = 0.0
    """what it shows had been counted at most so long before"""
    _around: dict[tuple[float, float], Around] = field(default_factory=dict, repr=False)
    """the ticks of stretches that were asked for last, by stretch and by gaps before it"""

    def energy(self, begin_s: float, end_s: float) -> CountedAmount:
        """What was counted from `begin_s` to `end_s`. A gap inside counts nothing and shows in the
        coverage."""
        return self.energies([begin_s], [end_s])[0]

    def energies(self, begins_s: Sequence[float], ends_s: Sequence[float]) -> list[CountedAmount]:
        """The same of many windows, of which those that are near each other are best asked for
        together."""
        begin, end = (np.asarray(part, dtype=np.float64) for part in (begins_s, ends_s))
        if not (begin <= end).all():
            wrong = int(np.flatnonzero(~(begin <= end))[0])
            raise ValueError(f"no window from {begins_s[wrong]} to {ends_s[wrong]}")
        return [
            amount
            for place in range(0, len(begin), AT_ONCE)
            for amount in self._amounts(
                begin[place : place + AT_ONCE], end[place : place + AT_ONCE]
            )
        ]

    def _amounts(self, begin_s: Floats, end_s: Floats) -> list[CountedAmount]:
        windows = list(zip(begin_s.tolist(), end_s.tolist(), strict=True))
        lost = [_both(self.gaps, self.stuck, *window) for window in windows]
        gapped = np.array([bool(gaps) for gaps in lost])
        span_s = end_s - begin_s
        # a row a window; its begin and end, each for itself and then for every lag that the counter
        # may have
        lags_s = np.array(
            [0.0, *(self.lag_s * n / (LAGS - 1) for n in range(LAGS if self.lag_s > 0 else 0))]
        )
        own_s = np.stack([begin_s, end_s], axis=1)
        at = self._edges_of(own_s[:, :, None] + lags_s, own_s, (span_s < NEAR_S) & ~gapped)
        value_of, low_of, high_of = (
            part.reshape(-1, 2, len(lags_s)) for part in (at.value, at.low, at.high)
        )
        seen = value_of[:, 1] - value_of[:, 0]
        lows, highs = low_of[:, 1] - high_of[:, 0], high_of[:, 1] - low_of[:, 0]
        value, low, high = seen[:, 0], lows[:, 0], highs[:, 0]
        if self.lag_s > 0:
            low, high = _late(seen, lows, highs)
        low, high = (
            np.where(low < self.resolution, 0.0, low - self.resolution),
            high + self.resolution,
        )
        nothing = span_s == 0
        value, low, high = (np.where(nothing, 0.0 * value, part) for part in (value, low, high))
        resolved = at.resolved_s.reshape(-1, 2, len(lags_s))[:, :, 0]
        first_s, last_s = resolved[:, 0], resolved[:, 1]
        resolved_s = np.where(
            first_s != first_s, last_s, np.where(last_s > first_s, last_s, first_s)
        )
        reason = at.reason.reshape(-1, 2, len(lags_s))[:, :, 0].tolist()
        counts = self._counts(begin_s, end_s)
        told = zip(
            windows,
            lost,
            value.tolist(),
            low.tolist(),
            high.tolist(),
            counts.tolist(),
            resolved_s.tolist(),
            reason,
            strict=True,
        )
        return [self._amount(*each) for each in told]

    def _amount(
        self,
        window: tuple[float, float],
        gaps: tuple[CounterGap, ...],
        value: float,
        low: float,
        high: float,
        count: int,
        resolved_s: float,
        codes: tuple[int, int],
    ) -> CountedAmount:
        begin_s, end_s = window
        span_s, coverage = end_s - begin_s, 1.0
        if gaps and span_s > 0:
            coverage = 1.0 - _lost_s(gaps, begin_s, end_s) / span_s
        if span_s > 0 and (coverage <= 0 or value != value):
            value = coverage = math.nan
        stood = _overlapping(self.stood, begin_s, end_s) if self.stood else ()
        reasons = [REASONS[code] for code in codes if code]
        reasons += [gap.reason for gap in (*gaps, *stood)]
        return CountedAmount(
            value,
            low,
            high,
            coverage,
            count,
            gaps,
            count < FEW,
            resolved_s,
            tuple(dict.fromkeys(reasons)),
        )

    def _counts(self, begin_s: Floats, end_s: Floats) -> Places:
        """Points known inside each window."""
        first, stop = self.t_s.searchsorted(begin_s), self.t_s.searchsorted(end_s)
        if self.tick_s != 0:
            first, stop = self.moves.searchsorted(first), self.moves.searchsorted(stop)
        counts: Places = stop - first
        return counts

    def edge(self, t_s: float, points: ticks.Ticks | None = None) -> Edge:
        """The total at one instant, from the ticks around it, or from these."""
        if points is None:
            own_s = np.array([[t_s, t_s]])
            at = self._edges_of(own_s[:, :, None], own_s, np.array([False]))
        else:
            at = edges(around([points]), np.zeros(1, np.intp), np.array([t_s]), self._readings)
        value, low, high, resolved_s, code = (part[0].item() for part in at)
        return Edge(value, low, high, resolved_s, REASONS[code])

    def _edges_of(self, t_s: Floats, own_s: Floats, together: NDArray[np.bool_]) -> Edges:
        """The totals at `t_s`: a row a window, in it its two edges, each followed by the later
        instants that may belong to it.

        The edges of a short window without a gap are judged by the same ticks, those of a longer
        one each by its own.
        """
        shape, flat = t_s.shape, t_s.ravel()
        if len(self.t_s) == 0:
            none = np.full(len(flat), np.nan)
            code = np.full(len(flat), REASONS.index(EMPTY), dtype=np.int8)
            return Edges(none, none, none, none, code)
        # from where to where the ticks that an instant is judged by are looked for
        since_s = np.broadcast_to(
            np.where(together[:, None], own_s[:, :1], own_s)[:, :, None], shape
        )
        until_s = np.where(together[:, None], own_s[:, 1:], own_s)[:, :, None]
        until_s = np.broadcast_to(until_s, shape)
        if shape[2] > 1:  # all later instants of a longer window's edge share their ticks ...
            late = ~together[:, None, None] & (np.arange(shape[2]) > 0)
            until_s = np.where(late, until_s + self.lag_s, until_s)
            if self.gaps:  # ... but where a gap lies between, where each has its own
                cut = self._gapped(own_s.ravel(), own_s.ravel() + self.lag_s + TINY)
                apart = late & cut.reshape(own_s.shape)[:, :, None]
                since_s, until_s = np.where(apart, t_s, since_s), np.where(apart, t_s, until_s)
        spans = np.stack([since_s.ravel(), until_s.ravel()], axis=1)
        both, which = np.unique(spans, axis=0, return_inverse=True)
        found = edges(self.around(both), which.ravel(), flat, self._readings)
        if self.gaps:
            after = self._gap_begins.searchsorted(flat, side="right") - 1
            inside = np.flatnonzero((after >= 0) & (flat < self._gap_ends[np.maximum(after, 0)]))
            total = self.total[np.array(self.breaks, dtype=np.intp)[after[inside]]]
            for part in found[:3]:
                part[inside] = total
            found.resolved_s[inside], found.reason[inside] = np.nan, 0
        return found

    def _gapped(self, begin_s: Floats, end_s: Floats) -> NDArray[np.bool_]:
        """Whether a gap lies in each span."""
        last = self._gap_begins.searchsorted(end_s) - 1
        found: NDArray[np.bool_] = (last >= 0) & (self._gap_ends[np.maximum(last, 0)] > begin_s)
        return found

    @cached_property
    def _gap_begins(self) -> Floats:
        return np.array([gap.begin_s for gap in self.gaps], dtype=np.float64)

    @cached_property
    def _gap_ends(self) -> Floats:
        return np.array([gap.end_s for gap in self.gaps], dtype=np.float64)

    @cached_property
    def _readings(self) -> EdgeReadings:
        return EdgeReadings(self.t_s, self.took_s, self.most_per_s)

    def around(self, spans: Floats) -> list[Around]:
        """The ticks around the begin and the end of each span, which several instants are judged
        by."""
        keys = [(begin_s, end_s) for begin_s, end_s in spans.tolist()]
        found = {key: self._around[key] for key in keys if key in self._around}
        new = [key for key in keys if key not in found]
        if new:
            found |= zip(new, around(self._near(np.array(new))), strict=True)
            self._around.update((key, found[key]) for key in new[-MOST_AROUND:])
            for key in list(self._around)[:-MOST_AROUND]:
                del self._around[key]
        return [found[key] for key in keys]

    def curve(self, t_s: Floats) -> Floats:
        """The total at many instants, straight between ticks: a rough answer at once. NaN outside
        the ticks around them."""
        if len(self.t_s) == 0 or len(t_s) == 0:
            return np.full(len(t_s), np.nan)
        begin_s, end_s = float(t_s[0]), float(t_s[-1])
        points = self.around(np.array([[begin_s, end_s]]))[0].points
        if len(points.t_s) < 2:
            return np.full(len(t_s), np.nan)
        return np.interp(t_s, points.t_s, points.total, left=np.nan, right=np.nan)

    def _near(self, spans: Floats) -> list[ticks.Ticks]:
        """The ticks around both ends of each span, without those beyond a gap."""
        begin_s, end_s = spans.T
        first, last = self.t_s.searchsorted(begin_s), self.t_s.searchsorted(end_s)
        start = np.minimum(self.t_s.searchsorted(begin_s - NEAR_S), first - NEAR)
        stop = np.maximum(self.t_s.searchsorted(end_s + NEAR_S), last + NEAR)
        if len(self.moves):
            # a counter that moves once in minutes: as many moves as an edge is judged by
            at, until = self.moves.searchsorted(first), self.moves.searchsorted(last)
            start = np.minimum(start, self.moves[np.maximum(at - BESIDE, 0)] - 1)
            until = np.minimum(until + BESIDE, len(self.moves) - 1)
            stop = np.maximum(stop, self.moves[until] + 1)
        piece = self._gap_begins.searchsorted(begin_s, side="right")
        bounds = np.array([0, *self.breaks, len(self.t_s)], dtype=np.intp)
        return ticks.found_each(
            self._polls,
            self.took_s,
            np.maximum(start, bounds[piece]),
            np.minimum(stop, bounds[piece + 1]),
            (begin_s + end_s) / 2.0,
            tick_s=self.tick_s,
        )

    @cached_property
    def _polls(self) -> ticks.Polls:
        return ticks.polls(self.t_s, self.took_s, self.total)


def _begin(gap: CounterGap) -> float:
    return gap.begin_s


def _overlapping(
    gaps: tuple[CounterGap, ...], begin_s: float, end_s: float
) -> tuple[CounterGap, ...]:
    stop = bisect.bisect_left(gaps, end_s, key=_begin)
    first = max(bisect.bisect_right(gaps, begin_s, key=_begin) - 1, 0)
    return tuple(gap for gap in gaps[first:stop] if gap.end_s > begin_s)


def _lost_s(gaps: tuple[CounterGap, ...], begin_s: float, end_s: float) -> float:
    """How much of the window lies in gaps, which are in order and may overlap."""
    lost_s, until_s = 0.0, begin_s
    for gap in gaps:
        lost_s += max(min(gap.end_s, end_s) - max(gap.begin_s, until_s), 0.0)
        until_s = max(until_s, gap.end_s)
    return lost_s


def _both(
    gaps: tuple[CounterGap, ...], stuck: tuple[CounterGap, ...], begin_s: float, end_s: float
) -> tuple[CounterGap, ...]:
    """Of both kinds those in a window, in order."""
    if not gaps and not stuck:
        return ()
    return tuple(
        sorted([*_overlapping(gaps, begin_s, end_s), *_overlapping(stuck, begin_s, end_s)])
    )


def _late(seen: Floats, lows: Floats, highs: Floats) -> tuple[Floats, Floats]:
    """The interval for every lag up to the most, a column a lag after one without: a counter that
    is late by L shows the window where the next one of its length is, L later, with both of its
    edges.

    Between two lags that are tried there may be a valley or a peak: it is where power steps at both
    edges, and as deep as half of what changes from one to the next.
    """
    low, high = lows[:, 0], highs[:, 0]
    for n in range(1, lows.shape[1]):  # what a lag does not know narrows nothing and widens nothing
        low = np.where(lows[:, n] < low, lows[:, n], low)
        high = np.where(highs[:, n] > high, highs[:, n], high)
    steps = np.abs(np.diff(seen[:, 1:], axis=1))
    between = np.where(steps == steps, steps, 0.0).max(axis=1, initial=0.0) / 2.0
    return low - between, high + between


def unwrap_counter(
    series: Series,
    wraps_at: float | None = None,
    *,
    tick_s: float | None = None,
    resolution: float | None = None,
    most_per_s: float | None = None,
    lag_s: float = 0.0,
) -> Counter:
    """A counter that never falls out of readings that do. `tick_s` is how often the source renews
    it (0: at once), `resolution` its smallest step, `most_per_s` what it can count in a second at
    most; it is what tells a wrap from a reset, and one wrap from two. `lag_s`: its values are up to
    so old when they are published.
    """
    t_s, value, took_s = (
        np.asarray(part, dtype=np.float64) for part in (series.t_s, series.value, series.took_s)
    )
    if not np.all(t_s[1:] >= t_s[:-1]):
        raise ValueError("readings are not in the order of their times")
    answered = np.isfinite(value) & (value >= 0)
    if not answered.all():
        t_s, value, took_s = t_s[answered], value[answered], took_s[answered]
    more = np.diff(value, prepend=value[:1])
    fell = more < 0
    if wraps_at:
        more = np.where(fell, more + wraps_at, more)
    moved = more != 0
    count = np.arange(len(t_s))
    # the tick before the one that is seen now came after the reading before the one that first saw
    # it
    earlier = np.maximum.accumulate(np.where(moved, count, 0))[np.maximum(count - 1, 0)]
    first_s = 1.0 if tick_s is None else 1.5 * tick_s
    since_s = np.where(earlier > 0, t_s[np.maximum(earlier - 1, 0)], t_s[:1] - first_s)
    most_per_s = most_per_s or math.nan  # not known: nothing is more, and nothing less
    room = most_per_s * (t_s + took_s - since_s)
    codes = np.where(more < 0, 1, 0)  # places in _REASONS: texts take numpy ten times as long
    codes = np.where((codes == 0) & (more > room), np.where(fell, 1, 2), codes)
    if wraps_at:
        codes = np.where((codes == 0) & (more + wraps_at <= room) & (count > 0), 3, codes)
    breaks = np.flatnonzero(codes)
    since = breaks - 1 if tick_s == 0 else earlier[breaks]
    reasons = [_REASONS[code] for code in codes[breaks].tolist()]
    gaps = map(CounterGap, t_s[since].tolist(), (t_s + took_s)[breaks].tolist(), reasons)
    moves = np.flatnonzero(moved)
    return Counter(
        t_s,
        took_s,
        np.cumsum(np.where(codes, 0.0, more)),
        moves,
        tuple(gaps),
        tuple(breaks.tolist()),
        *_stuck(t_s, moves, more, tick_s),
        tick_s,
        resolution or 0.0,
        most_per_s,
        lag_s,
    )


def _stuck(
    t_s: Floats, moves: NDArray[np.intp], more: Floats, tick_s: float | None
) -> tuple[tuple[CounterGap, ...], tuple[CounterGap, ...]]:
    """Where a counter stood still for much longer than it does between its moves: without catching
    up in the move after, and with."""
    if tick_s == 0 or len(moves) < FEW:
        return (), ()
    since, counted = t_s[moves], np.zeros(len(moves))
    usual_s = ticks.median((since[1:] - since[:-1])[:: 1 + len(moves) // 4096])
    until = np.empty(len(moves))
    until[:-1], until[-1] = t_s[moves[1:] - 1], t_s[-1]
    grown = more[moves]
    counted[:-1] = grown[1:]
    usual_per_s = ticks.median(grown) / max(usual_s, TINY)
    still, lost = (
        until - since > STUCK * usual_s,
        counted < CAUGHT_UP * usual_per_s * (until - since),
    )
    never, later = (
        tuple(CounterGap(float(since[k]), float(until[k]), STANDS) for k in which.nonzero()[0])
        for which in (still & lost, still & ~lost)
    )
    return never, later


def energy(
    series: Series,
    begin_s: float,
    end_s: float,
    *,
    wraps_at: float | None = None,
    tick_s: float | None = None,
    resolution: float | None = None,
    most_per_s: float | None = None,
) -> CountedAmount:
    """One window of a series: only readings from shortly before to shortly after it are looked at.
    For many windows, or long ones, `unwrapped` once and ask that.

    >>> from ckptcost.first.core.channels import series
    >>> at = [k / 100 for k in range(400)]  # polled every 10 ms, renewed every 100 ms, 250 W
    >>> meter = series(at, [k // 10 * 25.0 for k in range(400)])
    >>> joules = energy(meter, 1.234, 2.234)
    >>> (
    ...     round(joules.value, 1),
    ...     joules.low <= 250.0 <= joules.high,
    ...     round(joules.resolved_s, 3),
    ...     joules.ticks,
    ... )
    (250.0, True, 0.1, 10)
    """
    first, last, low, high = np.searchsorted(
        series.t_s, [begin_s, end_s, begin_s - NEAR_S, end_s + NEAR_S]
    ).tolist()
    start, stop = max(min(low, first - NEAR), 0), max(high, last + NEAR)
    while start > 0 and not _moves(series.value[start:first]):
        start = max(start - 3 * (first - start), 0)
    while stop < len(series.t_s) and not _moves(series.value[last:stop]):
        stop += 3 * (stop - last)
    near = Series(series.t_s[start:stop], series.value[start:stop], series.took_s[start:stop])
    return unwrap_counter(
        near, wraps_at, tick_s=tick_s, resolution=resolution, most_per_s=most_per_s
    ).energy(begin_s, end_s)


def _moves(value: Floats) -> bool:
    """Whether an edge can be judged by what moves here."""
    return int(np.count_nonzero(np.diff(value))) > BESIDE
