"""What changed between two saved answers: results line by line, and the inputs that differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ckptcost.answer import Answer, Column, Quantity, Range, Say, Table
from ckptcost.document import read_answer
from ckptcost.errors import InputError
from ckptcost.questions import common as q
from ckptcost.questions import one
from ckptcost.reading import Document
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.units import show
from ckptcost.study import MEASURES, unit_of

FIRST = ("cost", "energy", "gpu_time")
"""what is said first, if it is known and has changed"""
SHOWN = ("interval", "safe", "goodput", "wall", "gpu_time", "energy", "cost", "carbon")
SAME = 1e-9
"""relative; documents hold twelve digits"""
MANY = 12

Change = tuple[str, str, Range, Range]
"""a case, a measure, and what it was and is"""


def changes(paths: Sequence[str]) -> Answer:
    """Of two documents, the older one first."""
    q.demand(len(paths) == 2, "more than two saved answers", "compare", "give two of them")
    old, new = (read_answer(path) for path in paths)
    pairs = paired(old, new, paths)
    results = [each for name, was, now in pairs for each in results_of(name, was, now)]
    figures = inputs_apart(old, new, [(was[0], now[0]) for _, was, now in pairs])
    shown = [each for each in results if each[1] in SHOWN]
    return Answer(
        "compare",
        f"What changed: {new.title}",
        f"from {paths[0]} to {paths[1]}",
        [Say(what_changed(results)), Say(why(figures, results, (old, new)))],
        [
            results_table("changes", shown, len(pairs) > 1),
            inputs_table(figures),
            results_table("all_changes", results, True, shown=False),
        ],
    )


Row = tuple[str, dict[str, Any]]
"""a case and its measures"""


def paired(old: Document, new: Document, paths: Sequence[str]) -> list[tuple[str, Row, Row]]:
    """Cases of the same name; if each document has one, those two."""
    were, are = (rows_of(each, path) for each, path in zip((old, new), paths, strict=True))
    if len(were) == len(are) == 1:
        (was,), (now,) = were.items(), are.items()
        return [(now[0], was, now)]
    found = [(name, (name, were[name]), (name, are[name])) for name in are if name in were]
    q.demand(bool(found), "no case is in both", " and ".join(paths), "compare the same question")
    return found


def rows_of(document: Document, path: str) -> dict[str, dict[str, Any]]:
    """Measures of each case, from the table of cases."""
    tables = [each for each in document.answer().tables if each.name == "cases"]
    if not tables:
        raise InputError("holds no table of cases", path, "model, interval and compare write one")
    keys = [column.key for column in tables[0].columns]
    rows = [dict(zip(keys, row, strict=True)) for row in tables[0].rows]
    return {str(row["case"]): row for row in rows}


def results_of(name: str, was: Row, now: Row) -> list[Change]:
    """Measures whose value differs."""
    found = []
    for measure in MEASURES:
        a, b = range_of(was[1].get(measure)), range_of(now[1].get(measure))
        if a and b and abs(b.value - a.value) > SAME * max(abs(a.value), abs(b.value)):
            found.append((name, measure, a, b))
    return found


def range_of(cell: Any) -> Range | None:
    if isinstance(cell, Range):
        return cell
    return Range(cell, cell, cell) if isinstance(cell, float) else None


def what_changed(results: list[Change]) -> str:
    """The result that people ask for first."""
    if not results:
        return "No result has changed."
    for measure in FIRST:
        found = [each for each in results if each[1] == measure]
        if found:
            name, _, was, now = max(found, key=lambda each: abs(ratio(each[2], each[3])))
            unit = MEASURES[measure].unit
            ends = " to ".join(one.in_words(show(each.value, unit)) for each in (was, now))
            case = f" ({name})" if len(found) > 1 else ""
            header = {"cost": "Cost", "energy": "Energy", "gpu_time": "GPU time"}[measure]
            return f"{header} goes from {ends}{case}: {ratio(was, now) * 100.0:+.2g} %."
    return f"{len(results)} results have changed; cost, energy and GPU time have not."


def ratio(was: Range, now: Range) -> float:
    return now.value / was.value - 1.0 if was.value else 0.0


ABSENT = "not given"


def why(figures: list[list[str]], results: list[Change], documents: Sequence[Document]) -> str:
    """The inputs that differ, or the version."""
    if figures:
        named = [f"{path} from {was} to {now}" if was != ABSENT else f"{path} is {now}"
                 for path, was, now in figures[:3] if now != ABSENT]  # fmt: skip
        rest = len(figures) - len(named)
        more = [f"{rest} more"] if rest else []
        return f"Changed inputs: {q.and_join([*named, *more])}."
    tools = [each.tool for each in documents]
    if results and tools[0] != tools[1]:
        return f"No input has changed: version {tools[1]} computes other results than {tools[0]}."
    return "No input has changed."


def inputs_apart(old: Document, new: Document, names: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Figures and words that differ, each once; those that are no longer given last."""
    were, are = old.scenarios_by_case(), new.scenarios_by_case()
    found: dict[str, list[str]] = {}
    for was, now in names:
        if was in were and now in are:
            a, b = texts_of(were[was]), texts_of(are[now])
            for path in sorted({**a, **b}):
                if a.get(path) != b.get(path):
                    found.setdefault(path, [path, a.get(path, ABSENT), b.get(path, ABSENT)])
    return sorted(found.values(), key=lambda each: each[2] == ABSENT)


def texts_of(scenario: Scenario) -> dict[str, str]:
    return {
        f"{section}.{key}": said_of(value, f"{section}.{key}")
        for section, keys in scenario.said.items()
        for key, value in keys.items()
    }


def said_of(value: Any, path: str) -> str:
    """A figure with its range, or a word."""
    if not isinstance(value, Figure):
        return str(value)
    unit = unit_of(path)
    ends = f" ({value.low:g} to {value.high:g})" if value.ranged else ""
    return f"{show(value.value, unit, 6)}{ends}"


def results_table(name: str, results: list[Change], several: bool, shown: bool = True) -> Table:
    columns = [
        Column("case", "case", "text", "value" if several else "no"),
        Column("result", "", "text"),
        Column("before", "before", ""),
        Column("after", "after", ""),
        Column("change", "change", "text"),
    ]
    rows: list[list[Any]] = []
    for case, measure, was, now in results:
        header, unit = MEASURES[measure].header, MEASURES[measure].unit
        change = f"{ratio(was, now) * 100.0:+.2g} %" if was.value else ""
        rows.append([case, header, Quantity(was, unit), Quantity(now, unit), change])
    return Table(name, "", columns, rows, shown=shown)


def inputs_table(figures: list[list[str]]) -> Table:
    columns = [Column("path", "input"), Column("before", "before"), Column("after", "after")]
    rows: list[list[Any]] = [[*each] for each in figures]
    return Table("inputs_apart", "", columns, rows, shown=0 < len(figures) <= MANY)
