"""Many plans at once: the axes of a grid laid as arrays over one scenario, a row a point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from ckptcost.plan import draws as d
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import SECTIONS, Array, World


def points(axes: Mapping[str, Array]) -> dict[str, Array]:
    """By path: its value at every point of the grid, the last axis running fastest."""
    return dict(zip(axes, map(np.ravel, np.meshgrid(*axes.values(), indexing="ij")), strict=True))


def laid(base: Scenario, at: Mapping[str, Array], draws: int = 0) -> World:
    """A row for each point; figures that are taken from one of an axis move with it."""
    rows, figures, w = len(next(iter(at.values()))), base.figures(), d.worlds([base], draws)
    found = {
        section.name: {
            key: np.broadcast_to(x, (rows, x.shape[1]))
            for key, x in vars(getattr(w, section.name)).items()
        }
        for section in fields(w)
    }
    for path, values in at.items():
        section, key = path.split(".")
        found[section][key] = values[:, None]
        for other in base.followers(path):
            section, key = other.split(".")
            found[section][key] = found[section][key] * (values[:, None] / figures[path].value)
    return World(**{name: SECTIONS[name](**section) for name, section in found.items()})
