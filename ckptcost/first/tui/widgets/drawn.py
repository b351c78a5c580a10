"""A widget that draws lines once for a size, a theme and its data, and hands them out until one of
these changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.color import Color, ColorParseError
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from ckptcost.first.tui.draw.canvas import Line, Look

# From what is drawn to how it looks: inks and grounds become styles of the theme.

_TONES = {
    "best": ("success", True),
    "good": ("success", False),
    "warn": ("warning", False),
    "bad": ("error", False),
    "base": ("foreground", False),
    "rule-now": ("foreground", True),
}
"""theme variable, bold"""
_FAINT = {"axis": 0.35, "muted": 0.35, "rule": 0.6, "note": 0.15}
"""how far towards the background"""
_DEEP = {"fill-2": "series-1", "glow-2": "series-2"}
"""an area that lies on another: the same hue, this far towards the background"""
_DEPTH = 0.45


class Inks:
    """The styles of one widget under one theme; every one starts from the widget's own, since a
    segment without a style ends the program where NO_COLOR is set."""

    def __init__(self, widget: Widget) -> None:
        self.base = widget.rich_style
        self._variables = widget.app.theme_variables
        self._known: dict[tuple[str, str], Style] = {}

    def style(self, ink: str, ground: str = "") -> Style:
        found = self._known.get((ink, ground))
        if found is None:
            found = self._known[ink, ground] = self._made(ink, ground)
        return found

    def _colour(self, name: str) -> Color | None:
        if name in _DEEP:
            colour, back = self._colour(_DEEP[name]), self.base.bgcolor
            if colour is None or colour.ansi is not None or back is None or not back.triplet:
                return colour
            return colour.blend(Color.from_rich_color(back), _DEPTH)
        if name.startswith("other-"):
            others = self._others()
            return others[(int(name[6:]) - 1) % len(others)] if others else self._colour("primary")
        for each in (name, "primary" if name.startswith("series-") else "panel"):
            try:
                return Color.parse(self._variables[each])
            except (KeyError, ColorParseError):
                continue
        return None

    def _others(self) -> list[Color]:
        """The series without the one that is nearest to the best one's colour."""
        series = [
            colour
            for number in range(1, 9)
            if (colour := self._colour(f"series-{number}")) is not None
        ]
        best = self._colour("success")
        if best is not None and len(series) > 1:
            series.remove(
                min(
                    series,
                    key=lambda each: sum(
                        (a - b) ** 2 for a, b in zip(each.rgb, best.rgb, strict=True)
                    ),
                )
            )
        return series

    def _made(self, ink: str, ground: str) -> Style:
        style = self.base
        if ink == "title":
            style += Style(bold=True)
        elif ink in _FAINT:
            style += self._faint(_FAINT[ink])
        elif ink in _TONES or ink in _DEEP or ink.startswith(("series-", "other-")):
            name, bold = _TONES.get(ink, (ink, False))
            colour = self._colour(name)
            style += Style(color=colour.rich_color if colour else None, bold=bold or None)
        if ground and (colour := self._colour(ground)) is not None:
            style += Style(bgcolor=colour.rich_color)
        return style

    def _faint(self, share: float) -> Style:
        front, back = self.base.color, self.base.bgcolor
        if front is None or back is None or not front.triplet or not back.triplet:
            return Style(dim=True)
        return Style(
            color=Color.from_rich_color(front).blend(Color.from_rich_color(back), share).rich_color
        )

    def strip(self, line: Line, width: int) -> Strip:
        segments = [Segment(text, self.style(ink, ground)) for text, ink, ground in line]
        length = sum(len(text) for text, _, _ in line)
        if length < width:
            segments.append(Segment(" " * (width - length), self.base))
        return Strip(segments, max(length, width))

    def strips(self, lines: Sequence[Line], width: int) -> list[Strip]:
        return [self.strip(line, width) for line in lines]


def is_plain(widget: Widget) -> bool:
    return bool(getattr(widget.app, "plain", False))


def look_of(widget: Widget) -> Look:
    """What the terminal of this app can show."""
    return Look(plain=is_plain(widget), shaded=widget.app.no_color)


class Drawn(Widget):
    """Subclasses give `drawing`; `changed` says that the data are others now."""

    ALLOW_SELECT: ClassVar[bool] = False

    _strips: Sequence[Strip] = ()
    _drawn_for: tuple[object, ...] = ()
    _version = 0
    _looked_at = False
    """whether what it is drawn with was compared since `render_lines`"""

    def drawing(self, width: int, height: int, look: Look) -> list[Line]:
        """The lines of its data at this size; none without data."""
        return []

    def changed(self, layout: bool = False) -> None:
        """New data: draw again, and where the height follows from them, lay out again."""
        self._version += 1
        self._looked_at = False
        if self.is_attached:
            self.refresh(layout=layout)

    def _current(self) -> Sequence[Strip]:
        width, height = self.content_size
        drawn_for = (width, height, self._version, self.app.theme, self.rich_style, look_of(self))
        if drawn_for != self._drawn_for:
            self._strips = Inks(self).strips(self.drawing(width, height, look_of(self)), width)
            self._drawn_for = drawn_for
        return self._strips

    def render_lines(self, crop: Region) -> list[Strip]:
        self._looked_at = False
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        strips = self._strips if self._looked_at else self._current()
        self._looked_at = True
        return (
            strips[y] if y < len(strips) else Strip.blank(self.content_size.width, self.rich_style)
        )
