"""Everything the live screen knows: readings and marks go in as they come, from any thread, and a
picture comes out at any time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import isfinite, nan
from typing import Any, NamedTuple

from ckptcost.first.core.channels import Channel, Mark, Series
from ckptcost.first.core.contents import first_s
from ckptcost.first.jobs.account import Account, Evaluation, Seen
from ckptcost.first.jobs.energies import at_once
from ckptcost.first.jobs.recording import ASKED, MARGIN_S
from ckptcost.first.jobs.save_book import BEFORE_S, FINAL_S, Book, Entry
from ckptcost.first.meters.base import Absence
from ckptcost.first.runs import job_facts
from ckptcost.first.runs.baselines import Idle
from ckptcost.first.runs.clocks import S
from ckptcost.first.runs.header import Header
from ckptcost.first.runs.lines import Raw, Second
from ckptcost.first.runs.live import MISFITS, Item, LiveRun, Named
from ckptcost.first.runs.run import RunEvent
from ckptcost.first.runs.tables import Key, key_of
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.live.curves import (
    HOLD_S,
    ChannelPlace,
    Curves,
    DomainSum,
    Probe,
    Sources,
    sources_of,
)

MOST_VALUES = 3_000_000
"""of 8 bytes, among the readings that are held: six hours of a node with 8 GPUs at rest, or ten
minutes inside one checkpoint"""
_FORGET_S = 10.0
"""readings are let go of in pieces of so long"""
_EVENTS_KEPT = 200
_AGAIN_S = 3.0
"""readings that a counter needs behind it"""
_LOOK_S, _READ_S = 1.0, 12.0
"""a meter that is read seldom may not have spoken since the checkpoint's end: it is looked at
again, until so long after that end"""
_NO_POWER_S = 2.0
"""a counter needs two readings before it tells of power"""


class _Part(NamedTuple):
    """A recorder's file: its clock, and where its meters' answers go."""

    header: Header
    slots: tuple[int, ...]
    ahead_ns: int


class LiveBoard:
    """`absorb` and `turn` belong to the thread that reads, `work` to one that evaluates, all else
    to the screen."""

    def __init__(
        self,
        *,
        absences: Sequence[Absence] = (),
        idle: Idle | None = None,
        host: str = "",
        whole: Callable[[Callable[[], None]], Evaluation] | None = None,
    ) -> None:
        """`whole`: of a recorded run, all of it, in which its checkpoints are evaluated; it is
        given what may rest."""
        self.lock = threading.RLock()
        self.host, self.absences, self.idle = host, tuple(absences), idle
        self.other_hosts: set[str] = set()
        self.run = LiveRun()
        self.book, self.account = Book(later=whole is not None), Account()
        self.curves: Curves | None = None
        self.sums: list[DomainSum] = []
        self.events: deque[RunEvent] = deque(maxlen=_EVENTS_KEPT)
        self.lost: dict[str, RunEvent] = {}
        self.headers: list[Header] = []
        self.records = 0
        self.first_s = self.last_s = self._tick_s = -1.0
        self.ticks: deque[tuple[float, int]] = deque(maxlen=30)
        """of the newest seconds: how many ticks"""
        self.ended = ""
        self.exit_status: int | None = None
        self.bad_lines = 0
        self.partly = False
        """it did not see the run from its beginning"""
        self._whole = whole
        self._over = False
        self._desk: Desk | None = None
        self._priced_for: tuple[object, ...] = ()
        self._asked_s: list[float] = []
        """when what was asked for began, and ended: readings around it are its margin"""
        self._held_s = 0.0
        """readings from then on are held"""
        self._parts: dict[str, _Part | None] = {}
        self._slots: dict[tuple[str, tuple[Key, ...]], tuple[Channel, ...]] = {}
        """meters: the same one under a later header is the same slot"""
        self._wall_ahead: dict[tuple[str, str], int] = {}
        self._origin_ns: int | None = None
        self._pairs: deque[tuple[float, float]] = deque(maxlen=1500)
        self._answered: set[tuple[int, int]] = set()
        self._silent: list[tuple[int, int]] = []
        self._chosen_from = -1
        self._sums_by_slot: dict[int, list[DomainSum]] = {}

    # what comes in

    def absorb(self, items: Iterable[Named]) -> None:
        with self.lock:
            for part, item in items:
                self.records += 1
                if isinstance(item, Header):
                    self._header(part, item)
                elif (known := self._parts.get(part)) is not None:
                    try:
                        self._take_in(part, known, item)
                    except MISFITS:
                        self.bad_lines += 1

    def _take_in(self, name: str, part: _Part, item: Item) -> None:
        self.run.feed(name, item)
        if isinstance(item, Raw):
            t_s = self._at_s(item.t_ns + part.ahead_ns)
            self._readings(part, t_s, t_s, item.values)
        elif isinstance(item, Second):
            self._second(part, item)
        elif not isinstance(item, Header):
            self._line(part, item)

    def _header(self, name: str, header: Header) -> None:
        if not self.host:
            self.host = header.host
        if header.host != self.host:
            self._parts[name] = None
            self.other_hosts.add(header.host)
            return
        self.run.feed(name, header)
        clock = (header.host, header.boot)
        self._wall_ahead.setdefault(clock, header.wall_ns - header.monotonic_ns)
        first_ns = next(iter(self._wall_ahead.values()))
        ahead_ns = self._wall_ahead[clock] - first_ns
        if self._origin_ns is None:
            self._origin_ns = header.monotonic_ns
        slots = tuple(self._slot(meter.name, meter.channels) for meter in header.meters)
        self._parts[name] = _Part(header, slots, ahead_ns)
        if header.meters:
            self.headers.append(header)
        self._pairs.append((self._at_s(header.monotonic_ns + ahead_ns), header.wall_ns / S))

    def _slot(self, name: str, channels: Sequence[Channel]) -> int:
        key = (name, tuple(key_of(channel) for channel in channels))
        if key not in self._slots:
            slot = len(self._slots)
            self._slots[key] = tuple(channels)
            self._silent += [(slot, place) for place in range(len(channels))]
        return list(self._slots).index(key)

    def _at_s(self, t_ns: int) -> float:
        return (t_ns - (self._origin_ns or 0)) / S

    def _second(self, part: _Part, second: Second) -> None:
        t_s = self._at_s(second.t_ns + part.ahead_ns)
        if self._silent or self._chosen_from != len(self._answered):
            self._listen(part, second)
        if part.slots:
            asked = [
                n if isinstance(n, int) else n[0]
                for n, row in zip(second.counts, second.values, strict=False)
                if row is not None
            ]
            self.ticks.append((t_s, max(asked, default=0)))
        from_s = self._at_s(second.from_ns + part.ahead_ns)
        self._readings(part, from_s, t_s, second.values)

    def _readings(
        self, part: _Part, from_s: float, t_s: float, rows: Sequence[Sequence[Any] | None]
    ) -> None:
        """What all meters of a part said, each one's values in a row."""
        curves = self.curves
        if curves is not None and t_s > curves.last_s:
            for slot, row in zip(part.slots, rows, strict=False):
                if row is not None:
                    curves.see(slot, t_s, row)
                    for one in self._sums_by_slot.get(slot, ()):
                        one.see(t_s, row[one.place])
            curves.put(from_s, t_s)
        if self.first_s < 0:
            self.first_s, self._tick_s = t_s, from_s
        self.last_s = max(self.last_s, t_s)

    def reach(self, t_s: float) -> None:
        """Time has come so far although no reading was told."""
        with self.lock:
            self.last_s = max(self.last_s, t_s)

    def _listen(self, part: _Part, second: Second) -> None:
        """Which channels have answered at all; those that have decide what speaks for a domain."""
        rows = dict(zip(part.slots, second.values, strict=False))
        for slot, place in self._silent:
            row = rows.get(slot)
            entry = None if row is None else row[place]
            entry = entry[0] if type(entry) is list else entry
            if entry is not None and isfinite(entry):
                self._answered.add((slot, place))
        self._silent = [one for one in self._silent if one not in self._answered]
        if len(self._answered) != self._chosen_from:
            self._chosen_from = len(self._answered)
            self._choose()

    def _choose(self) -> None:
        least_s = {
            slot: meter.least_s
            for part in self._parts.values()
            if part is not None
            for slot, meter in zip(part.slots, part.header.meters, strict=True)
        }
        places = [
            ChannelPlace(slot, place, channel, least_s[slot])
            for slot, channels in enumerate(self._slots.values())
            for place, channel in enumerate(channels)
        ]
        curves = Curves(sources_of(places, self._answered))
        old = self.curves
        if old is not None:
            if old.bins.curves == curves.bins.curves:
                curves.bins = old.bins
            curves.last_s = old.last_s
        self.curves = curves
        before = {(one.slot, one.place): one for one in self.sums}
        self.sums, self._sums_by_slot = [], {}
        for slot, place, channel, meter_s in curves.sources.counted:
            hold_s = max(HOLD_S, 2.5 * meter_s)
            one = before.get((slot, place)) or DomainSum(slot, place, channel, hold_s)
            self.sums.append(one)
            self._sums_by_slot.setdefault(slot, []).append(one)

    def _line(self, part: _Part, fields: Mapping[str, Any]) -> None:
        kind, t_ns = fields.get("k"), fields.get("t")
        t_s = self._at_s(t_ns + part.ahead_ns) if isinstance(t_ns, int) else self.last_s
        if kind == "mark":
            name, window, by = (str(fields[each]) for each in ("name", "window", "by"))
            detail = dict(fields.get("detail") or {})
            self._mark(Mark(t_s, name, window, int(fields["rank"]), by, detail))
        elif kind == "event":
            name, domain, text = (str(fields[each]) for each in ("name", "domain", "text"))
            self._event(RunEvent(t_s, name, domain, text, part.header.host, {}))
        elif kind == "clock":
            self._pairs.append((t_s, fields["w"] / S))
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

    def _event(self, event: RunEvent) -> None:
        if event.name == "cost" or event.domain == job_facts.DOMAIN:
            return
        self.events.append(event)
        if event.name == "lost":
            self.lost[event.domain] = event
        elif event.name == "found":
            self.lost.pop(event.domain, None)
            # a counter that is back tells of the time that it was away
            self.book.again(event.t_s + _AGAIN_S)

    def turn(self, over: bool = False) -> None:
        """After some items were absorbed."""
        with self.lock:
            self._over = over
            self.book.turn(self.last_s, over)
            if self._origin_ns is None:
                return
            from_s = self.book.needed_s(self.last_s)
            if self.run.values > MOST_VALUES:
                from_s = max(from_s, (self._held_s + self.last_s) / 2)
            if from_s >= self._held_s + _FORGET_S:
                self._held_s = from_s
                self.run.forget(from_s)

    # what takes its time

    def price(self, desk: Desk) -> None:
        """The scenario that counts from now on; `work` does it."""
        self._desk = desk

    def work(self, breathe: Callable[[], None] = at_once) -> bool:
        """One piece of what takes its time; False: there was nothing to do. From one thread, which
        may rest when `breathe` is called."""
        if self._reprice():
            return True
        with self.lock:
            now_s, whole = self.last_s, self._whole
            entries = self.book.take_due(now_s, self._over)
            if not entries:
                return False
            quiet = all(now_s - entry.last_s >= FINAL_S for entry in entries)
            final = self._over or whole is not None or quiet
            if whole is None:
                begin_s = min(first_s(entry.window) for entry in entries) - BEFORE_S - FINAL_S
                since_s = max(min(self._tick_s, self.first_s), 0.0)
                whole = partial(Evaluation, self.run.run(begin_s), self.idle, since_s)
        evaluation = whole(breathe)
        for entry in entries:
            seen = evaluation.of(entry.window)
            with self.lock:
                self._take(entry, seen, now_s, final)
        return True

    def _take(self, entry: Entry, seen: Seen | None, now_s: float, final: bool) -> None:
        """Where some meter's last reading lies before the checkpoint's end, its joules would be
        unknown for good, and are known in a moment."""
        mine = self.book.entry(entry.number)
        if mine is None:
            return
        lags = seen is not None and seen.lags and not (final or self._over)
        if lags and now_s - mine.last_s <= _READ_S:
            mine.not_before_s, mine.ready = now_s + _LOOK_S, False
        elif mine.window == entry.window:  # else more is known of it by now
            mine.evaluated, mine.final = mine.window, final or seen is None
            if seen is not None:
                mine.better = (seen.window, seen.contents)
                self.account.take(mine.number, seen)

    def skip(self) -> None:
        """The checkpoint whose evaluation failed is not tried again as it is."""
        with self.lock:
            entry = next((e for e in self.book.recent if e.ready and e.evaluated != e.window), None)
            if entry is not None:
                entry.evaluated, entry.final = entry.window, True

    def _reprice(self) -> bool:
        with self.lock:
            parts = tuple(self.parts)
            wanted = (id(self._desk), parts, self.book.world, len(self.other_hosts))
            if self._desk is None or wanted == self._priced_for:
                return False
            self._priced_for = wanted
            hosts = 1 + len(self.other_hosts)
            self.account.price(self._desk.resolved, parts, hosts, self.book.world)
            return True

    # what the screen asks for

    def series(self, channel: Channel) -> Series | None:
        """All readings of it that are held: of the last minutes."""
        with self.lock:
            return self.run.series(channel) if self._origin_ns is not None else None

    @property
    def parts(self) -> list[str]:
        """Domains that add up."""
        return [
            one.channel.domain
            for one in self.sums
            if one.channel.role == "part" and one.channel.kind_of_domain != "node"
        ]

    @property
    def sources(self) -> Sources:
        return Sources() if self.curves is None else self.curves.sources

    @property
    def gpus(self) -> tuple[Probe, ...]:
        return self.sources.gpus

    @property
    def powerless(self) -> bool:
        """Nothing here has told of power although there was time for it."""
        if self.curves is None or self.last_s - max(self.first_s, 0.0) < _NO_POWER_S:
            return False
        return not any(probe.answered for probe in self.sources.power_probes)

    @property
    def waiting(self) -> int:
        """Checkpoints that are over and not evaluated yet."""
        recent = sum(entry.ready and entry.evaluated != entry.window for entry in self.book.recent)
        return recent + len(self.book.backlog)

    @property
    def simulated(self) -> bool:
        return any(header.simulated for header in self.headers)

    @property
    def rate_hz(self) -> float:
        """Readings a second, lately."""
        if len(self.ticks) < 2:
            return nan
        passed_s = self.ticks[-1][0] - self.ticks[0][0]
        return sum(count for _, count in list(self.ticks)[1:]) / passed_s if passed_s > 0 else nan

    @property
    def length_s(self) -> float:
        """How long was measured so far; once it has ended, as `ckptcost report` has it."""
        last_s = max(self.last_s, 0.0)
        if self._asked_s:
            end_s = max(self._asked_s) if len(self._asked_s) > 1 else last_s
            return max(end_s - min(self._asked_s), 0.0)
        if not self.ended:
            return last_s
        read_s = last_s - max(self._tick_s, 0.0)
        return read_s - 2 * min(MARGIN_S, read_s / 4)

    def wall_s(self, t_s: float) -> float:
        """Unix time at a time of the run, by the pair before it."""
        at_s, wall_s = 0.0, nan
        for pair in self._pairs:
            if pair[0] > t_s and wall_s == wall_s:
                break
            at_s, wall_s = pair
        return wall_s + t_s - at_s
