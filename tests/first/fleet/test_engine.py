"""One machine, threads, processes and a real cluster: the same bits, also when a worker is killed
in the middle."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from ckptcost.first.errors import CkptcostError, InputError, MeterUnavailable
from ckptcost.first.fleet import engine
from ckptcost.first.fleet.engine import RAW, collect_parts, group_by_job_day, windows_frame
from ckptcost.first.fleet.node_day import COLUMNS, LINES, NodeDay, NodeDayHead, empty_rows, key_of
from ckptcost.first.fleet.node_file import decode, encode
from ckptcost.first.fleet.part import StorePart
from ckptcost.first.fleet.store import ABOUT, Store, open_store
from ckptcost.first.fleet.validate import day_of

S = 10**9
DAYS = ("2026-11-20", "2026-11-21", "2026-11-22")
ROOT = Path(__file__).resolve().parents[3]

CLUSTER = """
import json, os, sys
{before}
def main():
    from distributed import LocalCluster
    with LocalCluster(n_workers={workers}, threads_per_worker=1, processes={processes}, dashboard_address=None, host="127.0.0.1",
                      protocol="tcp://", silence_logs=50) as cluster:
        pids = [getattr(worker, "pid", os.getpid()) for worker in cluster.workers.values()]
        print(json.dumps([cluster.scheduler_address, pids]), flush=True)
        sys.stdin.read()
if __name__ == "__main__":
    main()
"""


class Cluster(NamedTuple):
    address: str
    pids: list[int]
    pid: int


@contextmanager
def cluster(
    folder: Path, workers: int = 2, processes: bool = True, before: str = ""
) -> Iterator[Cluster]:
    """In a process of its own, on this machine's loopback; ends when its standard input does."""
    script = folder / "cluster.py"
    script.write_text(CLUSTER.format(workers=workers, processes=processes, before=before))
    with subprocess.Popen(
        [sys.executable, str(script)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as running:
        try:
            assert running.stdout is not None
            address, pids = json.loads(running.stdout.readline())
            yield Cluster(address, pids, running.pid)
        finally:
            assert running.stdin is not None
            running.stdin.close()
            try:
                running.wait(20)
            except subprocess.TimeoutExpired:
                running.kill()


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def node_days(jobs: dict[str, int], seed: int = 0, saves: int = 40) -> Iterator[NodeDay]:
    rng = np.random.default_rng(seed)
    for job, nodes in jobs.items():
        for day in DAYS:
            since, until = day_of(day)
            begins = np.sort(rng.integers(since, until - 60 * S, saves))
            begins[:2] = since + np.array([30, 600]) * S
            labels = np.array([f"{day} {k}" for k in range(saves)], dtype=object)
            for node in range(nodes):
                rows = empty_rows(saves)
                rows["label"], rows["key"] = labels, np.array([key_of(label) for label in labels])
                rows["begin_ns"] = begins + node * S // 3
                for name in (
                    "stall_s",
                    "drain_s",
                    "bytes",
                    "files",
                    "gpu_s",
                    *(f"{line}_j" for line in LINES),
                ):
                    rows[name] = np.where(
                        rng.random(saves) < 0.02, math.nan, rng.uniform(0.1, 1e3, saves)
                    )
                head = NodeDayHead(
                    job,
                    f"{job}-run",
                    f"n{node}",
                    day,
                    {"team": job[:1]},
                    8.0,
                    nodes,
                    covered_s=80_000.0,
                    began_ns=since,
                    until_ns=until,
                )
                yield NodeDay(head, rows)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    """Two jobs, three days, one file of each is spoilt."""
    made = open_store(str(tmp_path_factory.mktemp("fleet") / "store"), make=True)
    for day in node_days({"a": 5, "b/c": 3}):
        data = encode(day)
        made.put(
            made.path_of(day.head),
            data[:-7] if (day.head.host, day.head.day) == ("n1", DAYS[1]) else data,
        )
    return made


@pytest.fixture(scope="module")
def here(store) -> StorePart:
    return collect_parts(store, group_by_job_day(store.listing()))


def equal(some: StorePart, other: StorePart) -> None:
    for name, left, right in zip(StorePart._fields, some, other, strict=True):
        assert_frame_equal(left, right, check_exact=True, obj=name)


def slowed(store: Store, seconds: float) -> Store:
    """Pickled with its text, as workers cannot look it up here."""

    class Slow(Store):
        def read(self, path: str) -> bytes:
            import time

            time.sleep(seconds)
            return Store.read(self, path)

    return Slow(store.url, store._place)


def gone(pid: int) -> bool:
    """Dead, and its parent knows."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_what_is_collected_is_all(store, here):
    assert here.files.code.value_counts().to_dict() == {"": 22, "TRUNCATED": 2}
    assert here.windows.groupby("job").size().to_dict() == {"a": 120, "b/c": 120}
    assert here.windows.nodes.sum() == 22 * 40
    assert here.nodes.windows.sum() == 22 * 40
    assert here.edges.empty


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_threads_and_processes_give_the_same_bits(store, here, scheduler):
    told: list[tuple[int, int]] = []
    equal(
        collect_parts(
            store, group_by_job_day(store.listing()), scheduler, lambda *said: told.append(said)
        ),
        here,
    )
    assert told == [(k, 6) for k in range(1, 7)]


def test_a_cluster_gives_the_same_bits_and_nothing_is_said(store, here, two_workers, capfd):
    told: list[tuple[int, int]] = []
    equal(
        collect_parts(
            store,
            group_by_job_day(store.listing()),
            two_workers.address,
            lambda *said: told.append(said),
        ),
        here,
    )
    assert told == [(k, 6) for k in range(1, 7)]
    assert capfd.readouterr() == ("", "")


def test_the_order_of_groups_and_files_changes_no_bit(store, here, two_workers):
    groups = [group[::-1] for group in group_by_job_day(store.listing())][::-1]
    equal(collect_parts(store, groups), here)
    equal(collect_parts(store, groups, two_workers.address), here)


def test_a_worker_killed_in_the_middle_changes_nothing(store, here, two_workers, capfd):
    killed: list[tuple[int, int]] = []

    def kill(done: int, of: int) -> None:
        # one part is back, the others are being worked on or wait
        if not killed:
            os.kill(two_workers.pids[0], signal.SIGKILL)
            killed.append((done, of))

    equal(
        collect_parts(
            slowed(store, 0.03), group_by_job_day(store.listing()), two_workers.address, kill
        ),
        here,
    )
    assert killed == [(1, 6)]
    assert gone(two_workers.pids[0])
    assert capfd.readouterr() == ("", "")


def test_nothing_to_do(store, two_workers):
    for scheduler in ("pandas", "threads", two_workers.address):
        part = collect_parts(store, [], scheduler)
        assert part.windows.empty
        assert part.files.empty


def test_a_scheduler_that_is_lost_is_told(store, tmp_path):
    with cluster(tmp_path, processes=False) as running:

        def kill(done: int, of: int) -> None:
            os.kill(running.pid, signal.SIGKILL)

        with pytest.raises(CkptcostError, match=r"scheduler was lost") as error:
            collect_parts(
                slowed(store, 0.03), group_by_job_day(store.listing()), running.address, kill
            )
    assert "Run it again" in str(error.value)


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("sys.modules['ckptcost'] = None", r"worker tcp://\S+ has none that can be imported"),
        (
            "import ckptcost.first.version; ckptcost.first.version.__version__ = '0.0.0'",
            r"worker tcp://\S+ has 0\.0\.0; here is ckptcost ",
        ),
        (
            (
                "import ckptcost.first.fleet.store as s; s.Store.read = lambda self, path:"
                " open('/not/there')"
            ),
            r"does not see the store: .*No such file",
        ),
    ],
    ids=["none", "another version", "another disk"],
)
def test_workers_that_would_answer_otherwise_are_told(store, tmp_path, before, said, capfd):
    with (
        cluster(tmp_path, workers=1, processes=False, before=before) as running,
        pytest.raises(InputError, match=said) as error,
    ):
        collect_parts(store, group_by_job_day(store.listing()), running.address)
    assert error.value.remedy
    assert running.address in error.value.where
    assert capfd.readouterr() == ("", "")


def test_a_cluster_without_workers_is_told(store, tmp_path, monkeypatch):
    monkeypatch.setattr("ckptcost.first.fleet.engine.ANSWER_S", 0.5)
    with (
        cluster(tmp_path, workers=0, processes=False) as running,
        pytest.raises(InputError, match=r"has no workers"),
    ):
        collect_parts(store, group_by_job_day(store.listing()), running.address)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("tcp://127.0.0.1:1", r"no Dask scheduler answers"),
        ("tcp://nonsense", r"names no host and port"),
        ("tcp://127.0.0.1:port", r"names no host and port"),
        ("tls://127.0.0.1:1", r"TLS needs certificates"),
        ("127.0.0.1:1", r"no scheduler named '127"),
        ("dask", r"known: pandas, threads, processes, tcp"),
    ],
)
def test_what_is_no_scheduler_is_told(store, address, said, monkeypatch, capfd):
    monkeypatch.setattr("ckptcost.first.fleet.engine.ANSWER_S", 0.5)
    began = time.monotonic()
    with pytest.raises(InputError, match=said) as error:
        collect_parts(store, group_by_job_day(store.listing()), address)
    assert time.monotonic() - began < 5
    assert error.value.remedy
    assert error.value.where.startswith("scheduler")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("module", "scheduler"), [("dask", "threads"), ("distributed", "tcp://127.0.0.1:1")]
)
def test_without_dask_the_way_to_get_it_is_told(store, module, scheduler, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MeterUnavailable, match=r"pip install 'ckptcost\[fleet\]'"):
        collect_parts(store, group_by_job_day(store.listing()), scheduler)
    collect_parts(store, group_by_job_day(store.listing())[:1])


def test_a_run_under_two_jobs_counts_once(tmp_path):
    """It is known before anything is summed, from the names of files alone."""
    days = list(node_days({"a": 2, "z": 2}, seed=3))
    store = open_store(str(tmp_path / "two"), make=True)
    for day in days:
        store.put(store.path_of(day.head), encode(day))
    good = collect_parts(store, group_by_job_day(store.listing()))
    first, second = days[0], days[-1]
    # the one is a copy that covers less, the other covers more than what is there
    less = replace(first.head, job="m", covered_s=1.0)
    more = replace(second.head, job="b", covered_s=86_000.0)
    for head, day in ((less, first), (more, second)):
        store.put(store.path_of(head), encode(NodeDay(head, day.rows)))
    # one with such a name that is not what it seems is left to the part that it is in
    other = tmp_path / "two" / f"job=q/day={DAYS[0]}" / Path(store.path_of(first.head)).name
    other.parent.mkdir(parents=True)
    other.write_bytes(encode(first))
    part = collect_parts(store, group_by_job_day(store.listing()), "threads")
    bad = part.files[part.files.code != ""]
    assert bad[["job", "host", "day", "code"]].to_numpy().tolist() == [
        ["m", "n0", DAYS[0], "DUPLICATE_JOB"],
        ["q", "n0", DAYS[0], "MISPLACED"],
        ["z", "n1", DAYS[2], "DUPLICATE_JOB"],
    ]
    assert (
        bad.text.tolist()[0]
        == "the same run on the same host and day is under job a, too; that one counts"
    )
    assert set(part.windows.job) == {"a", "b", "z"}
    assert part.windows.nodes.sum() == good.windows.nodes.sum()
    for line in LINES:
        assert part.windows[f"{line}_j"].sum() == pytest.approx(
            good.windows[f"{line}_j"].sum(), rel=1e-12
        )


def test_without_names_alike_no_file_is_read_twice(store):
    read: list[str] = []

    class Counting(Store):
        def read(self, path: str) -> bytes:
            read.append(path)
            return Store.read(self, path)

    collect_parts(Counting(store.url, store._place), group_by_job_day(store.listing()))
    # each once, and one of each job and day again for its labels
    assert len(set(read)) == 24
    assert len(read) == 24 + 6


def test_raw_rows_are_as_written(store, monkeypatch):
    """Against pandas putting the files one after another."""
    monkeypatch.setattr(engine, "FILES_AT_ONCE", 2)
    entries = store.listing()
    lazy = windows_frame(store, entries)
    assert lazy.npartitions == 3 * (3 + 2)
    expected = []
    for entry in entries:
        try:
            head, rows = decode(store.read(entry.path))
        except InputError:
            continue
        expected.append(pd.DataFrame({"job": head.job, "run": head.run, "host": head.host, **rows}))
    whole = pd.concat(expected, ignore_index=True)
    found = lazy.compute(scheduler="sync").reset_index(drop=True)
    assert list(found) == list(RAW) == ["job", "run", "host", *COLUMNS]
    assert_frame_equal(found, whole.astype(found.dtypes), check_exact=True)
    assert lazy.groupby("job").gpu_j.sum().compute(scheduler="sync").to_dict() == pytest.approx(
        whole.groupby("job").gpu_j.sum().to_dict()
    )


def test_raw_rows_with_some_columns_and_of_nothing(store):
    found = windows_frame(store, store.listing(), ("host", "stall_s", "begin_ns")).compute(
        scheduler="sync"
    )
    assert list(found) == ["host", "stall_s", "begin_ns"]
    assert len(found) == 22 * 40
    nothing = windows_frame(store, []).compute(scheduler="sync")
    assert list(nothing) == list(RAW)
    assert nothing.empty
    with pytest.raises(InputError, match=r"no column 'joules'"):
        windows_frame(store, store.listing(), ("joules",))


def test_what_is_grouped(store):
    groups = group_by_job_day(reversed(store.listing()))
    assert [(group[0].job, group[0].day, len(group)) for group in groups] == [
        (job, day, n) for job, n in (("a", 5), ("b/c", 3)) for day in DAYS
    ]
    assert [entry for group in groups for entry in group] == store.listing()


def test_a_folder_of_an_url_has_one_name() -> None:
    fsspec = pytest.importorskip("fsspec")
    try:
        assert open_store("memory://survivors/fleet//", make=True).url == "memory://survivors/fleet"
        assert open_store("memory://", make=True).url == "memory://"
    finally:
        for path in ("/survivors", f"/{ABOUT}"):
            fsspec.filesystem("memory").rm(path, recursive=True)


def test_what_is_not_installed_is_told_apart_from_what_is_broken(monkeypatch) -> None:
    for module, asked in (("dask", engine.dask_of), ("distributed", engine._distributed_client)):
        with monkeypatch.context() as patched:
            patched.setitem(sys.modules, module, None)
            with pytest.raises(MeterUnavailable, match=f"{module} is not installed"):
                asked()
