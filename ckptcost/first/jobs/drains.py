"""When nobody saw a save become safe: the instant at which what it left in the host's page cache
had been written back.

The weakest of the evidence, so it is asked last: it is about the whole host, and other writers can
make it late.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import NamedTuple

from ckptcost.first.core.channels import Mark, Series
from ckptcost.first.core.contents import LOST_BEFORE_SAFE, Contents, contents_of
from ckptcost.first.core.joining import join_marks
from ckptcost.first.core.phases import windows_of
from ckptcost.first.core.windows import Window
from ckptcost.first.jobs.energies import Energies
from ckptcost.first.meters.writeback import drain_times
from ckptcost.first.runs.run import Run

NEVER = LOST_BEFORE_SAFE | {
    "IN_MEMORY",
    "ON_SERVER",
    "CLOSE_FLUSHES",
    "OWN_CACHE",
    "NOT_A_SAVE",
    "STOPPED",
    "NOT_DRAINED",
}
"""of these an empty page cache of this host says nothing: what was deleted or written over leaves
it without ever reaching the storage; or the kernel said that it was not empty of them"""


class HostSaves(NamedTuple):
    """What the marks of one host tell."""

    marks: list[Mark]
    windows: list[Window]
    contents: list[Contents]


def saves_of(run: Run, energies: Energies) -> HostSaves:
    """Every save and load of a host: as the job says it, as it was seen from outside, and by
    write-back where neither knows when it was safe. `energies` needs the host's write-back and
    disks, no more."""
    host = energies.node.host
    marks = join_marks(
        mark for mark in run.marks if len(run.hosts) == 1 or mark.detail.get("host") in (None, host)
    )
    marks += drained_marks(energies, marks)
    windows = windows_of(marks)
    return HostSaves(marks, windows, contents_of(marks, windows))


def drained_marks(energies: Energies, marks: Sequence[Mark]) -> list[Mark]:
    """`durable` marks for saves that lack one and whose bytes are known, where the host's
    write-back shows it."""
    windows = windows_of(marks)
    lacking = [
        (window, what)
        for window, what in zip(windows, contents_of(marks, windows), strict=True)
        if window.begin_s is not None
        and window.durable_s is None
        and what.of == "save"
        and not what.error
        and what.why not in NEVER
    ]
    owed = _owed_bytes(energies) if lacking else None
    if owed is None:
        return []
    written = _written(energies)
    return [mark for window, what in lacking for mark in _marks_of(window, what, owed, written)]


def _owed_bytes(energies: Energies) -> Series | None:
    """Dirty and Writeback of the host, added up: both are of the same reading."""
    readings = energies.readings("host")
    if "dirty_bytes" not in readings or "writeback_bytes" not in readings:
        return None
    dirty, under_way = readings["dirty_bytes"], readings["writeback_bytes"]
    if len(dirty.t_s) != len(under_way.t_s):
        return None
    return dirty._replace(value=dirty.value + under_way.value)


def _written(energies: Energies) -> Series | None:
    """What the only disk took; with several nobody knows whose pages went where."""
    disks = [
        c
        for c in energies.channels
        if c.quantity == "written_bytes"
        and c.role == "part"
        and c.kind_of_domain in ("disk", "mount")
    ]
    return energies.readings(disks[0].domain)["written_bytes"] if len(disks) == 1 else None


def _marks_of(window: Window, what: Contents, owed: Series, written: Series | None) -> list[Mark]:
    over_s = max(
        (
            at
            for span in window.spans
            for name, at in span.at_s.items()
            if name in ("written", "committed", "returned")
        ),
        default=None,
    )
    if over_s is None or window.begin_s is None or isnan(what.bytes):
        return []
    seen = drain_times(
        owed, written, begin_s=window.begin_s, returned_s=over_s, size_bytes=what.bytes
    )
    if isnan(seen.at_s) or seen.enough is False:
        return []
    detail: dict[str, object] = {"how": "drained", "unsure_s": max(seen.at_s - seen.after_s, 0.0)}
    return [
        Mark(seen.at_s, "durable", window.label, span.rank, "watch", detail)
        for span in window.spans
        if span.durable_s is None
    ]
