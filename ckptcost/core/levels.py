"""Two tiers: every save on the first, every n-th also on the second.

A share of the failures spares the first tier's copy; the others go back to the last save on the
second. Exact for synchronous saves: within a period of n segments, failures of the first kind are
an inner renewal, those of the second restart the period. For asynchronous saves the lags enter as
exp(l1*lag1 + l2*lag2), right to first order.
"""

from __future__ import annotations

from ckptcost.core.domain import Number
from ckptcost.core.failures import Recovery, States, recovery_times
from ckptcost.core.numeric import exp, expm1, exprel, log1p, minimum, ratio, times, where


def period(
    work_s: Number,
    stall_s: Number,
    lag_s: Number,
    recovery: Recovery,
    spared_per_s: Number,
    every: Number,
    second_stall_s: Number,
    second_lag_s: Number,
    second_recovery: Recovery,
    lost_per_s: Number,
) -> States:
    """Mean states per completed segment of a period of `every` segments that ends with a save on
    the second tier.

    `spared_per_s` and `lost_per_s` are the rates of failures that the first tier survives and does
    not survive.
    """
    rate = spared_per_s + lost_per_s
    recovery, second_recovery = (
        _bounded_recovery(recovery, rate),
        _bounded_recovery(second_recovery, rate),
    )
    spared, lost = _share(spared_per_s, rate), _share(lost_per_s, rate)
    exposed_s = recovery.exposed_s
    # odds of losing the period to getting through, however often the first tier is needed on the
    # way: exact for any length
    recovery_odds = times(lost, expm1(rate * exposed_s))
    recovery_lost = _chance(recovery_odds)

    def attempt(length_s: Number) -> tuple[Number, Number, Number]:
        """(attempts, log of the chance of getting through, recoveries from the first tier) of a
        stretch, from its first entry."""
        worse = lost + spared * recovery_lost
        odds = times(worse, expm1(rate * length_s))
        hopeless = odds == float("inf")
        attempts = where(
            hopeless,
            ratio(1.0, worse),
            where(hopeless, 1.0, exp(rate * length_s)) / (1.0 + where(hopeless, 0.0, odds)),
        )
        log_through = where(
            hopeless, -rate * length_s, -log1p(odds)
        )  # within log(worse) of it, and finite
        return attempts, log_through, times(attempts, -expm1(-rate * length_s)) * spared

    attempts, log_through, spared_entries = attempt(work_s + stall_s)
    last_attempts, last_log_through, last_entries = attempt(second_stall_s)
    # chance that a period gets through all its segments, and then through the last save
    reach = exp(every * log_through)
    segments = (
        every * exprel(every * log_through) / exprel(log_through)
    )  # sum of through**i, i < every
    tries = exp(-(every * log_through + last_log_through))
    again = exp(spared_per_s * lag_s + lost_per_s * second_lag_s)

    stretch = times(again * tries * segments / every, attempts)
    ending = times(again * tries / every, times(reach, last_attempts))
    working_s = times(stretch, work_s * exprel(-rate * work_s))
    stalling_s = times(stretch, exp(-rate * work_s) * stall_s * exprel(-rate * stall_s))
    second_stalling_s = times(ending, second_stall_s * exprel(-rate * second_stall_s))
    first = times(
        again * tries / every, times(segments, spared_entries) + times(reach, last_entries)
    )
    # a recovery from the first tier runs until it is through, or until a worse failure ends it
    one = recovery_times(recovery, rate, first / (1.0 + recovery_odds))
    # every try but the last ends in a failure that needs the second tier
    second = recovery_times(second_recovery, rate, times(again / every, tries - 1.0))
    detect_s, reschedule_s, init_s, load_s, warmup_s, starts = (
        a + b for a, b in zip(one, second, strict=True)
    )
    return States(
        working_s,
        stalling_s + second_stalling_s,
        detect_s,
        reschedule_s,
        init_s,
        load_s,
        warmup_s,
        starts,
        second_stalling_s,
    )


MOST_REPEATS = 600.0
"""l*R past which a recovery is as good as endless, exp(600) tries, and a few steps further the
exponentials overflow"""


def _bounded_recovery(recovery: Recovery, rate: Number) -> Recovery:
    """A recovery that the exponentials can hold."""
    share = minimum(1.0, ratio(MOST_REPEATS, rate * recovery.exposed_s))
    return recovery._replace(
        init_s=share * recovery.init_s,
        load_s=share * recovery.load_s,
        warmup_s=share * recovery.warmup_s,
    )


def _chance(odds: Number) -> Number:
    return where(odds == float("inf"), 1.0, odds / (1.0 + where(odds == float("inf"), 0.0, odds)))


def _share(part: Number, whole: Number) -> Number:
    return where(whole == 0, 0.0 * part, part / where(whole == 0, 1.0, whole))
