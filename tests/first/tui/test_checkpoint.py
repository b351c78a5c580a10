"""One checkpoint: its figures are rows of `ckptcost report` and `ckptcost compare`, and what is not
known says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_runs import WALL_NS, Real
from told_meters import Told, at, energy, recorded, said

from ckptcost.first.core.channels import Mark
from ckptcost.first.errors import CkptcostError, UnknownName
from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.jobs.recording import record
from ckptcost.first.meters import simulated
from ckptcost.first.meters.simulated_machine import MachinePlan, marks
from ckptcost.first.report.study import Study
from ckptcost.first.runs.clocks import S, VirtualClock
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.screens import checkpoint, runs_entries
from ckptcost.first.tui.screens.checkpoint import TABLES, phases_of, stats_of, study_beside
from ckptcost.first.tui.screens.recorded_run import RecordedRun, read_run
from ckptcost.first.tui.screens.runs_entries import source_at
from ckptcost.first.tui.study_grids import paragraphs

DESK = Desk(base="small-8b")


def kept(folder: Path, plan: MachinePlan, for_s: float) -> Path:
    seen = simulated.find(plan, origin_ns=0)
    record(
        Instruments(seen.meters, seen.absences, VirtualClock(0), list(marks(plan, 0.0, for_s))),
        for_s,
        folder,
    )
    return folder


def read_at(path) -> RecordedRun:
    return read_run(source_at(str(path)))


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> Path:
    """Two saves of a machine with two cards."""
    return kept(
        tmp_path_factory.mktemp("two") / "run",
        MachinePlan(gpus=2, disks=2, first_s=12.0, interval_s=20.0),
        45.0,
    )


@pytest.fixture(scope="module")
def one(tmp_path_factory) -> Path:
    """One asynchronous save."""
    plan = MachinePlan(gpus=2, disks=1, first_s=12.0, interval_s=200.0, asynchronous=True)
    return kept(tmp_path_factory.mktemp("one") / "run", plan, 40.0)


@pytest.fixture(scope="module")
def recording(two) -> RecordedRun:
    return read_at(two)


def told(folder: Path, marks_: list[Mark], meter=None) -> Study:
    """What is said of a save whose marks are given, on a machine with one card."""
    meter = meter or {energy("gpu:0", tick_s=0.1): at(300.0, 0.1)}
    recorded(Told("told", meter), marks=marks_, directory=folder)
    return study_beside(read_at(folder), 0, DESK)


def rows(study: Study, table: str) -> list[dict]:
    return next((list(each.rows) for each in study.tables if each.id == table), [])


def stats(study: Study) -> dict:
    bill = next((each for each in study.tables if each.id == "bill"), None)
    return {stat.label: stat for stat in stats_of(rows(study, "windows")[0], bill)}


def texts(study: Study) -> str:
    return "\n".join(text for text, _ in paragraphs(study))


def document(cli, *words: str) -> dict:
    ran = cli(*words, "-f", "json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)["tables"]


def alike(mine: dict, theirs: dict) -> None:
    for name in mine.keys() & theirs.keys() - {"why"}:
        expected = theirs[name]
        assert mine[name] == (
            pytest.approx(expected, rel=1e-9) if isinstance(expected, float) else expected
        ), name


def test_its_rows_are_those_of_the_report(cli, two, recording):
    study = study_beside(recording, 1, DESK)
    reported = document(cli, "report", str(two))
    for table in ("windows", "energies", "phases", "storage_windows"):
        theirs = [row for row in reported[table]["rows"] if row["window"] == "save-2"]
        assert theirs
        for mine, row in zip(rows(study, table), theirs, strict=True):
            alike(mine, row)
    assert {table.id for table in study.tables} == {*TABLES, "windows"}


def test_of_a_run_with_one_save_the_comparison_is_the_commands(cli, one, tmp_path):
    several = kept(tmp_path / "sync", MachinePlan(gpus=2, disks=1, first_s=8.0), 25.0)
    for run in (one, several):
        study = study_beside(read_at(run), 0, DESK)
        compared = document(cli, "compare", str(run), "-s", "small-8b")
        for table in ("lines", "bill"):
            for mine, row in zip(rows(study, table), compared[table]["rows"], strict=True):
                alike(mine, row)
        cost = compared["bill"]["rows"][-1]["measured_cost"]
        assert (stats(study)["cost"].value == "-") == (cost is None)


def test_the_chosen_tier_is_held_against(one):
    """The scenario's own tier is the first of two; the other one is chosen."""
    desk = Desk(base="gpt4-scale-2tb", chosen="ddn-exascaler-40")
    assert desk.tiers_shown()[0] != desk.tier_chosen() == "ddn-exascaler-40"
    there, own = (
        study_beside(read_at(one), 0, each) for each in (desk, Desk(base="gpt4-scale-2tb"))
    )
    assert "tier ddn-exascaler-40" in texts(there)
    assert rows(there, "lines") != rows(own, "lines")


def test_another_price_is_another_cost_and_no_other_energy(recording):
    first = stats(study_beside(recording, 0, DESK))
    dear = stats(study_beside(recording, 0, DESK.edited("cluster.gpu_price", "100 USD/GPU-h")))
    assert dear["cost"].value != first["cost"].value
    assert dear["energy at node"] == first["energy at node"]


def test_a_save_that_drains_has_both_bars_one_after_the_other(one):
    run = read_at(one)
    study = study_beside(run, 0, DESK)
    table = next(each for each in study.tables if each.id == "phases")
    bars = phases_of(table, rows(study, "windows")[0]["begin"]).rows
    assert [bar.label for bar in bars[:2]] == ["stall", "drain"]
    assert bars[0].parts[0].begin == 0.0
    assert bars[0].parts[0].end == pytest.approx(bars[1].parts[0].begin)
    assert bars[0].text.endswith(" J")
    assert [band.kind for band in run.near(0).bands] == ["save", "drain"]


def test_power_falls_inside_the_band(recording):
    shown = recording.near(1)
    assert [chart.title for chart in shown.charts] == [
        "GPUs, W",
        "CPU and memory, W",
        "storage, bytes written, 2 disks",
    ]
    curve = shown.charts[0].curves[0]
    band = next(band for band in shown.bands if band.begin == 0.0)
    inside = [
        y for x, y in zip(curve.xs, curve.ys, strict=True) if band.begin + 0.5 < x < band.end - 0.5
    ]
    outside = [y for x, y in zip(curve.xs, curve.ys, strict=True) if x < band.begin - 0.5]
    assert max(inside) < 0.8 * (sum(outside) / len(outside))
    low, high = shown.x_range
    assert low < 0 < band.end < high
    assert [rule.label for rule in shown.rules] == ["safe"]


def test_by_name_by_number_and_not_at_all(recording):
    assert recording.names == ["save-1", "save-2"]
    assert recording.place("save-2") == recording.place("2") == 1
    for unknown in ("save-9", "0"):
        with pytest.raises(UnknownName, match=unknown):
            recording.place(unknown)


def test_without_a_safe_instant_nothing_is_invented(tmp_path):
    study = told(tmp_path / "run", said("begin 5, returned 7"))
    shown = stats(study)
    unknown = ("safe after", "rate", "energy at node")
    assert [shown[label].value for label in unknown] == ["-", "-", "-"]
    assert shown["stall"].value == "2 s"
    assert "of 1 it is not known when they were safe: no mark says so." in texts(study)


def test_without_a_begin_there_are_neither_phases_nor_a_trace(tmp_path):
    study = told(tmp_path / "run", said("returned 7, durable 9"))
    assert rows(study, "phases") == []
    assert read_at(tmp_path / "run").near(0).charts == ()
    assert "no mark says when it began" in texts(study)


def test_a_meter_that_stands_still_has_no_trace_and_says_why(tmp_path):
    still = {energy("psys:0", tick_s=0.1): lambda t_s: 7.0}
    study = told(tmp_path / "run", said("begin 5, returned 7, durable 8"), still)
    assert rows(study, "energies")[0]["joules"] is None
    assert rows(study, "energies")[0]["why"] == "the counter does not move"
    assert not read_at(tmp_path / "run").near(0).charts


def test_a_save_that_failed_says_so(tmp_path):
    failed = Mark(8.0, "end", "w", detail={"error": "no space left"})
    study = told(tmp_path / "run", [*said("begin 5, returned 7"), failed])
    assert "1 failed: no space left" in study.findings[0]
    assert stats(study)["safe after"] == ("safe after", "-", "failed", "bad")
    assert rows(study, "lines") == []
    assert study.warnings[-1][0] == "NO_MODEL"
    assert stats(study)["cost"] == ("cost", "-", "", "")


def test_a_load_is_read_not_written(tmp_path):
    load = [
        Mark(5.0, "begin", "resume", detail={"of": "load", "bytes": 2e9}),
        Mark(9.0, "returned", "resume"),
    ]
    study = told(tmp_path / "run", load)
    assert study.title == "resume, load 1 of 1"
    assert {band.kind for band in read_at(tmp_path / "run").near(0).bands} == {"load"}


def test_a_wrong_scenario_costs_the_comparison_alone(recording):
    study = study_beside(recording, 0, DESK.edited("cluster.gpus", "many"))
    assert rows(study, "lines") == []
    assert stats(study)["energy at node"].value != "-"
    assert "cluster.gpus" in dict(study.warnings)["NO_MODEL"]


def test_no_such_run_is_said(tmp_path):
    with pytest.raises(CkptcostError):
        read_at(tmp_path / "none")


@pytest.fixture(scope="module")
def drained(tmp_path_factory) -> RecordedRun:
    """Two ranks that begin at 5 and 6 s, go on at 7 and 8 s and are safe at 10 and 11 s; one card
    that takes 100 W."""
    folder = tmp_path_factory.mktemp("drained") / "run"
    recorder = Recorder(
        [Real(1)], FileSink(folder), VirtualClock(0, WALL_NS), run_id="a" * 32, host="node1"
    )
    recorder.begin()
    told = {
        5: ("begin", 0),
        6: ("begin", 1),
        7: ("returned", 0),
        8: ("returned", 1),
        10: ("durable", 0),
        11: ("durable", 1),
    }
    for second in range(1, 31):
        recorder.run_until(second * S)
        if second in told:
            name, rank = told[second]
            recorder.mark(name, "step 1", by="api", rank=rank)
    recorder.stop()
    return read_run(runs_entries.source_at(str(folder)))


def test_joules_of_a_save_and_of_its_stall_have_a_column_each(drained):
    tables = {each.id: each for each in checkpoint.study_beside(drained, 0, Desk()).tables}
    (card,) = tables["energies"].rows
    assert (card["joules"], card["stall"]) == pytest.approx((600.0, 300.0), rel=1e-3)


def test_its_picture_counts_from_its_begin(drained):
    traces = drained.near(0)
    assert [(rule.at, rule.label) for rule in traces.rules] == [(6.0, "safe")]
    assert [(band.begin, band.end, band.kind) for band in traces.bands] == [
        (0.0, 3.0, "save"),
        (3.0, 6.0, "drain"),
    ]
    tables = {each.id: each for each in checkpoint.study_beside(drained, 0, Desk()).tables}
    bars = checkpoint.phases_of(tables["phases"], tables["windows"].rows[0]["begin"])
    assert [(bar.label, bar.parts[0].begin, bar.parts[0].end) for bar in bars.rows] == [
        ("stall", 0.0, 3.0),
        ("drain", 3.0, 6.0),
    ]
    (chart,) = traces.charts
    assert chart.curves[0].xs[0] == pytest.approx(-2.5, abs=1.0)
