"""What `solve` found, in sentences: the answer, or why there is none."""

from __future__ import annotations

from ckptcost.core.measures import BILLED, saves_per_day
from ckptcost.core.solve import first_order_stall_s
from ckptcost.core.units import DAY_S
from ckptcost.jobs.solve import NOTHING_ELSE, Reached, Solution, parts_of, shares_of
from ckptcost.present.amounts import count, duration, number, quantity, share
from ckptcost.present.words import measured as said

PARTS = {
    "kept": "training kept",
    "saves": "saves",
    "redone": "work redone",
    "restart": "detection and restart",
    "loading": "loading",
    "keeping": "keeping the bytes",
}
_INTERVALS = {"interval": "Intervals", "saves-per-day": "Saves per day"}
_WORTH_SAYING = 5e-4
"""a smaller share is not a reason"""


def title(solution: Solution) -> str:
    what = solution.knob.label if solution.knob else _INTERVALS[solution.what]
    return f"{what[0].upper()}{what[1:]} for {solution.gate.text}"


def findings(solution: Solution) -> list[str]:
    """The answer first, then the textbook, then what it rests on."""
    ours = _range(solution) if solution.knob is None else _value(solution)
    return [*ours, *_first_order(solution), *_rests_on(solution)]


def _measure(solution: Solution, reached: Reached) -> str:
    measure = solution.gate.measure
    return f"{measure.label} is {said(reached.measured, measure.id, measure.unit)}"


def _rhythm(reached: Reached) -> str:
    return (
        f"{duration(reached.interval_s)} of training between saves"
        f" ({count(float(saves_per_day(reached.outcome)))} saves a day)"
    )


def _value(solution: Solution) -> list[str]:
    knob, needed, today = solution.knob, solution.found.needed, solution.today
    assert knob is not None
    if needed is None:
        return _infeasible(solution, knob.at_best)
    as_it_stands = f"As it stands {_measure(solution, today)}, with {_rhythm(today)}."
    there = f"{_measure(solution, needed)} by the model, with {_rhythm(needed)}"
    has = knob.unit and quantity(today.value, knob.unit)
    needs = quantity(needed.value, knob.unit)
    never = (
        " Without failures one save in the run is enough."
        if not solution.plan.failures_per_s > 0 and not solution.keep_interval
        else ""
    )
    if solution.status == "any":
        return [f"Any {knob.label} meets it: however bad it is, {there}.{never}", as_it_stands]
    times = (
        f"{number(needed.value / today.value)} times"
        if 0 < today.value < float("inf")
        else "in place of"
    )
    if solution.status == "already":
        slack = solution.today_at_best
        better = (
            ""
            if solution.keep_interval or solution.gate.holds(today.measured)
            else " once the interval is the best one"
        )
        limit = "as low as" if knob.more_is_better else "as much as"
        return [
            (
                f"Today's {knob.label}, {has}, is enough{better}: {_measure(solution, slack)}, with"
                f" {_rhythm(slack)}."
            ),
            f"It could be {limit} {needs} ({times} today's): there {there}.{never}",
            *([as_it_stands] if better else []),
        ]
    return [f"It takes a {knob.label} of {needs}, {times} today's {has}: {there}.", as_it_stands]


def _infeasible(solution: Solution, at_best: str) -> list[str]:
    best = solution.found.at_best
    work_s = float(solution.resolved.scenario.work_s)
    because = reasons(solution, best)
    if solution.gate.measure.id == "wall" and solution.gate.limit < work_s:
        because = f"training alone takes {duration(work_s)} of it"
    found = [f"INFEASIBLE: even with {at_best} {_measure(solution, best)}: {because}."]
    o = best.outcome
    if solution.knob and solution.knob.id in ("write", "bandwidth"):
        left_s = float(
            o.plan.saved.stall_s
            if solution.resolved.scenario.policy.mode == "sync"
            else o.plan.saved.stall_s + o.plan.saved.lag_s
        )
        if left_s > 1e-3:
            found.append(
                f"A save would still take {duration(left_s)}: tier.setup, file creation, links"
                " (cluster.node_nic), copies out of the GPUs."
            )
    return [
        *found,
        f"As it stands {_measure(solution, solution.today)}, with {_rhythm(solution.today)}.",
    ]


def reasons(solution: Solution, reached: Reached) -> str:
    """What stands in the way, the largest part first."""
    measure = solution.gate.measure
    if measure.id in BILLED and measure.id != "gpu_hours":
        parts = parts_of(reached.outcome, measure.id)
        whole = sum(parts.values())
        named = [
            (value, f"{PARTS[name]} {said(value, measure.id, measure.unit)}")
            for name, value in parts.items()
        ]
    else:
        shares = shares_of(reached.outcome)._asdict()
        del shares["kept"]
        whole = 1.0
        named = [(value, f"{PARTS[name]} {share(value)}") for name, value in shares.items()]
    if not 0 < whole < float("inf") or any(value != value for value, _ in named):
        return "the run never ends"
    of = " of the time" if whole == 1.0 else ""
    return (
        ", ".join(
            words for value, words in sorted(named, reverse=True) if value > _WORTH_SAYING * whole
        )
        + of
    )


def _range(solution: Solution) -> list[str]:
    shortest, longest, best = solution.found.needed, solution.found.longest, solution.found.at_best
    if shortest is None or longest is None:
        return _infeasible(solution, "the best interval")
    work_s = float(solution.resolved.scenario.work_s)
    last = " (one save in the run)" if longest.interval_s >= work_s else ""
    days = [count(float(saves_per_day(each.outcome))) for each in (longest, shortest, best)]
    spans = (
        f"{duration(shortest.interval_s)} to {duration(longest.interval_s)}{last} of training"
        " between saves"
    )
    first = (
        f"It takes {days[0]} to {days[1]} saves a day, that is {spans}"
        if solution.what == "saves-per-day"
        else f"It takes {spans}, that is {days[0]} to {days[1]} saves a day"
    )
    today = "meets it" if solution.status == "already" else "misses it"
    return [
        f"{first}.",
        f"Best: {_rhythm(best)}, where {_measure(solution, best)}.",
        (
            f"Today's interval {today}: {_measure(solution, solution.today)}, with"
            f" {_rhythm(solution.today)}."
        ),
    ]


def _first_order(solution: Solution) -> list[str]:
    if not solution.first_order:
        return []
    if solution.knob is None:
        shortest, longest = (duration(value) for value in solution.first_order)
        return [f"To first order (C/tau + tau/2M + L/M = 1-G): {shortest} to {longest}."]
    formula = {
        "stall": "C = ((1-G) - L/M)^2 * M/2",
        "write": "bytes / (((1-G) - L/M)^2 * M/2 - fixed time)",
        "recovery": "L = ((1-G) - sqrt(2C/M)) * M",
        "mtbf": "sqrt(2C/M) + L/M = 1-G, solved for M",
    }
    if solution.knob.id == "write" and solution.resolved.scenario.policy.mode == "async":
        formula["write"] = "bytes / (((1-G) - sqrt(2C/M)) * M - recovery - fixed time)"
    return [
        f"To first order {quantity(solution.first_order[0], solution.knob.unit)}:"
        f" {formula[solution.knob.id]}."
    ]


def _rests_on(solution: Solution) -> list[str]:
    """The target without a way back, where it is out of reach with one; and the saves a day it then
    asks for."""
    if solution.found.needed is not None or not solution.circumstances:
        return []
    easiest = solution.circumstances[0]
    needed = easiest.found.needed
    if needed is None:
        return []
    safe = " and saves that are safe at once" if easiest.recovery_s == NOTHING_ELSE else ""
    lead = f"Only with nothing to get back after a failure{safe} could it be met"
    if solution.knob is None:
        longest = easiest.found.longest
        days = [
            count(float(saves_per_day(each.outcome)))
            for each in (longest, needed)
            if each is not None
        ]
        found = [f"{lead}: by {' to '.join(days)} saves a day."]
    else:
        limit = "at least" if solution.knob.more_is_better else "at most"
        found = [
            f"{lead}: with a {solution.knob.label} of {limit}"
            f" {quantity(needed.value, solution.knob.unit)} and {_rhythm(needed)}."
        ]
    if solution.gate.measure.id == "goodput" and not solution.keep_interval:
        rate, goodput = float(solution.plan.failures_per_s), solution.gate.limit
        stall_s = float(first_order_stall_s(goodput, 0.0, 1.0 / rate))
        found.append(
            f"To first order that is a stall of {duration(stall_s)} = (1-G)^2 * M/2 and, at that"
            f" stall, failures / (1-G) = {number(DAY_S * rate)} / {number(1.0 - goodput)} ="
            f" {count(DAY_S * rate / (1.0 - goodput))} saves a day."
        )
    return found
