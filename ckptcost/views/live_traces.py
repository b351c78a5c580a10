"""The stacked traces of the live screen: seconds before the end of what is shown, 0 at the
right."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import cast

import numpy as np

from ckptcost.present.amounts import count, duration, number, rate
from ckptcost.present.chart import Band, Chart, Curve, Text, Traces
from ckptcost.views.live_bins import Floats, Stretch
from ckptcost.views.live_board import LiveBoard
from ckptcost.views.live_book import Entry
from ckptcost.views.live_series import (
    EACH,
    EACH_MOST,
    FIRST_GPU,
    GPU,
    HOST,
    NODE,
    QUEUE,
    READ,
    WRITE,
    Curves,
    Probe,
    now_of,
)

_MOST_BANDS = 200


def traces_of(
    board: LiveBoard, begin_s: float, end_s: float, per_gpu: bool, now_s: float
) -> Traces:
    span = (begin_s - end_s, 0.0)
    curves = board.curves
    if curves is None or board.last_s < 0:
        waiting = (
            "no meter answers here: see the list of meters"
            if board.records and not board.parts
            else "waiting for the first reading"
        )
        return Traces([Chart(title="power", empty=waiting)], span)
    stretch = curves.stretch(begin_s, end_s)
    bands = bands_of(board.book.entries[-_MOST_BANDS:], begin_s, end_s, now_s)
    xs = stretch.t_s - end_s
    last_s = board.last_s
    power = (
        _gpus(curves, stretch, xs, bands, per_gpu, last_s),
        _each(curves, stretch, xs, last_s),
        _host(curves, stretch, xs, bands, last_s),
    )
    rest = (_storage(curves, stretch, xs, last_s), _queue(curves, stretch, xs, last_s))
    charts = [
        chart
        for chart in ((*rest, *power) if board.powerless else (*power, *rest))
        if chart is not None
    ]
    if not charts:
        charts = [
            Chart(
                title="power", empty="nothing here meters power or storage: see the list of meters"
            )
        ]
    return Traces(charts, span, bands, (), duration)


def bands_of(entries: Sequence[Entry], begin_s: float, end_s: float, now_s: float) -> list[Band]:
    """Checkpoints as stretches: training held up, then draining; of an open one, up to now."""
    found: list[Band] = []
    for entry in entries:
        window, what = entry.best
        from_s = window.begin_s
        if from_s is None:
            continue
        over_s = (
            now_s if entry.open else (window.end_s if window.end_s is not None else window.last_s)
        )
        until_s = window.returned_s if window.returned_s is not None else over_s
        if over_s < begin_s or from_s > end_s:
            continue
        kind = "load" if what.of == "load" else "save"
        found.append(Band(from_s - end_s, until_s - end_s, f"#{entry.number}", kind))  # type: ignore[arg-type]
        if over_s > until_s:
            found.append(Band(until_s - end_s, over_s - end_s, "", "drain"))
    return found


def _gpus(
    curves: Curves,
    stretch: Stretch,
    xs: Floats,
    bands: Sequence[Band],
    per_gpu: bool,
    last_s: float,
) -> Chart | None:
    gpus = curves.sources.gpus
    if not gpus:
        return None
    what = "GPU" if gpus[0].channel.kind_of_domain == "gpu" else "module"
    title = (
        f"{what} power, {count(float(len(gpus)))} {what}s, W"
        if len(gpus) > 1
        else f"{what} power, W"
    )
    title += _now(gpus, last_s, number) + _within(stretch.mean[GPU], xs, bands)
    if per_gpu and len(gpus) <= EACH_MOST:
        each = [
            _curve(stretch, FIRST_GPU + n, xs, probe.channel.domain.partition(":")[2])
            for n, probe in enumerate(gpus)
        ]
        return _watts(title, each)
    return _watts(title, [_curve(stretch, GPU, xs, "all" if len(gpus) > 1 else "")])


def _each(curves: Curves, stretch: Stretch, xs: Floats, last_s: float) -> Chart | None:
    """Of many GPUs, their mean between the least and the most."""
    gpus = curves.sources.gpus
    if len(gpus) <= EACH_MOST:
        return None
    now = [watts for probe in gpus if (watts := probe.lately(last_s)) == watts]
    title = "Power of each GPU, W: mean, least and most" + (
        f"   now {number(min(now))} to {number(max(now))}" if now else ""
    )
    return _watts(title, [_curve(stretch, EACH, xs, "mean", band=True)])


def _host(
    curves: Curves, stretch: Stretch, xs: Floats, bands: Sequence[Band], last_s: float
) -> Chart | None:
    sources = curves.sources
    kinds = [probe.channel.kind_of_domain for probe in sources.host]
    if not kinds and not sources.node:
        return None
    if not kinds:
        return _watts(
            "Node power, W" + _now(sources.node, last_s, number),
            [_curve(stretch, NODE, xs, "node")],
        )
    names = (
        "Whole node (psys)"
        if set(kinds) == {"psys"}
        else " + ".join(kind.upper() for kind in dict.fromkeys(kinds))
    )
    node = now_of(sources.node, last_s)
    title = (
        f"{names} power, W"
        + _now(sources.host, last_s, number)
        + _within(stretch.mean[HOST], xs, bands)
    )
    title += f"   node {number(node)}" if node == node else ""
    return _watts(title, [_curve(stretch, HOST, xs, "")])


def _storage(curves: Curves, stretch: Stretch, xs: Floats, last_s: float) -> Chart | None:
    """Its peak is the quickest reading in the time that is shown, however wide the bins of the
    curve are."""
    sources = curves.sources
    if not sources.writes and not sources.reads:
        return None
    of_job = any(probe.channel.kind_of_domain == "process" for probe in sources.writes)
    shown = [_curve(stretch, WRITE, xs, "write")] if sources.writes else []
    peak = _most(stretch.high[WRITE])
    title = "Written by the job" if of_job else "Storage write"
    title += _now(sources.writes, last_s, rate) + ("" if peak != peak else f"   peak {rate(peak)}")
    if sources.reads and (_most(stretch.high[READ]) or 0.0) > 1e6:
        shown.append(_curve(stretch, READ, xs, "read")._replace(tone="muted"))
        title += f"   read {rate(now_of(sources.reads, last_s))}"
    return Chart(
        title=title,
        curves=shown,
        y_label="B/s",
        y_text=rate,
        y_range=(0.0, nan),
        empty="nothing here counts bytes to storage",
    )


def _queue(curves: Curves, stretch: Stretch, xs: Floats, last_s: float) -> Chart | None:
    if not curves.sources.queue:
        return None
    title = "Requests under way at the drives" + _now(curves.sources.queue, last_s, _requests)
    return Chart(
        title=title, curves=[_curve(stretch, QUEUE, xs, "")], y_text=number, y_range=(0.0, nan)
    )


def _watts(title: str, curves: Sequence[Curve]) -> Chart:
    return Chart(title=title, curves=curves, y_label="W", y_text=number, y_range=(0.0, nan))


def _curve(stretch: Stretch, row: int, xs: Floats, label: str, band: bool = False) -> Curve:
    """Arrays as they are: they are drawn as arrays, and a list of each would be made for every
    picture."""
    at, mean, low, high = (
        cast(Sequence[float], values)
        for values in (xs, stretch.mean[row], stretch.low[row], stretch.high[row])
    )
    return Curve(label, at, mean, "", low, high) if band else Curve(label, at, mean)


def _most(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else nan


def _now(probes: Sequence[Probe], last_s: float, text: Text) -> str:
    now = now_of(probes, last_s)
    return f"   now {text(now)}" if now == now else "   now -"


def _requests(value: float) -> str:
    """A mean of whole numbers: what is left of one after a silence is nothing."""
    return "0" if 0.0 <= value < 0.01 else number(value)


def _within(values: Floats, xs: Floats, bands: Sequence[Band]) -> str:
    """Mean while training was held up, of what is shown: of points that lie in there as wide as
    they are."""
    inside = np.zeros(len(xs), bool)
    half_s = max(float(xs[-1] - xs[-2]) / 2 if len(xs) > 1 else 0.0, 0.2)
    for band in bands:
        if band.kind == "save":
            inside |= (xs >= band.begin + half_s) & (xs <= band.end - half_s)
    known = values[inside & np.isfinite(values)]
    return f"   in checkpoints {number(float(known.mean()))}" if len(known) else ""
