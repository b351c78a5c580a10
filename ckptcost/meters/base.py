"""What every meter is: channels, a `read(t)`, and a reason with a remedy where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from ckptcost.core.channels import Channel

NOTHING = float("nan")
"""a channel that did not answer this time"""


class Absence(NamedTuple):
    """Something that cannot be measured here: why, and what would change that."""

    what: str
    """meter and domain: `rapl`, `nvml gpu:3`"""
    reason: str
    remedy: str = ""
    kind: str = ""
    """gpu, cpu, dram, storage, node: what a user would ask for"""


class Event(NamedTuple):
    """Something a meter noticed while reading: a device that is gone, one that is back, a driver
    that was reloaded."""

    name: str
    """lost, found, restarted, note"""
    domain: str
    text: str


@runtime_checkable
class Meter(Protocol):
    """`read` is called from one thread, at most every `least_s` and, at rest, every `period_s`."""

    events: list[Event]
    """filled by `read`, emptied by the caller"""

    @property
    def name(self) -> str:
        """nvml, rapl, block ...; what `--meters` takes"""

    @property
    def channels(self) -> Sequence[Channel]: ...

    @property
    def least_s(self) -> float:
        """asking more often tells nothing new or disturbs: 0 for counters in memory, 1 for a BMC"""

    @property
    def simulated(self) -> bool: ...

    @property
    def facts(self) -> Mapping[str, str]:
        """driver, library, backend: for the header of a run"""

    def read(self, t_ns: int) -> Sequence[float]:
        """One value a channel, NaN where there is no answer. Raises MeterLost when the whole meter
        is gone."""

    def close(self) -> None: ...


class Found(NamedTuple):
    """What looking for one kind of meter gave: meters that answer, and reasons for what does
    not."""

    meters: Sequence[Meter]
    absences: Sequence[Absence] = ()


@dataclass
class Basic:
    """What most meters begin with."""

    name: str
    channels: tuple[Channel, ...] = ()
    least_s: float = 0.0
    events: list[Event] = field(default_factory=list)
    simulated: bool = False
    facts: dict[str, str] = field(default_factory=dict)

    def close(self) -> None:
        """Nothing to give back."""
