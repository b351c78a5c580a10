"""`ckptcost export` and the documents of `ckptcost report`: every format from the command line, and
everything that can be wrong."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from whole_json import whole

from ckptcost.first.exports.formats import FORMATS

TRACE = str(Path(__file__).parents[3] / "data" / "traces" / "simulated-8gpu.jsonl")
HOURS = "time,gCO2e/kWh\n" + "".join(
    f"2026-{10 + (n // 24) // 31:02d}-{1 + (n // 24) % 31:02d}T{n % 24:02d}:00Z,{200 + n % 24}\n"
    for n in range(24 * 55)
)


@pytest.fixture
def report(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (
        cli(
            "model",
            "-s",
            "small-8b",
            "--tier",
            "nas-hdd",
            "--tier",
            "generic-pfs",
            "-f",
            "json",
            "-o",
            "report.json",
        ).code
        == 0
    )
    return "report.json"


def test_the_list_names_every_export_and_its_reader(cli):
    done = cli("export", "--list")
    assert done.code == 0
    for each in FORMATS.values():
        assert each.id in done.out
        assert each.title in done.out
    assert [line for line in done.out.splitlines() if len(line) > 80] == []


ONE_OF_TWO = (
    "ckptcost: {}: nas-hdd@1008 alone is exported, of 2 cases; --case names another, such as"
    " generic-pfs@1008\n"
)


def test_a_run_has_its_dates_and_takes_a_site(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = cli("export", TRACE, "--to", "statement", "--site", "usa", "--label", "team=infra")
    (s,) = whole(done.out)["statements"]
    assert (s["kind"], s["subject"]["site_id"], s["subject"]["team"]) == (
        "measured",
        "usa",
        "infra",
    )
    assert s["period_start"].endswith("Z")
    assert s["totals"]["emissions_location"]["value"] > 0
    assert s["totals"]["emissions_market"]["value"] is None
    assert cli("export", TRACE, "--to", "codecarbon", "--site", "usa").out.count("\n") > 2


def test_the_page_of_a_run_shows_its_power_and_checkpoints(cli):
    done = cli("report", TRACE, "-f", "html")
    assert done.code == 0
    assert "SIMULATED" in done.out
    assert done.out.count("<svg") >= 2


def test_no_secret_of_the_environment_gets_out(cli, report, monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2-hunter2")
    for name in FORMATS:
        cli("export", report, "--to", name, "--start", "2026-09-01", "-o", f"out-{name}")
    cli("report", report, "-f", "html", "-o", "page.html")
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"hunter2" not in path.read_bytes()
            assert str(tmp_path).encode() not in path.read_bytes()


def test_a_run_that_a_format_has_no_place_for_is_left_out_and_said(cli, tmp_path, monkeypatch):
    """The joules of one run are metered, those of the other are not."""
    monkeypatch.chdir(tmp_path)
    unmetered = str(Path(TRACE).with_name("ext4-fsync.jsonl"))
    priced = ("--site", "usa", "--set", "cluster.gpu_price=3 USD/GPU-h")
    for name, column in (("codecarbon", "run_id"), ("focus", "x_RunId")):
        done = cli("export", TRACE, unmetered, *priced, "--to", name)
        assert done.code == 0
        assert {row[column] for row in csv.DictReader(io.StringIO(done.out))} == {"simulated-8gpu"}
        assert "ckptcost: left out: the " in done.err
        assert "run ext4-fsync on anonymous is unknown" in done.err
        alone = cli("export", unmetered, *priced, "--to", name)
        assert (alone.code, "cannot leave open what is not known" in alone.err) == (2, True)


def test_a_run_of_which_nothing_is_known_is_left_out_and_said(cli):
    unmetered = str(Path(TRACE).with_name("ext4-fsync.jsonl"))
    done = cli("export", TRACE, unmetered, "--to", "github-benchmark")
    assert done.code == 0
    assert {"simulated-8gpu" in entry["extra"] for entry in json.loads(done.out)} == {True}
    assert done.err.count("left out: no energy, GPU time, cost or emissions of run ext4-fsync") == 1
    # a chart goes by names: whether another run is known moves none of them
    second = cli("export", unmetered, TRACE, "--to", "github-benchmark")
    assert all(entry["name"].startswith("measured run (2): ") for entry in json.loads(second.out))
