"""Random numbers without a generator: each is a hash of (seed, stream, run, event), SplitMix64.

A run's numbers depend on its own number alone, so results are the same whatever the chunking, the
workers or the numpy release.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]

_STEP = 0x9E3779B97F4A7C15
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_MASK = 0xFFFFFFFFFFFFFFFF
GAPS, KINDS, INPUTS, OFFSETS, NODES = range(1, 6)
"""what a stream is for: no two purposes share a number"""


def mix(keys: Keys) -> Keys:
    """SplitMix64's finaliser: neighbours become strangers. Wraps around, as it should."""
    with np.errstate(over="ignore"):
        keys = (keys ^ (keys >> np.uint64(30))) * _FIRST
        keys = (keys ^ (keys >> np.uint64(27))) * _SECOND
        return keys ^ (keys >> np.uint64(31))


def keys_of(seed: int, stream: int, runs: NDArray[np.int64]) -> Keys:
    """One key a run and purpose."""
    with np.errstate(over="ignore"):
        # mixed twice: once, and with seed 1 the start of stream n were the place of run n, which
        # the streams then shared
        start = mix(mix(np.array([(seed * _STEP + stream) & _MASK], dtype=np.uint64)))
        return mix(start + mix(runs.astype(np.uint64) + np.uint64(_STEP)))


def uniforms(keys: Keys, event: int) -> NDArray[np.float64]:
    """Each run's number for its event: strictly between 0 and 1.

    >>> three, nine = keys_of(1, GAPS, np.arange(3)), keys_of(1, GAPS, np.arange(9))
    >>> uniforms(three, event=7).tolist() == uniforms(nine, event=7)[:3].tolist()
    True
    """
    with np.errstate(over="ignore"):
        x = keys + np.uint64(((event + 1) * _STEP) & _MASK)
        x ^= x >> np.uint64(30)
        x *= _FIRST
        x ^= x >> np.uint64(27)
        x *= _SECOND
        x ^= x >> np.uint64(31)
    x >>= np.uint64(11)
    share = x.astype(np.float64)
    share += 0.5
    share *= 2.0**-53
    return share
