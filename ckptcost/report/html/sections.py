"""What a statement says: what it is of, the figures in large, what they are made of line by line,
and several statements side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ckptcost.core.quantities import BY_ID, QUANTITIES
from ckptcost.present.amounts import count, duration, number, share
from ckptcost.report.html.markup import (
    Child,
    Markup,
    Row,
    band,
    bullets,
    data,
    el,
    join,
    note,
    range_text,
    row,
    section,
    small,
    table,
    text,
)
from ckptcost.report.html.pictures import Fall, FallStep
from ckptcost.report.parts import Component, Quantity, Totals
from ckptcost.report.statement import Statement
from ckptcost.report.study_views import SIMULATED

KINDS = {
    "measured": "Measured",
    "modelled": "Modelled",
    "mixed": "Measured in part, modelled in part",
}
NAMES = {q.id: q.label[0].upper() + q.label[1:] for q in QUANTITIES} | {
    "embodied": "Embodied carbon"
}
"""of the figures in large, in their order"""
COLUMNS = {q.id: q.unit + q.header.partition(",")[2] for q in QUANTITIES}
PICTURED = {q.id: q.unit for q in QUANTITIES if not q.derived} | {
    "emissions_location": "kgCO2e, location-based"
}
_APART = {
    "emissions_market": "another way to count the same energy: not to be added to location-based",
    "embodied": "share of the hardware's making: in no total",
}
_CAUSES = {"save": "Saving", "failure": "Failures", "keep": "Keeping what was saved"}
_STANDING = "Apart, in no total: a share of what stands there anyway (allocated ledger)"
READING = (
    "A dash is not known, which is not zero. Basis: how a figure came about. Rests on: the softest"
    " kind of input that it depends on."
)
TWICE = (
    "Location-based and market-based count the same energy twice: read one or the other, never"
    " their sum."
)


# ---- what it is of


def lead(s: Statement) -> str:
    """What is counted, what kind of statement it is, and when it was."""
    counted = (
        "What checkpoints and failures add to this job."
        if s.kind == "modelled"
        else "What the checkpoints of this job took."
    )
    when = period(s)
    return f"{counted} {KINDS[s.kind]}: {s.how}. {when[0].upper()}{when[1:]}."


def period(s: Statement) -> str:
    """When it was; a plan has no dates."""
    if s.period_start is None or s.period_end is None:
        return "a plan, no dates"
    return f"{_moment(s.period_start)} to {_moment(s.period_end)} UTC"


def _moment(instant: str) -> str:
    """An instant without the seconds that are none.

    >>> _moment("2026-11-01T00:00:00Z"), _moment("2026-11-01T00:00:07.250Z")
    ('2026-11-01 00:00', '2026-11-01 00:00:07.250')
    """
    return instant.removesuffix("Z").replace("T", " ").removesuffix(":00")


def simulated_notice(statements: Sequence[Statement]) -> str:
    """Said in red where meters were simulated."""
    which = [s.subject.name for s in statements if s.simulated]
    if not which or len(which) == len(statements):
        return SIMULATED if which else ""
    return f"{SIMULATED} This holds for: {', '.join(which)}."


def facts(s: Statement) -> Markup:
    found = [el("div", el("dt", name), el("dd", said)) for name, said in facts_of(s).items()]
    return el("dl", found, class_="facts")


def facts_of(s: Statement) -> dict[str, str]:
    """What is known of the job, its machine and its place."""
    about = s.subject
    zone = f"({about.grid_zone})" if about.grid_zone != about.grid else None
    place = (about.latitude, about.longitude)
    known = {
        "Period": period(s),
        "Length": None if s.length_s is None else duration(s.length_s),
        "Checkpoints": _count_text(s.totals.checkpoints.value),
        "Checkpoint": about.checkpoint,
        "Storage tier": about.tier,
        "Cluster": about.cluster,
        "Accelerators": _count_text(about.accelerator_count, about.accelerator, "GPU"),
        "Nodes": _count_text(about.nodes),
        "Site": about.site,
        "Grid": _spaced(about.grid, zone if about.grid_zone else None),
        "Country": about.country if about.country != about.site else None,
        "Region": about.region,
        "Coordinates": None if None in place else ", ".join(map(number, place)),
        "Cloud": _spaced(about.cloud_provider, about.cloud_region),
        "Organisation": about.organisation,
        "Team": about.team,
        "Framework": about.framework,
        "Parameters": _count_text(about.parameters),
        "Training tokens": _count_text(about.tokens),
        "CPUs": _count_text(about.cpu_count, about.cpu_model, "CPU"),
        "Memory": None if about.ram_gb is None else f"{number(about.ram_gb)} GB",
        "Operating system": about.os,
        "Python": about.python,
        "Tags": ", ".join(f"{key}: {value}" for key, value in about.tags.items()),
        "Run": about.run_id,
    }
    return {name: said for name, said in known.items() if said}


def _count_text(value: float | None, of: str | None = None, thing: str = "") -> str | None:
    """How many of what, as far as either is known."""
    named = of or thing
    if value is None:
        return of
    return f"{count(value)} x {named}" if named else count(value)


def _spaced(*words: str | None) -> str:
    return " ".join(filter(None, words))


# ---- the figures in large


class Tile(NamedTuple):
    """A figure in large."""

    name: str
    value: float
    unit: str
    notes: Sequence[str] = ()
    basis: str = ""
    is_apart: bool = False
    """in no sum with the others"""


def tiles(told: Sequence[Tile]) -> Markup | None:
    return el("ul", map(_tile, told), class_="cards") if told else None


def _tile(of: Tile) -> Markup:
    basis = el("span", of.basis, class_="tag") if of.basis else None
    unit = el("span", of.unit, class_="unit")
    return el(
        "li",
        el("div", el("span", of.name), basis, class_="what"),
        el("div", data(of.value), " ", unit, class_="value"),
        map(small, of.notes),
        class_="apart" if of.is_apart else None,
    )


def tiles_of(s: Statement) -> list[Tile]:
    """The totals that are known."""
    found = []
    for what, name in NAMES.items():
        q: Quantity = getattr(s.totals, what)
        if q.value is not None:
            lacking = without(s, q)
            missing = f"not in it because unknown: {lacking}" if lacking else ""
            notes = [range_words(q), missing, _APART.get(what, "")]
            tile = Tile(name, q.value, q.unit, [*filter(None, notes)], q.basis, what in _APART)
            found.append(tile)
    return found


def missing(s: Statement) -> Markup | None:
    """The totals that are not known, and why."""
    told = [
        f"{name} ({why})" if why else name
        for what, name in NAMES.items()
        if getattr(s.totals, what).value is None
        for why in [why_unknown(s, what)]
    ]
    return note(f"Not known: {'; '.join(told)}.") if told else None


def why_unknown(s: Statement, what: str) -> str:
    """Why a figure is not known: which input is missing, else which lines are unknown."""
    quantity = BY_ID[what]
    if not quantity.metered:
        needed = quantity.rests_on[-1]
        if not any(f.id == needed for f in s.factors):
            return f"{needed} is not given"
    return without(s, getattr(s.totals, what))


def without(s: Statement, q: Quantity) -> str:
    """Which lines are not in a sum because they are unknown."""
    if q.value is None and q.excludes and {c.id for c in s.marginal()} <= set(q.excludes):
        return "every line"
    return s.labels_of(q.excludes)


def range_words(q: Quantity) -> str:
    """The range, and what kind of range it is."""
    said = range_text(q)
    return f"{said} ({q.interval})" if said and q.interval else said


# ---- line by line


def falls_of(s: Statement) -> list[Fall]:
    """The pictures of the bill: quantities of which a line is known and not zero."""
    lines = s.marginal()
    found = []
    for what, unit in PICTURED.items():
        q: Quantity = getattr(s.totals, what)
        steps = [FallStep(c.label, getattr(c, what).value, c.cause) for c in lines]
        if any(step.value for step in steps):
            name, lacking = BY_ID[what].label.partition(",")[0], without(s, q)
            remarks = [
                range_words(q),
                f"not in it because unknown: {lacking}" if lacking else "",
            ]
            remark = "; ".join(filter(None, remarks))
            title = name[0].upper() + name[1:]
            found.append(Fall(unit, steps, q.value, q.low, q.high, title, remark))
    return found


def is_billed(s: Statement) -> bool:
    """Whether a line has a figure that is known and not zero."""
    return any(getattr(c, what).value for c in s.marginal() for what in COLUMNS)


def bill(at: str, s: Statement, level: int) -> Markup:
    """Every line of both ledgers; what is unknown is a dash. Quantities of which no line is known
    have no column: they are named beside the totals."""
    shown = [
        what for what in COLUMNS if any(getattr(c, what).value is not None for c in s.components)
    ]
    width = len(shown) + 3

    bodies = [
        _lines(words, [c for c in s.marginal() if c.cause == cause], shown)
        for cause, words in _CAUSES.items()
    ]
    bodies.append([_total("Total of the lines above", s.totals, shown)])
    standing = [c for c in s.components if c.ledger == "allocated"]
    bodies.append(_lines(_STANDING, standing, shown))
    if s.allocated and len(standing) > 1:
        bodies[-1].append(_total("Total of the allocated ledger", s.allocated, shown))
    said = table(
        ["Line", *(COLUMNS[what] for what in shown), "Basis", "Rests on"],
        *filter(None, bodies),
        label="The bill",
        caption=_range_caption(s),
        words=(width - 2, width - 1),
        class_="wide-table bill",
        at=f"{at}bill-table",
    )
    return section(f"{at}bill", "The bill", said, *_remarks(s), level=level)


def _range_caption(s: Statement) -> str:
    kinds = {getattr(s.totals, what).interval for what in COLUMNS} - {None}
    if not kinds:
        return ""
    of_meters = kinds == {"bounds"}
    kind = "as far as the meters tell" if of_meters else "p5 to p95 unless said otherwise"
    return f"Below a figure: its range, {kind}"


def _lines(words: str, those: Sequence[Component], shown: Sequence[str]) -> list[Row]:
    """Lines under what they have in common."""
    return [band(words, len(shown) + 3), *(_line(c, shown) for c in those)] if those else []


def _total(words: str, of: Totals, shown: Sequence[str]) -> Row:
    cells = [words, *(_cell(getattr(of, what)) for what in shown), of.energy.basis, ""]
    return row(cells, {len(shown) + 1, len(shown) + 2}, "total")


def _line(c: Component, shown: Sequence[str]) -> list[Child]:
    figures = [_cell(getattr(c, what), _price(c) if what == "cost" else "") for what in shown]
    rests_on = "yours" if c.rests_on == "user" else c.rests_on
    return [join([c.label, small(c.boundary)]), *figures, c.basis, rests_on]


def _cell(q: Quantity, *more: str) -> Markup:
    return join([data(q.value), small(range_text(q)), *map(small, more)])


def _price(c: Component) -> str:
    if c.price_qty is None or c.unit_price is None:
        return ""
    return f"{number(c.price_qty)} {c.price_unit or ''} x {number(c.unit_price)}"


def _remarks(s: Statement) -> list[Markup | None]:
    saves = s.totals.checkpoints.value
    counted = "" if saves is None else f"{count(saves)} checkpoint{'s' * (saves != 1)}. "
    return [note(counted + TWICE), note(READING)]


def take_care(at: str, warnings: Sequence[tuple[str, str]], level: int) -> Markup:
    """Warnings: what holds, and what to do about it."""
    told = [join([message, text(" "), el("code", code)]) for code, message in warnings]
    return section(f"{at}warnings", "Take care", bullets(told), level=level)


def sentences(at: str, title: str, told: Sequence[str], level: int) -> Markup:
    return section(at, title, bullets(told, "findings"), level=level)


# ---- side by side

GRID_METHOD = "what the grid's factor counts"
ALIKE: dict[str, Callable[[Statement], object]] = {
    "the version of the method": lambda s: s.method_version,
    "measured or modelled": lambda s: s.kind,
    "simulated or not": lambda s: s.simulated,
    "what is counted": lambda s: (sorted(s.boundary.included), s.boundary.counterfactual),
    "PUE": lambda s: (s.boundary.pue, s.boundary.pue_included_in_energy),
    GRID_METHOD: lambda s: s.grid_method,
    "which lines are unknown": lambda s: {
        each for what in COLUMNS for each in getattr(s.totals, what).excludes
    },
}
"""what has to be alike for a comparison"""


def unlike(statements: Sequence[Statement]) -> list[str]:
    """In what they differ that a comparison needs alike."""
    first, *rest = statements
    return [words for words, of in ALIKE.items() if any(of(s) != of(first) for s in rest)]


def comparison(statements: Sequence[Statement]) -> Markup:
    """Totals of each, and the differences from the first."""
    first = statements[0]
    totals = {what: [getattr(s.totals, what).value for s in statements] for what in COLUMNS}
    shown = [what for what, values in totals.items() if values != [None] * len(values)]
    hidden = ", ".join(COLUMNS[what] for what in COLUMNS if what not in shown)
    rows: list[list[Child]] = []
    for n, s in enumerate(statements, 1):
        told = KINDS[s.kind].lower() + (", SIMULATED" if s.simulated else "")
        name = el("a", s.subject.name, href=f"#statement-{n}")
        cells = [_comparison_cell(s, first, what) for what in shown]
        rows.append([join([name, small(told), small(s.subject.tier)]), *cells])
    differs = "; ".join(unlike(statements))
    care = f"Compare with care. These statements are not alike in: {differs}."
    said = table(
        ["Statement", *(COLUMNS[what] for what in shown)],
        rows,
        label="Side by side",
        caption="Totals of each. Below a figure: its range, then the difference from the first",
        class_="wide-table compared",
        at="comparison-table",
    )
    return section(
        "comparison",
        "Side by side",
        note(care if differs else "", class_="beware"),
        said,
        note(f"Not known of any: {hidden}." if hidden else ""),
    )


def _comparison_cell(s: Statement, first: Statement, what: str) -> Markup:
    """A total, its range, its difference from the first one's, and what it lacks."""
    q: Quantity = getattr(s.totals, what)
    base: Quantity = getattr(first.totals, what)
    lacking = without(s, q) if q.value is not None else ""
    against = ""
    if s is not first and base.value and q.value is not None:
        is_one_method = what != "emissions_location" or s.grid_method == first.grid_method
        against = _difference(q, base, is_one_method)
    return _cell(q, against, f"without {lacking}" if lacking else "")


def _difference(q: Quantity, base: Quantity, is_one_method: bool) -> str:
    if q.excludes != base.excludes:
        return "no difference told: not the same lines are known"
    if not is_one_method:
        return "no difference told: another method of the grid's factor"
    change = (q.value or 0.0) / (base.value or 1.0) - 1
    said = f"{'+' if change > 0 else ''}{share(change)}" if change else "as the first"
    unsure = change and _overlap(q, base)
    return f"{said}, ranges overlap if they are not paired" if unsure else said


def _overlap(one: Quantity, other: Quantity) -> bool:
    """Whether both have ranges and an amount lies in both: the sign of the difference may be the
    uncertainty's."""
    if one.low is None or other.low is None:
        return False
    tops = [math.inf if q.high is None else q.high for q in (one, other)]
    return one.low <= tops[1] and other.low <= tops[0]
