"""Emissions by hour, or by so many hours: bars of the location-based ones under a line of the
grid's factor."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from ckptcost.present.amounts import number
from ckptcost.report.html.markup import Markup, el
from ckptcost.report.html.svg_axis import (
    Drawn,
    Scale,
    box,
    clock,
    grid_y,
    legend,
    line,
    path,
    spaced,
    steps,
)
from ckptcost.report.statement import Series, instant, utc

MOST_BARS, MOST_NARROW = 500, 120


class Bin(NamedTuple):
    begin_s: float
    end_s: float
    kg: float | None
    """None: of this time nothing is known"""
    grid: float | None
    """kgCO2e per kWh, mean over the time"""


@lru_cache(maxsize=512)
def _day(text: str) -> float:
    return utc(text).timestamp()


def _unix(text: str) -> float:
    """As `utc`, but a day is read once: there may be a hundred thousand of these."""
    if len(text) != 20 or text[10] != "T" or text[-1] != "Z":
        return utc(text).timestamp()
    return (
        _day(text[:11] + "00:00:00Z")
        + 3600 * int(text[11:13])
        + 60 * int(text[14:16])
        + int(text[17:19])
    )


def hours(series: Series) -> list[Bin]:
    """Components of one time together."""
    first: dict[str, int] = {}
    kilograms: dict[str, float | None] = {}
    for i, (start, kg) in enumerate(
        zip(series.start, series.emissions_location_kgco2e, strict=True)
    ):
        first.setdefault(start, i)
        before = kilograms.get(start)
        kilograms[start] = before if kg is None else kg + (before or 0.0)
    found = []
    for start, i in first.items():
        begin = _unix(start)
        found.append(
            Bin(
                begin, begin + series.duration_s[i], kilograms[start], series.grid_kgco2e_per_kwh[i]
            )
        )
    return sorted(found)


def gathered(bins: list[Bin], most: int, width_s: float) -> tuple[list[Bin], float]:
    """At most so many, each of whole rows, and how long one is. Nothing is lost: the kilograms add
    up to the same."""
    if len(bins) <= most:
        return bins, width_s
    each = math.ceil((bins[-1].end_s - bins[0].begin_s) / width_s / (most - 1)) * width_s
    groups: dict[int, list[Bin]] = {}
    for one in bins:
        groups.setdefault(int(one.begin_s // each), []).append(one)
    found = []
    for group in groups.values():
        known = [b.kg for b in group if b.kg is not None]
        timed = [(b.grid, b.end_s - b.begin_s) for b in group if b.grid is not None]
        grid = (
            math.fsum(g * s for g, s in timed) / math.fsum(s for _, s in timed) if timed else None
        )
        found.append(
            Bin(group[0].begin_s, group[-1].end_s, math.fsum(known) if known else None, grid)
        )
    return found, each


def drawn(found: list[Bin], width_s: float, width: float) -> Drawn:
    """The grid's factor above, the kilograms below: two axes, one time."""
    wide = width > 600
    bins, _ = gathered(found, MOST_BARS if wide else MOST_NARROW, width_s)
    left, right, tall = (62.0, width - 10.0, 190.0) if wide else (44.0, width - 4.0, 140.0)
    x = Scale(bins[0].begin_s, bins[-1].end_s, left, right)
    out: list[Markup] = []
    y = 0.0
    if any(b.grid is not None for b in bins):
        named, high = legend(width, left, 14.0, [("factor of the grid, g/kWh", "line l2 whole")])
        y = high + 64.0
        out += [*named, *_factor(bins, x, high, y)]
        y += 12.0
    unknown = [("not known", "hollow")] * any(b.kg is None for b in bins)
    named, high = legend(
        width, left, y + 14.0, [("emissions, kgCO2e, location-based", "a2"), *unknown]
    )
    top, bottom = y + high, y + high + tall
    out += [*named, *_bars(bins, x, top, bottom)]
    out += spaced(x, clock(x.low, x.high, 8 if wide else 4), bottom, width)
    return bottom + 24.0, out


def _factor(bins: list[Bin], x: Scale, top: float, bottom: float) -> list[Markup]:
    """In steps; from zero, so that its swing is seen for what it is."""
    most = max(b.grid for b in bins if b.grid is not None) * 1000
    y = Scale(0.0, most * 1.1 or 1.0, bottom, top)
    points: list[tuple[float, float] | None] = []
    for b in bins:
        if b.grid is None:
            points.append(None)
        else:
            points += [(x.at(b.begin_s), y.at(b.grid * 1000)), (x.at(b.end_s), y.at(b.grid * 1000))]
    return [
        *grid_y(y, steps(0.0, y.high, 2), x.begin, x.end),
        el("path", d=path(points), class_="line l2 whole"),
    ]


def _bars(bins: list[Bin], x: Scale, top: float, bottom: float) -> list[Markup]:
    known = [b.kg for b in bins if b.kg is not None]
    y = Scale(min([*known, 0.0]), max([*known, 0.0]) * 1.06 or 1.0, bottom, top)
    out = grid_y(y, steps(y.low, y.high, 4), x.begin, x.end)
    gap = 0.12 if len(bins) <= 150 else 0.0
    for b in bins:
        begin, wide = x.at(b.begin_s), x.at(b.end_s) - x.at(b.begin_s)
        if b.kg is None:
            out.append(box(begin, top, wide, bottom - top, "hollow"))
        else:
            a, z = sorted((y.at(b.kg), y.at(0.0)))
            out.append(box(begin + wide * gap / 2, a, max(wide * (1 - gap), 0.4), z - a, "a2"))
    return [*out, line(x.begin, y.at(0.0), x.end, y.at(0.0), "axis")]


def in_words(bins: list[Bin]) -> str:
    known = [b.kg for b in bins if b.kg is not None]
    grids = [b.grid * 1000 for b in bins if b.grid is not None]
    told = [f"{len(bins)} bars from {instant(bins[0].begin_s)} to {instant(bins[-1].end_s)}"]
    told += (
        [
            f"{number(math.fsum(known))} kgCO2e in all, {number(min(known))} to"
            f" {number(max(known))} a bar"
        ]
        if known
        else ["emissions not known"]
    )
    told += [f"grid factor {number(min(grids))} to {number(max(grids))} g/kWh"] if grids else []
    return "; ".join(told)
