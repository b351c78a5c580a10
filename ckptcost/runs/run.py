"""A run that has been loaded: series by channel, marks, events, gaps, and everything that was wrong
with its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.core.channels import Channel, Mark, Series
from ckptcost.errors import InputError, UnknownName
from ckptcost.runs.columns import Columns
from ckptcost.runs.header import Header
from ckptcost.runs.tables import Key, Readings, key_of

LONG = 8
"""stretches of a table, in the mean, that make a long run"""


class RunEvent(NamedTuple):
    """Something that happened while recording."""

    t_s: float
    name: str
    """lost, found, restarted, note, error, gap, cost"""
    domain: str
    text: str
    host: str
    detail: Mapping[str, object]


class Gap(NamedTuple):
    """A stretch of a node's time without any reading."""

    host: str
    start_s: float
    end_s: float
    why: str


class Problem(NamedTuple):
    """Something wrong with a file, in a sentence. `line` is 0 where it is about the whole part."""

    part: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.part}{f', line {self.line}' if self.line else ''}: {self.text}"


@dataclass(slots=True)
class Node:
    """One host of a run: what its meter read, over all parts and recorders."""

    host: str
    headers: tuple[Header, ...]
    tables: tuple[tuple[Readings, int], ...]
    """with what to add to its times: 0 on the first clock"""
    origin_ns: int
    channels: tuple[Channel, ...]
    """as the newest header has them"""
    periods_s: Mapping[Key, float] = field(default_factory=dict)
    _columns: Columns | None = field(default=None, init=False, repr=False, compare=False)
    """of the tables as they are; other tables, or another origin, have others"""

    def columns(self, channel: Channel) -> Columns:
        """Where its readings are."""
        columns = self._columns
        if (
            columns is None
            or columns.tables is not self.tables
            or columns.origin_ns != self.origin_ns
        ):
            columns = self._columns = Columns(self.tables, self.origin_ns)
        if not columns.has(channel):
            raise UnknownName(
                "channel", channel.name, [c.name for c in self.channels], where=self.host
            )
        return columns

    def forget(self) -> None:
        """What was worked out for many channels: it is worked out again when it is asked for."""
        self._columns = None

    def series(self, channel: Channel) -> Series:
        """All readings of it, by time, in seconds since the run began."""
        return self.columns(channel).series(channel)

    def answered(self, channel: Channel) -> bool:
        """Whether there is a number among them: quicker than to look at all of them."""
        return self.columns(channel).answered(channel)

    def period_s(self, channel: Channel) -> float | None:
        """How often its source renewed it, as measured; else as published; None if neither is
        known."""
        return self.periods_s.get(key_of(channel), channel.tick_s)

    @property
    def is_long(self) -> bool:
        """So long that it is better looked at stretch by stretch."""
        return len(self.tables) > LONG * len({id(table.reach[0]) for table, _ in self.tables})

    def over(self, begin_s: float, end_s: float) -> Node:
        """The same with the readings of a time alone, and with some thousands of every meter on
        either side of it, by which its edges are judged."""
        kept: list[tuple[Readings, int]] = []
        stretches_of: dict[int, list[tuple[Readings, int]]] = {}
        for table, ahead_ns in self.tables:
            stretches_of.setdefault(id(table.reach[0]), []).append((table, ahead_ns))
        for stretches in stretches_of.values():
            reach_s = [
                [(at_ns + ahead_ns - self.origin_ns) / 1e9 for at_ns in table.reach[1:]]
                for table, ahead_ns in stretches
            ]
            before = sum(until_s < begin_s for _, until_s in reach_s)
            through = sum(since_s <= end_s for since_s, _ in reach_s)
            kept += stretches[max(before - 1, 0) : through + 1]
        return replace(self, tables=tuple(kept))

    def ticked_s(self) -> NDArray[np.float64]:
        """First and last tick of all that was read, in order of time."""
        spans = [table.spans() + ahead_ns for table, ahead_ns in self.tables]
        joined_ns = np.concatenate(spans) if spans else np.empty((0, 2), np.int64)
        in_order: NDArray[np.float64] = (
            joined_ns[np.argsort(joined_ns[:, 0], kind="stable")] - self.origin_ns
        ) / 1e9
        return in_order


@dataclass(slots=True)
class Run:
    """Times are seconds since `began`, the first instant that any of its headers names."""

    id: str
    nodes: tuple[Node, ...]
    marks: tuple[Mark, ...]
    """of all hosts and ranks, by time; with several hosts, `detail["host"]` says whose"""
    events: tuple[RunEvent, ...]
    gaps: tuple[Gap, ...]
    problems: tuple[Problem, ...]
    simulated: bool
    ended: bool
    """somebody stopped it; else it was killed, or still goes on"""
    wall: tuple[tuple[float, float], ...]
    """pairs of run time and Unix time, by time"""
    duration_s: float
    """to the last line of any kind"""

    @property
    def headers(self) -> tuple[Header, ...]:
        return tuple(header for node in self.nodes for header in node.headers)

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(node.host for node in self.nodes)

    @property
    def channels(self) -> tuple[Channel, ...]:
        """Of the only node; with several, ask each node."""
        return self.node().channels

    def node(self, host: str = "") -> Node:
        if not host and len(self.nodes) > 1:
            raise InputError(
                "this run has several hosts", remedy=f"say which: {', '.join(self.hosts)}"
            )
        for node in self.nodes:
            if node.host == host or not host:
                return node
        raise UnknownName("host", host, self.hosts)

    def series(self, channel: Channel | str, host: str = "") -> Series:
        """Readings of a channel, which may be given by name: `gpu:0 energy_j`."""
        node = self.node(host)
        if isinstance(channel, str):
            named: Sequence[Channel] = [c for c in node.channels if c.name == channel]
            if not named:
                raise UnknownName("channel", channel, [c.name for c in node.channels])
            if len(named) > 1:
                raise InputError(
                    f"{channel} is read from {len(named)} sources",
                    remedy=f"ask for one: {[c.source for c in named]}",
                )
            channel = named[0]
        return node.series(channel)

    @property
    def began(self) -> float:
        """Unix time of the run's first instant, as the wall clock stood at the first pair."""
        t_s, wall_s = self.wall[0]
        return wall_s - t_s

    def wall_s(self, t_s: float) -> float:
        """Unix time at a run time: along the nearest pairs, so that a clock that was set or drifts
        is followed."""
        at, wall = np.array(self.wall).T
        if len(at) == 1 or t_s <= at[0]:
            return float(wall[0] + (t_s - at[0]))
        return float(np.interp(t_s, at, wall) if t_s < at[-1] else wall[-1] + (t_s - at[-1]))
