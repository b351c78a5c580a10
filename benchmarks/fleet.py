"""A fleet read and merged: 1e5 to 1e7 windows on one machine, the largest with more workers. Each
round in an interpreter of its own."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import ENVIRONMENT, digits, table

DAYS, PER_DAY = 7, 700.0
SIZES = {"1e5": 20, "1e6": 205, "1e7": 2048}
"""nodes; each writes seven files of about 700 windows"""
MOST_S, MOST_MB = 10.0, 2000.0
"""limits of the design for 1e7"""
ROUNDS = 3
WORKER = """
import json, resource, sys, time
from ckptcost.first.fleet.answer import FleetQuestion, answer_of
if __name__ == "__main__":
    began_s = time.perf_counter()
    study = answer_of(FleetQuestion(sys.argv[1], "job", scheduler=sys.argv[2]), (), None)
    took_s = time.perf_counter() - began_s
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    rows = sum(1 for _ in study.tables)
    print(json.dumps({"s": took_s, "mb": peak_mb}))
"""
CLUSTER = """
import sys, time
from distributed import LocalCluster
if __name__ == "__main__":
    asked = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with LocalCluster(n_workers=int(sys.argv[1]), **asked) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""
PEER = """
import json, resource, sys, time
import pyarrow.dataset as dataset
if __name__ == "__main__":
    began_s = time.perf_counter()
    sums = {}
    files = dataset.dataset(
        sys.argv[1], format="parquet", partitioning="hive", exclude_invalid_files=True
    )
    for batch in files.to_batches(columns=["key", "stall_s", "gpu_j"]):
        sums[0] = sums.get(0, 0.0) + batch.column("gpu_j").to_numpy(zero_copy_only=False).sum()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"s": time.perf_counter() - began_s, "mb": peak / 1e6}))
"""
"""the limit: three columns of the same files through pyarrow.dataset, added up, nothing merged"""


def _run(program: str, *words: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
        timeout=600,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _median(rounds: list[dict[str, float]], what: str) -> float:
    return statistics.median(each[what] for each in rounds)


def measure(rounds: int = ROUNDS) -> str:
    from ckptcost.first.fleet.synthetic.synthesize import synthesize

    rounds = min(rounds, ROUNDS)
    told: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        stores = {}
        counts = {}
        for name, nodes in SIZES.items():
            stores[name] = str(Path(folder) / name)
            made = synthesize(nodes, DAYS, stores[name], saves_per_day=PER_DAY)
            counts[name] = made.rows
        found = {}
        for name, store in stores.items():
            ours, peer = [], []
            for _ in range(rounds):
                ours.append(_run(WORKER, store, "pandas"))
                peer.append(_run(PEER, store))
            found[name] = ours
            limit = _kept(ours) if name == "1e7" else ""
            per_row_us = _median(ours, "s") / counts[name] * 1e6
            told.append(
                [
                    f"{counts[name]:,}",
                    "pandas",
                    digits(_median(ours, "s")),
                    f"{_median(ours, 'mb'):.0f}",
                    digits(per_row_us),
                    digits(_median(ours, "s") / _median(peer, "s")),
                    limit,
                ]
            )
        alone_s = _median(found["1e7"], "s")
        for scheduler in ("threads", "processes"):
            seen = [_run(WORKER, stores["1e7"], scheduler) for _ in range(rounds)]
            told.append(
                [
                    f"{counts['1e7']:,}",
                    f"Dask, {scheduler}",
                    digits(_median(seen, "s")),
                    f"{_median(seen, 'mb'):.0f}",
                    "",
                    "",
                    f"{alone_s / _median(seen, 's'):.2f} of one; {_kept(seen)}",
                ]
            )
        for workers in (1, 2, 4):
            seen = _on_cluster(stores["1e7"], workers, rounds)
            told.append(
                [
                    f"{counts['1e7']:,}",
                    f"distributed, {workers} worker{'s' * (workers > 1)}",
                    digits(_median(seen, "s")),
                    f"{_median(seen, 'mb'):.0f}",
                    "",
                    "",
                    f"{alone_s / _median(seen, 's'):.2f} of one",
                ]
            )
    header = ["windows", "where", "s", "MB", "us a window", "to pyarrow.dataset", "limit, speed-up"]
    return (
        table(header, told)
        + "\nFrom `ckptcost fleet`'s first look at the store to its finished study, files in the"
        " page cache; MB: resident peak of the process that asks. pyarrow.dataset reads three"
        " columns of the same files and adds one up. The machine has two cores: more workers than"
        " that only share them.\n"
    )


def _kept(rounds: list[dict[str, float]]) -> str:
    share = max(_median(rounds, "s") / MOST_S, _median(rounds, "mb") / MOST_MB)
    return f"{MOST_S:g} s, {MOST_MB:g} MB: " + (
        "met" if share <= 1 else f"**miss**, {share:.2f} times the budget"
    )


def _on_cluster(store: str, workers: int, rounds: int) -> list[dict[str, float]]:
    cluster = subprocess.Popen(
        [sys.executable, "-c", CLUSTER, str(workers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    try:
        assert cluster.stdout is not None
        address = cluster.stdout.readline().strip()
        return [_run(WORKER, store, address) for _ in range(rounds)]
    finally:
        cluster.communicate("", timeout=60)


if __name__ == "__main__":
    print(measure())
