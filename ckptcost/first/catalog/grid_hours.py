"""Grid factors that change with time, from a CSV of the user's: hourly or 5-minute, in any time
zone and unit that its header names."""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from ckptcost.first.catalog.files import text_of
from ckptcost.first.core.hourly import Steps
from ckptcost.first.errors import Argument, InputError, brief

MOST_BYTES = 200_000_000
MOST_KG_PER_KWH = 5.0
"""no grid is near it: a slip of the unit"""
LONGEST_STEP_S = 86400.0
TIMES = (
    "datetime",
    "timestamp",
    "time",
    "start",
    "from",
    "point_time",
    "date",
    "utc",
    "hour",
    "period_start",
)
_MASS = {
    "mg": 1e-6,
    "g": 1e-3,
    "kg": 1.0,
    "t": 1000.0,
    "tonne": 1000.0,
    "lb": 0.45359237,
    "lbs": 0.45359237,
}
_ENERGY = {"wh": 1e3, "kwh": 1.0, "mwh": 1e-3, "gwh": 1e-6}
_UNIT = re.compile(
    r"(?<![a-z])(mg|kg|g|tonne|t|lbs|lb) ?(?:co2|co₂)?-? ?(?:eq|₂eq|e)?\.?(?: ?/ ?|_per_| per"
    r" )([kmg]?wh)",
    re.IGNORECASE,
)
_MARGINAL = re.compile(r"moer|marginal", re.IGNORECASE)
_METHODS = {
    "combustion": re.compile(r"\b(direct|combustion)\b", re.IGNORECASE),
    "life-cycle": re.compile(r"\b(life[ _-]?cycle|lca)\b", re.IGNORECASE),
}
_HOW = "docs/howto/grid-factors.md shows one"


class GridHours(NamedTuple):
    """What a file says, in kgCO2e per kWh."""

    steps: Steps
    step_s: float
    column: str
    file: str
    """its base name"""
    bytes: int
    sha256: str
    method: str = "unknown"
    """what the factors count, where the column or the flag of the unit says so"""


def unit_of(text: str) -> float | None:
    """What a header or flag says of the unit, as kgCO2e per kWh; None where it says nothing.

    >>> (
    ...     unit_of("Carbon intensity gCO₂eq/kWh (direct)"),
    ...     unit_of("kgco2e_per_mwh"),
    ...     unit_of("intensity"),
    ... )
    (0.001, 0.001, None)
    """
    found = _UNIT.search(text.replace("₂", "2"))
    return None if found is None else _MASS[found[1].lower()] * _ENERGY[found[2].lower()]


def method_of(text: str) -> str:
    """What a header or flag says that its factors count.

    >>> (
    ...     method_of("Carbon intensity gCO₂eq/kWh (direct)"),
    ...     method_of("gCO2eq/kWh (LCA)"),
    ...     method_of("g/kWh"),
    ... )
    ('combustion', 'life-cycle', 'unknown')
    """
    found = [name for name, words in _METHODS.items() if words.search(text.replace("_", " "))]
    return found[0] if len(found) == 1 else "unknown"


def zone_of(name: str, where: str = Argument("grid_tz")) -> tzinfo:
    try:
        return UTC if name.upper() in ("UTC", "Z") else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InputError(
            f"no time zone named {brief(name)}", where=where, remedy="e.g. UTC or Europe/Berlin"
        ) from None


def read_grid(path: str, column: str = "", zone: str = "", unit: str = "") -> GridHours:
    """The file's times and factors. Raises InputError with the line that is wrong."""
    text = text_of(Path(path), path, MOST_BYTES, start=_HOW)
    try:
        return _read(text, path, column, zone, unit)
    except csv.Error as error:
        raise InputError(f"is not valid CSV: {error}", where=path) from None
    except InputError as error:
        raise error.at(path) from None


def _read(text: str, path: str, column: str, zone: str, unit: str) -> GridHours:
    lines = [line for line in text.removeprefix("\ufeff").splitlines() if not line.startswith("#")]
    offset = len(text.splitlines()) - len(lines)
    comma = _separator(lines)
    rows = list(csv.reader(lines, delimiter=comma))
    if len(rows) < 2:
        raise InputError("holds no factors", remedy=_HOW)
    header = [name.strip() for name in rows[0]]
    at_time, at_value = _time_column(header), _value_column(header, column)
    _refuse_marginal(header[at_value], Path(path).name)
    scale = _scale_of(header[at_value], unit)
    clock = UTC if "utc" in header[at_time].lower() else zone_of(zone) if zone else None
    starts, values = [], []
    before = -math.inf
    filled = [(n, row) for n, row in enumerate(rows[1:], start=2 + offset) if "".join(row).strip()]
    for line, row in _in_order(filled, at_time):
        _check_cells(row, header, max(at_time, at_value), line)
        before = _instant(row[at_time].strip(), clock, before, line)
        starts.append(before)
        value = _factor(row[at_value].strip(), comma, scale, line)
        values.append(math.nan if value is None else value)
    steps, step_s = _steps(np.array(starts), np.array(values))
    raw = text.encode()
    return GridHours(
        steps,
        step_s,
        header[at_value],
        Path(path).name,
        len(raw),
        hashlib.sha256(raw).hexdigest(),
        method_of(f"{header[at_value]} {unit}"),
    )


def _separator(lines: list[str]) -> str:
    """What stands between the columns, by the header."""
    head = lines[0] if lines else ""
    if head.count(";") > head.count(","):
        return ";"
    return "\t" if "\t" in head else ","


def _refuse_marginal(*names: str) -> None:
    marginal = next((name for name in names if _MARGINAL.search(name)), "")
    if marginal:
        raise InputError(
            f"{brief(marginal)} is of marginal factors: what the next kWh would emit, not the"
            " mean one",
            remedy=(
                "location-based totals take average factors; a marginal one says what a shift of "
                "load in time would save, and is never added to them"
            ),
        )


def _scale_of(column: str, unit: str) -> float:
    scale = unit_of(unit or column)
    if scale is not None:
        return scale
    said = f"no unit is known of {brief(unit)}" if unit else f"column {brief(column)} names no unit"
    raise InputError(said, remedy='say it, e.g. --grid-unit "g/kWh"')


def _check_cells(row: list[str], header: list[str], last: int, line: int) -> None:
    said = f"line {line} has {len(row)} cells, the header {len(header)}"
    if len(row) <= last:
        raise InputError(said)
    if "".join(row[len(header) :]).strip():
        remedy = "a decimal comma? write a point, or put ; between the columns"
        raise InputError(said, remedy=remedy)


def _in_order(rows: list[tuple[int, list[str]]], at_time: int) -> list[tuple[int, list[str]]]:
    """The oldest first: some files begin with the newest. Told by their texts: an hour that comes
    twice can only be told in order."""
    ends = (
        [row[at_time].strip() for _, row in (rows[0], rows[-1]) if len(row) > at_time]
        if rows
        else []
    )
    try:
        first, last = map(datetime.fromisoformat, ends)
    except ValueError:  # the line that is wrong is told where it is read
        return rows
    backwards = first > last if (first.tzinfo is None) == (last.tzinfo is None) else False
    return rows[::-1] if backwards else rows


def _time_column(header: Sequence[str]) -> int:
    plain = [re.sub(r"[^a-z_]", " ", name.lower()).split() for name in header]
    for known in TIMES:
        for at, words in enumerate(plain):
            if words and words[0] == known:
                return at
    raise InputError(
        f"has no column of times; its header is {brief(', '.join(header), 200)}",
        remedy=f"call it one of {', '.join(TIMES)}",
    )


def _value_column(header: Sequence[str], column: str) -> int:
    if column:
        if column not in header:
            raise InputError(
                f"has no column {brief(column)}",
                where=Argument("grid_column"),
                remedy=f"there are: {', '.join(header)}",
            )
        return header.index(column)
    known = [at for at, name in enumerate(header) if unit_of(name) is not None]
    if len(known) == 1:
        return known[0]
    if not known:
        raise InputError(
            "has no column whose name holds a unit such as gCO2e/kWh",
            remedy="name it with --grid-column and --grid-unit",
        )
    names = ", ".join(brief(header[at], 80) for at in known)
    raise InputError(
        f"has several columns of factors: {names}",
        remedy="say which with --grid-column; lifecycle is what the catalogue's are",
    )


def _instant(text: str, clock: tzinfo | None, before_s: float, line: int) -> float:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"line {line}: {brief(text)} is no time", remedy="ISO 8601, e.g. 2026-11-01T00:00Z"
        ) from None
    if when.tzinfo is not None:
        return when.timestamp()
    if clock is None:
        raise InputError(
            f"line {line}: {brief(text)} names no time zone",
            remedy="say which with --grid-tz, e.g. UTC or Europe/Berlin",
        )
    first = when.replace(tzinfo=clock)
    told_s = first.timestamp()
    if datetime.fromtimestamp(told_s, clock).replace(tzinfo=None, fold=0) != when.replace(fold=0):
        raise InputError(
            f"line {line}: {brief(text)} is no time there: clocks were put forward",
            remedy="check --grid-tz",
        )
    # clocks put back: the same hour twice, the second time an hour later
    return first.replace(fold=1).timestamp() if told_s <= before_s else told_s


def _factor(text: str, comma: str, scale: float, line: int) -> float | None:
    if not text:
        return None
    try:
        value = float(text.replace(",", ".") if comma == ";" else text) * scale
    except ValueError:
        raise InputError(
            f"line {line}: {brief(text)} is no number",
            remedy="leave the cell empty where it is not known",
        ) from None
    if not 0.0 <= value <= MOST_KG_PER_KWH:
        raise InputError(
            f"line {line}: {value:g} kgCO2e/kWh is no factor of a grid",
            remedy="check the unit: --grid-unit",
        )
    return value


def _steps(starts: np.ndarray, values: np.ndarray) -> tuple[Steps, float]:
    """Each holds until the next, and no longer than a step: the usual distance."""
    if not np.isfinite(values).any():
        raise InputError("holds no factors", remedy=_HOW)
    apart = np.diff(starts)
    if np.any(apart <= 0):
        where = int(np.argmax(apart <= 0))
        when = datetime.fromtimestamp(float(starts[where + 1]), UTC).isoformat()
        raise InputError(f"the times are in no order: {when} comes after a later one, or twice")
    step_s = float(np.median(apart)) if len(apart) else 3600.0
    if step_s > LONGEST_STEP_S or step_s < 60.0:
        raise InputError(f"one factor each {step_s:g} s", remedy="between a minute and a day")
    ends = np.append(np.minimum(starts[1:], starts[:-1] + step_s), starts[-1] + step_s)
    known = np.isfinite(values)
    return Steps(starts[known], ends[known], values[known]), step_s
