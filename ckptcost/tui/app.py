"""The application: themes, what is saved and copied, and the desk that all screens share."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from textual import work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.screen import Screen
from textual.widgets import Input

from ckptcost.errors import CkptcostError
from ckptcost.tui import leaving, state
from ckptcost.tui.commands import EVERYWHERE, bindings
from ckptcost.tui.desk import Desk
from ckptcost.tui.modes import Modes
from ckptcost.tui.preferences import Preferences
from ckptcost.tui.screens.base import ModeScreen
from ckptcost.tui.state import Remembered
from ckptcost.tui.themes import THEMES, theme_for
from ckptcost.tui.widgets.rows import Rows

WIDTHS: list[tuple[int, str]] = [(0, "-narrow"), (100, "-wide")]
HEIGHTS: list[tuple[int, str]] = [(0, "-short"), (30, "-tall")]
"""from so many columns and rows on, a class of every screen"""


def _things() -> type[Provider]:
    from ckptcost.tui.palette import Things

    return Things


class CkptcostApp(Modes):
    """Opened by `ckptcost` on a terminal."""

    TITLE = "ckptcost"
    CSS_PATH = Path(__file__).with_name("app.tcss")
    ENABLE_COMMAND_PALETTE = True
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    DEFAULT_MODE: str = "model"  # type: ignore[misc]  # of an instance: the first screen to be built is the one that is shown
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(EVERYWHERE),
        Binding("ctrl+q", "quit", priority=True),
    ]  # in a dialog, too

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
        leaving.end_with_the_terminal(self)
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
        from ckptcost.tui.files import runs_home
        from ckptcost.tui.modals.welcome import Welcome

        self.remembered = self.remembered._replace(welcomed=True)
        self.push_screen(
            Welcome(
                f"The screen remembers in {state.home()}; recordings go to {runs_home()}. Nothing"
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
        from ckptcost.tui.screens.meters import glance

        # nobody waits for it: the application may be ending
        self.call_later(self._seen, *glance(self.meters, self.plain))

    def _seen(self, lights: str, lines: tuple[str, ...]) -> None:
        from ckptcost.tui.modals.welcome import Welcome
        from ckptcost.tui.widgets.mode_bar import ModeBar

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
        from ckptcost.tui.modals.error import Defect

        self.push_screen(Defect(error))

    async def run_action(self, *words: Any, **more: Any) -> bool:
        """Whatever a key asks for: what is wrong with a file or a figure is said, and the
        application goes on."""
        try:
            return await super().run_action(*words, **more)
        except (CkptcostError, OSError) as error:
            self.notify(str(error), severity="error", markup=False)
            return True

    def action_help(self) -> None:
        from ckptcost.tui.modals.help import Help

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
        from ckptcost.tui.clipboard import copy

        if (screen := self.mode_screen) is not None:
            copy(self, screen.command_line(), "the command")

    def action_copy_table(self) -> None:
        from ckptcost.tui.clipboard import copy_grid

        if (screen := self.mode_screen) is not None:
            copy_grid(self, screen.table())

    def action_export(self) -> None:
        from ckptcost.tui.modals.files import Export

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
        from ckptcost.tui import files

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
        from ckptcost.tui.modals.files import SaveScenario

        self.push_screen(SaveScenario(self.desk), self._saved)

    def action_open_scenario(self) -> None:
        from ckptcost.tui.modals.files import OpenScenario

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
        from ckptcost.tui.palette import entries

        yield from entries(self, screen)

    def action_command_palette(self) -> None:
        """Not over a dialog: what it offers is of the screen below, which cannot be seen to
        answer."""
        if isinstance(self.screen, ModeScreen):
            super().action_command_palette()

    async def action_quit(self) -> None:
        await leaving.leave(self)

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
