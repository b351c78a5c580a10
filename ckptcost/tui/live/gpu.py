"""One GPU's own trace beside the others' sum, from the newest readings: for machines with more
cards than there is room for curves."""

from __future__ import annotations

from math import isfinite, nan

from ckptcost.core.channels import Series
from ckptcost.present.amounts import number
from ckptcost.present.chart import Chart, Curve
from ckptcost.runs.clocks import S
from ckptcost.runs.tables import joined, key_of
from ckptcost.tui.live.reading import Live
from ckptcost.tui.live.source import LiveView, Source

APART_S = 0.25
"""two readings of a counter are no closer: nearer ones tell of its ticks"""


def with_gpu(view: LiveView, source: Source, domain: str) -> LiveView:
    """The picture with the trace of one card on top; as it is where nothing is known of that
    card."""
    chart = trace_of(source, domain, view.begin_s, view.end_s)
    return (
        view
        if chart is None
        else view._replace(traces=view.traces._replace(charts=[chart, *view.traces.charts]))
    )


def trace_of(source: Source, domain: str, begin_s: float, end_s: float) -> Chart | None:
    """Readings are kept for a minute or two, so a longer time begins with a gap."""
    if not isinstance(source, Live):
        return None
    board = source.board
    with board.lock:
        curves, origin_ns = board.curves, board._origin_ns
        probe = (
            None
            if curves is None
            else next((p for p in curves.sources.gpus if p.channel.domain == domain), None)
        )
        if probe is None or origin_ns is None:
            return None
        key, is_counter, now = (
            key_of(probe.channel),
            probe.channel.is_counter,
            probe.lately(board.last_s),
        )
        tables = board.ring.taken(origin_ns + round(begin_s * S), origin_ns + round(end_s * S))
        found = [
            (table, n, ahead_ns)
            for table, ahead_ns in tables
            for n, other in enumerate(table.channels)
            if key_of(other) == key
        ]
        series = joined(found, origin_ns) if found else None
    if series is None:
        return None
    xs, ys = _rates(series) if is_counter else (series.t_s.tolist(), series.value.tolist())
    inside = [(x - end_s, y) for x, y in zip(xs, ys, strict=True) if begin_s <= x <= end_s]
    name = f"GPU {domain.partition(':')[2]} alone, W   now {number(now)}"
    return Chart(
        name,
        [Curve("", [x for x, _ in inside], [y for _, y in inside])],
        y_label="W",
        y_text=number,
        y_range=(0.0, nan),
    )


def _rates(series: Series) -> tuple[list[float], list[float]]:
    """Watts between readings of a counter; a step back is a gap."""
    xs: list[float] = []
    ys: list[float] = []
    before_s = before = nan
    for t_s, value in zip(series.t_s.tolist(), series.value.tolist(), strict=True):
        if not isfinite(value):
            continue
        if t_s - before_s < APART_S:
            continue
        if before_s == before_s:
            xs.append((t_s + before_s) / 2)
            ys.append((value - before) / (t_s - before_s) if value >= before else nan)
        before_s, before = t_s, value
    return xs, ys
