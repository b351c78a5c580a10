"""Power over time as a table: enough points for a picture, so that a document can draw it without the run."""

from __future__ import annotations

from typing import Any

import numpy as np

from ckptcost.jobs.measured import Measured
from ckptcost.jobs.power_trace import edges_of, of_kinds, tick_of, watts_of
from ckptcost.report.study import Column, Table

POINTS = 400
OF = (
    ("gpus", "GPUs", ("gpu", "module"), "parts"),
    ("hosts", "CPU and memory", ("cpu", "dram", "psys"), "parts"),
    ("node", "node", ("node",), "wholes"),
)
"""column, label, kinds of domains, and which of a node's domains they are among"""


def power(m: Measured) -> Table | None:
    """Mean watts of each stretch; None where nothing is metered over time."""
    domains = {
        column: of_kinds(m, kinds, getattr(m.energies, among)) for column, _, kinds, among in OF
    }
    known = {column: names for column, names in domains.items() if names}
    if not known:
        return None
    edges = edges_of(m, max(tick_of(m, names) for names in known.values()), POINTS)
    watts = {column: watts_of(m, names, edges) for column, names in known.items()}
    watts = {column: values for column, values in watts.items() if np.isfinite(values).any()}
    if not watts:
        return None
    rows: list[dict[str, Any]] = [
        {"at": float((edges[n] + edges[n + 1]) / 2)}
        | {
            column: float(values[n]) if np.isfinite(values[n]) else None
            for column, values in watts.items()
        }
        for n in range(len(edges) - 1)
    ]
    columns = (
        Column("at", "at", "s", "middle of the stretch, since the recording began"),
        *(
            Column(column, label, "W", f"mean of {', '.join(sorted(set(kinds)))} meters together")
            for column, label, kinds, _ in OF
            if column in watts
        ),
    )
    return Table("power", "Power over time", columns, rows, shown=False)
