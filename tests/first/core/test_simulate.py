"""Simulated runs against the closed form, against distributions that are known, and against what a
bootstrap says of their errors."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sample_scenarios import ASYNC, BASE, TWO_TIERS, TWO_TIERS_ASYNC, changed
from scipy.stats import chisquare, nbinom, weibull_min

from ckptcost.first.core import streams
from ckptcost.first.core.domain import Scenario
from ckptcost.first.core.interruptions import Renewal
from ckptcost.first.core.job import Runs
from ckptcost.first.core.outcome import evaluate, plan_of
from ckptcost.first.core.simulate import (
    bills_of,
    job_of,
    kinds_of,
    ratio_summary,
    spent_of,
    summary_of,
    third_of,
)
from ckptcost.first.core.walk import walk

RUNS = 64
TIMES = (
    "stall_s",
    "slowed_s",
    "redone_s",
    "detect_s",
    "reschedule_s",
    "init_s",
    "load_s",
    "warmup_s",
    "wall_s",
    "saves",
    "second_saves",
)


def simulated(
    s: Scenario, interval_s: float, runs: int = RUNS, seed: int = 1
) -> tuple[Runs, dict[str, Any]]:
    """Runs of a scenario with exponential failures, and what they spend."""
    plan, ids = plan_of(s), np.arange(runs)
    job = job_of(s, plan, interval_s, kinds_of(s, plan))
    process = Renewal(streams.keys_of(seed, streams.GAPS, ids), 1.0 / plan.failures_per_s)
    found = walk(job, process, streams.keys_of(seed, streams.KINDS, ids))
    spent = spent_of(s, plan, job, found)
    bill = bills_of(s, plan, spent)
    values = {name: getattr(spent, name) for name in TIMES} | {"failures": found.interruptions}
    return found, values | {
        name: bill.total(name) for name in ("energy_j", "cost_usd", "location_kgco2e", "gpu_s")
    }


def expected(s: Scenario) -> dict[str, float]:
    outcome = evaluate(s)
    values = {name: getattr(outcome.spent, name) for name in TIMES} | {"failures": outcome.failures}
    values |= {
        name: outcome.run.total(name)
        for name in ("energy_j", "cost_usd", "location_kgco2e", "gpu_s")
    }
    return {name: float(value) for name, value in values.items()}


def scenario_like(base: Scenario, seed: int) -> Scenario:
    """A random scenario of one shape that saves whole intervals and meets some 200 failures a
    run."""
    u = iter(streams.uniforms(streams.keys_of(seed, 99, np.arange(16)), 0).tolist())
    mean_s = 10 ** (3.3 + 1.5 * next(u))
    every = int(base.policy.second_every)
    interval_s = mean_s * 10 ** (-1.5 + 1.2 * next(u)) / every
    segments = round(200 * mean_s / interval_s / 12) * 12  # whole periods
    return changed(
        base,
        policy__every=interval_s,
        policy__second_every=float(every),
        work_s=segments * interval_s,
        failures__failures_per_node_s=0.0,
        failures__failures_per_s=1 / mean_s,
        failures__node_loss_fraction=0.1 + 0.8 * next(u),
        failures__detect_s=mean_s * 0.2 * next(u),
        failures__reschedule_s=mean_s * 0.2 * next(u),
        failures__init_s=mean_s * 0.1 * next(u),
        failures__warmup_s=mean_s * 0.1 * next(u),
        checkpoint__params=70e9 * (0.2 + 5 * next(u)),
        policy__slowdown_fraction=0.1 * next(u) if base.policy.mode == "async" else 0.0,
        policy__in_flight=4.0,
    )


SHAPES = {"sync": BASE, "async": ASYNC, "two tiers": TWO_TIERS, "two tiers, async": TWO_TIERS_ASYNC}


def slack_of(s: Scenario) -> float:
    """How far the closed form may be off, as a share, where saves drain."""
    plan = plan_of(s)
    if s.policy.mode == "sync":
        return 0.0
    if (
        plan.second
    ):  # right to first order in the lags, and every drain that a failure cut short is made again
        return float(plan.second.lag_s * plan.failures_per_s)
    # a run is over when its last save has been copied: what fails while that drains makes no save
    # again
    open_s = float(plan.saved.lag_s)
    return (
        float(plan.failures_per_s)
        * open_s
        * (1 + open_s / float(s.policy.every))
        * float(s.policy.every / s.work_s)
    )


def z_scores(shape: str, count: int = 20) -> dict[str, list[float]]:
    """By quantity: how many standard errors each random scenario's mean is off the closed form."""
    found: dict[str, list[float]] = {}
    for number in range(count):
        seed = 100 * list(SHAPES).index(shape) + 20 + number
        s = scenario_like(SHAPES[shape], seed)
        model = expected(s)
        for name, found_values in simulated(s, float(s.policy.every), seed=seed)[1].items():
            values = np.broadcast_to(found_values, (RUNS,))
            error = values.std(ddof=1) / math.sqrt(RUNS)
            slack = slack_of(s) * model[name]
            off = values.mean() - model[name]
            off = math.copysign(max(abs(off) - slack, 0.0), off)
            if error > 1e-9 * max(model[name], 1e-12):
                found.setdefault(name, []).append(off / error)
            else:
                assert off == pytest.approx(0.0, abs=1e-6 * max(model[name], 1e-3)), name
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("shape", SHAPES)
def test_means_meet_the_closed_form(shape):
    """20 random scenarios each, within 3 standard errors.

    One of them may lie beyond by chance (the quantities of a scenario rise and fall together); a
    bias would move all 20.
    """
    scores = z_scores(shape)
    assert len(scores) >= 13
    for name, z in scores.items():
        assert np.sum(np.abs(z) > 3) <= 1, name
        assert np.abs(z).max() < 4, name
        assert abs(np.mean(z)) < 4 / math.sqrt(len(z)), name
        assert np.mean(np.square(z)) < 2.2, name


def bare(interval_s: float, mean_s: float, segments: int) -> Scenario:
    """Nothing but work, saves of no length and failures."""
    return replace(
        changed(
            BASE,
            policy__every=interval_s,
            work_s=segments * interval_s,
            failures__failures_per_node_s=0.0,
            failures__detect_s=0.0,
            failures__failures_per_s=1.0 / mean_s,
            failures__reschedule_s=0.0,
            failures__init_s=0.0,
            failures__warmup_s=0.0,
        ),
        tier=changed(BASE, tier__setup_s=0.0).tier,
        checkpoint=replace(BASE.checkpoint, params=1e-6, extra_bytes=0.0, files=0.0),
    )


def test_failures_of_n_segments_are_negative_binomial():
    """Without recovery each segment is tried until it is through: failures ~ NegBin(n,
    e^(-w/M))."""
    segments, runs = 5, 20_000
    found, _ = simulated(bare(40.0, 100.0, segments), 40.0, runs)
    law = nbinom(segments, math.exp(-0.4))
    assert found.interruptions.mean() == pytest.approx(
        law.mean(), abs=3 * law.std() / math.sqrt(runs)
    )
    assert found.interruptions.var() == pytest.approx(law.var(), rel=0.06)
    counts = np.bincount(found.interruptions.astype(int))
    top = int(np.flatnonzero(law.pmf(np.arange(len(counts))) * runs >= 10).max())
    seen = np.append(counts[:top], counts[top:].sum())
    assert (
        chisquare(seen, runs * np.append(law.pmf(np.arange(top)), law.sf(top - 1))).pvalue > 0.001
    )


def test_mean_and_variance_of_a_segment():
    """M = 100, w = 40, nothing else: mean (e^(lw)-1)/l = 49.18, variance (e^(2lw) - 1 - 2lw
    e^(lw))/l^2 = 320.8."""
    runs, segments = 20_000, 4
    found, _ = simulated(bare(40.0, 100.0, segments), 40.0, runs, seed=2)
    x = 0.4
    mean_s, variance = 100 * math.expm1(x), 1e4 * (math.exp(2 * x) - 1 - 2 * x * math.exp(x))
    assert (round(mean_s, 2), round(variance, 1)) == (49.18, 320.8 + 0.0)
    assert found.wall_s.mean() / segments == pytest.approx(
        mean_s, abs=3 * math.sqrt(variance / runs / segments)
    )
    assert found.wall_s.var() / segments == pytest.approx(variance, rel=0.06)


@pytest.mark.parametrize("shape", [0.5, 0.7, 1.5])
def test_weibull_gaps_without_recovery(shape):
    """Fresh at each failure: a failure is preceded by sum_k S(k w) whole segments."""
    mean_s, interval_s, runs, segments = 100.0, 40.0, 2000, 400
    scale_s = mean_s / math.gamma(1 + 1 / shape)
    s = bare(interval_s, mean_s, segments)
    ids = np.arange(runs)
    job = job_of(s, plan_of(s), interval_s, kinds_of(s, plan_of(s)))
    found = walk(
        job,
        Renewal(streams.keys_of(5, streams.GAPS, ids), mean_s, shape),
        streams.keys_of(5, streams.KINDS, ids),
    )
    wanted = weibull_min(shape, scale=scale_s).sf(interval_s * np.arange(1, 100_000)).sum()
    per_failure = segments * runs / found.interruptions.sum()
    error = found.interruptions.std() / found.interruptions.mean() / math.sqrt(runs)
    # the last stretch of a run ends with its work, not with a failure: less than two in `segments`
    assert per_failure == pytest.approx(wanted, rel=3 * error + 2 * wanted / segments)


def test_three_tiers_to_first_order():
    """Waste near sum of stalls per interval, l_i times half a period of the tier that it needs, and
    recovery."""
    third = replace(BASE.tier, write_bytes_per_s=10e9, read_bytes_per_s=10e9)
    s = replace(
        changed(
            TWO_TIERS,
            failures__failures_per_node_s=0.0,
            failures__failures_per_s=1 / 40_000.0,
            failures__second_loss_fraction=0.1,
            failures__node_loss_fraction=0.5,
            policy__second_every=4.0,
            policy__third_every=3.0,
            policy__every=400.0,
            work_s=12_000 * 400.0,
        ),
        third_tier=third,
    )
    plan, last = plan_of(s), third_of(s)
    assert last is not None
    assert plan.second is not None
    assert [(kind.name, round(kind.share, 9), kind.level) for kind in kinds_of(s, plan)] == [
        ("first tier survives", 0.5, 0),
        ("node lost", 0.4, 1),
        ("second tier lost", 0.1, 2),
    ]
    found, values = simulated(s, 400.0, runs=400)
    stalls_s = float(plan.saved.stall_s + plan.second.stall_s / 4 + last.stall_s / 12)
    assert values["stall_s"].mean() == pytest.approx(
        12_000 * stalls_s, rel=0.03
    )  # and some saves are made again
    lost_s = 200.0 * 0.5 + 800.0 * 0.4 + 2400.0 * 0.1
    per_failure = (values["redone_s"] / found.interruptions).mean()
    assert per_failure == pytest.approx(lost_s, rel=0.05)
    assert values["second_saves"].mean() == pytest.approx(3000, rel=0.03)
    assert found.third_saves.mean() == pytest.approx(1000, rel=0.04)


def test_goodput_is_all_work_over_all_time_and_its_error_that_of_a_bootstrap():
    rng = np.random.default_rng(3)
    wholes = rng.gamma(4.0, 25.0, 400)
    parts = wholes * rng.beta(8.0, 2.0, 400) * (1 + wholes / 400)
    found = ratio_summary(parts, wholes)
    assert found.mean == pytest.approx(parts.sum() / wholes.sum())
    again = rng.integers(0, 400, (4000, 400))
    assert found.error == pytest.approx(
        (parts[again].sum(axis=1) / wholes[again].sum(axis=1)).std(), rel=0.06
    )
    assert (found.p5, found.p50, found.p95) == tuple(np.quantile(parts / wholes, (0.05, 0.5, 0.95)))


def test_summary():
    found = summary_of(np.arange(101.0))
    assert found[2:] == (5.0, 50.0, 95.0, 0.0, 100.0)
    assert (found.mean, found.error) == (
        50.0,
        pytest.approx(np.std(np.arange(101.0), ddof=1) / math.sqrt(101)),
    )
    assert math.isnan(summary_of(np.array([3.0])).error)
    assert math.isnan(summary_of(np.array([3.0, math.nan])).mean)
    assert ratio_summary(np.array([3.0, 3.0]), np.array([4.0, 4.0])).error == 0.0


def test_states_and_bill_account_for_the_whole_run():
    for s in SHAPES.values():
        found, values = simulated(s, float(s.policy.every), runs=20)
        parts = sum(values[name] for name in TIMES[:8])
        assert parts + float(s.work_s) == pytest.approx(found.wall_s)
        assert found.finished.all()
        assert (found.kept_s == s.work_s).all()
        assert (values["redone_s"] >= -1e-6 * s.work_s).all()
        lost = (found.wall_s - float(s.work_s)) * s.cluster.gpus
        assert values["gpu_s"] == pytest.approx(lost)


@pytest.mark.parametrize("base", [TWO_TIERS, TWO_TIERS_ASYNC], ids=["sync", "async"])
def test_what_the_walk_is_told_and_the_bill_holds_tier_by_tier(base):
    """A save in an emergency lasts until it is safe, stall and drain; each tier keeps its own
    number of its own saves."""
    third = replace(BASE.tier, write_bytes_per_s=10e9, read_bytes_per_s=3e9)
    s = replace(
        changed(
            base,
            policy__second_every=4.0,
            policy__third_every=3.0,
            policy__keep_last=5.0,
            policy__second_keep_last=7.0,
            policy__third_keep_last=math.inf,
            policy__every=400.0,
            work_s=240 * 400.0,
        ),
        third_tier=third,
    )
    plan, last, runs = plan_of(s), third_of(s), np.arange(2)
    saves = (plan.saved, plan.second, last)
    job = job_of(s, plan, 400.0, kinds_of(s, plan))
    assert job.emergency_s == pytest.approx([save.stall_s + save.lag_s for save in saves])
    assert list(job.loads_s) == sorted(job.loads_s)
    found = walk(
        job,
        Renewal(streams.keys_of(1, streams.GAPS, runs), math.inf),
        streams.keys_of(1, streams.KINDS, runs),
    )
    spent = spent_of(s, plan, job, found)
    # from the i-th save to the next i of them are held, or as many as are kept
    for save, made, keep, held in (
        (saves[0], 240, 5, spent.held_bytes),
        (saves[1], 60, 7, spent.second_held_bytes),
        (saves[2], 20, 20, spent.third_held_bytes),
    ):
        assert held == pytest.approx(
            np.minimum(np.arange(1, made + 1), keep).mean() * save.stored_bytes
        )


@pytest.mark.parametrize("survives", ["process", "node", "site"])
def test_failures_that_need_the_second_tier_are_the_closed_forms(survives):
    """A first tier that outlives its node is never lost with one."""
    s = replace(TWO_TIERS, tier=replace(TWO_TIERS.tier, survives=survives))
    plan = plan_of(s)
    lost = sum(kind.share for kind in kinds_of(s, plan) if kind.level == 1)
    assert lost == pytest.approx(float(plan.lost_per_s / plan.failures_per_s))
    assert (lost > 0) == (survives == "process")


def test_a_small_scatter_has_an_error_and_rounding_has_none():
    values = np.array([100.0, 100.01, 99.99, 100.02])
    assert summary_of(values).error == pytest.approx(values.std(ddof=1) / 2)
    assert summary_of(np.array([100.0, 100.0 + 1.5e-14, 100.0])).error == 0.0
