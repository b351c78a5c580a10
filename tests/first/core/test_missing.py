"""What missing nodes would have added, held against the textbook of samples and against fleets of
which the rest is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from ckptcost.first.core.estimates import Estimate
from ckptcost.first.core.missing import missing_share


def test_nodes_that_lack_all_windows_are_the_textbooks():
    """N^2 (1 - n/N) s^2/n of a total from a sample without replacement (Cochran, 2.8)."""
    seen = np.random.default_rng(1).gamma(4.0, size=12)
    found = missing_share(seen, np.full(8, 50.0))
    stderr = 50.0 * 20 * math.sqrt((1 - 12 / 20) * seen.var(ddof=1) / 12)
    low, high = stats.t.interval(0.95, 11, loc=400.0 * seen.mean(), scale=stderr)
    assert found[:4] == pytest.approx((400.0 * seen.mean(), low, high, stderr), rel=1e-9)
    assert (found.n, found.why) == (12, "")


@pytest.mark.parametrize(("nodes", "missing"), [(10, 5), (40, 4), (100, 60), (12, 1)])
def test_the_truth_is_within_as_often_as_it_says(nodes, missing):
    """A fleet of nodes that differ, of which some at random wrote nothing, for times of their
    own."""
    rng = np.random.default_rng(nodes)
    held = []
    for _ in range(2000):
        every = rng.normal(100.0, 15.0, nodes)
        lacking = rng.integers(1, 200, missing)
        found = missing_share(every[missing:], lacking)
        held.append(found.low <= every[:missing] @ lacking <= found.high)
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)


def test_one_fixed_fleet():
    """Only which nodes are missing is drawn."""
    rng = np.random.default_rng(3)
    every = rng.lognormal(0.0, 0.3, 200)
    held = []
    for _ in range(2000):
        mixed = rng.permutation(every)
        found = missing_share(mixed[40:], np.full(40, 7.0))
        held.append(found.low <= 7.0 * mixed[:40].sum() <= found.high)
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)


def test_a_larger_absence_is_less_sure_and_none_is_nothing():
    seen = [9.0, 10.0, 11.0, 10.0]
    small, large = missing_share(seen, [10.0]), missing_share(seen, [10.0, 10.0])
    assert large.value == 2 * small.value
    assert large.stderr > math.sqrt(2) * small.stderr
    assert missing_share(seen, []) == missing_share(seen, [0.0]) == Estimate(0.0, 0.0, 0.0, 0.0, 4)
    assert missing_share([5.0, 5.0], [3.0])[:3] == (15.0, 15.0, 15.0)


def test_amounts_that_are_never_negative_are_not_missing_less_than_nothing():
    assert missing_share([0.0, 10.0], [5.0]).low == 0.0
    assert missing_share([-1.0, 10.0], [5.0]).low < 0.0, (
        "what draining adds may be less than nothing"
    )


def test_few_nodes_say_so():
    assert missing_share([4.0], [10.0, 2.0]) == Estimate(48.0, n=1, why="ONE_NODE")
    for nobody in ([], [math.nan]):
        found = missing_share(nobody, [10.0])
        assert (math.isnan(found.value), found.low, found.n, found.why) == (
            True,
            None,
            0,
            "NO_NODES",
        )
    assert missing_share([9.0, math.nan, 11.0], [1.0]) == missing_share([9.0, 11.0], [1.0])


@pytest.mark.parametrize(
    ("seen", "lacking"),
    [([1.0], [-1.0]), ([1.0], [math.nan]), ([math.inf], [1.0]), ([1.0], [math.inf])],
)
def test_what_is_no_count_is_refused(seen, lacking):
    with pytest.raises(ValueError, match="a count"):
        missing_share(seen, lacking)
