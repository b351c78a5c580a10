"""The saves and loads of one run of a synthetic fleet, by window and node, on the true clock.

Kept small: a save of a node is six bytes (how far from usual it was, how late it began), and times
are made of them when asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.fleet.synthetic.fleet_plan import (
    COPY_BYTES_PER_S,
    DAY_NS,
    S_NS,
    WINDOWS,
    Ints,
    JobPlan,
    RunPlan,
    generator,
)

_DRAWN: Final = 128
"""windows a draw"""
_SCATTER = 32_768
"""of a million: a node's save is up to 3.3 % faster or slower than usual"""
_RAGGED = 0.25
"""of the saves begin without all nodes being together; half of the nodes are late then"""
_LATE_NS = (1_000_000, 300_000_000)
_INIT_NS = 90 * S_NS
_NEAR_NS = 2 * S_NS
"""no save begins as near to midnight as a clock may be off, but those that are put there on
purpose"""
_AT_MIDNIGHT_NS = 400_000
_GASP_NS = 300_000_000
"""from the last save's begin to the end"""


class Windows(NamedTuple):
    """Of a run, in order. `late_ns` and `off` are [node, window]."""

    begin_ns: Ints
    """of the first nodes"""
    step: Ints
    load: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    late_ns: NDArray[np.uint32]
    off: NDArray[np.uint16]
    kept_step: int
    """of the last save that is complete, or what the run was loaded from"""
    kept: int
    """its place; -1: none in this run"""

    @property
    def many(self) -> int:
        return len(self.begin_ns)


def spans(job: JobPlan, load: bool) -> tuple[Ints, Ints]:
    """By node: what it usually stands still for, and what drains after."""
    rate = job.tier.read_bytes_per_s if load else job.tier.bytes_per_s
    moved = job.bytes_ * job.factor_permille  # thousandths of bytes
    through_ns = moved * 1000 // (rate // 1000)
    if load or not job.asynchronous:
        return through_ns, np.zeros_like(through_ns)
    return moved * 1000 // (COPY_BYTES_PER_S // 1000), through_ns


def stalls(job: JobPlan, load: bool, off: NDArray[np.uint16]) -> Ints:
    """[node, window], own ones."""
    usual_ns = spans(job, load)[0]
    fixed_ns = int(job.tier.fixed_s * S_NS) // (4 if job.asynchronous and not load else 1)
    found: Ints = (
        usual_ns[:, None] * (1_000_000 - _SCATTER + off.astype(np.int64)) // 1_000_000 + fixed_ns
    )
    return found


def drains(job: JobPlan, load: bool, off: NDArray[np.uint16]) -> Ints:
    """[node, window]; a synchronous save has none, and a load nothing to drain."""
    drain_ns = spans(job, load)[1]
    if not drain_ns.any():
        return np.zeros(off.shape, np.int64)
    found: Ints = drain_ns[:, None] * (
        1_000_000 + _SCATTER - off.astype(np.int64)
    ) // 1_000_000 + int(job.tier.fixed_s * S_NS)
    return found


def windows_of(seed: int, job: JobPlan, run: RunPlan, kept_step: int) -> Windows:
    """Load what was kept, train, save, train on. A save begins when training has gone its steps
    after the one before had returned."""
    begins: list[int] = []
    steps: list[int] = []
    lates: list[NDArray[np.uint32]] = []
    offs: list[NDArray[np.uint16]] = []
    step, failed, kept, ragged_before = kept_step, False, -1, True
    load = kept_step > 0
    at_ns = run.began_ns + min(_INIT_NS, job.interval_ns // 4) + (0 if load else job.train_ns)
    for column in _columns(seed, job, run):
        begin_ns = _instant_off_midnight(job, run, at_ns, begins[-1] if begins else run.began_ns)
        here = 0 if load and not begins else 1
        advance = job.every * here
        if begin_ns >= run.ended_ns:
            gone_ns = run.ended_ns - _GASP_NS - (at_ns - job.train_ns)
            if not (run.last_gasp and here and gone_ns > 0):
                break
            begin_ns, advance = run.ended_ns - _GASP_NS, max(1, job.every * gone_ns // job.train_ns)
        away_ns = min(begin_ns % DAY_NS, DAY_NS - begin_ns % DAY_NS)
        ragged = column.ragged and not ragged_before and away_ns > job.interval_ns * 3 // 2
        stall_ns, done_ns = (
            (column.late_stall_ns, column.late_done_ns)
            if ragged
            else (column.stall_ns, column.done_ns)
        )
        late = column.late_ns if ragged else np.zeros_like(column.late_ns)
        if begin_ns + done_ns[here] > run.ended_ns:
            if not run.failed:  # what would not be complete by then is not begun
                break
            failed, late = True, np.zeros_like(late)
        begins.append(begin_ns)
        step += advance
        steps.append(step)
        lates.append(late)
        offs.append(column.off)
        ragged_before = ragged
        if failed:
            break
        if here:
            kept_step, kept = step, len(begins) - 1
        at_ns = begin_ns + stall_ns[here] + job.train_ns
    count = len(begins)
    if count:
        lates[-1] = np.zeros_like(
            lates[-1]
        )  # so that most saves of every day of every node begin together
    return Windows(
        begin_ns=np.array(begins, np.int64),
        step=np.array(steps, np.int64),
        load=np.arange(count) < (1 if load else 0),
        failed=np.arange(count) >= (count - 1 if failed else count),
        late_ns=np.stack(lates, axis=1) if count else np.zeros((job.nodes, 0), np.uint32),
        off=np.stack(offs, axis=1) if count else np.zeros((job.nodes, 0), np.uint16),
        kept_step=kept_step,
        kept=kept,
    )


class _Column(NamedTuple):
    """What a window may become; pairs are for a load and for a save: until the last return, until
    all is safe."""

    ragged: bool
    off: NDArray[np.uint16]
    late_ns: NDArray[np.uint32]
    stall_ns: tuple[int, int]
    done_ns: tuple[int, int]
    late_stall_ns: tuple[int, int]
    late_done_ns: tuple[int, int]


def _columns(seed: int, job: JobPlan, run: RunPlan) -> Iterator[_Column]:
    """Without end; a load is the first or there is none."""
    place = 0
    while True:
        chance = generator(seed, WINDOWS, job.place, run.place, place)
        off = chance.integers(0, 2 * _SCATTER, (job.nodes, _DRAWN), np.uint16)
        ragged = chance.random(_DRAWN) < _RAGGED
        if job.nodes == 1:
            ragged[:] = False
        late = chance.integers(*_LATE_NS, (job.nodes, _DRAWN), np.uint32)
        late *= chance.integers(0, 2, (job.nodes, _DRAWN), np.uint32)
        by_kind = []
        for load in (True, False):
            some = slice(0, 1) if load else slice(0, _DRAWN)
            stall, drain = stalls(job, load, off[:, some]), drains(job, load, off[:, some])
            late_stall = stall + late[:, some]
            by_kind.append(
                [
                    (stall.max(axis=0)),
                    (stall + drain).max(axis=0),
                    late_stall.max(axis=0),
                    (late_stall + drain).max(axis=0),
                ]
            )
        lists = [
            (load.tolist() * _DRAWN, save.tolist()) for load, save in zip(*by_kind, strict=True)
        ]
        for i in range(_DRAWN):
            pairs = [(load[i], save[i]) for load, save in lists]
            yield _Column(bool(ragged[i]), off[:, i], late[:, i], *pairs)
        place += 1


def _instant_off_midnight(job: JobPlan, run: RunPlan, at_ns: int, before_ns: int) -> int:
    """Kept away from midnight, but two of three midnights of a long run have a save that some
    clocks put into the day before."""
    midnight_ns = at_ns // DAY_NS * DAY_NS
    far_ns = 6 * job.interval_ns
    trains = before_ns < midnight_ns and at_ns - job.train_ns < midnight_ns - job.train_ns // 4
    crosses = trains and midnight_ns - run.began_ns > far_ns and run.ended_ns - midnight_ns > far_ns
    if crosses and (midnight_ns // DAY_NS + job.place) % 3:
        return midnight_ns + _AT_MIDNIGHT_NS
    since_ns = at_ns % DAY_NS
    return at_ns + 2 * _NEAR_NS if since_ns < _NEAR_NS or since_ns > DAY_NS - _NEAR_NS else at_ns
