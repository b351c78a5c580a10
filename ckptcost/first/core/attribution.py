"""From joules of a domain to what a checkpoint cost it: absolute, above idle, standing still, and
what a drain adds to training.

    excess       joules - baseline_w * length extra        joules of the drain - training_w * length
    of the drain      training_w: mean power just before, outside all windows share        joules,
    each instant divided evenly among the windows open in it: shares add up to the union's joules

Which of them is the cost is the reader's question; each has its range, and a reason where it is not
known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import ceil, isnan, nan
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.channels import Basis, Channel
from ckptcost.first.core.reconcile import (
    NONE_SPENT,
    Energy,
    MeasuredEnergy,
    difference,
    energy_of_amount,
    times,
    total,
    unknown,
)
from ckptcost.first.core.windows import (
    Phase,
    Piece,
    Stretch,
    Window,
    extent,
    of_each,
    quiet_before,
    timeline,
    union,
)

Curve = Callable[[str, "NDArray[np.float64]"], "NDArray[np.float64]"]
"""joules of a domain counted up to each of many instants, roughly: quick where one at a time would
be dear"""
Joules = Callable[[str, float, float], MeasuredEnergy]
"""joules of a domain from one instant to another, as the counters give them"""
Ahead = Callable[[Sequence[str], Sequence[Stretch]], None]
"""told which spans of which domains are asked for next: together they are worked out sooner"""
AT_ONCE: Final = 64
"""windows whose spans are told ahead"""
BASELINE_LASTS_S: Final = 30 * 86400.0
WHOLE: Final = 0.999
"""a bin with a gap in it has no peak"""
MOST_BINS: Final = 4096
"""a longer phase has wider bins, and says so"""
PLACES: Final = 400
"""where in the reference a time as long as the drain is looked at"""


class Baseline(NamedTuple):
    """Idle power of one domain, measured on purpose with nothing running. A mean over a run would
    latch whatever ran."""

    power_w: float
    low_w: float
    high_w: float
    taken_s: float = nan
    """when, on the calendar"""
    host: str = ""
    driver: str = ""


class RunPlace(NamedTuple):
    """Where and when the run was: what a baseline is held against."""

    host: str = ""
    driver: str = ""
    at_s: float = nan


class Power(NamedTuple):
    """Watts of a phase. The peak is the highest mean over `peak_over_s`: a shorter one is not
    seen."""

    mean_w: Energy
    peak_w: float
    peak_over_s: float


class Cost(NamedTuple):
    """What one window cost one domain."""

    window: str
    domain: str
    absolute: Energy
    """from begin until it is safe and training goes on"""
    share: Energy
    """the same with shared instants divided; these add up over windows"""
    excess: Energy
    stall: Energy
    """the joules of the time in which training stood still"""
    drain: Energy
    """mostly training's own"""
    training_w: Energy
    """the reference of `extra`"""
    extra: Energy
    """what draining adds to training, divided where several drain at once; may be negative within
    its range"""
    overlap_s: float
    """the drain less the stalls of other windows"""


class Opportunity(NamedTuple):
    """What standing still kept from being done."""

    stalled_gpu_s: float
    waited_gpu_s: float
    """of it, GPUs whose own rank was done and stood waiting for a slower one"""
    why: str = ""


class Provenance(NamedTuple):
    """Where a number of joules comes from, all of it, beside the number."""

    domain: str
    quantity: str
    source: str
    scope: str
    boundary: str
    basis: Basis
    device: str
    driver: str
    tick_s: float | None
    averaging_s: float | None
    looks: float | None
    accuracy: float | None
    """the sensor's own published error, which no range here contains"""
    coverage: float
    """share of the window that the number is of"""
    ticks: int | None
    gaps: int | None
    resolved_s: float | None
    """how far the points that it rests on lie apart"""
    note: str


def provenance(
    channel: Channel, amount: MeasuredEnergy, driver: str = "", tick_s: float | None = None
) -> Provenance:
    """`tick_s` as measured in this run has precedence over the published one."""
    gaps = getattr(amount, "gaps", None)
    return Provenance(
        channel.domain,
        channel.quantity,
        channel.source,
        channel.scope,
        channel.boundary,
        channel.basis,
        channel.device,
        driver,
        channel.tick_s if tick_s is None else tick_s,
        channel.averaging_s,
        channel.looks,
        channel.accuracy,
        amount.coverage,
        getattr(amount, "ticks", None),
        None if gaps is None else len(gaps),
        getattr(amount, "resolved_s", None),
        channel.note,
    )


def in_turn(parts: Sequence[tuple[Energy, float]]) -> Energy:
    """Joules one after the other, with the lengths of time they are of."""
    length_s = sum(part_s for _, part_s in parts)
    summed = total([part for part, _ in parts])
    covered_s = sum(part.coverage * part_s for part, part_s in parts)
    return (
        summed._replace(coverage=covered_s / length_s) if summed.known and length_s > 0 else summed
    )


def spent(joules: Joules, domain: str, stretches: Iterable[Stretch]) -> Energy:
    """Joules of some stretches together; no time costs nothing, whoever measures."""
    return in_turn(
        [
            (energy_of_amount(joules(domain, begin_s, end_s)), end_s - begin_s)
            for begin_s, end_s in stretches
            if end_s > begin_s
        ]
    )


def mean_w(energy: Energy, length_s: float) -> Energy:
    """Mean power over the covered part: what is not covered is in neither."""
    return (
        times(energy, 1.0 / (length_s * energy.coverage))
        if energy.known and length_s > 0
        else unknown(energy.why or "NO_TIME")
    )


def training_power(
    joules: Joules, curve: Curve | None, domain: str, quiet: Stretch, over_s: float
) -> Energy:
    """Mean power of a stretch, and how far a time of `over_s` in it is from that: a drain is no
    whole number of training steps.

    The range holds what any time as long as the drain, or as half of the stretch, took in it, and
    the joules' own range besides.
    """
    begin_s, end_s = quiet
    mean = mean_w(spent(joules, domain, [quiet]), end_s - begin_s)
    long_s = min(over_s, (end_s - begin_s) / 2)
    if curve is None or not mean.known or long_s <= 0:
        return mean
    since = np.linspace(begin_s, end_s - long_s, PLACES)
    watts = (curve(domain, since + long_s) - curve(domain, since)) / long_s
    watts = watts[np.isfinite(watts)]
    if not len(watts):
        return mean
    low, high = min(mean.value, float(watts.min())), max(mean.value, float(watts.max()))
    return mean._replace(low=low - (mean.value - mean.low), high=high + (mean.high - mean.value))


def excess(
    absolute: Energy, length_s: float, baseline: Baseline | None, place: RunPlace | None = None
) -> Energy:
    """Above idle, both over the covered part. A baseline of another host or driver, or older than
    30 days, is used and flagged.

    >>> excess(Energy(1000.0, 990.0, 1010.0), 10.0, Baseline(80.0, 75.0, 85.0))[:3]
    (200.0, 140.0, 260.0)
    """
    if baseline is None or isnan(baseline.power_w):
        return unknown(absolute.why or "NO_BASELINE", *absolute.flags)
    idle_w = energy_of_amount(Energy(baseline.power_w, baseline.low_w, baseline.high_w))
    above = difference(absolute, times(idle_w, length_s * absolute.coverage))
    return _zero_in_range(above._replace(flags=above.flags + tuple(_doubts(baseline, place))))


def _doubts(baseline: Baseline, place: RunPlace | None) -> Iterable[str]:
    if place is None:
        return
    if baseline.host and place.host and baseline.host != place.host:
        yield "BASELINE_OF_OTHER_HOST"
    if baseline.driver and place.driver and baseline.driver != place.driver:
        yield "BASELINE_OF_OTHER_DRIVER"
    if isnan(baseline.taken_s):
        yield "BASELINE_UNDATED"
    elif abs(place.at_s - baseline.taken_s) > BASELINE_LASTS_S:
        yield "BASELINE_OLD"


def _zero_in_range(net: Energy) -> Energy:
    """Zero within the range: the sign of the value says nothing."""
    return (
        net._replace(flags=(*net.flags, "NOT_DISTINGUISHABLE")) if net.low <= 0 <= net.high else net
    )


def opportunity(
    window: Window, gpus: float, gpus_of: Mapping[int, float] | None = None
) -> Opportunity:
    """GPUs times the window's stall. `gpus_of` a rank; without it they are spread evenly over the
    ranks that marked.

    >>> from ckptcost.first.core.channels import Mark
    >>> from ckptcost.first.core.phases import windows_of
    >>> marks = [
    ...     Mark(0.0, "begin", rank=0),
    ...     Mark(2.0, "returned", rank=0),
    ...     Mark(0.0, "begin", rank=1),
    ...     Mark(5.0, "returned", rank=1),
    ... ]
    >>> opportunity(windows_of(marks)[0], gpus=16.0)[:2]
    (80.0, 24.0)
    """
    if window.stall_s is None:
        return Opportunity(nan, nan, window.begin_why or window.returned_why)
    each = gpus / len(window.spans)
    waited = sum(
        (each if gpus_of is None else gpus_of.get(rank, nan)) * waited_s
        for rank, waited_s in window.waited_s.items()
    )
    return Opportunity(gpus * window.stall_s, waited)


def power(joules: Joules, domain: str, phase: Phase, bin_s: float = 1.0) -> Power:
    """Mean and peak of a phase; the last bin ends with the phase, overlapping the one before."""
    if phase.length_s <= 0:
        return Power(unknown("NO_TIME"), nan, 0.0)
    mean = mean_w(spent(joules, domain, [(phase.begin_s, phase.end_s)]), phase.length_s)
    width_s = min(max(bin_s, phase.length_s / MOST_BINS), phase.length_s)
    begins = [
        phase.begin_s + width_s * n for n in range(ceil(phase.length_s / width_s - 1e-9) - 1)
    ] + [phase.end_s - width_s]
    seen = [energy_of_amount(joules(domain, begin_s, begin_s + width_s)) for begin_s in begins]
    peaks_w = [one.value / width_s for one in seen if one.coverage >= WHOLE]
    # the last two bins overlap, so what lies beside the overlap can make the mean higher than both
    return Power(
        mean,
        max([*peaks_w, mean.value] if mean.coverage >= WHOLE else peaks_w, default=nan),
        width_s,
    )


def attribute_energy(
    windows: Sequence[Window],
    domains: Iterable[str],
    joules: Joules,
    since_s: float,
    baselines: Mapping[str, Baseline] | None = None,
    places: Mapping[str, RunPlace] | None = None,
    curve: Curve | None = None,
    only: int | None = None,
    ahead: Ahead | None = None,
) -> Iterator[list[Cost]]:
    """Every window in every domain, one window after the other, for what else is to be made of the
    joules that are at hand then; `since_s` is when recording began. Without a `curve` the range of
    `extra` has no room for the training step that a drain meets. `only`: of one window, by its
    place; the others are what it overlaps with.
    """
    plans = planned(windows, since_s)
    return costs_of(
        plans if only is None else [plans[only]],
        list(domains),
        joules,
        baselines,
        places,
        curve,
        ahead,
    )


class Planned(NamedTuple):
    """A window, and what of the time around it its cost is worked out from."""

    window: Window
    pieces: Sequence[Piece]
    drained: Sequence[Piece]
    """its drain without the stalls of others"""
    quiet: Stretch | None
    """training just before it"""


def planned(windows: Sequence[Window], since_s: float) -> list[Planned]:
    """All windows of a run, with what they share; `since_s` is when recording began."""
    known = [[extent(window)] if window.length_s is not None else [] for window in windows]
    pieces = of_each(timeline(known), len(windows))
    drains = [[_stretch(window.phase("drain"))] for window in windows]
    stalls = [_stretch(window.phase("stall")) for window in windows]
    # where any window holds training up, a drain has nothing to be compared with
    calm = (piece for piece in timeline([*drains, stalls]) if piece.open[-1] < len(windows))
    drained = of_each(calm, len(windows))
    busy = union(extent(window) for window in windows)
    quiet = [None if w.begin_s is None else quiet_before(busy, w.begin_s, since_s) for w in windows]
    return [Planned(*each) for each in zip(windows, pieces, drained, quiet, strict=True)]


def costs_of(
    plans: Sequence[Planned],
    names: Sequence[str],
    joules: Joules,
    baselines: Mapping[str, Baseline] | None = None,
    places: Mapping[str, RunPlace] | None = None,
    curve: Curve | None = None,
    ahead: Ahead | None = None,
) -> Iterator[list[Cost]]:
    """Of each of these windows, one after the other, its cost in every domain of `names`."""
    for first in range(0, len(plans), AT_ONCE):
        some = plans[first : first + AT_ONCE]
        if ahead is not None:
            ahead(names, [span for plan in some for span in _spans(plan)])
        for plan in some:
            yield [
                _cost(
                    plan, name, joules, curve, (baselines or {}).get(name), (places or {}).get(name)
                )
                for name in names
            ]


def _spans(plan: Planned) -> list[Stretch]:
    """All that a window's cost is made of."""
    window = plan.window
    shared = plan.pieces if _is_shared(plan.pieces) else ()
    spans = (
        extent(window) if window.length_s is not None else None,
        *(_stretch(window.phase(name)) for name in ("stall", "drain")),
        *((piece.begin_s, piece.end_s) for piece in (*shared, *plan.drained)),
        plan.quiet,
    )
    return [span for span in spans if span is not None]


def _stretch(phase: Phase | None) -> Stretch | None:
    return None if phase is None else (phase.begin_s, phase.end_s)


def _is_shared(pieces: Iterable[Piece]) -> bool:
    return any(len(piece.open) > 1 for piece in pieces)


def _cost(
    plan: Planned,
    domain: str,
    joules: Joules,
    curve: Curve | None,
    baseline: Baseline | None,
    place: RunPlace | None,
) -> Cost:
    window = plan.window
    begin_s, end_s = window.begin_s, window.end_s
    not_durable = window.begin_why or window.durable_why
    absolute = share = above = unknown(not_durable)
    if begin_s is not None and end_s is not None:
        absolute = spent(joules, domain, [(begin_s, end_s)])
        share = _share(joules, domain, plan.pieces, absolute)
        above = excess(absolute, end_s - begin_s, baseline, place)
    stall, drain = window.phase("stall"), window.phase("drain")
    no_stall = unknown(window.begin_why or window.returned_why)
    no_drain = unknown(window.returned_why or not_durable)
    training_w = unknown("NO_TRAINING_REFERENCE")
    if plan.quiet is not None:
        drain_s = 0.0 if drain is None else drain.length_s
        training_w = training_power(joules, curve, domain, plan.quiet, drain_s)
    return Cost(
        window.name,
        domain,
        absolute,
        share,
        above,
        _of_phase(joules, domain, stall, no_stall),
        _of_phase(joules, domain, drain, no_drain),
        training_w,
        no_drain if drain is None else _extra(joules, domain, drain, plan.drained, training_w),
        nan if drain is None else sum(piece.length_s for piece in plan.drained),
    )


def _share(joules: Joules, domain: str, pieces: Sequence[Piece], absolute: Energy) -> Energy:
    """Of the whole, where other windows are open in parts of it."""
    if not _is_shared(pieces):
        return absolute
    share = in_turn(
        [
            (times(_domain_energy(joules, domain, piece), 1.0 / len(piece.open)), piece.length_s)
            for piece in pieces
        ]
    )
    return share._replace(flags=(*share.flags, "SHARED"))


def _of_phase(joules: Joules, domain: str, phase: Phase | None, unmarked: Energy) -> Energy:
    return unmarked if phase is None else spent(joules, domain, [(phase.begin_s, phase.end_s)])


def _extra(
    joules: Joules, domain: str, drain: Phase, drained: Sequence[Piece], training_w: Energy
) -> Energy:
    if drain.length_s == 0:
        return NONE_SPENT
    if not drained:
        return unknown("OTHERS_STALL")
    return _zero_in_range(
        in_turn(
            [
                (
                    _above_training(_domain_energy(joules, domain, piece), piece, training_w),
                    piece.length_s,
                )
                for piece in drained
            ]
        )
    )


def _above_training(energy: Energy, piece: Piece, training_w: Energy) -> Energy:
    expected = times(training_w, piece.length_s * energy.coverage)
    return times(difference(energy, expected), 1.0 / len(piece.open))


def _domain_energy(joules: Joules, domain: str, piece: Piece) -> Energy:
    return spent(joules, domain, [(piece.begin_s, piece.end_s)])


def own_cost(
    cpu_s: float, package_w: float, cores: float, busy_cores: float = nan, idle_w: float = nan
) -> Energy:
    """Joules of this program's own CPU seconds, modelled: nothing meters one core's share of a
    package.

    The candidates for the watts of one busy core are an even share of the package, its power over
    the cores that were busy, and its power above idle over them. The last is the value where idle
    and busy cores are known; the range holds all of them. At least one core is busy while we run,
    so no CPU second costs more than the whole package.

    >>> own_cost(cpu_s=2.0, package_w=200.0, cores=64, busy_cores=10.0, idle_w=80.0)[:3]
    (24.0, 6.25, 40.0)
    """
    if not (cpu_s >= 0 and cores > 0):
        return unknown("NO_CPU_TIME")
    if isnan(package_w):
        return unknown("NO_PACKAGE_METER")
    busy = nan if isnan(busy_cores) else max(busy_cores, 1.0)
    even_w = package_w / cores
    candidates_w = [max(package_w - idle_w, 0.0) / busy, package_w / busy, even_w]
    value_w = next(watts for watts in candidates_w if not isnan(watts))
    known_w = [watts for watts in candidates_w if not isnan(watts)]
    high_w = package_w if isnan(busy) else max(known_w)
    return Energy(cpu_s * value_w, cpu_s * min(known_w), cpu_s * high_w, 1.0, "", ("MODELLED",))
