"""Statements for a terminal of 80 columns, as Markdown, and as CSV with one row per component of
each."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from ckptcost.core.quantities import IN_DOCUMENTS
from ckptcost.present.amounts import (
    DASH,
    between,
    count,
    drawn_between,
    duration,
    number,
    quantities,
    quantity,
    share,
)
from ckptcost.present.table import columns, markdown, plain
from ckptcost.present.words import scope_text
from ckptcost.report import sci
from ckptcost.report.document import Report
from ckptcost.report.parts import Component, Quantity, Totals
from ckptcost.report.statement import QUANTITIES, Statement
from ckptcost.report.to_csv import UNIT_SUFFIX, lines, safe

WIDTH = 80
SIMULATED = "SIMULATED: no machine was measured for this."
MEMO = "Memo item: this energy already sits in the facility's meter. Do not add it to an inventory."
NAMES = {q.id: q.label for q in IN_DOCUMENTS} | {"checkpoints": "checkpoints"}
NOT_KNOWN = "not known"
KG_PER_T = KWH_PER_MWH = G_PER_KG = 1000.0
NOTE = "note"
"""a last column of words, which the text view puts below its row"""

Table = tuple[str, list[str], list[list[str]], int, str]
"""title, header, rows, how many of the first columns are text, footnote"""


def ranged(q: Quantity) -> str:
    """Low to high; an open end as "more than"."""
    if q.low is not None and q.high is None:
        return f">{number(q.low)}"
    return (drawn_between if q.interval == "p5-p95" else between)(q.low, q.high)


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
        ", ".join(_flat(word) for word in what),
        ", ".join([when, *length]),
        f"{s.kind.capitalize()}: {_flat(s.how)}; method {s.method_version}; run {about.run_id}",
    ]


def totals(s: Statement) -> Table:
    rows = []
    for what in (*QUANTITIES, "checkpoints"):
        q: Quantity = getattr(s.totals, what)
        unit = "" if q.unit == "1" else q.unit
        rows.append(
            [
                NAMES[what],
                q.basis,
                number(q.value) if q.value is not None else NOT_KNOWN,
                unit,
                ranged(q),
            ]
        )
    note = f"low-high: {_flat(s.uncertainty)}. Embodied carbon is in no emissions total."
    sums = [(NAMES[what], getattr(s.totals, what)) for what in QUANTITIES]
    lacking = [
        f"{name}: {_labels(s, q.excludes)}"
        for name, q in sums
        if q.excludes and q.value is not None
    ]
    return (
        "Totals",
        ["total", "basis", "value", "unit", "low-high"],
        rows,
        2,
        note + _lacking(lacking),
    )


def _labels(s: Statement, ids: Sequence[str]) -> str:
    labels = {c.id: c.label for c in s.components}
    return ", ".join(_flat(labels.get(name, name)) for name in ids)


def _lacking(said: Sequence[str]) -> str:
    return f" Not in the totals because unknown: {'; '.join(said)}." if said else ""


def bill(s: Statement) -> Table:
    """The lines; those of the other ledger below the total, and in none."""
    header = ["line", "kWh", "low-high", "GPU-h", "USD", "kgCO2e"]

    def cells(name: str, c: Component | Totals) -> list[str]:
        shown = [number(q.value) for q in (c.energy, c.gpu_time_lost, c.cost, c.emissions_location)]
        return [_flat(name), shown[0], ranged(c.energy), *shown[1:]]

    rows = [cells(c.label, c) for c in s.marginal()]
    rows.append(cells("total", s.totals))
    apart = [c for c in s.components if c.ledger != "marginal" and _speaks(c)]
    rows += [cells(f"apart: {c.label}", c) for c in apart]
    return (
        "The bill",
        header,
        rows,
        1,
        "kgCO2e: location-based." + (" Apart: stands there anyway, in no total." if apart else ""),
    )


def _speaks(c: Component) -> bool:
    return any(getattr(c, what).value is not None for what in QUANTITIES)


def scope_two(s: Statement) -> Table:
    """Location and market apart, never added, never averaged."""
    rows = [
        [
            f"{called}, {which}-based",
            _factor_text(s, f"site.grid_{which}"),
            *_amount(q, 1.0),
            q.unit,
        ]
        for which, called, q in (
            ("location", scope_text(s.choices), s.totals.emissions_location),
            ("market", "Scope 2", s.totals.emissions_market),
        )
    ]
    bought = "; ".join(
        f"{_flat(c.name)} ({_flat(c.instrument)}), {share(c.share)} at {_grams(c.kgco2e_per_kwh)}"
        for c in s.contracts
    )
    note = "Of whoever buys the electricity; for a customer of theirs it is Scope 3." + (
        f" Contracts: {bought}." if bought else ""
    )
    return (
        "Emissions of the electricity",
        ["method", "factor", "value", "low-high", "unit"],
        rows,
        2,
        note,
    )


def _grams(kgco2e_per_kwh: float) -> str:
    return f"{number(kgco2e_per_kwh * G_PER_KG)} g/kWh"


def esrs(s: Statement) -> Table:
    """The lines of ESRS E1 that a report would be looked up for, as memo items."""
    tonnes = "tCO2e"
    rows = [
        ["E1-5 energy consumption (memo)", *_amount(s.totals.energy, KWH_PER_MWH), "MWh"],
        [
            f"E1-6 {scope_text(s.choices)}, location-based (memo)",
            *_amount(s.totals.emissions_location, KG_PER_T),
            tonnes,
        ],
        [
            "E1-6 Scope 2, market-based (memo)",
            *_amount(s.totals.emissions_market, KG_PER_T),
            tonnes,
        ],
    ]
    return "ESRS E1 lines", ["line", "value", "low-high", "unit"], rows, 1, MEMO


def _amount(q: Quantity, scale: float) -> list[str]:
    scaled = [None if each is None else each / scale for each in (q.value, q.low, q.high)]
    span = (
        f">{number(scaled[1])}"
        if scaled[1] is not None and scaled[2] is None
        else between(scaled[1], scaled[2])
    )
    return [number(scaled[0]) if scaled[0] is not None else NOT_KNOWN, span]


def _factor_text(s: Statement, factor_id: str) -> str:
    found = next((f for f in s.factors if f.id == factor_id), None)
    return "" if found is None else quantity(found.value, found.unit)


def sci_table(s: Statement) -> Table:
    told = [row for row in map(_flat_row, sci.rows(s)) if not isinstance(row.value, str)]
    rows = [
        [
            row.label,
            row.unit,
            NOT_KNOWN if row.value is None else number(float(row.value)),
            row.note,
        ]
        for row in told
    ]
    note = "SCI = ((E * I) + M) per R, of the checkpoints only."
    return "Software carbon intensity (SCI)", ["part", "unit", "value", NOTE], rows, 2, note


def _flat_row(row: sci.Row) -> sci.Row:
    return row._replace(
        value=_flat(row.value) if isinstance(row.value, str) else row.value,
        note=_flat(row.note),
        label=_flat(row.label),
    )


def sci_lines(s: Statement) -> list[str]:
    """What the score's table holds no number of: boundary, method, source of M."""
    told = [row for row in map(_flat_row, sci.rows(s)) if isinstance(row.value, str)]
    return [f"{row.label}: {row.value}" + (f" ({row.note})" if row.note else "") for row in told]


def boundary_lines(s: Statement) -> list[str]:
    b = s.boundary
    pue = f"PUE {number(b.pue)}, " if b.pue is not None else "no PUE: energies as metered, "
    said = pue + (
        "included in the energies" if b.pue_included_in_energy else "not included in the energies"
    )
    out = "; ".join(f"{_flat(each.component)}: {_flat(each.reason)}" for each in b.excluded)
    return [
        f"In: {', '.join(map(_flat, b.included)) or 'nothing'}",
        f"Out: {out or 'nothing'}",
        f"Against {_flat(b.counterfactual)}; {said}",
    ]


def factors(s: Statement) -> Table:
    rows = [
        [
            f.id,
            _flat(f.text) or quantity(f.value, f.unit),
            quantities(f.low, f.high, f.unit),
            f.origin,
            _sources(f.sources),
        ]
        for f in s.factors
    ]
    return "Factors", ["factor", "value", "range", "basis", "source and licence"], rows, 5, ""


def _sources(sources: Sequence[Any]) -> str:
    return "; ".join(
        _flat(each.title)
        + (f" ({_flat(each.licence)})" if each.licence else " (licence not stated)")
        for each in sources
    )


def measurements(s: Statement) -> Table:
    rows = [
        [
            _flat(m.id),
            _flat(m.instrument),
            _flat(m.boundary),
            duration(m.tick_s),
            share(m.coverage),
            number(m.energy_kwh),
        ]
        for m in s.measurements
    ]
    note = "kWh: over the whole time, training included."
    return "Meters", ["domain", "instrument", "boundary", "tick", "covered", "kWh"], rows, 3, note


def assumption_lines(s: Statement) -> list[str]:
    found = []
    for a in s.assumptions:
        span = quantities(a.low, a.high, a.unit)
        found.append(f"{_flat(a.text)}" + (f" ({span})" if span else ""))
    return found


def text(document: Report) -> str:
    """All statements as plain text."""
    out: list[str] = []
    for s in document.statements:
        title = _flat(s.subject.name)
        out += [
            *([""] if out else []),
            *_wrapped(title),
            "=" * min(len(title), WIDTH),
            *([SIMULATED] if s.simulated else []),
        ]
        for line in heading(s):
            out += _wrapped(line)
        for table in (totals(s), bill(s), scope_two(s), esrs(s), sci_table(s), measurements(s)):
            out += _text_table(table)
        for name, told in (
            ("Disclosed with the score", sci_lines(s)),
            ("Boundary", boundary_lines(s)),
            ("Assumed", assumption_lines(s)),
            ("Take care", [f"{_flat(w.message)} ({w.code})" for w in s.warnings]),
        ):
            out += (
                ["", name, *(each for line in told for each in _wrapped(line, "- ", "  "))]
                if told
                else []
            )
    out += ["", *_wrapped(f"{MEMO} Factors with their sources: as Markdown or JSON.")]
    return "\n".join(line.rstrip() for line in out) + "\n"


def _text_table(table: Table) -> list[str]:
    title, header, rows, left, note = table
    if not rows:
        return []
    if header[-1] != NOTE:
        body = columns(header, rows, left=left, widest=WIDTH)
    else:  # a note has lines of its own: beside the numbers it would leave no room for names
        shown = columns(header[:-1], [row[:-1] for row in rows], left=left, widest=WIDTH)
        notes = [[], *(_wrapped(row[-1], "    ", "    ") if row[-1] else [] for row in rows)]
        body = [each for line, told in zip(shown, notes, strict=True) for each in (line, *told)]
    return ["", *_wrapped(title), *body, *(_wrapped(note) if note else [])]


def _wrapped(line: str, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(
        line, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    ) or [""]


def _flat(text: str) -> str:
    """Somebody's words on one line, with nothing in them that a terminal would obey."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def to_markdown(document: Report) -> str:
    """The same with every factor's source, for a wiki or a report."""
    out: list[str] = []
    for s in document.statements:
        out += [
            *([""] if out else []),
            f"# {plain(s.subject.name)}",
            "",
            *([f"**{SIMULATED}**", ""] if s.simulated else []),
        ]
        out += [f"{plain(line)}  " for line in heading(s) if line] + ["", f"_{MEMO}_"]
        for table in (totals(s), bill(s), scope_two(s), esrs(s), sci_table(s)):
            out += _markdown_table(table)
        out += [
            "",
            *(f"- {plain(line)}" for line in sci_lines(s)),
            *_markdown_table(_coefficients(s)),
        ]
        out += ["", "## Boundary", "", *(f"- {plain(line)}" for line in boundary_lines(s))]
        out += _markdown_table(factors(s))
        if s.assumptions:
            out += ["", "## Assumptions", "", *(f"- {plain(line)}" for line in assumption_lines(s))]
        out += _markdown_table(measurements(s))
        if s.warnings:
            out += [
                "",
                "## Take care",
                "",
                *(f"- {plain(w.message)} ({plain(w.code)})" for w in s.warnings),
            ]
    tail = (
        f"Method {document.tool.method_version}, ckptcost {document.tool.version}, statements"
        f" {document.reproducibility.result_sha256}."
    )
    return "\n".join([*out, "", tail]) + "\n"


def _coefficients(s: Statement) -> Table:
    rows = [
        [
            c.name,
            _flat(c.description),
            _flat(c.source),
            c.method,
            NOT_KNOWN if c.value is None else number(c.value),
            c.unit,
        ]
        for c in sci.coefficients(s)
    ]
    return "Coefficients", ["name", "description", "source", "method", "value", "unit"], rows, 4, ""


def _markdown_table(table: Table) -> list[str]:
    title, header, rows, left, note = table
    if not rows:
        return []
    if header[-1] == NOTE:  # words stand left, so before the numbers
        header, rows, left = _turned(header), [_turned(row) for row in rows], left + 1
    cells = [[NOT_KNOWN if cell == DASH else cell for cell in row] for row in rows]
    return [
        "",
        f"## {title}",
        "",
        *markdown(header, cells, left=left),
        *(["", f"_{plain(note)}_"] if note else []),
    ]


def _turned(row: list[str]) -> list[str]:
    return [*row[:-2], row[-1], row[-2]]


def to_csv(document: Report) -> str:
    """One row per component of each statement, no totals: the columns of one ledger add up."""
    amounts = [
        f"{q.id}_{UNIT_SUFFIX[q.unit]}{end}" for q in IN_DOCUMENTS for end in ("", "_low", "_high")
    ]
    about = [
        "run_id",
        "name",
        "kind",
        "simulated",
        "method_version",
        "period_start",
        "period_end",
        "grid_zone",
        "grid_method",
    ]
    line = [
        "component",
        "label",
        "cause",
        "ledger",
        "boundary",
        "basis",
        "rests_on",
        "inventory_treatment",
    ]
    rows: list[list[Any]] = [[*about, *line, *amounts]]
    for s in document.statements:
        who = [
            s.subject.run_id,
            s.subject.name,
            s.kind,
            "true" if s.simulated else "false",
            s.method_version,
        ]
        when = [s.period_start, s.period_end, s.subject.grid_zone, s.grid_method]
        for c in s.components:
            told = [
                c.id,
                c.label,
                c.cause,
                c.ledger,
                c.boundary,
                c.basis,
                c.rests_on,
                s.boundary.inventory_treatment,
            ]
            figures = [
                each
                for what in QUANTITIES
                for q in (s.amount(c, what),)
                for each in (q.value, q.low, q.high)
            ]
            rows.append(
                [*(safe(each) if each else each for each in (*who, *when, *told)), *figures]
            )
    return lines(rows)


VIEWS: dict[str, Callable[[Report], str]] = {"text": text, "md": to_markdown, "csv": to_csv}
