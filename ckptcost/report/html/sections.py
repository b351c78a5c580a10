"""What comes first: what it is, the figures in large, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence

from ckptcost.core.quantities import BY_ID, QUANTITIES
from ckptcost.present.amounts import count, duration, number
from ckptcost.report.html.extras import Tile
from ckptcost.report.html.markup import (
    Markup,
    bullets,
    data,
    el,
    join,
    note,
    ranged,
    section,
    small,
    text,
)
from ckptcost.report.parts import Quantity
from ckptcost.report.statement import Statement
from ckptcost.report.study_views import SIMULATED

KINDS = {
    "measured": "Measured",
    "modelled": "Modelled",
    "mixed": "Measured in part, modelled in part",
}
COUNTED = {
    "measured": "What the checkpoints of this job took.",
    "modelled": "What checkpoints and failures add to this job.",
    "mixed": "What the checkpoints of this job took.",
}
NAMES = {q.id: q.label[0].upper() + q.label[1:] for q in QUANTITIES} | {
    "embodied": "Embodied carbon"
}
"""of the cards, in their order"""
_APART = {
    "emissions_market": "another way to count the same energy: not to be added to location-based",
    "embodied": "share of the hardware's making: in no total",
}
_GIVEN_BY = {
    "energy": ("energy", "power", "pue"),
    "gpu_time_lost": ("gpu time", "gpu_time"),
    "cost": ("price", "tariff"),
    "emissions_location": ("grid_location", "location"),
    "emissions_market": ("grid_market", "market"),
    "embodied": ("embodied",),
    "water": ("water",),
}
"""words by which a warning says that this is not known"""
_NO_FACTOR = {
    "emissions_location": "no factor of the grid is given",
    "emissions_market": "no factor of a supplier or a contract is given",
    "embodied": "no embodied carbon of the hardware is given",
    "water": "no water for cooling is given",
}


def why_unknown(statement: Statement, what: str) -> str:
    """Why a figure is not known: what a warning says, else which input is missing, else which lines
    are unknown."""
    for warned in statement.warnings:
        said = f"{warned.code} {warned.message}".lower()
        if any(word in said for word in _GIVEN_BY[what]) and any(
            word in said for word in ("unknown", "not known", "missing")
        ):
            return warned.message
    if what in _NO_FACTOR:
        needed = BY_ID[what].rests_on[-1]
        if not any(f.id == needed for f in statement.factors):
            return f"{_NO_FACTOR[what]} ({needed})"
    lacking = without(statement, getattr(statement.totals, what))
    return f"not known: {lacking}" if lacking else ""


def without(statement: Statement, q: Quantity) -> str:
    """Which lines are not in a sum because they are unknown."""
    labels = {c.id: c.label for c in statement.components}
    if q.value is None and q.excludes and {c.id for c in statement.marginal()} <= set(q.excludes):
        return "every line"
    return ", ".join(labels.get(each, each) for each in q.excludes)


def interval_words(q: Quantity) -> Markup | None:
    """The range, and what kind of range it is."""
    said = ranged(q)
    return (
        join(
            [said, join([" ", el("span", f"({q.interval})", class_="nb")]) if q.interval else None]
        )
        if said
        else None
    )


def left_out(statement: Statement, q: Quantity) -> str | None:
    lacking = without(statement, q)
    return f"not in it because unknown: {lacking}" if lacking else None


def _card(statement: Statement, what: str) -> Markup | None:
    q: Quantity = getattr(statement.totals, what)
    if q.value is None:
        return None
    basis = el("span", q.basis, class_="tag")
    head = el("div", el("span", NAMES[what]), basis, class_="what")
    apart = "apart" if what in _APART else None
    unit = BY_ID[what].unit
    value = el("div", data(q.value), " ", el("span", unit, class_="unit"), class_="value")
    return el(
        "li",
        head,
        value,
        small(interval_words(q)),
        small(left_out(statement, q)),
        small(_APART.get(what)),
        class_=apart,
    )


def cards(statement: Statement) -> Markup:
    """The figures that are known in large, and below them what is not and why."""
    known = [card for what in NAMES if (card := _card(statement, what)) is not None]
    missing = [what for what in NAMES if getattr(statement.totals, what).value is None]
    whys = {what: why_unknown(statement, what).removeprefix("not known: ") for what in missing}
    told = [NAMES[what] + (f" ({why})" if why else "") for what, why in whys.items()]
    return join(
        [
            el("ul", known, class_="cards") if known else None,
            note(f"Not known: {'; '.join(told)}.") if told else None,
        ]
    )


def tiles(told: Sequence[Tile]) -> Markup | None:
    """The same of what has no statement."""
    cards = [
        el(
            "li",
            el("div", el("span", tile.name), class_="what"),
            el(
                "div",
                data(tile.value),
                " ",
                el("span", tile.unit, class_="unit"),
                class_="value",
            ),
            small(tile.note or None),
        )
        for tile in told
    ]
    return el("ul", cards, class_="cards") if cards else None


def period(statement: Statement) -> str:
    """When it was; a plan has no dates."""
    if statement.period_start is None or statement.period_end is None:
        return "a plan, no dates"
    return f"{_moment(statement.period_start)} to {_moment(statement.period_end)} UTC"


def _moment(instant: str) -> str:
    """An instant without the seconds that are none.

    >>> _moment("2026-11-01T00:00:00Z"), _moment("2026-11-01T00:00:07.250Z")
    ('2026-11-01 00:00', '2026-11-01 00:00:07.250')
    """
    return instant.removesuffix("Z").replace("T", " ").removesuffix(":00")


def _counted(value: float | None, of: str | None = None, thing: str = "") -> str | None:
    """How many of what, as far as either is known."""
    if value is None:
        return of
    return f"{count(value)} x {of or thing}" if of or thing else count(value)


def _facts(statement: Statement) -> list[tuple[str, str]]:
    s = statement.subject
    zone = f"({s.grid_zone})" if s.grid_zone and s.grid_zone != s.grid else None
    place = (
        f"{number(s.latitude)}, {number(s.longitude)}"
        if s.latitude is not None and s.longitude is not None
        else None
    )
    known = (
        ("Period", period(statement)),
        ("Length", duration(statement.length_s) if statement.length_s is not None else None),
        ("Checkpoints", _counted(statement.totals.checkpoints.value)),
        ("Checkpoint", s.checkpoint),
        ("Storage tier", s.tier),
        ("Cluster", s.cluster),
        ("Accelerators", _counted(s.accelerator_count, s.accelerator, "GPU")),
        ("Nodes", _counted(s.nodes)),
        ("Site", s.site),
        ("Grid", " ".join(each for each in (s.grid, zone) if each)),
        ("Country", s.country if s.country != s.site else None),
        ("Region", s.region),
        ("Coordinates", place),
        ("Cloud", " ".join(each for each in (s.cloud_provider, s.cloud_region) if each)),
        ("Organisation", s.organisation),
        ("Team", s.team),
        ("Framework", s.framework),
        ("Parameters", _counted(s.parameters)),
        ("Training tokens", _counted(s.tokens)),
        ("CPUs", _counted(s.cpu_count, s.cpu_model, "CPU")),
        ("Memory", f"{number(s.ram_gb)} GB" if s.ram_gb is not None else None),
        ("Operating system", s.os),
        ("Python", s.python),
        ("Tags", ", ".join(f"{key}: {value}" for key, value in s.tags.items())),
        ("Run", s.run_id),
    )
    return [(name, said) for name, said in known if said]


def facts(statement: Statement) -> Markup:
    return el(
        "dl",
        [el("div", el("dt", name), el("dd", said)) for name, said in _facts(statement)],
        class_="facts",
    )


def simulated(statements: Sequence[Statement]) -> Markup | None:
    """In red where meters were simulated."""
    which = [s.subject.name for s in statements if s.simulated]
    if not which:
        return None
    return note(
        (
            SIMULATED
            if len(which) == len(statements)
            else f"{SIMULATED} This holds for: {', '.join(which)}."
        ),
        class_="simulated",
    )


def _first_up(words: str) -> str:
    return words[:1].upper() + words[1:]


def lead(statement: Statement) -> Markup:
    """What is counted, and what kind of statement it is."""
    return el(
        "p",
        f"{COUNTED[statement.kind]} {KINDS[statement.kind]}: {statement.how}."
        f" {_first_up(period(statement))}.",
        class_="lead",
    )


def answer(at: str, sentences: Sequence[str], level: int) -> Markup:
    return section(f"{at}answer", "The answer", bullets(sentences, "findings"), level=level)


def findings(at: str, sentences: Sequence[str], level: int) -> Markup:
    return section(f"{at}findings", "In detail", bullets(sentences, "findings"), level=level)


def take_care(at: str, statement: Statement, level: int) -> Markup:
    """Warnings: what holds, and what to do about it."""
    told = bullets(join([w.message, text(" "), el("code", w.code)]) for w in statement.warnings)
    return section(f"{at}warnings", "Take care", told, level=level)
