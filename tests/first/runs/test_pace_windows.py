"""The small print of recording: when a window is over, what lateness does, what a broken meter or a
broken sink leaves standing."""

from __future__ import annotations

import atexit
import math
import time

import numpy as np
import pytest
from steady_meters import EVEN, Steady
from waiting import wait_for

from ckptcost.first.errors import MeterLost
from ckptcost.first.runs.clocks import S, VirtualClock
from ckptcost.first.runs.lines import Raw, Second
from ckptcost.first.runs.pace import Pace, Tempo, Thinner, summarise
from ckptcost.first.runs.recorder import Asked, Recorder
from ckptcost.first.runs.sinks import MemorySink

MS = 1_000_000


# ---- windows ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("marks", "is_open"),
    [
        ("begin end", False),
        ("begin returned", True),
        ("begin durable", True),
        ("begin synced", True),
        ("begin returned committed", True),
        ("begin returned written", True),
        ("begin returned durable", False),
        ("begin returned synced", False),
        ("begin durable returned", False),
        ("begin synced committed returned", False),
        ("begin written end", False),
        ("begin returned begin durable", True),
        ("begin returned durable begin", True),
        ("durable", False),
    ],
)
def test_a_window_is_open_until_training_goes_on_and_the_save_is_safe(marks, is_open):
    tempo = Tempo(EVEN, 0)
    for second, name in enumerate(marks.split()):
        tempo.on_mark(name, "w", second * S)
    assert (list(tempo.windows) == ["w"]) is is_open
    assert tempo.keeping(60 * S) is is_open


def test_windows_are_given_up_later_when_nobody_returned():
    tempo = Tempo(Pace(window_most_s=100.0, drain_most_s=20.0), 0)
    tempo.on_mark("begin", "held", 0)
    tempo.on_mark("begin", "draining", 0)
    tempo.on_mark("returned", "draining", 10 * S)
    assert tempo.abandoned(30 * S) == []
    assert tempo.abandoned(30 * S + 1) == ["draining"]
    assert tempo.abandoned(100 * S) == []
    assert tempo.abandoned(100 * S + 1) == ["held"]
    assert tempo.windows == {}
    tempo.on_mark("durable", "held", 101 * S)


def test_a_mark_that_comes_late_ends_nothing_early():
    tempo = Tempo(EVEN, 0)
    tempo.on_mark("note", "", 10 * S)
    until_ns = tempo.quick_until_ns, tempo.keep_until_ns
    assert until_ns == (11_500 * MS, 12 * S)
    tempo.on_mark("note", "", 5 * S)
    tempo.expect(6 * S)
    assert (tempo.quick_until_ns, tempo.keep_until_ns) == until_ns
    tempo.expect(20 * S)
    assert (tempo.quick_until_ns, tempo.keep_until_ns) == (20 * S, 12 * S)


def test_the_slow_lattice_is_part_of_the_quick_one():
    tempo = Tempo(Pace(rest_s=0.25, quick_s=0.1), origin_ns=7 * MS)
    at_ns, seen = 7 * MS, []
    for _ in range(5):
        at_ns = tempo.next_ns(at_ns)
        seen.append(at_ns - 7 * MS)
    assert seen == [200 * MS * k for k in range(1, 6)]


@pytest.mark.parametrize(
    "wrong", ["quick_for_s", "around_s", "window_most_s", "drain_most_s", "retry_s"]
)
def test_times_are_not_negative(wrong):
    with pytest.raises(ValueError, match=wrong):
        Pace(**{wrong: -1.0})
    assert Pace(**{wrong: 0.0}).settings()[wrong] == 0.0


@pytest.mark.parametrize("tick_s", [0.01, 0.02, 0.05, 0.1])
def test_quick_polls_are_off_the_beat_of_every_usual_counter(tick_s):
    """They look at a tick from all sides within the quick time; polls of 20 ms look from one to
    five of them."""

    def widest_s(pace):
        tempo, polls_ns = Tempo(pace, 0), [0]
        tempo.expect(round(pace.quick_for_s * S))
        while polls_ns[-1] < tempo.quick_until_ns:
            polls_ns.append(tempo.next_ns(polls_ns[-1]))
        assert min(np.diff(polls_ns)) >= tempo.spacing_ns
        seen_s = np.sort(np.mod(np.array(polls_ns) / S + 1e-9, tick_s))
        return float(np.max(np.diff(seen_s, append=seen_s[0] + tick_s)))

    assert widest_s(Pace()) < 0.008
    assert widest_s(EVEN) >= 0.0099


@pytest.mark.parametrize(("rest_s", "quick_s"), [(0.2, 0.0005), (0.01, 0.02), (10.5, 0.02)])
def test_a_pace_has_bounds_and_is_quicker_when_it_is_quick(rest_s, quick_s):
    with pytest.raises(ValueError, match="1 ms to 10 s"):
        Pace(rest_s=rest_s, quick_s=quick_s)
    assert Pace(rest_s=10.0, quick_s=0.001).quick_s == 0.001


# ---- seconds ----------------------------------------------------------------------------------


def thinner_of(until_s, put):
    thinner = Thinner(((True,),), put, 0, 2.0)
    for ms in range(0, round(until_s * 1000), 200):
        thinner.add(Raw(ms * MS, (0,), ((float(ms),),)), False)
    return thinner


@pytest.mark.parametrize(
    ("until_s", "mark_s", "since_s"),
    [(5.1, 5.0, 3), (5.1, 5.001, 3), (5.9, 5.9, 3), (6.1, 6.0, 4), (5.1, 4.6, 2), (5.1, 4.2, 2)],
)
def test_two_seconds_before_a_mark_are_called_back_late_ones_too(until_s, mark_s, since_s):
    out = []
    thinner_of(until_s, out.append).keep_since(round(mark_s * S))
    assert [r.t_ns for r in out if type(r) is Raw][:1] == [since_s * S]


def test_closing_twice_says_nothing_twice():
    out = []
    thinner = thinner_of(0.9, out.append)
    thinner.close()
    thinner.close()
    assert [type(r) for r in out] == [Second]


def test_what_did_not_change_is_one_number():
    seen = summarise([Raw(k, (0,), ((5.0, 300.0),)) for k in range(5)], ((True, False),))
    assert seen.values == ([5.0, 300.0],)
    assert (
        summarise([Raw(k, (0,), ((5.0, 1e6 + k),)) for k in range(2)], ((True, False),)).values[0][
            1
        ][0]
        == 1e6 + 0.5
    )


# ---- asking -----------------------------------------------------------------------------------


class Sick(Steady):
    def __init__(self, error=None, **more):
        super().__init__(count=1, **more)
        self.error = error

    def read(self, t_ns):
        row = super().read(t_ns)
        if self.error is not None:
            raise self.error
        return row

    def close(self):
        super().close()
        if self.error is not None:
            raise self.error


def test_lateness_skips_no_turn():
    meter = Steady(least_s=1.0)
    asked = Asked(meter, 10.0)
    for t_s, planned_s in ((10.3, 10.0), (10.9, 10.9), (11.1, 10.9), (11.2, 11.0), (12.0, 12.0)):
        asked.ask(round(t_s * S), round(planned_s * S))
    assert [t_ns / S for t_ns in meter.asked] == [10.3, 11.2, 12.0]


def test_a_lost_meter_is_opened_again_before_it_is_asked_and_not_more_often_than_said():
    meter, opened = Sick(MeterLost("gone", "")), []

    def reopen():
        opened.append(1)
        if len(opened) < 3:
            raise MeterLost("still gone", "")

    asked = Asked(meter, 10.0, reopen)
    meter.reopen = lambda: pytest.fail("another way was given")
    for second in range(36):
        values = asked.ask(second * S, second * S)
        assert values is None or all(map(math.isnan, values)) is (second < 30)
        if second == 25:
            meter.error = None
    assert len(opened) == 3
    assert [t_ns / S for t_ns in meter.asked] == [0.0, 30.0, 31.0, 32.0, 33.0, 34.0, 35.0]
    assert [event.name for event in asked.events] == ["lost", "found"]
    assert not asked.lost
    assert not asked.aside


@pytest.mark.parametrize("broken", ["read", "too many"])
def test_what_breaks_is_set_aside_for_good(broken):
    meter = Sick(ValueError("bad") if broken == "read" else None)
    if broken == "too many":
        meter.read = lambda t_ns: [1.0] * (len(meter.channels) + 1)
    asked = Asked(meter, 1.0)
    for second in range(5):
        asked.ask(second * S, second * S)
    assert asked.aside
    assert [event.name for event in asked.events] == ["error"]
    assert asked.ask(10**6 * S, 10**6 * S) is None


def test_what_breaks_while_it_is_opened_again_is_set_aside():
    def reopen():
        raise KeyError("no such thing")

    asked = Asked(meter := Sick(MeterLost("gone", "")), 10.0, reopen)
    for second in range(15):
        asked.ask(second * S, second * S)
    assert (asked.aside, len(meter.asked)) == (True, 1)
    assert [event.name for event in asked.events] == ["lost", "error"]


@pytest.mark.parametrize("error", [OSError(5, "I/O error"), ValueError("closed"), RuntimeError()])
def test_a_meter_that_cannot_be_closed_is_said_and_stops_nothing(error):
    meter = Sick(error)
    asked = Asked(meter, 1.0)
    asked.close()
    assert (meter.closed, asked.aside, [event.name for event in asked.events]) == (
        1,
        True,
        ["error"],
    )


# ---- the recorder -----------------------------------------------------------------------------


def going(*meters, **more):
    more = {"pace": EVEN, **more}
    recorder = Recorder(meters, MemorySink(), clock := VirtualClock(), host="node1", **more)
    recorder.begin()
    return recorder, clock


def run_of(recorder):
    recorder.stop()
    return recorder._sink.run()


def test_stopped_at_once_there_is_one_reading_and_at_a_tick_no_second_one():
    recorder, _ = going(meter := Steady())
    assert (run_of(recorder).duration_s, meter.asked) == (0.0, [0])
    recorder, _ = going(meter := Steady())
    recorder.run_until(5 * S)
    run_of(recorder)
    assert meter.asked[-2:] == [4800 * MS, 5 * S]
    recorder, clock = going(meter := Steady())
    recorder.run_until(5 * S)
    clock.set(5113 * MS)
    run_of(recorder)
    assert meter.asked[-2:] == [5 * S, 5113 * MS]


def test_before_it_began_there_is_nothing_to_stop():
    recorder = Recorder([meter := Steady()], MemorySink(), VirtualClock())
    recorder.stop()
    assert (meter.asked, meter.closed) == ([], 0)


def test_a_mark_that_is_expected_is_waited_for_quickly():
    recorder, clock = going(meter := Steady())
    recorder.run_until(10 * S)
    clock.set(10_113 * MS)
    recorder.expect(3.0)
    recorder.run_until(20 * S)
    asked = [t_ns // MS for t_ns in meter.asked if t_ns > 10 * S]
    assert asked[:3] == [10_113, 10_120, 10_140]
    assert [ms for ms in range(10_120, 13_100, 20) if ms not in asked] == []
    # then slowly again
    assert [ms for ms in asked if ms > 13_200] == list(range(13_400, 20_001, 200))


def test_a_mark_just_before_the_next_tick_does_not_put_it_off():
    recorder, clock = going(meter := Steady())
    recorder.run_until(10 * S)
    for ms in (10_191, 10_197, 10_199):
        clock.set(ms * MS)
        recorder.mark("note")
        recorder.step()
    recorder.run_until(10_220 * MS)
    # marks 5 ms apart have a tick each, closer ones wait for the next
    assert [t_ns // MS for t_ns in meter.asked][-4:] == [10_191, 10_197, 10_200, 10_220]


def test_each_meter_is_timed_by_its_own_call():
    class Slow(Steady):
        def read(self, t_ns):
            self.clock.set(self.clock.now_ns() + 3 * MS)
            return super().read(t_ns)

    meters = Slow("one"), Slow("two", kind="cpu")
    recorder, clock = going(*meters)
    for meter in meters:
        meter.clock = clock
    recorder.run_until(S)
    run = run_of(recorder)
    assert run.series("gpu:0 energy_j").took_s.tolist()[:5] == [0.003] * 5
    assert run.series("cpu:0 energy_j").took_s.tolist()[:5] == [0.003] * 5


def test_lateness_is_counted_in_ticks_of_the_pace_it_missed():
    recorder, clock = going(Steady())
    recorder.run_until(10 * S)
    assert recorder.stats[:4] == (recorder.stats.ticks, 0, 0.0, 0)
    clock.set(10_210 * MS)  # by half a quick period: nothing
    recorder.step()
    assert recorder.stats[1:4] == (0, 0.01, 0)
    clock.set(11_150 * MS)  # the tick of 10.4 s, and those of 10.6, 10.8 and 11
    recorder.step()
    assert recorder.stats[1:4] == (1, 0.75, 3)
    recorder.mark("note")
    recorder.run_until(11_200 * MS)
    clock.set(11_330 * MS)  # in the quick pace: the tick of 11.22 s and five more
    recorder.step()
    assert recorder.stats[1:4] == (2, 0.75, 3 + 5)


class TestHowOftenSourcesAreRenewed:
    def test_is_said_after_the_first_quick_seconds(self):
        recorder, _ = going(Steady(tick_ns=100 * MS))
        recorder.run_until(1600 * MS)
        assert recorder._sink.periods_s[0][0] == pytest.approx(0.1)

    def test_is_said_each_minute_when_it_was_seen_later(self):
        recorder, _ = going(Steady(tick_ns=100 * MS), pace=Pace(quick_for_s=0.3))
        recorder.run_until(20 * S)
        assert math.isnan(recorder._sink.periods_s[0][0])
        for second in range(21, 27):
            recorder.mark("note")
            recorder.run_until(second * S)
        assert math.isnan(recorder._sink.periods_s[0][0])
        recorder.run_until(61 * S)
        assert recorder._sink.periods_s[0][0] == pytest.approx(0.1, rel=0.1)

    def test_is_said_at_the_end_of_a_short_run(self):
        recorder, _ = going(Steady(tick_ns=100 * MS))
        recorder.run_until(S)
        run = run_of(recorder)
        assert run.node().period_s(run.channels[0]) == pytest.approx(0.1)

    def test_is_not_measured_from_one_quick_stretch_to_the_next(self):
        recorder, _ = going(Steady(tick_ns=300 * MS))
        for second in range(3, 20, 3):
            recorder.run_until(second * S)
            recorder.mark("note")
        recorder.run_until(25 * S)
        run = run_of(recorder)
        assert run.node().period_s(run.channels[0]) == pytest.approx(0.3, rel=0.05)


def test_after_a_long_sleep_the_minutes_are_not_said_one_by_one():
    recorder, clock = going(Steady())
    recorder.run_until(50 * S)
    clock.set(1000 * S)
    recorder.run_until(1010 * S)
    costs = [event.t_s for event in run_of(recorder).events if event.name == "cost"]
    assert [t_s for t_s in costs if t_s < 1010.0] == [1000.0]


def test_what_is_wrong_with_the_sink_is_told():
    recorder, _ = going(Steady())
    recorder._sink.problem = "the disk is full"
    assert recorder.stats.problem == "the disk is full"


# ---- its thread -------------------------------------------------------------------------------


def failing(recorder, when):
    """Its tick fails as `when` says of the count of ticks so far."""
    recorder.begin()
    ticked, calls = recorder._tick, []

    def tick(t_ns, planned_ns):
        calls.append(time.monotonic())
        if when(len(calls)):
            raise RuntimeError("a defect")
        ticked(t_ns, planned_ns)

    recorder._tick, recorder.begin = tick, lambda: None
    return calls


def test_a_defect_that_passes_ends_nothing_and_is_said_once_a_stretch():
    recorder = Recorder(
        [Steady()], MemorySink(), pace=Pace(rest_s=0.01, quick_s=0.01, quick_for_s=0.0)
    )
    calls = failing(recorder, lambda n: n % 3 != 0 and n <= 30)
    recorder.start()
    wait_for(lambda: len(calls) >= 34)
    recorder.stop()
    run = recorder._sink.run()
    assert run.ended
    assert recorder.stats.ticks >= 13
    assert "a defect" in recorder.stats.problem
    assert len([event for event in run.events if event.name == "error"]) == 10, (
        "twenty defects in ten stretches"
    )
    # after each it rests
    assert calls[1] - calls[0] >= 0.009


def test_a_defect_that_stays_ends_the_recording_as_failed():
    recorder = Recorder(
        [meter := Steady()], MemorySink(), pace=Pace(rest_s=0.01, quick_s=0.01, quick_for_s=0.0)
    )
    calls = failing(recorder, lambda n: True)
    recorder.start()
    wait_for(lambda: not recorder._thread.is_alive())
    assert len(calls) == 10
    assert [fields["why"] for fields in recorder._sink._lines if fields["k"] == "end"] == ["failed"]
    assert meter.closed == 1
    recorder.stop()


def test_it_leaves_nothing_for_the_end_of_the_process_and_counts_its_writers_time(monkeypatch):
    waiting = []
    monkeypatch.setattr(atexit, "register", waiting.append)
    monkeypatch.setattr(atexit, "unregister", waiting.remove)
    sink = MemorySink()
    sink.cpu_s = 1000.0
    recorder = Recorder([meter := Steady()], sink).start()
    assert waiting == [recorder.stop]
    wait_for(lambda: meter.asked)
    recorder.stop()
    assert waiting == []
    assert 1000.0 < recorder.stats.cpu_s < 1010.0


def test_a_meter_whose_reopening_breaks_is_set_aside_for_good():
    def reopen():
        raise KeyError("no such thing")

    gone = Steady()
    gone.read = lambda t_ns: (_ for _ in ()).throw(MeterLost("gone", ""))
    asked = Asked(gone, 10.0, reopen)
    for second in range(60):
        asked.ask(second * S, second * S)
    assert [event.name for event in asked.events] == ["lost", "error"]
