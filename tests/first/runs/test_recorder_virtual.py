"""The recorder on a clock that jumps: lattice, truth, faults and bounds, hours in a second."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from steady_meters import EVEN, Steady

from ckptcost.first.errors import MeterLost, OutputError
from ckptcost.first.meters.base import Event
from ckptcost.first.runs.clocks import S, VirtualClock
from ckptcost.first.runs.reader import load
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink, MemorySink

MS = 1_000_000


def going(meters, sink=None, **more):
    clock = VirtualClock()
    more = {"pace": EVEN, **more}
    recorder = Recorder(meters, sink or MemorySink(), clock, host="node1", **more)
    recorder.begin()
    return recorder, clock


def until(recorder, clock, t_s):
    while recorder._next_ns <= t_s * S:
        recorder.step()
    clock.set(round(t_s * S))


def test_ticks_lie_on_the_lattice_and_nowhere_else():
    meter = Steady()
    recorder, clock = going([meter])
    until(recorder, clock, 30)
    recorder.mark("begin", "w")
    until(recorder, clock, 60)
    quick = [k * 20 * MS for k in range(75)]
    around = [30 * S, *(30 * S + k * 20 * MS for k in range(1, 75))]
    rest = [
        k * 200 * MS
        for k in range(301)
        if k * 200 * MS >= 1500 * MS and not 30 * S <= k * 200 * MS < 31_500 * MS
    ]
    asked = sorted(meter.asked)
    assert set(asked) >= {*quick, *around, *rest}
    assert len(asked) == len(set(asked))
    extra = set(asked) - {*quick, *around, *rest}
    assert extra <= {
        1500 * MS,
        30_005 * MS,
        31_500 * MS,
    }  # the ends of being quick, and the mark that came just after a tick
    assert recorder.stats.late == recorder.stats.missed == 0


def test_a_mark_between_two_ticks_polls_at_once():
    meter = Steady()
    recorder, clock = going([meter])
    until(recorder, clock, 10)
    clock.set(10 * S + 123_456_789)
    recorder.mark("begin", "w")
    recorder.step()
    assert meter.asked[-1] == 10 * S + 123_456_789
    recorder.step()
    assert meter.asked[-1] == 10 * S + 140 * MS


def test_a_crowd_of_marks_shares_ticks():
    meter = Steady()
    recorder, clock = going([meter])
    until(recorder, clock, 10)
    before = len(meter.asked)
    for k in range(1000):
        clock.set(10 * S + k * 10_000)
        recorder.mark("note", str(k))
        recorder.step()
    until(recorder, clock, 11)
    recorder.stop()
    assert len(meter.asked) - before < 60
    run = recorder._sink.run()
    assert len(run.marks) == 1000
    assert [mark.window for mark in run.marks] == [str(k) for k in range(1000)]


def test_marks_of_one_instant_keep_their_order():
    recorder, clock = going([Steady()])
    until(recorder, clock, 1)
    for name in ("begin", "written", "end"):
        recorder.mark(name, "w", size_bytes=5)
    recorder.stop()
    run = recorder._sink.run()
    assert [mark.name for mark in run.marks] == ["begin", "written", "end"]
    assert run.marks[0].detail == {"size_bytes": 5}


def test_a_window_of_two_hours_against_the_truth(tmp_path):
    meters = [
        Steady(count=2, tick_ns=100 * MS),
        Steady("cpu", 1, "cpu"),
        Steady("bmc", 1, "node", least_s=1.0),
    ]
    recorder, clock = going(meters, FileSink(tmp_path, part_bytes=400_000))
    windows = []
    for start in range(300, 7200, 600):
        until(recorder, clock, start + 0.013)
        recorder.mark("begin", f"w{start}")
        until(recorder, clock, start + 12.5)
        recorder.mark("end", f"w{start}")
        windows.append((start + 0.013, start + 12.5))
        for meter in meters:
            meter.asked.clear()
    until(recorder, clock, 7200)
    recorder.stop()
    run = load(tmp_path)
    assert (run.problems, run.gaps, run.ended, run.simulated) == ((), (), True, True)
    assert run.duration_s == 7200.0
    assert len(run.headers) > 3
    for i, watts in ((0, 100.0), (1, 101.0)):
        s = run.series(f"gpu:{i} energy_j")
        assert np.all(np.diff(s.t_s) > 0)
        at_ns = np.round(s.t_s * 1e9).astype(np.int64)
        assert np.array_equal(
            s.value, watts * (at_ns // (100 * MS) * (100 * MS) / 1e9)
        )  # to the last bit
        assert (s.t_s[0], s.t_s[-1]) == (0.0, 7200.0)
        assert np.max(np.diff(s.t_s)) <= 1.0 + 1e-9
        for begin, end in windows:
            inside = s.t_s[(s.t_s >= begin - 2) & (s.t_s <= end + 2)]
            assert np.max(np.diff(inside)) <= 0.2 + 1e-9
            edge = s.t_s[(s.t_s >= begin) & (s.t_s <= begin + 1.4)]
            assert np.max(np.diff(edge)) <= 0.02 + 1e-9
            assert begin in np.round(s.t_s, 9)
    marks = [(mark.name, mark.t_s) for mark in run.marks]
    assert marks == [
        pair
        for begin, end in windows
        for pair in (("begin", pytest.approx(begin)), ("end", pytest.approx(end)))
    ]
    bmc = run.series("node:0 energy_j")
    assert np.min(np.diff(bmc.t_s)) >= 1.0 - 1e-9
    assert run.node().period_s(run.channels[0]) == pytest.approx(0.1, rel=0.02)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 7200 * 400
    assert recorder.stats.ticks > 7200 * 5


def test_gauges_are_means_of_their_ticks():
    recorder, clock = going([Steady(count=1)])
    until(recorder, clock, 120)
    recorder.stop()
    power = recorder._sink.run().series("gpu:0 power_w")
    second = (power.t_s > 50) & (power.t_s < 51)
    assert np.sum(second) == 1
    ticks = [100.0 + (ms % 7) for ms in range(50_000, 51_000, 200)]
    assert power.value[second][0] == pytest.approx(np.mean(ticks), rel=1e-8)
    assert power.t_s[second][0] == pytest.approx(50.4)


class Flaky(Steady):
    def __init__(self, fails, reopens=True):
        super().__init__("flaky")
        self.fails = fails
        self.opened: list[int] = []
        if reopens:
            self.reopen = lambda: self.opened.append(1)

    def read(self, t_ns):
        row = super().read(t_ns)
        for since_s, until_s, error in self.fails:
            if since_s * S <= t_ns < until_s * S:
                raise error
        return row


def test_nothing_grows_with_the_run(tmp_path):
    meter = Steady()
    recorder, clock = going([meter], FileSink(tmp_path))
    held = []
    tracemalloc.start()
    try:
        for start in range(0, 900, 60):
            recorder.mark("begin", str(start))
            until(recorder, clock, start + 5)
            recorder.mark("end", str(start))
            until(recorder, clock, start + 60)
            meter.asked.clear()
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    recorder.stop()
    assert held[-1] - held[3] < 20_000


@pytest.mark.parametrize("reopens", [True, False])
def test_a_lost_meter_is_tried_each_ten_seconds_and_found_again(reopens):
    flaky, good = (
        Flaky([(20, 45, MeterLost("the driver is gone", "load it"))], reopens),
        Steady("cpu", 1, "cpu"),
    )
    recorder, clock = going([flaky, good])
    until(recorder, clock, 30)
    assert recorder.latest().lost == ("flaky",)
    until(recorder, clock, 100)
    assert recorder.latest().lost == ()
    recorder.stop()
    run = recorder._sink.run()
    events = [(e.name, e.domain, round(e.t_s)) for e in run.events if e.name in ("lost", "found")]
    assert events == [("lost", "flaky", 20), ("found", "flaky", 50)]
    assert "the driver is gone" in run.events[0].text
    assert [t / S for t in flaky.asked if 20 <= t / S < 51][:4] == [20.0, 30.0, 40.0, 50.0]
    assert len(flaky.opened) == (3 if reopens else 0)
    lost = run.series("gpu:0 energy_j")
    between = lost.value[(lost.t_s > 20.5) & (lost.t_s < 49)]
    assert len(between) == 2  # asked at 30 and 40 s, and no answer
    assert np.all(np.isnan(between))
    assert (
        np.sum((run.series("cpu:0 energy_j").t_s > 20) & (run.series("cpu:0 energy_j").t_s < 49))
        >= 28
    )


@pytest.mark.parametrize(
    "error",
    [
        ValueError("bad luck"),
        KeyError("x"),
        ZeroDivisionError(),
        OSError(5, "I/O error"),
        RecursionError(),
    ],
)
def test_a_broken_meter_is_set_aside_and_said_once(error):
    recorder, clock = going([Flaky([(20, 45, error)]), Steady("cpu", 1, "cpu")])
    until(recorder, clock, 100)
    recorder.stop()
    run = recorder._sink.run()
    errors = [e for e in run.events if e.name == "error"]
    assert len(errors) == 1
    assert type(error).__name__ in errors[0].text
    assert run.series("cpu:0 energy_j").t_s[-1] == 100.0
    assert np.nanmax(run.series("gpu:0 energy_j").t_s) <= 20.5
    assert recorder.latest().lost == ("flaky",)


@pytest.mark.parametrize("row", [(1.0,), (1.0, None, 2.0, 3.0), ("x",) * 4, None, 5, [[1.0]] * 4])
def test_answers_of_the_wrong_shape_are_a_defect_of_the_meter(row):
    meter = Steady()
    meter.read = lambda t_ns: row
    recorder, clock = going([meter])
    until(recorder, clock, 3)
    recorder.stop()
    assert [e.name for e in recorder._sink.run().events if e.name == "error"] == ["error"]


def test_numpy_numbers_and_reused_lists_are_copied():
    meter, row = Steady(), [np.float32(1.0)] * 4
    kept = meter.read

    def read(t_ns):
        row[:] = map(np.float64, kept(t_ns))
        return row

    meter.read = read
    recorder, clock = going([meter])
    until(recorder, clock, 3)
    assert all(type(value) is float for value in recorder.latest().values[0][1])
    recorder.stop()
    series = recorder._sink.run().series("gpu:0 energy_j")
    assert np.array_equal(series.value, 100 * series.t_s)


def test_events_of_meters_are_written_once():
    meter = Steady()
    recorder, clock = going([meter])
    until(recorder, clock, 2)
    meter.events.append(Event("lost", "gpu:1", "fell off the bus"))
    until(recorder, clock, 4)
    assert meter.events == []
    recorder.stop()
    assert [(e.name, e.domain) for e in recorder._sink.run().events if e.domain == "gpu:1"] == [
        ("lost", "gpu:1")
    ]


def test_a_window_without_end_is_given_up():
    from ckptcost.first.runs.pace import Pace

    recorder, clock = going([Steady()], pace=Pace(window_most_s=100))
    until(recorder, clock, 10)
    recorder.mark("begin", "w")
    until(recorder, clock, 30)
    assert recorder.latest().windows == ("w",)
    until(recorder, clock, 400)
    recorder.stop()
    run = recorder._sink.run()
    assert [e.text for e in run.events if e.name == "note"] == [
        "window 'w' has no end; single ticks are not kept for it any more"
    ]
    assert len(recorder._thinner._ring) <= 4


def test_its_cost_and_the_clock_are_said_each_minute():
    recorder, clock = going([Steady()])
    until(recorder, clock, 200)
    recorder.stop()
    run = recorder._sink.run()
    costs = [e for e in run.events if e.name == "cost"]
    assert [round(e.t_s) for e in costs] == [60, 120, 180, 200], "and at the end"
    assert costs[-1].detail["ticks"] > 900
    assert math.isnan(recorder.stats.cpu_s)
    assert len(run.wall) == 5
    assert run.wall_s(100.0) == 1_767_225_600 + 100.0


def test_stop_closes_the_meters_once_and_twice_is_harmless():
    meter = Steady()
    recorder, clock = going([meter])
    until(recorder, clock, 1)
    recorder.stop()
    recorder.stop()
    recorder.mark("note")
    assert meter.closed == 1


def test_no_meters_at_all_is_still_a_run(tmp_path):
    recorder, clock = going([], FileSink(tmp_path))
    until(recorder, clock, 5)
    recorder.mark("begin", "w")
    recorder.stop()
    run = load(tmp_path)
    assert [mark.name for mark in run.marks] == ["begin"]
    assert run.channels == ()


def test_strange_marks_cannot_break_it():
    class Rude:
        def __str__(self):
            raise RuntimeError

    recorder, clock = going([Steady()])
    until(recorder, clock, 1)
    recorder.mark(Rude())
    recorder.mark("begin", 17, tensor=Rude())
    recorder.mark("note", t_ns="x")
    recorder.mark("end", "17")
    until(recorder, clock, 2)
    recorder.stop()
    run = recorder._sink.run()
    assert [(m.name, m.window) for m in run.marks] == [("begin", "17"), ("end", "17")]
    assert len([e for e in run.events if e.name == "error"]) == 2


def test_memory_is_bounded():
    sink = MemorySink(most_values=2000, most_lines=50)
    recorder, clock = going([Steady()], sink)
    for second in range(1, 1000):
        until(recorder, clock, second)
        recorder.mark("note", str(second))
    assert len(sink._ticks) == 250
    assert len(sink._seconds) == 250
    assert len(sink._lines) == 50
    assert sink.run().marks[-1].window == "998"


def test_nowhere_to_write_is_known_at_the_start(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="directory"):
        going([Steady()], FileSink(tmp_path / "file" / "run"))
