"""Columns that nothing is added to any more, kept small: most values of a meter are the ones of the
reading before, and what a meter tells has few digits. What comes out is what went in, to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

_SHORT = 65_536
"""values of a column in which a place takes two bytes"""
_UNITS = (1.0, 1e3, 1e6, 1e9)
"""what values are whole numbers of, one over"""
_EXACT = 2.0**53
_NARROW: Sequence[type[np.signedinteger[Any]]] = (np.int8, np.int16, np.int32)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Number = TypeVar("Number", np.int64, np.float64)


class Packed(NamedTuple):
    """One column."""

    length: int
    places: NDArray[np.uint16] | NDArray[np.uint32] | None
    """where values differ from the one before; None: all are told"""
    first: int
    more: NDArray[np.signedinteger[Any]]
    """by how many units each is more than the one before it; as they are where `per_unit` is 0"""
    per_unit: float

    def ints(self) -> Ints:
        """Of a column of whole numbers."""
        told = self.more.astype(np.int64)
        if self.per_unit:
            told = np.cumsum(told)
            told += self.first
        return self._all(told)

    def floats(self) -> Floats:
        """Of a column of numbers."""
        told: Floats
        if self.per_unit:
            told = (np.cumsum(self.more, dtype=np.int64) + self.first) / self.per_unit
        else:
            told = self.more.view(np.float64)
        return self._all(told)

    def _all(self, told: NDArray[Number]) -> NDArray[Number]:
        if self.places is None:
            return told
        until = np.append(self.places[1:].astype(np.int64), self.length)
        return np.repeat(told, until - self.places)


def ints(column: Ints) -> Packed:
    """Whole numbers, kept small."""
    return _pack_bits(np.ascontiguousarray(column), None)


def floats(column: Floats) -> Packed:
    """Numbers, kept small."""
    values = np.ascontiguousarray(column)
    return _pack_bits(values.view(np.int64), values)


def _pack_bits(bits: Ints, values: Floats | None) -> Packed:
    """`values`: what the bits are of, where they are no whole numbers."""
    count = len(bits)
    places: NDArray[np.uint16] | NDArray[np.uint32] | None = None
    told = np.flatnonzero(np.concatenate([[count > 0], bits[1:] != bits[:-1]])[:count])
    if 0 < len(told) < 0.75 * count:
        places = told.astype(np.uint16) if count <= _SHORT else told.astype(np.uint32)
        bits = bits[told]
        values = None if values is None else values[told]
    units, per_unit = (bits, 1.0) if values is None else _in_units(values)
    if units is not None and count:
        with np.errstate(over="ignore"):
            more = np.diff(units, prepend=units[:1])
        for narrow in _NARROW:
            if np.array_equal(small := more.astype(narrow), more):
                return Packed(count, places, int(units[0]), small, per_unit)
    return Packed(count, places, 0, bits.copy(), 0.0)


def _in_units(values: Floats) -> tuple[Ints | None, float]:
    """As whole numbers of the largest unit that gives back every bit."""
    if not np.isfinite(values).all() or (np.signbit(values) & (values == 0)).any():
        return None, 0.0
    for per_unit in _UNITS:
        units = np.rint(values * per_unit)
        if np.abs(units).max(initial=0.0) < _EXACT and np.array_equal(units / per_unit, values):
            return units.astype(np.int64), per_unit
    return None, 0.0
