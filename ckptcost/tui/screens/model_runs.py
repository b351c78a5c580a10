"""Every tier of a desk at every number of saves that the scenario compares; which one is best, and
what it is held against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ckptcost.core.outcome import Outcome, evaluate
from ckptcost.core.quantities import BY_ID, Quantity
from ckptcost.errors import InputError
from ckptcost.jobs.compare import missing_keys
from ckptcost.jobs.model import Case, at_saves, case_of
from ckptcost.jobs.model import one_of as scenario_on
from ckptcost.layers import Layer
from ckptcost.present.amounts import duration, number
from ckptcost.report.rows import columns_of
from ckptcost.tui.desk import Desk
from ckptcost.tui.screens.tiers_view import OWN, never_ends


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

    def people(self, value: Any) -> Any:
        return value if self.id == "time" else self.q.people(value)

    def text(self, value: float | None) -> str:
        return duration(value) if self.id == "time" else number(value)

    def said(self, value: float | None) -> str:
        """With its unit, where there is an amount at all."""
        text = self.text(value)
        return (
            text if self.id == "time" or value is None or value != value else f"{text} {self.unit}"
        )


_OF_METRIC = {
    "kwh": "energy",
    "gpuh": "gpu_time_lost",
    "usd": "cost",
    "co2e": "emissions_location",
    "time": "gpu_time_lost",
}
METRICS = {name: Metric(name, BY_ID[quantity]) for name, quantity in _OF_METRIC.items()}


class TierRuns(NamedTuple):
    """One tier: the run at the cadence in force, what other numbers of saves would take, or why it
    has no figures."""

    key: str
    found: Case | None
    values: dict[str, float] = {}  # noqa: RUF012  a named tuple's default is never written to
    """columns of report.rows"""
    others: dict[float, float] = {}  # noqa: RUF012
    """what one save takes at the other numbers of saves that the scenario compares, in the quantity
    that is shown"""
    reason: str = ""

    @property
    def case(self) -> Case:
        if self.found is None:
            raise InputError(self.reason)
        return self.found

    def of(self, name: str) -> float:
        return self.values.get(name, float("nan"))


def metric_of(desk: Desk) -> Metric:
    return METRICS.get(desk.metric, METRICS["kwh"])


def values_of(outcome: Outcome) -> dict[str, float]:
    return {name: float(value) for name, value in columns_of(outcome).items()}


def one_of(metric: Metric, values: dict[str, float]) -> float:
    """What one save takes; as time, how long it stops training."""
    return values["stall_s"] if metric.id == "time" else values[f"save_{metric.q.column}"]


def total_of(run: TierRuns, metric: Metric) -> float:
    """What decides which tier is best: the whole run, failures included. Infinite where it never
    ends, NaN where it is not known."""
    if run.found is None:
        return float("nan")
    if never_ends(run.case.outcome):
        return float("inf")
    return run.of("wall_s" if metric.id == "time" else f"run_{metric.q.column}")


def runs_of(desk: Desk, layers: Sequence[Layer], tier: str, counts: Sequence[float]) -> TierRuns:
    """The scenario is resolved once for a tier: numbers of saves differ in nothing else. Three
    quarters of a keystroke's sums are this."""
    try:
        case = case_of(
            scenario_on(desk.catalog, layers, tier or None), ranges=False, intervals=False
        )
    except InputError as error:
        return TierRuns(tier or OWN, None, reason=str(error))
    metric = metric_of(desk)
    others = {
        count: _one_save(metric, evaluate(at_saves(case.scenario, count))) for count in counts[1:]
    }
    return TierRuns(tier or OWN, case, values_of(case.outcome), others)


@np.errstate(over="ignore")
def _one_save(metric: Metric, outcome: Outcome) -> float:
    """As `one_of`, without the other twenty columns: they are two fifths of what it takes to look
    at another number of saves."""
    return float(
        outcome.mean_stall_s
        if metric.id == "time"
        else metric.people(outcome.one_save.total(metric.q.field))
    )


def undecided_of(runs: Sequence[TierRuns], metric: Metric) -> tuple[str, ...]:
    """Inputs that decide which tier is best and are known for some of them only, so that none
    is."""
    ending = [run for run in runs if run.found is not None and not never_ends(run.case.outcome)]
    return missing_keys([run.case.outcome.run for run in ending], metric.q.field)


def best_of(able: Sequence[TierRuns], metric: Metric) -> TierRuns | None:
    """The tier whose run takes least; none where a line is known for some only."""
    known = [run for run in able if np.isfinite(total_of(run, metric))]
    if undecided_of(known, metric):
        return None
    return min(known, key=lambda run: total_of(run, metric)) if known else None


def base_of(desk: Desk, runs: Sequence[TierRuns]) -> TierRuns:
    """The user's baseline, with figures or without; where there is none, the first tier that has
    figures."""
    chosen = next((run for run in runs if run.key == desk.baseline), None)
    return chosen or next(run for run in runs if run.found is not None)


def lost_s(run: TierRuns) -> float:
    """Training time that one save takes: the stall, and what a drain slows down after it."""
    return float(run.case.outcome.one_save.total("gpu_s")) / float(run.case.scenario.cluster.gpus)


def unknown_of(run: TierRuns, metric: Metric) -> tuple[str, ...]:
    """Lines of the run's bill that are in no sum of the metric; none where the run never ends,
    which is an answer."""
    if run.found is None or never_ends(run.case.outcome):
        return ()
    return run.case.outcome.run.unknown(metric.q.field)
