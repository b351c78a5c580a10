"""How often to save on one tier: the curve, an interval on trial that moves along it, and what is
lost to what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widget import Widget

from ckptcost.first.errors import CkptcostError
from ckptcost.first.present.chart import Chart
from ckptcost.first.present.grid import Grid
from ckptcost.first.tui.commands import Command, bindings
from ckptcost.first.tui.desk import Desk, Stamp
from ckptcost.first.tui.screens import interval_view as interval
from ckptcost.first.tui.screens.base import Stopped
from ckptcost.first.tui.screens.by_objective import ByObjectiveScreen
from ckptcost.first.tui.screens.solve import Solve
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.plot import Plot
from ckptcost.first.tui.widgets.rows import Rows


class IntervalScreen(ByObjectiveScreen[interval.Studied]):
    """The optimum is looked for in the background, once for each objective; moving the trial is a
    millisecond and is not."""

    MODE = "interval"
    TITLE_TEXT = "Interval"
    ABOUT = (
        "How often to save on the chosen tier. The curve is the run at every interval: goodput, or"
        " with m the energy, dollars or carbon that checkpoints and failures add. best is the exact"
        " optimum, the shade is where the cost stays within 1 % of the least, now is the interval"
        " in force, trial is yours to move (left, right, a click, Enter on a row); a puts it into"
        " the scenario. Young's and Daly's rules stand beside the exact answer, each with what its"
        " interval costs over the best one: green up to 1 %, amber up to 5 %, red beyond. kgCO2e"
        " are location-based. over best is what an interval costs over the least there is. w asks"
        " backwards: what a target takes."
    )
    KEYS_HERE: ClassVar[tuple[Command, ...]] = (
        Command(
            "interval.shorter", "left", "shorter", "A shorter interval on trial", "move(-1)", 1
        ),
        Command("interval.longer", "right", "longer", "A longer interval on trial", "move(1)", 2),
        Command("interval.best", "o", "best", "Put the best interval on trial", "best", 3),
        Command("interval.apply", "a", "apply", "Put the trial into the scenario", "apply", 4),
        Command(
            "interval.objective", "m", "measure", "Time, energy, money or carbon", "objective", 5
        ),
        Command("interval.tier", "t", "tier", "The next tier", "tier", 6),
        Command("interval.solve", "w", "what if", "Ask backwards: what a target takes", "solve", 7),
        Command("interval.now", "n", "now", "Put the interval in force on trial", "now", 8),
        Command(
            "interval.much_shorter",
            "shift+left",
            "much shorter",
            "A much shorter interval on trial",
            "move(-10)",
        ),
        Command(
            "interval.much_longer",
            "shift+right",
            "much longer",
            "A much longer interval on trial",
            "move(10)",
        ),
        Command("interval.sort", "s", "sort", "Sort the table by the next column", "sort"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS_HERE)
    AUTO_FOCUS = "#curve"
    DEFAULT_CSS = """
    IntervalScreen #curve { height: 1fr; min-height: 6; }
    IntervalScreen #tables { height: auto; max-height: 50%; }
    IntervalScreen #points { width: 3fr; height: auto; }
    IntervalScreen #lost { width: 2fr; height: auto; }
    IntervalScreen.-none #tables { display: none; }
    IntervalScreen #notes { height: auto; max-height: 5; padding: 0 1; }
    IntervalScreen.-short #notes { max-height: 2; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._trial = ""

    def body(self) -> Iterable[Widget]:
        yield Plot(id="curve", classes="panel")
        with Horizontal(id="tables"):
            yield Rows(id="points", classes="panel")
            yield Rows(id="lost", classes="panel")
        yield Note(id="notes")

    def find(self, desk: Desk, objective: str, stopped: Stopped) -> interval.Studied:
        return interval.studied(desk, objective)

    def same(self, desk: Desk, other: Desk | None, stamp: Stamp) -> bool:
        return interval.same_study(desk, other, stamp)

    def forget(self) -> None:
        self._trial = ""

    def command_line(self) -> str:
        one = self.found
        return (
            interval.command(one, self._trial)
            if one is not None
            else self.desk.command("optimize", "--objective", self.objective)
        )

    def table(self) -> Grid | None:
        lost = self.query_one("#lost", Rows)
        return lost.grid if lost.has_focus else self.query_one("#points", Rows).grid

    def exported(self) -> Any:
        return self.found.study if self.found is not None else None

    def refused(self, text: str) -> None:
        self.show_in("curve", Chart(f"Best for {self.objective}", empty=text))
        self.add_class("-none")
        for name in ("points", "lost"):
            self.show_in(name, Grid(empty="nothing to show"))
        self.query_one("#notes", Note).show(
            ["t takes the next tier, m another measure, 1 goes back to the inputs."]
        )
        self.say("No best interval here", "bad")

    def draw(self) -> None:
        one = self.found
        if one is None:
            return
        self._trial = self._trial or interval.trial_of(one)
        trial = interval.point_at(one, self._trial)
        self.remove_class("-none")
        self.show_in("curve", interval.chart(one, trial)._replace(y_label=""))
        self.show_in("points", interval.points(one, trial))
        self.show_in("lost", interval.parts(one, trial))
        self.query_one("#notes", Note).show(interval.notes(one))
        self.say(interval.trial_line(one, trial))

    # what can be done

    def on_plot_picked(self, event: Plot.Picked) -> None:
        if (one := self.found) is not None:
            self._try(interval.picked(one, self._trial, event.x))

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        if event.rows.id == "points" and self.found is not None:
            self._try(interval.interval_in(event.key))

    def _try(self, trial: str) -> None:
        self._trial = trial
        self.draw()

    def action_move(self, steps: int) -> None:
        if (one := self.found) is not None:
            before = self._trial
            self._try(interval.moved(one, before, steps))
            if self._trial == before:
                self.say(interval.why_stayed(one, before, steps), "muted")

    def action_best(self) -> None:
        if (one := self.found) is not None:
            self._try(interval.text_of(one.best.interval_s))

    def action_now(self) -> None:
        if (one := self.found) is not None:
            self._try(interval.trial_of(one))

    def action_apply(self) -> None:
        if (one := self.found) is None:
            return
        desk = interval.applied(one, self.desk, self._trial)
        if desk is self.desk:
            self.say(f"Every {self._trial} is in force already; left and right move the trial.")
            return
        self.change(desk)
        self.notify(f"policy.interval = {desk.edits['policy.interval']}", timeout=3, markup=False)

    def action_tier(self) -> None:
        try:
            desk = interval.on_next_tier(self.desk)
            if desk is self.desk:
                self.say("There is only one tier; 2 adds others.")
            else:
                self.change(desk)
        except CkptcostError as error:
            self.say(str(error), "bad")

    def action_solve(self) -> None:
        self.app.push_screen(Solve(self.desk))

    def action_sort(self) -> None:
        self.query_one("#points", Rows).sort_next()
