"""What every meter is: channels, a `read(t)`, and a reason with a remedy where there is none."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from ckptcost.first.core.channels import Channel

NOTHING = float("nan")
"""a channel that did not answer this time"""
RETRY_NS = 1_000_000_000
"""a device that fell silent is looked for again at most so often, where looking costs"""
A_HICCUP = 1
"""a driver's single answer that is missing is a NaN and no news"""


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


class FoundMeters(NamedTuple):
    """What looking for one kind of meter gave: meters that answer, and reasons for what does
    not."""

    meters: Sequence[Meter]
    absences: Sequence[Absence] = ()


def none_found(what: str, reason: str, remedy: str = "", kind: str = "") -> FoundMeters:
    return FoundMeters((), (Absence(what, reason, remedy, kind),))


@dataclass
class Basic:
    """What most meters begin with."""

    name: str
    channels: tuple[Channel, ...] = ()
    least_s: float = 0.0
    events: list[Event] = field(default_factory=list)
    simulated: bool = False
    facts: dict[str, str] = field(default_factory=dict)

    def tell(self, name: str, domain: str, text: str) -> None:
        self.events.append(Event(name, domain, text))

    def close(self) -> None:
        """Nothing to give back."""


@dataclass(slots=True)
class Silence:
    """A source that does not answer."""

    misses: int = 0
    """answers missing in a row"""
    is_lost: bool = False
    """it was told"""
    again_ns: int = 0
    """no use in asking before"""


@dataclass
class Channelwise(Basic):
    """A meter of several sources, which fall silent one by one while the others answer on.

    A source is whatever is asked at once: a device, a file, a call. While it gives no answer its
    channels are NaN; it is told once as lost and once as found, under its own name or the domains
    given.
    """

    silent: dict[Hashable, Silence] = field(default_factory=dict)
    """the sources that gave no answer when they were last asked"""
    grace_ns: int = 0
    """how long all may be silent before the meter is gone"""
    silent_since_ns: int | None = None
    """from when on all were"""

    def is_due(self, source: Hashable, t_ns: int) -> bool:
        """Whether a source is worth asking: it answers, or was left alone for as long as was
        said."""
        silence = self.silent.get(source)
        return silence is None or t_ns >= silence.again_ns

    def is_lost(self, source: Hashable) -> bool:
        return source in self.silent and self.silent[source].is_lost

    def note_missing(
        self,
        source: Hashable,
        why: str,
        *domains: str,
        t_ns: int = 0,
        wait_ns: int = 0,
        news_at: int = 1,
    ) -> float:
        """NaN, for a source that gave no answer. It is lost from the miss `news_at` in a row on,
        and then not due for `wait_ns`."""
        silence = self.silent.setdefault(source, Silence())
        silence.misses += 1
        if silence.misses < news_at:
            return NOTHING
        if t_ns >= silence.again_ns:
            silence.again_ns = t_ns + wait_ns
        if not silence.is_lost:
            silence.is_lost = True
            for domain in domains or (str(source),):
                self.tell("lost", domain, why)
        return NOTHING

    def all_silent(self, t_ns: int, sources: Iterable[Hashable]) -> bool:
        """Whether all of these have been lost for as long as the meter bears."""
        if not all(map(self.is_lost, sources)):
            self.silent_since_ns = None
        elif self.silent_since_ns is None:
            self.silent_since_ns = t_ns
        return self.silent_since_ns is not None and t_ns - self.silent_since_ns >= self.grace_ns

    def note_answer(self, source: Hashable, how: str = "answers again", *domains: str) -> None:
        """A source gave an answer, which is news only where it was lost."""
        silence = self.silent.pop(source, None)
        if silence is not None and silence.is_lost:
            for domain in domains or (str(source),):
                self.tell("found", domain, how)
