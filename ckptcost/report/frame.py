"""Tidy pandas frames; the only module that imports pandas, and only when asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ckptcost.jobs import Piece
from ckptcost.report.rows import columns_of

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
        records.append(record)
    return pd.DataFrame.from_records(records)


def frame_of_pieces(pieces: Iterable[Piece]) -> pd.DataFrame:
    """One row a grid point: the axes, then the columns of a case."""
    import pandas as pd

    parts = []
    for piece in pieces:
        values = columns_of(piece.outcome)
        # an axis called like a column would be there twice: the axis wins
        parts.append(pd.DataFrame({name: np.broadcast_to(value, (piece.rows,)) for name, value in {**values, **piece.axes}.items()}))
    frame = pd.concat(parts, ignore_index=True)
    axes = list(piece.axes)
    return frame[[*axes, *(name for name in frame.columns if name not in axes)]]
