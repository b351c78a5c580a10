"""The lines of each cell: what windows say, what missing nodes would have said, what failed runs lost, and the time until the next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import inf, nan
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.core.domain import Scenario
from ckptcost.core.estimates import Estimate, Floats
from ckptcost.core.missing import missing_share
from ckptcost.fleet.figures.grouping import Cells, Places, added, flags, numbers, summed, texts
from ckptcost.fleet.figures.lines import Amounts, CellLine, line_of, usd_per_j
from ckptcost.fleet.figures.runs_seen import FAILED, RunSeen

if TYPE_CHECKING:
    from pandas import DataFrame

    from ckptcost.fleet.figures.lacking import Lacking
    from ckptcost.fleet.merge.part import Part

_ENDS: Final = ("_j", "_low_j", "_high_j")


def cell_lines_of(part: Part, cells: Cells, lacking: Sequence[Lacking], runs: Sequence[RunSeen], s: Scenario | None) -> list[CellLine]:
    return [
        *_of_windows(part.windows, cells, s),
        _missing(part.nodes, cells, lacking, s),
        _redone(runs, cells, s),
        _restart(runs, cells, s),
    ]


class _Rows(NamedTuple):
    """Windows and the bin of each, of which the last is for those that do not belong to the line."""

    frame: DataFrame
    bins: Places
    cells: int
    nodes: Floats

    def summed(self, values: Floats) -> Floats:
        return added(values, self.bins, self.cells + 1)[: self.cells]

    def energy(self, *lines: str) -> Amounts:
        """The lines' together, known where all of them are. An end that is not known is open."""
        known = self.nodes
        of_each = []
        for line in lines:
            values = [numbers(self.frame, f"{line}{end}") for end in _ENDS]
            some = np.where(np.isnan(values[0]), 0.0, numbers(self.frame, f"{line}_nodes"))
            known = np.minimum(known, some)
            of_each.append(values)
        lacking = known == 0
        sums = []
        for at, open_end in enumerate((nan, -inf, inf)):
            end = sum(values[at] for values in of_each)
            sums.append(self.summed(np.where(lacking, 0.0, np.where(np.isnan(end), open_end, end) if at else end)))
        value, low, high = sums
        return Amounts.of_sums(value, low, high, self.summed(known), self.summed(self.nodes))

    def time(self, gpu_s: Floats) -> Amounts:
        lacking = np.isnan(gpu_s)
        return Amounts.exact(
            self.summed(np.where(lacking, 0.0, gpu_s)), self.summed(np.where(lacking, 0.0, self.nodes)), self.summed(self.nodes)
        )

    def both(self, energy: Amounts, gpu_s: Floats, *lines: str) -> tuple[Amounts, Floats]:
        """Joules of windows whose GPU-seconds are known, and GPU-seconds of nodes whose joules are, if a window's nodes stood alike:
        what has no joules has no price where electricity is paid apart, and so for what has no time."""
        share = np.ones(len(gpu_s))
        for line in lines:
            some = np.where(np.isnan(numbers(self.frame, f"{line}_j")), 0.0, numbers(self.frame, f"{line}_nodes"))
            share = np.minimum(share, np.divide(some, self.nodes, where=self.nodes > 0, out=np.zeros(len(some))))
        lacking = np.isnan(gpu_s)
        if lacking.any():
            timed = self._replace(bins=np.where(lacking, self.cells, self.bins))
            energy = timed.energy(*lines)._replace(of=energy.of)
        return energy, self.summed(np.where(lacking, 0.0, gpu_s * share))


def _of_windows(windows: DataFrame, cells: Cells, s: Scenario | None) -> list[CellLine]:
    load, nodes = flags(windows, "load"), numbers(windows, "nodes")
    own, waited, drain_s = (numbers(windows, name) for name in ("own_gpu_s", "wait_gpu_s", "drain_s"))
    rows = _Rows(windows, cells.of_windows, cells.many, nodes)
    saves = rows._replace(bins=np.where(load, cells.many, cells.of_windows))
    loads = rows._replace(bins=np.where(load, cells.of_windows, cells.many))
    # what training takes longer beside a drain is not seen: there is none where nothing drains
    slowed = np.where(drain_s == 0, 0.0, nan)
    still = Amounts.nothing(cells.many)
    paid_apart = s is not None and usd_per_j(s) != 0

    def timed(name: str, rows: _Rows, gpu_s: Floats, *lines: str) -> CellLine:
        energy = rows.energy(*lines)
        return line_of(s, name, energy, rows.time(gpu_s), rows.both(energy, gpu_s, *lines) if paid_apart else None)

    return [
        timed("gpu_wait", saves, own, "gpu"),
        timed("waiting", rows, waited, "wait"),
        line_of(s, "host_wait", saves.energy("host"), still),
        timed("slowdown", saves, slowed, "slow"),
        line_of(s, "storage_write", saves.energy("storage"), still),
        timed("loading", loads, own, "gpu", "host"),
    ]


class _Mean(NamedTuple):
    """Of each present node of a run, in the mean of its windows."""

    energy_j: Floats
    storage_j: Floats
    """of that"""
    gpu_s: Floats


def _missing(nodes: DataFrame, cells: Cells, lacking: Sequence[Lacking], s: Scenario | None) -> CellLine:
    """The windows that are lacking at the mean of the nodes that are there, all lines together; by day as they lack."""
    some = {(each.job, each.run): each for each in lacking if each.each}
    columns = np.zeros((3, 5, cells.many))
    of_run = _rows_of_runs(cells)
    for key, run in some.items():
        mean = _means(nodes.iloc[of_run[key]] if key in of_run else nodes.iloc[:0])
        whole = sum(run.of_cells.values())
        estimates = [missing_share(each, run.each) for each in (mean.energy_j, mean.gpu_s, _usd(mean, s))]
        for column, estimate in zip(columns, estimates, strict=True):
            low, high = _ends(estimate)
            for cell, windows in run.of_cells.items():
                share = windows / whole
                column[4, cell] += windows
                if estimate.known:
                    column[:4, cell] += (estimate.value * share, low * share, high * share if windows else 0.0, windows)
    energy, gpu_s, costs = (Amounts.of_sums(*column) for column in columns)
    return line_of(s, "missing_nodes", energy, gpu_s, costs=costs)


def _ends(estimate: Estimate) -> tuple[float, float]:
    """One node alone says nothing of how they differ."""
    return (0.0 if estimate.low is None else estimate.low, inf if estimate.high is None else estimate.high)


def _rows_of_runs(cells: Cells) -> dict[tuple[str, str], list[int]]:
    found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row, cell in enumerate(cells.of_nodes.tolist()):
        found[cells.job[cell], cells.run[cell]].append(row)
    return found


def _means(nodes: DataFrame) -> _Mean:
    hosts: dict[str, int] = {}
    place = np.array([hosts.setdefault(host, len(hosts)) for host in texts(nodes, "host")], dtype=np.int64)

    def total(name: str) -> Floats:
        return summed(numbers(nodes, name), place, len(hosts))

    def per_window(name: str, known: Floats) -> Floats:
        return np.asarray(np.divide(total(name), known, where=known > 0, out=np.full(len(hosts), nan)))

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
    time = [per_window(name, _where_known(nodes, name, place, len(hosts))) for name in ("own_gpu_s", "wait_gpu_s")]
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


def _redone(runs: Sequence[RunSeen], cells: Cells, s: Scenario | None) -> CellLine:
    """At the power that the run's nodes had while they trained."""
    energy, gpu_s = np.zeros((2, 5, cells.many))
    for run in runs:
        if run.state != FAILED:
            continue
        node_s = run.spent.lost_s * run.nodes
        gpus, hosts = run.train_gpu_w, run.train_host_w
        _add(gpu_s, run.last_cell, run.spent.lost_s * run.gpus)
        if not node_s:
            _add(energy, run.last_cell, 0.0)
            continue
        low_w, high_w = _ends(gpus)
        host_low_w, host_high_w = _ends(hosts) if hosts.known else (0.0, inf)
        host_w = hosts.value if hosts.known else 0.0
        _add(energy, run.last_cell, (gpus.value + host_w) * node_s,
             (max(low_w, 0.0) + max(host_low_w, 0.0)) * node_s, (high_w + host_high_w) * node_s)  # fmt: skip
    return line_of(s, "redone_work", Amounts.of_sums(*energy), Amounts.of_sums(*gpu_s))


def _restart(runs: Sequence[RunSeen], cells: Cells, s: Scenario | None) -> CellLine:
    """Nobody records between two runs: GPU-seconds are known, joules are not."""
    energy, gpu_s = np.zeros((2, 5, cells.many))
    for run in runs:
        if run.restart_s > 0:
            _add(energy, run.last_cell, nan)
            _add(gpu_s, run.last_cell, run.restart_s * run.gpus)
    return line_of(s, "restart", Amounts.of_sums(*energy), Amounts.of_sums(*gpu_s))


def _add(column: NDArray[np.float64], cell: int, value: float, low: float = nan, high: float = nan) -> None:
    """One run more."""
    column[4, cell] += 1
    if value == value:
        column[:4, cell] += (value, value if low != low else low, value if high != high else high, 1)
