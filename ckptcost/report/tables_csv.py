"""Rows as CSV: raw numbers with a point, the unit in the column's name, an empty cell where unknown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ckptcost.jobs import Piece
from ckptcost.report.canonical import tidy
from ckptcost.report.rows import COLUMNS, columns_of

if TYPE_CHECKING:
    from ckptcost.report.document import Report


def _line(cells: Iterable[Any]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerow(["" if cell is None else cell for cell in cells])
    return stream.getvalue()


def _safe(text: str) -> str:
    """A cell that a spreadsheet will not take for a formula."""
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def of_report(report: Report) -> str:
    """One line a case, with p5 and p95 where inputs have ranges."""
    ranged = [name for name in COLUMNS if any(name in row.low for row in report.cases)]
    header = ["tier"]
    for name in COLUMNS:
        header += [name, name + "_low", name + "_high"] if name in ranged else [name]
    out = [_line([*header, "cautions"])]
    for row in report.cases:
        cells: list[Any] = [_safe(row.tier)]
        for name in COLUMNS:
            cells += [row.values[name], row.low.get(name), row.high.get(name)] if name in ranged else [row.values[name]]
        out.append(_line([*cells, " ".join(row.cautions)]))
    return "".join(out)


def _cells(piece: Piece) -> tuple[list[str], Iterator[list[Any]]]:
    values = columns_of(piece.outcome)
    named = {**piece.axes, **{name: value for name, value in values.items() if name not in piece.axes}}
    spread = [value if isinstance(value, str) else np.broadcast_to(value, (piece.rows,)) for value in named.values()]
    rows = ([_safe(column) if isinstance(column, str) else tidy(column[i]) for column in spread] for i in range(piece.rows))
    return list(named), rows


def of_pieces(pieces: Iterable[Piece]) -> Iterator[str]:
    """A sweep as CSV, a chunk at a time."""
    first = True
    for piece in pieces:
        header, rows = _cells(piece)
        if first:
            yield _line(header)
            first = False
        yield "".join(map(_line, rows))


def records(pieces: Iterable[Piece]) -> Iterator[dict[str, Any]]:
    """A sweep as one dictionary a row."""
    for piece in pieces:
        header, rows = _cells(piece)
        for row in rows:
            yield dict(zip(header, row, strict=True))
