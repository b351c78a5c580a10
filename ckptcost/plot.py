"""A Plot as an SVG: axes with ticks in people's units, lines and named points; its legend apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from itertools import chain
from typing import NamedTuple

from ckptcost.answer import Line, Plot
from ckptcost.scenario.units import number, per, show

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 74, 36, 34, 50
"""room for the ticks; at the right for half of "100,000" in the letters of a telephone"""
TIMES = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 18000, 43200, 86400, 172800, 604800)
"""seconds at which people expect a tick"""
DASHES = ("", "7 4", "2 3", "9 3 2 3", "1 2", "12 4")


class Axis(NamedTuple):
    label: str
    unit: str
    low: float
    high: float
    log: bool
    ticks: list[float]

    def share(self, value: float) -> float:
        """How far along the axis."""
        low, high, at = (math.log(x) if self.log else x for x in (self.low, self.high, value))
        return (at - low) / (high - low or 1.0)

    def say(self, value: float) -> str:
        return show(value, self.unit, 2) if self.unit else number(value, 3)


def axis_of(label: str, values: Sequence[float], log: bool, from_zero: bool = False) -> Axis:
    """An axis that holds all values, with four to seven ticks."""
    words, _, unit = label.partition(" [")
    unit = unit.rstrip("]")
    low, high = min(values), max(values)
    if log:
        ticks = _log_ticks(low, high, unit)
        return Axis(words, unit, low, high if high > low else low * 10.0, True, ticks)
    room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    low = 0.0 if from_zero and 0 <= low < 0.6 * high else low - room
    size = per(unit) * (0.01 if unit == "share" else 1.0)
    step = _round((high + room - low) / 5.0 / size) * size
    first = math.ceil(low / step)
    ticks = [step * n for n in range(first, math.floor((high + room) / step) + 1)]
    return Axis(words, unit, low, high + room, False, ticks)


def _round(step: float) -> float:
    """The next of 1, 2, 5, 10 ..."""
    power = 10.0 ** math.floor(math.log10(step))
    return power * next(m for m in (1.0, 2.0, 2.5, 5.0, 10.0) if step <= m * power * 1.0001)


def _log_ticks(low: float, high: float, unit: str) -> list[float]:
    """Powers of ten, with 2 and 5 between them if there are few; times that people say."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    many, few = ([10.0**n * m for n in decades for m in ms] for ms in ((1, 2, 5), (1,)))
    if unit == "s" and low >= 0.5:
        many, few = [*map(float, TIMES)], [*map(float, TIMES[2::2])]
    found = [[x for x in ticks if low * 0.999 <= x <= high * 1.001] for ticks in (many, few)]
    return found[0] if len(found[0]) <= 8 else found[1]


def svg(plot: Plot) -> str:
    """The drawing; "" if there is nothing to draw."""
    plot = drawable(plot)
    points = [[*zip(line.x, line.y, strict=True)] for line in plot.lines]
    everything = [*chain(*points), *((x, y) for _, x, y in plot.marks)]
    if len(everything) < 2:
        return ""
    across = axis_of(plot.x, [x for x, _ in everything], plot.log_x)
    up = axis_of(plot.y, [y for _, y in everything], log=False, from_zero=True)

    def place(x: float, y: float) -> tuple[float, float]:
        wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        return LEFT + wide * across.share(x), HEIGHT - BOTTOM - high * up.share(y)

    body = [
        *_grid(across, up, place),
        *(_curve(i, [place(*p) for p in line]) for i, line in enumerate(points)),
        *_marks(plot.marks, place),
    ]
    name = escape(f"{plot.title}: {up.label} by {across.label}")
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'<svg class="drawing" {size} role="img" aria-label="{name}">{"".join(body)}</svg>'


def drawable(plot: Plot) -> Plot:
    """Without points that have no place."""

    def has_place(x: float, y: float) -> bool:
        return math.isfinite(x) and math.isfinite(y) and (x > 0 or not plot.log_x)

    lines = []
    for line in plot.lines:
        points = [point for point in zip(line.x, line.y, strict=True) if has_place(*point)]
        lines.append(Line(line.name, [x for x, _ in points], [y for _, y in points]))
    marks = tuple(mark for mark in plot.marks if has_place(*mark[1:]))
    return replace(plot, lines=lines, marks=marks)


Place = Callable[[float, float], tuple[float, float]]


def _grid(across: Axis, up: Axis, place: Place) -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    found = []
    for tick in across.ticks:
        x, _ = place(tick, up.low)
        found.append(_line("grid", x, TOP, x, bottom))
        found.append(_word(x, bottom + 19, across.say(tick), "middle"))
    for tick in up.ticks:
        _, y = place(across.low, tick)
        found.append(_line("grid", LEFT, y, right, y))
        found.append(_word(LEFT - 7, y + 4, up.say(tick), "end"))
    return [
        *found,
        _line("axis", LEFT, bottom, right, bottom),
        _line("axis", LEFT, TOP, LEFT, bottom),
        _word((LEFT + right) / 2, HEIGHT - 10, across.label, "middle", "label"),
        _word(8, 15, up.label, "start", "label"),
    ]


def _curve(at: int, points: Sequence[tuple[float, float]]) -> str:
    said = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = f' stroke-dasharray="{DASHES[at % len(DASHES)]}"' if at else ""
    return f'<polyline class="l{at % len(DASHES)}" points="{said}"{dashes}/>'


def _marks(marks: Sequence[tuple[str, float, float]], place: Place) -> list[str]:
    """Points with their names, one above the other if they are close."""
    found, last, lift = [], -math.inf, 0
    for name, x, y in sorted(marks, key=lambda mark: mark[1]):
        across, down = place(x, y)
        lift, last = lift + 14 if across - last < 60 else 11, across
        anchor = "end" if across > WIDTH - 70 else "middle"
        found.append(f'<circle cx="{across:.1f}" cy="{down:.1f}" r="5"/>')
        found.append(_word(across, down - lift, name, anchor, "mark"))
    return found


def legend(plot: Plot) -> list[tuple[str, str]]:
    """A sample of each line and its name; one line needs none."""
    if len(plot.lines) < 2:
        return []
    return [
        (f'<svg class="key" viewBox="0 0 30 8">{_curve(at, [(0, 4), (30, 4)])}</svg>', line.name)
        for at, line in enumerate(plot.lines)
    ]


def _line(kind: str, *ends: float) -> str:
    sides = zip(("x1", "y1", "x2", "y2"), ends, strict=True)
    return f'<line class="{kind}" ' + " ".join(f'{side}="{end:.1f}"' for side, end in sides) + "/>"


def _word(x: float, y: float, words: str, anchor: str, kind: str = "tick") -> str:
    at = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {at}>{escape(words)}</text>'
