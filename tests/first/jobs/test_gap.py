"""Measured against modelled: a planted truth has no gap, a planted cause is named, and the parts of
a gap are the gap."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from told_meters import Told, at, energy, evaluated, said

from ckptcost.first.catalog.figures import Figure
from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.channels import Mark
from ckptcost.first.core.contents import contents_of
from ckptcost.first.core.gap import Course, parts_of
from ckptcost.first.core.phases import windows_of
from ckptcost.first.errors import InputError
from ckptcost.first.jobs.gap import ModelGap, gap, run_path
from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.jobs.measured import Measured, evaluate
from ckptcost.first.jobs.measured_bill import machine_of
from ckptcost.first.jobs.measured_course import mean_course, taken_of
from ckptcost.first.jobs.recording import record
from ckptcost.first.layers import layers_of, set_layer
from ckptcost.first.meters import simulated
from ckptcost.first.meters.simulated_machine import MachinePlan, marks
from ckptcost.first.report.studies.gap import study_of
from ckptcost.first.runs.clocks import VirtualClock

CATALOG = Catalog()
PLAN = MachinePlan(
    gpus=2,
    disks=1,
    variation=0.0,
    gpu_spread=0.0,
    ramp_s=0.0,
    psu_efficiency=1.0,
    node_noise_w=0.0,
    gpu_snapshot_w=0.0,
)
"""7.85 s a save: 0.3 s of snapshot, 7.5 s for 112 GB, 0.05 s of commit"""
TRUTH = {
    "checkpoint.size": "112 GB",
    "tier.node_write": "14.933333333 GB/s",
    "tier.setup": "0.05 s",
    "policy.pipelined": "false",
    "cluster.gpu_d2h": "186.666666667 GB/s",
    "cluster.gpu_stall": "307 W",
    "cluster.host_stall": "2296 W",
    "site.pue": "1.2",
}
"""the same for a model; 2,296 W: packages 2 x 265, memory 2 x 38, and the rest 1,690"""


def layers(**changes: str):
    said_ = TRUTH | {name.replace("__", "."): value for name, value in changes.items()}
    return [
        *layers_of(CATALOG, "small-8b"),
        set_layer([f"{key}={value}" for key, value in said_.items() if value]),
    ]


@lru_cache
def recorded(plan: MachinePlan = PLAN, for_s: float = 130.0) -> Measured:
    seen = simulated.find(plan, origin_ns=0)
    tools = Instruments(seen.meters, seen.absences, VirtualClock(0), list(marks(plan, 0.0, for_s)))
    found = record(tools, for_s)
    return evaluate(found.run, found.begin_s, found.end_s, None, seen.absences, found.stats)


def compared(plan: MachinePlan = PLAN, **changes: str) -> ModelGap:
    return gap(CATALOG, recorded(plan), layers(**changes))


def told(text: str, **more) -> Measured:
    """Two cards, a node, and one save's marks."""
    says = {energy(f"gpu:{i}", tick_s=0.001): at(300.0) for i in range(2)} | {
        energy("node", role="whole", tick_s=0.001): at(1000.0)
    }
    return evaluated(Told("told", says), marks=said(text, **more))


def held(measured: Measured, **changes: str):
    found = gap(CATALOG, measured, layers(**changes)).saves
    assert found is not None
    return found


def first(found: ModelGap) -> str:
    return study_of(found).findings[0]


def test_the_planted_truth_has_no_gap():
    saves = compared().saves
    assert len(saves.taken) == 2
    for name in ("bytes", "time", "stall", "rate", "gpu_s"):
        assert saves.row(name).ratio == pytest.approx(1.0, rel=1e-6), name
    assert saves.row("lag").difference == 0.0
    for value in saves.parts:
        assert value == pytest.approx(0.0, abs=1e-6)
    for name in ("gpu_wait", "host_wait"):
        row = saves.row(name)
        assert row.measured.low <= row.modelled.value <= row.measured.high, name
    assert saves.row("gpu_wait").ratio == pytest.approx(1.0, rel=0.01)
    assert (
        len(study_of(compared()).findings) == 1
    )  # joules differ by less than their meters leave open
    assert (
        first(compared())
        == "A save, in the mean of 2, takes as long as modelled: 7.85 s, modelled 7.85 s."
    )


PLANTED = {
    "rate_s": (
        {"write_s": 4.4, "fsync_s": 10.6},
        {},
        7.5,
        "the write rate (7.47 GB/s measured, 14.9 GB/s modelled)",
    ),
    "fixed_s": ({"commit_s": 6.05}, {}, 6.0, "the fixed time (6.05 s measured, 0.05 s modelled)"),
    "beside_s": ({"snapshot_s": 4.3}, {}, 4.0, "the snapshot (4.3 s measured, 0.3 s modelled)"),
    "size_s": (
        {},
        {"checkpoint__size": "56 GB"},
        3.9,
        "the size (112 GB measured, 56 GB modelled)",
    ),
}


@pytest.mark.parametrize("cause", PLANTED)
def test_a_planted_cause_is_the_one_that_the_sentence_names(cause):
    plan, changes, seconds, words = PLANTED[cause]
    found = compared(replace(PLAN, **plan), **changes)
    parts = found.saves.parts._asdict()
    for name, value in parts.items():
        assert value == pytest.approx(seconds if name == cause else 0.0, abs=1e-5), name
    sentence = first(found)
    assert sentence.startswith("A save, in the mean of 2, takes ")
    assert sentence.endswith(f"more, {seconds:g} s are {words}.")


def test_a_quick_tier_makes_it_shorter():
    sentence = first(compared(tier__node_write="7.466666667 GB/s"))
    assert "0.51x as long as modelled" in sentence
    assert (
        "of 7.5 s less, 7.5 s are the write rate (14.9 GB/s measured, 7.47 GB/s modelled)"
        in sentence
    )


def test_causes_that_cancel_out_are_told():
    found = compared(replace(PLAN, commit_s=7.55), tier__node_write="7.466666667 GB/s")
    assert found.saves.parts.whole_s == pytest.approx(0.0, abs=1e-5)
    sentence = first(found)
    assert "takes as long as modelled" in sentence
    assert (
        "two causes cancel out: the fixed time (7.55 s measured, 0.05 s modelled) makes 7.5 s more"
        in sentence
    )
    assert "the write rate (14.9 GB/s measured, 7.47 GB/s modelled) makes 7.5 s less" in sentence


def test_another_size_is_told_first_and_then_the_rest():
    found = compared(replace(PLAN, commit_s=4.05), checkpoint__size="1.12 TB")
    assert "the size (112 GB measured, 1.12 TB modelled) alone makes 70.2 s less" in first(found)
    assert (
        study_of(found)
        .findings[1]
        .startswith(
            "At the run's own size the model says 7.85 s, and most of what is left (4 s more) is"
            " the fixed"
        )
    )


def test_an_asynchronous_run_is_its_stall_and_its_drain():
    plan = replace(PLAN, asynchronous=True)
    found = compared(plan, policy__mode="async", policy__snapshot_rate="1 TB/s")  # the link's
    assert found.saves.row("stall").difference == pytest.approx(0.0, abs=1e-6)
    assert found.saves.row("lag").difference == pytest.approx(0.0, abs=1e-6)
    slow = found.saves.row("slowdown")
    assert slow.measured.value > 0
    assert (slow.why, math.isnan(slow.difference)) == ("WITHOUT_LOST_TIME", True)
    assert "MODE_DIFFERS" not in dict(study_of(found).warnings)
    warned = dict(study_of(compared(plan)).warnings)
    assert "--set policy.mode=async" in warned["MODE_DIFFERS"]


def test_bytes_left_in_the_page_cache_are_no_property_of_the_storage():
    found = compared(replace(PLAN, storage="buffered"))
    assert [one.time.known for one in found.saves.taken] == [True, False]
    assert found.saves.taken[1].course_why == "UNSYNCED"
    assert found.saves.row("time").saves == 1
    warned = dict(study_of(found).warnings)
    assert "36 s came after the last write" in warned["NO_FSYNC"]


def test_a_mean_of_some_saves_says_of_how_many():
    found = compared(replace(PLAN, storage="buffered"))
    lines = next(table for table in study_of(found).tables if table.id == "lines")
    assert lines.note.startswith("of 1 of 2 saves, the others unknown: begin until safe")
    whole = next(table for table in study_of(compared()).tables if table.id == "lines")
    assert whole.note == ""


def test_unknown_power_is_a_dash_with_a_reason():
    seen = recorded(replace(PLAN, gpus=0))
    found = gap(CATALOG, seen, layers(cluster__host_stall=""))
    reasons = {row.id: row.why for row in found.saves.rows}
    assert reasons["gpu_wait"] == reasons["host_wait"] == "NO_GPU_METER"
    assert reasons["gpu_s"] == "NO_GPU_COUNT"
    assert reasons["storage_write"] == "NO_STORAGE_METER"
    for name in ("gpu_wait", "host_wait", "gpu_s", "storage_write"):
        assert math.isnan(found.saves.row(name).difference)
    study = study_of(found)
    rows = {
        row["quantity"]: row
        for row in next(table for table in study.tables if table.id == "lines").rows
    }
    assert rows["gpu_wait"]["measured"] is None
    assert rows["gpu_wait"]["modelled"] > 0
    assert (
        "GPUs waiting for saves and hosts waiting for saves (nothing here meters GPUs)"
        in dict(study.warnings)["UNCOMPARABLE"]
    )
    assert math.isnan(found.saves.measured_bill.total("energy_j"))


def test_what_the_model_does_not_know(monkeypatch):
    nothing = (Figure(float("nan")), "models/defaults.toml")
    monkeypatch.setattr("ckptcost.first.scenario._write_energy", lambda *_: nothing)
    found = held(told("begin 5, written 7, synced 8, returned 8"))
    assert found.row("storage_write").modelled.why == "NOT_MODELLED"
    assert found.row("gpu_wait").measured.known


def marked(text: str, bytes_: float | None = 10e9, rank: int = 0, **detail) -> list[Mark]:
    words = [word.split() for word in text.split(",")]
    more = detail | ({} if bytes_ is None else {"bytes": bytes_})
    return [Mark(float(t_s), name, "w", rank, "api", more) for name, t_s in words]


MODEL = Course(10e9, 1.0, 2e9, 1.2, 0.5)


def taken(*told_: list[Mark], modelled: Course = MODEL, is_part: bool = False):
    every = [mark for each in told_ for mark in each]
    (window,) = windows_of(every)
    return taken_of(window, contents_of(every, [window])[0], modelled, is_part)


def test_what_marks_tell_apart():
    one = taken(marked("begin 0, snapshotted 1, written 4, synced 5, committed 7, returned 7"))
    assert one.course == Course(10e9, 2.0, pytest.approx(10e9 * 1.2 / 4), 1.2, 1.0)
    assert one.as_modelled == ("STRAGGLER",)
    assert one.course.time_s == pytest.approx(7.0)


def test_what_no_mark_tells_apart_is_as_modelled():
    one = taken(marked("begin 0, returned 8, durable 8"))
    assert one.as_modelled == ("FIXED", "BESIDE", "STRAGGLER")
    assert (one.course.fixed_s, one.course.beside_s, one.course.moving_s) == (
        1.0,
        0.5,
        pytest.approx(6.5),
    )
    behind = taken(marked("begin 0, returned 2, durable 8"))
    assert behind.as_modelled == ("FIXED", "STRAGGLER")
    assert behind.course.beside_s == 2.0


@pytest.mark.parametrize("time_s", [0.01, 0.5, 0.9, 1.2, 1.5, 1.6])
def test_a_save_shorter_than_the_modelled_fixed_time_still_adds_up(time_s):
    one = taken(marked(f"begin 0, returned {time_s}, durable {time_s}"))
    assert one.course.time_s == pytest.approx(time_s)
    assert one.course.moving_s > 0
    assert parts_of(MODEL, MODEL, one.course).whole_s == pytest.approx(time_s - MODEL.time_s)


def test_the_slowest_rank():
    one = taken(
        marked("begin 0, written 2, synced 3, committed 7, returned 7"),
        marked("begin 0, written 5, synced 6, committed 7, returned 7", rank=1),
        marked("begin 0, written 2, synced 3, committed 7, returned 7", rank=2),
    )
    assert one.course.straggler == pytest.approx(6.0 / 4.0)
    assert one.course.moved_bytes == 30e9
    assert one.course.fixed_s == 1.0
    assert "STRAGGLER" not in one.as_modelled


@pytest.mark.parametrize(
    ("text", "bytes_", "is_part", "why"),
    [
        ("begin 0, returned 2, durable 2", None, False, "NO_BYTES"),
        ("begin 0, returned 2, durable 2", 0.0, False, "NO_BYTES"),
        ("begin 0, returned 2, durable 2", 1e9, True, "PART_OF_JOB"),
        ("begin 0, returned 2", 1e9, False, "NOT_MARKED"),
        ("begin 0, written 1", 1e9, False, "UNFINISHED"),
        ("returned 1, durable 2", 1e9, False, "NO_BEGIN"),
        ("begin 0, written 1, committed 2, returned 2", 1e9, False, "UNSYNCED"),
    ],
)
def test_why_nothing_explains_a_save(text, bytes_, is_part, why):
    one = taken(marked(text, bytes_), is_part=is_part)
    assert (one.course, one.course_why) == (None, why)


def test_when_it_was_last_seen_not_to_be_safe():
    one = taken(
        [*marked("begin 0, returned 1"), Mark(9.0, "durable", "w", 0, "watch", {"unsure_s": 2.5})]
    )
    assert one.time[:3] == (9.0, 6.5, 9.0)


def test_a_file_system_in_memory_has_its_own_reason():
    one = taken(marked("begin 0, written 1, returned 1", durable_why="IN_MEMORY"))
    assert one.time.why == "IN_MEMORY"


instants = st.lists(st.floats(0.001, 100.0), min_size=7, max_size=7)
NAMES = ("snapshotted", "written", "synced", "committed", "returned", "durable", "end")


@settings(max_examples=200)
@given(instants, st.sets(st.sampled_from(NAMES)), st.floats(1.0, 1e13), st.integers(1, 3))
def test_parts_add_up_whatever_was_marked(at_s, kept, bytes_, ranks):
    told_ = [
        [
            Mark(0.0, "begin", "w", rank),
            *(
                Mark(t + 0.1 * rank, name, "w", rank, "api", {"bytes": bytes_})
                for t, name in zip(at_s, NAMES, strict=True)
                if name in kept
            ),
        ]
        for rank in range(ranks)
    ]
    one = taken(*told_)
    if one.course is None:
        assert one.course_why
        return
    assert one.course.time_s == pytest.approx(one.time.value, rel=1e-9)
    assert min(one.course.fixed_s, one.course.beside_s) >= 0.0
    assert one.course.fixed_s + one.course.beside_s <= one.time.value * (1 + 1e-12)
    parts = parts_of(MODEL, MODEL._replace(moved_bytes=one.course.moved_bytes), one.course)
    most = max(one.time.value, MODEL.time_s, one.course.moved_bytes * 3 / 2e9)
    assert parts.whole_s == pytest.approx(one.time.value - MODEL.time_s, abs=1e-9 * most)
    assert mean_course([one, one]).time_s == pytest.approx(one.time.value, rel=1e-9)


class TestMachine:
    def resolved(self, **changes: str):
        from ckptcost.first.jobs.model import one_of

        return one_of(CATALOG, layers(**changes))

    def test_the_metered_cards_are_the_job(self):
        found = machine_of(recorded(), self.resolved())
        assert found == (2.0, 2.0, 2.0, "METERED")
        assert not found.is_part

    def test_several_hosts_are_alike(self):
        seen = recorded()
        other = replace(seen.run.nodes[0], host="other")
        two = seen._replace(run=replace(seen.run, nodes=(seen.run.nodes[0], other)))
        found = machine_of(two, self.resolved())
        assert found[:3] == (2.0, 4.0, 2.0)
        assert found.is_part

    def test_marks_that_say_how_many_ranks_there_are(self):
        seen = told("begin 5, returned 8, durable 8", detail={"world": 16, "bytes": 1e9})
        assert machine_of(seen, self.resolved())[:3] == (2.0, 16.0, 2.0)

    def test_nobody_says_so_whole_nodes_of_the_scenario(self):
        found = machine_of(recorded(replace(PLAN, gpus=0)), self.resolved())
        assert found[1:] == (8.0, 8.0, "NODES")
        assert math.isnan(found.gpus)
        assert not found.is_part

    def test_said_on_the_command_line(self):
        found = machine_of(recorded(replace(PLAN, gpus=0)), self.resolved(cluster__gpus="4"))
        assert found == (4.0, 4.0, 4.0, "SAID")
        assert machine_of(recorded(), self.resolved(cluster__gpus="64")).is_part
        with pytest.raises(InputError, match=r"cluster\.gpus.*says 1 GPUs, and the run has 2"):
            machine_of(recorded(), self.resolved(cluster__gpus="1"))


def test_a_node_of_a_larger_job_is_compared_for_its_own_share():
    found = compared(cluster__gpus="16")
    saves = found.saves
    for name in ("bytes", "rate"):
        assert saves.row(name).why == "PART_OF_JOB"
        assert math.isnan(saves.row(name).difference)
    assert saves.parts is None
    assert saves.row("gpu_s").modelled.value == pytest.approx(
        2.0 * saves.row("stall").modelled.value
    )
    stall_s = saves.row("stall").modelled.value
    assert saves.row("host_wait").modelled.value == pytest.approx(stall_s * 2296.0 * 1.2)
    assert saves.row("gpu_wait").modelled.value == pytest.approx(stall_s * 2 * 307.0 * 1.2)
    drives = compared(cluster__gpus="16", tier__write_energy="4 J/GB").saves.row("storage_write")
    assert drives.modelled.value == pytest.approx(112 * 4 * 1.2 * 2 / 16)
    sentence = first(found)
    assert "what explains it is not known: it is of one node, and the job is larger" in sentence
    assert "PART_OF_JOB" in dict(study_of(found).warnings)


def test_a_size_that_nobody_told_leaves_the_time_without_causes():
    found = gap(CATALOG, told("begin 5, returned 8, durable 8"), layers())
    assert found.saves.row("time").ratio == pytest.approx(3.0 / 7.85, rel=1e-6)
    assert "no mark says how many bytes it wrote" in first(found)
    assert found.saves.row("bytes").why == "NO_BYTES"


def test_two_tiers_are_compared_on_the_first():
    """small-8b has a second tier, whose stall is in no recorded save."""
    from ckptcost.first.jobs.model import one_of

    assert one_of(CATALOG, layers()).scenario.second_tier is not None
    assert [line.id for line in compared().saves.modelled_bill.lines] == [
        line.id for line in compared().saves.measured_bill.lines
    ]


def test_a_mean_rate_is_of_durations():
    marks_ = [
        *said("begin 3, returned 4, durable 4", "quick", detail={"bytes": 4e9}),
        *said("begin 8, returned 12, durable 12", "slow", detail={"bytes": 1e9}),
    ]
    saves = held(evaluated(Told("told", {energy("gpu:0", tick_s=0.001): at(300.0)}), marks=marks_))
    assert saves.row("rate").measured[:3] == pytest.approx((1e9, 0.25e9, 4e9))
    assert math.isnan(saves.row("rate").total)
    assert saves.measured.time_s == pytest.approx(2.5)
    assert saves.measured.moved_bytes == pytest.approx(2.5e9)


class TestLoads:
    def seen(self, **detail) -> Measured:
        return told("begin 5, returned 9", by="api", detail={"of": "load", "bytes": 28e9} | detail)

    def test_are_held_against_the_modelled_load(self):
        found = gap(
            CATALOG,
            self.seen(),
            layers(checkpoint__size="28 GB", tier__node_read="14 GB/s", cluster__gpu_d2h=""),
        )
        assert found.saves is None
        loads = found.loads
        assert loads.row("time").measured.value == pytest.approx(4.0)
        assert loads.row("time").modelled.value == pytest.approx(2.05)
        assert loads.parts.rate_s == pytest.approx(1.95)
        assert first(found).startswith(
            "The load w takes 2x as long as modelled (4 s, modelled 2.05 s): of 1.95 s more, 1.95 s"
            " are the read rate"
        )
        assert loads.row("loading").measured.value == pytest.approx(4 * 1000 * 1.2, rel=3e-3)
        study = study_of(found)
        assert [table.id for table in study.tables if table.rows][:2] == ["lines", "parts_load"]

    def test_a_failed_one_is_left_out(self):
        with pytest.raises(InputError, match="no checkpoint that was finished"):
            gap(CATALOG, self.seen(error="OSError"), layers())


def test_failed_saves_are_left_out_and_named():
    marks_ = [
        *said("begin 3, returned 4, durable 4", "bad", detail={"bytes": 1e9, "error": "OSError"}),
        *said("begin 8, returned 11, durable 11", "good", detail={"bytes": 1e9}),
    ]
    found = gap(
        CATALOG,
        evaluated(Told("told", {energy("gpu:0", tick_s=0.001): at(300.0)}), marks=marks_),
        layers(),
    )
    assert [one.window.name for one in found.saves.taken] == ["good"]
    assert "bad (OSError)" in dict(study_of(found).warnings)["SAVE_FAILED"]


def test_a_run_without_a_checkpoint_is_refused():
    with pytest.raises(InputError, match="holds no checkpoint"):
        gap(CATALOG, evaluated(Told("told", {energy("gpu:0"): at(300.0)})), layers())


def test_every_row_of_a_run_is_the_sum_of_its_saves():
    study = study_of(compared())
    tables = {table.id: table for table in study.tables}
    run = {row["quantity"]: row for row in tables["run"].rows}
    assert run["time"]["measured"] == pytest.approx(2 * 7.85, rel=1e-6)
    assert "rate" not in run
    assert sum(row["time"] for row in tables["saves"].rows) == pytest.approx(
        run["time"]["measured"]
    )
    parts = tables["parts_save"].rows
    assert sum(row["seconds"] for row in parts[:-1]) == pytest.approx(
        parts[-1]["seconds"], abs=1e-9
    )


def test_what_names_a_run(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "run" / "h.000.jsonl").write_text("{}\n")
    assert run_path(str(tmp_path / "run")) == tmp_path / "run"
    assert run_path(str(tmp_path / "run" / "h.000.jsonl")) == tmp_path / "run" / "h.000.jsonl"
    assert run_path(f"run:{tmp_path / 'run'}") == tmp_path / "run"
    assert [
        run_path(text)
        for text in ("opt-175b", str(tmp_path / "empty"), str(tmp_path / "job.toml"), "")
    ] == [None] * 4
    for text in ("gone.jsonl", "run:", "run:nothing-like-it"):
        monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "none"))
        with pytest.raises(InputError):
            run_path(text)


def test_joules_are_a_longer_stall_or_more_watts():
    slow = compared(replace(PLAN, write_s=4.4, fsync_s=10.6)).saves
    hot = compared(replace(PLAN, gpu_stall_w=407.0)).saves
    by_line = [{each.line: each for each in saves.divided} for saves in (slow, hot)]
    longer, hotter = (lines["gpu_wait"] for lines in by_line)
    assert (longer.of_amount, hotter.of_amount) == (
        pytest.approx(7.5 * 2 * 307 * 1.2, rel=0.01),
        pytest.approx(0.0, abs=1.0),
    )
    assert (longer.of_each, hotter.of_each) == (
        pytest.approx(0.0, abs=200.0),
        pytest.approx(7.85 * 2 * 100 * 1.2, rel=0.05),
    )
    assert longer.of_amount + longer.of_each == pytest.approx(slow.row("gpu_wait").difference)
    assert hotter.measured_each == pytest.approx(2 * 407 * 1.2, rel=0.01)
    assert math.isnan(by_line[0]["storage_write"].of_amount)


def test_the_machine_has_no_range(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'extends = "small-8b"\n[cluster]\ngpus = { value = 64, low = 8, high = 512 }\n'
        '[tier]\nsetup = "5 s"\n',
        "utf-8",
    )
    row = gap(CATALOG, recorded(), layers_of(CATALOG, str(file))).saves.row("time")
    assert (
        row.modelled.low == row.modelled.value
    )  # more GPUs would be quicker, and nothing else has a range
