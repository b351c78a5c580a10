"""Where the time of a job's runs went: between runs, lost to failures, standing still for saves,
loading, and work that was kept.

    wall = down + lost + stall + load + useful

from the first run's begin to the last one's end. Each instant belongs to one piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import fsum, isfinite, nan
from typing import NamedTuple

from ckptcost.first.core.numeric import maximum, minimum, ratio


class RunSpan(NamedTuple):
    """One run of a job, on one clock."""

    began_s: float
    ended_s: float
    failed: bool
    last_kept_s: float
    """begin of the last save that was completed: what it holds is the state of then. Before
    `began_s` (or -inf): this run kept none; NaN: not known"""
    stall_s: float
    """all of the run"""
    load_s: float
    """reading the state back, at its begin"""
    lost_stall_s: float = 0.0
    """of the stall, what lies after `last_kept_s`, that save's own with it; all of it where the run
    kept none, whatever is said here"""


class Useful(NamedTuple):
    """The pieces add up to the wall time. NaN: not known."""

    wall_s: float
    down_s: float
    """no run was there"""
    lost_s: float
    """work since the last kept save of runs that failed; the stalls and the load among it are in
    the next two"""
    stall_s: float
    load_s: float
    useful_s: float
    goodput: float
    """useful over wall"""
    failures: int


class _Own(NamedTuple):
    """Of a run, the time in which no later one was there."""

    all_s: float
    lost_s: float


def useful_of(spans: Sequence[RunSpan]) -> Useful:
    """Of one job's runs, in any order. Where two are there at once, the instant belongs to the one
    that began later.

    A failed run that kept nothing has lost all its work: the next one loads a save of an earlier
    run. The last run's failure counts even where no run follows. A run that did not fail has lost
    nothing.

    >>> first = RunSpan(0.0, 1000.0, True, 700.0, stall_s=60.0, load_s=0.0, lost_stall_s=20.0)
    >>> useful_of([first, RunSpan(1300.0, 2000.0, False, 1900.0, stall_s=40.0, load_s=30.0)])
    Useful(wall_s=2000.0, down_s=300.0, lost_s=280.0, stall_s=100.0,
    load_s=30.0, useful_s=1290.0, goodput=0.645, failures=1)
    """
    if not spans:
        return Useful(nan, nan, nan, nan, nan, nan, nan, 0)
    if any(
        not (isfinite(span.began_s) and isfinite(span.ended_s) and span.began_s <= span.ended_s)
        for span in spans
    ):
        raise ValueError("a run has a begin, and an end that is not before it")
    runs = sorted(spans, key=lambda span: (span.began_s, span.ended_s))
    own, between_s = _own(runs)
    pieces = [_pieces(span, mine) for span, mine in zip(runs, own, strict=True)]
    lost_s, stall_s, load_s, useful_s = (_sum(each) for each in zip(*pieces, strict=True))
    wall_s = max(span.ended_s for span in runs) - runs[0].began_s
    return Useful(
        wall_s,
        between_s,
        lost_s,
        stall_s,
        load_s,
        useful_s,
        ratio(useful_s, wall_s),
        sum(span.failed for span in runs),
    )


def _sum(values: Sequence[float]) -> float:
    return nan if any(value != value for value in values) else fsum(values)


def _own(runs: Sequence[RunSpan]) -> tuple[list[_Own], float]:
    """From the last begun backwards, what no later run covers; and what none covers at all."""
    covered: list[tuple[float, float]] = []
    """apart from each other, the earliest last"""
    found = []
    for span in reversed(runs):
        since_s, at_s, reach_s = _lost_since_s(span), span.began_s, span.ended_s
        free: list[tuple[float, float]] = []
        while covered and covered[-1][0] <= span.ended_s:
            begin_s, end_s = covered.pop()
            free.append((at_s, begin_s))
            at_s, reach_s = end_s, max(reach_s, end_s)
        free.append((at_s, max(at_s, span.ended_s)))
        covered.append((span.began_s, reach_s))
        lost_s = (
            nan
            if since_s != since_s
            else fsum(max(end_s - max(begin_s, since_s), 0.0) for begin_s, end_s in free)
        )
        found.append(_Own(fsum(end_s - begin_s for begin_s, end_s in free), lost_s))
    between_s = fsum(later[0] - earlier[1] for later, earlier in pairwise(covered))
    return found[::-1], between_s


def _lost_since_s(span: RunSpan) -> float:
    return maximum(span.last_kept_s, span.began_s) if span.failed else span.ended_s


def _pieces(span: RunSpan, own: _Own) -> tuple[float, float, float, float]:
    """Lost, stall, load, useful. Stalls and loads are no longer than the time they lie in; a run
    that shares its time has its share."""
    length_s = span.ended_s - span.began_s
    share = own.all_s / length_s if length_s > 0 else 0.0
    all_stall_s, all_load_s, lost_stall_s = (
        each_s * share for each_s in (span.stall_s, span.load_s, span.lost_stall_s)
    )
    if not span.failed or own.lost_s != own.lost_s:
        stall_s = minimum(all_stall_s, own.all_s)
        load_s = minimum(all_load_s, own.all_s - stall_s)
        return own.lost_s, stall_s, load_s, own.all_s - own.lost_s - stall_s - load_s
    kept_none = span.last_kept_s <= span.began_s
    in_lost_s = minimum(
        all_stall_s if kept_none else minimum(lost_stall_s, all_stall_s), own.lost_s
    )
    load_in_lost_s = minimum(all_load_s, own.lost_s - in_lost_s) if kept_none else 0.0
    lost_s = own.lost_s - in_lost_s - load_in_lost_s
    rest_s = own.all_s - own.lost_s
    stall_s = minimum(all_stall_s - in_lost_s, rest_s)
    load_s = minimum(all_load_s - load_in_lost_s, rest_s - stall_s)
    return lost_s, in_lost_s + stall_s, load_in_lost_s + load_s, rest_s - stall_s - load_s
