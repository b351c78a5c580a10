"""What each save and load of a recorded run took, line by line: joules, GPU time and dollars, and
the seconds in which it was."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from ckptcost.first.core.attribution import Cost
from ckptcost.first.core.bill import Line, electricity_usd_per_j
from ckptcost.first.core.domain import Checkpoint, Cluster, Failures, Policy, Scenario, Site, Tier
from ckptcost.first.core.lines import KINDS
from ckptcost.first.core.quantities import BY_ID
from ckptcost.first.core.reconcile import Energy, times, total, unknown
from ckptcost.first.core.units import HOUR_S, KWH_J
from ckptcost.first.core.windows import Piece, Stretch, Window
from ckptcost.first.jobs.measured import Measured
from ckptcost.first.jobs.measured_bill import (
    Waited,
    bill_of_load,
    bill_of_save,
    line_of,
    shared_pieces,
    storage_energy,
    storage_meters,
    waited_time,
    waits_of,
)

_WAITING = ("gpu_wait", "host_wait", "loading")
BELOW_ZERO = "BELOW_ZERO"
ALONE = ("network", "requests")
"""lines that say something only where a scenario names the storage"""
NOWHERE: Final = Scenario(
    Checkpoint(),
    Tier(boundary="drive"),
    Cluster(gpus=math.nan, price_includes_electricity=False),
    Policy(every=math.nan),
    Failures(),
    Site(),
    math.nan,
)
"""no PUE, no price, no grid: energies as metered and nothing made of them"""


class LineTaken(NamedTuple):
    """One line of one save or load."""

    line: str
    window: str
    stretch: tuple[float, float] | None
    """seconds of the run"""
    energy: Energy
    gpu_s: float
    usd: float


def without_prices(s: Scenario) -> Scenario:
    """What a site says, and nothing of what GPUs cost: the node's electricity is then paid by the
    tariff."""
    return replace(
        s,
        cluster=replace(
            s.cluster,
            usd_per_gpu_s=math.nan,
            embodied_kgco2e_per_gpu_s=math.nan,
            price_includes_electricity=False,
        ),
    )


def taken_of(m: Measured, s: Scenario, gpus: float, placed: bool) -> list[LineTaken]:
    """Every line of every save and load. They add up: instants that several share are divided among
    them."""
    # a window's own at hand: looking through those of all for each would grow with their square
    costs: dict[str, list[Cost]] = {}
    for cost in m.costs:
        costs.setdefault(cost.window, []).append(cost)
    waits = waits_of(m)
    wholes = [
        _stretch(window, "whole") if what.of == "save" else None
        for window, what in zip(m.windows, m.contents, strict=True)
    ]
    found: list[LineTaken] = []
    for window, what, wait, held, whole in zip(
        m.windows, m.contents, waits, shared_pieces(waits), shared_pieces(wholes), strict=True
    ):
        mine = m._replace(costs=costs.get(window.name, []))
        if what.of == "load":
            bill = bill_of_load(mine, window, s, gpus)
        else:
            bill = bill_of_save(mine, window, what.bytes, s, gpus)
        own = waited_time(m, held, s) if held else None
        energies = _energies_of_window(mine, window, bill.energies, own, whole, s)
        for line in bill.bill.lines:
            if placed or line.id not in ALONE:
                found.append(_line_taken(line, window, energies[line.id], wait, own, s, gpus))
    return _none_below_zero(found, s)


def _line_taken(
    line: Line,
    window: Window,
    energy: Energy,
    wait: Stretch | None,
    own: Waited | None,
    s: Scenario,
    gpus: float,
) -> LineTaken:
    """With its seconds: those in which training waited, of which shared ones are divided, or those
    of a phase."""
    stretch, gpu_s = _stretch(window, KINDS[line.id].during), float(line.gpu_s)
    if line.id in _WAITING:
        stretch = wait
        if own is not None and line.id != "host_wait":
            gpu_s = gpus * own.held_s
    priced = line if line.id == "requests" else line_of(s, line.id, energy, gpu_s)
    return LineTaken(line.id, window.name, stretch, energy, gpu_s, float(priced.cost_usd))


def _energies_of_window(
    m: Measured,
    window: Window,
    metered: Mapping[str, Energy],
    own: Waited | None,
    whole: Sequence[Piece],
    s: Scenario,
) -> dict[str, Energy]:
    """By line: as metered, else of the host's parts; a window's own part of what it shares."""
    found = dict(metered)
    if "host_wait" in found and not found["host_wait"].known:
        found["host_wait"] = _parts_of_host(m, window, s) or found["host_wait"]
    if own is not None:
        found |= {line: _window_share(line, own, found[line]) for line in _WAITING if line in found}
    if whole and found["storage_write"].known:
        found["storage_write"] = storage_energy(m, storage_meters(m, s.tier.boundary), whole, s)
    return found


def _window_share(line: str, own: Waited, alone: Energy) -> Energy:
    """A window's part; of the host what its own meters see, where that was all before."""
    if line == "gpu_wait":
        return own.gpus
    if line == "loading":
        return total([own.gpus, own.hosts])
    return own.parts._replace(high=math.inf) if not own.hosts.known and alone.known else own.hosts


def _none_below_zero(found: Sequence[LineTaken], s: Scenario) -> list[LineTaken]:
    """A line that comes out below zero, as what draining adds may within its range, is told as
    nothing, with the low end that it has."""
    sums: dict[str, float] = {}
    for each in found:
        if each.energy.known:
            sums[each.line] = sums.get(each.line, 0.0) + each.energy.value
    below = {line for line, joules in sums.items() if joules < 0}
    return [
        _nothing(each, s) if each.line in below and each.energy.known else each for each in found
    ]


def _nothing(each: LineTaken, s: Scenario) -> LineTaken:
    e = each.energy
    tariff = float(electricity_usd_per_j(s))
    return each._replace(
        energy=e._replace(
            value=0.0, low=min(e.low, 0.0), high=max(e.high, 0.0), flags=(*e.flags, BELOW_ZERO)
        ),
        usd=each.usd - (e.value * tariff if tariff else 0.0),
    )


def _parts_of_host(m: Measured, window: Window, s: Scenario) -> Energy | None:
    """Packages and memory, where nothing meters the node: a part of the host, so there is no high
    end."""
    if m.energies.wholes and any(domain.startswith("node") for domain in m.energies.wholes):
        return None
    mine = [
        c.stall
        for c in m.costs
        if c.window == window.name
        and c.domain in m.energies.parts
        and c.domain.split(":", 1)[0] in ("cpu", "dram")
    ]
    seen = total(mine) if mine else unknown("NO_PARTS")
    return times(seen, float(s.site.pue))._replace(high=math.inf) if seen.known else None


def _stretch(window: Window, of: str) -> tuple[float, float] | None:
    phase = window if of == "whole" else window.phase(of)
    if phase is None or phase.begin_s is None or phase.end_s is None:
        return None
    return phase.begin_s, phase.end_s


def ends_of(what: str, each: LineTaken, s: Scenario) -> Ends:
    """(value, low, high) in people's units; NaN where unknown."""
    e, gpu_s = each.energy, each.gpu_s
    joules = (e.value, e.low, e.high) if e.known else (math.nan,) * 3
    if what == "energy":
        return _each_of(joules, lambda end: end / KWH_J)
    if what == "gpu_time_lost":
        return (gpu_s / HOUR_S,) * 3
    if what == "cost":
        tariff = float(electricity_usd_per_j(s)) if e.known else math.nan
        spread = _each_of(joules, lambda end: (end - e.value) * tariff if tariff else 0.0)
        return each.usd, each.usd + spread[1], each.usd + spread[2]
    derived = BY_ID[what].derived
    assert derived is not None
    product, rate = derived.product, derived.rate(s)
    if derived.of == "gpu_time_lost":
        return (float(product(gpu_s, rate)) if gpu_s else 0.0,) * 3
    return _each_of(joules, lambda end: float(product(end, rate)))


Ends = tuple[float, float, float]


def _each_of(ends: Ends, said: Callable[[float], float]) -> Ends:
    value, low, high = map(said, ends)
    return value, low, high
