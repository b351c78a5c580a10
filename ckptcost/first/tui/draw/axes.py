"""The lines, ticks and words beside and below a picture."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from ckptcost.first.present.amounts import duration
from ckptcost.first.tui.draw.area import Frame
from ckptcost.first.tui.draw.canvas import Canvas, Look, shortened
from ckptcost.first.tui.draw.ticks import AxisTick, Kind, Text, x_ticks


def kind_of(text: Text) -> Kind:
    """Where the ticks of an axis fall that is worded so."""
    return "duration" if text is duration else "number"


def left_axis(canvas: Canvas, frame: Frame, marks: Sequence[AxisTick], look: Look) -> None:
    bar, tick = ("|", "+") if look.plain else ("\u2502", "\u2524")
    for row in range(frame.top, frame.top + frame.rows):
        canvas.put(row, frame.left - 1, bar, "axis")
    for mark in marks:
        text = shortened(mark.text, frame.left - 1, look.plain)
        canvas.put(frame.top + mark.at, frame.left - 1 - len(text), text, "axis")
        canvas.put(frame.top + mark.at, frame.left - 1, tick, "axis")


def bottom_axis(
    canvas: Canvas,
    frame: Frame,
    row: int,
    rows: int,
    text: Text,
    kind: Kind,
    label: str,
    look: Look,
) -> None:
    """The line with its ticks, and their words below or, where rows are few, within it."""
    end = frame.left + frame.columns + frame.gutter
    corner, line, tick = ("+", "-", "+") if look.plain else ("\u2514", "\u2500", "\u252c")
    room = (0, end) if rows == 2 else (frame.left, frame.left + frame.columns)
    ticks = partial(x_ticks, frame.x, frame.columns, text, kind, frame.left, room)
    marks = ticks()
    if rows == 2 and label:
        place = _free_place(marks, len(label), end)
        if place is None:  # fewer ticks make room for what they count
            fewer = ticks(gap=len(label) + 6)
            place = _free_place(fewer, len(label), end)
            marks = marks if place is None else fewer
        _put_label(canvas, label, row + 1, place, frame.top)
    canvas.put(row, frame.left - 1, corner + line * frame.columns, "axis")
    for mark in marks:
        canvas.put(row, mark.at, tick, "axis")
        canvas.put(row + rows - 1, mark.begin, mark.text, "axis")


def _put_label(canvas: Canvas, label: str, row: int, place: int | None, top: int) -> None:
    """Where there is no place beside the ticks' words, after what the left axis shows."""
    if place is not None:
        canvas.put(row, place, label, "muted")
    elif top == 1:
        shown = len("".join(canvas.chars[0]).rstrip())
        if shown + len(label) + 6 <= canvas.width:
            canvas.put(0, shown + 1, f"over {label}", "muted")


def _free_place(marks: Sequence[AxisTick], length: int, end: int) -> int | None:
    """Where a label stands: at the end if it fits behind the last tick's words, else in the middle
    between two of them."""
    if not marks or end - (marks[-1].begin + len(marks[-1].text)) >= length + 2:
        return end - length
    for one, following in reversed(list(pairwise(marks))):
        begin = one.begin + len(one.text)
        if following.begin - begin >= length + 6:
            return (begin + following.begin - length) // 2
    return None
