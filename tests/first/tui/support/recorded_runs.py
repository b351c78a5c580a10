"""Runs on the disk that are alike on every machine, with fixed ids, hosts and times, so that
screens of them can be compared."""

from __future__ import annotations

import shutil
from pathlib import Path

from small_runs import WALL_NS, recorded

from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.jobs.recording import record
from ckptcost.first.meters import simulated
from ckptcost.first.meters.simulated_machine import MachinePlan, marks
from ckptcost.first.runs.clocks import S, VirtualClock
from ckptcost.first.runs.lines import decode, encode

RATE, FIXED_S = 20e9, 0.5
FOR_S = 110.0
VARIATION = 0.01
"""scatter of what is simulated"""
SMALL_RUN, LARGE_RUN = "5a11" + "0" * 28, "1a49e" + "0" * 27


def simulated_run(
    folder: Path, bytes_: float, run: str, after_s: int = 0, host: str = "node1"
) -> Path:
    """A simulated job that saves so much, at a rate and with a fixed time that are known."""
    moving_s = bytes_ / RATE
    plan = MachinePlan(
        gpus=2,
        packages=0,
        disks=1,
        variation=VARIATION,
        checkpoint_bytes=bytes_,
        interval_s=30.0,
        snapshot_s=0.0,
        write_s=0.3 * moving_s,
        fsync_s=0.7 * moving_s,
        commit_s=FIXED_S,
    )
    seen = simulated.find(plan, origin_ns=0)
    clock = VirtualClock(0, WALL_NS + after_s * S)
    record(
        Instruments(seen.meters, seen.absences, clock, list(marks(plan, 0.0, FOR_S))), FOR_S, folder
    )
    (file,) = folder.iterdir()
    headed(file, folder / f"{host}.000.jsonl", run=run, host=host, boot="", pid=1, ckptcost="0.1.0")
    return folder


def headed(file: Path, to: Path, **changes: object) -> None:
    """The same file under another header."""
    first, _, rest = file.read_bytes().partition(b"\n")
    file.unlink()
    to.write_bytes(encode({**decode(first), **changes}) + rest)


def fill(home: Path, made: Path) -> Path:
    """Runs of several sorts: two simulated ones, a command that was wrapped, one that was killed,
    and a folder that holds none."""
    home.mkdir(parents=True)
    shutil.copytree(made / "small", home / "20260101T000000Z-node1-5a110000")
    shutil.copytree(made / "large", home / "20260101T010000Z-node1-1a49e000")
    folder = home / "20260102T000000Z-gpu-07-c0ffee00"
    command = "python train.py --steps 100 --config configs/llama-8b.yaml"
    day = 86_400 * S
    recorded(
        folder,
        40,
        run_id="c0ffee" + "0" * 26,
        host="gpu-07",
        wall_ns=WALL_NS + day,
        saves=(5, 20),
        command=command,
        exit_code=0,
    )
    killed = home / "20260103T000000Z-gpu-08-dead0000"
    recorded(
        killed, 20, run_id="dead" + "0" * 28, host="gpu-08", wall_ns=WALL_NS + 2 * day, stop=False
    )
    for file in (*folder.iterdir(), *killed.iterdir()):
        headed(file, file, boot="", pid=1, ckptcost="0.1.0")
    return home
