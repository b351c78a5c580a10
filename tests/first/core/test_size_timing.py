"""Bytes and seconds of one save and one load."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from sample_scenarios import BASE, changed

from ckptcost.first.core.domain import UNKNOWN, Checkpoint, Cluster, Policy, Tier
from ckptcost.first.core.outcome import evaluate
from ckptcost.first.core.size import (
    full_bytes,
    mean_load_bytes,
    mean_save_bytes,
    state_bytes,
    transformer_params,
)
from ckptcost.first.core.timing import (
    Save,
    backpressure,
    copy_s,
    drain_s,
    load_s,
    read_rate_bytes_per_s,
    save,
    spilled_fraction,
    turnaround_s,
    write_rate_bytes_per_s,
)

CLUSTER = Cluster(gpus=1024.0, gpu_d2h_bytes_per_s=10e9, node_nic_bytes_per_s=25e9)
SYNC = Policy(every=600.0)


def test_full_size_as_stated_or_counted():
    assert full_bytes(Checkpoint(params=8e9, bytes_per_param=14.0, extra_bytes=5e6)) == 112.005e9
    assert full_bytes(Checkpoint(params=8e9, bytes_per_param=14.0, size_bytes=2e12)) == 2e12
    assert math.isnan(full_bytes(Checkpoint(params=8e9)))
    assert state_bytes(1e12, 14.0, 3.0) == 14e12 + 3


def test_parameters_counted_matrix_by_matrix():
    """Embedding and head, then per layer two norms, q, k, v, o and three feed-forward matrices,
    then the last norm."""
    vocab, hidden, layers, ffn, heads, kv_heads = 1000, 100, 7, 350, 12, 3
    kv = (100 // 12) * 3
    layer = 2 * hidden + hidden * hidden + 2 * hidden * kv + hidden * hidden + 3 * hidden * ffn
    assert (
        transformer_params(vocab, hidden, layers, ffn, heads, kv_heads)
        == 2 * vocab * hidden + layers * layer + hidden
    )


@pytest.mark.parametrize(("every", "delta"), [(1.0, 0.3), (4.0, 0.25), (10.0, 0.05), (7.0, 1.0)])
def test_incremental_saves(every, delta):
    """One full save and k-1 deltas in k; a failure finds 0..k-1 deltas since the last full one,
    each as likely."""
    sizes = [100.0] + [100.0 * delta] * (int(every) - 1)
    assert mean_save_bytes(100.0, every, delta) == pytest.approx(sum(sizes) / every, rel=1e-14)
    chains = [100.0 + 100.0 * delta * k for k in range(int(every))]
    assert mean_load_bytes(100.0, every, delta) == pytest.approx(sum(chains) / every, rel=1e-14)


def test_the_narrowest_place_decides():
    tier = Tier(
        write_bytes_per_s=100e9,
        read_bytes_per_s=90e9,
        node_write_bytes_per_s=2e9,
        node_read_bytes_per_s=30e9,
        gpu_write_bytes_per_s=1e9,
    )
    assert write_rate_bytes_per_s(tier, CLUSTER) == 100e9
    assert read_rate_bytes_per_s(tier, CLUSTER) == 90e9
    few = Cluster(gpus=64.0, node_nic_bytes_per_s=25e9)
    assert write_rate_bytes_per_s(tier, few) == 16e9
    slow_link = Cluster(gpus=64.0, node_nic_bytes_per_s=1e9)
    assert write_rate_bytes_per_s(tier, slow_link) == 8e9
    assert read_rate_bytes_per_s(Tier(node_read_bytes_per_s=5e9), few) == 40e9
    assert write_rate_bytes_per_s(Tier(gpu_write_bytes_per_s=0.1e9), few) == 6.4e9
    assert read_rate_bytes_per_s(Tier(gpu_read_bytes_per_s=0.1e9), few) == 6.4e9
    assert (
        write_rate_bytes_per_s(Tier(boundary="node", node_write_bytes_per_s=6e9), slow_link) == 48e9
    )


def test_provisioned_rates():
    """125 MB/s for each provisioned TiB: 100 TiB give 12.5 GB/s, unless the system's own limit is
    lower."""
    tier = Tier(capacity_bytes=100 * 2**40, write_per_s=125e6 / 2**40, read_per_s=250e6 / 2**40)
    assert write_rate_bytes_per_s(tier, CLUSTER) == pytest.approx(12.5e9, rel=1e-14)
    assert read_rate_bytes_per_s(tier, CLUSTER) == pytest.approx(25e9, rel=1e-14)
    capped = Tier(capacity_bytes=100 * 2**40, write_per_s=125e6 / 2**40, write_bytes_per_s=5e9)
    assert write_rate_bytes_per_s(capped, CLUSTER) == 5e9
    # a rate per byte without a capacity, or a capacity without a rate, limits nothing
    assert write_rate_bytes_per_s(Tier(write_per_s=1e-4, write_bytes_per_s=7e9), CLUSTER) == 7e9
    assert write_rate_bytes_per_s(Tier(capacity_bytes=1e15, write_bytes_per_s=7e9), CLUSTER) == 7e9
    bigger = np.array([50.0, 100.0, 200.0]) * 2**40
    rates = write_rate_bytes_per_s(Tier(capacity_bytes=bigger, write_per_s=125e6 / 2**40), CLUSTER)
    np.testing.assert_allclose(rates, [6.25e9, 12.5e9, 25e9])


def test_drain_and_copy():
    assert drain_s(2e12, 2e9) == 1000.0
    assert drain_s(
        2e12, 2e9, straggler_factor=1.2, setup_s=5.0, files=1000.0, files_per_s=100.0
    ) == pytest.approx(1215.0)
    assert copy_s(2e12, 1000.0, 1e9, 1.5) == pytest.approx(3.0)


CHECKPOINT = Checkpoint(
    size_bytes=2e12,
    straggler_factor=1.1,
    files=50.0,
    compression_ratio=1.25,
    compress_bytes_per_s=400e9,
)
TIER = Tier(write_bytes_per_s=100e9, setup_s=3.0, files_per_s=25.0)


def test_sync_pipelined_takes_the_slowest_stage():
    """setup + files + sigma*max(write, compress, copy)."""
    saved = save(CHECKPOINT, TIER, CLUSTER, SYNC)
    write, squeeze, copy = 1.6e12 / 100e9, 2e12 / 400e9, 2e12 / (1024 * 10e9)
    assert saved.stall_s == pytest.approx(3 + 2 + 1.1 * max(write, squeeze, copy), rel=1e-12)
    assert saved.lag_s == 0.0
    assert saved.write_s == pytest.approx(3 + 2 + 1.1 * write, rel=1e-12)
    assert saved.written_bytes == saved.stored_bytes == pytest.approx(1.6e12)
    assert saved.wire_bytes_per_s == 100e9
    slow_squeeze = Checkpoint(
        size_bytes=2e12,
        straggler_factor=1.1,
        files=50.0,
        compression_ratio=1.25,
        compress_bytes_per_s=50e9,
    )
    assert save(slow_squeeze, TIER, CLUSTER, SYNC).stall_s == pytest.approx(5 + 1.1 * 40, rel=1e-12)
    slow_copy = Cluster(gpus=1024.0, gpu_d2h_bytes_per_s=2e12 / 1024 / 90)
    assert save(CHECKPOINT, TIER, slow_copy, SYNC).stall_s == pytest.approx(5 + 1.1 * 90, rel=1e-12)


def test_sync_staged_adds_the_stages():
    saved = save(CHECKPOINT, TIER, CLUSTER, Policy(every=600.0, pipelined=False))
    write, squeeze, copy = 1.6e12 / 100e9, 2e12 / 400e9, 2e12 / (1024 * 10e9)
    assert saved.stall_s == pytest.approx(5 + 1.1 * (write + squeeze + copy), rel=1e-12)


def test_async_stalls_for_the_copy_and_drains_behind():
    saved = save(CHECKPOINT, TIER, CLUSTER, Policy(every=600.0, mode="async"))
    assert saved.stall_s == pytest.approx(1.1 * 2e12 / (1024 * 10e9), rel=1e-12)
    assert saved.lag_s == pytest.approx(5 + 1.1 * 16, rel=1e-12)
    stated = save(CHECKPOINT, TIER, CLUSTER, Policy(every=600.0, mode="async", snapshot_s=0.59))
    assert stated.stall_s == 0.59
    staged = save(CHECKPOINT, TIER, CLUSTER, Policy(every=600.0, mode="async", pipelined=False))
    assert staged.lag_s == pytest.approx(5 + 1.1 * (16 + 5), rel=1e-12)


def test_compression_pays_until_the_compressor_is_the_narrow_place():
    """max(B/X, B/(r*BW)) when pipelined."""
    for ratio in (1.0, 1.5, 3.0):
        saved = save(
            Checkpoint(
                size_bytes=2e12, compression_ratio=ratio, compress_bytes_per_s=200e9, files=0.0
            ),
            Tier(write_bytes_per_s=100e9),
            CLUSTER,
            SYNC,
        )
        assert saved.stall_s == pytest.approx(max(2e12 / 200e9, 2e12 / (ratio * 100e9)), rel=1e-12)


def test_nothing_gets_through_a_closed_path():
    """A rate of zero takes infinitely long; it does not become unknown."""
    for policy in (SYNC, Policy(every=600.0, pipelined=False)):
        assert (
            save(CHECKPOINT, Tier(write_bytes_per_s=0.0, setup_s=3.0), CLUSTER, policy).stall_s
            == math.inf
        )
    assert load_s(CHECKPOINT, Tier(read_bytes_per_s=0.0), CLUSTER) == math.inf


def test_load():
    tier = Tier(write_bytes_per_s=100e9, read_bytes_per_s=50e9, setup_s=3.0)
    assert load_s(Checkpoint(size_bytes=2e12), tier, CLUSTER) == pytest.approx(43.0)
    every_replica = Cluster(gpus=1024.0, readers_per_byte=4.0)
    assert load_s(Checkpoint(size_bytes=2e12), tier, every_replica) == pytest.approx(163.0)
    deltas = Checkpoint(
        size_bytes=2e12, full_every=11.0, delta_fraction=0.1, compression_ratio=1.25
    )
    assert load_s(deltas, tier, CLUSTER) == pytest.approx(3 + 2e12 * 1.5 / 1.25 / 50e9)


def test_load_with_an_unknown_read_rate_takes_the_write_rate():
    tier = Tier(write_bytes_per_s=100e9, read_bytes_per_s=UNKNOWN)
    assert load_s(Checkpoint(size_bytes=2e12), tier, CLUSTER) == pytest.approx(20.0)


def slow_save(lag, stall=1.0):
    return Save(
        stall_s=stall,
        lag_s=lag,
        write_s=lag,
        written_bytes=1.0,
        stored_bytes=1.0,
        wire_bytes_per_s=1.0,
    )


def cadence(interval, stall, lag, many, staging, when_busy, saves=400):
    """Mean distance of the saves of a plain run without failures: train, look for a place, copy."""
    now, ends, made = 0.0, [], 0
    while made < saves:
        now += interval
        free = ends[-many] + lag if len(ends) >= many else 0.0
        if when_busy == "skip" and free > (now if staging == "after" else now + stall):
            continue
        now = max(now, free) + stall if staging == "after" else max(now + stall, free)
        ends.append(now)
        made += 1
    return (ends[-1] - ends[0]) / (len(ends) - 1)


@pytest.mark.parametrize("staging", ["before", "after"])
@pytest.mark.parametrize("in_flight", [1, 2, 4])
@pytest.mark.parametrize("interval", [10.0, 30.0, 99.0, 200.0])
@pytest.mark.parametrize("stall", [0.0, 1.0, 60.0])
def test_block_waits(interval, in_flight, staging, stall):
    """A cycle is never shorter than lag/m, nor, staged after, than (copy + lag)/m; and never longer
    than it must be."""
    policy = Policy(every=interval, mode="async", in_flight=float(in_flight), staging=staging)
    cycle = backpressure(interval, slow_save(100.0, stall), policy)
    assert cycle.interval_s == interval
    least = (100.0 + (stall if staging == "after" else 0.0)) / in_flight
    assert cycle.interval_s + cycle.stall_s == pytest.approx(max(interval + stall, least))
    assert cycle.blocked_s == pytest.approx(max(0.0, least - interval - stall))
    walked = cadence(interval, stall, 100.0, in_flight, staging, "block")
    assert cycle.interval_s + cycle.stall_s == pytest.approx(walked, rel=0.01)


@pytest.mark.parametrize("staging", ["before", "after"])
@pytest.mark.parametrize("in_flight", [1, 2, 4])
@pytest.mark.parametrize("interval", [10.0, 30.0, 99.0, 200.0])
def test_skip_leaves_saves_out(interval, in_flight, staging):
    """As many are left out as a drain needs; nothing waits."""
    policy = Policy(
        every=interval,
        mode="async",
        in_flight=float(in_flight),
        staging=staging,
        when_busy="skip",
    )
    cycle = backpressure(interval, slow_save(100.0), policy)
    assert cycle.stall_s == 1.0
    assert cycle.blocked_s == 0.0
    steps = cycle.interval_s / interval * in_flight
    assert steps == pytest.approx(round(steps))
    walked = cadence(interval, 1.0, 100.0, in_flight, staging, "skip")
    assert cycle.interval_s + cycle.stall_s == pytest.approx(walked, rel=0.01)


def test_a_copy_that_takes_no_time_needs_no_second_buffer():
    for many in (1.0, 3.0):
        first, second = (
            backpressure(
                5.0,
                slow_save(100.0, 0.0),
                Policy(every=5.0, mode="async", in_flight=many, staging=staging),
            )
            for staging in ("before", "after")
        )
        assert first == second


def test_one_in_flight_makes_the_cadence_the_drain():
    """A save every step of a few seconds on 8 GPUs: training goes at the drain's pace, whatever the
    stall (64 s, then 59 s)."""
    for drain in (64.0, 59.0):
        for stall in (0.1, 3.0):
            policy = Policy(every=2.0, mode="async")
            cycle = backpressure(2.0, slow_save(drain - stall, stall), policy)
            assert cycle.interval_s + cycle.stall_s == pytest.approx(drain)


def test_skip_and_block_in_a_run():
    """When drains cannot keep up, blocking stands still and skipping loses more to failures."""
    s = changed(policy__mode="async", policy__every=5.0, tier__write_bytes_per_s=20e9)
    block, skip = evaluate(s), evaluate(changed(s, policy__when_busy="skip"))
    assert block.cycle.blocked_s > 40
    assert block.spent.stall_s > 100 * skip.spent.stall_s
    assert skip.saves < block.saves * 0.2
    assert skip.goodput > block.goodput
    roomy = changed(s, policy__every=3600.0)
    assert evaluate(roomy).goodput == evaluate(changed(roomy, policy__when_busy="skip")).goodput


def test_drag_counts_towards_the_drain():
    """While training crawls behind a drain, the drain goes on."""
    cycle = backpressure(60.0, slow_save(100.0), Policy(every=60.0, mode="async"), drag_s=20.0)
    assert cycle.blocked_s == pytest.approx(100 - 60 - 20)
    assert (
        backpressure(
            60.0, slow_save(100.0), Policy(every=60.0, mode="async"), drag_s=50.0
        ).blocked_s
        == 0.0
    )


def test_sync_never_waits_for_itself():
    outcome = evaluate(BASE)
    assert outcome.cycle.blocked_s == 0.0
    assert outcome.cycle.interval_s == 1800.0


# ---- copies in a bounded memory of the host


def fluid_s(share, budget, copy_rate, drain_rate, step=2e-3):
    """(stall, lag) of a copy that flows through a bounded buffer while it drains, in small steps of
    time."""
    copied = drained = time = 0.0
    stall = None
    while drained < share - 1.0:
        copied = min(copied + copy_rate * step, drained + budget, share)
        drained = min(drained + drain_rate * step, copied)
        time += step
        if stall is None and copied == share:
            stall = time
    return stall, time - stall


def by_turns_s(share, budget, copy_rate, drain_rate, piece=1e6):
    """The same piece by piece: a piece is copied when there is room for it, else the oldest one
    drains, one thing at a time."""
    copied = drained = time = 0.0
    while copied < share:
        if copied + piece <= drained + budget:
            copied += piece
            time += piece / copy_rate
        else:
            drained += piece
            time += piece / drain_rate
    return time, (copied - drained) / drain_rate


STAGED = Cluster(gpus=64.0, gpus_per_node=4.0, gpu_d2h_bytes_per_s=10e9 / 4)


def staged_save(share, budget, many=1.0, staging="after", **fields):
    """A save on 16 nodes that copy at 10 GB/s and drain at 1 GB/s each."""
    policy = Policy(every=600.0, mode="async", in_flight=many, staging=staging)
    cluster = replace(STAGED, staging_budget_bytes=budget)
    checkpoint = Checkpoint(**({"size_bytes": 16 * share, "files": 0.0} | fields))
    return save(checkpoint, Tier(node_write_bytes_per_s=1e9), cluster, policy), policy


@pytest.mark.parametrize("many", [1, 2, 3])
@pytest.mark.parametrize("staging", ["before", "after"])
@pytest.mark.parametrize("budget", [4e9, 12e9, 30e9, 200e9])
def test_a_bounded_buffer_stalls_for_what_must_drain_first(budget, many, staging):
    """copy + (share - buffer)/drain rate, the budget shared by the copies in flight; no more than
    the sum of both in all."""
    share, buffer = 40e9, budget / (many + (staging == "before"))
    saved, policy = staged_save(share, budget, float(many), staging)
    stall, lag = by_turns_s(share, buffer, 10e9, 1e9)
    assert (saved.stall_s, saved.lag_s) == pytest.approx((stall, lag), abs=0.01)
    assert saved.stall_s + saved.lag_s == pytest.approx(4.0 + 40.0)
    assert turnaround_s(saved, policy) == pytest.approx(
        44.0 if staging == "after" else lag, abs=0.01
    )
    # where the copy flows on while the buffer drains, it ends sooner, by one copy's time at most
    sooner, _ = fluid_s(share, buffer, 10e9, 1e9)
    assert sooner - 0.01 <= saved.stall_s <= sooner + 4.0 + 0.01


def test_a_budget_that_holds_all_copies_changes_nothing():
    free, _ = staged_save(40e9, math.inf, 2.0)
    enough, _ = staged_save(40e9, 80e9, 2.0)
    assert free == enough
    assert staged_save(40e9, 79e9, 2.0)[0].stall_s > free.stall_s


def test_a_synchronous_save_and_a_second_tier_have_no_budget():
    bounded = replace(STAGED, staging_budget_bytes=1e9)
    for policy, staged in ((SYNC, True), (Policy(every=600.0, mode="async"), False)):
        tier = Tier(write_bytes_per_s=100e9)
        mine = save(CHECKPOINT, tier, bounded, policy, staged=staged)
        assert mine == save(CHECKPOINT, tier, STAGED, policy, staged=staged)


def test_full_saves_spill_where_deltas_fit():
    """One full save of 40 GB a node in five, deltas of 4 GB, a buffer of 10: 30 of 56 GB spill."""
    cluster = replace(STAGED, staging_budget_bytes=10e9)
    checkpoint = Checkpoint(size_bytes=16 * 40e9, full_every=5.0, delta_fraction=0.1)
    policy = Policy(every=600.0, mode="async")
    assert spilled_fraction(checkpoint, cluster, policy) == pytest.approx(30 / 56)
    doubled = replace(checkpoint, replicas_writing=2.0)
    assert spilled_fraction(doubled, cluster, policy) == pytest.approx(70 / 112)


# ---- measured times


def test_a_measured_save_takes_the_place_of_rates():
    tier = Tier(
        write_bytes_per_s=1.0,
        read_bytes_per_s=1.0,
        setup_s=9.0,
        save_time_s=758.0,
        load_time_s=174.0,
        timed_bytes=94.338e9,
    )
    cluster = Cluster(gpus=8.0)
    once = Checkpoint(size_bytes=94.338e9, straggler_factor=1.2, files=100.0)
    assert save(once, tier, cluster, SYNC).stall_s == pytest.approx(758.0)
    assert load_s(once, tier, cluster) == pytest.approx(174.0)
    assert write_rate_bytes_per_s(tier, cluster) == pytest.approx(94.338e9 / 758)
    assert read_rate_bytes_per_s(tier, cluster) == pytest.approx(94.338e9 / 174)
    twice = replace(once, size_bytes=2 * 94.338e9)
    assert save(twice, tier, cluster, SYNC).stall_s == pytest.approx(1516.0)
    assert load_s(twice, tier, cluster) == pytest.approx(348.0)
    behind = save(once, tier, cluster, Policy(every=600.0, mode="async", snapshot_s=3.0))
    assert (behind.stall_s, behind.lag_s) == (3.0, pytest.approx(758.0))
    sizes = np.array([94.338e9, 2 * 94.338e9])
    timed = replace(tier, save_time_s=np.array([758.0, np.nan]))
    both = save(replace(once, size_bytes=sizes, files=0.0), timed, cluster, SYNC).stall_s
    assert both[0] == pytest.approx(758.0)
    assert both[1] == pytest.approx(9.0 + 1.2 * 2 * 94.338e9)


def test_planning_holds_training_up_in_both_modes():
    """280 s for the first save of a set of states and 155 s for the next: 125 s of planning."""
    checkpoint, cluster = Checkpoint(size_bytes=1.6e12, files=0.0), Cluster(gpus=256.0)
    tier = Tier(write_bytes_per_s=1.6e12 / 155)
    first = replace(tier, planning_s=125.0)
    for policy in (SYNC, Policy(every=600.0, mode="async", snapshot_s=2.0)):
        later = save(checkpoint, tier, cluster, policy)
        assert save(checkpoint, first, cluster, policy).stall_s == pytest.approx(
            later.stall_s + 125.0
        )
        assert save(checkpoint, first, cluster, policy).lag_s == later.lag_s
    timed = replace(first, save_time_s=280.0, timed_bytes=1.6e12)
    assert save(checkpoint, timed, cluster, SYNC).stall_s == pytest.approx(280.0)
