"""Sources for the live screen whose time a test turns by hand: from live_told import Turned,
live_app, small."""

from __future__ import annotations

from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

from ckptcost.first.meters.simulated_machine import MachinePlan
from ckptcost.first.tui.app import CkptcostApp
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.live.picture import LiveStatus
from ckptcost.first.tui.live.simulated import Simulated
from ckptcost.first.tui.live.source import Actions
from ckptcost.first.tui.screens.live import LiveScreen

DESK = Desk(base="small-8b")
PLAN = MachinePlan(gpus=4, disks=1, first_s=8.0, interval_s=20.0)


class Turned(Simulated):
    """A simulated machine; `now_s` is its clock, and what a real recording would say besides can be
    put into its mouth."""

    def __init__(self, plan: MachinePlan = PLAN, history_s: float = 45.0, **said: Any) -> None:
        self.now_s = 0.0
        super().__init__(DESK, plan, history_s=history_s, threaded=False, clock=lambda: self.now_s)
        self.said = said
        self.folder: Path | None = said.get("folder")
        self.title = str(said.get("title", self.title))
        self.stopped: list[float | None] = []
        self.marked: list[str] = []
        self.pumps = 0

    @property
    def actions(self) -> Actions:
        return super().actions._replace(**self.said.get("actions", {}))

    def _own_cpu(self) -> float:
        """Not of this process, whose share is told once the test has taken two seconds."""
        return nan

    def pump(self, now_s: float | None = None) -> int:
        self.pumps += 1
        return super().pump(self.now_s)

    def mark(self) -> str:
        self.marked.append("")
        return "checkpoint by hand 1 begins; mark again when it is over"

    def stop(self, within_s: float | None = None) -> str:
        self.stopped.append(within_s)
        return super().stop(within_s) or str(self.said.get("left", ""))

    def busy(self) -> str:
        return str(self.said.get("busy", ""))

    def _status(self) -> LiveStatus:
        status = super()._status()
        return status._replace(
            output=tuple(self.said.get("output", ())),
            troubles=tuple(self.said.get("troubles", ())),
            about=str(self.said.get("about", "")),
            state=self.said.get("state", status.state),
            kind=self.said.get("kind", status.kind),
            unwritten=str(self.said.get("unwritten", "")),
            kill_in_s=float(self.said.get("kill_in_s", "nan")),
        )


def small(**more: Any) -> MachinePlan:
    return replace(PLAN, **more)


def live_app(source: Any = None, **more: Any) -> CkptcostApp:
    """The application on the live screen, which shows `source`."""

    class App(CkptcostApp):
        MODES = {**CkptcostApp.MODES, "live": lambda: LiveScreen(source)}  # noqa: RUF012

    return App(DESK, start="live", **more)
