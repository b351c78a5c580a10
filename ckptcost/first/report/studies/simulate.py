"""What `simulate` found, as tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ckptcost.first.core.cautions import cautions_of
from ckptcost.first.core.interruptions import NEVER
from ckptcost.first.core.job import DONE, STOPPED, JobStep
from ckptcost.first.core.measures import BILLED, MEASURES
from ckptcost.first.core.simulate import QuantitySummary
from ckptcost.first.core.units import to_kwh
from ckptcost.first.jobs.gates import GateVerdict
from ckptcost.first.jobs.simulate import Simulation
from ckptcost.first.present.amounts import count, duration, number, share, size
from ckptcost.first.present.words import caution_text, line_label, unknown_text
from ckptcost.first.report.study import (
    ROW_UNIT,
    Bills,
    Column,
    Study,
    Table,
    hidden,
    named,
    plain,
    table_of,
)

if TYPE_CHECKING:
    from ckptcost.first.catalog.store import Catalog
    from ckptcost.first.report.statement import Statement

_ROWS = (
    ("goodput", "goodput", "share"),
    ("wall", "duration of the run", "s"),
    ("failures", "interruptions", "count"),
    ("saves", "saves written", "count"),
    ("redone", "work redone", "s"),
    *((q.measure, q.header if q.derived else q.added, q.unit) for q in BILLED.values()),
)
_WHERE_KNOWN = {q.measure for q in BILLED.values() if q.derived and not q.objective}
"""they have no row where they are not known"""
_PEOPLE: dict[str, Any] = {q.unit: q.people for q in BILLED.values()}
_STATES = (
    ("kept", "work that lasts"),
    ("redone", "work done again"),
    ("slowed", "slowed by drains"),
    ("stall_time", "saving"),
    ("detect", "until it is noticed"),
    ("reschedule", "until processes exist"),
    ("init", "starting"),
    ("load", "loading"),
    ("warmup", "warming up"),
)


def study_of(
    found: Simulation,
    verdicts: Sequence[GateVerdict] = (),
    line: Sequence[JobStep] = (),
    run: int = 0,
    every_run: bool = False,
) -> Study:
    """The answer as a study."""
    tables = [_outcome(found), _states(found), _kinds(found)]
    if line:
        tables.append(_line(found, line, run))
    if every_run:
        tables.append(_runs(found))
    return Study(
        "simulation",
        f"{found.resolved.name or 'scenario'}: {_runs_in_words(found)}",
        _about(found),
        _question(found),
        tables,
        _findings(found),
        _warnings(found),
        verdicts,
        [found.resolved],
        bills=Bills(lambda catalog: _bills(found, catalog)),
    )


def _bills(found: Simulation, catalog: Catalog) -> list[Statement]:
    from ckptcost.first.report.statements.simulated import statement_of

    told = statement_of(found, catalog)
    return [] if told is None else [told]


def _question(found: Simulation) -> dict[str, Any]:
    asked = found.asked
    return {
        "runs": asked.runs,
        "seed": asked.seed,
        "process": asked.process,
        "shape": asked.shape,
        "mean_s": asked.mean_s,
        "inputs": asked.inputs,
        "limit_s": None if asked.limit_s == NEVER else asked.limit_s,
        "trace": (
            None
            if asked.trace is None
            else {"interruptions": len(asked.trace.times_s), "span_s": asked.trace.span_s}
        ),
        "kinds": [kind._asdict() for kind in asked.kinds],
    }


def _about(found: Simulation) -> list[str]:
    asked, s = found.asked, found.resolved.scenario
    process = {
        "exponential": "exponential failures",
        "weibull": f"Weibull gaps of shape {asked.shape:g}",
        "weibull-nodes": f"nodes with Weibull lives of shape {asked.shape:g}",
        "trace": (
            f"a record of {count(len(asked.trace.times_s)) if asked.trace else 0} interruptions,"
            " begun at random"
        ),
    }[asked.process]
    inputs = (
        "inputs as given"
        if asked.inputs == "fixed"
        else f"inputs drawn from their ranges ({asked.inputs})"
    )
    limit = "" if asked.limit_s == NEVER else f", stopped after {duration(asked.limit_s)}"
    tiers = [
        found.resolved.names[name]
        for name in ("tier", "second_tier", "third_tier")
        if name in found.resolved.names
    ]
    return [
        (
            f"{count(float(s.cluster.gpus))} GPUs, {duration(float(s.work_s))} of training,"
            f" {s.policy.mode} saves every {duration(float(found.outcome.interval_s))} to"
            f" {', then '.join(tiers)}; {size(float(found.outcome.plan.saved.written_bytes))} a"
            " save."
        ),
        f"{process[0].upper()}{process[1:]}, {inputs}{limit}; seed {asked.seed}.",
    ]


_OUTCOME = (
    *named("quantity"),
    *hidden("unit"),
    Column(
        "mean", "mean", ROW_UNIT, "goodput: all work over all time; the others: mean of the runs"
    ),
    Column("error", "+-", ROW_UNIT, "standard error of the mean"),
    *(Column(f"p{p}", f"p{p}", ROW_UNIT, f"{p} % of the runs stay below") for p in (5, 50, 95)),
    *hidden(Column("low", "least", ROW_UNIT), Column("high", "most", ROW_UNIT)),
    Column("closed_form", "model", ROW_UNIT, "what `ckptcost model` says of the same run"),
    *hidden(Column("errors_off", "off by", "1", "simulated minus closed form, in standard errors")),
)


def _outcome(found: Simulation) -> Table:
    rows = []
    for name, label, unit in _ROWS:
        summary = found.summary(name)
        if np.isnan(summary.mean) and name in _WHERE_KNOWN:
            continue
        people = _PEOPLE.get(unit, float)
        told = summary._asdict()
        closed = _closed_form(found, name)
        if closed is not None:
            told["closed_form"] = closed
        row = {key: plain(float(people(value))) for key, value in told.items()}
        if closed is not None and summary.error > 0 and _whole(found):
            row["errors_off"] = plain(float((summary.mean - closed) / summary.error))
        rows.append({"quantity": label, "unit": unit} | row)
    title = _runs_in_words(found).capitalize()
    return Table("outcome", title, _OUTCOME, rows, _unknown_lines(found))


def _runs_in_words(found: Simulation) -> str:
    return "one run" if found.asked.runs == 1 else f"{count(found.asked.runs)} runs"


def _closed_form(found: Simulation, name: str) -> float | None:
    if not found.exact:
        return None
    if name == "redone":
        return float(found.outcome.spent.redone_s)
    if name == "saves":
        return float(found.outcome.spent.saves)
    return float(MEASURES[name].of(found.outcome))


def _unknown_lines(found: Simulation) -> str:
    run = found.outcome.run
    lacking = {
        what: run.unknown(quantity)  # type: ignore[arg-type]
        for what, quantity in (("energy", "energy_j"), ("cost", "cost_usd"))
    }
    said = [
        f"{what}: {', '.join(line_label(line) for line in lines)}"
        for what, lines in lacking.items()
        if lines
    ]
    return "left out because unknown: " + "; ".join(said) if said else ""


def _states(found: Simulation) -> Table:
    columns = (
        Column("state", "where the time goes"),
        Column("share", "share", "share", "of all time of all runs"),
        Column("mean", "a run", "s", "mean over the runs"),
        Column("p5", "p5", "s"),
        Column("p95", "p95", "s"),
    )
    wall_s = found.values["wall"].mean()
    summaries = [(label, found.summary(name)) for name, label in _STATES]
    rows = [
        {"state": label, "share": summary.mean / wall_s, **summary._asdict()}
        for label, summary in summaries
        if summary.high > 0
    ]
    return Table("states", "Where the time goes", columns, rows)


def _kinds(found: Simulation) -> Table:
    columns = (
        Column("kind", "interrupted by"),
        Column("mean", "times a run", "1"),
        Column("p5", "p5", "count"),
        Column("p95", "p95", "count"),
    )
    rows = []
    for name, counts in zip(found.kinds, found.by_kind, strict=True):
        p5, p95 = np.quantile(counts, (0.05, 0.95)).tolist()
        rows.append({"kind": name, "mean": float(counts.mean()), "p5": p5, "p95": p95})
    return Table("kinds", "What interrupts a run", columns, rows, shown=len(rows) > 1)


_LINE = (
    Column("start", "up at", "s", "when the job is up again", of="start_s"),
    Column(
        "back",
        "back",
        "s",
        "start, load and warm-up",
        of=lambda step: step.init_s + step.load_s + step.warmup_s,
    ),
    Column("trained", "training", "s", of="trained_s"),
    Column("saves", "saves", "count", "saves that ended"),
    Column("stall", "saving", "s", of="stall_s"),
    Column("lost", "lost", "s", "training that has to be done again", of="lost_s"),
    Column("down", "down", "s", "detection and rescheduling", of="down_s"),
)


def _line(found: Simulation, line: Sequence[JobStep], run: int) -> Table:
    ends = {DONE: "work done", STOPPED: "limit"}
    columns = (
        *_LINE,
        Column(
            "ended_by", "ended by", of=lambda step: ends.get(step.kind) or found.kinds[step.kind]
        ),
        Column(
            "tier",
            "loads from",
            "count",
            "number of the tier that the job comes back from",
            of=lambda step: step.tier + 1 if step.kind >= 0 else None,
        ),
    )
    return table_of(
        "timeline", f"Run {run}, from each start to the next interruption", columns, line
    )


def _runs(found: Simulation) -> Table:
    units = {name: unit for name, _, unit in _ROWS} | {name: "s" for name, _ in _STATES}
    columns = (
        Column("run", "run", "count"),
        *(Column(name, name, unit) for name, unit in units.items()),
        Column("finished", "finished", "bool"),
    )
    values = {
        name: _PEOPLE.get(unit, np.asarray)(found.values[name]) for name, unit in units.items()
    }
    rows: list[dict[str, Any]] = [
        {
            "run": i,
            **{name: plain(float(value[i])) for name, value in values.items()},
            "finished": bool(found.finished[i]),
        }
        for i in range(found.asked.runs)
    ]
    return Table("runs", "Every run", columns, rows, shown=False)


def _findings(found: Simulation) -> list[str]:
    goodput, wall = found.summary("goodput"), found.summary("wall")
    finished = float(found.finished.mean())
    said = []
    if found.stopped_of:
        said.append(
            f"Stopped early: {count(found.asked.runs)} of {count(found.stopped_of)} runs had ended."
            " The shorter ones of those under way end first, so durations and costs lean low."
        )
    if finished < 1.0:
        said.append(
            f"{share(finished)} of the runs finish; the others are stopped by the limit of"
            f" {duration(found.asked.limit_s)}."
        )
    said.append(
        f"Goodput {share(goodput.mean)}; 9 of 10 runs {_spread(goodput, share)}, and take"
        f" {_span(wall, duration)}."
        if found.asked.runs > 1
        else f"Goodput {share(goodput.mean)}; the run takes {duration(wall.mean)}."
    )
    return [*said, *_added_lines(found), *_by_closed_form(found)]


def _added_lines(found: Simulation) -> list[str]:
    kwh, usd = found.summary("kwh"), found.summary("usd")
    if np.isnan(kwh.mean):
        return []
    money = "" if np.isnan(usd.mean) else f", {number(usd.mean)} USD{_bracket(usd.p5, usd.p95)}"
    ends = _bracket(to_kwh(kwh.p5), to_kwh(kwh.p95))
    return [f"Checkpoints and failures add {number(to_kwh(kwh.mean))} kWh{ends}{money}."]


def _by_closed_form(found: Simulation) -> list[str]:
    """How far the mean is from what the formula says, or many failures come to."""
    if not found.exact:
        if found.long_run_goodput is None:
            return []
        many = f"Over many failures such gaps give {share(found.long_run_goodput)}"
        return [f"{many}, by the renewal series."]
    wall, closed_s = found.summary("wall"), float(found.outcome.wall_s)
    closed = f"The closed form says {duration(closed_s)} and {share(float(found.outcome.goodput))}"
    if not _whole(found):
        whole = (
            "for a run of many whole intervals; here the last one is shorter, with a whole save."
        )
        return [f"{closed} {whole}"]
    if not wall.error > 0:
        return [f"{closed}."]
    off = (wall.mean - closed_s) / wall.error
    return [
        f"{closed}: the mean duration here is {abs(off):.1f} standard errors"
        f" {'above' if off >= 0 else 'below'} it."
    ]


def _spread(of: QuantitySummary, words: Callable[[float], str]) -> str:
    """Where most runs lie; one figure where rounding leaves no more."""
    low, high = words(of.p5), words(of.p95)
    return f"lie at {low}" if low == high else f"lie between {low} and {high}"


def _span(of: QuantitySummary, words: Callable[[float], str]) -> str:
    low, high = words(of.p5), words(of.p95)
    return low if low == high else f"{low} to {high}"


def _bracket(low: float, high: float) -> str:
    ends = number(low), number(high)
    return "" if ends[0] == ends[1] else f" ({ends[0]}-{ends[1]})"


def _whole(found: Simulation) -> bool:
    """Whether the run is whole intervals, or its broken last one, which the closed form spreads
    evenly, is lost in the noise."""
    s, o = found.resolved.scenario, found.outcome
    every = float(s.policy.second_every) if s.second_tier is not None else 1.0
    periods = float(s.work_s / o.interval_s) / every
    extra_s = (math.ceil(periods - 1e-9) - periods) * every * float(o.mean_stall_s)
    error = found.summary("wall").error
    return math.isnan(error) or bool(extra_s <= 0.3 * error)


def _warnings(found: Simulation) -> list[tuple[str, str]]:
    held = [c for c in cautions_of(found.resolved.scenario, found.outcome) if bool(c.holds)]
    unknown = [
        ("UNKNOWN_INPUT", unknown_text(path, reason))
        for path, reason in found.resolved.unknown.items()
    ]
    return [(c.code, caution_text(c)) for c in held] + unknown
