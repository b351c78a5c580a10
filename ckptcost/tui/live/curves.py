"""From readings to the curves of the live screen: power, storage rates, queue. A sum of which a
part is unknown is a gap."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import Any, NamedTuple

from ckptcost.core.channels import Channel
from ckptcost.core.reconcile import chosen
from ckptcost.tui.live.bins import Bins, Stretch

GPU_KINDS = ("gpu", "module")
HOST_KINDS = ("cpu", "dram", "core", "uncore", "psys")
EACH_MOST = 8
"""so many GPUs may have a curve each; of more there is their mean with the least and the most"""
HOLD_S = 2.5
"""an answer counts for so long; of a meter that may be asked less often, two and a half times
that"""
NOW_S = 1.0
"""what stands as "now" is the mean of so much: single readings jump with every training step"""
_CARRY_S = 2.0
"""over a longer silence no curve is drawn"""

Row = Sequence[Any]


@dataclass(slots=True)
class Probe:
    """One number as it is now: a gauge's value, or how fast a counter grows."""

    slot: int
    place: int
    channel: Channel
    least_s: float
    """a counter's two readings are no closer: nearer ones tell of its ticks"""
    hold_s: float
    now: float = nan
    low: float = nan
    high: float = nan
    at_s: float = -1e9
    _before: float = nan
    _before_s: float = nan
    _newest: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=128))
    """of the last second: when, and the value"""

    def see(self, t_s: float, entry: Any) -> None:
        low = high = nan
        if type(entry) is list:
            if self.channel.is_counter:
                if len(entry) > 1 and isinstance(entry[1], int | float):
                    t_s -= entry[1] * 1e-9
            elif len(entry) > 2:
                low, high = entry[1], entry[2]
            entry = entry[0]
        if entry is None or not isfinite(entry):
            return
        if not self.channel.is_counter:
            self.now, self.at_s = entry, t_s
            self.low, self.high = (entry, entry) if low != low else (low, high)
            self._remember()
            return
        passed_s = t_s - self._before_s
        if passed_s < self.least_s:
            return
        grown = entry - self._before
        if grown < 0:
            grown = grown + self.channel.wraps_at if self.channel.wraps_at else nan
        if passed_s == passed_s and passed_s <= max(4 * self.hold_s, 4 * self.least_s):
            # nothing takes 0 W: a counter of joules that stands still does not count
            stuck = grown == 0 and self.channel.quantity == "energy_j"
            self.now = self.low = self.high = nan if stuck else grown / passed_s
            self.at_s = t_s
            self._remember()
        self._before, self._before_s = entry, t_s

    def _remember(self) -> None:
        self._newest.append((self.at_s, self.now))
        while self._newest[0][0] <= self.at_s - NOW_S:
            self._newest.popleft()

    @property
    def answered(self) -> bool:
        """It has told a number, if only before it was lost."""
        return any(value == value for _, value in self._newest)

    def value(self, t_s: float) -> float:
        return self.now if t_s - self.at_s <= self.hold_s else nan

    def lately(self, t_s: float) -> float:
        """What is shown as "now", on every table and above every trace: the mean of its newest
        second."""
        if self.value(t_s) != self.now:
            return nan
        known = [value for _, value in self._newest if value == value]
        return sum(known) / len(known)


class Sources(NamedTuple):
    """Which probes a curve is the sum of."""

    gpus: tuple[Probe, ...]
    """one a card, by number"""
    host: tuple[Probe, ...]
    node: tuple[Probe, ...]
    writes: tuple[Probe, ...]
    reads: tuple[Probe, ...]
    queue: tuple[Probe, ...]
    gpu_more: tuple[dict[str, Probe], ...]
    """beside `gpus`: utilisation, memory_used_bytes, temperature_c"""

    @property
    def all(self) -> list[Probe]:
        return [
            *self.gpus,
            *self.host,
            *self.node,
            *self.writes,
            *self.reads,
            *self.queue,
            *(p for more in self.gpu_more for p in more.values()),
        ]


def number_of(domain: str) -> int:
    """7 of `gpu:7`; names without a number come last."""
    word = domain.partition(":")[2].partition(".")[0]
    return int(word) if word.isdigit() else 1 << 30


def sources_of(
    slots: Sequence[tuple[Sequence[Channel], float]], has_value: Callable[[int, int], bool]
) -> Sources:
    """`slots` are meters: channels, and how often they may be asked. Which channels speak is
    decided as the report decides it."""
    places = [
        (slot, place, channel, least_s)
        for slot, (channels, least_s) in enumerate(slots)
        for place, channel in enumerate(channels)
    ]
    channels = [channel for _, _, channel, _ in places]
    said = [has_value(slot, place) for slot, place, _, _ in places]
    told = chosen(channels, said)
    domains = list(dict.fromkeys(channels[n].domain for n in told.parts))

    def probe(n: int) -> Probe:
        slot, place, channel, least_s = places[n]
        tick_s = channel.tick_s or 0.0
        apart_s = (
            max(0.05, 2.5 * tick_s, 0.2 if channel.quantity == "energy_j" else 0.0)
            if channel.is_counter
            else 0.0
        )
        return Probe(slot, place, channel, apart_s, max(HOLD_S, 2.5 * max(least_s, tick_s)))

    def watts(domain: str, among: Sequence[int]) -> Probe:
        """Its own watts where it has them, which need no difference of ticks; else what counts."""
        same = [
            n
            for n, c in enumerate(channels)
            if c.domain == domain and c.quantity == "power_w" and c.role != "detail" and said[n]
        ]
        counted = next(n for n in among if channels[n].domain == domain)
        same = [n for n in same if channels[n].basis == channels[counted].basis]
        return probe(min(same, key=lambda n: channels[n].averaging_s or 0.0) if same else counted)

    def of_kind(*kinds: str) -> list[str]:
        return [domain for domain in domains if domain.split(":", 1)[0] in kinds]

    def storage(quantity: str) -> tuple[Probe, ...]:
        disks = [
            n
            for n, c in enumerate(channels)
            if c.quantity == quantity and c.role == "part" and c.kind_of_domain in ("disk", "mount")
        ]
        if not disks and quantity in ("written_bytes", "read_bytes"):
            disks = [
                n
                for n, c in enumerate(channels)
                if c.quantity == quantity and c.kind_of_domain == "process"
            ]
        return tuple(probe(n) for n in disks)

    cards = sorted(of_kind(*GPU_KINDS), key=number_of)
    wholes = [n for n in told.wholes if channels[n].kind_of_domain == "node"][:1]
    more = tuple(
        {
            str(c.quantity): probe(n)
            for n, c in enumerate(channels)
            if c.domain == domain
            and c.quantity in ("utilisation", "memory_used_bytes", "temperature_c")
        }
        for domain in cards
    )
    return Sources(
        tuple(watts(domain, told.parts) for domain in cards),
        tuple(watts(domain, told.parts) for domain in of_kind(*HOST_KINDS)),
        tuple(watts(channels[n].domain, wholes) for n in wholes),
        storage("written_bytes"),
        storage("read_bytes"),
        storage("queue_s") or storage("in_flight"),
        more,
    )


GPU, EACH, HOST, NODE, WRITE, READ, QUEUE, FIRST_GPU = range(8)
"""rows of the bins; from FIRST_GPU on one for each GPU, where they are few"""


class Curves:
    """Told of every reading in order of time."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._by_slot: dict[int, list[Probe]] = {}
        for probe in sources.all:
            self._by_slot.setdefault(probe.slot, []).append(probe)
        self._own = len(sources.gpus) if len(sources.gpus) <= EACH_MOST else 0
        self.bins = Bins(FIRST_GPU + self._own)
        self.last_s = -1.0

    def see(self, slot: int, t_s: float, row: Row) -> None:
        """One meter's answer; `put` follows when all of the instant are told."""
        for probe in self._by_slot.get(slot, ()):
            probe.see(t_s, row[probe.place])

    def put(self, from_s: float, t_s: float) -> None:
        """What is known at an instant, for the time since the one before, unless that is long
        ago."""
        own = self.sources
        each = [probe.value(t_s) for probe in own.gpus]
        known = [watts for watts in each if watts == watts]
        total = sum(each) if each else nan
        mean = sum(known) / len(known) if known else nan
        least, most = (min(known), max(known)) if known else (nan, nan)
        values = [
            total,
            mean,
            *(
                _sum(probes, t_s)
                for probes in (own.host, own.node, own.writes, own.reads, own.queue)
            ),
        ]
        lows, highs = list(values), list(values)
        lows[EACH], highs[EACH] = least, most
        if self._own:
            values += each
            lows += [
                probe.low if watts == watts else nan
                for probe, watts in zip(own.gpus, each, strict=True)
            ]
            highs += [
                probe.high if watts == watts else nan
                for probe, watts in zip(own.gpus, each, strict=True)
            ]
        if self.last_s >= 0 and from_s - self.last_s <= _CARRY_S:
            from_s = min(from_s, self.last_s + 0.2)
        self.bins.add(min(from_s, t_s), t_s, values, lows, highs)
        self.last_s = t_s

    def stretch(self, begin_s: float, end_s: float) -> Stretch:
        return self.bins.stretch(begin_s, end_s)


def _sum(probes: Sequence[Probe], t_s: float) -> float:
    return sum(probe.value(t_s) for probe in probes) if probes else nan


def now_of(probes: Sequence[Probe], t_s: float) -> float:
    """Of all together; unknown where one of them does not answer."""
    return sum(probe.lately(t_s) for probe in probes) if probes else nan
