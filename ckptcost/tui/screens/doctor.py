"""What can be measured here: every meter tried, what it says, and where it does not answer the
system's words and what would help."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget

from ckptcost.present.grid import Grid
from ckptcost.tui.clipboard import copy
from ckptcost.tui.commands import Command, bindings
from ckptcost.tui.screens import meters
from ckptcost.tui.screens.base import ModeScreen
from ckptcost.tui.widgets.mode_bar import ModeBar
from ckptcost.tui.widgets.note import Note
from ckptcost.tui.widgets.rows import Rows


class DoctorScreen(ModeScreen):
    """Looks when it is first seen, and when it is asked to."""

    MODE = "doctor"
    ABOUT = (
        "Every meter of this machine is tried for a second. A filled dot answers, a cross is there"
        " and refuses, an empty dot would have to be asked for by name, a dash is nothing that this"
        " machine has. Below the table is all that is known of the row under the cursor, and what"
        " would make it answer for good. What cannot be measured is shown as unknown everywhere,"
        " never as zero, and totals say what they leave out."
    )
    KEYS_HERE: ClassVar[tuple[Command, ...]] = (
        Command("doctor.look", "r", "look again", "Try every meter again", "look_again", 1),
        Command(
            "doctor.copy",
            "y",
            "copy remedy",
            "Copy what would make this row answer, else the command",
            "copy_remedy",
            2,
        ),
        Command(
            "doctor.every_gpu",
            "e",
            "every GPU",
            "Try all GPUs of the node, or those that this session may see",
            "every_gpu",
            3,
        ),
        Command("doctor.sort", "s", "sort", "Sort by the next column", "sort", 4),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS_HERE)
    AUTO_FOCUS = "#meters"
    DEFAULT_CSS = """
    DoctorScreen #brief { height: auto; max-height: 45%; }
    DoctorScreen #meters { height: 1fr; min-height: 5; }
    DoctorScreen #detail { height: 10; }
    DoctorScreen.-short #brief { max-height: 8; }
    DoctorScreen.-short #detail { height: 7; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._study: Any = None
        self._every_gpu = False

    def body(self) -> Iterable[Widget]:
        yield Note(id="brief", classes="panel")
        yield Rows(id="meters", classes="panel")
        yield Note(id="detail", classes="panel")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#brief").border_title = "This machine"
        self.query_one("#detail").border_title = "Under the cursor"
        self._look()

    def command_line(self) -> str:
        return meters.command(self.host.meters, self._every_gpu)

    def table(self) -> Grid | None:
        return self._rows.grid

    def exported(self) -> Any:
        return self._study

    @property
    def _rows(self) -> Rows:
        return self.query_one("#meters", Rows)

    def _look(self) -> None:
        """The figures of before stay until there are new ones."""
        names, every_gpu = self.host.meters, self._every_gpu
        whose = "every GPU of the node" if every_gpu else "the GPUs that this session may see"
        self.say(f"Looking: every meter is tried for a second, {whose} ...")
        if self._study is None:
            self.query_one("#brief", Note).show(["looking ..."])
            self._rows.show(Grid(empty="looking ..."))
        self.background(
            "look", lambda stopped: meters.look(names, every_gpu), self._seen, self._failed
        )

    def _seen(self, study: Any) -> None:
        first, self._study = self._study is None, study
        plain = self.host.plain
        self.host.lights = meters.lights(study, plain)
        self.query_one(ModeBar).show()
        grid = meters.grid(study, plain)
        self.query_one("#brief", Note).show(meters.overview(study, plain))
        self._rows.show(grid)
        self._rows.border_title, self._rows.border_subtitle = (
            Content(grid.title),
            Content(grid.note),
        )
        if first:
            self._rows.select(meters.worst(study))
        self._detail()
        self.say(meters.seen_text(study))

    def _failed(self, text: str) -> None:
        self.say(f"{text} (r looks again)", "bad")
        if self._study is None:
            self.query_one("#brief", Note).show(meters.failed(text))
            self._rows.show(Grid(empty="Nothing was tried."))

    def _detail(self) -> None:
        if self._study is not None:
            self.query_one("#detail", Note).show(meters.detail(self._study, self._rows.key))

    def on_rows_moved(self, event: Rows.Moved) -> None:
        event.stop()
        self._detail()

    def action_look_again(self) -> None:
        self._look()

    def action_every_gpu(self) -> None:
        self._every_gpu = not self._every_gpu
        self._look()

    def action_sort(self) -> None:
        self._rows.sort_next()

    def action_copy_remedy(self) -> None:
        remedy = "" if self._study is None else meters.remedy(self._study, self._rows.key)
        copy(self.app, remedy or self.command_line(), "the remedy" if remedy else "the command")
