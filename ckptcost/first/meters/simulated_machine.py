"""The truth behind the simulated meters: what a planned machine is, when it saves and how long each
phase takes, what goes wrong, and the exact joules of every domain in any window.

The defaults are one node with 8 GPUs like H200: idle and load as an exporter's captures show them
(driver 590.48, HBM apart), held up by a save at 0.49 of load as models/defaults.toml has it, and a
host of 2.8 kW (data/accelerator_figures.csv). They are a rhythm to test and to show with, not a
measurement of any machine.

Power is a pure function of time with its exact integral: activities that step and ramp, a wave that
repeats, and loads made of both. A load is `base_w + sum of weight * activity(t) - dips`. Everything
is linear in the activities, so that a whole machine needs one look-up for a moment, and the joules
between two moments are a difference of two areas, with no sampling and no error but rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ckptcost.first.core.channels import Mark
from ckptcost.first.errors import InputError

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


_NOT_NEGATIVE: Final = (
    "snapshot_s",
    "fsync_s",
    "commit_s",
    "writeback_delay_s",
    "ramp_s",
    "checkpoint_bytes",
    "gpu_jitter_s",
)
_POSITIVE: Final = (
    "gpu_tick_s",
    "step_s",
    "interval_s",
    "write_s",
    "writeback_s",
    "write_size_bytes",
)


def _refuse(key: str, problem: str, remedy: str = "") -> NoReturn:
    raise InputError(problem, where="simulated plan", key=key, remedy=remedy)


@dataclass(frozen=True, slots=True)
class MachinePlan:
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
        for key in ("gpus", "packages", "disks"):
            if not 0 <= getattr(self, key) <= 1024:
                _refuse(key, "expected 0 to 1024")
        for key in _NOT_NEGATIVE:
            if not 0 <= getattr(self, key) < math.inf:
                _refuse(key, "expected 0 or more")
        for key in _POSITIVE:
            if not 0 < getattr(self, key) < math.inf:
                _refuse(key, "expected more than 0")
        self._check_fractions()
        self._check_times()

    def _check_fractions(self) -> None:
        if not 0 < self.psu_efficiency <= 1:
            _refuse("psu_efficiency", "expected more than 0 and at most 1")
        if not (0 <= self.variation < 1 and 0 <= self.dip_share <= 1 and 0 <= self.gpu_spread < 1):
            _refuse("variation, dip_share, gpu_spread", "expected fractions")
        if self.gpu_jitter_s > self.gpu_tick_s:
            late = "a tick cannot be later than the next one"
            _refuse("gpu_jitter_s", late, "at most gpu_tick_s")
        if self.gpu_kind == "superchip" and self.packages != self.gpus:
            _refuse("packages", "a superchip has one CPU for each GPU", f"packages={self.gpus}")

    def _check_times(self) -> None:
        under_way_s = self.start_s + self.ramp_s
        if self.saves != 0 and not under_way_s <= self.first_s:
            early = "the first save begins before the job is under way"
            _refuse("first_s", early, f"{under_way_s:g} or more")
        if not (self.shares and all(0 < share <= 1 for share in self.shares)):
            _refuse("shares", "expected fractions of checkpoint_bytes")
        longest_s = self.offsets(1.0 + self.variation).settled_s
        if self.saves != 0 and not longest_s < self.interval_s:
            _refuse(
                "interval_s",
                f"a save and its tail last up to {longest_s:g} s and would meet the next",
                "saves do not overlap here",
            )
        if not under_way_s <= self.stop_s:
            _refuse("stop_s", "the job ends before it begins")

    def factor(self, save: int) -> float:
        """How much longer than planned the phases of a save are."""
        return 1.0 + self.variation * (2.0 * chance(self.seed, SAVES, save) - 1.0)

    def share(self, save: int) -> float:
        """How large a save is, over `checkpoint_bytes`."""
        return self.shares[save % len(self.shares)]

    def offsets(self, factor: float, share: float = 1.0) -> PhaseEnds:
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
        return PhaseEnds(
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


class PhaseEnds(NamedTuple):
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


def marks(plan: MachinePlan, from_s: float, to_s: float, origin_s: float = 0.0) -> Iterator[Mark]:
    """What a hook would have set in [from, to), in order; times are the plan's, plus `origin_s`.

    >>> [(round(m.t_s, 2), m.name) for m in marks(MachinePlan(variation=0.0), 0.0, 60.0)][:3]
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


SQUARE = MachinePlan(
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


Array = NDArray[np.float64]
LONG_AGO_S, FAR_AHEAD_S = -1e12, 1e12
_RATE, _SLOPE, _AREA = range(3)


class PowerEdges(NamedTuple):
    """How activities change in a number of cycles of equal make: (cycles, edges) or (edges,) where
    all cycles agree."""

    at_s: Array
    """since the cycle began"""
    column: NDArray[np.intp]
    change: Array
    ramp_s: Array
    """how long the change takes, linearly; 0 is a step"""


class PowerPieces(NamedTuple):
    """Knots of cycles that follow each other, and the area that each knot begins with, counted from
    the first one."""

    t_s: Array
    rows: Array
    """(knots, 3, activities): rate, slope, area"""
    total: Array
    """area of all of it"""


def pieces(
    begin_s: Array, until_s: Array, edges: PowerEdges, before: Array, after: Array
) -> PowerPieces:
    """Piecewise linear activities over cycles [begin, until), each from the state `before` to the
    state `after`.

    >>> one = PowerEdges(np.array([2.0]), np.array([0]), np.array([6.0]), np.array([3.0]))
    >>> p = pieces(np.array([10.0]), np.array([20.0]), one, np.zeros(1), np.full(1, 6.0))
    >>> (
    ...     p.t_s.tolist(),
    ...     p.rows[:, 0, 0].tolist(),
    ...     float(p.total[0]),
    ... )  # 0, up to 6 within 3 s, then 5 s of it
    ([10.0, 12.0, 15.0], [0.0, 0.0, 6.0], 39.0)
    """
    cycles, count = len(begin_s), len(edges.column)
    at = np.broadcast_to(edges.at_s, (cycles, count))
    change = np.broadcast_to(edges.change, (cycles, count))
    ramps = np.broadcast_to(edges.ramp_s, (count,)) > 0
    steepness = change[:, ramps] / edges.ramp_s[ramps]
    # a ramp is two knots, one that turns the slope up and one that turns it back; a step is one
    # knot
    knots = np.concatenate([np.zeros((cycles, 1)), at, at[:, ramps] + edges.ramp_s[ramps]], axis=1)
    turn, jump = (np.zeros((cycles, knots.shape[1], len(before))) for _ in range(2))
    first, back = 1 + np.arange(count), 1 + count + np.arange(int(ramps.sum()))
    turn[:, first[ramps], edges.column[ramps]] = steepness
    turn[:, back, edges.column[ramps]] = -steepness
    jump[:, first[~ramps], edges.column[~ramps]] = change[:, ~ramps]
    order = np.argsort(knots, axis=1, kind="stable")
    knots = np.take_along_axis(knots, order, axis=1)
    slope = np.cumsum(np.take_along_axis(turn, order[..., None], axis=1), axis=1)
    gap = np.diff(knots, axis=1, append=(until_s - begin_s)[:, None])[..., None]
    risen = np.concatenate(
        [np.zeros((cycles, 1, len(before))), np.cumsum(slope * gap, axis=1)[:, :-1]], axis=1
    )
    rate = before + np.cumsum(np.take_along_axis(jump, order[..., None], axis=1), axis=1) + risen
    slope[:, -1], rate[:, -1] = (
        0.0,
        after,
    )  # what is left of rounding would grow with the square of the time to the next cycle
    grown = np.cumsum((gap * (rate + slope * gap / 2.0)).reshape(-1, len(before)), axis=0)
    area = np.concatenate([np.zeros((1, len(before))), grown[:-1]])
    flat = [part.reshape(-1, len(before)) for part in (rate, slope)]
    return PowerPieces(
        (begin_s[:, None] + knots).ravel(), np.stack([*flat, area], axis=1), grown[-1]
    )


class Timeline:
    """Activities over all time: nothing before the first stretch, the last rate for ever after the
    last one.

    A stretch is pieces and where they end. They are asked for only when somebody looks so far, so
    that a long run costs nothing before.
    """

    def __init__(self, activities: int, stretches: Iterable[tuple[PowerPieces, float]]) -> None:
        self._t = np.array([LONG_AGO_S])
        self._rows = np.zeros((1, 3, activities))
        self._total = np.zeros(activities)
        self._until_s = LONG_AGO_S
        self._stretches = iter(stretches)

    def _extend(self) -> None:
        more, self._until_s = next(self._stretches, (None, np.inf))
        if more is not None:
            rows = more.rows.copy()
            rows[:, _AREA] += self._total
            self._t = np.concatenate([self._t, more.t_s])
            self._rows = np.concatenate([self._rows, rows])
            self._total = self._total + more.total

    def _at(self, t_s: Array) -> tuple[Array, Array]:
        while t_s.max() >= self._until_s:
            self._extend()
        found = self._t.searchsorted(t_s, "right") - 1
        return self._rows[found], (t_s - self._t[found])[:, None]

    def rates(self, t_s: Array) -> Array:
        """(times, activities): how strong each is at each time."""
        rows, since = self._at(t_s)
        return rows[:, _RATE] + since * rows[:, _SLOPE]

    def areas(self, t_s: Array) -> Array:
        """(times, activities): the exact integral of each from long ago."""
        rows, since = self._at(t_s)
        grown: Array = rows[:, _AREA] + since * (rows[:, _RATE] + (0.5 * since) * rows[:, _SLOPE])
        return grown


class Wave(NamedTuple):
    """1 in the last `share` of every period, else 0."""

    period_s: float
    share: float

    def rate(self, t_s: Array) -> Array:
        """
        >>> Wave(2.0, 0.25).rate(np.array([0.0, 1.4, 1.5, 2.0, 3.9])).tolist()
        [0.0, 0.0, 1.0, 0.0, 1.0]
        """
        inside = np.mod(t_s, self.period_s)
        return (inside >= self.period_s * (1.0 - self.share)).astype(np.float64)

    def area(self, t_s: Array) -> Array:
        """
        >>> Wave(2.0, 0.25).area(np.array([0.0, 1.75, 2.0, 3.75])).tolist()
        [0.0, 0.25, 0.5, 0.75]
        """
        whole = np.floor(t_s / self.period_s)
        inside = t_s - whole * self.period_s
        grown: Array = whole * (self.share * self.period_s) + np.maximum(
            inside - (1.0 - self.share) * self.period_s, 0.0
        )
        return grown


class Load(NamedTuple):
    """Watts of one domain: a base, so much for each activity, and dips of a wave that runs only
    while `clock` does."""

    base_w: float
    weights_w: Array
    dips_w: Array
    phases_s: Array

    def plus(self, other: Load) -> Load:
        return Load(
            self.base_w + other.base_w,
            self.weights_w + other.weights_w,
            np.concatenate([self.dips_w, other.dips_w]),
            np.concatenate([self.phases_s, other.phases_s]),
        )

    def times(self, factor: float) -> Load:
        return Load(
            self.base_w * factor, self.weights_w * factor, self.dips_w * factor, self.phases_s
        )

    def watts(self, rates: Array, areas: Array, clock: int, wave: Wave) -> Array:
        """Power where activities are as given; dips are as deep as the clock's own rate."""
        value = self.base_w + rates @ self.weights_w
        if len(self.dips_w):
            down = wave.rate(areas[:, clock, None] + self.phases_s)
            value = value - rates[:, clock] * (down @ self.dips_w)
        return np.asarray(value, dtype=np.float64)

    def joules(self, t_s: Array, areas: Array, clock: int, wave: Wave) -> Array:
        """Integral of `watts` from second 0, or minus it for times before.

        The dips are exact too: the wave's time is the clock's area, and `rate * wave(area) dt` is
        `wave(area) d(area)`.
        """
        value = self.base_w * t_s + areas @ self.weights_w
        if len(self.dips_w):
            down = wave.area(areas[:, clock, None] + self.phases_s) - wave.area(self.phases_s)
            value = value - down @ self.dips_w
        return np.asarray(value, dtype=np.float64)


JOB, TRAIN, SNAPSHOT, BACKGROUND, SAVING, DIRTIED, BUSY, STORED = range(8)
"""activities: all are 0 or 1 but for DIRTIED and STORED, whose areas count saves"""
ACTIVITIES = 8
_AT_FIRST = 32
"""saves that are laid out together; later ones in batches that double. A save takes 6 kB, a day of
one a minute 9 MB"""


class Machine:
    """The truth behind the simulated meters. Seconds are the plan's; a window may lie anywhere."""

    def __init__(self, plan: MachinePlan) -> None:
        self.plan = plan
        self.wave = Wave(plan.step_s, plan.dip_share)
        self.timeline = Timeline(ACTIVITIES, self._stretches())
        parts = {f"gpu:{i}": self._gpu(i) for i in range(plan.gpus)}
        parts |= {
            f"cpu:{i}": self._host(plan.cpu_idle_w, plan.cpu_train_w, plan.cpu_save_w)
            for i in range(plan.packages)
        }
        parts |= {
            f"dram:{i}": self._host(plan.dram_idle_w, plan.dram_train_w, plan.dram_save_w)
            for i in range(plan.packages)
        }
        total = _flat(0.0)
        for load in parts.values():
            total = total.plus(load)
        node = total.plus(self._host(plan.other_w, plan.other_w, plan.other_save_w)).times(
            1.0 / plan.psu_efficiency
        )
        self.loads = parts | {
            "parts": total,
            "node": node,
            "unaccounted": node.plus(total.times(-1.0)),
        }
        self.loads |= {f"gpu:{i}.memory": self._memory(i) for i in range(plan.gpus)}
        if plan.gpu_kind == "superchip":
            for i in range(plan.gpus):
                self.loads[f"module:{i}"] = (
                    parts[f"gpu:{i}"].plus(parts[f"cpu:{i}"]).plus(parts[f"dram:{i}"])
                )

    def exact_j(self, domain: str, begin_s: float, end_s: float) -> float:
        """Joules of a domain, in closed form. `parts` is all GPUs, packages and memory;
        `unaccounted` is the node less the parts.

        >>> from ckptcost.first.meters.simulated_machine import SQUARE
        >>> Machine(SQUARE).exact_j(
        ...     "gpu:0", 0.5, 2.5
        ... )  # 0.5 s at 600 W, 1 s at 120 W, 0.5 s at 600 W
        720.0
        """
        at = np.array([begin_s, end_s])
        begin, end = (
            self._load(domain).joules(at, self.timeline.areas(at), TRAIN, self.wave).tolist()
        )
        return float(end - begin)

    def watts(self, domain: str, t_s: object) -> Array:
        """Power at these times."""
        at = np.atleast_1d(np.asarray(t_s, dtype=np.float64))
        return self._load(domain).watts(
            self.timeline.rates(at), self.timeline.areas(at), TRAIN, self.wave
        )

    def _load(self, domain: str) -> Load:
        try:
            return self.loads[domain]
        except KeyError:
            raise InputError(
                f"no domain {domain}",
                where="simulated plan",
                remedy="known: " + ", ".join(self.loads),
            ) from None

    def unevenness(self, gpu: int) -> float:
        """A card's watts over the plan's."""
        return 1.0 + self.plan.gpu_spread * (2.0 * chance(self.plan.seed, SPREAD, gpu) - 1.0)

    def _gpu(self, gpu: int) -> Load:
        p, weights = self.plan, np.zeros(ACTIVITIES)
        weights[JOB], weights[TRAIN] = p.gpu_stall_w - p.gpu_idle_w, p.gpu_train_w - p.gpu_stall_w
        weights[SNAPSHOT], weights[BACKGROUND] = p.gpu_snapshot_w, p.gpu_background_w
        # one card's step ends a little before another's, as far apart as a tenth of a step
        phase = np.array([0.1 * p.step_s * chance(p.seed, PHASES, gpu)]) if gpu else np.zeros(1)
        return Load(p.gpu_idle_w, weights, np.array([p.dip_w]), phase).times(self.unevenness(gpu))

    def _memory(self, gpu: int) -> Load:
        p, weights = self.plan, np.zeros(ACTIVITIES)
        weights[JOB], weights[TRAIN] = (
            p.memory_stall_w - p.memory_idle_w,
            p.memory_train_w - p.memory_stall_w,
        )
        return Load(p.memory_idle_w, weights, np.zeros(0), np.zeros(0)).times(self.unevenness(gpu))

    def _host(self, idle_w: float, train_w: float, save_w: float) -> Load:
        weights = np.zeros(ACTIVITIES)
        weights[JOB], weights[SAVING] = train_w - idle_w, save_w
        return Load(idle_w, weights, np.zeros(0), np.zeros(0))

    def _stretches(self) -> Iterator[tuple[PowerPieces, float]]:
        """The timeline as far as somebody looks: the way to the first save, the saves, the end of
        the job."""
        p, total = self.plan, self.plan.count()
        job = PowerEdges(np.zeros(2), np.array([JOB, TRAIN]), np.ones(2), np.full(2, p.ramp_s))
        yield _stretch(
            [p.start_s], [p.first_s if total > 0 else p.stop_s], job, _state(0.0), _state(1.0)
        )
        laid = 0
        while laid < total:
            saves = np.arange(laid, min(max(2 * laid, _AT_FIRST), total))
            laid += len(saves)
            begin_s = p.first_s + saves * p.interval_s
            until_s = begin_s + p.interval_s
            if laid >= total:
                until_s[-1] = p.stop_s
            yield _stretch(
                begin_s, until_s, self._edges(saves.astype(int).tolist()), _state(1.0), _state(1.0)
            )
        if p.stop_s < np.inf:
            yield _stretch(
                [p.stop_s], [np.inf], job._replace(change=-np.ones(2)), _state(1.0), _state(0.0)
            )

    def _edges(self, saves: list[int]) -> PowerEdges:
        """The spans of each save, two edges a span."""
        p = self.plan
        at, change = [], []
        for save in saves:
            share = p.share(save)
            o = p.offsets(p.factor(save), share)
            spans = [
                (TRAIN, 0.0, o.returned_s, -1.0),
                (SNAPSHOT, 0.0, o.snapshotted_s, 1.0),
                (BACKGROUND, o.returned_s, max(o.committed_s, o.returned_s), 1.0),
                (SAVING, 0.0, o.committed_s, 1.0),
                (DIRTIED, o.snapshotted_s, o.written_s, None),
                (BUSY, o.drains_s, o.stored_s, 1.0),
                (STORED, o.drains_s, o.stored_s, None),
            ]
            sizes = [
                share * _per_second(begin, end) if size is None else size
                for _, begin, end, size in spans
            ]
            at.append([t for _, begin, end, _ in spans for t in (begin, end)])
            change.append([c for size in sizes for c in (size, -size)])
        columns = np.repeat([column for column, *_ in spans], 2)
        steps = np.isin(columns, (DIRTIED, BUSY, STORED))
        return PowerEdges(np.array(at), columns, np.array(change), np.where(steps, 0.0, p.ramp_s))


def _stretch(
    begin_s: ArrayLike, until_s: ArrayLike, edges: PowerEdges, before: Array, after: Array
) -> tuple[PowerPieces, float]:
    begin, until = np.asarray(begin_s, dtype=np.float64), np.asarray(until_s, dtype=np.float64)
    return pieces(begin, np.minimum(until, FAR_AHEAD_S), edges, before, after), float(until[-1])


def _per_second(begin_s: float, end_s: float) -> float:
    return 1.0 / (end_s - begin_s) if end_s > begin_s else 0.0


def _state(job: float) -> Array:
    state = np.zeros(ACTIVITIES)
    state[JOB] = state[TRAIN] = job
    return state


def _flat(watts: float) -> Load:
    return Load(watts, np.zeros(ACTIVITIES), np.zeros(0), np.zeros(0))
