"""The cells of a table as texts: a column is formatted together, so that it has one unit if its
values are not too far apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from math import inf, nan
from typing import Any, NamedTuple

from ckptcost.answer import Column, Quantity, Range, Table
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

    def figure(self, value: float) -> str:
        if value != value:
            return UNKNOWN
        if value == 0 or abs(value) == inf or self.decimals is None:
            return number(value / self.size) + self.letter * (0 < abs(value) < inf)
        return f"{value / self.size:,.{self.decimals}f}{self.letter}"


def scale_of(values: Sequence[float], unit: str) -> Scale | None:
    """The one scale in which all values can be read; None if they are too far apart for that.

    >>> scale_of([300.0, 900.0, 3600.0], "s"), scale_of([55.0, 1020.0, 10080.0], "s")
    (Scale(size=60.0, name='min', letter='', decimals=0), None)
    """
    sizes = sorted({abs(float(x)) for x in values if 0 < abs(x) < inf})
    if not sizes:
        return own_scale(0.0, unit)
    if unit == "count" and sizes[-1] < 1e6 and all(map(float.is_integer, sizes)):
        return Scale(1.0, decimals=0)
    most = 200.0 if unit == "s" else 1000.0  # nobody says 480 min
    for scale in (own_scale(sizes[-1], unit), own_scale(sizes[0], unit)):
        least = 0.1 if scale.name in ("s", "%", "") else 1.0
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


def parts_of(column: Column, cells: list[Any], screen: str) -> list[Part]:
    """The texts of a column; a range or a bar beside the value makes a second one."""
    said = _Cells(column, cells)
    if screen == "ends":
        return [Part(_header(column), said.ranges())]
    values = said.values(with_range=screen == "range")
    numeric = column.unit != "text" or any(not isinstance(c, (str, type(None))) for c in cells)
    header = _header(column)
    found = [Part(header, values, numeric or _amounts(values), not numeric)]
    if screen == "both":
        found.append(Part("range (p5-p95)", said.ranges()))
    if screen == "bar":
        found.append(Part("", said.bars(), right=False, bar=True))
    return found


def _header(column: Column) -> str:
    """With its unit, unless the cells or the header name it."""
    in_cells = column.unit in ("", "text", "count", *SCALED)
    return (
        column.header
        if in_cells or column.unit in column.header
        else f"{column.header}, {column.unit}".removeprefix(", ")
    )


def _amounts(texts: Sequence[str]) -> bool:
    """Texts that are read like numbers stand on the right."""
    return any(texts) and all(
        not t or re.match(r"[-+<>~]?\d|-$|not (known|measured)|never", t) for t in texts
    )


class _Cells:
    """The cells of one column, as texts."""

    def __init__(self, column: Column, cells: list[Any]) -> None:
        self.cells = cells
        self.units = [c.unit if isinstance(c, Quantity) else column.unit for c in cells]
        self.bare = [c.range if isinstance(c, Quantity) else c for c in cells]
        self.numbers = [_number(cell) for cell in self.bare]
        self.scales = [self._scale(at) for at in range(len(cells))]

    @cached_property
    def _common(self) -> dict[str, Scale | None]:
        """The scale of all numbers of a unit, if they have one."""
        by_unit: dict[str, list[float]] = {}
        for unit, value in zip(self.units, self.numbers, strict=True):
            by_unit.setdefault(unit, []).append(value)
        return {unit: scale_of(values, unit) for unit, values in by_unit.items()}

    def _scale(self, at: int) -> Scale:
        """A quantity has its own: its row is about something else than the others."""
        unit = self.units[at]
        common = None if isinstance(self.cells[at], Quantity) else self._common[unit]
        return common or own_scale(self.numbers[at], unit)

    def values(self, with_range: bool) -> list[str]:
        texts = [self._value(at) for at in range(len(self.cells))]
        if not with_range:
            return self._units_aligned(texts)
        ends = self.ranges()
        return [f"{text} ({end})" if end else text for text, end in zip(texts, ends, strict=True)]

    def _value(self, at: int) -> str:
        cell, scale = self.bare[at], self.scales[at]
        if cell is None:
            return "" if self.units[at] == "text" else "-"
        if isinstance(cell, bool):
            return "yes" if cell else "no"
        if isinstance(cell, str):
            return visible(cell)
        value = self.numbers[at]
        name = self._unit_name(at) if abs(value) < inf else ""
        return f"{scale.figure(value)} {name}".strip()

    def _unit_name(self, at: int) -> str:
        """In the cell: a unit that goes with the size, or that of a quantity."""
        unit = self.units[at]
        own = isinstance(self.cells[at], Quantity) and unit not in (*SCALED, "count", "text")
        return LONG.get(unit, unit) if own else self.scales[at].name

    def _units_aligned(self, texts: list[str]) -> list[str]:
        """Quantities have their numbers on the right and their units behind, on the left."""
        if not any(isinstance(cell, Quantity) for cell in self.cells):
            return texts
        split = [text.partition(" ") if text[:1].isdigit() else (text, "", "") for text in texts]
        width = max(len(unit) for _, _, unit in split)
        return [f"{amount} {unit:<{width}}" for amount, _, unit in split]

    def ranges(self) -> list[str]:
        return [self._range(at) for at in range(len(self.cells))]

    def _range(self, at: int) -> str:
        cell, scale = self.bare[at], self.scales[at]
        if not isinstance(cell, Range) or not cell.low < cell.high:
            return ""
        if self.units[at] not in SCALED:
            base = per(self.units[at])
            return show_range(cell.low / base, cell.high / base, "")
        low, high = cell.low / scale.size, cell.high / scale.size
        if max(abs(low), abs(high)) < 10000.0 and (low == 0.0 or abs(low) >= 0.01):
            return show_range(low, high, "")
        return show_range(cell.low, cell.high, self.units[at])

    def bars(self) -> list[str]:
        most = max((x for x in self.numbers if 0.0 < x < inf), default=1.0)
        return ["#" * max(round(BAR * x / most), 1) if 0.0 < x < inf else "" for x in self.numbers]


def _number(cell: Any) -> float:
    """NaN for what is none."""
    if isinstance(cell, Range):
        return cell.value
    return nan if isinstance(cell, (str, bool, type(None))) else float(cell)


def printed(table: Table, detail: bool = False) -> list[Part]:
    """The columns that a person sees; all of them, with their ranges, in detail."""
    found = []
    for at, column in enumerate(table.columns):
        if detail or column.screen != "no":
            screen = "range" if column.screen == "no" else column.screen
            found += parts_of(column, [row[at] for row in table.rows], screen)
    return [found[0]._replace(wraps=False), *found[1:]]
