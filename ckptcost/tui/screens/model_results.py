"""The right side of the model: the job in a line, the answer in tiles, the tiers, and below them
what there is room for."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from ckptcost.present.chart import Bars
from ckptcost.present.grid import Grid, Tone
from ckptcost.tui.screens.model_view import ModelView
from ckptcost.tui.widgets.bars import BarRows
from ckptcost.tui.widgets.note import Note
from ckptcost.tui.widgets.rows import Rows

PAGES = ("bill", "notes", "course", "save")
"""one at a time; a broad screen shows them all"""
_NEXT = {
    "bill": "notes and cautions",
    "notes": "where a run goes",
    "course": "what one save is made of",
    "save": "the bill",
}
METRIC_KEYS = "k kWh  g GPU-h  $ USD  c CO2e  w time"


class ModelResults(Container):
    """Shows a view; classes of the screen (-short, -broad, -drawer) decide what of it is seen."""

    SCOPED_CSS = False
    DEFAULT_CSS = """
    ModelResults { width: 1fr; height: 1fr; }
    ModelResults #first { width: 1fr; height: auto; }
    ModelResults #second { width: 1fr; height: 1fr; }
    ModelResults #subject {
        height: 1; width: 1fr; padding: 0 1; color: $text-muted; text-wrap: nowrap;
        text-overflow: ellipsis;
    }
    ModelResults #headline { height: 2; padding: 0 1; text-style: bold; }
    ModelResults #headline.-best, ModelResults #headline.-good { color: $text-success; }
    ModelResults #headline.-warn { color: $text-warning; }
    ModelResults #headline.-bad { color: $text-error; }
    ModelResults #left-out { height: auto; max-height: 2; padding: 0 1; color: $text-muted; }
    ModelResults #left-out.-nothing, .-short ModelResults #left-out { display: none; }
    ModelResults #tiers { height: auto; max-height: 15; }
    ModelResults #about-side, ModelResults #notes-broad, ModelResults .page {
        display: none; height: 1fr;
    }
    ModelResults.-on-bill #bill, ModelResults.-on-course #course, ModelResults.-on-notes #notes,
    ModelResults.-on-save #save {
        display: block;
    }
    .-short ModelResults #tiers { max-height: 9; }
    .-broad ModelResults { layout: horizontal; }
    .-broad ModelResults #first { height: 1fr; }
    .-broad ModelResults #bill, .-broad ModelResults #course, .-broad ModelResults #save {
        display: block; height: auto;
    }
    .-broad ModelResults #notes { display: none; }
    .-broad ModelResults #notes-broad { display: block; }
    .-drawer ModelResults #second > .page, .-drawer ModelResults #subject { display: none; }
    .-drawer ModelResults #headline { height: 4; }
    .-drawer ModelResults #about-side { display: block; }
    ModelResults.-broken #first, ModelResults.-broken #second > .panel { display: none; }
    ModelResults.-broken #second > #notes { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(id="results")
        self._page = PAGES[0]

    def compose(self) -> ComposeResult:
        with Vertical(id="first"):
            yield Static(id="headline", markup=False)
            yield Static(id="subject", markup=False)
            yield Rows(id="tiers", classes="panel")
            yield Static(id="left-out", markup=False)
            yield Note(id="notes-broad", classes="panel")
        with Vertical(id="second"):
            yield Rows(id="bill", classes="panel page")
            yield BarRows(id="course", classes="panel page")
            yield BarRows(id="save", classes="panel page")
            yield Note(id="notes", classes="panel page")
            yield Note(id="about-side", classes="panel")

    def on_mount(self) -> None:
        for table in self.query(Rows):
            table.styles.padding = (
                0  # a table has a gutter of its own, and needs every column of the usual size
            )

    # what the screen asks

    @property
    def page(self) -> str:
        return self._page

    def next_page(self) -> None:
        self._page = PAGES[(PAGES.index(self._page) + 1) % len(PAGES)]
        self.turn()

    def turn(self) -> None:
        """To the page in force, which another size of the screen may have changed."""
        for each in PAGES:
            self.set_class(each == self.page, f"-on-{each}")
        for panel in PAGES:
            titled(
                self.query_one(f"#{panel}"),
                below="" if self.screen.has_class("-broad") else f"v {_NEXT[panel]}",
            )

    def show(self, view: ModelView) -> None:
        self.remove_class("-broken")
        _say(self.query_one("#subject", Static), f"{view.desk.title}: {view.subject}", layout=False)
        self.headline(*view.headline)
        self._rows("#tiers", view.grid, METRIC_KEYS)
        left_out = self.query_one("#left-out", Static)
        left_out.set_class(not view.grid.note, "-nothing")
        _say(left_out, view.grid.note)
        self._bars("#save", view.one_save)
        self._bars("#course", view.course)
        for notes in ("#notes", "#notes-broad"):
            titled(self.query_one(notes), f"Notes on {view.looked.key}")

    def broken(self, why: str) -> None:
        """A scenario that cannot be computed: the reason, and nothing else."""
        self.add_class("-broken")
        for notes in ("#notes", "#notes-broad"):
            titled(self.query_one(notes), "No figures")
        self.notes(
            ((why, "bad"), ("Open another scenario with ^o, or take all changes back with R.", ""))
        )

    def headline(self, text: str, tone: Tone = "") -> None:
        line = self.query_one("#headline", Static)
        if not line.has_class(f"-{tone}"):
            line.set_classes(f"-{tone}")
        _say(line, text, layout=False)

    def settle(self, headline: tuple[str, Tone], bill: Grid) -> None:
        """What follows once nobody types."""
        self.headline(*headline)
        self._rows("#bill", bill)

    def notes(self, lines: Sequence[tuple[str, Tone]]) -> None:
        for notes in ("#notes", "#notes-broad"):
            self.query_one(notes, Note).show(lines)

    def about(self, lines: Sequence[tuple[str, Tone]] | Sequence[str], title: str) -> None:
        """The field that is looked at, beside the drawer."""
        side = self.query_one("#about-side", Note)
        side.show(lines)
        titled(side, title)

    @property
    def table(self) -> Rows:
        """The one that has the focus, else that of the tiers."""
        bill = self.query_one("#bill", Rows)
        return bill if bill.has_focus else self.query_one("#tiers", Rows)

    # how it works

    def _rows(self, panel: str, grid: Grid, below: str | None = None) -> None:
        rows = self.query_one(panel, Rows)
        rows.show(grid)
        titled(rows, grid.title, below)

    def _bars(self, panel: str, bars: Bars) -> None:
        shown = self.query_one(panel, BarRows)
        shown.show(bars._replace(title=""))
        titled(shown, bars.title)


def _say(line: Static, text: str, layout: bool = True) -> None:
    """A text that stays what it was is not drawn again, and above all not laid out: that takes
    longer than all the sums of a keystroke."""
    if line.content != text:
        line.update(text, layout=layout)


def titled(panel: Widget, title: str | None = None, below: str | None = None) -> None:
    """A title that stays what it was need not be drawn again."""
    if title is not None and panel.border_title != title:
        panel.border_title = Content(title)
    if below is not None and panel.border_subtitle != below:
        panel.border_subtitle = Content(below)
