"""Two tiers: reduces to one, agrees with a walk through the events, stays finite."""

from __future__ import annotations

import math

import numpy as np
import pytest
from event_walk import STATES, Phases, two_levels
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptcost.first.core.failures import Recovery, period, segment

NOTHING = Recovery(0.0, 0.0, 0.0, 0.0, 0.0)
quick = settings(max_examples=60, deadline=None, derandomize=True)
spans = st.floats(0.0, 2000.0)


@quick
@given(
    work=st.floats(1.0, 9000.0),
    stall=spans,
    lag=spans,
    a=spans,
    b=spans,
    c=spans,
    rate=st.floats(0.0, 8e-4),
    every=st.integers(1, 40),
)
def test_without_lost_copies_it_is_one_level(work, stall, lag, a, b, c, rate, every):
    recovery = Recovery(a, b, c, a, b)
    one = segment(work, stall, lag, recovery, rate)
    two = period(work, stall, lag, recovery, rate, float(every), 0.0, 0.0, NOTHING, 0.0)
    for name in STATES:
        assert getattr(two, name) == pytest.approx(getattr(one, name), rel=1e-9, abs=1e-12), name


@quick
@given(
    work=st.floats(1.0, 4000.0),
    stall=spans,
    a=spans,
    b=spans,
    rate=st.floats(1e-9, 4e-4),
    every=st.integers(1, 12),
)
def test_only_lost_copies_make_one_long_segment(work, stall, a, b, rate, every):
    """With no spared failures a period is a single segment of all its work and all its stalls on
    the second tier."""
    recovery = Recovery(a, b, a, b, a)
    two = period(work, stall, 0.0, NOTHING, 0.0, float(every), 50.0, 0.0, recovery, rate)
    one = segment(every * work, every * stall + 50.0, 0.0, recovery, rate)
    assert two.total_s * every == pytest.approx(one.total_s, rel=1e-8)
    assert two.failures * every == pytest.approx(one.failures, rel=1e-7, abs=1e-12)


def test_every_one_saves_twice_each_time():
    """every = 1 and no failure: each segment pays both stalls."""
    both = period(600.0, 5.0, 0.0, NOTHING, 0.0, 1.0, 40.0, 0.0, NOTHING, 0.0)
    assert (both.work_s, both.stall_s, both.failures) == (600.0, 45.0, 0.0)
    tenth = period(600.0, 5.0, 0.0, NOTHING, 0.0, 10.0, 40.0, 0.0, NOTHING, 0.0)
    assert tenth.stall_s == pytest.approx(9.0, rel=1e-12)


def test_every_one_with_one_recovery_is_one_level_when_the_second_save_is_free():
    recovery = Recovery(20.0, 30.0, 40.0, 50.0, 60.0)
    one = segment(800.0, 25.0, 0.0, recovery, 3e-4)
    two = period(800.0, 25.0, 0.0, recovery, 1e-4, 1.0, 0.0, 0.0, recovery, 2e-4)
    for name in STATES:
        assert getattr(two, name) == pytest.approx(getattr(one, name), rel=1e-12), name


CASES = {
    "calm": (
        200.0,
        5.0,
        Phases(10.0, 5.0, 10.0, 5.0, 5.0),
        1 / 3000,
        6,
        60.0,
        Phases(20.0, 20.0, 20.0, 90.0, 30.0),
        1 / 9000,
    ),
    "both kinds hit recoveries": (
        150.0,
        8.0,
        Phases(20.0, 15.0, 60.0, 40.0, 80.0),
        1 / 900,
        4,
        50.0,
        Phases(60.0, 30.0, 90.0, 200.0, 60.0),
        1 / 1600,
    ),
    "every save on both": (
        300.0,
        10.0,
        Phases(5.0, 5.0, 20.0, 10.0, 10.0),
        1 / 1200,
        1,
        70.0,
        Phases(30.0, 10.0, 20.0, 90.0, 20.0),
        1 / 1500,
    ),
    "long second stall, rarely": (
        50.0,
        3.0,
        Phases(2.0, 2.0, 5.0, 5.0, 5.0),
        1 / 700,
        20,
        300.0,
        Phases(30.0, 30.0, 30.0, 60.0, 30.0),
        1 / 4000,
    ),
    "mostly lost": (
        150.0,
        5.0,
        Phases(5.0, 5.0, 10.0, 10.0, 5.0),
        1 / 8000,
        3,
        40.0,
        Phases(20.0, 20.0, 30.0, 60.0, 20.0),
        1 / 900,
    ),
}


@pytest.mark.parametrize("case", CASES, ids=list(CASES))
def test_every_state_agrees_with_the_walk(case):
    work, stall, first, spared, every, second_stall, second, lost = CASES[case]
    seen = two_levels(
        work,
        stall,
        first,
        spared,
        every,
        second_stall,
        second,
        lost,
        periods=40_000,
        seed=20_260_822,
    )
    told = period(
        work,
        stall,
        0.0,
        Recovery(*first),
        spared,
        float(every),
        second_stall,
        0.0,
        Recovery(*second),
        lost,
    )
    for name in (*STATES, "total_s"):
        assert seen.error[name] < 0.03 * seen.mean[name], (
            f"{name}: the walk is too short to prove anything"
        )
        assert abs(getattr(told, name) - seen.mean[name]) < 3 * seen.error[name], name


def test_lags_enter_to_first_order():
    """Rare failures: each spared one costs its lag more work, each lost one the second tier's."""
    plain = period(600.0, 2.0, 0.0, NOTHING, 1e-8, 5.0, 0.0, 0.0, NOTHING, 2e-8)
    lagged = period(600.0, 2.0, 30.0, NOTHING, 1e-8, 5.0, 0.0, 400.0, NOTHING, 2e-8)
    extra = lagged.total_s - plain.total_s
    assert extra == pytest.approx(602.0 * (1e-8 * 30 + 2e-8 * 400), rel=1e-3)


@pytest.mark.parametrize("rate", [0.0, 1e-30, 1e-15, 1e-6, 1e-3])
@pytest.mark.parametrize("every", [1.0, 7.0, 1e6])
def test_ordinary_to_extreme_values_have_a_number(rate, every):
    recovery = Recovery(10.0, 10.0, 10.0, 10.0, 10.0)
    states = period(100.0, 1.0, 0.0, recovery, rate, every, 5.0, 0.0, recovery, rate * 1e-9)
    assert states.total_s >= 101.0 * (1 - 1e-12)
    assert math.isfinite(states.total_s)


def alone(length, rate):
    """One segment of `length` mean times between failures, (exp(x)-1)/l; infinite past the largest
    float."""
    return math.expm1(length) / rate if length < 700 else math.inf


@pytest.mark.parametrize("length", [10.0, 36.0, 37.0, 40.0, 100.0, 600.0, 1000.0])
def test_a_segment_of_many_mtbfs_is_as_long_as_it_is(length):
    """Lost failures only, segment of `length` mean times between failures: (exp(x)-1)/l, infinite
    past the largest float."""
    rate = 1e-3
    two = period(length / rate, 0.0, 0.0, NOTHING, 0.0, 1.0, 0.0, 0.0, NOTHING, rate).total_s
    assert two == pytest.approx(alone(length, rate), rel=1e-6)


@pytest.mark.parametrize("length", [37.0, 1000.0])
def test_a_segment_of_many_mtbfs_with_spared_failures_only(length):
    rate = 1e-3
    two = period(length / rate, 0.0, 0.0, NOTHING, rate, 3.0, 0.0, 0.0, NOTHING, 0.0).total_s
    assert two == pytest.approx(alone(length, rate), rel=1e-6)


@pytest.mark.parametrize("rate", [1e-6, 1e-4, 1e-3])
@pytest.mark.parametrize("every", [1.0, 5.0, 20.0])
def test_the_stall_on_the_second_tier_is_kept_apart(rate, every):
    """The last stretch of a period that any failure restarts: (exp(l*C2)-1)/l in it per period; the
    rest is on the first tier."""
    near, far = Recovery(1.0, 2.0, 3.0, 4.0, 5.0), Recovery(6.0, 7.0, 8.0, 90.0, 10.0)
    states = period(300.0, 10.0, 0.0, near, 0.0, every, 200.0, 0.0, far, rate)
    assert states.second_stall_s * every == pytest.approx(math.expm1(rate * 200.0) / rate, rel=1e-9)
    # each earlier stall is passed again whenever a later stretch of its period fails
    first = sum(
        math.exp(rate * (200.0 + 310.0 * later)) * math.expm1(rate * 10.0) / rate
        for later in range(int(every))
    )
    assert (states.stall_s - states.second_stall_s) * every == pytest.approx(first, rel=1e-9)


def test_a_long_recovery_from_the_first_tier():
    """Recovery of 40 mean times between failures, all spared: as one level."""
    recovery = Recovery(1.0, 1.0, 100.0, 39_800.0, 100.0)
    one = segment(100.0, 1.0, 0.0, recovery, 1e-3)
    two = period(100.0, 1.0, 0.0, recovery, 1e-3, 3.0, 0.0, 0.0, NOTHING, 0.0)
    assert two.total_s == pytest.approx(one.total_s, rel=1e-6)


def test_arrays_equal_scalars():
    work = np.array([10.0, 500.0, 2000.0])
    lost = np.array([0.0, 1e-6, 3e-4])
    first, second = Recovery(1.0, 2.0, 3.0, 4.0, 5.0), Recovery(6.0, 7.0, 8.0, 90.0, 10.0)
    together = period(work, 5.0, 1.0, first, 1e-4, 4.0, 30.0, 2.0, second, lost)
    for i in range(3):
        alone = period(
            float(work[i]), 5.0, 1.0, first, 1e-4, 4.0, 30.0, 2.0, second, float(lost[i])
        )
        for name in STATES:
            assert getattr(together, name)[i] == pytest.approx(
                getattr(alone, name), rel=1e-12, abs=1e-300
            ), name


def test_more_failures_or_worse_ones_never_help():
    first, second = Recovery(1.0, 2.0, 3.0, 4.0, 5.0), Recovery(6.0, 7.0, 8.0, 900.0, 10.0)

    def total(spared, lost):
        return period(300.0, 5.0, 0.0, first, spared, 5.0, 20.0, 0.0, second, lost).total_s

    assert total(1e-4, 1e-5) < total(2e-4, 1e-5) < total(1e-4, 1.1e-4)
    assert total(1e-4, 0.0) < total(0.0, 1e-4)
