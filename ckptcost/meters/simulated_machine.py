"""A plan as power: which activity moves which domain, and the exact joules of every domain in any
window."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from ckptcost.errors import InputError
from ckptcost.meters.simulated_plan import PHASES, SPREAD, Plan, chance
from ckptcost.meters.simulated_power import (
    FAR_AHEAD_S,
    Array,
    Edges,
    Load,
    Pieces,
    Timeline,
    Wave,
    pieces,
)

JOB, TRAIN, SNAPSHOT, BACKGROUND, SAVING, DIRTIED, BUSY, STORED = range(8)
"""activities: all are 0 or 1 but for DIRTIED and STORED, whose areas count saves"""
ACTIVITIES = 8
_AT_FIRST = 32
"""saves that are laid out together; later ones in batches that double. A save takes 6 kB, a day of
one a minute 9 MB"""


class Machine:
    """The truth behind the simulated meters. Seconds are the plan's; a window may lie anywhere."""

    def __init__(self, plan: Plan) -> None:
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

        >>> from ckptcost.meters.simulated_plan import SQUARE
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

    def _stretches(self) -> Iterator[tuple[Pieces, float]]:
        """The timeline as far as somebody looks: the way to the first save, the saves, the end of
        the job."""
        p, total = self.plan, self.plan.count()
        job = Edges(np.zeros(2), np.array([JOB, TRAIN]), np.ones(2), np.full(2, p.ramp_s))
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

    def _edges(self, saves: list[int]) -> Edges:
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
        return Edges(np.array(at), columns, np.array(change), np.where(steps, 0.0, p.ramp_s))


def _stretch(
    begin_s: ArrayLike, until_s: ArrayLike, edges: Edges, before: Array, after: Array
) -> tuple[Pieces, float]:
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
