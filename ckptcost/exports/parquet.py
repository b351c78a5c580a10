"""The lines of the bills as one Parquet file: unknown is null."""

from __future__ import annotations

import io

from ckptcost.errors import InputError
from ckptcost.exports import Bills, Files
from ckptcost.exports.csv import LINES, NUMBERS, lines_of


def write(bills: Bills) -> Files:
    try:
        import pandas as pd
        import pyarrow  # noqa: F401
    except ImportError:
        needs = "needs pandas and pyarrow"
        raise InputError(needs, "--to parquet", "pip install pyarrow") from None
    frame = pd.DataFrame([*lines_of(bills)], columns=[*LINES])
    frame[[*NUMBERS]] = frame[[*NUMBERS]].astype("Float64")
    out = io.BytesIO()
    frame.to_parquet(out, index=False)
    return {"checkpoint-costs.parquet": out.getvalue()}
