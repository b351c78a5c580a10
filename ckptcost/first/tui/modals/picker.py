"""Dialogs with a list, which typing narrows wherever the focus is while the arrows move in it: one
of many, and several of many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ckptcost.first.present.grid import Grid
from ckptcost.first.tui.widgets.rows import Rows, matches

Answer = TypeVar("Answer")


class Filtered(ModalScreen[Answer]):
    """The words typed may stand anywhere in a row, and all of them must. Subclasses give `take`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "close"),
        Binding("up", "move(-1)", "up", show=False),
        Binding("down", "move(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
    ]
    FIELD: ClassVar[type[Input]] = Input
    PLACEHOLDER: ClassVar[str] = "type to narrow the list"
    HINT: ClassVar[str] = ""
    """the line below the list"""
    HINT_CLASSES: ClassVar[str] = "hint"
    BOX_CLASSES: ClassVar[str] = "dialog"

    def __init__(self, title: str, grid: Grid, at: str = "") -> None:
        super().__init__()
        self._title, self._grid, self._at = title, grid, at

    def compose(self) -> ComposeResult:
        with Vertical(id="box", classes=self.BOX_CLASSES) as box:
            box.border_title = Content(self._title)
            yield self.FIELD(placeholder=self.PLACEHOLDER, compact=True, select_on_focus=False)
            yield Rows()
            yield Static(self.HINT, classes=self.HINT_CLASSES, markup=False)

    def on_mount(self) -> None:
        self.narrow()
        self.rows.select(self._at)
        self.field.focus()

    # what a dialog gives

    def take(self, key: str) -> None:
        """A row was chosen."""

    def enter(self, text: str) -> None:
        """Enter in the field; the row under the cursor is meant, where there is one."""
        if key := self.rows.key:
            self.take(key)

    def nothing(self, text: str) -> str:
        """What stands in the list where no row has the words."""
        return f'Nothing matches "{text.strip()}".' if text.strip() else self._grid.empty

    def subtitle(self, shown: int) -> str:
        return f"{shown} of {len(self._grid.rows)}"

    # how it works

    @property
    def rows(self) -> Rows:
        return self.query_one(Rows)

    @property
    def field(self) -> Input:
        return self.query_one(Input)

    def narrow(self) -> None:
        """Show the rows that have the words."""
        text = self.field.value
        rows = [row for row in self._grid.rows if matches(row, text)]
        self.rows.show(self._grid._replace(rows=rows, empty=self.nothing(text)))
        self.query_one("#box").border_subtitle = Content(self.subtitle(len(rows)))

    def typed(self, text: str) -> None:
        self.narrow()

    def action_move(self, by: int) -> None:
        self.rows.action_move(by)

    def action_page(self, by: int) -> None:
        self.rows.action_page(by)

    def on_key(self, event: Key) -> None:
        if event.character and event.is_printable and not isinstance(self.focused, Input):
            self.field.focus()
            self.field.insert_text_at_cursor(event.character)
            event.stop()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.typed(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.enter(event.value)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        event.stop()
        self.take(event.key)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        event.stop()


class Picker(Filtered[str | None]):
    """Gives the key of a row, or None."""

    HINT = "Enter takes the row, Esc none"
    DEFAULT_CSS = """
    Picker .dialog { padding: 0 1; max-width: 110; width: 90%; }
    Picker Input { margin-bottom: 1; }
    Picker Rows { height: auto; max-height: 24; min-height: 3; }
    Picker .hint { color: $text-muted; height: 1; }
    """

    def take(self, key: str) -> None:
        self.dismiss(key)


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
