"""A synthetic fleet: a store of node files as real jobs would leave one, and beside it what they
really cost.

The same seed gives the same bytes, as long as numpy's generator and pyarrow are the same. Files are
written plainly and not synced: a fleet that is lost is made again.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Final

from ckptcost.errors import InputError, OutputError, brief
from ckptcost.fleet.kept.node_day import Head, NodeDay, empty_rows
from ckptcost.fleet.kept.node_file import encode
from ckptcost.fleet.kept.store import Store, folder_of, open_store
from ckptcost.fleet.made_up.plan_of_fleet import DAY_NS, TIERS, FleetPlan, plan_of, usual_rate
from ckptcost.fleet.made_up.planted import (
    LEAST_DAYS,
    LEAST_NODES,
    Planted,
    damaged,
    planted_in,
    strays,
)
from ckptcost.fleet.made_up.synthetic_days import Written, days_of_run, files_of_run
from ckptcost.fleet.made_up.truth import Straggler, TierTruth, Trouble, Truth, write
from ckptcost.fleet.made_up.truth_of_job import JobBook
from ckptcost.report.folders import whole_folder

Tell = Callable[[int, int], None]

MOST_NODE_DAYS: Final = 100_000
MOST_ROWS: Final = 200_000_000
MOST_SAVES_A_DAY: Final = 4000.0
"""a save takes some seconds"""
_TELL_EVERY: Final = 64
"""files"""


def synthesize(
    nodes: int,
    days: int,
    directory: str,
    *,
    seed: int = 1,
    saves_per_day: float = 96.0,
    start: str = "2026-11-02",
    faults: bool = False,
    failures_per_node_day: float | None = None,
    tell: Tell | None = None,
) -> Truth:
    """`tell(done, of)` counts files. Raises InputError for what cannot be made, OutputError where
    it cannot be written."""
    rate = _judge(nodes, days, seed, saves_per_day, start, faults, failures_per_node_day)
    encode(
        NodeDay(Head("-", "-", "-", "2026-01-01"), empty_rows())
    )  # without pyarrow nothing is begun
    target = _fresh(directory)
    try:
        with whole_folder(target, over=False) as root:
            return _written(
                root, plan_of(nodes, days, seed, saves_per_day, start, rate), faults, tell
            )
    except OSError as error:
        raise OutputError(
            f"{directory}: could not be written ({error.strerror or error})"
        ) from None


def _written(root: Path, plan: FleetPlan, faults: bool, tell: Tell | None) -> Truth:
    """A fleet that is cut short leaves nothing that reads as a whole one."""
    store = open_store(str(root), make=True)
    planted = planted_in(plan) if faults else Planted()
    of = sum(files_of_run(plan, job, run, planted) for job in plan.jobs for run in job.runs)
    folder = _Folder(root, store)
    jobs, troubles = [], []
    done = 0
    for job in plan.jobs:
        book = JobBook(plan, job, planted)
        for run in job.runs:
            windows = book.windows(run)
            for written in days_of_run(plan, job, run, windows, planted):
                book.saw(written, *folder.put(written))
                done += 1
                if tell is not None and (done % _TELL_EVERY == 0 or done == of):
                    tell(done, of)
            book.close(run, windows)
        jobs.append(book.truth())
        troubles += book.troubles
    troubles += _beside(plan, planted, folder)
    truth = Truth(
        seed=plan.seed,
        nodes=plan.nodes,
        days=plan.days,
        start=plan.start,
        saves_per_day=plan.saves_per_day,
        failures_per_node_day=plan.failures_per_node_day,
        files=folder.counting,
        rows=folder.rows,
        tiers=tuple(
            TierTruth(
                tier.name, float(tier.bytes_per_s), float(tier.read_bytes_per_s), tier.fixed_s
            )
            for tier in TIERS
        ),
        jobs=tuple(jobs),
        stragglers=tuple(
            Straggler(job.job, host, factor / 1000)
            for job in plan.jobs
            for host, factor in zip(job.hosts, job.factor_permille.tolist(), strict=True)
            if factor != 1000
        ),
        troubles=tuple(troubles),
    )
    write(truth, root)
    return truth


def _judge(
    nodes: int, days: int, seed: int, a_day: float, start: str, faults: bool, rate: float | None
) -> float:
    """The rate of failures."""
    if nodes < 1 or days < 1:
        raise InputError(
            f"a fleet of {nodes} nodes on {days} days is none", remedy="both are 1 or more"
        )
    if seed < 0:
        raise InputError(f"a seed is not negative: {seed}")
    if not 0.0 < a_day <= MOST_SAVES_A_DAY:
        raise InputError(
            f"{a_day:g} saves a day cannot be",
            remedy=f"more than 0, and up to {MOST_SAVES_A_DAY:g}",
        )
    if nodes * days > MOST_NODE_DAYS or nodes * days * a_day > MOST_ROWS:
        most = f"up to {MOST_NODE_DAYS:,} node-days and {MOST_ROWS:,} rows are made"
        raise InputError(f"{nodes * days:,} node-days of {a_day:g} saves are too many", remedy=most)
    if faults and (nodes < LEAST_NODES or days < LEAST_DAYS):
        raise InputError(
            "too small for faults", remedy=f"{LEAST_NODES} nodes and {LEAST_DAYS} days or more"
        )
    try:
        first = date.fromisoformat(start)
        last = first.toordinal() + days
    except ValueError:
        first, last = date.min, 0
    if (
        first.isoformat() != start
        or not date(1971, 1, 1).toordinal()
        <= first.toordinal()
        <= last
        < date(2199, 1, 1).toordinal()
    ):
        raise InputError(
            f"no day that a fleet could begin on: {brief(start)}", remedy="as 2026-11-02"
        )
    found = usual_rate(nodes, days) if rate is None else rate
    if not (math.isfinite(found) and 0.0 <= found <= 10.0):
        raise InputError(f"{found:g} failures a node-day cannot be", remedy="0 to 10")
    return found


def _fresh(directory: str) -> Path:
    """A place where nothing is."""
    root = Path(directory)
    if "://" in directory:
        raise InputError(
            "is a URL, and a made-up fleet is a folder",
            where=directory,
            remedy="make it here and copy it there",
        )
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        if (
            root.is_symlink()
            or (root.exists() and not root.is_dir())
            or (root.is_dir() and any(root.iterdir()))
        ):
            raise InputError(
                "is not empty", where=str(root), remedy="name a folder that is not there yet"
            )
    except OSError as error:
        raise OutputError(
            f"{root}: cannot make a folder for the store ({error.strerror})"
        ) from None
    return root.absolute()


class _Folder:
    """Where the files go."""

    def __init__(self, root: Path, store: Store) -> None:
        self._root, self._store = root, store
        self._made: set[str] = set()
        self.counting = 0
        self.rows = 0

    def put(self, written: Written) -> tuple[str, str]:
        """Where it is, and where its copy."""
        path = self._store.path_of(written.day.head)
        data = damaged(encode(written.day), written.code)
        self.write(path, data)
        if written.twice:
            self.write(copy_of(path), data)
        if not written.code:
            self.counting += 1
            self.rows += written.day.many
        return path, copy_of(path) if written.twice else ""

    def write(self, path: str, data: bytes) -> None:
        folder, _ = os.path.split(path)
        target = self._root / path
        try:
            if folder not in self._made:
                target.parent.mkdir(parents=True, exist_ok=True)
                self._made.add(folder)
            with open(target, "wb", buffering=0) as file:
                view = memoryview(data)
                while view:
                    view = view[file.write(view) :]
        except OSError as error:
            with contextlib.suppress(OSError):
                target.unlink(missing_ok=True)
            raise OutputError(f"{path}: could not be written ({error.strerror})") from None


def copy_of(path: str) -> str:
    """The name of a file that was copied by hand."""
    return path.replace(".parquet", "_copy.parquet")


def _beside(plan: FleetPlan, planted: Planted, folder: _Folder) -> Iterator[Trouble]:
    if planted.beside < 0:
        return
    job = plan.jobs[planted.beside]
    day = plan.day((job.began_ns - plan.start_ns) // DAY_NS)
    for name, code, content in strays():
        path = f"job={folder_of(job.job)}/day={day}/{name}"
        folder.write(path, content)
        yield Trouble(code, path, job=job.job, day=day)
