"""What a synthetic fleet is: which jobs hold which nodes, how fast their tiers are, when runs fail,
whose clock is off and who is slow.

Everything is an integer (nanoseconds, bytes, milliwatts) drawn from a generator that belongs to its
place, so the same seed gives the same fleet on every machine and in any order. Logarithms, which
libraries round differently, are rounded to milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from math import log
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.units import DAY_S

Ints = NDArray[np.int64]
S_NS: Final = 1_000_000_000
DAY_NS: Final = int(DAY_S) * S_NS
GPUS: Final = 8
"""of a node"""
JOB, NODES, RUN, WINDOWS = range(4)
"""what a generator is for: no two purposes share one"""
TEAMS: Final = ("pretraining", "applied", "research")
MODELS: Final = ("llama31-405b", "mixtral-8x22b", "llama31-8b")
CLUSTERS: Final = ("north", "south")
CRASH, NODE, CUT, ENDED, OPEN = "crash", "node", "cut", "ended", "open"
"""how a run ends: its command fails; one node dies and the others' commands are killed; all
recorders are cut; in order; not yet"""
COPY_BYTES_PER_S: Final = 40_000_000_000
"""of an asynchronous save: what the training stands still for"""
_CLEAR_NS = 5 * S_NS
"""no run begins or ends as near to midnight as a clock may be off"""


class SyntheticTier(NamedTuple):
    """What one node gets of it. A save takes bytes / rate + fixed, a load bytes / read rate +
    fixed."""

    name: str
    bytes_per_s: int
    read_bytes_per_s: int
    fixed_s: float
    j_per_byte: float


TIERS: Final = (
    SyntheticTier("generic-pfs", 3_000_000_000, 6_000_000_000, 1.5, 1.2e-8),
    SyntheticTier("local-nvme", 12_000_000_000, 24_000_000_000, 0.5, 0.4e-8),
    SyntheticTier("object-store", 1_000_000_000, 2_000_000_000, 2.0, 2.5e-8),
)


class RunPlan(NamedTuple):
    """On the true clock."""

    place: int
    run: str
    began_ns: int
    ended_ns: int
    how: str
    culprit: int
    """place of the node that died; -1: none did"""
    last_gasp: bool
    """the command tries to save while it fails"""
    clock_ns: Ints
    """by node: what its clock shows beyond the true time"""

    @property
    def failed(self) -> bool:
        return self.how in {CRASH, NODE, CUT}


@dataclass(frozen=True, slots=True, eq=False)
class JobPlan:
    place: int
    slot: int
    """which nodes it has; a job that ends is followed by another on the same"""
    job: str
    team: str
    cluster: str
    model: str
    tier: SyntheticTier
    asynchronous: bool
    hosts: tuple[str, ...]
    node_names: str
    began_ns: int
    until_ns: int
    ends: bool
    """in order, within the time"""
    interval_ns: int
    every: int
    """training steps between saves"""
    train_ns: int
    """what they take"""
    bytes_: Ints
    factor_permille: Ints
    """how much slower than the tier a node is: 1000 is as fast"""
    stall_mw: Ints
    train_mw: Ints
    host_stall_mw: Ints
    host_train_mw: Ints
    slow_mw: Ints
    storage_known: bool
    host_bounded: bool
    """the host's joules have a high end"""
    runs: tuple[RunPlan, ...]

    @property
    def nodes(self) -> int:
        return len(self.hosts)


@dataclass(frozen=True, slots=True, eq=False)
class FleetPlan:
    seed: int
    nodes: int
    days: int
    start: str
    saves_per_day: float
    failures_per_node_day: float
    start_ns: int
    jobs: tuple[JobPlan, ...]

    def day(self, place: int) -> str:
        """The fleet's first day has place 0."""
        return (date.fromisoformat(self.start) + timedelta(days=place)).isoformat()


def generator(seed: int, purpose: int, *place: int) -> np.random.Generator:
    """Of its own for every place."""
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(purpose, *place)))
    )


def usual_rate(nodes: int, days: int) -> float:
    """Failures per node-day so that about six happen. A real fleet of 16,384 GPUs had 0.0038, which
    would leave a small one without any."""
    return min(6.0 / (nodes * days), 1.0)


def plan_of(
    nodes: int, days: int, seed: int, saves_per_day: float, start: str, failures_per_node_day: float
) -> FleetPlan:
    """Half of the nodes are one job's, half of the rest another's, and so on down to single
    nodes."""
    start_ns = (date.fromisoformat(start) - date(1970, 1, 1)).days * DAY_NS
    end_ns = start_ns + days * DAY_NS
    jobs: list[JobPlan] = []
    first, slot = [0] * len(CLUSTERS), 0
    left = nodes
    while left:
        size = max(1, left // 2)
        cluster = slot % len(CLUSTERS)
        names = [f"{CLUSTERS[cluster]}{first[cluster] + place + 1:05d}" for place in range(size)]
        chance = generator(seed, JOB, slot)
        # the largest begins in the morning, so that a clock that is hours behind still says the
        # same day
        began_ns = start_ns + int(chance.integers(1800, 3600) * (1 if slot else 6)) * S_NS
        read_ns = (
            end_ns - _CLEAR_NS
        )  # what is still going was last heard of then, by any clock on the last day
        spans = [(began_ns, read_ns, False)]
        if chance.integers(2) and slot:
            turn_ns = began_ns + (end_ns - began_ns) * int(chance.integers(300, 700)) // 1000
            spans = [
                (began_ns, _clear(turn_ns), True),
                (_clear(turn_ns + int(chance.integers(1200, 3600)) * S_NS), read_ns, False),
            ]
        for span in spans:
            jobs.append(
                _job(
                    len(jobs),
                    slot,
                    cluster,
                    names,
                    span,
                    seed,
                    saves_per_day,
                    failures_per_node_day,
                )
            )
        first[cluster] += size
        left -= size
        slot += 1
    return FleetPlan(
        seed, nodes, days, start, saves_per_day, failures_per_node_day, start_ns, tuple(jobs)
    )


def _job(
    place: int,
    slot: int,
    cluster: int,
    hosts: list[str],
    span: tuple[int, int, bool],
    seed: int,
    a_day: float,
    rate: float,
) -> JobPlan:
    chance, count = generator(seed, NODES, place), len(hosts)
    model, team, tier = MODELS[place // 2 % 3], TEAMS[place % 3], TIERS[(place + place // 3) % 3]
    interval_ns = int(
        DAY_NS / a_day * (1000 if not slot else int(chance.integers(850, 1150))) / 1000
    )
    # a straggler takes up to 1.8 times as long as the others, and both must leave most of the
    # interval to training
    write_ns = min(int(chance.integers(8_000, 30_000)) * 1_000_000, interval_ns // 5)
    usual_bytes = max(tier.bytes_per_s * write_ns // S_NS, 1_000_000)
    factors = np.full(count, 1000, np.int64)
    if count >= 4:
        slow = chance.permutation(count)[: 1 + count // 256]
        factors[slow] = chance.choice([1200, 1400, 1800], len(slow))
    bytes_ = usual_bytes + chance.integers(0, usual_bytes // 200, count)
    asynchronous = place % 4 == 2
    stands_ns = int(
        (bytes_ * factors).max() * 1e6 / (COPY_BYTES_PER_S if asynchronous else tier.bytes_per_s)
        + tier.fixed_s * S_NS
    )
    train_ns = max(interval_ns - stands_ns, interval_ns // 4)
    every = max(1, train_ns // int(chance.integers(4_000, 9_000)) // 1_000_000)
    return JobPlan(
        place=place,
        slot=slot,
        job=f"{team}/{model}-{place + 1:02d}",
        team=team,
        cluster=CLUSTERS[cluster],
        model=model,
        tier=tier,
        asynchronous=asynchronous,
        hosts=tuple(hosts),
        node_names=_range(hosts),
        began_ns=span[0],
        until_ns=span[1],
        ends=span[2],
        interval_ns=interval_ns,
        every=every,
        train_ns=train_ns,
        bytes_=bytes_,
        factor_permille=factors,
        stall_mw=_about(chance, 2_456_000, count),
        train_mw=_about(chance, 5_016_000, count),
        host_stall_mw=_about(chance, 1_400_000, count),
        host_train_mw=_about(chance, 1_900_000, count),
        slow_mw=_about(chance, 120_000, count),
        storage_known=place % 3 != 1,
        host_bounded=place % 4 != 3,
        runs=tuple(_runs(place, count, span, seed, rate)),
    )


def _runs(
    job: int, nodes: int, span: tuple[int, int, bool], seed: int, rate: float
) -> Iterator[RunPlan]:
    """One after another until the time is over: failures come at a constant rate while a run
    lasts."""
    began_ns, until_ns, ends = span
    place = 0
    while began_ns < until_ns:
        chance = generator(seed, RUN, job, place)
        lasts_ms = DAY_NS
        if rate > 0.0:
            lasts_ms = int(-log(1.0 - chance.random()) / (rate * nodes) * DAY_S * 1000)
        down_s, kind, culprit = (
            int(chance.integers(*of)) for of in ((300, 1200), (100,), (nodes,))
        )
        fails_ns = (
            _clear(began_ns + max(lasts_ms, 2000) * 1_000_000) if lasts_ms < 1e11 else until_ns
        )
        failed = fails_ns < until_ns
        how = _failure(kind) if failed else ENDED if ends else OPEN
        # about normal with 2 ms; one clock in fifty is half a second off
        clock_ns = chance.integers(-1_000_000, 1_000_000, (12, nodes)).sum(axis=0)
        clock_ns += np.where(
            chance.integers(50, size=nodes) == 0, chance.choice([-1, 1], nodes) * 500_000_000, 0
        )
        ended_ns = min(fails_ns, until_ns)
        yield RunPlan(
            place,
            _identity(seed, job, place),
            began_ns,
            ended_ns,
            how,
            culprit if how == NODE else -1,
            failed and kind % 3 == 0,
            clock_ns,
        )
        began_ns = _clear(ended_ns + down_s * S_NS) if failed else until_ns
        place += 1


def _failure(kind: int) -> str:
    """`kind`: of a hundred."""
    return CRASH if kind < 55 else NODE if kind < 85 else CUT


def _identity(seed: int, job: int, run: int) -> str:
    from hashlib import blake2b

    return blake2b(f"{seed}/{job}/{run}".encode(), digest_size=16).hexdigest()


def _about(chance: Any, usual: int, count: int) -> Ints:
    """Node-to-node scatter of a few per cent."""
    found: Ints = usual + chance.integers(-usual // 60, usual // 60, (3, count)).sum(axis=0)
    return found


def _clear(at_ns: int) -> int:
    """The instant, moved away from midnight."""
    since_ns = at_ns % DAY_NS
    return at_ns + 2 * _CLEAR_NS if since_ns < _CLEAR_NS or since_ns > DAY_NS - _CLEAR_NS else at_ns


def _range(hosts: list[str]) -> str:
    """As a launcher writes neighbours."""
    if len(hosts) == 1:
        return hosts[0]
    return f"{hosts[0][:-5]}[{hosts[0][-5:]}-{hosts[-1][-5:]}]"


# The saves and loads of one run of a synthetic fleet, by window and node, on the true clock.


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
    at_ns = run.began_ns + min(_INIT_NS, job.interval_ns // 4) + job.train_ns * (not load)
    before_ns = run.began_ns
    for column in _columns(seed, job, run):
        here = int(bool(begins) or not load)
        begin_ns, advance = _next_begin(job, run, at_ns, before_ns, here)
        if begin_ns >= run.ended_ns:
            break
        before_ns = begin_ns
        away_ns = min(begin_ns % DAY_NS, DAY_NS - begin_ns % DAY_NS)
        ragged = column.ragged and not ragged_before and away_ns > job.interval_ns * 3 // 2
        stall_ns, done_ns, late = column.times(ragged)
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
    late_ns = np.array(lates, np.uint32).reshape(count, job.nodes).T
    late_ns[:, -1:] = 0  # so that most saves of every day of every node begin together
    return Windows(
        begin_ns=np.array(begins, np.int64),
        step=np.array(steps, np.int64),
        load=np.arange(count) < int(load),
        failed=np.arange(count) >= count - int(failed),
        late_ns=np.ascontiguousarray(late_ns),
        off=np.ascontiguousarray(np.array(offs, np.uint16).reshape(count, job.nodes).T),
        kept_step=kept_step,
        kept=kept,
    )


def _next_begin(
    job: JobPlan, run: RunPlan, at_ns: int, before_ns: int, here: int
) -> tuple[int, int]:
    """Of the window that is due at `at_ns`, and its training steps; at the end of the run or later
    where it has no more."""
    begin_ns = _instant_off_midnight(job, run, at_ns, before_ns)
    gone_ns = run.ended_ns - _GASP_NS - (at_ns - job.train_ns)
    if begin_ns >= run.ended_ns and run.last_gasp and here and gone_ns > 0:
        return run.ended_ns - _GASP_NS, max(1, job.every * gone_ns // job.train_ns)
    return begin_ns, job.every * here


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

    def times(self, ragged: bool) -> tuple[tuple[int, int], tuple[int, int], NDArray[np.uint32]]:
        """Until the last return, until all is safe, and how late each node is."""
        if ragged:
            return self.late_stall_ns, self.late_done_ns, self.late_ns
        return self.stall_ns, self.done_ns, np.zeros_like(self.late_ns)


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
