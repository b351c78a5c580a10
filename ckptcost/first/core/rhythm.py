"""Where an uninterrupted run stands after so many seconds: the coordinate that a simulation moves
on.

Train, save, train, save; every n-th save a longer one on the second tier, every n3-th of those on
the third. A point of this time line is a state of the job: a save at its end, or any instant that
was saved in an emergency. A run that comes back to a point goes on from there, so progress is one
number per run and tier.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ckptcost.first.core import outcome, timing
from ckptcost.first.core.domain import Number, Scenario
from ckptcost.first.core.timing import Save

EDGE = 1e-9
"""a point that is the end of a save must not fall before it by the last bit of a division"""


class Rhythm(NamedTuple):
    """Lengths of the pieces, in seconds; arrays have one value a run."""

    kept_s: Number
    """training between two saves"""
    drag_s: Number
    """training time that a draining save costs"""
    stall_s: Number
    wait_s: Number
    """one tier: how long every m-th save since a start waits for a place among the m in flight; no
    part of the time line, for where the waits fall depends on the start. With more tiers the mean
    wait is in the stall."""
    every: int
    """saves of the first tier to one of the second; 0: no second tier"""
    second_stall_s: Number
    third_every: int
    third_stall_s: Number
    lags_s: tuple[Number, ...]
    """by tier: from the end of a save's stall until its copy there can be loaded"""
    in_flight: Number = 1.0

    @property
    def train_s(self) -> Number:
        return self.kept_s + self.drag_s

    @property
    def cycle_s(self) -> Number:
        return self.kept_s + self.drag_s + self.stall_s

    @property
    def period_s(self) -> Number:
        """from one save on the second tier to the next"""
        return self.every * self.cycle_s + self.second_stall_s

    @property
    def long_period_s(self) -> Number:
        return self.third_every * self.period_s + self.third_stall_s


class RhythmPlace(NamedTuple):
    """A point of the time line, taken apart; by tier where a tuple."""

    trained_s: Any
    saves: tuple[Any, ...]
    """saves whose stall is over"""
    ends_s: tuple[Any, ...]
    """where the last of them ended"""
    stalled_s: tuple[Any, ...]
    """stall up to here"""


def rhythm_of(s: Scenario, plan: outcome.Plan, third: Save | None, interval_s: Number) -> Rhythm:
    """The scenario's rhythm at an interval: a busy background stretches it as in the closed
    form."""
    p = s.policy
    saved, second = plan.saved, plan.second
    busy_s = outcome.busiest_s(plan, p)
    drag_s = p.slowdown_fraction * saved.lag_s
    if third is not None and p.mode == "async":
        busy_s = np.maximum(busy_s, third.lag_s / (p.second_every * p.third_every))
    cycle = timing.backpressure(interval_s, saved, p, drag_s, busy_s)
    lags_s: tuple[Number, ...] = (saved.lag_s,)
    stalls_s: list[Number] = []
    everies: list[int] = []
    per = 1.0
    for tier, every in ((second, p.second_every), (third, p.third_every)):
        if tier is None:
            stalls_s.append(0.0)
            everies.append(0)
            continue
        everies.append(round(float(every)))
        per = per * float(every)
        if p.mode == "async":
            stalls_s.append(0.0)
            drag_s = drag_s + p.slowdown_fraction * tier.lag_s / per
            lags_s = (*lags_s, lags_s[-1] + tier.lag_s)
        else:
            stalls_s.append(tier.stall_s)
            lags_s = (*lags_s, 0.0)
    alone = second is None and third is None
    return Rhythm(
        cycle.interval_s,
        drag_s,
        cycle.stall_s - cycle.blocked_s if alone else cycle.stall_s,
        p.in_flight * cycle.blocked_s if alone else 0.0 * cycle.blocked_s,
        everies[0],
        stalls_s[0],
        everies[1],
        stalls_s[1],
        lags_s,
        p.in_flight,
    )


class End(NamedTuple):
    """Where the work is done and saved for the last time; a last interval may be shorter than the
    others."""

    at_s: Any
    saves: Any
    knee_s: Any
    """where the last interval's training ends"""
    missing_s: Any
    """training that the last interval lacks of a whole one"""


def end_of(rhythm: Rhythm, work_s: Number) -> End:
    """The end of the time line.

    >>> rhythm = Rhythm(90.0, 0.0, 10.0, 0.0, 0, 0.0, 0, 0.0, (0.0,))
    >>> [float(x) for x in end_of(rhythm, 225.0)]
    [255.0, 3.0, 245.0, 45.0]
    """
    saves = np.ceil(work_s / rhythm.kept_s - EDGE)
    missing_s = rhythm.train_s * np.maximum(saves - work_s / rhythm.kept_s, 0.0)
    knee_s = saves * rhythm.cycle_s - rhythm.stall_s - missing_s
    last_s: Any = rhythm.stall_s
    if rhythm.every:
        earlier = np.ceil(saves / rhythm.every - EDGE) - 1.0
        knee_s = knee_s + earlier * rhythm.second_stall_s
        ends_on_second = np.floor(saves / rhythm.every + EDGE) > earlier
        last_s = last_s + np.where(ends_on_second, rhythm.second_stall_s, 0.0)
        if rhythm.third_every:
            per = rhythm.every * rhythm.third_every
            earlier = np.ceil(saves / per - EDGE) - 1.0
            knee_s = knee_s + earlier * rhythm.third_stall_s
            last_s = last_s + np.where(
                np.floor(saves / per + EDGE) > earlier, rhythm.third_stall_s, 0.0
            )
    return End(knee_s + last_s, saves, knee_s, missing_s)


def place(r: Rhythm, at_s: Any) -> RhythmPlace:
    """Where a run stands `at_s` seconds into the uninterrupted time line.

    >>> rhythm = Rhythm(90.0, 0.0, 10.0, 0.0, 0, 0.0, 0, 0.0, (0.0,))
    >>> here = place(rhythm, 295.0)
    >>> float(here.trained_s), float(here.saves[0]), float(here.ends_s[0]), float(here.stalled_s[0])
    (270.0, 2.0, 200.0, 25.0)
    """
    if not r.every:
        saves = np.floor(at_s / r.cycle_s + EDGE)
        end = saves * r.cycle_s
        trained = saves * r.train_s + np.minimum(at_s - end, r.train_s)
        return RhythmPlace(trained, (saves,), (end,), (at_s - trained,))
    base_s, thirds, on_third = 0.0 * at_s, 0.0 * at_s, 0.0 * at_s
    if r.third_every:
        thirds = np.floor(at_s / r.long_period_s + EDGE)
        base_s = thirds * r.long_period_s
        seconds = np.minimum(np.floor((at_s - base_s) / r.period_s + EDGE), r.third_every)
        inside = np.maximum(at_s - base_s - seconds * r.period_s, 0.0)
        on_third = np.where(seconds == r.third_every, inside, 0.0)
        inside = inside - on_third
    else:
        seconds = np.floor(at_s / r.period_s + EDGE)
        inside = np.maximum(at_s - seconds * r.period_s, 0.0)
    second_end = base_s + seconds * r.period_s
    firsts = np.minimum(np.floor(inside / r.cycle_s + EDGE), r.every)
    partial = np.maximum(inside - firsts * r.cycle_s, 0.0)
    on_second = np.where(firsts == r.every, partial, 0.0)
    all_seconds = thirds * r.third_every + seconds
    saves = all_seconds * r.every + firsts
    trained = saves * r.train_s + np.minimum(partial - on_second, r.train_s)
    second_stalled = all_seconds * r.second_stall_s + on_second
    third_stalled = thirds * r.third_stall_s + on_third
    stalled = at_s - trained - second_stalled - third_stalled
    ends = (second_end + firsts * r.cycle_s, second_end, base_s)
    tiers = 3 if r.third_every else 2
    return RhythmPlace(
        trained,
        (saves, all_seconds, thirds)[:tiers],
        ends[:tiers],
        (stalled, second_stalled, third_stalled)[:tiers],
    )
