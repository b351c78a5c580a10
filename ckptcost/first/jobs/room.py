"""What a folder's file system has left: free space, inodes, quotas, and single targets where it is
Lustre."""

from __future__ import annotations

import ctypes
import fcntl
import math
import os
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ckptcost.first.core.outcome import evaluate
from ckptcost.first.core.room import (
    Limit,
    SavesHeld,
    evenly_bytes,
    fits,
    most_saves_kept,
    needed_bytes,
)
from ckptcost.first.core.size import full_bytes
from ckptcost.first.errors import InputError
from ckptcost.first.jobs.model import computable
from ckptcost.first.scenario import Resolved

KIB = 1024
_QUOTA = struct.Struct("=8QI4x")
"""struct if_dqblk: hard and soft KiB, bytes now, hard, soft and present inodes, two times, what is
valid"""
_GET_QUOTA = 0x800007
_GET_ATTRIBUTES = 0x801C581F
"""FS_IOC_FSGETXATTR, whose struct fsxattr holds the project"""
_MOST_SEEN = 100_000
"""files of the folder that are looked at"""


class Target(NamedTuple):
    """One storage target of a Lustre file system."""

    name: str
    free_bytes: float
    """NaN: inactive"""


class Room(NamedTuple):
    """A folder, what must fit into it, and what limits it."""

    directory: Path
    saves: SavesHeld
    limits: Sequence[Limit]
    targets: Sequence[Target]
    reserved_bytes: float
    there_bytes: float
    """in the folder already"""
    notes: Sequence[str]
    resolved: Resolved

    @property
    def needed_bytes(self) -> float:
        return needed_bytes(self.saves, self.saves.keep_last)

    @property
    def broken(self) -> list[Limit]:
        """Limits that it does not fit into."""
        return [each for each in self.limits if not fits(self.saves, each, self.saves.keep_last)]

    @property
    def most_kept(self) -> int | None:
        return most_saves_kept(self.saves, self.limits)


def look(directory: Path, resolved: Resolved) -> Room:
    """All that can be seen without a privilege."""
    try:
        space = os.statvfs(directory)
    except OSError as error:
        raise InputError(error.strerror or str(error), where=str(directory)) from None
    limits = [
        Limit(
            "free space",
            float(space.f_bavail * space.f_frsize),
            float(space.f_favail) if space.f_files else math.nan,
        ),
        *quotas_of(directory),
    ]
    targets, notes = _targets_of(directory)
    known = [each.free_bytes for each in targets if not math.isnan(each.free_bytes)]
    if known:
        limits.append(Limit("the fullest target", evenly_bytes(known), math.nan))
    reserved = float((space.f_bfree - space.f_bavail) * space.f_frsize)
    there, whole = there_bytes(directory)
    if not whole:
        notes = [*notes, f"Only the first {_MOST_SEEN:,} files of the folder were looked at."]
    return Room(directory, saves_of(resolved), limits, targets, reserved, there, notes, resolved)


def saves_of(resolved: Resolved) -> SavesHeld:
    """What the scenario holds on its first tier."""
    s = resolved.scenario
    c, p = s.checkpoint, s.policy
    full = float(full_bytes(c)) / float(c.compression_ratio)
    if not full > 0:
        raise InputError("the size of a checkpoint is not known", key="checkpoint")
    kept, made = float(p.keep_last), math.inf
    if math.isinf(kept):
        outcome = evaluate(s)
        computable(resolved, outcome)
        kept = made = max(math.ceil(float(outcome.saves)), 1.0)
    writing = round(float(p.in_flight)) if p.mode == "async" else 1
    return SavesHeld(
        full,
        full * float(c.delta_fraction),
        round(float(c.full_every)),
        kept,
        writing,
        float(c.files),
        made,
    )


def there_bytes(directory: Path) -> tuple[float, bool]:
    """Bytes that the folder takes already, and whether all of it was seen; links are not
    followed."""
    total, seen = 0.0, 0
    for folder, _, names in os.walk(directory):
        for name in names:
            seen += 1
            if seen > _MOST_SEEN:
                return total, False
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512.0
            except OSError:
                continue  # taken away meanwhile
    return total, True


def quotas_of(directory: Path) -> list[Limit]:
    """Of the user, the group and the folder's project, where the kernel tells; `lfs quota` and NFS
    know others."""
    device = _device_of(directory)
    if device is None:
        return []
    ids = [("your quota", 0, os.getuid()), ("your group's quota", 1, os.getgid())]
    if project := _project_of(directory):
        ids.append(("the project's quota", 2, project))
    found = []
    for name, kind, who in ids:
        answer = ctypes.create_string_buffer(_QUOTA.size)
        libc = ctypes.CDLL(None, use_errno=True)
        command = ctypes.c_int((_GET_QUOTA << 8 | kind) - (1 << 32 if _GET_QUOTA >= 1 << 23 else 0))
        if libc.quotactl(command, device.encode(), who, answer) == 0:
            limit = quota_limit(name, answer.raw)
            found += [limit] if limit is not None else []
    return found


def quota_limit(name: str, answer: bytes) -> Limit | None:
    """What a quota leaves; the soft limit counts, because past it time runs out. None where there
    is no limit."""
    hard, soft, now, hard_files, soft_files, files, *_ = _QUOTA.unpack(answer)
    kib = min((each for each in (hard, soft) if each), default=0)
    most_files = min((each for each in (hard_files, soft_files) if each), default=0)
    if not kib and not most_files:
        return None
    return Limit(
        name,
        max(kib * KIB - now, 0.0) if kib else math.nan,
        max(most_files - files, 0.0) if most_files else math.nan,
    )


def _device_of(directory: Path) -> str | None:
    """The block device under a folder, by its mount."""
    number = os.stat(directory).st_dev
    wanted = f"{os.major(number)}:{os.minor(number)}"
    try:
        lines = Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    for line in lines:
        before, _, after = line.partition(" - ")
        if before.split()[2] == wanted and after.split()[1].startswith("/"):
            return after.split()[1]
    return None


def _project_of(directory: Path) -> int:
    try:
        opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return int(struct.unpack("=4I12x", fcntl.ioctl(opened, _GET_ATTRIBUTES, bytes(28)))[3])
    except OSError:
        return 0
    finally:
        os.close(opened)


def _targets_of(directory: Path) -> tuple[list[Target], list[str]]:
    lfs = shutil.which("lfs")
    if lfs is None:
        return [], []
    try:
        done = subprocess.run(
            [lfs, "df", str(directory)], capture_output=True, timeout=20, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return [], [f"lfs df did not answer ({type(error).__name__}): targets are not known."]
    return targets_in(done.stdout.decode("utf-8", "replace")), []


def targets_in(text: str) -> list[Target]:
    """The object targets in what `lfs df` prints, in KiB; an inactive one has no free space to tell
    of."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 6 and "[OST:" in words[-1] and words[3].isdigit():
            found.append(Target(words[0].removesuffix("_UUID"), float(words[3]) * KIB))
        elif words and "OST" in words[0] and "inactive" in line:
            found.append(Target(words[0].removesuffix("_UUID"), math.nan))
    return found
