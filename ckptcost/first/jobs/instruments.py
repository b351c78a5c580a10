"""What reads, and on which clock: this machine's meters, a simulated machine, or a run read
again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ckptcost.first.core.channels import Mark
from ckptcost.first.errors import Argument, InputError, MeterUnavailable
from ckptcost.first.meters.base import Absence, Meter
from ckptcost.first.meters.found import Wanted, find_meters
from ckptcost.first.runs.clocks import Clock, RealClock, VirtualClock

REPLAY = "replay:"


class Instruments(NamedTuple):
    meters: Sequence[Meter]
    absences: Sequence[Absence]
    clock: Clock
    marks: Sequence[Mark] = ()
    """what a simulated or replayed job says, in seconds on the clock"""

    @property
    def simulated(self) -> bool:
        return any(meter.simulated for meter in self.meters)


def instruments(spec: str, wanted: Wanted, for_s: float) -> Instruments:
    """`auto`, `simulated`, `replay:PATH`, or names of meters with commas between."""
    words = [word.strip() for word in spec.split(",")]
    if spec.startswith(REPLAY):
        return _replayed_instruments(spec.removeprefix(REPLAY))
    if "simulated" in words:
        if len(words) > 1:
            raise mixes_meters()
        return _simulated_instruments(for_s)
    if not all(words):
        raise InputError(
            "names no meter", where=Argument("meters"), remedy="`ckptcost doctor` lists them"
        )
    named = tuple(word for word in words if word != "auto")
    seen = find_meters(
        replace(wanted, also=named) if "auto" in words else replace(wanted, names=named)
    )
    return Instruments(seen.meters, seen.absences, RealClock())


def mixes_meters() -> InputError:
    return InputError(
        "a simulated machine does not mix with real meters",
        where=Argument("meters"),
        remedy="give one or the other",
    )


def _simulated_instruments(for_s: float) -> Instruments:
    """A machine with 8 cards that saves once a minute; the clock's second 0 is the plan's."""
    from ckptcost.first.meters import simulated
    from ckptcost.first.meters.simulated_machine import MachinePlan, marks

    plan = MachinePlan()
    seen = simulated.find(plan, origin_ns=0)
    clock = VirtualClock(0)
    return Instruments(
        seen.meters, seen.absences, clock, list(marks(plan, 0.0, for_s + plan.interval_s))
    )


def _replayed_instruments(path: str) -> Instruments:
    """A run's readings as meters. For a screen; what is computed from a run is computed from the
    run itself."""
    from ckptcost.first.meters.replay import MeterTape, RunReplay
    from ckptcost.first.runs.reader import load

    run = load(path)
    node = run.nodes[0]
    tapes = [
        MeterTape(
            meter.name,
            meter.channels,
            [node.series(channel) for channel in meter.channels],
            meter.least_s,
            dict(meter.facts),
        )
        for meter in node.headers[-1].meters
    ]
    if not tapes:
        raise MeterUnavailable(f"{Path(path).name}: holds no readings")
    replay = RunReplay(run.id[:8], tapes, run.marks)
    marks = [mark._replace(t_s=mark.t_s - replay.begin_s) for mark in run.marks]
    return Instruments(replay.meters, (), VirtualClock(0), marks)
