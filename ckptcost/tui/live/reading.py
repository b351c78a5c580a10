"""What all sources share: a board, a thread that reads, one that evaluates, and answers that are
quick."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from math import nan
from pathlib import Path

from ckptcost.errors import CkptcostError
from ckptcost.present.grid import Grid
from ckptcost.runs.baselines import Idle, file_of, load
from ckptcost.runs.header import host_name
from ckptcost.runs.live import Named
from ckptcost.tui.desk import Desk
from ckptcost.tui.live.board import LiveBoard
from ckptcost.tui.live.picture import Picture, Status
from ckptcost.tui.live.source import SPAN_S, Actions, Kind, LiveView
from ckptcost.tui.live.tables import outliers_grid

TURN_S = 0.2
"""a reading thread looks so often"""
_WAITING = 500_000
"""records that wait for a thread that is held up"""
_PIECE_S = 0.01
"""so long the screen may have to wait for a piece"""
_WORK_S, _REST_S = 0.001, 0.002
"""of who evaluates, by turns"""
_CPU_OVER_S = 2.0
_LATE_S = 2.0


def idle_of(host: str = "") -> Idle | None:
    """What was learned of this host; without it joules above idle are unknown."""
    try:
        return load(file_of(host or host_name()))
    except CkptcostError:
        return None


class Live:
    """A source without its own way of reading: subclasses give `_begin`, `_turn`, `_end` and
    `_status`."""

    kind: Kind = "own"

    def __init__(
        self,
        desk: Desk,
        board: LiveBoard,
        *,
        threaded: bool,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.board = board
        self.board.price(desk)
        self._desk = desk
        self._items: deque[Named] = deque(maxlen=_WAITING)
        self._clock = clock or time.monotonic
        self._threaded = threaded
        self._threads: list[threading.Thread] = []
        self._ending = threading.Event()
        self._stop_lock = threading.Lock()
        self._piece = 20
        self._rested_s = 0.0
        self._picture = Picture()
        self._seen = 0
        self._over = self._begun = self._stopped = self._hurried = False
        self._problem = ""
        self._cpu: deque[tuple[float, float]] = deque(maxlen=16)
        self._size: tuple[float, float] = (-1e9, nan)

    # what a source gives

    def _begin(self) -> None:
        """Raises CkptcostError."""

    def _turn(self, now_s: float) -> None:
        """Bring what is new into `_items`, or set `_over`."""

    def _end(self, within_s: float | None) -> str:
        """A sentence on how it ended."""
        return ""

    def _status(self) -> Status:
        """Asked for every picture."""
        return Status(self.kind, self.title)

    folder: Path | None = None
    speed = 1.0
    paused = False

    @property
    def title(self) -> str:
        return ""

    @property
    def actions(self) -> Actions:
        return Actions(stop=not self._over)

    def _hasten(self) -> None:
        """Somebody quits while another thread is in `_end`: that one need not wait any longer."""

    def _left(self) -> str:
        """What there is to say of an end however often it is asked for: what goes on, what was not
        written."""
        return ""

    # what all do

    @property
    def host(self) -> str:
        return self.board.host

    @property
    def simulated(self) -> bool:
        return self.board.simulated

    @property
    def over(self) -> bool:
        return self._over

    @property
    def position_s(self) -> float:
        return max(self.board.last_s, 0.0)

    @property
    def length_s(self) -> float:
        return max(self.board.last_s, 0.0)

    def start(self) -> None:
        if self._begun:
            return
        self._begin()
        with self._stop_lock:
            self._begun, late = True, self._stopped
        if late:  # somebody left while it began
            self._end(_LATE_S)
            self._over = True
            return
        if self._threaded:
            for name, loop in (("reads", self._read), ("evaluates", self._evaluate)):
                thread = threading.Thread(target=loop, name=f"ckptcost-live-{name}", daemon=True)
                self._threads.append(thread)
                thread.start()
        else:
            self._step(self._clock())

    def stop(self, within_s: float | None = None) -> str:
        if within_s is not None:
            self._hurried = True
            self._hasten()
        if not self._stop_lock.acquire(timeout=-1.0 if within_s is None else within_s):
            return self._left()
        try:
            if self._stopped:
                return self._left()
            self._stopped = True
            said = self._end(within_s) if self._begun else ""
            self._ending.set()
        finally:
            self._stop_lock.release()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(2.0 if within_s is None else 0.1)
        self._over = True
        self._absorb()
        self.board.turn(over=True)
        if within_s is None:
            until_s = time.monotonic() + 5.0
            while not self._hurried and self.board.work() and time.monotonic() < until_s:
                pass
        return said or self._left()

    def pump(self, now_s: float | None = None) -> int:
        if not self._threaded and self._begun and not self._ending.is_set():
            self._step(self._clock() if now_s is None else now_s)
        new, self._seen = self.board.records - self._seen, self.board.records
        wall_s = time.monotonic()
        if not self._cpu or wall_s - self._cpu[-1][0] >= 0.5:
            self._cpu.append((wall_s, time.process_time()))
        return max(new, 0)

    def mark(self, name: str = "") -> str:
        return "nothing can be marked here"

    def set_speed(self, speed: float) -> None:
        """Of what cannot be hurried: nothing."""

    def pause(self, paused: bool) -> None:
        """Of what cannot wait: nothing."""

    def seek(self, to_s: float) -> None:
        """Of what goes on by itself: nothing."""

    def price(self, desk: Desk) -> None:
        self._desk = desk
        self.board.price(desk)

    def view(
        self,
        span_s: float = SPAN_S,
        end_s: float | None = None,
        per_gpu: bool = False,
        gpu: str = "",
    ) -> LiveView:
        return self._picture.view(self.board, self._status(), span_s, end_s, per_gpu, gpu)

    def outliers(self) -> Grid:
        with self.board.lock:
            return outliers_grid(self.board)

    def busy(self) -> str:
        return ""

    # how it works

    def _step(self, now_s: float) -> None:
        self._turn(now_s)
        self._absorb()
        self.board.turn(self._over)
        while self.board.work():
            pass

    def _absorb(self) -> None:
        """What waits, in pieces, so that the screen gets its turn: of hundreds of GPUs in smaller
        ones."""
        while self._items:
            piece = []
            with contextlib.suppress(IndexError):
                for _ in range(self._piece):
                    piece.append(self._items.popleft())
            began_s = time.monotonic()
            self.board.absorb(piece)
            self._piece = (
                min(2 * self._piece, 200)
                if time.monotonic() - began_s < _PIECE_S
                else max(self._piece // 2, 1)
            )
            if self._threaded:
                time.sleep(
                    0.0002
                )  # else who waits for the lock does not get it before the next piece does

    def _read(self) -> None:
        while not self._ending.is_set():
            try:
                self._turn(self._clock())
                self._absorb()
                self.board.turn(self._over)
            except (
                Exception
            ) as error:  # a defect of ours: the recording goes on, and the screen says it
                self._problem = f"the screen's reader failed: {type(error).__name__}: {error}"
                self._ending.wait(1.0)
            self._ending.wait(TURN_S)

    def _evaluate(self) -> None:
        while not self._ending.is_set():
            try:
                worked = self.board.work(self._breathe)
            except Exception as error:
                self._problem = (
                    f"a checkpoint could not be evaluated: {type(error).__name__}: {error}"
                )
                worked = False
                self.board.skip()
            self._ending.wait(0.01 if worked else TURN_S)

    def _breathe(self) -> None:
        """Some work, some rest: who draws gets the interpreter at once, and a checkpoint is
        evaluated in three times its processor time."""
        now_s = time.monotonic()
        if now_s - self._rested_s > _WORK_S and not self._ending.is_set():
            time.sleep(_REST_S)
            self._rested_s = time.monotonic()

    def _own_cpu(self) -> float:
        """Share of one core that this program took lately, the screen with it."""
        if len(self._cpu) < 2 or self._cpu[-1][0] - self._cpu[0][0] < _CPU_OVER_S:
            return nan
        (from_s, from_cpu_s), (to_s, to_cpu_s) = self._cpu[0], self._cpu[-1]
        return (to_cpu_s - from_cpu_s) / (to_s - from_s)

    def _bytes(self) -> float:
        """Of the run's files; looked at every few seconds."""
        now_s = time.monotonic()
        if self.folder is not None and now_s - self._size[0] > 3.0:
            try:
                sizes = (
                    [entry.stat().st_size for entry in self.folder.glob("*.jsonl")]
                    if self.folder.is_dir()
                    else [self.folder.stat().st_size]
                )
                self._size = (now_s, float(sum(sizes)))
            except OSError:
                self._size = (now_s, nan)
        return self._size[1]

    def _troubles(self) -> list[str]:
        return [self._problem] if self._problem else []
