"""The bill: one line a cause, each with joules, GPU-seconds and dollars; totals are sums of lines.

Quantities first, prices last. What nobody has published is NaN; a total is the sum of the lines
that are known, and NaN where a line of the job itself is missing, since without it there is no sum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ckptcost.plan.arrays import orelse, times
from ckptcost.plan.physics import Plan, Save, delete_time, is_inside, nodes, save, usual_energy
from ckptcost.scenario.schema import Array, Tier, World

LINES = {
    "gpu_wait": "GPUs waiting for saves",
    "host_wait": "hosts waiting for saves",
    "slowdown": "training slowed by saving",
    "storage_write": "storage writing",
    "network": "network to storage",
    "requests": "write requests",
    "retention": "storage rent",
    "wear": "drives worn",
    "redone_work": "work redone after failures",
    "restart": "detection and restart",
    "loading": "loading checkpoints",
}
"""lines of the second and the third tier have the same names behind these"""
FURTHER = {"second_": "second tier: ", "third_": "third tier: "}
OF_THE_JOB = ("gpu_wait", "host_wait", "slowdown", "redone_work", "restart", "loading")
QUANTITIES = {
    "gpu_time": ("GPU-h", "GPU-h lost"),
    "energy": ("kWh", "kWh"),
    "cost": ("USD", "USD"),
    "carbon": ("kg", "kgCO2e"),
    "carbon_market": ("kg", "kgCO2e, market"),
    "embodied": ("kg", "kgCO2e, embodied"),
    "water": ("L", "L of water"),
}
"""unit and header; kgCO2e without a word is location-based, and holds neither of the other two"""


def label_of(line: str) -> str:
    """What a line of a bill is called."""
    for prefix, tier in FURTHER.items():
        if line.startswith(prefix):
            return tier + LINES[line.removeprefix(prefix)]
    return LINES[line]


class Power(NamedTuple):
    """IT watts of GPUs and of hosts in each state."""

    gpu_train: Array
    gpu_stall: Array
    gpu_idle: Array
    host_train: Array
    host_stall: Array
    host_idle: Array


def power(w: World) -> Power:
    c, n = w.cluster, nodes(w)
    host_stall = orelse(c.host_stall, c.host_train * c.host_stall_fraction)
    hosts = c.host_train, host_stall, orelse(c.host_idle, host_stall)
    gpus = c.gpu_train, c.gpu_stall, c.gpu_idle
    return Power(*(c.gpus * each for each in gpus), *(n * each for each in hosts))


def _none() -> Array:
    return np.zeros(1)


@dataclass
class Spent:
    """Seconds in each state and what is written and held: all that a bill needs besides rates."""

    stall: Array
    slowed: Array
    saves: Array
    """writes, repeated ones included"""
    second_saves: Array
    held: Array
    """bytes, on average over the run"""
    second_held: Array
    wall: Array
    redone: Array = field(default_factory=_none)
    detect: Array = field(default_factory=_none)
    reschedule: Array = field(default_factory=_none)
    init: Array = field(default_factory=_none)
    load: Array = field(default_factory=_none)
    warmup: Array = field(default_factory=_none)
    third_saves: Array = field(default_factory=_none)
    """only whole runs that are simulated have a third tier"""
    third_held: Array = field(default_factory=_none)

    def endless(self, where: Any) -> Spent:
        """With amounts without end where a run does not get anywhere."""
        return Spent(
            **{name: np.where(where & (x != 0), np.inf, x) for name, x in vars(self).items()}
        )


class Bill:
    """`bill.lines[line][quantity]`, and `bill.total(quantity)`."""

    def __init__(self, w: World) -> None:
        self.lines: dict[str, dict[str, Array]] = {}
        s, c = w.site, w.cluster
        self._factors = {
            "carbon": ("energy", s.grid_location),
            "carbon_market": ("energy", s.grid_market),
            "embodied": ("gpu_time", c.gpu_embodied),
            "water": ("energy", s.water / s.pue),
        }

    def add(self, line: str, energy: Any, gpu_time: Any, cost: Any) -> None:
        found = {"energy": energy, "gpu_time": gpu_time, "cost": cost}
        found |= {q: found[of] * factor for q, (of, factor) in self._factors.items()}
        self.lines[line] = found

    def total(self, quantity: str) -> Array:
        known: Any = 0.0
        unknown: Any = True
        lacking: Any = False
        for line, found in self.lines.items():
            missing = np.isnan(found[quantity])
            known = known + np.where(missing, 0.0, found[quantity])
            unknown = unknown & missing
            lacking = lacking | (missing & (line in OF_THE_JOB))
        return np.where(unknown | lacking, np.nan, known)


def bill(w: World, plan: Plan, spent: Spent) -> Bill:
    """Price what was spent."""
    c, pue, watts, found = w.cluster, w.site.pue, power(w), Bill(w)
    tariff = np.where(c.price_includes_electricity, 0.0, w.site.tariff)

    def job(line: str, seconds: Any, *parts: tuple[Array, Array]) -> None:
        """GPU time, and the energy of so many seconds at so many watts each."""
        energy, gpu_time = sum(times(t, it_watts * pue) for t, it_watts in parts), c.gpus * seconds
        found.add(line, energy, gpu_time, times(gpu_time, c.gpu_price) + times(energy, tariff))

    s, training = spent, watts.gpu_train + watts.host_train
    waiting, empty = watts.gpu_stall + watts.host_stall, watts.gpu_idle + watts.host_idle
    job("gpu_wait", s.stall, (s.stall, watts.gpu_stall))
    job("host_wait", np.zeros(1), (s.stall, watts.host_stall))
    job("slowdown", s.slowed, (s.slowed, training))
    job("redone_work", s.redone, (s.redone, training))
    parts = (s.detect + s.init, waiting), (s.warmup, training), (s.reschedule, empty)
    job("restart", s.detect + s.reschedule + s.init + s.warmup, *parts)
    job("loading", s.load, (s.load, waiting))
    _storage(found, "", w, w.tier, plan.first, s)
    if np.any(plan.two):
        _storage(found, "second_", w, w.second_tier, plan.second, s)
    if np.any(s.third_saves):
        _storage(found, "third_", w, w.third_tier, save(w, w.third_tier, from_gpus=False), s)
    return found


def _storage(found: Bill, prefix: str, w: World, tier: Tier, one: Save, spent: Spent) -> None:
    """What one tier adds: writing, carrying, requests, keeping, and wear if drives have a price."""
    saves, held = getattr(spent, f"{prefix}saves"), getattr(spent, f"{prefix}held")
    inside, price, nothing = is_inside(tier), storage_tariff(w, tier), np.zeros(1)
    writing = times(saves, write_energy(w, tier, one))
    carrying = times(saves, carry_energy(w, tier, one))
    found.add(prefix + "storage_write", writing, nothing, times(writing, price))
    found.add(prefix + "network", carrying, nothing, times(carrying, price))
    asking = np.where(inside, 0.0, times(saves, request_cost(tier, one)))
    found.add(prefix + "requests", nothing, nothing, asking)
    keeping = times(times(billed_bytes(tier, held), spent.wall), rent(tier))
    found.add(prefix + "retention", nothing, nothing, np.where(inside, 0.0, keeping))
    if not np.all(np.isnan(tier.drive_price)):
        found.add(prefix + "wear", nothing, nothing, times(saves, wear_cost(tier, one)))


def write_energy(w: World, tier: Tier, save: Save) -> Array:
    """Facility energy that one save adds at its tier: by the byte if that is known, else power
    while busy less power at rest, else what storage of this kind and rate usually takes."""
    busy = (tier.active_power - orelse(tier.idle_power, 0.0)) * save.write
    usual = save.written * usual_energy(w, tier)
    return orelse(save.written * tier.write_energy, orelse(busy, usual)) * w.site.pue


def carry_energy(w: World, tier: Tier, save: Save) -> Array:
    crosses = ~is_inside(tier) | (tier.survives != "process")
    return np.where(crosses, save.written * tier.network_energy * w.site.pue, 0.0)


def storage_tariff(w: World, tier: Tier) -> Array:
    """Tariff on a tier's energy; 0 where its own price, or that of the rented node, contains it."""
    priced = ~np.isnan(tier.storage_price) | ~np.isnan(tier.standing_price)
    included = is_inside(tier) & w.cluster.price_includes_electricity
    return np.where(included | priced, 0.0, w.site.tariff)


def request_cost(tier: Tier, save: Save) -> Array:
    """Of one save: its requests, and its bytes where they are sold too."""
    by_request = times(save.written / tier.request_size, tier.request_price)
    cost = by_request + times(save.written, orelse(tier.write_price, 0.0))
    free = np.isnan(tier.storage_price) & np.isnan(tier.request_price) & np.isnan(tier.write_price)
    return np.where(free, 0.0, cost)


def billed_bytes(tier: Tier, held: Array) -> Array:
    return np.where(tier.billed_on == "provisioned", tier.capacity, held)


def rent(tier: Tier) -> Array:
    """Price of keeping a byte; 0 where the tier is paid for as a whole."""
    as_whole = np.isnan(tier.storage_price) & ~np.isnan(tier.standing_price)
    return np.where(as_whole, 0.0, tier.storage_price)


def wear_cost(tier: Tier, save: Save) -> Array:
    """Of the price of the drives, what one save uses up of the writes that they are rated for."""
    rated = tier.drive_writes * tier.drive_life  # full writes, so that capacity cancels out
    return np.where(np.isnan(tier.drive_price), 0.0, save.written * tier.drive_price / rated)


def rated_share(w: World, plan: Plan, spent: Spent) -> Array:
    """Bytes written to the first tier over those that its drives are rated for in the same time: at
    this pace also the share of their rated writes over their life."""
    return spent.saves * plan.first.written / spent.wall / (w.tier.drive_writes * w.tier.capacity)


def kept(saves: Array, keep_last: Array) -> Array:
    """Mean number of checkpoints held in a run that makes `saves` and keeps the newest few."""
    held = np.minimum(keep_last, saves)
    return np.where(saves < 1, saves, held - held * (held - 1.0) / 2.0 / np.maximum(saves, 1.0))


def undeleted(w: World, saves: Array, cycle: Array) -> Array:
    """Mean number of old checkpoints still there since deleting them takes longer than a cycle."""
    beside = (w.policy.deleting == "beside") & np.isfinite(w.policy.keep_last)
    left = np.maximum(0.0, 1.0 - cycle / delete_time(w))
    old = np.maximum(0.0, saves - w.policy.keep_last)
    return np.where(beside & (left > 0), left * old / 2.0, 0.0)
