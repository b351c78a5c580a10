"""Whose a file is: real processes that hold files open."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ckptcost.first.watch.watcher import Owners

HOLDS = (
    "import sys; files = [open(path, 'ab') for path in sys.argv[1:]]; print('open', flush=True);"
    " sys.stdin.read()"
)


@pytest.fixture
def holder():
    """A process that holds files open for writing."""
    started = []

    def start(*paths):
        command = [sys.executable, "-c", HOLDS, *map(str, paths)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout.readline() == b"open\n"
        return process.pid

    yield start
    for process in started:
        process.communicate()


def test_the_jobs_files_and_anothers(tmp_path, holder):
    job = holder(tmp_path / "mine.pt")
    other = holder(tmp_path / "theirs.pt")
    mine, theirs = Owners(tmp_path, lambda: [job]).others(["mine.pt", "theirs.pt", "closed.pt"])
    assert mine == {"mine.pt"}
    assert {path: each.pid for path, each in theirs.items()} == {"theirs.pt": other}
    assert theirs["theirs.pt"].name


def test_a_file_that_both_write_is_the_jobs(tmp_path, holder):
    job = holder(tmp_path / "log.pt", tmp_path / "both.pt")
    holder(tmp_path / "both.pt")
    assert Owners(tmp_path, lambda: [job]).others(["both.pt"]) == ({"both.pt"}, {})


def test_as_long_as_the_job_writes_nothing_here_somebody_may_write_for_it(tmp_path, holder):
    holder(tmp_path / "served.pt")
    job = holder(tmp_path.parent / f"{tmp_path.name}.elsewhere")
    assert Owners(tmp_path, lambda: [job]).others(["served.pt"]) == (set(), {})


def test_a_job_that_is_not_known_owns_nothing_and_nobody_else_does(tmp_path, holder):
    holder(tmp_path / "a.pt")
    assert Owners(tmp_path, list).others(["a.pt"]) == (set(), {})


def test_our_own_process_is_nobodys_job(tmp_path, holder):
    job = holder(tmp_path / "mine.pt")
    with (tmp_path / "ours.pt").open("ab"):
        assert os.getpid() != job
        assert Owners(tmp_path, lambda: [job]).others(["ours.pt"]) == (set(), {})
