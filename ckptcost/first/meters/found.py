"""Every meter of this machine that was asked for, and the reasons for what is not there. Each
module is imported when its turn comes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ckptcost.first.errors import Argument, UnknownName
from ckptcost.first.meters.base import Absence, FoundMeters, Meter


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to look for, and how."""

    names: Sequence[str] = ()
    """meters by name; empty: all that cost nothing to ask"""
    also: Sequence[str] = ()
    """by name, besides all that cost nothing"""
    every_gpu: bool = False
    """not only those that CUDA_VISIBLE_DEVICES leaves"""
    rapl: str = "auto"
    directory: Path | None = None
    """where checkpoints go: its disk or mount is read; without it all are"""
    pid: int | None = None
    """the job's root process; without it this one"""
    redfish_url: str = ""
    redfish_ca: str | None = None
    redfish_insecure: bool = False
    sysfs: Path = Path("/sys")
    procfs: Path = Path("/proc")
    environ: Mapping[str, str] | None = None
    known: frozenset[str] = frozenset()
    """domains whose power or energy another meter gives already"""

    @property
    def asked(self) -> frozenset[str]:
        return frozenset((*self.names, *self.also))


def _nvml(w: Wanted) -> FoundMeters:
    from ckptcost.first.meters import nvml

    return nvml.find(visible=w.environ, everything=w.every_gpu, procfs=w.procfs, sysfs=w.sysfs)


def _amd(w: Wanted) -> FoundMeters:
    from ckptcost.first.meters import amd

    first = len({domain.split(".")[0] for domain in w.known if domain.startswith("gpu:")})
    return amd.find(visible=w.environ, everything=w.every_gpu, sysfs=w.sysfs, first=first)


def _rapl(w: Wanted) -> FoundMeters:
    from ckptcost.first.meters import rapl

    backend: Any = w.rapl  # judged there
    return rapl.find(sysfs=w.sysfs, procfs=w.procfs, backend=backend)


def _hwmon(w: Wanted) -> FoundMeters:
    from ckptcost.first.meters import hwmon

    return hwmon.find(w.sysfs, beside_rapl=any(domain.startswith("cpu:") for domain in w.known))


def _nvme(w: Wanted) -> FoundMeters:
    from ckptcost.first.meters import nvme
    from ckptcost.first.meters.background import Background

    found = nvme.find(sysfs=w.sysfs, allow_commands="nvme" in w.asked)
    return FoundMeters([Background(meter) for meter in found.meters], found.absences)


def _nvme_model(w: Wanted) -> FoundMeters:
    from ckptcost.first.meters import nvme_model

    return nvme_model.find(sysfs=w.sysfs, measured=w.known)


def _block(w: Wanted) -> FoundMeters:
    from ckptcost.first.meters import block

    return block.find(procfs=w.procfs, sysfs=w.sysfs, paths=(w.directory,) if w.directory else ())


def _process(w: Wanted) -> FoundMeters:
    from ckptcost.first.meters import process

    return process.find(
        procfs=w.procfs, sysfs=w.sysfs, pids=(w.pid if w.pid is not None else os.getpid(),)
    )


def _writeback(w: Wanted) -> FoundMeters:
    from ckptcost.first.meters import writeback

    return writeback.find(procfs=w.procfs, sysfs=w.sysfs)


def _pressure(w: Wanted) -> FoundMeters:
    from ckptcost.first.meters import pressure

    return pressure.find(procfs=w.procfs, sysfs=w.sysfs)


def _cgroup(w: Wanted) -> FoundMeters:
    from ckptcost.first.meters import cgroup

    return cgroup.find(procfs=w.procfs, sysfs=w.sysfs, pid=w.pid if w.pid is not None else "self")


def _nfs(w: Wanted) -> FoundMeters:
    from ckptcost.first.meters import mounts

    paths = (w.directory,) if w.directory else ()
    return mounts.find(procfs=w.procfs, sysfs=w.sysfs, paths=paths, asked="nfs" in w.asked)


def _lustre(w: Wanted) -> FoundMeters:
    from ckptcost.first.meters import lustre

    asked = "lustre" in w.asked
    return lustre.find(procfs=w.procfs, sysfs=w.sysfs, asked=asked, allow_commands=asked)


def _gds(w: Wanted) -> FoundMeters:
    from ckptcost.first.meters import gds

    return gds.find(procfs=w.procfs, sysfs=w.sysfs)


def _ipmi(w: Wanted) -> FoundMeters:
    from ckptcost.first.meters import ipmi

    return ipmi.find("ipmi" in w.asked)


def _redfish(w: Wanted) -> FoundMeters:
    from ckptcost.first.meters import redfish

    environ = os.environ if w.environ is None else w.environ
    user, password = environ.get("CKPTCOST_REDFISH_USER"), environ.get("CKPTCOST_REDFISH_PASSWORD")
    return redfish.find(
        w.redfish_url, user, password, ca_file=w.redfish_ca, insecure=w.redfish_insecure
    )


FINDERS: Mapping[str, Callable[[Wanted], FoundMeters]] = {
    "nvml": _nvml,
    "amd": _amd,
    "rapl": _rapl,
    "hwmon": _hwmon,
    "nvme": _nvme,
    "nvme-model": _nvme_model,
    "block": _block,
    "process": _process,
    "writeback": _writeback,
    "pressure": _pressure,
    "cgroup": _cgroup,
    "nfs": _nfs,
    "lustre": _lustre,
    "gds": _gds,
    "ipmi": _ipmi,
    "redfish": _redfish,
}
"""by name"""
ON_REQUEST = frozenset({"ipmi", "redfish"})
"""start processes or use the network: only where they are named"""


def find_meters(wanted: Wanted) -> FoundMeters:
    """Looks for each and keeps going; raises only for a name that no meter has."""
    for name in (*wanted.names, *wanted.also):
        if name not in FINDERS:
            raise UnknownName(
                "meter", name, FINDERS, where=Argument("meters"), lists=", ".join(FINDERS)
            )
    meters: list[Meter] = []
    absences: list[Absence] = []
    looked_for = {*(wanted.names or FINDERS)}
    if wanted.redfish_url:
        looked_for.add("redfish")
    for name, finder in FINDERS.items():
        if name not in looked_for:
            continue
        seen = finder(wanted)
        meters += seen.meters
        said = {
            c.domain
            for meter in seen.meters
            for c in meter.channels
            if c.quantity in ("power_w", "energy_j") and c.role != "detail"
        }
        wanted = replace(wanted, known=wanted.known | said)
        absences += seen.absences
    return FoundMeters(tuple(meters), tuple(absences))
