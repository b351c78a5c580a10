"""What training steps say of saves: how long an undisturbed one takes, how long a save held them
up, how much longer they take in a drain.

A step lies between two ends. Where marks were lost nothing is known of the steps between them: a
NaN stands there. Medians, because an evaluation or a garbage collection is a step too; their
intervals are of ranks, whatever law the durations follow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import inf, isfinite, nan, sqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.channels import Mark
from ckptcost.first.core.estimates import CONFIDENCE, Estimate, Floats, absent, median_of
from ckptcost.first.core.windows import Stretch, Window, extent, union

STEPS: Final = "steps"
"""the mark that carries ends of steps: `ends_ms` after `base`, nanoseconds of the monotonic
clock"""
SIGMAS: Final = 2.0
_TO_SIGMA: Final = 1.4826
"""a median deviation in standard deviations, were the law normal"""


class StepPace(NamedTuple):
    """Of steps that no save touches."""

    step_s: Estimate
    """median"""
    spread_s: float
    """from step to step, as a standard deviation; single long steps do not move it"""


class StepSplit(NamedTuple):
    """Durations of whole steps, by what went on."""

    quiet_s: Floats
    """no save at all"""
    drained_s: Floats
    """from end to end while a save drained and none held training up"""


def ends_of(marks: Iterable[Mark], origin_ns: int, rank: int | None = None) -> Floats:
    """Ends of steps in seconds on the run's clock, of one rank: training goes in step, so the one
    that says most speaks for all. NaN stands where a process said that it had to drop marks.

    >>> ends_of(
    ...     [Mark(3.0, "steps", detail={"base": 5_000_000_000, "ends_ms": [0.0, 1200.0]})],
    ...     origin_ns=4_000_000_000,
    ... )
    array([1. , 2.2])
    """
    seen = sorted(marks, key=lambda mark: mark.t_s)
    if not seen:
        return np.empty(0)
    mine = _most_told_rank(seen, origin_ns) if rank is None else rank
    ends: list[float] = []
    last_s = -inf
    for mark in seen:
        if mark.rank != mine:
            continue
        if mark.detail.get("dropped") and ends and ends[-1] == ends[-1]:
            ends.append(nan)
        for end_s in _ends_s(mark, origin_ns):
            if end_s > last_s:
                ends.append(end_s)
                last_s = end_s
    return np.array(ends)


def _most_told_rank(marks: Iterable[Mark], origin_ns: int) -> int:
    said: Counter[int] = Counter()
    for mark in marks:
        said[mark.rank] += len(_ends_s(mark, origin_ns))
    return min(said, key=lambda rank: (-said[rank], rank))


def _ends_s(mark: Mark, origin_ns: int) -> list[float]:
    base, ends_ms = mark.detail.get("base"), mark.detail.get("ends_ms")
    if mark.name != STEPS or not isinstance(base, int) or not isinstance(ends_ms, list | tuple):
        return []
    begin_s = (base - origin_ns) / 1e9
    return [begin_s + each / 1e3 for each in ends_ms if _is_number(each)]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _steps(ends_s: Floats) -> tuple[Floats, Floats]:
    """Begin and end of the whole steps."""
    begin, end = ends_s[:-1], ends_s[1:]
    whole = np.isfinite(begin) & np.isfinite(end)
    return begin[whole], end[whole]


def _touch(begin: Floats, end: Floats, stretches: Iterable[Stretch | None]) -> NDArray[np.bool_]:
    """Which steps share time with any stretch."""
    touched = np.zeros(len(begin), dtype=bool)
    for since_s, until_s in union(stretches):
        touched |= (begin < until_s) & (end > since_s)
    return touched


def _stall(window: Window) -> Stretch | None:
    """All of the window where nobody says when training went on."""
    if window.begin_s is None or window.returned_s is None:
        return extent(window)
    return window.begin_s, window.returned_s


def _drain(window: Window) -> Stretch | None:
    return (
        None
        if window.returned_s is None or window.end_s is None
        else (window.returned_s, window.end_s)
    )


def split(ends_s: Floats, windows: Sequence[Window]) -> StepSplit:
    """Steps that no save touches, and those that lie in a drain from end to end."""
    begin, end = _steps(ends_s)
    free = ~_touch(begin, end, [extent(window) for window in windows])
    inside = np.zeros(len(begin), dtype=bool)
    for since_s, until_s in union(_drain(window) for window in windows):
        inside |= (begin >= since_s) & (end <= until_s)
    inside &= ~_touch(begin, end, [_stall(window) for window in windows])
    return StepSplit((end - begin)[free], (end - begin)[inside])


def pace(quiet_s: Floats) -> StepPace:
    """The undisturbed step."""
    if not len(quiet_s):
        return StepPace(absent("NO_STEPS"), nan)
    step_s = median_of(quiet_s)
    spread_s = (
        _TO_SIGMA * float(np.median(np.abs(quiet_s - step_s.value))) if len(quiet_s) > 1 else nan
    )
    return StepPace(step_s._replace(why="FEW_STEPS" if step_s.low is None else ""), spread_s)


def stalls(ends_s: Floats, windows: Sequence[Window], usual: StepPace) -> list[Estimate]:
    """By window, how much longer than usual the steps took that its stall touches; the range is
    what steps vary by anyway.

    Why not: NO_STEPS, STEPS_MISSING (steps do not reach from before the stall until after it),
    OTHERS_STALL, or why the stall is not known.
    """
    begin, end = _steps(ends_s)
    held = np.array([_stall(window) or (nan, nan) for window in windows]).reshape(-1, 2)
    found = []
    for window, (since_s, until_s) in zip(windows, held, strict=True):
        if window.begin_s is None or window.returned_s is None:
            found.append(absent(window.begin_why or window.returned_why))
            continue
        if not usual.step_s.known:
            found.append(absent("NO_STEPS"))
            continue
        mine = (begin < until_s) & (end > since_s)
        first, last = begin[mine], end[mine]
        if not _reach(first, last, since_s, until_s):
            found.append(absent("STEPS_MISSING"))
        elif np.count_nonzero((held[:, 0] < last[-1]) & (held[:, 1] > first[0])) > 1:
            found.append(absent("OTHERS_STALL"))
        else:
            found.append(_longer(last - first, usual))
    return found


def _reach(begin: Floats, end: Floats, since_s: float, until_s: float) -> bool:
    """Whether steps follow each other from before a stretch until after it."""
    if not len(begin) or begin[0] > since_s or end[-1] < until_s:
        return False
    return bool((begin[1:] == end[:-1]).all())


def _longer(taken_s: Floats, usual: StepPace) -> Estimate:
    value, count = float(taken_s.sum()) - len(taken_s) * usual.step_s.value, len(taken_s)
    stderr = usual.spread_s * sqrt(count)
    if stderr != stderr:
        return Estimate(value, n=count, why="FEW_STEPS")
    return Estimate(value, value - SIGMAS * stderr, value + SIGMAS * stderr, stderr, count)


def longer(drained_s: Floats, quiet_s: Floats) -> Estimate:
    """How much longer a step takes while a save drains, as a fraction of the undisturbed one.

    Each median lies between its ranks in sqrt(95 %) of samples, so both do in 95 %; steps too few
    for that leave no interval.
    """
    if not len(drained_s) or not len(quiet_s):
        return absent("NO_STEPS", len(drained_s))
    inside, outside = (median_of(each, sqrt(CONFIDENCE)) for each in (drained_s, quiet_s))
    value = inside.value / outside.value - 1.0
    if inside.low is None or inside.high is None or outside.low is None or outside.high is None:
        return Estimate(value, n=inside.n, why="FEW_STEPS")
    return Estimate(
        value, inside.low / outside.high - 1.0, inside.high / outside.low - 1.0, None, inside.n
    )


def speed_lost(more: Estimate) -> Estimate:
    """The share of training speed that is lost where steps take so much longer: `policy.slowdown`.
    Not below 0 and not above 1.

    >>> speed_lost(Estimate(0.25, 0.0, 1.0))[:3]
    (0.2, 0.0, 0.5)
    """
    low, high = (None if each is None else _lost(each) for each in (more.low, more.high))
    return more._replace(
        value=_lost(more.value) if more.known else more.value, low=low, high=high, stderr=None
    )


def _lost(more: float) -> float:
    return max(more, 0.0) / (1.0 + max(more, 0.0))
