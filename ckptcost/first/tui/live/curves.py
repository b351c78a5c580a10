"""From readings to the curves of the live screen: power, storage rates, queue. A sum of which a
part is unknown is a gap."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress
from math import isfinite, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.channels import Channel, Quantity
from ckptcost.first.core.reconcile import chosen

GPU_KINDS = ("gpu", "module")
HOST_KINDS = ("cpu", "dram", "core", "uncore", "psys")
BESIDE = ("utilisation", "memory_used_bytes", "temperature_c")
"""what is shown of a GPU beside its power"""
EACH_MOST = 8
"""so many GPUs may have a curve each; of more there is their mean with the least and the most"""
HOLD_S = 2.5
"""an answer counts for so long; of a meter that may be asked less often, two and a half times
that"""
NOW_S = 1.0
"""what stands as "now" is the mean of so much: single readings jump with every training step"""
_CARRY_S = 2.0
"""over a longer silence no curve is drawn"""


def _told(channel: Channel, t_s: float, entry: Any) -> tuple[float, float]:
    """When a value was true, and the value; NaN where there is none. A counter may say how old its
    value is, a gauge between which it moved."""
    if type(entry) is list:
        if channel.is_counter and len(entry) > 1 and isinstance(entry[1], int | float):
            t_s -= entry[1] * 1e-9
        entry = entry[0]
    return t_s, nan if entry is None or not isfinite(entry) else entry


def _grown(channel: Channel, before: float, value: float) -> float:
    """A step back is a wrap, or unknown."""
    grown = value - before
    if grown >= 0:
        return grown
    return grown + channel.wraps_at if channel.wraps_at else nan


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
    at_s: float = -1e9
    _before: float = nan
    _before_s: float = nan
    _newest: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=128))
    """of the last second: when, and the value"""

    def see(self, t_s: float, entry: Any) -> None:
        t_s, value = _told(self.channel, t_s, entry)
        if value != value:
            return
        if not self.channel.is_counter:
            self._remember(t_s, value)
            return
        passed_s = t_s - self._before_s
        if passed_s < self.least_s:
            return
        if passed_s <= 4 * max(self.hold_s, self.least_s):
            grown = _grown(self.channel, self._before, value)
            # nothing takes 0 W: a counter of joules that stands still does not count
            stuck = grown == 0 and self.channel.quantity == "energy_j"
            self._remember(t_s, nan if stuck else grown / passed_s)
        self._before, self._before_s = value, t_s

    def _remember(self, t_s: float, value: float) -> None:
        self.at_s, self.now = t_s, value
        self._newest.append((t_s, value))
        while self._newest[0][0] <= t_s - NOW_S:
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


@dataclass(slots=True)
class DomainSum:
    """Of one domain, from the channel that speaks for it."""

    slot: int
    place: int
    channel: Channel
    hold_s: float = HOLD_S
    joules: float = nan
    _before: float = nan
    _before_s: float = nan

    def see(self, t_s: float, entry: Any) -> None:
        t_s, value = _told(self.channel, t_s, entry)
        passed_s = t_s - self._before_s
        if value != value or passed_s <= 0:
            return
        if self.channel.is_counter:
            added = _grown(self.channel, self._before, value)
        else:
            added = (value + self._before) / 2 * passed_s if passed_s <= self.hold_s else nan
        if added == added:  # neither the first one nor after a time of which nothing is known
            self.joules = added if self.joules != self.joules else self.joules + added
        self._before, self._before_s = value, t_s


def total_j(sums: Sequence[DomainSum]) -> float:
    """Of all, or unknown: a sum that leaves one out is not the sum, and a counter that stands at 0
    does not count."""
    return sum(one.joules or nan for one in sums) if sums else nan


class ChannelPlace(NamedTuple):
    """A channel of a meter, and how often that may be asked."""

    slot: int
    place: int
    channel: Channel
    least_s: float

    def probe(self) -> Probe:
        channel, tick_s = self.channel, self.channel.tick_s or 0.0
        apart_s = 0.0
        if channel.is_counter:
            apart_s = max(0.05, 2.5 * tick_s, 0.2 if channel.quantity == "energy_j" else 0.0)
        hold_s = max(HOLD_S, 2.5 * max(self.least_s, tick_s))
        return Probe(self.slot, self.place, channel, apart_s, hold_s)


class Sources(NamedTuple):
    """Which probes a curve is the sum of: the first six are `rows` of the bins."""

    gpus: tuple[Probe, ...] = ()
    """one a card, by number"""
    host: tuple[Probe, ...] = ()
    node: tuple[Probe, ...] = ()
    writes: tuple[Probe, ...] = ()
    reads: tuple[Probe, ...] = ()
    queue: tuple[Probe, ...] = ()
    gpu_more: tuple[dict[str, Probe], ...] = ()
    """beside `gpus`, by quantity"""
    counted: tuple[ChannelPlace, ...] = ()
    """what speaks for a domain"""

    @property
    def rows(self) -> tuple[tuple[Probe, ...], ...]:
        return self[:6]

    @property
    def power_probes(self) -> tuple[Probe, ...]:
        """What takes the power that is drawn."""
        return (*self.gpus, *self.host, *self.node)


def sources_of(places: Sequence[ChannelPlace], answered: Container[tuple[int, int]]) -> Sources:
    """Which channels speak is decided as the report decides it; `answered`: slot and place of those
    that have told a value."""
    said = [place[:2] in answered for place in places]
    told = chosen([place.channel for place in places], said)
    parts, wholes = ([places[n] for n in each] for each in (told.parts, told.wholes))
    gauges = [
        place
        for place in compress(places, said)
        if place.channel.quantity == "power_w" and place.channel.role != "detail"
    ]
    cards = sorted(_of_kinds(parts, *GPU_KINDS), key=lambda card: _number_of(card.channel.domain))
    return Sources(
        _power(cards, gauges),
        _power(_of_kinds(parts, *HOST_KINDS), gauges),
        _power(_of_kinds(wholes, "node")[:1], gauges),
        _storage(places, "written_bytes"),
        _storage(places, "read_bytes"),
        _storage(places, "queue_s") or _storage(places, "in_flight"),
        tuple(_beside(card.channel.domain, places) for card in cards),
        (*parts, *wholes),
    )


def _of_kinds(places: Sequence[ChannelPlace], *kinds: str) -> list[ChannelPlace]:
    return [place for place in places if place.channel.kind_of_domain in kinds]


def _number_of(domain: str) -> int:
    """7 of `gpu:7`; names without a number come last."""
    word = domain.partition(":")[2].partition(".")[0]
    return int(word) if word.isdigit() else 1 << 30


def _power(counted: Sequence[ChannelPlace], gauges: Sequence[ChannelPlace]) -> tuple[Probe, ...]:
    """Of each its own watts where it has them, which need no difference of ticks; else what
    counts."""
    found = []
    for one in counted:
        about = one.channel.domain, one.channel.basis
        own = [gauge for gauge in gauges if (gauge.channel.domain, gauge.channel.basis) == about]
        best = min(own, key=lambda place: place.channel.averaging_s or 0.0, default=one)
        found.append(best.probe())
    return tuple(found)


def _storage(places: Sequence[ChannelPlace], quantity: Quantity) -> tuple[Probe, ...]:
    """Of what holds the bytes; where nothing is counted there, of the job that moves them."""
    of_it = [place for place in places if place.channel.quantity == quantity]
    parts = [p for p in _of_kinds(of_it, "disk", "mount") if p.channel.role == "part"]
    return tuple(place.probe() for place in parts or _of_kinds(of_it, "process"))


def _beside(domain: str, places: Sequence[ChannelPlace]) -> dict[str, Probe]:
    return {
        place.channel.quantity: place.probe()
        for place in places
        if place.channel.domain == domain and place.channel.quantity in BESIDE
    }


GPU, HOST, NODE, WRITE, READ, QUEUE, EACH, FIRST_GPU = range(8)
"""rows of the bins; from FIRST_GPU on one for each GPU, where they are few"""


class Curves:
    """Told of every reading in order of time."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._by_slot: dict[int, list[Probe]] = {}
        beside = (more.values() for more in sources.gpu_more)
        for probe in chain(*sources.rows, *beside):
            self._by_slot.setdefault(probe.slot, []).append(probe)
        self._own = len(sources.gpus) if len(sources.gpus) <= EACH_MOST else 0
        self.bins = Bins(FIRST_GPU + self._own)
        self.last_s = -1.0

    def see(self, slot: int, t_s: float, row: Sequence[Any]) -> None:
        """One meter's answer; `put` follows when all of the instant are told."""
        for probe in self._by_slot.get(slot, ()):
            probe.see(t_s, row[probe.place])

    def put(self, from_s: float, t_s: float) -> None:
        """What is known at an instant, for the time since the one before, unless that is long
        ago."""
        each = [probe.value(t_s) for probe in self.sources.gpus]
        known = [watts for watts in each if watts == watts]
        sums = [_sum(probes, t_s) for probes in self.sources.rows]
        own = each[: self._own]
        if self.last_s >= 0 and from_s - self.last_s <= _CARRY_S:
            from_s = min(from_s, self.last_s + 0.2)
        mean = sum(known) / len(known) if known else nan
        self.bins.add(
            min(from_s, t_s),
            t_s,
            [*sums, mean, *own],
            [*sums, min(known, default=nan), *own],
            [*sums, max(known, default=nan), *own],
        )
        self.last_s = t_s

    def stretch(self, begin_s: float, end_s: float) -> Stretch:
        return self.bins.stretch(begin_s, end_s)


def _sum(probes: Sequence[Probe], t_s: float) -> float:
    return sum(probe.value(t_s) for probe in probes) if probes else nan


def now_of(probes: Sequence[Probe], t_s: float) -> float:
    """Of all together; unknown where one of them does not answer."""
    return sum(probe.lately(t_s) for probe in probes) if probes else nan


Floats = NDArray[np.float64]
LEVELS = ((0.2, 3_000), (1.0, 7_200), (4.0, 5_400), (60.0, 1_440))
"""width of bins in seconds, and how many are kept: 10 minutes, 2 hours, 6 hours, a day"""
MOST_POINTS = 900
"""of one curve; more than a screen has dots"""
_QUICK_S = 0.02
"""a reading counts for so long at least"""


class Stretch(NamedTuple):
    """Part of the past. Rows of the arrays are curves."""

    t_s: Floats
    """middles of the bins"""
    mean: Floats
    low: Floats
    high: Floats


class _Level:
    """Bins of one width, in a ring; bin 0 begins at 0 s."""

    def __init__(self, curves: int, width_s: float, kept: int) -> None:
        self.width_s, self.kept, self.last = width_s, kept, -1
        self.sums = np.zeros((2, curves, kept))
        """values by their weights, and the weights"""
        self.ends = np.full((2, curves, kept), np.nan)
        """the least below zero, and the most"""

    def bin(self, t_s: float) -> int:
        return max(int(t_s / self.width_s + 1e-6), 0)

    def add(self, from_s: float, to_s: float, amounts: Floats, ends: Floats) -> None:
        """Into all bins between two instants, by how much of each lies between them."""
        last = self.bin(to_s)
        if last > self.last:  # those that were passed over are empty
            new = np.arange(max(self.last, last - self.kept) + 1, last + 1) % self.kept
            self.sums[..., new], self.ends[..., new] = 0.0, np.nan
            self.last = last
        for number in range(max(self.bin(from_s), self.last - self.kept + 1), last + 1):
            begin_s, slot = number * self.width_s, number % self.kept
            within_s = min(to_s, begin_s + self.width_s) - max(from_s, begin_s)
            self.sums[..., slot] += amounts * max(round(within_s / _QUICK_S), 1)
            self.ends[..., slot] = np.fmax(self.ends[..., slot], ends)

    @property
    def oldest(self) -> int:
        return max(self.last - self.kept + 1, 0)

    def stretch(self, begin_s: float, end_s: float) -> Stretch:
        """NaN where there was nothing."""
        first = max(int(begin_s / self.width_s), self.oldest)
        end = min(int(end_s / self.width_s), self.last) + 1
        bins = np.arange(first, max(end, first))
        (total, weight), (low, high) = (a[..., bins % self.kept] for a in (self.sums, self.ends))
        with np.errstate(invalid="ignore"):
            mean = total / weight
        return Stretch(((bins + 0.5) * self.width_s).astype(np.float64), mean, -low, high)


class Bins:
    """Values come in order of time; what is older than the oldest bin is forgotten."""

    def __init__(self, curves: int) -> None:
        self.curves = curves
        self._levels = [_Level(curves, width_s, kept) for width_s, kept in LEVELS]

    def add(
        self,
        from_s: float,
        to_s: float,
        values: Sequence[float],
        lows: Sequence[float],
        highs: Sequence[float],
    ) -> None:
        """One value of each curve for all bins between two instants; NaN is nothing."""
        at = np.asarray(values)
        known = np.isfinite(at)
        amounts = np.array([np.where(known, at, 0.0), known])
        ends = np.array([np.negative(lows), highs])
        for level in self._levels:
            level.add(from_s, to_s, amounts, ends)

    def stretch(self, begin_s: float, end_s: float) -> Stretch:
        """From the finest bins that reach back so far and are not too many."""
        level = next(
            (
                each
                for each in self._levels
                if (end_s - begin_s) / each.width_s <= MOST_POINTS
                and max(begin_s, 0.0) >= each.oldest * each.width_s
            ),
            self._levels[-1],
        )
        return level.stretch(begin_s, end_s)
