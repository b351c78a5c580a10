"""Published claims: the sheets on the left, the verdicts of one on the right, and what is to be
said on the chosen claim."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input

from ckptcost.present.grid import Grid
from ckptcost.tui.commands import Command, bindings
from ckptcost.tui.screens import claims
from ckptcost.tui.screens.base import ModeScreen
from ckptcost.tui.widgets.note import Note
from ckptcost.tui.widgets.rows import Rows

START = "ddn-2025"
"""the sheet that is shown first"""


class AuditScreen(ModeScreen):
    """Mode 7."""

    MODE = "audit"
    ABOUT = (
        "A sheet holds what somebody published: sizes, rates, times, energies. Each stated value is"
        " held against what the other stated values give for it: consistent, inconsistent, or not"
        " derivable where nothing else constrains it. Values that follow and are nowhere stated are"
        " listed below them. A reading that would make a claim hold need not be the one that was"
        " meant."
    )
    KEYS_HERE: ClassVar[tuple[Command, ...]] = (
        Command(
            "audit.next",
            "n",
            "next contradiction",
            "Go to the next claim that contradicts the others",
            "next_contradiction",
            1,
        ),
        Command("audit.own", "o", "own file", "Open a TOML file of claims of your own", "own", 2),
        Command("audit.sort", "s", "sort", "Sort the table by the next column", "sort", 3),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS_HERE)
    DEFAULT_CSS = """
    AuditScreen #audit-all { layout: horizontal; }
    AuditScreen #audit-left { width: 38; }
    AuditScreen #audit-verdicts { height: 3fr; }
    AuditScreen #audit-told { height: 2fr; min-height: 7; }
    AuditScreen #audit-own { margin-top: 1; background: $boost; scrollbar-size: 0 0; }
    AuditScreen.-narrow #audit-all { layout: vertical; }
    AuditScreen.-narrow #audit-left { width: 1fr; height: 8; }
    AuditScreen.-narrow #audit-right { height: 1fr; }
    AuditScreen.-narrow #audit-own { margin-top: 0; }
    AuditScreen.-narrow.-tall #audit-left { height: 12; }
    AuditScreen.-short #audit-verdicts { height: 2fr; }
    AuditScreen.-short #audit-told { height: 1fr; min-height: 5; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._sheets: claims.Sheets | None = None
        self._opened: claims.Opened | None = None
        self._kept: dict[str, claims.Opened] = {}
        self._own: list[str] = []
        self._wanted = START

    def body(self) -> Iterable[Widget]:
        sheets, verdicts, told = (
            Rows(id="audit-sheets"),
            Rows(id="audit-rows"),
            Note(id="audit-note"),
        )
        own = Input(
            placeholder="o: a TOML file of your own",
            id="audit-own",
            compact=True,
            select_on_focus=False,
        )
        left = Vertical(sheets, own, id="audit-left", classes="panel")
        upper = Vertical(verdicts, id="audit-verdicts", classes="panel")
        lower = Vertical(told, id="audit-told", classes="panel")
        left.border_title, upper.border_title, lower.border_title = (
            "Claims",
            "Verdicts",
            "What is to be said",
        )
        yield Horizontal(left, Vertical(upper, lower, id="audit-right"), id="audit-all")

    def on_mount(self) -> None:
        super().on_mount()
        self._list()
        self._open(START)
        self._sheet_rows.focus()

    def on_desk(self) -> None:
        """Claims are not about the scenario; another catalogue has other sheets."""

    def command_line(self) -> str:
        return claims.command(self._opened.name if self._opened is not None else "")

    def table(self) -> Grid | None:
        return self._sheet_rows.grid if self._sheet_rows.has_focus else self._rows.grid

    def exported(self) -> Any:
        return (
            self._opened.study
            if self._opened is not None
            else self._sheets.study
            if self._sheets is not None
            else None
        )

    def read(self) -> tuple[str, ...]:
        return (
            (self._opened.name,)
            if self._opened is not None and self._opened.name in self._own
            else ()
        )

    # the list

    @property
    def _sheet_rows(self) -> Rows:
        return self.query_one("#audit-sheets", Rows)

    @property
    def _rows(self) -> Rows:
        return self.query_one("#audit-rows", Rows)

    def _list(self) -> None:
        catalog, own = self.desk.catalog, tuple(self._own)
        self.background("sheets", lambda stopped: claims.sheets(catalog, own), self._listed)

    def _listed(self, sheets: claims.Sheets) -> None:
        self._sheets = sheets
        self._sheet_rows.show(sheets.grid)
        self._sheet_rows.select(self._wanted)
        for text, tone in sheets.refused:
            self.say(text, tone)

    # one sheet

    def _open(self, name: str) -> None:
        """At once where its audit is known, else when the background has it."""
        self._wanted = name
        if name in self._kept:
            self.stop_background("audit")
            self._show(self._kept[name])
            return
        self.say(f"auditing {name} ..", "muted")
        catalog = self.desk.catalog
        self.background(
            "audit", lambda stopped: claims.opened(catalog, name), self._audited, self._refused
        )

    def _audited(self, opened: claims.Opened) -> None:
        if (
            opened.name not in self._own
        ):  # a file of one's own is read anew each time it is asked for
            self._kept[opened.name] = opened
        self._show(opened)

    def _refused(self, text: str) -> None:
        self.say(text, "bad")

    def _show(self, opened: claims.Opened) -> None:
        self._opened = opened
        self._rows.show(opened.verdicts)
        panel = self.query_one("#audit-verdicts")
        panel.border_title, panel.border_subtitle = Content(opened.title), Content(opened.summary)
        self._tell()
        bad = len(opened.contradictions)
        self.say(f"{opened.title}: {opened.summary}", "warn" if bad else "")

    def _tell(self) -> None:
        """On the claim under the cursor; on the whole sheet while the list of sheets has the
        focus."""
        opened = self._opened
        if opened is None:
            return
        whole = not self._rows.has_focus or self._rows.key not in opened.told
        self.query_one("#audit-told").border_title = (
            "What follows from the sheet" if whole else "The claim"
        )
        self.query_one("#audit-note", Note).show(
            opened.about if whole else opened.told[self._rows.key]
        )

    # events

    def on_rows_moved(self, event: Rows.Moved) -> None:
        if event.rows is not self._sheet_rows:
            self._tell()
        elif event.key and event.key != self._wanted:
            self._open(event.key)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        if event.rows is self._sheet_rows:
            self._rows.focus()

    def on_descendant_focus(self) -> None:
        self._tell()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if not (path := event.value.strip()):
            return
        catalog = self.desk.catalog
        self.say(f"auditing {path} ..", "muted")
        self.background(
            "audit", lambda stopped: claims.opened(catalog, path), self._own_opened, self._refused
        )

    def _own_opened(self, opened: claims.Opened) -> None:
        """A file joins the list."""
        if (
            opened.name not in self._own
            and self._sheets is not None
            and opened.name not in {row.key for row in self._sheets.grid.rows}
        ):
            self._own.append(opened.name)
        self._wanted = opened.name
        self._list()
        self._show(opened)
        self._rows.focus()

    def action_own(self) -> None:
        self.query_one("#audit-own", Input).focus()

    def action_sort(self) -> None:
        (self._sheet_rows if self._sheet_rows.has_focus else self._rows).sort_next()

    def action_next_contradiction(self) -> None:
        if self._opened is None:
            return
        bad = set(self._opened.contradictions)
        keys = [row.key for row in self._rows.grid.rows]
        at = keys.index(self._rows.key) if self._rows.has_focus and self._rows.key in keys else -1
        found = next((key for key in (*keys[at + 1 :], *keys[: at + 1]) if key in bad), None)
        if found is None:
            self.say("nothing in this sheet contradicts anything else in it", "good")
            return
        self._rows.focus()
        self._rows.select(found)
