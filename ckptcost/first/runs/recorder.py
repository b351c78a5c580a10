"""The recorder: one thread, one clock, one timestamp a tick.

It runs inside a training process, so nothing here may raise into it, wait for a disk or hold a lock
that a mark needs.
"""

from __future__ import annotations

import atexit
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from time import process_time
from typing import Any, NamedTuple

from ckptcost.first.errors import MeterLost, brief
from ckptcost.first.meters.base import Event, Meter
from ckptcost.first.runs.clocks import Clock, RealClock, S, Wake, boot_id
from ckptcost.first.runs.header import Header, heads_of, host_name, new_run_id
from ckptcost.first.runs.lines import Raw, Values
from ckptcost.first.runs.pace import ROUTINE, Pace, Renewals, Tempo, Thinner, differ
from ckptcost.first.runs.sinks import Sink

# Asking one meter: when it is due, what to do when it is gone, and what to do when it breaks.


class Asked:
    """A meter and its state. `events` is emptied by the recorder."""

    __slots__ = (
        "_due_ns",
        "_least_ns",
        "_read",
        "_reopen",
        "_retry_ns",
        "_width",
        "aside",
        "events",
        "lost",
        "meter",
        "nothing",
    )

    def __init__(
        self, meter: Meter, retry_s: float, reopen: Callable[[], object] | None = None
    ) -> None:
        self.meter = meter
        self.lost = False
        self.aside = False
        self.events: list[Event] = []
        self.nothing: Values = (math.nan,) * len(meter.channels)
        self._width = len(meter.channels)
        self._read = meter.read
        self._reopen: Callable[[], object] | None = reopen or getattr(meter, "reopen", None)
        self._least_ns = round(meter.least_s * S)
        self._retry_ns = round(retry_s * S)
        self._due_ns = -(1 << 62)

    def ask(self, t_ns: int, planned_ns: int) -> Values | None:
        """Its values, or None where it was not asked. `planned_ns` is when this tick should have
        been: lateness must not skip a turn."""
        if planned_ns < self._due_ns:
            return None
        self._due_ns = planned_ns + self._least_ns
        if self.lost and self._reopen is not None and not self._reopened(planned_ns):
            return self.nothing
        try:
            values = tuple(map(float, self._read(t_ns)))
            if len(values) != self._width:
                raise ValueError(f"{len(values)} values for {self._width} channels")
        except MeterLost as error:
            self._lose(error, planned_ns)
            values = self.nothing
        except Exception as error:
            # a meter's defect must not end the recording, nor the training that it runs beside
            self._set_aside(error)
            values = self.nothing
        else:
            if self.lost:
                self.lost = False
                self._say("found", f"{self.meter.name} answers again")
        if self.meter.events:
            self.events += self.meter.events
            self.meter.events.clear()
        return values

    def _lose(self, error: MeterLost, planned_ns: int) -> None:
        self._due_ns = planned_ns + self._retry_ns
        if not self.lost:
            self.lost = True
            self._say("lost", str(error))

    def _reopened(self, planned_ns: int) -> bool:
        try:
            assert self._reopen is not None
            self._reopen()
        except MeterLost:
            self._due_ns = planned_ns + self._retry_ns
            return False
        except Exception as error:
            self._set_aside(error)
            return False
        return True

    def _set_aside(self, error: Exception) -> None:
        self.aside = True
        self._due_ns = 1 << 62
        self._say(
            "error",
            f"{type(error).__name__}: {brief(str(error), 200)}; {self.meter.name} is not asked any"
            " more",
        )

    def _say(self, name: str, text: str) -> None:
        self.events.append(Event(name, self.meter.name, text))

    def close(self) -> None:
        try:
            self.meter.close()
        except Exception as error:
            self._set_aside(error)


MINUTE_NS = 60 * S
_MOST_MARKS = 100_000
"""that wait for the recorder's thread; more than that is no checkpointing"""
_NOTES_EACH = 60
"""minutes until a note is said again"""
_MOST_DEFECTS = 10
"""in a row, then the recording ends and says so"""


class Latest(NamedTuple):
    """What a screen shows: the last answer of every meter and when it was given."""

    t_ns: int
    values: tuple[tuple[int, Values], ...]
    """by meter: when, and what"""
    lost: tuple[str, ...]
    """meters that do not answer"""
    windows: tuple[str, ...]
    """open ones"""


class RecorderStats(NamedTuple):
    """How the recorder itself is doing."""

    ticks: int
    late: int
    """ticks more than one period late"""
    latest_s: float
    """the latest of all"""
    missed: int
    """points of the lattice without a tick"""
    cpu_s: float
    """processor time of its threads; NaN with a virtual clock"""
    problem: str


def _header(
    meters: Sequence[Meter], pace: Pace, run_id: str, host: str, rank: int, purpose: str
) -> Header:
    return Header(
        run=run_id or new_run_id(),
        purpose=purpose,
        host=host or host_name(),
        rank=rank,
        boot=boot_id(),
        pid=os.getpid(),
        simulated=any(meter.simulated for meter in meters),
        meters=heads_of(meters),
        settings=pace.settings() | {"cores": float(os.cpu_count() or 1)},
    )


def event_line(t_ns: int, name: str, domain: str, text: str, **more: object) -> dict[str, Any]:
    return {"k": "event", "t": t_ns, "name": name, "domain": domain, "text": text, **more}


class Recorder:
    """`start` and `stop`, or `step` by hand with a virtual clock. It closes the meters at the
    end."""

    def __init__(
        self,
        meters: Sequence[Meter],
        sink: Sink,
        clock: Clock | None = None,
        pace: Pace | None = None,
        *,
        run_id: str = "",
        host: str = "",
        rank: int = 0,
        reopen: Mapping[str, Callable[[], object]] | None = None,
        alone: bool = False,
        purpose: str = "",
    ) -> None:
        """`alone`: the process is there to record, so all its threads are what recording costs;
        beside a training loop the recorder's own are."""
        self.clock: Clock = clock or RealClock()
        self._process_s = process_time() if alone and not self.clock.virtual else math.nan
        self._pace = pace or Pace()
        self._sink, self._meters, self._rank = sink, tuple(meters), rank
        self._asked = tuple(
            Asked(meter, self._pace.retry_s, (reopen or {}).get(meter.name))
            for meter in self._meters
        )
        self.header = _header(self._meters, self._pace, run_id, host, rank, purpose)
        self._renewals = tuple(Renewals(len(meter.channels)) for meter in self._meters)
        self._marks: deque[dict[str, Any]] = deque(maxlen=_MOST_MARKS)
        self._notes: list[dict[str, Any]] = []
        self._wake = Wake()
        self._expected: int | None = None
        self._latest: list[tuple[int, Values]] = [(0, asked.nothing) for asked in self._asked]
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._now_ns = self.clock.now_ns
        self._stopping = self._finished = self._begun = False
        self._ticks = self._late = self._latest_ns = self._missed = 0
        self._last_ns = self._next_ns = self._minute_ns = 0
        self._quick_since_ns = self._said_periods = self._minutes = 0
        self._problem = ""
        self._windows: tuple[str, ...] = ()

    def begin(self) -> None:
        """Opens the sink; `start` does it too. Raises OutputError."""
        self._sink.open(self.header, self.clock)
        origin_ns = self._next_ns = self._now_ns()
        self._tempo = Tempo(self._pace, origin_ns)
        self._tempo.expect(
            origin_ns + round(self._pace.quick_for_s * S)
        )  # sees how often the sources renew
        kinds = tuple(
            tuple(channel.is_counter for channel in meter.channels) for meter in self._meters
        )
        self._thinner = Thinner(kinds, self._sink.put, origin_ns, self._pace.around_s)
        self._last_ns, self._minute_ns = origin_ns - S, origin_ns + MINUTE_NS
        self._say_periods_ns = origin_ns + round(self._pace.quick_for_s * S)
        self._begun = True

    def start(self) -> Recorder:
        self.begin()
        self._thread = threading.Thread(target=self._loop, name="ckptcost-recorder", daemon=True)
        self._thread.start()
        atexit.register(self.stop)
        return self

    def mark(
        self,
        name: str,
        window: str = "",
        *,
        by: str = "api",
        rank: int | None = None,
        t_ns: int | None = None,
        **detail: object,
    ) -> None:
        """A named instant, now or at `t_ns`. From any thread or signal handler, about 1 us; polls
        at once. In a forked child: nothing."""
        at_ns = self._now_ns() if t_ns is None else t_ns
        if os.getpid() != self._pid:
            return
        fields = {
            "k": "mark",
            "t": at_ns,
            "name": name,
            "window": window,
            "rank": self._rank if rank is None else rank,
            "by": by,
        }
        if detail:
            fields["detail"] = detail
        self._marks.append(fields)
        if type(name) is not str or name not in ROUTINE:
            self._wake.ring()

    def note(self, domain: str, text: str = "", **detail: object) -> None:
        """Something that readers should know of the whole run: no mark, no window, nothing is
        polled for it. From any thread."""
        if os.getpid() == self._pid:
            fields = event_line(self._now_ns(), "note", domain, text, detail=detail)
            self._notes.append(fields)
            self._marks.append(fields)

    def expect(self, within_s: float) -> None:
        """A mark will come within so long: ask often from now on."""
        self._expected = self._now_ns() + round(within_s * S)
        self._wake.ring()

    def latest(self) -> Latest:
        lost = tuple(a.meter.name for a in self._asked if a.lost or a.aside)
        return Latest(self._last_ns, tuple(self._latest), lost, self._windows)

    @property
    def stats(self) -> RecorderStats:
        problem = self._problem or self._sink.problem
        return RecorderStats(
            self._ticks, self._late, self._latest_ns / S, self._missed, self._cpu_s, problem
        )

    _cpu_s = math.nan

    def step(self) -> None:
        """Waits for the next tick and does it."""
        planned_ns = self._next_ns
        woken = self.clock.wait(planned_ns, self._wake)
        now_ns = self._now_ns()
        if now_ns < planned_ns:
            if not woken:
                return
            if now_ns < self._last_ns + self._tempo.spacing_ns:
                self._next_ns = min(planned_ns, self._last_ns + self._tempo.spacing_ns)
                return
            planned_ns = now_ns
        self._tick(now_ns, planned_ns)

    def run_until(self, t_ns: int) -> None:
        """Every tick up to then; with a virtual clock, time stands there afterwards."""
        while self._next_ns <= t_ns:
            self.step()
        self.clock.wait(t_ns, self._wake)

    def _tick(self, t_ns: int, planned_ns: int) -> None:
        tempo = self._tempo
        values: list[Values | None] = []
        took: list[int] = []
        quick = t_ns < tempo.quick_until_ns
        for i, asked in enumerate(self._asked):
            answer = asked.ask(t_ns, planned_ns)
            values.append(answer)
            if answer is None:
                took.append(0)
                continue
            took.append(self._now_ns() - t_ns)
            self._latest[i] = (t_ns, answer)
            if quick:
                self._renewals[i].see(t_ns, answer, 2 * tempo.quick_ns)
            if asked.events:
                self._say_events(asked, t_ns)
        if self._expected is not None:
            tempo.expect(self._expected)
            self._expected = None
        if self._marks:
            self._take_marks()
        self._thinner.add(Raw(t_ns, tuple(took), tuple(values)), tempo.keeping(t_ns))
        self._account(t_ns, planned_ns)
        self._next_ns = tempo.next_ns(t_ns)
        self._sink.turn()

    def _take_marks(self) -> None:
        while self._marks:
            fields = self._marks.popleft()
            if fields["k"] == "event":
                self._sink.line(fields)
                continue
            try:
                fields |= {
                    "t": int(fields["t"]),
                    "name": str(fields["name"]),
                    "window": str(fields["window"]),
                }
            except Exception as error:  # somebody's __str__
                self._event(
                    self._now_ns(),
                    "error",
                    "recorder",
                    f"a mark was left out: {type(error).__name__}",
                )
                continue
            self._tempo.on_mark(fields["name"], fields["window"], fields["t"])
            if fields["name"] not in ROUTINE:
                self._thinner.keep_since(fields["t"])
            self._sink.line(fields)
        self._windows = tuple(self._tempo.windows)

    def _account(self, t_ns: int, planned_ns: int) -> None:
        self._ticks += 1
        self._last_ns = t_ns
        late_ns = t_ns - planned_ns
        self._latest_ns = max(self._latest_ns, late_ns)
        if late_ns > self._tempo.quick_ns:
            self._late += 1
            step_ns = (
                self._tempo.quick_ns
                if planned_ns < self._tempo.quick_until_ns
                else self._tempo.rest_ns
            )
            self._missed += late_ns // step_ns
        if t_ns >= self._say_periods_ns:
            self._say_periods_ns = 1 << 62
            self._say_periods(t_ns)
        if t_ns >= self._minute_ns:
            self._minute_ns += ((t_ns - self._minute_ns) // MINUTE_NS + 1) * MINUTE_NS
            self._say_minute(t_ns)

    def _say_minute(self, t_ns: int) -> None:
        at_ns, wall_ns = self.clock.pair()
        self._sink.line({"k": "clock", "t": at_ns, "w": wall_ns})
        self._say_periods(t_ns)
        self._event(t_ns, "cost", "self", "", detail=self._cost())
        self._minutes += 1
        if self._minutes % _NOTES_EACH == 0:
            # of a long run the first parts are removed, and with them what was said first
            for note in self._notes:
                self._sink.line(note | {"t": t_ns})
        for window in self._tempo.abandoned(t_ns):
            self._event(
                t_ns,
                "note",
                "recorder",
                f"window {window!r} has no end; single ticks are not kept for it any more",
            )

    def _cost(self) -> dict[str, object]:
        self._cpu_s = process_time() - self._process_s
        if math.isnan(self._cpu_s):
            self._cpu_s = self.clock.cpu_s() + self._sink.cpu_s
        cpu_s = round(self._cpu_s, 6)
        return {
            "cpu_s": cpu_s,
            "ticks": self._ticks,
            "late": self._late,
            "latest_ns": self._latest_ns,
            "missed": self._missed,
        }

    def _say_periods(self, t_ns: int) -> None:
        periods_s = tuple(renewals.periods_s() for renewals in self._renewals)
        if differ(self._sink.periods_s, periods_s):
            self._sink.periods_s = periods_s
            self._sink.line({"k": "periods", "t": t_ns, "v": periods_s})

    def _say_events(self, asked: Asked, t_ns: int) -> None:
        for event in asked.events:
            self._event(t_ns, event.name, event.domain, event.text)
        asked.events.clear()

    def _event(self, t_ns: int, name: str, domain: str, text: str, **more: object) -> None:
        self._sink.line(event_line(t_ns, name, domain, text, **more))

    def _loop(self) -> None:
        defects = 0
        while not self._stopping and defects < _MOST_DEFECTS:
            try:
                self.step()
                defects = 0
            except (
                Exception
            ) as error:  # a defect of ours: say it, go on, and give up only when nothing works
                defects += 1
                self._problem = f"the recorder failed: {type(error).__name__}: {error}"
                self._next_ns = self._now_ns() + self._tempo.rest_ns
                if defects == 1:
                    self._event(self._now_ns(), "error", "recorder", self._problem)
        try:
            self._finish("stopped" if self._stopping else "failed")
        except Exception as error:
            self._problem = f"the recorder failed at its end: {type(error).__name__}: {error}"

    def _finish(self, why: str) -> None:
        if self._finished:
            return
        self._finished = True
        t_ns = self._now_ns()
        if t_ns > self._last_ns and why == "stopped":
            try:
                self._tick(t_ns, t_ns)
            except Exception as error:
                self._problem = f"the last tick failed: {type(error).__name__}: {error}"
        self._take_marks()
        self._thinner.close()
        self._say_periods(t_ns)
        at_ns, wall_ns = self.clock.pair()
        self._sink.line({"k": "clock", "t": at_ns, "w": wall_ns})
        self._event(t_ns, "cost", "self", "", detail=self._cost())
        self._sink.line({"k": "end", "t": t_ns, "why": why, **self._cost()})
        for asked in self._asked:
            asked.close()
        self._sink.turn()

    def stop(self, timeout_s: float = 10.0) -> None:
        """One last tick, everything to the disk. Twice is as good as once; in a forked child it
        does nothing."""
        if os.getpid() != self._pid or not self._begun:
            return
        self._stopping = True
        self._wake.ring()
        if self._thread is not None:
            atexit.unregister(self.stop)
            if self._thread is not threading.current_thread():
                self._thread.join(timeout_s)
        else:
            self._finish("stopped")
        self._begun = False
        self._sink.close()
