"""Columns of numbers take a shorter way to the same canonical text."""

from __future__ import annotations

import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.report.canonical import canonical

_floats = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(_floats, min_size=65, max_size=120))
def test_a_long_column_of_floats(values):
    assert canonical(values).encode() == rfc8785.dumps(values)


@given(
    st.lists(
        st.one_of(_floats, st.none(), st.integers(-(2**53) + 1, 2**53 - 1), st.booleans()),
        min_size=65,
        max_size=90,
    )
)
def test_a_long_column_with_other_things_in_it(values):
    assert canonical({"column": values}).encode() == rfc8785.dumps({"column": values})
