"""Memory for requests: aligned to pages as direct I/O wants it, and there before anything is
timed."""

from __future__ import annotations

import contextlib
import mmap
import os

import numpy as np

from ckptcost.errors import InputError
from ckptcost.savers.base import PAGE_BYTES
from ckptcost.savers.content import Bytes


def buffers(block_bytes: int, count: int) -> list[Bytes]:
    """So many blocks. They are touched here: the first touch of 64 MiB takes as long as writing a
    tenth of a gigabyte. Huge pages where there are some: the kernel has fewer of them to pin for a
    request."""
    size = block_bytes * count
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if size > memory // 2:
        raise InputError(
            f"{count} buffers of {block_bytes} bytes are more than half of the memory",
            remedy="give fewer or smaller requests",
        )
    try:
        arena = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise InputError(
            f"no memory for {count} buffers of {block_bytes} bytes",
            remedy="give fewer or smaller requests",
        ) from error
    with contextlib.suppress(OSError, AttributeError):  # a kernel, or a Python, without
        arena.madvise(mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(arena, np.uint8)
    whole[::PAGE_BYTES] = 1
    return [whole[at : at + block_bytes] for at in range(0, size, block_bytes)]
