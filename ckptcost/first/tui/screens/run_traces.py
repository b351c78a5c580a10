"""Power and storage over a recorded run, and around one of its checkpoints. Over the whole run:
means of short stretches, power with the range of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import nan
from operator import ge, gt

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core import depth
from ckptcost.first.core.contents import Contents
from ckptcost.first.core.windows import Window, extent
from ckptcost.first.jobs.measured import Measured
from ckptcost.first.jobs.power_trace import LEAST_S, edges_of, rates_of
from ckptcost.first.present.amounts import number, rate
from ckptcost.first.present.chart import Band, Chart, Curve, Rule, Traces
from ckptcost.first.report.studies.measure_power import OF, names_of, power

Floats = NDArray[np.float64]
POINTS = 1600
"""of a curve: more than the widest plot can tell apart, with room to zoom"""
MOST_BANDS = 2000
POINTS_AROUND = 240
"""of a curve around one checkpoint"""
BESIDE = 0.4
"""of its length, shown on either side"""
LEAST_BESIDE_S, MOST_BESIDE_S = 3.0, 120.0
ZOOM, PAN = 1.5, 0.25
"""of what is in sight, for each step"""
LINES_EACH = 5
"""a chart with fewer lines says little"""


def traces_of(seen: Measured) -> Traces:
    """Charts of what was metered; none where nothing was."""
    span = (seen.begin_s, max(seen.end_s, seen.begin_s + LEAST_S))
    saves = list(zip(seen.windows, seen.contents, strict=True))[-MOST_BANDS:]
    return Traces(_charts(seen, POINTS), span, _bands(saves))


def _charts(seen: Measured, points: int, zero_s: float = 0.0) -> list[Chart]:
    charts: list[Chart] = []
    for group in OF:
        name, label = group[:2]
        table = power(seen, points, [group]) if name != "node" or not charts else None
        if table is not None:  # the node where no part is known
            watts, lows, highs = ([_known(row[of]) for row in table.rows] for of in names_of(name))
            at = [row["at"] - zero_s for row in table.rows]
            curve = Curve("", at, watts, lows=lows, highs=highs)
            charts.append(_chart(f"{label}, W", number, curve))
    return [*charts, *_storage(seen, points, zero_s)]


def _known(value: float | None) -> float:
    return nan if value is None else value


def _chart(title: str, text: Callable[[float], str], *curves: Curve) -> Chart:
    return Chart(title, curves, y_text=text, y_range=(0.0, nan))


def _storage(seen: Measured, points: int, zero_s: float) -> list[Chart]:
    """All disks together, written and, where something was, read."""
    disks = list(dict.fromkeys(stored.disk for stored in seen.stored))
    edges, energies = edges_of(seen, 0.0, points), seen.energies
    at = ((edges[1:] + edges[:-1]) / 2 - zero_s).tolist()
    curves = []
    for label, holds in (("written", ge), ("read", gt)):
        each = [
            rates_of(depth.growth(energies.series(place), channel.wraps_at), edges)
            for place, channel in enumerate(energies.channels)
            if channel.domain in disks and channel.quantity == f"{label}_bytes"
        ]
        rates: list[float] = np.sum(each, axis=0).tolist() if each else []
        if any(holds(each_s, 0) for each_s in rates):
            curves.append(Curve(label, at, rates))
    labels = " and ".join(curve.label for curve in curves)
    where = f"{len(disks)} disks" if len(disks) > 1 else "".join(disks)
    return [_chart(f"storage, bytes {labels}, {where}", rate, *curves)] if curves else []


def _bands(
    saves: Iterable[tuple[Window, Contents]], zero_s: float = 0.0, mine: Window | None = None
) -> list[Band]:
    """Every save and load: its stall, and its drain. The one that the picture is of needs no
    name."""
    bands: list[Band] = []
    for window, what in saves:
        phases = {phase.name: (phase.begin_s, phase.end_s) for phase in window.phases}
        held, drain = phases.get("stall") or extent(window), phases.get("drain")
        if held is None:
            continue
        name = "" if window is mine else window.name
        begin_s, end_s = held
        bands.append(
            Band(begin_s - zero_s, end_s - zero_s, name, "load" if what.of == "load" else "save")
        )
        if drain is not None and drain[1] > drain[0]:
            bands.append(Band(drain[0] - zero_s, drain[1] - zero_s, "", "drain"))
    return bands


def around(seen: Measured, place: int) -> Traces:
    """One checkpoint, on a time axis that begins with it. Empty charts where it has no begin;
    charts only of what is metered."""
    window = seen.windows[place]
    stretch = extent(window)
    if stretch is None:
        return Traces((), (0.0, 1.0))
    begin_s, end_s = stretch
    beside_s = min(max((end_s - begin_s) * BESIDE, LEAST_BESIDE_S), MOST_BESIDE_S)
    since_s, until_s = begin_s - beside_s, end_s + beside_s
    if len(ticked_s := seen.energies.node.ticked_s()):  # as far as there are readings
        since_s, until_s = max(since_s, ticked_s[0, 0]), min(until_s, ticked_s[-1, 1])
    near = [
        (other, what)
        for other, what in zip(seen.windows, seen.contents, strict=True)
        if (reach := extent(other)) is not None and reach[1] > since_s and reach[0] < until_s
    ]
    here = seen._replace(begin_s=float(since_s), end_s=float(until_s))
    charts = _charts(here, POINTS_AROUND, begin_s) if until_s > since_s else []
    rules = [] if window.durable_s is None else [Rule(window.durable_s - begin_s, "safe")]
    span = (float(since_s) - begin_s, float(until_s) - begin_s)
    return Traces(charts, span, _bands(near, begin_s, window), rules)


def zoomed(traces: Traces, whole: Traces, steps: int) -> Traces:
    """A closer look at the rule that is in sight, or at the middle; never more than there is, never
    less than three points."""
    begin_s, end_s = traces.x_range
    marked = (rule.at for rule in traces.rules if begin_s <= rule.at <= end_s)
    middle_s = next(marked, (begin_s + end_s) / 2)
    return _around(traces, whole, middle_s, max((end_s - begin_s) * ZOOM**-steps, 3 * LEAST_S))


def panned(traces: Traces, whole: Traces, steps: int) -> Traces:
    begin_s, end_s = traces.x_range
    length_s = end_s - begin_s
    return _around(traces, whole, (begin_s + end_s) / 2 + steps * PAN * length_s, length_s)


def _around(traces: Traces, whole: Traces, middle_s: float, length_s: float) -> Traces:
    first_s, last_s = whole.x_range
    length_s = min(length_s, last_s - first_s)
    begin_s = min(max(middle_s - length_s / 2, first_s), last_s - length_s)
    return traces._replace(x_range=(begin_s, begin_s + length_s))


def pointed(traces: Traces, name: str) -> Traces:
    """With a rule at the begin of one checkpoint."""
    band = next((band for band in traces.bands if band.label == name and name), None)
    return traces._replace(rules=[] if band is None else [Rule(band.begin, name, "now")])


def fitting(traces: Traces, lines: int) -> Traces:
    """As many charts as there is room for, the first ones first."""
    return traces._replace(charts=traces.charts[: max((lines - 2) // LINES_EACH, 1)])
