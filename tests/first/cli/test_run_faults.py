"""What goes wrong around a job under `ckptcost run`: the run is there, says what happened, and the
job ends as it would have."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ckptcost.first.core.contents import contents_of
from ckptcost.first.core.phases import windows_of
from ckptcost.first.runs.reader import load

CKPTCOST = [sys.executable, "-m", "ckptcost.first"]
SAVE = """
import os, sys, time
from pathlib import Path
folder = Path(sys.argv[1])
def save(n):
    with (folder / f"step_{n}.pt").open("wb") as file:
        for _ in range(6):
            file.write(os.urandom(1 << 20))
        file.flush(); os.fsync(file.fileno())
"""


@pytest.fixture
def environ(tmp_path):
    return {
        **os.environ,
        "CKPTCOST_RUNS": str(tmp_path / "runs"),
        "CKPTCOST_USER": str(tmp_path / "user"),
    }


@pytest.fixture
def small_disk(tmp_path):
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small file system needs root")
    point = tmp_path / "small"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(point)], check=True)
    yield point
    subprocess.run(["umount", str(point)], check=True)


def run(environ, program, folder, *flags):
    words = [
        *CKPTCOST,
        "run",
        "--settle",
        "1 s",
        *flags,
        "--",
        sys.executable,
        "-c",
        SAVE + program,
        str(folder),
    ]
    return subprocess.run(
        words, capture_output=True, timeout=60, env=environ, check=False, text=True
    )


def windows(environ):
    (folder,) = Path(environ["CKPTCOST_RUNS"]).iterdir()
    marks = load(folder).marks
    found = windows_of(marks)
    return list(zip(found, contents_of(marks, found), strict=True))


def test_a_disk_that_is_full_in_the_middle_of_a_save(environ, small_disk):
    done = run(environ, "save(1); time.sleep(1.5); save(2)", small_disk, "--watch", str(small_disk))
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    (first, what), *rest = windows(environ)
    assert (first.label, what.bytes, what.why) == ("step_1.pt", 6 << 20, "IN_MEMORY")
    assert all(window.durable_s is None for window, _ in rest)


def test_a_run_folder_that_is_full_costs_the_job_nothing(environ, small_disk, tmp_path):
    (tmp_path / "ckpt").mkdir()
    (small_disk / "filler").write_bytes(bytes((8 << 20) - 16384))
    done = run(
        environ,
        "save(1); time.sleep(1); sys.exit(3)",
        tmp_path / "ckpt",
        "--record",
        str(small_disk / "run"),
    )
    assert done.returncode in (3, 4)  # it could not begin, or the job went its way
    if done.returncode == 3:
        assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_is_removed_and_comes_back(environ, tmp_path):
    folder = tmp_path / "ckpt"
    folder.mkdir()
    program = (
        "import shutil\nsave(1); time.sleep(1.3); shutil.rmtree(folder); time.sleep(0.3);"
        " folder.mkdir(); time.sleep(1.0)\nsave(2); time.sleep(0.2)"
    )
    done = run(environ, program, folder, "--watch", str(folder))
    assert done.returncode == 0, done.stderr
    assert {"step_1.pt", "step_2.pt"} <= {window.label for window, _ in windows(environ)}


def test_a_folder_that_the_job_makes_later(environ, tmp_path):
    folder = tmp_path / "later" / "ckpt"
    done = run(
        environ,
        "time.sleep(0.5); folder.mkdir(parents=True); time.sleep(1.2); save(1); time.sleep(0.3)",
        folder,
        "--watch",
        str(folder),
    )
    assert done.returncode == 0, done.stderr
    assert [window.label for window, _ in windows(environ)] == ["step_1.pt"]


def test_a_job_that_is_killed_in_the_middle_of_a_save(environ, tmp_path):
    program = (
        "save(1); time.sleep(1.3)\nfile = (folder / 'step_2.pt.tmp').open('wb');"
        " file.write(os.urandom(6 << 20)); file.flush()\ntime.sleep(0.3); os.kill(os.getpid(), 9)"
    )
    done = run(
        environ, program, tmp_path, "--watch", str(tmp_path), "--record", str(tmp_path / "run")
    )
    assert done.returncode == -9
    marks = load(tmp_path / "run").marks
    found = windows_of(marks)
    what = contents_of(marks, found)
    assert found[0].durable_s is not None
    assert len(found) == 2
    assert what[1].error == "unfinished"
