"""The bill of simulated runs, line by line: mean and percentiles over the runs, walked again
because most answers need the sums only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ckptcost.core.bill import Line
from ckptcost.core.interruptions import Floats
from ckptcost.core.quantities import FIELDS
from ckptcost.core.simulate import bills_of, spent_of
from ckptcost.jobs.simulate import Simulation
from ckptcost.jobs.walks import prepared_for, spans_of, walked

MOST_RUNS = 20_000
"""beyond it the arrays of all lines would be large"""


class SimulatedLine(NamedTuple):
    """One line of the bill; every array has one element a run."""

    line: Line
    """of the first run: its id, cause, ledger and boundary"""
    values: dict[str, Floats]
    """by quantity, in base units; NaN where not known"""


def lines_of(found: Simulation) -> list[SimulatedLine] | None:
    """The lines of the very runs that were simulated; None where there are too many runs."""
    runs = found.asked.runs
    if runs > MOST_RUNS:
        return None
    prepared = prepared_for(found.resolved, found.asked)
    told: dict[str, SimulatedLine] = {}
    for start, stop in spans_of(prepared):
        walk, s, plan, job = walked(prepared, start, stop, None)
        for line in bills_of(s, plan, spent_of(s, plan, job, walk)).lines:
            each = told.setdefault(
                line.id, SimulatedLine(line, {q: np.empty(runs) for q in FIELDS})
            )
            for quantity in FIELDS:
                each.values[quantity][start:stop] = getattr(line, quantity)
    return list(told.values())
