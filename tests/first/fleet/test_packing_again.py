"""A job that starts `ckptcost run` twice: two runs of one job; and one run, where somebody fixed
its id. Nothing of either is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from ckptcost.first.fleet.node_file import decode
from ckptcost.first.fleet.store import open_store

SAVES = """
import os, time, ckptcost
for step in {steps}:
    with ckptcost.window(f"step {{step}}"):
        time.sleep(0.05)
    time.sleep(0.1)
raise SystemExit({code})
"""


def recorded(runs: Path, steps: str, code: int, **environ: str) -> None:
    words = [
        sys.executable,
        "-m",
        "ckptcost",
        "run",
        "-q",
        "--",
        sys.executable,
        "-c",
        SAVES.format(steps=steps, code=code),
    ]
    done = subprocess.run(
        words,
        env={**os.environ, "CKPTCOST_RUNS": str(runs), "SLURM_JOB_ID": "17", **environ},
        check=False,
        timeout=60,
    )
    assert done.returncode == code


def packed(runs: Path, store: Path, *what: str) -> list[tuple[str, str, list[str]]]:
    words = [
        sys.executable,
        "-m",
        "ckptcost",
        "runs",
        "pack",
        *(what or ("--all",)),
        "--store",
        str(store),
    ]
    subprocess.run(
        words,
        env={**os.environ, "CKPTCOST_RUNS": str(runs)},
        check=True,
        capture_output=True,
        timeout=60,
    )
    kept = open_store(str(store))
    days = [decode(kept.read(entry.path)) for entry in kept.listing()]
    return sorted((day.head.job, day.head.run, sorted(day.rows["label"].tolist())) for day in days)


def test_two_runs_of_one_job(tmp_path: Path) -> None:
    recorded(tmp_path / "runs", "(1, 2)", 3)
    recorded(tmp_path / "runs", "(2, 3)", 0)
    first, second = packed(tmp_path / "runs", tmp_path / "store")
    assert first[0] == second[0] == "17"
    assert first[1] != second[1]
    assert sorted([first[2], second[2]]) == [["step 1", "step 2"], ["step 2", "step 3"]]


def test_one_run_whose_id_is_fixed(tmp_path: Path) -> None:
    for steps, code in (("(1, 2)", 3), ("(3, 4)", 0)):
        recorded(tmp_path / "runs", steps, code, CKPTCOST_RUN_ID="always-the-same")
    assert len(list((tmp_path / "runs").iterdir())) == 2
    ((job, run, labels),) = packed(tmp_path / "runs", tmp_path / "store")
    assert (job, run, labels) == ("17", "always-the-same", ["step 1", "step 2", "step 3", "step 4"])
    # by name, into another store: its other folder comes with it
    ((_, _, labels),) = packed(
        tmp_path / "runs", tmp_path / "other", str(max((tmp_path / "runs").iterdir()))
    )
    assert labels == ["step 1", "step 2", "step 3", "step 4"]
