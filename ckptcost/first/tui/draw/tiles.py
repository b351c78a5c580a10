"""Numbers with their labels, in rows that wrap."""

from __future__ import annotations

from collections.abc import Sequence

from ckptcost.first.present.chart import Stat
from ckptcost.first.tui.draw.canvas import Canvas, Line, shortened

_GAP, _WIDEST_GAP = 3, 6
_MOST_NOTE = 34
"""a note that is longer does not make its tile wider"""


def _widths(stats: Sequence[Stat], per: int, short: bool) -> list[int]:
    """Of each column, with `per` tiles in a row."""
    needed = [
        len(stat.label) + 1 + len(stat.value)
        if short
        else max(len(stat.label), len(stat.value), min(len(stat.note), _MOST_NOTE))
        for stat in stats
    ]
    return [max(needed[place::per]) for place in range(min(per, len(needed)))]


def tiles_per_row(stats: Sequence[Stat], width: int, short: bool) -> int:
    """As many as fit beside one another with their columns in line."""
    for per in range(len(stats), 1, -1):
        widths = _widths(stats, per, short)
        if sum(widths) + _GAP * (per - 1) <= width:
            rows = -(-len(stats) // per)
            return -(-len(stats) // rows)  # no row much shorter than the others
    return 1


def _row_height(row: Sequence[Stat], short: bool) -> int:
    return 1 if short else 2 + any(stat.note for stat in row)


def lines_needed(stats: Sequence[Stat], width: int, short: bool) -> int:
    per = tiles_per_row(stats, width, short)
    return sum(_row_height(stats[at : at + per], short) for at in range(0, len(stats), per))


def draw_row(stats: Sequence[Stat], width: int, plain: bool) -> list[Line]:
    """Label and value of each in one line, as many as have room; why one is a dash, where that has
    room too."""
    canvas = Canvas(width, 1)
    gap = 2
    notes = [f" ({stat.note})" if stat.value == "-" and stat.note else "" for stat in stats]
    needed = sum(len(stat.label) + len(stat.value) + 1 + gap for stat in stats) - gap
    if needed + len("".join(notes)) > width:
        notes = [""] * len(notes)
    at = 0
    for stat, why in zip(stats, notes, strict=True):
        room = width - at - len(stat.label) - 1
        if room < len(stat.value) and at:
            break
        canvas.put(0, at, stat.label, "muted")
        value = shortened(stat.value, room, plain)
        canvas.put(0, at + len(stat.label) + 1, value, stat.tone or "title")
        canvas.put(0, at + len(stat.label) + 1 + len(value), why, "muted")
        at += len(stat.label) + 1 + len(value) + len(why) + gap
    return canvas.lines()


def draw_tiles(
    stats: Sequence[Stat], width: int, height: int, short: bool, plain: bool
) -> list[Line]:
    """Tiles of label, value and note; where rows are few, the label and the value in one line."""
    canvas = Canvas(width, height)
    if not stats:
        return canvas.lines()
    per = tiles_per_row(stats, width, short)
    widths = [min(each, width) for each in _widths(stats, per, short)]
    gap = min((width - sum(widths)) // (per - 1), _WIDEST_GAP) if per > 1 else 0
    top = 0
    for begin in range(0, len(stats), per):
        row, at = stats[begin : begin + per], 0
        for stat, room in zip(row, widths, strict=False):
            label, tone = shortened(stat.label, room, plain), stat.tone or "title"
            canvas.put(top, at, label, "muted")
            if short:
                canvas.put(
                    top,
                    at + len(label) + 1,
                    shortened(stat.value, room - len(label) - 1, plain),
                    tone,
                )
            else:
                canvas.put(top + 1, at, shortened(stat.value, room, plain), tone)
                canvas.put(top + 2, at, shortened(stat.note, room, plain), "muted")
            at += room + gap
        top += _row_height(row, short)
    return canvas.lines()
