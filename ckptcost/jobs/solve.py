"""Solve: the value of one input at which a run just meets a target, found by turning that input
until it does.

Every trial chooses its interval anew, as the best for what the target counts, unless the interval
is to be kept. A run saves at least once: the interval is never longer than the run. Where nothing
reaches the target, the answer is the best that can be had and why.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from ckptcost.core.domain import UNKNOWN
from ckptcost.core.lines import OF_THE_JOB
from ckptcost.core.measures import BILLED
from ckptcost.core.numeric import known
from ckptcost.core.outcome import Outcome, Plan
from ckptcost.errors import Argument, InputError, UnknownName
from ckptcost.jobs.gates import Gate, no_percentiles
from ckptcost.jobs.knobs import KNOBS, RANGES, Knob, back_in, recovery_scaled, recovery_today
from ckptcost.jobs.model import two_tiers_at_most
from ckptcost.jobs.textbook import first_order
from ckptcost.jobs.trials import OBJECTIVES, Found, Reached, Trials
from ckptcost.scenario import Resolved

NOTHING_ELSE = -1.0
"""the circumstance of a job with nothing to get back, whose saves are safe at once"""

Status = Literal["reached", "already", "any", "infeasible"]


class Circumstance(NamedTuple):
    """The answer if getting back took another time."""

    recovery_s: float
    """NOTHING_ELSE: no recovery, and saves that are safe at once"""
    found: Found


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
    found: Found
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
    found = trials.turned(knob) if knob else trials.window()
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
    if (
        knob is not None and knob.id in ("mtbf", "recovery", "read")
    ) or not trials.plan.failures_per_s > 0:
        return []
    today_s = recovery_today(trials.s, trials.plan)
    times_s = [
        0.0,
        *((share * today_s for share in (0.1, 0.25, 0.5, 1.0)) if today_s > 0 else (60.0, 300.0)),
    ]
    if trials.plan.saved.lag_s > 0 and (
        knob is None or knob.id == "stall"
    ):  # a faster write acts through the lag
        times_s.insert(0, NOTHING_ELSE)
    found = []
    for time_s in times_s:

        def change(plan: Plan, time_s: float = time_s) -> Plan:
            if time_s == NOTHING_ELSE:
                return recovery_scaled(plan._replace(saved=plan.saved._replace(lag_s=0.0)), 0.0)
            return back_in(plan, time_s, today_s)

        found.append(
            Circumstance(time_s, trials.turned(knob, change) if knob else trials.window(change))
        )
    return found


class Shares(NamedTuple):
    """Where the wall time of a run goes; they sum to 1."""

    kept: float
    saves: float
    redone: float
    restart: float
    loading: float


def shares_of(outcome: Outcome) -> Shares:
    """Shares of the wall time; unknown where the run does not end."""
    spent, wall_s = outcome.spent, float(outcome.wall_s)
    if not 0 < wall_s < float("inf"):
        return Shares(*([UNKNOWN] * 5))
    restart_s = spent.detect_s + spent.reschedule_s + spent.init_s + spent.warmup_s
    parts = (spent.stall_s + spent.slowed_s, spent.redone_s, restart_s, spent.load_s)
    return Shares(float(outcome.goodput), *(float(part) / wall_s for part in parts))


def parts_of(outcome: Outcome, measure_id: str) -> dict[str, float]:
    """What a bill's total is made of, by cause: saves, redone, restart, loading, keeping."""
    quantity = BILLED[measure_id].field
    parts = {"saves": 0.0, "redone": 0.0, "restart": 0.0, "loading": 0.0, "keeping": 0.0}
    names = {"redone_work": "redone", "restart": "restart", "loading": "loading"}
    for line in outcome.run.of():
        amount = getattr(line, quantity)
        name = names.get(line.id, "keeping" if line.cause == "keep" else "saves")
        parts[name] += float(amount if line.id in OF_THE_JOB else known(amount, 0.0))
    return parts
