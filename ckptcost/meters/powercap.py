"""RAPL through the powercap files: zones found by name, microjoules to joules, 0.7 us a counter
with the file kept open.

A zone's number is not its socket: `name` says what it counts. The folders under
/sys/devices/virtual/powercap and the flat ones under /sys/class/powercap are the same zones.
`intel-rapl-mmio` shows again what `intel-rapl` shows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ckptcost.meters.rapl_domains import (
    Counters,
    Processor,
    Spot,
    both,
    channels_of,
    once_a_package,
    shut,
    text_of,
)

_ZONE = re.compile(r"(intel-rapl(?:-[a-z]+)?)((?::[0-9a-f]+)*)$")
_PACKAGE = re.compile(r"package-(\d+)(?:-die-(\d+))?$")
_PSYS = re.compile(r"psys(?:-(\d+))?$")
_INSIDE = {"core": "core", "uncore": "uncore", "dram": "dram"}
STEPS = 2**32 - 1
"""the counter has 32 bits, and max_energy_range_uj is its highest value"""
MOST_BYTES = 32
"""no 64-bit number is longer; a longer text is none"""

Open = Callable[[str, int], int]


class Zone(NamedTuple):
    """One folder with a counter."""

    id: str
    """intel-rapl:0:1"""
    path: Path
    name: str
    """package-0, dram ...; empty when it cannot be read"""
    spot: Spot | None
    """None: of unknown meaning"""

    @property
    def control(self) -> str:
        return self.id.split(":", 1)[0]

    @property
    def energy(self) -> Path:
        return self.path / "energy_uj"


class Refused(NamedTuple):
    """A counter that is there and cannot be read, with the error."""

    zone: Zone
    error: Exception


class Tree(NamedTuple):
    """What there is, what answers, and what refuses."""

    zones: list[Zone]
    meter: Counters | None
    refused: list[Refused]


def folders(sysfs: Path) -> dict[str, Path]:
    """Every zone's folder by its id, once each, wherever it is shown."""
    found: dict[str, Path] = {}

    def look(folder: Path, inside: str) -> None:
        for name in sorted(listed(folder)):
            shape = _ZONE.match(name)
            if shape is None or not name.startswith(inside):
                continue
            if shape[2] and (folder / name / "name").exists():
                found.setdefault(name, folder / name)
            look(folder / name, name + ":")

    for top in ("devices/virtual/powercap", "class/powercap"):
        look(sysfs / top, "")
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))


def listed(folder: Path) -> list[str]:
    """Names in a folder; none when it is missing or closed."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _order(zone_id: str) -> tuple[str, list[int]]:
    control, *numbers = zone_id.split(":")
    return control, [int(number, 16) for number in numbers]


def zones(sysfs: Path) -> list[Zone]:
    """All zones with what they count; a dram zone belongs to the package it lies in."""
    found: dict[str, Zone] = {}
    for zone_id, path in folders(sysfs).items():
        try:
            name = text_of(path / "name")
        except OSError:
            name = ""
        parent = found.get(zone_id.rpartition(":")[0])
        spot = _spot(name, parent.spot if parent else None)
        if spot is not None:
            range_uj = _range_uj(path)
            spot = spot._replace(
                mirror=not zone_id.startswith("intel-rapl:"),
                where=str(path / "energy_uj"),
                wraps_at=None if range_uj is None else range_uj * 1e-6 * ((STEPS + 1) / STEPS),
                resolution=None if range_uj is None else range_uj * 1e-6 / STEPS,
                note=both(*_notes(path, range_uj)),
            )
        found[zone_id] = Zone(zone_id, path, name, spot)
    return list(found.values())


def _spot(name: str, parent: Spot | None) -> Spot | None:
    if package := _PACKAGE.match(name):
        return Spot("cpu", int(package[1]), None if package[2] is None else int(package[2]))
    if psys := _PSYS.match(name):
        return Spot("psys", int(psys[1] or 0))
    if name in _INSIDE and parent is not None and parent.kind == "cpu":
        return Spot(_INSIDE[name], parent.package, parent.die)
    return None


def _range_uj(path: Path) -> int | None:
    try:
        return number(text_of(path / "max_energy_range_uj").encode()) or None
    except (OSError, ValueError):
        return None


def _notes(path: Path, range_uj: int | None) -> Iterator[str]:
    if range_uj is None:
        yield "where the counter starts again is not known, so a wrap is a gap"
    try:
        if text_of(path / "enabled") == "0":
            yield "enabled is 0: the zone limits no power; its counter counts all the same"
    except OSError:
        return


def number(text: bytes) -> int:
    """Digits and nothing else: int() alone would take `-5` and `1_0`.

    >>> number(b"262143328850\\n")
    262143328850
    """
    digits = text.strip()
    if not digits.isdigit() or len(text) >= MOST_BYTES:
        raise ValueError(f"{text[:20]!r} is not a number" if text else "the file is empty")
    return int(digits)


def ask(_: int, file: int) -> float:
    """Joules behind an open energy_uj."""
    return number(os.pread(file, MOST_BYTES, 0)) * 1e-6


def kept(found: list[Zone], amd: bool) -> list[Zone]:
    """The zones worth reading, each about something of its own; a mirror of nothing is the thing
    itself."""
    known = {zone.spot.where: zone for zone in found if zone.spot is not None}
    original = {
        (z.spot.kind, z.spot.package, z.spot.die)
        for z in known.values()
        if z.spot and not z.spot.mirror
    }
    spots: dict[str, Spot] = {}
    for zone in known.values():
        assert zone.spot is not None
        spot = zone.spot
        if spot.mirror and (spot.kind, spot.package, spot.die) not in original:
            spot = spot._replace(mirror=False)
        if amd and spot.kind == "core":
            spot = spot._replace(
                note=both(spot.note, "on AMD this is the package's first core alone")
            )
        if first := spots.get(spot.domain):
            said = (
                f"{zone.id} has the same name and is left out: added, one counter might be counted"
                " twice"
            )
            spots[spot.domain] = first._replace(note=both(first.note, said))
            continue
        spots[spot.domain] = spot
    return [known[spot.where]._replace(spot=spot) for spot in once_a_package(spots.values(), amd)]


def tree(sysfs: Path, cpu: Processor, open_file: Open = os.open) -> Tree:
    """Looks, opens and reads everything once. What answers becomes a meter; errors are kept for
    whoever explains them."""
    found = zones(sysfs)
    answering: list[Zone] = []
    files: list[int] = []
    refused: list[Refused] = []
    for zone in kept(found, cpu.is_amd):
        file = -1
        try:
            file = open_file(str(zone.energy), os.O_RDONLY)
            ask(0, file)
        except (OSError, ValueError) as error:
            shut(file)
            refused.append(Refused(zone, error))
            continue
        answering.append(zone)
        files.append(file)
    if not answering:
        return Tree(found, None, refused)
    meter = Counters(
        name="rapl",
        channels=channels_of([zone.spot for zone in answering if zone.spot], cpu.model),
        facts={
            "backend": "powercap",
            "zones": ", ".join(f"{zone.id} {zone.name}" for zone in answering),
            "processor": cpu.model,
            "kernel": cpu.release,
        },
        files=files,
        open_one=lambda i: open_file(str(answering[i].energy), os.O_RDONLY),
        ask=ask,
    )
    return Tree(found, meter, refused)
