"""The long run under any law: scipy, the exponential's closed form, and simulated runs."""

from __future__ import annotations

import numpy as np
import pytest
from sample_scenarios import ASYNC, BASE, changed
from scipy.integrate import quad
from scipy.stats import weibull_min

from ckptcost.first.core import streams
from ckptcost.first.core.failures import Recovery, goodput, segment
from ckptcost.first.core.interruptions import Renewal
from ckptcost.first.core.outcome import evaluate
from ckptcost.first.core.renewal import (
    fresh_segment_s,
    long_run_goodput,
    survival,
    usable_saves,
    weibull_scale_s,
)
from ckptcost.first.core.simulate import job_of, kinds_of
from ckptcost.first.core.walk import walk

BACK = Recovery(60.0, 120.0, 90.0, 30.0, 45.0)


@pytest.mark.parametrize("shape", [0.3, 0.7, 1.0, 1.5, 4.0])
def test_the_law_is_scipys(shape):
    law = weibull_min(shape, scale=weibull_scale_s(500.0, shape))
    assert law.mean() == pytest.approx(500.0)
    times = np.geomspace(1e-3, 1e4, 30)
    assert survival(times, 500.0, shape) == pytest.approx(law.sf(times), rel=1e-12)
    brute = float(law.sf(90.0 + 40.0 * np.arange(100_000 if shape < 0.5 else 4000)).sum())
    assert usable_saves(90.0, 40.0, 500.0, shape) == pytest.approx(brute, rel=1e-9)


@pytest.mark.parametrize("shape", [0.5, 0.7, 1.0, 1.5, 4.0])
def test_a_fresh_segment_by_quadrature(shape):
    law = weibull_min(shape, scale=weibull_scale_s(500.0, shape))
    for length in (1.0, 40.0, 800.0):
        area = quad(law.sf, 0.0, length, limit=400, epsabs=0.0, epsrel=1e-11)[0]
        exact = (area + law.cdf(length) * 70.0) / law.sf(length)
        assert fresh_segment_s(length, 70.0, 500.0, shape) == pytest.approx(exact, rel=1e-7)
    if shape == 1.0:
        assert fresh_segment_s(40.0, 70.0, 500.0, 1.0) == pytest.approx(
            (500.0 + 70.0) * np.expm1(40.0 / 500.0), rel=1e-12
        )


@pytest.mark.parametrize(("lag", "blocked"), [(0.0, 0.0), (200.0, 0.0), (900.0, 595.0)])
def test_shape_1_is_the_exponential(lag, blocked):
    states = segment(300.0, 5.0 + blocked, lag, BACK, 1 / 7000.0, blocked)
    exact = goodput(300.0, states)
    assert long_run_goodput(
        300.0, 0.0, 5.0 + blocked, blocked, lag, BACK, 7000.0, 1.0
    ) == pytest.approx(exact, rel=1e-12)


def test_saves_so_close_that_they_are_an_integral():
    near = usable_saves(50.0, 1e-4, 500.0, 0.7)
    assert near == pytest.approx(usable_saves(50.0, 1e-2, 500.0, 0.7) * 100.0, rel=1e-4)


@pytest.mark.parametrize("shape", [0.6, 0.8, 1.6])
@pytest.mark.parametrize(
    "scenario",
    [
        BASE,
        changed(ASYNC, policy__in_flight=1.0, policy__every=60.0),
        changed(ASYNC, policy__in_flight=3.0, policy__every=60.0, tier__write_bytes_per_s=3e9),
    ],
    ids=["sync", "async, blocked", "async, three in flight, blocked"],
)
def test_simulated_runs_meet_it(shape, scenario):
    s = changed(scenario, work_s=scenario.work_s * 4)
    outcome = evaluate(s)
    plan = outcome.plan
    mean_s = float(1.0 / plan.failures_per_s)
    job = job_of(s, plan, outcome.interval_s, kinds_of(s, plan))
    ids = np.arange(300)
    runs = walk(
        job,
        Renewal(streams.keys_of(3, streams.GAPS, ids), mean_s, shape),
        streams.keys_of(3, streams.KINDS, ids),
    )
    r = job.rhythm
    exact = long_run_goodput(
        float(r.kept_s),
        float(r.drag_s),
        float(r.stall_s + r.wait_s / r.in_flight),
        float(r.wait_s / r.in_flight),
        float(plan.saved.lag_s),
        plan.recovery,
        mean_s,
        shape,
        float(r.in_flight),
    )
    ratio = runs.kept_s.sum() / runs.wall_s.sum()
    error = (
        np.std(runs.kept_s - ratio * runs.wall_s, ddof=1) / np.sqrt(len(ids)) / runs.wall_s.mean()
    )
    edge = (
        2.0 * mean_s / runs.wall_s.mean() * abs(1.0 - exact)
    )  # a run ends in the middle of a gap, and begins without a loading
    assert abs(ratio - exact) < 3 * error + edge
    if scenario is BASE:
        assert abs(exact - float(outcome.goodput)) > 6 * error  # the law matters
