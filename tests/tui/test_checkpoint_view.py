"""One checkpoint in detail: its numbers are those of `ckptcost report` and `ckptcost compare`, and
what is not known says why."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path

import pytest
from told_meters import Told, at, energy, recorded, said

from ckptcost.core.channels import Mark
from ckptcost.errors import CkptcostError, UnknownName
from ckptcost.jobs.instruments import Instruments
from ckptcost.jobs.recording import record
from ckptcost.meters import simulated
from ckptcost.meters.simulated_machine import Plan, marks
from ckptcost.present.amounts import duration, number
from ckptcost.runs.clocks import VirtualClock
from ckptcost.tui.desk import Desk
from ckptcost.tui.screens.checkpoint_view import Checkpoint, detail, neighbour
from ckptcost.tui.screens.checkpoint_words import finders
from ckptcost.tui.screens.recorded_run import RecordedRun, read_run
from ckptcost.tui.screens.runs_reading import source_at

DESK = Desk(base="small-8b")


def kept(folder: Path, plan: Plan, for_s: float) -> Path:
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
        Plan(gpus=2, disks=2, first_s=12.0, interval_s=20.0),
        45.0,
    )


@pytest.fixture(scope="module")
def one(tmp_path_factory) -> Path:
    """One asynchronous save."""
    plan = Plan(gpus=2, disks=1, first_s=12.0, interval_s=200.0, asynchronous=True)
    return kept(tmp_path_factory.mktemp("one") / "run", plan, 40.0)


@pytest.fixture(scope="module")
def recording(two) -> RecordedRun:
    return read_at(two)


def told(folder: Path, text: str, **more) -> Checkpoint:
    """What is said of a save whose marks are given, on a machine with one card."""
    recorded(
        Told("told", {energy("gpu:0", tick_s=0.1): at(300.0, 0.1)}),
        marks=said(text, **more),
        directory=folder,
    )
    return detail(read_at(folder), "1", DESK)


def stat(shown: Checkpoint, label: str):
    return next(each for each in shown.stats if each.label == label)


def cells(grid, key: str):
    return next(row.cells for row in grid.rows if row.key == key)


def document(cli, *words: str) -> dict:
    ran = cli(*words, "-f", "json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def rows(document_: dict, table: str) -> list[dict]:
    return document_["tables"][table]["rows"]


def test_the_numbers_are_those_of_the_report(cli, two, recording):
    shown = detail(recording, "save-2", DESK)
    reported = document(cli, "report", str(two))
    window = next(row for row in rows(reported, "windows") if row["window"] == "save-2")
    assert stat(shown, "safe after").value == duration(window["length"])
    assert stat(shown, "stall").value == duration(window["stall"])
    assert stat(shown, "energy at node").value == f"{number(window['joules'])} J"
    assert cells(shown.energy, "parts together")[1] == number(window["joules"])
    phases = [row for row in rows(reported, "phases") if row["window"] == "save-2"]
    assert [bar.label for bar in shown.phases.rows] == [row["phase"] for row in phases]
    for bar, row in zip(shown.phases.rows, phases, strict=True):
        assert bar.text == f"{duration(row['length'])}, {number(row['joules'])} J"
        assert bar.parts[0].end - bar.parts[0].begin == pytest.approx(row["length"])


def test_domains_add_up_to_what_the_report_says_of_each(cli, two, recording):
    each = [
        row
        for row in rows(document(cli, "report", str(two)), "energies")
        if row["window"] == "save-1"
    ]
    shown = detail(recording, "save-1", DESK)
    cards = sum(row["joules"] for row in each if row["domain"].startswith("gpu:"))
    assert cells(shown.energy, "GPU, 2 meters")[1] == number(cards)
    apart = detail(recording, "save-1", DESK, every_domain=True)
    assert [row.cells[1] for row in apart.energy.rows if row.key.startswith("gpu:")] == [
        number(row["joules"]) for row in each if row["domain"].startswith("gpu:")
    ]
    assert cells(shown.energy, "storage") == ("storage", "-", "-", "-", "-", "no meter of it")
    assert cells(shown.energy, "node, contains the parts")[5] == "simulated BMC"


def test_of_a_run_with_one_save_the_comparison_is_the_command_s(cli, one):
    compared = document(cli, "compare", str(one), "-s", "small-8b")
    shown = detail(read_at(one), "1", DESK)
    lines = rows(compared, "lines")
    assert [row.key for row in shown.modelled.rows] == [row["quantity"] for row in lines]
    for row, line in zip(shown.modelled.rows, lines, strict=True):
        for mine, theirs in zip(row.order[1:3], (line["measured"], line["modelled"]), strict=True):
            assert mine == (None if theirs is None else pytest.approx(theirs, rel=1e-9)), line[
                "quantity"
            ]
        assert (row.tone == "muted") == bool(line["why"])
    assert compared["findings"][0] in [text for text, _ in shown.notes]


def test_the_bill_is_the_command_s_or_unknown_as_there(cli, tmp_path):
    for name, plan in (
        ("sync", Plan(gpus=2, disks=1, first_s=8.0)),
        ("async", Plan(gpus=2, disks=1, first_s=8.0, asynchronous=True)),
    ):
        run = kept(tmp_path / name, plan, 25.0)
        together = next(
            row
            for row in rows(document(cli, "compare", str(run), "-s", "small-8b"), "bill")
            if row["line"] == "total"
        )
        shown = detail(read_at(run), "1", DESK)
        for label, column, unit in (
            ("cost", "measured_cost", "USD"),
            ("CO2e", "measured_location", "kg"),
        ):
            value = together[column]
            assert stat(shown, label).value == (
                "-" if value is None else f"{number(value)} {unit}"
            ), (name, label)
    assert together["measured_cost"] is None


def test_the_chosen_tier_is_held_against_and_the_command_says_so(cli, one):
    """The scenario's own tier is the first of two; the other one is chosen."""
    desk = Desk(base="gpt4-scale-2tb", chosen="ddn-exascaler-40")
    assert desk.tiers_shown()[0] != desk.tier_chosen() == "ddn-exascaler-40"
    shown = detail(read_at(one), "1", desk)
    own = detail(read_at(one), "1", Desk(base="gpt4-scale-2tb"))
    assert cells(shown.modelled, "time")[2] != cells(own.modelled, "time")[2]
    assert shown.modelled.note == "gpt4-scale-2tb on ddn-exascaler-40, at the facility"
    for each in (shown, own):
        report, compare = (shlex.split(command) for command in each.command.split(" && "))
        assert report[1:] == ["report", str(one)]
        for row, line in zip(
            each.modelled.rows, rows(document(cli, *compare[1:]), "lines"), strict=True
        ):
            assert row.order[2] == (
                None if line["modelled"] is None else pytest.approx(line["modelled"], rel=1e-9)
            ), line["quantity"]


def test_each_tile_says_what_it_covers(cli, one, two):
    """Of a save that drains more joules are metered than its stall costs: the tiles are of
    different things, and say of which."""
    shown = detail(read_at(one), "1", DESK)
    together = next(
        row
        for row in rows(document(cli, *shlex.split(shown.command.split(" && ")[1])[1:]), "bill")
        if row["line"] == "total"
    )
    joules = together["measured_energy"] * 3.6e6
    assert stat(shown, "energy at node").note == "metered until safe"
    assert stat(shown, "cost").note == "stall + drain, facility"
    assert stat(shown, "CO2e").note == f"of {number(joules)} J, PUE 1.15"
    told = [text for text, _ in shown.notes if text.startswith("Energy is of the metered parts")]
    assert len(told) == 1
    assert stat(shown, "energy at node").value in told[0]
    assert told[0].endswith(f"at the facility, PUE 1.15: {number(joules)} J.")
    assert "training slowed by a drain" in told[0]
    assert stat(detail(read_at(two), "1", DESK), "cost").note == "stall, facility"


def test_without_a_model_only_the_report_is_copied(recording):
    broken = detail(recording, "1", DESK.edited("cluster.gpus", "many"))
    assert broken.command == recording.command
    assert [stat(broken, label).note for label in ("cost", "CO2e")] == ["", ""]


def test_prices_are_said_and_another_scenario_has_others(recording):
    first = detail(recording, "1", DESK)
    prices = [text for text, _ in first.notes if text.startswith("Prices of small-8b: ")]
    assert prices
    assert "USD/GPU-h" in prices[0]
    assert "PUE 1.15" in prices[0]
    dear = detail(recording, "1", DESK.edited("cluster.gpu_price", "100 USD/GPU-h"))
    assert any("100 USD/GPU-h" in text for text, _ in dear.notes)
    assert stat(dear, "cost").value != stat(first, "cost").value
    assert stat(dear, "energy at node") == stat(first, "energy at node")


def test_a_save_that_drains_has_both_bars_one_after_the_other(one):
    shown = detail(read_at(one), "save-1", DESK)
    stall, drain = shown.phases.rows[:2]
    assert (stall.label, drain.label) == ("stall", "drain")
    assert stall.parts[0].begin == 0.0
    assert stall.parts[0].end == drain.parts[0].begin
    kinds = [band.kind for band in shown.traces.bands]
    assert kinds == ["save", "drain"]


def test_power_falls_inside_the_band(recording):
    shown = detail(recording, "save-2", DESK)
    assert [chart.title for chart in shown.traces.charts] == [
        "GPU power, W",
        "CPU and memory power, W",
        "storage, bytes written",
    ]
    curve = shown.traces.charts[0].curves[0]
    band = next(band for band in shown.traces.bands if band.begin == 0.0)
    inside = [
        y for x, y in zip(curve.xs, curve.ys, strict=True) if band.begin + 0.5 < x < band.end - 0.5
    ]
    outside = [y for x, y in zip(curve.xs, curve.ys, strict=True) if x < band.begin - 0.5]
    assert max(inside) < 0.8 * (sum(outside) / len(outside))
    low, high = shown.traces.x_range
    assert low < 0 < band.end < high
    assert [rule.label for rule in shown.traces.rules] == ["safe"]


def test_instants_stand_in_the_order_of_time(recording):
    shown = detail(recording, "save-1", DESK)
    after = [row.order[1] for row in shown.instants.rows]
    assert after == sorted(after)
    assert shown.instants.rows[0].cells[:2] == ("begin", "0 s")
    assert {"snapshotted", "written", "synced", "committed", "returned", "durable"} <= {
        row.key for row in shown.instants.rows
    }


def test_by_name_by_number_and_not_at_all(recording):
    assert recording.names == ["save-1", "save-2"]
    assert recording.place("save-2") == recording.place("2") == 1
    with pytest.raises(UnknownName, match="save-9"):
        recording.place("save-9")
    with pytest.raises(UnknownName):
        recording.place("0")
    assert (
        neighbour(recording, "save-1", 1),
        neighbour(recording, "2", 1),
        neighbour(recording, "save-1", -1),
    ) == ("save-2", "", "")


def test_without_a_safe_instant_nothing_is_invented(tmp_path):
    shown = told(tmp_path / "run", "begin 5, returned 7")
    assert (
        stat(shown, "safe after").value,
        stat(shown, "rate").value,
        stat(shown, "energy at node").value,
    ) == ("-", "-", "-")
    assert stat(shown, "stall").value == "2 s"
    assert cells(shown.instants, "durable")[1:] == ("-", "-", "no mark says so")
    assert any(text == "When it was safe is not known: no mark says so." for text, _ in shown.notes)


def test_without_a_begin_there_are_neither_phases_nor_a_trace(tmp_path):
    shown = told(tmp_path / "run", "returned 7, durable 9")
    assert shown.phases.rows == ()
    assert shown.traces.charts == ()
    assert "not known" in shown.phases.empty
    assert any(text.startswith("No mark says when it began") for text, _ in shown.notes)


def test_a_meter_that_stands_still_has_no_trace_and_says_why(tmp_path):
    folder = tmp_path / "run"
    recorded(
        Told("told", {energy("psys:0", tick_s=0.1): lambda t_s: 7.0}),
        marks=said("begin 5, returned 7, durable 8"),
        directory=folder,
    )
    shown = detail(read_at(folder), "w", DESK)
    assert cells(shown.energy, "CPU")[1:] == ("-", "-", "-", "-", "the counter does not move")
    assert "CPU and memory power, W" not in [chart.title for chart in shown.traces.charts]
    assert ("Its joules are not known: the counter does not move.", "warn") in shown.notes


def test_a_save_that_failed_says_so_first(tmp_path):
    folder = tmp_path / "run"
    told_ = [*said("begin 5, returned 7"), Mark(8.0, "end", "w", detail={"error": "no space left"})]
    recorded(
        Told("told", {energy("gpu:0", tick_s=0.1): at(300.0, 0.1)}), marks=told_, directory=folder
    )
    shown = detail(read_at(folder), "w", DESK)
    assert shown.notes[0] == ("It failed: no space left.", "bad")
    assert stat(shown, "safe after") == ("safe after", "-", "failed", "bad")
    assert shown.modelled.rows == ()
    assert "Nothing to hold it against" in shown.modelled.empty
    assert stat(shown, "cost").value == "-"


def test_a_load_is_read_not_written(tmp_path):
    load = [
        Mark(5.0, "begin", "resume", detail={"of": "load", "bytes": 2e9}),
        Mark(9.0, "returned", "resume"),
    ]
    folder = tmp_path / "run"
    recorded(
        Told("told", {energy("gpu:0", tick_s=0.1): at(300.0, 0.1)}), marks=load, directory=folder
    )
    shown = detail(read_at(folder), "resume", DESK)
    assert shown.title == "resume, load 1 of 1"
    assert "durable" not in [row.key for row in shown.instants.rows]
    assert not any("safe is not known" in text for text, _ in shown.notes)
    assert {band.kind for band in shown.traces.bands} == {"load"}


def test_a_wrong_scenario_costs_the_comparison_alone(recording):
    shown = detail(recording, "1", DESK.edited("cluster.gpus", "many"))
    assert shown.modelled.rows == ()
    assert stat(shown, "energy at node").value != "-"
    assert any(text.startswith("No model beside it: ") for text, _ in shown.notes)


def test_no_such_run_is_said(tmp_path):
    with pytest.raises(CkptcostError):
        read_at(tmp_path / "none")


@pytest.mark.parametrize(
    ("by", "detail_", "words"),
    [
        ("api", {}, "the job's own marks"),
        ("watch", {}, "its files (watch)"),
        ("watch", {"how": "io"}, "what the process writes (I/O)"),
        ("hand", {}, "by hand"),
        ("", {}, "marks"),
    ],
)
def test_who_found_it(by, detail_, words):
    assert finders([Mark(1.0, "begin", "a", 0, by, detail_)]) == words


def test_no_number_is_nan_in_words(recording):
    shown = detail(recording, "2", DESK, every_domain=True)
    texts = [
        text
        for grid in (shown.instants, shown.energy, shown.modelled)
        for row in grid.rows
        for text in row.cells
    ]
    assert not any("nan" in text for text in texts)
    assert not any(math.isnan(x) for x in shown.traces.charts[0].curves[0].xs)
