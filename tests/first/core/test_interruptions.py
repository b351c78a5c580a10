"""What interrupts: gaps against scipy, a replayed record by hand, a platform of nodes against its
rate, inputs against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import gammainc
from scipy.stats import beta, kstest, weibull_min

from ckptcost.first.core import streams
from ckptcost.first.core.draws import pert, spread_over, triangle
from ckptcost.first.core.interruptions import (
    InterruptionKind,
    Platform,
    Renewal,
    TraceReplay,
    platform_rate_per_s,
    platform_times_s,
    residual_life_s,
)
from ckptcost.first.core.job import Job, JobStep
from ckptcost.first.core.rhythm import Rhythm
from ckptcost.first.core.walk import walk

IDS = np.arange(4000)
KEYS = streams.keys_of(1, streams.GAPS, IDS)


@pytest.mark.parametrize("shape", [0.5, 0.7, 1.0, 2.0])
def test_renewal_gaps_follow_their_law(shape):
    gaps_s, kind = Renewal(KEYS, 500.0, shape).next_s(np.zeros(len(IDS)), 3)
    assert kind is None
    assert (
        kstest(gaps_s, weibull_min(shape, scale=500.0 / math.gamma(1 + 1 / shape)).cdf).pvalue
        > 1e-3
    )


def test_weibull_of_shape_1_is_the_exponential_to_the_last_bit():
    weibull, exponential = Renewal(KEYS, 500.0, 1.0), Renewal(KEYS, 500.0)
    assert (
        weibull.next_s(np.zeros(1), 0)[0].tobytes()
        == exponential.next_s(np.zeros(1), 0)[0].tobytes()
    )


def test_without_failures_the_next_one_never_comes():
    assert np.isinf(Renewal(KEYS, math.inf).next_s(np.zeros(len(IDS)), 0)[0]).all()


@pytest.mark.parametrize("shape", [0.1, 0.3, 0.7, 1.0, 3.0, 20.0])
def test_residual_life(shape):
    """A node of unknown age: P(it fails within t) = integral of survival / mean = P(1/k,
    (t/scale)^k)."""
    shares, times_s = residual_life_s(1000.0, shape)
    scale_s = 1000.0 / math.gamma(1 + 1 / shape)
    assert shares == pytest.approx(gammainc(1 / shape, (times_s / scale_s) ** shape), abs=2e-4)
    assert shares[-1] == pytest.approx(1.0, abs=2e-4)
    assert (np.diff(shares) >= 0).all()


@pytest.mark.parametrize("shape", [0.5, 0.7, 1.0, 2.0, 5.0])
def test_a_platform_fails_at_the_same_rate_from_the_first_hour_on(shape):
    """Nodes of all ages: the superposition is stationary, nodes/mean, in every stretch of time."""
    nodes, mean_s, horizon_s, runs = 200, 1e6, 20_000.0, 400
    times_s = platform_times_s(
        streams.keys_of(2, streams.NODES, np.arange(runs)), nodes, mean_s, shape, horizon_s
    )
    wanted = platform_rate_per_s(nodes, mean_s) * horizon_s / 4 * runs
    for start_s in np.arange(4) * horizon_s / 4:
        count = ((times_s > start_s) & (times_s <= start_s + horizon_s / 4)).sum()
        # failures cluster where k < 1: young nodes fail again
        assert count == pytest.approx(wanted, abs=4.5 * math.sqrt(wanted * (2 if shape < 1 else 1)))
    assert (times_s[:, 1:] >= times_s[:, :-1]).all()
    assert np.isinf(times_s[:, -1]).all()


def test_a_platform_of_memoryless_nodes_is_poisson():
    times_s = platform_times_s(
        streams.keys_of(3, streams.NODES, np.arange(300)), 100, 1e6, 1.0, 1e5
    )
    assert (
        kstest(
            times_s[:, 0][np.isfinite(times_s[:, 0])],
            lambda t: -np.expm1(-t / 1e4) / -np.expm1(-10),
        ).pvalue
        > 1e-3
    )
    gaps_s = np.diff(
        np.concatenate([np.append(0.0, row[np.isfinite(row)]) for row in times_s[:50]])
    )
    assert gaps_s[gaps_s > 0].mean() == pytest.approx(1e4, rel=0.1)


def test_a_longer_horizon_only_adds_to_a_platform():
    keys = streams.keys_of(4, streams.NODES, np.arange(3))
    near, far = (platform_times_s(keys, 50, 1e5, 0.7, horizon_s) for horizon_s in (1e4, 5e4))
    for short, long in zip(near, far, strict=True):
        assert short[np.isfinite(short)].tolist() == long[long <= 1e4].tolist()


def test_each_run_of_a_platform_may_have_its_own_mean():
    keys = streams.keys_of(4, streams.NODES, np.arange(3))
    own = platform_times_s(keys, 50, np.array([1e5, 2e5, 3e5]), 0.7, 1e4)
    alone = platform_times_s(keys[1:2], 50, 2e5, 0.7, 1e4)[0]
    assert own[1][np.isfinite(own[1])].tolist() == alone[np.isfinite(alone)].tolist()


PLAIN = Rhythm(90.0, 0.0, 10.0, 0.0, 0, 0.0, 0, 0.0, (0.0,))


def steps_of(
    process: TraceReplay | Platform, detect_s: float = 5.0, work_s: float = 450.0
) -> list[JobStep]:
    line: list[JobStep] = []
    walk(
        Job(
            work_s,
            PLAIN,
            (InterruptionKind("failure", 1.0, 0, detect_s, 0.0, 2.0, 1.0),),
            (3.0,),
            (10.0,),
        ),
        process,
        np.zeros(1, np.uint64),
        None,
        line,
    )
    return line


def test_a_replayed_record_by_hand():
    """Failures at 150, 152 (while it is down), 158 (while it loads) and 320 s; 90 s of work and 10
    s of saving at a time."""
    line = steps_of(TraceReplay(np.array([150.0, 152.0, 158.0, 320.0]), None, 1e6, np.zeros(1)))
    assert [step.start_s for step in line] == pytest.approx([0.0, 155.0, 163.0, 325.0])
    assert [step.trained_s for step in line] == pytest.approx(
        [90 + 50, 0, 90 + 51, 270.0]
    )  # 169 to 320 s: a save at 269
    assert [step.stall_s for step in line] == pytest.approx([10, 0, 10, 30])
    assert [step.lost_s for step in line] == pytest.approx([50, 0, 51, 0])
    for name, seconds in (
        ("init_s", [0, 2, 2, 2]),
        ("load_s", [0, 1, 3, 3]),
        ("warmup_s", [0, 0, 1, 1]),
    ):
        assert [getattr(step, name) for step in line] == pytest.approx(seconds)


@pytest.mark.parametrize("kind", ["replay", "platform"])
def test_an_instant_interrupts_once(kind):
    """Also where the job is up again at once: the clock is a sum, and its last bits must not find
    the same instant again."""
    instants = np.cumsum(np.random.default_rng(8).uniform(3.0, 9.0, 3000)) / 3.0
    process: TraceReplay | Platform = (
        TraceReplay(instants, None, 1e9, np.zeros(1))
        if kind == "replay"
        else Platform(np.append(instants, np.inf)[None], 1e9)
    )
    line = steps_of(process, detect_s=0.0, work_s=1e4)
    ends = np.array(
        [
            step.start_s + step.init_s + step.load_s + step.warmup_s + step.trained_s + step.stall_s
            for step in line
        ]
    )
    assert len(line) == len(instants) + 1
    assert ends[:-1] == pytest.approx(instants)


def test_other_runs_begin_elsewhere_and_keep_the_rate():
    times_s = np.sort(np.random.default_rng(1).uniform(0, 1e4, 40))
    offsets_s = np.array([0.0, 2500.0, 9999.0])
    process, clock_s, count = TraceReplay(times_s, None, 1e4, offsets_s), np.zeros(3), np.zeros(3)
    first_s = process.next_s(clock_s, 0)[0]
    assert first_s == pytest.approx(
        [times_s[0], times_s[times_s > 2500.0][0] - 2500.0, times_s[0] + 1.0]
    )
    for event in range(4000):
        gap_s, _ = process.next_s(clock_s, event)
        clock_s, count = clock_s + gap_s, count + 1
    assert count / clock_s == pytest.approx(np.full(3, 40 / 1e4), rel=1e-3)  # a hundred laps


def test_a_record_tells_its_kinds():
    process = TraceReplay(np.array([10.0, 20.0, 30.0]), np.array([2, 0, 1]), 40.0, np.zeros(1))
    seen = [int(process.next_s(np.array([at_s]), 0)[1][0]) for at_s in (0.0, 10.0, 25.0, 35.0)]  # type: ignore[index]
    assert seen == [2, 0, 1, 2]


SHARES = (np.arange(999) + 0.5) / 999


@pytest.mark.parametrize("mode", [0.0, 0.1, 1.0, 2.9, 3.0])
def test_pert_is_its_beta(mode):
    a = 4 * mode / 3
    assert pert(0.0, mode, 3.0, SHARES) == pytest.approx(
        beta(1 + a, 5 - a, scale=3.0).ppf(SHARES), abs=1e-4
    )


def test_uniform_is_even_and_degenerate_ranges_are_points():
    assert spread_over("uniform", 2.0, 2.5, 4.0, SHARES) == pytest.approx(
        2.0 + 2.0 * SHARES, rel=1e-15
    )
    for shape in ("uniform", "pert", "triangle"):
        assert (spread_over(shape, 0.7, 0.7, 0.7, SHARES) == 0.7).all()
    assert spread_over("triangle", 1.0, 2.0, 4.0, np.array([0.5])) == pytest.approx([2.0])
    assert (triangle(1.0, 1.0, 1.0, SHARES) == 1.0).all()


def test_no_life_of_a_node_is_told_by_its_last():
    """Each generation draws anew: the gaps of one node are as unrelated as those of two."""
    keys = streams.keys_of(1, streams.NODES, np.arange(400))
    gaps = np.diff(platform_times_s(keys, 1, 1.0, 1.0, 60.0)[:, :12], axis=1)
    assert np.isfinite(gaps).all()
    assert len(np.unique(gaps)) == gaps.size
    related = np.corrcoef(gaps.T) - np.eye(gaps.shape[1])
    assert abs(related).max() < 5 / np.sqrt(400)


def test_the_runs_that_go_on_are_interrupted_as_before():
    ids, going = np.arange(6), np.array([False, True, True, False, False, True])
    keys, clock_s = streams.keys_of(3, streams.GAPS, ids), np.linspace(0.0, 50.0, 6)
    for process in (
        Renewal(keys, 10.0, 0.7),
        Renewal(keys, np.arange(1.0, 7.0), 0.7),
        TraceReplay(
            np.array([2.0, 9.0, 30.0]), np.array([0, 1, 0]), 40.0, np.linspace(0.0, 39.0, 6)
        ),
        Platform(platform_times_s(keys, 5, 20.0, 0.7, 200.0), 200.0),
    ):
        gap_s, kind = process.next_s(clock_s, 2)
        kept_s, kept_kind = process.keep(going).next_s(clock_s[going], 2)
        assert np.array_equal(kept_s, gap_s[going]), process
        assert kind is None or np.array_equal(kept_kind, kind[going])
