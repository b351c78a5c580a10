"""Screens that look at the desk once for each objective, in the background, and keep what was
found until the scenario is another."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

from ckptcost.first.core.regret import OBJECTIVES
from ckptcost.first.errors import InputError
from ckptcost.first.tui.desk import Desk, Stamp
from ckptcost.first.tui.screens.base import ModeScreen, Stopped

T = TypeVar("T")


class ByObjectiveScreen(ModeScreen, Generic[T]):
    """Subclasses give `find`, `draw` and `refused`."""

    def __init__(self) -> None:
        super().__init__()
        self.objective = ""
        self._kept: dict[str, T] = {}
        self._kept_for: Desk | None = None
        self._stamp: Stamp = ()

    @abstractmethod
    def find(self, desk: Desk, objective: str, stopped: Stopped) -> T:
        """In the background."""

    def draw(self) -> None:
        """What was found is there."""

    def refused(self, text: str) -> None:
        """Why nothing was found."""

    def forget(self) -> None:
        """Another scenario: what was found is of the past."""

    def same(self, desk: Desk, other: Desk | None, stamp: Stamp) -> bool:
        return desk.same_figures(other, stamp)

    @property
    def found(self) -> T | None:
        return self._kept.get(self.objective)

    def on_desk(self) -> None:
        desk = self.desk
        if not self.same(desk, self._kept_for, self._stamp):
            self._kept.clear()
            self._kept_for, self._stamp = desk, desk.stamp()
            self.forget()
        self.objective = self.objective or objective_of(desk)
        self._look()

    def _look(self) -> None:
        """Not in the loop, and not twice."""
        if self.found is not None:
            self.stop_background("find")
            self.draw()
            return
        desk, objective = self.desk, self.objective

        def have(found: T) -> None:
            self._kept[objective] = found
            if objective == self.objective:
                self.draw()

        self.background(
            "find", lambda stopped: self.find(desk, objective, stopped), have, self.refused
        )

    def action_objective(self) -> None:
        self.objective = next_objective(self.objective or OBJECTIVES[-1])
        self._look()


def next_objective(objective: str) -> str:
    return OBJECTIVES[(OBJECTIVES.index(objective) + 1) % len(OBJECTIVES)]


def objective_of(desk: Desk) -> str:
    """What the scenario wants least of, which is what every screen begins with."""
    try:
        return desk.resolved().scenario.policy.objective
    except InputError:
        return OBJECTIVES[0]
