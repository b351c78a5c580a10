"""The scenarios that are measured, out of the catalogue that ships."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.domain import Scenario
from ckptcost.first.core.sweep import Axis
from ckptcost.first.layers import layers_for
from ckptcost.first.scenario import resolve

PRESET = "llama31-405b-16k"


def preset(name: str = PRESET) -> Scenario:
    """A preset, resolved."""
    catalog = Catalog()
    return resolve(catalog, layers_for(catalog, name, None, [])).scenario


def at_best(scenario: Scenario) -> Scenario:
    """Saving as often as loses least time."""
    return replace(scenario, policy=replace(scenario.policy, cadence="optimal", objective="time"))


def at_fixed(scenario: Scenario) -> Scenario:
    """Saving each half hour."""
    return replace(scenario, policy=replace(scenario.policy, cadence="interval", every=1800.0))


def grid(rows: int) -> list[Axis]:
    """Write rates times cluster sizes, a thousand of the latter."""
    return [
        Axis("tier.write_bytes_per_s", np.geomspace(1e9, 1e12, rows // 1000)),
        Axis("cluster.gpus", np.linspace(1024.0, 131_072.0, 1000)),
    ]
