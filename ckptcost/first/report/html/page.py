"""The page of an answer: what it says first, then its pictures and tables, then an appendix of all
that it rests on. One file that holds no script and loads nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ckptcost.first.report.document import Report
from ckptcost.first.report.html import pictures, pictures_of_time, sections
from ckptcost.first.report.html.markup import (
    Child,
    Markup,
    el,
    join,
    note,
    row,
    section,
    style_sheet,
    table,
)
from ckptcost.first.report.statement import Statement
from ckptcost.first.report.study import Table, shown_cells

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
APPENDIX = "Appendix"
MOST_ROWS = 60
"""of a table; the other formats hold all of them"""
CLAIMED = "claimed"
"""a column of what vendors say"""
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
    """figures in large; without them those of the statement, where it is the only one"""
    tables: Sequence[Table] = ()
    """those that carry the answer"""
    falls: Sequence[pictures.Fall] = ()
    """what totals are made of, where there is no statement that has them itself"""
    curve: pictures.IntervalPicture | None = None
    power: pictures_of_time.PowerPlot | None = None
    care: Sequence[tuple[str, str]] = ()
    """code and sentence"""
    findings: Sequence[str] = ()
    more: Sequence[Table] = ()
    """the tables of the appendix"""


NOTHING = Extras()


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
    page = el("div", main, sections.small_print(document), class_="page")
    script = el(
        "script", Markup(sections.embed_json(document)), type="application/json", id="statement"
    )
    return f'<!DOCTYPE html>\n<html lang="en">{head}\n<body>{page}\n{script}\n</body></html>\n'


def title_of(document: Report, extras: Extras) -> str:
    names = [s.subject.name for s in document.statements]
    of = names[0] if len(names) == 1 else f"{len(names)} statements"
    return extras.title.strip() or f"What checkpoints cost: {of}"


def _story(document: Report, extras: Extras, title: str) -> Markup:
    """The answer, what it is made of, and behind that what it rests on."""
    those = [] if extras.is_whole else document.statements
    alone = those[0] if len(those) == 1 else None
    several = those if alone is None else []
    cited = sections.sources_of(document.statements)
    body = [
        sections.comparison(several) if several and not extras.tables else None,
        *_front("", alone, extras, 2),
        el("h2", APPENDIX, class_="appendix"),
        *_appendix("", alone, extras, 2),
        *(_one_of_several(n, s) for n, s in enumerate(several, 1)),
        sections.factors(those, sections.places_of(cited)),
        sections.sources(cited),
        sections.reproducibility(document),
    ]
    lead = extras.lead or f"{len(several)} statements, each told in full below."
    banner = extras.banner or sections.simulated_notice(those)
    tiles, missing = extras.tiles, None
    if alone is not None:
        lead = f"{sections.lead(alone)} {extras.lead}"
        tiles, missing = tiles or sections.tiles_of(alone), sections.missing(alone)
    return join(
        [
            el(
                "header",
                el("h1", title),
                el("p", lead.rstrip(), class_="lead"),
                note(banner, class_="simulated"),
            ),
            sections.sentences("answer", "The answer", extras.answer, 2),
            sections.tiles(tiles),
            missing,
            _links(join(body)),
            *body,
        ]
    )


def _links(body: Markup) -> Markup:
    """To what stands on the page, by its headings."""
    found = [
        el("li", el("a", Markup(words), href=f"#{at}"))
        for at, words in re.findall(r'<h2 id="([^"]+)-h">(.*?)</h2>', body)
    ]
    return el("nav", el("ul", found), aria_label="Sections")


def _front(at: str, s: Statement | None, extras: Extras, level: int) -> list[Markup | None]:
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
    tables = _tables(f"{at}table", extras.tables, level)
    return [
        *tables[:1],
        pictures.falls(at, falls, level),
        *tables[1:],
        bill,
        pictures.interval(at, extras.curve, level),
        pictures_of_time.power(at, extras.power, level),
        hours,
        sections.take_care(at, care, level),
    ]


def _appendix(at: str, s: Statement | None, extras: Extras, level: int) -> Sequence[Markup | None]:
    """What it rests on, and what other reports ask for."""
    found = [
        sections.sentences(f"{at}findings", "In detail", extras.findings, level),
        *_tables(f"{at}further", extras.more, level),
    ]
    if s is None:
        return found
    return [
        *found,
        sections.method(at, s, level),
        None if sections.is_billed(s) else sections.bill(at, s, level),
        sections.scope_2(at, s, level),
        sections.esrs(at, s, level),
        sections.sci(at, s, level),
        sections.boundary(at, s, level),
        sections.measurements(at, s, level),
    ]


def _one_of_several(n: int, s: Statement) -> Markup:
    at, heading = f"s{n}-", f"statement-{n}-h"
    return el(
        "section",
        el("h2", s.subject.name, id=heading),
        el("p", sections.lead(s), class_="lead"),
        note(sections.simulated_notice([s]), class_="simulated"),
        sections.tiles(sections.tiles_of(s)),
        sections.missing(s),
        *_front(at, s, NOTHING, 3),
        *_appendix(at, s, NOTHING, 3),
        id=f"statement-{n}",
        class_="statement",
        aria_labelledby=heading,
    )


def _tables(at: str, tables: Sequence[Table], level: int) -> list[Markup]:
    """The answer's own tables, as the text has them."""
    return [
        section(f"{at}-{n}", of.title, *table_of(of), level=level)
        for n, of in enumerate(tables, 1)
        if of.rows
    ]


def table_of(of: Table) -> list[Markup | None]:
    """A table in the cells of every view: texts left, numbers right."""
    header, rows, _ = shown_cells(of)
    units = [column.unit for column in of.columns if column.shown]
    texts = {i for i, unit in enumerate(units) if unit in ("", "bool") and header[i] != CLAIMED}
    weights = [_weight(each, n == len(rows) - 1) for n, each in enumerate(of.rows)]
    claims = header.index(CLAIMED) if CLAIMED in header else None
    shown = [
        row(_with_claim(cells, claims), texts, weight)
        for cells, weight in zip(rows[:MOST_ROWS], weights, strict=False)
    ]
    rest = len(rows) - MOST_ROWS
    more = f"{rest} more rows are in the other formats." if rest > 0 else ""
    remark = " ".join(filter(None, (of.note, more)))
    return [
        table(header, shown, label=of.title, words=texts),
        note(remark[:1].upper() + remark[1:]),
    ]


def _weight(cells: Mapping[str, Any], is_last: bool) -> str | None:
    """Bold: the sum of the rows above it, and the way to do the job that adds least."""
    if is_last and next(iter(cells.values()), None) in TOTALS:
        return "total"
    return "best" if cells.get("least") else None


def _with_claim(cells: Sequence[str], claims: int | None) -> list[Child]:
    """What a vendor says is set apart: it is never an input."""
    return [
        el("span", each, class_=CLAIMED) if i == claims else each for i, each in enumerate(cells)
    ]
