"""A row of numbers, each with its label and a note."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Size

from ckptcost.first.present.chart import Stat
from ckptcost.first.tui.draw.canvas import Line, Look
from ckptcost.first.tui.draw.tiles import draw_row, draw_tiles, lines_needed
from ckptcost.first.tui.widgets.drawn import Drawn


class Stats(Drawn):
    """Tiles that wrap; on a short screen each is one line. With the class `-row` all of them are
    one line."""

    DEFAULT_CSS = """
    Stats { width: 1fr; height: auto; }
    """

    stats: tuple[Stat, ...] = ()

    def show(self, stats: Sequence[Stat]) -> None:
        if (new := tuple(stats)) != self.stats:
            width = self.content_size.width
            other_height = not self.is_attached or (
                not self.has_class("-row")
                and lines_needed(new, width, self._short)
                != lines_needed(self.stats, width, self._short)
            )
            self.stats = new
            self.changed(layout=other_height)

    @property
    def _short(self) -> bool:
        """As the class `-short` of the screen, which is set only after the first layout."""
        tall = next(
            (rows for rows, name in self.app.VERTICAL_BREAKPOINTS or () if name == "-tall"), 0
        )
        return self.app.size.height < tall

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 1 if self.has_class("-row") else lines_needed(self.stats, width, self._short)

    def drawing(self, width: int, height: int, look: Look) -> list[Line]:
        if self.has_class("-row"):
            return draw_row(self.stats, width, look.plain)
        return draw_tiles(self.stats, width, height, self._short, look.plain)
