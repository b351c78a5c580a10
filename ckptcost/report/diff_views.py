"""A difference as a comment of a pull request, for a terminal of 80 columns, and as CSV. More is
worse, and is said so."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

from ckptcost.core.quantities import IN_DOCUMENTS
from ckptcost.present.amounts import between, duration, number, quantity, share
from ckptcost.present.table import columns, markdown
from ckptcost.report.diff_document import (
    Amount,
    Budget,
    Change,
    ComponentChanges,
    DiffDocument,
    FactorChange,
    FactorValue,
    UnitChanges,
)
from ckptcost.report.statement import QUANTITIES
from ckptcost.report.to_csv import lines, safe

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
_ENTITIES = {each: f"&#{ord(each)};" for each in "\\`*_[]<>|~&$"} | {
    "@": "@&#8203;",
    "#": "#&#8203;",
}
_BLOCK = re.compile(r"([-+]|\d{1,9}[.)])( |$)|[-=]+$")
"""what begins a list, a rule or a heading where it begins a line"""
_LONGEST = 160


def plain(text: str) -> str:
    """Somebody's words as Markdown that shows them and does nothing else: no markup, no link,
    nobody notified.

    >>> plain("a|b <b>*@me*"), plain("see www.x.org")
    ('a&#124;b &#60;b&#62;&#42;@&#8203;me&#42;', 'see www&#46;x.org')
    """
    flat = " ".join(
        "".join(
            " " if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp") else each
            for each in text
        ).split()
    )
    shown = "".join(_ENTITIES.get(each, each) for each in flat)
    shown = shown.replace("://", "&#58;//").replace("www.", "www&#46;").replace("WWW.", "WWW&#46;")
    return "&#8203;" + shown if _BLOCK.match(shown) else shown


def _named(text: str) -> str:
    return plain(text if len(text) <= _LONGEST else text[: _LONGEST - 2] + "..")


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


def headline(document: DiffDocument) -> str:
    """The largest change of a total, in words."""
    found = [(name, getattr(document.delta.totals, name)) for name in HEADLINES]
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


def is_unchanged(document: DiffDocument) -> bool:
    """Whether every figure, its range and all it rests on are as they were."""
    delta = document.delta
    groups = [delta.totals, *filter(None, (delta.allocated,)), *delta.components, *delta.per]
    changes = [each for group in groups for _, each in group if isinstance(each, Change)]
    return (
        document.comparable
        and not delta.factors
        and all(each.before == each.after for each in changes)
    )


def unchanged_line(document: DiffDocument) -> str:
    """All there is to say of two that are the same."""
    totals = [(name, getattr(document.delta.totals, name)) for name in HEADLINES]
    told = [
        f"{NAMES[name]} {amount_text(each.after, each.unit)}"
        for name, each in totals
        if each.after is not None
    ]
    simulated = " (SIMULATED)" if document.current.statement.simulated else ""
    return (
        f"Checkpoint cost: nothing changed{simulated}: {', '.join(told)};"
        f" {document.past.source} and {document.current.source}"
    )


def reason_lines(document: DiffDocument) -> list[str]:
    return [f"{reason.message} ({reason.code})" for reason in document.incomparable_reasons]


def verdict(document: DiffDocument) -> str:
    """One line above the reasons; empty where the two are comparable."""
    if document.comparable:
        return ""
    if any(reason.refuses for reason in document.incomparable_reasons):
        return (
            "NOT COMPARABLE. These are figures of different things; they are shown because that was"
            " asked for (--anyway)."
        )
    return "Not like for like: the figures below are of the same thing at other conditions."


def total_rows(document: DiffDocument) -> list[list[str]]:
    return [_row(NAMES[name], getattr(document.delta.totals, name)) for name in _TOTALS]


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


def _shown_units(document: DiffDocument) -> list[UnitChanges]:
    """Where counts differ, each figure for one of them; where they are the same it would be the
    totals again."""
    return [u for u in document.delta.per if u.before_count != u.after_count]


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


def split_lines(document: DiffDocument) -> list[str]:
    """What a change would be with the factors of before."""
    found = []
    for split in document.delta.splits:
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


def hash_line(document: DiffDocument) -> str:
    sides = [
        f"{which} {side.result_sha256[:16]} ({side.source})"
        for which, side in (("past", document.past), ("current", document.current))
    ]
    return (
        f"Documents: {', '.join(sides)}; difference {document.reproducibility.result_sha256[:16]};"
        f" method {document.tool.method_version}."
    )


# ---- Markdown


def to_markdown(document: DiffDocument, most_bytes: int = MOST_BYTES) -> str:
    """A comment that GitHub takes: details are left out from the end until it is short enough, and
    that is said. Of two that are the same, one line."""
    if is_unchanged(document):
        told = [f"- {plain(line)}" for line in budget_lines(document.budgets)]
        return "\n".join([MARKER, _cut(unchanged_line(document)), *told]) + "\n"
    head, details, tail = _head(document), _details(document), _tail(document)
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


def _head(document: DiffDocument) -> list[str]:
    past, current = document.past.statement, document.current.statement
    simulated = (
        ["", "**SIMULATED: no machine was measured for this.**"]
        if past.simulated or current.simulated
        else []
    )
    out = [MARKER, f"### Checkpoint cost: {headline(document)}", *simulated]
    if not document.comparable:
        out += [
            "",
            f"> **{verdict(document)}**",
            *(f"> - {_cut(line)}" for line in reason_lines(document)),
        ]
    sides = [
        f"{_named(side.statement.subject.name)} ({_named(side.source)})"
        for side in (document.past, document.current)
    ]
    out += ["", f"Before: {sides[0]}. Now: {sides[1]}. More is worse.", ""]
    rows = [
        [*row, *_ranges(getattr(document.delta.totals, name))]
        for name, row in zip(_TOTALS, total_rows(document), strict=True)
    ]
    out += _table([*_HEADER, *_MORE], rows)
    if document.budgets:
        out += ["", *(f"- {plain(line)}" for line in budget_lines(document.budgets))]
    return out


def _cut(line: str) -> str:
    return plain(line if len(line) <= 300 else line[:298] + "..")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    return markdown(header, [[_named(cell) for cell in row] for row in rows], left=left)


def _details(document: DiffDocument) -> list[tuple[str, list[str]]]:
    """Blocks by what they tell, the most needed first."""
    delta = document.delta
    return [
        (
            "changes at constant factors",
            (
                ["\n".join(["", *(f"- {plain(line)}" for line in split_lines(document))])]
                if delta.splits
                else []
            ),
        ),
        ("warnings", [f"\n- {_cut(f'{note.message} ({note.code})')}" for note in document.notes]),
        ("figures for each unit", [_unit_block(each) for each in _shown_units(document)]),
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


def _tail(document: DiffDocument) -> list[str]:
    warned = {
        w.code: w.message
        for side in (document.past, document.current)
        for w in side.statement.warnings
    }
    codes = (
        [f"Warnings of the statements: {_cut(', '.join(list(warned)[:20]))}.", ""] if warned else []
    )
    memo = "Memo item: this energy already sits in the facility's meter."
    return ["", *codes, f"<sub>{plain(hash_line(document))} {memo}</sub>"]


# ---- text


def text(document: DiffDocument) -> str:
    """The same for a terminal; every change in full."""
    if is_unchanged(document):
        line = unchanged_line(document)
        return "\n".join([*_wrapped(line), *_listed(budget_lines(document.budgets))]) + "\n"
    out = _wrapped(f"Checkpoint cost: {headline(document)}")
    sides = (document.past.statement, document.current.statement)
    out += (
        ["SIMULATED: no machine was measured for this."] if any(s.simulated for s in sides) else []
    )
    if not document.comparable:
        out += ["", *_wrapped(verdict(document)), *_listed(reason_lines(document))]
    out += ["", *_wrapped(f"before: {sides[0].subject.name} ({document.past.source})")]
    out += [*_wrapped(f"after:  {sides[1].subject.name} ({document.current.source})"), ""]
    out += columns(_HEADER, total_rows(document), widest=WIDTH)
    out += ["", *_listed(_range_lines(document))]
    for unit in _shown_units(document):
        counts = f"{number(unit.before_count)} before, {number(unit.after_count)} now"
        out += ["", *_wrapped(f"For each {unit.name.replace('_', ' ')} ({counts})")]
        out += columns(
            _HEADER, [_row(NAMES[name], getattr(unit, name)) for name in QUANTITIES], widest=WIDTH
        )
    for name, unit_name in (("energy", "kWh"), ("cost", "USD")):
        rows = [
            _row(_label(c), getattr(c, name))
            for c in document.delta.components
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
    if document.delta.factors:
        rows = [
            [f.id, _short(_factor_text(f.before, f)), _short(_factor_text(f.after, f))]
            for f in document.delta.factors
        ]
        out += [
            "",
            "Factors that changed",
            *columns(["factor", "before", "after"], rows, left=3, widest=WIDTH),
        ]
    out += _section("At constant factors", split_lines(document))
    out += _section("Budgets", budget_lines(document.budgets))
    out += _section("Take care", [f"{note.message} ({note.code})" for note in document.notes])
    out += ["", *_wrapped(hash_line(document))]
    return "\n".join(line.rstrip() for line in out) + "\n"


def _range_lines(document: DiffDocument) -> list[str]:
    """What the table has no room for: ranges, and why a change is not known."""
    found = []
    for name in _TOTALS:
        change: Change = getattr(document.delta.totals, name)
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


# ---- CSV


def to_csv(document: DiffDocument) -> str:
    """One row per quantity of the totals, of each unit and of each component; numbers in the row's
    unit, empty where unknown."""
    header = [
        "of",
        "id",
        "label",
        "ledger",
        "quantity",
        "unit",
        "before",
        "before_low",
        "before_high",
        "after",
        "after_low",
        "after_high",
        "change",
        "change_share",
        "direction",
        "ranges_overlap",
        "reason",
        "comparable",
    ]
    rows: list[list[Any]] = [header]

    def add(
        of: str, name: str, label: str, ledger: str, changes: Any, quantities: Sequence[str]
    ) -> None:
        for what in quantities:
            change: Change = getattr(changes, what)
            ends = [
                getattr(side, end) if side else None
                for side in (change.before, change.after)
                for end in ("value", "low", "high")
            ]
            rows.append(
                [
                    of,
                    safe(name),
                    safe(label),
                    ledger,
                    what,
                    change.unit,
                    *ends,
                    change.change,
                    change.relative,
                    change.direction,
                    _flag(change.ranges_overlap),
                    safe(change.reason or ""),
                    _flag(document.comparable),
                ]
            )

    delta = document.delta
    add("total", "", "", "marginal", delta.totals, _TOTALS)
    for unit in delta.per:
        add("unit", unit.name, unit.name, "marginal", unit, QUANTITIES)
    for c in delta.components:
        add("component", c.id, c.label, c.ledger, c, QUANTITIES)
    return lines(rows)


def _flag(value: bool | None) -> str | None:
    return None if value is None else "true" if value else "false"


VIEWS: dict[str, Callable[[DiffDocument], str]] = {
    "text": text,
    "md": to_markdown,
    "csv": to_csv,
    "json": DiffDocument.to_json,
}
