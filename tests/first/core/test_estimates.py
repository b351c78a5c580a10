"""Intervals of means and medians, held against scipy and against many samples with a known
truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from ckptcost.first.core.estimates import Estimate, mean_of, median_of, straggler_of, student_t


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.975, 0.99])
def test_student_is_scipys(confidence):
    for freedom in [*range(1, 60), 99, 100, 1001, 5000]:
        assert student_t(freedom, confidence) == pytest.approx(
            stats.t.ppf((1 + confidence) / 2, freedom), rel=1e-9
        )


def test_no_freedom_has_no_quantile():
    with pytest.raises(ValueError, match="no interval"):
        student_t(0)


def test_a_mean_is_scipys():
    values = np.random.default_rng(3).lognormal(size=9)
    found = mean_of(values)
    low, high = stats.t.interval(0.95, 8, loc=values.mean(), scale=stats.sem(values))
    assert found[:4] == pytest.approx((values.mean(), low, high, stats.sem(values)), rel=1e-9)
    assert (found.n, found.why) == (9, "")


def test_a_mean_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(1)
    held = [
        (one := mean_of(sample)).low <= 7.0 <= one.high
        for sample in rng.normal(7.0, 2.0, (2000, 4))
    ]
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)


def test_one_round_has_no_interval_and_none_has_no_value():
    assert mean_of([3.0]) == Estimate(3.0, None, None, None, 1, "ONE_ROUND")
    none = mean_of([])
    assert (math.isnan(none.value), none.low, none.why, none.known) == (
        True,
        None,
        "NO_ROUNDS",
        False,
    )
    assert not median_of([]).known


def test_a_round_without_a_value_is_refused():
    with pytest.raises(ValueError, match="leave it out"):
        mean_of([1.0, math.nan])


@pytest.mark.parametrize("n", [6, 7, 8, 20, 55, 200, 999, 1001, 4000])
@pytest.mark.parametrize("confidence", [0.95, 0.975])
def test_a_medians_ranks_are_the_binomials(n, confidence):
    found = median_of(np.arange(float(n)), confidence)
    if found.low is None:
        assert 2 * stats.binom.cdf(0, n, 0.5) > 1 - confidence
        return
    rank = int(found.low)
    assert found.high == n - 1 - rank
    misses = 2 * stats.binom.cdf([rank, rank + (1 if n <= 1000 else 2)], n, 0.5)
    assert misses[0] <= (1 - confidence) * (1.0 if n <= 1000 else 1.05)
    assert misses[1] > 1 - confidence  # one rank further in would hold it too seldom


def test_a_median_holds_the_truth_whatever_the_law():
    rng = np.random.default_rng(2)
    for draw, truth in (
        (rng.exponential, math.log(2)),
        (lambda size: rng.standard_cauchy(size) + 5.0, 5.0),
    ):
        held = [
            (one := median_of(sample)).low <= truth <= one.high for sample in draw(size=(2000, 11))
        ]
        assert 0.94 < np.mean(held) < 0.99


def test_five_values_set_no_interval_for_a_median():
    found = median_of([1.0, 2.0, 3.0, 4.0, 100.0])
    assert (found.value, found.low, found.why) == (3.0, None, "FEW_ROUNDS")


def test_room_for_the_meter():
    assert Estimate(5.0, 4.0, 6.0).wider(4.5, 7.0)[:3] == (5.0, 4.0, 7.0)
    assert Estimate(5.0, 4.0, 6.0).wider(-math.inf, 7.0)[:3] == (5.0, 4.0, 6.0)
    assert Estimate(5.0).wider(4.0, 6.0).low is None


def test_straggler():
    found = straggler_of([[1.0, 1.0, 4.0], [2.0, 2.0, 2.0], [9.0]])
    assert (found.value, found.n) == (1.5, 2)
    assert straggler_of([[9.0], [8.0]]).why == "ONE_RANK"
    assert straggler_of([]).why == "NO_ROUNDS"
