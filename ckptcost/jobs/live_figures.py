"""What is told of a run that goes on: by host joules, saves, and how new its readings are. Unknown
is NaN or None, never 0."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from ckptcost.runs.header import Header

SILENT_S = 10.0
"""a recorder writes each second; one that was silent for so long does not record"""

Role = Literal["part", "whole"]


class DomainJoules(NamedTuple):
    """Of one domain, of the time that is covered."""

    domain: str
    role: Role
    basis: str
    joules: float
    covered_s: float
    of_s: float
    """the time in which it was looked for"""
    lately_w: float = math.nan

    @property
    def mean_w(self) -> float:
        return self.joules / self.covered_s if self.covered_s > 0 else math.nan

    def plus(self, other: DomainJoules | None, sign: float = 1.0) -> DomainJoules:
        """With what was known of another stretch, or without it; what is not known adds nothing and
        covers nothing."""
        if other is None:
            return self
        covered_s = self.covered_s + sign * other.covered_s
        joules = sum(
            times * each.joules
            for times, each in ((1.0, self), (sign, other))
            if each.covered_s != 0
        )
        return self._replace(
            joules=joules if covered_s else math.nan,
            covered_s=covered_s,
            of_s=self.of_s + sign * other.of_s,
        )


class LastSave(NamedTuple):
    """The one that began last, of those that are over; None and NaN are not known."""

    over_s: float
    """Unix time of the last that is told of it: safe, or training goes on"""
    stall_s: float | None
    length_s: float | None
    bytes: float


class SaveCounts(NamedTuple):
    """Counts and sums over saves; a sum is of those that `stalls` and `sizes` count."""

    started: int = 0
    finished: int = 0
    """training goes on, it is safe, or it failed"""
    safe: int = 0
    failed: int = 0
    stalls: int = 0
    """of which it is known how long training stood"""
    sizes: int = 0
    stall_s: float = 0.0
    gpu_s: float = 0.0
    bytes: float = 0.0
    last: LastSave | None = None

    def after(self, before: SaveCounts) -> SaveCounts:
        return SaveCounts(
            self.started + before.started,
            self.finished + before.finished,
            self.safe + before.safe,
            self.failed + before.failed,
            self.stalls + before.stalls,
            self.sizes + before.sizes,
            self.stall_s + before.stall_s,
            self.gpu_s + before.gpu_s,
            self.bytes + before.bytes,
            self.last or before.last,
        )


class HostCounters(NamedTuple):
    """One host of the run."""

    host: str
    header: Header
    """its newest"""
    measured_s: float
    domains: Sequence[DomainJoules]
    saves: SaveCounts
    gpus: float
    """NaN where none is metered"""
    own_cpu_s: float


class Freshness(NamedTuple):
    """How new a host's readings are."""

    last_wall_s: float
    age_s: float | None
    ended: bool
    """its newest recorder said that it stopped"""

    @property
    def recording(self) -> bool | None:
        """None where only its files can be looked at, as of a simulation."""
        if self.ended:
            return False
        return None if self.age_s is None else self.age_s <= SILENT_S


class RunCounters(NamedTuple):
    """A run, so far."""

    run: str
    simulated: bool
    hosts: Sequence[HostCounters]
    headers: Sequence[Header]
    """of all parts of all hosts"""
    fresh: Mapping[str, Freshness]
    """by host; one without a reading is not in there"""
    bad_lines: int
