"""Joules of processors and memory by RAPL: which of three ways reads them, why one does not answer,
as far as files tell, and what would make it answer for good.

Powercap files first; the perf PMU where their counters are closed; pyRAPL only when asked for,
because it knows no wraps, dies or psys.
"""

from __future__ import annotations

import errno
import math
import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from ckptcost.first.errors import Argument, UnknownName
from ckptcost.first.meters import rapl_ways
from ckptcost.first.meters.base import Absence, FoundMeters, Meter, none_found
from ckptcost.first.meters.rapl_domains import (
    Processor,
    RaplCounters,
    RaplSpot,
    read_processor,
    reason_of,
)

GROUP = "rapl"
UDEV_FILE = "/etc/udev/rules.d/70-ckptcost-rapl.rules"
UDEV_RULE = (
    'SUBSYSTEM=="powercap", KERNEL=="intel-rapl*:*", ACTION=="add|change", '
    f'RUN+="/bin/chgrp {GROUP} %S%p/energy_uj", RUN+="/bin/chmod 0440 %S%p/energy_uj"'
)
"""every zone is a device of its own to udev, the nested ones too; GROUP= and MODE= would not do,
they are for nodes in /dev"""
TMPFILES_FILE = "/etc/tmpfiles.d/ckptcost-rapl.conf"
TMPFILES_LINES = (
    f"z /sys/devices/virtual/powercap/intel-rapl*/intel-rapl*:*/energy_uj 0440 root {GROUP} -",
    (
        "z /sys/devices/virtual/powercap/intel-rapl*/intel-rapl*:*/intel-rapl*:*:*/energy_uj 0440"
        f" root {GROUP} -"
    ),
)
"""a star does not cross a slash, so memory, which lies one folder deeper, has a line of its own"""
WHY_CLOSED = (
    "The files are closed to all but root since Linux 5.10 because fine readings of power can give"
    " away secrets of other processes (CVE-2020-8694), so open them to a group, not to everybody."
)
_MODULE = "modprobe intel_rapl_msr && echo intel_rapl_msr > /etc/modules-load.d/rapl.conf"
DENIED = (errno.EACCES, errno.EPERM)


def perf_remedy() -> str:
    """What opens the PMU, to everybody or to this interpreter."""
    python = os.path.realpath(sys.executable)
    return (
        "sysctl -w kernel.perf_event_paranoid=0 && echo kernel.perf_event_paranoid=0 >"
        " /etc/sysctl.d/70-ckptcost-perf.conf   (this lets in everybody; from Linux 5.8 also:"
        f" setcap cap_perfmon=ep {python}, which lets in all who run it; in a container: --cap-add"
        " PERFMON)"
    )


def powercap_remedy() -> str:
    """The udev rule, the tmpfiles lines and the way without either. One of the three is enough;
    each outlives a reboot."""
    return "\n".join(
        [
            "as root, once:",
            (
                f"  groupadd --system {GROUP}; usermod --append --groups {GROUP} USER     # USER"
                " logs in again"
            ),
            "and one of these, which outlive a reboot:",
            f"  1. {UDEV_FILE} with the line",
            f"     {UDEV_RULE}",
            "     then: udevadm control --reload && udevadm trigger --subsystem-match=powercap",
            f"  2. {TMPFILES_FILE} with the lines",
            *(f"     {line}" for line in TMPFILES_LINES),
            f"     then: systemd-tmpfiles --create {TMPFILES_FILE}",
            (
                "     (once a boot; where the driver is loaded later, take 1., or: echo"
                " intel_rapl_msr > /etc/modules-load.d/rapl.conf)"
            ),
            f"  3. without these files, by perf: {perf_remedy()}",
            WHY_CLOSED,
        ]
    )


def refused_counters(tree: rapl_ways.ZoneTree) -> list[Absence]:
    """Counters that are there and cannot be read: one absence for each class a user would ask
    for."""
    told: list[Absence] = []
    for kind, asked in (("cpu", "cpu"), ("dram", "dram"), ("psys", "node")):
        those = [r for r in tree.refused if r.spot.kind == kind and not r.spot.mirror]
        if not those:
            continue
        first = those[0]
        more = f" (and {len(those) - 1} more)" if len(those) > 1 else ""
        reason = f"{first.spot.where}{more}: {reason_of(first.error)}"
        if not isinstance(first.error, OSError) or first.error.errno not in DENIED:
            remedy = (
                f"look for RAPL in `dmesg`; `cat {first.spot.where}` as root should give a number"
            )
        elif any(before.remedy.startswith("as root") for before in told):
            remedy = f"the remedy for {told[0].what} opens this one as well"
        else:
            remedy = powercap_remedy()
        told.append(Absence(f"rapl {kind}", reason, remedy, asked))
    return told


def unknown_ranges(tree: rapl_ways.ZoneTree) -> list[Absence]:
    """Counters that answer but do not say where they start again."""
    if tree.meter is None:
        return []
    blind = [
        channel
        for channel in tree.meter.channels
        if channel.wraps_at is None and channel.role != "detail"
    ]
    if not blind:
        return []
    file = Path(blind[0].source).with_name("max_energy_range_uj")
    return [
        Absence(
            "rapl range of " + ", ".join(channel.domain for channel in blind),
            f"{file} gives no number, so it is not known where the counter starts again: each wrap,"
            " minutes apart under load, is a gap",
            f"it is a constant and no secret; {TMPFILES_FILE} with the lines\n"
            + "".join(
                f"  {line.replace('energy_uj 0440', 'max_energy_range_uj 0444')}\n"
                for line in TMPFILES_LINES
            )
            + f"then: systemd-tmpfiles --create {TMPFILES_FILE}",
        )
    ]


def unknown_zones(tree: rapl_ways.ZoneTree) -> list[Absence]:
    """Zones nobody here has heard of are said, not added up."""
    return [
        Absence(
            f"rapl {zone.id}",
            f"{zone.path / 'name'} says {zone.name[:40]!r}, which is no known counter; it is left"
            " out rather than counted twice",
            "please report what it is",
        )
        for zone in tree.zones
        if zone.spot is None
    ]


def no_dram_absences(domains: Sequence[str], cpu: Processor) -> list[Absence]:
    """Packages without a counter for their memory: its joules are not known, which is not 0."""
    lacking = [
        domain.replace("cpu:", "dram:", 1) for domain in domains if domain.startswith("cpu:")
    ]
    lacking = [
        domain for domain in lacking if domain not in domains and not domain.endswith(".mmio")
    ]
    if not lacking:
        return []
    if cpu.is_amd:
        reason = "AMD's RAPL counts packages and cores and has nothing for memory"
    else:
        reason = (
            "there is no dram counter: client processors have none, and some servers' firmware"
            " switches it off"
        )
    remedy = "the firmware's setup may have a setting for DRAM RAPL; " if not cpu.is_amd else ""
    return [
        Absence(
            "rapl " + ", ".join(lacking),
            f"{reason}. The memory's joules are unknown, not 0",
            f"{remedy}a meter of the whole node (BMC, hwmon, psys) contains the memory",
            "dram",
        )
    ]


def no_zone_absences(sysfs: Path, cpu: Processor) -> list[Absence]:
    """No zone at all: a virtual machine, a container, another architecture, an old kernel, a driver
    that is not loaded."""
    reason, remedy = _explain_no_zone(sysfs, cpu)
    return [
        Absence("rapl cpu", reason, remedy, "cpu"),
        Absence("rapl dram", f"no RAPL, hence no counter for memory: {reason}", remedy, "dram"),
    ]


_NOT_X86 = {
    "arm": (
        "RAPL is x86; this is an ARM processor",
        "Grace and others show their power in hwmon; or a meter of the whole node",
    ),
    "": (
        "RAPL is x86, and /proc/cpuinfo does not look like it",
        "a meter of the whole node: BMC (IPMI, Redfish) or hwmon",
    ),
}
"""by architecture: why, and what to do"""


def _explain_no_zone(sysfs: Path, cpu: Processor) -> tuple[str, str]:
    host = "measure on the host, or with a meter of the whole node: BMC (IPMI, Redfish) or hwmon"
    folder = sysfs / "class/powercap"
    if hidden := _hidden_zones(folder):
        return (
            f"{hidden[0]} points to nothing: a container hides"
            f" {sysfs / 'devices/virtual/powercap'}",
            "docker run --security-opt systempaths=unconfined, podman run --security-opt"
            " unmask=/sys/devices/virtual/powercap, or measure on the host",
        )
    if cpu.architecture in _NOT_X86:
        return _NOT_X86[cpu.architecture]
    if cpu.virtual:
        return (
            (
                f"{folder} has no RAPL zone: a virtual machine, and its hypervisor passes no"
                " counters on"
            ),
            host,
        )
    if cpu.is_amd and cpu.kernel is not None and cpu.kernel < (5, 11):
        return (
            f"Linux {cpu.release} has no RAPL files for AMD",
            "Linux 5.11 or later (5.8 for perf)",
        )
    if (sysfs / "module/intel_rapl_msr").is_dir() or (sysfs / "module/intel_rapl_common").is_dir():
        return (
            (
                f"{folder} has no RAPL zone although the driver is loaded: it found no counter in"
                " this processor"
            ),
            (
                "dmesg | grep -i rapl says what it looked for; from Granite Rapids on: modprobe"
                " intel_rapl_tpmi"
            ),
        )
    return f"{folder} has no RAPL zone and the driver is not loaded", f"as root: {_MODULE}"


def _hidden_zones(folder: Path) -> list[Path]:
    """All zones that are listed, where one of them leads nowhere."""
    names = rapl_ways.names_in(folder)
    listed = [folder / name for name in names if name.startswith("intel-rapl")]
    return listed if any(path.is_symlink() and not path.exists() for path in listed) else []


def perf_absences(pmu: rapl_ways.Pmu) -> list[Absence]:
    """The PMU is there and does not answer."""
    told: list[Absence] = []
    for first in pmu.refused[:1]:
        more = f" (and {len(pmu.refused) - 1} more)" if len(pmu.refused) > 1 else ""
        denied = isinstance(first.error, OSError) and first.error.errno in DENIED
        remedy = (
            "as root: " + perf_remedy()
            if denied
            else f"look for RAPL in `dmesg`; {pmu.path} should list type, cpumask and events"
        )
        told.append(
            Absence(
                "rapl perf", f"{first.spot.where}{more}: {reason_of(first.error)}", remedy, "cpu"
            )
        )
    told.extend(
        Absence(f"rapl perf {event}", reason, "nothing to do: what is real is read")
        for event, reason in pmu.left_out
    )
    return told


Backend = Literal["auto", "powercap", "perf", "pyrapl"]
REAL = Path("/sys")


def find(
    *, sysfs: Path = REAL, procfs: Path = Path("/proc"), backend: Backend = "auto"
) -> FoundMeters:
    """The meter for processors and memory, or why there is none."""
    if backend not in get_args(Backend):
        raise UnknownName("RAPL backend", backend, get_args(Backend), where=Argument("rapl"))
    cpu = read_processor(procfs)
    if backend == "pyrapl":
        return _by_pyrapl(sysfs, cpu)
    if backend == "perf":
        return by_perf(rapl_ways.pmu(sysfs, cpu), sysfs, cpu)
    files = rapl_ways.tree(sysfs, cpu)
    if backend == "powercap" or measures_cpu(files.meter):
        return by_powercap(files, sysfs, cpu)
    return by_files_or_perf(files, rapl_ways.pmu(sysfs, cpu), sysfs, cpu)


def measures_cpu(meter: RaplCounters | None) -> bool:
    """Does it read joules of processors that add up?"""
    return meter is not None and any(
        channel.role == "part" and "cpu" in (channel.kind_of_domain, *channel.covers)
        for channel in meter.channels
    )


def by_powercap(files: rapl_ways.ZoneTree, sysfs: Path, cpu: Processor) -> FoundMeters:
    """What the powercap files give, with everything that is lacking."""
    if not files.zones:
        return FoundMeters((), no_zone_absences(sysfs, cpu))
    there = [spot.domain for spot in rapl_ways.spots_to_read(files.zones, cpu.is_amd)]
    absences = [
        *refused_counters(files),
        *no_dram_absences(there, cpu),
        *unknown_ranges(files),
        *unknown_zones(files),
    ]
    return FoundMeters((files.meter,) if files.meter else (), absences)


def by_perf(events: rapl_ways.Pmu, sysfs: Path, cpu: Processor) -> FoundMeters:
    """What the PMU gives, with everything that is lacking."""
    if not events.present:
        reason = f"{events.path} is not there: no PMU named power"
        why = no_zone_absences(sysfs, cpu)[0]
        remedy = (
            "as root: modprobe rapl (intel_rapl_perf before Linux 5.8)"
            if cpu.architecture == "x86" and not cpu.virtual
            else why.remedy
        )
        return FoundMeters(
            (),
            [
                Absence("rapl perf", reason, remedy, "cpu"),
                Absence("rapl perf dram", reason, remedy, "dram"),
            ],
        )
    absences = perf_absences(events)
    if events.meter is None:
        return FoundMeters(
            (), [*absences, *(a._replace(what="rapl perf dram", kind="dram") for a in absences[:1])]
        )
    return FoundMeters(
        (events.meter,),
        [
            *absences,
            *no_dram_absences([channel.domain for channel in events.meter.channels], cpu),
        ],
    )


def by_files_or_perf(
    files: rapl_ways.ZoneTree, events: rapl_ways.Pmu, sysfs: Path, cpu: Processor
) -> FoundMeters:
    """The files give no joules of a processor: perf instead if it does, else what there is, and all
    reasons."""
    first = by_powercap(files, sysfs, cpu)
    if not events.present:
        return first
    second = by_perf(events, sysfs, cpu)
    if events.meter is not None and measures_cpu(events.meter):
        if files.meter is not None:
            files.meter.close()
        events.meter.facts["not powercap"] = "; ".join(
            absence.reason for absence in first.absences if absence.kind == "cpu"
        )
        return second
    if events.meter is not None:
        events.meter.close()
    return FoundMeters(
        first.meters, [*first.absences, *(a for a in second.absences if a.kind != "dram")]
    )


def _by_pyrapl(sysfs: Path, cpu: Processor) -> FoundMeters:
    if sysfs != REAL:
        reason = f"pyRAPL reads /sys and cannot be told to read {sysfs}"
        return none_found("rapl pyrapl", reason, "--rapl powercap", "cpu")
    return by_pyrapl(sysfs, cpu)


def by_pyrapl(sysfs: Path, cpu: Processor) -> FoundMeters:
    """pyRAPL as a meter. `sysfs` is where our own reader looks up the ranges; pyRAPL itself reads
    /sys whatever it is told."""
    there = rapl_ways.zones(sysfs)
    own = {spot.domain: spot for spot in rapl_ways.spots_to_read(there, cpu.is_amd)}
    sensors: dict[int, Any] = {}
    spots: list[RaplSpot] = []
    absences: list[Absence] = []
    with rapl_ways.guard_logging():
        try:
            version = rapl_ways.pyrapl_version()
        except Exception as error:
            reason = f"pyRAPL cannot be imported: {reason_of(error)}"
            remedy = "pip install pyRAPL, or --rapl powercap"
            return none_found("rapl pyrapl", reason, remedy, "cpu")
        for device, kind in enumerate(rapl_ways.DEVICES):
            try:
                one = rapl_ways.pyrapl_sensor(device)
            except Exception as error:
                absences.append(_refusal(kind, error, own))
                continue
            try:
                said = one.energy()
            except Exception as error:
                rapl_ways.close_sensor(one)
                absences.append(_refusal(kind, error, own))
                continue
            sensors[device] = one
            spots.extend(rapl_ways.pyrapl_spots(kind, said[device::2], own))
    if not sensors:
        return FoundMeters((), absences if there else no_zone_absences(sysfs, cpu))
    return FoundMeters((rapl_ways.PyRapl(sensors, spots, cpu, version),), absences)


def _refusal(kind: str, error: Exception, own: dict[str, RaplSpot]) -> Absence:
    remedy = "--rapl powercap says why and reads what pyRAPL cannot"
    if isinstance(error, OSError):
        reason = f"{error.filename}: {reason_of(error)}"
        remedy = powercap_remedy() if error.errno in DENIED else remedy
    elif any(domain.startswith(f"{kind}:") and ".die" in domain for domain in own):
        reason = f"pyRAPL does not know packages of several dies ({type(error).__name__})"
    else:
        reason = f"pyRAPL finds no {kind} counter on every socket ({reason_of(error)})"
    return Absence(f"rapl pyrapl {kind}", reason, remedy, kind)


class CounterDifference(NamedTuple):
    """What two meters said of one counter over the same readings; NaN where one of them did not
    say."""

    domain: str
    ours_j: float
    theirs_j: float
    apart_j: float
    """the most that two readings taken together were apart: no more than what a processor uses
    between two reads of the file"""


def crosscheck(
    ours: Meter, theirs: Meter, readings: Sequence[tuple[Sequence[float], Sequence[float]]]
) -> tuple[CounterDifference, ...]:
    """Two ways to the same counters held against each other; `readings` are pairs taken right after
    each other.

    A wrap is undone where the range is known. Domains of one meter only come with NaN for the
    other.
    """
    left = {channel.domain: i for i, channel in enumerate(ours.channels)}
    right = {channel.domain: i for i, channel in enumerate(theirs.channels)}
    wraps_at = {channel.domain: channel.wraps_at for channel in (*theirs.channels, *ours.channels)}
    found = []
    for domain in dict.fromkeys((*left, *right)):
        mine = [pair[0][left[domain]] for pair in readings] if domain in left else []
        other = [pair[1][right[domain]] for pair in readings] if domain in right else []
        turn = wraps_at[domain]
        apart = max(
            (_distance_j(a, b, turn) for a, b in zip(mine, other, strict=False)),
            key=lambda d: (d == d, d),
            default=math.nan,
        )
        found.append(
            CounterDifference(domain, _growth_j(mine, turn), _growth_j(other, turn), apart)
        )
    return tuple(found)


def _growth_j(values: Sequence[float], wraps_at: float | None) -> float:
    """Joules from the first to the last reading; NaN with fewer than two, or where it fell for no
    known reason."""
    known = [value for value in values if value == value]
    if len(known) < 2:
        return math.nan
    total = 0.0
    for before, after in pairwise(known):
        step = after - before
        if step < 0.0:
            step = step + wraps_at if wraps_at is not None else math.nan
        total += step
    return total


def _distance_j(mine: float, other: float, wraps_at: float | None) -> float:
    apart = abs(mine - other)
    return apart if wraps_at is None else min(apart, abs(wraps_at - apart))
