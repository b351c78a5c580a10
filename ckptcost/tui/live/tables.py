"""The tables of the live screen: checkpoints, GPUs, meters."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import isinf, isnan, nan
from statistics import median

from ckptcost.core.contents import Contents
from ckptcost.core.reconcile import total
from ckptcost.core.units import KWH_J
from ckptcost.core.windows import Window
from ckptcost.jobs.account import Joules, Priced
from ckptcost.jobs.save_book import Entry
from ckptcost.present.amounts import DASH, amount, count, duration, number, rate, share, size
from ckptcost.present.grid import Grid, Head, Order, Row, Tone
from ckptcost.present.measured import absence_text
from ckptcost.report.studies.measure_saves import rate_of
from ckptcost.report.studies.measured_parts import off
from ckptcost.tui.live.board import LiveBoard
from ckptcost.tui.live.curves import Sum, now_of, total_j

WH_J = KWH_J / 1000.0
FOUND_BY = {
    "api": "hook",
    "watch": "folder",
    "io": "its writing",
    "hand": "hand",
    "output": "output",
}
CHECKPOINTS = (
    Head("number", "#"),
    Head("start", "start", rank=3),
    Head("joules", "J"),
    Head("gpu_j", "GPU J", rank=1),
    Head("host_j", "host J", rank=1),
    Head("stall", "stall, s"),
    Head("safe", "safe, s"),
    Head("size", "size", rank=2),
    Head("usd", "USD", rank=2),
    Head("rate", "rate", rank=4),
    Head("co2", "kgCO2e", rank=5),
    Head("written", "written in, s", rank=6),
    Head("by", "found by", left=True, rank=7),
    Head("name", "checkpoint", left=True, rank=8),
)
OUTLIERS = 20


class Checkpoints:
    """Rows of checkpoints that are settled are made once."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[tuple[object, ...], Row]] = {}

    def grid(self, board: LiveBoard, now_s: float) -> Grid:
        rows = []
        for entry in reversed(board.book.entries):
            key = (board, entry.window, entry.better, board.account.priced.get(entry.number))
            made = self._made.get(entry.number)
            if (
                entry.open
                or made is None
                or any(old is not new for old, new in zip(made[0], key, strict=True))
            ):
                made = (key if not entry.open else (None,) * 4, row_of(board, entry, now_s))
                self._made[entry.number] = made
            rows.append(made[1])
        prices = board.account.prices
        pue = nan if prices.scenario is None else float(prices.scenario.site.pue)
        note = (
            ""
            if isnan(pue) or not rows
            else (
                "J: metered parts until safe, at the node. USD and CO2e: of the stall, at the"
                f" facility, PUE {number(pue)}"
            )
        )
        return Grid(CHECKPOINTS, rows, "Checkpoints", note, "no checkpoint yet")


def row_of(board: LiveBoard, entry: Entry, now_s: float) -> Row:
    window, what = entry.best
    priced = board.account.priced.get(entry.number)
    begin_s = window.begin_s
    joules = board.account.joules(entry.number)
    values = [
        joules.all.value,
        joules.gpus.value,
        joules.hosts.value,
        window.stall_s,
        _safe_s(window, what),
        what.bytes,
        nan if priced is None else priced.amount("cost_usd"),
        rate_of(window, what),
        nan if priced is None else priced.amount("location_kgco2e"),
        _written_s(window),
    ]
    words: tuple[Callable[[float | None], str], ...] = (
        *(number,) * 5,
        size,
        number,
        rate,
        number,
        number,
    )
    texts = [word(value) for word, value in zip(words, values, strict=True)]
    if entry.open and begin_s is not None:
        texts[4] = f"{number(round(max(now_s - begin_s, 0.0), 1))} ..."
    by = FOUND_BY.get(entry.by, entry.by)
    name = (
        window.name
        + (" (load)" if entry.is_load else "")
        + (f": failed, {what.error}" if what.error else "")
    )
    odd = disorder(entry)
    cells = (
        count(float(entry.number)) + ("!" if odd else ""),
        _start(board, begin_s),
        *texts,
        by,
        name,
    )
    order: tuple[Order, ...] = (
        float(entry.number),
        begin_s,
        *(None if v is None or isnan(v) else v for v in values),
        by,
        name,
    )
    tone: Tone = (
        "bad" if what.error else "warn" if entry.open or odd else "muted" if entry.is_load else ""
    )
    return Row(str(entry.number), cells, order, tone)


def disorder(entry: Entry) -> str:
    """Why its times cannot all be right; empty where its instants follow each other."""
    window, what = entry.best
    odd = [
        f"the mark {flag.about} stands before one that it should follow"
        for flag in window.flags
        if flag.code == "OUT_OF_ORDER"
    ]
    written_s, safe_s = _written_s(window), _safe_s(window, what)
    if not odd and written_s is not None and safe_s is not None and written_s > safe_s:
        odd = ["it is said to be safe before its last byte was written"]
    return ", ".join(dict.fromkeys(odd))


def _written_s(window: Window) -> float | None:
    """Until the last rank had written its bytes."""
    lasts = [
        max(
            (span.at_s[name] for name in ("written", "synced", "committed") if name in span.at_s),
            default=nan,
        )
        for span in window.spans
    ]
    if window.begin_s is None or not lasts or any(isnan(last) for last in lasts):
        return None
    first = [span.at_s.get("written") for span in window.spans]
    ends = (
        [one for one in first if one is not None]
        if all(one is not None for one in first)
        else lasts
    )
    return max(ends) - window.begin_s


def _safe_s(window: Window, what: Contents) -> float | None:
    if what.error or window.begin_s is None or window.durable_s is None:
        return None
    return window.durable_s - window.begin_s


def _start(board: LiveBoard, begin_s: float | None) -> str:
    """Time of day; of a simulation, seconds since it began."""
    if begin_s is None:
        return DASH
    if board.simulated:
        return duration(round(begin_s, 1))
    wall_s = board.wall_s(begin_s)
    return DASH if isnan(wall_s) else time.strftime("%H:%M:%S", time.localtime(wall_s))


def gpus_grid(board: LiveBoard) -> Grid:
    """One row a card: what it takes now and took so far."""
    curves = board.curves
    if curves is None or not curves.sources.gpus:
        return Grid(
            (Head("gpu", "GPU"),), (), "GPUs", "", _why_no(board, "gpu", "no GPU answers here")
        )
    joules = {} if board.partly else {one.channel.domain: one.joules for one in board.sums}
    quantities = [
        q
        for q in ("utilisation", "memory_used_bytes", "temperature_c")
        if any(q in more for more in curves.sources.gpu_more)
    ]
    labels = {"utilisation": "busy", "memory_used_bytes": "memory", "temperature_c": "C"}
    words = {"utilisation": share, "memory_used_bytes": size, "temperature_c": number}
    heads = (
        Head("gpu", "GPU"),
        Head("power", "W"),
        Head("energy", "Wh so far"),
        *(Head(q, labels[q], rank=2) for q in quantities),
        Head("source", "power from", left=True, rank=3),
    )
    rows = []
    for probe, more in zip(curves.sources.gpus, curves.sources.gpu_more, strict=True):
        domain = probe.channel.domain
        now_w, so_far = probe.lately(board.last_s), joules.get(domain, nan) / WH_J
        beside = [more[q].value(board.last_s) if q in more else nan for q in quantities]
        cells = (
            domain.partition(":")[2],
            number(now_w),
            number(so_far),
            *(words[q](v) for q, v in zip(quantities, beside, strict=True)),
            probe.channel.source,
        )
        lost = now_w != now_w
        name = cells[0]
        order: tuple[Order, ...] = (
            float(name) if name.isdigit() else name,
            _known(now_w),
            _known(so_far),
            *map(_known, beside),
            cells[-1],
        )
        rows.append(Row(domain, cells, order, "bad" if lost else ""))
    return Grid(
        heads,
        rows,
        "GPUs",
        "a GPU without a number does not answer" if any(row.tone == "bad" for row in rows) else "",
    )


def _known(value: float) -> Order:
    return None if isnan(value) else value


def outliers_grid(board: LiveBoard) -> Grid:
    """Cards whose power is farthest from the median just now; those that do not answer come
    first."""
    heads = (Head("gpu", "GPU"), Head("power", "W"), Head("off", "off the median"))
    curves = board.curves
    now = (
        []
        if curves is None
        else [(probe.channel.domain, probe.lately(board.last_s)) for probe in curves.sources.gpus]
    )
    known = [watts for _, watts in now if watts == watts]
    if not known:
        return Grid(
            heads, (), "Farthest from the others", "", _why_no(board, "gpu", "no GPU answers here")
        )
    middle_w = median(known)
    off = [
        (domain, watts, nan if watts != watts or not middle_w else watts / middle_w - 1.0)
        for domain, watts in now
    ]
    off.sort(key=lambda one: (one[2] == one[2], -abs(one[2]) if one[2] == one[2] else 0.0))
    rows = [
        Row(
            domain,
            (
                domain.partition(":")[2],
                number(watts),
                DASH if isnan(apart) else f"{apart * 100:+.1f} %",
            ),
            (domain, _known(watts), _known(apart)),
            "bad" if isnan(apart) else "",
        )
        for domain, watts, apart in off[:OUTLIERS]
    ]
    return Grid(
        heads,
        rows,
        "Farthest from the others",
        f"median {amount(middle_w, 'w')} of {count(float(len(known)))} GPUs",
    )


_METERS = (
    Head("state", "state", left=True),
    Head("meter", "meter", left=True),
    Head("what", "what", left=True),
    Head("now", "now"),
    Head("so_far", "kWh so far", rank=1),
    Head("why", "why, and what would help", left=True, rank=2),
)


def meters_grid(board: LiveBoard) -> Grid:
    """What answers, what was lost, and what is not here."""
    rows: list[Row] = []
    if board.headers:
        for meter in board.headers[-1].meters:
            by_kind: dict[str, list[str]] = {}
            for channel in meter.channels:
                by_kind.setdefault(channel.kind_of_domain, []).append(channel.domain)
            for kind, domains in by_kind.items():
                rows.append(
                    _meter_row(
                        board,
                        meter.name,
                        kind,
                        list(dict.fromkeys(d for d in domains if "." not in d)) or domains,
                    )
                )
    rows += [
        Row(
            f"absent {n}",
            (
                "not here",
                absence.what,
                absence.kind,
                "",
                "",
                why := absence_text("", absence.reason, absence.remedy)[2:],
            ),
            ("not here", absence.what, absence.kind, None, None, why),
            "muted",
        )
        for n, absence in enumerate(board.absences)
    ]
    return Grid(
        _METERS,
        rows,
        "Meters",
        "",
        "no meter was looked for yet" if not board.records else "no meter answers here",
    )


def _meter_row(board: LiveBoard, meter: str, kind: str, domains: Sequence[str]) -> Row:
    wanted = set(domains)
    sums = [one for one in board.sums if one.channel.domain in wanted]
    sources = None if board.curves is None else board.curves.sources
    powered = () if sources is None else (*sources.gpus, *sources.host, *sources.node)
    probes = [probe for probe in powered if probe.channel.domain in wanted]
    stored = (
        []
        if sources is None
        else [probe for probe in sources.writes if probe.channel.domain in wanted]
    )
    lost = [event for name, event in board.lost.items() if name in wanted or name == meter]
    level, kwh = now_of(probes or stored, board.last_s), nan
    now = amount(level, "w") if probes else rate(level) if stored else ""
    mine: list[Sum] = sums if len(sums) == len(probes) and probes else []
    so_far = ""
    if mine and not board.partly:
        kwh = total_j(mine) / KWH_J
        so_far = number(kwh)
    names = domains[0] if len(domains) == 1 else f"{count(float(len(domains)))} x {kind}"
    silent = bool(probes) and now == DASH
    state, why = "no answer" if silent else "answers", ""
    tone: Tone = "warn" if silent else "good"
    if lost:
        ago_s = max(board.last_s - lost[-1].t_s, 0.0)
        state, why, tone = (
            "lost",
            f"{lost[-1].domain}, {duration(round(ago_s))} ago: {lost[-1].text}",
            "bad",
        )
    order: tuple[Order, ...] = (state, meter, names, _known(level), _known(kwh), why)
    return Row(f"{meter} {kind}", (state, meter, names, now, so_far, why), order, tone)


def _why_no(board: LiveBoard, kind: str, otherwise: str) -> str:
    found = next((a for a in board.absences if a.kind == kind), None)
    return otherwise if found is None else absence_text(found.what, found.reason, found.remedy)


def last_of(board: LiveBoard) -> tuple[str, Tone]:
    """Of the newest save that is over; of one under way, how long it has been so."""
    saves = [entry for entry in board.book.entries if not entry.is_load]
    over = next((entry for entry in reversed(saves) if not entry.open), None)
    open_ = next((entry for entry in reversed(saves) if entry.open), None)
    nothing: tuple[str, Tone] = "", ""
    told, tone = nothing if over is None else _save_sentence(board, over)
    if open_ is not None:
        begin_s = open_.window.begin_s
        for_s = "" if begin_s is None else f" for {duration(round(board.last_s - begin_s, 1))}"
        return f"#{open_.number} under way{for_s}." + (f" {told}" if told else ""), "warn"
    if not told:
        return "No checkpoint yet: the first one is told here when it is over.", "muted"
    return told, tone


def _save_sentence(board: LiveBoard, entry: Entry) -> tuple[str, Tone]:
    window, what = entry.best
    name = f"#{entry.number}"
    if what.error:
        return f"{name} failed: {what.error}.", "bad"
    safe_s = (
        None
        if window.begin_s is None or window.durable_s is None
        else window.durable_s - window.begin_s
    )
    bytes_ = "unknown bytes" if isnan(what.bytes) else size(what.bytes)
    times = "safe at an unknown time" if safe_s is None else f"in {duration(safe_s)}"
    stall = "unknown" if window.stall_s is None else duration(window.stall_s)
    first = f"{name}: {bytes_} {times} (stall {stall})"
    seen, priced = board.account.seen.get(entry.number), board.account.priced.get(entry.number)
    if seen is None and entry.evaluated != entry.window:
        return f"{first}; its energy is being worked out.", ""
    machine = board.account.prices.machine
    parts = [
        first,
        _energy(board.account.joules(entry.number)),
        _waited(priced, float("nan") if machine is None else machine.gpus),
        _cost(priced),
    ]
    return ", ".join(parts) + ".", ""


def _energy(joules: Joules) -> str:
    """The sum with its doubt; where a part is missing, what is at least known."""
    told = [("GPU", joules.gpus), ("host", joules.hosts)]
    known = [energy for _, energy in told if energy.known]
    if not known:
        return "energy unknown"
    parts = ", ".join(
        f"{name} {number(energy.value) if energy.known else 'unknown'}" for name, energy in told
    )
    if len(known) < len(told) or not joules.all.known:
        return f"at least {number(total(known).value)} J ({parts})"
    far_j = off(joules.all)
    doubt = "" if isinf(far_j) or isnan(far_j) else f" +-{number(far_j)}"
    return f"{number(joules.all.value)} J{doubt} ({parts})"


def _waited(priced: Priced | None, gpus: float) -> str:
    gpu_s = float("nan") if priced is None else priced.amount("gpu_s")
    if isnan(gpu_s) and priced is not None:
        least = _least(priced, "gpu_s")
        if least:
            return f"GPUs waited at least {number(least)} GPU-s"
    if isnan(gpu_s):
        return "GPU-s unknown"
    who = "GPUs" if isnan(gpus) else f"{count(gpus)} GPU{'' if gpus == 1 else 's'}"
    return f"{who} waited {number(gpu_s)} GPU-s"


def _cost(priced: Priced | None) -> str:
    usd = float("nan") if priced is None else priced.amount("cost_usd")
    if not isnan(usd):
        return f"${number(usd)}"
    least = 0.0 if priced is None else _least(priced, "cost_usd")
    return f"at least ${number(least)}" if least else "cost unknown"


def _least(priced: Priced, quantity: str) -> float:
    """Of the lines that are known; 0 where none is."""
    found: Sequence[float] = [float(getattr(line, quantity)) for line in priced.bill.bill.lines]
    return sum(value for value in found if not isnan(value))
