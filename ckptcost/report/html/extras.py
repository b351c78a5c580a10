"""What the caller knows beyond a statement, as plain data ready to be drawn. Everything may be left
out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

_NONE: Mapping[str, float | None] = MappingProxyType({})


class Line(NamedTuple):
    """One quantity along an axis; None is a gap."""

    name: str
    values: Sequence[float | None]
    unit: str = ""
    """lines of one unit share an axis"""
    lows: Sequence[float | None] = ()
    highs: Sequence[float | None] = ()
    """between which each value lies; or both empty"""


class Curve(NamedTuple):
    """What it costs at each interval."""

    x_s: Sequence[float]
    """rising"""
    lines: Sequence[Line]
    now_s: float | None = None
    best_s: Mapping[str, float | None] = _NONE
    """best intervals, by what they are best for"""
    note: str = ""


class Band(NamedTuple):
    """A checkpoint in time, on the clock of the power."""

    name: str
    begin_s: float
    stall_end_s: float | None
    durable_s: float | None


class Power(NamedTuple):
    """Watts over time."""

    t_s: Sequence[float]
    lines: Sequence[Line]
    stacked: bool = False
    bands: Sequence[Band] = ()
    note: str = ""


class TextTable(NamedTuple):
    """A table whose cells are in words already."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1
    """how many of the first columns are text"""
    note: str = ""
    claimed: Sequence[str] | None = None
    """a last column of what vendors say, one cell a row; never an input"""


class Tile(NamedTuple):
    """A figure in large."""

    name: str
    value: float
    unit: str
    note: str = ""


class Steps(NamedTuple):
    """What a figure is made of: None is not known."""

    name: str
    unit: str
    parts: Sequence[tuple[str, float | None]]
    total: float | None


class Sci(NamedTuple):
    """A line of the Software Carbon Intensity section."""

    label: str
    value: float | str | None
    unit: str = ""
    note: str = ""


class Extras(NamedTuple):
    title: str = ""
    lead: str = ""
    """where it is said, the page is of the words and tables here, and statements are embedded only:
    they are parts of one whole, no alternatives to be held against each other"""
    banner: str = ""
    """said in red where there is no statement that says so itself"""
    answer: Sequence[str] = ()
    """a few sentences that stand before everything else"""
    tiles: Sequence[Tile] = ()
    """figures in large where there is no statement that has them itself"""
    steps: Sequence[Steps] = ()
    """pictures of what figures are made of, where there is no statement that has them itself"""
    findings: Sequence[str] = ()
    curve: Curve | None = None
    tiers: TextTable | None = None
    power: Power | None = None
    tables: Sequence[TextTable] = ()
    sci: Sequence[Sci] = ()
    each: Mapping[str, Extras] = MappingProxyType({})
    """where there are several statements: what belongs to one of them, by run_id"""
