"""Rows of time: conserved, against brute force and numeric integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statements
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.core.hourly import (
    Steps,
    contract_factor,
    edges_of,
    mean_over,
    shares,
    spread,
    width_for,
)

BEGIN = 1_790_812_800.0
_spans = st.tuples(st.floats(0, 50_000), st.floats(0, 20_000)).map(
    lambda each: (BEGIN + each[0], BEGIN + each[0] + each[1])
)


@given(
    st.lists(st.tuples(_spans, st.floats(0, 1e6)), min_size=1, max_size=20),
    st.sampled_from([60.0, 300.0, 3600.0]),
)
def test_rows_add_up_to_what_was_put_into_them(each, width_s):
    edges = edges_of(BEGIN, BEGIN + 70_000, width_s)
    rows = spread([span for span, _ in each], [amount for _, amount in each], edges)
    assert math.fsum(rows) == pytest.approx(
        math.fsum(amount for _, amount in each), rel=1e-12, abs=1e-12
    )
    assert (rows >= 0).all()


@given(_spans)
def test_a_stretch_is_divided_by_its_time_in_each_row(span):
    edges = edges_of(BEGIN, BEGIN + 70_000, 3600.0)
    first, parts = shares(*span, edges)
    begin_s, end_s = span
    for n, part in enumerate(parts.tolist()):
        inside_s = max(0.0, min(end_s, edges[first + n + 1]) - max(begin_s, edges[first + n]))
        assert part == pytest.approx(
            inside_s / (end_s - begin_s) if end_s > begin_s else 1.0, abs=1e-9
        )
    assert math.fsum(parts) == pytest.approx(1.0)


def test_what_is_not_known_leaves_only_its_own_rows_unknown():
    edges = np.array([0.0, 3600.0, 7200.0, 10800.0])
    rows = spread([(0.0, 3600.0), (4000.0, 5000.0)], [2.0, math.nan], edges)
    assert rows[[0, 2]].tolist() == [2.0, 0.0]
    assert math.isnan(rows[1])


def test_an_instant_lies_in_one_row_and_the_end_in_the_last():
    edges = np.array([0.0, 3600.0, 7200.0])
    assert spread([(3600.0, 3600.0), (7200.0, 7200.0)], [1.0, 2.0], edges).tolist() == [0.0, 3.0]


@given(
    st.lists(st.floats(0, 2), min_size=30, max_size=30),
    st.integers(0, 80_000),
    st.integers(1, 20_000),
    st.sampled_from([300.0, 900.0, 3600.0]),
)
def test_mean_factor_is_the_integral_over_the_row(values, offset, length, step_s):
    starts = BEGIN + step_s * np.arange(30)
    steps = Steps(starts, starts + step_s, np.array(values))
    edges = edges_of(BEGIN + offset, BEGIN + offset + length, 3600.0)
    found = mean_over(steps, edges)
    for row, value in enumerate(found.tolist()):
        middles = np.linspace(edges[row], edges[row + 1], 20_001)
        middles = (middles[1:] + middles[:-1]) / 2
        if edges[row + 1] > starts[-1] + step_s:
            assert math.isnan(value)
            continue
        at = np.minimum(((middles - BEGIN) // step_s).astype(int), 29)
        assert value == pytest.approx(np.array(values)[at].mean(), abs=2e-3)


def test_a_gap_is_not_bridged():
    steps = Steps(np.array([0.0, 7200.0]), np.array([3600.0, 10800.0]), np.array([0.1, 0.3]))
    found = mean_over(steps, np.array([0.0, 3600.0, 7200.0, 10800.0]))
    assert found[[0, 2]].tolist() == [0.1, 0.3]
    assert math.isnan(found[1])


@pytest.mark.parametrize(
    ("offset_s", "width_s"),
    [(0.0, 3600.0), (1800.0, 1800.0), (900.0, 900.0), (300.0, 300.0), (60.0, 60.0), (7.0, 60.0)],
)
def test_rows_are_as_wide_as_factors_allow(offset_s, width_s):
    starts = offset_s + 3600.0 * np.arange(4)
    assert width_for(Steps(starts, starts + 3600.0, np.ones(4)), None) == width_s


def test_contracts_and_the_rest():
    assert contract_factor([], [], 0.4) == 0.4
    assert contract_factor([1.0], [0.02], math.nan) == 0.02
    assert math.isnan(contract_factor([0.5], [0.0], math.nan))


START = statements.START


def test_the_quicker_of_two_factors_says_how_wide_rows_are():
    hourly, quick = (
        Steps(np.array([0.0, w]), np.array([w, 2 * w]), np.array([0.1, 0.2]))
        for w in (3600.0, 300.0)
    )
    assert width_for(hourly, quick) == width_for(quick, hourly) == 300.0


def test_before_the_first_step_and_in_a_gap_nothing_is_known():
    steps = Steps(np.array([3600.0, 10800.0]), np.array([7200.0, 14400.0]), np.array([0.1, 0.2]))
    found = mean_over(steps, np.array([0.0, 3600.0, 7200.0, 10800.0, 14400.0, 18000.0])).tolist()
    assert [math.isnan(each) for each in found] == [True, False, True, False, True]
    assert (found[1], found[3]) == (0.1, 0.2)


def test_a_row_in_which_nothing_changes_has_the_factor_to_the_last_digit():
    rng = np.random.default_rng(1)
    edges = START + np.cumsum(rng.uniform(1.0, 3600.0, 500))
    values = rng.uniform(0.0, 1.0, 499)
    assert mean_over(Steps(edges[:-1], edges[1:], values), edges).tolist() == values.tolist()
