"""One recorded checkpoint, laid over the live screen or over a run: its rows of the report's
tables, the scenario's beside them, its phases and the trace around it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from ckptcost.first.errors import CkptcostError
from ckptcost.first.present.chart import Bar, Bars, ChartPart, Stat
from ckptcost.first.present.grid import Tone
from ckptcost.first.present.measured import reason_text
from ckptcost.first.report.studies.measure import study_of_one
from ckptcost.first.report.study import Column, Study, Table, cell
from ckptcost.first.tui.commands import Command, bindings
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.screens import against
from ckptcost.first.tui.screens.base import panel
from ckptcost.first.tui.screens.recorded_run import RecordedRun, RunSource
from ckptcost.first.tui.screens.runs_entries import source_at
from ckptcost.first.tui.screens.tables import HostScreen
from ckptcost.first.tui.widgets.bars import BarRows
from ckptcost.first.tui.widgets.note import Note
from ckptcost.first.tui.widgets.rows import Rows
from ckptcost.first.tui.widgets.stats import Stats
from ckptcost.first.tui.widgets.traces import TraceStack

TABLES = ("lines", "energies", "bill", "phases", "storage_windows", "known")
"""in the order in which they are shown"""
_TONES: dict[str, Tone] = {"stall": "bad", "undivided": "warn", "drain": "muted"}


class CheckpointScreen(HostScreen):
    """`which` is a checkpoint's name or its number in the run."""

    TITLE_TEXT = "A checkpoint"
    ABOUT = (
        "One save or load as it was recorded. Phases: training stands still in the stall and goes"
        " on in the drain; storage takes a snapshot, writes, syncs and commits. It is safe when its"
        " bytes are known to be on the storage, and the last table says how that is known. Joules"
        " are of the node's own meters, without PUE; beside the model they are at the facility,"
        " with the scenario's PUE, prices and grid factor, on the tier that is chosen. Cost and"
        " CO2e are of what the save holds up, line by line in the bill. A dash is not known, never"
        " zero."
    )
    KEYS_HERE: ClassVar[tuple[Command, ...]] = (
        Command(
            "checkpoint.previous", "left,p", "previous", "The checkpoint before", "step(-1)", 1
        ),
        Command("checkpoint.next", "right,n", "next", "The checkpoint after", "step(1)", 2),
        Command(
            "checkpoint.table",
            "t",
            "next table",
            "Show the next table: the model beside it, joules, bill, phases, disks, all else",
            "table(1)",
            3,
        ),
        Command("checkpoint.sort", "s", "sort", "Sort by the next column", "sort", 4),
        Command("checkpoint.table_back", "B", "table before", "Show the table before", "table(-1)"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS_HERE)
    DEFAULT_CSS = """
    CheckpointScreen #top { layout: horizontal; height: 3fr; }
    CheckpointScreen #left { width: 1fr; height: 1fr; }
    CheckpointScreen #trace { width: 1fr; height: 1fr; min-height: 12; }
    CheckpointScreen #table { height: 2fr; min-height: 6; }
    CheckpointScreen.-narrow #top { layout: vertical; height: 1fr; }
    CheckpointScreen.-narrow #left { height: auto; }
    CheckpointScreen.-narrow #said { height: 10; }
    CheckpointScreen.-narrow #trace { height: 12; }
    CheckpointScreen.-narrow #table { height: 1fr; }
    """

    def __init__(self, source: RunSource, which: str, host: str = "") -> None:
        super().__init__(source, host)
        self._which = which

    def body(self) -> Iterable[Widget]:
        yield Static(self._which, id="head", markup=False)
        yield Stats(id="stats")
        with VerticalScroll(id="top", can_focus=False):
            with Vertical(id="left"):
                yield panel(BarRows(id="phases"), "Phases", "on a time line from its begin")
                yield panel(Note(id="said"), "What to know")
            yield panel(TraceStack(id="trace"), "Trace", "seconds from its begin")
        yield panel(Rows(id="table"))

    def study_of(self, run: RecordedRun, desk: Desk) -> Study:
        return study_beside(run, run.place(self._which), desk)

    def head(self, run: RecordedRun, study: Study) -> str:
        return f"{study.title}   {study.about[0]}"

    def order(self, table: Table) -> int:
        return TABLES.index(table.id)

    def command_line(self) -> str:
        """What prints its readings, and then prices and the model beside them, of the first host
        of several."""
        run, lines = self._run, [table for table in self._tables if table.id == "lines"]
        if run is None:
            return ""
        if not lines or run.host != run.hosts[0]:
            return run.command
        return f"{run.command} && {against.command_of(self._source, self.desk)}"

    def exported(self) -> Any:
        return self._run.study if self._run is not None else None

    def _show(self, run: RecordedRun, study: Study) -> None:
        tables = {table.id: table for table in study.tables}
        (row,) = tables.pop("windows").rows
        super()._show(run, study._replace(tables=list(tables.values())))
        self._which = row["window"]
        self.query_one(Stats).show(stats_of(row, tables.get("bill")))
        self.query_one(BarRows).show(phases_of(tables["phases"], row["begin"] or 0.0))
        self.query_one(TraceStack).show(run.near(run.place(self._which)))

    def action_step(self, by: int) -> None:
        if self._run is None:
            return
        names = self._run.names
        place = self._run.place(self._which) + by
        if 0 <= place < len(names):
            self._which = names[place]
            self._read(self._host, self._run)
        else:
            self.say(f"There is none {'before' if by < 0 else 'after'} this one.")


class CheckpointOverLive(CheckpointScreen):
    """The same, of a run that is being recorded: what was written so far."""

    MODE = "live"

    def __init__(self, path: str, which: str) -> None:
        try:
            source = source_at(path)
        except (CkptcostError, OSError):  # who reads it says why
            source = RunSource(path, "", 0, saves=0)
        super().__init__(source, which)


def study_beside(run: RecordedRun, place: int, desk: Desk) -> Study:
    """One checkpoint, and the same save as the scenario has it."""
    run.near(place)  # here, where nobody waits at a key
    study = study_of_one(run.seen, place)
    tables = {table.id: table for table in study.tables}
    tables["energies"] = with_reasons(tables["energies"])
    tables["known"] = known(tables["windows"])
    try:
        beside = against.study_against(run.seen.only(place), desk)
    except (CkptcostError, OSError) as error:
        study = study._replace(warnings=[*study.warnings, ("NO_MODEL", str(error))])
    else:
        tables |= {table.id: table for table in beside.tables if table.id in ("lines", "bill")}
        study = study._replace(
            about=[*study.about, *beside.about],
            findings=[*study.findings, *beside.findings],
            warnings=[*study.warnings, *beside.warnings],
        )
    return study._replace(tables=[_of_one(table) for table in tables.values()])


def _of_one(table: Table) -> Table:
    """All of its rows are of the same checkpoint, so none needs to say so."""
    return table._replace(columns=tuple(c for c in table.columns if c.id != "window"))


def with_reasons(table: Table) -> Table:
    """Joules with who measured them, or why they are not known."""
    shown = ("source", "why")
    columns = tuple(c._replace(shown=c.shown or c.id in shown) for c in table.columns)
    rows = [row | {"why": reason_text(row["why"])} for row in table.rows]
    return table._replace(columns=columns, rows=rows)


def known(table: Table) -> Table:
    """A table of one row on its side: everything that is known, a line each."""
    (row,) = table.rows
    values = ((column, row.get(column.id)) for column in table.columns)
    rows = [
        {
            "what": column.label if column.shown else column.id.replace("_", " "),
            "value": reason_text(value) if "why" in column.id else cell(value, column.unit),
            "meaning": column.meaning,
        }
        for column, value in values
        if value not in (None, "")
    ]
    columns = (Column("what", "what"), Column("value", "value"), Column("meaning", "meaning"))
    return Table("known", "All that is known of it", columns, rows)


def stats_of(row: dict[str, Any], bill: Table | None) -> list[Stat]:
    """Its figures; cost and CO2e as the bill has them."""
    total = bill.rows[-1] if bill is not None else {}
    failed = bool(row["error"])
    cost, carbon = _with_unit(total, "measured_cost"), _with_unit(total, "measured_location", "kg")
    return [
        Stat("size", cell(row["bytes"], "bytes"), _with_unit(row, "files", "files")),
        Stat(
            "safe after",
            cell(row["length"], "s"),
            "failed" if failed else "",
            "bad" if failed else "",
        ),
        Stat("stall", cell(row["stall"], "s"), _with_unit(row, "gpu_s", "GPU-s")),
        Stat("rate", cell(row["rate"], "bytes_per_s")),
        Stat("energy at node", _with_unit(row, "joules", "J") or "-", "metered until safe"),
        Stat("cost", cost or "-", "of the bill" if cost else ""),
        Stat("CO2e", carbon or "-", "of the bill, facility" if carbon else ""),
    ]


def _with_unit(row: dict[str, Any], name: str, unit: str = "USD") -> str:
    """Empty where it is not known."""
    value = row.get(name)
    return "" if value is None else f"{cell(value, '1')} {unit}"


def phases_of(table: Table, zero_s: float) -> Bars:
    """What training did and what storage did, from the begin on."""
    rows = []
    for row in table.rows:
        begin_s = row["begin"] - zero_s
        tone = _TONES.get(row["phase"], "" if row["of"] == "training" else "base")
        joules = _with_unit(row, "joules", "J")
        text = ", ".join(filter(None, (cell(row["length"], "s"), joules)))
        part = ChartPart(row["phase"], begin_s, begin_s + row["length"], tone)
        rows.append(Bar(row["phase"], [part], text, f"{row['of']}:{row['phase']}", tone))
    return Bars(rows, empty="No marks divide it into phases.")
