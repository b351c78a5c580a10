"""When a counter was renewed: hardware counters move in steps, and a reading is as old as the step
before it.

A poll at t that took d and saw another value than the poll before tells that a tick lies in (t
before, t + d]. Ticks that come every T lie on a lattice phi + n*T, so that many such intervals
together tell phi and T far better than one: for a period T,

    max(low_n - n*T) - J  <=  phi  <=  min(high_n - n*T) + J

and J, the jitter, is the least that leaves room for a phi. T runs over a grid, so the fit is two
small matrices. It is made of the ticks near one instant: a period that drifts over minutes is
constant there. Where no lattice fits, each tick keeps the interval of its poll.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ckptcost.first.core.channels import Series

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Mask = NDArray[np.bool_]
Value = TypeVar("Value", np.float64, np.bool_)
Kind = Literal["live", "lattice", "every-poll", "irregular"]

_LEAST = 6
"""ticks that a lattice is believed from; three where the period is known"""
_PAUSE = 3.5
"""periods without a tick that is known well, after which counting goes wrong first"""
_BESIDE = np.array([-1.0, 0.0, 1.0, 2.0])[:, None, None]
"""a tick's number and those next to it"""
_NEXT = _BESIDE.astype(np.intp)
_NOT_NEXT = 1e-9 * np.abs(_BESIDE[:3])
"""where several fit alike, the nearest number"""
_GRID = np.arange(33.0)
"""places of the periods that are tried"""
_MOST = 96
"""ticks that one lattice is fitted to; more would cost time and see more drift"""
ROWS, _READINGS = 96, 2**17
"""stretches and readings worked out together: enough to forget numpy's calls, few enough to stay in
the processor's caches"""
_FEW = 2048
"""numbers that are quicker sorted than parted"""
_SHARP = 0.8
"""an interval wider than this share of the period does not say which tick it was"""
_OFF = 0.15
"""a tick further from its place than this share of the period is not on the lattice ..."""
_MANY = 0.08
"""... and with this share of such ticks there is no lattice"""
_STILL = 0.002
"""no lattice is believed to be more even than this share of its period: a period that drifts a
little does not show in few polls"""
_SPARE = 1.3
"""what is added to the least jitter that fits, in units of what is expected to be hidden"""


_QUICK = 16
"""polls that are the quickest ones, about"""
_EVERY = 0.95
"""share of the quickest polls that see a tick where every poll does"""
_EVERY_SPARE = 1.5
"""such ticks come at least that often, in units of the poll's or the published period"""


MEDIAN_OF_SECOND = 0.6745 * math.sqrt(6.0)
"""median of a second difference's size, in standard deviations of what it is made of"""


def median(values: Floats) -> float:
    """The same number as `np.median`, which takes 30 us to look after axes, types and NaN; here a
    hundred floats are sorted in 3 us.

    >>> (
    ...     median(np.array([3.0, 1.0, 2.0, 10.0])),
    ...     median(np.array([5.0])),
    ...     median(np.array([1.0, np.nan])),
    ... )
    (2.5, 5.0, nan)
    """
    count = len(values)
    half = count // 2
    if count > _FEW:
        return float(np.median(values))
    in_order = np.sort(values)
    if not count or in_order[-1] != in_order[-1]:
        return math.nan
    return float(in_order[half] if count % 2 else (in_order[half - 1] + in_order[half]) / 2.0)


class Ticks(NamedTuple):
    """Known points of a counter: at some instant from `low_s` to `high_s`, best `t_s`, the total
    was `total`."""

    t_s: Floats
    low_s: Floats
    high_s: Floats
    total: Floats
    kind: Kind
    period_s: float
    """lattice: the period; every-poll: what it is shorter than; irregular: median distance; live:
    0"""
    jitter_s: float
    """how far ticks lie from the lattice at most; NaN without one"""


class Lattices(NamedTuple):
    """A row a stretch: ticks at phi + n*T, for each period that is possible the phi that are. Times
    are relative to `origin_s`."""

    origin_s: Floats
    periods_s: Floats
    first_s: Floats
    last_s: Floats
    """infinite the wrong way round beside a period that is not possible"""
    jitter_s: Floats
    period_s: Floats
    phase_s: Floats
    """of the lattice in the middle of those that are possible"""

    def at(self, n: Floats) -> tuple[Floats, Floats, Floats]:
        """Earliest, middle and latest instant of the ticks with these numbers."""
        moved = self.periods_s[:, :, None] * n[:, None, :]
        low = np.minimum.reduce(self.first_s[:, :, None] + moved, axis=1)
        moved += self.last_s[:, :, None]
        return self._instants(low, np.maximum.reduce(moved, axis=1))

    def from_number(self, least: Floats, count: int) -> tuple[Floats, Floats, Floats]:
        """The same of `count` numbers one after the other, in a fraction of the time: the phases
        that are possible bend one way from period to period, so that the period which tells goes
        one way from number to number."""
        n = least[:, None] + np.arange(count)
        low = _lowest(self.first_s, self.periods_s, least, count, n)
        high = -_lowest(-self.last_s, -self.periods_s, least, count, n)
        return self._instants(low, high)

    def _instants(self, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
        jitter_s, origin_s = self.jitter_s[:, None], self.origin_s[:, None]
        low, high = low - jitter_s, high + jitter_s
        return origin_s + low, origin_s + (low + high) / 2.0, origin_s + high

    def before(
        self, t_s: Floats, took_s: Floats, low_s: Floats, high_s: Floats, there: Mask
    ) -> tuple[Floats, Floats, Floats]:
        """The last tick before each reading that is `there`, as the first of a row always is; it is
        also known to lie between `low_s` and `high_s`."""
        about = np.floor((t_s + took_s / 2.0 - self.phase_s[:, None]) / self.period_s[:, None])
        about = np.where(there, about, about[:, :1])
        # a reading so close to a tick that either may be the last one: the numbers next to the
        # likely one are asked too
        least = np.minimum.reduce(about, axis=1) - 1.0
        span = int((np.maximum.reduce(about, axis=1) - least).max()) + 3
        if span <= 4 * about.shape[1]:  # most are asked for again and again
            places = (about - least[:, None]).astype(np.intp) + np.arange(len(about))[
                :, None
            ] * span
            low, best, high = (
                part.ravel().take(places + _NEXT) for part in self.from_number(least, span)
            )
        else:
            low, best, high = (
                np.stack(part)
                for part in zip(*(self.at(about + each) for each in _BESIDE), strict=True)
            )
        fits = (
            (low[:3] <= np.minimum(high_s, t_s + took_s)) & (high[:3] >= low_s) & (high[1:] >= t_s)
        )
        early = np.maximum(np.minimum.reduce(np.where(fits, low[:3], np.inf)), low_s)
        late = np.minimum(np.maximum.reduce(np.where(fits, high[:3], -np.inf)), high_s)
        far = np.maximum(low_s - best[:3], 0.0) + np.maximum(best[:3] - high_s, 0.0) + _NOT_NEXT
        nearest = np.where(fits, far, np.inf).argmin(axis=0)
        middle = np.take_along_axis(best, nearest[None], axis=0)[0]
        alone = ~np.logical_or.reduce(
            fits
        )  # a tick that is off the lattice: its poll is all there is
        early, late = np.where(alone, low_s, early), np.where(alone, high_s, late)
        return (
            early,
            np.minimum(np.maximum(np.where(alone, (early + late) / 2.0, middle), early), late),
            late,
        )


def _lowest(base: Floats, slope: Floats, least: Floats, count: int, n: Floats) -> Floats:
    """The least of base + slope*n over the columns of each row, for `count` numbers from `least`
    on; base bends up along a row, slope rises or falls, and an infinite base is none."""
    order = 1 if slope[0, -1] > slope[0, 0] else -1
    base, slope = base[:, ::order], slope[:, ::order]
    there = base < np.inf
    first = there.argmax(axis=1)
    # up to which number each column is no better than the next one
    both = there[:, 1:] & there[:, :-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        until = (base[:, :-1] - base[:, 1:]) / (slope[:, 1:] - slope[:, :-1])
    place = np.clip(
        np.ceil(np.fmax(np.where(both, until, -np.inf), -np.inf) - least[:, None]), 0, count
    )
    rows = np.arange(len(base))[:, None] * (count + 1)
    beyond = np.bincount((rows + place.astype(np.intp)).ravel(), minlength=len(base) * (count + 1))
    passed = np.add.accumulate(beyond.reshape(len(base), -1)[:, ::-1], axis=1)[:, ::-1]
    column = first[:, None] + passed[:, 1:]
    return np.take_along_axis(base, column, axis=1) + np.take_along_axis(slope, column, axis=1) * n


_NONE = Lattices(np.zeros(0), *[np.zeros((0, len(_GRID)))] * 3, *[np.zeros(0)] * 3)


def lattices(
    low_s: Floats, high_s: Floats, there: Mask, near_s: Floats, period_s: float | None = None
) -> tuple[Places, Lattices]:
    """The lattices that ticks between `low_s` and `high_s` lie on, as seen from `near_s`: a row a
    stretch, whose ticks are those that are `there`. Which rows have one, and theirs.

    `period_s` is believed only where the ticks themselves are too few to tell.

    >>> import numpy as np
    >>> at = 0.1 * np.arange(20) + 0.003  # ticks every 100 ms, polled every 20 ms
    >>> low = np.floor(at / 0.02)[None] * 0.02
    >>> rows, found = lattices(low, low + 0.02, low < np.inf, near_s=np.array([1.0]))
    >>> rows.tolist(), round(found.period_s[0], 3), found.jitter_s[0] < 0.001
    ([0], np.float64(0.1), np.True_)
    """
    most = low_s.shape[1]
    width, middle = np.where(there, high_s - low_s, np.inf), (low_s + high_s) / 2.0
    guess = np.full(len(low_s), period_s or np.nan)
    quick = there.copy()
    if most > 1:
        sharp = 2.5 * _smallest(width, np.minimum(_LEAST, _counts(there)) - 1)
        sharpest = there & (width <= sharp[:, None])
        steps, of_sharp = middle[:, 1:] - middle[:, :-1], sharpest[:, 1:] & sharpest[:, :-1]
        tells = _counts(of_sharp) >= _LEAST - 2
        quick[tells] = sharpest[tells]
        guess[tells] = _usual(steps[tells], of_sharp[tells], width[tells], sharpest[tells])
    quick &= width <= _SHARP * guess[:, None]
    rows = np.flatnonzero((_counts(quick) >= (3 if period_s else _LEAST)) & (_counts(there) > 1))
    guess, near_s = guess[rows], near_s[rows]
    there, (low, high, middle) = _leftmost(quick[rows], low_s[rows], high_s[rows], middle[rows])
    if not len(rows):
        return rows, _NONE
    far_s = np.where(there, np.abs(middle - near_s[:, None]), np.inf)
    pivot = far_s.argmin(axis=1)[:, None]
    if low.shape[1] > _MOST:
        spare = np.maximum(_counts(there)[:, None] - _MOST, 0)
        cut = np.minimum(np.maximum(pivot - _MOST // 2, 0), spare) + np.arange(_MOST)
        pivot -= cut[:, :1]
        there = np.take_along_axis(there, cut, axis=1)
        low, high, middle = (np.take_along_axis(part, cut, axis=1) for part in (low, high, middle))
    origin_s = np.take_along_axis(middle, pivot, axis=1)[:, 0]
    fitted, fits = _numbered(low, high, there, guess, origin_s)
    # ticks beyond a long pause may have the wrong number: those on this side of it alone
    rest = np.delete(np.arange(len(rows)), fitted)
    paused = there[rest, 1:] & (middle[rest, 1:] - middle[rest, :-1] > _PAUSE * guess[rest, None])
    run = np.zeros((len(rest), low.shape[1]), np.intp)
    np.add.accumulate(paused, axis=1, out=run[:, 1:])
    side = there[rest] & (run == np.take_along_axis(run, pivot[rest], axis=1))
    enough = (_counts(side) >= _LEAST) & paused.any(axis=1)
    if enough.any():
        rest, side = rest[enough], side[enough]
        side, (low, high) = _leftmost(side, low[rest], high[rest])
        again, more = _numbered(low, high, side, guess[rest], origin_s[rest])
        fitted = np.concatenate([fitted, rest[again]])
        fits = Lattices(*(np.concatenate(parts) for parts in zip(fits, more, strict=True)))
    return rows[fitted], fits


def _usual(steps: Floats, of_sharp: Mask, width: Floats, sharpest: Mask) -> Floats:
    """The usual distance of ticks."""
    usual = medians(steps, of_sharp)
    loose = 1.2 * medians(width, sharpest) + 0.1 * usual
    alike = of_sharp & (np.abs(steps - usual[:, None]) <= loose[:, None])
    count = _counts(alike)
    return np.where(count, _sums(np.where(alike, steps, 0.0)) / np.maximum(count, 1), usual)


def _counts(of: Mask) -> Places:
    return np.count_nonzero(of, axis=1)


def _sums(values: Floats) -> Floats:
    """One value after the other: what zeros a row is filled up with changes no bit."""
    return np.add.accumulate(values, axis=1)[:, -1]


def _smallest(values: Floats, places: Places) -> Floats:
    """Of each row the value that would be at its place, were they in order."""
    places = np.maximum(places, 0)
    in_order = np.partition(values, np.unique(places), axis=1)
    return in_order[np.arange(len(values)), places]


def medians(values: Floats, of: Mask) -> Floats:
    """The median of each row, of what the mask holds."""
    count = _counts(of)
    in_order = np.sort(np.where(of, values, np.inf), axis=1)
    rows, half = np.arange(len(values)), count // 2
    below = in_order[rows, np.maximum(half - 1, 0)]
    at = in_order[rows, np.minimum(half, values.shape[1] - 1)]
    return np.where(count == 0, np.nan, np.where(count % 2, at, (below + at) / 2.0))


def _leftmost(of: Mask, *parts: Floats) -> tuple[Mask, list[Floats]]:
    """What the mask holds, at the left of each row; the mask of it, and each of the parts."""
    count = _counts(of)
    there = np.arange(int(count.max(initial=0))) < count[:, None]
    moved = [np.zeros(there.shape) for _ in parts]
    for part, to in zip(parts, moved, strict=True):
        to[there] = part[of]
    return there, moved


def _numbered(
    low_s: Floats, high_s: Floats, there: Mask, guess_s: Floats, origin_s: Floats
) -> tuple[Places, Lattices]:
    """Which tick is which, by the distance to the one before; then the lattices of those rows that
    have one. Half a period more is still the next one: where polls and ticks keep step, intervals
    half a period wide jump by one and a half, and never is a tick there that no poll saw.
    """
    low, high = low_s - origin_s[:, None], high_s - origin_s[:, None]
    middle = (low + high) / 2.0
    n = np.zeros(low.shape)
    steps = np.rint((middle[:, 1:] - middle[:, :-1]) / guess_s[:, None] - 0.1)
    np.add.accumulate(np.where(there[:, 1:], np.maximum(steps, 1.0), 0.0), axis=1, out=n[:, 1:])
    rows = np.flatnonzero(n[:, -1] >= 2)
    low, high, middle, n = (part[rows] for part in (low, high, middle, n))
    there = there[rows]
    count = _counts(there)[:, None]
    n -= np.rint(_sums(np.where(there, n, 0.0))[:, None] / count)
    from_mean = np.where(there, n - _sums(np.where(there, n, 0.0))[:, None] / count, 0.0)
    period = _sums(from_mean * middle) / _sums(from_mean * from_mean)
    rest = middle - n * period[:, None]
    off = np.abs(rest - medians(rest, there)[:, None]) - (high - low) / 2.0
    on = there & (off <= _OFF * period[:, None])
    few = _counts(there & ~on) / count[:, 0] <= _MANY
    good = np.flatnonzero(few & (_counts(on) >= 3))
    if not len(good):
        return good, _NONE
    return rows[good], _fitted(
        low[good], high[good], n[good], on[good], period[good], origin_s[rows[good]]
    )


def _fitted(
    low: Floats, high: Floats, n: Floats, on: Mask, period: Floats, origin: Floats
) -> Lattices:
    """All lattices that go through all intervals, each as much widened as at least one lattice
    needs, and what jitter hides."""
    rows, count = np.arange(len(low)), _counts(on)
    width = medians(high - low, on)
    least_n = np.minimum.reduce(np.where(on, n, np.inf), axis=1, initial=np.inf)
    span = np.maximum.reduce(np.where(on, n, -np.inf), axis=1, initial=-np.inf) - least_n
    reach = 4.0 * width / np.maximum(span, 1.0)
    low, high = np.where(on, low, -np.inf)[:, None, :], np.where(on, high, np.inf)[:, None, :]
    for _ in range(3):  # each grid covers what was possible on the one before, and one step more
        begin, end = period - reach, period + reach
        periods = _GRID * ((end - begin) / _GRID[-1])[:, None] + begin[:, None]
        periods[:, -1] = end
        moved = n[:, None, :] * periods[:, :, None]
        first = np.maximum.reduce(low - moved, axis=2)
        last = np.minimum.reduce(np.subtract(high, moved, out=moved), axis=2)
        lacks = np.maximum(first - last, 0.0) / 2.0
        jitter = np.maximum(
            _with_hidden(lacks.min(axis=1), width, count),
            np.minimum(_STILL * period, width / 10.0),
        )
        possible = lacks <= jitter[:, None]
        from_ = possible.argmax(axis=1)
        until = len(_GRID) - 1 - possible[:, ::-1].argmax(axis=1)
        least, most = periods[rows, from_], periods[rows, until]
        period, reach = (least + most) / 2.0, (most - least) / 2.0 + reach / 16.0
    tried = np.arange(len(_GRID))
    kept = (tried >= from_[:, None]) & (tried <= until[:, None])
    first, last = first - jitter[:, None], last + jitter[:, None]
    among = until - from_ + 1
    phase = (
        _sums(np.where(kept, first, 0.0)) / among + _sums(np.where(kept, last, 0.0)) / among
    ) / 2.0
    return Lattices(
        origin,
        periods,
        np.where(kept, first, np.inf),
        np.where(kept, last, -np.inf),
        jitter,
        (least + most) / 2.0,
        phase + origin,
    )


def _with_hidden(least_s: Floats, width_s: Floats, count: Places) -> Floats:
    """The jitter that shows as `least_s` in so many intervals. Its largest values show only where
    an interval begins or ends close to them: of `count` deviations spread to +-J, with intervals w
    wide, the extreme one that shows is about sqrt(4*J*w/count) short of J.
    """
    jitter = least_s
    for _ in range(2):
        jitter = least_s + _SPARE * np.sqrt(4.0 * jitter * width_s / count)
    return jitter


class Polls(NamedTuple):
    """Readings of a total that never falls, looked over once for all stretches of them: between
    which polls each tick came."""

    t_s: Floats
    total: Floats
    apart_s: Floats
    """of each reading but the first: how long after the one before"""
    moved: NDArray[np.bool_]
    """... and that it saw another value than the one before"""
    at: NDArray[np.intp]
    """the readings that did"""
    low_s: Floats
    high_s: Floats
    asked_s: Floats
    took_s: Floats
    counted: Floats
    """beside `at`"""


def polls(t_s: Floats, took_s: Floats, total: Floats) -> Polls:
    """All at once: an edge looks at some hundred of them."""
    moved = total[1:] > total[:-1]
    before = moved.nonzero()[0]
    after = before + 1
    asked_s, took = t_s[after], took_s[after]
    return Polls(
        t_s,
        total,
        t_s[1:] - t_s[:-1],
        moved,
        after,
        t_s[before],
        asked_s + took,
        asked_s,
        took,
        total[after],
    )


def _rows(values: NDArray[Value], first: Places, width: int) -> NDArray[Value]:
    """So many values one after the other from each place on; zeros beyond the last one."""
    begin = int(first.min())
    near = values[begin : int(first.max()) + width]
    lacking = int(first.max()) - begin + width - len(near)
    if lacking:
        near = np.concatenate([near, np.zeros(lacking, values.dtype)])
    if not width:
        return near[:0].reshape(len(first), 0)
    return sliding_window_view(near, width)[first - begin]


def found(
    t_s: Floats,
    took_s: Floats,
    total: Floats,
    *,
    tick_s: float | None = None,
    near_s: float | None = None,
) -> Ticks:
    """The ticks behind readings of a total that never falls. `tick_s` is the period as published or
    measured: 0 for a total that is renewed at once, None where nothing is known. A lattice is
    fitted to what lies around `near_s`.
    """
    return found_in(polls(t_s, took_s, total), took_s, 0, len(t_s), tick_s=tick_s, near_s=near_s)


def found_in(
    all_: Polls,
    took_s: Floats,
    start: int,
    stop: int,
    *,
    tick_s: float | None = None,
    near_s: float | None = None,
) -> Ticks:
    """The same of a stretch of them: from reading `start` to the one before `stop`."""
    if near_s is None:
        near_s = float(all_.t_s[(start + stop) // 2]) if stop > start else 0.0
    return found_each(
        all_, took_s, np.array([start]), np.array([stop]), np.array([near_s]), tick_s=tick_s
    )[0]


def found_each(
    all_: Polls,
    took_s: Floats,
    starts: Places,
    stops: Places,
    near_s: Floats,
    *,
    tick_s: float | None = None,
) -> list[Ticks]:
    """The same of many stretches, which take a part of the time together; what a stretch says does
    not depend on the others."""
    lengths = stops - starts
    tell = [] if tick_s == 0 else np.flatnonzero(lengths > 1).tolist()
    found: dict[int, Ticks] = {}
    block: list[int] = []
    longest = 0
    for row in tell:
        longest = max(longest, int(lengths[row]))
        if block and (len(block) >= ROWS or (len(block) + 1) * longest > _READINGS):
            found |= zip(
                block,
                _block(all_, took_s, starts[block], stops[block], near_s[block], tick_s),
                strict=True,
            )
            block, longest = [], int(lengths[row])
        block.append(row)
    if block:
        found |= zip(
            block,
            _block(all_, took_s, starts[block], stops[block], near_s[block], tick_s),
            strict=True,
        )
    return [
        found[row] if row in found else _live(all_, took_s, slice(start, stop))
        for row, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True))
    ]


def _live(all_: Polls, took_s: Floats, cut: slice) -> Ticks:
    t_s, took_s = all_.t_s[cut], took_s[cut]
    return Ticks(t_s + took_s / 2.0, t_s, t_s + took_s, all_.total[cut], "live", 0.0, math.nan)


def _block(
    all_: Polls,
    took_s: Floats,
    start: Places,
    stop: Places,
    near_s: Floats,
    tick_s: float | None,
) -> list[Ticks]:
    """A row a stretch, filled up to the longest."""
    within, every_poll = _quickest(all_, start, stop)
    first, last = all_.at.searchsorted(start + 1), all_.at.searchsorted(stop)
    count = last - first
    most = int(count.max())
    there = np.arange(most + 1) <= count[:, None]
    # the first reading, then those that saw a tick; beyond the last of a row whatever comes next
    low, high = (_rows(part, first, most) for part in (all_.low_s, all_.high_s))
    asked_s, took, counted = (
        np.concatenate([of[start, None], _rows(of_ticks, first, most)], axis=1)
        for of, of_ticks in (
            (all_.t_s, all_.asked_s),
            (took_s, all_.took_s),
            (all_.total, all_.counted),
        )
    )
    seen_s = asked_s + took
    since_s = np.concatenate([np.full((len(low), 1), -np.inf), low], axis=1)
    others = np.flatnonzero(~every_poll)
    which, fits = lattices(low[others], high[others], there[others, 1:], near_s[others], tick_s)
    which = others[which]
    on = (
        fits.before(asked_s[which], took[which], since_s[which], seen_s[which], there[which])
        if len(which)
        else ()
    )
    place = dict(zip(which.tolist(), range(len(which)), strict=True))
    found = []
    for row, stop_at in enumerate((count + 1).tolist()):
        if row in place:
            fit = place[row]
            early, best, late = (part[fit, :stop_at] for part in on)
            period_s, jitter_s = fits.period_s[fit].item(), fits.jitter_s[fit].item()
            kind: Kind = "lattice"
        else:
            early, late, jitter_s = since_s[row, :stop_at], seen_s[row, :stop_at], math.nan
            if every_poll[row]:
                kind, period_s = "every-poll", within[row].item()
                period_s = min(period_s, _EVERY_SPARE * tick_s) if tick_s else period_s
                early = np.maximum(early, asked_s[row, :stop_at] - period_s)
            else:
                kind = "irregular"
                period_s = median(late[2:] - late[1:-1]) if stop_at > 2 else math.nan
                early[0] = asked_s[row, 0] - (period_s if period_s == period_s else 0.0)
            best = (early + late) / 2.0
        found.append(Ticks(best, early, late, counted[row, :stop_at], kind, period_s, jitter_s))
    return found


def _quickest(all_: Polls, start: Places, stop: Places) -> tuple[Floats, Mask]:
    """How far apart the quickest polls of each stretch are at most, and whether every one of them
    saw a tick."""
    count = stop - start - 1
    there = np.arange(int(count.max())) < count[:, None]
    spacing = np.where(there, _rows(all_.apart_s, start, there.shape[1]), np.inf)
    within = _EVERY_SPARE * _smallest(spacing, np.minimum(_QUICK, count - 1))
    quick = spacing <= within[:, None]
    moved = _counts(_rows(all_.moved, start, there.shape[1]) & quick)
    return within, moved / np.maximum(_counts(quick), 1) >= _EVERY


class Tick(NamedTuple):
    """How a counter is renewed, as measured: for a self-test and for the header of a run."""

    kind: Kind
    period_s: float
    """every-poll: it is renewed at least that often; irregular: the median distance; NaN: it did
    not move"""
    jitter_s: float
    resolution: float
    """what all its values are multiples of, in millionths; NaN if it never moved"""
    moves: int
    polled_s: float
    """median distance of the polls"""


def tick_of(series: Series) -> Tick:
    """Measured on a counter that was polled quickly for some seconds; wraps and resets do no harm.

    >>> from ckptcost.first.core.channels import series
    >>> polled = [0.02 * k + 0.0001 * (k % 7) for k in range(200)]
    >>> tick = tick_of(series(polled, [int(t / 0.1 + 0.37) * 25.5 for t in polled]))
    >>> tick.kind, round(tick.period_s, 3), tick.resolution, tick.moves
    ('lattice', 0.1, 25.5, 40)
    """
    answered = np.isfinite(series.value)
    t_s, took_s, value = series.t_s[answered], series.took_s[answered], series.value[answered]
    moved = np.diff(value, prepend=value[:1]) != 0
    count = int(moved.sum())
    polled_s = float(np.median(np.diff(t_s))) if len(t_s) > 1 else math.nan
    if count == 0:
        return Tick("irregular", math.nan, math.nan, math.nan, 0, polled_s)
    fit = found(t_s, took_s, np.cumsum(moved, dtype=np.float64))
    return Tick(fit.kind, fit.period_s, fit.jitter_s, step_of(value), count, polled_s)


def step_of(value: Floats) -> float:
    """What all differences are multiples of, in millionths, or whole numbers where values are so
    large that millionths are lost."""
    unit = 1e-6 if float(np.max(np.abs(value))) < 1e9 else 1.0
    steps = np.abs(np.diff(np.round(value / unit).astype(np.int64)))
    return float(np.gcd.reduce(steps)) * unit


class Noise(NamedTuple):
    """How a gauge scatters and how often it is renewed."""

    deviation: float
    """standard deviation from one renewal to the next, slow changes aside"""
    period_s: float
    resolution: float
    renewals: int


def noise_of(series: Series) -> Noise:
    """Measured on a gauge at rest: second differences leave slopes out, their median leaves steps
    out.

    >>> from ckptcost.first.core.channels import series
    >>> noise_of(
    ...     series([0.0, 0.1, 0.2, 0.3, 0.4, 0.5], [70.0, 72.0, 70.0, 72.0, 70.0, 72.0])
    ... ).resolution
    2.0
    """
    answered = np.isfinite(series.value)
    t_s, value = series.t_s[answered], series.value[answered]
    new = np.flatnonzero(np.diff(value) != 0) + 1
    if len(new) < 4:
        return Noise(0.0 if len(value) else math.nan, math.nan, math.nan, len(new))
    second = np.diff(value[new], 2)
    deviation = float(np.median(np.abs(second))) / MEDIAN_OF_SECOND
    return Noise(deviation, renewed_s(t_s[new]), step_of(value), len(new))


def renewed_s(t_s: Floats) -> float:
    """How often a gauge is renewed, from the instants of its changes: often it is renewed with the
    same value, so the short distances tell."""
    return float(np.quantile(np.diff(t_s), 0.2)) if len(t_s) > 1 else math.nan
