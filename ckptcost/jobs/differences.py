"""What scenarios are compared by, and what can be said of a difference: its range, its sign, and
what it leaves out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ckptcost.core.bill import Bill
from ckptcost.core.domain import Number, Scenario
from ckptcost.core.draws import p5_p95
from ckptcost.core.measures import BILLED, MEASURES
from ckptcost.core.numeric import ratio
from ckptcost.core.outcome import Outcome
from ckptcost.core.quantities import LineField
from ckptcost.core.units import HOUR_S
from ckptcost.jobs.compare import Compared
from ckptcost.jobs.model import Case
from ckptcost.scenario import Input


class Result(NamedTuple):
    """One thing that scenarios are compared by, in base units."""

    id: str
    label: str
    unit: str
    of: Callable[[Scenario, Outcome], Number]
    lines: Callable[[Outcome], tuple[str, ...]]
    """lines it leaves out because they are unknown"""


class Difference(NamedTuple):
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


def difference(answer: Compared, at: int, result: Result) -> Difference:
    """How much more the scenario at a place has than the first."""
    first, other = answer.cases[0], answer.cases[at]
    one, two = (float(result.of(case.scenario, case.outcome)) for case in (first, other))
    left_out = [set(result.lines(case.outcome)) for case in (first, other)]
    without, lacking = (
        tuple(sorted(left_out[0] & left_out[1])),
        tuple(sorted(left_out[0] ^ left_out[1])),
    )
    nothing = float("nan")
    if one != one or two != two or lacking:
        return Difference(nothing, nothing, nothing, nothing, nothing, without, lacking)
    methods = first.resolved.grid_method, other.resolved.grid_method
    if result.id in OF_THE_GRID and methods[0] != methods[1]:
        return Difference(nothing, nothing, nothing, nothing, nothing, without, (), methods)
    if np.isinf(one) or np.isinf(two):
        return Difference(
            0.0 if one == two else two - one, nothing, nothing, nothing, nothing, without, ()
        )
    with np.errstate(over="ignore", invalid="ignore"):
        drawn_ = [
            np.asarray(result.of(answer.cases[i].scenario, answer.together[i]), dtype=float)
            for i in (0, at)
        ]
        rise = np.asarray(drawn_[1] - drawn_[0])
    low, high = p5_p95(rise, two - one)
    more = float(np.mean(rise > 0)) if rise.ndim else float(two > one)
    return Difference(
        two - one, ratio(two - one, one) if one else nothing, low, high, more, without, ()
    )


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


def inputs_changed(first: Case, other: Case) -> list[Changed]:
    """Inputs with another value or range."""
    one, two = ({i.path: i for i in case.resolved.inputs} for case in (first, other))

    def figure(i: Input | None) -> object:
        return i and (i.figure.value, i.figure.low, i.figure.high)

    return [
        Changed(path, one.get(path), two.get(path))
        for path in sorted({*one, *two})
        if figure(one.get(path)) != figure(two.get(path))
    ]


def words_changed(first: Case, other: Case) -> list[tuple[str, object, object]]:
    """Choices that differ: (path, first, other)."""
    one, two = first.resolved.words, other.resolved.words
    return [
        (path, one.get(path), two.get(path))
        for path in sorted({*one, *two})
        if one.get(path) != two.get(path)
    ]
