"""Horizontal bars: stacked, on a log axis, or hanging pieces of a waterfall."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ckptcost.first.present.chart import Bar, Bars
from ckptcost.first.tui.draw.canvas import Canvas, Line, Look, shortened
from ckptcost.first.tui.draw.scale import Scale

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
        canvas.put((height - 1) // 2, max(width - len(bars.empty), 0) // 2, bars.empty, "muted")
        return canvas.lines()
    top = 1 if bars.title and height > 2 else 0
    if top:
        canvas.put(0, 0, shortened(bars.title, width, look.plain), "title")
    shown = bars.rows[: height - top]
    if 1 < len(shown) < len(bars.rows):
        shown = shown[:-1]
        canvas.put(top + len(shown), 0, f" {len(bars.rows) - len(shown)} more", "muted")
    begin, end = _put_words(canvas, bars, shown, top, look)
    _put_bars(canvas, bars, shown, top, begin, end, look)
    room = max(height - top - len(bars.rows), 0)
    for row, line in enumerate(_below(bars)[:room], start=top + len(bars.rows)):
        if line is _LEGEND:
            _legend(canvas, row, bars.names, look)
        else:
            canvas.put(row, 0, shortened(line, width, look.plain), "muted")
    return canvas.lines()


_LEGEND = "\0"


def _below(bars: Bars) -> list[str]:
    """The most wanted line first."""
    return [line for line in (_LEGEND if len(bars.names) > 1 else "", bars.note) if line]


def rows_needed(bars: Bars) -> int:
    """Lines that show all of it."""
    return bool(bars.title) + (len(bars.rows) + len(_below(bars)) if bars.rows else 1)


def _put_words(
    canvas: Canvas, bars: Bars, shown: Sequence[Bar], top: int, look: Look
) -> tuple[int, int]:
    """Labels and amounts; between which columns there is room for the bars."""
    indent = int(_has_best(bars))
    labels = min(max(len(bar.label) for bar in bars.rows), canvas.width // 3)
    texts = max(len(bar.text) for bar in bars.rows)
    for row, bar in enumerate(shown, start=top):
        ink = bar.tone if bar.tone in ("best", "muted", "bad", "warn") else ""
        if bar.tone == "best":
            canvas.put(row, 0, ">" if look.plain else "\u25b8", "best")
        canvas.put(row, indent, shortened(bar.label, labels, look.plain), ink)
        canvas.put(row, canvas.width - len(bar.text), bar.text, ink)
    return indent + labels + 1, canvas.width - texts - 1


def _has_best(bars: Bars) -> bool:
    return any(bar.tone == "best" for bar in bars.rows)


def _put_bars(
    canvas: Canvas, bars: Bars, shown: Sequence[Bar], top: int, begin: int, end: int, look: Look
) -> None:
    scale = axis_of(bars.rows, bars.log)
    if end - begin < _LEAST_BAR or scale is None:
        return
    zero = "|" if look.plain else "\u2502"
    # beside the best one's colour
    series = "other" if _has_best(bars) and not bars.names else "series"
    for row, bar in enumerate(shown, start=top):
        if scale.low < 0 < scale.high:  # a part that reaches over it hides it
            at = min(math.floor(_place(scale, 0.0, end - begin) + 0.5), end - begin - 1)
            canvas.put(row, begin + at, zero, "axis")
        for at, text, ink in _pieces(bar, scale, end - begin, look, series):
            canvas.put(row, begin + at, text, ink)


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


def _pieces(
    bar: Bar, scale: Scale, room: int, look: Look, series: str
) -> Iterator[tuple[int, str, str]]:
    """Where each part of a bar stands: column, characters, ink. Ends are rounded on the common
    axis, so that the length of the whole is right and neighbours touch."""
    parts = [
        (index, part)
        for index, part in enumerate(bar.parts)
        if math.isfinite(part.begin) and math.isfinite(part.end)
    ]
    own = bar.tone if len(bar.parts) == 1 else ""
    for index, part in parts:
        begin, end = sorted((_place(scale, part.begin, room), _place(scale, part.end, room)))
        fill, first = _fill(index, look), math.floor(begin + 0.5)
        least = int(part.begin != part.end)  # something is not nothing
        if fill == FILLS[0] and part is parts[-1][1]:
            text = _with_eighths(max(math.floor((end - first) * 8 + 0.5), least))
        else:
            whole = math.floor(end + 0.5) - first
            text = fill * (max(whole, least) if len(parts) == 1 else whole)
        yield min(first, room - 1), text, part.tone or own or f"{series}-{index % 8 + 1}"


def _place(scale: Scale, value: float, room: int) -> float:
    return max(min(scale.at(value), 1.0), 0.0) * room


def _with_eighths(eighths: int) -> str:
    whole, rest = divmod(eighths, 8)
    return FILLS[0] * whole + (_EIGHTHS[rest - 1] if rest else "")
