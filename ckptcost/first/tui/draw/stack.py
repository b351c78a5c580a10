"""Charts stacked over one time axis, as lines of pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ckptcost.first.present.chart import Band, Chart, Traces
from ckptcost.first.tui.draw.area import (
    Frame,
    cells_of,
    draw_area,
    draw_bands,
    draw_rules,
    inks_of,
    mark_of,
)
from ckptcost.first.tui.draw.axes import bottom_axis, kind_of, left_axis
from ckptcost.first.tui.draw.canvas import GROUND_IDS, INK_IDS, Canvas, Look, shortened
from ckptcost.first.tui.draw.picture import Picture, gutter_of, now_and_peak
from ckptcost.first.tui.draw.points import Points, drawable, ends_of, points_of
from ckptcost.first.tui.draw.scale import Scale, y_scale
from ckptcost.first.tui.draw.ticks import AxisTick, y_ticks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Eighths = NDArray[np.int64]
    Cells = NDArray[np.bool_]


# Areas in full colour, with the checkpoints in them glowing: power stacked, or one area a GPU.

BLOCKS = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
STACK = (("series-1", "series-2"), ("fill-2", "glow-2"))
"""of each area: as it is, and within a checkpoint"""
BYTES = (("series-3", "series-3"), ("series-4", "series-4"))
"""what is written, and on it what is read: neither glows, the checkpoint is what writes"""
_BARE = ("\u2588", "\u2592")
"""where there are no colours"""
_PLAIN = ("#", "=")
_LINE, _UNDER_LINE, _PLAIN_LINE = "\u2594", "\u2587", "-"
"""a level: in the open, and as the gap that a lower block leaves"""


def inks_of_fill(chart: Chart) -> tuple[tuple[str, str], ...]:
    if chart.filled == "each":
        names = [f"series-{index % 8 + 1}" for index in range(len(chart.curves))]
        return tuple((name, name) for name in names)
    return STACK if chart.main else BYTES


def _legend_of(chart: Chart, look: Look) -> list[tuple[str, str, str]]:
    """What the areas are, where the left axis does not say it: mark, words and ink of each."""
    if chart.filled != "stack" or not (chart.main or len(chart.curves) > 1):
        return []
    marks = _PLAIN if look.plain else _BARE if look.shaded else (BLOCKS[8],) * 2
    found = [
        (mark, curve.label, ink)
        for mark, curve, (ink, _) in zip(marks, chart.curves, inks_of_fill(chart), strict=False)
        if curve.label
    ]
    if chart.level is not None:
        found.append((_PLAIN_LINE if look.plain else _LINE, chart.level.label, "muted"))
    return found


def draw_fill(
    canvas: Canvas,
    chart: Chart,
    points: Sequence[Points],
    bands: Sequence[Band],
    frame: Frame,
    look: Look,
) -> None:
    """All of a chart whose areas are filled, on the part of the canvas that the frame names."""
    import numpy as np

    draw_bands(canvas, [band._replace(label="") for band in bands], frame, look)
    glows = _checkpoint_columns(bands, frame, look)
    levels = [_by_column(each, frame) for each in points]
    inks = inks_of_fill(chart)
    if chart.filled == "each":
        for (top, rows), level, ink in zip(
            strips(frame.rows, len(levels)), levels, inks, strict=False
        ):
            eighths = _eighths(level, frame.y, rows)
            part = frame._replace(top=frame.top + top, rows=rows)
            _lay(canvas, [eighths], [ink], glows, part, look)
        if not look.plain:  # among areas of #, #1 cannot be read
            _name_bands(canvas, bands, frame, look)
        return
    heights = [_eighths(level, frame.y, frame.rows) for level in levels[:2]]
    if len(heights) == 2:  # a part that is not known adds nothing to what is
        heights[1] = np.maximum(heights[0], heights[1])
    _lay(canvas, heights, inks, glows, frame, look)
    if chart.level is not None:
        _level(canvas, chart.level.at, frame, look)
    if chart.main:
        _name_bands(canvas, bands, frame, look)


def _checkpoint_columns(bands: Sequence[Band], frame: Frame, look: Look) -> Cells:
    """Which columns lie within a checkpoint."""
    import numpy as np

    glows = np.zeros(frame.columns, bool)
    for band in bands:
        if band.kind == "save" and (cells := cells_of(band, frame, look)):
            glows[cells[0] : cells[1]] = True
    return glows


def _name_bands(canvas: Canvas, bands: Sequence[Band], frame: Frame, look: Look) -> None:
    """At the top, where it is open."""
    for band in bands:
        begin, end = cells_of(band, frame, look) or (0, 0)
        for at in range(begin, end - len(band.label) + 1):
            if band.label and canvas.blank(frame.top, frame.left + at, len(band.label)):
                canvas.put(frame.top, frame.left + at, band.label, "muted")
                break


def strips(rows: int, areas: int) -> list[tuple[int, int]]:
    """Where each area stands, and how high it is; none where they have no room.

    >>> strips(9, 4), strips(3, 4)
    ([(0, 2), (2, 2), (4, 2), (6, 2)], [])
    """
    each = rows // max(areas, 1)
    return [(index * each, each) for index in range(areas)] if each else []


def level_row(at: float, y: Scale, rows: int) -> int:
    """The row at whose upper edge a level stands, or nearest to it."""
    return rows - min(max(round(y.at(at) * rows), 1), rows)


def _by_column(points: Points, frame: Frame) -> Floats:
    """The mean of what falls into each column; of points that lie farther apart, the nearest."""
    import numpy as np

    columns = frame.columns
    wide = (frame.x.high - frame.x.low) or 1.0
    places = (points.xs - frame.x.low) / wide
    fine = drawable(points.ys) & (places >= 0) & (places <= 1)
    cells = np.floor(places[fine] * (2 * columns - 1) + 0.5).astype(np.int64) // 2
    count = np.bincount(cells, minlength=columns)
    total = np.bincount(cells, weights=points.ys[fine], minlength=columns)
    mean: Floats = np.divide(total, count, out=np.full(columns, np.nan), where=count > 0)
    if len(places) > 1 and not count.all():
        apart = float(np.median(np.diff(places))) * columns
        if apart > 1:
            middles = (np.flatnonzero(count == 0) + 0.5) / columns
            after = places.searchsorted(middles).clip(1, len(places) - 1)
            near = after - (middles - places[after - 1] < places[after] - middles)
            close = np.abs(places[near] - middles) * columns <= 0.75 * apart
            mean[count == 0] = np.where(close, points.ys[near], np.nan)
    return mean


def _eighths(values: Floats, y: Scale, rows: int) -> Eighths:
    """How high each column is; what is more than nothing is seen."""
    import numpy as np

    known = np.where(drawable(values), values, y.low)
    shares = (known - y.low) / (y.high - y.low)
    raised = np.round(shares * rows * 8).clip(0, rows * 8)
    return np.where((raised == 0) & (shares > 1e-6), 1, raised).astype(np.int64)


def _lay(
    canvas: Canvas,
    heights: Sequence[Eighths],
    inks: Sequence[tuple[str, str]],
    glows: Cells,
    frame: Frame,
    look: Look,
) -> None:
    import numpy as np

    low, high = heights[0], heights[-1]
    coloured = not (look.plain or look.shaded)
    below = np.where(glows, INK_IDS[inks[0][1]], INK_IDS[inks[0][0]])
    above = below
    if len(heights) > 1:
        above = np.where(glows, INK_IDS[inks[1][1]], INK_IDS[inks[1][0]])
    grounds = tuple(GROUND_IDS.get(ink, 0) for ink in inks[-1])
    behind = np.where(glows, grounds[1], grounds[0])
    for row in range(frame.rows):
        base = 8 * (frame.rows - 1 - row)
        lower, upper = (low - base).clip(0, 8), (high - base).clip(0, 8)
        if not upper.any():
            continue
        mixed = (lower > 0) & (lower < 8) & (upper == 8) & (behind > 0) & coloured
        mine = (lower > 0) & (mixed | (2 * lower >= upper))
        tall = np.where(mixed, lower, upper)
        letters = _letters(tall, mine, coloured, look)
        owners = np.where(mine, below, above) * (tall > 0)
        _over(canvas, frame.top + row, frame.left, letters, owners.astype(np.uint8).tobytes())
        if len(heights) > 1 and mixed.any():
            canvas.ground(frame.top + row, frame.left, (behind * mixed).astype(np.uint8).tobytes())


def _letters(tall: Eighths, mine: Cells, coloured: bool, look: Look) -> str:
    if coloured:
        return "".join(map(BLOCKS.__getitem__, tall.tolist()))
    full = _PLAIN if look.plain else _BARE
    said = []
    for eighths, is_mine in zip(tall.tolist(), mine.tolist(), strict=True):
        if is_mine and not look.plain:
            said.append(BLOCKS[eighths])
        else:
            said.append(full[not is_mine] if eighths >= 4 else " ")
    return "".join(said)


def _over(canvas: Canvas, row: int, column: int, letters: str, inks: bytes) -> None:
    """Write it, and leave what stands there where it is blank."""
    if " " not in letters:
        canvas.lay(row, column, letters, inks)
        return
    chars, owned = canvas.chars[row], canvas.inks[row]
    for at, letter in enumerate(letters):
        if letter != " ":
            chars[column + at] = letter
            owned[column + at] = inks[at]


def _level(canvas: Canvas, at: float, frame: Frame, look: Look) -> None:
    row = frame.top + level_row(at, frame.y, frame.rows)
    for column in range(frame.left, frame.left + frame.columns):
        letter = canvas.chars[row][column]
        if look.plain:
            if letter in (" ", ":", *_PLAIN):
                canvas.put(row, column, _PLAIN_LINE, "muted")
        elif letter == BLOCKS[8]:
            canvas.chars[row][column] = _UNDER_LINE
        elif letter == " ":
            canvas.put(row, column, _LINE, "muted")


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
    laid = _lay_out(traces, x, height)
    left, gutter = _margins(laid, width, look)
    columns = width - left - gutter
    row, frame = 0, None
    for each in laid:
        _title_rule(canvas, row, each, look)
        row += 1
        if each.rows and columns >= 2:
            y, room = each.y or Scale(0.0, 1.0), gutter if each.at_ends else 0
            frame = Frame(left, row, columns, each.rows, x, y, room)
            left_axis(canvas, frame, each.marks, look)
            _draw_chart(canvas, each, traces, frame, look)
            row += each.rows
    if frame is not None and row < height:
        below, rows = frame._replace(gutter=gutter), min(height - row, 2)
        bottom_axis(canvas, below, row, rows, traces.x_text, "duration", "", look)
    return Picture(canvas.lines())


def _margins(laid: Sequence[_Laid], width: int, look: Look) -> tuple[int, int]:
    """Columns to the left of all pictures, and to their right, for names where curves end."""
    longest = max((len(tick.text) for each in laid for tick in each.marks), default=0)
    left = min(longest + 1, max(width // 2, 1))
    gutters = [gutter_of(each.chart, width - left, look) for each in laid if each.at_ends]
    return left, min(max(gutters, default=0), 12)


def _lay_out(traces: Traces, x: Scale, height: int) -> list[_Laid]:
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
    free -= weights.count(0)
    if free < 0:
        return [0] * len(weights)
    rows = [int(weight == 0) for weight in weights]
    drawn = [index for index, weight in enumerate(weights) if weight > 0]
    total = sum(weights[index] for index in drawn)
    for index in drawn:
        rows[index] = free * weights[index] // total
    for index in drawn[: free - sum(rows[index] for index in drawn)]:
        rows[index] += 1
    return rows


def _title_rule(canvas: Canvas, row: int, each: _Laid, look: Look) -> None:
    """A line with the title, what the chart shows now, and between them the names of curves that
    are not named where they end."""
    canvas.put(row, 0, ("-" if look.plain else "\u2500") * canvas.width, "rule")
    chart, column = each.chart, 2
    title = shortened(chart.title, canvas.width - 4, look.plain)
    if title:
        canvas.put(row, 1, f" {title} ", "title")
        column = len(title) + 4
    for mark, label, ink in _legend_of(chart, look):
        if column + len(mark) + len(label) + 4 > canvas.width:
            break
        canvas.put(row, column - 1, f" {mark}", ink)
        canvas.put(row, column + 1, f" {label} ", "note")
        column += len(mark) + len(label) + 3
    note, room, end = _note_of(each), canvas.width - column - 3, canvas.width
    if note and room >= (len(note) if chart.filled else 8):
        note = shortened(note, room, look.plain)
        end = canvas.width - len(note) - 4
        canvas.put(row, end, f" {note} ", "note")
    if not chart.filled and len(chart.curves) > min(each.rows, 4) > 0 and not look.shaded:
        _names(canvas, row, column, end, chart, look)


def _note_of(each: _Laid) -> str:
    """A chart that has no room for more says in words what it would show."""
    chart = each.chart
    if chart.note or each.rows:
        return chart.note
    return "  ".join(
        f"{label}: {words}" if label and label != chart.title else words
        for label, words, _ in now_and_peak(chart, each.points)[:3]
    )


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
