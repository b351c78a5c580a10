"""What changed between two saved answers: results line by line, and the inputs that differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ckptcost.answer import Answer, Column, Quantity, Range, Say, Table
from ckptcost.document import read_answer
from ckptcost.errors import InputError
from ckptcost.questions import common as q
from ckptcost.questions import one, ranks
from ckptcost.reading import Document
from ckptcost.scenario.units import show
from ckptcost.study import MEASURES

FIRST = {"cost": "Cost", "energy": "Energy", "gpu_time": "GPU time"}
"""what is said first, if it is known and has changed"""
SHOWN = ("interval", "safe", "goodput", "wall", "gpu_time", "energy", "cost", "carbon")
SAME = 1e-9
"""relative; documents hold twelve digits"""
MANY = 12


class Change(NamedTuple):
    """What a measure of a case was and is."""

    case: str
    measure: str
    was: Range
    now: Range

    def ratio(self) -> str:
        """Of the values: "+78 %"."""
        return f"{(self.now.value / self.was.value - 1.0) * 100.0:+.2g} %" if self.was.value else ""


def changes(paths: Sequence[str]) -> Answer:
    """Of two documents, the older one first."""
    q.demand(len(paths) == 2, "more than two saved answers", "compare", "give two of them")
    old, new = (read_answer(path) for path in paths)
    pairs = paired(old, new, paths)
    results = [each for was, now in pairs for each in results_of(was, now)]
    figures = inputs_apart(old, new, pairs)
    shown = [each for each in results if each.measure in SHOWN]
    columns = [Column("path", "input"), Column("before", "before"), Column("after", "after")]
    rows: list[list[Any]] = [[*each] for each in figures]
    reasons = [named(figures)]
    if results and new.tool != old.tool:
        reasons.append(f"Version {new.tool} also computes other results than {old.tool}.")
    return Answer(
        "compare",
        f"What changed: {new.title}",
        f"from {paths[0]} to {paths[1]}",
        [Say(what_changed(results)), *map(Say, reasons)],
        [
            results_table("changes", shown, len(pairs) > 1),
            Table("inputs_apart", "", columns, rows, shown=0 < len(figures) <= MANY),
            results_table("all_changes", results, True, shown=False),
        ],
    )


Row = dict[str, Any]
"""the measures of a case"""


def paired(old: Document, new: Document, paths: Sequence[str]) -> list[tuple[Row, Row]]:
    """Cases of the same name; if each document has one, those two."""
    were, are = (rows_of(each, path) for each, path in zip((old, new), paths, strict=True))
    if len(were) == len(are) == 1:
        return [*zip(were.values(), are.values(), strict=True)]
    found = [(were[name], are[name]) for name in are if name in were]
    q.demand(bool(found), "no case is in both", " and ".join(paths), "compare the same question")
    return found


def rows_of(document: Document, path: str) -> dict[str, Row]:
    """Measures of each case, from the table of cases."""
    try:
        table = document.answer().table("cases")
    except KeyError:
        remedy = "model, interval and compare write one"
        raise InputError("holds no table of cases", path, remedy) from None
    keys = [column.key for column in table.columns]
    rows = [dict(zip(keys, row, strict=True)) for row in table.rows]
    return {str(row["case"]): row for row in rows}


def results_of(was: Row, now: Row) -> list[Change]:
    """Measures whose value differs."""
    both = [(measure, was.get(measure), now.get(measure)) for measure in MEASURES]
    return [
        Change(str(now["case"]), measure, a, b)
        for measure, a, b in both
        if isinstance(a, Range) and isinstance(b, Range)
        if abs(b.value - a.value) > SAME * max(abs(a.value), abs(b.value))
    ]


def what_changed(results: list[Change]) -> str:
    """The result that people ask for first."""
    found = [each for measure in FIRST for each in results if each.measure == measure]
    if not found:
        several = f"{len(results)} results have changed; cost, energy and GPU time have not."
        return several if results else "No result has changed."
    first, unit = found[0], MEASURES[found[0].measure].unit
    ends = " to ".join(one.in_words(show(each.value, unit)) for each in (first.was, first.now))
    case = f" ({first.case})" if len({each.case for each in found}) > 1 else ""
    return f"{FIRST[first.measure]} goes from {ends}{case}: {first.ratio()}."


def named(figures: list[list[str]]) -> str:
    """The inputs that differ, the first three by name."""
    texts = [f"{path} is {now}" if was == ranks.ABSENT else f"{path} from {was} to {now}"
             for path, was, now in figures[:3] if now != ranks.ABSENT]  # fmt: skip
    rest = [f"{len(figures) - len(texts)} more"] if len(figures) > len(texts) else []
    return f"Changed inputs: {q.and_join([*texts, *rest])}." if figures else "No input has changed."


def inputs_apart(old: Document, new: Document, pairs: list[tuple[Row, Row]]) -> list[list[str]]:
    """Figures and words that differ, each once; those that are no longer given last."""
    were, are = old.scenarios(), new.scenarios()
    names = [(str(was["case"]), str(now["case"])) for was, now in pairs]
    both = [(were[a], are[b]) for a, b in names if a in were and b in are]
    found = {row[0]: row for pair in reversed(both) for row in ranks.differing(pair)}
    return sorted(found.values(), key=lambda row: (row[2] == ranks.ABSENT, row[0]))


def results_table(name: str, results: list[Change], several: bool, shown: bool = True) -> Table:
    """A measure a row, before and after."""
    columns = [
        Column("case", "case", "text", "value" if several else "no"),
        Column("result", "", "text"),
        Column("before", "before", ""),
        Column("after", "after", ""),
        Column("change", "change", "text"),
    ]
    rows: list[list[Any]] = []
    for each in results:
        unit, header, *_ = MEASURES[each.measure]
        ends = Quantity(each.was, unit), Quantity(each.now, unit)
        rows.append([each.case, header, *ends, each.ratio()])
    return Table(name, "", columns, rows, shown=shown)
