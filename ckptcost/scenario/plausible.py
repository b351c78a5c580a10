"""Inputs that look wrong: values far outside what the catalogue knows of their kind.

A figure is doubted if the user gave it and it lies outside the usual band, widened by a factor. The
bands come from measurements and publications in data/ and models/, never from the figure itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil, inf, isfinite, nan
from typing import Any, NamedTuple

from ckptcost.scenario import catalog
from ckptcost.scenario.figures import Figure
from ckptcost.scenario.resolve import Scenario, default_figure
from ckptcost.scenario.schema import SHARED_STORAGE
from ckptcost.scenario.units import number, parse, show


class Doubt(NamedTuple):
    """An input to be checked before anything is concluded from it."""

    path: str
    value: str
    """as it is shown"""
    usual: str
    """how it compares with what is usual, and who says so"""

    def say(self) -> str:
        """
        >>> Doubt("tier.write", "25 TB/s", "is 26 times the fastest system known (953 GB/s)").say()
        '25 TB/s is 26 times the fastest system known (953 GB/s): check tier.write.'
        """
        said = f"{self.value} {self.usual}: check {self.path}."
        return said[:1].upper() + said[1:]


class Band(NamedTuple):
    """What is usual: the least and the most that is known of a kind, what they are, and sources."""

    low: float
    high: float
    least: str
    most: str
    sources: tuple[str, str]


class Check(NamedTuple):
    paths: tuple[str, ...]
    """doubted if the user gave one of these; the first that they gave is named"""
    value: Callable[[Scenario], float]
    band: Callable[[Scenario], Band]
    factor: float
    """by how much the band is widened on both sides"""
    unit: str
    value_is: str = "{}"
    """what the value is, if it needs words"""


def doubts(scenario: Scenario) -> list[Doubt]:
    """What to check, the farthest outside first."""
    figures = scenario.figures()
    users = {path for path, f in figures.items() if f.basis == "user" and not f.follows}
    found = []
    for check in CHECKS:
        given = [path for path in check.paths if path in users]
        value = check.value(scenario) if given else nan
        if not isfinite(value) or value <= 0:
            continue
        band = check.band(scenario)
        over, under = value / band.high, band.low / value
        if max(over, under) > check.factor:
            found.append((max(over, under), _doubt(given[0], value, check, band)))
    return [doubt for _, doubt in sorted(found, key=lambda each: -each[0])]


def _doubt(path: str, value: float, check: Check, band: Band) -> Doubt:
    high = value > band.high
    end, what, source = (
        (band.high, band.most, band.sources[1]) if high else (band.low, band.least, band.sources[0])
    )
    ratio = value / end if high else end / value
    times = f"is {number(ratio, 2)} times {what}" if high else f"is {_fraction(ratio)} of {what}"
    shown, by = check.value_is.format(show(value, check.unit)), catalog.source_title(source)
    return Doubt(path, shown, f"{times} ({show(end, check.unit)}{', ' if by else ''}{by})")


def _fraction(ratio: float) -> str:
    """
    >>> _fraction(36.2), _fraction(18.0), _fraction(8471.0)
    ('a 36th', 'an 18th', 'an 8,500th')
    """
    text = number(round(ratio), 2)
    ending = {"1": "st", "2": "nd", "3": "rd"}.get(text[-1], "th")
    ending = "th" if text[-2:] in ("11", "12", "13") else ending
    return f"{'an' if text.startswith('8') or text in ('11', '18') else 'a'} {text}{ending}"


# --- values -------------------------------------------------------------------------------------


def figure(path: str) -> Callable[[Scenario], float]:
    """Reads one figure; NaN if it is not there."""

    def value(scenario: Scenario) -> float:
        section, key = path.split(".")
        found = scenario.said[section].get(key)
        return found.value if isinstance(found, Figure) else nan

    return value


def _gpus(scenario: Scenario) -> float:
    return figure("cluster.gpus")(scenario)


def _nodes(scenario: Scenario) -> float:
    per_node = figure("cluster.gpus_per_node")(scenario)
    return float(ceil(_gpus(scenario) / per_node)) if per_node > 0 else nan


def _size(scenario: Scenario) -> float:
    """Bytes of a full checkpoint."""
    size, params = figure("checkpoint.size")(scenario), figure("checkpoint.params")(scenario)
    return size if isfinite(size) else params * figure("checkpoint.bytes_per_param")(scenario)


def _total_write(scenario: Scenario) -> float:
    """Write rate of a whole shared system; NaN for a tier inside the nodes."""
    tier = scenario.said["tier"]
    if tier.get("boundary", "storage-system") not in SHARED_STORAGE:
        return nan
    if "save_time" in tier:
        return figure("tier.timed_size")(scenario) / figure("tier.save_time")(scenario)
    if "write" in tier:
        return figure("tier.write")(scenario)
    nodes = _nodes(scenario) * figure("tier.node_write")(scenario)
    sized = figure("tier.write_per_capacity")(scenario) * figure("tier.capacity")(scenario)
    return min((rate for rate in (nodes, sized) if isfinite(rate)), default=nan)


def _bytes_by_param(scenario: Scenario) -> float:
    return _size(scenario) / figure("checkpoint.params")(scenario)


def _snapshot_rate(scenario: Scenario) -> float:
    """Bytes that one GPU copies to host memory in a second."""
    seconds = figure("policy.snapshot")(scenario)
    if seconds > 0:
        return _size(scenario) / _gpus(scenario) / seconds
    return figure("policy.snapshot_rate")(scenario)


def _mtbf(scenario: Scenario) -> float:
    """Mean time between failures, from whatever says it."""
    given = figure("failures.mtbf")(scenario)
    return given if isfinite(given) else 1 / rate if (rate := _failure_rate(scenario, {})) else inf


def _failure_rate(scenario: Scenario, over: dict[str, float]) -> float:
    """Failures a second of a job of this size; some figures may be replaced."""

    def f(key: str, default: float) -> float:
        found = over.get(key, figure(f"failures.{key}")(scenario))
        return found if isfinite(found) else default

    gpus, nodes = _gpus(scenario), _nodes(scenario)
    smaller = max(1.0, f("counted_gpus", gpus) / gpus) ** (1.0 - f("size_exponent", 1.0))
    own = gpus * f("gpu_rate", 0.0) + nodes * f("rate", 0.0)
    racks = ceil(nodes / f("nodes_per_rack", 4.0)) * f("rack_rate", 0.0)
    return f("rate_factor", 1.0) * smaller * own + f("shared_rate", 0.0) + racks


# --- bands --------------------------------------------------------------------------------------


def of_values(values: Iterable[tuple[float, str]], least: str, most: str) -> Band:
    """From the lowest to the highest of some values with their sources."""
    ordered = sorted(values)
    low, high = ordered[0], ordered[-1]
    return Band(low[0], high[0], least, most, (low[1], high[1]))


def _column(file: str, column: str, unit: float = 1.0, **where: str) -> list[tuple[float, str]]:
    """Numbers of a CSV file of the catalogue, with their sources."""
    return [
        (float(row[column]) * unit, row["source"])
        for row in catalog.rows(file)
        if row[column] and all(row[key] == value for key, value in where.items())
    ]


def _of_entries(kind: str, key: str, over: float = 1.0) -> list[tuple[float, str]]:
    """A figure's values in all entries of a kind that measured or published it."""
    found = []
    for name in catalog.ids(kind):
        value = catalog.get(kind, name).said.get(key)
        if isinstance(value, Figure) and value.basis in ("measured", "published", "derived"):
            found.append((value.value * over, value.source))
    return found


def _systems(_: Scenario) -> Band:
    measured = _column("mlperf_checkpoint.csv", "save_gb_s", 1e9, basis="measured")
    small = _column("storage_power.csv", "write_gb_s", 1e9, fit="yes")
    return of_values(
        [*measured, *small],
        "the slowest storage system in the catalogue",
        "the fastest storage system in the catalogue",
    )


def _clients(_: Scenario) -> Band:
    rows = [row for row in catalog.rows("mlperf_checkpoint.csv") if row["client_hosts"]]
    measured = [
        (float(row["save_gb_s"]) / float(row["client_hosts"]) * 1e9, row["source"]) for row in rows
    ]
    local = _of_entries("tier", "node_write")
    return of_values([*measured, *local], "the slowest node measured", "the fastest node measured")


def _failures(scenario: Scenario) -> Band:
    """What published jobs of this size scatter about the law that was fitted to them."""
    law = ("rate", "gpu_rate", "counted_gpus", "size_exponent")
    usual = {key: default_figure("failures", key).value for key in law}
    factor = default_figure("failures", "rate_factor")
    every = 1.0 / _failure_rate(scenario, usual | {"rate_factor": 1.0, "rack_rate": 0.0})
    words = "what published jobs of this size have"
    sources = factor.source.split("; ")
    return Band(every / factor.high, every / factor.low, words, words, (sources[0], sources[0]))


def _prices(scenario: Scenario) -> Band:
    accelerator = _accelerator(scenario)
    own = _column("gpu_prices.csv", "usd_per_gpu_h", 1 / 3600, id=accelerator)
    rows = own or _column("gpu_prices.csv", "usd_per_gpu_h", 1 / 3600)
    of = "for this GPU" if own else "in the catalogue"
    return of_values(rows, f"the lowest price {of}", f"the highest price {of}")


def _accelerator(scenario: Scenario) -> str:
    cluster = scenario.said["cluster"]
    name = cluster.get("accelerator")
    if not name and cluster.get("id"):
        name = catalog.get("cluster", str(cluster["id"])).said.get("accelerator")
    return str(name or "")


def _ratings(scenario: Scenario) -> Band:
    accelerator = _accelerator(scenario)
    rows = [row for row in catalog.rows("accelerator_figures.csv") if row["key"] == "tdp"]
    own = [row for row in rows if row["id"] == accelerator]
    values = [(parse(row["value"], "700 W"), row["source"]) for row in own or rows]
    least = "the rated power of this GPU" if own else "the least rated power in the catalogue"
    most = "the rated power of this GPU" if own else "the highest rated power in the catalogue"
    return of_values(values, least, most)


def _memory(scenario: Scenario) -> Band:
    """All GPU memory of the job: a checkpoint is not larger."""
    accelerator = _accelerator(scenario)
    rows = [row for row in catalog.rows("accelerator_figures.csv") if row["id"] == accelerator]
    memory = [row for row in rows if row["key"] == "memory"]
    if not memory:
        return Band(0.0, inf, "", "", ("house", "house"))
    each, source = parse(memory[0]["value"], "80 GB"), memory[0]["source"]
    words = "the memory of all GPUs of this job"
    return Band(0.0, each * _gpus(scenario), words, words, (source, source))


def _reported(key: str, what: str) -> Callable[[Scenario], Band]:
    """What is reported of asynchronous saves (data/async_measured.csv)."""

    def band(_: Scenario) -> Band:
        rows = [row for row in catalog.rows("async_measured.csv") if row["key"] == key]
        example = "5 s" if key == "tier.setup" else "3 GB/s"
        values = [(parse(row["value"], example), row["source"].split(";")[0]) for row in rows]
        return of_values(values, f"the least {what} reported", f"the highest {what} reported")

    return band


def _save_time(scenario: Scenario) -> Band:
    """One save at the write rate alone: nobody can save more often."""
    seconds = _size(scenario) / _total_write(scenario)
    words = "the time that one save takes"
    return Band(seconds if isfinite(seconds) else 0.0, inf, words, words, ("", ""))


def _known_capacity(scenario: Scenario) -> Band:
    known = scenario.said["tier"].get("known_capacity")
    if not isinstance(known, Figure):
        return Band(0.0, inf, "", "", ("house", "house"))
    words = "the capacity for which this storage's rate is known"
    return Band(0.0, known.value, words, words, (known.source, known.source))


def band_of(values: Callable[[], list[tuple[float, str]]], low: str, high: str) -> Any:
    return lambda _: of_values(values(), low, high)


def fixed(low: float, high: float, what: str, source: str) -> Callable[[Scenario], Band]:
    return lambda _: Band(low, high, what, what, (source, source))


SIZE = ("checkpoint.size", "checkpoint.params", "checkpoint.bytes_per_param")
RATE = ("tier.write", "tier.save_time", "tier.node_write", "tier.write_per_capacity")
FAILURE = ("mtbf", "rate_factor", "gpu_rate", "rate", "shared_rate", "rack_rate")
CHECKS = (
    Check(
        (*RATE, "tier.capacity", "cluster.gpus"), _total_write, _systems, 5, "B/s", "writing at {}"
    ),
    Check(("tier.node_write",), figure("tier.node_write"), _clients, 5, "B/s"),
    Check(("tier.capacity",), figure("tier.capacity"), _known_capacity, 1, "B"),
    Check(
        tuple(f"failures.{key}" for key in FAILURE), _mtbf, _failures, 3, "s", "a failure every {}"
    ),
    Check(("cluster.gpu_price",), figure("cluster.gpu_price"), _prices, 3, "USD/GPU-h"),
    Check(("cluster.gpu_train",), figure("cluster.gpu_train"), _ratings, 2, "W"),
    Check(("cluster.gpu_tdp",), figure("cluster.gpu_tdp"), _ratings, 2, "W"),
    Check((*SIZE, "cluster.gpus"), _size, _memory, 1.5, "B", "a checkpoint of {}"),
    Check(
        SIZE,
        _bytes_by_param,
        band_of(
            lambda: _column("checkpoint_sizes.csv", "bytes_per_param"),
            "the smallest published checkpoint",
            "the largest published checkpoint",
        ),
        2,
        "B",
        "{} a parameter",
    ),
    Check(
        ("policy.snapshot", "policy.snapshot_rate"),
        _snapshot_rate,
        _reported("policy.snapshot_rate", "rate of copying from a GPU"),
        3,
        "B/s",
        "copying from each GPU at {}",
    ),
    Check(("tier.setup",), figure("tier.setup"), _reported("tier.setup", "setup time"), 10, "s"),
    Check(
        ("policy.interval",),
        figure("policy.interval"),
        fixed(300, 10800, "the usual interval for models of any size", "ddn-2025-07"),
        20,
        "s",
    ),
    Check(("policy.interval",), figure("policy.interval"), _save_time, 2, "s", "saving every {}"),
    Check(
        ("cluster.gpus_per_node",),
        figure("cluster.gpus_per_node"),
        band_of(
            lambda: _of_entries("cluster", "gpus_per_node"),
            "the smallest node in the catalogue",
            "the largest node in the catalogue",
        ),
        4,
        "",
    ),
    Check(
        ("cluster.gpus",),
        _gpus,
        band_of(
            lambda: [*_column("failure_rates.csv", "gpus"), (1.0, "house")],
            "one GPU",
            "the largest job in the catalogue",
        ),
        10,
        "",
    ),
    Check(
        ("site.pue",),
        figure("site.pue"),
        band_of(
            lambda: _column("pue.csv", "pue"),
            "the best PUE in the catalogue",
            "the industry's average PUE",
        ),
        1.4,
        "",
    ),
    Check(
        ("site.tariff",),
        figure("site.tariff"),
        band_of(
            lambda: _column("tariffs.csv", "price_per_kwh", 1 / 3.6e6),
            "the lowest price of electricity in the catalogue",
            "the highest price of electricity in the catalogue",
        ),
        3,
        "USD/kWh",
    ),
    Check(
        ("site.grid_location", "site.grid_market"),
        figure("site.grid_location"),
        band_of(
            lambda: _column("grids.csv", "gco2e_per_kwh", 1e-3 / 3.6e6),
            "the cleanest grid in the catalogue",
            "the dirtiest grid in the catalogue",
        ),
        2,
        "g/kWh",
    ),
    Check(
        ("tier.storage_price",),
        figure("tier.storage_price"),
        band_of(
            lambda: _of_entries("tier", "storage_price"),
            "the cheapest storage in the catalogue",
            "the most expensive storage in the catalogue",
        ),
        5,
        "USD/GB-month",
    ),
    Check(
        ("run.work",),
        figure("run.work"),
        band_of(
            lambda: [(3600.0, "house"), (118 * 86400.0, "bigscience-logbook")],
            "an hour",
            "the longest run in the catalogue",
        ),
        5,
        "s",
    ),
)
"""what decides a result, each with what is usual for it"""
