"""What a counter had counted at an instant between two of its ticks: an estimate and the bounds it
lies in, for many instants at once.

An edge lies between two ticks, and the counter does not say how the joules between them are spread.
If power goes one way from P1 (mean of the tick before) to P2 (the tick after), the total at the
edge lies between two curves through both ticks: the straight line, and the one step from P1 to P2.
A stall begins and ends with such a step, and there the line is wrong by up to f*(1-f)*D*(P1-P2),
always to the same side; on a slope the step is wrong. The estimate weighs the two by how much of
the change of power nearby happens in this one tick. The interval holds both curves, and what is not
known of the ticks' own times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core import ticks

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

FEW: Final = 5
"""a window with fewer ticks is flagged as short"""
BESIDE: Final = 4
"""ticks on either side of an edge that may bound it"""
SLOW_S: Final = 0.15
"""ticks further apart hide parts of a training step: next to them power may be all that was seen
nearby on its side"""
ONE_WAY: Final = 6.0
"""between ticks further apart, in periods, power may go up and down again: only its range nearby is
believed"""
STUCK: Final = 20.0
"""a counter that answers and does not move for so many of its usual distances between moves is
stuck"""
SWING: Final = 2.0
"""joules in a tick that its neighbours' powers do not explain: how far power may have swung back,
in units of their mean power"""
SIGMAS: Final = 1.0
"""how much scatter of power within a tick the interval holds"""
TINY: Final = 1e-9
"""seconds that two ticks are apart at least, lest power be infinite"""

BEFORE, AFTER, NOT_YET, EMPTY = "before-first-tick", "after-last-tick", "not-yet", "no-readings"
STANDS = "stuck"
REASONS: Final = ("", BEFORE, NOT_YET, AFTER, STANDS, EMPTY)
"""why there is no number, by code"""
_BEFORE, _NOT_YET, _AFTER, _STANDS = 1, 2, 3, 4


class Edge(NamedTuple):
    """The total at one instant."""

    value: float
    low: float
    high: float
    resolved_s: float = math.nan
    reason: str = ""


class Edges(NamedTuple):
    """The same of many instants."""

    value: Floats
    low: Floats
    high: Floats
    resolved_s: Floats
    reason: NDArray[np.int8]
    """places in `REASONS`"""


class Around:
    """The ticks around some instants, with what is worked out once for all of them."""

    def __init__(self, points: ticks.Ticks, rough_w: float) -> None:
        self.points, self.rough_w = points, rough_w
        self.count = len(points.t_s)
        self.spacing_s = (
            points.period_s
            if points.kind == "lattice" or self.count < 2
            else ticks.median(points.t_s[1:] - points.t_s[:-1])
        )

    @cached_property
    def beyond(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Least and most power up to each tick, then from each tick on: mean powers of whole
        ticks."""
        points = self.points
        nearby = (points.total[1:] - points.total[:-1]) / np.maximum(
            points.t_s[1:] - points.t_s[:-1], TINY
        )
        back = nearby[::-1]
        return (
            np.minimum.accumulate(nearby),
            np.maximum.accumulate(nearby),
            np.minimum.accumulate(back)[::-1],
            np.maximum.accumulate(back)[::-1],
        )


def around(stretches: Sequence[ticks.Ticks]) -> list[Around]:
    """The same of many stretches."""
    return [
        Around(points, rough_w)
        for first in range(0, len(stretches), ticks.ROWS)
        for points, rough_w in zip(
            stretches[first : first + ticks.ROWS],
            _roughness(stretches[first : first + ticks.ROWS]),
            strict=True,
        )
    ]


class EdgeReadings(NamedTuple):
    """What of a counter edges are judged by, besides its ticks."""

    t_s: Floats
    took_s: Floats
    most_per_s: float


def edges(around: Sequence[Around], which: Places, t_s: Floats, readings: EdgeReadings) -> Edges:
    """The total at each instant, from the ticks of `around[which]`; outside them no number, only
    the side that the counter bounds."""
    count = np.array([one.count for one in around], dtype=np.intp)
    begins = np.zeros(len(around), dtype=np.intp)
    np.cumsum(count[:-1], out=begins[1:])
    at, low_s, high_s, total = (
        np.concatenate([one.points[part] for one in around]) for part in range(4)
    )
    spacing_s = np.array([one.spacing_s for one in around])[which]
    first = begins[which]
    last = first + count[which] - 1
    found = Edges(
        np.full(len(t_s), np.nan),
        np.empty(len(t_s)),
        np.empty(len(t_s)),
        spacing_s,
        np.zeros(len(t_s), dtype=np.int8),
    )
    early = t_s < high_s[first]
    late = ~early & ((count[which] < 2) | (t_s > low_s[last]))
    if early.any():
        place = first[early]
        found.low[early] = total[place] - readings.most_per_s * (high_s[place] - t_s[early])
        found.high[early] = total[place]
        found.reason[early] = _BEFORE
    if late.any():
        place, when_s, apart_s = last[late], t_s[late], spacing_s[late]
        since_s = when_s - low_s[place]
        asked_s = np.minimum(when_s, readings.t_s[-1]) - at[place]
        stands = (asked_s > STUCK * apart_s) | ((count[which[late]] < 2) & (asked_s > 0))
        found.low[late] = total[place]
        found.high[late] = total[place] + readings.most_per_s * since_s
        found.reason[late] = np.where(
            stands, _STANDS, np.where(since_s <= apart_s, _NOT_YET, _AFTER)
        )
    inside = np.flatnonzero(~(early | late))
    if len(inside):
        near = _Near(around, which[inside], begins, at, low_s, high_s, total, t_s[inside])
        for part, values in zip(
            found[:3], _between(near, spacing_s[inside], readings), strict=True
        ):
            part[inside] = values
    return found


class _Near:
    """The ticks next to each instant; places are in the ticks of all stretches, one after the
    other."""

    def __init__(
        self,
        around: Sequence[Around],
        which: Places,
        begins: Places,
        at: Floats,
        low_s: Floats,
        high_s: Floats,
        total: Floats,
        t_s: Floats,
    ) -> None:
        self.around, self.which, self.begins = around, which, begins
        self.at, self.low_s, self.high_s, self.total, self.t_s = at, low_s, high_s, total, t_s
        self.first = begins[which]
        self.stop = self.first + np.array([one.count for one in around], dtype=np.intp)[which]
        self.after = self.first + _after(around, which, t_s)
        self.here = np.clip(self.after - 1, self.first, self.stop - 2)

    def power(self, k: Places) -> tuple[Floats, Floats, Floats]:
        """Mean power between tick k and the next: at least, about, at most, by what is known of the
        ticks' times."""
        joules = self.total[k + 1] - self.total[k]
        span_s = np.maximum(self.at[k + 1] - self.at[k], TINY)
        loose_s = (
            np.hypot(self.high_s[k] - self.low_s[k], self.high_s[k + 1] - self.low_s[k + 1]) / 2.0
        )
        return (
            joules / (span_s + loose_s),
            joules / span_s,
            joules / np.maximum(span_s - loose_s, TINY),
        )

    def about(self, k: Places) -> Floats:
        return (self.total[k + 1] - self.total[k]) / np.maximum(self.at[k + 1] - self.at[k], TINY)


def _after(around: Sequence[Around], which: Places, t_s: Floats) -> Places:
    """How many ticks of its stretch are not after each instant."""
    found = np.empty(len(t_s), dtype=np.intp)
    for mine in _by(which, np.arange(len(t_s))):
        found[mine] = around[which[mine[0]]].points.t_s.searchsorted(t_s[mine], side="right")
    return found


def _by(which: Places, of: Places) -> list[Places]:
    """These places, those of one stretch together."""
    if not len(of):
        return []
    in_order = of[np.argsort(which[of], kind="stable")]
    cuts = (np.flatnonzero(np.diff(which[in_order])) + 1).tolist()
    return [in_order[since:until] for since, until in pairwise([0, *cuts, len(of)])]


def _between(
    near: _Near, spacing_s: Floats, readings: EdgeReadings
) -> tuple[Floats, Floats, Floats]:
    """Estimate, lowest and highest total where there is a tick on either side."""
    t_s, here = near.t_s, near.here
    start, stop = near.total[here], near.total[here + 1]
    span_s = np.maximum(near.at[here + 1] - near.at[here], TINY)
    mean = (stop - start) / span_s
    value = start + mean * (t_s - near.at[here])
    low, high = start, stop
    curved = np.flatnonzero((here > near.first) & (here + 2 < near.stop))
    if len(curved):
        low, high = low.copy(), high.copy()
        value[curved], low[curved], high[curved] = _curves(near, curved, spacing_s[curved])
    # no instant is known better than by the call that told it
    asked = readings.t_s.searchsorted(t_s)
    most = len(readings.t_s) - 1
    call_s = np.maximum(
        np.maximum(
            readings.took_s[np.maximum(asked - 1, 0)], readings.took_s[np.minimum(asked, most)]
        ),
        0.0,
    )
    told = mean * call_s / 2.0
    low, high = np.minimum(low, value - told), np.maximum(high, value + told)
    # whatever power did: not less than at the last tick that is surely over, not more than at the
    # first that surely is not
    since, until = np.maximum(near.after - BESIDE, near.first), near.after + BESIDE
    until = np.minimum(until, near.stop)
    for step in range(2 * BESIDE):
        place = np.minimum(since + step, until - 1)  # beyond the last one it is asked again
        total = near.total[place]
        low = np.where(near.high_s[place] <= t_s, np.maximum(low, total), low)
        high = np.where(near.low_s[place] >= t_s, np.minimum(high, total), high)
    low, high = np.minimum(low, high), np.maximum(low, high)
    return np.minimum(np.maximum(value, low), high), low, high


def _curves(near: _Near, of: Places, spacing_s: Floats) -> tuple[Floats, Floats, Floats]:
    """The same by how power goes on from the tick before to the tick after, of the instants
    `of`."""
    t_s, here, first_of, stop_of = near.t_s[of], near.here[of], near.first[of], near.stop[of]
    at, next_at = near.at[here], near.at[here + 1]
    start, stop = near.total[here], near.total[here + 1]
    span_s, x = np.maximum(next_at - at, TINY), t_s - at
    share, mean = x / span_s, (stop - start) / span_s
    line = start + mean * x
    (low1, before, high1), (low2, after, high2) = near.power(here - 1), near.power(here + 1)
    slow = (
        np.maximum(
            np.maximum(span_s, at - near.at[here - 1]), near.at[here + 2] - near.at[here + 1]
        )
        > SLOW_S
    )
    for mine in _by(near.which[of], np.flatnonzero(slow)):
        fit = near.which[of[mine[0]]]
        least_to, most_to, least_from, most_from = near.around[fit].beyond
        place = here[mine] - near.begins[fit]
        low1[mine] = np.minimum(low1[mine], least_to[place - 1])
        high1[mine] = np.maximum(high1[mine], most_to[place - 1])
        low2[mine] = np.minimum(low2[mine], least_from[place + 1])
        high2[mine] = np.maximum(high2[mine], most_from[place + 1])
    least, most = np.minimum(low1, low2), np.maximum(high1, high2)
    one_way = span_s <= ONE_WAY * spacing_s
    rises, falls = one_way & (high1 < low2), one_way & (high2 < low1)
    value = line.copy()
    stepped = np.flatnonzero(
        one_way & (np.minimum(before, after) < mean) & (mean < np.maximum(before, after))
    )
    if len(stepped):
        k, p1, p2, since_s = here[stepped], before[stepped], after[stepped], x[stepped]
        base = start[stepped]
        step_s = (stop[stepped] - base - p2 * span_s[stepped]) / (p1 - p2)
        step = base + np.where(
            since_s < step_s, p1 * since_s, p1 * step_s + p2 * (since_s - step_s)
        )
        earlier, later = k >= first_of[stepped] + 2, k + 3 < stop_of[stepped]
        beyond = np.where(earlier, np.abs(p1 - near.about(np.where(earlier, k - 2, k))), 0.0)
        beyond += np.where(later, np.abs(near.about(np.where(later, k + 2, k)) - p2), 0.0)
        value[stepped] += (step - line[stepped]) * np.abs(p1 - p2) / (np.abs(p1 - p2) + beyond)
    # more or fewer joules than both neighbours: power went up and back, or down and back, at some
    # time within
    above = mean > most
    below = ~above & (mean < least)
    least, most = (
        np.where(above, np.maximum(most - SWING * (mean - most), 0.0), np.where(below, 0.0, least)),
        np.where(
            above, (stop - start) / TINY, np.where(below, least + SWING * (least - mean), most)
        ),
    )
    rises, falls = rises & ~(above | below), falls & ~(above | below)
    # the two ticks as early or as late as they may be: power stays between its bounds from the one,
    # and up to the other
    a_low, a_high, b_low, b_high = (
        near.low_s[here],
        near.high_s[here],
        near.low_s[here + 1],
        near.high_s[here + 1],
    )
    first, last = np.where(rises, low1, least), np.where(rises, high2, most)
    low = np.maximum(
        start + _from(t_s - a_high, first, most), stop - _from(b_high - t_s, last, least)
    )
    first, last = np.where(falls, high1, most), np.where(falls, low2, least)
    high = np.minimum(
        start + _from(t_s - a_low, first, least), stop - _from(b_low - t_s, last, most)
    )
    # ... and where it goes one way, the line bounds it on the other side
    late = (1.0 - share) * (a_high - at) + share * (b_high - next_at)
    soon = (1.0 - share) * (at - a_low) + share * (next_at - b_low)
    low = np.where(falls, line - most * late, np.minimum(low, line))
    high = np.where(rises, line + most * soon, np.maximum(high, line))
    rest_s = span_s - x
    low = np.where(falls, np.minimum(np.minimum(low, start + low1 * x), stop - high2 * rest_s), low)
    high = np.where(
        rises, np.maximum(np.maximum(high, start + high1 * x), stop - low2 * rest_s), high
    )
    rough_w = np.array([one.rough_w for one in near.around])[near.which[of]]
    loose = SIGMAS * rough_w * span_s * np.sqrt(np.maximum(share * (1.0 - share), 0.0))
    return value, np.minimum(low, value) - loose, np.maximum(high, value) + loose


def _from(span_s: Floats, power: Floats, back: Floats) -> Floats:
    """Joules in a span, which is negative where a tick may lie beyond the edge."""
    return np.where(span_s >= 0, power, back) * span_s


def _roughness(stretches: Sequence[ticks.Ticks]) -> list[float]:
    """How much power scatters from tick to tick: where the means of ticks do, power within a tick
    does so too, and a walk with independent steps strays from the line by this times the square
    root of f*(1-f). What the ticks' own times add is taken off. Of each stretch.
    """
    count = np.array([len(points.t_s) for points in stretches])
    there = np.arange(max(int(count.max()), FEW + 1)) < count[:, None]
    t_s, low_s, high_s, total = np.zeros((4, *there.shape))
    for part, to in enumerate((t_s, low_s, high_s, total)):
        to[there] = np.concatenate([points[part] for points in stretches])
    apart = there[:, 1:]
    span_s = np.maximum(t_s[:, 1:] - t_s[:, :-1], TINY)
    power = (total[:, 1:] - total[:, :-1]) / span_s
    bent = np.abs(power[:, 2:] - 2.0 * power[:, 1:-1] + power[:, :-2])
    seen = ticks.medians(bent, apart[:, 2:]) / ticks.MEDIAN_OF_SECOND
    timing = (
        ticks.medians(power, apart)
        / ticks.medians(span_s, apart)
        * ticks.medians(high_s - low_s, there)
        / math.sqrt(12.0)
    )
    rough = np.sqrt(np.maximum(seen * seen - 10.0 / 3.0 * timing * timing, 0.0))
    return [float(one) for one in np.where(count > FEW, rough, 0.0)]
