"""A recorded run, read again at a speed, with pause and jumps. What was evaluated once is kept over
jumps."""

from __future__ import annotations

import contextlib
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.errors import InputError, RunFileError
from ckptcost.jobs.account import Evaluation
from ckptcost.runs import store
from ckptcost.runs.clocks import S
from ckptcost.runs.header import Header, header_from
from ckptcost.runs.lines import BadLine, decode
from ckptcost.runs.live import MISFITS, Named, item_of
from ckptcost.runs.reader import load
from ckptcost.tui.desk import Desk
from ckptcost.tui.live.board import LiveBoard
from ckptcost.tui.live.picture import Status
from ckptcost.tui.live.reading import Live, idle_of
from ckptcost.tui.live.source import Actions, Kind

BACK_S = 600.0
"""after a jump the curves reach back so far"""
_MOST_S = 0.1
"""of work in one turn"""
_STEP_S = 10.0
"""is read at once: what stands out of order in the file is put right within it"""


class Replay(Live):
    """The index is made at `start`; then only what is played is read."""

    kind: Kind = "replay"

    def __init__(
        self,
        run: str,
        desk: Desk,
        *,
        speed: float = 1.0,
        threaded: bool = True,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Raises InputError or RunFileError where there is no such run."""
        found = store.found(run)
        kept = store.kept_at(found.path)
        mine = [one for one in kept if one.run == found.run] if found.run else kept
        if len(mine) > 1:
            raise InputError(
                f"holds {len(mine)} runs",
                where=str(found.path),
                remedy="name one by its id: " + ", ".join(k.run[:8] for k in mine),
            )
        if not mine:
            raise RunFileError("no run in here", where=str(found.path))
        self.folder: Path | None = found.path
        self._path = found.path
        self._kept = mine[0]
        self._evaluation: Evaluation | None = None
        self._tape: Tape | None = None
        self._played_ns = 0
        self._wanted: float | None = None
        self._since: tuple[float, float] = (0.0, 0.0)
        super().__init__(desk, LiveBoard(), threaded=threaded, clock=clock)
        self.speed = speed

    @property
    def title(self) -> str:
        return self._kept.name

    @property
    def actions(self) -> Actions:
        return Actions(pause=True, seek=True, speed=True)

    @property
    def length_s(self) -> float:
        return 0.0 if self._tape is None else self._tape.length_s

    @property
    def position_s(self) -> float:
        return 0.0 if self._tape is None else max(self._played_ns - self._tape.origin_ns, 0) / S

    def _begin(self) -> None:
        self._tape = Tape(
            [head.file for head in self._kept.heads], self._kept.run, stopped=self._ending.is_set
        )
        if not self._tape.files or not self._tape.last_ns:
            raise RunFileError("holds no readings", where=self._kept.name)
        self._rewound(0.0)
        self._since = (self._clock(), 0.0)

    def _rewound(self, to_s: float) -> None:
        """A board as it would be if the run had been played up to then."""
        tape = self._tape
        assert tape is not None
        from_ns = tape.origin_ns + round(max(to_s - BACK_S, 0.0) * S)
        simulated = any(file.header.simulated for file in tape.files)
        board = LiveBoard(
            idle=None if simulated else idle_of(tape.host),
            host=tape.host,
            whole=self._evaluated,
        )
        board.other_hosts = {host for host in tape.hosts if host != tape.host}
        board.bad_lines, board.partly = tape.problems, to_s > BACK_S
        board.price(self._desk)
        self._remarked = 0
        self._played_ns = min(from_ns, tape.origin_ns) - 1
        self._remarks(board, from_ns)
        self._played_ns = from_ns - 1
        self._play(board, tape.origin_ns + round(to_s * S), float("inf"))
        self.board, self._seen = board, -1

    def _evaluated(self, breathe: Callable[[], None]) -> Evaluation:
        """The whole run, read when its first checkpoint is over: what checkpoints took is then that
        of the report, wherever the tape stands."""
        if self._evaluation is None:
            run = load(self._path, self._kept.run)
            node = run.node(self.board.host)
            idle = None if run.simulated else idle_of(node.host)
            self._evaluation = Evaluation(run, idle, host=node.host, breathe=breathe)
        return self._evaluation

    def _remarks(self, board: LiveBoard, until_ns: int) -> None:
        """Marks and events up to then, with a turn of the book now and then so that old ones are
        settled on the way."""
        assert self._tape is not None
        remarks = self._tape.remarks
        count = 0
        while self._remarked < len(remarks) and remarks[self._remarked][0] <= until_ns:
            t_ns, item = remarks[self._remarked]
            board.absorb([item])
            self._remarked += 1
            count += 1
            if not count % 100:
                board.reach((t_ns - self._tape.origin_ns) / S)
                board.turn()

    def _play(self, board: LiveBoard, to_ns: int, most_s: float) -> bool:
        """False: the time for it ran out."""
        tape = self._tape
        assert tape is not None
        until_s = time.monotonic() + most_s
        to_ns = min(to_ns, tape.last_ns)
        while self._played_ns < to_ns:
            step_ns = min(to_ns, self._played_ns + round(_STEP_S * S))
            self._remarks(board, step_ns)
            lines = sorted(
                tape.readings(self._played_ns + 1, step_ns),
                key=lambda one: (one[0], one[2]["k"] == "second"),
            )
            board.absorb(_items((name, fields) for _, name, fields in lines))
            board.turn()
            self._played_ns = step_ns
            if time.monotonic() > until_s:
                return False
        return True

    def _turn(self, now_s: float) -> None:
        if self._wanted is not None:
            to_s, self._wanted = self._wanted, None
            self._rewound(to_s)
            self._since = (now_s, to_s)
            self._over = False
            return
        if self.paused or self._tape is None:
            self._since = (now_s, self.position_s)
            return
        real_s, played_s = self._since
        target_ns = self._tape.origin_ns + round((played_s + (now_s - real_s) * self.speed) * S)
        if not self._play(self.board, target_ns, _MOST_S if self._threaded else float("inf")):
            self._since = (now_s, self.position_s)
        self._over = self._played_ns >= self._tape.last_ns

    def set_speed(self, speed: float) -> None:
        self._since = (self._clock(), self.position_s)
        self.speed = speed

    def pause(self, paused: bool) -> None:
        self._since = (self._clock(), self.position_s)
        self.paused = paused

    def seek(self, to_s: float) -> None:
        if self._tape is not None and not isnan(to_s):
            self._wanted = min(max(to_s, 0.0), self._tape.length_s)

    def _status(self) -> Status:
        return Status(
            self.kind,
            self.title,
            state="ended" if self._over else None if self.board.records else "starting",
            speed=self.speed,
            paused=self.paused,
            length_s=self.length_s,
            own_cpu=self._own_cpu(),
            troubles=tuple(self._troubles()),
        )


def _items(lines: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[Named]:
    """Those that fit; a torn line of a crash is passed over."""
    for name, fields in lines:
        with contextlib.suppress(*MISFITS):
            item = item_of(name, fields)
            if item is not None:
                yield item


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
        self.remarks: list[tuple[int, Named]] = []
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
            self.remarks.append((header.monotonic_ns + ahead_ns, Named(path.name, header)))
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
        except MISFITS:
            self.problems += 1

    @property
    def length_s(self) -> float:
        return max(self.last_ns - self.origin_ns, 0) / S

    def readings(self, begin_ns: int, end_ns: int) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
        """Data lines of a stretch: when, whose, and what."""
        for file in self.files:
            yield from _readings(file, begin_ns, end_ns)


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
