"""Calibration: a planted machine comes back from its own recordings, and what they cannot tell is
not made up."""

from __future__ import annotations

import math
import resource
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core import timing
from ckptcost.first.core.attribution import Baseline
from ckptcost.first.core.channels import Channel, Mark
from ckptcost.first.core.estimates import Estimate
from ckptcost.first.errors import InputError, MeterUnavailable, OutputError
from ckptcost.first.jobs.calibrate import Calibration, calibrate
from ckptcost.first.jobs.calibrate_files import checked_id, checked_name, install, texts_of
from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.jobs.measure import reviewed
from ckptcost.first.jobs.measured import Measured, evaluate
from ckptcost.first.jobs.recording import record
from ckptcost.first.layers import layers_of, set_layer
from ckptcost.first.meters import simulated
from ckptcost.first.meters.base import Basic
from ckptcost.first.meters.simulated_machine import Machine, MachinePlan, marks
from ckptcost.first.runs.baselines import Idle
from ckptcost.first.runs.clocks import S, VirtualClock
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink
from ckptcost.first.scenario import resolve

RATE, FIXED_S = 12.5e9, 0.8
FOR_S = 130.0


def plan_of(bytes_: float, rate: float = RATE, fixed_s: float = FIXED_S, **more) -> MachinePlan:
    """Saves of a tier with this rate and fixed time."""
    moving_s = bytes_ / rate
    written = {
        "snapshot_s": 0.0,
        "write_s": 0.3 * moving_s,
        "fsync_s": 0.7 * moving_s,
        "commit_s": fixed_s,
    }
    asked = (
        {
            "gpus": 2,
            "packages": 0,
            "disks": 1,
            "variation": 0.0,
            "checkpoint_bytes": bytes_,
            "interval_s": 40.0,
        }
        | written
        | more
    )
    return MachinePlan(**asked)


def measured(
    plan: MachinePlan,
    said: Sequence[Mark] | None = None,
    meters: Sequence[Basic] = (),
    idle: Idle | None = None,
) -> Measured:
    seen = simulated.find(plan, origin_ns=0)
    told = list(marks(plan, 0.0, FOR_S)) if said is None else list(said)
    recorded = record(
        Instruments((*seen.meters, *meters), seen.absences, VirtualClock(0), told), FOR_S
    )
    return evaluate(recorded.run, recorded.begin_s, recorded.end_s, idle)


SIZES = (12.5e9, 50e9, 125e9)


@pytest.fixture(scope="module")
def planted() -> tuple[list[Measured], Calibration]:
    runs = [measured(plan_of(bytes_)) for bytes_ in SIZES]
    return runs, calibrate(runs, "planted")


def value(c: Calibration, name: str) -> float:
    return c.parameter(name).estimate.value


def stall_by_model(catalog: Catalog, tier: str, bytes_: float, *said: str) -> timing.Save:
    layer = set_layer(
        [f"tier.id={tier}", f"checkpoint.size={bytes_:.0f} B", "cluster.gpus=8", *said]
    )
    s = resolve(
        catalog, [*layers_of(catalog, "gpt4-scale-2tb"), layer, set_layer([], "30 min")]
    ).scenario
    return timing.save(s.checkpoint, s.tier, s.cluster, s.policy)


class TestPlanted:
    def test_rate_and_fixed_time_come_back(self, planted):
        _, c = planted
        assert value(c, "write") == pytest.approx(RATE, rel=1e-6)
        assert value(c, "setup") == pytest.approx(FIXED_S, rel=1e-5)
        assert c.parameter("write").path == "tier.node_write"
        assert (c.mode, c.boundary, c.survives, len(c.saves), c.left) == (
            "sync",
            "node",
            "process",
            9,
            (),
        )

    def test_with_scatter_within_two_per_cent(self):
        plans = [
            plan_of(bytes_, variation=0.02, seed=seed)
            for seed, bytes_ in enumerate((10e9, 100e9), start=1)
        ]
        c = calibrate([measured(plan) for plan in plans], "scatter")
        write, setup = c.parameter("write").estimate, c.parameter("setup").estimate
        assert write.value == pytest.approx(RATE, rel=0.02)
        assert write.low < RATE < write.high
        assert setup.low < FIXED_S < setup.high
        assert 0 < value(c, "rate_spread") < 0.02

    def test_power_is_the_machines(self, planted):
        _, c = planted
        plan = plan_of(SIZES[0])
        machine = Machine(plan)
        train = sum(machine.exact_j(f"gpu:{i}", 10.0, 34.0) / 24.0 for i in range(2)) / 2
        stall = sum(machine.exact_j(f"gpu:{i}", 35.1, 36.5) / 1.4 for i in range(2)) / 2
        assert value(c, "gpu_train") == pytest.approx(train, rel=0.02)
        assert value(c, "gpu_stall") == pytest.approx(stall, rel=0.02)
        host = machine.exact_j("node", 10.0, 34.0) / 24.0 - 2 * train
        found = c.parameter("host_train").estimate
        assert found.low <= host <= found.high
        assert found.value == pytest.approx(host, rel=0.05)
        assert {round_.dip.verdict for round_ in c.saves} == {"CONFIRMED"}
        assert c.parameter("gpu_idle").estimate.why == "NO_BASELINE"

    @pytest.mark.parametrize("bytes_", [*SIZES, 80e9])
    def test_the_model_predicts_the_save(self, planted, tmp_path, bytes_):
        _, c = planted
        install(c, overlay=tmp_path)
        catalog = Catalog(overlay=tmp_path)
        assert stall_by_model(catalog, "planted", bytes_).stall_s == pytest.approx(
            FIXED_S + bytes_ / RATE, rel=0.001
        )

    def test_the_cluster_it_writes_is_the_one_that_waits(self, planted, tmp_path):
        _, c = planted
        install(c, overlay=tmp_path)
        catalog = Catalog(overlay=tmp_path)
        layer = set_layer(["tier.id=planted", "cluster.id=planted"])
        cluster = resolve(
            catalog,
            [*layers_of(catalog, "gpt4-scale-2tb"), layer, set_layer([], "30 min")],
        ).scenario.cluster
        assert (cluster.gpus, cluster.gpus_per_node) == (2.0, 2.0)
        assert cluster.gpu_stall_w == pytest.approx(value(c, "gpu_stall"), rel=1e-6)
        assert cluster.host_stall_w == pytest.approx(value(c, "host_stall"), rel=1e-6)


@pytest.fixture(scope="module")
def behind() -> Calibration:
    plans = [plan_of(bytes_, asynchronous=True, snapshot_s=0.4) for bytes_ in (12.5e9, 50e9)]
    return calibrate(
        [
            measured(plan, [*marks(plan, 0.0, FOR_S), *step_marks(plan, more=0.08)])
            for plan in plans
        ],
        "behind",
    )


class TestAsynchronous:
    def test_stall_and_drain_are_apart(self, behind):
        assert behind.mode == "async"
        assert value(behind, "snapshot") == pytest.approx(0.4, rel=1e-4)
        assert value(behind, "write") == pytest.approx(RATE, rel=1e-4)
        assert value(behind, "setup") == pytest.approx(FIXED_S, rel=1e-4)

    def test_steps_show_what_a_drain_costs(self, behind):
        lost = behind.parameter("slowdown").estimate
        assert lost.value == pytest.approx(0.08 / 1.08, rel=0.05)
        assert lost.low <= 0.08 / 1.08 <= lost.high
        assert behind.parameter("slowdown").path == "policy.slowdown"
        assert value(behind, "step") == pytest.approx(0.25, rel=0.01)
        for round_ in behind.saves:  # the step that meets the copy is in the drain for its rest
            assert round_.by_steps.value == pytest.approx(round_.stall_s, abs=0.05)

    def test_the_model_predicts_stall_and_lag(self, behind, tmp_path):
        install(behind, overlay=tmp_path)
        said = ["policy.mode=async", f"policy.snapshot={value(behind, 'snapshot')} s"]
        saved = stall_by_model(Catalog(overlay=tmp_path), "behind", 30e9, *said)
        assert saved.stall_s == pytest.approx(0.4, rel=0.02)
        assert saved.lag_s == pytest.approx(FIXED_S + 30e9 / RATE, rel=0.02)

    def test_a_few_others_are_left_out(self):
        c = calibrate(
            [
                measured(plan_of(20e9, asynchronous=True, snapshot_s=0.4)),
                measured(plan_of(20e9, saves=1)),
            ],
            "both",
        )
        assert c.mode == "async"
        assert [one.why for one in c.left] == ["OTHER_MODE"]


def step_marks(plan: MachinePlan, more: float, step_s: float = 0.25) -> list[Mark]:
    """What a hook tells of a job that stands still in a stall and is slower in a drain; by chance 1
    % longer or shorter."""
    rng = np.random.default_rng(7)
    edges = [(plan.start_s, 1.0)]
    for save in range(int((FOR_S - plan.first_s) // plan.interval_s) + 1):
        begin_s, at = plan.first_s + save * plan.interval_s, plan.offsets(1.0)
        edges += [
            (begin_s, 0.0),
            (begin_s + at.returned_s, 1 / (1 + more)),
            (begin_s + at.durable_s, 1.0),
        ]
    edges.append((FOR_S, 0.0))
    done = np.concatenate([[0.0], np.cumsum([(b[0] - a[0]) * a[1] for a, b in pairwise(edges)])])
    work = np.cumsum(step_s * (1 + 0.01 * rng.normal(size=int(done[-1] / step_s))))
    work = work[work < done[-1]]
    places = np.searchsorted(done, work, side="left") - 1
    ends_s = [edges[k][0] + (w - done[k]) / edges[k][1] for k, w in zip(places, work, strict=True)]
    told: list[Mark] = []
    for second in range(math.ceil(FOR_S)):
        mine = [1e3 * (end_s - second) for end_s in ends_s if second <= end_s < second + 1]
        if mine:
            told.append(
                Mark(
                    second + 1.0,
                    "steps",
                    "",
                    0,
                    "api",
                    {"base": second * 1_000_000_000, "ends_ms": mine},
                )
            )
    return told


class TestWhatCannotBeTold:
    def test_one_size_has_no_fixed_time_and_the_file_says_so(self, tmp_path):
        c = calibrate([measured(plan_of(25e9))], "one")
        assert value(c, "write") == pytest.approx(25e9 / (25e9 / RATE + FIXED_S), rel=1e-6)
        setup = c.parameter("setup")
        assert (setup.estimate.value, setup.estimate.why, setup.basis) == (
            0.0,
            "ONE_SIZE",
            "assumed",
        )
        install(c, overlay=tmp_path)
        catalog = Catalog(overlay=tmp_path)
        assert stall_by_model(catalog, "one", 25e9).stall_s == pytest.approx(
            25e9 / RATE + FIXED_S, rel=1e-5
        )
        assert (
            catalog.get("tier", "one").figures["setup"].high is None
        )  # the default's range would count it twice

    def test_one_save_has_values_and_no_intervals(self):
        c = calibrate([measured(plan_of(25e9, saves=1))], "lone")
        for name in ("write", "gpu_train", "gpu_stall"):
            assert c.parameter(name).estimate.known
            assert c.parameter(name).estimate.low is None
        assert c.parameter("rate_spread").estimate.why == "FEW_ROUNDS"

    def test_saves_that_cannot_count_are_left_out_and_counted(self):
        plan = plan_of(25e9)
        said = list(marks(plan, 0.0, FOR_S))
        said += [
            Mark(15.0, "begin", "torn", detail={"bytes": 1e9}),
            Mark(16.0, "snapshotted", "torn"),
        ]
        said += [
            Mark(18.0, "begin", "sizeless"),
            Mark(20.0, "returned", "sizeless"),
            Mark(20.0, "durable", "sizeless"),
            Mark(20.0, "end", "sizeless"),
        ]
        said += [
            Mark(21.0, "begin", "bad", detail={"bytes": 1e9}),
            Mark(22.0, "end", "bad", detail={"error": "OSError"}),
        ]
        for name, at_s in (("a", 24.0), ("b", 25.0)):
            said += [
                Mark(at_s, "begin", name, detail={"bytes": 1e9}),
                Mark(at_s + 2.0, "durable", name),
                Mark(at_s + 2.0, "end", name),
            ]
        c = calibrate([measured(plan, said)], "left")
        assert {one.window: one.why for one in c.left} == {
            "torn": "UNFINISHED",
            "sizeless": "NO_BYTES",
            "bad": "FAILED",
            "a": "OVERLAPS",
            "b": "OVERLAPS",
        }
        assert [round_.window.name for round_ in c.saves] == ["save-1", "save-2", "save-3"]

    def test_a_save_that_nobody_saw_safe_is_no_rate(self):
        """And no meter of the page cache, which would tell."""
        plan = plan_of(25e9, gpus=0)
        said = [
            mark
            for mark in marks(plan, 0.0, FOR_S)
            if mark.name in ("begin", "written", "returned")
        ]
        meters = [
            meter
            for meter in simulated.find(plan, origin_ns=0).meters
            if meter.name not in ("simulated-writeback", "simulated-node")
        ]
        recorded = record(Instruments(meters, (), VirtualClock(0), said), FOR_S)
        with pytest.raises(MeterUnavailable, match="nothing can be calibrated: 3 x NOT_MARKED"):
            calibrate([evaluate(recorded.run, recorded.begin_s, recorded.end_s)], "unsafe")

    def test_nothing_at_all(self):
        with pytest.raises(MeterUnavailable, match="no save is in there"):
            calibrate([measured(plan_of(25e9, gpus=0), [])], "empty")
        with pytest.raises(InputError, match="names no run"):
            calibrate([], "none")

    def test_the_same_run_twice(self, planted):
        runs, _ = planted
        with pytest.raises(InputError, match="twice"):
            calibrate([runs[0], runs[0]], "twice")

    def test_a_pause_between_saves_is_not_training(self):
        """A probe's: the GPUs idle."""
        plan = plan_of(25e9, start_s=1000.0, first_s=2000.0, saves=0)
        job = plan_of(25e9)
        c = calibrate([measured(plan, list(marks(job, 0.0, FOR_S)))], "probe")
        assert value(c, "write") > 0
        for name in ("gpu_train", "gpu_stall", "host_train", "host_stall"):
            assert c.parameter(name).estimate.why == "NOT_TRAINING"
        assert list(texts_of(c)) == ["tier"]

    def test_without_gpus_or_a_node_meter_that_is_the_reason(self):
        plan = plan_of(25e9, gpus=0, packages=1)
        seen = simulated.find(plan, origin_ns=0)
        meters = [meter for meter in seen.meters if meter.name != "simulated-node"]
        recorded = record(
            Instruments(meters, (), VirtualClock(0), list(marks(plan, 0.0, FOR_S))), FOR_S
        )
        c = calibrate([evaluate(recorded.run, recorded.begin_s, recorded.end_s)], "bare")
        assert {
            name: c.parameter(name).estimate.why
            for name in ("gpu_train", "host_train", "write_energy", "straggler")
        } == {
            "gpu_train": "NO_GPU_METER",
            "host_train": "NO_NODE_METER",
            "write_energy": "NO_STORAGE_METER",
            "straggler": "ONE_RANK",
        }


def early(plan: MachinePlan) -> list[Mark]:
    """Returned once written, before fsync."""
    said = []
    for mark in marks(plan, 0.0, FOR_S):
        if mark.name == "returned":
            continue
        said.append(mark)
        if mark.name == "written":
            said.append(mark._replace(name="returned"))
    return said


def test_writing_begins_with_the_save_where_nothing_drains_behind():
    """Returned before it was safe, but after the last byte: the rate is of all of it, and training
    waits for less."""
    runs = [measured(plan, early(plan)) for plan in (plan_of(12.5e9), plan_of(50e9))]
    c = calibrate(runs, "early")
    assert {round_.mode for round_ in c.saves} == {"early"}
    assert value(c, "write") == pytest.approx(RATE, rel=1e-6)
    assert c.mode == "async"
    assert value(c, "snapshot") == pytest.approx(
        np.mean([0.3 * 12.5e9 / RATE, 0.3 * 50e9 / RATE]), rel=1e-4
    )


def unsynced(plan: MachinePlan, lie_s: float, kept: float = 1.0) -> list[Mark]:
    """Written and renamed, and seen to be on the storage by the kernel's own write-back."""
    said = []
    for mark in marks(plan, 0.0, FOR_S):
        if mark.name == "begin":
            size = float(mark.detail["bytes"]) * kept
            said.append(mark._replace(detail={**mark.detail, "bytes": size}))
            at_s, detail = mark.t_s + lie_s, {"how": "cachestat"}
            said.append(mark._replace(t_s=at_s, name="durable", by="watch", detail=detail))
        if mark.name in ("written", "returned"):
            said.append(mark)
    return said


class TestPageCache:
    def test_the_rate_is_that_of_the_busy_disk_not_of_the_kernels_timer(self):
        plan = plan_of(25e9)
        c = calibrate([measured(plan, unsynced(plan, 33.0))], "cached")
        timer = 25e9 / 33.0
        assert value(c, "write") > 5.0 * timer
        assert value(c, "write") == pytest.approx(RATE, rel=0.35)
        told = [(round_.from_cache, round_.mode) for round_ in c.saves]
        assert told == [(True, "early"), (True, "early"), (False, "sync")], "the last one drained"
        assert "busy" in c.parameter("write").note

    def test_without_a_disk_that_took_them_there_is_no_rate(self):
        plan = plan_of(25e9)
        with pytest.raises(MeterUnavailable, match="PAGE_CACHE"):
            calibrate([measured(plan, unsynced(plan, 33.0, kept=10.0))], "elsewhere")


class TestLoads:
    def loads(self, plan: MachinePlan, sizes: Sequence[float], fixed_s: float) -> list[Mark]:
        said = list(marks(plan, 0.0, FOR_S))
        for number, bytes_ in enumerate(sizes):
            at_s, took_s = (8.0, 13.0, 125.0)[number], fixed_s + bytes_ / 25e9
            said += [Mark(at_s, "begin", f"load {number}", detail={"of": "load", "bytes": bytes_})]
            said += [
                Mark(at_s + took_s, "returned", f"load {number}"),
                Mark(at_s + took_s, "end", f"load {number}"),
            ]
        return said

    def test_a_read_rate_of_several_sizes(self):
        plan = plan_of(25e9)
        c = calibrate([measured(plan, self.loads(plan, [10e9, 20e9, 40e9], 0.3))], "reads")
        assert value(c, "read") == pytest.approx(25e9, rel=1e-6)
        assert value(c, "read_fixed") == pytest.approx(0.3, rel=1e-5)
        assert (len(c.saves), len(c.loads), c.reads.n) == (3, 3, 3)

    def test_of_one_size_the_writes_fixed_time_is_taken_off(self, tmp_path):
        small, large = plan_of(12.5e9), plan_of(50e9)
        c = calibrate(
            [measured(small, self.loads(small, [40e9, 40e9], 0.8)), measured(large)], "reads"
        )
        assert value(c, "read") == pytest.approx(25e9, rel=1e-5)
        assert c.parameter("read_fixed").estimate.why == "AS_WRITES"
        install(c, overlay=tmp_path)
        catalog = Catalog(overlay=tmp_path)
        layer = set_layer(["tier.id=reads", "checkpoint.size=40 GB", "cluster.gpus=8"])
        s = resolve(
            catalog,
            [*layers_of(catalog, "gpt4-scale-2tb"), layer, set_layer([], "30 min")],
        ).scenario
        assert timing.load_s(s.checkpoint, s.tier, s.cluster) == pytest.approx(
            0.8 + 40e9 / 25e9, rel=1e-4
        )


class Drive(Basic):
    """A drive whose joules are known: 6 W at rest and so many a byte that is written."""

    def __init__(
        self, plan: MachinePlan, j_per_byte: float, boundary="drive", basis="measured"
    ) -> None:
        channels = [
            Channel(
                "drive:nvme0n1", "energy_j", "a test's", "drive", boundary=boundary, basis=basis
            )
        ]
        if basis == "modelled":
            channels.append(replace(channels[0], domain="drive:nvme0n1.high", role="detail"))
        super().__init__("test-drive", tuple(channels), simulated=True)
        self.plan, self.j_per_byte = plan, j_per_byte

    def read(self, t_ns: int) -> Sequence[float]:
        t_s, plan = t_ns / 1e9, self.plan
        at = plan.offsets(1.0)
        done = 0.0
        for save in range(10):
            begin_s = plan.first_s + save * plan.interval_s
            done += min(max((t_s - begin_s) / at.durable_s, 0.0), 1.0)
        joules = 6.0 * t_s + self.j_per_byte * plan.checkpoint_bytes * done
        return [joules] * len(self.channels)


class TestStorage:
    @pytest.mark.parametrize("boundary", ["drive", "storage-system"])
    def test_joules_per_byte_and_watts_at_rest(self, boundary, tmp_path):
        plans = [plan_of(bytes_) for bytes_ in (12.5e9, 50e9)]
        c = calibrate(
            [measured(plan, meters=[Drive(plan, 3e-9, boundary)]) for plan in plans], "drive"
        )
        found = c.parameter("write_energy")
        assert found.estimate.value == pytest.approx(3e-9, rel=0.02)
        assert found.boundary == boundary
        assert value(c, "storage_rest") == pytest.approx(6.0, rel=0.05)
        install(c, overlay=tmp_path)
        figure = Catalog(overlay=tmp_path).get("tier", "drive").figures["write_energy"]
        assert (figure.boundary, figure.value) == (boundary, pytest.approx(3e-9, rel=0.02))
        assert figure.low <= 3e-9 <= figure.high

    def test_a_model_of_a_drive_is_derived_and_its_ends_are_not_added(self, tmp_path):
        plan = plan_of(50e9)
        c = calibrate([measured(plan, meters=[Drive(plan, 3e-9, basis="modelled")])], "modelled")
        found = c.parameter("write_energy")
        assert (found.estimate.value, found.basis) == (pytest.approx(3e-9, rel=0.02), "derived")
        assert "model of the drive" in found.note

    def test_a_drive_that_shows_nothing_gives_no_negative_joules(self):
        plan = plan_of(50e9)
        c = calibrate([measured(plan, meters=[Drive(plan, -1e-11)])], "nothing")
        assert c.parameter("write_energy").path == ""
        assert "write_energy" not in texts_of(c)["tier"]


def test_ranks_that_write_unevenly():
    plan = plan_of(25e9)
    said = []
    for rank, share in enumerate((0.5, 0.6, 1.0)):
        for mark in marks(plan, 0.0, FOR_S):
            begin_s = plan.first_s + (int(mark.window.split("-")[1]) - 1) * plan.interval_s
            t_s = (
                begin_s + (mark.t_s - begin_s) * share
                if mark.name not in ("begin", "returned")
                else mark.t_s
            )
            detail = {"bytes": mark.detail["bytes"] / 3} if "bytes" in mark.detail else {}
            said.append(mark._replace(t_s=t_s, rank=rank, detail=detail))
    c = calibrate([measured(plan, said)], "ranks")
    assert value(c, "straggler") == pytest.approx(1.0 / 0.7, rel=1e-3)
    assert c.saves[0].bytes == pytest.approx(25e9)
    assert c.saves[0].seconds == pytest.approx(2.0 + FIXED_S, rel=1e-6)


class TestWhoseBytes:
    def watched(self, plan: MachinePlan, world: int) -> list[Mark]:
        said = [mark._replace(by="watch") for mark in marks(plan, 0.0, FOR_S)]
        return [Mark(1.0, "note", detail={"world": world}), *said]

    def test_a_folder_of_a_larger_job_gives_the_systems_rate(self):
        plans = [plan_of(bytes_) for bytes_ in (12.5e9, 50e9)]
        c = calibrate([measured(plan, self.watched(plan, 64)) for plan in plans], "system")
        assert c.parameter("write").path == "tier.write"
        assert (c.boundary, c.survives) == ("storage-system", "site")
        assert "[write]" in texts_of(c)["tier"]

    def test_and_does_not_mix_with_a_nodes(self):
        plan = plan_of(12.5e9)
        with pytest.raises(InputError, match="calibrate them apart"):
            calibrate([measured(plan, self.watched(plan, 64)), measured(plan)], "mixed")

    def test_of_a_job_of_this_node_it_is_the_nodes(self):
        plan = plan_of(12.5e9)
        assert (
            calibrate([measured(plan, self.watched(plan, 1))], "node").parameter("write").path
            == "tier.node_write"
        )


def test_idle_watts_come_from_the_baseline():
    plan = plan_of(25e9)
    watts = {
        "gpu:0": (80.0, 78.0, 82.0),
        "gpu:1": (90.0, 88.0, 95.0),
        "node": (2000.0, 1990.0, 2020.0),
    }
    idle = Idle(
        "here",
        "2026-01-01T00:00:00Z",
        30.0,
        {},
        True,
        {name: Baseline(*each) for name, each in watts.items()},
    )
    c = calibrate([measured(plan, idle=idle)], "idle")
    assert c.parameter("gpu_idle").estimate[:3] == pytest.approx((85.0, 83.0, 88.5))
    assert c.parameter("host_idle").estimate[:3] == pytest.approx(
        (1830.0, 1990.0 - 177.0, 2020.0 - 166.0)
    )


class TestFiles:
    def test_what_is_written_is_what_was_fitted(self, planted, tmp_path):
        _, c = planted
        paths = install(c, overlay=tmp_path)
        assert [path.relative_to(tmp_path).as_posix() for path in paths] == [
            "models/tiers/planted.toml",
            "models/clusters/planted.toml",
        ]
        raw = tomllib.loads(paths[0].read_text("utf-8"))
        assert raw["kind"] == "calibrated"
        assert raw["basis"] == "assumed"  # no machine was measured
        assert raw["name"].startswith("SIMULATED")
        assert raw["source"].startswith("SIMULATED run ")
        entity = Catalog(overlay=tmp_path).get("tier", "planted")
        write = c.parameter("write").estimate
        figure = entity.figures["node_write"]
        assert (figure.low, figure.value, figure.high) == pytest.approx(
            (write.low, write.value, write.high), rel=1e-6
        )
        assert entity.figures["rate_spread"].value == pytest.approx(
            value(c, "rate_spread"), rel=1e-6
        )
        assert "9 saves" not in raw["note"]
        assert paths[0].read_text("utf-8").count("3 saves, 0 loads") == 3

    def test_a_real_machines_is_measured(self, planted, tmp_path):
        _, c = planted
        real = c._replace(simulated=False)
        path = install(real, overlay=tmp_path)[0]
        raw = tomllib.loads(path.read_text("utf-8"))
        assert (raw["basis"], raw["source"].startswith("run ")) == ("measured", True)
        assert "SIMULATED" not in path.read_text("utf-8")

    def test_nothing_is_replaced_unasked(self, planted, tmp_path):
        _, c = planted
        path = install(c, overlay=tmp_path)[1]
        path.write_text("mine")
        with pytest.raises(InputError, match="already there"):
            install(c, overlay=tmp_path)
        assert path.read_text() == "mine"
        install(c, force=True, overlay=tmp_path)
        assert "gpu_stall" in path.read_text("utf-8")

    def test_a_dangling_link_is_there_too(self, planted, tmp_path):
        _, c = planted
        (tmp_path / "models" / "tiers").mkdir(parents=True)
        (tmp_path / "models" / "tiers" / "planted.toml").symlink_to("nowhere")
        with pytest.raises(InputError, match="already there"):
            install(c, overlay=tmp_path)

    def test_what_ships_is_not_hidden_unasked(self, planted, tmp_path):
        _, c = planted
        with pytest.raises(InputError, match="ships"):
            install(c._replace(id="nas-hdd"), overlay=tmp_path)
        assert list(tmp_path.rglob("*.toml")) == []
        install(c._replace(id="nas-hdd"), force=True, overlay=tmp_path)
        assert Catalog(overlay=tmp_path).get("tier", "nas-hdd").label == "calibrated"

    def test_figures_that_no_catalogue_takes_are_not_put_in_place(self, planted, tmp_path):
        _, c = planted
        wrong = [
            p._replace(estimate=Estimate(1e30, n=1)) if p.id == "write" else p for p in c.parameters
        ]
        with pytest.raises(InputError, match="out of range"):
            install(c._replace(parameters=tuple(wrong)), overlay=tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_in_the_way(self, planted, tmp_path):
        _, c = planted
        (tmp_path / "models" / "tiers" / "planted.toml").mkdir(parents=True)
        with pytest.raises(OutputError, match="could not be written"):
            install(c, force=True, overlay=tmp_path)
        (tmp_path / "flat").write_text("")
        with pytest.raises(OutputError, match="could not be written"):
            install(c, overlay=tmp_path / "flat")

    def test_a_file_that_does_not_fit_leaves_nothing(self, planted, tmp_path):
        _, c = planted
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        try:
            with pytest.raises(OutputError, match="File too large"):
                install(c, overlay=tmp_path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []

    @pytest.mark.parametrize(
        "said",
        [
            "",
            ".",
            "..",
            "a/b",
            "a\\b",
            "-a",
            ".hidden",
            "a b",
            "é",
            "x" * 101,
            "a\n",
            "tier.toml",
            "a\0",
        ],
    )
    def test_names_that_are_none(self, said):
        with pytest.raises(InputError, match=r"^entry: "):
            checked_id(said)

    @pytest.mark.parametrize("said", ["a", "our-lustre", "Rack_7.v2", "0"])
    def test_names_that_are(self, said):
        assert checked_id(said) == said

    def test_a_name_in_words_is_one_line(self, planted, tmp_path):
        for said in ("a\nb", "\x1b[31m", "\x7f"):
            with pytest.raises(InputError, match=r"^name: "):
                checked_name(said)
        _, c = planted
        install(c._replace(name='Rack "7" \\ näme'), overlay=tmp_path)
        assert (
            Catalog(overlay=tmp_path).get("tier", "planted").name == 'SIMULATED: Rack "7" \\ näme'
        )

    def test_a_run_from_elsewhere_writes_no_lines_of_its_own(self, tmp_path):
        seen = measured(plan_of(25e9))
        seen.run.id = 'x"\nbasis = "measured"\n# '
        c = calibrate([seen], "odd")
        install(c, overlay=tmp_path)
        assert "\nbasis" not in c.source
        assert Catalog(overlay=tmp_path).get("tier", "odd").figures["node_write"].basis == "assumed"


def test_a_run_of_two_hosts_with_clocks_of_their_own(tmp_path):
    """Each node's saves and steps are its own, on its own clock; the rate is one node's."""
    for host, start_s in (("one", 5), ("two", 987)):
        plan = plan_of(25e9 if host == "one" else 50e9, asynchronous=True, snapshot_s=0.4)
        clock = VirtualClock(start_s * S, 2_000_000_000 * S)
        recorder = Recorder(
            simulated.find(plan, origin_ns=start_s * S).meters,
            FileSink(tmp_path),
            clock,
            run_id="a" * 32,
            host=host,
        )
        recorder.begin()
        for mark in sorted(
            [*marks(plan, 0.0, 80.0), *step_marks(plan, more=0.1)], key=lambda mark: mark.t_s
        ):
            if mark.t_s > 80.0:
                break
            at_ns = start_s * S + round(mark.t_s * S)
            detail = dict(mark.detail)
            if mark.name == "steps":
                detail["base"] += start_s * S
            recorder.run_until(at_ns)
            recorder.mark(mark.name, mark.window, t_ns=at_ns, **detail)
            recorder.step()
        recorder.run_until((start_s + 81) * S)
        recorder.stop()
    runs = [reviewed(tmp_path, host=host) for host in ("one", "two")]
    c = calibrate(runs, "hosts")
    assert c.parameter("write").path == "tier.node_write"
    assert value(c, "write") == pytest.approx(RATE, rel=1e-4)
    assert value(c, "setup") == pytest.approx(FIXED_S, rel=1e-3)
    assert sorted(round_.bytes for round_ in c.saves) == [25e9, 25e9, 50e9]
    assert [one.why for one in c.left] == [
        "UNFINISHED"
    ]  # it is synced and not committed when the marks stop
    assert value(c, "slowdown") == pytest.approx(0.1 / 1.1, rel=0.1)
    assert value(c, "step") == pytest.approx(0.25, rel=0.01)
    for round_ in c.saves:
        assert round_.by_steps.value == pytest.approx(0.4, abs=0.06)
