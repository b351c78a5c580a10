"""Plain event-by-event walks through an interrupted run, written from the description of the
process and not from the formulas.

One level: train for `work`, stand still for `stall`, train on; the save becomes usable `lag` after
its stall. A failure (at random, rate `rate`) throws the run back to the newest usable save; then
come detect and reschedule, which no failure interrupts, then init, load and warm-up, which a
failure starts over from detect.

Two levels: every n-th segment ends with a second stall. Failures are of two kinds; `spared` ones
return to the newest save of any kind, `lost` ones to the newest save of the second level, and once
the first level's copy is gone it stays gone until the next save.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

STATES = (
    "work_s",
    "stall_s",
    "detect_s",
    "reschedule_s",
    "init_s",
    "load_s",
    "warmup_s",
    "failures",
)
WORK, STALL, DETECT, RESCHEDULE, INIT, LOAD, WARMUP, FAILURES, SAFE = range(9)


class Phases(NamedTuple):
    detect: float
    reschedule: float
    init: float
    load: float
    warmup: float


class Estimate(NamedTuple):
    """Mean per safe segment of each state (and of their sum), with its standard error."""

    mean: dict[str, float]
    error: dict[str, float]


def estimate(rows: Sequence[Sequence[float]]) -> Estimate:
    """Ratio estimate over independent rows: sum(state)/sum(safe), error from the residuals."""
    table = np.asarray(rows, dtype=float)
    safe = table[:, SAFE]
    columns = {name: table[:, i] for i, name in enumerate(STATES)} | {
        "total_s": table[:, :FAILURES].sum(axis=1)
    }
    mean = {name: float(column.sum() / safe.sum()) for name, column in columns.items()}
    error = {
        name: float(np.sqrt(((column - mean[name] * safe) ** 2).sum()) / safe.sum())
        for name, column in columns.items()
    }
    return Estimate(mean, error)


def _recover(clock: random.Random, row: list[float], phases: Phases, rate: float) -> None:
    """Down time, then the exposed phases, over again until none of them is hit; the failure that
    led here is already counted."""
    while True:
        row[DETECT] += phases.detect
        row[RESCHEDULE] += phases.reschedule
        quiet = clock.expovariate(rate)
        for state, length in ((INIT, phases.init), (LOAD, phases.load), (WARMUP, phases.warmup)):
            if quiet < length:
                row[state] += quiet
                row[FAILURES] += 1
                break
            row[state] += length
            quiet -= length
        else:
            return


def one_level(
    work: float,
    stall: float,
    lag: float,
    phases: Phases,
    rate: float,
    interruptions: int,
    seed: int,
    in_flight: int = 0,
    staging: str = "before",
) -> Estimate:
    """One long run up to its n-th interruption of training; a row of the estimate is what lies
    between two of them.

    With m in flight (0: any number), the stall of a save does not end before the m-th save before
    it is safe; staged `after` that, it does not even begin. Nothing is in flight after a start.
    """
    clock = random.Random(seed)
    rows = []
    safe = 0
    for _ in range(interruptions):
        row = [0.0] * 9
        now, fails_at, done, draining = 0.0, clock.expovariate(rate), safe, []
        while True:
            if now + work > fails_at:
                row[WORK] += fails_at - now
                break
            now += work
            row[WORK] += work
            free_at = draining[-in_flight][0] if 0 < in_flight <= len(draining) else now
            ends_at = max(now, free_at) + stall if staging == "after" else max(now + stall, free_at)
            if ends_at > fails_at:
                row[STALL] += fails_at - now
                break
            row[STALL] += ends_at - now
            now = ends_at
            done += 1
            draining.append((now + lag, done))
        usable = [segment for ready_at, segment in draining if ready_at <= fails_at]
        newest = max(usable, default=safe)
        row[SAFE] = newest - safe
        safe = newest
        row[FAILURES] += 1
        _recover(clock, row, phases, rate)
        rows.append(row)
    return estimate(rows)


def two_levels(
    work: float,
    stall: float,
    first: Phases,
    spared: float,
    every: int,
    second_stall: float,
    second: Phases,
    lost: float,
    periods: int,
    seed: int,
) -> Estimate:
    """Synchronous saves on both levels; a row is one finished period of `every` segments."""
    clock = random.Random(seed)
    rate = spared + lost
    rows = []

    def stretch(row: list[float], parts: Sequence[tuple[int, float]]) -> bool:
        """Walk through consecutive (state, length) parts; False when a failure ends them."""
        quiet = clock.expovariate(rate)
        for state, length in parts:
            if quiet < length:
                row[state] += quiet
                row[FAILURES] += 1
                return False
            row[state] += length
            quiet -= length
        return True

    def is_lost() -> bool:
        return clock.random() * rate < lost

    def from_second(row: list[float]) -> None:
        row[DETECT] += second.detect
        row[RESCHEDULE] += second.reschedule
        while not stretch(row, ((INIT, second.init), (LOAD, second.load), (WARMUP, second.warmup))):
            row[DETECT] += second.detect
            row[RESCHEDULE] += second.reschedule

    def back(row: list[float]) -> bool:
        """After a failure: True when the first level's copy brought the run back, False when only
        the second's could."""
        while True:
            if is_lost():
                from_second(row)
                return False
            row[DETECT] += first.detect
            row[RESCHEDULE] += first.reschedule
            if stretch(row, ((INIT, first.init), (LOAD, first.load), (WARMUP, first.warmup))):
                return True

    for _ in range(periods):
        row = [0.0] * 9
        at = 0
        while True:
            parts = ((WORK, work), (STALL, stall)) if at < every else ((STALL, second_stall),)
            if stretch(row, parts):
                at += 1
                if at > every:
                    break
            elif not back(row):
                at = 0
        row[SAFE] = every
        rows.append(row)
    return estimate(rows)


def drained(
    work: float, stall: float, lag: float, rate: float, interruptions: int, seed: int
) -> tuple[float, float]:
    """Drains' worth of bytes moved per save that becomes usable, those cut short counted by their
    part, and its standard error."""
    clock = random.Random(seed)
    moved, usable = [], []
    for _ in range(interruptions):
        fails_at = clock.expovariate(rate)
        started_at, parts, whole = work + stall, 0.0, 0
        while started_at < fails_at:
            parts += min(1.0, (fails_at - started_at) / lag)
            whole += started_at + lag <= fails_at
            started_at += work + stall
        moved.append(parts)
        usable.append(whole)
    a, b = np.array(moved), np.array(usable)
    mean = a.sum() / b.sum()
    return float(mean), float(np.sqrt(((a - mean * b) ** 2).sum()) / b.sum())


def segment_times(
    work: float, rate: float, segments: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """(durations, failures) of single segments that start over at each failure, without stall or
    recovery."""
    clock = random.Random(seed)
    times, hits = [], []
    for _ in range(segments):
        spent, count = 0.0, 0
        while (quiet := clock.expovariate(rate)) < work:
            spent += quiet
            count += 1
        times.append(spent + work)
        hits.append(count)
    return np.array(times), np.array(hits)


def by_the_clock(
    every: float, stall: float, back: float, rate: float, failures: int, seed: int, grid: bool
) -> tuple[float, float]:
    """(goodput, its standard error) of saves that begin by the clock; `back` is down time that no
    failure hits.

    On the `grid` they begin at each multiple of `every` since midnight, whatever happened before;
    else the timer starts with the training. A save that is due while one is made is left out.
    """
    clock = random.Random(seed)
    now = 0.0
    kept, walls = [], []
    for _ in range(failures):
        began, fails_at, safe = now, now + clock.expovariate(rate), 0.0
        zero, trained = (0.0 if grid else began), 0.0
        while True:
            due = zero + every * (np.floor((now - zero) / every + 1e-9) + 1.0)
            if due + stall > fails_at:
                break
            trained += due - now
            now = due + stall
            safe = trained
        now = fails_at + back
        kept.append(safe)
        walls.append(now - began)
    a, b = np.array(kept), np.array(walls)
    mean = a.sum() / b.sum()
    return float(mean), float(np.sqrt(((a - mean * b) ** 2).sum()) / b.sum())
