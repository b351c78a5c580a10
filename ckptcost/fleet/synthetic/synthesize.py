"""A synthetic fleet: a store of node files as real jobs would leave one.

The same seed gives the same bytes, as long as numpy's generator and pyarrow are the same. Files are
written plainly and not synced: a fleet that is lost is made again.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Final, NamedTuple

from ckptcost.errors import InputError, OutputError, brief
from ckptcost.fleet.node_day import NodeDay, NodeDayHead, empty_rows
from ckptcost.fleet.node_file import encode
from ckptcost.fleet.store import Store, open_store
from ckptcost.fleet.synthetic.fleet_plan import FleetPlan, plan_of, usual_rate
from ckptcost.fleet.synthetic.node_days import WrittenDay, days_of_run, files_of_run
from ckptcost.fleet.synthetic.run_windows import windows_of
from ckptcost.report.folders import whole_folder

Tell = Callable[[int, int], None]

MOST_NODE_DAYS: Final = 100_000
MOST_ROWS: Final = 200_000_000
MOST_SAVES_A_DAY: Final = 4000.0
"""a save takes some seconds"""
_TELL_EVERY: Final = 64
"""files"""


class MadeUp(NamedTuple):
    """What was written."""

    jobs: int
    saves: int
    """completed"""
    saved_bytes: float
    files: int
    rows: int


def synthesize(
    nodes: int,
    days: int,
    directory: str,
    *,
    seed: int = 1,
    saves_per_day: float = 96.0,
    start: str = "2026-11-02",
    failures_per_node_day: float | None = None,
    tell: Tell | None = None,
) -> MadeUp:
    """`tell(done, of)` counts files. Raises InputError for what cannot be made, OutputError where
    it cannot be written."""
    rate = _judge(nodes, days, seed, saves_per_day, start, failures_per_node_day)
    encode(
        NodeDay(NodeDayHead("-", "-", "-", "2026-01-01"), empty_rows())
    )  # without pyarrow nothing is begun
    target = _fresh(directory)
    try:
        with whole_folder(target, over=False) as root:
            return _write(root, plan_of(nodes, days, seed, saves_per_day, start, rate), tell)
    except OSError as error:
        raise OutputError(
            f"{directory}: could not be written ({error.strerror or error})"
        ) from None


def _write(root: Path, plan: FleetPlan, tell: Tell | None) -> MadeUp:
    """A fleet that is cut short leaves nothing that reads as a whole one."""
    folder = NodeFiles(root, open_store(str(root), make=True))
    of = sum(files_of_run(plan, run) for job in plan.jobs for run in job.runs)
    saves, saved_bytes = 0, 0.0
    for job in plan.jobs:
        kept_step = 0
        for run in job.runs:
            windows = windows_of(plan.seed, job, run, kept_step)
            kept_step = windows.kept_step
            completed = int((~windows.load & ~windows.failed).sum())
            saves += completed
            saved_bytes += completed * float(job.bytes_.sum())
            for written in days_of_run(plan, job, run, windows):
                folder.put(written)
                if tell is not None and (folder.files % _TELL_EVERY == 0 or folder.files == of):
                    tell(folder.files, of)
    return MadeUp(len(plan.jobs), saves, saved_bytes, folder.files, folder.rows)


def _judge(nodes: int, days: int, seed: int, a_day: float, start: str, rate: float | None) -> float:
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


class NodeFiles:
    """Where the files go."""

    def __init__(self, root: Path, store: Store) -> None:
        self._root, self._store = root, store
        self._made: set[str] = set()
        self.files = 0
        self.rows = 0

    def put(self, written: WrittenDay) -> None:
        self.write(self._store.path_of(written.day.head), encode(written.day))
        self.files += 1
        self.rows += written.day.many

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
