"""What a run is, by its first and last lines: the same as a reader of everything says, at a
thousandth of the cost."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_runs import WALL_NS, recorded
from steady_meters import Steady

from ckptcost.first.errors import RunFileError
from ckptcost.first.runs import summary as module
from ckptcost.first.runs.clocks import S
from ckptcost.first.runs.lines import decode, encode, seal_line
from ckptcost.first.runs.reader import load
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink
from ckptcost.first.runs.summary import COMPLETE, CUT, RECORDING, count_marks, one_of, summary


def test_a_whole_run(tmp_path):
    recorded(tmp_path, seconds=20)
    seen = summary(tmp_path)
    assert (seen.run, seen.hosts, seen.state, seen.problems) == ("a" * 32, ("node1",), COMPLETE, ())
    assert (seen.began_ns, seen.simulated, seen.meters) == (WALL_NS, False, ("steady",))
    assert seen.length_s == pytest.approx(load(tmp_path).duration_s)
    assert seen.bytes == sum(file.stat().st_size for file in tmp_path.iterdir())
    assert (seen.command, seen.exit_code) == ("", None)


def test_as_the_reader_has_it_wherever_it_is_cut(tmp_path):
    recorded(tmp_path / "whole", seconds=8, saves=(2,))
    whole = (tmp_path / "whole" / "node1.000.jsonl").read_bytes()
    head = whole.index(b"\n") + 1
    file = tmp_path / "cut.jsonl"
    for size in [*range(head, len(whole), 97), len(whole) - 1, len(whole)]:
        file.write_bytes(whole[:size])
        seen, truth = summary(file), load(file)
        assert (seen.state == COMPLETE) == truth.ended, size
        assert seen.length_s == pytest.approx(truth.duration_s), size
        assert len(seen.problems) == len(truth.problems), (size, seen.problems, truth.problems)


@pytest.mark.parametrize("zeros", [1, 4096, 400_000])
def test_zeros_after_a_power_cut(tmp_path, zeros):
    recorded(tmp_path, seconds=5)
    file = tmp_path / "node1.000.jsonl"
    whole = summary(tmp_path).length_s
    file.write_bytes(file.read_bytes() + b"\0" * zeros)
    seen = summary(tmp_path)
    assert "zero bytes" in seen.problems[0]
    assert seen.length_s in ((whole,) if zeros < 200_000 else (0.0,)), (
        "so many zeros hide the last lines"
    )


def test_a_live_recorder_and_its_end(tmp_path):
    recorder = Recorder([Steady()], FileSink(tmp_path)).start()
    try:
        deadline = time.monotonic() + 20
        while (seen := summary(tmp_path)).length_s == 0.0 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert seen.state == RECORDING
        assert seen.length_s > 0.0
        file = next(tmp_path.iterdir())
        with file.open("rb") as stream, (half := tmp_path / "half.jsonl").open("wb") as copy:
            copy.write(stream.read()[:-10])
        beside = summary(half)
        assert (beside.state, beside.problems) == (
            RECORDING,
            (),
        ), "half a line is one that is just being written"
        half.unlink()
    finally:
        recorder.stop()
    assert summary(tmp_path).state == COMPLETE


def test_recording_from_its_first_instant_and_on_another_machine(tmp_path):
    recorded(tmp_path, seconds=2, stop=False)
    file = tmp_path / "node1.000.jsonl"
    head = file.read_bytes().partition(b"\n")[0]
    file.write_bytes(encode({**decode(head), "boot": "another"}))
    for age_s, state in (
        (0.5, RECORDING),
        (4.9, RECORDING),
        (5.1, CUT),
        (3600.0, CUT),
        (-60.0, CUT),
    ):
        assert summary(tmp_path, now_ns=WALL_NS + round(age_s * S)).state == state, age_s


def test_killed_for_real(tmp_path, monkeypatch):
    helper = str(Path(__file__).with_name("small_runs.py"))
    code = (
        "import sys, time; sys.path[:0] = [sys.argv[1]]; from small_runs import Real; from pathlib"
        " import Path\nfrom ckptcost.first.runs.recorder import Recorder; from ckptcost.first.runs.sinks import"
        " FileSink\nr = Recorder([Real()], FileSink(Path(sys.argv[2]))).start(); r.mark('note',"
        " by='wrap', command='train'); time.sleep(60)"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", code, str(Path(helper).parent), str(tmp_path)]
    )
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not (
            any(tmp_path.iterdir()) and summary(tmp_path).command
        ):
            time.sleep(0.05)
        assert summary(tmp_path).state == RECORDING
    finally:
        running.kill()
        running.wait()
    monkeypatch.setattr(module, "LIVE_S", 0.0)  # without waiting for its last line to grow old
    seen = summary(tmp_path)
    assert (seen.state, seen.command, seen.exit_code) == (CUT, "train", None)


@pytest.mark.parametrize("after", [0, 300])
def test_the_command_and_how_it_ended(tmp_path, after):
    recorded(
        tmp_path,
        seconds=320,
        command="train.py --big",
        exit_code=137,
        after=after,
        saves=range(1, 318, 3),
        count=8,
    )
    seen = summary(tmp_path)
    assert seen.bytes > 1_000_000, "the exit's line is far from both ends"
    assert (seen.command, seen.exit_code) == ("train.py --big", 137)
    told = count_marks(one_of(tmp_path))
    assert (told.command, told.exit_code) == ("train.py --big", 137)


def test_marks_of_a_hook_are_no_command(tmp_path):
    recorder = recorded(tmp_path, seconds=2, stop=False)
    recorder.mark("note", command="rm", exit_status=1, text='"by":"wrap"')
    recorder.stop()
    assert summary(tmp_path).command == ""


def test_parts_and_a_lost_one(tmp_path):
    recorded(tmp_path, seconds=60, part_bytes=6_000)
    parts = sorted(tmp_path.iterdir())
    assert len(parts) > 3
    whole = summary(tmp_path)
    assert whole.length_s == pytest.approx(load(tmp_path).duration_s)
    assert list(whole.sizes) == [part.name for part in parts]
    parts[1].unlink()
    assert "part 1 not here" in summary(tmp_path).problems[0]
    parts[-1].unlink()
    cut = summary(tmp_path)
    assert cut.state == CUT
    assert cut.length_s == pytest.approx(load(tmp_path).duration_s)


def test_the_second_recorder_of_a_host_has_the_last_word(tmp_path):
    recorded(tmp_path, seconds=4, stop=False)
    recorded(tmp_path, seconds=4, start_ns=10 * S, wall_ns=WALL_NS + 10 * S)
    file = tmp_path / "node1.001.jsonl"
    first, _, rest = file.read_bytes().partition(b"\n")
    file.write_bytes(encode({**decode(first), "pid": 77}) + rest)
    assert summary(tmp_path).state == COMPLETE
    assert summary(tmp_path).length_s == pytest.approx(load(tmp_path).duration_s)
    file.write_bytes(file.read_bytes()[:-40])
    assert summary(tmp_path).state == CUT


def test_every_host_has_to_end(tmp_path):
    recorded(tmp_path, seconds=4, host="node1")
    recorded(tmp_path, seconds=3, host="node2", stop=False, start_ns=500 * S)
    seen = summary(tmp_path)
    assert (seen.state, seen.hosts) == (CUT, ("node1", "node2"))


def test_several_runs_are_told_apart(tmp_path):
    recorded(tmp_path, seconds=4, run_id="a" * 32)
    recorded(tmp_path, seconds=6, run_id="b" * 32)
    with pytest.raises(RunFileError, match="2 runs in here"):
        summary(tmp_path)
    with pytest.raises(RunFileError, match="no run whose id"):
        summary(tmp_path, "c")
    assert summary(tmp_path, "b").length_s == pytest.approx(6.0, abs=0.5)
    assert summary(tmp_path, "a").length_s == pytest.approx(4.0, abs=0.5)
    assert len(summary(tmp_path, "a").sizes) == 1


@pytest.mark.parametrize("what", ["nothing", "empty", "pipe", "other"])
def test_no_run(tmp_path, what):
    path = tmp_path / "x.jsonl"
    if what == "empty":
        path.touch()
    elif what == "pipe":
        import os

        os.mkfifo(path)
    elif what == "other":
        path.write_text("{}\n")
    with pytest.raises(RunFileError):
        summary(path)


def test_marks_are_counted_as_the_reader_has_them(tmp_path):
    recorder = recorded(tmp_path, seconds=30, saves=(3, 9, 15), stop=False)
    recorder.mark("begin", "load", of="load", bytes=5)
    recorder.mark("returned", "load")
    recorder.mark("note", text='a text with "k":"mark" in it')
    recorder.stop()
    file = tmp_path / "node1.000.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if b'"k":"mark"' in line and b'"begin"' in line)
    lines[at] = lines[at].replace(b"step", b"stop")
    lines.append(seal_line('{"k":"mark","t":1,"name":"a","window":"","rank":1e400,"by":""'))
    file.write_bytes(b"".join(lines))  # one whose checksum does not fit any more, and no rank
    told, truth = count_marks(one_of(tmp_path)), load(tmp_path)
    assert sum(told.names.values()) == len(truth.marks)
    assert (
        told.names["durable", "watch"] == sum(mark.name == "durable" for mark in truth.marks) == 3
    )
    assert (told.saves, told.loads) == (3, 1)


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the kernel counts no bytes here")
def test_the_middle_is_not_read(tmp_path):
    recorded(tmp_path / "a", seconds=30)
    source = tmp_path / "a" / "node1.000.jsonl"
    first, _, rest = source.read_bytes().partition(b"\n")
    (tmp_path / "b").mkdir()
    with (tmp_path / "b" / "node1.000.jsonl").open("wb") as file:
        file.write(first + b"\n")
        file.seek(500_000_000)  # a hole
        file.write(b"\n" + rest)
    shutil.rmtree(tmp_path / "a")

    def read_bytes():
        return int(Path("/proc/self/io").read_text().split()[1])

    before = read_bytes()
    assert summary(tmp_path / "b").state == COMPLETE
    assert read_bytes() - before < 1_000_000
