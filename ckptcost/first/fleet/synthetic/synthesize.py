"""A synthetic fleet: a store of node files as real jobs would leave one.

The same seed gives the same bytes, as long as numpy's generator and pyarrow are the same. Files are
written plainly and not synced: a fleet that is lost is made again.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from itertools import pairwise
from math import inf, nan
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.errors import InputError, OutputError, brief
from ckptcost.first.fleet.node_day import NodeDay, NodeDayHead, empty_rows, key_of
from ckptcost.first.fleet.node_file import encode
from ckptcost.first.fleet.store import Store, open_store
from ckptcost.first.fleet.synthetic.fleet_plan import (
    CRASH,
    DAY_NS,
    ENDED,
    GPUS,
    NODE,
    S_NS,
    FleetPlan,
    Ints,
    JobPlan,
    RunPlan,
    Windows,
    drains,
    plan_of,
    stalls,
    usual_rate,
    windows_of,
)
from ckptcost.first.report.folders import whole_folder

# The node files of one run of a synthetic fleet: every node's rows by its own clock and power, cut
# into its own days.


MW: Final = 1e-3
FILES: Final = 8
"""a rank"""
ENDS: Final = {"gpu": (0.97, 1.03), "host": (0.9, 1.1), "slow": (0.5, 1.5), "storage": (0.6, 1.5)}
"""low and high end of each line's joules, of the value itself"""
_AT_ONCE: Final = 64
"""nodes whose rows are made together: a few tens of MB"""
_KILLED, _CRASHED = 143, 1
"""exit codes"""


class WrittenDay(NamedTuple):
    day: NodeDay
    node: int
    """its place in the job"""
    place: int
    """of the day; the first day of the fleet has 0"""
    first: int
    """window of the run that its first row is of"""


def files_of_run(plan: FleetPlan, run: RunPlan) -> int:
    """How many `days_of_run` yields."""
    first, last = (
        _places(plan, at_ns + run.clock_ns) for at_ns in (run.began_ns, run.ended_ns - 1)
    )
    return int((last - first + 1).sum())


def days_of_run(
    plan: FleetPlan, job: JobPlan, run: RunPlan, windows: Windows
) -> Iterator[WrittenDay]:
    """By node and day."""
    labels = np.array([f"step {step}" for step in windows.step.tolist()], dtype=object)
    keys = np.array([key_of(label) for label in labels], np.int64)
    stood = _Stood(job, run, windows)
    for begin in range(0, job.nodes, _AT_ONCE):
        chosen = np.arange(begin, min(begin + _AT_ONCE, job.nodes))
        columns = _columns(job, run, windows, chosen)
        shared = {"key": keys, "label": labels, "load": windows.load, "failed": windows.failed}
        shared["ranks"] = np.full(windows.many, GPUS, np.int32)
        for row, node in enumerate(chosen.tolist()):
            own = shared | {name: values[row] for name, values in columns.items()}
            yield from _of_node(plan, job, run, node, own, stood)


def _of_node(
    plan: FleetPlan,
    job: JobPlan,
    run: RunPlan,
    node: int,
    own: dict[str, NDArray[Any]],
    stood: _Stood,
) -> Iterator[WrittenDay]:
    clock_ns = int(run.clock_ns[node])
    begin_ns, end_ns = run.began_ns + clock_ns, run.ended_ns + clock_ns
    first, last = (int(_places(plan, at_ns)) for at_ns in (begin_ns, end_ns - 1))
    midnights_ns = plan.start_ns + np.arange(first, last + 2) * DAY_NS
    cuts = np.searchsorted(own["begin_ns"], midnights_ns).tolist()
    cuts[0], cuts[-1] = 0, len(own["begin_ns"])
    for place, (low, high) in enumerate(pairwise(cuts), first):
        rows = {name: values[low:high] for name, values in own.items()}
        span_ns = (
            max(begin_ns, plan.start_ns + place * DAY_NS),
            min(end_ns, plan.start_ns + (place + 1) * DAY_NS - 1),
        )
        slow_j = float(np.nansum(rows["slow_j"])) if job.asynchronous else 0.0
        head = _head(plan, job, run, node, place, span_ns, place == last, stood, slow_j)
        yield WrittenDay(NodeDay(head, rows), node, place, low)


def _head(
    plan: FleetPlan,
    job: JobPlan,
    run: RunPlan,
    node: int,
    place: int,
    span_ns: tuple[int, int],
    ends: bool,
    stood: _Stood,
    slow_j: float,
) -> NodeDayHead:
    began_ns, until_ns = span_ns
    clock_ns = int(run.clock_ns[node])
    host = job.hosts[node]
    covered_s = (until_ns - began_ns) / S_NS
    stood_s = stood.between(began_ns - clock_ns, until_ns - clock_ns) / S_NS
    over, exit_code = ending(run, node) if ends else (False, None)
    return NodeDayHead(
        job=job.job,
        run=run.run,
        host=host,
        day=plan.day(place),
        labels={
            "team": job.team,
            "cluster": job.cluster,
            "model": job.model,
            "tier": job.tier.name,
        },
        gpus=float(GPUS),
        nodes=job.nodes,
        node_names=job.node_names,
        simulated=True,
        began_ns=began_ns,
        until_ns=until_ns,
        run_began_ns=run.began_ns + clock_ns,
        over=over,
        exit_code=exit_code,
        covered_s=covered_s,
        gpu_total_j=MW
        * (int(job.train_mw[node]) * (covered_s - stood_s) + int(job.stall_mw[node]) * stood_s)
        + slow_j,
        host_total_j=MW
        * (
            int(job.host_train_mw[node]) * (covered_s - stood_s)
            + int(job.host_stall_mw[node]) * stood_s
        ),
        train_gpu_w=int(job.train_mw[node]) * MW,
        train_host_w=int(job.host_train_mw[node]) * MW,
        step_s=job.train_ns / job.every / S_NS,
        meter=f"{host}:{run.run[:8]}",
        source=f"synthetic {plan.seed}",
    )


def ending(run: RunPlan, node: int) -> tuple[bool, int | None]:
    """What the node's recorder says at the end of its run: whether it was stopped in order, and the
    command's exit code."""
    if run.how == ENDED:
        return True, 0
    if run.how == CRASH:
        return True, _CRASHED
    if run.how == NODE and node != run.culprit:
        return True, _KILLED
    return False, None


class _Stood:
    """When the whole job stood still, on the true clock: from a window's first begin to its last
    return, or to the end of the run."""

    def __init__(self, job: JobPlan, run: RunPlan, windows: Windows) -> None:
        until_ns = np.empty(windows.many, np.int64)
        for load in (True, False):
            which = np.flatnonzero(windows.load == load)
            for some in np.array_split(which, max(1, len(which) // 256)):
                if len(some):
                    returned_ns = windows.late_ns[:, some] + stalls(job, load, windows.off[:, some])
                    until_ns[some] = windows.begin_ns[some] + returned_ns.max(axis=0)
        self._begin_ns, self._until_ns = (
            windows.begin_ns,
            np.where(windows.failed, run.ended_ns, until_ns),
        )
        self._sums_ns = np.concatenate([[0], np.cumsum(self._until_ns - self._begin_ns)])

    def between(self, begin_ns: int, end_ns: int) -> int:
        return self._until(end_ns) - self._until(begin_ns)

    def _until(self, at_ns: int) -> int:
        place = int(np.searchsorted(self._begin_ns, at_ns))
        over_ns = max(int(self._until_ns[place - 1]) - at_ns, 0) if place else 0
        return int(self._sums_ns[place]) - over_ns


def _columns(job: JobPlan, run: RunPlan, windows: Windows, chosen: Ints) -> dict[str, NDArray[Any]]:
    """[node, window] of the chosen nodes, by their clocks."""
    some = part_of(job, chosen)
    off = windows.off[chosen]
    stall_ns, drain_ns = stalls(some, False, off), drains(some, False, off)
    loaded = int(windows.load.sum())
    stall_ns[:, :loaded], drain_ns[:, :loaded] = stalls(some, True, off[:, :loaded]), 0
    stall_s, drain_s = stall_ns / S_NS, drain_ns / S_NS
    failed = windows.failed
    stall_s[:, failed] = drain_s[:, failed] = nan
    lasting = np.where(failed, nan, 1.0)
    bytes_ = some.bytes_[:, None] * lasting
    gpu_w, host_w, slow_w = (
        each[chosen][:, None] * MW for each in (job.stall_mw, job.host_stall_mw, job.slow_mw)
    )
    storage_j = bytes_ * job.tier.j_per_byte if job.storage_known else np.full(off.shape, nan)
    storage_j[:, :loaded] = np.where(failed[:loaded], nan, 0.0)
    found: dict[str, NDArray[Any]] = {
        "begin_ns": windows.begin_ns + windows.late_ns[chosen] + run.clock_ns[chosen, None],
        "stall_s": stall_s,
        "drain_s": drain_s,
        "bytes": bytes_,
        "files": np.full(off.shape, float(FILES)) * lasting,
        "gpu_s": stall_s * float(GPUS),
    }
    for line, value in {
        "gpu": gpu_w * stall_s,
        "host": host_w * stall_s,
        "slow": slow_w * drain_s,
        "storage": storage_j,
    }.items():
        low, high = ends_of(job, line)
        found[f"{line}_j"] = value
        found[f"{line}_low_j"] = (value * low).astype(np.float32)
        found[f"{line}_high_j"] = (
            np.where(np.isnan(value), nan, inf) if high == inf else value * high
        )
        found[f"{line}_high_j"] = found[f"{line}_high_j"].astype(np.float32)
    return found


def ends_of(job: JobPlan, line: str) -> tuple[float, float]:
    low, high = ENDS[line]
    return low, high if line != "host" or job.host_bounded else inf


def part_of(job: JobPlan, chosen: Ints) -> JobPlan:
    """The job as if it had only these nodes' bytes and speeds."""
    return replace(job, bytes_=job.bytes_[chosen], factor_permille=job.factor_permille[chosen])


def _places(plan: FleetPlan, at_ns: Any) -> Any:
    return (at_ns - plan.start_ns) // DAY_NS


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
    if min(nodes, days) < 1:
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
    if not _can_begin(start, days):
        raise InputError(
            f"no day that a fleet could begin on: {brief(start)}", remedy="as 2026-11-02"
        )
    found = usual_rate(nodes, days) if rate is None else rate
    if not (math.isfinite(found) and 0.0 <= found <= 10.0):
        raise InputError(f"{found:g} failures a node-day cannot be", remedy="0 to 10")
    return found


def _can_begin(start: str, days: int) -> bool:
    try:
        first = date.fromisoformat(start)
    except ValueError:
        return False
    least, most = date(1971, 1, 1).toordinal(), date(2199, 1, 1).toordinal()
    return first.isoformat() == start and least <= first.toordinal() < most - days


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
