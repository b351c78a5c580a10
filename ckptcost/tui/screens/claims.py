"""Published claims held against each other: the sheets, the verdicts of one, and what is to be said
on each."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.catalog.store import Catalog
from ckptcost.core.audit import CONSISTENT, INCONSISTENT, NOT_DERIVABLE
from ckptcost.errors import CkptcostError
from ckptcost.jobs import audit as job
from ckptcost.jobs.audit import Audited
from ckptcost.present.grid import Grid, Head, Order, Row, Tone
from ckptcost.report.studies import audit as studies
from ckptcost.report.study import Study, Table
from ckptcost.tui.paths import path_of
from ckptcost.tui.study_grids import grid_of

VOCABULARY = "--vocabulary"
"""the row below the sheets: what a claim can speak of"""
_TONES: dict[str, Tone] = {CONSISTENT: "good", INCONSISTENT: "bad", NOT_DERIVABLE: "muted"}
_SHEETS = (
    Head("id", "claims", left=True),
    Head("consistent", "holds", rank=2),
    Head("inconsistent", "fails"),
    Head("open", "open", rank=1),
)
_VERDICTS = (
    Head("claim", "claim", left=True),
    Head("stated", "says"),
    Head("follows", "implies"),
    Head("verdict", "verdict", left=True),
    Head("apart", "by how much", left=True, rank=1),
)
Told = tuple[str, Tone]


class Sheets(NamedTuple):
    """What can be chosen, and the document of the whole list."""

    grid: Grid
    study: Study
    refused: tuple[Told, ...] = ()
    """files that could not be read, and why"""


class Opened(NamedTuple):
    """One sheet after its audit."""

    name: str
    """as the command line takes it"""
    title: str
    verdicts: Grid
    study: Study
    told: dict[str, tuple[Told, ...]]
    """by row: reading, contradiction, sources"""
    about: tuple[Told, ...]
    """of the sheet as a whole"""
    summary: str

    @property
    def contradictions(self) -> list[str]:
        return [row.key for row in self.verdicts.rows if row.tone == "bad"]


def sheets(catalog: Catalog, own: Sequence[str] = ()) -> Sheets:
    """The sheets that ship and the files opened here, with how they fare."""
    shipped = job.shipped(catalog)
    rows = [_sheet_row(audited.sheet.id, audited.sheet.id, audited) for audited in shipped]
    refused: list[Told] = []
    for path in own:
        try:
            rows.append(_sheet_row(path, Path(path).name, job.audit(catalog, path)[0]))
        except (CkptcostError, OSError) as error:
            refused.append((str(error), "bad"))
    rows.append(Row(VOCABULARY, ("(vocabulary)", "", "", ""), ("", None, None, None), tone="muted"))
    return Sheets(Grid(_SHEETS, rows, "Claims"), studies.overview(shipped), tuple(refused))


def _sheet_row(key: str, name: str, audited: Audited) -> Row:
    counts = [audited.count(word) for word in (CONSISTENT, INCONSISTENT, NOT_DERIVABLE)]
    return Row(key, (name, *map(str, counts)), (name, *map(float, counts)))


def command(name: str) -> str:
    """What prints the same; the list of the sheets where none is named."""
    return shlex.join(["ckptcost", "audit", *([name] if name else [])])


def opened(catalog: Catalog, name: str) -> Opened:
    """The audit of a shipped sheet or of a file, or the vocabulary. Raises InputError where the
    file is wrong."""
    if name == VOCABULARY:
        return _vocabulary()
    path = str(path_of(name)) if name.startswith("~") else name
    audited, _ = job.audit(catalog, path)
    study = studies.study_of(audited, catalog.sources)
    verdicts, follows, readings = study.tables
    rows: list[Row] = []
    told: dict[str, tuple[Told, ...]] = {}
    for at, (verdict, row) in enumerate(zip(audited.verdicts, verdicts.rows, strict=True)):
        key = _key(rows, row["claim"])
        rows.append(_row(key, row, row["verdict"], _TONES[verdict.word], float(at)))
        told[key] = (
            *_of_row(row, study, audited),
            *_readings(row["claim"], readings),
            *_beside(row, study, audited),
            *_source(study),
        )
    for at, row in enumerate(follows.rows, start=len(rows)):
        key = _key(rows, row["claim"])
        rows.append(_row(key, row, "not stated", "muted", float(at)))
        told[key] = (*_of_row(row, study, audited), *_beside(row, study, audited), *_source(study))
    counts = audited.counts()
    summary = ", ".join(f"{count} {word}" for word, count in counts.items())
    about: tuple[Told, ...] = (
        *((f"- {line}", "") for line in study.findings),
        *((line, "muted") for line in study.about),
    )
    grid = Grid(
        _VERDICTS,
        rows,
        audited.sheet.name,
        "",
        "This sheet claims nothing that can be held against anything.",
    )
    return Opened(path, audited.sheet.name, grid, study, told, about, summary)


def _key(rows: Sequence[Row], claim: str) -> str:
    taken = {row.key for row in rows}
    return claim if claim not in taken else f"{claim} #{len(rows)}"


def _row(key: str, row: dict[str, Any], verdict: str, tone: Tone, at: float) -> Row:
    """A row of the study; verdicts sort by how bad they are, and all else as it is written."""
    cells = (
        row["claim"],
        row.get("stated") or "-",
        row["follows"] or "-",
        verdict,
        row.get("apart") or "-",
    )
    badness = {INCONSISTENT: 0.0, CONSISTENT: 1.0, NOT_DERIVABLE: 2.0}.get(verdict, 3.0)
    order: tuple[Order, ...] = (
        at,
        row.get("stated"),
        row.get("follows"),
        badness,
        row.get("factor"),
    )
    return Row(key, cells, order, tone)


def _of_row(row: dict[str, Any], study: Study, audited: Audited) -> list[Told]:
    """What is claimed, in whose words, what follows from what, and where that contradicts."""
    about = {claim.id: claim.about for claim in audited.sheet.claims}
    claim, _, what = row["claim"].partition(".")
    heading = f"{about[claim]}, {what}" if what and claim in about else row["claim"]
    out: list[Told] = [(heading, "base")]
    if row.get("said"):
        out.append((f'"{row["said"]}"', "muted"))
    sentence = next((line for line in study.findings if line.startswith(f"{heading}: stated ")), "")
    if sentence:
        out.append((sentence.removeprefix(f"{heading}: "), "bad"))
    elif row.get("verdict") == NOT_DERIVABLE:
        out.append((f"stated {row['stated']}; nothing else stated constrains it.", "muted"))
    elif row.get("verdict"):
        apart = f" ({row['apart']})" if row["apart"] else ""
        out.append(
            (
                (
                    f"stated {row['stated']}; the rest gives {row['follows']}:"
                    f" {row['verdict']}{apart}."
                ),
                _TONES[row["verdict"]],
            )
        )
    else:
        out.append((f"not stated; the rest gives {row['follows']}.", ""))
    if row["arithmetic"]:
        out.append((row["arithmetic"], ""))
    if row["assumes"] and not sentence:
        out.append((f"assumes {row['assumes']}", "muted"))
    out += [
        (line.removeprefix(f"{heading}: "), "")
        for line in study.findings
        if line.startswith(f"{heading}: ") and line != sentence
    ]
    return out


def _beside(row: dict[str, Any], study: Study, audited: Audited) -> list[Told]:
    """What is said on other quantities of the same claim: they have no row of their own where
    everything rests on them."""
    about = {claim.id: claim.about for claim in audited.sheet.claims}
    claim, _, what = row["claim"].partition(".")
    if not what or claim not in about:
        return []
    of = f"{about[claim]}, "
    judged = {f"{of}{verdict.what}: " for verdict in audited.verdicts if verdict.claim == claim}
    beside = [
        line
        for line in study.findings
        if line.startswith(of) and not line.startswith(tuple(judged))
    ]
    return (
        [("Of the same claim", "base"), *((line.removeprefix(of), "") for line in beside)]
        if beside
        else []
    )


def _readings(claim: str, readings: Table) -> list[Told]:
    """Other readings of the same claim, each with whether it would hold."""
    own = [row for row in readings.rows if row["claim"] == claim]
    out: list[Told] = [("Other readings", "base")] if own else []
    for row in own:
        if row["fits"]:
            out.append((f"{row['reading']}: gives {row['gives']}, which fits", "good"))
        else:
            out.append(
                (
                    f"{row['reading']}: gives {row['gives']}"
                    + (f", {row['apart']} apart" if row["apart"] else ", does not fit"),
                    "muted",
                )
            )
    return out


def _source(study: Study) -> list[Told]:
    return [(line, "muted") for line in study.about[:1] if line.startswith("Source: ")]


def _vocabulary() -> Opened:
    """What a claim can speak of; below it the laws between."""
    study = studies.vocabulary()
    words, laws = study.tables
    lines: tuple[Told, ...] = (
        (laws.title, "base"),
        *(
            (row["formula"] + (f"  (assumes {row['assumes']})" if row["assumes"] else ""), "")
            for row in laws.rows
        ),
    )
    grid = grid_of(words, [row["key"] for row in words.rows])
    naming = {
        row["key"]: tuple(line for line in lines[1:] if row["key"] in _words(line[0]))
        for row in words.rows
    }
    told = {
        key: ((f"Laws with {key}", "base"), *found) if found else lines
        for key, found in naming.items()
    }
    return Opened(
        VOCABULARY,
        study.title,
        grid,
        study,
        told,
        lines,
        f"{len(words.rows)} keys, {len(laws.rows)} laws",
    )


def _words(formula: str) -> set[str]:
    return set(
        "".join(
            c if c.isalnum() or c == "_" else " " for c in formula.partition("  (assumes")[0]
        ).split()
    )
