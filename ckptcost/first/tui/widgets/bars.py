"""Labelled horizontal bars."""

from __future__ import annotations

from textual.geometry import Size

from ckptcost.first.present.chart import Bars
from ckptcost.first.tui.draw.bars import draw_bars, rows_needed
from ckptcost.first.tui.draw.canvas import Line, Look
from ckptcost.first.tui.widgets.drawn import Drawn


class BarRows(Drawn):
    """Label, bar, text; below them what the parts are called."""

    DEFAULT_CSS = """
    BarRows { width: 1fr; height: auto; min-height: 1; }
    """

    bars = Bars()

    def show(self, bars: Bars) -> None:
        if bars is not self.bars:
            other_height = rows_needed(bars) != rows_needed(self.bars)
            self.bars = bars
            self.changed(layout=other_height)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return rows_needed(self.bars)

    def drawing(self, width: int, height: int, look: Look) -> list[Line]:
        return draw_bars(self.bars, width, height, look)
