"""What can be measured here: every meter tried for two seconds, and for the rest the reason and
what would help."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ckptcost.first.core import counters, gauges
from ckptcost.first.core.channels import Channel, Series
from ckptcost.first.errors import Argument, InputError, MeterUnavailable
from ckptcost.first.jobs.energies import Energies
from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.jobs.recording import Recorded, record
from ckptcost.first.meters.base import Absence, Meter
from ckptcost.first.runs.pace import Pace

if TYPE_CHECKING:
    from ckptcost.first.meters.rapl import CounterDifference

KINDS = ("gpu", "cpu", "dram", "storage", "node")
"""what users ask for; the first word of a domain belongs to one of them"""
OF_DOMAIN = {
    "gpu": "gpu",
    "module": "gpu",
    "cpu": "cpu",
    "core": "cpu",
    "uncore": "cpu",
    "psys": "node",
    "dram": "dram",
    "node": "node",
    "drive": "storage",
    "disk": "storage",
    "process": "storage",
    "host": "storage",
    "cgroup": "storage",
    "mount": "storage",
    "gds": "storage",
    "self": "self",
}
SECONDS = 2.0
QUICK = Pace(rest_s=0.02, quick_s=0.01, quick_for_s=10.0, around_s=10.0)
CROSS_READINGS = 5
CROSS_S = 0.1


class ChannelTrial(NamedTuple):
    """One channel after two seconds."""

    meter: str
    channel: Channel
    kind: str
    answers: int
    asked: int
    tick_s: float
    """how often the value was renewed; NaN: not renewed twice"""
    rate: float
    """a counter's growth per second, a gauge's mean; NaN where it cannot be told"""
    noise: float
    """standard deviation of a gauge, or of a counter's rate over fifths of the time; in the unit of
    `rate`"""
    took_s: float
    """of one reading of the whole meter, median"""


class Checkup(NamedTuple):
    host: str
    tried: Sequence[ChannelTrial]
    absences: Sequence[Absence]
    cross: Sequence[CounterDifference]
    """the same counters by our own reader and by pyRAPL"""
    cross_why: str
    """why there is no cross-check"""
    measured_by: dict[str, list[str]]
    """by kind: the meters that give its joules, or its bytes for storage"""
    seconds: float
    simulated: bool
    own_cpu: float
    """share of one core that all this asking took"""


def checkup(tools: Instruments, seconds: float = SECONDS) -> Checkup:
    if not tools.meters:
        return Checkup(
            "",
            (),
            tools.absences,
            (),
            "no RAPL meter",
            {kind: [] for kind in KINDS},
            0.0,
            False,
            math.nan,
        )
    # before the recorder closes the meters
    cross, cross_why = _cross(tools)
    recorded = record(tools, seconds, pace=QUICK)
    run, node = recorded.run, recorded.run.node()
    tried: list[ChannelTrial] = []
    ended_s: dict[float, float] = {}
    for meter in node.headers[-1].meters:
        seen = [node.series(channel) for channel in meter.channels]
        took_s = _own_time(seen[0], ended_s) if seen else math.nan
        tried += [
            _channel_trial(meter.name, c, one, recorded, took_s)
            for c, one in zip(meter.channels, seen, strict=True)
        ]
    energies = Energies(node)
    measured_by = means_of(energies)
    absences = [*tools.absences, *(_stuck(channel, seconds) for channel in still(energies))]
    own_cpu = recorded.stats.cpu_s / run.duration_s if run.duration_s > 0 else math.nan
    return Checkup(
        node.host, tried, absences, cross, cross_why, measured_by, seconds, tools.simulated, own_cpu
    )


def missing_kinds(seen: Checkup, needed: Sequence[str]) -> list[str]:
    """The kinds asked for that nothing measures."""
    return [kind for kind in known_kinds(needed) if not seen.measured_by.get(kind)]


def lacking_of(energies: Energies, needed: Sequence[str]) -> list[str]:
    """The same of a recording."""
    means = means_of(energies)
    return [kind for kind in known_kinds(needed) if not means[kind]]


def known_kinds(needed: Sequence[str]) -> Sequence[str]:
    for kind in needed:
        if kind not in KINDS:
            raise InputError(
                f"{kind!r} is nothing that is measured",
                where=Argument("need"),
                remedy=f"known: {', '.join(KINDS)}",
            )
    return needed


def still(energies: Energies) -> list[Channel]:
    """Counters of joules that answer and never move, as virtual machines have them: nothing that
    runs draws nothing."""
    found = []
    for domain in (*energies.parts, *energies.wholes):
        channel = energies.sources[domain].channel
        value = energies.series(energies.channels.index(channel)).value
        value = value[np.isfinite(value)]
        if (
            channel.is_counter
            and channel.quantity == "energy_j"
            and len(value) > 1
            and value.min() == value.max()
        ):
            found.append(channel)
    return found


def _stuck(channel: Channel, seconds: float) -> Absence:
    reason = f"{channel.source} answers, and its joules did not move in {seconds:g} s"
    remedy = (
        "a virtual machine shows such counters where its host keeps them to itself: measure on the"
        " host"
    )
    return Absence(channel.domain, reason, remedy, OF_DOMAIN.get(channel.kind_of_domain, ""))


def means_of(energies: Energies) -> dict[str, list[str]]:
    """By kind what measures it: joules, and bytes for storage."""
    means: dict[str, list[str]] = {kind: [] for kind in KINDS}
    silent = {energies.channels[place].domain for place in energies.silent} | {
        channel.domain for channel in still(energies)
    }
    for domain in (*energies.parts, *energies.wholes):
        if domain in silent:
            continue
        source = energies.sources[domain]
        if (kind := OF_DOMAIN.get(source.channel.kind_of_domain, "")) in means:
            means[kind].append(f"{domain} ({source.channel.source})")
    means["storage"] += _written(energies)
    return means


def _written(energies: Energies) -> list[str]:
    """What counts the bytes that were written, and answers."""
    return [
        f"{channel.domain} ({channel.source})"
        for place, channel in enumerate(energies.channels)
        if channel.quantity == "written_bytes"
        and channel.role == "part"
        and np.isfinite(energies.series(place).value).any()
    ]


def _own_time(seen: Series, ended_s: dict[float, float]) -> float:
    """What one meter added to its ticks, median: `ended_s` holds, by tick, when the meter asked
    before it was done."""
    added = [
        max(took - ended_s.get(t, 0.0), 0.0)
        for t, took in zip(seen.t_s.tolist(), seen.took_s.tolist(), strict=True)
    ]
    ended_s.update(zip(seen.t_s.tolist(), seen.took_s.tolist(), strict=True))
    return float(np.median(added)) if added else math.nan


def _channel_trial(
    meter: str, channel: Channel, seen: Series, recorded: Recorded, took_s: float
) -> ChannelTrial:
    inside = (seen.t_s >= recorded.begin_s) & (seen.t_s <= recorded.end_s)
    value, t_s = seen.value[inside], seen.t_s[inside]
    answered = np.isfinite(value)
    changes = int(np.count_nonzero(np.diff(value[answered])))
    span_s = float(t_s[answered][-1] - t_s[answered][0]) if answered.sum() > 1 else 0.0
    rate, noise = _level(channel, seen, recorded) if answered.any() else (math.nan, math.nan)
    return ChannelTrial(
        meter,
        channel,
        OF_DOMAIN.get(channel.kind_of_domain, ""),
        int(answered.sum()),
        len(value),
        span_s / changes if changes >= 2 else math.nan,
        rate,
        noise,
        took_s,
    )


def _level(channel: Channel, seen: Series, recorded: Recorded) -> tuple[float, float]:
    begin_s, end_s = recorded.begin_s, recorded.end_s
    if not channel.is_counter:
        spread = gauges.spread(seen, begin_s, end_s)
        return spread.mean, _noise(spread.deviation, spread.mean)
    # what is not energy is counted as it happens
    tick_s = channel.tick_s if channel.quantity == "energy_j" else 0.0
    counter = counters.unwrap_counter(
        seen, channel.wraps_at, tick_s=tick_s, resolution=channel.resolution
    )
    edges = np.linspace(begin_s, end_s, 6)
    rates = [
        counter.energy(a, b).value / (b - a)
        for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]
    known = [rate for rate in rates if rate == rate]
    whole = counter.energy(begin_s, end_s).value / (end_s - begin_s)
    return whole, _noise(float(np.std(known, ddof=1)), whole) if len(known) > 1 else math.nan


def _noise(deviation: float, level: float) -> float:
    """Without the rounding of the arithmetic itself."""
    return 0.0 if deviation < 1e-9 * abs(level) else deviation


def _cross(tools: Instruments) -> tuple[list[CounterDifference], str]:
    """Our own reader and pyRAPL on the same counters."""
    from ckptcost.first.meters import rapl

    own = [meter for meter in tools.meters if meter.name == "rapl" and not meter.simulated]
    if not own:
        return [], "no RAPL meter"
    (ours, *_) = own
    if ours.facts.get("backend") == "pyrapl":
        return [], "pyRAPL is the meter itself"
    seen = rapl.find(backend="pyrapl")
    if not seen.meters:
        reasons = dict.fromkeys(absence.reason for absence in seen.absences)
        return [], "; ".join(reasons) or "pyRAPL finds nothing"
    theirs = seen.meters[0]
    try:
        readings = [_read_both(ours, theirs) for _ in range(CROSS_READINGS)]
    except MeterUnavailable as error:
        return [], error.reason
    finally:
        theirs.close()
    return list(rapl.crosscheck(ours, theirs, readings)), ""


def _read_both(ours: Meter, theirs: Meter) -> tuple[list[float], list[float]]:
    t_ns = time.monotonic_ns()
    both = list(ours.read(t_ns)), list(theirs.read(t_ns))
    time.sleep(CROSS_S)
    return both
