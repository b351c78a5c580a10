"""What `ckptcost run` says of a job's saves, beside what the job itself noted and what the device's
own counter shows.

A save is truly safe when the device has taken as many bytes as its files have: saves are so far
apart that the one before is through.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from throttled import device_of

from ckptcost.first.core.joining import join_marks
from ckptcost.first.core.phases import windows_of
from ckptcost.first.core.windows import Window
from ckptcost.first.runs.reader import load

JOBS = Path(__file__).with_name("saving_jobs.py")
LOOK_S = 0.005


class Save(NamedTuple):
    """One save; what was said is None where nothing was, or where it was not found."""

    bytes: float
    begin_s: float
    stall_s: float
    safe_s: float | None
    """after the begin; None: the device never had all of it"""
    said_bytes: float | None = None
    said_begin_s: float | None = None
    said_stall_s: float | None = None
    said_safe_s: float | None = None
    said_why: str = ""
    """why nothing was said of its safety"""

    @property
    def is_found(self) -> bool:
        return self.said_begin_s is not None


class Ran(NamedTuple):
    saves: list[Save]
    others: int
    """checkpoints that were found and are none"""
    late_s: float
    """how long a thread of this machine that wants to run had to wait, at the worst"""


class Counter:
    """What a device has taken, looked at every few milliseconds."""

    def __init__(self, device: Path) -> None:
        self._stat = device_of(device) / "stat"
        self.seen = [(time.monotonic_ns(), self._taken())]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _taken(self) -> int:
        return int(self._stat.read_text("ascii").split()[6]) * 512

    def _look(self) -> None:
        while not self._over.wait(LOOK_S):
            self.seen.append((time.monotonic_ns(), self._taken()))

    def __enter__(self) -> Counter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def late_s(self) -> float:
        """The longest that it was kept from looking."""
        instants = [at_ns for at_ns, _ in self.seen]
        waits = [(after - before) / 1e9 for before, after in pairwise(instants)]
        return max(waits, default=0.0) - LOOK_S

    def taken_s(self, since_ns: int, size_bytes: float, until_ns: int) -> float | None:
        """Seconds from an instant until so many bytes more are there."""
        before = max((at for at in self.seen if at[0] <= since_ns), default=self.seen[0])[1]
        for at_ns, taken in self.seen:
            if since_ns < at_ns <= until_ns and taken - before >= size_bytes:
                return (at_ns - since_ns) / 1e9
        return None


@contextmanager
def written_back(folder: Path, every_s: float = 1.0) -> Iterator[None]:
    """The kernel writes back after 30 s what nobody syncs; here somebody asks for it after one."""
    over = threading.Event()
    fd = os.open(folder, os.O_RDONLY)

    def sync() -> None:
        while not over.wait(every_s):
            ctypes.CDLL(None).syncfs(fd)

    thread = threading.Thread(target=sync)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        os.close(fd)


def ran(
    way: str, folder: Path, notes: Path, device: Path | None, *words: str, path: str = ""
) -> Ran:
    """A job under `ckptcost run` in `folder`; `device` is a folder on the device beneath it, None
    where there is none."""
    folder, truth = folder / way, notes / f"{way}.jsonl"
    folder.mkdir()
    environ = {
        **os.environ,
        "CKPTCOST_RUNS": str(notes / f"runs-{way}"),
        "CKPTCOST_USER": str(notes / "user"),
        "PYTHONPATH": path,
    }
    job = [sys.executable, str(JOBS), way, str(folder), str(truth), *words]
    command = [sys.executable, "-m", "ckptcost.first", "run", "-q", "--watch", str(folder)]
    command += ["--settle", "20 s", "--", *job]
    if device is None:
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        counter = None
    else:
        with Counter(device) as counter, written_back(device):
            done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (kept,) = Path(environ["CKPTCOST_RUNS"]).iterdir()
    run = load(kept)
    origin_s = run.nodes[0].origin_ns / 1e9
    lines = [json.loads(line) for line in truth.read_text("utf-8").splitlines()]
    begins_ns = [line["begin_ns"] for line in lines] + [time.monotonic_ns()]
    sizes = {
        mark.window: mark.detail["bytes"]
        for mark in run.marks
        if mark.name in ("written", "durable") and "bytes" in mark.detail
    }
    why = {
        mark.window: str(mark.detail["durable_why"])
        for mark in run.marks
        if "durable_why" in mark.detail
    }
    windows = [each for each in windows_of(join_marks(run.marks)) if each.begin_s is not None]
    saves = []
    for line, next_ns in zip(lines, begins_ns[1:], strict=True):
        save = Save(
            line["bytes"],
            line["begin_ns"] / 1e9 - origin_s,
            (line["returned_ns"] - line["begin_ns"]) / 1e9,
            counter and counter.taken_s(line["begin_ns"], line["bytes"], next_ns),
        )
        mine = [each for each in windows if in_save(each, save, next_ns / 1e9 - origin_s)]
        if mine:
            window = mine[0]
            windows.remove(window)
            begin_s = window.begin_s or 0.0
            save = save._replace(
                said_bytes=sizes.get(window.name),
                said_begin_s=begin_s,
                said_stall_s=window.stall_s,
                said_safe_s=None if window.durable_s is None else window.durable_s - save.begin_s,
                said_why=why.get(window.name, ""),
            )
        saves.append(save)
    return Ran(saves, len(windows), counter.late_s if counter else 0.0)


def in_save(window: Window, save: Save, next_s: float) -> bool:
    begin_s = window.begin_s or 0.0
    return save.begin_s - 0.1 <= begin_s < next_s - 0.1
