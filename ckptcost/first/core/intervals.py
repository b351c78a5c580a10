"""Intervals: what is known of a quantity is that it lies between two ends, and arithmetic keeps
that true.

For every x in X and y in Y, x+y is in X+Y, and so on for each operation and whole powers; an end
may be infinite. For a function that never falls, the image of the ends is the image.

    [a, b] + [c, d] = [a + c, b + d]
    [a, b] x [c, d] = [least, greatest of ac, ad, bc, bd]
    [a, b] / [c, d] = [a, b] x [1/d, 1/c]          where 0 is not inside [c, d]
    1 / [0, d]      = [1/d, without bound]

>>> power = Interval(15.0, 20.0) / Interval(2.75, 2.85)  # kWh, h
>>> round(power.low, 2), round(power.high, 2)
(5.26, 7.27)
>>> 1.0 / Interval(0.0, 0.01)
Interval(low=100.0, high=inf)

Where a quantity stands twice in a formula, the result is wider than need be, because its two places
are taken to vary apart; so each law of an audit has each quantity once.

>>> t, i = Interval(50.0, 100.0), Interval(3600.0, 10_800.0)
>>> wide, narrow = t / (i + t), 1.0 / (1.0 + i / t)  # the same share of time
>>> narrow.within(wide), wide.within(narrow)
(True, False)

Ends are rounded to nearest as usual, not outwards; comparisons allow a part in 1e9. An interval
does not say what is likely inside it: for that there are draws.

Source: R. E. Moore, Interval Analysis, 1966.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

LARGEST = sys.float_info.max


@dataclass(frozen=True, slots=True)
class Interval:
    """All numbers from `low` to `high`.

    >>> Interval(20.0, 40.0) * Interval(2.0, 3.0), 2000.0 / Interval(20.0, 40.0)
    (Interval(low=40.0, high=120.0), Interval(low=50.0, high=100.0))
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"no interval from {self.low} to {self.high}")
        # a product beyond the largest float: the interval starts at that float, so that inf - inf
        # cannot occur
        object.__setattr__(self, "low", float(min(self.low, LARGEST)))
        object.__setattr__(self, "high", float(max(self.high, -LARGEST)))

    def __add__(self, other: Interval | float) -> Interval:
        other = interval(other)
        return Interval(self.low + other.low, self.high + other.high)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Interval | float) -> Interval:
        return self + -interval(other)

    def __mul__(self, other: Interval | float) -> Interval:
        other = interval(other)
        ends = [_product(x, y) for x in (self.low, self.high) for y in (other.low, other.high)]
        return Interval(min(ends), max(ends))

    def __truediv__(self, other: Interval | float) -> Interval:
        """A divisor may start or end at zero, then the quotient has no bound; one with zero inside
        it has no quotient."""
        other = interval(other)
        if other.low < 0 < other.high or other.low == other.high == 0:
            raise ZeroDivisionError("the divisor can be zero")
        if other.low == 0 or other.high == 0:
            return self._over_half_line(other)
        ends = [_quotient(x, y) for x in (self.low, self.high) for y in (other.low, other.high)]
        return Interval(min(ends), max(ends))

    def _over_half_line(self, other: Interval) -> Interval:
        """Divided by (0, h] or [l, 0): each sign of the numerator reaches to one infinity."""
        if other.high == 0:
            return -(self / -other)
        return Interval(
            -math.inf if self.low < 0 else _quotient(self.low, other.high),
            math.inf if self.high > 0 else _quotient(self.high, other.high),
        )

    def __radd__(self, other: float) -> Interval:
        return self + other

    def __rsub__(self, other: float) -> Interval:
        return interval(other) - self

    def __rmul__(self, other: float) -> Interval:
        return self * other

    def __rtruediv__(self, other: float) -> Interval:
        return interval(other) / self

    def power(self, exponent: int) -> Interval:
        """A whole power; an even one folds an interval that straddles zero.

        >>> Interval(-2.0, 3.0).power(2), Interval(2.0, 4.0).power(-1)
        (Interval(low=0.0, high=9.0), Interval(low=0.25, high=0.5))
        """
        if exponent < 0:
            return interval(1.0) / self.power(-exponent)
        ends = [_power_of(self.low, exponent), _power_of(self.high, exponent)]
        inside = exponent > 0 and exponent % 2 == 0 and self.low < 0 < self.high
        return Interval(0.0 if inside else min(ends), max(ends))

    def rising(self, function: Callable[[float], float]) -> Interval:
        """The image under a function that never falls."""
        return Interval(function(self.low), function(self.high))

    def meets(self, other: Interval, slack: float = 1e-9) -> bool:
        """Whether some number is in both, rounding of the last bits aside."""
        return self.low <= other.high + slack * abs(
            other.high
        ) and other.low <= self.high + slack * abs(self.high)

    def within(self, other: Interval, slack: float = 1e-9) -> bool:
        """Whether every number of it is in the other."""
        return other.low - slack * abs(
            other.low
        ) <= self.low and self.high <= other.high + slack * abs(other.high)

    def common(self, other: Interval) -> Interval:
        """The numbers in both, which must meet.

        >>> Interval(1.0, 3.0).common(Interval(2.0, 5.0))
        Interval(low=2.0, high=3.0)
        """
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Interval(min(low, high), max(low, high))


def interval(value: Interval | float) -> Interval:
    """A number as the interval that holds nothing else."""
    return value if isinstance(value, Interval) else Interval(value, value)


def _product(x: float, y: float) -> float:
    # an end at infinity stands for all finite numbers below it, and zero times those is zero
    return 0.0 if x == 0 or y == 0 else x * y


def _quotient(x: float, y: float) -> float:
    return (
        0.0 if math.isinf(y) else x / y
    )  # what a growing divisor tends to; the other ends reach any infinity


def _power_of(x: float, exponent: int) -> float:
    try:
        return float(x**exponent)
    except OverflowError:
        return -math.inf if x < 0 and exponent % 2 else math.inf
