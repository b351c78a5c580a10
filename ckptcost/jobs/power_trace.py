"""Power of a recorded run over time, as means of short stretches."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np
from numpy.typing import NDArray

from ckptcost.core import depth
from ckptcost.jobs.checkup import still
from ckptcost.jobs.energies import MOST_W
from ckptcost.jobs.measured import Measured

Floats = NDArray[np.float64]
LEAST_S = 0.2
TICKS = 2.0
"""a stretch holds so many renewals of its source, lest a counter's steps look like power"""


def of_kinds(seen: Measured, kinds: Sequence[str], among: Sequence[str]) -> list[str]:
    """The domains of some kinds; none where one of them never moves, because that is not nothing."""
    domains = [domain for domain in among if domain.split(":", 1)[0] in kinds]
    return [] if {channel.domain for channel in still(seen.energies)} & set(domains) else domains


def tick_of(seen: Measured, domains: Sequence[str]) -> float:
    return max((seen.energies.tick_s(domain) or 0.0 for domain in domains), default=0.0)


def edges_of(seen: Measured, tick_s: float, points: int) -> Floats:
    """Where the stretches begin and end."""
    length_s = max(seen.end_s - seen.begin_s, LEAST_S)
    stretches = max(int(length_s / max(length_s / points, LEAST_S, TICKS * tick_s)), 1)
    return np.linspace(seen.begin_s, seen.begin_s + length_s, stretches + 1)


def watts_of(seen: Measured, domains: Sequence[str], edges: Floats) -> Floats:
    """The sum of some domains; unknown where one of them is."""
    watts: Floats = np.sum([_watts(seen, domain, edges) for domain in domains], axis=0)
    return watts


def _watts(seen: Measured, domain: str, edges: Floats) -> Floats:
    """Mean power between the edges: what a counter counted, or the mean of what a gauge said."""
    place = seen.energies.sources[domain].place
    channel, readings = seen.energies.channels[place], seen.energies.series(place)
    if channel.is_counter:
        return rates_of(depth.growth(readings, channel.wraps_at, MOST_W), edges)
    known = np.isfinite(readings.value)
    stretch = np.searchsorted(edges, readings.t_s[known], side="right") - 1
    inside = (stretch >= 0) & (stretch < len(edges) - 1)
    sums = np.bincount(stretch[inside], readings.value[known][inside], len(edges) - 1)
    counts = np.bincount(stretch[inside], minlength=len(edges) - 1)
    with np.errstate(invalid="ignore"):
        means: Floats = sums / counts
    return means


def rates_of(grown: depth.Growth, edges: Floats) -> Floats:
    """Growth over the time in which it is known; NaN where it never is, and before and after the readings."""
    more, known_s = grown.over(edges[:-1], edges[1:])
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = np.where(known_s > 0, more / known_s, nan)
    return found
