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
from ckptcost.plan import failures
from ckptcost.plan import physics as ph
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import OBJECTIVES, Array, World

WORLDS = 256
"""draws that the advice rests on, however many a question takes for its ranges"""
FINE, REACH = 32, 10.0
"""intervals at which each draw looks for its own best, from 1/10 to 10 times the stated best"""
TIED = 2e-4
"""regrets that differ by less of the run, a quarter of an hour in 50 days, are equal"""
GIVEN_UP = 10.0
"""a run that takes ten times longer than it could is given up: what is worse is no longer worse"""
EVERY = (1, 2, 3, 5, 10, 20, 50)
ROUND = (
    *(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0),
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
    bound: str
    """what keeps it from being better: "" if nothing does; "drain": a save has to drain before the
    next; "limit": one save must fit before the wall limit; "run": one at the end is enough"""
    bests: Array
    """each draw's own best interval, the stated one first"""
    least: float
    most: float
    """what is possible, at the stated values"""


def advise(scenario: Scenario, objective: str = "time") -> Advice:
    """The recommendation for one plan."""
    return advise_for(scenario, (objective,))[objective]


def advise_for(scenario: Scenario, objectives: Sequence[str]) -> dict[str, Advice]:
    """By objective: one evaluation of the runs serves all of them."""
    two = bool(scenario.said["second_tier"])
    counts = EVERY if two else (1,)
    with np.errstate(all="ignore"):
        stated = d.worlds([scenario])
        reach = _reach(stated)
        fine = np.geomspace(reach.low, reach.high, FINE)
        round_ = _round(reach)
        w = d.worlds([_with_every(scenario, n) for n in counts] if two else [scenario], WORLDS)
        plan = ph.plan(w)
        runs = ev.at(w, plan, np.array([*round_, *fine])[:, None, None])
        return {
            each: _least(_regrets(w, plan, runs, each), round_, fine, counts, reach)
            for each in objectives
        }


def _least(
    regrets: Array, round_: list[float], fine: Array, counts: Sequence[int], reach: Reach
) -> Advice:
    """The round interval, and the n, of least regret on average; the stated values break ties."""
    mean = regrets[: len(round_), :, 1:].mean(axis=-1)
    tied = mean <= mean.min() + TIED
    stated = np.where(tied, regrets[: len(round_), :, 0], np.inf)
    at, n = np.unravel_index(int(np.argmin(stated)), mean.shape)
    interval, least = round_[at], reach.least
    bests = fine[np.argmin(regrets[len(round_) :].min(axis=1), axis=0)]
    (low,), (high,) = d.ends(bests[None, :])
    bound = ""
    if interval >= reach.work:
        bound = "run"
    elif reach.near > reach.most:
        bound = "limit"
    elif interval <= least * 1.5 and reach.near < least * 1.01:
        bound = "drain"
    ends = float(low), float(high)
    return Advice(interval, counts[int(n)], *ends, bound, bests, least, reach.most)


def _regrets(w: World, plan: ph.Plan, runs: ev.Outcome, objective: str) -> Array:
    """Of each interval, each n and each draw: what checkpoints and failures cost beyond the best of
    that draw, as a share of all that the run costs."""
    costs = np.broadcast_to(runs.cost(objective), (*runs.wall.shape[:2], 1 + WORLDS))
    costs = np.where(np.isnan(costs), np.inf, costs)
    own = costs.min(axis=(0, 1))
    training = 0.0  # wall time contains it
    if objective != "time":
        training = ev.prices(w, plan, objective)["work"] * w.run.work
    regrets = (costs - own) / (own + training)
    return np.clip(np.where(np.isinf(own), 0.0, regrets), 0.0, GIVEN_UP)


# --- what is possible -----------------------------------------------------------------------------


class Reach(NamedTuple):
    """Training time between saves, at the stated values."""

    near: float
    """the best one by the formula, whatever limits it: intervals are tried around it"""
    least: float
    most: float
    work: float
    low: float
    high: float
    """between these they are tried"""


def possible(w: World, plan: ph.Plan) -> tuple[Array, Array]:
    """By case: what drains and deletes leave at least between two saves, and what the run and its
    wall limit leave at most."""
    least = np.maximum(ph.least_interval(w, plan), 1e-3)
    limit = w.run.wall_limit - (plan.first.stall + plan.first.lag + plan.back.exposed)
    return least, np.maximum(np.minimum(w.run.work, limit), least)


def _reach(w: World) -> Reach:
    plan = ph.plan(w)
    near, work = float(ev.best(w, plan, "time")[0, 0]), float(w.run.work[0, 0])
    least, most = (float(each[0, 0]) for each in possible(w, plan))
    near = near if 0 < near < np.inf else work  # work: without failures
    high = max(least, min(most, max(near, least) * REACH))
    return Reach(near, least, most, work, max(near / REACH, least), high)


def _round(reach: Reach) -> list[float]:
    """Round intervals in reach, and the whole run; the first possible one if there is none."""
    found = [x for x in ROUND if reach.low <= x <= reach.high]
    whole = [reach.work] if reach.work <= reach.high else []
    return found + whole or [next((x for x in ROUND if x >= reach.low), reach.low)]


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


def _with_every(scenario: Scenario, n: int) -> Scenario:
    return scenario.with_figure("policy.second_every", Figure(n, n, n, "derived", origin=ORIGIN))


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
        exact = {each: float(ev.best(w, plan, each)[0, 0]) for each in OBJECTIVES}
        r = ph.rhythm(w, plan, w.run.work)
        every = w.policy.second_every
        # all that a save takes, and a failure that needs the second tier loses n intervals
        takes = r.stall + r.drag + r.second_stall / every
        rate = plan.rate + plan.lost * (every - 1.0)
        young, daly = (float(np.min(rule(takes, rate))) for rule in (failures.young, failures.daly))
        least, most = (float(each[0, 0]) for each in possible(w, plan))
        near = exact["time"] if 0 < exact["time"] < np.inf else float(w.run.work[0, 0])
        low = max(near / 100.0, least)
        tried = np.geomspace(low, max(low, min(near * 100.0, most)), 301)
        wall = ev.at(w, plan, tried[:, None]).wall[:, 0]
    close = tried[wall <= np.nanmin(wall) * 1.01]
    known = {each: x for each, x in exact.items() if 0 < x < np.inf}
    return Beside(known, young, daly, float(close[0]), float(close[-1]))
