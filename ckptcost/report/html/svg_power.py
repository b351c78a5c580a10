"""Power over time with the checkpoints behind it; thinned to what a picture can show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ckptcost.present.amounts import duration, number
from ckptcost.report.html.extras import Band, Line, Power
from ckptcost.report.html.markup import Markup, el
from ckptcost.report.html.svg_axis import (
    Drawn,
    Scale,
    box,
    clipped,
    grid_y,
    legend,
    line,
    mark_of,
    path,
    said,
    spaced,
    steps,
    times,
    words_px,
)
from ckptcost.report.html.svg_curve import finite

MOST_POINTS = 500


class Thin(NamedTuple):
    t_s: list[float]
    means: list[list[float | None]]
    lows: list[list[float | None]]
    highs: list[list[float | None]]


def thinned(power: Power, most: int = MOST_POINTS) -> Thin:
    """At most so many points: means over equal pieces of the time, with the least and the most in
    each."""
    n = len(power.t_s)
    columns = [_column(each.values, n) for each in power.lines]
    ends = [
        (_column(each.lows, n), _column(each.highs, n)) if ranged(each) else (column, column)
        for each, column in zip(power.lines, columns, strict=True)
    ]
    if n <= most:
        return Thin(list(power.t_s), columns, [low for low, _ in ends], [high for _, high in ends])
    begin, wide = power.t_s[0], (power.t_s[-1] - power.t_s[0]) / most or 1.0
    pieces: list[list[int]] = [[] for _ in range(most)]
    for i, t in enumerate(power.t_s):
        pieces[min(int((t - begin) / wide), most - 1)].append(i)
    middles = [begin + wide * (k + 0.5) for k in range(most)]
    found = Thin(middles, [], [], [])
    for column, (low, high) in zip(columns, ends, strict=True):
        found.means.append([math.fsum(v) / len(v) if v else None for v in _filled(column, pieces)])
        found.lows.append([min(v) if v else None for v in _filled(low, pieces)])
        found.highs.append([max(v) if v else None for v in _filled(high, pieces)])
    return found


def ranged(line: Line) -> bool:
    """Whether a line says between which bounds it lies."""
    return any(v is not None for v in line.lows) and any(v is not None for v in line.highs)


def _column(values: Sequence[float | None], n: int) -> list[float | None]:
    return [finite(v) for v in values[:n]] + [None] * (n - len(values))


def _filled(column: list[float | None], pieces: list[list[int]]) -> list[list[float]]:
    """What is known in each piece. A piece between two readings is no gap: the reading before goes
    on."""
    filled: list[list[float]] = []
    for piece in pieces:
        known = [v for v in (column[i] for i in piece) if v is not None]
        filled.append(known if piece else filled[-1] if filled else [])
    return filled


def drawn(power: Power, width: float) -> Drawn:
    wide = width > 600
    left, right, tall = (62.0, width - 10.0, 250.0) if wide else (46.0, width - 4.0, 180.0)
    thin = thinned(power, MOST_POINTS if wide else 170)
    kind = "a" if power.stacked else "line l"
    entries = [(f"{each.name} (W)", f"{kind}{i % 6 + 1}") for i, each in enumerate(power.lines)]
    shaded = [("training held up", "stall")] * bool(power.bands) + [
        ("until the save is safe", "drain")
    ] * any(_drains(b) for b in power.bands)
    out, top = legend(width, left, 14.0, [*entries, *shaded])
    top += 30.0 if power.bands else 4.0
    bottom = top + tall
    ends = [
        t for b in power.bands for t in (b.begin_s, b.stall_end_s, b.durable_s) if t is not None
    ]
    low, high = min([*thin.t_s, *ends], default=0.0), max([*thin.t_s, *ends], default=1.0)
    x = Scale(low, high if high > low else low + 1.0, left, right)
    tops = _stacked(thin.means) if power.stacked else thin.highs
    most = max((v for column in tops for v in column if v is not None), default=1.0)
    y = Scale(0.0, most * 1.05 or 1.0, bottom, top)
    out += grid_y(y, steps(0.0, y.high, 5), left, right)
    if not power.stacked:
        out += _shades(power.bands, x, top, bottom)
    below: list[float | None] = [0.0] * len(thin.t_s)
    for i, column in enumerate(tops):
        if power.stacked:
            out.append(
                el("path", d=_area(thin.t_s, below, column, x, y), class_=f"a{i % 6 + 1} edge")
            )
            below = column
        else:
            middle = [
                None if v is None else (x.at(t), y.at(v))
                for t, v in zip(thin.t_s, thin.means[i], strict=True)
            ]
            if thin.lows[i] is not thin.means[i]:
                out.append(
                    el(
                        "path",
                        d=_area(thin.t_s, thin.lows[i], thin.highs[i], x, y),
                        class_=f"a{i % 6 + 1} faint",
                    )
                )
            out.append(el("path", d=path(middle), class_=f"line l{i % 6 + 1}"))
    out.append(line(left, bottom, right, bottom, "axis"))
    out += _rail(power.bands, x, top, bottom, right)
    out += spaced(
        x,
        [(tick, mark_of(tick) if tick else "0") for tick in times(x.low, x.high, 8 if wide else 4)],
        bottom,
        width,
    )
    return bottom + 24.0, out


def _stacked(columns: Sequence[Sequence[float | None]]) -> list[list[float | None]]:
    """Each one's upper edge, open where any is unknown."""
    found: list[list[float | None]] = []
    base = [0.0] * (len(columns[0]) if columns else 0)
    for column in columns:
        found.append([None if v is None else b + v for b, v in zip(base, column, strict=True)])
        base = [b + (v or 0.0) for b, v in zip(base, column, strict=True)]
    # where one is not known the sum is not known either
    whole = [all(column[i] is not None for column in columns) for i in range(len(base))]
    return [
        [v if known else None for v, known in zip(column, whole, strict=True)] for column in found
    ]


def _area(
    t_s: Sequence[float],
    lows: Sequence[float | None],
    highs: Sequence[float | None],
    x: Scale,
    y: Scale,
) -> str:
    out, i = "", 0
    while i < len(t_s):
        if highs[i] is None or lows[i] is None:
            i += 1
            continue
        j = i
        while j < len(t_s) and highs[j] is not None and lows[j] is not None:
            j += 1
        there: list[tuple[float, float] | None] = [
            (x.at(t_s[k]), y.at(highs[k] or 0.0)) for k in range(i, j)
        ]
        back: list[tuple[float, float] | None] = [
            (x.at(t_s[k]), y.at(lows[k] or 0.0)) for k in reversed(range(i, j))
        ]
        out += path([*there, *back]) + "Z"
        i = j
    return out


def _drains(b: Band) -> bool:
    return b.durable_s is not None and b.durable_s > (
        b.begin_s if b.stall_end_s is None else b.stall_end_s
    )


def _edges(b: Band, x: Scale) -> tuple[float, float, float]:
    begin = x.at(b.begin_s)
    middle = begin if b.stall_end_s is None else x.at(b.stall_end_s)
    return begin, middle, x.at(b.durable_s) if b.durable_s is not None and _drains(b) else middle


def _shades(bands: Sequence[Band], x: Scale, top: float, bottom: float) -> list[Markup]:
    """Behind lines. Stacked areas would hide them."""
    out: list[Markup] = []
    for begin, middle, end in (_edges(b, x) for b in bands):
        out += [
            box(begin, top, middle - begin, bottom - top, "stall faint"),
            box(middle, top, end - middle, bottom - top, "drain faint"),
        ]
    return out


def _rail(bands: Sequence[Band], x: Scale, top: float, bottom: float, right: float) -> list[Markup]:
    """The checkpoints in a strip above the picture, their names where there is room, and a thin
    line down from where each begins."""
    out: list[Markup] = []
    free = -math.inf
    few = len(bands) <= 60
    for b in bands:
        begin, middle, end = _edges(b, x)
        out.append(box(begin, top - 12, max(middle - begin, 1.0), 9, "stall"))
        out += [box(middle, top - 12, end - middle, 9, "drain")] if end > middle else []
        out += [line(begin, top - 3, begin, bottom, "cut")] if few else []
        words = clipped(b.name, 110.0)
        if begin >= free and begin + words_px(words) <= right + 4:
            out.append(said(begin, top - 17, words, "dim"))
            free = begin + words_px(words) + 10
    return out


def band_rows(bands: Sequence[Band]) -> list[tuple[str, ...]]:
    """The checkpoints in words: name, begins, training held up, until it is safe."""
    return [
        (
            b.name,
            mark_of(b.begin_s) if b.begin_s else "0 s",
            duration(None if b.stall_end_s is None else b.stall_end_s - b.begin_s),
            duration(None if b.durable_s is None else b.durable_s - b.begin_s),
        )
        for b in bands
    ]


def in_words(power: Power) -> str:
    told = []
    for each in power.lines:
        values = [v for v in map(finite, each.values) if v is not None]
        told.append(
            f"{each.name} from {number(min(values))} to {number(max(values))}"
            f" W{_give_or_take(each)}"
            if values
            else f"{each.name} not known"
        )
    return "; ".join(told) + (f"; {len(power.bands)} checkpoints" if power.bands else "")


def _give_or_take(line: Line) -> str:
    """How far off the worst known point may be."""
    known = [
        max(high - value, value - low)
        for value, low, high in zip(line.values, line.lows, line.highs, strict=False)
        if value is not None and low is not None and high is not None
    ]
    return f" (each mean +-{number(max(known))} W or less)" if known else ""
