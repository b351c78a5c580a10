"""A bill as steps from nothing to its total, one row a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ckptcost.present.amounts import drawn_between, number, share
from ckptcost.report.html.markup import Markup
from ckptcost.report.html.svg_axis import (
    Drawn,
    Scale,
    box,
    clipped,
    legend,
    line,
    plated,
    said,
    steps,
    words_px,
)

MOST_WIDE = 8.0
"""times the steps that a range may take of the picture"""
CAUSES = {"save": "saving", "failure": "failures", "keep": "keeping"}


class Step(NamedTuple):
    label: str
    value: float | None
    """None: not known, said and not drawn"""
    cause: str


class Fall(NamedTuple):
    unit: str
    steps: Sequence[Step]
    total: float | None
    low: float | None = None
    high: float | None = None
    """None beside a low end: without bound"""


def reach(fall: Fall) -> tuple[float, float]:
    """From where to where the steps go, and the range of the total; one that would leave nothing
    to be seen of the steps goes on beyond the picture."""
    at, ends = 0.0, [0.0, fall.total or 0.0]
    for step in fall.steps:
        at += step.value or 0.0
        ends.append(at)
    low, high = min(ends), max(ends)
    high = max(high, min(fall.high, high * MOST_WIDE)) if fall.high is not None else high
    return low, high if high > low else low + 1.0


def drawn(fall: Fall, width: float) -> Drawn:
    """Steps of one quantity. On a narrow page the words stand above the bars."""
    wide = width > 600
    left, right, row_h, bar_h = (230.0, 128.0, 27.0, 17.0) if wide else (4.0, 64.0, 38.0, 13.0)
    low, high = reach(fall)
    x = Scale(low, high, left, width - right)
    causes = list(dict.fromkeys(step.cause for step in fall.steps if step.value))
    out, top = (
        legend(width, left, 14.0, [(CAUSES.get(c, c), f"f-{c}") for c in causes])
        if len(causes) > 1
        else ([], 4.0)
    )
    bottom = top + row_h * (len(fall.steps) + 1) + 4.0
    for tick in steps(low, high, 5 if wide else 3):
        out += [
            line(x.at(tick), top, x.at(tick), bottom, "axis" if tick == 0 else "g"),
            said(x.at(tick), bottom + 16, number(tick), "dim mid"),
        ]
    at, y = 0.0, top
    whole = (
        fall.total if fall.total and all((step.value or 0.0) >= 0 for step in fall.steps) else None
    )
    for step in fall.steps:
        bar_y = y + (5.0 if wide else 19.0)
        out += _label(step.label, y, left, width, wide)
        if step.value is None:
            out.append(said(x.at(at) + 6, bar_y + (13 if wide else 11), "not known", "dim"))
        else:
            begin, end = x.at(at), x.at(at + step.value)
            out.append(
                box(min(begin, end), bar_y, max(abs(end - begin), 1.2), bar_h, f"f-{step.cause}")
            )
            out.append(line(end, bar_y + bar_h, end, bar_y + row_h, "hang"))
            out.append(_amount(step.value, whole, max(begin, end), bar_y, bar_h, width, wide))
            at += step.value
        y += row_h
    return bottom + 24.0, [*out, *_total(fall, x, y, bar_h, left, width, wide)]


def _label(
    words: str, y: float, left: float, width: float, wide: bool, class_: str = ""
) -> list[Markup]:
    if wide:
        return [said(left - 10, y + 18, clipped(words, left - 14), f"end {class_}".strip())]
    return plated(left + 4, y + 14, clipped(words, width - left - 8), class_)


def _amount(
    value: float,
    whole: float | None,
    end: float,
    y: float,
    bar_h: float,
    width: float,
    wide: bool,
) -> Markup:
    words = number(value) + (f" ({share(value / whole)})" if wide and whole else "")
    return _said_beside(words, end, y, bar_h, width)


def _said_beside(
    words: str, end: float, y: float, bar_h: float, width: float, class_: str = ""
) -> Markup:
    return said(
        min(end + 7, width - words_px(words) * (1.14 if class_ else 1.0) - 1),
        y + bar_h / 2 + 4.5,
        words,
        class_,
    )


def _total(
    fall: Fall, x: Scale, y: float, bar_h: float, left: float, width: float, wide: bool
) -> list[Markup]:
    bar_y = y + (5.0 if wide else 19.0)
    out = _label(f"total, {fall.unit}", y, left, width, wide, "strong")
    if fall.total is None:
        return [*out, said(x.at(0.0) + 6, bar_y + bar_h / 2 + 4.5, "not known", "strong")]
    begin, end = sorted((x.at(0.0), x.at(fall.total)))
    out.append(box(begin, bar_y, max(end - begin, 1.2), bar_h, "f-total"))
    if fall.low is not None and fall.low != fall.high:
        far = x.high if fall.high is None else min(fall.high, x.high)
        a, b, middle = (
            x.at(min(max(fall.low, x.low), x.high)),
            x.at(max(far, x.low)),
            bar_y + bar_h + 4,
        )
        out += [
            line(a, middle, b, middle, "whisker"),
            line(a, middle - 3, a, middle + 3, "whisker"),
        ]
        if far == fall.high:
            out.append(line(b, middle - 3, b, middle + 3, "whisker"))
        else:  # an arrow: it goes on
            out += [
                line(b - 5, middle - 4, b, middle, "whisker"),
                line(b - 5, middle + 4, b, middle, "whisker"),
            ]
        end = max(end, b)
    words = number(fall.total)
    if wide and fall.low is not None and fall.low != fall.high:
        # beside the end of the range the amount alone would look like what the range ends at
        words += f" ({drawn_between(fall.low, fall.high) or f'>{number(fall.low)}'})"
    out.append(_said_beside(words, end, bar_y, bar_h, width, "strong"))
    return out
