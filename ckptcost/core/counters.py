"""Joules of a window, from a counter that moves in steps: what it says at the window's edges, and
between which bounds.

An edge lies between two ticks, and the counter does not say how the joules between them are spread.
If power goes one way from P1 (mean of the tick before) to P2 (the tick after), the total at the
edge lies between two curves through both ticks: the straight line, and the one step from P1 to P2.
A stall begins and ends with such a step, and there the line is wrong by up to f*(1-f)*D*(P1-P2),
always to the same side; on a slope the step is wrong. The estimate weighs the two by how much of
the change of power nearby happens in this one tick. The interval holds both curves, and what is not
known of the ticks' own times.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.core import ticks
from ckptcost.core.channels import Series

Floats = NDArray[np.float64]

MOST_EDGES: Final = 10_000
FEW: Final = 5
"""a window with fewer ticks is flagged as short"""
NEAR_S: Final = 3.0
NEAR: Final = 384
"""what is looked at on either side of an edge, seconds and readings: enough ticks for a lattice,
few enough to be quick"""
BESIDE: Final = 6
"""moves on either side of an edge that are looked at in any case"""
SLOW_S: Final = 0.15
"""ticks further apart hide parts of a training step: next to them power may be all that was seen
nearby on its side"""
ONE_WAY: Final = 6.0
"""between ticks further apart, in periods, power may go up and down again: only its range nearby is
believed"""
CAUGHT_UP: Final = 0.1
"""of what is usual in the time it stood still: with more than that in the next move, the counter
had gone on counting"""
STUCK: Final = 20.0
"""a counter that answers and does not move for so many of its usual distances between moves is
stuck"""
SWING: Final = 2.0
"""joules in a tick that its neighbours' powers do not explain: how far power may have swung back,
in units of their mean power"""

SIGMAS: Final = 1.0
"""how much scatter of power within a tick the interval holds"""
TINY: Final = 1e-9
"""seconds that two ticks are apart at least, lest power be infinite"""

LAGS: Final = 5
"""how many lags are tried between none and the most that a counter may have"""

BEFORE, AFTER, NOT_YET, EMPTY = "before-first-tick", "after-last-tick", "not-yet", "no-readings"
RESET, WRAPS, IMPLAUSIBLE, STANDS = "reset", "maybe-more-than-one-wrap", "implausible", "stuck"
"""why a number is missing, or less than it seems"""
_REASONS: Final = ("", RESET, IMPLAUSIBLE, WRAPS)


class Gap(NamedTuple):
    """A span whose joules are not known."""

    begin_s: float
    end_s: float
    reason: str


class Roughness(NamedTuple):
    points: ticks.Ticks
    watts: float


class Amount(NamedTuple):
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
    gaps: tuple[Gap, ...]
    short: bool
    """fewer than five such points: the edges are most of the answer"""
    resolved_s: float
    """distance of these points, the measured period where there is one"""
    reasons: tuple[str, ...] = ()


class Edge(NamedTuple):
    """The total at one instant."""

    value: float
    low: float
    high: float
    resolved_s: float = math.nan
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Counter:
    """A counter without its wraps: what it counted since the first reading. Readings without an
    answer are left out."""

    t_s: Floats
    took_s: Floats
    total: Floats
    moves: NDArray[np.intp]
    """readings that saw another value than the one before"""
    gaps: tuple[Gap, ...] = ()
    """where nothing is counted, because nothing is known"""
    breaks: tuple[int, ...] = ()
    """the first reading after each gap"""
    stuck: tuple[Gap, ...] = ()
    """where it answered, did not move, and did not catch up afterwards: nothing is known of this
    time"""
    stood: tuple[Gap, ...] = ()
    """where it did not move and caught up: the joules are there, when they were used is not
    known"""
    tick_s: float | None = None
    resolution: float = 0.0
    most_per_s: float = math.nan
    lag_s: float = 0.0
    """what it shows had been counted at most so long before"""
    _edges: dict[float, Edge] = field(default_factory=dict, repr=False)
    """those asked for before: windows, phases and bins share theirs, and one takes 0.4 ms"""
    _rough: list[Roughness] = field(default_factory=list, repr=False)
    """of the ticks that were looked at last: both edges of a window, with every lag, are judged by
    the same"""

    def energy(self, begin_s: float, end_s: float) -> Amount:
        """What was counted from `begin_s` to `end_s`. A gap inside counts nothing and shows in the
        coverage."""
        if not begin_s <= end_s:
            raise ValueError(f"no window from {begin_s} to {end_s}")
        span_s = end_s - begin_s
        gaps = tuple(
            sorted(
                [
                    *_overlapping(self.gaps, begin_s, end_s),
                    *_overlapping(self.stuck, begin_s, end_s),
                ]
            )
        )
        points = self._near(begin_s, end_s) if span_s < NEAR_S and not gaps else None
        begin, end = self.edge(begin_s, points), self.edge(end_s, points)
        told = (*gaps, *_overlapping(self.stood, begin_s, end_s))
        reasons = dict.fromkeys(
            [*(edge.reason for edge in (begin, end) if edge.reason), *(gap.reason for gap in told)]
        )
        value, low, high = end.value - begin.value, end.low - begin.high, end.high - begin.low
        if self.lag_s > 0:
            low, high = self._late(begin_s, end_s, points, low, high)
        low, high = max(low - self.resolution, 0.0), high + self.resolution
        coverage = 1.0 - _lost_s(gaps, begin_s, end_s) / span_s if span_s > 0 else 1.0
        if span_s == 0:
            value = low = high = 0.0 * value
        elif coverage <= 0 or value != value:
            value = coverage = math.nan
        first, stop = self.t_s.searchsorted((begin_s, end_s)).tolist()
        if self.tick_s != 0:
            first, stop = self.moves.searchsorted((first, stop)).tolist()
        count = stop - first
        resolved_s = (
            max(begin.resolved_s, end.resolved_s)
            if begin.resolved_s == begin.resolved_s
            else end.resolved_s
        )
        return Amount(
            value, low, high, coverage, count, gaps, count < FEW, resolved_s, tuple(reasons)
        )

    def _late(
        self, begin_s: float, end_s: float, points: ticks.Ticks | None, low: float, high: float
    ) -> tuple[float, float]:
        """The interval for every lag up to the most: a counter that is late by L shows the window
        where the next one of its length is, L later, with both of its edges.

        Between two lags that are tried there may be a valley or a peak: it is where power steps at
        both edges, and as deep as half of what changes from one to the next.
        """
        seen: list[float] = []
        at_begin, at_end = (points or self._near_late(t_s) for t_s in (begin_s, end_s))
        for n in range(LAGS):
            late_s = self.lag_s * n / (LAGS - 1)
            begin, end = self.edge(begin_s + late_s, at_begin), self.edge(end_s + late_s, at_end)
            low, high = min(low, end.low - begin.high), max(high, end.high - begin.low)
            seen.append(end.value - begin.value)
        steps = [abs(b - a) for a, b in pairwise(seen)]
        between = max([step for step in steps if step == step], default=0.0) / 2.0
        return low - between, high + between

    def roughness(self, points: ticks.Ticks) -> float:
        """How much power scatters from tick to tick."""
        if not self._rough or self._rough[0].points is not points:
            self._rough[:] = [Roughness(points, _roughness(points))]
        return self._rough[0].watts

    def _near_late(self, t_s: float) -> ticks.Ticks | None:
        """The ticks around an instant and all that may belong to it by the counter's lag; None
        where a gap lies there."""
        if _overlapping(self.gaps, t_s, t_s + self.lag_s + TINY):
            return None
        return self._near(t_s, t_s + self.lag_s)

    def edge(self, t_s: float, points: ticks.Ticks | None = None) -> Edge:
        """The total at one instant, from the ticks around it."""
        if len(self.t_s) == 0:
            return Edge(math.nan, math.nan, math.nan, reason=EMPTY)
        after = bisect.bisect_right(self.gaps, t_s, key=_begin) - 1
        if after >= 0 and t_s < self.gaps[after].end_s:
            at = float(self.total[self.breaks[after]])
            return Edge(at, at, at)
        if points is not None:
            return _edge(points, t_s, self)
        if t_s not in self._edges:
            if len(self._edges) >= MOST_EDGES:
                self._edges.clear()
            self._edges[t_s] = _edge(self._near(t_s, t_s), t_s, self)
        return self._edges[t_s]

    def curve(self, t_s: Floats) -> Floats:
        """The total at many instants, straight between ticks: a rough answer at once. NaN outside
        the ticks around them."""
        if len(self.t_s) == 0 or len(t_s) == 0:
            return np.full(len(t_s), np.nan)
        points = self._near(float(t_s[0]), float(t_s[-1]))
        if len(points.t_s) < 2:
            return np.full(len(t_s), np.nan)
        return np.interp(t_s, points.t_s, points.total, left=np.nan, right=np.nan)

    def _near(self, begin_s: float, end_s: float) -> ticks.Ticks:
        """The ticks around both, without those beyond a gap."""
        first, last, low, high = self.t_s.searchsorted(
            (begin_s, end_s, begin_s - NEAR_S, end_s + NEAR_S)
        ).tolist()
        start, stop = min(low, first - NEAR), max(high, last + NEAR)
        if len(self.moves):
            # a counter that moves once in minutes: as many moves as an edge is judged by
            at, until = self.moves.searchsorted((first, last)).tolist()
            start = min(start, int(self.moves[max(at - BESIDE, 0)]) - 1)
            stop = max(stop, int(self.moves[min(until + BESIDE, len(self.moves) - 1)]) + 1)
        piece = bisect.bisect_right(self.gaps, begin_s, key=_begin)
        start = max(start, self.breaks[piece - 1] if piece else 0)
        stop = min(stop, self.breaks[piece]) if piece < len(self.breaks) else stop
        stop = min(stop, len(self.t_s))
        return ticks.found_in(
            self._polls,
            self.took_s,
            start,
            stop,
            tick_s=self.tick_s,
            near_s=(begin_s + end_s) / 2.0,
        )

    @cached_property
    def _polls(self) -> ticks.Polls:
        return ticks.polls(self.t_s, self.took_s, self.total)


def _begin(gap: Gap) -> float:
    return gap.begin_s


def _overlapping(gaps: tuple[Gap, ...], begin_s: float, end_s: float) -> tuple[Gap, ...]:
    stop = bisect.bisect_left(gaps, end_s, key=_begin)
    first = max(bisect.bisect_right(gaps, begin_s, key=_begin) - 1, 0)
    return tuple(gap for gap in gaps[first:stop] if gap.end_s > begin_s)


def _lost_s(gaps: tuple[Gap, ...], begin_s: float, end_s: float) -> float:
    """How much of the window lies in gaps, which are in order and may overlap."""
    lost_s, until_s = 0.0, begin_s
    for gap in gaps:
        lost_s += max(min(gap.end_s, end_s) - max(gap.begin_s, until_s), 0.0)
        until_s = max(until_s, gap.end_s)
    return lost_s


def _edge(points: ticks.Ticks, t_s: float, counter: Counter) -> Edge:
    """The total at `t_s` between two ticks; outside them no number, only the side that the counter
    itself bounds."""
    count = len(points.t_s)
    spacing_s = (
        points.period_s
        if points.kind == "lattice" or count < 2
        else ticks.median(points.t_s[1:] - points.t_s[:-1])
    )
    if t_s < points.high_s[0]:
        first = float(points.total[0])
        return Edge(
            math.nan,
            first - counter.most_per_s * (float(points.high_s[0]) - t_s),
            first,
            spacing_s,
            BEFORE,
        )
    if count < 2 or t_s > points.low_s[-1]:
        last, since_s = float(points.total[-1]), t_s - float(points.low_s[-1])
        asked_s = min(t_s, float(counter.t_s[-1])) - float(points.t_s[-1])
        stands = asked_s > STUCK * spacing_s or (count < 2 and asked_s > 0)
        reason = STANDS if stands else NOT_YET if since_s <= spacing_s else AFTER
        return Edge(math.nan, last, last + counter.most_per_s * since_s, spacing_s, reason)
    after = int(points.t_s.searchsorted(t_s, side="right"))
    cut = slice(max(after - 4, 0), after + 4)
    near = _Near(*(part[cut].tolist() for part in points[:4]))
    here = min(max(after - 1 - cut.start, 0), len(near.at) - 2)
    value, low, high = _curves(
        near, here, t_s, points, spacing_s, cut.start + here, counter.roughness(points)
    )
    # no instant is known better than by the call that told it
    asked = int(counter.t_s.searchsorted(t_s))
    call_s = float(counter.took_s[max(asked - 1, 0) : asked + 1].max(initial=0.0))
    told = near.power(here)[1] * call_s / 2.0
    low, high = min(low, value - told), max(high, value + told)
    # whatever power did: not less than at the last tick that is surely over, not more than at the
    # first that surely is not
    low = max([low, *(v for v, until in zip(near.total, near.high, strict=True) if until <= t_s)])
    high = min([high, *(v for v, since in zip(near.total, near.low, strict=True) if since >= t_s)])
    low, high = min(low, high), max(low, high)
    return Edge(min(max(value, low), high), low, high, spacing_s)


class _Near(NamedTuple):
    """The ticks next to an edge."""

    at: list[float]
    low: list[float]
    high: list[float]
    total: list[float]

    def power(self, k: int) -> tuple[float, float, float]:
        """Mean power between tick k and the next: at least, about, at most, by what is known of the
        ticks' times."""
        joules, span_s = self.total[k + 1] - self.total[k], max(self.at[k + 1] - self.at[k], TINY)
        loose_s = math.hypot(self.high[k] - self.low[k], self.high[k + 1] - self.low[k + 1]) / 2.0
        return joules / (span_s + loose_s), joules / span_s, joules / max(span_s - loose_s, TINY)


def _curves(
    near: _Near,
    here: int,
    t_s: float,
    points: ticks.Ticks,
    spacing_s: float,
    place: int,
    rough_w: float,
) -> tuple[float, float, float]:
    """Estimate, lowest and highest total at `t_s`, which is between tick `here` and the next;
    `place` is its number in `points`."""
    at, total = near.at, near.total
    start, stop, span_s, x = (
        total[here],
        total[here + 1],
        max(at[here + 1] - at[here], TINY),
        t_s - at[here],
    )
    share, mean = x / span_s, (stop - start) / span_s
    value = line = start + mean * x
    if here == 0 or here + 2 >= len(at):
        return line, start, stop
    (low1, before, high1), (low2, after, high2) = near.power(here - 1), near.power(here + 1)
    if max(span_s, at[here] - at[here - 1], at[here + 2] - at[here + 1]) > SLOW_S:
        nearby = np.diff(points.total) / np.maximum(np.diff(points.t_s), TINY)
        earlier, later = nearby[:place], nearby[place + 1 :]
        low1, high1 = min(low1, float(earlier.min())), max(high1, float(earlier.max()))
        low2, high2 = min(low2, float(later.min())), max(high2, float(later.max()))
    least, most, rises, falls = min(low1, low2), max(high1, high2), high1 < low2, high2 < low1
    if span_s > ONE_WAY * spacing_s:
        rises = falls = False
    elif min(before, after) < mean < max(before, after):
        step_s = (stop - start - after * span_s) / (before - after)
        step = start + (before * x if x < step_s else before * step_s + after * (x - step_s))
        beyond = abs(before - near.power(here - 2)[1]) if here >= 2 else 0.0
        beyond += abs(near.power(here + 2)[1] - after) if here + 3 < len(at) else 0.0
        value += (step - line) * abs(before - after) / (abs(before - after) + beyond)
    if mean > most or mean < least:
        # more or fewer joules than both neighbours: power went up and back, or down and back, at
        # some time within
        if mean > most:
            least, most = max(most - SWING * (mean - most), 0.0), (stop - start) / TINY
        else:
            least, most = 0.0, least + SWING * (least - mean)
        rises = falls = False
    # the two ticks as early or as late as they may be: power stays between its bounds from the one,
    # and up to the other
    a_low, a_high, b_low, b_high = (
        near.low[here],
        near.high[here],
        near.low[here + 1],
        near.high[here + 1],
    )
    first, last = (low1, high2) if rises else (least, most)
    low = max(start + _from(t_s - a_high, first, most), stop - _from(b_high - t_s, last, least))
    first, last = (high1, low2) if falls else (most, least)
    high = min(start + _from(t_s - a_low, first, least), stop - _from(b_low - t_s, last, most))
    # ... and where it goes one way, the line bounds it on the other side
    late = (1.0 - share) * (a_high - at[here]) + share * (b_high - at[here + 1])
    soon = (1.0 - share) * (at[here] - a_low) + share * (at[here + 1] - b_low)
    low = line - most * late if falls else min(low, line)
    high = line + most * soon if rises else max(high, line)
    if falls:
        low = min(low, start + low1 * x, stop - high2 * (span_s - x))
    if rises:
        high = max(high, start + high1 * x, stop - low2 * (span_s - x))
    loose = SIGMAS * rough_w * span_s * math.sqrt(max(share * (1.0 - share), 0.0))
    return value, min(low, value) - loose, max(high, value) + loose


def _roughness(points: ticks.Ticks) -> float:
    """How much power scatters from tick to tick: where the means of ticks do, power within a tick
    does so too, and a walk with independent steps strays from the line by this times the square
    root of f*(1-f). What the ticks' own times add is taken off.
    """
    span_s = np.maximum(points.t_s[1:] - points.t_s[:-1], TINY)
    power = (points.total[1:] - points.total[:-1]) / span_s
    if len(power) < FEW:
        return 0.0
    seen = ticks.median(np.abs(power[2:] - 2.0 * power[1:-1] + power[:-2])) / ticks.MEDIAN_OF_SECOND
    timing = (
        ticks.median(power)
        / ticks.median(span_s)
        * ticks.median(points.high_s - points.low_s)
        / math.sqrt(12.0)
    )
    return math.sqrt(max(seen * seen - 10.0 / 3.0 * timing * timing, 0.0))


def _from(span_s: float, power: float, back: float) -> float:
    """Joules in a span, which is negative where a tick may lie beyond the edge."""
    return power * span_s if span_s >= 0 else back * span_s


def unwrapped(
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
    if len(t_s) > 1 and not bool(np.all(t_s[1:] >= t_s[:-1])):
        raise ValueError("readings are not in the order of their times")
    answered = np.isfinite(value) & (value >= 0)
    if not answered.all():
        t_s, value, took_s = t_s[answered], value[answered], took_s[answered]
    more = np.diff(value, prepend=value[:1])
    fell = more < 0
    if wraps_at:
        more = np.where(fell, more + wraps_at, more)
    bad = more < 0
    moved = more != 0
    codes = np.where(bad, 1, 0)  # places in _REASONS: texts take numpy ten times as long
    count = np.arange(len(t_s))
    # the tick before the one that is seen now came after the reading before the one that first saw
    # it
    earlier = np.maximum.accumulate(np.where(moved, count, 0))[np.maximum(count - 1, 0)]
    if most_per_s:
        first_s = 0.0 if tick_s == 0 else 1.5 * tick_s if tick_s else 1.0
        since_s = np.where(earlier > 0, t_s[np.maximum(earlier - 1, 0)], t_s[:1] - first_s)
        room = most_per_s * (t_s + took_s - since_s)
        codes = np.where(~bad & (more > room), np.where(fell, 1, 2), codes)
        if wraps_at:
            codes = np.where((codes == 0) & (more + wraps_at <= room) & (count > 0), 3, codes)
        bad = codes != 0
    breaks = np.flatnonzero(bad)
    since = breaks - 1 if tick_s == 0 else earlier[breaks]
    reasons = [_REASONS[code] for code in codes[breaks].tolist()]
    gaps = tuple(
        Gap(*gap)
        for gap in zip(t_s[since].tolist(), (t_s + took_s)[breaks].tolist(), reasons, strict=True)
    )
    moves = np.flatnonzero(moved)
    return Counter(
        t_s,
        took_s,
        np.cumsum(np.where(bad, 0.0, more)),
        moves,
        gaps,
        tuple(breaks.tolist()),
        *_stuck(t_s, moves, more, tick_s),
        tick_s,
        resolution or 0.0,
        most_per_s or math.nan,
        lag_s,
    )


def _stuck(
    t_s: Floats, moves: NDArray[np.intp], more: Floats, tick_s: float | None
) -> tuple[tuple[Gap, ...], tuple[Gap, ...]]:
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
        tuple(Gap(float(since[k]), float(until[k]), STANDS) for k in which.nonzero()[0])
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
) -> Amount:
    """One window of a series: only readings from shortly before to shortly after it are looked at.
    For many windows, or long ones, `unwrapped` once and ask that.

    >>> from ckptcost.core.channels import series
    >>> at = [k / 100 for k in range(400)]                               # polled every 10 ms, renewed every 100 ms, 250 W
    >>> meter = series(at, [k // 10 * 25.0 for k in range(400)])
    >>> joules = energy(meter, 1.234, 2.234)
    >>> round(joules.value, 1), joules.low <= 250.0 <= joules.high, round(joules.resolved_s, 3), joules.ticks
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
    return unwrapped(
        near, wraps_at, tick_s=tick_s, resolution=resolution, most_per_s=most_per_s
    ).energy(begin_s, end_s)


def _moves(value: Floats) -> bool:
    """Whether an edge can be judged by what moves here."""
    return int(np.count_nonzero(np.diff(value))) > BESIDE
