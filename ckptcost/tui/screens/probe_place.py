"""The folder that is to be probed: its file system, its device and its room; what speaks against
it, and what to keep in mind."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from ckptcost.meters.block import device_of
from ckptcost.present.amounts import size
from ckptcost.present.grid import Tone
from ckptcost.savers.place import margin_bytes
from ckptcost.tui.screens.probe_form import Wish
from ckptcost.watch.filesystems import kind_of

ROTATING, DRIVE, NETWORK, MEMORY = "a rotating disk", "a drive", "a network file system", "memory"
LIKELY_BYTES_PER_S = {ROTATING: 0.2e9, DRIVE: 2e9, NETWORK: 1e9, MEMORY: 4e9}
"""to say roughly how long it takes, as long as nothing is known of the place"""
_REMOTE_WHY = "what counts is this node's way to its servers, and others may use them meanwhile"


class Spot(NamedTuple):
    """A folder, as far as can be told without writing."""

    directory: str
    refusal: str = ""
    """why nothing can be written there, whatever the size"""
    fs_type: str = ""
    device: str = ""
    kind: str = DRIVE
    free_bytes: float = 0.0
    whole_bytes: float = 0.0
    """0 where the file system does not say"""
    memory_bytes: float = 0.0
    """of this machine: as much can be in the page cache"""

    @property
    def room_bytes(self) -> float:
        """What a checkpoint may take: some is always left free."""
        return (
            max(self.free_bytes - margin_bytes(int(self.whole_bytes)), 0.0)
            if self.whole_bytes
            else float("inf")
        )


def look(directory: str | Path, procfs: Path = Path("/proc"), sysfs: Path = Path("/sys")) -> Spot:
    """May wait for a server that does not answer, so not on the screen's own thread."""
    path = Path(directory)
    shown = str(path)
    try:
        if not path.exists():
            return Spot(shown, "no such folder")
        if not path.is_dir():
            return Spot(shown, "is no folder")
        room = os.statvfs(path)
    except (OSError, ValueError) as error:
        return Spot(shown, getattr(error, "strerror", None) or str(error))
    mounted = kind_of(path, procfs)
    home = device_of(path, procfs=procfs, sysfs=sysfs)
    kind = MEMORY if mounted.in_memory else NETWORK if mounted.blind else _kind(home.disks, sysfs)
    refusal = ""
    if room.f_flag & os.ST_RDONLY:
        refusal = "the file system is mounted read-only"
    elif not os.access(path, os.W_OK | os.X_OK):
        refusal = "you may not write there"
    return Spot(
        shown,
        refusal,
        mounted.fs_type,
        ", ".join(_named(disk, sysfs) for disk in home.disks),
        kind,
        float(room.f_bavail * room.f_frsize),
        float(room.f_blocks * room.f_frsize),
        _memory_bytes(procfs),
    )


def refusal(spot: Spot, one: Wish) -> str:
    """Why this probe must not begin, with the numbers; empty where it may."""
    if spot.refusal:
        return f"{spot.directory}: {spot.refusal}"
    if one.size_bytes > spot.room_bytes:
        kept = spot.free_bytes - spot.room_bytes
        return (
            f"{spot.directory}: a checkpoint of {size(one.size_bytes)} does not fit:"
            f" {size(spot.free_bytes)} are free, of which {size(kept)} are left alone"
        )
    return ""


def lines(spot: Spot, one: Wish | None) -> list[tuple[str, Tone]]:
    """What the place is, and what to keep in mind there."""
    if spot.refusal:
        return [(spot.refusal, "bad")]
    room = (
        f"{size(spot.free_bytes)} free of {size(spot.whole_bytes)}"
        if spot.whole_bytes
        else "it does not say how much is free"
    )
    where = f"{spot.fs_type or 'unknown file system'}{f' on {spot.device}' if spot.device else ''}"
    said: list[tuple[str, Tone]] = [(f"{where}, {room}", "")]
    if spot.kind == MEMORY:
        said.append((f"{spot.fs_type} is memory: this measures memory and no storage", "warn"))
    if spot.kind == NETWORK:
        said.append((f"{NETWORK}: {_REMOTE_WHY}", "muted"))
    if one is None:
        return said
    if (why := refusal(spot, one)) != "":
        said.append((why.removeprefix(f"{spot.directory}: "), "bad"))
    elif spot.kind != MEMORY and one.writer != "direct" and one.size_bytes < spot.memory_bytes:
        text = (
            f"{size(one.size_bytes)} fit into the page cache of {size(spot.memory_bytes)}: what"
            " counts is until fsync is through"
        )
        said.append((text, "muted"))
    return said


def _kind(disks: tuple[str, ...], sysfs: Path) -> str:
    turning = [_word(sysfs / "block" / disk / "queue" / "rotational") for disk in disks]
    # virtual disks say that they rotate
    return (
        ROTATING
        if "1" in turning and not any(re.match(r"(vd|xvd|nvme)", disk) for disk in disks)
        else DRIVE
    )


def _named(disk: str, sysfs: Path) -> str:
    model = _word(sysfs / "block" / disk / "device" / "model")
    return f"{disk} ({' '.join(model.split())})" if model else disk


def _word(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def _memory_bytes(procfs: Path) -> float:
    found = re.search(r"^MemTotal:\s+(\d+) kB", _word(procfs / "meminfo"), re.M)
    return float(found[1]) * 1024.0 if found else 0.0
