"""What block devices did: bytes, operations, flushes, busy time and queue, from /proc/diskstats.

Sectors there are 512 bytes whatever the drive's own are (Documentation/admin-guide/iostats.rst).
Whole disks are parts; partitions, and device-mapper, md and loop devices over them, are details:
their bytes pass through a disk that is counted already. RAM disks and zram are memory and left out.
Flushes are counted from kernel 5.5 on, and for whole disks only.

Busy time is that with at least one request under way, sampled in jiffies: few short requests count
as more than they take. The `queue_s` counter is the integral of the number of requests, so its
difference over a time is their mean number.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ckptcost.first.core.channels import Channel, Quantity, Role
from ckptcost.first.errors import MeterLost
from ckptcost.first.meters.base import NOTHING, Absence, Channelwise, FoundMeters, none_found
from ckptcost.first.meters.kept import OpenFile, file_text, os_error_text
from ckptcost.first.meters.mounts import Mount, mount_of

SECTOR_BYTES = 512.0
MS_WRAP_S = 2.0**32 / 1000.0
"""the kernel prints times as 32 bits of milliseconds"""

# quantity, its field after the name, and what makes a base unit of it
_FIELDS: tuple[tuple[Quantity, int, float], ...] = (
    ("written_bytes", 6, SECTOR_BYTES),
    ("read_bytes", 2, SECTOR_BYTES),
    ("writes", 4, 1.0),
    ("reads", 0, 1.0),
    ("flushes", 15, 1.0),
    ("busy_s", 9, 1e-3),
    ("queue_s", 10, 1e-3),
    ("in_flight", 8, 1.0),
)
_OF_PARTITION = _FIELDS[:4]
_MEMORY = re.compile(r"(ram|zram|nvme\d+c\d+n)\d+$")
"""memory, and the hidden paths below a multipath NVMe namespace"""
_STACKED = re.compile(r"(dm-|md|loop|bcache)\d+$")


def numbers_of(text: bytes, only: Collection[bytes] | None = None) -> dict[bytes, list[bytes]]:
    """The words after each device's name; the order of the lines and the number of fields (11, 15
    or 17) are the kernel's business. Devices that are not in `only` have an empty list, which saves
    most of the time.

    >>> numbers_of(b" 8 0 sda 1 0 8 0 2 0 16 0 0 4 4")[b"sda"][6]
    b'16'
    """
    found: dict[bytes, list[bytes]] = {}
    for line in text.splitlines():
        words = line.split(None, 3)
        if len(words) == 4:
            found[words[2]] = words[3].split() if only is None or words[2] in only else []
    return found


FOLDER: Final = "folder"
"""the fact that names the device which a folder's file system lies on"""
LIES_ON: Final = "lies on "
"""how a channel's note begins that names what is under its device"""


class Device(NamedTuple):
    name: str
    disk: str
    """of a partition; otherwise the name itself"""
    slaves: tuple[str, ...]
    """what it lies on: dm, md, bcache"""
    backing: str
    """the file of a loop device"""
    bytes: float
    """its size; NaN where the system does not tell"""

    @property
    def is_detail(self) -> bool:
        return bool(self.disk != self.name or self.slaves or _STACKED.match(self.name))


def device(name: str, sysfs: Path = Path("/sys")) -> Device:
    """What sysfs knows of a disk or partition. `!` stands for `/` there (cciss!c0d0)."""
    entry = name.replace("/", "!")
    folder = sysfs / "block" / entry
    disk = name
    if not folder.exists():
        home = sysfs / "class" / "block" / entry
        inside = [
            path for path in (sysfs / "block").glob(f"*/{entry}") if (path / "partition").exists()
        ]
        if inside:
            folder, disk = inside[0], inside[0].parent.name.replace("!", "/")
        elif home.exists():
            folder = home
    slaves = tuple(sorted(found.name.replace("!", "/") for found in (folder / "slaves").glob("*")))
    size = file_text(folder / "size")
    return Device(
        name,
        disk,
        slaves,
        file_text(folder / "loop" / "backing_file"),
        float(size) * SECTOR_BYTES if size.isdigit() else NOTHING,
    )


def is_counted(found: Device) -> bool:
    """Not memory, and not a loop or network device that nothing is bound to (size 0)."""
    return not _MEMORY.match(found.name) and found.bytes != 0


class DiskHome(NamedTuple):
    """Where a path's bytes go: disks below everything, or the reason why no disk of this machine is
    known to take them."""

    disks: tuple[str, ...]
    chain: tuple[str, ...]
    """from the file system down: dm-0, md0, sda2"""
    fstype: str
    mount: str
    reason: str = ""
    remedy: str = ""


_NO_DISK = {
    "tmpfs": ("tmpfs is memory: nothing reaches a drive", "save to a directory on a disk"),
    "ramfs": ("ramfs is memory: nothing reaches a drive", "save to a directory on a disk"),
    "nfs": ("NFS: the drives are the server's", "the nfs meter counts what goes over the wire"),
    "nfs4": ("NFS: the drives are the server's", "the nfs meter counts what goes over the wire"),
    "lustre": (
        "Lustre: the drives are the servers'",
        "the lustre meter counts what goes over the wire",
    ),
    "zfs": ("ZFS keeps its devices to itself", "name the pool's disks: zpool status -L"),
}


def _disks_below(name: str, sysfs: Path, chain: list[str]) -> list[str]:
    """The disks under a device, through dm, md and partitions; `chain` collects the way."""
    if name in chain:
        return []
    chain.append(name)
    here = device(name, sysfs)
    if here.slaves:
        return [disk for slave in here.slaves for disk in _disks_below(slave, sysfs, chain)]
    return [here.disk]


def device_of(
    path: Path | str,
    *,
    procfs: Path = Path("/proc"),
    sysfs: Path = Path("/sys"),
    number: str | None = None,
) -> DiskHome:
    """The disks that take the bytes of `path`, which need not exist yet. `number` overrides its
    major:minor."""
    place = _nearest_existing(path)
    mount = mount_of(place, procfs)
    seen = DiskHome((), (), mount.fstype if mount else "", mount.point if mount else "")
    if number is None:
        try:
            st_dev = os.stat(place).st_dev
        except OSError as error:
            reason = f"{place}: {os_error_text(error)}"
            return seen._replace(reason=reason, remedy="name a directory that this user may enter")
        number = f"{os.major(st_dev)}:{os.minor(st_dev)}"
    if name := _disk_name(number, mount, sysfs):
        return _home_of_disk(name, place, seen, procfs, sysfs)
    if mount and mount.fstype == "overlay":
        return _home_of_overlay(mount.options, seen, procfs, sysfs)
    unknown = f"{seen.fstype or 'its file system'} (device {number}) names no disk of this machine"
    reason, remedy = _NO_DISK.get(seen.fstype, (unknown, ""))
    return seen._replace(reason=reason, remedy=remedy or "name the disk by hand: lsblk")


def _nearest_existing(path: Path | str) -> Path:
    place = Path(os.path.realpath(path))
    while not place.exists() and place != place.parent:
        place = place.parent
    return place


def _disk_name(number: str, mount: Mount | None, sysfs: Path) -> str:
    """By its major:minor; of btrfs and the like, which have made-up numbers, by what is mounted."""
    link = sysfs / "dev" / "block" / number
    if link.exists():
        return os.path.basename(os.path.realpath(link))
    if mount is None or not mount.source.startswith("/dev/"):
        return ""
    name = os.path.basename(os.path.realpath(mount.source))
    return "" if math.isnan(device(name, sysfs).bytes) else name


def _home_of_disk(name: str, place: Path, seen: DiskHome, procfs: Path, sysfs: Path) -> DiskHome:
    """The disks below a device; of a loop device those that its file lies on."""
    chain: list[str] = []
    disks = tuple(dict.fromkeys(_disks_below(name.replace("!", "/"), sysfs, chain)))
    loop = device(disks[0], sysfs).backing if len(disks) == 1 else ""
    if loop and os.path.realpath(loop) != str(place):
        under = device_of(loop, procfs=procfs, sysfs=sysfs)
        return under._replace(chain=(*chain, *under.chain), fstype=seen.fstype, mount=seen.mount)
    return seen._replace(disks=disks, chain=tuple(chain))


def _home_of_overlay(options: str, seen: DiskHome, procfs: Path, sysfs: Path) -> DiskHome:
    upper = re.search(r"upperdir=([^,]+)", options)
    if upper and Path(upper[1]).exists():
        under = device_of(upper[1], procfs=procfs, sysfs=sysfs)
        return under._replace(fstype=seen.fstype, mount=seen.mount)
    return seen._replace(
        reason="overlay: the directory below is not visible from inside the container",
        remedy="save to a volume, or name the disk by hand",
    )


def _channels_of(
    found: Device, shown: Sequence[tuple[Quantity, int, float]], stats: Path, sysfs: Path
) -> list[Channel]:
    whole = found.disk if found.disk != found.name else ""
    lies_on = ", ".join(found.slaves) or found.backing or whole
    role: Role = "detail" if found.is_detail else "part"
    return [
        Channel(
            f"disk:{found.name}",
            quantity,
            f"{stats} {found.name} field {at + 1}",
            "disk",
            role=role,
            wraps_at=MS_WRAP_S if unit == 1e-3 else None,
            resolution=unit,
            device=file_text(sysfs / "block" / found.name / "device" / "model"),
            note=f"{LIES_ON}{lies_on}" if lies_on else "",
        )
        for quantity, at, unit in shown
    ]


class Block(Channelwise):
    """Eight channels a disk, four a partition; one read of /proc/diskstats for all of them."""

    def __init__(
        self, devices: Sequence[Device], stats: Path, fields: dict[bytes, list[bytes]], sysfs: Path
    ) -> None:
        super().__init__("block")
        self._kept = OpenFile(stats)
        self._known = set(fields)
        self._lines = len(fields)
        self._plan: list[tuple[bytes, str, tuple[tuple[Quantity, int, float], ...]]] = []
        channels: list[Channel] = []
        for found in devices:
            have = len(fields.get(found.name.encode(), ()))
            shown = _OF_PARTITION
            if found.disk == found.name:
                shown = tuple(row for row in _FIELDS if row[1] < have)
            channels += _channels_of(found, shown, stats, sysfs)
            self._plan.append((found.name.encode(), f"disk:{found.name}", shown))
        self.channels = tuple(channels)
        self._names = frozenset(name for name, _, _ in self._plan)
        self._before: dict[bytes, tuple[int, int]] = {}

    def read(self, t_ns: int) -> list[float]:
        try:
            found = numbers_of(self._kept.read_all(), self._names)
        except OSError as error:
            raise MeterLost(f"{self._kept.path}: {os_error_text(error)}") from error
        values: list[float] = []
        for name, domain, shown in self._plan:
            words = found.get(name)
            if words is None:
                self._before.pop(name, None)
                gone = "no longer in diskstats: unplugged, or detached"
                values += (self.note_missing(domain, gone),) * len(shown)
                continue
            self.note_answer(domain, "back in diskstats; its counters began anew")
            try:
                done = int(words[0]), int(words[4])
                here = [int(words[at]) * unit for _, at, unit in shown]
            except (ValueError, IndexError):
                values += (NOTHING,) * len(shown)
                continue
            before = self._before.get(name)
            self._before[name] = done
            if before and (done[0] < before[0] or done[1] < before[1]):
                # a drive of the same name: not a counter that wrapped, which the times would be
                # taken for
                self.tell(
                    "restarted", domain, "its counters fell: another drive under the same name"
                )
                here = [NOTHING] * len(shown)
            values += here
        if len(found) != self._lines:
            self._note_new(found)
        return values

    def _note_new(self, found: Mapping[bytes, object]) -> None:
        """Disks that were not there at the beginning."""
        self._lines = len(found)
        for new in sorted(found.keys() - self._known):
            self._known.add(new)
            disk = os.fsdecode(new)
            if is_counted(Device(disk, disk, (), "", NOTHING)):
                self.tell("note", f"disk:{disk}", "appeared during the run and is not recorded")

    def close(self) -> None:
        self._kept.close()


def find(
    *,
    procfs: Path = Path("/proc"),
    sysfs: Path = Path("/sys"),
    paths: Sequence[Path | str] = (),
    names: Sequence[str] = (),
    partitions: bool = True,
) -> FoundMeters:
    """The devices called `names`, those below `paths` (disks, partitions and what lies between), or
    without either all that exist."""
    stats = procfs / "diskstats"
    try:
        kept = OpenFile(stats)
        fields = numbers_of(kept.read_all())
        kept.close()
    except OSError as error:
        remedy = f"mount procfs with diskstats visible: ls -l {stats}"
        return none_found("block", f"{stats}: {os_error_text(error)}", remedy, "storage")
    devices, absences, own = _devices_asked(names, paths, fields, procfs, sysfs)
    if not partitions:
        devices = [found for found in devices if found.disk == found.name]
    if not devices and absences:
        return FoundMeters((), tuple(absences))
    if not devices:
        remedy = "in a container or a diskless node: name a mount or a cgroup"
        return none_found("block", f"no block device in {stats}", remedy, "storage")
    devices.sort(key=lambda found: (found.is_detail, found.disk != found.name))
    meter = Block(devices, stats, fields, sysfs)
    if any(found.name == own for found in devices):
        meter.facts[FOLDER] = f"disk:{own}"
    return FoundMeters((meter,), tuple(absences))


def _devices_asked(
    names: Sequence[str],
    paths: Sequence[Path | str],
    fields: Mapping[bytes, object],
    procfs: Path,
    sysfs: Path,
) -> tuple[list[Device], list[Absence], str]:
    """The devices, what is not there, and the one that the first path lies on."""
    if not names and not paths:
        there = [device(os.fsdecode(name), sysfs) for name in fields]
        return list(filter(is_counted, there)), [], ""
    chosen = [name.removeprefix("/dev/") for name in names]
    absences, own = [], ""
    for path in paths:
        home = device_of(path, procfs=procfs, sysfs=sysfs)
        if home.reason:
            absences.append(Absence(f"block {path}", home.reason, home.remedy, "storage"))
        chosen += (*home.disks, *home.chain)
        own = own or next(iter(home.chain), "")
    devices = []
    for name in dict.fromkeys(chosen):
        if name.encode() in fields:
            devices.append(device(name, sysfs))
        else:
            reason = f"no {name} in {procfs / 'diskstats'}"
            absences.append(Absence(f"block {name}", reason, "the names there: lsblk", "storage"))
    return devices, absences, own
