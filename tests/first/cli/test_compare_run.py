"""`ckptcost compare RUN SCENARIO`: a recorded run beside a scenario, in every form, and what is
refused."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from pathlib import Path

import jsonschema
import pytest
from whole_json import whole

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads(
    next((ROOT / "ckptcost" / "first" / "report").glob("report-2.*.schema.json")).read_text("utf-8")
)
SETTINGS = (
    "--set",
    "checkpoint.size=112 GB",
    "--set",
    "tier.node_write=29.867 GB/s",
    "--set",
    "tier.setup=0.35 s",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two saves of 7.85 s and 112 GB on a simulated node."""
    from ckptcost import measure

    kept = tmp_path_factory.mktemp("secret-folder") / "run-1"
    measure("130 s", meters="simulated", record=kept)
    return kept


def document(ran) -> dict:
    assert (ran.code, ran.err) == (0, "")
    return whole(ran.out)


def test_the_sentence_names_the_line(cli, folder):
    done = cli("compare", str(folder), "small-8b", *SETTINGS)
    assert (done.code, done.err) == (0, "")
    said = " ".join(done.out.split())
    assert "A save, in the mean of 2, takes 1.9x as long as modelled" in said
    assert "s are the write rate (14.9 GB/s measured, 29.9 GB/s modelled)" in said
    assert "(UNCOMPARABLE)" in said


@pytest.mark.parametrize("form", ["text", "md", "csv", "json"])
def test_every_form(cli, folder, form):
    done = cli("compare", str(folder), "small-8b", *SETTINGS, "-f", form)
    assert (done.code, done.err) == (0, "")
    assert "nan" not in done.out.lower().replace("finan", "").replace("maintenan", "")
    assert "secret-folder" not in done.out
    assert "SIMULATED" in done.out or "simulated" in done.out
    if form == "text":
        assert max(map(len, done.out.splitlines())) <= 80
        assert all(line == line.rstrip() for line in done.out.splitlines())


def test_the_document_keeps_its_schema_and_adds_up(cli, folder):
    found = document(cli("compare", str(folder), "small-8b", *SETTINGS, "-f", "json"))
    jsonschema.validate(found, SCHEMA)
    assert (found["kind"], found["simulated"]) == ("gap", True)
    assert found["tool"]["command"][:4] == ["ckptcost", "compare", "run-1", "small-8b"]
    assert (found["question"]["gpus"], found["question"]["gpus_from"]) == (8.0, "METERED")
    tables = found["tables"]
    lines = {row["quantity"]: row for row in tables["lines"]["rows"]}
    for row in lines.values():
        if row["difference"] is not None:
            assert row["difference"] == pytest.approx(
                row["measured"] - row["modelled"], rel=1e-6, abs=1e-6
            )
            assert row["why"] is None
            assert row["measured_low"] <= row["measured"] <= row["measured_high"]
            assert row["modelled_low"] <= row["modelled"] <= row["modelled_high"]
        else:
            assert row["why"]
    parts = {row["id"]: row["seconds"] for row in tables["parts_save"]["rows"]}
    whole = parts.pop("whole")
    assert sum(parts.values()) == pytest.approx(whole, abs=1e-6)
    assert whole == pytest.approx(lines["time"]["difference"], abs=1e-6)
    assert {row["quantity"] for row in tables["not_compared"]["rows"]} == {
        name for name, row in lines.items() if row["why"]
    }
    assert all(row["why"] != row["code"] for row in tables["not_compared"]["rows"])


def test_measured_figures_are_those_of_measure(cli, folder):
    """Joules at the facility are the node's own times PUE."""
    gap = document(
        cli("compare", str(folder), "small-8b", *SETTINGS, "--set", "site.pue=1.5", "-f", "json")
    )
    own = document(cli("measure", "--meters", f"replay:{folder}", "-f", "json"))
    windows = own["tables"]["windows"]["rows"]
    lines = {row["quantity"]: row for row in gap["tables"]["lines"]["rows"]}
    assert lines["stall"]["measured"] == pytest.approx(sum(row["stall"] for row in windows) / 2)
    assert lines["gpu_s"]["measured"] == pytest.approx(sum(row["gpu_s"] for row in windows) / 2)
    energies = own["tables"]["energies"]["rows"]
    cards = sum(row["stall"] for row in energies if row["domain"].startswith("gpu:"))
    node = sum(row["stall"] for row in energies if row["domain"] == "node")
    assert lines["gpu_wait"]["measured"] == pytest.approx(1.5 * cards / 2)
    assert lines["host_wait"]["measured"] == pytest.approx(1.5 * (node - cards) / 2)
    bill = {row["line"]: row for row in gap["tables"]["bill"]["rows"]}
    assert bill["gpu_wait"]["measured_energy"] == pytest.approx(
        lines["gpu_wait"]["measured"] / 3.6e6
    )
    assert bill["total"]["measured_gpu_s"] == pytest.approx(lines["gpu_s"]["measured"])


def test_the_tidy_table_is_the_csv(cli, folder):
    rows = list(
        csv.DictReader(io.StringIO(cli("compare", str(folder), "small-8b", "-f", "csv").out))
    )
    assert list(rows[0])[:5] == ["of", "label", "quantity", "unit", "measured"]
    bill = cli("compare", str(folder), "small-8b", "-f", "csv", "--table", "bill")
    assert bill.out.splitlines()[0].startswith(
        "of,label,line,boundary,measured_energy_kwh,modelled_energy_kwh"
    )


def test_three_ways_to_name_the_run(cli, folder):
    words = ("small-8b", *SETTINGS, "-f", "csv")
    plain = cli("compare", str(folder), *words)
    assert plain.code == 0
    file = next(folder.glob("*.jsonl"))
    assert cli("compare", str(file), *words).out == plain.out
    assert cli("compare", f"run:{folder}", *words).out == plain.out
    assert (
        cli("compare", str(folder) + os.sep, "-s", "small-8b", *SETTINGS, "-f", "csv").out
        == plain.out
    )


def test_an_id_is_looked_up(cli, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path))
    shutil.copytree(folder, tmp_path / folder.name)
    assert (
        cli("compare", "run:run-1", "small-8b", "-f", "csv").out
        == cli("compare", str(folder), "small-8b", "-f", "csv").out
    )


def test_a_folder_named_like_a_preset_is_no_run_without_readings(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "opt-175b").mkdir()
    done = cli("compare", "opt-175b", "bloom-176b", "-f", "json")
    assert document(done)["kind"] == "comparison"


def test_a_scenario_file_is_hashed_and_named_without_its_folder(cli, folder, tmp_path):
    file = tmp_path / "hidden" / "mine.toml"
    file.parent.mkdir()
    file.write_text('extends = "small-8b"\n[checkpoint]\nsize = "112 GB"\n', "utf-8")
    done = cli("compare", str(folder), str(file), "-f", "json")
    assert "hidden" not in done.out
    assert [each["path"] for each in document(done)["reproducibility"]["inputs"]] == ["mine.toml"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["RUN"], "held against one scenario, and none is named"),
        (["RUN", "opt-175b", "small-8b"], "and 2 are named"),
        (["RUN", "opt-175b", "-s", "small-8b"], "and 2 are named"),
        (["RUN", "no-such"], "no-such"),
        (["RUN", "opt-175b", "--with", "mode=async"], "--with"),
        (["RUN", "opt-175b", "--require", "goodput>=0.5"], "--require"),
        (["RUN", "opt-175b", "--budget", "kwh<=1 MWh"], "--budget"),
        (["RUN", "opt-175b", "--set", "cluster.gpus=3"], "cluster.gpus"),
        (["RUN", "RUN"], "the run comes first"),
        (["opt-175b", "RUN"], "the run comes first"),
        (["gone.jsonl", "opt-175b"], "no such run"),
        (["run:", "opt-175b"], "names no run"),
        (["RUN", "opt-175b", "--table", "x"], "--table"),
        (["RUN", "opt-175b", "-f", "csv", "--table", "x"], "no table named"),
        (["-s", "opt-175b", "RUN", "--set", "nonsense"], "not path=value"),
    ],
)
def test_wrong_input_is_one_line_and_2(cli, folder, words, says):
    done = cli("compare", *(str(folder) if word == "RUN" else word for word in words))
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert done.err.count("\n") == 1


def test_a_run_without_readings_or_checkpoints(cli, tmp_path):
    from ckptcost import measure

    measure("5 s", meters="simulated", record=tmp_path / "quiet")
    done = cli("compare", str(tmp_path / "quiet"), "small-8b")
    assert done.code == 2
    assert "holds no checkpoint" in done.err
    assert str(tmp_path) not in done.err
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "x.jsonl").write_text("{}\n")
    assert cli("compare", str(tmp_path / "bad"), "small-8b").code == 2


def test_a_recording_of_a_real_disk(cli):
    """Nothing metered power there: seconds are compared, joules are dashes."""
    done = document(
        cli("compare", str(ROOT / "data" / "traces" / "ext4-fsync.jsonl"), "small-8b", "-f", "json")
    )
    lines = {row["quantity"]: row for row in done["tables"]["lines"]["rows"]}
    assert lines["time"]["ratio"] is not None
    assert lines["gpu_wait"]["measured"] is None
    assert {"GPUS_ASSUMED", "UNCOMPARABLE"} <= {warning["code"] for warning in done["warnings"]}


def test_the_same_bytes_twice(cli, folder):
    words = ("compare", str(folder), "small-8b", "-f", "json")
    assert cli(*words).out == cli(*words).out
