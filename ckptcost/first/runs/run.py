"""A run that has been loaded: series by channel, marks, events, gaps, and everything that was wrong
with its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.channels import Channel, Mark, Series
from ckptcost.first.errors import InputError, UnknownName
from ckptcost.first.runs.header import Header
from ckptcost.first.runs.tables import Key, MeterReadings, key_of

# Channels out of many tables: where each stands, and at what times. Worked out once for all
# channels that have the same times.


MOST_KEPT = 200_000
"""times that are kept for the next channel that has them; those of the last one always are"""


class _Times(NamedTuple):
    """Of the channels that have these rows of these tables."""

    t_s: NDArray[np.float64]
    took_s: NDArray[np.float64]
    pick: NDArray[np.intp]
    """places in the values of all tables, one table behind the other"""


class Columns:
    """Readings of a node by channel. What is kept is used only while the tables' rows are what they
    were."""

    def __init__(self, tables: Sequence[tuple[MeterReadings, int]], origin_ns: int) -> None:
        """With what to add to each table's times."""
        self.tables, self.origin_ns = tables, origin_ns
        self._places: dict[Key, list[tuple[MeterReadings, int, int]]] = {}
        self._times: dict[tuple[object, ...], _Times] = {}
        keys_of: dict[
            int, list[Key]
        ] = {}  # tables of one meter have the same channels; they hold them, so ids stay theirs
        for table, ahead_ns in tables:
            keys = keys_of.get(id(table.channels))
            if keys is None:
                keys = keys_of[id(table.channels)] = [key_of(channel) for channel in table.channels]
            for index, key in enumerate(keys):
                self._places.setdefault(key, []).append((table, index, ahead_ns))

    def has(self, channel: Channel) -> bool:
        return key_of(channel) in self._places

    def answered(self, channel: Channel) -> bool:
        """Whether its series has a number."""
        return any(table.answered(index) for table, index, _ in self._places[key_of(channel)])

    def series(self, channel: Channel) -> Series:
        """All readings by time, in seconds. Channels with the same times share their arrays, which
        nobody may write."""
        found = self._places[key_of(channel)]
        version = tuple(table.version(index) for table, index, _ in found)
        times = self._times.get(version)
        if times is None:
            kept = sum(len(one.t_s) for one in self._times.values())
            if kept > MOST_KEPT:
                self._times.clear()
            times = self._times[version] = _times(found, self.origin_ns)
        values = np.concatenate([part for table, index, _ in found for part in table.values(index)])
        return Series(times.t_s, values[times.pick], times.took_s)


def _times(found: Sequence[tuple[MeterReadings, int, int]], origin_ns: int) -> _Times:
    at, took, pick, before = [], [], [], 0
    for table, index, ahead_ns in found:
        rows = table.rows(index)
        at.append(rows.t_ns + ahead_ns)
        took.append(rows.took_ns)
        pick.append(rows.pick + before)
        before += sum(table.size)
    at_ns, took_ns, places = (np.concatenate(part) for part in (at, took, pick))
    if not (at_ns[1:] >= at_ns[:-1]).all():
        order = np.argsort(at_ns, kind="stable")
        at_ns, took_ns, places = at_ns[order], took_ns[order], places[order]
    t_s, took_s = (at_ns - origin_ns) / 1e9, took_ns / 1e9
    for shared in (t_s, took_s):
        shared.flags.writeable = False
    return _Times(t_s, took_s, places)


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
    tables: tuple[tuple[MeterReadings, int], ...]
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
        kept: list[tuple[MeterReadings, int]] = []
        stretches_of: dict[int, list[tuple[MeterReadings, int]]] = {}
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
