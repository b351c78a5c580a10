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
from itertools import accumulate, chain, groupby, islice
from typing import Any, Final, NamedTuple

from ckptcost.core.units import HOUR_S, KWH_J
from ckptcost.exports.formats import Files
from ckptcost.exports.metric_names import KG_G, MEAN
from ckptcost.report.document import Report
from ckptcost.report.parts import Tool
from ckptcost.report.statement import SERIES_OF, Series, Statement, utc

CUMULATIVE: Final = 2
"""AGGREGATION_TEMPORALITY_CUMULATIVE; OTLP's JSON has enumerations as numbers"""
POINTS_CHARACTERS: Final = 700_000
"""of a line's points at most; what stands around them is a third of it where every statement has
one row"""
BLOCK: Final = 500
"""points at a time"""


class Metric(NamedTuple):
    name: str
    unit: str
    what: str
    per_unit: float
    """base units in one of the statement's"""
    quantity: str
    """of a component"""


LOCATION: Final = (
    "Emissions of that electricity, location-based; market-based are the same emissions said"
    " otherwise: never add them."
)
MARKET: Final = (
    "Emissions of that electricity, market-based; location-based are the same emissions said"
    " otherwise: never add them."
)
METRICS: Final = (
    Metric("ckptcost.energy", "J", "Electricity that checkpoints cost.", KWH_J, "energy"),
    Metric(
        "ckptcost.gpu_time_lost",
        "s",
        "GPU time that trained nothing.",
        HOUR_S,
        "gpu_time_lost",
    ),
    Metric(
        "ckptcost.emissions.location",
        "g",
        LOCATION,
        KG_G,
        "emissions_location",
    ),
    Metric(
        "ckptcost.emissions.market",
        "g",
        MARKET,
        KG_G,
        "emissions_market",
    ),
    Metric(
        "ckptcost.emissions.embodied",
        "g",
        "Share of making the machines; in no other figure.",
        KG_G,
        "embodied",
    ),
    Metric("ckptcost.cost", "{USD}", "Cost of checkpoints.", 1.0, "cost"),
    Metric("ckptcost.water", "L", "Water for cooling, on site.", 1.0, "water"),
)
CHECKPOINTS: Final = Metric(
    "ckptcost.checkpoints",
    "{checkpoint}",
    f"Checkpoints saved. {MEAN}",
    1.0,
    "checkpoints",
)

Points = Iterable[tuple[int, float]]
"""when, in ns since 1970, and how much since the run began, in base units"""


class Block(NamedTuple):
    """Some points of one metric of one statement, as JSON."""

    statement: int
    metric: str
    points: list[str]


def export(document: Report) -> Files:
    return {"metrics.jsonl": _lines(document)}


def _lines(document: Report) -> Iterator[str]:
    blocks: list[Block] = []
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


def _line(document: Report, blocks: Sequence[Block]) -> str:
    scope = _compact({"name": "ckptcost", "version": document.tool.version})
    resources = []
    for at, of_statement in groupby(blocks, lambda block: block.statement):
        metrics = [
            _metric(name, list(some))
            for name, some in groupby(of_statement, lambda block: block.metric)
        ]
        resource = _compact({"attributes": _resource(document.statements[at], document)})
        resources.append(
            f'{{"resource":{resource},"scopeMetrics":[{{"scope":{scope},"metrics":[{",".join(metrics)}]}}]}}'
        )
    return f'{{"resourceMetrics":[{",".join(resources)}]}}\n'


def _metric(name: str, blocks: Sequence[Block]) -> str:
    metric = next(each for each in (*METRICS, CHECKPOINTS) if each.name == name)
    head = _compact({"name": name, "description": metric.what, "unit": metric.unit})[:-1]
    points = ",".join(chain.from_iterable(block.points for block in blocks))
    return f'{head},"sum":{{"aggregationTemporality":{CUMULATIVE},"isMonotonic":true,"dataPoints":[{points}]}}}}'


def _blocks(at: int, statement: Statement) -> Iterator[Block]:
    series = statement.series
    begin, end = _ns(statement.period_start or ""), _ns(statement.period_end or "")
    ends = [] if series is None else _ends(series)
    rows = {} if series is None else _rows(series, ends)
    for metric in METRICS:
        for component in statement.known(metric.quantity):
            if series is not None and component.id in rows:
                points = _summed(
                    ends,
                    getattr(series, SERIES_OF[metric.quantity]),
                    rows[component.id],
                    metric.per_unit,
                )
            else:  # nothing is dated there: known to be zero, or unknown
                points = _once(end, getattr(component, metric.quantity).value, metric.per_unit)
            yield from _written(
                at, metric, {"component": component.id, "basis": component.basis}, begin, points
            )
    if series is not None and any(series.checkpoints):
        points = _summed(ends, series.checkpoints, _in_time(ends), 1.0)
        points = (
            (when, list(some)[-1][1]) for when, some in groupby(points, lambda point: point[0])
        )
    else:
        points = _once(end, statement.totals.checkpoints.value, 1.0)
    yield from _written(at, CHECKPOINTS, {}, begin, points)


def _ends(series: Series) -> list[int]:
    starts = {text: _ns(text) for text in set(series.start)}
    return [
        starts[text] + round(length * 1000) * 1_000_000
        for text, length in zip(series.start, series.duration_s, strict=True)
    ]


def _rows(series: Series, ends: Sequence[int]) -> dict[str, list[int]]:
    """Of each component, in the order of time."""
    rows: dict[str, list[int]] = {}
    for n in _in_time(ends):
        rows.setdefault(series.component[n], []).append(n)
    return rows


def _in_time(ends: Sequence[int]) -> list[int]:
    return sorted(range(len(ends)), key=ends.__getitem__)


def _summed(
    ends: Sequence[int], values: Sequence[float | None], rows: Sequence[int], per_unit: float
) -> Points:
    known = [n for n in rows if values[n] is not None]
    sums = accumulate(values[n] or 0.0 for n in known)
    return ((ends[n], total * per_unit) for n, total in zip(known, sums, strict=True))


def _once(when: int, value: float | None, per_unit: float) -> Points:
    return [] if value is None else [(when, value * per_unit)]


def _written(
    at: int, metric: Metric, said: dict[str, str], begin: int, points: Points
) -> Iterator[Block]:
    attributes = _compact(_attributes(said))
    head = f'{{"attributes":{attributes},"startTimeUnixNano":"{begin}","timeUnixNano":"'
    texts = (f'{head}{when}","asDouble":{value!r}}}' for when, value in points)
    while block := list(islice(texts, BLOCK)):
        yield Block(at, metric.name, block)


def _resource(statement: Statement, document: Report) -> list[dict[str, Any]]:
    tool: Tool = document.tool
    return _attributes(
        {
            "service.name": tool.name,
            "service.version": tool.version,
            "service.instance.id": statement.subject.run_id,
            "ckptcost.run.id": statement.subject.run_id,
            "ckptcost.run.name": statement.subject.name,
            "ckptcost.schema": f"{document.schema_name}/{document.schema_version}",
            "ckptcost.method_version": statement.method_version,
            "ckptcost.inventory_treatment": statement.boundary.inventory_treatment,
            "ckptcost.simulated": statement.simulated,
            "ckptcost.kind": statement.kind,
            "ckptcost.grid_zone": statement.subject.grid_zone,
            "ckptcost.grid_method": statement.grid_method,
            "ckptcost.pue": statement.boundary.pue,
            "ckptcost.result_sha256": document.reproducibility.result_sha256,
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


def _ns(text: str) -> int:
    """
    >>> _ns("2026-10-01T00:30:00.250Z")
    1790814600250000000
    """
    return round(utc(text).timestamp() * 1000) * 1_000_000
