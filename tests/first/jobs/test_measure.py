"""From meters to joules of a checkpoint: on simulated machines, whose exact joules are known, and
on this one."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from told_meters import Told, at, energy

from ckptcost.first.core.channels import Mark
from ckptcost.first.errors import CkptcostError, InputError, MeterUnavailable, RunFileError
from ckptcost.first.jobs import measure as baseline_job
from ckptcost.first.jobs.instruments import Instruments, instruments
from ckptcost.first.jobs.measure import measure, reviewed
from ckptcost.first.jobs.measured import Measured, evaluate
from ckptcost.first.jobs.recording import MARGIN_S, record
from ckptcost.first.meters import simulated
from ckptcost.first.meters.found import FINDERS, Wanted, find_meters
from ckptcost.first.meters.simulated_machine import Fault, Machine, MachinePlan, marks
from ckptcost.first.runs import baselines
from ckptcost.first.runs.clocks import VirtualClock
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink

FOR_S = 130.0


def measured(
    plan: MachinePlan,
    for_s: float = FOR_S,
    said: list[Mark] | None = None,
    directory: Path | None = None,
    idle=None,
) -> Measured:
    """A planned machine measured from its second 0.5 on."""
    seen = simulated.find(plan, origin_ns=0)
    said = list(marks(plan, 0.0, for_s)) if said is None else said
    recorded = record(
        Instruments(seen.meters, seen.absences, VirtualClock(0), said), for_s, directory
    )
    return evaluate(
        recorded.run, recorded.begin_s, recorded.end_s, idle, seen.absences, recorded.stats
    )


@pytest.fixture(scope="module")
def plain() -> Measured:
    return measured(MachinePlan())


PARTS = [*(f"gpu:{i}" for i in range(8)), "cpu:0", "dram:0", "cpu:1", "dram:1"]


def test_parts_are_the_counters_and_nothing_twice(plain):
    assert sorted(plain.energies.parts) == sorted(PARTS)
    assert plain.energies.wholes == ["node"]
    assert {d.split(".")[-1] for d in plain.energies.details} == {"memory", "average"}


@pytest.mark.parametrize("domain", [*PARTS, "node"])
def test_joules_are_the_machines_own(plain, domain):
    exact = Machine(MachinePlan()).exact_j(domain, plain.begin_s, plain.end_s)
    energy = plain.spans[domain]
    assert energy.low <= exact <= energy.high, (exact, energy)
    assert energy.value == pytest.approx(exact, rel=1e-3 if domain != "node" else 5e-3)
    assert energy.high - energy.low < 0.002 * exact if domain != "node" else 0.03 * exact


def test_the_node_is_its_parts_and_what_no_part_sees(plain):
    machine = Machine(MachinePlan())
    exact = machine.exact_j("node", plain.begin_s, plain.end_s)
    inside = sum(machine.exact_j(domain, plain.begin_s, plain.end_s) for domain in PARTS)
    left = plain.node.unaccounted
    assert left.low <= exact - inside <= left.high
    assert plain.node.share.value == pytest.approx(inside / exact, rel=0.01)


@pytest.mark.parametrize("kind", ["fsync", "buffered", "direct"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_every_window_and_phase(kind, asynchronous):
    plan = MachinePlan(storage=kind, asynchronous=asynchronous, gpus=2)
    seen = measured(plan)
    machine = Machine(plan)
    assert len(seen.windows) == 2
    parts = seen.energies.parts
    if kind == "buffered":  # the second drains until after the recording
        assert (seen.windows[1].durable_s, seen.windows[1].durable_why) == (None, "UNSYNCED")
        assert not seen.of_window("save-2").absolute.known
    for number, window in enumerate(seen.windows[: 1 if kind == "buffered" else 2]):
        at = plan.offsets(plan.factor(number))
        assert window.stall_s == pytest.approx(at.returned_s, abs=1e-6)
        assert window.durable_s - window.begin_s == pytest.approx(at.durable_s, abs=1e-6)
        assert (window.durable_s > window.returned_s) == (asynchronous or kind == "buffered")
        exact = sum(machine.exact_j(domain, window.begin_s, window.end_s) for domain in parts)
        total = seen.of_window(window.name).absolute
        assert total.low <= exact <= total.high
        assert total.value == pytest.approx(exact, rel=0.01)
        stall = seen.of_window(window.name).stall
        exact = sum(machine.exact_j(domain, window.begin_s, window.returned_s) for domain in parts)
        assert stall.low <= exact <= stall.high
    assert [round(o.stalled_gpu_s, 3) for o in seen.opportunities] == [
        round(2 * w.stall_s, 3) for w in seen.windows
    ]
    first = seen.windows[0]
    assert sum(phase.length_s for phase in first.phases) == pytest.approx(first.length_s)


def test_a_drain_adds_what_the_plan_adds():
    plan = MachinePlan(asynchronous=True, gpus=2, packages=0, variation=0.0, dip_w=0.0, ramp_s=0.0)
    seen = measured(plan)
    for cost in seen.costs:
        if cost.domain.startswith("gpu"):
            drain_s = plan.offsets(1.0).committed_s - plan.offsets(1.0).returned_s
            assert (
                cost.extra.low
                <= plan.gpu_background_w * drain_s * Machine(plan).unevenness(int(cost.domain[-1]))
                <= cost.extra.high
            )


def test_bytes_and_queue_of_the_disks(plain):
    plan = MachinePlan()
    windows = [s for s in plain.stored if s.window == "save-1"]
    assert len(windows) == plan.disks
    # what the file system writes beside the save is in there too
    assert sum(s.queue.written_bytes for s in windows) == pytest.approx(
        plan.checkpoint_bytes, rel=0.05
    )
    assert all(
        0.9 * plan.queue_depth < s.queue.peak_depth <= plan.queue_depth * 1.001 for s in windows
    )
    assert all(s.queue.mean_depth <= s.queue.peak_depth for s in windows)


def test_own_cost_is_unknown_where_time_is_virtual(plain):
    assert math.isnan(plain.own_cpu_s)
    assert plain.simulated


def test_a_lost_card_makes_the_sum_unknown_and_says_which():
    seen = measured(MachinePlan(gpus=2, faults=(Fault("lost", "gpu:1", 20.0),)), 100.0)
    assert any(event.name == "lost" and event.domain == "gpu:1" for event in seen.run.events)
    other = seen.spans["gpu:0"]
    assert other.known
    assert other.coverage == pytest.approx(1.0)
    assert not seen.spans["gpu:1"].known or seen.spans["gpu:1"].coverage < 1.0


def test_a_reset_is_a_gap_not_a_number():
    plan = MachinePlan(gpus=1, faults=(Fault("reset", "gpu:0", 60.0),))
    seen = measured(plan, 100.0)
    energy = seen.spans["gpu:0"]
    exact = Machine(plan).exact_j("gpu:0", seen.begin_s, seen.end_s)
    assert 0.9 < energy.coverage < 1.0
    assert energy.value <= exact
    assert energy.value == pytest.approx(exact, rel=0.02)


def test_wraps_change_nothing():
    near = MachinePlan(gpus=0, cpu_counter_at_j=262_000.0)
    far = replace(near, cpu_counter_at_j=100.0)
    one, two = measured(near, 60.0), measured(far, 60.0)
    assert one.spans["cpu:0"].value == pytest.approx(two.spans["cpu:0"].value, rel=1e-4)


def test_a_superchips_module_is_never_added_to_its_processor():
    seen = measured(MachinePlan(gpu_kind="superchip", gpus=2, packages=2), 60.0)
    assert [d for d in seen.energies.parts if d.startswith(("cpu", "dram"))] == []
    assert sorted(seen.energies.parts) == ["module:0", "module:1"]


def test_a_machine_without_energy_counter_is_integrated():
    plan = MachinePlan(gpus=2, energy_counter=False)
    seen = measured(plan, 70.0)
    exact = Machine(plan).exact_j("gpu:0", seen.begin_s, seen.end_s)
    # asked 5 times a second, dips of a seventh of a second are seen by chance
    assert seen.spans["gpu:0"].value == pytest.approx(exact, rel=0.02)
    save = seen.windows[0]
    exact = Machine(plan).exact_j("gpu:0", save.begin_s, save.end_s)
    energy = next(c for c in seen.costs if c.domain == "gpu:0").absolute
    assert energy.low <= exact <= energy.high


def test_what_is_kept_says_the_same_as_what_is_remembered(tmp_path):
    plan = MachinePlan(gpus=2)
    one, two = measured(plan, 60.0), measured(plan, 60.0, directory=tmp_path / "run")
    assert {d: e.value for d, e in two.spans.items()} == pytest.approx(
        {d: e.value for d, e in one.spans.items()}, rel=1e-9, nan_ok=True
    )
    again = measure(f"replay:{tmp_path / 'run'}", Wanted(), None)
    assert again.simulated
    assert [w.name for w in again.windows] == [w.name for w in two.windows]
    for one_cost, other in zip(two.costs, again.costs, strict=True):
        assert other.absolute.value == pytest.approx(one_cost.absolute.value, rel=1e-9)


def test_a_cut_off_run_is_still_evaluated(tmp_path):
    measured(MachinePlan(gpus=1), 60.0, directory=tmp_path / "run")
    file = next((tmp_path / "run").glob("*.000.jsonl"))
    raw = file.read_bytes()
    file.write_bytes(raw[: len(raw) * 3 // 4])
    seen = measure(f"replay:{tmp_path / 'run'}", Wanted(), None)
    assert seen.run.problems
    assert seen.spans["gpu:0"].known


class TestBaseline:
    def test_learned_kept_and_taken_off(self, tmp_path, monkeypatch):
        idle_plan = MachinePlan(gpus=2, saves=0, start_s=1000.0, first_s=2000.0)
        quiet = measured(idle_plan, 20.0)
        found = baseline_job.watts_of(quiet, 0.0)
        assert found["gpu:0"].power_w == pytest.approx(
            77.7 * Machine(idle_plan).unevenness(0), rel=0.01
        )
        idle = baselines.Idle(
            quiet.energies.node.host, "2026-11-21T00:00:00Z", 20.0, {}, True, found
        )
        seen = measured(MachinePlan(gpus=2), 60.0, idle=idle)
        cost = next(c for c in seen.costs if c.domain == "gpu:0")
        length_s = seen.windows[0].length_s
        assert cost.excess.value == pytest.approx(
            cost.absolute.value - found["gpu:0"].power_w * length_s
        )
        assert "BASELINE_OLD" in cost.excess.flags  # learned at second 0 of the calendar

    def test_round_trip(self, tmp_path):
        idle = baselines.Idle(
            "h",
            "2026-11-21T00:00:00.000Z",
            30.0,
            {"gpu": "590"},
            False,
            {"gpu:0": baselines.Baseline(70.0, 69.0, 75.0)},
        )
        baselines.save(idle, tmp_path / "a" / "h.json")
        back = baselines.load(tmp_path / "a" / "h.json")
        assert back is not None
        assert back.domains["gpu:0"][:3] == (70.0, 69.0, 75.0)
        assert back.domains["gpu:0"].driver == "590"
        assert back.domains["gpu:0"].host == "h"
        assert back.domains["gpu:0"].taken_s == 1795219200.0
        assert [p.name for p in (tmp_path / "a").iterdir()] == ["h.json"]

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "[]",
            "null",
            '{"format": "other"}',
            '{"format": "ckptcost.baseline", "version": "2.0"}',
            '{"format": "ckptcost.baseline", "version": "1.0"}',
        ],
    )
    def test_anything_else_is_refused(self, tmp_path, text):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(RunFileError, match=r"x\.json"):
            baselines.load(tmp_path / "x.json")

    @pytest.mark.parametrize(
        "watts",
        [
            {"power_w": 1.0, "low_w": 2.0, "high_w": 3.0},
            {"power_w": "NaN", "low_w": 1, "high_w": 3},
        ],
    )
    def test_watts_out_of_order_are_refused(self, tmp_path, watts):
        idle = baselines.baseline_fields(
            baselines.Idle("h", "2026-11-21T00:00:00Z", 1.0, {}, False, {})
        )
        (tmp_path / "x.json").write_text(json.dumps(idle | {"domains": {"gpu:0": watts}}))
        with pytest.raises(RunFileError):
            baselines.load(tmp_path / "x.json")

    def test_none_yet_is_none(self, tmp_path):
        assert baselines.load(tmp_path / "none.json") is None

    def test_a_busy_machine_is_not_learned(self, monkeypatch):
        with pytest.raises(CkptcostError, match=r"not idle.*gpu:0"):
            baseline_job.learn("simulated", Wanted(), 60.0)
        learned = baseline_job.learn("simulated", Wanted(), 60.0, anyway=True)
        assert learned.busy
        assert learned.file is None


class TestInstruments:
    def test_names(self):
        with pytest.raises(InputError, match=r"^meters: "):
            instruments("nvml,,rapl", Wanted(), 1.0)
        with pytest.raises(InputError, match="no meter named 'nvlm'"):
            instruments("nvlm", Wanted(), 1.0)
        with pytest.raises(InputError, match="does not mix"):
            instruments("simulated,rapl", Wanted(), 1.0)
        with pytest.raises(InputError):
            instruments("replay:nowhere", Wanted(), 1.0)

    def test_only_what_is_named_is_looked_for(self, tmp_path):
        bare = Wanted(names=("block", "gds"), sysfs=tmp_path, procfs=tmp_path, environ={})
        seen = find_meters(bare)
        assert {a.what.split()[0] for a in seen.absences} == {"block", "gds"}

    def test_nothing_here_raises_nothing(self, tmp_path):
        seen = find_meters(Wanted(sysfs=tmp_path / "sys", procfs=tmp_path / "proc", environ={}))
        assert list(seen.meters) == []
        assert {a.kind for a in seen.absences} >= {"gpu", "cpu", "dram", "storage", "node"}
        assert all(a.reason and a.remedy for a in seen.absences)
        told = " ".join(a.what for a in seen.absences)
        assert [
            name
            for name in FINDERS
            if name not in ("process", "lustre", "nfs") and name.split("-")[0] not in told
        ] == []

    def test_no_meter_is_an_error_with_a_reason(self):
        with pytest.raises(MeterUnavailable, match="nothing can be measured here"):
            record(Instruments([], [], VirtualClock(0)), 1.0)


def test_this_machine_for_a_moment():
    seen = measure("process,writeback,pressure", Wanted(pid=os.getpid()), 0.5)
    assert not seen.simulated
    assert seen.length_s == pytest.approx(0.5, abs=0.3)
    assert seen.own_cpu_s > 0
    assert seen.own.why == "NO_PACKAGE_METER"
    assert seen.stats is not None
    assert seen.stats.problem == ""
    assert seen.run.ended


def test_the_margin_lets_the_edges_lie_between_ticks(plain):
    assert plain.begin_s == pytest.approx(MARGIN_S, abs=1e-9)
    assert plain.length_s == pytest.approx(FOR_S)
    assert plain.spans["gpu:0"].coverage == 1.0


def by_a_script(folder, saves, for_s=15.0):
    """What `ckptcost.record()` leaves: a recorder, the script's own marks, and nobody who says when
    it begins."""
    clock = VirtualClock(0)
    recorder = Recorder(
        [Told("told", {energy("gpu:0", tick_s=0.1): at(300.0, 0.1)})],
        FileSink(folder),
        clock,
    )
    recorder.begin()
    clock.set(1_000_000)  # a first tick is never at the very instant of the beginning
    for begin_s in saves:
        recorder.run_until(round(begin_s * 1e9))
        recorder.mark("begin", f"at {begin_s}", t_ns=round(begin_s * 1e9))
        recorder.run_until(round((begin_s + 1.0) * 1e9))
        recorder.mark("returned", f"at {begin_s}", t_ns=round((begin_s + 1.0) * 1e9))
    recorder.run_until(round(for_s * 1e9))
    recorder.stop()
    return reviewed(folder)


@pytest.mark.parametrize("first_s", [1.0, 4.0, 9.0])
def test_a_script_that_saves_late_keeps_its_sum(first_s, tmp_path):
    """Of the first seconds only seconds are kept, and a counter is known from its second answer
    on."""
    seen = by_a_script(tmp_path, [first_s])
    spent = seen.spans["gpu:0"]
    assert seen.begin_s < 3.0
    assert spent.coverage == pytest.approx(1.0)
    assert spent.low <= 300.0 * seen.length_s <= spent.high
    assert spent.value == pytest.approx(300.0 * seen.length_s, rel=0.03)
    assert not seen.node.missing
