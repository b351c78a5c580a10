"""Curves in letters, for terminals that draw nothing else: one curve in thirds of a line, several
with a mark each."""

from __future__ import annotations

from ckptcost.tui.draw.raster import cells, texts
from ckptcost.tui.draw.spans import Spans

ACROSS, DOWN = 1, 3
MARKS = "*+xo#@%&"
"""by curve, where there are several"""
_WEIGHTS = ((1,), (2,), (4,))
_LEVELS = " '-=.|=|"
"""by mask of the top, middle and bottom third"""


def plain(
    spans: Spans, curves: int, width: int, height: int, marks: str = ""
) -> tuple[list[str], list[bytes]]:
    """As `braille.braille`; with a mark for each curve, or in thirds of a line where there are
    none."""
    found = cells(spans, curves, width, height, _WEIGHTS)
    lines = texts(found.owners, " " + marks) if marks else texts(found.masks, _LEVELS)
    return lines, [row.tobytes() for row in found.owners]
