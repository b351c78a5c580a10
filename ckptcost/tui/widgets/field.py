"""One field of a form: what it should show, what was typed, and the input that stands in the field
that has the focus."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Blur, Focus, Idle
from textual.geometry import Size
from textual.message import Message
from textual.reactive import Reactive
from textual.suggester import SuggestFromList
from textual.widgets import Input

from ckptcost.present.form import Field
from ckptcost.tui.widgets.columns import clean

MOST_REASONS = 3
"""lines that a reason may take"""


@dataclass
class FieldState:
    """A field and what happened in it."""

    spec: Field
    text: str
    typed: bool = False
    """since it has the focus"""
    told: bool = True
    """the value was shown to it after the last edit"""
    refused: str = ""

    @property
    def reason(self) -> str:
        """Why its text cannot be used; empty where it can."""
        return self.refused or self.spec.error

    def show(self, spec: Field) -> None:
        """What is being typed stays, and so does what was refused."""
        self.spec, self.told = spec, True
        if not self.refused and not self.typed:
            self.text = spec.text

    def edit(self, text: str) -> None:
        self.text, self.typed, self.told, self.refused = text, True, False, ""

    def settle(self) -> None:
        """The focus has gone: from now on it shows what it is told, unless that is an error."""
        self.typed = False
        if self.told and not self.reason:
            self.text = self.spec.text

    def forget(self) -> None:
        self.text, self.typed, self.told, self.refused = self.spec.text, False, True, ""

    def reason_lines(self, width: int, mark: str) -> list[str]:
        if not self.reason:
            return []
        words = f"{mark} {clean(self.reason)}"
        return textwrap.wrap(
            words, max(width, 20), subsequent_indent="  ", max_lines=MOST_REASONS, placeholder=" .."
        )


class FieldInput(Input):
    """Stands in one field at a time. Tab, Up and Down ask for another one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(-1)", "field above", show=False),
        Binding("down", "step(1)", "field below", show=False),
        Binding("tab", "step(1, True)", "next field", show=False),
        Binding("shift+tab", "step(-1, True)", "field before", show=False),
        Binding("f2", "pick", "choices", show=False),
    ]
    DEFAULT_CSS = """
    FieldInput { position: absolute; layer: entry; background: $boost; }
    FieldInput:focus { background: $primary 25%; background-tint: $foreground 0%; }
    FieldInput.-wrong { background: $error 25%; }
    """

    virtual_size: Reactive[Size] = Reactive(Size(0, 0))
    """as of any input, but a longer text does not lay out the whole screen anew"""

    class Step(Message):
        """To the field above or below; `out`: at the end, to what comes after the form."""

        def __init__(self, by: int, out: bool) -> None:
            super().__init__()
            self.by, self.out = by, out

    class Asked(Message):
        """For the choices."""

    class Entered(Message):
        """The focus is here."""

    class Left(Message):
        """The focus is elsewhere."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        """`changed` is told of another text by a call, not by a message that goes on from here."""
        super().__init__(compact=True)
        self._changed = changed
        self._untold = False
        self._choices: tuple[str, ...] = ()

    def watch_value(self, value: str) -> None:
        self._untold = True

    def on_idle(self, event: Idle) -> None:
        """A letter is drawn together with what follows from it. Drawn alone it is seen 10 ms sooner
        and all the rest 25 ms later, since Textual begins the next frame no sooner than that. One
        turn is waited, in which the change is told, and never a second one.
        """
        if self._untold:
            self._untold = False
            event.prevent_default()
            self.check_idle()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if event.value == self.value:  # else more was typed since, and that is what counts
            self._changed(event.value)

    def on_mount(self) -> None:
        self.styles.scrollbar_size_horizontal = (
            0  # an application's rule for all that scrolls would cover the text
        )

    def action_step(self, by: int, out: bool = False) -> None:
        self.post_message(self.Step(by, out))

    def action_pick(self) -> None:
        self.post_message(self.Asked())

    def on_focus(self, event: Focus) -> None:
        self.post_message(self.Entered())

    def on_blur(self, event: Blur) -> None:
        self.post_message(self.Left())

    @property
    def suggested(self) -> str:
        """What the right arrow would complete the text to."""
        typed = self.value.casefold()
        found = next((each for each in self._choices if each.casefold().startswith(typed)), "")
        return found if typed and found != self.value else ""

    def stand_in(self, state: FieldState) -> None:
        """Take the text of a field."""
        spec = state.spec
        self._choices = spec.choices
        self.suggester = (
            SuggestFromList(spec.choices, case_sensitive=False) if spec.choices else None
        )
        self.placeholder = spec.placeholder
        self.write(state.text)

    def write(self, text: str) -> None:
        """Without telling anybody."""
        if text != self.value:
            with self.prevent(Input.Changed):
                self.value = text
            self.cursor_position = 0
        if self.has_focus:
            self.action_select_all()
