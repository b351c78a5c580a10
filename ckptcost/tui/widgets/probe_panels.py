"""What a probe shows beside its form: the rates, the curve of them, every pass, the tiers to
compare with, and what follows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget

from ckptcost.present.chart import Bars, Chart
from ckptcost.present.grid import Grid, Tone
from ckptcost.tui.widgets.bars import BarRows
from ckptcost.tui.widgets.note import Note
from ckptcost.tui.widgets.plot import Plot
from ckptcost.tui.widgets.rows import Rows

PICTURES = ("passes", "tiers", "chart")


class ProbePanels(Vertical):
    """A tall screen has room for the passes and one picture, a short one for one of the three."""

    SCOPED_CSS: ClassVar[bool] = False  # how tall the screen is decides
    DEFAULT_CSS = """
    ProbePanels { width: 1fr; height: 1fr; }
    ProbePanels > * { display: none; height: 1fr; }
    .-form ProbePanels #tiers { display: block; }
    .-result ProbePanels #rates { display: block; height: auto; max-height: 7; }
    .-running ProbePanels #chart, .-running ProbePanels #passes, .-result ProbePanels #words {
        display: block;
    }
    .-result ProbePanels.-passes #passes, .-result ProbePanels.-tiers #tiers,
    .-result ProbePanels.-chart #chart {
        display: block;
    }
    .-result ProbePanels #passes, .-result ProbePanels #tiers { height: auto; max-height: 12; }
    .-result ProbePanels #chart { height: 12; }
    .-short.-result ProbePanels #chart { height: 9; }
    .-short.-result ProbePanels #passes, .-short.-result ProbePanels #tiers { max-height: 10; }
    .-tall.-result ProbePanels #passes { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(id="right")
        self._turned = 0

    def compose(self) -> Iterable[Widget]:
        yield Rows(id="rates", classes="panel")
        yield Plot(id="chart", classes="panel")
        yield Rows(id="passes", classes="panel")
        yield BarRows(id="tiers", classes="panel")
        yield Note(id="words", classes="panel")

    def on_mount(self) -> None:
        self.query_one("#words").border_title = "What follows"

    @property
    def rows(self) -> Rows:
        return self.query_one("#passes", Rows)

    def turn(self, by: int = 0) -> None:
        """The next picture; which panels are seen is the screen's own class."""
        self._turned += by
        pictures = [
            name for name in PICTURES if name != "passes" or not self.screen.has_class("-tall")
        ]
        now = pictures[self._turned % len(pictures)]
        for name in PICTURES:
            self.set_class(name == now, f"-{name}")

    def show(self, chart: Chart, passes: Grid) -> None:
        plot = self.query_one("#chart", Plot)
        plot.border_title, plot.border_subtitle = Content(chart.title), Content(chart.note)
        plot.show(chart._replace(title="", note=""))
        self._fill("#passes", passes)

    def sum_up(self, rates: Grid) -> None:
        self._fill("#rates", rates)

    def _fill(self, name: str, grid: Grid) -> None:
        rows = self.query_one(name, Rows)
        rows.border_title, rows.border_subtitle = Content(grid.title), Content(grid.note)
        rows.show(grid)

    def compare(self, bars: Bars) -> None:
        tiers = self.query_one("#tiers", BarRows)
        tiers.border_title = Content(bars.title)
        tiers.show(bars._replace(title=""))

    def follow(self, words: Sequence[tuple[str, Tone]]) -> None:
        self.query_one("#words", Note).show(words)
