"""What can be measured here: every meter tried, what it says, and where it does not answer the
system's words and what would help."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.widget import Widget

from ckptcost.first.present.grid import Grid, Tone
from ckptcost.first.report.study import Study
from ckptcost.first.tui.clipboard import copy
from ckptcost.first.tui.commands import Command, bindings
from ckptcost.first.tui.screens import meters
from ckptcost.first.tui.screens.base import panel
from ckptcost.first.tui.screens.tables import TablesScreen
from ckptcost.first.tui.widgets.mode_bar import ModeBar
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.rows import Rows


class DoctorScreen(TablesScreen):
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
        Command(
            "doctor.table",
            "t",
            "next table",
            "What is missing, every channel that answers, pyRAPL beside it",
            "table(1)",
            4,
        ),
        Command("doctor.sort", "s", "sort", "Sort by the next column", "sort", 5),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS_HERE)
    DEFAULT_CSS = """
    DoctorScreen #brief { height: auto; max-height: 45%; }
    DoctorScreen #table { height: 1fr; min-height: 5; }
    DoctorScreen #detail { height: 10; }
    DoctorScreen.-short #brief { max-height: 8; }
    DoctorScreen.-short #detail { height: 7; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._study: Study | None = None
        self._every_gpu = False

    def body(self) -> Iterable[Widget]:
        yield panel(Note(id="brief"), "This machine")
        yield panel(Rows(id="table"))
        yield panel(Note(id="detail"), "Under the cursor")

    def on_mount(self) -> None:
        super().on_mount()
        self._look()

    def command_line(self) -> str:
        return meters.command(self.host.meters, self._every_gpu)

    def tables(self) -> Sequence[Grid]:
        return () if self._study is None else meters.tables(self._study)

    def exported(self) -> Any:
        return self._study

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

    def _seen(self, study: Study) -> None:
        first, self._study = self._study is None, study
        plain = self.host.plain
        self.host.lights = meters.lights(study, plain)
        self.query_one(ModeBar).show()
        self.query_one("#brief", Note).show(meters.overview(study, plain))
        self._show_table()
        if first:
            self._rows.select(meters.worst(study))
        self._detail()
        self.say(meters.seen_text(study))

    def _failed(self, text: str) -> None:
        self.say(f"{text} (r looks again)", "bad")
        if self._study is None:
            why: list[tuple[str, Tone]] = [(text, "bad")]
            self.query_one("#brief", Note).show(why)
            self._rows.show(Grid(empty="Nothing was tried."))

    def _detail(self) -> None:
        if self._study is not None and self._rows.key:
            told = meters.detail(self._study, self._place, self._rows.key)
            self.query_one("#detail", Note).show(told)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        event.stop()
        self._detail()

    def action_table(self, by: int) -> None:
        super().action_table(by)
        self._detail()

    def action_look_again(self) -> None:
        self._look()

    def action_every_gpu(self) -> None:
        self._every_gpu = not self._every_gpu
        self._look()

    def action_copy_remedy(self) -> None:
        study, key = self._study, self._rows.key
        remedy = meters.remedy(study, self._place, key) if study is not None and key else ""
        copy(self.app, remedy or self.command_line(), "the remedy" if remedy else "the command")
