"""Cases as CSV: raw numbers with a point, the unit in the column's name, an empty cell where
unknown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ckptcost.report.rows import COLUMNS, NOTES

if TYPE_CHECKING:
    from ckptcost.report.document import Report

UNIT_SUFFIX = {
    "s": "s",
    "bytes": "bytes",
    "bytes_per_s": "bytes_per_s",
    "W": "w",
    "kWh": "kwh",
    "GPU-h": "gpu_hours",
    "USD": "usd",
    "kgCO2e": "kgco2e",
    "h": "hours",
    "USD/h": "usd_per_hour",
    "J": "j",
    "GPU-s": "gpu_s",
}
"""what the name of a column of that unit ends in"""


def lines(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV text; None is an empty cell."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def safe(text: str) -> str:
    """A cell that a spreadsheet will not take for a formula."""
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def of_report(report: Report) -> str:
    """One line a case, with p5 and p95 where inputs have ranges."""
    ranged = [name for name in COLUMNS if any(name in row.low for row in report.cases)]
    header = ["tier"]
    for name in COLUMNS:
        header += [name, name + "_low", name + "_high"] if name in ranged else [name]
    rows: list[list[Any]] = [[*header, *NOTES, "cautions"]]
    for row in report.cases:
        cells: list[Any] = [safe(row.tier)]
        for name in COLUMNS:
            cells += (
                [row.values[name], row.low.get(name), row.high.get(name)]
                if name in ranged
                else [row.values[name]]
            )
        cells += [" ".join(row.excludes.get(what, ())) for what in ("energy", "cost")]
        rows.append([*cells, " ".join(row.cautions)])
    return lines(rows)
