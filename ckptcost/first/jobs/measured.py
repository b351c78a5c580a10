"""From the readings and marks of a node to joules: by domain, by checkpoint and by phase, and what
the recorder itself took."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

from ckptcost.first.core import depth
from ckptcost.first.core.attribution import (
    AT_ONCE,
    Baseline,
    Cost,
    Joules,
    Opportunity,
    Planned,
    RunPlace,
    costs_of,
    mean_w,
    opportunity,
    own_cost,
    planned,
    spent,
)
from ckptcost.first.core.channels import Mark
from ckptcost.first.core.contents import Contents, is_staged
from ckptcost.first.core.depth import Queue
from ckptcost.first.core.dips import Dip, dip, of_curves, of_joules
from ckptcost.first.core.estimates import Estimate, Floats
from ckptcost.first.core.page_cache import SlowerSaves, slower_from
from ckptcost.first.core.reconcile import (
    Energy,
    Reconciled,
    energy_of_amount,
    reconcile,
    total,
    unknown,
)
from ckptcost.first.core.steps import (
    STEPS,
    StepPace,
    StepSplit,
    ends_of,
    longer,
    pace,
    split,
    stalls,
)
from ckptcost.first.core.windows import Stretch, Window, extent
from ckptcost.first.jobs.drains import saves_of
from ckptcost.first.jobs.energies import Energies, own_cpu_s
from ckptcost.first.jobs.workers import in_order
from ckptcost.first.meters.base import Absence
from ckptcost.first.meters.block import FOLDER, LIES_ON
from ckptcost.first.runs import job_facts
from ckptcost.first.runs.baselines import Idle
from ckptcost.first.runs.recorder import RecorderStats
from ckptcost.first.runs.run import Node, Run, RunEvent


class TrainingSteps(NamedTuple):
    """Of the rank that says most."""

    ends_s: Floats
    split: StepSplit
    usual: StepPace
    stalls_s: Sequence[Estimate]
    """by window: how much longer its steps took"""
    more: Estimate
    """how much longer a step takes while a save drains, as a fraction"""


def training_steps(
    marks: Sequence[Mark], windows: Sequence[Window], node: Node
) -> TrainingSteps | None:
    """None where the job marks no steps. They carry the monotonic clock of their own host."""
    told = [mark for mark in marks if mark.name == STEPS]
    if not told:
        return None
    ends_s = ends_of(told, node.origin_ns - (node.tables[0][1] if node.tables else 0))
    parts = split(ends_s, windows)
    usual = pace(parts.quiet_s)
    return TrainingSteps(
        ends_s, parts, usual, stalls(ends_s, windows, usual), longer(parts.drained_s, parts.quiet_s)
    )


def dips_of(energies: Energies, joules: Joules, plans: Sequence[Planned]) -> Iterator[Dip | None]:
    """By window, whether the GPUs' power confirms its stall; None where there is no meter of a GPU,
    or no stall to confirm. One after the other: beside the costs of the same windows, whose joules
    are at hand then."""
    gpus = energies.gpus
    if not gpus:
        yield from [None] * len(plans)
        return
    mean = of_joules(joules, gpus)
    rough = of_curves([partial(energies.curve, domain) for domain in gpus])
    resolved_s = max(_resolved_s(energies, domain) for domain in gpus)
    spans = [(stall, stall and plan.quiet) for plan in plans for stall in [_stall(plan.window)]]
    for first in range(0, len(spans), AT_ONCE):
        near = spans[first : first + AT_ONCE]
        energies.curves_ahead(gpus, [quiet for _, quiet in near if quiet])
        for stall, quiet in near:
            yield stall and dip(mean, stall, quiet, resolved_s=resolved_s, rough=rough)


def _resolved_s(energies: Energies, domain: str) -> float:
    """What is shorter cannot be seen."""
    averaging_s = energies.sources[domain].channel.averaging_s
    return max(averaging_s or 0.0, energies.tick_s(domain) or 0.0)


def _stall(window: Window) -> Stretch | None:
    """None where it did not stall, or not for a time that is known."""
    begin_s, end_s = window.begin_s, window.returned_s
    return None if begin_s is None or end_s is None or end_s <= begin_s else (begin_s, end_s)


PHASES = 256
"""phases that are worked out together"""
MANY, PIECE = 2000, 256
"""windows of a run that is shared out among processors, and how many each is given at once"""
ALIKE = 1.1
"""sizes of saves that differ by less are held against each other"""


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
    contents: Sequence[Contents]
    """beside the windows: bytes, files, how it is known when they were safe"""
    costs: Sequence[Cost]
    opportunities: Sequence[Opportunity]
    stored: Sequence[Stored]
    own: Energy
    own_cpu_s: float
    idle: Idle | None
    absences: Sequence[Absence]
    stats: RecorderStats | None = None
    kept: str = ""
    """the run's id, where it is in files"""
    missing: Sequence[Absence] = ()
    """of what was asked for by name"""
    dips: Sequence[Dip | None] = ()
    """beside the windows: whether the GPUs' power confirms that training stood still"""
    steps: TrainingSteps | None = None
    """of training, where the job marks them"""
    idle_why: str = ""
    """why the baseline that is there could not be read"""
    replayed: str = ""
    """the day of the recording, where it was read again in place of a measurement"""

    @property
    def trouble(self) -> str:
        """Why readings did not reach the disk."""
        return "" if self.stats is None else self.stats.problem

    @property
    def length_s(self) -> float:
        return self.end_s - self.begin_s

    @property
    def simulated(self) -> bool:
        return self.run.simulated

    def only(self, place: int) -> Measured:
        """As if one checkpoint were all there was."""
        here, name = slice(place, place + 1), self.windows[place].name
        steps = self.steps
        return self._replace(
            windows=self.windows[here],
            contents=self.contents[here],
            opportunities=self.opportunities[here],
            dips=self.dips[here],
            costs=[cost for cost in self.costs if cost.window == name],
            stored=[stored for stored in self.stored if stored.window in ("", name)],
            steps=None if steps is None else steps._replace(stalls_s=steps.stalls_s[here]),
        )

    def of_window(self, window: str) -> RunTotals:
        """All parts together."""
        return self._totals([cost for cost in self.costs if cost.window == window])

    def of_windows(self) -> dict[str, RunTotals]:
        """The same of every window, by its name: in one walk over all costs."""
        costs: dict[str, list[Cost]] = {window.name: [] for window in self.windows}
        for cost in self.costs:
            costs[cost.window].append(cost)
        return {name: self._totals(mine) for name, mine in costs.items()}

    def _totals(self, costs: Sequence[Cost]) -> RunTotals:
        parts = set(self.energies.parts)
        mine = [cost for cost in costs if cost.domain in parts]
        if not mine:
            none = unknown("NO_PARTS")
            return RunTotals(none, none, none)
        return RunTotals(
            total(c.absolute for c in mine),
            total(c.excess for c in mine),
            total(c.stall for c in mine),
        )

    def spent(self, begin_s: float, end_s: float) -> Energy:
        """Joules of all parts from one instant to another."""
        if not self.energies.parts:
            return unknown("NO_PARTS")
        return total(
            spent(self.energies.joules, domain, [(begin_s, end_s)])
            for domain in self.energies.parts
        )

    def mean_w(self, energy: Energy) -> float:
        """Of one domain, over the covered part of the whole time."""
        return mean_w(energy, self.length_s).value

    @property
    def parts_w(self) -> float:
        """Mean power of all parts: each over the part of the time that it is known in."""
        return sum(self.mean_w(self.spans[domain]) for domain in self.energies.parts)

    def of_phases(self, phases: Sequence[Stretch]) -> list[tuple[Energy, float]]:
        """Joules of all parts, and their mean power, of each phase."""
        parts, found = self.energies.parts, []
        for place, (begin_s, end_s) in enumerate(phases):
            if place % PHASES == 0:
                self.energies.ahead(parts, phases[place : place + PHASES])
            each = [spent(self.energies.joules, domain, [(begin_s, end_s)]) for domain in parts]
            watts = sum(mean_w(energy, end_s - begin_s).value for energy in each)
            found.append((total(each), watts) if each else (unknown("NO_PARTS"), math.nan))
        return found

    @property
    def mean_save(self) -> MeanSave | None:
        """Of the saves whose stall and joules are known."""
        totals = self.of_windows()
        known = [
            (window.stall_s, totals[window.name].absolute.value, chance.stalled_gpu_s)
            for window, what, chance in zip(
                self.windows, self.contents, self.opportunities, strict=True
            )
            if what.of == "save"
            and window.stall_s is not None
            and totals[window.name].absolute.known
        ]
        if not known:
            return None
        stall_s, joules, gpu_s = (sum(column) / len(known) for column in zip(*known, strict=True))
        return MeanSave(len(known), stall_s, joules, gpu_s)

    @property
    def slower(self) -> SlowerSaves | None:
        """Where saves of one size begin to take longer for good, as when the page cache is full."""
        seconds = [
            math.nan if each.stall_s is None else each.stall_s for each in self.stalled_saves
        ]
        bytes_of = {
            window.name: what.bytes
            for window, what in zip(self.windows, self.contents, strict=True)
        }
        sizes = [bytes_of[each.name] for each in self.stalled_saves]
        known = [size for size in sizes if size == size]
        if not known or len(known) < len(sizes) or max(known) > ALIKE * min(known):
            return None
        return slower_from(seconds)

    @property
    def stalled_saves(self) -> list[Window]:
        """Saves of which it is known how long training stood still, in order."""
        return [
            window
            for window, what in zip(self.windows, self.contents, strict=True)
            if what.of == "save" and not what.error and window.stall_s is not None
        ]

    @property
    def staged(self) -> list[Window]:
        """Saves that were removed again before the next one began, so that their stall is a lower
        bound."""
        seen = is_staged(self.windows, self.contents)
        return [window for window, staged in zip(self.windows, seen, strict=True) if staged]

    @property
    def events(self) -> list[RunEvent]:
        """What happened to this node's meters; what is said of the job is none of it."""
        mine = (event for event in self.run.events if event.host == self.energies.node.host)
        return [
            event for event in mine if event.name != "cost" and event.domain != job_facts.DOMAIN
        ]

    @property
    def own_share(self) -> float:
        """Of one core, that measuring took."""
        return self.own_cpu_s / self.run.duration_s if self.run.duration_s > 0 else math.nan


class RunTotals(NamedTuple):
    absolute: Energy
    excess: Energy
    stall: Energy


class MeanSave(NamedTuple):
    saves: int
    stall_s: float
    joules: float
    stalled_gpu_s: float


def _spent(energies: Energies, domain: str, begin_s: float, end_s: float) -> Energy:
    """Its joules; of one that stopped answering, those until then, with the rest not covered."""
    seen = energy_of_amount(energies.joules(domain, begin_s, end_s))
    if seen.known or math.isnan(until_s := energies.known_until_s(domain, begin_s, end_s)):
        return seen
    kept = energy_of_amount(energies.joules(domain, begin_s, until_s))
    return kept._replace(coverage=kept.coverage * (until_s - begin_s) / (end_s - begin_s))


def evaluate(
    run: Run,
    begin_s: float,
    end_s: float,
    idle: Idle | None = None,
    absences: Sequence[Absence] = (),
    stats: RecorderStats | None = None,
    host: str = "",
    tell: Callable[[float], None] | None = None,
) -> Measured:
    """From readings and marks to joules. `tell` is told now and then for what share of the windows
    that is done."""
    node = run.node(host)
    energies = Energies(node)
    spans = {domain: _spent(energies, domain, begin_s, end_s) for domain in energies.sources}
    parts = {domain: spans[domain] for domain in energies.parts}
    boundaries = {domain: energies.sources[domain].channel.boundary for domain in parts}
    nodes = energies.nodes
    told = saves_of(run, energies)
    inside = [lies_in(window, begin_s, end_s) for window in told.windows]
    windows, contents = list(compress(told.windows, inside)), list(compress(told.contents, inside))
    # what takes counts as long as the run, one after the other, before many small things come
    energies.forget()
    stored = _stored(energies, windows, begin_s, end_s)
    costs: list[Cost] = []
    dips: list[Dip | None] = []
    told_of = _in_turn(
        energies,
        planned(windows, energies.since_s),
        [*energies.parts, *nodes],
        {} if idle is None else idle.domains,
        energies.places(run.wall_s(begin_s)),
    )
    for of_window, fell in told_of:
        costs += of_window
        dips.append(fell)
        if tell is not None:
            tell(len(dips) / len(windows))
    cpu_s, own = _own(run, energies, spans, begin_s, end_s, stats)
    return Measured(
        run,
        begin_s,
        end_s,
        energies,
        spans,
        reconcile(parts, spans[nodes[0]] if nodes else None, boundaries),
        windows,
        contents,
        costs,
        [opportunity(window, energies.gpu_count) for window in windows],
        stored,
        own,
        cpu_s,
        idle,
        tuple(absences),
        stats,
        dips=dips,
        steps=training_steps(told.marks, windows, node),
    )


def lies_in(window: Window, begin_s: float, end_s: float) -> bool:
    """Whether something of it was in that time."""
    return window.last_s >= begin_s and (window.begin_s is None or window.begin_s <= end_s)


Told = tuple[list[Cost], Dip | None]
"""what a window cost every domain, and whether the GPUs' power confirms its stall"""


def _in_turn(
    energies: Energies, plans: Sequence[Planned], names: list[str], *held: Mapping[str, Any]
) -> Iterator[Told]:
    """Window after window, with baselines and places; those of a long run on all processors, each
    with the part of the readings that it needs."""
    workers = len(os.sched_getaffinity(0))
    if workers == 1 or len(plans) < MANY:
        yield from _costs_and_dips(energies, plans, names, *held)
        return
    groups = [plans[first : first + PIECE] for first in range(0, len(plans), PIECE)]
    pieces = [(energies.over(*_reach(group)), group, names, *held) for group in groups]
    for told in in_order(_piece, pieces, workers):
        yield from told


def _reach(plans: Sequence[Planned]) -> Stretch:
    """From when to when readings of these windows are asked for."""
    spans = [span for plan in plans for span in (extent(plan.window), plan.quiet) if span]
    begins_s, ends_s = zip(*spans, strict=True) if spans else ((0.0,), (0.0,))
    return min(begins_s), max(ends_s)


def _piece(*given: Any) -> list[Told]:
    return list(_costs_and_dips(*given))


def _costs_and_dips(
    energies: Energies,
    plans: Sequence[Planned],
    names: list[str],
    baselines: Mapping[str, Baseline],
    places: Mapping[str, RunPlace],
) -> Iterator[Told]:
    costs = costs_of(
        plans, names, energies.joules, baselines, places, energies.curve, energies.ahead
    )
    return zip(costs, dips_of(energies, energies.joules, plans), strict=True)


def _stored(
    energies: Energies, windows: Sequence[Window], begin_s: float, end_s: float
) -> list[Stored]:
    """Every disk in the whole time and in every window; partitions and mapped devices lie inside
    others and are left out."""
    disks = [
        d
        for kind in ("disk", "mount")
        for d in energies.domains(kind, "written_bytes")
        if _adds_up(energies, d)
    ]
    spans = [("", begin_s, end_s), *_ended(windows)]
    stored = []
    for disk in disks:  # one after the other: the counts of a disk are as long as the run
        seen = depth.queue_counts(energies.readings(disk))
        queues = depth.each_over(seen, [(since_s, until_s) for _, since_s, until_s in spans])
        stored += [
            Stored(name, disk, queue) for (name, _, _), queue in zip(spans, queues, strict=True)
        ]
    return stored


def _ended(windows: Sequence[Window]) -> list[tuple[str, float, float]]:
    """Names, begins and ends of those that have both."""
    return [
        (w.name, w.begin_s, w.end_s)
        for w in windows
        if w.begin_s is not None and w.end_s is not None
    ]


def _adds_up(energies: Energies, domain: str) -> bool:
    return any(c.domain == domain and c.role == "part" for c in energies.channels)


def _own(
    run: Run,
    energies: Energies,
    spans: Mapping[str, Energy],
    begin_s: float,
    end_s: float,
    stats: RecorderStats | None,
) -> tuple[float, Energy]:
    """The recorder's own processor time, and what a core's share of the package makes of it."""
    cpu_s = stats.cpu_s if stats is not None else math.nan
    if math.isnan(cpu_s):
        cpu_s = own_cpu_s(run, energies.node.host)
    packages = [spans[domain] for domain in energies.parts if domain.startswith("cpu:")]
    length_s = end_s - begin_s
    package_w = sum(mean_w(energy, length_s).value for energy in packages) if packages else math.nan
    cores = energies.node.headers[-1].settings.get("cores", 0.0)
    share = (
        length_s / run.duration_s if run.duration_s > 0 else math.nan
    )  # of the recording, which is a little longer
    return cpu_s, own_cost(cpu_s * share, package_w, cores)


def own_disk_of(energies: Energies) -> str:
    """The device that the checkpoints' folder lies on; empty where no folder was named, or none of
    this machine's disks takes it."""
    named = [
        meter.facts[FOLDER]
        for header in energies.node.headers
        for meter in header.meters
        if meter.facts.get(FOLDER)
    ]
    return named[-1] if named and named[-1] in energies.domains("disk", "written_bytes") else ""


def stored_of_saves(m: Measured) -> list[Stored]:
    """What the folder's own device took over each save, and the disks that it is a part of or made
    of; where nobody says which device that is, all disks.

    A disk counts everybody's writes. The device that the folder's file system lies on, a partition
    or a loop device, counts those to this file system alone. Below a loop device lies a file in
    somebody else's page cache: what the disk under it takes in the time of a save is not the save.
    So it is left out, and so are disks that have nothing to do with the folder.
    """
    own = own_disk_of(m.energies)
    if not own:
        return [stored for stored in m.stored if stored.window]
    kept = {own, *_below(own, _notes(m.energies))}
    known = {stored.disk for stored in m.stored}
    found = []
    if own not in known:
        counted = depth.queue_counts(m.energies.readings(own))
        found = [Stored(name, own, depth.over(counted, a, b)) for name, a, b in _ended(m.windows)]
    return found + [stored for stored in m.stored if stored.window and stored.disk in kept]


def _notes(energies: Energies) -> Mapping[str, str]:
    return {c.domain: c.note for c in energies.channels if c.kind_of_domain == "disk" and c.note}


def _below(domain: str, notes: Mapping[str, str]) -> set[str]:
    """The devices under one, as its channels' notes name them; the file under a loop device is
    none."""
    found: set[str] = set()
    words = notes.get(domain, "").removeprefix(LIES_ON).split(", ") if domain in notes else []
    for name in words:
        if not name.startswith("/") and (under := f"disk:{name}") not in found:
            found |= {under, *_below(under, notes)}
    return found


def whose_disk_bytes(m: Measured) -> str:
    """Whose bytes these are, in words."""
    own = own_disk_of(m.energies)
    others = (
        "in the time of each save, others' writes to it among them; the save's own bytes are among"
        " the checkpoints"
    )
    if own:
        return f"All bytes that {own}, the folder's own device, took {others}."
    return (
        f"All bytes that each disk took {others}. Which disk the saves went to is not known: no"
        " folder was named."
    )
