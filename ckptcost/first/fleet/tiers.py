"""What each tier did for a node in this fleet: rate and fixed time fitted to its saves, and the
rates that single saves had.

Of a node, because jobs have from one to thousands of them: whether a storage that they share gives
each the same shows in the rows by job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.fit import TimeFit, fit_times
from ckptcost.first.fleet.bill_tables import rows_of
from ckptcost.first.fleet.figures import quantile
from ckptcost.first.fleet.grouping import (
    Places,
    RunCells,
    cells_of,
    flags,
    groups_of,
    instants,
    numbers,
)
from ckptcost.first.report.study import Column, Table

if TYPE_CHECKING:
    from ckptcost.first.core.estimates import Floats
    from ckptcost.first.fleet.part import StorePart

MOST: Final = 2000
"""saves that a fit is of; more do not make it any surer than tiers are steady"""
_GOLDEN: Final = 0.6180339887498949


class TierSeen(NamedTuple):
    tier: str
    job: str
    """empty: of all jobs"""
    saves: int
    """completed, whose bytes and seconds are known"""
    until_safe: int
    """of these, until they were safe; the others until training went on, for nobody says more"""
    fit: TimeFit
    """of a node's bytes, in the mean of its job's, and seconds of the whole save. Its `why` says
    what these saves cannot tell"""
    p5_bytes_per_s: float
    p50_bytes_per_s: float
    p95_bytes_per_s: float


def tiers_of(part: StorePart, cells: RunCells | None = None) -> tuple[TierSeen, ...]:
    """Each tier, and each job on it where it has several; by tier and job. `cells`: the part's, if
    somebody has them."""
    cells = cells_of(part) if cells is None else cells
    windows = part.windows
    size, stall_s, drain_s = (numbers(windows, name) for name in ("bytes", "stall_s", "drain_s"))
    size = size / np.maximum(numbers(windows, "nodes"), 1.0)
    safe = ~np.isnan(drain_s)
    seconds = stall_s + np.where(safe, drain_s, 0.0)
    told = (
        ~flags(windows, "load")
        & ~flags(windows, "failed")
        & (size > 0)
        & (seconds > 0)
        & np.isfinite(size)
        & np.isfinite(seconds)
    )
    rows = np.flatnonzero(told)
    begin_ns = instants(windows, "begin_ns")[rows]
    if (begin_ns[1:] < begin_ns[:-1]).any():
        rows = rows[np.argsort(begin_ns, kind="stable")]
    cell = cells.of_windows[rows]
    tiers, jobs = groups_of(cells, "tier"), groups_of(cells, "job")
    found = []
    for at, tier in enumerate(tiers.names):
        mine = rows[tiers.of_cells[cell] == at]
        found.append(_tier_seen(tier, "", mine, size, seconds, safe))
        used = np.unique(jobs.of_cells[tiers.of_cells == at]).tolist()
        of_job = jobs.of_cells[cells.of_windows[mine]]
        if len(used) > 1:
            found += [
                _tier_seen(tier, jobs.names[job], mine[of_job == job], size, seconds, safe)
                for job in used
            ]
    return tuple(found)


def _tier_seen(
    tier: str, job: str, rows: Places, size: Floats, seconds: Floats, safe: NDArray[np.bool_]
) -> TierSeen:
    """`rows` by time."""
    few = rows[_evenly(len(rows))] if len(rows) > MOST else rows
    rates = np.sort(size[rows] / seconds[rows])
    p5, p50, p95 = (quantile(rates, share) if len(rates) else np.nan for share in (0.05, 0.5, 0.95))
    fit = fit_times(size[few], seconds[few])._replace(
        residuals_s=()
    )  # thousands, and nobody asks for them
    return TierSeen(tier, job, len(rows), int(safe[rows].sum()), fit, p5, p50, p95)


def _evenly(many: int) -> Places:
    """One of each stretch, at a place in it that never comes again: every k-th save alone might be
    all the full ones."""
    stretch = np.arange(MOST)
    return np.asarray((stretch + stretch * _GOLDEN % 1.0) * (many / MOST)).astype(np.int64)


def tier_table(seen: Sequence[TierSeen]) -> Table:
    """Measured tiers, as whole jobs saw them."""
    rows = rows_of(seen, _FIELDS)
    for row, each in zip(rows, seen, strict=True):
        row["job"] = each.job or "all"
        row["until_safe"] = each.until_safe / each.saves if each.saves else None
    columns = (
        Column("tier", "tier"),
        Column("job", "job"),
        Column("saves", "saves", "count"),
        Column(
            "rate",
            "rate",
            "bytes_per_s",
            "of a node, fitted to saves: seconds = fixed + bytes / rate",
        ),
        Column("rate_low", "low", "bytes_per_s", shown=False),
        Column("rate_high", "high", "bytes_per_s", shown=False),
        Column("fixed", "fixed", "s"),
        Column("fixed_low", "low", "s", shown=False),
        Column("fixed_high", "high", "s", shown=False),
        Column("p5", "p5", "bytes_per_s"),
        Column("p50", "p50", "bytes_per_s", "of single saves"),
        Column("p95", "p95", "bytes_per_s"),
        Column(
            "until_safe",
            "until safe",
            "share",
            "of saves of which somebody says when they were safe; else until training went on",
            shown=False,
        ),
        Column("why", "why", meaning="code: what these saves cannot tell", shown=False),
    )
    return Table("tiers", "Tiers, as a node saw them", columns, rows)


_FIELDS: Final = {
    "tier": "tier",
    "job": "job",
    "saves": "saves",
    "rate": "fit.rate_bytes_per_s.value",
    "rate_low": "fit.rate_bytes_per_s.low",
    "rate_high": "fit.rate_bytes_per_s.high",
    "fixed": "fit.fixed_s.value",
    "fixed_low": "fit.fixed_s.low",
    "fixed_high": "fit.fixed_s.high",
    "p5": "p5_bytes_per_s",
    "p50": "p50_bytes_per_s",
    "p95": "p95_bytes_per_s",
    "until_safe": "until_safe",
    "why": "fit.why",
}
"""by column"""
