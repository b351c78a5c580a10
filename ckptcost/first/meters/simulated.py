"""Meters without hardware: what drivers, counters and drives would say of a planned machine, ticks,
wraps, noise and faults included.

They are the demo, the fixture and the accuracy test in one, because the exact joules of any window
are known (`Machine.exact_j`). Everything is a function of the plan and of the time asked for: the
same plan gives the same run, at any speed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ckptcost.first.core.channels import Channel
from ckptcost.first.errors import MeterLost
from ckptcost.first.meters.base import NOTHING, Absence, Channelwise, FoundMeters, Meter
from ckptcost.first.meters.simulated_machine import (
    BUSY,
    DIRTIED,
    JITTER,
    JOB,
    NOISE,
    STORED,
    TICKS,
    TRAIN,
    Array,
    Fault,
    Load,
    Machine,
    MachinePlan,
    chance,
)

LOOK_S = 0.025
AVERAGING_S = 1.0
RESOLUTION = 0.001
"""mJ and mW: everything is computed in thousandths and rounded there"""
_MIG = "MIG: the whole card's value, for all instances together"


def _base_and_weights_w(loads: Sequence[Load]) -> tuple[Array, Array]:
    return np.array([load.base_w for load in loads]), np.array([load.weights_w for load in loads])


class Gpus:
    """Channels and values of all cards; `values` is a pure function of the plan's time, its last
    answer kept."""

    def __init__(self, machine: Machine) -> None:
        self.machine, plan = machine, machine.plan
        self._module = plan.gpu_kind == "superchip"
        count = range(plan.gpus)
        loads = [machine.loads[f"module:{i}" if self._module else f"gpu:{i}"] for i in count]
        memory = [machine.loads[f"gpu:{i}.memory"] for i in count]
        self._base_w, self._weights_w = _base_and_weights_w(loads)
        self._dip_w = np.array([load.dips_w[0] for load in loads])
        self._phase_s = np.array([load.phases_s[0] for load in loads])
        self._memory_base_w, self._memory_weights_w = _base_and_weights_w(memory)
        self._dipped_s = machine.wave.area(self._phase_s)
        self._tick_phase_s = np.array(
            [plan.gpu_tick_s * chance(plan.seed, TICKS, i) for i in count]
        )
        self._kinds = self._card_channels()
        self.channels = tuple(
            replace(channel, domain=channel.domain.format(i))
            for i in count
            for _, channel in self._kinds
        )
        self._ticks = np.full(plan.gpus, np.nan)
        self._values: list[float] = []

    def _card_channels(self) -> list[tuple[str, Channel]]:
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


RAPL_UNIT_J = 61.035e-6
"""2^-14 J as the kernel rounds it"""
RAPL_COUNTS = 2.0**32
RAPL_TICK_S = 0.001
SECTOR_BYTES, KIB = 512.0, 1024.0
_SETTLED_DIRTY_BYTES = 6.0 * 1024 * KIB
"""what other writers keep dirty at any time"""
_WHOLE = 1e-3
"""added before rounding down: a save that is over has all its bytes in spite of rounding"""


@dataclass(slots=True)
class Origin:
    """When the plan's second 0 is; the first meter that is read decides if nobody did."""

    ns: int | None = None

    def seconds(self, t_ns: int) -> float:
        if self.ns is None:
            self.ns = t_ns
        return (t_ns - self.ns) * 1e-9


class SimulatedMeter(Channelwise, ABC):
    """What all of them share: the clock and the faults. `values` is a pure function of the plan's
    time."""

    def __init__(
        self,
        name: str,
        channels: Sequence[Channel],
        machine: Machine,
        origin: Origin,
        least_s: float = 0.0,
    ) -> None:
        facts = {"driver": "none: simulated", "plan": f"seed {machine.plan.seed}"}
        super().__init__(name, tuple(channels), least_s, simulated=True, facts=facts)
        self.machine, self.origin = machine, origin
        self._gone = [
            fault for fault in machine.plan.faults if fault.kind == "gone" and fault.what == name
        ]
        self._faults = [
            (fault, slots)
            for fault in machine.plan.faults
            if fault.kind != "gone" and (slots := self._slots(fault))
        ]
        self._restarted: set[Fault] = set()

    def _slots(self, fault: Fault) -> list[int]:
        inner = f"{fault.what}."
        slots = [
            i
            for i, c in enumerate(self.channels)
            if c.domain == fault.what or c.domain.startswith(inner)
        ]
        return [i for i in slots if self.channels[i].is_counter] if fault.kind == "reset" else slots

    @abstractmethod
    def values(self, t_s: float) -> list[float]:
        """What every channel shows at a second of the plan, faults apart."""

    def read(self, t_ns: int) -> list[float]:
        t_s = self.origin.seconds(t_ns)
        for fault in self._gone:
            if fault.from_s <= t_s < fault.to_s:
                raise MeterLost(
                    f"{self.name} is gone from second {fault.from_s:g} of the plan",
                    "it is planned so",
                )
        values = self.values(t_s)
        return self._apply_faults(t_s, values) if self._faults else values

    def _apply_faults(self, t_s: float, values: list[float]) -> list[float]:
        values = list(values)
        for fault, slots in self._faults:
            if fault.from_s <= t_s < fault.to_s:
                self._apply_fault(fault, slots, values)
            elif fault.kind == "lost" and t_s >= fault.to_s:
                self.note_answer(fault, "planned: it answers again", fault.what)
        return values

    def _apply_fault(self, fault: Fault, slots: Sequence[int], values: list[float]) -> None:
        if fault.kind == "reset":
            before = self.values(fault.from_s)
            for i in slots:
                values[i] -= before[i]
                if values[i] < 0.0:  # it wrapped since
                    values[i] += self.channels[i].wraps_at or 0.0
            if fault not in self._restarted:
                self._restarted.add(fault)
                self.tell("restarted", fault.what, "the counter began again at 0")
            return
        held = self.values(fault.from_s) if fault.kind == "stuck" else None
        for i in slots:
            values[i] = NOTHING if held is None else held[i]
        if fault.kind == "lost":
            self.note_missing(fault, "planned: it does not answer", fault.what)


class SimulatedNvml(SimulatedMeter):
    """NVML-like: see `Gpus` for what it shows when."""

    def __init__(self, machine: Machine, origin: Origin) -> None:
        self._gpus = Gpus(machine)
        super().__init__("simulated-nvml", self._gpus.channels, machine, origin)

    def values(self, t_s: float) -> list[float]:
        return self._gpus.values(t_s)


class SimulatedRapl(SimulatedMeter):
    """RAPL-like: packages and their memory, renewed every millisecond, counting to 2^32 units."""

    def __init__(self, machine: Machine, origin: Origin) -> None:
        plan = machine.plan
        about = Channel(
            "",
            "energy_j",
            "simulated RAPL energy_uj",
            wraps_at=RAPL_COUNTS * RAPL_UNIT_J,
            resolution=RAPL_UNIT_J,
            tick_s=RAPL_TICK_S,
        )
        domains = [f"{kind}:{i}" for i in range(plan.packages) for kind in ("cpu", "dram")]
        scopes = {"cpu": "package", "dram": "dram"}
        super().__init__(
            "simulated-rapl",
            [replace(about, domain=d, scope=scopes[d.split(":")[0]]) for d in domains],
            machine,
            origin,
        )
        loads = [machine.loads[domain] for domain in domains]
        self._base_w, self._weights_w = _base_and_weights_w(loads)

    def values(self, t_s: float) -> list[float]:
        tick_s = math.floor(t_s / RAPL_TICK_S) * RAPL_TICK_S
        areas = self.machine.timeline.areas(np.array([tick_s]))[0]
        counted = (
            self.machine.plan.cpu_counter_at_j + self._base_w * tick_s + self._weights_w @ areas
        )
        values: list[float] = (
            np.mod(np.floor(counted / RAPL_UNIT_J), RAPL_COUNTS) * RAPL_UNIT_J
        ).tolist()
        return values


class SimulatedBlock(SimulatedMeter):
    """Drives: a save's bytes lie on all of them in equal shares."""

    def __init__(self, machine: Machine, origin: Origin) -> None:
        about = Channel(
            "", "written_bytes", "simulated diskstats", "disk", device="simulated drive"
        )
        channels: list[Channel] = []
        for i in range(machine.plan.disks):
            disk = replace(about, domain=f"disk:nvme{i}n1")
            channels += [
                replace(disk, resolution=SECTOR_BYTES),
                replace(disk, quantity="writes", resolution=1.0),
                replace(disk, quantity="flushes", resolution=1.0),
                replace(disk, quantity="busy_s", resolution=0.001, wraps_at=2.0**32 / 1000.0),
                replace(disk, quantity="queue_s", resolution=0.001, wraps_at=2.0**32 / 1000.0),
                replace(disk, quantity="in_flight", resolution=1.0),
            ]
        super().__init__("simulated-block", channels, machine, origin)

    def values(self, t_s: float) -> list[float]:
        plan, at = self.machine.plan, np.array([t_s])
        areas = self.machine.timeline.areas(at)[0].tolist()
        busy = float(self.machine.timeline.rates(at)[0, BUSY])
        bytes_ = areas[STORED] * plan.checkpoint_bytes / plan.disks
        busy_ms = math.floor(areas[BUSY] * 1000.0 + _WHOLE)
        one = [
            math.floor(bytes_ / SECTOR_BYTES + _WHOLE) * SECTOR_BYTES,
            float(math.floor(bytes_ / plan.write_size_bytes + _WHOLE)),
            0.0 if plan.storage == "buffered" else float(math.floor(areas[STORED] + 1e-9)),
            busy_ms / 1000.0,
            math.floor(areas[BUSY] * plan.queue_depth * 1000.0 + _WHOLE) / 1000.0,
            plan.queue_depth if busy > 0.5 else 0.0,
        ]
        return one * plan.disks


class SimulatedWriteback(SimulatedMeter):
    """The page cache: what is dirty, and what of it is on its way."""

    def __init__(self, machine: Machine, origin: Origin) -> None:
        host = Channel(
            "host", "dirty_bytes", "simulated meminfo Dirty", "host", role="detail", resolution=KIB
        )
        channels = [
            host,
            replace(host, quantity="writeback_bytes", source="simulated meminfo Writeback"),
        ]
        super().__init__("simulated-writeback", channels, machine, origin)

    def values(self, t_s: float) -> list[float]:
        plan, at = self.machine.plan, np.array([t_s])
        areas = self.machine.timeline.areas(at)[0]
        busy = float(self.machine.timeline.rates(at)[0, BUSY]) > 0.5
        owed = (
            0.0
            if plan.storage == "direct"
            else max(float(areas[DIRTIED] - areas[STORED]), 0.0) * plan.checkpoint_bytes
        )
        under_way = (
            min(owed, plan.queue_depth * plan.write_size_bytes * plan.disks) if busy else 0.0
        )
        dirty = math.floor((owed - under_way) / KIB + _WHOLE) * KIB + _SETTLED_DIRTY_BYTES
        return [dirty, math.floor(under_way / KIB + _WHOLE) * KIB]


class SimulatedProcess(SimulatedMeter):
    """The job's own count: bytes when they are made dirty, or written past the cache."""

    def __init__(self, machine: Machine, origin: Origin) -> None:
        job = Channel(
            "process:4242",
            "written_bytes",
            "simulated /proc/4242/io write_bytes",
            "process",
            role="detail",
            resolution=4096.0,
        )
        super().__init__(
            "simulated-process", [job, replace(job, quantity="cancelled_bytes")], machine, origin
        )

    def values(self, t_s: float) -> list[float]:
        saves = float(self.machine.timeline.areas(np.array([t_s]))[0, DIRTIED])
        return [
            math.floor(saves * self.machine.plan.checkpoint_bytes / 4096.0 + _WHOLE) * 4096.0,
            0.0,
        ]


class SimulatedNode(SimulatedMeter):
    """A BMC: once a second the mean of the second before, in whole watts, with noise."""

    def __init__(self, machine: Machine, origin: Origin) -> None:
        node = Channel(
            "node",
            "power_w",
            "simulated BMC",
            scope="node",
            role="whole",
            resolution=1.0,
            tick_s=1.0,
            averaging_s=1.0,
            note="alternating current, losses of the supplies included",
        )
        super().__init__("simulated-node", [node], machine, origin, least_s=1.0)
        self._second, self._watts = -math.inf, NOTHING

    def values(self, t_s: float) -> list[float]:
        plan, second = self.machine.plan, math.floor(t_s)
        if second != self._second:
            noise_w = plan.node_noise_w * (2.0 * chance(plan.seed, NOISE, second) - 1.0)
            self._second, self._watts = (
                second,
                float(round(self.machine.exact_j("node", second - 1.0, float(second)) + noise_w)),
            )
        return [self._watts]


def find(plan: MachinePlan | None = None, *, origin_ns: int | None = None) -> FoundMeters:
    """The meters of a planned machine, and what it lacks. Second 0 of the plan is at `origin_ns`,
    or else at the first reading."""
    plan = plan or MachinePlan()
    machine, origin = Machine(plan), Origin(origin_ns)
    meters: list[Meter] = []
    if plan.gpus:
        meters.append(SimulatedNvml(machine, origin))
    if plan.packages:
        meters.append(SimulatedRapl(machine, origin))
    if plan.disks:
        meters.append(SimulatedBlock(machine, origin))
    meters += [
        SimulatedWriteback(machine, origin),
        SimulatedProcess(machine, origin),
        SimulatedNode(machine, origin),
    ]
    return FoundMeters(tuple(meters), tuple(_absent(plan)))


def _absent(plan: MachinePlan) -> list[Absence]:
    where = "simulated-nvml"
    lacks = [
        (plan.gpus, where, "the plan has no GPU", "plan one: gpus=8", "gpu"),
        (plan.packages, "simulated-rapl", "the plan has no package", "plan one: packages=2", "cpu"),
        (plan.disks, "simulated-block", "the plan has no drive", "plan one: disks=4", "storage"),
    ]
    found = [Absence(*said) for there, *said in lacks if not there]
    of_cards = []
    if plan.gpu_kind == "superchip":
        of_cards.append(("", "planned as a superchip: only its module answers", "gpu_kind='card'"))
    else:
        if plan.gpu_kind == "mig":
            no_use = "planned with MIG: no utilisation of the card"
            of_cards.append((" utilisation", no_use, "gpu_kind='card'"))
        if not plan.energy_counter:
            before = "planned without, as before Volta"
            of_cards.append((" energy counter", before, "energy_counter=True"))
        if not plan.memory_scope:
            of_cards.append((" memory power", "planned as not supported", "memory_scope=True"))
    return found + [
        Absence(f"{where} gpu:{i}{what}", reason, remedy, "gpu")
        for i in range(plan.gpus)
        for what, reason, remedy in of_cards
    ]
