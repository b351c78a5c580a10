"""What `sensitivity` found: swings, elasticities, and which assumption to measure next, in
sentences and tables."""

from __future__ import annotations

from typing import Any

from ckptcost.first.core.quantities import in_people, unit_of_people
from ckptcost.first.jobs.sensitivity import MEASURED, NOISE, Lever, Response, Sensitivity, Share
from ckptcost.first.present.amounts import (
    count,
    drawn_between,
    duration,
    number,
    quantities,
    quantity,
    share,
)
from ckptcost.first.present.words import caution_text, result_text
from ckptcost.first.report.studies.run_columns import known_value, two_digits
from ckptcost.first.report.study import Column, Study, Table, hidden, named

HARDLY = 0.95
"""of its width: a range that keeps more hardly shrinks"""
_WORTH_MEASURING = 0.01
"""a smaller share of the spread is not worth a sentence"""
_STEP_OF_PEOPLE = {
    "s": (1.0, "second"),
    "bytes": (1e12, "TB"),
    "failures_per_s": (1 / 86_400, "failure a day"),
}
"""what one more of an input that is 0 means to people, by its unit"""
_SHARE_UNIT = (0.01, "per cent")


def study_of(found: Sensitivity, top: int = 12) -> Study:
    """The answer as a study; `top` rows of each table are for people, programs get all."""
    case = found.case
    return Study(
        "sensitivity",
        f"What decides the {found.measure.label}: {case.resolved.name or 'scenario'}",
        [_about(found)],
        {"of": found.measure.id, "replan": found.replan, "top": top, "draws": found.draws},
        [*_tornado(found, top), *_next(found, top), *_elasticities(found, top)],
        _findings(found),
        [(caution.code, caution_text(caution)) for caution in case.cautions],
        (),
        [case.resolved],
    )


def _unit(found: Sensitivity) -> str:
    return unit_of_people(found.measure.unit) or "share"


def _people(found: Sensitivity, value: float) -> float | None:
    return None if value != value else float(in_people(value, found.measure.unit))


def _result_text(found: Sensitivity, value: float) -> str:
    return result_text(value, found.measure.id, found.measure.unit)


def _range(found: Sensitivity, low: float, high: float) -> str:
    """A range that comes from draws, with the digits that hold."""
    if found.measure.id == "goodput":
        return f"{drawn_between(low * 100, high * 100) or number(low * 100)} %"
    if found.measure.unit == "s":
        return quantities(low, high, "s") or duration(low)
    low, high = (in_people(end, found.measure.unit) for end in (low, high))
    return drawn_between(low, high) or number(low)


def _about(found: Sensitivity) -> str:
    plan = f"the interval stays {duration(float(found.case.outcome.interval_s))}"
    if found.replan:
        plan = "the interval is chosen anew each time"
    ranged = ", no input has a range"
    if found.low < found.high:
        ranged = f", p5-p95 {_range(found, found.low, found.high)}"
    value = _result_text(found, found.value)
    return f"{found.measure.label}: {value}{ranged}; {plan}, on {found.case.tier_id}."


def _own(lever: Lever, value: float) -> str:
    if value == float("inf"):
        return "unlimited"
    return quantity(value, lever.unit) if lever.unit else count(value)


def _lever_cells(lever: Lever) -> dict[str, Any]:
    low, high = (lever.low, lever.high) if lever.has_range else (None, None)
    return {
        "input": lever.path,
        "range": quantities(low, high, lever.unit),
        "is": _own(lever, lever.value),
        "basis": lever.basis,
        "copies": "; ".join(lever.copies) or None,
        "low": low,
        "value": None if lever.value == float("inf") else lever.value,
        "high": high,
        "base_unit": lever.unit,
    }


_INPUT = (
    Column("input", "input", "", "section.key as a scenario file says it"),
    *named("is", "range"),
    Column("basis", "basis", "", "what the figure rests on"),
    *hidden(
        Column("copies", "moves with it"),
        Column("low", "low", "1", "low end of the input, in base units"),
        Column("value", "value", "1", "in base units"),
        Column("high", "high", "1", "in base units"),
        Column("base_unit", "base unit"),
    ),
)


def _shown_columns(*names: str) -> tuple[Column, ...]:
    return tuple(column._replace(shown=column.id in names) for column in _INPUT)


def _both(full: Table, top: int, *notes: str) -> list[Table]:
    """All rows for programs, the first few for people."""
    rest = len(full.rows) - top
    more = f"{rest} more in -f csv and -f json." if rest > 0 else ""
    note = " ".join(filter(None, (*notes, more)))
    return [
        full._replace(shown=False),
        full._replace(id=f"{full.id}_top", rows=full.rows[:top], note=note),
    ]


def _tornado(found: Sensitivity, top: int) -> list[Table]:
    unit = _unit(found)
    columns = (
        *_shown_columns("input", "range", "basis"),
        Column(
            "at_low", "at low", unit, "the result at the input's low end, all others as they are"
        ),
        Column("at_high", "at high", unit),
        Column(
            "swing", "swing", unit, "largest minus smallest of the results at low, value and high"
        ),
    )
    rows = [
        {
            **_lever_cells(each.lever),
            "at_low": _people(found, each.at_low),
            "at_high": _people(found, each.at_high),
            "swing": _people(found, each.swing),
        }
        for each in found.swings
    ]
    in_unit = "" if unit in ("s", "share") else f", {unit}"
    title = f"Each input through its range: {found.measure.label}{in_unit}"
    points = "The swing is in points." if unit == "share" else ""
    moving = sum(1 for each in found.swings if not each.swing <= NOISE * abs(found.value))
    full = Table("tornado", title, columns, rows)
    return _both(full, min(top, moving), points, _held_power_note(found))


def _held_power_note(found: Sensitivity) -> str:
    """A power that was derived from the training power stays where it is when that one moves."""
    derived = any(
        i.path == "cluster.gpu_stall" and "cluster.stall_fraction" in i.figure.note
        for i in found.case.resolved.inputs
    )
    moves = any(
        each.lever.path == "cluster.gpu_train" and each.swing > NOISE * abs(found.value)
        for each in found.swings
    )
    return "cluster.gpu_train moves alone, cluster.gpu_stall stays." if derived and moves else ""


def _next(found: Sensitivity, top: int) -> list[Table]:
    unit = _unit(found)
    columns = (
        *_shown_columns("input", "basis"),
        Column("share", "explains", "share", "of the result's variance, by itself"),
        Column(
            "known_low",
            "p5 if known",
            unit,
            "5th percentile with this input at its value and the others drawn as before",
        ),
        Column("known_high", "p95", unit),
        Column("width", "width left", "share", "of the p5-p95 range"),
    )
    rows = [
        {
            **_lever_cells(each.lever),
            "share": known_value(each.share),
            "known_low": _people(found, each.low),
            "known_high": _people(found, each.high),
            "width": known_value(_left(found, each)),
        }
        for each in found.shares
    ]
    together = ""
    if found.together == found.together and rows:
        together = f"Several together explain another {share(found.together)}."
    full = Table("measure_next", "Which to measure next", columns, rows)
    full, few = _both(full, top, together, f"{count(found.draws)} draws.")
    if found.measure.id == "goodput":
        return [full, few]
    ends = ("known_low", "known_high")
    return [
        full,
        few._replace(rows=[row | {end: two_digits(row[end]) for end in ends} for row in few.rows]),
    ]


def _left(found: Sensitivity, each: Share) -> float:
    """Width of the range once an input is known, over its width now."""
    width = found.high - found.low
    return (each.high - each.low) / width if 0 < width < float("inf") else float("nan")


_SLOPES = (
    Column("elasticity", "% for 1 %", "1", "d ln(result)/d ln(input)"),
    *hidden(
        Column("below", "below", "1", "the same from below: differs at a kink"),
        Column("above", "above", "1", "the same from above"),
        Column(
            "per_unit",
            "per unit",
            "1",
            "of an input that is 0: rise of the result for a unit of it, in base units",
        ),
        "note",
    ),
)


def _elasticities(found: Sensitivity, top: int) -> list[Table]:
    columns = (*_shown_columns("input", "is", "basis"), *_SLOPES)
    rows = [
        {
            **_lever_cells(each.lever),
            "elasticity": known_value(each.elasticity),
            "below": known_value(each.below),
            "above": known_value(each.above),
            "per_unit": known_value(each.per_unit),
            "note": each.note or None,
        }
        for each in found.responses
    ]
    moving = sum(1 for each in found.responses if abs(each.elasticity) > 0)
    kinks, whole = (
        [each.lever.path for each in found.responses[:top] if each.note.startswith(begin)]
        for begin in ("a kink", "over ")
    )
    notes = [
        f"At a kink, and different on its two sides: {', '.join(kinks)}." if kinks else "",
        f"{' and '.join(whole)} in steps of whole nodes." if whole else "",
    ]
    title = f"1 % more of an input: per cent of the {found.measure.label}"
    return _both(Table("elasticities", title, columns, rows), min(top, moving), *notes)


def _findings(found: Sensitivity) -> list[str]:
    return [*_to_measure(found), *_widest(found), *_strongest(found), *_at_zero(found)]


def _to_measure(found: Sensitivity) -> list[str]:
    if not found.shares:
        return ["No input has a range, so there is no spread to explain: give inputs low and high."]
    if found.never > 0:
        return [
            f"In {share(found.never)} of the draws the run never ends, so the spread has no shares:"
            " shorten the interval, or narrow the widest inputs below."
        ]
    if not found.low < found.high:
        return [f"The inputs' ranges do not move the {found.measure.label}."]
    worth = [each for each in found.to_measure if each.share >= _WORTH_MEASURING]
    said = [
        _measure_text(found, each, place)
        for place, each in zip(("first", "second", "third"), worth, strict=False)
    ]
    already = [
        each.lever.path
        for each in found.shares
        if each.lever.basis == MEASURED and each.share >= _WORTH_MEASURING
    ]
    if already:
        said.append(
            f"{' and '.join(already)} {'is' if len(already) == 1 else 'are'} measured already; what"
            " is left there is scatter."
        )
    return said


def _measure_text(found: Sensitivity, each: Share, place: str) -> str:
    head = (
        f"Measure {each.lever.path} {place}: it explains {share(each.share)} of the spread of the"
        f" {found.measure.label}; with it known the range would"
    )
    if not _left(found, each) < HARDLY:
        return f"{head} hardly shrink, as the others keep it wide."
    now, then = _range(found, found.low, found.high), _range(found, each.low, each.high)
    inside = found.low <= each.low and each.high <= found.high
    unit = "" if _unit(found) in ("s", "share") else f" {_unit(found)}"
    return f"{head} {'shrink' if inside else 'go'} from {now} to {then}{unit}."


def _widest(found: Sensitivity) -> list[str]:
    moving = [each for each in found.swings if each.swing > 0]
    if not moving:
        return []
    widest = moving[0]
    return [
        f"{widest.lever.path} moves it furthest: {_result_text(found, widest.at_low)} at"
        f" {_own(widest.lever, widest.lever.low)}, {_result_text(found, widest.at_high)} at"
        f" {_own(widest.lever, widest.lever.high)}."
    ]


def _strongest(found: Sensitivity) -> list[str]:
    moving = [
        each
        for each in found.responses
        if abs(each.elasticity) > 0 and each.lever.path != "run.work"
    ][:3]
    if not moving:
        return []
    parts = [f"{each.lever.path} {each.elasticity:+.2g} %" for each in moving]
    return [f"1 % more of an input changes it by: {', '.join(parts)}."]


def _at_zero(found: Sensitivity) -> list[str]:
    """Inputs that are 0 now and would matter."""
    said = [part for each in found.responses if (part := _from_zero(found, each))]
    return [f"Inputs that are 0 have no elasticity: {'; '.join(said)}."] if said else []


def _from_zero(found: Sensitivity, each: Response) -> str:
    lever = each.lever
    scale, words = _STEP_OF_PEOPLE.get(
        lever.unit, _SHARE_UNIT if lever.path.endswith(("slowdown", "fraction")) else (0.0, "")
    )
    change = each.per_unit * scale
    if not words or not abs(change) > 1e-4 * abs(found.value):
        return ""
    direction = "adds" if change > 0 else "takes away"
    said = (
        _result_text(found, abs(change))
        if found.measure.id != "goodput"
        else f"{number(abs(change) * 100)} points"
    )
    return f"one {words} of {lever.path} {direction} {said}"
