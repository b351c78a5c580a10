"""`ckptcost probe`: what it says, what it refuses, and that nothing of it stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from whole_json import whole

from ckptcost.first.cli.main import main
from ckptcost.first.jobs.probe import SMALL

CKPTCOST = [sys.executable, "-m", "ckptcost.first"]
QUICK = ["--size", "16 MB", "--rounds", "2", "--ranks", "2", "--pause", "0 s", "-q"]


@pytest.fixture(autouse=True)
def own_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "user"))


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "storage"
    folder.mkdir()
    return folder


@pytest.fixture
def probed(place, capsys):
    def call(*words):
        assert main(["probe", str(place), *QUICK, "-f", "json", *words]) == 0
        return whole(capsys.readouterr().out)

    return call


def rates(study):
    return {(row["of"], row["bytes"]): row for row in study["tables"]["rates"]["rows"]}


@pytest.mark.parametrize("saver", ["direct", "posix"])
def test_rates_are_bytes_over_seconds(probed, place, saver):
    study = probed("--saver", saver)
    rows = [
        row
        for row in study["tables"]["rounds"]["rows"]
        if row["of"] == "save" and row["bytes"] == 16e6
    ]
    found = rates(study)["save", 16e6]
    assert len(rows) == 2
    assert found["rate"] == pytest.approx(2 * 16e6 / sum(row["seconds"] for row in rows), rel=1e-9)
    assert found["rate_low"] <= found["rate"] <= found["rate_high"]
    for row in rows:
        assert row["rate"] == pytest.approx(row["bytes"] / row["seconds"])
        assert 0 < row["p50"] <= row["p99"] <= row["latest"] <= row["seconds"] * 1.01
        assert row["returned"] <= row["seconds"]
    assert found["amplification"] is None  # a few readings of the disk's counter are too few
    assert list(place.iterdir()) == []


def test_two_sizes_by_turns_or_one(probed):
    assert {size for _, size in rates(probed())} == {16e6, 16e6 * SMALL}
    assert set(rates(probed("--one-size", "--no-read"))) == {("save", 16e6)}


def test_the_run_is_kept_and_reported_like_any_other(probed, capsys):
    study = probed()
    assert main(["report", "last"]) == 2, "that is the last run of a job"
    assert "but of probes" in capsys.readouterr().err
    assert main(["report", study["question"]["run"][:8], "-f", "json"]) == 0
    windows = whole(capsys.readouterr().out)["tables"]["windows"]["rows"]
    assert {row["of"] for row in windows} == {"save", "load"}
    assert all(row["durable"] is not None for row in windows)
    seconds = {row["window"]: row["seconds"] for row in study["tables"]["rounds"]["rows"]}
    for row in windows:
        assert row["length"] == pytest.approx(seconds[row["window"]], abs=1e-6)


def test_the_catalogue_stands_beside_it_in_order(probed):
    rows = probed()["tables"]["tiers"]["rows"]
    assert [row["write"] for row in rows] == sorted(row["write"] for row in rows)
    assert "measured here" in [row["tier"] for row in rows]
    assert len(rows) > 1


def test_as_large_as_a_models(place, capsys):
    assert (
        main(
            [
                "probe",
                str(place),
                "--model",
                "llama31-8b",
                "--meters",
                "simulated",
                "-q",
                "-f",
                "json",
            ]
        )
        == 0
    )
    study = whole(capsys.readouterr().out)
    assert study["simulated"]
    assert study["question"]["bytes"] == pytest.approx(14 * 8.03e9, rel=0.01)
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--size", "900 TB"], 4, "does not fit"),
        (["--size", "1 KB"], 2, "--size"),
        (["--size", "4"], 2, "--size"),
        (["--size", "1 GB", "--model", "llama31-8b"], 2, "--model"),
        (["--model", "lama31-8b"], 2, "llama31-8b"),
        (["--saver", "drect"], 2, "direct"),
        (["--rounds", "0"], 2, "--rounds"),
        (["--ranks", "0"], 2, "ranks"),
        (["--depth", "0"], 2, "in flight"),
        (["--block", "1000 B"], 2, "multiple"),
        (["--need", "gpus"], 2, "gpu"),
        (["--meters", "replay:x"], 2, "replay"),
    ],
)
def test_wrong_input_is_one_line_and_leaves_nothing(place, capsys, words, code, said):
    defaults = [] if {"--size", "--model"} & set(words) else ["--size", "16 MB"]
    assert main(["probe", str(place), "-q", *defaults, *words]) == code
    shown = capsys.readouterr().err
    assert said in shown
    assert shown.count("\n") == 1
    assert list(place.iterdir()) == []
    assert (
        not Path(os.environ["CKPTCOST_RUNS"]).exists()
        or code == 4
        or not any(Path(os.environ["CKPTCOST_RUNS"]).rglob("*.jsonl"))
    )


def test_no_folder_a_file_and_one_that_may_not_be_written(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["probe", str(tmp_path / "none"), *QUICK]) == 2
    assert main(["probe", str(tmp_path / "file"), *QUICK]) in (2, 4)
    assert main(["probe", "/proc", *QUICK]) in (2, 4)
    assert capsys.readouterr().err.count("\n") == 3


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_it_nothing_of_it_stays(place, by):
    words = [
        *CKPTCOST,
        "probe",
        str(place),
        "--size",
        "64 MB",
        "--rounds",
        "50",
        "--pause",
        "0 s",
        "-q",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        until = time.monotonic() + 20
        while not any(place.rglob("*.*")) and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(0.5)
        assert any(place.iterdir())
        running.send_signal(by)
        running.communicate(timeout=30)
    until = time.monotonic() + 10
    while any(place.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
    assert list(place.iterdir()) == []
    assert (
        running.returncode
        in {signal.SIGINT: (0, 130), signal.SIGTERM: (143, -15), signal.SIGKILL: (-9,)}[by]
    )
