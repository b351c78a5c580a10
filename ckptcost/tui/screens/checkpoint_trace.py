"""Power and storage around one checkpoint of a recorded run, on a time axis that begins with it."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np
from numpy.typing import NDArray

from ckptcost.core import depth
from ckptcost.core.windows import Window, extent
from ckptcost.jobs.measured import Measured
from ckptcost.present.amounts import number, rate
from ckptcost.present.chart import Band, Chart, Curve, Rule, Traces

Floats = NDArray[np.float64]
POINTS = 240
"""more than the widest plot can tell apart"""
LEAST_S = 0.2
"""two readings of a quick meter"""
BESIDE = 0.4
"""of its length, shown on either side"""
LEAST_BESIDE_S, MOST_BESIDE_S = 3.0, 120.0


def around(m: Measured, window: Window, of: str = "save") -> Traces:
    """Empty charts where it has no begin; charts only of what is metered."""
    stretch = extent(window)
    if stretch is None:
        return Traces((), (0.0, 1.0))
    begin_s, end_s = stretch
    beside_s = min(max((end_s - begin_s) * BESIDE, LEAST_BESIDE_S), MOST_BESIDE_S)
    since_s, until_s = _recorded(m, begin_s - beside_s, end_s + beside_s)
    span = (since_s - begin_s, until_s - begin_s)
    charts = [
        *_power(m, "GPU power, W", ("gpu", "module"), begin_s, since_s, until_s),
        *_power(m, "CPU and memory power, W", ("cpu", "dram", "psys"), begin_s, since_s, until_s),
        *_storage(m, of, begin_s, since_s, until_s),
    ]
    if not charts:
        charts = _power(m, "node power, W", ("node",), begin_s, since_s, until_s)
    return Traces(charts, span, _bands(m, window, since_s, until_s), _rules(window, begin_s))


def _recorded(m: Measured, since_s: float, until_s: float) -> tuple[float, float]:
    """As far as there are readings."""
    ticked_s = m.energies.node.ticked_s()
    if not len(ticked_s):
        return since_s, until_s
    return max(since_s, float(ticked_s[0, 0])), min(until_s, float(ticked_s[-1, 1]))


def _power(
    m: Measured, title: str, kinds: Sequence[str], begin_s: float, since_s: float, until_s: float
) -> list[Chart]:
    """The sum of all domains of some kinds."""
    energies = m.energies
    among = energies.wholes if kinds == ("node",) else energies.parts
    domains = [domain for domain in among if domain.split(":", 1)[0] in kinds]
    if not domains or until_s <= since_s:
        return []
    tick_s = max((energies.tick_s(domain) or 0.0 for domain in domains), default=0.0)
    step_s = max((until_s - since_s) / POINTS, LEAST_S, 2.0 * tick_s)
    edges = np.arange(since_s, until_s, step_s)
    if len(edges) < 3:
        return []
    joules: Floats = np.sum([energies.curve(domain, edges) for domain in domains], axis=0)
    watts: Floats = np.diff(joules) / np.diff(edges)
    if not np.isfinite(watts).any():
        return []
    middles = (edges[1:] + edges[:-1]) / 2 - begin_s
    return [
        Chart(
            title, [Curve("", middles.tolist(), watts.tolist())], y_text=number, y_range=(0.0, nan)
        )
    ]


def _storage(m: Measured, of: str, begin_s: float, since_s: float, until_s: float) -> list[Chart]:
    """All disks together: writing, or reading where it is a load."""
    disks = list(dict.fromkeys(stored.disk for stored in m.stored))
    if not disks or until_s <= since_s:
        return []
    step_s = max((until_s - since_s) / POINTS, LEAST_S)
    lines = [depth.line(m.energies.readings(disk), since_s, until_s, step_s) for disk in disks]
    rates: Floats = np.sum(
        [each.read_bytes_per_s if of == "load" else each.write_bytes_per_s for each in lines],
        axis=0,
    )
    middles = (lines[0].begin_s + lines[0].end_s) / 2 - begin_s
    title = "storage, bytes read" if of == "load" else "storage, bytes written"
    return [
        Chart(title, [Curve("", middles.tolist(), rates.tolist())], y_text=rate, y_range=(0.0, nan))
    ]


def _bands(m: Measured, mine: Window, since_s: float, until_s: float) -> list[Band]:
    """This one's stall and drain, and those of others that reach into the picture."""
    bands: list[Band] = []
    begin_s = mine.begin_s or 0.0
    for window, what in zip(m.windows, m.contents, strict=True):
        stretch = extent(window)
        if stretch is None or stretch[1] <= since_s or stretch[0] >= until_s:
            continue
        stall, drain = window.phase("stall"), window.phase("drain")
        told = (stall.begin_s, stall.end_s) if stall is not None else stretch
        name = "" if window is mine else window.name
        bands.append(
            Band(
                told[0] - begin_s, told[1] - begin_s, name, "load" if what.of == "load" else "save"
            )
        )
        if drain is not None and drain.length_s > 0:
            bands.append(Band(drain.begin_s - begin_s, drain.end_s - begin_s, "", "drain"))
    return bands


def _rules(window: Window, begin_s: float) -> list[Rule]:
    return [] if window.durable_s is None else [Rule(window.durable_s - begin_s, "safe")]
