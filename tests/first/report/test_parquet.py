"""A run as Parquet: every value and mark that the reader gives, whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from small_runs import WALL_NS, recorded
from steady_meters import Steady

from ckptcost.first.errors import InputError, MeterUnavailable, OutputError, RunFileError
from ckptcost.first.runs.clocks import S
from ckptcost.first.runs.header import Header, heads_of
from ckptcost.first.runs.lines import Raw, encode, raw_line
from ckptcost.first.runs.reader import load

pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

from ckptcost.first.report import parquet  # noqa: E402
from ckptcost.first.report.parquet import FILES, pack  # noqa: E402


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    recorder = recorded(folder, seconds=120, saves=(5, 40, 80), stop=False, count=3)
    recorder.mark("note", text="ä\n\0", number=float("nan"), deep={"list": [1, None, "x"]})
    recorder.mark("begin", "lost")
    recorder.stop()
    return folder


@pytest.fixture(scope="module")
def packed(run, tmp_path_factory):
    target = tmp_path_factory.mktemp("out") / "pack"
    pack(run, target)
    return target


def rows(file):
    return pq.read_table(file).to_pylist()


def everything(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def same(told, truth):
    """NaN there is null here."""
    return [float("nan") if value is None else value for value in told] == pytest.approx(
        truth.tolist(), nan_ok=True, rel=0, abs=0
    )


def test_every_reading_comes_back(run, packed):
    table = pq.read_table(packed / "readings.parquet")
    truth = load(run)
    told = {}
    for row in table.to_pylist():
        told.setdefault(
            (row["host"], row["domain"], row["quantity"], row["source"], row["scope"]), []
        ).append(row)
    assert list(told) == [
        ("node1", c.domain, c.quantity, c.source, c.scope) for c in truth.channels
    ]
    for channel, of_channel in zip(truth.channels, told.values(), strict=True):
        series = truth.series(channel)
        assert same([row["t_s"] for row in of_channel], series.t_s)
        assert same([row["value"] for row in of_channel], series.value)
        assert same([row["took_s"] for row in of_channel], series.took_s)


def test_every_mark_comes_back(run, packed):
    truth = load(run)
    told = rows(packed / "marks.parquet")
    assert [(row["t_s"], row["name"], row["window"], row["rank"], row["by"]) for row in told] == [
        mark[:5] for mark in truth.marks
    ]
    assert [json.loads(row["detail"]) for row in told] == [mark.detail for mark in truth.marks]
    assert {row["host"] for row in told} == {"node1"}


def test_checkpoints_are_those_of_a_report(run, packed):
    from ckptcost.first.jobs.measure import reviewed

    told = rows(packed / "windows.parquet")
    seen = reviewed(run)
    assert [row["window"] for row in told] == ["step 5", "step 40", "step 80", "lost"]
    assert [window.name for window in seen.windows] == ["step 5", "step 40", "step 80"], (
        "the last began after what was asked for"
    )
    for row, window, what in zip(told[:3], seen.windows, seen.contents, strict=True):
        assert (row["begin_s"], row["returned_s"], row["durable_s"]) == (
            window.begin_s,
            window.returned_s,
            window.durable_s,
        )
        assert row["bytes"] == (None if what.bytes != what.bytes else what.bytes)
    assert (told[0]["path"], told[0]["how"], told[0]["of"], told[0]["bytes"]) == (
        "step-5.pt",
        "output",
        "save",
        1000.0,
    )
    assert told[0]["stall_s"] == pytest.approx(2.0, abs=0.1)
    assert (told[3]["durable_s"], told[3]["durable_why"]) == (None, "UNFINISHED")


def test_what_is_in_no_table(run, packed):
    about = json.loads((packed / "run.json").read_text("utf-8"))
    truth = load(run)
    assert (about["format"], about["version"], about["run"]) == ("ckptcost.pack", 1, "a" * 32)
    assert about["began_unix_s"] == truth.began == WALL_NS / S
    assert about["problems"] == []
    assert [meter["name"] for meter in about["headers"][0]["meters"]] == ["steady"]
    assert (about["simulated"], about["ended"]) == (False, True)
    assert set(about["columns"]) == {"readings.parquet", "marks.parquet", "windows.parquet"}
    assert sorted(file.name for file in packed.iterdir()) == sorted(FILES)
    assert packed.stat().st_mode & 0o777 == 0o777 & ~umask()


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_no_answer_is_null_and_a_broken_line_is_told(tmp_path):
    meter = Steady(count=1)
    header = Header(
        run="r",
        host="n",
        boot="b",
        pid=1,
        monotonic_ns=100 * S,
        wall_ns=1000 * S,
        meters=heads_of([meter]),
    )
    lines = [
        raw_line(Raw((100 + k) * S, (5,), ((float("nan") if k == 1 else 10.0 * k, 7.0),)))
        for k in range(3)
    ]
    (tmp_path / "r.jsonl").write_bytes(
        encode(header.fields()) + b"".join([lines[0], lines[1], b"nonsense\n", lines[2]])
    )
    done = pack(tmp_path, tmp_path / "out")
    told = [
        row["value"]
        for row in rows(tmp_path / "out" / "readings.parquet")
        if row["quantity"] == "energy_j"
    ]
    assert told == [0.0, None, 20.0]
    assert "line 4" in done.problems[0]
    assert json.loads((tmp_path / "out" / "run.json").read_text())["problems"] == list(
        done.problems
    )


def test_a_name_that_is_no_text(tmp_path):
    recorder = recorded(tmp_path / "run", seconds=3, saves=(), stop=False)
    recorder.mark("begin", "step\udcff-9")
    recorder.stop()
    pack(tmp_path / "run", tmp_path / "out")
    assert [row["window"] for row in rows(tmp_path / "out" / "marks.parquet")] == ["step\\udcff-9"]
    assert [row["label"] for row in rows(tmp_path / "out" / "windows.parquet")] == ["step\\udcff-9"]


def test_several_hosts(tmp_path):
    recorded(tmp_path / "run", seconds=10, host="node1", saves=(3,))
    recorded(
        tmp_path / "run",
        seconds=10,
        host="node2",
        saves=(5,),
        start_ns=1000 * S,
        wall_ns=WALL_NS + 2 * S,
    )
    pack(tmp_path / "run", tmp_path / "out")
    truth = load(tmp_path / "run")
    told = rows(tmp_path / "out" / "readings.parquet")
    for host in ("node1", "node2"):
        (channel, *_) = truth.node(host).channels
        series = truth.series(channel, host)
        assert same(
            [
                r["t_s"]
                for r in told
                if (r["host"], r["domain"], r["quantity"]) == (host, "gpu:0", "energy_j")
            ],
            series.t_s,
        )
    assert [(row["host"], row["window"]) for row in rows(tmp_path / "out" / "windows.parquet")] == [
        ("node1", "step 3"),
        ("node2", "step 5"),
    ]
    assert {row["host"] for row in rows(tmp_path / "out" / "marks.parquet")} == {"node1", "node2"}


def test_a_run_without_marks_or_readings(tmp_path):
    header = Header(run="r", host="n", boot="b", pid=1, monotonic_ns=100 * S, wall_ns=1000 * S)
    (tmp_path / "r.jsonl").write_bytes(encode(header.fields()))
    pack(tmp_path, tmp_path / "out")
    assert all(
        pq.read_table(tmp_path / "out" / name).num_rows == 0
        for name in FILES
        if name.endswith(".parquet")
    )


def test_row_groups_are_bounded(run, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "GROUP_ROWS", 100)
    pack(run, tmp_path / "small")
    meta = pq.ParquetFile(tmp_path / "small" / "readings.parquet").metadata
    assert meta.num_row_groups > 5
    assert max(meta.row_group(i).num_rows for i in range(meta.num_row_groups)) <= 100


def test_again_it_is_the_same_bytes(run, packed, tmp_path):
    target = tmp_path / "pack"
    pack(run, target)
    assert everything(target) == everything(packed)
    with pytest.raises(InputError, match="already there"):
        pack(run, target)
    (target / "marks.parquet").write_bytes(b"older")
    pack(run, target, force=True)
    assert everything(target) == everything(packed)
    assert [entry.name for entry in tmp_path.iterdir()] == ["pack"]


def test_nothing_else_is_ever_replaced(run, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("x")
    (tmp_path / "file").write_text("x")
    for target in ("home", "file"):
        with pytest.raises(InputError):
            pack(run, tmp_path / target, force=True)
    with pytest.raises(InputError, match="holds something else"):
        pack(run, run, force=True)
    assert (tmp_path / "home" / "thesis.tex").read_text() == "x"
    (tmp_path / "empty").mkdir()
    pack(run, tmp_path / "empty")


@pytest.mark.parametrize("target", ["no/such/folder", "file/below"])
def test_nowhere_to_write(run, tmp_path, target):
    (tmp_path / "file").write_text("x")
    with pytest.raises((OutputError, InputError)) as caught:
        pack(run, tmp_path / target)
    assert caught.value.exit_code == (4 if target.startswith("no") else 2)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_no_run_leaves_nothing(tmp_path):
    (tmp_path / "x").mkdir()
    with pytest.raises(RunFileError):
        pack(tmp_path / "x", tmp_path / "out")
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]


def test_without_pyarrow(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MeterUnavailable, match=r"pip install 'ckptcost\[parquet\]'") as caught:
        pack(run, tmp_path / "out")
    assert caught.value.exit_code == 5
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("older", [False, True])
def test_a_really_full_disk(run, packed, tmp_path, older):
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    size = (sum(len(raw) for raw in everything(packed).values()) // 4096 + 8) * 4096
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)],
        check=False,
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small disk here: {mounted.stderr.strip()}")
    try:
        if older:
            pack(run, disk / "pack")
        else:
            (disk / "filler").write_bytes(b"x" * (size - 8192))
        before = everything(disk / "pack") if older else None
        with pytest.raises(OutputError, match="No space left"):
            pack(run, disk / "pack", force=True)
        assert [entry.name for entry in disk.iterdir()] == (["pack"] if older else ["filler"])
        assert not older or everything(disk / "pack") == before
    finally:
        subprocess.run(["umount", str(disk)], check=True)


SLOW = """
import signal, sys
from pathlib import Path
from ckptcost.first.report import parquet
write = parquet._write
def slowly(arrow, file, pieces):
    rows = write(arrow, file, pieces)
    if file.name == "marks.parquet":
        print("half", flush=True)
        signal.pause()
    return rows
parquet._write = slowly
parquet.pack(Path(sys.argv[1]), Path(sys.argv[2]), force=True)
"""


@pytest.mark.parametrize("older", [False, True])
def test_killed_in_the_middle(run, packed, tmp_path, older):
    target = tmp_path / "pack"
    if older:
        shutil.copytree(packed, target)
    running = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(run), str(target)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout.readline() == "half\n"
        left = [entry for entry in tmp_path.iterdir() if entry != target]
        assert len(left) == 1
        if not older:  # one that works beside it takes nothing from it
            pack(run, target)
            assert left[0].exists()
            shutil.rmtree(target)
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()
        running.stdout.close()
    assert target.exists() == older
    if older:
        assert everything(target) == everything(packed)
    deadline = time.monotonic() + 10  # the kernel gives the dead one's lock back
    while left[0].exists() and time.monotonic() < deadline:
        pack(run, target, force=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["pack"], (
        "what the dead one left is taken away"
    )


def test_somebody_else_is_quicker(run, tmp_path, monkeypatch):
    target = tmp_path / "pack"
    about = parquet.about

    def meanwhile(whole):
        target.mkdir()
        (target / "run.json").write_text("theirs")
        return about(whole)

    monkeypatch.setattr(parquet, "about", meanwhile)
    with pytest.raises(OutputError, match="somebody else"):
        pack(run, target)
    assert (target / "run.json").read_text() == "theirs"
    assert [entry.name for entry in tmp_path.iterdir()] == ["pack"]


def test_frames_read_it(packed):
    pd = pytest.importorskip("pandas")
    frame = pd.read_parquet(packed / "readings.parquet")
    assert frame["value"].dtype == np.float64
    assert str(frame["domain"].dtype) == "category"
    assert frame.groupby("domain", observed=True)["t_s"].max().min() > 119


def test_only_what_writes_parquet_imports_pyarrow():
    root = Path(parquet.__file__).parents[1]
    found = sorted(
        str(p.relative_to(root))
        for p in root.rglob("*.py")
        if "import pyarrow" in p.read_text("utf-8")
    )
    of_fleet = [name for name in found if name.startswith("fleet/")]
    assert [name for name in found if name not in of_fleet] == [
        "exports/parquet.py",
        "report/parquet.py",
    ]
    assert of_fleet == ["fleet/node_file.py"]
