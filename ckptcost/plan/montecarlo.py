"""Whole runs, failure by failure, all runs at a time: one array element a run, one step a failure.

Between two failures the rhythm of training and saving is fixed, so a step needs no walk through its
saves: where an instant falls on the time line is arithmetic. A failure throws a run back to the
newest save that had become usable, on the second or third tier where the nearer copies are lost
with it, and further where that one cannot be used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.errors import InputError
from ckptcost.plan import bill as b
from ckptcost.plan.arrays import times
from ckptcost.plan.evaluate import Outcome
from ckptcost.plan.rhythm import exists, lost_speed
from ckptcost.plan.save import Save, load, save
from ckptcost.scenario.schema import Array, World

EDGE = 1e-9
"""an instant that is the end of a save must not fall before it by the last bit of a division"""
MOST_FAILURES = 1_000_000
Flags = NDArray[np.bool_]


class Runs(NamedTuple):
    """By run: what it spent, how long it took, and how often it failed."""

    spent: b.Spent
    failures: Array


# --- when failures come -------------------------------------------------------------------------


def gaps(rng: np.random.Generator, count: int, mean: Array, shape: float) -> Array:
    """Times to the next failure, of the given mean: a Weibull law, exponential at shape 1."""
    if shape == 1.0:
        return mean * rng.standard_exponential(count)
    return mean / math.gamma(1.0 + 1.0 / shape) * rng.weibull(shape, count)


def recorded_gaps(rng: np.random.Generator, count: int, instants: Array) -> Callable[[], Array]:
    """Times between recorded failures, one after the other and round again; each run begins at a
    random instant of the recording."""
    instants = np.unique(np.asarray(instants, float))
    if len(instants) < 2:
        raise InputError("needs two failure times at least", "recorded failures")
    between = np.diff(instants)
    begin = rng.uniform(instants[0], instants[-1], count)
    place = np.searchsorted(instants, begin, side="right") - 1
    ahead = instants[place + 1] - begin
    step = 0

    def following() -> Array:
        nonlocal step
        found = ahead if step == 0 else between[(place + step) % len(between)]
        step += 1
        return found

    return following


# --- the time line of saves ---------------------------------------------------------------------


class Made(NamedTuple):
    """Saves complete on each tier, each counted in its own."""

    first: Array
    second: Array
    third: Array


class Start(NamedTuple):
    """Where a run goes on after a failure: from which save, and where on the line of saves; before
    the end of that save if it had not reached the second tier yet."""

    base: Array
    place: Array


@dataclass
class Line:
    """When saves are made after a start. Stalls on further tiers lie on one line for the whole run;
    waits for drains begin anew with each start: the first `many` saves wait for none."""

    train: Array
    stall: Array
    blocked: Array
    many: Array
    every: Array
    third_every: Array
    second_stall: Array
    third_stall: Array

    def __post_init__(self) -> None:
        self.cycle = self.train + self.stall - self.blocked
        self.period = self.every * self.cycle + self.second_stall
        self.long = self.third_every * self.period + self.third_stall
        self.waits = bool(np.any(self.blocked > 0))
        self.one_tier = bool(np.all((self.second_stall == 0) & (self.every == 1)))

    def place(self, count: Array) -> Array:
        """Time at which so many saves are made, stalls on further tiers included, waits not."""
        if self.one_tier:
            return count * self.cycle
        seconds = np.floor(count / self.every + EDGE)
        thirds = np.floor(seconds / self.third_every + EDGE)
        return count * self.cycle + seconds * self.second_stall + thirds * self.third_stall

    def when(self, start: Start, count: Array) -> Array:
        """Time from a start until `count` saves are made."""
        time = self.place(count) - start.place
        if not self.waits:
            return time
        waits = np.floor(np.maximum(count - start.base - 1.0, 0.0) / self.many + EDGE)
        return time + waits * self.many * self.blocked

    def made(self, start: Start, time: Array) -> Made:
        """Saves that are complete so long after a start."""
        time = np.maximum(time, 0.0)
        at = start.place + time
        if self.one_tier:
            first = seconds = thirds = np.floor(at / self.cycle + EDGE)
        else:
            thirds = np.floor(at / self.long + EDGE)
            rest = at - thirds * self.long
            seconds = np.minimum(np.floor(rest / self.period + EDGE), self.third_every)
            rest = rest - seconds * self.period
            first = np.minimum(np.floor(rest / self.cycle + EDGE), self.every)
            first = np.where(seconds < self.third_every, first, 0.0)
            seconds = thirds * self.third_every + seconds
            first = seconds * self.every + first
        if self.waits:
            first = np.where(self.blocked > 0, start.base + self._waited(time), first)
        second = np.minimum(np.floor(first / self.every + EDGE), seconds)
        return Made(first, second, np.minimum(np.floor(second / self.third_every + EDGE), thirds))

    def _waited(self, time: Array) -> Array:
        """Saves since a start, where every many-th waits for an earlier one to drain."""
        past = time - self.cycle
        group = self.many * (self.cycle + self.blocked)
        groups = np.floor(past / group + EDGE)
        inner = np.floor((past - groups * group) / self.cycle + EDGE)
        count = groups * self.many + np.minimum(inner, self.many - 1.0) + 1.0
        return np.where(past >= -EDGE * self.cycle, count, 0.0)


# --- one run after the other --------------------------------------------------------------------

WRITES = ("writes", "second", "third")
COUNTED = ("init", "load", "warmup", "trained", "stall", *WRITES, "failures")


@dataclass
class Walk:
    """The figures of all runs, and how far each has come."""

    line: Line
    saves: Array
    missing: Array
    """the last interval may be shorter"""
    whole: Array
    """training time that the run needs in all"""
    is_async: Flags
    lags: tuple[Array, Array, Array]
    """from the end of a stall until each tier's copy can be used"""
    loads: tuple[Array, Array, Array]
    lost: tuple[Array, Array]
    """chances that a failure needs the second tier, and the third"""
    units: tuple[Array, Array, Array]
    """saves of the first tier for one of each"""
    tiers: int
    init: Array
    warmup: Array
    unusable: Array
    silent: Array
    silent_back: Array
    start: Start
    loading: Array
    level: Any
    """by run, the tier that it goes back to"""
    held: list[Array]
    """by tier, the newest save that it has"""
    owed: list[Array]
    """by tier, whether the save that a run started from has still to reach it"""
    going: Flags
    total: dict[str, Array] = field(default_factory=dict)
    safe: list[Array] = field(default_factory=list)
    """by tier, its saves that can be used at the end of the last step"""
    behind: list[Made] = field(default_factory=list)
    """by tier, what was made a lag earlier"""

    def __post_init__(self) -> None:
        self.doubtful = bool(np.any((self.unusable > 0) | (self.silent > 0)))

    def count(self, **amounts: Array) -> None:
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

    def train(self, rest: Array) -> Flags:
        """From the last start to the failure or to the end; whether it ended."""
        line, start = self.line, self.start
        end = line.when(start, self.saves) - self.missing
        done = rest >= end
        time = np.minimum(rest, end)
        made = self._made(time, done)
        before = line.when(start, np.minimum(made.first, self.saves - 1.0))
        inside = np.clip(time - before, 0.0, line.train)
        so_far = made.first * line.train + np.where(made.first < self.saves, inside, 0.0)
        trained = np.where(done, self.whole, so_far) - start.base * line.train
        self.safe = [made[tier] for tier in range(self.tiers)]
        if np.any(self.is_async):
            self.behind = [line.made(start, time - lag) for lag in self.lags[: self.tiers]]
            drained = [self.behind[t][t] - self._still_owed(time, t) for t in range(self.tiers)]
            pairs = zip(drained, self.safe, strict=True)
            self.safe = [np.where(self.is_async, x, y) for x, y in pairs]
        self.count(trained=trained, stall=np.maximum(0.0, time - trained))
        self._count_writes(time, done, made)
        return done

    def _made(self, time: Array, done: Flags) -> Made:
        """What is made by a time, all of it at the end of the run."""
        line, found = self.line, self.line.made(self.start, time)
        if not done.any():
            return found
        seconds = np.floor(self.saves / line.every + EDGE)
        all_ = self.saves, seconds, np.floor(seconds / line.third_every + EDGE)
        return Made(*(np.where(done, a, x) for a, x in zip(all_, found, strict=True)))

    def _still_owed(self, time: Array, tier: int) -> Any:
        """Whether the save that a run started from drains to a further tier for the second time."""
        if tier == 0:
            return 0.0
        until = sum(self.owed[t] * (self.lags[t] - self.lags[t - 1]) for t in range(1, tier + 1))
        return self.owed[tier] * (time < until)

    def _count_writes(self, time: Array, done: Flags, made: Made) -> None:
        """Writes on each tier since the start; those that were cut short count in part."""
        for tier in range(self.tiers):
            begun = np.floor(self.start.base / self.units[tier] + EDGE) - self.owed[tier]
            so_far = made[tier] + self._stalled(time, made, tier)
            if np.any(self.is_async):
                so_far = np.where(self.is_async, self._drained(time, made, tier), so_far)
            self.count(**{WRITES[tier]: np.where(done, made[tier], so_far) - begun})

    def _stalled(self, time: Array, made: Made, tier: int) -> Array:
        """Part of the synchronous save under way on a tier; one on a further tier comes last."""
        line = self.line
        now = line.when(self.start, made.first)
        if tier == 0:
            part = np.clip(time - now - line.train, 0.0, line.stall)
            return _share(part, line.stall)
        seconds = np.floor(made.first / line.every + EDGE)
        thirds = np.floor(seconds / line.third_every + EDGE)
        begin = now - np.where(thirds > made.third, line.third_stall, 0.0)
        if tier == 1:
            part = np.clip(time - begin + line.second_stall, 0.0, line.second_stall)
            return np.where(seconds > made.second, _share(part, line.second_stall), 0.0)
        part = np.clip(time - begin, 0.0, line.third_stall)
        return np.where(thirds > made.third, _share(part, line.third_stall), 0.0)

    def _drained(self, time: Array, made: Made, tier: int) -> Array:
        """Asynchronous saves written on a tier, those that are under way in part: they begin to
        drain there when they are safe on the tier before."""
        line, unit = self.line, self.units[tier]
        before = self.lags[tier - 1] if tier else np.zeros(1)
        begun = (self.behind[tier - 1] if tier else made)[tier]
        whole = self.safe[tier]
        under_way = np.maximum(0.0, begun - whole)
        age = time - before * (1.0 - self.owed[tier]) - line.when(self.start, begun * unit)
        spaced = unit * line.cycle * np.maximum(0.0, under_way - 1.0) / 2.0
        part = _share(np.maximum(0.0, age + spaced), self.lags[tier] - before)
        return whole + np.minimum(1.0, part) * under_way

    def fail(self, rng: np.random.Generator) -> None:
        """Back to the newest save that is left and can be used; never to before the beginning."""
        self.held[0] = self.start.base
        newest = [np.maximum(self.held[t], self.safe[t] * self.units[t]) for t in range(self.tiers)]
        near, unit, loading = newest[0], self.units[0], self.loads[0]
        if self.tiers > 1:
            chance = rng.random(len(near))
            level = (chance < self.lost[0]).astype(int) + (chance < self.lost[1])
            self.level = np.maximum(level, self.level)
            tiers = newest, self.units[: self.tiers], self.loads[: self.tiers]
            near, unit, loading = (np.choose(self.level, each) for each in tiers)
        if self.doubtful:
            back, tries = self._doubts(rng)
            near, loading = np.maximum(0.0, near - unit * back), loading * tries
        self.loading = loading
        self._begin_at(np.where(self.going, near, self.start.base), newest)

    def _begin_at(self, base: Array, newest: list[Array]) -> None:
        """Starts anew from a save: one that had not reached a further tier does so first."""
        place = self.line.place(base)
        for tier, stall in ((1, self.line.second_stall), (2, self.line.third_stall)):
            if tier >= self.tiers:
                break
            at_most = np.floor(base / self.units[tier] + EDGE) * self.units[tier]
            due = (np.abs(at_most - base) < 0.5) & (newest[tier] < base - 0.5)
            self.owed[tier] = due.astype(float)
            self.held[tier] = np.minimum(newest[tier], at_most)
            place = place - self.owed[tier] * stall
        self.start = Start(base, place)

    def _doubts(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Saves to go back beyond the newest, since they cannot be loaded or corruption was found
        late; and loads that were tried."""
        runs = len(self.going)
        bad = rng.geometric(1.0 - self.unusable, runs).astype(float) - 1.0
        late = rng.random(runs) < self.silent
        late_by = np.where(late, np.floor(self.silent_back + rng.random(runs)), 0.0)
        return bad + late_by, 1.0 + bad


def _share(part: Array, whole: Array) -> Array:
    return times(part, 1.0 / np.where(whole > 0, whole, 1.0))


def _third(w: World, o: Outcome) -> tuple[Save, Array, Array]:
    """Its save, its drag for each save of the first tier, and whether there is a third tier."""
    three = exists(w.third_tier) & o.plan.two
    one = save(w, w.third_tier, from_gpus=False)
    drains = three & (w.policy.mode == "async")
    spaced = w.policy.second_every * w.policy.third_every
    slower = np.where(drains, lost_speed(w, w.third_tier) * one.lag / spaced, 0.0)
    return one, slower, three


def walk_of(w: World, o: Outcome, runs: int) -> tuple[Walk, Array]:
    """All runs at their beginning, and the drag of each save. Figures are one value, or one a run;
    an interval that is longer than the run has no save to make or to load."""

    def own(x: object) -> Array:
        return np.array(np.broadcast_to(np.asarray(x, float), (1, runs))[0])

    plan, r, p, f = o.plan, o.rhythm, w.policy, w.failures
    saving = own(o.saves > 0)
    third, third_drag, three = _third(w, o)
    is_async = own(p.mode == "async").astype(bool)
    drag = own(r.drag + third_drag)
    interval, work = own(r.interval), own(w.run.work)
    train, saves = interval + drag, np.ceil(work / interval - EDGE)
    line = Line(
        train=train,
        stall=saving * own(r.stall),
        blocked=saving * own(r.blocked),
        many=own(p.in_flight),
        every=own(p.second_every),
        third_every=own(p.third_every),
        second_stall=saving * own(r.second_stall),
        third_stall=saving * own(np.where(three & (p.mode != "async"), third.stall, 0.0)),
    )
    first_lag = own(plan.first.lag)
    second_lag = first_lag + own(np.where(plan.two, plan.second.lag, 0.0))
    third_lag = second_lag + own(np.where(three, third.lag, 0.0))
    lost = own(np.where(plan.rate > 0, plan.lost / plan.rate, 0.0))
    loads = (load(w, tier) for tier in (w.tier, w.second_tier, w.third_tier))
    first_load, second_load, third_load = (times(saving, own(each)) for each in loads)
    walk = Walk(
        line=line,
        saves=saves,
        missing=train * (saves - work / interval),
        whole=work / interval * train,
        is_async=is_async,
        lags=(first_lag, second_lag, third_lag),
        loads=(first_load, second_load, third_load),
        lost=(lost, np.where(own(three) > 0, np.minimum(own(f.second_loss_fraction), lost), 0.0)),
        units=(np.ones(runs), line.every, line.every * line.third_every),
        tiers=1 + int(np.any(plan.two)) + int(np.any(three)),
        init=own(f.init),
        warmup=own(f.warmup),
        unusable=saving * own(f.unusable),
        silent=saving * own(f.silent),
        silent_back=own(f.silent_back),
        start=Start(np.zeros(runs), np.zeros(runs)),
        loading=np.zeros(runs),
        level=np.zeros(runs, int),
        held=[np.zeros(runs) for _ in range(3)],
        owed=[np.zeros(runs) for _ in range(3)],
        going=np.ones(runs, bool),
        total={name: np.zeros(runs) for name in COUNTED},
    )
    return walk, drag


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
    walk, drag = walk_of(w, o, runs)
    mean = np.broadcast_to(1.0 / o.plan.rate, (1, runs))[0]
    detect, reschedule = (
        np.broadcast_to(each, (1, runs))[0] for each in (w.failures.detect, w.failures.reschedule)
    )
    following = recorded_gaps(rng, runs, recorded) if recorded is not None else None
    for event in range(MOST_FAILURES):
        rest = following() if following else gaps(rng, runs, mean, shape)
        if event:
            down = detect + reschedule if following else 0.0
            rest = walk.recover(np.maximum(0.0, rest - down))
        walk.going = walk.going & ~walk.train(rest)
        if not walk.going.any():
            break
        walk.count(failures=np.ones(runs))
        walk.fail(rng)
    return Runs(_spent(w, o, walk, drag, detect, reschedule), walk.total["failures"])


def _spent(
    w: World, o: Outcome, walk: Walk, drag: Array, detect: Array, reschedule: Array
) -> b.Spent:
    total, p = walk.total, w.policy
    failures, shape = total["failures"], (1, len(total["failures"]))
    slowed = walk.whole / walk.line.train * drag
    wall = sum(total[name] for name in ("init", "load", "warmup", "trained", "stall"))
    two, three = (np.broadcast_to(x, shape)[0] for x in (o.plan.two, _third(w, o)[2]))
    third_saves = o.saves / p.second_every / p.third_every
    third_held = b.kept(third_saves, p.third_keep_last) * _third(w, o)[0].stored
    return b.Spent(
        stall=total["stall"],
        slowed=slowed,
        redone=np.maximum(0.0, total["trained"] - np.broadcast_to(w.run.work, shape)[0] - slowed),
        detect=failures * detect,
        reschedule=failures * reschedule,
        init=total["init"],
        load=total["load"],
        warmup=total["warmup"],
        saves=total["writes"],
        second_saves=np.where(two, total["second"], 0.0),
        held=np.broadcast_to(o.spent.held, shape)[0],
        second_held=np.broadcast_to(o.spent.second_held, shape)[0],
        wall=np.asarray(wall + failures * (detect + reschedule)),
        third_saves=np.where(three, total["third"], 0.0),
        third_held=np.where(three, np.broadcast_to(third_held, shape)[0], 0.0),
    )
