"""What planned saves and loads come to: the oracle of a synthetic fleet's sums.

It shares nothing with the merge: it never sees a row, and adds whole nanoseconds of the plan by
node before it multiplies once by the node's watts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum, inf, nan
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.fleet.synthetic.fleet_plan import GPUS, S_NS, Ints, JobPlan, drains, stalls
from ckptcost.first.fleet.synthetic.synthesize import FILES, MW, ends_of, part_of

Floats = NDArray[np.float64]


class Amounts(NamedTuple):
    """Of some saves or loads. Sums are over what is known: not of those that failed. NaN: of none
    of them."""

    windows: int = 0
    """completed"""
    failed: int = 0
    rows: int = 0
    """nodes' parts of the completed ones"""
    failed_rows: int = 0
    bytes: float = nan
    files: float = nan
    stall_s: float = nan
    """from the first begin to the last return"""
    own_gpu_s: float = nan
    wait_gpu_s: float = nan
    wait_j: float = nan
    """at what the node takes while it stands, GPUs and host"""
    wait_low_j: float = nan
    wait_high_j: float = nan
    gpu_j: float = nan
    gpu_low_j: float = nan
    gpu_high_j: float = nan
    host_j: float = nan
    host_low_j: float = nan
    host_high_j: float = nan
    slow_j: float = nan
    slow_low_j: float = nan
    slow_high_j: float = nan
    storage_j: float = nan
    storage_low_j: float = nan
    storage_high_j: float = nan


COUNTS: Final = ("windows", "failed", "rows", "failed_rows")


class Tally(NamedTuple):
    amounts: Amounts
    blamed_gpu_s: Floats
    """by node, of those that were asked for"""
    blamed_j: Floats


def added(parts: Iterable[Amounts]) -> Amounts:
    """What is not known of some is left out.

    >>> added(
    ...     [Amounts(windows=1, stall_s=2.0), Amounts(windows=1, stall_s=3.0), Amounts(failed=1)]
    ... )[:2]
    (2, 1)
    """
    columns: list[Sequence[Any]] = list(zip(*parts, strict=True)) or [()] * len(Amounts._fields)
    found: list[Any] = []
    for name, values in zip(Amounts._fields, columns, strict=True):
        if name in COUNTS:
            found.append(sum(values))
        else:
            known = [value for value in values if value == value]
            found.append(fsum(known) if known else nan)
    return Amounts(*found)


def less(whole: Amounts, part: Amounts) -> Amounts:
    """What the rest would have added."""
    found: list[Any] = [
        a - b if b == b and abs(b) < inf else nan if b == b else a
        for a, b in zip(whole, part, strict=True)
    ]
    return Amounts(*found)


def failed_ones(windows: int, nodes: int) -> Amounts:
    """Nobody says what they took."""
    return Amounts(failed=windows, failed_rows=windows * nodes)


def tally(
    job: JobPlan, chosen: Ints, late_ns: NDArray[np.uint32], off: NDArray[np.uint16], load: bool
) -> Tally:
    """Of completed windows of one direction: [node, window], of the chosen nodes."""
    nodes, windows = off.shape
    stall_ns, drain_ns = (each(part_of(job, chosen), load, off) for each in (stalls, drains))
    returned_ns = late_ns + stall_ns
    last_ns = returned_ns.max(axis=0)
    own_ns = stall_ns.sum(axis=1).tolist()
    wait_ns = (last_ns - returned_ns).sum(axis=1).tolist()
    moved = job.bytes_[chosen].tolist()
    gpu_mw, host_mw, slow_mw = (
        each[chosen].tolist() for each in (job.stall_mw, job.host_stall_mw, job.slow_mw)
    )
    lines = {
        "gpu": _joules(gpu_mw, own_ns),
        "host": _joules(host_mw, own_ns),
        "slow": _joules(slow_mw, drain_ns.sum(axis=1).tolist()),
        "storage": (
            0.0
            if load
            else (
                fsum(each * job.tier.j_per_byte * windows for each in moved)
                if job.storage_known
                else nan
            )
        ),
    }
    ends: dict[str, Any] = {}
    for line, value in lines.items():
        low, high = ends_of(job, line)
        ends |= {
            f"{line}_j": value,
            f"{line}_low_j": value * low,
            f"{line}_high_j": value * high if value else value,
        }
    waits = {"gpu": _joules(gpu_mw, wait_ns), "host": _joules(host_mw, wait_ns)}
    low_j, high_j = (
        fsum(value * ends_of(job, line)[end] for line, value in waits.items() if value)
        for end in (0, 1)
    )
    amounts = Amounts(
        windows=windows,
        rows=nodes * windows,
        bytes=float(sum(moved) * windows),
        files=float(FILES * nodes * windows),
        stall_s=int((last_ns - late_ns.min(axis=0).astype(np.int64)).sum()) / S_NS,
        own_gpu_s=GPUS * sum(own_ns) / S_NS,
        wait_gpu_s=GPUS * sum(wait_ns) / S_NS,
        wait_j=fsum(waits.values()),
        wait_low_j=low_j,
        wait_high_j=high_j,
        **ends,
    )
    watts = (np.array(gpu_mw) + np.array(host_mw)) * MW
    return Tally(amounts, *_blames(returned_ns, watts))


def _joules(mw: list[int], ns: list[int]) -> float:
    return fsum(watts * MW * (time_ns / S_NS) for watts, time_ns in zip(mw, ns, strict=True))


def _blames(returned_ns: Ints, watts: Floats) -> tuple[Floats, Floats]:
    """From one return to the next, those that are back wait for those that are not, who share it
    equally."""
    nodes = len(returned_ns)
    if nodes == 1:
        return np.zeros(1), np.zeros(1)
    by_window = np.ascontiguousarray(returned_ns.T)
    order = np.argsort(by_window, axis=1)
    gaps_ns = np.diff(np.take_along_axis(by_window, order, axis=1), axis=1)
    back = np.arange(1, nodes)
    each_s = gaps_ns / S_NS / (nodes - back)
    who = order[:, 1:].ravel()

    def caused(waiting: Any) -> Floats:
        return np.bincount(
            who, weights=np.cumsum(each_s * waiting, axis=1).ravel(), minlength=nodes
        ).astype(np.float64)

    return caused(GPUS * back), caused(np.cumsum(watts[order], axis=1)[:, :-1])
