"""What a total is made of, as steps from line to line, and what each interval costs. Each picture
says in words what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from ckptcost.present.amounts import drawn_between, number, share
from ckptcost.report.html.markup import Child, Markup, el, section
from ckptcost.report.html.svg import (
    NARROWEST,
    Drawn,
    Line,
    Scale,
    box,
    clipped,
    decades,
    figure,
    finite,
    grid_y,
    known_of,
    legend,
    line,
    mark_of,
    path_of,
    plated,
    rows_of,
    said,
    spaced,
    span_words,
    steps,
    times,
    words_px,
)

# ---- what a total is made of

MOST_WIDE = 8.0
"""times the steps that a range may take of the picture"""
CAUSES = {"save": "saving", "failure": "failures", "keep": "keeping"}


class Step(NamedTuple):
    label: str
    value: float | None
    """None: not known, said and not drawn"""
    cause: str = "save"


class Fall(NamedTuple):
    """A total and the lines that it is the sum of."""

    unit: str
    steps: Sequence[Step]
    total: float | None
    low: float | None = None
    high: float | None = None
    """None beside a low end: without bound"""
    name: str = ""
    remark: str = ""
    """what else there is to say of the total"""

    def drawn_steps(self) -> list[Step]:
        """All but those that are zero, which are named in words."""
        return [step for step in self.steps if step.value != 0]

    def is_ranged(self) -> bool:
        return self.low is not None and self.low != self.high


class Room(NamedTuple):
    """Where the bars of a total lie."""

    width: float
    wide: bool
    left: float
    right: float
    row_px: float
    bar_px: float
    bar_top: float
    """below the top of its row; on a narrow page the words stand above the bar"""


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
        el("div", fall_figure(f"{at}fall-{n}-svg", each), class_=f"panel panel-{n}")
        for n, each in enumerate(told, 1)
    ]
    inside = el("fieldset", el("legend", "What to show"), chosen, shown, class_="switch")
    return section(f"{at}steps", "Where it goes", inside, level=level)


def fall_figure(at: str, fall: Fall) -> Markup:
    total = f"total {_amount(fall.total)}"
    told = "; ".join([*(f"{s.label} {_amount(s.value)}" for s in fall.drawn_steps()), total])
    zero = ", ".join(step.label for step in fall.steps if step.value == 0)
    unit = f" {fall.unit}" if fall.total is not None else ""
    words = [f"{total}{unit}", fall.remark, f"zero: {zero}" if zero else ""]
    caption = [el("b", f"{fall.name}, {fall.unit}"), f": {'; '.join(filter(None, words))}."]
    title = f"{fall.name}: from each line to the total, {fall.unit}"
    return figure(at, title, told + unit, partial(draw_fall, fall), caption)


def _amount(value: float | None) -> str:
    return "not known" if value is None else number(value)


def reach(fall: Fall) -> tuple[float, float]:
    """From where to where the steps go, and the range of the total; one that would leave nothing
    to be seen of the steps goes on beyond the picture."""
    at, ends = 0.0, [0.0, fall.total or 0.0]
    for step in fall.steps:
        at += step.value or 0.0
        ends.append(at)
    low, high = min(ends), max(ends)
    if fall.high is not None:
        high = max(high, min(fall.high, high * MOST_WIDE))
    return low, high if high > low else low + 1.0


def draw_fall(fall: Fall, width: float) -> Drawn:
    wide = width > NARROWEST
    room = (
        Room(width, wide, 248.0, width - 128.0, 27.0, 17.0, 5.0)
        if wide
        else Room(width, wide, 4.0, width - 64.0, 38.0, 13.0, 19.0)
    )
    low, high = reach(fall)
    x = Scale(low, high, room.left, room.right)
    shown = fall.drawn_steps()
    causes = list(dict.fromkeys(step.cause for step in shown if step.value))
    named = [(CAUSES.get(c, c), f"f-{c}") for c in causes] if len(causes) > 1 else []
    out, top = legend(width, room.left, 14.0, named)
    top = max(top, 4.0)
    bottom = top + room.row_px * (len(shown) + 1) + 4.0
    for tick in steps(low, high, 5 if wide else 3):
        out.append(line(x.at(tick), top, x.at(tick), bottom, "axis" if tick == 0 else "g"))
        out.append(said(x.at(tick), bottom + 16, number(tick), "dim mid"))
    at, parts = 0.0, fall.total if all((step.value or 0.0) >= 0 for step in shown) else None
    for n, step in enumerate(shown):
        out += _bar(step, x, at, top + n * room.row_px, room, parts)
        at += step.value or 0.0
    out += _total_bar(fall, x, top + len(shown) * room.row_px, room)
    return bottom + 24.0, out


def _bar(
    step: Step, x: Scale, at: float, y: float, room: Room, whole: float | None
) -> list[Markup]:
    """A line of the bill, beginning where the one before ended."""
    out, top = _label(step.label, y, room), y + room.bar_top
    if step.value is None:
        return [*out, said(x.at(at) + 6, top + room.bar_px / 2 + 4.5, "not known", "dim")]
    begin, end = x.at(at), x.at(at + step.value)
    part = f" ({share(step.value / whole)})" if room.wide and whole else ""
    return [
        *out,
        box(min(begin, end), top, max(abs(end - begin), 1.2), room.bar_px, f"f-{step.cause}"),
        line(end, top + room.bar_px, end, top + room.row_px, "hang"),
        _beside(number(step.value) + part, max(begin, end), top, room),
    ]


def _label(words: str, y: float, room: Room, class_: str = "") -> list[Markup]:
    if room.wide:
        return [said(room.left - 10, y + 18, clipped(words, room.left - 14), f"end {class_}")]
    return plated(room.left + 4, y + 14, clipped(words, room.width - room.left - 8), class_)


def _beside(words: str, end: float, top: float, room: Room, class_: str = "") -> Markup:
    """Words to the right of a bar, or as far right as they fit; bold ones are wider."""
    most = room.width - words_px(words) * (1.12 if class_ else 1.0) - 1
    return said(min(end + 7, most), top + room.bar_px / 2 + 4.5, words, class_)


def _total_bar(fall: Fall, x: Scale, y: float, room: Room) -> list[Markup]:
    out, top = _label(f"total, {fall.unit.partition(',')[0]}", y, room, "strong"), y + room.bar_top
    if fall.total is None:
        return [*out, said(x.at(0.0) + 6, top + room.bar_px / 2 + 4.5, "not known", "strong")]
    begin, end = sorted((x.at(0.0), x.at(fall.total)))
    out.append(box(begin, top, max(end - begin, 1.2), room.bar_px, "f-total"))
    words = number(fall.total)
    if fall.low is not None and fall.is_ranged():
        whisker, far = _whisker(fall.low, fall.high, x, top + room.bar_px + 4)
        out += whisker
        end = max(end, far)
        if room.wide:
            # beside the end of the range the amount alone would look like what the range ends at
            words += f" ({drawn_between(fall.low, fall.high) or f'>{number(fall.low)}'})"
    return [*out, _beside(words, end, top, room, "strong")]


def _whisker(low: float, high: float | None, x: Scale, middle: float) -> tuple[list[Markup], float]:
    """The range of a total and where it ends; an arrow where it goes on."""
    a = x.at(min(max(low, x.low), x.high))
    b = x.at(x.high if high is None else max(min(high, x.high), x.low))
    out = [line(a, middle, b, middle, "whisker"), line(a, middle - 3, a, middle + 3, "whisker")]
    if high is not None and high <= x.high:
        return [*out, line(b, middle - 3, b, middle + 3, "whisker")], b
    arrow = [line(b - 5, middle + side, b, middle, "whisker") for side in (-4, 4)]
    return [*out, *arrow], b


# ---- what each interval costs


class Curve(NamedTuple):
    """What it costs at each interval."""

    x_s: Sequence[float]
    """rising"""
    lines: Sequence[Line]
    now_s: float | None = None
    best_s: Mapping[str, float | None] = MappingProxyType({})
    """best intervals, by what they are best for"""
    note: str = ""


class Mark(NamedTuple):
    """An upright line through all panels."""

    at_s: float
    words: str
    class_: str


def interval(at: str, of: Curve | None, level: int) -> Markup | None:
    if of is None or not of.x_s or not of.lines:
        return None
    title = "What each interval between saves costs"
    drawing = figure(
        f"{at}curve-svg", title, curve_words(of), partial(draw_curve, of), of.note or None
    )
    return section(f"{at}interval", "How often to save", drawing, level=level)


def marks(curve: Curve) -> list[Mark]:
    """The interval in use and the best ones; names whose best is the same interval share one."""
    best: dict[float, list[str]] = {}
    for name, value in curve.best_s.items():
        known = finite(value)
        if known is not None and known > 0:
            place = next((at for at in best if abs(at - known) <= 0.005 * known), known)
            best.setdefault(place, []).append(name)
    found = [Mark(at, "best for " + ", ".join(names), "best") for at, names in best.items()]
    now = finite(curve.now_s)
    return sorted([*found, Mark(now, "in use", "now")] if now is not None and now > 0 else found)


def _x_scale(curve: Curve, left: float, right: float) -> Scale:
    seen = [x for x in (*known_of(curve.x_s), *(mark.at_s for mark in marks(curve))) if x > 0]
    low, high = min(seen, default=1.0), max(seen, default=2.0)
    if high <= low:
        return Scale(low * 0.5, high * 1.5, left, right)
    return Scale(low, high, left, right, log=high / low > 12)


def _y_scale(lines: Sequence[Line], begin: float, end: float) -> tuple[Scale, list[float]]:
    values = [v for each in lines for v in known_of(each.values)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low > 0 and high / low > 8:
        return Scale(low * 0.9, high * 1.1, begin, end, log=True), decades(low * 0.9, high * 1.1)
    floor = 0.0 if 0 <= low < 0.6 * high else low - 0.06 * (high - low)
    top = high + 0.06 * (high - floor) if high > floor else floor + 1.0
    return Scale(floor, top, begin, end), steps(floor, top, 4)


def draw_curve(curve: Curve, width: float) -> Drawn:
    """One panel a unit above one axis of intervals, marked across all."""
    wide = width > NARROWEST
    left, right, tall = (62.0, width - 16.0, 128.0) if wide else (46.0, width - 6.0, 104.0)
    x = _x_scale(curve, left, right)
    marked = marks(curve)
    labels = [clipped(f"{mark.words}: {mark_of(mark.at_s)}", right - left) for mark in marked]
    begins = [
        min(x.at(mark.at_s), right - words_px(label))
        for mark, label in zip(marked, labels, strict=True)
    ]
    spans = sorted(
        (begin, begin + words_px(label) + 14, i)
        for i, (begin, label) in enumerate(zip(begins, labels, strict=True))
    )
    places = rows_of([(begin, end) for begin, end, _ in spans])
    level_of = {i: level for (_, _, i), level in zip(spans, places, strict=True)}
    top = 16.0 * (max(places, default=-1) + 1) + 8.0
    out, bottom = _panels(curve, x, width, top, tall)
    tops = [12.0 + 16.0 * level_of[i] for i in range(len(marked))]
    for mark, y in zip(marked, tops, strict=True):
        out.append(line(x.at(mark.at_s), y + 4, x.at(mark.at_s), bottom, mark.class_))
    for mark, y, begin, label in zip(marked, tops, begins, labels, strict=True):
        out += plated(begin, y, label, "strong" if mark.class_ == "now" else "")
    ticks = [(tick, mark_of(tick)) for tick in times(x.low, x.high, 7 if wide else 4, x.log)]
    out += [line(left, bottom, right, bottom, "axis"), *spaced(x, ticks, bottom, width)]
    out.append(said(right, bottom + 34, "interval between saves", "dim end"))
    return bottom + 40.0, out


def _panels(
    curve: Curve, x: Scale, width: float, y: float, tall: float
) -> tuple[list[Markup], float]:
    """The lines, those of one unit on one axis, and where the last panel ends."""
    units: dict[str, list[tuple[int, Line]]] = {}
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


def curve_words(curve: Curve) -> str:
    """What the picture shows, for those who do not see it."""
    best = "; ".join(f"{mark.words} {mark_of(mark.at_s)}" for mark in marks(curve))
    ends = [
        f"{each.name} from {span_words(values)} {each.unit}".rstrip()
        for each in curve.lines
        if (values := known_of(each.values))
    ]
    return ". ".join(filter(None, ("; ".join(ends), best)))
