"""Prometheus text, version 0.0.4, for node_exporter's textfile collector: what each run has cost,
without timestamps.

With timestamps node_exporter refuses the whole file, so history is in `openmetrics`, which writes
the same samples over time. To keep a half-written file from being scraped, write elsewhere on the
same disk and rename it to `*.prom`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Literal, NamedTuple

from ckptcost.first.errors import InputError
from ckptcost.first.exports import metric_names as names
from ckptcost.first.exports.formats import Files
from ckptcost.first.exports.metric_names import Family
from ckptcost.first.report.document import Report
from ckptcost.first.report.parts import Quantity
from ckptcost.first.report.statement import Statement, utc

WHAT_IT_WAS = (
    *("organisation", "team", "checkpoint", "tier", "cluster", "accelerator"),
    *("site", "grid", "grid_zone"),
)
"""labels that are fields of the statement's subject"""


class StatementSample(NamedTuple):
    family: Family
    labels: str
    value: float
    run: Statement | None
    """null: of the whole document"""
    component: str = ""
    """whose rows of the series lead to this value; empty: all components' together"""
    what: str = ""
    """and of which quantity; empty: of none"""


def export(document: Report) -> Files:
    samples = chain.from_iterable(by_family(document).values())
    return {"ckptcost.prom": names.text(samples, "prometheus")}


def by_family(document: Report) -> dict[Family, list[StatementSample]]:
    """All that is known, each family's samples together. Two of one name and labels would make
    readers refuse the file."""
    families: dict[Family, list[StatementSample]] = {}
    seen: set[tuple[str, str]] = set()
    for each in _samples(document):
        key = each.family.sample, each.labels
        if key in seen:
            raise InputError(
                f"twice the same series {each.family.sample}{each.labels}",
                where="statement",
                remedy="give each run an id of its own",
            )
        seen.add(key)
        families.setdefault(each.family, []).append(each)
    return families


def _samples(document: Report) -> Iterator[StatementSample]:
    about = {
        "version": document.tool.version,
        "schema": f"{document.schema_name} {document.schema_version}",
        "result_sha256": document.reproducibility.result_sha256,
    }
    yield StatementSample(names.BUILD, names.labels(about), 1.0, None)
    for run in document.statements:
        who = {"run": run.subject.name, "run_id": run.subject.run_id}
        yield from _of_run(run, who)
        yield from _of_components(run, who)
        yield from _factors(run, who)


def _of_run(run: Statement, who: dict[str, str]) -> Iterator[StatementSample]:
    subject, mine = run.subject, names.labels(who)
    words = {
        "kind": run.kind,
        "simulated": str(run.simulated).lower(),
        "how": run.how,
        "method_version": run.method_version,
        "inventory_treatment": run.boundary.inventory_treatment,
        "uncertainty": run.uncertainty,
        **{name: getattr(subject, name) for name in WHAT_IT_WAS},
        "grid_method": run.grid_method,
        "cloud_provider": subject.cloud_provider,
        "cloud_region": subject.cloud_region,
    }
    yield StatementSample(names.STATEMENT, names.labels({**who, **words}), 1.0, run)
    begin, end = (
        None if each is None else utc(each).timestamp()
        for each in (run.period_start, run.period_end)
    )
    gauges = (
        (names.RUN_START, begin),
        (names.RUN_END, end),
        (names.RUN_LENGTH, run.length_s),
        (names.ACCELERATORS, subject.accelerator_count),
    )
    yield from (
        StatementSample(family, mine, value, run) for family, value in gauges if value is not None
    )
    saves = run.totals.checkpoints
    if saves.value is not None:
        text = names.labels({**who, "basis": saves.basis})
        yield StatementSample(names.CHECKPOINTS, text, saves.value, run, what="checkpoints")
    for what, (family, scale) in names.QUANTITIES.items():
        yield from _ends(run, family, getattr(run.totals, what), scale, who)


def _of_components(run: Statement, who: dict[str, str]) -> Iterator[StatementSample]:
    """The marginal ledger's components in the families that may be summed, the others in families
    of their own."""
    for component in run.components:
        marginal = component.ledger == "marginal"
        whose = {**who, "component": component.id}
        for what, (family, scale) in names.QUANTITIES.items():
            quantity = getattr(component, what)
            if quantity.value is None or (marginal and not run.known(what)):
                if marginal and quantity.value is None:
                    yield StatementSample(
                        names.UNKNOWN, names.labels({**whose, "quantity": what}), 1.0, run
                    )
                continue
            text = names.labels({**whose, "basis": quantity.basis})
            if marginal:
                yield StatementSample(family, text, quantity.value * scale, run, component.id, what)
                yield from _ends(run, family, quantity, scale, whose)
            else:
                yield StatementSample(names.standing(family), text, quantity.value * scale, run)


def _ends(
    run: Statement,
    family: Family,
    quantity: Quantity,
    scale: float,
    whose: dict[str, str],
) -> Iterator[StatementSample]:
    text = names.labels({**whose, "interval": quantity.interval})
    of: Literal["component", "run"] = "component" if "component" in whose else "run"
    if quantity.low is not None:
        yield StatementSample(names.bound(family, "low", of), text, quantity.low * scale, run)
    if quantity.high is not None:
        yield StatementSample(names.bound(family, "high", of), text, quantity.high * scale, run)


def _factors(run: Statement, who: dict[str, str]) -> Iterator[StatementSample]:
    for factor in run.factors:
        words = {
            "factor": factor.id,
            "unit": factor.unit,
            "text": factor.text,
            "origin": factor.origin,
            "set_by": factor.set_by,
            "source": "; ".join(each.title for each in factor.sources),
            "licence": "; ".join(each.licence for each in factor.sources if each.licence),
        }
        if factor.value is not None:
            yield StatementSample(names.FACTOR, names.labels({**who, **words}), factor.value, run)
