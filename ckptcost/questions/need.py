"""What a figure must be for a target: at the stated values, and to be sure of it."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, NamedTuple, Unpack

import numpy as np

from ckptcost.answer import Answer, Cell, Column, Line, Plot, Quantity, Say, Table
from ckptcost.plan.bill import QUANTITIES
from ckptcost.questions import common as q
from ckptcost.questions import enough as e
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.units import show
from ckptcost.study import MEASURES, Study, label_of

LEVELS = (0.5, 0.8, 0.95)
"""shares of the draws for which the table gives the value"""
PART = 0.005
"""a part of the time or of the bill below this share is not named"""


def need(
    quantity: Annotated[
        str,
        q.Flag("write, read, stall, mtbf, rate, recovery, interval or a key", "QUANTITY", True),
    ],
    job: q.Job = q.DEFAULT,
    *,
    for_: Annotated[
        str, q.Flag('e.g. "goodput>=0.95", "overhead<=1 %"', "TARGET")
    ] = "goodput>=0.9",
    keep_interval: Annotated[
        bool, q.Flag("keep the job's interval; else each trial takes its best one")
    ] = False,
    **flags: Unpack[q.Flags],
) -> Answer:
    """What a figure must be for a target, how sure that is, and what stands in the way.

    ckptcost need write job.toml --for "goodput>=0.97"
    ckptcost need mtbf micron-100k --for "goodput>=0.95" --sure 0.95
    ckptcost need interval job.toml --for "overhead<=1 %"
    """
    q.demand(not flags.get("require"), "is for other verbs", "--require", "need takes --for")
    keeps = keep_interval or bool(flags.get("interval") or flags.get("saves"))
    asked: dict[str, Any] = {"quantity": quantity, "for": for_, "keep_interval": keeps}
    asked |= {"typed": q.typed(job, flags)} | q.options_of(flags)
    return answer(q.one_case(job, flags, "need"), **asked)


def answer(cases: dict[str, Scenario], **asked: Any) -> Answer:
    """The same of a case, and of the options that a document holds."""
    target = q.target_of(asked["for"], "--for")
    draws, sure = asked.get("draws"), asked.get("sure", q.SURE)
    base = next(iter(cases.values()))
    today = Study(cases, draws)
    trials = e.trials_of(base, today, asked["quantity"], target, asked["keep_interval"])
    found = Found(trials, today, draws, sure)
    typed = asked.get("typed", "")
    return Answer(
        "need",
        f"What {trials.quantity.name} gives {said_of(target)}?",
        q.job_line(today),
        [decision(found), as_it_stands(found)],
        [levels_table(found), obstacles(found)],
        next_commands(found, typed),
        plots=[share_plot(found)],
        missed=missed(found),
        cases=cases,
        options=asked,
        draws=today.draws,
    )


def said_of(target: q.Target) -> str:
    """ "at least 97 % useful training", "at most 20,000 USD" """
    limit = _named(target.measure, show(target.limit, MEASURES[target.measure].unit), False)
    return f"{'at least' if target.at_least else 'at most'} {limit}"


def _named(measure: str, text: str, before: bool = True) -> str:
    """An amount with what it is: a header that is a unit stands in the place of the unit."""
    header, unit = MEASURES[measure].header, MEASURES[measure].unit
    if header.startswith(unit):
        return text.replace(f" {unit}", f" {header}")
    text = text.replace(" count", "")
    return f"{header} {text}" if before else f"{text} {header}"


class Edge(NamedTuple):
    """A value that is just enough, with the plan that it was tried in."""

    value: float
    study: Study
    share: float


class Level(NamedTuple):
    """What is enough in a share of the draws; None: at the stated values."""

    share: float | None
    least: Edge | None
    most: Edge | None
    possible: bool
    anything: bool
    """no value within reach misses the target"""

    @property
    def edges(self) -> list[Edge]:
        return [edge for edge in (self.least, self.most) if edge]


class Found:
    """All levels of one question."""

    def __init__(self, trials: e.Trials, today: Study, draws: int | None, sure: float) -> None:
        self.trials, self.today, self.draws, self.sure = trials, today, draws, sure
        self.values = trials.values()
        tried = self.values.tolist()
        self.stated_shares = trials.shares(tried, 0)
        self.shares = self.stated_shares if draws == 0 else trials.shares(tried, e.ROUGH)
        self.stated = self._level(None)
        wanted = sorted({*LEVELS, sure}) if draws != 0 else []
        self.levels = [self._level(share) for share in wanted]

    def _level(self, share: float | None) -> Level:
        shares = self.stated_shares if share is None else self.shares
        few = 0 if share is None else e.FINE
        band = e.band(self.trials, self.values, shares, share or 1.0, few)
        if band is None:
            return Level(share, None, None, False, False)
        least = self._edge(band.least, True, share)
        most = self._edge(band.most, False, share)
        return Level(share, least, most, True, band == e.Band(None, None))

    def _edge(self, edge: float | None, up: bool, share: float | None) -> Edge | None:
        if edge is None:
            return None
        value, study = e.settled_edge(self.trials, edge, up, share, self.draws)
        return Edge(value, study, self.trials.target.met_by(study, 0).share)

    @property
    def demanded(self) -> Level:
        """The level that decides whether the target can be met."""
        return next((each for each in self.levels if each.share == self.sure), self.stated)

    @property
    def surest(self) -> Level | None:
        """The level that is said beside the stated values."""
        wanted = self.sure if self.sure != q.SURE else LEVELS[-1]
        return next((each for each in self.levels if each.share == wanted), None)

    @cached_property
    def best(self) -> Study:
        """The plan at the demanded level, or nearest to it if nothing reaches it."""
        level = self.demanded if self.demanded.edges else self.stated
        if self.demanded.possible and level.edges:
            return level.edges[0].study
        return self.trials.at([self.extreme], self.draws, rounded=not self.trials.keeps)

    @cached_property
    def extreme(self) -> float:
        """The value that comes nearest to the target."""
        return e.extreme(self.trials, self.values, self.shares)


# --- sentences ------------------------------------------------------------------------------------


def decision(found: Found) -> Say:
    """What is enough, and what it takes to be sure."""
    first, surest, name = found.stated, found.surest, found.trials.quantity.name
    if not first.possible and not found.demanded.possible:
        return Say(_infeasible(found))
    if first.anything:
        return Say(f"Any {name} is enough at the stated values.{_but(found)}")
    says = _met_by(found, first) if first.possible else "Nothing is enough at the stated values"
    if surest is None:
        return Say(f"{says}.")
    percent = f"{(surest.share or 0) * 100:.0f} %"
    if surest.possible:
        return Say(f"{says}; {_values(found, surest)} in {percent}.")
    return Say(f"{says}. No {name} is enough in {percent} of draws.")


def _but(found: Found) -> str:
    """If any value is enough at the stated values: what it takes to be sure."""
    surest = found.surest
    if surest is None or surest.anything:
        return ""
    percent = f"in {(surest.share or 0) * 100:.0f} % of draws"
    return f" {_values(found, surest)} {percent}." if surest.possible else f" None is {percent}."


def _values(found: Found, level: Level) -> str:
    """A level in words: "10 GB/s", "up to 4 min", "4 to 30 min"."""
    say = found.trials.quantity.say
    least, most = (edge and say(edge.value) for edge in (level.least, level.most))
    if least and most:
        return f"{least} to {most}"
    return least or (f"up to {most}" if most else "any")


def _met_by(found: Found, level: Level) -> str:
    values = _values(found, level)
    share = min(edge.share for edge in level.edges)
    drawn = level.edges[0].study.draws > 0
    how = f"in {share * 100:.0f} % of draws" if drawn else "at the stated values"
    return f"{values[:1].upper()}{values[1:]} is enough {how}"


def _infeasible(found: Found) -> str:
    """Nothing reaches it: how near the best one comes."""
    t, best = found.trials, found.best
    reached = _named(t.target.measure, best.say(t.target.measure, 0, ranged=True))
    return (
        f"No {t.quantity.name} is enough. The best, at {t.quantity.say(found.extreme, 2)}:"
        f" {reached}."
    )


def as_it_stands(found: Found) -> Say:
    t, today = found.trials, found.today
    met = t.target.met_by(today, 0).say()
    reached = _named(t.target.measure, today.say(t.target.measure, 0, ranged=True))
    if t.now != t.now:
        return Say(f"As it stands the target is met {met}: {reached}.")
    return Say(f"You have {t.quantity.say(t.now)}, which is enough {met}: {reached}.")


def missed(found: Found) -> list[str]:
    """Nothing is enough in the share of draws that is asked for."""
    if found.demanded.possible:
        return []
    share = f" in {found.sure * 100:.0f} % of draws" if found.draws != 0 else ""
    return [f"{found.trials.target.text}: no {found.trials.quantity.name} is enough{share}"]


def next_commands(found: Found, typed: str) -> list[Say]:
    """What to type next."""
    t = found.trials
    if not found.demanded.possible:
        other = _command("need", _other_quantity(found), typed, f'--for "{t.target.text}"')
        return [Say("What would help instead:", "", other)]
    says = [Say("Which inputs make it unsure:", "", _command("model", typed, "--inputs"))]
    surest = found.surest
    level = surest if surest and surest.edges else found.demanded
    if level.edges and not t.quantity.together:
        value = level.edges[0].value
        said = show(1.0 / value, "s") if t.quantity.inverse else t.quantity.say(value)
        setting = f'--set {t.quantity.path}="{said.replace(",", "")}"'
        if t.quantity.path == "tier.save_time":
            setting += f' --set tier.timed_size="{show(t.size, "B", 6)}"'
        if not t.keeps:
            setting += f' --interval "{level.edges[0].study.say("interval", 0)}"'
        says.append(Say("Try it:", "", _command("model", typed, setting)))
    return says


def _command(*words: str) -> str:
    return " ".join(["ckptcost", *filter(None, words)])


def _other_quantity(found: Found) -> str:
    """The figure behind the largest part of the time that is lost."""
    spent, wall = found.best.stated.spent, found.best.stated.wall
    behind = {"stall": ("stall",), "policy.slowdown": ("slowed",), "mtbf": FAILED}
    shares = {
        key: sum(float(np.broadcast_to(getattr(spent, p) / wall, (1, 1))[0, 0]) for p in parts)
        for key, parts in behind.items()
        if not found.trials.quantity.path.endswith(key.partition(".")[2] or key)
    }
    return max(shares, key=lambda key: shares[key])


FAILED = ("redone", "detect", "reschedule", "init", "load", "warmup")


# --- tables ---------------------------------------------------------------------------------------


def levels_table(found: Found) -> Table:
    """The value for each share of draws, beside the measure that the target names."""
    levels = [found.stated, *found.levels]
    both = any(len(level.edges) > 1 for level in levels)
    first = [None, None] if both else [found.trials.now]
    rows: list[list[Cell]] = [["as it stands", *first, *_reached(found, found.today)]]
    for level in levels:
        label = f"{level.share * 100:.0f} % of draws" if level.share else "stated values"
        rows.append([label, *_row(found, level, len(first))])
    if not any(level.possible for level in levels):
        rows[1:] = [["at best", found.extreme, *_reached(found, found.best)]]
    keeps = found.trials.keeps
    note = "" if keeps else "Each value is tried with the interval that is recommended for it."
    return _without_empty(Table("levels", "", _level_columns(found, both), rows, note))


def _level_columns(found: Found, both: bool) -> list[Column]:
    quantity, measure = found.trials.quantity, found.trials.target.measure
    about, ranged = MEASURES[measure], " (p5-p95)" if found.today.draws else ""
    ends = {"value": "at least", "value_1": "at most"} if both else {"value": quantity.head}
    return [
        Column("level", ""),
        *(Column(key, header, quantity.unit) for key, header in ends.items()),
        Column("met", "met in", "share"),
        Column("interval", MEASURES["interval"].header, "s"),
        Column(measure, f"{about.header}{ranged}", about.unit, "range"),
    ]


def _row(found: Found, level: Level, width: int) -> list[Cell]:
    if not level.edges:
        return ["any" if level.possible else "none", *[None] * (width + 2)]
    values: list[Cell] = [edge.value for edge in level.edges]
    if width > len(values):
        values = [*values, None] if level.least else [None, *values]
    return [*values, *_reached(found, level.edges[0].study)]


def _reached(found: Found, study: Study) -> list[Cell]:
    target = found.trials.target
    met = target.met_by(study, 0).share if study.draws else None
    interval = None if found.trials.quantity.is_cadence else study.value("interval", 0)
    return [met, interval, study.range(target.measure, 0)]


def _without_empty(table: Table) -> Table:
    """Columns in which nothing stands are left out."""
    keep = [i for i in range(len(table.columns)) if any(row[i] is not None for row in table.rows)]
    table.columns = [table.columns[i] for i in keep]
    table.rows = [[row[i] for i in keep] for row in table.rows]
    return table


def obstacles(found: Found) -> Table:
    """Where the time goes, or the bill's lines, as it stands and at the value that is enough."""
    t, shown = found.trials, not found.demanded.possible
    then = "at best" if shown else "then"
    columns = [Column("part", ""), Column("today", "as it stands", ""), Column("then", then, "")]
    parts = _bill_parts if t.target.measure in QUANTITIES else _time_parts
    both = [parts(study, t.target.measure) for study in (found.today, found.best)]
    whole = max(max(abs(cell.range.value) for cell in each.values()) for each in both)
    rows: list[list[Cell]] = [
        [name, both[0][name], both[1][name]]
        for name in both[0]
        if max(abs(each[name].range.value) for each in both) > PART * whole
    ]
    return Table("obstacles", "Where it goes", columns, rows, shown=shown)


def _time_parts(study: Study, measure: str) -> dict[str, Quantity]:
    shares = q.time_parts(study.drawn.spent, study.drawn_world.run.work)
    wall = study.drawn.wall
    return {
        name: Quantity(q.range_of(x / wall, study.draws), "share") for name, x in shares.items()
    }


def _bill_parts(study: Study, measure: str) -> dict[str, Quantity]:
    unit = QUANTITIES[measure][0]
    return {
        label_of(line): Quantity(q.range_of(amounts[measure], study.draws), unit)
        for line, amounts in study.drawn.bill.lines.items()
        if measure in amounts
    }


def share_plot(found: Found) -> Plot:
    """In how many draws each value is enough."""
    t = found.trials
    marks = tuple(
        (f"{level.share * 100:.0f} %", edge.value, level.share)
        for level in found.levels
        for edge in level.edges
        if level.share
    )
    line = Line("draws", found.values.tolist(), found.shares.tolist())
    name = f"{t.quantity.name} [{t.quantity.unit}]" if t.quantity.unit else t.quantity.name
    title = f"How much {t.quantity.name} is enough"
    return Plot(title, name, "share of draws", [line], marks, log_x=True)
