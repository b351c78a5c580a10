"""Power as a pure function of time, with its exact integral: activities that step and ramp, a wave
that repeats, and loads made of both.

A load is `base_w + sum of weight * activity(t) - dips`. Everything is linear in the activities, so
that a whole machine needs one look-up for a moment, and the joules between two moments are a
difference of two areas, with no sampling and no error but rounding.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LONG_AGO_S, FAR_AHEAD_S = -1e12, 1e12
_RATE, _SLOPE, _AREA = range(3)


class Edges(NamedTuple):
    """How activities change in a number of cycles of equal make: (cycles, edges) or (edges,) where
    all cycles agree."""

    at_s: Array
    """since the cycle began"""
    column: NDArray[np.intp]
    change: Array
    ramp_s: Array
    """how long the change takes, linearly; 0 is a step"""


class Pieces(NamedTuple):
    """Knots of cycles that follow each other, and the area that each knot begins with, counted from
    the first one."""

    t_s: Array
    rows: Array
    """(knots, 3, activities): rate, slope, area"""
    total: Array
    """area of all of it"""


def pieces(begin_s: Array, until_s: Array, edges: Edges, before: Array, after: Array) -> Pieces:
    """Piecewise linear activities over cycles [begin, until), each from the state `before` to the
    state `after`.

    >>> one = Edges(np.array([2.0]), np.array([0]), np.array([6.0]), np.array([3.0]))
    >>> p = pieces(np.array([10.0]), np.array([20.0]), one, np.zeros(1), np.full(1, 6.0))
    >>> (
    ...     p.t_s.tolist(),
    ...     p.rows[:, 0, 0].tolist(),
    ...     float(p.total[0]),
    ... )  # 0, up to 6 within 3 s, then 5 s of it
    ([10.0, 12.0, 15.0], [0.0, 0.0, 6.0], 39.0)
    """
    cycles, count = len(begin_s), len(edges.column)
    at = np.broadcast_to(edges.at_s, (cycles, count))
    change = np.broadcast_to(edges.change, (cycles, count))
    ramps = np.broadcast_to(edges.ramp_s, (count,)) > 0
    steepness = change[:, ramps] / edges.ramp_s[ramps]
    # a ramp is two knots, one that turns the slope up and one that turns it back; a step is one
    # knot
    knots = np.concatenate([np.zeros((cycles, 1)), at, at[:, ramps] + edges.ramp_s[ramps]], axis=1)
    turn, jump = (np.zeros((cycles, knots.shape[1], len(before))) for _ in range(2))
    first, back = 1 + np.arange(count), 1 + count + np.arange(int(ramps.sum()))
    turn[:, first[ramps], edges.column[ramps]] = steepness
    turn[:, back, edges.column[ramps]] = -steepness
    jump[:, first[~ramps], edges.column[~ramps]] = change[:, ~ramps]
    order = np.argsort(knots, axis=1, kind="stable")
    knots = np.take_along_axis(knots, order, axis=1)
    slope = np.cumsum(np.take_along_axis(turn, order[..., None], axis=1), axis=1)
    gap = np.diff(knots, axis=1, append=(until_s - begin_s)[:, None])[..., None]
    risen = np.concatenate(
        [np.zeros((cycles, 1, len(before))), np.cumsum(slope * gap, axis=1)[:, :-1]], axis=1
    )
    rate = before + np.cumsum(np.take_along_axis(jump, order[..., None], axis=1), axis=1) + risen
    slope[:, -1], rate[:, -1] = (
        0.0,
        after,
    )  # what is left of rounding would grow with the square of the time to the next cycle
    grown = np.cumsum((gap * (rate + slope * gap / 2.0)).reshape(-1, len(before)), axis=0)
    area = np.concatenate([np.zeros((1, len(before))), grown[:-1]])
    flat = [part.reshape(-1, len(before)) for part in (rate, slope)]
    return Pieces((begin_s[:, None] + knots).ravel(), np.stack([*flat, area], axis=1), grown[-1])


class Timeline:
    """Activities over all time: nothing before the first stretch, the last rate for ever after the
    last one.

    A stretch is pieces and where they end. They are asked for only when somebody looks so far, so
    that a long run costs nothing before.
    """

    def __init__(self, activities: int, stretches: Iterable[tuple[Pieces, float]]) -> None:
        self._t = np.array([LONG_AGO_S])
        self._rows = np.zeros((1, 3, activities))
        self._total = np.zeros(activities)
        self._until_s = LONG_AGO_S
        self._stretches = iter(stretches)

    def _extend(self) -> None:
        more, self._until_s = next(self._stretches, (None, np.inf))
        if more is not None:
            rows = more.rows.copy()
            rows[:, _AREA] += self._total
            self._t = np.concatenate([self._t, more.t_s])
            self._rows = np.concatenate([self._rows, rows])
            self._total = self._total + more.total

    def _at(self, t_s: Array) -> tuple[Array, Array]:
        while t_s.max() >= self._until_s:
            self._extend()
        found = self._t.searchsorted(t_s, "right") - 1
        return self._rows[found], (t_s - self._t[found])[:, None]

    def rates(self, t_s: Array) -> Array:
        """(times, activities): how strong each is at each time."""
        rows, since = self._at(t_s)
        return rows[:, _RATE] + since * rows[:, _SLOPE]

    def areas(self, t_s: Array) -> Array:
        """(times, activities): the exact integral of each from long ago."""
        rows, since = self._at(t_s)
        grown: Array = rows[:, _AREA] + since * (rows[:, _RATE] + (0.5 * since) * rows[:, _SLOPE])
        return grown


class Wave(NamedTuple):
    """1 in the last `share` of every period, else 0."""

    period_s: float
    share: float

    def rate(self, t_s: Array) -> Array:
        """
        >>> Wave(2.0, 0.25).rate(np.array([0.0, 1.4, 1.5, 2.0, 3.9])).tolist()
        [0.0, 0.0, 1.0, 0.0, 1.0]
        """
        inside = np.mod(t_s, self.period_s)
        return (inside >= self.period_s * (1.0 - self.share)).astype(np.float64)

    def area(self, t_s: Array) -> Array:
        """
        >>> Wave(2.0, 0.25).area(np.array([0.0, 1.75, 2.0, 3.75])).tolist()
        [0.0, 0.25, 0.5, 0.75]
        """
        whole = np.floor(t_s / self.period_s)
        inside = t_s - whole * self.period_s
        grown: Array = whole * (self.share * self.period_s) + np.maximum(
            inside - (1.0 - self.share) * self.period_s, 0.0
        )
        return grown


class Load(NamedTuple):
    """Watts of one domain: a base, so much for each activity, and dips of a wave that runs only
    while `clock` does."""

    base_w: float
    weights_w: Array
    dips_w: Array
    phases_s: Array

    def plus(self, other: Load) -> Load:
        return Load(
            self.base_w + other.base_w,
            self.weights_w + other.weights_w,
            np.concatenate([self.dips_w, other.dips_w]),
            np.concatenate([self.phases_s, other.phases_s]),
        )

    def times(self, factor: float) -> Load:
        return Load(
            self.base_w * factor, self.weights_w * factor, self.dips_w * factor, self.phases_s
        )

    def watts(self, rates: Array, areas: Array, clock: int, wave: Wave) -> Array:
        """Power where activities are as given; dips are as deep as the clock's own rate."""
        value = self.base_w + rates @ self.weights_w
        if len(self.dips_w):
            down = wave.rate(areas[:, clock, None] + self.phases_s)
            value = value - rates[:, clock] * (down @ self.dips_w)
        return np.asarray(value, dtype=np.float64)

    def joules(self, t_s: Array, areas: Array, clock: int, wave: Wave) -> Array:
        """Integral of `watts` from second 0, or minus it for times before.

        The dips are exact too: the wave's time is the clock's area, and `rate * wave(area) dt` is
        `wave(area) d(area)`.
        """
        value = self.base_w * t_s + areas @ self.weights_w
        if len(self.dips_w):
            down = wave.area(areas[:, clock, None] + self.phases_s) - wave.area(self.phases_s)
            value = value - down @ self.dips_w
        return np.asarray(value, dtype=np.float64)
