"""Taking the model's figures from recorded runs: what they give, whether the model then predicts
them, what changes, and writing it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from textual import on
from textual.binding import BindingType
from textual.containers import Container
from textual.widget import Widget
from textual.widgets import Input, Static

from ckptcost.first.errors import CkptcostError
from ckptcost.first.present.grid import Grid, Tone
from ckptcost.first.tui.commands import Command, bindings
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.modals.confirm import Confirm
from ckptcost.first.tui.run_reader import READER
from ckptcost.first.tui.screens import against, calibrate_fit
from ckptcost.first.tui.screens.base import panel
from ckptcost.first.tui.screens.calibrate_fit import Calibrated, Written
from ckptcost.first.tui.screens.recorded_run import RunSource, reading_text, refusal
from ckptcost.first.tui.screens.tables import TablesScreen
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.rows import Rows


class CalibrateScreen(TablesScreen):
    """Laid over the list of runs. Nothing is written before `w`."""

    TITLE_TEXT = "Calibrate"
    ABOUT = (
        "What the marked runs give for the model: seconds = fixed + bytes/rate by least squares on"
        " durations, watts of GPUs and hosts in each state, with the interval that holds the truth"
        " 95 times in 100 and the number of checkpoints it rests on. Figures of the tier go into"
        " its file, all of them, exactly as `ckptcost calibrate --as NAME` writes it. Watts and"
        " what asynchronous saves cost are ticked one by one and go onto the desk as changes. What"
        " no run tells stays as the model has it."
    )
    KEYS_HERE: ClassVar[tuple[Command, ...]] = (
        Command("calibrate.tick", "space", "tick", "Take this figure, or leave it", "tick", 1),
        Command(
            "calibrate.all", "a", "all", "Take all figures that can be ticked, or none", "all", 2
        ),
        Command("calibrate.name", "n", "name", "What the tier is to be called", "name", 3),
        Command("calibrate.write", "w", "write", "Write the tier into your catalogue", "write", 4),
        Command(
            "calibrate.undo",
            "u",
            "undo",
            "Take back what was written, and what was put on the desk",
            "undo",
            5,
        ),
        Command(
            "calibrate.table",
            "t",
            "next table",
            "Figures, then each save measured and fitted, then what was left out",
            "table(1)",
            6,
        ),
        Command("calibrate.sort", "s", "sort", "Sort by the next column", "sort", 7),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS_HERE)
    DEFAULT_CSS = """
    CalibrateScreen #names { layout: horizontal; height: 1; }
    CalibrateScreen #names Static { width: auto; padding: 0 1; color: $text-muted; }
    CalibrateScreen #id { width: 28; height: 1; }
    CalibrateScreen #title { width: 1fr; height: 1; }
    CalibrateScreen #table { height: 3fr; }
    CalibrateScreen #below { layout: horizontal; height: 2fr; }
    CalibrateScreen #check, CalibrateScreen #effect { width: 1fr; height: 1fr; }
    CalibrateScreen #said { height: 1fr; min-height: 5; }
    CalibrateScreen.-short #below { height: 8; }
    CalibrateScreen.-short #check { display: none; }
    """

    def __init__(self, sources: Sequence[RunSource]) -> None:
        super().__init__()
        self._sources = tuple(sources)
        self._fitted: Calibrated | None = None
        self._ticked: list[str] = []
        self._written: Written | None = None
        self._before: Desk | None = None
        self._put: Desk | None = None

    def body(self) -> Iterable[Widget]:
        with Container(id="names"):
            yield Static("tier", markup=False)
            yield Input(id="id", placeholder="our-lustre", compact=True)
            yield Static("in words", markup=False)
            yield Input(
                id="title",
                placeholder="what it is; the host's name where nothing is said",
                compact=True,
            )
        yield panel(Rows(id="table"))
        with Container(id="below"):
            yield panel(Rows(id="check"))
            yield panel(Rows(id="effect"))
        yield panel(Note(id="said", classes="tall-only"), "What the runs say")

    def on_mount(self) -> None:
        super().on_mount()
        self._rows.show(Grid(empty="Reading the runs ..."))
        sources, weight = self._sources, sum(source.weight for source in self._sources)
        self.say(reading_text(*sources))
        self.background(
            "fit",
            lambda stopped: READER.ask(calibrate_fit.fit, sources, weight=weight, stopped=stopped),
            self._fit_done,
            self._fit_failed,
        )

    def on_desk(self) -> None:
        if self._fitted is not None:
            self._show()
            self._check()

    def command_line(self) -> str:
        return calibrate_fit.command_of(self._sources, *self._names)

    def table(self) -> Grid | None:
        focused = self.focused
        return focused.grid if isinstance(focused, Rows) else super().table()

    def tables(self) -> Sequence[Grid]:
        if self._fitted is None:
            return ()
        figures = calibrate_fit.parameters(self._fitted, self.desk, self._ticked)
        return [figures, *calibrate_fit.rounds(self._fitted)]

    def exported(self) -> Any:
        if self._fitted is None:
            return None
        files = [str(path) for path, _ in self._written.texts] if self._written is not None else []
        return calibrate_fit.study_for(self._fitted, *self._names, files)

    def give_up(self) -> None:
        for name in ("fit", "check"):
            self.stop_background(name)

    @property
    def _name_field(self) -> Input:
        return self.query_one("#id", Input)

    @property
    def _names(self) -> tuple[str, str]:
        """What it is to be called, and in words."""
        return self._name_field.value.strip(), self.query_one("#title", Input).value.strip()

    def _fit_failed(self, text: str) -> None:
        self.say(text, "bad")
        self._rows.show(Grid(empty=text))
        self.query_one("#said", Note).show(refusal(text))

    def _fit_done(self, fitted: Calibrated) -> None:
        self._fitted, self._ticked = fitted, fitted.usual
        if not self._name_field.value:
            self._name_field.value = fitted.suggested
        self._show()
        self._check()
        self.say("")

    def _show(self) -> None:
        fitted = self._fitted
        if fitted is None:
            return
        self._show_table()
        left: list[tuple[str, Tone]] = [
            (text, "muted") for text in calibrate_fit.not_taken(fitted, self._ticked, self.desk)
        ]
        self.query_one("#said", Note).show([*calibrate_fit.lines(fitted), *left])
        try:
            self.show_in("effect", calibrate_fit.effect(fitted, self.desk, self._ticked))
        except (CkptcostError, OSError) as error:
            self.show_in("effect", Grid(title="What changes", empty=str(error)))

    def _check(self) -> None:
        """The model against the runs needs their readings again."""
        try:
            base, settings = against.settings_of(self.desk)
        except (CkptcostError, OSError) as error:
            self._check_failed(str(error))
            return
        fitted, weight = self._fitted, sum(source.weight for source in self._sources)
        self.background(
            "check",
            lambda stopped: READER.ask(
                calibrate_fit.check, fitted, base, settings, weight=weight, stopped=stopped
            ),
            lambda grid: self.show_in("check", grid),
            self._check_failed,
        )

    def _check_failed(self, text: str) -> None:
        self.show_in("check", Grid(title="Does the model predict it?", empty=text))

    @on(Rows.Moved, "#table")
    def _moved(self) -> None:
        if self._fitted is not None and self._place == 0:
            self.say(calibrate_fit.evidence(self._fitted, self._rows.key))

    @on(Input.Changed, "#id")
    def _named(self) -> None:
        if self._fitted is not None and self._written is None:
            why = calibrate_fit.refusal_of(self._fitted, self._name_field.value.strip())
            self._name_field.set_class(bool(why), "bad")
            self.say(why, "bad" if why else "")

    @on(Input.Submitted)
    def _entered(self) -> None:
        self._rows.focus()

    def action_tick(self) -> None:
        fitted, key = self._fitted, self._rows.key
        if fitted is None or self._place != 0:
            return
        if why := calibrate_fit.why_not(fitted, key):
            self.say(why, "warn")
            return
        self._ticked = list({*self._ticked} ^ {key})
        self._show()
        self.say("")

    def action_all(self) -> None:
        if self._fitted is not None:
            self._ticked = [] if set(self._ticked) == set(self._fitted.free) else self._fitted.free
            self._show()

    def action_name(self) -> None:
        self._name_field.focus()

    def action_write(self) -> None:
        fitted = self._fitted
        if fitted is None:
            return
        if self._written is not None:
            self.say(f"{self._written.id} is written already: u takes it back.", "warn")
            return
        try:
            self._written = calibrate_fit.write(fitted, *self._names)
        except (CkptcostError, OSError) as error:
            self.say(str(error), "bad")
            return
        self.say(self._written.text, "good")
        offer = calibrate_fit.offer(fitted, self._written.id, self._ticked)
        if "tier" in self._written.kinds:
            self.app.push_screen(
                Confirm("Put it on the desk?", offer, "put it there"), self._put_on
            )

    def _put_on(self, yes: bool | None) -> None:
        if not yes or self._fitted is None or self._written is None:
            return
        try:
            desk = calibrate_fit.put_on(
                self.desk, self._written.id, calibrate_fit.edits_of(self._fitted, self._ticked)
            )
            desk.resolved()
        except (CkptcostError, OSError) as error:
            self.say(str(error), "bad")
            return
        self._before, self._put = self.desk, desk
        self.change(desk)
        self.say(f"{self._written.id} is on the desk and chosen; u takes it back.", "good")

    def action_undo(self) -> None:
        if self._written is None:
            self.say("Nothing was written here.", "warn")
            return
        try:
            done = calibrate_fit.undo(self._written)
        except (CkptcostError, OSError) as error:
            self.say(str(error), "bad")
            return
        id_, self._written = self._written.id, None
        if self._before is not None and self.desk is self._put:
            self.change(calibrate_fit.fresh(self._before))
        elif self._put is not None:
            self.change(calibrate_fit.fresh(calibrate_fit.without(self.desk, id_)))
        self._before = self._put = None
        self.say(done, "good")
