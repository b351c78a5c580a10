"""Pictures as data: curves, stacked traces over one time, bars. Numbers and the functions that put
them into words; no drawing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from ckptcost.first.present.amounts import duration, number
from ckptcost.first.present.grid import Tone

Text = Callable[[float], str]
"""an axis's value in words"""


class Curve(NamedTuple):
    label: str
    xs: Sequence[float]
    """rising"""
    ys: Sequence[float]
    """beside them; NaN is a gap, which is not drawn over"""
    tone: Tone = ""
    lows: Sequence[float] = ()
    """between which each point lies: of a curve that was thinned, the least and the most around it;
    or both empty"""
    highs: Sequence[float] = ()


class Band(NamedTuple):
    """A stretch of x that is shaded: a checkpoint, a plateau."""

    begin: float
    end: float
    label: str = ""
    kind: Literal["save", "load", "drain", "plateau"] = "save"


class Level(NamedTuple):
    """A horizontal line across areas that are filled: the idle power."""

    at: float
    label: str


class Rule(NamedTuple):
    """A vertical line."""

    at: float
    label: str
    kind: Literal["best", "now", "mark"] = "mark"


class Dot(NamedTuple):
    """A point with a name, such as a tier in time and money."""

    x: float
    y: float
    label: str
    tone: Tone = ""


class Chart(NamedTuple):
    """Curves and dots over two axes. A range that is None comes from the data."""

    title: str = ""
    curves: Sequence[Curve] = ()
    dots: Sequence[Dot] = ()
    bands: Sequence[Band] = ()
    rules: Sequence[Rule] = ()
    x_label: str = ""
    y_label: str = ""
    x_text: Text = duration
    y_text: Text = number
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    """(0, NaN): from zero to what the data needs"""
    x_log: bool = False
    y_log: bool = False
    x_kind: Literal["number", "duration"] = "duration"
    """where the ticks of the axis fall: 60 s, 10 min, 1 h ... or 1, 2, 5"""
    note: str = ""
    empty: str = ""
    filled: Literal["", "stack", "each"] = ""
    """areas instead of lines. `stack`: one curve or two, each the sum of those before it and of its
    own; `each`: below one another, of one height"""
    level: Level | None = None
    main: bool = False
    """worth more of the height than the others"""


class Traces(NamedTuple):
    """Charts stacked over one time axis; each one's title is a line of its own, with what it shows
    now."""

    charts: Sequence[Chart]
    x_range: tuple[float, float]
    bands: Sequence[Band] = ()
    rules: Sequence[Rule] = ()
    x_text: Text = duration


class ChartPart(NamedTuple):
    """A piece of a bar. `begin` and `end` are on the axis of all bars, so that a waterfall's pieces
    hang where they belong."""

    name: str
    begin: float
    end: float
    tone: Tone = ""


class Bar(NamedTuple):
    label: str
    parts: Sequence[ChartPart]
    text: str
    """the amount, behind the bar"""
    key: str = ""
    tone: Tone = ""


class Bars(NamedTuple):
    """Horizontal bars. `names` are the parts of the legend, in order; empty where bars have one
    part."""

    rows: Sequence[Bar] = ()
    names: tuple[str, ...] = ()
    title: str = ""
    note: str = ""
    log: bool = False
    empty: str = ""


class Stat(NamedTuple):
    """One number with its label and a note below."""

    label: str
    value: str
    note: str = ""
    tone: Tone = ""


def hanging(steps: Iterable[tuple[str, float, str, Tone]], at: float = 0.0) -> list[Bar]:
    """A waterfall: each amount begins where the one before it ended. Label, amount, text, tone."""
    bars = []
    for label, amount, text, tone in steps:
        low, high = sorted((at, at + amount))
        bars.append(Bar(label, (ChartPart(label, low, high, tone),), text))
        at += amount
    return bars
