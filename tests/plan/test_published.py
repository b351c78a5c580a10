"""Published cases (METHOD section 7, shared/catalogue/cases-2.csv) that are about the physics."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from plan_worlds import at, best, one, outcome, world

from ckptcost.plan import physics as ph

LINEAR = {"failures.mtbf": np.nan, "failures.size_exponent": 1.0}


def by_nodes(gpus: float, per_day: float) -> dict[str, Any]:
    return LINEAR | {"cluster.gpus": gpus, "failures.rate": per_day / 86400.0}


def mtbf_hours(figures: dict[str, Any]) -> float:
    with np.errstate(all="ignore"):
        return 1.0 / one(ph.failure_rate(world(figures))) / 3600.0


def test_d7_llama3_fails_nearly_eight_times_a_day() -> None:
    figures = LINEAR | {
        "cluster.gpus": 16384,
        "failures.gpu_rate": 0.4216e-3 / 86400.0,
        "failures.rate": 0.416e-3 / 86400.0,
    }
    assert 24.0 / mtbf_hours(figures) == pytest.approx(419 / 54, rel=0.005)
    world_ = figures | {"run.work": 54 * 86400.0, "checkpoint.size": 5.67e12, "tier.write": 2e12}
    assert one(outcome(world(world_)).goodput) > 0.9


@pytest.mark.parametrize(("gpus", "hours"), [(16384, 1.8), (131072, 0.23)])
def test_d8_rsc1_mttf(gpus: float, hours: float) -> None:
    assert mtbf_hours(by_nodes(gpus, 6.50e-3)) == pytest.approx(hours, rel=0.03)


def test_d9_a_small_job_fails_more_often_for_its_size() -> None:
    """RSC-1 at 1,024 GPUs: 7.9 h measured, 28.8 h by the linear law."""
    linear = mtbf_hours(by_nodes(1024, 6.50e-3))
    assert linear == pytest.approx(28.8, rel=0.01)
    assert mtbf_hours(by_nodes(1024, 6.50e-3) | {"failures.size_exponent": 0.75}) < linear / 1.9


@pytest.mark.parametrize(("save", "ettr", "tolerance"), [(10.0, 0.9205, 0.01), (300.0, 0.74, 0.02)])
def test_d10_d11_reachable_ettr(save: float, ettr: float, tolerance: float) -> None:
    """12,000 GPUs at 6.5 failures in 1,000 node-days, recovery 5 min."""
    nothing = {f"failures.{key}": 0.0 for key in ("detect", "reschedule", "warmup")}
    figures = by_nodes(12000, 6.5e-3) | nothing
    figures |= {"failures.init": 300.0, "tier.read": 1e30, "cluster.gpu_d2h": np.inf}
    w = world(figures | {"tier.write": 6e11 / save})
    assert one(at(w, best(w, "time")).goodput) == pytest.approx(ettr, abs=tolerance)


@pytest.mark.parametrize(("gpus", "minutes"), [(1e5, 30), (1e6, 3)])
def test_d13_fifty_thousand_hours_a_gpu(gpus: float, minutes: float) -> None:
    figures = LINEAR | {"cluster.gpus": gpus, "failures.gpu_rate": 1 / 50_000 / 3600}
    assert mtbf_hours(figures) * 60 == pytest.approx(minutes)


@pytest.mark.parametrize(
    ("size", "rate", "way", "seconds", "rel"),
    [
        (14 * 405e9, 111e9, "write", 51.06, 0.002),  # D15, ByteCheckpoint
        (14 * 405e9, 44e9, "read", 129.49, 0.006),
        (911.212 * 2**30, 48.18 * 2**30, "write", 18.915, 0.002),  # D21
        (911.212 * 2**30, 105.5 * 2**30, "write", 8.647, 0.002),  # D22
        (104.705 * 2**30, 13.34 * 2**30, "write", 7.859, 0.002),
        (5.36e12, 14.33e9, "write", 374.0, 0.001),  # A12, one rack of GB200
    ],
)
def test_time_of_a_save_or_load(
    size: float, rate: float, way: str, seconds: float, rel: float
) -> None:
    w = world({"checkpoint.size": size, f"tier.{way}": rate, "cluster.gpu_d2h": np.inf})
    with np.errstate(all="ignore"):
        found = ph.load(w, w.tier) if way == "read" else ph.save(w, w.tier).stall
    assert one(found) == pytest.approx(seconds, rel=rel)


def test_a14_staging_budget_makes_training_wait() -> None:
    """9.75 GiB a process, a budget of 8, drained at about the rate that gives 9 min 15 s; and one
    rack: 78 GiB, 0.6 GiB/s a process, 117 s beside 13 s of copy."""
    gib = 2**30
    rack = {
        "policy.mode": "async",
        "policy.snapshot": 13.0,
        "cluster.gpus_per_node": 1,
        "checkpoint.size": 64 * 78 * gib,
        "tier.write": 64 * 0.6 * gib,
        "cluster.staging_budget": 8 * gib,
    }
    assert one(outcome(world(rack | {"policy.interval": 3600.0})).rhythm.stall) == pytest.approx(
        130.1, rel=0.01
    )


def test_a17_with_one_in_flight_the_cadence_is_the_drain() -> None:
    """A save every step on 8 GPUs: 64 s between saves, whatever the step."""
    frequent = {"policy.mode": "async", "policy.snapshot": 1.0, "tier.write": 6e11 / 63}
    for step in (0.5, 5.0, 30.0):
        o = outcome(world(frequent | {"policy.interval": step, "run.work": 5000.0}))
        assert one(o.interval + o.rhythm.stall) == pytest.approx(64.0)


def test_continuous_saving_of_orbax() -> None:
    """Llama 3.1 70B on two slices of v5p-128: a save every 47 steps instead of every 100."""
    step = 10.0
    w = {"policy.mode": "async", "policy.interval": 0.0, "tier.write": 6e11 / (47 * step - 5)}
    assert one(outcome(world(w)).interval + 5.0) / step == pytest.approx(47)
