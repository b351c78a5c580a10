"""What the job's checkpoints cost: the scenario on the left, the answer on the right, computed anew
at every keystroke."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.content import Content
from textual.events import Resize
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from ckptcost.first.present.grid import Grid, Tone
from ckptcost.first.tui import fields
from ckptcost.first.tui.about_field import about_field, entries, tier_entries
from ckptcost.first.tui.commands import Command, bindings
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.modals.picker import Picker, Ticks
from ckptcost.first.tui.screens import model_view as model
from ckptcost.first.tui.screens.base import ModeScreen
from ckptcost.first.tui.widgets.bars import BarRows
from ckptcost.first.tui.widgets.form import Form
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.rows import Rows

# A screen on which a form changes the scenario: every keystroke counts, a slip of the pen does
# not, and all of it can be undone.

T = TypeVar("T")


class EditingScreen(ModeScreen):
    """Has a form with the id `form`. Subclasses give `show`, `broken` and `about`."""

    def __init__(self) -> None:
        super().__init__()
        self.view: model.ModelView | None = None
        """what is shown; None where the scenario cannot be computed"""
        self.field = ""
        """the one that has the focus, or had it last"""
        self.refused: dict[str, str] = {}
        """why the text in a field is not used"""
        self._typing: tuple[str, Desk] | None = None
        """the field that is typed in, and the desk before: every keystroke counts from there"""
        self._before: list[Desk] = []
        """for undo, the last one last"""
        self._base = ""

    # what a subclass gives

    def show(self, view: model.ModelView) -> None:
        """The figures."""

    def broken(self, why: str) -> None:
        """A scenario without figures."""

    def about(self) -> None:
        """What is known of the field."""

    # what it has

    @property
    def form(self) -> Form:
        return self.query_one("#form", Form)

    def guarded(
        self, work: Callable[[], T], refuse: Callable[[Exception], None] | None = None
    ) -> T | None:
        """What `work` gives, or None where the scenario refuses it, and why is said. No key may end
        the application, so whatever a change of the scenario can lead to passes here."""
        try:
            return work()
        except fields.REFUSALS as error:
            if refuse is not None:
                refuse(error)
            else:
                self.say(fields.refusal(error), "bad")
            return None

    def change_by(self, change: Callable[[Desk], Desk]) -> None:
        """A change that is no typing: it counts at once, or is refused in the bottom line."""
        view = self.guarded(lambda: model.evaluate(change(self.desk)))
        if view is not None:
            self._before.append(self.desk)
            self._typing, self.view = None, view
            self.change(view.desk)

    def say_result(self) -> None:
        if self.refused:
            path, reason = next(reversed(self.refused.items()))
            now = self.desk.edits.get(path) or "the scenario's value"
            self.say(f"{fields.label_of(path)}: {reason}; {now} stays in use", "bad")
        elif self.view is not None:
            self.say(*self.view.beside)

    def forget_slips(self, shown: set[str], base: str) -> None:
        """What was refused in a field that is gone, or in another scenario, no longer matters."""
        for path in [path for path in self.refused if path not in shown or base != self._base]:
            del self.refused[path]
            self.form.forget(path)
        self._base = base

    # how it works

    def on_desk(self) -> None:
        if self.view is None or self.view.desk is not self.desk:
            # changed elsewhere: what was done here before cannot be undone
            self._before.clear()
            self._typing = None
            self.view = self.guarded(lambda: model.evaluate(self.desk), self._broken)
        if (view := self.view) is not None:
            self.guarded(lambda: self.show(view), self._broken)

    def _broken(self, error: Exception) -> None:
        self.view = None
        self.broken(fields.refusal(error))

    def on_form_focused(self, event: Form.Focused) -> None:
        event.stop()
        self.field, self._typing = event.path, (event.path, self.desk)
        self.about()

    def on_mount(self) -> None:
        self.form.listener = self._edited

    def _edited(self, path: str, text: str) -> None:
        if self._typing is None or self._typing[0] != path:
            self._typing = (path, self.desk)
        before = self._typing[1]
        if self._put(before, path, text) and (not self._before or self._before[-1] is not before):
            self._before.append(before)

    def _put(self, before: Desk, path: str, text: str) -> bool:
        """Take a text over where the scenario holds with it; else say why not."""
        view = self.guarded(
            lambda: model.evaluate(fields.put(before, path, text)),
            lambda error: self._refuse(path, error),
        )
        if view is None:
            return False
        self.refused.pop(path, None)
        self.form.accept(path)
        self.view = view
        self.change(view.desk)
        return True

    def _refuse(self, path: str, error: Exception) -> None:
        self.refused[path] = fields.reason(error)
        self.form.refuse(path, self.refused[path])
        self.say_result()

    def on_form_pick(self, event: Form.Pick) -> None:
        event.stop()
        path, now = event.path, self.form.text(event.path)
        grid = self.guarded(
            lambda: (
                tier_entries(self.desk) if path == fields.TIER else entries(self.desk.catalog, path)
            )
        )
        if grid is None:
            return

        def picked(key: str | None) -> None:
            if key is not None:
                self.change_by(lambda desk: fields.put(desk, path, key))
                self.form.forget(path)

        self.app.push_screen(Picker(fields.label_of(path), grid, now), picked)

    def action_reset(self) -> None:
        if path := self.field:
            self.refused.pop(path, None)
            self.change_by(lambda desk: fields.put(desk, path, ""))
            self.form.forget(path)

    def action_reset_all(self) -> None:
        for path in list(self.refused):
            self.form.forget(path)
        self.refused.clear()
        # the tier, too, is a field
        self.change_by(lambda desk: fields.put(desk.plain(), fields.TIER, ""))

    def action_undo(self) -> None:
        if not self._before:
            self.say("nothing to take back")
            return
        desk = self._before.pop()
        self._typing, self.view = None, self.guarded(lambda: model.evaluate(desk), lambda _: None)
        # a scenario without figures comes back too, with the reason in their stead
        self.change(desk)


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
METRIC_KEYS = "k kWh  g GPU-h  $ USD  c CO2e  w time"


PAGES = {"bill": "notes and cautions", "notes": "where a run goes", "course": "the bill"}
"""one at a time, each with what comes after it; a broad screen shows them all"""


class ModelResults(Container):
    """The right side: the answer, the tiers, and below them what there is room for. Classes of the
    screen (-short, -broad, -drawer) decide what of it is seen."""

    SCOPED_CSS = False
    DEFAULT_CSS = """
    ModelResults { width: 1fr; height: 1fr; }
    ModelResults #first { width: 1fr; height: auto; }
    ModelResults #second { width: 1fr; height: 1fr; }
    ModelResults #subject {
        height: 1; width: 1fr; padding: 0 1; color: $text-muted; text-wrap: nowrap;
        text-overflow: ellipsis;
    }
    ModelResults #headline { height: 2; padding: 0 1; text-style: bold; }
    ModelResults #headline.-best, ModelResults #headline.-good { color: $text-success; }
    ModelResults #headline.-warn { color: $text-warning; }
    ModelResults #headline.-bad { color: $text-error; }
    ModelResults #left-out { height: auto; max-height: 2; padding: 0 1; color: $text-muted; }
    ModelResults #left-out.-nothing, .-short ModelResults #left-out { display: none; }
    ModelResults #tiers { height: auto; max-height: 15; }
    ModelResults #about-side, ModelResults .page { display: none; height: 1fr; }
    ModelResults.-on-bill #bill, ModelResults.-on-course #course, ModelResults.-on-notes #notes {
        display: block;
    }
    ModelResults.-on-notes #first { height: 1fr; }
    ModelResults.-on-notes #second { display: none; }
    .-short ModelResults #tiers { max-height: 9; }
    .-broad ModelResults { layout: horizontal; }
    .-broad ModelResults #first { height: 1fr; }
    .-broad ModelResults #second, .-broad ModelResults .page { display: block; }
    .-broad ModelResults #bill, .-broad ModelResults #course { height: auto; }
    .-drawer ModelResults #first { height: auto; }
    .-drawer ModelResults #first > .page, .-drawer ModelResults #second > .page,
    .-drawer ModelResults #subject { display: none; }
    .-drawer ModelResults #headline { height: 4; }
    .-drawer ModelResults #second, .-drawer ModelResults #about-side { display: block; }
    ModelResults.-broken #first { height: 1fr; }
    ModelResults.-broken #first > Static, ModelResults.-broken #tiers,
    ModelResults.-broken #second { display: none; }
    ModelResults.-broken #notes { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(id="results")
        self._page = next(iter(PAGES))

    def compose(self) -> ComposeResult:
        with Vertical(id="first"):
            yield Static(id="headline", markup=False)
            yield Static(id="subject", markup=False)
            yield Rows(id="tiers", classes="panel")
            yield Static(id="left-out", markup=False)
            yield Note(id="notes", classes="panel page")
        with Vertical(id="second"):
            yield Rows(id="bill", classes="panel page")
            yield BarRows(id="course", classes="panel page")
            yield Note(id="about-side", classes="panel")

    def on_mount(self) -> None:
        for table in self.query(Rows):
            # a table has a gutter of its own, and needs every column of the usual size
            table.styles.padding = 0

    def turn(self, by: int = 0) -> None:
        """To the page in force, which another size of the screen may have changed."""
        pages = list(PAGES)
        self._page = pages[(pages.index(self._page) + by) % len(pages)]
        for page, following in PAGES.items():
            self.set_class(page == self._page, f"-on-{page}")
            broad = self.screen.has_class("-broad")
            titled(self.query_one(f"#{page}"), below="" if broad else f"v {following}")

    def show(self, view: model.ModelView) -> None:
        self.remove_class("-broken")
        self.headline(*view.headline)
        self._rows("#tiers", view.grid, METRIC_KEYS)
        left_out = self.query_one("#left-out", Static)
        left_out.set_class(not view.grid.note, "-nothing")
        _say(left_out, view.grid.note)
        titled(self.query_one("#notes"), f"Notes on {view.looked.key}")

    def broken(self, why: str) -> None:
        """A scenario that cannot be computed: the reason, and nothing else."""
        self.add_class("-broken")
        titled(self.query_one("#notes"), "No figures")
        way_out = "Open another scenario with ^o, or take all changes back with R."
        self.notes(((why, "bad"), (way_out, "")))

    def headline(self, text: str, tone: Tone = "") -> None:
        line = self.query_one("#headline", Static)
        if not line.has_class(f"-{tone}"):
            line.set_classes(f"-{tone}")
        _say(line, text, layout=False)

    def settle(self, view: model.ModelView, found: model.Settled) -> None:
        """What follows once nobody types."""
        self.headline(*found.headline)
        subject = f"{view.desk.title}: {found.subject}"
        _say(self.query_one("#subject", Static), subject, layout=False)
        self._rows("#bill", found.bill)
        course = self.query_one("#course", BarRows)
        course.show(found.course._replace(title=""))
        titled(course, found.course.title)
        self.notes(found.notes)

    def notes(self, lines: Sequence[model.Line]) -> None:
        self.query_one("#notes", Note).show(lines)

    def about(self, lines: Sequence[model.Line] | Sequence[str], title: str) -> None:
        """The field that is looked at, beside the drawer."""
        side = self.query_one("#about-side", Note)
        side.show(lines)
        titled(side, title)

    @property
    def table(self) -> Rows:
        """The one that has the focus, else that of the tiers."""
        bill = self.query_one("#bill", Rows)
        return bill if bill.has_focus else self.query_one("#tiers", Rows)

    def _rows(self, panel: str, grid: Grid, below: str | None = None) -> None:
        rows = self.query_one(panel, Rows)
        rows.show(grid)
        titled(rows, grid.title, below)


def _say(line: Static, text: str, layout: bool = True) -> None:
    """A text that stays what it was is not drawn again, and above all not laid out: that takes
    longer than all the sums of a keystroke."""
    if line.content != text:
        line.update(text, layout=layout)


def titled(panel: Widget, title: str | None = None, below: str | None = None) -> None:
    """A title that stays what it was need not be drawn again."""
    if title is not None and panel.border_title != title:
        panel.border_title = Content(title)
    if below is not None and panel.border_subtitle != below:
        panel.border_subtitle = Content(below)


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
        " then the bill of the tier that is ticked; v turns to its notes and its picture."
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
            "Next view: bill, notes, where a run goes",
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
            yield ModelResults().add_class("-on-bill", update=False)

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
                self.results.settle(view, found)

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
        self.change_by(lambda desk: replace(desk, metric=metric))

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
        self.change_by(lambda desk: desk.on_tier(key))

    def action_tiers(self) -> None:
        def take(keys: tuple[str, ...] | None) -> None:
            if keys:
                self.change_by(lambda desk: desk.with_tiers(keys))

        tiers_known = self.guarded(lambda: tier_entries(self.desk))
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
        self.results.turn(1)

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
