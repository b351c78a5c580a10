"""Tidy pandas frames; the only module that imports pandas, and only when asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ckptcost.first.errors import CkptcostError, not_there
from ckptcost.first.jobs.sweep import SweepPiece
from ckptcost.first.report.rows import columns_of, swept_words

if TYPE_CHECKING:
    import pandas as pd


def pandas_for(what: str, extra: str = "frame") -> Any:
    """pandas is no part of the default installation, most of which it would be."""
    try:
        import pandas
    except ImportError as error:
        raise CkptcostError(
            f"{what} needs pandas, which {not_there(error)}. pip install 'ckptcost[{extra}]'"
        ) from None
    return pandas


def _finite(value: Any) -> Any:
    """Infinite and unknown are one empty cell here, as in CSV and JSON."""
    return value if isinstance(value, str) else np.where(np.isfinite(value), value, np.nan)


def frame_of_pieces(pieces: Iterable[SweepPiece]) -> pd.DataFrame:
    """One row a grid point: the axes, then the columns of a case."""
    pd = pandas_for("a frame")

    parts = []
    for piece in pieces:
        values = columns_of(piece.outcome)
        # an axis called like a column would be there twice: the axis wins
        part = pd.DataFrame(
            {
                name: np.broadcast_to(_finite(value), (piece.rows,))
                for name, value in {**values, **piece.axes}.items()
            }
        )
        parts.append(part.assign(**swept_words(piece)))
    frame = pd.concat(parts, ignore_index=True)
    axes = list(piece.axes)
    return frame[[*axes, *(name for name in frame.columns if name not in axes)]]


def frame_of_table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> pd.DataFrame:
    """A table of a document: its columns and their units in order, unknown numbers as NaN, also
    where none is known."""
    pd = pandas_for("a frame")

    frame = pd.DataFrame.from_records(list(rows), columns=list(columns))
    return frame.astype({name: float for name, unit in columns.items() if unit not in ("", "bool")})
