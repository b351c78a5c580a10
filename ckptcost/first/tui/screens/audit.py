"""Published claims held against each other: the sheets on the left, the verdicts of one on the
right, and what is to be said on the chosen claim."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Input

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.core.audit import CONSISTENT, INCONSISTENT, NOT_DERIVABLE
from ckptcost.first.errors import CkptcostError
from ckptcost.first.jobs.audit import audit as audit_sheet
from ckptcost.first.jobs.audit import shipped_audits
from ckptcost.first.present.grid import Grid, Row, Tone
from ckptcost.first.questions.audit import audit
from ckptcost.first.report.studies.audit import overview
from ckptcost.first.report.study import Column, Study, Table
from ckptcost.first.tui.commands import Command, bindings
from ckptcost.first.tui.paths import path_of
from ckptcost.first.tui.screens.base import panel
from ckptcost.first.tui.screens.tables import TablesScreen
from ckptcost.first.tui.study_grids import grid_of, toned_grid
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.rows import Rows

START = "ddn-2025"
"""the sheet that is shown first"""
VOCABULARY = "--vocabulary"
"""the row below the sheets: what a claim can speak of"""
COLUMNS = (
    Column("id", "claims"),
    Column("consistent", "holds", "count"),
    Column("inconsistent", "fails", "count"),
    Column("not_derivable", "open", "count"),
)
_TONES: dict[Any, Tone] = {
    CONSISTENT: "good",
    INCONSISTENT: "bad",
    NOT_DERIVABLE: "muted",
    True: "good",
    False: "muted",
}
"""of a verdict, and of whether a reading fits"""
FACTS = ("said", "arithmetic", "meaning", "formula", "assumes")
NOTHING = Grid(empty="This sheet claims nothing that can be held against anything.")
Line = tuple[str, Tone]


class OpenedSheet(NamedTuple):
    """One sheet after its audit, or the vocabulary."""

    name: str
    """as the command line takes it"""
    study: Study

    @property
    def tables(self) -> list[Table]:
        return [table for table in self.study.tables if table.rows]


def sheets(catalog: Catalog, own: Sequence[str] = ()) -> tuple[Grid, list[str]]:
    """The sheets that ship and the files opened here, with how they fare; which files could not be
    read, and why."""
    audits, keys, refused = shipped_audits(catalog), catalog.ids("claim"), []
    for path in own:
        try:
            audits.append(audit_sheet(catalog, path)[0])
            keys = [*keys, path]
        except (CkptcostError, OSError) as error:
            refused.append(str(error))
    grid = grid_of(overview(audits).tables[0]._replace(columns=COLUMNS), keys)
    last = Row(VOCABULARY, ("(vocabulary)", "", "", ""), ("", None, None, None), tone="muted")
    return grid._replace(rows=[*grid.rows, last]), refused


def open_sheet(catalog: Catalog, name: str) -> OpenedSheet:
    """The audit of a shipped sheet or of a file, or the vocabulary. Raises InputError where the
    file is wrong."""
    if name == VOCABULARY:
        return OpenedSheet(name, audit(vocabulary=True, catalog=catalog).study)
    path = str(path_of(name)) if name.startswith("~") else name
    return OpenedSheet(path, audit(path, catalog=catalog).study)


def detail(opened: OpenedSheet, place: int, key: str) -> list[Line]:
    """On a row of a table: in whose words, what follows from what, and what the sheet says of its
    claim."""
    row, told = opened.tables[place].rows[int(key)], opened.study
    claim, _, what = row.get("claim", "").partition(".")
    about = told.question.get("claims", {}).get(claim, {}).get("about", "")
    heading = f"{about}, {what}" if about else row.get("claim") or row.get("key") or row["law"]
    mine: Tone = "bad" if row.get("verdict") == INCONSISTENT else ""
    findings = (line for line in told.findings if line.startswith(about or heading))
    return [
        (heading, "base"),
        *((f"{name}: {row[name]}", "") for name in FACTS if row.get(name)),
        *((line, mine if line.startswith(f"{heading}:") else "muted") for line in findings),
    ]


class AuditScreen(TablesScreen):
    """Mode 7."""

    MODE = "audit"
    ABOUT = (
        "A sheet holds what somebody published: sizes, rates, times, energies. Each stated value is"
        " held against what the other stated values give for it: consistent, inconsistent, or not"
        " derivable where nothing else constrains it. Values that follow and are nowhere stated are"
        " in the next table, and other readings in the one after it. A reading that would make a"
        " claim hold need not be the one that was meant."
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
        Command(
            "audit.table",
            "t",
            "next table",
            "Verdicts, what follows and is not stated, other readings",
            "table(1)",
            3,
        ),
        Command("audit.sort", "s", "sort", "Sort the table by the next column", "sort", 4),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS_HERE)
    DEFAULT_CSS = """
    AuditScreen #audit-all { layout: horizontal; }
    AuditScreen #audit-left { width: 38; }
    AuditScreen #table { height: 3fr; }
    AuditScreen #said { height: 2fr; min-height: 7; }
    AuditScreen #audit-own { margin-top: 1; background: $boost; scrollbar-size: 0 0; }
    AuditScreen.-narrow #audit-all { layout: vertical; }
    AuditScreen.-narrow #audit-left { width: 1fr; height: 8; }
    AuditScreen.-narrow #audit-right { height: 1fr; }
    AuditScreen.-narrow #audit-own { margin-top: 0; }
    AuditScreen.-narrow.-tall #audit-left { height: 12; }
    AuditScreen.-short #table { height: 2fr; }
    AuditScreen.-short #said { height: 1fr; min-height: 5; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._opened: OpenedSheet | None = None
        self._grids: list[Grid] = []
        self._own: list[str] = []
        self._wanted = START

    def body(self) -> Iterable[Widget]:
        with Horizontal(id="audit-all"):
            with panel(Vertical(id="audit-left"), "Claims"):
                yield Rows(id="audit-sheets")
                yield Input(
                    placeholder="o: a TOML file of your own",
                    id="audit-own",
                    compact=True,
                    select_on_focus=False,
                )
            with Vertical(id="audit-right"):
                yield panel(Rows(id="table"))
                yield panel(Note(id="said"))

    def on_mount(self) -> None:
        super().on_mount()
        self._list()
        self._open(START)
        self._sheet_rows.focus()

    def on_desk(self) -> None:
        """Claims are not about the scenario; another catalogue has other sheets."""

    def command_line(self) -> str:
        name = [self._opened.name] if self._opened is not None else []
        return shlex.join(["ckptcost", "audit", *name])

    def table(self) -> Grid | None:
        return self._sheet_rows.grid if self._sheet_rows.has_focus else self._rows.grid

    def tables(self) -> Sequence[Grid]:
        return self._grids

    def exported(self) -> Any:
        return None if self._opened is None else self._opened.study

    def read(self) -> tuple[str, ...]:
        opened = self._opened
        return (opened.name,) if opened is not None and opened.name in self._own else ()

    # the list

    @property
    def _sheet_rows(self) -> Rows:
        return self.query_one("#audit-sheets", Rows)

    def _list(self) -> None:
        catalog, own = self.desk.catalog, tuple(self._own)
        self.background("sheets", lambda stopped: sheets(catalog, own), self._listed)

    def _listed(self, found: tuple[Grid, list[str]]) -> None:
        grid, refused = found
        self._sheet_rows.show(grid)
        self._sheet_rows.select(self._wanted)
        for text in refused:
            self.say(text, "bad")

    # one sheet

    def _open(self, name: str) -> None:
        self._wanted = name
        self._audit(name, self._show)

    def _audit(self, name: str, done: Callable[[OpenedSheet], None]) -> None:
        """A file of one's own is read anew each time it is asked for."""
        self.say(f"auditing {name} ..", "muted")
        catalog = self.desk.catalog
        self.background("audit", lambda stopped: open_sheet(catalog, name), done)

    def _show(self, opened: OpenedSheet) -> None:
        self._opened, self._place = opened, 0
        self._grids = [
            toned_grid(
                table, lambda row: _TONES.get(row.get("verdict", row.get("fits")), ""), ("verdict",)
            )
            for table in opened.tables
        ] or [NOTHING]
        self._show_table()
        self._tell()
        study = opened.study
        summary = study.findings[0].partition(" (")[0] if study.findings else "words and laws"
        bad = any(row.tone == "bad" for row in self._grids[0].rows)
        self.say(f"{study.title}: {summary}", "warn" if bad else "")

    def _tell(self) -> None:
        """On the row under the cursor; on the whole sheet while the list of sheets has the
        focus."""
        opened = self._opened
        if opened is None:
            return
        note, whole = self.query_one("#said", Note), not (self._rows.has_focus and self._rows.key)
        note.border_title = "What follows from the sheet" if whole else "The claim"
        if not whole:
            note.show(detail(opened, self._place, self._rows.key))
            return
        findings: list[Line] = [(f"- {line}", "") for line in opened.study.findings]
        note.show([*findings, *((line, "muted") for line in opened.study.about)])

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
        if path := event.value.strip():
            self._audit(path, self._own_opened)

    def _own_opened(self, opened: OpenedSheet) -> None:
        """A file joins the list."""
        if opened.name not in {row.key for row in self._sheet_rows.grid.rows}:
            self._own.append(opened.name)
        self._wanted = opened.name
        self._list()
        self._show(opened)
        self._rows.focus()

    def action_own(self) -> None:
        self.query_one("#audit-own", Input).focus()

    def action_table(self, by: int) -> None:
        super().action_table(by)
        self._tell()

    def action_sort(self) -> None:
        (self._sheet_rows if self._sheet_rows.has_focus else self._rows).sort_next()

    def action_next_contradiction(self) -> None:
        if self._opened is None:
            return
        if self._place:
            self.action_table(-self._place)
        bad = [row.key for row in self._rows.grid.rows if row.tone == "bad"]
        here = int(self._rows.key) if self._rows.has_focus and self._rows.key else -1
        if not bad:
            self.say("nothing in this sheet contradicts anything else in it", "good")
            return
        self._rows.focus()
        self._rows.select(next((key for key in bad if int(key) > here), bad[0]))
