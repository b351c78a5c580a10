"""Charts stacked over one time axis, as lines of pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ckptcost.present.chart import Chart, Traces
from ckptcost.tui.draw.area import Frame, draw_area, draw_bands, draw_rules, inks_of, mark_of
from ckptcost.tui.draw.axes import bottom_axis, kind_of, left_axis
from ckptcost.tui.draw.canvas import Canvas, Look, shortened
from ckptcost.tui.draw.fill import draw_fill, inks_of_fill, legend_of, level_row, strips
from ckptcost.tui.draw.picture import Picture, gutter_of, now_and_peak
from ckptcost.tui.draw.points import Points, ends_of, points_of
from ckptcost.tui.draw.scale import Scale, y_scale
from ckptcost.tui.draw.ticks import AxisTick, y_ticks

_LEAST_TRACE, _LEAST_AREA = 3, 2
"""rows; a chart that would get fewer keeps only its title"""


class _Laid(NamedTuple):
    """One chart, with the rows that it gets."""

    chart: Chart
    points: Sequence[Points]
    rows: int
    """0: its title alone"""
    y: Scale | None
    """None where there is nothing to draw"""
    marks: Sequence[AxisTick]

    @property
    def at_ends(self) -> bool:
        """A few curves are named where they end; one alone is named by its title, and many of them
        there too."""
        return not self.chart.filled and 2 <= len(self.chart.curves) <= min(self.rows, 4)


def draw_traces(traces: Traces, width: int, height: int, look: Look) -> Picture:
    """Charts over one time axis, each below a rule with its title."""
    if width < 1 or height < 1:
        return Picture([])
    canvas = Canvas(width, height)
    low, high = traces.x_range
    x = Scale(low, high if high > low else low + 1.0)
    laid = _laid_out(traces, x, height)
    longest = max((len(tick.text) for each in laid for tick in each.marks), default=0)
    left = min(longest + 1, max(width // 2, 1))
    gutters = [gutter_of(each.chart, width - left, look) for each in laid if each.at_ends]
    gutter = min(max(gutters, default=0), 12)
    columns = width - left - gutter
    row, first = 0, None
    for each in laid:
        _title_rule(canvas, row, each.chart, each.points, each.rows, each.at_ends, look)
        row += 1
        if each.rows and columns >= 2:
            room = gutter if each.at_ends else 0
            frame = Frame(left, row, columns, each.rows, x, each.y or Scale(0.0, 1.0), room)
            first = first or frame
            left_axis(canvas, frame, each.marks, look)
            _draw_chart(canvas, each, traces, frame, look)
            row += each.rows
    if first is not None and row < height:
        rows = min(height - row, 2)
        bottom_axis(
            canvas, first._replace(gutter=gutter), row, rows, traces.x_text, "duration", "", look
        )
    return Picture(canvas.lines(), first)


def _laid_out(traces: Traces, x: Scale, height: int) -> list[_Laid]:
    """As many as have room for their title."""
    curves = [points_of(chart.curves) for chart in traces.charts]
    heights = shares(
        [_weight(chart, points) for chart, points in zip(traces.charts, curves, strict=True)],
        height,
        _LEAST_AREA if any(chart.filled for chart in traces.charts) else _LEAST_TRACE,
    )
    heights = _whole_strips(traces.charts, heights)
    found = []
    for chart, points, rows in zip(traces.charts, curves, heights, strict=False):
        y = y_scale(chart, points, x) if rows else None
        marks = [] if y is None else _left_marks(chart, y, rows)
        found.append(_Laid(chart, points, rows, y, marks))
    return found


def _draw_chart(canvas: Canvas, each: _Laid, traces: Traces, frame: Frame, look: Look) -> None:
    """What stands between the axes; where there is nothing, why."""
    chart = each.chart
    bands, rules = (*traces.bands, *chart.bands), (*traces.rules, *chart.rules)
    if each.y is not None and _is_filled(chart, each.rows):
        draw_fill(canvas, chart, each.points, bands, frame, look)
        draw_rules(canvas, rules, frame, look)
        _names_at_left(canvas, chart, each.marks, frame)
    elif each.y is None:
        draw_bands(canvas, bands, frame, look)
        draw_rules(canvas, rules, frame, look)
        middle = frame.left + max(frame.columns - len(chart.empty), 0) // 2
        canvas.put(frame.top + frame.rows // 2, middle, chart.empty, "muted")
    else:
        draw_area(canvas, chart._replace(bands=bands, rules=rules), each.points, frame, look)


def _is_filled(chart: Chart, rows: int) -> bool:
    """Areas below one another need a row each; where there are fewer, they are lines."""
    return bool(chart.filled) and (chart.filled != "each" or rows >= len(chart.curves))


def _whole_strips(charts: Sequence[Chart], heights: Sequence[int]) -> list[int]:
    """Areas below one another are all of one height: what is over, or lacks, another chart has."""
    found = list(heights)
    for index, chart in enumerate(charts):
        if chart.filled != "each" or index >= len(found) or found[index] < len(chart.curves) - 1:
            continue
        areas = len(chart.curves)
        lack = max(round(found[index] / areas), 1) * areas - found[index]
        if len(found) == 1:
            found[index] -= found[index] % areas if found[index] >= areas else 0
        elif found[(index + 1) % len(found)] - lack >= _LEAST_AREA:
            found[index] += lack
            found[(index + 1) % len(found)] -= lack
    return found


def _left_marks(chart: Chart, y: Scale, rows: int) -> list[AxisTick]:
    """Round values, with the level among them; of areas below one another, their names."""
    if chart.filled == "each" and (places := strips(rows, len(chart.curves))):
        return [
            AxisTick(0.0, curve.label, top + (high - 1) // 2, 0)
            for curve, (top, high) in zip(chart.curves, places, strict=True)
        ]
    ticks = y_ticks(y, rows, chart.y_text, kind_of(chart.y_text))
    if chart.level is None or not y.low < chart.level.at <= y.high:
        return ticks
    row = level_row(chart.level.at, y, rows)
    return [*(tick for tick in ticks if tick.at != row), AxisTick(chart.level.at, "idle", row, 0)]


def _names_at_left(canvas: Canvas, chart: Chart, ticks: Sequence[AxisTick], frame: Frame) -> None:
    """In the colours of their areas."""
    if chart.filled != "each":
        return
    for tick, (ink, _) in zip(ticks, inks_of_fill(chart), strict=False):
        text = tick.text[: frame.left - 1]
        canvas.put(frame.top + tick.at, frame.left - 1 - len(text), text, ink)


def _weight(chart: Chart, points: Sequence[Points]) -> int:
    """How much of the height a chart is worth; 0 where a line says why there is nothing."""
    if ends_of([each.ys for each in points]) is None:
        return 0
    return 6 if chart.main else 3 if len(chart.curves) > 4 else 2


def shares(weights: Sequence[int], height: int, least: int = _LEAST_TRACE) -> list[int]:
    """Rows for each chart below its title, by weight; what is left over goes to the first ones.
    Where rows are few, the last ones keep only their title, which says what they show now.

    >>> shares([2, 2, 2], 26), shares([3, 2, 0], 26), shares([2, 2, 2], 12), shares([2, 2], 3)
    ([7, 7, 7], [12, 8, 1], [4, 4, 0], [0, 0])
    """
    if height <= len(weights) + 1:
        return [0] * min(len(weights), height)
    free = height - len(weights) - (2 if height >= 14 else 1)
    drawn = list(weights)
    rows = _divided(drawn, free)
    while any(weight > 0 and got < least for weight, got in zip(drawn, rows, strict=True)):
        last = max(index for index, weight in enumerate(drawn) if weight > 0)
        drawn[last] = -1  # its title only
        rows = _divided(drawn, free)
    return rows


def _divided(weights: Sequence[int], free: int) -> list[int]:
    """Weight 0 takes one row, less than that none."""
    free -= sum(weight == 0 for weight in weights)
    total = sum(weight for weight in weights if weight > 0)
    rows = [1 if weight == 0 else free * weight // total if weight > 0 else 0 for weight in weights]
    for index, weight in enumerate(weights):
        if weight > 0 and sum(rows) < free + sum(each == 0 for each in weights):
            rows[index] += 1
    return rows if free >= 0 else [0] * len(weights)


def _title_rule(
    canvas: Canvas,
    row: int,
    chart: Chart,
    points: Sequence[Points],
    rows: int,
    at_ends: bool,
    look: Look,
) -> None:
    """A line with the title, what the chart shows now, and between them the names of curves that
    are not named where they end."""
    canvas.put(row, 0, ("-" if look.plain else "\u2500") * canvas.width, "rule")
    title = shortened(chart.title, canvas.width - 4, look.plain)
    column = 2
    if title:
        canvas.put(row, 1, f" {title} ", "title")
        column = len(title) + 4
    for swatch in legend_of(chart, look):
        words = f"{swatch.mark} {swatch.label}"
        if column + len(words) + 3 > canvas.width:
            break
        canvas.put(row, column - 1, f" {swatch.mark}", swatch.ink)
        canvas.put(row, column + 1, f" {swatch.label} ", "note")
        column += len(words) + 2
    note = chart.note
    if not note and not rows:
        said = now_and_peak(chart, points)[:3]
        note = "  ".join(
            f"{label}: {words}" if label and label != chart.title else words
            for label, words, _ in said
        )
    room = canvas.width - column - 3
    end = canvas.width
    if note and room >= (len(note) if chart.filled else 8):
        note = shortened(note, room, look.plain)
        end = canvas.width - len(note) - 4
        canvas.put(row, end, f" {note} ", "note")
    if rows and not at_ends and not chart.filled and len(chart.curves) > 1 and not look.shaded:
        _names(canvas, row, column, end, chart, look)


def _names(canvas: Canvas, row: int, column: int, end: int, chart: Chart, look: Look) -> None:
    """The names of curves in their colours, all of them or none."""
    names = [
        (f"{mark_of(index)} " if look.plain else "") + curve.label
        for index, curve in enumerate(chart.curves)
    ]
    if all(names) and column + sum(len(name) + 1 for name in names) + 3 <= end:
        canvas.put(row, column, " ")
        for name, ink in zip(names, inks_of(chart.curves), strict=True):
            canvas.put(row, column + 1, f"{name} ", ink)
            column += len(name) + 1
