"""What runs tell that a fit may rest on: saves and loads that finished, of known size, alone; how
long each took, watts of GPUs and of the rest of the node in each state, and joules per byte of the
storage."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from math import inf, isfinite, nan
from typing import Final, NamedTuple

import numpy as np

from ckptcost.first.core import gauges
from ckptcost.first.core.attribution import mean_w, spent
from ckptcost.first.core.channels import Mark
from ckptcost.first.core.contents import OUTSIDE, Contents, written_back_s
from ckptcost.first.core.dips import Dip
from ckptcost.first.core.domain import Boundary
from ckptcost.first.core.estimates import Estimate, Floats, absent, mean_of
from ckptcost.first.core.fit import fit_power, joules_per_byte
from ckptcost.first.core.reconcile import NONE_SPENT, Energy, difference, times, total, unknown
from ckptcost.first.core.steps import StepSplit
from ckptcost.first.core.windows import Stretch, Window, extent, quiet_before, union
from ckptcost.first.jobs.energies import GPU_KINDS
from ckptcost.first.jobs.measured import Measured
from ckptcost.first.jobs.measured_bill import load_end_s, whole_or_none
from ckptcost.first.runs.header import base_name

EARLY: Final = 0.1
"""a save that is safe so much of its length after training went on was not waited for"""
TAKEN: Final = 0.9
"""a disk that took less of a save's bytes was not where they went"""
BUSY: Final = 0.2
"""utilisation of the GPUs from which somebody trains on them"""


STORAGE: Final[tuple[Boundary, ...]] = ("storage-system", "drive")
"""boundaries whose joules may stand for a tier's, the wider first: a node's are not its
storage's"""
NODES_OWN: Final = frozenset(
    {"gpu", "module", "cpu", "dram", "core", "uncore", "psys", "node", "process", "cgroup", "self"}
)


class FitRound(NamedTuple):
    """One save or load."""

    run: str
    window: Window
    mode: str
    """sync; early: written before training went on, and safe later, as without fsync; async:
    written in the background; load"""
    bytes: float
    files: float
    seconds: float
    """from its begin until it is safe; async: from the return on, when writing begins; load: until
    training goes on"""
    stall_s: float
    """training held up; NaN where nobody says when it went on"""
    quiet: Stretch | None
    """the time just before in which nothing was saved"""
    trains: bool
    """somebody trained in it"""
    ranks_s: tuple[float, ...]
    """how long each rank was at it"""
    by_steps: Estimate
    """the stall as training steps show it"""
    dip: Dip | None
    """whether the GPUs' power confirms the stall; None without training or a stall"""
    how: str
    """the evidence for the instant that it was safe"""
    unsure_s: float
    """how long before that it was last seen not to be; NaN where the mark is the instant itself"""
    from_cache: bool = False
    """nobody synced it: `seconds` are those in which the disk was busy with it, not the kernel's
    timer"""

    @property
    def goes_on(self) -> bool:
        """Whether training goes on before it is safe."""
        return self.mode == "async" or (self.mode == "early" and self.trains)


class UnfitWindow(NamedTuple):
    run: str
    window: str
    of: str
    why: str
    """NO_BYTES, FAILED, OVERLAPS, NO_TIME, OTHER_MODE, PAGE_CACHE, HONEYMOON, or why the window's
    end is not known"""


class RunToFit:
    """One run and what can be taken from it."""

    def __init__(self, seen: Measured) -> None:
        self.seen = seen
        self.id = base_name(seen.run.id)
        self.host = seen.energies.node.host
        self.marks: list[Mark] = [
            m
            for m in seen.run.marks
            if len(seen.run.hosts) == 1 or m.detail.get("host") in (None, self.host)
        ]
        self.gpus = seen.energies.gpus
        self._busy = union(extent(window) for window in seen.windows)
        self._since_s = seen.energies.since_s

    @property
    def ends_s(self) -> Floats:
        """Ends of training steps."""
        return np.empty(0) if self.seen.steps is None else self.seen.steps.ends_s

    @property
    def split(self) -> StepSplit:
        return (
            StepSplit(np.empty(0), np.empty(0))
            if self.seen.steps is None
            else self.seen.steps.split
        )

    @cached_property
    def is_of_all(self) -> bool:
        """Its bytes are a whole system's: told from outside, of a job that has more ranks than this
        node."""
        world = max(
            (float(n) for m in self.marks if isinstance(n := m.detail.get("world"), int | float)),
            default=0.0,
        )
        here = max((len(window.spans) for window in self.seen.windows), default=0)
        outside = any(m.by == OUTSIDE and m.detail.get("bytes") for m in self.marks)
        return outside and (len(self.seen.run.hosts) > 1 or world > here)

    def quiet(self, at_s: float) -> Stretch | None:
        return quiet_before(self._busy, at_s, self._since_s)

    def trains(self, stretch: Stretch | None) -> bool:
        """Steps end in it, or GPUs are busy; a probe's pauses are no training."""
        if stretch is None:
            return False
        begin_s, end_s = stretch
        if len(self.ends_s) and ((self.ends_s >= begin_s) & (self.ends_s < end_s)).any():
            return True
        energies = self.seen.energies
        places = [
            n
            for n, c in enumerate(energies.channels)
            if c.quantity == "utilisation" and c.domain.startswith(GPU_KINDS)
        ]
        shares = [gauges.spread(energies.series(n), begin_s, end_s).mean for n in places]
        known = [share for share in shares if share == share]
        return bool(known) and sum(known) / len(known) >= BUSY


def rounds_of(told: RunToFit) -> tuple[list[FitRound], list[UnfitWindow]]:
    """Every window, as a round or with the reason why it is none."""
    seen = told.seen
    alone = _without_overlap(seen.windows)
    both = list(zip(seen.windows, seen.contents, strict=True))
    torn = _unfinished_window([window for window, what in both if what.of != "load"])
    change = seen.slower
    in_memory = set() if change is None else {w.name for w in seen.stalled_saves[: change.first]}
    rounds: list[FitRound] = []
    left: list[UnfitWindow] = []
    for place, (window, what) in enumerate(both):
        mode, seconds, why = _seconds(window, what)
        why = why or _why_unfit(window, torn, alone[place], in_memory)
        from_cache = not why and written_back_s(window, what) != 0.0
        if from_cache:
            mode, seconds = "early", _busy_s(told, window, what.bytes)
            why = "" if seconds > 0 else "PAGE_CACHE"
        if why:
            left.append(UnfitWindow(told.id, window.name, what.of, why))
        else:
            rounds.append(_round(told, place, mode, seconds, from_cache))
    return rounds, left


def _round(told: RunToFit, place: int, mode: str, seconds: float, from_cache: bool) -> FitRound:
    """The window at a place of a run, whose mode and duration are known."""
    seen = told.seen
    window, what = seen.windows[place], seen.contents[place]
    assert window.begin_s is not None
    quiet = told.quiet(window.begin_s)
    trains = told.trains(quiet)
    return FitRound(
        told.id,
        window,
        mode,
        what.bytes,
        what.files,
        seconds,
        nan if window.stall_s is None else window.stall_s,
        quiet,
        trains,
        _ranks_s(window),
        absent("NO_STEPS") if seen.steps is None else seen.steps.stalls_s[place],
        seen.dips[place] if trains and mode != "load" else None,
        what.how,
        what.unsure_s,
        from_cache,
    )


def _why_unfit(
    window: Window, torn: Window | None, is_alone: bool, in_memory: Collection[str]
) -> str:
    """Why a window of known duration cannot be fitted; empty: it can."""
    if window is torn:
        return "UNFINISHED"
    if not is_alone:
        return "OVERLAPS"
    return "HONEYMOON" if window.name in in_memory else ""


def _busy_s(told: RunToFit, window: Window, size_bytes: float) -> float:
    """How long the disk that took a save was busy for it; NaN where not exactly one took so
    much."""
    took = [
        stored.queue
        for stored in told.seen.stored
        if stored.window == window.name
        and stored.disk.startswith("disk:")
        and stored.queue.written_bytes >= TAKEN * size_bytes
    ]
    if len(took) != 1:
        return nan
    (queue,) = took
    return queue.busy * (queue.end_s - queue.begin_s) * size_bytes / queue.written_bytes


def _unfinished_window(windows: Sequence[Window]) -> Window | None:
    """The last one, where the marks stop between its fsync and the commit that others have: it is
    not safe yet."""
    last = max(windows, key=lambda window: window.last_s, default=None)
    if (
        last is None
        or _has(last, "committed", "durable")
        or not any(_has(window, "committed") for window in windows)
    ):
        return None
    return last


def _has(window: Window, *names: str) -> bool:
    return any(name in span.at_s for span in window.spans for name in names)


def _seconds(window: Window, what: Contents) -> tuple[str, float, str]:
    """Mode, duration, and why it is none."""
    if what.error:
        return "", nan, "FAILED"
    loads = what.of == "load"
    end_s = load_end_s(window) if loads else window.durable_s
    if window.begin_s is None or end_s is None:
        return "", nan, window.begin_why or _why_no_end(window, what)
    if not what.bytes > 0:
        return "", nan, "NO_BYTES"
    length_s = end_s - window.begin_s
    mode, seconds = ("load", length_s) if loads else _mode_of(window, length_s, end_s)
    return mode, seconds, "" if seconds > 0 else "NO_TIME"


def _why_no_end(window: Window, what: Contents) -> str:
    return window.returned_why if what.of == "load" else what.why or window.durable_why


def _mode_of(window: Window, length_s: float, durable_s: float) -> tuple[str, float]:
    """Of a save, and how long it was being written."""
    returned_s = window.returned_s
    if returned_s is None or durable_s - returned_s <= EARLY * length_s:
        return "sync", length_s
    written_s = [span.at_s["written"] for span in window.spans if "written" in span.at_s]
    if max(written_s, default=durable_s) > returned_s:
        return "async", durable_s - returned_s
    return "early", length_s


def _without_overlap(windows: Sequence[Window]) -> list[bool]:
    """Which share no time with another: two that write at once share the rate."""
    spans = [extent(window) for window in windows]
    ordered = sorted(span for span in spans if span is not None)
    begins = [span[0] for span in ordered]
    reach = list(accumulate((end_s for _, end_s in ordered), max))

    def is_alone(span: Stretch) -> bool:
        first = bisect_left(begins, span[0])
        before = reach[first - 1] if first else -inf
        after = begins[first + 1] if first + 1 < len(begins) else inf
        return before <= span[0] and after >= span[1]

    return [span is None or is_alone(span) for span in spans]


def _ranks_s(window: Window) -> tuple[float, ...]:
    """From each rank's begin to the last that it says of its own writing."""
    found = []
    for span in window.spans:
        lasts = [
            span.at_s[name] for name in ("written", "synced", "committed") if name in span.at_s
        ]
        last_s = (
            max(lasts)
            if lasts
            else span.durable_s
            if span.durable_s is not None
            else span.returned_s
        )
        if span.begin_s is not None and last_s is not None:
            found.append(last_s - span.begin_s)
    return tuple(found)


class StateWatts(NamedTuple):
    """Mean watts, per GPU or per host."""

    train_w: Estimate
    stall_w: Estimate
    idle_w: Estimate


class StorageJoules(NamedTuple):
    """Of the storage, at the boundary that its meters see."""

    j_per_byte: Estimate
    rest_w: Estimate
    """at rest, from the same rounds"""
    boundary: str
    domains: tuple[str, ...]
    is_modelled: bool
    """computed from what the drive did, not read"""


Share = Callable[[RunToFit, Mapping[str, Energy]], Energy]
"""what one GPU, or the host, has of joules by domain"""


def gpu_share(told: RunToFit, by_domain: Mapping[str, Energy]) -> Energy:
    """One GPU in the mean of all of a node."""
    cards = [by_domain[domain] for domain in told.gpus if domain in by_domain]
    return (
        times(whole_or_none(total(cards)), 1.0 / len(cards)) if cards else unknown("NO_GPU_METER")
    )


def host_share(told: RunToFit, by_domain: Mapping[str, Energy]) -> Energy:
    """The node less its GPUs: processors, memory, fans, boards and, at the plug, the power
    supplies. Parts alone are no host."""
    nodes = [energy for domain, energy in by_domain.items() if domain.split(":")[0] == "node"]
    if not nodes:
        return unknown("NO_NODE_METER")
    cards = [by_domain[domain] for domain in told.gpus if domain in by_domain]
    left = difference(whole_or_none(nodes[0]), whole_or_none(total(cards)))
    return unknown("PARTS_EXCEED_NODE") if left.high < 0 else left


def states_of(told: Sequence[tuple[RunToFit, Sequence[FitRound]]], share: Share) -> StateWatts:
    training: list[Energy] = []
    stalled: list[Energy] = []
    idle: list[Energy] = []
    for one, rounds in told:
        unmetered = share(one, dict.fromkeys(_names(one), NONE_SPENT))
        if not unmetered.known:
            for each in (training, stalled, idle):
                each.append(unmetered)
            continue
        trained, stood = _in_training(one, rounds, share)
        training += trained
        stalled += stood
        idle.append(_idle(one, share))
    return StateWatts(_mean(training), _mean(stalled), _idles(idle))


def _in_training(
    told: RunToFit, rounds: Sequence[FitRound], share: Share
) -> tuple[list[Energy], list[Energy]]:
    """Watts just before each round, a time that several share once; and while each stalled."""
    training: list[Energy] = []
    stalled: list[Energy] = []
    seen: set[Stretch] = set()
    for round_ in rounds:
        if not round_.trains or round_.quiet is None:
            why = unknown("NOT_TRAINING" if round_.quiet else "NO_TRAINING_REFERENCE")
            training.append(why)
            stalled.append(why)
            continue
        if round_.quiet not in seen:
            seen.add(round_.quiet)
            training.append(_watts(told, round_.quiet, share))
        begin_s, returned_s = round_.window.begin_s, round_.window.returned_s
        if round_.mode != "load" and begin_s is not None and returned_s is not None:
            stalled.append(_watts(told, (begin_s, returned_s), share))
    return training, stalled


def _watts(told: RunToFit, stretch: Stretch, share: Share) -> Energy:
    """Mean power of a stretch."""
    begin_s, end_s = stretch
    if not end_s > begin_s:
        return unknown("NO_TIME")
    joules = told.seen.energies.joules
    return share(
        told, {d: mean_w(spent(joules, d, [stretch]), end_s - begin_s) for d in _names(told)}
    )


def _names(told: RunToFit) -> list[str]:
    return [
        *told.gpus,
        *(domain for domain in told.seen.energies.wholes if domain.split(":")[0] == "node"),
    ]


def _idle(told: RunToFit, share: Share) -> Energy:
    idle = told.seen.idle
    if idle is None:
        return unknown("NO_BASELINE")
    known = {domain: Energy(b.power_w, b.low_w, b.high_w) for domain, b in idle.domains.items()}
    if any(domain not in known for domain in told.gpus):
        return unknown("NO_BASELINE")
    return share(told, known)


def _mean(each: Sequence[Energy]) -> Estimate:
    """Over rounds, with room for what the meters leave open; unknown for the first one's reason."""
    known = [energy for energy in each if energy.known]
    if not known:
        return absent(each[0].why if each else "NO_ROUNDS")
    lows, highs = [energy.low for energy in known], [energy.high for energy in known]
    return mean_of([energy.value for energy in known]).wider(
        sum(lows) / len(lows), sum(highs) / len(highs)
    )


def _idles(each: Sequence[Energy]) -> Estimate:
    """A baseline brings its own range: what whole seconds of it showed. Several are of several
    machines or days."""
    known = [energy for energy in each if energy.known]
    if not known:
        return absent(each[0].why if each else "NO_BASELINE")
    value = sum(energy.value for energy in known) / len(known)
    return Estimate(
        value,
        min(energy.low for energy in known),
        max(energy.high for energy in known),
        None,
        len(known),
    )


class _Added(NamedTuple):
    """What one save added at the storage."""

    energy: Energy
    rest_w: float
    save_w: float
    bytes: float
    length_s: float

    @property
    def power_points(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Bytes per second and watts, at rest and in the save."""
        return (0.0, self.rest_w), (self.bytes / self.length_s, self.save_w)


def of_storage(told: Sequence[tuple[RunToFit, Sequence[FitRound]]]) -> StorageJoules:
    """Joules above those of the quiet time just before, over the bytes of the saves; of the widest
    boundary that any run has."""
    for boundary in STORAGE:
        seen = [
            (one, rounds, names)
            for one, rounds in told
            if (names := _storage_domains(one, boundary))
        ]
        if seen:
            return _storage_at(boundary, seen)
    none = absent("NO_STORAGE_METER")
    return StorageJoules(none, none, "", (), False)


StorageSeen = Sequence[tuple[RunToFit, Sequence[FitRound], Sequence[str]]]
"""runs whose meters see one boundary, each with the names of its domains there"""


def _added_by_saves(seen: StorageSeen) -> list[_Added]:
    return [
        _added_joules(one, round_, names)
        for one, rounds, names in seen
        for round_ in rounds
        if round_.mode != "load"
    ]


def _meters_of(seen: StorageSeen) -> tuple[tuple[str, ...], bool]:
    """Their domains, and whether some are computed rather than read."""
    metered = [one.seen.energies.sources[name] for one, _, names in seen for name in names]
    domains = tuple(dict.fromkeys(source.domain for source in metered))
    return domains, any(source.channel.basis == "modelled" for source in metered)


def _storage_at(boundary: Boundary, seen: StorageSeen) -> StorageJoules:
    each = _added_by_saves(seen)
    saves = [save for save in each if save.energy.known and isfinite(save.energy.value)]
    domains, modelled = _meters_of(seen)
    if not saves:
        none = absent(each[0].energy.why if each else "NO_ROUNDS")
        return StorageJoules(none, none, boundary, domains, modelled)
    values, lows, highs = zip(*(save.energy[:3] for save in saves), strict=True)
    sizes = [save.bytes for save in saves]
    joules = joules_per_byte(values, sizes).wider(sum(lows) / sum(sizes), sum(highs) / sum(sizes))
    loads, watts = zip(*(point for save in saves for point in save.power_points), strict=True)
    rest_w = fit_power(loads, watts).base_w
    return StorageJoules(joules, rest_w, boundary, domains, modelled)


def _storage_domains(told: RunToFit, boundary: Boundary) -> list[str]:
    """What is read goes before what is computed; what lies inside another is not added to it."""
    channels = {domain: source.channel for domain, source in told.seen.energies.sources.items()}
    mine = [
        domain
        for domain, channel in channels.items()
        if channel.boundary == boundary
        and channel.role != "detail"
        and domain.split(":")[0] not in NODES_OWN
    ]
    measured = [domain for domain in mine if channels[domain].basis == "measured"]
    return measured or mine


def _added_joules(told: RunToFit, round_: FitRound, domains: Sequence[str]) -> _Added:
    """Above rest, from the save's begin until it is safe."""
    begin_s, end_s = round_.window.begin_s, round_.window.durable_s
    if begin_s is None or end_s is None or round_.quiet is None:
        return _Added(unknown("NO_TRAINING_REFERENCE"), nan, nan, round_.bytes, nan)
    joules, length_s = told.seen.energies.joules, end_s - begin_s
    taken = whole_or_none(total(spent(joules, domain, [(begin_s, end_s)]) for domain in domains))
    rest_w = whole_or_none(
        total(
            mean_w(spent(joules, domain, [round_.quiet]), round_.quiet[1] - round_.quiet[0])
            for domain in domains
        )
    )
    return _Added(
        difference(taken, times(rest_w, length_s)),
        rest_w.value,
        taken.value / length_s,
        round_.bytes,
        length_s,
    )
