"""`ckptcost runs pack --store` from the shell: what is written and said, and how it fails."""

from __future__ import annotations

import csv
import io
import json
import shutil

import jsonschema
import pytest
from packable_runs import NEW_YEAR_NS, packable, save
from whole_json import whole

from ckptcost.first.fleet.node_file import decode
from ckptcost.first.fleet.store import open_store
from ckptcost.first.report.schema_file import schema_text
from ckptcost.first.runs.clocks import S


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("CKPTCOST_RUNS", str(tmp_path / "kept"))
    monkeypatch.chdir(tmp_path)
    packable(
        tmp_path / "kept" / "first",
        save("a", 20, 25),
        seconds=60.0,
        run_id="aaaa" + "0" * 28,
        job={"SLURM_JOB_ID": "17"},
    )
    packable(
        tmp_path / "kept" / "second",
        save("a", 20, 25),
        seconds=60.0,
        run_id="bbbb" + "0" * 28,
        wall_ns=NEW_YEAR_NS + 7200 * S,
    )
    return tmp_path / "kept"


def rows_of(done, code=0):
    assert done.code == code, done
    document = whole(done.out)
    jsonschema.validate(document, json.loads(schema_text()))
    assert document["kind"] == "runs"
    return document["tables"]["packed"]["rows"]


def test_one_run(cli, tmp_path):
    (row,) = rows_of(cli("runs", "pack", "aaaa", "--store", "fleet", "-f", "json"))
    assert (row["run"], row["job"], row["host"], row["day"], row["rows"], row["outcome"]) == (
        "aaaa0000",
        "17",
        "n1",
        "2026-01-01",
        1,
        "written",
    )
    (entry,) = open_store(str(tmp_path / "fleet")).listing()
    assert row["size"] == entry.bytes
    (row,) = rows_of(cli("runs", "pack", "aaaa", "--store", "fleet", "-f", "json"))
    assert row["outcome"] == "already there"


def test_all_of_them_in_every_format(cli):
    rows = rows_of(cli("runs", "pack", "--all", "--store", "fleet", "-f", "json"))
    assert sorted(row["run"] for row in rows) == ["aaaa0000", "bbbb0000"]
    text = cli("runs", "pack", "--all", "--store", "fleet").out
    assert "2 node days packed" in text
    assert "2 already there; 0 B written." in text
    assert max(map(len, text.splitlines())) <= 80
    read = list(
        csv.DictReader(
            io.StringIO(cli("runs", "pack", "--all", "--store", "fleet", "-f", "csv").out)
        )
    )
    assert [(row["run"], row["outcome"]) for row in read] == [
        (row["run"], "already there") for row in rows
    ]
    assert "| aaaa0000 | n1 |" in cli("runs", "pack", "--all", "--store", "fleet", "-f", "md").out


def test_job_and_labels(cli, tmp_path):
    words = (
        "--job",
        "mine",
        "--label",
        "team=infra",
        "--label",
        "note=a=b",
        "--store",
        "fleet",
        "-f",
        "json",
    )
    (row,) = rows_of(cli("runs", "pack", "aaaa", *words))
    assert row["job"] == "mine"
    store = open_store(str(tmp_path / "fleet"))
    assert dict(decode(store.read(store.listing()[0].path)).head.labels) == {
        "team": "infra",
        "note": "a=b",
    }


def test_elsewhere_and_into_a_file(cli, tmp_path, place):
    shutil.move(place, tmp_path / "elsewhere")
    done = cli(
        "runs",
        "pack",
        "--all",
        "--dir",
        "elsewhere",
        "--store",
        f"file://{tmp_path}/fleet",
        "-f",
        "json",
        "-o",
        "said.json",
    )
    assert (done.code, done.out) == (0, "")
    document = json.loads((tmp_path / "said.json").read_text())
    assert str(tmp_path) not in json.dumps(
        document
    )  # a document does not tell where its author keeps things
    assert len(open_store("fleet").listing()) == 2
    assert (
        len(rows_of(cli("runs", "pack", "elsewhere/first", "--store", "fleet", "-f", "json"))) == 1
    )


def test_what_cannot_be_read_is_named_and_the_others_go_on(cli, place):
    (place / "foreign").mkdir()
    (place / "foreign" / "x.jsonl").write_text("{}\n")
    silent = packable(place / "silent", seconds=5.0, run_id="cccc" + "0" * 28)
    (file,) = silent.glob("*.jsonl")
    file.write_bytes(file.read_bytes().splitlines(keepends=True)[0])
    done = cli("runs", "pack", "--all", "--store", "fleet", "-f", "json")
    assert len(rows_of(done, 2)) == 2
    assert "silent: holds no readings" in done.err
    assert "foreign" in done.err
    assert [warning["code"] for warning in whole(done.out)["warnings"]] == [
        "UNREADABLE",
        "UNREADABLE",
    ]
    shutil.rmtree(place / "foreign")
    assert cli("runs", "pack", "--all", "--store", "fleet").code == 5
    done = cli("runs", "pack", "cccc", "--store", "fleet")
    assert done.code == 5
    assert "Nothing was packed" in done.out


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (("list", "--store", "fleet"), "unrecognized arguments: --store"),
        (("show", "aaaa", "--store", "fleet"), "unrecognized arguments: --store"),
        (("pack", "--store", "fleet"), "names no run"),
        (("pack", "aaaa", "--all", "--store", "fleet"), "names a run and all of them"),
        (("pack", "aaaa", "--store", "fleet", "--force"), "--force"),
        (("pack", "aaaa", "--store", ""), "a store has a name"),
        (("pack", "aaaa", "--store", "kept/first/n1.000.jsonl"), "n1.000.jsonl"),
        (("pack", "aaaa", "--store", "fleet", "--label", "team"), "--label: 'team' is no label"),
        (("pack", "aaaa", "--store", "fleet", "--job", " "), "--job"),
        (("pack", "nobody", "--store", "fleet"), "nobody"),
        (("pack", "aaaa", "--all"), "--all: belongs to a store"),
        (("pack", "aaaa", "--job", "x"), "--job: belongs to a store"),
        (("list", "--label", "team=x"), "unrecognized arguments: --label"),
    ],
)
def test_what_is_no_question(cli, tmp_path, words, where):
    done = cli("runs", *words)
    assert done.code in (2, 4), done
    assert done.out == ""
    assert where in done.err
    assert not list(tmp_path.rglob("*.parquet"))


def test_without_a_store_pack_is_what_it_was(cli, tmp_path):
    assert cli("runs", "pack", "aaaa", "-o", "folder").code == 0
    files = sorted(path.name for path in (tmp_path / "folder").iterdir())
    assert files == ["marks.parquet", "readings.parquet", "run.json", "windows.parquet"]
