"""A text of many lines, scrolled both ways and drawn line by line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ckptcost.first.present.grid import Tone
from ckptcost.first.tui.widgets.columns import clean, text_width
from ckptcost.first.tui.widgets.drawn import is_plain


class Listing(ScrollView, can_focus=True):
    """Shows lines as they are; one that goes on to the right says so at the edge."""

    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "page_down", "page down", show=False),
        Binding("home", "scroll_home", "first line", show=False),
        Binding("end", "scroll_end", "last line", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"listing--bad", "listing--muted", "listing--more"}
    DEFAULT_CSS = """
    Listing { height: 1fr; width: 1fr; }
    Listing > .listing--bad { color: $text-error; }
    Listing > .listing--muted { color: $text-muted; }
    Listing > .listing--more { color: $text-warning; }
    """

    lines: tuple[str, ...] = ()
    _tone: Tone = ""

    def on_mount(self) -> None:
        # the mark at the edge says that there is more, and costs no line
        self.styles.scrollbar_size_horizontal = 0

    def show(self, lines: Sequence[str], tone: Tone = "", stay: bool = False) -> None:
        """Other lines; `stay`: they are of the same thing, so the place is kept."""
        self.lines, self._tone = tuple(lines), tone
        self.virtual_size = Size(max(map(text_width, self.lines), default=0), len(self.lines))
        if not stay:
            self.scroll_to(0, 0, animate=False)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, base = self.scrollable_content_region.width, self.rich_style
        left, top = self.scroll_offset
        own = self._tone in ("bad", "muted")
        style = self.get_component_rich_style(f"listing--{self._tone}") if own else base
        text = clean(self.lines[top + y]) if top + y < len(self.lines) else ""
        strip = Strip([Segment(text, style)])
        if strip.cell_length - left <= width:
            return strip.crop(left).adjust_cell_length(width, base)
        more = Segment(
            ">" if is_plain(self) else "\u203a",
            self.get_component_rich_style("listing--more"),
        )
        return Strip(
            [*strip.crop(left, left + width - 1).adjust_cell_length(width - 1, style), more], width
        )
