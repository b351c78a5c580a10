"""Run files back into a run: streaming, line by line; whatever is wrong is named and left out,
never passed over in silence."""

from __future__ import annotations

import re
from binascii import crc32
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BufferedReader
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.channels import LONGEST_RUN_S, Mark
from ckptcost.first.core.units import YEAR_S
from ckptcost.first.errors import RunFileError
from ckptcost.first.runs.clocks import S
from ckptcost.first.runs.gaps import gaps_of, missing_parts, side_by_side
from ckptcost.first.runs.header import Header, header_from, periods_from
from ckptcost.first.runs.lines import MOST_READ, SEAL, BadLine, Raw, Second, begun_ns, decode
from ckptcost.first.runs.run import Node, Problem, Run, RunEvent
from ckptcost.first.runs.tables import Key, MeterReadings, MeterTable, Seals, key_of

# Many decimal numbers out of their text at once, to the bit what `float` makes of each.


_COMMA, _DOT, _ZERO = b",.0"
_NONE = np.frombuffer(b"nan", np.uint8)
_MOST_DIGITS = 15
_WIDEST = 31
"""characters of a number that is looked at here"""
_TENS = 10.0 ** np.arange(_MOST_DIGITS + 1)

Floats = NDArray[np.float64]


def parse_floats(text: bytes) -> Floats:
    """Numbers with commas between. Raises ValueError where one of them is none.

    >>> parse_floats(b"1.0,22.125,-3,4e2,nan").tolist()
    [1.0, 22.125, -3.0, 400.0, nan]
    """
    raw = np.frombuffer(text, np.uint8)
    is_dot = raw == _DOT
    marks = np.flatnonzero((raw == _COMMA) | is_dot)
    of_dots = is_dot[marks]
    ends = np.append(marks[~of_dots], len(raw))
    begins = np.concatenate([[0], ends[:-1] + 1])
    width = ends - begins
    place = np.full(len(ends), _WIDEST)
    """of the dot in its number"""
    dotted = np.cumsum(~of_dots)[of_dots]
    place[dotted] = marks[of_dots] - begins[dotted]
    alike = (np.minimum(width, _WIDEST) * (_WIDEST + 1) + np.minimum(place, _WIDEST)).astype(
        np.int16
    )
    order = np.argsort(alike, kind="stable")
    cuts = np.flatnonzero(np.diff(alike[order])) + 1
    found = np.empty(len(ends))
    for group in np.split(order, cuts):
        one = group[0]
        found[group] = _alike(raw, begins[group], ends[group], int(width[one]), int(place[one]))
    return found


def _alike(
    raw: NDArray[np.uint8],
    begins: NDArray[np.intp],
    ends: NDArray[np.intp],
    width: int,
    place: int,
) -> Floats:
    """Numbers as wide as each other, with their dots at the same place."""
    digits = [column for column in range(width) if column != place]
    found = np.empty(len(begins))
    odd = np.ones(len(begins), np.bool_)
    if 0 < len(digits) <= _MOST_DIGITS:
        read = raw[begins[:, None] + digits] - np.uint8(_ZERO)
        odd = read.max(axis=1) > 9
        whole = np.zeros(len(begins))
        for column in read.T:  # no product of matrices: it would be shared out among threads
            whole *= 10.0
            whole += column
        found = whole / _TENS[max(width - place - 1, 0)]
    if width == len(_NONE) and odd.any():
        none = odd & (raw[begins[:, None] + np.arange(width)] == _NONE).all(axis=1)
        found[none] = np.nan
        odd &= ~none
    for one in np.flatnonzero(odd).tolist():
        text = raw[begins[one] : ends[one]].tobytes()
        if b"_" in text or b" " in text:
            raise ValueError("not a number")
        found[one] = float(text)
    return found


# Lines of ticks, many at once: nine of ten lines of a run are ticks, and all of a part look alike
# but for their numbers. A line is taken here if it is written as `lines.raw_line` writes it and as
# wide as its header says; any other is left to whoever reads lines one by one and can say what is
# wrong with it.


AT_ONCE = 1024
_NUMBER = rb"\d{1,18}"
_LINE = re.compile(
    rb'\{"k":"raw","t":(%s),"d":\[(%s(?:,%s)*)\],"v":\[(.*)\]' % ((_NUMBER,) * 3), re.S
)
_DIGITS = b"0123456789.-+eE"
_MOST_SHAPES = 256
"""of lines of one part"""


class _Shape(NamedTuple):
    """What is left of a line's values without their digits, once understood."""

    asked: tuple[bool, ...]
    starts: tuple[int, ...]
    """by meter: its first number"""
    numbers: int
    """in all; a meter that was not asked has one, which is none"""


class RawLines:
    """Ticks of one part on their way into its tables."""

    def __init__(self, tables: Sequence[MeterTable]) -> None:
        self._tables = tables
        self._widths = [len(table.channels) for table in tables]
        self._commas = len(tables) - 1
        self._shapes: dict[bytes, _Shape | None] = {}
        self._lines: list[tuple[_Shape, bytes, bytes, bytes]] = []
        """shape, t, d and v"""
        self.whole: list[tuple[int, bytes]] = []
        """the same lines by their numbers, for who reads them one by one where these are none"""

    def take(self, number: int, line: bytes) -> bool:
        """Whether it is one of these; without its end of line. `number`: where it stands."""
        if not line.startswith(b'{"k":"raw"'):
            return False
        body = line[:-SEAL]
        found = _LINE.fullmatch(body)
        if found is None or line[-SEAL:] != b',"c":"%08x"}' % crc32(body):
            return False
        t, d, v = found.groups()
        key = v.translate(None, _DIGITS)
        shape = self._shapes[key] if key in self._shapes else self._shape(key)
        if shape is None or d.count(b",") != self._commas:
            return False
        self._lines.append((shape, t, d, v))
        self.whole.append((number, line))
        return True

    def _shape(self, key: bytes) -> _Shape | None:
        if len(self._shapes) >= _MOST_SHAPES:
            return None
        self._shapes[key] = shape = self._understood(key)
        return shape

    def _understood(self, key: bytes) -> _Shape | None:
        """What remains are brackets, commas and what has no answer.

        A row without brackets is of a meter that was not asked.
        """
        rows = re.findall(rb"\[[^\[\]]*\]|null", key)
        if b",".join(rows) != key or len(rows) != len(self._tables):
            return None
        starts, numbers = [], 0
        for row, width in zip(rows, self._widths, strict=True):
            starts.append(numbers)
            entries = row[1:-1].split(b",") if row != b"null" else [row]
            if any(entry not in (b"", b"null") for entry in entries):
                return None
            if row != b"null" and len(entries) != width:
                return None
            numbers += len(entries)
        return _Shape(tuple(row != b"null" for row in rows), tuple(starts), numbers)

    @property
    def full(self) -> bool:
        return len(self._lines) >= AT_ONCE

    def put(self) -> int | None:
        """Into the tables, all that were taken; the time of the last one, None where there is none.
        Raises ValueError where what should be numbers is none: nothing is added then."""
        if not self._lines:
            return None
        shapes, t, d, v = zip(*self._lines, strict=True)
        try:
            values = parse_floats(b",".join(v).replace(b"null", b"nan").translate(None, b"[]"))
        finally:
            self._lines = []
        if len(values) != sum(shape.numbers for shape in shapes):
            raise ValueError("a number too many or too few")
        if (np.abs(values) > MOST_READ).any():
            raise ValueError("a number that no meter has")
        self.whole = []
        t_ns = np.array([*map(int, t)], np.int64)
        took = np.array([*map(int, b",".join(d).split(b","))], np.int64).reshape(len(t), -1)
        asked = np.array([shape.asked for shape in shapes])
        begins = np.zeros(len(t), np.intp)
        np.cumsum([shape.numbers for shape in shapes[:-1]], out=begins[1:])
        starts = np.array([shape.starts for shape in shapes]) + begins[:, None]
        now = np.zeros(len(t), np.int64)  # each meter is asked when the one before has answered
        for i, table in enumerate(self._tables):
            here = asked[:, i]
            begun = np.minimum(now, took[:, i])
            now = np.where(here, np.maximum(now, took[:, i]), now)
            if here.any():
                places = starts[here, i, None] + np.arange(self._widths[i])
                table.ticks(np.stack([t_ns, took[:, i], begun], axis=1)[here], values[places])
        return int(t_ns.max())


LONGEST_LINE = 16_000_000
HIGHEST_RANK = 2**31 - 1
LONGEST_RUN_NS = round(LONGEST_RUN_S * S)
_NAMED = 20
"""bad lines of one part that are named one by one; the rest is counted"""
TOLD = 2000
"""lines from one word of how far reading is to the next"""
Tell = Callable[[float], None]
Clock = tuple[str, str]
"""host and boot: monotonic times mean the same"""


class ReadPart:
    """The lines of one part under its header. `feed` raises BadLine for a line that does not fit
    it."""

    def __init__(self, loading: Loading, name: str, header: Header) -> None:
        self.name, self.header, self.last_ns = name, header, header.monotonic_ns
        self.ended: str | None = None
        self._loading = loading
        self.clock = (header.host, header.boot)
        self._tables = [
            loading.table(self.clock, meter.name, meter.channels) for meter in header.meters
        ]
        self._widths = [len(meter.channels) for meter in header.meters]
        self.raw = RawLines(self._tables)
        self._kinds: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
            "raw": self._raw,
            "second": self._second,
            "mark": self._mark,
            "event": self._event,
            "clock": self._pair,
            "periods": self._periods,
            "end": self._end,
        }
        loading.pairs.append((self.clock, header.monotonic_ns, header.wall_ns))
        self._learn(header.periods_s)

    def feed(self, fields: Mapping[str, Any]) -> None:
        take = self._kinds.get(fields["k"])
        if take is None:
            return  # of a newer minor version
        try:
            self._within_a_life(fields["t"])
            take(fields)
            self.last_ns = max(self.last_ns, fields["t"])
        except (
            KeyError,
            TypeError,
            ValueError,
            IndexError,
            OverflowError,
            AttributeError,
        ) as error:
            raise BadLine(f"a {fields['k']} line that does not fit its header") from error

    def put_raw(self) -> list[tuple[int, BadLine]]:
        """The ticks that `raw` took, into the tables; those that do not fit, by their line."""
        try:
            last_ns = self.raw.put()
        except ValueError:
            lines, self.raw.whole = self.raw.whole, []
            return list(self._one_by_one(lines))
        self.last_ns = self.last_ns if last_ns is None else max(self.last_ns, last_ns)
        return []

    def _one_by_one(self, lines: Sequence[tuple[int, bytes]]) -> Iterator[tuple[int, BadLine]]:
        for number, line in lines:
            try:
                self.feed(decode(line))
            except BadLine as error:
                yield number, error

    def tick(self, raw: Raw) -> None:
        self._fits(raw.values)
        begun = begun_ns(raw.took_ns, raw.values)
        for table, took_ns, row, after_ns in zip(
            self._tables, raw.took_ns, raw.values, begun, strict=True
        ):
            if row is not None:
                table.tick(raw.t_ns, took_ns, row, after_ns)
        self.last_ns = max(self.last_ns, raw.t_ns)

    def second(self, second: Second) -> None:
        self._fits(second.values)
        t_ns = second.t_ns
        for i, row in enumerate(second.values):
            if row is None:
                continue
            table, n, took_ns = self._tables[i], second.counts[i], second.took_ns[i]
            if isinstance(n, int):
                table.second(second.from_ns, t_ns, n, took_ns, row)
            else:
                table.second(t_ns - n[1], t_ns - n[2], n[0], took_ns, row, n[2])
        self.last_ns = max(self.last_ns, t_ns)

    def _within_a_life(self, t_ns: int) -> None:
        if abs(t_ns - self.header.monotonic_ns) > LONGEST_RUN_NS:
            raise ValueError("an instant that no clock of this machine showed")

    def _raw(self, f: Mapping[str, Any]) -> None:
        _believed(f["v"])
        self.tick(Raw(f["t"], f["d"], f["v"]))

    def _second(self, f: Mapping[str, Any]) -> None:
        _believed(f["v"])
        self._within_a_life(f["from"])
        self.second(Second(f["from"], f["t"], f["n"], f["d"], f["v"]))

    def _fits(self, rows: Sequence[Sequence[Any] | None]) -> None:
        for row, width in zip(rows, self._widths, strict=True):
            if row is not None and len(row) != width:
                raise ValueError(f"{len(row)} values for {width} channels")

    def _mark(self, f: Mapping[str, Any]) -> None:
        if not 0 <= int(f["rank"]) <= HIGHEST_RANK:
            raise ValueError("no job has such a rank")
        mark = Mark(
            0.0,
            str(f["name"]),
            str(f["window"]),
            int(f["rank"]),
            str(f["by"]),
            dict(f.get("detail") or {}),
        )
        self._loading.marks.append((self.clock, int(f["t"]), mark))

    def _event(self, f: Mapping[str, Any]) -> None:
        event = RunEvent(
            0.0,
            str(f["name"]),
            str(f["domain"]),
            str(f["text"]),
            self.header.host,
            dict(f.get("detail") or {}),
        )
        self._loading.events.append((self.clock, int(f["t"]), event))

    def _pair(self, f: Mapping[str, Any]) -> None:
        self._loading.pairs.append((self.clock, int(f["t"]), int(f["w"])))

    def _periods(self, f: Mapping[str, Any]) -> None:
        self._learn(periods_from(f["v"]))

    def _learn(self, periods_s: tuple[tuple[float, ...], ...]) -> None:
        known = self._loading.periods.setdefault(self.header.host, {})
        for meter, of_meter in zip(self.header.meters, periods_s, strict=False):
            known.update(
                {key_of(c): p for c, p in zip(meter.channels, of_meter, strict=False) if p == p}
            )

    def _end(self, f: Mapping[str, Any]) -> None:
        self.ended = str(f["why"])


def _believed(rows: Sequence[Sequence[Any] | None]) -> None:
    """Raises ValueError for a number that no meter has, of which sums would not be finite."""
    for row in rows:
        for entry in row or ():
            number = entry[0] if type(entry) is list else entry
            if number is not None and abs(number) > MOST_READ:
                raise ValueError(f"{number:g} is no reading")


class Loading:
    """A run while its parts come in, in any order."""

    def __init__(self, tell: Tell | None = None, seals: bool = False) -> None:
        """`tell` is told now and then how many bytes of the files were read; `seals`: readings of a
        long run are kept small."""
        self._tell, self._read_bytes = tell, 0
        self._seals = Seals() if seals else None
        self.parts: list[ReadPart] = []
        self.problems: list[Problem] = []
        self.marks: list[tuple[Clock, int, Mark]] = []
        self.events: list[tuple[Clock, int, RunEvent]] = []
        self.pairs: list[tuple[Clock, int, int]] = []
        self.periods: dict[str, dict[Key, float]] = {}
        self._tables: dict[tuple[Clock, str, tuple[Key, ...]], MeterTable] = {}

    def table(self, clock: Clock, meter: str, channels: Any) -> MeterTable:
        key = (clock, meter, tuple(key_of(channel) for channel in channels))
        if key not in self._tables:
            self._tables[key] = MeterTable(channels, self._seals)
        return self._tables[key]

    @property
    def values(self) -> int:
        """Numbers that are held unsealed."""
        return sum(sum(table.size) * len(table.channels) for table in self._tables.values())

    def part(self, name: str, header: Header) -> ReadPart:
        self.parts.append(ReadPart(self, name, header))
        return self.parts[-1]

    def read(self, path: Path, run: str = "") -> None:
        """One file; a file of another run is not read."""
        with path.open("rb") as file:
            if first := file.readline(LONGEST_LINE):
                part = self._begin(path, first, run)
                if part is None:
                    return
                self._read_lines(part, file)
            else:
                self._say(path.name, 0, "empty: its writer was stopped before the first line")
        self._read_bytes += path.stat().st_size

    def _begin(self, path: Path, line: bytes, run: str) -> ReadPart | None:
        """The part whose header this is; None where it is none, of another run, or a copy."""
        try:
            header = header_from(decode(line.removesuffix(b"\n")), str(path))
        except BadLine as error:
            self._say(
                path.name,
                1,
                f"no header ({error}), so that nothing in this file can be understood",
            )
            return None
        if run and header.run != run:
            return None
        if twin := next((p for p in self.parts if p.header == header), None):
            self._say(path.name, 0, f"a copy of {twin.name}, not counted twice")
            return None
        return self.part(path.name, header)

    def _read_lines(self, part: ReadPart, file: BufferedReader) -> None:
        """All after the header."""
        number, torn, raw, tell = 1, "", part.raw, self._tell
        bad: list[tuple[int, BadLine]] = []
        while line := file.readline(LONGEST_LINE):
            number += 1
            if number % TOLD == 0 and tell is not None:
                tell(self._read_bytes + file.tell())
            whole = line.removesuffix(b"\n")
            try:
                if not raw.take(number, whole):
                    fields = decode(whole)
                    if fields["k"] == "raw":  # ticks stay in their order
                        bad += part.put_raw()
                    part.feed(fields)
                elif raw.full:
                    bad += part.put_raw()
            except BadLine as error:
                if line.endswith(b"\n") or file.peek(1):
                    bad.append((number, error))
                else:
                    torn = _torn(line)
        bad += part.put_raw()
        for at, why in sorted(bad, key=lambda one: one[0])[:_NAMED]:
            self._say(part.name, at, f"{why}; this line is left out")
        self._say(part.name, number, torn)
        if len(bad) > _NAMED:
            said = f"{len(bad)} bad lines in all; the first {_NAMED} are named, all are left out"
            self._say(part.name, 0, said)

    def _say(self, name: str, line: int, problem: str) -> None:
        if problem:
            self.problems.append(Problem(name, line, problem))

    def _origin(self) -> tuple[Header, dict[Clock, int], int]:
        """The first header, what to add to each clock to land on its, and the run's first
        instant."""
        first = min(self.parts, key=lambda part: (part.header.wall_ns, part.header.part)).header
        ahead = self._clocks((first.host, first.boot))
        origin_ns = min(part.header.monotonic_ns + ahead[part.clock] for part in self.parts)
        return first, ahead, origin_ns

    def forget(self, before_s: float) -> None:
        """Let go of readings, marks and events before an instant of the run."""
        _, ahead, origin_ns = self._origin()
        before_ns = {clock: origin_ns + round(before_s * S) - ns for clock, ns in ahead.items()}
        for (clock, *_), table in self._tables.items():
            table.forget(before_ns[clock])
        self.marks = [mark for mark in self.marks if mark[1] >= before_ns[mark[0]]]
        self.events = [event for event in self.events if event[1] >= before_ns[event[0]]]

    def finish(self, since_s: float | None = None) -> Run:
        """The run so far; `since_s`: with copies of the readings from then on, which stay as they
        are while more come in."""
        first, ahead, origin_ns = self._origin()

        def at_s(clock: Clock, t_ns: int) -> float:
            return (t_ns + ahead[clock] - origin_ns) / S

        since_ns = None if since_s is None else origin_ns + round(since_s * S)
        hosts = sorted({part.header.host for part in self.parts})
        nodes = tuple(self._node(host, ahead, origin_ns, since_ns) for host in hosts)
        marks = self.marks
        if len(nodes) > 1:
            marks = [(clock, t_ns, _with_host(mark, clock[0])) for clock, t_ns, mark in marks]
        pairs = sorted(
            (at_s(clock, t_ns), wall_ns / S)
            for clock, t_ns, wall_ns in self.pairs
            if clock == (first.host, first.boot)
        )
        ends = {part.name: at_s(part.clock, part.last_ns) for part in self.parts}
        _check_length(max(ends.values()), first.run)
        return Run(
            id=first.run,
            nodes=nodes,
            marks=tuple(
                sorted(
                    (mark._replace(t_s=at_s(clock, t_ns)) for clock, t_ns, mark in marks),
                    key=lambda mark: (mark.t_s, mark.rank),
                )
            ),
            events=tuple(
                sorted(
                    (event._replace(t_s=at_s(clock, t_ns)) for clock, t_ns, event in self.events),
                    key=lambda event: event.t_s,
                )
            ),
            gaps=tuple(chain.from_iterable(map(gaps_of, nodes))),
            problems=(*self.problems, *self._of_the_whole()),
            simulated=any(part.header.simulated for part in self.parts),
            ended=self._has_ended(ends),
            wall=tuple(pairs),
            duration_s=max(ends.values()),
        )

    def _has_ended(self, ends_s: Mapping[str, float]) -> bool:
        """The last recorder of meters said so; where none has meters, the last of all."""
        metered = [part for part in self.parts if part.header.meters] or self.parts
        return max(metered, key=lambda part: ends_s[part.name]).ended is not None

    def _node(
        self, host: str, ahead: Mapping[Clock, int], origin_ns: int, since_ns: int | None
    ) -> Node:
        headers = sorted(
            (part.header for part in self.parts if part.header.host == host),
            key=lambda h: (h.wall_ns, h.rank, h.part),
        )
        newest = next((header for header in reversed(headers) if header.meters), headers[-1])
        tables: list[tuple[MeterReadings, int]] = []
        for (clock, *_), table in self._tables.items():
            if clock[0] == host:
                some = (
                    table.stretches if since_ns is None else [table.since(since_ns - ahead[clock])]
                )
                tables += zip(some, repeat(ahead[clock]), strict=False)
        meters = [meter for header in (*headers, newest) for meter in header.meters]
        channels = {key_of(channel): channel for meter in meters for channel in meter.channels}
        return Node(
            host,
            tuple(headers),
            tuple(tables),
            origin_ns,
            tuple(channels.values()),
            self.periods.get(host, {}),
        )

    def _of_the_whole(self) -> list[Problem]:
        """What no file alone shows."""
        return [
            *missing_parts([part.header for part in self.parts]),
            *side_by_side([(part.header, part.last_ns) for part in self.parts]),
        ]

    def _clocks(self, first: Clock) -> dict[Clock, int]:
        """By clock what to add to land on the first: 0 for itself, else by wall time, as the median
        of its pairs has it."""
        wall = {}
        for clock in {pair[0] for pair in self.pairs}:
            wall[clock] = int(
                np.median([wall_ns - t_ns for of, t_ns, wall_ns in self.pairs if of == clock])
            )
        return {clock: ahead_ns - wall[first] for clock, ahead_ns in wall.items()}


def _check_length(duration_s: float, run: str) -> None:
    if duration_s > LONGEST_RUN_S:
        raise RunFileError(
            f"its parts lie {duration_s / YEAR_S:,.0f} years apart",
            where=run,
            remedy="the clock of one of them was wrong: read them one by one",
        )


def _with_host(mark: Mark, host: str) -> Mark:
    return mark._replace(detail={**mark.detail, "host": host})


def _torn(line: bytes) -> str:
    if zeros := len(line) - len(line.rstrip(b"\0")):
        return (
            f"it ends in {zeros} zero bytes: the power went before the last lines were on the disk;"
            " what is before them is kept"
        )
    return "the last line is cut off, as after a kill or a crash; what is before it is kept"


def load(path: Path | str, run: str = "", tell: Tell | None = None) -> Run:
    """A run from its directory, or from one file of it. `run` (the beginning of its id is enough)
    chooses where there are several; `tell` is told now and then what share of the files was read.

    Raises RunFileError where there is no run to be had.
    """
    path = Path(path)
    try:
        files = _files(path)
        all_bytes = max(sum(file.stat().st_size for file in files), 1)
        loading = Loading(
            None if tell is None else lambda read: tell(min(read / all_bytes, 1.0)), seals=True
        )
        chosen = _chosen(sorted({*map(_run_of, files)} - {""}), run, str(path))
        for file in files:
            loading.read(file, chosen)
    except OSError as error:
        raise RunFileError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if not loading.parts:
        why = (
            f"not a run: {loading.problems[0].text}"
            if loading.problems
            else "no run in here: there is no .jsonl file"
        )
        raise RunFileError(
            why,
            where=str(path),
            remedy="A run is the directory that `ckptcost` records into, or one .jsonl file of it",
        )
    return loading.finish()


def _run_of(path: Path) -> str:
    """The run id in a file's first line; empty where there is none."""
    with path.open("rb") as file:
        line = file.readline(LONGEST_LINE)
    try:
        fields = decode(line.removesuffix(b"\n"))
        return header_from(fields, str(path)).run
    except BadLine:
        return ""


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(
            entry for entry in path.iterdir() if entry.suffix == ".jsonl" and entry.is_file()
        )
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise RunFileError("is neither a folder nor a file", where=str(path), remedy="name a run")
    return [path]


def _chosen(ids: Sequence[str], run: str, where: str) -> str:
    """The one run that begins so; empty where there is none at all."""
    fits = [name for name in ids if name.startswith(run)]
    if len(fits) > 1:
        raise RunFileError(
            f"there are {len(fits)} runs in here",
            where=where,
            remedy=f"choose one by its id: {', '.join(fits)}",
        )
    if ids and not fits:
        raise RunFileError(
            f"no run whose id begins with {run!r}", where=where, remedy=f"there is {', '.join(ids)}"
        )
    return fits[0] if fits else ""
