"""Record for a while, then say what was used: by domain, by checkpoint, and what the recorder itself took."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ckptcost.core import depth
from ckptcost.core.attribution import Baseline, Cost, Opportunity, Place, attributed, mean_w, opportunity, own_cost, spent
from ckptcost.core.channels import Mark
from ckptcost.core.depth import Queue
from ckptcost.core.phases import windows_of
from ckptcost.core.reconcile import Energy, Reconciled, reconciled, taken, total, unknown
from ckptcost.core.windows import Window
from ckptcost.errors import InputError, MeterUnavailable, OutputError
from ckptcost.jobs.energies import Energies, drivers_of
from ckptcost.jobs.instruments import REPLAY, Instruments, instruments
from ckptcost.meters.base import Absence, Meter
from ckptcost.meters.found import Wanted
from ckptcost.runs.baselines import Idle, file_of, load
from ckptcost.runs.clocks import RealClock, S, VirtualClock
from ckptcost.runs.pace import Pace
from ckptcost.runs.recorder import Recorder, Stats
from ckptcost.runs.run import Run
from ckptcost.runs.sinks import FileSink, MemorySink, Sink

MARGIN_S = 0.5
"""recorded before and after what is asked for, so that its edges lie between ticks"""
EDGE, ASKED = "note", "measure"
"""a mark at either end of what was asked for: single readings are kept around it, and a replay finds it again"""
MOST_KEPT_S = 3600.0
MOST_VALUES = 4_000_000
"""40 bytes each: an hour of 8 GPUs"""
SLOW_MARGIN_S = 3.0
"""where a meter answers once a second or less often"""


class Recorded(NamedTuple):
    run: Run
    begin_s: float
    """what was asked for, without the margins"""
    end_s: float
    stats: Stats


class Stored(NamedTuple):
    """A disk over a window, or over all that was asked for."""

    window: str
    disk: str
    queue: Queue


class Measured(NamedTuple):
    """What a node used. All energies are its own: no PUE."""

    run: Run
    begin_s: float
    end_s: float
    energies: Energies
    spans: Mapping[str, Energy]
    """joules of every domain over the whole time"""
    node: Reconciled
    windows: Sequence[Window]
    costs: Sequence[Cost]
    opportunities: Sequence[Opportunity]
    stored: Sequence[Stored]
    own: Energy
    own_cpu_s: float
    idle: Idle | None
    absences: Sequence[Absence]
    stats: Stats | None = None
    kept: str = ""
    """the run's id, where it is in files"""

    @property
    def length_s(self) -> float:
        return self.end_s - self.begin_s

    @property
    def simulated(self) -> bool:
        return self.run.simulated

    def of_window(self, window: str) -> Totals:
        """All parts together."""
        parts = set(self.energies.parts)
        mine = [cost for cost in self.costs if cost.window == window and cost.domain in parts]
        if not mine:
            none = unknown("NO_PARTS")
            return Totals(none, none, none)
        return Totals(total(c.absolute for c in mine), total(c.excess for c in mine), total(c.stall for c in mine))

    def spent(self, begin_s: float, end_s: float) -> Energy:
        """Joules of all parts from one instant to another."""
        if not self.energies.parts:
            return unknown("NO_PARTS")
        return total(spent(self.energies.joules, domain, [(begin_s, end_s)]) for domain in self.energies.parts)

    def mean_w(self, energy: Energy) -> float:
        """Over the covered part of the whole time."""
        return mean_w(energy, self.length_s).value

    def is_short(self, window: Window) -> bool:
        """Fewer than five ticks of some part lie inside."""
        begin_s, end_s = window.begin_s, window.end_s
        if begin_s is None or end_s is None:
            return False
        return any(self.energies.joules(domain, begin_s, end_s).short for domain in self.energies.parts)

    @property
    def mean_save(self) -> MeanSave | None:
        """Of the saves whose stall and joules are known."""
        known = [
            (window.stall_s, self.of_window(window.name).absolute.value, chance.stalled_gpu_s)
            for window, chance in zip(self.windows, self.opportunities, strict=True)
            if window.stall_s is not None and self.of_window(window.name).absolute.known
        ]
        if not known:
            return None
        stall_s, joules, gpu_s = (sum(column) / len(known) for column in zip(*known, strict=True))
        return MeanSave(len(known), stall_s, joules, gpu_s)

    @property
    def own_share(self) -> float:
        """Of one core, that measuring took."""
        return self.own_cpu_s / self.run.duration_s if self.run.duration_s > 0 else math.nan


class Totals(NamedTuple):
    absolute: Energy
    excess: Energy
    stall: Energy


class MeanSave(NamedTuple):
    saves: int
    stall_s: float
    joules: float
    stalled_gpu_s: float


def record(
    tools: Instruments,
    for_s: float,
    directory: Path | None = None,
    pace: Pace | None = None,
    tell: Callable[[Recorder], None] | None = None,
) -> Recorded:
    """Ask all meters for so long. An interrupt ends it early and what there is counts."""
    if not tools.meters:
        reasons = "; ".join(dict.fromkeys(absence.reason for absence in tools.absences)) or "no meter was asked for"
        raise MeterUnavailable(f"nothing can be measured here: {reasons}", "`ckptcost doctor` says what would help")
    if directory is None and for_s > MOST_KEPT_S:
        raise InputError("what is not written is kept in memory", where="--for", remedy="give --record DIR, or at most an hour")
    if directory is not None and directory.is_dir() and any(directory.glob("*.jsonl")):
        raise OutputError(f"{directory} holds a run already; name another folder")
    memory = MemorySink(most_values=MOST_VALUES)
    sink: Sink = memory if directory is None else FileSink(directory)
    recorder = Recorder(tools.meters, sink, tools.clock, pace)
    margin_s = SLOW_MARGIN_S if any(_is_slow(meter) for meter in tools.meters) else MARGIN_S
    if isinstance(tools.clock, VirtualClock):
        begin_ns, end_ns = _fast_forward(recorder, tools, for_s)
    else:
        begin_ns, end_ns = _wait(recorder, for_s, margin_s, tell)
    run = memory.run() if directory is None else _loaded(directory, recorder)
    origin_ns = run.node().origin_ns
    return Recorded(run, (begin_ns - origin_ns) / S, (end_ns - origin_ns) / S, recorder.stats)


def _is_slow(meter: Meter) -> bool:
    """A meter of joules or watts that answers once a second or less often needs time on either side."""
    period_s = max(meter.least_s, getattr(meter, "pace_s", 0.0))
    return period_s >= 1.0 and any(channel.quantity in ("power_w", "energy_j") for channel in meter.channels)


def _loaded(directory: Path, recorder: Recorder) -> Run:
    from ckptcost.runs import reader

    return reader.load(directory, recorder.header.run)


def _wait(recorder: Recorder, for_s: float, margin_s: float, tell: Callable[[Recorder], None] | None) -> tuple[int, int]:
    clock = RealClock()
    recorder.start()
    begin_ns = clock.now_ns() + round(margin_s * S)
    end_ns = begin_ns + round(for_s * S)
    recorder.expect(margin_s + 1.0)
    try:
        _sleep_until(clock, begin_ns, recorder, None)
        recorder.mark(EDGE, by=ASKED, t_ns=begin_ns)
        _sleep_until(clock, end_ns, recorder, tell)
        recorder.mark(EDGE, by=ASKED, t_ns=end_ns)
        recorder.expect(margin_s + 1.0)
        _sleep_until(clock, end_ns + round(margin_s * S), recorder, None)
    except KeyboardInterrupt:
        end_ns = min(end_ns, clock.now_ns())
        recorder.mark(EDGE, by=ASKED, t_ns=end_ns)
        _sleep_until(clock, end_ns + round(min(margin_s, MARGIN_S) * S), recorder, None)
    finally:
        recorder.stop()
    return begin_ns, max(begin_ns, end_ns)


def _sleep_until(clock: RealClock, until_ns: int, recorder: Recorder, tell: Callable[[Recorder], None] | None) -> None:
    import time

    while (left_s := (until_ns - clock.now_ns()) / S) > 0:
        time.sleep(min(left_s, 0.25))
        if tell is not None:
            tell(recorder)


def _fast_forward(recorder: Recorder, tools: Instruments, for_s: float) -> tuple[int, int]:
    """As fast as it goes; the marks of the simulated or replayed job come at their times."""
    clock = tools.clock
    assert isinstance(clock, VirtualClock)
    recorder.begin()
    begin_ns = clock.now_ns() + round(MARGIN_S * S)
    end_ns = begin_ns + round(for_s * S)
    edges = [Mark(at_ns / S, EDGE, by=ASKED) for at_ns in (begin_ns, end_ns)]
    for mark in sorted([*tools.marks, *edges], key=lambda mark: mark.t_s):
        at_ns = round(mark.t_s * S)
        if at_ns > end_ns:
            break
        recorder.run_until(at_ns)
        recorder.mark(mark.name, mark.window, by=mark.by, rank=mark.rank, t_ns=at_ns, **mark.detail)
        recorder.step()
    recorder.run_until(end_ns + round(MARGIN_S * S))
    recorder.stop()
    return begin_ns, end_ns


def measure(
    meters: str, wanted: Wanted, for_s: float | None, directory: Path | None = None, tell: Callable[[Recorder], None] | None = None
) -> Measured:
    """Look for meters, record, evaluate. Without a length a replayed run is taken whole."""
    if meters.startswith(REPLAY):
        return _again(meters.removeprefix(REPLAY), for_s)
    tools = instruments(meters, wanted, for_s or 0.0)
    recorded = record(tools, tools.length_s if for_s is None and tools.length_s is not None else for_s or 0.0, directory, tell=tell)
    idle = None if tools.simulated else load(file_of(recorded.run.node().host))
    seen = evaluate(recorded.run, recorded.begin_s, recorded.end_s, idle, tools.absences, recorded.stats)
    return seen if directory is None else seen._replace(kept=recorded.run.id)


def _again(path: str, for_s: float | None) -> Measured:
    """A run that was recorded, evaluated again: exactly what its readings say, and marked as not measured now."""
    from ckptcost.runs import reader

    run = reader.load(path)
    if not run.nodes or not len(ticked := run.nodes[0].ticked_s()):
        raise MeterUnavailable(f"{Path(path).name}: holds no readings")
    first, last = float(ticked[0][0]), float(ticked[-1][1])
    margin_s = min(MARGIN_S, (last - first) / 4)
    asked = [mark.t_s for mark in run.marks if mark.by == ASKED]
    begin_s = min(asked, default=first + margin_s)
    end_s = max(asked) if len(asked) > 1 else last - margin_s
    node = run.nodes[0]
    idle = None if run.simulated else load(file_of(node.host))
    run.simulated = True
    return evaluate(run, begin_s, end_s if for_s is None else min(end_s, begin_s + for_s), idle, host=node.host)._replace(kept=run.id)


def evaluate(
    run: Run, begin_s: float, end_s: float, idle: Idle | None = None, absences: Sequence[Absence] = (), stats: Stats | None = None,
    host: str = "",
) -> Measured:  # fmt: skip
    """From readings and marks to joules."""
    node = run.node(host)
    energies = Energies(node)
    spans = {domain: taken(energies.joules(domain, begin_s, end_s)) for domain in energies.sources}
    parts = {domain: spans[domain] for domain in energies.parts}
    boundaries = {domain: energies.sources[domain].channel.boundary for domain in parts}
    wholes = [domain for domain in energies.wholes if domain.split(":")[0] == "node"]
    windows = windows_of(_of(run.marks, node.host, len(run.hosts) > 1))
    place = Place(node.host, drivers_of(node).get("gpu", ""), run.wall_s(begin_s))
    baselines = None if idle is None else {name: b for name, b in idle.domains.items() if not math.isnan(b.power_w)}
    names = [*energies.parts, *wholes]
    ticked = node.ticked_s()
    since_s = float(ticked[0, 0]) if len(ticked) else 0.0
    costs = attributed(windows, names, energies.joules, since_s, baselines, place)
    gpus = float(len({domain for domain in energies.parts if domain.startswith(("gpu:", "module:"))}))
    own_cpu_s, own = _own(run, energies, spans, begin_s, end_s, stats)
    return Measured(
        run, begin_s, end_s, energies, spans,
        reconciled(parts, spans[wholes[0]] if wholes else None, boundaries),
        windows, costs, [opportunity(window, gpus) for window in windows], _stored(energies, windows, begin_s, end_s),
        own, own_cpu_s, idle, tuple(absences), stats,
    )  # fmt: skip


def _of(marks: Sequence[Mark], host: str, several: bool) -> list[Mark]:
    return [mark for mark in marks if not several or mark.detail.get("host") in (None, host)]


def _stored(energies: Energies, windows: Sequence[Window], begin_s: float, end_s: float) -> list[Stored]:
    """Every disk in the whole time and in every window; partitions and mapped devices lie inside others and are left out."""
    disks = [d for kind in ("disk", "mount") for d in energies.domains(kind, "written_bytes") if _adds_up(energies, d)]
    spans = [("", begin_s, end_s)] + [(w.name, w.begin_s, w.end_s) for w in windows if w.begin_s is not None and w.end_s is not None]
    return [Stored(name, disk, depth.over(energies.readings(disk), since_s, until_s)) for disk in disks for name, since_s, until_s in spans]


def _adds_up(energies: Energies, domain: str) -> bool:
    return any(c.domain == domain and c.role == "part" for c in energies.channels)


def _own(
    run: Run, energies: Energies, spans: Mapping[str, Energy], begin_s: float, end_s: float, stats: Stats | None
) -> tuple[float, Energy]:
    """The recorder's own processor time, and what a core's share of the package makes of it."""
    cpu_s = stats.cpu_s if stats is not None else math.nan
    if math.isnan(cpu_s):
        costs = [event.detail.get("cpu_s") for event in run.events if event.name == "cost"]
        cpu_s = next((float(c) for c in reversed(costs) if isinstance(c, int | float)), math.nan)
    packages = [spans[domain] for domain in energies.parts if domain.startswith("cpu:")]
    length_s = end_s - begin_s
    package_w = sum(e.value for e in packages) / length_s if packages and length_s > 0 else math.nan
    return cpu_s, own_cost(cpu_s, package_w, float(os.cpu_count() or 1))


def baseline_of(measured: Measured, taken_s: float) -> dict[str, Baseline]:
    """Mean watts by domain; low and high are the 5th and 95th percentile of whole seconds, or the mean's own range where that is wider."""
    import numpy as np

    found = {}
    for domain, energy in measured.spans.items():
        if not energy.known or measured.length_s <= 0:
            continue
        mean, low, high = (joules / measured.length_s for joules in (energy.value, energy.low, energy.high))
        seconds = [
            measured.energies.joules(domain, at, at + 1.0).value
            for at in np.arange(measured.begin_s, measured.end_s - 1.0 + 1e-9, 1.0).tolist()
        ]
        known = [joules for joules in seconds if joules == joules]
        if known:
            low, high = min(low, float(np.percentile(known, 5))), max(high, float(np.percentile(known, 95)))
        if all(map(math.isfinite, (mean, low, high))):
            driver = measured.energies.sources[domain].driver
            found[domain] = Baseline(mean, min(low, mean), max(high, mean), taken_s, measured.energies.node.host, driver)
    return found
