"""The best interval, exact for any cost that is linear in the time spent in each state, and the
first-order rules beside it.

A segment of wall length x = tau + d (d = time lost to a draining save) costs A*exp(l*x) - B with
    A = exp(l*C) * (c_w/l + Q)        B = A - [Q*(exp(l*C)-1) + c_c*(exp(l*C)-1)/l + c_k]
per exp(l*lag), where Q is what one recovery costs. Minimising cost per unit of kept work gives
(1-y)*exp(y) = (B/A)*exp(-l*d) with y = l*tau, that is y = 1 + W0(-(B/A)*exp(-l*d)/e). Written with
eps = 1 - (B/A)*exp(-l*d), nothing cancels however rare failures are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ckptcost.first.core.domain import Number
from ckptcost.first.core.failures import Recovery, until_hit_s
from ckptcost.first.core.numeric import exp, expm1, isnan, log1p, minimum, ratio, sqrt, where

# Newton from the right of a convex function; 9 steps reach 1e-15 for every eps in 1e-14..1e9
# (tested against scipy)
_STEPS = 9


class Rates(NamedTuple):
    """Cost per second in each state, and per save: seconds, joules, dollars or kgCO2e, one unit
    throughout."""

    work: Number
    stall: Number
    detect: Number
    reschedule: Number
    init: Number
    load: Number
    warmup: Number
    per_save: Number
    """cost of one completed save that does not depend on how long it blocks"""


TIME = Rates(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0)


def one_plus_w0(eps: Number) -> Number:
    """y > 0 with 1 - (1-y)*exp(y) = eps; that is 1 + W0(-(1-eps)/e), exact to rounding even for
    tiny eps.

    >>> round(one_plus_w0(1.0), 12), round(one_plus_w0(2e-8), 6)
    (1.0, 0.0002)
    """
    y = minimum(sqrt(2.0 * eps), 1.0 + log1p(eps))
    for _ in range(_STEPS):
        rise = expm1(y)
        # g(y) = y*exp(y) - expm1(y) is the series y^2/2 + y^3/3 + y^4/8 for small y, where the
        # difference loses digits
        g = where(
            y < 1e-3,
            y * y * (0.5 + y * (1.0 / 3.0 + y * (0.125 + y / 30.0))),
            y * (rise + 1.0) - rise,
        )
        slope = y * (rise + 1.0)
        y = y - where(slope == 0, 0.0 * y, (g - eps) / where(slope == 0, 1.0, slope))
    return y


def recovery_cost(
    recovery: Recovery, rates: Rates, failures_per_s: Number, most: float = 600.0
) -> Number:
    """Cost of getting through one recovery, its repeats included; past exp(`most`) repeats it stays
    there, finite."""
    repeats = exp(minimum(failures_per_s * recovery.exposed_s, most))
    once = (
        rates.detect * recovery.detect_s
        + rates.reschedule * recovery.reschedule_s
        + rates.init * until_hit_s(0.0 * recovery.init_s, recovery.init_s, failures_per_s)
        + rates.load * until_hit_s(recovery.init_s, recovery.load_s, failures_per_s)
        + rates.warmup
        * until_hit_s(recovery.init_s + recovery.load_s, recovery.warmup_s, failures_per_s)
    )
    return repeats * once


def best_interval_s(
    stall_s: Number,
    recovery: Recovery,
    failures_per_s: Number,
    rates: Rates = TIME,
    drag_s: Number = 0.0,
) -> Number:
    """Training time between saves that costs least; inf without failures. `drag_s` is work time
    lost per save to the drain.

    Time: independent of the recovery, and to first order sqrt(2*C*M).

    >>> nothing = Recovery(0.0, 0.0, 0.0, 0.0, 0.0)
    >>> round(best_interval_s(300.0, nothing, 1 / 86400) / 60, 1)
    116.7
    """
    never = failures_per_s == 0
    rate = failures_per_s
    per_s = rate * recovery_cost(recovery, rates, rate)  # l*Q
    # (A - B)/A and d, both over exp(l*C): nothing overflows, nothing cancels
    whole = rates.work + per_s
    gap = (
        -expm1(-rate * stall_s) * (per_s + rates.stall)
        + exp(-rate * stall_s) * rate * rates.per_save
    )
    eps = ratio(
        gap + (whole - gap) * -expm1(-rate * drag_s), whole
    )  # where nothing costs anything, no interval is best: NaN
    return where(never, float("inf"), ratio(one_plus_w0(eps), rate))


def young_interval_s(stall_s: Number, mtbf_s: Number) -> Number:
    """Interval that loses least time, to first order: sqrt(2*C*M)
    (Young, 1974)

    >>> round(young_interval_s(stall_s=50.0, mtbf_s=10_800.0))
    1039
    """
    return sqrt(2.0 * stall_s * mtbf_s)


def daly_interval_s(stall_s: Number, mtbf_s: Number) -> Number:
    """Daly's higher-order interval: sqrt(2CM)*(1 + sqrt(C/2M)/3 + C/(18M)) - C for C < 2M, else M
    (Daly, 2006)

    >>> round(daly_interval_s(stall_s=300.0, mtbf_s=86_400.0) / 60, 1)
    116.7
    """
    part = minimum(ratio(stall_s, 2.0 * mtbf_s), 1.0)
    long_s = young_interval_s(stall_s, mtbf_s) * (1.0 + sqrt(part) / 3.0 + part / 9.0) - stall_s
    return where(stall_s < 2.0 * mtbf_s, long_s, mtbf_s)


GREEN_OFF, AMBER_OFF = 0.005, 0.02
"""how far the first-order goodput may be from the exact one: half a point, and two"""
GREEN_REGRET, AMBER_REGRET = 0.01, 0.05
"""what a rule's interval may cost over the best one's"""
ROUNDING = 1e-12
"""two costs, or two shares, this close are the same one, summed in another order"""


def regret(cost: Number, least: Number) -> Number:
    """Share by which a cost exceeds the least one; a difference that rounding makes is none.

    >>> regret(103.0, 100.0), regret(100.0 + 1e-11, 100.0)
    (0.03, 0.0)
    """
    with np.errstate(
        invalid="ignore"
    ):  # where even the least is infinite there is nothing to compare with: NaN
        more = ratio(cost - least, least)
    return where(abs(more) < ROUNDING, 0.0, more)


def goodput_light(first_order: Number, exact: Number) -> Number:
    """How far the first-order goodput is from the exact one: 2 green, 1 amber, 0 red. Below 0, or
    unknown, it is red.

    >>> goodput_light(0.973, 0.9725), goodput_light(-0.667, 0.375)
    (2, 0)
    """
    off: Any = abs(first_order - exact)
    near = where(off <= GREEN_OFF + ROUNDING, 2, where(off <= AMBER_OFF + ROUNDING, 1, 0))
    return where(first_order >= 0, near, 0)


def regret_light(over: Number) -> Number:
    """How much a rule's interval costs over the best one's: 2 green, 1 amber, 0 red; NaN where the
    rule cannot be applied.

    >>> regret_light(0.0), regret_light(0.02), regret_light(float("nan"))
    (2, 1, nan)
    """
    judged = where(over <= GREEN_REGRET + ROUNDING, 2, where(over <= AMBER_REGRET + ROUNDING, 1, 0))
    return where(isnan(over), float("nan"), judged)


def golden_interval_s(
    cost: Callable[[Number], Number], low_s: Number, high_s: Number, steps: int = 48
) -> Number:
    """Least point of a unimodal function of the interval, by golden section on its logarithm;
    arrays are searched side by side.

    48 steps narrow a bracket of 3e4 to 1e-9; past that the cost of neighbours differs by rounding
    alone.
    """
    shrink = (5.0**0.5 - 1.0) / 2.0
    low, high = log1p(low_s - 1.0), log1p(high_s - 1.0)
    left, right = high - shrink * (high - low), low + shrink * (high - low)
    at_left, at_right = cost(exp(left)), cost(exp(right))
    for _ in range(steps):
        go_left = at_left < at_right
        high, low = where(go_left, right, high), where(go_left, low, left)
        new = where(go_left, high - shrink * (high - low), low + shrink * (high - low))
        at_new = cost(exp(new))
        left, right = where(go_left, new, right), where(go_left, left, new)
        at_left, at_right = where(go_left, at_new, at_right), where(go_left, at_left, at_new)
    return exp((low + high) / 2.0)
