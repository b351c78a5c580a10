"""Arithmetic over rows: what the nodes of a window come to together, and what the windows of a node
do. Knows no files and no frames.

Sums are taken in the order of the rows, so they are the same bits on one machine and on many.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.core.stragglers import Stragglers, stragglers_of
from ckptcost.fleet.kept.node_day import LINES
from ckptcost.fleet.merge.same_save import Ints

Floats = NDArray[np.float64]
Columns = Mapping[str, NDArray[Any]]


class Placed(NamedTuple):
    """Rows of several nodes on the job's clock. `window`: the place of the window of each row."""

    window: Ints
    windows: int
    columns: Columns
    """as node_day.COLUMNS, without labels"""
    gpus: Floats
    """of the row's node"""


class Bins:
    """What rows come to, by the place that each belongs to."""

    def __init__(self, place: Ints, places: int) -> None:
        self.place, self.places = place, places
        self.rows: Ints = np.bincount(place, minlength=places).astype(np.int64, copy=False)

    def total(self, values: NDArray[Any]) -> Floats:
        """Unknown where one is unknown."""
        return np.asarray(
            np.bincount(self.place, weights=values, minlength=self.places), dtype=np.float64
        )

    def count(self, which: NDArray[np.bool_]) -> Ints:
        if which.all():
            return self.rows
        return np.bincount(self.place[which], minlength=self.places).astype(np.int64, copy=False)

    def known(self, values: NDArray[Any], *ends: NDArray[Any]) -> tuple[list[Floats], Ints]:
        """Sums of the known values, and of their ends; how many they are. Where rows are there and
        none is known, the sum is not: NaN."""
        lacking = np.isnan(values)
        if not lacking.any():
            return [self.total(each) for each in (values, *ends)], self.rows
        if lacking.all():
            unknown = np.where(self.rows > 0, np.nan, 0.0)
            return [unknown.copy() for _ in (values, *ends)], np.zeros(self.places, dtype=np.int64)
        count = self.count(~lacking)
        none = (count == 0) & (self.rows > 0)
        sums = [self.total(np.where(lacking, 0.0, each)) for each in (values, *ends)]
        for each in sums:
            each[none] = np.nan
        return sums, count


def stragglers(rows: Placed) -> Stragglers:
    """A node's watts are those while it stands still for the save."""
    stall_s: Floats = rows.columns["stall_s"]
    watts = _standing_j(rows.columns, "")
    np.divide(watts, stall_s, out=watts, where=stall_s > 0)
    watts[~(stall_s > 0)] = np.nan
    return stragglers_of(
        rows.window, rows.windows, rows.columns["begin_ns"], stall_s, rows.gpus, watts
    )


def _standing_j(columns: Columns, end: str) -> Floats:
    """A host that is not metered is left out; GPUs that are not make it unknown."""
    # ends are kept in half the width, sums are not
    joules: Floats = columns[f"gpu{end}_j"].astype(np.float64)
    metered = ~np.isnan(columns["host_j"])
    return np.add(
        joules, columns[f"host{end}_j"], out=joules, where=True if metered.all() else metered
    )


def window_sums(rows: Placed, waits: Stragglers) -> dict[str, NDArray[Any]]:
    """Columns of part.WINDOWS that are numbers, without those that name something. Bytes, files and
    GPU-seconds that one node does not know are not known of the window; joules are summed over
    those that know them, and how many those are is said.
    """
    columns, bins = rows.columns, Bins(rows.window, rows.windows)
    found: dict[str, NDArray[Any]] = {
        "failed": bins.count(columns["failed"]) > 0,
        "begin_ns": waits.begin_ns,
        "stall_s": waits.stall_s,
        "drain_s": _drain_s(rows, waits),
        "nodes": bins.rows,
    }
    for name, values in (
        ("bytes", columns["bytes"]),
        ("files", columns["files"]),
        ("own_gpu_s", columns["gpu_s"]),
    ):
        found[name] = bins.total(values)
    found["wait_gpu_s"] = bins.total(waits.wait_gpu_s)
    (found["wait_j"], *sums), found["wait_nodes"] = bins.known(
        waits.wait_j, *_wait_ends_j(rows, waits)
    )
    found["wait_low_j"], found["wait_high_j"] = sums
    for line in LINES:
        names = [f"{line}{end}_j" for end in ("", "_low", "_high")]
        sums, found[f"{line}_nodes"] = bins.known(*(columns[name] for name in names))
        found |= zip(names, sums, strict=True)
    return found


def _wait_ends_j(rows: Placed, waits: Stragglers) -> list[Floats]:
    """Low and high of what each row waits."""
    with np.errstate(invalid="ignore", divide="ignore"):
        times = waits.wait_s / rows.columns["stall_s"]
        found = [_standing_j(rows.columns, end) * times for end in ("_low", "_high")]
    none = waits.wait_s == 0
    for each in found:
        each[none] = 0.0  # whatever the watts, also where they have no high end
    return found


def _drain_s(rows: Placed, waits: Stragglers) -> Floats:
    """From the last return until the last node is safe."""
    found = np.zeros(rows.windows)
    with np.errstate(invalid="ignore"):  # unknown where one is unknown
        np.maximum.at(found, rows.window, rows.columns["drain_s"] - waits.wait_s)
    return found


def node_sums(
    rows: Placed, waits: Stragglers, node: Ints, nodes: int, left_out: NDArray[np.bool_]
) -> dict[str, NDArray[Any]]:
    """Columns of part.NODES that are numbers: of each node, over its windows, but not over those
    that are left out. What is not known of a window is not in the sum; where it is known of none,
    the sum is not known either."""
    columns = rows.columns
    # one place more, for what is left out: quicker than copying every column without it
    place, places = (
        (np.where(left_out[rows.window], nodes, node), nodes + 1)
        if left_out.any()
        else (node, nodes)
    )
    last = waits.slowest[
        (waits.slowest >= 0) & (np.bincount(rows.window, minlength=rows.windows) > 1) & ~left_out
    ]
    bins = Bins(place, places)
    found: dict[str, NDArray[Any]] = {
        "windows": bins.rows,
        "saves": bins.count(~columns["load"]),
        "slowest": np.bincount(node[last], minlength=places),
    }
    for name, values in (
        ("own_gpu_s", columns["gpu_s"]),
        ("stall_s", columns["stall_s"]),
        ("bytes", columns["bytes"]),
        ("wait_gpu_s", waits.wait_gpu_s),
        ("wait_j", waits.wait_j),
        ("blamed_gpu_s", waits.blamed_gpu_s),
        ("blamed_j", waits.blamed_j),
    ):
        (found[name],), _ = bins.known(values)
    for line in LINES:
        (found[f"{line}_j"],), found[f"{line}_windows"] = bins.known(columns[f"{line}_j"])
    return {name: values[:nodes] for name, values in found.items()}
