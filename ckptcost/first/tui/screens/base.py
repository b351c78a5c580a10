"""What all screens share: the bar of modes, the bottom lines, the desk, work in the background, and
silence while nobody looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Protocol, TypeVar, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Resize, ScreenResume
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static
from textual.worker import Worker, WorkerState, get_current_worker

from ckptcost.first.errors import CkptcostError
from ckptcost.first.present.chart import Bars, Chart
from ckptcost.first.present.grid import Grid, Tone
from ckptcost.first.tui.commands import Command
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.preferences import Preferences
from ckptcost.first.tui.state import Remembered
from ckptcost.first.tui.widgets.bottom import Keys, Status
from ckptcost.first.tui.widgets.mode_bar import ModeBar

LEAST_COLUMNS, LEAST_ROWS = 80, 20

T = TypeVar("T")
W = TypeVar("W", bound=Widget)
Stopped = Callable[[], bool]
"""asked by work in the background between its steps"""


def panel(widget: W, title: str = "", note: str = "") -> W:
    """A part of a screen with a frame, a name on it, and a word below."""
    widget.add_class("panel")
    widget.border_title, widget.border_subtitle = title, note
    return widget


class Host(Protocol):
    """What a screen needs of the application."""

    desk: Desk
    meters: str
    plain: bool
    lights: str
    opened: list[ModeScreen]
    started: bool
    remembered: Remembered
    preferences: Preferences

    def defect(self, error: BaseException | None) -> None: ...


class WorkerScreen(Screen[Any]):
    """A screen that works in threads: what is expected is said, a defect opens a dialog."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._afterwards: dict[str, tuple[Callable[[Any], None], Callable[[str], None]]] = {}

    def complain(self, text: str) -> None:
        """An expected error that nobody else takes."""

    def background(
        self,
        name: str,
        work: Callable[[Stopped], T],
        done: Callable[[T], None],
        failed: Callable[[str], None] | None = None,
    ) -> Worker[T]:
        """Run `work` in a thread, and `done` with its value in the screen. The same name again: the
        older one is told to stop, and what it finds is dropped. An expected error is said in the
        bottom line, unless `failed` takes it; a defect opens a dialog.
        """
        self._afterwards[name] = (done, failed or self.complain)

        def run() -> T:
            worker = get_current_worker()
            return work(lambda: worker.is_cancelled)

        return self.run_worker(
            run, name=name, group=name, thread=True, exclusive=True, exit_on_error=False
        )

    def stop_background(self, name: str) -> None:
        self.workers.cancel_group(self, name)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        worker = event.worker
        if worker.node is not self or worker.name not in self._afterwards:
            return
        done, failed = self._afterwards[worker.name]
        if event.state is WorkerState.SUCCESS:
            done(worker.result)
        elif event.state is WorkerState.ERROR:
            error = worker.error
            if isinstance(error, CkptcostError | OSError):
                failed(str(error))
            else:
                cast(Host, self.app).defect(error)


class ModeScreen(WorkerScreen):
    """A screen of one mode, or one that lies over it. Subclasses give `body`, and `on_desk` where
    they show the scenario."""

    MODE: ClassVar[str] = ""
    TITLE_TEXT: ClassVar[str] = ""
    ABOUT: ClassVar[str] = ""
    """a paragraph for the help: what is seen here and what the numbers mean"""
    KEYS_HERE: ClassVar[tuple[Command, ...]] = ()
    BINDINGS: ClassVar[list[BindingType]] = []
    coloured_by = ""
    """the theme that its style sheets were last read with"""
    last_words = ""
    """what is to be said on the terminal after `give_up`"""
    AUTO_FOCUS = "Rows"
    """never a field by itself: there the digits would be typed instead of changing the mode"""

    def __init__(self) -> None:
        super().__init__()
        self._desk_seen: Desk | None = None

    # what a screen gives

    def body(self) -> Iterable[Widget]:
        """The widgets between the bar and the bottom lines."""
        return ()

    def on_desk(self) -> None:
        """The scenario has changed, or the screen is shown for the first time."""

    def command_line(self) -> str:
        """The command that prints the same numbers; empty where there is none."""
        return ""

    def table(self) -> Grid | None:
        """What `Y` copies: the table under the cursor."""
        return None

    def exported(self) -> Any:
        """What `E` writes: a Study, or None where there is nothing yet."""
        return None

    def read(self) -> tuple[str, ...]:
        """Files of the user's own that `exported` rests on, besides the scenario."""
        return ()

    def shown(self) -> None:
        """The screen is seen again: start timers."""

    def hidden(self) -> None:
        """Nobody looks any more: stop drawing."""

    def busy(self) -> str:
        """A sentence on what quitting would cut off; empty where nothing is under way."""
        return ""

    def give_up(self) -> None:
        """The application ends: stop what is under way and clean up, quickly."""

    # what it has

    @property
    def host(self) -> Host:
        return cast(Host, self.app)

    @property
    def desk(self) -> Desk:
        return self.host.desk

    def change(self, desk: Desk) -> None:
        """Another scenario for every screen; this one hears of it at once."""
        self.host.desk = desk
        self.refresh_desk()

    def refresh_desk(self) -> None:
        if self._desk_seen is not self.desk and self.is_mounted:
            self._desk_seen = self.desk
            self.on_desk()

    def say(self, text: str, tone: Tone = "") -> None:
        """The line above the keys."""
        self.query_one(Status).show(text, tone)

    def show_in(self, panel: str, shown: Grid | Bars | Chart) -> None:
        """A table or a picture, whose title and note stand in the border."""
        widget: Any = self.query_one(f"#{panel}")
        plain = shown._replace(title="", note="")
        widget.show(shown if isinstance(shown, Grid) else plain)
        widget.border_title, widget.border_subtitle = Content(shown.title), Content(shown.note)

    def hand_over(self, what: str, given: object) -> bool:
        """To another mode, which the application knows; False where it does not."""
        take = getattr(self.app, what, None)
        if callable(take):
            take(given)
        return callable(take)

    def complain(self, text: str) -> None:
        self.say(text, "bad")

    # how it works

    def compose(self) -> ComposeResult:
        self._dress()
        yield ModeBar(self.MODE)
        with Vertical(classes="body"):
            yield from self.body()
        yield Static(id="too-small")
        yield Status()
        yield Keys()

    def _dress(self) -> None:
        """The classes that the size decides, while there is nothing in the screen yet: those that
        come with the first Resize style every widget a second time, a fiftieth of the way to the
        first frame."""
        classes = {"-plain": self.host.plain}
        for cells, breakpoints in zip(
            self.app.size,
            (self.app.HORIZONTAL_BREAKPOINTS, self.app.VERTICAL_BREAKPOINTS),
            strict=True,
        ):
            reached = max((least for least, _ in breakpoints or () if least <= cells), default=None)
            classes.update({name: least == reached for least, name in breakpoints or ()})
        self.update_classes(classes, animate=False)

    @property
    def is_current(self) -> bool:
        """Not until the application has started: it throws away what is drawn before, and then
        everything is drawn again."""
        return self.host.started and super().is_current

    def on_mount(self) -> None:
        if self not in self.host.opened:  # a screen that adds to this calls it a second time
            self.host.opened.append(self)
        self.refresh_desk()

    def on_unmount(self) -> None:
        if self in self.host.opened:
            self.host.opened.remove(self)

    def on_resize(self, event: Resize) -> None:
        """Below the least size there is one sentence, and what goes on is still told in the line at
        the bottom."""
        width, height = event.size
        tiny = width < LEAST_COLUMNS or height < LEAST_ROWS
        self.set_class(tiny, "-tiny")
        if tiny:
            self.query_one("#too-small", Static).update(
                f"needs {LEAST_COLUMNS} x {LEAST_ROWS}, is {width} x {height}"
            )

    def on_screen_resume(self, event: ScreenResume | None = None) -> None:
        if event is not None and self._desk_seen is None:
            # its widgets have just been styled, one by one as they came in
            event.refresh_styles = False
        self.refresh_desk()
        self.shown()

    def on_screen_suspend(self) -> None:
        self.hidden()
