"""The mean time between failures, held against scipy's chi-squared; the shape, against scipy's fit,
the likelihood itself, and samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from ckptcost.first.core.estimates import Estimate
from ckptcost.first.core.mtbf import FEW, mtbf_of, poisson_interval, shape_of


@pytest.mark.parametrize("count", [*range(30), 99, 100, 419, 1_000, 12_345, 1_000_000, 30_000_000])
def test_garwood_is_the_chi_squared(count):
    low, high = poisson_interval(count)
    assert high == pytest.approx(stats.chi2.ppf(0.975, 2 * count + 2) / 2, rel=1e-9)
    assert low == pytest.approx(stats.chi2.ppf(0.025, 2 * count) / 2 if count else 0.0, rel=1e-9)


def test_the_mean_is_the_time_over_the_count():
    found = mtbf_of(10, 1000.0)
    assert found[:3] == pytest.approx((100.0, 1000.0 / 18.3904, 1000.0 / 4.7954), rel=1e-5)
    assert (found.n, found.why) == (10, "")


def test_no_failure_has_a_lower_end_and_no_upper_one():
    found = mtbf_of(0, 3600.0)
    assert found == Estimate(
        math.inf, pytest.approx(3600.0 / -math.log(0.025)), math.inf, None, 0, "NO_FAILURES"
    )


@pytest.mark.parametrize("exposure_s", [0.0, -1.0, math.nan, math.inf])
def test_no_time_says_nothing(exposure_s):
    found = mtbf_of(3, exposure_s)
    assert (math.isnan(found.value), found.low, found.why, found.n) == (
        True,
        None,
        "NO_EXPOSURE",
        3,
    )


def test_a_negative_count_is_refused():
    with pytest.raises(ValueError, match="count"):
        mtbf_of(-1, 10.0)


@pytest.mark.parametrize("mean", [0.4, 3.0, 50.0])
def test_the_interval_holds_the_truth_at_least_as_often_as_it_says(mean):
    """Exact: the chance is summed, not drawn. Counts are whole, so it is never quite 95 %."""
    counts = np.arange(int(stats.poisson.ppf(1 - 1e-12, mean)) + 1)
    found, chance = [mtbf_of(int(count), 1.0) for count in counts], stats.poisson.pmf(counts, mean)
    too_long, too_short = (
        chance[[off(one) for one in found]].sum()
        for off in (lambda one: one.low * mean > 1, lambda one: one.high * mean < 1)
    )
    assert max(too_long, too_short) <= 0.025
    assert too_long + too_short > (0.0 if mean < 1 else 0.01)


@pytest.mark.parametrize("shape", [0.4, 0.7, 1.0, 2.5, 12.0])
@pytest.mark.parametrize("n", [2, 6, 60])
def test_the_shape_is_scipys(shape, n):
    gaps_s = 40_000.0 * np.random.default_rng(n).weibull(shape, n)
    fitted, _, _ = stats.weibull_min.fit(gaps_s / gaps_s.mean(), floc=0.0)
    assert shape_of(gaps_s).value == pytest.approx(fitted, rel=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_with_open_gaps_it_is_where_the_likelihood_is_highest_its_interval_where_it_fell(seed):
    """Both parameters by brute force, from densities and survivals alone."""
    rng = np.random.default_rng(seed)
    drawn_s, until_s = 900.0 * rng.weibull(0.8, 40), rng.uniform(100.0, 2500.0, 40)
    gaps_s, open_s = drawn_s[drawn_s <= until_s], until_s[drawn_s > until_s]
    assert len(open_s) > 3

    def loss(log_scale, log_shape):
        law = {"c": math.exp(log_shape), "scale": math.exp(log_scale)}
        return (
            -stats.weibull_min.logpdf(gaps_s, **law).sum()
            - stats.weibull_min.logsf(open_s, **law).sum()
        )

    def best_scale(log_shape):
        return optimize.minimize_scalar(loss, (6.0, 7.0), args=(log_shape,), tol=1e-10).fun

    found = shape_of(gaps_s, open_s)
    best = optimize.minimize_scalar(best_scale, (-0.5, 0.5), tol=1e-10)
    assert found.value == pytest.approx(math.exp(best.x), rel=1e-6)

    def over_scales(log_shape):
        """The likelihood, integrated over the logarithm of the scale."""
        return -math.log(
            integrate.quad(
                lambda log_scale: math.exp(best.fun - loss(log_scale, log_shape)),
                3.0,
                12.0,
                epsabs=0,
                points=[6.8],
            )[0]
        )

    most = optimize.minimize_scalar(over_scales, (-0.5, 0.5), tol=1e-8)
    for end in (found.low, found.high):
        assert 2 * (over_scales(math.log(end)) - most.fun) == pytest.approx(
            stats.chi2.ppf(0.95, 1), rel=1e-5
        )
    assert found.low < found.value < found.high


@pytest.mark.parametrize(
    ("shape", "n", "close"), [(1.0, FEW, 0.03), (1.0, 5, 0.02), (1.0, 40, 0.02), (0.7, 12, 0.02)]
)
def test_the_interval_holds_the_shape_about_as_often_as_it_says(shape, n, close):
    rng = np.random.default_rng(n)
    found = [shape_of(gaps_s) for gaps_s in rng.weibull(shape, (800, n))]
    assert np.mean([one.low <= shape <= one.high for one in found]) == pytest.approx(
        0.95, abs=close
    )


def test_an_even_rate_seen_for_a_limited_time_is_found_even():
    """Nodes under observation for a year, fail and come back; the last gap of each is open. Without
    those the gaps look too short."""
    rng = np.random.default_rng(5)
    held = []
    for _ in range(400):
        ends_s = np.cumsum(rng.exponential(100.0, (6, 40)), axis=1)
        gaps_s = np.diff(ends_s, axis=1, prepend=0.0)[ends_s < 365.0]
        open_s = 365.0 - np.max(np.where(ends_s < 365.0, ends_s, 0.0), axis=1)
        found = shape_of(gaps_s, open_s)
        held.append(found.low is None or found.low <= 1.0 <= found.high)
    assert np.mean(held) == pytest.approx(0.95, abs=0.025)


def test_the_unit_of_time_does_not_matter():
    gaps_s = 3600.0 * np.random.default_rng(0).weibull(1.4, 30)
    hours, years = shape_of(gaps_s / 3600.0, [2.0]), shape_of(gaps_s * 1e12, [7200.0 * 1e12])
    assert hours[:3] == pytest.approx(years[:3], rel=1e-9)


def test_failures_that_come_in_turn_or_in_bursts():
    even = shape_of([100.0, 101.0, 99.0, 100.5, 99.5, 100.2])
    assert even.low > 30
    burst = shape_of([1.0, 2.0, 1.5, 0.5, 9000.0, 1.2, 0.7, 7000.0, 1.1, 0.9])
    assert burst.high < 0.8


def test_too_few_say_so():
    assert shape_of([]).why == shape_of([0.0]).why == "NO_FAILURES"
    assert shape_of([], [100.0, 5.0]).why == "NO_FAILURES"
    assert shape_of([5.0], [100.0]).why == "ONE_FAILURE"
    assert shape_of([100.0, 100.0, 100.0], [50.0]).why == "NO_SPREAD"
    few = shape_of([5.0, 9.0], [12.0, 30.0])
    assert (few.low, few.high, few.n, few.why) == (None, None, FEW - 1, "FEW_FAILURES")
    assert few.known
    assert shape_of([5.0, 9.0], 100.0).known, "one open gap needs no list"


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_what_is_no_time_is_refused(wrong):
    with pytest.raises(ValueError, match="not negative"):
        shape_of([1.0, 2.0, wrong])
    with pytest.raises(ValueError, match="not negative"):
        shape_of([1.0, 2.0], [wrong])


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(1e-6, 1e9), min_size=2, max_size=20),
    st.lists(st.floats(0.0, 1e10), max_size=5),
)
def test_the_value_is_inside_whatever_the_gaps(gaps_s, open_s):
    found = shape_of(gaps_s, open_s)
    if found.why == "NO_SPREAD":
        assert np.ptp(gaps_s) < 1e-5 * max(gaps_s)
    elif len(gaps_s) >= FEW:
        assert 0 < found.low <= found.value <= found.high < math.inf
