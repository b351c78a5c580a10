"""What the job's checkpoints cost, from one desk: every tier weighed, what to do and what it
brings, and the tier that is looked at billed.

`evaluate` is recomputed at every keystroke, so it asks for no ranges. `settled` is the rest, for
when nobody types.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ckptcost.first.core.regret import WITHIN
from ckptcost.first.errors import InputError
from ckptcost.first.jobs.compare import (
    RESULTS,
    Compared,
    ScenarioDifference,
    difference,
    drawn_together,
    missing_keys,
    variant_layers,
)
from ckptcost.first.jobs.model import (
    Answer,
    Case,
    case_of,
    comparison_of,
    one_of,
    what_is_missing,
    with_tier,
)
from ckptcost.first.jobs.model import model as model_job
from ckptcost.first.layers import Layer
from ckptcost.first.present.amounts import duration, number, share
from ckptcost.first.present.chart import Bars, hanging
from ckptcost.first.present.form import Field
from ckptcost.first.present.grid import Grid, Tone
from ckptcost.first.present.words import line_label
from ckptcost.first.report.study import Table
from ckptcost.first.scenario import Resolved
from ckptcost.first.tui.desk import OWN, Desk, scenario_of
from ckptcost.first.tui.fields import form as fields_of
from ckptcost.first.tui.screens.model_runs import (
    METRICS,
    Metric,
    TierRuns,
    base_of,
    holds_for_all,
    metric_of,
    never_ends,
    no_headway,
    runs_grid,
    runs_of,
    undecided_of,
)
from ckptcost.first.tui.study_grids import grid_of

if TYPE_CHECKING:
    from ckptcost.first.report.study import Study

Line = tuple[str, Tone]
_RESULT = {result.id: result for result in RESULTS}


class ModelView(NamedTuple):
    """What the screen shows while somebody types."""

    desk: Desk
    metric: Metric
    runs: tuple[TierRuns, ...]
    looked: TierRuns
    """the tier whose bill and inputs are shown"""
    base: TierRuns
    """the user's baseline, else the first tier: what runs now"""
    advice: ModelAdvice | None
    headline: Line
    """without its range"""
    beside: Line
    """the headline in the other quantities"""
    grid: Grid

    @property
    def resolved(self) -> Resolved:
        return self.looked.case.resolved


class ModelAdvice(NamedTuple):
    """What to do, and what that changes."""

    tier: str
    every_s: float
    """NaN where there is no best interval: then only the tier is advised"""
    variant: str
    """as `ckptcost compare --with` takes it; empty where nothing is to be changed"""
    pair: Compared
    """the run as it is and the run as advised"""

    def less(self, metric: Metric, drawn: bool = False) -> ScenarioDifference:
        """How much more the run as advised takes, as `ckptcost compare` tells it; with a range
        where it is drawn."""
        pair = self.pair
        if drawn:
            pair = pair._replace(together=drawn_together(pair.cases))
        return difference(pair, 1, _RESULT[metric.q.measure])


def evaluate(desk: Desk) -> ModelView:
    """Everything from the desk. Raises InputError where the scenario is wrong, or no tier has
    figures."""
    metric, layers, shown = metric_of(desk), scenario_of(desk).layers(), desk.tiers_shown()
    counts = comparison_of(layers)[1]
    runs = tuple(runs_of(desk, layers, tier, counts) for tier in shown)
    able = [run for run in runs if run.found is not None]
    if not able:
        raise InputError(runs[0].reason)
    looked = next((run for run in able if run.key == (desk.chosen or shown[0] or OWN)), able[0])
    base = base_of(desk, runs)
    undecided = undecided_of(able, metric)
    advice = None if undecided else advice_of(desk, layers, able, base, metric)
    what = "time: one stall" if metric.id == "time" else f"{metric.unit}: one save, many"
    return ModelView(
        desk,
        metric,
        runs,
        looked,
        base,
        advice,
        headline_of(metric, looked, advice, base, undecided),
        beside_of(advice, metric),
        runs_grid(metric, runs, looked, base, f"{what}, a run with failures"),
    )


def form(view: ModelView, everything: bool = False) -> tuple[Field, ...]:
    """The fields of the tier that is looked at."""
    return fields_of(view.desk, view.resolved, view.looked.case.outcome, everything)


# what to do, and what it brings


def advice_of(
    desk: Desk, layers: Sequence[Layer], able: Sequence[TierRuns], base: TierRuns, metric: Metric
) -> ModelAdvice | None:
    """Of all tiers, each at its own best interval, the one whose run takes least; none where that
    is not known. It is held against the base at the interval in force."""
    if base.found is None:
        return None
    found = [_at_its_best(desk, layers, run, base, metric) for run in able]
    totals = [_whole(case, metric) for _, case, _ in found]
    known = [(total, at) for at, total in enumerate(totals) if math.isfinite(total)]
    if not known or missing_keys([found[at][1].outcome.run for _, at in known], metric.q.field):
        return None
    run, case, variant = found[min(known)[1]]
    every_s = float(case.outcome.interval_s) if "policy.optimal" in variant else math.nan
    pair = Compared(("now", "then"), (base.case, case), (base.case.outcome, case.outcome))
    return ModelAdvice(run.key, every_s, variant, pair)


def _at_its_best(
    desk: Desk, layers: Sequence[Layer], run: TierRuns, base: TierRuns, metric: Metric
) -> tuple[TierRuns, Case, str]:
    """A tier at its best interval; at the one in force where none can be found."""
    tier = [f"tier.id={run.key}"] if run is not base and run.key != OWN else []
    variant = ", ".join([*tier, f"policy.optimal={metric.objective}"])
    # the scenario on the base, as --tier says it
    on_base = with_tier(layers, None if base.key == OWN else base.key, None, None)
    try:
        resolved = one_of(desk.catalog, variant_layers(on_base, variant))
        return run, case_of(resolved, ranges=False, intervals=False), variant
    except InputError:
        return run, run.case, ", ".join(tier)


def _whole(case: Case, metric: Metric) -> float:
    if never_ends(case.outcome):
        return math.inf
    if metric.id == "time":
        return float(case.outcome.wall_s)
    return float(metric.people(float(case.outcome.run.total(metric.q.field))))


def headline_of(
    metric: Metric,
    looked: TierRuns,
    advice: ModelAdvice | None,
    base: TierRuns,
    undecided: tuple[str, ...] = (),
    drawn: bool = False,
) -> Line:
    """What to do and what it brings, in one sentence; `drawn`: with its range."""
    if undecided:
        keys = " and ".join(undecided)
        told = f"{keys} is known for some of them only."
        return f"No tier is called best for {metric.objective}: {told}", "warn"
    if base.found is None:
        return f"{base.key}, which others are held against, has no figures: {base.reason}", "warn"
    if advice is not None:
        return _advice_line(advice, base, counted_in(metric), drawn)
    if never_ends(looked.case.outcome):
        return f"No run ends on {looked.key}: too much is lost between two saves.", "bad"
    return f"{what_is_missing(looked.case.resolved, metric.objective)}.", "warn"


def _advice_line(advice: ModelAdvice, base: TierRuns, counted: Metric, drawn: bool) -> Line:
    """To do it, or to leave the run as it is."""
    outcome, act = base.case.outcome, _advice_text(advice)
    every = duration(float(outcome.interval_s))
    now = "now" if advice.tier == base.key else f"now on {base.key}"
    now += "" if math.isnan(advice.every_s) else f", every {every}"
    if why := no_headway(advice.pair.cases[1].outcome):
        return f"Hopeless: {act[0].lower()}{act[1:]}, which is best here, and {why}.", "bad"
    if why := no_headway(outcome):
        return f"{act}. As it is {now}, {why}.", "best"
    change = advice.less(counted, drawn)
    if math.isnan(change.value):
        lines = ", ".join(map(line_label, change.lacking))
        why = f"{lines} is known for one of the two only" if lines else "it differs in method"
        return f"{act}. How much that changes is not known: {why}.", "warn"
    if not change.relative < -WITHIN:
        within = f"within {share(WITHIN)} of the least {counted.unit}"
        return f"Leave it as it is, every {every} on {base.key}: {within}.", "good"
    low, high = float(counted.people(-change.high)), float(counted.people(-change.low))
    text = f"{act}: {counted.said(float(counted.people(-change.value)))} less than {now}"
    if low < 0 < high:
        # it may as well cost more: no advice to be shown as one that is sure
        return f"{text}; p5-p95 from {number(-low)} {counted.unit} more to {number(high)} less.", ""
    span = f"; p5-p95 {number(low)}-{number(high)} {counted.unit}" if low < high else ""
    return f"{text}{span}.", "best"


def _advice_text(advice: ModelAdvice) -> str:
    """What to do."""
    if not math.isnan(advice.every_s):
        return f"Save every {duration(advice.every_s)} on {advice.tier}"
    return f"Take {advice.tier}" if advice.variant else f"Stay on {advice.tier}"


def beside_of(advice: ModelAdvice | None, of: Metric) -> Line:
    """What else the advice changes, in the other quantities."""
    if advice is None or no_headway(advice.pair.cases[0].outcome):
        return "", ""
    told = []
    for metric in (METRICS[each] for each in ("usd", "gpuh", "kwh") if each != counted_in(of).id):
        change = float(metric.people(advice.less(metric).value))
        if math.isfinite(change):
            told.append(f"{metric.said(abs(change))} {'less' if change <= 0 else 'more'}")
    now, then = (share(float(each.outcome.goodput)) for each in advice.pair.cases)
    return f"Also {', '.join(told)}; goodput {then}, now {now}", ""


def counted_in(metric: Metric) -> Metric:
    """What a difference is told in: of wall times the command line prints none, of the GPU-hours
    that they are it does."""
    return METRICS["gpuh"] if metric.id == "time" else metric


# what follows once nobody types


class Settled(NamedTuple):
    """What takes longer than a keystroke may: the report of the tier that is looked at."""

    headline: Line
    """with its range"""
    subject: str
    """the job in one line"""
    bill: Grid
    course: Bars
    notes: tuple[Line, ...]


def settled(view: ModelView) -> Settled:
    """For when nobody types: ranges, and what `ckptcost model` says of the tier."""
    from ckptcost.first.report.studies.model import study_of
    from ckptcost.first.report.studies.model_words import basis_line

    found = study_of(Answer((case_of(view.resolved),)), view.desk.catalog)
    table = next(table for table in found.tables if table.id == "bill")
    headline = view.headline
    if view.advice is not None:
        headline = headline_of(view.metric, view.looked, view.advice, view.base, drawn=True)
    notes: list[Line] = [(f"{run.key}: {run.reason}", "bad") for run in view.runs if run.reason]
    notes += [(text, "warn") for text in (holds_for_all(view.desk, len(view.runs)),) if text]
    notes += [(message, "warn") for _, message in found.warnings]
    notes += [(text, "") for text in (*found.remarks, basis_line(found.factors))]
    bill = grid_of(table, tone=lambda row: "base" if row["id"] == "total" else "")
    return Settled(headline, found.about[0], bill, course_of(table, view.metric), tuple(notes))


def course_of(bill: Table, metric: Metric) -> Bars:
    """What is added to a run, one line of its bill after the other."""
    counted = counted_in(metric)
    column, title = counted.q.measure, f"Where the {counted.unit} of the run go"
    *lines, total = bill.rows
    if total[column] is None:
        return Bars(title=title, empty=f"the {counted.unit} of the run are not known")
    steps = [(line["line"], line[column], counted.said(line[column])) for line in lines]
    rows = hanging((label, each, f"+{text}", "warn") for label, each, text in steps if each)
    whole = hanging([("added in the run", total[column], counted.said(total[column]), "")])
    return Bars([*rows, *whole], (), title, "useful training is not in it")


# what is handed on


def asked(view: ModelView) -> tuple[list[str], str | None]:
    """The tiers, that which is looked at first, because the first one is billed; and the one that
    is advised, so that the report tells what is avoidable with it."""
    named = [run.key for run in view.runs if run.found is not None and run.key != OWN]
    compares = comparison_of(scenario_of(view.desk).layers())[0]
    ordered = sorted(named, key=lambda key: key != view.looked.key)
    as_it_is = ordered == list(dict.fromkeys(compares)) or (not compares and not view.desk.tiers)
    advised = view.advice.tier if view.advice is not None else ""
    against = advised if advised in named and advised != ordered[0] else None
    return [] if as_it_is else ordered, against


def flags(view: ModelView) -> list[str]:
    """The same as flags."""
    tiers, against = asked(view)
    words = [word for key in tiers for word in ("--tier", key)]
    return words if against is None else [*words, "--against", against]


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
    from ckptcost.first.report.studies.model import study_of

    tiers, against = asked(view)
    layers = scenario_of(view.desk).layers()
    return study_of(model_job(view.desk.catalog, layers, tiers, (), against), view.desk.catalog)
