"""Published claims held against each other: the sheets, the tables of one, and what is to be said
on a row."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.catalog.store import Catalog
from ckptcost.core.audit import CONSISTENT, INCONSISTENT, NOT_DERIVABLE
from ckptcost.errors import CkptcostError
from ckptcost.jobs.audit import Audited, shipped
from ckptcost.jobs.audit import audit as audit_sheet
from ckptcost.present.grid import Grid, Head, Row, Tone
from ckptcost.questions.audit import audit
from ckptcost.report.study import Study, Table
from ckptcost.tui.paths import path_of
from ckptcost.tui.study_grids import toned_grid

VOCABULARY = "--vocabulary"
"""the row below the sheets: what a claim can speak of"""
_TONES: dict[Any, Tone] = {
    CONSISTENT: "good",
    INCONSISTENT: "bad",
    NOT_DERIVABLE: "muted",
    True: "good",
    False: "muted",
}
"""of a verdict, and of whether a reading fits"""
_SHEETS = (
    Head("id", "claims", left=True),
    Head("consistent", "holds", rank=2),
    Head("inconsistent", "fails"),
    Head("open", "open", rank=1),
)
Line = tuple[str, Tone]


class Sheets(NamedTuple):
    """What can be chosen."""

    grid: Grid
    refused: tuple[Line, ...] = ()
    """files that could not be read, and why"""


def sheets(catalog: Catalog, own: Sequence[str] = ()) -> Sheets:
    """The sheets that ship and the files opened here, with how they fare."""
    rows = [_sheet_row(each.sheet.id, each.sheet.id, each) for each in shipped(catalog)]
    refused: list[Line] = []
    for path in own:
        try:
            rows.append(_sheet_row(path, Path(path).name, audit_sheet(catalog, path)[0]))
        except (CkptcostError, OSError) as error:
            refused.append((str(error), "bad"))
    rows.append(Row(VOCABULARY, ("(vocabulary)", "", "", ""), ("", None, None, None), tone="muted"))
    return Sheets(Grid(_SHEETS, rows, "Claims"), tuple(refused))


def _sheet_row(key: str, name: str, audited: Audited) -> Row:
    counts = audited.counts().values()
    return Row(key, (name, *map(str, counts)), (name, *map(float, counts)))


def command(name: str) -> str:
    """What prints the same; the list of the sheets where none is named."""
    return shlex.join(["ckptcost", "audit", *([name] if name else [])])


class OpenSheet(NamedTuple):
    """One sheet after its audit, or the vocabulary."""

    name: str
    """as the command line takes it"""
    study: Study

    @property
    def summary(self) -> str:
        if self.name == VOCABULARY:
            return ", ".join(f"{len(table.rows)} {table.id}" for table in self.study.tables)
        return self.study.findings[0].partition(" (")[0]

    @property
    def about(self) -> list[Line]:
        """Of the sheet as a whole."""
        findings: list[Line] = [(f"- {line}", "") for line in self.study.findings]
        return [*findings, *((line, "muted") for line in self.study.about)]

    @property
    def tables(self) -> list[Table]:
        return [table for table in self.study.tables if table.rows]

    @property
    def grids(self) -> list[Grid]:
        """Its tables. A row's key is its place."""
        return [toned_grid(table, _tone) for table in self.tables] or [
            Grid(empty="This sheet claims nothing that can be held against anything.")
        ]

    @property
    def contradictions(self) -> list[str]:
        return [row.key for row in self.grids[0].rows if row.tone == "bad"]

    def detail(self, place: int, key: str) -> list[Line]:
        """On a row of a table: in whose words, what follows from what, and what contradicts it or
        the rest of its claim; of a word all laws with it."""
        row = self.tables[place].rows[int(key)]
        if self.name == VOCABULARY:
            word = row.get("key") or row["law"]
            laws = [_law_text(law) for law in self.tables[1].rows if word in _words(law)]
            return [(f"Laws with {word}", "base"), *((text, "") for text in laws)]
        claim, _, what = row["claim"].partition(".")
        about = self.study.question["claims"].get(claim, {}).get("about", "")
        heading = f"{about}, {what}" if about else row["claim"]
        lines: list[Line] = [(heading, "base")]
        if row.get("said"):
            lines.append((f'"{row["said"]}"', "muted"))
        tone: Tone = "bad" if row.get("verdict") == INCONSISTENT else ""
        findings, own = self.study.findings, f"{heading}: "
        lines += [(line.removeprefix(own), tone) for line in findings if line.startswith(own)]
        lines += [(row["arithmetic"], "")] if row.get("arithmetic") else []
        lines += [(f"assumes {row['assumes']}", "muted")] if row.get("assumes") else []
        beside = (line for line in findings if about and line.startswith(f"{about}, "))
        lines += [(line, "muted") for line in beside if not line.startswith(own)]
        return lines


def _tone(row: dict[str, Any]) -> Tone:
    return _TONES.get(row.get("verdict", row.get("fits")), "")


def _words(law: dict[str, Any]) -> list[str]:
    return [law["law"], *re.findall(r"\w+", law["formula"])]


def _law_text(law: dict[str, Any]) -> str:
    assumes = f"  (assumes {law['assumes']})" if law["assumes"] else ""
    return f"{law['formula']}{assumes}"


def open_sheet(catalog: Catalog, name: str) -> OpenSheet:
    """The audit of a shipped sheet or of a file, or the vocabulary. Raises InputError where the
    file is wrong."""
    if name == VOCABULARY:
        return OpenSheet(name, audit(vocabulary=True, catalog=catalog).study)
    path = str(path_of(name)) if name.startswith("~") else name
    return OpenSheet(path, audit(path, catalog=catalog).study)
