"""Rows of cells: in each a character, what it is drawn as (its ink) and what lies behind it (its
ground). No colours here."""

from __future__ import annotations

import re
from typing import NamedTuple

Piece = tuple[str, str, str]
"""Neighbouring cells that look alike: their text; its ink, such as series-1, a tone, axis, or empty
for plain text; and the ground behind it, such as band-save, or empty. A bare tuple: a full picture
has thousands."""
Line = list[Piece]


class Look(NamedTuple):
    """What the terminal can show."""

    plain: bool = False
    """letters only"""
    shaded: bool = False
    """no colours: what is tinted elsewhere is dotted"""


INKS = (
    "",
    *(f"{series}-{number}" for series in ("series", "other") for number in range(1, 9)),
    "best",
    "base",
    "good",
    "warn",
    "bad",
    "muted",
    "axis",
    "title",
    "rule",
    "note",
    "rule-now",
    "fill-2",
    "glow-2",
)
GROUNDS = ("", "band-save", "band-load", "band-drain", "band-plateau", "fill-2", "glow-2")
INK_IDS = {name: number for number, name in enumerate(INKS, start=1)}
"""0 is a blank, which looks the same in any ink"""
GROUND_IDS = {name: number * 32 for number, name in enumerate(GROUNDS)}
"""beside an ink's number in one byte"""


def _runs() -> re.Pattern[bytes]:
    """Cells of one ground with one ink and any blanks among them, or blanks alone; for each ground
    its own branch."""
    branches = []
    for number, blank in enumerate(GROUND_IDS.values(), start=2):
        nothing, inks = rb"\x%02x" % blank, rb"[\x%02x-\x%02x]" % (blank + 1, blank + 31)
        branches.append(rb"%b*(%b)(?:\%d|%b)*|%b+" % (nothing, inks, number, nothing, nothing))
    return re.compile(b"(" + b"|".join(branches) + b")", re.DOTALL)


_RUNS = _runs()


class Canvas:
    """Cells that later strokes write over. Inks and grounds are kept as numbers, so that runs of
    them are found quickly."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = max(width, 0), max(height, 0)
        self.chars = [[" "] * self.width for _ in range(self.height)]
        self.inks = [bytearray(self.width) for _ in range(self.height)]
        self.grounds: list[bytearray | None] = [None] * self.height

    def put(self, row: int, column: int, text: str, ink: str = "") -> None:
        """Write text; what would stand outside is left out."""
        if not 0 <= row < self.height:
            return
        if column < 0:
            text, column = text[-column:], 0
        text = text[: self.width - column]
        if text:
            self.chars[row][column : column + len(text)] = text
            self.inks[row][column : column + len(text)] = bytes([INK_IDS[ink]]) * len(text)

    def lay(self, row: int, column: int, text: str, inks: bytes | bytearray) -> None:
        """Write text with an ink number for each cell, all of it within the picture."""
        self.chars[row][column : column + len(text)] = text
        self.inks[row][column : column + len(text)] = inks

    def ground(self, row: int, column: int, grounds: bytes) -> None:
        """Put a ground's number behind each cell, and leave alone where it is 0."""
        before = self.grounds[row]
        if before is None:
            before = self.grounds[row] = bytearray(self.width)
        for at, number in enumerate(grounds, start=column):
            if number:
                before[at] = number

    def under(self, row: int, column: int, text: str, ink: str = "") -> None:
        """Write only where nothing stands yet."""
        chars, number = self.chars[row], INK_IDS[ink]
        for at, char in enumerate(text, start=column):
            if chars[at] == " ":
                chars[at] = char
                self.inks[row][at] = number

    def blank(self, row: int, column: int, length: int) -> bool:
        """All of it is in the picture and nothing stands there but shade."""
        if not (0 <= row < self.height and column >= 0 and column + length <= self.width):
            return False
        return all(char in _SHADES for char in self.chars[row][column : column + length])

    def tint(self, row: int, begin: int, end: int, ground: str) -> None:
        grounds = self.grounds[row]
        if grounds is None:
            grounds = self.grounds[row] = bytearray(self.width)
        grounds[begin:end] = bytes([GROUND_IDS[ground]]) * (end - begin)

    def lines(self) -> list[Line]:
        return [self._line(row) for row in range(self.height)]

    def _line(self, row: int) -> Line:
        chars, inks, grounds = "".join(self.chars[row]), self.inks[row], self.grounds[row]
        looks = bytes(inks)
        if grounds is not None:
            looks = (int.from_bytes(inks, "big") | int.from_bytes(grounds, "big")).to_bytes(
                self.width, "big"
            )
        pieces: Line = []
        begin = 0
        for run, *marks in _RUNS.findall(looks):
            end = begin + len(run)
            ground = run[0] >> 5
            mark = marks[ground]
            pieces.append(
                (chars[begin:end], INKS[(mark[0] & 31) - 1] if mark else "", GROUNDS[ground])
            )
            begin = end
        return pieces


SHADE, PLAIN_SHADE = "\u2591", ":"
_SHADES = f" {SHADE}{PLAIN_SHADE}"


def shortened(text: str, width: int, plain: bool = False) -> str:
    """Text that fits, with a sign that something is missing.

    >>> shortened("Node-local NVMe", 8), shortened("NAS", 8), shortened("Node-local", 4, plain=True)
    ('Node-lo…', 'NAS', 'Nod.')
    """
    if len(text) <= width:
        return text
    return text[: max(width - 1, 0)] + ("." if plain else "\u2026") if width > 0 else ""
