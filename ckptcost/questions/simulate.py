"""How differently one run can turn out: whole runs with failures at random, and unknown inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Unpack

import numpy as np

from ckptcost.answer import Answer, Cell, Column, Quantity, Range, Say, Table
from ckptcost.errors import InputError
from ckptcost.plan import bill as b
from ckptcost.plan import draws as d
from ckptcost.plan import evaluate as ev
from ckptcost.plan.montecarlo import simulate as walk
from ckptcost.questions import common as q
from ckptcost.questions import one, ranks
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import Array, World
from ckptcost.scenario.units import number, per, show, show_range
from ckptcost.study import DRAWS, MEASURES, Study, read

SHOWN = ("goodput", "wall", "failures", "gpu_time", "energy", "cost", "carbon")
SLOW = 0.05
"""runs with drawn inputs that keep less of their time hardly end: they count as endless"""
MOST_RUNS = 100_000


def simulate(
    job: q.Job = q.DEFAULT,
    *,
    runs: Annotated[int, q.Flag("how many whole runs")] = 1000,
    failures: Annotated[
        str,
        q.Flag(
            "exponential; weibull:SHAPE, below 1 they come in bursts; or a CSV of recorded"
            " failures: one column, headed time_s, time_h, time_days or timestamp",
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


def answer(cases: dict[str, Scenario], **asked: Any) -> Answer:
    """The same of a case, and of the options that a document holds."""
    scenario, law = as_recorded(next(iter(cases.values())), asked["recorded"])
    name, two = next(iter(cases)), replace(scenario, said=scenario.said | {"third_tier": {}})
    study = Study({name: two}, asked.get("draws", DRAWS))
    title = f"How differently one run can turn out: {scenario.name}"
    stop = ranks.stop_of(study)
    if stop:
        found = ranks.refused("simulate", title, one.about(study, 0), stop, **asked)
    else:
        found = turned_out(Found(study, scenario, law, asked), title, asked)
    found.cases, found.options = cases, asked
    return found


def turned_out(found: Found, title: str, asked: dict[str, Any]) -> Answer:
    """What the runs came to."""
    notes = []
    if not found.three:  # those have no closed form
        command = f"ckptcost model {asked['typed']}".rstrip()
        notes = [Say("Which inputs matter:", "", f"{command} --inputs")]
    return Answer(
        "simulate",
        title,
        one.about(found.study, 0),
        [*ranges(found), plan_for(found)],
        [measures_table(found), *bill_tables(found)],
        notes,
        missed=missed(found, asked.get("require", ()), asked.get("sure", q.SURE)),
        draws=found.runs,
    )


# --- failures -------------------------------------------------------------------------------------

LAWS = "write exponential, weibull:0.7 or a file that ends in .csv"


def failures_of(said: str) -> tuple[float, list[float]]:
    """The shape of a Weibull law, and instants of recorded failures in seconds, if there are."""
    if said.endswith(".csv"):
        return 1.0, instants_of(said)
    law, _, shape = said.partition(":")
    is_law = law == "weibull" if shape else law == "exponential"
    q.demand(is_law, f"{said[:60]!r} is no law", "--failures", LAWS)
    try:
        found = float(shape or 1.0)
    except ValueError:
        found = 0.0
    remedy = "give 0.2 to 10; below 1 failures come in bursts"
    q.demand(0.2 <= found <= 10.0, f"the shape {shape!r} is out of range", "--failures", remedy)
    return found, []


def instants_of(name: str) -> list[float]:
    """Of a CSV with one column, by its header: time_s, time_h, time_days or timestamp."""
    try:
        lines = Path(name).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise InputError(f"cannot be read ({why})", name, "check the path") from None
    header, *texts = [line.split(",")[0].strip() for line in lines if line.strip()] or [""]
    known = header in ("time_s", "time_h", "time_days", "timestamp")
    remedy = "head it time_s, time_h, time_days or timestamp"
    q.demand(known, f"the column {header[:40]!r} is not known", name, remedy)
    unit = header.removeprefix("time_") if header != "timestamp" else ""
    found = sorted({_seconds(text, unit, f"{name}: line {i}") for i, text in enumerate(texts, 2)})
    q.demand(len(found) > 2, "names fewer than three failures", name, "record more of them")
    return found


def _seconds(text: str, unit: str, where: str) -> float:
    """Of a number in a unit, or of an instant."""
    try:
        found = float(text) * per(unit) if unit else datetime.fromisoformat(text).timestamp()
    except ValueError:
        found = -1.0
    remedy = "write a number, 0 or more" if unit else "write 2026-11-28T03:47:00Z"
    q.demand(0.0 <= found < 1e12, f"{text[:40]!r} cannot be read", where, remedy)
    return found


# --- runs -----------------------------------------------------------------------------------------


class Ranges(NamedTuple):
    """What luck leaves open, what not knowing the inputs does, and both together."""

    luck: Range
    inputs: Range | None
    both: Range | None


def as_recorded(scenario: Scenario, recorded: Sequence[float]) -> tuple[Scenario, str]:
    """The plan with failures as often as they were recorded, and words for that."""
    if not recorded:
        return scenario, ""
    mean = float(np.mean(np.diff(recorded)))
    return q.with_values(scenario, {"failures.mtbf": mean}), ", with failures as recorded"


class Found:
    """Runs of one job: by luck alone, and with inputs drawn for each; and the inputs alone."""

    def __init__(self, study: Study, scenario: Scenario, law: str, asked: dict[str, Any]) -> None:
        self.study, self.law, self.runs = study, law, int(asked["runs"])
        self.three = bool(scenario.said["third_tier"])
        known = asked.get("draws") == 0
        drawn = d.worlds([scenario], self.runs - 1)
        goodput = np.broadcast_to(study.outcome(drawn).goodput, (1, self.runs))[0]
        slow = (goodput <= SLOW)[: 0 if known else self.runs]
        self.slow = float(np.mean(slow)) if len(slow) else 0.0
        columns = np.append(np.repeat(0, self.runs), np.where(slow, 0, np.arange(len(slow))))
        endless = np.append(np.zeros(self.runs, bool), slow)
        self.outcome = self._walked(_columns_of(drawn, columns), endless, asked)
        self.ranges = {measure: self._ranges(measure) for measure in SHOWN}

    def _walked(self, w: World, endless: Array, asked: dict[str, Any]) -> ev.Outcome:
        """What the runs came to, to be read like any outcome: a column a run."""
        o, runs = self.study.outcome(w), len(endless)
        instants = np.asarray(asked["recorded"], float) if asked["recorded"] else None
        with np.errstate(all="ignore"):
            found = walk(w, o, runs, asked["shape"], asked["seed"], instants)
            by_run = {key: np.broadcast_to(x, (1, runs)) for key, x in vars(found.spent).items()}
            spent = b.Spent(**by_run).endless(endless)
            bill, goodput = b.bill(w, o.plan, spent), w.run.work / spent.wall
        failures = np.where(endless, np.inf, found.failures.reshape(1, runs))
        return replace(o, spent=spent, bill=bill, goodput=goodput, failures=failures)

    def values(self, measure: str) -> tuple[Array, Array]:
        """By run: by luck alone, and with inputs drawn for each (empty if there are none)."""
        found = read(measure, self.outcome)[0]
        return found[: self.runs], found[self.runs :]

    def open(self, amounts: Array) -> Range:
        """The average by luck, with the ends of all that is open."""
        runs = np.broadcast_to(amounts, self.outcome.spent.wall.shape)[0]
        luck, both = runs[: self.runs], runs[self.runs :]
        return spread(both if len(both) else luck)._replace(value=float(np.mean(luck)))

    def _ranges(self, measure: str) -> Ranges:
        """Three tiers have no closed form that says what the inputs do."""
        luck, both = self.values(measure)
        inputs = None if self.three or not self.study.draws else self.study.range(measure, 0)
        return Ranges(spread(luck), inputs, spread(both) if len(both) else None)


def _columns_of(w: World, columns: Array) -> World:
    """A world of these columns, of which the first has the stated values."""
    sections = {}
    for name, section in vars(w).items():
        figures = vars(section).items()
        wide = {key: x if x.shape[1] == 1 else x[:, columns] for key, x in figures}
        sections[name] = type(section)(**wide)
    return World(**sections)


def spread(values: Array) -> Range:
    """The mean, and what 5 and 95 of 100 runs stay below."""
    mean = float(np.mean(values))
    (low,), (high,) = d.ends(np.append(mean if np.isfinite(mean) else np.nan, values)[None, :])
    return Range(mean, float(low), float(high))


# --- the answer -----------------------------------------------------------------------------------


def ranges(found: Found) -> list[Say]:
    """Luck beside ignorance: the range of one is not that of the other."""
    luck = f" of the time is useful training ({found.runs:,} runs{found.law})"
    words = {
        "Luck alone": luck,
        "Inputs alone": " because the inputs are not known exactly",
        "Both": f"; {show(found.slow, 'share', 2)} hardly end and count as 0 %" * (found.slow > 0),
    }
    says = []
    for (label, what), range_ in zip(words.items(), found.ranges["goodput"], strict=True):
        if range_:
            low, high = (number(end * 100, 3) for end in (range_.low, range_.high))
            says.append(Say(f"{low}-{high} %{what}" if low != high else f"{low} %{what}", label))
    return says


def plan_for(found: Found) -> Say:
    """How long to plan for."""
    wall, _, both = found.ranges["wall"]
    failed = found.ranges["failures"].luck
    later = f", or {show(both.high, 's')} with the inputs not known" if both else ""
    if both and np.isinf(both.high):
        later = ", and without end if the inputs are bad"
    failures = (
        f"{number(failed.value, 2)} failures ({show_range(failed.low, failed.high, 'count')})"
    )
    words = f"{show(wall.high, 's')}{later}: 1 run in 20 takes longer."
    return Say(f"{words} On average it takes {show(wall.value, 's')}, with {failures}.", "Plan for")


def missed(found: Found, require: Sequence[str], sure: float) -> list[str]:
    """Targets that are met in too few runs, with inputs drawn for each unless they are known."""
    lost = []
    for target in map(q.target_of, require):
        luck, both = found.values(target.measure)
        stated = found.study.value(target.measure, 0)
        lost.append(target.missed_by(np.append(stated, both if len(both) else luck), sure))
    return [why for why in lost if why]


def measures_table(found: Found) -> Table:
    """Each measure of a run: its average, and how far luck and the inputs move it."""
    columns = [
        Column("measure", "of a run"),
        Column("average", "on average", ""),
        Column("luck", "luck alone", "", "ends"),
        Column("inputs", "inputs alone", "", "ends"),
        Column("both", "both", "", "ends"),
    ]
    rows: list[list[Cell]] = []
    for measure, (luck, inputs, both) in found.ranges.items():
        unit, mean = MEASURES[measure].unit, Range(*[luck.value] * 3)
        cells = (each and Quantity(each, unit) for each in (mean, luck, inputs, both))
        rows.append([MEASURES[measure].header, *cells])
    note = "Ranges are p5-p95: 1 in 20 is below, 1 in 20 above."
    return q.without_empty(Table("measures", "", columns, rows, note))


def bill_tables(found: Found) -> list[Table]:
    """The average run in all measures, and its bill line by line, for files."""
    name, o = found.study.names[0], found.outcome
    whole = [found.open(read(measure, o)) for measure in MEASURES]
    columns = [Column(key, each.header, each.unit) for key, each in MEASURES.items()]
    columns_by_line = [Column("line", "line"), *(c for c in columns if c.key in b.QUANTITIES)]
    lines: list[list[Cell]] = [
        [name, line, *(found.open(of[quantity]) for quantity in b.QUANTITIES)]
        for line, of in o.bill.lines.items()
    ]
    case = Column("case", "case")
    return [
        Table("cases", "Every measure of the run", [case, *columns], [[name, *whole]], shown=False),
        Table("lines", "Every line of the bill", [case, *columns_by_line], lines, shown=False),
    ]
