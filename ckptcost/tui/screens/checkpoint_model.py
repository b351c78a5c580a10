"""One recorded checkpoint beside what the desk's scenario says of it, on the chosen tier; and its
bill under that scenario."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from math import isnan, nan
from typing import NamedTuple

from ckptcost.core.domain import Scenario
from ckptcost.errors import CkptcostError
from ckptcost.jobs.gap import FORCED, Held, gap
from ckptcost.jobs.measured import Measured
from ckptcost.layers import layers_for
from ckptcost.present.amounts import number, quantity
from ckptcost.present.grid import Grid, Head
from ckptcost.present.words import line_label
from ckptcost.report.studies import gap as gap_study
from ckptcost.report.studies.measured_parts import some
from ckptcost.report.study import Table
from ckptcost.tui.desk import Desk
from ckptcost.tui.screens.against import settings_of
from ckptcost.tui.screens.recorded_run import RecordedRun
from ckptcost.tui.study_grids import grid_of


class Modelled(NamedTuple):
    """What the desk's scenario says of the same save."""

    lines: Grid
    usd: float = nan
    kgco2e: float = nan
    energy_j: float = nan
    """at the facility: what the CO2e is reckoned from"""
    pue: float = nan
    covers: str = ""
    """what cost and CO2e are of, in a word or two"""
    lines_told: Sequence[str] = ()
    """the same, line by line"""
    prices: str = ""
    """the prices and factors that were used"""
    findings: Sequence[str] = ()
    cautions: Sequence[str] = ()
    """what to know before believing it"""
    problem: str = ""
    """why there is none"""
    scenario: Sequence[str] = ()
    """as words of a command line"""


def modelled(m: Measured, place: int, desk: Desk) -> Modelled:
    """This one alone against the scenario; `ckptcost compare run:RUN SCENARIO` says the same of the
    mean of all."""
    try:
        base, settings = settings_of(desk)
        layers = layers_for(desk.catalog, base, None, list(settings))
        answer = gap(
            desk.catalog,
            m._replace(
                windows=m.windows[place : place + 1], contents=m.contents[place : place + 1]
            ),
            layers,
        )
    except (CkptcostError, OSError) as error:
        heads = (
            Head("label", "line", left=True),
            Head("measured", "measured"),
            Head("modelled", "modelled"),
        )
        return Modelled(
            Grid(
                heads,
                title="Measured beside modelled",
                empty=f"Nothing to hold it against: {error}",
            ),
            problem=str(error),
        )
    study = gap_study.study_of(answer)
    tables = {table.id: table for table in study.tables}
    held = answer.saves or answer.loads
    assert held is not None
    tier = str(answer.resolved.words.get("tier.id", ""))
    note = f"{desk.title}{f' on {tier}' if tier else ''}, at the facility"
    bill = held.measured_bill
    usd, kg, energy_j = (
        float(bill.total(each)) for each in ("cost_usd", "location_kgco2e", "energy_j")
    )
    unpriced = [line_label(line.id) for line in bill.lines if isnan(float(line.cost_usd))]
    cautions = (
        [f"No cost: that of {some(unpriced)} is not known."] if isnan(usd) and unpriced else []
    )
    told = [line.id for line in bill.lines if float(line.energy_j) > 0]
    return Modelled(
        _lines(tables["lines"])._replace(title="Measured beside modelled", note=note),
        usd,
        kg,
        energy_j,
        float(answer.scenario.site.pue),
        _covers(held, told),
        [line_label(line) for line in told],
        _prices(desk, answer.scenario),
        study.findings,
        [*cautions, *(text for _, text in study.warnings)],
        scenario=[base, *(word for each in settings for word in ("--set", each))],
    )


def compared_by(run: RecordedRun, beside: Modelled) -> str:
    """The command that prints prices and the modelled side, which takes the first host of several;
    empty where it would be of another, or there is no model."""
    if beside.problem or run.host != run.hosts[0]:
        return ""
    return shlex.join(["ckptcost", "compare", f"{FORCED}{run.source.word}", *beside.scenario])


def _covers(held: Held, told: Sequence[str]) -> str:
    """Short, for below a number."""
    if held.of == "load":
        return "load"
    stall = "stall" if {"gpu_wait", "host_wait"} & set(told) else ""
    return " + ".join(part for part in (stall, "drain" if "slowdown" in told else "") if part)


def _lines(table: Table) -> Grid:
    """What is not held against each other stands back."""
    grid = grid_of(table, [str(row["quantity"]) for row in table.rows])
    ranks = {"label": 0, "measured": 0, "modelled": 0, "difference": 1, "ratio": 2}
    heads = tuple(
        head._replace(
            rank=ranks.get(head.id, 3), label="line" if head.id == "label" else head.label
        )
        for head in grid.heads
    )
    rows = [
        row._replace(tone="muted" if raw["why"] else "")
        for row, raw in zip(grid.rows, table.rows, strict=True)
    ]
    return grid._replace(heads=heads, rows=rows)


def _prices(desk: Desk, s: Scenario) -> str:
    return (
        f"Prices of {desk.title}: {quantity(float(s.cluster.usd_per_gpu_s), 'usd_per_gpu_s')},"
        f" {quantity(float(s.site.usd_per_j), 'usd_per_j')},"
        f" {quantity(float(s.site.kgco2e_per_j), 'kgco2e_per_j')}, PUE {number(float(s.site.pue))}."
    )
