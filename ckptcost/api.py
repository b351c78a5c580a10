"""ckptcost from Python: the same answers as the command line, in three lines.

>>> import ckptcost
>>> report = ckptcost.model("gpt4-scale-2tb", tier=["nas-hdd", "generic-pfs"], saves=[100])
>>> [round(row.values["stall_s"]) for row in report.cases]
[10000, 1000]
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ckptcost.axes import over_of
from ckptcost.catalog.schema import saves_of
from ckptcost.catalog.store import Catalog
from ckptcost.errors import InputError
from ckptcost.jobs.model import Answer
from ckptcost.jobs.model import model as model_job
from ckptcost.jobs.sweep import Sweep
from ckptcost.jobs.sweep import sweep as sweep_job
from ckptcost.layers import DEFAULT_SCENARIO, Layer, layers_of, set_layer
from ckptcost.report.build import build

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


def answer(catalog: Catalog, layers: Sequence[Layer], tier: Any = (), saves: Any = (), against: str | None = None) -> Answer:
    """The domain's answer: what `model` puts into a report."""
    return model_job(catalog, layers, _many(tier), [saves_of(count, "--saves") for count in _many(saves)], against)


def files_of(layers: Sequence[Layer]) -> list[tuple[str, bytes]]:
    """The user's own files among the layers, for the report's list of inputs."""
    return [(layer.file, Path(layer.file).read_bytes()) for layer in layers if layer.file]


def model(
    scenario: str | os.PathLike[str] | None = None,
    *,
    tier: str | Sequence[str] = (),
    saves: float | Sequence[float] = (),
    interval: str | None = None,
    changes: Mapping[str, Any] | Sequence[str] = (),
    against: str | None = None,
    command: Sequence[str] = (),
    catalog: Catalog | None = None,
) -> Report:
    """The report of a scenario (preset or file), for each tier and number of saves; `changes` is like {"cluster.gpus": 4096}."""
    catalog = catalog or Catalog()
    layers = layers_for(catalog, scenario, interval, _settings(changes))
    report: Report = build(answer(catalog, layers, tier, saves, against), catalog, command, files_of(layers))
    return report


def sweep(
    over: Sequence[str],
    scenario: str | os.PathLike[str] | None = None,
    *,
    interval: str | None = None,
    changes: Mapping[str, Any] | Sequence[str] = (),
) -> Any:
    """A tidy pandas frame over the grid of axes such as "tier=a,b" and "saves=10:200:10"."""
    from ckptcost.report.frame import frame_of_pieces

    return frame_of_pieces(grid(over, scenario, interval, changes).pieces)


def grid(
    over: Sequence[str],
    scenario: str | os.PathLike[str] | None = None,
    interval: str | None = None,
    changes: Mapping[str, Any] | Sequence[str] = (),
) -> Sweep:
    """The sweep in chunks of arrays."""
    catalog = Catalog()
    overs = [over_of(text) for text in ([over] if isinstance(over, str) else over)]
    return sweep_job(catalog, layers_for(catalog, scenario, interval, _settings(changes)), overs)


def _settings(changes: Mapping[str, Any] | Sequence[str]) -> list[str]:
    return [f"{key}={value}" for key, value in changes.items()] if isinstance(changes, Mapping) else list(changes)


def load_report(path: str) -> Report:
    """A report from its JSON file."""
    from ckptcost.report.check import read

    return read(path)
