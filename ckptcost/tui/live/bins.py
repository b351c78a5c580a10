"""A bounded past of several curves: means with the least and the most, in bins of 0.2 s, 1 s and 10
s."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
WIDTHS_S = (0.2, 1.0, 10.0)
"""each a whole multiple of the one before"""
KEPT = (3_000, 7_200, 8_640)
"""bins: 10 minutes, 2 hours, a day"""
LATE_S = 3.0
"""a wider bin is made when its time is over for so long"""
MOST_POINTS = 900
"""of one curve; more than a screen has dots"""


class Stretch(NamedTuple):
    """Part of the past. Rows of the arrays are curves."""

    t_s: Floats
    """middles of the bins"""
    mean: Floats
    low: Floats
    high: Floats


class _Level:
    def __init__(self, curves: int, width_s: float, kept: int) -> None:
        self.width_s, self.kept = width_s, kept
        self.sum = np.zeros((curves, kept))
        self.count = np.zeros((curves, kept))
        self.low = np.full((curves, kept), np.nan)
        self.high = np.full((curves, kept), np.nan)
        self.last = -1
        """number of the newest bin; bin 0 begins at 0 s"""

    def reach(self, bin_: int) -> None:
        """The newest bin is this one: those passed over are empty."""
        if self.last < 0:
            self.last = bin_ - 1
        new = min(bin_ - self.last, self.kept)
        if new <= 0:
            return
        slots = np.arange(bin_ - new + 1, bin_ + 1) % self.kept
        self.sum[:, slots] = self.count[:, slots] = 0.0
        self.low[:, slots] = self.high[:, slots] = np.nan
        self.last = bin_

    def put(self, bin_: int, total: Floats, count: Floats, low: Floats, high: Floats) -> None:
        if bin_ <= self.last - self.kept:
            return
        slot = bin_ % self.kept
        self.sum[:, slot] += total
        self.count[:, slot] += count
        self.low[:, slot] = np.fmin(self.low[:, slot], low)
        self.high[:, slot] = np.fmax(self.high[:, slot], high)

    def taken(self, first: int, end: int) -> tuple[Floats, Floats, Floats]:
        """Mean, low and high of bins [first, end); NaN where there was nothing."""
        first = max(first, self.last - self.kept + 1, 0)
        slots = np.arange(first, max(end, first)) % self.kept
        with np.errstate(invalid="ignore"):
            mean = self.sum[:, slots] / self.count[:, slots]
        return mean, self.low[:, slots], self.high[:, slots]


class Bins:
    """Values come in order of time; what is older than the oldest bin is forgotten."""

    def __init__(self, curves: int) -> None:
        self.curves = curves
        self._levels = [
            _Level(curves, width_s, kept) for width_s, kept in zip(WIDTHS_S, KEPT, strict=True)
        ]
        self._made = [0, 0, 0]
        """by level: bins before this one have been made of the level below"""

    def add(
        self,
        from_s: float,
        to_s: float,
        values: Sequence[float],
        lows: Sequence[float],
        highs: Sequence[float],
    ) -> None:
        """One value of each curve for all bins between two instants; NaN is nothing."""
        fine = self._levels[0]
        first, last = (
            max(int(from_s / fine.width_s + 1e-6), 0),
            max(int(to_s / fine.width_s + 1e-6), 0),
        )
        if last < fine.last - fine.kept:
            return
        if last > fine.last:
            fine.reach(last)
        at, low, high = np.asarray(values), np.asarray(lows), np.asarray(highs)
        known = np.isfinite(at)
        total, count = np.where(known, at, 0.0), known.astype(np.float64)
        for bin_ in range(max(first, last - fine.kept + 1), last + 1):
            fine.put(bin_, total, count, low, high)
        self._widen(to_s)

    def _widen(self, now_s: float) -> None:
        for place in (1, 2):
            below, level = self._levels[place - 1], self._levels[place]
            ratio = round(level.width_s / below.width_s)
            until = int((now_s - LATE_S) / level.width_s)  # bins before this one are over
            if until <= self._made[place]:
                continue
            first = max(self._made[place], (below.last - below.kept + 1) // ratio + 1, 0)
            level.reach(until - 1)
            for bin_ in range(first, until):
                level.put(bin_, *_merged(*below.taken(bin_ * ratio, (bin_ + 1) * ratio)))
            self._made[place] = until

    def stretch(self, begin_s: float, end_s: float) -> Stretch:
        """From the finest bins that reach back so far and are not too many."""
        span_s = end_s - begin_s
        place = 0
        while place < 2 and (
            span_s / WIDTHS_S[place] > 2 * MOST_POINTS or begin_s < self._oldest_s(place)
        ):
            place += 1
        return self._thinned(self._taken(place, begin_s, end_s))

    def _oldest_s(self, place: int) -> float:
        level = self._levels[place]
        return (level.last - level.kept + 1) * level.width_s

    def _taken(self, place: int, begin_s: float, end_s: float) -> Stretch:
        """Bins of one level, and for the newest, which are not made yet, those of the level below
        put together."""
        level = self._levels[place]
        first, end = max(int(begin_s / level.width_s), 0), max(int(end_s / level.width_s) + 1, 0)
        newest = self._levels[0].last * WIDTHS_S[0]
        if place == 0:
            end = min(end, level.last + 1)
            return self._of(place, first, end, level.taken(first, end))
        made = min(end, self._made[place])
        done = self._of(place, first, made, level.taken(first, made))
        from_s = max(self._made[place] * level.width_s, begin_s)
        if end_s <= from_s or newest < from_s:
            return done
        rest = self._taken(place - 1, from_s, end_s)
        ratio = round(level.width_s / WIDTHS_S[place - 1])
        return _joined(done, _grouped(rest, ratio))

    def _of(self, place: int, first: int, end: int, rows: tuple[Floats, Floats, Floats]) -> Stretch:
        count = rows[0].shape[1]
        t_s = (np.arange(end - count, end) + 0.5) * WIDTHS_S[place]
        return Stretch(t_s, *rows)

    def _thinned(self, stretch: Stretch) -> Stretch:
        return (
            _grouped(stretch, -(-len(stretch.t_s) // MOST_POINTS))
            if len(stretch.t_s) > MOST_POINTS
            else stretch
        )


def _merged(mean: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Several bins as one: sum and count of the means, so that each bin counts alike."""
    known = np.isfinite(mean)
    total = np.where(known, mean, 0.0).sum(axis=1)
    return total, known.sum(axis=1).astype(np.float64), _least(low), -_least(-high)


def _least(rows: Floats) -> Floats:
    """NaN only where all are."""
    if not rows.shape[1]:
        return np.full(rows.shape[0], np.nan)
    least: Floats = np.fmin.reduce(rows, axis=1)
    return least


def _grouped(stretch: Stretch, ratio: int) -> Stretch:
    """Each `ratio` bins as one."""
    count = len(stretch.t_s)
    if not count or ratio <= 1:
        return stretch
    starts = np.arange(0, count, ratio)
    known = np.isfinite(stretch.mean)
    sums = np.add.reduceat(np.where(known, stretch.mean, 0.0), starts, axis=1)
    counts = np.add.reduceat(known.astype(np.float64), starts, axis=1)
    with np.errstate(invalid="ignore"):
        mean = sums / counts
    middles = np.add.reduceat(stretch.t_s, starts) / np.add.reduceat(np.ones(count), starts)
    return Stretch(
        middles,
        mean,
        np.fmin.reduceat(stretch.low, starts, axis=1),
        np.fmax.reduceat(stretch.high, starts, axis=1),
    )


def _joined(one: Stretch, other: Stretch) -> Stretch:
    return Stretch(
        np.concatenate([one.t_s, other.t_s]),
        *(np.concatenate(pair, axis=1) for pair in zip(one[1:], other[1:], strict=True)),
    )
