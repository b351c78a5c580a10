"""How much of a file the page cache holds, and asking the kernel to let go of it."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os

from ckptcost.first.savers.base import PAGE_BYTES

_CACHESTAT = 451
"""on every architecture but alpha; Linux 6.5"""


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def cached_bytes(fd: int, *, ask: int = _CACHESTAT) -> int | None:
    """Of an open file of our own; None where no kernel call says it."""
    size = os.fstat(fd).st_size
    whole = (ctypes.c_uint64 * 2)(0, 0)  # a length of 0 means to the end
    found = (ctypes.c_uint64 * 5)()
    if _libc().syscall(ctypes.c_long(ask), ctypes.c_uint(fd), whole, found, ctypes.c_uint(0)) == 0:
        return min(int(found[0]) * mmap.PAGESIZE, size)
    return _resident(fd, size)


def _resident(fd: int, size: int) -> int | None:
    """By mincore, for older kernels."""
    if not size:
        return 0
    try:
        with mmap.mmap(fd, size, prot=mmap.PROT_READ | mmap.PROT_WRITE) as mapped:
            pages = -(-size // mmap.PAGESIZE)
            into = (ctypes.c_ubyte * pages)()
            anchor = ctypes.c_char.from_buffer(mapped)
            failed = _libc().mincore(
                ctypes.c_void_p(ctypes.addressof(anchor)), ctypes.c_size_t(size), into
            )
            del anchor
    except (OSError, ValueError, BufferError):
        return None
    return None if failed else min(sum(page & 1 for page in into) * mmap.PAGESIZE, size)


def drop(fd: int) -> None:
    """Clean pages go; those that are dirty, mapped or of a file system in memory stay."""
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def reserve(fd: int, size_bytes: int) -> bool:
    """fallocate, and never its imitation by writing; False where the file system has none."""
    if _libc().fallocate(fd, 0, ctypes.c_int64(0), ctypes.c_int64(size_bytes)) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
        return False
    raise OSError(number, os.strerror(number))


def pad(size_bytes: int) -> int:
    """
    >>> pad(0), pad(1), pad(4096)
    (0, 4096, 4096)
    """
    return -(-size_bytes // PAGE_BYTES) * PAGE_BYTES
