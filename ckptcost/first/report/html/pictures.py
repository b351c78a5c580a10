"""What a total is made of, as steps from line to line, and what each interval costs. Each picture
says in words what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate
from types import MappingProxyType
from typing import NamedTuple

from ckptcost.first.present.amounts import drawn_between, number, share
from ckptcost.first.report.html.markup import Child, Markup, el, join, section, small
from ckptcost.first.report.html.svg import (
    Drawn,
    PlotLine,
    PlotScale,
    axis,
    clip_words,
    decades,
    figure,
    finite,
    grid_y,
    known_of,
    legend,
    line,
    mark_of,
    path_of,
    plot_area,
    rows_of,
    span_words,
    steps,
    svg_text,
    svg_text_on_plate,
    times,
    words_px,
)

# ---- what a total is made of

NOT_KNOWN = "not known"
MOST_WIDE = 8.0
"""times the steps that a range may take of the picture"""
CAUSES = {"save": "saving", "failure": "failures", "keep": "keeping"}


class FallStep(NamedTuple):
    label: str
    value: float | None
    """None: not known, said and not drawn"""
    cause: str = "save"


class Fall(NamedTuple):
    """A total and the lines that it is the sum of."""

    unit: str
    steps: Sequence[FallStep]
    total: float | None
    low: float | None = None
    high: float | None = None
    """None beside a low end: without bound"""
    name: str = ""
    remark: str = ""
    """what else there is to say of the total"""


def falls(at: str, told: Sequence[Fall], level: int) -> Markup | None:
    """A picture for each quantity: radio buttons choose on a screen, paper shows all."""
    if not told:
        return None
    chosen: list[Child] = []
    for n, each in enumerate(told, 1):
        mine = f"{at}fall-{n}"
        chosen += [
            el("input", type="radio", name=f"{at}fall", id=mine, checked=n == 1),
            el("label", each.name, for_=mine),
        ]
    shown = [
        el("div", fall_figure(each), class_=f"panel panel-{n}") for n, each in enumerate(told, 1)
    ]
    inside = el("fieldset", el("legend", "What to show"), chosen, shown, class_="switch")
    return section(f"{at}steps", "Where it goes", inside, level=level)


def fall_figure(fall: Fall) -> Markup:
    """A bar for each line, which begins where the one before ended, and one for the total. It is
    text with bars beside it, which fits any width."""
    ends = reach(fall)
    shown = [step for step in fall.steps if step.value != 0]
    is_several = len({step.cause for step in shown if step.value}) > 1
    whole = fall.total if all((step.value or 0.0) >= 0 for step in shown) else None
    rows, at = [], 0.0
    for step in shown:
        cause = CAUSES.get(step.cause) if is_several else None
        named = join([step.label, small(cause)])
        if step.value is None:
            rows.append(_bar_row(named, None, NOT_KNOWN))
            continue
        drawn = _bar(at, at + step.value, ends, f"f-{step.cause}")
        part = f" ({share(step.value / whole)})" if whole else ""
        rows.append(_bar_row(named, drawn, number(step.value) + part))
        at += step.value
    bars = el("ul", rows, _total_row(fall, ends), class_="bars")
    return el("figure", bars, el("figcaption", _caption(fall)))


def reach(fall: Fall) -> tuple[float, float]:
    """From where to where the steps go, and the range of the total; one that would leave nothing
    to be seen of the steps goes on beyond the picture."""
    ends = [0.0, *accumulate(step.value or 0.0 for step in fall.steps), fall.total or 0.0]
    low, high = min(ends), max(ends)
    if fall.high is not None:
        high = max(high, min(fall.high, high * MOST_WIDE))
    return low, high if high > low else low + 1.0


def _total_row(fall: Fall, ends: tuple[float, float]) -> Markup:
    """The total with its range, which goes on beyond the picture where it is open."""
    named = f"total, {fall.unit.partition(',')[0]}"
    if fall.total is None:
        return _bar_row(named, None, NOT_KNOWN, "total")
    drawn, words = [_bar(0.0, fall.total, ends, "f-total")], number(fall.total)
    if fall.low is not None and fall.low != fall.high:
        is_open = fall.high is None or fall.high > ends[1]
        far = ends[1] if fall.high is None else fall.high
        drawn.append(_bar(fall.low, far, ends, "range open" if is_open else "range"))
        words += f" ({drawn_between(fall.low, fall.high) or f'>{number(fall.low)}'})"
    return _bar_row(named, drawn, words, "total")


def _bar(begin: float, end: float, ends: tuple[float, float], class_: str) -> Markup:
    low, high = ends
    a, b = sorted(min(max(each, low), high) for each in (begin, end))
    left, wide = (100.0 * each / (high - low) for each in (a - low, b - a))
    return el("span", class_=class_, style=f"left:{left:.2f}%;width:{wide:.2f}%")


def _bar_row(named: Child, drawn: Child, amount: str, class_: str | None = None) -> Markup:
    label, track = el("span", named, class_="label"), el("span", drawn, class_="track")
    return el("li", label, track, el("span", amount, class_="amount"), class_=class_)


def _caption(fall: Fall) -> list[Child]:
    known = NOT_KNOWN if fall.total is None else f"{number(fall.total)} {fall.unit}"
    zero = ", ".join(step.label for step in fall.steps if step.value == 0)
    words = filter(None, [f"total {known}", fall.remark, f"zero: {zero}" if zero else ""])
    return [el("b", f"{fall.name}, {fall.unit}"), f": {'; '.join(words)}."]


# ---- what each interval costs


class IntervalPicture(NamedTuple):
    """What it costs at each interval."""

    x_s: Sequence[float]
    """rising"""
    lines: Sequence[PlotLine]
    now_s: float | None = None
    best_s: Mapping[str, float | None] = MappingProxyType({})
    """best intervals, by what they are best for"""
    note: str = ""


class IntervalMark(NamedTuple):
    """An upright line through all panels."""

    at_s: float
    words: str
    class_: str


class MarkLabel(NamedTuple):
    mark: IntervalMark
    words: str
    begin: float
    y: float


def interval(at: str, of: IntervalPicture | None, level: int) -> Markup | None:
    if of is None or not of.x_s or not of.lines:
        return None
    title = "What each interval between saves costs"
    drawing = figure(
        f"{at}curve-svg", title, curve_words(of), partial(draw_curve, of), of.note or None
    )
    return section(f"{at}interval", "How often to save", drawing, level=level)


def marks(curve: IntervalPicture) -> list[IntervalMark]:
    """The interval in use and the best ones; names whose best is the same interval share one."""
    best: dict[float, list[str]] = {}
    for name, value in curve.best_s.items():
        known = finite(value)
        if known is not None and known > 0:
            place = next((at for at in best if abs(at - known) <= 0.005 * known), known)
            best.setdefault(place, []).append(name)
    found = [IntervalMark(at, "best for " + ", ".join(names), "best") for at, names in best.items()]
    now = finite(curve.now_s)
    return sorted(
        [*found, IntervalMark(now, "in use", "now")] if now is not None and now > 0 else found
    )


def _x_scale(curve: IntervalPicture, left: float, right: float) -> PlotScale:
    seen = [x for x in (*known_of(curve.x_s), *(mark.at_s for mark in marks(curve))) if x > 0]
    low, high = min(seen, default=1.0), max(seen, default=2.0)
    if high <= low:
        return PlotScale(low * 0.5, high * 1.5, left, right)
    return PlotScale(low, high, left, right, log=high / low > 12)


def _y_scale(lines: Sequence[PlotLine], begin: float, end: float) -> tuple[PlotScale, list[float]]:
    values = [v for each in lines for v in known_of(each.values)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low > 0 and high / low > 8:
        return PlotScale(low * 0.9, high * 1.1, begin, end, log=True), decades(
            low * 0.9, high * 1.1
        )
    floor = 0.0 if 0 <= low < 0.6 * high else low - 0.06 * (high - low)
    top = high + 0.06 * (high - floor) if high > floor else floor + 1.0
    return PlotScale(floor, top, begin, end), steps(floor, top, 4)


def draw_curve(curve: IntervalPicture, width: float) -> Drawn:
    """One panel a unit above one axis of intervals, marked across all."""
    is_wide, left, right, tall = plot_area(width, 128.0)
    x = _x_scale(curve, left, right)
    labels, top = _labels(marks(curve), x)
    out, bottom = _panels(curve, x, width, top, tall)
    for mark, _, _, y in labels:
        out.append(line(x.at(mark.at_s), y + 4, x.at(mark.at_s), bottom, mark.class_))
    for mark, words, begin, y in labels:
        out += svg_text_on_plate(begin, y, words, "strong" if mark.class_ == "now" else "")
    ticks = [(tick, mark_of(tick)) for tick in times(x.low, x.high, 7 if is_wide else 4, x.log)]
    out += axis(x, ticks, bottom, width)
    out.append(svg_text(right, bottom + 34, "interval between saves", "dim end"))
    return bottom + 40.0, out


def _labels(marked: Sequence[IntervalMark], x: PlotScale) -> tuple[list[MarkLabel], float]:
    """The words of each mark in rows above the panels, none on another, and how high that is."""
    found = []
    for mark in marked:
        words = clip_words(f"{mark.words}: {mark_of(mark.at_s)}", x.end - x.begin)
        found.append(MarkLabel(mark, words, min(x.at(mark.at_s), x.end - words_px(words)), 0.0))
    found.sort(key=lambda label: label.begin)
    places = rows_of([(each.begin, each.begin + words_px(each.words) + 14) for each in found])
    shown = [each._replace(y=12.0 + 16.0 * row) for each, row in zip(found, places, strict=True)]
    return shown, 16.0 * (max(places, default=-1) + 1) + 8.0


def _panels(
    curve: IntervalPicture, x: PlotScale, width: float, y: float, tall: float
) -> tuple[list[Markup], float]:
    """The lines, those of one unit on one axis, and where the last panel ends."""
    units: dict[str, list[tuple[int, PlotLine]]] = {}
    for n, each in enumerate(curve.lines):
        units.setdefault(each.unit, []).append((n % 6 + 1, each))
    out: list[Markup] = []
    bottom = y
    for unit, lines in units.items():
        of = f" ({unit})" if unit else ""
        entries = [(f"{each.name}{of}", f"line l{n}") for n, each in lines]
        named, high = legend(width, x.begin, y + 14, entries)
        bottom = y + high + tall
        scale, ticks = _y_scale([each for _, each in lines], bottom, y + high)
        out += [*named, *grid_y(scale, ticks, x.begin, x.end)]
        for n, each in lines:
            out.append(el("path", d=path_of(curve.x_s, each.values, x, scale), class_=f"line l{n}"))
        y = bottom + 14
    return out, bottom


def curve_words(curve: IntervalPicture) -> str:
    """What the picture shows, for those who do not see it."""
    best = "; ".join(f"{mark.words} {mark_of(mark.at_s)}" for mark in marks(curve))
    ends = [
        f"{each.name} from {span_words(values)} {each.unit}".rstrip()
        for each in curve.lines
        if (values := known_of(each.values))
    ]
    return ". ".join(filter(None, ("; ".join(ends), best)))
