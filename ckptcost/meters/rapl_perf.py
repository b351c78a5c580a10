"""RAPL through the kernel's `power` PMU: one descriptor a counter and package, 64 bits, so that
nothing wraps for us.

The kernel adds up from the moment of opening. It wants CAP_PERFMON or kernel.perf_event_paranoid at
0 or lower, and no file mode to change.
"""

from __future__ import annotations

import os
import re
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ckptcost.meters.rapl_domains import (
    Counters,
    Processor,
    Spot,
    channels_of,
    once_a_package,
    shut,
    text_of,
)

_KINDS = {
    "energy-pkg": "cpu",
    "energy-ram": "dram",
    "energy-psys": "psys",
    "energy-cores": "core",
    "energy-gpu": "uncore",
}
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

Open = Callable[[int, int, int], int]
"""type, config, processor -> descriptor"""


class Counter(NamedTuple):
    """One event on one processor."""

    event: str
    config: int
    scale: float
    processor: int
    spot: Spot


class Refused(NamedTuple):
    what: str
    error: Exception


class Pmu(NamedTuple):
    """What there is, what answers, what refuses, and what was left out with the reason."""

    path: Path
    present: bool
    meter: Counters | None
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


def ask(file: int, scale: float) -> float:
    """Joules since opening. pread is refused by these descriptors."""
    text = os.read(file, 8)
    if len(text) != 8:
        raise ValueError(f"{len(text)} of 8 bytes: the event is in error")
    return int.from_bytes(text, sys.byteorder) * scale


def numbers(text: str) -> list[int]:
    """
    >>> numbers("0-2,16")
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


def places(sysfs: Path, processors: list[int]) -> dict[int, tuple[int, int | None]]:
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
        value = int(text_of(path))
    except (OSError, ValueError):
        return otherwise
    return value if value >= 0 else otherwise


def counters(
    sysfs: Path, base: Path, cpu: Processor
) -> tuple[list[Counter], list[tuple[str, str]]]:
    """Every event on every processor of the mask, and what is left out."""
    left_out: list[tuple[str, str]] = []
    where = places(sysfs, numbers(text_of(base / "cpumask", 4096)))
    found: list[Counter] = []
    for event, kind in _KINDS.items():
        if not (base / "events" / event).exists():
            continue
        if cpu.is_amd and kind != "cpu":
            left_out.append(
                (event, "AMD has no such counter; kernels before 5.17 list it all the same")
            )
            continue
        try:
            config = config_of(text_of(base / "events" / event))
            scale = float(text_of(base / "events" / f"{event}.scale"))
            unit = text_of(base / "events" / f"{event}.unit")
            if unit != "Joules" or not 0.0 < scale < 1.0:
                raise ValueError(f"{scale:g} {unit[:20]} is no scale of joules")
        except (OSError, ValueError) as error:
            left_out.append((event, str(error)))
            continue
        note = _PSYS_UNSURE if kind == "psys" else ""
        for processor, (package, die) in where.items():
            source = f"perf power/{event}/ on processor {processor}"
            found.append(
                Counter(
                    event,
                    config,
                    scale,
                    processor,
                    Spot(kind, package, die, where=source, note=note),
                )
            )
    by_source = {counter.spot.where: counter for counter in found}
    alone = once_a_package([counter.spot for counter in found], cpu.is_amd)
    return [by_source[spot.where]._replace(spot=spot) for spot in alone], left_out


def pmu(sysfs: Path, cpu: Processor, open_event: Open = perf_event_open) -> Pmu:
    """Looks, opens and reads everything once. What answers becomes a meter; errors are kept for
    whoever explains them."""
    base = sysfs / "bus/event_source/devices/power"
    try:
        kind = int(text_of(base / "type"))
        found, left_out = counters(sysfs, base, cpu)
    except (OSError, ValueError) as error:
        present = base.is_dir()
        return Pmu(base, present, None, [Refused(str(base), error)] if present else [], [])
    if not found:
        nothing = ValueError("no event of RAPL that is real, or no processor in cpumask")
        return Pmu(base, True, None, [Refused(str(base), nothing)], left_out)
    answering: list[Counter] = []
    files: list[int] = []
    refused: list[Refused] = []
    for counter in found:
        file = -1
        try:
            file = open_event(kind, counter.config, counter.processor)
            ask(file, counter.scale)
        except (OSError, ValueError) as error:
            shut(file)
            refused.append(Refused(counter.spot.where, error))
            continue
        answering.append(counter)
        files.append(file)
    if not answering:
        return Pmu(base, True, None, refused, left_out)
    meter = Counters(
        name="rapl",
        channels=channels_of([counter.spot for counter in answering], cpu.model),
        facts={"backend": "perf", "pmu": str(base), "processor": cpu.model, "kernel": cpu.release},
        files=files,
        open_one=lambda i: open_event(kind, answering[i].config, answering[i].processor),
        ask=lambda i, file: ask(file, answering[i].scale),
    )
    return Pmu(base, True, meter, refused, left_out)
