"""A known load beside the meters of joules: processes that work and sleep by a timetable, recorded,
and what that tells of each meter.

The timetable is off the beat of any meter: no two phases are of one length. Figures come from the
recording alone, so that whoever reads the trace gets the same ones. The trace can be given away:
its header is without the names of machine, boot, user and devices before the first line is written,
so there is nothing to take out afterwards, and no reading is changed.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ckptcost.first.core import counters
from ckptcost.first.core.channels import Channel, Series
from ckptcost.first.core.load_step import (
    UNKNOWN,
    LoadStep,
    Range,
    Timing,
    timing_of_counter,
    timing_of_gauge,
    watts_of,
)
from ckptcost.first.errors import OutputError
from ckptcost.first.interpreter import python
from ckptcost.first.jobs.checkup import Checkup
from ckptcost.first.jobs.energies import Energies
from ckptcost.first.jobs.instruments import Instruments
from ckptcost.first.jobs.selftest_children import BUSY, END, IDLE, SPIN, serve_load
from ckptcost.first.meters.base import Meter
from ckptcost.first.runs.clocks import S
from ckptcost.first.runs.header import Header, base_name
from ckptcost.first.runs.lines import decode
from ckptcost.first.runs.pace import GOLDEN, Pace
from ckptcost.first.runs.reader import load
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.run import Run
from ckptcost.first.runs.sinks import FileSink

METERS = ("nvml", "amd", "rapl", "hwmon")
"""quick ones, which read this machine alone: a management controller answers once a second and over
a network"""
LOADED_BY = {
    "gpu": "gpu",
    "module": "gpu",
    "cpu": "cpu",
    "core": "cpu",
    "psys": "cpu",
    "dram": "cpu",
    "node": "cpu",
}
"""by the kind of a domain: the load that its power follows"""
RANKS = 8
"""spinning processes at most, as a node has ranks; one core is left to the recorder"""
PHASES, SLOW_PHASES = 12, 7
QUICK_S, PHASE_S, SLOW_S = 1.2, 2.0, 5.0
"""a phase of the load beside counters of up to 20 ms, of up to 0.15 s, and slower ones"""
OFF_BEAT = 0.2
"""of a phase: how much the phases' lengths differ"""
HELD_S = 4.0
"""ranks spin, and sleep, for so long"""
SETTLED_S = 0.5
"""of a state, before its power is read"""
REST_S = 8.0
"""recorded where there is no load for a card: enough for its ticks"""
LEAD_S = 1.0
READY_S = 60.0
"""PyTorch takes long to begin on a cold disk"""
PACE = Pace(rest_s=0.2, quick_s=0.01, quick_for_s=8.0, around_s=8.0)
NOTE, BY = "note", "selftest"

NO_METER = "no meter of joules here: not tried"
NOT_ASKED = "no load was made beside the meters of joules, as asked for"


NOBODY = "anonymous"
_NAMES_OF_ONE = re.compile(
    r"(?:GPU-|MIG-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE
)
_BUS = re.compile(r"\b[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]\b", re.IGNORECASE)
_PLACES = re.compile(r"(?<![\w.])/(?!sys/|proc/)[\w./+~-]+")
_KEPT_FACTS = frozenset({"driver", "nvml", "binding", "backend", "library"})
"""of a meter, besides its cards' own; what else there is may name a user's choice or a place"""


def without_names(text: str) -> str:
    """A text of a meter without what is of this one machine.

    >>> without_names("NVIDIA H200, GPU-a0000000-fa4e-fa4e-fa4e-000000000000, hopper, 12 us a tick")
    'NVIDIA H200, hopper, 12 us a tick'
    >>> without_names("/sys/class/powercap/intel-rapl:0 beside /home/somebody/lib.so")
    '/sys/class/powercap/intel-rapl:0 beside ...'
    """
    for pattern in (_NAMES_OF_ONE, _BUS):
        text = pattern.sub("", text)
    return re.sub(r"(?:, )+", ", ", _PLACES.sub("...", text)).strip(", ")


def anonymous(header: Header) -> Header:
    """The same meters of nobody's machine."""
    meters = tuple(
        meter._replace(
            channels=tuple(
                replace(
                    channel,
                    device="",
                    source=without_names(channel.source),
                    note=without_names(channel.note),
                )
                for channel in meter.channels
            ),
            facts={
                key: without_names(text)
                for key, text in meter.facts.items()
                if key in _KEPT_FACTS or key.startswith("gpu:")
            },
        )
        for meter in header.meters
    )
    return replace(header, run=_name_of(header), host=NOBODY, boot="", pid=0, meters=meters)


def cards_of(header: Header) -> list[str]:
    """Names of the GPUs, as their driver says them."""
    return [
        without_names(text).split(",")[0]
        for meter in header.meters
        for key, text in sorted(meter.facts.items())
        if key.startswith("gpu:")
    ]


def _name_of(header: Header) -> str:
    """Run id and file name: what was measured."""
    cards = cards_of(header)
    what = cards[0] if cards else "cpu"
    return base_name(f"load-step-{what}".lower().replace("_", "-").replace(" ", "-"))


def processor() -> str:
    """Its model, as the kernel names it."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return ""
    found = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else ""


def keep(folder: Path, header: Header, facts: Mapping[str, str]) -> Path:
    """The trace under the name of its run, and beside it what data/traces/traces.toml says of each:
    PATH.jsonl and PATH.toml."""
    written = folder / "load-step.000.jsonl"
    trace = folder / f"{header.run}.jsonl"
    try:
        if written != trace:
            written.rename(trace)
        trace.with_suffix(".toml").write_text(_trace_entry(trace, header, facts), "utf-8")
    except OSError as error:
        raise OutputError(f"{trace}: cannot be kept ({error.strerror or error})") from error
    return trace


def _trace_entry(trace: Path, header: Header, facts: Mapping[str, str]) -> str:
    kernel = os.uname()
    drivers = [
        f"{m.name} driver {m.facts['driver']}" for m in header.meters if m.facts.get("driver")
    ]
    with trace.open("rb") as file:
        created = str(decode(file.readline().rstrip(b"\n")).get("created", ""))[:10]
    about = [
        *dict.fromkeys(cards_of(header)),
        processor(),
        f"{kernel.sysname} {kernel.release} {kernel.machine}",
        *drivers,
        *(f"{name} {version}" for name, version in sorted(facts.items())),
        f"{created}; ckptcost {header.ckptcost}, its own recorder and meters",
    ]
    entry = {
        "title": "a known load that is switched on and off",
        "file": trace.name,
        "what": (
            "idle and busy in turn, then ranks that spin and ranks that sleep: the marks say when"
        ),
        "recorded": not header.simulated,
        "marks": ["note"],
        "bytes": 0,
        "meters": [meter.name for meter in header.meters],
        "provenance": ", ".join(filter(None, about)),
        "method": (
            "ckptcost selftest; each mark has the load, its state and how exactly the instant is"
            " known"
        ),
        "licence": "CC0-1.0",
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    return "\n".join([f"[{header.run}]", *lines, ""])


class LoadReport(NamedTuple):
    """One meter, and what the load told of it."""

    channel: Channel
    load: str
    """cpu or gpu"""
    timing: Timing
    spinning_w: Range
    sleeping_w: Range
    assumed_lag_s: float
    """what intervals of joules allow for today; NaN of watts"""


class Loaded(NamedTuple):
    told: Sequence[LoadReport]
    ranks: int
    """processes that spun on the processors"""
    why: Sequence[str]
    """what was not tried, as whole sentences without their stop"""
    trace: Path | None = None


class Spoilt(Exception):
    """A child did not do as the timetable says."""


class Children:
    """Processes of one load. What they note comes in `notes`, once all of them have changed."""

    def __init__(self, kind: str, count: int) -> None:
        code = (
            f"from {serve_load.__module__} import serve_load; serve_load({kind!r}, {os.getpid()})"
        )
        self.facts: dict[str, str] = {}
        self.states: tuple[str, ...] = ()
        self._processes = [
            subprocess.Popen(
                python(code),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            for _ in range(count)
        ]
        self._buffers = {self._out(process): b"" for process in self._processes}
        self._seen: dict[int, list[int]] = {}

    @staticmethod
    def _out(process: subprocess.Popen[bytes]) -> int:
        assert process.stdout is not None
        return process.stdout.fileno()

    def ready(self) -> str:
        """When all could begin: nothing, or else why not."""
        waited, until_s = len(self._processes), time.monotonic() + READY_S
        while waited:
            if time.monotonic() > until_s:
                return f"it was not ready after {READY_S:g} s"
            for said in self._lines(0.1):
                if "failed" in said:
                    return str(said["failed"])
                self.facts, self.states = said["facts"], tuple(said["ready"])
                waited -= 1
        return ""

    def begin(self, timetable: Sequence[tuple[int, str]]) -> None:
        line = (json.dumps(timetable) + "\n").encode()
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(line)
            process.stdin.flush()

    def notes(self, for_s: float) -> list[tuple[int, int, int]]:
        """Changes that all have made meanwhile: number, and the first and the last child's
        instant."""
        found = []
        for number, at_ns in self._lines(for_s):
            at = self._seen.setdefault(number, [])
            at.append(at_ns)
            if len(at) == len(self._processes):
                found.append((number, min(at), max(at)))
        return found

    def _lines(self, for_s: float) -> list[Any]:
        if signal.sigpending() & {signal.SIGINT, signal.SIGTERM}:
            raise KeyboardInterrupt
        found = []
        for fd in select.select(list(self._buffers), [], [], for_s)[0]:
            data = os.read(fd, 65536)
            if not data:
                raise Spoilt("a process of it ended")
            *lines, self._buffers[fd] = (self._buffers[fd] + data).split(b"\n")
            found += [json.loads(line) for line in lines]
        return found

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
            process.wait()


def timetable_of(states: Sequence[str], length_s: float, begin_ns: int) -> list[tuple[int, str]]:
    """Phases of about `length_s`, no two alike, the end last; spinning and sleeping ranks are held
    longer."""
    found, at_s = [], 0.0
    for number, state in enumerate(states):
        found.append((begin_ns + round(at_s * S), state))
        off_beat = 1.0 + OFF_BEAT * (number * GOLDEN % 1.0 - 0.5)
        at_s += HELD_S if number >= len(states) - 2 and SPIN in states else length_s * off_beat
    return [*found, (begin_ns + round(at_s * S), END)]


def phases_of(ticks_s: Sequence[float]) -> tuple[float, int]:
    """How long a phase is, and how many, for the slowest meter that the load is for."""
    slowest_s = max((tick_s for tick_s in ticks_s if tick_s == tick_s), default=0.1)
    if slowest_s <= 0.02:
        return QUICK_S, PHASES
    return (PHASE_S, PHASES) if slowest_s <= 0.15 else (SLOW_S, SLOW_PHASES)


def make_loads(tools: Instruments, seen: Checkup, folder: Path) -> Loaded:
    """Make the loads that the meters here can see, and keep the recording in `folder`. Closes the
    meters."""
    chosen, kinds = _choose_meters(tools.meters, seen)
    if not kinds:
        return Loaded((), 0, (NO_METER,))
    ranks = max(1, min(RANKS, len(os.sched_getaffinity(0)) - 1))
    facts: dict[str, str] = {}
    why: list[str] = []
    sink = FileSink(folder, base="load-step")
    recorder = Recorder(chosen, sink, tools.clock, PACE)
    recorder.header = anonymous(recorder.header)
    recorder.start()
    try:
        for kind in kinds:
            ticks_s = _ticks_s(seen, kind)
            said = _make_load(recorder, kind, ranks if kind == "cpu" else 1, ticks_s, facts)
            why += [f"the {kind.upper()} had no load that is known: {said}"] if said else []
    finally:
        recorder.stop()
    trace = keep(folder, recorder.header, facts)
    return Loaded(told_of(load(trace)), ranks if "cpu" in kinds else 0, why, trace)


def _choose_meters(meters: Sequence[Meter], seen: Checkup) -> tuple[list[Meter], list[str]]:
    """Those that see a load that can be made, and these loads; the others are closed."""
    still = {one.channel.name for one in seen.tried if one.rate == 0.0}  # as virtual machines do
    counters_of = [_moving_counters(meter, still) for meter in meters]
    loads = {LOADED_BY.get(c.kind_of_domain) for channels in counters_of for c in channels}
    kinds = sorted(load for load in loads if load is not None)
    chosen = []
    for meter, channels in zip(meters, counters_of, strict=True):
        if kinds and channels:
            chosen.append(meter)
        else:
            meter.close()
    return chosen, kinds


def _ticks_s(seen: Checkup, kind: str) -> list[float]:
    """Of the counters that a load is for."""
    return [
        one.tick_s
        for one in seen.tried
        if _is_counter(one.channel) and LOADED_BY.get(one.channel.kind_of_domain) == kind
    ]


def _moving_counters(meter: Meter, still: Collection[str]) -> list[Channel]:
    """Of a meter that a load can be made beside; `still` are the names of those that never move."""
    channels = meter.channels if meter.name in METERS else ()
    return [c for c in channels if _is_counter(c) and c.name not in still]


def _is_counter(channel: Channel) -> bool:
    return channel.quantity == "energy_j" and channel.basis == "measured"


def _make_load(
    recorder: Recorder, kind: str, count: int, ticks_s: Sequence[float], facts: dict[str, str]
) -> str:
    """One load from its first phase to its last, its changes as marks; or why there was none."""
    children = Children(kind, count)
    try:
        recorder.expect(READY_S)
        why = children.ready()
        if why:
            _mark(recorder, kind, IDLE, *[recorder.clock.now_ns()] * 2)
            recorder.expect(REST_S)
            _wait(recorder, REST_S)
            _mark(recorder, kind, END, *[recorder.clock.now_ns()] * 2)
            return why
        facts |= children.facts
        length_s, phases = phases_of(ticks_s)
        states = [BUSY if number % 2 else IDLE for number in range(phases)]
        states += [SPIN, IDLE] if SPIN in children.states else []
        timetable = timetable_of(states, length_s, recorder.clock.now_ns() + round(LEAD_S * S))
        recorder.expect((timetable[-1][0] - recorder.clock.now_ns()) / S + LEAD_S)
        children.begin(timetable)
        left = len(timetable)
        while left:
            if recorder.clock.now_ns() > timetable[-1][0] + 5 * S:
                return "its processes did not keep to their timetable"
            for number, first_ns, last_ns in children.notes(0.1):
                _mark(recorder, kind, timetable[number][1], first_ns, last_ns)
                left -= 1
    except Spoilt as error:
        return str(error)
    finally:
        children.end()
    return ""


def _wait(recorder: Recorder, for_s: float) -> None:
    until_ns = recorder.clock.now_ns() + round(for_s * S)
    while recorder.clock.now_ns() < until_ns:
        if signal.sigpending() & {signal.SIGINT, signal.SIGTERM}:
            raise KeyboardInterrupt
        time.sleep(0.1)


def _mark(recorder: Recorder, kind: str, state: str, first_ns: int, last_ns: int) -> None:
    recorder.mark(
        NOTE,
        by=BY,
        t_ns=(first_ns + last_ns) // 2,
        load=kind,
        state=state,
        loose_s=(last_ns - first_ns) / 2 / S,
    )


class _Phase(NamedTuple):
    begin_s: float
    end_s: float
    state: str
    loose_s: float


def _phases(run: Run, kind: str) -> list[_Phase]:
    """As the marks of a recording tell them."""
    marks = [m for m in run.marks if m.by == BY and m.detail.get("load") == kind]
    marks.sort(key=lambda mark: mark.t_s)
    return [
        _Phase(a.t_s, b.t_s, str(a.detail["state"]), float(str(a.detail.get("loose_s", 0.0))))
        for a, b in pairwise(marks)
    ]


def told_of(run: Run) -> list[LoadReport]:
    """What a recording with loads tells of each of its meters of joules and watts."""
    energies = Energies(run.node())
    found = []
    for channel in run.channels:
        kind = LOADED_BY.get(channel.kind_of_domain, "")
        phases = _phases(run, kind)
        if phases and (channel.quantity == "energy_j" or _shows_steps(channel)):
            found.append(_load_report(energies, channel, kind, phases))
    return found


def _load_report(
    energies: Energies, channel: Channel, kind: str, phases: Sequence[_Phase]
) -> LoadReport:
    is_counter = channel.is_counter
    seen = energies.node.series(channel)
    if is_counter:
        counter = counters.unwrap_counter(seen, channel.wraps_at, resolution=channel.resolution)
        seen = Series(counter.t_s, counter.total, counter.took_s)
    spins = any(phase.state == SPIN for phase in phases)
    wave, held = (phases[:-2], phases[-2:]) if spins else (phases, ())
    part = _between(seen, wave[0].begin_s, wave[-1].end_s)
    steps = [LoadStep(p.begin_s, p.state == BUSY, p.loose_s) for p in wave[1:]]
    told = timing_of_counter if is_counter else timing_of_gauge
    timing = told(part, steps, channel.tick_s)
    spinning, sleeping = timing.high_w, timing.low_w
    if kind == "gpu":
        found_w = [
            watts_of(seen, each.begin_s + SETTLED_S, each.end_s, is_counter) for each in held
        ]
        spinning, sleeping = found_w or (UNKNOWN, UNKNOWN)
    assumed_s = energies.lag_s(channel) if is_counter else float("nan")
    return LoadReport(channel, kind, timing, spinning, sleeping, assumed_s)


def _shows_steps(channel: Channel) -> bool:
    """Watts of a whole domain that are no mean over much longer than a phase needs to settle."""
    return (
        channel.quantity == "power_w"
        and channel.role == "part"
        and channel.basis == "measured"
        and (channel.averaging_s or 0.0) <= SETTLED_S
    )


def _between(seen: Series, begin_s: float, end_s: float) -> Series:
    inside: Any = (seen.t_s >= begin_s) & (seen.t_s <= end_s) & np.isfinite(seen.value)
    return Series(*(part[inside] for part in seen))
