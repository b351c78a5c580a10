"""The newest readings of one host, kept so that a checkpoint can be evaluated when it is over: in
flat arrays, within bounds.

What has just come stays a list for some seconds, because ticks of the last two seconds may be told
after their summary.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ckptcost.core.channels import Channel, Mark
from ckptcost.runs.clocks import S
from ckptcost.runs.header import Header
from ckptcost.runs.run import Node, Run
from ckptcost.runs.tables import Key, Table, key_of

CHUNK_NS = 10 * S
LATE_NS = 3 * S
"""ticks around a mark are told at most two seconds after their time"""
MOST_VALUES = 3_000_000
"""of 8 bytes: six hours of a node with 8 GPUs at rest, or ten minutes inside one checkpoint"""


class Record(NamedTuple):
    """What one meter said: a tick, or a summary where `asked`, how often in that second, is not
    0."""

    slot: int
    from_ns: int
    t_ns: int
    asked: int
    took_ns: int
    row: Sequence[Any]
    before_ns: int = 0
    begun_ns: int = 0


class _Chunk(NamedTuple):
    begin_ns: int
    end_ns: int
    tables: Mapping[int, Table]
    values: int


class Ring:
    """Slots are meters: the same meter under a later header is the same slot."""

    def __init__(self, most_values: int = MOST_VALUES) -> None:
        self._most = most_values
        self.slots: list[tuple[Channel, ...]] = []
        self._slot_of: dict[tuple[str, tuple[Key, ...]], int] = {}
        self._open: list[Record] = []
        self._cut_ns = 0
        """what is not later than this goes into the next chunk"""
        self._since_ns = 0
        self._closed: deque[_Chunk] = deque()
        self._values = 0
        self.keep_from_ns = 0
        """older chunks may be let go"""

    def slot(self, name: str, channels: Sequence[Channel]) -> int:
        key = (name, tuple(key_of(channel) for channel in channels))
        if key not in self._slot_of:
            self._slot_of[key] = len(self.slots)
            self.slots.append(tuple(channels))
        return self._slot_of[key]

    def add(self, record: Record) -> None:
        self._open.append(record)

    def second_over(self, t_ns: int) -> None:
        """All ticks up to then belong to seconds that are over: chunks are cut between seconds
        only."""
        if not self._since_ns:
            self._since_ns = t_ns
        if self._cut_ns and t_ns >= self._cut_ns + LATE_NS:
            self._close()
        elif not self._cut_ns and t_ns >= self._since_ns + CHUNK_NS:
            self._cut_ns = t_ns

    def _close(self) -> None:
        old = [record for record in self._open if record.t_ns <= self._cut_ns]
        self._open = [record for record in self._open if record.t_ns > self._cut_ns]
        if old:
            chunk = _chunk(old, self.slots)
            self._closed.append(chunk)
            self._values += chunk.values
        self._since_ns, self._cut_ns = self._cut_ns, 0
        while self._closed and (
            self._closed[0].end_ns < self.keep_from_ns or self._values > self._most
        ):
            self._values -= self._closed.popleft().values

    @property
    def values(self) -> int:
        """How much is kept."""
        return self._values + sum(len(record.row) for record in self._open)

    def taken(self, begin_ns: int, end_ns: int) -> list[tuple[Table, int]]:
        """Tables of all that lies in there and a little around; nothing of them changes any
        more."""
        return self.tables_of(*self.held(begin_ns, end_ns))

    def held(self, begin_ns: int, end_ns: int) -> tuple[list[tuple[Table, int]], list[Record]]:
        """The same at once, for who holds the lock: `tables_of` makes tables of it without."""
        found = [
            chunk for chunk in self._closed if chunk.end_ns >= begin_ns and chunk.begin_ns <= end_ns
        ]
        return [(table, 0) for chunk in found for table in chunk.tables.values()], self._open.copy()

    def tables_of(
        self, closed: list[tuple[Table, int]], fresh: Sequence[Record]
    ) -> list[tuple[Table, int]]:
        return closed + [(table, 0) for table in _chunk(fresh, self.slots).tables.values()]


def _chunk(records: Sequence[Record], slots: Sequence[tuple[Channel, ...]]) -> _Chunk:
    tables: dict[int, Table] = {}
    values = 0
    for record in records:
        table = tables.get(record.slot)
        if table is None:
            table = tables[record.slot] = Table(slots[record.slot])
        if record.asked:
            table.second(
                record.from_ns,
                record.t_ns,
                record.asked,
                record.took_ns,
                record.row,
                record.before_ns,
            )
        else:
            table.tick(record.t_ns, record.took_ns, record.row, record.begun_ns)
        values += len(record.row)
    return _Chunk(
        min((r.from_ns for r in records), default=0),
        max((r.t_ns for r in records), default=0),
        tables,
        values,
    )


class Frame(NamedTuple):
    """What readings need around them to be a run."""

    run_id: str
    host: str
    headers: tuple[Header, ...]
    origin_ns: int
    channels: tuple[Channel, ...]
    periods_s: Mapping[Key, float]
    simulated: bool
    wall: tuple[tuple[float, float], ...]


def run_of(
    frame: Frame, tables: Sequence[tuple[Table, int]], marks: Sequence[Mark], duration_s: float
) -> Run:
    """A piece of a run, as if it had been loaded."""
    node = Node(
        frame.host, frame.headers, tuple(tables), frame.origin_ns, frame.channels, frame.periods_s
    )
    return Run(
        frame.run_id,
        (node,),
        tuple(marks),
        (),
        (),
        (),
        frame.simulated,
        True,
        frame.wall,
        duration_s,
    )
