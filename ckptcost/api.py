"""ckptcost from Python: the same answers as the command line, in three lines.

>>> import ckptcost
>>> report = ckptcost.model("gpt4-scale-2tb", tier=["nas-hdd", "generic-pfs"], saves=[100])
>>> [round(row.values["stall_s"]) for row in report.cases]
[10000, 1000]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ckptcost import jobs
from ckptcost.catalog.store import Catalog
from ckptcost.report.build import build
from ckptcost.report.document import Report
from ckptcost.scenario import DEFAULT_SCENARIO, Layer, layers_of, set_layer


def _many(value: Any) -> list[Any]:
    if value is None:
        return []
    return [value] if isinstance(value, str | int | float) else list(value)


def layers_for(catalog: Catalog, scenario: str | None, interval: str | None, settings: Sequence[str]) -> list[Layer]:
    """The scenario and the flags over it."""
    layers = layers_of(catalog, scenario or DEFAULT_SCENARIO)
    flags = [*settings, *([f"policy.interval={interval}"] if interval else [])]
    return [*layers, set_layer(catalog, flags)] if flags else layers


def model(
    scenario: str | None = None, *, tier: str | Sequence[str] = (), saves: float | Sequence[float] = (), interval: str | None = None,
    set: Mapping[str, Any] | Sequence[str] = (), against: str | None = None, command: Sequence[str] = (), files: Sequence[tuple[str, bytes]] = (), catalog: Catalog | None = None,
) -> Report:  # fmt: skip  # noqa: A002
    """The report of a scenario (preset name or file), for each tier and number of saves; `set` overrides, e.g. {"cluster.gpus": 4096}."""
    catalog = catalog or Catalog()
    settings = [f"{key}={value}" for key, value in set.items()] if isinstance(set, Mapping) else list(set)
    layers = layers_for(catalog, scenario, interval, settings)
    answer = jobs.model(catalog, layers, _many(tier), [float(count) for count in _many(saves)], against)
    return build(answer, catalog, command, files)


def sweep(over: Sequence[str], scenario: str | None = None, *, interval: str | None = None, set: Sequence[str] = (), catalog: Catalog | None = None) -> Any:  # noqa: A002
    """A tidy pandas frame over the grid of axes such as "tier=a,b" and "saves=10:200:10"."""
    from ckptcost.report.frame import frame_of_pieces

    return frame_of_pieces(pieces(over, scenario, interval, list(set), catalog or Catalog()))


def pieces(over: Sequence[str], scenario: str | None, interval: str | None, settings: Sequence[str], catalog: Catalog) -> Iterator[jobs.Piece]:
    """The sweep in chunks."""
    overs = [jobs.over_of(text) for text in over]
    return jobs.sweep(catalog, layers_for(catalog, scenario, interval, settings), overs)


def load_report(path: str) -> Report:
    """A report from its JSON file."""
    from ckptcost.report.check import read

    return read(path)
