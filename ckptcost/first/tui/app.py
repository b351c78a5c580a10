"""The application: the screens of its modes, themes, what is saved and copied, the desk that all
screens share, and going: what is still being recorded or written is asked about, what is to be
remembered is written down."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual import work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.screen import Screen
from textual.widgets import Input

from ckptcost.first.errors import CkptcostError, OutputError
from ckptcost.first.tui import state
from ckptcost.first.tui.commands import EVERYWHERE, bindings
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.modals.confirm import Confirm
from ckptcost.first.tui.preferences import Preferences
from ckptcost.first.tui.screens.base import ModeScreen
from ckptcost.first.tui.state import Remembered
from ckptcost.first.tui.themes import THEMES, theme_for
from ckptcost.first.tui.typing_ahead import TypingAhead
from ckptcost.first.tui.widgets.rows import Rows

WIDTHS: list[tuple[int, str]] = [(0, "-narrow"), (100, "-wide")]
HEIGHTS: list[tuple[int, str]] = [(0, "-short"), (30, "-tall")]
"""from so many columns and rows on, a class of every screen"""

SCREENS = {
    "model": ("model", "ModelScreen"),
    "tiers": ("tiers", "TiersScreen"),
    "interval": ("interval", "IntervalScreen"),
    "live": ("live", "LiveScreen"),
    "probe": ("probe", "ProbeScreen"),
    "runs": ("runs", "RunsScreen"),
    "audit": ("audit", "AuditScreen"),
    "report": ("report", "ReportScreen"),
    "doctor": ("doctor", "DoctorScreen"),
}
"""by mode, the module of its screen and its class; a module is read when its mode is gone to, so
that the start is quick"""
TERMINAL_S = 5.0
"""how often to look whether the terminal is still there"""
GONE_S = 5.0
"""so long after everything was given up; then nothing waits for a terminal that takes no more
letters"""


def built(module: str, name: str) -> Screen[Any]:
    screen: ModeScreen = getattr(import_module(f"ckptcost.first.tui.screens.{module}"), name)()
    screen.coloured_by = screen.app.theme  # its style sheets are still to be read
    return screen


def _things() -> type[Provider]:
    from ckptcost.first.tui.palette import Things

    return Things


class Quit(Confirm):
    """Asked once, however often the key is pressed."""


class CkptcostApp(TypingAhead):
    """Opened by `ckptcost` on a terminal. What a screen can ask of it by name is in
    `ModeScreen.hand_over`."""

    TITLE = "ckptcost"
    CSS_PATH = Path(__file__).with_name("app.tcss")
    ENABLE_COMMAND_PALETTE = True
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    # of an instance: the first screen to be built is the one that is shown
    DEFAULT_MODE: str = "model"  # type: ignore[misc]
    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {
        mode: partial(built, *where) for mode, where in SCREENS.items()
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(EVERYWHERE),
        Binding("ctrl+q", "quit", priority=True),  # in a dialog, too
    ]

    def __init__(
        self,
        desk: Desk | None = None,
        *,
        start: str = "",
        meters: str = "auto",
        plain: bool = False,
        remembered: Remembered | None = None,
        welcome: bool = False,
        demo: bool = False,
        look: bool = False,
        preferences: Preferences | None = None,
    ) -> None:
        if start in self.MODES:
            self.DEFAULT_MODE = start
        super().__init__()
        self.opened: list[ModeScreen] = []
        """every screen that stands somewhere, whether it is seen or not"""
        self.started = False
        self.to_live: tuple[str, str] | None = None
        """a run that another screen hands to the live one: "replay" or "follow", and its folder"""
        self.remembered = remembered if remembered is not None else Remembered()
        self.desk = desk or Desk()
        self.meters = meters
        """what the live screen reads, as `--meters` says it"""
        self.plain = plain
        """no braille and no boxes: letters only"""
        self.set_class(plain, "-plain")  # dialogs, too
        self.lights = ""
        """which kinds of meters answer, for the bar at the top"""
        self.demo = demo
        """the live screen begins at once with the made-up machine"""
        self._welcome, self._look = welcome, look
        self.animation_level = "none"
        self.preferences = preferences or Preferences()
        self.themes = (*THEMES, *self.preferences.themes)
        for theme in self.themes:
            self.register_theme(theme)
        self.theme = theme_for(self.remembered.theme, self.no_color, self.themes)

    def on_ready(self) -> None:
        """From here on what is drawn is seen."""
        self.started = True
        self.screen.check_idle()

    async def on_mount(self) -> None:
        self._end_with_the_terminal()
        if self.preferences.keys:
            self.set_keymap(self.preferences.keys)
        for problem in filter(None, (self.remembered.problem, *self.preferences.problems)):
            self.notify(problem, severity="warning", markup=False)
        if self._welcome:
            self._greet()
        self.call_after_refresh(self._painted)

    def _painted(self) -> None:
        """After the first frame, which nothing else holds up: see `cli.screen_` for the
        collector."""
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        if self._look:
            self._look_at_the_machine()

    def refresh_css(self, animate: bool = True) -> None:
        """Style sheets are read again for another theme only, not for a new screen: its widgets
        bring what is not read yet. Before there is a screen, a theme is colours and nothing
        else."""
        stack = self.screen_stack
        if not stack:
            self.stylesheet.set_variables(self.get_css_variables())
        elif any(getattr(screen, "coloured_by", "") != self.theme for screen in stack):
            super().refresh_css(animate)
            for screen in stack:
                if isinstance(screen, ModeScreen):
                    screen.coloured_by = self.theme

    def _greet(self) -> None:
        from ckptcost.first.runs import store
        from ckptcost.first.tui.modals.welcome import Welcome

        self.remembered = self.remembered._replace(welcomed=True)
        self.push_screen(
            Welcome(
                f"The screen remembers in {state.home()}; recordings go to {store.home()}. Nothing"
                " is sent anywhere."
            ),
            self._on,
        )

    async def _on(self, where: str | None) -> None:
        if where == "open":
            self.action_open_scenario()
        elif where == "demo":
            self.demo, self.meters = True, "simulated"
            self.switch_mode("live")
        elif where == "job":
            await self.switch_mode("live")
            await self.screen.run_action("field('command')")
        elif where == "inputs":
            self.call_after_refresh(self.screen.run_action, "inputs")
        elif where:
            self.switch_mode(where)

    @work(thread=True, exit_on_error=False, name="machine")
    def _look_at_the_machine(self) -> None:
        """Which meters answer takes a second to find out: told when it is known."""
        from ckptcost.first.tui.screens.meters import glance

        # nobody waits for it: the application may be ending
        self.call_later(self._seen, *glance(self.meters, self.plain))

    def _seen(self, lights: str, lines: tuple[str, ...]) -> None:
        from ckptcost.first.tui.modals.welcome import Welcome
        from ckptcost.first.tui.widgets.mode_bar import ModeBar

        self.lights = lights
        for screen in self.screen_stack:
            if isinstance(screen, Welcome):
                screen.show(lines)
            for bar in screen.query(ModeBar):
                bar.show()

    @property
    def mode_screen(self) -> ModeScreen | None:
        """The screen below any dialog."""
        return next(
            (screen for screen in reversed(self.screen_stack) if isinstance(screen, ModeScreen)),
            None,
        )

    def defect(self, error: BaseException | None) -> None:
        """Something that should not happen: said in a dialog, and the app goes on."""
        from ckptcost.first.tui.modals.error import Defect

        self.push_screen(Defect(error))

    async def run_action(self, *words: Any, **more: Any) -> bool:
        """Whatever a key asks for: what is wrong with a file or a figure is said, and the
        application goes on."""
        try:
            return await super().run_action(*words, **more)
        except (CkptcostError, OSError) as error:
            self.notify(str(error), severity="error", markup=False)
            return True

    def action_go(self, mode: str) -> None:
        if mode != self.current_mode and not isinstance(self.screen, ModeScreen):
            return  # a dialog is answered first
        self.switch_mode(mode)

    def replay(self, run: str) -> None:
        self.to_live = ("replay", run)
        self.switch_mode("live")

    def follow(self, run: str) -> None:
        self.to_live = ("follow", run)
        self.switch_mode("live")

    def open_run(self, run: str) -> None:
        from ckptcost.first.tui.screens.run import RunScreen
        from ckptcost.first.tui.screens.runs_entries import source_at

        self._over_runs(lambda: RunScreen(source_at(run)))

    def calibrate(self, runs: Sequence[str]) -> None:
        from ckptcost.first.tui.screens.calibrate import CalibrateScreen
        from ckptcost.first.tui.screens.runs_entries import source_at

        self._over_runs(lambda: CalibrateScreen([source_at(run) for run in runs]))

    def _over_runs(self, opened: Callable[[], Screen[Any]]) -> None:
        """A screen that lies over the list of runs; one line where it cannot be opened."""
        self.switch_mode("runs")
        try:
            self.push_screen(opened())
        except (CkptcostError, OSError) as error:
            self.notify(str(error), severity="error", markup=False)

    def action_help(self) -> None:
        from ckptcost.first.tui.modals.help import Help

        if isinstance(self.screen, ModeScreen):
            self.push_screen(
                Help(
                    self.screen.TITLE_TEXT or self.screen.MODE.capitalize(),
                    self.screen.ABOUT,
                    self.screen.KEYS_HERE,
                )
            )

    def action_next_theme(self) -> None:
        names = [theme.name for theme in self.themes]
        at = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(at + 1) % len(names)]
        self.notify(f"Theme: {self.theme}", timeout=2)

    def action_leave(self) -> None:
        """Out of a field, back from a panel that fills the screen, back from a screen that lies
        over a mode's own."""
        if self.screen.maximized is not None:
            self.screen.minimize()
        elif isinstance(self.focused, Input):
            self.screen.set_focus(None)
        elif len(self.screen_stack) > 1:
            self.pop_screen()

    def action_zoom(self) -> None:
        if self.screen.maximized is not None:
            self.screen.minimize()
        elif self.focused is not None:
            self.screen.maximize(self.focused)

    def action_copy_command(self) -> None:
        from ckptcost.first.tui.clipboard import copy

        if (screen := self.mode_screen) is not None:
            copy(self, screen.command_line(), "the command")

    def action_copy_table(self) -> None:
        from ckptcost.first.tui.clipboard import copy_grid

        if (screen := self.mode_screen) is not None:
            copy_grid(self, screen.table())

    def action_export(self) -> None:
        from ckptcost.first.tui.modals.files import Export

        if (screen := self.mode_screen) is not None:
            picture = self.export_screenshot()
            self.push_screen(
                Export(
                    screen.MODE,
                    screen.exported(),
                    self.desk,
                    screen.command_line(),
                    picture,
                    screen.read(),
                ),
                self._written,
            )

    def action_page(self) -> None:
        """Beside the others, never over one."""
        from ckptcost.first.tui import files

        if (screen := self.mode_screen) is None:
            return
        if (shown := screen.exported()) is None:
            screen.say("There are no figures here to write.", "warn")
            return
        path = files.free_name(f"ckptcost-{screen.MODE}", "html")
        command = screen.command_line()
        self._written(str(files.write_view(shown, path, self.desk, command, read=screen.read())))

    def action_find(self) -> None:
        """In the table that has the focus, else the first of the screen."""
        tables = [rows for rows in self.screen.focus_chain if isinstance(rows, Rows)]
        if isinstance(self.focused, Rows):
            self.focused.find()
        elif filled := [rows for rows in tables if rows.grid.rows]:
            filled[0].find()

    def action_save_scenario(self) -> None:
        from ckptcost.first.tui.modals.files import SaveScenario

        self.push_screen(SaveScenario(self.desk), self._saved)

    def action_open_scenario(self) -> None:
        from ckptcost.first.tui.modals.files import OpenScenario

        self.push_screen(OpenScenario(self.desk, self.remembered.recent), self._opened)

    def _opened(self, desk: Desk | None) -> None:
        if desk is not None and (screen := self.mode_screen) is not None:
            self._recall(desk.base)
            screen.change(desk)

    def _saved(self, path: str | None) -> None:
        """What was saved is what one works on from then on: the changes are in the file."""
        if path is None or (screen := self.mode_screen) is None:
            return
        self._recall(path)
        screen.change(self.desk.saved_as(path))
        self._written(path)

    def _recall(self, base: str) -> None:
        self.remembered = self.remembered._replace(
            recent=(base, *(one for one in self.remembered.recent if one != base))[:10]
        )

    def _written(self, path: str | None) -> None:
        if path is not None:
            self.notify(f"written: {path}", timeout=4, markup=False)

    COMMANDS = App.COMMANDS | {_things}

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        from ckptcost.first.tui.palette import entries

        yield from entries(self)

    def action_command_palette(self) -> None:
        """Not over a dialog: what it offers is of the screen below, which cannot be seen to
        answer."""
        if isinstance(self.screen, ModeScreen):
            super().action_command_palette()

    def busy(self) -> list[str]:
        """What would be cut off, a sentence for each."""
        return [text for screen in self.opened if (text := screen.busy())]

    async def action_quit(self) -> None:
        cut_off = self.busy()
        if not cut_off:
            self.quit_now()
        elif not isinstance(self.screen, Quit):
            self.push_screen(
                Quit("Quit?", "\n".join(cut_off), "quit"),
                lambda yes: self.quit_now() if yes else None,
            )

    def quit_now(self) -> None:
        """At once. What goes on without the screen is said on the terminal that it leaves."""
        screens = list(self.opened)
        for screen in screens:
            screen.give_up()
        said = [words for screen in screens if (words := screen.last_words)]
        try:
            state.save(self.remember())
        except OutputError as error:
            said.append(str(error))
        self.exit(message=Text("\n".join(said)) if said else None)

    def _end_with_the_terminal(self) -> None:
        """A closed window or a kill ends what is under way in order; an application whose terminal
        is gone would wait or spin for ever."""
        if self.is_headless:
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            # not in the main thread: whoever runs it there sees to signals
            with contextlib.suppress(RuntimeError, ValueError):
                loop.add_signal_handler(number, end, self)
        if not self.is_web:
            self.set_interval(TERMINAL_S, lambda: None if os.isatty(0) else end(self))

    def remember(self) -> Remembered:
        """What the next start begins with."""
        return self.remembered._replace(
            theme=self.theme,
            base=self.desk.base,
            edits=dict(self.desk.edits),
            tiers=self.desk.tiers,
            baseline=self.desk.baseline,
            metric=self.desk.metric,
            mode=self.current_mode,
        )


def end(app: CkptcostApp) -> None:
    """Without asking. What is recorded is complete once `quit_now` has returned."""
    last = threading.Timer(GONE_S, os._exit, (0,))
    last.daemon = True
    app.quit_now()
    last.start()
