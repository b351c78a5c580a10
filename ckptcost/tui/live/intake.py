"""Lines of a run on their way to the live screen: from a recorder in this process, from files that
grow, or from a tape."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from ckptcost.core.channels import Channel, Mark
from ckptcost.core.reconcile import chosen
from ckptcost.jobs.recording import ASKED
from ckptcost.jobs.save_book import Book
from ckptcost.runs import job_facts
from ckptcost.runs.clocks import S
from ckptcost.runs.header import Header, periods_from
from ckptcost.runs.lines import Raw, Second, begun_ns
from ckptcost.runs.tables import Key, key_of
from ckptcost.tui.live.curves import Curves, sources_of
from ckptcost.tui.live.ring import Record, Ring
from ckptcost.tui.live.sofar import Sum

Item = tuple[str, "Header | Raw | Second | Mapping[str, Any]"]
"""which part of the run it belongs to, and what it is"""
_EVENTS_KEPT = 200
_AGAIN_S = 3.0
"""readings that a counter needs behind it"""


class Happened(NamedTuple):
    """Something with a meter."""

    t_s: float
    name: str
    domain: str
    text: str


class _Part(NamedTuple):
    """A recorder's file: its clock, and where its meters' answers go."""

    header: Header
    slots: tuple[int, ...]
    ahead_ns: int


class Intake:
    """What comes in, sorted: each reading to the ring, the curves and the sums; each mark to the
    book; the rest remembered."""

    def __init__(self, host: str, keeps: bool) -> None:
        """`keeps`: readings are kept for evaluations; else they can be had again from somewhere."""
        self.lock = threading.RLock()
        self.host, self._keeps = host, keeps
        self.other_hosts: set[str] = set()
        self.ring, self.book = Ring(), Book(later=not keeps)
        self.curves: Curves | None = None
        self.sums: list[Sum] = []
        self.events: deque[Happened] = deque(maxlen=_EVENTS_KEPT)
        self.lost: dict[str, Happened] = {}
        self.headers: list[Header] = []
        self.newest: dict[Key, Channel] = {}
        """channels as the newest header has them"""
        self.records = 0
        self.first_s = self.last_s = self._tick_s = -1.0
        self._asked_s: list[float] = []
        """when what was asked for began, and ended: readings around it are its margin"""
        self.ticks: deque[tuple[float, int]] = deque(maxlen=30)
        """of the newest seconds: how many ticks"""
        self.ended = ""
        self.exit_status: int | None = None
        self.bad_lines = 0
        self._parts: dict[str, _Part | None] = {}
        self._wall_ahead: dict[tuple[str, str], int] = {}
        self._origin_ns: int | None = None
        self._pairs: deque[tuple[float, float]] = deque(maxlen=1500)
        self._periods: dict[Key, float] = {}
        self._said: set[tuple[int, int]] = set()
        self._unsaid: list[tuple[int, int]] = []
        self._chosen_from = -1
        self._sums_by_slot: dict[int, list[Sum]] = {}

    def absorb(self, items: Iterable[Item]) -> int:
        """How many were taken."""
        count = 0
        with self.lock:
            for part, item in items:
                count += 1
                if type(item) is Raw:
                    self._raw(part, item)
                elif type(item) is Second:
                    self._second(part, item)
                elif isinstance(item, Header):
                    self._header(part, item)
                else:
                    self._line(part, item)  # type: ignore[arg-type]
            self.records += count
        return count

    def _header(self, name: str, header: Header) -> None:
        if not self.host:
            self.host = header.host
        if header.host != self.host:
            self._parts[name] = None
            self.other_hosts.add(header.host)
            return
        clock = (header.host, header.boot)
        self._wall_ahead.setdefault(clock, header.wall_ns - header.monotonic_ns)
        first = next(iter(self._wall_ahead))
        ahead_ns = 0 if clock == first else self._wall_ahead[clock] - self._wall_ahead[first]
        if self._origin_ns is None:
            self._origin_ns = header.monotonic_ns
        slots = tuple(self.ring.slot(meter.name, meter.channels) for meter in header.meters)
        self._parts[name] = _Part(header, slots, ahead_ns)
        if header.meters:
            self.headers.append(header)
            self.newest |= {
                key_of(channel): channel for meter in header.meters for channel in meter.channels
            }
            known = {place for place, _ in self._unsaid} | {place for place, _ in self._said}
            self._unsaid += [
                (s, n)
                for s in dict.fromkeys(slots)
                if s not in known
                for n in range(len(self.ring.slots[s]))
            ]
        self._learn(header, header.periods_s)
        self._pairs.append((self._at_s(header.monotonic_ns + ahead_ns), header.wall_ns / S))

    def _at_s(self, t_ns: int) -> float:
        return (t_ns - (self._origin_ns or 0)) / S

    def _learn(self, header: Header, periods_s: Sequence[Sequence[float]]) -> None:
        for meter, of_meter in zip(header.meters, periods_s, strict=False):
            self._periods.update(
                {key_of(c): p for c, p in zip(meter.channels, of_meter, strict=False) if p == p}
            )

    def _raw(self, name: str, tick: Raw) -> None:
        part = self._parts.get(name)
        if part is None:
            return
        t_ns = tick.t_ns + part.ahead_ns
        t_s = self._at_s(t_ns)
        new = self.curves is not None and t_s > self.curves.last_s
        begun = begun_ns(tick.took_ns, tick.values)
        for slot, took_ns, row, after_ns in zip(
            part.slots, tick.took_ns, tick.values, begun, strict=False
        ):
            if row is None:
                continue
            self._keep(Record(slot, t_ns, t_ns, 0, took_ns, row, begun_ns=after_ns))
            if new:
                self._tell(slot, t_s, row)
        if new:
            assert self.curves is not None
            self.curves.put(t_s, t_s)
        self._reached(t_s, t_s)

    def _second(self, name: str, second: Second) -> None:
        part = self._parts.get(name)
        if part is None:
            return
        t_ns, from_ns = second.t_ns + part.ahead_ns, second.from_ns + part.ahead_ns
        t_s = self._at_s(t_ns)
        if self._unsaid or self._chosen_from != len(self._said):
            self._listen(part, second)
        new = self.curves is not None and t_s > self.curves.last_s
        most = 0
        for slot, asked, took_ns, row in zip(
            part.slots, second.counts, second.took_ns, second.values, strict=False
        ):
            if row is None:
                continue
            if isinstance(asked, int):
                self._keep(Record(slot, from_ns, t_ns, asked, took_ns, row))
                most = max(most, asked)
            else:
                self._keep(
                    Record(slot, t_ns - asked[1], t_ns - asked[2], asked[0], took_ns, row, asked[2])
                )
                most = max(most, asked[0])
            if new:
                self._tell(slot, t_s, row)
        if part.slots:
            self.ring.second_over(t_ns)
            self.ticks.append((t_s, most))
        if new:
            assert self.curves is not None
            self.curves.put(self._at_s(from_ns), t_s)
        self._reached(t_s, self._at_s(from_ns))

    def _keep(self, record: Record) -> None:
        if self._keeps:
            self.ring.add(record)

    def _tell(self, slot: int, t_s: float, row: Sequence[Any]) -> None:
        assert self.curves is not None
        self.curves.see(slot, t_s, row)
        for one in self._sums_by_slot.get(slot, ()):
            one.see(t_s, row[one.place])

    def _reached(self, t_s: float, tick_s: float) -> None:
        if self.first_s < 0:
            self.first_s, self._tick_s = t_s, tick_s
        self.last_s = max(self.last_s, t_s)

    def reach(self, t_s: float) -> None:
        """Time has come so far although no reading was told."""
        with self.lock:
            self.last_s = max(self.last_s, t_s)

    def _listen(self, part: _Part, second: Second) -> None:
        """Which channels have answered at all; those that have decide what speaks for a domain."""
        rows = dict(zip(part.slots, second.values, strict=False))
        silent = []
        for slot, place in self._unsaid:
            row = rows.get(slot)
            entry = None if row is None else row[place]
            entry = entry[0] if type(entry) is list else entry
            if entry is not None and isfinite(entry):
                self._said.add((slot, place))
            else:
                silent.append((slot, place))
        self._unsaid = silent
        if len(self._said) != self._chosen_from:
            self._chosen_from = len(self._said)
            self._choose()

    def _choose(self) -> None:
        least_s = [0.0] * len(self.ring.slots)
        for part in self._parts.values():
            for slot, meter in (
                zip(part.slots, part.header.meters, strict=True) if part is not None else ()
            ):
                least_s[slot] = meter.least_s
        slots = list(zip(self.ring.slots, least_s, strict=True))
        curves = Curves(sources_of(slots, lambda slot, place: (slot, place) in self._said))
        old = self.curves
        if old is not None:
            if old.bins.curves == curves.bins.curves:
                curves.bins = old.bins
            curves.last_s = old.last_s
        self.curves = curves
        before = {(one.slot, one.place): one for one in self.sums}
        places = [
            (slot, place, channel)
            for slot, channels in enumerate(self.ring.slots)
            for place, channel in enumerate(channels)
        ]
        told = chosen(
            [channel for *_, channel in places],
            [(slot, place) in self._said for slot, place, _ in places],
        )
        self.sums = []
        for n in (*told.parts, *told.wholes):
            slot, place, channel = places[n]
            hold_s = max(2.5, 2.5 * least_s[slot])
            self.sums.append(before.get((slot, place)) or Sum(slot, place, channel, hold_s))
        self._sums_by_slot = {}
        for one in self.sums:
            self._sums_by_slot.setdefault(one.slot, []).append(one)

    def _line(self, name: str, fields: Mapping[str, Any]) -> None:
        part = self._parts.get(name)
        if part is None:
            return
        kind, t_ns = fields.get("k"), fields.get("t")
        t_s = self._at_s(t_ns + part.ahead_ns) if isinstance(t_ns, int) else self.last_s
        if kind == "mark":
            self._mark(
                Mark(
                    t_s,
                    str(fields["name"]),
                    str(fields["window"]),
                    int(fields["rank"]),
                    str(fields["by"]),
                    dict(fields.get("detail") or {}),
                )
            )
        elif kind == "event":
            self._event(
                Happened(t_s, str(fields["name"]), str(fields["domain"]), str(fields["text"]))
            )
        elif kind == "clock":
            self._pairs.append((t_s, fields["w"] / S))
        elif kind == "periods":
            self._learn(part.header, periods_from(fields["v"]))
        elif kind == "end" and part.header.meters:
            self.ended = str(fields.get("why", "stopped"))

    def _mark(self, mark: Mark) -> None:
        status = mark.detail.get("exit_status") if mark.by == "wrap" else None
        if isinstance(status, int):
            self.exit_status = status
        if mark.by != ASKED:
            self.book.add(mark)
        elif mark.t_s not in self._asked_s:
            self._asked_s.append(mark.t_s)

    def _event(self, event: Happened) -> None:
        if event.name == "cost" or event.domain == job_facts.DOMAIN:
            return
        self.events.append(event)
        if event.name == "lost":
            self.lost[event.domain] = event
        elif event.name == "found":
            self.lost.pop(event.domain, None)
            self.book.again(
                event.t_s + _AGAIN_S
            )  # a counter that is back tells of the time that it was away
