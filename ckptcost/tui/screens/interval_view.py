"""How often to save, on one tier: the optimum, the interval in force, and one on trial that the
user moves along the curve."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

from ckptcost.core.outcome import HOPELESS_GOODPUT, Outcome
from ckptcost.core.regret import OBJECTIVES, cost_of
from ckptcost.core.units import parse, to_kwh
from ckptcost.jobs.model import compared
from ckptcost.jobs.optimize import Optimum, Point, optimize, point_of
from ckptcost.present.amounts import duration, quantity
from ckptcost.report.study import Study
from ckptcost.tui.desk import Desk, Stamp
from ckptcost.tui.screens.tiers_view import same_figures, with_interval

if TYPE_CHECKING:
    from ckptcost.questions.optimize import Objective

STEP = 1.03
"""one press of an arrow key"""
AROUND = 1.25
"""how far beyond what must be seen the axis goes"""
UNITS = {"time": "goodput", "energy": "kWh", "usd": "USD", "carbon": "kgCO2e"}
"""what the curve of an objective is in"""
_SAME = 1e-6
"""of an interval: closer is the same one"""


class Studied(NamedTuple):
    """One tier, looked at for one objective."""

    desk: Desk
    """the scenario on this tier alone"""
    tier: str
    objective: str
    found: Optimum
    now: Point | None
    """at the interval in force; None where the scenario says none, or asks for the best one"""

    @property
    def best(self) -> Point:
        """The optimum at the stated values of the inputs."""
        return self.found.best

    @property
    def advised(self) -> Point:
        """The robust interval where the best one is uncertain, else the best one."""
        return self.found.recommended

    def at(self, interval_s: float) -> Point:
        """The run at any interval."""
        return point_of(self.found.option, "trial", interval_s)

    def cost(self, outcome: Outcome) -> float:
        """What the curve shows, in people's units: the share of time kept, or what is added."""
        if self.objective == "time":
            return float(outcome.goodput)
        cost = float(cost_of(outcome, self.objective))
        return float(to_kwh(cost)) if self.objective == "energy" else cost

    @property
    def reach_s(self) -> tuple[float, float]:
        """The shortest and the longest interval that the keys go to: the curve, which ends with the
        run, and what is in force."""
        seen = [float(self.found.curve.interval_s[0]), float(self.found.curve.interval_s[-1])]
        if self.now is not None:
            seen += [self.now.interval_s / AROUND, self.now.interval_s * AROUND]
        return min(seen), max(seen)

    def drawn_s(self, trial_s: float) -> tuple[float, float]:
        """The axis: all that can be reached, and the trial, which a row of the table may have put
        beyond it."""
        low_s, high_s = self.reach_s
        return (low_s if low_s <= trial_s else trial_s / AROUND), (
            high_s if trial_s <= high_s else trial_s * AROUND
        )


def alone(desk: Desk) -> tuple[Desk, str]:
    """The scenario on the chosen tier alone, so that one command without --tier says the same."""
    tier = desk.tier_chosen()
    if not tier:
        return replace(desk, tiers=()), tier
    bare = desk.without("tier.id") if desk.tiers else desk
    layers = bare.layers()
    if not compared(layers)[0] and str(bare.resolved("").words.get("tier.id", "")) == tier:
        return replace(bare, tiers=()), tier
    return replace(bare.edited("tier.id", tier), tiers=()), tier


def studied(desk: Desk, objective: str) -> Studied:
    """The optimum of the chosen tier. Raises InputError where there is none, with what is
    lacking."""
    alone_desk, tier = alone(with_interval(desk, objective)[0])
    layers = alone_desk.layers()
    found = optimize(alone_desk.catalog, layers, (), "", objective)
    now = None
    if (
        any(layer.has_cadence for layer in layers)
        and found.option.scenario.policy.cadence != "optimal"
    ):
        now = next((point for point in found.points if point.id == "now"), None)
    return Studied(alone_desk, tier, objective, found, now)


def study(one: Studied) -> Study:
    """What is written to a file."""
    from ckptcost.questions.optimize import optimize

    return optimize(
        one.desk.base,
        changes=one.desk.settings(),
        objective=cast("Objective", one.objective),
        check=0,
        catalog=one.desk.catalog,
    ).study


# the interval on trial: a text that a file or a flag takes, so that what is shown is what is said


def text_of(interval_s: float) -> str:
    """An interval as its field writes it.

    >>> text_of(4183.27), text_of(53_300.0)
    ('4180 s', '14.8 h')
    """
    return quantity(interval_s, "s")


def seconds_of(one: Studied, trial: str) -> float:
    """The interval that a text stands for; those with a name are meant exactly where they read the
    same."""
    for point in (one.now, one.advised, one.best):
        if point is not None and trial == text_of(point.interval_s):
            return point.interval_s
    return parse(trial, "s")


def trial_of(one: Studied) -> str:
    """Where the trial begins: what is in force, else what is advised."""
    return text_of((one.now or one.advised).interval_s)


def moved(one: Studied, trial: str, steps: float) -> str:
    """The trial so many steps along, by at least the last digit shown and as far as the curve goes;
    where it cannot, it stays."""
    here_s = seconds_of(one, trial)
    for wanted_s in (here_s * STEP**steps, here_s * (1.0 + math.copysign(0.011, steps))):
        there = text_of(_within(one.reach_s, wanted_s))
        if there != trial and (seconds_of(one, there) - here_s) * steps > 0:
            return there
    return trial


def why_stayed(one: Studied, trial: str, steps: float) -> str:
    """Why a key did not move the trial."""
    here_s, work_s = seconds_of(one, trial), float(one.found.option.scenario.work_s)
    run = (
        f", and the run has {duration(work_s)} of training"
        if steps > 0 and here_s > 0.99 * work_s
        else ""
    )
    return (
        f"The curve goes no {'longer' if steps > 0 else 'shorter'} than every"
        f" {duration(here_s)}{run}."
    )


def picked(one: Studied, trial: str, interval_s: float) -> str:
    """The trial where the curve was clicked."""
    return text_of(_within(one.drawn_s(seconds_of(one, trial)), interval_s))


def _within(ends_s: tuple[float, float], interval_s: float) -> float:
    return min(max(interval_s, ends_s[0]), ends_s[1])


def applied(one: Studied, desk: Desk, trial: str) -> Desk:
    """The desk with the trial in force: the desk itself where it is, so that no rounding gets into
    what was said another way."""
    seconds = seconds_of(one, trial)
    if one.now is not None and seconds == one.now.interval_s:
        return desk
    return desk.edited(
        "policy.interval",
        trial if abs(parse(trial, "s") / seconds - 1.0) <= _SAME else _written(seconds),
    )


def _written(seconds: float) -> str:
    """The least digits that say the same interval.

    >>> _written(18173.2837), _written(7200.0)
    ('18173.3 s', '7200.0 s')
    """
    texts = (f"{float(f'{seconds:.{digits}g}')} s" for digits in range(4, 18))
    return next(text for text in texts if abs(parse(text, "s") / seconds - 1.0) <= _SAME)


def on_next_tier(desk: Desk) -> Desk:
    """The desk itself where there is only one tier."""
    timed = with_interval(desk)[0]
    shown = timed.tiers_shown()
    at = shown.index(timed.tier_chosen())
    return replace(desk, chosen=shown[(at + 1) % len(shown)]) if len(shown) > 1 else desk


def command(one: Studied, trial: str = "") -> str:
    """What prints the same numbers; a trial that is not among its rows anyway is put in force, and
    so printed as `now`."""
    desk = one.desk
    if trial and all(
        point is None or trial != text_of(point.interval_s)
        for point in (one.now, one.advised, one.best)
    ):
        desk = applied(one, desk, trial)
    return desk.command("optimize", "--objective", one.objective)


def next_objective(objective: str) -> str:
    return OBJECTIVES[(OBJECTIVES.index(objective) + 1) % len(OBJECTIVES)]


def hopeless(outcome: Outcome) -> bool:
    """Whether a run all but never ends."""
    return not float(outcome.goodput) >= HOPELESS_GOODPUT


def same_study(one: Desk, other: Desk | None, stamp: Stamp | None = None) -> bool:
    """Whether two desks ask for the same optimum, and would find the same: the same figures of the
    same tier."""
    return same_figures(one, other, stamp) and other is not None and one.chosen == other.chosen
