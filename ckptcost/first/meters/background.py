"""A slow meter behind one thread, so that asking costs about a microsecond and never waits: a BMC
answers in 0.1 to 5 s.

The thread works only when somebody asked and the meter's own `least_s` has passed since it was last
sent. `read` gives an answer once, at the first tick after it arrived, and NaN between answers. So a
value is younger than its tick by at most one tick and the time nobody asked; `age_s` tells by how
much, and an answer older than `oldest_s` is dropped.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from ckptcost.first.errors import MeterUnavailable
from ckptcost.first.meters.base import NOTHING, Channelwise, Event, Meter


class _Answer(NamedTuple):
    values: tuple[float, ...]
    trouble: str
    """why there are none"""
    at_ns: int


def _reason(error: BaseException) -> str:
    if isinstance(error, MeterUnavailable):
        return error.reason
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class Background(Channelwise):
    """`meter`, asked by a thread of its own. A meter with a `stop()` is told to give up its call
    when this one is closed."""

    age_s: float = NOTHING
    """time between the arrival of the answer last given and its tick"""

    def __init__(
        self,
        meter: Meter,
        *,
        oldest_s: float | None = None,
        late_s: float = 30.0,
        stop_s: float = 2.0,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        every = f"in a thread of its own, at most every {meter.least_s:g} s"
        super().__init__(
            meter.name,
            tuple(meter.channels),
            0.0,
            simulated=meter.simulated,
            facts={**meter.facts, "asked": every},
        )
        self.pace_s = meter.least_s
        self.oldest_s = max(2.0 * meter.least_s, 5.0) if oldest_s is None else oldest_s
        self.stop_s = stop_s
        self._meter, self._clock, self._late_ns = meter, clock, round(late_s * 1e9)
        self._none = (NOTHING,) * len(self.channels)
        self._domain = self.channels[0].domain if self.channels else meter.name
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._closed = False
        # _busy hands _answer over: the thread writes while it is true, `read` while it is false,
        # and each flips it last
        self._busy = False
        self._answer: _Answer | None = None
        self._asked_ns = 0
        self._due_ns: int | None = None
        self._news: deque[Event] = deque()

    @property
    def thread(self) -> threading.Thread | None:
        """None until somebody asks."""
        return self._thread

    def read(self, t_ns: int) -> Sequence[float]:
        if self._closed:
            return self._none
        values = self._none
        if not self._busy:
            answer, self._answer = self._answer, None
            if answer is not None:
                values = self._accept(answer)
            if self._due_ns is None or t_ns >= self._due_ns:
                self._send(t_ns)
        elif not self.silent and t_ns - self._asked_ns > self._late_ns:
            late_s = (t_ns - self._asked_ns) / 1e9
            self.note_missing(self._domain, f"no answer for {late_s:.0f} s")
        while self._news:
            self.events.append(self._news.popleft())
        return values

    def _accept(self, answer: _Answer) -> tuple[float, ...]:
        if answer.trouble:
            self.note_missing(self._domain, answer.trouble)
            return self._none
        self.note_answer(self._domain)
        age_s = (self._clock() - answer.at_ns) / 1e9
        if age_s > self.oldest_s:
            return self._none
        self.age_s = age_s
        return answer.values

    def _send(self, t_ns: int) -> None:
        self._asked_ns, self._due_ns = t_ns, t_ns + round(self.pace_s * 1e9)
        if self._thread is None:
            thread = threading.Thread(target=self._work, name=f"ckptcost {self.name}", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the process has as many threads as it may
                self.note_missing(self._domain, _reason(error))
                return
            self._thread = thread
        self._busy = True
        self._wake.set()

    def _work(self) -> None:
        meter = self._meter
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._closed:
                break
            try:
                values = tuple(meter.read(self._asked_ns))
                trouble = (
                    ""
                    if len(values) == len(self._none)
                    else f"{len(values)} values for {len(self._none)} channels"
                )
            except (
                BaseException
            ) as error:  # a thread that dies in silence would look like a sensor that is slow
                values, trouble = (), _reason(error)
            self._news.extend(meter.events)
            meter.events.clear()
            self._answer = _Answer(values, trouble, self._clock())
            self._busy = False
        with suppress(Exception):
            meter.close()

    def close(self) -> None:
        """Waits `stop_s` at most; a call that hangs in the kernel keeps its daemon thread, which
        then closes the meter itself."""
        if self._closed:
            return
        self._closed = True
        if self._thread is None:
            self._meter.close()
            return
        self._wake.set()
        stop = getattr(self._meter, "stop", None)
        if self._busy and stop is not None:
            with suppress(Exception):
                stop()
        self._thread.join(self.stop_s)
        if self._thread.is_alive():
            waits = f"still waits for an answer {self.stop_s:g} s after it was closed"
            self.tell("note", self._domain, waits)
