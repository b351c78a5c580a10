"""Who waited for whom, held against going through every pair and every instant; blames are waits
under another name."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptcost.first.core.stragglers import stragglers_of

AT_NS = 1_795_132_800_000_000_000
ROW = st.tuples(
    st.integers(0, 4),
    st.integers(0, 3),
    st.sampled_from([0.0, 0.5, 1.0, 2.5, math.nan]),
    st.sampled_from([0.0, 1.0, 8.0]),
    st.sampled_from([0.0, 350.0, 3000.0]),
)
"""window, half seconds until the begin, stall, GPUs, watts: ties are frequent and sums exact"""


def plainly(window, windows, begin_s, stall_s, gpus, stall_w):
    """Instant by instant; every pair of nodes is asked."""
    n = len(window)
    wait_s, gpu_s, joules, blamed_gpu_s, blamed_j = (np.full(n, math.nan) for _ in range(5))
    stalls, slowest = [math.nan] * windows, [-1] * windows
    for each in range(windows):
        rows = [i for i in range(n) if window[i] == each]
        done = {i: begin_s[i] + stall_s[i] for i in rows}
        if not rows or any(math.isnan(at) for at in done.values()):
            continue
        last = max(done.values())
        stalls[each], slowest[each] = (
            last - min(begin_s[i] for i in rows),
            min(i for i in rows if done[i] == last),
        )
        for i in rows:
            wait_s[i] = last - done[i]
            gpu_s[i], joules[i] = wait_s[i] * gpus[i], wait_s[i] * stall_w[i]
            blamed_gpu_s[i] = blamed_j[i] = 0.0
        for since, until in pairwise(sorted(set(done.values()))):
            waiting, busy = (
                [i for i in rows if done[i] <= since],
                [i for i in rows if done[i] > since],
            )
            for i in busy:
                for j in waiting:
                    blamed_gpu_s[i] += (until - since) * gpus[j] / len(busy)
                    blamed_j[i] += (until - since) * stall_w[j] / len(busy)
    return wait_s, gpu_s, joules, blamed_gpu_s, blamed_j, stalls, slowest


@settings(deadline=None, max_examples=200)
@given(st.lists(ROW, max_size=40))
def test_pair_by_pair(rows):
    window, begin, stall_s, gpus, stall_w = (
        (np.array(each) for each in zip(*rows, strict=True)) if rows else [np.array([])] * 5
    )
    found = stragglers_of(
        window.astype(np.int64),
        5,
        AT_NS + (begin * 500_000_000).astype(np.int64),
        stall_s,
        gpus,
        stall_w,
    )
    plain = plainly(window, 5, begin * 0.5, stall_s, gpus, stall_w)
    for one, other in zip((*found[:5], found.stall_s), plain[:6], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    assert found.slowest.tolist() == plain[6]
    for each in range(5):
        here = window == each
        assert found.begin_ns[each] == (
            AT_NS + int(begin[here].min()) * 500_000_000 if here.any() else 0
        )


def drawn(seed, windows=40, most=300):
    rng = np.random.default_rng(seed)
    window = np.repeat(np.arange(windows), rng.integers(1, most, windows))
    window = rng.permutation(window)
    n = len(window)
    return (
        window,
        windows,
        AT_NS + window * 600_000_000_000 + rng.integers(0, 10**9, n),
        rng.gamma(4.0, 8.0, n),
        rng.choice([4.0, 8.0], n),
        rng.uniform(500.0, 6000.0, n),
    )


@pytest.mark.parametrize("seed", range(5))
def test_blames_add_up_to_waits_in_each_window(seed):
    rows = drawn(seed)
    found = stragglers_of(*rows)
    for waits, blames in ((found.wait_gpu_s, found.blamed_gpu_s), (found.wait_j, found.blamed_j)):
        waited, blamed = (
            np.array([math.fsum(each[rows[0] == w]) for w in range(rows[1])])
            for each in (waits, blames)
        )
        assert blamed == pytest.approx(waited, rel=1e-12, abs=1e-9)
        assert (blames >= 0).all()
    last = found.slowest
    assert (found.wait_s[last] == 0).all()
    for w in range(rows[1]):
        here = rows[0] == w
        assert found.blamed_gpu_s[last[w]] == found.blamed_gpu_s[here].max(), (
            "who returns last has caused most"
        )


def test_many_windows_do_not_blur_one():
    """Sums run within a window: what went before leaves nothing in it. Two windows of a second each
    are a million seconds apart."""
    window = np.array([0, 0, 1, 1])
    found = stragglers_of(
        window,
        2,
        np.array([0, 0, 10**15, 10**15]),
        np.array([0.0, 1e9, 0.0, 0.125]),
        np.array([1e9, 1.0, 1.0, 1.0]),
        np.full(4, 1e9),
    )
    assert found.blamed_gpu_s.tolist() == [0.0, 1e18, 0.0, 0.125]


def test_nanoseconds_of_a_calendar_survive():
    found = stragglers_of(
        np.zeros(2, int), 1, np.array([AT_NS, AT_NS + 1]), np.zeros(2), np.ones(2), np.ones(2)
    )
    assert found.wait_s.tolist() == [1e-9, 0.0]
    assert (found.begin_ns[0], found.stall_s[0], found.slowest[0]) == (AT_NS, 1e-9, 1)


def test_the_order_of_rows_and_a_common_shift_change_nothing():
    rows = drawn(9)
    found = stragglers_of(*rows)
    order = np.random.default_rng(0).permutation(len(rows[0]))
    mixed = stragglers_of(
        rows[0][order],
        rows[1],
        rows[2][order] - 123_456_789_012_345,
        *(each[order] for each in rows[3:]),
    )
    for one, other in zip(found[:5], mixed[:5], strict=True):
        assert other == pytest.approx(one[order], rel=1e-12, abs=1e-12)
    assert (found.stall_s == mixed.stall_s).all()
    assert (order[mixed.slowest] == found.slowest).all()


def test_one_node_waits_for_nobody():
    found = stragglers_of(
        np.array([0]), 1, np.array([AT_NS]), np.array([3.0]), np.array([8.0]), np.array([math.nan])
    )
    assert [each[0] for each in found] == [0.0, 0.0, 0.0, 0.0, 0.0, AT_NS, 3.0, 0]


def test_a_stall_that_is_not_known_leaves_its_window_unknown_and_no_other():
    window, stall_s = np.array([0, 0, 1, 1]), np.array([1.0, math.nan, 1.0, 2.0])
    found = stragglers_of(
        window, 3, np.full(4, AT_NS), stall_s, np.full(4, 8.0), np.full(4, 1000.0)
    )
    for each in found[:5]:
        assert np.isnan(each).tolist() == [True, True, False, False]
    assert found.begin_ns.tolist() == [AT_NS, AT_NS, 0]
    assert np.isnan(found.stall_s).tolist() == [True, False, True]
    assert found.slowest.tolist() == [-1, 3, -1]


def test_unknown_watts_reach_whom_is_waited_for_and_no_further():
    """The second to return has no meter: its own wait and what comes on those after it are not
    known, the rest is."""
    stall_w = np.array([100.0, math.nan, 100.0, 100.0])
    found = stragglers_of(
        np.zeros(4, int), 1, np.zeros(4, int), np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4), stall_w
    )
    assert np.isnan(found.wait_j).tolist() == [False, True, False, False]
    assert found.blamed_j[:2].tolist() == [0.0, pytest.approx(100.0 / 3)]
    assert np.isnan(found.blamed_j[2:]).all()
    assert found.blamed_gpu_s == pytest.approx([0.0, 1 / 3, 4 / 3, 13 / 3])
    last = stragglers_of(
        np.zeros(2, int),
        1,
        np.zeros(2, int),
        np.array([1.0, 2.0]),
        np.ones(2),
        np.array([100.0, math.nan]),
    )
    assert (last.wait_j.tolist(), last.blamed_j.tolist()) == (
        [100.0, 0.0],
        [0.0, 100.0],
    ), "who does not wait needs no meter"


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="of each"):
        stragglers_of(np.zeros(2, int), 1, np.zeros(2, int), np.zeros(2), np.zeros(1), np.zeros(2))
