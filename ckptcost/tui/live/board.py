"""Everything the live screen knows: readings and marks go in as they come, from any thread, and a
picture comes out at any time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from typing import NamedTuple

from ckptcost.core.channels import Mark
from ckptcost.core.contents import first_s
from ckptcost.core.gauges import UNSEEN_AFTER
from ckptcost.core.windows import Window
from ckptcost.jobs.energies import at_once
from ckptcost.jobs.recording import MARGIN_S
from ckptcost.jobs.save_book import BEFORE_S
from ckptcost.meters.base import Absence
from ckptcost.runs.baselines import Idle
from ckptcost.runs.clocks import S
from ckptcost.runs.run import Run
from ckptcost.runs.tables import Table
from ckptcost.tui.desk import Desk
from ckptcost.tui.live.intake import Intake
from ckptcost.tui.live.ring import Frame, Record, run_of
from ckptcost.tui.live.tally import Seen, Tally, evaluated

Tables = Callable[[int, int], "list[tuple[Table, int]]"]
"""readings of a stretch, by nanoseconds on the first clock"""
_AFTER_S = 60.0
"""of the readings after a checkpoint, its evaluation looks at so much"""

_AGAIN_S, _READ_S = 1.0, 12.0
"""a meter that is read seldom may not have spoken since the checkpoint's end: it is looked at
again, until so long after that end"""
_NO_POWER_S = 2.0
"""a counter needs two readings before it tells of power"""


class Task(NamedTuple):
    """A checkpoint that is over, and the readings around it."""

    number: int
    window: Window
    frame: Frame
    marks: Sequence[Mark]
    closed: list[tuple[Table, int]]
    fresh: Sequence[Record]
    """what has come last, in no table yet"""
    duration_s: float
    since_s: float
    from_ns: int
    to_ns: int


class LiveBoard(Intake):
    """`absorb` and `turn` belong to the thread that reads, `work` to one that evaluates, all else
    to the screen."""

    def __init__(
        self,
        *,
        absences: Sequence[Absence] = (),
        idle: Idle | None = None,
        host: str = "",
        tables: Tables | None = None,
        known: dict[tuple[str, float], Seen] | None = None,
    ) -> None:
        """`tables`: where readings of a stretch can be had again; `known`: checkpoints of this run
        that were evaluated before."""
        super().__init__(host, tables is None)
        self.absences, self.idle, self.tally = tuple(absences), idle, Tally()
        self._tables, self._known = tables, {} if known is None else known
        self._over = False
        self.partly = False
        """it did not see the run from its beginning"""
        self._priced_for: tuple[object, ...] = ()
        self._desk: Desk | None = None

    def turn(self, over: bool = False) -> None:
        """After some items were absorbed."""
        with self.lock:
            self._over = over
            self.book.turn(self.last_s, over)
            self.ring.keep_from_ns = (self._origin_ns or 0) + round(
                self.book.needed_s(self.last_s) * S
            )

    def price(self, desk: Desk) -> None:
        """The scenario that counts from now on; `work` does it."""
        self._desk = desk

    def work(self, breathe: Callable[[], None] = at_once) -> bool:
        """One piece of what takes its time; False: there was nothing to do. From one thread, which
        may rest when `breathe` is called."""
        if self._reprice():
            return True
        task = self._next()
        if task is None:
            return False
        key = (task.window.label, round(first_s(task.window), 3))
        seen = self._known.get(key)
        if seen is None or seen.told != task.window:
            seen = evaluated(self._run(task), task.window, self.idle, task.since_s, breathe)
            if seen is not None and self._postponed(task, seen):
                return True
            if seen is not None and self._tables is not None:
                self._known[key] = seen
        with self.lock:
            entry = self.book.entry(task.number)
            if entry is None or entry.window != task.window:
                return True  # more is known of it by now
            entry.evaluated = task.window
            if seen is not None:
                entry.better = (seen.window, seen.contents)
                self.tally.take(task.number, seen)
        return True

    def _postponed(self, task: Task, seen: Seen) -> bool:
        """Some meter's last reading lies before the checkpoint's end. Its joules would be unknown
        for good, and are known in a moment."""
        if not any(
            UNSEEN_AFTER in energy.flags
            for cost in seen.costs
            for energy in (cost.absolute, cost.stall, cost.drain)
        ):
            return False
        with self.lock:
            entry = self.book.entry(task.number)
            if self._over or entry is None or task.duration_s - entry.last_s > _READ_S:
                return False
            entry.not_before_s, entry.ready = task.duration_s + _AGAIN_S, False
            return True

    def skip(self) -> None:
        """The checkpoint whose evaluation failed is not tried again as it is."""
        with self.lock:
            entry = next((e for e in self.book.recent if e.ready and e.evaluated != e.window), None)
            if entry is not None:
                entry.evaluated = entry.window

    def _reprice(self) -> bool:
        with self.lock:
            parts = tuple(self.parts)
            wanted = (id(self._desk), parts, self.book.world, len(self.other_hosts))
            if self._desk is None or wanted == self._priced_for:
                return False
            self._priced_for = wanted
            hosts = (self.host, *sorted(self.other_hosts))
            self.tally.price(self._desk, parts, hosts, self.book.world)
            return True

    def _next(self) -> Task | None:
        with self.lock:
            entry = next((e for e in self.book.recent if e.ready and e.evaluated != e.window), None)
            if entry is None and self.book.backlog:
                entry = self.book.entry(self.book.backlog.pop())  # the newest first
            if entry is None or self._origin_ns is None:
                return None
            begin_s = entry.window.begin_s
            from_s = (entry.window.last_s if begin_s is None else begin_s) - BEFORE_S
            to_s = entry.last_s + _AFTER_S
            marks = self.book.of_slice(from_s, to_s)
            from_ns, to_ns = (self._origin_ns + round(at_s * S) for at_s in (from_s, to_s))
            closed, fresh = ([], []) if self._tables is not None else self.ring.held(from_ns, to_ns)
            since_s = max(self.first_s, 0.0)
            return Task(
                entry.number,
                entry.window,
                self._frame(),
                marks,
                closed,
                fresh,
                self.last_s,
                since_s,
                from_ns,
                to_ns,
            )

    def _run(self, task: Task) -> Run:
        """Without the lock: a tape is read, and of hundreds of GPUs tables take a while."""
        if self._tables is None:
            tables = self.ring.tables_of(task.closed, task.fresh) or [
                (Table(channels), 0) for channels in self.ring.slots
            ]
        else:
            tables = self._tables(task.from_ns, task.to_ns)
        return run_of(task.frame, tables, task.marks, task.duration_s)

    def _frame(self) -> Frame:
        run_id = self.headers[-1].run if self.headers else ""
        assert self._origin_ns is not None
        headers = tuple(self.headers[-1:])
        return Frame(
            run_id,
            self.host,
            headers,
            self._origin_ns,
            tuple(self.newest.values()),
            dict(self._periods),
            self.simulated,
            tuple(self._pairs),
        )

    def readings(self, begin_s: float, end_s: float) -> list[tuple[Table, int]]:
        """All that is there of a stretch: of the last minutes, or of a tape the whole of it."""
        if self._origin_ns is None:
            return []
        from_ns, to_ns = self._origin_ns + round(begin_s * S), self._origin_ns + round(end_s * S)
        if self._tables is not None:
            return self._tables(from_ns, to_ns)
        with self.lock:
            return self.ring.taken(from_ns, to_ns)

    @property
    def origin_ns(self) -> int | None:
        return self._origin_ns

    @property
    def parts(self) -> list[str]:
        """Domains that add up."""
        return [
            one.channel.domain
            for one in self.sums
            if one.channel.role == "part" and one.channel.kind_of_domain != "node"
        ]

    @property
    def gpu_domains(self) -> list[str]:
        return (
            []
            if self.curves is None
            else [probe.channel.domain for probe in self.curves.sources.gpus]
        )

    @property
    def powerless(self) -> bool:
        """Nothing here has told of power although there was time for it."""
        if self.curves is None or self.last_s - max(self.first_s, 0.0) < _NO_POWER_S:
            return False
        sources = self.curves.sources
        return not any(probe.answered for probe in (*sources.gpus, *sources.host, *sources.node))

    @property
    def waiting(self) -> int:
        """Checkpoints that are over and not evaluated yet."""
        return sum(
            entry.ready and entry.evaluated != entry.window for entry in self.book.recent
        ) + len(self.book.backlog)

    @property
    def simulated(self) -> bool:
        return any(header.simulated for header in self.headers)

    @property
    def rate_hz(self) -> float:
        """Readings a second, lately."""
        if len(self.ticks) < 2:
            return nan
        passed_s = self.ticks[-1][0] - self.ticks[0][0]
        return sum(count for _, count in list(self.ticks)[1:]) / passed_s if passed_s > 0 else nan

    @property
    def length_s(self) -> float:
        """How long was measured so far; once it has ended, as `ckptcost report` has it."""
        last_s = max(self.last_s, 0.0)
        if self._asked_s:
            return max(
                (max(self._asked_s) if len(self._asked_s) > 1 else last_s) - min(self._asked_s), 0.0
            )
        if not self.ended:
            return last_s
        read_s = last_s - max(self._tick_s, 0.0)
        return read_s - 2 * min(MARGIN_S, read_s / 4)

    def wall_s(self, t_s: float) -> float:
        """Unix time at a time of the run, by the pair before it."""
        at_s, wall_s = 0.0, nan
        for pair in self._pairs:
            if pair[0] > t_s and wall_s == wall_s:
                break
            at_s, wall_s = pair
        return wall_s + t_s - at_s
