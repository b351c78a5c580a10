"""Fields in groups. What is typed is told at once and never overwritten while it is being typed."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Blur, Click, Focus, Idle, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input

from ckptcost.first.present.form import Field
from ckptcost.first.tui.widgets.columns import clean, padded, text_width
from ckptcost.first.tui.widgets.drawn import is_plain

# The fields of a form, what was typed in each, and all of them as lines: label, text, unit,
# mark. Drawn, so that sixty of them cost no more than one.

LEAST_INPUT, MOST_UNIT = 10, 14
BEHIND = 4
"""places behind the unit: the arrow of choices, the mark, and blanks before both"""
MARKS = {"u": "yours", "m": "measured", "s": "sourced", "d": "default", "=": "derived"}
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


class FieldLine(NamedTuple):
    kind: str
    """group, field or reason"""
    path: str
    text: str = ""


class FieldLines(ScrollView, can_focus=False):
    """Draws what a form holds; says which field was clicked."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "field--group",
        "field--label",
        "field--here",
        "field--value",
        "field--hint",
        "field--wrong",
        "field--unit",
        "field--error",
        "field--yours",
        "field--measured",
        "field--sourced",
        "field--default",
        "field--derived",
    }
    DEFAULT_CSS = """
    FieldLines { height: 1fr; overflow-x: hidden; layer: lines; }
    FieldLines > .field--group { color: $text-muted; text-style: bold; }
    FieldLines > .field--here { color: $primary; text-style: bold; }
    FieldLines > .field--value { background: $boost; }
    FieldLines > .field--hint { background: $boost; color: $text-muted; text-style: italic; }
    FieldLines > .field--wrong { background: $error 25%; color: $text; }
    FieldLines > .field--unit { color: $text-muted; }
    FieldLines > .field--error { color: $text-error; }
    FieldLines > .field--yours { color: $primary; text-style: bold; }
    FieldLines > .field--measured { color: $text-success; text-style: bold; }
    FieldLines > .field--default { color: $text-muted; }
    FieldLines > .field--derived { color: $text-muted; }
    """

    class Clicked(Message):
        """On a field; `arrow`: where its choices are asked for."""

        def __init__(self, path: str, arrow: bool) -> None:
            super().__init__()
            self.path, self.arrow = path, arrow

    class Laid(Message):
        """The lines stand elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self._states: dict[str, FieldState] = {}
        self._lines: list[FieldLine] = []
        self._label, self._unit = 12, 0
        self._here, self._focused = "", False
        self._drawn: tuple[object, ...] = ()
        self._base: Style | None = None

    def show(self, states: Sequence[FieldState], here: str, focused: bool) -> None:
        """All fields; the one that the input stands in, and whether that has the focus."""
        self._states = {state.spec.path: state for state in states}
        self._here, self._focused = here, focused
        self.lay()

    @property
    def room(self) -> int:
        return self.scrollable_content_region.width

    def lay(self) -> None:
        """Labels get what they need as long as an input stays wide enough to read."""
        specs = [state.spec for state in self._states.values()]
        self._unit = min(max((text_width(spec.unit) for spec in specs), default=0), MOST_UNIT)
        widest = max((text_width(spec.label) for spec in specs), default=0)
        self._label = min(widest, max(self.room - self._unit - BEHIND - 1 - LEAST_INPUT, 6))
        lines: list[FieldLine] = []
        group = ""
        for path, state in self._states.items():
            if state.spec.group != group:
                group = state.spec.group
                lines.append(FieldLine("group", "", group))
            lines.append(FieldLine("field", path))
            lines += [
                FieldLine("reason", path, text)
                for text in state.reason_lines(self.room, "x" if is_plain(self) else "\u2717")
            ]
        self._lines = lines
        self.virtual_size = Size(0, len(lines))
        self._refresh_changed()

    def _refresh_changed(self) -> None:
        """Draw again only the lines that look different: of sixty fields a keystroke changes two or
        three. Colours are none of this widget's business: where a theme, a class or the focus
        changes them, Textual draws the whole widget again.
        """
        before, common = (
            self._drawn,
            (self.room, self._label, self._unit, is_plain(self), len(self._lines)),
        )
        self._drawn = (common, *(self._look(line) for line in self._lines))
        if not before or before[0] != common:
            self.refresh()
            return
        top = self.scroll_offset.y
        seen = range(top, min(top + self.scrollable_content_region.height, len(self._lines)))
        if changed := [at for at in seen if before[at + 1] != self._drawn[at + 1]]:
            self.refresh(*(Region(0, at - top, self.room, 1) for at in changed))

    def _look(self, line: FieldLine) -> tuple[object, ...]:
        """All that a line is drawn from, besides what all lines share."""
        if line.kind != "field":
            return line
        state = self._states[line.path]
        spec = state.spec
        here = self._focused and line.path == self._here
        return (
            here,
            state.text,
            bool(state.reason),
            spec.label,
            spec.placeholder,
            spec.unit,
            spec.mark,
            bool(spec.choices),
        )

    def entry_place(self) -> tuple[int, int, int]:
        """Column, row and width of the field that the input stands in, as seen now."""
        at = next(
            (
                at
                for at, line in enumerate(self._lines)
                if line.kind == "field" and line.path == self._here
            ),
            -1,
        )
        return self._label + 1, at - self.scroll_offset.y, self._middle

    def reveal(self) -> None:
        """Scroll to that field with its reason, and with the heading above it."""
        places = [at for at, line in enumerate(self._lines) if line.path == self._here]
        height = self.scrollable_content_region.height
        if not places or not height:
            return
        first, last, top = places[0], places[-1], self.scroll_offset.y
        if first > 0 and self._lines[first - 1].kind == "group":
            first -= 1
        if last >= top + height:
            self.scroll_to(y=last - height + 1, animate=False)
        elif first < top:
            self.scroll_to(y=first, animate=False)

    @property
    def _middle(self) -> int:
        return max(self.room - self._label - 1 - self._unit - BEHIND, 1)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Laid())

    def on_resize(self, event: Resize) -> None:
        self.lay()
        self.post_message(self.Laid())

    def watch_show_vertical_scrollbar(self) -> None:
        self.call_after_refresh(self.lay)
        self.post_message(self.Laid())

    def on_click(self, event: Click) -> None:
        at = event.get_content_offset(self)
        row = at.y + self.scroll_offset.y if at is not None else -1
        if at is None or not 0 <= row < len(self._lines) or not (path := self._lines[row].path):
            return
        behind = at.x > self._label + self._middle
        self.post_message(
            self.Clicked(
                path,
                behind
                and self._lines[row].kind == "field"
                and bool(self._states[path].spec.choices),
            )
        )

    def render_lines(self, crop: Region) -> list[Strip]:
        self._base = None
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        if self._base is None:  # what lies below all lines, found out once each time it is drawn
            self._base = self.rich_style
        at, base, width = y + self.scroll_offset.y, self._base, self.room
        if at >= len(self._lines):
            return Strip([Segment("", base)]).adjust_cell_length(width, base)
        line = self._lines[at]
        if line.kind != "field":
            style = self._style("group" if line.kind == "group" else "error")
            return Strip([Segment(padded(line.text, width, True), style)]).adjust_cell_length(
                width, style
            )
        return Strip(self._field(self._states[line.path], base)).adjust_cell_length(width, base)

    def _field(self, state: FieldState, base: Style) -> list[Segment]:
        spec = state.spec
        here = self._focused and spec.path == self._here
        label = self._style("error" if state.reason else "here" if here else "label")
        value = self._style("wrong" if state.reason else "value" if state.text else "hint")
        arrow = ("v" if is_plain(self) else "\u25be") if spec.choices else " "
        return [
            Segment(padded(spec.label, self._label, True) + " ", label),
            Segment(padded(state.text or spec.placeholder, self._middle, True), value),
            Segment(" ", base),
            Segment(padded(spec.unit, self._unit, True) + arrow, self._style("unit")),
            Segment(
                " " + (spec.mark or " ")[:1],
                self._style(MARKS[spec.mark]) if spec.mark in MARKS else base,
            ),
        ]

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"field--{name}")


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

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
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
