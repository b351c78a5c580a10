"""Cases as CSV: raw numbers with a point, the unit in the column's name, an empty cell where unknown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ckptcost.report.rows import COLUMNS

if TYPE_CHECKING:
    from ckptcost.report.document import Report


def line(cells: Iterable[Any]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerow(["" if cell is None else cell for cell in cells])
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
    out = [line([*header, "cautions"])]
    for row in report.cases:
        cells: list[Any] = [safe(row.tier)]
        for name in COLUMNS:
            cells += [row.values[name], row.low.get(name), row.high.get(name)] if name in ranged else [row.values[name]]
        out.append(line([*cells, " ".join(row.cautions)]))
    return "".join(out)
