"""How a job saves, as the model wants to know it: means over its saves, loads and failures, and the power of its nodes meanwhile."""

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
    useful_gpu_s: float
    goodput: float
    train_w: float
    """of all its nodes; without the hosts' part where that is not known of training or of stalls"""
    stall_w: float
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
    intervals = _intervals(part, cells.of_windows, job, many, [*zip(cells.job, cells.run, strict=True)])
    of_job: dict[str, list[RunSeen]] = {}
    for run in fleet.runs:
        of_job.setdefault(run.job, []).append(run)
    return tuple(
        _usual(group, of_job.get(group.name, []), float(intervals[at]), float(drain[at]), float(size[at]), fleet.pue)
        for at, group in enumerate(fleet.jobs)
    )


def _usual(group: Group, runs: Sequence[RunSeen], interval_s: float, lag_s: float, size: float, pue: float) -> Usual:
    own_s = fsum(run.own_s for run in runs)
    nodes, gpus = (_over(fsum(run.own_s * getattr(run, name) for run in runs), own_s) for name in ("nodes", "gpus"))
    restarts = [run.restart_s for run in runs if run.state == FAILED and run.restart_s > 0]
    stall_s = group.stalls.mean_s
    if isnan(interval_s):  # one save in each run
        interval_s = _over(own_s - group.stall_s - group.load_s, float(group.checkpoints))
    why = (
        "NO_SAVES" if not group.checkpoints
        else "NO_STALL" if not stall_s > 0
        else "NO_INTERVAL" if not interval_s > 0
        else ""
    )  # fmt: skip
    return Usual(
        group.name, nodes, gpus, interval_s, stall_s, 0.0 if isnan(lag_s) else lag_s, not isnan(lag_s), lag_s > stall_s, size,
        group.load_s / group.loads if group.loads and group.load_s == group.load_s else 0.0,
        fsum(restarts) / len(restarts) if restarts else 0.0,
        fsum(run.spent.useful_s for run in runs), group.useful_gpu_s, group.goodput, *_watts(group, runs, own_s, pue), why,
    )  # fmt: skip


def _watts(group: Group, runs: Sequence[RunSeen], own_s: float, pue: float) -> tuple[float, float]:
    """While training, and while it stands still for a save; with the PUE that is in the lines."""
    joules = {}
    for line in group.lines:
        known, of = line.known["energy_j"]
        joules[line.id] = line.energy_j.value * of / known if known else nan
    gpu_w, host_w = (
        pue * _over(fsum(run.own_s * run.nodes * each.value for run in runs if (each := getattr(run, name)).known), _seen(runs, name))
        * _over(fsum(run.own_s * run.nodes for run in runs), own_s)
        for name in ("train_gpu_w", "train_host_w")
    )  # fmt: skip
    waited_j = joules.get("waiting", 0.0)
    gpu_stall_w, host_stall_w = (_over(joules.get(name, nan), group.stall_s) for name in ("gpu_wait", "host_wait"))
    if isnan(host_w + host_stall_w):
        host_w = host_stall_w = 0.0
    return gpu_w + host_w, gpu_stall_w + host_stall_w + _over(0.0 if isnan(waited_j) else waited_j, group.stall_s)


def _seen(runs: Sequence[RunSeen], name: str) -> float:
    return fsum(run.own_s * run.nodes for run in runs if getattr(run, name).known)


def _mean(values: Floats, places: Places, which: NDArray[np.bool_], many: int) -> Floats:
    which = which & ~np.isnan(values)
    count = np.bincount(places[which], minlength=many)
    return np.asarray(np.divide(added(values[which], places[which], many), count, where=count > 0, out=np.full(many, nan)))


def _intervals(part: Part, cell: Places, job: Places, many: int, runs: Sequence[tuple[str, str]]) -> Floats:
    """By job, from a save's return to the next one's begin in the same run, in the mean; failed ones stand between, too."""
    windows = part.windows
    numbers_of: dict[tuple[str, str], int] = {}
    run = np.array([numbers_of.setdefault(key, len(numbers_of)) for key in runs], dtype=np.int64)[cell]
    begin_ns, stall_s = instants(windows, "begin_ns"), numbers(windows, "stall_s")
    rows = np.flatnonzero(~flags(windows, "load"))
    rows = rows[np.argsort(run[rows], kind="stable")]
    first, second = rows[:-1], rows[1:]
    if (begin_ns[second] < begin_ns[first])[run[second] == run[first]].any():  # a finished part is by job and time
        rows = rows[np.lexsort((begin_ns[rows], run[rows]))]
    first, second = rows[:-1], rows[1:]
    gap_s = (begin_ns[second] - begin_ns[first]) * _NS - stall_s[first]
    return _mean(np.maximum(gap_s, 0.0), job[first], run[first] == run[second], many)


def _over(amount: float, by: float) -> float:
    return amount / by if by > 0 else nan
