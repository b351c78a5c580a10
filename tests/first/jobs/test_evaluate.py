"""From a recording to what a node used: every figure of `Measured` against a machine whose watts
are round numbers."""

from __future__ import annotations

import math
import os

import pytest
from told_meters import Told, at, energy, evaluated, recorded, said, watts

from ckptcost.first.core.attribution import Baseline
from ckptcost.first.core.channels import Channel
from ckptcost.first.errors import MeterUnavailable, OutputError
from ckptcost.first.jobs import measure as measure_job
from ckptcost.first.jobs import recording
from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.jobs.measure import measure
from ckptcost.first.jobs.measured import evaluate
from ckptcost.first.jobs.recording import EDGE, MARGIN_S, record
from ckptcost.first.meters.base import Absence
from ckptcost.first.meters.found import Wanted
from ckptcost.first.runs import baselines, reader
from ckptcost.first.runs.baselines import Idle
from ckptcost.first.runs.clocks import RealClock, S, VirtualClock
from ckptcost.first.runs.pace import Pace
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.run import RunEvent
from ckptcost.first.runs.sinks import FileSink

SAVE = said("begin 5, returned 7, durable 10")
BEGAN = 1_767_225_600.0
"""what a clock of jumps says is the calendar's time at 0"""
TICK = {"tick_s": 0.001}


def node_of(**more) -> Told:
    """300 W and 100 W that add up, 50 W inside, 500 W outside."""
    return Told(
        "told",
        {
            energy("gpu:0", **TICK): at(300.0),
            energy("cpu:0", **TICK): at(100.0),
            energy("core:0", role="detail", **TICK): at(50.0),
            watts("node", role="whole"): lambda t: 500.0,
        },
        **more,
    )


def idle_of(seen, driver="", taken_s=BEGAN, **watts_of) -> Idle:
    domains = {
        d.replace("_", ":"): Baseline(w, w, w, taken_s, seen.energies.node.host, driver)
        for d, w in watts_of.items()
    }
    return Idle(seen.energies.node.host, "", 30.0, {}, False, domains)


def again(seen, **more):
    return evaluate(seen.run, seen.begin_s, seen.end_s, **more)


NEAR = {"rel": 2e-3}


# ---- a window, all parts together ------------------------------------------------------------


def test_a_window_is_its_parts_and_neither_what_lies_inside_nor_outside():
    seen = evaluated(node_of(), marks=SAVE)
    seen = again(seen, idle=idle_of(seen, gpu_0=200.0, cpu_0=50.0))
    absolute, excess, stall = seen.of_window("w")
    assert absolute.value == pytest.approx(5 * 400.0, **NEAR)
    assert excess.value == pytest.approx(5 * 150.0, rel=1e-2)
    assert stall.value == pytest.approx(2 * 400.0, **NEAR)
    assert seen.spent(5.0, 7.0).value == pytest.approx(2 * 400.0, **NEAR)
    assert [(c.window, c.domain) for c in seen.costs] == [
        ("w", "gpu:0"),
        ("w", "cpu:0"),
        ("w", "node"),
    ]
    assert seen.node.parts.value == pytest.approx(20 * 400.0, **NEAR)
    assert seen.node.unaccounted.value == pytest.approx(20 * 100.0, rel=1e-2)
    assert not excess.flags


def test_of_a_machine_without_a_meter_of_joules_nothing_is_known():
    seen = evaluated(
        Told("block", {Channel("disk:sda", "written_bytes", "diskstats"): at(1e6)}), marks=SAVE
    )
    assert {energy.why for energy in seen.of_window("w")} == {"NO_PARTS"}
    assert seen.spent(5.0, 7.0).why == seen.node.parts.why == "NO_PARTS"
    assert seen.mean_save is None
    assert seen.spans == {}


def test_only_the_nodes_own_meter_is_held_against_the_parts():
    seen = evaluated(
        Told(
            "told",
            {energy("cpu:0", **TICK): at(100.0), energy("psys:0", role="whole", **TICK): at(150.0)},
        )
    )
    assert seen.energies.wholes == ["psys:0"]
    assert seen.node.node.why == "NO_NODE_METER"


def test_joules_are_kept_apart_by_where_they_are_measured():
    seen = evaluated(
        Told(
            "told",
            {
                energy("cpu:0", **TICK): at(100.0),
                energy("drive:nvme0", boundary="drive", **TICK): at(9.0),
            },
        )
    )
    assert [(where, round(joules.value)) for where, joules in seen.node.by_boundary] == [
        ("node", 2000),
        ("drive", 180),
    ]


def test_the_mean_save_is_of_those_that_are_known():
    marks = (
        said("begin 2, returned 4, durable 5")
        + said("begin 8, returned 12, durable 15", "v")
        + said("begin 16, returned 17", "never safe")
        + said("begin 18, durable 19", "watched")
    )
    seen = evaluated(node_of(), marks=marks)
    assert seen.mean_save is not None
    assert seen.mean_save[:2] == (2, pytest.approx(3.0))
    assert seen.mean_save.joules == pytest.approx(5 * 400.0, **NEAR)
    assert seen.mean_save.stalled_gpu_s == pytest.approx(3.0)


def test_modules_and_cards_stand_still_each_once():
    told = {energy(domain, **TICK): at(9.0) for domain in ("gpu:0", "gpu:1", "cpu:0")}
    assert evaluated(Told("told", told), marks=SAVE).opportunities[
        0
    ].stalled_gpu_s == pytest.approx(2 * 2.0)
    told = {energy(domain, **TICK): at(9.0) for domain in ("module:0", "module:1", "module:2")}
    assert evaluated(Told("told", told), marks=SAVE).opportunities[
        0
    ].stalled_gpu_s == pytest.approx(3 * 2.0)


# ---- the baseline that is taken off -----------------------------------------------------------


@pytest.mark.parametrize(
    ("driver", "age_s", "flags"),
    [
        ("590", 0.0, ()),
        ("570", 0.0, ("BASELINE_OF_OTHER_DRIVER",)),
        ("590", 31 * 86400.0, ("BASELINE_OLD",)),
        ("590", 29 * 86400.0, ()),
    ],
)
def test_a_baseline_is_held_against_this_driver_and_this_day(driver, age_s, flags):
    seen = evaluated(node_of(facts={"driver": "590"}), marks=SAVE)
    seen = again(seen, idle=idle_of(seen, driver, BEGAN - age_s, gpu_0=200.0))
    cost = next(c for c in seen.costs if c.domain == "gpu:0")
    assert tuple(f for f in cost.excess.flags if f.startswith("BASELINE")) == flags
    assert next(c for c in seen.costs if c.domain == "cpu:0").excess.why == "NO_BASELINE"


# ---- disks ------------------------------------------------------------------------------------


def test_disks_and_mounts_over_all_and_over_each_save():
    def disk(domain, **more):
        return Channel(domain, "written_bytes", "told", **more)

    told = {
        disk("disk:sda"): at(1e6),
        disk("disk:sda1", role="detail"): at(1e6),
        disk("mount:/a"): at(2e6),
        disk("host"): at(9e6),
    }
    marks = SAVE + said("written 16", "headless") + said("begin 18, returned 19", "open")
    seen = evaluated(Told("block", told), marks=marks)
    assert [(s.disk, s.window) for s in seen.stored] == [
        ("disk:sda", ""),
        ("disk:sda", "w"),
        ("mount:/a", ""),
        ("mount:/a", "w"),
    ]
    assert [s.queue.written_bytes for s in seen.stored] == pytest.approx(
        [20e6, 5e6, 40e6, 10e6], rel=0.01
    )


# ---- the recorder itself ----------------------------------------------------------------------


def cost_event(cpu_s, host):
    return RunEvent(1.0, "cost", "self", "", host, {"cpu_s": cpu_s})


def test_own_cost_of_a_recording_is_the_last_that_it_said(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    told = Told(
        "rapl",
        {
            energy("cpu:0", **TICK): at(60.0),
            energy("cpu:1", **TICK): at(40.0),
            energy("gpu:0", **TICK): at(900.0),
        },
    )
    seen = evaluated(told)
    assert math.isnan(seen.own_cpu_s)
    host = seen.energies.node.host
    seen.run.events = (
        cost_event(1.0, host),
        cost_event(2.0, host),
        RunEvent(3.0, "note", "", "", host, {"cpu_s": 9.0}),
    )
    seen = again(seen)
    assert seen.own_cpu_s == 2.0
    # two seconds of one of four cores of 100 W, and of these what falls between the edges
    assert seen.own.value == pytest.approx(2.0 * 100.0 / 4 * 20.0 / 21.0, **NEAR)
    assert seen.own_share == pytest.approx(2.0 / seen.run.duration_s)
    seen.run.events = (cost_event(None, host),)
    assert again(seen).own.why == "NO_CPU_TIME"


def test_a_module_is_no_meter_of_the_processor():
    seen = evaluated(
        Told(
            "told",
            {
                energy("module:0", covers=("cpu",), **TICK): at(500.0),
                energy("cpu:0", **TICK): at(100.0),
            },
        )
    )
    seen.run.events = (cost_event(1.0, seen.energies.node.host),)
    assert again(seen).own.why == "NO_PACKAGE_METER"


# ---- recording --------------------------------------------------------------------------------


def test_without_meters_each_reason_is_told_once():
    nothing = [
        Absence("nvml", "no driver", "", "gpu"),
        Absence("nvml gpu:1", "no driver", "", "gpu"),
        Absence("rapl", "not root", "", "cpu"),
    ]
    with pytest.raises(MeterUnavailable, match=r"here: no driver; not root\b(?!;)"):
        record(Instruments([], nothing, VirtualClock(0)), 1.0)
    with pytest.raises(MeterUnavailable, match="no meter was asked for"):
        record(Instruments([], [], VirtualClock(0)), 1.0)


def test_marks_arrive_as_they_were_said_and_bring_a_reading_each():
    marks = said("begin 5.113, returned 7", rank=3, by="api")
    marks[1] = marks[1]._replace(detail={"bytes": 7})
    asked = said("durable 20.5") + said("note 20.6", "late")
    seen = recorded(node_of(), marks=[*marks, *asked])
    assert [(m.t_s, m.name, m.window, m.rank) for m in seen.run.marks if m.window] == [
        (5.113, "begin", "w", 3),
        (7.0, "returned", "w", 3),
        (20.5, "durable", "w", 0),
    ]
    assert seen.run.marks[2].detail == {"bytes": 7}
    edges = [m.t_s for m in seen.run.marks if m.name == EDGE and not m.window]
    assert edges == [seen.begin_s, seen.end_s] == [MARGIN_S, MARGIN_S + 20.0]
    asked_s = seen.run.node().series(seen.run.channels[0]).t_s
    assert {0.5, 5.113, 7.0, 20.5} <= set(asked_s.tolist())
    assert asked_s[-1] == seen.run.duration_s == 20.5 + MARGIN_S


def test_the_pace_is_the_one_that_was_asked_for():
    pace = Pace(rest_s=0.5, quick_s=0.25)
    seen = record(Instruments([node_of()], (), VirtualClock(0)), 1.0, pace=pace)
    assert pace.settings().items() <= seen.run.node().headers[-1].settings.items()


def test_an_hour_of_a_few_channels_is_remembered_whole():
    seen = evaluated(Told("told", {energy("gpu:0", **TICK): at(300.0)}), for_s=3600.0)
    assert seen.spans["gpu:0"].coverage == 1.0
    assert seen.spans["gpu:0"].value == pytest.approx(3600 * 300.0, **NEAR)


class TestOnARealClock:
    @pytest.fixture(autouse=True)
    def short(self, monkeypatch):
        monkeypatch.setattr(recording, "MARGIN_S", 0.05)
        monkeypatch.setattr(recording, "SLOW_MARGIN_S", 0.2)

    def asked(self, least_s=0.0, for_s=0.1, tell=None, channel=energy("gpu:0", **TICK), **facts):  # noqa: B008
        meter = Told("told", {channel: at(300.0)}, least_s=least_s)
        for name, value in facts.items():
            setattr(meter, name, value)
        return record(
            Instruments([meter, Told("quick", {energy("cpu:0"): at(9.0)})], (), RealClock()),
            for_s,
            tell=tell,
        )

    @pytest.mark.parametrize(
        ("slow", "margin_s"),
        [
            ({}, 0.05),
            ({"least_s": 1.0}, 0.2),
            ({"pace_s": 1.0}, 0.2),
            ({"least_s": 0.9}, 0.05),
            ({"least_s": 1.0, "channel": Channel("mount:/a", "written_bytes", "stats")}, 0.05),
        ],
    )
    def test_edges_lie_inside_what_is_recorded(self, slow, margin_s):
        seen = self.asked(**slow)
        assert margin_s <= seen.begin_s < margin_s + 0.12
        assert seen.end_s - seen.begin_s == pytest.approx(0.1, abs=1e-6)
        assert seen.run.duration_s >= seen.end_s + margin_s - 1e-6
        edges = [m.t_s for m in seen.run.marks]
        assert edges == pytest.approx([seen.begin_s, seen.end_s])

    def test_it_asks_often_all_the_while(self):
        seen = self.asked(least_s=0.0, for_s=0.3)
        assert seen.stats.ticks >= 5

    def test_it_is_quick_before_it_begins_and_after_it_ended(self):
        meter = Told("told", {energy("gpu:0", **TICK): at(300.0)}, least_s=0.0)
        meter.pace_s = 1.0
        pace = Pace(rest_s=0.5, quick_s=0.02, quick_for_s=0.0)
        seen = record(Instruments([meter], (), RealClock()), 0.1, pace=pace)
        at_s = seen.run.series("gpu:0 energy_j").t_s
        assert sum(at_s < seen.begin_s) >= 4
        assert sum(at_s > seen.end_s) >= 4

    def test_who_waits_is_told_now_and_then_and_only_between_the_edges(self):
        told = []
        seen = self.asked(for_s=0.3, tell=lambda recorder: told.append(recorder.stats.ticks))
        assert 1 <= len(told) <= 4
        assert seen.stats.ticks >= max(told)

    def test_an_interrupt_ends_it_there(self):
        def interrupt(recorder):
            raise KeyboardInterrupt

        seen = self.asked(for_s=60.0, tell=interrupt)
        assert [m.t_s for m in seen.run.marks] == pytest.approx([seen.begin_s, seen.end_s])
        assert 0.1 < seen.end_s - seen.begin_s < 5.0
        assert seen.run.duration_s >= seen.end_s + 0.05 - 1e-6
        assert seen.run.ended

    def test_an_interrupt_before_it_began_is_no_time(self, monkeypatch):
        calls = []

        def at_once(*_):
            calls.append(1)
            if len(calls) == 1:
                raise KeyboardInterrupt

        monkeypatch.setattr(recording, "_sleep_until", at_once)
        seen = self.asked(for_s=60.0)
        assert seen.end_s == seen.begin_s


def test_this_machines_baseline_is_taken_off_and_absences_are_told(monkeypatch, tmp_path):
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path))
    monkeypatch.setattr(recording, "MARGIN_S", 0.05)
    meter, gone = (
        Told("told", {energy("gpu:0", **TICK): at(300.0)}),
        Absence("rapl", "not root", "", "cpu"),
    )
    monkeypatch.setattr(
        measure_job, "instruments", lambda *_: Instruments([meter], [gone], RealClock())
    )
    first = measure("told", Wanted(), 0.1)
    assert first.idle is None
    idle = idle_of(first, gpu_0=70.0)._replace(taken="2026-01-01T00:00:00.000Z")
    baselines.save(idle, baselines.file_of())
    seen = measure("told", Wanted(), 0.1)
    assert seen.idle is not None
    assert seen.idle.domains["gpu:0"].power_w == 70.0
    assert seen.absences == (gone,)
    assert seen.own_cpu_s > 0
    simulated = Told("told", {energy("gpu:0", **TICK): at(300.0)}, simulated=True)
    monkeypatch.setattr(
        measure_job, "instruments", lambda *_: Instruments([simulated], [], VirtualClock(0))
    )
    assert measure("told", Wanted(), 0.1).idle is None, (
        "nothing of this machine is taken off another"
    )


# ---- a run again ------------------------------------------------------------------------------


def kept(folder, for_s=20.0, host="", begin_s=0.0):
    clock = VirtualClock(round(begin_s * S), round((BEGAN + begin_s) * S))
    recorder = Recorder([node_of()], FileSink(folder), clock, host=host or "a", run_id="a" * 32)
    recorder.begin()
    for mark in SAVE:
        recorder.run_until(round(mark.t_s * S))
        recorder.mark(mark.name, f"{host or 'a'}'s", t_ns=clock.now_ns())
    recorder.run_until(round((begin_s + for_s) * S))
    clock.set(round((begin_s + for_s + 0.111) * S))
    recorder.stop()
    return folder


class TestAgain:
    def test_all_of_it_but_the_margins(self, tmp_path):
        seen = measure(f"replay:{kept(tmp_path / 'r')}", Wanted(), None)
        assert (seen.begin_s, seen.end_s) == (0.5, pytest.approx(19.611))
        assert not seen.simulated, "what was recorded is no simulation"
        assert seen.replayed == seen.energies.node.headers[0].created[:10] != ""
        assert seen.kept == seen.run.id == "a" * 32
        assert seen.of_window("a's").absolute.value == pytest.approx(5 * 400.0, **NEAR)

    @pytest.mark.parametrize(("for_s", "end_s"), [(3.0, 3.5), (100.0, 19.611)])
    def test_a_part_of_it(self, tmp_path, for_s, end_s):
        seen = measure(f"replay:{kept(tmp_path / 'r')}", Wanted(), for_s)
        assert (seen.begin_s, seen.end_s) == (0.5, pytest.approx(end_s))

    def test_it_begins_and_ends_where_it_did(self, tmp_path):
        first = recorded(node_of(), for_s=3.0, directory=tmp_path / "r")
        seen = measure(f"replay:{tmp_path / 'r'}", Wanted(), None)
        assert (seen.begin_s, seen.end_s) == (first.begin_s, first.end_s) == (0.5, 3.5)
        with pytest.raises(OutputError, match="holds a run already"):
            recorded(node_of(), for_s=3.0, directory=tmp_path / "r")

    def test_it_begins_and_ends_where_somebody_asked_for_it(self, tmp_path):
        recorder = Recorder([node_of()], FileSink(tmp_path / "r"), VirtualClock(0), host="a")
        recorder.begin()
        for second in (3, 9):
            recorder.run_until(second * S)
            recorder.mark(EDGE, by=recording.ASKED, t_ns=second * S)
        recorder.run_until(20 * S)
        recorder.stop()
        seen = measure(f"replay:{tmp_path / 'r'}", Wanted(), None)
        assert (seen.begin_s, seen.end_s) == (3.0, 9.0)

    def test_what_is_in_files_is_named_and_what_is_not_is_not(self, tmp_path):
        assert measure("simulated", Wanted(), 0.5).kept == ""
        seen = measure("simulated", Wanted(), 0.5, tmp_path / "r")
        assert seen.kept == seen.run.id == reader.load(tmp_path / "r").id

    def test_what_a_real_machine_took_is_held_against_its_baseline(self, tmp_path, monkeypatch):
        monkeypatch.setenv("CKPTCOST_USER", str(tmp_path))
        baselines.save(
            Idle(
                "a",
                "2026-01-01T00:00:00.000Z",
                30.0,
                {},
                False,
                {"gpu:0": Baseline(70.0, 69.0, 75.0)},
            ),
            baselines.file_of("a"),
        )
        seen = measure(f"replay:{kept(tmp_path / 'r')}", Wanted(), None)
        assert seen.idle is not None
        assert seen.idle.host == "a"

    def test_of_a_short_one_half_is_left(self, tmp_path):
        recorder = Recorder([node_of()], FileSink(tmp_path / "r"), VirtualClock(0), host="a")
        recorder.begin()
        recorder.run_until(S)
        recorder.stop()
        seen = measure(f"replay:{tmp_path / 'r'}", Wanted(), None)
        assert (seen.begin_s, seen.end_s) == (0.25, 0.75)

    def test_without_a_reading_it_is_refused_by_its_name_alone(self, tmp_path):
        Recorder([], FileSink(tmp_path / "r"), VirtualClock(0), host="a").begin()
        with pytest.raises(MeterUnavailable, match=r"^r: holds no readings"):
            measure(f"replay:{tmp_path / 'r'}", Wanted(), None)


def test_of_two_hosts_each_has_its_own_marks(tmp_path):
    kept(tmp_path, host="a")
    kept(tmp_path, host="b")
    run = reader.load(tmp_path)
    for host in run.hosts:
        seen = evaluate(run, 1.0, 19.0, host=host)
        assert [window.name for window in seen.windows] == [f"{host}'s"]


def test_of_one_host_all_marks_are_its_own_whatever_they_say():
    mark, *rest = SAVE
    seen = evaluated(node_of(), marks=[mark._replace(detail={"host": "somewhere else"}), *rest])
    assert [window.begin_s for window in seen.windows] == [5.0]


def test_before_a_host_was_recorded_there_was_no_training(tmp_path):
    """Its own first reading counts, not the run's: 0.6 s are no reference, and 4 s of which it saw
    0.6 are none either."""
    kept(tmp_path, host="a")
    kept(tmp_path, host="b", begin_s=4.4)
    run = reader.load(tmp_path)
    early, late = (evaluate(run, 5.0, 19.0, host=host).costs[0].training_w for host in ("a", "b"))
    assert early.value == pytest.approx(300.0, rel=0.01)
    assert late.why == "NO_TRAINING_REFERENCE"


def test_who_waits_for_a_recorded_run_is_told_how_far_it_is(monkeypatch, tmp_path):
    monkeypatch.setattr(reader, "TOLD", 5)
    told = []
    seen = measure_job.reviewed(kept(tmp_path / "r"), tell=lambda *far: told.append(far))
    reading = [share for what, share in told if what == "reading the run"]
    assert reading == sorted(reading)
    assert 0.0 < reading[0] < reading[-1] <= 1.0
    assert [far for far in told if far[0] != "reading the run"] == [
        ("working out what its saves took", (n + 1) / len(seen.windows))
        for n in range(len(seen.windows))
    ]
