"""A simulated machine, at the pace of a real clock or faster: for a demonstration, and for a look
at hundreds of GPUs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ckptcost.first.core.attribution import Baseline
from ckptcost.first.core.channels import Mark
from ckptcost.first.meters import simulated
from ckptcost.first.meters.base import Meter
from ckptcost.first.meters.simulated_machine import Machine, MachinePlan, marks
from ckptcost.first.present.amounts import count
from ckptcost.first.runs.baselines import Idle
from ckptcost.first.runs.clocks import S, VirtualClock
from ckptcost.first.runs.live import Tee
from ckptcost.first.runs.recorder import Recorder
from ckptcost.first.runs.sinks import FileSink
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.live.board import LiveBoard
from ckptcost.first.tui.live.curves import HOST_KINDS
from ckptcost.first.tui.live.reading import Played
from ckptcost.first.tui.live.source import Actions, Kind

HISTORY_S = 150.0


class Simulated(Played):
    """The readings before `history_s` are made at once."""

    kind: Kind = "simulated"

    def __init__(
        self,
        desk: Desk,
        plan: MachinePlan | None = None,
        *,
        history_s: float = HISTORY_S,
        threaded: bool = True,
        clock: Callable[[], float] | None = None,
        directory: Path | None = None,
    ) -> None:
        """`directory`: where the run is kept; without it nowhere."""
        self._plan = plan or MachinePlan()
        found = simulated.find(self._plan, origin_ns=0)
        board = LiveBoard(absences=found.absences, idle=idle_of(self._plan, found.meters))
        super().__init__(desk, board, threaded=threaded, clock=clock)
        self._virtual = VirtualClock(0)
        self.folder, self._history_s = directory, history_s
        sink = Tee(self._items, None if directory is None else FileSink(directory))
        self._recorder = Recorder(found.meters, sink, self._virtual, host="simulated")
        self.title = f"{count(float(self._plan.gpus))} simulated GPUs"
        self._marks = self._planned()
        self._next = next(self._marks, None)

    def _planned(self) -> Iterator[Mark]:
        """The job's marks, as far as somebody looks."""
        plan, from_s, step_s = self._plan, 0.0, 20 * self._plan.interval_s
        while from_s < plan.first_s + plan.count() * plan.interval_s:
            yield from sorted(marks(plan, from_s, from_s + step_s), key=lambda mark: mark.t_s)
            from_s += step_s

    @property
    def actions(self) -> Actions:
        return Actions(stop=not self.over, pause=not self.over, speed=not self.over)

    @property
    def position_s(self) -> float:
        return self._virtual.now_ns() / S

    def _begin(self) -> None:
        self._recorder.begin()
        self._play(self._history_s, float("inf"))
        self._since = (self._clock(), self.position_s)

    def _play(self, to_s: float, most_s: float) -> bool:
        until_s, to_ns = time.monotonic() + most_s, round(to_s * S)
        while self._virtual.now_ns() < to_ns:
            step_ns = min(to_ns, self._virtual.now_ns() + S)
            mark = self._next
            if mark is not None and (at_ns := round(mark.t_s * S)) <= step_ns:
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

    def _end(self, within_s: float | None) -> str:
        self._ending.set()
        for thread in self._threads:
            thread.join(0.5)
        self._recorder.stop()
        return ""


def idle_of(plan: MachinePlan, meters: Sequence[Meter]) -> Idle | None:
    """What its parts take before the job begins, as a baseline of it would have it."""
    if plan.start_s <= 0:
        return None
    machine = Machine(plan)
    domains = dict.fromkeys(c.domain for meter in meters for c in meter.channels)
    known = {}
    for domain in domains:
        if domain in machine.loads and domain.split(":")[0] in ("gpu", *HOST_KINDS):
            watts = machine.exact_j(domain, 0.0, plan.start_s) / plan.start_s
            known[domain] = Baseline(watts, watts, watts)
    return Idle("simulated", "", plan.start_s, {}, True, known)


def plan_of(gpus: int) -> MachinePlan:
    """So many cards; a machine of more than one node's is for looking at, no machine that is
    sold."""
    return replace(MachinePlan(), gpus=gpus)
