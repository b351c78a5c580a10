"""Bursts of writing: made-up counters with known edges, and real processes that write in all the
ways there are."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nobody import as_nobody

from ckptcost.first.watch import bursts
from ckptcost.first.watch.bursts import BegunBurst, Burster, Bursts, EndedBurst
from ckptcost.first.watch.writers import name_of

MIB = 1 << 20
S = 1_000_000_000


def run(detector, pieces, until_s, step_s=0.05, jitter=lambda i: 0.0):
    """Feed what a writer wrote by pieces (from_s, to_s, bytes), read at steps. All events."""
    events = []
    count = round(until_s / step_s)
    for i in range(count + 1):
        at_s = i * step_s + jitter(i)
        total = sum(size * min(max((at_s - a) / (b - a), 0.0), 1.0) for a, b, size in pieces)
        event = detector.feed(round(at_s * S), round(total))
        if event:
            events.append(event)
    return events


@settings(max_examples=25, deadline=None)
@given(
    begin_s=st.floats(5.0, 8.0),
    length_s=st.floats(0.3, 20.0),
    rate=st.floats(20e6, 5e9),
    step_s=st.sampled_from([0.01, 0.05, 0.2]),
    log=st.sampled_from([0, 2_000, 200_000]),
)
def test_a_steady_save_is_found_with_its_edges(begin_s, length_s, rate, step_s, log):
    end_s = begin_s + length_s
    until_s = end_s + 5.0
    pieces = [(begin_s, end_s, rate * length_s), (0.0, until_s, log * until_s)]
    begun, over = run(Bursts(), pieces, until_s, step_s, jitter=lambda i: step_s * 0.2 * (i % 3))
    assert isinstance(begun, BegunBurst)
    assert isinstance(over, EndedBurst)
    assert abs(begun.begin_ns / S - begin_s) <= begun.unsure_ns / S + 1e-6 <= 1.5 * step_s
    assert abs(over.written_ns / S - end_s) <= over.unsure_ns / S + 1e-6 <= 1.5 * step_s
    assert over.begin_ns == begun.begin_ns
    assert over.bytes == pytest.approx(rate * length_s, rel=0.02, abs=3 * log + 10)


def test_a_steady_edge_is_found_more_finely_than_the_readings():
    begun, over = run(Bursts(), [(5.013, 7.037, 2e9)], 12.0)
    assert begun.begin_ns / S == pytest.approx(5.013, abs=1e-6)
    assert over.written_ns / S == pytest.approx(7.037, abs=1e-6)


@pytest.mark.parametrize(
    "pieces",
    [
        [(0.0, 60.0, 60 * 100_000)],
        [(second, second + 0.01, 150_000) for second in range(60)],
        [(second, second + 0.01, 3 * MIB) for second in range(0, 60, 5)],
        [],
    ],
)
def test_logging_is_no_save(pieces):
    assert run(Bursts(), pieces, 60.0) == []


def test_a_save_beside_lumps_of_logging_ends():
    lumps = [(second / 2, second / 2 + 0.01, 150_000) for second in range(80)]
    begun, over = run(Bursts(), [(20.2, 22.2, 400 * MIB), *lumps], 40.0)
    assert begun.begin_ns / S == pytest.approx(20.2, abs=0.3)
    assert 22.1 <= over.written_ns / S <= 22.3 + 2.0


def test_who_always_writes_much_is_learned():
    """A data loader that spills 20 MB/s: a save is five times that."""
    loader = (0.0, 2000.0, 2000 * 20e6)
    first, level, begun, over = run(Bursts(most_s=30.0), [loader, (100.0, 103.0, 3 * 800e6)], 120.0)
    assert (isinstance(first, BegunBurst), level.is_level) == (True, True)
    assert begun.begin_ns / S == pytest.approx(100.0, abs=0.06)
    assert over.written_ns / S == pytest.approx(103.0, abs=0.06)
    assert not over.is_level


def test_a_pause_does_not_part_a_save_and_a_long_one_does():
    short = run(Bursts(), [(5.0, 6.0, 1e8), (7.5, 8.5, 1e8)], 15.0)
    assert [type(event) for event in short] == [BegunBurst, EndedBurst]
    assert short[1].bytes == 2e8
    long = run(Bursts(), [(5.0, 6.0, 1e8), (9.5, 10.5, 1e8)], 15.0)
    assert [type(event) for event in long] == [BegunBurst, EndedBurst, BegunBurst, EndedBurst]


def test_one_save_after_another_is_known_each():
    saves = [(10.0 * turn, 10.0 * turn + 1.0, 1e8) for turn in range(1, 8)]
    assert [type(event) for event in run(Bursts(), saves, 90.0)] == [BegunBurst, EndedBurst] * 7


def test_a_save_in_the_dark_between_two_readings():
    detector = Bursts()
    assert detector.feed(0, 0) is None
    assert detector.feed(S, 0) is None
    assert detector.feed(4 * S, 10**9) is None
    assert detector.on
    begun = detector.feed(6 * S, 10**9)
    assert (begun.begin_ns, begun.unsure_ns) == (S, 3 * S), "not later than the reading before"
    assert detector.bytes == 10**9
    over = detector.feed(9 * S, 10**9)
    assert (over.written_ns, over.unsure_ns, over.bytes) == (4 * S, 3 * S, 10**9)


def test_the_end_of_the_process_ends_the_burst():
    detector = Bursts()
    run(detector, [(1.0, 9.0, 1e9)], 3.0)
    assert detector.on
    over = detector.finish()
    assert over.written_ns / S == pytest.approx(3.0, abs=0.06)
    assert detector.finish() is None


def test_readings_that_stand_still_or_fall_are_no_bytes():
    detector = Bursts()
    for t_ns, total in ((0, 100), (0, 200), (S, 100), (S, 10**9), (2 * S, 50)):
        assert detector.feed(t_ns, total) is None


def test_below_the_least_is_none():
    assert run(Bursts(least_bytes=100 * MIB), [(5.0, 6.0, 90 * MIB)], 10.0) == []
    assert len(run(Bursts(least_bytes=80 * MIB), [(5.0, 6.0, 90 * MIB)], 10.0)) == 2


# --- real processes

JOB = """
import mmap, os, subprocess, sys, time
how, folder = sys.argv[1:]
block = os.urandom(1 << 20)
path = os.path.join(folder, "model.pt")

def plain(path):
    with open(path, "wb", buffering=0) as file:
        for _ in range(24):
            file.write(block)
            time.sleep(0.008)

def save():
    if how == "buffered":
        plain(path)
    elif how == "direct":
        memory = mmap.mmap(-1, 1 << 20)
        memory.write(block)
        fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
        for _ in range(24):
            os.write(fd, memory)
            time.sleep(0.008)
        os.close(fd)
    elif how == "mapped":
        with open(path, "w+b") as file:
            file.truncate(24 << 20)
            with mmap.mmap(file.fileno(), 0) as memory:
                for part in range(24):
                    memory[part << 20 : (part + 1) << 20] = block
                    time.sleep(0.008)
    elif how == "child":
        pid = os.fork()
        if pid == 0:
            plain(path)
            os._exit(0)
        os.waitpid(pid, 0)
    elif how == "folder":
        os.mkdir(os.path.join(folder, "tmp"))
        for part in "ab":
            plain(os.path.join(folder, "tmp", part))
        os.rename(os.path.join(folder, "tmp"), os.path.join(folder, "step_9"))
    elif how == "twice":
        plain(path)
        time.sleep(0.7)
        plain(path)

log = open(os.path.join(folder, "train.log"), "w", buffering=1)
log.write("x" * 100)
print("ready", flush=True)
sys.stdin.readline()
begun = time.monotonic_ns()
try:
    save()
except OSError as error:
    print("cannot", error, flush=True)
log.write("saved")
print(begun, time.monotonic_ns(), flush=True)
sys.stdin.readline()
"""


class Told:
    def __init__(self):
        self.marks = []
        self.heard = threading.Condition()

    def __call__(self, name, window="", *, by="api", rank=None, t_ns=None, **detail):
        with self.heard:
            self.marks.append((name, window, t_ns, detail | {"by": by}))
            self.heard.notify_all()

    def wait(self, name, count=1, within_s=10.0):
        def found():
            return len([mark for mark in self.marks if mark[0] == name]) >= count

        with self.heard:
            assert self.heard.wait_for(found, within_s), (name, self.marks)


class Saved:
    """A job that saves, watched."""

    def __init__(self, how, folder, settle=True, count=1):
        self.told, self.expected, self.settled = Told(), [], []
        gap_s = 2.0 if how == "direct" else 0.4  # a drive that others use too makes direct I/O wait
        command = [sys.executable, "-S", "-c", JOB, how, str(folder)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as job:
            try:
                assert job.stdout.readline() == "ready\n"
                burster = Burster(
                    job.pid,
                    self.told,
                    self.expected.append,
                    self._settle if settle else None,
                    poll_s=0.01,
                    bursts=Bursts(gap_s=gap_s, least_bytes=MIB // 2),
                ).start()
                time.sleep(0.1)
                job.stdin.write("go\n")
                job.stdin.flush()
                said = job.stdout.readline()
                if said.startswith("cannot"):
                    burster.stop()
                    pytest.skip(said)
                self.begun_ns, self.ended_ns = map(int, said.split())
                self.told.wait("written", count)
            finally:
                job.kill()
                job.wait()
        burster.stop()
        assert burster.absence is None

    def _settle(self, window, paths, since_ns, written_ns):
        self.settled.append((window, sorted(map(str, paths)), since_ns, written_ns))

    def of(self, name):
        return [mark for mark in self.told.marks if mark[0] == name]


@pytest.mark.parametrize("how", ["buffered", "direct", "mapped", "child"])
def test_a_real_save_is_found(tmp_path, how):
    saved = Saved(how, tmp_path)
    ((_, window, begin_ns, begin),) = saved.of("begin")
    ((_, same, written_ns, written),) = saved.of("written")
    assert window == same == "model.pt"
    assert (begin["by"], begin["how"], written["how"]) == ("watch", "io", "io")
    assert written["path"] == str(tmp_path / "model.pt")
    assert written["files"] == 1, "the log is none of it"
    assert written["bytes"] == pytest.approx(24 * MIB, rel=0.05)
    slack_ns = 60_000_000  # the poll and a busy machine
    assert saved.begun_ns - slack_ns <= begin_ns <= saved.begun_ns + 150_000_000
    assert saved.ended_ns - 150_000_000 <= written_ns <= saved.ended_ns + slack_ns
    assert saved.expected
    assert saved.settled == [("model.pt", [str(tmp_path / "model.pt")], begin_ns, written_ns)]


def test_a_folder_that_is_renamed_in_the_end(tmp_path):
    saved = Saved("folder", tmp_path)
    ((window, paths, _, _),) = saved.settled
    assert window in ("a", "tmp"), "the name it had when it began"
    assert str(tmp_path / "step_9" / "b") in paths
    assert saved.of("written")[0][3]["path"] == (
        str(tmp_path / "step_9") if len(paths) == 2 else paths[0]
    )


def test_the_same_name_twice_makes_two_windows(tmp_path):
    saved = Saved("twice", tmp_path, count=2)
    assert [mark[1] for mark in saved.of("begin")] == ["model.pt", "model.pt (burst 2)"]
    assert [mark[1] for mark in saved.of("written")] == ["model.pt", "model.pt (burst 2)"]


def test_what_nobody_saw_open_has_a_number_and_a_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(bursts, "open_for_writing", lambda pids: [])
    saved = Saved("buffered", tmp_path)
    assert [mark[1] for mark in saved.of("begin")] == ["burst 1"]
    assert [mark[3]["durable_why"] for mark in saved.of("note")] == ["FILES_UNKNOWN"]
    assert saved.settled == []
    assert "path" not in saved.of("written")[0][3]


def test_a_job_that_is_killed_in_the_middle(tmp_path):
    told = Told()
    command = [
        sys.executable,
        "-S",
        "-c",
        JOB.replace("range(24)", "range(10**6)"),
        "buffered",
        str(tmp_path),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout.readline() == "ready\n"
        burster = Burster(job.pid, told, lambda within_s: None, poll_s=0.01).start()
        job.stdin.write("go\n")
        job.stdin.flush()
        told.wait("begin")
        job.kill()
        killed_ns = time.monotonic_ns()
    told.wait("written")
    burster.stop()
    assert told.marks[1][2] <= killed_ns + 100_000_000
    assert not [name for name in os.listdir("/proc/self/fd") if links_to(name, tmp_path)]


def links_to(name, folder):
    try:
        return os.readlink(f"/proc/self/fd/{name}").startswith(str(folder))
    except OSError:
        return False


def test_stopping_ends_what_is_going_on(tmp_path):
    told = Told()
    command = [
        sys.executable,
        "-S",
        "-c",
        JOB.replace("range(24)", "range(10**6)"),
        "buffered",
        str(tmp_path),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as job:
        try:
            assert job.stdout.readline() == "ready\n"
            burster = Burster(job.pid, told, lambda within_s: None, poll_s=0.01).start()
            job.stdin.write("go\n")
            job.stdin.flush()
            told.wait("begin")
            burster.stop()
        finally:
            job.kill()
    assert [mark[0] for mark in told.marks][:2] == ["begin", "written"]


def test_a_process_that_is_gone_is_absent():
    burster = Burster(2**22 - 3, Told(), lambda within_s: None).start()
    assert "no such file" in burster.absence.reason
    burster.stop()


def test_another_users_process_is_absent():
    said = as_nobody(lambda: tuple(Burster(1, Told(), lambda within_s: None).absence))
    what, reason, remedy, kind = ast.literal_eval(said)
    assert (what, reason, kind) == (
        "bursts of process 1",
        "/proc/1/io: permission denied",
        "storage",
    )
    assert "owner" in remedy


def test_names():
    assert name_of(["/c/step_9/b", "/c/step_9/a"]) == "step_9"
    assert name_of(["/c/step_9/b", "/c/step_8/a"]) == "b"
    assert name_of([]) == ""
