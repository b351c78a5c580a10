"""How a job saves, as the model wants to know it: means over its saves, loads and failures, and the
power of its nodes meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, isnan, nan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.core.estimates import Floats
from ckptcost.fleet.figures.grouping import Places, added, flags, groups_of, instants, numbers
from ckptcost.fleet.figures.runs_seen import FAILED, RunSeen

if TYPE_CHECKING:
    from pandas import DataFrame

    from ckptcost.fleet.figures.figures import Fleet, Group
    from ckptcost.fleet.merge.part import Part

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
    lag_known: bool
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


def usual_of(part: Part, fleet: Fleet) -> tuple[Usual, ...]:
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
    group: Group,
    runs: Sequence[RunSeen],
    interval_s: float,
    lag_s: float,
    size: float,
    still_w: tuple[float, ...],
    pue: float,
) -> Usual:
    own_s = fsum(run.own_s for run in runs)
    nodes, gpus = (
        _over(fsum(run.own_s * getattr(run, name) for run in runs), own_s)
        for name in ("nodes", "gpus")
    )
    restarts = [run.restart_s for run in runs if run.state == FAILED and run.restart_s > 0]
    stall_s = group.stalls.mean_s
    if isnan(interval_s):  # one save in each run
        interval_s = _over(own_s - group.stall_s - group.load_s, float(group.checkpoints))
    why = (
        "NO_SAVES"
        if not group.checkpoints
        else "NO_STALL"
        if not stall_s > 0
        else "NO_INTERVAL"
        if not interval_s > 0
        else ""
    )
    return Usual(
        group.name,
        nodes,
        gpus,
        interval_s,
        stall_s,
        0.0 if isnan(lag_s) else lag_s,
        not isnan(lag_s),
        lag_s > stall_s,
        size,
        _or_0(_over(group.load_s, float(group.loads - group.unknown.get("load", 0)))),
        fsum(restarts) / len(restarts) if restarts else 0.0,
        _useful_s(runs),
        group.useful_gpu_s,
        group.goodput,
        *_watts(runs, own_s, nodes, still_w, pue),
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
            return added(joules[which], job[which], many), added(node_s[which], job[which], many)

        return cls(sums("gpu"), sums("host"), sums("wait"))

    def of(self, at: int) -> tuple[float, float, float]:
        """Watts."""
        gpu_w, host_w, wait_w = (
            _over(float(joules[at]), float(node_s[at])) for joules, node_s in self
        )
        return gpu_w, host_w, wait_w


def _watts(
    runs: Sequence[RunSeen], own_s: float, nodes: float, still_w: tuple[float, ...], pue: float
) -> tuple[float, float]:
    """While training, and while it stands still for a save: of a node that is there, times all;
    with the PUE that is in the lines."""
    gpu_w, host_w = (
        pue
        * _over(
            fsum(
                run.own_s * run.nodes * each.value
                for run in runs
                if (each := getattr(run, name)).known
            ),
            _seen(runs, name),
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
        _over(all_s, known_s) if len(known) < len(runs) else 1.0
    )


def _or_0(value: float) -> float:
    return 0.0 if isnan(value) else value


def _seen(runs: Sequence[RunSeen], name: str) -> float:
    return fsum(run.own_s * run.nodes for run in runs if getattr(run, name).known)


def _mean(values: Floats, places: Places, which: NDArray[np.bool_], many: int) -> Floats:
    which = which & ~np.isnan(values)
    count = np.bincount(places[which], minlength=many)
    return np.asarray(
        np.divide(
            added(values[which], places[which], many),
            count,
            where=count > 0,
            out=np.full(many, nan),
        )
    )


def _intervals(
    part: Part, cell: Places, job: Places, many: int, runs: Sequence[tuple[str, str]]
) -> Floats:
    """By job, from a save's return to the next one's begin in the same run, in the mean; failed
    ones stand between, too."""
    windows = part.windows
    numbers_of: dict[tuple[str, str], int] = {}
    run = np.array([numbers_of.setdefault(key, len(numbers_of)) for key in runs], dtype=np.int64)[
        cell
    ]
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


def _over(amount: float, by: float) -> float:
    return amount / by if by > 0 else nan
