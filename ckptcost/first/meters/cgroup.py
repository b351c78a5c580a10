"""What a cgroup read and wrote, device by device: io.stat of cgroup v2, or blkio of v1 where that
is all there is.

This is the cleanest count of one job's device traffic, children and threads included. Write-back is
charged to the cgroup that made the pages dirty only where the file system supports it (ext2, ext4,
btrfs, f2fs, newer xfs); elsewhere it lands in the root cgroup, and under v1 it always does. Bytes
that pass through device-mapper, md or loop devices are counted at each level; the sum takes disks
only. Documentation/admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ckptcost.first.core.channels import Channel, Quantity
from ckptcost.first.meters.base import NOTHING, Channelwise, FoundMeters, none_found
from ckptcost.first.meters.block import device, is_counted
from ckptcost.first.meters.kept import OpenFile, os_error_text
from ckptcost.first.meters.pressure import group_name

Four = tuple[float, ...]
"""one for each of `_QUANTITIES`"""
_QUANTITIES: tuple[tuple[Quantity, str], ...] = (
    ("written_bytes", "wbytes"),
    ("read_bytes", "rbytes"),
    ("writes", "wios"),
    ("reads", "rios"),
)
UNSEEN: Four = (NOTHING, NOTHING, NOTHING, NOTHING)


class CgroupHome(NamedTuple):
    """A cgroup's folder and the version it belongs to."""

    folder: Path
    version: int
    name: str


def io_stat(text: bytes) -> dict[str, Four]:
    """By major:minor: bytes written, bytes read, writes, reads. A word that is missing is 0 only if
    the line has others.

    >>> io_stat(b"8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\\n7:0 \\n")
    {'8:0': (8192.0, 4096.0, 2.0, 1.0)}
    """
    found: dict[str, Four] = {}
    for line in text.decode("ascii", "replace").splitlines():
        words = line.split()
        pairs = dict(word.split("=", 1) for word in words[1:] if "=" in word)
        if any(word in pairs for _, word in _QUANTITIES):
            try:
                found[words[0]] = tuple(float(int(pairs.get(word, "0"))) for _, word in _QUANTITIES)
            except ValueError:
                continue
    return found


def blkio(service_bytes: bytes, serviced: bytes) -> dict[str, Four]:
    """The same of v1's two files.

    >>> blkio(
    ...     b"8:0 Read 4096\\n8:0 Write 8192\\n8:0 Total 12288\\nTotal 12288\\n",
    ...     b"8:0 Read 1\\n8:0 Write 2\\nTotal 3\\n",
    ... )
    {'8:0': (8192.0, 4096.0, 2.0, 1.0)}
    """
    found: dict[str, list[float]] = {}
    for text, write_at, read_at in ((service_bytes, 0, 1), (serviced, 2, 3)):
        for line in text.decode("ascii", "replace").splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in ("Read", "Write") and words[2].isdigit():
                found.setdefault(words[0], [NOTHING] * 4)[
                    write_at if words[1] == "Write" else read_at
                ] = float(words[2])
    return {number: tuple(four) for number, four in found.items()}


def _is_cgroup(folder: Path) -> bool:
    return (folder / "cgroup.procs").exists()


def home_of(
    pid: int | str = "self", *, procfs: Path = Path("/proc"), sysfs: Path = Path("/sys")
) -> list[CgroupHome]:
    """The cgroups of a process that may count I/O, v2 before v1; a path not visible here gives the
    nearest above."""
    try:
        lines = (procfs / str(pid) / "cgroup").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    top = sysfs / "fs" / "cgroup"
    homes = []
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if number == "0" and not controllers:
            version, roots = 2, [top / "unified", top]
        elif "blkio" in controllers.split(","):
            version, roots = 1, [top / controllers, top / "blkio"]
        else:
            continue
        root = next(filter(_is_cgroup, roots), None)
        if root is None:
            continue
        folder = root / name.strip("/")
        while not folder.exists() and folder != root:
            folder = folder.parent
        inside = folder.relative_to(root).as_posix()
        homes.append(CgroupHome(folder, version, "/" if inside == "." else f"/{inside}"))
    return sorted(homes, key=lambda home: -home.version)


class Cgroup(Channelwise):
    """Four channels for the cgroup over all disks, and four for each disk that exists."""

    def __init__(self, home: CgroupHome, sysfs: Path, disks: dict[str, str]) -> None:
        """`disks`: names by major:minor."""
        super().__init__("cgroup", facts={"cgroup": f"v{home.version} {home.folder}"})
        self._sysfs, self._disks = sysfs, dict(disks)
        self._shown = tuple(disks)
        self._strange: set[str] = set()
        self._home = home
        self._kept: list[OpenFile] = []
        if home.version == 2:
            names = ["io.stat"]
        else:
            over = (
                "_recursive"
                if (home.folder / "blkio.throttle.io_service_bytes_recursive").exists()
                else ""
            )
            names = [f"blkio.throttle.io_service_bytes{over}", f"blkio.throttle.io_serviced{over}"]
        try:
            for name in names:
                self._kept.append(OpenFile(home.folder / name))
        except OSError:
            self.close()
            raise
        note = (
            ""
            if home.version == 2
            else "v1: without write-back from the page cache, which is charged to the root"
        )
        rows: list[tuple[str, str]] = [
            (f"cgroup:{home.name}", "all disks"),
            *((f"cgroup:{home.name}.{name}", name) for name in disks.values()),
        ]
        self.channels = tuple(
            Channel(
                domain,
                quantity,
                f"{self._kept[0].path} {word}, {what}",
                "cgroup",
                role="detail",
                note=note,
            )
            for domain, what in rows
            for quantity, word in _QUANTITIES
        )

    def _is_disk(self, number: str) -> bool:
        """Whether a device's bytes belong in the sum; one that nobody knew before is looked up
        once."""
        if number in self._disks:
            return True
        if number in self._strange:
            return False
        name = os.path.basename(os.path.realpath(self._sysfs / "dev" / "block" / number))
        found = device(name, self._sysfs)
        if name == number or found.is_detail or not is_counted(found):
            self._strange.add(number)
            return False
        self._disks[number] = name
        return True

    def asked(self) -> dict[str, Four]:
        texts = [kept.read_all() for kept in self._kept]
        return io_stat(texts[0]) if self._home.version == 2 else blkio(texts[0], texts[1])

    def read(self, t_ns: int) -> list[float]:
        domain = f"cgroup:{self._home.name}"
        try:
            found = self.asked()
        except OSError as error:
            removed = f"{self._kept[0].path}: {os_error_text(error)}; the cgroup was removed"
            return [self.note_missing(domain, removed)] * len(self.channels)
        # a device without a line has had no I/O from this cgroup (v2); v1 lists nothing at all
        # where it does not count
        empty: Four = (0.0, 0.0, 0.0, 0.0) if self._home.version == 2 or found else UNSEEN
        total = empty
        for number, four in found.items():
            if self._is_disk(number):
                total = tuple(a + b for a, b in zip(total, four, strict=True))
        values = [*total]
        for number in self._shown:
            values += found.get(number, empty)
        return values

    def close(self) -> None:
        for kept in self._kept:
            kept.close()


def disks_of(sysfs: Path) -> dict[str, str]:
    """The whole disks of this machine by major:minor."""
    found = {}
    for folder in sorted((sysfs / "block").glob("*")):
        here = device(folder.name.replace("!", "/"), sysfs)
        if not here.is_detail and is_counted(here):
            try:
                found[(folder / "dev").read_text("ascii").strip()] = here.name
            except (OSError, ValueError):
                continue
    return found


def find(
    *,
    procfs: Path = Path("/proc"),
    sysfs: Path = Path("/sys"),
    pid: int | str = "self",
    folder: Path | None = None,
    disks: Callable[[Path], dict[str, str]] = disks_of,
) -> FoundMeters:
    """The cgroup of `pid`, or the one whose `folder` is given."""
    if folder is not None:
        version = 2 if (folder / "cgroup.controllers").exists() else 1
        homes = [CgroupHome(folder, version, group_name(folder, sysfs))]
    else:
        homes = home_of(pid, procfs=procfs, sysfs=sysfs)
    reasons: list[str] = []
    for home in homes:
        try:
            meter = Cgroup(home, sysfs, disks(sysfs))
            listed = meter.asked()
        except OSError as error:
            reasons.append(_reason(home, error))
            continue
        if home.version == 1 and not listed:
            meter.close()
            reasons.append(
                f"v1 blkio of {home.folder} lists no device: nothing was read or written directly,"
                " or this kernel keeps no count"
            )
            continue
        return FoundMeters((meter,))
    top = sysfs / "fs" / "cgroup"
    if not reasons:
        reasons.append(f"no cgroup with I/O accounting in {procfs}/{pid}/cgroup and {top}")
    return none_found("cgroup", "; ".join(reasons), _remedy(homes), "storage")


def _remedy(homes: Sequence[CgroupHome]) -> str:
    v2 = next((home for home in homes if home.version == 2), None)
    if v2 and v2.name != "/":
        return (
            "IOAccounting=yes for the unit, under systemd; else as root: echo +io >"
            f" {v2.folder.parent}/cgroup.subtree_control (until the next boot)"
        )
    return (
        "give the job a cgroup v2 of its own: systemd-run --scope -p IOAccounting=yes (boot"
        " with systemd.unified_cgroup_hierarchy=1)"
    )


def _reason(home: CgroupHome, error: OSError) -> str:
    if home.version == 2 and isinstance(error, FileNotFoundError):
        try:
            controllers = (home.folder / "cgroup.controllers").read_text("ascii").split()
        except (OSError, ValueError):
            controllers = []
        has = "switched on for it" if "io" in controllers else "available to it"
        return f"{home.folder} has no io.stat: the io controller is not {has}"
    return f"{error.filename or home.folder}: {os_error_text(error)}"
