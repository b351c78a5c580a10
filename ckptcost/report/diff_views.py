"""A difference as a comment of a pull request, for a terminal of 80 columns, and as CSV. More is
worse, and is said so."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from ckptcost.core.quantities import IN_DOCUMENTS
from ckptcost.present.amounts import between, duration, number, quantity, share
from ckptcost.present.table import columns, markdown, plain
from ckptcost.report.difference import (
    Amount,
    Budget,
    Change,
    ComponentChanges,
    Difference,
    FactorChange,
    FactorValue,
    UnitChanges,
)
from ckptcost.report.document import Report
from ckptcost.report.statement import QUANTITIES
from ckptcost.report.study import ROW_UNIT, Column, Study, Table

WIDTH = 80
MARKER = "<!-- ckptcost-diff -->"
"""by which a bot finds its own comment to rewrite it"""
MOST_BYTES = 65_535
"""GitHub takes comments below 65,536 characters; bytes are never fewer"""
NOT_KNOWN = "not known"
NAMES = {q.id: q.label for q in IN_DOCUMENTS} | {
    "embodied": "embodied carbon of the GPU time lost",
    "checkpoints": "checkpoints",
    "length": "length of the run",
}
HEADLINES = ("cost", "energy", "gpu_time_lost", "emissions_location")
_TOTALS = (*QUANTITIES, "checkpoints", "length")
_LONGEST = 160


def _named(text: str) -> str:
    return plain(_at_most(text))


def _at_most(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 2] + ".."


def amount_text(amount: Amount | None, unit: str) -> str:
    """The figure with its unit.

    >>> (
    ...     amount_text(Amount(value=1200.0), "kWh"),
    ...     amount_text(Amount(value=None), "kWh"),
    ...     amount_text(None, "kWh"),
    ... )
    ('1,200 kWh', 'not known', 'no such line')
    """
    if amount is None:
        return "no such line"
    return NOT_KNOWN if amount.value is None else _figure(amount.value, unit)


def _figure(value: float, unit: str) -> str:
    if unit == "s":
        return duration(value)
    return number(value) if unit == "1" else f"{number(value)} {unit}"


def change_text(change: Change) -> str:
    if change.change is None:
        return NOT_KNOWN
    return (
        "0"
        if change.direction == "same"
        else ("+" if change.change > 0 else "") + _figure(change.change, change.unit)
    )


def relative_text(change: Change) -> str:
    if change.direction == "same":
        return "0 %"
    if change.relative is None and change.change is not None:
        return "from 0"
    return (
        NOT_KNOWN
        if change.relative is None
        else ("+" if change.relative > 0 else "") + share(change.relative)
    )


def range_text(amount: Amount | None) -> str:
    if amount is None or amount.low is None:
        return ""
    return f">{number(amount.low)}" if amount.high is None else between(amount.low, amount.high)


def _certainty(change: Change) -> str:
    if change.change is None:
        return change.reason or ""
    return {None: "", True: "overlap", False: "apart"}[change.ranges_overlap]


def headline(difference: Difference) -> str:
    """The largest change of a total, in words."""
    found = [(name, getattr(difference.delta.totals, name)) for name in HEADLINES]
    told = [(name, each) for name, each in found if each.direction in ("more", "less")]
    if not told:
        known = any(each.direction == "same" for _, each in found)
        return "nothing changed in what is known" if known else "the change is not known"
    name, most = max(
        told,
        key=lambda pair: (
            float("inf") if pair[1].relative is None else round(abs(pair[1].relative), 6)
        ),
    )
    word = "worse" if most.direction == "more" else "better"
    by = (
        f"{share(abs(most.relative))} {most.direction}"
        if most.relative is not None
        else "from nothing to some"
    )
    sure = ", within the uncertainty" if most.ranges_overlap else ""
    return (
        f"{by} {NAMES[name]} ({word}{sure}): {amount_text(most.before, most.unit)} before,"
        f" {amount_text(most.after, most.unit)} now"
    )


def is_unchanged(difference: Difference) -> bool:
    """Whether every figure, its range and all it rests on are as they were."""
    delta = difference.delta
    groups = [delta.totals, *filter(None, (delta.allocated,)), *delta.components, *delta.per]
    changes = [each for group in groups for _, each in group if isinstance(each, Change)]
    return (
        difference.comparable
        and not delta.factors
        and all(each.before == each.after for each in changes)
    )


def unchanged_line(difference: Difference) -> str:
    """All there is to say of two that are the same."""
    totals = [(name, getattr(difference.delta.totals, name)) for name in HEADLINES]
    told = [
        f"{NAMES[name]} {amount_text(each.after, each.unit)}"
        for name, each in totals
        if each.after is not None
    ]
    simulated = " (SIMULATED)" if difference.current.statement.simulated else ""
    return (
        f"Checkpoint cost: nothing changed{simulated}: {', '.join(told)};"
        f" {difference.past.source} and {difference.current.source}"
    )


def reason_lines(difference: Difference) -> list[str]:
    return [f"{reason.message} ({reason.code})" for reason in difference.incomparable_reasons]


def verdict(difference: Difference) -> str:
    """One line above the reasons; empty where the two are comparable."""
    if difference.comparable:
        return ""
    if any(reason.refuses for reason in difference.incomparable_reasons):
        return (
            "NOT COMPARABLE. These are figures of different things; they are shown because that was"
            " asked for (--anyway)."
        )
    return "Not like for like: the figures below are of the same thing at other conditions."


def total_rows(difference: Difference) -> list[list[str]]:
    return [_row(NAMES[name], getattr(difference.delta.totals, name)) for name in _TOTALS]


def _row(name: str, change: Change) -> list[str]:
    return [
        name,
        amount_text(change.before, change.unit),
        amount_text(change.after, change.unit),
        change_text(change),
        relative_text(change),
    ]


def _ranges(change: Change) -> list[str]:
    return [range_text(change.before), range_text(change.after), _certainty(change)]


_HEADER = ["quantity", "before", "after", "change", "%"]
_MORE = ["range before", "range after", "ranges"]


def _shown_units(difference: Difference) -> list[UnitChanges]:
    """Where counts differ, each figure for one of them; where they are the same it would be the
    totals again."""
    return [u for u in difference.delta.per if u.before_count != u.after_count]


def _moved(c: ComponentChanges) -> list[str]:
    """Quantities of a line that say something."""
    changes = [(name, getattr(c, name)) for name in QUANTITIES]
    return [
        name
        for name, each in changes
        if any(
            side is not None and (side.value is None or side.value)
            for side in (each.before, each.after)
        )
    ]


def _factor_text(value: FactorValue | None, factor: FactorChange) -> str:
    if value is None:
        return "none"
    return value.text or (
        "unlimited" if value.value is None else quantity(value.value, factor.unit)
    )


def split_lines(difference: Difference) -> list[str]:
    """What a change would be with the factors of before."""
    found = []
    for split in difference.delta.splits:
        parts = ", ".join(
            f"{_signed(part.change)} {split.unit} from {part.label}" for part in split.parts
        )
        found.append(
            f"{NAMES[split.quantity]}, at constant factors: {_signed(split.at_constant_factors)}"
            f" {split.unit} ({parts})"
        )
    return found


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + number(value)


def budget_lines(budgets: Sequence[Budget]) -> list[str]:
    return [budget_text(each) for each in budgets]


def budget_text(budget: Budget) -> str:
    """One line of whether a change stays within its budget."""
    if budget.value is None:
        value = "the change is not known"
    else:
        value = (
            "it is"
            f" {'+' if budget.value > 0 else ''}"
            f"{share(budget.value) if budget.relative else number(budget.value)}"
        )
    return f"{'met' if budget.met else 'EXCEEDED'}: {budget.text}, {value}"


def hash_line(report: Report) -> str:
    """Which documents were held against each other."""
    difference = of_report(report)
    sides = [
        f"{which} {side.result_sha256[:16]} ({side.source})"
        for which, side in (("past", difference.past), ("current", difference.current))
    ]
    return (
        f"Documents: {', '.join(sides)}; difference {report.reproducibility.result_sha256[:16]};"
        f" method {report.tool.method_version}."
    )


def of_report(report: Report) -> Difference:
    assert report.difference is not None, "a document of the kind difference"
    return report.difference


# ---- Markdown


def to_markdown(report: Report, most_bytes: int = MOST_BYTES) -> str:
    """A comment that GitHub takes: details are left out from the end until it is short enough, and
    that is said. Of two that are the same, one line."""
    difference = of_report(report)
    if is_unchanged(difference):
        told = [f"- {plain(line)}" for line in budget_lines(difference.budgets)]
        return "\n".join([MARKER, _cut(unchanged_line(difference)), *told]) + "\n"
    head, details, tail = _head(difference), _details(difference), _tail(report)
    names = [name for name, blocks in details if blocks]
    room = most_bytes - len("\n".join([*head, *_left_out(names), *tail]).encode()) - 2
    kept: list[str] = []
    for at, (_, blocks) in enumerate(details):
        for block in blocks:
            room -= len(block.encode()) + 1
            if room < 0:
                missing = [name for name, each in details[at:] if each]
                return "\n".join([*head, *kept, *_left_out(missing), *tail]) + "\n"
            kept.append(block)
    return "\n".join([*head, *kept, *tail]) + "\n"


def _left_out(names: Sequence[str]) -> list[str]:
    words = (
        f"_Left out, some or all, because a comment holds {MOST_BYTES + 1:,} characters at most:"
        f" {', '.join(names)}._"
    )
    return ["", words] if names else []


def _head(difference: Difference) -> list[str]:
    past, current = difference.past.statement, difference.current.statement
    simulated = (
        ["", "**SIMULATED: no machine was measured for this.**"]
        if past.simulated or current.simulated
        else []
    )
    out = [MARKER, f"### Checkpoint cost: {headline(difference)}", *simulated]
    if not difference.comparable:
        out += [
            "",
            f"> **{verdict(difference)}**",
            *(f"> - {_cut(line)}" for line in reason_lines(difference)),
        ]
    sides = [
        f"{_named(side.statement.subject.name)} ({_named(side.source)})"
        for side in (difference.past, difference.current)
    ]
    out += ["", f"Before: {sides[0]}. Now: {sides[1]}. More is worse.", ""]
    rows = [
        [*row, *_ranges(getattr(difference.delta.totals, name))]
        for name, row in zip(_TOTALS, total_rows(difference), strict=True)
    ]
    out += _table([*_HEADER, *_MORE], rows)
    if difference.budgets:
        out += ["", *(f"- {plain(line)}" for line in budget_lines(difference.budgets))]
    return out


def _cut(line: str) -> str:
    return plain(line if len(line) <= 300 else line[:298] + "..")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    return markdown(header, [[_at_most(cell) for cell in row] for row in rows], left=left)


def _details(difference: Difference) -> list[tuple[str, list[str]]]:
    """Blocks by what they tell, the most needed first."""
    delta = difference.delta
    return [
        (
            "changes at constant factors",
            (
                ["\n".join(["", *(f"- {plain(line)}" for line in split_lines(difference))])]
                if delta.splits
                else []
            ),
        ),
        ("warnings", [f"\n- {_cut(f'{note.message} ({note.code})')}" for note in difference.notes]),
        ("figures for each unit", [_unit_block(each) for each in _shown_units(difference)]),
        ("factors that changed", _factor_blocks(delta.factors)),
        ("components", [_component_block(c) for c in delta.components if _moved(c)]),
    ]


def _unit_block(unit: UnitChanges) -> str:
    counts = f"{number(unit.before_count)} before, {number(unit.after_count)} now"
    rows = [
        [*_row(NAMES[name], getattr(unit, name)), *_ranges(getattr(unit, name))]
        for name in QUANTITIES
    ]
    return _folded(
        f"For each {_named(unit.name.replace('_', ' '))} ({counts})",
        _table([*_HEADER, *_MORE], rows),
    )


def _component_block(c: ComponentChanges) -> str:
    only = f", only in the {c.only_in} one" if c.only_in else ""
    apart = "" if c.ledger == "marginal" else " (stands there anyway, in no total)"
    told = f"{change_text(c.energy)}, {change_text(c.cost)}" if not c.only_in else ""
    rows = [
        [*_row(NAMES[name], getattr(c, name)), *_ranges(getattr(c, name))] for name in _moved(c)
    ]
    return _folded(
        f"{_named(c.label)}{apart}{only}"
        + (f": energy {told.replace(', ', ', cost ')}" if told else ""),
        _table([*_HEADER, *_MORE], rows),
    )


def _factor_blocks(factors: Sequence[FactorChange]) -> list[str]:
    """By fifties, so that some may be told where not all can be."""
    found = []
    for at in range(0, len(factors), 50):
        rows = [
            [
                f.id,
                _factor_text(f.before, f),
                _factor_text(f.after, f),
                "price, grid or facility" if f.converts else "",
            ]
            for f in factors[at : at + 50]
        ]
        title = (
            f"Factors that changed ({len(factors)})" if at == 0 else "Factors that changed, more"
        )
        found.append(_folded(title, _table(["factor", "before", "after", "kind"], rows, left=4)))
    return found


def _folded(title: str, body: Sequence[str]) -> str:
    return "\n".join(["", f"<details><summary>{title}</summary>", "", *body, "", "</details>"])


def _tail(report: Report) -> list[str]:
    difference = of_report(report)
    warned = {
        w.code: w.message
        for side in (difference.past, difference.current)
        for w in side.statement.warnings
    }
    codes = (
        [f"Warnings of the statements: {_cut(', '.join(list(warned)[:20]))}.", ""] if warned else []
    )
    memo = "Memo item: this energy already sits in the facility's meter."
    return ["", *codes, f"<sub>{plain(hash_line(report))} {memo}</sub>"]


# ---- text


def text(report: Report) -> str:
    """The same for a terminal; every change in full."""
    difference = of_report(report)
    if is_unchanged(difference):
        line = unchanged_line(difference)
        return "\n".join([*_wrapped(line), *_listed(budget_lines(difference.budgets))]) + "\n"
    out = _wrapped(f"Checkpoint cost: {headline(difference)}")
    sides = (difference.past.statement, difference.current.statement)
    out += (
        ["SIMULATED: no machine was measured for this."] if any(s.simulated for s in sides) else []
    )
    if not difference.comparable:
        out += ["", *_wrapped(verdict(difference)), *_listed(reason_lines(difference))]
    out += ["", *_wrapped(f"before: {sides[0].subject.name} ({difference.past.source})")]
    out += [*_wrapped(f"after:  {sides[1].subject.name} ({difference.current.source})"), ""]
    out += columns(_HEADER, total_rows(difference), widest=WIDTH)
    out += ["", *_listed(_range_lines(difference))]
    for unit in _shown_units(difference):
        counts = f"{number(unit.before_count)} before, {number(unit.after_count)} now"
        out += ["", *_wrapped(f"For each {unit.name.replace('_', ' ')} ({counts})")]
        out += columns(
            _HEADER, [_row(NAMES[name], getattr(unit, name)) for name in QUANTITIES], widest=WIDTH
        )
    for name, unit_name in (("energy", "kWh"), ("cost", "USD")):
        rows = [
            _row(_label(c), getattr(c, name))
            for c in difference.delta.components
            if name in _moved(c)
        ]
        out += (
            [
                "",
                f"{NAMES[name].capitalize()} by line, {unit_name}",
                *columns(["line", *_HEADER[1:]], rows, widest=WIDTH),
            ]
            if rows
            else []
        )
    if difference.delta.factors:
        rows = [
            [f.id, _short(_factor_text(f.before, f)), _short(_factor_text(f.after, f))]
            for f in difference.delta.factors
        ]
        out += [
            "",
            "Factors that changed",
            *columns(["factor", "before", "after"], rows, left=3, widest=WIDTH),
        ]
    out += _section("At constant factors", split_lines(difference))
    out += _section("Budgets", budget_lines(difference.budgets))
    out += _section("Take care", [f"{note.message} ({note.code})" for note in difference.notes])
    out += ["", *_wrapped(hash_line(report))]
    return "\n".join(line.rstrip() for line in out) + "\n"


def _range_lines(difference: Difference) -> list[str]:
    """What the table has no room for: ranges, and why a change is not known."""
    found = []
    for name in _TOTALS:
        change: Change = getattr(difference.delta.totals, name)
        spans = [range_text(side) or "no range" for side in (change.before, change.after)]
        if change.change is None:
            found.append(f"{NAMES[name]}: {change.reason}")
        elif change.ranges_overlap is not None:
            word = (
                "overlap: the change is within the uncertainty"
                if change.ranges_overlap
                else "do not overlap"
            )
            found.append(f"{NAMES[name]}: {spans[0]} before and {spans[1]} now {word}")
    return found


def _label(c: ComponentChanges) -> str:
    only = {"past": " (past only)", "current": " (new)", None: ""}[c.only_in]
    return " ".join(c.label.split()) + only + ("" if c.ledger == "marginal" else ", apart")


def _short(cell: str) -> str:
    return " ".join(cell.split())


def _section(name: str, told: Sequence[str]) -> list[str]:
    return ["", name, *_listed(told)] if told else []


def _listed(told: Sequence[str]) -> list[str]:
    return [each for line in told for each in _wrapped(line, "- ", "  ")]


def _wrapped(line: str, first: str = "", rest: str = "") -> list[str]:
    printable = "".join(each if each.isprintable() else " " for each in line)
    return textwrap.wrap(
        printable, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    ) or [""]


# ---- as an answer


_COLUMNS = (
    Column("of", "of", "", "total, unit or component"),
    Column("id", "id"),
    Column("label", "label"),
    Column("ledger", "ledger"),
    Column("quantity", "quantity"),
    Column("unit", "unit", "", "of the figures"),
    *(
        Column(f"{side}{end}", f"{side}{end}", ROW_UNIT, "empty: unknown, or without a range")
        for side in ("before", "after")
        for end in ("", "_low", "_high")
    ),
    Column("change", "change", ROW_UNIT, "after less before; more is worse"),
    Column("change_share", "change_share", "share", "of before"),
    Column("direction", "direction"),
    Column("ranges_overlap", "ranges_overlap", "bool", "the change is within the uncertainty"),
    Column("reason", "reason", "", "why the change is not known"),
    Column("comparable", "comparable", "bool"),
)


def study_of(difference: Difference, question: dict[str, Any]) -> Study:
    """The difference as an answer: the largest change in words, and every change as a row."""
    findings = [f"{headline(difference)}."]
    if not difference.comparable:
        findings += [verdict(difference), *reason_lines(difference)]
    past, current = difference.past, difference.current
    return Study(
        "difference",
        "What changed of what checkpoints cost",
        [
            f"Before: {past.statement.subject.name}. Now: {current.statement.subject.name}."
            " More is worse."
        ],
        question,
        [_changes(difference)],
        [*findings, *split_lines(difference), *budget_lines(difference.budgets)],
        [(note.code, note.message) for note in difference.notes],
        simulated=past.statement.simulated or current.statement.simulated,
        difference=difference,
    )


def _changes(difference: Difference) -> Table:
    """One row per quantity of the totals, of each unit and of each component; numbers in the row's
    unit, empty where unknown."""
    delta = difference.delta
    rows = _rows("total", "", "", "marginal", delta.totals, _TOTALS)
    for unit in delta.per:
        rows += _rows("unit", unit.name, unit.name, "marginal", unit, QUANTITIES)
    for c in delta.components:
        rows += _rows("component", c.id, c.label, c.ledger, c, QUANTITIES)
    told = [row | {"comparable": difference.comparable} for row in rows]
    return Table("changes", "Every change", _COLUMNS, told)


def _rows(
    of: str, name: str, label: str, ledger: str, changes: Any, quantities: Sequence[str]
) -> list[dict[str, Any]]:
    found = []
    for what in quantities:
        change: Change = getattr(changes, what)
        row: dict[str, Any] = {"of": of, "id": name, "label": label}
        row |= {"ledger": ledger, "quantity": what}
        for side, amount in (("before", change.before), ("after", change.after)):
            for end, field in (("", "value"), ("_low", "low"), ("_high", "high")):
                row[side + end] = getattr(amount, field) if amount else None
        found.append(
            row
            | {
                "unit": change.unit,
                "change": change.change,
                "change_share": change.relative,
                "direction": change.direction,
                "ranges_overlap": change.ranges_overlap,
                "reason": change.reason or "",
            }
        )
    return found


VIEWS: dict[str, Callable[[Report], str]] = {"text": text, "md": to_markdown}
