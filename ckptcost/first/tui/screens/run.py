"""One recorded run: what `ckptcost report` says of it, its tables one at a time, and the traces of
all of it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Resize
from textual.widget import Widget
from textual.widgets import Static

from ckptcost.first.present.amounts import size
from ckptcost.first.present.chart import Traces
from ckptcost.first.present.grid import Grid
from ckptcost.first.report.study import Study, Table
from ckptcost.first.runs.header import stamp
from ckptcost.first.tui.commands import Command, bindings
from ckptcost.first.tui.screens import run_traces
from ckptcost.first.tui.screens.base import panel
from ckptcost.first.tui.screens.recorded_run import RecordedRun
from ckptcost.first.tui.screens.tables import HostScreen
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.rows import Rows
from ckptcost.first.tui.widgets.traces import TraceStack

CHECKPOINTS = "windows"
"""the table whose rows can be opened"""


class RunScreen(HostScreen):
    """Laid over the list of runs."""

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

    _traces = Traces((), (0.0, 1.0))

    def body(self) -> Iterable[Widget]:
        yield Static(self._source.title, id="head", markup=False)
        with Container(id="top"):
            yield panel(TraceStack(id="traces"), "Traces")
            yield panel(Note(id="said"), "What was measured")
        yield panel(Rows(id="table"))

    def command_line(self) -> str:
        if self._run is not None:
            return self._run.command
        return shlex.join(["ckptcost", "report", self._source.word])

    def head(self, run: RecordedRun, study: Study) -> str:
        began = stamp(run.seen.energies.node.headers[0].wall_ns)[:16].replace("T", " ")
        bytes_ = size(self._source.bytes)
        about = f"Run {self._source.short}{run.host_place}, {began} UTC"
        return f"{about}: {study.title}, {bytes_} on disk"

    def order(self, table: Table) -> bool:
        return table.id != CHECKPOINTS

    def _show(self, run: RecordedRun, study: Study) -> None:
        if self._run is None or self._run.host != run.host:
            self._traces = run.traces
        else:
            self._traces = run.traces._replace(x_range=self._traces.x_range)
        super()._show(run, study)

    def _show_table(self) -> None:
        if self._run is None:
            return
        super()._show_table()
        if not self._grids:
            self._rows.show(Grid(empty="No table has a row."))
        self._draw()

    @property
    def _on_checkpoints(self) -> bool:
        return bool(self._tables) and self._tables[self._place].id == CHECKPOINTS

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
        self._move(lambda whole: run_traces.zoomed(self._traces, whole, steps))

    def action_pan(self, steps: int) -> None:
        self._move(lambda whole: run_traces.panned(self._traces, whole, steps))

    def action_whole(self) -> None:
        self._move(lambda whole: whole)

    def _move(self, to: Callable[[Traces], Traces]) -> None:
        if self._run is not None:
            self._traces = to(self._run.traces)
            self._draw()

    def action_open_checkpoint(self) -> None:
        from ckptcost.first.tui.screens.checkpoint import CheckpointScreen

        if self._run is None or not self._on_checkpoints or not (which := self._rows.key):
            self.say(
                "Checkpoints can be opened: t shows their table." if self._run is not None else "",
                "warn",
            )
            return
        self.app.push_screen(CheckpointScreen(self._source, which, self._run.host))

    def action_against(self) -> None:
        from ckptcost.first.tui.screens.against import AgainstScreen

        host = self._run.host if self._run is not None else ""
        self.app.push_screen(AgainstScreen(self._source, host))

    def action_replay(self) -> None:
        if not self.hand_over("replay", self._source.word):
            self.say("The live screen cannot replay here.", "warn")
