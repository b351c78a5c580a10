"""Power over time from a counter that moves in steps: means of stretches, and between which bounds
each of them is.

A counter's total is known where it was renewed, not where it was asked: a poll sees a value that is
up to a tick old, and the growth between two polls over the time between them is a power that
nothing ever took. So the ticks are found first, on their lattice where there is one, and the total
goes straight from tick to tick. What a stretch took is the difference of two points of that curve:
the stretches add up to what the counter counted, and constant power stays constant as well as the
ticks' own times are known.

The range of a stretch holds both edges' ticks as early and as late as they may be, what power may
have done between the two ticks at an edge, judged by the ticks beside them, and every lag that the
counter may have. Ranges are worst cases: they are not shared out by chance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core import ticks
from ckptcost.first.core.channels import Series
from ckptcost.first.core.counters import LAGS, Counter
from ckptcost.first.core.edges import SLOW_S, SWING, TINY

Floats = NDArray[np.float64]

EACH: Final = 64
"""ticks that share one lattice: a period that drifts is constant so long ..."""
BESIDE: Final = 16
"""... and so many more on either side that make it sure"""
SHARP: Final = 0.01
"""ticks that polls alone tell to this share of a stretch need no lattice"""
LOOSE: Final = 0.04
"""how well the ticks at a stretch's edges must be known, as a share of it: one that is shorter is
not told"""
TICKS: Final = 2.0
"""a stretch holds so many ticks that were seen, lest a counter's steps look like power"""
MOST: Final = 0.9
"""share of the ticks, or of the polls, by which all of them are judged"""
SPARE: Final = 1.5
"""ticks come at least that often, in units of the period that is known"""
QUICK: Final = 16
"""polls that are the quickest ones, about ..."""
EVERY: Final = 0.95
"""... and the share of them that see a tick where every poll does"""
ENOUGH: Final = 5.0
"""ticks whose times are badly known are not waited for longer than so many of them: the range says
the rest"""
KNOWN: Final = 0.5
"""share of a stretch that must be known, lest its mean be of something else"""
NEAR: Final = 2
"""ticks on either side that tell what power may have been between two ..."""
AROUND: Final = 8
"""... and where they are far apart"""


class BinPiece(NamedTuple):
    """Ticks without a gap between them: the n-th is from `low_s` to `high_s`, best at `t_s`."""

    t_s: Floats
    low_s: Floats
    high_s: Floats
    total: Floats


class PowerBins(NamedTuple):
    """Mean watts of each stretch, and between which bounds; NaN where less than half of it is
    known."""

    watts: Floats
    low: Floats
    high: Floats


def pieces(counter: Counter, shortest_s: float) -> list[BinPiece]:
    """The ticks of a counter, looked at as closely as stretches of `shortest_s` need it."""
    starts = [0, *counter.breaks, len(counter.t_s)]
    found = []
    for start, stop in itertools.pairwise(starts):
        if stop - start > 1:
            part = slice(start, stop)
            found += _without(
                _ticks(
                    counter.t_s[part],
                    counter.took_s[part],
                    counter.total[part],
                    counter.tick_s,
                    shortest_s,
                ),
                counter,
            )
    return [piece for piece in found if len(piece.t_s) > 1]


def _ticks(
    t_s: Floats, took_s: Floats, total: Floats, tick_s: float | None, shortest_s: float
) -> BinPiece:
    all_ = ticks.polls(t_s, took_s, total)
    if tick_s == 0:
        return BinPiece(t_s + took_s / 2.0, t_s, t_s + took_s, total)
    low, high, counted = _recent(all_, tick_s), all_.high_s, total[all_.at]
    if len(low) == 0 or float(np.quantile(high - low, MOST)) <= SHARP * shortest_s:
        return _in_order((low + high) / 2.0, low, high, counted)
    first = np.arange(0, len(low), EACH)
    last = np.minimum(first + EACH, len(low))
    begin, end = np.maximum(first - BESIDE, 0), np.minimum(last + BESIDE, len(low))
    stretches = ticks.found_each(
        all_,
        took_s,
        all_.at[begin] - 1,
        np.append(all_.at, len(t_s))[end],
        (low[first] + high[last - 1]) / 2.0,
        tick_s=tick_s,
    )
    parts: list[BinPiece] = []
    for near, cut, skipped in zip(
        stretches, map(slice, first.tolist(), last.tolist()), (first - begin).tolist(), strict=True
    ):
        # the first of these is the tick before them, of which no poll tells when it was
        mine = slice(1 + skipped, 1 + skipped + cut.stop - cut.start)
        part = BinPiece(*(each[mine] for each in near[:4]))
        if near.kind == "every-poll":  # then polls alone tell
            part = part._replace(t_s=(low + high)[cut] / 2.0, low_s=low[cut], high_s=high[cut])
        parts.append(part)
    best, early, late, counted = (np.concatenate(part) for part in zip(*parts, strict=True))
    return _in_order(best, np.maximum(early, low), late, counted)


def _recent(all_: ticks.Polls, tick_s: float | None) -> Floats:
    """Since when each tick may have been there: since the poll before, or where polls are slower
    than ticks and saw one each time, since shortly before its own. A counter that moved at each of
    the quickest polls is renewed at least as often as those came.
    """
    spacing_s = np.diff(all_.t_s)
    if tick_s is None and len(spacing_s) > QUICK:
        quickest_s = float(np.partition(spacing_s, QUICK)[QUICK])
        quick = spacing_s <= SPARE * quickest_s
        tick_s = quickest_s if float(all_.moved[quick].mean()) >= EVERY else None
    if tick_s is None:
        return all_.low_s
    slow = spacing_s > SPARE * tick_s
    if not slow.any() or float(all_.moved[slow].mean()) < MOST:
        return all_.low_s
    return np.maximum(all_.low_s, all_.t_s[all_.at] - SPARE * tick_s)


def _in_order(t_s: Floats, low: Floats, high: Floats, total: Floats) -> BinPiece:
    """Ticks follow each other: what two lattices say of neighbours may cross."""
    low = np.maximum.accumulate(low)
    high = np.minimum.accumulate(high[::-1])[::-1]
    low, high = np.minimum(low, high), np.maximum(low, high)
    return BinPiece(np.maximum.accumulate(np.clip(t_s, low, high)), low, high, total)


def _without(piece: BinPiece, counter: Counter) -> list[BinPiece]:
    """Apart where the counter was stuck: of that time nothing is known."""
    cuts = [int(piece.t_s.searchsorted((gap.begin_s + gap.end_s) / 2.0)) for gap in counter.stuck]
    bounds = [0, *sorted({cut for cut in cuts if 0 < cut < len(piece.t_s)}), len(piece.t_s)]
    return [BinPiece(*(part[a:b] for part in piece)) for a, b in itertools.pairwise(bounds)]


def edges_of(
    found: Iterable[list[BinPiece]], begin_s: float, end_s: float, least_s: float
) -> Floats:
    """Where stretches begin and end: each at least `least_s` long, and so long that the ticks of
    every counter at both of its edges tell its mean. Around saves, where meters are asked quickly,
    stretches are short; elsewhere they are longer.
    """
    count = max(int((end_s - begin_s) / least_s * (1.0 + 1e-9)), 1)
    even = np.linspace(begin_s, end_s, count + 1)
    needed = np.full(count + 1, even[1] - even[0])
    for piece in itertools.chain.from_iterable(found):
        wide_s = piece.high_s - piece.low_s
        span_s, loose_s = np.diff(piece.t_s), np.maximum(wide_s[1:], wide_s[:-1]) / LOOSE
        needs = np.maximum(np.minimum(loose_s, ENOUGH * span_s), TICKS * span_s)
        span = np.clip(piece.t_s.searchsorted(even, side="right") - 1, 0, len(needs) - 1)
        reach_s = needs[[0, -1]]
        here = (even >= piece.t_s[0] - reach_s[0]) & (even <= piece.t_s[-1] + reach_s[1])
        needed = np.where(here, np.maximum(needed, needs[span]), needed)
    places, since = [0], 0
    at, need = even.tolist(), needed.tolist()
    for n in range(1, count):
        if at[n] - at[since] >= max(need[since], need[n]) * (1.0 - 1e-9):
            places.append(n)
            since = n
    if len(places) > 1 and at[count] - at[since] < max(need[since], need[count]) * (1.0 - 1e-9):
        places.pop()
    return even[[*places, count]]


def watts(
    found: list[BinPiece], edges: Floats, *, lag_s: float = 0.0, resolution: float = 0.0
) -> PowerBins:
    """Mean power between edges, which rise; over the part of each stretch that is known.

    >>> from ckptcost.first.core.channels import series
    >>> from ckptcost.first.core.counters import unwrap_counter
    >>> asked = [0.03 * k for k in range(400)]  # every 30 ms; renewed every 100 ms, 250 W
    >>> joules = [int(t / 0.1 + 1e-9) * 25.0 for t in asked]
    >>> meter = unwrap_counter(series(asked, joules), tick_s=0.1)
    >>> seen = watts(pieces(meter, 1.0), np.arange(1.0, 11.0))
    >>> (
    ...     bool(abs(seen.watts - 250.0).max() < 2.0),
    ...     bool((seen.low <= 250.0).all() and (seen.high >= 250.0).all()),
    ... )
    (True, True)
    """
    count = max(len(edges) - 1, 0)
    joules, low, high, known_s = (np.zeros(count) for _ in range(4))
    for piece in found:
        begins = np.clip(edges[:-1], piece.t_s[0], piece.t_s[-1])
        ends = np.clip(edges[1:], piece.t_s[0], piece.t_s[-1])
        part_s = ends - begins
        here = part_s > 0
        if not here.any():
            continue
        curves = _Curves.of(piece)
        value, least, most = curves.between(begins[here], ends[here])
        for n in range(1, LAGS if lag_s > 0 else 1):
            late_s = lag_s * n / (LAGS - 1)
            moved = [np.minimum(at + late_s, piece.t_s[-1]) for at in (begins[here], ends[here])]
            # beyond the last tick a later stretch would be a shorter one
            whole = moved[1] - moved[0] >= part_s[here] * (1.0 - 1e-9)
            _, lower, higher = curves.between(*moved)
            least = np.where(whole, np.minimum(least, lower), least)
            most = np.where(whole, np.maximum(most, higher), most)
        joules[here] += value
        low[here] += np.maximum(least - resolution, 0.0)
        high[here] += most + resolution
        known_s[here] += part_s[here]
    enough = known_s >= KNOWN * np.diff(edges)
    with np.errstate(invalid="ignore", divide="ignore"):
        return PowerBins(
            *(np.where(enough, part / known_s, math.nan) for part in (joules, low, high))
        )


class _Curves(NamedTuple):
    """A piece as three curves of the total, with the spans between its ticks."""

    piece: BinPiece
    span_s: Floats
    mean_w: Floats
    least_w: Floats
    most_w: Floats

    @classmethod
    def of(cls, piece: BinPiece) -> _Curves:
        span_s = np.maximum(np.diff(piece.t_s), TINY)
        grown = np.diff(piece.total)
        wide_s = piece.high_s - piece.low_s
        loose_s = np.hypot(wide_s[1:], wide_s[:-1]) / 2.0
        lower, upper = grown / (span_s + loose_s), grown / np.maximum(span_s - loose_s, TINY)
        mean_w = grown / span_s
        least_w, most_w = _beside(lower, np.minimum, NEAR), _beside(upper, np.maximum, NEAR)
        # a long span hides whole steps of training: what was seen farther around may have been in
        # it
        slow = span_s > SLOW_S
        if slow.any():
            least_w = np.where(slow, _beside(lower, np.minimum, AROUND), least_w)
            most_w = np.where(slow, _beside(upper, np.maximum, AROUND), most_w)
        # more or fewer joules than all of its neighbours: power went up or down and back within
        over, under = mean_w > most_w, mean_w < least_w
        with np.errstate(invalid="ignore"):
            low_w = np.where(
                over,
                np.maximum(most_w - SWING * (mean_w - most_w), 0.0),
                np.where(under, 0.0, least_w),
            )
            high_w = np.where(
                over, math.inf, np.where(under, least_w + SWING * (least_w - mean_w), most_w)
            )
        # one without neighbours is not judged by them
        blind = ~np.isfinite(least_w)
        return cls(
            piece, span_s, mean_w, np.where(blind, 0.0, low_w), np.where(blind, math.inf, high_w)
        )

    def between(self, begins: Floats, ends: Floats) -> tuple[Floats, Floats, Floats]:
        """Joules of stretches within the piece: best, least, most."""
        since, until = self._at(begins), self._at(ends)
        value = until[0] - since[0]
        return (
            value,
            np.maximum(np.minimum(until[1] - since[2], value), 0.0),
            np.maximum(until[2] - since[1], value),
        )

    def _at(self, t_s: Floats) -> tuple[Floats, Floats, Floats]:
        """The total at instants: best, least, most."""
        piece = self.piece
        value = np.interp(t_s, piece.t_s, piece.total)
        span = np.clip(piece.t_s.searchsorted(t_s, side="right") - 1, 0, len(self.span_s) - 1)
        before_s = np.clip(t_s - piece.t_s[span], 0.0, self.span_s[span])
        after_s = self.span_s[span] - before_s
        mean_w, least_w, most_w = self.mean_w[span], self.least_w[span], self.most_w[span]
        slow_w, quick_w = np.maximum(mean_w - least_w, 0.0), np.maximum(most_w - mean_w, 0.0)
        # a span that begins slowly ends quickly: what it lacks in the middle it makes up for
        below = np.minimum(slow_w * before_s, _times(quick_w, after_s))
        above = np.minimum(_times(quick_w, before_s), slow_w * after_s)
        low = np.interp(t_s, piece.high_s, piece.total) - below
        high = np.interp(t_s, piece.low_s, piece.total) + above
        # whatever power did: not less than at a tick that is surely over, not more than at one that
        # surely is not
        over = piece.high_s.searchsorted(t_s, side="right") - 1
        ahead = piece.low_s.searchsorted(t_s)
        low = np.maximum(low, piece.total[np.maximum(over, 0)])
        high = np.minimum(high, piece.total[np.minimum(ahead, len(piece.total) - 1)])
        return value, np.minimum(low, value), np.maximum(high, value)


def _times(power: Floats, span_s: Floats) -> Floats:
    """Nothing of anything is nothing."""
    return np.where(span_s > 0, power * np.maximum(span_s, TINY), 0.0)


def _beside(values: Floats, pick: np.ufunc, reach: int) -> Floats:
    """The least or the most of the neighbours on both sides, itself left out; NaN where there are
    none."""
    found = np.full(len(values), math.nan)
    outer = np.fmin if pick is np.minimum else np.fmax
    for away in range(1, min(reach, len(values) - 1) + 1):
        found[away:] = outer(found[away:], values[:-away])
        found[:-away] = outer(found[:-away], values[away:])
    return found


def gauge_bins(
    readings: Series, edges: Floats, *, averaging_s: float = 0.0, resolution: float = 0.0
) -> PowerBins:
    """The same of a gauge of watts: the mean of what it said in each stretch.

    A sample may be off by half of what it differs from the next, such errors add as squares, and a
    sample that is a mean over a time may carry a part of that across an edge.

    >>> from ckptcost.first.core.channels import series
    >>> seen = gauge_bins(
    ...     series([0.0, 0.5, 1.0, 1.5], [100.0, 100.0, 300.0, 300.0]),
    ...     np.array([0.0, 1.0, 2.0, 3.0]),
    ... )
    >>> seen.watts.tolist()
    [100.0, 300.0, nan]
    """
    count = max(len(edges) - 1, 0)
    known = np.isfinite(readings.value)
    t_s, value = readings.t_s[known], readings.value[known]
    stretch = np.searchsorted(edges, t_s, side="right") - 1
    inside = (stretch >= 0) & (stretch < count)
    where, samples = stretch[inside], value[inside]
    number = np.bincount(where, minlength=count)
    swing = np.abs(np.diff(value, append=value[-1:]))[inside]
    loose = np.sqrt(np.bincount(where, swing * swing, count)) / 2.0
    least, most = np.full(count, math.inf), np.full(count, -math.inf)
    np.minimum.at(least, where, samples)
    np.maximum.at(most, where, samples)
    around_low, around_high = _with_next(least, np.minimum), _with_next(most, np.maximum)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.bincount(where, samples, count) / number
        carried = (around_high - around_low) * np.minimum(averaging_s / np.diff(edges), 1.0)
        off = 2.0 * loose / number + carried + resolution / 2.0
    return PowerBins(means, np.maximum(means - off, 0.0), means + off)


def _with_next(values: Floats, pick: np.ufunc) -> Floats:
    """With the stretches beside it."""
    found = values.copy()
    found[1:] = pick(found[1:], values[:-1])
    found[:-1] = pick(found[:-1], values[1:])
    return found
