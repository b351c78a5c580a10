"""A recorded run, read again at a speed, with pause and jumps. What was evaluated once is kept over
jumps."""

from __future__ import annotations

import contextlib
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from math import isnan
from pathlib import Path
from typing import Any

from ckptcost.first.errors import InputError, RunFileError
from ckptcost.first.jobs.account import Evaluation
from ckptcost.first.runs import store
from ckptcost.first.runs.clocks import S
from ckptcost.first.runs.header import Header
from ckptcost.first.runs.lines import BadLine, decode
from ckptcost.first.runs.live import MISFITS, Named, item_of
from ckptcost.first.runs.reader import load
from ckptcost.first.runs.store import Kept
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.live.board import LiveBoard
from ckptcost.first.tui.live.picture import LiveStatus
from ckptcost.first.tui.live.reading import Played, idle_of
from ckptcost.first.tui.live.source import Actions, Kind

BACK_S = 600.0
"""after a jump the curves reach back so far"""
_STEP_S = 10.0
"""is read at once: what stands out of order in the file is put right within it"""


class Replay(Played):
    """The index is made at `start`; then only what is played is read."""

    kind: Kind = "replay"

    def __init__(
        self,
        run: str,
        desk: Desk,
        *,
        threaded: bool = True,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Raises InputError or RunFileError where there is no such run."""
        found = store.find_run(run)
        self._path = self.folder = found.path
        kept = [one for one in store.kept_at(found.path) if not found.run or one.run == found.run]
        if len(kept) > 1:
            raise InputError(
                f"holds {len(kept)} runs",
                where=str(found.path),
                remedy="name one by its id: " + ", ".join(k.run[:8] for k in kept),
            )
        if not kept:
            raise RunFileError("no run in here", where=str(found.path))
        (self._kept,) = kept
        self.title = self._kept.name
        self._evaluation: Evaluation | None = None
        self._tape: Tape | None = None
        self._played_ns = 0
        self._wanted: float | None = None
        super().__init__(desk, LiveBoard(), threaded=threaded, clock=clock)

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
        self._tape = Tape(self._kept, self._ending.is_set)
        if not self._tape.files or not self._tape.last_ns:
            raise RunFileError("holds no readings", where=self._kept.name)
        self._rewind(0.0)
        self._since = (self._clock(), 0.0)

    def _rewind(self, to_s: float) -> None:
        """A board as it would be if the run had been played up to then."""
        tape = self._tape
        assert tape is not None
        from_ns = tape.origin_ns + round(max(to_s - BACK_S, 0.0) * S)
        simulated = any(file.header.simulated for file in tape.files)
        board = LiveBoard(
            idle=None if simulated else idle_of(tape.host), host=tape.host, whole=self._evaluated
        )
        board.other_hosts = tape.hosts - {tape.host}
        board.bad_lines, board.partly = tape.problems, to_s > BACK_S
        board.price(self._desk)
        self._remarked = 0
        self._remark(board, from_ns)
        self._played_ns = from_ns - 1
        self._play_into(board, to_s, float("inf"))
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

    def _remark(self, board: LiveBoard, until_ns: int) -> None:
        """Marks and events up to then, with a turn of the book now and then so that old ones are
        settled on the way."""
        assert self._tape is not None
        remarks, first = self._tape.remarks, self._remarked
        self._remarked = bisect_right(remarks, until_ns, key=lambda one: one[0])
        for count, (t_ns, item) in enumerate(remarks[first : self._remarked], start=1):
            board.absorb([item])
            if not count % 100:
                board.reach((t_ns - self._tape.origin_ns) / S)
                board.turn()

    def _play(self, to_s: float, most_s: float) -> bool:
        return self._play_into(self.board, to_s, most_s)

    def _play_into(self, board: LiveBoard, to_s: float, most_s: float) -> bool:
        tape = self._tape
        assert tape is not None
        until_s = time.monotonic() + most_s
        to_ns = min(tape.origin_ns + round(to_s * S), tape.last_ns)
        while self._played_ns < to_ns:
            step_ns = min(to_ns, self._played_ns + round(_STEP_S * S))
            self._remark(board, step_ns)
            lines = sorted(
                tape.readings(self._played_ns + 1, step_ns),
                key=lambda one: (one[0], one[2]["k"] == "second"),
            )
            for _, name, fields in lines:
                with contextlib.suppress(*MISFITS):  # a torn line of a crash is passed over
                    item = item_of(name, fields)
                    board.absorb([] if item is None else [item])
            board.turn()
            self._played_ns = step_ns
            if time.monotonic() > until_s:
                return False
        return True

    def _turn(self, now_s: float) -> None:
        if self._wanted is not None:
            to_s, self._wanted = self._wanted, None
            self._rewind(to_s)
            self._since, self.over = (now_s, to_s), False
        elif self._tape is not None:
            super()._turn(now_s)
            if not self.paused:
                self.over = self._played_ns >= self._tape.last_ns

    def seek(self, to_s: float) -> None:
        if not isnan(to_s):
            self._wanted = min(max(to_s, 0.0), self.length_s)

    def _status(self) -> LiveStatus:
        told = super()._status()._replace(length_s=self.length_s)
        return told if self.over or self.board.records else told._replace(state="starting")


_STEP_NS = 2 * S
"""an entry of the index for each"""
_SLACK_NS = 4 * S
"""lines stand out of order by so much: ticks around a mark are told after their second"""
_TIME = re.compile(rb'"t":(\d+)')
_DATA = (b'{"k":"raw"', b'{"k":"second"')


class _File:
    def __init__(self, path: Path, header: Header, ahead_ns: int) -> None:
        self.path, self.header, self.ahead_ns = path, header, ahead_ns
        self.times_ns, self.offsets = [0], [0]
        """the index: what lies before an offset is older than the time beside it"""

    def t_ns(self, line: bytes) -> int:
        found = _TIME.search(line, 0, 80)
        return int(found[1]) + self.ahead_ns if found else 0


class Tape:
    """One host of a run. Times are nanoseconds on the clock of its first file."""

    def __init__(self, kept: Kept, stopped: Callable[[], bool] = lambda: False) -> None:
        """Goes over every line once, without decoding readings: a day's file in about a second."""
        self.files: list[_File] = []
        self.remarks: list[tuple[int, Named]] = []
        """headers, marks, events and the like, by time"""
        self.problems = self.last_ns = 0
        heads = sorted(kept.heads, key=lambda head: (head.header.wall_ns, head.header.part))
        first = next((head.header for head in heads if head.header.meters), heads[0].header)
        self.host, self.origin_ns = first.host, first.monotonic_ns
        self.hosts = {head.header.host for head in heads}
        ahead = {first.boot: 0}
        for path, header in heads:
            if header.host == self.host and not stopped():
                wall_ns = first.wall_ns - first.monotonic_ns
                ahead.setdefault(header.boot, header.wall_ns - header.monotonic_ns - wall_ns)
                self._scan(_File(path, header, ahead[header.boot]), stopped)
        self.remarks.sort(key=lambda one: one[0])

    def _scan(self, file: _File, stopped: Callable[[], bool]) -> None:
        self.files.append(file)
        header, name = file.header, file.path.name
        self.remarks.append((header.monotonic_ns + file.ahead_ns, Named(name, header)))
        with file.path.open("rb") as stream:
            offset, next_ns = len(stream.readline()), 0
            file.offsets = [offset]
            for number, line in enumerate(stream):
                if line.startswith(_DATA):
                    t_ns = file.t_ns(line)
                    if t_ns >= next_ns:
                        file.times_ns.append(t_ns + _SLACK_NS)
                        file.offsets.append(offset)
                        next_ns = t_ns + _STEP_NS
                    self.last_ns = max(self.last_ns, t_ns)
                else:
                    self._remark(name, line, file.ahead_ns)
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
            place = bisect_right(file.times_ns, begin_ns) - 1
            with file.path.open("rb") as stream:
                stream.seek(file.offsets[max(place, 0)])
                for line in stream:
                    if line.startswith(_DATA):
                        t_ns = file.t_ns(line)
                        if t_ns > end_ns + _SLACK_NS:
                            break
                        if begin_ns <= t_ns <= end_ns:
                            with contextlib.suppress(BadLine):
                                yield t_ns, file.path.name, decode(line.removesuffix(b"\n"))
