"""What stands between the axes: shades, lines, curves, dots and their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ckptcost.first.present.chart import Band, Chart, Curve, Dot, Rule
from ckptcost.first.tui.draw.canvas import INK_IDS, PLAIN_SHADE, SHADE, Canvas, Look, shortened
from ckptcost.first.tui.draw.points import Points, drawable
from ckptcost.first.tui.draw.raster import MARKS, braille, dots_of_cell, plain
from ckptcost.first.tui.draw.scale import Scale
from ckptcost.first.tui.draw.spans import spans

_RULES = {"best": ("\u250a", "!"), "now": ("\u2502", "|"), "mark": ("\u254e", ";")}
_RULE_INKS = {"best": "good", "now": "rule-now", "mark": "warn"}
_DOTS = {"best": "\u25c6", "base": "\u25a0", "bad": "\u2717", "muted": "\u25cb"}
_PLAIN_DOTS = {"best": "@", "base": "#", "bad": "x", "muted": "."}
_ORDER = {"best": 0, "base": 1, "": 2, "good": 2, "warn": 2, "bad": 2, "muted": 3}
"""whose name is placed first"""


class Frame(NamedTuple):
    """Where the picture stands on the canvas, and its axes."""

    left: int
    top: int
    columns: int
    rows: int
    x: Scale
    y: Scale
    gutter: int = 0
    """columns to the right of the picture, for the curves' names"""


def inks_of(things: Sequence[Curve | Dot]) -> list[str]:
    """Of each its tone, or its place among the series. Beside one that is the best, a series keeps
    clear of that colour."""
    tones = [thing.tone for thing in things]
    series = "other" if "best" in tones or "good" in tones else "series"
    return [tone or f"{series}-{index % 8 + 1}" for index, tone in enumerate(tones)]


def draw_area(
    canvas: Canvas, chart: Chart, points: Sequence[Points], frame: Frame, look: Look
) -> None:
    """All of a chart, on the part of the canvas that the frame names."""
    draw_curves(canvas, chart.curves, points, frame, look)
    draw_rules(canvas, chart.rules, frame, look)
    draw_bands(canvas, chart.bands, frame, look)
    if chart.dots:
        _dots(canvas, chart.dots, frame, look)
    name_rules(canvas, chart.rules, frame)
    if frame.gutter:
        _name_curves(canvas, chart.curves, points, frame, look)


def draw_bands(canvas: Canvas, bands: Sequence[Band], frame: Frame, look: Look) -> None:
    """A stretch that is too short for a cell still gets one: a short checkpoint is a checkpoint."""
    for band in bands:
        cells = cells_of(band, frame, look)
        if cells is None:
            continue
        begin, end = cells
        for row in range(frame.top, frame.top + frame.rows):
            if look.plain or look.shaded:
                canvas.under(
                    row,
                    frame.left + begin,
                    (PLAIN_SHADE if look.plain else SHADE) * (end - begin),
                    "muted",
                )
            else:
                canvas.tint(row, frame.left + begin, frame.left + end, f"band-{band.kind}")
        if (
            band.label
            and len(band.label) <= end - begin
            and canvas.blank(frame.top, frame.left + begin, len(band.label))
        ):
            canvas.put(frame.top, frame.left + begin, band.label, "muted")


def cells_of(band: Band, frame: Frame, look: Look) -> tuple[int, int] | None:
    """The columns that it covers, None where it is not in the picture."""
    if not (band.end >= frame.x.low and band.begin <= frame.x.high):
        return None
    across, _ = dots_of_cell(look.plain)
    begin = frame.x.cell(max(band.begin, frame.x.low), frame.columns, across)
    if band.end >= frame.x.high:
        return begin, frame.columns
    return begin, max(frame.x.cell(band.end, frame.columns, across), begin + 1)


def draw_rules(canvas: Canvas, rules: Sequence[Rule], frame: Frame, look: Look) -> None:
    for rule in rules:
        column = _column(frame, rule.at)
        if column is not None:
            for row in range(frame.top, frame.top + frame.rows):
                canvas.under(row, column, _RULES[rule.kind][look.plain], _RULE_INKS[rule.kind])


def name_rules(canvas: Canvas, rules: Sequence[Rule], frame: Frame) -> None:
    """Beside its line, where nothing else stands: from the bottom up, to the right first."""
    for rule in rules:
        column = _column(frame, rule.at)
        if column is None or not rule.label:
            continue
        length = len(rule.label)
        for row in range(frame.top + frame.rows - 1, frame.top - 1, -1):
            if column + 2 + length <= frame.left + frame.columns and canvas.blank(
                row, column + 1, length + 2
            ):
                canvas.put(row, column + 1, f" {rule.label} ", _RULE_INKS[rule.kind])
                break
            if column - 1 - length >= frame.left and canvas.blank(
                row, column - 2 - length, length + 2
            ):
                canvas.put(row, column - 2 - length, f" {rule.label} ", _RULE_INKS[rule.kind])
                break


def _column(frame: Frame, value: float) -> int | None:
    if not frame.x.low <= value <= frame.x.high:
        return None
    return frame.left + frame.x.cell(value, frame.columns)


def draw_curves(
    canvas: Canvas, curves: Sequence[Curve], points: Sequence[Points], frame: Frame, look: Look
) -> None:
    """The best curve lies on top, then the first one."""
    order = sorted(range(min(len(curves), 255)), key=lambda i: (_ORDER[curves[i].tone], i))
    if not order:
        return
    every = inks_of(curves)
    across, down = dots_of_cell(look.plain)
    found = spans(
        [points[i] for i in order], frame.x, frame.y, frame.columns * across, frame.rows * down
    )
    if look.plain:
        marks = "".join(mark_of(i) for i in order) if len(order) > 1 else ""
        lines, owners = plain(found, len(order), frame.columns, frame.rows, marks)
    else:
        lines, owners = braille(found, len(order), frame.columns, frame.rows)
    inks = bytes([0, *(INK_IDS[every[i]] for i in order)]).ljust(256, b"\0")
    for row, (line, owned) in enumerate(zip(lines, owners, strict=True), start=frame.top):
        if any(owned):
            canvas.lay(row, frame.left, line, owned.translate(inks))


def mark_of(index: int) -> str:
    """What a curve is drawn with where there is nothing but letters."""
    return MARKS[index % len(MARKS)]


def _dots(canvas: Canvas, dots: Sequence[Dot], frame: Frame, look: Look) -> None:
    ordered = sorted(enumerate(dots), key=lambda each: (_ORDER[each[1].tone], each[0]))
    places: list[tuple[int, int, Dot, str]] = []
    inks = inks_of(dots)
    glyphs = _PLAIN_DOTS if look.plain else _DOTS
    for index, dot in ordered:
        inside = frame.x.low <= dot.x <= frame.x.high and frame.y.low <= dot.y <= frame.y.high
        if inside:
            column = frame.left + frame.x.cell(dot.x, frame.columns)
            row = frame.top + frame.rows - 1 - frame.y.cell(dot.y, frame.rows, 4)
            places.append((row, column, dot, inks[index]))
    for row, column, dot, ink in reversed(places):
        canvas.put(row, column, glyphs.get(dot.tone, "o" if look.plain else "\u25cf"), ink)
    for row, column, dot, ink in places:
        _name_dot(canvas, dot.label, row, column, ink, frame)


def _name_dot(canvas: Canvas, label: str, row: int, column: int, ink: str, frame: Frame) -> None:
    """To the right, to the left, below, above, or nowhere: the name never covers another one."""
    length = len(label)
    if not length:
        return
    middle = column - length // 2
    for at_row, at in (
        (row, column + 2),
        (row, column - 1 - length),
        (row + 1, middle),
        (row - 1, middle),
        (row + 1, column + 1),
        (row - 1, column + 1),
        (row + 1, column - length),
        (row - 1, column - length),
    ):
        inside = (
            frame.top <= at_row < frame.top + frame.rows
            and frame.left <= at
            and at + length <= frame.left + frame.columns
        )
        if inside and canvas.blank(at_row, max(at - 1, frame.left), length + 1):
            canvas.put(at_row, at, label, ink)
            return


def _name_curves(
    canvas: Canvas, curves: Sequence[Curve], points: Sequence[Points], frame: Frame, look: Look
) -> None:
    """At the right, each at the height where its curve ends. Those that would collide move apart;
    those beyond the room are left out."""
    wanted: list[tuple[int, int, str, str]] = []
    inks = inks_of(curves)
    for index, curve in enumerate(curves):
        end = last_value(points[index], frame)
        if curve.label and end is not None:
            row = frame.rows - 1 - max(min(frame.y.cell(end, frame.rows, 4), frame.rows - 1), 0)
            mark = f"{mark_of(index)} " if look.plain and len(curves) > 1 else ""
            wanted.append((_ORDER[curve.tone], row, mark + curve.label, inks[index]))
    wanted = sorted(wanted, key=lambda each: each[0])[: frame.rows]
    wanted.sort(key=lambda each: each[1])
    rows = spread([row for _, row, _, _ in wanted], frame.rows)
    for row, (_, _, label, ink) in zip(rows, wanted, strict=True):
        canvas.put(
            frame.top + row,
            frame.left + frame.columns + 1,
            shortened(label, frame.gutter - 1, look.plain),
            ink,
        )


def last_value(points: Points, frame: Frame) -> float | None:
    """The last value within view that can be drawn."""
    seen = points.within(frame.x.low, frame.x.high).ys
    fine = drawable(seen, frame.y.log).nonzero()[0]
    return float(seen[fine[-1]]) if len(fine) else None


def spread(rows: Sequence[int], room: int) -> list[int]:
    """Rising places, moved apart so that no two are the same, as near to where they were as a pass
    down and one up bring them.

    >>> spread([0, 0, 0, 5], 6), spread([5, 5, 5], 6)
    ([0, 1, 2, 5], [3, 4, 5])
    """
    placed: list[int] = []
    for row in rows:
        placed.append(max(row, placed[-1] + 1) if placed else row)
    limit = room
    for index in range(len(placed) - 1, -1, -1):
        placed[index] = min(placed[index], limit - 1)
        limit = placed[index]
    return placed
