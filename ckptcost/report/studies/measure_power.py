"""Power over time as a table: enough points for a picture, so that a document can draw it without
the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ckptcost.jobs.measured import Measured
from ckptcost.jobs.power_trace import of_kinds, trace_power
from ckptcost.present.amounts import duration
from ckptcost.report.study import Column, Table, plain

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
    edges, watts = trace_power(m, known, points)
    watts = {column: bins for column, bins in watts.items() if np.isfinite(bins.watts).any()}
    if not watts:
        return None
    rows: list[dict[str, Any]] = [
        {
            "at": float((edges[n] + edges[n + 1]) / 2),
            "length": float(edges[n + 1] - edges[n]),
        }
        | {
            name: plain(float(values[n]))
            for column, bins in watts.items()
            for name, values in zip(names_of(column), bins, strict=True)
        }
        for n in range(len(edges) - 1)
    ]
    columns = [
        Column("at", "at", "s", "middle of the stretch, since the recording began"),
        Column("length", "length", "s", "of the stretch"),
    ]
    for column, label, kinds, _ in among:
        if column in watts:
            mean, low, high = names_of(column)
            metered = f"{', '.join(sorted(set(kinds)))} meters together"
            columns += [
                Column(mean, label, "W", f"mean of {metered}"),
                Column(low, f"{label}, low", "W", "at least: what ticks and lag leave open"),
                Column(high, f"{label}, high", "W", "at most"),
            ]
    lengths = np.diff(edges)
    each = duration(float(lengths.min()))
    if lengths.max() > lengths.min() * 1.01:
        each += f" to {duration(float(lengths.max()))}"
    note = (
        f"Means of {each} each: no shorter than the meters' own ticks, and how often they were"
        " asked, can tell. Low and high are what the ticks' times and the power between them leave"
        " open."
    )
    return Table("power", "Power over time", tuple(columns), rows, note, shown=False)


def names_of(column: str) -> tuple[str, str, str]:
    """The columns of a mean, and of its range."""
    return column, f"{column}_low", f"{column}_high"
