"""The best interval: in closed form if the cost is linear in the time in each state, else found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ckptcost.plan.failures import Recovery, until_hit
from ckptcost.scenario.schema import Array


def one_plus_w0(eps: Array) -> Array:
    """y > 0 with 1 - (1-y)*exp(y) = eps, that is 1 + W0(-(1-eps)/e), exact even for tiny eps.

    >>> round(float(one_plus_w0(np.array(1.0))), 12)
    1.0
    """
    y = np.minimum(np.sqrt(2.0 * eps), 1.0 + np.log1p(eps))
    for _ in range(9):  # Newton from the right of a convex function
        rise = np.expm1(y)
        series = y * y * (0.5 + y * (1.0 / 3.0 + y * (0.125 + y / 30.0)))
        slope = y * (rise + 1.0)
        y = y - np.where(slope == 0, 0.0, (np.where(y < 1e-3, series, slope - rise) - eps) / slope)
    return y


def best_interval(
    stall: Array, r: Recovery, rate: Array, prices: dict[str, Any], drag: Array
) -> Array:
    """Training time between saves that costs least, for prices per second in each state; endless
    without failures. To first order, for time: sqrt(2 * stall * MTBF)."""
    once = (
        prices["stall"] * r.detect
        + prices["idle"] * r.reschedule
        + prices["stall"] * until_hit(0.0, r.init, rate)
        + prices["stall"] * until_hit(r.init, r.load, rate)
        + prices["work"] * until_hit(r.init + r.load, r.warmup, rate)
    )
    per_second = rate * np.exp(np.minimum(rate * r.exposed, 600.0)) * once
    whole = prices["work"] + per_second
    gap = -np.expm1(-rate * stall) * (per_second + prices["stall"])
    gap = gap + np.exp(-rate * stall) * rate * prices["save"]
    eps = (gap + (whole - gap) * -np.expm1(-rate * drag)) / whole
    return np.where(rate == 0, np.inf, one_plus_w0(eps) / rate)


def young(stall: Array, rate: Array) -> Array:
    return np.sqrt(2.0 * stall / rate)


def daly(stall: Array, rate: Array) -> Array:
    """sqrt(2CM)*(1 + sqrt(C/2M)/3 + C/(18M)) - C for C < 2M, else M."""
    part = np.minimum(stall * rate / 2.0, 1.0)
    long = young(stall, rate) * (1.0 + np.sqrt(part) / 3.0 + part / 9.0) - stall
    return np.where(stall * rate < 2.0, long, 1.0 / rate)


def lowest(cost: Callable[[Array], Array], low: Array, high: Array, rounds: int = 7) -> Array:
    """Least point of a function with one valley, 64 places at a time: each round the two places
    around the least are the next ends. Places are a further axis in front."""
    places = np.linspace(0.0, 1.0, 64)
    low, high = np.log(low), np.log(high)
    for _ in range(rounds):
        at = low + (high - low) * places.reshape(-1, *(1,) * np.ndim(low))
        values = cost(np.exp(at))
        best = np.argmin(np.where(np.isnan(values), np.inf, values), axis=0, keepdims=True)
        low = np.take_along_axis(at, np.maximum(best - 1, 0), 0)[0]
        high = np.take_along_axis(at, np.minimum(best + 1, 63), 0)[0]
    return np.exp((low + high) / 2.0)
