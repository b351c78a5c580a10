"""How much of a figure is enough for a target.

A trial is the job with one figure changed and all that follow it. A target is met at a value in a
share of the draws; the values at which that share is large enough form a band around today's, and
its edges are what `need` answers with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ckptcost.advice import settled
from ckptcost.errors import InputError
from ckptcost.plan import physics as ph
from ckptcost.questions import common as q
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import CADENCES, KEYS, Array
from ckptcost.scenario.units import parse, per, show, split
from ckptcost.study import Study, unit_of

GRID, ZOOM, REACH = 65, 26, 1e4
"""values tried at first, and around an edge later; so many times less and more than today's"""
ROUGH, FINE = 512, 2048
"""draws of the first round, and of the later one"""


# --- what is asked for ----------------------------------------------------------------------------


class Quantity(NamedTuple):
    """Figures that are set together, and how people call what they add up to."""

    name: str
    unit: str
    now: float
    """today's value; NaN if the job has none"""
    parts: dict[str, float]
    """by figure, its share of the value"""
    fixed: dict[str, float]
    """figures without which these have no meaning"""

    @property
    def is_cadence(self) -> bool:
        return any(path.partition(".")[2] in CADENCES for path in self.parts)

    def figures(self, value: float) -> dict[str, float]:
        """What is set for a value."""
        return {path: share * value for path, share in self.parts.items()} | self.fixed

    def say(self, value: float) -> str:
        return show(value, self.unit)


NAMES = {
    "tier.write": "write rate",
    "tier.read": "read rate",
    "tier.save_time": "stall",
    "policy.snapshot": "stall",
    "policy.interval": "interval",
    "failures.mtbf": "MTBF",
}
OUTCOMES = {
    "tier.save_time": "stall",
    "policy.snapshot": "stall",
    "policy.interval": "interval",
    "failures.mtbf": "mtbf",
}
"""figures whose value of today is read off the outcome, whether the job gives it or not"""
STALLS = ("tier.save_time", "policy.snapshot")
"""what makes a synchronous save wait, and an asynchronous one"""
ALIASES = {"bandwidth": "tier.write", "rate": "failures.mtbf"}
RECOVERY = ("failures.detect", "failures.reschedule", "failures.init", "failures.warmup")


def quantity_of(word: str, base: Scenario, today: Study) -> Quantity:
    """By its name on the command line, or by the key of any figure."""
    figures = {path: figure.value for path, figure in base.figures().items()}
    if word == "recovery":
        parts = {path: figures[path] for path in RECOVERY if path in figures}
        whole = sum(parts.values()) or math.inf
        parts = {path: value / whole for path, value in parts.items()}
        return Quantity("recovery time", "s", whole, parts, {})
    is_async = q.np_text(today.w.policy.mode, 0) == "async"
    path = q.path_of({"stall": STALLS[is_async], **ALIASES}.get(word, word))
    section, key = path.split(".")
    is_figure = "example" in KEYS[section][key].metadata
    q.demand(is_figure, "is a word, not a figure", path, "try write, stall or mtbf")
    stepless = path == "policy.steps" and "policy.step" not in figures
    q.demand(not stepless, "needs the time of a step", path, '--set policy.step="12 s"')
    size = today.stated_of(today.stated.plan.first.written, 0)
    unit = unit_of(path)
    return Quantity(
        NAMES.get(path, path),
        "B/s" if unit == "GB/s" else unit,
        _today(path, figures, today),
        {path: 1.0},
        {"tier.timed_size": size} if path == "tier.save_time" else {},
    )


def _today(path: str, figures: dict[str, float], study: Study) -> float:
    if path in OUTCOMES:
        return study.value(OUTCOMES[path], 0)
    if path in ("tier.write", "tier.read") and path not in figures:
        return study.stated_of(ph.rate(study.w, study.w.tier, path[5:]), 0)
    return figures.get(path, math.nan)


# --- the search -----------------------------------------------------------------------------------


class Trial(NamedTuple):
    """A value, and the plan with it: saving as often as is recommended then."""

    value: float
    study: Study


class Level(NamedTuple):
    """What is enough in a share of the draws (None: at the stated values)."""

    share: float | None
    possible: bool = False
    least: Trial | None = None
    most: Trial | None = None
    """neither of them though it is possible: no value within reach misses the target"""

    @property
    def edges(self) -> list[Trial]:
        return [edge for edge in (self.least, self.most) if edge]


class Search:
    """Of one quantity of one job, for one target."""

    def __init__(
        self,
        base: Scenario,
        quantity: Quantity,
        target: q.Target,
        keeps_interval: bool,
        draws: int | None,
    ) -> None:
        self.quantity, self.target, self.draws = quantity, target, draws
        self.keeps = keeps_interval or quantity.is_cadence
        self.base = base if self.keeps else _open(base)
        section, key = next(iter(quantity.parts)).split(".")
        about: Any = KEYS[section][key].metadata
        example = parse(about["example"], about["example"]) or per(split(about["example"]))
        self.near = near = quantity.now if 0 < quantity.now < math.inf else example
        most = 0.99 * about["most"]  # with all of the training speed lost, no run ends
        low, high = max(near / REACH, about["least"], 1e-12), min(near * REACH, most)
        self.values = np.geomspace(low, max(high, low * 2.0), GRID)
        """far below and above today's, within what the figure can be"""

    def study(self, values: Sequence[float], draws: int | None, settle: bool = False) -> Study:
        """The job at these values, each at its best interval, or at the one that is recommended."""
        cases = {str(value): self.base for value in values}
        for value in values:
            for path, each in self.quantity.figures(value).items():
                figure = q.figure_at(path, each)
                cases[str(value)] = cases[str(value)].with_figure(path, figure)
        if settle:
            cases = {name: settled(each) for name, each in cases.items()}
        try:
            return Study(cases, draws)
        except InputError as error:
            error.where = next(iter(self.quantity.parts))
            raise

    def _shares(self, values: Sequence[float], draws: int) -> Array:
        """In which share of the draws the target is met at each value."""
        study = self.study(values, draws)
        return np.array([self.target.met_by(study, row).share for row in range(len(values))])

    @cached_property
    def _stated(self) -> Array:
        return self._shares(self.values.tolist(), 0)

    @cached_property
    def _drawn(self) -> Array:
        return self._shares(self.values.tolist(), ROUGH)

    def level(self, share: float | None) -> Level:
        """The band of values around today's that are enough."""
        values = self.values
        ok = (self._stated if share is None else self._drawn) >= (share or 1.0)
        if not ok.any():
            return Level(share)
        near = min(np.flatnonzero(ok), key=lambda at: abs(math.log(values[at] / self.near)))
        below, above = (np.flatnonzero(~ok[:near]), near + np.flatnonzero(~ok[near:]))
        least = most = None
        if len(below):
            least = self._edge(values[below[-1]], values[below[-1] + 1], share)
        if len(above):
            most = self._edge(values[above[0]], values[above[0] - 1], share)
        is_lost = (len(below) and not least) or (len(above) and not most)
        return Level(share) if is_lost else Level(share, True, least, most)

    def _edge(self, bad: float, good: float, share: float | None) -> Trial | None:
        """On the way from a value that misses the target to one that meets it and a step beyond:
        the first one, as people type it, at which the plan that is recommended meets it."""
        tried = np.clip(np.geomspace(bad, good * good / bad, ZOOM), self.values[0], self.values[-1])
        values = list(dict.fromkeys(as_typed(x, self.quantity.unit) for x in tried))
        shares = self._shares(values, 0 if share is None else FINE)
        for value in np.array(values)[shares >= (share or 1.0)].tolist():
            trial = Trial(value, self.study([value], self.draws, settle=not self.keeps))
            if self._meets(trial.study, share):
                return trial
        return None

    def _meets(self, study: Study, share: float | None) -> bool:
        if share is None:
            return bool(self.target.holds(study.value(self.target.measure, 0)))
        return self.target.met_by(study, 0).share >= share

    def nearest(self) -> Trial:
        """What comes nearest to the target at the stated values."""
        reached = self.study(self.values.tolist(), 0).of(self.target.measure)[:, 0]
        at = int(np.nanargmax(reached if self.target.at_least else -reached))
        value = as_typed(float(self.values[at]), self.quantity.unit)
        return Trial(value, self.study([value], self.draws, settle=not self.keeps))


def _open(scenario: Scenario) -> Scenario:
    """Without a cadence of its own: the best interval of each trial."""
    policy = {k: v for k, v in scenario.said["policy"].items() if k not in CADENCES}
    return replace(scenario, said=scenario.said | {"policy": policy | {"optimal": "time"}})


def as_typed(value: float, unit: str) -> float:
    """To two digits in the unit that people read.

    >>> as_typed(17.31e9, "B/s"), as_typed(251.0, "s")
    (17000000000.0, 252.0)
    """
    name = show(value, unit).partition(" ")[2]
    size = 0.01 if name == "%" else per(name or unit)
    return float(f"{float(f'{value / size:.2g}') * size:.12g}")
