"""The one recommended interval of a plan: every question, screen and export shows this one.

It is the interval of least regret: on average over the draws, the run takes the least time beyond
what the best interval of each draw would take. It is rounded to what people type, and billed as
rounded. With a second tier it is chosen together with n: every n-th save goes there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ckptcost.plan import draws as d
from ckptcost.plan import evaluate as ev
from ckptcost.plan import physics as ph
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import Array, World

WORLDS = 512
"""draws that the advice rests on, however many a question takes for its ranges"""
ROUGH_WORLDS, COUNTS = 64, 4
"""draws in which all n are tried, and how many n go on to all draws: trying all of them in all
draws would take ten times as long"""
FINE, REACH = 48, 30.0
"""intervals at which each draw looks for its own best, from 1/30 to 30 times the stated best"""
GIVEN_UP = 10.0
"""a run that takes ten times longer than it could is given up: what is worse is no longer worse"""
EVERY = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60)
ROUND = (
    *(1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50),
    *(60 * m for m in (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50)),
    *(3600 * h for h in (1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 16)),
    *(86400 * day for day in (1, 1.5, 2, 3, 4, 5, 7, 10, 14, 21, 30, 45, 60, 90)),
)
"""seconds between saves that people type"""
ORIGIN = "ckptcost interval"
"""who gave an interval that the plan did not state"""


class Advice(NamedTuple):
    """How often to save, and what the uncertainty leaves of it."""

    interval: float
    every: int
    """every n-th save also goes to the second tier; 1 if there is none"""
    low: float
    high: float
    """5th and 95th percentile of the draws' own best intervals"""
    regret: float
    worst: float
    """what it costs over the best of each draw: on average, and what 1 in 20 exceeds"""
    bound: str
    """what keeps it from being better: "" if nothing does; "drain": a save has to drain before the
    next; "limit": one save must fit before the wall limit; "run": one at the end is enough"""
    bests: Array
    """each draw's own best interval, the stated one first"""


def advise(scenario: Scenario, objective: str = "time") -> Advice:
    """The recommendation for one plan."""
    return advise_for(scenario, (objective,))[objective]


def advise_for(scenario: Scenario, objectives: Sequence[str]) -> dict[str, Advice]:
    """By objective: one evaluation of the runs serves all of them."""
    with np.errstate(all="ignore"):
        stated = d.worlds([scenario])
        plan, found = ph.plan(stated), {}
        reach = _reach(stated, plan, "time")
        round_ = _candidates(reach)
        fine = np.geomspace(max(reach.near / REACH, reach.least), reach.ceiling, FINE)
        by_objective = _counts(scenario, round_, objectives)
        counts = sorted({n for each in by_objective.values() for n in each})
        runs = _runs(scenario, counts, np.array([*round_, *fine]), objectives, WORLDS)
        for objective, tried in by_objective.items():
            regrets = _regrets(*runs[objective], [counts.index(n) for n in tried])
            own = reach if objective == "time" else _reach(stated, plan, objective)
            found[objective] = _least(regrets, round_, fine, tried, own)
    return found


def _least(
    regrets: Array, round_: list[float], fine: Array, counts: Sequence[int], reach: Reach
) -> Advice:
    """The round interval, and the n, of least regret on average."""
    mean = regrets[: len(round_), :, 1:].mean(axis=-1)
    at, n = np.unravel_index(int(np.argmin(mean)), mean.shape)
    bests = fine[np.argmin(regrets[len(round_) :].min(axis=1), axis=0)]
    low, high = (float(end[0]) for end in d.ends(bests[None, :]))
    over, interval, every = regrets[at, n, 1:], float(round_[at]), counts[int(n)]
    ends = float(over.mean()), float(np.quantile(over, 0.95))
    return Advice(interval, every, low, high, *ends, reach.bound(interval), bests)


# --- what is possible -----------------------------------------------------------------------------


class Reach(NamedTuple):
    """Training time between saves, at the stated values."""

    near: float
    """the best one by the formula, whatever limits it: intervals are tried around it"""
    least: float
    """what drains and deletes leave at least"""
    most: float
    """what the run and its wall limit leave at most"""
    work: float

    @property
    def ceiling(self) -> float:
        return max(self.least, min(self.most, max(self.near, self.least) * REACH))

    def bound(self, interval: float) -> str:
        """What keeps an interval from being better."""
        if interval >= self.work:
            return "run"
        if self.near > self.most:
            return "limit"
        return "drain" if interval <= self.least * 1.5 and self.near < self.least * 1.01 else ""


def reach_of(scenario: Scenario, objective: str = "time") -> Reach:
    """What limits the intervals of a plan."""
    with np.errstate(all="ignore"):
        w = d.worlds([scenario])
        return _reach(w, ph.plan(w), objective)


def _reach(w: World, plan: ph.Plan, objective: str) -> Reach:
    work = float(w.run.work[0, 0])
    near = float(np.min(ev.best(w, plan, objective)))
    least = max(float(np.min(ph.least_interval(w, plan))), 1e-3)
    whole = plan.first.stall + plan.first.lag + plan.back.exposed
    limit = float(np.min(w.run.wall_limit - whole))
    near = near if 0 < near < np.inf else work  # never to save, if there are no failures
    return Reach(near, least, max(min(work, limit), least), work)


def _candidates(reach: Reach) -> list[float]:
    """Round intervals in reach, and the whole run; the first possible one if there is none."""
    low = max(reach.near / REACH, reach.least)
    found = [float(x) for x in ROUND if low <= x <= reach.ceiling]
    whole = [reach.work] if reach.work <= reach.ceiling else []
    return found + whole or [min((float(x) for x in ROUND if x >= low), default=low)]


# --- regret ---------------------------------------------------------------------------------------


def _counts(
    scenario: Scenario, intervals: list[float], objectives: Sequence[str]
) -> dict[str, list[int]]:
    """The few best n by objective, each at its best interval."""
    if not scenario.said["second_tier"]:
        return {objective: [1] for objective in objectives}
    runs = _runs(scenario, EVERY, np.array(intervals), objectives, ROUGH_WORLDS)
    found = {}
    for objective, each in runs.items():
        least = _regrets(*each, range(len(EVERY)))[..., 1:].mean(axis=-1).min(axis=0)
        found[objective] = sorted(EVERY[n] for n in np.argsort(least, kind="stable")[:COUNTS])
    return found


def _runs(
    scenario: Scenario,
    counts: Sequence[int],
    intervals: Array,
    objectives: Sequence[str],
    draws: int,
) -> dict[str, tuple[Array, Array]]:
    """By objective: what checkpoints and failures cost at each interval, n and draw; and what
    training itself costs in each draw."""
    cases = [_with_every(scenario, n) for n in counts] if len(counts) > 1 else [scenario]
    w = d.worlds(cases, draws)
    plan = ph.plan(w)
    o = ev.at(w, plan, intervals[:, None, None])
    whole, found = np.ones((len(intervals), len(cases), 1 + draws)), {}
    for objective in objectives:
        costs, training = o.cost(objective), 0.0 * w.run.work
        if objective != "time":  # wall time contains it
            training = ev.prices(w, plan, objective)["work"] * w.run.work
        found[objective] = np.where(np.isnan(costs), np.inf, costs) * whole, training * whole[0]
    return found


def _regrets(costs: Array, training: Array, tried: Sequence[int]) -> Array:
    """Of each interval, each n that is tried and each draw: what it costs beyond the best of that
    draw, as a share of all that the run costs."""
    costs = costs[:, [*tried]]
    own = costs.min(axis=(0, 1))
    regrets = (costs - own) / (own + training[[*tried]])
    return np.clip(np.where(np.isinf(own), 0.0, regrets), 0.0, GIVEN_UP)


def _with_every(scenario: Scenario, n: int) -> Scenario:
    return scenario.with_figure("policy.second_every", Figure(n, n, n, "derived", origin=ORIGIN))


# --- plans with the recommendation in them --------------------------------------------------------


def settled(scenario: Scenario) -> Scenario:
    """A plan that leaves the interval open (`policy.optimal`) with the recommended one in it."""
    objective = str(scenario.said["policy"].get("optimal") or "")
    return with_advice(scenario, advise(scenario, objective)) if objective else scenario


def with_advice(scenario: Scenario, advice: Advice) -> Scenario:
    """A plan that does what is recommended."""
    found = with_interval(scenario, advice.interval)
    return _with_every(found, advice.every) if scenario.said["second_tier"] else found


def with_interval(scenario: Scenario, seconds: float) -> Scenario:
    """A plan that saves as often as this, whatever it said before."""
    figure = Figure(seconds, seconds, seconds, "derived", note="recommended", origin=ORIGIN)
    return scenario.with_figure("policy.interval", figure)


# --- what stands beside it ------------------------------------------------------------------------


class Beside(NamedTuple):
    """Other intervals of the same plan, at its stated values."""

    exact: dict[str, float]
    """the best one by objective; those that can be computed"""
    young: float
    daly: float
    low: float
    high: float
    """between these the run stays within 1 % of its shortest"""


def beside(scenario: Scenario) -> Beside:
    """Exact best intervals, rules of thumb and the plateau of a plan."""
    with np.errstate(all="ignore"):
        w = d.worlds([scenario])
        plan = ph.plan(w)
        exact = {o: float(np.min(ev.best(w, plan, o))) for o in ev.OBJECTIVES}
        r = ph.rhythm(w, plan, w.run.work)
        every = w.policy.second_every
        # all that a save takes, and a failure that needs the second tier loses n intervals
        takes = r.stall + r.drag + r.second_stall / every
        rate = plan.rate + plan.lost * (every - 1.0)
        rules = [float(np.min(rule(takes, rate))) for rule in (ph.young, ph.daly)]
        reach = _reach(w, plan, "time")
        low = max(reach.near / 100.0, reach.least)
        tried = np.geomspace(low, max(low, min(reach.near * 100.0, reach.most)), 301)
        wall = ev.at(w, plan, tried[:, None]).wall[:, 0]
        close = tried[wall <= np.nanmin(wall) * 1.01]
        o = ev.at(w, plan, np.array([*exact.values()])[:, None])
        priced = [np.isfinite(o.cost(each)[at, 0]) for at, each in enumerate(exact)]
    known = {
        each: x
        for (each, x), is_known in zip(exact.items(), priced, strict=True)
        if is_known and 0 < x < np.inf
    }
    low, high = (float(close[0]), float(close[-1])) if len(close) else (np.nan, np.nan)
    return Beside(known, rules[0], rules[1], low, high)
