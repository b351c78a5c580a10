"""Closed form, simulation and a plain walk agree: three ways to the same mean."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from plan_worlds import SECOND, Job, one, outcome, walks, world

from ckptcost.plan.montecarlo import Runs, simulate, weibull_gaps

ASYNC = {"policy.mode": "async"}
JOB = Job()
DRAINS = JOB.but(stall=5.0, lag=60.0)
TWO = {"every": (5, 1), "lost": (0.4, 0.0)}
CASES: dict[str, tuple[dict[str, Any], Job]] = {
    "sync": ({}, JOB),
    "async": (ASYNC, DRAINS),
    "one in flight blocks": (
        ASYNC | {"policy.interval": 30.0, "run.work": 30_000.0},
        DRAINS.but(interval=30.0, saves=1000),
    ),
    "two in flight block": (
        ASYNC | {"policy.interval": 20.0, "run.work": 30_000.0, "policy.in_flight": 2},
        DRAINS.but(interval=20.0, saves=1500, many=2),
    ),
    "skips": (
        ASYNC | {"policy.interval": 20.0, "run.work": 30_000.0, "policy.when_busy": "skip"},
        DRAINS.but(interval=20.0, saves=1500, busy="skip"),
    ),
    "continuous": (
        ASYNC | {"policy.interval": 0.0, "run.work": 30_000.0},
        DRAINS.but(interval=60.0, saves=500),
    ),
    "unusable": ({"failures.unusable": 0.1}, JOB.but(unusable=0.1)),
    "much unusable, often": (
        {"failures.unusable": 0.3, "failures.mtbf": 2500.0},
        JOB.but(unusable=0.3, mtbf=2500.0),
    ),
    "silent": (
        {"failures.silent": 0.05, "failures.silent_back": 3},
        JOB.but(silent=0.05, silent_back=3),
    ),
    "async, unusable and silent": (
        ASYNC
        | {"failures.unusable": 0.05, "failures.silent": 0.02, "failures.silent_back": 4}
        | {"policy.interval": 300.0},
        DRAINS.but(interval=300.0, saves=400, unusable=0.05, silent=0.02, silent_back=4),
    ),
    "two tiers": (SECOND, JOB.but(**TWO, further_stall=(200.0, 0.0))),
    "two tiers, async": (SECOND | ASYNC, DRAINS.but(**TWO, further_lag=(200.0, 0.0))),
    "two tiers, unusable": (
        SECOND | {"failures.unusable": 0.01},
        JOB.but(**TWO, further_stall=(200.0, 0.0), unusable=0.01),
    ),
    "deletes": (
        {"policy.delete_time": 20.0, "policy.deleting": "serial", "policy.keep_last": 1.0},
        JOB.but(stall=80.0 - 20.0 / 200.0),
    ),
    "slowed all the time": (
        ASYNC | {"policy.pinned": 0.2, "policy.interval": 480.0, "run.work": 96_000.0},
        DRAINS,
    ),
}
FIRST_ORDER = {
    "one in flight blocks": 0.0012,  # the first save of the run waits for none
    "two in flight block": 0.002,  # nor do the first two; the simulation lets one of them wait
    "skips": 0.012,  # after a restart the first save comes an interval after it, not three
    "two tiers, async": 0.002,  # in the lags
    "two tiers, unusable": 0.001,
}
"""relative error that the formula has by its own account; all others are exact"""


def off(values: np.ndarray, mean: float) -> float:
    """Standard errors between a sample and a mean."""
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5
    return abs(float(np.mean(values)) - mean) / max(error, 1e-300)


def agrees(values: np.ndarray, mean: float, slack: float) -> bool:
    """Within three standard errors, or within what the formula or the last bit leaves open."""
    return off(values, mean) < 3.0 or abs(np.mean(values) - mean) <= slack * abs(mean)


@pytest.mark.parametrize("case", CASES)
def test_walk_has_the_mean_of_the_formula(case: str) -> None:
    figures, job = CASES[case]
    found, o = walks(job, 800), outcome(world(figures))
    means = {name: one(getattr(o.spent, name)) for name in ("wall", "stall", "load")}
    means |= {"failures": one(o.failures)}
    means["trained"] = one(o.spent.slowed + o.spent.redone) + one(world(figures).run.work)
    for name, values in found.items():
        assert agrees(values, means[name], FIRST_ORDER.get(case, 1e-9)), name


def simulated(figures: dict[str, Any], runs: int = 6000, **how: Any) -> Runs:
    w = world(figures)
    o = outcome(w)
    with np.errstate(all="ignore"):
        return simulate(w, o, runs, **how)


@pytest.mark.parametrize("case", CASES)
def test_simulation_has_the_mean_of_the_formula(case: str) -> None:
    figures, _ = CASES[case]
    runs, o = simulated(figures), outcome(world(figures))
    amounts = {name: getattr(o.spent, name) for name in vars(o.spent)} | {"failures": o.failures}
    for name, closed in amounts.items():
        values = runs.failures if name == "failures" else getattr(runs.spent, name)
        assert agrees(values, one(closed), FIRST_ORDER.get(case, 1e-4)), name


@pytest.mark.parametrize("case", ["sync", "async", "two in flight block", "unusable", "two tiers"])
def test_simulation_scatters_like_the_walk(case: str) -> None:
    figures, job = CASES[case]
    walked, runs = walks(job, 800, seed=2), simulated(figures)
    assert np.std(runs.spent.wall) == pytest.approx(np.std(walked["wall"]), rel=0.1)
    assert np.std(runs.failures) == pytest.approx(np.std(walked["failures"]), rel=0.1)


def test_three_tiers_are_simulated_like_the_walk() -> None:
    third = {"id": "cold", "write": 1e9, "read": 1e9}
    figures = SECOND | {f"third_tier.{key}": value for key, value in third.items()}
    figures |= {"policy.third_every": 4, "failures.second_loss_fraction": 0.1}
    job = JOB.but(every=(5, 4), lost=(0.4, 0.1), further_stall=(200.0, 600.0))
    drains = DRAINS.but(every=(5, 4), lost=(0.4, 0.1), further_lag=(200.0, 600.0))
    for changes, other in (({}, job), (ASYNC, drains)):
        runs, walked = simulated(figures | changes), walks(other, 1500)
        for name in ("wall", "stall", "load", "failures"):
            values = getattr(runs.spent, name, runs.failures)
            spread = (np.var(values) / len(values) + np.var(walked[name]) / 1500) ** 0.5
            gap = abs(np.mean(values) - np.mean(walked[name]))
            assert gap < 3.0 * spread + 1e-6 * np.mean(walked[name]), name
        assert np.mean(runs.spent.third_saves) > 200 / 20


def test_same_seed_same_runs_and_another_seed_others() -> None:
    first, again, other = (simulated({}, 50, seed=seed).spent.wall for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_failures_of_segments_are_negative_binomial() -> None:
    """Without recovery n segments fail NegBin(n, exp(-w/M)) times."""
    figures = {f"failures.{key}": 0.0 for key in ("detect", "reschedule", "init", "warmup")}
    figures |= {"failures.mtbf": 100.0, "tier.write": 6e14, "tier.read": 6e24}
    figures |= {"cluster.gpu_d2h": np.inf, "policy.interval": 39.999, "run.work": 1999.95}
    runs = simulated(figures, 20_000)
    p = np.exp(-0.4)
    assert off(runs.failures, 50 * (1 - p) / p) < 3.0
    assert np.var(runs.failures) == pytest.approx(50 * (1 - p) / p**2, rel=0.03)
    assert np.mean(runs.spent.wall) / 50 == pytest.approx(49.18, rel=0.003)
    assert np.var(runs.spent.wall) / 50 == pytest.approx(320.8, rel=0.03)


def test_weibull_failures_of_a_shape_below_one_come_in_bursts_as_often() -> None:
    gaps = next(weibull_gaps(np.random.default_rng(3), np.full(200_000, 50.0), 0.6))
    assert off(gaps, 50.0) < 3.0
    same, bursts = simulated({}, 4000, shape=1.0), simulated({}, 4000, shape=0.6)
    assert np.std(bursts.failures) > 1.3 * np.std(same.failures)


def test_recorded_failures_come_when_they_were_recorded() -> None:
    """One an hour, on the hour: a run of 33 h and something has 33 or 34 of them."""
    runs = simulated({}, 200, recorded=np.arange(0.0, 40.0) * 3600.0)
    assert np.all(np.abs(runs.failures - runs.spent.wall / 3600.0) <= 1.0)
    with pytest.raises(Exception, match="two failure times"):
        simulated({}, 5, recorded=np.array([3.0]))


def test_nothing_saved_nothing_loaded() -> None:
    figures = {"policy.interval": 9000.0, "run.work": 5000.0}
    runs, o = simulated(figures), outcome(world(figures))
    assert off(runs.spent.wall, one(o.wall)) < 3.0
    assert np.all(runs.spent.load == 0)
