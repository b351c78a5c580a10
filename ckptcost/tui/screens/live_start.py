"""Before anything is measured: the start page, and opening what was asked for in the background."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from ckptcost.errors import InputError
from ckptcost.present.grid import Grid
from ckptcost.tui.live import sources as live_sources
from ckptcost.tui.live.reading import Source
from ckptcost.tui.modals.confirm import Confirm
from ckptcost.tui.modals.picker import Picker
from ckptcost.tui.screens import live_setup
from ckptcost.tui.screens.base import ModeScreen
from ckptcost.tui.widgets.live_start import StartPage

STOP_S = 1.5
"""quitting waits no longer for a job to end"""
Opener = Callable[[], Source]


class Opening(ModeScreen):
    """The half of the live screen that gets a source; the other half shows it."""

    MODE: ClassVar[str] = "live"

    def __init__(self, source: Source | None) -> None:
        super().__init__()
        self._given = source
        self._source: Source | None = None
        self._candidate: Source | None = None
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

    def begun(self, source: Source) -> None:
        """It has started."""

    def turn_to(self, board: bool) -> None:
        """Show the board, or the start page."""

    def look_around(self) -> None:
        """What was handed over by another screen, or else what the start page shows."""
        handed = self._handed_over()
        if handed is not None:
            self._open(*handed)
        elif self._source is None and not self._opening:
            page, meters, plain = self.query_one(StartPage), self.host.meters, self.host.plain
            page.keep_in(live_setup.home())
            if not page.lit:
                page.show([("Looking for meters ...", "muted")])
            self.background(
                "lights", lambda stopped: live_setup.lights_of(meters, plain), page.show
            )

    def _handed_over(self) -> tuple[Opener, str] | None:
        """From a test; from another screen, as `app.to_live` = ("replay" or "follow", a run); from
        the command line, as `app.demo`."""
        desk = self.desk
        if (given := self._given) is not None:
            self._given = None
            return (lambda: given), ""
        what, run = getattr(self.app, "to_live", None) or ("", "")
        if what:
            self.app.to_live = None  # type: ignore[attr-defined]
            return (
                (lambda: live_sources.replay(run, desk))
                if what == "replay"
                else (lambda: live_sources.followed(run, desk))
            ), ""
        if getattr(self.app, "demo", False):
            self.app.demo = False  # type: ignore[attr-defined]
            return (lambda: live_sources.demo(desk)), live_setup.DEMO_COMMAND
        return None

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

        def work(stopped: Callable[[], bool]) -> Source:
            if before is not None:
                before.stop()
            self._candidate = source = opener()
            source.start()
            return source

        self.background("open", work, self._opened, self._refused)

    def _opened(self, source: Source) -> None:
        self._opening, self._candidate = False, None
        self._source = source
        opens = "Enter: the last checkpoint; g: each GPU; v: another list."
        if source.folder is None:
            self.say("Nothing is written.")
        elif self._command == live_setup.DEMO_COMMAND:
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
            start = live_setup.start_of(live_setup.Typed(**page.typed()), self.host.meters)
        except InputError as error:
            page.refuse(error.where, str(error))
            return
        opens = (
            "Starting; the run is written to"
            f" {start.record or f'{live_setup.home()}, a folder of its own'} ..."
        )
        self._open(lambda: live_sources.own(start, self.desk), live_setup.command_of(start), opens)

    def action_measure(self) -> None:
        """With what was typed, if anything was; of a made-up machine there is the demo."""
        if self.host.meters == "simulated" and not any(self.query_one(StartPage).typed().values()):
            self.action_demo()
        else:
            self._begin(self.query_one(StartPage))

    def action_demo(self) -> None:
        self._open(lambda: live_sources.demo(self.desk), live_setup.DEMO_COMMAND)

    def action_field(self, name: str) -> None:
        self.query_one(StartPage).go_to(name)

    def action_processes(self) -> None:
        def chosen(pid: str | None) -> None:
            if pid:
                self.query_one(StartPage).type("pid", pid)
                self.action_field("pid")

        self.background(
            "processes",
            lambda stopped: live_setup.gpu_processes(),
            lambda grid: self._pick(grid, chosen),
        )

    def action_follow(self) -> None:
        def chosen(run: str | None) -> None:
            if run:
                self._open(lambda: live_sources.followed(run, self.desk))

        self.background(
            "runs",
            lambda stopped: live_setup.being_recorded(),
            lambda grid: self._pick(grid, chosen),
        )

    def _pick(self, grid: Grid, chosen: Callable[[str | None], None]) -> None:
        if grid.rows:
            self.app.push_screen(Picker(grid.title, grid), chosen)
        else:
            self.say(grid.empty)

    def action_baseline(self) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                meters = self.host.meters
                self.background(
                    "baseline",
                    lambda stopped: live_sources.learn_baseline(meters, stopped, self._learning),
                    lambda text: self.say(text, "good"),
                )

        text = (
            "The machine is watched for 30 s, and nothing else may run on it.\nThe baseline goes"
            f" to {live_setup.baseline_file()}"
        )
        self.app.push_screen(Confirm("Learn the idle power?", text, "learn"), answered)

    def _learning(self, done: float, text: str) -> None:
        self.app.call_from_thread(self.say, text)
