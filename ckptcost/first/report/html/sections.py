"""What a statement says: what it is of, the figures in large, what they are made of line by line,
several statements side by side; and what all that rests on, down to the document itself."""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ckptcost.first.core.quantities import BY_ID, QUANTITIES
from ckptcost.first.present.amounts import amount, count, duration, number, quantities, share, size
from ckptcost.first.report import statement_views
from ckptcost.first.report.document import Report
from ckptcost.first.report.html.markup import (
    Child,
    Markup,
    Row,
    band,
    bullets,
    data,
    el,
    join,
    link,
    note,
    range_text,
    row,
    section,
    small,
    table,
    text,
)
from ckptcost.first.report.html.pictures import Fall, FallStep
from ckptcost.first.report.parts import Component, Factor, Quantity, Source, Totals, Warned
from ckptcost.first.report.statement import Contract, Statement
from ckptcost.first.report.study import Table, shown_cells
from ckptcost.first.report.study_views import SIMULATED

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
    shown = [
        what
        for what in COLUMNS
        if any(getattr(s.totals, what).value is not None for s in statements)
    ]
    hidden = ", ".join(words for what, words in COLUMNS.items() if what not in shown)
    rows = [_comparison_row(n, s, first, shown) for n, s in enumerate(statements, 1)]
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


def _comparison_row(n: int, s: Statement, first: Statement, shown: Sequence[str]) -> list[Child]:
    told = KINDS[s.kind].lower() + (", SIMULATED" if s.simulated else "")
    name = el("a", s.subject.name, href=f"#statement-{n}")
    cells = [_comparison_cell(s, first, what) for what in shown]
    return [join([name, small(told), small(s.subject.tier)]), *cells]


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


# ---- what it rests on, and what other reports ask for

ORIGINS = {"default": "assumed", "user": "yours"}
Places = dict[str, str]
"""of each source, its address on the page"""


def table_section(
    at: str, of: Table, level: int, *more: Child, note_class: str = "note"
) -> Markup | None:
    """A table of the text as a section, in the same words."""
    if not of.rows:
        return None
    header, rows, left = shown_cells(of)
    said = table(header, rows, label=of.title, left=left, class_="words")
    return section(at, of.title, said, note(of.note, class_=note_class), *more, level=level)


def scope_2(at: str, s: Statement, level: int) -> Markup | None:
    """Location and market side by side, never one sum."""
    return table_section(f"{at}scope2", statement_views.scope_two(s), level, _contracts(s))


def esrs(at: str, s: Statement, level: int) -> Markup | None:
    return table_section(f"{at}esrs", statement_views.esrs(s), level, note_class="beware")


def _contracts(s: Statement) -> Markup | None:
    if s.contracts:
        header = ["Contract", "instrument", "valid", "source", "share", "factor"]
        name = "Electricity bought by contract"
        return table(header, map(_contract, s.contracts), label=name, left=4, class_="words")
    known = s.totals.emissions_market.value is not None
    made_up = "" if known else " Without one, no market-based figure is made up."
    return note(f"No contract for electricity is given.{made_up}")


def _contract(c: Contract) -> list[Child]:
    is_dated = c.valid_from or c.valid_until
    valid = f"{c.valid_from or 'open'} to {c.valid_until or 'open'}" if is_dated else "-"
    source = link(c.source, c.source) if c.source else "-"
    factor = f"{number(c.kgco2e_per_kwh * 1000)} g/kWh"
    return [c.name, c.instrument, valid, source, share(c.share), factor]


def sci(at: str, s: Statement, level: int) -> Markup | None:
    disclosed = bullets(statement_views.sci_lines(s))
    return table_section(f"{at}sci", statement_views.sci_table(s), level, disclosed)


def boundary(at: str, s: Statement, level: int) -> Markup:
    told = bullets(statement_views.boundary_lines(s))
    return section(f"{at}boundary", "Boundary", told, level=level)


def measurements(at: str, s: Statement, level: int) -> Markup | None:
    return table_section(f"{at}measurements", statement_views.measurements(s), level)


def method(at: str, s: Statement, level: int) -> Markup:
    units = ", ".join(f"{u.name} ({number(u.count)})" for u in s.functional_units)
    told = [
        f"How: {s.how}.",
        f"Low and high: {s.uncertainty}." if s.uncertainty else "",
        f"Method version {s.method_version}.",
        f"Functional units: {units}." if units else "",
        "Totals are sums of lines and nothing else. Unknown is not zero: what is not known is left"
        " out of a sum, and named there.",
    ]
    inside = [facts(s), bullets(filter(None, told))]
    return section(f"{at}method", "Job and method", inside, level=level)


# ---- factors and their sources


def sources_of(statements: Sequence[Statement]) -> list[Source]:
    """Each once, in the order of first use."""
    cited = [source for s in statements for f in s.factors for source in f.sources]
    return list({source.model_dump_json(): source for source in cited}.values())


def places_of(sources: Sequence[Source]) -> Places:
    return {s.model_dump_json(): f"source-{n}" for n, s in enumerate(sources, 1)}


def factors(statements: Sequence[Statement], places: Places) -> Markup | None:
    """Every figure that entered the results, once where it is the same in several."""
    held: dict[str, tuple[Factor, list[str]]] = {}
    for s in statements:
        for f in s.factors:
            held.setdefault(f.model_dump_json(), (f, []))[1].append(s.subject.name)
    if not held:
        return None
    rows = [
        _factor_row(f, places, "" if len(names) == len(statements) else f"of {', '.join(names)}")
        for f, names in sorted(held.values(), key=lambda each: each[0].id)
    ]
    counts = Counter(ORIGINS.get(f.origin, f.origin) for f, _ in held.values())
    told = ", ".join(f"{n} {word}" for word, n in counts.items())
    said = table(
        ["Factor", "value", "low to high", "origin", "source"],
        rows,
        label="Factors",
        caption=f"Of {len(rows)} inputs: {told}. Low to high: where the true value may lie",
        words=(3, 4),
        class_="words wide-table factors",
    )
    return section("factors", "Factors", said)


def _factor_row(f: Factor, places: Places, of: str = "") -> list[Child]:
    where = f"boundary: {f.boundary}" if f.boundary else None
    named = [el("code", f.id), *map(small, (f.name, f.note, where, of))]
    exact = el("data", amount(f.value, f.unit), value=repr(f.value))
    cited = [el("a", s.id, href=f"#{places[s.model_dump_json()]}") for s in f.sources]
    return [
        join(named),
        "unlimited" if f.value is None else exact,
        quantities(f.low, f.high, f.unit) or "-",
        join([ORIGINS.get(f.origin, f.origin), small(f"set by {f.set_by}")]),
        Markup(", ".join(cited)) if cited else "-",
    ]


def sources(those: Sequence[Source]) -> Markup | None:
    """Whose figures they are, and under which licence."""
    if not those:
        return None
    said = table(
        ["Source", "title", "publisher", "version", "licence"],
        [_source_row(f"source-{n}", s) for n, s in enumerate(those, 1)],
        label="Sources",
        left=5,
        class_="words wide-table sources",
    )
    return section("sources", "Sources", said)


def _source_row(at: str, s: Source) -> list[Child]:
    retrieved = f"retrieved {s.retrieved}" if s.retrieved else None
    when = ", ".join(filter(None, (s.version, retrieved)))
    why_none = small(f"no address: {s.no_url}" if s.no_url else None)
    named = link(s.url, s.title) if s.url else join([s.title, why_none])
    licence = s.licence or "not stated"
    return [el("span", s.id, id=at), named, s.publisher or "-", when or "-", licence]


# ---- the document

MOST_ROWS = 2000
"""of series; nobody sends around a page with more"""
_UNSAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\x7f": "\\u007f"})


def reproducibility(document: Report) -> Markup:
    """What anybody needs to check the page against its numbers."""
    tool, again = document.tool, document.reproducibility
    told: dict[str, Child] = {
        "Made by": f"{tool.name} {tool.version}",
        "Method": tool.method_version,
        "Schema": f"{document.schema_name} {document.schema_version}",
        "Generated at": document.generated_at,
        "Command": el("code", shlex.join(tool.command)),
        "SHA-256 of the statements": el("code", again.result_sha256),
    }
    said = [el("div", el("dt", name), el("dd", value)) for name, value in told.items()]
    files = table(
        ["Input file", "size", "SHA-256"],
        [[each.path, size(each.bytes), el("code", each.sha256)] for each in again.inputs],
        label="Input files",
        caption="Input files, by their base names",
        words=(2,),
        class_="words",
    )
    words = (
        "The statements themselves are inside this page, as JSON in the element with the id"
        " statement. "
    )
    return section(
        "reproducibility",
        "Reproducibility",
        el("dl", said, class_="facts exact"),
        files if again.inputs else None,
        note(words, left_out(document)),
    )


def small_print(document: Report) -> Markup:
    tool = document.tool
    words = (
        f"{tool.name} {tool.version}, method {tool.method_version}, {document.generated_at}. One"
        " file: no script, and nothing is loaded."
    )
    return el("footer", words, class_="ends")


def left_out(document: Report) -> str:
    """Why the page lacks the rows by time, or nothing."""
    rows = sum(len(s.series.start) for s in document.statements if s.series is not None)
    if rows <= MOST_ROWS:
        return ""
    return (
        f"{rows:,} rows by time are left out of this page's JSON, where series is null; the SHA-256"
        " is that of the statements with them. Other exports hold them."
    )


def embed_json(document: Report) -> str:
    """The document as JSON that no text in it can end: only ASCII, and neither <, > nor &. Where
    the rows by time are left out, a warning of each statement says so."""
    words = left_out(document)
    if words:
        said = Warned(code="SERIES_LEFT_OUT", message=words)
        short = [
            s.model_copy(update={"series": None, "warnings": [*s.warnings, said]})
            if s.series
            else s
            for s in document.statements
        ]
        document = document.model_copy(update={"statements": short})
    plain = json.dumps(document.plain(), allow_nan=False, separators=(",", ":"))
    return plain.translate(_UNSAFE)
