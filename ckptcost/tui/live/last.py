"""The last checkpoint in one sentence: its bytes and times, the joules of its parts, the GPUs that
waited, and what that costs. What is not known is said to be unknown."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf, isnan
from typing import NamedTuple

from ckptcost.core.reconcile import Energy, total, unknown
from ckptcost.jobs.save_book import Entry
from ckptcost.present.amounts import count, duration, number, size
from ckptcost.present.grid import Tone
from ckptcost.report.studies.measured_parts import off
from ckptcost.tui.live.board import LiveBoard
from ckptcost.tui.live.tally import Priced, Seen


class Joules(NamedTuple):
    """From begin until it was safe, at the node, as `ckptcost report` has them."""

    all: Energy
    gpus: Energy
    hosts: Energy


def joules_of(seen: Seen | None) -> Joules:
    if seen is None:
        return Joules(*(unknown("NO_READING"),) * 3)
    gpus = [cost.absolute for cost in seen.costs if _kind(cost.domain) in ("gpu", "module")]
    hosts = [
        cost.absolute for cost in seen.costs if _kind(cost.domain) not in ("gpu", "module", "node")
    ]
    return Joules(
        seen.absolute,
        total(gpus) if gpus else unknown("NO_GPU_METER"),
        total(hosts) if hosts else unknown("NO_PARTS"),
    )


def _kind(domain: str) -> str:
    return domain.split(":", 1)[0]


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
    seen, priced = board.tally.seen.get(entry.number), board.tally.priced.get(entry.number)
    if seen is None and entry.evaluated != entry.window:
        return f"{first}; its energy is being worked out.", ""
    machine = board.tally.prices.machine
    parts = [
        first,
        _energy(joules_of(seen)),
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
