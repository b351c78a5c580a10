"""What interrupts a simulated run: the time to the next interruption, and what kind it is.

A renewal process starts afresh whenever the job comes back (exponential: no memory; Weibull with k
< 1: infant mortality). A calendar process has instants of its own, whether the job is up or down: a
recorded trace, or a platform of ageing nodes. What happens while the job is down anyway (detection,
rescheduling) interrupts nothing.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core import streams
from ckptcost.first.core.domain import Number
from ckptcost.first.core.numeric import ratio
from ckptcost.first.core.streams import Keys

Floats = NDArray[np.float64]
NEVER = float("inf")
SAME_S = 1e-3
"""an instant of the calendar is past once the clock has come to it, whatever the last bits of the
clock's sum say"""


class InterruptionKind(NamedTuple):
    """One class of interruption and the pieces of getting back from it."""

    name: str
    share: Number
    """of all interruptions; those of a trace with kinds of its own bring theirs"""
    level: int
    """the first tier whose copy survives it: 0 is the first"""
    detect_s: Number
    reschedule_s: Number
    init_s: Number
    warmup_s: Number
    notice_s: float = 0.0
    """warning time: a save that fits into it loses no work"""
    after_s: float = NEVER
    """not at random but this long after each start: a time limit of the scheduler; its share is
    0"""


class InterruptionProcess(Protocol):
    """When the next interruption comes, for the runs still under way."""

    def next_s(self, clock_s: Floats, event: int) -> tuple[Floats, NDArray[np.intp] | None]:
        """(time until it from `clock_s`, when the job is up again; its kind, where the process
        itself knows)"""

    def keep(self, going: NDArray[np.bool_]) -> InterruptionProcess:
        """The same for some of the runs."""


class Renewal(NamedTuple):
    """Independent gaps from each start of the job: exponential, or Weibull with shape k.

    Weibull: gap = mean/Gamma(1+1/k) * (-ln u)^(1/k); k = 1 is the exponential.
    """

    keys: Keys
    mean_s: Any
    shape: float = 1.0

    def next_s(self, clock_s: Floats, event: int) -> tuple[Floats, None]:
        gap = np.log(streams.uniforms(self.keys, event))
        np.negative(gap, out=gap)
        if self.shape != 1.0:
            np.power(gap, 1.0 / self.shape, out=gap)
        gap *= self.mean_s / math.gamma(1.0 + 1.0 / self.shape)
        return gap, None

    def keep(self, going: NDArray[np.bool_]) -> Renewal:
        return Renewal(
            self.keys[going],
            self.mean_s[going] if isinstance(self.mean_s, np.ndarray) else self.mean_s,
            self.shape,
        )


class TraceReplay(NamedTuple):
    """A recorded trace, begun at each run's own place in it and repeated every `span_s`."""

    times_s: Floats
    kinds: NDArray[np.intp] | None
    span_s: float
    offsets_s: Floats

    def next_s(self, clock_s: Floats, event: int) -> tuple[Floats, NDArray[np.intp] | None]:
        inside_s = np.mod(clock_s + self.offsets_s + SAME_S, self.span_s)
        at = np.searchsorted(self.times_s, inside_s, side="right")
        past = at == len(self.times_s)
        at = np.where(past, 0, at)
        return self.times_s[at] + self.span_s * past - inside_s + SAME_S, (
            None if self.kinds is None else self.kinds[at]
        )

    def keep(self, going: NDArray[np.bool_]) -> TraceReplay:
        return self._replace(offsets_s=self.offsets_s[going])


class Platform(NamedTuple):
    """Nodes that age and are replaced by new ones when they fail: the superposition of their
    Weibull renewals.

    `times_s` holds each run's instants in rising order, padded with inf, complete up to
    `horizon_s`; past it a run has outlived its table, which `beyond` tells.
    """

    times_s: Floats
    horizon_s: float

    def next_s(self, clock_s: Floats, event: int) -> tuple[Floats, None]:
        at = (self.times_s <= clock_s[:, None] + SAME_S).sum(axis=1)
        found = np.take_along_axis(self.times_s, at[:, None], axis=1)[
            :, 0
        ]  # the last column is inf
        return found - clock_s, None

    def keep(self, going: NDArray[np.bool_]) -> Platform:
        return Platform(self.times_s[going], self.horizon_s)


def platform_times_s(
    keys: Keys, nodes: int, mean_s: Number, shape: float, horizon_s: float
) -> Floats:
    """Every node's failures up to the horizon, all nodes of a run together, in order. At the start
    the nodes are of all ages.

    Generation by generation: only the nodes that failed before the horizon are drawn again, so the
    cost is that of the failures.
    """
    shares, residuals = residual_life_s(1.0, shape)
    found: list[Floats] = []
    for run, run_mean_s in zip(keys, np.broadcast_to(mean_s, keys.shape), strict=True):
        scale_s, residuals_s = run_mean_s / math.gamma(1.0 + 1.0 / shape), run_mean_s * residuals
        own = streams.mix(np.arange(nodes, dtype=np.uint64) + run)
        now_s, alive, generation, times = np.zeros(nodes), own, 0, []
        while alive.size:
            share = streams.uniforms(alive, generation)
            now_s = now_s + (
                scale_s * (-np.log(share)) ** (1.0 / shape)
                if generation
                else np.interp(share, shares, residuals_s)
            )
            early = now_s <= horizon_s
            now_s, alive = now_s[early], alive[early]
            times.append(now_s)
            generation += 1
        found.append(np.sort(np.concatenate(times)) if times else np.zeros(0))
    most = max((len(times) for times in found), default=0)
    table = np.full((len(found), most + 1), NEVER)
    for row, each in zip(table, found, strict=True):
        row[: len(each)] = each
    return table


def residual_life_s(mean_s: float, shape: float) -> tuple[Floats, Floats]:
    """(shares, times) of the time that a node of unknown age has left: its distribution is the
    integral of survival over the mean."""
    scale_s = mean_s / math.gamma(1.0 + 1.0 / shape)
    # even in the exponent of survival, which ends at exp(-60): an infant's first seconds weigh as
    # much as its last years
    times_s = np.concatenate([[0.0], scale_s * np.geomspace(1e-12, 60.0, 8192) ** (1.0 / shape)])
    survival = np.exp(-((times_s / scale_s) ** shape))
    middle = np.exp(-(((times_s[1:] + times_s[:-1]) / 2.0 / scale_s) ** shape))
    pieces = (survival[1:] + survival[:-1] + 4.0 * middle) / 6.0 * np.diff(times_s)  # Simpson
    shares = np.concatenate([[0.0], np.cumsum(pieces)]) / mean_s
    return np.minimum(shares, 1.0), times_s


def platform_rate_per_s(nodes: Number, mean_s: Number) -> Number:
    """Failures per second of so many nodes in the long run, whatever the shape.

    >>> platform_rate_per_s(nodes=1000.0, mean_s=1e6)
    0.001
    """
    return nodes * ratio(1.0, mean_s)
