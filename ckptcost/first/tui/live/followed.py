"""A run that another process is writing: its files are read as they grow, and nothing is written or
ended by us."""

from __future__ import annotations

import time

from ckptcost.first.present.amounts import duration
from ckptcost.first.runs import store
from ckptcost.first.runs.follow import FollowedLine, follow
from ckptcost.first.runs.live import MISFITS, item_of
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.live.board import LiveBoard
from ckptcost.first.tui.live.picture import LiveStatus
from ckptcost.first.tui.live.reading import LiveSource, idle_of
from ckptcost.first.tui.live.source import Kind

SILENT_S = 10.0
"""a recorder writes each second; one that was silent for so long may be dead"""
_PILE = 50_000
"""lines read and not absorbed yet: then reading waits"""


class Followed(LiveSource):
    """Reads in a thread of its own in any case, because the files decide when there is
    something."""

    kind: Kind = "followed"

    def __init__(self, run: str, desk: Desk) -> None:
        """Raises InputError where there is no such run."""
        self._path = self.folder = store.find_run(run).path
        store.kept_at(self._path)
        self.title = self._path.resolve().name
        self._last_wall_s = time.monotonic()
        self._idle_sought = False
        super().__init__(desk, LiveBoard(), threaded=True)

    def _begin(self) -> None:
        self._run("follows", self._tail)

    def _tail(self) -> None:
        def wait(for_s: float) -> None:
            self._ending.wait(for_s)

        try:
            for line in follow(self._path, stop=self._ending.is_set, wait=wait):
                if self._ending.is_set():
                    return
                self._take(line)
                while len(self._items) > _PILE and not self._ending.wait(0.05):
                    pass
        except Exception as error:
            self._problem = f"the run can no longer be read: {error}"

    def _take(self, line: FollowedLine) -> None:
        bad = bool(line.problem)
        try:
            item = None if bad else item_of(line.part, line.fields)
        except MISFITS:
            bad, item = True, None
        with self.board.lock:
            self.board.bad_lines += bad
        if item is not None:
            self._items.append(item)
            self._last_wall_s = time.monotonic()

    def _turn(self, now_s: float) -> None:
        if not self._idle_sought and self.board.headers:
            self._idle_sought = True
            self.board.idle = None if self.board.simulated else idle_of(self.board.host)
        if self.board.ended and not self._items:
            self.over = True

    def _end(self, within_s: float | None) -> str:
        self._ending.set()
        return ""

    @property
    def silent_s(self) -> float:
        silent_s = time.monotonic() - self._last_wall_s
        return 0.0 if self.over or silent_s <= SILENT_S else float(round(silent_s))

    def _status(self) -> LiveStatus:
        if not self.over:
            return super()._status()._replace(silent_s=self.silent_s)
        exit_ = self.board.exit_status
        told = "its recorder has ended" + ("" if exit_ is None else f", exit {exit_}")
        return super()._status()._replace(about=told)

    def _troubles(self) -> list[str]:
        troubles = super()._troubles()
        if silent_s := self.silent_s:
            troubles.append(
                f"Nothing has been written for {duration(silent_s)}: the recorder may have ended"
                " without saying so."
            )
        return troubles
