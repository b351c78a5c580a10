"""Three ways to the counters of RAPL: the kernel's powercap files, its `power` PMU, and pyRAPL.

Powercap: zones found by name, microjoules to joules, 0.7 us a counter with the file kept open. A
zone's number is not its socket: `name` says what it counts. The folders under
/sys/devices/virtual/powercap and the flat ones under /sys/class/powercap are the same zones.
`intel-rapl-mmio` shows again what `intel-rapl` shows.

The PMU: one descriptor a counter and package, 64 bits, so that nothing wraps for us. The kernel
adds up from the moment of opening. It wants CAP_PERFMON or kernel.perf_event_paranoid at 0 or
lower, and no file mode to change.

pyRAPL, kept on a short lead: a reader of raw microjoules and nothing else. On import it
logs through the root logger, which gives that a handler for good; on Python 3.12 and later it does
not compile where warnings are errors; it leaves files open; it knows nothing of wraps. So it is
imported and built inside a guard, only when it is asked for, its files are closed here, and where a
counter starts again comes from our own reading of the powercap files.
"""

from __future__ import annotations

import logging
import os
import re
import struct
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.errors import MeterLost
from ckptcost.first.meters.base import NOTHING, RETRY_NS, Channelwise
from ckptcost.first.meters.kept import file_text
from ckptcost.first.meters.rapl_domains import (
    DOMAINS,
    KINDS,
    TICK_S,
    Processor,
    RaplCounters,
    RaplSpot,
    Refused,
    channels_of,
    counters_of,
    drop_repeated_dies,
    join_notes,
    reason_of,
    text_of,
)

_ZONE = re.compile(r"(intel-rapl(?:-[a-z]+)?)((?::[0-9a-f]+)*)$")
STEPS = 2**32 - 1
"""the counter has 32 bits, and max_energy_range_uj is its highest value"""
MOST_BYTES = 32
"""no 64-bit number is longer; a longer text is none"""


class Zone(NamedTuple):
    """One folder with a counter."""

    id: str
    """intel-rapl:0:1"""
    path: Path
    name: str
    """package-0, dram ...; empty when it cannot be read"""
    spot: RaplSpot | None
    """None: of unknown meaning"""


class ZoneTree(NamedTuple):
    """What there is, what answers, and what refuses."""

    zones: list[Zone]
    meter: RaplCounters | None
    refused: list[Refused]


def folders(sysfs: Path) -> dict[str, Path]:
    """Every zone's folder by its id, once each, wherever it is shown."""
    found: dict[str, Path] = {}

    def look(folder: Path, inside: str) -> None:
        for name in sorted(names_in(folder)):
            shape = _ZONE.match(name)
            if shape is None or not name.startswith(inside):
                continue
            if shape[2] and (folder / name / "name").exists():
                found.setdefault(name, folder / name)
            look(folder / name, name + ":")

    for top in ("devices/virtual/powercap", "class/powercap"):
        look(sysfs / top, "")
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))


def names_in(folder: Path) -> list[str]:
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
        name = file_text(path / "name")
        parent = found.get(zone_id.rpartition(":")[0])
        spot = _spot(name, parent.spot if parent else None)
        if spot is not None:
            range_uj = _range_uj(path)
            spot = spot._replace(
                mirror=not zone_id.startswith("intel-rapl:"),
                where=str(path / "energy_uj"),
                wraps_at=None if range_uj is None else range_uj * 1e-6 * ((STEPS + 1) / STEPS),
                resolution=None if range_uj is None else range_uj * 1e-6 / STEPS,
                note=join_notes(*_notes(path, range_uj)),
            )
        found[zone_id] = Zone(zone_id, path, name, spot)
    return list(found.values())


def _spot(name: str, parent: RaplSpot | None) -> RaplSpot | None:
    for kind, domain in DOMAINS.items():
        match = re.fullmatch(domain.zone, name)
        if match and domain.is_inside:
            inside = parent is not None and parent.kind == "cpu"
            return RaplSpot(kind, parent.package, parent.die) if parent and inside else None
        if match:
            package, die = (*match.groups(), None)[:2]
            return RaplSpot(kind, int(package or 0), None if die is None else int(die))
    return None


def _range_uj(path: Path) -> int | None:
    try:
        return parse_number(file_text(path / "max_energy_range_uj").encode()) or None
    except ValueError:
        return None


def _notes(path: Path, range_uj: int | None) -> Iterator[str]:
    if range_uj is None:
        yield "where the counter starts again is not known, so a wrap is a gap"
    if file_text(path / "enabled") == "0":
        yield "enabled is 0: the zone limits no power; its counter counts all the same"


def parse_number(text: bytes) -> int:
    """Digits and nothing else: int() alone would take `-5` and `1_0`.

    >>> parse_number(b"262143328850\\n")
    262143328850
    """
    digits = text.strip()
    if not digits.isdigit() or len(text) >= MOST_BYTES:
        raise ValueError(f"{text[:20]!r} is not a number" if text else "the file is empty")
    return int(digits)


def file_joules(file: int, scale: float = 1e-6) -> float:
    """Joules behind an open energy_uj."""
    return parse_number(os.pread(file, MOST_BYTES, 0)) * scale


def spots_to_read(found: list[Zone], amd: bool) -> list[RaplSpot]:
    """The counters worth reading, each about something of its own; a mirror of nothing is the thing
    itself."""
    original = {
        (spot.kind, spot.package, spot.die)
        for zone in found
        if (spot := zone.spot) and not spot.mirror
    }
    spots: dict[str, RaplSpot] = {}
    for zone in found:
        spot = zone.spot
        if spot is None:
            continue
        if spot.mirror and (spot.kind, spot.package, spot.die) not in original:
            spot = spot._replace(mirror=False)
        if amd and spot.kind == "core":
            spot = spot._replace(
                note=join_notes(spot.note, "on AMD this is the package's first core alone")
            )
        if first := spots.get(spot.domain):
            said = (
                f"{zone.id} has the same name and is left out: added, one counter might be counted"
                " twice"
            )
            spot = first._replace(note=join_notes(first.note, said))
        spots[spot.domain] = spot
    return drop_repeated_dies(spots.values(), amd)


def tree(sysfs: Path, cpu: Processor, open_file: Callable[[str, int], int] = os.open) -> ZoneTree:
    """The powercap files of this machine."""
    found = zones(sysfs)
    names = {zone.spot.where: f"{zone.id} {zone.name}" for zone in found if zone.spot}
    spots = spots_to_read(found, cpu.is_amd)
    meter, refused = counters_of(
        spots,
        [1e-6] * len(spots),
        lambda i: open_file(spots[i].where, os.O_RDONLY),
        file_joules,
        cpu.model,
    )
    if meter is not None:
        meter.facts = {
            "backend": "powercap",
            "zones": ", ".join(names[channel.source] for channel in meter.channels),
            "processor": cpu.model,
            "kernel": cpu.release,
        }
    return ZoneTree(found, meter, refused)


_CALLS = {
    "x86_64": 298,
    "i686": 336,
    "i586": 336,
    "i386": 336,
    "aarch64": 241,
    "riscv64": 241,
    "ppc64le": 319,
    "ppc64": 319,
    "s390x": 331,
}
"""number of the call perf_event_open by machine"""
_ATTR = struct.Struct("=IIQQQQQIIQ")
"""perf_event_attr as of its first version, 64 bytes: type, size, config and zeros, which count from
now on and for everybody"""
_CLOSE_ON_EXEC = 8
_PSYS_UNSURE = (
    "the kernel lists this event without asking the processor: if it never moves there is no such"
    " counter"
)


class PerfEvent(NamedTuple):
    """One event on one processor."""

    event: str
    config: int
    scale: float
    processor: int
    spot: RaplSpot


class Pmu(NamedTuple):
    """What there is, what answers, what refuses, and what was left out with the reason."""

    path: Path
    present: bool
    meter: RaplCounters | None
    refused: list[Refused]
    left_out: list[tuple[str, str]]


def perf_event_open(kind: int, config: int, processor: int, process: int = -1) -> int:
    """The system call, which libc has no function for."""
    import ctypes

    call = _CALLS.get(os.uname().machine)
    if call is None:
        raise OSError(
            38, f"the number of perf_event_open on {os.uname().machine} is not known here"
        )
    attr = _ATTR.pack(kind, _ATTR.size, config, *[0] * 7)
    here = ctypes.create_string_buffer(attr, len(attr))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    file = libc.syscall(
        ctypes.c_long(call),
        ctypes.byref(here),
        ctypes.c_int(process),
        ctypes.c_int(processor),
        ctypes.c_int(-1),
        ctypes.c_ulong(_CLOSE_ON_EXEC),
    )
    if file < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(file)


def event_joules(file: int, scale: float) -> float:
    """Joules since opening. pread is refused by these descriptors."""
    text = os.read(file, 8)
    if len(text) != 8:
        raise ValueError(f"{len(text)} of 8 bytes: the event is in error")
    return int.from_bytes(text, sys.byteorder) * scale


def parse_list(text: str) -> list[int]:
    """
    >>> parse_list("0-2,16")
    [0, 1, 2, 16]
    """
    found: list[int] = []
    for piece in filter(None, text.split(",")):
        first, _, last = piece.partition("-")
        if int(last or first) - int(first) > 65_535:
            raise ValueError(f"{piece} is no list of processors")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def config_of(text: str) -> int:
    """
    >>> config_of("event=0x02")
    2
    """
    found = re.fullmatch(r"event=(0x[0-9a-fA-F]+|\d+)", text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is not `event=NUMBER`")
    return int(found[1], 0)


def packages_of(sysfs: Path, processors: list[int]) -> dict[int, tuple[int, int | None]]:
    """Package and die of each processor in the mask. A package with one processor in it needs no
    die."""
    found: dict[int, tuple[int, int]] = {}
    for order, processor in enumerate(processors):
        topology = sysfs / f"devices/system/cpu/cpu{processor}/topology"
        package = _topology(topology / "physical_package_id", order)
        found[processor] = package, _topology(topology / "die_id", order)
    packages = [package for package, _ in found.values()]
    return {
        n: (package, die if packages.count(package) > 1 else None)
        for n, (package, die) in found.items()
    }


def _topology(path: Path, otherwise: int) -> int:
    try:
        value = int(file_text(path))
    except ValueError:
        return otherwise
    return value if value >= 0 else otherwise


def perf_events(
    sysfs: Path, base: Path, cpu: Processor
) -> tuple[list[PerfEvent], list[tuple[str, str]]]:
    """Every event on every processor of the mask, and what is left out."""
    left_out: list[tuple[str, str]] = []
    where = packages_of(sysfs, parse_list(text_of(base / "cpumask", 4096)))
    found: dict[str, PerfEvent] = {}
    for kind, domain in DOMAINS.items():
        event = domain.event
        if not (base / "events" / event).exists():
            continue
        if cpu.is_amd and kind != "cpu":
            left_out.append(
                (event, "AMD has no such counter; kernels before 5.17 list it all the same")
            )
            continue
        try:
            config, scale = _config_and_scale(base / "events", event)
        except (OSError, ValueError) as error:
            left_out.append((event, str(error)))
            continue
        note = _PSYS_UNSURE if kind == "psys" else ""
        for processor, (package, die) in where.items():
            source = f"perf power/{event}/ on processor {processor}"
            spot = RaplSpot(kind, package, die, where=source, note=note)
            found[source] = PerfEvent(event, config, scale, processor, spot)
    alone = drop_repeated_dies([counter.spot for counter in found.values()], cpu.is_amd)
    return [found[spot.where]._replace(spot=spot) for spot in alone], left_out


def _config_and_scale(events: Path, event: str) -> tuple[int, float]:
    config = config_of(text_of(events / event))
    scale = float(text_of(events / f"{event}.scale"))
    unit = text_of(events / f"{event}.unit")
    if unit != "Joules" or not 0.0 < scale < 1.0:
        raise ValueError(f"{scale:g} {unit[:20]} is no scale of joules")
    return config, scale


def pmu(
    sysfs: Path, cpu: Processor, open_event: Callable[[int, int, int], int] = perf_event_open
) -> Pmu:
    """The PMU of this machine. `open_event` takes type, config and processor and gives a
    descriptor."""
    base = sysfs / "bus/event_source/devices/power"
    whole = RaplSpot("cpu", 0, where=str(base))
    try:
        kind = int(text_of(base / "type"))
        found, left_out = perf_events(sysfs, base, cpu)
    except (OSError, ValueError) as error:
        present = base.is_dir()
        return Pmu(base, present, None, [Refused(whole, error)] if present else [], [])
    if not found:
        nothing = ValueError("no event of RAPL that is real, or no processor in cpumask")
        return Pmu(base, True, None, [Refused(whole, nothing)], left_out)
    meter, refused = counters_of(
        [counter.spot for counter in found],
        [counter.scale for counter in found],
        lambda i: open_event(kind, found[i].config, found[i].processor),
        event_joules,
        cpu.model,
    )
    if meter is not None:
        meter.facts = {
            "backend": "perf",
            "pmu": str(base),
            "processor": cpu.model,
            "kernel": cpu.release,
        }
    return Pmu(base, True, meter, refused, left_out)


ABSENT = -1
"""where pyRAPL has no reading; they stand at socket * 2 + device"""
DEVICES = KINDS[:2]


def _not_pyrapls(record: logging.LogRecord) -> bool:
    return "pyRAPL" not in record.pathname.replace("\\", "/").split("/")


@contextmanager
def guard_logging() -> Iterator[None]:
    """Nothing that happens inside reaches the root logger, the warning filters or a screen.

    logging.warning() gives the root logger a handler when it has none, so it has one meanwhile: the
    one it would fall back on. What other threads log comes through.
    """
    root = logging.root
    handlers, level = root.handlers[:], root.level
    if not handlers:
        root.addHandler(logging.lastResort or logging.NullHandler())
    root.addFilter(_not_pyrapls)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        root.removeFilter(_not_pyrapls)
        root.handlers[:] = handlers
        root.setLevel(level)


def pyrapl_sensor(device: int) -> Any:
    """A pyRAPL sensor for one device on all sockets. Any exception of pyRAPL's, or of the files it
    reads, may come out."""
    from pyRAPL import Device, Sensor  # type: ignore[import-untyped]

    return Sensor(devices=[Device(device)])


def pyrapl_version() -> str:
    """Imports it. Any exception may come out."""
    import pyRAPL

    return str(getattr(pyRAPL, "__version__", ""))


def close_sensor(one: Any) -> None:
    """Closes what pyRAPL leaves open."""
    for api in getattr(one, "_device_api", {}).values():
        for file in getattr(api, "_sys_files", ()):
            file.close()


class PyRapl(Channelwise):
    """Joules as pyRAPL reads them. A device that fails is NaN on all sockets, because pyRAPL reads
    them in one go."""

    def __init__(
        self, sensors: dict[int, Any], spots: Sequence[RaplSpot], cpu: Processor, version: str
    ) -> None:
        facts = {
            "backend": "pyrapl",
            "library": f"pyRAPL {version}",
            "processor": cpu.model,
            "kernel": cpu.release,
        }
        super().__init__("rapl", channels_of(spots, cpu.model), TICK_S, facts=facts)
        self._sensors = sensors
        self._at = [
            (DEVICES.index(spot.kind), spot.package * 2 + DEVICES.index(spot.kind))
            for spot in spots
        ]

    def read(self, t_ns: int) -> Sequence[float]:
        if not self._sensors:
            raise MeterLost("rapl is closed")
        said = {device: self._ask(device, t_ns) for device in self._sensors}
        return [_joules(said[device], place) for device, place in self._at]

    def _ask(self, device: int, t_ns: int) -> Sequence[float]:
        domains = [
            channel.domain
            for channel, (of, _) in zip(self.channels, self._at, strict=True)
            if of == device
        ]
        wait_ns = RETRY_NS if device in self.silent else 0
        if wait_ns and self.is_due(device, t_ns):
            self._renew(device)
        try:
            said: Sequence[float] = self._sensors[device].energy()
        except Exception as error:
            self.note_missing(device, reason_of(error), *domains, t_ns=t_ns, wait_ns=wait_ns)
            return ()
        self.note_answer(device, "pyRAPL answers again", *domains)
        return said

    def _renew(self, device: int) -> None:
        with guard_logging():
            try:
                new = pyrapl_sensor(device)
            except Exception:
                return
            close_sensor(self._sensors[device])
            self._sensors[device] = new

    def close(self) -> None:
        for one in self._sensors.values():
            close_sensor(one)
        self._sensors = {}


def _joules(said: Sequence[float], place: int) -> float:
    value = said[place] if place < len(said) else ABSENT
    return NOTHING if value == ABSENT else float(value) * 1e-6


def pyrapl_spots(kind: str, said: Sequence[float], own: dict[str, RaplSpot]) -> list[RaplSpot]:
    found = []
    for package, value in enumerate(said):
        if value == ABSENT:
            continue
        known = own.get(f"{kind}:{package}")
        note = (
            ""
            if known is not None and known.wraps_at is not None
            else "pyRAPL knows no ranges and neither do we: a wrap is a gap"
        )
        wraps_at, resolution = (
            (known.wraps_at, known.resolution) if known is not None else (None, None)
        )
        where = f"pyRAPL, socket {package}, device {kind}"
        found.append(
            RaplSpot(
                kind, package, where=where, wraps_at=wraps_at, resolution=resolution, note=note
            )
        )
    return found
