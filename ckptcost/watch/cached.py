"""How much of a file the kernel still owes the storage, asked without writing anything back.

cachestat(2) (Linux 6.5) counts a file's dirty pages and those under write-back, for files one owns
or may write to; a container's filter that does not know the call refuses it. Else FIEMAP shows
extents that have no place on the device yet, or whose data is not there: never with
FIEMAP_FLAG_SYNC, which would write the file back itself. FIEMAP is blind to blocks that are written
over in place, so its "nothing" counts only after it was seen to owe something.

Neither sees the drive's own cache or the file system's journal. Both answer for this host's page
cache, so only where that is what stands between a write and the device: not in memory (tmpfs), not
for servers' files, not where a file system keeps a cache of its own (ZFS). Measured on ext4:
cachestat takes 15 us a GiB in large folios and 1.5 ms a GiB in pages of 4 KiB, FIEMAP 2 us a file
of few extents. So huge files are asked in ranges, and not often.

On overlay (the root of every container) cachestat answers 0 whatever is owed; FIEMAP is passed on
to the file below, so there it alone is asked, and "nothing" counts, as ever, only after it was seen
to owe something.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import sys
from typing import Final, NamedTuple

REASONS: Final = {
    "IN_MEMORY": "the file system is memory: nothing is ever safe there",
    "CLOSE_FLUSHES": (
        "NFS: closing a file sends it to the server; this host's cache does not show when the"
        " server has it safe"
    ),
    "ON_SERVER": (
        "the file system is a server's: this host's cache does not show when the server has it safe"
    ),
    "OWN_CACHE": "the file system keeps what is not written yet where nobody can ask",
    "UNKNOWN_FILE_SYSTEM": "it is not known whether this file system's page cache tells the truth",
    "NOT_PERMITTED": "the kernel does not say it to this user",
    "NOT_SUPPORTED": "the kernel has no cachestat (Linux 6.5), and the file system no FIEMAP",
}
"""codes of an unknown"""
REMEDIES: Final = {
    "IN_MEMORY": "save to a disk",
    "CLOSE_FLUSHES": "mark `durable` where the program has called fsync",
    "ON_SERVER": "mark `durable` where the program has called fsync",
    "OWN_CACHE": "mark `durable` where the program has called fsync",
    "UNKNOWN_FILE_SYSTEM": "mark `durable` where the program has called fsync",
    "NOT_PERMITTED": (
        "run as the owner of the files; let the container's seccomp filter pass cachestat"
    ),
    "NOT_SUPPORTED": "Linux 6.5 or newer; or mark `durable` where the program has called fsync",
}
_OVERLAY: Final = 0x794C7630
_TELLING: Final = frozenset(
    {
        0xEF53,
        0x58465342,
        0x9123683E,
        0xF2F52010,
        0xCA451A4E,
        0x3153464A,
        0x3434,
        0x4D44,
        0x2011BAB0,
        0x7366746E,
    }
)
"""ext, XFS, btrfs, F2FS, bcachefs, JFS, NILFS, FAT, exFAT, NTFS3: linux/magic.h and their own
sources"""
_DELAYING: Final = frozenset({0xEF53, 0x58465342, 0x9123683E})
"""of these FIEMAP's flags are known to change only when the data is on the device"""
_SILENT: Final = {
    0x01021994: "IN_MEMORY",
    0x858458F6: "IN_MEMORY",
    0x958458F6: "IN_MEMORY",  # tmpfs, ramfs, hugetlbfs
    0x6969: "CLOSE_FLUSHES",
    0xFF534D42: "ON_SERVER",
    0xFE534D42: "ON_SERVER",
    0x0BD00BD0: "ON_SERVER",
    0x47504653: "ON_SERVER",  # CIFS, SMB, Lustre, GPFS
    0x19830326: "ON_SERVER",
    0x00C36400: "ON_SERVER",
    0x01021997: "ON_SERVER",
    0x5346414F: "ON_SERVER",  # BeeGFS, Ceph, 9p, AFS
    0x2FC12FC1: "OWN_CACHE",  # ZFS
}
_CACHESTAT: Final = 451
"""on every architecture but alpha"""
_FIEMAP: Final = 0xC020660B
_HEAD, _EXTENT, _AT_ONCE = 32, 56, 512
_LAST, _NOT_THERE = 0x1, 0x2 | 0x4 | 0x800
"""FIEMAP_EXTENT_LAST; UNKNOWN, DELALLOC, UNWRITTEN"""
_MOST_BATCHES: Final = 128
_RANGE_BYTES: Final = 1 << 28
"""of a large file, asked at once: 0.4 ms in the worst case"""


class Owed(NamedTuple):
    bytes: int | None
    how: str
    """cachestat or fiemap"""
    why: str = ""
    """code in REASONS, where it is not known"""


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Pages(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")
    )


_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def owed_bytes(fd: int, offset: int = 0, length: int = 0) -> Owed:
    """Of `length` bytes (0: all) of a regular file that is open for reading. Never raises for what
    a kernel may answer."""
    try:
        kind = file_system(fd)
        if kind == _OVERLAY:
            # cachestat looks at overlay's own mapping, which is empty whatever the file below owes
            extents = by_fiemap(fd, offset, length)
            if extents is None:
                return Owed(None, "", "UNKNOWN_FILE_SYSTEM")
            return Owed(extents, "fiemap")
        if kind not in _TELLING:
            return Owed(None, "", _SILENT.get(kind, "UNKNOWN_FILE_SYSTEM"))
        pages, problem = by_cachestat(fd, offset, length)
        if pages is not None:
            return Owed(pages, "cachestat")
        extents = by_fiemap(fd, offset, length) if kind in _DELAYING else None
    except OSError as error:
        return Owed(
            None,
            "",
            "NOT_PERMITTED" if error.errno in (errno.EPERM, errno.EACCES) else "NOT_SUPPORTED",
        )
    if extents is not None:
        return Owed(extents, "fiemap")
    return Owed(None, "", "NOT_PERMITTED" if problem == errno.EPERM else "NOT_SUPPORTED")


def file_system(fd: int) -> int:
    """The magic number that fstatfs gives; 0 where there is no such call."""
    if _libc is None:
        return 0
    buffer = ctypes.create_string_buffer(256)
    if _libc.fstatfs(ctypes.c_int(fd), buffer) != 0:
        raise OSError(ctypes.get_errno(), "fstatfs")
    return ctypes.c_ulong.from_buffer(buffer).value & 0xFFFFFFFF


def by_cachestat(fd: int, offset: int = 0, length: int = 0) -> tuple[int | None, int]:
    """Bytes that are dirty or under write-back; or None and the error: EPERM (another's file, or a
    filter), ENOSYS (an older kernel)."""
    if _libc is None:
        return None, errno.ENOSYS
    where, pages = _Range(offset, length), _Pages()
    call = (
        ctypes.c_long(_CACHESTAT),
        ctypes.c_uint(fd),
        ctypes.byref(where),
        ctypes.byref(pages),
        ctypes.c_uint(0),
    )
    if _libc.syscall(*call) != 0:
        return None, ctypes.get_errno()
    return (int(pages.dirty) + int(pages.writeback)) * _PAGE_BYTES, 0


def by_fiemap(fd: int, offset: int = 0, length: int = 0) -> int | None:
    """Bytes in extents that are not on the device; None where the file system has no FIEMAP. Up to
    the file's end: what a file system sets aside beyond it is not owed."""
    end = os.fstat(fd).st_size
    end = min(end, offset + length) if length else end
    at, found = offset, 0
    buffer = bytearray(_HEAD + _AT_ONCE * _EXTENT)
    for _ in range(_MOST_BATCHES):
        if at >= end:
            break
        struct.pack_into("=QQIIII", buffer, 0, at, end - at, 0, 0, _AT_ONCE, 0)
        try:
            fcntl.ioctl(fd, _FIEMAP, buffer)
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.ENOSYS):
                return None
            raise
        count = struct.unpack_from("=I", buffer, 20)[0]
        if not count:
            break
        for place in range(count):
            logical, extent_bytes, flags = struct.unpack_from(
                "=Q8xQ16xI", buffer, _HEAD + place * _EXTENT
            )
            if flags & _NOT_THERE:
                found += min(logical + extent_bytes, end) - max(logical, offset)
            at = logical + extent_bytes
        if flags & _LAST:
            break
    return found


class NotKnown(Exception):
    """Whether a file is on the storage; with a code of REASONS, or GONE, REPLACED, REWRITTEN."""


class FollowedFile:
    """A file that is followed by its descriptor, whatever becomes of its name."""

    __slots__ = ("at", "fd", "identity", "mtime_ns", "path", "seen_owing", "size_bytes")

    def __init__(self, path: str) -> None:
        self.path = path
        # O_NOATIME would be idle: nothing is read. A pipe must not hold us up
        self.fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        found = os.fstat(self.fd)
        self.mtime_ns, self.identity = found.st_mtime_ns, (found.st_dev, found.st_ino)
        self.size_bytes = found.st_size
        self.at = 0
        self.seen_owing = False

    def check(self, written_wall_ns: int) -> None:
        """That it is still the file that was saved."""
        found = os.fstat(self.fd)
        if found.st_nlink == 0:
            raise NotKnown("REPLACED" if os.path.lexists(self.path) else "GONE")
        if found.st_mtime_ns > max(self.mtime_ns, written_wall_ns):
            raise NotKnown("REWRITTEN")

    def close(self) -> None:
        os.close(self.fd)

    def owes(self) -> Owed:
        """The first range from `at` on that owes something, or nothing. Large files are asked range
        by range, so that a look at one that is far from clean costs little."""
        size_bytes = os.fstat(self.fd).st_size
        while True:
            answer = owed_bytes(self.fd, self.at, _RANGE_BYTES)
            if answer.bytes is None:
                raise NotKnown(answer.why)
            if answer.bytes:
                self.seen_owing = True
                return answer
            if self.at + _RANGE_BYTES >= size_bytes:
                self.at = 0
                return answer
            self.at += _RANGE_BYTES
