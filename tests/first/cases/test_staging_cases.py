"""Saves that somebody timed and wrote about: memory of the host, planning, measured durations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ckptcost.first.core.cautions import cautions_of, host_ram, ram_verdict
from ckptcost.first.core.domain import Checkpoint, Cluster, Failures, Policy, Scenario, Site, Tier
from ckptcost.first.core.outcome import evaluate
from ckptcost.first.core.timing import load_s, save, staged_bytes

GIB = 2.0**30
RACK = Cluster(gpus=64.0, gpus_per_node=4.0)
"""sixteen nodes of four GB200, one process a GPU"""


def one_rack(budget_gib: float, ram_gib: float) -> Scenario:
    """5.36 TB from one rack; 78 GiB of each process are its resident share of the offloaded
    state."""
    return Scenario(
        Checkpoint(size_bytes=5.36e12),
        Tier(write_bytes_per_s=5.36e12 / 374),
        replace(
            RACK,
            staging_budget_bytes=4 * budget_gib * GIB,
            node_ram_used_bytes=4 * 78 * GIB,
            node_ram_bytes=ram_gib * GIB,
        ),
        Policy(every=3600.0, mode="async", snapshot_s=13.0),
        Failures(),
        Site(),
        86_400.0,
    )


def test_a15_what_kills_a_node():
    """marin-community/marin #8469: 61 GiB in flight a process, 556 GiB a node, killed; 40 GiB, 472
    GiB, held."""
    for budget, needed in ((61.0, 556.0), (40.0, 472.0)):
        ram = host_ram(one_rack(budget, 500.0), 24.0)
        assert ram.needed_bytes == needed * GIB
    killed, held = one_rack(61.0, 500.0), one_rack(40.0, 500.0)
    assert ram_verdict(host_ram(killed, 24.0)) == "too much"
    assert ram_verdict(host_ram(held, 24.0)) == "fits"
    for s, fires in ((killed, True), (held, False)):
        found = {c.code: bool(c.holds) for c in cautions_of(s, evaluate(s))}
        assert found["HOST_RAM"] is fires
        assert found["STAGING_BUDGET"]
    # staged whole, the same save needs the rest of the share too: 624 GiB
    whole = replace(killed, cluster=replace(killed.cluster, staging_budget_bytes=float("inf")))
    assert host_ram(whole, 24.0).needed_bytes / GIB == pytest.approx(624.0, abs=0.5)


def test_one_rack_stages_as_long_as_was_measured():
    """marin-community/marin #8514: 78 GiB a process, a budget of 8, 0.60 GiB/s, 13 s of copy: 130.1
    s, where 130 were expected."""
    cluster = replace(RACK, staging_budget_bytes=4 * 8 * GIB)
    checkpoint = Checkpoint(size_bytes=64 * 78 * GIB, files=0.0)
    tier = Tier(gpu_write_bytes_per_s=0.6 * GIB)
    saved = save(checkpoint, tier, cluster, Policy(every=3600.0, mode="async", snapshot_s=13.0))
    assert saved.stall_s == pytest.approx(130.1, rel=0.005)


def test_a14_a_share_over_the_budget_stalls_the_run():
    """4,993 GiB, 512 of 704 processes stage 9.75 GiB each against a budget of 8: 9 min 15 s in each
    64 min."""
    checkpoint = Checkpoint(size_bytes=4993 * GIB, straggler_factor=704 / 512, files=0.0)
    cluster = Cluster(gpus=704.0, gpus_per_node=4.0)
    share_gib = staged_bytes(checkpoint, cluster) / 4 / GIB
    assert share_gib == pytest.approx(9.75, abs=0.005)
    policy = Policy(every=3840.0 - 555.0, mode="async", snapshot_s=0.0)
    # what a process uploads a second, from the stall; the whole share then takes 51 of the 64
    # minutes
    tier = Tier(gpu_write_bytes_per_s=(share_gib - 8.0) * GIB / 555.0)
    tight = save(checkpoint, tier, replace(cluster, staging_budget_bytes=4 * 8 * GIB), policy)
    assert tight.stall_s == pytest.approx(555.0, rel=1e-9)
    assert 3000.0 < tight.stall_s + tight.lag_s < 3840.0
    assert tight.stall_s / 3840.0 == pytest.approx(0.145, abs=0.001)
    assert tight.stall_s / (3840.0 + 555.0) == pytest.approx(0.126, abs=0.001)
    roomy = save(checkpoint, tier, replace(cluster, staging_budget_bytes=4 * 16 * GIB), policy)
    assert roomy.stall_s == 0.0
    assert roomy.lag_s == pytest.approx(tight.stall_s + tight.lag_s)


def test_a5_a_person_with_two_durations_needs_no_rate():
    """AMD-AGI/Primus: 94.34 GB, save 758 s, load 174 s; the rate that is printed there is in
    MiB/s."""
    checkpoint = Checkpoint(params=6_738_415_616.0, bytes_per_param=14.0)
    tier = Tier(save_time_s=758.0, load_time_s=174.0, timed_bytes=94_338_155_448.0)
    cluster = Cluster(gpus=8.0)
    saved = save(checkpoint, tier, cluster, Policy(every=3600.0))
    assert saved.stall_s == pytest.approx(758.0, rel=1e-5)
    assert load_s(checkpoint, tier, cluster) == pytest.approx(174.0, rel=1e-5)
    assert saved.wire_bytes_per_s / 2**20 == pytest.approx(118.69, rel=1e-4)


def test_a10_and_a11_planning_is_a_time_of_its_own():
    """pytorch/pytorch #147343: 280 s first, 155 s later, 1.6 TB; #149785: 90 s and more of
    planning, 1.5 s from the cache."""
    checkpoint, cluster = Checkpoint(size_bytes=1.6e12, files=0.0), Cluster(gpus=256.0)
    tier = Tier(write_bytes_per_s=1.6e12 / 155.0)
    first = save(checkpoint, replace(tier, planning_s=125.0), cluster, Policy(every=3600.0))
    assert first.stall_s == pytest.approx(280.0)
    assert 1.6e12 / first.stall_s / 1e9 == pytest.approx(5.71, abs=0.01)
    assert tier.write_bytes_per_s / 1e9 == pytest.approx(10.32, abs=0.01)
    behind = Policy(every=3600.0, mode="async", snapshot_s=2.0)
    slow, quick = (
        save(checkpoint, replace(tier, planning_s=planning), cluster, behind).stall_s
        for planning in (90.0, 1.5)
    )
    assert (slow, quick) == (92.0, 3.5)


def test_a17_one_in_flight_makes_the_cadence_the_drain():
    """NVIDIA-NeMo/Automodel #3125: a save each step on 8 GPUs, 64 s apart, 59 s with a quicker
    drain."""
    for cadence in (64.0, 59.0):
        s = Scenario(
            Checkpoint(size_bytes=56e9, files=0.0),
            Tier(save_time_s=cadence - 1.0, timed_bytes=56e9),
            Cluster(gpus=8.0),
            Policy(every=5.0, mode="async", snapshot_s=1.0),
            Failures(),
            Site(),
            36_000.0,
        )
        o = evaluate(s)
        assert o.wall_s / o.saves == pytest.approx(cadence)
        assert o.cycle.stall_s == pytest.approx(cadence - 5.0)
