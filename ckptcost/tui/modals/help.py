"""Help for one screen: what is seen here, the keys of this screen and those that work everywhere,
and what the signs mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.table import Column, Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ckptcost.tui.commands import EVERYWHERE, Command
from ckptcost.tui.widgets.bottom import key_name

_PLAIN = str.maketrans("\u25b8\u25cf\u25cb\u2717", ">*ox")
SIGNS = """\
u yours   m measured   s sourced   d assumed   = derived: who says a figure
-         not known; never a zero, and named below the totals
p5-p95    range from drawing every uncertain input at once
▸         the best of a table, or the row that is chosen
● ○ ✗     answers, is there, is refused
stall     training stands still;  safe: the bytes are on the storage
"""


class Help(ModalScreen[None]):
    """Scrolls where it does not fit."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1", "dismiss", "close")
    ]
    DEFAULT_CSS = """
    Help .dialog { width: 96%; max-width: 120; height: 94%; max-height: 94%; padding: 0 1; }
    Help .columns { height: auto; }
    Help .column { width: 1fr; height: auto; padding-right: 2; }
    .-narrow Help .columns, Help.-narrow .columns { layout: vertical; }
    Help .about { margin-bottom: 1; }
    """

    def __init__(self, title: str, about: str, here: Sequence[Command]) -> None:
        super().__init__()
        self._title, self._about, self._here = title, about, here

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(f"Help: {self._title}")
            dialog.border_subtitle = "Esc or ? closes"
            with VerticalScroll():
                if self._about:
                    yield Static(self._about, markup=False, classes="about")
                with Horizontal(classes="columns"):
                    yield Static(_keys("On this screen", self._here), id="here", classes="column")
                    yield Static(_keys("Everywhere", EVERYWHERE), id="everywhere", classes="column")
                plain = getattr(self.app, "plain", False)
                signs = SIGNS.translate(_PLAIN) if plain else SIGNS
                yield Static(Content.assemble(("Signs\n", "bold"), signs))


def _keys(title: str, commands: Sequence[Command]) -> Table:
    """What is long goes on below itself, not below the keys."""
    table = Table.grid(Column(justify="right", no_wrap=True), Column(), padding=(0, 2, 0, 0))
    table.add_row("", Text(title, "bold"))
    for command in commands:
        names = " ".join(key_name(key.strip()) for key in command.key.split(",")[:2])
        table.add_row(Text(names, "bold"), Text(command.help))
    return table
