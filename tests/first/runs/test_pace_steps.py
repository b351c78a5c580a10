"""Training steps are told once a second: nobody looks closer for them, or a recorder would never
rest."""

from __future__ import annotations

import time

import pytest
from steady_meters import Steady
from waiting import wait_for

from ckptcost.first.runs.clocks import S, VirtualClock
from ckptcost.first.runs.pace import Pace, Tempo
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import MemorySink


@pytest.mark.parametrize(("name", "quick"), [("steps", False), ("note", True), ("begin", True)])
def test_only_steps_leave_the_tempo_alone(name, quick):
    tempo = Tempo(Pace(), 0)
    tempo.on_mark(name, "", 10 * S)
    assert (tempo.quick_until_ns > 0, tempo.keeping(11 * S)) == (quick, quick)


def test_steps_end_no_window():
    tempo = Tempo(Pace(), 0)
    tempo.on_mark("begin", "w", 0)
    tempo.on_mark("steps", "w", S)
    assert list(tempo.windows) == ["w"]


@pytest.mark.parametrize(("name", "least", "most"), [("steps", 5, 5), ("note", 40, 60)])
def test_a_steps_mark_brings_no_tick_of_its_own_and_none_that_are_quick(name, least, most):
    recorder = Recorder([meter := Steady()], MemorySink(), clock := VirtualClock(), host="n")
    recorder.begin()
    recorder.run_until(10 * S)
    clock.set(10 * S + 50_000_000)
    recorder.mark(name, ends_ms=[0.0, 1.0], base=10 * S)
    recorder.run_until(11 * S)
    assert least <= len([t_ns for t_ns in meter.asked if t_ns > 10 * S]) <= most
    recorder.stop()
    run = recorder._sink.run()
    (mark,) = [mark for mark in run.marks if mark.name == name]
    assert mark.detail["ends_ms"] == [0.0, 1.0], "but it is written like any other"


def test_single_readings_are_not_kept_for_steps():
    def singles(name):
        recorder = Recorder(
            [Steady()], sink := MemorySink(), VirtualClock(), host="n", pace=Pace(quick_for_s=0.1)
        )
        recorder.begin()
        for second in range(10, 40):
            recorder.run_until(second * S)
            recorder.mark(name)
        recorder.stop()
        return len(sink._ticks)

    assert singles("steps") < 60
    assert singles("note") > 140


def test_the_bell_is_not_rung():
    recorder = Recorder(
        [meter := Steady()], MemorySink(), host="n", pace=Pace(rest_s=5.0, quick_s=5.0)
    )
    recorder.start()
    wait_for(lambda: recorder.mark("steps") or meter.asked)
    time.sleep(0.1)
    first = len(meter.asked)
    for _ in range(20):
        recorder.mark("steps")
        time.sleep(0.005)
    assert len(meter.asked) == first
    recorder.mark("note")
    wait_for(lambda: len(meter.asked) > first)
    recorder.stop()


@pytest.mark.parametrize("name", [[], {}, 7, None])
def test_a_name_that_is_no_text_does_not_raise(name):
    recorder = Recorder([Steady()], MemorySink(), VirtualClock(), host="n")
    recorder.begin()
    recorder.mark(name)
    recorder.run_until(S)
    recorder.stop()
