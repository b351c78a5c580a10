"""The worked example under `ckptcost run`: every checkpoint is found from outside and from inside,
and both say the same."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from throttled import throttled, why_not

from ckptcost.first.core.joining import join_marks
from ckptcost.first.core.phases import windows_of
from ckptcost.first.runs.reader import load

pytest.importorskip("torch", reason="the example needs PyTorch: make torch")

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "train_tiny.py")
STEPS, EVERY = 24, 8
SAVES = STEPS // EVERY
NEAR_S = 0.1
# who looks from inside the job shares its interpreter: at worst each file's answer waits for one
# switch of threads
NEAR_PER_FILE_S = sys.getswitchinterval()


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    """A file system of our own where one can be had: another test that fills the disk must not
    decide when these saves are safe."""
    folder = tmp_path_factory.mktemp("storage")
    if why_not():
        yield folder
    else:
        with throttled(folder) as point:
            yield point


@contextmanager
def written_back(folder):
    """Somebody asks for write-back of this file system now and then, so that nobody waits 30 s for
    it. Gives how late a thread of this machine is woken at most, as a list that grows: nobody who
    looks at an instant is sooner.
    """
    over = threading.Event()
    fd = os.open(folder, os.O_RDONLY)
    late_s = [0.0]

    def sync():
        while not over.wait(1.0):
            ctypes.CDLL(None).syncfs(fd)

    def woken():
        asked_s = time.monotonic()
        while not over.wait(0.01):
            late_s.append(max(late_s[-1], time.monotonic() - asked_s - 0.01))
            asked_s = time.monotonic()

    threads = [threading.Thread(target=sync), threading.Thread(target=woken)]
    for thread in threads:
        thread.start()
    try:
        yield late_s
    finally:
        over.set()
        for thread in threads:
            thread.join()
        os.close(fd)


def wrapped(tmp_path, storage, way, *, watch, hooks):
    environ = {
        **os.environ,
        "CKPTCOST_RUNS": str(tmp_path / "runs"),
        "CKPTCOST_USER": str(tmp_path / "user"),
    }
    place = storage / tmp_path.name
    place.mkdir()
    words = [
        sys.executable,
        EXAMPLE,
        "--dir",
        str(place),
        "--save",
        way,
        "--steps",
        str(STEPS),
        "--every",
        str(EVERY),
    ]
    words += ["--keep", "99", *(["--hooks"] if hooks else [])]
    flags = ["--settle", "40 s", *(["--watch", str(place)] if watch else [])]
    command = [sys.executable, "-m", "ckptcost", "run", *flags, "--", *words]
    with written_back(place) as late_s:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=200, env=environ, check=False
        )
    shutil.rmtree(place)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    files = int(way.partition(":")[2] or 1)
    return load(folder), NEAR_S + files * NEAR_PER_FILE_S + late_s[-1], late_s[-1]


@pytest.mark.parametrize("way", ["torch", "torch-tmp", "dcp", "dcp-async", "shards:64"])
def test_inside_and_outside_agree(tmp_path, storage, way):
    run, near_s, late_s = wrapped(tmp_path, storage, way, watch=True, hooks=True)
    inside = [mark for mark in run.marks if mark.by == "api" and mark.name != "steps"]
    outside = [mark for mark in run.marks if mark.by == "watch" and mark.window]
    begins = [[mark.t_s for mark in marks if mark.name == "begin"] for marks in (inside, outside)]
    assert [len(each) for each in begins] == [SAVES, SAVES]
    # a save beside training is handed on before its first byte, and whoever takes it may be late
    begin_late_s = 3 * late_s if way.endswith("async") else 0.0
    for ours, theirs in zip(*begins, strict=True):
        assert abs(ours - theirs) <= near_s + begin_late_s
    # what the job says of its safety, what the kernel said of the hook's path, and what it said of
    # the watched files
    windows = [window for window in windows_of(join_marks(run.marks)) if window.begin_s is not None]
    assert len(windows) == SAVES
    for window in windows:
        said = [
            mark.t_s
            for mark in run.marks
            if mark.name in ("durable", "synced")
            and window.begin_s <= mark.t_s
            and mark.window in {window.label, f"{window.label}.pt"}
            and mark.detail.get("how") != "fsync"
        ]
        assert window.durable_s is not None
        assert said
        assert max(said) - min(said) <= near_s, (window.label, said)


@pytest.mark.parametrize(("watch", "hooks"), [(True, False), (False, True)])
def test_either_alone_finds_every_checkpoint_and_when_it_was_safe(tmp_path, storage, watch, hooks):
    run, *_ = wrapped(tmp_path, storage, "torch-tmp", watch=watch, hooks=hooks)
    windows = [window for window in windows_of(join_marks(run.marks)) if window.begin_s is not None]
    assert len(windows) == SAVES
    assert all(window.durable_s is not None for window in windows)
