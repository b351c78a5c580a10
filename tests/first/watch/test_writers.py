"""Who writes and whether training stands still: real processes in the four shapes that saves
have."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nobody import as_nobody

from ckptcost.first.watch import writers
from ckptcost.first.watch.writers import Writers, covers, open_for_writing

MIB = 1 << 20
JOB = """
import mmap, os, subprocess, sys, threading, time

mode, path = sys.argv[1:]
block = os.urandom(1 << 20)

def spin(while_):
    n = 0
    while while_():
        for _ in range(1000):
            n += 1

def write(parts=20):
    with open(path, "wb", buffering=0) as file:
        for _ in range(parts):
            file.write(block)
            time.sleep(0.01)

def mapped():
    with open(path, "w+b") as file:
        file.truncate(20 << 20)
        with mmap.mmap(file.fileno(), 0) as memory:
            for part in range(20):
                memory[part << 20 : (part + 1) << 20] = block
                time.sleep(0.01)

def save():
    loop = (
        "with open(path, 'wb', 0) as f:\\n"
        " for _ in range(20): f.write(bytes(1 << 20)); time.sleep(0.01)"
    )
    helper = [sys.executable, "-S", "-c", f"import time\\npath = {path!r}\\n{loop}"]
    if mode == "main":
        write()
    elif mode == "mapped":
        mapped()
    elif mode in ("joined", "behind", "idle"):
        thread = threading.Thread(target=write)
        thread.start()
        if mode == "behind":
            spin(thread.is_alive)
        thread.join()
    elif mode == "child":
        subprocess.run(helper, check=True)
    elif mode == "aside":
        child = subprocess.Popen(helper)
        spin(lambda: child.poll() is None)

if mode == "idle":
    time.sleep(0.3)
else:
    until = time.monotonic() + 0.3
    spin(lambda: time.monotonic() < until)
print("ready", flush=True)
sys.stdin.readline()
save()
print("done", flush=True)
sys.stdin.readline()
"""


def descendants(pid):
    try:
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(each for child in below for each in descendants(int(child)))]


def saved(mode, path, looking=True):
    """What is found about one save."""
    command = [sys.executable, "-S", "-c", JOB, mode, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as job:
        try:
            with contextlib.suppress(PermissionError):  # it is judged by the processor that it gets
                os.setpriority(os.PRIO_PROCESS, job.pid, -15)
            assert job.stdout.readline() == "ready\n"
            seen = Writers(lambda: descendants(job.pid))
            seen.begin()
            job.stdin.write("go\n")
            job.stdin.flush()
            if looking:
                deadline = time.monotonic() + 20.0
                while not seen.look([path.parent]):
                    assert time.monotonic() < deadline
                    time.sleep(0.002)
            assert job.stdout.readline() == "done\n"
            found = seen.end(20 * MIB)
        finally:
            job.kill()
    return job.pid, found


@pytest.mark.parametrize(
    ("mode", "code", "still"),
    [
        ("main", "MAIN_WROTE", True),
        ("joined", "MAIN_WAITED", True),
        ("behind", "MAIN_WORKED", False),
        ("child", "MAIN_WAITED", True),
        ("aside", "MAIN_WORKED", False),
    ],
)
def test_the_shapes_of_a_save(tmp_path, mode, code, still):
    for turn in range(6):  # the main thread may not get the processor that it wants
        pid, (first, *_) = saved(mode, tmp_path / f"model{turn}.pt")
        if first.why != "UNCLEAR" and first.usual_share > writers.IDLE_SHARE:
            break
    assert (first.code, first.stood_still, first.trainer) == (code, still, pid)
    assert first.bytes >= 0.4 * 20 * MIB
    assert first.usual_share > writers.IDLE_SHARE
    if mode in ("main", "joined", "behind"):
        assert first.main_share > 0.9 if mode == "main" else first.main_share < 0.1
        assert (first.how, first.pid) == ("open", pid)


@pytest.mark.parametrize("mode", ["main", "child"])
def test_who_was_never_seen_with_the_file_open_is_found_by_the_bytes(tmp_path, mode):
    for turn in range(6):  # the main thread may not get the processor that it wants
        pid, (first, *_) = saved(mode, tmp_path / f"model{turn}.pt", looking=False)
        if first.code != "UNKNOWN":
            break
    assert (first.code, first.how) == ("MAIN_WROTE" if mode == "main" else "MAIN_WAITED", "bytes")
    assert pid == first.pid, "a helper that ended is in its parent's sums"
    assert first.bytes >= 20 * MIB


def test_what_is_written_through_a_mapping_counts(tmp_path):
    if not Path("/proc/self/io").exists():
        pytest.skip("no /proc/PID/io")
    _, (first, *_) = saved("mapped", tmp_path / "model.pt")
    if first.bytes == 0:
        pytest.skip("what lies under the temporary directory is not counted")
    assert first.code == "MAIN_WROTE"
    assert first.bytes >= 20 * MIB


def test_a_main_thread_that_always_waits_tells_nothing(tmp_path):
    _, (first, *_) = saved("idle", tmp_path / "model.pt")
    # starting Python is work, so its usual share is not nothing; made so here by what came before
    if first.usual_share < writers.IDLE_SHARE:
        assert (first.code, first.why, first.stood_still) == ("UNKNOWN", "ALWAYS_WAITS", None)
    else:
        assert first.code == "MAIN_WAITED"


def figures(
    parent=1, born_s=10.0, wchar=0, written=0, main_wchar=0, main_written=0, main_cpu_s=0.0
):
    return writers.ProcessReading(
        parent, born_s, wchar, written, main_wchar, main_written, main_cpu_s
    )


class Script:
    """Readings that were thought up, one after the other."""

    def __init__(self, monkeypatch, *stages):
        self.stages, self.at = stages, -1
        self.now_s = 1000.0
        monkeypatch.setattr(writers, "read_process", self._reading)
        monkeypatch.setattr(writers.time, "monotonic_ns", lambda: int(self.now_s * 1e9))
        monkeypatch.setattr(writers.time, "clock_gettime", lambda clock: self.now_s)
        self.seen = Writers(self._pids)

    def _pids(self):
        self.at += 1
        return list(self.stages[self.at])

    def _reading(self, pid, procfs):
        return self.stages[self.at][pid]

    def run(self, before_s, took_s, size_bytes=None):
        self.seen.rest()
        self.now_s += before_s
        self.seen.begin()
        self.now_s += took_s
        return self.seen.end(size_bytes)


def test_a_helper_that_waits_between_saves_is_not_the_trainer(monkeypatch):
    """A saver process that lives as long as the job: its own main thread writes, and that does not
    mean that training stood still."""
    trainer, helper = 7, 8
    script = Script(
        monkeypatch,
        {trainer: figures(main_cpu_s=100.0), helper: figures(trainer)},
        {trainer: figures(main_cpu_s=109.0), helper: figures(trainer)},
        {
            trainer: figures(main_cpu_s=113.5),
            helper: figures(trainer, wchar=90, main_wchar=90, main_cpu_s=3.0),
        },
    )
    (found,) = script.run(10.0, 5.0)
    assert (found.code, found.pid, found.trainer) == ("MAIN_WORKED", helper, trainer)
    assert (found.usual_share, found.cpu_share) == (pytest.approx(0.9), pytest.approx(0.9))


def test_a_launcher_that_always_waits_is_not_the_trainer(monkeypatch):
    launcher, rank = 7, 8
    script = Script(
        monkeypatch,
        {launcher: figures(), rank: figures(launcher, main_cpu_s=1.0)},
        {launcher: figures(), rank: figures(launcher, main_cpu_s=9.0)},
        {launcher: figures(), rank: figures(launcher, wchar=90, main_wchar=85, main_cpu_s=9.5)},
    )
    (found,) = script.run(10.0, 5.0)
    assert (found.code, found.pid, found.trainer) == ("MAIN_WROTE", rank, rank)


@pytest.mark.parametrize(
    ("usual_s", "used_s", "took_s", "answer"),
    [
        (0.5, 0.0, 5.0, ("UNKNOWN", "ALWAYS_WAITS")),
        (9.0, 0.2, 5.0, ("MAIN_WAITED", "")),
        (9.0, 1.5, 5.0, ("UNKNOWN", "UNCLEAR")),
        (9.0, 4.0, 5.0, ("MAIN_WORKED", "")),
        (9.0, 0.0, 0.01, ("UNKNOWN", "TOO_SHORT")),
        (1.5, 0.05, 5.0, ("MAIN_WAITED", "")),
    ],
)
def test_what_the_main_thread_did_is_held_against_what_it_does_otherwise(
    monkeypatch, usual_s, used_s, took_s, answer
):
    script = Script(
        monkeypatch,
        {7: figures()},
        {7: figures(main_cpu_s=usual_s)},
        {7: figures(wchar=90, main_wchar=9, main_cpu_s=usual_s + used_s)},
    )
    (found,) = script.run(10.0, took_s)
    assert (found.code, found.why) == answer


def test_memory_counts_what_was_called_and_mappings_what_was_dirtied(monkeypatch):
    script = Script(
        monkeypatch,
        {7: figures()},
        {7: figures(wchar=5)},
        {7: figures(wchar=6, written=90, main_written=90)},
    )
    (found,) = script.run(10.0, 5.0)
    assert (found.bytes, found.main_share) == (90, 1.0)


def test_a_process_number_that_was_given_away_begins_anew(monkeypatch):
    script = Script(
        monkeypatch,
        {7: figures(wchar=1000, main_cpu_s=100.0)},
        {7: figures(wchar=1000, main_cpu_s=100.0)},
        {7: figures(born_s=1012.0, wchar=90, main_wchar=90)},
    )
    (found,) = script.run(10.0, 5.0)
    assert (found.bytes, found.code, found.why) == (
        90,
        "UNKNOWN",
        "ALWAYS_WAITS",
    ), "made for the save: a helper, of nobody that is known"


def test_nobody_wrote_so_much(monkeypatch):
    script = Script(monkeypatch, {7: figures()}, {7: figures()}, {7: figures(wchar=10)})
    assert script.run(10.0, 5.0, size_bytes=1000) == [writers.SeenWriter("UNKNOWN", "NO_WRITER")]


def test_all_ranks_are_told(monkeypatch):
    now = {pid: figures(main_cpu_s=9.0) for pid in (7, 8, 9)}
    after = {
        7: figures(wchar=90, main_wchar=90),
        8: figures(wchar=80, main_wchar=80),
        9: figures(wchar=2),
    }
    script = Script(monkeypatch, {pid: figures() for pid in now}, now, after)
    assert [(each.pid, each.code) for each in script.run(10.0, 5.0)] == [
        (7, "MAIN_WROTE"),
        (8, "MAIN_WROTE"),
    ]


def test_processes_that_are_gone():
    seen = Writers(lambda: [2**22 - 3])
    seen.begin()
    assert not seen.look(["/"])
    assert seen.end() == [writers.SeenWriter("UNKNOWN", "NO_WRITER")]


def test_other_peoples_processes():
    def look():
        seen = Writers(lambda: [1])
        seen.begin()
        return seen.end()[0].why

    assert as_nobody(look) == "'NOT_PERMITTED'"


def test_files_open_for_writing(tmp_path):
    (tmp_path / "read").write_text("x")
    with (
        (tmp_path / "read").open(),
        (tmp_path / "written").open("wb") as file,
        (tmp_path / "both").open("w+b"),
        (tmp_path / "gone").open("wb"),
    ):
        (tmp_path / "gone").unlink()
        file.write(b"x" * 5)
        file.flush()
        found = {
            Path(each.path).name: each
            for each in open_for_writing([os.getpid()])
            if covers([str(tmp_path)], each.path)
        }
    assert set(found) == {"written", "both", "gone"}
    assert (found["written"].size_bytes, found["written"].pid) == (5, os.getpid())


def test_a_path_covers_what_lies_under_it():
    assert covers(["/a/b/"], "/a/b/c")
    assert covers(["/x", "/a/b"], "/a/b")
    assert not covers(["/a/b"], "/a/bc")
    assert covers(["/"], "/a")
    assert not covers([], "/a")


def test_how_many_files_were_open_at_once(tmp_path):
    growing = writers.Growing()
    paths = [str(tmp_path / name) for name in "abc"]
    for path in paths:
        Path(path).write_bytes(b"x" * 10)
    seen = [writers.OpenForWriting(1, path, 10, time.time_ns()) for path in paths]
    for each in seen:
        growing.look([each], 0)
    assert growing.at_once == 1, "one after another"
    growing.look(seen[:2], 0)
    assert growing.at_once == 2
    growing.clear()
    assert growing.at_once == 0
