"""The errors a program may catch; they are the first edition's until the new ones are here."""

from ckptcost.first.errors import (
    CkptcostError,
    InputError,
    MeterLost,
    MeterUnavailable,
    OutputError,
    RunFileError,
    UnitError,
    UnknownName,
)

__all__ = [
    "CkptcostError",
    "InputError",
    "MeterLost",
    "MeterUnavailable",
    "OutputError",
    "RunFileError",
    "UnitError",
    "UnknownName",
]
