"""A directory read again and again, and what file systems say of themselves."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from ckptcost.first.watch.filesystems import birth_ns, born_ns, kind_of, monotonic_ns
from ckptcost.first.watch.polling import Polling

TICK_NS = 20_000_000
"""the file system's clock ticks every 4 to 10 ms"""


@pytest.fixture
def poll(tmp_path):
    return lambda root=tmp_path, **more: Polling(str(root), **{"still_s": 0.1, **more})


def told(events):
    return [(event.kind, event.path, event.old_path) for event in events]


def until_closed(polling, path, most_s=5.0):
    end = time.monotonic() + most_s
    while True:
        for event in polling.scan():
            if (event.kind, event.path) == ("closed", path):
                return event
        assert time.monotonic() < end
        time.sleep(0.02)


def has_births(path):
    return birth_ns(os.fsencode(path)) is not None


def test_a_file_is_created_at_its_birth_and_closed_at_its_last_write(poll, tmp_path):
    polling = poll()
    before = time.monotonic_ns()
    (tmp_path / "a").write_bytes(b"1")
    time.sleep(0.1)
    between = time.monotonic_ns()
    with (tmp_path / "a").open("ab") as file:
        file.write(b"2")
    written = time.monotonic_ns()
    time.sleep(0.1)
    (created,) = polling.scan()
    assert (created.kind, created.path) == ("created", "a")
    if has_births(tmp_path / "a"):
        assert created.how == "btime"
        assert before - TICK_NS <= created.t_ns < between
    else:
        assert created.how == "scan"
    assert polling.scan() == []
    closed = until_closed(polling, "a")
    assert closed.how == "mtime"
    assert between - TICK_NS <= closed.t_ns <= written + TICK_NS
    assert polling.scan() == []


def test_a_file_that_grows_is_not_closed(poll, tmp_path):
    polling = poll(still_s=0.3)
    with (tmp_path / "a").open("wb", buffering=0) as file:
        end = time.monotonic() + 0.8
        kinds = []
        while time.monotonic() < end:
            file.write(b"x")
            kinds += [event.kind for event in polling.scan()]
            time.sleep(0.02)
    assert kinds == ["created"]
    until_closed(polling, "a")


def test_written_over(poll, tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    polling = poll()
    time.sleep(0.05)
    before = time.monotonic_ns()
    (tmp_path / "a").write_bytes(b"22")
    (opened,) = polling.scan()
    assert (opened.kind, opened.how) == ("opened", "mtime")
    assert before - TICK_NS <= opened.t_ns <= time.monotonic_ns()


def test_a_time_that_somebody_set_is_not_believed(poll, tmp_path):
    polling = poll()
    (tmp_path / "a").write_bytes(b"1")
    os.utime(tmp_path / "a", (10**9, 10**9))
    polling.scan()
    assert until_closed(polling, "a").how == "scan"


def test_renamed_files_and_directories_are_known_by_their_inodes(poll, tmp_path):
    (tmp_path / "tmp-1").mkdir()
    (tmp_path / "tmp-1" / "x").write_bytes(b"1")
    (tmp_path / "y.tmp").write_bytes(b"1")
    polling = poll()
    (tmp_path / "tmp-1").rename(tmp_path / "step_1")
    (tmp_path / "y.tmp").rename(tmp_path / "y")
    assert told(polling.scan()) == [("moved", "step_1", "tmp-1"), ("moved", "y", "y.tmp")]
    assert polling.scan() == []
    (tmp_path / "step_1" / "x").unlink()
    assert told(polling.scan()) == [("gone", "step_1/x", "")]


def test_a_new_file_with_the_inode_of_a_deleted_one_was_not_moved(poll, tmp_path):
    polling = poll(still_s=100.0)
    for k in range(20):  # ext4 gives the same number again at once
        (tmp_path / f"old{k}").write_bytes(b"1")
        polling.scan()
        was = (tmp_path / f"old{k}").stat().st_ino
        (tmp_path / f"old{k}").unlink()
        time.sleep(0.02)
        (tmp_path / f"new{k}").write_bytes(b"1")
        events = told(polling.scan())
        assert events == [("created", f"new{k}", ""), ("closed", f"old{k}", "")]
        assert told(polling.scan()) == [("gone", f"old{k}", "")]
        if (tmp_path / f"new{k}").stat().st_ino == was:
            return
    pytest.skip("this file system gives no inode number twice")


def test_a_directory_is_renamed_with_what_was_written_since(poll, tmp_path):
    (tmp_path / "save.part").mkdir()
    (tmp_path / "save.part" / "a").write_bytes(b"1")
    polling = poll(still_s=100.0)
    (tmp_path / "save.part" / "b").write_bytes(b"1")
    polling.scan()
    (tmp_path / "save.part" / "b").write_bytes(b"1" * 9)
    (tmp_path / "save.part" / "c").write_bytes(b"1")
    (tmp_path / "save.part").rename(tmp_path / "save")
    assert told(polling.scan()) == [
        ("created", "save.part/c", ""),
        ("moved", "save", "save.part"),
    ]
    assert polling.scan() == []


def test_a_save_that_vanishes_whole_is_closed_whole_first(poll, tmp_path):
    polling = poll(still_s=100.0)
    (tmp_path / "save").mkdir()
    for name in "abc":
        (tmp_path / "save" / name).write_bytes(b"1")
    polling.scan()
    shutil.rmtree(tmp_path / "save")
    names = [f"save/{name}" for name in "abc"]
    assert sorted(told(polling.scan())) == [("closed", name, "") for name in names]
    *files, folder = told(polling.scan())
    assert sorted(files) == [("gone", name, "") for name in names]
    assert folder == ("gone", "save", "")
    assert polling.scan() == []


def test_a_file_that_is_back_was_not_gone(poll, tmp_path):
    polling = poll(still_s=100.0)
    (tmp_path / "a").write_bytes(b"1")
    polling.scan()
    (tmp_path / "a").rename(tmp_path.parent / "away")
    assert told(polling.scan()) == [("closed", "a", "")]
    (tmp_path.parent / "away").rename(tmp_path / "b")
    assert told(polling.scan()) == [("moved", "b", "a")]
    assert polling.scan() == []


def test_a_new_directory_with_the_inode_of_a_deleted_one_was_not_moved(poll, tmp_path):
    polling = poll(still_s=100.0)
    for k in range(20):
        old, new = tmp_path / f"old{k}", tmp_path / f"new{k}"
        old.mkdir()
        (old / "x").write_bytes(b"1")
        polling.scan()
        was = old.stat().st_ino
        shutil.rmtree(old)
        time.sleep(0.02)
        new.mkdir()
        (new / "x").write_bytes(b"1")
        assert sorted(told(polling.scan())) == [
            ("closed", f"old{k}/x", ""),
            ("created", new.name, ""),
            ("created", f"new{k}/x", ""),
        ]
        assert told(polling.scan()) == [("gone", f"old{k}/x", ""), ("gone", old.name, "")]
        if new.stat().st_ino == was:
            return
    pytest.skip("this file system gives no inode number twice")


def test_a_rename_over_a_file(poll, tmp_path):
    (tmp_path / "last").write_bytes(b"1")
    polling = poll()
    (tmp_path / "last.tmp").write_bytes(b"22")
    polling.scan()
    (tmp_path / "last.tmp").rename(tmp_path / "last")
    assert told(polling.scan()) == [("moved", "last", "last.tmp")]


def test_an_old_file_moved_in(poll, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "x").write_bytes(b"1")
    polling = poll(root)
    (tmp_path / "x").rename(root / "x")
    (event,) = polling.scan()
    assert event.kind == "created"  # born a moment ago: as good as made here
    assert event.how in ("btime", "scan")


def test_links_are_whole_at_once_and_not_followed(poll, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "root").mkdir()
    polling = poll(tmp_path / "root")
    (tmp_path / "root" / "latest").symlink_to(tmp_path / "out")
    (tmp_path / "out" / "x").write_bytes(b"1")
    assert told(polling.scan()) == [("created", "latest", ""), ("closed", "latest", "")]


def test_a_file_by_the_name_of_a_directory_is_not_in_it(poll, tmp_path):
    (tmp_path / "a").mkdir()
    polling = poll()
    (tmp_path / "a").rmdir()
    (tmp_path / "a").write_bytes(b"1")
    assert told(polling.scan()) == [("created", "a", ""), ("gone", "a", "")]
    (tmp_path / "a").unlink()
    (tmp_path / "a").mkdir()
    assert ("created", "a", "") in told(polling.scan())


def test_removed_and_made_again(poll, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "x").write_bytes(b"1")
    polling = poll(root)
    shutil.rmtree(root)
    assert told(polling.scan()) == [("lost", "", "")]
    assert not polling.here
    assert polling.scan() == []
    root.mkdir()
    (root / "x").write_bytes(b"1")
    assert told(polling.scan()) == [("found", "", ""), ("created", "x", "")]


@pytest.mark.parametrize(("top", "said"), [("a", "'a'"), ("", "''")])
def test_what_cannot_be_read_for_a_while_is_not_gone(poll, tmp_path, monkeypatch, top, said):
    """A server that does not answer: root may read whatever it likes, so the error itself is put
    in."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x").write_bytes(b"1")
    polling = poll()
    real = os.scandir

    def scandir(path):
        if os.fsdecode(path) == os.path.join(tmp_path, top):
            raise OSError(5, "Input/output error")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert polling.scan() == []
    assert said in polling.problem
    monkeypatch.undo()
    assert polling.scan() == []
    assert polling.problem == ""


def test_names_that_are_not_utf8_and_ignored_ones(poll, tmp_path):
    polling = poll(ignore=("mine",))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").write_bytes(b"1")
    Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), b"\xff"))).write_bytes(b"1")
    assert [event.path for event in polling.scan()] == [os.fsdecode(b"\xff")]


def test_a_large_tree_is_read_less_often(poll, tmp_path, monkeypatch):
    polling = poll()
    polling.scan()
    assert polling.interval_s == 0.5
    cpu_s = iter([10.0, 10.1])
    monkeypatch.setattr(time, "thread_time", lambda: next(cpu_s))
    polling.scan()
    assert polling.interval_s == pytest.approx(5.0)  # 0.1 s of processor time are 2 % of 5 s


# ---- file systems ----

LINES = """\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
23 22 0:40 / /mnt/nfs rw - nfs4 server:/x rw
24 23 0:41 / /mnt/nfs/fast rw - ext4 /dev/sdb rw
25 22 0:42 / /mnt/a\\040b rw - fuse.s3fs s3fs rw
26 22 0:43 / /mnt/shm rw - tmpfs tmpfs rw
27 22 0:44 / /mnt/usb rw - fuseblk /dev/sdc1 rw
28 22 0:45 / /mnt/auto rw - autofs systemd-1 rw
29 28 0:46 / /mnt/auto rw - lustre mds:/fs rw
"""


@pytest.mark.parametrize(
    ("path", "fs_type", "blind", "in_memory"),
    [
        ("/mnt/nfs/run", "nfs4", True, False),
        ("/mnt/nfs/fast/run", "ext4", False, False),
        ("/mnt/nfsx", "ext4", False, False),
        ("/mnt/a b/run", "fuse.s3fs", True, False),
        ("/mnt/shm", "tmpfs", False, True),
        ("/mnt/usb/x", "fuseblk", False, False),
        ("/mnt/auto/x", "lustre", True, False),
    ],
)
def test_kind_of(tmp_path, path, fs_type, blind, in_memory):
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(LINES)
    found = kind_of(Path(path), tmp_path)
    assert (found.fs_type, found.blind, found.in_memory) == (fs_type, blind, in_memory)
    assert bool(found.why) == blind
    assert not blind or fs_type in found.why


@pytest.mark.parametrize(
    "fs_type",
    [
        "nfs",
        "lustre",
        "gpfs",
        "cifs",
        "fuse.gcsfuse",
        "fuse.mountpoint-s3",
        "fuse.goofys",
        "fuse.rclone",
        "9p",
        "virtiofs",
        "beegfs",
        "ceph",
        "afs",
        "wekafs",
        "fuse",
    ],
)
def test_where_others_write_unseen(tmp_path, fs_type):
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(f"1 0 0:1 / / rw - {fs_type} x rw\n")
    assert kind_of(Path("/x"), tmp_path).blind


def test_without_mountinfo_statfs_says_it(tmp_path):
    shm = Path("/dev/shm")
    if kind_of(shm).fs_type != "tmpfs":
        pytest.skip("/dev/shm is no tmpfs here")
    assert kind_of(shm / "not" / "there", tmp_path).in_memory
    assert kind_of(Path("/proc"), tmp_path).fs_type == "type 0x9fa0"


def test_births(tmp_path):
    before = time.time_ns() - TICK_NS
    (tmp_path / "a").write_bytes(b"1")
    if not has_births(tmp_path / "a"):
        pytest.skip("this file system does not note births")
    assert before <= birth_ns(os.fsencode(tmp_path / "a")) <= time.time_ns()
    assert birth_ns(os.fsencode(tmp_path / "none")) is None
    assert born_ns(os.fsencode(tmp_path / "a"), time.monotonic_ns()) <= time.monotonic_ns()


def test_an_instant_too_long_ago_or_ahead_is_not_placed():
    wall_ns, now_ns = time.time_ns(), time.monotonic_ns()
    assert abs(monotonic_ns(wall_ns, now_ns) - now_ns) < 10**9
    assert monotonic_ns(wall_ns - 10**12, now_ns) is None
    assert monotonic_ns(wall_ns + 10**11, now_ns) is None
    assert monotonic_ns(wall_ns + 10**8, now_ns) <= now_ns  # a server's clock may be a little ahead
    assert monotonic_ns(None, now_ns) is None
