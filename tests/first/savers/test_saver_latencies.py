"""Quantiles of any number of requests in little memory, beside the exact ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ckptcost.first.savers.base import NONE, Tally
from ckptcost.first.savers.crew import covered_ns


def tally_of(values):
    tally = Tally()
    for value in values:
        tally.add(float(value))
    return tally


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: rng.lognormal(-6, 1.5, n),
        lambda rng, n: rng.uniform(1e-4, 2e-4, n),
        lambda rng, n: np.full(n, 0.003),
        lambda rng, n: rng.exponential(1e-5, n),
    ],
)
@pytest.mark.parametrize("count", [1, 2, 10, 20_000])
def test_beside_the_exact_ones(draw, count):
    values = draw(np.random.default_rng(3), count)
    found = tally_of(values).latencies()
    assert found.count == count
    assert found.mean == pytest.approx(values.mean(), rel=1e-9)
    assert found.max == values.max()
    for share, quantile in ((0.5, found.p50), (0.95, found.p95), (0.99, found.p99)):
        exact = np.quantile(values, share, method="inverted_cdf")
        assert quantile == pytest.approx(max(exact, 1e-7), rel=0.0101)


def test_threads_that_join_are_as_one():
    values = np.random.default_rng(4).exponential(0.01, 3000)
    whole, parts = tally_of(values), Tally()
    for at in range(0, 3000, 700):
        parts.join(tally_of(values[at : at + 700]))
    got, want = parts.latencies(), whole.latencies()
    assert (got.count, got.p50, got.p95, got.p99, got.max) == (
        want.count,
        want.p50,
        want.p95,
        want.p99,
        want.max,
    )
    assert got.mean == pytest.approx(want.mean)


def test_memory_is_bounded():
    tally = tally_of(np.random.default_rng(5).lognormal(-5, 5, 50_000))
    assert len(tally.bins) < 2000


def test_none_is_not_zero():
    found = Tally().latencies()
    assert found is NONE
    assert found.count == 0
    assert math.isnan(found.p50)
    assert math.isnan(Tally().quantile(0.5))


def test_of_no_time_and_of_ages():
    found = tally_of([0.0, 1e9]).latencies()
    assert found.max == 1e9
    assert found.p50 <= 1.02e-7


def test_time_that_is_covered():
    assert covered_ns([]) == 0
    assert covered_ns([(0, 10), (2, 5), (10, 12), (20, 30), (25, 26)]) == 22
