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
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.core.channels import Series

Floats = NDArray[np.float64]
Kind = Literal["live", "lattice", "every-poll", "irregular"]

_LEAST = 6
"""ticks that a lattice is believed from; three where the period is known"""
_PAUSE = 3.5
"""periods without a tick that is known well, after which counting goes wrong first"""
_BESIDE = np.array([[-1.0], [0.0], [1.0], [2.0]])
"""a tick's number and those next to it"""
_NOT_NEXT = 1e-9 * np.abs(_BESIDE[:3])
"""where several fit alike, the nearest number"""
_GRID = np.arange(33.0)
"""places of the periods that are tried"""
_MOST = 96
"""ticks that one lattice is fitted to; more would cost time and see more drift"""
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


def _mean(values: Floats) -> float:
    """The same number as `values.mean()`, in a quarter of its time."""
    return float(np.add.reduce(values)) / len(values)


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


class Lattice(NamedTuple):
    """Ticks at phi + n*T: for each period that is possible, the phi that are. Times are relative to
    `origin_s`."""

    origin_s: float
    periods_s: Floats
    first_s: Floats
    last_s: Floats
    jitter_s: float
    period_s: float

    def at(self, n: Floats) -> tuple[Floats, Floats, Floats]:
        """Earliest, middle and latest instant of the ticks with these numbers."""
        moved = (
            self.periods_s[:, None] * n
        )  # a row a period: numpy goes along rows several times as fast as across them
        low = np.minimum.reduce(self.first_s[:, None] + moved) - self.jitter_s
        moved += self.last_s[:, None]
        high = np.maximum.reduce(moved) + self.jitter_s
        return self.origin_s + low, self.origin_s + (low + high) / 2.0, self.origin_s + high

    def before(
        self, t_s: Floats, took_s: Floats, low_s: Floats, high_s: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """The last tick before each reading, which is also known to lie between `low_s` and
        `high_s`."""
        phase = float(self.first_s.mean() + self.last_s.mean()) / 2.0 + self.origin_s
        about = np.floor((t_s + took_s / 2.0 - phase) / self.period_s)
        # a reading so close to a tick that either may be the last one: the numbers next to the
        # likely one are asked too
        numbers = about + _BESIDE
        least = float(about.min()) - 1.0
        if (
            span := int(float(about.max()) + 3.0 - least)
        ) <= numbers.size:  # most are asked for again and again
            places = (numbers - least).astype(np.intp)
            low, best, high = (
                part[places] for part in self.at(np.arange(span, dtype=np.float64) + least)
            )
        else:
            low, best, high = (part.reshape(4, -1) for part in self.at(numbers.ravel()))
        fits = (
            (low[:3] <= np.minimum(high_s, t_s + took_s)) & (high[:3] >= low_s) & (high[1:] >= t_s)
        )
        early = np.maximum(np.minimum.reduce(np.where(fits, low[:3], np.inf)), low_s)
        late = np.minimum(np.maximum.reduce(np.where(fits, high[:3], -np.inf)), high_s)
        far = np.maximum(low_s - best[:3], 0.0) + np.maximum(best[:3] - high_s, 0.0) + _NOT_NEXT
        middle = best[np.where(fits, far, np.inf).argmin(axis=0), np.arange(len(about))]
        alone = ~np.logical_or.reduce(
            fits
        )  # a tick that is off the lattice: its poll is all there is
        early, late = np.where(alone, low_s, early), np.where(alone, high_s, late)
        return (
            early,
            np.minimum(np.maximum(np.where(alone, (early + late) / 2.0, middle), early), late),
            late,
        )


def lattice(
    low_s: Floats, high_s: Floats, near_s: float, period_s: float | None = None
) -> Lattice | None:
    """The lattice that ticks between `low_s` and `high_s` lie on, as seen from `near_s`; None where
    none fits.

    `period_s` is believed only where the ticks themselves are too few to tell.

    >>> import numpy as np
    >>> at = 0.1 * np.arange(20) + 0.003  # ticks every 100 ms, polled every 20 ms
    >>> low = np.floor(at / 0.02) * 0.02
    >>> found = lattice(low, low + 0.02, near_s=1.0)
    >>> round(found.period_s, 3), found.jitter_s < 0.001
    (0.1, True)
    """
    width, middle = high_s - low_s, (low_s + high_s) / 2.0
    if len(width) < 2:
        return None
    sharpest = min(_LEAST, len(width)) - 1
    quick = width <= 2.5 * float(np.partition(width, sharpest)[sharpest])
    steps = (middle[1:] - middle[:-1])[quick[1:] & quick[:-1]]
    guess = math.nan
    if len(steps) >= _LEAST - 2:
        usual = median(steps)
        usual_steps = steps[np.abs(steps - usual) <= 1.2 * median(width[quick]) + 0.1 * usual]
        guess = _mean(usual_steps) if len(usual_steps) else usual
    elif period_s:
        guess = period_s
        quick = width <= _SHARP * guess
    quick &= width <= _SHARP * guess
    if np.count_nonzero(quick) < (3 if period_s else _LEAST):
        return None
    low, high, middle = low_s[quick], high_s[quick], middle[quick]
    pivot = int(np.abs(middle - near_s).argmin())
    if len(low) > _MOST:
        first = min(max(pivot - _MOST // 2, 0), len(low) - _MOST)
        cut = slice(first, first + _MOST)
        low, high, middle, pivot = low[cut], high[cut], middle[cut], pivot - first
    fit = _numbered(low, high, guess, float(middle[pivot]))
    if (
        fit is None and len(low) > _LEAST
    ):  # ticks beyond a long pause may have the wrong number: those on this side of it alone
        breaks = np.flatnonzero(middle[1:] - middle[:-1] > _PAUSE * guess) + 1
        first, stop = int(np.searchsorted(breaks, pivot, side="right")), len(low)
        run = slice(
            int(breaks[first - 1]) if first else 0,
            int(breaks[first]) if first < len(breaks) else stop,
        )
        if len(breaks) and run.stop - run.start >= _LEAST:
            fit = _numbered(low[run], high[run], guess, float(middle[pivot]))
    return fit


def _numbered(low_s: Floats, high_s: Floats, guess_s: float, origin_s: float) -> Lattice | None:
    """Which tick is which, by the distance to the one before; then the lattice. Half a period more
    is still the next one: where polls and ticks keep step, intervals half a period wide jump by one
    and a half, and never is a tick there that no poll saw.
    """
    low, high = low_s - origin_s, high_s - origin_s
    middle = (low + high) / 2.0
    n = np.zeros(len(middle))
    np.add.accumulate(
        np.maximum(np.rint((middle[1:] - middle[:-1]) / guess_s - 0.1), 1.0), out=n[1:]
    )
    if n[-1] < 2:
        return None
    n -= round(_mean(n))
    from_mean = n - _mean(n)
    period = float(from_mean @ middle / (from_mean @ from_mean))
    rest = middle - n * period
    off = np.abs(rest - median(rest)) - (high - low) / 2.0
    kept = off <= _OFF * period
    count = int(np.count_nonzero(kept))
    if (len(kept) - count) / len(kept) > _MANY or count < 3:
        return None
    return _fitted(low[kept], high[kept], n[kept], period, origin_s)


def _fitted(low: Floats, high: Floats, n: Floats, period: float, origin: float) -> Lattice:
    """All lattices that go through all intervals, each as much widened as at least one lattice
    needs, and what jitter hides."""
    width, span = median(high - low), max(float(n[-1] - n[0]), 1.0)
    reach = 4.0 * width / span
    jitter = 0.0
    for _ in range(3):  # each grid covers what was possible on the one before, and one step more
        begin, end = period - reach, period + reach
        periods = _GRID * ((end - begin) / _GRID[-1]) + begin
        periods[-1] = end
        moved = n * periods[:, None]
        first = np.maximum.reduce(low - moved, axis=1)
        last = np.minimum.reduce(np.subtract(high, moved, out=moved), axis=1)
        lacks = np.maximum(first - last, 0.0) / 2.0
        jitter = max(
            _with_hidden(float(lacks.min()), width, len(n)), min(_STILL * period, width / 10.0)
        )
        possible = (lacks <= jitter).nonzero()[0]
        least, most = float(periods[possible[0]]), float(periods[possible[-1]])
        period, reach = (least + most) / 2.0, (most - least) / 2.0 + reach / 16.0
    kept = slice(possible[0], possible[-1] + 1)
    return Lattice(
        origin,
        periods[kept],
        first[kept] - jitter,
        last[kept] + jitter,
        jitter,
        (least + most) / 2.0,
    )


def _with_hidden(least_s: float, width_s: float, count: int) -> float:
    """The jitter that shows as `least_s` in so many intervals. Its largest values show only where
    an interval begins or ends close to them: of `count` deviations spread to +-J, with intervals w
    wide, the extreme one that shows is about sqrt(4*J*w/count) short of J.
    """
    jitter = least_s
    for _ in range(2):
        jitter = least_s + _SPARE * math.sqrt(4.0 * jitter * width_s / count)
    return jitter


class Polls(NamedTuple):
    """Readings of a total that never falls, looked over once for all stretches of them: between
    which polls each tick came."""

    t_s: Floats
    total: Floats
    moved: NDArray[np.bool_]
    """of each reading but the first: it saw another value than the one before"""
    at: NDArray[np.intp]
    """the readings that did"""
    low_s: Floats
    high_s: Floats
    """beside `at`"""


def polls(t_s: Floats, took_s: Floats, total: Floats) -> Polls:
    """All at once: an edge looks at some hundred of them."""
    moved = total[1:] > total[:-1]
    before = moved.nonzero()[0]
    after = before + 1
    return Polls(t_s, total, moved, after, t_s[before], t_s[after] + took_s[after])


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
    t_s, took_s, total = all_.t_s[start:stop], took_s[start:stop], all_.total[start:stop]
    over_s = t_s + took_s
    if tick_s == 0 or len(t_s) < 2:
        return Ticks(t_s + took_s / 2.0, t_s, over_s, total, "live", 0.0, math.nan)
    moved, spacing = all_.moved[start : stop - 1], t_s[1:] - t_s[:-1]
    here = slice(*all_.at.searchsorted((start + 1, stop)).tolist())
    low, high = all_.low_s[here], all_.high_s[here]
    quickest = min(_QUICK, len(spacing) - 1)
    within = _EVERY_SPARE * float(np.partition(spacing, quickest)[quickest])
    quick = spacing <= within
    every_poll = np.count_nonzero(moved & quick) / max(int(np.count_nonzero(quick)), 1) >= _EVERY
    fit = (
        None
        if every_poll
        else lattice(low, high, float(t_s[len(t_s) // 2]) if near_s is None else near_s, tick_s)
    )
    at = np.empty(len(low) + 1, np.intp)
    at[0] = 0
    np.subtract(all_.at[here], start, out=at[1:])
    asked_s, seen_s, counted = t_s[at], over_s[at], total[at]
    if every_poll:
        within = min(within, _EVERY_SPARE * tick_s) if tick_s else within
        low = np.maximum(_behind(-np.inf, low), asked_s - within)
        return Ticks((low + seen_s) / 2.0, low, seen_s, counted, "every-poll", within, math.nan)
    if fit is None:
        between = median(high[1:] - high[:-1]) if len(high) > 1 else math.nan
        low = _behind(float(t_s[0]) - (between if between == between else 0.0), low)
        return Ticks((low + seen_s) / 2.0, low, seen_s, counted, "irregular", between, math.nan)
    low, best, high = fit.before(asked_s, took_s[at], _behind(-np.inf, low), seen_s)
    return Ticks(best, low, high, counted, "lattice", fit.period_s, fit.jitter_s)


def _behind(first: float, others: Floats) -> Floats:
    together = np.empty(len(others) + 1)
    together[0], together[1:] = first, others
    return together


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

    >>> from ckptcost.core.channels import series
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

    >>> from ckptcost.core.channels import series
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
