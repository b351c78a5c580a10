"""Expected seconds in each state of a run that is interrupted at random (exponential failures): the
exact renewal model.

A segment is `work_s` of training and one blocking stall. A save becomes usable `lag_s` after its
stall ends; a failure throws the run back to the last usable one. Recovery is a row of phases that a
failure can hit again (start, load, warm-up) after a fixed down time that it cannot (detection,
rescheduling). With l = failures_per_s:

    attempts  n  = exp(l*lag) * (exp(l*(work+stall)) - 1)         failures in working or stalling,
    per segment work      Tw = exp(l*lag) * exp(l*stall) * (exp(l*work)-1)/l stall     Tc =
    exp(l*lag) * (exp(l*stall)-1)/l recovery  Tr = n * (exp(l*R)-1)/l          down  Td = n *
    exp(l*R) * D

A save that waits for a place among the m in flight (blocked) comes after each m that do not: the
first m after a start wait for none, then a wait comes before every m-th. The factor exp(l*lag) is
exact while drains overlap freely: between two failures L ~ Exp(l), the segments that become usable
number floor((L-lag)/(work+stall)), whose mean is exp(-l*lag)/(exp(l*(work+stall))-1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ckptcost.core.domain import Cluster, Failures, Number
from ckptcost.core.numeric import (
    ceil,
    exp,
    expm1,
    exprel,
    isnan,
    maximum,
    or_otherwise,
    ratio,
    times,
    where,
)
from ckptcost.core.timing import nodes_of


class Recovery(NamedTuple):
    """Getting the job back after one failure, piece by piece."""

    detect_s: Number
    reschedule_s: Number
    init_s: Number
    load_s: Number
    warmup_s: Number

    @property
    def down_s(self) -> Number:
        return self.detect_s + self.reschedule_s

    @property
    def exposed_s(self) -> Number:
        """the part that a further failure can hit"""
        return self.init_s + self.load_s + self.warmup_s


class States(NamedTuple):
    """Expected seconds per completed segment in each state; they sum to the segment's expected
    duration."""

    work_s: Number
    stall_s: Number
    detect_s: Number
    reschedule_s: Number
    init_s: Number
    load_s: Number
    warmup_s: Number
    failures: Number
    """failures per completed segment, those during recovery included"""
    second_stall_s: Number = 0.0
    """the part of the stall that is spent on a second tier"""

    @property
    def total_s(self) -> Number:
        return (
            self.work_s
            + self.stall_s
            + self.detect_s
            + self.reschedule_s
            + self.init_s
            + self.load_s
            + self.warmup_s
        )


def job_failures_per_s(failures: Failures, cluster: Cluster) -> Number:
    """Failure rate of the whole job: 1/MTBF where that is given, else the sum of its rates.

    >>> rates = Failures(failures_per_node_s=46 / 2048, failures_per_gpu_s=373 / 16384)
    >>> (
    ...     job_failures_per_s(rates, Cluster(16384.0)),
    ...     job_failures_per_s(rates, Cluster(16384.0, 4.0)),
    ... )
    (419.0, 465.0)
    """
    return where(
        isnan(failures.mtbf_s), _summed_per_s(failures, cluster), ratio(1.0, failures.mtbf_s)
    )


def _summed_per_s(failures: Failures, cluster: Cluster) -> Number:
    """GPUs and nodes, racks, and what all share.

    The first two were counted on a large job. Smaller ones failed more often for their size
    (machines shared with others, bad nodes not weeded out): (counted/N)^(1 - size_exponent) times
    as often, larger ones as often.
    """
    smaller = maximum(1.0, failures.counted_gpus / cluster.gpus)
    by_size = smaller ** (1.0 - failures.size_exponent)
    own = (
        cluster.gpus * failures.failures_per_gpu_s
        + nodes_of(cluster) * failures.failures_per_node_s
    )
    racks = _racks_per_s(failures, cluster)
    return failures.rate_factor * by_size * own + failures.failures_per_s + racks


def _racks_per_s(failures: Failures, cluster: Cluster) -> Number:
    """Whole racks lost, each of which interrupts the job once and takes all its nodes."""
    if _never(failures.rack_failures_per_s):
        return 0.0
    return ceil(nodes_of(cluster) / failures.nodes_per_rack) * failures.rack_failures_per_s


def rack_loss_fraction(failures: Failures, cluster: Cluster) -> Number:
    """Share of the interruptions that lose a whole rack."""
    if _never(failures.rack_failures_per_s):
        return 0.0
    racks = ratio(_racks_per_s(failures, cluster), _summed_per_s(failures, cluster))
    return or_otherwise(racks, 0.0)


def node_loss_fraction(failures: Failures, cluster: Cluster) -> Number:
    """Share of the interruptions that lose a node: every lost rack, and a part of the others."""
    racks = rack_loss_fraction(failures, cluster)
    return racks + (1.0 - racks) * failures.node_loss_fraction


def mtbf_s(failures_per_s: Number) -> Number:
    return ratio(1.0, failures_per_s)


def phase_s(
    start_s: Number, length_s: Number, recovery_s: Number, failures_per_s: Number
) -> Number:
    """Expected time in one phase of a recovery that starts again at each failure, until it is
    through.

    exp(l*R) * (exp(-l*start) - exp(-l*end))/l; over all phases this sums to (exp(l*R)-1)/l.
    """
    return times(until_hit_s(start_s, length_s, failures_per_s), exp(failures_per_s * recovery_s))


def until_hit_s(start_s: Number, length_s: Number, failures_per_s: Number) -> Number:
    """Expected time in one phase of a single attempt: (exp(-l*start) - exp(-l*end))/l."""
    return exp(-failures_per_s * start_s) * length_s * exprel(-failures_per_s * length_s)


def recovery_times(
    recovery: Recovery, failures_per_s: Number, entries: Number
) -> tuple[Number, Number, Number, Number, Number, Number]:
    """Expected (detect, reschedule, init, load, warm-up) seconds and starts of recovery, for
    `entries` failures that need one."""
    exposed_s = recovery.exposed_s
    starts = entries * exp(failures_per_s * exposed_s)
    after_load_s = recovery.init_s + recovery.load_s
    return (
        times(starts, recovery.detect_s),
        times(starts, recovery.reschedule_s),
        times(entries, phase_s(recovery.init_s * 0.0, recovery.init_s, exposed_s, failures_per_s)),
        times(entries, phase_s(recovery.init_s, recovery.load_s, exposed_s, failures_per_s)),
        times(entries, phase_s(after_load_s, recovery.warmup_s, exposed_s, failures_per_s)),
        starts,
    )


def segment(
    work_s: Number,
    stall_s: Number,
    lag_s: Number,
    recovery: Recovery,
    failures_per_s: Number,
    blocked_s: Number = 0.0,
    in_flight: Number = 1.0,
) -> States:
    """States of one completed segment. `blocked_s` is the mean wait for a save before it, which is
    part of the stall.

    With m in flight the first m saves after a start wait for none; then one wait of m*blocked comes
    before every m-th.

    >>> nobody_fails = segment(
    ...     100.0, 10.0, 0.0, Recovery(1.0, 1.0, 1.0, 1.0, 1.0), failures_per_s=0.0
    ... )
    >>> nobody_fails.total_s, nobody_fails.failures
    (110.0, 0.0)
    """
    again = exp(failures_per_s * lag_s)
    if _never(blocked_s):
        working_s = again * exp(failures_per_s * stall_s) * work_s * exprel(failures_per_s * work_s)
        stalling_s = again * stall_s * exprel(failures_per_s * stall_s)
        entries = again * expm1(failures_per_s * (work_s + stall_s))
    else:
        # m saves end at f, 2f ... mf with f = work + stall - blocked, and again a period of m*(f +
        # blocked) later, over and over: sums over exp(-l*those)
        own_s = stall_s - blocked_s
        first_s, wait_s = work_s + own_s, in_flight * blocked_s
        together = in_flight * ratio(
            exprel(-failures_per_s * in_flight * first_s), exprel(-failures_per_s * first_s)
        )
        entries = (
            again
            * exp(failures_per_s * first_s)
            * ratio(-expm1(-failures_per_s * (in_flight * first_s + wait_s)), together)
        )
        working_s = (entries + again) * work_s * exprel(-failures_per_s * work_s)
        waiting_s = ratio(
            exp(-failures_per_s * ((in_flight - 1.0) * first_s + work_s))
            * wait_s
            * exprel(-failures_per_s * wait_s),
            together,
        )
        stalling_s = again * (own_s * exprel(failures_per_s * own_s) + waiting_s)
    return States(
        working_s, stalling_s, *recovery_times(recovery, failures_per_s, entries), 0.0 * stall_s
    )


def _never(amount: Number) -> bool:
    return not np.any(amount) if isinstance(amount, np.ndarray) else amount == 0


def goodput(work_s: Number, states: States) -> Number:
    """Share of the time that is work kept: the effective training time ratio."""
    return ratio(work_s, states.total_s)


def first_order_goodput(
    interval_s: Number, stall_s: Number, lost_s: Number, failures_per_s: Number
) -> Number:
    """The usual first-order ETTR, 1 - C/tau - l*(tau/2 + recovery): goes negative where the exact
    form does not.

    >>> round(
    ...     first_order_goodput(
    ...         interval_s=1800.0, stall_s=10.0, lost_s=300.0, failures_per_s=1 / 8862
    ...     ),
    ...     3,
    ... )
    0.859
    """
    return 1.0 - ratio(stall_s, interval_s) - failures_per_s * (interval_s / 2.0 + lost_s)


def replicas_lost_probability(nodes: int, group: int, lost: int) -> float:
    """Chance that `lost` random nodes hold every copy of some state kept in groups of `group` nodes
    (union bound).

    m groups of N/m: 0 if k < m, else N*C(N-m, k-m)/(m*C(N, k))
    (Gemini, SOSP 2023)

    >>> (
    ...     replicas_lost_probability(nodes=16, group=2, lost=1),
    ...     round(replicas_lost_probability(16, 2, 2), 4),
    ... )
    (0.0, 0.0667)
    """
    from math import comb

    if lost < group:
        return 0.0
    return min(1.0, nodes * comb(nodes - group, lost - group) / (group * comb(nodes, lost)))
