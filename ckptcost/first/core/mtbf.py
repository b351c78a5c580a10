"""The mean time between failures as counted, with its exact interval, and whether failures come
evenly: the shape of a Weibull law."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import exp, inf, lgamma, log, nan, sqrt
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from ckptcost.first.core.estimates import CONFIDENCE, Estimate, absent

FEW: Final = 3
"""failures below which the likelihood's ratio is not near enough to its law for an interval"""
_Z: Final = 1.959963984540054
"""a normal law is within so many deviations 95 times of 100"""
_WIDEST: Final = 1e9
"""a shape beyond is no spread at all"""


def mtbf_of(failures: int, exposure_s: float) -> Estimate:
    """Time under observation over failures in it, which come at an even rate (Poisson): Garwood's
    interval.

    Without a failure the value has no end, and the lower end is known. NO_EXPOSURE, NO_FAILURES.

    >>> [
    ...     round(part / 3600, 2) for part in mtbf_of(419, 54 * 86400.0)[:3]
    ... ]  # hours, of Llama 3's 419 interruptions in 54 days
    [3.09, 2.81, 3.41]
    """
    if failures < 0:
        raise ValueError("failures are a count")
    if not 0 < exposure_s < inf:
        return absent("NO_EXPOSURE", failures)
    fewest, most = poisson_interval(failures)
    if not failures:
        return Estimate(inf, exposure_s / most, inf, n=0, why="NO_FAILURES")
    return Estimate(exposure_s / failures, exposure_s / most, exposure_s / fewest, n=failures)


@lru_cache(maxsize=4096)
def poisson_interval(count: int) -> tuple[float, float]:
    """Garwood's: the lowest and the highest mean under which a count so far off is no rarer than
    2.5 %.

    >>> [round(end, 3) for end in poisson_interval(10)], round(poisson_interval(0)[1], 3)
    ([4.795, 18.39], 3.689)
    """
    tail = (1.0 - CONFIDENCE) / 2
    low = _mean_where(lambda mean: _at_least(count, mean), tail, count, -_Z) if count else 0.0
    high = _mean_where(lambda mean: -_at_most(count, mean), -tail, count + 1, _Z)
    return low, high


def _mean_where(rising: Callable[[float], float], target: float, near: float, away: float) -> float:
    """Bisection around Wilson and Hilferty's guess."""
    guess = near * max(1.0 - 1.0 / (9.0 * near) + away / (3.0 * sqrt(near)), 0.01) ** 3
    # narrow, so that a tail is summed where its terms fall from the first on
    low, high = (guess * (1.0 + side * 0.1 / sqrt(near)) for side in (-1.0, 1.0))
    while rising(low) > target:
        low /= 2.0
    while rising(high) < target:
        high *= 2.0
    while high - low > 1e-13 * high:
        middle = (low + high) / 2.0
        if not low < middle < high:
            break
        low, high = (middle, high) if rising(middle) < target else (low, middle)
    return (low + high) / 2.0


def _at_most(count: int, mean: float) -> float:
    """Chance of so many or fewer: from the count downwards, where the terms vanish soonest."""
    term = total = exp(count * log(mean) - mean - lgamma(count + 1.0))
    for k in range(count, 0, -1):
        term *= k / mean
        total += term
        if term < 1e-17 * total:
            break
    return total


def _at_least(count: int, mean: float) -> float:
    """Chance of so many or more, upwards."""
    term = total = exp(count * log(mean) - mean - lgamma(count + 1.0))
    while term > 1e-17 * total:
        count += 1
        term *= mean / count
        total += term
    return total


def shape_of(gaps_s: ArrayLike, open_s: ArrayLike = ()) -> Estimate:
    """Shape of the Weibull law that gaps between failures follow, by maximum likelihood.

    The interval is the ratio's of the likelihood with the scale integrated out. With the scale at
    its best, as for the value, few failures seem to say more than they do: of intervals from 5 only
    91 in 100 would hold the truth.

    `gaps_s` ended with a failure; `open_s` were still going when nobody looked any more
    (right-censored), and say that a gap was longer. Below 1 failures come in bursts, 1 is an even
    rate, above 1 they come in turn. Gaps of no length are left out. NO_FAILURES, ONE_FAILURE,
    NO_SPREAD (all failures at the longest time): no value; FEW_FAILURES: no interval.

    >>> [round(part, 3) for part in shape_of([50.0, 210.0, 90.0, 340.0, 130.0, 12.0], [400.0])[:3]]
    [1.0, 0.368, 1.658]
    """
    gaps, still = (np.atleast_1d(np.asarray(each, dtype=np.float64)) for each in (gaps_s, open_s))
    for each in (gaps, still):
        if not (np.isfinite(each) & (each >= 0)).all():
            raise ValueError("a gap is a time: finite and not negative")
    gaps, still = gaps[gaps > 0], still[still > 0]
    failed = len(gaps)
    if failed < 2:
        return absent("ONE_FAILURE" if failed else "NO_FAILURES", failed)
    logs = np.log(np.concatenate([gaps, still]))
    logs -= logs.max()  # times as shares of the longest: their powers do not overflow
    mean_log = float(logs[:failed].mean())
    if mean_log > -1.0 / _WIDEST:
        return absent("NO_SPREAD", failed)

    def past_top(k: float, shapes: int) -> float:
        """How steeply the likelihood falls, a failure; with one shape fewer than failures the scale
        is integrated out."""
        powers = np.exp(k * logs)
        return float((powers * logs).sum() / powers.sum()) - shapes / failed / k - mean_log

    def likelihood(k: float) -> float:
        return (
            (failed - 1) * log(k)
            - failed * log(float(np.exp(k * logs).sum()))
            + k * failed * mean_log
        )

    value = _where(lambda k: past_top(k, failed), 1.0)
    if failed < FEW:
        return Estimate(value, n=failed, why="FEW_FAILURES")
    middle = _where(lambda k: past_top(k, failed - 1), value)
    least = likelihood(middle) - _Z**2 / 2.0
    low = _where(lambda k: likelihood(k) - least, middle / 2.0, highest=middle)
    return Estimate(
        value,
        low,
        _where(lambda k: least - likelihood(k), middle * 2.0, lowest=middle),
        None,
        failed,
    )


def _where(
    rising: Callable[[float], float], near: float, lowest: float = nan, highest: float = nan
) -> float:
    """Where a rising function of a shape is 0; bounds that are given lie on their sides of it."""
    low, high = near if lowest != lowest else lowest, near if highest != highest else highest
    while rising(low) > 0:
        low /= 2.0
    while rising(high) < 0:
        high *= 2.0
    while high - low > 1e-13 * high:
        middle = sqrt(low * high)
        if not low < middle < high:
            break
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return sqrt(low * high)
