"""The lines of each cell: what windows say, what failed runs lost, and the time until the next.
Missing nodes are in absent_nodes."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.bill import electricity_usd_per_j
from ckptcost.first.core.domain import Scenario
from ckptcost.first.core.estimates import Floats
from ckptcost.first.fleet.grouping import Places, RunCells, add_by_place, flags, numbers, quotients
from ckptcost.first.fleet.lines import CellLine, FleetAmounts, line_of
from ckptcost.first.fleet.missing_nodes import ends_of, missing_line
from ckptcost.first.fleet.runs_seen import FAILED, RunSeen

if TYPE_CHECKING:
    from pandas import DataFrame

    from ckptcost.first.fleet.missing_nodes import Lacking
    from ckptcost.first.fleet.part import StorePart

_ENDS: Final = ("_j", "_low_j", "_high_j")


def cell_lines_of(
    part: StorePart,
    cells: RunCells,
    lacking: Sequence[Lacking],
    runs: Sequence[RunSeen],
    s: Scenario | None,
) -> list[CellLine]:
    return [
        *_of_windows(part.windows, cells, s),
        missing_line(part.nodes, cells, lacking, s),
        _redone(runs, cells, s),
        _restart(runs, cells, s),
    ]


class _Rows(NamedTuple):
    """Windows and the bin of each, of which the last is for those that do not belong to the
    line."""

    frame: DataFrame
    bins: Places
    cells: int
    nodes: Floats

    def summed(self, values: Floats) -> Floats:
        return add_by_place(values, self.bins, self.cells + 1)[: self.cells]

    def known(self, *lines: str) -> Floats:
        """By window, of how many of its nodes all of the lines are known."""
        known = self.nodes
        for line in lines:
            joules = numbers(self.frame, f"{line}_j")
            some = np.where(np.isnan(joules), 0.0, numbers(self.frame, f"{line}_nodes"))
            if line == "wait":
                # of a node whose host nobody metered, it is the GPUs' alone; where nobody waited
                # there is nothing to meter
                hosts = np.where(
                    np.isnan(numbers(self.frame, "host_j")), 0.0, numbers(self.frame, "host_nodes")
                )
                some = np.where(joules == 0, some, np.minimum(some, hosts))
            known = np.minimum(known, some)
        return np.asarray(known)

    def energy(self, *lines: str) -> FleetAmounts:
        """The lines' together, known where all of them are. An end that is not known is open."""
        known = self.known(*lines)
        of_each = [[numbers(self.frame, f"{line}{end}") for end in _ENDS] for line in lines]
        lacking = known == 0
        sums = []
        for at, open_end in enumerate((nan, -inf, inf)):
            end = sum(values[at] for values in of_each)
            sums.append(
                self.summed(
                    np.where(lacking, 0.0, np.where(np.isnan(end), open_end, end) if at else end)
                )
            )
        value, low, high = sums
        return FleetAmounts.of_sums(value, low, high, self.summed(known), self.summed(self.nodes))

    def time(self, gpu_s: Floats) -> FleetAmounts:
        lacking = np.isnan(gpu_s)
        return FleetAmounts.exact(
            self.summed(np.where(lacking, 0.0, gpu_s)),
            self.summed(np.where(lacking, 0.0, self.nodes)),
            self.summed(self.nodes),
        )

    def both(self, energy: FleetAmounts, gpu_s: Floats, *lines: str) -> tuple[FleetAmounts, Floats]:
        """Joules of windows whose GPU-seconds are known, and GPU-seconds of nodes whose joules are,
        if a window's nodes stood alike: what has no joules has no price where electricity is paid
        apart, and so for what has no time.
        """
        share = quotients(self.known(*lines), self.nodes, 0.0)
        lacking = np.isnan(gpu_s)
        if lacking.any():
            timed = self._replace(bins=np.where(lacking, self.cells, self.bins))
            energy = timed.energy(*lines)._replace(of=energy.of)
        return energy, self.summed(np.where(lacking, 0.0, gpu_s * share))


def _of_windows(windows: DataFrame, cells: RunCells, s: Scenario | None) -> list[CellLine]:
    load, failed, nodes = (
        flags(windows, "load"),
        flags(windows, "failed"),
        numbers(windows, "nodes"),
    )
    own, waited, drain_s = (
        numbers(windows, name) for name in ("own_gpu_s", "wait_gpu_s", "drain_s")
    )
    rows = _Rows(windows, cells.of_windows, cells.many, nodes)
    saves = rows._replace(bins=np.where(load, cells.many, cells.of_windows))
    loads = rows._replace(bins=np.where(load, cells.of_windows, cells.many))
    together = rows._replace(bins=np.where(nodes > 1, cells.of_windows, cells.many))
    # of a save that failed nobody knows a drain, and whatever it slowed is lost with it
    idle = ((drain_s == 0) | failed & np.isnan(drain_s)) & ~(np.abs(numbers(windows, "slow_j")) > 0)
    drained = saves._replace(bins=np.where(idle, cells.many, saves.bins))
    # what training takes longer beside a drain is not seen: there is none where nothing drains
    slowed = np.where(drain_s == 0, 0.0, nan)
    still = FleetAmounts.nothing(cells.many)
    paid_apart = s is not None and electricity_usd_per_j(s) != 0

    def timed(name: str, rows: _Rows, gpu_s: Floats, *lines: str) -> CellLine:
        energy = rows.energy(*lines)
        return line_of(
            s,
            name,
            energy,
            rows.time(gpu_s),
            rows.both(energy, gpu_s, *lines) if paid_apart else None,
        )

    return [
        timed("gpu_wait", saves, own, "gpu"),
        timed("waiting", together, waited, "wait"),
        line_of(s, "host_wait", saves.energy("host"), still),
        timed("slowdown", drained, slowed, "slow"),
        line_of(s, "storage_write", saves.energy("storage"), still),
        timed("loading", loads, own, "gpu", "host"),
    ]


def _redone(runs: Sequence[RunSeen], cells: RunCells, s: Scenario | None) -> CellLine:
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
        low_w, high_w = ends_of(gpus)
        host_low_w, host_high_w = ends_of(hosts) if hosts.known else (0.0, inf)
        host_w = hosts.value if hosts.known else 0.0
        _add(
            energy,
            run.last_cell,
            (gpus.value + host_w) * node_s,
            (max(low_w, 0.0) + max(host_low_w, 0.0)) * node_s,
            (high_w + host_high_w) * node_s,
        )
    return line_of(s, "redone_work", FleetAmounts.of_sums(*energy), FleetAmounts.of_sums(*gpu_s))


def _restart(runs: Sequence[RunSeen], cells: RunCells, s: Scenario | None) -> CellLine:
    """Nobody records between two runs: GPU-seconds are known, joules are not. Where electricity is
    paid apart, dollars are the rent, and more by nobody knows how much."""
    energy, gpu_s = np.zeros((2, 5, cells.many))
    for run in runs:
        if run.restart_s > 0:
            _add(energy, run.last_cell, nan)
            _add(gpu_s, run.last_cell, run.restart_s * run.gpus)
    of_time = FleetAmounts.of_sums(*gpu_s)
    costs = None
    if s is not None and electricity_usd_per_j(s) != 0:
        rent = of_time.times(float(s.cluster.usd_per_gpu_s))
        costs = rent._replace(
            high=np.where(rent.known > 0, inf, rent.high), known=0.0 * rent.of, partly=rent.known
        )
    return line_of(s, "restart", FleetAmounts.of_sums(*energy), of_time, costs=costs)


def _add(
    column: NDArray[np.float64], cell: int, value: float, low: float = nan, high: float = nan
) -> None:
    """One run more."""
    column[4, cell] += 1
    if value == value:
        column[:4, cell] += (
            value,
            value if low != low else low,
            value if high != high else high,
            1,
        )
