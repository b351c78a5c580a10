"""The front: against the definition by brute force, and by its own laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ckptcost.first.core.pareto import front

quick = settings(max_examples=120, deadline=None, derandomize=True)
# few distinct values, so that ties, equal rows and unknowns are common
values = st.sampled_from([0.0, 1.0, 2.0, 3.0, 1.5, float("inf"), float("nan")])
tables = st.tuples(st.integers(0, 40), st.integers(1, 4)).flatmap(
    lambda shape: hnp.arrays(float, shape, elements=values)
)


def by_definition(points, senses):
    costs = [
        [-x if sense == "high" else x for x, sense in zip(row, senses, strict=True)]
        for row in points
    ]

    def dominates(a, b):
        return all(x <= y for x, y in zip(a, b, strict=True)) and any(
            x < y for x, y in zip(a, b, strict=True)
        )

    known = [not any(x != x for x in row) for row in costs]
    return [
        known[i] and not any(known[j] and dominates(costs[j], costs[i]) for j in range(len(costs)))
        for i in range(len(costs))
    ]


@quick
@given(tables, st.data())
def test_it_is_the_definition(points, data):
    senses = data.draw(
        st.lists(
            st.sampled_from(["high", "low"]), min_size=points.shape[1], max_size=points.shape[1]
        )
    )
    assert front(points, senses).tolist() == by_definition(points, senses)


@quick
@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_the_points_does_not_matter(points, chance):
    order = list(range(len(points)))
    chance.shuffle(order)
    senses = ["low"] * points.shape[1]
    assert front(points[order], senses).tolist() == front(points, senses)[order].tolist()


@quick
@given(tables)
def test_the_least_of_each_column_is_on_it(points):
    """Of the rows that share the least value, one is on the front; and the front of the front is
    itself."""
    senses = ["low"] * points.shape[1]
    kept = front(points, senses)
    known = ~np.isnan(points).any(axis=1)
    for column in points[known].T:
        if column.size:
            assert column.min() in column[kept[known]]
    assert front(points[kept], senses).all()


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_many_points_in_chunks(columns):
    """More than one chunk: nobody on it is beaten, everybody off it is beaten by somebody on it."""
    points = np.sin(np.arange(1500 * columns) ** 1.7).reshape(1500, columns)
    kept = front(points, ["low"] * columns)
    on, off = points[kept], points[~kept]
    assert 1 < len(on) < 1500
    beaten = (on[None, :, :] <= off[:, None, :]).all(axis=2) & (
        on[None, :, :] < off[:, None, :]
    ).any(axis=2)
    assert beaten.any(axis=1).all()
    among = (on[None, :, :] <= on[:, None, :]).all(axis=2) & (on[None, :, :] < on[:, None, :]).any(
        axis=2
    )
    assert not among.any()


def test_equal_points_stay_together_and_unknown_ones_stay_out():
    assert front([[1.0, 2.0], [1.0, 2.0], [2.0, 1.0], [2.0, 2.0]], ["low", "low"]).tolist() == [
        True,
        True,
        True,
        False,
    ]
    assert front([[float("nan"), 0.0], [1.0, 1.0]], ["low", "low"]).tolist() == [False, True]
    assert front(np.empty((0, 2)), ["low", "high"]).tolist() == []


def test_a_line_of_trade_offs_is_all_front():
    x = np.linspace(1.0, 2.0, 600)
    assert front(np.stack([x, 1.0 / x], axis=1), ["low", "low"]).all()
    assert front(np.stack([x, 1.0 / x], axis=1), ["high", "low"]).sum() == 1
