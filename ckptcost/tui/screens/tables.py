"""Screens over the list of runs: tables that are turned one at a time, and a run of several hosts,
host by host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.content import Content
from textual.widgets import Static

from ckptcost.present.grid import Grid
from ckptcost.tui.screens.base import ModeScreen
from ckptcost.tui.screens.run_view import HostView, next_host
from ckptcost.tui.screens.runs_entries import Source, reading_text
from ckptcost.tui.widgets.note import Note
from ckptcost.tui.widgets.rows import Rows


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
    """One recorded run, of which one host is seen: a line above, sentences, tables. Subclasses give
    `_read`."""

    DEFAULT_CSS = """
    HostScreen #head {
        height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; text-style: bold;
    }
    """

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source
        self._view: HostView | None = None

    def _read(self, host: str) -> None:
        """Read the run for this host; empty: the first."""

    def _begins(self) -> None:
        """Reading may take a while."""
        self.say(reading_text(self._source))
        if self._view is None:
            self._rows.show(Grid(empty="Reading the run ..."))

    def _take(self, view: HostView) -> None:
        """What was read, without its tables."""
        self._view = view
        self.refresh_bindings()
        self.query_one("#head", Static).update(view.head)
        self.query_one("#said", Note).show(view.lines)

    def tables(self) -> Sequence[Grid]:
        return self._view.tables if self._view is not None else ()

    def exported(self) -> Any:
        return self._view.study if self._view is not None else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only where there is another host."""
        return action != "next_host" or (self._view is not None and len(self._view.hosts) > 1)

    def action_next_host(self) -> None:
        host = next_host(self._view) if self._view is not None else ""
        if host:
            self._read(host)
        else:
            self.say("This run has one host.", "warn")

    def action_calibrate(self) -> None:
        from ckptcost.tui.screens.calibrate import CalibrateScreen

        self.app.push_screen(CalibrateScreen([self._source]))
