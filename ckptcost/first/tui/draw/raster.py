"""Curves as dots in cells: in braille or, for terminals that draw nothing else, in letters, one
curve in thirds of a line and several with a mark each. What draws them returns lines of text, and
for each of their cells who owns it, counted from 1; where curves meet, the first one lies on
top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptcost.first.tui.draw.spans import Spans

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Cells = NDArray[np.uint8]

_Weights = Sequence[Sequence[int]]
_BRAILLE: _Weights = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_THIRDS: _Weights = ((1,), (2,), (4,))
"""the bits of a cell's dots, row by row"""
BRAILLE = " " + "".join(chr(0x2800 + mask) for mask in range(1, 256))
"""by mask; nothing is a blank, which terminals draw quicker than an empty braille cell"""
THIRDS = " '-=.|=|"
"""by mask of the top, middle and bottom third"""
MARKS = "*+xo#@%&"
"""by curve, where there are several"""


def dots_of_cell(plain: bool) -> tuple[int, int]:
    """How many a cell has across, and how many down."""
    weights = _THIRDS if plain else _BRAILLE
    return len(weights[0]), len(weights)


def braille(spans: Spans, curves: int, width: int, height: int) -> tuple[list[str], list[bytes]]:
    """Cells of two dots across and four down."""
    masks, owners = _cells(spans, curves, width, height, _BRAILLE)
    return _texts(masks, BRAILLE), [row.tobytes() for row in owners]


def plain(
    spans: Spans, curves: int, width: int, height: int, marks: str = ""
) -> tuple[list[str], list[bytes]]:
    """With a mark for each curve, or in thirds of a line where there are none."""
    masks, owners = _cells(spans, curves, width, height, _THIRDS)
    lines = _texts(owners, " " + marks) if marks else _texts(masks, THIRDS)
    return lines, [row.tobytes() for row in owners]


def _cells(
    spans: Spans, curves: int, width: int, height: int, weights: _Weights
) -> tuple[Cells, Cells]:
    """A picture's cells, row after row: which of their dots are set, and by whom; 0 where nothing
    is."""
    import numpy as np

    down, across = len(weights), len(weights[0])
    rows, columns = height * down, width * across
    tops = np.full((curves, 1, columns), 1, np.int16)  # an empty span
    bottoms = np.zeros((curves, 1, columns), np.int16)
    tops[spans.curves, 0, spans.columns] = np.minimum(spans.tops, rows)
    bottoms[spans.curves, 0, spans.columns] = np.maximum(spans.bottoms, -1).clip(max=rows)
    row = np.arange(rows, dtype=np.int16)[None, :, None]
    dots = (row >= tops) & (row <= bottoms)
    again = (spans.columns[1:] == spans.columns[:-1]) & (spans.curves[1:] == spans.curves[:-1])
    for at in np.flatnonzero(again):  # a gap within a column, which is rare
        dots[
            spans.curves[at],
            max(spans.tops[at], 0) : max(spans.bottoms[at] + 1, 0),
            spans.columns[at],
        ] = True
    split = dots.view(np.uint8).reshape(curves, height, down, width, across)
    masks = np.zeros((curves, height, width), np.uint8)
    for at_row, bits in enumerate(weights):
        for at_column, bit in enumerate(bits):
            masks |= split[:, :, at_row, :, at_column] * np.uint8(bit)
    merged = np.bitwise_or.reduce(masks, axis=0)
    owners = np.where(merged != 0, (masks != 0).argmax(axis=0) + 1, 0).astype(np.uint8)
    return merged, owners


def _texts(masks: Cells, glyphs: str) -> list[str]:
    """A line of text for each row of masks."""
    import numpy as np

    codes = np.array([ord(glyph) for glyph in glyphs], "<u4")[masks]
    return [row.tobytes().decode("utf-32-le") for row in codes]
