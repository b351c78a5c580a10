"""github-action-benchmark: an array for its tool `customSmallerIsBetter`, one entry a figure, for
charts that go from commit to commit.

The action joins the points of a chart by `name`. So a name says what was asked about, and has
neither the run's id, which changes with the inputs, nor a recording's name, which has its date;
both are in `extra`. It shows `range` as it stands. An entry without a value would break its chart:
what is unknown has no entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count
from typing import Any

from ckptcost.first.core.quantities import pick
from ckptcost.first.exports.formats import FORMATS, Files
from ckptcost.first.exports.texts import json_file, sources_of
from ckptcost.first.present.words import METHODS
from ckptcost.first.report.document import Report
from ckptcost.first.report.parts import Quantity
from ckptcost.first.report.statement import Statement

FIGURES = pick(*FORMATS["github-benchmark"].needs_one)


def export(document: Report) -> Files:
    entries: list[dict[str, Any]] = []
    taken: set[str] = set()
    for s in document.statements:
        called = "measured run" if s.kind == "measured" else s.subject.name
        name = next(
            each
            for each in chain([called], (f"{called} ({n})" for n in count(2)))
            if each not in taken
        )
        taken.add(name)
        entries += _entries(s, name, document.tool.version)
    return {"benchmark.json": json_file(entries, 1)}


def _entries(s: Statement, name: str, version: str) -> Iterator[dict[str, Any]]:
    saves = s.totals.checkpoints.value
    for what, label in ((q.id, q.label) for q in FIGURES):
        quantity: Quantity = getattr(s.totals, what)
        if quantity.value is None:
            continue
        extra = "\n".join(_extra(s, quantity, version))
        yield _entry(f"{name}: {label}", quantity, 1.0, quantity.unit, extra)
        if saves:
            yield _entry(
                f"{name}: {label} per checkpoint",
                quantity,
                saves,
                f"{quantity.unit}/checkpoint",
                extra,
            )


def _entry(name: str, quantity: Quantity, over: float, unit: str, extra: str) -> dict[str, Any]:
    low, high = (None if end is None else end / over for end in (quantity.low, quantity.high))
    entry: dict[str, Any] = {
        "name": name,
        "unit": unit,
        "value": (quantity.value or 0.0) / over,
        "extra": extra,
    }
    if low is not None:
        entry["range"] = f"{low!r} to {high!r}" if high is not None else f"at least {low!r}"
        entry["range"] += f" ({quantity.interval})" if quantity.interval else ""
    return entry


def _extra(s: Statement, quantity: Quantity, version: str) -> Iterator[str]:
    """Lines of the point's tooltip: there is room for the site's factors, and for the number of the
    others."""
    if s.simulated:
        yield "METERS WERE SIMULATED"
    yield (
        f"run {s.subject.run_id} ({s.subject.name}), {s.kind}, basis {quantity.basis}, method"
        f" {s.method_version}, ckptcost {version}"
    )
    yield (
        f"{s.boundary.inventory_treatment}: part of what the run's own bill and meter hold"
        " already, do not add it"
    )
    if s.period_start:
        yield f"period {s.period_start} to {s.period_end}"
    if s.subject.grid_zone and quantity.unit == "kgCO2e":
        yield f"grid zone {s.subject.grid_zone}, its factor of {METHODS[s.grid_method]}"
    if quantity.excludes:
        yield f"not in the sum, because unknown: {', '.join(quantity.excludes)}"
    rests = set(s.rests_of(quantity))
    shown = [f for f in s.factors if f.id in rests and f.id.startswith("site.")]
    for f in shown:
        yield f"{f.id} {f.text}: {sources_of(f)}"
    if others := len(rests) - len(shown):
        yield f"{others} more factors are in the statement"
