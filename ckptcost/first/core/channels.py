"""What a meter reads: one channel a number, with all that is known about it before the first
reading. Times are seconds on one clock.

A channel's `role` says how joules may be added: a `part` adds up; a `detail` lies inside a part and
is shown, never added; a `whole` contains the parts and is held against their sum. `covers` names
domain classes that a part contains already, so that nobody adds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.domain import Boundary

LONGEST_RUN_S = 50 * 365.25 * 86400.0
"""no machine is metered for longer; more is a wrong clock, and exports write a row a day"""

Quantity = Literal[
    "energy_j",
    "power_w",
    "utilisation",
    "memory_used_bytes",
    "temperature_c",
    "written_bytes",
    "read_bytes",
    "cancelled_bytes",
    "writes",
    "reads",
    "flushes",
    "busy_s",
    "queue_s",
    "in_flight",
    "dirty_bytes",
    "writeback_bytes",
    "some_stalled_s",
    "full_stalled_s",
    "cpu_s",
]
COUNTERS = frozenset(
    {
        "energy_j",
        "written_bytes",
        "read_bytes",
        "cancelled_bytes",
        "writes",
        "reads",
        "flushes",
        "busy_s",
        "queue_s",
        "some_stalled_s",
        "full_stalled_s",
        "cpu_s",
    }
)
"""quantities that only grow; all others are gauges"""
Role = Literal["part", "detail", "whole"]
Basis = Literal["measured", "modelled"]


@dataclass(frozen=True, slots=True)
class Channel:
    """One number of a meter. Texts are for people, everything else for arithmetic; None is not
    known."""

    domain: str
    """what it is about: gpu:0, gpu:0.memory, module:0, cpu:0, cpu:0.die1, dram:0, core:0, psys:0,
    node, drive:nvme0n1, disk:sda, disk:sda1, process:1234, host, cgroup:/job, mount:/scratch,
    self"""
    quantity: Quantity
    source: str
    """where the number comes from, e.g. `NVML field 186, scope gpu` or the file it is read from"""
    scope: str = ""
    """what the sensor sees: gpu, memory, module, package, dram, core, uncore, psys, drive, node,
    process ..."""
    boundary: Boundary = "node"
    role: Role = "part"
    covers: tuple[str, ...] = ()
    """domain classes (`cpu`, `dram`, `gpu`) whose joules this part contains"""
    basis: Basis = "measured"
    device: str = ""
    """UUID, model or serial, as far as the system tells"""
    wraps_at: float | None = None
    """a counter starts again at 0 here; without it a decrease is a gap"""
    resolution: float | None = None
    """smallest step of the value"""
    tick_s: float | None = None
    """how often the source renews the value, as published; a run's header has it as measured"""
    lag_s: float | None = None
    """a counter shows what had been counted at most so long before; where nobody says, at most one
    tick"""
    averaging_s: float | None = None
    """a gauge is a mean over so long"""
    looks: float | None = None
    """share of the time that the sensor looks at all: 0.25 for 25 ms in each 100 ms"""
    accuracy: float | None = None
    """published error of the sensor itself as a fraction; no interval of ours contains it"""
    note: str = ""

    @property
    def name(self) -> str:
        return f"{self.domain} {self.quantity}"

    @property
    def is_counter(self) -> bool:
        return self.quantity in COUNTERS

    @property
    def kind_of_domain(self) -> str:
        """`gpu` of `gpu:0.memory`."""
        return self.domain.split(":", 1)[0]


class Series(NamedTuple):
    """What one channel said: when it was asked, how long the answer took, and the answer; NaN where
    there was none."""

    t_s: NDArray[np.float64]
    value: NDArray[np.float64]
    took_s: NDArray[np.float64]


def series(t_s: object, value: object, took_s: object = 0.0) -> Series:
    """A series of plain lists.

    >>> series([0, 1], [5.0, 6.0]).took_s
    array([0., 0.])
    """
    at = np.asarray(t_s, dtype=np.float64)
    return Series(
        at,
        np.asarray(value, dtype=np.float64),
        np.broadcast_to(np.asarray(took_s, dtype=np.float64), at.shape),
    )


class Mark(NamedTuple):
    """A named instant. `window` tells saves apart that overlap; `rank` and `by` say who set it."""

    t_s: float
    name: str
    """begin, snapshotted, written, synced, committed, returned, durable, end; or note, lost, found,
    baseline, error"""
    window: str = ""
    rank: int = 0
    by: str = ""
    """api, watch, wrap, hand, recorder"""
    detail: dict[str, object] = {}  # noqa: RUF012  # read, never written
    """bytes, path, text ..."""
