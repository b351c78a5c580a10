"""Power over time as a table: enough points for a picture, so that a document can draw it without
the run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.jobs.measured import Measured
from ckptcost.first.jobs.power_trace import of_kinds, trace_power
from ckptcost.first.present.amounts import duration
from ckptcost.first.report.study import Column, Table, plain

Group = tuple[str, str, tuple[str, ...], str]
"""column, label, kinds of domains, and which of a node's domains they are among"""
POINTS = 400
OF: tuple[Group, ...] = (
    ("gpus", "GPUs", ("gpu", "module"), "parts"),
    ("hosts", "CPU and memory", ("cpu", "dram", "psys"), "parts"),
    ("node", "node", ("node",), "wholes"),
)


def power(m: Measured, points: int = POINTS, among: Sequence[Group] = OF) -> Table | None:
    """Mean watts of each stretch with its range; None where nothing is metered over time. Several
    groups share the stretches of the slowest meter."""
    domains = {
        column: of_kinds(m, kinds, getattr(m.energies, of)) for column, _, kinds, of in among
    }
    known = {column: names for column, names in domains.items() if names}
    if not known:
        return None
    edges, told = trace_power(m, known, points)
    lengths = np.diff(edges)
    values = {"at": (edges[:-1] + edges[1:]) / 2, "length": lengths}
    columns = [
        Column("at", "at", "s", "middle of the stretch, since the recording began"),
        Column("length", "length", "s", "of the stretch"),
    ]
    for group in among:
        bins = told.get(group[0])
        if bins is not None and np.isfinite(bins.watts).any():
            values |= zip(names_of(group[0]), bins, strict=True)
            columns += _watt_columns(group)
    if len(columns) == 2:  # of no group anything is known
        return None
    rows = [
        {name: plain(float(each[n])) for name, each in values.items()} for n in range(len(lengths))
    ]
    return Table("power", "Power over time", tuple(columns), rows, _note(lengths), shown=False)


def _watt_columns(group: Group) -> tuple[Column, ...]:
    column, label, kinds, _ = group
    mean, low, high = names_of(column)
    metered = f"{', '.join(sorted(set(kinds)))} meters together"
    return (
        Column(mean, label, "W", f"mean of {metered}"),
        Column(low, f"{label}, low", "W", "at least: what ticks and lag leave open"),
        Column(high, f"{label}, high", "W", "at most"),
    )


def _note(lengths: NDArray[np.float64]) -> str:
    each = duration(float(lengths.min()))
    if lengths.max() > lengths.min() * 1.01:
        each += f" to {duration(float(lengths.max()))}"
    return (
        f"Means of {each} each: no shorter than the meters' own ticks, and how often they were"
        " asked, can tell. Low and high are what the ticks' times and the power between them leave"
        " open."
    )


def names_of(column: str) -> tuple[str, str, str]:
    """The columns of a mean, and of its range."""
    return column, f"{column}_low", f"{column}_high"
