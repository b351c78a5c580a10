"""A run's lines as they come, in two generations of readings: the older is let go once it is
counted, so that a run of weeks is followed in the memory of some hours.

Each generation is what a reader of the whole run would hold of its stretch. The younger is begun
some minutes before the older is let go, and every line goes to both meanwhile, so that readings lie
on either side of the instant at which one takes over from the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ckptcost.runs.clocks import S
from ckptcost.runs.follow import Line
from ckptcost.runs.header import Header, header_from
from ckptcost.runs.lines import BadLine
from ckptcost.runs.live import LiveRun

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

    def take(self, line: Line) -> None:
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
