"""What `compare` found: scenarios side by side, the bill line by line, and the inputs that
differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ckptcost.core.draws import p5_p95
from ckptcost.core.quantities import BY_ID, in_people, unit_of_people
from ckptcost.jobs.compare import (
    LETTERS,
    RESULTS,
    Compared,
    Result,
    ScenarioDifference,
    changed_inputs,
    changed_words,
    difference,
    line_difference,
    lines_of,
)
from ckptcost.jobs.gates import GateVerdict
from ckptcost.present.amounts import count, quantity
from ckptcost.present.words import line_label
from ckptcost.report.studies.compare_words import (
    about,
    findings,
    lines_in_no_sum,
    warnings,
    work_differs,
)
from ckptcost.report.study import ROW_DIFFERENCE, ROW_UNIT, Bills, Column, Study, Table
from ckptcost.scenario import Input

if TYPE_CHECKING:
    from ckptcost.catalog.store import Catalog
    from ckptcost.report.statement import Statement

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
        warnings(answer, found),
        gates,
        [case.resolved for case in answer.cases],
        bills=Bills(lambda catalog: _statements(answer, catalog)),
    )


def _statements(answer: Compared, catalog: Catalog) -> list[Statement]:
    from ckptcost.report.statements.modelled import of_case

    return [
        of_case(case, catalog, f"{letter}: {name}")
        for letter, name, case in zip(LETTERS, answer.names, answer.cases, strict=False)
    ]


def _values(answer: Compared, found: dict[tuple[int, str], ScenarioDifference]) -> Table:
    """The tidy table: one row for each scenario and result."""
    columns = (
        Column("scenario", "scenario", "", "its letter; A is what the others are held against"),
        Column("name", "name"),
        Column("quantity", "quantity"),
        Column("label", "label"),
        Column("unit", "unit"),
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
    rows = [
        _value_row(answer, at, result, found.get((at, result.id)))
        for result in RESULTS
        for at in range(len(answer.cases))
    ]
    return Table("values", "Every result of every scenario", columns, rows, shown=False)


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
    by_result: dict[str, dict[str, Any]] = {}
    for row in values.rows:
        label = row["label"] + (
            "" if row["unit"] in ("s", "share", "count") else f", {row['unit']}"
        )
        line = by_result.setdefault(
            row["quantity"], {"label": label, "quantity": row["quantity"], "unit": row["unit"]}
        )
        line[row["scenario"]] = row["value"]
        line[f"{row['scenario']}_difference"], line[f"{row['scenario']}_relative"] = (
            row.get("difference"),
            row.get("relative"),
        )
    useful = work_differs(answer)
    rows = [
        line
        for line in by_result.values()
        if (useful or not line["quantity"].endswith("_per_useful"))
        and any(line[letter] is not None for letter in letters)
    ]
    first = (
        Column("label", "result"),
        Column("quantity", "id", shown=False),
        Column("unit", "unit", shown=False),
    )
    own = tuple(Column(letter, letter, ROW_UNIT) for letter in letters)
    note = lines_in_no_sum(answer)
    if len(letters) == 2:
        columns = (
            *first,
            *own,
            Column("B_difference", "B - A", ROW_DIFFERENCE),
            Column("B_relative", "of A", "share"),
        )
        return [Table("side_by_side", "Side by side", columns, rows, note)]
    relative = tuple(
        Column(f"{letter}_relative", f"{letter} - A", "share") for letter in letters[1:]
    )
    differences = tuple(
        Column(f"{letter}_difference", f"{letter} - A", ROW_DIFFERENCE) for letter in letters[1:]
    )
    return [
        Table("side_by_side", "Side by side", (*first, *own), rows),
        Table("differences", "Differences from A", (*first, *differences), rows, note),
        Table("relative", "The same as a share of A", (*first, *relative), rows),
    ]


def _bills(answer: Compared) -> list[Table]:
    """Each quantity line by line, unknown lines as dashes; the total only where all have the same
    lines unknown."""
    letters, tables = LETTERS[: len(answer.cases)], []
    for name, (quantity_id, title) in _BILL.items():
        q = BY_ID[quantity_id]
        rows: list[dict[str, Any]] = []
        first = answer.cases[0].outcome.run
        for line in lines_of(answer):
            row: dict[str, Any] = {"line": line, "label": line_label(line)}
            for at, case in enumerate(answer.cases):
                _, value, rise = line_difference(first, case.outcome.run, line, q.field)
                row[letters[at]] = None if value != value else float(q.people(value))
                row[f"{letters[at]}_difference"] = None if rise != rise else float(q.people(rise))
            if any(row[letter] != 0.0 for letter in letters):
                rows.append(row)
        shown = tuple(
            Column(f"{each}_difference", f"{each} - A", q.unit, shown=len(letters) == 2)
            for each in letters[1:]
        )
        columns = (
            Column("label", "line"),
            Column("line", "id", shown=False),
            *(Column(each, each, q.unit) for each in letters),
            *shown,
        )
        tables.append(
            Table(
                f"bill_{name}",
                f"The bill of the run: {title}",
                columns,
                rows,
                shown=name in _SHOWN_OF_BILL,
            )
        )
    return tables


def said_of(i: Input | None) -> str:
    """An input as somebody wrote it, and what it rests on."""
    if i is None:
        return "-"
    if not i.unit and i.figure.value < float("inf"):
        return f"{count(i.figure.value)} ({i.figure.basis or 'assumed'})"
    text = (
        i.figure.text
        if any(letter.isalpha() for letter in i.figure.text)
        else quantity(i.figure.value, i.unit)
    )
    return (
        f"{'unlimited' if i.figure.value == float('inf') else text} ({i.figure.basis or 'assumed'})"
    )


def _inputs(answer: Compared) -> Table:
    """Why they differ: each input that is not as in A, and each choice."""
    columns = (
        Column("scenario", "", "", "the scenario that differs from A"),
        Column("input", "input"),
        Column("in_a", "in A"),
        Column("here", "there"),
        Column("a_value", "A's value", "1", "in base units", shown=False),
        Column("value", "value", "1", "in base units", shown=False),
        Column("base_unit", "base unit", shown=False),
        Column("a_basis", "A's basis", shown=False),
        Column("basis", "basis", shown=False),
    )
    rows: list[dict[str, Any]] = []
    for at, case in enumerate(answer.cases[1:], start=1):
        for path, one, two in changed_words(answer.cases[0], case):
            rows.append(
                {"scenario": LETTERS[at], "input": path, "in_a": _word(one), "here": _word(two)}
            )
        for path, ours, theirs in changed_inputs(answer.cases[0], case):
            known = ours or theirs
            rows.append(
                {
                    "scenario": LETTERS[at],
                    "input": path,
                    "in_a": said_of(ours),
                    "here": said_of(theirs),
                    "a_value": ours and _finite(ours),
                    "value": theirs and _finite(theirs),
                    "base_unit": known.unit if known else "",
                    "a_basis": ours and (ours.figure.basis or "assumed"),
                    "basis": theirs and (theirs.figure.basis or "assumed"),
                }
            )
    note = "" if rows else "no input differs"
    return Table("inputs", "Why: the inputs that differ from A", columns, rows, note)


def _word(value: object) -> str:
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _finite(i: Input) -> float | None:
    return None if i.figure.value == float("inf") else i.figure.value
