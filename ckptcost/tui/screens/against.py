"""Measured beside modelled: which line explains the difference, in words, as a waterfall, and line
by line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import BindingType
from textual.containers import Container
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from ckptcost.errors import CkptcostError
from ckptcost.present.chart import Bars
from ckptcost.present.grid import Grid
from ckptcost.tui.commands import Command, bindings
from ckptcost.tui.run_reader import READER
from ckptcost.tui.screens import against_view
from ckptcost.tui.screens.against_view import AgainstView
from ckptcost.tui.screens.runs_entries import Source, place_text, refusal
from ckptcost.tui.screens.tables import HostScreen
from ckptcost.tui.widgets.bars import BarRows
from ckptcost.tui.widgets.note import Note
from ckptcost.tui.widgets.rows import Rows


class AgainstScreen(HostScreen):
    """Laid over the list of runs or over a run; computed again when the scenario changes."""

    TITLE_TEXT = "Measured against modelled"
    ABOUT = (
        "The mean checkpoint of a recorded run beside what the scenario says of it, put onto the"
        " run's own machine: the model is scaled to what was measured, never the other way. Bars:"
        " each cause is changed from modelled to measured in turn, and they add up to the"
        " difference. At its size: the model with the measured bytes put in. What is not of the"
        " same thing is not held against each other, and the reason is given. Joules of both sides"
        " are at the facility, with the scenario's PUE."
    )
    KEYS_HERE: ClassVar[tuple[Command, ...]] = (
        Command(
            "against.table",
            "t",
            "next table",
            "Show the next table: lines, causes, ranges, joules, each save ...",
            "table(1)",
            1,
        ),
        Command(
            "against.calibrate",
            "c",
            "calibrate",
            "Take the model's figures from this run",
            "calibrate",
            2,
        ),
        Command(
            "against.host", "h", "next host", "The next host of a run of several", "next_host", 3
        ),
        Command("against.sort", "s", "sort", "Sort by the next column", "sort", 4),
        Command("against.table_back", "B", "table before", "Show the table before", "table(-1)"),
        Command("against.again", "R", "read again", "Read the run again", "again"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS_HERE)
    DEFAULT_CSS = """
    AgainstScreen #top { layout: horizontal; height: 1fr; }
    AgainstScreen #bars { width: 1fr; height: 1fr; display: none; }
    AgainstScreen.-tall #bars, AgainstScreen.-wide #bars { display: block; }
    AgainstScreen #said { width: 1fr; height: 1fr; }
    AgainstScreen #table { height: 1fr; }
    AgainstScreen.-narrow #top { layout: vertical; }
    """

    def __init__(self, source: Source, host: str = "") -> None:
        super().__init__(source)
        self._host = host
        self._view: AgainstView | None = None

    def body(self) -> Iterable[Widget]:
        yield Static(place_text(self._source), id="head", markup=False)
        with Container(id="top"):
            yield Note(id="said", classes="panel")
            yield BarRows(id="bars", classes="panel")
        yield Rows(id="table", classes="panel")

    def on_mount(self) -> None:
        self.query_one("#said").border_title = "What explains it"
        super().on_mount()

    def on_desk(self) -> None:
        self._read(self._host)

    def command_line(self) -> str:
        try:
            return against_view.command_of(self._source, self.desk)
        except CkptcostError:
            return ""

    def give_up(self) -> None:
        self.stop_background("hold")

    def _read(self, host: str) -> None:
        source, self._host = self._source, host
        try:
            base, settings = against_view.settings_of(self.desk)
        except (CkptcostError, OSError) as error:
            self._failed(str(error))
            return
        self._begins()
        self.background(
            "hold",
            lambda stopped: READER.ask(
                against_view.held,
                source,
                host,
                base,
                settings,
                weight=source.weight,
                stopped=stopped,
            ),
            self._show,
            self._failed,
        )

    def _failed(self, text: str) -> None:
        """What was shown before is of another scenario, so it goes."""
        self._view = None
        self.say(text, "bad")
        self.query_one("#said", Note).show(refusal(text))
        self.query_one(BarRows).show(Bars(empty="Nothing to draw."))
        self._rows.show(Grid(empty="Nothing is held against each other."))

    def _show(self, view: AgainstView) -> None:
        self._take(view)
        bars = self.query_one(BarRows)
        bars.border_title, bars.border_subtitle = Content(view.bars.title), Content(view.bars.note)
        bars.show(view.bars._replace(title="", note=""))
        self._show_table()
        self.say("")

    def action_again(self) -> None:
        self._read(self._host)
