"""A report before it is written: what of, in which format, the text itself, and the file. What can
be reported are questions about the desk and the recorded runs, each with its study."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from ckptcost.first.errors import CkptcostError, InputError
from ckptcost.first.jobs.compare import MOST
from ckptcost.first.jobs.model import model, one_of
from ckptcost.first.present.amounts import count, size
from ckptcost.first.present.grid import Grid, GridHead, Row, Tone
from ckptcost.first.questions.compare import compare
from ckptcost.first.questions.optimize import optimize
from ckptcost.first.questions.sensitivity import sensitivity
from ckptcost.first.report.studies.model import study_of
from ckptcost.first.report.studies.runs import list_of
from ckptcost.first.report.study import Study
from ckptcost.first.runs import store
from ckptcost.first.runs.summary import summary_of
from ckptcost.first.tui import files
from ckptcost.first.tui.clipboard import copy
from ckptcost.first.tui.commands import Command, bindings
from ckptcost.first.tui.desk import OWN, Desk, by_flags, scenario_of
from ckptcost.first.tui.modals.confirm import Confirm
from ckptcost.first.tui.screens import model_view
from ckptcost.first.tui.screens.base import ModeScreen, Stopped, panel
from ckptcost.first.tui.screens.model_runs import METRICS
from ckptcost.first.tui.screens.recorded_run import RUNS
from ckptcost.first.tui.screens.runs_entries import source_at
from ckptcost.first.tui.study_grids import tables_of
from ckptcost.first.tui.widgets.listing import Listing
from ckptcost.first.tui.widgets.rows import Rows

MOST_KEPT = 12
"""answers"""
RUN = "run:"
"""how the subject of a recorded run begins"""
MOST_VARIANTS = MOST - 1
"""beside the reference"""
MOST_RUNS = 200
OF_METRIC = {name: metric.q.measure for name, metric in METRICS.items()} | {"time": "wall"}
FORMATS = {"txt": "text", "md": "Markdown", "json": "JSON", "csv": "CSV"}
"""by how a file's name ends, what people call it"""


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
        self.background("runs", lambda stopped: runs(), self._runs_found)

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
        rows = [*subjects(self.desk), *self._runs]
        self._what.show(Grid((GridHead("what", "what to report", left=True),), rows))
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
            state = state_of(desk, subject)
            answer = kept.pop(state, None) or answered(desk, subject, stopped)
            if not subject.startswith(RUN):
                kept[state] = answer
            while len(kept) > MOST_KEPT:
                kept.pop(next(iter(kept)))
            return page(answer, desk, form, table)

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
            self._suggested = file_name(self.desk, self._subject, self._form)
            name.value = self._suggested
        else:
            name.value = renamed(name.value, self._form)
        self._standing_shown()

    def _standing_shown(self) -> None:
        text, tone = standing(self._file.value)
        shown = self.query_one("#report-standing", Static)
        shown.set_classes(tone)
        shown.update(text)

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
        elif not standing(self._file.value)[0].startswith("exists"):
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


# what can be reported


class ReportAnswer(NamedTuple):
    """What was found, before anybody chose a format."""

    study: Study
    words: list[str]
    """of the command without a format"""
    note: str = ""
    """what the text does not say of itself"""

    @property
    def command(self) -> str:
        return shlex.join(["ckptcost", *self.words])

    @property
    def tables(self) -> tuple[str, ...]:
        """What a CSV can hold one of."""
        return tuple(table.id for table in self.study.tables)


def _of_model(desk: Desk) -> ReportAnswer:
    view = model_view.evaluate(desk)
    flags, asked = model_view.flags(view), scenario_of(desk)
    named = dict(pairwise(flags))
    tiers = [flags[at + 1] for at, word in enumerate(flags) if word == "--tier"]
    found = model(desk.catalog, asked.layers(), tiers, (), named.get("--against"))
    return ReportAnswer(study_of(found, desk.catalog), ["model", *asked.words(), *flags])


def _of_optimum(desk: Desk) -> ReportAnswer:
    asked = scenario_of(desk)
    tiers = [word for tier in desk.tiers for word in ("--tier", tier)]
    found = optimize(asked.base, changes=asked.settings(), tier=desk.tiers, catalog=desk.catalog)
    return ReportAnswer(found.study, ["optimize", *asked.words(), *tiers])


def _of_ranking(desk: Desk) -> ReportAnswer:
    asked, of = scenario_of(desk), OF_METRIC.get(desk.metric, "kwh")
    asked = _on_tier(asked, desk.tier_chosen())
    found = sensitivity(asked.base, changes=asked.settings(), of=of, catalog=desk.catalog)
    return ReportAnswer(found.study, ["sensitivity", *asked.words(), "--of", of])


def _of_tiers(desk: Desk) -> ReportAnswer:
    asked = _on_tier(desk.without("tier.id"), _reference(desk))
    held = [f"tier.id={tier}" for tier in _variants(desk)[:MOST_VARIANTS]]
    return _compared(asked, held)._replace(note=_left_out(desk))


def _of_changes(desk: Desk) -> ReportAnswer:
    if not desk.edits:
        raise InputError("nothing was changed over the scenario")
    return _compared(desk.plain(), [", ".join(desk.settings())])


def _compared(asked: Desk, variants: list[str]) -> ReportAnswer:
    found = compare(asked.base, changes=asked.settings(), variants=variants, catalog=asked.catalog)
    held = [word for each in variants for word in ("--with", each)]
    return ReportAnswer(found.study, ["compare", *asked.words(), *held])


def _on_tier(desk: Desk, tier: str) -> Desk:
    """The scenario on a tier, said as a flag where it is not its own."""
    own = str(one_of(desk.catalog, desk.layers()).words.get("tier.id", ""))
    return desk.edited("tier.id", tier) if tier not in ("", own) else desk


SUBJECTS: dict[str, tuple[str, Callable[[Desk], ReportAnswer]]] = {
    "model": ("the job's costs", _of_model),
    "optimize": ("the best interval", _of_optimum),
    "sensitivity": ("what the result hangs on", _of_ranking),
    "tiers": ("the tiers side by side", _of_tiers),
    "changes": ("what my changes do", _of_changes),
}


def subjects(desk: Desk) -> list[Row]:
    """What can be reported of the desk just now."""
    offered = {"tiers": bool(_variants(desk)), "changes": bool(scenario_of(desk).edits)}
    return [Row(key, (name,)) for key, (name, _) in SUBJECTS.items() if offered.get(key, True)]


def runs(within: Path | None = None) -> list[Row]:
    """The recorded runs, the latest first."""
    kept = store.list_runs(within).runs[:MOST_RUNS]
    names = [each.name for each in kept]
    (table,) = list_of([summary_of(each) for each in kept], [], Path()).tables
    return [
        Row(
            RUN + (each.name if names.count(each.name) == 1 else each.run),
            (f"run {row['started']} {row['id']}",),
        )
        for each, row in zip(kept, table.rows, strict=True)
    ]


def state_of(desk: Desk, subject: str) -> tuple[Any, ...]:
    """All that the answer depends on; two alike need no second look. A run's readings are kept
    elsewhere."""
    on = replace(desk, edits={})
    return subject, desk.catalog, tuple(desk.edits.items()), repr(on), desk.stamp()


def answered(desk: Desk, subject: str, stopped: Callable[[], bool] = lambda: False) -> ReportAnswer:
    """The answer, however long it takes. Raises CkptcostError where there is none."""
    if subject.startswith(RUN):
        word = subject.removeprefix(RUN)
        study = RUNS.load(source_at(word), stopped=stopped).study
        return ReportAnswer(study, ["report", word])
    with by_flags():
        return SUBJECTS[subject][1](desk)


def _variants(desk: Desk) -> list[str]:
    """The tiers that can be held against the reference, which a catalogue has to name; none where
    the scenario is wrong."""
    try:
        return [tier for tier in desk.tiers_shown() if tier and tier != _reference(desk)]
    except (InputError, OSError):
        return []


def _reference(desk: Desk) -> str:
    """The baseline, else the first of the tiers side by side; empty: the scenario's own."""
    shown, baseline = desk.tiers_shown(), desk.baseline
    if baseline == OWN and "" in shown:
        return ""
    return baseline if baseline in shown else shown[0]


def _left_out(desk: Desk) -> str:
    """Which tiers are not in the comparison."""
    shown, reference = desk.tiers_shown(), _reference(desk)
    held = (reference, *_variants(desk)[:MOST_VARIANTS])
    rest = [tier or OWN for tier in shown if tier not in held]
    if not rest:
        return ""
    why = f"`compare` takes {MOST}{' that have a name' if '' in shown and reference else ''}"
    return f"{len(shown) - len(rest)} of {len(shown)} tiers: {why}; left out: {', '.join(rest)}"


class Page(NamedTuple):
    """One text, exactly as the command prints it."""

    answer: ReportAnswer
    form: str
    text: str
    lines: list[str]
    command: str
    about: str
    """format and length"""


def page(answer: ReportAnswer, desk: Desk, form: str, table: str = "") -> Page:
    """The text in one format; `table` is which of them a CSV holds, else the first."""
    table = table if form == "csv" and table in answer.tables else ""
    words = ["--full"] if form == "txt" else ["-f", form, *(["--table", table] if table else [])]
    text = files.text_of(answer.study, form, desk, answer.command, table=table or None)
    lines = text.splitlines()
    about = [f"{FORMATS[form]}{f' of {table}' if table else ''}", f"{count(len(lines))} lines"]
    return Page(
        answer,
        form,
        text,
        lines,
        shlex.join(["ckptcost", *answer.words, *words]),
        ", ".join([*about, size(len(text.encode()))]),
    )


def file_name(desk: Desk, subject: str, form: str) -> str:
    """What the file is called where nobody says otherwise."""
    if subject.startswith(RUN):
        return f"run-{subject.removeprefix(RUN)}.{form}"
    return f"{Path(desk.base).stem}-{subject}.{form}"


def renamed(name: str, form: str) -> str:
    """The same name with the ending of another format, where it has one of these endings."""
    stem, dot, last = name.rpartition(".")
    return f"{stem}.{form}" if dot and last in FORMATS else name


def standing(name: str) -> tuple[str, Tone]:
    """What will happen to the file that is named."""
    try:
        target = files.target_of(name, over=True)
        if not target.parent.is_dir():
            return f"no folder {target.parent}", "bad"
        return ("exists: will ask", "warn") if target.exists() else ("new file", "muted")
    except (CkptcostError, OSError) as error:
        return str(error), "bad"
