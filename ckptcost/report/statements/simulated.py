"""Simulated runs as a statement: every line's mean over the runs, with the 5th and 95th percentile
of the runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ckptcost.catalog.store import Catalog
from ckptcost.core.interruptions import Floats
from ckptcost.core.lines import OF_THE_JOB
from ckptcost.core.quantities import IN_DOCUMENTS, Quantity
from ckptcost.jobs.model import case_of
from ckptcost.jobs.simulate import Simulation
from ckptcost.jobs.simulated_bill import SimulatedLine, lines_of
from ckptcost.present.words import line_label
from ckptcost.report.canonical import tidy
from ckptcost.report.document import Component, Factor, FunctionalUnit
from ckptcost.report.document import Quantity as Told
from ckptcost.report.factors import factor_of
from ckptcost.report.statement import Statement
from ckptcost.report.statements.modelled import of_case, plain_id
from ckptcost.scenario import Resolved


def statement_of(found: Simulation, catalog: Catalog) -> Statement | None:
    """None where the runs are too many to keep their lines."""
    lines = lines_of(found)
    if lines is None:
        return None
    plan = of_case(case_of(_two_tiers(found.resolved)), catalog)
    before = {c.id: c for c in plan.components}
    for each in lines:  # a third tier has no closed form: its lines are told as the second's
        if (name := each.line.id) not in before:
            like = before[name.replace("third_", "second_")]
            before[name] = like.model_copy(
                update={"id": name, "label": line_label(name), "boundary": each.line.boundary}
            )
    components = [_component(each, before[each.line.id]) for each in lines]
    saves, wall_s = (found.values[name] for name in ("saves", "wall"))
    totals = {
        q.id: _told(_sum(lines, q), getattr(plan.totals, q.id), q, _unknown(lines, q))
        for q in IN_DOCUMENTS
    }
    allocated = None
    if plan.allocated is not None:
        allocated = plan.allocated.model_copy(
            update={
                q.id: _told(
                    _sum(lines, q, "allocated"),
                    getattr(plan.allocated, q.id),
                    q,
                    _unknown(lines, q, "allocated"),
                )
                for q in IN_DOCUMENTS
            }
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
            "components": components,
            "allocated": allocated,
            "factors": factors,
            "subject": subject,
            "totals": plan.totals.model_copy(
                update=totals | {"checkpoints": _told(saves, plan.totals.checkpoints, None, ())}
            ),
            "functional_units": [FunctionalUnit(name="checkpoint", count=tidy(count) or 0.0)],
            "uncertainty": f"5th and 95th percentile of the runs; inputs: {asked.inputs}",
        }
    )


def _two_tiers(resolved: Resolved) -> Resolved:
    """What the closed form can say of it."""
    inputs = tuple(
        i for i in resolved.inputs if not i.path.startswith(("third_tier.", "policy.third_"))
    )
    return resolved._replace(scenario=replace(resolved.scenario, third_tier=None), inputs=inputs)


def _component(each: SimulatedLine, before: Component) -> Component:
    update: dict[str, Any] = {
        q.id: _told(each.values[q.field], getattr(before, q.id), q, ()) for q in IN_DOCUMENTS
    }
    hours = update["gpu_time_lost"].value
    price = before.unit_price
    update |= (
        {"price_qty": hours, "price_unit": "GPU-h", "unit_price": price}
        if hours and price
        else dict.fromkeys(("price_qty", "price_unit", "unit_price"))
    )
    return before.model_copy(update=update)


def _told(values: Floats, before: Told, q: Quantity | None, excludes: Sequence[str]) -> Told:
    """Mean and percentiles; not known where any run's is not."""
    people = q.people if q else float
    mean = float(people(float(np.mean(values))))
    update: dict[str, Any] = {
        "value": tidy(mean),
        "low": None,
        "high": None,
        "interval": None,
        "excludes": list(excludes),
    }
    if update["value"] is not None and len(values) > 1:
        low, high = (float(people(float(end))) for end in np.quantile(values, (0.05, 0.95)))
        low, high = (
            min(low, mean),
            max(high, mean),
        )  # a mean can lie outside where few runs make most of it
        if low < high:
            update |= {"low": tidy(low), "high": tidy(high), "interval": "p5-p95"}
    return before.model_copy(update=update)


def _of(lines: Sequence[SimulatedLine], ledger: str) -> list[SimulatedLine]:
    return [each for each in lines if each.line.ledger == ledger]


def _sum(lines: Sequence[SimulatedLine], q: Quantity, ledger: str = "marginal") -> Floats:
    """As a bill sums: lines that are known; nothing without what GPUs and hosts do."""
    each = [(one.line.id, one.values[q.field]) for one in _of(lines, ledger)]
    known = [values for _, values in each if not np.any(np.isnan(values))]
    lacking = any(name in OF_THE_JOB and np.any(np.isnan(values)) for name, values in each)
    nothing = lacking or not known
    whole: Floats = np.full(len(each[0][1]), np.nan) if nothing else np.sum(known, axis=0)
    return whole


def _unknown(lines: Sequence[SimulatedLine], q: Quantity, ledger: str = "marginal") -> list[str]:
    return [one.line.id for one in _of(lines, ledger) if np.any(np.isnan(one.values[q.field]))]
