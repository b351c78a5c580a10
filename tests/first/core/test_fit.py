"""Rates from durations: planted truths come back, and intervals hold them as often as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from ckptcost.first.core.fit import fit_power, fit_times, joules_per_byte

SIZES = np.array([1e9, 2e9, 4e9, 8e9, 16e9])
EVEN = np.linspace(1e9, 10e9, 10)
FILES = np.array([5.0, 90.0, 30.0, 70.0, 10.0, 60.0, 20.0, 80.0, 40.0, 50.0])


@pytest.mark.parametrize("rate", [2e8, 3.3e10, 9.5e11])
@pytest.mark.parametrize("fixed_s", [0.0, 0.02, 4.0])
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6])
def test_a_planted_truth_comes_back(rate, fixed_s, scale):
    sizes = SIZES * scale
    found = fit_times(sizes, fixed_s + sizes / rate)
    assert found.rate_bytes_per_s.value == pytest.approx(rate, rel=1e-6)
    assert found.fixed_s.value == pytest.approx(fixed_s, abs=1e-6 * sizes[-1] / rate)
    assert (found.n, found.why, found.per_file_s.why) == (5, "", "FILES_UNKNOWN")
    assert max(map(abs, found.residuals_s)) < 1e-9 * sizes[-1] / rate


def test_a_planted_time_per_file_comes_back():
    found = fit_times(EVEN, 2.0 + 0.02 * FILES + EVEN / 5e9, FILES)
    assert found.rate_bytes_per_s.value == pytest.approx(5e9, rel=1e-6)
    assert (found.fixed_s.value, found.per_file_s.value) == pytest.approx((2.0, 0.02), rel=1e-6)


def test_value_and_error_are_linregress_s():
    seconds = 3.0 + SIZES / 1e9 + np.random.default_rng(5).normal(0.0, 0.3, 5)
    found, oracle = fit_times(SIZES, seconds), stats.linregress(SIZES, seconds)
    assert found.rate_bytes_per_s.value == pytest.approx(1 / oracle.slope, rel=1e-9)
    assert found.rate_bytes_per_s.stderr == pytest.approx(oracle.stderr / oracle.slope**2, rel=1e-9)
    assert found.fixed_s[::3] == pytest.approx(
        (oracle.intercept, oracle.intercept_stderr), rel=1e-9
    )
    assert found.residuals_s == pytest.approx(seconds - oracle.intercept - oracle.slope * SIZES)
    alone = (
        stats.t.ppf(0.975, 3) * oracle.stderr
    )  # the interval never is narrower than that of scatter that is alike
    assert found.rate_bytes_per_s.low <= 1 / (oracle.slope + alone)
    assert found.rate_bytes_per_s.high >= 1 / (oracle.slope - alone)


def test_errors_with_files_are_those_of_ordinary_least_squares():
    seconds = 2.0 + 0.02 * FILES + EVEN / 5e9 + np.random.default_rng(6).normal(0.0, 0.1, 10)
    found = fit_times(EVEN, seconds, FILES)
    model = optimize.curve_fit(
        lambda x, a, b, c: a + b * x[0] / 1e9 + c * x[1], (EVEN, FILES), seconds
    )
    errors = np.sqrt(np.diag(model[1]))
    assert found.fixed_s[::3] == pytest.approx((model[0][0], errors[0]), rel=1e-5)
    assert found.per_file_s[::3] == pytest.approx((model[0][2], errors[2]), rel=1e-5)


def held(rate, fixed_s, sizes, noise, in_proportion=False, files=None, per_file_s=0.0, draws=2000):
    """How often of the fits that have an interval it holds the truth: rate, fixed, per file."""
    rng = np.random.default_rng(1)
    exact = fixed_s + sizes / rate + (0.0 if files is None else per_file_s * files)
    counts, asked = np.zeros(3), np.zeros(3)
    for _ in range(draws):
        seconds = exact + noise * (exact if in_proportion else exact.mean()) * rng.normal(
            size=len(sizes)
        )
        found = fit_times(sizes, np.maximum(seconds, 1e-6), files)
        for k, (estimate, truth) in enumerate(
            (
                (found.rate_bytes_per_s, rate),
                (found.fixed_s, fixed_s),
                (found.per_file_s, per_file_s),
            )
        ):
            if estimate.low is not None:
                asked[k] += 1
                counts[k] += estimate.low <= truth <= estimate.high
    return [float(count / of) for count, of in zip(counts, asked, strict=True) if of > draws / 2]


@pytest.mark.parametrize(
    ("fixed_s", "sizes", "noise", "in_proportion"),
    [
        (0.5, SIZES, 0.05, False),
        (0.5, SIZES, 0.05, True),
        (0.0, SIZES, 0.05, False),
        (2.0, EVEN, 0.2, False),
        (2.0, EVEN, 0.1, True),
        (1.0, np.array([1e9, 1e9, 1e9, 4e9, 4e9, 4e9]), 0.05, False),
    ],
)
def test_intervals_hold_the_truth_as_often_as_they_say(fixed_s, sizes, noise, in_proportion):
    for share in held(1e9, fixed_s, sizes, noise, in_proportion):
        assert 0.935 < share < 0.997


def test_the_interval_of_a_time_per_file_holds_it_too():
    assert len(shares := held(5e9, 2.0, EVEN, 0.03, files=FILES, per_file_s=0.02, draws=1000)) == 3
    assert all(0.935 < share < 0.99 for share in shares)


def test_plain_least_squares_alone_would_say_too_little():
    """Durations that scatter in proportion to their length: the slope's own error, without the
    second law, holds the rate 3 times in 4."""
    rng, exact, inside = np.random.default_rng(1), 0.5 + SIZES / 1e9, 0
    for _ in range(500):
        plain = stats.linregress(SIZES, exact * (1 + 0.05 * rng.normal(size=5)))
        inside += abs(plain.slope - 1e-9) <= stats.t.ppf(0.975, 3) * plain.stderr
    assert 0.7 < inside / 500 < 0.8


def test_a_mean_of_rates_reads_high_and_durations_do_not():
    rng = np.random.default_rng(4)
    sizes = np.repeat([50e9, 100e9, 200e9], 1000)
    seconds = (
        sizes / 10e9 * (1 + 0.3 * rng.uniform(-np.sqrt(3), np.sqrt(3), 3000))
    )  # 30 %, as the rounds of one published benchmark
    of_rates = float((sizes / seconds).mean())
    found = fit_times(sizes, seconds).rate_bytes_per_s
    assert of_rates > 1.08 * 10e9
    assert found.value == pytest.approx(10e9, rel=0.03)
    assert found.low < 10e9 < found.high < of_rates


class TestOneSize:
    def test_is_bytes_over_time_and_no_fixed_time_is_made_up(self):
        found = fit_times([4e9] * 3, [2.0, 2.2, 2.4])
        assert found.rate_bytes_per_s.value == pytest.approx(4e9 / 2.2)
        assert (found.why, found.fixed_s.why, math.isnan(found.fixed_s.value)) == (
            "ONE_SIZE",
            "ONE_SIZE",
            True,
        )
        reach = stats.t.ppf(0.975, 2) * 0.2 / math.sqrt(3)
        assert found.rate_bytes_per_s[1:3] == pytest.approx(
            (4e9 / (2.2 + reach), 4e9 / (2.2 - reach))
        )

    def test_sizes_within_a_tenth_are_one(self):
        assert fit_times([1.00e9, 1.05e9, 1.09e9], [1.0, 2.0, 1.5]).why == "ONE_SIZE"
        assert fit_times([1.00e9, 1.05e9, 1.20e9], [1.0, 1.05, 1.2]).why == ""

    def test_one_round_has_no_interval(self):
        found = fit_times([4e9], [2.0])
        assert (found.rate_bytes_per_s.value, found.rate_bytes_per_s.low, found.why) == (
            pytest.approx(2e9),
            None,
            "ONE_ROUND",
        )
        assert (found.rate_bytes_per_s.why, math.isnan(found.spread_fraction)) == (
            "ONE_ROUND",
            True,
        )

    def test_no_round_has_nothing(self):
        found = fit_times([], [])
        assert (found.n, found.why, found.rate_bytes_per_s.known, found.residuals_s) == (
            0,
            "NO_ROUNDS",
            False,
            (),
        )

    def test_scatter_that_hides_both_leaves_bytes_over_time(self):
        found = fit_times([1e9, 1.1e9, 1.2e9, 1.3e9], [2.0, 1.0, 1.9, 1.2])
        assert (found.why, found.fixed_s.known) == ("SIZES_NOT_APART", False)
        assert found.rate_bytes_per_s.low < 1e9 < found.rate_bytes_per_s.high < math.inf


def test_two_sizes_once_each_have_values_and_no_interval():
    found = fit_times([1e9, 3e9], [2.0, 4.0])
    assert (found.rate_bytes_per_s.value, found.fixed_s.value) == pytest.approx((1e9, 1.0))
    assert (found.rate_bytes_per_s.low, found.fixed_s.high, found.why, found.fixed_s.why) == (
        None,
        None,
        "FEW_ROUNDS",
        "FEW_ROUNDS",
    )
    assert math.isnan(found.spread_fraction)


class TestBounds:
    def test_a_fixed_time_below_nothing_is_nothing_and_said(self):
        found = fit_times(SIZES, SIZES / 1e9 * [0.5, 0.8, 1.0, 1.0, 1.0])
        assert (found.fixed_s.value, found.bound) == (0.0, ("fixed_s",))
        through = float((SIZES @ (SIZES / 1e9 * [0.5, 0.8, 1.0, 1.0, 1.0])) / (SIZES @ SIZES))
        assert found.rate_bytes_per_s.value == pytest.approx(1 / through)
        assert (
            found.rate_bytes_per_s.low
            <= found.rate_bytes_per_s.value
            <= found.rate_bytes_per_s.high
        )
        assert found.fixed_s.low == 0.0

    @pytest.mark.parametrize("seed", range(20))
    def test_bounded_values_are_scipys(self, seed):
        rng = np.random.default_rng(seed)
        seconds = np.maximum(-0.5 + EVEN / 1e9 - 0.01 * FILES + rng.normal(0.0, 0.4, 10), 0.05)
        found = fit_times(EVEN, seconds, FILES)
        oracle, _ = optimize.nnls(np.column_stack([EVEN / 1e9, np.ones(10), FILES]), seconds)
        assert [
            1e9 / found.rate_bytes_per_s.value,
            found.fixed_s.value,
            found.per_file_s.value,
        ] == pytest.approx(oracle, abs=1e-9)
        assert found.bound == tuple(
            name
            for name, value in zip(("fixed_s", "per_file_s"), oracle[1:], strict=True)
            if value == 0
        )

    def test_time_that_does_not_grow_has_no_rate_but_a_least_one(self):
        found = fit_times(
            np.repeat(SIZES, 3), np.tile([5.0, 5.1, 4.9], 5) - np.repeat(SIZES, 3) * 1e-13
        )
        assert (found.why, found.rate_bytes_per_s.why, found.rate_bytes_per_s.known) == (
            "NO_GROWTH",
            "NO_GROWTH",
            False,
        )
        assert found.rate_bytes_per_s.low > 16e9
        assert found.rate_bytes_per_s.high == math.inf
        assert found.fixed_s.value == pytest.approx(5.0, rel=0.01)

    def test_a_rate_that_hardly_shows_has_no_upper_end(self):
        seconds = 10.0 + SIZES / 1e11 + np.array([0.1, -0.2, 0.15, -0.1, 0.05])
        found = fit_times(SIZES, seconds)
        assert found.rate_bytes_per_s.known
        assert found.rate_bytes_per_s.high == math.inf
        assert found.fixed_s.low > 9.0


@pytest.mark.parametrize("files", [np.full(10, 7.0), EVEN / 1e8, 3.0 + EVEN / 1e8])
def test_files_that_say_nothing_of_their_own_are_not_told_apart(files):
    found = fit_times(EVEN, 2.0 + EVEN / 5e9, files)
    assert (found.per_file_s.why, found.per_file_s.known) == ("FILES_NOT_APART", False)
    assert found.rate_bytes_per_s.value == pytest.approx(5e9)


@pytest.mark.parametrize(
    ("sizes", "seconds"),
    [
        ([1e9], [1.0, 2.0]),
        ([1e9, math.nan], [1.0, 2.0]),
        ([1e9], [0.0]),
        ([0.0], [1.0]),
        ([[1e9]], [[1.0]]),
    ],
)
def test_what_is_no_round_is_refused(sizes, seconds):
    with pytest.raises(ValueError, match="round"):
        fit_times(sizes, seconds)


class TestPower:
    def test_a_line_is_numpys(self):
        load = np.array([0.0, 1e9, 2e9, 5e9, 5e9])
        watts = 10.0 + 2e-9 * load + np.array([0.1, -0.2, 0.1, 0.3, -0.1])
        found = fit_power(load, watts)
        (slope, base), covariance = np.polyfit(load, watts, 1, cov=True)
        assert (found.base_w.value, found.per_load.value) == pytest.approx((base, slope))
        assert (found.base_w.stderr, found.per_load.stderr) == pytest.approx(
            tuple(np.sqrt(np.diag(covariance))[::-1])
        )
        assert found.per_load.low < 2e-9 < found.per_load.high

    def test_one_load_gives_the_mean_and_no_more(self):
        found = fit_power([5.0, 5.0, 5.0], [10.0, 11.0, 12.0])
        assert (found.mean_w.value, found.base_w.known, found.per_load.known, found.why) == (
            11.0,
            False,
            False,
            "ONE_LOAD",
        )

    def test_few(self):
        assert fit_power([], []).why == "NO_ROUNDS"
        assert fit_power([1.0], [2.0]).why == "ONE_ROUND"
        two = fit_power([0.0, 1.0], [2.0, 3.0])
        assert (two.base_w.value, two.per_load.value, two.base_w.low, two.why) == pytest.approx(
            (2.0, 1.0, None, "FEW_ROUNDS")
        )


class TestJoulesPerByte:
    def test_is_all_over_all(self):
        found = joules_per_byte([2.0, 4.2, 16.0], [1e9, 2e9, 8e9])
        assert found.value == pytest.approx(22.2 / 11e9)

    def test_holds_the_truth(self):
        rng = np.random.default_rng(8)
        sizes = rng.uniform(1e9, 4e9, (2000, 12))
        joules = 3e-9 * sizes * (1 + 0.1 * rng.normal(size=sizes.shape))
        inside = [
            (one := joules_per_byte(j, b)).low <= 3e-9 <= one.high
            for j, b in zip(joules, sizes, strict=True)
        ]
        assert np.mean(inside) == pytest.approx(0.95, abs=0.02)

    def test_few(self):
        assert joules_per_byte([], []).why == "NO_ROUNDS"
        assert joules_per_byte([2.0], [1e9])[:3] == (2e-9, None, None)
