"""When one rank's part is safe: what each combination of its marks proves, and what none of them
does."""

from __future__ import annotations

import pytest

from ckptcost.first.core.windows import Span


@pytest.mark.parametrize(
    ("at_s", "safe_s"),
    [
        ({"durable": 9.0}, 9.0),
        ({"durable": 9.0, "synced": 7.0}, 9.0),
        ({"durable": 6.0, "synced": 7.0}, 6.0),  # who says so has the last word
        (
            {"durable": 6.0, "committed": 8.0},
            6.0,
        ),  # a rename makes nothing safe, and nothing unsafe
        ({"durable": 6.0, "synced": 5.0, "committed": 8.0}, 6.0),
        ({"synced": 7.0}, 7.0),
        ({"synced": 7.0, "committed": 8.0}, 8.0),
        ({"synced": 7.0, "committed": 6.0}, 7.0),
        ({"committed": 8.0}, None),
        ({"begin": 1.0, "written": 2.0, "returned": 3.0, "end": 4.0}, None),
    ],
)
def test_what_proves_it(at_s, safe_s):
    span = Span(0, at_s)
    assert span.durable_s == safe_s
    assert span.is_unsynced == ("committed" in at_s and safe_s is None)
