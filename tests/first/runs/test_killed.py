"""kill -9 in mid-write, twenty times: always readable, and at most the last second is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ckptcost.first.runs.reader import load

TIMES = 20


HELPER = str(Path(__file__).with_name("rank_process.py"))


def test_a_script_that_ends_without_stopping_is_stopped(tmp_path):
    subprocess.run([sys.executable, HELPER, "forget", str(tmp_path)], timeout=60, check=True)
    run = load(tmp_path)
    assert run.ended
    assert len(run.marks) == 1


def test_killed_twenty_times(tmp_path):
    done = subprocess.run(
        [sys.executable, HELPER, "floods", str(tmp_path), str(TIMES)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    last_ns = [int(line) for line in done.stdout.split()]
    assert len(last_ns) == TIMES
    lost_s = []
    for turn in range(TIMES):
        run = load(tmp_path / str(turn))
        assert not run.ended
        assert [
            problem
            for problem in run.problems
            if not problem.text.startswith(
                ("the last line is cut off", "empty", "no header (cut off")  # of a new part
            )
        ] == []
        notes = [mark for mark in run.marks if mark.name == "note"]
        assert [mark.window for mark in notes] == [str(number) for number in range(len(notes))]
        assert len(notes) > 2
        lost_s.append(last_ns[turn] / 1e9 - (run.nodes[0].origin_ns / 1e9 + run.duration_s))
    assert max(lost_s) < 2.0  # some 10 ms on an idle machine
