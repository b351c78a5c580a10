"""`ckptcost selftest`: real saves agree with the truth, what is refused, and that nothing of it
stays whatever ends it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ckptcost.first.cli.main import main
from ckptcost.first.meters.process import children_of

CKPTCOST = [sys.executable, "-m", "ckptcost.first", "selftest"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("CKPTCOST_USER", str(tmp_path / "user"))
    folder = tmp_path / "storage"
    folder.mkdir()
    return folder


def started(place):
    """A self-test whose writer has begun, and the writer's process id."""
    ours = subprocess.Popen(
        [*CKPTCOST, str(place), "--size", "4 MB", "-f", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until_s = time.monotonic() + 30.0
    while not list(place.glob(".ckptcost-probe-*/save-0/*.bin")):
        assert ours.poll() is None
        assert time.monotonic() < until_s
        time.sleep(0.02)
    for pid in children_of(ours.pid, Path("/proc")) or ():
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            if b"selftest_children" in file.read():
                return ours, pid
    raise AssertionError("there is no writer")


def test_saves_are_found_and_nothing_stays(place, tmp_path):
    done = subprocess.run(
        [*CKPTCOST, str(place), "--size", "4 MB", "-f", "json", "--no-load"],
        capture_output=True,
        text=True,
        check=False,
    )
    study = json.loads(done.stdout)
    rows = study["tables"]["saves"]["rows"]
    assert [row["way"] for row in rows] == [
        "one file",
        "one, fsync",
        "several",
        "several, fsync",
        "rotation",
    ]
    assert all(row["found"] and row["bytes_error"] == 0 for row in rows)
    assert rows[-1]["safe"] is None
    assert (done.returncode == 0) == all(row["agrees"] for row in rows)
    assert study["findings"][0].startswith("Here ckptcost finds 5 of 5 saves: sizes exact")
    assert list(place.iterdir()) == []
    (kept,) = (tmp_path / "runs").iterdir()
    headers = [json.loads(file.read_text().partition("\n")[0]) for file in kept.glob("*.jsonl")]
    assert {header["purpose"] for header in headers if header["k"] == "run"} == {"selftest"}
    left_out = "no load was made beside the meters of joules, as asked for"
    assert study["tables"]["timing"]["rows"][0]["why"] == left_out
    assert f"N{left_out[1:]}." in study["findings"]


def test_killed_itself_its_files_go_and_its_writer_ends(place):
    ours, writer = started(place)
    ours.kill()
    ours.communicate(timeout=60)
    until_s = time.monotonic() + 30.0
    while list(place.iterdir()) or _lives(writer):
        assert time.monotonic() < until_s
        time.sleep(0.02)


def _lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--size", "1 kB"], 2, "--size"),
        (["--size", "4"], 2, "--size"),
        (["--size", "900 GB"], 4, "does not fit"),
        (["--rounds", "0"], 2, "--rounds"),
        (["--within", "0 s"], 2, "--within"),
        (["--record", ""], 2, "--record"),
        (["--meters", "simulated"], 2, "--meters"),
        (["--table", "saves"], 2, "--table"),
    ],
)
def test_what_is_refused_leaves_nothing(place, capsys, words, code, said):
    assert main(["selftest", str(place), *words]) == code
    assert said in capsys.readouterr().err
    assert list(place.iterdir()) == []


def test_a_folder_that_is_not_there(place, capsys):
    assert main(["selftest", str(place / "none")]) == 2
    assert "no such directory" in capsys.readouterr().err
