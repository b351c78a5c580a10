"""How often a node of the fleet fails, whether failures come evenly, and what each cause has
cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from math import fsum, inf, isnan
from typing import NamedTuple

from ckptcost.core.estimates import Estimate
from ckptcost.core.mtbf import mtbf_of, shape_of
from ckptcost.fleet.figures.runs_seen import FAILED, RunSeen


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
