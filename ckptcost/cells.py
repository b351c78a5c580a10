"""The cells of a table as texts: a column is formatted together, so that it has one unit if its
values are not too far apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf, nan
from typing import NamedTuple

from ckptcost.answer import Cell, Column, Quantity, Range, Table
from ckptcost.errors import visible
from ckptcost.scenario.units import number, per, show, show_range

BAR = 13
UNKNOWN = "not known"
SCALED = ("s", "B", "B/s", "W", "share")
"""quantities whose unit people choose by their size; it stands in the cell, not in the header"""
LONG = {"GPU-h": "GPU-hours", "kg": "kgCO2e"}


class Scale(NamedTuple):
    """What numbers are divided by, what that is called, and decimals (None: three digits each)."""

    size: float
    name: str = ""
    letter: str = ""
    """M for millions, behind the number"""
    decimals: int | None = None

    def say(self, value: float) -> str:
        if value != value:
            return UNKNOWN
        if abs(value) == inf:
            return number(value)
        if self.name == "%" and 0 < abs(value) < 1e-4:
            return "<0.01 %"
        if value == 0 or self.decimals is None:
            said = number(value / self.size) + self.letter * (value != 0)
        else:
            said = f"{value / self.size:,.{self.decimals}f}{self.letter}"
        return f"{said} {self.name}".strip()


def scale_of(values: Sequence[float], unit: str) -> Scale | None:
    """The one scale in which all values can be read; None if they are too far apart for that.

    >>> scale_of([300.0, 900.0, 3600.0], "s"), scale_of([55.0, 1020.0, 10080.0], "s")
    (Scale(size=60.0, name='min', letter='', decimals=0), None)
    """
    sizes = sorted({float(f"{abs(x):.12g}") for x in values if 0 < abs(x) < inf})
    if not sizes:
        return own_scale(0.0, unit)
    if unit == "count" and sizes[-1] < 1e6 and all(map(float.is_integer, sizes)):
        return Scale(1.0, decimals=0)
    most = {"s": 90.0}.get(unit, 1000.0)  # nobody says 480 min
    for scale in (own_scale(sizes[-1], unit), own_scale(sizes[0], unit)):
        least = {"s": 0.1, "%": 0.1, "": 0.1}.get(scale.name, 1.0)
        if least * scale.size <= sizes[0] <= sizes[-1] < most * scale.size:
            return scale._replace(decimals=_decimals([x / scale.size for x in sizes]))
    return None


def own_scale(value: float, unit: str) -> Scale:
    """As `show` would say this value alone."""
    base = per(unit)
    if unit not in SCALED:
        letter = number(value / base)[-1:] if abs(value) < inf else ""
        size = {"M": 1e6, "G": 1e9, "T": 1e12}.get(letter)
        return Scale(base * size, letter=letter) if size else Scale(base)
    name = show(value, unit).partition(" ")[2]
    return Scale(0.01 if name == "%" else per(name), name)


def _decimals(sizes: Sequence[float]) -> int | None:
    """Of all values together, if three digits of the largest say enough of the smallest."""
    least, most = sizes[0], sizes[-1]
    if most > 20.0 * least:
        return None
    needed = max(len(number(x).partition(".")[2]) for x in sizes)
    leading = least if most <= 2.0 * least else most
    return min(needed, max(3 - len(f"{leading:.0f}"), 0))


class Part(NamedTuple):
    """A column of texts of the printed table."""

    header: str
    texts: list[str]
    right: bool = True
    wraps: bool = False
    """words, which may be wrapped within the column"""
    bar: bool = False


def printed(table: Table, detail: bool = False) -> list[Part]:
    """The columns that a person sees; all of them, with their ranges, in detail. Empty ones have
    nothing to see."""
    found: list[Part] = []
    for at, column in enumerate(table.columns):
        if detail or column.screen != "no":
            found += _parts(column, [row[at] for row in table.rows])
    return [found[0]._replace(wraps=False), *(part for part in found[1:] if any(part.texts))]


def _parts(column: Column, cells: list[Cell]) -> list[Part]:
    """The texts of a column; a range or a bar beside the value makes a second one."""
    header = visible(column.header)
    if not (column.unit in ("text", "count", *SCALED) or column.unit in header):
        header = f"{header}, {column.unit}".removeprefix(", ")
    numbers = [_number(cell) for cell in cells]
    scales = _scales(column, cells, numbers)
    ends = [_ends(c, column.unit, scale) for c, scale in zip(cells, scales, strict=True)]
    if column.screen == "ends":
        return [Part(header, ends)]
    texts = _values(column, cells, scales, ends)
    words = column.unit == "text" and numbers.count(None) == len(numbers)
    beside = {
        "both": [Part("range (p5-p95)", ends)],
        "bar": [Part("", _bars(numbers), right=False, bar=True)],
    }
    return [
        Part(header, texts, not words or _amounts(texts), words),
        *beside.get(column.screen, []),
    ]


def _number(cell: Cell) -> float | None:
    """None for what is none."""
    if isinstance(cell, Quantity):
        return cell.range.value
    if isinstance(cell, Range):
        return cell.value
    return None if isinstance(cell, (str, bool, type(None))) else float(cell)


def _scales(column: Column, cells: list[Cell], numbers: list[float | None]) -> list[Scale]:
    """One for all cells if they have one; a quantity has its own, as its row is about something
    else than the others."""
    values = [nan if x is None else x for x in numbers]
    common = scale_of(values, column.unit)
    found = []
    for cell, value in zip(cells, values, strict=True):
        scale = common or own_scale(value, column.unit)
        if isinstance(cell, Quantity):
            scale = own_scale(value, cell.unit)
            if cell.unit not in (*SCALED, "count", "text"):
                scale = scale._replace(name=LONG.get(cell.unit, cell.unit))
        found.append(scale)
    return found


def _values(column: Column, cells: list[Cell], scales: list[Scale], ends: list[str]) -> list[str]:
    """With their ranges if they stand there; quantities have their numbers on the right and their
    units behind, on the left."""
    texts = [_text(c, column.unit, scale) for c, scale in zip(cells, scales, strict=True)]
    if column.screen in ("range", "no"):
        return [f"{text} ({end})" if end else text for text, end in zip(texts, ends, strict=True)]
    if column.unit:
        return texts
    split = [text.partition(" ") if text[:1].isdigit() else (text, "", "") for text in texts]
    width = max(len(unit) for _, _, unit in split)
    return [f"{amount} {unit:<{width}}" for amount, _, unit in split]


def _text(cell: Cell, unit: str, scale: Scale) -> str:
    value = _number(cell)
    if value is not None:
        return scale.say(value)
    if cell is None:
        return "" if unit == "text" else "-"
    return visible(cell) if isinstance(cell, str) else "yes" if cell else "no"


def _ends(cell: Cell, unit: str, scale: Scale) -> str:
    """The ends of a range, in the scale of its value if that can be read."""
    if isinstance(cell, Quantity):
        cell, unit = cell
    if not isinstance(cell, Range) or not cell.low < cell.high:
        return ""
    value, low, high = (x / scale.size for x in cell)
    near = max(abs(low), abs(high)) < 10000.0 and (low == 0.0 or abs(low) >= 0.01)
    if (unit in SCALED or scale.letter) and near:
        return show_range(low, high, "", value) + scale.letter
    return show_range(cell.low, cell.high, unit, cell.value)


def _amounts(texts: Sequence[str]) -> bool:
    """Texts that are read like numbers stand on the right."""
    return any(texts) and all(
        not t or re.match(r"[-+<>~]?\d|-$|not (known|measured)|never", t) for t in texts
    )


def _bars(numbers: Sequence[float | None]) -> list[str]:
    sizes = [x if x is not None and 0.0 < x < inf else 0.0 for x in numbers]
    most = max(sizes, default=0.0) or 1.0
    return ["#" * max(round(BAR * x / most), 1) if x else "" for x in sizes]
