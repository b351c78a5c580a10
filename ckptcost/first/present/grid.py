"""A table as data: cells that are ready to be shown, and beside them what they are sorted by. Any
screen or view can draw one."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Literal, NamedTuple

Tone = Literal["", "best", "base", "good", "warn", "bad", "muted"]
"""what a row or a text is, never a colour"""
Order = float | str | None


class GridHead(NamedTuple):
    """One column."""

    id: str
    label: str
    left: bool = False
    """text stands left, numbers right"""
    rank: int = 0
    """where there is no room, columns of the highest rank go first; 0 stays"""


class Row(NamedTuple):
    key: str
    """what the row is, for whoever asks which one is chosen"""
    cells: tuple[str, ...]
    order: tuple[Order, ...] = ()
    """beside the cells, what sorting compares; None stands last. Without it the cells themselves"""
    tone: Tone = ""
    marked: bool = False
    """ticked by the user"""


class Grid(NamedTuple):
    heads: tuple[GridHead, ...] = ()
    rows: Sequence[Row] = ()
    title: str = ""
    note: str = ""
    empty: str = ""
    """what is said where there is no row"""


def sorted_by(grid: Grid, head_id: str, down: bool = False) -> Grid:
    """Rows by one column; unknown ones last in either direction, rows alike in the order they had.

    >>> grid = Grid(
    ...     (GridHead("n", "n"),),
    ...     (Row("a", ("2",), (2.0,)), Row("b", ("-",), (None,)), Row("c", ("10",), (10.0,))),
    ... )
    >>> (
    ...     [row.key for row in sorted_by(grid, "n").rows],
    ...     [row.key for row in sorted_by(grid, "n", down=True).rows],
    ... )
    (['a', 'c', 'b'], ['c', 'a', 'b'])
    """
    place = next((i for i, head in enumerate(grid.heads) if head.id == head_id), None)
    if place is None:
        return grid
    known: list[tuple[tuple[bool, float | str], Row]] = []
    unknown: list[Row] = []
    for row in grid.rows:
        value = (row.order or row.cells)[place]
        if value is None or value != value:  # NaN is as unknown
            unknown.append(row)
        else:
            known.append(((isinstance(value, str), value), row))  # numbers, then words
    known.sort(key=itemgetter(0), reverse=down)
    return grid._replace(rows=[*(row for _, row in known), *unknown])
