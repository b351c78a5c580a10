"""The robust interval, against grids, closed forms and worlds that are all the same."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.domain import Checkpoint, Cluster, Failures, Policy, Scenario, Site, Tier
from ckptcost.first.core.draws import drawn
from ckptcost.first.core.outcome import best_interval_s, cost_at, plan_of
from ckptcost.first.core.robust import least_regret_s, regrets_at, robust_of

JOB = Scenario(
    Checkpoint(size_bytes=5.68e12),
    Tier(write_bytes_per_s=30e9, read_bytes_per_s=30e9, setup_s=5.0, write_j_per_byte=1e-7),
    Cluster(
        gpus=2048.0,
        gpu_train_w=630.0,
        gpu_stall_w=200.0,
        gpu_idle_w=70.0,
        host_train_w=2800.0,
        host_stall_w=2800.0,
        host_idle_w=1200.0,
        gpu_d2h_bytes_per_s=55e9,
        usd_per_gpu_s=2.5 / 3600,
    ),
    Policy(every=600.0, mode="async", gpu_snapshot_bytes_per_s=3e9, slowdown_fraction=0.04),
    Failures(failures_per_node_s=3.8e-3 / 86400, detect_s=120.0, init_s=180.0),
    Site(pue=1.2, usd_per_j=0.1 / 3.6e6, kgco2e_per_j=0.4 / 3.6e6),
    54 * 86400.0,
)
RANGES = {
    "failures.failures_per_node_s": (2.3e-3 / 86400, 3.8e-3 / 86400, 6.5e-3 / 86400),
    "policy.gpu_snapshot_bytes_per_s": (0.5e9, 3e9, 26e9),
    "policy.slowdown_fraction": (0.003, 0.04, 0.55),
    "tier.setup_s": (1.0, 5.0, 30.0),
}


@pytest.mark.parametrize("objective", ["time", "energy", "usd", "carbon"])
def test_ranges_without_width_give_the_best_interval(objective):
    same = {path: (mode, mode, mode) for path, (_, mode, _) in RANGES.items()}
    best_s = best_interval_s(JOB, plan_of(JOB), objective)
    for ranges in ({}, same):
        found = robust_of(JOB, ranges, objective=objective)
        assert found.interval_s == pytest.approx(best_s, rel=1e-9)
        assert (found.low_s, found.high_s) == pytest.approx((best_s, best_s), rel=1e-9)
        assert found.regret == pytest.approx(0.0, abs=1e-12)
        assert not found.moves
        assert found.movers == ()


@pytest.mark.parametrize("objective", ["time", "energy", "usd"])
def test_no_interval_of_a_fine_grid_does_better(objective):
    """Brute force: 2,000 intervals over three decades, the mean of the regrets written out."""
    found = robust_of(JOB, RANGES, objective=objective)
    worlds = drawn(JOB, RANGES, samples=256)
    plan = plan_of(worlds)
    bests = best_interval_s(worlds, plan, objective)
    least = cost_at(worlds, plan, objective, bests)
    grid = np.geomspace(found.low_s / 5, found.high_s * 5, 2000)
    costs = cost_at(worlds, plan, objective, np.broadcast_to(grid[:, None], (2000, 256)))
    means = np.mean(costs / least - 1, axis=1)
    assert found.regret <= float(means.min()) * (1 + 1e-9)
    assert found.interval_s == pytest.approx(grid[int(np.argmin(means))], rel=0.01)
    assert found.regret < found.mean_at(found.best_s)


def test_the_worst_corner_is_the_worst_of_all_corners():
    """16 corners, each as a scenario of its own."""
    found = robust_of(JOB, RANGES)
    assert found.corners == 16
    assert set(found.movers) == set(RANGES)
    worst = {"robust": 0.0, "best": 0.0}
    for corner in np.ndindex(2, 2, 2, 2):
        rate, snapshot, slow, setup = (
            ends[0] if bit == 0 else ends[2]
            for bit, ends in zip(corner, RANGES.values(), strict=True)
        )
        s = replace(
            JOB,
            failures=replace(JOB.failures, failures_per_node_s=rate),
            policy=replace(JOB.policy, gpu_snapshot_bytes_per_s=snapshot, slowdown_fraction=slow),
            tier=replace(JOB.tier, setup_s=setup),
        )
        plan = plan_of(s)
        least = cost_at(s, plan, "time", best_interval_s(s, plan, "time"))
        for name, at in (("robust", found.interval_s), ("best", found.best_s)):
            worst[name] = max(worst[name], cost_at(s, plan, "time", at) / least - 1)
    assert found.worst == pytest.approx(worst["robust"], rel=1e-9)
    assert found.worst_at(found.best_s) == pytest.approx(worst["best"], rel=1e-9)


def test_ranges_as_wide_as_those_move_the_optimum_and_narrow_ones_do_not():
    assert robust_of(JOB, RANGES).moves
    narrow = {path: (0.95 * mode, mode, 1.05 * mode) for path, (_, mode, _) in RANGES.items()}
    assert not robust_of(JOB, narrow).moves


def test_the_unit_of_time_does_not_matter():
    """Everything that is a time or a rate, a hundred times slower: so is the interval, and the
    regret is the same."""
    by = 100.0
    slow = replace(
        JOB,
        tier=replace(JOB.tier, write_bytes_per_s=3e8, read_bytes_per_s=3e8, setup_s=500.0),
        cluster=replace(JOB.cluster, gpu_d2h_bytes_per_s=55e7, node_nic_bytes_per_s=np.inf),
        policy=replace(JOB.policy, gpu_snapshot_bytes_per_s=3e7),
        failures=Failures(failures_per_node_s=3.8e-5 / 86400, detect_s=12_000.0, init_s=18_000.0),
        work_s=by * JOB.work_s,
    )
    scale = {
        "failures.failures_per_node_s": 1 / by,
        "policy.gpu_snapshot_bytes_per_s": 1 / by,
        "policy.slowdown_fraction": 1.0,
        "tier.setup_s": by,
    }
    ranges = {p: tuple(scale[p] * end for end in ends) for p, ends in RANGES.items()}
    one, other = robust_of(JOB, RANGES), robust_of(slow, ranges)
    assert other.interval_s == pytest.approx(by * one.interval_s, rel=1e-6)
    assert other.regret == pytest.approx(one.regret, rel=1e-6)
    assert other.worst == pytest.approx(one.worst, rel=1e-6)


def test_two_worlds_meet_in_the_geometric_middle():
    """Costs x/b + b/x for b = 1 and 100: by symmetry the robust interval is 10, its regret (10 +
    1/10)/2 - 1."""
    bests = np.array([1.0, 100.0])

    def costs(x):
        return x / bests + bests / x

    found, regret = least_regret_s(costs, np.array([2.0, 2.0]), 1.0, 100.0)
    assert found == pytest.approx(10.0, rel=1e-6)
    assert regret == pytest.approx(4.05, rel=1e-9)


def test_a_world_that_never_ends_is_left_out_or_counts_as_very_bad():
    costs = np.array([np.inf, 3.0])
    over = regrets_at(lambda _: costs, np.array([np.inf, 2.0]), 1.0)
    assert np.isnan(over[0])
    assert over[1] == 0.5
    assert regrets_at(lambda _: costs, np.array([2.0, 2.0]), 1.0)[0] == 1e6


def test_a_tied_input_goes_with_the_one_it_is_tied_to():
    ranges = {
        "tier.write_bytes_per_s": (10e9, 30e9, 90e9),
        "tier.read_bytes_per_s": (10e9, 30e9, 90e9),
    }
    tied = robust_of(JOB, ranges, {"tier.read_bytes_per_s": "tier.write_bytes_per_s"})
    assert tied.movers == ("tier.write_bytes_per_s",)
    assert tied.corners == 2


def test_the_table_of_the_page_is_what_is_computed():
    """Two rows of the study in docs/method/robust.md; `python benchmarks/robust_intervals.py
    --write` brings all of it up to date."""
    folder = Path(__file__).resolve().parents[3] / "benchmarks"
    spec = importlib.util.spec_from_file_location(
        "robust_intervals", folder / "robust_intervals.py"
    )
    assert spec is not None
    assert spec.loader is not None
    study = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(study)
    page = study.PAGE.read_text("utf-8")
    rows = page.partition(study.BEGIN)[2].partition(study.END)[0].strip().splitlines()[2:]
    assert len(rows) == len(study.JOBS) == 10
    for at in (3, 7):
        assert rows[at] == study.row_of(*study.JOBS[at], Catalog())
