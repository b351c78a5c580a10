"""Power and storage over a recorded run, and around one of its checkpoints. Over the whole run:
means of short stretches, power with the range of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import nan

import numpy as np
from numpy.typing import NDArray

from ckptcost.core import depth
from ckptcost.core.channels import Channel
from ckptcost.core.contents import Contents
from ckptcost.core.windows import Window, extent
from ckptcost.jobs.measured import Measured
from ckptcost.jobs.power_trace import LEAST_S, edges_of, of_kinds, rates_of, trace_power
from ckptcost.present.amounts import number, rate
from ckptcost.present.chart import Band, Chart, Curve, Rule, Traces

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
    charts = [
        *_power(seen, "GPU power, W", ("gpu", "module"), seen.energies.parts),
        *_power(seen, "CPU and memory power, W", ("cpu", "dram", "psys"), seen.energies.parts),
        *_storage(seen),
    ]
    if not any("power" in chart.title for chart in charts):
        charts = [*_power(seen, "node power, W", ("node",), seen.energies.wholes), *charts]
    span = (seen.begin_s, max(seen.end_s, seen.begin_s + LEAST_S))
    saves = list(zip(seen.windows, seen.contents, strict=True))[-MOST_BANDS:]
    return Traces(charts, span, _bands(saves))


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
    curve = Curve(
        told,
        _middles(edges).tolist(),
        watts.watts.tolist(),
        lows=watts.low.tolist(),
        highs=watts.high.tolist(),
    )
    return [_chart(f"{title}, {told}", number, curve)]


def _chart(title: str, text: Callable[[float], str], *curves: Curve) -> Chart:
    return Chart(title, curves, y_text=text, y_range=(0.0, nan))


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
    return [_chart(title, rate, *curves)] if curves else []


def _sum_of(
    seen: Measured, channels: Sequence[tuple[int, Channel]], edges: Floats
) -> Floats | None:
    each = [
        rates_of(depth.growth(seen.energies.series(place), channel.wraps_at), edges)
        for place, channel in channels
    ]
    found: Floats | None = np.sum(each, axis=0) if each else None
    return found if found is not None and np.isfinite(found).any() else None


def _bands(
    saves: Iterable[tuple[Window, Contents]], zero_s: float = 0.0, mine: Window | None = None
) -> list[Band]:
    """Every save and load: its stall, and its drain. The one that the picture is of needs no
    name."""
    bands: list[Band] = []
    for window, what in saves:
        stretch = extent(window)
        if stretch is None:
            continue
        stall, drain = window.phase("stall"), window.phase("drain")
        begin_s, end_s = (stall.begin_s, stall.end_s) if stall is not None else stretch
        name = "" if window is mine else window.name
        bands.append(
            Band(begin_s - zero_s, end_s - zero_s, name, "load" if what.of == "load" else "save")
        )
        if drain is not None and drain.length_s > 0:
            bands.append(Band(drain.begin_s - zero_s, drain.end_s - zero_s, "", "drain"))
    return bands


def around(m: Measured, window: Window, of: str = "save") -> Traces:
    """One checkpoint, on a time axis that begins with it. Empty charts where it has no begin;
    charts only of what is metered."""
    stretch = extent(window)
    if stretch is None:
        return Traces((), (0.0, 1.0))
    begin_s, end_s = stretch
    beside_s = min(max((end_s - begin_s) * BESIDE, LEAST_BESIDE_S), MOST_BESIDE_S)
    since_s, until_s = _recorded(m, begin_s - beside_s, end_s + beside_s)
    span = (since_s - begin_s, until_s - begin_s)
    charts = [
        *_power_near(m, "GPU power, W", ("gpu", "module"), begin_s, since_s, until_s),
        *_power_near(
            m, "CPU and memory power, W", ("cpu", "dram", "psys"), begin_s, since_s, until_s
        ),
        *_storage_near(m, of, begin_s, since_s, until_s),
    ]
    if not charts:
        charts = _power_near(m, "node power, W", ("node",), begin_s, since_s, until_s)
    near = [
        (other, what)
        for other, what in zip(m.windows, m.contents, strict=True)
        if (reach := extent(other)) is not None and reach[1] > since_s and reach[0] < until_s
    ]
    rules = [] if window.durable_s is None else [Rule(window.durable_s - begin_s, "safe")]
    return Traces(charts, span, _bands(near, begin_s, window), rules)


def _recorded(m: Measured, since_s: float, until_s: float) -> tuple[float, float]:
    """As far as there are readings."""
    ticked_s = m.energies.node.ticked_s()
    if not len(ticked_s):
        return since_s, until_s
    return max(since_s, float(ticked_s[0, 0])), min(until_s, float(ticked_s[-1, 1]))


def _power_near(
    m: Measured, title: str, kinds: Sequence[str], begin_s: float, since_s: float, until_s: float
) -> list[Chart]:
    """The sum of all domains of some kinds."""
    energies = m.energies
    among = energies.wholes if kinds == ("node",) else energies.parts
    domains = [domain for domain in among if domain.split(":", 1)[0] in kinds]
    if not domains or until_s <= since_s:
        return []
    tick_s = max((energies.tick_s(domain) or 0.0 for domain in domains), default=0.0)
    step_s = max((until_s - since_s) / POINTS_AROUND, LEAST_S, 2.0 * tick_s)
    edges = np.arange(since_s, until_s, step_s)
    if len(edges) < 3:
        return []
    joules: Floats = np.sum([energies.curve(domain, edges) for domain in domains], axis=0)
    watts: Floats = np.diff(joules) / np.diff(edges)
    if not np.isfinite(watts).any():
        return []
    middles = _middles(edges) - begin_s
    return [_chart(title, number, Curve("", middles.tolist(), watts.tolist()))]


def _storage_near(
    m: Measured, of: str, begin_s: float, since_s: float, until_s: float
) -> list[Chart]:
    """All disks together: writing, or reading where it is a load."""
    disks = list(dict.fromkeys(stored.disk for stored in m.stored))
    if not disks or until_s <= since_s:
        return []
    step_s = max((until_s - since_s) / POINTS_AROUND, LEAST_S)
    lines = [depth.line(m.energies.readings(disk), since_s, until_s, step_s) for disk in disks]
    rates: Floats = np.sum(
        [each.read_bytes_per_s if of == "load" else each.write_bytes_per_s for each in lines],
        axis=0,
    )
    middles = (lines[0].begin_s + lines[0].end_s) / 2 - begin_s
    title = "storage, bytes read" if of == "load" else "storage, bytes written"
    return [_chart(title, rate, Curve("", middles.tolist(), rates.tolist()))]


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
