"""What goes wrong in a synthetic fleet on purpose: which files are damaged, whose clock is wrong,
which nodes say nothing."""

from __future__ import annotations

import struct
from binascii import crc32
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ckptcost.first.fleet.synthetic.fleet_plan import (
    DAY_NS,
    S_NS,
    FleetPlan,
    Ints,
    JobPlan,
    RunPlan,
    generator,
)

CORRUPT, TRUNCATED, FUTURE, DUPLICATE, UNSTEADY, SKEWED = (
    "CORRUPT",
    "TRUNCATED",
    "FUTURE",
    "DUPLICATE",
    "UNSTEADY",
    "SKEWED",
)
FAULTS: Final = 4
"""what its generators are for; the fleet's own have smaller numbers"""
NO_FILE, NOT_OURS, STRAY = "NO_FILE", "NOT_OURS", "STRAY"
LEAST_NODES: Final = 16
"""fewer, and wrong clocks could be the majority"""
LEAST_DAYS: Final = 2
_BEHIND_S: Final = (10_800, 7200, 1500)
"""how far a wrong clock is behind: as far as the day that the job began on allows"""
_SWAY_NS: Final = 20 * S_NS

Key = tuple[int, int, int]
"""places of job, run and node"""


@dataclass(frozen=True, slots=True)
class Planted:
    skews_ns: Mapping[Key, int] = field(default_factory=dict)
    files: Mapping[tuple[Key, int], str] = field(default_factory=dict)
    """by key and place of the day, the code"""
    never: frozenset[tuple[int, int]] = frozenset()
    """job and node without any file"""
    not_on: frozenset[tuple[int, int, int]] = frozenset()
    """job, node and day without one"""
    beside: int = -1
    """job among whose files somebody else's are"""

    def missing(self, job: int, node: int, day: int) -> bool:
        return (job, node) in self.never or (job, node, day) in self.not_on

    def code(self, key: Key, day: int) -> str:
        """Why the file is set aside, or "" where it counts. A skewed clock's file needs a row to be
        seen; that is the caller's to know."""
        return SKEWED if key in self.skews_ns else self.files.get((key, day), "")


def planted_in(plan: FleetPlan) -> Planted:
    """Each on a node of its own; most nodes of every job stay sound."""
    chance = generator(plan.seed, FAULTS)
    by_slot: dict[int, list[JobPlan]] = {}
    for job in plan.jobs:
        by_slot.setdefault(job.slot, []).append(job)
    # of jobs that follow each other on the same nodes, the one that is there longer
    first, second, third = (
        max(by_slot[slot], key=lambda job: job.until_ns - job.began_ns) for slot in range(3)
    )
    nodes = {
        job.place: iter(chance.permutation(job.nodes).tolist()) for job in (first, second, third)
    }
    files: dict[tuple[Key, int], str] = {}
    for job, code in (
        (first, CORRUPT),
        (first, UNSTEADY),
        (second, TRUNCATED),
        (second, DUPLICATE),
        (third, FUTURE),
    ):
        run, day = _longest(plan, job, chance)
        if code != UNSTEADY or _overlap_ns(plan, run, day) > 8 * job.interval_ns:
            files[(job.place, run.place, next(nodes[job.place])), day] = code
    skews_ns: dict[Key, int] = {}
    for job in (first, second):
        behind_ns = next(
            (each * S_NS for each in _BEHIND_S if each * S_NS < job.began_ns % DAY_NS), 0
        )
        # the first run: nothing was there before that it could seem to be at the same time with
        if behind_ns and not skews_ns and job.runs[0].ended_ns - job.began_ns > 4 * job.interval_ns:
            skews_ns[job.place, 0, next(nodes[job.place])] = -behind_ns
    _, day = _longest(plan, second, chance)
    return Planted(
        skews_ns=skews_ns,
        files=files,
        never=frozenset({(first.place, next(nodes[first.place]))}),
        not_on=frozenset({(second.place, next(nodes[second.place]), day)}),
        beside=third.place,
    )


def _longest(plan: FleetPlan, job: JobPlan, chance: Any) -> tuple[RunPlan, int]:
    """A day, and the run that has most of it."""
    days = [
        day
        for day in range(plan.days)
        if any(_overlap_ns(plan, run, day) > DAY_NS // 8 for run in job.runs)
    ]
    day = int(chance.choice(days or [(job.began_ns - plan.start_ns) // DAY_NS]))
    return max(job.runs, key=lambda run: _overlap_ns(plan, run, day)), day


def _overlap_ns(plan: FleetPlan, run: RunPlan, day: int) -> int:
    begin_ns = plan.start_ns + day * DAY_NS
    return min(run.ended_ns, begin_ns + DAY_NS) - max(run.began_ns, begin_ns)


def clocks_of(job: JobPlan, run: RunPlan, planted: Planted) -> Ints:
    """With those that are wrong on purpose."""
    found = run.clock_ns.copy()
    for (of_job, of_run, node), skew_ns in planted.skews_ns.items():
        if (of_job, of_run) == (job.place, run.place):
            found[node] += skew_ns
    return found


def swaying(seed: int, key: Key, job: JobPlan, begin_ns: Ints) -> Ints:
    """Begins by a clock that is being set all the time, in the same order and on the same day."""
    most_ns = min(_SWAY_NS, job.interval_ns // 4)
    swayed = begin_ns + generator(seed, FAULTS, *key).integers(-most_ns, most_ns, len(begin_ns))
    midnight_ns = begin_ns // DAY_NS * DAY_NS
    found: Ints = np.clip(swayed, midnight_ns, midnight_ns + DAY_NS - 1)
    return found


def damaged(data: bytes, code: str) -> bytes:
    """The file as it is found."""
    return _DAMAGE[code](data) if code in _DAMAGE else data


def _corrupt(data: bytes) -> bytes:
    middle = len(data) // 3
    return (
        data[:middle]
        + bytes(byte ^ 0x5A for byte in data[middle : middle + 64])
        + data[middle + 64 :]
    )


def _truncated(data: bytes) -> bytes:
    return data[: len(data) * 3 // 5]


def _future(data: bytes) -> bytes:
    """Sealed as a newer program would."""
    (length,) = struct.unpack("<I", data[-8:-4])
    head, tail = data[: -8 - length - 4], data[-8 - length :]
    tail = tail.replace(b'"version": "1.0"', b'"version": "2.0"')
    return head + struct.pack("<I", crc32(tail, crc32(head))) + tail


_DAMAGE: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    CORRUPT: _corrupt,
    TRUNCATED: _truncated,
    FUTURE: _future,
}


def foreign() -> bytes:
    """A Parquet file of somebody else's."""
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]
    import pyarrow.parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]

    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table({"epoch": [1, 2, 3], "loss": [2.5, 2.25, 2.0]}), sink)
    return bytes(sink.getvalue())


def strays() -> Iterator[tuple[str, str, bytes]]:
    """Name, code and content of what lies among a job's files."""
    yield "losses.parquet", NOT_OURS, foreign()
    yield "notes.txt", STRAY, b"restarted by hand after the switch was replaced\n"
