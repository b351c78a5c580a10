"""From a World to its outcome: interval, states, goodput and the bill of the run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ckptcost.errors import InputError
from ckptcost.plan import bill as b
from ckptcost.plan import physics as ph
from ckptcost.plan.arrays import exprel, orelse, times
from ckptcost.plan.failures import States, best_interval, choose, lowest, segment
from ckptcost.plan.physics import Plan, Rhythm
from ckptcost.scenario.schema import OBJECTIVES, Array, World

HOPELESS = 1e-6
"""a run that keeps less of its time does not end"""


@dataclass
class Outcome:
    plan: Plan
    rhythm: Rhythm
    interval: Array
    saves: Array
    failures: Array
    goodput: Array
    spent: b.Spent
    bill: b.Bill

    @property
    def wall(self) -> Array:
        return self.spent.wall

    @property
    def redone_per_failure(self) -> Array:
        return self.spent.redone / self.failures

    @property
    def back_per_failure(self) -> Array:
        s = self.spent
        return (s.detect + s.reschedule + s.init + s.load + s.warmup) / self.failures

    def cost(self, objective: str) -> Array:
        return self.wall if objective == "time" else self.bill.total(objective)


def at(w: World, plan: Plan, asked: Array) -> Outcome:
    """The run at an interval; 0 is continuous checkpointing. With one that is longer than the run
    nothing is saved, and every failure begins anew."""
    work = w.run.work
    never = asked > work
    plan = ph.before_deletes(w, plan, asked)
    r = ph.rhythm(w, plan, np.where(never, work, asked))
    s = ph.states(w, plan, r)
    if np.any(never):
        nothing = replace(plan.back, load=0.0 * plan.back.load)
        bare = segment(work, np.zeros(1), np.zeros(1), nothing, plan.rate)
        s, drag = choose(never, bare, s), np.where(never, 0.0, r.drag)
        r = replace(r, drag=drag, interval=np.where(never, work, r.interval))
    saves = np.where(never, 0.0, work / r.interval)
    spent = _spent(w, plan, r, s, saves)
    goodput = work / spent.wall
    hopeless = ~(goodput >= HOPELESS)
    if np.any(hopeless):
        goodput, spent = orelse(goodput, 0.0), spent.endless(hopeless)
    failures, interval = times(work / r.interval, s.failures), np.where(never, asked, r.interval)
    return Outcome(plan, r, interval, saves, failures, goodput, spent, b.bill(w, plan, spent))


def _spent(w: World, plan: Plan, r: Rhythm, s: States, saves: Array) -> b.Spent:
    """What all segments take; rounding leaves no negative amounts."""
    p, segments, states = w.policy, w.run.work / r.interval, vars(s).keys() & vars(plan.back).keys()
    writes, second_writes = _writes(w, plan, r, s)
    held = b.kept(saves, p.keep_last) + b.undeleted(w, saves, r.interval + r.drag + r.stall)
    second_held = b.kept(saves / p.second_every, p.second_keep_last) * plan.second.stored
    return b.Spent(
        **{state: times(segments, getattr(s, state)) for state in ("stall", *states)},
        slowed=times(segments, r.drag),
        redone=times(segments, np.maximum(0.0, s.work - r.interval - r.drag)),
        saves=times(saves, writes),
        second_saves=times(saves, second_writes),
        held=held * plan.first.stored,
        second_held=np.where(plan.two, second_held, 0.0),
        wall=times(segments, s.total),
    )


def one_save(w: World, o: Outcome) -> b.Bill:
    """The bill of one save."""
    every = np.where(o.plan.two, 1.0 / w.policy.second_every, 0.0)
    spent = b.Spent(
        stall=o.rhythm.stall + o.rhythm.second_stall * every,
        slowed=o.rhythm.drag,
        saves=np.ones(1),
        second_saves=every,
        held=o.spent.held,
        second_held=o.spent.second_held,
        wall=o.wall / o.saves,
    )
    return b.bill(w, o.plan, spent)


def writes_per_save(w: World, plan: Plan) -> Array:
    """How often a save is written for each that can be used, cut-short ones in part."""
    open_ = np.where(w.policy.mode == "async", plan.first.lag, plan.first.stall)
    return exprel(plan.rate * open_)


def _writes(w: World, plan: Plan, r: Rhythm, s: States) -> tuple[Array, Array]:
    """Writes to each tier for each completed save: a lost period repeats those that were whole, and
    a failure that goes further back repeats all since."""
    rate, train, every = plan.rate, r.interval + r.drag, w.policy.second_every
    begun = s.work / (train * exprel(rate * train)) * np.exp(-rate * r.stall)
    drained = s.repeats * exprel(rate * plan.second.lag) / every
    is_async, first_stall = w.policy.mode == "async", s.stall - s.second_stall
    one = np.where(is_async, begun * exprel(-rate * plan.first.lag), first_stall / r.stall)
    two = np.where(is_async, drained, s.second_stall / plan.second.stall)
    alone = s.repeats * writes_per_save(w, plan)
    return np.where(plan.two, one, alone), np.where(plan.two, two, 0.0)


# --- how often ------------------------------------------------------------------------------------


def asked_interval(w: World, plan: Plan) -> Array:
    """The policy's cadence, whichever it is, as training time between saves."""
    p, work = w.policy, w.run.work
    if np.any(ph.is_endless(w, plan)[:, 0]):
        problem = "saves would follow each other without training between them"
        raise InputError(problem, "policy.interval", "use --mode async")
    asked = np.where(p.interval == 0, ph.least_interval(w, plan), p.interval)
    for way in (p.steps * p.step, 86400.0 / p.per_day, work / p.saves, _between_clocks(w, plan)):
        asked = orelse(asked, way)
    for objective in OBJECTIVES:
        wanted = p.optimal == objective
        if np.any(wanted & np.isnan(asked)):
            asked = np.where(wanted & np.isnan(asked), best(w, plan, objective), asked)
    return asked


def _between_clocks(w: World, plan: Plan) -> Array:
    """What a save leaves of the clock's time; one that takes longer misses the next begin."""
    p, r = w.policy, ph.rhythm(w, plan, w.run.work)
    drains = ph.drag(w, plan) + ph.second_drag(w, plan)
    lost = plan.first.stall + drains + r.second_stall / p.second_every
    return ((1.0 - np.ceil(-lost / p.clock)) * p.clock - lost) / ph.pace(w)


def prices(w: World, plan: Plan, objective: str) -> dict[str, Any]:
    """What a second in each state costs, and a save however long it takes, for one objective."""
    if objective == "time":
        return {"work": 1.0, "stall": 1.0, "idle": 1.0, "save": 0.0}
    first, tier = plan.first, w.tier
    parts = b.write_energy(w, tier, first), b.carry_energy(w, tier, first)
    joules = sum(orelse(each, 0.0) for each in parts)
    per_joule: Any = w.site.grid_location if objective == "carbon" else 1.0
    per_second: Any = 0.0
    save = joules * per_joule
    if objective == "cost":
        per_joule = np.where(w.cluster.price_includes_electricity, 0.0, w.site.tariff)
        few = np.where(np.isinf(w.policy.keep_last), 0.0, w.policy.keep_last)
        rented = times(b.billed_bytes(tier, few * first.stored), orelse(b.rent(tier), 0.0))
        outside = ~ph.is_inside(tier)
        per_second = w.cluster.gpus * w.cluster.gpu_price + np.where(outside, rented, 0.0)
        asking = np.where(outside, orelse(b.request_cost(tier, first), 0.0), 0.0)
        save = times(joules, orelse(b.storage_tariff(w, tier), 0.0)) + asking
    watts = b.power(w)

    def of(gpus: Array, hosts: Array) -> Array:
        return times(per_joule, (gpus + hosts) * w.site.pue) + per_second

    return {
        "work": of(watts.gpu_train, watts.host_train),
        "stall": of(watts.gpu_stall, watts.host_stall),
        "idle": of(watts.gpu_idle, watts.host_idle),
        "save": save * writes_per_save(w, plan) * np.exp(-plan.rate * first.lag),
    }


def best(w: World, plan: Plan, objective: str) -> Array:
    """The interval of least cost, and at least what drains allow. Closed form if the cost is linear
    in the time in each state; else found on the run's own bill."""
    stall, p, slow, pace = plan.first.stall, w.policy, ph.drag(w, plan), ph.pace(w)
    of, least = prices(w, plan, objective), ph.least_interval(w, plan)
    exact = best_interval(stall, plan.back, plan.rate, of, slow) / pace
    rented = (objective == "cost") & ~ph.is_inside(w.tier) & (b.rent(w.tier) > 0)
    search = plan.two | (rented & (p.keep_last > 1.0) & (w.tier.billed_on == "held"))
    search = search | (ph.further_back(w.failures) > 0) | ph.deletes_serially(w)
    if np.any(search):
        second = np.where(plan.two & (p.mode == "sync"), plan.second.stall / p.second_every, 0.0)
        mean = np.maximum(stall + second, 1e-9)
        near = best_interval(mean, plan.back, plan.rate, of, slow) / pace
        near = np.where(np.isfinite(near), near, w.run.work)
        found = _searched(w, plan, objective, near, least)
        exact = np.where(search & (plan.rate > 0), found, exact)
    return np.maximum(exact, least)


def _searched(w: World, plan: Plan, objective: str, near: Array, least: Array) -> Array:
    """Least point of the whole range that drains allow, by cost: an interval below it only waits or
    leaves saves out, and is that of a longer one. Of several valleys the deepest is taken."""

    def cost(interval: Array) -> Array:
        return at(w, plan, interval).cost(objective)

    low = np.maximum(near / 300.0, least)
    found = lowest(cost, low, np.maximum(near * 100.0, 2.0 * low))
    places = np.stack(np.broadcast_arrays(found, np.maximum(near, low), low))
    costs = cost(places)
    best = np.argmin(np.where(np.isnan(costs), np.inf, costs), axis=0, keepdims=True)
    return np.take_along_axis(places, best, 0)[0]


def evaluate(w: World) -> tuple[Outcome, Array]:
    """The outcome, and the interval that was asked for. The plan is made on the stated values, in
    column 0; only the world varies."""
    with np.errstate(all="ignore"):
        plan = ph.plan(w)
        asked = np.broadcast_to(asked_interval(w, plan), (len(w.cluster.gpus), 1))
        return at(w, plan, asked), asked
