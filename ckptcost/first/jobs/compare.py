"""Compare: scenarios side by side, what is known of their differences, and how sure their order is:
the one rule behind every best, tick and front.

The first scenario is what the others are held against. Inputs that two scenarios share are drawn
together, so that the range of a difference does not count an uncertainty that both of them have.

Two totals of which one lacks a line that the other has say nothing of each other: the tier without
a price would always be the cheapest. Where both have the same lines, the order is as sure as the
ranges of the inputs leave it: the share of paired draws in which one costs less than the other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.axes import ALIASES
from ckptcost.first.catalog.figures import Figure
from ckptcost.first.catalog.keys import REFERENCES
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.bill import Bill
from ckptcost.first.core.domain import Number, Scenario
from ckptcost.first.core.draws import SAMPLES, drawn, p5_p95
from ckptcost.first.core.lines import tier_and_kind
from ckptcost.first.core.measures import BILLED, MEASURES
from ckptcost.first.core.numeric import ratio
from ckptcost.first.core.outcome import Outcome, evaluate
from ckptcost.first.core.quantities import BY_OBJECTIVE, LineField
from ckptcost.first.core.regret import cost_of
from ckptcost.first.core.units import HOUR_S
from ckptcost.first.errors import Argument, InputError, UnknownName, brief
from ckptcost.first.jobs.model import Case, case_of, one_of, planned_scenario
from ckptcost.first.layers import Layer, set_layer
from ckptcost.first.scenario import Input, Resolved, ties_of, world_ranges_of

MOST = 6
LETTERS = "ABCDEF"


COUNTED: dict[str, LineField | None] = {
    "time": None,
    **{name: q.field for name, q in BY_OBJECTIVE.items()},
}
"""what of a bill an objective counts; the wall time lacks nothing"""
_SAME = 1e-9
"""relative: a difference that rounding makes is none"""
SURE = 0.95
"""an order that holds in fewer draws is said with its share"""


class Compared(NamedTuple):
    """Scenarios in the order given, the first one the reference."""

    names: tuple[str, ...]
    cases: tuple[Case, ...]
    together: tuple[Outcome, ...]
    """each over the same draws: element i of one belongs to element i of the others"""
    draws: int = SAMPLES


def first_of(catalog: Catalog, layers: Sequence[Layer], draws: int = SAMPLES) -> Case:
    """The scenario as it stands; of one that compares tiers or counts itself, the first, as in
    `ckptcost model`."""
    return case_of(one_of(catalog, layers), draws=draws)


_NEXT = re.compile(r",(?=\s*[a-z0-9_.]+\s*=)")


def _without_entries(flag: Layer, named: Mapping[str, object]) -> Layer:
    """A flag's single inputs hold for each variant; the entry that it names gives way to the
    variant's."""
    return flag._replace(
        sections={
            section: {
                key: value
                for key, value in said.items()
                if section not in named or key != REFERENCES.get(section)
            }
            for section, said in flag.sections.items()
        }
    )


def variant_layers(layers: Sequence[Layer], text: str) -> list[Layer]:
    """The layers with a variant's changes, "tier.id=nas-hdd, policy.mode=async", over everything
    else.

    An entry of the catalogue goes under the flags: what they say of single inputs holds for each
    variant.
    """
    try:
        layer = set_layer(_changes_in(text))._replace(label="--with")
    except InputError as error:
        error.where = Argument("variants")
        raise error.at() from None
    entries: dict[str, dict[str, object]] = {}
    single: dict[str, dict[str, object]] = {}
    for section, values in layer.sections.items():
        for key, value in values.items():
            kind = entries if REFERENCES.get(section) == key else single
            kind.setdefault(section, {})[key] = value
    return [
        *(each for each in layers if not each.is_flag),
        layer._replace(sections=entries),
        *(_without_entries(each, entries) for each in layers if each.is_flag),
        layer._replace(sections=single),
    ]


def _changes_in(text: str) -> list[str]:
    """The path=value of a variant, each path once and by its whole name."""
    changes: dict[str, str] = {}
    parts = _NEXT.split(text)
    for part in map(str.strip, parts):
        name, equals, value = part.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise InputError(
                f"{brief(part or text)} is not path=value",
                where=Argument("variants"),
                remedy='write e.g. --with "tier.id=nas-hdd, policy.mode=async"',
            )
        changes[ALIASES.get(name.strip(), name.strip())] = value
    if len(changes) < len(parts):
        raise InputError(f"{brief(text)} says one thing twice", where=Argument("variants"))
    return [f"{name}={value}" for name, value in changes.items()]


def compare(
    catalog: Catalog, scenarios: Sequence[tuple[str, Sequence[Layer]]], draws: int = SAMPLES
) -> Compared:
    """Each named stack of layers as one column."""
    if len(scenarios) < 2:
        raise InputError(
            "one scenario is nothing to compare",
            where="compare",
            remedy='name a second one, or a variant: --with "tier.id=nas-hdd"',
        )
    if len(scenarios) > MOST:
        raise InputError(
            f"{len(scenarios)} scenarios are more than {MOST}",
            where="compare",
            remedy="`ckptcost sweep` takes any number",
        )
    cases = []
    for name, layers in scenarios:
        try:
            cases.append(first_of(catalog, layers, draws))
        except UnknownName:
            raise
        except InputError as error:
            raise error.at(name) from None
    return Compared(
        tuple(name for name, _ in scenarios), tuple(cases), drawn_together(cases, draws), draws
    )


def _same_figure(one: Figure, other: Figure) -> bool:
    """One uncertain figure in two scenarios: the same, or of the same sources and scaled (a power
    that is a share of two ratings)."""
    if (one.value, one.low, one.high) == (other.value, other.low, other.high):
        return True
    if one.basis != other.basis or not (one.value > 0 and other.value > 0):
        return False
    if _sources(one).isdisjoint(_sources(other)):
        return False

    def is_scaled(mine: float | None, its: float | None) -> bool:
        if mine is None or its is None:
            return False
        return math.isclose(mine * other.value, its * one.value)

    return is_scaled(one.low, other.low) and is_scaled(one.high, other.high)


def _sources(figure: Figure) -> set[str]:
    return {part.strip() for part in figure.source.split(";")}


def drawn_together(cases: Sequence[Case], draws: int = SAMPLES) -> tuple[Outcome, ...]:
    """Every case over draws of its ranges, the same draws for the same figure of the same input."""
    return outcomes_together([(case.resolved, case.outcome) for case in cases], draws)


@np.errstate(over="ignore", invalid="ignore")
def outcomes_together(
    plans: Sequence[tuple[Resolved, Outcome]], draws: int = SAMPLES
) -> tuple[Outcome, ...]:
    """The same of scenarios with their runs, whose intervals stay as they are."""
    seeds: dict[str, list[tuple[Figure, int]]] = {}
    count = 0
    outcomes = []
    for resolved, outcome in plans:
        ranges, ties = world_ranges_of(resolved), ties_of(resolved)
        figures = {i.field: i.figure for i in resolved.inputs}
        mine: dict[str, int] = {}
        for path in sorted(ranges.keys() - ties.keys()):
            known = next(
                (
                    seed
                    for figure, seed in seeds.get(path, [])
                    if _same_figure(figure, figures[path])
                ),
                None,
            )
            if known is None:
                count, known = count + 1, count + 1
                seeds.setdefault(path, []).append((figures[path], known))
            mine[path] = known
        world = planned_scenario(resolved.scenario, outcome)
        for path in sorted(
            ranges
        ):  # each input by itself, in an order of its own: that of its seed
            world = drawn(
                world, {path: ranges[path]}, samples=draws, seed=mine[ties.get(path, path)]
            )
        outcomes.append(evaluate(world) if ranges else outcome)
    return tuple(outcomes)


class Result(NamedTuple):
    """One thing that scenarios are compared by, in base units."""

    id: str
    label: str
    unit: str
    of: Callable[[Scenario, Outcome], Number]
    lines: Callable[[Outcome], tuple[str, ...]]
    """lines it leaves out because they are unknown"""


class ScenarioDifference(NamedTuple):
    """A scenario minus the first one; NaN where a part is unknown in one of them."""

    value: float
    relative: float
    low: float
    high: float
    """5th and 95th percentile"""
    more: float
    """share of the draws in which the scenario has more than the first"""
    without: tuple[str, ...]
    """lines that are unknown in both and in neither sum"""
    lacking: tuple[str, ...]
    """lines that are unknown in one of them only, so that no difference can be told"""
    methods: tuple[str, str] = ("", "")
    """where the two count carbon by grid factors of different methods, so that no difference can be
    told"""

    @property
    def sign_is_certain(self) -> bool:
        return not self.low <= 0.0 <= self.high or self.low == self.high


def _of_run(name: str) -> Result:
    measure = MEASURES[name]
    q = BILLED.get(name)
    return Result(
        name,
        measure.label,
        measure.unit,
        lambda _, o: measure.of(o),
        lambda o: o.run.unknown(q.field) if q else (),
    )


def _of_save(name: str, label: str) -> Result:
    q = BILLED[name]
    return Result(
        f"save_{name}",
        f"{label} of one save",
        q.base,
        lambda _, o: o.one_save.total(q.field),
        lambda o: o.one_save.unknown(q.field),
    )


def _per_useful(name: str, label: str) -> Result:
    """For scenarios of different work: a run's amount over its useful GPU-time."""
    run = _of_run(name)
    return Result(
        f"{name}_per_useful",
        label,
        run.unit,
        lambda s, o: ratio(1000.0 * HOUR_S * run.of(s, o), useful_gpu_s(s)),
        run.lines,
    )


def useful_gpu_s(s: Scenario) -> Number:
    """GPU time of the training itself."""
    return s.work_s * s.cluster.gpus


_WORDS = {"gpu_hours": "GPU-hours", "kwh": "energy", "usd": "cost", "kgco2e": "emissions"}
RESULTS: tuple[Result, ...] = (
    *map(_of_run, ("goodput", "wall", "saves", "interval", "stall", "failures", *BILLED)),
    *(_of_save(name, words) for name, words in _WORDS.items()),
    *(
        _per_useful(name, f"{words.replace('hours', 'hours lost')} per 1,000 useful GPU-hours")
        for name, words in _WORDS.items()
    ),
)


OF_THE_GRID = frozenset({"kgco2e", "save_kgco2e", "kgco2e_per_useful"})
"""what rests on the location-based factor of the grid"""


def difference(answer: Compared, at: int, result: Result) -> ScenarioDifference:
    """How much more the scenario at a place has than the first."""
    first, other = answer.cases[0], answer.cases[at]
    one, two = (float(result.of(case.scenario, case.outcome)) for case in (first, other))
    ours, theirs = set(result.lines(first.outcome)), set(result.lines(other.outcome))
    without, lacking = tuple(sorted(ours & theirs)), tuple(sorted(ours ^ theirs))
    unknown = ScenarioDifference(*(math.nan,) * 5, without, lacking)
    if one != one or two != two or lacking:
        return unknown
    methods = first.resolved.grid_method, other.resolved.grid_method
    if result.id in OF_THE_GRID and methods[0] != methods[1]:
        return unknown._replace(methods=methods)
    if math.inf in (abs(one), abs(two)):
        return unknown._replace(value=0.0 if one == two else two - one)
    rise = _rise(answer, at, result)
    low, high = p5_p95(rise, two - one)
    more = float(np.mean(rise > 0)) if rise.ndim else float(two > one)
    relative = ratio(two - one, one) if one else math.nan
    return ScenarioDifference(two - one, relative, low, high, more, without, ())


@np.errstate(over="ignore", invalid="ignore")
def _rise(answer: Compared, at: int, result: Result) -> NDArray[np.float64]:
    """The difference in every draw."""
    first, other = (
        np.asarray(result.of(answer.cases[i].scenario, answer.together[i]), dtype=float)
        for i in (0, at)
    )
    return np.asarray(other - first)


def line_difference(
    first: Bill, other: Bill, line_id: str, quantity: LineField
) -> tuple[float, float, float]:
    """(first, other, other minus first) of one line; a line that a bill does not have is 0, an
    unknown one NaN."""
    one, two = (
        float(getattr(next((x for x in bill.lines if x.id == line_id), None), quantity, 0.0))
        for bill in (first, other)
    )
    return one, two, (0.0 if one == two else two - one)


def lines_of(answer: Compared) -> list[str]:
    """Ids of the lines that any of the bills has, in the order of a bill."""
    return list(dict.fromkeys(line.id for case in answer.cases for line in case.outcome.run.of()))


class Changed(NamedTuple):
    """One input that is not the same in the first scenario and another; None where a scenario has
    no such input."""

    path: str
    first: Input | None
    other: Input | None


def changed_inputs(first: Case, other: Case) -> list[Changed]:
    """Inputs with another value or range."""
    one, two = ({i.path: i for i in case.resolved.inputs} for case in (first, other))

    def figure(i: Input | None) -> object:
        return i and (i.figure.value, i.figure.low, i.figure.high)

    return [
        Changed(path, one.get(path), two.get(path))
        for path in sorted({*one, *two})
        if figure(one.get(path)) != figure(two.get(path))
    ]


def changed_words(first: Case, other: Case) -> list[tuple[str, object, object]]:
    """Choices that differ: (path, first, other)."""
    one, two = first.resolved.words, other.resolved.words
    return [
        (path, one.get(path), two.get(path))
        for path in sorted({*one, *two})
        if one.get(path) != two.get(path)
    ]


class Order(NamedTuple):
    """The runs by what they cost, the least first; and in how many draws the first costs less than
    each."""

    at: tuple[int, ...]
    cheaper: tuple[float, ...]
    """share of the paired draws in which the first of the order costs less; by place of the runs,
    NaN for the first itself and for those that cost the same in every draw"""
    alike: tuple[int, ...] = ()
    """places of the runs that cost as much as the first in every draw: nothing tells them apart"""


def missing_keys(bills: Sequence[Bill], quantity: LineField | None) -> tuple[str, ...]:
    """Keys of lines that some of the bills have and others lack; empty where all can be held
    against each other."""
    if quantity is None:
        return ()
    lacking = [set(bill.unknown(quantity)) for bill in bills]
    lines = {line for each in lacking for line in each if not all(line in x for x in lacking)}
    return tuple(sorted({key_of(line) for line in lines}))


def key_of(line_id: str) -> str:
    """The input that would supply an unknown line.

    >>> key_of("retention"), key_of("second_network"), key_of("gpu_wait")
    ('tier.storage_price', 'second_tier.network_energy', 'cluster (gpu_wait)')
    """
    tier, kind = tier_and_kind(line_id)
    return f"{tier}.{kind.rate}" if kind.rate else f"cluster ({line_id})"


def undecided_keys(outcomes: Sequence[Outcome], objective: str) -> tuple[str, ...]:
    """Keys that decide the order of runs for an objective and are given for some of them only."""
    return missing_keys([outcome.run for outcome in outcomes], COUNTED[objective])


def rank_runs(
    runs: Sequence[tuple[Resolved, Outcome]], objective: str, draws: int = SAMPLES
) -> Order:
    """Runs that lack the same lines, by their cost; of those alike, the first named."""
    costs = [float(cost_of(outcome, objective)) for _, outcome in runs]
    at = sorted(range(len(runs)), key=lambda i: (costs[i] != costs[i], costs[i]))
    if len(runs) < 2:
        return Order(tuple(at), (float("nan"),) * len(runs))
    with np.errstate(over="ignore", invalid="ignore"):
        drawn = [
            np.asarray(cost_of(outcome, objective), dtype=float)
            for outcome in outcomes_together(runs, draws)
        ]
        first = drawn[at[0]]
        cheaper = [float(np.mean(first < other)) for other in drawn]
    alike = tuple(i for i in at[1:] if np.allclose(drawn[i], first, rtol=_SAME, atol=0.0))
    unsaid = {at[0], *alike}
    return Order(
        tuple(at),
        tuple(float("nan") if i in unsaid else each for i, each in enumerate(cheaper)),
        alike,
    )
