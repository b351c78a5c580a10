"""What failures cost: the expected time in each state for a save, and the best interval.

Formulas over seconds, exact for exponential failures (renewal): each counts what one completed save
costs with all its repetitions. `rate` is failures per second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ckptcost.plan.arrays import exprel, log1prel, times
from ckptcost.scenario.schema import Array


@dataclass
class Recovery:
    """Getting the job back after one failure. A further failure can hit the last three."""

    detect: Array
    reschedule: Array
    init: Array
    load: Array
    """with the repeated loads of checkpoints that cannot be used (see `loads`)"""
    warmup: Array

    @property
    def exposed(self) -> Array:
        return self.init + self.load + self.warmup


@dataclass
class States:
    """Expected seconds in each state for one completed segment: an interval and its save."""

    work: Array
    stall: Array
    second_stall: Array
    """the part of the stall that is spent on a second tier"""
    detect: Array
    reschedule: Array
    init: Array
    load: Array
    warmup: Array
    failures: Array
    lost: Array
    """those of the failures that go back to the second tier"""
    repeats: Array
    """how often the segment is done, since failures go back beyond the newest save"""

    @property
    def total(self) -> Array:
        back = self.detect + self.reschedule + self.init + self.load + self.warmup
        return self.work + self.stall + back


def choose(condition: Any, yes: States, no: States) -> States:
    """Field by field."""
    return States(
        **{name: np.where(condition, x, getattr(no, name)) for name, x in vars(yes).items()}
    )


def repeated(s: States, back: Array, every: Array) -> States:
    """All of the states where each failure goes `back` further saves on average.

    Every failure is a renewal: what follows does not depend on what was before. Let a failure come
    after 1/F completed saves on average (F = failures for each save). Where it also takes `back`
    saves away, the job gets ahead by 1/F - back for the same time, so all that is counted for each
    save grows by 1 / (1 - F*back); never, once F*back reaches 1. A failure that loses the first
    tier goes back by saves of the second, `every` times as far; there the place in the period
    matters, and the formula is right to first order. The beginning of the run, before which nothing
    can go back, is not counted: it shortens the first few saves only.
    """
    lost_ground = times(back, s.failures + s.lost * (every - 1.0))
    growth = np.where(lost_ground < 1.0, 1.0 / (1.0 - lost_ground), np.inf)
    return States(**{name: times(growth, amount) for name, amount in vars(s).items()})


def until_hit(start: Any, length: Array, rate: Array) -> Array:
    """Expected time in one phase of a single attempt: (exp(-l*start) - exp(-l*end))/l."""
    return np.exp(-rate * start) * length * exprel(-rate * length)


def recovering(r: Recovery, rate: Array, entries: Array) -> dict[str, Array]:
    """Seconds of `entries` failures that need a recovery, its repeats included, and its starts."""
    again = np.exp(rate * r.exposed)
    starts = entries * again

    def phase(start: Any, length: Array) -> Array:
        return times(entries, times(until_hit(start, length, rate), again))

    return {
        "detect": times(starts, r.detect),
        "reschedule": times(starts, r.reschedule),
        "init": phase(0.0, r.init),
        "load": phase(r.init, r.load),
        "warmup": phase(r.init + r.load, r.warmup),
        "failures": starts,
    }


def segment(
    work: Array,
    stall: Array,
    lag: Array,
    r: Recovery,
    rate: Array,
    blocked: Any = 0.0,
    many: Any = 1.0,
) -> States:
    """One tier, exact for exponential failures. A failure goes back to the last usable save.

    With `many` saves in flight the first `many` after a start wait for none; then one wait of
    many*blocked comes before every many-th. Saves end at f, 2f .. and again a period later: sums of
    exp(-rate * those).
    """
    again = np.exp(rate * lag)
    own = stall - blocked
    first, wait = work + own, many * blocked
    together = many * exprel(-rate * many * first) / exprel(-rate * first)
    entries = again * np.exp(rate * first) * -np.expm1(-rate * (many * first + wait)) / together
    waiting = np.exp(-rate * ((many - 1.0) * first + work)) * wait * exprel(-rate * wait) / together
    stalling = again * (own * exprel(rate * own) + waiting)
    working = (entries + again) * work * exprel(-rate * work)
    back = recovering(r, rate, entries)
    none = 0.0 * stall
    return States(working, stalling, none, **back, lost=none, repeats=none + 1.0)


def period(
    work: Array,
    stall: Array,
    lag: Array,
    r: Recovery,
    spared: Array,
    every: Array,
    second_stall: Array,
    second_lag: Array,
    second: Recovery,
    lost: Array,
) -> States:
    """Two tiers: mean states per segment of a period of `every` that ends on the second tier.

    `spared` failures leave the first tier's copy, `lost` ones go back to the second's. Exact for
    synchronous saves; for asynchronous ones right to first order in the lags.
    """
    rate = spared + lost
    r, second = _bounded(r, rate), _bounded(second, rate)
    lost_share = np.where(rate == 0, 0.0, lost / rate)
    spared_share = np.where(rate == 0, 0.0, spared / rate)
    odds = times(lost_share, np.expm1(rate * r.exposed))
    worse = lost_share + spared_share * np.where(np.isinf(odds), 1.0, odds / (1.0 + odds))

    def attempt(length: Array) -> tuple[Array, Array, Array]:
        """(attempts, log of the chance of getting through, recoveries from the first tier)"""
        against = times(worse, np.expm1(rate * length))
        attempts = np.where(np.isinf(against), 1.0 / worse, np.exp(rate * length) / (1.0 + against))
        through = np.where(np.isinf(against), -rate * length, -np.log1p(against))
        return attempts, through, times(attempts, -np.expm1(-rate * length)) * spared_share

    attempts, through, entries = attempt(work + stall)
    last_attempts, last_through, last_entries = attempt(second_stall)
    reach = np.exp(every * through)
    segments = every * exprel(every * through) / exprel(through)
    tries = np.exp(-(every * through + last_through))
    each = np.exp(spared * lag + lost * second_lag) / every
    stretch = times(each * tries * segments, attempts)
    ending = times(each * tries, times(reach, last_attempts))
    second_stalling = times(ending, until_hit(0.0, second_stall, rate))
    first = times(each * tries, times(segments, entries) + times(reach, last_entries))
    near = recovering(r, rate, first / (1.0 + odds))
    far = recovering(second, rate, times(each, tries - 1.0))
    return States(
        times(stretch, until_hit(0.0, work, rate)),
        times(stretch, until_hit(work, stall, rate)) + second_stalling,
        second_stalling,
        **{state: near[state] + far[state] for state in near},
        lost=far["failures"],
        repeats=np.ones(1),
    )


def _bounded(r: Recovery, rate: Array) -> Recovery:
    """A recovery that exponentials can hold: past exp(600) tries it is as good as endless."""
    part = np.minimum(1.0, 600.0 / np.maximum(rate * r.exposed, 1e-300))
    return replace(r, init=part * r.init, load=part * r.load, warmup=part * r.warmup)


def loads(load: Array, unusable: Array, rate: Array) -> Array:
    """Length of one certain load that stands for loads which succeed with chance 1 - u.

    A failure during a recovery begins it anew, so a load enters every expected time only through
    the chance to get through it, exp(-rate * length). For the first good one of independent tries
    that is q * (1-u) / (1 - u*q) with q = exp(-rate * load), whose -log over the rate this is.
    Without failures it is load / (1-u).
    """
    odds = unusable / (1.0 - unusable)
    missed = load * exprel(-rate * load)
    return load + times(odds, missed * log1prel(times(odds, rate * missed)))


# --- the best interval: in closed form if the cost is linear in the time in each state, else found


def one_plus_w0(eps: Array) -> Array:
    """y > 0 with 1 - (1-y)*exp(y) = eps, that is 1 + W0(-(1-eps)/e), exact even for tiny eps.

    >>> round(float(one_plus_w0(np.array(1.0))), 12)
    1.0
    """
    y = np.minimum(np.sqrt(2.0 * eps), 1.0 + np.log1p(eps))
    for _ in range(9):  # Newton from the right of a convex function
        rise = np.expm1(y)
        series = y * y * (0.5 + y * (1.0 / 3.0 + y * (0.125 + y / 30.0)))
        slope = y * (rise + 1.0)
        y = y - np.where(slope == 0, 0.0, (np.where(y < 1e-3, series, slope - rise) - eps) / slope)
    return y


def best_interval(
    stall: Array, r: Recovery, rate: Array, prices: dict[str, Any], drag: Array
) -> Array:
    """Training time between saves that costs least, for prices per second in each state; endless
    without failures. To first order, for time: sqrt(2 * stall * MTBF)."""
    once = (
        prices["stall"] * (r.detect + until_hit(0.0, r.init + r.load, rate))
        + prices["idle"] * r.reschedule
        + prices["work"] * until_hit(r.init + r.load, r.warmup, rate)
    )
    per_second = rate * np.exp(np.minimum(rate * r.exposed, 600.0)) * once
    whole = prices["work"] + per_second
    gap = -np.expm1(-rate * stall) * (per_second + prices["stall"])
    gap = gap + np.exp(-rate * stall) * rate * prices["save"]
    eps = (gap + (whole - gap) * -np.expm1(-rate * drag)) / whole
    return np.where(rate == 0, np.inf, one_plus_w0(eps) / rate)


def young(stall: Array, rate: Array) -> Array:
    """sqrt(2CM) for a save of C seconds and an MTBF of M."""
    return np.sqrt(2.0 * stall / rate)


def daly(stall: Array, rate: Array) -> Array:
    """sqrt(2CM)*(1 + sqrt(C/2M)/3 + C/(18M)) - C for C < 2M, else M."""
    part = np.minimum(stall * rate / 2.0, 1.0)
    long = young(stall, rate) * (1.0 + np.sqrt(part) / 3.0 + part / 9.0) - stall
    return np.where(stall * rate < 2.0, long, 1.0 / rate)


def lowest(cost: Callable[[Array], Array], low: Array, high: Array, rounds: int = 7) -> Array:
    """Least point of a function with one valley, 64 places at a time: each round the two places
    around the least are the next ends. Places are a further axis in front."""
    places = np.linspace(0.0, 1.0, 64)
    low, high = np.log(low), np.log(high)
    for _ in range(rounds):
        at = low + (high - low) * places.reshape(-1, *(1,) * np.ndim(low))
        values = cost(np.exp(at))
        best = np.argmin(np.where(np.isnan(values), np.inf, values), axis=0, keepdims=True)
        low = np.take_along_axis(at, np.maximum(best - 1, 0), 0)[0]
        high = np.take_along_axis(at, np.minimum(best + 1, 63), 0)[0]
    return np.exp((low + high) / 2.0)
