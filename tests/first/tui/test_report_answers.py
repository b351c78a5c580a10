"""A previewed report is what its command prints, byte for byte, and what is written."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import replace

import pytest
from small_runs import recorded

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.errors import CkptcostError
from ckptcost.first.present.grid import sorted_by
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.screens import report
from ckptcost.first.tui.study_grids import tables_of

DESK = Desk(Catalog())
EDITED = DESK.edited("cluster.gpus", "512").edited("policy.interval", "30 min")
DESKS = {
    "plain": DESK,
    "edited": EDITED,
    "tiers": replace(
        EDITED,
        tiers=("nas-hdd", "generic-pfs", "ddn-exascaler-40"),
        baseline="generic-pfs",
        chosen="generic-pfs",
    ),
    "metric": replace(DESK, metric="time", chosen="generic-pfs"),
    "other": Desk(Catalog(), base="small-8b").edited("cluster.gpus", "64"),
}


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "kept"))
    return tmp_path / "kept"


def _offered(desk):
    return [row.key for row in report.subjects(desk)]


def _printed(cli, command):
    words = shlex.split(command)
    assert words[0] == "ckptcost"
    done = cli(*words[1:])
    assert done.code == 0, done.err
    return done.out


@pytest.mark.parametrize(
    ("which", "form"),
    [
        ("plain", "md"),
        ("edited", "txt"),
        ("edited", "csv"),
        ("tiers", "json"),
        ("metric", "txt"),
        ("other", "json"),
    ],
)
def test_the_command_prints_the_very_same_text(cli, which, form):
    desk = DESKS[which]
    for subject in _offered(desk):
        found = report.answered(desk, subject)
        seen = report.page(found, desk, form)
        assert seen.text == _printed(cli, seen.command), subject
        assert "".join(f"{line}\n" for line in seen.lines) == seen.text.replace("\r\n", "\n")


def test_each_table_of_a_csv(cli):
    found = report.answered(EDITED, "changes")
    assert len(found.tables) > 2
    for table in found.tables:
        seen = report.page(found, EDITED, "csv", table)
        assert seen.command.endswith(f"-f csv --table {table}")
        assert seen.text == _printed(cli, seen.command)


def test_a_scenario_file_is_named_without_its_folder_in_a_document(cli, tmp_path):
    (tmp_path / "job.toml").write_text(
        'extends = "gpt4-scale-2tb"\nname = "job"\n[cluster]\ngpus = 256\n'
    )
    desk = Desk(DESK.catalog, base=str(tmp_path / "job.toml"))
    for subject in ("model", "sensitivity"):
        seen = report.page(report.answered(desk, subject), desk, "json")
        assert seen.text == _printed(cli, seen.command)
        assert str(tmp_path) in seen.command
        assert str(tmp_path) not in seen.text
    assert report.file_name(desk, "model", "json") == "job-model.json"


@pytest.mark.parametrize("form", ["txt", "md", "csv", "json"])
def test_a_recorded_run(cli, runs, form):
    recorded(runs / "one", seconds=20)
    assert [row.key for row in report.runs()] == ["run:one"]
    seen = report.page(report.answered(DESK, "run:one"), DESK, form)
    assert shlex.split(seen.command)[:3] == ["ckptcost", "report", "one"]
    assert seen.text == _printed(cli, seen.command)
    assert report.file_name(DESK, "run:one", "md") == "run-one.md"


def test_runs_are_listed_latest_first_and_two_of_one_name_by_their_id(runs):
    recorded(runs / "one", seconds=20)
    assert report.runs()[-1].key == "run:one"
    assert report.runs(runs / "none") == []


def test_what_is_offered_depends_on_the_desk():
    usual = ["model", "optimize", "sensitivity"]
    assert _offered(DESK) == [*usual, "tiers"]
    assert _offered(EDITED) == [*usual, "tiers", "changes"]
    assert _offered(Desk(DESK.catalog, base="small-8b")) == usual
    assert _offered(DESK.edited("cluster.gpus", "many")) == [*usual, "changes"]


def _tiers_of(words):
    return [word.removeprefix("tier.id=") for word in words if word.startswith("tier.id=")]


@pytest.mark.parametrize(
    ("baseline", "order"),
    [
        ("generic-pfs", ["generic-pfs", "ddn-exascaler-20", "ddn-exascaler-40"]),
        ("", ["ddn-exascaler-20", "generic-pfs", "ddn-exascaler-40"]),
        ("nas-hdd", ["ddn-exascaler-20", "generic-pfs", "ddn-exascaler-40"]),
    ],
)
def test_the_tiers_are_held_against_the_baseline_or_the_first_and_never_one_that_was_removed(
    cli, baseline, order
):
    desk = replace(
        DESK, tiers=("ddn-exascaler-20", "generic-pfs", "ddn-exascaler-40"), baseline=baseline
    )
    found = report.answered(desk, "tiers")
    assert _tiers_of(found.words) == order
    assert found.note == ""
    seen = report.page(found, desk, "txt")
    assert seen.text == _printed(cli, seen.command)
    assert "nas-hdd" not in seen.text


def test_a_comparison_of_some_of_the_tiers_says_which_it_leaves_out():
    many = (
        "nas-hdd",
        "generic-pfs",
        "ddn-exascaler-20",
        "ddn-exascaler-40",
        "flash-shared",
        "micron-9550",
        "local-nvme",
        "node-ram",
    )
    found = report.answered(replace(DESK, tiers=many), "tiers")
    assert found.note == "6 of 8 tiers: `compare` takes 6; left out: local-nvme, node-ram"
    assert len(found.study.about) > 0
    assert report.answered(replace(DESK, tiers=many[:6]), "tiers").note == ""


def test_a_tier_without_a_name_is_left_out_unless_it_is_the_reference(tmp_path):
    file = tmp_path / "bare.toml"
    file.write_text(
        '[checkpoint]\nsize = "2 TB"\n[cluster]\nid = "h100-1024"\n[run]\nwork = "30'
        ' days"\n[tier]\nwrite = "20 GB/s"\nsurvives = "site"\n[policy]\ninterval = "1 h"\n'
    )
    desk = Desk(DESK.catalog, base=str(file), tiers=("", "nas-hdd", "generic-pfs"))
    assert report.answered(desk, "tiers").note == ""
    held = report.answered(replace(desk, baseline="nas-hdd"), "tiers")
    assert held.note == "2 of 3 tiers: `compare` takes 6 that have a name; left out: tier"


def test_a_change_of_the_tier_alone_is_a_change():
    assert "changes" in _offered(DESK.edited("tier.id", "flash-shared"))
    assert "changes" not in _offered(
        replace(DESK.edited("tier.id", "flash-shared"), tiers=("nas-hdd", "generic-pfs"))
    )


def test_the_first_table_is_sorted_by_its_numbers():
    grid = tables_of(report.answered(DESK, "model").study)[0]
    labels = [head.label for head in grid.heads]
    for label in ("rate", "stall", "kWh", "USD", "claimed"):
        place = labels.index(label)
        orders = [
            row.order[place]
            for row in sorted_by(grid, grid.heads[place].id).rows
            if row.order[place] is not None
        ]
        assert all(isinstance(order, float) for order in orders)
        assert orders == sorted(orders)
        assert len(orders) >= 2
    rising = [row.key for row in sorted_by(grid, grid.heads[labels.index("stall")].id).rows]
    assert rising == ["ddn-exascaler-40", "ddn-exascaler-20", "generic-pfs", "nas-hdd"]


def test_a_wrong_scenario_is_one_sentence():
    for subject in (
        "model",
        "optimize",
        "sensitivity",
        "changes",
    ):
        with pytest.raises(CkptcostError, match=r"cluster\.gpus"):
            report.answered(DESK.edited("cluster.gpus", "many"), subject)


def test_the_state_changes_with_what_the_answer_depends_on(tmp_path):
    job = tmp_path / "job.toml"
    job.write_text('extends = "gpt4-scale-2tb"\n')
    desk = Desk(DESK.catalog, base=str(job))
    first = report.state_of(desk, "model")
    assert report.state_of(desk, "model") == first
    assert hash(first) == hash(report.state_of(desk, "model"))
    assert report.state_of(replace(desk, catalog=Catalog()), "model") != first
    os.utime(job, ns=(1, 1))
    others = {
        report.state_of(desk, "model"),
        report.state_of(desk, "optimize"),
        report.state_of(EDITED, "model"),
    }
    assert len({first, *others}) == 4


def test_names_follow_the_format():
    assert report.file_name(DESK, "model", "txt") == "gpt4-scale-2tb-model.txt"
    assert report.renamed("mine.md", "json") == "mine.json"
    assert report.renamed("mine.report", "json") == "mine.report"
    assert report.renamed("mine", "json") == "mine"


def test_what_will_happen_to_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.md").write_text("x")
    assert report.standing("there.md") == ("exists: will ask", "warn")
    assert report.standing("new.md") == ("new file", "muted")
    assert report.standing(str(tmp_path))[1] == "bad"
    assert report.standing("gone/new.md") == ("no folder gone", "bad")
    assert report.standing("  ")[1] == "bad"


def test_the_first_table_and_the_document_are_those_of_the_answer():
    of_model = report.answered(DESK, "model")
    grid = tables_of(of_model.study)[0]
    assert [row.key for row in grid.rows] == list(DESK.tiers_shown())
    document = json.loads(report.page(of_model, DESK, "json").text)
    assert (document["schema_name"], document["kind"]) == ("ckptcost.report", "model")
    told = document["tables"]["one_save"]["rows"]
    assert [row["tier"] for row in told] == [row.key for row in grid.rows]


def test_two_runs_of_one_folder_are_two_reports(tmp_path):
    for run_id in ("a" * 32, "b" * 32):
        recorded(tmp_path / "both", 6, run_id=run_id, saves=(2,))
    recorded(tmp_path / "alone", 6, run_id="c" * 32, saves=(2,))
    keys = {row.key for row in report.runs(tmp_path)}
    assert keys == {f"run:{'a' * 32}", f"run:{'b' * 32}", "run:alone"}
