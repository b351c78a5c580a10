"""Before anything is measured: the start page and what it asks, what can be measured here, which
processes hold a GPU; and opening what was asked for in the background."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from ckptcost.first.errors import CkptcostError, InputError, brief
from ckptcost.first.present.amounts import count
from ckptcost.first.present.grid import Grid, GridHead, Row, Tone
from ckptcost.first.questions.review import of_path
from ckptcost.first.report.studies.runs import place_text
from ckptcost.first.report.study import Study
from ckptcost.first.runs import baselines, store
from ckptcost.first.runs.summary import RECORDING, summary_of
from ckptcost.first.tui.live import sources as live_sources
from ckptcost.first.tui.live.source import Start
from ckptcost.first.tui.modals.confirm import Confirm
from ckptcost.first.tui.modals.picker import Picker
from ckptcost.first.tui.paths import path_of
from ckptcost.first.tui.screens.base import ModeScreen
from ckptcost.first.tui.screens.meters import KINDS, kinds_of, look, overview, rows_of
from ckptcost.first.tui.widgets.live_start import StartPage

if TYPE_CHECKING:
    from ckptcost.first.tui.desk import Desk
    from ckptcost.first.tui.live.reading import LiveSource

    Opener = Callable[[], LiveSource]

DEMO_COMMAND = "ckptcost measure --meters simulated --for '5 min'"
_CARD = re.compile(r"/dev/(?:nvidia(\d+)|kfd)$")
_LETTERS = 200
"""of a command"""
_LOOKED_AT = 40
"""runs, the latest first: one that is being recorded is among them"""


class Typed(NamedTuple):
    """The fields of the page."""

    command: str = ""
    pid: str = ""
    watch: str = ""
    """folders, with commas between"""
    record: str = ""


def start_of(typed: Typed, meters: str) -> Start:
    """What the fields mean. Raises InputError, whose `where` is the field."""
    from ckptcost.first.tui.live.own import look_of, what_of

    pid, record = typed.pid.strip(), typed.record.strip()
    if pid and not (pid.isascii() and pid.isdigit()):
        raise InputError(
            f"{brief(pid, 20)} is no process id", where="pid", remedy="a number, e.g. 4711"
        )
    start = Start(
        typed.command.strip(),
        int(pid) if pid else None,
        tuple(str(path_of(text, "watch")) for text in typed.watch.split(",") if text.strip()),
        meters,
        str(path_of(record, "record")) if record else "",
    )
    what_of(start)
    look_of(start)
    return start


def command_of(start: Start) -> str:
    """The command line that records the same; of a folder that is watched alone there is none."""
    words: list[str] = []
    if start.command:
        words = ["ckptcost", "run"]
    elif start.pid is not None:
        words = ["ckptcost", "attach", str(start.pid)]
    elif start.watch:
        return ""
    else:
        words = ["ckptcost", "measure", "--for", "10 min"]
    words += ["--meters", start.meters] if start.meters != "auto" else []
    for folder in start.watch:
        words += ["--watch", folder]
    words += ["--record", start.record] if start.record else []
    return shlex.join(words) + (f" -- {start.command}" if start.command else "")


def lines(study: Study, plain: bool = False) -> list[tuple[str, Tone]]:
    """A line for each kind; below what refuses, what would help."""
    told = overview(study, plain)
    kinds = kinds_of(study)
    first = 1 if study.simulated else 0
    out = told[:first]
    absences = rows_of(study, "absences")
    for kind, line in zip(kinds, told[first:], strict=False):
        out.append(line)
        helps = [
            str(row["remedy"]).split("\n")[0]
            for row in absences
            if row["kind"] == kind.id and row["remedy"]
        ]
        if kind.state == "refuses" and helps:
            out.append((f"{'':<{len(max(KINDS.values(), key=len)) + 3}}{helps[0]}", "muted"))
    return out


def lights_of(meters: str, plain: bool = False) -> list[tuple[str, Tone]]:
    """Tries every meter, which takes a second or three; where that cannot be done, why."""
    try:
        return lines(look(meters), plain)
    except (CkptcostError, OSError) as error:
        return [(str(error), "bad")]


def home() -> str:
    """Where runs go if no folder is named."""
    return place_text(store.home())


def baseline_file() -> str:
    return place_text(baselines.file_of())


def report_of(source: LiveSource) -> str:
    """The command that says of its run what the screen says."""
    return "" if source.folder is None else shlex.join(["ckptcost", "report", str(source.folder)])


def study_of(source: LiveSource) -> Study | None:
    """Its run so far, as that command has it; None where nothing is kept or nothing can be told
    yet."""
    if source.folder is None:
        return None
    try:
        return of_path(source.folder).study
    except (CkptcostError, OSError):
        return None


def gpu_processes(procfs: Path = Path("/proc")) -> Grid:
    """Processes that hold a GPU open, as far as this user may see: for the field of the PID."""
    heads = (
        GridHead("pid", "PID"),
        GridHead("gpus", "GPUs", left=True),
        GridHead("command", "command", left=True),
    )
    rows = []
    for pid in sorted((int(name) for name in os.listdir(procfs) if name.isdigit()), reverse=True):
        with contextlib.suppress(OSError):  # it has ended, or belongs to somebody else
            cards = _cards(procfs / str(pid) / "fd")
            if cards is not None and pid != os.getpid():
                said = (procfs / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace")
                command = " ".join(filter(None, said.split("\0")))[:_LETTERS] or "-"
                rows.append(Row(str(pid), (str(pid), cards, command), (float(pid), cards, command)))
    empty = "No process of yours has a GPU open."
    return Grid(heads, rows, "Processes that hold a GPU", f"{count(len(rows))} seen", empty)


def _cards(fds: Path) -> str | None:
    """The numbers of the cards that are open; None where none is."""
    found = set()
    for name in os.listdir(fds):
        with contextlib.suppress(OSError):
            found.add(_CARD.match(os.readlink(fds / name)))
    held = [each for each in found if each is not None]
    numbers = sorted({int(each[1]) for each in held if each[1]})
    return (", ".join(map(str, numbers)) or "AMD") if held else None


def being_recorded(within: Path | None = None) -> Grid:
    """Runs that a recorder is writing just now, here or elsewhere on a shared disk; a row's key is
    the folder."""
    heads = (
        GridHead("name", "run", left=True),
        GridHead("host", "host", left=True),
        GridHead("what", "what", left=True),
    )
    rows = []
    for kept in store.list_runs(within).runs[:_LOOKED_AT]:
        run = summary_of(kept)
        if run.state == RECORDING:
            rows.append(Row(str(run.path), (run.name, ", ".join(run.hosts), run.command or "-")))
    return Grid(heads, rows, "Being recorded", "", "Nobody is recording just now.")


STOP_S = 1.5
"""quitting waits no longer for a job to end"""


class Opening(ModeScreen):
    """The half of the live screen that gets a source; the other half shows it."""

    MODE: ClassVar[str] = "live"

    def __init__(self, source: LiveSource | None) -> None:
        super().__init__()
        self._given = source
        self._source: LiveSource | None = None
        self._candidate: LiveSource | None = None
        """being started"""
        self._command = ""
        self._opening = False
        self.last_words = ""
        """after `give_up`: what has to be known when the application is gone, such as a job that
        goes on"""

    def give_up(self) -> None:
        said = [
            source.stop(STOP_S) for source in (self._source, self._candidate) if source is not None
        ]
        self.last_words = "\n".join(f"{text[0].upper()}{text[1:]}" for text in said if text)

    def busy(self) -> str:
        return "" if self._source is None else self._source.busy()

    def begun(self, source: LiveSource) -> None:
        """It has started."""

    def turn_to(self, board: bool) -> None:
        """Show the board, or the start page."""

    def look_around(self) -> None:
        """What was handed over, from a test, from another screen as `app.to_live` = ("replay" or
        "follow", a run) or from the command line as `app.demo`; or else what the start page
        shows."""
        app: Any = self.app
        desk, (what, run) = self.desk, getattr(app, "to_live", None) or ("", "")
        if (given := self._given) is not None:
            self._given = None
            self._open(lambda: given)
        elif what:
            app.to_live = None
            again: Callable[[str, Desk], LiveSource] = live_sources.followed
            if what == "replay":
                again = live_sources.replay
            self._open(lambda: again(run, desk))
        elif getattr(app, "demo", False):
            app.demo = False
            self.action_demo()
        elif self._source is None and not self._opening:
            page, meters, plain = self.query_one(StartPage), self.host.meters, self.host.plain
            page.keep_in(home())
            if not page.lit:
                page.show([("Looking for meters ...", "muted")])
            self.background("lights", lambda stopped: lights_of(meters, plain), page.show)

    def _open(self, opener: Opener, command: str = "", says: str = "Starting ...") -> None:
        """In the background: meters, commands and runs take a moment."""
        if self._opening:
            return
        before = self._source
        if before is not None and (text := before.busy()):
            self.say(f"Not now: {text}. R ends it first.", "warn")
            return
        self._opening, self._command = True, command
        self.stop_background("lights")
        self.query_one(StartPage).accept()
        self.say(says)
        self.refresh_bindings()

        def work(stopped: Callable[[], bool]) -> LiveSource:
            if before is not None:
                before.stop()
            self._candidate = source = opener()
            source.start()
            return source

        self.background("open", work, self._opened, self._refused)

    def _opened(self, source: LiveSource) -> None:
        self._opening, self._candidate = False, None
        self._source = source
        opens = "Enter: the last checkpoint; g: each GPU; v: another list."
        if source.folder is None:
            self.say("Nothing is written.")
        elif self._command == DEMO_COMMAND:
            self.say(f"A demonstration. {opens}")
        else:
            self.say(f"Recorded to {source.folder}. {opens}")
        self.begun(source)

    def _refused(self, text: str) -> None:
        self._opening, self._candidate, self._source = False, None, None
        self.turn_to(board=False)
        self.query_one(StartPage).refuse("", text)
        self.say(text, "bad")

    def on_start_page_begin(self) -> None:
        page = self.query_one(StartPage)
        if page.is_empty:
            self.say("Nothing is typed. M, outside a field, measures this machine alone.", "warn")
        else:
            self._begin(page)

    def _begin(self, page: StartPage) -> None:
        try:
            start = start_of(Typed(**page.typed()), self.host.meters)
        except InputError as error:
            page.refuse(error.where, str(error))
            return
        where = start.record or f"{home()}, a folder of its own"
        says = f"Starting; the run is written to {where} ..."
        self._open(lambda: live_sources.own(start, self.desk), command_of(start), says)

    def action_measure(self) -> None:
        """With what was typed, if anything was; of a made-up machine there is the demo."""
        if self.host.meters == "simulated" and not any(self.query_one(StartPage).typed().values()):
            self.action_demo()
        else:
            self._begin(self.query_one(StartPage))

    def action_demo(self) -> None:
        self._open(lambda: live_sources.demo(self.desk), DEMO_COMMAND)

    def action_field(self, name: str) -> None:
        self.query_one(StartPage).go_to(name)

    def action_processes(self) -> None:
        def chosen(pid: str) -> None:
            self.query_one(StartPage).type("pid", pid)
            self.action_field("pid")

        self._pick(gpu_processes, chosen)

    def action_follow(self) -> None:
        def chosen(run: str) -> None:
            self._open(lambda: live_sources.followed(run, self.desk))

        self._pick(being_recorded, chosen)

    def _pick(self, look: Callable[[], Grid], chosen: Callable[[str], None]) -> None:
        def found(grid: Grid) -> None:
            if grid.rows:
                self.app.push_screen(
                    Picker(grid.title, grid), lambda key: chosen(key) if key else None
                )
            else:
                self.say(grid.empty)

        self.background("pick", lambda stopped: look(), found)

    def action_baseline(self) -> None:
        meters = self.host.meters

        def tell(text: str) -> None:
            self.app.call_from_thread(self.say, text)

        def answered(yes: bool | None) -> None:
            if yes:
                self.background(
                    "baseline",
                    lambda stopped: live_sources.learn_baseline(meters, stopped, tell),
                    lambda text: self.say(text, "good"),
                )

        text = "The machine is watched for 30 s, and nothing else may run on it."
        text += f"\nThe baseline goes to {baseline_file()}"
        self.app.push_screen(Confirm("Learn the idle power?", text, "learn"), answered)
