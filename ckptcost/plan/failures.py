"""Failures: how often, what getting back takes, and the expected time in each state for a save.

Exponential failures, exact (renewal): every formula counts what one completed save costs with all
its repetitions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ckptcost.plan.arrays import exprel, log1prel, orelse, times
from ckptcost.plan.save import nodes
from ckptcost.scenario.schema import Array, Failures, World


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


def failure_rate(w: World) -> Array:
    """Interruptions of the whole job per second."""
    return orelse(1.0 / w.failures.mtbf, summed_rate(w))


def summed_rate(w: World) -> Array:
    """From GPUs, nodes, racks and what all share. Smaller jobs fail more often for their size."""
    f, c = w.failures, w.cluster
    by_size = np.maximum(1.0, f.counted_gpus / c.gpus) ** (1.0 - f.size_exponent)
    own = c.gpus * f.gpu_rate + nodes(w) * f.rate
    return f.rate_factor * by_size * own + f.shared_rate + rack_rate(w)


def rack_rate(w: World) -> Array:
    return np.ceil(nodes(w) / w.failures.nodes_per_rack) * w.failures.rack_rate


def lost_fraction(w: World) -> Array:
    """Share of the failures that the first tier's copy does not survive."""
    racks = orelse(rack_rate(w) / summed_rate(w), 0.0)
    node = racks + (1.0 - racks) * w.failures.node_loss_fraction
    survives = w.tier.survives
    return np.where(survives == "site", 0.0, np.where(survives == "node", racks, node))


# --- a checkpoint that cannot be used -----------------------------------------------------------


def further_back(f: Failures) -> Array:
    """Saves that a failure goes back on average beyond the newest one: past those that cannot be
    loaded, and past those that hold corruption found late."""
    return f.unusable / (1.0 - f.unusable) + f.silent * f.silent_back


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


# --- states -------------------------------------------------------------------------------------


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
    pairs = zip(vars(yes).items(), vars(no).values(), strict=True)
    return States(**{name: np.where(condition, a, b) for (name, a), b in pairs})


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
