"""Replays against a plain look-up, and against the run that they were recorded from."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptcost.first.core.channels import Channel, Mark, series
from ckptcost.first.errors import InputError
from ckptcost.first.meters import base
from ckptcost.first.meters.replay import MeterTape, RunReplay, SpedClock
from ckptcost.first.meters.simulated import find
from ckptcost.first.meters.simulated_machine import MachinePlan, marks
from ckptcost.first.runs.clocks import RealClock, VirtualClock, Wake
from ckptcost.first.runs.pace import Pace
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import MemorySink

S = 1_000_000_000
POWER = Channel("gpu:0", "power_w", "NVML", scope="gpu")
ENERGY = Channel("gpu:0", "energy_j", "NVML", scope="gpu")
nan = float("nan")


def one(power, energy, marks=(), start_ns=0):
    return RunReplay(
        "run-7",
        [MeterTape("nvml", (POWER, ENERGY), (power, energy), 0.01, {"driver": "590"})],
        marks,
        start_ns=start_ns,
    )


def test_the_last_reading_at_or_before():
    replay = one(
        series([5.0, 6.0, 8.0], [100.0, nan, 300.0]),
        series([5.5, 8.0], [1.0, 2.0]),
        start_ns=100 * S,
    )
    (meter,) = replay.meters
    at = {
        99.9: [nan, nan],
        100.0: [100.0, nan],
        100.4: [100.0, nan],
        100.5: [100.0, 1.0],
        100.9: [100.0, 1.0],
        101.0: [nan, 1.0],
        102.9: [nan, 1.0],
        103.0: [300.0, 2.0],
        103.1: [nan, nan],
    }
    for t_s, values in at.items():
        assert meter.read(round(t_s * S)) == pytest.approx(values, nan_ok=True), t_s
    for t_s in reversed(at):  # any order
        assert meter.read(round(t_s * S)) == pytest.approx(at[t_s], nan_ok=True)
    assert not replay.ended(103 * S)
    assert replay.ended(103 * S + 1)
    assert (replay.begin_s, replay.end_s) == (5.0, 8.0)
    assert replay.at_s(102 * S) == pytest.approx(7.0)
    assert replay.at_ns(7.0) == 102 * S


@given(
    readings=st.lists(
        st.tuples(st.integers(0, 400), st.floats(-1e9, 1e9)),
        min_size=1,
        max_size=30,
        unique_by=lambda r: r[0],
    ),
    begin_s=st.floats(0, 1e7),
    start_ns=st.integers(0, 10**18),
    asked=st.lists(st.integers(-50, 450), max_size=20),
)
def test_against_a_plain_search(readings, begin_s, start_ns, asked):
    tape = MeterTape(
        "x",
        (POWER,),
        (series([begin_s + ds / 10 for ds, _ in readings], [v for _, v in readings]),),
    )
    replay = RunReplay("r", [tape], start_ns=start_ns)
    first = min(ds for ds, _ in readings)
    for ds in asked:
        found = [v for at, v in sorted(readings) if at <= ds]
        within = found and ds <= max(at for at, _ in readings)
        value = replay.meters[0].read(start_ns + (ds - first) * S // 10 + 20)[
            0
        ]  # seconds of 1e7 round to 2 ns
        if ds in [at for at, _ in readings] and ds == max(at for at, _ in readings):
            continue  # 20 ns after the end
        assert value == found[-1] if within else math.isnan(value)


def test_it_says_that_it_is_a_replay():
    replay = one(series([0.0], [1.0]), series([], []))
    (meter,) = replay.meters
    assert isinstance(meter, base.Meter)
    assert meter.simulated
    assert [c.source for c in meter.channels] == ["replay of run-7: NVML"] * 2
    assert meter.channels[1].quantity == "energy_j"
    assert meter.facts == {"driver": "590", "source": "replay of run-7"}
    assert (meter.name, meter.least_s) == ("nvml", 0.01)
    first = meter.read(0)
    assert first == pytest.approx([1.0, nan], nan_ok=True)
    first[0] = 5.0
    late = meter.read(-1)
    late[0] = 5.0
    assert meter.read(0)[0] == 1.0
    assert math.isnan(meter.read(-1)[0])
    meter.close()


def test_marks_between_two_times():
    said = [
        Mark(7.0, "returned", "a"),
        Mark(5.0, "begin", "a"),
        Mark(9.5, "durable", "a"),
        Mark(4.0, "note"),
    ]
    replay = one(series([5.0, 9.0], [1.0, 1.0]), series([], []), said, start_ns=S)
    assert [m.name for m in replay.marks(S, 3 * S)] == ["begin"]
    assert [m.name for m in replay.marks(3 * S, 4 * S)] == ["returned"]
    assert [m.name for m in replay.marks(0, 10 * S)] == ["note", "begin", "returned", "durable"]
    pieces = [m for k in range(60) for m in replay.marks(k * S // 10, (k + 1) * S // 10)]
    assert pieces == sorted(said, key=lambda m: m.t_s)
    assert [replay.at_ns(m.t_s) for m in pieces] == [0, S, 3 * S, 5 * S + S // 2]


def test_meters_end_together():
    slow = MeterTape("slow", (ENERGY,), (series([0.0, 1.0], [1.0, 2.0]),))
    quick = MeterTape("quick", (POWER,), (series([0.0, 2.5], [3.0, 4.0]),))
    replay = RunReplay("r", [slow, quick])
    assert [m.read(2 * S) for m in replay.meters] == [[2.0], [3.0]]
    assert all(math.isnan(m.read(3 * S)[0]) for m in replay.meters)


@pytest.mark.parametrize("tapes", [[], [MeterTape("nvml", (POWER,), (series([], []),))]])
def test_nothing_recorded(tapes):
    with pytest.raises(InputError, match="without readings"):
        RunReplay("r", tapes)


def test_channels_and_series_that_do_not_belong_together():
    with pytest.raises(InputError, match="1 series for 2 channels"):
        RunReplay("r", [MeterTape("nvml", (POWER, ENERGY), (series([0.0], [1.0]),))])


def test_a_clock_ten_times_as_fast():
    outside = 5 * S
    clock = SpedClock(10.0, start_ns=100 * S, wall_ns=1_000 * S, now_ns=lambda: outside)
    assert clock.now_ns() == 100 * S
    outside += S // 2
    assert clock.now_ns() == 105 * S
    assert clock.pair() == (105 * S, 1_005 * S)
    waited = []

    class Bell:
        def wait(self, timeout_s):
            waited.append(timeout_s)
            return len(waited) == 2

    assert [clock.wait(107 * S, Bell()), clock.wait(104 * S, Bell())] == [False, True]
    assert waited == pytest.approx([0.2, -0.1])
    real = SpedClock(50.0)
    began = RealClock().now_ns()
    assert not real.wait(S, Wake())
    assert real.now_ns() >= S
    assert RealClock().now_ns() - began < 5 * S
    assert math.isfinite(real.cpu_s())


@pytest.mark.parametrize("speed", [0.0, -1.0, math.inf, nan])
def test_speeds_that_cannot_be(speed):
    with pytest.raises(InputError, match="speed"):
        SpedClock(speed)


def record(meters, marks, until_s, clock):
    """A run in memory: all marks handed over a little before their time, as a hook would."""
    sink = MemorySink()
    recorder = Recorder(meters, sink, clock, Pace(rest_s=0.2, quick_s=0.05))
    recorder.begin()
    todo = sorted(marks, key=lambda m: m.t_s)
    while clock.now_ns() < until_s * S:
        recorder.step()
        while todo and todo[0].t_s * S <= clock.now_ns():
            mark = todo.pop(0)
            recorder.mark(
                mark.name,
                mark.window,
                t_ns=round(mark.t_s * S),
                by=mark.by,
                rank=mark.rank,
                **mark.detail,
            )
    recorder.stop()
    return sink.run()


def tapes_of(run):
    return [
        MeterTape(
            head.name,
            head.channels,
            [run.series(channel) for channel in head.channels],
            head.least_s,
            head.facts,
        )
        for head in run.headers[0].meters
    ]


def test_a_replay_as_fast_as_possible_is_the_run_again():
    plan = MachinePlan(gpus=2, packages=1, disks=1, first_s=6.0, interval_s=10.0, saves=1)
    first = record(find(plan, origin_ns=0).meters, marks(plan, 0.0, 20.0), 20.0, VirtualClock())
    replay = RunReplay("first", tapes_of(first), first.marks)
    second = record(replay.meters, replay.marks(0, 20 * S), 20.0, VirtualClock())
    assert second.simulated
    assert [(m.name, m.window, m.t_s, m.detail) for m in second.marks] == [
        (m.name, m.window, m.t_s, m.detail) for m in first.marks
    ]
    assert len(first.marks) == 8
    for tape, again in zip(first.headers[0].meters, second.headers[0].meters, strict=True):
        for channel, other in zip(tape.channels, again.channels, strict=True):
            assert other.source == f"replay of first: {channel.source}"
            before, after = first.series(channel), second.series(other)
            # single ticks of a gauge are kept around the marks only; elsewhere it is a mean over a
            # second
            known = after.t_s <= (replay.end_s if channel.is_counter else 15.0)
            at = np.searchsorted(before.t_s, after.t_s[known] + 1e-9, "right") - 1
            assert len(at) > 15
            np.testing.assert_array_equal(after.value[known], before.value[at])
