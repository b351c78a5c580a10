"""Checkpoints as their marks come: which are open, which are over and can be evaluated, and which
nobody will speak of again."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from ckptcost.first.core.channels import Mark
from ckptcost.first.core.contents import Contents, by_window, contents_of, first_s
from ckptcost.first.core.joining import SLACK_S, join_marks
from ckptcost.first.core.phases import MARKS, windows_of
from ckptcost.first.core.windows import Stretch, Window, covered_s, extent, union

QUIET_S = 1.0
"""after its last mark, before a save that is told to be over is believed"""
WATCHED_S = 7.5
"""the same of one that was seen from outside: who wrote it and what was synced is told some seconds
later"""
BEFORE_S = 40.0
"""of the time before a save, its evaluation looks at up to half of this"""
FINAL_S = 400.0
"""after its last word its joules are worked out once more, for good: an edge is judged by 384
readings on either side, which a meter has by then that is read once a second"""
DRAIN_S = 45.0
"""without a word on when it was safe, the page cache is asked so long after the last mark"""
GIVEN_UP_S = 600.0
TOGETHER, TOGETHER_S = 200, 30.0
"""so many, or those of so long, are evaluated for good in one go: they share a piece of the run"""
_LATELY = 50
MOST_MARKS = 100_000
"""that wait for a window to be over; the recorder's own bound on one checkpoint's ranks is far
below"""


@dataclass(slots=True)
class Entry:
    """One checkpoint. Its number is its place in the run."""

    number: int
    window: Window
    contents: Contents
    by: str
    """who found it: api, watch, io (a process's own writing), hand, output"""
    last_s: float
    """of its last mark of any kind"""
    open: bool = True
    ready: bool = False
    """over: it may be evaluated"""
    evaluated: Window | None = None
    """as marks had it when it was evaluated; another since: again"""
    not_before_s: float = 0.0
    final: bool = False
    """evaluated with all readings that it is judged by"""
    better: tuple[Window, Contents] | None = None
    """with what its evaluation found in the page cache besides"""

    @property
    def best(self) -> tuple[Window, Contents]:
        return (
            self.better
            if self.better is not None and self.evaluated == self.window
            else (self.window, self.contents)
        )

    @property
    def is_load(self) -> bool:
        return self.contents.of == "load"

    @property
    def is_from_outside(self) -> bool:
        return self.by in ("watch", "io")

    @property
    def is_told(self) -> bool:
        """Whether it is safe, a load is there, it failed, or why nobody can say."""
        window, what = self.window, self.contents
        if what.error:
            return True
        if self.is_load:
            return window.returned_s is not None or any("end" in span.at_s for span in window.spans)
        return window.durable_s is not None or bool(what.why)

    @property
    def is_finished(self) -> bool:
        """That, and training goes on, where anybody is to say so."""
        return self.is_told and (
            self.is_from_outside
            or self.is_load
            or bool(self.contents.error)
            or self.window.returned_s is not None
        )

    def inherit(self, old: Entry) -> None:
        """What was made of it as earlier marks had it."""
        self.evaluated, self.better = old.evaluated, old.better
        self.not_before_s = old.not_before_s
        self.final = old.final and old.window == self.window


class Timed(NamedTuple):
    """Time that checkpoints took so far."""

    open_s: float
    """with at least one under way"""
    stalled_s: float
    """training known to stand still"""
    stall_unknown: int
    """checkpoints of which nobody says how long it stood"""


class Book:
    """Marks in any order; `turn` after some have come."""

    def __init__(self, later: bool = False) -> None:
        """`later`: readings can be had again, so that a checkpoint may be settled before it is
        evaluated."""
        self._later = later
        self.backlog: deque[int] = deque()
        """numbers of settled ones that were not evaluated yet"""
        self._settled: deque[int] = deque()
        """numbers of settled ones that were not evaluated for good"""
        self.marks: list[Mark] = []
        """of checkpoints that may still change, and what lies near them"""
        self.done: list[Entry] = []
        """nobody will speak of them again"""
        self.recent: list[Entry] = []
        self.world = 0
        """ranks, as marks say"""
        self._changed = False
        self._done_open: list[Stretch] = []
        self._done_open_s = self._done_stalled_s = 0.0
        self._done_unknown = 0

    def add(self, mark: Mark) -> None:
        world = mark.detail.get("world")
        if isinstance(world, int):
            self.world = max(self.world, world)
        self.marks.append(mark)
        if mark.window or mark.name in MARKS:
            self._changed = True
        if len(self.marks) > MOST_MARKS:
            del self.marks[: MOST_MARKS // 10]

    @property
    def entries(self) -> list[Entry]:
        """All of them, by number."""
        return [*self.done, *self.recent]

    @property
    def open(self) -> list[Entry]:
        return [entry for entry in self.recent if entry.open]

    def entry(self, number: int) -> Entry | None:
        place = number - 1
        if place < len(self.done):
            return self.done[place] if place >= 0 else None
        place -= len(self.done)
        return self.recent[place] if place < len(self.recent) else None

    def turn(self, now_s: float, over: bool = False) -> None:
        """`over`: nothing more will come."""
        if self._changed:
            self._changed = False
            self._read()
        for entry in self.recent:
            self._judge(entry, now_s, over)
        self._retire(now_s)

    def _read(self) -> None:
        marks = join_marks(self.marks)
        windows = windows_of(marks)
        before = {
            (entry.window.name, round(first_s(entry.window), 3)): entry for entry in self.recent
        }
        done = {
            (entry.window.label, round(first_s(entry.window), 3)) for entry in self.done[-_LATELY:]
        }
        labels = {entry.window.label for entry in self.done[-_LATELY:]}
        recent: list[Entry] = []
        for window, mine, what in zip(
            windows, by_window(marks, windows), contents_of(marks, windows), strict=True
        ):
            key = (window.label, round(first_s(window), 3))
            if key in done or (
                window.begin_s is None and window.label in labels
            ):  # a late word on one that is settled
                continue
            last_s = max((mark.t_s for mark in mine), default=window.last_s)
            old = before.get((window.name, key[1]))
            entry = Entry(len(self.done) + len(recent) + 1, window, what, _found_by(mine), last_s)
            if old is not None:
                entry.inherit(old)
            recent.append(entry)
        self.recent = recent

    def _judge(self, entry: Entry, now_s: float, over: bool) -> None:
        window, finished, quiet_s = entry.window, entry.is_finished, now_s - entry.last_s
        returned = window.returned_s is not None
        drain_s = DRAIN_S if returned else GIVEN_UP_S
        entry.open = not (finished or over or quiet_s > drain_s)
        if "written" in window.spans[0].at_s:
            drain_s = DRAIN_S
        wait_s = WATCHED_S if entry.is_from_outside else QUIET_S
        is_due = quiet_s > drain_s or (finished and quiet_s >= wait_s)
        entry.ready = over or (now_s >= entry.not_before_s and is_due)

    def _retire(self, now_s: float) -> None:
        """From the front, so that numbers stay. Marks go when no save after them needs to know of
        the save."""
        gone = list(takewhile(lambda entry: self._is_settled(entry, now_s), self.recent))
        for entry in gone:
            self._put_by(entry)
        self.recent = self.recent[len(gone) :]
        self._forget(min([now_s, *(first_s(entry.window) for entry in self.recent)]) - 2 * BEFORE_S)

    def _is_settled(self, entry: Entry, now_s: float) -> bool:
        """Nobody will speak of it again."""
        quiet_s = now_s - entry.last_s
        if not entry.ready or quiet_s <= BEFORE_S:
            return False
        if quiet_s > GIVEN_UP_S:
            return True
        window, what = entry.best
        is_known = window.durable_s is not None or bool(what.why or what.error)
        return is_known and (self._later or entry.evaluated == entry.window)

    def _put_by(self, entry: Entry) -> None:
        self.done.append(entry)
        entry.open = False
        if self._later and entry.evaluated != entry.window:
            self.backlog.append(entry.number)
        if not self._later and not entry.final:
            self._settled.append(entry.number)
        if entry.is_load:
            return
        window, _ = entry.best
        self._done_unknown += window.stall_s is None
        self._done_stalled_s += window.stall_s or 0.0
        stretches = union([*self._done_open, extent(window)])
        self._done_open_s += sum(end - begin for begin, end in stretches[:-1])
        self._done_open = stretches[-1:]

    def _forget(self, before_s: float) -> None:
        """Marks of settled checkpoints go all at once: half of them would be another checkpoint."""
        if not self.marks or self.marks[0].t_s >= before_s - BEFORE_S:
            return
        for entry in reversed(self.done[-_LATELY:]):
            if entry.last_s >= before_s > first_s(entry.window) - SLACK_S:
                before_s = first_s(entry.window) - SLACK_S
        self.marks = [mark for mark in self.marks if mark.t_s >= before_s]

    def again(self, not_before_s: float) -> None:
        """More can be known of what was evaluated lately."""
        for entry in self.recent:
            if entry.evaluated is not None:
                entry.evaluated, entry.not_before_s, entry.final = None, not_before_s, False

    def take_due(self, now_s: float, over: bool) -> list[Entry]:
        """What is to be evaluated next: one that has just ended, or some for good."""
        for entry in self.recent:
            if entry.ready and (entry.evaluated != entry.window or (over and not entry.final)):
                return [entry]
        if self.backlog:
            newest = self.entry(self.backlog.pop())
            return [] if newest is None else [newest]
        return self._take_settled(now_s, over)

    def _take_settled(self, now_s: float, over: bool) -> list[Entry]:
        """Some to be evaluated for good, once all readings that judge them are there."""
        due: list[Entry] = []
        while self._settled and len(due) < TOGETHER:
            entry = self.done[self._settled[0] - 1]
            if not over and now_s - entry.last_s < (FINAL_S if due else FINAL_S + TOGETHER_S):
                break
            self._settled.popleft()
            due.append(entry)
        return due

    def needed_s(self, now_s: float) -> float:
        """Readings from then on are wanted still."""
        if self._later:
            return now_s - FINAL_S
        waiting = [first_s(entry.window) for entry in self.recent]
        waiting += [first_s(self.done[number - 1].window) for number in [*self._settled][:1]]
        return min([now_s, *waiting]) - BEFORE_S - FINAL_S

    def timed(self, now_s: float) -> Timed:
        saves = [entry for entry in self.recent if not entry.is_load]
        stretches: list[Stretch | None] = [*self._done_open]
        stalled_s, unknown = self._done_stalled_s, self._done_unknown
        for entry in saves:
            window, _ = entry.best
            if window.begin_s is not None:
                stretches.append(
                    (window.begin_s, max(now_s, window.begin_s)) if entry.open else extent(window)
                )
            if window.stall_s is not None:
                stalled_s += window.stall_s
            elif not entry.open:
                unknown += 1
        return Timed(self._done_open_s + covered_s(stretches), stalled_s, unknown)


def _found_by(marks: Sequence[Mark]) -> str:
    said = {mark.by for mark in marks if mark.name in MARKS}
    for by in ("api", "hand", "output"):
        if by in said:
            return by
    if any(mark.detail.get("how") == "io" for mark in marks):
        return "io"
    return "watch" if "watch" in said else next(iter(said), "")
