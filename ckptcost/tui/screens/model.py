"""What the job's checkpoints cost: the scenario on the left, the answer on the right, computed anew
at every keystroke."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.timer import Timer
from textual.widget import Widget

from ckptcost.present.grid import Grid
from ckptcost.tui import fields
from ckptcost.tui.about_field import about_field
from ckptcost.tui.commands import Command, bindings
from ckptcost.tui.modals.ticks import Ticks
from ckptcost.tui.screens import model_view as model
from ckptcost.tui.screens import tiers_view as tiers
from ckptcost.tui.screens.editing import EditingScreen
from ckptcost.tui.screens.model_results import PAGES, ModelResults, titled
from ckptcost.tui.screens.tiers_pictures import choices
from ckptcost.tui.widgets.form import Form
from ckptcost.tui.widgets.note import Note
from ckptcost.tui.widgets.rows import Rows

IDLE_S = 0.15
"""nobody has typed for so long: what is not needed at every keystroke follows"""
WIDE, BROAD, TALL = 116, 160, 30
"""columns for the form beside the tables, and for two columns of tables; rows for the first view
and another below it"""
METRICS = (
    ("kwh", "k", "kWh"),
    ("gpuh", "g", "GPU-h"),
    ("usd", "dollar_sign", "USD"),
    ("co2e", "c", "CO2e"),
    ("time", "w", "time"),
)


class ModelScreen(EditingScreen):
    """The first thing people see."""

    MODE = "model"
    TITLE_TEXT = "Model"
    ABOUT = (
        "On the left the scenario: every field holds a value with its unit, and says by a letter"
        " where it comes from (u yours, m measured, s sourced, = derived from others, d default)."
        " Type, and everything on the right is computed anew; a text that cannot be read turns red,"
        " and the last valid value stays in use. An empty field goes back to what the scenario"
        " says. On the right the answer: how often to save and where, and how much less that takes"
        " than now, which is the base tier at the interval in force. Below it the tiers: what one"
        " save costs, so many saves without failures, and the whole run with failures and recovery;"
        " then the bill of the tier that is ticked; v turns to its notes and pictures."
        " Energy is at the facility, PUE included. A dash: nobody knows, and it is in no sum. Where"
        " a line is known for some tiers only, none is called best."
    )
    KEYS_HERE = (
        Command(
            "model.leave", "escape", "tables", "Leave the fields for the tables", "leave_fields", 1
        ),
        Command(
            "model.look",
            "enter",
            "its bill",
            "Look at this tier: its bill and its inputs",
            "look",
            1,
        ),
        Command(
            "model.inputs", "i", "inputs", "Go to the fields, or back to the tables", "inputs", 1
        ),
        Command(
            "model.view",
            "v",
            "view",
            "Next view: bill, notes, where a run goes, what one save is made of",
            "view",
            2,
        ),
        Command("model.tiers", "t", "tiers", "Add or remove tiers side by side", "tiers", 3),
        *(
            Command(
                f"model.{each}",
                key,
                name,
                f"Show {'wall time' if each == 'time' else name}",
                f"metric('{each}')",
                4 + place,
            )
            for place, (each, key, name) in enumerate(METRICS)
        ),
        Command(
            "model.all", "a", "all fields", "Show every input there is, or the usual ones", "all", 9
        ),
        Command(
            "model.reset",
            "ctrl+r,r",
            "reset field",
            "Take the change of this field back",
            "reset",
            10,
        ),
        Command("model.undo", "u", "undo", "Take the last change back", "undo", 11),
        Command(
            "model.reset_all",
            "R",
            "reset all",
            "Take every change back; undo brings them again",
            "reset_all",
        ),
        Command("model.sort", "s", "sort", "Sort the table by the next column", "sort"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS_HERE)
    AUTO_FOCUS = "#tiers"
    DEFAULT_CSS = """
    ModelScreen #inputs { width: 42; height: 1fr; }
    ModelScreen.-all #inputs { width: 52; }
    ModelScreen #about { height: 11; border-top: solid $panel-lighten-2; }
    ModelScreen.-short #about, ModelScreen.-drawer #about, ModelScreen.-alone #inputs {
        display: none;
    }
    ModelScreen.-drawer #inputs { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._everything = False
        self._idle: Timer | None = None

    def body(self) -> Iterable[Widget]:
        with Horizontal():
            with Vertical(id="inputs", classes="panel"):
                yield Form(id="form")
                yield Note(id="about")
            yield ModelResults().add_class(f"-on-{PAGES[0]}", update=False)

    @property
    def results(self) -> ModelResults:
        return self.query_one("#results", ModelResults)

    # what is shown

    def broken(self, why: str) -> None:
        titled(self.query_one("#inputs"), f"Scenario  {self.desk.title}")
        self.results.broken(why)
        self.say(why, "bad")

    def show(self, view: model.ModelView) -> None:
        shown = model.form(view, self._everything)
        self.forget_slips({one.path for one in shown}, view.desk.base)
        titled(
            self.query_one("#inputs"),
            f"Scenario  {view.desk.title}",
            "a the usual fields" if self._everything else "a all fields",
        )
        self.form.show([one._replace(error=self.refused.get(one.path, "")) for one in shown])
        self.results.show(view)
        self.say_result()
        self._settle_later()

    def _settle_later(self) -> None:
        if self._idle is not None:
            self._idle.stop()
        self._idle = self.set_timer(IDLE_S, self._settle)

    def _settle(self) -> None:
        """What takes longer than a keystroke may, once nobody types: sentences."""
        if (view := self.view) is not None:
            self.about()
            found = self.guarded(lambda: model.settled(view))
            if found is not None:
                self.results.settle(found.headline, found.bill)
            self.results.notes((*view.cautions, *(found.remarks if found is not None else ())))

    def about(self) -> None:
        path = self.field
        if (view := self.view) is not None:
            lines = (
                self.guarded(lambda: about_field(self.desk, path, view.resolved)) or ()
                if path
                else fields.FIRST_STEPS
            )
            title = fields.label_of(path) if path else "Fields"
            self.query_one("#about", Note).show(lines, title)
            self.results.about(lines, title)

    # what is asked for

    def action_metric(self, metric: str) -> None:
        self.change_by(lambda desk: model.on_metric(desk, metric))

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        if event.rows.id == "tiers":
            event.stop()
            self._look_at(event.key)

    def _look_at(self, key: str) -> None:
        run = (
            next((run for run in self.view.runs if run.key == key), None)
            if self.view is not None
            else None
        )
        if run is not None and run.reason:
            self.say(f"{key}: {run.reason}", "warn")
            return
        self.change_by(lambda desk: tiers.on_tier(desk, key))

    def action_tiers(self) -> None:
        def take(keys: tuple[str, ...] | None) -> None:
            if keys:
                self.change_by(lambda desk: tiers.with_tiers(desk, keys))

        tiers_known = self.guarded(lambda: choices(self.desk))
        if tiers_known is None:
            return
        ticked = [run.key for run in self.view.runs] if self.view is not None else ()
        self.app.push_screen(
            Ticks("Tiers side by side", tiers_known, ticked, self.query_one("#tiers", Rows).key),
            take,
        )

    def action_inputs(self) -> None:
        """On a small screen the fields come as a drawer."""
        if self.has_class("-drawer") or self.form.focused_path:
            self.action_leave_fields()
            return
        self.set_class(self.has_class("-alone") or self.has_class("-short"), "-drawer")
        self.call_after_refresh(self.form.enter)

    def action_field(self, path: str) -> None:
        """To a field by its name, which the usual ones may not be among."""
        if not self._everything:
            self.action_all()
        self.set_class(self.has_class("-alone") or self.has_class("-short"), "-drawer")
        self.call_after_refresh(self.form.enter, path)

    def action_leave_fields(self) -> None:
        self.remove_class("-drawer")
        self.query_one("#tiers").focus()

    def action_look(self) -> None:
        """The table hears Enter itself; the command is for the palette and the bottom line."""
        if key := self.query_one("#tiers", Rows).key:
            self._look_at(key)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "leave_fields":
            return self.is_mounted and bool(self.form.focused_path)
        if action == "look":
            return self.focused is not None and self.focused.id == "tiers"
        return True

    def action_view(self) -> None:
        self.results.next_page()

    def on_resize(self, event: Resize) -> None:
        width, height = event.size
        self.set_class(width >= BROAD and height >= TALL, "-broad")
        self.set_class(width < WIDE, "-alone")
        if width >= WIDE and height >= TALL:
            self.remove_class("-drawer")
        self.call_after_refresh(self.results.turn)

    def action_all(self) -> None:
        self._everything = not self._everything
        self.set_class(self._everything, "-all")
        if self.view is not None:
            self.show(self.view)

    def action_sort(self) -> None:
        self.results.table.sort_next()

    # what others ask

    def command_line(self) -> str:
        view = self.view
        return "" if view is None else self.guarded(lambda: model.command(view)) or ""

    def table(self) -> Grid | None:
        return self.results.table.grid

    def exported(self) -> Any:
        view = self.view
        return None if view is None else self.guarded(lambda: model.report(view))

    def hidden(self) -> None:
        if self._idle is not None:
            self._idle.stop()

    def shown(self) -> None:
        """The sentences take longer than the figures, so the frame does not wait for them."""
        self.about()
        self._settle_later()
