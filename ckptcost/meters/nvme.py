"""What NVMe drives say of themselves: power of the last second, watt-hours since manufacture, bytes
written.

Few drives report power or energy yet; one that does not gives an absence, and `nvme_model` can
stand in for it. The energy counter has steps of 3,600 J, a few checkpoints each, so the power is
the one to integrate. The written bytes are what hosts sent; over the bytes of a checkpoint that is
the write amplification down to the drive, not the one inside it.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Collection, Sequence
from math import isnan
from pathlib import Path
from typing import NamedTuple

from ckptcost.core.channels import Channel, Quantity
from ckptcost.core.units import HOUR_S
from ckptcost.meters.base import Absence, Channelwise, FoundMeters, none_found
from ckptcost.meters.kept import file_text, os_error_text
from ckptcost.meters.nvme_pages import (
    DATA_UNIT_BYTES,
    AskPage,
    Commands,
    Identity,
    Passthrough,
    Smart,
    identity_of_page,
    smart_of_page,
)

_NAMESPACE = re.compile(r"nvme(\d+)(?:c\d+)?n(\d+)$")


LIST_DRIVES = "`nvme list` shows the drives"


class Drive(NamedTuple):
    """A drive of this machine: one controller, though it may have more."""

    controller: str
    """nvme0: the device to ask"""
    namespaces: tuple[str, ...]
    """nvme0n1 ...: what /sys/block calls its disks"""
    model: str
    serial: str
    firmware: str

    @property
    def domain(self) -> str:
        return f"drive:{self.namespaces[0] if self.namespaces else self.controller}"


def drives(sysfs: Path = Path("/sys")) -> tuple[list[Drive], list[Absence]]:
    """The drives that sit in this machine. A second controller of one drive is not another drive; a
    drive behind a fabric is elsewhere, and its joules are not this node's."""
    found: dict[str, Drive] = {}
    absences = []
    entries = (sysfs / "class" / "nvme").glob("nvme*")
    folders = [folder for folder in entries if re.fullmatch(r"nvme\d+", folder.name)]
    for folder in sorted(folders, key=lambda folder: int(folder.name[4:])):
        transport = file_text(folder / "transport")
        if transport not in ("pcie", ""):
            reason = f"the drive is behind {transport}, in another machine"
            absences.append(Absence(f"nvme {folder.name}", reason, "measure it there", "storage"))
            continue
        serial = file_text(folder / "serial")
        key = file_text(folder / "subsysnqn") or serial or folder.name
        other = found.get(key, Drive(folder.name, (), "", "", ""))
        names = {*_namespaces_in(folder), *other.namespaces}
        found[key] = Drive(
            other.controller,
            tuple(sorted(names, key=lambda name: (len(name), name))),
            file_text(folder / "model"),
            serial,
            file_text(folder / "firmware_rev"),
        )
    return list(found.values()), absences


def _namespaces_in(folder: Path) -> list[str]:
    matches = map(_NAMESPACE.match, (entry.name for entry in folder.glob("nvme*")))
    return [f"nvme{match[1]}n{match[2]}" for match in matches if match]


class Nvme(Channelwise):
    """Power and energy where the drive reports them, and the bytes; one page a drive, at most once
    a second."""

    def __init__(
        self, chosen: list[tuple[Drive, Smart, Identity | None]], ask: AskPage, how: str
    ) -> None:
        super().__init__("nvme", least_s=1.0, facts={"nvme": how})
        self._ask = ask
        self._plan: list[tuple[Drive, tuple[str, ...]]] = []
        channels: list[Channel] = []
        for drive, smart, identity in chosen:
            shown: list[str] = []
            name = f"{drive.model} {drive.serial}".strip()
            source = f"NVMe SMART log of {drive.controller}"
            if smart.power_w == smart.power_w:
                sampled = (
                    f"; a sample each {identity.sample_s:g} s"
                    if identity and identity.sample_s == identity.sample_s
                    else ""
                )
                kind = (
                    "the whole subsystem"
                    if smart.of_whole_subsystem
                    else "of the vendor's own kind"
                )
                shown.append("power_w")
                channels.append(
                    Channel(
                        drive.domain,
                        "power_w",
                        f"{source}, bytes 240-243",
                        "drive",
                        boundary="drive",
                        device=name,
                        averaging_s=1.0,
                        resolution=0.01,
                        note=f"{kind}{sampled}",
                    )
                )
            if smart.energy_j == smart.energy_j:
                shown.append("energy_j")
                channels.append(
                    Channel(
                        drive.domain,
                        "energy_j",
                        f"{source}, bytes 232-239",
                        "drive",
                        boundary="drive",
                        role="detail",
                        device=name,
                        resolution=HOUR_S,
                        note="rounded up to whole watt-hours: too coarse for one checkpoint",
                    )
                )
            rows: tuple[tuple[Quantity, str], ...] = (
                ("written_bytes", "48-63"),
                ("read_bytes", "32-47"),
            )
            for quantity, at in rows:
                shown.append(quantity)
                channels.append(
                    Channel(
                        drive.domain,
                        quantity,
                        f"{source}, bytes {at}",
                        "drive",
                        boundary="drive",
                        role="detail",
                        device=name,
                        resolution=DATA_UNIT_BYTES,
                        note="what hosts sent to the drive",
                    )
                )
            self._plan.append((drive, tuple(shown)))
            self.facts[drive.domain] = f"{name} firmware {drive.firmware}".strip()
        self.channels = tuple(channels)

    def read(self, t_ns: int) -> list[float]:
        values: list[float] = []
        for drive, shown in self._plan:
            try:
                smart = smart_of_page(self._ask(drive.controller, "smart"))
            except (OSError, ValueError) as error:
                text = os_error_text(error)
                values += (self.note_missing(drive.domain, text),) * len(shown)
                continue
            self.note_answer(drive.domain)
            values += (getattr(smart, quantity) for quantity in shown)
        return values

    def close(self) -> None:
        closing = getattr(self._ask, "close", None)
        if closing:
            closing()


def _remedy(error: OSError | ValueError, controller: str) -> str:
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM):
        return (
            f"run as root (it takes CAP_SYS_ADMIN and read permission of /dev/{controller}), or let"
            " `nvme-model` estimate it"
        )
    return f"as root: nvme smart-log /dev/{controller}"


def find(
    *,
    sysfs: Path = Path("/sys"),
    dev: Path = Path("/dev"),
    allow_commands: bool = False,
    ask: AskPage | None = None,
    names: Collection[str] = (),
) -> FoundMeters:
    """The drives of this machine, or those among `names` (nvme0 or nvme0n1): through the admin
    passthrough, and where that is refused and `allow_commands`, through nvme-cli."""
    present, absences = drives(sysfs)
    if names:
        wanted = {name.removeprefix("/dev/") for name in names}
        present = [drive for drive in present if wanted & {drive.controller, *drive.namespaces}]
    if not present and not absences:
        reason = "none of the drives asked for" if names else "no NVMe drive"
        return none_found("nvme", f"{reason} in {sysfs}/class/nvme", LIST_DRIVES, "storage")
    meters: list[Nvme] = []
    commands = [Commands(dev)] if allow_commands else []
    ways: list[AskPage] = [ask] if ask else [Passthrough(dev), *commands]
    refused: list[tuple[Drive, OSError | ValueError]] = []
    for way in ways if present else ():
        chosen, refused = _ask_all(way, present)
        absences += [_no_power(drive, smart) for drive, smart, _ in chosen if isnan(smart.power_w)]
        if chosen:
            meters.append(Nvme(chosen, way, getattr(way, "how", "given")))
        else:
            close_way(way)
        present = [drive for drive, _ in refused]
    for drive, refusal in refused:
        reason = f"/dev/{drive.controller}: {os_error_text(refusal)}"
        remedy = _remedy(refusal, drive.controller)
        absences.append(Absence(f"nvme {drive.domain}", reason, remedy, "storage"))
    return FoundMeters(tuple(meters), tuple(absences))


def close_way(way: AskPage) -> None:
    """What it keeps open, if it keeps anything."""
    if closing := getattr(way, "close", None):
        closing()


def _ask_all(
    way: AskPage, present: Sequence[Drive]
) -> tuple[list[tuple[Drive, Smart, Identity | None]], list[tuple[Drive, OSError | ValueError]]]:
    """The drives that answer, with what they say, and those that do not."""
    chosen: list[tuple[Drive, Smart, Identity | None]] = []
    refused: list[tuple[Drive, OSError | ValueError]] = []
    for drive in present:
        try:
            smart = smart_of_page(way(drive.controller, "smart"))
        except (OSError, ValueError) as error:
            refused.append((drive, error))
            continue
        try:
            identity = identity_of_page(way(drive.controller, "identity"))
        except (OSError, ValueError):
            identity = None
        chosen.append((drive, smart, identity))
    return chosen, refused


def _no_power(drive: Drive, smart: Smart) -> Absence:
    raw = smart.power_raw or 0
    reason = "the drive does not report its power"
    if raw:
        reason = f"the drive gives {raw & 0xFFFF} without a scale for its power"
    remedy = "use `nvme-model`, or a drive and firmware with interval power measurement (NVMe 2.1)"
    return Absence(f"nvme {drive.domain} power", reason, remedy, "storage")
