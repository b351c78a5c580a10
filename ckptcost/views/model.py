"""What the job's checkpoints cost, from one desk: every tier weighed, the best one named, and the
tier that is looked at billed.

Everything here is recomputed at every keystroke, so nothing is asked for that is not shown: no
ranges but those of one bill, and one best interval. `remarks` is the rest, for when nobody types.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ckptcost.errors import InputError
from ckptcost.jobs.model import Answer, case_of, compared, spread_of
from ckptcost.jobs.model import model as model_job
from ckptcost.present.chart import Bars, Stat
from ckptcost.present.form import Field
from ckptcost.present.grid import Grid, Tone
from ckptcost.scenario import Resolved
from ckptcost.views.desk import Desk
from ckptcost.views.fields import form as fields_of
from ckptcost.views.model_runs import (
    Metric,
    TierRuns,
    against_of,
    base_of,
    best_every_s,
    best_of,
    metric_of,
    runs_of,
    undecided_of,
)
from ckptcost.views.model_tables import bill_grid, tiers_grid
from ckptcost.views.model_words import Lines, cautions_of, headline_of, stats_of, subject_of
from ckptcost.views.tiers import OWN, never_ends, scenario_of
from ckptcost.views.waterfall import course_of, one_save_bars

if TYPE_CHECKING:
    from ckptcost.report.study import Study


class ModelView(NamedTuple):
    """All that the screen shows."""

    desk: Desk
    metric: Metric
    runs: tuple[TierRuns, ...]
    looked: TierRuns
    """the tier whose bill and inputs are shown"""
    best: TierRuns | None
    against: TierRuns | None
    """the tier that the best one is held against: the base, or the next best where the base is
    best"""
    base: TierRuns
    """the user's baseline, else the first tier"""
    subject: str
    """the job in one line"""
    stats: tuple[Stat, ...]
    headline: tuple[str, Tone]
    grid: Grid
    one_save: Bars
    bill: Grid
    course: Bars
    cautions: Lines

    @property
    def resolved(self) -> Resolved:
        return self.looked.case.resolved


def evaluate(desk: Desk) -> ModelView:
    """Everything from the desk. Raises InputError where the scenario is wrong, or no tier has
    figures."""
    metric, layers, shown = metric_of(desk), scenario_of(desk).layers(), desk.tiers_shown()
    counts = compared(layers)[1]
    runs = tuple(runs_of(desk, layers, tier, counts) for tier in shown)
    able = [run for run in runs if run.found is not None]
    if not able:
        raise InputError(runs[0].reason)
    looked = next((run for run in able if run.key == (desk.chosen or shown[0] or OWN)), able[0])
    best = best_of(able, metric)
    base = base_of(desk, runs)
    against = against_of(able, best, base, metric)
    undecided = undecided_of(able, metric)
    table = tiers_grid(metric, runs, looked, best, base, counts)
    spread = spread_of(looked.case.resolved, looked.case.outcome)
    return ModelView(
        desk,
        metric,
        runs,
        looked,
        best,
        against,
        base,
        subject=subject_of(looked.case.resolved),
        stats=stats_of(metric, best, base, against, undecided),
        headline=headline_of(desk, metric, looked, best, base, against, undecided),
        grid=table,
        one_save=one_save_bars(metric, runs, best),
        bill=bill_grid(metric, looked, spread),
        course=course_of(metric, looked.case),
        cautions=cautions_of(desk, runs, looked, table.note),
    )


def form(view: ModelView, everything: bool = False) -> tuple[Field, ...]:
    """The fields of the tier that is looked at."""
    return fields_of(view.desk, view.resolved, view.looked.case.outcome, everything)


def remarks(view: ModelView) -> Lines:
    """For when nobody types: the sentences below `ckptcost model`'s bill, of the tier that is
    looked at."""
    from ckptcost.report.studies.model import study_of
    from ckptcost.report.studies.model_words import basis_line

    found = study_of(Answer((case_of(view.resolved),)), view.desk.catalog)
    return tuple((line, "") for line in [*found.remarks, basis_line(found.factors)])


def flags(view: ModelView) -> list[str]:
    """--tier and --against: the tier that is looked at first, because the first one is billed."""
    named = [run.key for run in view.runs if run.found is not None and run.key != OWN]
    asked = compared(scenario_of(view.desk).layers())[0]
    ordered = [
        *(key for key in named if key == view.looked.key),
        *(key for key in named if key != view.looked.key),
    ]
    as_it_is = ordered == list(dict.fromkeys(asked)) or (not asked and not view.desk.tiers)
    words = [] if as_it_is else [word for key in ordered for word in ("--tier", key)]
    if view.looked in (pair := _pair(view)):
        words += ["--against", next(run.key for run in pair if run is not view.looked)]
    return words


def _pair(view: ModelView) -> tuple[TierRuns, ...]:
    """The two tiers whose difference is shown, as far as a command can name them; else none."""
    if view.best is None or view.against is None or OWN in (view.best.key, view.against.key):
        return ()
    return (
        ()
        if view.against.found is None or never_ends(view.against.case.outcome)
        else (view.against, view.best)
    )


def command(view: ModelView) -> str:
    """What prints the same figures. `model` bills one tier and holds it against one other, so where
    the screen tells of others, theirs are further commands: the difference of two that are not
    looked at, and the best interval of the best.
    """
    desk, pair = scenario_of(view.desk), _pair(view)
    lines = [desk.command("model", *flags(view), "--full")]
    if pair and view.looked not in pair:
        lines.append(
            desk.command("model", "--tier", pair[0].key, "--against", pair[1].key, "--full")
        )
    if (
        view.best is not None
        and view.best is not view.looked
        and math.isfinite(best_every_s(view.best, view.metric))
    ):
        lines.append(
            desk.command("optimize", "--tier", view.best.key, "--objective", view.metric.objective)
        )
    return "; ".join(lines)


def report(view: ModelView) -> Study:
    """What is written to a file: the report that the command line would write."""
    from ckptcost.report.studies.model import study_of

    words = flags(view)
    tiers = [words[at + 1] for at, word in enumerate(words) if word == "--tier"]
    against = words[words.index("--against") + 1] if "--against" in words else None
    layers = scenario_of(view.desk).layers()
    return study_of(model_job(view.desk.catalog, layers, tiers, (), against), view.desk.catalog)


def on_metric(desk: Desk, metric: str) -> Desk:
    return replace(desk, metric=metric)
