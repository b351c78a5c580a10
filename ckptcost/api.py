"""ckptcost from Python: the same answers as the command line, in three lines.

>>> import ckptcost
>>> report = ckptcost.model("gpt4-scale-2tb", tier=["nas-hdd", "generic-pfs"], saves=[100])
>>> [round(row.values["stall_s"]) for row in report.cases]
[10000, 1000]
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ckptcost import jobs
from ckptcost.catalog.schema import saves_of
from ckptcost.catalog.store import Catalog
from ckptcost.errors import InputError
from ckptcost.report.build import build
from ckptcost.scenario import DEFAULT_SCENARIO, Layer, layers_of, set_layer

if TYPE_CHECKING:
    from ckptcost.report.document import Report


def _many(value: Any) -> list[Any]:
    if value is None:
        return []
    return [value] if isinstance(value, str | int | float) else list(value)


def layers_for(catalog: Catalog, scenario: str | os.PathLike[str] | None, interval: str | None, settings: Sequence[str]) -> list[Layer]:
    """The scenario and the flags over it."""
    if scenario is not None and not str(scenario):
        raise InputError("names no scenario", where="--scenario", remedy="give a file or a preset; `ckptcost catalog scenario` lists them")
    layers = layers_of(catalog, str(scenario) if scenario is not None else DEFAULT_SCENARIO)
    return [*layers, set_layer(catalog, settings, interval)] if settings or interval is not None else layers


def answer(
    catalog: Catalog,
    scenario: str | os.PathLike[str] | None,
    tier: Any,
    saves: Any,
    interval: str | None,
    settings: Mapping[str, Any] | Sequence[str],
    against: str | None,
) -> jobs.Answer:
    """The domain's answer: what `model` puts into a report."""
    flags = [f"{key}={value}" for key, value in settings.items()] if isinstance(settings, Mapping) else list(settings)
    layers = layers_for(catalog, scenario, interval, flags)
    return jobs.model(catalog, layers, _many(tier), [saves_of(count, "--saves") for count in _many(saves)], against)


def model(
    scenario: str | os.PathLike[str] | None = None,
    *,
    tier: str | Sequence[str] = (),
    saves: float | Sequence[float] = (),
    interval: str | None = None,
    changes: Mapping[str, Any] | Sequence[str] = (),
    against: str | None = None,
    command: Sequence[str] = (),
    files: Sequence[tuple[str, bytes]] = (),
    catalog: Catalog | None = None,
) -> Report:
    """The report of a scenario (preset or file), for each tier and number of saves; `changes` is like {"cluster.gpus": 4096}."""
    catalog = catalog or Catalog()
    report: Report = build(answer(catalog, scenario, tier, saves, interval, changes, against), catalog, command, files)
    return report


def sweep(
    over: Sequence[str],
    scenario: str | os.PathLike[str] | None = None,
    *,
    interval: str | None = None,
    changes: Sequence[str] = (),
    catalog: Catalog | None = None,
) -> Any:
    """A tidy pandas frame over the grid of axes such as "tier=a,b" and "saves=10:200:10"."""
    from ckptcost.report.frame import frame_of_pieces

    return frame_of_pieces(pieces(over, scenario, interval, list(changes), catalog or Catalog()))


def pieces(
    over: Sequence[str], scenario: str | os.PathLike[str] | None, interval: str | None, settings: Sequence[str], catalog: Catalog
) -> Iterator[jobs.Piece]:
    """The sweep in chunks."""
    overs = [jobs.over_of(text) for text in over]
    return jobs.sweep(catalog, layers_for(catalog, scenario, interval, settings), overs)


def load_report(path: str) -> Report:
    """A report from its JSON file."""
    from ckptcost.report.check import read

    return read(path)
