"""Meters that say what formulas say, and what a recording of them comes to: for tests whose oracle
is the formula."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ckptcost.first.core.channels import Channel, Mark
from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.jobs.measured import Measured, evaluate
from ckptcost.first.jobs.recording import Recorded, record
from ckptcost.first.meters.base import Basic
from ckptcost.first.runs.clocks import VirtualClock

Says = Mapping[Channel, Callable[[float], float]]


class Told(Basic):
    """Each channel answers with a function of the second that it is asked in."""

    def __init__(self, name: str, says: Says, **more: Any) -> None:
        super().__init__(name, tuple(says), **more)
        self._says = tuple(says.values())

    def read(self, t_ns: int) -> Sequence[float]:
        return [float(say(t_ns / 1e9)) for say in self._says]


def energy(domain: str, source: str = "told", **more: Any) -> Channel:
    return Channel(domain, "energy_j", source, **more)


def watts(domain: str, source: str = "told", **more: Any) -> Channel:
    return Channel(domain, "power_w", source, **more)


def at(power_w: float, tick_s: float = 0.0) -> Callable[[float], float]:
    """A counter of a steady load, renewed every so often."""
    return lambda t_s: power_w * ((t_s + 1e-9) // tick_s * tick_s if tick_s else t_s)


def said(text: str, window: str = "w", **more: Any) -> list[Mark]:
    """`begin 5, returned 7` as marks."""
    return [
        Mark(float(t_s), name, window, **more)
        for name, t_s in (word.split() for word in text.split(","))
    ]


def recorded(
    *meters: Basic, for_s: float = 20.0, marks: Iterable[Mark] = (), directory: Path | None = None
) -> Recorded:
    return record(Instruments(meters, (), VirtualClock(0), list(marks)), for_s, directory)


def evaluated(
    *meters: Basic, for_s: float = 20.0, marks: Iterable[Mark] = (), **more: Any
) -> Measured:
    seen = recorded(*meters, for_s=for_s, marks=marks)
    return evaluate(seen.run, seen.begin_s, seen.end_s, **more)
