"""Parts: rotation, a limit on the whole, and disks that are full, for a while or for good."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import time

import pytest
from steady_meters import Steady
from waiting import wait_for

from ckptcost.first.errors import OutputError
from ckptcost.first.runs import pump as pump_module
from ckptcost.first.runs import writer as writer_module
from ckptcost.first.runs.clocks import S, VirtualClock
from ckptcost.first.runs.header import Header
from ckptcost.first.runs.lines import Raw, decode, encode, raw_line
from ckptcost.first.runs.pump import MARK, RAW, SECOND, Pump
from ckptcost.first.runs.reader import load
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink
from ckptcost.first.runs.writer import WriteFailed, Writer


def head(part, dropped):
    return encode(Header(run="r", host="n", part=part, dropped=dropped, monotonic_ns=part).fields())


def line_of(number):
    return encode(
        {"k": "mark", "t": number, "name": "note", "window": str(number), "rank": 0, "by": "api"}
    )


def all_lines(directory):
    for path in sorted(directory.glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            yield path.name, decode(line)


def windows_in(directory):
    return [int(fields["window"]) for _, fields in all_lines(directory) if fields["k"] == "mark"]


def test_parts_are_full_but_never_over_and_lose_nothing(tmp_path):
    writer = Writer(tmp_path, "n", "r", head, part_bytes=2000)
    for start in range(0, 200, 7):
        writer.write([line_of(number) for number in range(start, min(start + 7, 200))])
    writer.close()
    files = sorted(tmp_path.iterdir())
    assert len(files) > 5
    assert all(1700 < file.stat().st_size <= 2000 for file in files[:-1])
    assert windows_in(tmp_path) == list(range(200))
    assert [fields["part"] for _, fields in all_lines(tmp_path) if fields["k"] == "run"] == list(
        range(len(files))
    )


def test_a_line_longer_than_a_part_gets_one_of_its_own(tmp_path):
    writer = Writer(tmp_path, "n", "r", head, part_bytes=500)
    writer.write([line_of(1), encode({"k": "event", "t": 1, "text": "x" * 5000}), line_of(2)])
    writer.close()
    assert windows_in(tmp_path) == [1, 2]


def test_the_oldest_go_and_the_next_header_says_so(tmp_path):
    writer = Writer(tmp_path, "n", "r", head, part_bytes=2000, most_bytes=8000)
    for number in range(300):
        writer.write([line_of(number)])
    writer.close()
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 8000
    headers = [fields for _, fields in all_lines(tmp_path) if fields["k"] == "run"]
    assert headers[-1]["dropped"] == [0, headers[0]["part"] - 1]
    assert windows_in(tmp_path)[-1] == 299
    run = load(tmp_path)
    assert len(run.marks) == len(windows_in(tmp_path))


def test_a_successor_counts_old_parts_of_this_run_and_touches_no_others(tmp_path):
    Writer(tmp_path, "n", "r", head, part_bytes=2000).close()
    other = tmp_path / "n.001.jsonl"
    other.write_bytes(encode(Header(run="another", host="n").fields()) + b"x" * 9000)
    garbage = tmp_path / "n.002.jsonl"
    garbage.write_bytes(b"\xff" * 9000)
    writer = Writer(tmp_path, "n", "r", head, part_bytes=2000, most_bytes=4100)
    for number in range(100):
        writer.write([line_of(number)])
    writer.close()
    assert other.stat().st_size > 9000
    assert garbage.stat().st_size == 9000
    assert not (tmp_path / "n.000.jsonl").exists()


class Disk:
    """os.write with so much room; a write that does not fit is cut off, as the kernel does."""

    def __init__(self, monkeypatch, room, error=errno.ENOSPC):
        self.room, self.error, self.kept = room, error, os.write
        monkeypatch.setattr(writer_module.os, "write", self.write)

    def write(self, fd, data):
        if self.room <= 0:
            raise OSError(self.error, os.strerror(self.error))
        done = self.kept(fd, bytes(data[: self.room]))
        self.room -= done
        return done


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("room", range(0, 400, 13))
def test_what_did_not_fit_is_taken_back_out(tmp_path, monkeypatch, room, error):
    writer = Writer(tmp_path, "n", "r", head)
    lines = [line_of(number) for number in range(6)]
    disk = Disk(monkeypatch, room, error)
    with pytest.raises(WriteFailed) as caught:
        writer.write(lines)
    assert windows_in(tmp_path) == list(range(caught.value.done))
    disk.room = 10_000
    writer.write(lines[caught.value.done :])
    writer.close()
    assert windows_in(tmp_path) == list(range(6))


def test_where_nothing_can_be_taken_back_a_torn_line_stands_alone(tmp_path, monkeypatch):
    writer = Writer(tmp_path, "n", "r", head)
    lines = [line_of(number) for number in range(4)]
    disk = Disk(monkeypatch, len(lines[0]) + 20)

    def refuse(fd, size):
        raise OSError(errno.EIO, "I/O error")

    monkeypatch.setattr(writer_module.os, "ftruncate", refuse)
    with pytest.raises(WriteFailed) as caught:
        writer.write(lines)
    disk.room = 10_000
    writer.write(lines[caught.value.done :])
    writer.close()
    run = load(tmp_path)
    assert [mark.window for mark in run.marks] == ["0", "1", "2", "3"]
    assert [problem.line for problem in run.problems] == [3]


def test_a_part_whose_header_does_not_fit_is_not_left_behind(tmp_path, monkeypatch):
    writer = Writer(tmp_path, "n", "r", head, part_bytes=1200)
    disk = Disk(monkeypatch, 1200)
    lines = [line_of(number) for number in range(30)]
    done = 0
    with pytest.raises(WriteFailed) as caught:
        writer.write(lines)
    done = caught.value.done
    disk.room = 100_000
    writer.write(lines[done:])
    writer.close()
    assert windows_in(tmp_path) == list(range(30))
    assert load(tmp_path).problems == ()


def pumping(tmp_path, **more):
    clock = VirtualClock()
    return Pump(Writer(tmp_path, "n", "r", head), clock, threaded=False, **more), clock


def tick(number):
    return raw_line(Raw(number, (0,), ((float(number),),)))


def test_a_full_disk_for_a_while_loses_ticks_before_marks(tmp_path, monkeypatch):
    pump, clock = pumping(tmp_path, limits=(3000, 3000, 100_000))
    disk = Disk(monkeypatch, 500)
    for number in range(500):
        pump.put(RAW, tick(number))
        if number % 10 == 0:
            pump.put(MARK, line_of(number))
        pump.put(SECOND, encode({"k": "second", "t": number}))
        clock.set(number * S)
        pump.flush()
    assert "No space left" in pump.problem
    assert sum(len(line) for _, line in pump._queue) < 3000 + 3000 + 100_000
    disk.room = 10_000_000
    clock.set(1000 * S)
    pump.close()
    assert pump.problem == ""
    assert windows_in(tmp_path) == list(range(0, 500, 10))
    gap = next(fields for _, fields in all_lines(tmp_path) if fields.get("name") == "gap")
    ticks = [fields["t"] for _, fields in all_lines(tmp_path) if fields["k"] == "raw"]
    assert len(ticks) + gap["detail"]["ticks"] == 500
    assert gap["detail"]["marks"] == 0
    assert gap["text"].startswith("nothing could be written (No space left")
    assert ticks[-1] == 499


def test_what_comes_while_a_write_fails_is_kept_behind_it(tmp_path, monkeypatch):
    pump, clock = pumping(tmp_path)

    def fail(lines):
        pump.put(MARK, line_of(3))
        raise WriteFailed(1, OSError(errno.ENOSPC, "No space left on device"))

    for number in range(3):
        pump.put(MARK, line_of(number))
    with monkeypatch.context() as patched:
        patched.setattr(pump._writer, "write", fail)
        pump.flush()
    clock.set(10 * S)
    pump.close()
    assert windows_in(tmp_path) == [1, 2, 3]  # the first was said to be in the file


def test_a_disk_that_stays_full_ends_quietly(tmp_path, monkeypatch):
    recorder = Recorder([Steady()], FileSink(tmp_path), host="n")
    recorder.start()
    wait_for(lambda: recorder.stats.ticks)
    Disk(monkeypatch, 0)
    recorder.mark("begin", "w")
    wait_for(lambda: recorder.stats.problem)
    recorder.stop()
    assert "No space left" in recorder.stats.problem
    monkeypatch.undo()
    assert load(tmp_path).ended is False


def test_a_sync_each_second_and_rarer_where_asked(tmp_path, monkeypatch):
    pump, clock = pumping(tmp_path, sync_s=5.0)
    synced = []
    monkeypatch.setattr(
        writer_module.os, "fdatasync", lambda fd: synced.append(clock.now_ns() // S)
    )
    for second in range(22):
        clock.set(second * S)
        pump.put(MARK, line_of(second))
        pump.step()
    assert synced == [5, 10, 15, 20]
    assert pump_module.SYNC_S == 1.0


@pytest.mark.parametrize(("error", "said"), [(errno.EINVAL, ""), (errno.EIO, "Input/output")])
def test_a_file_system_that_cannot_sync_and_one_that_fails(tmp_path, monkeypatch, error, said):
    pump, clock = pumping(tmp_path)

    def refuse(fd):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(writer_module.os, "fdatasync", refuse)
    pump.put(MARK, line_of(1))
    clock.set(10 * S)
    pump.step()
    assert said in pump.problem
    assert bool(pump.problem) == bool(said)


def test_a_disk_that_hangs_does_not_hold_up_the_end(tmp_path, monkeypatch):
    import threading

    go = threading.Event()
    pump = Pump(Writer(tmp_path, "n", "r", head))
    kept = os.write
    monkeypatch.setattr(
        writer_module.os, "write", lambda fd, data: (go.wait(20), kept(fd, data))[1]
    )
    pump.put(MARK, line_of(1))
    start = time.monotonic()
    pump.put(MARK, line_of(2))
    pump.close(timeout_s=0.3)
    assert time.monotonic() - start < 10
    assert "did not answer" in pump.problem
    go.set()
    pump._thread.join()


def test_no_directory_no_run(tmp_path):
    (tmp_path / "file").write_text("")
    for bad in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OutputError):
            Writer(bad, "n", "r", head)


def test_a_really_full_disk(tmp_path):
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small disk here: {mounted.stderr.strip()}")
    try:
        clock = VirtualClock()
        recorder = Recorder(
            [Steady(count=4)], FileSink(tmp_path, part_bytes=30_000), clock, host="n"
        )
        recorder.begin()
        filler = tmp_path / "filler"
        filler.write_bytes(b"x" * 950_000)
        for second in range(1, 400):
            while recorder._next_ns <= second * S:
                recorder.step()
            if second % 20 == 0:
                recorder.mark("note", str(second))
        assert "No space left" in recorder.stats.problem
        filler.unlink()
        filler.touch()
        while recorder._next_ns <= 420 * S:
            recorder.step()
        recorder.stop()
        run = load(tmp_path)
        assert [problem.text for problem in run.problems] == []
        assert [mark.window for mark in run.marks] == [str(second) for second in range(20, 400, 20)]
        assert [event.name for event in run.events if event.domain == "recorder"] == ["gap"]
        assert run.ended
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
