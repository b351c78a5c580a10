"""A node's readings as joules: for every domain the channel that speaks for it, and its joules from
one instant to another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core import counters, gauges
from ckptcost.first.core.attribution import Provenance, RunPlace, provenance
from ckptcost.first.core.channels import Channel, Quantity, Series
from ckptcost.first.core.counters import CountedAmount, Counter
from ckptcost.first.core.reconcile import ChosenChannels, chosen
from ckptcost.first.core.windows import Stretch
from ckptcost.first.runs.run import Node, Run
from ckptcost.first.runs.tables import key_of

GPU_KINDS = ("gpu:", "module:")
MOST_W = 20_000.0
"""no domain of a node takes more; what a counter does beyond it was a reset or a second wrap"""
MOST_SPANS = 20_000
"""kept at most: a few MB"""
LAST_TICKS = (2.0, 4.0, 8.0)
"""so long before its last answer a counter is known, published late or not"""
BEHIND_S, AHEAD_S = 60.0, 600.0
"""what of a long run is made ready beside a time that is asked for: what is asked for next, most
likely"""
SEEN = 2.5
"""a period that many quick polls long was seen, a shorter one was the polls' own"""


Floats = NDArray[np.float64]


def at_once() -> None:
    """Nobody waits meanwhile."""


class EnergySource(NamedTuple):
    """A domain and the channel whose joules stand for it."""

    domain: str
    place: int
    channel: Channel
    driver: str


class _Stretch(NamedTuple):
    """Part of a long run, with what was made of it."""

    begin_s: float
    end_s: float
    node: Node
    series: dict[int, Series]
    counters: dict[int, Counter]

    def holds(self, begin_s: float, end_s: float) -> bool:
        return self.begin_s <= begin_s and end_s <= self.end_s


class Doubts(NamedTuple):
    """What is published about a domain's sensor and in no range of ours."""

    looks: float | None
    accuracy: float | None
    of_counter: bool
    """said of the sensor of watts; whether the counter of joules shares it is not settled"""


class Energies:
    """The domains of one node: `parts` add up, `wholes` contain them, `details` lie inside."""

    def __init__(self, node: Node, breathe: Callable[[], None] = at_once) -> None:
        """`breathe` is called between amounts, each of which takes up to 2 ms: for a thread that
        others wait for."""
        self.node, self._breathe = node, breathe
        self.channels: Sequence[Channel] = node.channels
        self._all = self._near = _Stretch(-np.inf, np.inf, node, {}, {})
        """the whole run; and of a long one the stretch that was asked for last"""
        self._is_long = node.is_long
        self._spans: dict[tuple[str, float, float], CountedAmount] = {}
        self._drivers = drivers_of(node)
        least_s = {
            key_of(c): meter.least_s
            for header in node.headers
            for meter in header.meters
            for c in meter.channels
        }
        self._least_s = [least_s.get(key_of(channel), 0.0) for channel in self.channels]
        by_domain: dict[str, EnergySource] = {}
        for place in (*self.chosen.parts, *self.silent, *self.chosen.wholes, *self._details()):
            channel = self.channels[place]
            by_domain.setdefault(
                channel.domain,
                EnergySource(
                    channel.domain, place, channel, self._drivers.get(channel.kind_of_domain, "")
                ),
            )
        self.sources = by_domain

    @cached_property
    def chosen(self) -> ChosenChannels:
        return chosen(self.channels, [self.node.answered(channel) for channel in self.channels])

    @cached_property
    def silent(self) -> list[int]:
        """Parts that never answered and for which nothing else speaks: they are there, so a sum
        without them is not the sum."""
        told = {self.channels[place].domain for place in self.chosen.parts}
        found: dict[str, int] = {}
        for left in self.chosen.left_out:
            channel = self.channels[left.channel]
            if left.why == "NO_VALUE" and channel.role == "part" and channel.domain not in told:
                found.setdefault(channel.domain, left.channel)
        return list(found.values())

    def _details(self) -> list[int]:
        inside = [
            left.channel
            for left in self.chosen.left_out
            if left.why in ("DETAIL", "INSIDE", "COVERED", "OTHER_BOUNDARY")
        ]
        return sorted(inside, key=lambda place: not self.channels[place].is_counter)

    @property
    def parts(self) -> list[str]:
        return [self.channels[place].domain for place in (*self.chosen.parts, *self.silent)]

    @property
    def wholes(self) -> list[str]:
        return list(dict.fromkeys(self.channels[place].domain for place in self.chosen.wholes))

    @property
    def gpus(self) -> list[str]:
        """The parts that are cards, or modules of a card and its processor."""
        return [domain for domain in self.parts if domain.startswith(GPU_KINDS)]

    @property
    def nodes(self) -> list[str]:
        """The wholes that are all of a node."""
        return [domain for domain in self.wholes if domain.split(":")[0] == "node"]

    @property
    def gpu_count(self) -> float:
        """NaN where none is metered."""
        return float(len(set(self.gpus))) or np.nan

    @property
    def since_s(self) -> float:
        """When the first reading was taken."""
        ticked = self.node.ticked_s()
        return float(ticked[0, 0]) if len(ticked) else 0.0

    def places(self, wall_s: float) -> dict[str, RunPlace]:
        """Where and when its domains were read, which a baseline must agree with."""
        return {
            domain: RunPlace(self.node.host, source.driver, wall_s)
            for domain, source in self.sources.items()
        }

    @property
    def details(self) -> list[str]:
        told = {*self.parts, *self.wholes}
        return [domain for domain in self.sources if domain not in told]

    def series(self, place: int) -> Series:
        """All of it. Of a long run one is kept at a time."""
        return self._series(self._all, place)

    def _series(self, stretch: _Stretch, place: int) -> Series:
        if place not in stretch.series:
            if self._is_long and stretch is self._all:
                stretch.series.clear()
            stretch.series[place] = stretch.node.series(self.channels[place])
        return stretch.series[place]

    def _stretch(self, begin_s: float, end_s: float) -> _Stretch:
        """What an amount between two instants is worked out from: of a long run a part, unless that
        is most of it. Who asks in the order of time makes each part once."""
        if not self._is_long:
            return self._all
        if not self._near.holds(begin_s, end_s) or self._near is self._all:
            since_s, until_s = begin_s - BEHIND_S, max(end_s, begin_s + AHEAD_S)
            node = self.node.over(since_s, until_s)
            if 2 * len(node.tables) > len(self.node.tables):
                return self._all
            self._near = _Stretch(since_s, until_s, node, {}, {})
            self.forget()
        return self._near

    def over(self, begin_s: float, end_s: float) -> Energies:
        """The same with the readings of a time alone: for another process."""
        part = copy(self)
        part.node = self.node.over(begin_s - BEHIND_S, end_s + BEHIND_S)
        part._all = part._near = _Stretch(-np.inf, np.inf, part.node, {}, {})
        part._is_long, part._spans = part.node.is_long, {}
        return part

    def forget(self) -> None:
        """What was made of all of a long run."""
        self._all.series.clear()
        self._all.counters.clear()
        self.node.forget()

    def tick_s(self, domain: str) -> float | None:
        """How often its source renews the value: as measured where polling could see it, else as
        published."""
        return self._seen_s(self.sources[domain].channel)

    def joules(self, domain: str, begin_s: float, end_s: float) -> CountedAmount:
        """What it took from one instant to another. Windows, phases and tables ask for the same
        spans: each is worked out once."""
        self._breathe()
        asked = domain, begin_s, end_s
        if asked not in self._spans:
            if len(self._spans) >= MOST_SPANS:
                self._spans.clear()
            self._spans[asked] = self.of(self.sources[domain].place, begin_s, end_s)
        return self._spans[asked]

    def ahead(self, domains: Sequence[str], spans: Iterable[Stretch]) -> None:
        """Work out spans that will be asked for next: of a counter, many take hardly longer than
        one."""
        asked = sorted({span for span in spans if span[1] > span[0]})
        ends = [end_s for _, end_s in asked]
        if len(self._spans) + len(asked) * len(domains) > MOST_SPANS:
            self._spans.clear()
        for domain in domains:
            place = self.sources[domain].place
            new = [span for span in asked if (domain, *span) not in self._spans]
            if not new or not self.channels[place].is_counter:
                continue
            self._breathe()
            begins_s, ends_s = zip(*new, strict=True)
            counter = self._counter(self._stretch(asked[0][0], max(ends)), place)
            amounts = counter.energies(begins_s, ends_s)
            self._spans |= {
                (domain, *span): amount for span, amount in zip(new, amounts, strict=True)
            }

    def curves_ahead(self, domains: Sequence[str], spans: Sequence[Stretch]) -> None:
        """Find the ticks of curves that will be asked for next, a few at once."""
        if not spans:
            return
        since_s, until_s = spans[0][0], max(end_s for _, end_s in spans)
        for domain in domains:
            place = self.sources[domain].place
            if self.channels[place].is_counter:
                self._breathe()
                self._counter(self._stretch(since_s, until_s), place).around(np.array(spans))

    def of(self, place: int, begin_s: float, end_s: float) -> CountedAmount:
        channel, stretch = self.channels[place], self._stretch(begin_s, end_s)
        if not channel.is_counter:
            # a source that is asked no more often than it renews says itself when it does
            tick_s = (
                channel.tick_s if channel.tick_s and self._least_s[place] < channel.tick_s else None
            )
            return gauges.energy(
                self._series(stretch, place),
                begin_s,
                end_s,
                averaging_s=channel.averaging_s,
                looks=channel.looks,
                tick_s=tick_s,
                resolution=channel.resolution,
            )
        return self._counter(stretch, place).energy(begin_s, end_s)

    def known_since_s(self, domain: str) -> float:
        """Its first answer; NaN where it never answered."""
        seen = self.series(self.sources[domain].place)
        first = np.flatnonzero(np.isfinite(seen.value))[:1]
        return float(seen.t_s[first[0]] + seen.took_s[first[0]]) if len(first) else np.nan

    def known_until_s(self, domain: str, begin_s: float, end_s: float) -> float:
        """The last instant up to which its joules from `begin_s` are known; NaN where none are, or
        all are. Where a counter's last tick was is known only from its readings, so a few ticks
        before its last answer are tried."""
        seen = self.series(self.sources[domain].place)
        answers_s = seen.t_s[np.isfinite(seen.value)]
        answers_s = answers_s[(answers_s > begin_s) & (answers_s < end_s)]
        tick_s = self.tick_s(domain) or 0.0
        for ticks in LAST_TICKS if len(answers_s) else ():
            until_s = float(answers_s[-1]) - ticks * tick_s
            if until_s > begin_s and self.joules(domain, begin_s, until_s).value >= 0:
                return until_s
        return np.nan

    def curve(self, domain: str, t_s: Floats) -> Floats:
        """Joules counted up to each of many instants, roughly."""
        place = self.sources[domain].place
        if len(t_s) == 0:
            return np.empty(0)
        stretch = self._stretch(float(t_s[0]), float(t_s[-1]))
        if self.channels[place].is_counter:
            return self._counter(stretch, place).curve(t_s)
        seen = self._series(stretch, place)
        known = np.isfinite(seen.value)
        at, watts = seen.t_s[known], seen.value[known]
        if len(at) < 2:
            return np.full(len(t_s), np.nan)
        joules = np.concatenate([[0.0], np.cumsum(np.diff(at) * (watts[1:] + watts[:-1]) / 2)])
        counted: Floats = np.interp(t_s, at, joules, left=np.nan, right=np.nan)
        return counted

    def counter(self, domain: str) -> Counter | None:
        """What counts a domain's joules; None where a gauge of watts speaks for it."""
        place = self.sources[domain].place
        return self._counter(self._all, place) if self.channels[place].is_counter else None

    def _counter(self, stretch: _Stretch, place: int) -> Counter:
        channel = self.channels[place]
        if place not in stretch.counters:
            tick_s = self._renewed_s(channel)
            # most are asked for as a counter only
            readings = stretch.series.pop(place, None)
            if self._is_long and stretch is self._all:
                stretch.counters.clear()
            stretch.counters[place] = counters.unwrap_counter(
                stretch.node.series(channel) if readings is None else readings,
                channel.wraps_at,
                tick_s=tick_s,
                lag_s=self.lag_s(channel),
                resolution=channel.resolution,
                most_per_s=MOST_W if channel.quantity == "energy_j" else None,
            )
        return stretch.counters[place]

    def _renewed_s(self, channel: Channel) -> float | None:
        """How often a counter is renewed; what is no energy, at once."""
        return self._seen_s(channel) if channel.quantity == "energy_j" else 0.0

    def lag_s(self, channel: Channel) -> float:
        """What a counter of joules may be late at most: as its meter says, or one tick, whichever
        is more. Nobody publishes it."""
        if channel.quantity != "energy_j":
            return 0.0
        return max(channel.lag_s or 0.0, self._renewed_s(channel) or 0.0)

    def _seen_s(self, channel: Channel) -> float | None:
        measured_s = self.node.period_s(channel)
        polled_s = max(
            (header.settings.get("quick_s", 0.0) for header in self.node.headers), default=0.0
        )
        return (
            measured_s
            if measured_s is not None and measured_s > SEEN * polled_s
            else channel.tick_s
        )

    def provenance(self, domain: str, begin_s: float, end_s: float) -> Provenance:
        source = self.sources[domain]
        lag_s = self.lag_s(source.channel)
        late = f"the interval assumes a counter published 0 to {lag_s:g} s late" if lag_s else ""
        known = provenance(
            source.channel, self.joules(domain, begin_s, end_s), source.driver, self.tick_s(domain)
        )
        return known._replace(note="; ".join(filter(None, (known.note, late))))

    def doubts(self, domain: str) -> Doubts:
        """Of the channel itself, or else of the same device's watts."""
        channel = self.sources[domain].channel
        beside = [c for c in self.channels if c.domain == domain and c.quantity == "power_w"]
        looks = (
            channel.looks
            if channel.looks is not None
            else min((c.looks for c in beside if c.looks is not None), default=None)
        )
        accuracy = (
            channel.accuracy
            if channel.accuracy is not None
            else max((c.accuracy for c in beside if c.accuracy), default=None)
        )
        return Doubts(looks, accuracy, channel.is_counter)

    def readings(self, domain: str) -> Mapping[Quantity, Series]:
        """Every quantity of a domain that is no energy: bytes, requests, queue. They are asked for
        once, so none is kept: each is read as it is asked for."""
        return _Each(self.node, {c.quantity: c for c in self.channels if c.domain == domain})

    def domains(self, kind: str, quantity: Quantity) -> list[str]:
        """The domains of a kind that have such a channel."""
        return list(
            dict.fromkeys(
                c.domain
                for c in self.channels
                if c.kind_of_domain == kind and c.quantity == quantity
            )
        )


class _Each(Mapping[Quantity, Series]):
    """Series that are read one after the other: ten of a long run are a hundred megabytes."""

    def __init__(self, node: Node, channels: Mapping[Quantity, Channel]) -> None:
        self._node, self._channels = node, channels

    def __getitem__(self, quantity: Quantity) -> Series:
        return self._node.series(self._channels[quantity])

    def __iter__(self) -> Iterator[Quantity]:
        return iter(self._channels)

    def __len__(self) -> int:
        return len(self._channels)


def own_cpu_s(run: Run, host: str) -> float:
    """Processor time of the recorder, as it said last; NaN where it did not."""
    said = [event for event in run.events if event.name == "cost" and event.host == host]
    costs = [event.detail.get("cpu_s") for event in reversed(said)]
    return next((float(cpu_s) for cpu_s in costs if isinstance(cpu_s, int | float)), np.nan)


def drivers_of(node: Node) -> dict[str, str]:
    """The driver by kind of domain, as the meters' facts name it."""
    drivers: dict[str, str] = {}
    for header in node.headers:
        for meter in header.meters:
            if driver := meter.facts.get("driver", ""):
                drivers |= {channel.kind_of_domain: driver for channel in meter.channels}
    return drivers
