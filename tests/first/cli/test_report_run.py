"""`ckptcost report`: a recorded run told again as what it is, whatever became of its recorder."""

from __future__ import annotations

import json
import os
import time

import pytest
from nobody import may_become_others
from small_runs import WALL_NS, recorded
from steady_meters import Steady
from whole_json import whole

from ckptcost.first.runs.clocks import S
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "kept"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "kept"


def told(done):
    assert done.code == 0, done
    return whole(done.out)


def test_what_was_measured_then(cli, tmp_path):
    first = told(
        cli(
            "measure",
            "--meters",
            "simulated",
            "--for",
            "70 s",
            "--record",
            "kept/demo",
            "-f",
            "json",
        )
    )
    again = told(cli("report", "last", "-f", "json"))
    assert again["kind"] == "measurement"
    assert again["simulated"] is True
    for one, two in zip(
        first["tables"]["windows"]["rows"], again["tables"]["windows"]["rows"], strict=True
    ):
        assert two["joules"] == pytest.approx(one["joules"], rel=1e-9)
        assert two["stall"] == pytest.approx(one["stall"])
    assert str(tmp_path) not in json.dumps(again)


def test_a_real_run_is_no_simulation(cli, place):
    recorded(place / "real", seconds=20)
    document = told(cli("report", "last", "-f", "json"))
    assert document["simulated"] is False
    assert document["question"]["run"] == "a" * 32
    assert "SIMULATED" not in cli("report", "last").out
    (window,) = document["tables"]["windows"]["rows"]
    assert window["stall"] == pytest.approx(2.0, abs=0.1)
    assert window["joules"] == pytest.approx(100.0 * window["length"], rel=0.02)


def test_named_by_path_id_or_folder(cli, place):
    recorded(place / "real", seconds=20)
    outs = {
        cli("report", name, "-f", "csv").out
        for name in ("last", "aaa", "rea", "kept/real", "kept/real/node1.000.jsonl")
    }
    assert len(outs) == 1
    assert cli("report", "aaa", "--dir", "kept/real", "-f", "csv").out in outs


def test_a_run_that_was_killed(cli, place):
    recorded(place / "real", seconds=20, stop=False)
    file = place / "real" / "node1.000.jsonl"
    file.write_bytes(file.read_bytes()[:-30])
    document = told(cli("report", "last", "-f", "json"))
    assert "RUN_FILE" in {warning["code"] for warning in document["warnings"]}
    assert document["question"]["seconds"] == pytest.approx(20, abs=3)


def test_while_it_is_written(cli, place):
    place.mkdir()
    recorder = Recorder([Steady()], FileSink(place / "live")).start()
    try:
        deadline = time.monotonic() + 30
        while (
            done := cli("report", "last", "-f", "json")
        ).code != 0 and time.monotonic() < deadline:
            time.sleep(0.1)
        document = told(done)
        assert "RUN_FILE" in {warning["code"] for warning in document["warnings"]}
        assert "; recording: " in cli("runs", "show", "last").out.replace("\n", " ")
    finally:
        recorder.stop()
    assert "Nobody stopped" not in cli("report", "last").out


def test_one_of_several_hosts(cli, place):
    recorded(place / "both", seconds=20, host="node1")
    recorded(
        place / "both", seconds=20, host="node2", saves=(), start_ns=500 * S, wall_ns=WALL_NS + S
    )
    assert "node1" in cli("report", "last").out.splitlines()[0]
    assert "node2" in cli("report", "last", "--host", "node2").out.splitlines()[0]
    wrong = cli("report", "last", "--host", "node3")
    assert (wrong.code, wrong.out) == (2, "")


def test_to_a_file_and_as_a_table(cli, place, tmp_path):
    recorded(place / "real", seconds=20)
    assert cli("report", "last", "-o", "out.txt").out == ""
    assert (tmp_path / "out.txt").read_text() == cli("report", "last").out
    assert cli("report", "last", "-f", "csv", "--table", "windows").out.startswith("window,")
    assert cli("report", "last", "-o", "/dev/full").code == 4


@pytest.mark.parametrize(
    "what", ["empty", "other.jsonl", "pipe", "zero.jsonl", "two", "cut.jsonl", "none"]
)
def test_not_a_run(cli, tmp_path, place, what):
    recorded(place / "real", seconds=5)
    path = tmp_path / what
    if what in ("empty", "two"):
        path.mkdir()
    elif what == "other.jsonl":
        path.write_text('{"text": "a data set"}\n')
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "zero.jsonl":
        path.touch()
    elif what == "cut.jsonl":
        path.write_bytes((place / "real" / "node1.000.jsonl").read_bytes()[:300])
    if what == "two":
        recorded(path, seconds=3, run_id="b" * 32)
        recorded(path, seconds=3, run_id="c" * 32)
    done = cli("report", str(path))
    assert (done.code, done.out) == (2, ""), done
    assert len(done.err.splitlines()) == 1


def test_no_runs_at_all(cli):
    for name in ("last", "aaa"):
        done = cli("report", name)
        assert (done.code, done.out) == (2, "")
        assert "there are no runs" in done.err


def test_only_a_header(cli, place):
    recorded(place / "real", seconds=2)
    file = place / "real" / "node1.000.jsonl"
    file.write_bytes(file.read_bytes().partition(b"\n")[0] + b"\n")
    done = cli("report", "last")
    assert (done.code, done.out) == (5, "")
    assert "holds no readings" in done.err


@pytest.mark.skipif(
    not may_become_others(), reason="only root can become somebody who may not read"
)
def test_no_permission(cli, place, monkeypatch):
    recorded(place / "real", seconds=5)
    (place / "real").chmod(0o700)
    place.chmod(0o755)
    monkeypatch.chdir(place)
    os.seteuid(65534)
    try:
        done = cli("report", "./real")
        deeper = cli("report", "real/node1.000.jsonl")
    finally:
        os.seteuid(0)
    for each in (done, deeper):
        assert (each.code, each.out) == (2, ""), each
        assert "Permission denied" in each.err
