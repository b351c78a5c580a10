"""A statement's rows in the order of time, for formats whose counters grow over a run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.report.statement import SERIES_OF, Statement, utc

Ms = NDArray[np.int64]
Amounts = NDArray[np.float64]


class RowsInTime(NamedTuple):
    """Those of one component, or of all, in the order of their ends. Times are ms since 1970."""

    start: Ms
    end: Ms
    amounts: dict[str, Amounts]
    """by quantity, and of checkpoints; NaN is unknown"""


def rows_in_time(statement: Statement) -> dict[str, RowsInTime]:
    """By component, and of all of them under an empty name; none without a series."""
    series = statement.series
    if series is None or not series.start:
        return {}
    begins = {text: ms(text) for text in set(series.start)}
    start = np.array([begins[text] for text in series.start], np.int64)
    end = start + np.rint(np.array(series.duration_s) * 1000).astype(np.int64)
    amounts = {
        what: np.array(getattr(series, column), np.float64)
        for what, column in {**SERIES_OF, "checkpoints": "checkpoints"}.items()
    }
    component, order = np.array(series.component), np.lexsort((start, end))
    found = {}
    for name in ("", *set(series.component)):
        at = order[component[order] == name] if name else order
        found[name] = RowsInTime(start[at], end[at], {what: of[at] for what, of in amounts.items()})
    return found


def ms(text: str) -> int:
    """An instant of a document in ms since 1970.

    >>> ms("2026-10-01T00:30:00.250Z")
    1790814600250
    """
    return round(utc(text).timestamp() * 1000)
