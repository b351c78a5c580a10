"""One case in one line: the columns that the table of a report, a sweep and a data frame share.
Works on numbers and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ckptcost.first.core.bill import Bill
from ckptcost.first.core.domain import Number
from ckptcost.first.core.draws import p5_p95
from ckptcost.first.core.outcome import Outcome, failure_cost
from ckptcost.first.core.quantities import EVERYDAY, Quantity, in_order
from ckptcost.first.core.units import to_kwh
from ckptcost.first.jobs.model import Case
from ckptcost.first.report.canonical import tidy

if TYPE_CHECKING:
    from ckptcost.first.jobs.sweep import SweepPiece

CaseRow = dict[str, Any]

COLUMNS = {
    "interval_s": "training time between saves",
    "saves": "saves in the run",
    "stall_s": "training held up per save, second tier included",
    "lag_s": "until the save is safe, after the stall",
    "rate_bytes_per_s": "narrowest place of a save, GPU memory to medium",
    "save_gpu_hours": "GPU-hours lost to one save",
    "save_energy_kwh": "energy of one save",
    "save_cost_usd": "cost of one save",
    "save_location_kgco2e": "emissions of one save, location-based",
    "save_storage_kwh": "energy of one save at the storage",
    "saves_gpu_hours": "GPU-hours lost to all saves, no failures",
    "saves_energy_kwh": "energy of all saves, no failures",
    "saves_cost_usd": "cost of all saves, no failures",
    "saves_location_kgco2e": "emissions of all saves, no failures",
    "run_gpu_hours": "GPU-hours lost in the run, failures included",
    "run_energy_kwh": "energy added in the run",
    "run_cost_usd": "cost added in the run",
    "run_location_kgco2e": "emissions added in the run, location-based",
    "run_market_kgco2e": "the same, market-based",
    "run_embodied_kgco2e": "embodied share of the GPU time lost",
    "run_water_l": "water for cooling added in the run",
    "goodput": "useful training time over wall time",
    "wall_s": "expected duration of the run",
    "failures": "expected failures",
    "lost_per_failure_s": "mean time that one failure costs: training done again, and getting back",
}

_UNITS = {
    "_s": "s",
    "_bytes_per_s": "bytes_per_s",
    "_gpu_hours": "GPU-h",
    "_kwh": "kWh",
    "_usd": "USD",
    "_kgco2e": "kgCO2e",
    "_l": "L",
    "saves": "count",
    "failures": "count",
    "goodput": "share",
}
"""by how a column's name ends, the longest ending first where two fit"""


def unit_of(column: str) -> str:
    """The unit of a column, as tables call it.

    >>> unit_of("rate_bytes_per_s"), unit_of("stall_s"), unit_of("run_market_kgco2e")
    ('bytes_per_s', 's', 'kgCO2e')
    """
    fitting = max((end for end in _UNITS if column.endswith(end)), key=len)
    return _UNITS[fitting]


NOTES = {
    "energy_without": "lines that are unknown and so not in the energies and emissions",
    "cost_without": "lines that are unknown and so not in the costs",
}
WITHOUT = {**NOTES, "emissions_without": "lines that are unknown and so not in the emissions"}
SWEPT_WORDS = NOTES | {
    "grid_method": "what the grid's factor counts; rows of two methods are not comparable in kgCO2e"
}
"""columns of a sweep that are words"""


def swept_words(piece: SweepPiece) -> dict[str, str]:
    lacking = excludes_of(piece.outcome)
    words = {name: " ".join(lacking.get(name.removesuffix("_without"), ())) for name in NOTES}
    return words | {"grid_method": piece.resolved.grid_method}


@np.errstate(over="ignore")
def columns_of(outcome: Outcome) -> dict[str, Number]:
    """The columns, in people's units; NaN where unknown."""
    one, run, n = outcome.one_save, outcome.run, outcome.saves

    def people(bill: Bill, prefix: str, which: Sequence[Quantity]) -> dict[str, Number]:
        return {f"{prefix}_{q.column}": q.people(bill.total(q.field)) for q in which}

    save = people(one, "save", EVERYDAY)
    save["save_storage_kwh"] = to_kwh(one.line("storage_write").energy_j)
    saves = {
        key.replace("save_", "saves_", 1): value * n
        for key, value in save.items()
        if key != "save_storage_kwh"
    }
    return {
        "interval_s": outcome.interval_s,
        "saves": n,
        "stall_s": outcome.mean_stall_s,
        "lag_s": outcome.plan.saved.lag_s,
        "rate_bytes_per_s": outcome.plan.saved.wire_bytes_per_s,
        **save,
        **saves,
        **people(run, "run", in_order(*(q.id for q in EVERYDAY))),
        "goodput": outcome.goodput,
        "wall_s": outcome.wall_s,
        "failures": outcome.failures,
        "lost_per_failure_s": failure_cost(outcome).total_s,
    }


def excludes_of(outcome: Outcome) -> dict[str, list[str]]:
    """Unknown lines of the run's marginal ledger, by what they are left out of."""
    if isinstance(outcome.wall_s, float) and outcome.wall_s == float("inf"):
        return {}  # infinite is an answer, not an unknown
    unknown = {
        "energy": outcome.run.unknown("energy_j"),
        "cost": outcome.run.unknown("cost_usd"),
        "emissions": outcome.run.unknown("location_kgco2e"),
    }
    return {what: list(lines) for what, lines in unknown.items() if lines}


def case_row(case: Case, name: str) -> CaseRow:
    """The case in one line; ends of ranges of those columns that depend on uncertain inputs."""
    values = columns_of(case.outcome)
    row: CaseRow = {
        "tier": case.tier_id,
        **{key: tidy(float(each)) for key, each in values.items()},
    }
    if case.spread is not case.outcome:
        for column, drawn in columns_of(case.spread).items():
            if row[column] is not None:
                least, most = p5_p95(drawn, float(values[column]))
                if least < most:
                    row[f"{column}_low"], row[f"{column}_high"] = tidy(least), tidy(most)
    lacks = excludes_of(case.outcome)
    row |= {each: " ".join(lacks.get(each.removesuffix("_without"), ())) for each in WITHOUT}
    return row | {
        "cautions": " ".join(caution.code for caution in case.cautions),
        "case": name,
        "tier_name": case.resolved.names["tier"],
    }
