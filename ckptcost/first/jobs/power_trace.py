"""Power of a recorded run over time, as means of short stretches with a range each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core import depth, power_bins
from ckptcost.first.core.counters import Counter
from ckptcost.first.core.power_bins import PowerBins
from ckptcost.first.jobs.checkup import still
from ckptcost.first.jobs.measured import Measured

Floats = NDArray[np.float64]
LEAST_S = 0.2
NEAR_S = 30.0
"""around a short time: more than the ticks of any counter"""


def of_kinds(seen: Measured, kinds: Sequence[str], among: Sequence[str]) -> list[str]:
    """The domains of some kinds; none where one of them never moves, because that is not
    nothing."""
    domains = [domain for domain in among if domain.split(":", 1)[0] in kinds]
    return [] if {channel.domain for channel in still(seen.energies)} & set(domains) else domains


def tick_of(seen: Measured, domains: Sequence[str]) -> float:
    return max((seen.energies.tick_s(domain) or 0.0 for domain in domains), default=0.0)


def edges_of(seen: Measured, tick_s: float, points: int) -> Floats:
    """Where stretches of one length begin and end."""
    length_s = max(seen.end_s - seen.begin_s, LEAST_S)
    stretches = max(int(length_s / _least_s(length_s, tick_s, points)), 1)
    return np.linspace(seen.begin_s, seen.begin_s + length_s, stretches + 1)


def _least_s(length_s: float, tick_s: float, points: int) -> float:
    return max(length_s / points, LEAST_S, power_bins.TICKS * tick_s)


def trace_power(
    seen: Measured, groups: Mapping[str, Sequence[str]], points: int
) -> tuple[Floats, dict[str, PowerBins]]:
    """The edges of at most so many stretches, none of them shorter than the ticks of every counter
    can tell; and in each stretch the power of some groups of domains."""
    domains = [domain for group in groups.values() for domain in group]
    length_s = max(seen.end_s - seen.begin_s, LEAST_S)
    least_s = _least_s(length_s, tick_of(seen, domains), points)
    pieces = _Pieces(seen, least_s)
    edges = power_bins.edges_of(
        map(pieces.of, domains), seen.begin_s, seen.begin_s + length_s, least_s
    )
    return edges, {name: _together(group, edges, pieces) for name, group in groups.items()}


def watts_of(seen: Measured, domains: Sequence[str], edges: Floats) -> PowerBins:
    """The sum of some domains; unknown where one of them is."""
    return _together(domains, edges, _Pieces(seen, float(np.diff(edges).min())))


class _Pieces:
    """The ticks of counters; of a long run they are found again when they are asked for again."""

    def __init__(self, seen: Measured, shortest_s: float) -> None:
        self.seen, self.shortest_s = seen, shortest_s
        self._kept: dict[str, list[power_bins.BinPiece]] = {}

    def of(self, domain: str) -> list[power_bins.BinPiece]:
        """Of a gauge none."""
        if domain in self._kept:
            return self._kept[domain]
        counter = self.seen.energies.counter(domain)
        if counter is not None:
            counter = _near(counter, self.seen.begin_s, self.seen.end_s)
        found = [] if counter is None else power_bins.pieces(counter, self.shortest_s)
        if not self.seen.energies.node.is_long:
            self._kept[domain] = found
        return found


def _near(counter: Counter, begin_s: float, end_s: float) -> Counter:
    """The readings around a short time, where a long one has many more."""
    first, last = np.searchsorted(counter.t_s, (begin_s - NEAR_S, end_s + NEAR_S)).tolist()
    if last - first > len(counter.t_s) / 2:
        return counter
    here = slice(first, last)
    return replace(
        counter,
        t_s=counter.t_s[here],
        took_s=counter.took_s[here],
        total=counter.total[here],
        breaks=tuple(place - first for place in counter.breaks if first < place < last),
    )


def _together(domains: Sequence[str], edges: Floats, pieces: _Pieces) -> PowerBins:
    """Ranges are added end to end: counters of one kind may be off in the same way."""
    each = [_bins(domain, edges, pieces) for domain in domains]
    return PowerBins(*(np.sum(part, axis=0) for part in zip(*each, strict=True)))


def _bins(domain: str, edges: Floats, pieces: _Pieces) -> PowerBins:
    """Mean power between the edges: what a counter counted, or the mean of what a gauge said."""
    energies = pieces.seen.energies
    source = energies.sources[domain]
    counter = energies.counter(domain)
    if counter is not None:
        return power_bins.watts(
            pieces.of(domain), edges, lag_s=counter.lag_s, resolution=counter.resolution
        )
    return power_bins.gauge_bins(
        energies.series(source.place),
        edges,
        averaging_s=source.channel.averaging_s or 0.0,
        resolution=source.channel.resolution or 0.0,
    )


def rates_of(grown: depth.Growth, edges: Floats) -> Floats:
    """Growth over the time in which it is known; NaN where it never is, and before and after the
    readings."""
    more, known_s = grown.over(edges[:-1], edges[1:])
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = np.where(known_s > 0, more / known_s, nan)
    return found
