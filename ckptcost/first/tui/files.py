"""Scenario files and exports: what can be opened, what is written, and why it cannot be."""

from __future__ import annotations

import itertools
import os
import shlex
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path

from ckptcost.first.catalog.store import Catalog
from ckptcost.first.catalog.writing import write_whole
from ckptcost.first.core.size import full_bytes
from ckptcost.first.errors import OutputError, brief
from ckptcost.first.jobs.model import one_of
from ckptcost.first.layers import files_of, layers_for
from ckptcost.first.present.amounts import count, size
from ckptcost.first.present.grid import Grid, GridHead, Row
from ckptcost.first.report.study import Study
from ckptcost.first.tui.desk import Desk
from ckptcost.first.tui.paths import path_of
from ckptcost.first.tui.scenario_file import changed

FORMATS = ("csv", "html", "json", "md", "txt")
"""of an answer; the screen itself is an SVG"""


def presets(catalog: Catalog, recent: Iterable[str] = ()) -> Grid:
    """What can be opened: recent files first, then what ships."""
    rows = [
        _row(catalog, name)
        for name in dict.fromkeys(recent)
        if name.endswith(".toml") or "/" in name
    ]
    rows += [_row(catalog, name) for name in sorted(catalog.ids("scenario"))]
    heads = (
        GridHead("name", "scenario", left=True),
        GridHead("about", "what", left=True),
        GridHead("size", "a save", rank=1),
        GridHead("gpus", "GPUs"),
    )
    return Grid(heads, rows)


def _row(catalog: Catalog, name: str) -> Row:
    try:
        resolved = one_of(catalog, layers_for(catalog, name, None, ()))
    except (OSError, ValueError) as error:
        return Row(
            name, (name, brief(str(error), 60), "-", "-"), (name, "", None, None), tone="bad"
        )
    s = resolved.scenario
    bytes_, gpus = float(full_bytes(s.checkpoint)), float(s.cluster.gpus)
    return Row(
        name, (name, resolved.name, size(bytes_), count(gpus)), (name, resolved.name, bytes_, gpus)
    )


def opened(desk: Desk, text: str) -> Desk:
    """The desk on another scenario. Raises InputError where it cannot be read or computed."""
    base = str(path_of(text)) if text.startswith("~") else text
    found = desk.on(base)
    found.resolved()
    return found


def scenario_name(path: str) -> str:
    """A scenario file ends so, whether or not it was typed."""
    return path if path.endswith(".toml") or not path.strip() else f"{path}.toml"


def save_scenario(desk: Desk, path: str, over: bool = False) -> Path:
    """Write the changes as a file that extends what they were made over; into that file itself,
    where it is named. Raises CkptcostError."""
    target = target_of(scenario_name(path), over)
    own = target.exists() and Path(desk.base).exists() and target.samefile(desk.base)
    try:
        text = (
            changed(target.read_text("utf-8"), desk.edits, desk.tiers)
            if own
            else desk.to_toml(target.parent)
        )
    except UnicodeDecodeError as error:
        raise OutputError(f"{target}: cannot be changed ({error})") from None
    _write([text], target)
    return target


def write_text(text: str, path: str, over: bool = False) -> Path:
    """Whole or not at all. Raises OutputError."""
    target = target_of(path, over)
    _write([text], target)
    return target


def write_view(
    shown: Study,
    path: str,
    desk: Desk,
    command: str,
    over: bool = False,
    read: Sequence[str] = (),
) -> Path:
    """In the format that the name ends in, as the command line writes it; `read` are files that it
    rests on. Raises OutputError."""
    target = target_of(path, over)
    form = target.suffix.removeprefix(".")
    if form not in FORMATS:
        raise OutputError(f"{brief(target.name)}: end the name in .{', .'.join(FORMATS)} or .svg")
    _write([text_of(shown, form, desk, command, read)], target)
    return target


def free_name(stem: str, ending: str) -> str:
    """A name that no file has: `stem.html`, else `stem-2.html` and so on."""
    names = (f"{stem}{'' if n == 1 else f'-{n}'}.{ending}" for n in itertools.count(1))
    return next(name for name in names if not exists(name))


def text_of(
    study: Study,
    form: str,
    desk: Desk,
    command: str,
    read: Sequence[str] = (),
    table: str | None = None,
) -> str:
    """What `command` prints in one of FORMATS; of several tables, a CSV holds one."""
    words = _without_folders(command, desk, read)
    if form == "html":
        from ckptcost.first.report.render import page_of_study

        return page_of_study(study, desk.catalog, words)
    if form == "json":
        from ckptcost.first.report.build import build

        files = files_of(desk.layers()) if study.resolved else []
        files += [(name, Path(name).read_bytes()) for name in read]
        return build(study, desk.catalog, [*words, "-f", "json"], files).to_json()
    from ckptcost.first.report.study_views import view

    return view(study, {"txt": "text"}.get(form, form), table, full=True)


def _without_folders(command: str, desk: Desk, read: Sequence[str]) -> list[str]:
    """The words that a document says it was made by: of the first of several commands, which is the
    one that answers, without what only its text needs."""
    split = shlex.shlex(command, posix=True, punctuation_chars=";")
    split.whitespace_split, split.commenters = True, ""
    words = [word for word in takewhile(lambda word: word != ";", split) if word != "--full"]
    return [Path(word).name if word in (desk.base, *read) else word for word in words]


def exists(path: str) -> bool:
    return path_of(path).exists()


def target_of(path: str, over: bool) -> Path:
    """Where it is to be written. Raises OutputError where it cannot be."""
    if not path.strip():
        raise OutputError("no file is named")
    target = path_of(path)
    if target.is_dir():
        raise OutputError(f"{target}: is a folder")
    if target.exists() and not over:
        raise OutputError(f"{target}: is there already")
    return target


def _write(pieces: Iterable[str], target: Path) -> None:
    try:
        write_whole(pieces, Path(os.path.realpath(target)))  # the link's target, not the link
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise OutputError(f"{target}: could not be written ({reason})") from None
