"""Tidy pandas frames; the only module that imports pandas, and only when asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ckptcost.jobs.sweep import Piece
from ckptcost.report.rows import NOTES, columns_of, swept_words

if TYPE_CHECKING:
    import pandas as pd


class CaseRow(Protocol):
    """A row of a report, as the document or a view holds it."""

    @property
    def tier(self) -> str: ...
    @property
    def values(self) -> Mapping[str, float | None]: ...
    @property
    def low(self) -> Mapping[str, float | None]: ...
    @property
    def high(self) -> Mapping[str, float | None]: ...
    @property
    def excludes(self) -> Mapping[str, Sequence[str]]: ...


def frame_of_rows(rows: Sequence[CaseRow]) -> pd.DataFrame:
    """One row a case; ranges as _low and _high columns where there are any."""
    import pandas as pd

    records = []
    for row in rows:
        record: dict[str, Any] = {"tier": row.tier}
        for name, value in row.values.items():
            record[name] = np.nan if value is None else value
            if name in row.low:
                record[name + "_low"], record[name + "_high"] = row.low[name], row.high[name]
        record |= {
            name: " ".join(row.excludes.get(name.removesuffix("_without"), ())) for name in NOTES
        }
        records.append(record)
    return pd.DataFrame.from_records(records)


def _finite(value: Any) -> Any:
    """Infinite and unknown are one empty cell here, as in CSV and JSON."""
    return value if isinstance(value, str) else np.where(np.isfinite(value), value, np.nan)


def frame_of_pieces(pieces: Iterable[Piece]) -> pd.DataFrame:
    """One row a grid point: the axes, then the columns of a case."""
    import pandas as pd

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


def frame_of_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """A table of a study: its columns in order, unknown numbers as NaN."""
    import pandas as pd

    return pd.DataFrame.from_records(list(rows), columns=list(columns))
