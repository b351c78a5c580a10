"""A report before it is written: in which format, what its file is called, and the command that
prints the very same text."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ckptcost.errors import InputError
from ckptcost.present.amounts import count, size
from ckptcost.present.grid import Grid, Tone
from ckptcost.tui import files
from ckptcost.tui.desk import Desk
from ckptcost.tui.paths import path_of
from ckptcost.tui.screens.report_answers import RUN, Answered
from ckptcost.tui.study_grids import grid_of

FORMATS = (
    ("text", "text", "txt"),
    ("md", "Markdown", "md"),
    ("json", "JSON", "json"),
    ("csv", "CSV", "csv"),
)
"""as the command line calls it, as people do, and how a file's name ends"""


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
    if form == "json":
        from ckptcost.report.build import build

        words_told = _without_folders(words, found.paths)
        text = build(found.found, found.catalog, words_told, found.files).to_json()
    else:
        from ckptcost.report.study_views import view

        text = view(found.found, form, table or None, full=True)
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


def first_table(found: Answered) -> Grid | None:
    """The first table that people are shown."""
    return next(
        (grid_of(table) for table in found.found.tables if table.shown and table.rows), None
    )


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
