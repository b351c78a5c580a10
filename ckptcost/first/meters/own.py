"""What the recorder itself costs: processor seconds and resident memory, domain `self`. Always a
detail: it lies inside the node's joules.

Beside a training loop the process's time is the training's, so a recorder names its thread; then
the time is that thread's alone. Threads behind slow meters and the ipmitool processes they start
are in neither (the first are in the process's time).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from ckptcost.first.core.channels import Channel
from ckptcost.first.meters.base import NOTHING, Absence, Channelwise, FoundMeters


class OwnCost(Channelwise):
    """`clock` is a clock id of clock_gettime, `statm` an open /proc/self/statm or -1."""

    def __init__(
        self, channels: tuple[Channel, ...], clock: int | None, statm: int, page_bytes: int
    ) -> None:
        super().__init__("own", channels)
        self._clock, self._statm, self._page_bytes = clock, statm, page_bytes

    def read(self, t_ns: int) -> Sequence[float]:
        return [
            self._cpu_s() if channel.quantity == "cpu_s" else self._resident_bytes()
            for channel in self.channels
        ]

    def _cpu_s(self) -> float:
        if self._clock is None:
            return NOTHING
        try:
            return time.clock_gettime_ns(self._clock) / 1e9
        except OSError as error:  # EINVAL: the thread has ended, and its time went with it
            self._clock = None
            ended = "the thread has ended" if error.errno == 22 else str(error)
            return self.note_missing("clock", ended, "self")

    def _resident_bytes(self) -> float:
        try:
            return int(os.pread(self._statm, 128, 0).split()[1]) * float(self._page_bytes)
        except (OSError, ValueError, IndexError) as error:
            return self.note_missing("statm", f"/proc/self/statm: {error}", "self")

    def close(self) -> None:
        statm, self._statm = self._statm, -1
        if statm >= 0:
            os.close(statm)


def _thread_clock(thread: threading.Thread) -> int:
    """Clock id of a living thread; ValueError otherwise, because the C library may crash on one
    that has ended."""
    make = getattr(time, "pthread_getcpuclockid", None)
    if make is None:
        raise ValueError("this system has no clock for one thread")
    if thread.ident is None or not thread.is_alive():
        raise ValueError("the thread does not run")
    clock: int = make(thread.ident)
    return clock


def find(procfs: Path = Path("/proc"), *, thread: threading.Thread | None = None) -> FoundMeters:
    """The cost of `thread`, or of the whole process."""
    channels: list[Channel] = []
    absences: list[Absence] = []
    clock: int | None = None
    try:
        clock = time.CLOCK_PROCESS_CPUTIME_ID if thread is None else _thread_clock(thread)
        whose = (
            "CLOCK_PROCESS_CPUTIME_ID"
            if thread is None
            else f"CLOCK_THREAD_CPUTIME_ID of thread {thread.name}"
        )
        scope = "process" if thread is None else "thread"
        channels.append(
            Channel(
                "self",
                "cpu_s",
                whose,
                scope=scope,
                role="detail",
                resolution=time.clock_getres(clock),
            )
        )
    except (ValueError, OSError) as error:
        clock = None
        absences.append(
            Absence(
                "own cpu",
                str(error),
                "leave the thread out to see the time of the whole process",
                "host",
            )
        )
    statm = -1
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    path = procfs / "self" / "statm"
    try:
        statm = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        channels.append(
            Channel(
                "self",
                "memory_used_bytes",
                str(path),
                scope="process",
                role="detail",
                resolution=float(page_bytes),
            )
        )
    except OSError as error:
        absences.append(
            Absence(
                "own memory", f"{path}: {error.strerror}", "mount /proc in this container", "host"
            )
        )
    return FoundMeters(
        (OwnCost(tuple(channels), clock, statm, page_bytes),) if channels else (), tuple(absences)
    )
