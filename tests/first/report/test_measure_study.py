"""What is told of a measurement: every cell against a machine of round watts, every sentence and
warning where it belongs."""

from __future__ import annotations

import math

import pytest
from told_meters import Told, at, energy, evaluated, said, watts

from ckptcost.first.core.attribution import Baseline
from ckptcost.first.core.channels import Channel, Mark
from ckptcost.first.core.reconcile import Energy, unknown
from ckptcost.first.jobs.measure import LearnedIdle
from ckptcost.first.jobs.measured import evaluate
from ckptcost.first.present.measured import absence_text, flag_text, reason_text, warning_text
from ckptcost.first.report.studies import baseline as baseline_report
from ckptcost.first.report.studies.measure import MOST_SHOWN, study_of
from ckptcost.first.report.studies.measured_tables import three
from ckptcost.first.runs.baselines import Idle
from ckptcost.first.runs.run import Problem, RunEvent

TICK = {"tick_s": 0.001}
NEAR = {"rel": 5e-3}
SAVE = said("begin 5, snapshotted 6, returned 7, durable 10")
LOAD_W = {"gpu:0": 300.0, "cpu:0": 100.0}


def node_of(**more) -> Told:
    disk = {
        name: Channel("disk:sda", name, "diskstats")
        for name in ("written_bytes", "read_bytes", "writes", "flushes", "busy_s", "queue_s")
    }
    grows = {
        "written_bytes": 8e6,
        "read_bytes": 2e6,
        "writes": 100.0,
        "flushes": 5.0,
        "busy_s": 0.5,
        "queue_s": 4.0,
    }
    says = {
        energy(domain, f"{domain}'s", device="d", note="n", scope="s", **TICK): at(load_w)
        for domain, load_w in LOAD_W.items()
    }
    says[energy("core:0", role="detail", **TICK)] = at(50.0)
    says[watts("node", "DCMI", role="whole")] = lambda t: 500.0
    return Told(
        "told",
        says | {channel: at(grows[name]) for name, channel in disk.items()},
        facts={"driver": "590"},
        **more,
    )


@pytest.fixture(scope="module")
def plain():
    return evaluated(node_of(), marks=SAVE)


@pytest.fixture(scope="module")
def tables(plain):
    return rows_of(study_of(plain))


def rows_of(study):
    return {table.id: table.rows for table in study.tables}


def shown_of(study):
    return {table.id: table.shown for table in study.tables}


def again(seen, **more):
    return evaluate(seen.run, seen.begin_s, seen.end_s, **more)


def codes(study):
    return [code for code, _ in study.warnings]


def with_idle(seen, **load_w):
    host = seen.energies.node.host
    domains = {
        d.replace("_", ":"): Baseline(w, w, w, seen.run.wall_s(0.0), host, "590")
        for d, w in load_w.items()
    }
    return again(seen, idle=Idle(host, "", 30.0, {}, False, domains))


# ---- tables -----------------------------------------------------------------------------------


def test_a_range_has_both_ends_and_how_far_the_further_one_lies():
    assert three(Energy(10.0, 7.0, 12.0), "x") == {
        "x": 10.0,
        "x_low": 7.0,
        "x_high": 12.0,
        "x_error": 3.0,
    }
    assert three(Energy(10.0, 9.0, 12.0), "x")["x_error"] == 2.0
    assert three(unknown("NO_PARTS"), "x") == {
        "x": None,
        "x_low": None,
        "x_high": None,
        "x_error": None,
    }
    assert three(Energy(10.0, -math.inf, 12.0), "x") == {
        "x": 10.0,
        "x_low": None,
        "x_high": 12.0,
        "x_error": None,
    }


def test_domains_with_their_roles_and_watts(tables):
    rows = {row["domain"]: row for row in tables["domains"]}
    assert {name: row["role"] for name, row in rows.items()} == {
        "gpu:0": "part",
        "cpu:0": "part",
        "node": "whole",
    }
    for domain, load_w in {**LOAD_W, "node": 500.0}.items():
        assert rows[domain]["watts"] == pytest.approx(load_w, **NEAR)
        assert rows[domain]["joules"] == pytest.approx(20 * load_w, **NEAR)
    row = rows["gpu:0"]
    assert [
        row[key] for key in ("source", "scope", "basis", "device", "driver", "note", "coverage")
    ] == ["gpu:0's", "s", "measured", "d", "590", "n", 1.0]
    assert [(row["domain"], row["role"]) for row in tables["details"]] == [("core:0", "detail")]


def test_own_cost_stands_among_what_was_used(plain):
    host = plain.energies.node.host
    plain.run.events = (RunEvent(1.0, "cost", "self", "", host, {"cpu_s": 4.0}),)
    study = study_of(again(plain))
    plain.run.events = ()
    (own,) = [row for row in rows_of(study)["domains"] if row["domain"] == "self"]
    assert own["role"] == "detail"
    assert own["joules"] is not None
    assert own["watts"] == pytest.approx(own["joules"] / 20.0)
    assert any(line.startswith("Measuring itself took") for line in study.findings)
    assert "events" not in rows_of(study), "what it cost is no event"
    assert [row for row in rows_of(study_of(plain))["domains"] if row["domain"] == "self"] == []


def test_own_cost_without_a_meter_of_the_processor_has_no_joules():
    seen = evaluated(Told("told", {energy("gpu:0", **TICK): at(300.0)}))
    seen.run.events = (RunEvent(1.0, "cost", "self", "", seen.energies.node.host, {"cpu_s": 4.0}),)
    (line,) = [
        line for line in study_of(again(seen)).findings if line.startswith("Measuring itself")
    ]
    assert " J" not in line


def test_a_checkpoint_is_one_row(plain):
    seen = with_idle(plain, gpu_0=100.0, cpu_0=50.0)
    (row,) = rows_of(study_of(seen))["windows"]
    assert {
        key: row[key]
        for key in (
            "window",
            "begin",
            "stall",
            "drain",
            "length",
            "returned",
            "durable",
            "durable_why",
            "ranks",
        )
    } == {
        "window": "w",
        "begin": 5.0,
        "stall": 2.0,
        "drain": 3.0,
        "length": 5.0,
        "returned": 7.0,
        "durable": 10.0,
        "durable_why": "",
        "ranks": 1.0,
    }
    assert row["joules"] == pytest.approx(5 * 400.0, **NEAR)
    assert row["excess"] == pytest.approx(5 * 250.0, rel=0.01)
    assert row["stall_joules"] == pytest.approx(2 * 400.0, **NEAR)
    assert (row["gpu_s"], row["waited_gpu_s"], row["excess_why"]) == (2.0, 0.0, "")
    (row,) = rows_of(study_of(plain))["windows"]
    assert (row["excess"], row["excess_why"]) == (None, "NO_BASELINE")


def test_what_is_odd_about_the_marks_stands_in_their_row():
    marks = said("begin 5, begin 5.5, returned 7") + said("begin 12, returned 13, durable 14", "v")
    odd, fine = rows_of(study_of(evaluated(node_of(), marks=marks)))["windows"]
    assert (odd["flags"], odd["durable_why"], odd["drain"], odd["joules"]) == (
        "DOUBLED",
        "NOT_MARKED",
        None,
        None,
    )
    assert (fine["flags"], fine["joules"]) == ("", pytest.approx(2 * 400.0, **NEAR))


def test_joules_of_a_checkpoint_by_domain():
    def load(t_s):  # 300 W, of which 100 W less in the stall and 60 W more in the drain
        return (
            300.0 * t_s
            - 100.0 * min(max(t_s - 25.0, 0.0), 2.0)
            + 60.0 * min(max(t_s - 27.0, 0.0), 5.0)
        )

    marks = said("begin 25, returned 27, durable 32")
    seen = evaluated(
        Told(
            "told", {energy("gpu:0", "field 186", **TICK): load, energy("cpu:0", **TICK): at(100.0)}
        ),
        for_s=40.0,
        marks=marks,
    )
    seen = with_idle(seen, gpu_0=100.0)
    gpu, cpu = rows_of(study_of(seen))["energies"]
    about = {"abs": 8.0}
    assert gpu["joules"] == gpu["share"] == pytest.approx(2 * 200.0 + 5 * 360.0, **about)
    assert gpu["stall"] == pytest.approx(2 * 200.0, **about)
    assert gpu["drain"] == pytest.approx(5 * 360.0, **about)
    assert gpu["extra"] == pytest.approx(5 * 60.0, **about)
    assert gpu["excess"] == pytest.approx(2200.0 - 7 * 100.0, **about)
    assert gpu["training"] == pytest.approx(300.0, rel=0.01)
    assert gpu["overlap"] == pytest.approx(5.0)
    assert (gpu["window"], gpu["domain"], gpu["source"], gpu["coverage"], gpu["short"]) == (
        "w",
        "gpu:0",
        "field 186",
        1.0,
        False,
    )
    assert (cpu["domain"], cpu["excess"]) == ("cpu:0", None)
    assert "NOT_DISTINGUISHABLE" in cpu["flags"], "a steady load is nothing that draining added"


def test_a_save_of_no_length_and_one_that_is_not_known():
    marks = said("begin 5, returned 5, durable 5") + said("begin 8, returned 9", "v")
    tables = rows_of(study_of(evaluated(node_of(), marks=marks)))
    assert [
        (row["window"], row["coverage"]) for row in tables["energies"] if row["domain"] == "gpu:0"
    ] == [("w", None), ("v", None)]
    assert {row["source"] for row in tables["energies"] if row["domain"] == "gpu:0"} == {"gpu:0's"}
    assert [(row["window"], row["phase"]) for row in tables["phases"]] == [("v", "stall")], (
        "nothing happens in no time"
    )


def test_a_save_between_few_ticks_says_so_in_its_row():
    slow = Told("told", {energy("gpu:0"): at(300.0, 1.0)})
    study = study_of(evaluated(slow, marks=said("begin 5.2, returned 6, durable 7.4")))
    (row,) = rows_of(study)["energies"]
    assert row["short"] is True
    assert row["flags"].startswith("SHORT")
    assert dict(study.warnings)["SHORT"] == flag_text("SHORT")


def test_phases_of_training_and_of_storage(tables):
    seen = {(row["of"], row["phase"]): (row["begin"], row["length"]) for row in tables["phases"]}
    assert seen == {
        ("training", "stall"): (5.0, 2.0),
        ("training", "drain"): (7.0, 3.0),
        ("storage", "snapshot"): (5.0, 1.0),
        ("storage", "settle"): (6.0, 4.0),
    }
    for row in tables["phases"]:
        assert row["watts"] == pytest.approx(400.0, rel=0.01)
        assert row["joules"] == pytest.approx(400.0 * row["length"], rel=0.01)


def test_disks_over_all_and_over_the_save(plain, tables):
    by_window = {
        row.get("window") or "": row
        for name in tables
        if name.startswith("storage")
        for row in tables[name]
    }
    assert set(by_window) - {"all", ""} == {"w"}
    assert sum(len(rows) for name, rows in tables.items() if name.startswith("storage")) == 2
    for length_s, row in ((20.0, by_window.get("") or by_window["all"]), (5.0, by_window["w"])):
        assert row["disk"] == "disk:sda"
        assert row["written"] == pytest.approx(8e6 * length_s, **NEAR)
        assert row["read"] == pytest.approx(2e6 * length_s, **NEAR)
        assert row["rate"] == pytest.approx(8e6, **NEAR)
        assert row["writes"] == pytest.approx(100.0 * length_s, **NEAR)
        assert row["flushes"] == pytest.approx(5.0 * length_s, **NEAR)
        assert row["write_size"] == pytest.approx(8e4, **NEAR)
        assert (row["busy"], row["depth"]) == (
            pytest.approx(0.5, **NEAR),
            pytest.approx(4.0, **NEAR),
        )
        assert row["coverage"] == pytest.approx(1.0)
    assert not any(
        name.startswith("storage")
        for name in rows_of(study_of(evaluated(Told("t", {energy("gpu:0"): at(1.0)}))))
    )


def test_a_rate_is_the_mean_and_a_peak_is_not():
    def burst(t_s):
        return 1e6 * min(max(t_s - 10.0, 0.0), 2.0)

    seen = evaluated(Told("block", {Channel("disk:sda", "written_bytes", "diskstats"): burst}))
    row = rows_of(study_of(seen))["storage"][0]
    assert row["rate"] == pytest.approx(1e5, rel=0.02)
    assert row["peak_rate"] == pytest.approx(1e6, rel=0.05)


def test_what_is_long_is_not_shown_to_people():
    def cards(count):
        inside = {energy(f"gpu:{n}.memory", role="detail"): at(1.0) for n in range(count)}
        return Told("told", {energy(f"gpu:{n}"): at(1.0) for n in range(count)} | inside)

    def saves(count):
        return [
            mark
            for n in range(count)
            for mark in said(
                f"begin {2 * n + 1}, returned {2 * n + 1.5}, durable {2 * n + 2}", f"w{n}"
            )
        ]

    few, many = (
        shown_of(study_of(evaluated(cards(count), for_s=1.0)))
        for count in (MOST_SHOWN, MOST_SHOWN + 1)
    )
    assert (few["details"], many["details"]) == (True, False)
    few, many = (shown_of(study_of(evaluated(cards(4), marks=saves(count)))) for count in (3, 4))
    assert (few["energies"], few["phases"]) == (True, True)
    assert (many["energies"], many["phases"]) == (False, False)
    assert not few["sources"]


def test_sources_are_all_channels_with_their_meters(plain, tables):
    assert len(tables["sources"]) == len(plain.energies.channels)
    first = tables["sources"][0]
    assert (first["domain"], first["quantity"], first["meter"], first["source"], first["role"]) == (
        "gpu:0",
        "energy_j",
        "told",
        "gpu:0's",
        "part",
    )


# ---- sentences --------------------------------------------------------------------------------


def test_the_answer_in_sentences(plain):
    parts, node, saves, save, against = study_of(plain).findings
    assert saves == "1 checkpoint."  # of which no mark tells bytes
    assert parts.startswith("8,000")
    assert "400 W in the mean, in 2 metered parts: gpu:0, cpu:0" in parts
    assert "own meter says 10,000" in node
    assert "100" in node
    assert "in no part" in node
    assert "training stalls for 2 s" in save
    assert "2 GPU-seconds stood still" in save
    assert "2,000 J" in save
    assert against.startswith("GPU power does not fall where training is said to stand still")


def test_many_parts_are_named_in_part():
    seen = evaluated(Told("told", {energy(f"gpu:{n}", **TICK): at(100.0) for n in range(9)}))
    assert (
        "in 9 metered parts: gpu:0, gpu:1, gpu:2, gpu:3, gpu:4, gpu:5 and 3 more."
        in study_of(seen).findings[0]
    )


def test_where_nothing_stands_still_nothing_is_said_of_it():
    seen = evaluated(Told("told", {energy("cpu:0", **TICK): at(100.0)}), marks=SAVE)
    (save,) = [line for line in study_of(seen).findings if "training stalls" in line]
    assert "stood still" not in save


def test_without_a_sum_its_reason_is_told_in_words():
    seen = evaluated(Told("block", {Channel("disk:sda", "written_bytes", "diskstats"): at(1.0)}))
    assert study_of(seen).findings == [f"No sum of joules: {reason_text('NO_PARTS')}."]


def test_simulated_or_not_is_told_first(plain):
    assert not study_of(plain).simulated
    assert "simulated" not in study_of(plain).title
    seen = evaluated(node_of(simulated=True))
    assert study_of(seen).simulated
    assert "simulated" in study_of(seen).title


# ---- warnings ---------------------------------------------------------------------------------


def test_of_a_plain_measurement_only_the_missing_baseline_is_told(plain):
    assert codes(study_of(plain)) == ["NO_BASELINE"]
    assert codes(study_of(with_idle(plain, gpu_0=1.0, cpu_0=1.0, node=1.0))) == []


def test_a_save_that_was_never_safe():
    study = study_of(evaluated(node_of(), marks=said("begin 5, returned 7, committed 8", "step 7")))
    assert dict(study.warnings)["NOT_DURABLE"] == f"step 7: {reason_text('UNSYNCED')}"


def test_why_a_save_was_never_safe_is_what_was_seen_of_it():
    marks = said("begin 5, returned 7, committed 8", "step 7")

    def codes_with(why):
        note = Mark(9.0, "note", "step 7", by="watch", detail={"durable_why": why})
        return dict(study_of(evaluated(node_of(), marks=[*marks, note])).warnings)

    assert codes_with("IN_MEMORY")["NOT_DURABLE"] == f"step 7: {reason_text('IN_MEMORY')}"
    assert "NOT_DURABLE" not in codes_with("GONE"), "it is said to be lost: no doubt is left"


def test_a_baseline_of_another_day(plain):
    host = plain.energies.node.host
    old = Idle(host, "", 30.0, {}, False, {"gpu:0": Baseline(1.0, 1.0, 1.0, 0.0, host, "590")})
    assert "BASELINE_OLD" in codes(study_of(again(plain, idle=old)))


def test_what_is_published_of_the_sensors():
    def sensors(**more):
        return study_of(
            evaluated(
                Told(
                    "told",
                    {
                        watts("gpu:0", **more): lambda t: 300.0,
                        watts("cpu:0", accuracy=0.01): lambda t: 9.0,
                    },
                )
            )
        )

    assert [code for code in codes(sensors(looks=1.0)) if code.endswith("LOOKS")] == []
    assert "SENSOR_LOOKS" in codes(sensors(looks=0.25))
    assert "5 %" in dict(sensors(accuracy=0.05).warnings)["SENSOR_ERROR"]
    assert "SENSOR_ERROR" not in codes(
        study_of(evaluated(Told("told", {watts("gpu:0"): lambda t: 9.0})))
    )


def test_what_was_wrong_with_the_files_and_what_was_lost(plain):
    host = plain.energies.node.host
    run = plain.run
    run.problems = tuple(Problem("a.000", n, f"trouble {n}") for n in range(1, 6))
    run.events = (
        RunEvent(3.0, "lost", "gpu:1", "fell off", host, {}),
        RunEvent(4.0, "lost", "gpu:1", "again", host, {}),
        RunEvent(5.0, "found", "gpu:2", "is back", host, {}),
        RunEvent(6.0, "cost", "self", "", host, {}),
        RunEvent(7.0, "lost", "process:77", "ended", host, {}),
    )
    study = study_of(again(plain))
    run.problems = run.events = ()
    told = dict(study.warnings)
    assert (
        told["RUN_FILE"]
        == "a.000, line 1: trouble 1; a.000, line 2: trouble 2; a.000, line 3: trouble 3"
    )
    assert told["METER_LOST"] == warning_text("METER_LOST", "gpu:1")
    assert [
        (row["at"], row["name"], row["domain"], row["text"]) for row in rows_of(study)["events"]
    ] == [
        (3.0, "lost", "gpu:1", "fell off"),
        (4.0, "lost", "gpu:1", "again"),
        (5.0, "found", "gpu:2", "is back"),
        (7.0, "lost", "process:77", "ended"),
    ]


def test_a_part_that_did_not_answer_leaves_no_sum():
    study = study_of(
        evaluated(
            Told(
                "told",
                {
                    energy("gpu:0"): lambda t: math.nan if t > 0.4 else 5.0,
                    energy("cpu:0", **TICK): at(9.0),
                },
            )
        )
    )
    assert dict(study.warnings)["PART_MISSING"] == warning_text("PART_MISSING", "gpu:0")
    assert study.findings[0].startswith("No sum of joules: gpu:0 did not answer; cpu:0 took ")


def test_a_card_that_was_lost_late_keeps_its_joules():
    lost_s = 16.0
    study = study_of(
        evaluated(
            Told(
                "told",
                {
                    energy("gpu:0", **TICK): lambda t: math.nan if t > lost_s else at(300.0)(t),
                    energy("gpu:1", **TICK): at(300.0),
                },
            ),
            for_s=20.0,
        )
    )
    rows = {row["domain"]: row for row in study.tables[0].rows}
    kept, whole = rows["gpu:0"], rows["gpu:1"]
    assert kept["coverage"] == pytest.approx(15.5 / 20.0, abs=0.1)
    assert kept["joules_low"] <= 300.0 * 20.0 * kept["coverage"] <= kept["joules_high"]
    assert kept["watts"] == pytest.approx(300.0, rel=0.01)
    assert whole["joules"] == pytest.approx(6000.0, rel=0.01)
    assert "of the time that readings know of the least known part" in study.findings[0]
    found = dict(study.warnings)
    assert "PART_MISSING" not in found
    assert found["GAPS"].startswith("gpu:0: ")


# ---- words ------------------------------------------------------------------------------------


def test_codes_and_their_words():
    assert reason_text("NO_SUCH_CODE") == "NO_SUCH_CODE"
    assert flag_text("NO_SUCH_CODE") == ""
    assert flag_text("SHORT").startswith("A window holds")
    for code in ("PART_MISSING", "SENSOR_ERROR", "NOT_IDLE", "METER_LOST"):
        assert "gpu:7" in warning_text(code, "gpu:7")
    with pytest.raises(ValueError, match="NO_SUCH_CODE"):
        warning_text("NO_SUCH_CODE", "")
    assert absence_text("nvml", "no driver", "") == "nvml: no driver."
    assert absence_text("nvml", "no driver", "install it") == absence_text(
        "nvml", "no driver", "install it."
    )
    assert absence_text("nvml", "no driver", "install it") == "nvml: no driver. Remedy: install it."


# ---- the baseline -----------------------------------------------------------------------------


def test_idle_power_as_a_table(plain, tmp_path):
    names = {
        "gpu:0": (70.0, 69.0, 75.0),
        "core:0": (5.0, 4.0, 6.0),
        "cpu:0": (40.0, 39.0, 41.0),
        "node": (200.0, 190.0, 210.0),
    }
    idle = Idle(
        "h",
        "2026-11-21T00:00:00.000Z",
        30.0,
        {},
        False,
        {name: Baseline(*w) for name, w in names.items()},
    )
    study = baseline_report.study_of(LearnedIdle(plain, idle, tmp_path / "h.json", []))
    assert [
        (row["domain"], row["watts"], row["low"], row["high"]) for row in study.tables[0].rows
    ] == [(n, *w) for n, w in names.items()]
    assert (study.tables[0].rows[0]["source"], study.tables[0].rows[0]["driver"]) == (
        "gpu:0's",
        "590",
    )
    assert study.findings == ["110 W in 2 metered parts that add up."]
    assert study.about[0].startswith("Kept for h, taken 2026-11-21T00:00:00.000Z.")
    assert str(tmp_path) not in " ".join(study.about)
    assert study.warnings == []
    busy = baseline_report.study_of(
        LearnedIdle(plain, idle._replace(domains={}), None, ["gpu:0 at 50 %"])
    )
    assert list(busy.warnings) == [("NOT_IDLE", warning_text("NOT_IDLE", "gpu:0 at 50 %"))]
    assert busy.findings == []
    assert busy.about[0].startswith("Not kept")
