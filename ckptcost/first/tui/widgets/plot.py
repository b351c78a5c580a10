"""Curves, dots, shades and lines over two axes."""

from __future__ import annotations

from textual.events import Click
from textual.message import Message

from ckptcost.first.present.chart import Chart
from ckptcost.first.tui.draw.area import Frame
from ckptcost.first.tui.draw.canvas import Line, Look
from ckptcost.first.tui.draw.picture import draw_chart
from ckptcost.first.tui.widgets.drawn import Drawn


class Plot(Drawn, can_focus=True):
    """Shows a chart; a click says where on the x axis it was."""

    DEFAULT_CSS = """
    Plot { width: 1fr; height: 1fr; min-height: 1; }
    """

    class Picked(Message):
        """A click at `x`, in the units of the axis."""

        def __init__(self, plot: Plot, x: float) -> None:
            super().__init__()
            self.plot, self.x = plot, x

        @property
        def control(self) -> Plot:
            return self.plot

    chart = Chart()
    _frame: Frame | None = None

    def show(self, chart: Chart) -> None:
        if chart is not self.chart:
            self.chart = chart
            self.changed()

    def drawing(self, width: int, height: int, look: Look) -> list[Line]:
        picture = draw_chart(self.chart, width, height, look)
        self._frame = picture.frame
        return picture.lines

    def on_click(self, event: Click) -> None:
        at, frame = event.get_content_offset(self), self._frame
        if at is None or frame is None or not frame.left <= at.x < frame.left + frame.columns:
            return
        event.stop()
        self.post_message(
            self.Picked(self, frame.x.value((at.x - frame.left + 0.25) / (frame.columns - 0.5)))
        )
