"""What a directory lies on, whether inotify can see there who writes, and when a file was born.

inotify(7): "Inotify reports only events that a user-space program triggers through the filesystem
API. As a result, it does not catch remote events that occur on network filesystems." Where other
nodes or a host may write, the directory is polled, and only polled: what local processes write
there does make events, so both together would tell it twice.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.meters.mounts import mount_of

REMOTE = frozenset(
    (
        "nfs",
        "nfs4",
        "lustre",
        "gpfs",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "virtiofs",
        "beegfs",
        "ceph",
        "afs",
        "wekafs",
        "wekafsgw",
        "panfs",
        "pvfs2",
        "orangefs",
        "glusterfs",
        "ocfs2",
        "gfs2",
        "daos",
        "coda",
        "vboxsf",
        "prl_fs",
        "acfs",
        "quobyte",
        "mmfs",
    )
)
"""fuse.* too; not fuseblk, which is a drive of this machine"""
IN_MEMORY = frozenset(("tmpfs", "ramfs", "devtmpfs", "hugetlbfs"))
_BY_MAGIC = {
    0x6969: "nfs",
    0x0BD00BD0: "lustre",
    0x47504653: "gpfs",
    0xFF534D42: "cifs",
    0xFE534D42: "smb3",
    0x01021997: "9p",
    0x19830326: "beegfs",
    0x00C36400: "ceph",
    0x5346414F: "afs",
    0x65735546: "fuse",
    0x01021994: "tmpfs",
    0x858458F6: "ramfs",
    0xEF53: "ext4",
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0x794C7630: "overlay",
    0x2FC12FC1: "zfs",
}
"""statfs(2), for where mountinfo cannot be read"""
_LONGEST_AGO_NS = 120_000_000_000
"""a birth before that is not what was found now"""
_ROUNDED_NS = 1_000_000_000
"""how far a server's clock may be ahead of ours"""


class Mounted(NamedTuple):
    fs_type: str
    """as mountinfo says it; empty if unknown"""
    blind: bool
    """others may write here unseen: poll"""
    why: str
    """of `blind`, for people; empty otherwise"""
    in_memory: bool = False
    """nothing written here is ever durable"""


def kind_of(path: Path, procfs: Path = Path("/proc")) -> Mounted:
    """What `path`, or the nearest directory above it that exists, lies on."""
    mount = mount_of(path, procfs)
    fs_type = mount.fstype if mount is not None else _by_statfs(os.path.realpath(path))
    blind = fs_type in REMOTE or fs_type == "fuse" or fs_type.startswith("fuse.")
    why = (
        f"polled: inotify on {fs_type} does not see what other nodes write, and with both, local"
        " writers were told twice"
        if blind
        else ""
    )
    return Mounted(fs_type, blind, why, fs_type in IN_MEMORY)


def _by_statfs(path: str) -> str:
    while not os.path.exists(path):
        path = os.path.dirname(path)
    buffer = ctypes.create_string_buffer(256)
    if ctypes.CDLL(None, use_errno=True).statfs(os.fsencode(path), buffer) != 0:
        return ""
    magic = (
        ctypes.c_long.from_buffer(buffer).value & 0xFFFFFFFF
    )  # the first word on every 64-bit Linux
    return _BY_MAGIC.get(magic, f"type {magic:#x}")


_STATX_BTIME, _AT_FDCWD, _AT_SYMLINK_NOFOLLOW = 0x800, -100, 0x100
_BTIME_AT = 80
"""struct statx, statx(2): mask u32 ... stx_btime (s64 seconds, u32 nanoseconds) at byte 80"""


@functools.cache
def _statx() -> Callable[..., Any] | None:
    return getattr(ctypes.CDLL(None, use_errno=True), "statx", None)


def birth_ns(path: bytes) -> int | None:
    """Wall time at which a file was made; None where the file system, the kernel or the C library
    does not say."""
    call = _statx()
    if call is None:
        return None
    buffer = ctypes.create_string_buffer(256)
    if call(_AT_FDCWD, path, _AT_SYMLINK_NOFOLLOW, _STATX_BTIME, buffer) != 0:
        return None
    if not struct.unpack_from("I", buffer, 0)[0] & _STATX_BTIME:
        return None
    seconds, nanoseconds = struct.unpack_from("qI", buffer, _BTIME_AT)
    return int(seconds) * 1_000_000_000 + int(nanoseconds)


def monotonic_ns(wall_ns: int | None, now_ns: int) -> int | None:
    """An instant that a file system noted, on our clock; None if it is too long ago or ahead to be
    about what is found at `now_ns`."""
    if wall_ns is None:
        return None
    at_ns = wall_ns - time.time_ns() + time.monotonic_ns()
    return min(at_ns, now_ns) if now_ns - _LONGEST_AGO_NS <= at_ns <= now_ns + _ROUNDED_NS else None


def born_ns(path: bytes, now_ns: int) -> int | None:
    """Monotonic time of a file's birth, where that is known and lately."""
    return monotonic_ns(birth_ns(path), now_ns)
