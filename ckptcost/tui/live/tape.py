"""A recorded run as a tape: an index of its files by time, so that any stretch can be read without
the rest."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.errors import RunFileError
from ckptcost.runs.clocks import S
from ckptcost.runs.header import Header, header_from
from ckptcost.runs.lines import BadLine, Raw, Second, begun_ns, decode
from ckptcost.runs.tables import Key, Table, key_of
from ckptcost.tui.live.followed import item_of
from ckptcost.tui.live.intake import Item

_STEP_NS = 2 * S
"""an entry of the index for each"""
_SLACK_NS = 4 * S
"""lines stand out of order by so much: ticks around a mark are told after their second"""
_TIME = re.compile(rb'"t":(\d+)')
_DATA = (b'{"k":"raw"', b'{"k":"second"')


class _Spot(NamedTuple):
    t_ns: int
    offset: int


class _File:
    def __init__(self, path: Path, header: Header, ahead_ns: int, at: int) -> None:
        self.path, self.header, self.ahead_ns = path, header, ahead_ns
        self.spots: list[_Spot] = [_Spot(0, at)]

    def offset(self, t_ns: int) -> int:
        """Where to begin, so that nothing from then on is missed."""
        place = bisect_right(self.spots, (t_ns, 1 << 62))
        return self.spots[max(place - 1, 0)].offset


class Tape:
    """One host of a run. Times are nanoseconds on the clock of its first file."""

    def __init__(
        self,
        paths: Sequence[Path],
        run: str,
        host: str = "",
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Goes over every line once, without decoding readings: a day's file in about a second.
        Raises RunFileError."""
        self.files: list[_File] = []
        self.remarks: list[tuple[int, Item]] = []
        """headers, marks, events and the like, by time"""
        self.problems = 0
        self.last_ns = 0
        heads = [
            (path, header)
            for path in paths
            if (header := _header_of(path)) is not None and header.run == run
        ]
        if not heads:
            raise RunFileError("no run in here", where=str(paths[0]) if paths else "")
        heads.sort(key=lambda one: (one[1].wall_ns, one[1].part))
        first = next(
            (h for _, h in heads if (not host or h.host == host) and h.meters), heads[0][1]
        )
        self.host, self.origin_ns = first.host, first.monotonic_ns
        self.hosts = tuple(dict.fromkeys(header.host for _, header in heads))
        ahead = {(first.host, first.boot): 0}
        for path, header in heads:
            if header.host != self.host or stopped():
                continue
            clock = (header.host, header.boot)
            wall_ns = first.wall_ns - first.monotonic_ns
            ahead_ns = ahead.setdefault(clock, header.wall_ns - header.monotonic_ns - wall_ns)
            self._scan(path, header, ahead_ns, stopped)
        self.remarks.sort(key=lambda one: one[0])

    def _scan(self, path: Path, header: Header, ahead_ns: int, stopped: Callable[[], bool]) -> None:
        with path.open("rb") as stream:
            offset = len(stream.readline())
            file = _File(path, header, ahead_ns, offset)
            self.files.append(file)
            self.remarks.append((header.monotonic_ns + ahead_ns, (path.name, header)))
            next_ns = 0
            for number, line in enumerate(stream):
                if line.startswith(_DATA):
                    found = _TIME.search(line, 0, 80)
                    t_ns = int(found[1]) + ahead_ns if found else 0
                    if t_ns >= next_ns:
                        file.spots.append(_Spot(t_ns + _SLACK_NS, offset))
                        next_ns = t_ns + _STEP_NS
                    self.last_ns = max(self.last_ns, t_ns)
                else:
                    self._remark(path.name, line, ahead_ns)
                offset += len(line)
                if not number % 5000 and stopped():
                    return

    def _remark(self, name: str, line: bytes, ahead_ns: int) -> None:
        try:
            fields = decode(line.removesuffix(b"\n"))
            item = item_of(name, fields)
            if item is not None and isinstance(fields.get("t"), int):
                self.remarks.append((fields["t"] + ahead_ns, item))
                self.last_ns = max(self.last_ns, fields["t"] + ahead_ns)
        except (ValueError, KeyError, TypeError, IndexError):
            self.problems += 1

    @property
    def length_s(self) -> float:
        return max(self.last_ns - self.origin_ns, 0) / S

    def readings(self, begin_ns: int, end_ns: int) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
        """Data lines of a stretch: when, whose, and what."""
        for file in self.files:
            yield from _readings(file, begin_ns, end_ns)

    def tables(self, begin_ns: int, end_ns: int) -> list[tuple[Table, int]]:
        """The same as a run has them."""
        found: dict[tuple[str, tuple[Key, ...]], Table] = {}
        of_file: dict[str, list[Table]] = {}
        ahead: dict[str, int] = {}
        for file in self.files:
            tables = []
            for meter in file.header.meters:
                key = (meter.name, tuple(key_of(channel) for channel in meter.channels))
                tables.append(found.setdefault(key, Table(meter.channels)))
            of_file[file.path.name], ahead[file.path.name] = tables, file.ahead_ns
        for _, name, fields in self.readings(begin_ns, end_ns):
            _, item = item_of(name, fields) or ("", None)
            _put(item, of_file[name], ahead[name])
        return [(table, 0) for table in found.values()]


def _put(item: object, tables: Sequence[Table], ahead_ns: int) -> None:
    if isinstance(item, Raw):
        begun = begun_ns(item.took_ns, item.values)
        for table, took_ns, row, after_ns in zip(
            tables, item.took_ns, item.values, begun, strict=False
        ):
            if row is not None:
                table.tick(item.t_ns + ahead_ns, took_ns, row, after_ns)
    elif isinstance(item, Second):
        for table, asked, took_ns, seen in zip(
            tables, item.counts, item.took_ns, item.values, strict=False
        ):
            if seen is None:
                continue
            t_ns = item.t_ns + ahead_ns
            if isinstance(asked, int):
                table.second(item.from_ns + ahead_ns, t_ns, asked, took_ns, seen)
            else:
                table.second(t_ns - asked[1], t_ns - asked[2], asked[0], took_ns, seen, asked[2])


def _readings(
    file: _File, begin_ns: int, end_ns: int, offset: int | None = None
) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    name = file.path.name
    with file.path.open("rb") as stream:
        stream.seek(file.offset(begin_ns) if offset is None else offset)
        for line in stream:
            if not line.startswith(_DATA):
                continue
            found = _TIME.search(line, 0, 80)
            t_ns = int(found[1]) + file.ahead_ns if found else 0
            if t_ns > end_ns + _SLACK_NS:
                return
            if not begin_ns <= t_ns <= end_ns:
                continue
            try:
                yield t_ns, name, decode(line.removesuffix(b"\n"))
            except BadLine:
                continue


def _header_of(path: Path) -> Header | None:
    try:
        with path.open("rb") as stream:
            return header_from(decode(stream.readline().removesuffix(b"\n")), str(path))
    except (OSError, BadLine):
        return None
