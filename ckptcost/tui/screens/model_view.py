"""What the job's checkpoints cost, from one desk: every tier weighed, the best one named, and the
tier that is looked at billed.

`evaluate` is recomputed at every keystroke, so it asks for no ranges. `settled` is the rest, for
when nobody types.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ckptcost.errors import InputError
from ckptcost.jobs.model import Answer, case_of, compared, one_of
from ckptcost.jobs.model import model as model_job
from ckptcost.present.chart import Bars
from ckptcost.present.form import Field
from ckptcost.present.grid import Grid, Tone
from ckptcost.scenario import Resolved
from ckptcost.tui.desk import Desk
from ckptcost.tui.fields import form as fields_of
from ckptcost.tui.screens.model_runs import (
    Metric,
    TierRuns,
    base_of,
    best_of,
    metric_of,
    runs_of,
    undecided_of,
)
from ckptcost.tui.screens.model_tables import tiers_grid
from ckptcost.tui.screens.model_words import (
    Advice,
    Lines,
    advice_of,
    beside_of,
    cautions_of,
    headline_of,
    subject_of,
)
from ckptcost.tui.screens.tiers_view import OWN, scenario_of
from ckptcost.tui.screens.waterfall import course_of, one_save_bars

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
    base: TierRuns
    """the user's baseline, else the first tier: what runs now"""
    advice: Advice | None
    subject: str
    """the job in one line"""
    headline: tuple[str, Tone]
    """without its range"""
    beside: tuple[str, Tone]
    """the headline in the other quantities"""
    grid: Grid
    one_save: Bars
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
    undecided = undecided_of(able, metric)
    advice = None if undecided else advice_of(desk, layers, able, base, metric)
    table = tiers_grid(metric, runs, looked, best, base, counts)
    return ModelView(
        desk,
        metric,
        runs,
        looked,
        best,
        base,
        advice,
        subject=subject_of(looked.case.resolved),
        headline=headline_of(metric, looked, advice, base, undecided),
        beside=beside_of(advice),
        grid=table,
        one_save=one_save_bars(metric, runs, best),
        course=course_of(metric, looked.case),
        cautions=cautions_of(desk, runs, looked, table.note),
    )


def form(view: ModelView, everything: bool = False) -> tuple[Field, ...]:
    """The fields of the tier that is looked at."""
    return fields_of(view.desk, view.resolved, view.looked.case.outcome, everything)


class Settled(NamedTuple):
    """What takes longer than a keystroke may."""

    headline: tuple[str, Tone]
    """with its range"""
    bill: Grid
    """the report's own"""
    remarks: Lines
    """the sentences below the bill"""


def settled(view: ModelView) -> Settled:
    """For when nobody types: ranges, and what `ckptcost model` says of the tier that is looked
    at."""
    from ckptcost.report.studies.model import study_of
    from ckptcost.report.studies.model_words import basis_line
    from ckptcost.tui.study_grids import grid_of

    found = study_of(Answer((case_of(view.resolved),)), view.desk.catalog)
    bill = next(grid_of(table) for table in found.tables if table.id == "bill")
    *lines, total = bill.rows
    headline = view.headline
    if view.advice is not None:
        headline = headline_of(view.metric, view.looked, view.advice, view.base, drawn=True)
    return Settled(
        headline,
        bill._replace(rows=[*lines, total._replace(tone="base")]),
        tuple((line, "") for line in [*found.remarks, basis_line(found.factors)]),
    )


def flags(view: ModelView) -> list[str]:
    """--tier: the tier that is looked at first, because the first one is billed. --against: the
    tier that is advised, so that the report tells what is avoidable with it."""
    named = [run.key for run in view.runs if run.found is not None and run.key != OWN]
    asked = compared(scenario_of(view.desk).layers())[0]
    ordered = [
        *(key for key in named if key == view.looked.key),
        *(key for key in named if key != view.looked.key),
    ]
    as_it_is = ordered == list(dict.fromkeys(asked)) or (not asked and not view.desk.tiers)
    words = [] if as_it_is else [word for key in ordered for word in ("--tier", key)]
    if view.advice is not None and view.advice.tier in named and view.advice.tier != ordered[0]:
        words += ["--against", view.advice.tier]
    return words


def command(view: ModelView) -> str:
    """What prints the same figures: the bill and the tiers, and the run as advised beside the one
    that is."""
    desk = scenario_of(view.desk)
    lines = [desk.command("model", *flags(view), "--full")]
    if view.advice is not None and view.advice.variant:
        base = view.base.key
        own = str(one_of(desk.catalog, desk.layers()).words.get("tier.id", OWN))
        named = [] if base in (OWN, own) else ["--tier", base]
        lines.append(desk.command("compare", *named, "--with", view.advice.variant, "--full"))
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
