"""Power and storage over the whole of a recorded run: means of short stretches; power with the
range of each."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np
from numpy.typing import NDArray

from ckptcost.core import depth
from ckptcost.core.channels import Channel
from ckptcost.core.windows import extent
from ckptcost.jobs.measured import Measured
from ckptcost.jobs.power_trace import LEAST_S, edges_of, of_kinds, rates_of, trace_power
from ckptcost.present.amounts import number, rate
from ckptcost.present.chart import Band, Chart, Curve, Rule, Traces

Floats = NDArray[np.float64]
POINTS = 1600
"""of a curve: more than the widest plot can tell apart, with room to zoom"""
MOST_BANDS = 2000
ZOOM, PAN = 1.5, 0.25
"""of what is in sight, for each step"""
LINES_EACH = 5
"""a chart with fewer lines says little"""


def traces_of(seen: Measured) -> Traces:
    """Charts of what was metered; none where nothing was."""
    charts = [
        *_power(seen, "GPU power, W", ("gpu", "module"), seen.energies.parts),
        *_power(seen, "CPU and memory power, W", ("cpu", "dram", "psys"), seen.energies.parts),
        *_storage(seen),
    ]
    if not any("power" in chart.title for chart in charts):
        charts = [*_power(seen, "node power, W", ("node",), seen.energies.wholes), *charts]
    return Traces(charts, (seen.begin_s, max(seen.end_s, seen.begin_s + LEAST_S)), _bands(seen))


def _power(seen: Measured, title: str, kinds: Sequence[str], among: Sequence[str]) -> list[Chart]:
    """The sum of some domains; unknown where one of them is."""
    domains = of_kinds(seen, kinds, among)
    if not domains:
        return []
    edges, groups = trace_power(seen, {title: domains}, POINTS)
    watts = groups[title]
    if not np.isfinite(watts.watts).any():
        return []
    told = f"{len(domains)} meters" if len(domains) > 1 else domains[0]
    return [
        Chart(
            f"{title}, {told}",
            [
                Curve(
                    told,
                    _middles(edges).tolist(),
                    watts.watts.tolist(),
                    lows=watts.low.tolist(),
                    highs=watts.high.tolist(),
                )
            ],
            y_text=number,
            y_range=(0.0, nan),
        )
    ]


def _middles(edges: Floats) -> Floats:
    return (edges[1:] + edges[:-1]) / 2


def _storage(seen: Measured) -> list[Chart]:
    """All disks together, written and, where something was, read."""
    disks = list(dict.fromkeys(stored.disk for stored in seen.stored))
    if not disks:
        return []
    edges = edges_of(seen, 0.0, POINTS)
    curves = []
    for quantity, label in (("written_bytes", "written"), ("read_bytes", "read")):
        channels = [
            (n, c)
            for n, c in enumerate(seen.energies.channels)
            if c.domain in disks and c.quantity == quantity
        ]
        rates = _sum_of(seen, channels, edges)
        if rates is not None and (label == "written" or np.nanmax(rates, initial=0.0) > 0):
            curves.append(Curve(label, _middles(edges).tolist(), rates.tolist()))
    told = f"{len(disks)} disks" if len(disks) > 1 else disks[0]
    title = f"storage, bytes {' and '.join(curve.label for curve in curves)}, {told}"
    return [Chart(title, curves, y_text=rate, y_range=(0.0, nan))] if curves else []


def _sum_of(
    seen: Measured, channels: Sequence[tuple[int, Channel]], edges: Floats
) -> Floats | None:
    each = [
        rates_of(depth.growth(seen.energies.series(place), channel.wraps_at), edges)
        for place, channel in channels
    ]
    found: Floats | None = np.sum(each, axis=0) if each else None
    return found if found is not None and np.isfinite(found).any() else None


def _bands(seen: Measured) -> list[Band]:
    """Every save and load: its stall, and its drain."""
    bands: list[Band] = []
    for window, what in list(zip(seen.windows, seen.contents, strict=True))[-MOST_BANDS:]:
        stretch = extent(window)
        if stretch is None:
            continue
        stall, drain = window.phase("stall"), window.phase("drain")
        begin_s, end_s = (stall.begin_s, stall.end_s) if stall is not None else stretch
        bands.append(Band(begin_s, end_s, window.name, "load" if what.of == "load" else "save"))
        if drain is not None and drain.length_s > 0:
            bands.append(Band(drain.begin_s, drain.end_s, "", "drain"))
    return bands


def zoomed(traces: Traces, whole: Traces, steps: int) -> Traces:
    """A closer look around the middle, or around the rule that is in sight; never more than there
    is, never less than three points."""
    begin_s, end_s = traces.x_range
    length_s = end_s - begin_s
    marked = [rule.at for rule in traces.rules if begin_s <= rule.at <= end_s]
    middle_s = marked[0] if marked else (begin_s + end_s) / 2
    share = (middle_s - begin_s) / length_s if length_s > 0 else 0.5
    least_s, most_s = 3 * LEAST_S, whole.x_range[1] - whole.x_range[0]
    wanted_s = min(max(length_s * ZOOM**-steps, least_s), most_s)
    return _within(traces, whole, middle_s - share * wanted_s, wanted_s)


def panned(traces: Traces, whole: Traces, steps: int) -> Traces:
    begin_s, end_s = traces.x_range
    return _within(traces, whole, begin_s + steps * PAN * (end_s - begin_s), end_s - begin_s)


def _within(traces: Traces, whole: Traces, begin_s: float, length_s: float) -> Traces:
    first_s, last_s = whole.x_range
    begin_s = min(max(begin_s, first_s), max(last_s - length_s, first_s))
    return traces._replace(x_range=(begin_s, min(begin_s + length_s, last_s)))


def pointed(traces: Traces, name: str) -> Traces:
    """With a rule at the begin of one checkpoint."""
    band = next((band for band in traces.bands if band.label == name and name), None)
    return traces._replace(rules=[] if band is None else [Rule(band.begin, name, "now")])


def fitting(traces: Traces, lines: int) -> Traces:
    """As many charts as there is room for, the first ones first."""
    return traces._replace(charts=traces.charts[: max((lines - 2) // LINES_EACH, 1)])
