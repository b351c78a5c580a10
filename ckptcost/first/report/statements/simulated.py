"""Simulated runs as a statement: every line's mean over the runs, with the 5th and 95th percentile
of the runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.bill import has_no_total
from ckptcost.first.core.lines import OF_THE_JOB, Ledger
from ckptcost.first.core.quantities import IN_DOCUMENTS, Quantity
from ckptcost.first.core.units import HOUR_S
from ckptcost.first.jobs.model import case_of
from ckptcost.first.jobs.simulate import SimulatedLine, Simulation, lines_of
from ckptcost.first.report.canonical import tidy
from ckptcost.first.report.factors import factor_ids, factor_of
from ckptcost.first.report.parts import Component, Factor, FunctionalUnit, RunTotals, Totals
from ckptcost.first.report.statement import Statement
from ckptcost.first.report.statements.bill import (
    UNKNOWN_ENDS,
    BilledAmount,
    BilledLine,
    Rests,
    amount_part,
    bill_part,
    runs_mean,
)
from ckptcost.first.report.statements.closed_form import plain_id, softest_input
from ckptcost.first.report.statements.modelled import of_case
from ckptcost.first.scenario import Resolved


def statement_of(found: Simulation, catalog: Catalog) -> Statement | None:
    """None where the runs are too many to keep their lines."""
    lines = lines_of(found)
    if lines is None:
        return None
    plan = of_case(case_of(_two_tiers(found.resolved)), catalog)
    saves, wall_s = found.values["saves"], found.values["wall"]
    names = tuple(i.path for i in found.resolved.inputs)
    billed = [
        BilledLine(
            each.line.id,
            each.line.boundary,
            {q.id: runs_mean(q.people(each.values[q.field])) for q in IN_DOCUMENTS},
            "modelled",
            softest_input(each.line.id, names, found.resolved),
        )
        for each in lines
    ]

    price = float(found.resolved.scenario.cluster.usd_per_gpu_s) * HOUR_S
    bill = bill_part(
        billed,
        lambda ledger, q: _sum(lines, ledger, q),
        Rests(lambda *of: factor_ids(*of, names)),
        "p5-p95",
        price,
    )
    asked = found.asked
    factors = [Factor.model_validate(factor_of(i, catalog)) for i in found.resolved.inputs]
    runs = "one simulated run" if asked.runs == 1 else f"mean of {asked.runs:,} simulated runs"
    count = float(np.mean(saves))
    subject = plan.subject.model_copy(
        update={"run_id": plain_id(f"{plan.subject.run_id}-sim-{asked.runs}-{asked.seed}")}
    )
    return plan.model_copy(
        update={
            "id": f"{plan.id}/simulated-{asked.runs}-{asked.seed}",
            "how": f"{runs}, {asked.process} failures, seed {asked.seed}",
            "length_s": tidy(float(np.mean(wall_s))),
            "components": [Component.model_validate(each) for each in bill["components"]],
            "allocated": Totals.model_validate(bill["allocated"]) if bill["allocated"] else None,
            "factors": factors,
            "rests": bill["rests"],
            "subject": subject,
            "totals": RunTotals.model_validate(
                bill["totals"] | {"checkpoints": amount_part("1", runs_mean(saves), None, "p5-p95")}
            ),
            "functional_units": [FunctionalUnit(name="checkpoint", count=tidy(count) or 0.0)],
            "uncertainty": f"5th and 95th percentile of the runs; inputs: {asked.inputs}",
            # of the closed form alone
            **dict.fromkeys(("schedule", "power_step", "one_save", "drawn")),
        }
    )


def _sum(lines: Sequence[SimulatedLine], ledger: Ledger, q: Quantity) -> BilledAmount:
    """Of the lines that are known in every run, run by run."""
    mine = [(each.line.id, each.values[q.field]) for each in lines if each.line.ledger == ledger]
    lacks = [name for name, values in mine if np.any(np.isnan(values))]
    if has_no_total((name in lacks, name in OF_THE_JOB) for name, _ in mine):
        return BilledAmount(*UNKNOWN_ENDS, lacks)
    known = [values for name, values in mine if name not in lacks]
    return runs_mean(q.people(np.sum(known, axis=0)), lacks)


def _two_tiers(resolved: Resolved) -> Resolved:
    """What the closed form can say of it."""
    inputs = tuple(
        i for i in resolved.inputs if not i.path.startswith(("third_tier.", "policy.third_"))
    )
    return resolved._replace(scenario=replace(resolved.scenario, third_tier=None), inputs=inputs)
