"""A widget that draws lines once for a size, a theme and its data, and hands them out until one of
these changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from ckptcost.tui.draw.canvas import Line, Look
from ckptcost.tui.widgets.inks import Inks, look_of


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
