"""What it all rests on: factors, sources, assumptions, measurements, method, and what is needed to
get the same again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ckptcost.present.amounts import amount, duration, number, quantities, share, size
from ckptcost.report.document import Report
from ckptcost.report.html.markup import (
    Child,
    Markup,
    bullets,
    data,
    el,
    join,
    link,
    note,
    row,
    section,
    small,
    table,
)
from ckptcost.report.parts import Assumption, Factor, Source
from ckptcost.report.statement import Measurement, Statement

ORIGINS = {"default": "assumed", "user": "yours"}
Places = dict[str, str]
"""of each source, its address on the page"""


def sources_of(statements: Sequence[Statement]) -> list[Source]:
    """Each once, in the order of first use."""
    return list(
        {
            s.model_dump_json(): s for each in statements for f in each.factors for s in f.sources
        }.values()
    )


def places_of(sources: Sequence[Source]) -> Places:
    return {s.model_dump_json(): f"source-{n}" for n, s in enumerate(sources, 1)}


def _cited(f: Factor, places: Places) -> Child:
    links = [el("a", s.id, href=f"#{places[s.model_dump_json()]}") for s in f.sources]
    return [join([", " if n else "", each]) for n, each in enumerate(links)] or "-"


def _factor(f: Factor, places: Places) -> Markup:
    value: Child = (
        "unlimited" if f.value is None else el("data", amount(f.value, f.unit), value=repr(f.value))
    )
    named = join(
        [
            el("code", f.id),
            small(f.name),
            small(f.note),
            small(f"boundary: {f.boundary}" if f.boundary else None),
        ]
    )
    spread = quantities(f.low, f.high, f.unit) or "-"
    origin = join([ORIGINS.get(f.origin, f.origin), small(f"set by {f.set_by}")])
    return row(named, value, spread, origin, _cited(f, places), words=(3, 4))


def factors(
    at: str,
    those: Sequence[Factor],
    level: int,
    places: Places,
    title: str = "Factors",
    remark: str = "",
) -> Markup:
    """Every figure that entered the result."""
    counts: dict[str, int] = {}
    for f in those:
        word = ORIGINS.get(f.origin, f.origin)
        counts[word] = counts.get(word, 0) + 1
    caption = (
        f"Of {len(those)} inputs: {', '.join(f'{n} {word}' for word, n in counts.items())}. Low to"
        " high: where the true value may lie"
    )
    header = ["Factor", "value", "low to high", "origin", "source"]
    rows = [_factor(f, places) for f in those]
    said = (
        table(
            header,
            rows,
            label=title,
            caption=caption,
            words=(3, 4),
            class_="words wide-table factors",
        )
        if those
        else None
    )
    return section(f"{at}factors", title, note(remark), said, level=level)


def sources(those: Sequence[Source], level: int) -> Markup | None:
    """Whose figures they are, and under which licence."""
    if not those:
        return None
    rows = []
    for n, s in enumerate(those, 1):
        why_none = small(f"no address: {s.no_url}" if s.no_url else None)
        named = link(s.url, s.title) if s.url else join([s.title, why_none])
        when = ", ".join(
            each
            for each in (s.version, f"retrieved {s.retrieved}" if s.retrieved else None)
            if each
        )
        cells = [named, s.publisher or "-", when or "-", s.licence or "not stated"]
        rows.append(
            el(
                "tr",
                el("th", s.id, scope="row"),
                [el("td", each) for each in cells],
                id=f"source-{n}",
            )
        )
    said = table(
        ["Source", "title", "publisher", "version", "licence"],
        rows,
        label="Sources",
        left=5,
        class_="words wide-table sources",
    )
    return section("sources", "Sources", said, level=level)


def assumptions(at: str, those: Sequence[Assumption], level: int) -> Markup | None:
    if not those:
        return None
    rows = [row(a.id, a.text, quantities(a.low, a.high, a.unit) or "-", left=2) for a in those]
    caption = "Ours, for want of better: give your own where you know them"
    said = table(
        ["Id", "assumed", "low to high"],
        rows,
        label="Assumptions",
        caption=caption,
        left=2,
        class_="words assumed",
    )
    return section(f"{at}assumptions", "Assumptions", said, level=level)


def _measurement(m: Measurement) -> Markup:
    seen = [
        duration(m.tick_s) if m.tick_s is not None else "-",
        share(m.coverage),
        data(m.energy_kwh),
    ]
    return row(m.id, m.instrument, m.scope, m.boundary, m.basis, *seen, left=5)


def measurements(at: str, those: Sequence[Measurement], level: int) -> Markup | None:
    if not those:
        return None
    header = [
        "Domain",
        "instrument",
        "scope",
        "boundary",
        "basis",
        "tick",
        "coverage",
        "kWh in all",
    ]
    caption = (
        "kWh in all: over the whole time, training included. Coverage: the share of the time that"
        " is known"
    )
    rows = map(_measurement, those)
    said = table(header, rows, label="Measurements", caption=caption, left=5, class_="words")
    return section(f"{at}measurements", "Measurements", said, level=level)


def method(at: str, statement: Statement, level: int) -> Markup:
    units = ", ".join(f"{u.name} ({number(u.count)})" for u in statement.functional_units)
    told = [
        f"How: {statement.how}.",
        f"Low and high: {statement.uncertainty}." if statement.uncertainty else "",
        f"Method version {statement.method_version}.",
        f"Functional units: {units}." if units else "",
        (
            "Totals are sums of lines and nothing else. Unknown is not zero: what is not known is"
            " left out of a sum, and named there."
        ),
    ]
    return section(
        f"{at}method", "Method and uncertainty", bullets(each for each in told if each), level=level
    )


def reproducibility(document: Report, level: int, left_out: str) -> Markup:
    """What anybody needs to check the page against its numbers."""
    tool, again = document.tool, document.reproducibility
    facts: list[tuple[str, Child]] = [
        ("Made by", f"{tool.name} {tool.version}"),
        ("Method", tool.method_version),
        ("Schema", f"{document.schema_name} {document.schema_version}"),
        ("Generated at", document.generated_at),
        ("Command", el("code", shlex.join(tool.command))),
        ("SHA-256 of the statements", el("code", again.result_sha256)),
    ]
    said = el(
        "dl",
        [el("div", el("dt", name), el("dd", value)) for name, value in facts],
        class_="facts exact",
    )
    rows = [
        row(each.path, size(each.bytes), el("code", each.sha256), words=(2,))
        for each in again.inputs
    ]
    header = ["Input file", "size", "SHA-256"]
    files = (
        table(
            header,
            rows,
            label="Input files",
            caption="Input files, by their base names",
            words=(2,),
            class_="words",
        )
        if rows
        else None
    )
    words = (
        "The statements themselves are inside this page, as JSON in the element with the id"
        " statement."
    )
    return section(
        "reproducibility",
        "Reproducibility",
        said,
        files,
        note(words, f" {left_out}" if left_out else None),
        level=level,
    )


def small_print(document: Report) -> Markup:
    tool = document.tool
    words = (
        f"{tool.name} {tool.version}, method {tool.method_version}, {document.generated_at}. One"
        " file: no script, and nothing is loaded."
    )
    return el("footer", words, class_="ends")
