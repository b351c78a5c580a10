"""What NVML would show of planned GPUs: a counter that moves in ticks, power that looks a quarter
of the time, and a 1 s mean.

All cards are computed together, and only when one of them has ticked since the last reading.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ckptcost.core.channels import Channel
from ckptcost.meters.simulated_machine import JOB, TRAIN, Machine
from ckptcost.meters.simulated_plan import JITTER, TICKS, chance
from ckptcost.meters.simulated_power import Array

LOOK_S = 0.025
AVERAGING_S = 1.0
RESOLUTION = 0.001
"""mJ and mW: everything is computed in thousandths and rounded there"""
_MIG = "MIG: the whole card's value, for all instances together"


class Gpus:
    """Channels and values of all cards; `values` is a pure function of the plan's time, its last
    answer kept."""

    def __init__(self, machine: Machine) -> None:
        self.machine, plan = machine, machine.plan
        self._module = plan.gpu_kind == "superchip"
        count = range(plan.gpus)
        loads = [machine.loads[f"module:{i}" if self._module else f"gpu:{i}"] for i in count]
        memory = [machine.loads[f"gpu:{i}.memory"] for i in count]
        self._base_w = np.array([load.base_w for load in loads])
        self._weights_w = np.array([load.weights_w for load in loads])
        self._dip_w = np.array([load.dips_w[0] for load in loads])
        self._phase_s = np.array([load.phases_s[0] for load in loads])
        self._memory_base_w = np.array([load.base_w for load in memory])
        self._memory_weights_w = np.array([load.weights_w for load in memory])
        self._dipped_s = machine.wave.area(self._phase_s)
        self._tick_phase_s = np.array(
            [plan.gpu_tick_s * chance(plan.seed, TICKS, i) for i in count]
        )
        self._kinds = self._shown()
        self.channels = tuple(
            replace(channel, domain=channel.domain.format(i))
            for i in count
            for _, channel in self._kinds
        )
        self._ticks = np.full(plan.gpus, np.nan)
        self._values: list[float] = []

    def _shown(self) -> list[tuple[str, Channel]]:
        """What each card shows, in the order of its channels."""
        plan, mig = self.machine.plan, self.machine.plan.gpu_kind == "mig"
        gpu = Channel(
            "gpu:{}",
            "energy_j",
            "simulated NVML total energy consumption",
            scope="gpu",
            device="simulated GPU",
            resolution=RESOLUTION,
            tick_s=plan.gpu_tick_s,
            note=_MIG if mig else "",
        )
        if self._module:
            inside = "one sensor for GPU, CPU and memory"
            gpu = replace(
                gpu,
                domain="module:{}",
                scope="module",
                covers=("cpu", "dram"),
                device="simulated superchip",
                note=inside,
            )
        now = replace(
            gpu,
            quantity="power_w",
            source="simulated NVML field 186 (instant power)",
            averaging_s=LOOK_S,
            looks=min(LOOK_S / plan.gpu_tick_s, 1.0),
        )
        mean = replace(
            gpu,
            quantity="power_w",
            domain=f"{gpu.domain}.average",
            source="simulated NVML field 185 (average power)",
            role="detail",
            averaging_s=AVERAGING_S,
        )
        shown = [("energy", gpu)] if plan.energy_counter else []
        shown += [("now", now), ("mean", mean)]
        if self._module:
            return shown
        if plan.memory_scope:
            shown.append(
                (
                    "memory",
                    replace(
                        mean,
                        domain="gpu:{}.memory",
                        source=f"{mean.source}, scope memory",
                        scope="memory",
                    ),
                )
            )
        if not mig:
            busy = replace(
                gpu, quantity="utilisation", source="simulated NVML utilisation", resolution=0.01
            )
            shown.append(("utilisation", replace(busy, tick_s=None)))
        used = replace(
            gpu,
            quantity="memory_used_bytes",
            source="simulated NVML memory",
            resolution=1.0,
            tick_s=None,
        )
        return [*shown, ("used", used)]

    def values(self, t_s: float) -> list[float]:
        ticks = self._latest(t_s)
        if not (ticks == self._ticks).all():
            self._ticks = ticks
            self._values = self._at(ticks)
        return self._values.copy()

    def ticked_s(self, t_s: float) -> Array:
        """When each card's counter was renewed last, at or before a time."""
        return self._moment(self._latest(t_s))

    def _moment(self, ticks: Array) -> Array:
        plan = self.machine.plan
        at: Array = ticks * plan.gpu_tick_s + self._tick_phase_s
        if plan.gpu_jitter_s:
            late = [chance(plan.seed, JITTER, i, int(n)) for i, n in enumerate(ticks.tolist())]
            at = at + plan.gpu_jitter_s * np.array(late)
        return at

    def _latest(self, t_s: float) -> Array:
        ticks = np.floor((t_s - self._tick_phase_s) * (1.0 / self.machine.plan.gpu_tick_s))
        if self.machine.plan.gpu_jitter_s:
            ticks = ticks - (self._moment(ticks) > t_s)
        return ticks

    def _at(self, ticks: Array) -> list[float]:
        """Every number of every card at its tick."""
        plan, machine, count = self.machine.plan, self.machine, len(ticks)
        at = self._moment(ticks)
        times = np.concatenate([at, at - LOOK_S, at - AVERAGING_S]).reshape(3, count)
        areas = machine.timeline.areas(times.ravel()).reshape(3, count, -1)
        dips = machine.wave.area(areas[:, :, TRAIN] + self._phase_s) - self._dipped_s
        joules = (
            self._base_w * times
            + np.einsum("sgc,gc->sg", areas, self._weights_w)
            - self._dip_w * dips
        )
        shown = np.empty((count, len(self._kinds)))
        for slot, (kind, _) in enumerate(self._kinds):
            if kind == "energy":
                shown[:, slot] = np.floor((joules[0] + plan.gpu_counter_at_j) * 1000.0)
            elif kind == "now":
                shown[:, slot] = (joules[0] - joules[1]) * (1000.0 / LOOK_S)
            elif kind == "mean":
                shown[:, slot] = (joules[0] - joules[2]) * (1000.0 / AVERAGING_S)
            elif kind == "memory":
                grown = np.einsum("gc,gc->g", areas[0] - areas[2], self._memory_weights_w)
                shown[:, slot] = (self._memory_base_w + grown / AVERAGING_S) * 1000.0
            elif kind == "utilisation":
                # a collective that waits for the one that saves spins: busy, and nothing done; in
                # whole per cent
                shown[:, slot] = (
                    np.rint((areas[0, :, JOB] - areas[2, :, JOB]) * (100.0 / AVERAGING_S)) * 10.0
                )
            else:
                shown[:, slot] = (areas[0, :, JOB] > 0) * (plan.memory_used_bytes * 1000.0)
        values: list[float] = (np.rint(shown) / 1000.0).ravel().tolist()
        return values
