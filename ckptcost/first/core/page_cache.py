"""The honeymoon: the first saves fit into the kernel's page cache, later ones wait for the device.

Linux lets written bytes lie in memory until a share of it is dirty (vm.dirty_ratio), and then holds
the writer up to the pace of the device. A job whose saves come faster than the device takes them
fills that share save by save: the first stall for a copy into memory, the later ones for the
device. Whoever measures three saves knows nothing of the tenth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import ceil, comb, inf
from statistics import median
from typing import NamedTuple

SLOWER = 1.3
"""the quickest of the later saves takes so many times as long as the slowest before, or there was
no change to speak of"""
CHANCE = 0.05
"""all later saves being slower than all before them comes about by chance less often than this"""


class SlowerSaves(NamedTuple):
    """From one save on, all took longer than every one before."""

    first: int
    """place of the first of the slow ones, from 0"""
    before_s: float
    after_s: float
    """medians"""


def slower_from(seconds: Sequence[float]) -> SlowerSaves | None:
    """Where a sequence of saves changes for the worse, if it does for good: at its widest step up.

    Of n saves in any order, the k slowest stand last in one of C(n, k) orders: fewer than 6 saves
    prove nothing.

    >>> slower_from([16.2, 16.6, 17.0, 16.4, 28.6, 56.0, 56.3, 55.9])
    SlowerSaves(first=5, before_s=16.6, after_s=56.0)
    >>> slower_from([16.2, 28.0, 16.4, 29.0, 16.5, 27.0, 28.0]) is slower_from(
    ...     [1.0, 2.0, 2.0]
    ... ) is None
    True
    """
    slowest_before = list(accumulate(seconds, max))
    quickest_after = list(accumulate(reversed(seconds), min))[::-1]
    best, step = 0, SLOWER
    for first in range(1, len(seconds)):
        before_s, after_s = slowest_before[first - 1], quickest_after[first]
        if after_s > step * before_s and comb(len(seconds), first) >= 1.0 / CHANCE:
            best, step = first, after_s / before_s
    return SlowerSaves(best, median(seconds[:best]), median(seconds[best:])) if best else None


def saves_until_full(
    size_bytes: float, every_s: float, device_bytes_per_s: float, limit_bytes: float
) -> float:
    """Which save is the first that waits for the device: 1 where a single one is over the limit,
    infinity where none is.

    Between two saves the device takes what it can; what it cannot stays. (That the kernel begins at
    a lower share, or only after half a minute, makes it sooner, never later.)

    >>> saves_until_full(size_bytes=2e9, every_s=10.0, device_bytes_per_s=1e8, limit_bytes=8e9)
    8.0
    >>> saves_until_full(2e9, 30.0, 1e8, 8e9), saves_until_full(9e9, 3600.0, 1e8, 8e9)
    (inf, 1.0)
    """
    if size_bytes > limit_bytes:
        return 1.0
    stays_bytes = size_bytes - device_bytes_per_s * every_s
    if stays_bytes <= 0:
        return inf
    # save n begins with (n - 1) leftovers, and waits when they and itself are over the limit
    return 1.0 + float(ceil((limit_bytes - size_bytes) / stays_bytes + 1e-12))


def dirty_limit_bytes(vm: Mapping[str, float], available_bytes: float) -> float:
    """Dirty bytes at which a writer is held up: half way between the background threshold and the
    limit.

    `vm` as in /proc/sys/vm; a number of bytes, where one is set, stands for the share of available
    memory.

    >>> dirty_limit_bytes({"dirty_ratio": 20, "dirty_background_ratio": 10}, 40e9)
    6000000000.0
    >>> dirty_limit_bytes(
    ...     {"dirty_ratio": 20, "dirty_bytes": 1e9, "dirty_background_bytes": 5e8}, 40e9
    ... )
    750000000.0
    """

    def threshold(name: str) -> float:
        return (
            vm.get(f"{name}_bytes", 0.0) or vm.get(f"{name}_ratio", 0.0) / 100.0 * available_bytes
        )

    limit = threshold("dirty")
    background = min(threshold("dirty_background"), limit)
    return (limit + (background if background < limit else limit / 2.0)) / 2.0
