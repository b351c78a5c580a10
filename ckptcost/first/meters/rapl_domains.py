"""What the RAPL counters of a machine are about, whichever way they are read: names, roles, and a
meter that outlives a lost counter.

A package counter leaves memory out (on servers memory has one of its own), so package and dram add
up. Cores and uncore lie inside the package. psys holds all of them, so it is held against their
sum; where it is alone it is the part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ckptcost.first.core.channels import Channel, Role
from ckptcost.first.errors import MeterLost
from ckptcost.first.meters.base import NOTHING, RETRY_NS, Channelwise
from ckptcost.first.meters.kept import file_text

TICK_S = 0.001
"""RAPL renews its counters about every millisecond"""
COVERED = ("cpu", "dram")


class Domain(NamedTuple):
    """A kind of counter, and what each way to it calls it."""

    scope: str
    zone: str
    """pattern of a powercap zone's name; its groups are package and die"""
    event: str
    """of the perf PMU"""
    is_inside: bool = False
    """a zone within a package's"""


DOMAINS = {
    "cpu": Domain("package", r"package-(\d+)(?:-die-(\d+))?", "energy-pkg"),
    "dram": Domain("dram", "dram", "energy-ram", is_inside=True),
    "psys": Domain("psys", r"psys(?:-(\d+))?", "energy-psys"),
    "core": Domain("core", "core", "energy-cores", is_inside=True),
    "uncore": Domain("uncore", "uncore", "energy-gpu", is_inside=True),
}
"""in the order in which they are shown; the first two are also pyRAPL's devices 0 and 1"""
KINDS = tuple(DOMAINS)


class Processor(NamedTuple):
    """What /proc says about the machine; empty where it says nothing."""

    vendor: str = ""
    """GenuineIntel, AuthenticAMD, HygonGenuine"""
    model: str = ""
    architecture: str = ""
    """x86, arm or nothing"""
    virtual: bool = False
    release: str = ""
    """of the kernel"""

    @property
    def is_amd(self) -> bool:
        return self.vendor in ("AuthenticAMD", "HygonGenuine")

    @property
    def kernel(self) -> tuple[int, int] | None:
        found = re.match(r"(\d+)\.(\d+)", self.release)
        return (int(found[1]), int(found[2])) if found else None


def text_of(path: Path, most: int = 256) -> str:
    """Start of a small file, without blanks around it; OSError when it cannot be read, whatever
    bytes it holds."""
    with open(path, "rb") as file:
        return file.read(most).decode("utf-8", "replace").strip()


def read_processor(procfs: Path) -> Processor:
    """The first processor of cpuinfo: the others are like it."""
    try:
        lines = text_of(procfs / "cpuinfo", 16_384).splitlines()
    except OSError:
        lines = []
    facts: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    release = file_text(procfs / "sys/kernel/osrelease")
    architecture = (
        "x86"
        if "vendor_id" in facts and "flags" in facts
        else "arm"
        if "CPU implementer" in facts
        else ""
    )
    virtual = "hypervisor" in facts.get("flags", "").split()
    return Processor(
        facts.get("vendor_id", ""), facts.get("model name", ""), architecture, virtual, release
    )


class RaplSpot(NamedTuple):
    """One counter: of what, and where it is read. `mirror` is a second way to the same counter."""

    kind: str
    """cpu, dram, core, uncore, psys"""
    package: int
    die: int | None = None
    mirror: bool = False
    where: str = ""
    wraps_at: float | None = None
    resolution: float | None = None
    note: str = ""

    @property
    def domain(self) -> str:
        """
        >>> RaplSpot("dram", 1, die=0).domain, RaplSpot("cpu", 0, mirror=True).domain
        ('dram:1.die0', 'cpu:0.mmio')
        """
        return (
            f"{self.kind}:{self.package}"
            + (f".die{self.die}" if self.die is not None else "")
            + (".mmio" if self.mirror else "")
        )


def drop_repeated_dies(spots: Iterable[RaplSpot], amd: bool) -> list[RaplSpot]:
    """AMD counts once a package, but kernels 6.9 to 6.11 take its core complexes for dies and show
    the one counter again for each. Only the first is kept: their sum would be as many times too
    high as there are dies."""
    kept: dict[tuple[str, int, bool, int | None], RaplSpot] = {}
    for spot in sorted(
        spots,
        key=lambda s: (s.mirror, KINDS.index(s.kind), s.package, -1 if s.die is None else s.die),
    ):
        if amd and spot.die is not None:
            said = (
                "the kernel shows this package's counter once a die; AMD has one a package, so one"
                " is read"
            )
            kept.setdefault(
                (spot.kind, spot.package, spot.mirror, None),
                spot._replace(die=None, note=join_notes(spot.note, said)),
            )
        else:
            kept[spot.kind, spot.package, spot.mirror, spot.die] = spot
    return list(kept.values())


def join_notes(*notes: str) -> str:
    """Notes in one line, empty ones left out."""
    return "; ".join(note for note in notes if note)


def channels_of(spots: Sequence[RaplSpot], device: str) -> tuple[Channel, ...]:
    """One channel a counter, in the order given. Nothing is counted twice: a mirror is a detail
    beside what it mirrors, psys a whole beside packages."""
    packages = any(spot.kind == "cpu" for spot in spots)
    made = []
    for spot in spots:
        role: Role = "part"
        if spot.mirror or spot.kind in ("core", "uncore"):
            role = "detail"
        elif spot.kind == "psys" and packages:
            role = "whole"
        made.append(
            Channel(
                domain=spot.domain,
                quantity="energy_j",
                source=spot.where,
                scope=DOMAINS[spot.kind].scope,
                role=role,
                covers=COVERED if spot.kind == "psys" and role == "part" else (),
                device=device,
                wraps_at=spot.wraps_at,
                resolution=spot.resolution,
                tick_s=TICK_S,
                note=spot.note,
            )
        )
    return tuple(made)


@dataclass
class RaplCounters(Channelwise):
    """A row of counters, each behind a file of its own. One that falls silent is NaN, said once,
    and tried again; the rest go on.

    `open_one(i)` gives a descriptor or raises OSError; `ask(descriptor, scale)` gives joules or
    raises OSError or ValueError.
    """

    files: list[int] = field(default_factory=list)
    open_one: Callable[[int], int] = field(default=lambda _: -1)
    ask: Callable[[int, float], float] = field(default=lambda _, __: NOTHING)
    scales: list[float] = field(default_factory=list)
    least_s: float = TICK_S
    closed: bool = False

    def read(self, t_ns: int) -> Sequence[float]:
        if self.closed:
            raise MeterLost(f"{self.name} is closed")
        ask, values = self.ask, []
        for i, (file, scale) in enumerate(zip(self.files, self.scales, strict=True)):
            try:
                values.append(ask(file, scale))
            except (OSError, ValueError) as error:
                values.append(self._reopen(i, t_ns, error))
                continue
            if self.silent:
                self._note_answer(i)
        return values

    def _reopen(self, i: int, t_ns: int, error: Exception) -> float:
        """A counter whose file refused: from the next reading on it is opened again, which what
        came back at once misses one reading by."""
        channel, wait_ns = self.channels[i], 0
        if i in self.silent:
            wait_ns = RETRY_NS
            if self.is_due(i, t_ns):
                with suppress(OSError, ValueError):
                    file = self.open_one(i)
                    old, self.files[i] = self.files[i], file
                    close_file(old)
                    value = self.ask(file, self.scales[i])
                    self._note_answer(i)
                    return value
        why = f"{channel.source}: {reason_of(error)}"
        return self.note_missing(i, why, channel.domain, t_ns=t_ns, wait_ns=wait_ns)

    def _note_answer(self, i: int) -> None:
        channel = self.channels[i]
        self.note_answer(i, f"{channel.source} answers again", channel.domain)

    def close(self) -> None:
        self.closed = True
        for i, file in enumerate(self.files):
            self.files[i] = -1
            close_file(file)


class Refused(NamedTuple):
    """A counter that is there and cannot be read, with the error."""

    spot: RaplSpot
    error: Exception


def counters_of(
    spots: Sequence[RaplSpot],
    scales: Sequence[float],
    open_one: Callable[[int], int],
    ask: Callable[[int, float], float],
    device: str,
) -> tuple[RaplCounters | None, list[Refused]]:
    """Opens and reads everything once: a meter of what answers, and the errors, which are kept for
    whoever explains them."""
    answering: list[int] = []
    files: list[int] = []
    refused: list[Refused] = []
    for i, spot in enumerate(spots):
        file = -1
        try:
            file = open_one(i)
            ask(file, scales[i])
        except (OSError, ValueError) as error:
            close_file(file)
            refused.append(Refused(spot, error))
            continue
        answering.append(i)
        files.append(file)
    if not answering:
        return None, refused
    meter = RaplCounters(
        name="rapl",
        channels=channels_of([spots[i] for i in answering], device),
        files=files,
        open_one=lambda i: open_one(answering[i]),
        ask=ask,
        scales=[scales[i] for i in answering],
    )
    return meter, refused


def close_file(file: int) -> None:
    """Closes a descriptor that may be none."""
    import os

    if file >= 0:
        try:
            os.close(file)
        except OSError:
            return  # a device that is gone may refuse even this; the number is free all the same


def reason_of(error: BaseException) -> str:
    """`Input/output error`, or what was wrong with the text; the kind of error where it has no
    words."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
