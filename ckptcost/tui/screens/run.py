"""One recorded run: what `ckptcost report` says of it, its tables one at a time, and the traces of
all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from textual import on
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Resize
from textual.widget import Widget
from textual.widgets import Static

from ckptcost.present.chart import Traces
from ckptcost.present.grid import Grid
from ckptcost.tui.commands import Command, bindings
from ckptcost.tui.run_reader import READER
from ckptcost.tui.screens import run_traces, run_view
from ckptcost.tui.screens.run_view import CHECKPOINTS, RunView
from ckptcost.tui.screens.runs_entries import Learned, Source, place_text, refusal
from ckptcost.tui.screens.tables import HostScreen
from ckptcost.tui.widgets.note import Note
from ckptcost.tui.widgets.rows import Rows
from ckptcost.tui.widgets.traces import TraceStack


class RunScreen(HostScreen):
    """Laid over the list of runs. `learned` hears what the readings said."""

    TITLE_TEXT = "A run"
    ABOUT = (
        "What was measured in one recorded run, in the words of `ckptcost report`. Joules are of"
        " the node's own meters, without PUE; +- is how far ticks and gaps leave them open. The"
        " traces are means of short stretches over the whole run; shaded: checkpoints. A run of"
        " several hosts is shown host by host. A run that was killed counts as far as it goes, and"
        " what is wrong with its files is named."
    )
    KEYS_HERE: ClassVar[tuple[Command, ...]] = (
        Command(
            "run.open",
            "enter",
            "checkpoint",
            "Open the checkpoint under the cursor",
            "open_checkpoint",
            1,
        ),
        Command(
            "run.table",
            "t",
            "next table",
            "Show the next table: checkpoints, domains, phases, disks, meters ...",
            "table(1)",
            2,
        ),
        Command(
            "run.calibrate",
            "c",
            "calibrate",
            "Take the model's figures from this run",
            "calibrate",
            3,
        ),
        Command("run.against", "m", "model", "Hold this run against the scenario", "against", 4),
        Command("run.replay", "r", "replay", "Play the run again on the live screen", "replay", 5),
        Command(
            "run.zoom_in",
            "plus,equals_sign",
            "zoom",
            "A closer look at the traces, around the checkpoint under the cursor",
            "zoom(1)",
            6,
        ),
        Command("run.zoom_out", "minus", "wider", "More of the traces", "zoom(-1)"),
        Command(
            "run.earlier", "left_square_bracket", "earlier", "Earlier in the traces", "pan(-1)"
        ),
        Command("run.later", "right_square_bracket", "later", "Later in the traces", "pan(1)"),
        Command("run.whole", "0", "whole", "All of the run in the traces", "whole"),
        Command("run.host", "h", "next host", "The next host of a run of several", "next_host", 7),
        Command("run.sort", "s", "sort", "Sort by the next column", "sort", 8),
        Command("run.table_back", "B", "table before", "Show the table before", "table(-1)"),
        Command(
            "run.again",
            "R",
            "read again",
            "Read the run again, as far as it is written by now",
            "again",
        ),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS_HERE)
    DEFAULT_CSS = """
    RunScreen #top { layout: horizontal; height: 5fr; }
    RunScreen #traces { width: 3fr; height: 1fr; }
    RunScreen #said { width: 2fr; height: 1fr; }
    RunScreen #table { height: 4fr; }
    RunScreen.-narrow #top { layout: vertical; }
    RunScreen.-short #top { height: 13; }
    RunScreen.-short #traces { height: 8; }
    RunScreen.-short #table { height: 1fr; }
    RunScreen.-narrow #traces, RunScreen.-narrow #said { width: 1fr; }
    """

    def __init__(
        self,
        source: Source,
        goes_on: bool = False,
        learned: Callable[[Learned], None] | None = None,
    ) -> None:
        super().__init__(source)
        self._goes_on, self._learned = goes_on, learned
        self._view: RunView | None = None
        self._traces = Traces((), (0.0, 1.0))
        self._recording: Any = None

    def body(self) -> Iterable[Widget]:
        yield Static(place_text(self._source), id="head", markup=False)
        with Container(id="top"):
            yield TraceStack(id="traces", classes="panel")
            yield Note(id="said", classes="panel")
        yield Rows(id="table", classes="panel")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#traces").border_title = "Traces"
        self.query_one("#said").border_title = "What was measured"
        self._read("")

    def command_line(self) -> str:
        view = self._view
        return run_view.command_of(
            self._source,
            view.host if view is not None else "",
            len(view.hosts) if view is not None else 1,
        )

    def give_up(self) -> None:
        self.stop_background("read")
        self.stop_background("recording")

    def _read(self, host: str) -> None:
        source, goes_on = self._source, self._goes_on
        self._begins()
        self.background(
            "read",
            lambda stopped: READER.ask(
                run_view.read, source, host, goes_on, weight=source.weight, stopped=stopped
            ),
            self._show,
            self._failed,
        )

    def _failed(self, text: str) -> None:
        self.say(text, "bad")
        if self._view is None:
            self.query_one("#said", Note).show(refusal(text))
            self._rows.show(Grid(empty="Nothing can be shown of this run."))

    def _show(self, view: RunView) -> None:
        fresh = self._view is None or self._view.host != view.host
        self._recording = None
        self._take(view)
        if fresh:
            self._traces = view.traces
        else:
            self._traces = view.traces._replace(x_range=self._traces.x_range)
        self._show_table()
        if self._learned is not None and view.host == view.hosts[0]:
            self._learned(view.learned)
        self.say("")

    def _show_table(self) -> None:
        if self._view is None:
            return
        super()._show_table()
        if not self._view.tables:
            self._rows.show(Grid(empty="No table has a row."))
        self._draw()

    @property
    def _on_checkpoints(self) -> bool:
        return (
            self._view is not None
            and bool(self._view.table_ids)
            and self._view.table_ids[self._place] == CHECKPOINTS
        )

    def _draw(self) -> None:
        stack = self.query_one(TraceStack)
        shown = (
            run_traces.pointed(self._traces, self._rows.key)
            if self._on_checkpoints
            else self._traces
        )
        self._traces = shown
        stack.show(run_traces.fitting(shown, stack.content_size.height))

    def on_resize(self, event: Resize) -> None:
        super().on_resize(event)
        self.call_after_refresh(self._draw)

    @on(Rows.Moved)
    def _moved(self) -> None:
        if self._on_checkpoints:
            self._draw()

    @on(Rows.Chosen)
    def _chosen(self) -> None:
        self.action_open_checkpoint()

    @on(TraceStack.Zoomed)
    def _wheel(self, event: TraceStack.Zoomed) -> None:
        self.action_zoom(event.steps)

    def action_zoom(self, steps: int) -> None:
        if self._view is not None:
            self._traces = run_traces.zoomed(self._traces, self._view.traces, steps)
            self._draw()

    def action_pan(self, steps: int) -> None:
        if self._view is not None:
            self._traces = run_traces.panned(self._traces, self._view.traces, steps)
            self._draw()

    def action_whole(self) -> None:
        if self._view is not None:
            self._traces = self._view.traces
            self._draw()

    def action_again(self) -> None:
        self._read(self._view.host if self._view is not None else "")

    def action_open_checkpoint(self) -> None:
        """Its own screen works on the evaluated run, which is fetched once."""
        view = self._view
        if view is None or not self._on_checkpoints or not (which := self._rows.key):
            self.say(
                "Checkpoints can be opened: t shows their table." if view is not None else "",
                "warn",
            )
            return
        if self._recording is not None:
            self._open(which, self._recording)
            return
        self.say("Reading ...")
        source, host = self._source, view.host
        self.background(
            "recording",
            lambda stopped: run_view.recording_of(source, host, stopped),
            lambda recording: self._open(which, recording),
        )

    def _open(self, which: str, recording: Any) -> None:
        from ckptcost.tui.screens.checkpoint import CheckpointScreen

        self._recording = recording
        self.say("")
        self.app.push_screen(CheckpointScreen(self._source.path, which, recording))

    def action_against(self) -> None:
        from ckptcost.tui.screens.against import AgainstScreen

        self.app.push_screen(
            AgainstScreen(self._source, self._view.host if self._view is not None else "")
        )

    def action_replay(self) -> None:
        if not self.hand_over("replay", self._source.word):
            self.say("The live screen cannot replay here.", "warn")
