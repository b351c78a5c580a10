"""A recorded run as meters: they answer what was answered then. Everything they say counts as
simulated, whatever was recorded.

The caller hands over what a loader has read, because meters know nothing of run files. Readings are
in the recording's own seconds; the replay's clock runs at one second a second from `start_ns` on.
Another speed is another clock: `SpedClock` for ten times as fast, one that jumps for as fast as
possible. Power times time stays right that way, which a stretched recording would spoil.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.channels import Channel, Mark, Series
from ckptcost.first.errors import InputError
from ckptcost.first.meters.base import NOTHING, Basic


@dataclass(frozen=True, slots=True)
class MeterTape:
    """One meter's recording: a series for each channel, each with times of its own."""

    name: str
    channels: Sequence[Channel]
    series: Sequence[Series]
    least_s: float = 0.0
    facts: Mapping[str, str] = field(default_factory=dict)


class RunReplay:
    """Meters and marks of a recording. The instant `begin_s` of the recording is at `start_ns` of
    the clock."""

    def __init__(
        self, run: str, tapes: Sequence[MeterTape], marks: Sequence[Mark] = (), *, start_ns: int = 0
    ) -> None:
        readings = [one.t_s for tape in tapes for one in tape.series if len(one.t_s)]
        if not readings:
            raise InputError("a recording without readings cannot be replayed", where=run)
        self.run, self.start_ns = run, start_ns
        self.begin_s = float(min(at.min() for at in readings))
        self.end_s = float(max(at.max() for at in readings))
        """the last reading; marks may lie outside both"""
        self._ahead_ns = start_ns - round(self.begin_s * 1e9)
        self._marks = sorted(marks, key=lambda mark: mark.t_s)
        self._marked_ns = [self.at_ns(mark.t_s) for mark in self._marks]
        self.meters = tuple(Replayed(self, tape) for tape in tapes)

    def at_ns(self, t_s: float) -> int:
        """The clock's time at a second of the recording."""
        return self._ahead_ns + round(t_s * 1e9)

    def at_s(self, t_ns: int) -> float:
        """The recording's second at a time of the clock."""
        return (t_ns - self._ahead_ns) * 1e-9

    def ended(self, t_ns: int) -> bool:
        """After the last reading nothing answers."""
        return t_ns > self.at_ns(self.end_s)

    def marks(self, from_ns: int, to_ns: int) -> list[Mark]:
        """Marks in [from, to) of the clock, by time, as recorded; `at_ns(mark.t_s)` puts one on the
        clock."""
        return self._marks[
            bisect_left(self._marked_ns, from_ns) : bisect_left(self._marked_ns, to_ns)
        ]


class Replayed(Basic):
    """One meter of a recording: at any time the last reading at or before it, NaN before the first
    and after the recording's end."""

    def __init__(self, replay: RunReplay, tape: MeterTape) -> None:
        if len(tape.channels) != len(tape.series):
            raise InputError(
                f"{len(tape.series)} series for {len(tape.channels)} channels",
                where=replay.run,
                key=tape.name,
            )
        source = f"replay of {replay.run}"
        channels = tuple(
            replace(channel, source=f"{source}: {channel.source}") for channel in tape.channels
        )
        super().__init__(
            tape.name,
            channels,
            tape.least_s,
            simulated=True,
            facts={**tape.facts, "source": source},
        )
        self._t_ns, self._rows = _rows(
            [replay.at_ns(0.0) + _ns(one.t_s) for one in tape.series],
            [one.value for one in tape.series],
        )
        self._end_ns = replay.at_ns(replay.end_s)
        self._nothing = [NOTHING] * len(channels)

    def read(self, t_ns: int) -> list[float]:
        row = int(self._t_ns.searchsorted(t_ns, "right")) - 1
        if row < 0 or t_ns > self._end_ns:
            return self._nothing.copy()
        values: list[float] = self._rows[row].tolist()
        return values


def _ns(t_s: NDArray[np.float64]) -> NDArray[np.int64]:
    whole: NDArray[np.int64] = np.rint(t_s * 1e9).astype(np.int64)
    return whole


def _rows(
    at_ns: Sequence[NDArray[np.int64]], values: Sequence[NDArray[np.float64]]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """All channels on the union of their times, each with its last reading there."""
    union = np.unique(np.concatenate(at_ns)) if at_ns else np.empty(0, np.int64)
    rows = np.full((len(union), len(at_ns)), np.nan)
    for column, (at, value) in enumerate(zip(at_ns, values, strict=True)):
        order = np.argsort(at, kind="stable")
        last = np.searchsorted(at[order], union, "right") - 1
        there = last >= 0
        rows[there, column] = value[order][last[there]]
    return union, rows


class Bell(Protocol):
    """What ends a wait early."""

    def wait(self, timeout_s: float) -> bool: ...


class SpedClock:
    """A recorder's clock on which time passes `speed` times as fast as outside.

    >>> outside = iter([0, 3_000_000_000])
    >>> SpedClock(10.0, now_ns=lambda: next(outside)).now_ns()
    30000000000
    """

    virtual = False

    def __init__(
        self,
        speed: float = 1.0,
        start_ns: int = 0,
        wall_ns: int | None = None,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        if not 0.0 < speed < inf:
            raise InputError(
                f"a speed of {speed:g}",
                where="replay",
                remedy="more than 0; for as fast as possible take a clock that jumps",
            )
        self.speed, self._start_ns, self._now_ns = speed, start_ns, now_ns
        self._began_ns = now_ns()
        self._ahead_ns = (time.time_ns() if wall_ns is None else wall_ns) - start_ns

    def now_ns(self) -> int:
        return self._start_ns + round((self._now_ns() - self._began_ns) * self.speed)

    def pair(self) -> tuple[int, int]:
        now_ns = self.now_ns()
        return now_ns, now_ns + self._ahead_ns

    def wait(self, until_ns: int, wake: Bell) -> bool:
        """Until then, or until it rings: True."""
        return wake.wait((until_ns - self.now_ns()) * 1e-9 / self.speed)

    def cpu_s(self) -> float:
        return time.thread_time()
