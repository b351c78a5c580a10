"""What each interval costs: one panel a unit above one axis of intervals, with the interval in use
and the best ones across all."""

from __future__ import annotations

import math

from ckptcost.present.amounts import number
from ckptcost.report.html.extras import Curve, Line
from ckptcost.report.html.markup import Markup, el
from ckptcost.report.html.svg_axis import (
    Drawn,
    Scale,
    clipped,
    decades,
    grid_y,
    legend,
    line,
    mark_of,
    path,
    plated,
    rows_of,
    said,
    spaced,
    steps,
    times,
    words_px,
)


def finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def panels(curve: Curve) -> list[tuple[str, list[tuple[int, Line]]]]:
    """Lines by unit, each with its number."""
    found: dict[str, list[tuple[int, Line]]] = {}
    for n, each in enumerate(curve.lines):
        found.setdefault(each.unit, []).append((n % 6 + 1, each))
    return list(found.items())


def x_scale(curve: Curve, left: float, right: float) -> Scale:
    marks = [
        x
        for x in (*curve.x_s, curve.now_s, *curve.best_s.values())
        if x is not None and math.isfinite(x) and x > 0
    ]
    low, high = (min(marks), max(marks)) if marks else (1.0, 2.0)
    log = low > 0 and high / low > 12
    if high <= low:
        low, high = low * 0.5, high * 1.5 or 1.0
    return Scale(low, high, left, right, log)


def _y_scale(lines: list[tuple[int, Line]], begin: float, end: float) -> tuple[Scale, list[float]]:
    values = [v for _, each in lines for v in map(finite, each.values) if v is not None]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if low > 0 and high / low > 8:
        return Scale(low * 0.9, high * 1.1, begin, end, log=True), decades(low * 0.9, high * 1.1)
    floor = 0.0 if low >= 0 and low < 0.6 * high else low - 0.06 * (high - low)
    top = high + 0.06 * (high - floor) if high > floor else floor + 1.0
    return Scale(floor, top, begin, end), steps(floor, top, 4)


def rules(curve: Curve) -> list[tuple[float, str, str]]:
    """Vertical lines: where, words, class. Names whose best is the same interval share one."""
    best: dict[float, list[str]] = {}
    for name, value in curve.best_s.items():
        if (known := finite(value)) is not None and known > 0:
            place = next((at for at in best if abs(at - known) <= 0.005 * known), known)
            best.setdefault(place, []).append(name)
    found = [(at, "best for " + ", ".join(names), "best") for at, names in best.items()]
    now = finite(curve.now_s)
    return sorted([*found, (now, "in use", "now")] if now is not None and now > 0 else found)


def drawn(curve: Curve, width: float) -> Drawn:
    wide = width > 600
    left, right, tall = (62.0, width - 16.0, 128.0) if wide else (46.0, width - 6.0, 104.0)
    x = x_scale(curve, left, right)
    marked = rules(curve)
    labels = [clipped(f"{words}: {mark_of(at)}", right - left) for at, words, _ in marked]
    begins = [
        min(x.at(at), right - words_px(text))
        for (at, _, _), text in zip(marked, labels, strict=True)
    ]
    spans = sorted(
        (begin, begin + words_px(text) + 14, i)
        for i, (begin, text) in enumerate(zip(begins, labels, strict=True))
    )
    levels = dict(
        zip((i for _, _, i in spans), rows_of([(a, b) for a, b, _ in spans]), strict=True)
    )
    top = 16.0 * (max(levels.values(), default=-1) + 1) + 8.0
    out: list[Markup] = []
    y, bottom = top, top
    for unit, lines in panels(curve):
        named, high = legend(
            width,
            left,
            y + 14,
            [(f"{each.name}{f' ({unit})' if unit else ''}", f"line l{n}") for n, each in lines],
        )
        scale, ticks = _y_scale(lines, y + high + tall, y + high)
        out += [*named, *grid_y(scale, ticks, left, right)]
        for n, each in lines:
            values = [finite(v) for v in each.values]
            points = [
                (x.at(at), scale.at(v)) if v is not None and (not scale.log or v > 0) else None
                for at, v in zip(curve.x_s, values, strict=False)
            ]
            out.append(el("path", d=path(points), class_=f"line l{n}"))
        bottom = y + high + tall
        y = bottom + 14
    tops = [12.0 + 16.0 * levels[i] for i in range(len(marked))]
    out += [
        line(x.at(at), tops[i] + 4, x.at(at), bottom, class_)
        for i, (at, _, class_) in enumerate(marked)
    ]
    for i, (_, _, class_) in enumerate(marked):
        out += plated(begins[i], tops[i], labels[i], "strong" if class_ == "now" else "")
    out.append(line(left, bottom, right, bottom, "axis"))
    out += spaced(
        x,
        [(tick, mark_of(tick)) for tick in times(x.low, x.high, 7 if wide else 4, x.log)],
        bottom,
        width,
    )
    out.append(said(right, bottom + 34, "interval between saves", "dim end"))
    return bottom + 40.0, out


def in_words(curve: Curve) -> str:
    """What the picture shows, for those who do not see it."""
    best = "; ".join(f"{words} {mark_of(at)}" for at, words, _ in rules(curve))
    ends = "; ".join(
        f"{each.name} from {number(min(values))} to {number(max(values))} {each.unit}".rstrip()
        for each in curve.lines
        if (values := [v for v in map(finite, each.values) if v is not None])
    )
    return ". ".join(each for each in (ends, best) if each)
