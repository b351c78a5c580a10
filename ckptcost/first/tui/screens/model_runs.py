"""Every tier of a desk at the interval in force, as a row of the report's table of cases; which one
is best, and what it is held against. The screens of the model and of the tiers begin here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ckptcost.first.core.outcome import HOPELESS_GOODPUT, Outcome, evaluate, makes_headway
from ckptcost.first.core.quantities import BY_ID, Quantity
from ckptcost.first.errors import InputError
from ckptcost.first.jobs.compare import missing_keys
from ckptcost.first.jobs.model import Case, at_saves, case_of, one_of
from ckptcost.first.layers import Layer
from ckptcost.first.present.amounts import count, duration, number, share
from ckptcost.first.present.grid import Grid, Tone
from ckptcost.first.present.words import line_label
from ckptcost.first.report.rows import COLUMNS, CaseRow, case_row, unit_of
from ckptcost.first.report.study import Column, Table
from ckptcost.first.tui.desk import OWN, Desk
from ckptcost.first.tui.fields import TIER
from ckptcost.first.tui.study_grids import grid_of, with_columns


class Metric(NamedTuple):
    """One quantity of the table; time is that of the GPUs, in seconds."""

    id: str
    q: Quantity

    @property
    def unit(self) -> str:
        return "s" if self.id == "time" else self.q.unit

    @property
    def objective(self) -> str:
        """whose best interval goes with it"""
        return self.q.objective or "time"

    def column(self, of: str) -> str:
        """The column of a case: of one `save`, of all `saves`, of the `run`."""
        if self.id == "time":
            return "wall_s" if of == "run" else "stall_s"
        return f"{of}_{self.q.column}"

    def people(self, value: Any) -> Any:
        return value if self.id == "time" else self.q.people(value)

    def said(self, value: float) -> str:
        """With its unit."""
        return duration(value) if self.id == "time" else f"{number(value)} {self.unit}"


_OF_METRIC = {
    "kwh": "energy",
    "gpuh": "gpu_time_lost",
    "usd": "cost",
    "co2e": "emissions_location",
    "time": "gpu_time_lost",
}
METRICS = {name: Metric(name, BY_ID[quantity]) for name, quantity in _OF_METRIC.items()}
OF_OBJECTIVE = {METRICS[name].objective: METRICS[name] for name in ("kwh", "usd", "co2e", "time")}
CASES = Table("cases", "", tuple(Column(n, n, unit_of(n), m) for n, m in COLUMNS.items()), ())
"""the report's, before it has rows"""


class TierRuns(NamedTuple):
    """One tier: the run at the cadence in force, or why it has no figures."""

    key: str
    found: Case | None
    row: CaseRow
    """as the report's table of cases has it; `x100`: what 100 saves take"""
    reason: str = ""

    @property
    def case(self) -> Case:
        if self.found is None:
            raise InputError(self.reason)
        return self.found


def metric_of(desk: Desk) -> Metric:
    return METRICS.get(desk.metric, METRICS["kwh"])


def runs_of(
    desk: Desk, layers: Sequence[Layer], tier: str, counts: Sequence[float] = ()
) -> TierRuns:
    """The scenario is resolved once for a tier: numbers of saves differ in nothing else. Three
    quarters of a keystroke's sums are this."""
    key = tier or OWN
    try:
        case = case_of(one_of(desk.catalog, layers, tier or None), ranges=False, intervals=False)
    except InputError as error:
        return TierRuns(key, None, {"tier": key}, str(error))
    metric, row = metric_of(desk), case_row(case, key)
    for place, saves in enumerate(counts):
        one = evaluate(at_saves(case.scenario, saves)) if place else case.outcome
        with np.errstate(over="ignore"):
            amount = float(metric.people(one.one_save.total(metric.q.field))) * saves
        row[f"x{saves:g}"] = amount if math.isfinite(amount) else None
    return TierRuns(key, case, row | {"tier": key})


def never_ends(outcome: Outcome) -> bool:
    return not float(outcome.goodput) >= HOPELESS_GOODPUT


def no_headway(outcome: Outcome) -> str:
    """Why nothing is saved against a run, in words; empty where something may be."""
    if never_ends(outcome):
        return "the run never ends"
    if not makes_headway(outcome):
        return f"the run makes next to no headway (goodput {share(float(outcome.goodput))})"
    return ""


def undecided_of(runs: Sequence[TierRuns], metric: Metric) -> tuple[str, ...]:
    """Inputs that decide which tier is best and are known for some of them only, so that none
    is."""
    ending = [run for run in runs if run.found is not None and not never_ends(run.case.outcome)]
    return missing_keys([run.case.outcome.run for run in ending], metric.q.field)


def best_of(runs: Sequence[TierRuns], metric: Metric) -> TierRuns | None:
    """The tier whose whole run takes least, failures included; none where a line is known for some
    only."""
    column = metric.column("run")
    known = [run for run in runs if run.row.get(column) is not None]
    if undecided_of(known, metric):
        return None
    return min(known, key=lambda run: float(run.row[column]), default=None)


def base_of(desk: Desk, runs: Sequence[TierRuns]) -> TierRuns:
    """The user's baseline, with figures or without; where there is none, the first tier that has
    figures."""
    chosen = next((run for run in runs if run.key == desk.baseline), None)
    return chosen or next((run for run in runs if run.found is not None), runs[0])


def rank_tone(best: bool, base: bool) -> Tone:
    """Of a tier beside others."""
    return "best" if best else "base" if base else ""


def holds_for_all(desk: Desk, tiers: int) -> str:
    """Which changes of a tier's figures hold for every one of several."""
    paths = [path for path in desk.edits if path.startswith("tier.") and path != TIER]
    if not paths or tiers < 2:
        return ""
    return f"{', '.join(paths)}: what you wrote holds for every tier in the table"


def runs_grid(
    metric: Metric, runs: Sequence[TierRuns], looked: TierRuns, base: TierRuns, title: str
) -> Grid:
    """One save, so many of them without failures, and the whole run with failures."""
    amounts = _amount_labels(metric, looked.row)
    labels = {"tier": "tier"} | amounts
    labels |= {"goodput": "goodput", "stall_s": amounts.get("stall_s", "stall")}
    labels |= {"interval_s": "every", "rate_bytes_per_s": "rate"}
    more = [Column(each, "", metric.unit) for each in amounts if each[0] == "x"]
    best, cases = best_of(runs, metric), {run.key: run.found for run in runs}

    def tone(row: CaseRow) -> Tone:
        if (case := cases[row["tier"]]) is None:
            return "muted"
        if never_ends(case.outcome):
            return "bad"
        return rank_tone(best is not None and row["tier"] == best.key, row["tier"] == base.key)

    several = len(runs) > 1
    table = with_columns(CASES, labels, Column("tier", "tier"), *more)._replace(
        title=f"{title}; base {base.key}" if several else title,
        rows=[run.row for run in runs],
        note=note_of(metric, runs),
    )
    marked = looked.key if several else None
    return grid_of(table, [run.key for run in runs], tone, (metric.column("run"),), marked)


def _amount_labels(metric: Metric, row: CaseRow) -> dict[str, str]:
    """The columns of one save, of many without failures, and of the whole run."""
    save, run = metric.column("save"), metric.column("run")
    if metric.id == "time":
        return {save: "one stall", run: "whole run"}
    counts = sorted(float(name[1:]) for name in row if name[:1] == "x")
    many = {f"x{n:g}": f"x{count(n)}" for n in counts if n > 1}
    many = many or {metric.column("saves"): "all saves"}
    return {save: "one save", **many, run: "run adds"}


def note_of(metric: Metric, runs: Sequence[TierRuns]) -> str:
    """Which lines are in no sum, because nobody knows them, and what that makes of differences."""
    able = [run for run in runs if run.row.get(metric.column("run")) is not None]
    said: dict[str, list[str]] = {}
    for run in able:
        if lacking := run.case.outcome.run.unknown(metric.q.field):
            said.setdefault(", ".join(map(line_label, lacking)), []).append(run.key)
    parts = [
        lines if len(tiers) == len(able) else f"{lines} [{', '.join(tiers)}]"
        for lines, tiers in said.items()
    ]
    keys = undecided_of(able, metric)
    notes = [f"none is best: {' and '.join(keys)} is known for some of them only"] if keys else []
    notes += [f"left out because unknown: {' | '.join(parts)}"] if parts else []
    return "; ".join(notes)
