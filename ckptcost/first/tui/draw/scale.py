"""Where a value stands on an axis, and over which range an axis runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ckptcost.first.present.chart import Chart
from ckptcost.first.tui.draw.points import Points, ends_of

_MANTISSAS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""tops of an axis from zero: coarse enough to stay when the data move a little"""
_TINY = 1e-200


class Scale(NamedTuple):
    """A range, linear or logarithmic, seen as 0 to 1."""

    low: float
    high: float
    log: bool = False

    def at(self, value: float) -> float:
        """0 at the low end, 1 at the high one; beyond them outside of the range.

        >>> Scale(0.0, 4.0).at(1.0), Scale(1.0, 100.0, log=True).at(10.0)
        (0.25, 0.5)
        """
        if self.log:
            start = math.log10(self.low)
            return (math.log10(max(value, _TINY)) - start) / (math.log10(self.high) - start)
        return (value - self.low) / (self.high - self.low)

    def value(self, at: float) -> float:
        """The value at a place from 0 to 1.

        >>> Scale(1.0, 100.0, log=True).value(0.5)
        10.0
        """
        if self.log:
            start = math.log10(self.low)
            return float(10.0 ** (start + at * (math.log10(self.high) - start)))
        return self.low + at * (self.high - self.low)

    def cell(self, value: float, cells: int, dots: int = 2) -> int:
        """The cell in which a value stands, of `cells` that hold `dots` dots each."""
        return math.floor(self.at(value) * (cells * dots - 1) + 0.5) // dots


def top_from_zero(value: float) -> float:
    """The end of an axis that begins at zero.

    >>> top_from_zero(5204.0), top_from_zero(0.97), top_from_zero(0.0)
    (6000.0, 1.0, 1.0)
    """
    if not value > _TINY or math.isinf(value):
        return 1.0
    power = float(10.0 ** math.floor(math.log10(value)))
    return next((m * power for m in _MANTISSAS if m * power >= value * (1 - 1e-9)), 10.0 * power)


def round_range(low: float, high: float) -> tuple[float, float]:
    """A range with round ends around the data; from zero where the data come near to it.

    >>> round_range(0.617, 0.987), round_range(3.0, 97.0), round_range(5.0, 5.0)
    ((0.6, 1.0), (0.0, 100.0), (0.0, 5.0))
    """
    if low == high:
        return (0.0, top_from_zero(high)) if high >= 0 else (-top_from_zero(-low), 0.0)
    if 0 <= low <= 0.25 * high:
        return 0.0, top_from_zero(high)
    raw = (high - low) / 10
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1.0, 2.0, 5.0) if m * power >= raw), 10 * power)
    begin, end = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return (float(f"{begin:.12g}"), float(f"{end:.12g}")) if begin < end else (low, high)


def _asked(asked: tuple[float, float] | None, found: tuple[float, float], log: bool) -> Scale:
    """The range that was asked for, with what it leaves open from the data."""
    low, high = (
        wanted if math.isfinite(wanted) and (wanted > 0 or not log) else end
        for wanted, end in zip(asked or found, found, strict=True)
    )
    if not high - low > 1e-12 * max(abs(low), abs(high)) + _TINY:  # too narrow to be told apart
        high = low * 10 if log else low + (abs(low) or 1.0)
    return Scale(low, high, log)


def _padded(
    ends: tuple[float, float] | None, log: bool, share: float
) -> tuple[float, float] | None:
    """Room around dots, so that none sits on an axis."""
    if ends is None:
        return None
    if log:
        low, high = math.log10(ends[0]), math.log10(ends[1])
        room = max((high - low) * share, 0.15)
        return float(10 ** (low - room)), float(10 ** (high + room))
    room = (ends[1] - ends[0]) * share or abs(ends[1]) * share or 1.0
    low = ends[0] - room
    return (0.0 if low < 0 <= ends[0] else low), ends[1] + room


def x_scale(chart: Chart, points: Sequence[Points]) -> Scale | None:
    """None where there is nothing to draw."""
    import numpy as np

    ends = ends_of({id(each.xs): each.xs for each in points}.values(), chart.x_log)
    dots = ends_of([np.array([dot.x for dot in chart.dots], np.float64)], chart.x_log)
    found = _both(ends, _padded(dots, chart.x_log, 0.06))
    return None if found is None else _asked(chart.x_range, found, chart.x_log)


def y_scale(chart: Chart, points: Sequence[Points], x: Scale) -> Scale | None:
    """None where no value within the range of x can be drawn."""
    import numpy as np

    seen = [each.within(x.low, x.high) for each in points]
    sides = {id(side): side for each in seen for side in (each.lows, each.highs)}
    dots = [dot.y for dot in chart.dots if x.low <= dot.x <= x.high]
    found = _both(
        ends_of(sides.values(), chart.y_log),
        _padded(ends_of([np.array(dots, np.float64)], chart.y_log), chart.y_log, 0.1),
    )
    return None if found is None else _asked(chart.y_range, _round_ends(found, chart), chart.y_log)


def _round_ends(found: tuple[float, float], chart: Chart) -> tuple[float, float]:
    low, high = found
    if chart.y_log:
        return found if low < high else (low / 2, high * 2)
    begin, end = chart.y_range or (math.nan, math.nan)
    return (0.0, top_from_zero(high)) if begin == 0 and math.isnan(end) else round_range(low, high)


def _both(
    one: tuple[float, float] | None, other: tuple[float, float] | None
) -> tuple[float, float] | None:
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])
