"""The walks behind a simulation: what is asked and of what, and its pieces on one processor or
several; the same numbers either way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ckptcost.first.catalog.interruptions import SaidKind, Trace
from ckptcost.first.core import streams
from ckptcost.first.core.domain import Scenario
from ckptcost.first.core.draws import Ranges, scenario_at_quantiles
from ckptcost.first.core.interruptions import (
    NEVER,
    Floats,
    InterruptionKind,
    InterruptionProcess,
    Platform,
    Renewal,
    TraceReplay,
    platform_times_s,
)
from ckptcost.first.core.job import Job, JobStep, Runs
from ckptcost.first.core.measures import BILLED
from ckptcost.first.core.outcome import Outcome, Plan, evaluate, plan_of
from ckptcost.first.core.simulate import bills_of, job_of, kinds_of, spent_of
from ckptcost.first.core.timing import nodes_of
from ckptcost.first.core.walk import MOST_EVENTS, EndlessError, Enough, walk
from ckptcost.first.errors import Argument, InputError, UnknownName
from ckptcost.first.jobs.model import computable, planned_scenario
from ckptcost.first.jobs.workers import in_order
from ckptcost.first.scenario import Resolved, ties_of, world_ranges_of

CHUNK = 8192
MOST_TABLE = 4_000_000
"""instants of a platform's nodes held at once"""
HORIZON = 4.0
"""a platform's instants reach this many times as far as the closed form says that a run takes, and
as many times again if they must"""


class SimulationRequest(NamedTuple):
    """What to simulate."""

    runs: int = 1000
    seed: int = 1
    process: str = "exponential"
    """exponential, weibull (gaps of the job), weibull-nodes (nodes of all ages that are replaced),
    trace"""
    shape: float = 1.0
    mean_s: float | None = None
    """mean time between interruptions, instead of the scenario's"""
    trace: Trace | None = None
    kinds: tuple[SaidKind, ...] = ()
    limit_s: float = NEVER
    inputs: str = "fixed"
    """how inputs with a range are drawn: fixed, triangle, pert, uniform"""
    chunk: int = CHUNK
    workers: int = 1

    @property
    def is_plain(self) -> bool:
        """Inputs as given, the scenario's own kinds, and no end but the work's."""
        return self.inputs == "fixed" and not self.kinds and self.limit_s == NEVER


_PIECES = ("detect_s", "reschedule_s", "init_s", "warmup_s")


class Prepared(NamedTuple):
    """All that a piece of the work needs; it travels to other processes."""

    scenario: Scenario
    """its interval is fixed: the plan stays as chosen, only the world varies"""
    ranges: Ranges
    ties: dict[str, str]
    kinds: tuple[InterruptionKind, ...]
    """still without their shares, which follow from a run's own failure rate"""
    mix: tuple[tuple[float, float], ...]
    """of each kind: its part of the scenario's failures, and its rate on top of them"""
    rate_per_s: float
    """all interruptions, inputs as given"""
    asked: SimulationRequest
    outcome: Outcome
    trace_kinds: tuple[int, ...]


def prepared_for(resolved: Resolved, asked: SimulationRequest) -> Prepared:
    s = resolved.scenario
    for name, every in (("second", s.policy.second_every), ("third", s.policy.third_every)):
        if float(every) != round(float(every)):
            raise InputError("must be a whole number to be simulated", key=f"policy.{name}_every")
    two = replace(s, third_tier=None)
    outcome = evaluate(two)
    computable(resolved, outcome)
    kinds, mix = _kinds(s, outcome, asked.kinds)
    _check_record(asked)
    rate_per_s = float(_total(_base_per_s(asked, outcome.plan), mix))
    if outcome.interval_s > float(s.work_s):
        raise InputError(
            "the interval is longer than the run, so nothing would ever be saved",
            key="policy",
            remedy="save at least once in the run",
        )
    planned = planned_scenario(s, outcome)
    _check_end(planned, outcome, asked)
    ranges = world_ranges_of(resolved) if asked.inputs != "fixed" else {}
    for path in ("failures.node_loss_fraction", "failures.second_loss_fraction"):
        ranges.pop(path, None)  # the kinds keep their shares
    return Prepared(
        planned,
        ranges,
        ties_of(resolved),
        kinds,
        mix,
        rate_per_s,
        asked,
        outcome,
        _trace_kinds(asked, kinds),
    )


def _check_record(asked: SimulationRequest) -> None:
    """A record holds all interruptions, so that no kind adds some."""
    if asked.trace is None:
        return
    for kind in asked.kinds:
        if kind.rate_per_s:
            remedy = (
                "a record holds all interruptions: give the kind a share of them, or name it in the"
                " record's column kind"
            )
            where = Argument("kinds")
            raise InputError("adds a rate to a record", where=where, key=kind.name, remedy=remedy)


def _check_end(planned: Scenario, outcome: Outcome, asked: SimulationRequest) -> None:
    """The closed form knows at once what a walk finds out in minutes."""
    if asked.limit_s != NEVER or asked.kinds or asked.trace is not None:
        return
    if asked.mean_s is not None:
        failures = replace(planned.failures, mtbf_s=asked.mean_s)
        outcome = evaluate(replace(planned, failures=failures, third_tier=None))
    if not float(outcome.failures) <= MOST_EVENTS:
        raise _endless()


def _base_per_s(asked: SimulationRequest, plan: Plan) -> Any:
    """Rate of the scenario's own failures: one value a run where inputs are drawn, unless its mean
    is given."""
    return plan.failures_per_s if asked.mean_s is None else 1.0 / asked.mean_s


def _total(base_per_s: Any, mix: tuple[tuple[float, float], ...]) -> Any:
    return sum(base_per_s * part + more for part, more in mix)


def _endless() -> InputError:
    return InputError(
        "a run is interrupted a million times before it is through",
        key="failures",
        remedy="save more often, on a faster tier, or give a --limit",
    )


def _kinds(
    s: Scenario, outcome: Outcome, said: tuple[SaidKind, ...]
) -> tuple[tuple[InterruptionKind, ...], tuple[tuple[float, float], ...]]:
    """Every kind, its part of the scenario's failures and its rate on top of them."""
    rest = 1.0 - sum(kind.share or 0.0 for kind in said)
    own = kinds_of(s, outcome.plan) if rest > 1e-9 else ()
    names = [kind.name for kind in own]
    kinds = (*own, *(_said_kind(s, each, names) for each in said))
    mix: list[tuple[Any, float]] = [(rest * kind.share, 0.0) for kind in own]
    mix += [(each.share or 0.0, each.rate_per_s or 0.0) for each in said]
    return kinds, tuple(mix)


def _said_kind(s: Scenario, said: SaidKind, names: Sequence[str]) -> InterruptionKind:
    """One that the user describes, beside the scenario's own."""
    tiers = 1 + (s.second_tier is not None) + (s.third_tier is not None)
    if said.tier > tiers:
        raise InputError(
            f"comes back from tier {said.tier}, the scenario has {tiers}",
            where=Argument("kinds"),
            key=said.name,
        )
    if said.name in names:
        raise InputError(
            "is the name of a kind of the scenario's own",
            where=Argument("kinds"),
            key=said.name,
            remedy="call it something else",
        )
    pieces = {piece: _or(getattr(said, piece), getattr(s.failures, piece)) for piece in _PIECES}
    after_s = _or(said.every_s, NEVER)
    return InterruptionKind(
        said.name, 0.0, said.tier - 1, **pieces, notice_s=said.notice_s, after_s=after_s
    )


def _kind_shares(
    prepared: Prepared, kinds: tuple[InterruptionKind, ...], plan: Plan
) -> tuple[tuple[InterruptionKind, ...], Any]:
    """The kinds with their shares of all interruptions, and the rate of all; both one value a run
    where inputs are drawn."""
    base_per_s = _base_per_s(prepared.asked, plan)
    total_per_s = _total(base_per_s, prepared.mix)
    if prepared.asked.trace is not None or not np.any(total_per_s):
        # a record has its shares of kinds even where the scenario knows of no failures
        whole = sum(part for part, _ in prepared.mix)
        return (
            tuple(
                k._replace(share=part / whole if whole else 0.0)
                for k, (part, _) in zip(kinds, prepared.mix, strict=True)
            ),
            total_per_s,
        )
    shares = [(base_per_s * part + more) / total_per_s for part, more in prepared.mix]
    return (
        tuple(kind._replace(share=share) for kind, share in zip(kinds, shares, strict=True)),
        total_per_s,
    )


def _or(said: float | None, otherwise: Any) -> Any:
    return otherwise if said is None else said


def _trace_kinds(asked: SimulationRequest, kinds: tuple[InterruptionKind, ...]) -> tuple[int, ...]:
    if asked.trace is None or not asked.trace.kinds:
        return ()
    names = [kind.name for kind in kinds]
    for name in asked.trace.kinds:
        if name not in names:
            raise UnknownName("kind", name, names, where=Argument("trace"), key="kind")
    return tuple(names.index(name) for name in asked.trace.kinds)


def spans_of(prepared: Prepared) -> list[tuple[int, int]]:
    """Pieces of the runs that fit into memory."""
    asked = prepared.asked
    size = asked.chunk
    if asked.process == "weibull-nodes":
        expected = max(HORIZON * float(prepared.outcome.wall_s) * prepared.rate_per_s, 1.0)
        size = max(1, min(size, int(MOST_TABLE / (2.0 * expected))))  # 0 where it is infinite
    return [(start, min(start + size, asked.runs)) for start in range(0, asked.runs, size)]


def parts_of(
    prepared: Prepared, note: Callable[[float], None] | None
) -> Iterator[tuple[int, dict[str, Floats]]]:
    """Pieces as they are done, each with the number of its first run; one that was stopped holds
    the runs that ended."""
    asked, spans = prepared.asked, spans_of(prepared)
    if asked.workers == 1 or len(spans) == 1:
        for start, stop in spans:
            heard = None if note is None else (lambda done, start=start: note(start + done))
            part, whole = _part(prepared, start, stop, heard)
            yield start, part
            if not whole:
                return
        return
    pieces = [(prepared, start, stop) for start, stop in spans]
    parts = zip(spans, in_order(_part, pieces, asked.workers), strict=True)
    try:
        for (start, stop), (part, _) in parts:
            yield start, part
            if note is not None:
                note(stop)
    except Enough:
        return


def _part(
    prepared: Prepared, start: int, stop: int, note: Callable[[float], None] | None = None
) -> tuple[dict[str, Floats], bool]:
    """Runs start..stop-1, and whether these are all of them."""
    try:
        runs, s, plan, job = walk_runs(prepared, start, stop, note)
        ended = np.ones(stop - start, dtype=bool)
    except Enough as stopped:
        s, plan, job, _, _ = _jobs(prepared, start, stop)
        runs, ended = stopped.runs, stopped.ended
    with np.errstate(divide="ignore", invalid="ignore"):  # of runs that have not ended
        part = _values(s, plan, job, runs, stop - start)
    return {name: values[..., ended] for name, values in part.items()}, bool(ended.all())


def _values(s: Scenario, plan: Plan, job: Job, runs: Runs, count: int) -> dict[str, Floats]:
    spent = spent_of(s, plan, job, runs)
    bill = bills_of(s, plan, spent)
    wall_s = runs.wall_s
    values: dict[str, Any] = {
        "wall": wall_s,
        "kept": runs.kept_s,
        "goodput": runs.kept_s / wall_s,
        "failures": runs.interruptions,
        "saves": runs.saves,
        "redone": spent.redone_s,
        "slowed": spent.slowed_s,
        "stall_time": runs.stall_s,
        "detect": runs.detect_s,
        "reschedule": runs.reschedule_s,
        "init": runs.init_s,
        "load": runs.load_s,
        "warmup": runs.warmup_s,
        **{name: bill.total(q.field) for name, q in BILLED.items()},
        "finished": runs.finished.astype(float),
    }
    part = {
        name: np.broadcast_to(np.asarray(value, dtype=float), (count,))
        for name, value in values.items()
    }
    return part | {"by_kind": runs.by_kind}


def walk_runs(
    prepared: Prepared,
    start: int,
    stop: int,
    note: Callable[[float], None] | None,
    line: list[JobStep] | None = None,
) -> tuple[Runs, Scenario, Plan, Job]:
    """Runs start..stop-1 to their end, with the scenario, plan and job that they are runs of."""
    s, plan, job, ids, rate_per_s = _jobs(prepared, start, stop)
    keys = streams.keys_of(prepared.asked.seed, streams.KINDS, ids)
    horizon_s = HORIZON * float(prepared.outcome.wall_s)
    while True:
        try:
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                process = _process(prepared, s, ids, rate_per_s, horizon_s)
                steps: list[JobStep] | None = None if line is None else []
                runs = walk(job, process, keys, note, steps)
        except EndlessError:
            raise _endless() from None
        if not isinstance(process, Platform) or float(runs.wall_s.max()) <= horizon_s:
            break
        horizon_s *= HORIZON
    if line is not None and steps is not None:
        line += steps
    return runs, s, plan, job


def _jobs(prepared: Prepared, start: int, stop: int) -> tuple[Scenario, Plan, Job, Any, Any]:
    """What runs start..stop-1 are runs of: scenario, plan, job, their numbers and rates of
    interruption."""
    asked = prepared.asked
    ids: Any = np.arange(start, stop, dtype=np.int64)
    s = prepared.scenario
    if prepared.ranges:
        s = scenario_at_quantiles(
            s,
            prepared.ranges,
            prepared.ties,
            asked.inputs,
            lambda figure: streams.uniforms(
                streams.keys_of(asked.seed, streams.INPUTS, ids), figure
            ),
        )
    plan = plan_of(s)
    kinds = prepared.kinds
    if prepared.ranges:  # pieces that are the scenario's own vary with it
        said = {each.name: each for each in asked.kinds}
        own = {
            kind.name: {
                p: getattr(s.failures, p)
                for p in _PIECES
                if getattr(said.get(kind.name), p, None) is None
            }
            for kind in kinds
        }
        kinds = tuple(kind._replace(**own[kind.name]) for kind in kinds)
    kinds, rate_per_s = _kind_shares(prepared, kinds, plan)
    return s, plan, job_of(s, plan, s.policy.every, kinds, asked.limit_s), ids, rate_per_s


def _process(
    prepared: Prepared, s: Scenario, ids: Any, rate_per_s: Any, horizon_s: float
) -> InterruptionProcess:
    asked = prepared.asked
    if asked.process == "trace" and asked.trace is not None:
        trace = asked.trace
        offsets = (
            streams.uniforms(streams.keys_of(asked.seed, streams.OFFSETS, ids), 0) * trace.span_s
        )
        offsets = np.where(ids == 0, 0.0, offsets)  # the first run is the record itself
        kinds = np.array(prepared.trace_kinds, dtype=np.intp) if prepared.trace_kinds else None
        return TraceReplay(np.array(trace.times_s), kinds, trace.span_s, offsets)
    if asked.process == "weibull-nodes":
        nodes = int(np.max(nodes_of(s.cluster)))
        if not prepared.rate_per_s > 0:
            raise InputError(
                "nothing fails in this scenario",
                where=Argument("failures"),
                remedy="give failures.rate",
            )
        if not horizon_s * float(np.max(rate_per_s)) < MOST_EVENTS:
            raise EndlessError
        keys = streams.keys_of(asked.seed, streams.NODES, ids)
        times_s = platform_times_s(keys, nodes, nodes / rate_per_s, asked.shape, horizon_s)
        return Platform(times_s, horizon_s)
    mean_s = np.divide(1.0, rate_per_s)
    return Renewal(
        streams.keys_of(asked.seed, streams.GAPS, ids),
        mean_s,
        asked.shape if asked.process == "weibull" else 1.0,
    )
