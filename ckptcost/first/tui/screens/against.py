"""Measured beside modelled: a recorded run against the desk's scenario, as `ckptcost compare
run:PATH SCENARIO` has it. Which line explains the difference, in words, as a waterfall, and line by
line."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import ClassVar

from textual.binding import BindingType
from textual.containers import Container
from textual.widget import Widget
from textual.widgets import Static

from ckptcost.first.errors import CkptcostError
from ckptcost.first.jobs.gap import FORCED, gap
from ckptcost.first.jobs.measured import Measured
from ckptcost.first.jobs.model import one_of
from ckptcost.first.layers import layers_for
from ckptcost.first.present.amounts import duration
from ckptcost.first.present.chart import Bars, hanging
from ckptcost.first.present.grid import Tone
from ckptcost.first.report.studies import gap as gap_study
from ckptcost.first.report.study import Study, Table
from ckptcost.first.tui.commands import Command, bindings
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.screens.recorded_run import RecordedRun, RunSource
from ckptcost.first.tui.screens.tables import HostScreen
from ckptcost.first.tui.widgets.bars import BarRows
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.rows import Rows

LINES = "lines"
PARTS = ("parts_save", "parts_load")


class AgainstScreen(HostScreen):
    """Laid over the list of runs or over a run; computed again when the scenario changes."""

    TITLE_TEXT = "Measured against modelled"
    ABOUT = (
        "The mean checkpoint of a recorded run beside what the scenario says of it, put onto the"
        " run's own machine: the model is scaled to what was measured, never the other way. Bars:"
        " each cause is changed from modelled to measured in turn, and they add up to the"
        " difference. At its size: the model with the measured bytes put in. What is not of the"
        " same thing is not held against each other, and the reason is given. Joules of both sides"
        " are at the facility, with the scenario's PUE."
    )
    KEYS_HERE: ClassVar[tuple[Command, ...]] = (
        Command(
            "against.table",
            "t",
            "next table",
            "Show the next table: lines, causes, ranges, joules, each save ...",
            "table(1)",
            1,
        ),
        Command(
            "against.calibrate",
            "c",
            "calibrate",
            "Take the model's figures from this run",
            "calibrate",
            2,
        ),
        Command(
            "against.host", "h", "next host", "The next host of a run of several", "next_host", 3
        ),
        Command("against.sort", "s", "sort", "Sort by the next column", "sort", 4),
        Command("against.table_back", "B", "table before", "Show the table before", "table(-1)"),
        Command("against.again", "R", "read again", "Read the run again", "again"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS_HERE)
    DEFAULT_CSS = """
    AgainstScreen #top { layout: horizontal; height: 1fr; }
    AgainstScreen #bars { width: 1fr; height: 1fr; display: none; }
    AgainstScreen.-tall #bars, AgainstScreen.-wide #bars { display: block; }
    AgainstScreen #said { width: 1fr; height: 1fr; }
    AgainstScreen #table { height: 1fr; }
    AgainstScreen.-narrow #top { layout: vertical; }
    """

    NOTHING = "Nothing is held against each other."

    def body(self) -> Iterable[Widget]:
        yield Static(self._source.title, id="head", markup=False)
        with Container(id="top"):
            yield Note(id="said", classes="panel")
            yield BarRows(id="bars", classes="panel")
        yield Rows(id="table", classes="panel")

    def on_mount(self) -> None:
        self.query_one("#said").border_title = "What explains it"
        super().on_mount()

    def study_of(self, run: RecordedRun, desk: Desk) -> Study:
        return study_against(run.seen, desk)

    def head(self, run: RecordedRun, study: Study) -> str:
        scenario = study.question.get("scenario") or "the scenario"
        return f"Run {run.source.short}{run.host_place} against {scenario}"

    def order(self, table: Table) -> tuple[bool, bool]:
        """Line by line first; what the text report leaves out for its length comes last."""
        return table.id != LINES, not table.shown

    def command_line(self) -> str:
        try:
            return command_of(self._source, self.desk)
        except CkptcostError:
            return ""

    def _show(self, run: RecordedRun, study: Study) -> None:
        super()._show(run, study)
        self.show_in("bars", bars_of(study))

    def _failed(self, text: str) -> None:
        """What was shown before is of another scenario, so it goes."""
        self._run = self._study = None
        self._tables, self._grids = [], []
        self.query_one(BarRows).show(Bars(empty="Nothing to draw."))
        super()._failed(text)


def settings_of(desk: Desk) -> tuple[str, tuple[str, ...]]:
    """The scenario's name and the flags over it, the chosen tier among them where it is not the
    scenario's own."""
    layers = desk.layers()
    own = str(one_of(desk.catalog, layers).words.get("tier.id", ""))
    tier = desk.tier_chosen()
    return desk.base, (*desk.settings(), *([f"tier.id={tier}"] if tier and tier != own else []))


def study_against(seen: Measured, desk: Desk) -> Study:
    """Raises CkptcostError where there is nothing to hold against each other."""
    base, settings = settings_of(desk)
    layers = layers_for(desk.catalog, base, None, list(settings))
    return gap_study.study_of(gap(desk.catalog, seen, layers))


def bars_of(study: Study) -> Bars:
    """From what is modelled, cause by cause, to what was measured."""
    tables = {table.id: table for table in study.tables}
    table = next((tables[id_] for id_ in PARTS if id_ in tables), None)
    if table is None:
        return Bars(
            title="From modelled to measured",
            empty="Size and time are not both known, so no cause can be told apart.",
        )
    of = table.id.removeprefix("parts_")
    times = (row for row in tables[LINES].rows if row["of"] == of and row["quantity"] == "time")
    modelled_s = float(next(times)["modelled"])
    *causes, ends = table.rows
    steps = [
        _step(row["cause"], float(row["seconds"])) for row in causes if row["seconds"] is not None
    ]
    measured_s = modelled_s + sum(more_s for _, more_s, *_ in steps)
    rows = [
        *hanging([("modelled", modelled_s, ends["modelled"], "base")]),
        *hanging(steps, modelled_s),
        *hanging([("measured", measured_s, ends["measured"], "base")]),
    ]
    return Bars(
        rows,
        title=f"From modelled to measured: one {of}, mean",
        note="each cause changed in this order; it adds up",
    )


def _step(cause: str, more_s: float) -> tuple[str, float, str, Tone]:
    if more_s > 0:
        return cause, more_s, f"+{duration(more_s)}", "bad"
    return cause, more_s, duration(more_s), "good" if more_s < 0 else "muted"


def command_of(source: RunSource, desk: Desk) -> str:
    """The command that prints the study; it takes the first host of several."""
    base, settings = settings_of(desk)
    return shlex.join(
        [
            "ckptcost",
            "compare",
            f"{FORCED}{source.word}",
            base,
            *(word for each in settings for word in ("--set", each)),
        ]
    )
