"""Between recorder and disk: lines wait here while the disk is slow, full or gone, and one small
thread carries them over.

`write` may sleep for as long as the checkpoint that is being measured keeps the disk busy, and
`fdatasync` makes a journal commit of its own. Neither may delay a tick, so both happen here. What
waits is bounded; single ticks go first, then summaries, marks last.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from ckptcost.first.runs.clocks import Clock, RealClock, S, Wake
from ckptcost.first.runs.lines import encode
from ckptcost.first.runs.writer import WriteFailed, Writer

SYNC_S: Final = 1.0
"""a power cut costs that much; on the disk that takes the checkpoint too, it is one flush a second
that is ours"""
RAW, SECOND, MARK = range(3)
"""how dear a line is"""
LIMITS: Final = (8_000_000, 4_000_000, 4_000_000)
"""bytes that may wait, by how dear they are: 8 GPUs' summaries of more than an hour"""


class Pump:
    """`put` from the recorder's thread; everything else from this one's own, or, without one, from
    the caller's."""

    def __init__(
        self,
        writer: Writer,
        clock: Clock | None = None,
        *,
        threaded: bool = True,
        flush_s: float = 0.5,
        sync_s: float = SYNC_S,
        retry_s: float = 5.0,
        limits: Sequence[int] = LIMITS,
    ) -> None:
        self._writer, self._clock = writer, clock or RealClock()
        self._flush_s, self._retry_ns = flush_s, round(retry_s * S)
        self._sync_ns, self._limits = round(sync_s * S), tuple(limits)
        self._lock = threading.Lock()
        """held for a few appends, never across a system call"""
        self._queue: deque[tuple[int, bytes]] = deque()
        self._waiting = [0, 0, 0]
        self._shed = [0, 0, 0]
        self._failing_since_ns: int | None = None
        self._retry_at_ns = 0
        self._synced_ns = self._clock.now_ns()
        self._wake = Wake()
        self._stop = False
        self.problem = ""
        """why nothing reaches the disk just now, for a screen"""
        self.cpu_s = 0.0
        self._thread = (
            threading.Thread(target=self._run, name="ckptcost-writer", daemon=True)
            if threaded
            else None
        )
        if self._thread:
            self._thread.start()

    def put(self, dear: int, line: bytes) -> None:
        """Never waits for a disk."""
        with self._lock:
            self._queue.append((dear, line))
            self._waiting[dear] += len(line)
            if self._waiting[dear] > self._limits[dear]:
                self._drop(dear)
        if dear != RAW:
            self._wake.ring()

    def _drop(self, dear: int) -> None:
        """The older half of that kind; so the queue is gone over once in a few thousand lines."""
        to_go = self._waiting[dear] - self._limits[dear] // 2
        kept: deque[tuple[int, bytes]] = deque()
        for item in self._queue:
            if item[0] == dear and to_go > 0:
                to_go -= len(item[1])
                self._waiting[dear] -= len(item[1])
                self._shed[dear] += 1
            else:
                kept.append(item)
        self._queue = kept

    def flush(self) -> None:
        """Whatever waits, if the disk takes it."""
        now_ns = self._clock.now_ns()
        if self._failing_since_ns is not None and now_ns < self._retry_at_ns and not self._stop:
            return
        with self._lock:
            batch, self._queue = self._queue, deque()
            self._waiting = [0, 0, 0]
        if not batch:
            return
        try:
            self._writer.write([line for _, line in batch])
        except WriteFailed as failed:
            self._put_back(batch, failed.done)
            self._fails(failed.error)
        else:
            if self._failing_since_ns is not None:
                self._resumed()

    def _put_back(self, batch: deque[tuple[int, bytes]], done: int) -> None:
        for _ in range(done):
            batch.popleft()
        with self._lock:
            for dear, line in batch:
                self._waiting[dear] += len(line)
            batch.extend(self._queue)
            self._queue = batch
            for dear, limit in enumerate(self._limits):
                if self._waiting[dear] > limit:
                    self._drop(dear)

    def _fails(self, error: OSError) -> None:
        now_ns = self._clock.now_ns()
        if self._failing_since_ns is None:
            self._failing_since_ns = now_ns
        self.problem = f"{self._writer.path}: {error.strerror or error}"
        self._retry_at_ns = now_ns + self._retry_ns

    def _resumed(self) -> None:
        since_ns, self._failing_since_ns = self._failing_since_ns, None
        problem, self.problem = self.problem, ""
        with self._lock:
            shed, self._shed = self._shed, [0, 0, 0]
        ticks, seconds, marks = shed
        text = f"nothing could be written ({problem.rsplit(': ', 1)[-1]})"
        text += (
            f"; lost: {ticks} ticks, {seconds} summaries, {marks} marks"
            if sum(shed)
            else "; all of it was kept in memory"
        )
        detail = {"from_ns": since_ns, "ticks": ticks, "seconds": seconds, "marks": marks}
        line = encode(
            {
                "k": "event",
                "t": self._clock.now_ns(),
                "name": "gap",
                "domain": "recorder",
                "text": text,
                "detail": detail,
            }
        )
        self.put(MARK, line)

    def _sync(self, now: bool = False) -> None:
        if not now and self._clock.now_ns() - self._synced_ns < self._sync_ns:
            return
        try:
            self._writer.sync()
        except OSError as error:
            self._fails(error)
        self._synced_ns = self._clock.now_ns()

    def step(self) -> None:
        """One turn, for a caller without a thread."""
        self.flush()
        if self._failing_since_ns is None:
            self._sync()

    def _run(self) -> None:
        while not self._stop:
            self._wake.wait(self._flush_s)
            self.step()
            self.cpu_s = self._clock.cpu_s()

    def lost(self) -> tuple[int, int, int]:
        """Ticks, summaries and marks that no longer wait anywhere."""
        with self._lock:
            ticks, seconds, marks = self._shed
        return ticks, seconds, marks

    def close(self, timeout_s: float = 5.0) -> None:
        """Carries over what waits and syncs, for at most so long: a mount that hangs must not hold
        up the end of a job."""
        self._stop = True
        self._wake.ring()
        if self._thread:
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                self.problem = (
                    self.problem
                    or f"{self._writer.path}: the disk did not answer for {timeout_s:g} s"
                )
                return
        self.flush()
        self.flush()  # the line that says so, if writing was resumed by the first
        self._sync(now=True)
        self._writer.close()
