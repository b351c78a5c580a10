"""One recorded checkpoint, laid over the live screen or over a run: phases, instants, joules, the
model beside them, and the trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.events import Resize
from textual.widget import Widget
from textual.widgets import Static

from ckptcost.errors import CkptcostError
from ckptcost.present.grid import Grid, Tone
from ckptcost.tui.commands import Command, bindings
from ckptcost.tui.screens.checkpoint_view import Checkpoint, detail, neighbour
from ckptcost.tui.screens.recorded_run import RecordedRun
from ckptcost.tui.screens.runs_reading import source_at
from ckptcost.tui.screens.tables import RunReading
from ckptcost.tui.widgets.bars import BarRows
from ckptcost.tui.widgets.note import Note
from ckptcost.tui.widgets.rows import Rows
from ckptcost.tui.widgets.stats import Stats
from ckptcost.tui.widgets.traces import TraceStack


class CheckpointScreen(RunReading):
    """`which` is a checkpoint's name or its number in the run. Where a run was read already, it is
    given and not read again."""

    MODE = "runs"
    ABOUT = (
        "One save or load as it was recorded. Phases: training stands still in the stall and goes"
        " on in the drain; storage takes a snapshot, writes, syncs and commits. It is safe when its"
        " bytes are known to be on the storage, and the instants say how that is known. Joules are"
        " of the node's own meters, without PUE; beside the model they are at the facility, with"
        " the scenario's PUE, prices and grid factor, on the tier that is chosen. Cost and CO2e are"
        " of what the save holds up, at the facility too. A dash is not known, never zero."
    )
    KEYS_HERE: ClassVar[tuple[Command, ...]] = (
        Command(
            "checkpoint.previous", "left,p", "previous", "The checkpoint before", "step(-1)", 1
        ),
        Command("checkpoint.next", "right,n", "next", "The checkpoint after", "step(1)", 2),
        Command(
            "checkpoint.domains",
            "g",
            "per GPU",
            "Joules of each GPU, or of all together",
            "domains",
            4,
        ),
        Command(
            "checkpoint.down",
            "down,pagedown",
            "down",
            "Scroll down where it does not fit",
            "scroll_by(1)",
        ),
        Command("checkpoint.up", "up,pageup", "up", "Scroll up", "scroll_by(-1)"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS_HERE)
    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    CheckpointScreen #title { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    CheckpointScreen #all { layout: horizontal; height: 1fr; }
    CheckpointScreen #left, CheckpointScreen #right {
        width: 1fr; height: 1fr; overflow-y: auto; scrollbar-size: 1 1;
    }
    CheckpointScreen #notes { height: 1fr; min-height: 6; }
    CheckpointScreen #trace { height: 1fr; min-height: 15; }
    CheckpointScreen.-refused #right, CheckpointScreen.-refused #phases,
    CheckpointScreen.-refused #energy {
        display: none;
    }
    CheckpointScreen.-narrow #all { layout: vertical; }
    CheckpointScreen.-narrow #left, CheckpointScreen.-narrow #right { height: auto; }
    CheckpointScreen.-narrow #notes { height: 14; }
    CheckpointScreen.-narrow #trace { height: 16; }
    """

    def __init__(self, run: RecordedRun | str, which: str) -> None:
        super().__init__()
        self._run = run if isinstance(run, RecordedRun) else None
        self._path, self._which = run if isinstance(run, str) else run.source.path, which
        self._shown: Checkpoint | None = None
        self._every_domain = False

    def body(self) -> Iterable[Widget]:
        yield Static(id="title")
        yield Stats(id="stats")
        with VerticalScroll(id="all", can_focus=False):
            with Vertical(id="left"):
                yield BarRows(id="phases", classes="panel")
                yield Rows(id="energy", classes="panel")
                yield Note(id="notes", classes="panel")
            with Vertical(id="right"):
                yield TraceStack(id="trace", classes="panel")
                yield Rows(id="modelled", classes="panel")
                yield Rows(id="instants", classes="panel")

    def on_desk(self) -> None:
        if self._run is not None:
            self._look()
            return
        try:
            source = source_at(self._path)
        except (CkptcostError, OSError) as error:
            self._refused(str(error))
            return
        self.read_run(source, "", lambda run: run, self._read, self._refused)

    def command_line(self) -> str:
        """What prints its readings, and then prices and the model beside them."""
        if self._shown is not None:
            return self._shown.command
        return self._run.command if self._run is not None else ""

    def table(self) -> Grid | None:
        focused = self.focused
        return focused.grid if isinstance(focused, Rows) else self.query_one("#modelled", Rows).grid

    def exported(self) -> Any:
        return self._run.study if self._run is not None else None

    def _read(self, run: RecordedRun) -> None:
        self._run = run
        self._look()

    def _look(self) -> None:
        """Some milliseconds, and more where a scenario has ranges: not in the loop."""
        run, which, desk, every = self._run, self._which, self.desk, self._every_domain
        assert run is not None
        self.background(
            "detail", lambda stopped: detail(run, which, desk, every), self._show, self._refused
        )

    def _refused(self, text: str) -> None:
        self.add_class("-refused")
        self.query_one("#title", Static).update(Content(self._which))
        told: list[tuple[str, Tone]] = [(text, "bad")]
        self.query_one("#notes", Note).show(told)
        self.say(text, "bad")

    def _show(self, shown: Checkpoint) -> None:
        self.remove_class("-refused")
        self._shown, self._which = shown, shown.name
        self.query_one("#title", Static).update(
            Content.assemble((shown.title, "bold"), "   ", (shown.subtitle, "$text-muted"))
        )
        self.query_one(Stats).show(shown.stats)
        phases = self.query_one("#phases", BarRows)
        phases.show(shown.phases._replace(title="", note=""))
        phases.border_title, phases.border_subtitle = (
            Content(shown.phases.title),
            Content(shown.phases.note),
        )
        for name, grid in (
            ("instants", shown.instants),
            ("energy", shown.energy),
            ("modelled", shown.modelled),
        ):
            rows = self.query_one(f"#{name}", Rows)
            rows.show(grid)
            rows.border_title, rows.border_subtitle = Content(grid.title), Content(grid.note)
        trace = self.query_one(TraceStack)
        trace.show(shown.traces)
        trace.border_title, trace.border_subtitle = "Trace", "seconds from its begin"
        notes = self.query_one("#notes", Note)
        notes.show(shown.notes)
        notes.border_title = "What to know"
        self._fit()
        self.say("")

    def on_resize(self, event: Resize) -> None:
        super().on_resize(event)
        self._fit()

    def _fit(self) -> None:
        """Each table as high as its rows: the columns around them scroll."""
        frame = 1 if self.has_class("-short") else 2
        for name in ("instants", "energy", "modelled"):
            rows = self.query_one(f"#{name}", Rows)
            rows.styles.height = max(len(rows.grid.rows) + 1, 2) + frame

    def action_step(self, by: int) -> None:
        if self._run is None or self._shown is None:
            return
        name = neighbour(self._run, self._which, by)
        if name:
            self._which = name
            self._look()
        else:
            self.say(
                "There is none before this one." if by < 0 else "There is none after this one."
            )

    def action_domains(self) -> None:
        if self._run is not None:
            self._every_domain = not self._every_domain
            self._look()

    def action_scroll_by(self, by: int) -> None:
        for name in ("all", "left", "right"):
            self.query_one(f"#{name}").scroll_relative(y=by * 4, animate=False)


class CheckpointOverLive(CheckpointScreen):
    """The same, of a run that is being recorded: what was written so far."""

    MODE = "live"
