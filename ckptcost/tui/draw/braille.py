"""Curves in braille: a cell is two dots wide and four high."""

from __future__ import annotations

from ckptcost.tui.draw.raster import cells, texts
from ckptcost.tui.draw.spans import Spans

ACROSS, DOWN = 2, 4
_WEIGHTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
GLYPHS = " " + "".join(chr(0x2800 + mask) for mask in range(1, 256))
"""by mask; nothing is a blank, which terminals draw quicker than an empty braille cell"""


def braille(spans: Spans, curves: int, width: int, height: int) -> tuple[list[str], list[bytes]]:
    """Lines of text, and for each of their cells who owns it, counted from 1; the first curve lies
    on top."""
    found = cells(spans, curves, width, height, _WEIGHTS)
    return texts(found.masks, GLYPHS), [row.tobytes() for row in found.owners]
