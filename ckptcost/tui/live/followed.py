"""A run that another process is writing: its files are read as they grow, and nothing is written or
ended by us."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ckptcost.runs import store
from ckptcost.runs.follow import follow
from ckptcost.runs.live import MISFITS, item_of
from ckptcost.tui.desk import Desk
from ckptcost.tui.live.board import LiveBoard
from ckptcost.tui.live.picture import Status
from ckptcost.tui.live.reading import Live, idle_of
from ckptcost.tui.live.source import Actions, Kind

SILENT_S = 10.0
"""a recorder writes each second; one that was silent for so long may be dead"""
_PILE = 50_000
"""lines read and not absorbed yet: then reading waits"""


class Followed(Live):
    """Reads in a thread of its own in any case, because the files decide when there is
    something."""

    kind: Kind = "followed"

    def __init__(
        self,
        run: str,
        desk: Desk,
        *,
        threaded: bool = True,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Raises InputError where there is no such run."""
        found = store.found(run)
        self.folder: Path | None = found.path
        self._path = found.path
        store.kept_at(found.path)
        self._last_wall_s = time.monotonic()
        self._stop = threading.Event()
        self._idle_sought = False
        super().__init__(desk, LiveBoard(), threaded=threaded, clock=clock)

    @property
    def title(self) -> str:
        return self._path.resolve().name

    @property
    def actions(self) -> Actions:
        return Actions(stop=not self._over)

    def _begin(self) -> None:
        thread = threading.Thread(target=self._tail, name="ckptcost-live-follows", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _tail(self) -> None:
        try:
            for line in follow(
                self._path, stop=self._stop.is_set, wait=lambda s: void(self._stop.wait(s))
            ):
                if self._stop.is_set():
                    return
                self._take(line.part, line.fields, line.problem)
                while len(self._items) > _PILE and not self._stop.wait(0.05):
                    pass
        except Exception as error:
            self._problem = f"the run can no longer be read: {error}"

    def _take(self, part: str, fields: Mapping[str, Any], problem: str) -> None:
        try:
            item = None if problem else item_of(part, fields)
        except MISFITS:
            problem, item = "it does not fit", None
        if problem:
            with self.board.lock:
                self.board.bad_lines += 1
        if item is not None:
            self._items.append(item)
            self._last_wall_s = time.monotonic()

    def _turn(self, now_s: float) -> None:
        if not self._idle_sought and self.board.headers:
            self._idle_sought = True
            self.board.idle = None if self.board.simulated else idle_of(self.board.host)
        if self.board.ended and not self._items:
            self._over = True

    def _end(self, within_s: float | None) -> str:
        self._stop.set()
        return ""

    def _status(self) -> Status:
        silent_s = time.monotonic() - self._last_wall_s
        troubles = self._troubles()
        if not self._over and silent_s > SILENT_S:
            troubles.append(
                f"Nothing has been written for {round(silent_s)} s: the recorder may have ended"
                " without saying so."
            )
        exit_ = self.board.exit_status
        about = (
            ""
            if not self._over
            else "its recorder has ended" + ("" if exit_ is None else f", exit {exit_}")
        )
        return Status(
            self.kind,
            self.title,
            state="ended" if self._over else None,
            about=about,
            own_cpu=self._own_cpu(),
            file_bytes=self._bytes(),
            troubles=tuple(troubles),
        )


def void(_: object) -> None:
    """For a callback whose answer nobody wants."""
