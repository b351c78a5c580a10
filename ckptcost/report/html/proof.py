"""What a page rests on, and what other reports ask for: the tables of a statement that the text has
too, its factors with their sources, and the document itself."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence

from ckptcost.present.amounts import amount, number, quantities, share, size
from ckptcost.report import statement_views
from ckptcost.report.document import Report
from ckptcost.report.html.markup import (
    Child,
    Markup,
    bullets,
    el,
    join,
    link,
    note,
    section,
    small,
    table,
)
from ckptcost.report.html.sections import facts
from ckptcost.report.parts import Factor, Source, Warned
from ckptcost.report.statement import Contract, Statement
from ckptcost.report.study import Table, shown_cells

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
