"""The model's answer in words: what to do and what it brings, and what to beware of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ckptcost.core.outcome import Outcome
from ckptcost.core.regret import WITHIN
from ckptcost.core.size import full_bytes
from ckptcost.errors import InputError
from ckptcost.jobs.compare import (
    RESULTS,
    Compared,
    Difference,
    difference,
    drawn_together,
    missing_keys,
    variant_layers,
)
from ckptcost.jobs.model import Case, case_of, unknown_inputs, with_tier
from ckptcost.jobs.model import one_of as scenario_on
from ckptcost.layers import Layer
from ckptcost.present.amounts import count, duration, number, share, size
from ckptcost.present.grid import Tone
from ckptcost.present.words import caution_text, line_label, unknown_text
from ckptcost.scenario import Resolved
from ckptcost.tui.desk import Desk
from ckptcost.tui.fields import TIER
from ckptcost.tui.screens.model_runs import METRICS, Metric, TierRuns
from ckptcost.tui.screens.tiers_view import OWN, never_ends, no_headway

Lines = tuple[tuple[str, Tone], ...]


def subject_of(resolved: Resolved) -> str:
    """What is saved, by whom and where, as the head of `ckptcost model` says it."""
    s, names = resolved.scenario, resolved.names
    gpus = f"{count(float(s.cluster.gpus))} x {names.get('accelerator', 'GPU')}"
    size_, work = size(float(full_bytes(s.checkpoint))), duration(float(s.work_s))
    every = (
        f", one save in {count(float(s.policy.second_every))} also to {names['second_tier']}"
        if s.second_tier is not None
        else ""
    )
    where = names.get("grid", names["site"])
    return (
        f"{size_} a save, {gpus}, {work} of training, {s.policy.mode}{every}, PUE"
        f" {number(float(s.site.pue))}, {where}"
    )


class Advice(NamedTuple):
    """What to do, and what that changes."""

    tier: str
    every_s: float
    """NaN where there is no best interval: then only the tier is advised"""
    variant: str
    """as `ckptcost compare --with` takes it; empty where nothing is to be changed"""
    now: TierRuns
    pair: Compared
    """the run as it is and the run as advised"""
    metric: Metric

    def less(self, metric: Metric, drawn: bool = False) -> Difference:
        """How much more the run as advised takes, as `ckptcost compare` tells it; with a range
        where it is drawn."""
        pair = self.pair
        if drawn:
            pair = pair._replace(together=drawn_together(pair.cases))
        return difference(pair, 1, _RESULT[metric.q.measure])


_RESULT = {result.id: result for result in RESULTS}


def advice_of(
    desk: Desk, layers: Sequence[Layer], able: Sequence[TierRuns], base: TierRuns, metric: Metric
) -> Advice | None:
    """Of all tiers, each at its own best interval, the one whose run takes least; none where that
    is not known. `now` is the base at the interval in force."""
    if base.found is None:
        return None
    found = [_at_its_best(desk, layers, run, base, metric) for run in able]
    totals = [_whole(case.outcome, metric) for _, case, _ in found]
    known = [(total, at) for at, total in enumerate(totals) if math.isfinite(total)]
    if not known or missing_keys([found[at][1].outcome.run for _, at in known], metric.q.field):
        return None
    run, case, variant = found[min(known)[1]]
    now = base.case
    every_s = float(case.outcome.interval_s) if "policy.optimal" in variant else math.nan
    pair = Compared(("now", "then"), (now, case), (now.outcome, case.outcome))
    return Advice(run.key, every_s, variant, base, pair, metric)


def _at_its_best(
    desk: Desk, layers: Sequence[Layer], run: TierRuns, base: TierRuns, metric: Metric
) -> tuple[TierRuns, Case, str]:
    """A tier at its best interval; at the one in force where none can be found."""
    tier = [f"tier.id={run.key}"] if run is not base and run.key != OWN else []
    variant = ", ".join([*tier, f"policy.optimal={metric.objective}"])
    try:
        resolved = scenario_on(
            desk.catalog, variant_layers(desk.catalog, _on(desk, layers, base), variant)
        )
        return run, case_of(resolved, ranges=False, intervals=False), variant
    except InputError:
        return run, run.case, ", ".join(tier)


def _on(desk: Desk, layers: Sequence[Layer], base: TierRuns) -> Sequence[Layer]:
    """The scenario on the base, as --tier says it."""
    return with_tier(desk.catalog, layers, None if base.key == OWN else base.key, None, None)


def _whole(outcome: Outcome, metric: Metric) -> float:
    if never_ends(outcome):
        return math.inf
    if metric.id == "time":
        return float(outcome.wall_s)
    return float(metric.people(float(outcome.run.total(metric.q.field))))


def headline_of(
    metric: Metric,
    looked: TierRuns,
    advice: Advice | None,
    base: TierRuns,
    undecided: tuple[str, ...] = (),
    drawn: bool = False,
) -> tuple[str, Tone]:
    """What to do and what it brings, in one sentence; `drawn`: with its range."""
    if undecided:
        return (
            f"No tier is called best for {metric.objective}: {' and '.join(undecided)} is known"
            " for some of them only.",
            "warn",
        )
    if base.found is None:
        return f"{base.key}, which others are held against, has no figures: {base.reason}", "warn"
    if advice is None and never_ends(looked.case.outcome):
        return f"No run ends on {looked.key}: too much is lost between two saves.", "bad"
    if advice is None:
        lacking = unknown_inputs(looked.case.scenario, metric.objective)
        named = ", ".join(lacking[:2]) or "what the notes name"
        more = f" and {count(len(lacking) - 2)} more" if len(lacking) > 2 else ""
        return f"The {metric.unit} of a run are not known for lack of {named}{more}.", "warn"
    act = f"Save every {duration(advice.every_s)} on {advice.tier}"
    if math.isnan(advice.every_s):
        act = f"Take {advice.tier}" if advice.variant else f"Stay on {advice.tier}"
    outcome, counted = base.case.outcome, _counted(metric)
    now = f"now on {base.key}" if advice.tier != base.key else "now"
    if not math.isnan(advice.every_s):
        now += f", every {duration(float(outcome.interval_s))}"
    if why := no_headway(advice.pair.cases[1].outcome):
        return f"Hopeless: {act[0].lower()}{act[1:]}, which is best here, and {why}.", "bad"
    if why := no_headway(outcome):
        return f"{act}. As it is {now}, {why}.", "best"
    change = advice.less(counted, drawn)
    if math.isnan(change.value):
        return f"{act}. How much that changes is not known: {_untold(change)}.", "warn"
    if not change.relative < -WITHIN:
        return (
            f"Leave it as it is, every {duration(float(outcome.interval_s))} on {base.key}: within"
            f" {share(WITHIN)} of the least {counted.unit}.",
            "good",
        )
    low, high = (float(counted.people(-end)) for end in (change.high, change.low))
    text = f"{act}: {counted.said(float(counted.people(-change.value)))} less than {now}"
    if low < 0 < high:
        # it may as well cost more: no advice to be shown as one that is sure
        return f"{text}; p5-p95 from {number(-low)} {counted.unit} more to {number(high)} less.", ""
    if low < high:
        text += f"; p5-p95 {number(low)}-{number(high)} {counted.unit}"
    return f"{text}.", "best"


def beside_of(advice: Advice | None) -> tuple[str, Tone]:
    """What else the advice changes, in the other quantities."""
    if advice is None or no_headway(advice.now.case.outcome):
        return "", ""
    shown = _counted(advice.metric).id
    told = []
    for metric in (METRICS[each] for each in ("usd", "gpuh", "kwh") if each != shown):
        change = float(metric.people(advice.less(metric).value))
        if math.isfinite(change):
            told.append(f"{metric.said(abs(change))} {'less' if change <= 0 else 'more'}")
    goodput = [share(float(each.outcome.goodput)) for each in advice.pair.cases]
    return f"Also {', '.join(told)}; goodput {goodput[1]}, now {goodput[0]}", ""


def _counted(metric: Metric) -> Metric:
    """What a difference is told in: of wall times the command line prints none, of the GPU-hours
    that they are it does."""
    return METRICS["gpuh"] if metric.id == "time" else metric


def _untold(change: Difference) -> str:
    lines = ", ".join(line_label(line) for line in change.lacking)
    return f"{lines} is known for one of the two only" if lines else "it differs in method"


def cautions_of(desk: Desk, runs: Sequence[TierRuns], looked: TierRuns, note: str) -> Lines:
    """What to beware of on the tier that is looked at, what is not known or in no sum, and which
    tiers have no figures."""
    lines: list[tuple[str, Tone]] = [
        (f"{run.key}: {run.reason}", "bad") for run in runs if run.reason
    ]
    lines += [(note, "")] * bool(note)
    everywhere = [path for path in desk.edits if path.startswith("tier.") and path != TIER]
    if everywhere and len(runs) > 1:
        lines.append(
            (f"{', '.join(everywhere)}: what you wrote holds for every tier in the table.", "warn")
        )
    lines += [(caution_text(caution), "warn") for caution in looked.case.cautions]
    return (
        *lines,
        *((unknown_text(path, why), "muted") for path, why in looked.case.resolved.unknown.items()),
    )
