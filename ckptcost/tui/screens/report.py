"""A report before it is written: what of, in which format, the text itself, and the file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from ckptcost.errors import CkptcostError
from ckptcost.present.amounts import size
from ckptcost.present.grid import Grid, Row
from ckptcost.tui import files
from ckptcost.tui.clipboard import copy
from ckptcost.tui.commands import Command, bindings
from ckptcost.tui.modals.confirm import Confirm
from ckptcost.tui.screens import report_answers
from ckptcost.tui.screens.base import ModeScreen, Stopped, panel
from ckptcost.tui.screens.report_answers import FORMATS, Page, ReportAnswer
from ckptcost.tui.study_grids import tables_of
from ckptcost.tui.widgets.listing import Listing
from ckptcost.tui.widgets.rows import Rows

MOST_KEPT = 12
"""answers"""


class ReportScreen(ModeScreen):
    """Mode 8."""

    MODE = "report"
    ABOUT = (
        "The text on the right is what the command at the left prints, byte for byte; a JSON"
        " document differs in the moment it was made. Nothing is written before w. A file that is"
        " there already is replaced only after a question, and appears whole or not at all."
    )
    KEYS_HERE: ClassVar[tuple[Command, ...]] = (
        Command(
            "report.format", "f", "format", "Next format: text, Markdown, JSON, CSV", "format", 1
        ),
        Command("report.write", "w", "write", "Write the file", "write", 2),
        Command("report.copy", "c", "copy text", "Copy the whole text", "copy_text", 3),
        Command("report.name", "n", "file name", "Change the name of the file", "name", 4),
        Command("report.table", "t", "table", "CSV: the next table of the answer", "next_table", 5),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS_HERE)
    DEFAULT_CSS = """
    ReportScreen #report-all { layout: horizontal; }
    ReportScreen #report-left { width: 34; }
    ReportScreen #report-what-panel { height: 1fr; }
    ReportScreen #report-file { height: auto; }
    ReportScreen #report-form { height: 1; }
    ReportScreen #report-name { background: $boost; scrollbar-size: 0 0; margin-top: 1; }
    ReportScreen #report-standing { height: 1; color: $text-muted; }
    ReportScreen #report-command { height: auto; max-height: 8; color: $text-muted; margin-top: 1; }
    ReportScreen.-narrow #report-all { layout: vertical; }
    ReportScreen.-narrow #report-left { width: 1fr; height: 7; layout: horizontal; }
    ReportScreen.-narrow #report-what-panel { width: 2fr; height: 7; }
    ReportScreen.-narrow #report-file { width: 3fr; height: 7; }
    ReportScreen.-narrow #report-name { margin-top: 0; }
    ReportScreen.-narrow #report-command { height: auto; max-height: 3; margin-top: 0; }
    ReportScreen.-narrow #report-preview { height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[tuple[Any, ...], ReportAnswer] = {}
        self._page: Page | None = None
        self._subject, self._form, self._table = "model", "txt", ""
        self._shown = ("", "")
        """the subject and the format of what is seen"""
        self._runs: list[Row] = []
        self._suggested = ""
        self._awaited = self._write_awaited = False

    def body(self) -> Iterable[Widget]:
        with Horizontal(id="report-all"):
            with Vertical(id="report-left"):
                with panel(Vertical(id="report-what-panel"), "Report"):
                    yield Rows(id="report-what")
                with panel(Vertical(id="report-file"), "File"):
                    yield Static(id="report-form")
                    yield Input(id="report-name", compact=True, select_on_focus=False)
                    yield Static(id="report-standing", markup=False)
                    yield Static(id="report-command", markup=False)
            with panel(Vertical(id="report-preview"), "Preview"):
                yield Listing(id="report-text")

    def on_mount(self) -> None:
        super().on_mount()
        self._what.focus()

    def shown(self) -> None:
        self.background("runs", lambda stopped: report_answers.runs(), self._runs_found)

    def on_desk(self) -> None:
        self._list()
        self._work_out()

    def command_line(self) -> str:
        return self._page.command if self._page is not None else ""

    def table(self) -> Grid | None:
        return next(iter(tables_of(self._page.answer.study)), None) if self._page else None

    def exported(self) -> Any:
        return self._page.answer.study if self._page is not None else None

    # what

    @property
    def _what(self) -> Rows:
        return self.query_one("#report-what", Rows)

    @property
    def _file(self) -> Input:
        return self.query_one("#report-name", Input)

    def _list(self) -> None:
        rows = [*report_answers.subjects(self.desk), *self._runs]
        self._what.show(report_answers.grid_of(rows))
        self._subject = self._what.key or self._subject

    def _runs_found(self, runs: list[Row]) -> None:
        self._runs = runs
        self._list()

    def on_rows_moved(self, event: Rows.Moved) -> None:
        if event.key and event.key != self._subject:
            self._subject, self._table = event.key, ""
            self._work_out()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.query_one(Listing).focus()

    # the text

    def _work_out(self) -> None:
        self._forms_shown()
        self._named()
        desk, subject, form, table = self.desk, self._subject, self._form, self._table
        kept = self._kept
        self.query_one("#report-preview").border_subtitle = "working .."
        self._awaited = True

        def work(stopped: Stopped) -> Page:
            state = report_answers.state_of(desk, subject)
            answer = kept.pop(state, None) or report_answers.answered(desk, subject, stopped)
            if not subject.startswith(report_answers.RUN):
                kept[state] = answer
            while len(kept) > MOST_KEPT:
                kept.pop(next(iter(kept)))
            return report_answers.page(answer, desk, form, table)

        self.background(
            "report", work, lambda page: self._found(page, (subject, form)), self._failed
        )

    def _found(self, page: Page, shown: tuple[str, str]) -> None:
        self.query_one(Listing).show(page.lines, stay=shown == self._shown)
        self._page, self._shown, self._awaited = page, shown, False
        note = page.answer.note
        self._titled(f"Preview: {note.partition(':')[0]}" if note else "Preview", page.about)
        self.query_one("#report-command", Static).update(f"prints the same:\n{page.command}")
        self.say(note, "warn" if note else "")
        if self._write_awaited:
            self._write_awaited = False
            self.action_write()

    def _failed(self, text: str) -> None:
        self._page = None
        self._awaited = self._write_awaited = False
        self.query_one(Listing).show(["There is nothing to report:", "", text], "bad")
        self._titled("Preview", "")
        self.query_one("#report-command", Static).update("")
        self.say(text, "bad")

    def _titled(self, title: str, about: str) -> None:
        panel = self.query_one("#report-preview")
        panel.border_title, panel.border_subtitle = Content(title), Content(about)

    def _forms_shown(self) -> None:
        parts = [
            (
                f"[{name}]" if form == self._form else f" {name} ",
                f"{'bold reverse ' if form == self._form else ''}@click=screen.form('{form}')",
            )
            for form, name in FORMATS.items()
        ]
        self.query_one("#report-form", Static).update(Content.assemble(*parts))

    def action_form(self, form: str) -> None:
        before, self._form = self._form, form
        if form != before:
            self._work_out()

    def action_format(self) -> None:
        self.action_form(_next(tuple(FORMATS), self._form))

    def action_next_table(self) -> None:
        if self._page is not None:
            self._form, self._table = "csv", _next(self._page.answer.tables, self._table)
            self._work_out()

    def action_copy_text(self) -> None:
        copy(self.app, self._page.text if self._page is not None else "", "the report")

    # the file

    def _named(self) -> None:
        """A name that nobody chose follows what is shown; a chosen one keeps all but its ending."""
        name = self._file
        if name.value in ("", self._suggested):
            self._suggested = report_answers.file_name(self.desk, self._subject, self._form)
            name.value = self._suggested
        else:
            name.value = report_answers.renamed(name.value, self._form)
        self._standing_shown()

    def _standing_shown(self) -> None:
        text, tone = report_answers.standing(self._file.value)
        standing = self.query_one("#report-standing", Static)
        standing.set_classes(tone)
        standing.update(text)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._standing_shown()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_write()

    def action_name(self) -> None:
        self._file.focus()

    def action_write(self) -> None:
        if self._awaited:  # the file's name is of what is worked out, the page still that before
            self._write_awaited = True
        elif self._page is None:
            self.say("there is nothing to write yet", "warn")
        elif not report_answers.standing(self._file.value)[0].startswith("exists"):
            self._write(self._page)
        else:
            page = self._page
            self.app.push_screen(
                Confirm("Replace it?", f"{self._file.value} is there already.", "replace"),
                lambda yes: self._write(page, over=True) if yes else None,
            )

    def _write(self, page: Page, over: bool = False) -> None:
        try:
            where = files.write_text(page.text, self._file.value, over)
        except (CkptcostError, OSError) as error:
            self.say(str(error), "bad")
        else:
            self.say(f"wrote {where}, {size(len(page.text.encode()))}", "good")
        self._standing_shown()


def _next(among: tuple[str, ...], now: str) -> str:
    """The one after; of what is not among them, the second: the first is seen already."""
    return among[(among.index(now) + 1 if now in among else 1) % len(among)]
