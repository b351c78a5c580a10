"""Each job of a fleet as a statement: what its nodes measured and what follows from it, line by
line and day by day, for every export."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.domain import Scenario
from ckptcost.first.core.hourly import edges_of
from ckptcost.first.core.lines import KINDS
from ckptcost.first.core.quantities import FIELDS, IN_DOCUMENTS
from ckptcost.first.core.quantities import Quantity as Counted
from ckptcost.first.core.units import DAY_S, HOUR_S, KWH_J, to_kwh
from ckptcost.first.fleet.bill_tables import NO_SITE
from ckptcost.first.fleet.cell_lines import cell_lines_of
from ckptcost.first.fleet.figures import Fleet, GroupFigures
from ckptcost.first.fleet.grouping import Groups, RunCells, flags, groups_of
from ckptcost.first.fleet.lines import (
    ESTIMATED,
    LINES,
    NEEDED,
    NOTHING,
    FleetAmount,
    FleetLine,
    lines_of,
    scenario_of,
)
from ckptcost.first.fleet.runs_seen import RunSeen
from ckptcost.first.present.amounts import count
from ckptcost.first.present.words import line_label
from ckptcost.first.report.build import METHOD_VERSION
from ckptcost.first.report.canonical import tidy
from ckptcost.first.report.factors import factor_of
from ckptcost.first.report.parts import (
    Component,
    Excluded,
    Factor,
    FunctionalUnit,
    RunTotals,
    Warned,
)
from ckptcost.first.report.rows_of_time import SPREAD, PlacedAmounts, RowFactors, series_of
from ckptcost.first.report.statement import Boundary, Measurement, Statement, Subject, instant
from ckptcost.first.report.statements.bill import BilledAmount, BilledLine, bill_part, count_part
from ckptcost.first.report.statements.closed_form import place_of, plain_id
from ckptcost.first.report.statements.measured import assumed_factors, choices_of_place, rests_on

if TYPE_CHECKING:
    from pandas import DataFrame

    from ckptcost.first.fleet.part import StorePart
    from ckptcost.first.scenario import Resolved

SAID: Final = ("team", "organisation", "tier", "cluster", "framework")
"""labels that a statement has a place for; others are tags"""


def statements_of(
    part: StorePart, fleet: Fleet, resolved: Resolved | None, priced: bool, catalog: Catalog
) -> list[Statement]:
    """By job; one of which no instant is known has none."""
    s = scenario_of(resolved, priced)
    cells = fleet.cells
    by_day = _by_job_and_day(part, cells, fleet, s)
    runs: dict[str, list[RunSeen]] = {}
    for run in fleet.runs:
        runs.setdefault(run.job, []).append(run)
    place = _Place(resolved, s, _factors(resolved, priced, catalog))
    labels = dict(zip(cells.job, cells.labels, strict=True))
    return [
        _statement(
            group,
            runs[group.name],
            by_day.get(group.name, []),
            labels[group.name],
            part.heads[part.heads["job"].astype("str") == group.name],
            place,
        )
        for group in fleet.jobs
        if group.name in runs
    ]


class _Place(NamedTuple):
    """Where the machines stand, and what they pay."""

    resolved: Resolved | None
    scenario: Scenario | None
    factors: list[Factor]

    @property
    def words(self) -> Mapping[str, Any]:
        return self.resolved.words if self.resolved else {}


def _factors(resolved: Resolved | None, priced: bool, catalog: Catalog) -> list[Factor]:
    prices = ("cluster.gpu_price", "cluster.gpu_embodied") if priced else ()
    return [
        Factor.model_validate(factor_of(each, catalog))
        for each in (resolved.inputs if resolved else ())
        if each.path.startswith("site.") or each.path in prices
    ]


class _Day:
    """A job's lines on one day, and how many saves were completed."""

    def __init__(self, day: str, lines: Sequence[FleetLine], saves: float) -> None:
        self.begin_s = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
        self.lines, self.saves = {line.id: line for line in lines}, saves


def _by_job_and_day(
    part: StorePart, cells: RunCells, fleet: Fleet, s: Scenario | None
) -> dict[str, list[_Day]]:
    """The same sums as the groups', cut once more."""
    jobs, days = groups_of(cells, "job"), groups_of(cells, "day")
    places, of_cells = np.unique(
        jobs.of_cells * max(len(days.names), 1) + days.of_cells, return_inverse=True
    )
    pairs = Groups(tuple(str(each) for each in places), of_cells.astype(np.int64))
    lines = lines_of(
        cell_lines_of(part, cells, fleet.lacking, fleet.runs, s), pairs.of_cells, len(places)
    )
    done = ~(flags(part.windows, "load") | flags(part.windows, "failed"))
    saves = np.bincount(pairs.of_cells[cells.of_windows][done], minlength=len(places))
    found: dict[str, list[_Day]] = {}
    for place, mine, many in zip(places.tolist(), lines, saves.tolist(), strict=True):
        job, day = divmod(place, len(days.names))
        found.setdefault(jobs.names[job], []).append(_Day(days.names[day], mine, float(many)))
    return found


def _statement(
    group: GroupFigures,
    runs: Sequence[RunSeen],
    days: Sequence[_Day],
    labels: Mapping[str, str],
    heads: DataFrame,
    place: _Place,
) -> Statement:
    """`heads`: the job's."""
    begin_s = round(min(run.began_ns for run in runs) / 1e9, 3)
    end_s = round(max(run.ended_ns for run in runs) / 1e9, 3)
    bill = _bill(group, place)
    components = [Component.model_validate(each) for each in bill["components"]]
    simulated = bool(heads["simulated"].all())
    return Statement(
        id=f"urn:ckptcost:fleet:{plain_id(group.name)}",
        kind="mixed",
        how=f"recordings of {count(float(group.nodes))} nodes, merged"
        + (", simulated or made up" if simulated else ""),
        simulated=simulated,
        method_version=METHOD_VERSION,
        period_start=instant(begin_s),
        period_end=instant(end_s),
        length_s=end_s - begin_s,
        subject=_subject(group.name, runs, labels, place),
        boundary=_boundary(components, place.scenario),
        totals=RunTotals.model_validate(
            bill["totals"] | {"checkpoints": count_part(float(group.checkpoints), "measured")}
        ),
        allocated=None,
        components=components,
        functional_units=[FunctionalUnit(name="checkpoint", count=float(group.checkpoints))],
        series=_series(group, days, place.scenario, begin_s, end_s),
        factors=place.factors,
        rests=bill["rests"],
        choices=choices_of_place(place.words),
        assumptions=assumed_factors(place.factors),
        measurements=_measurements(heads),
        uncertainty="bounds of the meters, added up; of what is estimated 95 %",
        warnings=_warnings(group, place.resolved),
    )


def _bill(group: GroupFigures, place: _Place) -> dict[str, Any]:
    s, totals = place.scenario, group.totals
    there = {line.id: line for line in group.lines}
    estimated = any(line.estimated for line in group.lines)
    return bill_part(
        [_line(there.get(name, _none(name))) for name in LINES],
        lambda _, q: _billed_amount(q, getattr(totals, q.field), estimated, totals.lacks[q.field]),
        rests_on(place.factors),
        "bounds",
        math.nan if s is None else float(s.cluster.usd_per_gpu_s) * HOUR_S,
    )


def _subject(
    job: str, runs: Sequence[RunSeen], labels: Mapping[str, str], place: _Place
) -> Subject:
    gpus = [run.gpus for run in runs if not math.isnan(run.gpus)]
    names = place.resolved.names if place.resolved else {"site": None}
    said: dict[str, Any] = {name: text for name, text in labels.items() if name in SAID}
    return Subject(
        run_id=plain_id(f"fleet-{job}"),
        name=f"job {job}",
        accelerator_count=max(gpus, default=None),
        nodes=float(max(run.nodes for run in runs)),
        tags={name: text for name, text in labels.items() if name not in said},
        **said,
        **place_of(
            place.words.get("site.id"),
            place.words.get("site.grid"),
            names["site"],
            names.get("grid"),
        ),
    )


def _none(name: str) -> FleetLine:
    """A line of which there was nothing is zero, so that a week with a failure and one without have
    the same lines."""
    none: dict[Any, FleetAmount] = dict.fromkeys(FIELDS, NOTHING)
    return FleetLine(name, name in ESTIMATED, dict.fromkeys(FIELDS, (0.0, 0.0)), **none)


def _line(line: FleetLine) -> BilledLine:
    amounts = {}
    for q in IN_DOCUMENTS:
        some, of = line.known[q.field]
        lacks = (
            [f"{count(of - some)} of {count(of)} windows of nodes, or runs"]
            if 0 < some < of
            else []
        )
        amounts[q.id] = _billed_amount(q, getattr(line, q.field), line.estimated, lacks)
    return BilledLine(
        line.id,
        KINDS[line.id].boundary or "drive",
        amounts,
        "modelled" if line.estimated else "measured",
        "measured",
        line.id in NEEDED,
    )


def _billed_amount(
    q: Counted, amount: FleetAmount, estimated: bool, lacks: Sequence[str]
) -> BilledAmount:
    value, low, high = (q.people(end) for end in amount)
    return BilledAmount(value, low, high, lacks, q.metered and not estimated)


def _series(
    group: GroupFigures, days: Sequence[_Day], s: Scenario | None, begin_s: float, end_s: float
) -> Any:
    """Each line in the days in which it was; of a day everything lies evenly."""
    edges = edges_of(begin_s, end_s, DAY_S)
    inside = [
        (day, since, until)
        for day in days
        if (since := max(day.begin_s, begin_s)) < (until := min(day.begin_s + DAY_S, end_s))
    ]
    placed = [each for line in group.lines if (each := _placed(line.id, inside)) is not None]
    if not placed:
        return None
    saves = np.zeros(len(edges) - 1)
    for day in days:
        at = int(np.searchsorted(edges, day.begin_s + 1.0, side="right")) - 1
        saves[min(max(at, 0), len(saves) - 1)] += day.saves
    grids: tuple[Any, ...] = () if s is None else (s.site.kgco2e_per_j, s.site.market_kgco2e_per_j)
    per_kwh = [tidy(float(each) * KWH_J) for each in grids] or [None, None]
    factors = RowFactors(*(None if each is None else np.full(len(saves), each) for each in per_kwh))
    return series_of(placed, edges, DAY_S, factors, saves)


def _placed(line: str, inside: Sequence[tuple[_Day, float, float]]) -> PlacedAmounts | None:
    """None where nothing is known of it but zeros."""
    mine = [(day.lines[line], (since, until)) for day, since, until in inside if line in day.lines]
    known = {}
    for q in SPREAD:
        values = np.array([q.people(getattr(each, q.field).value) for each, _ in mine])
        lacking = np.isnan(values)
        known[q.id] = (values if lacking.all() else np.where(lacking, 0.0, values)).tolist()
    if not any(value and value == value for values in known.values() for value in values):
        return None
    return PlacedAmounts(line, [span for _, span in mine], known)


def _boundary(components: Sequence[Component], s: Scenario | None) -> Boundary:
    return Boundary(
        included=[each.label for each in components if each.energy.value is not None],
        excluded=[
            *(
                Excluded(component=each.label, reason="not metered")
                for each in components
                if each.energy.value is None
            ),
            Excluded(
                component="useful training",
                reason="the statement holds what checkpoints and failures add",
            ),
            Excluded(
                component="keeping the bytes, network to storage, requests",
                reason="recordings of nodes do not tell",
            ),
        ],
        pue=None if s is None else float(s.site.pue),
        pue_included_in_energy=s is not None,
        counterfactual="the same work with no checkpoints and no failures",
        embodied_included=False,
        inventory_treatment="memo_item",
    )


def _measurements(heads: Any) -> list[Measurement]:
    """All nodes' meters together."""
    covered = float(heads["covered_s"].sum())
    spans = float(((heads["until_ns"] - heads["began_ns"]) / 1e9).sum())
    hosts = int(heads["host"].nunique())
    found = []
    for name, column in (("gpus", "gpu_total_j"), ("hosts", "host_total_j")):
        joules = float(heads[column].sum(min_count=1))
        found.append(
            Measurement(
                id=name,
                instrument=f"meters of {count(float(hosts))} nodes",
                scope=name,
                boundary="node",
                basis="measured",
                tick_s=None,
                coverage=tidy(min(covered / spans, 1.0)) if spans > 0 else None,
                energy_kwh=tidy(to_kwh(joules)),
            )
        )
    return found


def _warnings(group: GroupFigures, resolved: Resolved | None) -> list[Warned]:
    found = []
    if resolved is None:
        found.append(
            Warned(
                code="NO_SITE",
                message=NO_SITE,
            )
        )
    if lacks := group.totals.lacks["energy_j"]:
        found.append(
            Warned(
                code="UNKNOWN",
                message=(
                    "Energy not known, or not of all:"
                    f" {', '.join(line_label(name) for name in lacks)}."
                ),
            )
        )
    return found
