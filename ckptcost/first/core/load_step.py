"""How a meter of joules is renewed, and how late it shows what it counted, from a load that was
switched on and off at known instants.

A counter that is late by L shows E(t - L). While the load does not change, E is a straight line, so
the lines through the ticks of two neighbouring phases cross at step + L: the lag is where they
cross. Every step gives a lag of its own, and their scatter its range. Whatever makes power follow
the load late (clocks that ramp up, a fan) is in the lag as well: it is what a window's joules
suffer from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.channels import Series

Floats = NDArray[np.float64]

LEAST_TICKS: Final = 6
"""no period is told from fewer"""
LEAST_STEPS: Final = 4
"""no lag is told from fewer: their scatter is its range"""
LEAST_IN_PHASE: Final = 2
GUARD_S: Final = 0.35
GUARD_TICKS: Final = 1.2
"""after a step, ticks may still be of before: so long, or so many ticks, nothing is believed; a lag
beyond it cannot be told"""
MOST_GUARD: Final = 0.45
"""of the shortest phase"""
BENT: Final = 0.25
"""of the step: power that lacks more of its level, after the guard, was not there yet"""
EVERY: Final = 0.95
"""share of polls that saw another value where the counter is renewed faster than it is asked"""
SLOW_POLL: Final = 3.0
"""a tick between polls further apart than so many usual ones says little"""
MOST_TICKS: Final = 1200
"""that a period is looked for in"""
SURE: Final = 8.0
"""how far a period stands out, beyond the logarithm of how many were tried"""
SIGMAS: Final = 3.0
ROUND: Final = 0.45
"""of a period: ticks further from their place may be their neighbours"""
_STUDENT: Final = (
    *(math.inf, 63.66, 9.92, 5.84, 4.60, 4.03, 3.71, 3.50, 3.36, 3.25),
    *(3.17, 3.11, 3.05, 3.01, 2.98, 2.95),
)
"""Student's t by degrees of freedom, both tails 1 %: the scatter is itself known from few steps"""
_MANY: Final = 2.9
"""the same beyond these"""

NO_STEP, FEW_STEPS, FEW_TICKS, TOO_LATE = "no-step", "few-steps", "few-ticks", "too-late"
"""why a lag is not known: power did not follow the load; too few steps or ticks; later than a phase
can tell"""


class LoadStep(NamedTuple):
    """The load was switched at some instant within `loose_s` of `t_s`."""

    t_s: float
    is_up: bool
    loose_s: float = 0.0


class Range(NamedTuple):
    """None is not known: a value without an end, or an end without a value."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


UNKNOWN: Final = Range()


class Timing(NamedTuple):
    """What a load that is switched tells of one meter."""

    tick: Range
    """how often it is renewed, seconds; only `high` where every poll saw another value"""
    jitter: Range
    """how far a tick is from its place at most, seconds; no `high` where ticks may be taken for
    their neighbours"""
    lag: Range
    """how late it shows what power did, seconds"""
    high_w: Range
    low_w: Range
    steps: int
    """that the lag rests on"""
    ticks: int
    why: str = ""
    """why there is no lag"""
    up_s: float | None = None
    down_s: float | None = None
    """the lag at rising and at falling steps alone: where they differ, power follows the load
    slowly one way"""


class _Period(NamedTuple):
    tick: Range = UNKNOWN
    jitter: Range = UNKNOWN
    placed_s: Floats | None = None
    """where each tick is on its lattice, where they keep to it so well that it knows this better
    than polls do"""


class _Ticks(NamedTuple):
    t_s: Floats
    half_s: Floats
    """known to so much to either side, by the polls before and after"""
    total: Floats
    shift_s: float
    """all of them may be off together by so much"""
    polled_s: float
    is_every: bool


def timing_of_counter(
    seen: Series, steps: Sequence[LoadStep], tick_s: float | None = None
) -> Timing:
    """`seen`: joules without wraps, asked at `t_s`, with the answer `took_s` later; `tick_s` as
    published, used where polls are too slow.

    >>> import numpy as np
    >>> from ckptcost.first.core.channels import series
    >>> def joules(t):  # 100 W, and 300 W from each odd second to the next even one
    ...     return 100.0 * t + 200.0 * (np.floor(t / 2.0) + np.clip(t % 2.0 - 1.0, 0.0, 1.0))
    >>> polled = np.arange(0.0, 12.0, 0.00731)
    >>> late = joules(np.floor(polled / 0.05) * 0.05 - 0.03)  # ticks of 50 ms, 30 ms late
    >>> steps = [LoadStep(n, n % 2 == 1) for n in range(1, 12)]
    >>> found = timing_of_counter(series(polled, late), steps)
    >>> round(found.tick.value, 4), round(found.lag.value, 3), round(found.high_w.value)
    (0.05, 0.03, 300)
    """
    ticks = _ticks_of(seen, tick_s)
    period = _period(ticks)
    ticks, off_share = _on_lattice(ticks, period)
    tick, jitter = period.tick, period.jitter
    known_s = tick.value or tick.high or 0.0
    phases = _phases(ticks, steps, known_s)
    high_w, low_w = _levels([(line.watts, is_up) for line, is_up in phases if line], off_share)
    lags, why = _crossings(phases, steps)
    told = Timing(tick, jitter, UNKNOWN, high_w, low_w, len(lags), len(ticks.t_s), why)
    if why:
        return told
    if not _apart(high_w, low_w):
        return told._replace(why=NO_STEP)
    loose_s = ticks.shift_s + float(np.mean([step.loose_s for step in steps]))
    guard_s, apart_w = _guard_s(steps, known_s), (high_w.value or 0.0) - (low_w.value or 0.0)
    return _with_lag(told, lags, loose_s, guard_s, _still_before(ticks, steps, guard_s, apart_w))


def timing_of_gauge(seen: Series, steps: Sequence[LoadStep], tick_s: float | None = None) -> Timing:
    """The same of watts: the lag is how late a step is shown on average, the time that a value is
    held and what it is averaged over included. When they are renewed is not told: constant power is
    renewed with the value that it had.
    """
    answered = np.isfinite(seen.value)
    t_s, value = (seen.t_s + seen.took_s / 2.0)[answered], seen.value[answered]
    told = Timing(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 0, 0)
    if len(steps) < LEAST_STEPS:
        return told._replace(why=FEW_STEPS)
    if len(t_s) < LEAST_TICKS:
        return told._replace(why=FEW_TICKS)
    guard_s = _guard_s(steps, tick_s or 0.0)
    levels = [
        (_level(value[(t_s >= begin_s + guard_s) & (t_s <= end_s)]), is_up)
        for begin_s, end_s, is_up in _between(steps, float(t_s[0]), float(t_s[-1]))
    ]
    high_w, low_w = _levels([each for each in levels if each[0] == each[0]])
    told = told._replace(high_w=high_w, low_w=low_w)
    if not _apart(high_w, low_w):
        return told._replace(why=NO_STEP)
    lags = []
    for step, (before, _), (after, _) in zip(steps, levels[:-1], levels[1:], strict=True):
        lag_s = _lag_of_area(t_s, value, step.t_s, guard_s, before, after)
        if lag_s == lag_s:
            lags.append((lag_s, step.is_up))
    if len(lags) < LEAST_STEPS:
        return told._replace(why=FEW_STEPS)
    loose_s = float(np.median(seen.took_s)) / 2.0 + float(np.mean([s.loose_s for s in steps]))
    return _with_lag(told._replace(steps=len(lags)), lags, loose_s, guard_s, 0.0)


def _level(value: Floats) -> float:
    return float(value.mean()) if len(value) >= LEAST_IN_PHASE else math.nan


def _levels(watts: Sequence[tuple[float, bool]], off_share: float = 0.0) -> tuple[Range, Range]:
    """Under load and without, of all phases."""
    high_w, low_w = (
        _mean_of([each for each, is_up in watts if is_up is up], off_share) for up in (True, False)
    )
    return high_w, low_w


def _lag_of_area(
    t_s: Floats, value: Floats, step_s: float, guard_s: float, before: float, after: float
) -> float:
    """How late a step is shown on average: the area that watts lack of it, over its height; NaN
    where it has none."""
    if before == after:
        return math.nan
    inside = (t_s > step_s) & (t_s < step_s + guard_s)
    at_s = [step_s, *t_s[inside].tolist(), step_s + guard_s]
    lacks = (after - np.interp(at_s, t_s, value)) / (after - before)
    return float(np.trapezoid(lacks, at_s))


def _with_lag(
    told: Timing, lags: Sequence[tuple[float, bool]], loose_s: float, most_s: float, still: float
) -> Timing:
    value_s, low_s, high_s = _lag_of(np.array([lag_s for lag_s, _ in lags]), loose_s)
    if high_s < 0.0 or high_s > most_s or still > BENT:
        return told._replace(why=TOO_LATE)
    up_s, down_s = (
        _median([lag_s for lag_s, is_up in lags if is_up is up]) for up in (True, False)
    )
    both_s = [max(each, 0.0) for each in (up_s, down_s) if each is not None]
    # power that follows the load slowly one way is late by another time there: the range holds both
    lag = Range(value_s, min(low_s, *both_s), max(high_s, *both_s))
    return told._replace(lag=lag, up_s=up_s, down_s=down_s)


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


def watts_of(seen: Series, begin_s: float, end_s: float, is_counter: bool) -> Range:
    """Mean power in a span of one state, and what scatter and the ticks' own times leave open."""
    answered = np.isfinite(seen.value) & (seen.t_s >= begin_s) & (seen.t_s <= end_s)
    seen = Series(*(part[answered] for part in seen))
    if not is_counter:
        return _mean_of([float(each.mean()) for each in np.array_split(seen.value, 5) if len(each)])
    ticks = _ticks_of(seen, None)
    line = _line(ticks.t_s, ticks.total)
    if line is None:
        return UNKNOWN
    away_s = ticks.t_s - line.t_s
    rest = ticks.total - line.at - line.watts * away_s
    scatter = SIGMAS * float(rest.std()) / math.sqrt(float(away_s @ away_s))
    loose = line.watts * 2.0 * float(ticks.half_s.max()) / float(ticks.t_s[-1] - ticks.t_s[0])
    half = max(scatter, loose)
    return Range(line.watts, line.watts - half, line.watts + half)


def _ticks_of(seen: Series, tick_s: float | None) -> _Ticks:
    """Every renewal that a poll saw, between the instants at which this poll and the one before
    were answered."""
    answered = np.isfinite(seen.value)
    t_s, took_s, total = seen.t_s[answered], seen.took_s[answered], seen.value[answered]
    if len(t_s) < 3:
        return _Ticks(t_s[:0], t_s[:0], total[:0], 0.0, math.nan, False)
    at_s = t_s + took_s / 2.0
    gaps_s = np.diff(at_s)
    polled_s = float(np.median(gaps_s))
    after = np.flatnonzero(np.diff(total) > 0) + 1
    told_s = float(np.median(took_s)) / 2.0
    if len(after) >= EVERY * len(gaps_s):
        old_s = min(polled_s, tick_s or math.inf)
        half_s = np.full(len(after), old_s / 2.0)
        return _Ticks(
            at_s[after] - old_s / 2.0, half_s, total[after], told_s + old_s / 2.0, polled_s, True
        )
    low_s, high_s = at_s[after - 1], at_s[after]
    half_s = (high_s - low_s + (took_s[after - 1] + took_s[after]) / 2.0) / 2.0
    kept = half_s <= SLOW_POLL * polled_s / 2.0
    return _Ticks(
        ((low_s + high_s) / 2.0)[kept], half_s[kept], total[after][kept], told_s, polled_s, False
    )


def _period(ticks: _Ticks) -> _Period:
    """The period is the one at which ticks fall together when time is rolled up: no tick needs a
    number, so missed ones do no harm."""
    if ticks.is_every:
        return _Period(Range(high=ticks.polled_s))
    count = len(ticks.t_s)
    if count < LEAST_TICKS:
        return _Period()
    t_s = ticks.t_s[:MOST_TICKS] - ticks.t_s[0]
    guess_s, span_s = float(np.median(np.diff(t_s))), float(t_s[-1])
    rates = np.arange(0.6 / guess_s, 1.5 / guess_s, 0.25 / span_s)
    sums = np.abs(
        np.concatenate([np.exp(2j * np.pi * part[:, None] * t_s).sum(1) for part in _cut(rates)])
    )
    best = int(np.argmax(sums))
    together = float(sums[best]) / len(t_s)
    if len(t_s) * together**2 < min(SURE + math.log(len(rates)), 0.8 * len(t_s)):
        return _Period()
    period_s = 1.0 / _peak(rates, sums, best)
    phase_s = float(np.angle(np.exp(2j * np.pi * t_s / period_s).sum())) / (2 * np.pi) * period_s
    all_s = ticks.t_s - ticks.t_s[0]
    for _ in range(2):
        number = np.rint((all_s - phase_s) / period_s)
        off_s = all_s - phase_s - number * period_s
        far = number - number.mean()
        slope = float(far @ off_s / (far @ far))
        period_s += slope
        phase_s += float(off_s.mean()) - slope * float(number.mean())
    off_s = all_s - phase_s - number * period_s
    deviation_s = float(off_s.std())
    sure_s = SIGMAS * max(
        deviation_s / math.sqrt(float(far @ far)),
        (
            period_s**2 * math.sqrt(1.5) / (math.pi * span_s * math.sqrt(len(t_s)) * together)
            if together < 0.7
            else 0.0
        ),
    )
    tick = Range(period_s, period_s - sure_s, period_s + sure_s)
    hidden_s = SIGMAS * deviation_s / math.sqrt(count)
    least_s = max(float(np.max(np.abs(off_s) - ticks.half_s)) - hidden_s, 0.0)
    most_s = float(np.max(np.abs(off_s) + ticks.half_s)) + hidden_s
    if most_s > ROUND * period_s:
        return _Period(tick, Range(low=least_s))
    spread_s = math.sqrt(3.0 * max(deviation_s**2 - float(np.mean(ticks.half_s**2)) / 3.0, 0.0))
    jitter = Range(min(max(spread_s, least_s), most_s), least_s, most_s)
    even = least_s == 0.0 and spread_s < float(np.median(ticks.half_s)) / 2.0
    return _Period(tick, jitter, ticks.t_s[0] + phase_s + number * period_s if even else None)


def _on_lattice(ticks: _Ticks, period: _Period) -> tuple[_Ticks, float]:
    """Ticks where the lattice has them, and by which share of time it may itself be off."""
    tick, placed_s = period.tick, period.placed_s
    if placed_s is None or not tick.value or not tick.high:
        return ticks, 0.0
    # the lattice itself is known to so much, and all ticks are off with it
    loose_s = SIGMAS * float(ticks.half_s.mean()) / math.sqrt(3.0 * len(placed_s))
    ticks = ticks._replace(t_s=placed_s, shift_s=ticks.shift_s + loose_s)
    return ticks, tick.high / tick.value - 1.0


def _cut(rates: Floats) -> list[Floats]:
    """Few at a time: a table of all rates and ticks would take much memory."""
    return [rates[first : first + 256] for first in range(0, len(rates), 256)]


def _peak(rates: Floats, sums: Floats, best: int) -> float:
    """Between three rates, by the parabola through them."""
    if not 0 < best < len(rates) - 1:
        return float(rates[best])
    before, here, after = (float(each) for each in sums[best - 1 : best + 2])
    bend = before - 2.0 * here + after
    moved = 0.5 * (before - after) / bend if bend else 0.0
    return float(rates[best] + moved * (rates[1] - rates[0]))


class _JoulesLine(NamedTuple):
    """Joules of a phase: `at` at `t_s`, and `watts` from there."""

    t_s: float
    at: float
    watts: float

    def __call__(self, t_s: float) -> float:
        return self.at + self.watts * (t_s - self.t_s)


def _guard_s(steps: Sequence[LoadStep], tick_s: float) -> float:
    lengths_s = np.diff([step.t_s for step in steps])
    shortest_s = float(lengths_s.min()) if len(lengths_s) else math.inf
    return min(max(GUARD_S, GUARD_TICKS * tick_s), MOST_GUARD * shortest_s)


def _between(
    steps: Sequence[LoadStep], first_s: float, last_s: float
) -> list[tuple[float, float, bool]]:
    """Begin and end of every phase, and whether the load is on."""
    bounds = [first_s, *(step.t_s for step in steps), last_s]
    ways = [not steps[0].is_up, *(step.is_up for step in steps)]
    return list(zip(bounds[:-1], bounds[1:], ways, strict=True))


def _phases(
    ticks: _Ticks, steps: Sequence[LoadStep], tick_s: float
) -> list[tuple[_JoulesLine | None, bool]]:
    """The line of every phase, from a while after its step up to the next; None where it has too
    few ticks."""
    if not steps or not len(ticks.t_s):
        return []
    guard_s = _guard_s(steps, tick_s)
    found: list[tuple[_JoulesLine | None, bool]] = []
    for begin_s, end_s, is_up in _between(steps, -math.inf, math.inf):
        inside = (ticks.t_s > begin_s + guard_s) & (ticks.t_s <= end_s)
        found.append((_line(ticks.t_s[inside], ticks.total[inside]), is_up))
    return found


def _line(t_s: Floats, total: Floats) -> _JoulesLine | None:
    if len(t_s) < LEAST_IN_PHASE:
        return None
    middle_s, mean = float(t_s.mean()), float(total.mean())
    away_s = t_s - middle_s
    return _JoulesLine(middle_s, mean, float(away_s @ (total - mean) / (away_s @ away_s)))


def _still_before(
    ticks: _Ticks, steps: Sequence[LoadStep], guard_s: float, apart_w: float
) -> float:
    """What power lacks of its level in the first half of what is believed of a phase, as a share of
    the step: a lag beyond the guard is a step within that half."""
    lacks = []
    for step, after in pairwise(steps):
        since_s, length_s = ticks.t_s - step.t_s, after.t_s - step.t_s
        half_s = (guard_s + length_s) / 2.0
        early, late = (
            _line(ticks.t_s[inside], ticks.total[inside])
            for inside in (
                (since_s > guard_s) & (since_s <= half_s),
                (since_s > half_s) & (since_s <= length_s),
            )
        )
        if early and late:
            lacks.append((late.watts - early.watts) * (1.0 if step.is_up else -1.0) / apart_w)
    return float(np.mean(lacks)) if lacks else 0.0


def _crossings(
    phases: Sequence[tuple[_JoulesLine | None, bool]], steps: Sequence[LoadStep]
) -> tuple[list[tuple[float, bool]], str]:
    """By step: how long after it the lines of both its phases cross; steps without both lines, or
    along which power went the other way, are left out."""
    if not phases:
        return [], FEW_TICKS if steps else FEW_STEPS
    pairs = [
        (step, before, after)
        for step, (before, _), (after, _) in zip(steps, phases[:-1], phases[1:], strict=True)
        if before is not None and after is not None
    ]
    if len(pairs) < LEAST_STEPS:
        return [], FEW_STEPS if len(steps) < LEAST_STEPS else FEW_TICKS
    found = [
        ((before(step.t_s) - after(step.t_s)) / (after.watts - before.watts), step.is_up)
        for step, before, after in pairs
        if (after.watts > before.watts) is step.is_up and after.watts != before.watts
    ]
    return (found, "") if len(found) >= max(LEAST_STEPS, 0.8 * len(pairs)) else ([], NO_STEP)


def _apart(high_w: Range, low_w: Range) -> bool:
    """Power followed the load: the ranges of both levels do not touch."""
    return high_w.low is not None and low_w.high is not None and high_w.low > low_w.high


def _mean_of(values: Sequence[float], off_share: float = 0.0) -> Range:
    if len(values) < 2:
        return Range(values[0]) if values else UNKNOWN
    mean = float(np.mean(values))
    half = _student(len(values)) * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    half += abs(mean) * off_share
    return Range(mean, mean - half, mean + half)


def _lag_of(lags_s: Floats, loose_s: float) -> tuple[float, float, float]:
    """Mean and both ends of its range: two neighbouring steps share a phase and its error, so there
    are half as many that are independent."""
    value = float(lags_s.mean())
    half_s = (
        _student(len(lags_s)) * float(lags_s.std(ddof=1)) / math.sqrt(len(lags_s) / 2.0) + loose_s
    )
    return max(value, 0.0), max(value - half_s, 0.0), value + half_s


def _student(count: int) -> float:
    return _STUDENT[count - 1] if count - 1 < len(_STUDENT) else _MANY
