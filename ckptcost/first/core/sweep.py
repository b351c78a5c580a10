"""A scenario over a grid of values: numeric axes become arrays, evaluated in chunks so that memory
does not grow with the grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.domain import Scenario
from ckptcost.first.core.draws import replace_at
from ckptcost.first.core.outcome import Outcome, evaluate

CHUNK = 8192
"""rows at once: a dozen lines of six quantities stay within a few MB, and numpy's overhead is
spread thin"""


class Axis(NamedTuple):
    """One numeric direction of the grid."""

    path: str
    values: NDArray[np.float64]


class Chunk(NamedTuple):
    """Consecutive rows of the grid, the last axis running fastest."""

    start: int
    axes: dict[str, NDArray[np.float64]]
    scenario: Scenario
    outcome: Outcome


def rows_in(axes: Sequence[Axis]) -> int:
    count = 1
    for axis in axes:
        count *= len(axis.values)
    return count


def chunks(scenario: Scenario, axes: Sequence[Axis], rows: int = CHUNK) -> Iterator[Chunk]:
    """The grid in pieces of at most `rows`."""
    total = rows_in(axes)
    for start in range(0, total, rows):
        index: NDArray[np.int64] = np.arange(start, min(start + rows, total))
        here: dict[str, Any] = {}
        for axis in reversed(axes):
            index, position = np.divmod(index, len(axis.values))
            here[axis.path] = axis.values[position]
        piece = scenario
        for axis in axes:
            piece = replace_at(piece, axis.path, here[axis.path])
        yield Chunk(start, {axis.path: here[axis.path] for axis in axes}, piece, evaluate(piece))
