"""The page of an answer: what it says first, then its pictures and tables, then an appendix of all
that it rests on. One file that holds no script and loads nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ckptcost.core.draws import LEAST
from ckptcost.core.lines import tier_and_kind
from ckptcost.core.outcome import evaluate
from ckptcost.core.quantities import BY_ID, pick
from ckptcost.present.words import gate_text
from ckptcost.report import brief, diff_views
from ckptcost.report.canonical import tidy
from ckptcost.report.check import case_from
from ckptcost.report.difference import Difference
from ckptcost.report.document import Report
from ckptcost.report.html import pictures, pictures_of_time, sections
from ckptcost.report.html.markup import (
    Child,
    Markup,
    el,
    join,
    note,
    range_text,
    row,
    section,
    style_sheet,
    table,
)
from ckptcost.report.html.pictures_of_time import PowerPlot, SaveBand
from ckptcost.report.html.sections import Tile
from ckptcost.report.html.svg import PlotLine
from ckptcost.report.parts import Quantity
from ckptcost.report.statement import Statement
from ckptcost.report.studies.model_words import (
    basis_line,
    carbon_lines,
    case_text,
    least_of,
    remarks_of,
)
from ckptcost.report.study import Column, Study, Table, shown_cells
from ckptcost.report.study_views import SIMULATED

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
    in_full = f"{len(several)} statements, each told in full below."
    lead = f"{sections.lead(alone)} {extras.lead}" if alone else extras.lead or in_full
    banner = extras.banner or sections.simulated_notice(those)
    return join(
        [
            el(
                "header",
                el("h1", title),
                el("p", lead.rstrip(), class_="lead"),
                note(banner, class_="simulated"),
            ),
            sections.sentences("answer", "The answer", extras.answer, 2),
            sections.tiles(extras.tiles or (sections.tiles_of(alone) if alone else [])),
            sections.missing(alone) if alone else None,
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


# ---- what there is to show, by what the answer is of

POINTS = 120
AROUND = 12.0
"""how many times below and above the best intervals the curve reaches"""
PLACED = "Each under the factors of its time and its contracts, and told in full below."
NO_BILL = "An answer in words and tables; it holds no bill of its own."
DRAWN = [BY_ID[what] for what in sections.PICTURED]
FLEET_TILES = {q.measure: sections.NAMES[q.id] for q in DRAWN} | {
    "goodput": "Goodput",
    "checkpoints": "Checkpoints",
    "failures": "Failures",
}
CHANGES = {
    "label": "line",
    "quantity": "quantity",
    "unit": "unit",
    "before": "before",
    "after": "after",
    "change": "change",
    "change_share": "%",
    "ranges_overlap": "within the uncertainty",
    "reason": "why not known",
}
"""what a page shows of each change, and how it is headed"""
_WATTS = (("gpus", "GPUs"), ("hosts", "CPU and memory"), ("node", "node"))


def extras_of(study: Study, statements: Sequence[Statement]) -> Extras:
    """What there is to show, by what the answer is of."""
    if study.kind == "model":
        return _of_model(study, statements[0])
    if study.kind == "comparison" and not all(map(_has_own_factors, statements)):
        # the answer's own figures of carbon hold no more
        return Extras(title=study.title, lead=PLACED, care=study.warnings)
    found = _of_study(study)
    if study.kind == "fleet":
        return _of_fleet(study, found, len(statements))
    if study.difference is not None:
        changes = _changes(study.tables[0], study.difference)
        return _whole(study, found._replace(tables=changes, more=()), NO_BILL)
    if statements:
        return found if len(statements) == 1 else found._replace(lead=_sentences(study.about))
    return _whole(study, found, NO_BILL)


def _has_own_factors(s: Statement) -> bool:
    """Whether a plan is under the factors that it was made with, not those of a time or of
    contracts."""
    return s.series is None and not s.contracts


def _of_model(study: Study, s: Statement) -> Extras:
    """Of a model: how the result hangs on the interval, and the tiers beside each other. The
    statement may be of another case than the first, of which the sentences are; or under factors
    of the time, and then what the answer says of carbon holds no more."""
    own = _has_own_factors(s)
    cases = study.question["cases"]
    is_first = s.id.partition("#")[2] == cases[0]
    untrue = [] if own else carbon_lines(s)
    found = _of_study(study)
    rows = next((table.rows for table in study.tables if table.id == "cases"), [])
    tiles = _least_tiles(rows, own) if is_first else []
    large = "In large: the least that a case adds. In" if tiles else "In large and in"
    several = f"{large} the bill: {s.subject.tier}, one of {len(cases)} cases."
    said = found.answer if is_first else _targets(study)
    tables, more = (
        [table if own else _without_carbon(table) for table in those if table.id != "bill"]
        for those in (found.tables, found.more)
    )
    return found._replace(
        title=s.subject.name,
        lead=several if len(cases) > 1 else "",
        tiles=tiles,
        answer=[line for line in said if own or "kgCO2e" not in line],
        tables=tables,
        curve=curve_of(s),
        findings=[*(line for line in remarks_of(s) if line not in untrue), basis_line(s.factors)],
        more=more,
    )


_LEAST = {"run_energy_kwh": "energy", "run_gpu_hours": "gpu_time_lost", "run_cost_usd": "cost"}
"""columns of the cases, and which quantity each is of"""


def _least_tiles(cases: Sequence[Mapping[str, Any]], has_carbon: bool) -> list[Tile]:
    """Of several cases what the one that adds least comes to, for each figure; emissions are of the
    one with the least energy, since all draw from one grid."""
    least = least_of([dict(row) for row in cases])
    found = [(column, what, least[column]) for column, what in _LEAST.items() if column in least]
    if has_carbon and "run_energy_kwh" in least:
        row = least["run_energy_kwh"]
        if row["run_location_kgco2e"] is not None:
            found.append(("run_location_kgco2e", "emissions_location", row))
    tiles = []
    for column, what, row in found:
        low, high = (row.get(f"{column}_{end}") for end in ("low", "high"))
        ends = range_text(Quantity(value=row[column], unit="1", low=low, high=high))
        of = f"{case_text(row, cases)}, of {len(cases)} cases"
        notes = [*([f"{ends} (p5-p95)"] if ends else []), of]
        tiles.append(Tile(sections.NAMES[what], row[column], BY_ID[what].unit, notes, "modelled"))
    return tiles


def _without_carbon(table: Table) -> Table:
    kept = tuple(column for column in table.columns if column.unit != "kgCO2e")
    return table._replace(columns=kept)


def _of_study(study: Study) -> Extras:
    """Its sentences, the tables that carry it as a terminal has them first, the others, and its
    power over time."""
    known = {table.id: table for table in study.tables}
    shown = {name: each for name, each in known.items() if each.shown and each.rows}
    first = brief.CARRYING.get(study.kind, list(shown)[: brief.TABLES])
    return Extras(
        title=study.title,
        answer=[*study.findings[: brief.SENTENCES], *_targets(study)],
        tables=[shown[name] for name in first if name in shown],
        power=power_of(known["power"], known.get("windows")) if "power" in known else None,
        care=study.warnings,
        findings=[*study.findings[brief.SENTENCES :], *study.remarks],
        more=[each for name, each in shown.items() if name not in first],
    )


def _targets(study: Study) -> list[str]:
    return [gate_text(verdict) for verdict in study.gates]


def _sentences(told: Sequence[str]) -> str:
    return " ".join(f"{each.rstrip('.')}." for each in told)


def _whole(study: Study, found: Extras, remark: str) -> Extras:
    """An answer that has no bill of its own."""
    lead = _sentences([*study.about, remark])
    return found._replace(lead=lead, is_whole=True, banner=SIMULATED if study.simulated else "")


def _of_fleet(study: Study, found: Extras, jobs: int) -> Extras:
    known = {table.id: table for table in study.tables}
    remark = f"{jobs} jobs; the bill of each is in the statements of this document."
    whole = _whole(study, found, remark if jobs else NO_BILL)
    return whole._replace(tiles=_tiles(known["groups"]), falls=_falls(known["lines"]))


def curve_of(statement: Statement) -> pictures.IntervalPicture | None:
    """What the run comes to at each interval: the same arithmetic, on the inputs that the statement
    carries."""
    factors = [f.model_dump(mode="json") for f in statement.factors]
    choices = {k: v for k, v in statement.choices.items() if v is not None}
    case = case_from(factors, choices, "", LEAST, ranges=False)
    s = case.scenario
    now_s = float(case.outcome.interval_s)
    seen = [each for each in (*case.best.values(), now_s) if np.isfinite(each) and each > 0]
    longest = float(s.work_s)
    low, high = min(min(seen) / AROUND, longest / 2), min(max(seen) * AROUND, longest)
    if not 0 < low < high:
        return None
    x = np.geomspace(low, high, POINTS)
    with np.errstate(all="ignore"):
        outcome = evaluate(replace(s, policy=replace(s.policy, cadence="interval", every=x)))
    lines = [PlotLine("goodput", _as_list(outcome.goodput, x), "share of time")]
    for q in pick("energy", "cost"):
        values = q.people(outcome.run.total(q.field))
        lines.append(PlotLine(q.added, _as_list(values, x), q.unit))
    return pictures.IntervalPicture(
        x.tolist(),
        [line for line in lines if any(v is not None for v in line.values)],
        now_s,
        {k: tidy(float(v)) for k, v in case.best.items()},
    )


def _as_list(values: object, x: np.ndarray) -> list[float | None]:
    return [tidy(float(each)) for each in np.broadcast_to(np.asarray(values, dtype=float), x.shape)]


def _tiles(groups: Table) -> list[Tile]:
    """Of a fleet: what all its jobs together come to."""
    whole = groups.rows[-1] if groups.rows else {}
    units = {column.id: column.unit for column in groups.columns}
    return [
        _tile(label, whole[name], units[name], str(whole.get(f"lacks_{name}") or ""))
        for name, label in FLEET_TILES.items()
        if whole.get(name) is not None
    ]


def _tile(label: str, value: float, unit: str, lacks: str) -> Tile:
    notes = [f"at least; not in it in full: {lacks}"] if lacks else []
    if unit == "share":
        return Tile(label, 100.0 * value, "%", notes)
    return Tile(label, value, "" if unit == "count" else unit, notes)


def _falls(lines: Table) -> list[pictures.Fall]:
    """Of a fleet: the lines of its bill."""
    *parts, total = lines.rows
    found = []
    for q in DRAWN:
        steps = [pictures.FallStep(row["line"], row.get(q.measure), _cause(row)) for row in parts]
        if any(step.value for step in steps):
            value, low, high = (total.get(f"{q.measure}{end}") for end in ("", "_low", "_high"))
            ends = range_text(Quantity(value=value, unit="1", low=low, high=high))
            label = sections.NAMES[q.id].partition(",")[0]
            unit = sections.PICTURED[q.id]
            found.append(pictures.Fall(unit, steps, value, low, high, label, ends))
    return found


def _cause(row: Mapping[str, Any]) -> str:
    """A fleet's own lines, waiting for others and nodes that are missing, are of saves."""
    try:
        return tier_and_kind(str(row["id"]))[1].cause
    except KeyError:
        return "save"


def _changes(changes: Table, difference: Difference) -> list[Table]:
    """Of a difference: its totals, its lines as far as anything is known of them, and the inputs
    that changed; the other formats hold every change."""
    columns = {column.id: column for column in changes.columns}
    shown = [columns[name]._replace(label=label) for name, label in CHANGES.items()]
    rows = [row | {"quantity": diff_views.NAMES[row["quantity"]]} for row in changes.rows]
    totals = [row for row in rows if row["of"] == "total"]
    lines = [row for row in rows if row["of"] == "component" and (row["before"] or row["after"])]
    factors = [
        {"id": f.id}
        | {side: diff_views.factor_text(getattr(f, side), f) for side in ("before", "after")}
        for f in difference.delta.factors
    ]
    inputs = tuple(Column(name, name) for name in ("id", "before", "after"))
    return [
        Table("totals", "Totals", tuple(shown[1:]), totals),
        Table("lines", "Line by line", tuple(shown[:-1]), lines),
        Table("factors", "Factors that changed", inputs, factors),
    ]


def power_of(power: Table, windows: Table | None) -> PowerPlot:
    """Watts over time, with the checkpoints as bands."""
    # a document of an older version has no ranges
    lines = [
        PlotLine(
            name,
            [row[column] for row in power.rows],
            "W",
            [row.get(f"{column}_low") for row in power.rows],
            [row.get(f"{column}_high") for row in power.rows],
        )
        for column, name in _WATTS
        if any(c.id == column for c in power.columns)
    ]
    bands = [
        SaveBand(str(row["window"]), row["begin"], row["returned"], row["durable"])
        for row in (windows.rows if windows is not None else ())
        if row.get("begin") is not None
    ]
    return PowerPlot([row["at"] for row in power.rows], lines, bands=bands, note=power.note)
