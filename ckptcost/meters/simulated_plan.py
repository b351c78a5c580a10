"""What a simulated machine is and does: its watts in each state, when it saves and how long each
phase takes, and what goes wrong.

The defaults are one node with 8 GPUs like H200: idle and load as an exporter's captures show them
(driver 590.48, HBM apart), held up by a save at 0.49 of load as models/defaults.toml has it, and a
host of 2.8 kW (data/accelerator_figures.csv). They are a rhythm to test and to show with, not a
measurement of any machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ckptcost.core.channels import Mark
from ckptcost.errors import InputError

_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_STEP, _MASK = 0x9E3779B97F4A7C15, 0xFFFFFFFFFFFFFFFF
SAVES, TICKS, SPREAD, PHASES, NOISE, JITTER = range(6)
"""what a random number is for: no two purposes share one"""


def chance(seed: int, purpose: int, *place: int) -> float:
    """A number in [0, 1) that belongs to its place: SplitMix64 over the words, so any order of
    asking gives the same."""
    state = 0
    for word in (seed, purpose, *place):
        state = (state + word * _STEP + _STEP) & _MASK
        state = ((state ^ (state >> 30)) * _MIX[0]) & _MASK
        state = ((state ^ (state >> 27)) * _MIX[1]) & _MASK
        state ^= state >> 31
    return (state >> 11) * 2.0**-53


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong with what is read, from one second of the plan to another. The
    power itself goes on."""

    kind: Literal["silent", "lost", "reset", "stuck", "gone"]
    """silent: NaN and no word; lost: NaN, and an event when it goes and when it is back; reset: the
    domain's counters start again at 0; stuck: the value stays; gone: the whole meter raises
    MeterLost"""
    what: str
    """a domain, whose inner domains (gpu:3.memory in gpu:3) suffer with it; for `gone` a meter's
    name"""
    from_s: float
    to_s: float = math.inf
    """a reset has none"""


@dataclass(frozen=True, slots=True)
class Plan:
    """A machine and its job. Seconds count from the plan's own 0; watts are direct current unless
    they say otherwise."""

    seed: int = 1
    # the cards
    gpus: int = 8
    gpu_kind: Literal["card", "mig", "superchip"] = "card"
    """mig: cards are split, only the parents answer; superchip: one counter for a module of GPU,
    CPU and memory"""
    gpu_idle_w: float = 77.7
    gpu_train_w: float = 627.0
    gpu_stall_w: float = 307.0
    gpu_snapshot_w: float = 20.0
    """more, while its memory is copied to the host"""
    gpu_background_w: float = 8.0
    """more, while an asynchronous save is under way"""
    gpu_spread: float = 0.03
    """the cards' watts differ by at most this fraction of them"""
    memory_idle_w: float = 46.6
    memory_train_w: float = 97.7
    memory_stall_w: float = 60.0
    memory_used_bytes: float = 120e9
    energy_counter: bool = True
    memory_scope: bool = True
    gpu_tick_s: float = 0.1
    gpu_jitter_s: float = 0.0
    """a tick is late by up to this; at most one tick"""
    gpu_counter_at_j: float = 1.25e6
    """what the counters show at second 0"""
    # the rhythm of a training step
    step_s: float = 1.2
    dip_w: float = 180.0
    dip_share: float = 0.12
    """the end of each step, in which a collective leaves the cores waiting"""
    # the host
    packages: int = 2
    cpu_idle_w: float = 90.0
    cpu_train_w: float = 210.0
    cpu_save_w: float = 55.0
    """more, while a save serialises and writes"""
    dram_idle_w: float = 14.0
    dram_train_w: float = 30.0
    dram_save_w: float = 8.0
    cpu_counter_at_j: float = 1000.0
    """near 262,143 and a wrap comes soon"""
    other_w: float = 1650.0
    """switches, NICs, fans, drives, boards: no meter sees them but the node's"""
    other_save_w: float = 40.0
    psu_efficiency: float = 0.94
    node_noise_w: float = 8.0
    """the node's meter is off by up to this"""
    # the saves
    start_s: float = 5.0
    """the machine idles until the job begins"""
    stop_s: float = math.inf
    first_s: float = 35.0
    interval_s: float = 60.0
    saves: int | None = None
    """how many at most"""
    asynchronous: bool = False
    storage: Literal["fsync", "buffered", "direct"] = "fsync"
    """fsync: into the page cache, which drains from the start and until fsync returns; buffered: no
    fsync, and it drains `writeback_delay_s` after the save returned; direct: past the cache"""
    checkpoint_bytes: float = 112e9
    """8 billion parameters at 14 bytes, on one node"""
    shares: tuple[float, ...] = (1.0,)
    """sizes of the saves over `checkpoint_bytes`, by turns; what moves bytes takes as much less
    time, the commit does not"""
    snapshot_s: float = 0.3
    write_s: float = 2.2
    fsync_s: float = 5.3
    commit_s: float = 0.05
    writeback_delay_s: float = 30.0
    writeback_s: float = 6.0
    variation: float = 0.05
    """a save's phases are longer or shorter by at most this fraction, all alike"""
    ramp_s: float = 0.05
    """power takes so long from one state to the next"""
    disks: int = 4
    queue_depth: float = 32.0
    write_size_bytes: float = 524288.0
    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        def refuse(key: str, problem: str, remedy: str = "") -> None:
            raise InputError(problem, where="simulated plan", key=key, remedy=remedy)

        for key in ("gpus", "packages", "disks"):
            if not 0 <= getattr(self, key) <= 1024:
                refuse(key, "expected 0 to 1024")
        for key in (
            "snapshot_s",
            "fsync_s",
            "commit_s",
            "writeback_delay_s",
            "ramp_s",
            "checkpoint_bytes",
            "gpu_jitter_s",
        ):
            if not 0 <= getattr(self, key) < math.inf:
                refuse(key, "expected 0 or more")
        for key in (
            "gpu_tick_s",
            "step_s",
            "interval_s",
            "write_s",
            "writeback_s",
            "write_size_bytes",
        ):
            if not 0 < getattr(self, key) < math.inf:
                refuse(key, "expected more than 0")
        if not 0 < self.psu_efficiency <= 1:
            refuse("psu_efficiency", "expected more than 0 and at most 1")
        if not (0 <= self.variation < 1 and 0 <= self.dip_share <= 1 and 0 <= self.gpu_spread < 1):
            refuse("variation, dip_share, gpu_spread", "expected fractions")
        if self.gpu_jitter_s > self.gpu_tick_s:
            refuse("gpu_jitter_s", "a tick cannot be later than the next one", "at most gpu_tick_s")
        if self.gpu_kind == "superchip" and self.packages != self.gpus:
            refuse("packages", "a superchip has one CPU for each GPU", f"packages={self.gpus}")
        if self.saves != 0 and not self.start_s + self.ramp_s <= self.first_s:
            refuse(
                "first_s",
                "the first save begins before the job is under way",
                f"{self.start_s + self.ramp_s:g} or more",
            )
        if not (self.shares and all(0 < share <= 1 for share in self.shares)):
            refuse("shares", "expected fractions of checkpoint_bytes")
        longest_s = self.offsets(1.0 + self.variation).settled_s
        if self.saves != 0 and not longest_s < self.interval_s:
            refuse(
                "interval_s",
                f"a save and its tail last up to {longest_s:g} s and would meet the next",
                "saves do not overlap here",
            )
        if not self.start_s + self.ramp_s <= self.stop_s:
            refuse("stop_s", "the job ends before it begins")

    def factor(self, save: int) -> float:
        """How much longer than planned the phases of a save are."""
        return 1.0 + self.variation * (2.0 * chance(self.seed, SAVES, save) - 1.0)

    def share(self, save: int) -> float:
        """How large a save is, over `checkpoint_bytes`."""
        return self.shares[save % len(self.shares)]

    def offsets(self, factor: float, share: float = 1.0) -> Offsets:
        """When a save's phases end, in seconds after it began."""
        snapshotted = self.snapshot_s * factor * share
        written = snapshotted + self.write_s * factor * share
        synced = written + (0.0 if self.storage == "buffered" else self.fsync_s * factor * share)
        committed = synced + self.commit_s * factor
        returned = snapshotted if self.asynchronous else committed
        if self.storage == "buffered":
            drains = committed + self.writeback_delay_s
            stored = drains + self.writeback_s * factor * share
            durable = stored
        else:
            drains, stored, durable = (
                snapshotted,
                (written if self.storage == "direct" else synced),
                committed,
            )
        return Offsets(
            snapshotted,
            written,
            synced,
            committed,
            returned,
            drains,
            stored,
            durable,
            max(stored, committed) + self.ramp_s,
        )

    def count(self) -> float:
        """How many saves there are: those that are over and settled when the job stops."""
        room = (
            self.stop_s - self.first_s - self.offsets(1.0 + self.variation).settled_s
        ) / self.interval_s
        fit = math.inf if room == math.inf else max(math.floor(room) + 1, 0)
        return fit if self.saves is None else min(fit, self.saves)


class Offsets(NamedTuple):
    """Ends of the phases, seconds after the save began."""

    snapshotted_s: float
    written_s: float
    synced_s: float
    committed_s: float
    returned_s: float
    """training goes on"""
    drains_s: float
    """the devices begin to write"""
    stored_s: float
    durable_s: float
    settled_s: float
    """nothing of it is left"""


def marks(plan: Plan, from_s: float, to_s: float, origin_s: float = 0.0) -> Iterator[Mark]:
    """What a hook would have set in [from, to), in order; times are the plan's, plus `origin_s`.

    >>> [(round(m.t_s, 2), m.name) for m in marks(Plan(variation=0.0), 0.0, 60.0)][:3]
    [(35.0, 'begin'), (35.3, 'snapshotted'), (37.5, 'written')]
    """
    first = max(math.floor((from_s - plan.first_s) / plan.interval_s), 0)
    last = min(math.ceil((to_s - plan.first_s) / plan.interval_s), plan.count())
    for save in range(first, int(max(last, first))):
        begin_s, share = plan.first_s + save * plan.interval_s, plan.share(save)
        at, bytes_ = plan.offsets(plan.factor(save), share), plan.checkpoint_bytes * share
        set_: list[tuple[float, str, dict[str, object]]] = [
            (0.0, "begin", {"path": f"/ckpt/step-{100 * (save + 1):06d}", "bytes": bytes_}),
            (at.snapshotted_s, "snapshotted", {}),
            (at.written_s, "written", {"bytes": bytes_}),
            *([] if plan.storage == "buffered" else [(at.synced_s, "synced", {})]),
            (at.committed_s, "committed", {}),
            (at.returned_s, "returned", {}),
            (at.durable_s, "durable", {"bytes": bytes_}),
            (max(at.durable_s, at.returned_s), "end", {}),
        ]
        for after_s, name, detail in sorted(set_, key=lambda one: one[0]):
            if from_s <= begin_s + after_s < to_s:
                yield Mark(origin_s + begin_s + after_s, name, f"save-{save + 1}", 0, "api", detail)


SQUARE = Plan(
    gpus=1,
    gpu_idle_w=120.0,
    gpu_stall_w=120.0,
    gpu_train_w=600.0,
    gpu_spread=0.0,
    step_s=2.0,
    dip_w=480.0,
    dip_share=0.5,
    start_s=0.0,
    saves=0,
    ramp_s=0.0,
)
"""600 W and 120 W in turns, 1 s each: the curve that algorithms for counters are compared on"""
