"""The plan of a run, and the rhythm of training and saving at an interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ckptcost.plan.failures import (
    Recovery,
    States,
    choose,
    failure_rate,
    further_back,
    loads,
    lost_fraction,
    period,
    repeated,
    segment,
)
from ckptcost.plan.save import Save, delete_time, load, save
from ckptcost.scenario.schema import Array, Tier, World


@dataclass
class Plan:
    """What does not depend on the interval."""

    first: Save
    second: Save
    back: Recovery
    second_back: Recovery
    rate: Array
    lost: Array
    """failures per second that need the second tier"""
    two: Any
    """whether there is one"""


def exists(tier: Tier) -> Any:
    """Whether a second or third tier is given."""
    return (tier.id != "") | np.isfinite(tier.write)


def plan(w: World) -> Plan:
    """With all saves held that are kept, so that each further one has an old one deleted."""
    f, p = w.failures, w.policy
    first, second = save(w, w.tier), save(w, w.second_tier, from_gpus=False)
    serial = deletes_serially(w)
    if np.any(serial):
        extra, is_async = np.where(serial, delete_time(w), 0.0), p.mode == "async"
        first = _longer(first, np.where(is_async, 0.0, extra), np.where(is_async, extra, 0.0))
    two = exists(w.second_tier)
    rate = failure_rate(w)
    lost = np.where(two, rate * lost_fraction(w), 0.0)
    back = Recovery(f.detect, f.reschedule, f.init, load(w, w.tier), f.warmup)
    second_back = replace(back, load=loads(load(w, w.second_tier), f.unusable, rate))
    back = replace(back, load=loads(back.load, f.unusable, rate))
    return Plan(first, second, back, second_back, rate, lost, two)


def _longer(first: Save, stall: Array, lag: Array) -> Save:
    return replace(first, stall=first.stall + stall, lag=first.lag + lag)


# --- deleting old checkpoints -------------------------------------------------------------------


def deletes_serially(w: World) -> Any:
    """Whether a save waits for an old one to go: in its stall, or in its drain if asynchronous."""
    few = np.isfinite(w.policy.keep_last)
    return (w.policy.deleting == "serial") & few & (delete_time(w) > 0)


def before_deletes(w: World, plan: Plan, asked: Array) -> Plan:
    """The plan as it is on average over the run: its first few saves have none to delete."""
    serial = deletes_serially(w)
    if not np.any(serial):
        return plan
    spared = np.minimum(1.0, w.policy.keep_last * asked / w.run.work)
    less = np.where(serial, -delete_time(w) * spared, 0.0)
    is_async = w.policy.mode == "async"
    first = _longer(plan.first, np.where(is_async, 0.0, less), np.where(is_async, less, 0.0))
    return replace(plan, first=first)


# --- what asynchronous saving costs training ----------------------------------------------------


def lost_speed(w: World, tier: Tier) -> Array:
    """Training speed lost while a save drains to a tier: to the saver, and to data that wait."""
    slowdown = w.policy.slowdown
    return slowdown + tier.starves * (1.0 - slowdown)


def drag(w: World, plan: Plan) -> Array:
    """Training time that the drain of a save costs, on the first tier alone."""
    return lost_speed(w, w.tier) * plan.first.lag


def pace(w: World) -> Array:
    """Wall time of a second's training: more than one where asynchronous machinery slows it."""
    return np.where(w.policy.mode == "async", 1.0 / (1.0 - w.policy.pinned), 1.0)


def second_drag(w: World, plan: Plan) -> Array:
    """The same for each save, of drains on the second tier."""
    drains = plan.two & (w.policy.mode == "async")
    each = lost_speed(w, w.second_tier) * plan.second.lag / w.policy.second_every
    return np.where(drains, each, 0.0)


def least_cycle(w: World, plan: Plan) -> Array:
    """The shortest cycle that drains allow: turnaround over the saves in flight."""
    p, first = w.policy, plan.first
    own = np.where(p.staging == "before", first.lag, first.stall + first.lag)
    further = np.where(plan.two & (p.mode == "async"), plan.second.lag / p.second_every, 0.0)
    return np.maximum(own, further) / p.in_flight


def least_interval(w: World, plan: Plan) -> Array:
    """Training between two saves that leaves a drain just the time it needs; 0 if it needs none.

    This is the interval of continuous checkpointing: the next save begins when the last one is
    safe, as Orbax does it (ContinuousCheckpointingPolicy saves unless one is in progress). The save
    that it makes right after a restart, of the state just loaded, is not counted.
    """
    return np.maximum(0.0, _wanting(w, plan)) / pace(w)


def is_endless(w: World, plan: Plan) -> Any:
    """Whether continuous saving would leave no training between: above all synchronous saving."""
    return (w.policy.interval == 0) & (least_interval(w, plan) <= 0)


def _wanting(w: World, plan: Plan) -> Array:
    """Wall time of a cycle that drains need besides the stall and what they slow down."""
    return least_cycle(w, plan) - plan.first.stall - drag(w, plan)


# --- the rhythm ---------------------------------------------------------------------------------


@dataclass
class Rhythm:
    interval: Array
    """training between two saves that are really made"""
    stall: Array
    blocked: Array
    """part of the stall that waits for an earlier save to drain"""
    drag: Array
    """training time lost for each save: to drains, and to asynchronous machinery meanwhile"""
    second_stall: Array
    """of one save on the second tier"""


def rhythm(w: World, plan: Plan, asked: Array) -> Rhythm:
    """What a busy background makes of an interval: `block` waits, `skip` leaves saves out.

    An interval of 0 is continuous checkpointing: as short as drains allow, in each world.
    """
    p, stall, short = w.policy, plan.first.stall, _wanting(w, plan)
    continuous = asked == 0
    asked = np.where(continuous, least_interval(w, plan), asked)
    left_out = np.ceil(p.in_flight * short / (asked * pace(w))) / p.in_flight
    skips = (p.when_busy == "skip") & ~continuous
    interval = asked * np.where(skips, np.maximum(1.0, left_out), 1.0)
    waits = np.maximum(0.0, short - asked * pace(w))
    blocked = np.where(skips | continuous, 0.0, waits)
    is_async = p.mode == "async"
    return Rhythm(
        interval,
        stall + blocked,
        blocked,
        drag(w, plan) + second_drag(w, plan) + interval * (pace(w) - 1.0),
        np.where(plan.two & ~is_async, plan.second.stall, 0.0),
    )


def states(w: World, plan: Plan, r: Rhythm) -> States:
    """Expected seconds per completed save."""
    f, p, lag = w.failures, w.policy, plan.first.lag
    train, back = r.interval + r.drag, further_back(f)
    one = segment(train, r.stall, lag, plan.back, plan.rate, r.blocked, p.in_flight)
    if not np.any(plan.two):
        return repeated(one, back, p.second_every) if np.any(back > 0) else one
    second_lag = np.where(p.mode == "async", lag + plan.second.lag, 0.0)
    both = period(
        train,
        r.stall,
        lag,
        plan.back,
        plan.rate - plan.lost,
        p.second_every,
        r.second_stall,
        second_lag,
        plan.second_back,
        plan.lost,
    )
    found = choose(plan.two, both, one)
    return repeated(found, back, p.second_every) if np.any(back > 0) else found
