"""The thread as a whole: real files, real time, real errors."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from waiting import wait_for

from ckptcost.first.core.channels import Mark
from ckptcost.first.core.contents import contents_of
from ckptcost.first.core.phases import windows_of
from ckptcost.first.errors import InputError
from ckptcost.first.watch.groups import Rules
from ckptcost.first.watch.watcher import Watcher, WatchSettings, printable

MB = 1_000_000
QUICK = Rules(gap_s=0.2, still_s=1.0, commit_s=1.0, unfinished_s=1.5)
REPO = Path(__file__).parents[3]


class Told:
    """What a recorder would be told."""

    def __init__(self):
        self.marks, self.expected, self.settled, self.closed = [], [], [], []

    def tell(self, name, window="", *, by="api", rank=None, t_ns=None, **detail):
        assert rank is None
        self.marks.append(Mark(t_ns / 1e9, name, window, 0, by, detail))

    def expect(self, within_s):
        self.expected.append(within_s)

    def settle(self, window, paths, since_ns, written_ns, *, closed):
        self.settled.append((window, paths, since_ns, written_ns))
        self.closed.append(closed)

    def names(self, window):
        return [mark.name for mark in self.marks if mark.window == window]

    def mark(self, name, window):
        return next(mark for mark in self.marks if (mark.name, mark.window) == (name, window))


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def watch(tmp_path, told):
    made = []

    def begin(directory=tmp_path, *, settle=False, rules=QUICK, **more):
        settings = WatchSettings(rules=rules, **{"interval_s": 0.05, "poll_still_s": 0.4, **more})
        made.append(
            Watcher(
                directory,
                told.tell,
                told.expect,
                settings=settings,
                settle=told.settle if settle else None,
            ).start()
        )
        return made[-1]

    yield begin
    for each in made:
        each.stop()
    assert [thread for thread in threading.enumerate() if thread.name == "ckptcost-watch"] == []


def save(path, size=3 * MB, takes=0.0):
    with path.open("wb", buffering=0) as file:
        for _ in range(3):
            file.write(b"x" * (size // 3))
            time.sleep(takes / 3)


@pytest.mark.parametrize("poll", [False, True])
def test_a_save_by_rename_with_its_instants(watch, told, tmp_path, poll):
    watcher = watch(settle=True, poll=poll)
    before = time.monotonic()
    save(tmp_path / "step_7.pt.tmp", takes=0.3)
    written = time.monotonic()
    time.sleep(0.1 if not poll else 0.6)
    (tmp_path / "step_7.pt.tmp").rename(tmp_path / "step_7.pt")
    wait_for(lambda: "committed" in told.names("step_7.pt"))
    begin, end, commit = (
        told.mark(name, "step_7.pt") for name in ("begin", "written", "committed")
    )
    assert before - 0.02 <= begin.t_s <= before + 0.15
    assert written - 0.2 <= end.t_s <= written + 0.15
    assert commit.t_s >= written
    assert {mark.by for mark in told.marks} == {"watch"}
    assert end.detail["how"] == ("mtime" if poll else "inotify")
    (window,) = windows_of(told.marks)
    (contents,) = contents_of(told.marks, [window])
    assert (contents.bytes, contents.files, contents.path) == (3 * MB, 1, "step_7.pt.tmp")
    assert window.flags == ()
    assert told.expected
    assert told.settled[0][0] == "step_7.pt"
    assert told.settled[0][1] == [
        tmp_path
        / ("step_7.pt" if not poll or len(told.settled) > 1 else told.settled[0][1][0].name)
    ]
    assert told.settled[0][2:] == (round(begin.t_s * 1e9), round(end.t_s * 1e9))
    assert watcher.problem == ""
    assert watcher.how.startswith("poll" if poll else "inotify")


def test_saves_into_a_file_that_stays_open(watch, told, tmp_path):
    watch(settle=True, rules=Rules(gap_s=0.2, append_s=0.4))
    path = tmp_path / "all.h5"
    begins_s = []
    with path.open("wb", buffering=0) as file:
        for k in range(3):
            begins_s.append(time.monotonic())
            file.write(b"x" * 3 * MB)
            wait_for(lambda k=k: len(told.settled) == k + 1)
            path = path.rename(tmp_path / f"all-{k}.h5")  # the file is the same
    windows = windows_of(told.marks)
    assert [round(window.begin_s - s, 1) for window, s in zip(windows, begins_s, strict=True)] == [
        pytest.approx(0.0, abs=0.2)
    ] * 3
    assert [each.bytes for each in contents_of(told.marks, windows)] == [3 * MB] * 3
    assert told.closed == [False] * 3


def test_the_begin_is_told_while_it_is_written_and_the_label_is_open(watch, told, tmp_path):
    watcher = watch()
    with (tmp_path / "a.pt").open("wb", buffering=0) as file:
        file.write(b"x" * 2 * MB)
        wait_for(lambda: told.names("a.pt") == ["begin"])
        assert watcher.open == ("a.pt",)
    wait_for(lambda: told.names("a.pt") == ["begin", "written", "end"])
    wait_for(lambda: watcher.open == ())


def test_a_directory_checkpoint_of_several_processes(watch, told, tmp_path):
    watch()
    code = (
        "import sys, time; f = open(sys.argv[1], 'wb', 0); [(f.write(b'x' * 500_000),"
        " time.sleep(0.05)) for _ in range(4)]"
    )
    (tmp_path / "tmp-step_9").mkdir()
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "tmp-step_9" / f"rank{k}.pt")])
        for k in range(3)
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    (tmp_path / "tmp-step_9").rename(tmp_path / "step_9")
    wait_for(lambda: "end" in told.names("step_9"))
    assert told.names("step_9") == ["begin", "written", "committed", "end"]
    assert told.mark("end", "step_9").detail == {"path": "step_9", "bytes": 6 * MB, "files": 3}


def test_a_writer_killed_in_the_middle_of_a_temporary_file(watch, told, tmp_path):
    watch()
    code = (
        "import sys, time; f = open(sys.argv[1], 'wb', 0); f.write(b'x' * 2_000_000); print(1,"
        " flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "a.pt.tmp")], stdout=subprocess.PIPE
    ) as writer:
        writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
    wait_for(lambda: "end" in told.names("a.pt"))
    assert told.mark("end", "a.pt").detail["error"] == "unfinished"


def test_stop_tells_what_is_complete_and_ends_what_is_not(watch, told, tmp_path):
    watcher = watch(rules=Rules())
    save(tmp_path / "whole.pt")
    with (tmp_path / "half.pt.tmp").open("wb", buffering=0) as file:
        file.write(b"x" * 2 * MB)
        watcher.stop()
    ends = {mark.window: mark.detail.get("error") for mark in told.marks if mark.name == "end"}
    assert "unfinished" in ends.values()
    assert (
        sum(mark.name == "begin" for mark in told.marks)
        == sum(mark.name == "end" for mark in told.marks)
        == len(ends)
    )
    watcher.stop()
    assert watcher.open == ()


@pytest.mark.parametrize("poll", [False, True])
def test_stop_right_after_a_save_tells_it_whole(watch, told, tmp_path, poll):
    """A polling one waits until the files are still."""
    watcher = watch(rules=Rules(), poll=poll)
    save(tmp_path / "last.pt")
    watcher.stop()
    assert told.names("last.pt") == ["begin", "written", "end"]
    assert "error" not in told.mark("end", "last.pt").detail


def test_a_directory_that_does_not_exist(watch, told, tmp_path):
    with pytest.raises(InputError, match="no such directory"):
        watch(tmp_path / "later")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match="not a directory"):
        watch(tmp_path / "file", create_later=True)


def test_a_directory_that_is_created_later_and_removed_and_made_again(watch, told, tmp_path):
    watcher = watch(tmp_path / "later", create_later=True)
    (tmp_path / "later").mkdir()
    save(tmp_path / "later" / "a.pt", takes=0.6)
    wait_for(lambda: "written" in told.names("a.pt"))
    with (tmp_path / "later" / "b.pt").open("wb", buffering=0) as file:
        file.write(b"x" * 2 * MB)
        wait_for(lambda: "begin" in told.names("b.pt"))
        shutil.rmtree(tmp_path / "later")
        wait_for(lambda: "end" in told.names("b.pt"))
    assert told.mark("end", "b.pt").detail["error"] == "gone"
    wait_for(lambda: watcher.problem)
    (tmp_path / "later").mkdir()
    wait_for(lambda: watcher.problem == "")
    save(tmp_path / "later" / "c.pt")
    wait_for(lambda: "end" in told.names("c.pt"))


def test_marks_hold_only_what_can_be_printed_and_stored(watch, told, tmp_path):
    watch()
    save(Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), b"caf\xe9\x1b[2J.pt"))))
    wait_for(lambda: any(mark.name == "end" for mark in told.marks))
    assert {mark.window for mark in told.marks} == {"caf\\xe9\\x1b[2J.pt"}
    assert all(str(mark.detail["path"]).encode("utf-8").isascii() for mark in told.marks)
    assert printable("größe_100.pt") == "größe_100.pt"


def test_our_own_run_directory_is_not_looked_at(watch, told, tmp_path):
    (tmp_path / "mine").mkdir()
    watch(ignore=(tmp_path / "mine",))
    save(tmp_path / "mine" / "step_1.pt")
    save(tmp_path / "step_2.pt")
    wait_for(lambda: "end" in told.names("step_2.pt"))
    assert {mark.window for mark in told.marks} == {"step_2.pt"}


def test_a_watched_symbolic_link_with_an_ignored_place_behind_it(watch, told, tmp_path):
    (tmp_path / "real" / "mine").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    watch(tmp_path / "link", ignore=(tmp_path / "real" / "mine",))
    save(tmp_path / "real" / "mine" / "step_1.pt")
    save(tmp_path / "link" / "step_2.pt")
    wait_for(lambda: "end" in told.names("step_2.pt"))
    assert {mark.window for mark in told.marks} == {"step_2.pt"}


def test_idle_costs_about_nothing(watch, tmp_path):
    for k in range(50):
        (tmp_path / f"d{k}").mkdir()
    watch()
    spells = []  # the least: what earlier tests left behind in this process may be at work still
    for _ in range(4):
        before = time.process_time()
        time.sleep(1.0)
        spells.append(time.process_time() - before)
    assert min(spells) < 0.01


def test_a_defect_or_an_error_of_who_is_told_is_a_problem_and_not_the_end(
    watch, told, tmp_path, monkeypatch
):
    watcher = watch()
    broken = threading.Event()

    def tell(*words, **more):
        broken.set()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(watcher, "_tell", tell)
    save(tmp_path / "step_1.pt")
    wait_for(broken.is_set)
    wait_for(lambda: "No space left" in watcher.problem)
    monkeypatch.undo()
    save(tmp_path / "step_2.pt")
    wait_for(lambda: "end" in told.names("step_2.pt"))
    wait_for(lambda: watcher.problem == "")


def test_where_the_kernel_gives_no_watch_it_polls(tmp_path):
    """In a user namespace with a limit of its own: the real ENOSPC, at the start and later on."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare(1) to get a limit of our own")
    code = f"""
import sys, time
from pathlib import Path
open('/proc/sys/user/max_inotify_watches', 'w').write('2')
from ckptcost.first.watch.watcher import *
root, marks = Path({str(tmp_path)!r}), []
settings = WatchSettings(rules=Rules(gap_s=0.2), interval_s=0.05, poll_still_s=0.3)
keep = lambda name, window, **more: marks.append((name, window))
watcher = Watcher(root, keep, lambda s: None, settings=settings).start()
print(watcher.how)
for name in 'abcd':
    (root / name).mkdir()
end = time.monotonic() + 10
while watcher.how == 'inotify' and time.monotonic() < end:
    time.sleep(0.01)
(root / 'd' / 'x.pt').write_bytes(b'x' * 2_000_000)
while not marks and time.monotonic() < end:
    time.sleep(0.01)
watcher.stop()
print(watcher.how); print(watcher.problem); print(marks)
"""
    environment = {**os.environ, "PYTHONPATH": str(REPO), "PYTHONDONTWRITEBYTECODE": "1"}
    words = ["unshare", "--user", "--map-root-user", sys.executable, "-c", code]
    ran = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    if "PermissionError" in ran.stderr or ran.stderr.startswith("unshare"):
        pytest.skip(f"no user namespace with a limit of its own: {ran.stderr.strip()[-200:]}")
    first, how, problem, marks = ran.stdout.splitlines() or [ran.stderr] * 4
    assert first == "inotify"
    assert how.startswith("poll: no inotify watch is left")
    assert "sysctl" in problem
    assert marks == "[('begin', 'x.pt'), ('written', 'x.pt'), ('end', 'x.pt')]"


def test_much_at_once_from_several_threads_loses_no_checkpoint(watch, told, tmp_path):
    watch()

    def write(k):
        for step in range(5):
            top = tmp_path / f"job{k}" / f"step_{step}"
            top.mkdir(parents=True)
            save(top / "model.pt", 1_500_000)
            (top / "trainer_state.json").write_text("{}")
            time.sleep(0.15)  # what is gone before anybody looked was never seen
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(tmp_path / f"job{k}" / f"step_{step - 3}")

    threads = [threading.Thread(target=write, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_for(lambda: sum(mark.name == "end" for mark in told.marks) >= 20)
    begun = [mark.window for mark in told.marks if mark.name == "begin"]
    assert len(begun) == len(set(begun)) == 20
