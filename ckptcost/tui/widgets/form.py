"""Fields in groups. What is typed is told at once and never overwritten while it is being typed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Blur, Focus, Idle
from textual.geometry import Size
from textual.message import Message
from textual.reactive import Reactive
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input

from ckptcost.present.form import Field
from ckptcost.tui.widgets.field_lines import FieldLines, FieldState


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


class Form(Widget):
    """Tab, Up and Down go from field to field; Enter goes on, or asks for the choices where there
    are some.

    One input is moved from field to field: sixty inputs would take a third of a second to appear.
    """

    ALLOW_MAXIMIZE = True
    DEFAULT_CSS = """
    Form { height: 1fr; layers: lines entry; }
    """

    class Told(Message):
        """Of one field."""

        def __init__(self, form: Form, path: str) -> None:
            super().__init__()
            self.form, self.path = form, path

        @property
        def control(self) -> Form:
            return self.form

    class Edited(Told):
        """Another text in a field, at every keystroke."""

        def __init__(self, form: Form, path: str, text: str) -> None:
            super().__init__(form, path)
            self.text = text

    class Focused(Told):
        """A field has the focus."""

    class Pick(Told):
        """The choices of a field are asked for."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._states: dict[str, FieldState] = {}
        self._here = ""
        self._lines, self._entry = FieldLines(), FieldInput(self._changed)
        self.listener: Callable[[str, str], None] | None = None
        """is told of an edit, path and text, instead of by a message: what follows from a keystroke
        is then drawn together with it"""

    def compose(self) -> ComposeResult:
        yield self._lines
        yield self._entry

    # what a screen asks

    @property
    def path(self) -> str:
        """The field that has the focus, or had it last."""
        return self._here

    @property
    def focused_path(self) -> str:
        """The field that has the focus now; empty where none of them has."""
        return self._here if self._entry.has_focus else ""

    def text(self, path: str) -> str:
        """What stands in a field."""
        return self._states[path].text

    def reason(self, path: str) -> str:
        """Why what stands there cannot be used; empty where it can."""
        return self._states[path].reason

    def show(self, fields: Sequence[Field]) -> None:
        """Fields with their values; those that stay keep focus, cursor and what is being typed."""
        before = self._states
        self._states = {
            spec.path: before.get(spec.path) or FieldState(spec, spec.text) for spec in fields
        }
        for spec in fields:
            self._states[spec.path].show(spec)
        if self._here not in self._states:
            self._here = next(iter(self._states), "")
            self._stand()
        self._draw()

    def refuse(self, path: str, reason: str) -> None:
        """Why a text cannot be used; it stays, in red, until it is changed or accepted."""
        self._set_refused(path, reason)

    def accept(self, path: str) -> None:
        """The text is fine after all."""
        self._set_refused(path, "")

    def forget(self, path: str) -> None:
        """What was typed in a field no longer counts: it shows its value again, as after a
        reset."""
        if path in self._states:
            self._states[path].forget()
            self._draw()

    def enter(self, path: str = "") -> None:
        """Put the focus on a field; the last one where none is named."""
        self._go(path or self._here)
        self._entry.focus()

    # how it works

    def _set_refused(self, path: str, reason: str) -> None:
        if path in self._states and self._states[path].refused != reason:
            self._states[path].refused = reason
            self._draw()
            if path == self._here and self._entry.has_focus:
                self._lines.reveal()

    def _go(self, path: str) -> None:
        """The input stands in another field."""
        if path == self._here or path not in self._states:
            return
        if (old := self._states.get(self._here)) is not None:
            if self._entry.value != old.text:  # a keystroke that has not been told yet
                self._edited(self._entry.value)
            old.settle()
            if path not in self._states:  # what was told has taken that field away
                return
        self._here = path
        self._stand()
        self._draw()
        if self._entry.has_focus:
            self._lines.reveal()
            self.post_message(self.Focused(self, path))

    def _stand(self) -> None:
        if (state := self._states.get(self._here)) is not None:
            self._entry.stand_in(state)

    def _draw(self) -> None:
        state = self._states.get(self._here)
        self._entry.display = state is not None
        if state is not None:
            if self._entry.value != state.text:
                self._entry.write(state.text)
            self._entry.placeholder = state.spec.placeholder
            self._entry.set_class(bool(state.reason), "-wrong")
        self._lines.show(list(self._states.values()), self._here, self._entry.has_focus)
        self._place()

    def _place(self) -> None:
        column, row, width = self._lines.entry_place()
        if not 0 <= row < max(self._lines.size.height, 1):
            row = -1  # out of sight, and still where the keys go
        self._entry.styles.width = width
        self._entry.styles.offset = (column, row)

    def _edited(self, text: str) -> None:
        self._states[self._here].edit(text)
        if self.listener is not None:
            self.listener(self._here, text)
        else:
            self.post_message(self.Edited(self, self._here, text))

    def _changed(self, text: str) -> None:
        state = self._states.get(self._here)
        if state is None or text == state.text:
            return  # of a field that was left since, or told already
        had_reason = bool(state.refused)
        self._edited(text)
        if had_reason:
            self._draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter: complete what is suggested, or go on after typing, or ask for the choices."""
        event.stop()
        state = self._states.get(self._here)
        if state is None:
            return
        choices = state.spec.choices
        if choices and state.typed and self._entry.value and self._entry.suggested:
            self._entry.value = self._entry.suggested
            self._entry.action_end()
        elif choices and not (state.typed and self._entry.value in choices):
            self.post_message(self.Pick(self, self._here))
        else:
            self._step(1)

    def on_field_input_entered(self, event: FieldInput.Entered) -> None:
        event.stop()
        if self._here:
            self._draw()
            self._lines.reveal()
            self.post_message(self.Focused(self, self._here))

    def on_field_input_left(self, event: FieldInput.Left) -> None:
        event.stop()
        if self._here:
            self._states[self._here].settle()
            self._draw()
            self._entry.cursor_position = 0  # the beginning of a long text is what tells

    def on_field_input_asked(self, event: FieldInput.Asked) -> None:
        event.stop()
        if self._here and self._states[self._here].spec.choices:
            self.post_message(self.Pick(self, self._here))

    def on_field_input_step(self, event: FieldInput.Step) -> None:
        event.stop()
        if not self._step(event.by) and event.out:
            if event.by > 0:
                self.screen.focus_next()
            else:
                self.screen.focus_previous()

    def _step(self, by: int) -> bool:
        paths = list(self._states)
        at = (paths.index(self._here) if self._here in paths else -1) + by
        if not 0 <= at < len(paths):
            return False
        self._go(paths[at])
        return True

    def on_field_lines_clicked(self, event: FieldLines.Clicked) -> None:
        event.stop()
        self.enter(event.path)
        if event.arrow:
            self.post_message(self.Pick(self, event.path))

    def on_field_lines_laid(self, event: FieldLines.Laid) -> None:
        event.stop()
        self._place()
