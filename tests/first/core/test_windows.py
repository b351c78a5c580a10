"""Windows beside each other: against counting instants one by one."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.core.channels import Mark
from ckptcost.first.core.phases import windows_of
from ckptcost.first.core.windows import (
    covered_s,
    extent,
    of_each,
    quiet_before,
    timeline,
    union,
    without,
)

SPANS = st.lists(st.none() | st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=7)
"""of whole seconds, so that each second is in a span or not; some end before they begin"""


def seconds(spans) -> set[int]:
    return {second for span in spans if span for second in range(*span)}


@given(SPANS)
def test_the_timeline_is_every_second_and_who_is_open_in_it(spans):
    pieces = timeline([[span] for span in spans])
    assert all(piece.begin_s < piece.end_s for piece in pieces)
    assert all(one.end_s <= two.begin_s for one, two in pairwise(pieces))
    seen = {second: piece.open for piece in pieces for second in range(piece.begin_s, piece.end_s)}
    for second in range(-1, 21):
        inside = tuple(n for n, span in enumerate(spans) if span and span[0] <= second < span[1])
        assert seen.get(second, ()) == inside
    assert covered_s(spans) == len(seen)
    for place, own in enumerate(of_each(pieces, len(spans))):
        assert sum(piece.end_s - piece.begin_s for piece in own) == len(seconds([spans[place]]))


@given(SPANS)
def test_the_union_counts_no_second_twice(spans):
    merged = union(spans)
    assert seconds(merged) == seconds(spans)
    assert all(one[1] < two[0] for one, two in pairwise(merged))
    assert covered_s(spans) == len(seconds(spans)) == sum(end - begin for begin, end in merged)


@given(SPANS, SPANS)
def test_without_is_the_difference_of_sets(spans, holes):
    assert seconds(without(spans, holes)) == seconds(spans) - seconds(holes)


@given(SPANS, st.integers(0, 20), st.integers(-2, 10), st.integers(1, 6), st.integers(1, 8))
def test_the_quiet_stretch_by_looking_at_every_second(spans, begin, since, least, most):
    busy = seconds(spans)
    found = quiet_before(union(spans), begin, since, least, max(most, least))
    end, plain = begin, None
    while end > since and plain is None:
        start = end
        while start > since and start - 1 not in busy:
            start -= 1
        if end - start >= least:
            plain = (max(start, end - max(most, least)), end)
        end = min(start, end - 1)
    assert found == plain


def test_a_window_of_unknown_end_is_open_until_its_last_mark():
    def only(*marks):
        return windows_of([Mark(t_s, name, "a") for name, t_s in marks])[0]

    assert extent(only(("begin", 1.0), ("written", 4.0))) == (1.0, 4.0)
    assert extent(only(("begin", 1.0), ("returned", 2.0), ("durable", 3.0), ("end", 9.0))) == (
        1.0,
        3.0,
    )
    assert extent(only(("begin", 1.0), ("synced", 2.0), ("returned", 5.0))) == (1.0, 5.0)
    assert extent(only(("written", 4.0))) is None


def test_touching_windows_do_not_share_an_instant():
    assert [piece.open for piece in timeline([[(0.0, 1.0)], [(1.0, 2.0)]])] == [(0,), (1,)]


@pytest.mark.parametrize("begin", [14.0, 14.5, 15.0])
def test_a_pause_too_short_is_not_a_reference(begin):
    assert quiet_before([(10.0, 14.0), (14.5, 20.0)], begin, since_s=0.0) == (0.0, 10.0)
    assert quiet_before([(0.2, 30.0)], begin, since_s=0.0) is None
