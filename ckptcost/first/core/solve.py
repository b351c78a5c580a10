"""Backwards: where a run just meets its target, and what first order says of it.

The exact model has no closed inverse, so the answer is the root of the model itself, searched on a
logarithmic scale. To first order a run at its best interval loses

    1 - G = sqrt(2*C/M) + L/M          C stall of a save, L time lost per failure (getting back, and
    the lag of a save), M = 1/l

which turns round into a line for each input. These stand beside the exact answer, never in its
place.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, isfinite, log

from ckptcost.first.core.domain import Number
from ckptcost.first.core.numeric import maximum, ratio, sqrt

TIGHT = 1e-12
"""relative width at which a search ends"""


def boundary(gap: Callable[[float], float], good: float, bad: float, steps: int = 300) -> float:
    """The last value from `good` towards `bad` (both positive) whose gap is not negative, for a gap
    with one change of sign.

    Illinois' false position on log(x), with a bisection wherever the gap is infinite, unknown (not
    met) or shrinks too slowly. What comes back has been evaluated and meets the target; `bad` comes
    back where it meets it too.

    >>> round(boundary(lambda x: 10.0 - x * x, good=1.0, bad=100.0) ** 2, 9)
    10.0
    """
    at_good, at_bad = gap(good), gap(bad)
    if not at_good >= 0:
        raise ValueError("the good end does not meet the target")
    if at_bad >= 0:
        return bad
    best, low, high, side = good, log(good), log(bad), 0
    for step in range(steps):
        if abs(high - low) <= TIGHT:
            break
        # one step in three halves the bracket, whatever the function does
        halves = step % 3 == 2
        middle = (low + high) / 2.0 if halves else _false_position(low, high, at_good, at_bad)
        value = exp(middle)
        here = gap(value)
        if here >= 0:
            best, low, at_good = value, middle, here
            at_bad, side = at_bad / 2.0 if side == 1 else at_bad, 1
        else:
            high, at_bad = middle, here
            at_good, side = at_good / 2.0 if side == -1 else at_good, -1
    return best


def _false_position(low: float, high: float, at_low: float, at_high: float) -> float:
    """Where a line through both ends is 0; the middle where there is none between them."""
    middle = (low + high) / 2.0
    if not (isfinite(at_low) and isfinite(at_high)):
        return middle
    guess = (low * at_high - high * at_low) / (at_high - at_low)
    return guess if min(low, high) < guess < max(low, high) else middle


def first_order_stall_s(goodput: Number, lost_s: Number, mtbf_s: Number) -> Number:
    """Stall of a save that a goodput allows: ((1-G) - L/M)^2 * M/2; 0 where what failures lose eats
    all of 1-G.

    >>> (
    ...     round(first_order_stall_s(0.90, lost_s=600.0, mtbf_s=11_135.0), 2),
    ...     first_order_stall_s(0.90, lost_s=1200.0, mtbf_s=11_135.0),
    ... )
    (11.84, 0.0)
    """
    room = maximum(1.0 - goodput - ratio(lost_s, mtbf_s), 0.0)
    return room * room * mtbf_s / 2.0


def first_order_lost_s(goodput: Number, stall_s: Number, mtbf_s: Number) -> Number:
    """Time lost per failure that a goodput allows: ((1-G) - sqrt(2*C/M)) * M; 0 where saving alone
    eats all of 1-G.

    >>> round(first_order_lost_s(0.90, stall_s=11.84, mtbf_s=11_135.0))
    600
    """
    return maximum(1.0 - goodput - sqrt(ratio(2.0 * stall_s, mtbf_s)), 0.0) * mtbf_s


def first_order_mtbf_s(goodput: Number, stall_s: Number, lost_s: Number) -> Number:
    """Time between failures that a goodput needs: ((sqrt(2*C) + sqrt(2*C + 4*(1-G)*L)) /
    (2*(1-G)))^2.

    >>> round(first_order_mtbf_s(0.90, stall_s=11.84, lost_s=600.0))
    11135
    """
    spare = 1.0 - goodput
    root = (sqrt(2.0 * stall_s) + sqrt(2.0 * stall_s + 4.0 * spare * lost_s)) / (2.0 * spare)
    return root * root


def first_order_window_s(
    goodput: Number, stall_s: Number, lost_s: Number, mtbf_s: Number
) -> tuple[Number, Number]:
    """Shortest and longest interval at which C/tau + tau/(2*M) + L/M leaves a goodput; they cross,
    or are negative, where none does.

    >>> [round(tau) for tau in first_order_window_s(0.975, stall_s=0.5, lost_s=0.0, mtbf_s=1728.0)]
    [31, 55]
    """
    middle = mtbf_s * (1.0 - goodput) - lost_s
    half = sqrt(maximum(middle * middle - 2.0 * stall_s * mtbf_s, 0.0 * middle * middle))
    longest = middle + half
    return (
        ratio(2.0 * stall_s * mtbf_s, longest),
        longest,
    )  # their product: the difference would cancel


def worth_usd_per_s(
    slow_usd: Number,
    slow_wall_s: Number,
    slow_usd_per_s: Number,
    fast_usd: Number,
    fast_wall_s: Number,
) -> Number:
    """What a faster tier may cost for two runs of the same work to cost the same: (U_A + s_A*W_A -
    U_B) / W_B.

    U is what saves and failures cost apart from the tier's price, W the wall time. With nothing but
    rented GPUs this is `money.breakeven_usd_per_s`.

    >>> worth_usd_per_s(
    ...     slow_usd=1000.0,
    ...     slow_wall_s=110.0,
    ...     slow_usd_per_s=1.0,
    ...     fast_usd=500.0,
    ...     fast_wall_s=100.0,
    ... )
    6.1
    """
    return ratio(slow_usd + slow_usd_per_s * slow_wall_s - fast_usd, fast_wall_s)


def payback_s(capital_usd: Number, saved_usd_per_s: Number) -> Number:
    """Time after which a purchase has paid; never where nothing is saved.

    >>> payback_s(3600.0, 0.5), payback_s(3600.0, -1.0)
    (7200.0, inf)
    """
    return ratio(capital_usd, maximum(saved_usd_per_s, 0.0 * saved_usd_per_s))
