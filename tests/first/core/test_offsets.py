"""Clock offsets: planted ones come back to the nanosecond where nodes begin together, and within
what is stated where they do not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptcost.first.core.offsets import offsets_of

AT_NS = 1_795_132_800_000_000_000
"""Unix time in 2026: a float could not tell nanoseconds here"""
EVERY_NS = 600_000_000_000


def fleet(planted_ns, windows, rng, there=1.0, jitter_ns=0, late_share=0.0):
    """Rows in a random order: window, node, begin by the node's clock."""
    window, node = (
        each.ravel()
        for each in np.meshgrid(np.arange(windows), np.arange(len(planted_ns)), indexing="ij")
    )
    begin_ns = AT_NS + window * EVERY_NS + np.asarray(planted_ns)[node]
    if jitter_ns:
        begin_ns = begin_ns + np.rint(rng.normal(0.0, jitter_ns, len(node))).astype(np.int64)
    late = rng.random(len(node)) < late_share
    begin_ns = begin_ns + late * rng.integers(1, 30_000_000_000, len(node))
    kept = rng.permutation(np.flatnonzero(rng.random(len(node)) < there))
    return window[kept], node[kept], begin_ns[kept]


def zeroed(planted_ns):
    return np.asarray(planted_ns) - np.sort(planted_ns)[(len(planted_ns) - 1) // 2]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=40),
    st.integers(1, 12),
    st.integers(0, 2**32),
)
def test_what_begins_together_comes_out_to_the_nanosecond(planted_ns, windows, seed):
    found = offsets_of(*fleet(planted_ns, windows, np.random.default_rng(seed)))
    assert found.offset_ns.tolist() == zeroed(planted_ns).tolist()
    if len(planted_ns) == 1:
        assert (found.windows[0], np.isnan(found.unsure_s[0])) == (0, True)
    elif windows > 1:
        assert found.windows.tolist() == [windows] * len(planted_ns)
        assert found.unsure_s.tolist() == [0.0] * len(planted_ns)


@pytest.mark.parametrize("seed", range(5))
def test_late_begins_and_lacking_windows_move_nothing(seed):
    """Each node is late in a fifth of its windows and lacks a tenth: most begin together most of
    the time."""
    rng = np.random.default_rng(seed)
    planted_ns = np.rint(rng.normal(0.0, 2e7, 64)).astype(np.int64)
    found = offsets_of(*fleet(planted_ns, 200, rng, there=0.9, late_share=0.2))
    errors_ns = found.offset_ns - zeroed(planted_ns)
    assert np.ptp(errors_ns) <= 4.0 * 1e9 * found.unsure_s.max()
    exact = offsets_of(*fleet(planted_ns, 200, rng, there=0.9))
    assert exact.offset_ns.tolist() == zeroed(planted_ns).tolist(), (
        "lacking windows alone leave no error at all"
    )


def test_a_clock_that_is_a_year_off():
    planted_ns = np.array([0, 0, 3, 31_536_000_000_000_000, -1_700_000_000_000_000_000])
    found = offsets_of(*fleet(planted_ns, 9, np.random.default_rng(0), there=0.8))
    assert found.offset_ns.tolist() == planted_ns.tolist()


@pytest.mark.parametrize("nodes", [2, 3, 4, 16, 200])
@pytest.mark.parametrize("spread_ns", [0, 1_000_000, 500_000_000])
@pytest.mark.parametrize("there", [1.0, 0.8])
def test_an_error_is_within_what_is_stated(nodes, spread_ns, there):
    """Up to the zero, which is a choice."""
    rng = np.random.default_rng(nodes + spread_ns)
    planted_ns = np.rint(rng.normal(0.0, 1.0, nodes) * spread_ns).astype(np.int64)
    over = []
    for _ in range(300 // nodes + 1):
        found = offsets_of(*fleet(planted_ns, 60, rng, there=there, jitter_ns=3_000_000))
        errors_s = (found.offset_ns - planted_ns) * 1e-9
        errors_s = errors_s - np.median(errors_s) if nodes > 2 else errors_s[:1] - errors_s[1]
        over += (np.abs(errors_s) / found.unsure_s[: len(errors_s)]).tolist()
    # a normal law leaves 0.006 % outside of 4
    assert np.mean(np.array(over) < 4.0) > 0.99
    assert np.mean(np.array(over) < 2.0) > 0.9
    if nodes > 4:
        assert 0.6 < np.sqrt(np.mean(np.square(over))) < 1.15, "nor is it stated too wide"


def test_a_common_shift_changes_nothing():
    rng = np.random.default_rng(4)
    window, node, begin_ns = fleet(
        rng.integers(-(10**9), 10**9, 30), 20, rng, there=0.9, jitter_ns=1_000_000
    )
    found, moved = (
        offsets_of(window, node, begin_ns),
        offsets_of(window, node, begin_ns - 777_777_777_777_777_777),
    )
    for one, other in zip(found, moved, strict=True):
        np.testing.assert_array_equal(one, other)
    by_window = offsets_of(window, node, begin_ns + window * 12_345_678_901)
    np.testing.assert_array_equal(found.offset_ns, by_window.offset_ns)


def test_a_shift_of_one_node_is_its_offset():
    rng = np.random.default_rng(5)
    window, node, begin_ns = fleet([0] * 31, 20, rng)
    found = offsets_of(window, node, begin_ns + np.where(node == 7, 123_456_789, 0))
    assert found.offset_ns.tolist() == [123_456_789 if each == 7 else 0 for each in range(31)]


def test_two_nodes():
    """Their difference is what can be known; the middle of the two is the earlier one."""
    found = offsets_of(
        np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([500, 100, 9_500, 9_100])
    )
    assert found.offset_ns.tolist() == [400, 0]


def test_a_window_of_one_node_says_nothing():
    """Node 1 is alone three times and with the others once; node 2 is never with anyone."""
    window = np.array([0, 0, 0, 1, 2, 3, 4])
    node = np.array([0, 1, 3, 1, 1, 1, 2])
    found = offsets_of(window, node, np.array([10, 60, 10, 1000, 2000, 3000, 4000]))
    assert found.offset_ns.tolist() == [0, 50, 0, 0]
    assert found.windows.tolist() == [1, 1, 0, 1]
    assert np.isnan(found.scatter_s).all()
    assert np.isnan(found.unsure_s).all(), "one window says nothing of how sure it is"


def test_few_windows_are_trusted_no_more_than_the_others():
    rng = np.random.default_rng(8)
    window, node, begin_ns = fleet([0] * 20, 60, rng, jitter_ns=2_000_000)
    few = (node != 3) | (window < 2)
    found = offsets_of(window[few], node[few], begin_ns[few])
    assert found.windows[3] == 2
    assert found.unsure_s[3] >= 0.999 * np.sqrt(np.pi / 2) * np.median(found.scatter_s) / np.sqrt(2)
    assert found.unsure_s[3] > 3 * np.delete(found.unsure_s, 3).max() / 2


def test_scatter_is_the_jitters():
    found = offsets_of(
        *fleet([0] * 50, 400, np.random.default_rng(2), jitter_ns=5_000_000, late_share=0.02)
    )
    assert found.scatter_s == pytest.approx(np.full(50, 5e-3), rel=0.3)
    assert np.median(found.scatter_s) == pytest.approx(5e-3, rel=0.05)


def test_no_row_is_no_node():
    nothing = np.array([], dtype=np.int64)
    assert [len(each) for each in offsets_of(nothing, nothing, nothing)] == [0, 0, 0, 0]
    with pytest.raises(ValueError, match="a row"):
        offsets_of(nothing, nothing, np.array([1]))


def plainly(rows, nodes):
    """The same, value by value: rows are (window, node, begin)."""
    by_window = {w: [(n, b) for v, n, b in rows if v == w] for w, _, _ in rows}
    by_window = {w: there for w, there in by_window.items() if len(there) > 1}
    offset = [0] * nodes

    def low(values):
        return sorted(values)[(len(values) - 1) // 2]

    def of_nodes(late):
        return [
            low(each) if (each := [x for n, x in late if n == node]) else 0 for node in range(nodes)
        ]

    for _ in range(2):
        late = [
            (n, b - offset[n] - low([c - offset[m] for m, c in there]))
            for there in by_window.values()
            for n, b in there
        ]
        offset = [o + x for o, x in zip(offset, of_nodes(late), strict=True)]
    late, scaled = [], []
    for there in by_window.values():
        for n, b in there:
            others = sorted(c - offset[m] for m, c in there if m != n)
            k = len(others)
            late.append(
                (
                    n,
                    b
                    - offset[n]
                    - others[(k - 1) // 2]
                    - (others[k // 2] - others[(k - 1) // 2]) // 2,
                )
            )
            scaled.append((n, late[-1][1] - late[-1][1] // (k + 1)))
    offset = [o + x for o, x in zip(offset, of_nodes(scaled), strict=True)]
    there = sorted({n for n, _ in late})
    zero = low([offset[n] for n in there]) if there else 0
    scatter = []
    for node in range(nodes):
        mine = [x for n, x in late if n == node]
        scatter.append(
            1.4826e-9 * float(np.median([abs(x - low(mine)) for x in mine]))
            if len(mine) > 1
            else np.nan
        )
    return [o - zero if n in there else o for n, o in enumerate(offset)], scatter


@settings(deadline=None, max_examples=150)
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 5), st.integers(0, 6)),
        st.integers(-50, 50),
        min_size=1,
        max_size=40,
    )
)
def test_value_by_value(begins):
    rows = [(w, n, AT_NS + b) for (w, n), b in begins.items()]
    window, node, begin_ns = (np.array(each) for each in zip(*rows, strict=True))
    found = offsets_of(window, node, begin_ns)
    offset_ns, scatter_s = plainly(rows, node.max() + 1)
    assert found.offset_ns.tolist() == offset_ns
    np.testing.assert_allclose(found.scatter_s, scatter_s, rtol=1e-12)
