"""What a page shows besides statements: the answer's sentences, the tables that carry it, and
pictures of what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ckptcost.first.core.draws import LEAST
from ckptcost.first.core.lines import tier_and_kind
from ckptcost.first.core.outcome import evaluate
from ckptcost.first.core.quantities import BY_ID, pick
from ckptcost.first.jobs.model import Case
from ckptcost.first.present.words import gate_text
from ckptcost.first.report import brief, diff_views
from ckptcost.first.report.canonical import tidy
from ckptcost.first.report.check import case_from
from ckptcost.first.report.difference import Difference
from ckptcost.first.report.html import pictures, sections
from ckptcost.first.report.html.markup import (
    range_text,
)
from ckptcost.first.report.html.page import Extras
from ckptcost.first.report.html.pictures_of_time import PowerPlot, SaveBand
from ckptcost.first.report.html.sections import Tile
from ckptcost.first.report.html.svg import PlotLine
from ckptcost.first.report.parts import Quantity
from ckptcost.first.report.statement import Statement
from ckptcost.first.report.studies.model_words import (
    basis_line,
    carbon_lines,
    case_text,
    least_of,
    remarks_of,
)
from ckptcost.first.report.study import Column, Study, Table, named, table_of
from ckptcost.first.report.study_views import SIMULATED

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
    found = _of_study(study)
    rows = next((table.rows for table in study.tables if table.id == "cases"), [])
    tiles = _least_tiles(rows, own) if is_first else []
    large = "In large: the least that a case adds. In" if tiles else "In large and in"
    several = f"{large} the bill: {s.subject.tier}, one of {len(cases)} cases."
    told = found._replace(
        title=s.subject.name,
        lead=several if len(cases) > 1 else "",
        tiles=tiles,
        answer=found.answer if is_first else _targets(study),
        tables=[table for table in found.tables if table.id != "bill"],
        curve=curve_of(s),
        findings=[*remarks_of(s), basis_line(s.factors)],
        more=[table for table in found.more if table.id != "bill"],
    )
    return told if own else _without_carbon(told, carbon_lines(s))


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


def _without_carbon(told: Extras, carbon: Sequence[str]) -> Extras:
    return told._replace(
        answer=[line for line in told.answer if "kgCO2e" not in line],
        tables=list(map(_columns_without_carbon, told.tables)),
        findings=[line for line in told.findings if line not in carbon],
        more=list(map(_columns_without_carbon, told.more)),
    )


def _columns_without_carbon(table: Table) -> Table:
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
    x = _around(case)
    if x is None:
        return None
    s = case.scenario
    with np.errstate(all="ignore"):
        outcome = evaluate(replace(s, policy=replace(s.policy, cadence="interval", every=x)))
    lines = [PlotLine("goodput", _as_list(outcome.goodput, x), "share of time")]
    for q in pick("energy", "cost"):
        values = q.people(outcome.run.total(q.field))
        lines.append(PlotLine(q.added, _as_list(values, x), q.unit))
    return pictures.IntervalPicture(
        x.tolist(),
        [line for line in lines if set(line.values) != {None}],
        float(case.outcome.interval_s),
        {k: tidy(float(v)) for k, v in case.best.items()},
    )


def _around(case: Case) -> np.ndarray | None:
    """Intervals around the best ones and the one in use."""
    seen = [each for each in (*case.best.values(), float(case.outcome.interval_s)) if each > 0]
    known = [each for each in seen if np.isfinite(each)]
    longest = float(case.scenario.work_s)
    low, high = min(min(known) / AROUND, longest / 2), min(max(known) * AROUND, longest)
    return np.geomspace(low, high, POINTS) if 0 < low < high else None


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
    inputs = (
        *named("id"),
        Column("before", "before", of=lambda f: diff_views.factor_text(f.before, f)),
        Column("after", "after", of=lambda f: diff_views.factor_text(f.after, f)),
    )
    return [
        Table("totals", "Totals", tuple(shown[1:]), totals),
        Table("lines", "Line by line", tuple(shown[:-1]), lines),
        table_of("factors", "Factors that changed", inputs, difference.delta.factors),
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
