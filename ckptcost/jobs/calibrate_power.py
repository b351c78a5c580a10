"""Watts of GPUs and of the rest of the node in each state, and joules per byte of the storage, over
the rounds of all runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite, nan
from typing import Final, NamedTuple

from ckptcost.core.attribution import WHOLE, mean_w, spent
from ckptcost.core.domain import Boundary
from ckptcost.core.estimates import Estimate, absent, mean_of
from ckptcost.core.fit import fit_power, joules_per_byte
from ckptcost.core.reconcile import NONE_SPENT, Energy, difference, times, total, unknown
from ckptcost.core.windows import Stretch
from ckptcost.jobs.calibrate_rounds import Round, Told

STORAGE: Final[tuple[Boundary, ...]] = ("storage-system", "drive")
"""boundaries whose joules may stand for a tier's, the wider first: a node's are not its
storage's"""
NODES_OWN: Final = frozenset(
    {"gpu", "module", "cpu", "dram", "core", "uncore", "psys", "node", "process", "cgroup", "self"}
)


class States(NamedTuple):
    """Mean watts, per GPU or per host."""

    train_w: Estimate
    stall_w: Estimate
    idle_w: Estimate


class Stored(NamedTuple):
    """Of the storage, at the boundary that its meters see."""

    j_per_byte: Estimate
    rest_w: Estimate
    """at rest, from the same rounds"""
    boundary: str
    domains: tuple[str, ...]
    is_modelled: bool
    """computed from what the drive did, not read"""


Share = Callable[[Told, Mapping[str, Energy]], Energy]
"""what one GPU, or the host, has of joules by domain"""


def of_gpus(told: Sequence[tuple[Told, Sequence[Round]]]) -> States:
    """One GPU in the mean of all of a node."""
    return _states(told, _gpu_share)


def of_hosts(told: Sequence[tuple[Told, Sequence[Round]]]) -> States:
    """The node less its GPUs: processors, memory, fans, boards and, at the plug, the power
    supplies. Parts alone are no host."""
    return _states(told, _host_share)


def _gpu_share(told: Told, by_domain: Mapping[str, Energy]) -> Energy:
    cards = [by_domain[domain] for domain in told.gpus if domain in by_domain]
    return times(_whole(total(cards)), 1.0 / len(cards)) if cards else unknown("NO_GPU_METER")


def _host_share(told: Told, by_domain: Mapping[str, Energy]) -> Energy:
    node = next(
        (_whole(energy) for domain, energy in by_domain.items() if domain.split(":")[0] == "node"),
        None,
    )
    if node is None:
        return unknown("NO_NODE_METER")
    cards = [by_domain[domain] for domain in told.gpus if domain in by_domain]
    left = difference(node, _whole(total(cards)))
    return unknown("PARTS_EXCEED_NODE") if left.high < 0 else left


def _whole(energy: Energy) -> Energy:
    """Of all of the time, or not at all."""
    return energy if not energy.known or energy.coverage >= WHOLE else unknown("GAPS")


def _states(told: Sequence[tuple[Told, Sequence[Round]]], share: Share) -> States:
    training: list[Energy] = []
    stalled: list[Energy] = []
    idle: list[Energy] = []
    seen_quiet: set[tuple[int, Stretch]] = set()
    for number, (one, rounds) in enumerate(told):
        unmetered = share(one, dict.fromkeys(_names(one), NONE_SPENT))
        if not unmetered.known:
            for each in (training, stalled, idle):
                each.append(unmetered)
            continue
        for round_ in rounds:
            if not round_.trains or round_.quiet is None:
                training.append(
                    unknown("NOT_TRAINING" if round_.quiet else "NO_TRAINING_REFERENCE")
                )
                stalled.append(unknown("NOT_TRAINING" if round_.quiet else "NO_TRAINING_REFERENCE"))
                continue
            if (number, round_.quiet) not in seen_quiet:
                seen_quiet.add((number, round_.quiet))
                training.append(_watts(one, round_.quiet, share))
            begin_s, returned_s = round_.window.begin_s, round_.window.returned_s
            if round_.mode != "load" and begin_s is not None and returned_s is not None:
                stalled.append(_watts(one, (begin_s, returned_s), share))
        idle.append(_idle(one, share))
    return States(_mean(training), _mean(stalled), _idles(idle))


def _watts(told: Told, stretch: Stretch, share: Share) -> Energy:
    """Mean power of a stretch."""
    begin_s, end_s = stretch
    if not end_s > begin_s:
        return unknown("NO_TIME")
    joules = told.seen.energies.joules
    return share(
        told, {d: mean_w(spent(joules, d, [stretch]), end_s - begin_s) for d in _names(told)}
    )


def _names(told: Told) -> list[str]:
    return [
        *told.gpus,
        *(domain for domain in told.seen.energies.wholes if domain.split(":")[0] == "node"),
    ]


def _idle(told: Told, share: Share) -> Energy:
    idle = told.seen.idle
    if idle is None:
        return unknown("NO_BASELINE")
    known = {domain: Energy(b.power_w, b.low_w, b.high_w) for domain, b in idle.domains.items()}
    if any(domain not in known for domain in told.gpus):
        return unknown("NO_BASELINE")
    return share(told, known)


def _mean(each: Iterable[Energy]) -> Estimate:
    """Over rounds, with room for what the meters leave open; unknown for the first one's reason."""
    each = list(each)
    known = [energy for energy in each if energy.known]
    if not known:
        return absent(next((energy.why for energy in each), "NO_ROUNDS"))
    lows, highs = [energy.low for energy in known], [energy.high for energy in known]
    return mean_of([energy.value for energy in known]).wider(
        sum(lows) / len(lows), sum(highs) / len(highs)
    )


def _idles(each: Sequence[Energy]) -> Estimate:
    """A baseline brings its own range: what whole seconds of it showed. Several are of several
    machines or days."""
    known = [energy for energy in each if energy.known]
    if not known:
        return absent(next((energy.why for energy in each), "NO_BASELINE"))
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


def of_storage(told: Sequence[tuple[Told, Sequence[Round]]]) -> Stored:
    """Joules above those of the quiet time just before, over the bytes of the saves; of the widest
    boundary that any run has."""
    for boundary in STORAGE:
        seen = [
            (one, rounds, names)
            for one, rounds in told
            if (names := _storage_domains(one, boundary))
        ]
        if not seen:
            continue
        each = [
            _added(one, round_, names)
            for one, rounds, names in seen
            for round_ in rounds
            if round_.mode != "load"
        ]
        saves = [save for save in each if save.energy.known and isfinite(save.energy.value)]
        domains = tuple(dict.fromkeys(name for _, _, names in seen for name in names))
        modelled = any(
            one.seen.energies.sources[name].channel.basis == "modelled"
            for one, _, names in seen
            for name in names
        )
        if not saves:
            none = absent(next((save.energy.why for save in each), "NO_ROUNDS"))
            return Stored(none, none, boundary, domains, modelled)
        low, high = (
            sum(ends) / sum(save.bytes for save in saves)
            for ends in zip(*(save.energy[1:3] for save in saves), strict=True)
        )
        loads = [load for save in saves for load in (0.0, save.bytes / save.length_s)]
        rest_w = fit_power(
            loads, [watts for save in saves for watts in (save.rest_w, save.save_w)]
        ).base_w
        joules = joules_per_byte(
            [save.energy.value for save in saves], [save.bytes for save in saves]
        )
        return Stored(joules.wider(low, high), rest_w, boundary, domains, modelled)
    none = absent("NO_STORAGE_METER")
    return Stored(none, none, "", (), False)


def _storage_domains(told: Told, boundary: Boundary) -> list[str]:
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


def _added(told: Told, round_: Round, domains: Sequence[str]) -> _Added:
    """Above rest, from the save's begin until it is safe."""
    begin_s, end_s = round_.window.begin_s, round_.window.durable_s
    if begin_s is None or end_s is None or round_.quiet is None:
        return _Added(unknown("NO_TRAINING_REFERENCE"), nan, nan, round_.bytes, nan)
    joules, length_s = told.seen.energies.joules, end_s - begin_s
    taken = _whole(total(spent(joules, domain, [(begin_s, end_s)]) for domain in domains))
    rest_w = _whole(
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
