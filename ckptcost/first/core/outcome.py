"""From a scenario to its outcome: save time, interval, states, and the two bills (one save, the
whole run)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ckptcost.first.core import failures as fail
from ckptcost.first.core import optimum, timing
from ckptcost.first.core.bill import (
    Bill,
    Spent,
    bill_of,
    billed_bytes,
    crosses_network,
    electricity_usd_per_j,
    is_local,
    rent_usd_per_byte_s,
    save_steps_w,
    states_w,
    storage_usd_per_j,
    stored_j,
)
from ckptcost.first.core.domain import Number, Policy, Scenario
from ckptcost.first.core.energy import carried_j
from ckptcost.first.core.failures import Recovery, States, period
from ckptcost.first.core.money import kept_saves, request_usd
from ckptcost.first.core.numeric import (
    ceil,
    exp,
    exprel,
    isnan,
    maximum,
    minimum,
    or_otherwise,
    ratio,
    times,
    where,
)
from ckptcost.first.core.quantities import BY_OBJECTIVE
from ckptcost.first.core.timing import Cycle, Save
from ckptcost.first.core.units import DAY_S


class Plan(NamedTuple):
    """What does not depend on the interval."""

    saved: Save
    second: Save | None
    recovery: Recovery
    second_recovery: Recovery | None
    failures_per_s: Number
    lost_per_s: Number
    """failures that the first tier's copy does not survive, where a second tier is there to catch
    them"""


class Outcome(NamedTuple):
    plan: Plan
    asked_s: Number
    """the interval that was asked for"""
    interval_s: Number
    """training time between saves that are really made"""
    cycle: Cycle
    states: States
    saves: Number
    wall_s: Number
    goodput: Number
    failures: Number
    mean_stall_s: Number
    """training held up per save, a second tier's share included"""
    run: Bill
    one_save: Bill
    spent: Spent
    gpu_step_w: Number
    """fall of the GPUs' power when a save holds training up"""
    host_step_w: Number
    """the same of the rest of their nodes"""


def plan_of(s: Scenario) -> Plan:
    """Save and recovery times, and the failure rates by what they destroy."""
    saved = timing.save(s.checkpoint, s.tier, s.cluster, s.policy)
    rate = fail.job_failures_per_s(s.failures, s.cluster)
    recovery = _recovery(s, timing.load_s(s.checkpoint, s.tier, s.cluster))
    if s.second_tier is None:
        return Plan(saved, None, recovery, None, rate, 0.0 * rate)
    second = timing.save(s.checkpoint, s.second_tier, s.cluster, s.policy, staged=False)
    second_recovery = _recovery(s, timing.load_s(s.checkpoint, s.second_tier, s.cluster))
    return Plan(saved, second, recovery, second_recovery, rate, rate * first_lost_fraction(s))


def first_lost_fraction(s: Scenario) -> Number:
    """Share of the failures that the first tier's copy does not survive; copies in other nodes may
    share a rack."""
    if s.tier.survives == "site":
        return 0.0
    if s.tier.survives == "node":
        return fail.rack_loss_fraction(s.failures, s.cluster)
    return fail.node_loss_fraction(s.failures, s.cluster)


def _recovery(s: Scenario, load_s: Number) -> Recovery:
    f = s.failures
    return Recovery(f.detect_s, f.reschedule_s, f.init_s, load_s, f.warmup_s)


def busiest_s(plan: Plan, policy: Policy) -> Number:
    """Time that each save must make room for: its own turnaround, or its part of a slower second
    tier's drain."""
    own_s = timing.turnaround_s(plan.saved, policy)
    if plan.second is None or policy.mode == "sync":
        return own_s
    return maximum(own_s, plan.second.lag_s / policy.second_every)


def states_at(s: Scenario, plan: Plan, interval_s: Number) -> tuple[Cycle, States, Number]:
    """(rhythm, expected seconds per completed save, work time lost to draining) at a given
    interval."""
    p = s.policy
    drag_s = p.slowdown_fraction * plan.saved.lag_s
    cycle = timing.backpressure(interval_s, plan.saved, p, drag_s, busiest_s(plan, p))
    kept_s = cycle.interval_s
    if plan.second is None or plan.second_recovery is None:
        return (
            cycle,
            fail.segment(
                kept_s + drag_s,
                cycle.stall_s,
                plan.saved.lag_s,
                plan.recovery,
                plan.failures_per_s,
                cycle.blocked_s,
                p.in_flight,
            ),
            drag_s,
        )
    if p.mode == "async":
        second_stall_s, second_lag_s = 0.0 * kept_s, plan.saved.lag_s + plan.second.lag_s
        drag_s = drag_s + p.slowdown_fraction * plan.second.lag_s / p.second_every
    else:
        second_stall_s, second_lag_s = plan.second.stall_s, 0.0 * kept_s
    states = period(
        kept_s + drag_s,
        cycle.stall_s,
        plan.saved.lag_s,
        plan.recovery,
        plan.failures_per_s - plan.lost_per_s,
        p.second_every,
        second_stall_s,
        second_lag_s,
        plan.second_recovery,
        plan.lost_per_s,
    )
    return cycle, states, drag_s


def rates_for(s: Scenario, plan: Plan, objective: str) -> optimum.Rates:
    """Cost per second in each state for one objective; carbon is operational, location-based, as in
    every table."""
    if objective == "time":
        return optimum.TIME
    c, site = s.cluster, s.site
    gpu_train_w, gpu_stall_w, gpu_idle_w, host_train_w, host_stall_w, host_idle_w = states_w(s)
    local = is_local(s.tier)
    save_j = or_otherwise(stored_j(s.tier, plan.saved, site.pue), 0.0)
    if crosses_network(s.tier):
        save_j = save_j + or_otherwise(
            carried_j(plan.saved.written_bytes, s.tier.network_j_per_byte, site.pue), 0.0
        )
    per_j: Number
    per_s: Number
    if objective == "energy":
        per_j, per_s, save_cost = 1.0, 0.0, save_j
    elif objective == "carbon":
        per_j, per_s = site.kgco2e_per_j, 0.0
        save_cost = save_j * per_j
    else:
        per_j = electricity_usd_per_j(s)
        kept_bytes = billed_bytes(
            s.tier,
            times(
                where(s.policy.keep_last == float("inf"), 0.0, s.policy.keep_last),
                plan.saved.stored_bytes,
            ),
        )
        per_s = c.gpus * c.usd_per_gpu_s + (
            0.0 if local else times(kept_bytes, or_otherwise(rent_usd_per_byte_s(s.tier), 0.0))
        )
        request = (
            0.0
            if local
            else or_otherwise(
                request_usd(
                    plan.saved.written_bytes,
                    s.tier.request_bytes,
                    s.tier.usd_per_request,
                    s.tier.usd_per_byte,
                ),
                0.0,
            )
        )
        save_cost = times(save_j, or_otherwise(storage_usd_per_j(s, s.tier), 0.0)) + request
    save_cost = save_cost * writes_per_save(s, plan) * exp(-plan.failures_per_s * plan.saved.lag_s)
    train, stall, idle = (
        times(per_j, (gpu_w + host_w) * site.pue) + per_s
        for gpu_w, host_w in (
            (gpu_train_w, host_train_w),
            (gpu_stall_w, host_stall_w),
            (gpu_idle_w, host_idle_w),
        )
    )
    return optimum.Rates(train, stall, stall, idle, stall, stall, train, save_cost)


def writes_per_save(s: Scenario, plan: Plan) -> Number:
    """How often a save is written for each that can be used, cut-short ones in part:
    (exp(l*t)-1)/(l*t) over the time t it is open."""
    open_s = plan.saved.lag_s if s.policy.mode == "async" else plan.saved.stall_s
    return exprel(plan.failures_per_s * open_s)


def cost_at(s: Scenario, plan: Plan, objective: str, interval_s: Number) -> Number:
    """What the run costs at an interval, in the objective's unit, from its own bill: the judge of
    every optimum."""
    run = run_at(s, plan, interval_s)
    if objective == "time":
        return run.spent.wall_s
    return objective_amount(bill_of(s, run.spent, plan.saved, plan.second), objective)


def objective_amount(bill: Bill, objective: str) -> Number:
    """What a bill counts for an objective: J, USD, or kgCO2e (location-based; embodied is a figure
    of its own)."""
    return bill.total(BY_OBJECTIVE[objective].field)


def best_interval_s(s: Scenario, plan: Plan, objective: str) -> Number:
    """The interval with the least cost, never below what a busy drain allows.

    Closed form where the cost is linear in the time in each state; with a second tier, or when
    every save is kept for a price, a golden section over the run's bill.
    """
    rates = rates_for(s, plan, objective)
    p = s.policy
    drag_s = p.slowdown_fraction * plan.saved.lag_s
    stall_s = plan.saved.stall_s
    rented = (
        objective == "usd"
        and not is_local(s.tier)
        and _some(rent_usd_per_byte_s(s.tier) > 0)
        and _some(p.keep_last > 1.0)  # what is kept depends on how many saves there are
        and s.tier.billed_on == "held"
    )
    if plan.second is None and not rented:
        best_s = optimum.best_interval_s(stall_s, plan.recovery, plan.failures_per_s, rates, drag_s)
    else:
        mean_stall_s = stall_s + (
            plan.second.stall_s / p.second_every
            if plan.second is not None and p.mode == "sync"
            else 0.0
        )
        near_s = optimum.best_interval_s(
            maximum(mean_stall_s, 1e-9), plan.recovery, plan.failures_per_s, rates, drag_s
        )
        near_s = where(near_s == float("inf"), s.work_s, near_s)
        best_s = optimum.golden_interval_s(
            lambda interval_s: cost_at(s, plan, objective, interval_s),
            near_s / 300.0,
            near_s * 100.0,
        )
        best_s = where(plan.failures_per_s == 0, float("inf"), best_s)
    return maximum(best_s, busiest_s(plan, p) / p.in_flight - stall_s - drag_s)


def _some(flag: Any) -> bool:
    return bool(flag.any()) if hasattr(flag, "any") else bool(flag)


def interval_of(s: Scenario, plan: Plan) -> Number:
    """The policy's cadence as training time between saves."""
    p = s.policy
    match p.cadence:
        case "interval":
            return p.every
        case "steps":
            return p.every * p.step_s
        case "per_day":
            return ratio(DAY_S, p.every)
        case "saves":
            return ratio(s.work_s, p.every)
        case "clock":
            return _between_clocks_s(s, plan)
        case "optimal":
            return best_interval_s(s, plan, p.objective)


def _between_clocks_s(s: Scenario, plan: Plan) -> Number:
    """Training between saves that begin by the clock: what a save leaves of its time.

    A save that takes longer than the clock's time misses the next begin, and training goes on until
    the one after.
    """
    p = s.policy
    lost_s = plan.saved.stall_s + p.slowdown_fraction * plan.saved.lag_s
    if plan.second is not None:
        second = plan.second
        behind = p.mode == "async"
        lost_s = (
            lost_s
            + (p.slowdown_fraction * second.lag_s if behind else second.stall_s) / p.second_every
        )
    begins = 1.0 - ceil(-ratio(lost_s, p.every))  # those until training gets any time
    return or_otherwise(begins * p.every - lost_s, p.every)


def evaluate(s: Scenario) -> Outcome:
    """Everything one scenario costs."""
    with np.errstate(
        over="ignore"
    ):  # an amount too large for a float is infinite, in an array as in a number
        plan = plan_of(s)
        return outcome_at(s, plan, interval_of(s, plan))


class PlannedRun(NamedTuple):
    """A run at one interval, before anything has a price."""

    interval_s: Number
    cycle: Cycle
    states: States
    drag_s: Number
    saves: Number
    spent: Spent


def run_at(s: Scenario, plan: Plan, asked_s: Number) -> PlannedRun:
    """What a run spends at one interval."""
    never = asked_s > s.work_s
    cycle, states, drag_s = states_at(s, plan, where(never, s.work_s, asked_s))
    saves = where(never, 0.0, ratio(s.work_s, cycle.interval_s))
    writes, second_writes = _writes(s, plan, cycle, states, drag_s)
    if _some(never):
        states, drag_s = _without_saves(s, plan, never, states), where(never, 0.0, drag_s)
    segments = where(never, 1.0, saves)
    length_s = where(never, s.work_s, cycle.interval_s)
    every = s.policy.second_every
    held = kept_saves(saves, s.policy.keep_last) * plan.saved.stored_bytes
    second_held = (
        kept_saves(saves / every, s.policy.second_keep_last) * plan.second.stored_bytes
        if plan.second
        else 0.0
    )
    spent = Spent(
        times(segments, states.stall_s),
        times(segments, drag_s),
        times(segments, states.work_s - length_s - drag_s),
        times(segments, states.detect_s),
        times(segments, states.reschedule_s),
        times(segments, states.init_s),
        times(segments, states.load_s),
        times(segments, states.warmup_s),
        times(saves, writes),
        times(saves, second_writes),
        held,
        second_held,
        times(segments, states.total_s),
    )
    return PlannedRun(where(never, asked_s, cycle.interval_s), cycle, states, drag_s, saves, spent)


def _writes(
    s: Scenario, plan: Plan, cycle: Cycle, states: States, drag_s: Number
) -> tuple[Number, Number]:
    """Writes to each tier for each completed save: failures cut some short, and a lost period
    repeats those that were whole."""
    rate = plan.failures_per_s
    if plan.second is None:
        return writes_per_save(s, plan), 0.0
    if s.policy.mode == "async":
        # stalls that end, for each segment that lasts, and the part of a drain that is through
        # before the next failure
        train_s = cycle.interval_s + drag_s
        begun = ratio(states.work_s, train_s * exprel(rate * train_s)) * exp(-rate * cycle.stall_s)
        return (
            begun * exprel(-rate * plan.saved.lag_s),
            exprel(rate * plan.second.lag_s) / s.policy.second_every,
        )
    return ratio(states.stall_s - states.second_stall_s, cycle.stall_s), ratio(
        states.second_stall_s, plan.second.stall_s
    )


def _without_saves(s: Scenario, plan: Plan, never: Any, states: States) -> States:
    """A run too short for its interval is one segment with nothing to load: every failure begins it
    again."""
    bare = fail.segment(
        s.work_s,
        0.0,
        0.0,
        plan.recovery._replace(load_s=0.0 * plan.recovery.load_s),
        plan.failures_per_s,
    )
    return States(*(where(never, one, other) for one, other in zip(bare, states, strict=True)))


def outcome_at(s: Scenario, plan: Plan, asked_s: Number) -> Outcome:
    """Everything a scenario costs at one interval."""
    interval_s, cycle, states, drag_s, saves, spent = run_at(s, plan, asked_s)
    goodput = ratio(s.work_s, spent.wall_s)
    # a run that keeps less than a millionth of its time does not end: its amounts are infinite, not
    # merely absurd
    hopeless = where(
        goodput >= HOPELESS_GOODPUT, False, True
    )  # NaN too: an infinity times nothing on the way
    if _some(hopeless):
        goodput = where(isnan(goodput), 0.0, goodput)
        spent = Spent(
            *(where(hopeless, where(amount == 0, 0.0, float("inf")), amount) for amount in spent)
        )
    every = s.policy.second_every
    second_stall_s = plan.second.stall_s / every if plan.second and s.policy.mode == "sync" else 0.0
    once = Spent(
        cycle.stall_s + second_stall_s,
        drag_s,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        1.0,
        1.0 / every if plan.second else 0.0,
        spent.held_bytes,
        spent.second_held_bytes,
        ratio(spent.wall_s, saves),
    )
    return Outcome(
        plan,
        asked_s,
        interval_s,
        cycle,
        states,
        saves,
        spent.wall_s,
        goodput,
        times(where(saves > 0, saves, 1.0), states.failures),
        once.stall_s,
        bill_of(s, spent, plan.saved, plan.second),
        bill_of(s, once, plan.saved, plan.second),
        spent,
        *save_steps_w(s),
    )


HOPELESS_GOODPUT = 1e-6

HEADWAY_GOODPUT = 0.1
"""below this a run makes next to no headway, and a difference against it says nothing: it lasts
over ten times its training, and its amounts go with nearly the third power of the failure rate,
which nobody knows to a factor of two (at the best recovery, x/(exp(x)-1) = 0.1 at x = 3.6 failures
expected between two saves, and the elasticity there is x/(1-exp(-x)) - 1 = 2.7)"""


def makes_headway(outcome: Outcome) -> bool:
    """Whether a run keeps enough of its time for a comparison with it to mean anything; not so
    where nothing is known of it."""
    return float(outcome.goodput) >= HEADWAY_GOODPUT


class FailureCost(NamedTuple):
    """Mean time that one failure costs the job; NaN without failures."""

    redone_s: Number
    """training that is done again"""
    back_s: Number
    """detection, rescheduling, start, loading, warm-up, and again where a failure hits them"""

    @property
    def total_s(self) -> Number:
        return self.redone_s + self.back_s


def failure_cost(o: Outcome) -> FailureCost:
    """What the bill says of work redone, restart and loading, over the failures."""
    spent = o.spent
    back_s = spent.detect_s + spent.reschedule_s + spent.init_s + spent.load_s + spent.warmup_s
    return FailureCost(ratio(spent.redone_s, o.failures), ratio(back_s, o.failures))


class Classic(NamedTuple):
    """The textbook answers beside the exact ones, and how far apart the two are."""

    young_interval_s: Number
    daly_interval_s: Number
    exact_interval_s: Number
    first_order_goodput: Number
    """what the rules promise at the interval in use"""
    goodput_off: Number
    """how far that is from the exact goodput there"""
    daly_regret: Number
    """what Daly's interval costs over the best one's; NaN where the rule cannot be applied"""
    goodput_light: Number
    interval_light: Number
    """2 green, 1 amber, 0 red; NaN where the rule cannot be applied"""

    @property
    def validity(self) -> Number:
        """The worse light of the two; without an interval a red goodput is still red."""
        both = minimum(self.goodput_light, self.interval_light)
        alone = where(self.goodput_light == 0, 0, float("nan"))
        return where(isnan(self.interval_light), alone, both)


def classic_of(s: Scenario, outcome: Outcome, objective: str = "time") -> Classic:
    """Young's and Daly's rules on what they would be told: the mean stall and drag of a save, and
    with a second tier the rate l1 + n*l2, because a failure that the first tier does not survive
    loses half a period of n intervals instead of half of one.
    """
    plan, p = outcome.plan, s.policy
    drag_s = p.slowdown_fraction * plan.saved.lag_s
    stall_s = outcome.cycle.stall_s + drag_s
    rate = plan.failures_per_s
    if plan.second is not None:
        rate = rate + plan.lost_per_s * (p.second_every - 1.0)
        stall_s = (
            stall_s
            + (plan.second.stall_s if p.mode == "sync" else p.slowdown_fraction * plan.second.lag_s)
            / p.second_every
        )
    lost_s = plan.recovery.down_s + plan.recovery.exposed_s + plan.saved.lag_s
    first_order = (
        1.0
        - ratio(stall_s, outcome.interval_s)
        - rate * outcome.interval_s / 2.0
        - plan.failures_per_s * lost_s
    )
    mtbf_s = fail.mtbf_s(rate)
    daly_s = optimum.daly_interval_s(stall_s, mtbf_s)
    exact_s = best_interval_s(replace(s, policy=replace(p, objective="time")), plan, "time")
    best_s = exact_s if objective == "time" else best_interval_s(s, plan, objective)
    over = _regret(s, plan, objective, daly_s, best_s)
    return Classic(
        optimum.young_interval_s(stall_s, mtbf_s),
        daly_s,
        exact_s,
        first_order,
        abs(first_order - outcome.goodput),
        over,
        optimum.goodput_light(first_order, outcome.goodput),
        optimum.regret_light(over),
    )


def _regret(s: Scenario, plan: Plan, objective: str, interval_s: Number, best_s: Number) -> Number:
    """What the run at an interval costs over the best one's; NaN where either is no interval."""
    both = (interval_s > 0) & (interval_s < float("inf")) & (best_s > 0) & (best_s < float("inf"))
    own, least = (
        cost_at(s, plan, objective, where(both, each, s.work_s)) for each in (interval_s, best_s)
    )
    return where(both, optimum.regret(own, least), float("nan"))
