"""The question backwards: a quantity and a target, and how much of it the target takes. Answered
while one types."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ckptcost.first.jobs.solve import KNOBS
from ckptcost.first.present.grid import Grid, GridHead, Row, Tone
from ckptcost.first.questions.solve import solve
from ckptcost.first.report.study import Study
from ckptcost.first.tui.desk import Desk, by_flags
from ckptcost.first.tui.screens.base import WorkerScreen
from ckptcost.first.tui.screens.interval_view import alone
from ckptcost.first.tui.study_grids import paragraphs, tables_of
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.rows import Rows


class Solve(ModalScreen[None], WorkerScreen):
    """Up and Down choose the quantity, typing changes the target."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "close"),
        Binding("up", "move(-1)", "up", show=False),
        Binding("down", "move(1)", "down", show=False),
    ]
    DEFAULT_CSS = """
    Solve #box {
        padding: 0 1; max-width: 110; width: 94%; height: 92%; max-height: 34;
        border: round $primary; background: $surface;
    }
    Solve #asked { height: auto; }
    Solve #what { width: 2fr; height: 9; }
    Solve #right { width: 3fr; height: auto; padding-left: 2; }
    Solve #target { margin: 1 0; }
    Solve #hint { color: $text-muted; height: auto; }
    Solve #answer { margin-top: 1; }
    Solve #table { height: auto; max-height: 10; margin-top: 1; }
    Solve #command { height: auto; max-height: 2; color: $text-muted; }
    Solve.-short #what { height: 5; }
    Solve.-short #table { display: none; }
    Solve.-short #target { margin: 0; }
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._desk = desk

    def compose(self) -> ComposeResult:
        with Vertical(id="box") as dialog:
            dialog.border_title = "What does a target take?"
            dialog.border_subtitle = "up and down: the quantity; Esc closes"
            with Horizontal(id="asked"):
                yield Rows(id="what")
                with Vertical(id="right"):
                    yield Static("target", markup=False)
                    yield Input(FIRST_TARGET, id="target", compact=True, select_on_focus=False)
                    yield Static(targets(), id="hint", markup=False)
            yield Note(id="answer")
            yield Rows(id="table")
            yield Static(id="command", markup=False)

    def on_mount(self) -> None:
        self.query_one("#what", Rows).show(quantities())
        self.query_one("#target", Input).focus()
        self._ask()

    def _ask(self) -> None:
        """A twentieth of a second: in a thread; a newer question supersedes it."""
        what, target = self.query_one("#what", Rows).key, self.query_one("#target", Input).value
        if what:
            said = command(self._desk, what, target)
            self.background(
                "solve",
                lambda stopped: solved(self._desk, what, target),
                lambda study: self._show(study, said),
            )

    def complain(self, text: str) -> None:
        told: tuple[str, Tone] = (text, "warn")
        self.query_one("#answer", Note).show((told,))
        self.query_one("#table", Rows).show(Grid())
        self.query_one("#command", Static).update("")

    def _show(self, study: Study, said: str) -> None:
        self.query_one("#answer", Note).show(lines_of(study))
        self.query_one("#table", Rows).show(next(iter(tables_of(study)), Grid()))
        self.query_one("#command", Static).update(Content(said))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._ask()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._ask()

    def on_rows_moved(self, event: Rows.Moved) -> None:
        event.stop()
        if event.rows.id == "what":
            self._ask()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        event.stop()

    def action_move(self, by: int) -> None:
        self.query_one("#what", Rows).action_move(by)


_RANGES = {"interval": "training time between saves", "saves-per-day": "saves a day"}
QUANTITIES = {**{knob.id: knob.label for knob in KNOBS.values()}, **_RANGES}
"""what can be asked for"""
_EXAMPLES = {
    "goodput": ">=0.95",
    "wall": "<=60 days",
    "usd": "<=10000",
    "kwh": "<=2 MWh",
    "gpu_hours": "<=5000",
    "kgco2e": "<=900",
}
FIRST_TARGET = "goodput>=0.95"


def solved(desk: Desk, what: str, target: str) -> Study:
    """Raises InputError where the target cannot be read, or is none."""
    bare, wanted = _bare(desk), target.strip() or None
    with by_flags():
        return solve(what, wanted, bare.base, changes=bare.settings(), catalog=bare.catalog).study


def lines_of(study: Study) -> list[tuple[str, Tone]]:
    """The answer, in red where nothing reaches the target."""
    return [
        (text, "bad" if text.startswith("INFEASIBLE") else tone)
        for text, tone in paragraphs(study._replace(gates=[], about=[]))
    ]


def _bare(desk: Desk) -> Desk:
    return alone(desk.timed())[0]


def command(desk: Desk, what: str, target: str) -> str:
    """What prints the same answer."""
    return _bare(desk).command("solve", what, "--for", target.strip())


def quantities() -> Grid:
    """What can be asked for, as a list."""
    rows = [Row(key, (key, label)) for key, label in QUANTITIES.items()]
    return Grid(
        (GridHead("what", "what", left=True), GridHead("label", "quantity", left=True)),
        rows,
        "Solve for",
    )


def targets() -> str:
    """What a target may look like, one of each kind."""
    return f"e.g. {', '.join(f'{name}{limit}' for name, limit in _EXAMPLES.items())}"
