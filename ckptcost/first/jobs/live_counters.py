"""What a run that goes on has come to so far: joules by domain, saves, stalls, and how new its
readings are. Every figure is that of `ckptcost report` on the same lines; unknown is NaN or None,
never 0.

Lines are kept in two generations of readings: the older is let go once it is counted, so that a run
of weeks is followed in the memory of some hours. Each is what a reader of the whole run would hold
of its stretch. The younger is begun some minutes before the older is let go, and every line goes to
both meanwhile, so that readings lie on either side of the instant at which one takes over from the
other.

What lies before the instant at which one generation of readings took over from the other is a sum;
what came since is evaluated again each time. A run that is shorter than a generation is therefore
told to the last digit as `report` tells it. Of a longer one joules may differ by some millionths:
where a meter is read so seldom that the 384 readings by which an edge is judged are not there, and
where joules come from watts, because how often a sensor renews its value is measured on the
generation and not on the whole run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from ckptcost.first.core.attribution import mean_w, opportunity
from ckptcost.first.core.contents import Contents, first_s
from ckptcost.first.core.reconcile import Energy, energy_of_amount
from ckptcost.first.core.windows import Window
from ckptcost.first.jobs.drains import saves_of
from ckptcost.first.jobs.energies import Energies, own_cpu_s
from ckptcost.first.jobs.recording import ASKED, MARGIN_S
from ckptcost.first.runs.clocks import S, boot_id
from ckptcost.first.runs.follow import FollowedLine
from ckptcost.first.runs.header import Header, header_from
from ckptcost.first.runs.lines import BadLine
from ckptcost.first.runs.live import LiveRun
from ckptcost.first.runs.run import Node, Run

SILENT_S = 10.0
"""a recorder writes each second; one that was silent for so long does not record"""

Role = Literal["part", "whole"]


class DomainJoules(NamedTuple):
    """Of one domain, of the time that is covered."""

    domain: str
    role: Role
    basis: str
    joules: float
    covered_s: float
    of_s: float
    """the time in which it was looked for"""
    lately_w: float = math.nan

    @property
    def mean_w(self) -> float:
        return self.joules / self.covered_s if self.covered_s > 0 else math.nan

    def plus(self, other: DomainJoules | None, sign: float = 1.0) -> DomainJoules:
        """With what was known of another stretch, or without it; what is not known adds nothing and
        covers nothing."""
        if other is None:
            return self
        covered_s = self.covered_s + sign * other.covered_s
        joules = sum(
            times * each.joules
            for times, each in ((1.0, self), (sign, other))
            if each.covered_s != 0
        )
        return self._replace(
            joules=joules if covered_s else math.nan,
            covered_s=covered_s,
            of_s=self.of_s + sign * other.of_s,
        )


class LastSave(NamedTuple):
    """The one that began last, of those that are over; None and NaN are not known."""

    over_s: float
    """Unix time of the last that is told of it: safe, or training goes on"""
    stall_s: float | None
    length_s: float | None
    bytes: float


class SaveCounts(NamedTuple):
    """Counts and sums over saves; a sum is of those that `stalls` and `sizes` count."""

    started: int = 0
    finished: int = 0
    """training goes on, it is safe, or it failed"""
    safe: int = 0
    failed: int = 0
    stalls: int = 0
    """of which it is known how long training stood"""
    sizes: int = 0
    stall_s: float = 0.0
    gpu_s: float = 0.0
    bytes: float = 0.0
    last: LastSave | None = None

    def after(self, before: SaveCounts) -> SaveCounts:
        return SaveCounts(
            self.started + before.started,
            self.finished + before.finished,
            self.safe + before.safe,
            self.failed + before.failed,
            self.stalls + before.stalls,
            self.sizes + before.sizes,
            self.stall_s + before.stall_s,
            self.gpu_s + before.gpu_s,
            self.bytes + before.bytes,
            self.last or before.last,
        )


class HostCounters(NamedTuple):
    """One host of the run."""

    host: str
    header: Header
    """its newest"""
    measured_s: float
    domains: Sequence[DomainJoules]
    saves: SaveCounts
    gpus: float
    """NaN where none is metered"""
    own_cpu_s: float


class Freshness(NamedTuple):
    """How new a host's readings are."""

    last_wall_s: float
    age_s: float | None
    ended: bool
    """its newest recorder said that it stopped"""

    @property
    def recording(self) -> bool | None:
        """None where only its files can be looked at, as of a simulation."""
        if self.ended:
            return False
        return None if self.age_s is None else self.age_s <= SILENT_S


class RunCounters(NamedTuple):
    """A run, so far."""

    run: str
    simulated: bool
    hosts: Sequence[HostCounters]
    headers: Sequence[Header]
    """of all parts of all hosts"""
    fresh: Mapping[str, Freshness]
    """by host; one without a reading is not in there"""
    bad_lines: int


MOST_VALUES = 1_000_000
"""of 8 bytes in a generation, before the next is begun: half an hour of a node with 8 GPUs that
saves once a minute"""
MOST_MARKS = 20_000
"""the same of marks, of which a generation may have many and few readings"""


class Newest(NamedTuple):
    """A host's last reading on its own clock, and whose it was."""

    header: Header
    t_ns: int

    @property
    def wall_ns(self) -> int:
        """Unix time, as the part's own header has it."""
        return self.header.wall_ns + self.t_ns - self.header.monotonic_ns

    def age_s(self, now_ns: int, monotonic_ns: int, boot: str) -> float | None:
        """By this machine's own clock where it is its own, whatever happened to the time of day;
        None of a clock that only jumps."""
        if self.header.simulated:
            return None
        here = bool(boot) and self.header.boot == boot
        return ((monotonic_ns - self.t_ns) if here else (now_ns - self.wall_ns)) / S


class Generation(LiveRun):
    """Readings and marks since it was begun, under the headers of all parts."""

    @property
    def fullness(self) -> float:
        """1: the next is begun."""
        return max(self.values / MOST_VALUES, self.marks / MOST_MARKS)


class FollowedLines:
    """What `runs.follow` tells of one run; other runs of the folder are passed over."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.now = Generation()
        self.next: Generation | None = None
        self.headers: dict[str, Header] = {}
        """by part"""
        self.newest: dict[str, Newest] = {}
        """by host"""
        self._recorder: dict[str, Header] = {}
        """by host: the newest part of the newest recorder"""
        self.ended: dict[str, bool] = {}
        """by host: whether its newest recorder said that it stopped"""
        self.count = self.bad = 0

    def take(self, line: FollowedLine) -> None:
        """Raises RunFileError for a part of a newer version."""
        self.count += 1
        if line.problem:
            self.bad += 1
            return
        try:
            if line.fields["k"] == "run":
                self._header(line.part, header_from(line.fields, line.part))
            elif line.part in self.headers:
                self._line(line.part, line.fields)
        except BadLine:
            self.bad += 1

    def _header(self, name: str, header: Header) -> None:
        if header.run != self.run or header in self.headers.values():
            return  # of another run, or a copy, not counted twice
        self.headers[name] = header
        for generation in self._generations:
            generation.feed(name, header)
        before = self._recorder.get(header.host)
        if header.meters and (before is None or header.wall_ns >= before.wall_ns):
            self._recorder[header.host], self.ended[header.host] = header, False

    def _line(self, name: str, fields: Mapping[str, Any]) -> None:
        for generation in self._generations:
            generation.feed(name, fields)
        header, kind = self.headers[name], fields["k"]
        if kind in ("raw", "second"):
            reading = Newest(header, fields["t"])
            if header.host not in self.newest or reading.wall_ns > self.newest[header.host].wall_ns:
                self.newest[header.host] = reading
        elif kind == "end" and header is self._recorder.get(header.host):
            self.ended[header.host] = True
        if self.next is None and self.now.fullness >= 1.0:
            self.next = Generation(self.now)

    @property
    def _generations(self) -> tuple[Generation, ...]:
        return (self.now,) if self.next is None else (self.now, self.next)

    def turn(self) -> None:
        """The younger generation takes over."""
        assert self.next is not None
        self.now, self.next = self.next, None


BEFORE_S, AFTER_S = 60.0, 400.0
"""of readings on either side of the instant from which a generation counts: before a save its page
cache tells when it was safe, and after an edge so many readings, one a second at least, are what it
is judged by, so that it is not judged otherwise later"""
LATELY_S = 10.0
"""the power of now is a mean over so long"""
_CLOSED_S, _SPOKEN_S = 5.0, 60.0
"""after the end of a save, and after the last word on one whose end nobody tells, nothing more is
expected of it"""
_TRY_LINES = 2_000
_OVERFULL = 2.0
"""saves follow each other without a pause: the next takes over in the midst of one, of which then
something is not counted"""
_ALWAYS = -math.inf


class _Settled(NamedTuple):
    """A host until its generation was let go."""

    begin_s: float
    until_s: float
    domains: dict[tuple[str, Role], DomainJoules]
    saves: SaveCounts
    own_cpu_s: float


class LiveCounters:
    """`take` lines in their order, ask for `counters` at any time. One thread at a time."""

    def __init__(self, run: str) -> None:
        """The whole id of one run."""
        self._lines = FollowedLines(run)
        self._settled: dict[str, _Settled] = {}
        self._from_s = _ALWAYS
        self._asked_s: list[float] = []
        self._left: set[str] = set()
        """labels of saves that were counted without an end: what may still be told of them begins
        no other"""
        self._tried = 0
        self._hosts: tuple[int, list[HostCounters]] = (-1, [])

    def take(self, line: FollowedLine) -> None:
        """Raises RunFileError for what a newer version wrote."""
        self._lines.take(line)
        if self._lines.next is not None and self._lines.count >= self._tried + _TRY_LINES:
            self._tried = self._lines.count
            self._turn()

    def counters(self) -> RunCounters:
        """A run without any reading has no hosts."""
        lines = self._lines
        if self._hosts[0] != lines.count:
            self._hosts = (lines.count, self._evaluated(lines.now.run()) if lines.newest else [])
        now_ns, monotonic_ns, boot = time.time_ns(), time.monotonic_ns(), boot_id()
        fresh = {
            host: Freshness(
                newest.wall_ns / 1e9,
                newest.age_s(now_ns, monotonic_ns, boot),
                lines.ended.get(host, False),
            )
            for host, newest in lines.newest.items()
        }
        hosts = [
            each if fresh[each.host].recording is not False else _stopped_counters(each)
            for each in self._hosts[1]
        ]
        headers = list(lines.headers.values())
        return RunCounters(
            lines.run, any(header.simulated for header in headers), hosts, headers, fresh, lines.bad
        )

    def _evaluated(self, run: Run) -> list[HostCounters]:
        asked_s = self._asked_of(run)
        found = []
        for node in run.nodes:
            seen = self._settled.get(node.host)
            span = _span(node, asked_s, seen)
            if span is None:
                continue
            begin_s, since_s, end_s = span
            energies = Energies(node)
            domains = [
                _joules(energies, domain, since_s, end_s)._replace(
                    lately_w=_lately_w(energies, domain, since_s, end_s)
                )
                for domain in (*energies.parts, *energies.wholes)
            ]
            saves = self._saves(run, energies, begin_s, end_s, math.inf)
            cpu_s = own_cpu_s(run, node.host)
            if seen is not None:
                told = {(each.domain, each.role) for each in domains}
                domains = [
                    each.plus(seen.domains.get((each.domain, each.role))) for each in domains
                ]
                domains += [each for key, each in seen.domains.items() if key not in told]
                saves = saves.after(seen.saves)
                cpu_s = seen.own_cpu_s if math.isnan(cpu_s) else cpu_s
            header = next((h for h in reversed(node.headers) if h.meters), node.headers[-1])
            found.append(
                HostCounters(
                    node.host, header, end_s - begin_s, domains, saves, energies.gpu_count, cpu_s
                )
            )
        return found

    def _asked_of(self, run: Run) -> list[float]:
        return self._asked_s + [
            mark.t_s for mark in run.marks if mark.by == ASKED and mark.t_s >= self._from_s
        ]

    def _saves(
        self, run: Run, energies: Energies, begin_s: float, end_s: float, until_s: float
    ) -> SaveCounts:
        """Those of this generation that begin before an instant, as `jobs.measured` chooses
        them."""
        told = saves_of(run, energies)
        chosen = [
            (window, what)
            for window, what in zip(told.windows, told.contents, strict=True)
            if what.of == "save"
            and window.last_s >= begin_s
            and (window.begin_s is None or window.begin_s <= end_s)
            and self._from_s <= first_s(window) < until_s
            and not (window.begin_s is None and window.label in self._left)
        ]
        return _sum_saves(run, chosen, energies.gpu_count)

    def _turn(self) -> None:
        """Where there is an instant at which the younger generation can take over, it does."""
        lines = self._lines
        assert lines.next is not None
        young = lines.next.run()
        span = _read_by_all(young)
        if span is None:
            return
        old = lines.now.run()
        windows = [
            window
            for energies in _energies_by_host(old).values()
            for window in saves_of(old, energies).windows
        ]
        at_s = _between(windows, *span, _SPOKEN_S)
        if at_s is None and lines.now.fullness >= _OVERFULL:
            at_s = _between(windows, *span, 0.0) or sum(span) / 2
        if at_s is None:
            return
        self._settle(old, young, at_s)
        self._left |= {
            window.label for window in windows if first_s(window) < at_s and window.end_s is None
        }
        self._from_s = at_s
        lines.turn()

    def _settle(self, old: Run, young: Run, at_s: float) -> None:
        """What the older generation knows until now, less what the younger one knows since `at_s`:
        together they are what was told, and an edge at `at_s`, which the two judge by different
        readings, is in neither."""
        asked_s = self._asked_of(old)
        younger = _energies_by_host(young)
        for node in old.nodes:
            seen = self._settled.get(node.host)
            span = _span(node, asked_s, seen)
            if span is None:
                continue
            begin_s, since_s, end_s = span
            energies = Energies(node)
            before = seen or _Settled(begin_s, at_s, {}, SaveCounts(), math.nan)
            domains = dict(before.domains)
            _count(domains, energies, 1.0, since_s, end_s)
            if node.host in younger:
                _count(domains, younger[node.host], -1.0, at_s, max(end_s, at_s))
            saves = self._saves(old, energies, begin_s, end_s, at_s).after(before.saves)
            cpu_s = own_cpu_s(old, node.host)
            cpu_s = before.own_cpu_s if math.isnan(cpu_s) else cpu_s
            self._settled[node.host] = _Settled(begin_s, at_s, domains, saves, cpu_s)
        self._asked_s = [asked for asked in asked_s if asked < at_s]


def _energies_by_host(run: Run) -> dict[str, Energies]:
    """Of the hosts that have readings."""
    return {node.host: Energies(node) for node in run.nodes if len(node.ticked_s())}


def _read_by_all(run: Run) -> tuple[float, float] | None:
    """When every host has readings enough on either side; None where that is never."""
    ticked = [spans for node in run.nodes if len(spans := node.ticked_s())]
    if not ticked:
        return None
    since_s = max(float(spans[0, 0]) for spans in ticked) + BEFORE_S
    until_s = min(float(spans[-1, 1]) for spans in ticked) - AFTER_S
    return (since_s, until_s) if since_s < until_s else None


def _count(
    domains: dict[tuple[str, Role], DomainJoules],
    energies: Energies,
    sign: float,
    from_s: float,
    to_s: float,
) -> None:
    """Add what a stretch took to what is known, or take it off."""
    for domain in (*energies.parts, *energies.wholes):
        found = _joules(energies, domain, from_s, to_s)
        none = found._replace(joules=math.nan, covered_s=0.0, of_s=0.0)
        domains[domain, found.role] = domains.get((domain, found.role), none).plus(found, sign)


def _span(
    node: Node, asked_s: Sequence[float], seen: _Settled | None
) -> tuple[float, float, float] | None:
    """What is told of a host: from when, from when by this generation, and until when; as
    `jobs.measure.reviewed` has it."""
    ticked = node.ticked_s()
    if not len(ticked):
        return None if seen is None else (seen.begin_s, seen.until_s, seen.until_s)
    first, last = float(ticked[0, 0]), float(ticked[-1, 1])
    margin_s = min(MARGIN_S, (last - first) / 4)
    begin_s = seen.begin_s if seen is not None else min(asked_s, default=first + margin_s)
    end_s = max(asked_s) if len(asked_s) > 1 else last - margin_s
    since_s = begin_s if seen is None else seen.until_s
    end_s = max(end_s, since_s)
    return begin_s, since_s, end_s


def _joules(energies: Energies, domain: str, begin_s: float, end_s: float) -> DomainJoules:
    energy = energy_of_amount(energies.joules(domain, begin_s, end_s))
    role: Role = "part" if domain in energies.parts else "whole"
    length_s = end_s - begin_s
    covered_s = length_s * energy.coverage if energy.known else 0.0
    return DomainJoules(
        domain, role, energies.sources[domain].channel.basis, energy.value, covered_s, length_s
    )


def _lately_w(energies: Energies, domain: str, begin_s: float, end_s: float) -> float:
    since_s = max(end_s - LATELY_S, begin_s)
    energy: Energy = energy_of_amount(energies.joules(domain, since_s, end_s))
    return mean_w(energy, end_s - since_s).value


def _sum_saves(run: Run, saves: Sequence[tuple[Window, Contents]], gpus: float) -> SaveCounts:
    stalls = [window.stall_s for window, _ in saves if window.stall_s is not None]
    sizes = [what.bytes for _, what in saves if not math.isnan(what.bytes)]
    lost = [
        opportunity(window, gpus).stalled_gpu_s for window, _ in saves if window.stall_s is not None
    ]
    over = [
        (window, what, at_s)
        for window, what in saves
        if (at_s := _over_s(window, what)) is not None
    ]
    last = None
    if over:
        window, what, at_s = max(over, key=lambda each: first_s(each[0]))
        last = LastSave(run.wall_s(at_s), window.stall_s, window.length_s, what.bytes)
    return SaveCounts(
        len(saves),
        len(over),
        sum(window.durable_s is not None and not what.error for window, what in saves),
        sum(bool(what.error) for _, what in saves),
        len(stalls),
        len(sizes),
        sum(stalls),
        sum(lost),
        sum(sizes),
        last,
    )


def _over_s(window: Window, what: Contents) -> float | None:
    told = [at_s for at_s in (window.returned_s, window.durable_s) if at_s is not None]
    return max(told) if told else window.last_s if what.error else None


def _stopped_counters(host: HostCounters) -> HostCounters:
    """Nothing is known of the power of now."""
    return host._replace(domains=[each._replace(lately_w=math.nan) for each in host.domains])


def _between(
    windows: Iterable[Window], from_s: float, to_s: float, spoken_s: float
) -> float | None:
    """The latest instant of a stretch at which no save is under way, or none that is spoken of any
    more."""
    busy = [
        (
            first_s(w) - 1.0,
            w.last_s + spoken_s if w.end_s is None else w.end_s + min(_CLOSED_S, spoken_s),
        )
        for w in windows
    ]
    edges = sorted(
        {from_s, to_s, *(edge for span in busy for edge in span if from_s < edge < to_s)}
    )
    for since_s, until_s in reversed(list(pairwise(edges))):
        at_s = (since_s + until_s) / 2
        if not any(begin_s < at_s < end_s for begin_s, end_s in busy):
            return at_s
    return None
