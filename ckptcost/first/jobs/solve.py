"""Solve: the value of one input at which a run just meets a target, found by turning that input
until it does.

A knob acts on the core's objects, not on keys of a file: a stall is a result of many inputs, and so
is the time to get back. Every trial chooses its interval anew, as the best for what the target
counts, unless the interval is to be kept. A run saves at least once: the interval is never longer
than the run. Where nothing reaches the target, the answer is the best that can be had and why.
Where first order applies, what it says stands beside the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import isinf
from typing import Literal, NamedTuple

import numpy as np

from ckptcost.first.core import outcome as core
from ckptcost.first.core import solve as roots
from ckptcost.first.core import timing
from ckptcost.first.core.domain import UNKNOWN, UNLIMITED, Scenario, Tier
from ckptcost.first.core.failures import Recovery
from ckptcost.first.core.lines import OF_THE_JOB
from ckptcost.first.core.measures import BILLED
from ckptcost.first.core.numeric import or_otherwise, ratio
from ckptcost.first.core.outcome import Outcome, Plan, plan_of
from ckptcost.first.core.quantities import BY_OBJECTIVE
from ckptcost.first.core.solve import boundary
from ckptcost.first.errors import Argument, InputError, UnknownName
from ckptcost.first.jobs.gates import Gate, no_percentiles
from ckptcost.first.jobs.model import two_tiers_at_most, unknown_inputs, what_is_missing
from ckptcost.first.scenario import Resolved

NOTHING_ELSE = -1.0
"""the circumstance of a job with nothing to get back, whose saves are safe at once"""

Status = Literal["reached", "already", "any", "infeasible"]


OBJECTIVES = {
    "goodput": "time",
    "wall": "time",
    "gpu_hours": "time",
    **{q.measure: objective for objective, q in BY_OBJECTIVE.items()},
}
"""measures a target may name, and what the interval is best for"""
LEAST_INTERVAL_S = 1e-6

Change = Callable[[Plan], Plan]


class Knob(NamedTuple):
    """One input, or one group of them, as a single number."""

    id: str
    label: str
    unit: str
    best: float
    """as good as it can get: so much (or so little) that the next digit changes nothing"""
    worst: float
    today: Callable[[Scenario, Plan], float]
    put: Callable[[Scenario, Plan, float], tuple[Scenario, Plan]]
    at_best: str
    """what its best end is called in a sentence"""

    @property
    def more_is_better(self) -> bool:
        return self.best > self.worst


def write_today(s: Scenario, plan: Plan) -> float:
    """What the tier itself writes, before the nodes' links narrow it."""
    return float(
        timing.write_rate_bytes_per_s(s.tier, replace(s.cluster, node_nic_bytes_per_s=UNLIMITED))
    )


def read_today(s: Scenario, plan: Plan) -> float:
    rate = float(
        timing.read_rate_bytes_per_s(s.tier, replace(s.cluster, node_nic_bytes_per_s=UNLIMITED))
    )
    return rate if rate == rate else write_today(s, plan)


def _writing(tier: Tier, rate: float) -> Tier:
    return replace(
        tier,
        write_bytes_per_s=rate,
        node_write_bytes_per_s=UNLIMITED,
        gpu_write_bytes_per_s=UNLIMITED,
        write_per_s=UNLIMITED,
        save_time_s=UNKNOWN,
    )


def _reading(tier: Tier, rate: float) -> Tier:
    return replace(
        tier,
        read_bytes_per_s=rate,
        node_read_bytes_per_s=UNLIMITED,
        gpu_read_bytes_per_s=UNLIMITED,
        read_per_s=UNLIMITED,
        load_time_s=UNKNOWN,
    )


def _replan(s: Scenario) -> tuple[Scenario, Plan]:
    return s, plan_of(s)


def _put_write(s: Scenario, plan: Plan, value: float) -> tuple[Scenario, Plan]:
    # an unknown read rate follows the write rate; asked for one alone, the other stays where it is
    return _replan(replace(s, tier=_writing(_reading(s.tier, read_today(s, plan)), value)))


def _put_read(s: Scenario, plan: Plan, value: float) -> tuple[Scenario, Plan]:
    return _replan(replace(s, tier=_reading(s.tier, value)))


def _put_both(s: Scenario, plan: Plan, value: float) -> tuple[Scenario, Plan]:
    write, read = write_today(s, plan), read_today(s, plan)
    # in today's proportion; one without a limit keeps none
    return _replan(
        replace(
            s,
            tier=_writing(
                _reading(s.tier, read if read == UNLIMITED else value * read / write), value
            ),
        )
    )


def _put_stall(s: Scenario, plan: Plan, value: float) -> tuple[Scenario, Plan]:
    saved = plan.saved
    # a synchronous save writes while training waits: its storage is busy shorter or longer with it
    write_s = (
        saved.write_s * value / saved.stall_s
        if s.policy.mode == "sync" and saved.stall_s > 0
        else saved.write_s
    )
    return s, plan._replace(saved=saved._replace(stall_s=value, write_s=write_s))


def mtbf_today(s: Scenario, plan: Plan) -> float:
    return float(ratio(1.0, plan.failures_per_s))


def _put_mtbf(s: Scenario, plan: Plan, value: float) -> tuple[Scenario, Plan]:
    return _replan(replace(s, failures=replace(s.failures, mtbf_s=value)))


def recovery_s(recovery: Recovery) -> float:
    return float(recovery.down_s + recovery.exposed_s)


def recovery_today(s: Scenario, plan: Plan) -> float:
    return recovery_s(plan.recovery)


def scale_recovery(plan: Plan, share: float) -> Plan:
    """Every piece of getting back so many times as long, from either tier."""
    second = plan.second_recovery
    return plan._replace(
        recovery=Recovery(*(share * piece for piece in plan.recovery)),
        second_recovery=None if second is None else Recovery(*(share * piece for piece in second)),
    )


def back_in(plan: Plan, time_s: float, today_s: float) -> Plan:
    """The plan with another time to get back, its pieces in today's proportion."""
    if today_s > 0:
        return scale_recovery(plan, time_s / today_s)
    # nothing to keep in proportion: a fixed time in which GPUs wait
    second = plan.second_recovery
    return plan._replace(
        recovery=plan.recovery._replace(detect_s=time_s),
        second_recovery=None if second is None else second._replace(detect_s=time_s),
    )


def _put_recovery(s: Scenario, plan: Plan, value: float) -> tuple[Scenario, Plan]:
    return s, back_in(plan, value, recovery_today(s, plan))


KNOBS: dict[str, Knob] = {
    k.id: k
    for k in (
        Knob(
            "write",
            "write rate",
            "bytes_per_s",
            1e24,
            1.0,
            write_today,
            _put_write,
            "an infinitely fast write",
        ),
        Knob(
            "read",
            "read rate",
            "bytes_per_s",
            1e24,
            1.0,
            read_today,
            _put_read,
            "an infinitely fast read",
        ),
        Knob(
            "bandwidth",
            "storage bandwidth",
            "bytes_per_s",
            1e24,
            1.0,
            write_today,
            _put_both,
            "infinitely fast storage",
        ),
        Knob(
            "stall",
            "stall per save",
            "s",
            1e-9,
            1e12,
            lambda s, plan: float(plan.saved.stall_s),
            _put_stall,
            "a save that holds nothing up",
        ),
        Knob(
            "mtbf",
            "time between failures",
            "s",
            1e18,
            1e-3,
            mtbf_today,
            _put_mtbf,
            "a job that never fails",
        ),
        Knob(
            "recovery",
            "time to get back",
            "s",
            1e-9,
            1e12,
            recovery_today,
            _put_recovery,
            "getting back at once",
        ),
    )
}
RANGES = ("interval", "saves-per-day")


def same_plan(plan: Plan) -> Plan:
    return plan


class Reached(NamedTuple):
    """The model at one value of the knob."""

    value: float
    outcome: Outcome
    measured: float
    """what the target counts"""

    @property
    def interval_s(self) -> float:
        return float(self.outcome.interval_s)


class SearchResult(NamedTuple):
    """What a search found: the best that can be had, the value needed, and the far end of a
    range."""

    at_best: Reached
    needed: Reached | None
    longest: Reached | None = None

    @property
    def reached(self) -> Reached:
        """What is needed, else the best that can be had."""
        return self.needed or self.at_best


class Trials:
    """A scenario and a target, ready to be tried at any value of any knob."""

    def __init__(self, resolved: Resolved, gate: Gate, keep_interval: bool = False) -> None:
        self.resolved, self.gate, self.s = resolved, gate, resolved.scenario
        self.objective = OBJECTIVES[gate.measure.id]
        chosen_for = (self.s.policy.objective,) if self.s.policy.cadence == "optimal" else ()
        for objective in (self.objective, *chosen_for):
            if unknown_inputs(self.s, objective):
                raise what_is_missing(resolved, objective)
        with np.errstate(over="ignore"):
            self.plan = core.plan_of(self.s)
            asked_s = float(core.interval_of(self.s, self.plan))
        self.asked_s = float(self.s.work_s) if isinf(asked_s) else asked_s
        self.kept_s = self.asked_s if keep_interval else None

    @property
    def is_first_order(self) -> bool:
        """Whether a formula of first order is of this question."""
        chooses_for_time = self.kept_s is None and self.objective == "time"
        return chooses_for_time and self.plan.second is None and bool(self.plan.failures_per_s > 0)

    def gap(self, reached: Reached) -> float:
        """How far the target is exceeded, relative to it; negative where it is missed, NaN where
        the run does not end."""
        limit = self.gate.limit
        gap = (
            reached.measured - limit
            if self.gate.measure.better == "high"
            else limit - reached.measured
        )
        gap = gap / limit if limit else gap
        return min(gap, -5e-324) if gap == gap and not self.gate.holds(reached.measured) else gap

    def met(self, reached: Reached) -> bool:
        return self.gap(reached) >= 0

    def best_s(self, s: Scenario, plan: Plan) -> float:
        """The interval a trial chooses, one save in the run at least.

        Emissions of electricity are least where its energy is: what the making of the hardware
        emitted is in no target.
        """
        with np.errstate(over="ignore"):
            best_s = float(
                core.best_interval_s(
                    s, plan, "energy" if self.objective == "carbon" else self.objective
                )
            )
        if best_s != best_s:  # a trial so far off that the run never ends
            best_s = self.asked_s
        return max(min(best_s, float(s.work_s)), LEAST_INTERVAL_S)

    def trial_interval_s(self, s: Scenario, plan: Plan) -> float:
        return self.best_s(s, plan) if self.kept_s is None else self.kept_s

    def reached(self, s: Scenario, plan: Plan, value: float, interval_s: float) -> Reached:
        with np.errstate(over="ignore"):
            outcome = core.outcome_at(s, plan, interval_s)
        return Reached(value, outcome, float(self.gate.measure.of(outcome)))

    def as_it_stands(self, knob: Knob | None) -> Reached:
        return self._today(knob, self.asked_s)

    def today_at_best(self, knob: Knob | None) -> Reached:
        """Nothing changed but the interval."""
        return self._today(knob, self.trial_interval_s(self.s, self.plan))

    def _today(self, knob: Knob | None, interval_s: float) -> Reached:
        value = knob.today(self.s, self.plan) if knob else interval_s
        return self.reached(self.s, self.plan, value, interval_s)

    def at(self, knob: Knob, value: float, change: Change = same_plan) -> Reached:
        """The knob at a value."""
        s, plan = knob.put(self.s, self.plan, value)
        plan = change(plan)
        return self.reached(s, plan, value, self.trial_interval_s(s, plan))

    def search(self, knob: Knob | None, change: Change = same_plan) -> SearchResult:
        return self.turned(knob, change) if knob else self.window(change)

    def turned(self, knob: Knob, change: Change = same_plan) -> SearchResult:
        """The knob turned from its best end until the target is just met."""
        best = self.at(knob, knob.best, change)
        if not self.met(best):
            return SearchResult(best, None)
        value = boundary(lambda v: self.gap(self.at(knob, v, change)), knob.best, knob.worst)
        return SearchResult(best, self.at(knob, value, change))

    def window(self, change: Change = same_plan) -> SearchResult:
        """The shortest and the longest interval that meet the target."""
        s, plan = self.s, change(self.plan)

        def at(interval_s: float) -> Reached:
            return self.reached(s, plan, interval_s, interval_s)

        best_s = self.best_s(s, plan)
        best = at(best_s)
        if not self.met(best):
            return SearchResult(best, None)
        floor_s = best_s * 1e-9
        if (
            s.policy.when_busy == "skip"
        ):  # shorter than a drain allows, saves are left out: such an interval is never really made
            drag_s = s.policy.slowdown_fraction * plan.saved.lag_s
            busy_s = (
                core.busiest_s(plan, s.policy) / s.policy.in_flight - plan.saved.stall_s - drag_s
            )
            floor_s = min(max(floor_s, float(busy_s)), best_s)
        shortest = boundary(lambda v: self.gap(at(v)), best_s, floor_s)
        longest = boundary(lambda v: self.gap(at(v)), best_s, max(float(s.work_s), best_s))
        return SearchResult(best, at(shortest), at(longest))


def on_time_goodput(trials: Trials) -> float:
    """The goodput that a target on time comes to."""
    gate, work_s = trials.gate, float(trials.s.work_s)
    match gate.measure.id:
        case "goodput":
            return gate.limit
        case "wall":
            return min(1.0, float(ratio(work_s, gate.limit)))
        case _:
            return work_s / (work_s + gate.limit / float(trials.s.cluster.gpus))


def first_order(trials: Trials, knob: Knob | None) -> tuple[float, ...]:
    """The value needed, or both ends of a range of intervals; empty where first order does not
    apply or finds none."""
    s, plan = trials.s, trials.plan
    if not trials.is_first_order:
        return ()
    goodput = on_time_goodput(trials)
    back_s, lag_s = recovery_s(plan.recovery), float(plan.saved.lag_s)
    mtbf_s = 1.0 / float(plan.failures_per_s)
    drag_s = float(s.policy.slowdown_fraction * lag_s)
    stall_s = float(plan.saved.stall_s) + drag_s
    if knob is None:
        shortest, longest = roots.first_order_window_s(goodput, stall_s, back_s + lag_s, mtbf_s)
        return (float(shortest), float(longest)) if 0 < shortest < longest else ()
    allowed_s = float(roots.first_order_stall_s(goodput, back_s + lag_s, mtbf_s)) - drag_s
    lost_s = float(roots.first_order_lost_s(goodput, stall_s, mtbf_s))
    match knob.id:
        case "stall" if allowed_s > 0:
            return (allowed_s,)
        case "recovery" if lost_s > lag_s:
            return (lost_s - lag_s,)
        case "mtbf" if goodput < 1:
            return (float(roots.first_order_mtbf_s(goodput, stall_s, back_s + lag_s)),)
        case "write":
            fixed_s = float(timing.fixed_s(s.checkpoint, s.tier))
            moving_s = (allowed_s if s.policy.mode == "sync" else lost_s - back_s) - fixed_s
            moved = float(s.checkpoint.straggler_factor * plan.saved.written_bytes)
            return (moved / moving_s,) if moving_s > 0 else ()
    return ()


class Circumstance(NamedTuple):
    """The answer if getting back took another time."""

    recovery_s: float
    """NOTHING_ELSE: no recovery, and saves that are safe at once"""
    found: SearchResult


class Solution(NamedTuple):
    what: str
    knob: Knob | None
    """None for a range of intervals"""
    gate: Gate
    resolved: Resolved
    objective: str
    keep_interval: bool
    status: Status
    """`already`: today's value is enough (at the interval that is chosen); `any`: every value is"""
    today: Reached
    """the scenario as it stands"""
    today_at_best: Reached
    """nothing changed but the interval"""
    found: SearchResult
    circumstances: tuple[Circumstance, ...]
    """the same question for other times to get back"""
    first_order: tuple[float, ...]
    plan: Plan


def solve(resolved: Resolved, what: str, gate: Gate, keep_interval: bool = False) -> Solution:
    """What is needed of `what` (a knob, `interval` or `saves-per-day`) for the run to meet the
    gate."""
    check(what, gate, keep_interval)
    two_tiers_at_most(resolved.scenario)
    trials = Trials(resolved, gate, keep_interval)
    knob = KNOBS.get(what)
    found = trials.search(knob)
    today, today_at_best = trials.as_it_stands(knob), trials.today_at_best(knob)
    status: Status = "reached"
    if found.needed is None:
        status = "infeasible"
    elif knob and found.needed.value == knob.worst:
        status = "any"
    elif trials.met(today_at_best if knob else today):
        status = "already"
    return Solution(
        what,
        knob,
        gate,
        resolved,
        trials.objective,
        keep_interval,
        status,
        today,
        today_at_best,
        found,
        tuple(circumstances(trials, knob)),
        first_order(trials, knob),
        trials.plan,
    )


def check(what: str, gate: Gate, keep_interval: bool) -> None:
    """Questions that have no answer."""
    if what not in KNOBS and what not in RANGES:
        raise UnknownName("quantity to solve for", what, [*KNOBS, *RANGES, "price"])
    no_percentiles([gate], Argument("target"))
    if gate.measure.id not in OBJECTIVES:
        raise InputError(
            f"{gate.measure.id} is no target to solve for",
            where=Argument("target"),
            remedy="known: " + ", ".join(OBJECTIVES),
        )
    if gate.operator.startswith(">") != (gate.measure.better == "high"):
        better = ">=" if gate.measure.better == "high" else "<="
        raise InputError(
            f"{gate.text!r} is met by a worse run",
            where=Argument("target"),
            remedy=f"write {gate.measure.id}{better}...",
        )
    if keep_interval and what in RANGES:
        raise InputError("the interval is what is asked for", where=Argument("keep_interval"))


def circumstances(trials: Trials, knob: Knob | None) -> list[Circumstance]:
    """The same question for shorter ways back, down to none: a target often rests on that without
    saying so."""
    turned = knob.id if knob else ""
    if turned in ("mtbf", "recovery", "read") or not trials.plan.failures_per_s > 0:
        return []
    today_s = recovery_today(trials.s, trials.plan)
    times_s = [0.0, 60.0, 300.0]
    if today_s > 0:
        times_s = [0.0, *(share * today_s for share in (0.1, 0.25, 0.5, 1.0))]
    changes: dict[float, Change] = {
        time_s: partial(back_in, time_s=time_s, today_s=today_s) for time_s in times_s
    }
    if trials.plan.saved.lag_s > 0 and turned in ("", "stall"):
        # not of the write rate: a faster write acts through the lag
        changes = {NOTHING_ELSE: _nothing_else} | changes
    return [Circumstance(time_s, trials.search(knob, change)) for time_s, change in changes.items()]


def _nothing_else(plan: Plan) -> Plan:
    return scale_recovery(plan._replace(saved=plan.saved._replace(lag_s=0.0)), 0.0)


class WallShares(NamedTuple):
    """Where the wall time of a run goes; they sum to 1."""

    kept: float
    saves: float
    redone: float
    restart: float
    loading: float


def shares_of(outcome: Outcome) -> WallShares:
    """Shares of the wall time; unknown where the run does not end."""
    spent, wall_s = outcome.spent, float(outcome.wall_s)
    if not 0 < wall_s < float("inf"):
        return WallShares(*([UNKNOWN] * 5))
    restart_s = spent.detect_s + spent.reschedule_s + spent.init_s + spent.warmup_s
    parts = (spent.stall_s + spent.slowed_s, spent.redone_s, restart_s, spent.load_s)
    return WallShares(float(outcome.goodput), *(float(part) / wall_s for part in parts))


def parts_of(outcome: Outcome, measure_id: str) -> dict[str, float]:
    """What a bill's total is made of, by cause: saves, redone, restart, loading, keeping."""
    quantity = BILLED[measure_id].field
    parts = {"saves": 0.0, "redone": 0.0, "restart": 0.0, "loading": 0.0, "keeping": 0.0}
    names = {"redone_work": "redone", "restart": "restart", "loading": "loading"}
    for line in outcome.run.of():
        amount = getattr(line, quantity)
        name = names.get(line.id, "keeping" if line.cause == "keep" else "saves")
        parts[name] += float(amount if line.id in OF_THE_JOB else or_otherwise(amount, 0.0))
    return parts
