"""Which mount a path lies on, and what NFS mounts put on the wire.

/proc/self/mountstats has a `bytes:` line for each NFS mount (include/linux/nfs_iostat.h):
normalread normalwrite directread directwrite serverread serverwrite readpages writepages. The fifth
and sixth are what went to and came from the server, whatever cache lay between; the COMMIT
operations are what makes written data durable there. Two mounts of one export share the client's
counters, so the second is a detail. Reading asks no server anything and cannot hang.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from ckptcost.first.core.channels import Channel, Quantity, Role
from ckptcost.first.meters.base import NOTHING, Channelwise, FoundMeters, none_found
from ckptcost.first.meters.kept import OpenFile, os_error_text


class Mount(NamedTuple):
    number: str
    """major:minor of the file system"""
    root: str
    point: str
    fstype: str
    source: str
    options: str
    """of the file system: upperdir= of an overlay, subvol= of btrfs"""

    @property
    def is_nfs(self) -> bool:
        return self.fstype in ("nfs", "nfs4")


_OCTAL = re.compile(r"\\([0-7]{3})")


def unescape(text: str) -> str:
    """The kernel writes blanks and the like in paths as octal numbers.

    >>> unescape(r"/mnt/my\\040disk")
    '/mnt/my disk'
    """
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text)


def is_virtual_disk(path: Path, procfs: Path = Path("/proc")) -> bool:
    """Whether a path lies on a disk that this machine's host lends it: what is behind it, and its
    cache, cannot be seen from here."""
    mount = mount_of(path, procfs)
    if mount is None or not mount.source.startswith("/dev/"):
        return False
    try:
        return " hypervisor" in (procfs / "cpuinfo").read_text("ascii", "replace")
    except OSError:
        return False


def mounts(procfs: Path = Path("/proc")) -> list[Mount]:
    """What mountinfo lists, in the order of mounting; [] where it cannot be read."""
    try:
        lines = (procfs / "self" / "mountinfo").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        left, dash, right = line.partition(" - ")
        words, more = left.split(), right.split(" ")
        if dash and len(words) >= 6 and len(more) >= 2:
            root, point, source, options = map(
                unescape, (words[3], words[4], more[1], " ".join(more[2:]))
            )
            found.append(Mount(words[2], root, point, more[0], source, options))
    return found


def mount_of(path: Path, procfs: Path = Path("/proc")) -> Mount | None:
    """The mount that `path` (or the nearest folder above it that exists) lies on: the longest mount
    point, the last of equal ones."""
    real = os.path.realpath(path)
    best: Mount | None = None
    for mount in mounts(procfs):
        point = mount.point.rstrip("/")
        if (real == point or real.startswith(point + "/")) and (
            best is None or len(mount.point) >= len(best.point)
        ):
            best = mount
    return best


_DEVICE = re.compile(rb"\S+ mounted on (\S+) with fstype nfs4? ")
_BYTES = re.compile(rb"^\s*bytes:((?:\s+\d+){6,})\s*$", re.M)
_OP = {
    name: re.compile(rb"^\s*" + name + rb": (\d+) ", re.M)
    for name in (b"READ", b"WRITE", b"COMMIT")
}

_SHOWN: tuple[tuple[Quantity, str], ...] = (
    ("written_bytes", "bytes: serverwrite"),
    ("read_bytes", "bytes: serverread"),
    ("writes", "WRITE operations"),
    ("reads", "READ operations"),
    ("flushes", "COMMIT operations"),
)


def parse_mountstats(text: bytes) -> dict[str, tuple[float, ...]]:
    """By mount point: bytes written, bytes read, WRITEs, READs, COMMITs; NaN for a line that is not
    there.

    >>> parse_mountstats(
    ...     b"device s:/x mounted on /x with fstype nfs4 statvers=1.1\\n"
    ...     b"\\tbytes:\\t1 2 3 4 50 60 7 8\\n\\tWRITE: 9 9 0\\n"
    ... )["/x"]
    (60.0, 50.0, 9.0, nan, nan)
    """
    found: dict[str, tuple[float, ...]] = {}
    for part in (b"\n" + text).split(b"\ndevice ")[1:]:
        head = _DEVICE.match(part)
        if head is None:
            continue
        moved = _BYTES.search(part)
        numbers = [int(word) for word in moved[1].split()] if moved else []
        read_bytes, written_bytes = (
            (float(numbers[4]), float(numbers[5])) if moved else (NOTHING, NOTHING)
        )
        reads, writes, commits = (
            float(hit[1]) if (hit := _OP[name].search(part)) else NOTHING
            for name in (b"READ", b"WRITE", b"COMMIT")
        )
        found[unescape(os.fsdecode(head[1]))] = (written_bytes, read_bytes, writes, reads, commits)
    return found


class NfsMounts(Channelwise):
    """Five channels a mount."""

    def __init__(self, chosen: list[Mount], stats: Path) -> None:
        super().__init__("nfs", least_s=0.1)
        self._kept = OpenFile(stats)
        self._points = [mount.point for mount in chosen]
        seen: set[str] = set()
        channels = []
        for mount in chosen:
            role: Role = "part"
            note = ""
            if mount.number in seen:
                role, note = "detail", "shares its counters with another mount of the same export"
            seen.add(mount.number)
            for quantity, line in _SHOWN:
                channels.append(
                    Channel(
                        f"mount:{mount.point}",
                        quantity,
                        f"{stats} {line}",
                        "mount",
                        role=role,
                        device=mount.source,
                        note=note,
                    )
                )
        self.channels = tuple(channels)

    def read(self, t_ns: int) -> list[float]:
        try:
            found = parse_mountstats(self._kept.read_all())
        except OSError:
            found = {}
        values: list[float] = []
        for point in self._points:
            here = found.get(point)
            if here is None:
                gone = "unmounted, or mountstats no longer lists it"
                values += (self.note_missing(f"mount:{point}", gone),) * len(_SHOWN)
                continue
            self.note_answer(f"mount:{point}", "mounted again; its counters began anew")
            values += here
        return values

    def close(self) -> None:
        self._kept.close()


def _nfs_mounts(paths: tuple[Path, ...], procfs: Path) -> list[Mount]:
    on = [mount_of(path, procfs) for path in paths] if paths else mounts(procfs)
    # a mount over another one hides it, and is in the list after it
    return list({mount.point: mount for mount in on if mount and mount.is_nfs}.values())


def find(
    *,
    procfs: Path = Path("/proc"),
    sysfs: Path = Path("/sys"),
    paths: tuple[Path, ...] = (),
    asked: bool = False,
) -> FoundMeters:
    """The NFS mounts that `paths` lie on, or all. None is no absence, unless one was `asked` for or
    a path named."""
    stats = procfs / "self" / "mountstats"
    chosen = _nfs_mounts(paths, procfs)
    if not chosen and not (asked or paths):
        return FoundMeters(())
    if not chosen:
        reason = "no NFS mount in this mount namespace"
        return none_found(
            "nfs",
            "the given paths are not on NFS" if paths else reason,
            "name a path on an NFS mount: findmnt -t nfs,nfs4",
            "storage",
        )
    try:
        meter = NfsMounts(chosen, stats)
        listed = parse_mountstats(meter._kept.read_all())
    except OSError as error:
        remedy = "run in the mount namespace and as the user of the process that writes"
        return none_found("nfs", f"{stats}: {os_error_text(error)}", remedy, "storage")
    missing = [mount.point for mount in chosen if mount.point not in listed]
    if len(missing) < len(chosen):
        return FoundMeters((meter,))
    meter.close()
    remedy = (
        "the kernel's NFS client keeps these by default; another client (user space NFS) counts"
        " elsewhere"
    )
    return none_found("nfs", f"{stats} does not list {', '.join(missing)}", remedy, "storage")
