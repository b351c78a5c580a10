"""A slow meter behind a thread: given once, never waited for, gone after close."""

from __future__ import annotations

import math
import sys
import threading
import time

import pytest

from ckptcost.first.core.channels import Channel
from ckptcost.first.errors import MeterLost
from ckptcost.first.meters.background import Background
from ckptcost.first.meters.base import Basic, Event, Meter

NODE = Channel("node", "power_w", "a test", role="whole")
SECOND = 1_000_000_000


class Slow(Basic):
    """Answers when told to; `answers` are values or errors, in order."""

    def __init__(self, answers, least_s=1.0):
        super().__init__("slow", (NODE,), least_s)
        self.answers = list(answers)
        self.go = threading.Semaphore(0)
        self.asked: list[int] = []
        self.closed = 0

    def read(self, t_ns):
        self.asked.append(t_ns)
        assert self.go.acquire(timeout=5.0)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def close(self):
        self.closed += 1


class Clock:
    now_ns = 0

    def __call__(self):
        return self.now_ns


def under_way(slow: Slow) -> None:
    """Until the thread is in the call."""
    end = time.monotonic() + 5.0
    while not slow.asked and time.monotonic() < end:
        time.sleep(0.0005)
    assert slow.asked


def settle(meter: Background) -> None:
    """Until the thread has answered."""
    end = time.monotonic() + 5.0
    while meter._busy and time.monotonic() < end:
        time.sleep(0.0005)
    assert not meter._busy


@pytest.fixture
def opened():
    made: list[Background] = []
    before = set(threading.enumerate())

    def make(slow, **more):
        made.append(Background(slow, **more))
        return made[-1]

    yield make
    for meter in made:
        meter._meter.go.release(50) if isinstance(meter._meter, Slow) else None
        meter.close()
    assert set(threading.enumerate()) == before


def test_it_is_a_meter_and_tells_of_the_one_behind(opened):
    slow = Slow([], least_s=2.0)
    slow.facts["tool"] = "x"
    meter = opened(slow)
    assert isinstance(meter, Meter)
    assert (meter.name, meter.channels, meter.least_s, meter.simulated) == (
        "slow",
        (NODE,),
        0.0,
        False,
    )
    assert meter.facts["tool"] == "x"
    assert "2 s" in meter.facts["asked"]


def test_an_answer_is_given_once_and_never_waited_for(opened):
    slow = Slow([(100.0,), (200.0,)])
    meter = opened(slow)
    assert meter.thread is None  # nobody asked yet
    assert math.isnan(meter.read(0)[0])
    assert math.isnan(meter.read(10)[0])  # still under way
    slow.go.release()
    settle(meter)
    assert meter.read(20) == (100.0,)
    assert math.isnan(meter.read(30)[0])
    settle(meter)
    assert slow.asked == [0]
    assert meter.events == []


def test_the_thread_works_only_when_asked_and_not_before_least_s(opened):
    slow = Slow([(float(n),) for n in range(9)])
    slow.go.release(9)
    meter = opened(slow)
    assert meter.thread is None  # so nobody can be asked
    got = []
    for t_ns in range(0, 3 * SECOND, SECOND // 20):
        value = meter.read(t_ns)[0]
        settle(meter)
        if value == value:
            got.append((t_ns, value))
    assert slow.asked == [0, SECOND, 2 * SECOND]
    step = SECOND // 20
    assert got == [(step, 0.0), (SECOND + step, 1.0), (2 * SECOND + step, 2.0)]
    assert not meter._busy
    assert len(slow.asked) == 3


def test_age_is_told_and_bounded(opened):
    slow, clock = Slow([(100.0,), (200.0,)]), Clock()
    slow.go.release(2)
    meter = opened(slow, oldest_s=3.0, clock=clock)
    assert math.isnan(meter.age_s)
    meter.read(0)
    settle(meter)
    clock.now_ns = 3 * SECOND
    assert meter.read(3 * SECOND) == (100.0,)
    assert meter.age_s == 3.0
    settle(meter)
    clock.now_ns = 6 * SECOND + 1
    assert math.isnan(
        meter.read(7 * SECOND)[0]
    )  # nobody asked for so long that it says nothing any more
    assert meter.age_s == 3.0


def test_trouble_is_told_once_and_so_is_its_end(opened):
    slow = Slow(
        [
            MeterLost("cable out"),
            OSError(5, "again"),
            (7.0,),
            (8.0,),
            ValueError(),
            (9.0,),
            SystemExit(3),
            (1.0, 2.0),
        ]
    )
    slow.go.release(20)
    meter = opened(slow)
    seen = []
    for second in range(9):
        seen.append(meter.read(second * SECOND)[0])
        settle(meter)
    assert [v for v in seen if v == v] == [7.0, 8.0, 9.0]
    assert meter.events == [
        Event("lost", "node", "cable out"),
        Event("found", "node", "answers again"),
        Event("lost", "node", "ValueError"),
        Event("found", "node", "answers again"),
        Event("lost", "node", "SystemExit: 3"),
    ]
    assert meter.thread.is_alive()


def test_a_wrong_number_of_values_is_trouble(opened):
    slow = Slow([(1.0, 2.0)])
    slow.go.release()
    meter = opened(slow)
    meter.read(0)
    settle(meter)
    assert math.isnan(meter.read(1)[0])
    assert meter.events == [Event("lost", "node", "2 values for 1 channels")]


def test_events_of_the_meter_pass_through_in_order(opened):
    class Talks(Slow):
        def read(self, t_ns):
            self.events.append(Event("note", "node", f"at {t_ns}"))
            return (1.0,)

    meter = opened(Talks([]))
    for second in range(3):
        meter.read(second * SECOND)
        settle(meter)
    meter.read(2 * SECOND + 1)
    assert [event.text for event in meter.events] == ["at 0", f"at {SECOND}", f"at {2 * SECOND}"]
    assert meter._meter.events == []


def test_an_answer_that_does_not_come_is_told(opened):
    slow = Slow([(5.0,)])
    meter = opened(slow, late_s=30.0)
    meter.read(0)
    meter.read(30 * SECOND)
    assert meter.events == []
    meter.read(31 * SECOND)
    meter.read(32 * SECOND)
    assert meter.events == [Event("lost", "node", "no answer for 31 s")]
    slow.go.release()
    settle(meter)
    assert meter.read(33 * SECOND) == (5.0,)
    assert meter.events[1:] == [Event("found", "node", "answers again")]


def test_close_ends_the_thread_and_the_meter_once():
    before = set(threading.enumerate())
    slow = Slow([(5.0,)])
    slow.go.release()
    meter = Background(slow)
    meter.read(0)
    settle(meter)
    thread = meter.thread
    meter.close()
    meter.close()
    assert not thread.is_alive()
    assert slow.closed == 1
    assert set(threading.enumerate()) == before
    assert math.isnan(meter.read(9 * SECOND)[0])
    assert len(slow.asked) == 1


def test_close_without_a_reading_needs_no_thread():
    slow = Slow([])
    meter = Background(slow)
    meter.close()
    assert (meter.thread, slow.closed) == (None, 1)


def test_close_stops_a_call_that_can_be_stopped():
    class Stops(Slow):
        def stop(self):
            self.answers = [OSError("stopped")]
            self.go.release()

    meter = Background(Stops([]), stop_s=2.5)
    meter.read(0)
    under_way(meter._meter)
    meter.close()
    assert not meter.thread.is_alive()
    assert meter._meter.closed == 1


def test_a_call_that_hangs_does_not_hold_close_up():
    slow = Slow([(1.0,)])
    meter = Background(slow, stop_s=0.05)
    meter.read(0)
    under_way(slow)
    meter.close()
    assert [event.name for event in meter.events] == ["note"]
    assert slow.closed == 0  # not from under the call
    assert meter.thread.daemon
    slow.go.release()
    meter.thread.join(5.0)
    assert (meter.thread.is_alive(), slow.closed) == (False, 1)


def test_no_thread_to_be_had_is_trouble(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    meter = Background(Slow([]))
    assert math.isnan(meter.read(0)[0])
    assert meter.events == [Event("lost", "node", "RuntimeError: can't start new thread")]
    meter.close()


def test_many_ticks_against_a_busy_thread_lose_and_double_nothing(opened):
    class Counts(Slow):
        n = 0

        def read(self, t_ns):
            self.n += 1
            return (float(self.n),)

    meter = opened(Counts([], least_s=0.0))
    switch_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        got, end = [], time.monotonic() + 5.0
        while len(got) < 200 and time.monotonic() < end:
            value = meter.read(len(got))[0]
            got += [value] if value == value else []
    finally:
        sys.setswitchinterval(switch_s)
    assert got == [float(n) for n in range(1, 201)]  # each answer once, in order
