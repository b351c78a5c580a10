"""How differently one run can turn out: whole runs with failures at random, and unknown inputs."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Unpack

import numpy as np

from ckptcost.answer import Answer, Cell, Column, Line, Plot, Quantity, Range, Say, Table
from ckptcost.errors import InputError
from ckptcost.plan import bill as b
from ckptcost.plan import draws as d
from ckptcost.plan import evaluate as ev
from ckptcost.plan.montecarlo import simulate as walk
from ckptcost.questions import common as q
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import Array, World
from ckptcost.scenario.units import number, show, show_range
from ckptcost.study import MEASURES, Study, read, verdict

SHOWN = ("goodput", "wall", "failures", "gpu_time", "energy", "cost", "carbon")
SLOW = 0.05
"""runs that keep less of their time than this are not walked with drawn inputs: they hardly end"""
MOST_RUNS = 100_000
BINS = 40


def simulate(
    job: q.Job = q.DEFAULT,
    *,
    runs: Annotated[int, q.Flag("how many whole runs")] = 1000,
    failures: Annotated[
        str,
        q.Flag(
            "exponential; weibull:SHAPE, below 1 they come in bursts; or a CSV of recorded"
            " failures, one column, headed time_s, time_h, time_days or timestamp if it has"
            " instants, gap_s, gap_h or gap_days if it has the times between them",
            "LAW or FILE",
        ),
    ] = "exponential",
    seed: Annotated[int, q.Flag("another seed, other runs")] = 1,
    **flags: Unpack[q.Flags],
) -> Answer:
    """How differently one run can turn out, by luck alone and by what is not known.

    ckptcost simulate llama31-405b-16k
    ckptcost simulate job.toml --failures weibull:0.7 --runs 5000
    ckptcost simulate job.toml --failures failures.csv
    """
    q.demand(2 <= runs <= MOST_RUNS, f"{runs:,} is out of range", "--runs", "give 2 to 100,000")
    q.demand(seed >= 0, f"{seed} is out of range", "--seed", "give 0 or more")
    shape, recorded = failures_of(failures)
    asked: dict[str, Any] = {"runs": runs, "seed": seed, "shape": shape, "recorded": recorded}
    asked |= {"typed": q.typed(job, flags)} | q.options_of(flags)
    return answer(q.one_case(job, flags, "simulate"), **asked)


def answer(
    cases: dict[str, Scenario],
    *,
    runs: int = 1000,
    seed: int = 1,
    shape: float = 1.0,
    recorded: Sequence[float] = (),
    typed: str = "",
    require: Sequence[str] = (),
    sure: float = q.SURE,
    draws: int | None = None,
) -> Answer:
    """The same of a case, and of the options that a document holds."""
    asked = {"runs": runs, "seed": seed, "shape": shape, "recorded": list(recorded)}
    asked |= {"typed": typed, "require": list(require), "sure": sure, "draws": draws}
    name, scenario = next(iter(cases.items()))
    found = Found(name, scenario, runs, seed, shape, recorded, draws)
    return Answer(
        "simulate",
        f"How differently one run can turn out: {scenario.name}",
        q.job_line(found.study),
        [*ranges(found), plan_for(found)],
        [measures_table(found), times_table(found)],
        closed_form(found, typed),
        plots=[histogram(found)],
        missed=missed(found, q.Flags(require=require, sure=sure)),
        cases=cases,
        options={key: value for key, value in asked.items() if value not in ([], "", None)},
        draws=runs,
    )


# --- failures -------------------------------------------------------------------------------------

UNITS = {"s": 1.0, "h": 3600.0, "days": 86400.0}


def failures_of(said: str) -> tuple[float, list[float]]:
    """The shape of a Weibull law, or instants of recorded failures in seconds."""
    if said.endswith(".csv"):
        return 1.0, instants_of(said)
    law, _, shape = said.partition(":")
    remedy = "write exponential, weibull:0.7 or a file that ends in .csv"
    q.demand(law in ("exponential", "weibull"), f"no law is called {law!r}", "--failures", remedy)
    q.demand((law == "weibull") == bool(shape), f"{said!r} is no law", "--failures", remedy)
    try:
        found = float(shape or 1.0)
    except ValueError:
        found = 0.0
    remedy = "give 0.2 to 10; below 1 failures come in bursts"
    q.demand(0.2 <= found <= 10.0, f"the shape {shape!r} is out of range", "--failures", remedy)
    return found, []


def instants_of(name: str) -> list[float]:
    """Of a CSV with one column, by its header."""
    header, *texts = _column_of(name) or [""]
    kind, _, unit = header.partition("_")
    known = header == "timestamp" or (kind in ("time", "gap") and unit in UNITS)
    remedy = "head it time_h, time_s, time_days, timestamp, gap_h, gap_s or gap_days"
    q.demand(known, f"the column {header[:40]!r} is not known", name, remedy)
    values = [_cell(text, header, f"{name}: line {i}") for i, text in enumerate(texts, 2)]
    found = np.cumsum([0.0, *values]) if kind == "gap" else np.unique(values)
    q.demand(len(found) > 2, "names fewer than three failures", name, "record more of them")
    return [float(each) for each in found]


def _column_of(name: str) -> list[str]:
    """The first cell of each line."""
    try:
        with Path(name).open(encoding="utf-8-sig", newline="") as file:
            return [row[0].strip() for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise InputError(f"cannot be read ({why})", name, "check the path") from None


def _cell(text: str, header: str, where: str) -> float:
    try:
        if header == "timestamp":
            return datetime.fromisoformat(text).timestamp()
        found = float(text) * UNITS[header.partition("_")[2]]
    except ValueError:
        found = -1.0
    remedy = "write 2026-11-28T03:47:00Z" if header == "timestamp" else "write a number, 0 or more"
    q.demand(0.0 <= found < 1e12, f"{text[:40]!r} cannot be read", where, remedy)
    return found


# --- runs -----------------------------------------------------------------------------------------


class Found:
    """Runs of one job: by luck alone, and with inputs drawn for each; and the inputs alone."""

    def __init__(
        self,
        name: str,
        scenario: Scenario,
        runs: int,
        seed: int,
        shape: float,
        recorded: Sequence[float],
        draws: int | None,
    ) -> None:
        self.three = bool(scenario.said["third_tier"])
        self.is_exponential = shape == 1.0 and not recorded
        self.is_recorded = bool(recorded)
        instants = np.asarray(recorded) if recorded else None
        if instants is not None:  # its failures come as often as the recorded ones
            mean = float(instants[-1] - instants[0]) / (len(instants) - 1)
            scenario = scenario.with_figure("failures.mtbf", q.figure_at("failures.mtbf", mean))

        two = replace(scenario, said=scenario.said | {"third_tier": {}})
        self.study = Study({name: two}, draws)

        def walked(w: World, o: ev.Outcome) -> ev.Outcome:
            found = walk(w, o, runs, shape, seed, instants)
            return ev_of(w, o, found.spent, found.failures)

        with np.errstate(all="ignore"):
            self.luck = walked(d.worlds([scenario]), self.study.stated)
            drawn = Study({name: two}, runs - 1)
            ends = draws != 0 and float(np.min(drawn.drawn.goodput)) > SLOW
            self.together = walked(d.worlds([scenario], runs - 1), drawn.drawn) if ends else None
        self.runs = runs

    def luck_of(self, measure: str) -> Array:
        """By run, at the stated values."""
        return read(measure, self.luck).ravel()

    def together_of(self, measure: str) -> Array:
        """By run, each with inputs of its own; empty if there are none."""
        return np.empty(0) if self.together is None else read(measure, self.together).ravel()

    def inputs(self, measure: str) -> Range | None:
        """What the inputs alone leave open; three tiers have no closed form that says so."""
        return None if self.three or not self.study.draws else self.study.range(measure, 0)


def ev_of(w: World, o: ev.Outcome, spent: b.Spent, failures: Array) -> ev.Outcome:
    """What the runs came to, to be read like any outcome: a column a run."""
    wide = (1, len(failures))
    spent = replace(spent, **{k: np.broadcast_to(x, wide) for k, x in vars(spent).items()})
    goodput = np.broadcast_to(w.run.work, wide) / spent.wall
    failed = failures.reshape(wide)
    return replace(o, spent=spent, bill=b.bill(w, o.plan, spent), goodput=goodput, failures=failed)


def spread(values: Array) -> Range:
    """The mean, and what 5 and 95 of 100 runs stay below."""
    low, high = np.quantile(values, (0.05, 0.95))
    return Range(float(np.mean(values)), float(low), float(high))


# --- sentences ------------------------------------------------------------------------------------


def ranges(found: Found) -> list[Say]:
    """Luck beside ignorance: the range of one is not that of the other."""
    law = ", with failures as recorded" if found.is_recorded else ""
    luck = _share(spread(found.luck_of("goodput")))
    says = [Say(f"{luck} of the time is useful training ({found.runs:,} runs{law})", "Luck alone")]
    inputs, both = found.inputs("goodput"), found.together_of("goodput")
    if inputs:
        says.append(Say(f"{_share(inputs)} is what not knowing the inputs leaves", "Inputs alone"))
    if len(both):
        says.append(Say(_share(spread(both)), "Both"))
    return says


def _share(range_: Range) -> str:
    low, high = (number(end * 100, 3) for end in (range_.low, range_.high))
    return f"{low}-{high} %" if low != high else f"{low} %"


def plan_for(found: Found) -> Say:
    """How long to plan for."""
    wall, failed = (spread(found.luck_of(m)) for m in ("wall", "failures"))
    both = found.together_of("wall")
    later = f", {show(spread(both).high, 's')} with inputs not known" if len(both) else ""
    return Say(
        f"{show(wall.high, 's')}{later}: 1 run in 20 takes longer. On average it takes"
        f" {show(wall.value, 's')}, with {number(failed.value, 2)} failures"
        f" ({show_range(failed.low, failed.high, 'count')}).",
        "Plan for",
    )


def closed_form(found: Found, typed: str) -> list[Say]:
    """The formula beside the runs, which it describes if failures are exponential."""
    if found.three:
        return []
    more = [Say("Which inputs matter:", "", f"ckptcost model {typed} --inputs".replace("  ", " "))]
    if not found.is_exponential:
        return more
    wall, says = found.luck_of("wall"), found.study.value("wall", 0)
    error = float(np.std(wall, ddof=1)) / len(wall) ** 0.5
    off = abs(float(np.mean(wall)) - says) / error if error else 0.0
    near = f"{number(off, 2)} standard error{'s' if off >= 2 else ''} from the average of the runs"
    return [Say(f"The closed form says {show(says, 's')}, {near}."), *more]


def missed(found: Found, flags: q.Flags) -> list[str]:
    """Targets that are missed: in draws of the inputs, or with three tiers in the runs."""
    if not found.three:
        return q.missed(found.study, flags)
    lost = []
    for target in map(q.target_of, flags.get("require", ())):
        values = found.together_of(target.measure)
        values = values if len(values) else found.luck_of(target.measure)
        holds = values >= target.limit if target.at_least else values <= target.limit
        met = verdict(holds.astype(float))
        if met.share < flags.get("sure", q.SURE):
            lost.append(f"{target.text} is met {met.say()}")
    return lost


# --- tables ---------------------------------------------------------------------------------------


def measures_table(found: Found) -> Table:
    """Each measure of a run: its average, and how far luck and the inputs move it."""
    columns = [
        Column("measure", "of a run"),
        Column("average", "on average", ""),
        Column("luck", "luck alone", "", "ends"),
        Column("inputs", "inputs alone", "", "ends"),
        Column("together", "both", "", "ends"),
        Column("median", "median", "", "no"),
    ]
    rows = [_measure_row(found, measure) for measure in SHOWN]
    keep = [i for i in range(len(columns)) if any(row[i] is not None for row in rows)]
    columns, rows = [columns[i] for i in keep], [[row[i] for i in keep] for row in rows]
    return Table(
        "measures", "", columns, rows, "Ranges are p5-p95: 1 in 20 is below, 1 in 20 above."
    )


def _measure_row(found: Found, measure: str) -> list[Cell]:
    unit, name = MEASURES[measure].unit, MEASURES[measure].header
    luck, both, inputs = found.luck_of(measure), found.together_of(measure), found.inputs(measure)
    range_, median = spread(luck), float(np.median(luck))
    return [
        name,
        Quantity(Range(*[range_.value] * 3), unit),
        Quantity(range_, unit),
        Quantity(inputs, unit) if inputs else None,
        Quantity(spread(both), unit) if len(both) else None,
        Quantity(Range(*[median] * 3), unit),
    ]


def times_table(found: Found) -> Table:
    """Where the time of the runs goes."""
    columns = [
        Column("part", ""),
        Column("share", "share", "share"),
        Column("time", "of a run (p5-p95)", "s", "range"),
    ]
    spent = found.luck.spent
    parts = q.time_parts(spent, np.broadcast_to(found.study.w.run.work, spent.wall.shape))
    whole = float(np.sum(spent.wall))
    rows: list[list[Cell]] = [
        [name, float(np.sum(x)) / whole, spread(np.ravel(x))] for name, x in parts.items()
    ]
    return Table("times", "Where the time goes, by luck alone", columns, rows, shown=False)


class Bars(NamedTuple):
    """A histogram as a line."""

    x: list[float]
    y: list[float]


def _bars(values: Array) -> Bars:
    counts, edges = np.histogram(values, bins=BINS)
    y = np.concatenate([[0.0], counts.repeat(2) / len(values), [0.0]])
    return Bars(edges.repeat(2).tolist(), y.tolist())


def histogram(found: Found) -> Plot:
    """Wall times of the runs."""
    luck, both = found.luck_of("wall"), found.together_of("wall")
    lines = [Line("luck alone", *_bars(luck))]
    if len(both):
        lines.append(Line("with inputs that are not known", *_bars(both)))
    return Plot("How long the runs take", "wall time [s]", "share of the runs", lines)
