"""Joules of one window, edge by edge and lag by lag, in plain Python: what `core.counters` works
out for many windows at once.

Only the ticks are taken from there: which ticks a window is judged by, and nothing of how.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ckptcost.first.core import counters, edges, ticks
from ckptcost.first.core.counters import CountedAmount, Counter


def plain_energy(counter: Counter, begin_s: float, end_s: float) -> CountedAmount:
    """One window."""
    span_s = end_s - begin_s
    gaps = tuple(
        sorted(gap for gap in (*counter.gaps, *counter.stuck) if _inside(gap, begin_s, end_s))
    )
    together = span_s < counters.NEAR_S and not gaps

    def edge(t_s: float, of_s: float, until_s: float) -> edges.Edge:
        """At an instant that belongs to the edge `of_s`, and may be as late as `until_s`."""
        if len(counter.t_s) == 0:
            return edges.Edge(math.nan, math.nan, math.nan, reason=edges.EMPTY)
        for gap, first in zip(counter.gaps, counter.breaks, strict=True):
            if gap.begin_s <= t_s < gap.end_s:
                at = float(counter.total[first])
                return edges.Edge(at, at, at)
        if together:
            of_s, until_s = begin_s, end_s
        elif until_s > of_s and any(
            _inside(gap, of_s, until_s + edges.TINY) for gap in counter.gaps
        ):
            of_s = until_s = t_s
        return plain_edge(counter.around(np.array([[of_s, until_s]]))[0].points, t_s, counter)

    begin, end = edge(begin_s, begin_s, begin_s), edge(end_s, end_s, end_s)
    value, low, high = end.value - begin.value, end.low - begin.high, end.high - begin.low
    if counter.lag_s > 0:
        seen = []
        for n in range(counters.LAGS):
            late_s = counter.lag_s * n / (counters.LAGS - 1)
            first = edge(begin_s + late_s, begin_s, begin_s + counter.lag_s)
            last = edge(end_s + late_s, end_s, end_s + counter.lag_s)
            low, high = min(low, last.low - first.high), max(high, last.high - first.low)
            seen.append(last.value - first.value)
        steps = [abs(b - a) for a, b in pairwise(seen)]
        between = max([step for step in steps if step == step], default=0.0) / 2.0
        low, high = low - between, high + between
    low, high = max(low - counter.resolution, 0.0), high + counter.resolution
    lost_s, until_s = 0.0, begin_s
    for gap in gaps:
        lost_s += max(min(gap.end_s, end_s) - max(gap.begin_s, until_s), 0.0)
        until_s = max(until_s, gap.end_s)
    coverage = 1.0 - lost_s / span_s if span_s > 0 else 1.0
    if span_s == 0:
        value = low = high = 0.0 * value
    elif coverage <= 0 or value != value:
        value = coverage = math.nan
    at = counter.t_s if counter.tick_s == 0 else counter.t_s[counter.moves]
    count = int(np.count_nonzero((at >= begin_s) & (at < end_s)))
    stood = [gap for gap in counter.stood if _inside(gap, begin_s, end_s)]
    reasons = [edge.reason for edge in (begin, end) if edge.reason]
    reasons += [gap.reason for gap in (*gaps, *stood)]
    known_s = [edge.resolved_s for edge in (begin, end) if edge.resolved_s == edge.resolved_s]
    return CountedAmount(
        value,
        low,
        high,
        coverage,
        count,
        gaps,
        count < edges.FEW,
        max(known_s, default=math.nan),
        tuple(dict.fromkeys(reasons)),
    )


def _inside(gap: counters.CounterGap, begin_s: float, end_s: float) -> bool:
    return gap.begin_s < end_s and gap.end_s > begin_s


def plain_edge(points: ticks.Ticks, t_s: float, counter: Counter) -> edges.Edge:
    """The total at `t_s` between two ticks; outside them no number, only the side that the counter
    itself bounds."""
    count = len(points.t_s)
    spacing_s = (
        points.period_s
        if points.kind == "lattice" or count < 2
        else ticks.median(points.t_s[1:] - points.t_s[:-1])
    )
    if t_s < points.high_s[0]:
        first = float(points.total[0])
        return edges.Edge(
            math.nan,
            first - counter.most_per_s * (float(points.high_s[0]) - t_s),
            first,
            spacing_s,
            edges.BEFORE,
        )
    if count < 2 or t_s > points.low_s[-1]:
        last, since_s = float(points.total[-1]), t_s - float(points.low_s[-1])
        asked_s = min(t_s, float(counter.t_s[-1])) - float(points.t_s[-1])
        stands = asked_s > edges.STUCK * spacing_s or (count < 2 and asked_s > 0)
        reason = edges.STANDS if stands else edges.NOT_YET if since_s <= spacing_s else edges.AFTER
        return edges.Edge(math.nan, last, last + counter.most_per_s * since_s, spacing_s, reason)
    after = int(points.t_s.searchsorted(t_s, side="right"))
    cut = slice(max(after - 4, 0), after + 4)
    near = _Near(*(part[cut].tolist() for part in points[:4]))
    here = min(max(after - 1 - cut.start, 0), len(near.at) - 2)
    value, low, high = _curves(
        near, here, t_s, points, spacing_s, cut.start + here, edges._roughness([points])[0]
    )
    # no instant is known better than by the call that told it
    asked = int(counter.t_s.searchsorted(t_s))
    call_s = float(counter.took_s[max(asked - 1, 0) : asked + 1].max(initial=0.0))
    told = near.power(here)[1] * call_s / 2.0
    low, high = min(low, value - told), max(high, value + told)
    # whatever power did: not less than at the last tick that is surely over, not more than at the
    # first that surely is not
    low = max([low, *(v for v, until in zip(near.total, near.high, strict=True) if until <= t_s)])
    high = min([high, *(v for v, since in zip(near.total, near.low, strict=True) if since >= t_s)])
    low, high = min(low, high), max(low, high)
    return edges.Edge(min(max(value, low), high), low, high, spacing_s)


class _Near(NamedTuple):
    """The ticks next to an edge."""

    at: list[float]
    low: list[float]
    high: list[float]
    total: list[float]

    def power(self, k: int) -> tuple[float, float, float]:
        """Mean power between tick k and the next: at least, about, at most, by what is known of the
        ticks' times."""
        joules, span_s = (
            self.total[k + 1] - self.total[k],
            max(self.at[k + 1] - self.at[k], edges.TINY),
        )
        loose_s = math.hypot(self.high[k] - self.low[k], self.high[k + 1] - self.low[k + 1]) / 2.0
        return (
            joules / (span_s + loose_s),
            joules / span_s,
            joules / max(span_s - loose_s, edges.TINY),
        )


def _curves(
    near: _Near,
    here: int,
    t_s: float,
    points: ticks.Ticks,
    spacing_s: float,
    place: int,
    rough_w: float,
) -> tuple[float, float, float]:
    """Estimate, lowest and highest total at `t_s`, which is between tick `here` and the next;
    `place` is its number in `points`."""
    at, total = near.at, near.total
    start, stop, span_s, x = (
        total[here],
        total[here + 1],
        max(at[here + 1] - at[here], edges.TINY),
        t_s - at[here],
    )
    share, mean = x / span_s, (stop - start) / span_s
    value = line = start + mean * x
    if here == 0 or here + 2 >= len(at):
        return line, start, stop
    (low1, before, high1), (low2, after, high2) = near.power(here - 1), near.power(here + 1)
    if max(span_s, at[here] - at[here - 1], at[here + 2] - at[here + 1]) > edges.SLOW_S:
        nearby = np.diff(points.total) / np.maximum(np.diff(points.t_s), edges.TINY)
        earlier, later = nearby[:place], nearby[place + 1 :]
        low1, high1 = min(low1, float(earlier.min())), max(high1, float(earlier.max()))
        low2, high2 = min(low2, float(later.min())), max(high2, float(later.max()))
    least, most, rises, falls = min(low1, low2), max(high1, high2), high1 < low2, high2 < low1
    if span_s > edges.ONE_WAY * spacing_s:
        rises = falls = False
    elif min(before, after) < mean < max(before, after):
        step_s = (stop - start - after * span_s) / (before - after)
        step = start + (before * x if x < step_s else before * step_s + after * (x - step_s))
        beyond = abs(before - near.power(here - 2)[1]) if here >= 2 else 0.0
        beyond += abs(near.power(here + 2)[1] - after) if here + 3 < len(at) else 0.0
        value += (step - line) * abs(before - after) / (abs(before - after) + beyond)
    if mean > most or mean < least:
        # more or fewer joules than both neighbours: power went up and back, or down and back, at
        # some time within
        if mean > most:
            least, most = max(most - edges.SWING * (mean - most), 0.0), (stop - start) / edges.TINY
        else:
            least, most = 0.0, least + edges.SWING * (least - mean)
        rises = falls = False
    # the two ticks as early or as late as they may be: power stays between its bounds from the one,
    # and up to the other
    a_low, a_high, b_low, b_high = (
        near.low[here],
        near.high[here],
        near.low[here + 1],
        near.high[here + 1],
    )
    first, last = (low1, high2) if rises else (least, most)
    low = max(start + _from(t_s - a_high, first, most), stop - _from(b_high - t_s, last, least))
    first, last = (high1, low2) if falls else (most, least)
    high = min(start + _from(t_s - a_low, first, least), stop - _from(b_low - t_s, last, most))
    # ... and where it goes one way, the line bounds it on the other side
    late = (1.0 - share) * (a_high - at[here]) + share * (b_high - at[here + 1])
    soon = (1.0 - share) * (at[here] - a_low) + share * (at[here + 1] - b_low)
    low = line - most * late if falls else min(low, line)
    high = line + most * soon if rises else max(high, line)
    if falls:
        low = min(low, start + low1 * x, stop - high2 * (span_s - x))
    if rises:
        high = max(high, start + high1 * x, stop - low2 * (span_s - x))
    loose = edges.SIGMAS * rough_w * span_s * math.sqrt(max(share * (1.0 - share), 0.0))
    return value, min(low, value) - loose, max(high, value) + loose


def _from(span_s: float, power: float, back: float) -> float:
    """Joules in a span, which is negative where a tick may lie beyond the edge."""
    return power * span_s if span_s >= 0 else back * span_s
