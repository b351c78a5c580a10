"""The honeymoon of buffered saves: against a published run, a simulation of the page cache, and
chance."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.core.page_cache import (
    CHANCE,
    SLOWER,
    dirty_limit_bytes,
    saves_until_full,
    slower_from,
)


def test_a_published_run_that_slowed_down_after_four_saves():
    """16 to 17 s four times, then 28.6 s, then 56 s each: catalogue case A4."""
    found = slower_from([16.4, 16.9, 16.1, 17.0, 28.6, 56.2, 55.8, 56.4])
    assert found is not None
    assert found.first == 5, "one save straddled the change"
    assert found.before_s == pytest.approx(16.9)
    assert found.after_s / found.before_s == pytest.approx(3.3, rel=0.02)


def test_three_saves_prove_nothing():
    assert slower_from([16.4, 16.9, 56.0]) is None
    assert slower_from([16.4, 56.0]) is None
    assert slower_from([]) is None


def test_thousands_of_saves_are_looked_at_as_well():
    """Of so many the number of orders is beyond a float."""
    found = slower_from([1.0] * 1500 + [2.0] * 1500)
    assert found == (1500, 1.0, 2.0)
    assert slower_from([1.0, 1.1] * 1500) is None


def test_chance_is_seldom_taken_for_a_change():
    """Saves of one law that scatter by half: a change is seen seldom enough."""
    draw = random.Random(4)
    seen = sum(
        slower_from([draw.lognormvariate(0.0, 0.5) for _ in range(9)]) is not None
        for _ in range(4000)
    )
    assert seen / 4000 < CHANCE / 2


@given(
    st.integers(3, 10),
    st.integers(3, 10),
    st.floats(SLOWER * 1.2, 20.0),
    st.floats(0.001, 1e4),
)
def test_a_real_change_is_seen_where_it_is(quick, slow, factor, unit_s):
    seconds = [unit_s * (1.0 + 0.01 * i) for i in range(quick)]
    seconds += [unit_s * factor * (1.0 + 0.01 * i) for i in range(slow)]
    found = slower_from(seconds)
    assert found is not None
    assert found.first == quick
    assert found.after_s > SLOWER * found.before_s


@given(st.floats(0.1, 100.0), st.floats(1.0, 1000.0), st.floats(0.01, 10.0), st.floats(0.1, 1000.0))
def test_the_limit_is_hit_when_a_page_cache_fills(size, every_s, rate, limit):
    first = saves_until_full(size, every_s, rate, limit)
    dirty, hit = 0.0, math.inf
    for number in range(1, 400):
        if dirty + size > limit * (1 + 1e-9):
            hit = number
            break
        dirty = max(0.0, dirty + size - rate * every_s)
    if hit < math.inf:
        assert first == pytest.approx(hit, abs=1)
    else:
        assert first > 399


@pytest.mark.parametrize(
    ("vm", "limit"),
    [
        ({"dirty_ratio": 20, "dirty_background_ratio": 10}, 15e9),
        ({"dirty_ratio": 40, "dirty_background_ratio": 5, "dirty_background_bytes": 0}, 22.5e9),
        ({"dirty_ratio": 10, "dirty_background_ratio": 20}, 7.5e9),
        ({"dirty_bytes": 4e9, "dirty_background_bytes": 2e9, "dirty_ratio": 0}, 3e9),
        ({}, 0.0),
    ],
)
def test_where_a_writer_is_held_up(vm, limit):
    assert dirty_limit_bytes(vm, 100e9) == pytest.approx(limit)
