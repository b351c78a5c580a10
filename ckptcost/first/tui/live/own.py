"""A recording in this process: of a command, a process, a folder, or the machine alone."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import replace

from ckptcost.first.errors import InputError, brief
from ckptcost.first.jobs.observe import SETTLE_S, WatchOptions
from ckptcost.first.jobs.supervise import Supervisor, What
from ckptcost.first.jobs.wrap import beside, tools_of
from ckptcost.first.meters.found import Wanted
from ckptcost.first.present.amounts import count
from ckptcost.first.report.studies.runs import place_text
from ckptcost.first.runs.clocks import RealClock
from ckptcost.first.runs.live import Tee
from ckptcost.first.tui.desk import Desk, by_flags
from ckptcost.first.tui.live.board import LiveBoard
from ckptcost.first.tui.live.picture import LiveStatus, last_lines
from ckptcost.first.tui.live.reading import LiveSource, idle_of
from ckptcost.first.tui.live.source import Actions, Kind, Start, State
from ckptcost.first.tui.paths import path_of


class Own(LiveSource):
    """Readings go into a run's folder and to the screen at once."""

    kind: Kind = "own"

    def __init__(
        self,
        start: Start,
        desk: Desk,
        *,
        threaded: bool = True,
        settle_s: float = SETTLE_S,
        gap_s: float = 1.0,
    ) -> None:
        what, look = what_of(start), look_of(start, settle_s, gap_s)
        with by_flags():
            tools = tools_of(start.meters, replace(beside(Wanted(), look), pid=start.pid), least=0)
        board = LiveBoard(absences=tools.absences, idle=idle_of())
        super().__init__(desk, board, threaded=threaded)
        folder = path_of(start.record) if start.record else None
        items = self._items
        self._supervisor = Supervisor(
            what, tools, look, folder, tee=lambda files: Tee(items, files)
        )
        self._what, self._look = what, look
        if what.argv:
            self.title = shlex.join(what.argv).replace("\n", " ")
        elif what.pid is not None:
            self.title = f"PID {what.pid}"
        else:
            watched = ", ".join(middle_cut(place_text(path)) for path in look.watch)
            self.title = watched or "this machine"
        self._hand, self._hand_open = 0, ""
        self._said: tuple[float, tuple[str, ...]] = (-1e9, ())
        self._absent: tuple[str, ...] = ()
        """folders that are waited for"""
        self._unwritten = ("", "")
        """since when nothing reaches the disk, and why"""

    @property
    def actions(self) -> Actions:
        phase = self._supervisor.phase
        stops = phase in ("running", "stopping", "settling")
        return Actions(phase == "running", stops, self._supervisor.running)

    def _begin(self) -> None:
        self._supervisor.start()
        self.folder = self._supervisor.folder
        self._look_again()

    def _turn(self, now_s: float) -> None:
        self._look_again()
        self.over = self.over or self._supervisor.phase == "over"

    def _end(self, within_s: float | None) -> str:
        said = self._supervisor.stop(within_s)
        self._look_again()
        return self._with_loss(said)

    def _hasten(self) -> None:
        self._supervisor.hurry()

    def _left(self) -> str:
        return self._with_loss(self._supervisor.left())

    def _with_loss(self, said: str) -> str:
        lost = self._lost()
        return f"{said}. {lost}" if said and lost else said or lost

    def _look_again(self) -> None:
        """At what only the file system knows, from a thread that may wait for it."""
        self._absent = tuple(
            middle_cut(place_text(path)) for path in self._look.watch if not path.is_dir()
        )
        problem = self._supervisor.observer.recorder.stats.problem
        if not problem:
            self._unwritten = ("", "")
        elif not self._unwritten[0]:
            why = problem.rpartition(": ")[2]
            self._unwritten = (time.strftime("%H:%M:%S"), why[:1].lower() + why[1:])

    def _lost(self) -> str:
        since, why = self._unwritten
        return f"The run holds only what was written until {since}: {why}." if since else ""

    def mark(self) -> str:
        if not self.actions.mark:
            return "nothing is recorded just now"
        tell = self._supervisor.observer.tell
        if not self._hand_open:
            self._hand += 1
            self._hand_open = f"by hand {self._hand}"
            tell("begin", self._hand_open, by="hand")
            return f"checkpoint {self._hand_open} begins; mark again when it is over"
        window, self._hand_open = self._hand_open, ""
        at_ns = RealClock().now_ns()
        tell("returned", window, by="hand", t_ns=at_ns)
        tell("durable", window, by="hand", t_ns=at_ns, how="by hand")
        tell("end", window, by="hand", t_ns=at_ns)
        return f"checkpoint {window} is over"

    def busy(self) -> str:
        if self._supervisor.phase in ("new", "over"):
            return ""
        if self._supervisor.running:
            return f"{self.title} is running and being recorded; quitting ends both"
        return "a recording is under way; quitting ends it, and what there is is kept"

    def _status(self) -> LiveStatus:
        state, about = _state(self._supervisor, bool(self.board.records))
        if state == "ended" and self.board.exit_status is not None:
            about = f"exit {self.board.exit_status}"
        since, why = self._unwritten
        return (
            super()
            ._status()
            ._replace(
                looked=_looked(self._what, self._look, self._absent),
                state=state,
                about=about,
                output=self._output(),
                no_output=self._no_output(),
                unwritten=f"since {since}: {why}" if since else "",
                kill_in_s=self._supervisor.patience_left_s,
            )
        )

    def _troubles(self) -> list[str]:
        absent = [f"{path} is not there yet; waited for." for path in self._absent]
        lost = [self._lost()] if self.over and self._lost() else []
        return [*lost, *super()._troubles(), *absent, *self._supervisor.troubles()]

    def _no_output(self) -> str:
        if self._what.argv:
            return f"The command {'printed nothing' if self.over else 'has printed nothing yet'}."
        if self._what.pid is not None:
            return "The process was started elsewhere, so what it prints is not ours to read."
        return "No command was started here, so there is no output."

    def _output(self) -> tuple[str, ...]:
        if not self._what.argv:
            return ()
        now_s = self._clock()
        if now_s - self._said[0] >= 0.4 or self.over:
            self._said = (now_s, tuple(last_lines(self._supervisor.output())))
        return self._said[1]


def _state(supervisor: Supervisor, has_records: bool) -> tuple[State | None, str]:
    match supervisor.phase:
        case "stopping":
            return "stopping", "the command was told to end"
        case "settling":
            pending = supervisor.observer.pending
            waiting = f"; waiting for {count(float(pending))} to be on the storage"
            return "settling", supervisor.why + (waiting if pending else "")
        case "over":
            if supervisor.problem:
                return "failed", supervisor.problem
            return "ended", supervisor.why
    return (None, "") if has_records else ("starting", "")


def _looked(what: What, look: WatchOptions, absent: Sequence[str]) -> str:
    if look.watch:
        places = [middle_cut(place_text(path)) for path in look.watch]
        there = [place for place in places if place not in absent]
        told = ["looked for in " + ", ".join(there)] if there else []
        return "; ".join([*told, *(f"{place} is not there yet; waited for" for place in absent)])
    if what.argv:
        return "looked for in what the command writes, or its hooks say"
    return "looked for in what the process writes" if what.pid is not None else "mark one by hand"


def middle_cut(path: str) -> str:
    """A long path without its middle: where it is and what it is called are at its ends."""
    return path if len(path) <= 48 else f"{path[:16]} ... {path[-27:]}"


def what_of(start: Start) -> What:
    """Raises InputError."""
    if start.command.strip() and start.pid is not None:
        raise InputError(
            "a command or a process, not both", where="pid", remedy="empty one of the two fields"
        )
    try:
        argv = shlex.split(start.command)
    except ValueError as error:
        raise InputError(
            f"cannot be split into words ({error})", where="command", remedy="close the quotes"
        ) from None
    if start.pid is not None and start.pid <= 0:
        raise InputError("expected a process id", where="pid", remedy="a number, e.g. 4711")
    return What(tuple(argv), start.pid)


def look_of(start: Start, settle_s: float = SETTLE_S, gap_s: float = 1.0) -> WatchOptions:
    """Raises InputError for what is no folder; one that is not there yet is waited for."""
    watch = []
    for text in start.watch:
        if not text.strip():
            continue
        path = path_of(text).absolute()
        if path.exists() and not path.is_dir():
            raise InputError(
                f"{brief(text, 60)} is no folder",
                where="watch",
                remedy="name the folder that checkpoints are written to",
            )
        watch.append(path)
    return WatchOptions(tuple(dict.fromkeys(watch)), settle_s=settle_s, gap_s=gap_s)
