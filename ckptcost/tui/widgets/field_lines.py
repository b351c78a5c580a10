"""The fields of a form, what was typed in each, and all of them as lines: label, text, unit, mark.
Drawn, so that sixty of them cost no more than one."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ckptcost.present.form import Field
from ckptcost.tui.widgets.columns import clean, padded, text_width

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
                for text in state.reason_lines(self.room, "x" if self._plain else "\u2717")
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
            (self.room, self._label, self._unit, self._plain, len(self._lines)),
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

    @property
    def _plain(self) -> bool:
        return bool(getattr(self.app, "plain", False))

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
        if (
            self._base is None
        ):  # what lies below all lines is found out once for each time it is drawn
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
        arrow = ("v" if self._plain else "\u25be") if spec.choices else " "
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
