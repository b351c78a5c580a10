"""Clocks of a recorder: one that waits, one that jumps, and the bell that ends a wait early.

All times of a run are CLOCK_MONOTONIC in nanoseconds: one clock for every process of a node and
boot, never set back. Wall time is read beside it now and then, so that nodes can be laid side by
side and a step of the wall clock is seen.
"""

from __future__ import annotations

import _thread
import contextlib
import time
from pathlib import Path
from typing import Protocol

from ckptcost.first.core.domain import UNKNOWN

S = 1_000_000_000
"""nanoseconds of a second"""


class Wake:
    """A bell that may be rung from any thread, from a signal handler, and while it is ringing: a
    lock that the sleeper tries to take.

    threading.Event has a lock of its own inside, which a signal handler would wait for forever.
    """

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._lock.acquire()

    def ring(self) -> None:
        with contextlib.suppress(RuntimeError):  # it rings already
            self._lock.release()

    def wait(self, timeout_s: float) -> bool:
        """True if it rang."""
        return self._lock.acquire(timeout=timeout_s if timeout_s > 0.0 else 0.0)


class Clock(Protocol):
    virtual: bool

    def now_ns(self) -> int: ...

    def pair(self) -> tuple[int, int]:
        """Monotonic and wall time of the same instant, in nanoseconds."""

    def wait(self, until_ns: int, wake: Wake) -> bool:
        """Until then, or until it rings: True."""

    def cpu_s(self) -> float:
        """Processor time of the calling thread."""


class RealClock:
    virtual = False

    def __init__(self) -> None:
        self.now_ns = time.monotonic_ns
        """the function itself: one call less in the hottest place"""

    def pair(self) -> tuple[int, int]:
        before = time.monotonic_ns()
        wall = time.time_ns()
        return (before + time.monotonic_ns()) // 2, wall

    def wait(self, until_ns: int, wake: Wake) -> bool:
        return wake.wait((until_ns - time.monotonic_ns()) * 1e-9)

    def cpu_s(self) -> float:
        return time.thread_time()


class VirtualClock:
    """Time that passes only in `wait`, for a simulated run and for tests: 24 h in a minute.

    >>> clock = VirtualClock()
    >>> clock.wait(5 * S, Wake()), clock.now_ns() / S
    (False, 5.0)
    """

    virtual = True

    def __init__(self, now_ns: int = 0, wall_ns: int = 1_767_225_600 * S) -> None:
        self._now_ns = now_ns
        self._ahead_ns = wall_ns - now_ns

    def now_ns(self) -> int:
        return self._now_ns

    def pair(self) -> tuple[int, int]:
        return self._now_ns, self._now_ns + self._ahead_ns

    def set(self, now_ns: int) -> None:
        self._now_ns = max(self._now_ns, now_ns)

    def wait(self, until_ns: int, wake: Wake) -> bool:
        if wake.wait(0.0):
            return True
        self.set(until_ns)
        return False

    def cpu_s(self) -> float:
        return UNKNOWN


def boot_id(procfs: Path = Path("/proc")) -> str:
    """Tells boots of one host apart, because monotonic time starts again with each; empty where the
    system does not say."""
    try:
        return (procfs / "sys/kernel/random/boot_id").read_text("ascii").strip()[:64]
    except (OSError, ValueError):
        return ""
