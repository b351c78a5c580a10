"""Groups as matrices, held against a dictionary of lists."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.core import groups
from ckptcost.first.core.groups import blocks, lower_median


@given(st.lists(st.integers(0, 12), max_size=60), st.sampled_from([1, 3, 1000]))
def test_every_row_is_in_its_group_once_and_in_order(group, at_once):
    plain = defaultdict(list)
    for row, each in enumerate(group):
        plain[each].append(row)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "AT_ONCE", at_once)
        found = [
            (each, line)
            for which, rows in blocks(np.array(group, dtype=np.int64), 13)
            for each, line in zip(which.tolist(), rows.tolist(), strict=True)
        ]
    assert len(found) == len(plain)
    assert dict(found) == plain


@pytest.mark.parametrize("group", [[0, 3], [-1, 0]])
def test_a_group_that_is_none_is_refused(group):
    with pytest.raises(ValueError, match="not one of 3"):
        list(blocks(np.array(group), 3))


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=9))
def test_a_lower_median_is_one_of_the_values(values):
    assert lower_median(np.array([values]))[0] == sorted(values)[(len(values) - 1) // 2]
