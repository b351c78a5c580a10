"""What one recorded save or load took: bytes, seconds, and of the seconds those that marks tell
apart from the writing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan, nan
from typing import NamedTuple

from ckptcost.first.core.contents import Contents
from ckptcost.first.core.gap import Course, measured_course
from ckptcost.first.core.windows import Window
from ckptcost.first.jobs.measured_bill import load_end_s


class CourseSpread(NamedTuple):
    """A figure with its range; NaN with a code where it is not known."""

    value: float
    low: float
    high: float
    why: str = ""

    @property
    def known(self) -> bool:
        return not isnan(self.value)


def absent(why: str) -> CourseSpread:
    return CourseSpread(nan, nan, nan, why)


def exactly(value: float | None, why: str = "") -> CourseSpread:
    return absent(why) if value is None or isnan(value) else CourseSpread(value, value, value)


def mean_of(each: Iterable[CourseSpread]) -> CourseSpread:
    """Of those that are known, with the lowest and the highest of them; unknown for the first one's
    reason."""
    each = list(each)
    known = [one for one in each if one.known]
    if not known:
        return absent(next((one.why for one in each), ""))
    return CourseSpread(
        sum(one.value for one in known) / len(known),
        min(one.low for one in known),
        max(one.high for one in known),
    )


class CourseSave(NamedTuple):
    """One save or load as it was recorded."""

    window: Window
    bytes: CourseSpread
    files: CourseSpread
    time: CourseSpread
    """from its begin until it is safe; of a load, until it is there"""
    stall: CourseSpread
    lag: CourseSpread
    course: Course | None
    course_why: str
    as_modelled: tuple[str, ...]
    """FIXED, BESIDE, STRAGGLER: what no mark tells apart, so that the model's own figure stands for
    it"""
    unsynced_s: float
    """of its time: after the last write, without anybody having called fsync"""


def taken_of(window: Window, what: Contents, modelled: Course, is_part: bool) -> CourseSave:
    """`modelled` lends what cannot be told apart; of a part of a job nobody knows the job's
    bytes."""
    bytes_, files = exactly(what.bytes, "NO_BYTES"), exactly(what.files, "NO_FILES")
    time = _time(window, what)
    stall = exactly(window.stall_s, window.begin_why or window.returned_why)
    lag = exactly(window.drain_s, window.durable_why or window.returned_why)
    if what.of == "load":
        stall, lag = time, absent("")
    why = (
        time.why
        or bytes_.why
        or ("PART_OF_JOB" if is_part else "" if bytes_.value > 0 else "NO_BYTES")
    )
    course, lent = (None, ()) if why else _course(window, what, time.value, modelled)
    return CourseSave(
        window, bytes_, files, time, stall, lag, course, why, lent, _unsynced_s(window)
    )


def _time(window: Window, what: Contents) -> CourseSpread:
    if what.of == "load":
        end_s = load_end_s(window)
        if window.begin_s is None or end_s is None:
            return absent(window.begin_why or window.returned_why)
        return exactly(end_s - window.begin_s)
    if window.begin_s is None or window.durable_s is None:
        return absent(window.begin_why or what.why or window.durable_why)
    time_s = window.durable_s - window.begin_s
    return CourseSpread(
        time_s, time_s if isnan(what.unsure_s) else max(time_s - what.unsure_s, 0.0), time_s
    )


def _course(
    window: Window, what: Contents, time_s: float, modelled: Course
) -> tuple[Course, tuple[str, ...]]:
    """Fixed is what comes after the last byte (commit), beside is what comes before the first
    (snapshot)."""
    measured = {
        "FIXED": _length_s(window, "commit", time_s),
        "BESIDE": _length_s(window, "snapshot", time_s),
        "STRAGGLER": _straggler(window),
    }
    if what.of == "save" and not window.storage:
        measured["BESIDE"] = _copy_s(window, time_s)  # no mark tells phases apart
    lent = tuple(name for name, each in measured.items() if each is None)
    taken = {
        "FIXED": float(modelled.fixed_s),
        "BESIDE": float(modelled.beside_s),
        "STRAGGLER": float(modelled.straggler),
    }
    taken |= {name: each for name, each in measured.items() if each is not None}
    for name in ("BESIDE", "FIXED"):  # what was lent may not be more than there was
        if name in lent and taken["FIXED"] + taken["BESIDE"] >= time_s:
            taken[name] = 0.0
    course = measured_course(
        time_s, what.bytes, taken["FIXED"], taken["BESIDE"], taken["STRAGGLER"]
    )
    return course, lent


def _copy_s(window: Window, time_s: float) -> float | None:
    """Where training went on before the save was safe, the copy was over by then."""
    return window.stall_s if window.stall_s is not None and window.stall_s < time_s else None


def _length_s(window: Window, phase: str, time_s: float) -> float | None:
    """Of a phase that marks tell apart from its neighbours, as far as it lies before the save is
    safe."""
    found = [each for each in window.storage if each.name == phase]
    if not found or window.begin_s is None:
        return None
    return sum(max(min(each.end_s, window.begin_s + time_s) - each.begin_s, 0.0) for each in found)


def _straggler(window: Window) -> float | None:
    """How much longer than the mean rank the slowest one wrote; None of one rank, which may be one
    of many."""
    lasts = [
        max((span.at_s[name] for name in ("written", "synced") if name in span.at_s), default=nan)
        for span in window.spans
    ]
    if len(lasts) < 2 or window.begin_s is None or any(isnan(last) for last in lasts):
        return None
    lengths_s = [last - window.begin_s for last in lasts]
    mean_s = sum(lengths_s) / len(lengths_s)
    return max(lengths_s) / mean_s if mean_s > 0 else None


def _unsynced_s(window: Window) -> float:
    if any("synced" in span.at_s for span in window.spans):
        return 0.0
    return sum(phase.length_s for phase in window.storage if phase.name == "settle")


def mean_course(taken: Sequence[CourseSave]) -> Course | None:
    """Of the saves whose bytes and seconds are known: sums of seconds over sums of bytes, never a
    mean of rates."""
    known = [(one.time.value, one.course) for one in taken if one.course is not None]
    if not known:
        return None
    columns = zip(
        *((time_s, c.moved_bytes, c.fixed_s, c.beside_s, c.straggler) for time_s, c in known),
        strict=True,
    )
    time_s, bytes_, fixed_s, beside_s, straggler = (
        float(sum(column)) / len(known) for column in columns
    )
    return measured_course(time_s, bytes_, fixed_s, beside_s, straggler)
