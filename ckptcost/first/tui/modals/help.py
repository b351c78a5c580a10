"""Help for one screen: what is seen here, the keys of this screen and those that work everywhere,
and what the signs mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.table import Column, Table
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ckptcost.first.tui.commands import EVERYWHERE, Command
from ckptcost.first.tui.widgets.bottom import keys_of
from ckptcost.first.tui.widgets.rows import has_words

_PLAIN = str.maketrans(
    {
        "\u25b8": ">",
        "\u25cf": "*",
        "\u25cb": "o",
        "\u2717": "x",
        "\u2192": "Right",
        "\u2190": "Left",
    }
)
SIGNS = """\
u yours   m measured   s sourced   d assumed   = derived: who says a figure
-         not known; never a zero, and named below the totals
p5-p95    range from drawing every uncertain input at once
▸         the best of a table, or the row that is chosen
● ○ ✗     answers, is there, is refused
stall     training stands still;  safe: the bytes are on the storage
+3        so many columns do not fit: → and ← go through them
Mouse     with Shift held the terminal selects text as it does elsewhere
"""


class Help(ModalScreen[None]):
    """Scrolls where it does not fit; `/` leaves only what has the words that are typed."""

    AUTO_FOCUS = "VerticalScroll"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1", "dismiss", "close"),
        Binding("slash", "search", "search"),
    ]
    DEFAULT_CSS = """
    Help .dialog { width: 96%; max-width: 120; height: 94%; max-height: 94%; padding: 0 1; }
    Help .columns { height: auto; }
    Help .column { width: 1fr; height: auto; padding-right: 2; }
    .-narrow Help .columns, Help.-narrow .columns { layout: vertical; }
    Help .about { margin-bottom: 1; }
    Help Input { display: none; }
    Help.-search Input { display: block; }
    Help.-search .about { display: none; }
    """

    def __init__(self, title: str, about: str, here: Sequence[Command]) -> None:
        super().__init__()
        self._title, self._about, self._here = title, about, here

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Help: {self._title}")
            dialog.border_subtitle = "/ searches, Esc or ? closes"
            yield Input(placeholder="words of a key's help, or of a sign", compact=True)
            with VerticalScroll():
                if self._about:
                    yield Static(self._about, markup=False, classes="about")
                with Horizontal(classes="columns"):
                    yield Static(id="here", classes="column")
                    yield Static(id="everywhere", classes="column")
                yield Static(id="signs")

    def on_mount(self) -> None:
        self._show("")

    def action_search(self) -> None:
        self.add_class("-search")
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._show(event.value)

    def _show(self, words: str) -> None:
        here = _keys(self.app, "On this screen", self._here, words)
        self.query_one("#here", Static).update(here)
        self.query_one("#everywhere", Static).update(
            _keys(self.app, "Everywhere", EVERYWHERE, words)
        )
        signs = SIGNS.translate(_PLAIN) if getattr(self.app, "plain", False) else SIGNS
        lines = [line for line in signs.splitlines() if has_words(line, words)]
        self.query_one("#signs", Static).update(
            Content.assemble(("Signs\n", "bold"), "\n".join(lines))
        )


def _keys(app: App[Any], title: str, commands: Sequence[Command], words: str) -> Table:
    """What is long goes on below itself, not below the keys."""
    table = Table.grid(Column(justify="right", no_wrap=True), Column(), padding=(0, 2, 0, 0))
    table.add_row("", Text(title, "bold"))
    for command in commands:
        names = " ".join(keys_of(app, command)[:2])
        if has_words(f"{names} {command.help}", words):
            table.add_row(Text(names, "bold"), Text(command.help))
    return table
