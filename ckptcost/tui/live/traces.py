"""The stacked traces of the live screen: seconds before the end of what is shown, 0 at the
right."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan
from typing import cast

import numpy as np

from ckptcost.core.channels import Series
from ckptcost.jobs.save_book import Entry
from ckptcost.present.amounts import count, duration, number, rate
from ckptcost.present.chart import Band, Chart, Curve, Level, Text, Traces
from ckptcost.tui.live.board import LiveBoard
from ckptcost.tui.live.curves import (
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
    Floats,
    Probe,
    Stretch,
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
    power = _power(board, curves, stretch, xs, bands, per_gpu)
    storage = _storage(curves, stretch, xs, last_s)
    rest = (_each(curves, stretch, xs, last_s), _queue(curves, stretch, xs, last_s))
    leads = (storage, power) if board.powerless else (power, storage)
    charts = [chart for chart in (*leads, *rest) if chart is not None]
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


def _power(
    board: LiveBoard,
    curves: Curves,
    stretch: Stretch,
    xs: Floats,
    bands: Sequence[Band],
    per_gpu: bool,
) -> Chart | None:
    """GPUs, and on them processors and memory: what a report adds up. The whole node, where it is
    metered, is a number beside it."""
    gpus, host, node = curves.sources.gpus, curves.sources.host, curves.sources.node
    last_s = board.last_s
    parts = [
        (probes, row, name)
        for probes, row, name in ((gpus, GPU, _cards(gpus)), (host, HOST, _host_name(host)))
        if probes
    ] or ([(node, NODE, "node")] if node else [])
    if not parts:
        return None
    words = " + ".join("host" if row == HOST else _WORDS.get(row, name) for _, row, name in parts)
    if per_gpu and 1 < len(gpus) <= EACH_MOST:
        each = [
            _curve(
                stretch,
                FIRST_GPU + n,
                xs,
                f"{_card(gpus)} {probe.channel.domain.partition(':')[2]}"
                f" {number(probe.lately(last_s)):>5} W",
            )
            for n, probe in enumerate(gpus)
        ]
        title = f"Each {_card(gpus)}, on one scale, W{_now(gpus, last_s, number)}"
        return _watts(title, each)._replace(filled="each", main=True)
    shown, so_far = [], np.zeros(len(xs))
    for probes, row, name in parts:
        so_far = so_far + stretch.mean[row]
        label = f"{name} {number(now_of(probes, last_s))}"
        shown.append(Curve(label, cast(Sequence[float], xs), cast(Sequence[float], so_far)))
    probes = tuple(probe for each, _, _ in parts for probe in each)
    notes = [_within(so_far, xs, bands)]
    if node and parts[0][0] is not node and (watts := now_of(node, last_s)) == watts:
        notes.append(f"node {number(watts)}")
    floor_w = _floor_w(board, probes)
    words = f"{words[:1].upper()}{words[1:]}"
    return _watts(f"{words} power, W{_now(probes, last_s, number)}", shown)._replace(
        filled="stack",
        main=True,
        note="   ".join(note for note in notes if note),
        level=None if floor_w != floor_w else Level(floor_w, f"idle {number(floor_w)}"),
    )


_WORDS = {GPU: "GPU", NODE: "Node"}


def _floor_w(board: LiveBoard, probes: Sequence[Probe]) -> float:
    """What they take while nothing runs; NaN where it was not learned of all of them."""
    known = {} if board.idle is None else board.idle.domains
    domains = [probe.channel.domain for probe in probes]
    if not all(domain in known for domain in domains):
        return nan
    return sum(known[domain].power_w for domain in domains)


def _card(gpus: Sequence[Probe]) -> str:
    return "GPU" if not gpus or gpus[0].channel.kind_of_domain == "gpu" else "module"


def _cards(gpus: Sequence[Probe]) -> str:
    return f"{count(float(len(gpus)))} {_card(gpus)}{'' if len(gpus) == 1 else 's'}"


def _host_name(host: Sequence[Probe]) -> str:
    kinds = [probe.channel.kind_of_domain for probe in host]
    if set(kinds) == {"psys"}:
        return "whole node (psys)"
    return " + ".join(kind.upper() for kind in dict.fromkeys(kinds))


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


def _storage(curves: Curves, stretch: Stretch, xs: Floats, last_s: float) -> Chart | None:
    """Its peak is the quickest reading in the time that is shown, however wide the bins of the
    curve are."""
    sources = curves.sources
    if not sources.writes and not sources.reads:
        return None
    of_job = any(probe.channel.kind_of_domain == "process" for probe in sources.writes)
    written = stretch.mean[WRITE]
    shown = [Curve("write", cast(Sequence[float], xs), cast(Sequence[float], written))]
    peak = _most(stretch.high[WRITE])
    title = "Written by the job" if of_job else "Storage write"
    title += _now(sources.writes, last_s, rate) + ("" if peak != peak else f"   peak {rate(peak)}")
    if sources.reads and (_most(stretch.high[READ]) or 0.0) > 1e6:
        both = np.where(np.isfinite(written), written, 0.0) + stretch.mean[READ]
        shown.append(Curve("read", cast(Sequence[float], xs), cast(Sequence[float], both)))
        title += f"   read {rate(now_of(sources.reads, last_s))}"
    return Chart(
        title=title,
        curves=shown,
        y_label="B/s",
        y_text=rate,
        y_range=(0.0, nan),
        empty="nothing here counts bytes to storage",
        filled="stack",
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
    return f"in checkpoints {number(float(known.mean()))}" if len(known) else ""


APART_S = 0.25
"""two readings of a counter are no closer: nearer ones tell of its ticks"""


def gpu_trace(board: LiveBoard, domain: str, begin_s: float, end_s: float) -> Chart | None:
    """One GPU's own power, for machines with more cards than there is room for curves; readings are
    held for some minutes, so a longer time begins with a gap."""
    gpus = () if board.curves is None else board.curves.sources.gpus
    probe = next((p for p in gpus if p.channel.domain == domain), None)
    series = None if probe is None else board.series(probe.channel)
    if probe is None or series is None:
        return None
    is_counter, now = probe.channel.is_counter, probe.lately(board.last_s)
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
