"""A question with two answers."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static


class Confirm(ModalScreen[bool]):
    """True: do it. Escape and the first button leave everything as it is."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "answer(False)", "no"),
        Binding("y", "answer(True)", "yes"),
    ]
    DEFAULT_CSS = """
    Confirm .buttons { height: auto; margin-top: 1; align: right middle; }
    Confirm Button { margin-left: 2; }
    """

    def __init__(self, title: str, text: str, yes: str) -> None:
        super().__init__()
        self._title, self._text, self._yes = title, text, yes

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(self._title)
            yield Static(self._text, markup=False)
            with Horizontal(classes="buttons"):
                yield Button("back (n)", id="no", compact=True)
                yield Button(f"{self._yes} (y)", id="yes", variant="warning", compact=True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)
