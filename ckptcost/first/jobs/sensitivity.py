"""Sensitivity: what each input does to a result, and which assumption is worth measuring next.

Inputs are levers: things that can be moved, each with the inputs that are the same figure once
more. Three questions with one scenario: where the result goes when an input goes through its range
(swings), what one per cent more of it does (elasticities), and how much of the result's spread it
explains (shares). The interval stays as planned, unless it is to be chosen anew each time
(`replan`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ckptcost.first.catalog.keys import LIMITS
from ckptcost.first.core.domain import Number, Scenario
from ckptcost.first.core.draws import SAMPLES, drawn, p5_p95, replace_at
from ckptcost.first.core.measures import MEASURES, Measure
from ckptcost.first.core.outcome import evaluate
from ckptcost.first.core.quantities import EVERYDAY
from ckptcost.first.core.sensitivity import chord, derivative_at_0, elasticity, variance_shares
from ckptcost.first.core.timing import nodes_of
from ckptcost.first.errors import Argument, InputError, UnknownName
from ckptcost.first.jobs.model import Case, planned_scenario
from ckptcost.first.scenario import Input, Resolved, ties_of, world_ranges_of

OF = ("goodput", "wall", *(q.measure for q in EVERYDAY))
DRAWS, DRAWS_REPLANNED = SAMPLES, 1024
"""a report's 256 let a percentile scatter by a few per cent, which is as much as one input of many
is worth; a plan that is chosen anew in every draw costs a search in each"""
MEASURED = "measured"
_NEEDS = {
    "kwh": ("cluster.gpu_train", "cluster.host_train"),
    "usd": ("cluster.gpu_price",),
    "kgco2e": ("site.grid_location", "cluster.gpu_train", "cluster.host_train"),
}
_STEP_AT_0 = {"s": 1e-3, "bytes": 1e6, "": 1e-6}
"""first step away from an input of 0 that has no range, by its unit; the rest are rates and prices,
in which results are all but straight: 1e-9 of their base unit"""
NOISE = 1e-9
"""a swing below this share of the result is rounding"""
_DIGITS = 6
"""of an elasticity: more would be rounding"""


INTERVAL = "policy.interval"
LEAST_SHARE = 0.01
"""of a spread: who explains less decides nothing"""


class Lever(NamedTuple):
    """One input that can be moved, with those that are the same figure once more."""

    path: str
    fields: tuple[str, ...]
    """of the core's scenario; the copies after the original"""
    unit: str
    value: float
    low: float
    high: float
    """NaN where the input has no range"""
    basis: str
    copies: tuple[str, ...] = ()
    """paths of the copies"""

    @property
    def has_range(self) -> bool:
        return self.low < self.high


def levers_of(resolved: Resolved, ties: Mapping[str, str]) -> list[Lever]:
    """Every input once, tied copies with their original."""
    # those of the world: the cadence is part of the plan
    inputs = [i for i in resolved.inputs if i.field != "policy.every"]
    copies: dict[str, list[Input]] = {}
    for i in inputs:
        if i.field in ties:
            copies.setdefault(ties[i.field], []).append(i)
    levers = []
    for i in inputs:
        if i.field in ties:
            continue
        low, high = (math.nan if end is None else end for end in (i.figure.low, i.figure.high))
        mine = copies.get(i.field, [])
        fields = (i.field, *(copy.field for copy in mine))
        levers.append(
            Lever(
                i.path,
                fields,
                i.unit,
                i.figure.value,
                low,
                high,
                i.figure.basis or "assumed",
                tuple(copy.path for copy in mine),
            )
        )
    return levers


def copies_of(resolved: Resolved) -> dict[str, str]:
    """Ties among all inputs: `ties_of` looks at those with a range, so each one without gets
    one."""
    lent = [
        (
            i
            if i.figure.low is not None
            else i._replace(
                figure=replace(i.figure, low=i.figure.value * 0.5, high=i.figure.value * 2.0)
            )
        )
        for i in resolved.inputs
    ]
    return ties_of(resolved._replace(inputs=tuple(lent)))


def chosen_interval(case: Case) -> Lever:
    """The chosen interval: at its optimum the result it is best for does not notice a small
    change."""
    return Lever(
        INTERVAL,
        ("policy.every",),
        "s",
        float(case.outcome.interval_s),
        math.nan,
        math.nan,
        "chosen",
    )


def decided_by(case: Case, most: int = 3) -> list[str]:
    """The inputs whose ranges explain most of the spread of the energy, the most first: by the
    draws that its range comes from, as `sensitivity` finds them."""
    energy_j = case.spread.run.total("energy_j")
    ties = ties_of(case.resolved)
    levers = [lever for lever in levers_of(case.resolved, ties) if lever.has_range]
    if not levers or np.ndim(energy_j) == 0 or not np.isfinite(energy_j).all():
        return []
    ranges = world_ranges_of(case.resolved)
    many = drawn(planned_scenario(case.scenario, case.outcome), ranges, ties, case.draws)
    values = np.array([at(many, lever.fields[0]) for lever in levers])
    shares = variance_shares(values, np.asarray(energy_j)).each.tolist()
    told = sorted(zip(shares, levers, strict=True), key=lambda each: -each[0])[:most]
    return [lever.path for share, lever in told if share > LEAST_SHARE]


def moved_to(world: Scenario, lever: Lever, value: Number) -> Scenario:
    """The scenario with an input, and its copies, at a value."""
    for field in lever.fields:
        world = replace_at(world, field, value)
    return world


def at(scenario: Scenario, field: str) -> Number:
    """The value of a field, by its path."""
    section, _, name = field.rpartition(".")
    found: Number = getattr(getattr(scenario, section) if section else scenario, name)
    return found


class Swing(NamedTuple):
    """The result at the ends of an input's range."""

    lever: Lever
    at_low: float
    at_high: float
    swing: float
    """largest minus smallest of the results at low, value and high"""


class Response(NamedTuple):
    """What a small change of an input does; NaN with a note where that cannot be said."""

    lever: Lever
    elasticity: float
    below: float
    above: float
    per_unit: float
    """for an input that is 0: rise of the result, both in base units, for one unit of it"""
    note: str


class Share(NamedTuple):
    """What an uncertain input explains of the result's spread, and the range that is left once it
    is known."""

    lever: Lever
    share: float
    low: float
    high: float


class Sensitivity(NamedTuple):
    case: Case
    measure: Measure
    replan: bool
    value: float
    low: float
    high: float
    swings: tuple[Swing, ...]
    """the widest first"""
    responses: tuple[Response, ...]
    """the strongest first, then those without an elasticity"""
    shares: tuple[Share, ...]
    """the largest first; NaN where some draws never end"""
    together: float
    never: float
    """share of the draws in which the run does not end"""
    draws: int

    @property
    def to_measure(self) -> tuple[Share, ...]:
        """Shares of the inputs that nobody has measured."""
        return tuple(each for each in self.shares if each.lever.basis != MEASURED)


def measure_of(name: str) -> Measure:
    """The result that is asked about."""
    if name not in OF:
        raise UnknownName("result", name, OF, where=Argument("of"))
    return MEASURES[name]


def sensitivity(case: Case, of: str = "kwh", replan: bool = False, draws: int = 0) -> Sensitivity:
    """Swings, elasticities and shares of one result of a case."""
    measure = measure_of(of)
    value = float(measure.of(case.outcome))
    _answerable(case, measure, value, replan)
    world = case.scenario if replan else planned_scenario(case.scenario, case.outcome)

    @np.errstate(over="ignore", invalid="ignore")
    def result(changed: Scenario) -> Number:
        return measure.of(evaluate(changed))

    ranges = world_ranges_of(case.resolved)
    ties = ties_of(case.resolved)
    draws = draws or (DRAWS_REPLANNED if replan else DRAWS)
    spread = result(drawn(world, ranges, ties, draws)) if ranges else value
    low, high = p5_p95(spread, value)
    ranged = [lever for lever in levers_of(case.resolved, ties) if lever.has_range]
    every = levers_of(case.resolved, copies_of(case.resolved))
    if not replan:
        every.append(chosen_interval(case))
    swings = [_swing(world, lever, result, value) for lever in ranged]
    # what does not move the result explains nothing of its spread; a share of it would be noise
    moving = [each.lever for each in swings if not each.swing <= NOISE * abs(value)]
    responses = [_response(world, lever, result) for lever in every]
    shares, together, never = _shares(world, moving, ranges, ties, result, value, draws)
    return Sensitivity(
        case,
        measure,
        replan,
        value,
        low,
        high,
        tuple(sorted(swings, key=lambda each: _falling(each.swing))),
        tuple(sorted(responses, key=lambda each: _falling(abs(each.elasticity)))),
        tuple(sorted(shares, key=lambda each: _falling(each.share))),
        together,
        never,
        draws,
    )


def _falling(size: float) -> tuple[bool, float]:
    return (size != size, -size)


def _answerable(case: Case, measure: Measure, value: float, replan: bool) -> None:
    """A result that can be moved at all."""
    if replan and case.scenario.policy.cadence != "optimal":
        raise InputError(
            "there is no optimum to choose again: the scenario says how often to save",
            where=Argument("replan"),
            remedy='leave it out, or add --set policy.optimal="time"',
        )
    if value != value:
        missing = [path for path in _NEEDS.get(measure.id, ()) if path in case.resolved.unknown]
        raise InputError(
            f"the {measure.label} cannot be computed, because"
            f" {' and '.join(missing) or 'a figure it needs'} is not known",
            where=Argument("of"),
            key=measure.id,
            remedy=(
                f"give it, e.g. --set {missing[0]}=..." if missing else "`ckptcost model` names it"
            ),
        )
    if math.isinf(value) or float(case.outcome.goodput) == 0:
        raise InputError(
            "the run would never finish, and no small change of an input mends that",
            where=Argument("of"),
            key=measure.id,
            remedy="save more often, or on a faster tier",
        )


def _swing(
    world: Scenario, lever: Lever, result: Callable[[Scenario], Number], value: float
) -> Swing:
    at_low, at_high = (
        float(result(moved_to(world, lever, end))) for end in (lever.low, lever.high)
    )
    return Swing(lever, at_low, at_high, max(at_low, value, at_high) - min(at_low, value, at_high))


def _response(world: Scenario, lever: Lever, result: Callable[[Scenario], Number]) -> Response:
    def moved(value: float) -> float:
        return float(result(moved_to(world, lever, value)))

    unknown = Response(lever, math.nan, math.nan, math.nan, math.nan, "")
    if not lever.value < math.inf:
        return unknown._replace(note="unlimited")
    if lever.value == 0:
        step = 1e-3 * lever.high if lever.has_range else _STEP_AT_0.get(lever.unit, 1e-9)
        return unknown._replace(per_unit=derivative_at_0(moved, step), note="no elasticity at 0")
    if lever.path in ("cluster.gpus", "cluster.gpus_per_node"):
        return _by_nodes(world, lever, moved, unknown)
    least, _, most = LIMITS.get(lever.path.rpartition(".")[2], (0.0, True, math.inf))
    slope = elasticity(moved, lever.value, least, most)
    note = "a kink: one slope below, another above" if slope.is_kink else ""
    central, below, above = (round(each, _DIGITS) + 0.0 for each in slope)
    return Response(lever, central, below, above, math.nan, note)


def _by_nodes(
    world: Scenario, lever: Lever, moved: Callable[[float], float], unknown: Response
) -> Response:
    """Nodes are whole: from about one per cent of them fewer to as many more, where each step is
    one whole node."""
    c = world.cluster
    nodes = float(nodes_of(c))
    few = max(1.0, round(nodes / 100.0))
    if nodes < 2:
        return unknown._replace(note="one node: the next step doubles it")
    if lever.path == "cluster.gpus":
        low, high = c.gpus - few * c.gpus_per_node, c.gpus + few * c.gpus_per_node
    else:  # a hair more GPUs a node than needed, so that rounding does not add a node
        low, high = (c.gpus / (nodes + n) * (1.0 + 1e-12) for n in (few, -few))
    slope = round(chord(moved, float(low), float(high)), _DIGITS) + 0.0
    return Response(lever, slope, slope, slope, math.nan, f"over {2 * few:.0f} whole nodes")


def _shares(
    world: Scenario,
    ranged: list[Lever],
    ranges: dict[str, tuple[float, float, float]],
    ties: dict[str, str],
    result: Callable[[Scenario], Number],
    value: float,
    draws: int,
) -> tuple[list[Share], float, float]:
    """What each range explains, and the range of the result when it is gone."""
    if not ranged:
        return [], 0.0, 0.0
    many = drawn(world, ranges, ties, draws)
    results = np.broadcast_to(np.asarray(result(many), dtype=float), (draws,))
    never = float(np.mean(~np.isfinite(results)))
    values = np.array([at(many, lever.fields[0]) for lever in ranged])
    each, together = (
        variance_shares(values, results)
        if never == 0
        else (np.full(len(ranged), math.nan), math.nan)
    )
    found = []
    for lever, share in zip(ranged, each, strict=True):
        # a range of no width keeps every other input's draws as they are
        known = ranges | dict.fromkeys(lever.fields, (lever.value, lever.value, lever.value))
        found.append(
            Share(lever, float(share), *p5_p95(result(drawn(world, known, ties, draws)), value))
        )
    return found, together, never
