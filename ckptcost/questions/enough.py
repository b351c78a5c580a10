"""How much of a figure is enough for a target: its quantities, and the search for their edges.

A trial is the job with one figure changed and all that follow it. A target is met at a value in a
share of the draws; the values at which that share is large enough form a band, and its edges are
what `need` answers with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ckptcost.advice import settled
from ckptcost.errors import InputError
from ckptcost.questions import common as q
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import CADENCES, KEYS, Array
from ckptcost.scenario.units import parse, per, show, split
from ckptcost.study import Study, unit_of

GRID, ZOOM, REACH = 65, 13, 1e4
"""values tried at first, and between two of them later; so many times less and more than today's"""
ROUGH, FINE = 512, 2048
"""draws of the first round, and of the later ones"""
BACK = ("failures.detect", "failures.reschedule", "failures.init", "failures.warmup")


class Quantity(NamedTuple):
    """What is asked for: the figure that is changed, and how people say it."""

    path: str
    name: str
    unit: str
    inverse: bool = False
    """its value is one over the figure's: failures a day are one over the time between them"""
    together: tuple[str, ...] = ()
    """figures that change in the same ratio; the value is their sum"""

    @property
    def head(self) -> str:
        """Of its column."""
        return "failures /day" if self.inverse else self.name

    @property
    def is_cadence(self) -> bool:
        return self.path.partition(".")[2] in CADENCES

    def say(self, value: float, digits: int = 3) -> str:
        return "0" if value == 0 else show(value, self.unit, digits)

    def now(self, base: Scenario, study: Study) -> float:
        """Today's value; NaN if there is none."""
        figures = base.figures()
        if self.together:
            return sum(figures[path].value for path in self.together if path in figures)
        if self.path == "failures.mtbf":
            rate = study.stated_of(study.stated.plan.rate, 0)
            return rate if self.inverse else 1.0 / rate if rate > 0 else math.inf
        if self.path in OUTCOMES:
            return study.value(OUTCOMES[self.path], 0)
        if self.path in figures:
            return figures[self.path].value
        save = study.stated.plan.first
        return (
            study.stated_of(save.written / save.write, 0) if self.path == "tier.write" else math.nan
        )

    def tried(self, base: Scenario, value: float, now: float) -> Scenario:
        """The job with another value."""
        if self.together:
            for path in self.together:
                if path in base.figures():
                    figure = base.figures()[path].scaled(value / now)
                    base = base.with_figure(path, figure)
            return base
        return base.with_figure(
            self.path, q.figure_at(self.path, 1.0 / value if self.inverse else value)
        )


STALLS = ("policy.snapshot", "tier.save_time")
"""what makes an asynchronous save wait, and a synchronous one"""
OUTCOMES = {**dict.fromkeys(STALLS, "stall"), "policy.interval": "interval"}
"""figures whose value of today is read off the outcome"""


def quantity_of(word: str, base: Scenario) -> Quantity:
    """By its name on the command line: one of these, or the key of any figure."""
    is_async = base.said["policy"].get("mode") == "async"
    named = {
        "write": Quantity("tier.write", "write rate", "B/s"),
        "bandwidth": Quantity("tier.write", "write rate", "B/s"),
        "stall": Quantity(STALLS[not is_async], "stall", "s"),
        "rate": Quantity("failures.mtbf", "failure rate", "/day", inverse=True),
        "mtbf": Quantity("failures.mtbf", "time between failures", "s"),
        "recovery": Quantity("failures.detect", "recovery time", "s", False, BACK),
        "interval": Quantity("policy.interval", "interval", "s"),
    }
    if word in named:
        return named[word]
    path = q.path_of(word)
    section, key = path.split(".")
    about = KEYS[section][key].metadata
    q.demand("example" in about, "is a word, not a figure", path, "try write, stall or mtbf")
    stepless = path == "policy.steps" and "step" not in base.said["policy"]
    q.demand(not stepless, "needs the time of a step", path, '--set policy.step="12 s"')
    named_by_path = {each.path: each for name, each in named.items() if name != "rate"}
    return named_by_path.get(path, Quantity(path, path, unit_of(path)))


# --- trials ---------------------------------------------------------------------------------------


class Trials(NamedTuple):
    """A job, what is changed of it, and the target."""

    base: Scenario
    quantity: Quantity
    target: q.Target
    keeps: bool
    """the interval stays as it is"""
    now: float
    size: float
    """of a save"""

    def at(self, values: Sequence[float], draws: int | None, rounded: bool = False) -> Study:
        """The job at these values; each takes its best interval, rounded as it is recommended."""
        open_ = self.base if self.keeps else _open(self.base)
        cases = {str(i): self.quantity.tried(open_, v, self.now) for i, v in enumerate(values)}
        if rounded:
            cases = {name: settled(each) for name, each in cases.items()}
        try:
            return Study(cases, draws)
        except InputError as error:
            error.where = self.quantity.path
            raise

    def shares(self, values: Sequence[float], draws: int) -> Array:
        """In which share of the draws the target is met at each value."""
        study = self.at(values, draws)
        return np.array([self.target.met_by(study, row).share for row in range(len(values))])

    def values(self) -> Array:
        """Values far below and above today's, within what the figure can be."""
        section, key = self.quantity.path.split(".")
        about = KEYS[section][key].metadata
        least, most = about["least"], about["most"]
        if self.quantity.inverse:
            least, most = 1.0 / most, 1.0 / max(least, 1e-3)
        if self.quantity.together:
            least, most = 0.0, 1e12
        near = self.now
        if not 0 < near < math.inf:
            near = parse(about["example"], about["example"]) or per(split(about["example"]))
        low, high = max(near / REACH, least, 1e-12), min(near * REACH, most)
        return np.geomspace(low, max(high, low * 2.0), GRID)


def trials_of(
    base: Scenario, today: Study, word: str, target: q.Target, keep_interval: bool
) -> Trials:
    """Of a job as it stands."""
    quantity = quantity_of(word, base)
    now = quantity.now(base, today)
    size = today.stated_of(today.stated.plan.first.written, 0)
    if quantity.path == "tier.save_time":
        base = base.with_figure("tier.timed_size", q.figure_at("tier.timed_size", size))
    return Trials(base, quantity, target, keep_interval or quantity.is_cadence, now, size)


def _open(scenario: Scenario) -> Scenario:
    """Without a cadence of its own: the best interval of each trial."""
    policy = {k: v for k, v in scenario.said["policy"].items() if k not in CADENCES}
    return replace(scenario, said=scenario.said | {"policy": policy | {"optimal": "time"}})


# --- edges ----------------------------------------------------------------------------------------


class Band(NamedTuple):
    """Values that meet a target; None: no edge within reach."""

    least: float | None
    most: float | None


def band(trials: Trials, values: Array, shares: Array, level: float, draws: int) -> Band | None:
    """The values nearest to today's at which a target is met in such a share of the draws."""
    ok = shares >= level
    if not ok.any():
        return None
    now = trials.now if 0 < trials.now < math.inf else float(values[len(values) // 2])
    near = min(np.flatnonzero(ok), key=lambda i: abs(math.log(values[i] / now)))
    first = last = int(near)
    while first > 0 and ok[first - 1]:
        first -= 1
    while last < len(ok) - 1 and ok[last + 1]:
        last += 1
    least = _edge(trials, values[first - 1], values[first], level, draws) if first else None
    most = (
        _edge(trials, values[last + 1], values[last], level, draws) if last + 1 < len(ok) else None
    )
    return Band(least, most)


def _edge(trials: Trials, bad: float, good: float, level: float, draws: int) -> float:
    """The last value that meets the target on the way from one that does to one that does not."""
    for _ in range(2):
        between = np.geomspace(good, bad, ZOOM)
        ok = trials.shares(between.tolist(), draws) >= level
        stops = np.flatnonzero(~ok[1:]) if ok[0] else np.array([0])
        at = int(stops[0]) if len(stops) else ZOOM - 2
        good, bad = float(between[at]), float(between[at + 1])
    return good


def rounded(value: float, unit: str, up: bool, digits: int = 2) -> float:
    """To so many digits in the unit that people read, never back over the edge.

    >>> rounded(17.31e9, "B/s", True), rounded(251.0, "s", False)
    (18000000000.0, 246.0)
    """
    name = show(value, unit).partition(" ")[2]
    size = 0.01 if name == "%" else per(name) if name else per(unit)
    step = 10.0 ** (math.floor(math.log10(value / size)) - digits + 1)
    found = (math.ceil if up else math.floor)(
        value / size / step * (1 - 1e-12 if up else 1 + 1e-12)
    )
    return float(f"{found * step * size:.12g}")


def settled_edge(
    trials: Trials, edge: float, up: bool, level: float | None, draws: int | None
) -> tuple[float, Study]:
    """An edge as people type it, at which the plan as it is recommended meets the target."""
    for step in range(STEPS):
        further = edge * (1.0 + (GROWTH if up else -GROWTH) * step)
        value = rounded(further, trials.quantity.unit, up)
        study = trials.at([value], draws, rounded=not trials.keeps)
        if _meets(trials.target, study, level):
            break
    return value, study


STEPS, GROWTH = 12, 0.03
"""a recommended interval is not exactly the best one, so that a little more may be needed"""


def _meets(target: q.Target, study: Study, level: float | None) -> bool:
    if level is not None:
        return target.met_by(study, 0).share >= level
    value = study.value(target.measure, 0)
    return value >= target.limit if target.at_least else value <= target.limit


def extreme(trials: Trials, values: Array, shares: Array) -> float:
    """The value at which the target is met most often, or missed by least."""
    if shares.max() > shares.min():
        return float(values[int(np.argmax(shares))])
    reached = trials.at(values.tolist(), 0).of(trials.target.measure)[:, 0]
    return float(values[int(np.nanargmax(reached if trials.target.at_least else -reached))])
