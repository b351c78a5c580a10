"""Going through folders of runs, in a thread: first what each run is, then what its marks and
readings say, told piece by piece."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ckptcost.errors import CkptcostError, RunFileError
from ckptcost.present.amounts import size
from ckptcost.runs import store
from ckptcost.runs.store import Kept
from ckptcost.runs.summary import counted, summary_of
from ckptcost.tui.run_reader import READER, SMALL, GivenUp
from ckptcost.tui.screens.recorded_run import RUNS, learn_run
from ckptcost.tui.screens.runs_entries import (
    Entry,
    Source,
    entries_of,
    kept_facts,
    latest_first,
    opened,
)

FIRST_S, LONGEST_S = 0.15, 1.5
"""between two pieces that are told; longer ones later on, for each draws the whole list"""
MARKS_BYTES = 256_000_000
"""of a run whose marks are counted unasked: about a second's work"""
READ_BYTES = 8_000_000
READ_SAVES = 24
"""of a run whose readings are evaluated unasked: some seconds' work"""
NEWEST = 30
"""runs whose readings are evaluated without being looked at"""

Stopped = Callable[[], bool]


class Reading(NamedTuple):
    """All folders were looked at, or somebody stopped it."""

    unread: list[str]
    """why a folder gave no run, in a sentence"""
    whole: bool


def read(
    within: Path | None, stopped: Stopped, told: Callable[[list[Entry], int, int], None]
) -> Reading:
    """Every run. `told`: new entries, folders done, folders in all. Raises InputError where the
    place itself is closed."""
    folders = store.folders(within)
    folders.sort(
        key=lambda folder: folder.name, reverse=True
    )  # names begin with the time: the latest come first
    unread: list[str] = []
    fresh: list[tuple[Kept, bool]] = []
    said_s, every_s = time.monotonic(), FIRST_S
    for done, folder in enumerate(folders, start=1):
        if stopped():
            return Reading(unread, whole=False)
        try:
            here = store.kept_at(folder)
            fresh += [(kept, len(here) == 1) for kept in here]
        except RunFileError as error:
            unread.append(str(error))
        if time.monotonic() - said_s >= every_s or done == len(folders):
            told(_entries(fresh), done, len(folders))
            fresh, said_s, every_s = [], time.monotonic(), min(every_s * 1.5, LONGEST_S)
    return Reading(unread, whole=True)


def _entries(kept: Sequence[tuple[Kept, bool]]) -> list[Entry]:
    return entries_of([(each, summary_of(each), alone) for each, alone in kept])


def named(text: str, within: Path | None = None) -> tuple[list[Entry], Path | None]:
    """The runs that a word stands for, or a folder of runs to be listed. Raises InputError."""
    kept, folder = opened(text, within)
    return _entries([(each, len(store.kept_at(each.path)) == 1) for each in kept]), folder


def source_at(text: str) -> Source:
    """The run of a folder, the latest where there are several. Raises CkptcostError."""
    entry = named(text)[0][0]
    if entry.summary.bytes <= SMALL:  # at once; without them it counts as a heavy one
        entry = entry.knowing(told=counted(entry.kept))
    return entry.source


def again(entry: Entry) -> Entry:
    """As the run is now. Raises RunFileError where it is gone."""
    kept = next(
        (kept for kept in store.kept_at(entry.kept.path) if kept.run == entry.kept.run), None
    )
    if kept is None:
        raise RunFileError("is not there any more", where=str(entry.kept.path))
    return kept_facts(_entries([(kept, entry.alone)])[0], entry)


def learn(
    entries: Sequence[Entry], stopped: Stopped, told: Callable[[Entry], None], asked: bool = False
) -> None:
    """Marks of all, readings of the newest; `asked`: somebody looks at it, so its marks are counted
    however long it is."""
    for place, entry in enumerate(latest_first(entries)):
        if stopped():
            return
        try:
            found = _learned(entry, asked or place < NEWEST, asked, stopped)
        except GivenUp:
            return
        if found != entry:
            told(found)


def _learned(entry: Entry, readings: bool, asked: bool, stopped: Stopped) -> Entry:
    bytes_ = entry.summary.bytes
    try:
        if entry.told is None and (asked or bytes_ <= MARKS_BYTES):
            entry = entry.knowing(told=counted(entry.kept))
        if not readings or entry.learned is not None or entry.told is None:
            return entry
        if bytes_ > READ_BYTES or entry.told.saves > READ_SAVES:
            return entry.knowing(
                why=(
                    f"{size(bytes_)} of readings: Enter reads them, and energy and stalls are then"
                    " known here too."
                )
            )
        source = entry.source
        if (kept := RUNS.find(source)) is not None:
            return entry.knowing(learned=kept.learned, why="")
        found = READER.ask(learn_run, source, weight=source.weight, stopped=stopped)
        return entry.knowing(learned=found, why="")
    except GivenUp:
        raise
    except (CkptcostError, OSError) as error:
        return entry.knowing(why=f"{str(error).rstrip('.')}.")
