"""The model's answer in words: four tiles, one sentence, and what to beware of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ckptcost.core.size import full_bytes
from ckptcost.jobs.model import unknown_inputs
from ckptcost.present.amounts import DASH, NEVER, count, duration, number, share, size
from ckptcost.present.chart import Stat
from ckptcost.present.grid import Tone
from ckptcost.present.words import caution_text, unknown_text
from ckptcost.scenario import Resolved
from ckptcost.views.desk import Desk
from ckptcost.views.fields import TIER
from ckptcost.views.model_runs import (
    METRICS,
    Metric,
    TierRuns,
    best_every_s,
    comparable,
    less,
    total_of,
)
from ckptcost.views.tiers import never_ends, no_headway
from ckptcost.views.tiers_table import short

Lines = tuple[tuple[str, Tone], ...]
TILE = 16
"""letters; four tiles stand side by side at 120 columns"""


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


def stats_of(
    metric: Metric,
    best: TierRuns | None,
    base: TierRuns,
    against: TierRuns | None,
    undecided: tuple[str, ...] = (),
) -> tuple[Stat, ...]:
    """The answer in four tiles, each at most 16 letters wide so that four stand side by side."""
    if undecided:
        return (Stat("best tier", DASH, f"needs {' and '.join(undecided)} of all", "warn"),)
    if best is None:
        return (Stat("best tier", DASH, "no tier has a sum to compare", "warn"),)
    every_s, now_s = best_every_s(best, metric), float(best.case.outcome.interval_s)
    value = f"every {duration(every_s)}" if np.isfinite(every_s) else _every(every_s)
    every = Stat(f"best for {metric.objective}", value, f"now {_every(now_s)}")
    counted = _counted(metric)
    others = [METRICS[each] for each in ("usd", "gpuh", "kwh") if each != counted.id][:2]
    first = Stat(
        "best tier", short(best.key, TILE), f"{metric.said(total_of(best, metric))} a run", "best"
    )
    if against is None:
        costs = [each.said(total_of(best, each)) for each in others]
        more = Stat("a run costs", costs[0], costs[1])
        return (
            first._replace(label="tier"),
            more,
            Stat("goodput", share(best.of("goodput")), "useful time"),
            every,
        )
    saves = base is not best
    amounts = [_change(each, best, against, saves) for each in (counted, *others)]
    second = Stat("saves a run", amounts[0], short(f"vs {against.key}", TILE), "good")
    if not saves:
        second = Stat("the next costs", amounts[0], short(f"on {against.key}", TILE))
    return (first, second, Stat("and", amounts[1], amounts[2]), every)


def _counted(metric: Metric) -> Metric:
    """What a difference is told in: of wall times the command line prints none, of the GPU-hours
    that they are it does."""
    return METRICS["gpuh"] if metric.id == "time" else metric


def _change(metric: Metric, best: TierRuns, other: TierRuns, saves: bool) -> str:
    """What the best tier saves, or what the other one costs more; where a quantity goes the other
    way, that is said."""
    saved = less(best, other, metric)
    if other.found is not None and no_headway(other.case.outcome):
        return DASH
    if not np.isfinite(saved) or not comparable(best, other, metric):
        return DASH
    text = metric.said(abs(saved))
    if saves:
        return text if saved >= 0 else f"{text} more"
    return f"{text} {'more' if saved >= 0 else 'less'}"


def _every(interval_s: float) -> str:
    return NEVER if interval_s == float("inf") else duration(interval_s)


def headline_of(
    desk: Desk,
    metric: Metric,
    looked: TierRuns,
    best: TierRuns | None,
    base: TierRuns,
    against: TierRuns | None,
    undecided: tuple[str, ...] = (),
) -> tuple[str, Tone]:
    """Which tier, what it saves, and how often to save: one sentence."""
    if undecided:
        keys = " and ".join(undecided)
        return (
            (
                f"No tier is called best for {metric.objective}: {keys} is known for some of them"
                " only."
            ),
            "warn",
        )
    if best is None and never_ends(looked.case.outcome):
        return f"No run ends on {looked.key}: too much is lost between two saves.", "bad"
    if best is None:
        lacking = (
            ", ".join(unknown_inputs(looked.case.scenario, metric.objective)) or "see the notes"
        )
        return f"The {metric.unit} of a run are not known for lack of {lacking}", "warn"
    every = f"best for {metric.objective} every {_every(best_every_s(best, metric))}"
    if against is None:
        amounts = ", ".join(each.said(total_of(best, each)) for each in _TOLD)
        return f"On {best.key} a run costs {amounts}; {every}. t adds tiers to compare.", ""
    who = role_of(desk, base)
    name, other = (
        (f"{best.key} ({who})", against.key)
        if base is best
        else (best.key, f"{against.key} ({who})")
    )
    if against.found is None:
        return f"{name} is best; {other} has no figures; {every}", "best"
    if why := no_headway(against.case.outcome):
        return f"{name} is best; on {other} {why}; {every}", "best"
    if not np.isfinite(total_of(against, metric)):
        return (
            f"{name} is best; the {metric.unit} of a run on {other} are not known; {every}",
            "best",
        )
    changes = [
        (each.said(abs(saved)), saved)
        for each in _TOLD
        if comparable(best, against, each)
        for saved in (less(best, against, each),)
    ]
    more = ", ".join(said for said, saved in changes if saved > 0)
    fewer = ", ".join(said for said, saved in changes if saved < 0)
    if base is best:
        costs = f"costs {more or 'nothing'} more" + (f" and {fewer} less" if fewer else "")
        return f"{name} saves nothing; {other} {costs} a run; {every}", "best"
    return (
        (
            f"{name} saves {more or 'nothing'}{f', costs {fewer} more' if fewer else ''} a run vs"
            f" {other}; {every}"
        ),
        "best",
    )


_TOLD = tuple(METRICS[each] for each in ("kwh", "usd", "gpuh"))


def role_of(desk: Desk, base: TierRuns) -> str:
    """Why others are held against this tier."""
    return "baseline" if desk.baseline == base.key else "first"


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
