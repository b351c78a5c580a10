"""Why RAPL does not answer, as far as files tell, and what would make it answer for good."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ckptcost.meters import powercap, rapl_perf
from ckptcost.meters.base import Absence
from ckptcost.meters.rapl_domains import Processor, reason_of

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


def refused(tree: powercap.Tree) -> list[Absence]:
    """Counters that are there and cannot be read: one absence for each class a user would ask
    for."""
    told: list[Absence] = []
    for kind, asked in (("cpu", "cpu"), ("dram", "dram"), ("psys", "node")):
        those = [
            r
            for r in tree.refused
            if r.zone.spot is not None and r.zone.spot.kind == kind and not r.zone.spot.mirror
        ]
        if not those:
            continue
        first = those[0]
        more = f" (and {len(those) - 1} more)" if len(those) > 1 else ""
        reason = f"{first.zone.energy}{more}: {reason_of(first.error)}"
        if not isinstance(first.error, OSError) or first.error.errno not in DENIED:
            remedy = (
                f"look for RAPL in `dmesg`; `cat {first.zone.energy}` as root should give a number"
            )
        elif any(before.remedy.startswith("as root") for before in told):
            remedy = f"the remedy for {told[0].what} opens this one as well"
        else:
            remedy = powercap_remedy()
        told.append(Absence(f"rapl {kind}", reason, remedy, asked))
    return told


def unwrapped(tree: powercap.Tree) -> list[Absence]:
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


def unknown_zones(tree: powercap.Tree) -> list[Absence]:
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


def no_dram(domains: Sequence[str], cpu: Processor) -> list[Absence]:
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


def nothing(sysfs: Path, cpu: Processor) -> list[Absence]:
    """No zone at all: a virtual machine, a container, another architecture, an old kernel, a driver
    that is not loaded."""
    reason, remedy = _nothing(sysfs, cpu)
    return [
        Absence("rapl cpu", reason, remedy, "cpu"),
        Absence("rapl dram", f"no RAPL, hence no counter for memory: {reason}", remedy, "dram"),
    ]


def _nothing(sysfs: Path, cpu: Processor) -> tuple[str, str]:
    host = "measure on the host, or with a meter of the whole node: BMC (IPMI, Redfish) or hwmon"
    folder = sysfs / "class/powercap"
    shown = [name for name in powercap.listed(folder) if name.startswith("intel-rapl")]
    if any((folder / name).is_symlink() and not (folder / name).exists() for name in shown):
        return (
            (
                f"{folder / shown[0]} points to nothing: a container hides"
                f" {sysfs / 'devices/virtual/powercap'}"
            ),
            (
                "docker run --security-opt systempaths=unconfined, podman run --security-opt"
                " unmask=/sys/devices/virtual/powercap, or measure on the host"
            ),
        )
    if cpu.architecture == "arm":
        return (
            "RAPL is x86; this is an ARM processor",
            "Grace and others show their power in hwmon; or a meter of the whole node",
        )
    if cpu.architecture != "x86":
        return (
            "RAPL is x86, and /proc/cpuinfo does not look like it",
            "a meter of the whole node: BMC (IPMI, Redfish) or hwmon",
        )
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


def perf_refused(pmu: rapl_perf.Pmu) -> list[Absence]:
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
            Absence("rapl perf", f"{first.what}{more}: {reason_of(first.error)}", remedy, "cpu")
        )
    told.extend(
        Absence(f"rapl perf {event}", reason, "nothing to do: what is real is read")
        for event, reason in pmu.left_out
    )
    return told
