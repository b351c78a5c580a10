"""The modes: the screen of each is built when it is first gone to, and a run is handed from one to
another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, ClassVar

from textual.screen import Screen

from ckptcost.errors import CkptcostError
from ckptcost.tui.screens.base import ModeScreen
from ckptcost.tui.typing_ahead import TypingAhead

SCREENS = {
    "model": ("model", "ModelScreen"),
    "tiers": ("tiers", "TiersScreen"),
    "interval": ("interval", "IntervalScreen"),
    "live": ("live", "LiveScreen"),
    "probe": ("probe", "ProbeScreen"),
    "runs": ("runs", "RunsScreen"),
    "audit": ("audit", "AuditScreen"),
    "report": ("report", "ReportScreen"),
    "doctor": ("doctor", "DoctorScreen"),
}
"""by mode, the module of its screen and its class; a module is read when its mode is gone to, so
that the start is quick"""


def built(module: str, name: str) -> Screen[Any]:
    screen: ModeScreen = getattr(import_module(f"ckptcost.tui.screens.{module}"), name)()
    screen.coloured_by = screen.app.theme  # its style sheets are still to be read
    return screen


class Modes(TypingAhead):
    """Goes from mode to mode; what a screen can ask of it by name is in `ModeScreen.hand_over`."""

    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {
        mode: partial(built, *where) for mode, where in SCREENS.items()
    }
    to_live: tuple[str, str] | None = None
    """a run that another screen hands to the live one: "replay" or "follow", and its folder"""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[ModeScreen] = []
        """every screen that stands somewhere, whether it is seen or not"""
        self.started = False

    def action_go(self, mode: str) -> None:
        if mode != self.current_mode and not isinstance(self.screen, ModeScreen):
            return  # a dialog is answered first
        self.switch_mode(mode)

    def replay(self, run: str) -> None:
        self.to_live = ("replay", run)
        self.switch_mode("live")

    def follow(self, run: str) -> None:
        self.to_live = ("follow", run)
        self.switch_mode("live")

    def open_run(self, run: str) -> None:
        from ckptcost.tui.screens.run import RunScreen
        from ckptcost.tui.screens.runs_entries import source_at

        self._over_runs(lambda: RunScreen(source_at(run)))

    def calibrate(self, runs: Sequence[str]) -> None:
        from ckptcost.tui.screens.calibrate import CalibrateScreen
        from ckptcost.tui.screens.runs_entries import source_at

        self._over_runs(lambda: CalibrateScreen([source_at(run) for run in runs]))

    def _over_runs(self, opened: Callable[[], Screen[Any]]) -> None:
        """A screen that lies over the list of runs; one line where it cannot be opened."""
        self.switch_mode("runs")
        try:
            self.push_screen(opened())
        except (CkptcostError, OSError) as error:
            self.notify(str(error), severity="error", markup=False)
