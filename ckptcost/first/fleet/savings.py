"""What the best interval, a faster tier or saving beside training would have saved: the model, run
on the fleet's own numbers.

Stall, drain, load, downtime and the work between saves are each job's own, the rate of failures is
the fleet's. What the model says of the job as it was stands beside what was measured: where these
are far apart, so is what it says of anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, inf, isinf, isnan, nan
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core import money
from ckptcost.first.core.bill import electricity_usd_per_j
from ckptcost.first.core.estimates import Floats
from ckptcost.first.core.failures import Recovery, States, segment
from ckptcost.first.core.numeric import times
from ckptcost.first.core.optimum import best_interval_s
from ckptcost.first.core.quantities import Quantity, pick
from ckptcost.first.core.units import to_hours
from ckptcost.first.fleet.bill_tables import plain, row_of, with_ends
from ckptcost.first.fleet.figures import over
from ckptcost.first.fleet.grouping import (
    Places,
    add_by_place,
    flags,
    groups_of,
    instants,
    numbered,
    numbers,
    quotients,
)
from ckptcost.first.fleet.lines import UNKNOWN, FleetAmount
from ckptcost.first.fleet.runs_seen import FAILED, RunSeen
from ckptcost.first.present.amounts import duration, number
from ckptcost.first.report.study import Column, Table

if TYPE_CHECKING:
    from pandas import DataFrame

    from ckptcost.first.core.domain import Scenario
    from ckptcost.first.fleet.figures import Fleet, GroupFigures
    from ckptcost.first.fleet.part import StorePart


# How a job saves, as the model wants to know it: means over its saves, loads and failures, and
# the power of its nodes meanwhile.


_NS = 1e-9


class Usual(NamedTuple):
    """Of one job."""

    job: str
    nodes: float
    """in the mean of its running time"""
    gpus: float
    interval_s: float
    """work between two saves"""
    stall_s: float
    lag_s: float
    """from the return until safe; 0 where nobody says"""
    asynchronous: bool
    """it drains for longer than it holds training up"""
    bytes: float
    load_s: float
    """0 where none was seen"""
    down_s: float
    """from a failure until the next run; 0 where none was seen"""
    useful_s: float
    """of runs of which nobody knows it at the mean of the others, as in goodput"""
    useful_gpu_s: float
    goodput: float
    train_w: float
    """of all its nodes, missing ones at the mean of the others; without the hosts' part where that
    is not known of training or of stalls"""
    stall_w: float
    """the same"""
    why: str


def usual_of(part: StorePart, fleet: Fleet) -> tuple[Usual, ...]:
    """Every job, by name."""
    cells = fleet.cells
    groups = groups_of(cells, "job")
    windows = part.windows
    job = groups.of_cells[cells.of_windows]
    many = len(groups.names)
    saves = ~flags(windows, "load") & ~flags(windows, "failed")
    drain, size = (_mean(numbers(windows, name), job, saves, many) for name in ("drain_s", "bytes"))
    still = _Still.seen(windows, ~flags(windows, "load"), job, many)
    intervals = _intervals(
        part, cells.of_windows, job, many, [*zip(cells.job, cells.run, strict=True)]
    )
    of_job: dict[str, list[RunSeen]] = {}
    for run in fleet.runs:
        of_job.setdefault(run.job, []).append(run)
    return tuple(
        _usual(
            group,
            of_job.get(group.name, []),
            float(intervals[at]),
            float(drain[at]),
            float(size[at]),
            tuple(fleet.pue * watts for watts in still.of(at)),
            fleet.pue,
        )
        for at, group in enumerate(fleet.jobs)
    )


def _usual(
    group: GroupFigures,
    runs: Sequence[RunSeen],
    interval_s: float,
    lag_s: float,
    size: float,
    still_w: tuple[float, ...],
    pue: float,
) -> Usual:
    own_s = fsum(run.own_s for run in runs)
    nodes, gpus = (
        over(fsum(run.own_s * getattr(run, name) for run in runs), own_s)
        for name in ("nodes", "gpus")
    )
    restarts = [run.restart_s for run in runs if run.state == FAILED and run.restart_s > 0]
    stall_s = group.stalls.mean_s
    if isnan(interval_s):  # one save in each run
        interval_s = over(own_s - group.stall_s - group.load_s, float(group.checkpoints))
    needed = {"NO_SAVES": group.checkpoints, "NO_STALL": stall_s, "NO_INTERVAL": interval_s}
    why = next((code for code, value in needed.items() if not value > 0), "")
    return Usual(
        group.name,
        nodes,
        gpus,
        interval_s,
        stall_s,
        _or_0(lag_s),
        lag_s > stall_s,
        size,
        _or_0(over(group.load_s, float(group.loads - group.unknown.get("load", 0)))),
        fsum(restarts) / len(restarts) if restarts else 0.0,
        _useful_s(runs),
        group.useful_gpu_s,
        group.goodput,
        *_watts(runs, nodes, still_w, pue),
        why,
    )


class _Still(NamedTuple):
    """A node that is there while its job stands still for a save: by job, joules and the seconds of
    nodes that they are of."""

    gpu: tuple[Floats, Floats]
    host: tuple[Floats, Floats]
    wait: tuple[Floats, Floats]
    """what nodes that were done drew until the last one was, over the same seconds"""

    @classmethod
    def seen(cls, windows: DataFrame, saves: NDArray[np.bool_], job: Places, many: int) -> _Still:
        stall_s = numbers(windows, "stall_s")

        def sums(line: str) -> tuple[Floats, Floats]:
            joules = numbers(windows, f"{line}_j")
            node_s = stall_s * numbers(windows, f"{line}_nodes")
            which = saves & ~np.isnan(joules) & (node_s > 0)
            return add_by_place(joules[which], job[which], many), add_by_place(
                node_s[which], job[which], many
            )

        return cls(sums("gpu"), sums("host"), sums("wait"))

    def of(self, at: int) -> tuple[float, float, float]:
        """Watts."""
        gpu_w, host_w, wait_w = (
            over(float(joules[at]), float(node_s[at])) for joules, node_s in self
        )
        return gpu_w, host_w, wait_w


def _watts(
    runs: Sequence[RunSeen], nodes: float, still_w: tuple[float, ...], pue: float
) -> tuple[float, float]:
    """While training, and while it stands still for a save: of a node that is there, times all;
    with the PUE that is in the lines."""
    gpu_w, host_w = (
        pue
        * over(
            fsum(
                run.own_s * run.nodes * each.value
                for run in runs
                if (each := getattr(run, name)).known
            ),
            _mean_seen(runs, name),
        )
        for name in ("train_gpu_w", "train_host_w")
    )
    gpu_still_w, host_still_w, wait_w = still_w
    if isnan(host_w + host_still_w):
        host_w = host_still_w = 0.0
    return nodes * (gpu_w + host_w), nodes * (gpu_still_w + host_still_w + _or_0(wait_w))


def _useful_s(runs: Sequence[RunSeen]) -> float:
    known = [run for run in runs if not isnan(run.spent.useful_s)]
    all_s, known_s = (fsum(run.own_s + run.restart_s for run in some) for some in (runs, known))
    return fsum(run.spent.useful_s for run in known) * (
        over(all_s, known_s) if len(known) < len(runs) else 1.0
    )


def _or_0(value: float) -> float:
    return 0.0 if isnan(value) else value


def _mean_seen(runs: Sequence[RunSeen], name: str) -> float:
    return fsum(run.own_s * run.nodes for run in runs if getattr(run, name).known)


def _mean(values: Floats, places: Places, which: NDArray[np.bool_], many: int) -> Floats:
    which = which & ~np.isnan(values)
    sums = add_by_place(values[which], places[which], many)
    return quotients(sums, np.bincount(places[which], minlength=many))


def _intervals(
    part: StorePart, cell: Places, job: Places, many: int, runs: Sequence[tuple[str, str]]
) -> Floats:
    """By job, from a save's return to the next one's begin in the same run, in the mean; failed
    ones stand between, too."""
    windows = part.windows
    run = numbered(runs)[1][cell]
    begin_ns, stall_s = instants(windows, "begin_ns"), numbers(windows, "stall_s")
    rows = np.flatnonzero(~flags(windows, "load"))
    rows = rows[np.argsort(run[rows], kind="stable")]
    first, second = rows[:-1], rows[1:]
    if (begin_ns[second] < begin_ns[first])[
        run[second] == run[first]
    ].any():  # a finished part is by job and time
        rows = rows[np.lexsort((begin_ns[rows], run[rows]))]
    first, second = rows[:-1], rows[1:]
    gap_s = (begin_ns[second] - begin_ns[first]) * _NS - stall_s[first]
    return _mean(np.maximum(gap_s, 0.0), job[first], run[first] == run[second], many)


BEST_INTERVAL: Final = "BEST_INTERVAL"
TWICE: Final = "TIER_2X"
TENFOLD: Final = "TIER_10X"
ASYNC: Final = "ASYNC"
OPTIONS: Final = (BEST_INTERVAL, TWICE, TENFOLD, ASYNC)
_FASTER: Final = {BEST_INTERVAL: 1.0, TWICE: 2.0, TENFOLD: 10.0}
_RATES: Final = 33
"""failure rates that are tried from one end of the interval to the other: a saving is least
somewhere inside, not at an end"""


class Option(NamedTuple):
    """Against what was done. Each is at its own best interval."""

    id: str
    interval_s: FleetAmount
    """work between saves"""
    overhead: FleetAmount
    """share of the time that is not work kept"""
    gpu_s: FleetAmount
    energy_j: FleetAmount
    """of the nodes while they train, stand and load; at the facility where a site is known"""
    cost_usd: FleetAmount
    why: str
    """NO_COPY_RATE: as if the copy that training waits for took no time, so this is the most it can
    save"""


class JobSavings(NamedTuple):
    job: str
    usual: Usual
    mtbf_s: FleetAmount
    """of the job: the fleet's node over its nodes"""
    measured_overhead: float
    modelled_overhead: FleetAmount
    """at the interval that it had"""
    ratio: float
    """modelled over measured"""
    options: tuple[Option, ...]
    why: str
    """NO_FAILURES: none was seen, so failures are taken to be as frequent as they can be, and
    values are the least; NO_SAVES, NO_STALL, NO_INTERVAL, NO_EXPOSURE: nothing can be said"""


class AllSavings(NamedTuple):
    id: str
    jobs: int
    """that the sums are of"""
    gpu_s: FleetAmount
    energy_j: FleetAmount
    cost_usd: FleetAmount


class Savings(NamedTuple):
    jobs: tuple[JobSavings, ...]
    whole: tuple[AllSavings, ...]


class _Rates(NamedTuple):
    """Failures of the job per second; the first is the value, the others lie from end to end."""

    per_s: Floats
    none_seen: bool
    """no failure: the first is as many as there can be, and there may be none at all"""

    def amount(self, values: Any) -> FleetAmount:
        seen = np.asarray(values, dtype=np.float64)
        return (
            UNKNOWN
            if isnan(seen[0])
            else FleetAmount(float(seen[0]), float(np.nanmin(seen)), float(np.nanmax(seen)))
        )

    def told(self, values: Any) -> FleetAmount:
        """Where no failure was seen there are ends and no value: the rate that makes one is a
        guess."""
        found = self.amount(values)
        return found._replace(value=nan) if self.none_seen else found

    def least(self, values: Any) -> FleetAmount:
        """The low end, where no failure was seen: it holds whatever their rate is."""
        found = self.amount(values)
        return found._replace(value=found.low) if self.none_seen else found


def savings_of(part: StorePart, fleet: Fleet, s: Scenario | None) -> Savings:
    """Every job, by name. `fleet`: the part's, by whatever, with the same scenario."""
    jobs = tuple(_job(usual, fleet, s) for usual in usual_of(part, fleet))
    return Savings(jobs, tuple(_together(name, jobs) for name in OPTIONS))


def _job(usual: Usual, fleet: Fleet, s: Scenario | None) -> JobSavings:
    node = fleet.failures.node_mtbf_s
    measured = 1.0 - usual.goodput
    why = usual.why or (node.why if usual.nodes > 0 else "NO_EXPOSURE")
    if why not in ("", "NO_FAILURES"):
        return JobSavings(usual.job, usual, UNKNOWN, measured, UNKNOWN, nan, (), why)
    ends = (node.value, node.low or nan, inf if node.high is None else node.high)
    mtbf = FleetAmount(*(float(end) / usual.nodes for end in ends))
    rates = _rates(mtbf)
    recovery = Recovery(usual.down_s, 0.0, 0.0, usual.load_s, 0.0)
    was = segment(usual.interval_s, usual.stall_s, usual.lag_s, recovery, rates.per_s)
    modelled = rates.least(1.0 - usual.interval_s / was.total_s)
    names = [name for name in OPTIONS if name != ASYNC or not usual.asynchronous]
    options = tuple(_option(name, usual, recovery, rates, was, s) for name in names)
    return JobSavings(
        usual.job,
        usual,
        mtbf,
        measured,
        modelled,
        over(modelled.value, measured),
        options,
        why,
    )


def _rates(mtbf: FleetAmount) -> _Rates:
    most = 1.0 / mtbf.low
    if isinf(mtbf.value):
        return _Rates(
            np.concatenate([[most], [0.0], most * np.geomspace(1e-6, 1.0, _RATES)]), none_seen=True
        )
    ends = np.geomspace(0.0 if isinf(mtbf.high) else 1.0 / mtbf.high, most, _RATES)
    return _Rates(np.concatenate([[1.0 / mtbf.value], ends]), none_seen=False)


def _option(
    name: str, usual: Usual, recovery: Recovery, rates: _Rates, was: States, s: Scenario | None
) -> Option:
    stall_s, lag_s, why = _times(name, usual, s)
    # a save begins when the one before is safe, as long as this one did not begin sooner
    floor_s = min(lag_s, usual.interval_s)
    with np.errstate(divide="ignore", invalid="ignore"):
        interval_s = np.maximum(best_interval_s(stall_s, recovery, rates.per_s), floor_s)
    never = np.isinf(interval_s)
    work_s = np.where(never | (interval_s == 0), 1.0, interval_s)
    then = segment(work_s, np.where(never, 0.0, stall_s), lag_s, recovery, rates.per_s)
    saved_s = was.total_s / usual.interval_s - then.total_s / work_s
    gpu_s = rates.least(saved_s * usual.useful_gpu_s)
    more_work, more_still = (
        mine / usual.interval_s - its / work_s
        for mine, its in (
            (was.work_s, then.work_s),
            (was.stall_s + was.load_s, then.stall_s + then.load_s),
        )
    )
    energy = rates.least((more_work * usual.train_w + more_still * usual.stall_w) * usual.useful_s)
    return Option(
        name,
        rates.told(interval_s),
        rates.told(1.0 - work_s / then.total_s),
        gpu_s,
        energy,
        _usd(gpu_s, energy, s),
        why,
    )


def _times(name: str, usual: Usual, s: Scenario | None) -> tuple[float, float, str]:
    """Stall, lag until safe. A faster tier shortens what waits for it: of a save beside training
    that is the drain alone."""
    if name != ASYNC:
        faster = _FASTER[name]
        return (
            (usual.stall_s if usual.asynchronous else usual.stall_s / faster),
            usual.lag_s / faster,
            "",
        )
    rate = nan if s is None else float(s.cluster.gpu_d2h_bytes_per_s)
    copy_s = usual.bytes / (usual.gpus * rate) if rate < inf else nan
    if isnan(copy_s):
        return 0.0, usual.stall_s + usual.lag_s, "NO_COPY_RATE"
    return min(copy_s, usual.stall_s), usual.stall_s + usual.lag_s, ""


def _usd(gpu_s: FleetAmount, energy: FleetAmount, s: Scenario | None) -> FleetAmount:
    if s is None:
        return UNKNOWN
    ends = [
        float(money.gpu_usd(time_s, s.cluster.usd_per_gpu_s))
        + float(times(joules, electricity_usd_per_j(s)))
        for time_s, joules in zip(gpu_s, energy, strict=True)
    ]
    return FleetAmount(*ends)


def _together(name: str, jobs: Sequence[JobSavings]) -> AllSavings:
    """Over the jobs of which it is known; ends by worst case, for they all rest on one rate of
    failures."""
    options = [
        option for job in jobs for option in job.options if option.id == name and option.gpu_s.known
    ]
    sums = []
    for what in AllSavings._fields[2:]:
        each = [getattr(option, what) for option in options]
        known = all(amount.known for amount in each) and each
        sums.append(
            FleetAmount(*(fsum(ends) for ends in zip(*each, strict=True))) if known else UNKNOWN
        )
    return AllSavings(name, len(options), *sums)


# What the best interval, a faster tier or saving beside training would have saved, as tables and
# in words.


OPTION_WORDS: Final = {
    "BEST_INTERVAL": "the best interval",
    "TIER_2X": "a tier twice as fast",
    "TIER_10X": "a tier ten times as fast",
    "ASYNC": "saving beside training",
}
WHY_WORDS: Final = {
    "NO_FAILURES": (
        "no failure was seen: taken to be as frequent as that leaves room for, values are the least"
    ),
    "NO_SAVES": "no save was completed",
    "NO_STALL": "nobody says how long a save held training up",
    "NO_INTERVAL": "too few saves to tell an interval",
    "NO_EXPOSURE": "no running time is known",
    "NO_COPY_RATE": "as if the copy that training waits for took no time: the most it can save",
}


def savings_tables(found: Savings, placed: bool) -> list[Table]:
    """All together, and each job."""
    return [_whole(found.whole, placed), _jobs(found.jobs, placed)]


def _saved_quantities(placed: bool) -> tuple[Quantity, ...]:
    return pick("gpu_time_lost", "energy", *(["cost"] if placed else []))


def _amounts(each: Option | AllSavings, placed: bool) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for q in _saved_quantities(placed):
        row |= with_ends(q, getattr(each, q.field))
    return row


def _amount_columns(placed: bool) -> tuple[Column, ...]:
    found = []
    for q in _saved_quantities(placed):
        shown = q.id == "gpu_time_lost"
        found += [
            Column(q.measure, f"{q.unit} saved", q.unit),
            Column(f"{q.measure}_low", "low", q.unit, shown=shown),
            Column(f"{q.measure}_high", "high", q.unit, shown=shown),
        ]
    return tuple(found)


def _whole(found: Sequence[AllSavings], placed: bool) -> Table:
    rows = [
        {
            "what": OPTION_WORDS[each.id],
            "id": each.id,
            "jobs": float(each.jobs),
            **_amounts(each, placed),
        }
        for each in found
        if each.jobs
    ]
    columns = (
        Column("what", "instead"),
        Column("id", "id", shown=False),
        Column("jobs", "jobs", "count", "of which it can be said"),
        *_amount_columns(placed),
    )
    note = (
        "Modelled with the fleet's own stalls and failures, each at its best interval; low and"
        " high: the failure rate's 95 %."
    )
    return Table("savings", "What would have been saved", columns, rows, note, shown=bool(rows))


_OF_JOB: Final = {
    "job": "job",
    "interval": "usual.interval_s",
    "mtbf": "mtbf_s.value",
    "mtbf_low": "mtbf_s.low",
    "mtbf_high": "mtbf_s.high",
    "measured": "measured_overhead",
    "modelled": "modelled_overhead.value",
    "ratio": "ratio",
    "nodes": "usual.nodes",
    "stall": "usual.stall_s",
    "lag": "usual.lag_s",
    "down": "usual.down_s",
    "load": "usual.load_s",
}
"""by column"""


def _jobs(found: Sequence[JobSavings], placed: bool) -> Table:
    rows: list[dict[str, Any]] = []
    for job in found:
        base = row_of(job, _OF_JOB) | {"why": WHY_WORDS.get(job.why, job.why)}
        for option in job.options:
            why = "; ".join(filter(None, (str(base["why"]), WHY_WORDS.get(option.why, option.why))))
            rows.append(
                {
                    **base,
                    "what": OPTION_WORDS[option.id],
                    "id": option.id,
                    "best": plain(option.interval_s.value),
                    "overhead": plain(option.overhead.value),
                    **_amounts(option, placed),
                    "why": why,
                }
            )
        if not job.options:
            rows.append({**base, "what": "-", "id": ""})
    columns = (
        Column("job", "job"),
        Column("what", "instead"),
        Column("id", "id", shown=False),
        Column("interval", "interval", "s", "training between saves, as it was"),
        Column("best", "best", "s"),
        Column("measured", "overhead", "share", "as measured: time that is not work kept"),
        Column(
            "modelled", "modelled", "share", "the same, of the model at the interval that it had"
        ),
        Column("overhead", "then", "share"),
        *_amount_columns(placed),
        Column(
            "ratio",
            "modelled/measured",
            "1",
            "far from 1: the model does not fit this job",
            shown=False,
        ),
        Column("mtbf", "MTBF", "s", "of the job", shown=False),
        Column("mtbf_low", "low", "s", shown=False),
        Column("mtbf_high", "high", "s", shown=False),
        Column("nodes", "nodes", "1", shown=False),
        Column("stall", "stall", "s", "mean", shown=False),
        Column("lag", "lag", "s", "until safe", shown=False),
        Column("down", "down", "s", "a failure's", shown=False),
        Column("load", "load", "s", shown=False),
        Column("why", "why", shown=False),
    )
    return Table("savings_by_job", "The same by job", columns, rows, shown=0 < len(rows) <= 16)


def savings_sentence(found: Savings) -> str:
    """The best of what costs nothing: another interval."""
    best = next(
        (
            each
            for each in found.whole
            if each.id == "BEST_INTERVAL" and each.jobs and each.gpu_s.known
        ),
        None,
    )
    if best is None or best.gpu_s.value <= 0:
        return ""
    hours = to_hours(best.gpu_s.value)
    told = [
        job
        for job in found.jobs
        if job.options and job.options[0].interval_s.known and job.options[0].gpu_s.known
    ]
    if not told:  # no job failed: what is best is not known
        return ""
    one = max(told, key=lambda job: job.options[0].gpu_s.value)
    option = one.options[0]
    return (
        f"The best interval would have saved {number(hours)} GPU-hours, most of it in {one.job}:"
        f" every {duration(option.interval_s.value)} instead of {duration(one.usual.interval_s)}."
    )
