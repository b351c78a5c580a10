"""How often to save, on one tier: `optimize`'s tables and sentences, the curve, and an interval on
trial that the user moves along it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ckptcost.first.core.measures import MEASURES, saves_per_day
from ckptcost.first.core.optimum import regret_light
from ckptcost.first.core.outcome import HOPELESS_GOODPUT
from ckptcost.first.core.regret import WITHIN
from ckptcost.first.core.units import parse
from ckptcost.first.jobs.model import comparison_of
from ckptcost.first.jobs.optimize import Optimum, Point, optimize, point_of
from ckptcost.first.present.amounts import duration, number, quantity, share
from ckptcost.first.present.chart import Band, Chart, Curve, Dot, Rule
from ckptcost.first.present.grid import Grid, Tone
from ckptcost.first.report.studies.optimize import WORTH_SAYING, as_it_stands, rules_line, study_of
from ckptcost.first.report.studies.run_columns import (
    COSTS,
    amounts_of,
    known_value,
    regret_value,
    row_of,
)
from ckptcost.first.report.studies.solve import parts_table
from ckptcost.first.report.study import Column, Study, Table
from ckptcost.first.tui.desk import Desk, Stamp
from ckptcost.first.tui.screens.model_runs import no_headway, rank_tone
from ckptcost.first.tui.study_grids import grid_of, with_columns

Line = tuple[str, Tone]
STEP = 1.03
"""one press of an arrow key"""
AROUND = 1.25
"""how far beyond what must be seen the axis goes"""
TOGETHER = 1.06
"""optima this close share one rule: no screen could draw them apart"""
COLUMNS = {"time": "goodput", "energy": "energy", "usd": "cost", "carbon": "carbon"}
"""what the curve of an objective shows, as `optimize` calls it"""
UNITS = {"time": "goodput", "energy": "kWh", "usd": "USD", "carbon": "kgCO2e"}
OVER = Column("over", "over best", "share", "what the interval costs over the least")
LABELS = {"at": "saving at", "interval": "every", "goodput": "goodput", "energy": "kWh"} | {
    "cost": "USD",
    "over": "over best",
    "carbon": "kgCO2e",
    "saves_per_day": "saves/day",
}
LIGHTS: dict[float, Tone] = {2: "good", 1: "warn", 0: "bad"}
"""the traffic light of a rule of thumb: by how far it was measured to be from the best"""
_TRIAL = "on trial"
_LEADING = {_TRIAL: 0, "now": 1, "robust interval": 2}
"""rows that stand before the others"""
_SAME = 1e-6
"""of an interval: closer is the same one"""
_MORE = 60
"""points of the curve where it goes beyond `optimize`'s"""


class Studied(NamedTuple):
    """One tier, looked at for one objective."""

    desk: Desk
    """the scenario on this tier alone"""
    tier: str
    objective: str
    found: Optimum
    study: Study
    """the same as `optimize` prints it"""
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

    @property
    def named(self) -> list[Point]:
        """Those that a trial is meant exactly to be."""
        return [point for point in (self.now, self.advised, self.best) if point is not None]

    def table(self, name: str) -> Table:
        return next(table for table in self.study.tables if table.id == name)

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
        return (
            low_s if low_s <= trial_s else trial_s / AROUND,
            high_s if trial_s <= high_s else trial_s * AROUND,
        )


def alone(desk: Desk) -> tuple[Desk, str]:
    """The scenario on the chosen tier alone, so that one command without --tier says the same."""
    tier = desk.tier_chosen()
    if not tier:
        return replace(desk, tiers=()), tier
    bare = desk.without("tier.id") if desk.tiers else desk
    own = (
        not comparison_of(bare.layers())[0]
        and str(bare.resolved("").words.get("tier.id", "")) == tier
    )
    return replace(bare if own else bare.edited("tier.id", tier), tiers=()), tier


def studied(desk: Desk, objective: str) -> Studied:
    """The optimum of the chosen tier. Raises InputError where there is none, with what is
    lacking."""
    alone_desk, tier = alone(desk.timed(objective))
    found = optimize(alone_desk.catalog, alone_desk.layers(), (), "", objective)
    given = found.option.scenario.policy.cadence != "optimal"
    now = next((point for point in found.points if point.id == "now" and given), None)
    return Studied(alone_desk, tier, objective, found, study_of(found), now)


# the interval on trial: a text that a file or a flag takes, so that what is shown is what is said


def text_of(interval_s: float) -> str:
    """An interval as its field writes it.

    >>> text_of(4183.27), text_of(53_300.0)
    ('4180 s', '14.8 h')
    """
    return quantity(interval_s, "s")


def point_at(one: Studied, trial: str) -> Point:
    """The run at the trial; those with a name are meant exactly where they read the same."""
    for point in one.named:
        if trial == text_of(point.interval_s):
            return point
    return point_of(one.found.option, "trial", parse(trial, "s"))


def seconds_of(one: Studied, trial: str) -> float:
    """The interval that a text stands for."""
    return point_at(one, trial).interval_s


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
    ends = steps > 0 and here_s > 0.99 * work_s
    run = f", and the run has {duration(work_s)} of training" if ends else ""
    way = "longer" if steps > 0 else "shorter"
    return f"The curve goes no {way} than every {duration(here_s)}{run}."


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
    same = abs(parse(trial, "s") / seconds - 1.0) <= _SAME
    return desk.edited("policy.interval", trial if same else _written(seconds))


def _written(seconds: float) -> str:
    """The least digits that say the same interval.

    >>> _written(18173.2837), _written(7200.0)
    ('18173.3 s', '7200.0 s')
    """
    texts = (f"{float(f'{seconds:.{digits}g}')} s" for digits in range(4, 18))
    return next(text for text in texts if abs(parse(text, "s") / seconds - 1.0) <= _SAME)


def on_next_tier(desk: Desk) -> Desk:
    """The desk itself where there is only one tier."""
    shown = desk.tiers_shown()
    at = shown.index(desk.tier_chosen())
    return replace(desk, chosen=shown[(at + 1) % len(shown)]) if len(shown) > 1 else desk


def command(one: Studied, trial: str = "") -> str:
    """What prints the same numbers; a trial that is not among its rows anyway is put in force, and
    so printed as `now`."""
    desk = one.desk
    if trial and all(trial != text_of(point.interval_s) for point in one.named):
        desk = applied(one, desk, trial)
    return desk.command("optimize", "--objective", one.objective)


def same_study(one: Desk, other: Desk | None, stamp: Stamp | None = None) -> bool:
    """Whether two desks ask for the same optimum, and would find the same: the same figures of the
    same tier."""
    return one.same_figures(other, stamp) and other is not None and one.chosen == other.chosen


# what is shown


@np.errstate(over="ignore", invalid="ignore")
def chart(one: Studied, trial: Point) -> Chart:
    """Goodput, or what is added, over the interval; with the plateau, every objective's best, and
    what is in force."""
    column, unit = COLUMNS[one.objective], UNITS[one.objective]
    time = one.objective == "time"
    text = share if time else number
    low_s, high_s = one.drawn_s(trial.interval_s)
    xs = np.asarray(one.found.curve.interval_s, dtype=float)
    # longer where what is in force or on trial lies outside
    for begin_s, end_s in ((low_s, xs[0]), (xs[-1], high_s)):
        if end_s > begin_s * TOGETHER:
            xs = np.union1d(xs, np.geomspace(begin_s, end_s, _MORE))
    ys = np.asarray(amounts_of(one.found.option.at(xs))[column], dtype=float)
    # where the run never ends there is no value
    curve = Curve("", xs.tolist(), np.where(np.isfinite(ys), ys, np.nan).tolist())
    plateau = one.found.plateaus[one.objective]
    bands = [Band(plateau.low_s, plateau.high_s, "within 1 %", "plateau")]
    value = float(amounts_of(trial.outcome)[column])
    said = text(value) if time else f"{number(value)} {unit}"
    dots = [Dot(trial.interval_s, value, said)] if 0 < value < math.inf else []
    return Chart(
        f"{'Goodput' if time else f'{unit} added'} over the interval, on"
        f" {one.found.option.tier_id}",
        (curve,),
        dots,
        bands if plateau.low_s == plateau.low_s else [],
        _rules(one, trial),
        "training time between saves",
        unit,
        y_text=text,
        x_range=(low_s, high_s),
        y_range=_shares_seen(curve.ys) if time else None,
        x_log=True,
        y_log=not time,
        empty="the run never ends, however often it saves",
    )


def _shares_seen(ys: Any) -> tuple[float, float] | None:
    """Shares of time differ little between good intervals: the axis shows what differs, and never
    more than all of it."""
    seen = [value for value in ys if value == value]
    if not seen or not max(seen) > min(seen):
        return None
    room = 0.08 * (max(seen) - min(seen))
    return max(min(seen) - room, 0.0), min(max(seen) + room, 1.0)


def _rules(one: Studied, trial: Point) -> list[Rule]:
    """Every objective's best interval, those that nobody could tell apart as one; what is advised,
    in force and on trial."""
    option, rules = one.found.option, [Rule(one.best.interval_s, "best", "best")]
    for at_s, name in sorted((option.best[each], each) for each in option.known):
        last = rules[-1]
        if max(at_s, one.best.interval_s) < TOGETHER * min(at_s, one.best.interval_s):
            continue
        if len(rules) > 1 and at_s < last.at * TOGETHER:
            rules[-1] = last._replace(label=f"{last.label}, {name}")
        else:
            rules.append(Rule(at_s, name, "mark"))
    if one.found.robust.moves:
        rules.append(Rule(one.advised.interval_s, "robust", "mark"))
    if one.now is not None:
        rules.append(Rule(one.now.interval_s, "now", "now"))
    apart = [abs(trial.interval_s / point.interval_s - 1.0) > 1e-9 for point in one.named]
    return [*rules, Rule(trial.interval_s, "trial", "mark")] if all(apart) else rules


def points(one: Studied, trial: Point) -> Grid:
    """The rows of `optimize`'s table, the trial first, each with what it costs over the best; a
    row's key is its interval as a text."""
    regret = {row["at"]: row.get(f"regret_{one.objective}") for row in one.table("regret").rows}
    mine = {"at": _TRIAL, "interval": trial.interval_s, **row_of(trial.outcome)}
    mine["saves_per_day"] = known_value(saves_per_day(trial.outcome))
    regret[_TRIAL] = regret_value(trial.regrets[one.objective])
    there = [row for row in one.table("intervals").rows if row.get("interval")]
    if one.now is None:
        there = [row for row in there if row["at"] != "now"]
    rows = [row | {"over": regret[row["at"]]} for row in (mine, *there)]
    rows.sort(key=lambda row: _LEADING.get(row["at"], len(_LEADING)))
    best = "robust interval" if one.found.robust.moves else f"best for {one.objective}"
    table = with_columns(one.table("intervals"), LABELS, OVER)._replace(rows=rows)
    keys = [f"{row['at']}={text_of(row['interval'])}" for row in rows]
    first = (COLUMNS[one.objective], "over")
    return grid_of(table, keys, lambda row: _point_tone(row, best), first)


def _point_tone(row: dict[str, Any], best: str) -> Tone:
    if not row["goodput"] >= HOPELESS_GOODPUT:
        return "bad"
    if row["at"].endswith("'s rule"):
        return LIGHTS.get(float(regret_light(row["over"])), "")
    if row["at"] == "now":
        return "warn" if row["over"] > WITHIN else ""
    return rank_tone(row["at"] == best, row["at"] == _TRIAL)


def interval_in(key: str) -> str:
    """The interval of a row of `points`.

    >>> interval_in("best for time=4180 s")
    '4180 s'
    """
    return key.rpartition("=")[2]


def parts(one: Studied, trial: Point) -> Grid:
    """Where the time, or what the objective counts, goes: at the trial and at the best."""
    measure = {"time": "goodput", "energy": "kwh", "usd": "usd", "carbon": "kgco2e"}[one.objective]
    table = parts_table(MEASURES[measure], trial.outcome, one.best.outcome, ("trial", "best"))
    return grid_of(table, first=("today", "then"))


def notes(one: Studied) -> list[Line]:
    """What `optimize` says, the price of the present interval first, and what to beware of."""
    found, said = one.found, list(one.study.findings)
    tones: dict[str, Tone] = {
        rules_line(found): LIGHTS.get(float(found.classic.interval_light), "")
    }
    lines: list[Line] = []
    if one.now is not None and (text := as_it_stands(found, one.now)) in said:
        over = one.now.regrets[one.objective]
        hopeless = bool(no_headway(one.now.outcome))
        tones[text] = "bad" if hopeless else "warn" if over > WITHIN else "good"
        said = [text, *(each for each in said if each != text)]
    if why := no_headway(one.best.outcome):
        every = f"even at the best interval, every {duration(one.best.interval_s)}, {why}"
        way_out = "It takes a faster tier, or fewer failures."
        lines = [(f"Hopeless on {found.option.tier_id}: {every}. {way_out}", "bad")]
        said = [text for text in said if text in tones]
    lines += [(text, tones.get(text, "")) for text in said]
    return [*lines, *((text, "warn") for _, text in one.study.warnings)]


def trial_line(one: Studied, trial: Point) -> str:
    """The trial, and how far it is from the best."""
    every = duration(trial.interval_s)
    if why := no_headway(trial.outcome):
        return f"Hopeless every {every}: {why}."
    over = regret_value(trial.regrets[one.objective])
    if over is None or not over >= WORTH_SAYING:
        return f"Every {every}: within {share(WORTH_SAYING)} of the best for {one.objective}."
    return f"Every {every}: {share(over)} over the least {COSTS[one.objective]}."
