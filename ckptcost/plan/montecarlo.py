"""Whole runs, failure by failure, all runs at a time: one array element a run, one step a failure.

Between two failures the rhythm of training and saving is fixed, so a step needs no walk through its
saves: where an instant falls on the time line is arithmetic. A failure throws a run back to the
newest save that had become usable, on the second or third tier where the nearer copies are lost
with it, and further where that one cannot be used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ckptcost.errors import InputError
from ckptcost.plan import bill as b
from ckptcost.plan.arrays import times
from ckptcost.plan.evaluate import Outcome
from ckptcost.plan.physics import exists, load, lost_speed, save
from ckptcost.scenario.schema import Array, World

EDGE = 1e-9
"""an instant that is the end of a save must not fall before it by the last bit of a division"""
MOST_FAILURES = 1_000_000


class Runs(NamedTuple):
    """By run: what it spent, how long it took, and how often it failed."""

    spent: b.Spent
    failures: Array


def simulate(
    w: World,
    o: Outcome,
    runs: int,
    shape: float = 1.0,
    seed: int = 1,
    recorded: Array | None = None,
) -> Runs:
    """All runs to their end. Failures follow a Weibull law, or the instants of a recording, whose
    times between failures contain the time that is down."""
    if not o.goodput.min() > 1e-3:
        raise InputError("keeps so little of its time that its runs hardly end", "simulate")
    rng = np.random.default_rng(seed)
    walk = Walk(w, o, runs)
    gaps = weibull_gaps(rng, by_run(1.0 / o.plan.rate, runs), shape)
    if recorded is not None:
        gaps = recorded_gaps(rng, runs, recorded)
    for failure in range(MOST_FAILURES):
        rest = next(gaps)
        if failure:
            down = walk.detect + walk.reschedule if recorded is not None else 0.0
            rest = walk.recover(np.maximum(0.0, rest - down))
        walk.train(rest)
        if not walk.going.any():
            return Runs(walk.spent(w, o), walk.total["failures"])
        walk.fail(rng)
    raise InputError(f"has not ended after {MOST_FAILURES:,} failures", "simulate")


# --- when failures come -------------------------------------------------------------------------


def weibull_gaps(rng: np.random.Generator, mean: Array, shape: float) -> Iterator[Array]:
    """Times to the next failure, of the given mean by run; exponential at shape 1."""
    while True:
        if shape == 1.0:
            yield mean * rng.standard_exponential(len(mean))
        else:
            yield mean / math.gamma(1.0 + 1.0 / shape) * rng.weibull(shape, len(mean))


def recorded_gaps(rng: np.random.Generator, runs: int, instants: Array) -> Iterator[Array]:
    """Times between recorded failures, one after the other and round again; each run begins at a
    random instant of the recording."""
    instants = np.unique(np.asarray(instants, float))
    if len(instants) < 2:
        raise InputError("needs two failure times at least", "recorded failures")
    between = np.diff(instants)
    begin = rng.uniform(instants[0], instants[-1], runs)
    place = np.searchsorted(instants, begin, side="right") - 1
    yield instants[place + 1] - begin
    while True:
        place = place + 1
        yield between[place % len(between)]


def by_run(x: Any, runs: int) -> Array:
    """The only row of an array of the plan, one element a run."""
    return np.broadcast_to(np.asarray(x, float), (1, runs))[0]


# --- the time line of saves ---------------------------------------------------------------------


@dataclass
class Line:
    """Where saves end on the line of a run without failures: so many cycles of training and a save,
    after every few of them a save on the second tier, and after every few of those on the third."""

    cycle: Array
    every: tuple[Array, Array]
    """saves for one on the second tier, and of these for one on the third"""
    stalls: tuple[Array, Array]
    """of one save on the second tier, and on the third"""

    def __post_init__(self) -> None:
        self.period = self.every[0] * self.cycle + self.stalls[0]
        self.long = self.every[1] * self.period + self.stalls[1]

    def place(self, count: Array) -> Array:
        """Time at which so many saves are made."""
        seconds = np.floor(count / self.every[0] + EDGE)
        thirds = np.floor(seconds / self.every[1] + EDGE)
        return count * self.cycle + seconds * self.stalls[0] + thirds * self.stalls[1]

    def made(self, place: Array) -> tuple[Array, Array, Array]:
        """Saves that are complete on each tier, each counted in its own."""
        thirds = np.floor(place / self.long + EDGE)
        rest = place - thirds * self.long
        seconds = np.minimum(np.floor(rest / self.period + EDGE), self.every[1])
        rest = rest - seconds * self.period
        first = np.minimum(np.floor(rest / self.cycle + EDGE), self.every[0])
        first = np.where(seconds < self.every[1], first, 0.0)
        seconds = thirds * self.every[1] + seconds
        return seconds * self.every[0] + first, seconds, thirds


# --- one run after the other --------------------------------------------------------------------

WRITES = ("writes", "second", "third")
COUNTED = ("init", "load", "warmup", "trained", "stall", *WRITES, "failures")


class Walk:
    """All runs: how far each has come, and what it has spent. Figures are one value, or one a run;
    an interval that is longer than the run has no save to make or to load."""

    def __init__(self, w: World, o: Outcome, runs: int) -> None:
        def own(x: Any) -> Array:
            return by_run(x, runs)

        plan, r, p, f = o.plan, o.rhythm, w.policy, w.failures
        zero, saving, is_async = np.zeros(runs), own(o.saves > 0), p.mode == "async"
        three = exists(w.third_tier) & plan.two
        third = save(w, w.third_tier, from_gpus=False)
        self.tiers = 1 + int(np.any(plan.two)) + int(np.any(three))
        spaced = p.second_every * p.third_every
        third_drag = lost_speed(w, w.third_tier) * third.lag / spaced
        self.drag = own(r.drag + np.where(three & is_async, third_drag, 0.0))

        work, interval = own(w.run.work), own(r.interval)
        self.train_time, self.blocked = interval + self.drag, saving * own(r.blocked)
        self.intervals = work / interval
        self.saves = np.ceil(self.intervals - EDGE)
        every, stall = (own(p.second_every), own(p.third_every)), saving * own(r.stall)
        third_stall = np.where(three & ~is_async, third.stall, 0.0)
        self.stalls = (
            stall * own(~is_async),
            saving * own(r.second_stall),
            saving * own(third_stall),
        )
        """of one synchronous save on each tier"""
        self.units = np.ones(runs), every[0], every[0] * every[1]
        """saves of the first tier for one of each"""
        self.line = Line(self.train_time + stall, every, self.stalls[1:])
        lags = np.where(plan.two, plan.second.lag, 0.0), np.where(three, third.lag, 0.0)
        self.lags = np.cumsum([zero, own(plan.first.lag), *map(own, lags)], axis=0)
        """from the end of a stall until it is written to the first tier, and is safe on each"""
        tiers = w.tier, w.second_tier, w.third_tier
        self.loads = [times(saving, own(load(w, tier))) for tier in tiers]
        lost = own(np.where(plan.rate > 0, plan.lost / plan.rate, 0.0))
        self.lost = lost, own(three) * np.minimum(own(f.second_loss_fraction), lost)
        """chances that a failure needs the second tier, and the third"""
        self.unusable, self.silent = saving * own(f.unusable), saving * own(f.silent)
        self.silent_back, self.init, self.warmup = own(f.silent_back), own(f.init), own(f.warmup)
        self.detect, self.reschedule = own(f.detect), own(f.reschedule)

        self.going = np.ones(runs, bool)
        self.base, self.place, self.loading = zero, self.blocked, zero
        """where a run goes on: from which save, where on the line, and after how long a load"""
        self.level = np.zeros(runs, int)
        """the tier that it goes back to"""
        self.held, self.safe, self.owed = [zero] * 3, [zero] * 3, [zero] * 3
        """by tier: the newest save that it had at the start; its saves that can be used since; and
        whether the save that the run started from has still to reach it"""
        self.total = dict.fromkeys(COUNTED, zero)

    def count(self, **amounts: Any) -> None:
        for name, amount in amounts.items():
            self.total[name] = self.total[name] + np.where(self.going, amount, 0.0)

    def recover(self, rest: Array) -> Array:
        """What is left of the time to the next failure after a recovery that it may hit."""
        for name, length in (("init", self.init), ("load", self.loading), ("warmup", self.warmup)):
            part = np.minimum(rest, length)
            self.count(**{name: part})
            rest = rest - part
        self.level = np.where(rest > 0, 0, self.level)
        return rest

    def train(self, rest: Array) -> None:
        """From the last start to the failure or to the end."""
        line, shorter = self.line, self.train_time * (self.saves - self.intervals)
        end = line.place(self.saves) - self.place - shorter
        done = rest >= end
        time = np.minimum(rest, end)
        made = np.minimum(line.made(self.place + time)[0], self.saves - 1.0)
        begin = np.maximum(0.0, line.place(made) - self.place)
        so_far = made * self.train_time + np.clip(time - begin, 0.0, self.train_time)
        so_far = np.where(done, self.intervals * self.train_time, so_far)
        trained = so_far - self.base * self.train_time
        self.count(trained=trained, stall=np.maximum(0.0, time - trained))
        for tier in range(self.tiers):
            begun, self.safe[tier] = (self._reached(tier, time, stage) for stage in (0, 1))
            before = np.floor(self.base / self.units[tier] + EDGE) - self.owed[tier]
            whole = np.floor(self.saves / self.units[tier] + EDGE)
            half = (begun + self.safe[tier]) / 2.0  # of those under way, half on average
            self.count(**{WRITES[tier]: (np.where(done, whole, half) - before) * (time > 0)})
        self.going = self.going & ~done

    def _reached(self, tier: int, time: Array, stage: int) -> Array:
        """Saves that are being written to a tier (stage 0) or can be used there (1) by a time."""
        late = self.lags[tier + stage] - (0.0 if stage else self.stalls[tier])
        made = self.line.made(self.place + np.maximum(0.0, time - late))[tier]
        further = range(1, tier + stage)
        until = sum(self.owed[t] * (self.lags[t + 1] - self.lags[t]) for t in further)
        return made - self.owed[tier] * (time < until)

    def fail(self, rng: np.random.Generator) -> None:
        """Back to the newest save that is left and can be used; never to before the beginning."""
        self.count(failures=1.0)
        self.held[0] = self.base
        newest = [np.maximum(self.held[t], self.safe[t] * self.units[t]) for t in range(self.tiers)]
        if self.tiers > 1:
            chance = rng.random(len(self.base))
            level = (chance < self.lost[0]).astype(int) + (chance < self.lost[1])
            self.level = np.maximum(level, self.level)
        near, unit, loading = (
            np.choose(self.level, each[: self.tiers]) for each in (newest, self.units, self.loads)
        )
        if np.any((self.unusable > 0) | (self.silent > 0)):
            bad = rng.geometric(1.0 - self.unusable).astype(float) - 1.0
            is_late = rng.random(len(near)) < self.silent
            late_by = is_late * np.floor(self.silent_back + rng.random(len(near)))
            near = np.maximum(0.0, near - unit * (bad + late_by))
            loading = loading * (1.0 + bad)
        self.loading = loading
        self._begin_at(np.where(self.going, near, self.base), newest)

    def _begin_at(self, base: Array, newest: list[Array]) -> None:
        """Starts anew from a save: one that had not reached a further tier does so first. The first
        save waits for no drain, which is exact with one in flight."""
        self.base, self.place = base, self.line.place(base) + self.blocked
        for tier in range(1, self.tiers):
            at_most = np.floor(base / self.units[tier] + EDGE) * self.units[tier]
            due = (np.abs(at_most - base) < 0.5) & (newest[tier] < base - 0.5)
            self.owed[tier] = due.astype(float)
            self.held[tier] = np.minimum(newest[tier], at_most)
            self.place = self.place - self.owed[tier] * self.stalls[tier]

    def spent(self, w: World, o: Outcome) -> b.Spent:
        """What all of it came to."""
        total, failures, p = self.total, self.total["failures"], w.policy
        runs = len(failures)
        back = {name: total[name] for name in ("init", "load", "warmup")}
        back |= {"detect": failures * self.detect, "reschedule": failures * self.reschedule}
        third = save(w, w.third_tier, from_gpus=False).stored
        third_held = b.kept(o.saves / p.second_every / p.third_every, p.third_keep_last) * third
        return b.Spent(
            **back,
            stall=total["stall"],
            slowed=self.intervals * self.drag,
            redone=np.maximum(0.0, total["trained"] - self.intervals * self.train_time),
            wall=total["trained"] + total["stall"] + sum(back.values()),
            saves=total["writes"],
            held=by_run(o.spent.held, runs),
            second_saves=total["second"],
            second_held=by_run(o.spent.second_held, runs),
            third_saves=total["third"],
            third_held=by_run(np.where(self.tiers > 2, third_held, 0.0), runs),
        )
