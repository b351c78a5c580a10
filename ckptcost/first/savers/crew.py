"""Threads that do one pass together: the first error stops all, Ctrl-C too, and nobody is left
running."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Sequence
from time import monotonic_ns as now_ns

from ckptcost.first.savers.base import Control, Tally

__all__ = ["Crew", "Span", "covered_ns", "now_ns"]

Span = tuple[int, int]
_LOOK_S = 0.1
"""how often who waits for the tasks looks whether to stop: one of them may be in an fsync"""


class Crew:
    """One pass. Tasks look at `stopped` between two requests, and `report` at their end."""

    def __init__(self, control: Control | None = None) -> None:
        self.stopped = False
        self._control = control
        self.tally = Tally()
        self.last_ns = 0
        """when the last request of all returned"""
        self._syncs: list[Span] = []
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._running = self._ended = 0

    def run(
        self, tasks: Sequence[Callable[[], None]], hurry: Callable[[], None] | None = None
    ) -> None:
        """Each task in a thread of its own, to the end of all. `hurry` is called, from any thread,
        when they have to stop early."""
        try:
            for task in tasks:
                try:
                    threading.Thread(
                        target=self._do, args=(task, hurry), name="ckptcost-saver", daemon=True
                    ).start()
                except RuntimeError as error:
                    raise OSError(errno.EAGAIN, f"cannot start {len(tasks)} threads") from error
            with self._changed:
                while self._ended < len(tasks):
                    if self._control is not None:
                        self._control.check()
                    self._changed.wait(None if self._control is None else _LOOK_S)
        except BaseException:
            self._stop(hurry)
            self._wait_for_all()
            raise
        if self._error is not None:
            raise self._error

    def _wait_for_all(self) -> None:
        """Whatever comes: a file must not be closed under a request. They stop within one request,
        so a second Ctrl-C can wait. Not by `Thread.join`: in Python 3.11 a thread whose join was
        interrupted passes for ended."""
        while True:
            try:
                with self._changed:
                    while self._running:
                        self._changed.wait()
                return
            except KeyboardInterrupt:
                continue

    def _do(self, task: Callable[[], None], hurry: Callable[[], None] | None) -> None:
        with self._lock:
            if self.stopped:  # before it began
                self._ended += 1
                self._changed.notify()
                return
            self._running += 1
        try:
            task()
        except BaseException as error:
            with self._lock:
                self._error = self._error or error
            self._stop(hurry)
        with self._lock:
            self._running -= 1
            self._ended += 1
            self._changed.notify()

    def _stop(self, hurry: Callable[[], None] | None) -> None:
        self.stopped = True
        if hurry is not None:
            hurry()

    def moved(self, bytes_: int) -> None:
        """A request is through. Raises KeyboardInterrupt where somebody wants it to stop."""
        if self._control is not None:
            self._control.moved(bytes_)
            self._control.check()

    def report(self, tally: Tally, last_ns: int, syncs: Sequence[Span] = ()) -> None:
        with self._lock:
            self.tally.join(tally)
            self.last_ns = max(self.last_ns, last_ns)
            self._syncs += syncs

    @property
    def fsync_s(self) -> float:
        return covered_ns(self._syncs) * 1e-9


def covered_ns(spans: Sequence[Span]) -> int:
    """How much of the time lies in at least one span.

    >>> covered_ns([(0, 10), (5, 12), (20, 21)])
    13
    """
    total, until = 0, 0
    for begin, end in sorted(spans):
        total += max(end - max(begin, until), 0)
        until = max(until, end)
    return total
