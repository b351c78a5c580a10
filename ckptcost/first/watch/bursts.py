"""Checkpoints where no directory is known: bursts in what a process and its descendants write.

`Bursts` is the detector, fed with a counter and nothing else; `Burster` is the thread that reads
/proc/PID/io and looks which files are open meanwhile. A burst begins when much more than usual is
written within a second, and is over after two in which little was. What is usual is the median of
the seconds outside bursts, so steady logging is none. The counter counts pages when they are made
dirty and direct I/O at once, so mapped files and O_DIRECT are seen; files in memory (tmpfs), FUSE
without its write cache and what other nodes write are not.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple, Protocol

from ckptcost.first.meters.base import Absence
from ckptcost.first.meters.kept import OpenFile, os_error_text
from ckptcost.first.meters.process import ProcessTree
from ckptcost.first.watch.base import Expect, Tell
from ckptcost.first.watch.writers import (
    Growing,
    file_details,
    name_of,
    open_for_writing,
    run_together,
)

S: Final = 1_000_000_000
LEAST_BYTES: Final = 4 << 20
"""within a window: event files and logs write kilobytes a second, the smallest checkpoint worth a
joule megabytes"""
_NOISE_BYTES: Final = 1 << 16
"""a reading with less is no part of a burst's edge"""
_MOST_SECONDS: Final = 120
_HOLE_NS: Final = S // 4
"""a pause at the start of a burst; what lies before a longer one is not it"""
_NAMING_NS: Final = S // 2
"""so long a name is looked for before `begin` is told without"""
_LOOK_SHARE: Final = 1000
"""looking for processes and files may take one part in so many of a core"""
WHY: Final = {
    "FILES_UNKNOWN": "what was written is not known: no file was seen open for writing",
    "NOT_A_SAVE": "the process writes so much all the time",
}


class BegunBurst(NamedTuple):
    begin_ns: int
    unsure_ns: int
    """the burst began at most so much earlier or later: readings lie so far apart"""


class EndedBurst(NamedTuple):
    begin_ns: int
    written_ns: int
    unsure_ns: int
    """of `written_ns`"""
    bytes: int
    is_level: bool = False
    """it lasted so long that it is what the job always does"""


class _Step(NamedTuple):
    """Between two readings."""

    from_ns: int
    to_ns: int
    bytes: int

    @property
    def rate(self) -> float:
        return self.bytes / (self.to_ns - self.from_ns)


class Bursts:
    """`feed` it with readings in order; `finish` when the process is gone."""

    def __init__(
        self,
        *,
        least_bytes: int = LEAST_BYTES,
        window_s: float = 1.0,
        gap_s: float = 2.0,
        factor: float = 5.0,
        most_s: float = 900.0,
    ) -> None:
        self._least, self._factor = least_bytes, factor
        self._window_ns, self._gap_ns, self._most_ns = (
            round(window_s * S),
            round(gap_s * S),
            round(most_s * S),
        )
        self._last: tuple[int, int] | None = None
        self._steps: deque[_Step] = deque()
        """of the last window or gap"""
        self._recent = 0
        self._quiet: deque[int] = deque(maxlen=_MOST_SECONDS)
        """bytes of whole seconds outside bursts"""
        self._second, self._second_ns = 0, 0
        self._usual = 0.0
        self._begun: BegunBurst | None = None
        self._rising = False
        self._bytes = 0
        self._edge: tuple[int, int] = (0, 0)
        """end of the last step that counts, and its uncertainty"""

    @property
    def on(self) -> bool:
        """Also when the next reading will tell that it has begun."""
        return self._rising or self._begun is not None

    @property
    def gap_s(self) -> float:
        """With less than so much silence between them two saves are one burst."""
        return self._gap_ns / S

    @property
    def bytes(self) -> int:
        """Of the burst so far."""
        return self._bytes

    def threshold(self, length_ns: int) -> float:
        """Bytes within so long that are a burst."""
        return max(float(self._least), self._factor * self._usual * length_ns / S)

    def feed(self, t_ns: int, total_bytes: int) -> BegunBurst | EndedBurst | None:
        """A reading of the counter. Readings that do not advance are left out."""
        if self._last is None or t_ns <= self._last[0]:
            self._last = self._last or (t_ns, total_bytes)
            return None
        step = _Step(self._last[0], t_ns, max(total_bytes - self._last[1], 0))
        self._last = (t_ns, total_bytes)
        self._steps.append(step)
        self._recent += step.bytes
        span_ns = self._gap_ns if self._begun else self._window_ns
        while not self._rising and self._steps[0].to_ns <= t_ns - span_ns:
            self._recent -= self._steps.popleft().bytes
        return self._go_on(step) if self._begun else self._wait(step)

    def finish(self) -> EndedBurst | None:
        """There will be no more readings."""
        if self._rising:
            self._rising = False
            self._begin()
        return self._end() if self._begun else None

    def _wait(self, step: _Step) -> BegunBurst | None:
        if self._rising:
            self._rising = False
            return self._begin()
        if self._recent >= self.threshold(self._window_ns):
            # the next reading shows how quickly, and so when within the first one it began
            self._rising = True
            return None
        self._second += step.bytes
        self._second_ns += step.to_ns - step.from_ns
        if self._second_ns >= S:
            self._quiet.append(round(self._second * S / self._second_ns))
            self._second = self._second_ns = 0
            self._usual = median(self._quiet)
        return None

    def _begin(self) -> BegunBurst:
        """Back to the first step of the window that belongs to it: no hole between, and not the
        noise before."""
        steps = list(self._steps)
        first = last = len(steps) - 1
        for place in range(last, -1, -1):
            if steps[first].from_ns - steps[place].to_ns > _HOLE_NS:
                break
            if self._counts(steps[place]):
                first = place
        mine = steps[first:]
        step, after = mine[0], mine[1] if len(mine) > 1 else mine[0]
        # at the rate of the next step, its bytes took so long before its end
        length_ns = step.to_ns - step.from_ns
        took_ns = min(step.bytes / after.rate, length_ns) if after.rate > 0.0 else length_ns
        self._begun = BegunBurst(step.to_ns - round(took_ns), length_ns)
        self._bytes = sum(each.bytes for each in mine)
        self._second = self._second_ns = 0
        end = max(place for place, each in enumerate(mine) if place == 0 or self._counts(each))
        self._mark_edge(mine[end], mine[max(end - 1, 0)])
        return self._begun

    def _go_on(self, step: _Step) -> EndedBurst | None:
        assert self._begun is not None
        self._bytes += step.bytes
        if self._counts(step):
            self._mark_edge(step, self._steps[-2] if len(self._steps) > 1 else step)
        quiet_bytes = max(self._least / 8, 2.0 * self._usual * self._gap_ns / S)
        if self._recent < quiet_bytes and step.to_ns - self._steps[0].from_ns >= self._gap_ns:
            return self._end()
        if step.to_ns - self._begun.begin_ns > self._most_ns:
            self._usual = self._bytes * S / (step.to_ns - self._begun.begin_ns)
            self._quiet.extend([round(self._usual)] * _MOST_SECONDS)
            return self._end()._replace(is_level=True)
        return None

    def _counts(self, step: _Step) -> bool:
        usual = self._factor * self._usual * (step.to_ns - step.from_ns) / S
        return step.bytes > max(_NOISE_BYTES, usual)

    def _mark_edge(self, step: _Step, before: _Step) -> None:
        """Where in its last step the writing ended, at the rate of the one before."""
        length_ns = step.to_ns - step.from_ns
        took_ns = min(step.bytes / before.rate, length_ns) if before.rate > 0.0 else length_ns
        self._edge = (step.from_ns + round(took_ns), length_ns)

    def _end(self) -> EndedBurst:
        assert self._begun is not None
        at_ns, unsure_ns = self._edge
        over = EndedBurst(
            self._begun.begin_ns, max(at_ns, self._begun.begin_ns), unsure_ns, self._bytes
        )
        self._begun, self._bytes = None, 0
        self._steps.clear()
        self._recent = 0
        return over


class SettleBurst(Protocol):
    """`Settling.follow`."""

    def __call__(
        self, window: str, paths: Sequence[Path], since_ns: int, written_ns: int
    ) -> None: ...


class Burster:
    """Marks the bursts of a process and its descendants. `absence` says why not, where that is
    so."""

    def __init__(
        self,
        pid: int,
        tell: Tell,
        expect: Expect,
        settle: SettleBurst | None = None,
        *,
        poll_s: float = 0.05,
        bursts: Bursts | None = None,
    ) -> None:
        self._tell, self._expect, self._settle, self._poll_s = tell, expect, settle, poll_s
        self._bursts = bursts or Bursts()
        self._files = Growing()
        self._labels: set[str] = set()
        self._count = 0
        self._begun: BegunBurst | None = None
        self._window = ""
        self._look_ns = self._files_ns = 0
        self._last_newest = b""
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self.cpu_s = 0.0
        self.absence: Absence | None = None
        self._tree: ProcessTree | None = None
        try:
            self._tree = ProcessTree(pid, Path("/proc"), True)
            self._loadavg = OpenFile(Path("/proc/loadavg"))
        except OSError as error:
            remedy = (
                "run as the owner of the process or with CAP_SYS_PTRACE"
                if isinstance(error, PermissionError)
                else f"ps -p {pid}"
            )
            self.absence = Absence(
                f"bursts of process {pid}",
                f"/proc/{pid}/io: {os_error_text(error)}",
                remedy,
                "storage",
            )

    def start(self) -> Burster:
        if self._tree is not None:
            self._thread = threading.Thread(target=self._loop, name="ckptcost-bursts", daemon=True)
            self._thread.start()
        return self

    def stop(self) -> None:
        """What is going on is over then."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(5.0)
            self._thread = None
        elif self._tree is not None:
            self._close(self._tree)
        self._tree = None

    def _close(self, tree: ProcessTree) -> None:
        self._files.clear()
        self._loadavg.close()
        tree.close()

    def _loop(self) -> None:
        tree = self._tree
        assert tree is not None
        try:
            while not self._ending.is_set() and self._poll(tree):
                self.cpu_s = time.thread_time()
                self._ending.wait(self._poll_s)
            if over := self._bursts.finish():
                if self._begun is None:
                    self._begin(tree, BegunBurst(over.begin_ns, over.unsure_ns))
                self._tell_end(over)
        finally:
            self._close(tree)

    def _poll(self, tree: ProcessTree) -> bool:
        """False when no process is left."""
        began_ns = time.thread_time_ns()
        now_ns = time.monotonic_ns()
        newest = self._newest()
        if (
            now_ns >= self._look_ns and newest != self._last_newest
        ):  # each thread is asked for its children: 6 us a thread
            self._last_newest = newest
            tree.look()
            now_ns = time.monotonic_ns()
            self._look_ns = now_ns + (time.thread_time_ns() - began_ns) * _LOOK_SHARE
        sums = tree.read()
        if sums is None:
            return False
        was_on = self._bursts.on
        event = self._bursts.feed(now_ns, sums[0])
        if isinstance(event, BegunBurst):
            self._begin(tree, event)
        elif isinstance(event, EndedBurst):
            self._tell_end(event)
        elif now_ns >= self._files_ns or self._bursts.on is not was_on:
            self._look_at_files(tree)
        if self._begun is not None and not self._window:
            self._tell_begin(self._begun, now_ns - self._begun.begin_ns > _NAMING_NS)
        return True

    def _newest(self) -> bytes:
        """The number of the process or thread that was made last, on the whole host: while it
        stands, nobody has a new child."""
        return self._loadavg.read(128).rpartition(b" ")[2]

    def _look_at_files(self, tree: ProcessTree) -> None:
        began_ns = time.thread_time_ns()
        found = open_for_writing(tree.live)
        if self._bursts.on:
            self._files.look(found, time.time_ns() - 2 * S)
        else:
            self._files.rest(found)
        cost_ns = time.thread_time_ns() - began_ns
        share = _LOOK_SHARE if self._window or not self._bursts.on else _LOOK_SHARE // 20
        pause_ns = 10 * S if not self._bursts.on else S // 4 if self._window else 0
        self._files_ns = time.monotonic_ns() + max(pause_ns, cost_ns * share)

    def _begin(self, tree: ProcessTree, begun: BegunBurst) -> None:
        self._begun, self._window = begun, ""
        self._count += 1
        self._expect(5.0)
        self._look_at_files(tree)

    def _tell_begin(self, begun: BegunBurst, at_last: bool) -> None:
        """As soon as there is a name, which a file has that has grown."""
        paths = [path for path, _ in self._files.written(0.01 * self._bursts.bytes)]
        label = name_of(paths) or (f"burst {self._count}" if at_last else "")
        if label:
            self._window = label if label not in self._labels else f"{label} (burst {self._count})"
            self._labels.add(label)
            self._tell(
                "begin",
                self._window,
                by="watch",
                t_ns=begun.begin_ns,
                how="io",
                unsure_s=begun.unsure_ns / S,
                **file_details(paths),
            )

    def _tell_end(self, over: EndedBurst) -> None:
        if self._begun is not None and not self._window:
            self._tell_begin(self._begun, True)
        files = self._files.written(0.01 * over.bytes)
        paths = [path for path, _ in files]
        together = 0 if over.is_level else run_together(files, over.bytes, self._files.at_once)
        several: dict[str, Any] = (
            {"run_together": together, "gap_s": self._bursts.gap_s} if together else {}
        )
        self._files.clear()
        self._begun = None
        window, unsure_s = self._window, over.unsure_ns / S
        self._tell(
            "written",
            window,
            by="watch",
            t_ns=over.written_ns,
            how="io",
            bytes=over.bytes,
            unsure_s=unsure_s,
            **file_details(paths),
            **several,
        )
        if over.is_level:
            self._tell("note", window, by="watch", durable_why="NOT_A_SAVE")
        elif not paths:
            self._tell("note", window, by="watch", durable_why="FILES_UNKNOWN")
        elif self._settle is not None:
            self._settle(window, [Path(path) for path in paths], over.begin_ns, over.written_ns)
