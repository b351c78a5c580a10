"""The interval screen as data: the curve with its rules, the run at each interval worth naming, and
where the losses come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ckptcost.core.measures import saves_per_day
from ckptcost.core.optimum import regret_light
from ckptcost.core.outcome import Outcome
from ckptcost.core.regret import OBJECTIVES, WITHIN, cost_of
from ckptcost.core.units import DAY_S, HOUR_S, to_kwh
from ckptcost.jobs.optimize import Point
from ckptcost.jobs.solve import parts_of, shares_of
from ckptcost.present.amounts import DASH, count, duration, number, share
from ckptcost.present.chart import Band, Chart, Curve, Dot, Rule
from ckptcost.present.grid import Grid, Head, Order, Row, Tone
from ckptcost.report.studies.optimize import NAMES
from ckptcost.report.studies.run_columns import regret_value, row_of
from ckptcost.report.studies.solve import PARTS
from ckptcost.tui.screens.interval_view import UNITS, Studied, hopeless, seconds_of, text_of
from ckptcost.tui.screens.interval_words import LIGHTS, RULED, RULES, Line, notes, trial_line
from ckptcost.tui.screens.tiers_table import short

TITLES = {"time": "Goodput", "energy": "kWh added", "usd": "USD added"}
TOGETHER = 1.06
"""optima this close share one rule: no screen could draw them apart"""
_POINTS = 60
"""more of the curve, where what is in force lies beyond it"""


class IntervalView(NamedTuple):
    """All of the screen at one trial interval."""

    chart: Chart
    points: Grid
    lost: Grid
    notes: list[Line]
    trial: Line
    """the trial in one line"""


def view_of(one: Studied, trial: str) -> IntervalView:
    point = point_at(one, trial)
    with np.errstate(over="ignore", invalid="ignore"):
        return IntervalView(
            chart(one, point),
            points(one, point),
            lost(one, point),
            notes(one),
            (trial_line(one, point), ""),
        )


def point_at(one: Studied, trial: str) -> Point:
    """The run at the trial; the row of the present, the advised or the best interval where it is
    one of them."""
    for point in (one.now, one.advised, one.best):
        if point is not None and trial == text_of(point.interval_s):
            return point
    return one.at(seconds_of(one, trial))


# the curve


def chart(one: Studied, trial: Point) -> Chart:
    """Goodput, or what is added, over the interval; with the plateau, every objective's best, and
    what is in force."""
    plateau = one.found.plateaus[one.objective]
    x_range = one.drawn_s(trial.interval_s)
    xs, ys = _curve(one, x_range)
    bands = (
        [Band(plateau.low_s, plateau.high_s, "within 1 %", "plateau")]
        if plateau.low_s == plateau.low_s
        else []
    )
    rules = [Rule(one.best.interval_s, "best", "best"), *_other_bests(one)]
    if one.found.robust.moves:
        rules.append(Rule(one.advised.interval_s, "robust", "mark"))
    if one.now is not None:
        rules.append(Rule(one.now.interval_s, "now", "now"))
    if all(
        point is None or abs(trial.interval_s / point.interval_s - 1.0) > 1e-9
        for point in (one.now, one.advised, one.best)
    ):
        rules.append(Rule(trial.interval_s, "trial", "mark"))
    value = one.cost(trial.outcome)
    dots = (
        [Dot(trial.interval_s, value, value_text(one, value), "")]
        if np.isfinite(value) and value > 0
        else []
    )
    time = one.objective == "time"
    return Chart(
        f"{TITLES.get(one.objective) or f'{UNITS[one.objective]} added'} over the interval, on"
        f" {short(one.found.option.tier_id, 32)}",
        (Curve("", xs, ys),),
        dots,
        bands,
        rules,
        "training time between saves",
        UNITS[one.objective],
        y_text=share if time else number,
        x_range=x_range,
        y_range=_kept_range(ys) if time else None,
        x_log=True,
        y_log=not time,
        empty="the run never ends, however often it saves",
    )


def _kept_range(ys: list[float]) -> tuple[float, float] | None:
    """Shares of time differ little between good intervals: the axis shows what differs, and never
    more than all of it."""
    seen = [value for value in ys if value == value]
    if not seen or not max(seen) > min(seen):
        return None
    room = 0.08 * (max(seen) - min(seen))
    return max(min(seen) - room, 0.0), min(max(seen) + room, 1.0)


def value_text(one: Studied, value: float) -> str:
    return share(value) if one.objective == "time" else f"{number(value)} {UNITS[one.objective]}"


def _curve(one: Studied, ends_s: tuple[float, float]) -> tuple[list[float], list[float]]:
    """`optimize`'s own curve, longer where what is in force or on trial lies outside; where the run
    never ends there is no value."""
    low_s, high_s = ends_s
    pairs = list(_values(one, one.found.curve.interval_s, one.found.curve.outcome))
    for begin_s, end_s in (
        (low_s, float(one.found.curve.interval_s[0])),
        (float(one.found.curve.interval_s[-1]), high_s),
    ):
        if end_s > begin_s * TOGETHER:
            more_s = np.geomspace(begin_s, end_s, _POINTS)
            pairs += _values(one, more_s, one.found.option.at(more_s))
    pairs.sort(key=lambda pair: pair[0])
    return [x for x, _ in pairs], [y for _, y in pairs]


def _values(one: Studied, interval_s: object, outcome: Outcome) -> Iterator[tuple[float, float]]:
    xs = np.asarray(interval_s, dtype=float)
    cost = outcome.goodput if one.objective == "time" else cost_of(outcome, one.objective)
    ys = np.broadcast_to(
        np.asarray(to_kwh(cost) if one.objective == "energy" else cost, dtype=float), xs.shape
    )
    yield from zip(xs.tolist(), np.where(np.isfinite(ys), ys, np.nan).tolist(), strict=True)


def _other_bests(one: Studied) -> list[Rule]:
    """The other objectives' best intervals; those that nobody could tell apart are one rule."""
    option = one.found.option
    others = sorted((option.best[each], each) for each in option.known if each != one.objective)
    rules: list[Rule] = []
    for at_s, name in others:
        if max(at_s, one.best.interval_s) < TOGETHER * min(at_s, one.best.interval_s):
            continue
        if rules and at_s < rules[-1].at * TOGETHER:
            rules[-1] = rules[-1]._replace(label=f"{rules[-1].label}, {name}")
        else:
            rules.append(Rule(at_s, name, "mark"))
    return rules


# the run at each interval


def points(one: Studied, trial: Point) -> Grid:
    """The rows of `optimize`'s tables, the trial first; a row's key is its interval as a text."""
    unit = one.objective
    heads = (
        Head("at", "saving at", left=True),
        Head("interval", "every"),
        Head("saves_per_day", "saves/day", rank=3),
        Head("goodput", "goodput", rank=0 if unit == "time" else 3),
        Head("energy", "kWh", rank=0 if unit == "energy" else 2),
        Head("cost", "USD", rank=0 if unit == "usd" else 1),
        Head("carbon", "kgCO2e", rank=0 if unit == "carbon" else 4),
        Head("over", "over best"),
    )
    by_id = {point.id: point for point in one.found.points}
    named: list[tuple[str, Point, Tone]] = [("on trial", trial, "base")]
    if one.now is not None:
        named.append(("now", one.now, "warn" if one.now.regrets[unit] > WITHIN else ""))
    if one.found.robust.moves:
        named.append(("robust interval", one.advised, "best"))
    named += [
        (
            f"best for {each}",
            by_id[each],
            "best" if each == unit and not one.found.robust.moves else "",
        )
        for each in OBJECTIVES
        if each in by_id
    ]
    for each in RULED:
        if each in by_id:
            light = LIGHTS.get(float(regret_light(by_id[each].regrets[unit])), "")
            name = RULES[light].format(NAMES[each].removesuffix("'s rule"))
            named.append((name, by_id[each], light))
    rows = [_point_row(one, label, point, tone) for label, point, tone in named]
    return Grid(heads, rows, "The run at each interval", "kgCO2e: location-based")


def _point_row(one: Studied, label: str, point: Point, tone: Tone) -> Row:
    values, never = row_of(point.outcome), hopeless(point.outcome)
    over = regret_value(point.regrets[one.objective])
    often = float(saves_per_day(point.outcome))
    pairs: list[tuple[str, Order]] = [
        (label, label),
        (duration(point.interval_s), point.interval_s),
        (count(often), often),
        ("never" if never else share(values["goodput"]), values["goodput"]),
        *(
            (DASH if never else number(values[name]), values[name])
            for name in ("energy", "cost", "carbon")
        ),
        (share(over), over),
    ]
    key = f"{label}={text_of(point.interval_s)}"
    return Row(
        key,
        tuple(cell for cell, _ in pairs),
        tuple(order for _, order in pairs),
        "bad" if never else tone,
    )


def interval_in(key: str) -> str:
    """The interval of a row of `points`.

    >>> interval_in("best for time=4180 s")
    '4180 s'
    """
    return key.rpartition("=")[2]


# where it goes


def parts(one: Studied, outcome: Outcome) -> dict[str, float]:
    """What a run loses or adds, by cause: seconds of wall time, or amounts in people's units; they
    sum to `one.cost`'s whole."""
    if one.objective == "time":
        shares, wall_s = shares_of(outcome)._asdict(), float(outcome.wall_s)
        return {name: part * wall_s for name, part in shares.items() if name != "kept"}
    measure = {"energy": "kwh", "usd": "usd", "carbon": "kgco2e"}[one.objective]
    found = parts_of(outcome, measure)
    if one.objective == "energy":
        return {name: float(to_kwh(part)) for name, part in found.items()}
    return dict(found)


def lost(one: Studied, trial: Point) -> Grid:
    """What is lost at the trial and at the best, in a day and in the run."""
    unit, time = one.objective, one.objective == "time"
    heads = (
        Head("part", "what for", left=True),
        Head("trial_day", "trial"),
        Head("best_day", "best"),
        Head("trial_run", f"trial, {'h ' if time else ''}a run", rank=1),
        Head("best_run", f"best, {'h ' if time else ''}a run", rank=2),
    )
    both = [(parts(one, point.outcome), float(point.outcome.wall_s)) for point in (trial, one.best)]
    rows = []
    for name in both[1][0]:
        found = [(each.get(name, 0.0), wall_s) for each, wall_s in both]
        if any(value != 0 for value, _ in found):
            rows.append(_lost_row(time, name, PARTS[name], found))
    whole = [(sum(each.values()), wall_s) for each, wall_s in both]
    rows.append(_lost_row(time, "total", "in all", whole)._replace(tone="base"))
    return Grid(
        heads,
        rows,
        "Time lost, min a day" if time else f"{UNITS[unit]} added a day",
        "",
        "",
    )


def _lost_row(time: bool, key: str, label: str, found: list[tuple[float, float]]) -> Row:
    """Time in minutes a day and hours a run; a run that never ends has no days to share it
    among."""
    of_day, of_run = (60.0 / HOUR_S, 1.0 / HOUR_S) if time else (1.0, 1.0)
    days = [
        value / wall_s * DAY_S * of_day if 0 < wall_s < float("inf") else float("nan")
        for value, wall_s in found
    ]
    values = [
        *days,
        *(value * of_run if value < float("inf") else float("nan") for value, _ in found),
    ]
    return Row(key, (label, *map(number, values)), (label, *values))
