"""What a stated energy of a save can include: readings by boundary, computed as the model does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ckptcost.plan import bill, draws
from ckptcost.plan import physics as ph
from ckptcost.plan.claims import Claim, Fact, Span
from ckptcost.scenario.resolve import layer_of, resolve

GPUS, GPU_POWER = 1024.0, 500.0
"""who waits, if a sheet does not say: a usual cluster for such checkpoints, at half of its power"""
DRIVES = Span(1.8e-9, 4e-9)
"""J/B of NVMe drives that publish watts and rates: models/tiers/micron-*.toml"""
BOUNDARIES = {"drives": "the drives", "system": "storage system", "gpus": "GPUs that wait"}
DRAWS = 4096


@dataclass
class Reading:
    """A stated energy beside what its save takes within each boundary; joules, without cooling."""

    claim: Claim
    stated: Fact
    within: dict[str, Span]
    gpus: Span
    gpu_power: Span
    ours: bool
    """whether GPUs and watts are ours, because the sheet names none"""

    @property
    def fits(self) -> list[str]:
        return [name for name, span in self.within.items() if span.meets(self.stated.allowed)]


def reading_of(claim: Claim) -> Reading | None:
    """Of a claim that states an energy, and says or implies a size and a time with two ends."""
    stated, size, time = claim.stated.get("energy"), claim.best("size"), claim.best("time")
    if stated is None or size is None or time is None:
        return None
    size_, time_ = size.printed, time.printed
    if not all(0 < end < np.inf for end in (*size_, *time_)):
        return None
    said = claim.stated.get("gpus"), claim.stated.get("gpu_power")
    usual = Span(GPUS, GPUS), Span(GPU_POWER, GPU_POWER)
    gpus, power = (fact.printed if fact else span for fact, span in zip(said, usual, strict=True))
    rate = Span(size_.low / time_.high, size_.high / time_.low)
    within = {
        "drives": _product(size_, DRIVES),
        "system": system_energy(size_, rate),
        "gpus": _product(gpus, power, time_),
    }
    return Reading(claim, stated, within, gpus, power, ours=not all(said))


def _product(*spans: Span) -> Span:
    return Span(float(np.prod([s.low for s in spans])), float(np.prod([s.high for s in spans])))


def system_energy(size: Span, write: Span) -> Span:
    """Joules that a storage system of that rate adds for one save: 5th to 95th percentile of the
    model's own law, as `ckptcost model` bills it at a PUE of 1."""

    def figure(span: Span, unit: str) -> dict[str, str]:
        ends = {"value": sum(span) / 2, "low": span.low, "high": span.high}
        return {end: f"{value:.15g} {unit}" for end, value in ends.items()}

    raw = {  # a job with that save in it; the rest of the job does not matter
        "checkpoint": {"size": figure(size, "B")},
        "tier": {"write": figure(write, "B/s")},
        "cluster": {"gpus": GPUS},
        "policy": {"saves": 1},
        "site": {"pue": 1},
        "run": {"work": "1 day"},
    }
    w = draws.worlds([resolve([layer_of(raw, "the sheet")])], DRAWS)
    with np.errstate(all="ignore"):
        energy = bill.write_energy(w, w.tier, ph.save(w, w.tier))
    low, high = draws.ends(np.broadcast_to(energy, (1, DRAWS + 1)))
    return Span(float(low[0]), float(high[0]))
