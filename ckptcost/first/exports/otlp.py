"""OTLP metrics as lines of JSON: counters that grow over the run, for an OpenTelemetry collector's
file receiver or its HTTP receiver.

Each line is one ExportMetricsServiceRequest, as the file receiver reads it and `POST /v1/metrics`
takes it; both have a limit, the former of 1 MiB a line (its max_log_size) unless told otherwise. A
long statement is several lines. Points are at the ends of rows: the sum since the run began; a row
of which nothing is known has none. Only the marginal ledger is here: receivers add up whatever they
get. A factor's source and a figure's range have no place in this format; they are in the statement.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import Any, Final, NamedTuple

import numpy as np

from ckptcost.first.core.quantities import Quantity, in_order
from ckptcost.first.exports import metric_names as names
from ckptcost.first.exports.formats import Files
from ckptcost.first.exports.history import RowsInTime, ms, rows_in_time
from ckptcost.first.report.document import Report
from ckptcost.first.report.statement import Statement

CUMULATIVE: Final = 2
"""AGGREGATION_TEMPORALITY_CUMULATIVE; OTLP's JSON has enumerations as numbers"""
POINTS_CHARACTERS: Final = 700_000
"""of a line's points at most; what stands around them is a third of it where every statement has
one row"""
BLOCK: Final = 500
"""points at a time"""


class OtlpMetric(NamedTuple):
    quantity: str
    """of the statement"""
    name: str
    unit: str
    what: str
    per_unit: float
    """base units in one of the statement's"""


_EMISSIONS = (
    "Emissions of that electricity, {}-based; {}-based are the same emissions said otherwise: never"
    " add them."
)
WHAT: Final = {
    "energy": "Electricity that checkpoints cost.",
    "gpu_time_lost": "GPU time that trained nothing.",
    "emissions_location": _EMISSIONS.format("location", "market"),
    "emissions_market": _EMISSIONS.format("market", "location"),
    "embodied": "Share of making the machines; in no other figure.",
    "cost": "Cost of checkpoints.",
    "water": "Water for cooling, on site.",
}
CALLED: Final = {
    "emissions_location": "emissions.location",
    "emissions_market": "emissions.market",
    "embodied": "emissions.embodied",
}
"""where a metric is not called as the quantity is"""
UNITS: Final = {"joules": "J", "seconds": "s", "grams": "g", "usd": "{USD}", "litres": "L"}
"""UCUM's words for Prometheus'"""


def _metric_of(q: Quantity) -> OtlpMetric:
    family, scale = names.QUANTITIES[q.id]
    what = WHAT.get(q.id, f"{q.label.capitalize()}.")
    return OtlpMetric(q.id, f"ckptcost.{CALLED.get(q.id, q.id)}", UNITS[family.unit], what, scale)


METRICS: Final = tuple(
    map(
        _metric_of,
        in_order("energy", "gpu_time_lost", "emissions_location", "emissions_market", "embodied"),
    )
)
CHECKPOINTS: Final = OtlpMetric(
    "checkpoints", "ckptcost.checkpoints", "{checkpoint}", f"Checkpoints saved. {names.MEAN}", 1.0
)

Points = Iterable[tuple[int, float]]
"""when, in ms since 1970, and how much since the run began, in base units"""


class PointBlock(NamedTuple):
    """Some points of one metric of one statement, as JSON."""

    statement: int
    metric: str
    points: list[str]


def export(document: Report) -> Files:
    return {"metrics.jsonl": _lines(document)}


def _lines(document: Report) -> Iterator[str]:
    blocks: list[PointBlock] = []
    characters = 0
    for block in chain.from_iterable(_blocks(n, s) for n, s in enumerate(document.statements)):
        length = sum(map(len, block.points))
        if blocks and characters + length > POINTS_CHARACTERS:
            yield _line(document, blocks)
            blocks, characters = [], 0
        blocks.append(block)
        characters += length
    if blocks:
        yield _line(document, blocks)


def _line(document: Report, blocks: Sequence[PointBlock]) -> str:
    scope = _compact({"name": "ckptcost", "version": document.tool.version})
    resources = []
    for at, of_statement in groupby(blocks, lambda block: block.statement):
        metrics = [
            _metric(name, list(some))
            for name, some in groupby(of_statement, lambda block: block.metric)
        ]
        resource = _compact({"attributes": _resource(document.statements[at], document)})
        resources.append(
            f'{{"resource":{resource},"scopeMetrics":'
            f'[{{"scope":{scope},"metrics":[{",".join(metrics)}]}}]}}'
        )
    return f'{{"resourceMetrics":[{",".join(resources)}]}}\n'


def _metric(name: str, blocks: Sequence[PointBlock]) -> str:
    metric = next(each for each in (*METRICS, CHECKPOINTS) if each.name == name)
    head = _compact({"name": name, "description": metric.what, "unit": metric.unit})[:-1]
    points = ",".join(chain.from_iterable(block.points for block in blocks))
    return (
        f'{head},"sum":{{"aggregationTemporality":{CUMULATIVE},"isMonotonic":true,'
        f'"dataPoints":[{points}]}}}}'
    )


def _blocks(at: int, statement: Statement) -> Iterator[PointBlock]:
    begin, end = ms(statement.period_start or ""), ms(statement.period_end or "")
    rows = rows_in_time(statement)
    for metric in METRICS:
        for component in statement.known(metric.quantity):
            if component.id in rows:
                points = _sum_points(rows[component.id], metric)
            else:  # nothing is dated there: known to be zero, or unknown
                points = _once(end, getattr(component, metric.quantity).value, metric.per_unit)
            about = {"component": component.id, "basis": component.basis}
            yield from _written(at, metric, about, begin, points)
    if rows and np.any(rows[""].amounts["checkpoints"]):
        points = dict(_sum_points(rows[""], CHECKPOINTS)).items()  # the last one of an instant
    else:
        points = _once(end, statement.totals.checkpoints.value, 1.0)
    yield from _written(at, CHECKPOINTS, {}, begin, points)


def _sum_points(rows: RowsInTime, metric: OtlpMetric) -> Points:
    amounts = rows.amounts[metric.quantity]
    known = ~np.isnan(amounts)
    sums = np.cumsum(amounts[known]) * metric.per_unit
    return zip(rows.end[known].tolist(), sums.tolist(), strict=True)


def _once(when: int, value: float | None, per_unit: float) -> Points:
    return [] if value is None else [(when, value * per_unit)]


def _written(
    at: int, metric: OtlpMetric, said: dict[str, str], begin: int, points: Points
) -> Iterator[PointBlock]:
    attributes = _compact(_attributes(said))
    head = f'{{"attributes":{attributes},"startTimeUnixNano":"{begin}000000","timeUnixNano":"'
    texts = (f'{head}{when}000000","asDouble":{value!r}}}' for when, value in points)
    while block := list(islice(texts, BLOCK)):
        yield PointBlock(at, metric.name, block)


def _resource(statement: Statement, document: Report) -> list[dict[str, Any]]:
    who = statement.subject
    said = {
        "run.id": who.run_id,
        "run.name": who.name,
        "schema": f"{document.schema_name}/{document.schema_version}",
        "method_version": statement.method_version,
        "inventory_treatment": statement.boundary.inventory_treatment,
        "simulated": statement.simulated,
        "kind": statement.kind,
        "grid_zone": who.grid_zone,
        "grid_method": statement.grid_method,
        "pue": statement.boundary.pue,
        "result_sha256": document.reproducibility.result_sha256,
    }
    return _attributes(
        {
            "service.name": document.tool.name,
            "service.version": document.tool.version,
            "service.instance.id": who.run_id,
            **{f"ckptcost.{key}": value for key, value in said.items()},
        }
    )


def _attributes(said: dict[str, Any]) -> list[dict[str, Any]]:
    """What is unknown is left out."""
    kinds = {bool: "boolValue", float: "doubleValue", str: "stringValue"}
    return [
        {"key": key, "value": {kinds[type(value)]: value}}
        for key, value in said.items()
        if value is not None
    ]


def _compact(value: Any) -> str:
    """ASCII, so that characters are bytes."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
