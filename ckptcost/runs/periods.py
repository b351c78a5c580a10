"""How often a source renews its value, as seen: published periods are wrong by driver and by board.

Only readings in the quick pace tell: the time from the first to the last change in a stretch of
them, over the changes between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ckptcost.runs.lines import Values

ENOUGH = 5
"""changes before anything is said"""
MOST = 500
"""changes after which nobody looks any more: this costs about 0.1 us a channel and tick"""


class Renewals:
    """Of one meter's channels."""

    __slots__ = ("_changed_ns", "_counts", "_last", "_last_ns", "_spans_ns", "_watching")

    def __init__(self, channels: int) -> None:
        self._last: Values | None = None
        self._last_ns = 0
        self._changed_ns: list[int] = [-1] * channels
        """when it changed last within this stretch; -1: not yet"""
        self._spans_ns = [0] * channels
        self._counts = [0] * channels
        self._watching = channels > 0

    def see(self, t_ns: int, values: Values, apart_ns: int) -> None:
        """A reading; further than apart_ns from the one before it begins a new stretch."""
        last, self._last = self._last, values
        gap_ns, self._last_ns = t_ns - self._last_ns, t_ns
        if not self._watching:
            return
        if last is None or gap_ns > apart_ns:
            self._changed_ns = [-1] * len(self._changed_ns)
            return
        changed = self._changed_ns
        for channel, (now, before) in enumerate(zip(values, last, strict=True)):
            if now != before:
                if now - before != now - before:  # NaN: it did not answer
                    changed[channel] = -1
                    continue
                if changed[channel] >= 0:
                    self._spans_ns[channel] += t_ns - changed[channel]
                    self._counts[channel] += 1
                changed[channel] = t_ns
        self._watching = max(self._counts) < MOST

    def periods_s(self) -> tuple[float, ...]:
        """Mean time between changes; NaN where there were too few."""
        return tuple(
            round(span / count * 1e-9, 6) if count >= ENOUGH else math.nan
            for span, count in zip(self._spans_ns, self._counts, strict=True)
        )


def differ(
    before: Sequence[Sequence[float]], now: Sequence[Sequence[float]], by: float = 0.1
) -> bool:
    """Is there something new to say?"""
    if not before:
        return any(math.isfinite(period) for of_meter in now for period in of_meter)
    return any(
        math.isfinite(new) and not abs(new - old) <= by * old
        for row, of_meter in zip(before, now, strict=True)
        for old, new in zip(row, of_meter, strict=True)
    )
