"""Horizontal bars: stacked, on a log axis, or hanging pieces of a waterfall."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ckptcost.present.chart import Bar, Bars
from ckptcost.tui.draw.canvas import Canvas, Line, Look, shortened
from ckptcost.tui.draw.scale import Scale

FILLS, PLAIN_FILLS = "\u2588\u2593\u2592\u2591", "#=+."
"""by part, so that parts differ without colours"""
_EIGHTHS = "\u258f\u258e\u258d\u258c\u258b\u258a\u2589"
_LEAST_BAR = 8
"""columns; below that the words alone are shown"""


def draw_bars(bars: Bars, width: int, height: int, look: Look) -> list[Line]:
    """Bars on `width` by `height` cells, with title, legend and note where there is room."""
    if width < 1 or height < 1:
        return []
    canvas = Canvas(width, height)
    if not bars.rows:
        canvas.put(
            max(height - 1, 0) // 2, max(width - len(bars.empty), 0) // 2, bars.empty, "muted"
        )
        return canvas.lines()
    top = 1 if bars.title and height > 2 else 0
    if top:
        canvas.put(0, 0, shortened(bars.title, width, look.plain), "title")
    below = [line for line in (_LEGEND if len(bars.names) > 1 else "", bars.note) if line]
    while below and top + len(below) + len(bars.rows) > height:
        below.pop()
    shown = list(bars.rows[: height - top - len(below)])
    if len(shown) < len(bars.rows) and len(shown) > 1:
        shown.pop()
        canvas.put(top + len(shown), 0, f" {len(bars.rows) - len(shown)} more", "muted")
    _rows(canvas, bars, shown, top, look)
    row = top + len(shown) + (len(shown) < len(bars.rows))
    for line in below:
        if line is _LEGEND:
            _legend(canvas, row, bars.names, look)
        else:
            canvas.put(row, 0, shortened(line, width, look.plain), "muted")
        row += 1
    return canvas.lines()


_LEGEND = "\0"


def rows_needed(bars: Bars) -> int:
    """Lines that show all of it."""
    return (
        max(len(bars.rows), 1)
        + bool(bars.title)
        + bool(bars.rows) * ((len(bars.names) > 1) + bool(bars.note))
    )


def _rows(canvas: Canvas, bars: Bars, shown: Sequence[Bar], top: int, look: Look) -> None:
    marked = any(bar.tone == "best" for bar in bars.rows)
    indent = 1 if marked else 0
    labels = min(max(len(bar.label) for bar in bars.rows), canvas.width // 3)
    texts = max(len(bar.text) for bar in bars.rows)
    begin = indent + labels + 1
    room = canvas.width - begin - texts - 1
    scale = axis_of(bars.rows, bars.log)
    series = "other" if marked and not bars.names else "series"  # beside the best one's colour
    for row, bar in enumerate(shown, start=top):
        ink = bar.tone if bar.tone in ("best", "muted", "bad", "warn") else ""
        if bar.tone == "best":
            canvas.put(row, 0, ">" if look.plain else "\u25b8", "best")
        canvas.put(row, indent, shortened(bar.label, labels, look.plain), ink)
        if room >= _LEAST_BAR and scale is not None:
            for at, text, part_ink in pieces(bar, scale, room, look, series):
                canvas.put(row, begin + at, text, part_ink)
        canvas.put(row, canvas.width - len(bar.text), bar.text, ink)


def _legend(canvas: Canvas, row: int, names: Sequence[str], look: Look) -> None:
    column = 0
    for index, name in enumerate(names):
        if column + len(name) + 2 > canvas.width:
            break
        canvas.put(row, column, _fill(index, look), f"series-{index % 8 + 1}")
        canvas.put(row, column + 2, name, "muted")
        column += len(name) + 4


def _fill(index: int, look: Look) -> str:
    fills = PLAIN_FILLS if look.plain else FILLS
    return fills[index % len(fills)]


def axis_of(rows: Sequence[Bar], log: bool = False) -> Scale | None:
    """The axis that all bars share; from zero, or on a log axis from the decade below the least
    bar."""
    values = [
        value
        for bar in rows
        for part in bar.parts
        for value in (part.begin, part.end)
        if math.isfinite(value)
    ]
    if log:
        ends = [
            sum_end
            for bar in rows
            if (sum_end := max((p.end for p in bar.parts if math.isfinite(p.end)), default=0.0)) > 0
        ]
        if not ends:
            return None
        low = 10.0 ** math.floor(math.log10(min(ends)) - 0.3)
        return Scale(low, max(*ends, low * 1.01), log=True)
    low, high = min(0.0, *values, 0.0), max(0.0, *values, 0.0)
    # ends so far apart that their distance is no number have no axis
    return Scale(low, high) if 0 < high - low < math.inf else None


def pieces(
    bar: Bar, scale: Scale, room: int, look: Look, series: str = "series"
) -> list[tuple[int, str, str]]:
    """Where each part of a bar stands: column, characters, ink. Ends are rounded on the common
    axis, so that the length of the whole is right and neighbours touch."""
    found: list[tuple[int, str, str]] = []
    parts = [part for part in bar.parts if math.isfinite(part.begin) and math.isfinite(part.end)]
    for index, part in enumerate(bar.parts):
        if part not in parts:
            continue
        ink = part.tone or (bar.tone if len(bar.parts) == 1 else "") or f"{series}-{index % 8 + 1}"
        begin, end = sorted((_place(scale, part.begin, room), _place(scale, part.end, room)))
        fill = _fill(index, look)
        if fill == FILLS[0] and part is parts[-1]:
            text_begin = math.floor(begin + 0.5)
            text = _with_eighths(text_begin, end)
            if not text and part.end != part.begin:
                text = _EIGHTHS[0]  # something is not nothing
            found.append((min(text_begin, room - 1), text, ink))
            continue
        first, last = math.floor(begin + 0.5), math.floor(end + 0.5)
        if last == first and len(parts) == 1 and part.end != part.begin:
            first, last = min(first, room - 1), min(first, room - 1) + 1
        found.append((first, fill * (last - first), ink))
    if scale.low < 0 < scale.high:
        zero = min(math.floor(_place(scale, 0.0, room) + 0.5), room - 1)
        if not any(at <= zero < at + len(text) for at, text, _ in found):
            found.append((zero, "|" if look.plain else "\u2502", "axis"))
    return [each for each in found if each[1]]


def _place(scale: Scale, value: float, room: int) -> float:
    return max(min(scale.at(value), 1.0), 0.0) * room


def _with_eighths(begin: int, end: float) -> str:
    eighths = max(math.floor((end - begin) * 8 + 0.5), 0)
    whole, rest = divmod(eighths, 8)
    return FILLS[0] * whole + (_EIGHTHS[rest - 1] if rest else "")
