"""The answer of `solve` as a study: what is needed, what it becomes, where the rest goes, and what
it rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ckptcost.core.cautions import cautions_of
from ckptcost.core.measures import BILLED, Measure, saves_per_day
from ckptcost.core.outcome import Outcome
from ckptcost.core.quantities import unit_of_people
from ckptcost.core.solve import first_order_stall_s
from ckptcost.core.units import DAY_S, to_hours, to_kwh
from ckptcost.jobs.gates import GateVerdict
from ckptcost.jobs.solve import (
    NOTHING_ELSE,
    Reached,
    Solution,
    parts_of,
    read_today,
    recovery_s,
    shares_of,
)
from ckptcost.present.amounts import count, duration, number, quantity, share
from ckptcost.present.words import caution_text
from ckptcost.present.words import result_text as said
from ckptcost.report.study import ROW_UNIT, Column, Study, Table, plain

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


_NOTHING = 1e-7
"""shares and seconds below it are what a knob at its end leaves"""


def study_of(solution: Solution) -> Study:
    """The study of one solution; its gate is missed where nothing reaches the target."""
    r, gate = solution.resolved, solution.gate
    needed = solution.found.needed
    reached = needed or solution.found.at_best
    # where anything will do, the worst of all is no scenario to be warned of
    judged = solution.today if solution.status == "any" else reached
    held = [c for c in cautions_of(r.scenario, judged.outcome) if bool(c.holds)]
    best_for = (
        "kept as it is"
        if solution.keep_interval
        else f"chosen anew at every trial, the best for {solution.objective}"
    )
    about = [
        f"{r.name or 'Scenario'}; {r.names.get('tier', 'tier')}; {r.scenario.policy.mode}.",
        (
            "The interval is what is asked for."
            if solution.knob is None
            else f"The interval is {best_for}."
        ),
    ]
    if solution.plan.second is not None and solution.what in (
        "write",
        "read",
        "bandwidth",
        "stall",
    ):
        about.append("It is the first tier that is asked about; the second stays as it is.")
    return Study(
        kind="solution",
        title=title(solution),
        about=about,
        question={
            "what": solution.what,
            "for": gate.text,
            "keep_interval": solution.keep_interval,
            "interval_best_for": solution.objective,
        },
        tables=[_answer(solution), _parts(solution), *_circumstances(solution)],
        findings=findings(solution),
        warnings=[(c.code, caution_text(c)) for c in held],
        gates=[
            GateVerdict(
                gate,
                reached.measured,
                needed is not None,
                "" if needed is not None else "the best that can be had",
            )
        ],
        resolved=[r],
    )


def _share(value: float) -> float | None:
    return 0.0 if value < _NOTHING else plain(value)


def result_in_units(value: float, measure: Measure) -> tuple[float | None, str]:
    """A result in people's units."""
    unit = unit_of_people(measure.unit) or "share"
    return (
        plain(to_kwh(value) if unit == "kWh" else to_hours(value) if unit == "GPU-h" else value),
        unit,
    )


def _facts(solution: Solution, reached: Reached | None) -> list[float | None]:
    """Interval, saves a day, stall, lag, recovery, time between failures."""
    if reached is None:
        return [None] * 6
    o = reached.outcome
    rate = float(o.plan.failures_per_s)
    facts = (
        reached.interval_s,
        float(saves_per_day(o)),
        float(o.mean_stall_s),
        float(o.plan.saved.lag_s),
        recovery_s(o.plan.recovery),
        1.0 / rate if rate else float("inf"),
    )
    return [plain(0.0 if fact < _NOTHING else fact) for fact in facts]


FACTS = (
    ("interval", "interval", "s"),
    ("saves_per_day", "saves a day without failures", "count"),
    ("mean_stall", "training held up by a save", "s"),
    ("lag", "until a save is safe", "s"),
    ("recovery", "time to get back", "s"),
    ("mtbf", "time between failures", "s"),
)


def _answer(solution: Solution) -> Table:
    """Today beside what is needed; for a range its two ends and the best."""
    knob, gate, found, r = solution.knob, solution.gate, solution.found, solution.resolved
    shown: dict[str, Reached | None] = {"today": solution.today}
    if knob:
        shown["needed" if found.needed else "at_best"] = found.needed or found.at_best
    else:
        shown |= {"shortest": found.needed, "best": found.at_best, "longest": found.longest}
    rows: list[dict[str, Any]] = []
    label, last = ("needed", "needed") if found.needed else ("at best", "at_best")
    anything = solution.status == "any"
    label = "at worst" if anything else label
    if knob:
        value = plain(found.needed.value) if found.needed and not anything else None
        today = plain(solution.today.value)
        factor = value / today if value is not None and today else None
        rows.append(
            {
                "item": knob.label,
                "id": knob.id,
                "unit": knob.unit,
                "today": today,
                last: value,
                "factor": factor,
            }
        )
        if knob.id == "bandwidth":
            over = read_today(r.scenario, solution.plan) / solution.today.value
            reads = {
                "today": plain(solution.today.value * over),
                last: plain(value * over) if value else None,
            }
            rows.append({"item": "read rate with it", "id": "read", "unit": knob.unit, **reads})
        for first_order in solution.first_order:
            rows.append(
                {
                    "item": "the same to first order",
                    "id": "first_order",
                    "unit": knob.unit,
                    last: plain(first_order),
                }
            )
    values = {
        name: result_in_units(each.measured, gate.measure)[0] if each else None
        for name, each in shown.items()
    }
    rows.append(
        {
            "item": gate.measure.label,
            "id": gate.measure.id,
            "unit": (unit_of_people(gate.measure.unit) or "share"),
            **values,
        }
    )
    facts = {name: _facts(solution, each) for name, each in shown.items()}
    for i, (name, words, unit) in enumerate(FACTS):
        if (knob and knob.id == name) or (
            knob and knob.id == "stall" and name == "mean_stall" and solution.plan.second is None
        ):
            continue  # with a second tier the mean stall is more than what was asked for
        row = {
            "item": words,
            "id": name,
            "unit": unit,
            **{column: fact[i] for column, fact in facts.items()},
        }
        if any(row[column] for column in facts):
            rows.append(row)
    if not knob and solution.first_order:
        ends = dict(zip(("shortest", "longest"), solution.first_order, strict=True))
        rows.insert(
            2, {"item": "interval to first order", "id": "first_order", "unit": "s", **ends}
        )
    for row in rows:
        row["status"] = solution.status
    spans = (
        [Column(last, label, ROW_UNIT)]
        if knob
        else [Column(name, name, ROW_UNIT) for name in ("shortest", "best", "longest")]
    )
    columns = (
        Column("item", ""),
        Column("today", "today", ROW_UNIT, "the scenario as it stands"),
        *spans,
        *([Column("factor", "factor", "1", "needed over today")] if knob else []),
        Column("id", "id", shown=False),
        Column("unit", "unit", meaning="of today and needed", shown=False),
        Column(
            "status",
            "status",
            meaning="reached, already (today is enough), any (every value is), or infeasible",
            shown=False,
        ),
    )
    return Table(
        "answer", "The answer" if found.needed else "The best that can be had", columns, rows
    )


def _whole(value: float, seen: float) -> float:
    """Without the residue of a search that ends where a part vanishes."""
    return 0.0 if abs(value) <= seen else value


def _parts(solution: Solution) -> Table:
    """Where the time, or what the target counts, goes."""
    measure, found = solution.gate.measure, solution.found
    last = found.needed or found.at_best
    label = (
        "at the best interval"
        if solution.knob is None
        else "at best"
        if not found.needed
        else "at worst"
        if solution.status == "any"
        else "needed"
    )
    if solution.knob is None and not _is_billed(measure):
        last = found.at_best
    return parts_table(measure, solution.today.outcome, last.outcome, ("today", label))


def _is_billed(measure: Measure) -> bool:
    return measure.id in BILLED and measure.id != "gpu_hours"


def parts_table(measure: Measure, one: Outcome, two: Outcome, labels: tuple[str, str]) -> Table:
    """Where the time of two runs, or what a measure counts of them, goes."""
    if _is_billed(measure):
        unit, about = (
            unit_of_people(measure.unit) or "share",
            f"What the {measure.label} is made of",
        )
        today, then = parts_of(one, measure.id), parts_of(two, measure.id)
        seen = 1e-9 * max(
            (
                abs(value)
                for value in (*today.values(), *then.values())
                if value == value and abs(value) < math.inf
            ),
            default=0.0,
        )
        rows = [
            {
                "part": PARTS[name],
                "today": result_in_units(_whole(today[name], seen), measure)[0],
                "then": result_in_units(_whole(then[name], seen), measure)[0],
            }
            for name in then
            if abs(today[name]) > seen or abs(then[name]) > seen or then[name] != then[name]
        ]
    else:
        unit, about = "share", "Where the time goes"
        before, after = shares_of(one), shares_of(two)
        rows = [
            {
                "part": PARTS[name],
                "today": _share(getattr(before, name)),
                "then": _share(getattr(after, name)),
            }
            for name in after._fields
        ]
    columns = (
        Column("part", "part"),
        Column("today", labels[0], unit),
        Column("then", labels[1], unit),
    )
    return Table("parts", about, columns, rows)


def _circumstances(solution: Solution) -> Sequence[Table]:
    if not solution.circumstances:
        return ()
    knob, gate = solution.knob, solution.gate
    per_day = solution.what == "saves-per-day"
    rows = []
    for each in solution.circumstances:
        needed, longest, best = each.found.needed, each.found.longest, each.found.at_best
        row: dict[str, Any] = {
            "back": (
                "nothing, saves safe at once"
                if each.recovery_s == NOTHING_ELSE
                else duration(each.recovery_s)
            ),
            "recovery": max(each.recovery_s, 0.0),
            "reached": needed is not None,
            "best": result_in_units(best.measured, gate.measure)[0],
        }
        if knob:
            facts = _facts(solution, needed)
            row |= {
                "needed": plain(needed.value) if needed else None,
                "interval": facts[0],
                "saves_per_day": facts[1],
            }
        elif per_day:
            row |= {"from": _facts(solution, longest)[1], "to": _facts(solution, needed)[1]}
        else:
            row |= {"from": _facts(solution, needed)[0], "to": _facts(solution, longest)[0]}
        rows.append(row)
    if knob:
        asked = [
            Column("needed", "needed", knob.unit),
            Column("interval", "interval", "s"),
            Column("saves_per_day", "saves a day", "count"),
        ]
    else:
        unit = "count" if per_day else "s"
        asked = [Column("from", "from", unit), Column("to", "to", unit)]
    columns = (
        Column("back", "getting back takes"),
        Column("reached", "met", "bool"),
        *asked,
        Column("best", "best reachable", (unit_of_people(gate.measure.unit) or "share")),
        Column("recovery", "time to get back", "s", shown=False),
    )
    return [
        Table("circumstances", "If getting back from a failure took another time", columns, rows)
    ]
