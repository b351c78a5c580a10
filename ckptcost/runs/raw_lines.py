"""Lines of ticks, many at once: nine of ten lines of a run are ticks, and all of a part look alike
but for their numbers.

A line is taken here if it is written as `lines.raw_line` writes it and as wide as its header says;
any other is left to whoever reads lines one by one and can say what is wrong with it.
"""

from __future__ import annotations

import re
from binascii import crc32
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.runs import decimals
from ckptcost.runs.lines import MOST_READ, SEAL
from ckptcost.runs.tables import Table

AT_ONCE = 1024
_NUMBER = rb"\d{1,18}"
_LINE = re.compile(
    rb'\{"k":"raw","t":(%s),"d":\[(%s(?:,%s)*)\],"v":\[(.*)\]' % ((_NUMBER,) * 3), re.S
)
_DIGITS = b"0123456789.-+eE"
_MOST_SHAPES = 256
"""of lines of one part"""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class _Shape(NamedTuple):
    """What is left of a line's values without their digits, once understood."""

    asked: tuple[bool, ...]
    starts: tuple[int, ...]
    """by meter: its first number"""
    numbers: int
    """in all; a meter that was not asked has one, which is none"""


class RawLines:
    """Ticks of one part on their way into its tables."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self._tables = tables
        self._widths = [len(table.channels) for table in tables]
        self._commas = len(tables) - 1
        self._shapes: dict[bytes, _Shape | None] = {}
        self._lines: list[tuple[_Shape, bytes, bytes, bytes]] = []
        """shape, t, d and v"""
        self.whole: list[tuple[int, bytes]] = []
        """the same lines by their numbers, for who reads them one by one where these are none"""

    def take(self, number: int, line: bytes) -> bool:
        """Whether it is one of these; without its end of line. `number`: where it stands."""
        if not line.startswith(b'{"k":"raw"'):
            return False
        body = line[:-SEAL]
        found = _LINE.fullmatch(body)
        if found is None or line[-SEAL:] != b',"c":"%08x"}' % crc32(body):
            return False
        t, d, v = found.groups()
        key = v.translate(None, _DIGITS)
        shape = self._shapes[key] if key in self._shapes else self._shape(key)
        if shape is None or d.count(b",") != self._commas:
            return False
        self._lines.append((shape, t, d, v))
        self.whole.append((number, line))
        return True

    def _shape(self, key: bytes) -> _Shape | None:
        if len(self._shapes) >= _MOST_SHAPES:
            return None
        self._shapes[key] = shape = self._understood(key)
        return shape

    def _understood(self, key: bytes) -> _Shape | None:
        """What remains are brackets, commas and what has no answer.

        A row without brackets is of a meter that was not asked.
        """
        rows = re.findall(rb"\[[^\[\]]*\]|null", key)
        if b",".join(rows) != key or len(rows) != len(self._tables):
            return None
        starts, numbers = [], 0
        for row, width in zip(rows, self._widths, strict=True):
            starts.append(numbers)
            entries = row[1:-1].split(b",") if row != b"null" else [row]
            if any(entry not in (b"", b"null") for entry in entries):
                return None
            if row != b"null" and len(entries) != width:
                return None
            numbers += len(entries)
        return _Shape(tuple(row != b"null" for row in rows), tuple(starts), numbers)

    @property
    def full(self) -> bool:
        return len(self._lines) >= AT_ONCE

    def put(self) -> int | None:
        """Into the tables, all that were taken; the time of the last one, None where there is none.
        Raises ValueError where what should be numbers is none: nothing is added then."""
        if not self._lines:
            return None
        shapes, t, d, v = zip(*self._lines, strict=True)
        try:
            values = decimals.floats(b",".join(v).replace(b"null", b"nan").translate(None, b"[]"))
        finally:
            self._lines = []
        if len(values) != sum(shape.numbers for shape in shapes):
            raise ValueError("a number too many or too few")
        if (np.abs(values) > MOST_READ).any():
            raise ValueError("a number that no meter has")
        self.whole = []
        t_ns = np.array([*map(int, t)], np.int64)
        took = np.array([*map(int, b",".join(d).split(b","))], np.int64).reshape(len(t), -1)
        asked = np.array([shape.asked for shape in shapes])
        begins = np.zeros(len(t), np.intp)
        np.cumsum([shape.numbers for shape in shapes[:-1]], out=begins[1:])
        starts = np.array([shape.starts for shape in shapes]) + begins[:, None]
        now = np.zeros(len(t), np.int64)  # each meter is asked when the one before has answered
        for i, table in enumerate(self._tables):
            here = asked[:, i]
            begun = np.minimum(now, took[:, i])
            now = np.where(here, np.maximum(now, took[:, i]), now)
            if here.any():
                places = starts[here, i, None] + np.arange(self._widths[i])
                table.ticks(np.stack([t_ns, took[:, i], begun], axis=1)[here], values[places])
        return int(t_ns.max())
