"""A chart with its axes, as lines of pieces."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from ckptcost.first.present.chart import Chart
from ckptcost.first.tui.draw.area import Frame, draw_area, inks_of
from ckptcost.first.tui.draw.axes import bottom_axis, kind_of, left_axis
from ckptcost.first.tui.draw.canvas import Canvas, Line, Look, shortened
from ckptcost.first.tui.draw.points import Points, drawable, ends_of, points_of
from ckptcost.first.tui.draw.scale import x_scale, y_scale
from ckptcost.first.tui.draw.ticks import y_ticks

LEAST_ROWS = 4
"""below that a curve cannot be read: words only"""
_ONE_LINE_AXIS = 6
"""up to that many rows the axis and its words share a line"""


class Picture(NamedTuple):
    lines: list[Line]
    frame: Frame | None = None
    """None where words stand instead of a picture, and of more than one chart"""


def draw_chart(chart: Chart, width: int, height: int, look: Look) -> Picture:
    """A chart on `width` by `height` cells."""
    if width < 1 or height < 1:
        return Picture([])
    canvas = Canvas(width, height)
    top = _heading(canvas, chart, height, look)
    points = points_of(chart.curves)
    x = x_scale(chart, points)
    y = y_scale(chart, points, x) if x is not None else None
    if x is None or y is None:
        _centred(canvas, chart.empty, top, height)
        return Picture(canvas.lines())
    if height - top < LEAST_ROWS:
        _in_words(canvas, chart, points, top, look)
        return Picture(canvas.lines())
    axis = 1 if height - top <= _ONE_LINE_AXIS else 2
    rows = height - top - axis
    y_marks = y_ticks(y, rows, chart.y_text, kind_of(chart.y_text))
    left = min(max((len(tick.text) for tick in y_marks), default=0) + 1, max(width // 2, 1))
    gutter = gutter_of(chart, width - left, look)
    frame = Frame(left, top, max(width - left - gutter, 2), rows, x, y, gutter)
    if width - left - gutter < 2:
        _in_words(canvas, chart, points, top, look)
        return Picture(canvas.lines())
    left_axis(canvas, frame, y_marks, look)
    draw_area(canvas, chart, points, frame, look)
    bottom_axis(canvas, frame, top + rows, axis, chart.x_text, chart.x_kind, chart.x_label, look)
    return Picture(canvas.lines(), frame)


def _heading(canvas: Canvas, chart: Chart, height: int, look: Look) -> int:
    """Title, the left axis's label and the note, where there is a row for them; the row that
    follows."""
    if height <= LEAST_ROWS or not (chart.title or (height >= 8 and (chart.y_label or chart.note))):
        return 0
    column = 0
    for text, ink in ((chart.title, "title"), (chart.y_label, "muted")):
        if text:
            canvas.put(0, column, shortened(text, canvas.width - column, look.plain), ink)
            column += len(text) + 2
    if chart.note and column + len(chart.note) <= canvas.width:
        canvas.put(0, canvas.width - len(chart.note), chart.note, "muted")
    return 1


def _centred(canvas: Canvas, text: str, top: int, height: int) -> None:
    lines = wrapped(text, max(canvas.width - 2, 1))[: max(height - top, 0)]
    row = top + max(height - top - len(lines), 0) // 2
    for line in lines:
        canvas.put(row, max(canvas.width - len(line), 0) // 2, line, "muted")
        row += 1


def wrapped(text: str, width: int) -> list[str]:
    """Words in lines; a word that is too long is broken."""
    return (
        [line for part in text.split("\n") for line in textwrap.wrap(part, max(width, 1)) or [""]]
        if text
        else []
    )


def now_and_peak(chart: Chart, points: Sequence[Points]) -> list[tuple[str, str, str]]:
    """Each curve in words, the best one first: its name, what is said of it, its ink. Dots with
    both values. "Now" is where the line of that name stands, else the last value."""
    at = next((rule.at for rule in chart.rules if rule.kind == "now"), math.inf)
    said: list[tuple[bool, str, str, str]] = []
    for curve, each, ink in zip(chart.curves, points, inks_of(chart.curves), strict=True):
        fine = each.ys[drawable(each.ys) & (each.xs <= at)]
        highest = ends_of([each.highs])
        if len(fine) and highest:
            name = curve.label or (chart.title if len(chart.curves) == 1 else "")
            words = f"now {chart.y_text(float(fine[-1]))}, peak {chart.y_text(highest[1])}"
            said.append((curve.tone != "best", name, words, ink))
    for dot, ink in zip(chart.dots, inks_of(chart.dots), strict=True):
        words = f"{chart.x_text(dot.x)}, {chart.y_text(dot.y)}"
        said.append((dot.tone != "best", dot.label, words, ink))
    return [(name, words, ink) for _, name, words, ink in sorted(said, key=lambda each: each[0])]


def _in_words(canvas: Canvas, chart: Chart, points: Sequence[Points], top: int, look: Look) -> None:
    for row, (label, words, ink) in enumerate(now_and_peak(chart, points), start=top):
        text = f"{label}: " if label else ""
        canvas.put(row, 0, text, ink)
        canvas.put(row, len(text), shortened(words, canvas.width - len(text), look.plain))


def gutter_of(chart: Chart, width: int, look: Look) -> int:
    """Columns for the names at the curves' ends."""
    if width < 24:
        return 0
    mark = 2 if look.plain and len(chart.curves) > 1 else 0
    longest = max((len(curve.label) + mark for curve in chart.curves if curve.label), default=0)
    return min(longest + 1, max(width // 4, 8)) if longest else 0
