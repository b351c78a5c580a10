"""Charts stacked over one time axis."""

from __future__ import annotations

from textual.events import MouseScrollDown, MouseScrollUp
from textual.message import Message

from ckptcost.first.present.chart import Traces
from ckptcost.first.tui.draw.canvas import Line, Look
from ckptcost.first.tui.draw.stack import draw_traces
from ckptcost.first.tui.widgets.drawn import Drawn


class TraceStack(Drawn, can_focus=True):
    """Shows traces; the wheel asks for a shorter or a longer time."""

    DEFAULT_CSS = """
    TraceStack { width: 1fr; height: 1fr; min-height: 1; }
    """

    class Zoomed(Message):
        """The wheel was turned: +1 for a closer look, -1 for more time."""

        def __init__(self, stack: TraceStack, steps: int) -> None:
            super().__init__()
            self.stack, self.steps = stack, steps

        @property
        def control(self) -> TraceStack:
            return self.stack

    traces = Traces((), (0.0, 1.0))

    def show(self, traces: Traces) -> None:
        if traces is not self.traces:
            self.traces = traces
            self.changed()

    def drawing(self, width: int, height: int, look: Look) -> list[Line]:
        return draw_traces(self.traces, width, height, look).lines

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        event.stop()
        self.post_message(self.Zoomed(self, 1))

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        event.stop()
        self.post_message(self.Zoomed(self, -1))
