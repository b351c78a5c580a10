"""A difference as a comment of a pull request, for a terminal of 80 columns, and as CSV. More is
worse, and is said so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ckptcost.first.core.quantities import IN_DOCUMENTS
from ckptcost.first.present.amounts import duration, number, quantity, share
from ckptcost.first.present.table import on_one_line, plain
from ckptcost.first.report import writers
from ckptcost.first.report.difference import (
    Amount,
    Budget,
    Change,
    ComponentChanges,
    Difference,
    FactorChange,
    FactorValue,
    UnitChanges,
)
from ckptcost.first.report.document import Report
from ckptcost.first.report.parts import Warned
from ckptcost.first.report.statement import QUANTITIES
from ckptcost.first.report.study import ROW_UNIT, Column, Study, Table, named, range_text, shortened
from ckptcost.first.report.writers import Block, Section

MARKER = "<!-- ckptcost-diff -->"
"""by which a bot finds its own comment to rewrite it"""
MOST_BYTES = 65_535
"""GitHub takes comments below 65,536 characters; bytes are never fewer"""
NOT_KNOWN = "not known"
SIMULATED = "SIMULATED: no machine was measured for this."
NAMES = {q.id: q.label for q in IN_DOCUMENTS} | {
    "embodied": "embodied carbon of the GPU time lost",
    "checkpoints": "checkpoints",
    "length": "length of the run",
}
HEADLINES = ("cost", "energy", "gpu_time_lost", "emissions_location")
_TOTALS = (*QUANTITIES, "checkpoints", "length")
_LONGEST = 160
"""of a name"""
_LONGEST_LINE = 300
"""of a sentence in a comment"""
_ROWS_AT_ONCE = 50
"""so that some may be told where not all can be"""


def _short(text: str, most: int = _LONGEST) -> str:
    return shortened(" ".join(on_one_line(text).split()), most)


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


def _signed_text(value: float, told: str) -> str:
    return ("+" if value > 0 else "") + told


def change_text(change: Change) -> str:
    if change.change is None:
        return NOT_KNOWN
    if change.direction == "same":
        return "0"
    return _signed_text(change.change, _figure(change.change, change.unit))


def relative_text(change: Change) -> str:
    if change.direction == "same":
        return "0 %"
    if change.relative is not None:
        return _signed_text(change.relative, share(change.relative))
    return NOT_KNOWN if change.change is None else "from 0"


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


def _reasons(difference: Difference) -> Section:
    return _warnings_section(verdict(difference), difference.incomparable_reasons)


def _warnings_section(title: str, told: Sequence[Warned]) -> Section:
    return Section(title, [on_one_line(each.message) for each in told], [e.code for e in told])


def factor_text(value: FactorValue | None, factor: FactorChange) -> str:
    if value is None:
        return "none"
    return value.text or (
        "unlimited" if value.value is None else quantity(value.value, factor.unit)
    )


def split_lines(difference: Difference) -> list[str]:
    """What a change would be with the factors of before."""
    found = []
    for split in difference.delta.splits:
        same, unit = split.at_constant_factors, split.unit
        parts = ", ".join(
            f"{_signed_text(part.change, number(part.change))} {unit} from {part.label}"
            for part in split.parts
        )
        found.append(
            f"{NAMES[split.quantity]}, at constant factors:"
            f" {_signed_text(same, number(same))} {unit} ({parts})"
        )
    return found


def budget_lines(budgets: Sequence[Budget]) -> list[str]:
    return [budget_text(each) for each in budgets]


def budget_text(budget: Budget) -> str:
    """One line of whether a change stays within its budget."""
    value = "the change is not known"
    if budget.value is not None:
        told = share(budget.value) if budget.relative else number(budget.value)
        value = f"it is {_signed_text(budget.value, told)}"
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


# ---- tables

_FIGURES = (
    Column("was", "before", ROW_UNIT),
    Column("now", "after", ROW_UNIT),
    Column("by", "change", ROW_UNIT),
    Column("percent", "%", ROW_UNIT),
    Column("range_before", "range before", ROW_UNIT, wide=True, range_of="before"),
    Column("range_after", "range after", ROW_UNIT, wide=True, range_of="after"),
    Column("certainty", "ranges", ROW_UNIT, wide=True),
)
"""right of a name; the words hold units, so the table has none"""
_FACTORS = (
    *(Column(name, name) for name in ("factor", "before", "after")),
    Column("kind", "kind", wide=True),
)
_APART = 'A line named "apart" stands there anyway and is in no total.'


def _row(name: str, change: Change) -> dict[str, Any]:
    return figures(change) | {
        "name": name,
        "was": amount_text(change.before, change.unit),
        "now": amount_text(change.after, change.unit),
        "by": change_text(change),
        "percent": relative_text(change),
        "certainty": _certainty(change),
    }


def figures(change: Change) -> dict[str, Any]:
    """The numbers of a change, in its unit; None where unknown."""
    return {
        **{
            f"{side}{end}": getattr(amount, field) if amount else None
            for side, amount in (("before", change.before), ("after", change.after))
            for end, field in (("", "value"), ("_low", "low"), ("_high", "high"))
        },
        "unit": change.unit,
        "change": change.change,
        "change_share": change.relative,
        "direction": change.direction,
        "ranges_overlap": change.ranges_overlap,
        "reason": change.reason or "",
    }


def _by_quantity(title: str, changes: Any, quantities: Sequence[str]) -> Table:
    rows = [_row(NAMES[what], getattr(changes, what)) for what in quantities]
    return Table("totals", title, (Column("name", "quantity"), *_FIGURES), rows, folded=bool(title))


def _totals(difference: Difference) -> Table:
    return _by_quantity("", difference.delta.totals, _TOTALS)


def _units(difference: Difference) -> list[Table]:
    """Where counts differ, each figure for one of them; where they are the same it would be the
    totals again."""
    return [
        _by_quantity(_unit_title(unit), unit, QUANTITIES)
        for unit in difference.delta.per
        if unit.before_count != unit.after_count
    ]


def _unit_title(unit: UnitChanges) -> str:
    counts = f"{number(unit.before_count)} before, {number(unit.after_count)} now"
    return f"For each {_short(unit.name.replace('_', ' '))} ({counts})"


def _lines(difference: Difference, what: str) -> Table:
    """One quantity of every line of which it says something."""
    told = [(c, getattr(c, what)) for c in difference.delta.components]
    told = [(c, change) for c, change in told if _says_something(change)]
    title = f"{NAMES[what][0].upper()}{NAMES[what][1:]} by line"
    return Table(
        what,
        f"{title}, {told[0][1].unit}" if told else title,
        (Column("name", "line"), *_FIGURES),
        [_row(_label(c), change) for c, change in told],
        _APART if any(c.ledger != "marginal" for c, _ in told) else "",
        folded=True,
    )


def _says_something(change: Change) -> bool:
    sides = [side for side in (change.before, change.after) if side is not None]
    return any(side.value is None or side.value for side in sides)


def _label(c: ComponentChanges) -> str:
    only = {"past": " (past only)", "current": " (new)", None: ""}[c.only_in]
    return _short(c.label) + only + ("" if c.ledger == "marginal" else ", apart")


def _factors(difference: Difference) -> Table:
    rows = [
        {
            "factor": _short(f.id),
            "before": _short(factor_text(f.before, f)),
            "after": _short(factor_text(f.after, f)),
            "kind": "price, grid or facility" if f.converts else "",
        }
        for f in difference.delta.factors
    ]
    return Table("factors", "Factors that changed", _FACTORS, rows, folded=True)


def _pieces(table: Table) -> Iterator[Table]:
    """The table by fifties, each saying how many rows there are."""
    of = len(table.rows)
    for at in range(0, of, _ROWS_AT_ONCE):
        rows = table.rows[at : at + _ROWS_AT_ONCE]
        which = f"{of}" if len(rows) == of else f"{at + 1} to {at + len(rows)} of {of}"
        yield table._replace(rows=rows, title=f"{table.title} ({which})")


# ---- Markdown


def to_markdown(report: Report) -> str:
    """A comment that GitHub takes: details are left out from the end until it is short enough, and
    that is said. Of two that are the same, one line."""
    difference = of_report(report)
    budgets = writers.section_markdown(Section("", budget_lines(difference.budgets)))
    if is_unchanged(difference):
        line = plain(_short(unchanged_line(difference), _LONGEST_LINE))
        return "\n".join([MARKER, line, *budgets]) + "\n"
    head, tail = _head(difference), _tail(report)
    told = [(name, writers.markdown_of([block])) for name, block in _details(difference)]
    told = [(name, lines) for name, lines in told if lines]
    kept: list[str] = []
    room = MOST_BYTES - _bytes([*head, *_left_out(told), *tail])
    for at, (_, lines) in enumerate(told):
        room -= _bytes(lines)
        if room < 0:
            kept += _left_out(told[at:])
            break
        kept += lines
    return "\n".join([*head, *kept, *tail]) + "\n"


def _bytes(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _left_out(told: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    names = ", ".join(dict.fromkeys(name for name, _ in told))
    words = (
        f"_Left out, some or all, because a comment holds {MOST_BYTES + 1:,} characters at most:"
        f" {names}._"
    )
    return ["", words] if told else []


def _head(difference: Difference) -> list[str]:
    out = [MARKER, f"### Checkpoint cost: {headline(difference)}"]
    out += ["", f"**{SIMULATED}**"] if is_simulated(difference) else []
    if not difference.comparable:
        reasons = writers.section_markdown(_cut(_reasons(difference)._replace(title="")))
        out += ["", f"> **{verdict(difference)}**", *(f"> {line}" for line in reasons)]
    before, now = map(plain, _sides(difference))
    out += ["", f"Before: {before}. Now: {now}. More is worse."]
    budgets = Section("", budget_lines(difference.budgets))
    return [*out, *writers.markdown_of([_totals(difference), budgets])]


def _sides(difference: Difference) -> list[str]:
    return [
        f"{_short(side.statement.subject.name)} ({_short(side.source)})"
        for side in (difference.past, difference.current)
    ]


def is_simulated(difference: Difference) -> bool:
    return any(side.statement.simulated for side in (difference.past, difference.current))


def _cut(section: Section) -> Section:
    return section._replace(lines=[_short(line, _LONGEST_LINE) for line in section.lines])


def _details(difference: Difference) -> list[tuple[str, Block]]:
    """Blocks by what they tell, the most needed first."""
    lines = [_lines(difference, what) for what in QUANTITIES]
    return [
        ("changes at constant factors", Section("", split_lines(difference))),
        ("warnings", _cut(_warnings_section("", difference.notes))),
        *(("figures for each unit", table) for table in _units(difference)),
        *(("factors that changed", piece) for piece in _pieces(_factors(difference))),
        *(("components", piece) for table in lines for piece in _pieces(table)),
    ]


def _tail(report: Report) -> list[str]:
    difference = of_report(report)
    warned = {
        warning.code: None
        for side in (difference.past, difference.current)
        for warning in side.statement.warnings
    }
    codes = plain(_short(", ".join(list(warned)[:20]), _LONGEST_LINE))
    told = [f"Warnings of the statements: {codes}.", ""] if warned else []
    memo = "Memo item: this energy already sits in the facility's meter."
    return ["", *told, f"<sub>{plain(hash_line(report))} {memo}</sub>"]


# ---- text


def text(report: Report) -> str:
    """The same for a terminal; every change in full."""
    difference = of_report(report)
    if is_unchanged(difference):
        sections = [
            Section("", [on_one_line(unchanged_line(difference))], points=False),
            Section("", budget_lines(difference.budgets)),
        ]
        return "\n".join(line for each in sections for line in writers.section_text(each)) + "\n"
    return "\n".join(writers.text(_blocks(report))[1:]) + "\n"


def _blocks(report: Report) -> list[Block]:
    difference = of_report(report)
    before, now = _sides(difference)
    first = [f"Checkpoint cost: {headline(difference)}"]
    return [
        Section("", first + [SIMULATED] * is_simulated(difference), points=False),
        _reasons(difference),
        Section("", [f"before: {before}", f"after:  {now}"], points=False),
        _totals(difference),
        Section("", _range_lines(difference)),
        *_units(difference),
        *(_lines(difference, what) for what in ("energy", "cost")),
        _factors(difference),
        Section("At constant factors", split_lines(difference)),
        Section("Budgets", budget_lines(difference.budgets)),
        _warnings_section("Take care", difference.notes),
        Section("", [on_one_line(hash_line(report))], points=False),
    ]


def _range_lines(difference: Difference) -> list[str]:
    """What the table has no room for: ranges, and why a change is not known."""
    named = [(NAMES[name], getattr(difference.delta.totals, name)) for name in _TOTALS]
    return [
        f"{name}: {change.reason if change.change is None else _ranges_text(change)}"
        for name, change in named
        if change.change is None or change.ranges_overlap is not None
    ]


def _ranges_text(change: Change) -> str:
    row = figures(change)
    before, now = (range_text(row, side) or "no range" for side in ("before", "after"))
    told = {True: "overlap: the change is within the uncertainty", False: "do not overlap"}
    return f"{before} before and {now} now {told[bool(change.ranges_overlap)]}"


# ---- as an answer


_COLUMNS = (
    Column("of", "of", "", "total, unit or component"),
    *named("id", "label", "ledger", "quantity"),
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
        findings += [verdict(difference), *writers.warning_lines(_reasons(difference))]
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
        simulated=is_simulated(difference),
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
    head = {"of": of, "id": name, "label": label, "ledger": ledger}
    return [head | {"quantity": what} | figures(getattr(changes, what)) for what in quantities]


VIEWS: dict[str, Callable[[Report], str]] = {"text": text, "md": to_markdown}
