"""CSV: raw numbers with a point, the unit in the column's name, an empty cell where unknown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

UNIT_SUFFIX = {
    "s": "s",
    "bytes": "bytes",
    "bytes_per_s": "bytes_per_s",
    "W": "w",
    "kWh": "kwh",
    "GPU-h": "gpu_hours",
    "USD": "usd",
    "kgCO2e": "kgco2e",
    "L": "l",
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
