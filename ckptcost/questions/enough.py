"""How much of a figure is enough for a target.

A trial is the job with one figure changed and all that follow it, saving as often as is recommended
then; one that does not work meets no target. The values at which the share of draws that meet it is
large enough form a band around today's, and its edges are what `need` answers with.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ckptcost.advice import settled
from ckptcost.answer import Caution
from ckptcost.errors import InputError
from ckptcost.plan import physics as ph
from ckptcost.questions import common as q
from ckptcost.questions import one, ranks
from ckptcost.scenario import resolve as sc
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import CADENCES, is_figure
from ckptcost.scenario.units import is_count, parse, per, show, split
from ckptcost.study import Study, unit_of

GRID, ADVISED, REACH = 65, 9, 1e4
"""values tried at first, fewer if an advice has to be sought for each; so many times less and more
than today's"""


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
    whole: bool = False
    """a number of things"""

    @property
    def is_cadence(self) -> bool:
        return any(path.partition(".")[2] in CADENCES for path in self.parts)

    def figures(self, value: float) -> dict[str, float]:
        """What is set for a value."""
        return {path: share * value for path, share in self.parts.items()} | self.fixed

    def say(self, value: float) -> str:
        return show(value, self.unit)

    def as_typed(self, value: float) -> float:
        """To two digits in the unit that people read, or a whole number."""
        name = show(value, self.unit).partition(" ")[2]
        size = 0.01 if name == "%" else per(name or self.unit)
        found = float(f"{float(f'{value / size:.2g}') * size:.12g}")
        return max(1.0, round(found)) if self.whole else found


NAMED = {
    "tier.save_time": ("stall", "stall"),
    "policy.snapshot": ("stall", "stall"),
    "policy.interval": ("interval", "interval"),
    "policy.saves": ("number of saves", "saves"),
    "failures.mtbf": ("MTBF", "mtbf"),
}
"""what a figure is called here, and the measure that has its value of today"""
RECOVERY = ("failures.detect", "failures.reschedule", "failures.init", "failures.warmup")


def quantity_of(word: str, base: Scenario, today: Study) -> Quantity:
    """By its name on the command line, or by the key of any figure."""
    figures = {path: figure.value for path, figure in base.figures().items()}
    if word == "recovery":
        return _recovery(figures)
    is_async = q.np_text(today.w.policy.mode, 0) == "async"
    stall = "policy.snapshot" if is_async else "tier.save_time"
    path = q.path_of(
        {"stall": stall, "bandwidth": "tier.write", "rate": "failures.mtbf"}.get(word, word)
    )
    _demand_sense(path, figures)
    size = today.stated_of(today.stated.plan.first.written, 0)
    fixed = {"tier.timed_size": size} if path == "tier.save_time" else {}
    (name, measure), unit = NAMED.get(path, (one.words_of(path), "")), unit_of(path)
    now = today.value(measure, 0) if measure else figures.get(path, math.nan)
    if path in ("tier.write", "tier.read") and path not in figures:
        now = today.stated_of(ph.rate(today.w, today.w.tier, path[5:]), 0)
    whole = is_count(one.about_of(path)["example"])
    return Quantity(name, "B/s" if unit == "GB/s" else unit, now, {path: 1.0}, fixed, whole)


def _recovery(figures: dict[str, float]) -> Quantity:
    """Its pieces in the proportion that they have."""
    parts = {path: figures[path] for path in RECOVERY if path in figures}
    whole = sum(parts.values()) or math.inf
    shares = {path: value / whole for path, value in parts.items()}
    return Quantity("recovery time", "s", whole, shares, {})


def _demand_sense(path: str, figures: dict[str, float]) -> None:
    """Refuse what is no figure, and what changes nothing in this job."""
    section, key = path.split(".")
    q.demand(is_figure(section, key), "is a word, not a figure", path, "try write, stall or mtbf")
    void = section == "failures" and key in sc.RATES and "failures.mtbf" in figures
    q.demand(not void, "means nothing for a job that gives its mtbf", path, "ckptcost need mtbf")
    stepless = path == "policy.steps" and "policy.step" not in figures
    q.demand(not stepless, "needs the time of a step", path, '--set policy.step="12 s"')


# --- the search -----------------------------------------------------------------------------------


class Trial(NamedTuple):
    """A value, and the plan with it: saving as often as is recommended then."""

    value: float
    study: Study
    stop: Caution | None
    """why that plan does not work: it meets no target then"""


class Level(NamedTuple):
    """The values that are enough in a share of the draws, or at the stated values."""

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
        draws: int,
    ) -> None:
        self.quantity, self.target, self.draws = quantity, target, draws
        self.keeps = keeps_interval or quantity.is_cadence
        self.base = base if self.keeps else q.opened(base)
        about = one.about_of(next(iter(quantity.parts)))
        example = parse(about["example"], about["example"]) or per(split(about["example"]))
        near = quantity.now if 0 < quantity.now < math.inf else example
        self.low = max(near / REACH, about["least"], 1e-12)
        self.high = max(min(near * REACH, 0.99 * about["most"]), 2.0 * self.low)
        # with all of the training speed lost, no run ends
        steps = np.geomspace(1.0 / REACH, REACH, GRID if self.keeps else ADVISED)
        tried = {self.low, self.high, *(near * steps).tolist()}
        tried = {quantity.as_typed(x) if quantity.whole else x for x in tried} | {near}
        self.values = sorted(x for x in tried if self.low <= x <= self.high)
        """far below and above today's, within what the figure can be"""
        self.near = min(self.values, key=lambda x: abs(math.log(x / near)))
        self._tried: dict[float, Trial] = {}

    def trial(self, value: float) -> Trial:
        """The job at this value, at its own interval or at the one that is recommended."""
        if value not in self._tried:
            scenario = q.with_values(self.base, self.quantity.figures(value))
            try:
                study = Study({"": scenario if self.keeps else settled(scenario)}, self.draws)
            except InputError as error:
                error.where = next(iter(self.quantity.parts))
                raise
            self._tried[value] = Trial(value, study, ranks.stop_of(study))
        return self._tried[value]

    def meets(self, value: float, share: float | None) -> bool:
        """Whether the plan at a value works and meets the target: at the stated values, or in that
        share of the draws."""
        trial = self.trial(value)
        if trial.stop:
            return False
        if share is None:
            return bool(self.target.holds(trial.study.value(self.target.measure, 0)))
        return self.target.met_by(trial.study, 0).share >= share

    def level(self, share: float | None) -> Level:
        """The band of values around today's that are enough."""
        values, ok = self.values, [self.meets(value, share) for value in self.values]
        if not any(ok):
            return Level()
        good = [at for at, is_good in enumerate(ok) if is_good]
        at = min(good, key=lambda i: abs(math.log(values[i] / self.near)))
        below = [i for i in range(at) if not ok[i]]
        above = [i for i in range(at, len(ok)) if not ok[i]]
        least = self._edge(values[below[-1]], values[below[-1] + 1], share) if below else None
        most = self._edge(values[above[0]], values[above[0] - 1], share) if above else None
        return Level(True, least, most)

    def _edge(self, bad: float, good: float, share: float | None) -> Trial:
        """Between a value that misses the target and one that meets it: the last one, as people
        type it, that meets it."""
        while (middle := self.quantity.as_typed(math.sqrt(bad * good))) not in (bad, good):
            if not min(bad, good) < middle < max(bad, good):
                break
            if self.meets(middle, share):
                good = middle
            else:
                bad = middle
        return self.trial(good)

    def nearest(self) -> Trial | None:
        """What comes nearest to the target at the stated values, of all that works."""
        sign, measure = (-1.0 if self.target.at_least else 1.0), self.target.measure
        found = {
            each.value: sign * each.study.value(measure, 0)
            for each in map(self.trial, self.values)
            if not each.stop
        }
        known = {value: x for value, x in found.items() if x == x}
        return self.trial(min(known, key=lambda value: known[value])) if known else None
