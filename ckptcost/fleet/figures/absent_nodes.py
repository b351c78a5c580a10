"""What nodes that are missing would have said of the saves and loads that they lack: at the mean of
the nodes that are there.

What the others waited for a missing node nobody can see, so where a straggler is missing this is
too little.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import inf, nan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ckptcost.core.domain import Scenario
from ckptcost.core.estimates import Estimate, Floats
from ckptcost.core.missing import missing_share
from ckptcost.fleet.figures.grouping import Cells, Places, added, flags, numbers, summed, texts
from ckptcost.fleet.figures.lines import Amounts, CellLine, line_of, usd_per_j

if TYPE_CHECKING:
    from pandas import DataFrame

    from ckptcost.fleet.figures.lacking import Lacking
    from ckptcost.fleet.merge.part import Part


class _Mean(NamedTuple):
    """Of each present node of a run, in the mean of its windows."""

    energy_j: Floats
    storage_j: Floats
    """of that"""
    gpu_s: Floats


def missing_line(
    nodes: DataFrame, cells: Cells, lacking: Sequence[Lacking], s: Scenario | None
) -> CellLine:
    """The windows that are lacking at the mean of the nodes that are there, all lines together; by
    day as they lack."""
    some = {(each.job, each.run): each for each in lacking if each.each}
    columns = np.zeros((3, 5, cells.many))
    of_run = _rows_of_runs(cells)
    for key, run in some.items():
        mean = _means(nodes.iloc[of_run[key]] if key in of_run else nodes.iloc[:0])
        whole = sum(run.of_cells.values())
        estimates = [
            missing_share(each, run.each) for each in (mean.energy_j, mean.gpu_s, _usd(mean, s))
        ]
        for column, estimate in zip(columns, estimates, strict=True):
            low, high = ends_of(estimate)
            for cell, windows in run.of_cells.items():
                share = windows / whole
                column[4, cell] += windows
                if estimate.known:
                    column[:4, cell] += (
                        estimate.value * share,
                        low * share,
                        high * share if windows else 0.0,
                        windows,
                    )
    energy, gpu_s, costs = (Amounts.of_sums(*column) for column in columns)
    return line_of(s, "missing_nodes", energy, gpu_s, costs=costs)


def ends_of(estimate: Estimate) -> tuple[float, float]:
    """One node alone says nothing of how they differ."""
    return (
        0.0 if estimate.low is None else estimate.low,
        inf if estimate.high is None else estimate.high,
    )


def _rows_of_runs(cells: Cells) -> dict[tuple[str, str], list[int]]:
    found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row, cell in enumerate(cells.of_nodes.tolist()):
        found[cells.job[cell], cells.run[cell]].append(row)
    return found


def _means(nodes: DataFrame) -> _Mean:
    hosts: dict[str, int] = {}
    place = np.array(
        [hosts.setdefault(host, len(hosts)) for host in texts(nodes, "host")], dtype=np.int64
    )

    def total(name: str) -> Floats:
        return summed(numbers(nodes, name), place, len(hosts))

    def per_window(name: str, known: Floats) -> Floats:
        return np.asarray(
            np.divide(total(name), known, where=known > 0, out=np.full(len(hosts), nan))
        )

    windows = total("windows")
    saves = np.divide(total("saves"), windows, where=windows > 0, out=np.zeros(len(hosts)))
    each = {}
    for line in ("gpu", "host", "slow", "storage"):
        known = total(f"{line}_windows")
        # of saves only, unless it is known of more windows than there are saves
        share = saves if line in ("slow", "storage") and not (known > total("saves")).any() else 1.0
        each[line] = per_window(f"{line}_j", known) * share
    each["wait"] = per_window("wait_j", _where_known(nodes, "wait_j", place, len(hosts)))
    energy_j = _together([each[line] for line in ("gpu", "host", "slow", "wait", "storage")])
    time = [
        per_window(name, _where_known(nodes, name, place, len(hosts)))
        for name in ("own_gpu_s", "wait_gpu_s")
    ]
    return _Mean(energy_j, each["storage"], time[0] + time[1])


def _where_known(nodes: DataFrame, name: str, place: Places, hosts: int) -> Floats:
    lacking = np.isnan(numbers(nodes, name))
    return added(np.where(lacking, 0.0, numbers(nodes, "windows")), place, hosts)


def _together(parts: Sequence[Floats]) -> Floats:
    """What no node meters is left out, as it is of the lines of those that are there."""
    some = [part for part in parts if not np.isnan(part).all()]
    return np.asarray(sum(some)) if some else np.full(len(parts[0]), nan)


def _usd(mean: _Mean, s: Scenario | None) -> Floats:
    """As the lines of the nodes that are there are priced, one by one."""
    if s is None:
        return np.full(len(mean.gpu_s), nan)
    pue, tariff, storage = float(s.site.pue), usd_per_j(s), usd_per_j(s, of_storage=True)
    stored_j = np.nan_to_num(mean.storage_j)
    rest_j = mean.energy_j - stored_j
    usd = mean.gpu_s * float(s.cluster.usd_per_gpu_s)
    for joules, price in ((rest_j, tariff), (stored_j, storage)):
        if price != 0 and not (joules == 0).all():
            usd = usd + joules * pue * price
    return usd


class WholeJob(NamedTuple):
    """What is missing of bytes. A node that recorded and shows no such save is there, and wrote
    none."""

    times: Floats
    """by window: the run's nodes over those that are there"""
    bytes_missing: Amounts
    """by cell, of completed saves"""


def whole_job_of(part: Part, cells: Cells, lacking: Sequence[Lacking]) -> WholeJob:
    """Bytes at the mean of the nodes that are there; how far off that may be by how much they
    differ."""
    windows, at = part.windows, cells.of_windows
    size, nodes = numbers(windows, "bytes"), numbers(windows, "nodes")
    present = np.zeros(cells.many)
    for cell, _ in {*zip(cells.of_heads.tolist(), texts(part.heads, "host"), strict=True)}:
        present[cell] += 1
    expected = np.zeros(cells.many)
    of_runs = cells.of_runs
    for run in lacking:
        expected[of_runs[run.job, run.run]] = run.expected
    there = np.maximum(np.maximum(present[at], nodes), 1.0)
    absent = np.maximum(expected[at] - there, 0.0)
    done = ~flags(windows, "load") & ~flags(windows, "failed")
    known = done & ~np.isnan(size)
    lacks = added(np.where(done, absent, 0.0), at, cells.many)
    wrote = added(np.where(known, size, 0.0), at, cells.many)
    writers = added(np.where(known, there, 0.0), at, cells.many)
    columns = np.zeros((5, cells.many))
    rows = _rows_of_runs(cells) if lacks.any() else {}
    for run in lacking:
        places = of_runs[run.job, run.run]
        whole = float(lacks[places].sum())
        if not whole:
            continue
        many = float(writers[places].sum())
        estimate = _bytes(
            part.nodes.iloc[rows.get((run.job, run.run), [])],
            run,
            whole,
            float(wrote[places].sum()) / many if many else nan,
        )
        share = lacks[places] / whole
        columns[4, places] = lacks[places]
        if estimate.known:
            columns[0, places] = estimate.value * share
            # no share of an open end is none
            columns[1:3, places] = [
                [end * each if each else 0.0 for each in share.tolist()]
                for end in ends_of(estimate)
            ]
            columns[3, places] = lacks[places]
    return WholeJob((there + absent) / there, Amounts.of_sums(*columns))


def _bytes(nodes: DataFrame, run: Lacking, lacks: float, mean: float) -> Estimate:
    """`mean`: of a node and completed save. Rows of nodes count loads too, so they say how nodes
    differ and no more."""
    each = np.array(
        [float(node.windows) for node in run.missing] + [float(run.unnamed_windows)] * run.unnamed
    )
    each = each * lacks / each.sum() if each.sum() > 0 else np.array([lacks])
    if not len(nodes):
        return missing_share([mean], each)
    hosts: dict[str, int] = {}
    place = np.array(
        [hosts.setdefault(host, len(hosts)) for host in texts(nodes, "host")], dtype=np.int64
    )
    known = _where_known(nodes, "bytes", place, len(hosts))
    per_node = np.divide(
        summed(numbers(nodes, "bytes"), place, len(hosts)),
        known,
        where=known > 0,
        out=np.full(len(hosts), nan),
    )
    middle = float(np.nanmean(per_node)) if known.any() else nan
    return missing_share(per_node * mean / middle if middle > 0 else [mean], each)
