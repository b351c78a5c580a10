"""Many decimal numbers out of their text at once, to the bit what `float` makes of each.

Digits up to 15 make a whole number that a float holds exactly, and so is a power of ten up to 22:
their quotient is rounded once, as it should be. Whatever is written otherwise is left to `float`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_COMMA, _DOT, _ZERO = b",.0"
_NONE = np.frombuffer(b"nan", np.uint8)
_MOST_DIGITS = 15
_WIDEST = 31
"""characters of a number that is looked at here"""
_TENS = 10.0 ** np.arange(_MOST_DIGITS + 1)

Floats = NDArray[np.float64]


def floats(text: bytes) -> Floats:
    """Numbers with commas between. Raises ValueError where one of them is none.

    >>> floats(b"1.0,22.125,-3,4e2,nan").tolist()
    [1.0, 22.125, -3.0, 400.0, nan]
    """
    raw = np.frombuffer(text, np.uint8)
    is_dot = raw == _DOT
    marks = np.flatnonzero((raw == _COMMA) | is_dot)
    of_dots = is_dot[marks]
    ends = np.append(marks[~of_dots], len(raw))
    begins = np.concatenate([[0], ends[:-1] + 1])
    width = ends - begins
    place = np.full(len(ends), _WIDEST)
    """of the dot in its number"""
    dotted = np.cumsum(~of_dots)[of_dots]
    place[dotted] = marks[of_dots] - begins[dotted]
    alike = (np.minimum(width, _WIDEST) * (_WIDEST + 1) + np.minimum(place, _WIDEST)).astype(
        np.int16
    )
    order = np.argsort(alike, kind="stable")
    cuts = np.flatnonzero(np.diff(alike[order])) + 1
    found = np.empty(len(ends))
    for group in np.split(order, cuts):
        one = group[0]
        found[group] = _alike(raw, begins[group], ends[group], int(width[one]), int(place[one]))
    return found


def _alike(
    raw: NDArray[np.uint8],
    begins: NDArray[np.intp],
    ends: NDArray[np.intp],
    width: int,
    place: int,
) -> Floats:
    """Numbers as wide as each other, with their dots at the same place."""
    digits = [column for column in range(width) if column != place]
    found = np.empty(len(begins))
    odd = np.ones(len(begins), np.bool_)
    if 0 < len(digits) <= _MOST_DIGITS:
        read = raw[begins[:, None] + digits] - np.uint8(_ZERO)
        odd = read.max(axis=1) > 9
        whole = np.zeros(len(begins))
        for column in read.T:  # no product of matrices: it would be shared out among threads
            whole *= 10.0
            whole += column
        found = whole / _TENS[max(width - place - 1, 0)]
    if width == len(_NONE) and odd.any():
        none = odd & (raw[begins[:, None] + np.arange(width)] == _NONE).all(axis=1)
        found[none] = np.nan
        odd &= ~none
    for one in np.flatnonzero(odd).tolist():
        text = raw[begins[one] : ends[one]].tobytes()
        if b"_" in text or b" " in text:
            raise ValueError("not a number")
        found[one] = float(text)
    return found
