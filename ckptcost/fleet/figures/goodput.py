"""How much of the time of some runs was work that was kept, each run by its GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, isnan, nan
from typing import Final, NamedTuple

from ckptcost.fleet.figures.runs_seen import RunSeen


class Kept(NamedTuple):
    """A run of which nobody knows how much was work is taken at the mean of the others, unless
    those are less than half of the time: then nothing is known. NaN in GPU-seconds where nobody
    knows any GPUs."""

    useful_gpu_s: float
    wall_gpu_s: float
    """of runs, and from a failure until the next one"""
    goodput: float
    unknown: int
    """runs of which nobody knows how much was work"""


UNKNOWN_KEPT: Final = Kept(nan, nan, nan, 0)


def kept_of(runs: Sequence[RunSeen]) -> Kept:
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
    return Kept(goodput * all_of, all_of, goodput, sum(lacking))


def weights_of(runs: Sequence[RunSeen]) -> tuple[list[float], bool]:
    """GPUs of each run. Where they are not known, its nodes have as many as the others' in the
    mean; where they are of none, its nodes count, which is said by False."""
    known = [run for run in runs if not isnan(run.gpus)]
    nodes = sum(run.nodes for run in known)
    if not nodes:
        return [float(run.nodes) for run in runs], False
    each = fsum(run.gpus for run in known) / nodes
    return [run.nodes * each if isnan(run.gpus) else run.gpus for run in runs], True
