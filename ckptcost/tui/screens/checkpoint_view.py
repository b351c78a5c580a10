"""One recorded save or load: its phases, bytes, joules, prices, what the scenario says of it, and
how all of that is known."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import NamedTuple

from ckptcost.core.contents import Contents
from ckptcost.core.windows import Window
from ckptcost.jobs.disks import of_saves
from ckptcost.jobs.measured import Measured
from ckptcost.present.amounts import DASH, count, duration, number, rate, size
from ckptcost.present.chart import Bars, Stat, Traces
from ckptcost.present.grid import Grid
from ckptcost.report.studies.measure_saves import rate_of
from ckptcost.report.studies.measured_parts import some
from ckptcost.tui.desk import Desk
from ckptcost.tui.screens.checkpoint_model import Modelled, compared_by, modelled
from ckptcost.tui.screens.checkpoint_parts import clock, energy_of, instants_of, phases_of
from ckptcost.tui.screens.checkpoint_words import Said, finders, notes, safe_text
from ckptcost.tui.screens.recorded_run import RecordedRun
from ckptcost.tui.screens.run_traces import around


class Checkpoint(NamedTuple):
    """All of the screen."""

    name: str
    title: str
    subtitle: str
    stats: tuple[Stat, ...]
    phases: Bars
    instants: Grid
    energy: Grid
    modelled: Grid
    traces: Traces
    notes: Sequence[Said]
    place: int
    of: int
    command: str
    """the commands that print its numbers"""


def detail(run: RecordedRun, which: str, desk: Desk, every_domain: bool = False) -> Checkpoint:
    """Everything about one checkpoint. Raises UnknownName where the run has none of that
    name or number."""
    m, place = run.seen, run.place(which)
    window, what, marks = m.windows[place], m.contents[place], run.marks[place]
    beside = modelled(m, place, desk)
    absolute = m.of_window(window.name).absolute
    said: list[Said] = (
        [("SIMULATED: nothing here was measured on this machine.", "warn")] if m.simulated else []
    )
    said += notes(
        window, what, absolute.flags, absolute.why, m.dips[place] if place < len(m.dips) else None
    )
    if boundary := _boundary(m, place, beside):
        said.append((boundary, ""))
    said += [(text, "") for text in beside.findings]
    said += [(text, "warn") for text in beside.cautions]
    if beside.problem:
        said.append((f"No model beside it: {beside.problem}", "muted"))
    if peak := _peak(m, window.name):
        said.append((peak, "muted"))
    said.append((f"Found by {finders(marks)}. Safe: {safe_text(window, what)}.", "muted"))
    if beside.prices:
        said.append((beside.prices, "muted"))
    title = f"{window.name}, {what.of} {count(place + 1)} of {count(len(m.windows))}"
    return Checkpoint(
        window.name,
        title,
        _about(m, window, what),
        _stats(m, place, beside),
        phases_of(m, window),
        instants_of(m, window, marks, what),
        energy_of(m, window, every_domain),
        beside.lines,
        around(m, window, what.of),
        said,
        place,
        len(m.windows),
        " && ".join(each for each in (run.command, compared_by(run, beside)) if each),
    )


def neighbour(run: RecordedRun, which: str, step: int) -> str:
    """The name of the one so many further; empty before the first and after the last."""
    names = run.names
    place = run.place(which) + step
    return names[place] if 0 <= place < len(names) else ""


def _about(m: Measured, window: Window, what: Contents) -> str:
    when = "" if window.begin_s is None else f"{clock(m, window.begin_s, '%Y-%m-%d %H:%M:%S')} UTC"
    run = f"run {m.kept[:8]} on {m.energies.node.host}" if m.kept else f"on {m.energies.node.host}"
    return ", ".join(each for each in (when, run, what.path) if each)


def _stats(m: Measured, place: int, beside: Modelled) -> tuple[Stat, ...]:
    window, what, chance = m.windows[place], m.contents[place], m.opportunities[place]
    absolute = m.of_window(window.name).absolute
    pue = f"PUE {number(beside.pue)}"
    files = "" if isnan(what.files) else f"{count(what.files)} file{'' if what.files == 1 else 's'}"
    gpus = "" if isnan(chance.stalled_gpu_s) else f"{number(chance.stalled_gpu_s)} GPU-s"
    failed = what.error != ""
    return (
        Stat("size", size(what.bytes), files),
        Stat(
            "safe after",
            duration(window.length_s),
            "failed" if failed else "",
            "bad" if failed else "",
        ),
        Stat("stall", duration(window.stall_s), gpus),
        Stat("rate", rate(rate_of(window, what))),
        Stat(
            "energy at node",
            f"{number(absolute.value)} J" if absolute.known else DASH,
            "metered until safe",
        ),
        Stat(
            "cost",
            DASH if isnan(beside.usd) else f"{number(beside.usd)} USD",
            beside.covers and f"{beside.covers}, facility",
        ),
        Stat(
            "CO2e",
            DASH if isnan(beside.kgco2e) else f"{number(beside.kgco2e)} kg",
            "" if isnan(beside.energy_j) else f"of {number(beside.energy_j)} J, {pue}",
        ),
    )


def _boundary(m: Measured, place: int, beside: Modelled) -> str:
    """Joules that are not of the same thing, told apart: energy is of the node until it is safe,
    prices of what a save holds up."""
    absolute = m.of_window(m.windows[place].name).absolute
    if not beside.lines_told:
        return ""
    whole = f" ({number(absolute.value)} J)" if absolute.known else ""
    return (
        f"Energy is of the metered parts until it was safe, at the node{whole}. Cost and CO2e are"
        f" of {some(beside.lines_told)}, at the facility, PUE {number(beside.pue)}"
        + ("." if isnan(beside.energy_j) else f": {number(beside.energy_j)} J.")
    )


def _peak(m: Measured, name: str) -> str:
    """Of the disk that was quickest: peaks of several do not add up."""
    disks = [
        each.queue
        for each in of_saves(m)
        if each.window == name
        and each.queue.peak_write_bytes_per_s == each.queue.peak_write_bytes_per_s
    ]
    if not disks:
        return ""
    quickest = max(disks, key=lambda queue: queue.peak_write_bytes_per_s)
    which = f"the quickest of {count(len(disks))} disks" if len(disks) > 1 else "the disk"
    return (
        f"At its peak, {which} took {rate(quickest.peak_write_bytes_per_s)}, over"
        f" {duration(quickest.peak_over_s)}."
    )
