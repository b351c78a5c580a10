"""What a page shows besides statements: the answer's sentences, the tables that carry it, and
pictures of what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ckptcost.core.draws import LEAST
from ckptcost.core.lines import tier_and_kind
from ckptcost.core.outcome import evaluate
from ckptcost.core.quantities import pick
from ckptcost.present.amounts import quantity
from ckptcost.present.words import gate_text
from ckptcost.report import brief, diff_views
from ckptcost.report.canonical import tidy
from ckptcost.report.check import case_from
from ckptcost.report.difference import Difference, FactorChange, FactorValue
from ckptcost.report.html import pictures
from ckptcost.report.html.markup import ranged
from ckptcost.report.html.page import Extras
from ckptcost.report.html.pictures_of_time import Band, Power
from ckptcost.report.html.sections import Tile
from ckptcost.report.html.svg import Line
from ckptcost.report.parts import Quantity, Unit
from ckptcost.report.statement import Statement
from ckptcost.report.studies.model_words import basis_line, carbon_lines, remarks_of
from ckptcost.report.study import Column, Study, Table
from ckptcost.report.study_views import SIMULATED

POINTS = 120
AROUND = 12.0
"""how many times below and above the best intervals the curve reaches"""
NO_BILL = "An answer in words and tables; it holds no bill of its own."
FLEET_TILES = (
    ("kwh", "Energy"),
    ("gpu_hours", "GPU time lost"),
    ("usd", "Cost"),
    ("kgco2e", "Emissions, location-based"),
    ("goodput", "Goodput"),
    ("checkpoints", "Checkpoints"),
    ("failures", "Failures"),
)
FLEET_STEPS: tuple[tuple[str, str, Unit], ...] = (
    ("kwh", "Energy", "kWh"),
    ("gpu_hours", "GPU time lost", "GPU-h"),
    ("usd", "Cost", "USD"),
    ("kgco2e", "Emissions", "kgCO2e"),
)
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
    return _of_study(study, statements)


def _of_model(study: Study, s: Statement) -> Extras:
    """Of a model: how the result hangs on the interval, and the tiers beside each other. The
    statement may be of another case than the first, or under factors of the time; then the first
    one's sentences hold no more, nor the factor's own sentence on carbon."""
    own = s.series is None and not s.contracts
    cases = study.question["cases"]
    first = s.id.partition("#")[2] == cases[0]
    untrue = [] if own else carbon_lines(s)
    several = f"In large and in the bill: {s.subject.tier}, one of {len(cases)} cases."
    tables, more = _carrying(study, {"bill"})
    return Extras(
        title=s.subject.name,
        lead=several if len(cases) > 1 else "",
        answer=[*(study.findings[: brief.SENTENCES] if first and own else ()), *_targets(study)],
        tables=tables,
        curve=curve_of(s),
        care=study.warnings,
        findings=[*(line for line in remarks_of(s) if line not in untrue), basis_line(s.factors)],
        more=more,
    )


def _targets(study: Study) -> list[str]:
    return [gate_text(verdict) for verdict in study.gates]


def _carrying(
    study: Study, hidden: frozenset[str] | set[str] = frozenset()
) -> tuple[list[Table], list[Table]]:
    """The tables that carry the answer, as a terminal has them first, and the others."""
    shown = {t.id: t for t in study.tables if t.shown and t.rows and t.id not in hidden}
    first = brief.CARRYING.get(study.kind, list(shown)[: brief.TABLES])
    carrying = [shown.pop(name) for name in first if name in shown]
    return carrying, list(shown.values())


def curve_of(statement: Statement) -> pictures.Curve | None:
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
    lines = [Line("goodput", _listed(outcome.goodput, x), "share of time")]
    for q in pick("energy", "cost"):
        values = q.people(outcome.run.total(q.field))
        lines.append(Line(q.added, _listed(values, x), q.unit))
    return pictures.Curve(
        x.tolist(),
        [line for line in lines if any(v is not None for v in line.values)],
        now_s,
        {k: tidy(float(v)) for k, v in case.best.items()},
    )


def _listed(values: object, x: np.ndarray) -> list[float | None]:
    return [tidy(float(each)) for each in np.broadcast_to(np.asarray(values, dtype=float), x.shape)]


def _of_study(study: Study, statements: Sequence[Statement]) -> Extras:
    """Of what was simulated, compared or measured: its sentences, its tables, and its power over
    time."""
    is_fleet = study.kind == "fleet"
    is_whole = is_fleet or not statements
    known = {table.id: table for table in study.tables}
    tables, more = _carrying(study)
    if study.difference is not None:
        tables, more = _changes(known["changes"], study.difference), []
    jobs = f"{len(statements)} jobs; the bill of each is in the statements of this document."
    told = [*study.about, jobs if is_fleet and statements else "" if statements else NO_BILL]
    found = Extras(
        title=study.title,
        lead=" ".join(filter(None, told)) if is_whole or len(statements) > 1 else "",
        is_whole=is_whole,
        banner=SIMULATED if is_whole and study.simulated else "",
        answer=[*study.findings[: brief.SENTENCES], *_targets(study)],
        tiles=_tiles(known["groups"]) if is_fleet else (),
        tables=tables,
        falls=_falls(known["lines"]) if is_fleet else (),
        power=power_of(known["power"], known.get("windows")) if "power" in known else None,
        care=study.warnings,
        findings=[*study.findings[brief.SENTENCES :], *study.remarks],
        more=more,
    )
    if study.kind == "comparison" and any(s.series or s.contracts for s in statements):
        # under factors of the time the study's own figures of carbon hold no more
        return Extras(title=study.title, care=study.warnings)
    return found


def _tiles(groups: Table) -> list[Tile]:
    """Of a fleet: what all its jobs together come to."""
    whole = groups.rows[-1] if groups.rows else {}
    units = {column.id: column.unit for column in groups.columns}
    return [
        _tile(label, whole[name], units[name], str(whole.get(f"lacks_{name}") or ""))
        for name, label in FLEET_TILES
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
    for name, label, unit in FLEET_STEPS:
        steps = [pictures.Step(str(row["line"]), row.get(name), _cause(row)) for row in parts]
        if any(step.value for step in steps):
            low, high = total.get(f"{name}_low"), total.get(f"{name}_high")
            q = Quantity(value=total.get(name), unit=unit, low=low, high=high)
            found.append(pictures.Fall(unit, steps, q.value, low, high, label, ranged(q)))
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
        {"id": f.id, "before": _value_text(f.before, f), "after": _value_text(f.after, f)}
        for f in difference.delta.factors
    ]
    inputs = tuple(Column(name, name) for name in ("id", "before", "after"))
    return [
        Table("totals", "Totals", tuple(shown[1:]), totals),
        Table("lines", "Line by line", tuple(shown[:-1]), lines),
        Table("factors", "Factors that changed", inputs, factors),
    ]


def _value_text(value: FactorValue | None, of: FactorChange) -> str:
    if value is None:
        return "none"
    return value.text or ("unlimited" if value.value is None else quantity(value.value, of.unit))


def power_of(power: Table, windows: Table | None) -> Power:
    """Watts over time, with the checkpoints as bands."""
    # a document of an older version has no ranges
    lines = [
        Line(
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
        Band(str(row["window"]), row["begin"], row["returned"], row["durable"])
        for row in (windows.rows if windows is not None else ())
        if row.get("begin") is not None
    ]
    return Power([row["at"] for row in power.rows], lines, bands=bands, note=power.note)
