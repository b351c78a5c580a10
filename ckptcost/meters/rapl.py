"""Joules of processors and memory by RAPL, and which of three ways reads them.

Powercap files first; the perf PMU where their counters are closed; pyRAPL only when asked for,
because it knows no wraps, dies or psys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from ckptcost.errors import Argument, UnknownName
from ckptcost.meters import powercap, rapl_advice, rapl_perf
from ckptcost.meters.base import Absence, Found, Meter
from ckptcost.meters.rapl_domains import Counters, Processor, processor

Backend = Literal["auto", "powercap", "perf", "pyrapl"]
REAL = Path("/sys")


def find(*, sysfs: Path = REAL, procfs: Path = Path("/proc"), backend: Backend = "auto") -> Found:
    """The meter for processors and memory, or why there is none."""
    if backend not in get_args(Backend):
        raise UnknownName("RAPL backend", backend, get_args(Backend), where=Argument("rapl"))
    cpu = processor(procfs)
    if backend == "pyrapl":
        return _by_pyrapl(sysfs, cpu)
    if backend == "perf":
        return by_perf(rapl_perf.pmu(sysfs, cpu), sysfs, cpu)
    files = powercap.tree(sysfs, cpu)
    if backend == "powercap" or measures_cpu(files.meter):
        return by_powercap(files, sysfs, cpu)
    return either(files, rapl_perf.pmu(sysfs, cpu), sysfs, cpu)


def measures_cpu(meter: Counters | None) -> bool:
    """Does it read joules of processors that add up?"""
    return meter is not None and any(
        channel.role == "part" and "cpu" in (channel.kind_of_domain, *channel.covers)
        for channel in meter.channels
    )


def by_powercap(files: powercap.Tree, sysfs: Path, cpu: Processor) -> Found:
    """What the powercap files give, with everything that is lacking."""
    if not files.zones:
        return Found((), rapl_advice.nothing(sysfs, cpu))
    there = [
        zone.spot.domain for zone in powercap.kept(files.zones, cpu.is_amd) if zone.spot is not None
    ]
    absences = [
        *rapl_advice.refused(files),
        *rapl_advice.no_dram(there, cpu),
        *rapl_advice.unwrapped(files),
        *rapl_advice.unknown_zones(files),
    ]
    return Found((files.meter,) if files.meter else (), absences)


def by_perf(events: rapl_perf.Pmu, sysfs: Path, cpu: Processor) -> Found:
    """What the PMU gives, with everything that is lacking."""
    if not events.present:
        reason = f"{events.path} is not there: no PMU named power"
        why = rapl_advice.nothing(sysfs, cpu)[0]
        remedy = (
            "as root: modprobe rapl (intel_rapl_perf before Linux 5.8)"
            if cpu.architecture == "x86" and not cpu.virtual
            else why.remedy
        )
        return Found(
            (),
            [
                Absence("rapl perf", reason, remedy, "cpu"),
                Absence("rapl perf dram", reason, remedy, "dram"),
            ],
        )
    absences = rapl_advice.perf_refused(events)
    if events.meter is None:
        return Found(
            (), [*absences, *(a._replace(what="rapl perf dram", kind="dram") for a in absences[:1])]
        )
    return Found(
        (events.meter,),
        [
            *absences,
            *rapl_advice.no_dram([channel.domain for channel in events.meter.channels], cpu),
        ],
    )


def either(files: powercap.Tree, events: rapl_perf.Pmu, sysfs: Path, cpu: Processor) -> Found:
    """The files give no joules of a processor: perf instead if it does, else what there is, and all
    reasons."""
    first = by_powercap(files, sysfs, cpu)
    if not events.present:
        return first
    second = by_perf(events, sysfs, cpu)
    if events.meter is not None and measures_cpu(events.meter):
        if files.meter is not None:
            files.meter.close()
        events.meter.facts["not powercap"] = "; ".join(
            absence.reason for absence in first.absences if absence.kind == "cpu"
        )
        return second
    if events.meter is not None:
        events.meter.close()
    return Found(first.meters, [*first.absences, *(a for a in second.absences if a.kind != "dram")])


def _by_pyrapl(sysfs: Path, cpu: Processor) -> Found:
    from ckptcost.meters import rapl_pyrapl

    if sysfs != REAL:
        return Found(
            (),
            [
                Absence(
                    "rapl pyrapl",
                    f"pyRAPL reads /sys and cannot be told to read {sysfs}",
                    "--rapl powercap",
                    "cpu",
                )
            ],
        )
    return rapl_pyrapl.find(sysfs=sysfs, cpu=cpu)


class Difference(NamedTuple):
    """What two meters said of one counter over the same readings; NaN where one of them did not
    say."""

    domain: str
    ours_j: float
    theirs_j: float
    apart_j: float
    """the most that two readings taken together were apart: no more than what a processor uses
    between two reads of the file"""


def crosscheck(
    ours: Meter, theirs: Meter, readings: Sequence[tuple[Sequence[float], Sequence[float]]]
) -> tuple[Difference, ...]:
    """Two ways to the same counters held against each other; `readings` are pairs taken right after
    each other.

    A wrap is undone where the range is known. Domains of one meter only come with NaN for the
    other.
    """
    left = {channel.domain: i for i, channel in enumerate(ours.channels)}
    right = {channel.domain: i for i, channel in enumerate(theirs.channels)}
    wraps_at = {channel.domain: channel.wraps_at for channel in (*theirs.channels, *ours.channels)}
    found = []
    for domain in dict.fromkeys((*left, *right)):
        mine = [pair[0][left[domain]] for pair in readings] if domain in left else []
        other = [pair[1][right[domain]] for pair in readings] if domain in right else []
        turn = wraps_at[domain]
        apart = max(
            (_apart(a, b, turn) for a, b in zip(mine, other, strict=False)),
            key=lambda d: (d == d, d),
            default=math.nan,
        )
        found.append(Difference(domain, _grown(mine, turn), _grown(other, turn), apart))
    return tuple(found)


def _grown(values: Sequence[float], wraps_at: float | None) -> float:
    """Joules from the first to the last reading; NaN with fewer than two, or where it fell for no
    known reason."""
    known = [value for value in values if value == value]
    if len(known) < 2:
        return math.nan
    total = 0.0
    for before, after in pairwise(known):
        step = after - before
        if step < 0.0:
            step = step + wraps_at if wraps_at is not None else math.nan
        total += step
    return total


def _apart(mine: float, other: float, wraps_at: float | None) -> float:
    apart = abs(mine - other)
    return apart if wraps_at is None else min(apart, abs(wraps_at - apart))
