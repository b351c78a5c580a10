"""Power over time with the checkpoints behind it, and emissions over time with the grid's factor.
Each picture says in words what it shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

from ckptcost.first.present.amounts import duration, number
from ckptcost.first.report.html.markup import Markup, el, section
from ckptcost.first.report.html.svg import (
    Drawn,
    PlotLine,
    PlotScale,
    axis,
    box,
    clip_words,
    clock,
    figure,
    finite,
    grid_y,
    known_of,
    legend,
    line,
    mark_of,
    path,
    path_of,
    plot_area,
    span_words,
    steps,
    svg_text,
    times,
    words_px,
)
from ckptcost.first.report.statement import Series, instant, utc

# ---- power over time


class SaveBand(NamedTuple):
    """A checkpoint in time, on the clock of the power."""

    name: str
    begin_s: float
    stall_end_s: float | None
    durable_s: float | None

    def edges(self) -> tuple[float, float, float]:
        """Begin, until when training was held up, until when the save was not safe."""
        middle = self.begin_s if self.stall_end_s is None else self.stall_end_s
        return self.begin_s, middle, max(middle, self.durable_s or middle)


class PowerPlot(NamedTuple):
    """Watts over time."""

    t_s: Sequence[float]
    lines: Sequence[PlotLine]
    bands: Sequence[SaveBand] = ()
    note: str = ""


def power(at: str, of: PowerPlot | None, level: int) -> Markup | None:
    if of is None or not of.t_s or not of.lines:
        return None
    words = power_words(of)
    drawing = figure(
        f"{at}power-svg", "Power over time", words, partial(draw_power, of), of.note or None
    )
    return section(f"{at}power", "Power and checkpoints", drawing, level=level)


def draw_power(power: PowerPlot, width: float) -> Drawn:
    """Lines with their ranges shaded, and the checkpoints behind them."""
    is_wide, left, right, tall = plot_area(width, 250.0)
    out, top = legend(width, left, 14.0, _entries(power))
    top += 30.0 if power.bands else 4.0
    bottom = top + tall
    x, y = _time_scale(power, left, right), _watt_scale(power, bottom, top)
    out += [*grid_y(y, steps(0.0, y.high, 5), left, right), *_bands(power.bands, x, y)]
    for n, each in enumerate(power.lines, 1):
        out += _line_with_range(n, power.t_s, each, x, y)
    marks = times(x.low, x.high, 8 if is_wide else 4)
    ticks = [(t, mark_of(t) if t else "0") for t in marks]
    return bottom + 24.0, [*out, *axis(x, ticks, bottom, width)]


def _time_scale(power: PowerPlot, left: float, right: float) -> PlotScale:
    ends = [*power.t_s, *(each for band in power.bands for each in band.edges())]
    first, last = min(ends), max(ends)
    return PlotScale(first, last if last > first else first + 1.0, left, right)


def _watt_scale(power: PowerPlot, bottom: float, top: float) -> PlotScale:
    watts = [w for each in power.lines for w in known_of([*each.values, *each.highs])]
    return PlotScale(0.0, max(watts, default=1.0) * 1.05 or 1.0, bottom, top)


def _entries(power: PowerPlot) -> list[tuple[str, str]]:
    """What the lines and shades mean."""
    found = [(f"{each.name} (W)", f"line l{n}") for n, each in enumerate(power.lines, 1)]
    if power.bands:
        found.append(("training held up", "stall"))
    edges = [band.edges() for band in power.bands]
    if any(end > middle for _, middle, end in edges):
        found.append(("until the save is safe", "drain"))
    return found


def _line_with_range(
    n: int, t_s: Sequence[float], of: PlotLine, x: PlotScale, y: PlotScale
) -> list[Markup]:
    """The n-th line, over a shade from low to high for each stretch in which both are known."""
    ends = zip(t_s, map(finite, of.lows), map(finite, of.highs), strict=False)
    shade = ""
    for known, stretch in groupby(ends, lambda row: None not in row):
        if known:
            rows = list(stretch)
            there = [(x.at(t), y.at(high or 0.0)) for t, _, high in rows]
            back = [(x.at(t), y.at(low or 0.0)) for t, low, _ in reversed(rows)]
            shade += path([*there, *back]) + "Z"
    drawn = el("path", d=path_of(t_s, of.values, x, y), class_=f"line l{n}")
    return [el("path", d=shade, class_=f"s{n} faint"), drawn] if shade else [drawn]


def _bands(bands: Sequence[SaveBand], x: PlotScale, y: PlotScale) -> list[Markup]:
    """The checkpoints, shaded behind the lines and in a strip above them, with their names where
    there is room, and a thin line down from where each begins unless they are many."""
    top, bottom = y.end, y.begin
    out: list[Markup] = []
    free = -math.inf
    for each in bands:
        begin, middle, end = map(x.at, each.edges())
        for at, until, class_ in ((begin, middle, "stall"), (middle, end, "drain")):
            out.append(box(at, top, until - at, bottom - top, f"{class_} faint"))
            out.append(box(at, top - 12, until - at, 9, class_))
        out.append(box(begin, top - 12, 1.0, 9, "stall"))
        if len(bands) <= 60:
            out.append(line(begin, top - 3, begin, bottom, "cut"))
        words = clip_words(each.name, 110.0)
        if begin >= free and begin + words_px(words) <= x.end + 4:
            out.append(svg_text(begin, top - 17, words, "dim"))
            free = begin + words_px(words) + 10
    return out


def power_words(power: PowerPlot) -> str:
    told = []
    for each in power.lines:
        values = known_of(each.values)
        if values:
            told.append(f"{each.name} from {span_words(values)} W{_give_or_take(each)}")
        else:
            told.append(f"{each.name} not known")
    return "; ".join([*told, f"{len(power.bands)} checkpoints"] if power.bands else told)


def _give_or_take(of: PlotLine) -> str:
    """How far off the worst known point may be."""
    rows = zip(of.values, of.lows, of.highs, strict=False)
    known = [
        max(h - v, v - low)
        for v, low, h in rows
        if v is not None and low is not None and h is not None
    ]
    return f" (each mean +-{number(max(known))} W or less)" if known else ""


# ---- emissions over time

MOST_BARS = 300


class Bin(NamedTuple):
    begin_s: float
    end_s: float
    kg: float | None
    """None: of this time nothing is known"""
    grid: float | None
    """kgCO2e per kWh, mean over the time"""


def emissions(at: str, series: Series | None, lacking: str, level: int) -> Markup | None:
    """Nothing where none are known: it is said above why."""
    if series is None or not any(kg is not None for kg in series.emissions_location_kgco2e):
        return None
    rows = hours(series)
    shown, each_s = together(rows, MOST_BARS, series.width_s)
    told = [f"Each bar is up to {duration(each_s)}, UTC; location-based."]
    if len(shown) < len(rows):
        told.append(
            f"{len(rows):,} rows of {duration(series.width_s)} are drawn together: kilograms added,"
            " the grid's factor averaged over time."
        )
    if lacking:
        told.append(f"Not in it because unknown: {lacking}.")
    drawing = figure(
        f"{at}hours-svg",
        "Emissions by time, with the factor of the grid",
        emissions_words(shown),
        partial(draw_emissions, shown),
        " ".join(told),
    )
    return section(f"{at}hours", "Emissions by time", drawing, level=level)


def hours(series: Series) -> list[Bin]:
    """Components of one time together."""
    found: dict[str, Bin] = {}
    for start, length_s, kg, grid in zip(
        series.start,
        series.duration_s,
        series.emissions_location_kgco2e,
        series.grid_kgco2e_per_kwh,
        strict=True,
    ):
        so_far = found.get(start)
        if so_far is None:
            begin_s = utc(start).timestamp()
            found[start] = Bin(begin_s, begin_s + length_s, kg, grid)
        elif kg is not None:
            found[start] = so_far._replace(kg=kg + (so_far.kg or 0.0))
    return sorted(found.values())


def together(bins: list[Bin], most: int, width_s: float) -> tuple[list[Bin], float]:
    """At most so many, each of whole rows, and how long one is. Nothing is lost: the kilograms add
    up to the same."""
    if len(bins) <= most:
        return bins, width_s
    each_s = math.ceil((bins[-1].end_s - bins[0].begin_s) / width_s / (most - 1)) * width_s
    found = [list(group) for _, group in groupby(bins, lambda one: int(one.begin_s // each_s))]
    return [_one_of(group) for group in found], each_s


def _one_of(bins: Sequence[Bin]) -> Bin:
    known = [b.kg for b in bins if b.kg is not None]
    timed = [(b.grid, b.end_s - b.begin_s) for b in bins if b.grid is not None]
    length_s = math.fsum(s for _, s in timed)
    grid = math.fsum(g * s for g, s in timed) / length_s if timed else None
    return Bin(bins[0].begin_s, bins[-1].end_s, math.fsum(known) if known else None, grid)


def draw_emissions(bins: Sequence[Bin], width: float) -> Drawn:
    """The grid's factor above, the kilograms below: two axes, one time."""
    is_wide, left, right, tall = plot_area(width, 190.0)
    x = PlotScale(bins[0].begin_s, bins[-1].end_s, left, right)
    out: list[Markup] = []
    y = 0.0
    if any(b.grid is not None for b in bins):
        named, high = legend(width, left, 14.0, [("factor of the grid, g/kWh", "line l2 whole")])
        y = high + 64.0
        out += [*named, *grid_line(bins, x, high, y)]
        y += 12.0
    entries = [("emissions, kgCO2e, location-based", "bar")]
    if any(b.kg is None for b in bins):
        entries.append(("not known", "hollow"))
    named, high = legend(width, left, y + 14.0, entries)
    bottom = y + high + tall
    out += [*named, *bars(bins, x, y + high, bottom)]
    out += axis(x, clock(x.low, x.high, 8 if is_wide else 4), bottom, width)
    return bottom + 24.0, out


def grid_line(bins: Sequence[Bin], x: PlotScale, top: float, bottom: float) -> list[Markup]:
    """In steps; from zero, so that its swing is seen for what it is."""
    most = max(b.grid for b in bins if b.grid is not None) * 1000
    y = PlotScale(0.0, most * 1.1 or 1.0, bottom, top)
    points: list[tuple[float, float] | None] = []
    for b in bins:
        level = None if b.grid is None else y.at(b.grid * 1000)
        points += [None] if level is None else [(x.at(t), level) for t in (b.begin_s, b.end_s)]
    drawn = el("path", d=path(points), class_="line l2 whole")
    return [*grid_y(y, steps(0.0, y.high, 2), x.begin, x.end), drawn]


def bars(bins: Sequence[Bin], x: PlotScale, top: float, bottom: float) -> list[Markup]:
    known = [b.kg for b in bins if b.kg is not None]
    y = PlotScale(min([*known, 0.0]), max([*known, 0.0]) * 1.06 or 1.0, bottom, top)
    out = grid_y(y, steps(y.low, y.high, 4), x.begin, x.end)
    gap = 0.12 if len(bins) <= 150 else 0.0
    for b in bins:
        begin, wide = x.at(b.begin_s), x.at(b.end_s) - x.at(b.begin_s)
        if b.kg is None:
            out.append(box(begin, top, wide, bottom - top, "hollow"))
        else:
            a, z = sorted((y.at(b.kg), y.at(0.0)))
            out.append(box(begin + wide * gap / 2, a, max(wide * (1 - gap), 0.4), z - a, "bar"))
    return [*out, line(x.begin, y.at(0.0), x.end, y.at(0.0), "axis")]


def emissions_words(bins: Sequence[Bin]) -> str:
    known = [b.kg for b in bins if b.kg is not None]
    grids = [b.grid * 1000 for b in bins if b.grid is not None]
    told = [f"{len(bins)} bars from {instant(bins[0].begin_s)} to {instant(bins[-1].end_s)}"]
    if known:
        told.append(f"{number(math.fsum(known))} kgCO2e in all, {span_words(known)} a bar")
    if grids:
        told.append(f"grid factor {span_words(grids)} g/kWh")
    return "; ".join(told)
