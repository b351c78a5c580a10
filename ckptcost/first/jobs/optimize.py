"""Optimize: the best interval by objective, what other intervals cost instead, nested tiers, and
the front over tiers, modes and intervals: which points no other beats in goodput, energy, dollars
and carbon at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.cautions import Caution, cautions_of
from ckptcost.first.core.domain import Scenario
from ckptcost.first.core.nested import (
    Joint,
    Nested,
    joint_interval_s,
    least_interval_s,
    level_waste,
    nested_rule,
)
from ckptcost.first.core.optimum import regret
from ckptcost.first.core.outcome import (
    Classic,
    Outcome,
    Plan,
    best_interval_s,
    busiest_s,
    classic_of,
    cost_at,
    interval_of,
    outcome_at,
    plan_of,
)
from ckptcost.first.core.pareto import front
from ckptcost.first.core.regret import OBJECTIVES, Plateau, cost_of, plateau_s
from ckptcost.first.core.robust import WORLDS, Robust, robust_of
from ckptcost.first.errors import Argument, InputError, UnknownName
from ckptcost.first.jobs.compare import Order, rank_runs, undecided_keys
from ckptcost.first.jobs.gates import Gate, GateVerdict, check_gates, no_percentiles
from ckptcost.first.jobs.model import (
    comparison_of,
    one_of,
    two_tiers_at_most,
    unknown_inputs,
    why_no_best,
    with_tier,
)
from ckptcost.first.layers import Layer, read_layer
from ckptcost.first.scenario import Resolved, resolve, ties_of, world_ranges_of

MODES = {"sync": ("sync",), "async": ("async",), "both": ("sync", "async")}
CURVE_POINTS, CURVE_REACH = 30, 10.0
"""intervals on each side of the best, up to ten times shorter and longer"""


_INSIDE, _AROUND, _WIDER = 121, 33, 4.0
"""intervals between the shortest and the longest optimum, and in the four times wider range around
them"""
_SAME = 1e-9
"""intervals this close are one: no cost can tell them apart"""


class TierOption(NamedTuple):
    """One tier in one mode, and its best interval for each objective; NaN where a figure is
    lacking."""

    tier_id: str
    mode: str
    resolved: Resolved
    plan: Plan
    best: dict[str, float]
    lacking: dict[str, tuple[str, ...]]
    """inputs that are not known, by objective"""

    @property
    def scenario(self) -> Scenario:
        return self.resolved.scenario

    @property
    def known(self) -> tuple[str, ...]:
        return tuple(objective for objective in OBJECTIVES if self.best[objective] > 0)

    def at(self, interval_s: Any) -> Outcome:
        with np.errstate(over="ignore"):
            return outcome_at(self.scenario, self.plan, interval_s)


class Candidates(NamedTuple):
    """The intervals of one option that were looked at."""

    option: TierOption
    interval_s: NDArray[np.float64]
    outcome: Outcome
    best_for: tuple[tuple[str, ...], ...]
    """objectives whose optimum each interval is"""
    on_front: NDArray[np.bool_]


class Front(NamedTuple):
    """What was compared, and what could not be."""

    objectives: tuple[str, ...]
    left_out: tuple[str, ...]
    """objectives that are unknown for all, have no option in common, or lack a line for some
    only"""
    candidates: tuple[Candidates, ...]
    apart: tuple[TierOption, ...]
    """options that lack one of the objectives: neither on the front nor beaten"""


def option_of(resolved: Resolved) -> TierOption:
    """A resolved scenario with its best intervals."""
    s = resolved.scenario
    two_tiers_at_most(s)
    with np.errstate(over="ignore"):
        plan = plan_of(s)
        found = {objective: float(best_interval_s(s, plan, objective)) for objective in OBJECTIVES}
    if found["time"] == math.inf:
        raise InputError(
            "without failures the best interval is never to save",
            key="failures.rate",
            remedy='give one, e.g. --set failures.rate="3.8 /1000 node-days"',
        )
    best = {
        objective: interval_s if 0 < interval_s < math.inf else math.nan
        for objective, interval_s in found.items()
    }
    lacking = {objective: tuple(unknown_inputs(s, objective)) for objective in OBJECTIVES}
    return TierOption(
        str(resolved.words.get("tier.id", "tier")), s.policy.mode, resolved, plan, best, lacking
    )


def pareto(options: Sequence[TierOption]) -> Front:
    """The front over all options and their intervals, each objective's exact optimum among them."""
    objectives = _shared_objectives(options)
    judged = [option for option in options if set(objectives) <= set(option.known)]
    runs = [option.at(option.best["time"]) for option in judged]
    objectives = tuple(o for o in objectives if not undecided_keys(runs, o))
    tried = [_candidates(option, objectives) for option in judged]
    costs = np.concatenate([_costs(each.outcome, objectives) for each in tried])
    kept = front(costs, ["low"] * len(objectives))
    parts = np.split(kept, np.cumsum([len(each.interval_s) for each in tried])[:-1])
    return Front(
        objectives,
        tuple(o for o in OBJECTIVES if o not in objectives),
        tuple(each._replace(on_front=part) for each, part in zip(tried, parts, strict=True)),
        tuple(option for option in options if option not in judged),
    )


def _costs(outcome: Outcome, objectives: Sequence[str]) -> NDArray[np.float64]:
    """A row an interval, a column an objective."""
    return np.stack([_round_12_digits(cost_of(outcome, o)) for o in objectives], axis=1)


def _shared_objectives(options: Sequence[TierOption]) -> tuple[str, ...]:
    """All that anybody knows, where one option knows all of them; else what everybody does."""
    known = [set(option.known) for option in options]
    anywhere, everywhere = set().union(*known), set.intersection(*known)
    chosen = anywhere if anywhere in known else everywhere
    return tuple(o for o in OBJECTIVES if o in chosen)


def _candidates(option: TierOption, objectives: Sequence[str]) -> Candidates:
    """Every interval worth a look: outside the range of the optima all objectives get worse
    together."""
    best = {o: option.best[o] for o in objectives}
    low_s, high_s = min(best.values()), max(best.values())
    most_s = max(float(option.scenario.work_s), high_s)
    inside = np.geomspace(low_s, high_s, _INSIDE) if high_s > low_s else np.array([low_s])
    around = np.geomspace(low_s / _WIDER, high_s * _WIDER, _AROUND)
    exact = _distinct(np.array(list(best.values())))
    grid = _distinct(np.concatenate([inside, around[around <= most_s]]))
    grid = grid[
        (np.abs(grid[:, None] / exact[None, :] - 1.0) > _SAME).all(axis=1)
    ]  # an optimum once, not beside itself
    interval_s = np.sort(np.concatenate([grid, exact]))
    marks = tuple(
        tuple(o for o, at in best.items() if abs(at - each) <= _SAME * at)
        for each in interval_s.tolist()
    )
    return Candidates(
        option, interval_s, option.at(interval_s), marks, np.zeros(len(interval_s), dtype=bool)
    )


def _distinct(intervals_s: NDArray[np.float64]) -> NDArray[np.float64]:
    ordered = np.sort(intervals_s)
    return ordered[np.diff(ordered, prepend=0.0) > _SAME * ordered]


def _round_12_digits(costs: Any) -> NDArray[np.float64]:
    """12 significant digits: what rounding alone makes different is the same, and beats nothing."""
    values = np.asarray(costs, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scale = 10.0 ** (np.floor(np.log10(np.abs(values))) - 11.0)
        rounded = np.round(values / scale) * scale
    return np.where(np.isfinite(rounded) & (values != 0), rounded, values)


class Point(NamedTuple):
    """The run at one interval, and what that interval costs over each objective's own best."""

    id: str
    """an objective, "robust", "young", "daly" or "now"; for two tiers "joint", "given", "rule" or
    "now" """
    interval_s: float
    outcome: Outcome
    regrets: dict[str, float]
    every: float = 1.0


class Levels(NamedTuple):
    """Two tiers: interval and n chosen together, and the first-order rule beside it."""

    joint: Joint
    needed: bool
    """whether any failure needs the second tier"""
    stalls_s: tuple[float, ...]
    rates_per_s: tuple[float, ...]
    wastes: tuple[float, ...]
    least_s: tuple[float, ...]
    """what filling each tier takes: nothing can be saved there more often"""
    rule_s: tuple[float, ...]
    """first-order interval of each level by itself"""
    rule: Nested
    points: tuple[Point, ...]


class IntervalCurve(NamedTuple):
    """The run over intervals around the best."""

    interval_s: NDArray[np.float64]
    outcome: Outcome
    regrets: dict[str, NDArray[np.float64]]


class Optimum(NamedTuple):
    """The answer: `option` at `best` is the objective's optimum among all options, `recommended` is
    what to do."""

    objective: str
    option: TierOption
    options: tuple[TierOption, ...]
    order: Order | None
    """the options by what they cost at their own best; None where there is only one"""
    undecided: dict[str, tuple[str, ...]]
    """objectives by which the options cannot be held against each other, and the inputs that would
    decide"""
    best: Point
    """the optimum at the stated values of the inputs"""
    robust: Robust
    """what the ranges of the inputs leave of it"""
    recommended: Point
    """the best, or the robust interval where the ranges move the best by more than a factor of
    two"""
    today: TierOption
    """the scenario as it stands, which the point "now" is on"""
    points: tuple[Point, ...]
    plateaus: dict[str, Plateau]
    classic: Classic
    never: dict[str, float]
    """what not saving at all costs over each objective's best; negative: it is cheaper"""
    curve: IntervalCurve
    levels: Levels | None
    front: Front
    cautions: tuple[Caution, ...]
    verdicts: tuple[GateVerdict, ...]


def optimize(
    catalog: Catalog,
    layers: Sequence[Layer],
    tiers: Sequence[str] = (),
    mode: str = "",
    objective: str = "",
    gates: Sequence[Gate] = (),
    draws: int = WORLDS,
) -> Optimum:
    """The best of every tier and mode; without tiers those that the scenario compares, or its
    own."""
    _check_name("mode", mode, tuple(MODES))
    _check_name("objective", objective, OBJECTIVES)
    no_percentiles(gates)
    timed = any(layer.has_cadence for layer in layers)
    if not timed:
        layers = [*layers, _objective_layer(objective)]
    options = _options(catalog, layers, tiers, mode)
    objective = objective or options[0].scenario.policy.objective
    order, undecided_by = _rank(options, objective, draws)
    option, several = options[order.at[0]], len(options) > 1
    best = recommended = point_of(option, objective, option.best[objective])
    points = [point_of(option, each, option.best[each]) for each in option.known]
    robust = _robust(option, objective, draws)
    if robust.moves:
        recommended = point_of(option, "robust", robust.interval_s)
        points.append(recommended)
    classic = _classic(option, objective)
    today = option_of(one_of(catalog, layers)) if timed else option
    points += _other_points(option, classic, today, timed)
    levels = _levels(option, objective, timed and name_of(today) == name_of(option))
    verdicts = check_gates(
        gates,
        lambda gate: float(gate.measure.of(recommended.outcome)),
        name_of(option) if several else "",
    )
    return Optimum(
        objective,
        option,
        options,
        order if several else None,
        undecided_by,
        best,
        robust,
        recommended,
        today,
        tuple(points),
        {each: _plateau(option, each) for each in option.known},
        classic,
        point_of(option, "never", 2.0 * float(option.scenario.work_s)).regrets,
        _curve(option, objective),
        levels,
        pareto(options),
        _cautions(option, recommended),
        tuple(verdicts),
    )


def _classic(option: TierOption, objective: str) -> Classic:
    """The formulas' answers for the run at its best for time, where that is known."""
    interval_s = option.best["time" if "time" in option.known else objective]
    return classic_of(option.scenario, option.at(interval_s), objective)


def _cautions(option: TierOption, point: Point) -> tuple[Caution, ...]:
    """Those that hold at a point."""
    return tuple(each for each in cautions_of(option.scenario, point.outcome) if bool(each.holds))


def _objective_layer(objective: str) -> Layer:
    """What is looked for need not be given."""
    sections = {"policy": {"optimal": objective or "time"}}
    return read_layer(sections, Argument("objective"), "--objective")


def _check_name(kind: str, said: str, known: Sequence[str]) -> None:
    if said and said not in known:
        raise UnknownName(kind, said, known, where=Argument(kind))


def _other_points(
    option: TierOption, classic: Classic, today: TierOption, timed: bool
) -> list[Point]:
    """Intervals that are no optimum of ours: by the classic formulas, and as it stands."""
    now_s = float(interval_of(today.scenario, today.plan)) if timed else math.nan
    others = (
        ("young", float(classic.young_interval_s), option),
        ("daly", float(classic.daly_interval_s), option),
        ("now", now_s, today),
    )
    return [
        point_of(option, name, interval_s, on)
        for name, interval_s, on in others
        if 0 < interval_s < math.inf
    ]


def _options(
    catalog: Catalog, layers: Sequence[Layer], tiers: Sequence[str], mode: str
) -> tuple[TierOption, ...]:
    """Every tier in every mode, each once; a tier without a name is the scenario's own."""
    named = list(dict.fromkeys(tiers or comparison_of(layers)[0])) or [""]
    found = []
    for tier, each in product(named, MODES.get(mode, (None,))):
        chosen = with_tier(layers, tier or None, None, None)
        if each:
            sections = {"policy": {"mode": each}}
            chosen.append(read_layer(sections, Argument("mode"), "--mode"))
        found.append(option_of(resolve(catalog, chosen)))
    return tuple(found)


def name_of(option: TierOption) -> str:
    """Tier and mode."""
    return f"{option.tier_id}, {option.mode}"


def _rank(
    options: Sequence[TierOption], objective: str, draws: int
) -> tuple[Order, dict[str, tuple[str, ...]]]:
    """The options that can be computed, the least cost first, and by which objectives there is no
    order."""
    able = [i for i, option in enumerate(options) if objective in option.known]
    if not able:
        raise _not_computable(options[0], objective)
    runs = [(options[i].resolved, options[i].at(options[i].best[objective])) for i in able]
    undecided = _objectives_without_order([outcome for _, outcome in runs])
    if keys := undecided.get(objective):
        raise InputError(
            f"these tiers cannot be ranked by {objective}: {' and '.join(keys)} "
            "is known for some of them only",
            where=Argument("objective"),
            remedy=f"give it for all of them, e.g. --set {keys[0]}=...",
        )
    order = rank_runs(runs, objective, draws)
    cheaper = dict(zip(able, order.cheaper, strict=True))
    return (
        Order(
            tuple(able[i] for i in order.at),
            tuple(cheaper.get(i, math.nan) for i in range(len(options))),
            tuple(able[i] for i in order.alike),
        ),
        undecided,
    )


def _objectives_without_order(runs: Sequence[Outcome]) -> dict[str, tuple[str, ...]]:
    """The objectives by which there is no order, and the inputs that would decide."""
    keys = {each: undecided_keys(runs, each) for each in OBJECTIVES}
    return {each: found for each, found in keys.items() if found}


def _not_computable(option: TierOption, objective: str) -> InputError:
    return InputError(
        f"the best interval for {objective} cannot be computed",
        where=Argument("objective"),
        remedy=why_no_best(option.scenario, option.plan, objective),
    )


def point_of(
    option: TierOption, name: str, interval_s: float, on: TierOption | None = None
) -> Point:
    """One interval, on another tier or in another mode where told so, against every objective's own
    best."""
    outcome = (on or option).at(interval_s)
    regrets = {o: float(over) for o, over in _regrets(option, outcome).items()}
    return Point(name, interval_s, outcome, regrets)


def _regrets(option: TierOption, outcome: Outcome) -> dict[str, NDArray[np.float64]]:
    """What it costs over each objective's own best."""
    return {
        o: np.asarray(regret(cost_of(outcome, o), cost_of(option.at(option.best[o]), o)))
        for o in option.known
    }


def _robust(option: TierOption, objective: str, draws: int) -> Robust:
    """The robust interval of an option; how often is what is asked, so no range of its own
    counts."""
    ranges = world_ranges_of(option.resolved)
    return robust_of(option.scenario, ranges, ties_of(option.resolved), objective, draws)


def _plateau(option: TierOption, objective: str) -> Plateau:
    """Within the run; where saves that come too soon are left out, no shorter than the drain
    allows."""
    s, plan = option.scenario, option.plan
    p = s.policy
    least_s = (
        busiest_s(plan, p) / p.in_flight
        - plan.saved.stall_s
        - p.slowdown_fraction * plan.saved.lag_s
    )
    with np.errstate(over="ignore"):
        return plateau_s(
            lambda interval_s: cost_at(s, plan, objective, interval_s),
            option.best[objective],
            lowest_s=max(float(least_s), 0.0) if p.when_busy == "skip" else 0.0,
            highest_s=float(s.work_s),
        )


def _curve(option: TierOption, objective: str) -> IntervalCurve:
    best_s = option.best[objective]
    most_s = max(best_s, min(best_s * CURVE_REACH, float(option.scenario.work_s)))
    below = np.geomspace(best_s / CURVE_REACH, best_s, CURVE_POINTS + 1)
    above = (
        np.geomspace(best_s, most_s, CURVE_POINTS + 1) if most_s > best_s else np.array([best_s])
    )
    interval_s = np.concatenate([below[:-1], [best_s], above[1:]])
    outcome = option.at(interval_s)
    return IntervalCurve(interval_s, outcome, _regrets(option, outcome))


def _levels(option: TierOption, objective: str, is_now: bool) -> Levels | None:
    """The joint optimum, the best interval at the n that is given, what runs now, and the rounded
    rule; None without a second tier."""
    s, plan = option.scenario, option.plan
    p, second = s.policy, plan.second
    if second is None or plan.second_recovery is None:
        return None
    drags = (p.slowdown_fraction * plan.saved.lag_s, p.slowdown_fraction * second.lag_s)
    stalls = (
        float(plan.saved.stall_s + drags[0]),
        float(second.stall_s if p.mode == "sync" else drags[1]),
    )
    rates = (float(plan.failures_per_s - plan.lost_per_s), float(plan.lost_per_s))
    ways = (plan.recovery, plan.second_recovery)
    lost = tuple(float(way.down_s + way.exposed_s) for way in ways)
    least = (
        least_interval_s(s, plan),
        float(second.write_s) if p.mode == "async" else 0.0,
    )
    rule_s, rule = nested_rule(stalls, rates, least)
    with np.errstate(over="ignore", invalid="ignore"):
        joint = joint_interval_s(s, plan, objective)

    def point(name: str, interval_s: float, every: float) -> Point:
        changed = replace(s, policy=replace(p, second_every=every))
        on = option._replace(resolved=option.resolved._replace(scenario=changed))
        outcome = on.at(interval_s)
        regrets = {objective: float(regret(cost_of(outcome, objective), joint.cost))}
        return Point(name, interval_s, outcome, regrets, every)

    given = float(p.second_every)
    points = [
        point("joint", joint.interval_s, joint.second_every),
        point("given", option.best[objective], given),
    ]
    if 0 < rule.base_s < math.inf and rule.multiples[-1] < math.inf:
        points.append(point("rule", rule.base_s, rule.multiples[-1]))
    if is_now:
        points.append(point("now", float(interval_of(s, plan)), given))
    return Levels(
        joint,
        rates[1] > 0,
        stalls,
        rates,
        tuple(float(level_waste(*each)) for each in zip(stalls, rates, lost, strict=True)),
        least,
        rule_s,
        rule,
        tuple(points),
    )
