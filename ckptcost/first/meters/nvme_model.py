"""Modelled energy of an NVMe drive that reports none: its published watts at rest and at work, by
how long it was busy.

    E(t) = idle_w * t + (active_w - idle_w) * busy

with the busy time of /sys/block/NAME/stat. Every channel has the basis "modelled". Busy means at
least one request under way, which a drive can be at a small share of its active power, so the truth
lies between: never above idle (`.low`, in its deepest state where it has one that sleeps) and at
its maximum whenever busy (`.high`). The two bounds are details and are never added.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from ckptcost.first.core.channels import Channel
from ckptcost.first.meters.base import NOTHING, Absence, Channelwise, FoundMeters, none_found
from ckptcost.first.meters.kept import OpenFile, os_error_text
from ckptcost.first.meters.nvme import (
    LIST_DRIVES,
    AskPage,
    Drive,
    Identity,
    Passthrough,
    close_way,
    drives,
    identity_of_page,
)


class DriveWatts(NamedTuple):
    """What a model needs of a drive."""

    idle_w: float
    active_w: float
    low_w: float
    """at rest, in the deepest state it has"""
    high_w: float
    """sustained maximum"""
    source: str


def _drop_nan(*values: float) -> list[float]:
    return [value for value in values if value == value]


def watts_of(identity: Identity) -> DriveWatts | None:
    """From the table of power states; None where it does not say what the drive takes at rest or at
    work.

    At work: active power of the first state, or its maximum. At rest: idle power of the first state
    that gives one.
    """
    working = [state for state in identity.states if state.works]
    if not working:
        return None
    idle = _drop_nan(*(state.idle_w for state in working))
    active = _drop_nan(working[0].active_w, working[0].most_w)
    if not idle or not active or max(active) < idle[0]:
        return None
    asleep = _drop_nan(
        *(
            value
            for state in identity.states
            for value in (state.idle_w, state.most_w if not state.works else NOTHING)
        )
    )
    return DriveWatts(
        idle[0],
        max(active[0], idle[0]),
        min(*asleep, idle[0]),
        max(active),
        "power states of the drive",
    )


class _Busy:
    """Busy seconds of a drive's disks, together."""

    def __init__(self, names: Collection[str], sysfs: Path) -> None:
        self._kept = [OpenFile(sysfs / "block" / name / "stat") for name in names]

    def read(self) -> float:
        try:
            return sum(int(kept.read().split()[9]) for kept in self._kept) / 1e3
        except IndexError as error:
            raise ValueError("stat has too few fields") from error

    def close(self) -> None:
        for kept in self._kept:
            kept.close()


class NvmeModel(Channelwise):
    """Three channels a drive: best guess, low, high; joules since the first reading."""

    def __init__(self, chosen: list[tuple[Drive, DriveWatts]], sysfs: Path) -> None:
        super().__init__("nvme-model")
        self._drives: list[tuple[Drive, DriveWatts, _Busy]] = []
        self._state: list[tuple[int, float] | None] = [None] * len(chosen)
        self._sums: list[tuple[float, float, float]] = [(0.0, 0.0, 0.0)] * len(chosen)
        channels: list[Channel] = []
        for drive, watts in chosen:
            self._drives.append((drive, watts, _Busy(drive.namespaces, sysfs)))
            files = ", ".join(f"/sys/block/{name}/stat" for name in drive.namespaces)
            source = f"modelled: {watts.source}, busy time of {files}"
            notes = (
                ("", f"{watts.idle_w:g} W idle, {watts.active_w:g} W busy"),
                (".low", f"{watts.low_w:g} W all the time"),
                (".high", f"{watts.idle_w:g} W idle, {watts.high_w:g} W busy"),
            )
            for suffix, note in notes:
                channels.append(
                    Channel(
                        f"{drive.domain}{suffix}",
                        "energy_j",
                        source,
                        "drive",
                        boundary="drive",
                        basis="modelled",
                        device=drive.name,
                        role="detail" if suffix else "part",
                        resolution=1e-3 * (watts.active_w - watts.idle_w) or None,
                        note=note,
                    )
                )
        self.channels = tuple(channels)

    def read(self, t_ns: int) -> list[float]:
        values: list[float] = []
        for at, (drive, watts, busy) in enumerate(self._drives):
            try:
                busy_s = busy.read()
            except (OSError, ValueError) as error:
                text = os_error_text(error) if isinstance(error, OSError) else "stat is not numbers"
                values += (self.note_missing(drive.domain, text),) * 3
                continue
            self.note_answer(drive.domain)
            before = self._state[at]
            self._state[at] = (t_ns, busy_s)
            if before is not None:
                went_s, worked_s = (t_ns - before[0]) / 1e9, busy_s - before[1]
                if worked_s < 0:
                    # another drive: joules of the time between are not known, and the sums begin
                    # anew
                    self._sums[at] = (0.0, 0.0, 0.0)
                    fell = "its busy time fell: another drive under the same name"
                    self.tell("restarted", drive.domain, fell)
                    values += (NOTHING,) * 3
                    continue
                worked_s = min(worked_s, went_s)  # disks of one drive overlap
                rest_j = watts.idle_w * went_s
                guess, low, high = self._sums[at]
                self._sums[at] = (
                    guess + rest_j + (watts.active_w - watts.idle_w) * worked_s,
                    low + watts.low_w * went_s,
                    high + rest_j + (watts.high_w - watts.idle_w) * worked_s,
                )
            values += self._sums[at]
        return values

    def close(self) -> None:
        for _, _, busy in self._drives:
            busy.close()


def find(
    *,
    sysfs: Path = Path("/sys"),
    dev: Path = Path("/dev"),
    ask: AskPage | None = None,
    watts: Mapping[str, DriveWatts] | None = None,
    measured: Collection[str] = (),
) -> FoundMeters:
    """A model of each drive that is not among `measured` (domains whose power or energy is read).
    `watts` has what a user or a catalogue says, by domain, disk, model or serial, and goes before
    what the drive itself publishes."""
    present, absences = drives(sysfs)
    if not present and not absences:
        return none_found(
            "nvme-model", f"no NVMe drive in {sysfs}/class/nvme", LIST_DRIVES, "storage"
        )
    chosen: list[tuple[Drive, DriveWatts]] = []
    way = ask or Passthrough(dev)
    for drive in present:
        if drive.domain in measured:
            continue
        figures = _watts_for(drive, watts or {}, way)
        if isinstance(figures, Absence):
            absences.append(figures)
        else:
            chosen.append((drive, figures))
    close_way(way)
    try:
        return FoundMeters((NvmeModel(chosen, sysfs),) if chosen else (), tuple(absences))
    except OSError as error:
        reason = f"{error.filename}: {os_error_text(error)}"
        absences.append(
            Absence("nvme-model", reason, "mount sysfs: ls /sys/block/*/stat", "storage")
        )
        return FoundMeters((), tuple(absences))


def _watts_for(drive: Drive, said: Mapping[str, DriveWatts], way: AskPage) -> DriveWatts | Absence:
    """What somebody says of the drive, or it of itself."""
    names = (drive.domain, *drive.namespaces, drive.controller, drive.serial, drive.model)
    figures = next((said[name] for name in names if name and said.get(name)), None)
    reason = "the drive's power states do not say what it takes at rest and at work"
    if figures is None:
        try:
            figures = watts_of(identity_of_page(way(drive.controller, "identity")))
        except (OSError, ValueError) as error:
            reason = f"/dev/{drive.controller}: {os_error_text(error)}"
    what = f"nvme-model {drive.domain}"
    if figures is None:
        shown = drive.model or drive.controller
        remedy = f"run as root, so that the power states of {shown} can be read"
        return Absence(what, reason, remedy, "storage")
    if not drive.namespaces:
        reason = "it has no namespace, so nothing is written to it"
        return Absence(what, reason, LIST_DRIVES, "storage")
    return figures
