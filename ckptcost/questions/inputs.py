"""Which inputs decide: what the range of a result would be if one of them were known."""

from __future__ import annotations

from collections.abc import Mapping

from ckptcost.answer import Answer, Cell, Column, Say, Table
from ckptcost.questions import one, ranks, several
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.units import show, show_range
from ckptcost.study import MEASURES, Study

MOST, LITTLE = 10, 0.005
"""inputs shown at most, and the share of the spread below which one is not worth a line"""
NARROWS = 0.95
"""of the range: a second input that leaves more of it is not worth a sentence"""


def answer(cases: Mapping[str, Scenario], draws: int | None, typed: str) -> Answer:
    """Of the best case: what to measure first, and what each input would leave if it were known."""
    every = Study(cases, draws)
    order = several.order_of(every)
    row = order.rows[0]
    base, figures = every.scenarios[row], every.scenarios[row].figures()
    title, about = f"Which inputs decide: {base.name}", one.about(every, row)
    if row in every.unsaid:
        return ranks.refused("model", title, about, order.stops[row])
    measure = one.measure_of(every, row)
    whole, unit, word = every.range(measure, row), MEASURES[measure].unit, one.SHOWN[measure][0]
    shares = [each for each in every.deciding(measure, row).items() if each[1] >= LITTLE][:MOST]
    if_known = {path: base.with_figure(path, figures[path].fixed()) for path, _ in shares}
    ranges = Study(if_known, every.draws).ranges(measure) if shares else []
    says = [Say(one.in_words(f"Checkpoints and failures add {whole.say(unit)}."))]
    rows: list[list[Cell]] = []
    for (path, share), known in zip(shares, ranges, strict=True):
        found = one.decides(every, row, path)
        left = one.in_words(f"{show_range(known.low, known.high, unit)} {unit}")
        narrows = known.high - known.low < NARROWS * (whole.high - whole.low)
        if len(rows) < (2 if narrows else 1):
            explains = f"it explains {show(share, 'share', 2)} of the spread."
            then = f" If you know it, the {word} lies in {left}." if narrows else ""
            words = f"{('First', 'Then')[len(rows)]} find out {found.words}: {explains}{then}"
            says.append(Say(words, "", found.command))
        rows.append([path, found.said, share, known, figures[path].basis])
    columns = [
        Column("input", "input"),
        Column("value", "value and range"),
        Column("explains", "explains", "share"),
        Column("known", f"{unit} if known", unit, "ends"),
        Column("basis", "basis", "text", "no"),
    ]
    detail = f"ckptcost model {typed} --detail".replace("  ", " ")
    return Answer(
        "model",
        title,
        about,
        says,
        [Table("deciding", "", columns, rows, f"explains: share of the spread of {word}.")],
        [Say("All inputs with their sources:" if rows else "No input has a range:", "", detail)],
        draws=every.draws,
    )
