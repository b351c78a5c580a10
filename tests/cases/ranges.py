"""What a default's range was fitted to: one half of the published outcomes of its group.

The other half, and every outcome that belongs to no group, counts in docs/coverage.md.
"""

from __future__ import annotations

import numpy as np
from coverage import Row, measured, outcomes, scenario_of

from ckptcost.plan import draws
from ckptcost.plan import physics as ph
from ckptcost.scenario import catalog
from ckptcost.scenario import resolve as sc
from ckptcost.scenario.schema import Array

SETS = {
    "write": "tier.gpu_write",
    "read": "tier.gpu_read",
    "ratio": "tier.read",
    "detect": "failures.detect",
    "init": "failures.init",
    "restart": "failures.reschedule",
    "failures": "failures.rate_factor",
}
"""by group: the figure that its first, third, fifth ... row sets"""
MOST = 1000
"""processes of a job that tells the rate of one: of more than that, the storage decides"""


def grouped(group: str) -> list[dict[str, str]]:
    return [cells for cells in outcomes() if cells["group"] == group]


def setting(path: str) -> list[Row]:
    return [row for row in measured() if row.sets == path]


def size_and_processes(cells: dict[str, str]) -> tuple[float, float]:
    w = draws.worlds([scenario_of(cells["settings"])])
    return ph.full_size(w).item(), w.cluster.gpus.item()


def process_rates(way: str) -> list[float]:
    """Bytes/s of one process: MLPerf's accelerators, and jobs that set the figure."""
    column = {"write": "save_gb_s", "read": "load_gb_s"}[way]
    found = [
        float(run[column]) * 1e9 / float(run["accelerators"])
        for run in catalog.rows("mlperf_checkpoint.csv")
        if run[column] and run["accelerators"] and run["submitter"] != "FIELD MEDIAN"
    ]
    cells = {each["id"]: each for each in outcomes()}
    for row in setting(f"tier.gpu_{way}"):
        size, processes = size_and_processes(cells[row.id])
        found.append(size / processes / row.published)
    return found


def failure_factors() -> list[float]:
    """How often jobs fail over how often the law says."""
    rows = setting("failures.rate_factor")
    return [1.0 / row.off if row.measure == "mtbf" else row.off for row in rows]


def reports(group: str) -> list[float]:
    """In SI, or as a ratio to what is stated."""
    if group in ("write", "read"):
        return process_rates(group)
    if group == "failures":
        return failure_factors()
    rows = setting(SETS[group])
    return [1.0 / row.off if group == "ratio" else row.published for row in rows]


def ends_of(values: list[float]) -> Array:
    """5th and 95th percentile, between two reports by their ratio."""
    return np.exp(np.quantile(np.log(values), (0.05, 0.95)))


def drawn_ends(low: float, value: float, high: float) -> Array:
    return np.quantile(
        draws.triangle(low, value, high, (np.arange(4096) + 0.5) / 4096), (0.05, 0.95)
    )


def shipped_ends(group: str) -> Array:
    """5th and 95th percentile of the draws of a default."""
    if group == "ratio":
        low, high = sc.READ_OVER_WRITE
        return drawn_ends(low, 1.0, high)
    figure = sc.default_figure(*SETS[group].split("."))
    return drawn_ends(figure.low, figure.value, figure.high)
