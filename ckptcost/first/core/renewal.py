"""The long run under any law of gaps between failures, a Weibull law for one: the job starts afresh
after each failure.

A gap L begins when the job is up again; R of it goes to getting back, then saves become usable at
f, f + c, f + 2c ... ; where m come together and the next waits, in m such rows. So a gap keeps

    kept * sum over j of S(R + lag + f + j*c)        and takes        E[L] + D

and the goodput of the long run is their ratio (renewal and reward). S is the law's survival,
exponential or exp(-(t/s)^k).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.failures import Recovery

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_MOST_TERMS = 4_000_000
_GONE = 45.0
"""a survival of exp(-45) adds nothing any more"""


def weibull_scale_s(mean_s: float, shape: float) -> float:
    """Scale of a Weibull law by its mean.

    >>> weibull_scale_s(mean_s=100.0, shape=1.0)
    100.0
    """
    return mean_s / math.gamma(1.0 + 1.0 / shape)


def survival(time_s: NDArray[np.float64], mean_s: float, shape: float) -> NDArray[np.float64]:
    """Chance that a gap is longer: exp(-(t/s)^k)."""
    gone: NDArray[np.float64] = np.exp(-((time_s / weibull_scale_s(mean_s, shape)) ** shape))
    return gone


def usable_saves(first_s: float, cycle_s: float, mean_s: float, shape: float) -> float:
    """Mean number of saves that become usable in a gap: the sum of S(first + j*cycle).

    >>> round(usable_saves(first_s=40.0, cycle_s=40.0, mean_s=100.0, shape=1.0), 6)  # 1/(e^0.4 - 1)
    2.033245
    """
    longest_s = weibull_scale_s(mean_s, shape) * _GONE ** (1.0 / shape)
    terms = math.ceil(max(longest_s - first_s, 0.0) / cycle_s) + 1
    if terms <= _MOST_TERMS:
        return float(np.sum(survival(first_s + cycle_s * np.arange(terms), mean_s, shape)))
    # saves so close that the sum is an integral: the trapezium over the terms, which is short by
    # half of the first
    points = first_s + np.concatenate([[0.0], np.geomspace(cycle_s, longest_s, _MOST_TERMS // 10)])
    values = survival(points, mean_s, shape)
    return float(np.trapezoid(values, points) / cycle_s + values[0] / 2.0)


def long_run_goodput(
    kept_s: float,
    drag_s: float,
    stall_s: float,
    blocked_s: float,
    lag_s: float,
    recovery: Recovery,
    mean_s: float,
    shape: float,
    in_flight: float = 1.0,
) -> float:
    """Share of the time that is work kept, over many failures; `blocked_s` of the stall is the mean
    wait for a save before.

    >>> nothing = Recovery(0.0, 0.0, 0.0, 0.0, 0.0)
    >>> round(
    ...     long_run_goodput(30.0, 0.0, 10.0, 0.0, 0.0, nothing, mean_s=100.0, shape=1.0), 4
    ... )  # 30/49.18
    0.61
    """
    cycle_s = kept_s + drag_s + stall_s
    own_s = cycle_s - blocked_s
    first_s = float(recovery.exposed_s) + lag_s + own_s
    many = round(in_flight) if blocked_s else 1  # saves that come together, one wait after them
    saves = sum(
        usable_saves(first_s + i * own_s, many * cycle_s, mean_s, shape) for i in range(many)
    )
    return kept_s * saves / (mean_s + float(recovery.down_s))


def fresh_segment_s(length_s: float, lost_s: float, mean_s: float, shape: float) -> float:
    """Expected time to get through one segment if the law began afresh with each: [int_0^w S dt +
    (1 - S(w))*L]/S(w), by quadrature.

    >>> round(fresh_segment_s(length_s=40.0, lost_s=0.0, mean_s=100.0, shape=1.0), 2)
    49.18
    """
    # S has a root at 0, (t/s)^k; with t = w*u^q and q*k >= 4 it is smooth enough for 64 nodes
    nodes, weights = (_NODES + 1.0) / 2.0, _WEIGHTS / 2.0
    power = float(math.ceil(4.0 / shape))
    inside = (
        survival(length_s * nodes**power, mean_s, shape) * length_s * power * nodes ** (power - 1.0)
    )
    through = float(survival(np.array([length_s]), mean_s, shape)[0])
    return (float(np.sum(weights * inside)) + (1.0 - through) * lost_s) / through
