"""A value from repeated rounds with its interval: means by Student's t, medians by ranks, and a
code where rounds are too few.

    mean        x +- t * s/sqrt(n)             t: Student's, n-1 degrees of freedom
    median      from the (r+1)-th smallest to the (r+1)-th largest value,
                r the largest with P(Bin(n, 1/2) <= r) <= 2.5 %
    straggler   max over ranks / mean over ranks, in the mean of the rounds

An interval holds the truth in 95 of 100 recordings like this one. A median's holds whatever law the
values follow; below six values there is none. Rounds are taken to be independent: storage that is
slow for an hour makes all rounds of that hour slow, and no interval knows of the next hour.

>>> round(student_t(4), 4)
2.7764
>>> [round(part, 2) for part in mean_of([300.0, 310.0, 305.0, 309.0])[:3]]
[306.0, 298.77, 313.23]

One evaluation of 30 s moves nothing:

>>> median_of([0.8, 0.81, 0.79, 0.8, 30.0, 0.82, 0.8])[:3]
(0.8, 0.79, 30.0)
>>> mean_of([300.0])
Estimate(value=300.0, low=None, high=None, stderr=None, n=1, why='ONE_ROUND')

Source: Abramowitz & Stegun, 26.7.3 and 26.7.4. Proof, in tests/first/core/test_estimates.py:
test_student_is_scipys, test_a_medians_ranks_are_the_binomials, and 2,000 samples whose truth is
known.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, comb, floor, isfinite, nan, pi, sqrt, tan
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

CONFIDENCE: Final = 0.95
_EXACT: Final = 1000
"""values up to which the ranks of a median's interval are counted out; beyond, the normal law is
right to one rank"""


class Estimate(NamedTuple):
    """A value with its 95 % interval. Unknown is NaN; an interval that rounds are too few for is
    None; `why` has the code of either."""

    value: float
    low: float | None = None
    high: float | None = None
    """infinite where the rounds set no upper end"""
    stderr: float | None = None
    n: int = 0
    why: str = ""

    @property
    def known(self) -> bool:
        return self.value == self.value

    def wider(self, low: float, high: float) -> Estimate:
        """With room for what the meter itself leaves open; a value without an interval gets none
        from that."""
        if self.low is None or self.high is None or not (isfinite(low) and isfinite(high)):
            return self
        return self._replace(low=min(self.low, low), high=max(self.high, high))


def absent(why: str, n: int = 0) -> Estimate:
    return Estimate(nan, n=n, why=why)


@lru_cache(maxsize=512)
def student_t(freedom: int, confidence: float = CONFIDENCE) -> float:
    """How many standard errors reach so far to either side, by the series for whole degrees of
    freedom (Abramowitz & Stegun 26.7.3-4).

    >>> round(student_t(4), 6), round(student_t(1), 4)
    (2.776445, 12.7062)
    """
    if freedom < 1:
        raise ValueError(f"no interval with {freedom} degrees of freedom")
    odd = freedom % 2
    j = np.arange(1, (freedom - 2 - odd) // 2 + 1)
    each = 2.0 * j / (2.0 * j + 1.0) if odd else (2.0 * j - 1.0) / (2.0 * j)
    low, high = 0.0, pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        cosine, sine = float(np.cos(angle)), float(np.sin(angle))
        series = 1.0 + float(np.cumprod(each * cosine**2).sum())
        inside = (
            sine * series
            if not odd
            else 2 / pi * (angle + (sine * cosine * series if freedom > 1 else 0.0))
        )
        low, high = (angle, high) if inside < confidence else (low, angle)
    return tan((low + high) / 2) * sqrt(freedom)


def rounds_of(*given: ArrayLike) -> list[Floats]:
    """Columns of numbers, one value a round."""
    columns = [np.asarray(each, dtype=np.float64) for each in given]
    if len({column.shape for column in columns}) != 1 or columns[0].ndim != 1:
        raise ValueError("one value a round, of each")
    if not all(np.isfinite(column).all() for column in columns):
        raise ValueError("a round without a value is no round: leave it out")
    return columns


def about(value: float, stderr: float, freedom: int, n: int) -> Estimate:
    """A value and what Student's t says of it."""
    reach = student_t(freedom) * stderr
    return Estimate(value, value - reach, value + reach, stderr, n)


def mean_of(values: ArrayLike) -> Estimate:
    """A mean over rounds; one round has no interval.

    >>> [round(part, 3) for part in mean_of([9.0, 10.0, 11.0])[:3]]
    [10.0, 7.516, 12.484]
    """
    (seen,) = rounds_of(values)
    n = len(seen)
    if n < 2:
        return Estimate(float(seen[0]), n=1, why="ONE_ROUND") if n else absent("NO_ROUNDS")
    return about(float(seen.mean()), float(seen.std(ddof=1)) / sqrt(n), n - 1, n)


def straggler_of(rounds: Sequence[Sequence[float]]) -> Estimate:
    """The slowest rank's time over the mean rank's, in the mean of the rounds that several ranks
    took part in.

    >>> straggler_of([[1.0, 1.0, 1.3], [1.0, 1.0, 1.0]]).value
    1.0909090909090908
    """
    factors = [
        max(times) * len(times) / sum(times)
        for times in rounds
        if len(times) > 1 and sum(times) > 0
    ]
    return mean_of(factors) if factors else absent("ONE_RANK" if rounds else "NO_ROUNDS")


def median_of(values: ArrayLike, confidence: float = CONFIDENCE) -> Estimate:
    """The median, between the two ranks that hold it in so many of a hundred samples whatever their
    law is; below six there are none.

    >>> median_of([5.0, 1.0, 2.0, 4.0, 3.0, 9.0, 7.0])[:3]
    (4.0, 1.0, 9.0)
    """
    (seen,) = rounds_of(values)
    seen = np.sort(seen)
    n = len(seen)
    if n == 0:
        return absent("NO_ROUNDS")
    rank = _rank(n, confidence)
    middle = float(np.median(seen))
    if rank is None:
        return Estimate(middle, n=n, why="FEW_ROUNDS")
    return Estimate(middle, float(seen[rank]), float(seen[n - 1 - rank]), None, n)


@lru_cache(maxsize=1024)
def _rank(n: int, confidence: float) -> int | None:
    """How many values lie outside on either side."""
    tail = (1.0 - confidence) / 2
    if n > _EXACT:
        return floor(n / 2 - student_t(n - 1, confidence) * sqrt(n) / 2 - 0.5)
    below, rank = 0.0, None
    for k in range(ceil(n / 2)):
        below += comb(n, k) / 2**n
        if below > tail:
            break
        rank = k
    return rank
