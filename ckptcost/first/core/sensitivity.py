"""Which inputs decide a result: elasticities, and the share of its spread that each uncertain input
explains.

Pure arithmetic on a function of one number and on arrays of draws; what the numbers mean is told by
`jobs.sensitivity`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STEP = 1e-3
"""of ln(input): the error of a central difference is STEP^2/6 times a third derivative (2e-7), that
of rounding 1e-16/STEP (1e-13); an optimum that a search finds to 1e-9 still leaves 1e-6"""
KINK = 0.05
"""slopes on both sides that differ by more are a kink: a smooth result would need a second
logarithmic derivative of 50"""
DEGREE = 4
"""of the curve in each input that a result is fitted with"""

Result = Callable[[float], float]


class Slope(NamedTuple):
    """d ln(result)/d ln(input), and the same seen from below and from above."""

    elasticity: float
    below: float
    above: float

    @property
    def is_kink(self) -> bool:
        return abs(self.above - self.below) > KINK


def elasticity(
    result: Result, value: float, least: float = 0.0, most: float = math.inf, step: float = STEP
) -> Slope:
    """Per cent of the result for one per cent of the input, by differences of logarithms; one-sided
    at a limit of the input.

    >>> slope = elasticity(lambda x: 5.0 * x**-0.5, 300.0)
    >>> round(slope.elasticity, 9)
    -0.5
    >>> slope = elasticity(lambda x: min(x, 7.0), 7.0)  # 1 below, 0 above
    >>> round(slope.below, 6), round(slope.above, 6), slope.is_kink
    (1.0, 0.0, True)
    """
    here = _log(result(value))

    def at(steps: float) -> float:
        return _log(result(value * math.exp(steps * step)))

    if value * math.exp(-step) < least:
        slope = (-3.0 * here + 4.0 * at(1.0) - at(2.0)) / (2.0 * step)
        return Slope(slope, slope, slope)
    if value * math.exp(step) > most:
        slope = (3.0 * here - 4.0 * at(-1.0) + at(-2.0)) / (2.0 * step)
        return Slope(slope, slope, slope)
    lower, upper = at(-1.0), at(1.0)
    return Slope((upper - lower) / (2.0 * step), (here - lower) / step, (upper - here) / step)


def chord(result: Result, low: float, high: float) -> float:
    """Elasticity between two points: for an input that moves in whole things.

    >>> round(chord(lambda nodes: nodes**2, 99.0, 101.0), 9)
    2.0
    """
    return (_log(result(high)) - _log(result(low))) / math.log(high / low)


def derivative_at_0(result: Result, step: float) -> float:
    """Rise of the result for one unit of an input that is 0 now, from above (second order).

    >>> round(derivative_at_0(lambda x: 3.0 + 2.0 * x + x * x, 1e-3), 9)
    2.0
    """
    return (-3.0 * result(0.0) + 4.0 * result(step) - result(2.0 * step)) / (2.0 * step)


def _log(value: float) -> float:
    return math.log(value) if 0 < value < math.inf else math.nan


UNSHARED = 200_000
"""multiplications of matrices below which a linear algebra library starts no threads"""


class VarianceShares(NamedTuple):
    """Of a result's variance."""

    each: NDArray[np.float64]
    """what each input explains by itself"""
    together: float
    """what only several of them together explain, and what a curve of the fourth degree misses"""


def _legendre(x: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """Legendre's polynomials from the first to that degree, of each row one below the other. By
    their recurrence: numpy's own are an import of six modules.

    >>> _legendre(np.array([[0.5]]), 3)[0, :, 0].tolist()
    [0.5, -0.125, -0.4375]
    """
    told = [np.ones_like(x), x]
    for n in range(2, degree + 1):
        told.append(((2 * n - 1) * x * told[-1] - (n - 1) * told[-2]) / n)
    return np.stack(told[1 : degree + 1], axis=1)


def _products(
    curves: NDArray[np.float64], result: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each curve with each other and with the result, over the draws. Piece by piece, each too
    small to be shared out to threads: on a busy machine those wait for each other."""
    many, samples = curves.shape
    products, with_result = np.zeros((many, many)), np.zeros(many)
    step = max(UNSHARED // many**2, 1)
    for at in range(0, samples, step):
        piece = curves[:, at : at + step]
        products += piece @ piece.T
        with_result += piece @ result[at : at + step]
    return products, with_result


def variance_shares(
    values: NDArray[np.float64], result: NDArray[np.float64], degree: int = DEGREE
) -> VarianceShares:
    """First-order shares (Sobol's indices): `values` has a row of draws for each input, `result`
    what each draw came to.

    Each input's ranks are the strata it was drawn from, whatever its distribution. The result is
    fitted by least squares with a sum of Legendre curves, one for each input; as these are
    orthonormal over the strata, a curve's variance is the sum of its squared coefficients, less
    what noise alone would put there.

    >>> from ckptcost.first.core.draws import strata
    >>> x, y = strata(0, 1024), strata(1, 1024)
    >>> shares = variance_shares(np.array([x, y]), 3.0 * x + y)  # variances 9 to 1
    >>> [round(float(share), 3) for share in shares.each]
    [0.9, 0.1]
    """
    inputs, samples = values.shape
    variance = float(np.var(result))
    if (
        inputs == 0 or not variance > 1e-24 * float(np.mean(np.abs(result))) ** 2
    ):  # no spread but rounding
        return VarianceShares(np.zeros(inputs), 0.0)
    ranks = np.empty(values.shape)
    in_order = np.argsort(values, axis=1, kind="stable")
    np.put_along_axis(ranks, in_order, (np.arange(samples) + 0.5) / samples, axis=1)
    weights = np.sqrt(2.0 * np.arange(1, degree + 1) + 1.0)
    own = _legendre(2.0 * ranks - 1.0, degree) * weights[:, np.newaxis]
    curves = np.concatenate([np.ones((1, samples)), own.reshape(inputs * degree, samples)])
    scaled = (result - np.mean(result)) / math.sqrt(variance)
    # by the normal equations, as nearly orthonormal curves allow: ten times as quick
    products, with_result = _products(curves, scaled)
    fitted = np.linalg.lstsq(products, with_result, rcond=None)[0]
    missed = float(np.sum(scaled**2) - fitted @ (2.0 * with_result - products @ fitted))
    left = max(missed, 0.0) / max(samples - len(curves), 1)
    each = np.sum(fitted[1:].reshape(inputs, degree) ** 2, axis=1) - degree * left / samples
    each = np.maximum(each, 0.0)
    left = left if left > 1e-12 else 0.0
    total = (
        float(np.sum(each)) + left
    )  # what the variance would be over draws without chance correlations
    return VarianceShares(
        np.round(each / total, 6), round(left / total, 6)
    )  # a solver's last bits differ from machine to machine
