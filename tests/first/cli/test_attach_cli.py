"""`ckptcost attach`: a process that runs already is followed and never touched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from ckptcost.first.errors import InputError
from ckptcost.first.runs.reader import load

CKPTCOST = [sys.executable, "-m", "ckptcost.first"]
SAVER = """
import os, sys, time
folder = sys.argv[1]
print("ready", flush=True)
sys.stdin.readline()
for n in range(int(sys.argv[2])):
    time.sleep(1.0)
    with open(os.path.join(folder, f"step_{n}.pt"), "wb") as file:
        file.write(os.urandom(8 << 20)); file.flush(); os.fsync(file.fileno())
time.sleep(0.5)
"""


@pytest.fixture
def environ(tmp_path):
    return {
        **os.environ,
        "CKPTCOST_RUNS": str(tmp_path / "runs"),
        "CKPTCOST_USER": str(tmp_path / "user"),
    }


@pytest.fixture
def job(tmp_path):
    folder = tmp_path / "ckpt"
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", SAVER, str(folder), "4"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        running.stdout.readline()
        yield running, folder
        if running.poll() is None:
            running.kill()


def attach(environ, *words, **more):
    return subprocess.run(
        [*CKPTCOST, "attach", *words],
        capture_output=True,
        timeout=60,
        env=environ,
        check=False,
        text=True,
        **more,
    )


def recorded_s(runs):
    """How long the only run is so far, nothing while there is none that can be read."""
    try:
        return max((load(run).duration_s for run in runs.glob("*")), default=0.0)
    except InputError:
        return 0.0


@contextmanager
def attached(environ, *words, for_s):
    """`ckptcost attach` that has recorded for so long, however long it takes to begin."""
    with subprocess.Popen(
        [*CKPTCOST, "attach", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ,
    ) as us:
        deadline = time.monotonic() + 60
        while recorded_s(Path(environ["CKPTCOST_RUNS"])) <= for_s:
            assert us.poll() is None, us.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield us


def followed(environ, running, *words):
    """A job that saves once somebody is attached to it, and what that one says in the end."""
    with attached(environ, *words, "-f", "json", for_s=0.0) as us:
        running.communicate("save\n", timeout=60)
        out, said = us.communicate(timeout=60)
    assert us.returncode == 0, said
    return json.loads(out)["tables"]["windows"]["rows"], said


def test_it_ends_with_the_process_and_has_its_checkpoints(job, environ):
    running, folder = job
    rows, said = followed(
        environ, running, str(running.pid), "--watch", str(folder), "--settle", "2 s"
    )
    assert running.returncode == 0
    assert len(rows) == 4
    assert all(row["bytes"] == 8 << 20 and row["durable"] is not None for row in rows)
    assert "the process ended" in said


def test_without_a_folder_its_writing_tells(job, environ):
    running, _ = job
    rows, _ = followed(environ, running, str(running.pid), "--settle", "2 s", "--gap", "0.3 s")
    assert len(rows) >= 3


def test_for_a_while_leaves_the_process_alone(job, environ):
    running, folder = job
    done = attach(environ, str(running.pid), "--watch", str(folder), "--for", "1.5 s")
    assert done.returncode == 0, done.stderr
    assert "time is over" in done.stderr
    assert running.poll() is None


def test_ctrl_c_ends_us_with_what_there_is(job, environ):
    running, folder = job
    words = (str(running.pid), "--watch", str(folder), "-f", "json")
    with attached(environ, *words, for_s=1.0) as us:
        us.send_signal(signal.SIGINT)
        out, said = us.communicate(timeout=30)
    assert us.returncode == 0, said
    assert json.loads(out)["kind"] == "measurement"
    assert "interrupted" in said
    assert running.poll() is None


def test_a_process_that_is_gone_or_none(environ):
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    for pid in (str(gone.pid), "-3", "0"):
        done = attach(environ, "--", pid) if pid.startswith("-") else attach(environ, pid)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1, done.stderr


def test_a_folder_is_watched_without_a_process(job, environ):
    running, folder = job
    words = ("--watch", str(folder), "--for", "8 s", "--settle", "2 s")
    rows, said = followed(environ, running, *words)
    assert len(rows) >= 2
    assert all(row["bytes"] == 8 << 20 for row in rows[1:])
    assert rows[1]["durable"] is not None
    assert all(row["stall"] is None for row in rows)  # a folder does not tell when training went on
    assert "time is over" in said
    assert running.returncode == 0


def test_neither_a_process_nor_a_folder_is_an_error(environ):
    done = attach(environ)
    assert done.returncode == 2
    assert (
        done.stderr
        == "ckptcost: ckptcost attach: names no process. give its PID, or --watch DIR to watch a"
        " folder alone\n"
    )
