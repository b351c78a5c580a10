"""Which saves and loads of a run a fit may rest on: finished, of known size, alone; and what each
took."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from math import nan
from typing import Final, NamedTuple

import numpy as np

from ckptcost.core import gauges
from ckptcost.core.channels import Mark
from ckptcost.core.contents import OUTSIDE, Contents, written_back_s
from ckptcost.core.dips import Dip
from ckptcost.core.estimates import Estimate, Floats, absent
from ckptcost.core.steps import Split
from ckptcost.core.windows import Stretch, Window, extent, quiet_before, union
from ckptcost.jobs.measured import Measured
from ckptcost.jobs.measured_bill import load_end_s
from ckptcost.runs.header import base_name

EARLY: Final = 0.1
"""a save that is safe so much of its length after training went on was not waited for"""
TAKEN: Final = 0.9
"""a disk that took less of a save's bytes was not where they went"""
BUSY: Final = 0.2
"""utilisation of the GPUs from which somebody trains on them"""
GPU_KINDS: Final = ("gpu:", "module:")


class Round(NamedTuple):
    """One save or load."""

    run: str
    window: Window
    mode: str
    """sync; early: written before training went on, and safe later, as without fsync; async:
    written in the background; load"""
    bytes: float
    files: float
    seconds: float
    """from its begin until it is safe; async: from the return on, when writing begins; load: until
    training goes on"""
    stall_s: float
    """training held up; NaN where nobody says when it went on"""
    quiet: Stretch | None
    """the time just before in which nothing was saved"""
    trains: bool
    """somebody trained in it"""
    ranks_s: tuple[float, ...]
    """how long each rank was at it"""
    by_steps: Estimate
    """the stall as training steps show it"""
    dip: Dip | None
    """whether the GPUs' power confirms the stall; None without training or a stall"""
    how: str
    """the evidence for the instant that it was safe"""
    unsure_s: float
    """how long before that it was last seen not to be; NaN where the mark is the instant itself"""
    from_cache: bool = False
    """nobody synced it: `seconds` are those in which the disk was busy with it, not the kernel's
    timer"""


class LeftOut(NamedTuple):
    run: str
    window: str
    of: str
    why: str
    """NO_BYTES, FAILED, OVERLAPS, NO_TIME, OTHER_MODE, PAGE_CACHE, HONEYMOON, or why the window's
    end is not known"""


class Told:
    """One run and what can be taken from it."""

    def __init__(self, seen: Measured) -> None:
        self.seen = seen
        self.id = base_name(seen.run.id)
        self.host = seen.energies.node.host
        self.marks: list[Mark] = [
            m
            for m in seen.run.marks
            if len(seen.run.hosts) == 1 or m.detail.get("host") in (None, self.host)
        ]
        self.gpus = [domain for domain in seen.energies.parts if domain.startswith(GPU_KINDS)]
        self._busy = union(extent(window) for window in seen.windows)
        ticked = seen.energies.node.ticked_s()
        self._since_s = float(ticked[0, 0]) if len(ticked) else 0.0

    @property
    def ends_s(self) -> Floats:
        """Ends of training steps."""
        return np.empty(0) if self.seen.steps is None else self.seen.steps.ends_s

    @property
    def split(self) -> Split:
        return Split(np.empty(0), np.empty(0)) if self.seen.steps is None else self.seen.steps.split

    @cached_property
    def is_of_all(self) -> bool:
        """Its bytes are a whole system's: told from outside, of a job that has more ranks than this
        node."""
        world = max(
            (float(n) for m in self.marks if isinstance(n := m.detail.get("world"), int | float)),
            default=0.0,
        )
        here = max((len(window.spans) for window in self.seen.windows), default=0)
        outside = any(m.by == OUTSIDE and m.detail.get("bytes") for m in self.marks)
        return outside and (len(self.seen.run.hosts) > 1 or world > here)

    def quiet(self, at_s: float) -> Stretch | None:
        return quiet_before(self._busy, at_s, self._since_s)

    def trains(self, stretch: Stretch | None) -> bool:
        """Steps end in it, or GPUs are busy; a probe's pauses are no training."""
        if stretch is None:
            return False
        begin_s, end_s = stretch
        if len(self.ends_s) and ((self.ends_s >= begin_s) & (self.ends_s < end_s)).any():
            return True
        energies = self.seen.energies
        places = [
            n
            for n, c in enumerate(energies.channels)
            if c.quantity == "utilisation" and c.domain.startswith(GPU_KINDS)
        ]
        shares = [gauges.spread(energies.series(n), begin_s, end_s).mean for n in places]
        known = [share for share in shares if share == share]
        return bool(known) and sum(known) / len(known) >= BUSY


def rounds_of(told: Told) -> tuple[list[Round], list[LeftOut]]:
    """Every window, as a round or with the reason why it is none."""
    seen = told.seen
    stalled = (
        [absent("NO_STEPS")] * len(seen.windows) if seen.steps is None else seen.steps.stalls_s
    )
    alone = _alone(seen.windows)
    torn = _torn(
        [
            window
            for window, what in zip(seen.windows, seen.contents, strict=True)
            if what.of != "load"
        ]
    )
    change = seen.slower
    in_memory = set() if change is None else {w.name for w in seen.stalled_saves[: change.first]}
    rounds: list[Round] = []
    left: list[LeftOut] = []
    for place, (window, what) in enumerate(zip(seen.windows, seen.contents, strict=True)):
        mode, seconds, why = _seconds(window, what)
        if not why and window is torn:
            why = "UNFINISHED"
        if not why and not alone[place]:
            why = "OVERLAPS"
        if not why and window.name in in_memory:
            why = "HONEYMOON"
        from_cache = not why and written_back_s(window, what) != 0.0
        if from_cache:
            mode, seconds = "early", _busy_s(told, window, what.bytes)
            why = "" if seconds > 0 else "PAGE_CACHE"
        if why:
            left.append(LeftOut(told.id, window.name, what.of, why))
            continue
        assert window.begin_s is not None
        quiet = told.quiet(window.begin_s)
        trains = told.trains(quiet)
        stall_s = nan if window.stall_s is None else window.stall_s
        dip = seen.dips[place] if trains and mode != "load" else None
        rounds.append(
            Round(
                told.id,
                window,
                mode,
                what.bytes,
                what.files,
                seconds,
                stall_s,
                quiet,
                trains,
                _ranks_s(window),
                stalled[place],
                dip,
                what.how,
                what.unsure_s,
                from_cache,
            )
        )
    return rounds, left


def _busy_s(told: Told, window: Window, size_bytes: float) -> float:
    """How long the disk that took a save was busy for it; NaN where not exactly one took so
    much."""
    took = [
        stored.queue
        for stored in told.seen.stored
        if stored.window == window.name
        and stored.disk.startswith("disk:")
        and stored.queue.written_bytes >= TAKEN * size_bytes
    ]
    if len(took) != 1:
        return nan
    (queue,) = took
    return queue.busy * (queue.end_s - queue.begin_s) * size_bytes / queue.written_bytes


def _torn(windows: Sequence[Window]) -> Window | None:
    """The last one, where the marks stop between its fsync and the commit that others have: it is
    not safe yet."""
    last = max(windows, key=lambda window: window.last_s, default=None)
    if (
        last is None
        or _has(last, "committed", "durable")
        or not any(_has(window, "committed") for window in windows)
    ):
        return None
    return last


def _has(window: Window, *names: str) -> bool:
    return any(name in span.at_s for span in window.spans for name in names)


def _seconds(window: Window, what: Contents) -> tuple[str, float, str]:
    """Mode, duration, and why it is none."""
    if what.error:
        return "", nan, "FAILED"
    end_s = load_end_s(window) if what.of == "load" else window.durable_s
    if window.begin_s is None or end_s is None:
        return (
            "",
            nan,
            window.begin_why
            or (window.returned_why if what.of == "load" else what.why or window.durable_why),
        )
    if not what.bytes > 0:
        return "", nan, "NO_BYTES"
    mode, seconds = "load" if what.of == "load" else "sync", end_s - window.begin_s
    returned_s = window.returned_s
    if mode == "sync" and returned_s is not None and end_s - returned_s > EARLY * seconds:
        written_s = max(
            (span.at_s["written"] for span in window.spans if "written" in span.at_s), default=end_s
        )
        mode, seconds = (
            ("async", end_s - returned_s) if written_s > returned_s else ("early", seconds)
        )
    return mode, seconds, "" if seconds > 0 else "NO_TIME"


def _alone(windows: Sequence[Window]) -> list[bool]:
    """Which share no time with another: two that write at once share the rate."""
    spans = [extent(window) for window in windows]
    ordered = sorted(span for span in spans if span is not None)
    begins = [span[0] for span in ordered]
    reach: list[float] = []
    for _, end_s in ordered:
        reach.append(max(end_s, reach[-1]) if reach else end_s)
    found = []
    for span in spans:
        if span is None:
            found.append(True)
            continue
        first = bisect_left(begins, span[0])
        found.append(
            (first == 0 or reach[first - 1] <= span[0])
            and (first + 1 >= len(begins) or begins[first + 1] >= span[1])
        )
    return found


def _ranks_s(window: Window) -> tuple[float, ...]:
    """From each rank's begin to the last that it says of its own writing."""
    found = []
    for span in window.spans:
        lasts = [
            span.at_s[name] for name in ("written", "synced", "committed") if name in span.at_s
        ]
        last_s = (
            max(lasts)
            if lasts
            else span.durable_s
            if span.durable_s is not None
            else span.returned_s
        )
        if span.begin_s is not None and last_s is not None:
            found.append(last_s - span.begin_s)
    return tuple(found)
