"""Curves as upright spans of dots, one or more a column: thinned so that no peak is lost, joined so
that they read as lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ckptcost.first.tui.draw.points import Points, drawable
from ckptcost.first.tui.draw.scale import Scale

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ckptcost.first.tui.draw.points import Floats

    Ints = NDArray[np.int64]

_FAR = 1e6
"""rows beyond the picture that are told apart"""


class Spans(NamedTuple):
    """Curve after curve, columns from left to right. Rows are counted in dots from the top; both
    ends are painted, and may lie outside of the picture."""

    curves: Ints
    columns: Ints
    tops: Ints
    bottoms: Ints


def spans(curves: Sequence[Points], x: Scale, y: Scale, columns: int, rows: int) -> Spans:
    """What to paint of curves on `columns` by `rows` dots. A value that is not a number, or has no
    place on a log axis, is a gap."""
    import numpy as np

    (xs, ys, lows, highs), curve, gap = _in_one_row(curves, x, y)
    if not len(xs):
        none = np.zeros(0, np.int64)
        return Spans(none, none, none, none)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        across, down = _along(xs, x) * (columns - 1), (1 - _along(ys, y)) * (rows - 1)
        _cut_at_the_edges(across, down, gap, columns)
        places = np.floor(across + 0.5).astype(np.int64)
        least = most = down
        if lows is not ys:
            inside = (places >= 0) & (places < columns)
            least, most = (
                np.where(inside & drawable(side, y.log), (1 - _along(side, y)) * (rows - 1), down)
                for side in (lows, highs)
            )
        # neighbours of one column are a run, joined to what comes before it where there is no gap
        begins = np.flatnonzero((places[1:] != places[:-1]) | gap) + 1
        joined = np.concatenate(([False], ~gap[begins - 1]))
        begins = np.concatenate(([0], begins))
        ends = np.concatenate((begins[1:], [len(places)])) - 1
        runs = Spans(
            curve[begins],
            places[begins],
            _whole(np.minimum.reduceat(most, begins)),
            _whole(np.maximum.reduceat(least, begins)),
        )
        return _touching(runs, _near(down[begins]), _near(down[ends]), joined, columns)


def _in_one_row(
    curves: Sequence[Points], x: Scale, y: Scale
) -> tuple[Points, Ints, NDArray[np.bool_]]:
    """What of all curves can be drawn, as one long row of points that is taken through at once: of
    which curve each is, and whether there is a gap behind it, as there is between two curves."""
    import numpy as np

    seen = [points.within(x.low, x.high, around=1) for points in curves]
    thinned = any(points.lows is not points.ys for points in seen)
    row = [np.concatenate(each) for each in [*zip(*seen, strict=True)][: 4 if thinned else 2]]
    curve = np.repeat(np.arange(len(seen)), [len(points.xs) for points in seen])
    gap = curve[1:] != curve[:-1]
    fine = drawable(row[1], y.log) & drawable(row[0], x.log)
    if not fine.all():
        kept = np.flatnonzero(fine)
        row, curve = [each[kept] for each in row], curve[kept]
        gap = (kept[1:] - kept[:-1] > 1) | (curve[1:] != curve[:-1])
    xs, ys, *around = row
    lows, highs = around or (ys, ys)
    return Points(xs, ys, lows, highs), curve, gap


def _cut_at_the_edges(across: Floats, down: Floats, gap: NDArray[np.bool_], columns: int) -> None:
    """Of a line that comes in from outside, or leaves, only what is a column away remains: its end
    is moved there along the line."""
    import numpy as np

    for outside, inner, edge in (
        (np.flatnonzero(across < -1), 1, -1.0),
        (np.flatnonzero(across > columns), -1, float(columns)),
    ):
        for at in outside:  # at most one of each curve
            to = at + inner
            if 0 <= to < len(across) and not gap[min(at, to)]:
                down[at] += (down[to] - down[at]) * (edge - across[at]) / (across[to] - across[at])
        across[outside] = edge


def _along(values: Floats, scale: Scale) -> Floats:
    """As `Scale.at`, for many."""
    import numpy as np

    if scale.log:
        low = math.log10(scale.low)
        return (np.log10(values) - low) / (math.log10(scale.high) - low)
    return (values - scale.low) / (scale.high - scale.low)


def _near(rows: Floats) -> Floats:
    import numpy as np

    return np.minimum(np.maximum(rows, -_FAR), _FAR)


def _whole(rows: Floats) -> Ints:
    import numpy as np

    return np.floor(_near(rows) + 0.5).astype(np.int64)


def _touching(
    runs: Spans, firsts: Floats, lasts: Floats, joined: NDArray[np.bool_], columns: int
) -> Spans:
    """Runs, each from the row of its first point to that of its last, with straight lines over the
    columns between them, and made long enough to touch the one before."""
    import numpy as np

    curves, places, tops, bottoms = runs
    steps = np.ones(len(places), np.int64)
    steps[1:][joined[1:]] = (places[1:] - places[:-1])[joined[1:]]
    total = int(steps.sum())
    if total > len(steps):
        of = np.repeat(np.arange(len(steps)), steps)  # to which run a column leads
        step = np.arange(total) - (np.cumsum(steps) - steps)[of] + 1
        arrived = step == steps[of]
        level = _whole(
            lasts[of - 1] + (firsts - lasts[np.arange(-1, len(steps) - 1)])[of] * step / steps[of]
        )
        places = places[of] - steps[of] + step
        tops, bottoms = np.where(arrived, tops[of], level), np.where(arrived, bottoms[of], level)
        curves, joined = curves[of], joined[of] | (step > 1)
    above, below = np.minimum(tops[1:], bottoms[:-1] + 1), np.maximum(bottoms[1:], tops[:-1] - 1)
    tops[1:], bottoms[1:] = (
        np.where(joined[1:], above, tops[1:]),
        np.where(joined[1:], below, bottoms[1:]),
    )
    inside = (places >= 0) & (places < columns)
    return (
        Spans(curves, places, tops, bottoms)
        if inside.all()
        else Spans(curves[inside], places[inside], tops[inside], bottoms[inside])
    )
