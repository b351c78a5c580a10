"""The answer of `solve` as a study: what is needed, what it becomes, where the rest goes, and what
it rests on."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ckptcost.first.core.cautions import cautions_of
from ckptcost.first.core.measures import BILLED, Measure, saves_per_day
from ckptcost.first.core.outcome import Outcome
from ckptcost.first.core.quantities import unit_of_people
from ckptcost.first.core.solve import first_order_stall_s
from ckptcost.first.core.units import DAY_S, to_hours, to_kwh
from ckptcost.first.jobs.gates import GateVerdict
from ckptcost.first.jobs.solve import (
    NOTHING_ELSE,
    Circumstance,
    Knob,
    Reached,
    Solution,
    parts_of,
    read_today,
    recovery_s,
    shares_of,
)
from ckptcost.first.present.amounts import count, duration, number, quantity, share
from ckptcost.first.present.words import caution_text
from ckptcost.first.present.words import result_text as said
from ckptcost.first.report.study import (
    ROW_UNIT,
    Column,
    Study,
    Table,
    hidden,
    named,
    plain,
    table_of,
)

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
    ours = _range(solution) if solution.knob is None else _value(solution, solution.knob)
    return [*ours, *_first_order(solution), *_rests_on(solution)]


def _measure(solution: Solution, reached: Reached) -> str:
    measure = solution.gate.measure
    return f"{measure.label} is {said(reached.measured, measure.id, measure.unit)}"


def _days(reached: Reached) -> str:
    return count(float(saves_per_day(reached.outcome)))


def _rhythm(reached: Reached) -> str:
    between = f"{duration(reached.interval_s)} of training between saves"
    return f"{between} ({_days(reached)} saves a day)"


def _as_it_stands(solution: Solution) -> str:
    today = solution.today
    return f"As it stands {_measure(solution, today)}, with {_rhythm(today)}."


def _value(solution: Solution, knob: Knob) -> list[str]:
    needed = solution.found.needed
    if needed is None:
        return _infeasible(solution, knob.at_best)
    there = f"{_measure(solution, needed)} by the model, with {_rhythm(needed)}"
    today = solution.today.value
    times = f"{number(needed.value / today)} times" if 0 < today < math.inf else "in place of"
    needs, has = quantity(needed.value, knob.unit), knob.unit and quantity(today, knob.unit)
    if solution.status == "any":
        any_ = f"Any {knob.label} meets it: however bad it is, {there}.{_never(solution)}"
        return [any_, _as_it_stands(solution)]
    if solution.status != "already":
        takes = f"It takes a {knob.label} of {needs}, {times} today's {has}: {there}."
        return [takes, _as_it_stands(solution)]
    slack = solution.today_at_best
    better = not (solution.keep_interval or solution.gate.holds(solution.today.measured))
    limit = "as low as" if knob.more_is_better else "as much as"
    return [
        (
            f"Today's {knob.label}, {has}, is enough"
            f"{' once the interval is the best one' if better else ''}:"
            f" {_measure(solution, slack)}, with {_rhythm(slack)}."
        ),
        f"It could be {limit} {needs} ({times} today's): there {there}.{_never(solution)}",
        *([_as_it_stands(solution)] if better else []),
    ]


def _never(solution: Solution) -> str:
    if solution.plan.failures_per_s > 0 or solution.keep_interval:
        return ""
    return " Without failures one save in the run is enough."


def _infeasible(solution: Solution, at_best: str) -> list[str]:
    best = solution.found.at_best
    work_s = float(solution.resolved.scenario.work_s)
    because = reasons(solution, best)
    if solution.gate.measure.id == "wall" and solution.gate.limit < work_s:
        because = f"training alone takes {duration(work_s)} of it"
    return [
        f"INFEASIBLE: even with {at_best} {_measure(solution, best)}: {because}.",
        *_left_of_a_save(solution, best),
        _as_it_stands(solution),
    ]


def _left_of_a_save(solution: Solution, best: Reached) -> list[str]:
    """What no rate of the tier takes away."""
    saved = best.outcome.plan.saved
    is_sync = solution.resolved.scenario.policy.mode == "sync"
    left_s = float(saved.stall_s if is_sync else saved.stall_s + saved.lag_s)
    if solution.knob is None or solution.knob.id not in ("write", "bandwidth") or left_s <= 1e-3:
        return []
    return [
        f"A save would still take {duration(left_s)}: tier.setup, file creation, links"
        " (cluster.node_nic), copies out of the GPUs."
    ]


def reasons(solution: Solution, reached: Reached) -> str:
    """What stands in the way, the largest part first."""
    measure = solution.gate.measure
    if _is_billed(measure):
        parts = parts_of(reached.outcome, measure.id)
        whole, of = sum(parts.values()), ""
        named = {name: said(value, measure.id, measure.unit) for name, value in parts.items()}
    else:
        parts = shares_of(reached.outcome)._asdict()
        del parts["kept"]
        whole, of = 1.0, " of the time"
        named = {name: share(value) for name, value in parts.items()}
    if not 0 < whole < math.inf or any(value != value for value in parts.values()):
        return "the run never ends"
    told = [(value, f"{PARTS[name]} {named[name]}") for name, value in parts.items()]
    large = [words for value, words in sorted(told, reverse=True) if value > _WORTH_SAYING * whole]
    return ", ".join(large) + of


def _range(solution: Solution) -> list[str]:
    shortest, longest, best = solution.found.needed, solution.found.longest, solution.found.at_best
    if shortest is None or longest is None:
        return _infeasible(solution, "the best interval")
    work_s = float(solution.resolved.scenario.work_s)
    last = " (one save in the run)" if longest.interval_s >= work_s else ""
    days = f"{_days(longest)} to {_days(shortest)} saves a day"
    spans = (
        f"{duration(shortest.interval_s)} to {duration(longest.interval_s)}{last} of training"
        " between saves"
    )
    first = (
        f"It takes {days}, that is {spans}"
        if solution.what == "saves-per-day"
        else f"It takes {spans}, that is {days}"
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
    needed, longest = easiest.found.needed, easiest.found.longest
    if needed is None:
        return []
    safe = " and saves that are safe at once" if easiest.recovery_s == NOTHING_ELSE else ""
    lead = f"Only with nothing to get back after a failure{safe} could it be met"
    if solution.knob is None:
        days = " to ".join(_days(each) for each in (longest, needed) if each is not None)
        return [f"{lead}: by {days} saves a day.", *_first_order_days(solution)]
    limit = "at least" if solution.knob.more_is_better else "at most"
    with_ = f"{solution.knob.label} of {limit} {quantity(needed.value, solution.knob.unit)}"
    return [f"{lead}: with a {with_} and {_rhythm(needed)}.", *_first_order_days(solution)]


def _first_order_days(solution: Solution) -> list[str]:
    if solution.gate.measure.id != "goodput" or solution.keep_interval:
        return []
    rate, goodput = float(solution.plan.failures_per_s), solution.gate.limit
    stall_s = float(first_order_stall_s(goodput, 0.0, 1.0 / rate))
    return [
        f"To first order that is a stall of {duration(stall_s)} = (1-G)^2 * M/2 and, at that"
        f" stall, failures / (1-G) = {number(DAY_S * rate)} / {number(1.0 - goodput)} ="
        f" {count(DAY_S * rate / (1.0 - goodput))} saves a day."
    ]


_NOTHING = 1e-7
"""shares and seconds below it are what a knob at its end leaves"""


def study_of(solution: Solution) -> Study:
    """The study of one solution; its gate is missed where nothing reaches the target."""
    r, gate, needed = solution.resolved, solution.gate, solution.found.needed
    reached = solution.found.reached
    # where anything will do, the worst of all is no scenario to be warned of
    judged = solution.today if solution.status == "any" else reached
    held = [c for c in cautions_of(r.scenario, judged.outcome) if bool(c.holds)]
    of = "" if needed is not None else "the best that can be had"
    return Study(
        kind="solution",
        title=title(solution),
        about=_about(solution),
        question={
            "what": solution.what,
            "for": gate.text,
            "keep_interval": solution.keep_interval,
            "interval_best_for": solution.objective,
        },
        tables=[_answer(solution), _parts(solution), *_circumstances(solution)],
        findings=findings(solution),
        warnings=[(c.code, caution_text(c)) for c in held],
        gates=[GateVerdict(gate, reached.measured, needed is not None, of)],
        resolved=[r],
    )


def _about(solution: Solution) -> list[str]:
    r = solution.resolved
    best_for = f"chosen anew at every trial, the best for {solution.objective}"
    if solution.knob is None:
        best_for = "what is asked for"
    elif solution.keep_interval:
        best_for = "kept as it is"
    about = [
        f"{r.name or 'Scenario'}; {r.names.get('tier', 'tier')}; {r.scenario.policy.mode}.",
        f"The interval is {best_for}.",
    ]
    if solution.plan.second is not None and solution.what in _OF_THE_FIRST_TIER:
        about.append("It is the first tier that is asked about; the second stays as it is.")
    return about


_OF_THE_FIRST_TIER = ("write", "read", "bandwidth", "stall")


def _share(value: float) -> float | None:
    return 0.0 if value < _NOTHING else plain(value)


def _unit_of(measure: Measure) -> str:
    return unit_of_people(measure.unit) or "share"


def result_in_units(value: float, measure: Measure) -> float | None:
    """A result in people's units."""
    unit = unit_of_people(measure.unit)
    return plain(to_kwh(value) if unit == "kWh" else to_hours(value) if unit == "GPU-h" else value)


def _facts(reached: Reached | None) -> list[float | None]:
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


Rows = list[dict[str, Any]]


def _answer(solution: Solution) -> Table:
    """Today beside what is needed; for a range its two ends and the best."""
    found = solution.found
    title = "The answer" if found.needed else "The best that can be had"
    knob = solution.knob
    own, rows = _ends_answer(solution) if knob is None else _knob_answer(solution, knob)
    columns = (
        Column("item", ""),
        Column("today", "today", ROW_UNIT, "the scenario as it stands"),
        *own,
        *hidden(
            "id",
            Column("unit", "unit", meaning="of today and needed"),
            Column(
                "status",
                "status",
                meaning="reached, already (today is enough), any (every value is), or infeasible",
            ),
        ),
    )
    status = {"status": solution.status}
    return Table("answer", title, columns, [row | status for row in rows])


def _ends_answer(solution: Solution) -> tuple[tuple[Column, ...], Rows]:
    """Of a question for the interval."""
    found = solution.found
    shown = {
        "today": solution.today,
        "shortest": found.needed,
        "best": found.at_best,
        "longest": found.longest,
    }
    rows = [_reached_row(solution, shown), *_fact_rows(shown, ())]
    if solution.first_order:
        ends = dict(zip(("shortest", "longest"), solution.first_order, strict=True))
        row = {"item": "interval to first order", "id": "first_order", "unit": "s", **ends}
        rows.insert(2, row)
    return tuple(Column(name, name, ROW_UNIT) for name in ("shortest", "best", "longest")), rows


def _knob_answer(solution: Solution, knob: Knob) -> tuple[tuple[Column, ...], Rows]:
    """Of a question for one of the scenario's figures."""
    last = "needed" if solution.found.needed else "at_best"
    today = plain(solution.today.value)
    is_told = solution.status in ("reached", "already")
    value = plain(solution.found.reached.value) if is_told else None
    head = {"item": knob.label, "id": knob.id, "unit": knob.unit, "today": today, last: value}
    rows: Rows = [head | {"factor": value / today if value is not None and today else None}]
    if knob.id == "bandwidth":
        over = read_today(solution.resolved.scenario, solution.plan) / solution.today.value
        reads = {
            "today": plain(solution.today.value * over),
            last: plain(value * over) if value else None,
        }
        rows.append({"item": "read rate with it", "id": "read", "unit": knob.unit, **reads})
    rows += [
        {"item": "the same to first order", "id": "first_order", "unit": knob.unit, last: plain(s)}
        for s in solution.first_order
    ]
    asked = {knob.id}
    if knob.id == "stall" and solution.plan.second is None:
        asked.add("mean_stall")  # with a second tier it is more than what was asked for
    shown = {"today": solution.today, last: solution.found.reached}
    rows += [_reached_row(solution, shown), *_fact_rows(shown, asked)]
    columns = (
        Column(last, _end_label(solution), ROW_UNIT),
        Column("factor", "factor", "1", "needed over today"),
    )
    return columns, rows


def _end_label(solution: Solution) -> str:
    """How the end that a knob was turned to is called."""
    if not solution.found.needed:
        return "at best"
    return "at worst" if solution.status == "any" else "needed"


def _reached_row(solution: Solution, shown: Mapping[str, Reached | None]) -> dict[str, Any]:
    """What the target measures."""
    measure = solution.gate.measure
    values = {
        name: result_in_units(each.measured, measure) if each else None
        for name, each in shown.items()
    }
    return {"item": measure.label, "id": measure.id, "unit": _unit_of(measure), **values}


def _fact_rows(shown: Mapping[str, Reached | None], asked: Collection[str]) -> Rows:
    """What else it becomes, but for what was asked for."""
    facts = {name: _facts(each) for name, each in shown.items()}
    return [
        {"item": words, "id": name, "unit": unit, **{at: fact[i] for at, fact in facts.items()}}
        for i, (name, words, unit) in enumerate(FACTS)
        if name not in asked and any(fact[i] for fact in facts.values())
    ]


def _whole(value: float, seen: float) -> float:
    """Without the residue of a search that ends where a part vanishes."""
    return 0.0 if abs(value) <= seen else value


def _parts(solution: Solution) -> Table:
    """Where the time, or what the target counts, goes."""
    measure, found = solution.gate.measure, solution.found
    last, label = found.reached, _end_label(solution)
    if solution.knob is None:
        label = "at the best interval"
        last = last if _is_billed(measure) else found.at_best
    return parts_table(measure, solution.today.outcome, last.outcome, ("today", label))


def _is_billed(measure: Measure) -> bool:
    return measure.id in BILLED and measure.id != "gpu_hours"


def parts_table(measure: Measure, one: Outcome, two: Outcome, labels: tuple[str, str]) -> Table:
    """Where the time of two runs, or what a measure counts of them, goes."""
    unit, title, rows = "share", "Where the time goes", _share_rows(one, two)
    if _is_billed(measure):
        unit, title = _unit_of(measure), f"What the {measure.label} is made of"
        rows = _billed_rows(measure, parts_of(one, measure.id), parts_of(two, measure.id))
    columns = (*named("part"), Column("today", labels[0], unit), Column("then", labels[1], unit))
    return Table("parts", title, columns, rows)


def _share_rows(one: Outcome, two: Outcome) -> Rows:
    before, after = shares_of(one)._asdict(), shares_of(two)._asdict()
    return [
        {"part": PARTS[name], "today": _share(before[name]), "then": _share(then)}
        for name, then in after.items()
    ]


def _billed_rows(measure: Measure, today: Mapping[str, float], then: Mapping[str, float]) -> Rows:
    sizes = (abs(value) for value in (*today.values(), *then.values()))
    # less is the residue of a search that ends where a part vanishes
    seen = 1e-9 * max((size for size in sizes if size < math.inf), default=0.0)
    return [
        {
            "part": PARTS[name],
            **{
                at: result_in_units(0.0 if abs(part[name]) <= seen else part[name], measure)
                for at, part in (("today", today), ("then", then))
            },
        }
        for name in then
        if abs(today[name]) > seen or not abs(then[name]) <= seen
    ]


def _circumstances(solution: Solution) -> Sequence[Table]:
    if not solution.circumstances:
        return ()
    measure = solution.gate.measure
    columns = (
        Column("back", "getting back takes", of=_back_text),
        Column("reached", "met", "bool", of=lambda each: each.found.needed is not None),
        *_asked(solution),
        Column(
            "best",
            "best reachable",
            _unit_of(measure),
            of=lambda each: result_in_units(each.found.at_best.measured, measure),
        ),
        Column(
            "recovery",
            "time to get back",
            "s",
            shown=False,
            of=lambda each: max(each.recovery_s, 0.0),
        ),
    )
    title = "If getting back from a failure took another time"
    return [table_of("circumstances", title, columns, solution.circumstances)]


def _back_text(each: Circumstance) -> str:
    if each.recovery_s == NOTHING_ELSE:
        return "nothing, saves safe at once"
    return duration(each.recovery_s)


def _asked(solution: Solution) -> tuple[Column, ...]:
    """What each circumstance asks for: a value with its interval, or from where to where."""
    if solution.knob:
        return (
            Column(
                "needed",
                "needed",
                solution.knob.unit,
                of=lambda each: each.found.needed and each.found.needed.value,
            ),
            Column("interval", "interval", "s", of=lambda each: _facts(each.found.needed)[0]),
            Column(
                "saves_per_day",
                "saves a day",
                "count",
                of=lambda each: _facts(each.found.needed)[1],
            ),
        )
    if solution.what == "saves-per-day":
        return (
            Column("from", "from", "count", of=lambda each: _facts(each.found.longest)[1]),
            Column("to", "to", "count", of=lambda each: _facts(each.found.needed)[1]),
        )
    return (
        Column("from", "from", "s", of=lambda each: _facts(each.found.needed)[0]),
        Column("to", "to", "s", of=lambda each: _facts(each.found.longest)[0]),
    )
