"""/proc/PID/io: made-up trees for the order of deaths, real processes for what the kernel does."""

from __future__ import annotations

import math
import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptcost.first.meters import process
from ckptcost.first.meters.base import Meter

MIB = 1 << 20
SIZE = 32 * MIB


class Processes:
    """A made-up /proc. A process that ends takes its files along; a kept descriptor must then fail
    as the kernel's does, so `OpenFile` is replaced by one that looks at the path."""

    def __init__(self, procfs: Path) -> None:
        self.procfs = procfs
        self.clock = 100

    def io(self, pid, written=0, cancelled=0, read=0):
        (self.procfs / str(pid) / "io").write_text(
            f"rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: {read}\nwrite_bytes:"
            f" {written}\ncancelled_write_bytes: {cancelled}\n"
        )

    def start(self, pid, parent=1, written=0, listed=True, cancelled=0, read=0):
        folder = self.procfs / str(pid)
        (folder / "task" / str(pid)).mkdir(parents=True)
        self.clock += 1
        (folder / "stat").write_text(
            f"{pid} (a b) c) S {parent} " + "0 " * 17 + f"{self.clock} 0 0\n"
        )
        self.io(pid, written, cancelled, read)
        if listed:
            (folder / "task" / str(pid) / "children").write_text("")
            above = self.procfs / str(parent) / "task" / str(parent) / "children"
            if above.exists():
                above.write_text(above.read_text() + f"{pid} ")

    def end(self, pid):
        for path in sorted((self.procfs / str(pid)).rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        (self.procfs / str(pid)).rmdir()

    def find(self, **more):
        return process.find(procfs=self.procfs, look_s=0.0, **more)


@pytest.fixture
def made(tmp_path, monkeypatch):
    class Looked:
        def __init__(self, path):
            self.path = path
            self.kept = path.open("rb")
            self.inode = os.stat(path).st_ino

        def read(self, most=4096):
            try:
                if os.stat(self.path).st_ino != self.inode:
                    raise ProcessLookupError(3, "No such process")
            except FileNotFoundError:
                raise ProcessLookupError(3, "No such process") from None
            self.kept.seek(0)
            return self.kept.read(most)

        def close(self):
            self.kept.close()

    monkeypatch.setattr(process, "OpenFile", Looked)
    return Processes(tmp_path)


def only(found):
    (meter,), absences = found
    assert absences == ()
    return meter


def test_three_channels_and_their_order(made):
    made.start(10, written=5, cancelled=7, read=3)
    meter = only(made.find(pids=[10]))
    assert isinstance(meter, Meter)
    assert [channel.name for channel in meter.channels] == [
        "process:10 written_bytes",
        "process:10 cancelled_bytes",
        "process:10 read_bytes",
    ]
    assert meter.read(0) == [5.0, 7.0, 3.0]
    meter.close()


@pytest.mark.parametrize(
    "listed", [True, False], ids=["children files", "by looking at every stat"]
)
def test_descendants_are_found_and_summed(made, listed):
    made.start(10, written=1, listed=listed)
    made.start(11, 10, written=10, listed=listed)
    made.start(12, 11, written=100, listed=listed)
    made.start(99, 1, written=1000, listed=listed)
    meter = only(made.find(pids=[10]))
    assert meter.read(0)[0] == 111.0
    made.start(13, 12, written=5000, listed=listed)
    assert meter.read(1)[0] == 5111.0
    meter.close()
    alone = only(made.find(pids=[10], descend=False))
    assert alone.read(0)[0] == 1.0
    alone.close()


def test_a_child_that_was_waited_for_is_not_counted_twice(made):
    made.start(10, written=1)
    made.start(11, 10, written=100)
    meter = only(made.find(pids=[10]))
    assert meter.read(0)[0] == 101.0
    made.end(11)
    made.io(10, written=1 + 130)  # the child wrote 30 more before it ended
    assert meter.read(1)[0] == 131.0
    assert meter.read(2)[0] == 131.0
    meter.close()


def test_a_child_that_nobody_waits_for_is_kept(made):
    made.start(10, written=1)
    made.start(11, 10, written=100)
    meter = only(made.find(pids=[10]))
    meter.read(0)
    made.end(11)
    assert meter.read(1)[0] == 101.0
    made.io(10, written=51)
    assert meter.read(2)[0] == 151.0
    meter.close()


def test_a_whole_branch_ends_at_once(made):
    made.start(10)
    made.start(11, 10, written=100)
    made.start(12, 11, written=200)
    made.start(13, 11, written=400)
    meter = only(made.find(pids=[10]))
    assert meter.read(0)[0] == 700.0
    for pid in (12, 13, 11):
        made.end(pid)
    made.io(10, written=700)
    assert meter.read(1)[0] == 700.0
    meter.close()


def test_the_root_may_end_before_its_children(made):
    made.start(10, written=7)
    made.start(11, 10, written=100)
    meter = only(made.find(pids=[10]))
    meter.read(0)
    made.end(10)
    made.io(11, written=150)
    assert meter.read(1)[0] == 157.0
    made.end(11)
    assert all(map(math.isnan, meter.read(2)))
    assert all(map(math.isnan, meter.read(3)))
    assert [(event.name, event.domain) for event in meter.events] == [("lost", "process:10")]
    meter.close()


def test_a_child_reaped_between_two_readings_of_one_pass(made):
    """The sibling ends after it was asked, just when the first one's end makes the parent be asked
    again."""
    made.start(10)
    made.start(11, 10, written=100)
    made.start(12, 10, written=1000)
    meter = only(made.find(pids=[10]))
    meter.read(0)
    tree = meter._trees[0]
    made.end(11)
    made.io(10, written=100)
    ask_all, passes = tree._ask_all, []

    def then_another():
        lost = ask_all()
        if not passes:
            made.end(12)
            made.io(10, written=1100)
        passes.append(len(lost))
        return lost

    tree._ask_all = then_another
    assert meter.read(1)[0] == 1100.0
    assert passes == [1, 1, 0]
    assert meter.read(2)[0] == 1100.0
    meter.close()


@settings(max_examples=50)
@given(st.data())
def test_any_order_of_deaths_keeps_the_true_sum(tmp_path_factory, data):
    """A plain account of who wrote what, beside a /proc where some children are waited for and some
    vanish."""
    made = Processes(tmp_path_factory.mktemp("proc"))

    class Looked:
        def __init__(self, path):
            self.path = path

        def read(self, most=4096):
            try:
                return self.path.read_bytes()
            except FileNotFoundError:
                raise ProcessLookupError(3, "") from None

        def close(self):
            pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "OpenFile", Looked)
        made.start(10)
        account, parent = {10: 0}, {}
        true = 0
        meter = only(made.find(pids=[10]))
        for tick in range(data.draw(st.integers(1, 8))):
            action = data.draw(st.sampled_from(["start", "write", "reap", "vanish"]))
            children = [pid for pid in account if pid != 10]
            if action == "start":
                pid = 11 + tick
                parent[pid] = data.draw(st.sampled_from(sorted(account)))
                account[pid] = 0
                made.start(pid, parent[pid])
            elif action == "write":
                pid = data.draw(st.sampled_from(sorted(account)))
                wrote = data.draw(st.integers(1, 1000))
                account[pid] += wrote
                true += wrote
                made.io(pid, account[pid])
            else:
                leaves = [
                    pid for pid in children if pid not in [parent[other] for other in children]
                ]
                if leaves:
                    pid = data.draw(st.sampled_from(leaves))
                    if action == "reap":
                        account[parent[pid]] += account[pid]
                        made.io(parent[pid], account[parent[pid]])
                    del account[pid]
                    made.end(pid)
            assert meter.read(tick)[0] == true
        meter.close()


def test_a_child_that_becomes_another_user_is_not_counted_twice(made):
    made.start(10)
    made.start(11, 10, written=100)
    meter = only(made.find(pids=[10]))
    meter.read(0)
    child = meter._trees[0].live[11]
    answers = child.kept.read

    def refuse(most=4096):
        answers()  # a process that is gone is gone
        raise PermissionError(13, "Permission denied")

    child.kept.read = refuse
    made.io(10, written=5)
    assert meter.read(1)[0] == 105.0
    made.end(11)
    made.io(10, written=5 + 300)
    assert meter.read(2)[0] == 305.0
    meter.close()


def test_a_number_that_was_given_away(made):
    made.start(10)
    before = process.start_time(10, made.procfs)
    made.end(10)
    assert process.start_time(10, made.procfs) is None
    made.start(10, written=9)
    found = made.find(pids=[10], starts={10: before})
    assert found.meters == ()
    assert "belongs to another" in found.absences[0].reason
    only(made.find(pids=[10], starts={10: process.start_time(10, made.procfs)})).close()


def test_a_child_with_a_used_number_is_a_new_child(made):
    made.start(10)
    made.start(11, 10, written=100)
    meter = only(made.find(pids=[10]))
    meter.read(0)
    made.end(11)
    made.io(10, written=100)
    meter.read(1)
    (made.procfs / "10" / "task" / "10" / "children").write_text("")
    made.start(11, 10, written=5)
    assert meter.read(2)[0] == 105.0
    meter.close()


def test_absences(made):
    (absence,) = made.find(pids=[4]).absences
    assert (absence.what, absence.reason) == ("process 4", "no process 4")
    made.start(5)
    (made.procfs / "5" / "io").write_text("rchar: 1\n")
    (absence,) = made.find(pids=[5]).absences
    assert "CONFIG_TASK_IO_ACCOUNTING" in absence.reason
    (made.procfs / "5" / "io").unlink()
    (absence,) = made.find(pids=[5]).absences
    assert absence.reason.endswith("no such file")
    assert absence.remedy


def test_too_many_are_said_once(made, monkeypatch):
    monkeypatch.setattr(process, "MOST_PROCESSES", 2)
    for pid in (10, 11, 12):
        made.start(pid, 10 if pid > 10 else 1, written=1)
    meter = only(made.find(pids=[10]))
    meter.read(0)
    meter.read(1)
    assert [event.name for event in meter.events] == ["note"]
    meter.close()


# ---- real processes ----


@pytest.fixture
def folder(tmp_path):
    from ckptcost.first.meters.block import device_of

    home = device_of(tmp_path)
    if not home.disks:
        pytest.skip(f"{tmp_path}: {home.reason}")
    if not process.find().meters:
        pytest.skip(process.find().absences[0].reason)
    return tmp_path


@pytest.fixture
def me(folder):
    meter = process.find().meters[0]
    yield meter
    meter.close()


def rose(meter, action):
    before = meter.read(time.monotonic_ns())
    action()
    return [after - b for after, b in zip(meter.read(time.monotonic_ns()), before, strict=True)]


NEAR = 2 * MIB
"""what else this process may write meanwhile: metadata, caches"""


def test_bytes_count_when_pages_are_made_dirty_and_once(me, folder):
    file = folder / "a"
    data = os.urandom(SIZE)
    written, cancelled, _ = rose(me, lambda: file.write_bytes(data))
    assert SIZE <= written < SIZE + NEAR
    assert cancelled == 0

    def sync():
        with file.open("rb+") as opened:
            os.fsync(opened.fileno())

    assert rose(me, sync)[0] < NEAR
    written, cancelled, _ = rose(me, file.unlink)
    assert written < NEAR
    assert cancelled < NEAR  # it was clean


def test_what_is_deleted_while_dirty_is_cancelled(me, folder):
    def both():
        (folder / "b").write_bytes(os.urandom(SIZE))
        (folder / "b").unlink()

    best = 0.0
    for _ in range(5):  # write-back may begin at any time
        written, cancelled, _ = rose(me, both)
        assert SIZE <= written < SIZE + NEAR
        best = max(best, cancelled)
        if best > 0.9 * SIZE:
            break
    assert 0.9 * SIZE < best <= SIZE + NEAR


def test_mmap_counts_although_no_call_wrote(me, folder):
    def write():
        with (folder / "c").open("wb+") as opened:
            opened.truncate(SIZE)
            with mmap.mmap(opened.fileno(), SIZE) as mapped:
                mapped[:] = bytes(SIZE)
                mapped.flush()

    assert SIZE <= rose(me, write)[0] < SIZE + NEAR


def test_direct_io_counts(me, folder):
    with mmap.mmap(-1, SIZE) as buffer, memoryview(buffer) as view:

        def write():
            try:
                fd = os.open(folder / "d", os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
            except OSError:
                pytest.skip("no O_DIRECT here")
            assert os.write(fd, view) == SIZE
            os.close(fd)

        assert SIZE <= rose(me, write)[0] < SIZE + NEAR


WRITE = (
    "import os, sys; f = open(sys.argv[1], 'wb'); f.write(bytes(int(sys.argv[2]))); f.flush();"
    " print('w', flush=True); sys.stdin.read()"
)


def test_a_real_child_counts_once_before_and_after_its_end(folder):
    meter = process.find(look_s=0.0).meters[0]
    try:
        before = meter.read(0)[0]
        child = subprocess.Popen(
            [sys.executable, "-c", WRITE, str(folder / "e"), str(SIZE)], stdin=-1, stdout=-1
        )
        assert child.stdout.readline() == b"w\n"
        assert SIZE <= meter.read(1)[0] - before < SIZE + NEAR
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie
        assert SIZE <= meter.read(2)[0] - before < SIZE + NEAR
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        child.stdout.close()
        for tick in (3, 4):
            assert SIZE <= meter.read(tick)[0] - before < SIZE + NEAR
        assert SIZE <= process.written_of(usage) < SIZE + NEAR
        assert meter.events == []
    finally:
        meter.close()


def test_a_real_child_that_nobody_waits_for(folder):
    """SIGCHLD ignored: the kernel drops the child's sums, the meter does not."""
    before_handler = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    meter = process.find(look_s=0.0).meters[0]
    try:
        before = meter.read(0)[0]
        down, up = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(down[1])
            with open(folder / "f", "wb") as opened:
                opened.write(bytes(SIZE))
            os.write(up[1], b"w")
            os.read(down[0], 1)
            os._exit(0)
        os.read(up[0], 1)
        assert meter.read(1)[0] - before >= SIZE
        os.close(down[1])
        deadline = time.monotonic() + 10
        while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert SIZE <= meter.read(2)[0] - before < SIZE + NEAR
        for fd in (down[0], *up):
            os.close(fd)
    finally:
        signal.signal(signal.SIGCHLD, before_handler)
        meter.close()


def test_another_users_process_is_refused_with_a_remedy():
    if os.getuid() != 0:
        found = process.find(pids=[1])
        if found.meters:
            pytest.skip("process 1 is ours")
        assert "permission denied" in found.absences[0].reason
        return
    back, out = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setgid(65534)
        os.setuid(65534)
        found = process.find(pids=[os.getppid()])
        os.write(out, repr((len(found.meters), *found.absences)).encode())
        os._exit(0)
    os.close(out)
    os.waitpid(pid, 0)
    said = os.read(back, 4096).decode()
    os.close(back)
    assert said.startswith("(0, Absence(")
    assert "permission denied" in said
    assert "CAP_SYS_PTRACE" in said
