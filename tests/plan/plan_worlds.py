"""Small worlds of a plan, figure by figure, and the same plan walked event by event."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ckptcost.plan import evaluate, physics
from ckptcost.scenario.schema import KEYS, SECTIONS, World, is_figure

BASE = {
    "checkpoint.size": 6e11,
    "tier.id": "near",
    "tier.write": 1e10,
    "tier.read": 1e10,
    "tier.survives": "site",
    "cluster.gpus": 64,
    "cluster.gpu_d2h": 50e9,
    "cluster.gpu_train": 600.0,
    "cluster.gpu_stall": 200.0,
    "cluster.gpu_idle": 80.0,
    "cluster.host_train": 2500.0,
    "cluster.gpu_price": 2.5 / 3600,
    "policy.interval": 600.0,
    "policy.snapshot": 5.0,
    "failures.mtbf": 5000.0,
    "failures.detect": 40.0,
    "failures.reschedule": 60.0,
    "failures.init": 100.0,
    "failures.warmup": 30.0,
    "site.grid_location": 400e-3 / 3.6e6,
    "site.pue": 1.2,
    "run.work": 120_000.0,
}
SECOND = {
    "tier.survives": "process",
    "second_tier.id": "far",
    "second_tier.write": 3e9,
    "second_tier.read": 3e9,
    "policy.second_every": 5,
    "failures.node_loss_fraction": 0.4,
}


def world(*figures: dict[str, Any]) -> World:
    """A world of one case; a list of values is a row each, a list in a list a row of draws."""
    said = dict(BASE)
    for each in figures:
        said |= each
    sections = {}
    for section, kind in SECTIONS.items():
        values = {}
        for key, about in KEYS[section].items():
            value = said.pop(f"{section}.{key}", about.default)
            column = np.reshape(np.asarray(value, float if is_figure(section, key) else None), -1)
            values[key] = column[:, None] if np.ndim(value) < 2 else np.asarray(value, float)
        sections[section] = kind(**values)
    assert not said, said
    return World(**sections)


def outcome(w: World) -> evaluate.Outcome:
    with np.errstate(all="ignore"):
        return evaluate.evaluate(w)[0]


def at(w: World, interval: Any) -> evaluate.Outcome:
    with np.errstate(all="ignore"):
        return evaluate.at(w, physics.plan(w), np.reshape(np.asarray(interval, float), (-1, 1)))


def best(w: World, objective: str) -> Any:
    with np.errstate(all="ignore"):
        return evaluate.best(w, physics.plan(w), objective)


def one(x: Any) -> float:
    return float(np.ravel(x)[0])


# --- the plain walk -----------------------------------------------------------------------------


@dataclass
class Job:
    """All that a walk needs, in seconds; written down by hand, not taken from the formulas."""

    saves: int = 200
    interval: float = 600.0
    stall: float = 60.0
    lag: float = 0.0
    many: int = 1
    busy: str = "block"
    every: tuple[int, int] = (1, 1)
    further_stall: tuple[float, float] = (0.0, 0.0)
    further_lag: tuple[float, float] = (0.0, 0.0)
    loads: tuple[float, float, float] = (60.0, 200.0, 600.0)
    lost: tuple[float, float] = (0.0, 0.0)
    init: float = 100.0
    warmup: float = 30.0
    down: float = 100.0
    mtbf: float = 5000.0
    unusable: float = 0.0
    silent: float = 0.0
    silent_back: int = 0

    def but(self, **changes: Any) -> Job:
        return replace(self, **changes)


class Failed(Exception):
    pass


class Walk:
    """One run: training, saving, draining and failing, event by event. Saves are numbered; each
    remembers the work that it holds."""

    def __init__(self, job: Job, rng: random.Random) -> None:
        self.job, self.rng, self.now = job, rng, 0.0
        self.next_failure = rng.expovariate(1.0 / job.mtbf)
        self.spent: Counter[str] = Counter()
        self.work = {0: 0.0}
        self.units = (1, job.every[0], job.every[0] * job.every[1])
        self.held = [0, 0, 0]
        self.drains: list[tuple[float, int, int]] = []  # safe when, on which tier, which save
        self.tier = 0

    def spend(self, what: str, time: float) -> None:
        hit = self.now + time > self.next_failure
        time = self.next_failure - self.now if hit else time
        self.spent[what] += time
        self.now += time
        if hit:
            raise Failed

    def run(self) -> Counter[str]:
        loading = 0.0
        while True:
            try:
                if self.spent["failures"]:
                    self.spend("init", self.job.init)
                    self.spend("load", loading)
                    self.spend("warmup", self.job.warmup)
                self.tier = 0
                self.train(self.held[0])
                self.spent["wall"] = self.now
                return self.spent
            except Failed:
                loading = self.fail()

    def train(self, saved: int) -> None:
        job = self.job
        self.spread(saved, self.now)
        while self.work[saved] < job.saves * job.interval - 1e-6:
            since = job.interval
            self.spend("trained", job.interval)
            while job.busy == "skip" and self.in_flight() >= job.many:
                self.spend("trained", job.interval)
                since += job.interval
            if self.in_flight() >= job.many:
                waits = sorted(end for end, tier, _ in self.drains if tier == 0)
                self.spend("stall", waits[-job.many] - self.now)
            self.spend("stall", job.stall)
            self.work[saved + 1] = self.work[saved] + since
            saved += 1
            self.drains.append((self.now + job.lag, 0, saved))
            self.spread(saved, self.now + job.lag)

    def in_flight(self) -> int:
        self.settle()
        return sum(tier == 0 for _, tier, _ in self.drains)

    def spread(self, saved: int, safe_at: float) -> None:
        """To the further tiers that a save is for, and that do not have it yet."""
        for tier in (1, 2):
            missing = saved > self.held[tier] and saved % self.units[tier] == 0
            if not missing or self.job.every[0] == 1:
                continue
            if self.job.further_stall[tier - 1]:
                self.spend("stall", self.job.further_stall[tier - 1])
            safe_at = max(safe_at, self.now) + self.job.further_lag[tier - 1]
            self.drains.append((safe_at, tier, saved))
            self.settle()

    def settle(self) -> None:
        for when, tier, saved in self.drains:
            if when <= self.now + 1e-9:
                self.held[tier] = max(self.held[tier], saved)
        self.drains = [each for each in self.drains if each[0] > self.now + 1e-9]

    def fail(self) -> float:
        """Back to a save, after the time that is down; how long it takes to load."""
        job, rng = self.job, self.rng
        self.settle()
        chance = rng.random()
        drawn = 2 if chance < job.lost[1] else 1 if chance < job.lost[0] else 0
        self.tier = max(self.tier, drawn)
        tries, back = 1, 0
        while rng.random() < job.unusable:
            tries, back = tries + 1, back + 1
        back += job.silent_back if rng.random() < job.silent else 0
        base = max(0, self.held[self.tier] - back * self.units[self.tier])
        self.held = [min(h, base // u * u) for h, u in zip(self.held, self.units, strict=True)]
        self.held[0] = base
        self.drains = []
        self.spent["failures"] += 1
        self.now += job.down
        self.next_failure = self.now + rng.expovariate(1.0 / job.mtbf)
        return tries * job.loads[self.tier]


def walks(job: Job, runs: int, seed: int = 7) -> dict[str, np.ndarray]:
    rng = random.Random(seed)
    found = [Walk(job, rng).run() for _ in range(runs)]
    names = ("wall", "stall", "trained", "load", "failures")
    return {name: np.array([each[name] for each in found]) for name in names}
