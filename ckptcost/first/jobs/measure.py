"""Record for a while and say what was used, or say it again of a run that was recorded; and the
idle power of this machine, learned on purpose and dated: what a checkpoint's energy above idle is
held against."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ckptcost.first.core import gauges
from ckptcost.first.core.attribution import WHOLE, Baseline, mean_w
from ckptcost.first.errors import CkptcostError, MeterUnavailable
from ckptcost.first.jobs.energies import Energies, drivers_of
from ckptcost.first.jobs.instruments import REPLAY, instruments
from ckptcost.first.jobs.measured import Measured, evaluate
from ckptcost.first.jobs.recording import ASKED, MARGIN_S, record
from ckptcost.first.meters.found import Wanted
from ckptcost.first.runs.baselines import Idle, file_of, load, now, save
from ckptcost.first.runs.header import host_name
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.run import Node, Run

Progress = Callable[[str, float], None]
"""what is done, and what share of it"""
LATEST_S = 3.0
"""a meter that answers within so long was there from the beginning"""


BUSY = 0.05
"""mean utilisation of a GPU above which the machine does not count as idle"""


def measure(
    meters: str,
    wanted: Wanted,
    for_s: float | None,
    directory: Path | None = None,
    tell: Callable[[Recorder], None] | None = None,
) -> Measured:
    """Look for meters, record, evaluate. Without a length a replayed run is taken whole."""
    if meters.startswith(REPLAY):
        return _again(meters.removeprefix(REPLAY), for_s)
    tools = instruments(meters, wanted, for_s or 0.0)
    idle, why = (None, "") if tools.simulated else _baseline(host_name())
    recorded = record(tools, for_s or 0.0, directory, tell=tell)
    seen = evaluate(
        recorded.run, recorded.begin_s, recorded.end_s, idle, tools.absences, recorded.stats
    )
    asked = {"process"} if wanted.pid is not None else set[str]()
    asked |= {"redfish"} if wanted.redfish_url else set()
    asked |= {word.strip() for word in meters.split(",")}
    missing = [absence for absence in tools.absences if absence.what.split()[0] in asked]
    return seen._replace(
        kept="" if directory is None else recorded.run.id, missing=missing, idle_why=why
    )


def _baseline(host: str) -> tuple[Idle | None, str]:
    """What was learned of this host; a file that cannot be read costs the energy above idle, not
    the measurement."""
    try:
        return load(file_of(host)), ""
    except CkptcostError as error:
        return None, str(error)


def _again(path: str, for_s: float | None) -> Measured:
    """A run that was recorded, evaluated again: exactly what its readings say, and marked as not
    measured now. What was made up stays simulated; what was recorded is no simulation."""
    seen = reviewed(path, for_s)
    return seen._replace(replayed=seen.energies.node.headers[0].created[:10] or "an unknown day")


def reviewed(
    path: str | Path,
    for_s: float | None = None,
    host: str = "",
    run_id: str = "",
    tell: Progress | None = None,
) -> Measured:
    """A run that was recorded, as what it is: of this machine or another, ended or killed."""
    from ckptcost.first.runs import reader

    run = reader.load(path, run_id, None if tell is None else partial(tell, "reading the run"))
    if host:
        run.node(host)
    return reviewed_run(
        run, for_s, host or (run.hosts[0] if run.hosts else ""), Path(path).name, tell
    )


def _all_known_s(node: Node, latest_s: float) -> float:
    """When the last of the parts that add up had answered first. Where nobody said when it begins,
    seconds are all that is kept of a recording's first: without them nothing would be known of any
    sum. A part that comes later than `latest_s` is missing until then.
    """
    energies = Energies(node)
    since_s = [energies.known_since_s(domain) for domain in energies.parts]
    return max([at_s for at_s in since_s if at_s <= latest_s], default=-inf)


def reviewed_run(
    run: Run,
    for_s: float | None = None,
    host: str = "",
    name: str = "",
    tell: Progress | None = None,
) -> Measured:
    """The same of one that is loaded already; `name` of what it was loaded from."""
    if not run.nodes or not len(ticked := (node := run.node(host)).ticked_s()):
        raise MeterUnavailable(f"{name}: holds no readings")
    first, last = float(ticked[0][0]), float(ticked[-1][1])
    margin_s = min(MARGIN_S, (last - first) / 4)
    asked = [mark.t_s for mark in run.marks if mark.by == ASKED]
    begin_s = min(asked, default=first + margin_s)
    end_s = max(asked) if len(asked) > 1 else last - margin_s
    if not asked:
        begin_s = max(begin_s, _all_known_s(node, first + LATEST_S))
    if not begin_s < end_s:  # killed as soon as it was begun
        raise MeterUnavailable(f"{name}: holds no readings of what was asked for")
    idle, why = (None, "") if run.simulated else _baseline(node.host)
    return evaluate(
        run,
        begin_s,
        end_s if for_s is None else min(end_s, begin_s + for_s),
        idle,
        host=node.host,
        tell=None if tell is None else partial(tell, "working out what its saves took"),
    )._replace(kept=run.id, idle_why=why)


class LearnedIdle(NamedTuple):
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
) -> LearnedIdle:
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
    return LearnedIdle(measured, idle, file, busy)


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
