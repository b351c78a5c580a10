"""What a page shows besides the statement: the interval curve and tiers of a model, the tables and
the power of other answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ckptcost.core.draws import LEAST
from ckptcost.core.outcome import evaluate
from ckptcost.core.quantities import pick
from ckptcost.present.amounts import count
from ckptcost.present.words import gate_text
from ckptcost.report import brief, sci
from ckptcost.report.canonical import tidy
from ckptcost.report.check import case_from
from ckptcost.report.html.extras import (
    Band,
    Curve,
    Extras,
    Line,
    Power,
    Sci,
    Steps,
    TextTable,
    Tile,
)
from ckptcost.report.statement import Statement
from ckptcost.report.studies.model_words import (
    allocated_lines,
    basis_line,
    carbon_lines,
    interval_lines,
)
from ckptcost.report.study import Study, Table, shown_cells
from ckptcost.report.study_views import SIMULATED

POINTS = 120
AROUND = 12.0
"""how many times below and above the best intervals the curve reaches"""
MOST_TABLES, MOST_ROWS = 12, 60
FLEET_TILES = (
    ("kwh", "Energy"),
    ("gpu_hours", "GPU time lost"),
    ("usd", "Cost"),
    ("kgco2e", "Emissions, location-based"),
    ("goodput", "Goodput"),
    ("checkpoints", "Checkpoints"),
    ("failures", "Failures"),
)
FLEET_STEPS = (
    ("kwh", "Energy", "kWh"),
    ("gpu_hours", "GPU time lost", "GPU-h"),
    ("usd", "Cost", "USD"),
    ("kgco2e", "Emissions", "kgCO2e"),
)
_WATTS = (("gpus", "GPUs"), ("hosts", "CPU and memory"), ("node", "node"))


def extras_of(study: Study, statements: Sequence[Statement]) -> Extras:
    """What there is to draw, by what the answer is of."""
    if study.kind == "model":
        return _of_model(study, statements[0])
    if study.kind != "statements":
        return of_study(study, statements)
    if len(statements) == 1:
        return Extras(sci=sci_of(statements[0]))
    return Extras(each={s.subject.run_id: Extras(sci=sci_of(s)) for s in statements})


def _of_model(study: Study, statement: Statement) -> Extras:
    """Of a model: how the result hangs on the interval, and the tiers beside each other. The
    statement may be of another case than the first, or under factors of the time."""
    own = statement.series is None and not statement.contracts
    first = statement.id.partition("#")[2] == study.question["cases"][0]
    known = {table.id: table for table in study.tables}
    # under factors by the hour, or contracts, the factor's own sentence on carbon holds no more
    carbon = carbon_lines(statement) if own else []
    tiers = _told(known["one_save"])
    if tiers.header[-1] == "claimed":
        tiers = tiers._replace(
            header=tiers.header[:-1],
            rows=[row[:-1] for row in tiers.rows],
            claimed=[row[-1] for row in tiers.rows],
        )
    return Extras(
        title=statement.subject.name,
        answer=study.findings[: brief.SENTENCES] if first and own else (),
        findings=[
            *interval_lines(statement),
            *carbon,
            *allocated_lines(statement),
            basis_line(statement.factors),
        ],
        curve=curve_of(statement),
        tiers=tiers,
        tables=[_told(known[name]) for name in ("all_saves", "whole_run")],
        sci=sci_of(statement),
    )


def curve_of(statement: Statement) -> Curve | None:
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
    return Curve(
        x.tolist(),
        [line for line in lines if any(v is not None for v in line.values)],
        now_s,
        {k: tidy(float(v)) for k, v in case.best.items()},
    )


def _listed(values: object, x: np.ndarray) -> list[float | None]:
    return [tidy(float(each)) for each in np.broadcast_to(np.asarray(values, dtype=float), x.shape)]


def of_study(study: Study, statements: Sequence[Statement]) -> Extras:
    """Of what was simulated, compared or measured: its sentences, its tables, and its power over
    time."""
    shown = [table for table in study.tables if table.shown and table.rows][:MOST_TABLES]
    known = {table.id: table for table in study.tables}
    power = power_of(known["power"], known.get("windows")) if "power" in known else None
    tables = [_told(table) for table in shown]
    if not statements or study.kind == "fleet":
        care = (
            [TextTable("Take care", ["code", "what"], [list(each) for each in study.warnings], 2)]
            if study.warnings
            else []
        )
        met = (
            [TextTable("Targets", ["target"], [[gate_text(each)] for each in study.gates])]
            if study.gates
            else []
        )
        answer, said = study.findings[: brief.SENTENCES], study.findings[brief.SENTENCES :]
        lead = (
            f"{count(float(len(statements)))} jobs; the bill of each is in the statements of this"
            " document."
            if statements
            else ""
        )
        banner = SIMULATED if study.simulated else ""
        return Extras(
            study.title,
            " ".join([*study.about, lead]).strip(),
            banner,
            answer,
            tiles=_tiles(known),
            steps=_steps(known),
            findings=said,
            power=power,
            tables=[*tables, *met, *care],
        )
    if len(statements) == 1:
        return Extras(
            title=study.title,
            answer=study.findings[: brief.SENTENCES],
            findings=study.findings[brief.SENTENCES :],
            power=power,
            tables=tables,
            sci=sci_of(statements[0]),
        )
    each = {s.subject.run_id: Extras(sci=sci_of(s)) for s in statements}
    return Extras(
        title=study.title,
        answer=study.findings[: brief.SENTENCES],
        findings=study.findings[brief.SENTENCES :],
        power=power,
        tables=tables,
        each=each,
    )


def _tiles(known: Mapping[str, Table]) -> list[Tile]:
    """Of a fleet: what all its jobs together come to."""
    whole = known["groups"].rows[-1] if "groups" in known and known["groups"].rows else {}
    units = {column.id: column.unit for column in known["groups"].columns} if whole else {}
    tiles = []
    for name, label in FLEET_TILES:
        value = whole.get(name)
        if value is None:
            continue
        lacks = str(whole.get(f"lacks_{name}") or "")
        note = f"at least; not in it in full: {lacks}" if lacks else ""
        unit = units[name]
        if unit == "share":
            value, unit = 100.0 * value, "%"
        tiles.append(Tile(label, value, "" if unit == "count" else unit, note))
    return tiles


def _steps(known: Mapping[str, Table]) -> list[Steps]:
    """Of a fleet: the lines of its bill."""
    rows = known["lines"].rows if "lines" in known else []
    found = []
    for name, label, unit in FLEET_STEPS:
        parts = [(str(row["line"]), row.get(name)) for row in rows[:-1] if row.get(name) != 0]
        if any(value for _, value in parts):
            found.append(Steps(label, unit, parts, rows[-1].get(name)))
    return found


def _told(table: Table) -> TextTable:
    header, rows, left = shown_cells(table)
    note = table.note
    if len(rows) > MOST_ROWS:
        note = f"{note} {len(rows) - MOST_ROWS} more rows are in the other formats.".strip()
    return TextTable(table.title, header, rows[:MOST_ROWS], left, note)


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


def sci_of(statement: Statement) -> list[Sci]:
    return [Sci(*each) for each in sci.rows(statement)]
