"""Statements for a terminal of 80 columns, as Markdown, and as CSV with one row per component of
each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ckptcost.first.core.quantities import IN_DOCUMENTS
from ckptcost.first.present.amounts import (
    DASH,
    count,
    duration,
    number,
    quantities,
    quantity,
    share,
)
from ckptcost.first.present.table import on_one_line, sentence, wrap_line
from ckptcost.first.present.words import scope_text
from ckptcost.first.report import sci, writers
from ckptcost.first.report.document import Report
from ckptcost.first.report.parts import Component, Quantity, Source, Totals
from ckptcost.first.report.statement import QUANTITIES, Statement
from ckptcost.first.report.study import NOTE, Column, Table, named
from ckptcost.first.report.to_csv import UNIT_SUFFIX, lines
from ckptcost.first.report.writers import ReportPage, Section

SIMULATED = "SIMULATED: no machine was measured for this."
MEMO = "Memo item: this energy already sits in the facility's meter. Do not add it to an inventory."
NAMES = {q.id: q.label for q in IN_DOCUMENTS} | {"checkpoints": "checkpoints"}
NOT_KNOWN = "not known"
KG_PER_T = KWH_PER_MWH = G_PER_KG = 1000.0

VALUE = Column("value", "value", "1", unknown=NOT_KNOWN)
LOW_HIGH = Column("range", "low-high", "1", range_of="value")


def _spread(q: Quantity, name: str = "value", scale: float = 1.0) -> dict[str, Any]:
    """A quantity as the cells of a row, in a unit of so many of its own."""
    ends = {name: q.value, f"{name}_low": q.low, f"{name}_high": q.high}
    return {each: None if value is None else value / scale for each, value in ends.items()}


def heading(s: Statement) -> list[str]:
    """What, where, when, and how it is known."""
    about = s.subject
    gpus = (
        f"{count(about.accelerator_count)} x {about.accelerator or 'GPU'}"
        if about.accelerator_count
        else about.accelerator
    )
    place = about.grid or about.site or about.region or about.country
    what = [word for word in (about.checkpoint, about.tier, gpus, place) if word]
    when = f"{s.period_start} to {s.period_end}" if s.period_start else "no dates: a plan"
    length = [f"{duration(s.length_s)} long"] if s.length_s is not None else []
    return [
        *([", ".join(what)] if what else []),
        ", ".join([when, *length]),
        f"{s.kind.capitalize()}: {s.how}; method {s.method_version}; run {about.run_id}",
    ]


def totals(s: Statement) -> Table:
    sums: dict[str, Quantity] = {what: getattr(s.totals, what) for what in NAMES}
    rows = [
        {
            "total": NAMES[what],
            "basis": q.basis,
            "unit": "" if q.unit == "1" else q.unit,
            "interval": q.interval,
            **_spread(q),
        }
        for what, q in sums.items()
    ]
    lacking = "; ".join(
        f"{NAMES[what]}: {s.labels_of(q.excludes)}"
        for what, q in sums.items()
        if q.excludes and q.value is not None
    )
    note = f"low-high: {s.uncertainty}. Embodied carbon is in no emissions total."
    note += f" Not in the totals because unknown: {lacking}." if lacking else ""
    columns = (*named("total", "basis"), VALUE, *named("unit"), LOW_HIGH)
    return Table("totals", "Totals", columns, rows, on_one_line(note))


def bill(s: Statement, unknown: str = DASH) -> Table:
    """The lines; those of the other ledger below the total, and in none."""
    columns = (
        *named("line"),
        Column("energy", "kWh", "kWh", unknown=unknown),
        Column("range", "low-high", "kWh", range_of="energy"),
        Column("gpu_time_lost", "GPU-h", "GPU-h", unknown=unknown),
        Column("cost", "USD", "USD", unknown=unknown),
        Column("emissions_location", "kgCO2e", "kgCO2e", unknown=unknown),
    )
    apart = [
        c
        for c in s.components
        if c.ledger != "marginal" and any(getattr(c, q).value is not None for q in QUANTITIES)
    ]
    rows = [
        *(_bill_row(c.label, c) for c in s.marginal()),
        _bill_row("total", s.totals),
        *(_bill_row(f"apart: {c.label}", c) for c in apart),
    ]
    note = "kgCO2e: location-based."
    note += " Apart: stands there anyway, in no total." if apart else ""
    return Table("bill", "The bill", columns, rows, note)


def _bill_row(name: str, c: Component | Totals) -> dict[str, Any]:
    shown = {what: getattr(c, what).value for what in QUANTITIES}
    interval = c.energy.interval
    return {"line": name, "interval": interval, **shown, **_spread(c.energy, "energy")}


def scope_two(s: Statement) -> Table:
    """Location and market apart, never added, never averaged."""
    of = (
        ("location", scope_text(s.choices), s.totals.emissions_location),
        ("market", "Scope 2", s.totals.emissions_market),
    )
    rows = [
        {
            "method": f"{called}, {which}-based",
            "factor": _factor_text(s, f"site.grid_{which}"),
            "unit": q.unit,
            **_spread(q),
        }
        for which, called, q in of
    ]
    bought = "; ".join(
        f"{c.name} ({c.instrument}), {share(c.share)} at"
        f" {number(c.kgco2e_per_kwh * G_PER_KG)} g/kWh"
        for c in s.contracts
    )
    note = "Of whoever buys the electricity; for a customer of theirs it is Scope 3."
    note += f" Contracts: {bought}." if bought else ""
    columns = (*named("method", "factor"), VALUE, LOW_HIGH, *named("unit"))
    title = "Emissions of the electricity"
    return Table("scope_two", title, columns, rows, on_one_line(note))


def _factor_text(s: Statement, factor_id: str) -> str:
    found = next((f for f in s.factors if f.id == factor_id), None)
    return "" if found is None else quantity(found.value, found.unit)


def esrs(s: Statement) -> Table:
    """The lines of ESRS E1 that a report would be looked up for, as memo items."""
    location, market = s.totals.emissions_location, s.totals.emissions_market
    rows = [
        {"line": f"{name} (memo)", "unit": unit, **_spread(q, scale=scale)}
        for name, q, scale, unit in (
            ("E1-5 energy consumption", s.totals.energy, KWH_PER_MWH, "MWh"),
            (f"E1-6 {scope_text(s.choices)}, location-based", location, KG_PER_T, "tCO2e"),
            ("E1-6 Scope 2, market-based", market, KG_PER_T, "tCO2e"),
        )
    ]
    columns = (*named("line"), VALUE, LOW_HIGH, *named("unit"))
    return Table("esrs", "ESRS E1 lines", columns, rows, MEMO)


def sci_table(s: Statement) -> Table:
    rows = [
        {"part": row.label, "unit": row.unit, "note": row.note, "value": row.value}
        for row in sci.rows(s)
        if not isinstance(row.value, str)
    ]
    note = "SCI = ((E * I) + M) per R, of the checkpoints only."
    columns = (*named("part", "unit"), Column("note", "note", NOTE), VALUE)
    return Table("sci", "Software carbon intensity (SCI)", columns, rows, note)


def sci_lines(s: Statement) -> list[str]:
    """What the score's table holds no number of: boundary, method, source of M."""
    told = [row for row in sci.rows(s) if isinstance(row.value, str)]
    return [f"{row.label}: {row.value}" + (f" ({row.note})" if row.note else "") for row in told]


def coefficients(s: Statement) -> Table:
    columns = (*named("name", "description", "source", "method"), VALUE, *named("unit"))
    rows = [c._asdict() for c in sci.coefficients(s)]
    return Table("coefficients", "Coefficients", columns, rows, wide=True)


def boundary_lines(s: Statement) -> list[str]:
    b = s.boundary
    pue = f"PUE {number(b.pue)}, " if b.pue is not None else "no PUE: energies as metered, "
    said = pue + (
        "included in the energies" if b.pue_included_in_energy else "not included in the energies"
    )
    out = "; ".join(f"{each.component}: {each.reason}" for each in b.excluded)
    return [
        f"In: {', '.join(b.included) or 'nothing'}",
        f"Out: {out or 'nothing'}",
        f"Against {b.counterfactual}; {said}",
    ]


def factors(s: Statement) -> Table:
    rows = [
        {
            "factor": f.id,
            "value": f.text or quantity(f.value, f.unit),
            "range": quantities(f.low, f.high, f.unit),
            "basis": f.origin,
            "source and licence": _sources(f.sources),
        }
        for f in s.factors
    ]
    columns = named("factor", "value", "range", "basis", "source and licence")
    return Table("factors", "Factors", columns, rows, wide=True)


def _sources(sources: Iterable[Source]) -> str:
    return "; ".join(f"{each.title} ({each.licence or 'licence not stated'})" for each in sources)


def measurements(s: Statement, unknown: str = DASH) -> Table:
    columns = (
        Column("id", "domain"),
        *named("instrument", "boundary"),
        Column("tick_s", "tick", "s", unknown=unknown),
        Column("coverage", "covered", "share", unknown=unknown),
        Column("energy_kwh", "kWh", "kWh", unknown=unknown),
    )
    rows = [vars(m) for m in s.measurements]
    note = "kWh: over the whole time, training included."
    return Table("measurements", "Meters", columns, rows, note)


def assumption_lines(s: Statement) -> list[str]:
    found = []
    for a in s.assumptions:
        span = quantities(a.low, a.high, a.unit)
        found.append(a.text + (f" ({span})" if span else ""))
    return found


def _page(s: Statement, unknown: str) -> ReportPage:
    blocks: list[writers.Block] = [
        totals(s),
        bill(s, unknown),
        scope_two(s),
        esrs(s),
        sci_table(s),
        _section("", sci_lines(s), "Disclosed with the score"),
        coefficients(s),
        _section("Boundary", boundary_lines(s)),
        factors(s),
        _section("Assumptions", assumption_lines(s), "Assumed"),
        measurements(s, unknown),
        _section("Take care", [f"{w.message} ({w.code})" for w in s.warnings]),
    ]
    lead = [on_one_line(line) for line in heading(s)]
    return ReportPage(s.subject.name, lead, blocks, SIMULATED if s.simulated else "")


def _section(title: str, told: Iterable[str], text_title: str | None = None) -> Section:
    """Sentences with somebody's words in them, each on one line."""
    return Section(title, [on_one_line(line) for line in told], text_title=text_title)


def text(document: Report) -> str:
    """All statements as plain text."""
    tail = wrap_line(f"{MEMO} Factors with their sources: as Markdown or JSON.")
    told = [*(writers.page_text(_page(s, DASH)) for s in document.statements), tail]
    return "\n\n".join("\n".join(each) for each in told) + "\n"


def to_markdown(document: Report) -> str:
    """The same with every factor's source, for a wiki or a report."""
    pages = [_page(s, NOT_KNOWN) for s in document.statements]
    told = [
        [
            *writers.page_markdown(page._replace(lead=(), blocks=())),
            *(f"{sentence(line)}  " for line in page.lead),  # each on a line of its own
            *("", f"_{MEMO}_"),
            *writers.markdown_of(page.blocks),
        ]
        for page in pages
    ]
    tail = (
        f"Method {document.tool.method_version}, ckptcost {document.tool.version}, statements"
        f" {document.reproducibility.result_sha256}."
    )
    return "\n\n".join("\n".join(each) for each in [*told, [tail]]) + "\n"


CSV_COLUMNS = (
    *("run_id", "name", "kind", "simulated", "method_version", "period_start", "period_end"),
    *("grid_zone", "grid_method", "component", "label", "cause", "ledger", "boundary", "basis"),
    *("rests_on", "inventory_treatment"),
    *(f"{q.id}_{UNIT_SUFFIX[q.unit]}{end}" for q in IN_DOCUMENTS for end in ("", "_low", "_high")),
)


def to_csv(document: Report) -> str:
    """One row per component of each statement, no totals: the columns of one ledger add up."""
    rows = [_csv_row(s, c) for s in document.statements for c in s.components]
    told = Table("components", "", named(*CSV_COLUMNS), rows)
    return lines(writers.csv_rows(told))


def _csv_row(s: Statement, c: Component) -> dict[str, Any]:
    row = {
        **vars(s),
        **vars(s.subject),
        **vars(c),
        "grid_method": s.grid_method,
        "component": c.id,
        "inventory_treatment": s.boundary.inventory_treatment,
    }
    for q in IN_DOCUMENTS:
        row |= _spread(s.amount(c, q.id), f"{q.id}_{UNIT_SUFFIX[q.unit]}")
    return row


VIEWS: dict[str, Callable[[Report], str]] = {"text": text, "md": to_markdown, "csv": to_csv}
