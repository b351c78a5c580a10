"""Where one save's cost goes, by tier; and where a run's goes, step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ckptcost.core.bill import Bill, Line
from ckptcost.core.units import to_hours
from ckptcost.jobs.model import Case
from ckptcost.present.amounts import duration, number
from ckptcost.present.chart import Bar, Bars, Part
from ckptcost.present.words import line_label
from ckptcost.tui.screens.model_runs import Metric, TierRuns, lost_s, one_of
from ckptcost.tui.screens.tiers_view import never_ends


def amount_of(metric: Metric, case: Case, line: Line) -> float:
    """A line in the metric's unit; as time it is what all GPUs together lose."""
    value = float(getattr(line, metric.q.field))
    return (
        value / float(case.scenario.cluster.gpus)
        if metric.id == "time"
        else float(metric.people(value))
    )


def _known(metric: Metric, case: Case, bill: Bill) -> list[tuple[str, float]]:
    """Marginal lines that are known and not zero."""
    found = [(line.id, amount_of(metric, case, line)) for line in bill.of()]
    return [(name, value) for name, value in found if math.isfinite(value) and value > 0]


def one_save_bars(metric: Metric, runs: Sequence[TierRuns], best: TierRuns | None) -> Bars:
    """One save on each tier as shares of its total: tiers differ a thousandfold, what a save is
    made of does not."""
    able = [run for run in runs if run.found is not None]
    totals = {
        run.key: lost_s(run) if metric.id == "time" else one_of(metric, run.values) for run in able
    }
    parts = {
        run.key: (
            _known(metric, run.case, run.case.outcome.one_save) if _told(totals[run.key]) else []
        )
        for run in able
    }
    names = tuple(dict.fromkeys(name for each in parts.values() for name, _ in each))
    rows = []
    for run in able:
        values, total = dict(parts[run.key]), totals[run.key]
        at, pieces = 0.0, []
        for name in names:  # every name in every bar, so that a fill means the same in all of them
            width = values.get(name, 0.0) / total if values else 0.0
            pieces.append(Part(line_label(name), at, at + width))
            at += width
        rows.append(
            Bar(run.key, pieces, f"of {metric.said(total)}", run.key, "best" if run is best else "")
        )
    what = {"time": "training time", "gpuh": "GPU-h lost"}.get(metric.id, metric.unit)
    return Bars(
        rows,
        tuple(line_label(name) for name in names),
        f"Shares of what one save takes in {what}: each bar is the whole",
        empty="no tier has figures",
    )


def _told(total: float) -> bool:
    return math.isfinite(total) and total > 0


def course_of(metric: Metric, case: Case) -> Bars:
    """What is added to a run, one cause after the other; time begins with the useful part."""
    if never_ends(case.outcome):
        return Bars(
            title="Where a run goes", empty="the run never ends: too much is lost between two saves"
        )
    title = f"Where a run on {case.resolved.words.get('tier.id', 'this tier')} goes"
    if not math.isfinite(float(case.outcome.run.total(metric.q.field))):
        return Bars(title=title, empty=f"the {metric.unit} of the run are not known")
    steps = [
        (line_label(name).removeprefix("work "), value)
        for name, value in _known(metric, case, case.outcome.run)
    ]
    timed = metric.q.field == "gpu_s"
    useful = float(case.scenario.work_s) * (
        1.0 if metric.id == "time" else float(metric.people(float(case.scenario.cluster.gpus)))
    )
    at, rows = 0.0, []
    if timed:
        rows.append(
            Bar("useful training", (Part("useful", 0.0, useful, "good"),), metric.said(useful))
        )
        at = useful
    for label, value in steps:
        rows.append(Bar(label, (Part(label, at, at + value, "warn"),), f"+{metric.said(value)}"))
        at += value
    total = "useful and lost" if timed else "added in the run"
    rows.append(Bar(total, (Part(total, 0.0, at),), metric.said(at), tone=""))
    note = f"useful training, {duration(float(case.scenario.work_s))}, is not in it"
    if timed:
        lost_h = to_hours(float(case.outcome.run.total("gpu_s")))
        note = f"lost in the run: {number(lost_h)} GPU-h; the rest is useful training"
    return Bars(rows, (), title, note, empty="nothing is added to it")
