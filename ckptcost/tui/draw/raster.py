"""Curves as dots in cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ckptcost.tui.draw.spans import Spans

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Cells(NamedTuple):
    """A picture's cells, row after row: which of their dots are set, and by whom, counted from 1; 0
    where nothing is."""

    masks: NDArray[np.uint8]
    owners: NDArray[np.uint8]


def cells(
    spans: Spans, curves: int, width: int, height: int, weights: Sequence[Sequence[int]]
) -> Cells:
    """`weights` are the bits of a cell's dots, row by row. Where curves meet, the first one owns
    the cell."""
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
    return Cells(merged, owners)


def texts(masks: NDArray[np.uint8], glyphs: str) -> list[str]:
    """A line of text for each row of masks."""
    import numpy as np

    codes = np.array([ord(glyph) for glyph in glyphs], "<u4")[masks]
    return [row.tobytes().decode("utf-32-le") for row in codes]
