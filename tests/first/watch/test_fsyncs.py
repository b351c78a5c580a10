"""Syncs seen from outside: a made-up /proc for the order of events, real processes for what the
kernel says."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nobody import as_nobody

from ckptcost.first.watch import fsyncs
from ckptcost.first.watch.fsyncs import Fsyncs

MIB = 1 << 20
NUMBER = {name: int(number) for number, name in fsyncs._CALLS["x86_64"].items()}
AARCH64 = {name: int(number) for number, name in fsyncs._CALLS["aarch64"].items()}
JOB = """
import mmap, os, sys, threading, time
path, how, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
for _ in range(threads):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
fd = os.open(path, os.O_RDWR | os.O_CREAT)
block = bytes(48 << 20)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(3):
    os.pwrite(fd, block, 0)
    begun = time.monotonic_ns()
    if how == "msync":
        with mmap.mmap(fd, 0) as memory:
            memory.flush()
    else:
        getattr(os, how)(fd)
    print(begun, time.monotonic_ns(), flush=True)
print("over", flush=True)
sys.stdin.readline()
os._exit(0)
"""


class Job:
    """A made-up process."""

    def __init__(self, procfs: Path, pid=7, machine="x86_64"):
        self.procfs, self.pid = procfs, pid
        self.folder = procfs / str(pid)
        (self.folder / "fd").mkdir(parents=True)
        self.seen = Fsyncs(lambda: [pid], procfs=procfs, machine=machine)

    def thread(self, tid, text="running\n"):
        task = self.folder / "task" / str(tid)
        task.mkdir(parents=True, exist_ok=True)
        (task / "syscall").write_text(text)

    def opens(self, fd, path):
        (self.folder / "fd" / str(fd)).symlink_to(path)

    def calls(self, tid, name, *arguments, numbers=NUMBER):
        words = [*arguments, 0, 0, 0, 0, 0, 0][:6]
        self.thread(
            tid,
            f"{numbers[name]} "
            + " ".join(hex(word) for word in words)
            + " 0x7ffd00000000 0x7f0000000000\n",
        )


@pytest.fixture
def job(tmp_path, monkeypatch):
    monkeypatch.setattr(fsyncs, "_HOLE_NS", 60_000_000_000)  # a busy machine makes holes
    made = Job(tmp_path / "proc")
    yield made
    made.seen.stop()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.pt"
    path.write_text("x")
    return path


def test_a_sync_is_over_at_the_first_poll_that_does_not_find_it(job, file):
    job.opens(3, file)
    job.calls(7, "fsync", 3)
    job.seen.poll()
    job.seen.poll()
    (sync,) = job.seen.seen
    assert (sync.pid, sync.tid, sync.call, sync.path, sync.over_ns) == (
        7,
        7,
        "fsync",
        str(file),
        None,
    )
    assert sync.seen_ns > sync.begin_ns
    assert job.seen.synced([file]) is None, "it is not over"
    job.thread(7, "230 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0\n")
    job.seen.poll()
    found = job.seen.synced([file])
    assert found.over_ns == sync.over_ns > sync.seen_ns
    assert (found.files, found.of, found.all) == (1, 1, True)
    assert found.unsure_s == pytest.approx((sync.over_ns - sync.seen_ns) / 1e9)


def test_on_a_processor_inside_a_call_is_not_its_end(job, file):
    job.opens(3, file)
    for text in ("call", "running", "call", "running", "running"):
        if text == "call":
            job.calls(7, "fdatasync", 3)
        else:
            job.thread(7)
        job.seen.poll()
    (sync,) = job.seen.seen
    assert sync.begin_ns < sync.seen_ns < sync.over_ns


def test_the_same_call_much_later_is_another_one(job, file, monkeypatch):
    monkeypatch.setattr(fsyncs, "_HOLE_NS", 1_000_000)
    job.opens(3, file)
    job.calls(7, "fsync", 3)
    job.seen.poll()
    job.thread(7)
    job.seen.poll()
    time.sleep(0.003)
    job.calls(7, "fsync", 3)
    job.seen.poll()
    first, second = job.seen.seen
    assert (first.over_ns < second.begin_ns, second.over_ns) == (True, None)


def test_two_files_one_after_the_other(job, file, tmp_path):
    other = tmp_path / "other.pt"
    other.write_text("x")
    job.opens(3, file)
    job.opens(4, other)
    job.calls(7, "fsync", 3)
    job.seen.poll()
    job.calls(7, "fsync", 4)
    job.seen.poll()
    first, second = job.seen.seen
    assert (first.path, second.path) == (str(file), str(other))
    assert first.over_ns is not None
    assert job.seen.synced([file, other]).all is False, "the second goes on"
    job.thread(7, "-1 0x7ffd00000000 0x7f0000000000\n")
    job.seen.poll()
    assert job.seen.synced([file, other]).all


def test_a_file_is_known_by_its_inode_after_a_rename(job, tmp_path):
    folder = tmp_path / "step_9.tmp"
    folder.mkdir()
    (folder / "a").write_text("x")
    job.opens(3, folder / "a")
    job.calls(7, "fsync", 3)
    job.seen.poll()
    job.thread(7)
    job.seen.poll()
    folder.rename(tmp_path / "step_9")
    found = job.seen.synced([tmp_path / "step_9"])
    assert found.all
    (tmp_path / "step_9" / "b").write_text("x")
    found = job.seen.synced([tmp_path / "step_9"])
    assert (found.files, found.of, found.all) == (1, 2, False)


def test_syncing_all_counts_for_every_file(job, file):
    job.calls(7, "sync")
    job.seen.poll()
    job.thread(7)
    job.seen.poll()
    assert job.seen.synced([file]).all
    assert job.seen.seen[0].path == ""


def test_syncing_a_file_system_counts_for_its_files_only(job, file):
    job.opens(3, "/proc/self/status")
    job.calls(7, "syncfs", 3)
    job.seen.poll()
    job.thread(7)
    job.seen.poll()
    assert job.seen.synced([file]) is None
    (job.folder / "fd" / "3").unlink()
    job.opens(3, file.parent)
    job.calls(7, "fsync", 9)
    job.seen.poll()
    job.calls(7, "syncfs", 3)
    job.seen.poll()
    job.thread(7)
    job.seen.poll()
    assert job.seen.synced([file]).all


def test_starting_write_back_makes_nothing_safe(job, file):
    job.opens(3, file)
    job.calls(7, "sync_file_range", 3)
    job.seen.poll()
    job.thread(7)
    job.seen.poll()
    assert job.seen.seen[0].over_ns is not None
    assert job.seen.synced([file]) is None


def test_a_mapping_is_found_by_its_address(job, tmp_path):
    path = tmp_path / "two words.bin"
    path.write_text("x")
    there = path.stat()
    device = f"{os.major(there.st_dev):02x}:{os.minor(there.st_dev):02x}"
    (job.folder / "maps").write_text(
        "7f0000000000-7f0000001000 rw-p 00000000 00:00 0\n7f0000001000-7f0000009000 rw-s 00000000"
        f" {device} {there.st_ino}      {path}\n"
    )
    job.calls(7, "msync", 0x7F0000002000, 0x1000)
    job.seen.poll()
    job.thread(7)
    job.seen.poll()
    assert job.seen.seen[0].path == str(path)
    assert job.seen.synced([path]).all


def test_the_end_of_a_thread_ends_its_sync(job, file, monkeypatch):
    job.opens(3, file)
    job.calls(7, "fsync", 3)
    job.seen.poll()

    def gone(self, most=0):
        raise ProcessLookupError(3, "No such process")

    with monkeypatch.context() as patch:
        patch.setattr(fsyncs.OpenFile, "read", gone)
        job.seen.poll()
    assert job.seen.seen[0].over_ns is not None


def test_what_goes_on_when_we_stop_has_no_end(job, file):
    job.opens(3, file)
    job.calls(7, "fsync", 3)
    job.seen.poll()
    job.seen.stop()
    assert job.seen.seen[0].over_ns is None
    assert job.seen.synced([file]) is None


def test_another_processor_has_other_numbers(tmp_path, file):
    job = Job(tmp_path / "proc", machine="aarch64")
    job.opens(3, file)
    job.calls(7, "fsync", 3, numbers=AARCH64)
    job.seen.poll()
    assert [sync.call for sync in job.seen.seen] == ["fsync"]
    job.seen.stop()
    unknown = Fsyncs(lambda: [7], machine="s390x")
    unknown.start()
    assert unknown.why in fsyncs.WHY
    unknown.stop()


def test_many_threads_take_turns_and_the_busy_one_comes_first(job, file):
    job.opens(3, file)
    for tid in range(100, 300):
        job.thread(tid)
    job.thread(299, "1 0x3 0x0 0x10 0x0 0x0 0x0 0x0 0x0\n")
    for _ in range(200 // fsyncs.MOST_AT_ONCE + 2):
        job.seen.poll()
    job.calls(299, "fsync", 3)
    job.seen.poll()
    assert [sync.tid for sync in job.seen.seen] == [299], "it wrote, so it is asked at each poll"
    job.calls(150, "fsync", 3)
    for _ in range(200 // fsyncs.MOST_AT_ONCE + 2):
        job.seen.poll()
    assert {sync.tid for sync in job.seen.seen} == {150, 299}


def test_marks(job, file, tmp_path):
    told = []
    job.seen._tell = lambda name, window="", **more: told.append((name, window, more))
    assert job.seen.mark("w", [file]) is None
    assert told == []
    job.opens(3, file)
    job.calls(7, "fsync", 3)
    job.seen.poll()
    job.thread(7)
    job.seen.poll()
    job.seen.mark("w", [file], rank=2)
    other = tmp_path / "other"
    other.write_text("x")
    job.seen.mark("w", [file, other])
    (first, _, detail), (second, _, more) = told
    assert (first, detail["how"], detail["by"], detail["rank"], detail["t_ns"]) == (
        "synced",
        "fsync",
        "watch",
        2,
        job.seen.seen[0].over_ns,
    )
    assert (second, more["synced_files"], more["of_files"]) == ("note", 1, 2)


@pytest.fixture
def real(tmp_path):
    started = []

    def start(how, threads=0):
        command = [sys.executable, "-S", "-c", JOB, str(tmp_path / "model.pt"), how, str(threads)]
        job = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(job)
        assert job.stdout.readline() == "ready\n"
        return job

    yield start
    for job in started:
        job.kill()
        job.wait()
        job.stdin.close()
        job.stdout.close()


@pytest.mark.parametrize("how", ["fsync", "fdatasync", "msync"])
def test_a_real_job_is_seen_syncing(real, tmp_path, how):
    for _ in range(5):  # what takes less than a poll is not seen, and some drives are quick
        job = real(how, 3)
        seen = Fsyncs(lambda job=job: [job.pid], poll_s=0.001)
        seen.start()
        try:
            job.stdin.write("go\n")
            job.stdin.flush()
            spans = []
            while (line := job.stdout.readline()) != "over\n":
                spans.append(tuple(map(int, line.split())))
            deadline = time.monotonic() + 2.0
            while time.monotonic() < deadline and any(sync.over_ns is None for sync in seen.seen):
                time.sleep(0.005)
        finally:
            seen.stop()
        if seen.why:
            pytest.skip(fsyncs.WHY[seen.why])
        if any(sync.seen_ns >= spans[-1][0] for sync in seen.seen):
            break
    else:
        pytest.skip("this drive is too quick to be seen syncing")
    path = tmp_path / "model.pt"
    for sync in seen.seen:
        assert (sync.call, sync.path, sync.pid) == (how, str(path), job.pid)
        assert spans[0][0] <= sync.begin_ns <= sync.seen_ns <= spans[-1][1] + 50_000_000
        assert any(
            begun - 5_000_000 <= sync.begin_ns <= ended + 5_000_000 for begun, ended in spans
        )
    assert seen.synced([path]).all
    assert not any(name.endswith("/syscall") for name in open_files())


def open_files():
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.add(os.readlink(f"/proc/self/fd/{fd}"))
    return found


def test_watching_many_threads_costs_little(real):
    job = real("fsync", 150)
    seen = Fsyncs(lambda: [job.pid])
    seen.start()
    deadline = time.monotonic() + 10.0
    while len(seen._threads) < 150:
        assert time.monotonic() < deadline, "it has not found them all"
        time.sleep(0.005)
    before_s, begun = seen.cpu_s, time.monotonic()
    time.sleep(0.7)
    used_s, took_s = seen.cpu_s - before_s, time.monotonic() - begun
    seen.stop()
    assert 0.0 < used_s < 2 * fsyncs.SHARE * took_s


def test_a_process_that_may_not_be_traced():
    def look():
        seen = Fsyncs(lambda: [1])
        seen.poll()
        seen.poll()
        return seen.why, len(seen._threads)

    assert as_nobody(look) == "('NOT_PERMITTED', 0)"
