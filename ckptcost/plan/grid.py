"""Many plans at once: the axes of a grid laid as arrays over one scenario, a row a point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np

from ckptcost.plan import draws as d
from ckptcost.plan import evaluate as ev
from ckptcost.plan import physics as ph
from ckptcost.scenario.resolve import Scenario
from ckptcost.scenario.schema import Array, World

CHUNK = 8192
"""points that are evaluated together: more would only take more memory"""


class Axis(NamedTuple):
    """A figure and its values, in SI."""

    path: str
    values: Array


def points(axes: Sequence[Axis]) -> dict[str, Array]:
    """By path: its value at every point of the grid, the last axis running fastest."""
    grids = np.meshgrid(*(axis.values for axis in axes), indexing="ij")
    return {axis.path: grid.ravel() for axis, grid in zip(axes, grids, strict=True)}


def laid(base: Scenario, at: Mapping[str, Array], draws: int = 0) -> World:
    """A row for each point; figures that are taken from one of an axis move with it."""
    rows = len(next(iter(at.values())))
    figures = base.figures()
    w = d.worlds([base], draws)
    found = {
        section.name: replace(
            getattr(w, section.name),
            **{
                key: np.broadcast_to(x, (rows, x.shape[1]))
                for key, x in vars(getattr(w, section.name)).items()
            },
        )
        for section in fields(w)
    }
    for path, values in at.items():
        column = values[:, None]
        _put(found, path, column)
        first = figures[path].value if path in figures else np.nan
        for other in _followers(base, path):
            section, key = other.split(".")
            _put(found, other, getattr(found[section], key) * (column / first))
    return World(**found)


def _put(sections: dict[str, object], path: str, column: Array) -> None:
    section, key = path.split(".")
    sections[section] = replace(sections[section], **{key: column})  # type: ignore[type-var]


def _followers(base: Scenario, path: str) -> list[str]:
    """Figures that are taken from this one, or from one that is."""
    direct = [other for other, figure in base.figures().items() if path in figure.follows]
    further = (other for each in direct for other in _followers(base, each))
    return [*dict.fromkeys((*direct, *further))]


def outcomes(
    base: Scenario, at: Mapping[str, Array], draws: int = 0
) -> Sequence[tuple[World, ev.Outcome]]:
    """Of all points, some thousand at a time."""
    rows = len(next(iter(at.values())))
    found = []
    for start in range(0, rows, CHUNK):
        part = {path: values[start : start + CHUNK] for path, values in at.items()}
        w = laid(base, part, draws)
        with np.errstate(all="ignore"):
            plan = ph.plan(w)
            asked = ev.asked_interval(w, plan)[:, :1]
            found.append((w, ev.at(w, plan, np.broadcast_to(asked, (len(w.cluster.gpus), 1)))))
    return found
