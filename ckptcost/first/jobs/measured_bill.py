"""What a recorded save cost, as a bill of the model's own lines: measured joules at the node, the
scenario's PUE, prices and grid factors.

What is not measured is NaN with a code, never 0, and so is what was measured of something else:
drive joules are not a storage system's. The scenario's job is put onto the machine of the run: the
model is scaled to what was measured, never the other way. Where saves and loads hold training up at
the same time, such an instant is divided among them, so that their sum counts it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isnan, nan
from typing import NamedTuple

from ckptcost.first.core import money
from ckptcost.first.core.attribution import WHOLE, Cost, excess, in_turn, spent
from ckptcost.first.core.bill import (
    Bill,
    Line,
    crosses_network,
    electricity_usd_per_j,
    is_local,
    storage_usd_per_j,
)
from ckptcost.first.core.domain import Boundary, Scenario
from ckptcost.first.core.lines import KINDS
from ckptcost.first.core.quantities import derivation
from ckptcost.first.core.reconcile import NONE_SPENT, Energy, difference, times, total, unknown
from ckptcost.first.core.windows import Piece, Stretch, Window, of_each, timeline
from ckptcost.first.errors import Argument, InputError
from ckptcost.first.jobs.energies import Energies
from ckptcost.first.jobs.measured import Measured
from ckptcost.first.runs.baselines import Idle
from ckptcost.first.scenario import Resolved

OF_A_LOAD = ("loading",)
_NODES_OWN = frozenset({"gpu", "module", "cpu", "dram", "core", "uncore", "psys", "node"})


class MeasuredBill(NamedTuple):
    """The bill of one window, at the facility."""

    bill: Bill
    energies: Mapping[str, Energy]
    """by line: the joules with their range, or the code why there are none"""


def gpus_metered(parts: Iterable[str]) -> float:
    """Cards whose joules or watts were read, of the domains that add up; NaN where none was."""
    return float(len(_of_kind(parts, "gpu", "module"))) or nan


def load_end_s(window: Window) -> float | None:
    """When what was read was there: training goes on, or the mark that ends it."""
    if window.returned_s is not None:
        return window.returned_s
    ends = [span.at_s["end"] for span in window.spans if "end" in span.at_s]
    return max(ends) if len(ends) == len(window.spans) else None


class SaveSpent(NamedTuple):
    """What one save or load took, as meters have it."""

    energies: Energies
    costs: Mapping[str, Cost]
    """by domain"""
    idle: Idle | None


def spent_in(m: Measured, window: Window) -> SaveSpent:
    mine = {cost.domain: cost for cost in m.costs if cost.window == window.name}
    return SaveSpent(m.energies, mine, m.idle)


class SaveJoules(NamedTuple):
    """What of a save goes into a bill, at the node: nothing of a scenario."""

    waiting: Shares
    """while training stood still"""
    drained: Energy
    """what a drain adds to the power of training; the training time that it takes is not in
    there"""
    stored: Mapping[str, Energy]
    """above idle, by boundary of the meters that saw the storage"""


def joules_of_save(spent_: SaveSpent, window: Window) -> SaveJoules:
    counted = [domain for domain in counted_in(spent_.energies) if domain in spent_.costs]
    waiting = shares_of({domain: spent_.costs[domain].stall for domain in counted})
    stored = {
        boundary: _storage_energy(spent_, window, domains)
        for boundary, domains in _storage(spent_.energies).items()
    }
    return SaveJoules(waiting, _drain_energy(spent_, window), stored)


def save_bill(
    joules: SaveJoules, window: Window, bytes_: float, s: Scenario, gpus: float
) -> MeasuredBill:
    """`gpus` that stood still with it, NaN where nobody knows how many."""
    gpu_s = nan if window.stall_s is None else gpus * window.stall_s
    drained = joules.drained
    slowed_gpu_s = 0.0 if drained.known and window.drain_s == 0 else nan
    why = "OTHER_BOUNDARY" if joules.stored else "NO_STORAGE_METER"
    found = {
        "gpu_wait": (at_facility(joules.waiting.gpus, s), gpu_s),
        "host_wait": (at_facility(joules.waiting.hosts, s), 0.0),
        "slowdown": (at_facility(drained, s), slowed_gpu_s),
        "storage_write": (
            at_facility(joules.stored.get(s.tier.boundary, unknown(why)), s),
            0.0,
        ),
        "network": (unknown("NOT_METERED") if crosses_network(s.tier) else NONE_SPENT, 0.0),
        "requests": (NONE_SPENT, 0.0),
    }
    lines = [line_of(s, name, energy, gpu_s_) for name, (energy, gpu_s_) in found.items()]
    lines[-1] = lines[-1]._replace(cost_usd=_asked_usd(s, bytes_))
    return MeasuredBill(Bill(tuple(lines)), {name: energy for name, (energy, _) in found.items()})


def bill_of_save(
    m: Measured, window: Window, bytes_: float, s: Scenario, gpus: float
) -> MeasuredBill:
    return save_bill(joules_of_save(spent_in(m, window), window), window, bytes_, s, gpus)


def joules_of_load(energies: Energies, window: Window) -> Energy:
    """GPUs and hosts from its begin until it is there."""
    end_s = load_end_s(window)
    if window.begin_s is None or end_s is None:
        return unknown(window.begin_why or window.returned_why)
    span = (window.begin_s, end_s)
    counted = counted_in(energies)
    seen = shares_of({domain: spent(energies.joules, domain, [span]) for domain in counted})
    return total([seen.gpus, seen.hosts])


def load_bill(joules: Energy, window: Window, s: Scenario, gpus: float) -> MeasuredBill:
    end_s = load_end_s(window)
    gpu_s = nan if window.begin_s is None or end_s is None else gpus * (end_s - window.begin_s)
    energy = at_facility(joules, s)
    return MeasuredBill(Bill((line_of(s, "loading", energy, gpu_s),)), {"loading": energy})


def bill_of_load(m: Measured, window: Window, s: Scenario, gpus: float) -> MeasuredBill:
    return load_bill(joules_of_load(m.energies, window), window, s, gpus)


class Shares(NamedTuple):
    gpus: Energy
    hosts: Energy
    """the rest of the node, as the model means it: fans, boards and power supplies too"""


def _of_kind(domains: Iterable[str], *kinds: str) -> list[str]:
    return [domain for domain in domains if domain.split(":", 1)[0] in kinds]


def counted_in(energies: Energies) -> list[str]:
    return [*energies.parts, *_of_kind(energies.wholes, "node")[:1]]


def shares_of(seen: Mapping[str, Energy]) -> Shares:
    """GPUs, and the node less them. Packages and memory alone are a fraction of what the model
    calls a host."""
    if _of_kind(seen, "module"):
        return Shares(unknown("MODULE_METER"), unknown("MODULE_METER"))
    cards = _of_kind(seen, "gpu")
    gpus = (
        whole_or_none(total(seen[domain] for domain in cards)) if cards else unknown("NO_GPU_METER")
    )
    node = next((seen[domain] for domain in _of_kind(seen, "node")), unknown("NO_NODE_METER"))
    hosts = difference(whole_or_none(node), gpus)
    return Shares(gpus, unknown("PARTS_EXCEED_NODE") if hosts.high < 0 else hosts)


def whole_or_none(energy: Energy) -> Energy:
    """Joules of the whole time, or none: those of a part of it would look like a saving."""
    return (
        energy if not energy.known or energy.coverage >= WHOLE else unknown("GAPS", *energy.flags)
    )


def _drain_energy(spent_: SaveSpent, window: Window) -> Energy:
    if window.drain_s == 0:
        return NONE_SPENT
    costs = spent_.costs
    node = _of_kind(costs, "node")
    extras = [costs[domain].extra for domain in node or spent_.energies.parts if domain in costs]
    return whole_or_none(total(extras)) if extras else unknown("NO_PARTS")


def _storage(energies: Energies) -> dict[str, list[str]]:
    """The meters that see a storage, by what they see of it."""
    found: dict[str, list[str]] = {}
    for domain, source in energies.sources.items():
        if domain.split(":", 1)[0] not in _NODES_OWN:
            found.setdefault(source.channel.boundary, []).append(domain)
    return found


def storage_meters(m: Measured, boundary: Boundary) -> list[str]:
    """Those that see the storage as the scenario's figure does."""
    return _storage(m.energies).get(boundary, [])


def _storage_energy(spent_: SaveSpent, window: Window, domains: Iterable[str]) -> Energy:
    if window.begin_s is None or window.end_s is None:
        return unknown(window.begin_why or window.durable_why)
    span = (window.begin_s, window.end_s)
    idle = {} if spent_.idle is None else spent_.idle.domains
    joules = spent_.energies.joules
    return total(
        excess(whole_or_none(spent(joules, d, [span])), span[1] - span[0], idle.get(d))
        for d in domains
    )


def at_facility(energy: Energy, s: Scenario) -> Energy:
    """Meters see no PUE: the scenario's is applied here, once, as the model applies it to its own
    watts."""
    return times(energy, float(s.site.pue))


def _asked_usd(s: Scenario, bytes_: float) -> float:
    """The scenario's price of writing, by the request and by the byte, for the bytes that were
    measured."""
    tier = s.tier
    prices = (tier.usd_per_request, tier.usd_per_byte_s, tier.usd_per_byte)
    if is_local(tier) or all(isnan(float(price)) for price in prices):
        return 0.0
    return float(
        money.request_usd(bytes_, tier.request_bytes, tier.usd_per_request, tier.usd_per_byte)
    )


def line_of(s: Scenario, name: str, energy: Energy, gpu_s: float) -> Line:
    """Quantities first, prices last, as in `core.bill`."""
    kind = KINDS[name]
    tariff = float(electricity_usd_per_j(s))
    usd = money.electricity_usd(
        energy.value, tariff if kind.watts else storage_usd_per_j(s, s.tier)
    )
    if kind.holds_gpus:
        usd = usd + money.gpu_usd(gpu_s, s.cluster.usd_per_gpu_s)
    return Line(
        name,
        kind.cause,
        kind.ledger,
        kind.boundary or s.tier.boundary,
        energy.value,
        gpu_s,
        usd,
        *derivation(s)(energy.value, gpu_s),
    )


class RunMachine(NamedTuple):
    """Who waits: the GPUs of the node that was read, and the job they belong to."""

    gpus: float
    """on that node; NaN where neither a meter nor --set says"""
    job_gpus: float
    gpus_per_node: float
    how: str
    """METERED, SAID (--set cluster.gpus), RANKS (the marks say how many) or NODES (as many as the
    scenario's nodes have)"""

    @property
    def here(self) -> float:
        """GPUs of the node as the model has it."""
        return self.gpus_per_node if isnan(self.gpus) else self.gpus

    @property
    def is_part(self) -> bool:
        """The job is larger than the node that was read."""
        return self.here < self.job_gpus


def machine_of(seen: Measured, resolved: Resolved) -> RunMachine:
    ranks = (float(n) for mark in seen.run.marks if isinstance(n := mark.detail.get("world"), int))
    metered = gpus_metered(seen.energies.parts)
    return machine_with(metered, len(seen.run.hosts), max(ranks, default=nan), resolved)


def machine_with(metered: float, run_hosts: int, ranks: float, resolved: Resolved) -> RunMachine:
    """The metered GPUs of one of the run's hosts times these, unless the `ranks` that marks speak
    of or --set cluster.gpus say more."""
    hosts = float(max(run_hosts, 1))
    said = next(
        (
            i.figure.value
            for i in resolved.inputs
            if i.path == "cluster.gpus" and i.origin.startswith("--")
        ),
        nan,
    )
    if not isnan(said):
        if said < metered * hosts:
            raise InputError(
                f"says {said:g} GPUs, and the run has {metered * hosts:g}",
                where=Argument("changes"),
                key="cluster.gpus",
                remedy="leave it out: the scenario is put onto the run's own machine",
            )
        each = said / hosts if isnan(metered) else metered
        return RunMachine(each, said, each, "SAID")
    if not isnan(metered):
        return RunMachine(
            metered, max(metered * hosts, 0.0 if isnan(ranks) else ranks), metered, "METERED"
        )
    per_node = float(resolved.scenario.cluster.gpus_per_node)
    if not isnan(ranks):
        return RunMachine(nan, ranks, ranks / hosts, "RANKS")
    return RunMachine(nan, per_node * hosts, per_node, "NODES")


def on_machine(s: Scenario, gpus: float, machine: RunMachine) -> Scenario:
    """The scenario with so many of the run's GPUs."""
    return replace(s, cluster=replace(s.cluster, gpus=gpus, gpus_per_node=machine.gpus_per_node))


class Waited(NamedTuple):
    """A window's own part of the time that it shares with others."""

    gpus: Energy
    hosts: Energy
    parts: Energy
    """processors and memory alone, where nothing meters the node"""
    held_s: float
    """seconds of training held up, shared ones divided"""


def waits_of(m: Measured) -> list[Stretch | None]:
    """Beside the windows: when each held training up."""
    found: list[Stretch | None] = []
    for window, what in zip(m.windows, m.contents, strict=True):
        end_s = load_end_s(window) if what.of == "load" else window.returned_s
        found.append(None if window.begin_s is None or end_s is None else (window.begin_s, end_s))
    return found


def shared_pieces(stretches: Sequence[Stretch | None]) -> list[list[Piece]]:
    """Beside the windows: the pieces of those that share an instant with another; nothing for the
    others."""
    pieces = of_each(timeline([[stretch] for stretch in stretches]), len(stretches))
    return [mine if any(len(piece.open) > 1 for piece in mine) else [] for mine in pieces]


def waited_time(m: Measured, pieces: Sequence[Piece], s: Scenario) -> Waited:
    """What the pieces took at the facility, each divided by the windows that are open in it."""
    seen = {
        domain: in_turn([(_part(m, domain, piece), piece.length_s) for piece in pieces])
        for domain in counted_in(m.energies)
    }
    both = shares_of(seen)
    parts = total(
        energy for domain, energy in seen.items() if domain.split(":", 1)[0] in ("cpu", "dram")
    )
    return Waited(
        at_facility(both.gpus, s),
        at_facility(both.hosts, s),
        at_facility(parts, s),
        sum(p.length_s / len(p.open) for p in pieces),
    )


def storage_energy(
    m: Measured, domains: Sequence[str], pieces: Sequence[Piece], s: Scenario
) -> Energy:
    """What storage took above idle, the same way."""
    idle = {} if m.idle is None else m.idle.domains
    above = [
        times(
            excess(
                spent(m.energies.joules, domain, [(piece.begin_s, piece.end_s)]),
                piece.length_s,
                idle.get(domain),
            ),
            1.0 / len(piece.open),
        )
        for domain in domains
        for piece in pieces
    ]
    return at_facility(total(above), s)


def _part(m: Measured, domain: str, piece: Piece) -> Energy:
    return times(
        spent(m.energies.joules, domain, [(piece.begin_s, piece.end_s)]), 1.0 / len(piece.open)
    )
