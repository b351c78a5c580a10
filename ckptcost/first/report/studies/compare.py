"""What `compare` found: scenarios side by side, the bill line by line, and the inputs that differ;
in sentences what differs, how surely, and what no difference can be told of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ckptcost.first.core.draws import p5_p95
from ckptcost.first.core.measures import BILLED
from ckptcost.first.core.outcome import makes_headway
from ckptcost.first.core.quantities import BY_ID, EVERYDAY, Quantity, in_people, unit_of_people
from ckptcost.first.jobs.compare import (
    LETTERS,
    RESULTS,
    SURE,
    Compared,
    Result,
    ScenarioDifference,
    changed_inputs,
    changed_words,
    difference,
    line_difference,
    lines_of,
    useful_gpu_s,
)
from ckptcost.first.jobs.gates import GateVerdict
from ckptcost.first.present.amounts import (
    count,
    drawn_between,
    duration,
    points,
    quantities,
    quantity,
    share,
)
from ckptcost.first.present.words import (
    METHODS,
    line_label,
    result_text,
    unknown_text,
)
from ckptcost.first.report.studies.model_words import caution_sentences
from ckptcost.first.report.studies.run_columns import known_value, share_of_draws
from ckptcost.first.report.study import (
    ROW_DIFFERENCE,
    ROW_UNIT,
    Bills,
    Column,
    Study,
    Table,
    hidden,
    named,
    plain,
)
from ckptcost.first.scenario import Input

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.report.statement import Statement

_BILL = {
    "energy": ("energy", "kWh"),
    "gpu_time": ("gpu_time_lost", "GPU-hours"),
    "cost": ("cost", "USD"),
    "carbon": ("emissions_location", "kgCO2e, location-based"),
}
_SHOWN_OF_BILL = ("energy", "gpu_time", "cost")


def people(value: float, result: Result) -> float | None:
    """A value in the unit that its row names; None where it is unknown."""
    return None if value != value else float(in_people(value, result.unit))


def unit_of(result: Result) -> str:
    return "share" if result.id == "goodput" else unit_of_people(result.unit) or "count"


def study_of(answer: Compared, gates: Sequence[GateVerdict] = ()) -> Study:
    """The answer as a study."""
    found = {
        (at, r.id): difference(answer, at, r) for at in range(1, len(answer.cases)) for r in RESULTS
    }
    values = _values(answer, found)
    return Study(
        "comparison",
        f"{len(answer.cases)} scenarios side by side",
        about(answer),
        {
            "scenarios": list(answer.names),
            "reference": answer.names[0],
            "draws": answer.draws,
            "targets": [verdict.gate.text for verdict in gates],
        },
        [values, *_side_by_side(answer, values), *_bills(answer), _inputs(answer)],
        findings(answer, found),
        warnings(answer),
        gates,
        [case.resolved for case in answer.cases],
        bills=Bills(lambda catalog: _statements(answer, catalog)),
    )


def _statements(answer: Compared, catalog: Catalog) -> list[Statement]:
    from ckptcost.first.report.statements.modelled import of_case

    return [
        of_case(case, catalog, f"{letter}: {name}")
        for letter, name, case in zip(LETTERS, answer.names, answer.cases, strict=False)
    ]


_VALUES = (
    Column("scenario", "scenario", "", "its letter; A is what the others are held against"),
    *named("name", "quantity", "label", "unit"),
    Column("value", "value", ROW_UNIT),
    Column("low", "low", ROW_UNIT, "5th percentile, as `ckptcost model` gives it"),
    Column("high", "high", ROW_UNIT, "95th percentile"),
    Column(
        "difference",
        "difference",
        ROW_UNIT,
        "to A; unknown where a line is known in one of the two only",
    ),
    Column("relative", "relative", "share", "difference over A's value"),
    Column(
        "difference_low",
        "difference, low",
        ROW_UNIT,
        "5th percentile; inputs that both share are drawn together",
    ),
    Column("difference_high", "difference, high", ROW_UNIT, "95th percentile"),
    Column("more", "more", "share", "share of the draws in which it has more than A"),
    Column(
        "sign_certain",
        "sign certain",
        "bool",
        "whether p5-p95 of the difference lies on one side of 0",
    ),
    Column("without", "without", "", "lines that are unknown and in no sum"),
)


def _values(answer: Compared, found: Found) -> Table:
    """The tidy table: one row for each scenario and result."""
    rows = [
        _value_row(answer, at, result, found.get((at, result.id)))
        for result in RESULTS
        for at in range(len(answer.cases))
    ]
    return Table("values", "Every result of every scenario", _VALUES, rows, shown=False)


def _value_row(
    answer: Compared, at: int, result: Result, change: ScenarioDifference | None
) -> dict[str, Any]:
    case = answer.cases[at]
    value = float(result.of(case.scenario, case.outcome))
    low, high = p5_p95(result.of(case.scenario, case.spread), value)
    if not low < high:
        low = high = float("nan")
    row: dict[str, Any] = {
        "scenario": LETTERS[at],
        "name": answer.names[at],
        "quantity": result.id,
        "label": result.label,
        "unit": unit_of(result),
        "value": people(value, result),
        "low": people(low, result),
        "high": people(high, result),
        "without": "; ".join(line_label(line) for line in result.lines(case.outcome)) or None,
    }
    if change is not None:
        certain = None if change.value != change.value else change.sign_is_certain
        row |= {
            "difference": people(change.value, result),
            "relative": people(change.relative, _PLAIN),
            "sign_certain": certain,
            "difference_low": people(change.low, result),
            "difference_high": people(change.high, result),
            "more": people(change.more, _PLAIN),
        }
    return row


_PLAIN = Result("", "", "", lambda _, o: o.saves, lambda _: ())


def _side_by_side(answer: Compared, values: Table) -> list[Table]:
    """Two scenarios with their difference; more of them as columns, and what each has over the
    first below."""
    letters = LETTERS[: len(answer.cases)]
    other_work = work_differs(answer)
    rows = [
        line
        for line in _lines_of_results(values)
        if (other_work or not line["quantity"].endswith("_per_useful"))
        and any(line[letter] is not None for letter in letters)
    ]
    first = (Column("label", "result"), *hidden(Column("quantity", "id"), "unit"))
    own = [Column(letter, letter, ROW_UNIT) for letter in letters]
    rises = [Column(f"{each}_difference", f"{each} - A", ROW_DIFFERENCE) for each in letters[1:]]
    shares = [Column(f"{each}_relative", f"{each} - A", "share") for each in letters[1:]]
    note = lines_in_no_sum(answer)
    if len(letters) == 2:
        columns = (*first, *own, *rises, shares[0]._replace(label="of A"))
        return [Table("side_by_side", "Side by side", columns, rows, note)]
    return [
        Table("side_by_side", "Side by side", (*first, *own), rows),
        Table("differences", "Differences from A", (*first, *rises), rows, note),
        Table("relative", "The same as a share of A", (*first, *shares), rows),
    ]


def _lines_of_results(values: Table) -> Iterable[dict[str, Any]]:
    """A line for each result, with what each scenario has of it."""
    lines: dict[str, dict[str, Any]] = {}
    for row in values.rows:
        unit = "" if row["unit"] in ("s", "share", "count") else f", {row['unit']}"
        head = {"label": row["label"] + unit, "quantity": row["quantity"], "unit": row["unit"]}
        lines.setdefault(row["quantity"], head).update(
            {
                row["scenario"]: row["value"],
                f"{row['scenario']}_difference": row.get("difference"),
                f"{row['scenario']}_relative": row.get("relative"),
            }
        )
    return lines.values()


def _bills(answer: Compared) -> list[Table]:
    """Each quantity line by line, unknown lines as dashes; the total only where all have the same
    lines unknown."""
    return [
        _bill(answer, BY_ID[of], title)._replace(id=f"bill_{name}", shown=name in _SHOWN_OF_BILL)
        for name, (of, title) in _BILL.items()
    ]


def _bill(answer: Compared, q: Quantity, title: str) -> Table:
    letters, first = LETTERS[: len(answer.cases)], answer.cases[0].outcome.run
    rows: list[dict[str, Any]] = []
    for line in lines_of(answer):
        row: dict[str, Any] = {"line": line, "label": line_label(line)}
        for letter, case in zip(letters, answer.cases, strict=True):
            _, value, rise = line_difference(first, case.outcome.run, line, q.field)
            row[letter] = known_value(q.people(value))
            row[f"{letter}_difference"] = known_value(q.people(rise))
        if any(row[letter] != 0.0 for letter in letters):
            rows.append(row)
    columns = (
        Column("label", "line"),
        *hidden(Column("line", "id")),
        *(Column(each, each, q.unit) for each in letters),
        *(
            Column(f"{each}_difference", f"{each} - A", q.unit, shown=len(letters) == 2)
            for each in letters[1:]
        ),
    )
    return Table("", f"The bill of the run: {title}", columns, rows)


def said_of(i: Input | None) -> str:
    """An input as somebody wrote it, and what it rests on."""
    if i is None:
        return "-"
    f = i.figure
    text = f.text if any(letter.isalpha() for letter in f.text) else quantity(f.value, i.unit)
    if f.value == float("inf"):
        text = "unlimited"
    elif not i.unit:
        text = count(f.value)
    return f"{text} ({_basis(i)})"


def _basis(i: Input) -> str:
    return i.figure.basis or "assumed"


_INPUTS = (
    Column("scenario", "", "", "the scenario that differs from A"),
    *named("input"),
    Column("in_a", "in A"),
    Column("here", "there"),
    *hidden(
        Column("a_value", "A's value", "1", "in base units"),
        Column("value", "value", "1", "in base units"),
        Column("base_unit", "base unit"),
        Column("a_basis", "A's basis"),
        "basis",
    ),
)


def _inputs(answer: Compared) -> Table:
    """Why they differ: each input that is not as in A, and each choice."""
    first, *others = answer.cases
    rows: list[dict[str, Any]] = []
    for letter, case in zip(LETTERS[1:], others, strict=False):
        rows += [
            {"scenario": letter, "input": path, "in_a": _word(one), "here": _word(two)}
            for path, one, two in changed_words(first, case)
        ]
        rows += [
            {"scenario": letter, "input": path, **_input_change(ours, theirs)}
            for path, ours, theirs in changed_inputs(first, case)
        ]
    note = "" if rows else "no input differs"
    return Table("inputs", "Why: the inputs that differ from A", _INPUTS, rows, note)


def _input_change(ours: Input | None, theirs: Input | None) -> dict[str, Any]:
    known = ours or theirs
    return {
        "in_a": said_of(ours),
        "here": said_of(theirs),
        "a_value": ours and plain(ours.figure.value),
        "value": theirs and plain(theirs.figure.value),
        "base_unit": known.unit if known else "",
        "a_basis": ours and _basis(ours),
        "basis": theirs and _basis(theirs),
    }


def _word(value: object) -> str:
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


# ---- sentences


_TOLD = ("goodput", *(q.measure for q in EVERYDAY))
_LEAST = {
    "goodput": "highest goodput",
    "kwh": "least energy",
    "usd": "least dollars",
    "kgco2e": "least emissions",
}
_BY_ID = {result.id: result for result in RESULTS}


def about(answer: Compared) -> list[str]:
    """Which letter is which."""
    return [
        f"{LETTERS[at]}: {name}, {count(case.scenario.cluster.gpus)} x "  # type: ignore[arg-type]
        f"{case.resolved.names.get('accelerator', 'GPU')}, "
        f"{duration(float(case.scenario.work_s))} of training, {case.tier_id},"
        f" {case.scenario.policy.mode}"
        for at, (name, case) in enumerate(zip(answer.names, answer.cases, strict=True))
    ]


def work_differs(answer: Compared) -> bool:
    """Whether the scenarios do different amounts of useful work."""
    works = [float(useful_gpu_s(case.scenario)) for case in answer.cases]
    return max(works) > min(works) * (1.0 + 1e-9)


Found = dict[tuple[int, str], ScenarioDifference]
"""what each scenario but the first has more of than that one, by its place and the result's id"""


def findings(answer: Compared, found: Found) -> list[str]:
    """For each scenario what it has more or less of than A, then who is best."""
    hopeless = {at for at, case in enumerate(answer.cases) if not makes_headway(case.outcome)}
    against = [] if 0 in hopeless else range(1, len(answer.cases))
    told = [
        _sentence(answer, at, _BY_ID[name], found[at, name])
        for at in against
        if at not in hopeless
        for name in _TOLD
    ]
    return [*(_hopeless_text(answer, at) for at in sorted(hopeless)), *filter(None, told)] + _best(
        answer, found
    )


def _hopeless_text(answer: Compared, at: int) -> str:
    case = answer.cases[at]
    own = 'at this interval; --set policy.optimal="time" compares it at its own best'
    if case.scenario.policy.cadence == "optimal":
        own = "even at its own best interval"
    return (
        f"{LETTERS[at]} makes next to no headway {own}: {share(float(case.outcome.goodput))} of its"
        " time is work that lasts. Nobody would let it go on, so nothing is saved or added against"
        " it."
    )


def _sentence(answer: Compared, at: int, result: Result, change: ScenarioDifference) -> str:
    """What it has more or less of, or why that is not told; nothing where it is not known."""
    letter = LETTERS[at]
    if change.lacking and len(change.lacking) == len(lines_of(answer)):
        return f"{letter}: {result.label}: known in one of the two only."
    why = _lacking(answer, at, result, change) if change.lacking else _methods(letter, change)
    if why:
        return f"{letter}: no difference of the {result.label} is told, because {why}."
    if change.value != change.value:
        return ""
    if change.value == 0:
        spread = _between(change, result)
        ranges = f"ranges of the inputs differ (p5-p95 of the difference {spread})"
        stated = f" at the stated values; the {ranges}" if change.low != change.high else ""
        return f"{letter}: {result.label} as in A{stated}."
    return _difference_text(answer, at, result, change)


def _difference_text(answer: Compared, at: int, result: Result, change: ScenarioDifference) -> str:
    letter, relative = LETTERS[at], ""
    if change.relative == change.relative and result.id != "goodput":
        relative = f" ({_plus(change.relative)}{share(change.relative)})"
    ranged = f", p5-p95 {_between(change, result)}" if change.low < change.high else ""
    told = f"{letter}: {result.label} {_signed_text(change.value, result)}{relative}{ranged}."
    if not change.sign_is_certain:
        more = f"{letter} has more in {share(share_of_draws(change.more))} of the draws"
        return f"{told} The sign is not certain: {more}."
    main = _main_line(answer, at, result, change.value)
    return f"{told} {main}." if main else told


def _rises(answer: Compared, at: int, result: Result) -> dict[str, float]:
    """What each line adds more than in A, of those that both know."""
    first, other = answer.cases[0].outcome.run, answer.cases[at].outcome.run
    field = BILLED[result.id].field
    rises = {line: line_difference(first, other, line, field)[2] for line in lines_of(answer)}
    return {line: rise for line, rise in rises.items() if rise == rise}


def _lacking(answer: Compared, at: int, result: Result, change: ScenarioDifference) -> str:
    apart = _signed_text(sum(_rises(answer, at, result).values()), result)
    return (
        f"{_line_names(change.lacking)} is known in one of the two only; the lines known in both"
        f" differ by {apart}"
    )


def _methods(letter: str, change: ScenarioDifference) -> str:
    first, other = change.methods
    if first == other:
        return ""
    return (
        f"A's grid factor is of {METHODS[first]} and {letter}'s of {METHODS[other]}: name grids of"
        " one method (site.grid), or give site.grid_location and site.grid_method"
    )


def _main_line(answer: Compared, at: int, result: Result, whole: float) -> str:
    """The line that makes the largest part of a difference; most of it only where it is over
    half."""
    if result.id not in BILLED or result.id == "kgco2e":
        return ""
    rises = _rises(answer, at, result)
    known = {line: rise for line, rise in rises.items() if rise and abs(rise) < float("inf")}
    if not known:
        return ""
    line = max(known, key=lambda each: abs(known[each]))
    lead = "Most of it" if known[line] / whole > 0.5 else "The largest part"
    return f"{lead}: {line_label(line)} ({_signed_text(known[line], result)})"


def _plus(value: float) -> str:
    return "+" if value > 0 else ""


def _signed_text(value: float, result: Result) -> str:
    if result.id == "goodput":
        return f"{_plus(value)}{points(value)}"
    return _plus(value) + result_text(value, result.id, result.unit)


def _between(change: ScenarioDifference, result: Result) -> str:
    if result.id == "goodput" or change.low < 0:
        return f"{_signed_text(change.low, result)} to {_signed_text(change.high, result)}"
    return quantities(change.low, change.high, result.unit, drawn_between)


def _best(answer: Compared, found: Found) -> list[str]:
    """Who is best at what, where all can be held against A; how surely, where the ranges leave room
    for another.

    Totals of different work rank nothing: those are ranked by what they are for each useful
    GPU-hour.
    """
    useful = work_differs(answer)
    said = []
    for name, text in _LEAST.items():
        each = useful and name != "goodput"
        by = f"{name}_per_useful" if each else name
        if all(found[at, by].value == found[at, by].value for at in range(1, len(answer.cases))):
            per = " per useful GPU-hour" if each else ""
            said += [f"{text}{per}: {winners}" for winners in _winners(answer, _BY_ID[by])]
    told = "; ".join(said)
    return [f"{told[0].upper()}{told[1:]}."] if told else []


def _winners(answer: Compared, result: Result) -> list[str]:
    """Whose result is the best, and how surely; nobody where all are alike."""
    sign = -1.0 if result.id == "goodput" else 1.0
    costs = [sign * float(result.of(case.scenario, case.outcome)) for case in answer.cases]
    winners = [at for at, cost in enumerate(costs) if cost == min(costs)]
    if len(winners) == len(costs):
        return []
    held = _holding_share(answer, result, sign, winners)
    sure, draws = "", f"in {share(share_of_draws(held))} of the draws"
    if held < 0.5:
        sure = f" at the stated values, but {draws} only"
    elif held < SURE:
        sure = f" {draws}, so not for sure"
    return [f"{' and '.join(LETTERS[at] for at in winners)}{sure}"]


def _holding_share(answer: Compared, result: Result, sign: float, winners: Sequence[int]) -> float:
    """In which share of the draws they stay the best."""
    drawn = [
        sign * np.asarray(result.of(case.scenario, together), dtype=float)
        for case, together in zip(answer.cases, answer.together, strict=True)
    ]
    others = [each for at, each in enumerate(drawn) if at not in winners]
    return float(np.mean(np.all([drawn[winners[0]] < each for each in others], axis=0)))


def _line_names(lines: tuple[str, ...]) -> str:
    return " and ".join(line_label(line) for line in lines)


def lines_in_no_sum(answer: Compared) -> str:
    """Lines that no sum of energy or dollars has, by scenario."""
    said = []
    for what, name in (("energy", "kwh"), ("cost", "usd")):
        left = [_BY_ID[name].lines(case.outcome) for case in answer.cases]
        if len(set(left)) == 1 and left[0]:
            said.append(f"{what} without {_line_names(left[0])}")
        elif any(left):
            said += [
                f"{what} of {LETTERS[at]} without {_line_names(lines)}"
                for at, lines in enumerate(left)
                if lines
            ]
    return f"Left out because unknown: {'; '.join(said)}." if said else ""


_DIFFERENT = {
    "accelerator": (
        "DIFFERENT_GPUS",
        "A GPU-hour of one accelerator is not the work of another's: set run.work of each to the"
        " time it needs for the same training.",
    ),
    "checkpoint": (
        "DIFFERENT_MODEL",
        "The checkpoints are of different models, so the jobs are not variants of one.",
    ),
}
_DIFFERENT_WORK = (
    "DIFFERENT_WORK",
    "The scenarios do different amounts of useful work (run.work x cluster.gpus): totals of a"
    " longer or larger run are higher for that alone. Compare what is said per 1,000 useful"
    " GPU-hours as well.",
)


def warnings(answer: Compared) -> list[tuple[str, str]]:
    """Cautions of each scenario, what is unknown, and whether they can be held against each other
    at all."""
    said = [_DIFFERENT_WORK] if work_differs(answer) else []
    for name, told in _DIFFERENT.items():
        if len({case.resolved.names.get(name, "") for case in answer.cases}) > 1:
            said.append(told)
    letters = LETTERS[: len(answer.cases)]
    said += caution_sentences(letters, [case.cautions for case in answer.cases])
    return [*said, *_unknown_inputs(answer)]


def _unknown_inputs(answer: Compared) -> Iterator[tuple[str, str]]:
    unknown: dict[str, list[tuple[str, str]]] = {}
    for letter, case in zip(LETTERS, answer.cases, strict=False):
        for path, reason in case.resolved.unknown.items():
            unknown.setdefault(path, []).append((letter, unknown_text(path, reason)))
    for texts in unknown.values():
        letters = ", ".join(letter for letter, _ in texts)
        whose = "" if len(texts) == len(answer.cases) else f" [{letters}]"
        yield "UNKNOWN_INPUT", texts[0][1] + whose
