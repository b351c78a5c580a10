"""Input ranges carried to the result: Latin-hypercube draws over (low, value, high) as one more array axis.

Each uncertain figure is a triangle with its mode at the stated value, on a logarithmic scale (30 s to 10 min around 2 min leans
neither way), on a linear one where the low end is 0. N strata a figure, one draw in the middle of each, in an
order given by a hash of (seed, figure, stratum): no random generator, so the same on every machine and numpy release. The plan
(interval, tier, count) stays as chosen; only the world varies.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ckptcost.core.domain import Scenario

SAMPLES = 256
SEED = 1


def triangle(low: float, mode: float, high: float, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantiles of a triangular distribution.

    >>> triangle(0.0, 1.0, 2.0, np.array([0.125, 0.5, 0.875])).tolist()
    [0.5, 1.0, 1.5]
    """
    if high <= low:
        return np.full_like(share, mode)
    knee = (mode - low) / (high - low)
    below = low + np.sqrt(share * (high - low) * (mode - low))
    above = high - np.sqrt((1.0 - share) * (high - low) * (high - mode))
    return np.where(share < knee, below, above)


@lru_cache(maxsize=256)
def strata(figure: int, samples: int = SAMPLES, seed: int = SEED) -> NDArray[np.float64]:
    """The middles of `samples` equal strata of [0, 1], shuffled."""
    with np.errstate(over="ignore"):
        x = (
            np.arange(samples, dtype=np.uint64)
            + np.uint64(0x9E3779B97F4A7C15) * np.uint64(1 + figure)
            + np.uint64(seed) * np.uint64(0xD1B54A32D192ED03)
        )
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    shuffled = (np.argsort(x, kind="stable") + 0.5) / samples
    shuffled.flags.writeable = False
    return shuffled


def replace_at(scenario: Scenario, path: str, value: Any) -> Scenario:
    """The scenario with one field changed; `path` is "tier.write_bytes_per_s" or "work_s"."""
    head, _, tail = path.partition(".")
    if not tail:
        return replace(scenario, **{head: value})
    return replace(scenario, **{head: replace(getattr(scenario, head), **{tail: value})})


def drawn(
    scenario: Scenario,
    ranges: dict[str, tuple[float, float, float]],
    ties: dict[str, str] | None = None,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Scenario:
    """The scenario with each path of `ranges` spread over its (low, mode, high); a path tied to another rises and falls with it."""
    order = {path: figure for figure, path in enumerate(sorted(ranges))}
    ties = ties or {}
    changed: dict[str, dict[str, Any]] = {}
    for path, (low, mode, high) in ranges.items():
        share = strata(order[ties.get(path, path)], samples, seed)
        log = 0 < low < high
        values = np.exp(triangle(np.log(low), np.log(mode), np.log(high), share)) if log else triangle(low, mode, high, share)
        section, _, name = path.rpartition(".")
        changed.setdefault(section, {})[name] = values
    whole = changed.pop("", {})
    return replace(scenario, **whole, **{section: replace(getattr(scenario, section), **values) for section, values in changed.items()})


def p5_p95(values: Any, value: float) -> tuple[float, float]:
    """5th and 95th percentile of the draws, widened to contain the point estimate."""
    if not isinstance(values, np.ndarray) or values.ndim == 0:
        return value, value
    ordered = np.sort(values[~np.isnan(values)])
    if not ordered.size:
        return value, value
    return min(_quantile(ordered, 0.05), value), max(_quantile(ordered, 0.95), value)


def _quantile(ordered: NDArray[np.float64], share: float) -> float:
    """Linear between the two nearest draws, as np.quantile does it; a report asks for 800 of these, and np.quantile takes 60 us."""
    at = share * (ordered.size - 1)
    below = int(at)
    low, high = float(ordered[below]), float(ordered[min(below + 1, ordered.size - 1)])
    return low if low == high else low + (at - below) * (high - low)
