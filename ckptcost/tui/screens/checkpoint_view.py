"""One recorded save or load: its phases, bytes, joules, prices, what the scenario says of it, and
how all of that is known."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import cached_property
from math import isnan
from pathlib import Path
from typing import NamedTuple

from ckptcost.core.channels import Mark
from ckptcost.core.contents import Contents, by_window
from ckptcost.core.joining import joined
from ckptcost.core.windows import Window
from ckptcost.errors import UnknownName
from ckptcost.jobs.disks import of_saves
from ckptcost.jobs.measure import reviewed
from ckptcost.jobs.measured import Measured
from ckptcost.present.amounts import DASH, count, duration, number, rate, size
from ckptcost.present.chart import Bars, Stat, Traces
from ckptcost.present.grid import Grid
from ckptcost.report.studies.measure import study_of
from ckptcost.report.studies.measure_saves import rate_of
from ckptcost.report.studies.measured_parts import some
from ckptcost.report.study import Study
from ckptcost.tui.desk import Desk
from ckptcost.tui.screens.checkpoint_model import Modelled, compared_by, modelled
from ckptcost.tui.screens.checkpoint_parts import clock, energy_of, instants_of, phases_of
from ckptcost.tui.screens.checkpoint_trace import around
from ckptcost.tui.screens.checkpoint_words import Said, finders, notes, safe_text


class Recording:
    """A run that was read from its files, and its checkpoints. Reading takes a while, all else some
    milliseconds."""

    def __init__(self, run: str, host: str = "", run_id: str = "") -> None:
        """Raises CkptcostError where there is no such run, or no readings in it."""
        self.run = run
        self.seen: Measured = reviewed(run, host=host, run_id=run_id)

    @property
    def names(self) -> list[str]:
        return [window.name for window in self.seen.windows]

    def place(self, which: str) -> int:
        """By its name, or by its number, from 1. Raises UnknownName."""
        names = self.names
        if which in names:
            return names.index(which)
        if which.isdigit() and 0 < int(which) <= len(names):
            return int(which) - 1
        raise UnknownName("checkpoint", which, names, where=Path(self.run).name)

    @cached_property
    def marks(self) -> list[list[Mark]]:
        """Beside the windows, of each all that was said."""
        return by_window(joined(self.seen.run.marks), self.seen.windows)

    @cached_property
    def study(self) -> Study:
        """As `ckptcost report RUN` prints it."""
        return study_of(self.seen)

    @property
    def command(self) -> str:
        return shlex.join(["ckptcost", "report", self.run])


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


def detail(recording: Recording, which: str, desk: Desk, every_domain: bool = False) -> Checkpoint:
    """Everything about one checkpoint. Raises UnknownName where the run has none of that name or
    number."""
    m, place = recording.seen, recording.place(which)
    window, what, marks = m.windows[place], m.contents[place], recording.marks[place]
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
        " && ".join(
            each for each in (recording.command, compared_by(recording.command, beside)) if each
        ),
    )


def neighbour(recording: Recording, which: str, step: int) -> str:
    """The name of the one so many further; empty before the first and after the last."""
    names = recording.names
    place = recording.place(which) + step
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
