"""Which columns of a table there is room for, and how wide each is. Numbers are never cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from ckptcost.first.present.grid import Grid, GridHead, Row

GUTTER = 2
"""in front of each row: the best one's arrow and the tick"""
ROOMY, TIGHT, MOST = 24, 8, 60
"""a text column gives way down to the first before a column is dropped, to the second after that,
and never asks for more than the last"""
LOOKED_AT = 2000
"""rows whose width is taken before they are drawn"""
COUNT_ROOM = 4
"""kept free for `+12` where columns are hidden"""


class Fit(NamedTuple):
    """What is drawn."""

    places: tuple[tuple[int, int], ...]
    """column and width, from left to right"""
    gap: int
    hidden: int
    """how many columns are not among them"""

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(column for column, _ in self.places)

    @property
    def width(self) -> int:
        return sum(width for _, width in self.places) + self.gap * max(len(self.places) - 1, 0)


def text_width(text: str) -> int:
    return len(text) if text.isascii() else cell_len(clean(text))


def clean(text: str) -> str:
    """Names come from files; what would steer the terminal is shown as a question mark."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def natural_widths(grid: Grid) -> list[int]:
    """What each column would like. Of very many rows some are looked at; a wider one makes room for
    itself when it is drawn."""
    labels = [text_width(head.label) for head in grid.heads]
    rows = (
        grid.rows if len(grid.rows) <= LOOKED_AT else grid.rows[:: len(grid.rows) // LOOKED_AT + 1]
    )
    if not rows:
        return labels
    columns = zip(*[row.cells for row in rows], strict=False)
    return [
        wanted(head, max(label, *map(text_width, cells)))
        for head, label, cells in zip(grid.heads, labels, columns, strict=False)
    ]


def wanted(head: GridHead, width: int) -> int:
    return max(text_width(head.label), min(width, MOST)) if head.left else width


def fit(heads: Sequence[GridHead], natural: Sequence[int], room: int, shift: int = 0) -> Fit:
    """The columns for this room. `shift`: the first stays, and so many after it are passed over."""
    if shift > 0:
        return _window(heads, natural, room, shift)
    for kept, least in _column_choices(heads):
        spare = COUNT_ROOM if len(kept) < len(heads) else 0
        found = _laid(heads, natural, kept, room - spare, least, len(heads))
        if found is not None:
            return found
    return _laid(heads, natural, kept, room, 2, len(heads)) or Fit(
        tuple((c, max(room, 0)) for c in kept), 1, len(heads) - len(kept)
    )


def _column_choices(heads: Sequence[GridHead]) -> Iterator[tuple[list[int], int]]:
    """The same list of columns as one after the other leaves it, and the least width of texts: all
    of them, then without those that give way by their rank, then without the last ones."""
    kept = list(range(len(heads)))
    yield kept, ROOMY
    for column in sorted(
        (c for c in kept if heads[c].rank > 0), key=lambda c: (-heads[c].rank, -c)
    ):
        kept.remove(column)
        yield kept, ROOMY
    while len(kept) > 1:
        yield kept, TIGHT
        kept.pop()


def _window(heads: Sequence[GridHead], natural: Sequence[int], room: int, shift: int) -> Fit:
    kept = [0]
    best = Fit(((0, min(natural[0], max(room, 0))),), 1, len(heads) - 1)
    for column in range(1 + shift, len(heads)):
        kept.append(column)
        found = _laid(
            heads, natural, kept, room - COUNT_ROOM, ROOMY if len(kept) > 2 else TIGHT, len(heads)
        )
        if found is None:
            break
        best = found
    return best


def _laid(
    heads: Sequence[GridHead],
    natural: Sequence[int],
    columns: Sequence[int],
    room: int,
    least: int,
    of: int = 0,
) -> Fit | None:
    """These columns in the room: gaps narrow first, then the widest text gives way; None where that
    is not enough."""
    widths = {column: natural[column] for column in columns}
    hidden = max(of - len(columns), 0)
    for gap in (2, 1):
        if sum(widths.values()) + gap * (len(columns) - 1) <= room:
            return Fit(tuple(widths.items()), gap, hidden)
    over = sum(widths.values()) + len(columns) - 1 - room
    texts = [column for column in columns if heads[column].left]
    while over > 0:
        widest = max(texts, key=lambda column: widths[column], default=None)
        if widest is None or widths[widest] <= least:
            return None
        widths[widest] -= 1
        over -= 1
    return Fit(tuple(widths.items()), 1, hidden)


def padded(text: str, width: int, left: bool) -> str:
    """A cell in its column; text that is too long ends in two dots."""
    if not text.isascii() or not text.isprintable():
        return _padded_wide(clean(text), width, left)
    if len(text) > width:
        text = text[: max(width - 2, 0)] + ".."[: max(width, 0)]
    return text.ljust(width) if left else text.rjust(width)


def _padded_wide(text: str, width: int, left: bool) -> str:
    """The same where letters may take two places."""
    size = cell_len(text)
    if size > width:
        return set_cell_size(text, max(width - 2, 0)) + ".."[: max(width, 0)]
    return text + " " * (width - size) if left else " " * (width - size) + text


def row_line(row: Row, heads: Sequence[GridHead], places: Fit, plain: bool) -> str:
    """A row as it stands on the screen."""
    best = (">" if plain else "\u25b8") if row.tone == "best" else " "
    cells = (
        padded(row.cells[column], width, heads[column].left) for column, width in places.places
    )
    tick = "x" if row.marked else ""
    return f"{best.strip() + tick:<{GUTTER}}" + (" " * places.gap).join(cells)


def head_line(
    heads: Sequence[GridHead], places: Fit, width: int, sorting: tuple[str, bool], plain: bool
) -> str:
    """The labels, an arrow at the one that is sorted by, and at the end how many columns are
    hidden."""
    line, at = " " * GUTTER, GUTTER
    arrow = (("^", "v") if plain else ("\u25b2", "\u25bc"))[sorting[1]]
    arrow_at = -1
    for column, wide in places.places:
        head = heads[column]
        line += padded(head.label, wide, head.left) + " " * places.gap
        if head.id == sorting[0]:
            label = min(text_width(head.label), wide)
            arrow_at = at + label if head.left else at + wide - label - 1
        at += wide + places.gap
    line = line.rstrip().ljust(arrow_at + 1)
    if arrow_at >= 0:
        line = line[:arrow_at] + arrow + line[arrow_at + 1 :]
    if not places.hidden:
        return line
    more = f"+{places.hidden} columns {'->' if plain else chr(0x2192)}"
    short = more if len(more) < width - GUTTER - places.width else f"+{places.hidden}"
    return line.ljust(width - len(short)) + short
