"""Several of many: Space ticks rows, Enter takes those that are ticked."""

from __future__ import annotations

from collections.abc import Iterable

from textual.events import Key
from textual.message import Message
from textual.widgets import Input

from ckptcost.present.grid import Grid
from ckptcost.tui.modals.filtered import Filtered


class Filter(Input):
    """Leaves the space bar to the list: no name holds a blank."""

    class Spaced(Message):
        """The space bar, after all letters that were typed before it."""

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return key != "space" and super().check_consume_key(key, character)

    def on_key(self, event: Key) -> None:
        if event.key == "space":
            event.stop()
            event.prevent_default()
            self.post_message(self.Spaced())


class Ticks(Filtered[tuple[str, ...] | None]):
    """Gives the keys of the ticked rows, those ticked from the start first; None leaves everything
    as it was."""

    FIELD = Filter
    HINT = "Space ticks, Enter takes what is ticked, Esc leaves all as it was"
    BOX_CLASSES = ""
    DEFAULT_CSS = """
    Ticks #box {
        padding: 0 1; max-width: 120; width: 94%; height: 92%; border: round $primary;
        background: $surface;
    }
    Ticks Input { margin-bottom: 1; }
    Ticks Rows { height: 1fr; }
    Ticks .hint { color: $text-muted; height: 1; }
    """

    def __init__(self, title: str, grid: Grid, ticked: Iterable[str], at: str = "") -> None:
        super().__init__(title, grid, at)
        self.ticked = list(ticked)

    def subtitle(self, shown: int) -> str:
        return f"{len(self.ticked)} ticked, {shown} of {len(self._grid.rows)} shown"

    def on_mount(self) -> None:
        self.rows.can_focus = False  # a click ticks; Space and Enter stay with the field

    def narrow(self) -> None:
        self._grid = self._grid._replace(
            rows=[row._replace(marked=row.key in self.ticked) for row in self._grid.rows]
        )
        super().narrow()

    def take(self, key: str) -> None:
        """A click or Space; Enter takes them all."""
        if key in self.ticked:
            self.ticked.remove(key)
        elif key:
            self.ticked.append(key)
        self.narrow()

    def typed(self, text: str) -> None:
        super().typed(text)
        if text.strip() and self.rows.key:  # an id that was typed out, else the first that fits
            keys = [row.key for row in self.rows.grid.rows]
            self.rows.select(text.strip() if text.strip() in keys else keys[0])

    def on_filter_spaced(self, event: Filter.Spaced) -> None:
        event.stop()
        self.take(self.rows.key)

    def enter(self, text: str) -> None:
        self.dismiss(tuple(self.ticked))
