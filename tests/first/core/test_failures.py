"""The renewal model against its closed form, its limits and an independent walk through the
events."""

from __future__ import annotations

import math

import numpy as np
import pytest
from event_walk import STATES, Phases, one_level, segment_times
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptcost.first.core.domain import Cluster
from ckptcost.first.core.failures import (
    Failures,
    Recovery,
    first_order_goodput,
    goodput,
    job_failures_per_s,
    mtbf_s,
    phase_s,
    recovery_times,
    replicas_lost_probability,
    segment,
)

NOTHING = Recovery(0.0, 0.0, 0.0, 0.0, 0.0)
quick = settings(max_examples=80, deadline=None, derandomize=True)
spans = st.floats(0.0, 4000.0)
rates = st.floats(1e-9, 1e-3)


@quick
@given(
    work=st.floats(1.0, 20_000.0),
    stall=spans,
    lag=spans,
    d=spans,
    s=spans,
    i=spans,
    load=spans,
    w=spans,
    rate=rates,
)
def test_states_sum_to_the_closed_form(work, stall, lag, d, s, i, load, w, rate):
    states = segment(work, stall, lag, Recovery(d, s, i, load, w), rate)
    again, exposed = math.exp(rate * lag), i + load + w
    expected = (
        again * (1 / rate + d + s) * math.exp(rate * exposed) * math.expm1(rate * (work + stall))
    )
    assert states.total_s == pytest.approx(expected, rel=1e-11)
    hits = again * math.expm1(rate * (work + stall))
    assert states.failures == pytest.approx(hits * math.exp(rate * exposed), rel=1e-11)
    assert states.work_s == pytest.approx(
        again * math.exp(rate * stall) * math.expm1(rate * work) / rate, rel=1e-11
    )
    assert states.stall_s == pytest.approx(
        again * math.expm1(rate * stall) / rate, rel=1e-11, abs=1e-12
    )
    assert states.init_s + states.load_s + states.warmup_s == pytest.approx(
        hits * math.expm1(rate * exposed) / rate, rel=1e-11, abs=1e-12
    )
    assert states.detect_s + states.reschedule_s == pytest.approx(
        hits * math.exp(rate * exposed) * (d + s), rel=1e-11, abs=1e-12
    )
    assert states.work_s >= work * (1 - 1e-12)
    assert goodput(work, states) == pytest.approx(work / expected, rel=1e-11)


@quick
@given(i=spans, load=spans, w=spans, rate=rates)
def test_phases_of_a_recovery_sum_to_the_whole(i, load, w, rate):
    whole = i + load + w
    parts = (
        phase_s(0.0, i, whole, rate)
        + phase_s(i, load, whole, rate)
        + phase_s(i + load, w, whole, rate)
    )
    assert parts == pytest.approx(math.expm1(rate * whole) / rate, rel=1e-11, abs=1e-12)
    # an early phase is repeated more often than a late one of the same length
    assert phase_s(0.0, i, whole, rate) >= phase_s(whole - i, i, whole, rate) * (1 - 1e-12)


def test_recovered_counts_starts():
    *_, starts = recovery_times(Recovery(1.0, 2.0, 3.0, 4.0, 5.0), 1e-2, entries=7.0)
    assert starts == pytest.approx(7.0 * math.exp(0.12), rel=1e-14)


def test_rare_failures_limit():
    """l -> 0: nothing repeats, G = tau/(tau+C), and the limit is met smoothly."""
    recovery = Recovery(60.0, 120.0, 30.0, 200.0, 90.0)
    still = segment(1800.0, 20.0, 55.0, recovery, 0.0)
    assert (still.work_s, still.stall_s, still.failures) == (1800.0, 20.0, 0.0)
    assert (still.detect_s, still.reschedule_s, still.init_s, still.load_s, still.warmup_s) == (
        0.0,
    ) * 5
    assert goodput(1800.0, still) == pytest.approx(1800 / 1820, rel=1e-15)
    for rate in (1e-30, 1e-18, 1e-12):
        near = segment(1800.0, 20.0, 55.0, recovery, rate)
        # one failure in 1/rate seconds costs half a segment, the lag and the recovery
        assert near.total_s == pytest.approx(1820.0 + rate * 1820 * (910 + 55 + 500), rel=1e-15)
        assert near.failures == pytest.approx(rate * 1820, rel=1e-8)


def test_goodput_is_one_when_nothing_is_lost():
    """C = R = D = 0 and tau -> 0."""
    for work in (1e-3, 1e-6, 1e-9):
        lost = 1 - goodput(work, segment(work, 0.0, 0.0, NOTHING, 1e-3))
        assert lost == pytest.approx(work * 1e-3 / 2, rel=1e-6, abs=1e-15)


def test_finite_where_first_order_is_negative():
    recovery = Recovery(300.0, 600.0, 300.0, 1800.0, 300.0)
    rate = 1 / 2000
    states = segment(7200.0, 600.0, 0.0, recovery, rate)
    assert first_order_goodput(7200.0, 600.0, 3300.0, rate) < 0
    assert 0 < goodput(7200.0, states) < 0.1
    assert math.isfinite(states.total_s)


def test_first_order_agrees_where_failures_are_rare():
    recovery = Recovery(60.0, 60.0, 60.0, 60.0, 60.0)
    rate = 1e-8
    exact = goodput(3600.0, segment(3600.0, 1.0, 0.0, recovery, rate))
    assert exact == pytest.approx(first_order_goodput(3600.0, 1.0, 300.0, rate), abs=2e-7)


@pytest.mark.parametrize(
    "recovery", [Recovery(1.0, 1.0, 1.0, 1.0, 1.0), Recovery(60.0, 0.0, 0.0, 30.0, 0.0), NOTHING]
)
def test_hopeless_runs_are_infinite_not_an_exception(recovery):
    """Infinitely many recoveries of no length take no time; the redone work is still infinite."""
    states = segment(1e6, 1.0, 0.0, recovery, 1e-2)
    assert states.total_s == math.inf
    assert goodput(1e6, states) == 0.0
    both = segment(np.array([1e6, 100.0]), 1.0, 0.0, recovery, 1e-2)
    assert both.total_s[0] == np.inf
    assert np.isfinite(both.total_s[1])


@quick
@given(
    work=st.lists(st.floats(1.0, 20_000.0), min_size=4, max_size=4),
    stall=spans,
    lag=spans,
    load=spans,
    rate=st.lists(st.floats(0.0, 1e-3), min_size=4, max_size=4),
)
def test_arrays_equal_scalars(work, stall, lag, load, rate):
    recovery = Recovery(10.0, 20.0, 30.0, load, 40.0)
    together = segment(np.array(work), stall, lag, recovery, np.array(rate))
    for i in range(4):
        alone = segment(work[i], stall, lag, recovery, rate[i])
        for name in STATES:
            assert float(getattr(together, name)[i]) == pytest.approx(
                getattr(alone, name), rel=1e-13, abs=1e-300
            ), name


CASES = {
    "sync": (400.0, 30.0, 0.0, Phases(20.0, 15.0, 10.0, 25.0, 12.0), 1 / 1500),
    "sync, a failure every other segment": (
        900.0,
        100.0,
        0.0,
        Phases(60.0, 30.0, 40.0, 80.0, 20.0),
        1 / 1400,
    ),
    "stall longer than the work": (60.0, 200.0, 0.0, Phases(5.0, 5.0, 5.0, 5.0, 5.0), 1 / 700),
    "recovery hit by failures": (
        200.0,
        10.0,
        0.0,
        Phases(30.0, 50.0, 120.0, 300.0, 150.0),
        1 / 500,
    ),
    "async, drain shorter than the interval": (
        300.0,
        5.0,
        120.0,
        Phases(10.0, 10.0, 20.0, 30.0, 10.0),
        1 / 900,
    ),
    "async, overlapping drains": (100.0, 4.0, 260.0, Phases(10.0, 10.0, 20.0, 30.0, 10.0), 1 / 700),
    "async, lag much larger than the segment": (
        20.0,
        2.0,
        900.0,
        Phases(10.0, 10.0, 20.0, 30.0, 10.0),
        1 / 600,
    ),
}


@pytest.mark.parametrize("case", CASES, ids=list(CASES))
def test_every_state_agrees_with_the_walk(case):
    work, stall, lag, phases, rate = CASES[case]
    seen = one_level(work, stall, lag, phases, rate, interruptions=120_000, seed=20_260_822)
    told = segment(work, stall, lag, Recovery(*phases), rate)
    for name in (*STATES, "total_s"):
        assert seen.error[name] < 0.015 * seen.mean[name], (
            f"{name}: the walk is too short to prove anything"
        )
        assert abs(getattr(told, name) - seen.mean[name]) < 3 * seen.error[name], name
    assert goodput(work, told) == pytest.approx(work / seen.mean["total_s"], rel=0.01)


def test_the_walk_itself_meets_its_oracles():
    """R = D = 0: mean (e^lw - 1)/l, variance (e^2lw - 1 - 2lw e^lw)/l^2; failures of a segment are
    geometric."""
    mtbf, work = 100.0, 40.0
    rate, times_n = 1 / mtbf, 60_000
    durations, hits = segment_times(work, rate, times_n, seed=7)
    mean = math.expm1(rate * work) / rate
    variance = (math.exp(2 * rate * work) - 1 - 2 * rate * work * math.exp(rate * work)) / rate**2
    assert mean == pytest.approx(49.18, abs=0.005)
    assert variance == pytest.approx(320.8, abs=0.05)
    assert mean == pytest.approx(segment(work, 0.0, 0.0, NOTHING, rate).total_s, rel=1e-12)
    assert abs(durations.mean() - mean) < 3 * math.sqrt(variance / times_n)
    off = (durations - durations.mean()) ** 2
    assert abs(off.mean() - variance) < 3 * off.std() / math.sqrt(times_n)
    through = math.exp(-rate * work)
    assert abs(hits.mean() - (1 - through) / through) < 3 * hits.std() / math.sqrt(times_n)
    spread = (hits - hits.mean()) ** 2
    assert abs(spread.mean() - (1 - through) / through**2) < 3 * spread.std() / math.sqrt(times_n)


def test_rate_is_linear_in_nodes_and_adds_what_is_shared():
    failures = Failures(failures_per_node_s=2e-8, failures_per_s=3e-6)
    one, two = (job_failures_per_s(failures, Cluster(gpus)) for gpus in (800.0, 1600.0))
    assert one == pytest.approx(5e-6, rel=1e-15)
    assert two - one == pytest.approx(2e-6, rel=1e-12)
    assert mtbf_s(5e-6) == pytest.approx(200_000.0)
    assert mtbf_s(0.0) == math.inf


@pytest.mark.parametrize(
    ("nodes", "group", "lost"), [(4, 2, 2), (6, 2, 2), (6, 3, 3), (8, 2, 3), (9, 3, 4)]
)
def test_replica_loss_against_counting(nodes, group, lost):
    """Every way to lose `lost` nodes, counted; the formula is exact while two groups cannot die at
    once, else an upper bound."""
    from itertools import combinations

    ways = list(combinations(range(nodes), lost))
    dead = sum(
        any(all(g * group + k in way for k in range(group)) for g in range(nodes // group))
        for way in ways
    )
    told = replicas_lost_probability(nodes, group, lost)
    if lost < 2 * group:
        assert told == pytest.approx(dead / len(ways), rel=1e-12)
    assert told >= dead / len(ways) - 1e-12
    assert replicas_lost_probability(nodes, group, group - 1) == 0.0
    assert replicas_lost_probability(nodes, group, nodes) == 1.0


@pytest.mark.parametrize("staging", ["before", "after"])
@pytest.mark.parametrize("in_flight", [1, 2, 3])
@pytest.mark.parametrize(
    ("work", "stall", "lag", "mtbf"),
    [(300.0, 5.0, 1200.0, 3600.0), (100.0, 60.0, 1500.0, 5000.0), (100.0, 0.0, 2000.0, 20_000.0)],
)
def test_a_save_that_waits_for_one_before_it(work, stall, lag, mtbf, in_flight, staging):
    """Against a plain walk with m saves in flight; the first m saves after a start wait for
    none."""
    recovery = Recovery(60.0, 120.0, 90.0, 30.0, 45.0)
    taken = lag + (stall if staging == "after" else 0.0)
    blocked = taken / in_flight - work - stall
    assert blocked > 0
    exact = segment(work, stall + blocked, lag, recovery, 1 / mtbf, blocked, float(in_flight))
    walked = one_level(
        work,
        stall,
        lag,
        Phases(60.0, 120.0, 90.0, 30.0, 45.0),
        1 / mtbf,
        20_000,
        11,
        in_flight=in_flight,
        staging=staging,
    )
    for name in (*STATES, "total_s"):
        assert abs(getattr(exact, name) - walked.mean[name]) <= 3 * walked.error[name] + 1e-9, name
    steady = segment(work, stall + blocked, lag, recovery, 1 / mtbf)
    assert (
        steady.total_s > exact.total_s + 3 * walked.error["total_s"]
    )  # the difference is worth the words


def test_a_wait_that_vanishes_changes_nothing():
    recovery = Recovery(60.0, 120.0, 90.0, 30.0, 45.0)
    one, other = (segment(300.0, 9.0, 40.0, recovery, 1e-4, blocked) for blocked in (0.0, 1e-12))
    assert all(a == pytest.approx(b, rel=1e-9) for a, b in zip(one, other, strict=True))
    nobody_fails = segment(300.0, 609.0, 900.0, recovery, 0.0, 600.0)
    assert (nobody_fails.work_s, nobody_fails.stall_s, nobody_fails.failures) == (300.0, 609.0, 0.0)
    arrays = segment(
        np.array([300.0, 300.0]),
        np.array([9.0, 609.0]),
        900.0,
        recovery,
        1e-4,
        np.array([0.0, 600.0]),
    )
    alone = segment(300.0, 609.0, 900.0, recovery, 1e-4, 600.0)
    assert arrays.total_s[1] == pytest.approx(alone.total_s, rel=1e-12)
    assert arrays.total_s[0] == pytest.approx(
        segment(300.0, 9.0, 900.0, recovery, 1e-4).total_s, rel=1e-9
    )
