"""The tables of the live screen: checkpoints, GPUs, meters; and the sentence on the last
checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite, isnan, nan
from statistics import median
from typing import TypeVar

from ckptcost.first.core.contents import Contents
from ckptcost.first.core.quantities import LineField
from ckptcost.first.core.reconcile import total
from ckptcost.first.core.units import KWH_J
from ckptcost.first.core.windows import Window
from ckptcost.first.jobs.account import Account, Joules, Priced
from ckptcost.first.jobs.save_book import Entry
from ckptcost.first.present.amounts import DASH, amount, count, duration, number, rate, share, size
from ckptcost.first.present.grid import Grid, GridHead, Order, Row, Tone
from ckptcost.first.present.measured import absence_text
from ckptcost.first.report.studies.measure_saves import rate_of
from ckptcost.first.report.studies.measured_tables import off
from ckptcost.first.tui.live.board import LiveBoard
from ckptcost.first.tui.live.curves import DomainSum, Probe, now_of, total_j

WH_J = KWH_J / 1000.0
FOUND_BY = {"api": "hook", "watch": "folder", "io": "its writing"}
CHECKPOINTS = (
    GridHead("number", "#"),
    GridHead("start", "start", rank=3),
    GridHead("joules", "J"),
    GridHead("gpu_j", "GPU J", rank=1),
    GridHead("host_j", "host J", rank=1),
    GridHead("stall", "stall, s"),
    GridHead("safe", "safe, s"),
    GridHead("size", "size", rank=2),
    GridHead("usd", "USD", rank=2),
    GridHead("rate", "rate", rank=4),
    GridHead("co2", "kgCO2e", rank=5),
    GridHead("written", "written in, s", rank=6),
    GridHead("by", "found by", left=True, rank=7),
    GridHead("name", "checkpoint", left=True, rank=8),
)
OUTLIERS = 20

Cell = tuple[str, Order]
"""a text, and what it is sorted by"""
_NOTHING: Cell = ("", None)


def _value(value: float | None, word: Callable[[float | None], str] = number) -> Cell:
    return word(value), None if value is None or isnan(value) else value


def _watts(value: float | None) -> str:
    return amount(value, "w")


def _apart(share_: float | None) -> str:
    return DASH if share_ is None or isnan(share_) else f"{share_ * 100:+.1f} %"


def _row(key: str, cells: Iterable[Cell | str], tone: Tone = "") -> Row:
    """A text is sorted by itself."""
    pairs = [(cell, cell) if isinstance(cell, str) else cell for cell in cells]
    return Row(key, tuple(text for text, _ in pairs), tuple(order for _, order in pairs), tone)


class Checkpoints:
    """Rows of checkpoints that are settled are made once."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[tuple[object, ...], Row]] = {}

    def grid(self, board: LiveBoard, now_s: float) -> Grid:
        rows = [self._row(board, entry, now_s) for entry in reversed(board.book.entries)]
        s, note = board.account.prices.scenario, ""
        if s is not None and rows:
            pue = number(float(s.site.pue))
            note = "J: metered parts until safe, at the node. USD and CO2e: of the stall, at the"
            note += f" facility, PUE {pue}"
        return Grid(CHECKPOINTS, rows, "Checkpoints", note, "no checkpoint yet")

    def _row(self, board: LiveBoard, entry: Entry, now_s: float) -> Row:
        priced = board.account.priced.get(entry.number)
        key = (board, entry.window, entry.better, priced, entry.open)
        before, row = self._made.get(entry.number, ((), None))
        if row is None or entry.open or any(a is not b for a, b in zip(before, key, strict=True)):
            row = row_of(board, entry, now_s)
            self._made[entry.number] = key, row
        return row


def row_of(board: LiveBoard, entry: Entry, now_s: float) -> Row:
    window, what = entry.best
    priced, joules = board.account.priced.get(entry.number), board.account.joules(entry.number)
    begin_s, safe = window.begin_s, _value(safe_s(window, what))
    if entry.open and begin_s is not None:
        safe = f"{number(round(max(now_s - begin_s, 0.0), 1))} ...", safe[1]
    name = window.name + (" (load)" if entry.is_load else "")
    odd = disorder(entry)
    tone: Tone = "warn" if entry.open or odd else "muted" if entry.is_load else ""
    cells = (
        (count(float(entry.number)) + ("!" if odd else ""), float(entry.number)),
        (_start(board, begin_s), begin_s),
        _value(joules.all.value),
        _value(joules.gpus.value),
        _value(joules.hosts.value),
        _value(window.stall_s),
        safe,
        _value(what.bytes, size),
        _value(_amount(priced, "cost_usd")),
        _value(rate_of(window, what), rate),
        _value(_amount(priced, "location_kgco2e")),
        _value(_written_s(window)),
        FOUND_BY.get(entry.by, entry.by),
        name + (f": failed, {what.error}" if what.error else ""),
    )
    return _row(str(entry.number), cells, "bad" if what.error else tone)


def _amount(priced: Priced | None, quantity: LineField) -> float:
    return nan if priced is None else priced.amount(quantity)


def disorder(entry: Entry) -> str:
    """Why its times cannot all be right; empty where its instants follow each other."""
    window, what = entry.best
    odd = [flag.about for flag in window.flags if flag.code == "OUT_OF_ORDER"]
    if odd:
        told = (f"the mark {about} stands before one that it should follow" for about in odd)
        return ", ".join(dict.fromkeys(told))
    late = (_written_s(window) or 0.0) > (safe_s(window, what) or float("inf"))
    return "it is said to be safe before its last byte was written" if late else ""


def _written_s(window: Window) -> float | None:
    """Until the last rank had written its bytes."""
    spans = [span.at_s for span in window.spans]
    ends = [at_s.get("written", nan) for at_s in spans]
    known = [[at_s[n] for n in ("written", "synced", "committed") if n in at_s] for at_s in spans]
    if window.begin_s is None or not spans or not all(known):
        return None
    return max(map(max, known) if any(map(isnan, ends)) else ends) - window.begin_s


def safe_s(window: Window, what: Contents) -> float | None:
    """From its begin."""
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


_BESIDE: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "utilisation": ("busy", share),
    "memory_used_bytes": ("memory", size),
    "temperature_c": ("C", number),
}


def gpus_grid(board: LiveBoard) -> Grid:
    """One row a card: what it takes now and took so far."""
    gpu, beside = GridHead("gpu", "GPU"), board.sources.gpu_more
    if not board.gpus:
        return Grid((gpu,), (), "GPUs", "", _why_no_gpu(board))
    joules = {} if board.partly else {one.channel.domain: one.joules for one in board.sums}
    shown = [q for q in _BESIDE if any(q in more for more in beside)]
    rows = [
        _gpu_row(board.last_s, probe, joules.get(probe.channel.domain, nan), more, shown)
        for probe, more in zip(board.gpus, beside, strict=True)
    ]
    heads = (
        gpu,
        GridHead("power", "W"),
        GridHead("energy", "Wh so far"),
        *(GridHead(q, _BESIDE[q][0], rank=2) for q in shown),
        GridHead("source", "power from", left=True, rank=3),
    )
    lost = any(row.tone == "bad" for row in rows)
    return Grid(heads, rows, "GPUs", "a GPU without a number does not answer" if lost else "")


def _gpu_row(
    last_s: float, probe: Probe, joules: float, more: Mapping[str, Probe], shown: Sequence[str]
) -> Row:
    domain, now_w = probe.channel.domain, probe.lately(last_s)
    name = domain.partition(":")[2]
    cells: tuple[Cell | str, ...] = (
        (name, float(name) if name.isdigit() else name),
        _value(now_w),
        _value(joules / WH_J),
        *(_value(more[q].value(last_s) if q in more else nan, _BESIDE[q][1]) for q in shown),
        probe.channel.source,
    )
    return _row(domain, cells, "bad" if isnan(now_w) else "")


def outliers_grid(board: LiveBoard) -> Grid:
    """Cards whose power is farthest from the median just now; those that do not answer come
    first."""
    heads = (GridHead("gpu", "GPU"), GridHead("power", "W"), GridHead("off", "off the median"))
    title = "Farthest from the others"
    now = [(probe.channel.domain, probe.lately(board.last_s)) for probe in board.gpus]
    known = [watts for _, watts in now if watts == watts]
    if not known:
        return Grid(heads, (), title, "", _why_no_gpu(board))
    middle_w = median(known)
    apart = [(domain, w, w / middle_w - 1.0 if middle_w else nan) for domain, w in now]
    apart.sort(key=lambda one: float("-inf") if isnan(one[2]) else -abs(one[2]))
    rows = [
        _row(
            domain,
            (
                (domain.partition(":")[2], domain),
                _value(watts),
                _value(off_, _apart),
            ),
            "bad" if isnan(off_) else "",
        )
        for domain, watts, off_ in apart[:OUTLIERS]
    ]
    note = f"median {amount(middle_w, 'w')} of {count(float(len(known)))} GPUs"
    return Grid(heads, rows, title, note)


_METERS = (
    GridHead("state", "state", left=True),
    GridHead("meter", "meter", left=True),
    GridHead("what", "what", left=True),
    GridHead("now", "now"),
    GridHead("so_far", "kWh so far", rank=1),
    GridHead("why", "why, and what would help", left=True, rank=2),
)


def meters_grid(board: LiveBoard) -> Grid:
    """What answers, what was lost, and what is not here."""
    rows: list[Row] = []
    for meter in board.headers[-1].meters if board.headers else ():
        by_kind: dict[str, list[str]] = {}
        for channel in meter.channels:
            by_kind.setdefault(channel.kind_of_domain, []).append(channel.domain)
        for kind, domains in by_kind.items():
            whole = [domain for domain in domains if "." not in domain] or domains
            rows.append(_meter_row(board, meter.name, kind, list(dict.fromkeys(whole))))
    for n, absence in enumerate(board.absences):
        why = absence_text("", absence.reason, absence.remedy)[2:]
        cells = ("not here", absence.what, absence.kind, _NOTHING, _NOTHING, why)
        rows.append(_row(f"absent {n}", cells, "muted"))
    empty = "no meter answers here" if board.records else "no meter was looked for yet"
    return Grid(_METERS, rows, "Meters", "", empty)


def _meter_row(board: LiveBoard, meter: str, kind: str, domains: Sequence[str]) -> Row:
    sums, probes = _of(domains, board.sums), _of(domains, board.sources.power_probes)
    stored = _of(domains, board.sources.writes)
    now = kwh = _NOTHING
    if probes:
        now = _value(now_of(probes, board.last_s), _watts)
    elif stored:
        now = _value(now_of(stored, board.last_s), rate)
    if probes and len(sums) == len(probes) and not board.partly:
        kwh = _value(total_j(sums) / KWH_J)
    names = domains[0] if len(domains) == 1 else f"{count(float(len(domains)))} x {kind}"
    state, tone, why = _answer(board, meter, domains, bool(probes) and now[0] == DASH)
    return _row(f"{meter} {kind}", (state, meter, names, now, kwh, why), tone)


_About = TypeVar("_About", Probe, DomainSum)


def _of(domains: Sequence[str], all_: Iterable[_About]) -> list[_About]:
    return [one for one in all_ if one.channel.domain in domains]


def _answer(
    board: LiveBoard, meter: str, domains: Sequence[str], silent: bool
) -> tuple[str, Tone, str]:
    """In a word, with its tone and, of what was lost, when and why."""
    lost = [event for name, event in board.lost.items() if name in domains or name == meter]
    if lost:
        ago = duration(round(max(board.last_s - lost[-1].t_s, 0.0)))
        return "lost", "bad", f"{lost[-1].domain}, {ago} ago: {lost[-1].text}"
    return ("no answer", "warn", "") if silent else ("answers", "good", "")


def _why_no_gpu(board: LiveBoard) -> str:
    found = next((absence for absence in board.absences if absence.kind == "gpu"), None)
    if found is None:
        return "no GPU answers here"
    return absence_text(found.what, found.reason, found.remedy)


def last_of(board: LiveBoard) -> tuple[str, Tone]:
    """Of the newest save that is over; of one under way, how long it has been so."""
    saves = [entry for entry in reversed(board.book.entries) if not entry.is_load]
    over = next((entry for entry in saves if not entry.open), None)
    open_ = next((entry for entry in saves if entry.open), None)
    nothing: tuple[str, Tone] = (
        "No checkpoint yet: the first one is told here when it is over.",
        "muted",
    )
    told, tone = nothing if over is None else _save_sentence(board, over)
    if open_ is not None:
        begin_s = open_.window.begin_s
        for_s = "" if begin_s is None else f" for {duration(round(board.last_s - begin_s, 1))}"
        first = f"#{open_.number} under way{for_s}."
        return first if over is None else f"{first} {told}", "warn"
    return told, tone


def gpus_of(account: Account) -> float:
    """On which checkpoints are priced."""
    machine = account.prices.machine
    return nan if machine is None else machine.gpus


def _save_sentence(board: LiveBoard, entry: Entry) -> tuple[str, Tone]:
    (window, what), account, name = entry.best, board.account, f"#{entry.number}"
    if what.error:
        return f"{name} failed: {what.error}.", "bad"
    safe, stall = safe_s(window, what), window.stall_s
    bytes_ = "unknown bytes" if isnan(what.bytes) else size(what.bytes)
    times = "safe at an unknown time" if safe is None else f"in {duration(safe)}"
    held_up = "unknown" if stall is None else duration(stall)
    first = f"{name}: {bytes_} {times} (stall {held_up})"
    if entry.number not in account.seen and entry.evaluated != entry.window:
        return f"{first}; its energy is being worked out.", ""
    energy, priced = _energy(account.joules(entry.number)), account.priced.get(entry.number)
    parts = (first, energy, _waited(priced, gpus_of(account)), _cost(priced))
    return ", ".join(parts) + ".", ""


def _energy(joules: Joules) -> str:
    """The sum with its doubt; where a part is missing, what is at least known."""
    told = {"GPU": joules.gpus, "host": joules.hosts}
    known = [energy for energy in told.values() if energy.known]
    if not known:
        return "energy unknown"
    parts = ", ".join(
        f"{name} {number(energy.value) if energy.known else 'unknown'}"
        for name, energy in told.items()
    )
    if len(known) < len(told) or not joules.all.known:
        return f"at least {number(total(known).value)} J ({parts})"
    far_j = off(joules.all)
    doubt = f" +-{number(far_j)}" if isfinite(far_j) else ""
    return f"{number(joules.all.value)} J{doubt} ({parts})"


def _waited(priced: Priced | None, gpus: float) -> str:
    gpu_s, least_s = _amount(priced, "gpu_s"), _least(priced, "gpu_s")
    if not isnan(gpu_s):
        who = "GPUs" if isnan(gpus) else f"{count(gpus)} GPU{'' if gpus == 1 else 's'}"
        return f"{who} waited {number(gpu_s)} GPU-s"
    return f"GPUs waited at least {number(least_s)} GPU-s" if least_s else "GPU-s unknown"


def _cost(priced: Priced | None) -> str:
    usd, least = _amount(priced, "cost_usd"), _least(priced, "cost_usd")
    if not isnan(usd):
        return f"${number(usd)}"
    return f"at least ${number(least)}" if least else "cost unknown"


def _least(priced: Priced | None, quantity: LineField) -> float:
    """Of the lines that are known; 0 where none is."""
    lines = () if priced is None else priced.bill.bill.lines
    found = (float(getattr(line, quantity)) for line in lines)
    return sum(value for value in found if not isnan(value))
