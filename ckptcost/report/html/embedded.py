"""The document inside its own page, as JSON that no text in it can end."""

from __future__ import annotations

import json

from ckptcost.report.document import Report
from ckptcost.report.parts import Warned

MOST_ROWS = 2000
"""of series; nobody sends around a page with more"""
_UNSAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\x7f": "\\u007f"})


def left_out(document: Report) -> str:
    """Why the page lacks the rows by time, or nothing."""
    rows = sum(len(s.series.start) for s in document.statements if s.series is not None)
    if rows <= MOST_ROWS:
        return ""
    return (
        f"{rows:,} rows by time are left out of this page's JSON, where series is null; the SHA-256"
        " is that of the statements with them. Other exports hold them."
    )


def embedded(document: Report) -> str:
    """Only ASCII, and neither <, > nor &. Where the rows by time are left out, a warning of each
    statement says so."""
    words = left_out(document)
    if words:
        said = Warned(code="SERIES_LEFT_OUT", message=words)
        short = [
            (
                s
                if s.series is None
                else s.model_copy(update={"series": None, "warnings": [*s.warnings, said]})
            )
            for s in document.statements
        ]
        document = document.model_copy(update={"statements": short})
    plain = json.dumps(
        document.model_dump(mode="json"), ensure_ascii=True, allow_nan=False, separators=(",", ":")
    )
    return plain.translate(_UNSAFE)
