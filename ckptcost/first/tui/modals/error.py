"""A defect of ours: one sentence, the details below it, and the application goes on."""

from __future__ import annotations

import traceback
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from ckptcost.first.tui.clipboard import copy


class Defect(ModalScreen[None]):
    """`y` copies the details for a report."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "dismiss", "close"),
        Binding("y", "copy", "copy"),
    ]
    DEFAULT_CSS = "Defect VerticalScroll { height: auto; max-height: 20; margin: 1 0; }"

    def __init__(self, error: BaseException | None) -> None:
        super().__init__()
        self._text = (
            "".join(traceback.format_exception(error)) if error is not None else "no details"
        )
        self._brief = f"{type(error).__name__}: {error}" if error is not None else "unknown"

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = "This should not have happened"
            yield Static(
                f"{self._brief}\nNothing that was recorded is lost, and the other screens go on.",
                markup=False,
            )
            with VerticalScroll():
                yield Static(self._text, markup=False, classes="muted")
            yield Static("y copies the details, Esc closes", classes="muted")

    def action_copy(self) -> None:
        copy(self.app, self._text, "the details")
