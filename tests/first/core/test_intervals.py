"""Interval arithmetic: what it is for is containment, and that is tested as a property."""

from __future__ import annotations

import math
import operator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ckptcost.first.core.intervals import Interval, interval

NUMBERS = st.floats(-1e12, 1e12, allow_nan=False)
OPERATIONS = [operator.add, operator.sub, operator.mul, operator.truediv]


@st.composite
def interval_and_member(draw, numbers=NUMBERS):
    """An interval, and a number in it."""
    low, high = sorted((draw(numbers), draw(numbers)))
    return Interval(low, high), min(max(low, low + draw(st.floats(0, 1)) * (high - low)), high)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda f: f.__name__)
@given(first=interval_and_member(), second=interval_and_member())
def test_containment(operation, first, second):
    (x_range, x), (y_range, y) = first, second
    if operation is operator.truediv:
        assume(y != 0 and not (y_range.low < 0 < y_range.high) and y_range != Interval(0.0, 0.0))
    result = operation(x_range, y_range)
    value = operation(x, y)
    assert result.low <= value <= result.high


@given(pair=interval_and_member(st.floats(-1e3, 1e3)), exponent=st.integers(0, 9))
def test_containment_of_powers(pair, exponent):
    x_range, x = pair
    result = x_range.power(exponent)
    slack = 1e-12 * max(abs(result.low), abs(result.high))
    assert result.low - slack <= x**exponent <= result.high + slack


@given(pair=interval_and_member(st.floats(0, 1e6)))
def test_containment_under_a_rising_function(pair):
    x_range, x = pair
    result = x_range.rising(math.sqrt)
    assert result.low <= math.sqrt(x) <= result.high


@given(first=interval_and_member(), second=interval_and_member())
def test_points_agree_with_plain_numbers(first, second):
    x, y = first[1], second[1]
    assert interval(x) * interval(y) == interval(x * y)
    assert interval(x) + y == interval(x + y) == x + interval(y)


@given(first=interval_and_member(), second=interval_and_member())
def test_narrower_inputs_never_give_a_wider_result(first, second):
    (wide, x), (other, _) = first, second
    narrow = Interval(min(x, wide.high), wide.high)
    assert (narrow * other).within(wide * other)


def test_hulls_are_tight():
    """Each end is reached: not merely an interval that contains, but the least one."""
    assert Interval(-2, 3) * Interval(-5, 4) == Interval(-15, 12)
    assert Interval(1, 2) / Interval(4, 8) == Interval(0.125, 0.5)
    assert Interval(-2, 3).power(2) == Interval(0, 9)
    assert Interval(-2, 1).power(3) == Interval(-8, 1)


def test_division_by_zero():
    for divisor in (Interval(-1, 1), Interval(0, 0)):
        with pytest.raises(ZeroDivisionError):
            Interval(1, 2) / divisor
    assert Interval(1, 2) / Interval(0, 4) == Interval(0.25, math.inf)
    assert Interval(1, 2) / Interval(-4, 0) == Interval(-math.inf, -0.25)
    assert Interval(-1, 2) / Interval(0, 4) == Interval(-math.inf, math.inf)


def test_no_bound_stays_no_bound():
    over = Interval(7.0, math.inf)
    assert over + 1.0 == Interval(8.0, math.inf)
    assert over - over == Interval(-math.inf, math.inf)
    assert 1.0 / over == Interval(0.0, 1 / 7)
    assert over * Interval(0, 0) == Interval(0, 0)
    assert over / over == Interval(0.0, math.inf)


def test_overflow_is_an_open_end_and_never_nan():
    huge = Interval(1e300, 1e308) * Interval(1e300, 1e308)
    assert huge.high == math.inf
    assert math.isfinite(huge.low)
    assert not math.isnan((huge - huge).low)


@pytest.mark.parametrize("ends", [(2, 1), (math.nan, 1), (1, math.nan)])
def test_no_such_interval(ends):
    with pytest.raises(ValueError, match="no interval"):
        Interval(*ends)


def test_meeting():
    assert Interval(1, 2).meets(Interval(2, 3))
    assert not Interval(1, 2).meets(Interval(2.001, 3))
    assert Interval(1, 2).meets(Interval(2 * (1 + 1e-12), 3)), (
        "the last bits do not make a contradiction"
    )
    assert Interval(1, 2).within(Interval(1, 2))
    assert not Interval(0, 2).within(Interval(1, 2))


def test_the_last_bits_keep_no_one_apart():
    one, other = Interval(1.0, 2.0), Interval(2.0 * (1 + 1e-12), 3.0)
    assert one.meets(other)
    assert other.meets(one)
    assert not one.meets(Interval(2.0 * (1 + 1e-6), 3.0))
    assert not Interval(2.0 * (1 + 1e-6), 3.0).meets(one)


def test_powers_past_the_largest_float():
    assert Interval(-1e200, 1.0).power(2) == Interval(0.0, math.inf)
    assert Interval(-1e200, -1.0).power(2) == Interval(1.0, math.inf)
    assert Interval(-1e200, 1.0).power(3) == Interval(-math.inf, 1.0)
