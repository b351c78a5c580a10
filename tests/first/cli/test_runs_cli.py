"""`ckptcost runs` from the shell: what it lists, shows and packs, and how it fails."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sys

import jsonschema
import pytest
from small_runs import WALL_NS, recorded
from whole_json import whole

from ckptcost.first.report.schema_file import schema_text
from ckptcost.first.runs.clocks import S

PARQUET = ("readings.parquet", "marks.parquet", "windows.parquet", "run.json")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Two runs: one of a wrapped command that ended, and one that was killed."""
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "kept"))
    monkeypatch.chdir(tmp_path)
    recorded(
        tmp_path / "kept" / "first",
        run_id="aaaa" + "0" * 28,
        saves=(5, 10),
        command="train.py --steps 9",
        exit_code=3,
    )
    recorded(
        tmp_path / "kept" / "second",
        run_id="bbbb" + "0" * 28,
        wall_ns=WALL_NS + 3600 * S,
        stop=False,
    )
    return tmp_path / "kept"


def table_of(done, name="runs"):
    assert done.code == 0, done
    document = whole(done.out)
    assert (document["schema_name"], document["kind"]) == ("ckptcost.report", "runs")
    return document["tables"][name]["rows"]


def test_list(cli):
    first, second = reversed(table_of(cli("runs", "-f", "json")))
    assert (first["run"], first["id"], first["folder"], first["state"]) == (
        "aaaa" + "0" * 28,
        "aaaa0000",
        "first",
        "complete",
    )
    assert (first["command"], first["exit_code"], first["host"], first["readings"]) == (
        "train.py --steps 9",
        3,
        "node1",
        "measured",
    )
    assert first["began"] == "2026-01-01T00:00:00.000Z"
    assert first["length"] == pytest.approx(20, abs=0.5)
    assert (second["state"], second["command"], second["exit_code"]) == ("cut short", "", None)


def test_the_same_words_in_every_format(cli):
    assert cli("runs").out == cli("runs", "list").out
    text = cli("runs").out
    assert max(map(len, text.splitlines())) <= 80
    assert "1 complete, 1 cut short" in text
    rows = list(csv.DictReader(io.StringIO(cli("runs", "-f", "csv").out)))
    assert [(row["id"], float(row["size_bytes"])) for row in rows] == [
        (row["id"], row["size"]) for row in table_of(cli("runs", "-f", "json"))
    ]
    assert "| aaaa0000 | 2026-01-01 00:00 |" in cli("runs", "-f", "md").out


def test_show(cli):
    done = cli("runs", "show", "aaaa", "-f", "json")
    (row,) = table_of(done)
    assert (row["command"], row["exit_code"]) == ("train.py --steps 9", 3)
    marks = {(mark["mark"], mark["by"]): mark["count"] for mark in table_of(done, "marks")}
    assert marks == {
        ("begin", "api"): 2,
        ("returned", "api"): 2,
        ("durable", "watch"): 2,
        ("note", "wrap"): 2,
    }
    assert [meter["meter"] for meter in table_of(done, "meters")] == ["steady"]
    assert [file["file"] for file in table_of(done, "files")] == ["node1.000.jsonl"]
    text = cli("runs", "show", "last").out
    assert "cut short" in text
    assert "1 checkpoint, 3 marks" in text


def test_documents_keep_the_schema(cli):
    schema = json.loads(schema_text())
    for words in (("list",), ("show", "last")):
        jsonschema.validate(whole(cli("runs", *words, "-f", "json").out), schema)


def test_no_runs_yet(cli, place):
    shutil.rmtree(place)
    done = cli("runs")
    assert done.code == 0
    assert "No recorded runs" in done.out
    assert str(place) in done.out
    assert cli("runs", "-f", "csv").out.count("\n") == 1
    for verb in ("show", "pack"):
        done = cli("runs", verb, "last")
        assert (done.code, done.out) == (2, "")
        assert "there are no runs" in done.err


def test_a_folder_that_cannot_be_understood_is_told_and_costs_no_other(cli, place):
    (place / "foreign").mkdir()
    (place / "foreign" / "x.jsonl").write_text("{}\n")
    done = cli("runs")
    assert done.code == 0
    assert "UNREADABLE" in done.out
    assert "aaaa0000" in done.out


def test_a_command_of_many_lines_is_one_and_moves_no_cursor(cli, place):
    recorded(
        place / "third",
        run_id="cccc" + "0" * 28,
        command="python -c \nimport os\x1b[2J",
        wall_ns=WALL_NS + 7200 * S,
    )
    assert table_of(cli("runs", "-f", "json"))[0]["command"] == "python -c import os [2J"
    for words in (("runs",), ("runs", "show", "cccc")):
        assert "\x1b" not in cli(*words).out


def test_many_broken_ones_are_counted(cli, place):
    for number in range(8):
        shutil.copytree(place / "second", place / f"torn-{number}")
        file = place / f"torn-{number}" / "node1.000.jsonl"
        file.write_bytes(file.read_bytes()[:-9])
    out = cli("runs").out
    assert out.count("the last line is cut off") == 5
    assert "And 3 more" in out
    assert sum("cut off" in row["problems"] for row in table_of(cli("runs", "-f", "json"))) == 8


def test_elsewhere(cli, tmp_path, place):
    shutil.move(place / "first", tmp_path / "elsewhere")
    assert [
        row["id"]
        for row in table_of(cli("runs", "--dir", str(tmp_path / "elsewhere"), "-f", "json"))
    ] == ["aaaa0000"]
    assert (
        table_of(cli("runs", "show", "aa", "--dir", "elsewhere", "-f", "json"))[0]["id"]
        == "aaaa0000"
    )
    assert table_of(cli("runs", "show", "elsewhere", "-f", "json"))[0]["id"] == "aaaa0000"


def test_a_document_does_not_tell_where_its_reader_keeps_things(cli, tmp_path, place):
    done = cli("runs", "show", str(place / "first"), "-f", "json", "-o", str(tmp_path / "out.json"))
    assert done.code == 0
    assert json.loads((tmp_path / "out.json").read_text())["tool"]["command"] == [
        "ckptcost",
        "runs",
        "show",
        "first",
        "-f",
        "json",
        "-o",
        "out.json",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lst",), "did you mean 'list'"),
        (("list", "aaaa"), "unrecognized arguments: aaaa"),
        (("show",), "arguments are required: RUN"),
        (("pack",), "names no run"),
        (("show", ""), "names no run"),
        (("show", "cccc"), "no run named 'cccc'"),
        (("show", "no/where"), "no such file or folder"),
        (("--force",), "unrecognized arguments: --force"),
        (("--dir", "nowhere"), "--dir nowhere"),
        (("--dir", ""), "--dir"),
        (("--table", "runs"), "-f csv"),
        (("-f", "csv", "--table", "rnus"), "did you mean 'runs'"),
    ],
)
def test_wrong_input_is_one_line(cli, words, said):
    done = cli("runs", *words)
    assert (done.code, done.out) == (2, ""), done
    assert said in done.err
    assert len(done.err.splitlines()) == 1


def test_not_a_run(cli, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.jsonl").write_text("hello\n")
    os.mkfifo(tmp_path / "pipe")
    for verb in ("show", "pack"):
        for name in ("./empty", "./text.jsonl", "./pipe", "/dev/null"):
            done = cli("runs", verb, name)
            assert (done.code, done.out) == (2, ""), (verb, name, done)
            assert len(done.err.splitlines()) == 1


def test_a_full_disk(cli):
    done = cli("runs", "-o", "/dev/full")
    assert done.code == 4
    assert len(done.err.splitlines()) == 1


def test_pack_says_how_to_get_pyarrow(cli, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = cli("runs", "pack", "last")
    assert (done.code, done.out) == (5, "")
    assert "pip install 'ckptcost[parquet]'" in done.err
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept"]


def test_pack(cli, tmp_path):
    pytest.importorskip("pyarrow")
    told = {
        row["file"]: row for row in table_of(cli("runs", "pack", "aaaa", "-f", "json"), "packed")
    }
    assert set(told) == set(PARQUET)
    for name, row in told.items():
        assert (tmp_path / "first-parquet" / name).stat().st_size == row["size"]
    assert told["marks.parquet"]["rows"] == 8
    done = cli("runs", "pack", "aaaa")
    assert (done.code, done.out) == (2, "")
    assert "--force" in done.err
    assert cli("runs", "pack", "aaaa", "--force").code == 0
    assert cli("runs", "pack", "aaaa", "-o", str(tmp_path / "other")).code == 0
    for name in PARQUET:
        assert (tmp_path / "other" / name).read_bytes() == (
            tmp_path / "first-parquet" / name
        ).read_bytes()


def test_pack_where_nothing_can_be(cli, tmp_path):
    pytest.importorskip("pyarrow")
    for target in ("no/such/folder", ""):
        done = cli("runs", "pack", "aaaa", "-o", target)
        assert (done.code, done.out) == (4, ""), done
        assert len(done.err.splitlines()) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept"]
