"""Which disk's bytes stand beside a save: that of the folder it was written to, where the recording
says which that is.

A disk counts everybody's writes. The device that the folder's file system lies on, a partition or a
loop device, counts those to this file system alone. Below a loop device lies a file in somebody
else's page cache: what the disk under it takes in the time of a save is not the save. So it is left
out, and so are disks that have nothing to do with the folder.
"""

from __future__ import annotations

from collections.abc import Mapping

from ckptcost.core import depth
from ckptcost.jobs.energies import Energies
from ckptcost.jobs.measured import Measured, Stored
from ckptcost.meters.block import FOLDER, LIES_ON


def own_of(energies: Energies) -> str:
    """The device that the checkpoints' folder lies on; empty where no folder was named, or none of
    this machine's disks takes it."""
    named = [
        meter.facts[FOLDER]
        for header in energies.node.headers
        for meter in header.meters
        if meter.facts.get(FOLDER)
    ]
    return named[-1] if named and named[-1] in energies.domains("disk", "written_bytes") else ""


def of_saves(m: Measured) -> list[Stored]:
    """What the folder's own device took over each save, and the disks that it is a part of or made
    of; where nobody says which device that is, all disks."""
    own = own_of(m.energies)
    if not own:
        return [stored for stored in m.stored if stored.window]
    kept = {own, *_below(own, _notes(m.energies))}
    known = {stored.disk for stored in m.stored}
    spans = [
        (w.name, w.begin_s, w.end_s)
        for w in m.windows
        if w.begin_s is not None and w.end_s is not None
    ]
    counted = depth.queue_counts(m.energies.readings(own)) if own not in known else None
    return [
        *(
            [Stored(name, own, depth.over(counted, a, b)) for name, a, b in spans]
            if counted is not None
            else []
        ),
        *(stored for stored in m.stored if stored.window and stored.disk in kept),
    ]


def _notes(energies: Energies) -> Mapping[str, str]:
    return {c.domain: c.note for c in energies.channels if c.kind_of_domain == "disk" and c.note}


def _below(domain: str, notes: Mapping[str, str]) -> set[str]:
    """The devices under one, as its channels' notes name them; the file under a loop device is
    none."""
    found: set[str] = set()
    words = notes.get(domain, "").removeprefix(LIES_ON).split(", ") if domain in notes else []
    for name in words:
        if not name.startswith("/") and (under := f"disk:{name}") not in found:
            found |= {under, *_below(under, notes)}
    return found


def whose_bytes(m: Measured) -> str:
    """Whose bytes these are, in words."""
    own = own_of(m.energies)
    others = (
        "in the time of each save, others' writes to it among them; the save's own bytes are among"
        " the checkpoints"
    )
    if own:
        return f"All bytes that {own}, the folder's own device, took {others}."
    return (
        f"All bytes that each disk took {others}. Which disk the saves went to is not known: no"
        " folder was named."
    )
