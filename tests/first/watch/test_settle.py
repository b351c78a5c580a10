"""What the kernel owes a file, and when that is nothing: real files, written back by other
processes."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from nobody import as_nobody
from throttled import overlaid, throttled, why_not, written_bytes
from waiting import wait_for

from ckptcost.first.watch import settle
from ckptcost.first.watch.settle import Settling

MIB = 1 << 20
SYNC = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
before = time.monotonic_ns()
os.fsync(fd)
print(before, time.monotonic_ns())
"""


class Told:
    """A recorder that only listens."""

    def __init__(self):
        self.marks = []
        self.heard = threading.Condition()

    def __call__(self, name, window="", *, by="api", rank=None, t_ns=None, **detail):
        with self.heard:
            self.marks.append(
                {"name": name, "window": window, "by": by, "rank": rank, "t_ns": t_ns, **detail}
            )
            self.heard.notify_all()

    def wait(self, window="w", within_s=10.0):
        def mine():
            return [mark for mark in self.marks if mark["window"] == window]

        with self.heard:
            assert self.heard.wait_for(mine, within_s), f"nothing told of {window}"
            return mine()[0]


def written(path: Path, mib: int = 2) -> int:
    with path.open("wb") as file:
        for _ in range(mib):
            file.write(os.urandom(MIB))
    return time.monotonic_ns()


def synced(path: Path) -> tuple[int, int]:
    """By another process: when it began and ended."""
    begun, ended = subprocess.run(
        [sys.executable, "-c", SYNC, str(path)], check=True, capture_output=True, text=True
    ).stdout.split()
    return int(begun), int(ended)


def open_files() -> set[str]:
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.add(os.readlink(f"/proc/self/fd/{fd}"))
    return found


@pytest.fixture
def disk(tmp_path):
    """A directory on a drive whose page cache can be asked."""
    probe = tmp_path / "probe"
    written(probe, 1)
    with probe.open("rb") as file:
        answer = settle.owed_bytes(file.fileno())
    probe.unlink()
    if answer.bytes is None:
        pytest.skip(f"{tmp_path}: {settle.REASONS[answer.why]}")
    return tmp_path


def dirty(path: Path, mib: int) -> None:
    """All of it owed: again where somebody else's sync came between."""
    for _ in range(20):
        written(path, mib)
        with path.open("rb") as file:
            if settle.owed_bytes(file.fileno()).bytes == mib * MIB:
                return
    pytest.fail("what is written is never owed")


@pytest.fixture
def owing(monkeypatch):
    """Files (their inodes) that go on to owe something, whatever the host writes back meanwhile:
    any user may call sync."""
    inodes = set()
    really = settle.owed_bytes

    def answer(fd, offset=0, length=0):
        found = really(fd, offset, length)
        return found._replace(bytes=max(found.bytes, 1)) if os.fstat(fd).st_ino in inodes else found

    monkeypatch.setattr(settle, "owed_bytes", answer)
    return inodes


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def settling(told):
    made = Settling(told)
    yield made
    made.stop()


def looked(settling: Settling):
    """The first look is over."""
    wait_for(lambda: settling.cpu_s > 0.0)


# --- what is owed


def test_a_file_owes_what_was_written_until_it_is_synced(disk):
    path = disk / "a"
    dirty(path, 4)
    with path.open("rb") as file:
        before = settle.owed_bytes(file.fileno())
        assert before.bytes == 4 * MIB
        again = settle.owed_bytes(file.fileno())
        assert again == before, "asking must not write anything back"
        synced(path)
        assert settle.owed_bytes(file.fileno()) == (0, before.how, "")


def test_a_range_of_a_file_is_asked_alone(disk):
    path = disk / "a"
    written(path, 4)
    synced(path)
    with path.open("r+b") as file:
        file.seek(3 * MIB)
        file.write(b"x" * 4096)
        file.flush()
        if settle.by_cachestat(file.fileno())[0] is None:
            pytest.skip("this kernel has no cachestat")
        assert settle.owed_bytes(file.fileno(), 0, MIB).bytes == 0
        assert settle.owed_bytes(file.fileno(), 3 * MIB, MIB).bytes >= 4096


def test_memory_is_never_safe():
    shm = Path("/dev/shm")
    if not os.access(shm, os.W_OK):
        pytest.skip("no /dev/shm")
    path = shm / f"ckptcost-{os.getpid()}"
    try:
        written(path, 1)
        with path.open("rb") as file:
            assert settle.owed_bytes(file.fileno()) == (None, "", "IN_MEMORY")
    finally:
        path.unlink()


def test_without_cachestat_the_extents_are_asked(disk, monkeypatch):
    path = disk / "a"
    dirty(path, 4)
    monkeypatch.setattr(settle, "by_cachestat", lambda fd, offset=0, length=0: (None, errno.ENOSYS))
    with path.open("rb") as file:
        first = settle.owed_bytes(file.fileno())
        if first.bytes is None:
            pytest.skip("the file system has no FIEMAP that tells")
        assert (first.bytes, first.how) == (4 * MIB, "fiemap")
        assert settle.owed_bytes(file.fileno(), 2 * MIB, MIB).bytes == MIB
        synced(path)
        assert settle.owed_bytes(file.fileno()).bytes == 0


def test_many_extents_are_all_counted(disk, monkeypatch):
    path = disk / "holes"
    monkeypatch.setattr(settle, "_AT_ONCE", 7)
    with path.open("wb") as file:
        for place in range(40):
            file.seek(place * 65536)
            file.write(b"x" * 4096)
        file.flush()
        found = settle.by_fiemap(file.fileno())
        if found is None:
            pytest.skip("no FIEMAP here")
        assert found == 40 * 4096


def test_what_is_set_aside_beyond_the_end_is_not_owed(disk):
    path = disk / "reserved"
    with path.open("wb") as file:
        file.write(b"x" * MIB)
        file.flush()
        os.fsync(file.fileno())
        if settle.by_fiemap(file.fileno()) is None:
            pytest.skip("no FIEMAP here")
        import ctypes

        keep_size = 1
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.fallocate(file.fileno(), keep_size, ctypes.c_long(MIB), ctypes.c_long(4 * MIB)):
            pytest.skip("no fallocate here")
        assert settle.by_fiemap(file.fileno()) == 0


def test_other_peoples_files_are_asked_by_their_extents(disk):
    path = disk / "root's"
    dirty(path, 1)
    path.chmod(0o644)
    with path.open("rb") as file:
        fd = file.fileno()
        if settle.by_cachestat(fd)[0] is None:
            pytest.skip("this kernel has no cachestat")
        assert as_nobody(lambda: settle.by_cachestat(fd)) == repr((None, errno.EPERM))
        answer = as_nobody(lambda: tuple(settle.owed_bytes(fd)))
        assert answer == repr((MIB, "fiemap", "")) or "NOT_PERMITTED" in answer


def test_every_code_says_why():
    assert set(settle.REASONS) <= set(settle.WHY)


# --- following


def test_durable_is_when_another_process_had_it_written_back(disk, settling, told):
    for turn in range(10):
        path, window = disk / f"{turn}.pt", f"{turn}"
        at_ns = written(path, 16)
        settling.follow(window, [path], since_ns=at_ns, written_ns=at_ns, rank=3)
        time.sleep(0.15)
        if window not in settling.pending:
            continue  # somebody else's sync came first
        begun_ns, ended_ns = synced(path)
        mark = told.wait(window)
        if mark["t_ns"] >= begun_ns:
            break
    assert (mark["name"], mark["by"], mark["rank"], mark["window"]) == (
        "durable",
        "watch",
        3,
        window,
    )
    assert mark["how"] in ("cachestat", "fiemap")
    assert begun_ns <= mark["t_ns"] <= ended_ns + 1_000_000_000
    assert at_ns <= mark["after_ns"] <= ended_ns
    assert mark["unsure_s"] == pytest.approx((mark["t_ns"] - mark["after_ns"]) / 1e9)
    wait_for(lambda: not settling.pending)
    assert str(path) not in open_files()


def test_what_is_clean_at_the_first_look_was_safe_when_it_was_written(disk, settling, told):
    path = disk / "model.pt"
    written(path)
    synced(path)
    at_ns = time.monotonic_ns()
    settling.follow("w", [path], since_ns=at_ns, written_ns=at_ns)
    mark = told.wait()
    assert (mark["name"], mark["t_ns"], mark["after_ns"], mark["unsure_s"]) == (
        "durable",
        at_ns,
        None,
        None,
    )


def test_a_late_first_look_proves_only_that_it_is_safe_now(disk, settling, told):
    path = disk / "model.pt"
    written(path)
    synced(path)
    at_ns = time.monotonic_ns() - 20 * settle.S
    settling.follow("w", [path], since_ns=at_ns, written_ns=at_ns)
    mark = told.wait()
    assert mark["t_ns"] >= at_ns + 20 * settle.S
    assert mark["unsure_s"] == pytest.approx((mark["t_ns"] - at_ns) / 1e9)


def test_all_files_of_a_folder_have_to_be_there(disk, settling, told, owing):
    folder = disk / "step_9"
    (folder / "optimizer").mkdir(parents=True)
    parts = [folder / "a", folder / "b", folder / "optimizer" / "c"]
    for part in parts:
        at_ns = written(part, 2)
    owing |= {part.stat().st_ino for part in parts}
    settling.follow("w", [folder], since_ns=at_ns, written_ns=at_ns)
    looked(settling)
    for part in parts:
        synced(part)
    owing -= {parts[2].stat().st_ino, parts[0].stat().st_ino}
    time.sleep(0.1)
    assert not told.marks
    freed_ns = time.monotonic_ns()
    owing.clear()
    mark = told.wait()
    assert mark["name"] == "durable"
    assert mark["t_ns"] >= freed_ns


def test_a_rename_does_not_mislead(disk, settling, told, owing):
    path = disk / "tmp"
    at_ns = written(path)
    owing.add(path.stat().st_ino)
    settling.follow("w", [path], since_ns=at_ns, written_ns=at_ns)
    looked(settling)
    path.rename(disk / "final")
    time.sleep(0.05)
    synced(disk / "final")
    assert not told.marks
    owing.clear()
    assert told.wait()["name"] == "durable"


def swap(path):
    other = path.with_name("other")
    written(other, 1)
    other.replace(path)


def grow(path):
    time.sleep(0.15)
    with path.open("ab") as file:
        file.write(b"more")


@pytest.mark.parametrize(
    ("happens", "why"), [(Path.unlink, "GONE"), (swap, "REPLACED"), (grow, "REWRITTEN")]
)
def test_what_becomes_something_else_is_not_called_safe(disk, settling, told, owing, happens, why):
    path = disk / "model.pt"
    at_ns = written(path)
    owing.add(path.stat().st_ino)
    settling.follow("w", [path], since_ns=at_ns, written_ns=at_ns)
    looked(settling)
    happens(path)
    mark = told.wait()
    assert (mark["name"], mark["durable_why"], mark["by"]) == ("note", why, "watch")
    wait_for(lambda: not settling.pending)
    assert not any(name.startswith(str(path)) for name in open_files()), (
        "an open file keeps its blocks"
    )


def cut_and_grow(path):
    time.sleep(0.15)
    path.write_bytes(b"x")


@pytest.mark.parametrize(("happens", "why"), [(grow, "ADDED_TO"), (cut_and_grow, "REWRITTEN")])
def test_a_file_that_stays_open_may_be_added_to(disk, settling, told, owing, happens, why):
    path = disk / "all.h5"
    at_ns = written(path)
    owing.add(path.stat().st_ino)
    settling.follow("w", [path], since_ns=at_ns, written_ns=at_ns, closed=False)
    looked(settling)
    happens(path)
    assert told.wait()["durable_why"] == why


def test_of_a_file_that_was_there_before_only_what_was_added_is_the_saves(disk, settling, told):
    path = disk / "all.h5"
    written(path)
    time.sleep(0.2)
    with path.open("ab") as file:
        file.write(b"x" * 1000)
        os.fsync(file.fileno())
    at_ns = time.monotonic_ns()
    settling.follow("w", [path], since_ns=at_ns, written_ns=at_ns, closed=False)
    synced(path)
    mark = told.wait()
    assert (mark["name"], "bytes" in mark) == ("durable", False)


def test_a_file_that_was_safe_and_is_written_again_is_noticed_at_the_end(
    disk, settling, told, owing
):
    first, second = disk / "1", disk / "2"
    written(first)
    at_ns = written(second)
    synced(first)
    owing.add(second.stat().st_ino)
    settling.follow("w", [first, second], since_ns=at_ns, written_ns=at_ns)
    looked(settling)
    grow(first)
    synced(second)
    assert not told.marks
    owing.clear()
    assert told.wait()["durable_why"] == "REWRITTEN"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda folder: [folder / "nothing"], "GONE"),
        (lambda folder: [folder], "NO_FILES"),
        (
            lambda folder: [(folder / "link").symlink_to("/etc/passwd") or folder / "link"],
            "NO_FILES",
        ),
        (lambda folder: [os.mkfifo(folder / "pipe") or folder / "pipe"], "NO_FILES"),
        (lambda folder: [(folder / "file").write_text("x") and folder / "file" / "below"], "GONE"),
        (
            lambda folder: [
                (folder / str(n)).write_text("x") and folder / str(n) for n in range(5)
            ],
            "TOO_MANY_FILES",
        ),
        (
            lambda folder: [(folder / str(n)).write_text("x") and folder for n in range(5)],
            "TOO_MANY_FILES",
        ),
    ],
)
def test_what_cannot_be_followed_is_said(disk, told, make, why):
    settling = Settling(told, most_files=4)
    settling.follow("w", make(disk), since_ns=0, written_ns=0)
    mark = told.wait()
    settling.stop()
    assert (mark["name"], mark["durable_why"]) == ("note", why)


def test_a_file_that_may_not_be_read(disk):
    path = disk / "secret"
    written(path, 1)
    path.chmod(0o600)
    disk.chmod(0o755)
    for parent in disk.parents:
        if not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)  # of pytest's own folders

    def work():
        told = Told()
        settling = Settling(told)
        settling.follow("w", [path], since_ns=0, written_ns=0)
        mark = told.wait()
        settling.stop()
        return mark["durable_why"]

    assert as_nobody(work) == "'NOT_PERMITTED'"


def test_memory_is_noted():
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no /dev/shm")
    told = Told()
    settling = Settling(told)
    path = Path(f"/dev/shm/ckptcost-{os.getpid()}-settle")
    try:
        at_ns = written(path, 1)
        settling.follow("w", [path], since_ns=at_ns, written_ns=at_ns)
        assert told.wait()["durable_why"] == "IN_MEMORY"
    finally:
        settling.stop()
        path.unlink()


def test_it_gives_up(disk, told, owing):
    settling = Settling(told, most_s=0.2)
    path = disk / "a"
    at_ns = written(path)
    owing.add(path.stat().st_ino)
    settling.follow("w", [path], since_ns=at_ns, written_ns=at_ns)
    assert told.wait()["durable_why"] == "NOT_DRAINED"
    settling.stop()
    assert str(path) not in open_files()


def test_stopping_waits_as_long_as_it_was_told(disk, told, owing):
    settling = Settling(told)
    path, never = disk / "a", disk / "b"
    at_ns = written(path)
    written(never)
    owing |= {path.stat().st_ino, never.stat().st_ino}
    settling.follow("w", [path], since_ns=at_ns, written_ns=at_ns)
    settling.follow("never", [never], since_ns=at_ns, written_ns=at_ns)
    wait_for(lambda: len(settling.pending) == 2)
    synced(path)
    later = threading.Timer(0.2, owing.discard, [path.stat().st_ino])
    later.start()
    begun = time.monotonic()
    settling.stop(wait_s=1.0)
    took_s = time.monotonic() - begun
    later.join()
    assert told.wait("w")["name"] == "durable"
    assert told.wait("never")["durable_why"] == "STOPPED"
    assert 0.9 < took_s < 5.0
    settling.follow("late", [path], since_ns=at_ns, written_ns=at_ns)
    assert told.wait("late")["durable_why"] == "STOPPED"
    assert not {str(path), str(never)} & open_files()


def test_stopping_with_nothing_left_does_not_wait(told):
    settling = Settling(told)
    begun = time.monotonic()
    settling.stop(wait_s=30.0)
    assert time.monotonic() - begun < 5.0


def test_following_costs_little(disk, settling, told, owing):
    paths = [disk / str(n) for n in range(300)]
    for path in paths:
        path.write_bytes(b"x" * 8192)
    owing |= {path.stat().st_ino for path in paths}
    at_ns = time.monotonic_ns()
    settling.follow("w", paths, since_ns=at_ns, written_ns=at_ns)
    looked(settling)
    begun, before_s = time.monotonic(), settling.cpu_s
    time.sleep(1.0)
    assert settling.cpu_s - before_s < 0.02 * (time.monotonic() - begun)
    assert settling.pending


def test_a_look_at_a_large_file_stops_at_the_first_range_that_owes(disk, monkeypatch):
    path = disk / "large"
    written(path, 8)
    synced(path)
    with path.open("r+b") as file:
        file.seek(5 * MIB)
        file.write(b"x")
    monkeypatch.setattr(settle, "_RANGE_BYTES", MIB)
    held = settle.FollowedFile(str(path))
    try:
        if held.owes().how != "cachestat":
            pytest.skip("FIEMAP does not see what is written over in place")
        assert held.at == 5 * MIB
        synced(path)
        assert held.owes().bytes == 0
        assert held.at == 0
    finally:
        held.close()


def test_extents_alone_prove_nothing_of_an_older_file(disk, settling, told, monkeypatch):
    old, new = disk / "old", disk / "new"
    written(old)
    synced(old)
    time.sleep(0.15)
    since_ns = time.monotonic_ns()
    written(new)
    synced(new)
    monkeypatch.setattr(settle, "by_cachestat", lambda fd, offset=0, length=0: (None, errno.ENOSYS))
    with new.open("rb") as file:
        if settle.owed_bytes(file.fileno()).bytes is None:
            pytest.skip("the file system has no FIEMAP that tells")
    settling.follow("new", [new], since_ns=since_ns, written_ns=time.monotonic_ns())
    mark = told.wait("new")
    assert (mark.get("durable_why"), mark.get("how")) in (
        (None, "fiemap"),
        ("NEVER_SEEN_OWING", None),
    )  # no birth times here
    settling.follow("old", [old], since_ns=since_ns, written_ns=time.monotonic_ns())
    assert told.wait("old")["durable_why"] == "NEVER_SEEN_OWING"


# --- the truth from the device below


@pytest.mark.skipif(bool(why_not()), reason=why_not())
@pytest.mark.parametrize("kind", ["ext4", "overlay"])
def test_safe_is_never_said_before_the_device_has_taken_the_bytes(kind, settling, told, tmp_path):
    """40 MiB at 20 MiB/s: the page cache takes them at once, the device two seconds."""
    with contextlib.ExitStack() as mounts:
        disk = mounts.enter_context(throttled(tmp_path, 20 * MIB))
        folder = disk if kind == "ext4" else mounts.enter_context(overlaid(disk))
        before = written_bytes(disk)
        path = folder / "model.pt"
        since_ns = time.monotonic_ns()
        written_ns = written(path, 40)
        settling.follow("w", [path], since_ns, written_ns)
        looked(settling)
        _, synced_ns = synced(path)
        assert written_bytes(disk) - before >= 40 * MIB
        mark = told.wait("w")
        settling.stop()
    assert mark["name"] == "durable"
    assert (mark["t_ns"] - since_ns) / 1e9 > 1.5, "the device needs two seconds"
    assert mark["t_ns"] < synced_ns + 500_000_000


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_an_overlay_over_memory_tells_nothing(settling, told, tmp_path):
    with contextlib.ExitStack() as mounts:
        disk = mounts.enter_context(throttled(tmp_path))
        inside = disk / "memory"
        inside.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(inside)], check=True)
        mounts.callback(subprocess.run, ["umount", str(inside)], check=True)
        path = mounts.enter_context(overlaid(inside)) / "model.pt"
        settling.follow("w", [path], time.monotonic_ns(), written(path, 1))
        mark = told.wait("w")
        settling.stop()
    assert (mark["name"], mark["durable_why"]) == ("note", "UNKNOWN_FILE_SYSTEM")
