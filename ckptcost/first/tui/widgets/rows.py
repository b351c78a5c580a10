"""The one table of all screens: a head that stays, a cursor, sorting, words that narrow it, and as
many columns as fit. Rows may be many thousand."""

from __future__ import annotations

import textwrap
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Blur, Click, Focus, Key, Paste, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ckptcost.first.present.amounts import count
from ckptcost.first.present.grid import Grid, Row, sorted_by
from ckptcost.first.tui.widgets.columns import (
    GUTTER,
    Fit,
    fit,
    head_line,
    natural_widths,
    padded,
    row_line,
    text_width,
    wanted,
)
from ckptcost.first.tui.widgets.drawn import is_plain


class Rows(ScrollView, can_focus=True):
    """Shows a grid. Enter and a click on the cursor's row choose; the head sorts; Left and Right
    reach columns that do not fit.

    Enter, Left and Right are not bindings: a screen may declare a command on the same key for its
    bottom line.
    """

    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "up", show=False),
        Binding("down", "move(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("home", "edge(False)", "first", show=False),
        Binding("end", "edge(True)", "last", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rows--head",
        "rows--cursor",
        "rows--best",
        "rows--base",
        "rows--good",
        "rows--warn",
        "rows--bad",
        "rows--muted",
        "rows--foot",
    }
    DEFAULT_CSS = """
    Rows { height: 1fr; overflow-x: hidden; scrollbar-size: 1 1; }
    Rows > .rows--head { color: $text-muted; text-style: bold; }
    Rows > .rows--cursor { background: $primary 20%; }
    Rows:focus > .rows--cursor { background: $primary; color: $background; }
    Rows > .rows--best { color: $text-success; text-style: bold; }
    Rows > .rows--base { text-style: bold; }
    Rows > .rows--good { color: $text-success; }
    Rows > .rows--warn { color: $text-warning; }
    Rows > .rows--bad { color: $text-error; text-style: bold; }
    Rows > .rows--muted { color: $text-muted; }
    Rows > .rows--foot { color: $text; background: $panel; }
    """

    class Told(Message):
        """Of one row."""

        def __init__(self, rows: Rows, key: str) -> None:
            super().__init__()
            self.rows, self.key = rows, key

        @property
        def control(self) -> Rows:
            return self.rows

    class Moved(Told):
        """Another row is under the cursor, by a key, a click, or because other rows are shown."""

    class Chosen(Told):
        """Enter, or a click on the row under the cursor."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._given = Grid()
        self._shown = Grid()
        self._natural: list[int] = []
        self._fit = Fit((), 2, 0)
        self._fitted_for = 0
        self._shift = 0
        self._cursor = 0
        self._sort: tuple[str, bool] = ("", False)
        self._words = ""
        self._typing = False
        self._just_focused = False
        self._base: Style | None = None
        self._drawn: dict[int, object] = {}

    # what a screen asks

    @property
    def grid(self) -> Grid:
        """As it stands on the screen: the rows that have the words, in the order of its sorting."""
        return self._shown

    @property
    def key(self) -> str:
        """The row under the cursor; empty where there is none."""
        return self._shown.rows[self._cursor].key if self._shown.rows else ""

    @property
    def sorting(self) -> tuple[str, bool]:
        """Column and whether it falls; no column: as it was given."""
        return self._sort

    def show(self, grid: Grid) -> None:
        """Another table, or the same with other values: cursor, sorting and place stay where they
        can."""
        key, at = self.key, self._cursor
        self._given = grid
        if others := grid.heads != self._shown.heads:
            self._shift = 0
        self._natural = natural_widths(grid)
        self._order()
        self._cursor = self._place_of(key, at)
        self.virtual_size = Size(0, len(self._shown.rows) + self._foot + 1)
        self._refit(changed_only=not others)
        if self.key != key:
            self.post_message(self.Moved(self, self.key))

    def select(self, key: str) -> None:
        """Put the cursor on a row."""
        if self._shown.rows:
            self._move_to(self._place_of(key, self._cursor))

    def sort(self, head_id: str, down: bool = False) -> None:
        """By a column; empty: as it was given. The cursor stays on its row."""
        key = self.key
        self._sort = (head_id, down)
        self._order()
        self._cursor = self._place_of(key, self._cursor)
        self._reveal()
        self.refresh()

    def find(self) -> None:
        """Have words typed at the foot; Enter keeps what they leave, Escape shows all rows."""
        self.focus()
        self._typing = True
        self.narrow(self._words)

    def narrow(self, words: str) -> None:
        """Show the rows that have all of the words, wherever in the row; empty: all rows."""
        self._words = words
        self.show(self._given)
        self._reveal()
        self.refresh()

    def sort_next(self) -> None:
        """By the next column that is seen, rising and then falling; after the last as it was
        given."""
        heads = self._shown.heads
        seen = [heads[column].id for column, _ in self._fit.places if column < len(heads)]
        turns = [("", False), *((head_id, down) for head_id in seen for down in (False, True))]
        at = turns.index(self._sort) if self._sort in turns else 0
        self.sort(*turns[(at + 1) % len(turns)])

    # keys and mouse

    def action_move(self, by: int) -> None:
        self._move_to(self._cursor + by)

    def action_page(self, by: int) -> None:
        self._move_to(self._cursor + by * max(self._lines - 1, 1))

    def action_edge(self, last: bool) -> None:
        self._move_to(len(self._shown.rows) - 1 if last else 0)

    def on_key(self, event: Key) -> None:
        if self._foot and self._type(event):
            event.stop()
        elif event.key == "enter" and self.key:
            self.post_message(self.Chosen(self, self.key))
            event.stop()
        elif event.key in ("left", "right") and self._slide(1 if event.key == "right" else -1):
            event.stop()

    def _type(self, event: Key) -> bool:
        """A key as the line at the foot takes it; False where it means something else."""
        words = {"escape": "", "ctrl+u": "", "enter": self._words, "backspace": self._words[:-1]}
        if event.character and event.is_printable:
            words[event.key] = self._words + event.character
        if event.key not in words or not (self._typing or event.key == "escape"):
            return False
        self._typing = self._typing and event.key not in ("escape", "enter")
        self.narrow(words[event.key])
        return True

    def on_paste(self, event: Paste) -> None:
        if self._typing:
            event.stop()
            self.narrow(self._words + " ".join(event.text.split()))

    def on_blur(self, event: Blur) -> None:
        if self._typing:
            self._typing = False
            self.narrow(self._words)

    def on_focus(self, event: Focus) -> None:
        self._just_focused = True

    def on_click(self, event: Click) -> None:
        fresh, self._just_focused = self._just_focused, False
        at = event.get_content_offset(self)
        if at is None or not self._shown.rows:
            return
        if at.y == 0:
            self._sort_by_click(at.x)
            return
        row = self._top + at.y - 1
        if row >= len(self._shown.rows):
            return
        if row == self._cursor and not fresh:
            self.post_message(self.Chosen(self, self.key))
        else:
            self._move_to(row)

    def _sort_by_click(self, x: int) -> None:
        edge = GUTTER
        for column, width in self._fit.places:
            edge += width + self._fit.gap
            if x < edge:
                head_id = self._shown.heads[column].id
                turn = {(head_id, False): (head_id, True), (head_id, True): ("", False)}
                self.sort(*turn.get(self._sort, (head_id, False)))
                return

    def _slide(self, by: int) -> bool:
        """Show other columns; False where there are none to show."""
        seen, last = self._fit.columns, len(self._shown.heads) - 1
        if by > 0 and not self._fit.hidden:
            return False
        for shift in range(self._shift + by, last if by > 0 else -1, by):
            if shift > by > 0 and last in seen:
                return False
            found = self._fitted(shift)
            if found.columns != seen or shift == 0:
                self._shift, self._fit = shift, found
                self.refresh()
                return True
        return False

    # how it works

    @property
    def _top(self) -> int:
        return self.scroll_offset.y

    @property
    def _lines(self) -> int:
        """Rows that are seen at once."""
        return max(self.scrollable_content_region.height - 1 - self._foot, 0)

    @property
    def _foot(self) -> int:
        """Lines of words below the rows."""
        return int(self._typing or self._words != "")

    def _order(self) -> None:
        head_id, down = self._sort
        grid = self._given
        if self._words:
            rows = [row for row in grid.rows if matches(row, self._words)]
            grid = grid._replace(rows=rows, empty=f'Nothing matches "{self._words.strip()}".')
        self._shown = sorted_by(grid, head_id, down) if head_id else grid

    def _place_of(self, key: str, otherwise: int) -> int:
        rows = self._shown.rows
        if not rows:
            return 0
        otherwise = min(max(otherwise, 0), len(rows) - 1)
        if rows[otherwise].key == key:
            return otherwise
        return next((at for at, row in enumerate(rows) if row.key == key), otherwise)

    def _move_to(self, place: int) -> None:
        before, place = self._cursor, min(max(place, 0), max(len(self._shown.rows) - 1, 0))
        if place == before or not self._shown.rows:
            return
        self._cursor = place
        self._reveal()
        self.refresh_lines(before + 1)
        self.refresh_lines(place + 1)
        self.post_message(self.Moved(self, self.key))

    def _reveal(self) -> None:
        """Scroll no further than it takes."""
        if self._lines and not self._top <= self._cursor < self._top + self._lines:
            self.scroll_to(
                y=self._cursor if self._cursor < self._top else self._cursor - self._lines + 1,
                animate=False,
            )

    def _fitted(self, shift: int) -> Fit:
        return fit(
            self._shown.heads, self._natural, self.scrollable_content_region.width - GUTTER, shift
        )

    def _refit(self, changed_only: bool = False) -> None:
        self._fitted_for = self.scrollable_content_region.width
        if self._shown.heads and self._fitted_for:
            self._fit = self._fitted(self._shift)
        lines = range(self.scrollable_content_region.height)
        if not changed_only or not lines:
            self.refresh()
        elif changed := [
            y for y in lines if y not in self._drawn or self._drawn[y] != self._look(y)
        ]:
            self.refresh(*(Region(0, y, self._fitted_for, 1) for y in changed))

    def _look(self, y: int) -> object:
        """All that a line is drawn from. Colours are not among it: where a theme, a class or the
        focus changes them, Textual draws the whole widget again."""
        if foot := self._foot_line(y):
            return foot
        if not self._shown.rows:
            return (self._shown.empty, self._fitted_for)
        if y == 0:
            return (self._shown.heads, self._fit, self._fitted_for, self._sort)
        at = self._top + y - 1
        if at >= len(self._shown.rows):
            return (self._fitted_for,)
        row = self._shown.rows[at]
        return (row.cells, row.tone, row.marked, at == self._cursor, self._fit, self._fitted_for)

    def _foot_line(self, y: int) -> str:
        """The words, and how many rows have them; empty for every other line."""
        if not self._foot or y < self.scrollable_content_region.height - 1:
            return ""
        width = self.scrollable_content_region.width
        words = f"/{self._words}{'_' if self._typing else ''}"
        said = f"{count(len(self._shown.rows))} of {count(len(self._given.rows))}"
        keys = "  Enter keeps, Esc shows all" if self._typing else "  Esc shows all"
        said += keys if len(words + said + keys) < width else ""
        room = max(width - len(said) - 1, 1)
        return f"{words[-room:]:<{room}} {said}"

    def on_resize(self, event: Resize) -> None:
        self._refit()
        self._reveal()

    def render_lines(self, crop: Region) -> list[Strip]:
        self._base = None
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        if self._base is None:  # what lies below all lines, found out once each time it is drawn
            self._base = self.rich_style
        width, style = self.scrollable_content_region.width, self._base
        if width != self._fitted_for:  # the scroll bar has come or gone
            self._refit()
        self._drawn[y] = self._look(y)
        if foot := self._foot_line(y):
            return _strip(foot, width, self._style("foot"))
        if not self._shown.rows:
            lines = textwrap.wrap(self._shown.empty, max(width - 2, 1))
            text = f" {lines[y]}" if y < len(lines) else ""
            return _strip(text, width, self._style("muted"))
        if y == 0:
            return _strip(
                head_line(self._shown.heads, self._fit, width, self._sort, is_plain(self)),
                width,
                self._style("head"),
            )
        at = self._top + y - 1
        if at >= len(self._shown.rows):
            return _strip("", width, style)
        row = self._shown.rows[at]
        own = self._style(row.tone) if row.tone else style
        return _strip(
            self._line(row), width, self._under_cursor(own) if at == self._cursor else own
        )

    def _under_cursor(self, own: Style) -> Style:
        cursor = self._style("cursor")
        if self.has_focus:  # one colour for all rows: tones would not stand out on this ground
            return own + Style(color=cursor.color, bgcolor=cursor.bgcolor, bold=True)
        return own + Style(bgcolor=cursor.bgcolor)

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"rows--{name}")

    def _line(self, row: Row) -> str:
        if any(
            len(row.cells[column]) > width and not self._shown.heads[column].left
            for column, width in self._fit.places
        ):
            self._grow(row)
        return row_line(row, self._shown.heads, self._fit, is_plain(self))

    def _grow(self, row: Row) -> None:
        """A number that was not looked at and is wider than those that were."""
        heads = self._shown.heads
        widths = [
            max(old, wanted(head, text_width(cell)))
            for head, old, cell in zip(heads, self._natural, row.cells, strict=False)
        ]
        if widths != self._natural:
            self._natural = widths
            self._refit()


def _strip(text: str, width: int, style: Style) -> Strip:
    """One line in one style, exactly as wide as the widget."""
    text = padded(text, width, left=True) if text.isascii() else text
    return Strip([Segment(text, style)]).adjust_cell_length(width, style)


def matches(row: Row, text: str) -> bool:
    """All words of the text somewhere in the row, in any case.

    >>> (
    ...     matches(Row("h100", ("NVIDIA H100 SXM", "700 W")), "sxm nvi"),
    ...     matches(Row("h100", ("NVIDIA H100", "700 W")), "a100"),
    ... )
    (True, False)
    """
    return has_words(" ".join((row.key, *row.cells)), text)


def has_words(whole: str, text: str) -> bool:
    """All words of the text somewhere in the whole, in any case."""
    folded = whole.casefold()
    return all(word in folded for word in text.casefold().split())
