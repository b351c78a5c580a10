"""What a probe is asked to do: the fields of its form as texts, what is wrong with them, and the
command that does the same."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from ckptcost.catalog.schema import flag_value
from ckptcost.core.size import full_bytes
from ckptcost.core.timing import nodes_of
from ckptcost.errors import CkptcostError, InputError, brief
from ckptcost.jobs.probe import PAUSE_S, ProbeRequest
from ckptcost.present.amounts import quantity
from ckptcost.present.form import Field
from ckptcost.present.grid import Grid, Head, Row
from ckptcost.savers.base import Settings
from ckptcost.savers.control import Control
from ckptcost.savers.found import SAVERS
from ckptcost.tui.desk import Desk

NODES, WHOLE = "a node's share", "the scenario's"
"""sizes that the scenario on the desk gives"""
YES_NO = ("yes", "no")
LEAST_BYTES, MOST_BYTES = 1e6, 1e15


@dataclass(frozen=True)
class Draft:
    """The texts as they stand in the form."""

    directory: str = ""
    size: str = "1 GB"
    writer: str = "direct"
    ranks: str = "8"
    rounds: str = "3"
    quarter: str = "yes"
    warm_up: str = "0"
    read: str = "yes"

    def edited(self, path: str, text: str) -> Draft:
        return replace(self, **{path: text})


class Wish(NamedTuple):
    """The same as amounts."""

    directory: Path
    size_bytes: int
    writer: str
    ranks: int
    rounds: int
    small: bool
    warm_up: int
    read: bool

    @property
    def asked(self) -> ProbeRequest:
        return asked(self, None)


def fresh() -> Draft:
    """The folder that one is in, and what the command takes where nothing is said."""
    try:
        return Draft(os.getcwd())
    except OSError:  # it was removed
        return Draft()


def fields(draft: Draft, desk: Desk) -> tuple[Field, ...]:
    wrong = problems(draft, desk)
    rows = (
        ("directory", "folder", "", "Where", (), "a folder on the storage"),
        ("size", "size", _size_unit(draft, desk), "What", (NODES, WHOLE), "20 GB"),
        ("writer", "writer", "", "What", tuple(SAVERS), ""),
        ("ranks", "writers", "", "What", (), ""),
        ("rounds", "rounds", "", "How often", (), ""),
        ("quarter", "quarter size too", "", "How often", YES_NO, ""),
        ("warm_up", "warm-up saves", "", "How often", (), ""),
        ("read", "read back", "", "How often", YES_NO, ""),
    )
    return tuple(
        Field(
            path,
            label,
            getattr(draft, path),
            unit,
            "",
            group,
            choices,
            wrong.get(path, ""),
            placeholder,
        )
        for path, label, unit, group, choices, placeholder in rows
    )


def _size_unit(draft: Draft, desk: Desk) -> str:
    """What a size that the scenario gives is in bytes."""
    if draft.size.strip() not in (NODES, WHOLE):
        return ""
    try:
        return quantity(float(_size(draft.size, desk)), "bytes")
    except CkptcostError:
        return ""


def problems(draft: Draft, desk: Desk) -> dict[str, str]:
    """By field, why its text cannot be used."""
    found = {}
    for path, read in _READERS.items():
        try:
            read(draft, desk)
        except CkptcostError as error:
            found[path] = error.problem if isinstance(error, InputError) else str(error)
    return found


def wish(draft: Draft, desk: Desk) -> Wish:
    """Raises InputError for the first field that cannot be used."""
    each = {path: read(draft, desk) for path, read in _READERS.items()}
    return Wish(
        Path(str(each["directory"])),
        int(each["size"]),
        str(each["writer"]),
        int(each["ranks"]),
        int(each["rounds"]),
        bool(each["quarter"]),
        int(each["warm_up"]),
        bool(each["read"]),
    )


def asked(one: Wish, control: Control | None) -> ProbeRequest:
    return ProbeRequest(
        one.directory,
        one.size_bytes,
        one.ranks,
        None,
        one.writer,
        one.rounds,
        small=one.small,
        read=one.read,
        warm_up=one.warm_up,
        pause_s=PAUSE_S,
        settings=Settings(control=control),
    )


def command(draft: Draft, desk: Desk, meters: str) -> str:
    """The command that probes the same; empty while a field cannot be used."""
    try:
        one = wish(draft, desk)
    except CkptcostError:
        return ""
    words = ["ckptcost", "probe", str(one.directory), "--size", size_text(one.size_bytes)]
    words += ["--ranks", str(one.ranks)] if one.ranks != 8 else []
    words += ["--saver", one.writer] if one.writer != "direct" else []
    words += ["--rounds", str(one.rounds)] if one.rounds != 3 else []
    words += [] if one.small else ["--one-size"]
    words += ["--warm-up", str(one.warm_up)] if one.warm_up else []
    words += [] if one.read else ["--no-read"]
    words += ["--meters", meters] if meters != "auto" else []
    return shlex.join(words)


def size_text(size_bytes: int) -> str:
    """As a flag gives exactly this many bytes.

    >>> size_text(20_000_000_000), size_text(109_375_000_001)
    ('20 GB', '109375000001 B')
    """
    short = quantity(float(size_bytes), "bytes")
    return short if round(flag_value("", short, "bytes")) == size_bytes else f"{size_bytes} B"


def choices(path: str, desk: Desk) -> Grid:
    """What a field can hold, with what it means."""
    if path == "writer":
        rows = [Row(name, (name, about)) for name, (_, _, about) in SAVERS.items()]
        return Grid(
            (Head("name", "writer", left=True), Head("about", "what it is", left=True)),
            rows,
            "What writes",
        )
    if path == "size":
        rows = [
            Row(name, (name, _known(name, desk), about))
            for name, about in (
                (NODES, "what one of its nodes writes at a save"),
                (WHOLE, "a whole checkpoint, as if one node wrote all of it"),
            )
        ]
        heads = (
            Head("name", "size", left=True),
            Head("bytes", "bytes"),
            Head("about", "of", left=True),
        )
        return Grid(heads, rows, f"Sizes of {desk.title}")
    rows = [Row(word, (word,)) for word in YES_NO]
    return Grid((Head("name", "answer", left=True),), rows)


def _known(name: str, desk: Desk) -> str:
    try:
        return quantity(float(_size(name, desk)), "bytes")
    except CkptcostError:
        return "-"


def directory(draft: Draft) -> str:
    text = draft.directory.strip()
    if not text:
        raise InputError("name a folder on the storage that is to be measured")
    return os.path.expanduser(text)


def _size(text: str, desk: Desk) -> int:
    said = text.strip()
    if said in (NODES, WHOLE):
        scenario = desk.resolved().scenario
        whole = float(full_bytes(scenario.checkpoint))
        found = whole / float(nodes_of(scenario.cluster)) if said == NODES else whole
    else:
        found = float(flag_value("", said, "bytes"))
    if not LEAST_BYTES <= found <= MOST_BYTES:
        raise InputError("expected 1 MB to 1 PB")
    return round(found)


def _count(what: str, least: int, most: int) -> Callable[[Draft, Desk], int]:
    def read(draft: Draft, desk: Desk) -> int:
        text = str(getattr(draft, what)).strip()
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise InputError(f"expected a whole number from {least} to {most}")
        return int(text)

    return read


def _answer(what: str) -> Callable[[Draft, Desk], bool]:
    def read(draft: Draft, desk: Desk) -> bool:
        text = str(getattr(draft, what)).strip().lower()
        if text not in YES_NO:
            raise InputError("expected yes or no")
        return text == "yes"

    return read


def _writer(draft: Draft, desk: Desk) -> str:
    if draft.writer.strip() not in SAVERS:
        raise InputError(
            f"no writer named {brief(draft.writer.strip())}. Known: {', '.join(SAVERS)}"
        )
    return draft.writer.strip()


_READERS: dict[str, Callable[[Draft, Desk], str | int | bool]] = {
    "directory": lambda draft, desk: directory(draft),
    "size": lambda draft, desk: _size(draft.size, desk),
    "writer": _writer,
    "ranks": _count("ranks", 1, 4096),
    "rounds": _count("rounds", 1, 1000),
    "quarter": _answer("quarter"),
    "warm_up": _count("warm_up", 0, 100),
    "read": _answer("read"),
}
