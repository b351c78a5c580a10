"""A recorded run, read again at a speed, with pause and jumps. What was evaluated once is kept over
jumps."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isnan
from pathlib import Path
from typing import Any

from ckptcost.errors import InputError, RunFileError
from ckptcost.runs import store
from ckptcost.runs.clocks import S
from ckptcost.tui.desk import Desk
from ckptcost.tui.live.board import LiveBoard
from ckptcost.tui.live.followed import item_of
from ckptcost.tui.live.intake import Item
from ckptcost.tui.live.picture import Status
from ckptcost.tui.live.reading import Live, idle_of
from ckptcost.tui.live.source import Actions, Kind
from ckptcost.tui.live.tally import Seen
from ckptcost.tui.live.tape import Tape

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
        self._kept = mine[0]
        self._known: dict[tuple[str, float], Seen] = {}
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
            tables=tape.tables,
            known=self._known,
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


def _items(lines: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[Item]:
    """Those that fit; a torn line of a crash is passed over."""
    for name, fields in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError, IndexError):
            item = item_of(name, fields)
            if item is not None:
                yield item
