"""From outside of a pass: being told to stop, and how far it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_LOOK_S = 0.05


class Control:
    """Between who drives a probe and who watches it from another thread. To be stopped is as
    Ctrl-C, so that what cleans up after the one cleans up after the other: engines look between two
    requests and raise KeyboardInterrupt."""

    def __init__(self, also: Callable[[], bool] | None = None) -> None:
        """`also` stops it as well; it is asked between two requests."""
        self._also = also
        self._asked = threading.Event()
        self._lock = threading.Lock()
        self.what, self.number = "", 0
        """save, verify, load or warm-up, and of which round"""
        self.whole_bytes = 0
        self.moved_bytes = 0
        """of the pass under way"""

    def stop(self) -> None:
        """From any thread, any number of times."""
        self._asked.set()

    @property
    def stopped(self) -> bool:
        return self._asked.is_set() or (self._also is not None and self._also())

    def check(self) -> None:
        if self.stopped:
            raise KeyboardInterrupt

    def rest(self, seconds: float) -> None:
        """Sleep, and wake up to stop."""
        until_s = time.monotonic() + seconds
        self.check()
        while (left_s := until_s - time.monotonic()) > 0:
            self._asked.wait(min(left_s, _LOOK_S))
            self.check()

    def begin(self, what: str, number: int, whole_bytes: int) -> None:
        """A pass begins."""
        self.check()
        with self._lock:
            self.what, self.number, self.whole_bytes, self.moved_bytes = (
                what,
                number,
                whole_bytes,
                0,
            )

    def moved(self, bytes_: int) -> None:
        with self._lock:
            self.moved_bytes += bytes_
