"""Simulate: many whole runs of one scenario, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ckptcost.first.core.bill import Line
from ckptcost.first.core.interruptions import Floats
from ckptcost.first.core.job import JobStep
from ckptcost.first.core.measures import MEASURES
from ckptcost.first.core.outcome import Outcome
from ckptcost.first.core.quantities import FIELDS
from ckptcost.first.core.renewal import long_run_goodput
from ckptcost.first.core.simulate import (
    QuantitySummary,
    bills_of,
    job_of,
    ratio_summary,
    spent_of,
    summary_of,
)
from ckptcost.first.errors import Argument, CkptcostError, InputError, UnknownName
from ckptcost.first.jobs.gates import Gate, GateVerdict, check_gates
from ckptcost.first.jobs.walks import (
    Prepared,
    SimulationRequest,
    parts_of,
    prepared_for,
    spans_of,
    walk_runs,
)
from ckptcost.first.scenario import Resolved

MOST_RUNS = 10_000_000
SHAPES = ("fixed", "triangle", "pert", "uniform")


MOST_BILLED_RUNS = 20_000
"""beyond it the arrays of all lines would be large"""


class Simulation(NamedTuple):
    """Many runs of one scenario; every array has one element a run."""

    resolved: Resolved
    asked: SimulationRequest
    outcome: Outcome
    """the closed form's, where there is one: exponential failures, inputs fixed, the scenario's own
    kinds"""
    exact: bool
    """whether the closed form speaks of the same runs"""
    kinds: tuple[str, ...]
    values: dict[str, Floats]
    """measures and state times by name, base units"""
    by_kind: Floats
    finished: Floats
    stopped_of: int = 0
    """so many runs were asked for, and only those in `asked` have ended; 0: all have"""
    long_run_goodput: float | None = None
    """what the renewal series says of many failures, for exponential and Weibull gaps on one
    tier"""

    def summary(self, name: str) -> QuantitySummary:
        if name == "goodput":
            return ratio_summary(self.values["kept"], self.values["wall"])
        return summary_of(self.values[name])


def simulate(
    resolved: Resolved, asked: SimulationRequest, note: Callable[[float], None] | None = None
) -> Simulation:
    """Walk through all runs. `note` hears how many are done; one that raises `Enough` gets those
    that ended by then."""
    _check(asked)
    prepared = prepared_for(resolved, asked)
    total = asked.runs
    out, ended = _collect_values(prepared, note)
    if ended == 0:
        raise CkptcostError("stopped before one run had ended: nothing is known yet")
    if ended < total:
        asked = asked._replace(runs=ended)
        out = {name: values[..., :ended] for name, values in out.items()}
    exact = asked.is_plain and asked.process == "exponential" and asked.mean_s is None
    exact = exact and prepared.scenario.third_tier is None
    by_kind, finished = out.pop("by_kind"), out.pop("finished")
    names = tuple(kind.name for kind in prepared.kinds)
    return Simulation(
        resolved,
        asked,
        prepared.outcome,
        exact,
        names,
        out,
        by_kind,
        finished,
        total if ended < total else 0,
        _long_run(prepared),
    )


def _collect_values(
    prepared: Prepared, note: Callable[[float], None] | None
) -> tuple[dict[str, Floats], int]:
    """The values of all pieces, with room for all runs, and how many runs have ended."""
    out: dict[str, Floats] = {}
    ended = 0
    for start, part in parts_of(prepared, note):
        for name, values in part.items():
            if name not in out:
                out[name] = np.empty((*values.shape[:-1], prepared.asked.runs))
            ended = start + values.shape[-1]
            out[name][..., start:ended] = values
    return out, ended


def _long_run(prepared: Prepared) -> float | None:
    """The long-run goodput of a renewal law, where the series speaks of the same runs."""
    asked, plan = prepared.asked, prepared.outcome.plan
    renews = asked.is_plain and asked.process in ("exponential", "weibull")
    if not renews or plan.second is not None or not prepared.rate_per_s > 0:
        return None
    s = prepared.scenario
    r = job_of(s, plan, s.policy.every, prepared.kinds).rhythm
    blocked_s = float(r.wait_s / r.in_flight)
    kept_s, drag_s, stall_s, lag_s = (
        float(x) for x in (r.kept_s, r.drag_s, r.stall_s + blocked_s, plan.saved.lag_s)
    )
    return long_run_goodput(
        kept_s,
        drag_s,
        stall_s,
        blocked_s,
        lag_s,
        plan.recovery,
        1.0 / prepared.rate_per_s,
        asked.shape,
        float(r.in_flight),
    )


def _check(asked: SimulationRequest) -> None:
    if not 1 <= asked.runs <= MOST_RUNS:
        raise InputError(
            f"{asked.runs:,} runs", where=Argument("runs"), remedy=f"1 to {MOST_RUNS:,}"
        )
    if not 1 <= asked.workers <= 256:
        raise InputError(f"{asked.workers} workers", where=Argument("workers"), remedy="1 to 256")
    if asked.seed < 0 or asked.seed >= 2**63:
        raise InputError("out of range", where=Argument("seed"), remedy="0 to 2^63-1")
    if asked.inputs not in SHAPES:
        raise UnknownName("way to draw inputs", asked.inputs, SHAPES, where=Argument("inputs"))
    if not 0.1 <= asked.shape <= 20:
        raise InputError(
            f"a Weibull shape of {asked.shape:g}",
            where=Argument("failures"),
            remedy="0.1 to 20; below 1 is infant mortality",
        )
    if not asked.limit_s > 0:
        raise InputError("must be more than 0 s", where=Argument("limit"))


def time_line(
    resolved: Resolved, asked: SimulationRequest, run: int
) -> tuple[list[JobStep], tuple[str, ...]]:
    """One run, step by step, exactly as it is among the others; and the names of the kinds."""
    _check(asked)
    if not 0 <= run < asked.runs:
        raise InputError(
            f"there is no run {run}", where=Argument("timeline"), remedy=f"0 to {asked.runs - 1}"
        )
    prepared = prepared_for(resolved, asked)
    steps: list[JobStep] = []
    walk_runs(prepared, run, run + 1, None, steps)
    return steps, tuple(kind.name for kind in prepared.kinds)


def verdicts_of(simulation: Simulation, gates: list[Gate]) -> list[GateVerdict]:
    """Each target against the runs: a mean, or the percentile that it asks for."""

    def value(gate: Gate) -> float:
        name = gate.measure.id
        if name not in simulation.values:
            return float(MEASURES[name].of(simulation.outcome))
        summary = simulation.summary(name)
        return {
            "": summary.mean,
            "mean": summary.mean,
            "p5": summary.p5,
            "p50": summary.p50,
            "p95": summary.p95,
        }[gate.statistic]

    return check_gates(gates, value)


class SimulatedLine(NamedTuple):
    """One line of the bill; every array has one element a run."""

    line: Line
    """of the first run: its id, cause, ledger and boundary"""
    values: dict[str, Floats]
    """by quantity, in base units; NaN where not known"""


def lines_of(found: Simulation) -> list[SimulatedLine] | None:
    """The lines of the very runs that were simulated; None where there are too many runs."""
    runs = found.asked.runs
    if runs > MOST_BILLED_RUNS:
        return None
    prepared = prepared_for(found.resolved, found.asked)
    told: dict[str, SimulatedLine] = {}
    for start, stop in spans_of(prepared):
        walk, s, plan, job = walk_runs(prepared, start, stop, None)
        for line in bills_of(s, plan, spent_of(s, plan, job, walk)).lines:
            each = told.setdefault(
                line.id, SimulatedLine(line, {q: np.empty(runs) for q in FIELDS})
            )
            for quantity in FIELDS:
                each.values[quantity][start:stop] = getattr(line, quantity)
    return list(told.values())
