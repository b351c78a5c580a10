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

With two tiers every save goes to the first and every n-th also to the second. A share of the
failures spares the first tier's copy; the others go back to the last save on the second. Exact for
synchronous saves: within a period of n segments, failures of the first kind are an inner renewal,
those of the second restart the period. For asynchronous saves the lags enter as
exp(l1*lag1 + l2*lag2), right to first order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ckptcost.first.core.domain import Cluster, Failures, Number
from ckptcost.first.core.numeric import (
    ceil,
    exp,
    expm1,
    exprel,
    isnan,
    log1p,
    maximum,
    minimum,
    or_otherwise,
    ratio,
    times,
    where,
)
from ckptcost.first.core.timing import nodes_of


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


def period(
    work_s: Number,
    stall_s: Number,
    lag_s: Number,
    recovery: Recovery,
    spared_per_s: Number,
    every: Number,
    second_stall_s: Number,
    second_lag_s: Number,
    second_recovery: Recovery,
    lost_per_s: Number,
) -> States:
    """Mean states per completed segment of a period of `every` segments that ends with a save on
    the second tier.

    `spared_per_s` and `lost_per_s` are the rates of failures that the first tier survives and does
    not survive.
    """
    rate = spared_per_s + lost_per_s
    recovery, second_recovery = (
        _bounded_recovery(recovery, rate),
        _bounded_recovery(second_recovery, rate),
    )
    spared, lost = _share(spared_per_s, rate), _share(lost_per_s, rate)
    exposed_s = recovery.exposed_s
    # odds of losing the period to getting through, however often the first tier is needed on the
    # way: exact for any length
    recovery_odds = times(lost, expm1(rate * exposed_s))
    recovery_lost = _chance(recovery_odds)

    def attempt(length_s: Number) -> tuple[Number, Number, Number]:
        """(attempts, log of the chance of getting through, recoveries from the first tier) of a
        stretch, from its first entry."""
        worse = lost + spared * recovery_lost
        odds = times(worse, expm1(rate * length_s))
        hopeless = odds == float("inf")
        attempts = where(
            hopeless,
            ratio(1.0, worse),
            where(hopeless, 1.0, exp(rate * length_s)) / (1.0 + where(hopeless, 0.0, odds)),
        )
        log_through = where(
            hopeless, -rate * length_s, -log1p(odds)
        )  # within log(worse) of it, and finite
        return attempts, log_through, times(attempts, -expm1(-rate * length_s)) * spared

    attempts, log_through, spared_entries = attempt(work_s + stall_s)
    last_attempts, last_log_through, last_entries = attempt(second_stall_s)
    # chance that a period gets through all its segments, and then through the last save
    reach = exp(every * log_through)
    segments = (
        every * exprel(every * log_through) / exprel(log_through)
    )  # sum of through**i, i < every
    tries = exp(-(every * log_through + last_log_through))
    again = exp(spared_per_s * lag_s + lost_per_s * second_lag_s)

    stretch = times(again * tries * segments / every, attempts)
    ending = times(again * tries / every, times(reach, last_attempts))
    working_s = times(stretch, work_s * exprel(-rate * work_s))
    stalling_s = times(stretch, exp(-rate * work_s) * stall_s * exprel(-rate * stall_s))
    second_stalling_s = times(ending, second_stall_s * exprel(-rate * second_stall_s))
    first = times(
        again * tries / every, times(segments, spared_entries) + times(reach, last_entries)
    )
    # a recovery from the first tier runs until it is through, or until a worse failure ends it
    one = recovery_times(recovery, rate, first / (1.0 + recovery_odds))
    # every try but the last ends in a failure that needs the second tier
    second = recovery_times(second_recovery, rate, times(again / every, tries - 1.0))
    detect_s, reschedule_s, init_s, load_s, warmup_s, starts = (
        a + b for a, b in zip(one, second, strict=True)
    )
    return States(
        working_s,
        stalling_s + second_stalling_s,
        detect_s,
        reschedule_s,
        init_s,
        load_s,
        warmup_s,
        starts,
        second_stalling_s,
    )


MOST_REPEATS = 600.0
"""l*R past which a recovery is as good as endless, exp(600) tries, and a few steps further the
exponentials overflow"""


def _bounded_recovery(recovery: Recovery, rate: Number) -> Recovery:
    """A recovery that the exponentials can hold."""
    share = minimum(1.0, ratio(MOST_REPEATS, rate * recovery.exposed_s))
    return recovery._replace(
        init_s=share * recovery.init_s,
        load_s=share * recovery.load_s,
        warmup_s=share * recovery.warmup_s,
    )


def _chance(odds: Number) -> Number:
    return where(odds == float("inf"), 1.0, odds / (1.0 + where(odds == float("inf"), 0.0, odds)))


def _share(part: Number, whole: Number) -> Number:
    return where(whole == 0, 0.0 * part, part / where(whole == 0, 1.0, whole))
