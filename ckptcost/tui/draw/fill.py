"""Areas in full colour, with the checkpoints in them glowing: power stacked, or one area a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ckptcost.present.chart import Band, Chart
from ckptcost.tui.draw.area import Frame, cells_of, draw_bands
from ckptcost.tui.draw.canvas import GROUND_IDS, INK_IDS, Canvas, Look
from ckptcost.tui.draw.points import Points, drawable
from ckptcost.tui.draw.scale import Scale

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Eighths = NDArray[np.int64]
    Cells = NDArray[np.bool_]

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


class Swatch(NamedTuple):
    """One piece of a legend."""

    mark: str
    label: str
    ink: str


def inks_of_fill(chart: Chart) -> tuple[tuple[str, str], ...]:
    if chart.filled == "each":
        names = [f"series-{index % 8 + 1}" for index in range(len(chart.curves))]
        return tuple((name, name) for name in names)
    return STACK if chart.main else BYTES


def legend_of(chart: Chart, look: Look) -> list[Swatch]:
    """What the areas are, where the left axis does not say it."""
    if chart.filled != "stack" or not (chart.main or len(chart.curves) > 1):
        return []
    marks = _PLAIN if look.plain else _BARE if look.shaded else (BLOCKS[8],) * 2
    found = [
        Swatch(marks[index], curve.label, inks[0])
        for index, (curve, inks) in enumerate(zip(chart.curves, inks_of_fill(chart), strict=False))
        if curve.label
    ]
    if chart.level is not None:
        mark = _PLAIN_LINE if look.plain else _LINE
        found.append(Swatch(mark, chart.level.label, "muted"))
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
    glows = np.zeros(frame.columns, bool)
    for band in bands:
        cells = cells_of(band, frame, look) if band.kind == "save" else None
        if cells is not None:
            glows[cells[0] : cells[1]] = True
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
