"""inotify on the real kernel: races with the writer, names, renames, limits, and directories that
go and come back."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from ckptcost.first.watch.inotify import Inotify

REPO = Path(__file__).parents[3]


@pytest.fixture
def watch(tmp_path):
    made = []

    def begin(root=tmp_path, **more):
        made.append(Inotify(str(root), **more))
        assert made[-1].exhausted == ""
        return made[-1]

    yield begin
    for each in made:
        each.close()


def told(inotify, until, most_s=5.0):
    """Events until `until` of them is true."""
    events = []
    end = time.monotonic() + most_s
    while not until(events):
        assert time.monotonic() < end, events
        events += inotify.read()
        time.sleep(0.002)
    return events


def kinds(events, path):
    return [event.kind for event in events if event.path == path]


def drained(inotify, for_s=0.15):
    end = time.monotonic() + for_s
    events = []
    while time.monotonic() < end:
        events += inotify.read()
        time.sleep(0.005)
    return events


def test_a_file_from_its_creation_to_its_removal(watch, tmp_path):
    inotify = watch()
    before = time.monotonic_ns()
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "b").read_bytes()
    (tmp_path / "b").unlink()
    events = told(inotify, lambda found: any(event.kind == "gone" for event in found))
    assert [(event.kind, event.path, event.old_path) for event in events] == [
        ("created", "a", ""),
        ("opened", "a", ""),
        ("closed", "a", ""),
        ("moved", "b", "a"),
        ("opened", "b", ""),
        ("gone", "b", ""),
    ]
    assert all(
        before <= event.t_ns <= time.monotonic_ns() and event.how == "inotify" for event in events
    )


def test_many_writes_are_not_many_events(watch, tmp_path):
    inotify = watch()
    with (tmp_path / "a").open("wb", buffering=0) as file:
        for _ in range(1000):
            file.write(b"x" * 100)
    assert len(drained(inotify)) == 3


def test_what_is_made_in_a_new_directory_before_its_watch_stands_is_told_once(watch, tmp_path):
    """A writer that makes directories and files as fast as it can, against a reader that looks
    whenever it gets to it."""
    inotify = watch()
    expected = set()

    def write():
        for k in range(60):
            inner = tmp_path / f"d{k}" / "in" / "ner"
            inner.mkdir(parents=True)
            for name in ("x", "y"):
                (inner / name).write_bytes(b"1")

    for k in range(60):
        expected |= {f"d{k}", f"d{k}/in", f"d{k}/in/ner", f"d{k}/in/ner/x", f"d{k}/in/ner/y"}
    writer = threading.Thread(target=write)
    writer.start()
    events = told(inotify, lambda found: expected <= {event.path for event in found})
    writer.join()
    events += drained(inotify)
    created = [event.path for event in events if event.kind == "created"]
    assert sorted(created) == sorted(expected)
    assert inotify.watches == 1 + 3 * 60


def test_a_file_found_in_a_new_directory_has_the_instant_of_its_birth(watch, tmp_path):
    inotify = watch()
    before = time.monotonic_ns() - 20_000_000  # the file system's clock ticks every 4 to 10 ms
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "x").write_bytes(b"1")
    written = time.monotonic_ns()
    time.sleep(0.1)
    found = next(
        event
        for event in told(inotify, lambda found: "new/x" in [event.path for event in found])
        if event.path == "new/x"
    )
    if found.how == "scan":
        pytest.skip("this file system does not note births")
    assert found.how == "btime"
    assert before <= found.t_ns <= written


def test_what_is_there_at_the_start_is_not_told(watch, tmp_path):
    (tmp_path / "old" / "deep").mkdir(parents=True)
    (tmp_path / "old" / "deep" / "x").write_bytes(b"1")
    inotify = watch()
    assert drained(inotify) == []
    (tmp_path / "old" / "deep" / "y").write_bytes(b"1")
    assert kinds(drained(inotify), "old/deep/y") == ["created", "opened", "closed"]


def test_a_directory_that_was_renamed_before_it_could_be_watched(watch, tmp_path):
    events = watch()
    (tmp_path / "5.tmp" / "d").mkdir(parents=True)
    (tmp_path / "5.tmp" / "d" / "0001").write_bytes(b"x")
    (tmp_path / "5.tmp").rename(tmp_path / "5")
    told = [(event.kind, event.path) for event in events.read()]
    assert ("moved", "5") in told
    assert ("created", "5/d/0001") in told
    (tmp_path / "5" / "d" / "0002").write_bytes(b"x")
    assert ("created", "5/d/0002") in [(event.kind, event.path) for event in events.read()]


@pytest.mark.parametrize("call", ["inotify_add_watch", "scandir", "lstat"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_directory_that_is_renamed_while_it_is_walked(watch, tmp_path, monkeypatch, call, nth):
    """Job and watcher at once: the name changes before one of the watcher's own system calls."""
    inotify = watch()
    hidden = tmp_path / "0.tmp"
    (hidden / "d" / "e").mkdir(parents=True)
    for name in ("a", "d/b", "d/e/c"):
        (hidden / name).write_text("x")
    calls = 0

    def renaming(real):
        def at_call(path, *words, **more):
            nonlocal calls
            calls += b"0.tmp" in os.fsencode(path)
            if calls == nth and hidden.exists():
                hidden.rename(tmp_path / "0")
            return real(path, *words, **more)

        return at_call

    if call == "inotify_add_watch":
        add = inotify._add
        monkeypatch.setattr(inotify, "_add", renaming(add))
    else:
        monkeypatch.setattr(os, call, renaming(getattr(os, call)))
    events = drained(inotify)
    for name in ("a", "d/b", "d/e/c"):
        made = [e.kind for e in events if e.path in (f"0/{name}", f"0.tmp/{name}")]
        assert made[:1] == ["created"], (name, events)
        assert made.count("created") == 1
    (tmp_path / "0/d/e/late").write_text("x")
    assert "created" in kinds(drained(inotify), "0/d/e/late")


def test_a_renamed_directory_goes_on_under_its_new_name(watch, tmp_path):
    inotify = watch()
    (tmp_path / "tmp-step_100" / "rank0").mkdir(parents=True)
    drained(inotify)
    (tmp_path / "tmp-step_100").rename(tmp_path / "step_100")
    (tmp_path / "step_100" / "rank0" / "x").write_bytes(b"1")
    events = drained(inotify)
    assert [
        (event.path, event.old_path, event.is_dir) for event in events if event.kind == "moved"
    ] == [("step_100", "tmp-step_100", True)]
    assert kinds(events, "step_100/rank0/x") == ["created", "opened", "closed"]


def test_a_directory_moved_out_is_gone_and_not_watched_any_more(watch, tmp_path):
    root, out = tmp_path / "root", tmp_path / "out"
    (root / "a" / "b").mkdir(parents=True)
    inotify = watch(root)
    (root / "a").rename(out)
    assert kinds(told(inotify, lambda found: found), "a") == ["gone"]
    assert inotify.watches == 1
    (out / "b" / "x").write_bytes(b"1")
    assert drained(inotify) == []


def test_a_directory_moved_in_tells_what_it_brings_as_moved(watch, tmp_path):
    root, out = tmp_path / "root", tmp_path / "out"
    root.mkdir()
    (out / "b").mkdir(parents=True)
    (out / "b" / "x").write_bytes(b"1")
    inotify = watch(root)
    out.rename(root / "in")
    events = drained(inotify)
    assert [(event.kind, event.path) for event in events] == [
        ("moved", "in"),
        ("moved", "in/b"),
        ("moved", "in/b/x"),
    ]
    (root / "in" / "b" / "y").write_bytes(b"1")
    assert kinds(drained(inotify), "in/b/y") == ["created", "opened", "closed"]


def test_links_are_told_and_not_followed(watch, tmp_path):
    root, out = tmp_path / "root", tmp_path / "out"
    root.mkdir()
    out.mkdir()
    inotify = watch(root)
    (root / "latest").symlink_to(out)
    events = drained(inotify)
    (out / "x").write_bytes(b"1")
    assert [(event.kind, event.path, event.is_dir) for event in events] == [
        ("created", "latest", False),
        ("closed", "latest", False),
    ]
    assert drained(inotify) == []
    assert inotify.watches == 1


def test_names_that_are_not_utf8(watch, tmp_path):
    inotify = watch()
    name = b"caf\xe9\n"
    os.mkdir(os.path.join(os.fsencode(tmp_path), name))
    drained(inotify)
    with open(os.path.join(os.fsencode(tmp_path), name, b"\xff.pt"), "wb"):
        pass
    paths = {event.path for event in drained(inotify)}
    assert paths == {os.fsdecode(name + b"/\xff.pt")}


def test_a_tree_deeper_than_python_recurses_and_than_a_path_may_be_long(watch, tmp_path):
    inotify = watch()
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        for _ in range(1050):
            os.mkdir("ddd", dir_fd=fd)
            above, fd = fd, os.open("ddd", os.O_RDONLY, dir_fd=fd)
            os.close(above)
        events = told(inotify, lambda found: inotify.problem, 20.0)
    finally:
        os.close(fd)
        subprocess.run(["rm", "-rf", str(tmp_path / "ddd")], check=True)  # shutil.rmtree recurses
    assert "File name too long" in inotify.problem
    assert 700 < inotify.watches < 1050
    assert len([event for event in events if event.kind == "created"]) > 700


def test_ignored_paths_are_silent(watch, tmp_path):
    inotify = watch(ignore=("runs/mine",))
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "x").write_bytes(b"1")
    (tmp_path / "runs" / "other").write_bytes(b"1")
    assert {event.path for event in drained(inotify)} == {"runs", "runs/other"}


def test_a_full_queue_is_said_and_the_tree_read_again(watch, tmp_path):
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if most > 40_000:
        pytest.skip(f"the queue holds {most} events: too many to fill here")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "changed").write_bytes(b"1")
    (tmp_path / "old" / "deleted").write_bytes(b"1")
    inotify = watch()
    for k in range(most // 2 + 10):  # two names in turn, so that no two events are alike and joined
        os.close(os.open(tmp_path / "old" / ("changed" if k % 2 else "deleted"), os.O_WRONLY))
    (tmp_path / "late" / "in").mkdir(parents=True)
    (tmp_path / "late" / "in" / "x").write_bytes(b"1")
    (tmp_path / "old" / "changed").write_bytes(b"22")
    (tmp_path / "old" / "deleted").unlink()
    events = told(inotify, lambda found: "overflow" in [event.kind for event in found], 20.0)
    after = events[[event.kind for event in events].index("overflow") :]
    assert kinds(after, "late/in/x") == ["created"]
    assert kinds(after, "old/changed") == ["opened"]
    assert kinds(after, "old/deleted") == ["gone"]
    (tmp_path / "late" / "in" / "y").write_bytes(b"1")
    assert kinds(drained(inotify), "late/in/y") == ["created", "opened", "closed"]


def test_the_directory_is_removed_and_made_again(watch, tmp_path):
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    inotify = watch(root)
    shutil.rmtree(root)
    events = told(inotify, lambda found: "lost" in [event.kind for event in found])
    assert not inotify.here
    assert inotify.look() == []
    (root / "b").mkdir(parents=True)
    (root / "b" / "x").write_bytes(b"1")
    events = inotify.look()
    assert [(event.kind, event.path) for event in events] == [
        ("found", ""),
        ("created", "b"),
        ("created", "b/x"),
    ]
    (root / "b" / "y").write_bytes(b"1")
    assert kinds(drained(inotify), "b/y") == ["created", "opened", "closed"]


def test_the_directory_is_replaced_by_another_between_two_looks(watch, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    inotify = watch(root)
    root.rename(tmp_path / "away")
    root.mkdir()
    events = drained(inotify) + inotify.look()
    assert [event.kind for event in events] == ["lost", "found"]
    (root / "x").write_bytes(b"1")
    assert kinds(drained(inotify), "x") == ["created", "opened", "closed"]


def test_a_directory_that_does_not_exist_yet(watch, tmp_path):
    inotify = watch(tmp_path / "later")
    assert not inotify.here
    assert inotify.look() == []
    (tmp_path / "later").mkdir()
    assert [event.kind for event in inotify.look()] == ["found"]


def test_the_same_paths_many_times_over_leave_nothing_behind(watch, tmp_path):
    inotify = watch()
    for _ in range(50):
        (tmp_path / "step").mkdir()
        (tmp_path / "step" / "x").write_bytes(b"1")
        shutil.rmtree(tmp_path / "step")
    events = drained(inotify, 0.3)
    assert inotify.watches == 1
    assert inotify._names == {b"": set()}
    assert [event.kind for event in events if event.path == "step" and event.is_dir] == [
        "created",
        "gone",
    ] * 50


CHILD = """
import os, sys, time
from ckptcost.first.watch.inotify import Inotify
root = sys.argv[1]
{before}
inotify = Inotify(root)
{after}
"""


def child(tmp_path, before, after, *words, **more):
    code = CHILD.format(before=before, after=after)
    environment = {**os.environ, "PYTHONPATH": str(REPO), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [*words, sys.executable, "-c", code, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **more,
    )


def test_no_watches_left_is_said_with_the_remedy(tmp_path):
    """The limit is that of a user namespace of its own, so that nobody else on the machine runs
    into it."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare(1) to get a limit of our own")
    for name in "abcdef":
        (tmp_path / name).mkdir()
    ran = child(
        tmp_path,
        "open('/proc/sys/user/max_inotify_watches', 'w').write('3')",
        "print(inotify.exhausted, inotify.watches)",
        "unshare",
        "--user",
        "--map-root-user",
    )
    if ran.returncode != 0:
        pytest.skip(f"no user namespace with a limit of its own: {ran.stderr.strip()[-200:]}")
    assert "no inotify watch is left" in ran.stdout
    assert "sysctl fs.inotify.max_user_watches=" in ran.stdout
    assert ran.stdout.split()[-1] == "3"


@pytest.fixture
def public():
    """A directory that other users reach; pytest's own is closed to them."""
    path = Path(tempfile.mkdtemp(prefix="ckptcost-watch-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def test_a_directory_that_may_not_be_read_is_said_and_tried_again(public):
    if os.getuid() != 0:
        pytest.skip("takes root to become somebody who may not read")
    (public / "shut").mkdir(mode=0o700)
    (public / "open").mkdir(mode=0o755)
    go = (
        "print(inotify.watches, inotify.problem, inotify.exhausted, flush=True);"
        " sys.stdin.readline();inotify._retry_ns -= 10**11; print([event.path for event in"
        " inotify.look()], repr(inotify.problem), inotify.watches)"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPO), "PYTHONDONTWRITEBYTECODE": "1"}
    words = [
        sys.executable,
        "-c",
        CHILD.format(before="os.setgid(65534); os.setuid(65534)", after=go),
        str(public),
    ]
    with subprocess.Popen(
        words,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        first = process.stdout.readline()
        (public / "shut").chmod(0o755)
        (public / "shut" / "x").write_bytes(b"1")
        rest, errors = process.communicate("\n", timeout=30)
    assert first.strip() == "2 not watched: 'shut' (permission denied)", errors
    assert rest.strip() == "['shut/x'] '' 3"


def test_closed_twice_is_closed_once(tmp_path):
    inotify = Inotify(str(tmp_path))
    inotify.close()
    inotify.close()
    with pytest.raises(OSError) as failed:  # noqa: PT011
        inotify.read()
    assert failed.value.errno == errno.EBADF
