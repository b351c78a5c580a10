"""Screens over the list of runs: tables that are turned one at a time, and a run of several hosts,
host by host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual import on
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from ckptcost.first.present.grid import Grid, Tone
from ckptcost.first.report.study import Study, Table
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.screens.base import ModeScreen, Stopped
from ckptcost.first.tui.screens.recorded_run import (
    RUNS,
    RecordedRun,
    RunSource,
    findings_first,
    reading_text,
    refusal,
)
from ckptcost.first.tui.study_grids import grid_of
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.rows import Rows


class TablesScreen(ModeScreen):
    """Subclasses give `tables`, and yield the `Rows` in which one of them is shown, with the id
    `table`."""

    MODE = "runs"
    AUTO_FOCUS = "#table"

    def __init__(self) -> None:
        super().__init__()
        self._place = 0

    def tables(self) -> Sequence[Grid]:
        """Those that can be turned to; none before something is known."""
        return ()

    @property
    def _rows(self) -> Rows:
        return self.query_one("#table", Rows)

    def _show_table(self) -> None:
        tables = self.tables()
        self._place %= max(len(tables), 1)
        if tables:
            grid = tables[self._place]
            self._rows.show(grid)
            self._rows.border_title = Content(
                f"{grid.title}  ({self._place + 1} of {len(tables)}, t next)"
            )
            self._rows.border_subtitle = Content(grid.note)

    def table(self) -> Grid | None:
        return self._rows.grid

    def action_table(self, by: int) -> None:
        self._place += by
        self._show_table()

    def action_sort(self) -> None:
        if self._rows.grid.rows:
            self._rows.sort_next()


class HostScreen(TablesScreen):
    """One recorded run, of which one host is seen: a line above, sentences, the tables of a study.
    Subclasses give `study_of`, `head`, `lines` and `order`."""

    DEFAULT_CSS = """
    HostScreen #head {
        height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; text-style: bold;
    }
    """
    NOTHING = "Nothing can be shown of this run."

    class Progress(Message):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, source: RunSource, host: str = "") -> None:
        super().__init__()
        self._source, self._host = source, host
        self._run: RecordedRun | None = None
        self._study: Study | None = None
        self._tables: list[Table] = []
        self._grids: list[Grid] = []

    def study_of(self, run: RecordedRun, desk: Desk) -> Study:
        """In the background: what is shown of the run."""
        return run.study

    def head(self, run: RecordedRun, study: Study) -> str:
        """The line above."""
        return self._source.title

    def lines(self, run: RecordedRun, study: Study) -> list[tuple[str, Tone]]:
        """The sentences."""
        return findings_first(study)

    def order(self, table: Table) -> Any:
        """Which tables come first."""
        return not table.shown

    def on_desk(self) -> None:
        self._read(self._host, self._run)

    def _read(self, host: str, known: RecordedRun | None = None) -> None:
        """Read the run for this host, empty: the first, unless it is known as it is to be seen;
        leaving the screen gives it up."""
        self._host, desk, source = host, self.desk, self._source
        if self._run is None:
            self._rows.show(Grid(empty="Reading the run ..."))
        if known is None:
            self.say(reading_text(source))

        def work(stopped: Stopped) -> tuple[RecordedRun, Study]:
            def tell(what: str, share: float) -> None:
                if not stopped():
                    self.post_message(self.Progress(reading_text(source, what=what, part=share)))

            run = known or RUNS.load(source, host, stopped, tell)
            return run, self.study_of(run, desk)

        self.background("read", work, lambda found: self._show(*found), self._failed)

    @on(Progress)
    def _progress(self, event: Progress) -> None:
        self.say(event.text)

    def give_up(self) -> None:
        self.stop_background("read")

    def _show(self, run: RecordedRun, study: Study) -> None:
        self._run, self._study = run, study
        self._tables = sorted((table for table in study.tables if table.rows), key=self.order)
        self._grids = [grid_of(table) for table in self._tables]
        self.refresh_bindings()
        self.query_one("#head", Static).update(self.head(run, study))
        self.query_one("#said", Note).show(self.lines(run, study))
        self._show_table()
        self.say("")

    def _failed(self, text: str) -> None:
        """What was shown before stays; where there was nothing, the reason is the page."""
        self.say(text, "bad")
        if self._run is None:
            self.query_one("#said", Note).show(refusal(text))
            self._rows.show(Grid(empty=self.NOTHING))

    def tables(self) -> Sequence[Grid]:
        return self._grids

    def exported(self) -> Any:
        return self._study

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only where there is another host."""
        return action != "next_host" or (self._run is not None and self._run.next_host != "")

    def action_next_host(self) -> None:
        if self._run is not None and self._run.next_host:
            self._read(self._run.next_host)
        else:
            self.say("This run has one host.", "warn")

    def action_again(self) -> None:
        self._read(self._host)

    def action_calibrate(self) -> None:
        from ckptcost.first.tui.screens.calibrate import CalibrateScreen

        self.app.push_screen(CalibrateScreen([self._source]))
