"""A simulated machine, at the pace of a real clock or faster: for a demonstration, and for a look
at hundreds of GPUs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ckptcost.core.attribution import Baseline
from ckptcost.core.channels import Mark
from ckptcost.meters import simulated
from ckptcost.meters.base import Meter
from ckptcost.meters.simulated_machine import Machine, Plan, marks
from ckptcost.present.amounts import count
from ckptcost.runs.baselines import Idle
from ckptcost.runs.clocks import S, VirtualClock
from ckptcost.runs.live import Tee
from ckptcost.runs.recorder import Recorder
from ckptcost.runs.sinks import FileSink
from ckptcost.tui.desk import Desk
from ckptcost.tui.live.board import LiveBoard
from ckptcost.tui.live.curves import HOST_KINDS
from ckptcost.tui.live.picture import Status
from ckptcost.tui.live.reading import Live
from ckptcost.tui.live.source import Actions, Kind

HISTORY_S = 150.0
_MOST_S = 0.1
"""of work in one turn: a simulation that cannot keep up with its speed is slower"""
_STEP_NS = S


class Simulated(Live):
    """Virtual time follows the clock; the readings before `history_s` are made at once."""

    kind: Kind = "simulated"

    def __init__(
        self,
        desk: Desk,
        plan: Plan | None = None,
        *,
        speed: float = 1.0,
        history_s: float = HISTORY_S,
        threaded: bool = True,
        clock: Callable[[], float] | None = None,
        directory: Path | None = None,
    ) -> None:
        """`directory`: where the run is kept; without it nowhere."""
        self._plan = plan or Plan()
        found = simulated.find(self._plan, origin_ns=0)
        board = LiveBoard(absences=found.absences, idle=idle_of(self._plan, found.meters))
        super().__init__(desk, board, threaded=threaded, clock=clock)
        self._virtual = VirtualClock(0)
        self.folder = directory
        files = None if directory is None else FileSink(directory)
        self._recorder = Recorder(
            found.meters, Tee(self._items, files), self._virtual, host="simulated"
        )
        self._marks = self._planned()
        self._next = next(self._marks, None)
        self.speed, self._history_s = speed, history_s
        self._since: tuple[float, float] = (0.0, 0.0)
        """real and virtual seconds of the same instant"""

    def _planned(self) -> Iterator[Mark]:
        """The job's marks, as far as somebody looks."""
        plan = self._plan
        from_s, step_s, until_s = (
            0.0,
            20 * plan.interval_s,
            plan.first_s + plan.count() * plan.interval_s,
        )
        while from_s < until_s:
            yield from sorted(marks(plan, from_s, from_s + step_s), key=lambda mark: mark.t_s)
            from_s += step_s

    @property
    def title(self) -> str:
        return f"{count(float(self._plan.gpus))} simulated GPUs"

    @property
    def actions(self) -> Actions:
        return Actions(stop=not self._over, pause=not self._over, speed=not self._over)

    def _begin(self) -> None:
        self._recorder.begin()
        self._advance(round(self._history_s * S), float("inf"))
        self._since = (self._clock(), self._virtual.now_ns() / S)

    def _turn(self, now_s: float) -> None:
        if self.paused or self._over:
            return
        real_s, virtual_s = self._since
        target_ns = round((virtual_s + (now_s - real_s) * self.speed) * S)
        if not self._advance(target_ns, _MOST_S if self._threaded else float("inf")):
            self._since = (now_s, self._virtual.now_ns() / S)

    def _advance(self, to_ns: int, most_s: float) -> bool:
        """False: time for it ran out."""
        until_s = time.monotonic() + most_s
        while self._virtual.now_ns() < to_ns:
            step_ns = min(to_ns, self._virtual.now_ns() + _STEP_NS)
            if self._next is not None and round(self._next.t_s * S) <= step_ns:
                mark, at_ns = self._next, round(self._next.t_s * S)
                self._recorder.run_until(at_ns)
                self._recorder.mark(
                    mark.name, mark.window, by=mark.by, rank=mark.rank, t_ns=at_ns, **mark.detail
                )
                self._recorder.step()
                self._next = next(self._marks, None)
            else:
                self._recorder.run_until(step_ns)
            if time.monotonic() > until_s:
                return False
        return True

    def set_speed(self, speed: float) -> None:
        self._since = (self._clock(), self._virtual.now_ns() / S)
        self.speed = speed

    def pause(self, paused: bool) -> None:
        self._since = (self._clock(), self._virtual.now_ns() / S)
        self.paused = paused

    def _end(self, within_s: float | None) -> str:
        self._ending.set()
        for thread in self._threads:
            thread.join(0.5)
        self._recorder.stop()
        return ""

    def _status(self) -> Status:
        return Status(
            self.kind,
            self.title,
            state="ended" if self._over else None,
            speed=self.speed,
            paused=self.paused,
            own_cpu=self._own_cpu(),
            troubles=tuple(self._troubles()),
        )


def idle_of(plan: Plan, meters: Sequence[Meter]) -> Idle | None:
    """What its parts take before the job begins, as a baseline of it would have it."""
    if plan.start_s <= 0:
        return None
    machine = Machine(plan)
    watts = {
        domain: machine.exact_j(domain, 0.0, plan.start_s) / plan.start_s
        for domain in dict.fromkeys(c.domain for meter in meters for c in meter.channels)
        if domain in machine.loads and domain.split(":")[0] in ("gpu", *HOST_KINDS)
    }
    known = {domain: Baseline(power_w, power_w, power_w) for domain, power_w in watts.items()}
    return Idle("simulated", "", plan.start_s, {}, True, known)


def plan_of(gpus: int) -> Plan:
    """So many cards; a machine of more than one node's is for looking at, no machine that is
    sold."""
    return replace(Plan(), gpus=gpus)
