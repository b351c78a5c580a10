"""The job's clock: rows of all nodes of a day put to their windows, and every node's offset told
from the saves that it shares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.offsets import offsets_of
from ckptcost.first.fleet.same_save import Ints, places_of
from ckptcost.first.fleet.validate import SKEW_S, SKEWED, UNSTEADY, FileVerdict, ValidFile, verdict

UNSTEADY_S: Final = 1.0
"""nodes of a job come to a save together; one that strays so far from save to save has a clock that
is being set"""
UNSTEADY_WINDOWS: Final = 3
"""fewer do not tell a clock from a late begin"""
SMALL: Final = 8
"""among so few nodes a straying one makes the others seem to stray: the worst goes first, and the
others are looked at again"""


class TimedFiles(NamedTuple):
    """Files that count, in the order of their sums; of their rows, one file after another, which
    window and file they belong to."""

    files: list[ValidFile]
    window: Ints
    windows: int
    node: Ints
    offset_ns: Ints
    """of each file, like the two that follow; 0 where nothing tells it"""
    unsure_s: NDArray[np.float64]
    told: Ints
    """windows that tell it"""


class _Run(NamedTuple):
    files: list[ValidFile]
    window: Ints
    windows: int
    offset_ns: Ints
    unsure_s: NDArray[np.float64]
    told: Ints
    scatter_s: NDArray[np.float64]


def on_one_clock(files: Sequence[ValidFile]) -> tuple[TimedFiles, list[FileVerdict]]:
    """Files sorted by Seen.order. Where a clock is set aside, the others' offsets are told without
    it."""
    runs, aside = [], []
    for _, same in groupby(files, key=lambda file: file.head.run):
        run = _run(list(same))
        while faults := _faults(run):
            aside += [verdict(run.files[place], *fault) for place, fault in sorted(faults.items())]
            run = _run([file for place, file in enumerate(run.files) if place not in faults])
        runs.append(run)
    return _all_runs(runs), aside


def _all_runs(runs: Sequence[_Run]) -> TimedFiles:
    if not runs:
        none = np.zeros(0, dtype=np.int64)
        return TimedFiles([], none, 0, none, none, none.astype(float), none)
    bases = np.cumsum([0, *(run.windows for run in runs)])
    kept = [file for run in runs for file in run.files]
    windows = [run.window + base for run, base in zip(runs, bases, strict=False)]
    offset_ns, unsure_s, told = (
        np.concatenate(each)
        for each in zip(*((run.offset_ns, run.unsure_s, run.told) for run in runs), strict=True)
    )
    node = _repeat_places([file.many for file in kept])
    return TimedFiles(
        kept, np.concatenate(windows), int(bases[-1]), node, offset_ns, unsure_s, told
    )


def _run(files: list[ValidFile]) -> _Run:
    window, windows = places_of([file.rows for file in files])
    node = _repeat_places([file.many for file in files])
    found = offsets_of(window, node, np.concatenate([file.rows["begin_ns"] for file in files]))
    # it speaks of nodes up to the last one that has a row
    rest = len(files) - len(found.offset_ns)
    return _Run(
        files,
        window,
        windows,
        np.pad(found.offset_ns, (0, rest)),
        np.pad(found.unsure_s, (0, rest), constant_values=np.nan),
        np.pad(found.windows, (0, rest)),
        np.pad(found.scatter_s, (0, rest), constant_values=np.nan),
    )


def _repeat_places(counts: list[int]) -> Ints:
    return np.repeat(np.arange(len(counts), dtype=np.int64), counts)


def _faults(run: _Run) -> dict[int, tuple[str, str]]:
    """By place of the file. First what is far off, then what strays once that is gone. One node of
    a run always stays: the steadiest."""
    two = (
        " With two nodes nobody can tell whose clock is wrong: the one that is behind is taken."
        if len(run.files) == 2
        else ""
    )
    offset_s = run.offset_ns * 1e-9
    away = np.abs(offset_s)
    off = np.flatnonzero(away > SKEW_S)
    if len(off) == len(run.files):
        off = np.delete(off, int(np.argmin(away)))
    if len(off):
        return {
            int(place): (
                SKEWED,
                (
                    f"its clock is {away[place]:.0f} s {_side(offset_s[place])} the other nodes' of"
                    f" its run.{two}"
                ),
            )
            for place in off
        }
    scatter_s = np.where(run.told >= UNSTEADY_WINDOWS, np.nan_to_num(run.scatter_s), 0.0)
    off = np.flatnonzero(scatter_s > UNSTEADY_S)
    if len(off) and len(run.files) <= SMALL:
        off = np.array([len(scatter_s) - 1 - int(np.argmax(scatter_s[::-1]))])
        two = two and " With two nodes nobody can tell whose clock is being set."
    elif len(off) == len(run.files):
        off = np.delete(off, int(np.argmin(scatter_s)))
    return {
        int(place): (
            UNSTEADY,
            (
                f"its clock strays {scatter_s[place]:.1f} s from save to save against the other"
                f" nodes' of its run.{two}"
            ),
        )
        for place in off
    }


def _side(offset_s: float) -> str:
    return "ahead of" if offset_s > 0 else "behind"
