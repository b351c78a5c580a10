"""The bill: as steps to its totals, and as a table of every line of both ledgers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ckptcost.core.quantities import QUANTITIES
from ckptcost.present.amounts import count, number
from ckptcost.report.html.extras import Steps
from ckptcost.report.html.markup import (
    Child,
    Markup,
    band,
    data,
    el,
    join,
    note,
    ranged,
    section,
    small,
    table,
)
from ckptcost.report.html.sections import interval_words, without
from ckptcost.report.html.svg_axis import Drawn, figure
from ckptcost.report.html.svg_waterfall import Fall, Step, drawn
from ckptcost.report.parts import Component, Quantity, Totals
from ckptcost.report.statement import Statement

PANELS = (
    *((q.id, q.label[0].upper() + q.label[1:], q.unit) for q in QUANTITIES if not q.derived),
    ("emissions_location", "Emissions", "kgCO2e, location-based"),
)
COLUMNS = tuple((q.id, q.unit + q.header.partition(",")[2]) for q in QUANTITIES)
Columns = Sequence[tuple[str, str]]
_CAUSES = {"save": "Saving", "failure": "Failures", "keep": "Keeping what was saved"}
_RESTS_ON = {"user": "yours"}
_APART = "Apart, in no total: a share of what stands there anyway (allocated ledger)"


def waterfall(at: str, statement: Statement, level: int) -> Markup | None:
    """One picture for each quantity of which a line is known and not zero."""
    return _panels(
        at,
        [
            (name, _steps(f"{at}fall-{n}-svg", statement, what, name, unit))
            for n, (what, name, unit) in enumerate(PANELS, 1)
            if any(getattr(c, what).value for c in statement.marginal())
        ],
        level,
    )


def steps_of(told: Sequence[Steps], level: int) -> Markup | None:
    """The same of figures that are in no statement."""
    drawings = []
    for n, each in enumerate(told, 1):
        fall = Fall(
            each.unit, [Step(name, value, "save") for name, value in each.parts], each.total
        )
        in_all = f"{each.name}, {each.unit}"
        words = "; ".join(f"{name} {number(value)}" for name, value in each.parts)
        drawings.append(
            (each.name, figure(f"fall-{n}-svg", in_all, words, partial(drawn, fall), in_all))
        )
    return _panels("", drawings, level)


def _panels(at: str, drawings: Sequence[tuple[str, Markup]], level: int) -> Markup | None:
    """Radio buttons choose on a screen; paper shows all."""
    if not drawings:
        return None
    chosen: list[Child] = []
    shown: list[Markup] = []
    for n, (name, drawing) in enumerate(drawings, 1):
        mine = f"{at}fall-{n}"
        chosen += [
            el("input", type="radio", name=f"{at}fall", id=mine, checked=n == 1),
            el("label", name, for_=mine),
        ]
        shown.append(el("div", drawing, class_=f"panel panel-{n}"))
    inside = el("fieldset", el("legend", "What to show"), chosen, shown, class_="switch")
    return section(f"{at}steps", "Where it goes", inside, level=level)


def _steps(at: str, statement: Statement, what: str, name: str, unit: str) -> Markup:
    """Lines that are zero are not drawn, but named below."""
    total: Quantity = getattr(statement.totals, what)
    valued = [(c, getattr(c, what).value) for c in statement.marginal()]
    fall = Fall(
        unit.split(",", maxsplit=1)[0],
        [Step(c.label, v, c.cause) for c, v in valued if v != 0],
        total.value,
        total.low,
        total.high,
    )
    zero = [c.label for c, v in valued if v == 0]
    in_all = f"total {number(total.value)} {unit}" if total.value is not None else "total not known"
    told = [
        f"{step.label} {'not known' if step.value is None else number(step.value)}"
        for step in fall.steps
    ]
    lacking = without(statement, total)
    caption = [
        el("b", f"{name}, {unit}"),
        f": {in_all}",
        join([", ", interval_words(total)]) if ranged(total) else None,
        f"; not in it because unknown: {lacking}" if lacking else "",
        f"; zero: {', '.join(zero)}" if zero else "",
        ".",
    ]

    def draw(width: float) -> Drawn:
        return drawn(fall, width)

    return figure(
        at,
        f"{name}: from each line to the total, {unit}",
        "; ".join([*told, in_all]),
        draw,
        caption,
    )


def _cell(q: Quantity, price: Markup | None = None) -> Markup:
    return el("td", data(q.value), small(ranged(q)), price, class_="n")


def _price(c: Component) -> Markup | None:
    if c.price_qty is None or c.unit_price is None:
        return None
    return small(f"{number(c.price_qty)} {c.price_unit or ''} x {number(c.unit_price)}")


def _columns(statement: Statement) -> list[tuple[str, str]]:
    """Those of which any line is known; the remarks name the others."""
    return [
        (what, name)
        for what, name in COLUMNS
        if any(getattr(c, what).value is not None for c in statement.components)
    ]


def _line(c: Component, shown: Columns) -> Markup:
    cells = [_cell(getattr(c, what), _price(c) if what == "cost" else None) for what, _ in shown]
    words = [el("td", c.basis), el("td", _RESTS_ON.get(c.rests_on, c.rests_on))]
    return el("tr", el("th", c.label, small(c.boundary), scope="row"), cells, words)


def _sum(words: str, totals: Totals, shown: Columns) -> Markup:
    cells = [_cell(getattr(totals, what)) for what, _ in shown]
    return el(
        "tr",
        el("th", words, scope="row"),
        cells,
        el("td", totals.energy.basis),
        el("td"),
        class_="total",
    )


def bill(at: str, statement: Statement, level: int) -> Markup:
    """Every line; what is unknown is a dash."""
    shown = _columns(statement)
    last = len(shown) + 1
    width = last + 2
    lines = statement.marginal()
    bodies: list[list[Markup]] = []
    for cause, words in _CAUSES.items():
        those = [c for c in lines if c.cause == cause]
        if those:
            bodies.append([band(words, width), *(_line(c, shown) for c in those)])
    bodies.append([_sum("Total of the lines above", statement.totals, shown)])
    standing = [c for c in statement.components if c.ledger == "allocated"]
    if standing:
        more = (
            [_sum("Total of the allocated ledger", statement.allocated, shown)]
            if statement.allocated and len(standing) > 1
            else []
        )
        bodies.append([band(_APART, width), *(_line(c, shown) for c in standing), *more])
    header = ["Line", *(name for _, name in shown), "Basis", "Rests on"]
    kinds = {getattr(statement.totals, what).interval for what, _ in COLUMNS} - {None}
    caption = (
        "Below a figure: its range, as far as the meters tell"
        if kinds == {"bounds"}
        else "Below a figure: its range, p5 to p95 unless said otherwise"
    )
    said = table(
        header,
        *bodies,
        label="The bill",
        caption=caption,
        words=(last, last + 1),
        class_="wide-table bill",
        at=f"{at}bill-table",
    )
    return section(f"{at}bill", "The bill", said, _remarks(statement), level=level)


def _remarks(statement: Statement) -> list[Child]:
    missing = [
        (name, without(statement, getattr(statement.totals, what))) for what, name in COLUMNS
    ]
    named = "; ".join(f"{name}: {words}" for name, words in missing if words)
    saves = statement.totals.checkpoints.value
    twice = (
        "Location-based and market-based count the same energy twice: read one or the other, never"
        " their sum."
    )
    return [
        (
            note(
                "A dash is not known, which is not zero. Not in the totals because unknown:"
                f" {named}."
            )
            if named
            else None
        ),
        note(f"{count(saves)} checkpoints. {twice}" if saves is not None else twice),
        note(
            "Basis: how a figure came about. Rests on: the softest kind of input that it"
            " depends on."
        ),
    ]
