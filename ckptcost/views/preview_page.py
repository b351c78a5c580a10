"""A report before it is written: in which format, what its file is called, and the command that
prints the very same text."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ckptcost.errors import InputError
from ckptcost.jobs.model import Answer
from ckptcost.present.amounts import count, size
from ckptcost.present.grid import Grid, Head, Order, Row, Tone
from ckptcost.report.study import Study
from ckptcost.views import files
from ckptcost.views.desk import Desk
from ckptcost.views.paths import path_of
from ckptcost.views.preview import RUN, Answered
from ckptcost.views.studies import grid_of

if TYPE_CHECKING:
    from ckptcost.report.document import Row as Case

FORMATS = (
    ("text", "text", "txt"),
    ("md", "Markdown", "md"),
    ("json", "JSON", "json"),
    ("csv", "CSV", "csv"),
)
"""as the command line calls it, as people do, and how a file's name ends"""

ONE_SAVE = (
    "rate_bytes_per_s",
    "stall_s",
    "save_gpu_hours",
    "save_energy_kwh",
    "save_storage_kwh",
    "save_cost_usd",
    "save_location_kgco2e",
)
"""columns of a report behind those of its first table"""


class Page(NamedTuple):
    """One text, exactly as the command prints it."""

    lines: tuple[str, ...]
    text: str
    command: str
    about: str
    """format and length"""
    form: str


def page(found: Answered, form: str, table: str = "") -> Page:
    """The text in one format; `table` is which of them a CSV holds, else the first."""
    words = [
        *found.words,
        *(["-f", form] if form != "text" else ["--full"]),
        *(["--table", table] if form == "csv" and table else []),
    ]
    of_study = isinstance(found.found, Study)
    text = (_of_study if of_study else _of_report)(
        found, form, table, _without_folders(words, found.paths)
    )
    lines = text.splitlines()
    name = next(name for each, name, _ in FORMATS if each == form)
    which = f" of {table}" if form == "csv" and table else ""
    return Page(
        tuple(lines),
        text,
        shlex.join(words),
        f"{name}{which}, {count(len(lines))} lines, {size(len(text.encode()))}",
        form,
    )


def _of_study(found: Answered, form: str, table: str, words: Sequence[str]) -> str:
    from ckptcost.report import study_views

    study = found.found
    assert isinstance(study, Study)
    if form == "json":
        from ckptcost.report.study_document import build

        return build(study, found.catalog, words, found.files).to_json()
    if form == "csv":
        return study_views.to_csv(study, table or None)
    return study_views.to_markdown(study) if form == "md" else study_views.text(study)


def _of_report(found: Answered, form: str, table: str, words: Sequence[str]) -> str:
    from ckptcost.report.build import build, plain
    from ckptcost.report.text import text, to_markdown
    from ckptcost.report.to_csv import of_report

    answered = found.found
    assert isinstance(answered, Answer)
    if form == "json":
        return str(build(answered, found.catalog, words, found.files).to_json())
    report = plain(answered, found.catalog)
    return {"csv": of_report, "md": to_markdown, "text": text}[form](report)


def _without_folders(words: Sequence[str], paths: Sequence[str]) -> list[str]:
    """As the command line writes its own words into a document."""
    out = list(words)
    for path in filter(None, paths):
        out = [
            (
                word[: -len(path)] + os.path.basename(os.path.normpath(path))
                if word.endswith(path)
                else word
            )
            for word in out
        ]
    return out


def exported(found: Answered) -> Any:
    """For a file in another format."""
    if isinstance(found.found, Study):
        return found.found
    from ckptcost.report.build import build

    return build(found.found, found.catalog, found.words, found.files)


def first_table(found: Answered) -> Grid | None:
    """The first table that people are shown."""
    if isinstance(found.found, Study):
        return next(
            (grid_of(table) for table in found.found.tables if table.shown and table.rows), None
        )
    from ckptcost.report.build import plain
    from ckptcost.report.text import one_save

    report = plain(found.found, found.catalog)
    title, header, rows, note = one_save(report)
    heads = tuple(Head(str(at), label, left=at == 0) for at, label in enumerate(header))
    figures = {case.tier: case for case in reversed(report.cases)}
    orders = [(row[0], *_order(figures[row[0]]))[: len(header)] for row in rows]
    return Grid(
        heads,
        [Row(row[0], tuple(row), order) for row, order in zip(rows, orders, strict=True)],
        title,
        note,
    )


def _order(case: Case) -> tuple[Order, ...]:
    """What the cells behind a tier's name are sorted by."""
    claim = next(
        (each for each in case.claims if each["what"] == "energy" and each["this_size"]), None
    )
    claimed = (
        None
        if claim is None
        else next((each for each in (claim.get("low"), claim["value"]) if each is not None), None)
    )
    return (*(case.values[name] for name in ONE_SAVE), claimed)


def file_name(desk: Desk, subject: str, form: str) -> str:
    """What the file is called where nobody says otherwise."""
    ending = next(end for each, _, end in FORMATS if each == form)
    if subject.startswith(RUN):
        return f"run-{subject.removeprefix(RUN)}.{ending}"
    return f"{Path(desk.base).stem}-{subject}.{ending}"


def renamed(name: str, form: str) -> str:
    """The same name with the ending of another format, where it has one of these endings."""
    endings = {f".{end}" for _, _, end in FORMATS}
    stem, dot, last = name.rpartition(".")
    ending = next(end for each, _, end in FORMATS if each == form)
    return f"{stem}.{ending}" if dot and f".{last}" in endings else name


def standing(name: str) -> tuple[str, Tone]:
    """What will happen to the file that is named."""
    if not name.strip():
        return "no file is named", "bad"
    try:
        target = path_of(name)
        if target.is_dir():
            return "is a folder", "bad"
        if not target.parent.is_dir():
            return f"no folder {target.parent}", "bad"
        return ("exists: will ask", "warn") if target.exists() else ("new file", "muted")
    except (InputError, OSError) as error:
        return str(error), "bad"


def write(text: str, name: str, over: bool) -> str:
    """Whole or not at all, and what was done. Raises OutputError, one line."""
    where = files.write_text(text, name, over)
    return f"wrote {where}, {size(len(text.encode()))}"
