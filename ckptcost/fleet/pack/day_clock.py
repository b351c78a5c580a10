"""Run time, Unix time and UTC days of one recording, along the pairs of clocks that it has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ckptcost.core.windows import Stretch
from ckptcost.runs.clocks import S

DAY_NS: Final = 86_400 * S
CLOCK_SET_S: Final = 3600.0
"""by so much the wall clock does not drift within a minute: it was set, and the time between did
not pass"""


def day_name(day: int) -> str:
    """
    >>> day_name(20_454)
    '2026-01-01'
    """
    return datetime.fromtimestamp(day * 86_400, UTC).strftime("%Y-%m-%d")


class Clock:
    """Run time to Unix time and to days, along the pairs that the run has."""

    def __init__(self, wall: Sequence[tuple[float, float]]) -> None:
        """`wall`: run time and Unix time, as `Run.wall`."""
        at_s, wall_s = np.array(wall, float).T
        self._first_ns = round(float(wall_s[0]) * S)
        since_s = wall_s - wall_s[0]
        jumps = np.flatnonzero(np.abs(np.diff(since_s) - np.diff(at_s)) > CLOCK_SET_S) + 1
        until_s = since_s[jumps - 1] + at_s[jumps] - at_s[jumps - 1]
        self._at_s, self._since_s = (
            np.insert(at_s, jumps, at_s[jumps]),
            np.insert(since_s, jumps, until_s),
        )

    def ns(self, t_s: float) -> int:
        at_s, since_s = self._at_s, self._since_s
        if t_s <= at_s[0]:
            return self._first_ns + round((float(since_s[0]) + t_s - float(at_s[0])) * S)
        if t_s >= at_s[-1]:
            return self._first_ns + round((float(since_s[-1]) + t_s - float(at_s[-1])) * S)
        return self._first_ns + round(float(np.interp(t_s, at_s, since_s)) * S)

    def day(self, t_s: float) -> int:
        """Since 1970."""
        return self.ns(t_s) // DAY_NS

    def midnights_s(self, days: NDArray[np.int64]) -> NDArray[np.float64]:
        """When each began, in run time: a clock that is set back does not begin a day twice."""
        asked_s = (days * DAY_NS - self._first_ns) / S
        since_s = np.maximum.accumulate(self._since_s)
        inside = np.interp(asked_s, since_s, self._at_s)
        before, behind = asked_s < since_s[0], asked_s > since_s[-1]
        found: NDArray[np.float64] = np.where(
            before,
            self._at_s[0] + asked_s - since_s[0],
            np.where(behind, self._at_s[-1] + asked_s - self._since_s[-1], inside),
        )
        return found

    def days(self, begin_s: float, end_s: float) -> dict[int, Stretch]:
        """What lies in each day, in run time; a clock that is set forward passes over days."""
        first = self.day(begin_s)
        midnights = self.midnights_s(np.arange(first + 1, self.day(end_s) + 1, dtype=np.int64))
        edges = np.clip(np.concatenate([[begin_s], midnights, [end_s]]), begin_s, end_s)
        return {
            first + int(n): (float(edges[n]), float(edges[n + 1]))
            for n in np.flatnonzero(np.diff(edges) > 0)
        }
