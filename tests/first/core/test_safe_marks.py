"""When a rank's bytes count as safe: what each set of marks says."""

from __future__ import annotations

import pytest

from ckptcost.first.core.windows import Span


@pytest.mark.parametrize(
    ("marks", "durable", "is_unsynced"),
    [
        ("", None, False),
        ("synced", 1.0, False),
        ("committed", None, True),
        ("synced committed", 2.0, False),
        ("committed synced", 2.0, False),
        ("committed durable", 2.0, False),
        ("durable committed synced", 1.0, False),
        ("written", None, False),
    ],
)
def test_a_ranks_bytes_are_safe_when_somebody_says_so(marks, durable, is_unsynced):
    span = Span(0, {name: 1.0 + n for n, name in enumerate(marks.split())})
    assert (span.durable_s, span.is_unsynced) == (durable, is_unsynced)
