"""The recorded runs: found folder by folder, with what marks and readings say of each, as the table
that `ckptcost runs` prints; and the deletion of one."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ckptcost.first.errors import CkptcostError, InputError, OutputError, RunFileError
from ckptcost.first.present.amounts import count, size
from ckptcost.first.present.amounts import count_text as counted_as
from ckptcost.first.present.grid import Grid, Tone
from ckptcost.first.report.studies.runs import list_of, place_text, show_of
from ckptcost.first.report.study import Column, Study
from ckptcost.first.runs import store
from ckptcost.first.runs.store import Kept
from ckptcost.first.runs.summary import (
    CUT,
    RECORDING,
    MarkSummary,
    Summary,
    count_marks,
    summary_of,
)
from ckptcost.first.tui.paths import path_of
from ckptcost.first.tui.run_reader import READER, SMALL, GivenUp
from ckptcost.first.tui.screens.recorded_run import RUNS, Learned, RunSource, learn_run
from ckptcost.first.tui.study_grids import grid_of, paragraphs

EMPTY = (
    "No runs here yet. `ckptcost run -- python train.py` records one, 4 watches a job, 5 probes a"
    " disk. o opens a run elsewhere."
)
READING = "Reading the runs ..."
MARKS_BYTES = 256_000_000
"""of a run whose marks are counted unasked: about a second's work"""
READ_BYTES = 8_000_000
READ_SAVES = 24
"""of a run whose readings are evaluated unasked: some seconds' work"""
NEWEST = 30
"""runs whose readings are evaluated without being looked at"""
COLUMNS = {
    column.id: column
    for column in (
        *list_of([], [], Path()).tables[0].columns,
        Column("saves", "ckpts", "count"),
        Column("stall", "mean stall", "s"),
        Column("written", "written", "bytes"),
        Column("joules", "J", "J"),
    )
}
SHOWN = (
    *("started", "id", "state", "length", "saves", "stall", "size", "on", "command", "written"),
    *("joules", "folder"),
)
"""columns, the first to give way last"""
_TONES: dict[str, Tone] = {RECORDING: "good", CUT: "warn"}

Stopped = Callable[[], bool]


class RunEntry(NamedTuple):
    """A run of the list."""

    kept: Kept
    summary: Summary
    cells: dict[str, Any]
    """the row that `ckptcost runs` prints"""
    alone: bool
    """no other run is in its folder"""
    told: MarkSummary | None = None
    """its marks; None: not looked at yet"""
    learned: Learned | None = None
    why: str = ""
    """why nothing was learned"""

    @property
    def key(self) -> str:
        return f"{self.kept.path}:{self.kept.run}"

    @property
    def source(self) -> RunSource:
        saves = None if self.told is None else self.told.saves
        return RunSource(str(self.kept.path), self.kept.run, self.summary.bytes, self.alone, saves)

    @property
    def goes_on(self) -> bool:
        return self.summary.state == RECORDING

    @property
    def row(self) -> dict[str, Any]:
        facts = {} if self.learned is None else self.learned._asdict()
        return self.cells | facts | {"saves": None if self.told is None else self.told.saves}

    @property
    def tone(self) -> Tone:
        return _TONES.get(self.summary.state, "bad" if self.summary.problems else "")

    def after(self, before: RunEntry | None) -> RunEntry:
        """What was learned of a run holds as long as its files are as they were."""
        if before is None or before.summary.sizes != self.summary.sizes:
            return self
        return self._replace(told=before.told, learned=before.learned, why=before.why)


def latest_first(entries: Iterable[RunEntry]) -> list[RunEntry]:
    return sorted(entries, key=lambda each: (-each.summary.began_ns, each.key))


def grid_of_runs(
    entries: Sequence[RunEntry], marked: Collection[str] = (), empty: str = ""
) -> Grid:
    """The list, in the order of the entries."""
    (table,) = list_of([], [], Path()).tables
    columns = [COLUMNS[name]._replace(shown=True) for name in SHOWN]
    table = table._replace(columns=tuple(columns), rows=[entry.row for entry in entries])
    grid = grid_of(table, [entry.key for entry in entries])
    rows = [
        row._replace(tone=entry.tone, marked=row.key in marked)
        for row, entry in zip(grid.rows, entries, strict=True)
    ]
    return grid._replace(rows=rows, empty=empty)


def study_of_runs(entries: Iterable[RunEntry], unread: Sequence[str], within: Path | None) -> Study:
    """What `ckptcost runs` prints."""
    summaries = [entry.summary for entry in latest_first(entries)]
    return list_of(summaries, unread, within or store.home())


def unread_text(unread: Sequence[str]) -> str:
    """What could not be read."""
    if not unread:
        return ""
    first = unread[0].replace(f"{Path.home()}/", "~/").rstrip(".")
    more = f" (and {count(len(unread) - 1)} more)" if len(unread) > 1 else ""
    return f"{counted_as(len(unread), 'folder')} could not be read: {first}{more}"


def details(entry: RunEntry) -> list[tuple[str, Tone]]:
    """What is known of one run: as `ckptcost runs show` has it, then what `ckptcost report` found
    in its readings."""
    study = show_of(entry.summary, entry.told or MarkSummary({}, 0, 0, "", None))
    found = study.findings if entry.told is not None else ["Its marks are not read yet."]
    more = entry.learned.findings if entry.learned is not None else filter(None, [entry.why])
    return paragraphs(study._replace(findings=[*found, *more], simulated=False))


# finding them


class FoundRuns(NamedTuple):
    """All folders were looked at."""

    entries: list[RunEntry]
    unread: list[str]
    """why a folder gave no run, in a sentence"""


def read(
    within: Path | None, stopped: Stopped, tell: Callable[[list[RunEntry], str], None]
) -> FoundRuns:
    """Every run. `tell`: new entries, and how far it is. Raises InputError where the place itself
    is closed."""
    folders = sorted(store.folders(within), key=lambda folder: folder.name, reverse=True)
    reading = FoundRuns([], [])  # names begin with the time: the latest come first
    for done, folder in enumerate(folders, start=1):
        if stopped():
            break
        try:
            found = entries_at(folder)
        except RunFileError as error:
            reading.unread.append(str(error))
            continue
        reading.entries.extend(found)
        so_far = counted_as(len(reading.entries), "run")
        tell(found, f"{count(done)} of {count(len(folders))} folders, {so_far} so far")
    return reading


def entries_at(folder: Path) -> list[RunEntry]:
    """The runs of one folder. Raises RunFileError."""
    found = store.kept_at(folder)
    summaries = [summary_of(kept) for kept in found]
    rows = list_of(summaries, [], Path()).tables[0].rows
    return [
        RunEntry(kept, summary, row, alone=len(found) == 1)
        for kept, summary, row in zip(found, summaries, rows, strict=True)
    ]


def source_at(text: str) -> RunSource:
    """The run of a folder, the latest where there are several. Raises CkptcostError."""
    entry = opened(text)[0][0]
    if entry.summary.bytes <= SMALL:  # at once; without them it counts as a heavy one
        entry = entry._replace(told=count_marks(entry.kept))
    return entry.source


def opened(text: str, within: Path | None = None) -> tuple[list[RunEntry], Path | None]:
    """What somebody names: the runs there, or a folder of runs to be listed. Raises InputError."""
    text = text.strip()
    path = path_of(text)
    if text and path.is_dir() and not any(path.glob("*.jsonl")):
        if not store.folders(path):
            raise InputError(
                "no run in here, and no folder with runs", where=text, remedy=store.MAKE_ONE
            )
        return [], path
    found = store.find_run(str(path) if text.startswith("~") else text, within)
    entries = entries_at(found.path)
    return [each for each in entries if found.run in ("", each.kept.run)], None


def again(entry: RunEntry) -> RunEntry:
    """As the run is now. Raises RunFileError where it is gone."""
    for now in entries_at(entry.kept.path):
        if now.kept.run == entry.kept.run:
            return now.after(entry)
    raise RunFileError("is not there any more", where=str(entry.kept.path))


def learn(
    entries: Iterable[RunEntry],
    stopped: Stopped,
    tell: Callable[[RunEntry], None],
    asked: bool = False,
) -> None:
    """Marks of all, readings of the newest; `asked`: somebody looks at it, so its marks are counted
    however long it is."""
    for place, entry in enumerate(latest_first(entries)):
        try:
            found = _learned(entry, asked or place < NEWEST, asked, stopped)
        except GivenUp:
            return
        except (CkptcostError, OSError) as error:
            found = entry._replace(why=f"{str(error).rstrip('.')}.")
        if stopped():
            return
        if found != entry:
            tell(found)


def _learned(entry: RunEntry, readings: bool, asked: bool, stopped: Stopped) -> RunEntry:
    bytes_ = entry.summary.bytes
    if entry.told is None and (asked or bytes_ <= MARKS_BYTES):
        entry = entry._replace(told=count_marks(entry.kept))
    if entry.learned is not None or entry.told is None:
        return entry
    if (kept := RUNS.find(entry.source)) is not None:
        return entry._replace(learned=kept.learned, why="")
    if not readings:
        return entry
    if bytes_ > READ_BYTES or entry.told.saves > READ_SAVES:
        more = "Enter reads them, and energy and stalls are then known here too."
        return entry._replace(why=f"{size(bytes_)} of readings: {more}")
    source = entry.source
    found = READER.ask(learn_run, source, weight=source.weight, stopped=stopped)
    return entry._replace(learned=found, why="")


# deleting one: only its own files, only of folders among the user's runs, never through a link


class Removal(NamedTuple):
    """What would be deleted; nothing is yet."""

    folder: Path
    files: tuple[str, ...]
    bytes: int
    others: int
    """entries of the folder that are not this run's and stay"""

    @property
    def text(self) -> str:
        """For the question."""
        files = counted_as(len(self.files), "file")
        what = f"{files}, {size(self.bytes)}, of {place_text(self.folder)}"
        if not self.others:
            return f"{what}, and the folder itself.\nThis cannot be undone."
        others = counted_as(self.others, "other thing")
        return f"{what}.\n{others} in the folder stay, and so does the folder."


def removal_of(entry: RunEntry) -> Removal:
    """Raises InputError with the reason where a run is not ours to delete."""
    path, home = entry.kept.path, store.home()
    by_hand = "remove it by hand if you mean it"
    mine = os.path.realpath(path.parent) == os.path.realpath(home) != os.path.realpath(path)
    only = f"only folders in {place_text(home)} are deleted here; {by_hand}"
    for refused, why, remedy in (
        (entry.goes_on, "is still being recorded", "stop the recorder first"),
        (path.is_symlink(), "is a link", f"what it leads to stays where it is; {by_hand}"),
        (not path.is_dir(), "is a single file that was opened by its name", by_hand),
        (not mine, "is not among your runs", only),
    ):
        if refused:
            raise InputError(why, where=place_text(path), remedy=remedy)
    files = tuple(sorted(head.file.name for head in entry.kept.heads if not head.file.is_symlink()))
    if not files:
        raise InputError("holds no file of this run", where=place_text(path), remedy=by_hand)
    bytes_ = sum(entry.summary.sizes.get(name, 0) for name in files)
    return Removal(path, files, bytes_, len(set(os.listdir(path)) - set(files)))


def remove(removal: Removal) -> str:
    """Do it; what was done, in a sentence. The folder is held open, so that nobody can put another
    in its place meanwhile."""
    gone, where = 0, place_text(removal.folder)
    try:
        folder = os.open(removal.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            for name in removal.files:
                if stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                    os.unlink(name, dir_fd=folder)
                    gone += 1
            empty = not os.listdir(folder)
        finally:
            os.close(folder)
        if empty:
            removal.folder.rmdir()
            return f"Deleted {where}."
    except OSError as error:
        raise OutputError(
            f"{where}: {count(gone)} of {count(len(removal.files))} files deleted,"
            f" then: {error.strerror}"
        ) from None
    return f"Deleted {count(gone)} files of {where}; the folder holds other things and stays."
