"""Two tiers: every save on the first, every n-th also on the second.

A share of the failures spares the first tier's copy; the others go back to the last save on the second. Exact for synchronous
saves: within a period of n segments, failures of the first kind are an inner renewal, those of the second restart the period.
For asynchronous saves the lags enter as exp(l1*lag1 + l2*lag2), right to first order.
"""

from __future__ import annotations

from ckptcost.core.domain import Number
from ckptcost.core.failures import Recovery, States, recovered
from ckptcost.core.numeric import exp, expm1, exprel, log1p, ratio, where


def period(
    work_s: Number, stall_s: Number, lag_s: Number, recovery: Recovery, spared_per_s: Number,
    every: Number, second_stall_s: Number, second_lag_s: Number, second_recovery: Recovery, lost_per_s: Number,
) -> States:  # fmt: skip
    """Mean states per completed segment of a period of `every` segments that ends with a save on the second tier.

    `spared_per_s` and `lost_per_s` are the rates of failures that the first tier survives and does not survive.
    """
    rate = spared_per_s + lost_per_s
    exposed_s = recovery.exposed_s

    def attempt(length_s: Number) -> tuple[Number, Number, Number, Number]:
        """(attempts, chance of getting through, of losing the period, recoveries) of a stretch, from its first entry."""
        fails = -expm1(-rate * length_s)
        hit = -expm1(-rate * exposed_s)
        spared, lost = _share(spared_per_s, rate), _share(lost_per_s, rate)
        recoveries = 1.0 / (1.0 - hit * spared)
        recovery_lost = hit * lost * recoveries
        inner = 1.0 / (1.0 - fails * spared * (1.0 - recovery_lost))
        breaks = fails * (lost + spared * recovery_lost) * inner
        return inner, 1.0 - breaks, breaks, inner * fails * spared

    attempts, _, breaks, spared_entries = attempt(work_s + stall_s)
    last_attempts, last_through, _, last_entries = attempt(second_stall_s)
    # chance that a period gets through all its segments and the last save: through**every * last_through
    log_through = log1p(-breaks)
    reach = exp(every * log_through)
    segments = every * exprel(every * log_through) / exprel(log_through)  # sum of through**i, i < every
    tries = ratio(1.0, reach * last_through)
    again = exp(spared_per_s * lag_s + lost_per_s * second_lag_s)

    stretch = again * tries * segments * attempts / every
    ending = again * tries * reach * last_attempts / every
    working_s = stretch * work_s * exprel(-rate * work_s)
    stalling_s = stretch * exp(-rate * work_s) * stall_s * exprel(-rate * stall_s) + ending * second_stall_s * exprel(
        -rate * second_stall_s
    )
    first = again * tries * (segments * spared_entries + reach * last_entries) / every
    # a recovery from the first tier runs until it is through or a worse failure ends it
    restarts = first / (1.0 + expm1(-rate * exposed_s) * _share(spared_per_s, rate)) * exp(-rate * exposed_s)
    one = recovered(recovery, rate, restarts)
    # every try but the last ends in a failure that needs the second tier; the async share of lost periods adds the rest
    second = recovered(second_recovery, rate, again * (tries - 1.0) / every)
    return States(working_s, stalling_s, *(a + b for a, b in zip(one, second, strict=True)))


def _share(part: Number, whole: Number) -> Number:
    return where(whole == 0, 0.0 * part, part / where(whole == 0, 1.0, whole))
