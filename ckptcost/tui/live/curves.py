"""From readings to the curves of the live screen: power, storage rates, queue. A sum of which a
part is unknown is a gap."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.core.channels import Channel
from ckptcost.core.reconcile import chosen

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


Floats = NDArray[np.float64]
WIDTHS_S = (0.2, 1.0, 10.0)
"""each a whole multiple of the one before"""
KEPT = (3_000, 7_200, 8_640)
"""bins: 10 minutes, 2 hours, a day"""
LATE_S = 3.0
"""a wider bin is made when its time is over for so long"""
MOST_POINTS = 900
"""of one curve; more than a screen has dots"""


class Stretch(NamedTuple):
    """Part of the past. Rows of the arrays are curves."""

    t_s: Floats
    """middles of the bins"""
    mean: Floats
    low: Floats
    high: Floats


class _Level:
    def __init__(self, curves: int, width_s: float, kept: int) -> None:
        self.width_s, self.kept = width_s, kept
        self.sum = np.zeros((curves, kept))
        self.count = np.zeros((curves, kept))
        self.low = np.full((curves, kept), np.nan)
        self.high = np.full((curves, kept), np.nan)
        self.last = -1
        """number of the newest bin; bin 0 begins at 0 s"""

    def reach(self, bin_: int) -> None:
        """The newest bin is this one: those passed over are empty."""
        if self.last < 0:
            self.last = bin_ - 1
        new = min(bin_ - self.last, self.kept)
        if new <= 0:
            return
        slots = np.arange(bin_ - new + 1, bin_ + 1) % self.kept
        self.sum[:, slots] = self.count[:, slots] = 0.0
        self.low[:, slots] = self.high[:, slots] = np.nan
        self.last = bin_

    def put(self, bin_: int, total: Floats, count: Floats, low: Floats, high: Floats) -> None:
        if bin_ <= self.last - self.kept:
            return
        slot = bin_ % self.kept
        self.sum[:, slot] += total
        self.count[:, slot] += count
        self.low[:, slot] = np.fmin(self.low[:, slot], low)
        self.high[:, slot] = np.fmax(self.high[:, slot], high)

    def taken(self, first: int, end: int) -> tuple[Floats, Floats, Floats]:
        """Mean, low and high of bins [first, end); NaN where there was nothing."""
        first = max(first, self.last - self.kept + 1, 0)
        slots = np.arange(first, max(end, first)) % self.kept
        with np.errstate(invalid="ignore"):
            mean = self.sum[:, slots] / self.count[:, slots]
        return mean, self.low[:, slots], self.high[:, slots]


class Bins:
    """Values come in order of time; what is older than the oldest bin is forgotten."""

    def __init__(self, curves: int) -> None:
        self.curves = curves
        self._levels = [
            _Level(curves, width_s, kept) for width_s, kept in zip(WIDTHS_S, KEPT, strict=True)
        ]
        self._made = [0, 0, 0]
        """by level: bins before this one have been made of the level below"""

    def add(
        self,
        from_s: float,
        to_s: float,
        values: Sequence[float],
        lows: Sequence[float],
        highs: Sequence[float],
    ) -> None:
        """One value of each curve for all bins between two instants; NaN is nothing."""
        fine = self._levels[0]
        first, last = (
            max(int(from_s / fine.width_s + 1e-6), 0),
            max(int(to_s / fine.width_s + 1e-6), 0),
        )
        if last < fine.last - fine.kept:
            return
        if last > fine.last:
            fine.reach(last)
        at, low, high = np.asarray(values), np.asarray(lows), np.asarray(highs)
        known = np.isfinite(at)
        total, count = np.where(known, at, 0.0), known.astype(np.float64)
        for bin_ in range(max(first, last - fine.kept + 1), last + 1):
            fine.put(bin_, total, count, low, high)
        self._widen(to_s)

    def _widen(self, now_s: float) -> None:
        for place in (1, 2):
            below, level = self._levels[place - 1], self._levels[place]
            ratio = round(level.width_s / below.width_s)
            until = int((now_s - LATE_S) / level.width_s)  # bins before this one are over
            if until <= self._made[place]:
                continue
            first = max(self._made[place], (below.last - below.kept + 1) // ratio + 1, 0)
            level.reach(until - 1)
            for bin_ in range(first, until):
                level.put(bin_, *_merged(*below.taken(bin_ * ratio, (bin_ + 1) * ratio)))
            self._made[place] = until

    def stretch(self, begin_s: float, end_s: float) -> Stretch:
        """From the finest bins that reach back so far and are not too many."""
        span_s = end_s - begin_s
        place = 0
        while place < 2 and (
            span_s / WIDTHS_S[place] > 2 * MOST_POINTS or begin_s < self._oldest_s(place)
        ):
            place += 1
        return self._thinned(self._taken(place, begin_s, end_s))

    def _oldest_s(self, place: int) -> float:
        level = self._levels[place]
        return (level.last - level.kept + 1) * level.width_s

    def _taken(self, place: int, begin_s: float, end_s: float) -> Stretch:
        """Bins of one level, and for the newest, which are not made yet, those of the level below
        put together."""
        level = self._levels[place]
        first, end = max(int(begin_s / level.width_s), 0), max(int(end_s / level.width_s) + 1, 0)
        newest = self._levels[0].last * WIDTHS_S[0]
        if place == 0:
            end = min(end, level.last + 1)
            return self._of(place, first, end, level.taken(first, end))
        made = min(end, self._made[place])
        done = self._of(place, first, made, level.taken(first, made))
        from_s = max(self._made[place] * level.width_s, begin_s)
        if end_s <= from_s or newest < from_s:
            return done
        rest = self._taken(place - 1, from_s, end_s)
        ratio = round(level.width_s / WIDTHS_S[place - 1])
        return _joined(done, _grouped(rest, ratio))

    def _of(self, place: int, first: int, end: int, rows: tuple[Floats, Floats, Floats]) -> Stretch:
        count = rows[0].shape[1]
        t_s = (np.arange(end - count, end) + 0.5) * WIDTHS_S[place]
        return Stretch(t_s, *rows)

    def _thinned(self, stretch: Stretch) -> Stretch:
        return (
            _grouped(stretch, -(-len(stretch.t_s) // MOST_POINTS))
            if len(stretch.t_s) > MOST_POINTS
            else stretch
        )


def _merged(mean: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Several bins as one: sum and count of the means, so that each bin counts alike."""
    known = np.isfinite(mean)
    total = np.where(known, mean, 0.0).sum(axis=1)
    return total, known.sum(axis=1).astype(np.float64), _least(low), -_least(-high)


def _least(rows: Floats) -> Floats:
    """NaN only where all are."""
    if not rows.shape[1]:
        return np.full(rows.shape[0], np.nan)
    least: Floats = np.fmin.reduce(rows, axis=1)
    return least


def _grouped(stretch: Stretch, ratio: int) -> Stretch:
    """Each `ratio` bins as one."""
    count = len(stretch.t_s)
    if not count or ratio <= 1:
        return stretch
    starts = np.arange(0, count, ratio)
    known = np.isfinite(stretch.mean)
    sums = np.add.reduceat(np.where(known, stretch.mean, 0.0), starts, axis=1)
    counts = np.add.reduceat(known.astype(np.float64), starts, axis=1)
    with np.errstate(invalid="ignore"):
        mean = sums / counts
    middles = np.add.reduceat(stretch.t_s, starts) / np.add.reduceat(np.ones(count), starts)
    return Stretch(
        middles,
        mean,
        np.fmin.reduceat(stretch.low, starts, axis=1),
        np.fmax.reduceat(stretch.high, starts, axis=1),
    )


def _joined(one: Stretch, other: Stretch) -> Stretch:
    return Stretch(
        np.concatenate([one.t_s, other.t_s]),
        *(np.concatenate(pair, axis=1) for pair in zip(one[1:], other[1:], strict=True)),
    )


@dataclass(slots=True)
class Sum:
    """Of one domain, from the channel that speaks for it."""

    slot: int
    place: int
    channel: Channel
    hold_s: float = HOLD_S
    joules: float = nan
    missed_s: float = 0.0
    """time of which nothing is known; of a counter there is none"""
    _before: float = nan
    _before_s: float = nan

    def see(self, t_s: float, entry: Any) -> None:
        counter = self.channel.is_counter
        if type(entry) is list:
            if counter and len(entry) == 2 and isinstance(entry[1], int | float):
                t_s -= entry[1] * 1e-9
            entry = entry[0]
        if entry is None or not isfinite(entry):
            return
        passed_s = t_s - self._before_s
        if passed_s <= 0:
            return
        if passed_s == passed_s:  # not the first one
            added = self._grown(entry) if counter else (entry + self._before) / 2 * passed_s
            if added != added or (not counter and passed_s > self.hold_s):
                self.missed_s += passed_s
            else:
                self.joules = added if self.joules != self.joules else self.joules + added
        self._before, self._before_s = entry, t_s

    def _grown(self, value: float) -> float:
        grown = value - self._before
        if grown >= 0:
            return grown
        return grown + self.channel.wraps_at if self.channel.wraps_at else nan


def total_j(sums: Sequence[Sum]) -> float:
    """Of all, or unknown: a sum that leaves one out is not the sum, and a counter that stands at 0
    does not count."""
    return sum(one.joules or nan for one in sums) if sums else nan
