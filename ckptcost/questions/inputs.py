"""Which inputs decide: what the range of a result would be if one of them were known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ckptcost.answer import Answer, Column, Range, Say, Table
from ckptcost.questions import one, several
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.units import show, show_range
from ckptcost.study import MEASURES, Study

KNOWN = 10
LITTLE = 0.005
"""inputs shown at most, and the share of the spread below which one is not worth a line"""
DRAWS = 4096
ORDER = ("First", "Second")
NARROWS = 0.95
"""of the range: an input that leaves more of it is not worth a sentence"""


def answer(cases: Mapping[str, Scenario], draws: int | None, typed: str) -> Answer:
    """Of the best case: what to measure first, and how far each input moves the result."""
    every = Study(cases, DRAWS if draws is None else draws)
    row = several.order_of(every).rows[0]
    base, name = every.scenarios[row], every.names[row]
    study = every if len(cases) == 1 else Study({name: base}, every.draws)
    measure = one.measure_of(study, 0)
    unit, whole = MEASURES[measure].unit, study.range(measure, 0)
    shares = [each for each in study.deciding(measure, 0).items() if each[1] >= LITTLE][:KNOWN]
    left = _left(study, measure, [path for path, _ in shares])
    word = one.SHOWN[measure][0]
    columns = [
        Column("input", "input"),
        Column("value", "value and range"),
        Column("explains", "explains", "share"),
        Column("left", f"{unit} if known"),
        Column("known", f"{word} if known", unit, "no"),
        Column("low", "at its low end", unit, "no"),
        Column("high", "at its high end", unit, "no"),
        Column("basis", "basis", "text", "no"),
    ]
    figures = base.figures()
    rows: list[list[Any]] = []
    for (path, share), (known, low, high) in zip(shares, left, strict=True):
        said = one.decides(study, 0, path).said
        left_over = show_range(known.low, known.high, unit)
        rows.append([path, said, share, left_over, known, low, high, figures[path].basis])
    return Answer(
        "model",
        f"Which inputs decide: {base.name}",
        one.about(study, 0),
        _says(study, measure, shares, left),
        [Table("deciding", "", columns, rows, note=f"explains: share of the spread of {word}.")],
        [
            Say(
                "All inputs with their sources:",
                "",
                f"ckptcost model {typed} --detail".replace("  ", " "),
            )
        ]
        if rows
        else [Say(f"{word.capitalize()} {whole.say(unit)}: no input has a range.")],
        draws=study.draws,
    )


def _left(study: Study, measure: str, paths: list[str]) -> list[tuple[Range, float, float]]:
    """By input: the range that is left if it is known, and the result at both of its ends."""
    base, figures = study.scenarios[0], study.scenarios[0].figures()
    if not paths:
        return []
    known = Study({p: base.with_figure(p, figures[p].fixed()) for p in paths}, study.draws)
    ends = {
        f"{p} {end}": base.with_figure(p, figures[p].at(getattr(figures[p], end)))
        for p in paths
        for end in ("low", "high")
    }
    at = Study(ends, 0)
    return [
        (known.range(measure, i), at.value(measure, 2 * i), at.value(measure, 2 * i + 1))
        for i in range(len(paths))
    ]


def _says(
    study: Study,
    measure: str,
    shares: list[tuple[str, float]],
    left: list[tuple[Range, float, float]],
) -> list[Say]:
    """What to measure first, and what that would leave."""
    if not shares:
        return []
    whole, unit, word = study.range(measure, 0), MEASURES[measure].unit, one.SHOWN[measure][0]
    says: list[Say] = []
    for order, (path, share), (known, _, _) in zip(ORDER, shares, left, strict=False):
        each, rest = one.decides(study, 0, path), show_range(known.low, known.high, unit)
        narrows = known.high - known.low < NARROWS * (whole.high - whole.low)
        if says and not narrows:
            break
        then = f"; then {rest} {unit} would be left" if narrows else ""
        explains = f"it explains {show(share, 'share', 2)} of the spread{then}"
        says.append(Say(f"{order} find out {each.words}: {explains}.", "", each.command))
    return [*says, Say(f"Now the {word} is {whole.say(unit)}.")]
