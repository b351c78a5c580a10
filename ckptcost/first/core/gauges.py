"""Joules of a window, from samples of watts: the area under them, and what sampling, averaging and
looking away leave open.

A sample that is a mean over a tells of the middle of that time, so samples are moved back by a/2.
Between two samples power is taken to lie between them: each span adds a trapezium and is uncertain
by half of what the samples differ. Over many spans such errors are independent and add as squares.
At the window's edges a mean over a carries up to a/8 of a step across, and shows less than the step
of a window that is shorter than a.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core import ticks
from ckptcost.first.core.channels import Series
from ckptcost.first.core.counters import CountedAmount, CounterGap
from ckptcost.first.core.edges import FEW, TINY

Floats = NDArray[np.float64]

MISSING, UNSEEN_BEFORE, UNSEEN_AFTER, NO_SAMPLES = (
    "missing-samples",
    "before-first-sample",
    "after-last-sample",
    "no-samples",
)
SIGMAS: Final = 2.0
"""how many standard deviations an interval reaches to either side"""
GAP_S: Final = 2.0
"""samples further apart leave the time between them unknown; three usual distances where that is
more"""


_MOST: Final = 20_000
"""renewals that scatter is measured on, at most"""


class _PowerLine(NamedTuple):
    """Power as samples draw it: through (at, power), with what is uncertain in each span."""

    at: Floats
    power: Floats
    gaps: tuple[CounterGap, ...]
    renewed_s: float
    loose_s: float
    """how far a sample's own time is uncertain to either side"""
    rough: float
    """scatter from sample to sample"""


def energy(
    series: Series,
    begin_s: float,
    end_s: float,
    *,
    averaging_s: float | None = None,
    looks: float | None = None,
    tick_s: float | None = None,
    resolution: float | None = None,
) -> CountedAmount:
    """Joules of a window. `averaging_s`: a sample is a mean over so long; `looks`: the share of
    time its sensor looks at; `tick_s`: how often it is renewed, measured where it is not given.

    >>> from ckptcost.first.core.channels import series
    >>> watts = series([k / 10 for k in range(50)], [250.0] * 50)
    >>> [round(part, 6) for part in energy(watts, 1.0, 3.0)[:4]]
    [500.0, 500.0, 500.0, 1.0]
    >>> energy(
    ...     watts, 1.0, 6.0
    ... ).gaps  # nothing is known after the last sample, and nothing is made up
    (CounterGap(begin_s=4.9, end_s=6.0, reason='after-last-sample'),)
    """
    if not begin_s <= end_s:
        raise ValueError(f"no window from {begin_s} to {end_s}")
    over_s = averaging_s or 0.0
    near = _near(series, begin_s, end_s, over_s, tick_s)
    line = _line(near, over_s, tick_s)
    if len(line.at) == 0:
        return CountedAmount(
            math.nan, math.nan, math.nan, math.nan, 0, (), True, math.nan, (NO_SAMPLES,)
        )
    gaps = _gaps_in(line, begin_s, end_s)
    span_s = end_s - begin_s
    covered_s = span_s - sum(gap.end_s - gap.begin_s for gap in gaps)
    inside = int(np.diff(np.searchsorted(series.t_s, [begin_s, end_s]))[0])
    if line.renewed_s > 0:  # asking twice is no second sample
        inside = min(inside, math.ceil(covered_s / line.renewed_s))
    resolved_s = max(line.renewed_s, over_s)
    reasons = tuple(dict.fromkeys(gap.reason for gap in gaps))
    if gaps and covered_s <= 1e-12 * span_s:
        none = math.nan
        return CountedAmount(none, none, none, none, inside, gaps, True, resolved_s, reasons)
    value, loose = _joules(line, _without(begin_s, end_s, gaps), over_s, looks)
    loose += (resolution or 0.0) / 2.0 * covered_s
    return CountedAmount(
        value,
        max(value - loose, 0.0),
        value + loose,
        covered_s / span_s if span_s else 1.0,
        inside,
        gaps,
        inside < FEW,
        resolved_s,
        reasons,
    )


def _near(
    series: Series, begin_s: float, end_s: float, over_s: float, tick_s: float | None
) -> Series:
    """Samples of a window, and as many around it as its edges are judged by."""
    margin_s = 4.0 * over_s + 2.0 * max(GAP_S, tick_s or 0.0)
    first, stop = np.searchsorted(series.t_s, [begin_s - margin_s, end_s + margin_s]).tolist()
    first, stop = max(first - 8, 0), stop + 8
    return Series(*(part[first:stop] for part in series))


def _gaps_in(line: _PowerLine, begin_s: float, end_s: float) -> tuple[CounterGap, ...]:
    return tuple(
        CounterGap(max(gap.begin_s, begin_s), min(gap.end_s, end_s), gap.reason)
        for gap in line.gaps
        if gap.begin_s < end_s and gap.end_s > begin_s
    )


def _joules(
    line: _PowerLine, known: list[tuple[float, float]], over_s: float, looks: float | None
) -> tuple[float, float]:
    """Joules of the pieces of a window that are known, and how far they may be off."""
    areas = [_area(line, since_s, until_s) for since_s, until_s in known]
    value, loose = math.fsum(area[0] for area in areas), math.fsum(area[1] for area in areas)
    loose += _off_in_time(line, known, value)
    for since_s, until_s in known:
        seen = max(_range(line, since_s, over_s), _range(line, until_s, over_s))
        loose += seen * carried_s(until_s - since_s, over_s)
    if looks is not None and looks < 1.0:
        # between two looks power differs from them about as much as they do from each other
        loose += SIGMAS * math.sqrt((1.0 - looks) * math.fsum(area[2] for area in areas))
    return value, loose


def _off_in_time(line: _PowerLine, known: list[tuple[float, float]], value: float) -> float:
    """Joules that these pieces have more or fewer where the samples' own times are off."""
    moved = [
        math.fsum(
            _area(line, since_s + shift_s, until_s + shift_s)[0] for since_s, until_s in known
        )
        for shift_s in (-line.loose_s, line.loose_s)
        if shift_s
    ]
    return max((abs(other - value) for other in moved), default=0.0)


def _line(series: Series, over_s: float, tick_s: float | None) -> _PowerLine:
    """Samples where they belong in time. A value that is polled again before it was renewed is one
    sample, and one that stays the same for long is many."""
    answered = np.isfinite(series.value)
    t_s, power, took_s = series.t_s[answered], series.value[answered], series.took_s[answered]
    if len(t_s) == 0:
        return _PowerLine(t_s, power, (), math.nan, 0.0, 0.0)
    polled_s = float(np.median(np.diff(t_s))) if len(t_s) > 1 else 0.0
    most_s = max(GAP_S, 3.0 * polled_s)
    new = np.concatenate([[0], np.flatnonzero(np.diff(power) != 0) + 1])
    renewed_s = tick_s or (ticks.renewed_s(t_s[new[1:]]) if len(new) > FEW else polled_s)
    middle = t_s + took_s / 2.0
    each = np.arange(t_s[0], t_s[-1], max(renewed_s, polled_s, (t_s[-1] - t_s[0]) / _MOST, TINY))
    rough = _scatter(power[np.searchsorted(t_s, each, side="right") - 1])
    if renewed_s > 1.5 * polled_s and len(new) > 1:
        # polled more often than renewed: a sample was renewed between the poll that saw it first
        # and the one before
        asked_s, told_s = t_s[new[1:]], (t_s + took_s)[new[1:]]
        since_s = np.maximum(t_s[new[1:] - 1], asked_s - renewed_s)
        seen = np.concatenate([middle[:1], (since_s + told_s) / 2.0])
        # a sample that was asked for late, as the mean of a second is, stands where it was asked
        # and no longer than it was seen
        lone = np.diff(t_s, prepend=t_s[:1])[new] > 1.5 * renewed_s
        seen = np.where(lone, middle[new], seen)
        stood = middle[np.append(new[1:], len(t_s)) - 1]
        ends = np.maximum(
            np.minimum(np.append(seen[1:], middle[-1] + renewed_s) - renewed_s, stood), seen
        )
        at, power = np.repeat(seen, 2), np.repeat(power[new], 2)
        at[1::2] = ends
        at, loose_s = np.minimum(at, middle[-1]), polled_s / 2.0
    else:
        # polled as often as it is renewed, or less: what a poll sees is anything up to a renewal
        # old, if that is known to matter
        loose_s = min(tick_s or 0.0, polled_s) / 2.0
        at = middle - loose_s
    holes = [
        CounterGap(float(middle[k]) - over_s / 2.0, float(middle[k + 1]) - over_s / 2.0, MISSING)
        for k in np.flatnonzero(np.diff(t_s) > most_s)
    ]
    at = at - over_s / 2.0
    before = CounterGap(-math.inf, float(at[0]), UNSEEN_BEFORE)
    after = CounterGap(float(at[-1]), math.inf, UNSEEN_AFTER)
    return _PowerLine(at, power, (before, *holes, after), renewed_s, loose_s, rough)


def _scatter(power: Floats) -> float:
    """From sample to sample, as a standard deviation."""
    if len(power) <= FEW:
        return 0.0
    return float(np.median(np.abs(np.diff(power, 2)))) / ticks.MEDIAN_OF_SECOND


def _without(begin_s: float, end_s: float, gaps: Sequence[CounterGap]) -> list[tuple[float, float]]:
    """The window's pieces between its gaps, which are in order."""
    edges = [begin_s, *(edge for gap in gaps for edge in gap[:2]), end_s]
    return [
        (since, until)
        for since, until in zip(edges[::2], edges[1::2], strict=True)
        if until > since
    ]


@np.errstate(over="ignore", invalid="ignore")
def _area(line: _PowerLine, begin_s: float, end_s: float) -> tuple[float, float, float]:
    """Joules under the line; how far they may be off if between samples power lies between them;
    and the sum of the squares of what each span differs by."""
    first, stop = (
        int(np.searchsorted(line.at, begin_s, side="right")),
        int(np.searchsorted(line.at, end_s)),
    )
    at = np.concatenate([[begin_s], line.at[first:stop], [end_s]])
    power = np.interp(at, line.at, line.power)
    span_s = np.diff(at)
    joules = float(np.sum((power[1:] + power[:-1]) * span_s) / 2.0)
    swing = np.abs(np.diff(power)) * span_s
    squares = _square(swing) / 2.0
    off = min(float(swing[1:-1].sum()) / 2.0, SIGMAS * math.sqrt(_square(swing[1:-1]) / 2.0))
    # the window's first and last span are parts of longer ones, which power may go through late or
    # early
    whole = np.abs(np.diff(line.power[max(first - 1, 0) : stop + 1]))
    if len(whole):
        off += float(whole[0] * span_s[0]) + (
            float(whole[-1] * span_s[-1]) if len(span_s) > 1 else 0.0
        )
    return joules, max(off, SIGMAS * line.rough * math.sqrt(_square(span_s))), squares


def _square(values: Floats) -> float:
    """Sum of squares. A product of long vectors would be shared out among threads, which takes a
    thousand times as long as it does."""
    return float(np.add.reduce(values * values))


def carried_s(span_s: float, over_s: float) -> float:
    """Joules that a mean over `over_s` carries across both edges of a window, in seconds of what it
    shows of the window's step.

    Of a step by D that lasts as long as the window, the mean shows D where the window is as long as
    it, and D*w/a of a shorter one. It carries D*a/4 across both edges, and of a window below a/2
    all but the middle: D*w*(1 - w/a).

    >>> carried_s(10.0, 1.0), carried_s(0.5, 1.0), carried_s(0.25, 1.0), carried_s(1.0, 0.0)
    (0.25, 0.5, 0.75, 0.0)
    """
    if span_s < over_s / 2.0:
        return over_s - span_s
    return over_s / 4.0 * max(over_s / max(span_s, TINY), 1.0) if over_s else 0.0


def _range(line: _PowerLine, edge_s: float, over_s: float) -> float:
    """How far samples differ that may have taken in what lies across an edge."""
    near = line.power[slice(*np.searchsorted(line.at, [edge_s - over_s, edge_s + over_s]))]
    return float(np.ptp(near)) if len(near) else 0.0


class GaugeSpread(NamedTuple):
    """What a gauge said over a while: for baselines."""

    mean: float
    """over time, not over samples"""
    low: float
    high: float
    """two standard errors to either side of the mean; neighbouring samples that resemble each other
    count as fewer"""
    deviation: float
    samples: int
    median: float
    p5: float
    p95: float
    coverage: float


def spread(
    series: Series,
    begin_s: float,
    end_s: float,
) -> GaugeSpread:
    """Mean, scatter and percentiles of the samples in a window.

    >>> from ckptcost.first.core.channels import series
    >>> quiet = spread(series([k / 10 for k in range(100)], [70.0, 72.0] * 50), 0.0, 9.9)
    >>> round(quiet.mean, 3), quiet.median, quiet.samples
    (71.0, 71.0, 100)
    """
    first, stop = (
        np.searchsorted(series.t_s, begin_s),
        np.searchsorted(series.t_s, end_s, side="right"),
    )
    value = series.value[first:stop]
    value = value[np.isfinite(value)]
    count = len(value)
    if count == 0:
        return GaugeSpread(
            math.nan, math.nan, math.nan, math.nan, 0, math.nan, math.nan, math.nan, 0.0
        )
    whole = energy(series, begin_s, end_s)
    covered_s = whole.coverage * (end_s - begin_s)
    mean = whole.value / covered_s if covered_s > 0 else float(value.mean())
    deviation = float(value.std(ddof=1)) if count > 1 else math.nan
    error = 2.0 * deviation / math.sqrt(_independent(value)) if count > 1 else math.nan
    p5, median, p95 = (float(p) for p in np.percentile(value, [5, 50, 95]))
    return GaugeSpread(
        mean, mean - error, mean + error, deviation, count, median, p5, p95, whole.coverage
    )


def _independent(value: Floats) -> float:
    """As how many independent samples these count: n*(1 - r)/(1 + r), with r their likeness to the
    ones before."""
    about = value - value.mean()
    square = float(about @ about)
    likeness = float(about[1:] @ about[:-1]) / square if square > 0 else 0.0
    likeness = min(max(likeness, 0.0), 1.0 - 1.0 / len(value))
    return max(len(value) * (1.0 - likeness) / (1.0 + likeness), 1.0)
