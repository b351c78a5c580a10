"""The stacked traces of the live screen: seconds before the end of what is shown, 0 at the
right."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from typing import cast

import numpy as np

from ckptcost.first.jobs.save_book import Entry
from ckptcost.first.present.amounts import count, duration, number, rate
from ckptcost.first.present.chart import Band, Chart, Curve, Level, Text, Traces
from ckptcost.first.tui.live.board import LiveBoard
from ckptcost.first.tui.live.curves import (
    EACH,
    EACH_MOST,
    FIRST_GPU,
    GPU,
    HOST,
    NODE,
    QUEUE,
    READ,
    WRITE,
    Floats,
    Probe,
    Sources,
    Stretch,
    now_of,
)

_MOST_BANDS = 200


def traces_of(board: LiveBoard, begin_s: float, end_s: float, per_gpu: bool) -> Traces:
    span, curves, last_s = (begin_s - end_s, 0.0), board.curves, board.last_s
    if curves is None or last_s < 0:
        silent = board.records and not board.parts
        waiting = "no meter answers here: see the list of meters" if silent else _WAITING
        return Traces([Chart(title="power", empty=waiting)], span)
    told = curves.stretch(begin_s, end_s)
    sources, stretch = curves.sources, told._replace(t_s=told.t_s - end_s)
    bands = bands_of(board.book.entries[-_MOST_BANDS:], begin_s, end_s)
    storage = _storage(sources, stretch, last_s)
    if per_gpu and 1 < len(sources.gpus) <= EACH_MOST:
        power: Chart | None = _each(sources, stretch, last_s)
    else:
        power = _power(board, sources, stretch, bands)
    leads = (storage, power) if board.powerless else (power, storage)
    all_ = (*leads, _range(sources, stretch, last_s), _queue(sources, stretch, last_s))
    nothing = "nothing here meters power or storage: see the list of meters"
    charts = [chart for chart in all_ if chart is not None]
    return Traces(charts or [Chart(title="power", empty=nothing)], span, bands, (), duration)


_WAITING = "waiting for the first reading"


def bands_of(entries: Sequence[Entry], begin_s: float, end_s: float) -> list[Band]:
    """Checkpoints as stretches: training held up, then draining; of an open one, up to now."""
    found: list[Band] = []
    for entry in entries:
        window, from_s = entry.best[0], entry.best[0].begin_s
        if from_s is None:
            continue
        over_s = end_s if entry.open else window.last_s if window.end_s is None else window.end_s
        until_s = over_s if window.returned_s is None else window.returned_s
        if over_s >= begin_s and from_s <= end_s:
            name, at_s = f"#{entry.number}", from_s - end_s
            found.append(Band(at_s, until_s - end_s, name, "load" if entry.is_load else "save"))
            if over_s > until_s:
                found.append(Band(until_s - end_s, over_s - end_s, "", "drain"))
    return found


def _power(
    board: LiveBoard, sources: Sources, stretch: Stretch, bands: Sequence[Band]
) -> Chart | None:
    """GPUs, and on them processors and memory: what a report adds up. The whole node, where it is
    metered, is a number beside it."""
    gpus, host, node, last_s = sources.gpus, sources.host, sources.node, board.last_s
    parts = [(gpus, GPU, "GPU", _cards_name(gpus)), (host, HOST, "host", _host_name(host))]
    parts = [part for part in parts if part[0]]
    beside = node if parts else ()
    parts = parts or [(node, NODE, "node", "node")]
    all_ = tuple(probe for probes, *_ in parts for probe in probes)
    if not all_:
        return None
    shown, so_far = [], np.zeros(len(stretch.t_s))
    for probes, row, _, name in parts:
        so_far = so_far + stretch.mean[row]
        shown.append(_curve(stretch, so_far, f"{name} {number(now_of(probes, last_s))}"))
    notes = [_within(so_far, stretch.t_s, bands)]
    if (watts := now_of(beside, last_s)) == watts:
        notes.append(f"node {number(watts)}")
    words = " + ".join(word for _, _, word, _ in parts)
    title = f"{words[:1].upper()}{words[1:]} power, W{_now(all_, last_s, number)}"
    return _from_zero(title, shown, "W")._replace(
        filled="stack",
        main=True,
        note="   ".join(filter(None, notes)),
        level=_idle_level(board, all_),
    )


def _each(sources: Sources, stretch: Stretch, last_s: float) -> Chart:
    """Of few GPUs a curve for each."""
    gpus, card = sources.gpus, _card(sources.gpus)
    each = []
    for n, probe in enumerate(gpus):
        name = f"{card} {probe.channel.domain.partition(':')[2]}"
        label = f"{name} {number(probe.lately(last_s)):>5} W"
        each.append(_curve(stretch, stretch.mean[FIRST_GPU + n], label))
    title = f"Each {card}, on one scale, W{_now(gpus, last_s, number)}"
    return _from_zero(title, each, "W")._replace(filled="each", main=True)


def _idle_level(board: LiveBoard, probes: Sequence[Probe]) -> Level | None:
    """What they take while nothing runs; None where it was not learned of all of them."""
    known = {} if board.idle is None else board.idle.domains
    domains = [probe.channel.domain for probe in probes]
    floor_w = sum(known[domain].power_w if domain in known else nan for domain in domains)
    return None if isnan(floor_w) else Level(floor_w, f"idle {number(floor_w)}")


def _card(gpus: Sequence[Probe]) -> str:
    return "GPU" if not gpus or gpus[0].channel.kind_of_domain == "gpu" else "module"


def _cards_name(gpus: Sequence[Probe]) -> str:
    return f"{count(float(len(gpus)))} {_card(gpus)}{'' if len(gpus) == 1 else 's'}"


def _host_name(host: Sequence[Probe]) -> str:
    kinds = dict.fromkeys(probe.channel.kind_of_domain for probe in host)
    return "whole node (psys)" if [*kinds] == ["psys"] else " + ".join(map(str.upper, kinds))


def _range(sources: Sources, stretch: Stretch, last_s: float) -> Chart | None:
    """Of many GPUs, their mean between the least and the most."""
    if len(sources.gpus) <= EACH_MOST:
        return None
    now = [watts for probe in sources.gpus if (watts := probe.lately(last_s)) == watts]
    title = "Power of each GPU, W: mean, least and most"
    if now:
        title += f"   now {number(min(now))} to {number(max(now))}"
    low, high = _plain(stretch.low[EACH]), _plain(stretch.high[EACH])
    mean = _curve(stretch, stretch.mean[EACH], "mean")._replace(lows=low, highs=high)
    return _from_zero(title, [mean], "W")


def _storage(sources: Sources, stretch: Stretch, last_s: float) -> Chart | None:
    """Its peak is the quickest reading in the time that is shown, however wide the bins of the
    curve are."""
    if not sources.writes and not sources.reads:
        return None
    of_job = any(probe.channel.kind_of_domain == "process" for probe in sources.writes)
    written, peak = stretch.mean[WRITE], _most(stretch.high[WRITE])
    shown = [_curve(stretch, written, "write")]
    title = "Written by the job" if of_job else "Storage write"
    title += _now(sources.writes, last_s, rate) + ("" if peak != peak else f"   peak {rate(peak)}")
    if _most(stretch.high[READ]) > 1e6:
        both = np.where(np.isfinite(written), written, 0.0) + stretch.mean[READ]
        shown.append(_curve(stretch, both, "read"))
        title += f"   read {rate(now_of(sources.reads, last_s))}"
    return _from_zero(title, shown, "B/s", rate)._replace(
        empty="nothing here counts bytes to storage", filled="stack"
    )


def _queue(sources: Sources, stretch: Stretch, last_s: float) -> Chart | None:
    if not sources.queue:
        return None
    title = "Requests under way at the drives" + _now(sources.queue, last_s, _requests)
    return _from_zero(title, [_curve(stretch, stretch.mean[QUEUE], "")])


def _from_zero(title: str, curves: Sequence[Curve], unit: str = "", text: Text = number) -> Chart:
    return Chart(title=title, curves=curves, y_label=unit, y_text=text, y_range=(0.0, nan))


def _curve(stretch: Stretch, values: Floats, label: str) -> Curve:
    return Curve(label, _plain(stretch.t_s), _plain(values))


def _plain(values: Floats) -> Sequence[float]:
    """Arrays as they are: they are drawn as arrays, and a list of each would be made for every
    picture."""
    return cast(Sequence[float], values)


def _most(values: Floats) -> float:
    return float(np.fmax.reduce(values, initial=nan))


def _now(probes: Sequence[Probe], last_s: float, text: Text) -> str:
    return f"   now {text(now_of(probes, last_s))}"


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


def gpu_trace(board: LiveBoard, domain: str, begin_s: float, end_s: float) -> Chart | None:
    """One GPU's own power, for machines with more cards than there is room for curves; readings are
    held for some minutes, so a longer time begins with a gap."""
    probe = next((p for p in board.gpus if p.channel.domain == domain), None)
    series = None if probe is None else board.series(probe.channel)
    if probe is None or series is None:
        return None
    again = Probe(probe.slot, probe.place, probe.channel, probe.least_s, probe.hold_s)
    xs, ys = [], []
    for t_s, value in zip(series.t_s.tolist(), series.value.tolist(), strict=True):
        again.see(t_s, value)
        if begin_s <= t_s <= end_s:
            xs.append(t_s - end_s)
            ys.append(again.value(t_s) if value == value else nan)
    now = number(probe.lately(board.last_s))
    title = f"GPU {domain.partition(':')[2]} alone, W   now {now}"
    return _from_zero(title, [Curve("", xs, ys)], "W")
