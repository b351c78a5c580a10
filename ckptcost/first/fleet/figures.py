"""A fleet's figures, by whatever it is grouped: what was saved, how long that took, what it cost,
and how much of the time was work."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import fsum, inf, isnan, nan
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from ckptcost.first.core.estimates import Estimate, Floats
from ckptcost.first.core.mtbf import mtbf_of, shape_of
from ckptcost.first.core.units import DAY_S
from ckptcost.first.fleet.cell_lines import cell_lines_of
from ckptcost.first.fleet.grouping import (
    Groups,
    Places,
    RunCells,
    add_by_place,
    cells_of,
    count_by_place,
    flags,
    groups_of,
    numbers,
    sum_by_place,
    texts,
)
from ckptcost.first.fleet.lines import (
    CellLine,
    FleetAmount,
    FleetLine,
    FleetTotals,
    lines_of,
    totals_of,
)
from ckptcost.first.fleet.missing_nodes import Lacking, WholeJob, lacking_of, whole_job_of
from ckptcost.first.fleet.runs_seen import FAILED, RunSeen, runs_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from ckptcost.first.core.domain import Scenario
    from ckptcost.first.fleet.part import StorePart


# How much of the time of some runs was work that was kept, each run by its GPUs.


class UsefulWork(NamedTuple):
    """A run of which nobody knows how much was work is taken at the mean of the others, unless
    those are less than half of the time: then nothing is known. NaN in GPU-seconds where nobody
    knows any GPUs."""

    useful_gpu_s: float
    wall_gpu_s: float
    """of runs, and from a failure until the next one"""
    goodput: float
    unknown: int
    """runs of which nobody knows how much was work"""


UNKNOWN_KEPT: Final = UsefulWork(nan, nan, nan, 0)


def kept_of(runs: Sequence[RunSeen]) -> UsefulWork:
    gpus, counted = weights_of(runs)
    walls = [(run.own_s + run.restart_s) * weight for run, weight in zip(runs, gpus, strict=True)]
    useful = [run.spent.useful_s * weight for run, weight in zip(runs, gpus, strict=True)]
    lacking = [isnan(run.spent.useful_s) for run in runs]
    wall = fsum(walls)
    known = fsum(each for each, none in zip(walls, lacking, strict=True) if not none)
    sure = known > 0 and 2 * known >= wall
    goodput = (
        fsum(each for each, none in zip(useful, lacking, strict=True) if not none) / known
        if sure
        else nan
    )
    all_of = wall if counted else nan
    return UsefulWork(goodput * all_of, all_of, goodput, sum(lacking))


def weights_of(runs: Sequence[RunSeen]) -> tuple[list[float], bool]:
    """GPUs of each run. Where they are not known, its nodes have as many as the others' in the
    mean; where they are of none, its nodes count, which is said by False."""
    known = [run for run in runs if not isnan(run.gpus)]
    nodes = sum(run.nodes for run in known)
    if not nodes:
        return [float(run.nodes) for run in runs], False
    each = fsum(run.gpus for run in known) / nodes
    return [run.nodes * each if isnan(run.gpus) else run.gpus for run in runs], True


# How often a node of the fleet fails, whether failures come evenly, and what each cause has cost.


class Cause(NamedTuple):
    cause: str
    failures: int
    lost_gpu_s: float
    """work done again and time until the next run"""


class FailuresSeen(NamedTuple):
    failures: int
    node_s: float
    """nodes times running time"""
    node_mtbf_s: Estimate
    shape: Estimate
    """of the gaps between a job's failures, in node-seconds"""
    causes: tuple[Cause, ...]
    """what cost most first"""


def failures_of(runs: Iterable[RunSeen]) -> FailuresSeen:
    """Of these runs together; a job's are by time."""
    failed: Counter[str] = Counter()
    lost: defaultdict[str, list[float]] = defaultdict(list)
    gaps: list[float] = []
    since: dict[str, float] = {}
    node_s = []
    for run in runs:
        running = run.own_s * run.nodes
        node_s.append(running)
        since[run.job] = since.get(run.job, 0.0) + running
        if run.state == FAILED:
            gaps.append(since.pop(run.job))
            failed[run.cause] += 1
            lost[run.cause].append((run.spent.lost_s + run.restart_s) * run.gpus)
    causes = [Cause(cause, count, fsum(lost[cause])) for cause, count in failed.items()]
    causes.sort(
        key=lambda each: (
            -each.lost_gpu_s if not isnan(each.lost_gpu_s) else inf,
            -each.failures,
            each.cause,
        )
    )
    exposure = fsum(node_s)
    return FailuresSeen(
        sum(failed.values()),
        exposure,
        mtbf_of(sum(failed.values()), exposure),
        shape_of(gaps, list(since.values())),
        tuple(causes),
    )


WHOLE = "all"


class Times(NamedTuple):
    """Of completed saves, from the first node's begin to the last one's return. NaN where none is
    known."""

    mean_s: float
    p50_s: float
    p95_s: float
    max_s: float


class GroupFigures(NamedTuple):
    name: str
    jobs: int
    nodes: int
    """that a file is there of"""
    runs: int
    checkpoints: int
    """completed"""
    failed_saves: int
    loads: int
    bytes: float
    """of completed saves and of nodes that are there, as files"""
    bytes_missing: FleetAmount
    """of completed saves: what nodes that are missing would have written, at the mean of the
    others"""
    files: float
    unknown: Mapping[str, int]
    """by figure, of how many saves (loads) it is not known; the sums are without them.
    `done_stall`: completed ones among the stalls; `assumed`: completed saves and loads that goodput
    takes to have been as long as their run's others; `useful`: runs of which nobody knows how much
    was work"""
    stall_s: float
    """of all saves, added up"""
    load_s: float
    stalls: Times
    write_bytes_per_s: float
    """of the whole job, missing nodes at the mean of the others; until safe, or where nobody says
    when that was, until training went on"""
    running_s: float
    """of runs, added up"""
    saves_per_day: float
    """of running"""
    failures: int
    node_mtbf_s: Estimate
    useful_gpu_s: float
    wall_gpu_s: float
    """of runs, and from a failure until the next one"""
    goodput: float
    """useful over wall. NaN by day: what a failure loses was done on the days before"""
    lines: tuple[FleetLine, ...]
    totals: FleetTotals


class Fleet(NamedTuple):
    by: str
    groups: tuple[GroupFigures, ...]
    whole: GroupFigures
    trend: tuple[GroupFigures, ...]
    """by day"""
    jobs: tuple[GroupFigures, ...]
    """by job"""
    runs: tuple[RunSeen, ...]
    lacking: tuple[Lacking, ...]
    """every run, by job and run"""
    failures: FailuresSeen
    pue: float
    """that is in the joules; 1 where no site is known"""
    cells: RunCells


def fleet_of(part: StorePart, by: str, site: Scenario | None) -> Fleet:
    """`site`: where it stands and what it pays; without one joules are as metered, and there are
    neither dollars nor carbon."""
    cells = cells_of(part)
    groups = groups_of(cells, by)
    lacking = lacking_of(part, cells)
    runs = runs_of(part, cells, lacking)
    sums = _Sums(
        part,
        cells,
        runs,
        whole_job_of(part, cells, lacking),
        cell_lines_of(part, cells, lacking, runs, site),
    )
    found = sums.grouped(groups, with_goodput=by != "day")
    trend = found if by == "day" else sums.grouped(groups_of(cells, "day"), with_goodput=False)
    jobs = found if by == "job" else sums.grouped(groups_of(cells, "job"))
    (whole,) = sums.grouped(Groups((WHOLE,), np.zeros(cells.many, dtype=np.int64)))
    pue = 1.0 if site is None else float(site.site.pue)
    return Fleet(by, found, whole, trend, jobs, runs, lacking, failures_of(runs), pue, cells)


class _Sums:
    """By cell once, and from there by group."""

    def __init__(
        self,
        part: StorePart,
        cells: RunCells,
        runs: Sequence[RunSeen],
        job: WholeJob,
        lines: Sequence[CellLine],
    ) -> None:
        self.cells, self.runs, self.bytes_missing, self.lines = (
            cells,
            runs,
            job.bytes_missing,
            lines,
        )
        self.hosts = texts(part.heads, "host")
        self.columns, self.stall_s, self.of_stalls = _by_cell(part.windows, cells, job.times)
        running = np.zeros((2, cells.many))
        for run in runs:
            for cell, seconds in run.running_s.items():
                running[:, cell] += (seconds, seconds * run.nodes)
        self.columns["running"], self.columns["node"] = running

    def grouped(self, groups: Groups, with_goodput: bool = True) -> tuple[GroupFigures, ...]:
        which, many = groups.of_cells, len(groups.names)
        sums = {
            name: add_by_place(values, which, many).tolist()
            for name, values in self.columns.items()
        }
        lines = lines_of(self.lines, which, many)
        missing = self.bytes_missing.among(which, many)
        times = _times(self.stall_s, which[self.of_stalls], many)
        jobs = _distinct(which, self.cells.job, many)
        runs = _distinct(which, zip(self.cells.job, self.cells.run, strict=True), many)
        nodes = _distinct(which[self.cells.of_heads], self.hosts, many)
        of_group = self._runs_of(groups)
        found = []
        for at, name in enumerate(groups.names):
            mine = {key: values[at] for key, values in sums.items()}
            failures = sum(run.state == FAILED for run in of_group[at])
            kept = kept_of(of_group[at]) if with_goodput else UNKNOWN_KEPT
            unknown = {key: int(mine[f"no_{key}"]) for key in _UNKNOWN}
            unknown["assumed"] = sum(run.assumed for run in of_group[at])
            unknown["useful"] = kept.unknown
            found.append(
                GroupFigures(
                    name,
                    jobs[at],
                    nodes[at],
                    runs[at],
                    int(mine["done"]),
                    int(mine["failed"]),
                    int(mine["loads"]),
                    _sum_or_unknown("bytes", mine, "done"),
                    missing[at][0],
                    _sum_or_unknown("files", mine, "done"),
                    {key: count for key, count in unknown.items() if count},
                    _sum_or_unknown("stall", mine, "saves"),
                    _sum_or_unknown("load", mine, "loads"),
                    times[at],
                    over(mine["rated_bytes"], mine["rated_s"]),
                    mine["running"],
                    over(mine["done"], mine["running"] / DAY_S),
                    failures,
                    mtbf_of(failures, mine["node"]),
                    kept.useful_gpu_s,
                    kept.wall_gpu_s,
                    kept.goodput,
                    lines[at],
                    totals_of(lines[at]),
                )
            )
        return tuple(found)

    def _runs_of(self, groups: Groups) -> list[list[RunSeen]]:
        found: list[list[RunSeen]] = [[] for _ in groups.names]
        for run in self.runs:
            found[groups.of_cells[run.last_cell]].append(run)
        return found


_UNKNOWN = ("bytes", "files", "stall", "done_stall", "load")


def _by_cell(
    windows: DataFrame, cells: RunCells, job_times: Floats
) -> tuple[dict[str, Floats], Floats, Places]:
    """Sums by cell; and the stalls of completed saves, shortest first, with the cell of each.
    `job_times`: nodes of the whole job over those that are there."""
    load, failed = flags(windows, "load"), flags(windows, "failed")
    stall_s, drain_s, size, files = (
        numbers(windows, name) for name in ("stall_s", "drain_s", "bytes", "files")
    )
    at, many = cells.of_windows, cells.many
    done = ~load & ~failed
    # one bin more, for what does not belong: quicker than taking the others out of every column
    of_done, of_saves, of_loads = (np.where(which, at, many) for which in (done, ~load, load))

    def total(values: Floats, bins: Places) -> Floats:
        return sum_by_place(values, bins, many + 1)[:many]

    safe_s = stall_s + np.where(np.isnan(drain_s), 0.0, drain_s)
    rated = ~(np.isnan(size) | np.isnan(stall_s))
    timed = np.flatnonzero(done & ~np.isnan(stall_s))
    order = timed[np.argsort(stall_s[timed])]
    columns = {
        "done": count_by_place(done, at, many),
        "failed": count_by_place(~load & failed, at, many),
        "saves": count_by_place(~load, at, many),
        "loads": count_by_place(load, at, many),
        "bytes": total(size, of_done),
        "files": total(files, of_done),
        "stall": total(stall_s, of_saves),
        "load": total(stall_s, of_loads),
        "rated_bytes": total(np.where(rated, size * job_times, 0.0), of_done),
        "rated_s": total(np.where(rated, safe_s, 0.0), of_done),
        "no_bytes": count_by_place(done & np.isnan(size), at, many),
        "no_files": count_by_place(done & np.isnan(files), at, many),
        "no_stall": count_by_place(~load & np.isnan(stall_s), at, many),
        "no_done_stall": count_by_place(done & np.isnan(stall_s), at, many),
        "no_load": count_by_place(load & np.isnan(stall_s), at, many),
    }
    return columns, stall_s[order], at[order]


def _times(stall_s: Floats, group: Places, many: int) -> list[Times]:
    """`stall_s` is in order, and stays so within a group."""
    small = group.astype(
        np.uint16 if many < 2**16 else np.int64
    )  # sorted by digits, and so ten times as quickly
    stall_s = stall_s[np.argsort(small, kind="stable")] if many > 1 else stall_s
    ends = np.cumsum([0, *np.bincount(group, minlength=many)])
    found = []
    for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        mine = stall_s[begin:end]
        if not len(mine):
            found.append(Times(nan, nan, nan, nan))
            continue
        found.append(
            Times(float(mine.mean()), quantile(mine, 0.5), quantile(mine, 0.95), float(mine[-1]))
        )
    return found


def quantile(in_order: Floats, share: float) -> float:
    """Of values in order, between the two that are next to it.

    >>> quantile(np.array([1.0, 2.0, 4.0]), 0.75)
    3.0
    """
    place = share * (len(in_order) - 1)
    low = int(place)
    high = min(low + 1, len(in_order) - 1)
    return float(in_order[low] + (place - low) * (in_order[high] - in_order[low]))


def _distinct(which: Places, names: Iterable[object], many: int) -> list[int]:
    found: list[set[object]] = [set() for _ in range(many)]
    for group, name in zip(which.tolist(), names, strict=True):
        found[group].add(name)
    return [len(each) for each in found]


def _sum_or_unknown(what: str, mine: Mapping[str, float], all_of: str) -> float:
    """A sum, unless it is of nothing although something is there."""
    return nan if 0 < mine[all_of] == mine[f"no_{what}"] else mine[what]


def over(amount: float, by: float) -> float:
    return amount / by if by > 0 else nan
