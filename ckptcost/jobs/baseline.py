"""The idle power of this machine, learned on purpose and dated: what a checkpoint's energy above
idle is held against."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ckptcost.core import gauges
from ckptcost.core.attribution import WHOLE, Baseline, mean_w
from ckptcost.errors import CkptcostError, MeterUnavailable
from ckptcost.jobs.energies import drivers_of
from ckptcost.jobs.measure import measure
from ckptcost.jobs.measured import Measured
from ckptcost.meters.found import Wanted
from ckptcost.runs.baselines import Idle, file_of, now, save
from ckptcost.runs.recorder import Recorder

BUSY = 0.05
"""mean utilisation of a GPU above which the machine does not count as idle"""


class Learned(NamedTuple):
    measured: Measured
    idle: Idle
    file: Path | None
    """where it is kept; None: of a simulated machine nothing is kept"""
    busy: list[str]
    """GPUs that were not idle"""


def learn(
    meters: str,
    wanted: Wanted,
    for_s: float | None,
    anyway: bool = False,
    tell: Callable[[Recorder], None] | None = None,
) -> Learned:
    """Measure, judge whether it was idle, keep it. `tell` is called a few times a second and may
    raise to end it."""
    measured = measure(meters, wanted, for_s, tell=tell)
    busy = _busy(measured)
    if busy and not anyway:
        raise CkptcostError(
            f"not idle, so nothing is kept: {', '.join(busy)}. End what runs there, or say --anyway"
        )
    wall_s = measured.run.wall_s(measured.end_s)
    domains = watts_of(measured, wall_s)
    if not domains:
        raise MeterUnavailable(
            "nothing here meters power or energy, so there is no idle power to learn",
            "`ckptcost doctor` says why",
        )
    node = measured.energies.node
    wall_ns = time.time_ns() if not measured.simulated else round(wall_s * 1e9)
    idle = Idle(
        node.host, now(wall_ns), measured.length_s, drivers_of(node), measured.simulated, domains
    )
    file = None if measured.simulated else file_of(node.host)
    if file is not None:
        save(idle, file)
    return Learned(measured, idle, file, busy)


def watts_of(measured: Measured, taken_s: float) -> dict[str, Baseline]:
    """Mean watts by domain; low and high are the 10th and 90th percentile of whole seconds, or the
    mean's own range where that is wider."""
    found = {}
    for domain, energy in measured.spans.items():
        if not energy.known or measured.length_s <= 0:
            continue
        mean, low, high = mean_w(energy, measured.length_s)[:3]
        seconds = [
            measured.energies.joules(domain, at, at + 1.0)
            for at in np.arange(measured.begin_s, measured.end_s - 1.0 + 1e-9, 1.0).tolist()
        ]
        known = [
            joules.value
            for joules in seconds
            if joules.coverage >= WHOLE and joules.ticks and not joules.reasons
        ]
        if known:
            low, high = (
                min(low, float(np.percentile(known, 10))),
                max(high, float(np.percentile(known, 90))),
            )
        if all(map(math.isfinite, (mean, low, high))):
            driver = measured.energies.sources[domain].driver
            found[domain] = Baseline(
                mean, min(low, mean), max(high, mean), taken_s, measured.energies.node.host, driver
            )
    return found


def _busy(measured: Measured) -> list[str]:
    energies = measured.energies
    found = []
    for place, channel in enumerate(energies.channels):
        if channel.quantity == "utilisation":
            # over time: near the edges there are many readings of one second
            busy = gauges.spread(energies.series(place), measured.begin_s, measured.end_s).mean
            if busy > BUSY:
                found.append(f"{channel.domain} at {100 * busy:.0f} %")
    return found
