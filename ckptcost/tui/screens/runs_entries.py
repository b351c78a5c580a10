"""The list of recorded runs: what each one is, in the words of `ckptcost runs`, and what its
readings said where they were read."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.errors import InputError
from ckptcost.present.amounts import count, share, size
from ckptcost.present.grid import Grid, Head, Row, Tone
from ckptcost.report.studies.runs import SHORT, list_of, show_of, shown
from ckptcost.report.study import Study, cell
from ckptcost.runs import store
from ckptcost.runs.store import Kept
from ckptcost.runs.summary import CUT, RECORDING, Summary, Told
from ckptcost.tui.paths import path_of

EMPTY = (
    "No runs here yet. `ckptcost run -- python train.py` records one, 4 watches a job, 5 probes a"
    " disk. o opens a run elsewhere."
)
READING = "Reading the runs ..."
NO_MATCH = "No run has all of these words. Escape leaves the field, an empty one shows all runs."
HEADS: tuple[Head, ...] = (
    Head("started", "started (UTC)", left=True),
    Head("run", "run", left=True),
    Head("state", "state", left=True, rank=1),
    Head("host", "host", left=True, rank=5),
    Head("command", "command", left=True, rank=4),
    Head("length", "length", rank=1),
    Head("saves", "ckpts", rank=2),
    Head("stall", "mean stall", rank=3),
    Head("written", "written", rank=6),
    Head("joules", "J", rank=7),
    Head("size", "on disk", rank=2),
    Head("folder", "name", left=True, rank=9),
)
UNITS = {
    "length": "s",
    "saves": "count",
    "stall": "s",
    "written": "bytes",
    "joules": "J",
    "size": "bytes",
}
COMMAND_CELL = 48
"""letters of a command; the details have all of it"""
SAVE_BYTES = 150_000
"""evaluating one checkpoint takes as long as reading so much"""
MANY = 100
"""checkpoints of a run whose marks were not counted yet"""
_TONES: dict[str, Tone] = {RECORDING: "good", CUT: "warn"}


class Source(NamedTuple):
    """Which run: what a screen that opens it needs to know."""

    path: str
    run: str
    """the whole id"""
    bytes: int
    alone: bool = True
    """no other run is in its folder"""
    saves: int | None = None
    """checkpoints by its marks, where they were counted"""

    @property
    def short(self) -> str:
        return self.run[:SHORT]

    @property
    def word(self) -> str:
        """As a command line names it: its place, or its id where the place holds several runs."""
        return self.path if self.alone else self.run

    @property
    def weight(self) -> int:
        """How long it takes to evaluate, as bytes of readings: each checkpoint is worth some."""
        return self.bytes + SAVE_BYTES * (MANY if self.saves is None else self.saves)


class Learned(NamedTuple):
    """What only the readings tell, as `ckptcost report` has it; None is not known."""

    bytes: float | None
    stall_s: float | None
    joules: float | None
    findings: tuple[str, ...]


class Entry(NamedTuple):
    """A run of the list."""

    key: str
    kept: Kept
    summary: Summary
    cells: dict[str, Any]
    """the row that `ckptcost runs` prints"""
    words: str
    """what a search looks at"""
    alone: bool
    place: tuple[int, str, str]
    """the latest first"""
    row: Row = Row("", ())
    """ready for the list: thousands are shown at once"""
    told: Told | None = None
    """its marks; None: not looked at yet"""
    learned: Learned | None = None
    why: str = ""
    """why nothing was learned"""

    @property
    def source(self) -> Source:
        return Source(
            str(self.kept.path),
            self.kept.run,
            self.summary.bytes,
            self.alone,
            None if self.told is None else self.told.saves,
        )

    def knowing(self, **more: Any) -> Entry:
        """With further facts, and the row that shows them."""
        entry = self._replace(**more)
        return entry._replace(row=_row(entry))

    @property
    def goes_on(self) -> bool:
        return self.summary.state == RECORDING


def entries_of(summaries: Sequence[tuple[Kept, Summary, bool]]) -> list[Entry]:
    """With the cells of the command line; the last of each three says whether it is alone in its
    folder."""
    rows = list_of([summary for _, summary, _ in summaries], [], Path()).tables[0].rows
    found = []
    for (kept, summary, alone), row in zip(summaries, rows, strict=True):
        texts = (
            row["started"],
            row["run"],
            row["folder"],
            row["host"],
            row["on"],
            row["state"],
            row["command"],
            row["problems"],
        )
        place = (-summary.began_ns, row["folder"], summary.run)
        found.append(
            Entry(
                f"{kept.path}:{kept.run}", kept, summary, row, " ".join(texts).lower(), alone, place
            ).knowing()
        )
    return found


def latest_first(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda each: each.place)


def matching(entries: Sequence[Entry], words: str) -> list[Entry]:
    """Those that have every word."""
    asked = words.lower().split()
    if not asked:
        return list(entries)
    return [entry for entry in entries if all(word in entry.words for word in asked)]


def grid_of_runs(
    entries: Sequence[Entry], marked: Iterable[str] = (), words: str = "", empty: str = EMPTY
) -> Grid:
    """The list, in the order of the entries."""
    ticked = set(marked)
    rows = [
        entry.row._replace(marked=True) if entry.key in ticked else entry.row
        for entry in matching(entries, words)
    ]
    empty = NO_MATCH if words.strip() and entries else empty
    heads = HEADS
    if not any(
        entry.cells["command"] for entry in entries
    ):  # nothing was wrapped: the first column to give way
        heads = tuple(head._replace(rank=99) if head.id == "command" else head for head in HEADS)
    return Grid(heads, rows, "Runs", empty=empty)


def _row(entry: Entry) -> Row:
    row, learned, told = entry.cells, entry.learned, entry.told
    values = row | {
        "saves": None if told is None else float(told.saves),
        "stall": None if learned is None else learned.stall_s,
        "written": None if learned is None else learned.bytes,
        "joules": None if learned is None else learned.joules,
        "host": row["on"],
    }
    command = row["command"]
    if len(command) > COMMAND_CELL:
        command = command[: COMMAND_CELL - 3] + "..."
    shown = values | {"run": row["id"], "command": command}
    order = values | {"started": float(entry.summary.began_ns)}
    return Row(
        entry.key,
        tuple(cell(shown[h.id], UNITS[h.id]) if h.id in UNITS else shown[h.id] for h in HEADS),
        tuple(order[head.id] for head in HEADS),
        _TONES.get(row["state"], "bad" if entry.summary.problems else ""),
    )


def study_of_runs(entries: Sequence[Entry], unread: Sequence[str], within: Path | None) -> Study:
    """What `ckptcost runs` prints."""
    return list_of(
        [entry.summary for entry in latest_first(entries)], unread, within or store.home()
    )


def heading(
    study: Study | None, within: Path | None, shown_rows: int, all_rows: int, marked: int
) -> str:
    """How many, where, and how much they take; as the command line says it."""
    place = shown(within or store.home())
    if study is None:
        parts = [f"{count(all_rows)} run{'' if all_rows == 1 else 's'} in {place}"]
    else:
        parts = [
            f"{study.title} in {place}",
            *(finding.rstrip(".") for finding in study.findings if all_rows),
        ]
    if shown_rows != all_rows:
        parts.append(f"{count(shown_rows)} shown")
    if marked:
        parts.append(f"{count(marked)} marked")
    return "; ".join(parts)


def unread_text(unread: Sequence[str], whole: bool = True) -> str:
    """What could not be read, and whether all was looked at."""
    said = [] if whole else ["Stopped before all folders were read; R reads on"]
    if unread:
        more = f" (and {count(len(unread) - 1)} more)" if len(unread) > 1 else ""
        said.append(
            f"{count(len(unread))} folder{'' if len(unread) == 1 else 's'} could not be read:"
            f" {_homely(unread[0]).rstrip('.')}{more}"
        )
    return ". ".join(said)


def _homely(text: str) -> str:
    """Paths as people write them."""
    home = os.path.expanduser("~")
    return text.replace(f"{home}/", "~/") if len(home) > 1 else text


def place_text(source: Source) -> str:
    """Before anything is known of it."""
    return f"Run {source.short}, {shown(Path(source.path))}"


def command_of(within: Path | None) -> str:
    return shlex.join(
        ["ckptcost", "runs", *(["list", "--dir", str(within)] if within is not None else [])]
    )


def kept_facts(entry: Entry, before: Entry | None) -> Entry:
    """What was learned of a run holds as long as its files are as they were."""
    if before is None or before.summary.sizes != entry.summary.sizes:
        return entry
    return entry.knowing(told=before.told, learned=before.learned, why=before.why)


def reading_text(*sources: Source, what: str = "", part: float = 0.0) -> str:
    """While one or more are read; `what` is done just now, and what part of it."""
    which = f"run {sources[0].short}" if len(sources) == 1 else f"{count(len(sources))} runs"
    so_far = f": {what}, {share(part)}" if what else ""
    bytes_ = size(sum(source.bytes for source in sources))
    return f"Reading {which}, {bytes_}{so_far} ... Escape gives up."


def refusal(text: str) -> list[tuple[str, Tone]]:
    """Why there is nothing to show, as a paragraph."""
    return [(text, "bad")]


def progress(done: int, of: int, runs: int) -> str:
    return (
        f"Reading the runs: {count(done)} of {count(of)} folders, {count(runs)}"
        f" run{'' if runs == 1 else 's'} so far; x stops"
    )


def details(entry: Entry) -> list[tuple[str, Tone]]:
    """What is known of one run: as `ckptcost runs show` has it, then what `ckptcost report` found
    in its readings."""
    told = entry.told
    study = show_of(entry.summary, told or Told({}, 0, 0, "", None))
    lines: list[tuple[str, Tone]] = [(line, "muted") for line in study.about]
    if told is None:
        lines += (
            [(f"The command was: {entry.cells['command']}.", "")] if entry.cells["command"] else []
        )
        lines.append(("Its marks are not read yet.", "muted"))
    else:
        lines += [(finding, "") for finding in study.findings]
    if entry.learned is not None:
        lines += [(finding, "") for finding in entry.learned.findings]
    elif entry.why:
        lines.append((entry.why, "muted"))
    return lines + [(message, "warn") for _, message in study.warnings]


def opened(text: str, within: Path | None = None) -> tuple[list[Kept], Path | None]:
    """What somebody names: the runs there, or a folder of runs to be listed. Raises InputError."""
    text = text.strip()
    path = path_of(text)
    try:
        is_list = bool(text) and path.is_dir() and not any(path.glob("*.jsonl"))
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=text) from None
    if is_list:
        if not store.folders(path):
            raise InputError(
                "no run in here, and no folder with runs", where=text, remedy=store.MAKE_ONE
            )
        return [], path
    found = store.found(str(path) if text.startswith("~") else text, within)
    runs = store.kept_at(found.path)
    return [kept for kept in runs if kept.run == found.run] if found.run else runs, None
