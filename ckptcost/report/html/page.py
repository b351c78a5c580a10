"""The page of an answer: what it says first, then its pictures and tables, then an appendix of all
that it rests on. One file that holds no script and loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ckptcost.report.document import Report
from ckptcost.report.html import pictures, pictures_of_time, proof, sections
from ckptcost.report.html.markup import Markup, el, join, note, row, section, table
from ckptcost.report.html.style import style_sheet
from ckptcost.report.parts import Factor
from ckptcost.report.statement import Statement
from ckptcost.report.study import Table, shown_cells

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
APPENDIX = "Appendix"
MOST_ROWS = 60
"""of a table; the other formats hold all of them"""
LONGEST_LINK = 40
CLAIMED = "claimed"
"""a column of what vendors say, which is never an input"""
TOTALS = ("total", "all")
"""how the last row of a table begins that is the others' sum"""


class Extras(NamedTuple):
    """What the caller knows beyond statements, ready to be shown. Everything may be left out."""

    title: str = ""
    lead: str = ""
    is_whole: bool = False
    """the page is of what stands here, and statements are embedded only: they are parts of one
    whole, no alternatives to be held against each other"""
    banner: str = ""
    """said in red where there is no statement that says so itself"""
    answer: Sequence[str] = ()
    """a few sentences that stand before everything else"""
    tiles: Sequence[sections.Tile] = ()
    """figures in large where there is no statement that has them itself"""
    tables: Sequence[Table] = ()
    """those that carry the answer"""
    falls: Sequence[pictures.Fall] = ()
    """what totals are made of, where there is no statement that has them itself"""
    curve: pictures.Curve | None = None
    power: pictures_of_time.Power | None = None
    care: Sequence[tuple[str, str]] = ()
    """code and sentence"""
    findings: Sequence[str] = ()
    more: Sequence[Table] = ()
    """the tables of the appendix"""


NOTHING = Extras()


class Part(NamedTuple):
    at: str
    """its address"""
    name: str
    """in the list of sections"""
    inside: Markup | None
    """None: there is nothing of it"""


def page_of(document: Report, extras: Extras = NOTHING) -> str:
    """The whole page. Every text that somebody wrote is escaped."""
    title = title_of(document, extras)
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="referrer", content="no-referrer"),
        el("meta", name="generator", content=f"{document.tool.name} {document.tool.version}"),
        el("title", title),
        el("link", rel="icon", href="data:,"),
        el("style", Markup(style_sheet())),
    )
    main = el("main", _story(document, extras, title))
    page = el("div", main, proof.small_print(document), class_="page")
    script = el("script", Markup(proof.embedded(document)), type="application/json", id="statement")
    return f'<!DOCTYPE html>\n<html lang="en">{head}\n<body>{page}\n{script}\n</body></html>\n'


def title_of(document: Report, extras: Extras) -> str:
    names = [s.subject.name for s in document.statements]
    of = names[0] if len(names) == 1 else f"{len(names)} statements"
    return extras.title.strip() or f"What checkpoints cost: {of}"


def _story(document: Report, extras: Extras, title: str) -> Markup:
    """The answer, what it is made of, and behind that what it rests on."""
    those = [] if extras.is_whole else document.statements
    alone = those[0] if len(those) == 1 else None
    several = those if len(those) > 1 else []
    cited = proof.sources_of(document.statements)
    places = proof.places_of(cited)
    compared = sections.comparison(several) if several and not extras.tables else None
    common = proof.in_all(several) if several else []
    all_factors = proof.factors("all-", common, 2, places, "Factors of all") if common else None
    front = [Part("comparison", "Side by side", compared), *_front("", alone, extras, 2)]
    behind = [
        *_appendix("", alone, extras, 2, places),
        *(
            Part(f"statement-{n}", s.subject.name, _one_of_several(n, s, places, common))
            for n, s in enumerate(several, 1)
        ),
        Part("all-factors", "Factors of all", all_factors),
        Part("sources", "Sources", proof.sources(cited)),
        Part("reproducibility", "Reproducibility", proof.reproducibility(document)),
    ]
    head = el("h1", title), el("p", _lead(those, extras), class_="lead")
    banner = note(extras.banner or sections.simulated(those), class_="simulated")
    return join(
        [
            el("header", *head, banner),
            sections.sentences("answer", "The answer", extras.answer, 2),
            sections.tiles([*extras.tiles, *(sections.tiles_of(alone) if alone else [])]),
            sections.missing(alone) if alone else None,
            _links([*front, *behind]),
            [part.inside for part in front],
            el("h2", APPENDIX, class_="appendix"),
            [part.inside for part in behind],
        ]
    )


def _lead(those: Sequence[Statement], extras: Extras) -> str:
    if len(those) == 1:
        return f"{sections.lead(those[0])} {extras.lead}".rstrip()
    return extras.lead or f"{len(those)} statements, each told in full below."


def _links(parts: Sequence[Part]) -> Markup:
    names = [
        el("li", el("a", part.name, href=f"#{part.at}"))
        for part in parts
        if part.inside and part.name
    ]
    return el("nav", el("ul", names), aria_label="Sections")


def _front(at: str, s: Statement | None, extras: Extras, level: int) -> list[Part]:
    """What is said of a statement, or of what has none, in its order."""
    falls, care = [*extras.falls], [*extras.care]
    bill = hours = None
    if s is not None:
        falls += sections.falls_of(s)
        said = {code for code, _ in extras.care}
        care += [(w.code, w.message) for w in s.warnings if w.code not in said]
        bill = sections.bill(at, s, level) if sections.is_billed(s) else None
        lacking = sections.without(s, s.totals.emissions_location)
        hours = pictures_of_time.emissions(at, s.series, lacking, level)
    return [
        *_tables(f"{at}table", extras.tables, level),
        Part(f"{at}steps", "Where it goes", pictures.falls(at, falls, level)),
        Part(f"{at}bill", "Bill", bill),
        Part(f"{at}interval", "Interval", pictures.interval(at, extras.curve, level)),
        Part(f"{at}power", "Power", pictures_of_time.power(at, extras.power, level)),
        Part(f"{at}hours", "By time", hours),
        Part(f"{at}warnings", "Take care", sections.take_care(at, care, level)),
    ]


def _appendix(
    at: str,
    s: Statement | None,
    extras: Extras,
    level: int,
    places: proof.Places,
    common: Sequence[Factor] = (),
) -> list[Part]:
    """What it rests on, and what other reports ask for. Factors in `common` stand elsewhere."""
    found = sections.sentences(f"{at}findings", "In detail", extras.findings, level)
    parts = [
        Part(f"{at}findings", "In detail", found),
        *_tables(f"{at}further", extras.more, level),
    ]
    if s is None:
        return parts
    bill = None if sections.is_billed(s) else sections.bill(at, s, level)
    elsewhere = {f.id for f in common}
    own = [f for f in s.factors if f.id not in elsewhere]
    title = "Factors of this statement alone" if common else "Factors"
    return [
        *parts,
        Part(f"{at}method", "Job and method", proof.method(at, s, level)),
        Part(f"{at}bill", "Bill", bill),
        Part(f"{at}scope2", "Scope 2", proof.scope_2(at, s, level)),
        Part(f"{at}esrs", "ESRS E1", proof.esrs(at, s, level)),
        Part(f"{at}sci", "SCI", proof.sci(at, s, level)),
        Part(f"{at}boundary", "Boundary", proof.boundary(at, s, level)),
        Part(f"{at}factors", "Factors", proof.factors(at, own, level, places, title)),
        Part(f"{at}measurements", "Meters", proof.measurements(at, s, level)),
    ]


def _one_of_several(n: int, s: Statement, places: proof.Places, common: Sequence[Factor]) -> Markup:
    """Factors that all of them have alike stand once, at the end."""
    at, heading = f"s{n}-", f"statement-{n}-h"
    parts = [
        *_front(at, s, NOTHING, 3),
        *_appendix(at, s, NOTHING, 3, places, common),
    ]
    alike = (
        f"{len(common)} factors are the same in every statement: they stand at the end, under"
        " Factors of all."
    )
    return el(
        "section",
        el("h2", s.subject.name, id=heading),
        el("p", sections.lead(s), class_="lead"),
        note(sections.simulated([s]), class_="simulated"),
        sections.tiles(sections.tiles_of(s)),
        sections.missing(s),
        [part.inside for part in parts],
        note(alike) if common else None,
        id=f"statement-{n}",
        class_="statement",
        aria_labelledby=heading,
    )


def _tables(at: str, tables: Sequence[Table], level: int) -> list[Part]:
    """The answer's own tables, as the text has them."""
    found = []
    for n, of in enumerate(tables, 1):
        link = of.title if len(of.title) <= LONGEST_LINK else of.title.partition(",")[0]
        inside = section(f"{at}-{n}", of.title, *table_of(of), level=level)
        found.append(Part(f"{at}-{n}", link, inside if of.rows else None))
    return found


def table_of(of: Table) -> list[Markup | None]:
    """A table in the cells of every view; what vendors claim is set apart, and totals are bold."""
    header, rows, _ = shown_cells(of)
    units = [column.unit for column in of.columns if column.shown]
    texts = {i for i, unit in enumerate(units) if unit in ("", "bool") and header[i] != CLAIMED}
    shown = []
    for cells in rows[:MOST_ROWS]:
        last = el("span", cells[-1], class_=CLAIMED) if header[-1] == CLAIMED else cells[-1]
        is_total = cells is rows[-1] and cells[0] in TOTALS
        shown.append(row([*cells[:-1], last], texts, "total" if is_total else None))
    rest = len(rows) - MOST_ROWS
    more = f"{rest} more rows are in the other formats." if rest > 0 else ""
    remark = " ".join(filter(None, (of.note, more)))
    return [
        table(header, shown, label=of.title, words=texts),
        note(f"{remark[0].upper()}{remark[1:]}" if remark else ""),
    ]
