"""Columns of one meter while a run is being read: flat arrays of machine numbers, eight bytes a
value; of a long run what is older than a minute is sealed, and then takes a small part of that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.channels import Channel

# Columns that nothing is added to any more, kept small: most values of a meter are the ones of the
# reading before, and what a meter tells has few digits. What comes out is what went in, to the
# bit.


_SHORT = 65_536
"""values of a column in which a place takes two bytes"""
_UNITS = (1.0, 1e3, 1e6, 1e9)
"""what values are whole numbers of, one over"""
_EXACT = 2.0**53
_NARROW: Sequence[type[np.signedinteger[Any]]] = (np.int8, np.int16, np.int32)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Number = TypeVar("Number", np.int64, np.float64)


class Packed(NamedTuple):
    """One column."""

    length: int
    places: NDArray[np.uint16] | NDArray[np.uint32] | None
    """where values differ from the one before; None: all are told"""
    first: int
    more: NDArray[np.signedinteger[Any]]
    """by how many units each is more than the one before it; as they are where `per_unit` is 0"""
    per_unit: float

    def ints(self) -> Ints:
        """Of a column of whole numbers."""
        told = self.more.astype(np.int64)
        if self.per_unit:
            told = np.cumsum(told)
            told += self.first
        return self._all(told)

    def floats(self) -> Floats:
        """Of a column of numbers."""
        told: Floats
        if self.per_unit:
            told = (np.cumsum(self.more, dtype=np.int64) + self.first) / self.per_unit
        else:
            told = self.more.view(np.float64)
        return self._all(told)

    def _all(self, told: NDArray[Number]) -> NDArray[Number]:
        if self.places is None:
            return told
        until = np.append(self.places[1:].astype(np.int64), self.length)
        return np.repeat(told, until - self.places)


def pack_ints(column: Ints) -> Packed:
    """Whole numbers, kept small."""
    return _pack_bits(np.ascontiguousarray(column), None)


def pack_floats(column: Floats) -> Packed:
    """Numbers, kept small."""
    values = np.ascontiguousarray(column)
    return _pack_bits(values.view(np.int64), values)


def _pack_bits(bits: Ints, values: Floats | None) -> Packed:
    """`values`: what the bits are of, where they are no whole numbers."""
    count = len(bits)
    places: NDArray[np.uint16] | NDArray[np.uint32] | None = None
    told = np.flatnonzero(np.concatenate([[count > 0], bits[1:] != bits[:-1]])[:count])
    if 0 < len(told) < 0.75 * count:
        places = told.astype(np.uint16) if count <= _SHORT else told.astype(np.uint32)
        bits = bits[told]
        values = None if values is None else values[told]
    units, per_unit = (bits, 1.0) if values is None else _in_units(values)
    if units is not None and count:
        with np.errstate(over="ignore"):
            more = np.diff(units, prepend=units[:1])
        for narrow in _NARROW:
            if np.array_equal(small := more.astype(narrow), more):
                return Packed(count, places, int(units[0]), small, per_unit)
    return Packed(count, places, 0, bits.copy(), 0.0)


def _in_units(values: Floats) -> tuple[Ints | None, float]:
    """As whole numbers of the largest unit that gives back every bit."""
    if not np.isfinite(values).all() or (np.signbit(values) & (values == 0)).any():
        return None, 0.0
    for per_unit in _UNITS:
        units = np.rint(values * per_unit)
        if np.abs(units).max(initial=0.0) < _EXACT and np.array_equal(units / per_unit, values):
            return units.astype(np.int64), per_unit
    return None, 0.0


SEALED = 4096
"""ticks of a sealed stretch, at least"""
LATE_NS = 60 * 10**9
"""what is younger may still be joined by ticks that were held back"""
_NEVER, _EVER = -(2**62), 2**62
_APART_NS = 10**9
_ALIKE = 32
"""columns of times that are held against the next"""
_KEPT = 8
"""rows of so many kinds of channels, before they are forgotten"""
_NAN = float("nan")
Key = tuple[str, ...]


def key_of(channel: Channel) -> Key:
    """What makes a channel of one part the same as one of the next; facts such as a tick may be
    known better by then."""
    return channel.domain, channel.quantity, channel.source, channel.scope


def _one(entry: Any) -> float:
    if entry is None:
        return _NAN
    if type(entry) is list:
        return _NAN if entry[0] is None else float(entry[0])
    return float(entry)


class TableRows(NamedTuple):
    """Which readings of a table count, in order of time."""

    t_ns: Ints
    took_ns: Ints
    pick: NDArray[np.intp]
    """places in the ticks with the summaries behind them"""


class Columns(NamedTuple):
    """Part of a table."""

    ticks: Ints
    values: Floats
    spans: Ints
    sums: Floats
    back: Mapping[int, list[tuple[int, int]]]


class MeterReadings(ABC):
    """Ticks and summaries of one meter on one clock."""

    def __init__(self, channels: tuple[Channel, ...]) -> None:
        self.channels = channels
        self._counters = tuple(channel.is_counter for channel in channels)
        self._back: dict[int, list[tuple[int, int]]] = {}
        """by channel: rows of counters whose last answer was so many ns before the row"""

    @property
    @abstractmethod
    def size(self) -> tuple[int, int]:
        """How many ticks and summaries there are."""

    @abstractmethod
    def _when(self) -> tuple[Ints, Ints]:
        """Of every tick t, took, and when it was asked after t; of every summary from, t, count,
        took."""

    @abstractmethod
    def values(self, index: int) -> tuple[Floats, Floats]:
        """All that a channel said, ticks and summaries, as they came."""

    @abstractmethod
    def answered(self, index: int) -> bool:
        """Whether there is a number among what counts for a channel."""

    @property
    @abstractmethod
    def reach(self) -> tuple[object, int, int]:
        """Whose stretch it is, and from when to when; those of one table come in order."""

    def version(self, index: int) -> tuple[object, ...]:
        """Channels of which it is the same have the same rows."""
        counter = self._counters[index]
        return id(self), self.size, counter, index if counter and index in self._back else -1

    def spans(self) -> Ints:
        """First and last tick of everything that was read, unsorted; of what is sealed those that
        no second without a tick lies between are one."""
        ticks, spans = self._when()
        return np.concatenate([np.repeat(ticks[:, :1], 2, axis=1), spans[:, :2]])

    def rows(self, index: int) -> TableRows:
        """Which readings count for a channel, in order; no second is there twice.

        Ticks win over the summary of their second where at least half of them are there; otherwise
        a gauge's mean wins, while every reading of a counter is as good as any other. It is the
        same for all counters and for all gauges of a table, unless a counter answered last before
        the end of a second.
        """
        counter = self._counters[index]
        back = self._back.get(index, ()) if counter else ()
        ticks, spans = self._when()
        pick = np.argsort(ticks[:, 0], kind="stable")
        at, took, begun = ticks[pick].T
        if len(spans):
            first, last = (
                np.searchsorted(at, spans[:, 0], "left"),
                np.searchsorted(at, spans[:, 1], "right"),
            )
            there = (last - first) * 2 >= spans[:, 2]
            alone = ~there | (spans[:, 2] == 0)
            if counter:
                when = spans[:, 1].copy()
                for row, back_ns in back:
                    when[row] -= back_ns
            else:
                when = (spans[:, 0] + spans[:, 1]) // 2
                doubled = np.zeros(len(at) + 1, np.int64)
                np.add.at(doubled, first[alone], 1)
                np.add.at(doubled, last[alone], -1)
                single = np.cumsum(doubled[:-1]) == 0
                at, took, begun, pick = at[single], took[single], begun[single], pick[single]
            at = np.concatenate([at + begun, when[alone]])
            took = np.concatenate([took - begun, spans[alone, 3]])
            pick = np.concatenate([pick, len(ticks) + np.flatnonzero(alone)])
        else:
            at, took = at + begun, took - begun
        at, unique = np.unique(at, return_index=True)
        return TableRows(at, took[unique], pick[unique])


class Seals:
    """What the sealed stretches of a run have in common: meters of one recorder are asked at the
    same ticks."""

    def __init__(self) -> None:
        self._told: dict[bytes, Packed] = {}

    def pack(self, columns: Ints) -> list[Packed]:
        """Times, of which many tables have the same."""
        found = []
        for column in columns.T:
            raw = column.tobytes()
            if raw not in self._told:
                if len(self._told) >= _ALIKE:
                    del self._told[next(iter(self._told))]
                self._told[raw] = pack_ints(column)
            found.append(self._told[raw])
        return found


class Sealed(MeterReadings):
    """A stretch of a table that nothing is added to any more."""

    def __init__(
        self,
        of: MeterTable,
        seals: Seals,
        ticks: Ints,
        values: Floats,
        spans: Ints,
        sums: Floats,
        back: Mapping[int, list[tuple[int, int]]],
    ) -> None:
        super().__init__(of.channels)
        self._of, self._size = of.name, (len(ticks), len(spans))
        self._ticks, self._spans = seals.pack(ticks), seals.pack(spans)
        self._values = [pack_floats(column) for column in values.T]
        self._sums = [pack_floats(column) for column in sums.T]
        self._back = dict(back)
        self._seen: NDArray[np.bool_] = np.isfinite(np.concatenate([values, sums])).any(axis=0)
        both = np.concatenate([ticks[:, [0, 0]], spans[:, :2]])
        both = both[np.argsort(both[:, 0], kind="stable")]
        until = np.maximum.accumulate(both[:, 1])
        apart = np.flatnonzero(both[1:, 0] - until[:-1] > _APART_NS)
        self._read = np.stack(
            [both[np.append(0, apart + 1), 0], until[np.append(apart, len(both) - 1)]], axis=1
        )

    @property
    def size(self) -> tuple[int, int]:
        return self._size

    def _when(self) -> tuple[Ints, Ints]:
        return (
            np.stack([column.ints() for column in self._ticks], axis=1),
            np.stack([column.ints() for column in self._spans], axis=1),
        )

    def values(self, index: int) -> tuple[Floats, Floats]:
        return self._values[index].floats(), self._sums[index].floats()

    def answered(self, index: int) -> bool:
        return bool(self._seen[index])

    @property
    def reach(self) -> tuple[object, int, int]:
        return self._of, int(self._read[0, 0]), int(self._read[-1, 1])

    def spans(self) -> Ints:
        return self._read

    def put_back(self, table: MeterTable) -> None:
        """All of it as it came."""
        columns = [self.values(index) for index in range(len(self.channels))]
        values, sums = (np.stack(part, axis=1) for part in zip(*columns, strict=True))
        ticks, spans = self._when()
        table.put(ticks, values, spans, sums, self._back)


class MeterTable(MeterReadings):
    """What is still added to. Where it seals, `sealed` holds the stretches before."""

    def __init__(self, channels: Sequence[Channel], seals: Seals | None = None) -> None:
        super().__init__(tuple(channels))
        self.sealed: list[Sealed] = []
        self.name = object()
        """what its stretches know it by"""
        self._seals = seals
        self._width = len(self.channels)
        self._ticks = array("q")
        """t, took, and when it was asked after t, by turns"""
        self._values = array("d")
        self._spans = array("q")
        """from, t, count, took by turns"""
        self._sums = array("d")
        self._rows: dict[tuple[object, ...], TableRows] = {}
        """of counters, and of gauges"""
        self._finite: dict[bool, tuple[TableRows, NDArray[np.bool_]]] = {}
        self._sealed_ns = _NEVER
        """what comes is not before that"""
        self._seal_at = 2 * SEALED if seals is not None else _EVER
        """ticks that are enough to look whether some can be sealed"""

    @property
    def size(self) -> tuple[int, int]:
        return len(self._ticks) // 3, len(self._spans) // 4

    @property
    def reach(self) -> tuple[object, int, int]:
        return self.name, self._sealed_ns, _EVER

    def __getstate__(self) -> dict[str, object]:
        """What another process is handed: this stretch alone, to be read."""
        return {**vars(self), "sealed": [], "_seals": None, "_rows": {}, "_finite": {}}

    @property
    def stretches(self) -> list[MeterReadings]:
        """All that was read: what is sealed, and the rest."""
        return [*self.sealed, self]

    def tick(self, t_ns: int, took_ns: int, row: Sequence[Any], begun_ns: int = 0) -> None:
        """A tick at `t_ns`, at which this meter was asked `begun_ns` later and had answered
        `took_ns` later."""
        try:
            numbers = array("d", row)
        except TypeError:
            numbers = array("d", map(_one, row))
        when = array("q", (t_ns, took_ns, begun_ns))  # raises before anything is added
        self._ticks.extend(when)
        self._values.extend(numbers)
        self._added(t_ns)

    def ticks(self, when: Ints, values: Floats) -> None:
        """Many at once: t, took, and when it was asked after t, a row a tick."""
        self._ticks.frombytes(when.astype(np.int64).tobytes())
        self._values.frombytes(values.astype(np.float64).tobytes())
        self._added(int(when[:, 0].min()))

    def second(
        self,
        from_ns: int,
        t_ns: int,
        count: int,
        took_ns: int,
        row: Sequence[Any],
        before_ns: int = 0,
    ) -> None:
        """`before_ns`: t_ns is so long before the time of the line, from which the entries
        count."""
        numbers = array("d", [entry if type(entry) is float else _one(entry) for entry in row])
        place = len(self._spans) // 4
        back = [
            (i, int(entry[1]) - before_ns)
            for i, entry in enumerate(row)
            if type(entry) is list and len(entry) == 2 and self._counters[i]
        ]
        when = array("q", (from_ns, t_ns, count, took_ns))
        self._spans.extend(when)
        self._sums.extend(numbers)
        for i, back_ns in back:
            self._back.setdefault(i, []).append((place, back_ns))
        self._added(from_ns)

    def put(
        self,
        ticks: Ints,
        values: Floats,
        spans: Ints,
        sums: Floats,
        back: Mapping[int, Sequence[tuple[int, int]]],
    ) -> None:
        """Behind what is there."""
        base = self.size[1]
        for index, rows in back.items():
            self._back.setdefault(index, []).extend((base + row, ns) for row, ns in rows)
        self._ticks.frombytes(ticks.tobytes())
        self._values.frombytes(values.tobytes())
        self._spans.frombytes(spans.tobytes())
        self._sums.frombytes(sums.tobytes())

    def _added(self, first_ns: int) -> None:
        if first_ns < self._sealed_ns:
            self._unseal()
        elif len(self._ticks) >= 3 * self._seal_at:
            self._seal()

    def _seal(self) -> None:
        """What no tick or summary can join any more."""
        assert self._seals is not None
        ticks, spans = self._when()
        newest_ns = int(max(ticks[:, 0].max(), spans[:, 1].max(initial=_NEVER)))
        cut_ns = _between_seconds(spans, newest_ns - LATE_NS)
        old = np.count_nonzero(ticks[:, 0] < cut_ns)
        self._seal_at = 2 * SEALED + len(ticks) - int(old)
        if old < SEALED:
            return
        before, after = self._parted(cut_ns)
        self.sealed.append(Sealed(self, self._seals, *before))
        self._clear()
        self.put(*after)
        self._sealed_ns = cut_ns

    def _parted(self, cut_ns: int) -> tuple[Columns, Columns]:
        """What lies before an instant between two seconds, and the rest."""
        ticks, spans = self._when()
        values, sums = (
            np.frombuffer(part, np.float64).reshape(-1, self._width)
            for part in (self._values, self._sums)
        )
        old, over = ticks[:, 0] < cut_ns, spans[:, 1] < cut_ns
        parts = []
        for of_ticks, of_spans in ((old, over), (~old, ~over)):
            place = np.cumsum(of_spans) - 1
            back = {
                index: kept
                for index, rows in self._back.items()
                if (kept := [(int(place[row]), ns) for row, ns in rows if of_spans[row]])
            }
            parts.append(
                Columns(ticks[of_ticks], values[of_ticks], spans[of_spans], sums[of_spans], back)
            )
        return parts[0], parts[1]

    def since(self, t_ns: int) -> MeterTable:
        """A copy of what was read from the second of an instant on."""
        assert not self.sealed, "what is sealed is cut by `Node.over`"
        table = MeterTable(self.channels)
        table.put(*self._parted(_between_seconds(self._when()[1], t_ns))[1])
        return table

    def forget(self, before_ns: int) -> None:
        """Let go of what was read before the second of an instant."""
        kept = self._parted(_between_seconds(self._when()[1], before_ns))[1]
        self._clear()
        self.put(*kept)

    def _unseal(self) -> None:
        """Something came late, as from another part: it may belong to a second that is sealed."""
        sealed, self.sealed = self.sealed, []
        ticks, spans = self._when()
        values, sums = (
            np.frombuffer(part, np.float64).reshape(-1, self._width).copy()
            for part in (self._values, self._sums)
        )
        rest = Columns(ticks, values, spans, sums, dict(self._back))
        self._clear()
        for stretch in sealed:
            stretch.put_back(self)
        self.put(*rest)
        self._sealed_ns, self._seal_at = _NEVER, _EVER

    def _clear(self) -> None:
        self._ticks, self._values = array("q"), array("d")
        self._spans, self._sums = array("q"), array("d")
        self._back, self._rows, self._finite = {}, {}, {}

    def _when(self) -> tuple[Ints, Ints]:
        """Copies: an array that is looked at cannot grow."""
        return (
            np.frombuffer(self._ticks, np.int64).reshape(-1, 3).copy(),
            np.frombuffer(self._spans, np.int64).reshape(-1, 4).copy(),
        )

    def values(self, index: int) -> tuple[Floats, Floats]:
        return (
            np.frombuffer(self._values, np.float64)[index :: self._width],
            np.frombuffer(self._sums, np.float64)[index :: self._width],
        )

    def rows(self, index: int) -> TableRows:
        """Kept until something is added."""
        version = self.version(index)
        if version not in self._rows:
            if len(self._rows) > _KEPT:
                self._rows.clear()
            self._rows[version] = super().rows(index)
        return self._rows[version]

    def answered(self, index: int) -> bool:
        """Of all channels at once, as long as nothing is added."""
        rows = self.rows(index)
        if index in self._back and self._counters[index]:
            return bool(np.isfinite(np.concatenate(self.values(index))[rows.pick]).any())
        kept = self._finite.get(self._counters[index])
        if kept is None or kept[0] is not rows:
            ticks = self.size[0]
            of_ticks, of_sums = rows.pick[rows.pick < ticks], rows.pick[rows.pick >= ticks] - ticks
            ticked = np.isfinite(np.frombuffer(self._values, np.float64)).reshape(-1, self._width)[
                of_ticks
            ]
            summed = np.isfinite(np.frombuffer(self._sums, np.float64)).reshape(-1, self._width)[
                of_sums
            ]
            seen: NDArray[np.bool_] = np.logical_or.reduce(np.concatenate([ticked, summed]))
            kept = self._finite[self._counters[index]] = (rows, seen)
        return bool(kept[1][index])


def _between_seconds(spans: Ints, cut_ns: int) -> int:
    """An instant at or before that one which lies inside no second that was summed up."""
    while (torn := (spans[:, 0] < cut_ns) & (spans[:, 1] >= cut_ns)).any():
        cut_ns = int(spans[torn, 0].min())
    return cut_ns
