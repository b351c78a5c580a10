"""What all sources share: a board, a thread that reads, one that evaluates, and answers that are
quick; and what those have whose time can be hurried or held."""

from __future__ import annotations

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from math import nan
from pathlib import Path

from ckptcost.first.errors import CkptcostError
from ckptcost.first.runs.baselines import Idle, file_of, load
from ckptcost.first.runs.header import host_name
from ckptcost.first.runs.live import Named
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.live.board import LiveBoard
from ckptcost.first.tui.live.picture import LivePicture, LiveStatus
from ckptcost.first.tui.live.source import SPAN_S, Actions, Kind, LiveView

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
_MOST_S = 0.1
"""of work in one turn: what cannot keep up with its speed is slower"""


def idle_of(host: str = "") -> Idle | None:
    """What was learned of this host; without it joules above idle are unknown."""
    try:
        return load(file_of(host or host_name()))
    except CkptcostError:
        return None


class LiveSource:
    """Where readings come from. Subclasses give `_begin`, `_turn` and `_end`. `start` and `stop`
    may take a moment and are for a background thread; all else is quick.

    It works in threads of its own, or, where it was made with `threaded=False` (tests), only within
    `start` and `pump`.
    """

    kind: Kind = "own"
    folder: Path | None = None
    """where the run is kept; None: nowhere"""
    title = ""
    """what is watched: a command, `PID 4711`, a folder, a run's name, `8 simulated GPUs`"""
    speed = 1.0
    paused = False

    def __init__(
        self,
        desk: Desk,
        board: LiveBoard,
        *,
        threaded: bool,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.board = board
        self.price(desk)
        self._items: deque[Named] = deque(maxlen=_WAITING)
        self._clock = clock or time.monotonic
        self._threaded = threaded
        self._threads: list[threading.Thread] = []
        self._ending = threading.Event()
        self._stop_lock = threading.Lock()
        self._piece = 20
        self._rested_s = 0.0
        self._picture = LivePicture()
        self._seen = 0
        self.over = self._begun = self._stopped = self._hurried = False
        """`over`: nothing more will come"""
        self._problem = ""
        self._cpu: deque[tuple[float, float]] = deque(maxlen=16)
        self._size: tuple[float, float] = (-1e9, nan)

    # what a source gives

    def _begin(self) -> None:
        """Raises CkptcostError where it cannot begin: no such command, no such process."""

    def _turn(self, now_s: float) -> None:
        """Bring what is new into `_items`, or set `over`."""

    def _end(self, within_s: float | None) -> str:
        """A sentence on how it ended."""
        return ""

    def _status(self) -> LiveStatus:
        """Asked for every picture."""
        return LiveStatus(
            self.kind,
            self.title,
            state="ended" if self.over else None,
            own_cpu=self._own_cpu(),
            file_bytes=self._bytes(),
            troubles=tuple(self._troubles()),
        )

    @property
    def actions(self) -> Actions:
        return Actions(stop=not self.over)

    @property
    def silent_s(self) -> float:
        """Since the last reading, where that is too long for a recorder that lives."""
        return 0.0

    def _hasten(self) -> None:
        """Somebody quits while another thread is in `_end`: that one need not wait any longer."""

    def _left(self) -> str:
        """What there is to say of an end however often it is asked for: what goes on, what was not
        written."""
        return ""

    def mark(self) -> str:
        """Begin a checkpoint by hand, or end the one that is open; what was done, in a sentence."""
        return "nothing can be marked here"

    def set_speed(self, speed: float) -> None:
        """Of what cannot be hurried: nothing."""

    def pause(self, paused: bool) -> None:
        """Of what cannot wait: nothing."""

    def seek(self, to_s: float) -> None:
        """To a second since the run began; of what goes on by itself: nothing."""

    def busy(self) -> str:
        """What quitting would cut off, in a sentence; empty where nothing."""
        return ""

    # what all do

    @property
    def position_s(self) -> float:
        """Seconds since the run began: of the last reading, or of a place on a tape."""
        return max(self.board.last_s, 0.0)

    def start(self) -> None:
        if self._begun:
            return
        self._begin()
        with self._stop_lock:
            self._begun, late = True, self._stopped
        if late:  # somebody left while it began
            self._end(_LATE_S)
            self.over = True
        elif self._threaded:
            for name, loop in (("reads", self._read), ("evaluates", self._evaluate)):
                self._run(name, loop)
        else:
            self._step(self._clock())

    def _run(self, name: str, loop: Callable[[], None]) -> None:
        thread = threading.Thread(target=loop, name=f"ckptcost-live-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self, within_s: float | None = None) -> str:
        """End the recording, and the command with it (SIGTERM, after 10 s SIGKILL). `within_s`: the
        program quits and does not wait longer for the command. Twice is as good as once. Returns a
        sentence where there is something to say, e.g. that the job still runs.
        """
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
        self._wind_up(2.0 if within_s is None else 0.1)
        return said or self._left()

    def _wind_up(self, each_s: float) -> None:
        """Its threads end, or go on without being waited for; what was read is evaluated."""
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(each_s)
        self.over = True
        self._absorb()
        self.board.turn(over=True)
        until_s = time.monotonic() + 5.0
        while not self._hurried and self.board.work() and time.monotonic() < until_s:
            pass

    def pump(self, now_s: float | None = None) -> int:
        """New records since the last time; at most some milliseconds of work. Call it before
        `view`. 0: nothing new to draw."""
        if not self._threaded and self._begun and not self._ending.is_set():
            self._step(self._clock() if now_s is None else now_s)
        new, self._seen = self.board.records - self._seen, self.board.records
        wall_s = time.monotonic()
        if not self._cpu or wall_s - self._cpu[-1][0] >= 0.5:
            self._cpu.append((wall_s, time.process_time()))
        return max(new, 0)

    def price(self, desk: Desk) -> None:
        """Another scenario: checkpoints are priced again, from joules that are known."""
        self._desk = desk
        self.board.price(desk)

    def view(
        self,
        span_s: float = SPAN_S,
        per_gpu: bool = False,
        gpu: str = "",
    ) -> LiveView:
        """The picture, up to now; `gpu`: with the trace of that card on top."""
        return self._picture.view(self.board, self._status(), span_s, per_gpu, gpu)

    # how it works

    def _step(self, now_s: float) -> None:
        self._take_turn(now_s)
        while self.board.work():
            pass

    def _take_turn(self, now_s: float) -> None:
        self._turn(now_s)
        self._absorb()
        self.board.turn(self.over)

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
            quick = time.monotonic() - began_s < _PIECE_S
            self._piece = min(2 * self._piece, 200) if quick else max(self._piece // 2, 1)
            if self._threaded:  # else who waits for the lock does not get it before the next piece
                time.sleep(0.0002)

    def _read(self) -> None:
        while not self._ending.is_set():
            try:
                self._take_turn(self._clock())
            except Exception as error:  # of ours: the recording goes on, and the screen says it
                self._problem = f"the screen's reader failed: {type(error).__name__}: {error}"
                self._ending.wait(1.0)
            self._ending.wait(TURN_S)

    def _evaluate(self) -> None:
        while not self._ending.is_set():
            try:
                worked = self.board.work(self._breathe)
            except Exception as error:
                told = f"{type(error).__name__}: {error}"
                self._problem, worked = f"a checkpoint could not be evaluated: {told}", False
                self.board.skip()
            self._ending.wait(0.01 if worked else TURN_S)

    def _breathe(self) -> None:
        """Some work, some rest: who draws gets the interpreter at once, and a checkpoint is
        evaluated in three times its processor time."""
        if time.monotonic() - self._rested_s > _WORK_S and not self._ending.is_set():
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
        now_s, folder = time.monotonic(), self.folder
        if folder is not None and now_s - self._size[0] > 3.0:
            self._size = (now_s, nan)
            with contextlib.suppress(OSError):
                files = folder.glob("*.jsonl") if folder.is_dir() else [folder]
                self._size = (now_s, float(sum(file.stat().st_size for file in files)))
        return self._size[1]

    def _troubles(self) -> list[str]:
        return [self._problem] if self._problem else []


class Played(LiveSource, ABC):
    """Its time follows the clock at a speed, or stands still."""

    _since = (0.0, 0.0)
    """seconds of the clock and its own, of the same instant"""

    @abstractmethod
    def _play(self, to_s: float, most_s: float) -> bool:
        """Go on up to a second of its own; False: the time for it ran out."""

    def _turn(self, now_s: float) -> None:
        clock_s, at_s = self._since
        to_s = at_s + (now_s - clock_s) * self.speed
        if self.paused or not self._play(to_s, _MOST_S if self._threaded else float("inf")):
            self._since = (now_s, self.position_s)

    def set_speed(self, speed: float) -> None:
        self._since, self.speed = (self._clock(), self.position_s), speed

    def pause(self, paused: bool) -> None:
        self._since, self.paused = (self._clock(), self.position_s), paused

    def _status(self) -> LiveStatus:
        told = super()._status()
        return told._replace(speed=self.speed, paused=self.paused, file_bytes=nan)
