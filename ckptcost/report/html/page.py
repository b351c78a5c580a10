"""The page: one statement told from its figures down to its sources, or several with a comparison
before them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ckptcost.report.document import Report
from ckptcost.report.html import (
    sections,
    sections_bill,
    sections_carbon,
    sections_compare,
    sections_pictures,
    sections_proof,
)
from ckptcost.report.html.embedded import embedded, left_out
from ckptcost.report.html.extras import Extras
from ckptcost.report.html.markup import Markup, el, join, note
from ckptcost.report.html.style import style_sheet
from ckptcost.report.parts import Factor
from ckptcost.report.statement import Statement

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
NOTHING = Extras()
Part = tuple[str, str, Markup | None]
"""address, name for the list of sections, and what is in it"""
APPENDIX = "Appendix"
NO_BILL = "An answer in words and tables; it holds no bill of its own."


def page_of(document: Report, extras: Extras = NOTHING) -> str:
    """The whole page. It holds no script, loads nothing, and every text that somebody wrote is
    escaped."""
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
    if extras.lead:
        body = _without_bill(el("h1", title), extras, bool(document.statements))
    else:
        body = (
            _several(document, extras) if len(document.statements) > 1 else _one(document, extras)
        )
    sources = sections_proof.sources(sections_proof.sources_of(document.statements), 2)
    last = [sources, sections_proof.reproducibility(document, 2, left_out(document))]
    if extras.lead or len(document.statements) != 1:
        last = [el("div", last, class_="appendix")]
    main = el("main", body, last)
    page = el("div", main, sections_proof.small_print(document), class_="page")
    script = el("script", Markup(embedded(document)), type="application/json", id="statement")
    return f'<!DOCTYPE html>\n<html lang="en">{head}\n<body>{page}\n{script}\n</body></html>\n'


def title_of(document: Report, extras: Extras) -> str:
    if extras.title.strip():
        return extras.title
    names = [s.subject.name for s in document.statements]
    return (
        f"What checkpoints cost: {names[0]}"
        if len(names) == 1
        else f"What checkpoints cost: {len(names)} statements"
    )


def _nav(links: Sequence[tuple[str, str]], cited: bool) -> Markup:
    whole = [*links, *[("sources", "Sources")] * cited, ("reproducibility", "Reproducibility")]
    return el(
        "nav",
        el("ul", [el("li", el("a", words, href=f"#{at}")) for at, words in whole]),
        aria_label="Sections",
    )


def _parts(at: str, s: Statement, extras: Extras, level: int) -> list[Part]:
    """What a statement says, in its order; what there is nothing of is None."""
    return [
        (f"{at}steps", "Where it goes", sections_bill.waterfall(at, s, level)),
        (f"{at}bill", "Bill", sections_bill.bill(at, s, level) if _is_billed(s) else None),
        (f"{at}interval", "Interval", sections_pictures.curve(at, extras.curve, level)),
        (f"{at}tiers", "Tiers", sections_pictures.tiers(at, extras.tiers, level)),
        (f"{at}power", "Power", sections_pictures.power(at, extras.power, level)),
        (f"{at}hours", "By time", sections_pictures.emissions(at, s, level)),
        ("", "", sections_pictures.further(at, extras.tables, level)),
        (f"{at}warnings", "Take care", sections.take_care(at, s, level)),
    ]


def _is_billed(s: Statement) -> bool:
    """Whether a line has a figure that is known and not zero."""
    return any(getattr(c, what).value for c in s.marginal() for what in sections.NAMES)


def _appendix(
    at: str, s: Statement, extras: Extras, level: int, factors: Markup | None
) -> list[Part]:
    """What it rests on, and what other reports ask for."""
    return [
        (f"{at}findings", "In detail", sections.findings(at, extras.findings, level)),
        ("", "", sections.facts(s)),
        (f"{at}bill", "Bill", None if _is_billed(s) else sections_bill.bill(at, s, level)),
        (f"{at}scope2", "Scope 2", sections_carbon.scope_2(at, s, level)),
        (f"{at}sci", "SCI", sections_carbon.sci(at, extras.sci, level)),
        (f"{at}boundary", "Boundary", sections_carbon.boundary(at, s, level)),
        (f"{at}factors", "Factors", factors),
        (f"{at}assumptions", "Assumptions", sections_proof.assumptions(at, s.assumptions, level)),
        (
            f"{at}measurements",
            "Measurements",
            sections_proof.measurements(at, s.measurements, level),
        ),
        (f"{at}method", "Method", sections_proof.method(at, s, level)),
    ]


def _over(extras: Extras, mine: Extras | None) -> Extras:
    """What is said of one statement goes before what is said of the page."""
    if mine is None:
        return extras
    own: dict[str, Any] = {name: value for name, value in mine._asdict().items() if value}
    return extras._replace(**own)


def _one(document: Report, extras: Extras) -> Markup:
    title = el("h1", title_of(document, extras))
    if not document.statements:
        return _without_bill(title, extras, False)
    s = document.statements[0]
    cited = sections_proof.places_of(sections_proof.sources_of([s]))
    factors = sections_proof.factors("", s.factors, 2, cited)
    own = _over(extras, extras.each.get(s.subject.run_id))
    found = [part for part in _parts("", s, own, 2) if part[2]]
    behind = [part for part in _appendix("", s, own, 2, factors) if part[2]]
    links = [(at, words) for at, words, _ in (*found, *behind) if at]
    return join(
        [
            el("header", title, sections.lead(s), sections.simulated([s])),
            sections.answer("", own.answer, 2),
            sections.cards(s),
            _nav(links, bool(cited)),
            [part for _, _, part in found],
            el("h2", APPENDIX, class_="appendix"),
            [part for _, _, part in behind],
        ]
    )


def _without_bill(title: Markup, extras: Extras, has_parts: bool) -> Markup:
    """An answer to another question: its sentences, pictures and tables."""
    told = [
        ("steps", "Where it goes", sections_bill.steps_of(extras.steps, 2)),
        ("interval", "Interval", sections_pictures.curve("", extras.curve, 2)),
        ("tiers", "Tiers", sections_pictures.tiers("", extras.tiers, 2)),
        ("power", "Power", sections_pictures.power("", extras.power, 2)),
        ("", "", sections_pictures.further("", extras.tables, 2)),
        ("findings", "In detail", sections.findings("", extras.findings, 2)),
    ]
    found = [part for part in told if part[2]]
    told_first = [extras.lead] if has_parts else [extras.lead, NO_BILL]
    lead = el("p", " ".join(filter(None, told_first)), class_="lead")
    banner = note(extras.banner, class_="simulated") if extras.banner else None
    return join(
        [
            el("header", title, lead, banner),
            sections.answer("", extras.answer, 2),
            sections.tiles(extras.tiles),
            _nav([(at, words) for at, words, _ in found if at], False),
            [part for _, _, part in found],
        ]
    )


def _several(document: Report, extras: Extras) -> Markup:
    those = document.statements
    cited = sections_proof.places_of(sections_proof.sources_of(those))
    common = sections_compare.in_all(those)
    told = [
        _told(n, s, extras.each.get(s.subject.run_id, NOTHING), cited, common)
        for n, s in enumerate(those, 1)
    ]
    links = [
        ("comparison", "Side by side"),
        *((f"statement-{n}", s.subject.name) for n, s in enumerate(those, 1)),
    ]
    links += [("all-factors", "Factors of all")] * bool(common)
    lead = el("p", f"{len(those)} statements, each told in full below.", class_="lead")
    return join(
        [
            el("header", el("h1", title_of(document, extras)), lead, sections.simulated(those)),
            _nav(links, bool(cited)),
            sections.answer("", extras.answer, 2),
            sections_compare.comparison(those),
            sections.findings("", extras.findings, 2),
            sections_pictures.curve("", extras.curve, 2),
            sections_pictures.tiers("", extras.tiers, 2),
            sections_pictures.power("", extras.power, 2),
            sections_pictures.further("", extras.tables, 2),
            sections_carbon.sci("", extras.sci, 2),
            told,
            sections_proof.factors("all-", common, 2, cited, title="Factors of all"),
        ]
    )


def _told(
    n: int, s: Statement, extras: Extras, cited: sections_proof.Places, common: Sequence[Factor]
) -> Markup:
    """One of several statements. Factors that all of them have alike stand once, at the end."""
    at, alike = f"s{n}-", {f.id for f in common}
    remark = (
        f"{len(common)} factors are the same in every statement: they stand at the end, under"
        " Factors of all."
        if common
        else ""
    )
    factors = sections_proof.factors(
        at,
        [f for f in s.factors if f.id not in alike],
        3,
        cited,
        "Factors of this statement alone",
        remark,
    )
    both = [*_parts(at, s, extras, 3), *_appendix(at, s, extras, 3, factors)]
    inside = [part for _, _, part in both]
    head = [
        el("h2", s.subject.name, id=f"statement-{n}-h"),
        sections.lead(s),
        sections.simulated([s]),
        sections.answer(at, extras.answer, 3),
        sections.cards(s),
    ]
    return el(
        "section",
        head,
        inside,
        id=f"statement-{n}",
        class_="statement",
        aria_labelledby=f"statement-{n}-h",
    )
