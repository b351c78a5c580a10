"""What dialogs with a list share: typing narrows it wherever the focus is, and the arrows move in
it."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ckptcost.present.grid import Grid
from ckptcost.tui.widgets.rows import Rows, matches

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
