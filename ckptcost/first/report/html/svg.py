"""Scales, ticks, legends and the frame of a picture. Two drawings a figure, one for a page and one
for a telephone; CSS shows one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import NamedTuple

from ckptcost.first.present.amounts import number
from ckptcost.first.report.html.markup import Child, Markup, el, join, px

WIDE, NARROW = 920.0, 358.0
_LETTER = 6.8
"""mean width of a letter at 12 px, of a wide typeface"""


Numbers = Sequence[float | None]
"""None is a gap"""


class PlotLine(NamedTuple):
    """One quantity along an axis."""

    name: str
    values: Numbers
    unit: str = ""
    """lines of one unit share an axis"""
    lows: Numbers = ()
    highs: Numbers = ()
    """between which each value lies; or both empty"""


def finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def known_of(values: Numbers) -> list[float]:
    return [v for v in map(finite, values) if v is not None]


def span_words(values: Sequence[float]) -> str:
    return f"{number(min(values))} to {number(max(values))}"


def plot_area(width: float, tall: float) -> tuple[bool, float, float, float]:
    """Where a picture's axes lie: whether it is wide, else for a telephone; left, right, and how
    tall."""
    if width == WIDE:
        return True, 62.0, width - 12.0, tall
    return False, 46.0, width - 5.0, tall * 0.75


class PlotScale(NamedTuple):
    """From a value to a coordinate."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(max(value, 1e-300))
        return self.begin + (self.end - self.begin) * (
            (value - low) / (high - low) if high > low else 0.5
        )


def multiples(low: float, high: float, size: float) -> list[float]:
    """Whole multiples of a size between two values."""
    first, last = math.ceil(low / size - 1e-9), math.floor(high / size + 1e-9)
    return [n * size for n in range(first, last + 1)]


def steps(low: float, high: float, about: int = 5) -> list[float]:
    """Round values from low to high.

    >>> steps(0, 264000, 5)
    [0.0, 50000.0, 100000.0, 150000.0, 200000.0, 250000.0]
    """
    if not high > low:
        return [low]
    size = 10.0 ** math.floor(math.log10((high - low) / about))
    by = next(by for by in (1.0, 2.0, 5.0, 10.0) if (high - low) / (size * by) <= about * 1.3)
    return multiples(low, high, size * by)


def decades(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each power of ten, or fewer where that is too many.

    >>> decades(80, 3000)
    [100.0, 200.0, 500.0, 1000.0, 2000.0]
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    by = (1.0, 2.0, 5.0) if last - first <= 3 else (1.0,)
    every = max(1, (last - first) // 6)
    return [
        m * 10.0**p
        for p in range(first, last + 1, every)
        for m in by
        if low * 0.999 <= m * 10.0**p <= high * 1.001
    ]


_TIMES = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(60.0 * m for m in (1, 2, 5, 10, 15, 30)),
    *(3600.0 * h for h in (1, 2, 3, 6, 12)),
    *(86400.0 * d for d in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)),
)


def mark_of(seconds: float) -> str:
    """An axis's duration, short.

    >>> mark_of(30), mark_of(600), mark_of(5400), mark_of(172800)
    ('30 s', '10 min', '1.5 h', '2 d')
    """
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if abs(seconds) >= size:
            return f"{number(seconds / size)} {unit}"
    return f"{number(seconds)} s"


def _time_step(span: float, about: int, least: float = 0.0) -> float:
    """A time that people count in, of which a span holds no more than about so many."""
    days = math.ceil(span / about / 86400.0) * 86400.0
    return next((each for each in _TIMES if each >= least and span / each <= about), days)


def times(low: float, high: float, about: int = 6, log: bool = False) -> list[float]:
    """Durations that people count in."""
    if log:
        return [each for each in _TIMES if low <= each <= high] or [low, high]
    if high - low < about:  # below a second each
        return steps(low, high, about)
    return multiples(low, high, _time_step(high - low, about))


def clock(low: float, high: float, about: int = 6) -> list[tuple[float, str]]:
    """Instants of UTC between two, with their words: times of a day, else days, else years."""
    size = _time_step(high - low, about, 60.0)
    long, days, form = high - low > 300 * 86400.0, size >= 86400.0, "%b %d %H:%M"
    if long or days:
        form = "%Y-%m-%d" if long else "%b %d"
    elif high - low <= 86400.0:
        form = "%H:%M"
    marks = multiples(low, high, size) or [low]
    return [(at, datetime.fromtimestamp(at, UTC).strftime(form)) for at in marks]


def clip_words(words: str, room_px: float) -> str:
    """Words that fit, with dots where they were longer."""
    fit = max(int(room_px / _LETTER), 2)
    return words if len(words) <= fit else words[: fit - 1].rstrip() + "…"


def svg_text(x: float, y: float, words: str, class_: str = "") -> Markup:
    return el("text", words, x=x, y=y, class_=class_ or None)


def svg_text_on_plate(x: float, y: float, words: str, class_: str = "") -> list[Markup]:
    """Words on a plate of the page's colour, so that lines pass behind them."""
    return [box(x - 2, y - 10, words_px(words) + 4, 13, "under"), svg_text(x, y, words, class_)]


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return el("path", d=f"M{px(x1)} {px(y1)}L{px(x2)} {px(y2)}", class_=class_)


def box(x: float, y: float, width: float, height: float, class_: str) -> Markup:
    return el(
        "rect",
        x=px(x),
        y=px(y),
        width=f"{max(width, 0.0):.2f}",
        height=px(max(height, 0.0)),
        class_=class_,
    )


def path(points: Sequence[tuple[float, float] | None]) -> str:
    """A path through points, interrupted where one is None. A point alone gets a short stroke."""
    out = ""
    for known, stretch in groupby(points, lambda point: point is not None):
        if known:
            told = [f"{px(x)} {px(y)}" for x, y in filter(None, stretch)]
            out += "M" + "L".join(told) + "h2" * (len(told) == 1)
    return out


def path_of(at: Sequence[float], values: Numbers, x: PlotScale, y: PlotScale) -> str:
    known = [finite(v) for v in values]
    return path(
        [
            None if v is None or (y.log and v <= 0) else (x.at(t), y.at(v))
            for t, v in zip(at, known, strict=False)
        ]
    )


def legend(
    width: float, x: float, y: float, entries: Sequence[tuple[str, str]]
) -> tuple[list[Markup], float]:
    """Swatches with names in as many lines as they need, and how high that is. An entry: name,
    class (a line's begins with `line`)."""
    found: list[Markup] = []
    at, row_y = x, y
    for name, class_ in entries:
        words = clip_words(name, width - x - 40)
        wide = len(words) * _LETTER + 44
        if at > x and at + wide > width:
            at, row_y = x, row_y + 18
        stroke = class_.split(" ")[0] in ("line", "now", "best", "whisker")
        found.append(
            line(at, row_y - 4, at + 22, row_y - 4, class_)
            if stroke
            else box(at + 2, row_y - 10, 18, 11, class_)
        )
        found.append(svg_text(at + 28, row_y, words, "dim"))
        at += wide
    return found, (row_y - y + 22) if entries else 0.0


def rows_of(spans: Sequence[tuple[float, float]]) -> list[int]:
    """A row for each stretch, so that none lies on another in its row; given by rising begin.

    >>> rows_of([(0, 10), (5, 15), (11, 20)])
    [0, 1, 0]
    """
    ends: list[float] = []
    found = []
    for begin, end in spans:
        place = next((i for i, taken in enumerate(ends) if taken <= begin), len(ends))
        ends[place : place + 1] = [end]
        found.append(place)
    return found


def axis(x: PlotScale, marks: Sequence[tuple[float, str]], y: float, width: float) -> list[Markup]:
    """A line with words along it, but for those that would touch the one before or the page's
    end."""
    out = [line(x.begin, y, x.end, y, "axis")]
    free = -math.inf
    for at, words in marks:
        middle, half = x.at(at), words_px(words) / 2
        if middle - half >= free and middle + half <= width:
            out += [
                line(middle, y, middle, y + 4, "axis"),
                svg_text(middle, y + 17, words, "dim mid"),
            ]
            free = middle + half + 14
    return out


def words_px(words: str) -> float:
    return len(words) * _LETTER


Drawn = tuple[float, Child]
"""height and what is in it"""


def figure(
    at: str, title: str, desc: str, draw: Callable[[float], Drawn], caption: Child = None
) -> Markup:
    """A figure, drawn once for each width, that says in words what it shows."""

    def picture(name: str, width: float) -> Markup:
        height, inside = draw(width)
        mine = f"{at}-{name}"
        return el(
            "svg",
            el("title", title, id=f"{mine}-t"),
            el("desc", desc, id=f"{mine}-d"),
            inside,
            class_=name,
            viewBox=f"0 0 {px(width)} {px(height)}",
            role="img",
            aria_labelledby=f"{mine}-t {mine}-d",
        )

    under = join([caption])
    drawings = [picture("wide", WIDE), picture("narrow", NARROW)]
    return el("figure", drawings, el("figcaption", under) if under else None)


def grid_y(scale: PlotScale, ticks: Sequence[float], x1: float, x2: float) -> list[Markup]:
    """Horizontal lines with their values to the left."""
    found = []
    for tick in ticks:
        y = scale.at(tick)
        found += [line(x1, y, x2, y, "g"), svg_text(x1 - 6, y + 4, number(tick), "dim end")]
    return found
