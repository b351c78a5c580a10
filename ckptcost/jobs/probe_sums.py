"""A probe's passes added up: by kind and size, and the fixed time that both sizes share. Bytes over
seconds, never a mean of rates."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from statistics import fmean, stdev
from typing import NamedTuple

from ckptcost.core.fit import TimeFit, fit_times
from ckptcost.core.reconcile import Energy, times, total, unknown
from ckptcost.jobs.probe import Probed, Round

GB = 1e9
TOLD_S = 0.5
"""in a shorter pass the disk's counter is read too seldom to tell its own bytes from a
neighbour's"""


class Sum(NamedTuple):
    """All passes of one kind and size together. NaN is not known."""

    of: str
    size_bytes: float
    rounds: int
    files: float
    rate_bytes_per_s: float
    slowest_bytes_per_s: float
    quickest_bytes_per_s: float
    mean_s: float
    spread: float
    """standard deviation of the durations over their mean"""
    returned_s: float
    """until the last write returned, in the mean"""
    device_over_file: float
    """bytes that the disk took over bytes of the files; NaN with several disks, and in passes that
    are short"""
    per_gb: Energy
    """joules of all metered parts of the node for 1e9 bytes, begin to safe"""


def seconds_of(one: Round) -> float:
    """To durable; of a load, to the last byte."""
    if one.io is not None:
        return one.io.duration_s
    return nan if one.window is None or one.window.length_s is None else one.window.length_s


def joules_of(p: Probed, one: Round) -> Energy:
    """Of all metered parts, from begin until safe."""
    return (
        unknown("NOT_MARKED")
        if one.window is None
        else p.measured.of_window(one.window.name).absolute
    )


def sums(p: Probed) -> list[Sum]:
    """Saves before loads, as large as asked for before the small ones."""
    kinds = dict.fromkeys(
        (one.of, one.size_bytes) for of in ("save", "load") for one in p.rounds if one.of == of
    )
    return [
        _sum(p, [one for one in p.rounds if (one.of, one.size_bytes) == kind]) for kind in kinds
    ]


def _sum(p: Probed, mine: Sequence[Round]) -> Sum:
    of, size_bytes = mine[0].of, mine[0].size_bytes
    seconds = [s for s in map(seconds_of, mine) if s == s and s > 0]
    known = len(seconds) > 0
    mean_s = fmean(seconds) if known else nan
    returned = [(one.io.returned_ns - one.io.begin_ns) * 1e-9 for one in mine if one.io is not None]
    return Sum(
        of,
        size_bytes,
        len(mine),
        mine[0].files,
        size_bytes * len(seconds) / sum(seconds) if known else nan,
        size_bytes / max(seconds) if known else nan,
        size_bytes / min(seconds) if known else nan,
        mean_s,
        stdev(seconds) / mean_s if len(seconds) > 1 else nan,
        fmean(returned) if returned else nan,
        _device_over_file(p, mine),
        times(total(joules_of(p, one) for one in mine), GB / (size_bytes * len(mine))),
    )


def _device_over_file(p: Probed, mine: Sequence[Round]) -> float:
    disks = {stored.disk for stored in p.measured.stored}
    names = {one.window.name for one in mine if one.window is not None}
    if any(one.window is None or (one.window.length_s or 0.0) < TOLD_S for one in mine):
        return nan
    taken = [stored.queue for stored in p.measured.stored if stored.window in names]
    if len(disks) != 1 or len(taken) != len(mine):
        return nan
    moved = sum(
        queue.written_bytes if mine[0].of == "save" else queue.read_bytes for queue in taken
    )
    return moved / sum(one.size_bytes for one in mine)


def fixed(p: Probed, of: str = "save") -> TimeFit:
    """Rate and fixed time of a save, from all sizes."""
    mine = [(one.size_bytes, seconds_of(one)) for one in p.rounds if one.of == of]
    known = [
        (size_bytes, seconds) for size_bytes, seconds in mine if seconds == seconds and seconds > 0
    ]
    return fit_times([size_bytes for size_bytes, _ in known], [seconds for _, seconds in known])
