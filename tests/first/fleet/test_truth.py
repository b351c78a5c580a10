"""A made-up fleet of 512 nodes and 7 days against its known truth: one process, Dask's threads,
and a real cluster that loses a worker.

Its files are made once, in some seconds; `benchmarks/fleet.py` does the same with thousands of
nodes. Sums must agree to one in a million; between schedulers every bit must.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from math import isclose, isnan
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="dask.distributed is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from fleet_truth import Truth
from fleet_with_truth import fleet_with_truth

from ckptcost.first.fleet.engine import collect_parts, group_by_job_day
from ckptcost.first.fleet.figures import Fleet, fleet_of
from ckptcost.first.fleet.part import StorePart
from ckptcost.first.fleet.store import open_store

NODES, DAYS, PER_DAY = 512, 7, 24.0
CLUSTER = """
import os, sys
from distributed import LocalCluster
if __name__ == "__main__":
    asked = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with LocalCluster(n_workers=2, host="127.0.0.1", **asked) as cluster:
        pids = [worker.pid for worker in cluster.workers.values()]
        print(cluster.scheduler_address, *pids, flush=True)
        sys.stdin.read()
"""


class Made:
    def __init__(self, folder: Path) -> None:
        self.url = str(folder / "fleet")
        self.truth: Truth = fleet_with_truth(NODES, DAYS, self.url, saves_per_day=PER_DAY)
        self.store = open_store(self.url)
        self.groups = group_by_job_day(self.store.listing())
        self.part = collect_parts(self.store, self.groups, "pandas")
        self.fleet: Fleet = fleet_of(self.part, "job", None)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("truth"))


@pytest.fixture
def cluster() -> Iterator[tuple[str, list[int]]]:
    """A scheduler and two workers, each a process of its own."""
    done = subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert done.stdout is not None
    address, *pids = done.stdout.readline().split()
    try:
        yield address, [int(pid) for pid in pids]
    finally:
        done.communicate("", timeout=60)


def near(found: float, true: float) -> bool:
    return (isnan(found) and isnan(true)) or isclose(found, true, rel_tol=1e-6, abs_tol=1e-6)


def test_the_whole_is_true(made: Made) -> None:
    saves, loads, whole = made.truth.saves, made.truth.loads, made.fleet.whole
    assert len(made.part.files) == made.truth.files >= NODES * DAYS
    assert int(made.part.files["rows"].sum()) == made.truth.rows
    assert (whole.checkpoints, whole.failed_saves, whole.loads) == (
        saves.windows,
        saves.failed,
        loads.windows,
    )
    assert whole.failures == made.truth.failures > 0
    lines = {line.id: line for line in whole.lines}
    pairs = {
        "bytes": (whole.bytes, saves.bytes),
        "files": (whole.files, saves.files),
        "stall": (whole.stall_s, saves.stall_s),
        "load": (whole.load_s, loads.stall_s),
        "own": (lines["gpu_wait"].gpu_s.value, saves.own_gpu_s),
        "loading": (lines["loading"].gpu_s.value, loads.own_gpu_s),
        "waiting": (lines["waiting"].gpu_s.value, saves.wait_gpu_s + loads.wait_gpu_s),
        "waiting J": (lines["waiting"].energy_j.value, saves.wait_j + loads.wait_j),
        "gpu J": (lines["gpu_wait"].energy_j.value, saves.gpu_j),
        "host J": (lines["host_wait"].energy_j.value, saves.host_j),
        "slow J": (lines["slowdown"].energy_j.value, saves.slow_j),
        "storage J": (lines["storage_write"].energy_j.value, saves.storage_j),
        "loading J": (lines["loading"].energy_j.value, loads.gpu_j + loads.host_j),
        "gpu low": (lines["gpu_wait"].energy_j.low, saves.gpu_low_j),
        "gpu high": (lines["gpu_wait"].energy_j.high, saves.gpu_high_j),
        "storage low": (lines["storage_write"].energy_j.low, saves.storage_low_j),
    }
    assert {name: pair for name, pair in pairs.items() if not near(*pair)} == {}
    assert not any(run.missing or run.unnamed for run in made.fleet.lacking)


def test_every_job_is_true(made: Made) -> None:
    truths = {job.job: job for job in made.truth.jobs}
    assert [group.name for group in made.fleet.jobs] == sorted(truths)
    wrong = []
    for group in made.fleet.jobs:
        true, runs = truths[group.name], [run for run in made.fleet.runs if run.job == group.name]
        pairs = [
            (group.stall_s, true.saves.stall_s),
            (group.bytes, true.saves.bytes),
            (group.failures, true.failures),
            (sum(run.spent.wall_s for run in runs), true.wall_s),
            (sum(run.spent.down_s for run in runs), true.down_s),
            (sum(run.spent.lost_s for run in runs), true.lost_s),
            (sum(run.spent.load_s for run in runs), true.load_s),
        ]
        wrong += [
            (group.name, pair) for pair in pairs if not isclose(*pair, rel_tol=1e-6, abs_tol=2e-3)
        ]  # files tell instants to 1 ms
    assert wrong == []


def test_who_was_waited_for_is_true(made: Made) -> None:
    nodes = made.part.nodes
    found = nodes.groupby(["job", "host"], observed=True)["blamed_gpu_s"].sum()
    for job in made.truth.jobs:
        mine = found[job.job]
        assert all(near(float(mine[host]), value) for host, value in job.blamed_gpu_s.items())


@pytest.mark.parametrize("by", ["team", "cluster", "model", "tier"])
def test_every_grouping_is_true(made: Made, by: str) -> None:
    groups = {group.name: group for group in fleet_of(made.part, by, None).groups}
    for name, true in made.truth.by(by).items():
        group = groups[name]
        lines = {line.id: line for line in group.lines}
        assert group.checkpoints == true.windows
        assert near(group.stall_s, true.stall_s)
        assert near(lines["gpu_wait"].energy_j.value, true.gpu_j)


def test_days_are_true_but_for_saves_at_midnight(made: Made) -> None:
    """The job's clock is its middle node's, some milliseconds from the true one: a save that begins
    in these may be of another day."""
    days, true = {group.name: group for group in made.fleet.trend}, made.truth.by("day")
    assert days.keys() == true.keys()
    assert sum(group.checkpoints for group in days.values()) == made.truth.saves.windows
    assert all(
        abs(days[day].checkpoints - each.windows) <= len(made.truth.jobs) // 4
        for day, each in true.items()
    )
    assert all(
        abs(days[day].stall_s - each.stall_s) <= 0.02 * each.stall_s for day, each in true.items()
    )


def _same(left: StorePart, right: StorePart) -> bool:
    return all(one.equals(other) for one, other in zip(left, right, strict=True))


def test_threads_give_the_same_bits(made: Made) -> None:
    assert _same(collect_parts(made.store, made.groups, "threads"), made.part)


def test_a_cluster_gives_the_same_bits_though_a_worker_dies(
    made: Made, cluster: tuple[str, list[int]]
) -> None:
    address, (first, _) = cluster
    done: list[int] = []
    killed: list[float] = []

    def tell(count: int, of: int) -> None:
        done.append(count)
        if not killed and 0 < count < of:
            os.kill(first, signal.SIGKILL)
            killed.append(time.monotonic())

    found: Any = collect_parts(made.store, made.groups, address, tell)
    assert killed, "it was killed in the middle"
    assert done[-1] == len(made.groups)
    assert _same(found, made.part)
    assert near(fleet_of(found, "job", None).whole.stall_s, made.truth.saves.stall_s)
