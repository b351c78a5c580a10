"""One job's day from the files of its nodes, and jobs from their days.

    part_of      files of a job and day -> the ones that count -> one clock -> sums of windows and
    of nodes finished     what lies near midnight, where a save may be half in one file and half in
    the next -> the same sums

The first is a piece of work that any process can do, the second is done once, where all pieces are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ckptcost.errors import InputError
from ckptcost.fleet.kept.node_file import decode
from ckptcost.fleet.kept.seal import BadNodeFile
from ckptcost.fleet.merge import frames
from ckptcost.fleet.merge.near_midnight import EDGE_S, merged
from ckptcost.fleet.merge.one_clock import Timed, on_one_clock
from ckptcost.fleet.merge.part import Part
from ckptcost.fleet.merge.same_save import Ints
from ckptcost.fleet.merge.sorting_out import (
    NEEDED,
    Seen,
    day_of,
    one_meter,
    one_of_each,
    read_in,
    verdict,
)
from ckptcost.fleet.merge.sums import Placed, node_sums, stragglers, window_sums

if TYPE_CHECKING:
    from ckptcost.fleet.kept.store import Entry, Store

LABELS: Final = 200
"""windows of a part whose labels are read: those that took longest"""
_S: Final = 1e9


def part_of(store: Store, entries: Sequence[Entry]) -> Part:
    """Of one job and day, as frames."""
    return frames.put_together([pieces_of(store, entries)])


def pieces_of(store: Store, entries: Sequence[Entry]) -> frames.Pieces:
    """Of one job and day. Nothing in it depends on the order of the entries."""
    seen, aside = read_in(store, entries)
    seen, twice = one_of_each(seen)
    timed, astray = on_one_clock(seen)
    seen, more = one_meter(timed.files)
    if more:  # offsets are against nodes that count
        timed, again = on_one_clock(seen)
        more += again
    del seen
    files = [*aside, *twice, *astray, *more, *(verdict(file) for file in timed.files)]
    if not timed.files:
        return frames.pieces(files=frames.of_files(files))
    columns = _columns(timed)
    gpus = np.array([file.head.gpus for file in timed.files])
    rows = Placed(timed.window, timed.windows, columns, gpus[timed.node])
    waits = stragglers(rows)
    windows = window_sums(rows, waits)
    edge = _near_midnight(waits.begin_ns, timed.files[0].head.day)
    nodes = node_sums(rows, waits, timed.node, len(timed.files), edge)
    first = np.zeros(timed.windows, dtype=np.int64)
    # the last one written stays: the first row of each window
    first[timed.window[::-1]] = np.arange(len(timed.window))[::-1]
    labels = _labels(store, timed, columns, first, windows["stall_s"])
    return frames.Pieces(
        frames.of_files(files),
        frames.of_heads(timed, *_instants(timed, columns)),
        frames.of_windows(timed, columns, windows, waits.slowest, first, labels, ~edge),
        frames.of_nodes([file.head for file in timed.files], nodes),
        frames.of_edges(timed, columns, np.flatnonzero(edge[timed.window]), labels),
    )


def finished(part: Part) -> Part:
    """Windows near midnight merged over the days, and everything in an order of its own. Done
    twice, it changes nothing."""
    windows, nodes, heads = merged(part)
    return Part(
        frames.in_order(part.files, "path"),
        frames.in_order(heads, "job", "run", "host", "day"),
        frames.in_order(windows, "job", "begin_ns", "run", "key", "load"),
        frames.in_order(nodes, "job", "run", "host", "day"),
        part.edges.iloc[:0].reset_index(drop=True),
    )


def _columns(timed: Timed) -> dict[str, Any]:
    """Rows of all files, one after another; each file's own are let go on the way, so that they are
    in memory once."""
    found = {name: np.concatenate([file.rows.pop(name) for file in timed.files]) for name in NEEDED}
    found["begin_ns"] -= timed.offset_ns[timed.node]
    return found


def _near_midnight(begin_ns: Ints, day: str) -> Any:
    first_ns, next_ns = day_of(day)
    slack_ns = int(EDGE_S * _S)
    return (begin_ns < first_ns + slack_ns) | (begin_ns >= next_ns - slack_ns)


def _instants(timed: Timed, columns: Mapping[str, Any]) -> tuple[Ints, Ints, Ints]:
    """Of each file: the first begin, that of its last completed save, and the last instant that a
    row names; 0 if none."""
    begin_ns = columns["begin_ns"]
    took_s = np.nan_to_num(columns["stall_s"]) + np.nan_to_num(columns["drain_s"])
    first, kept, last = np.zeros((3, len(timed.files)), dtype=np.int64)
    first[timed.node] = np.iinfo(np.int64).max
    np.minimum.at(first, timed.node, begin_ns)
    np.maximum.at(last, timed.node, begin_ns + np.rint(took_s * _S).astype(np.int64))
    np.maximum.at(kept, timed.node, np.where(columns["failed"] | columns["load"], 0, begin_ns))
    return first, kept, last


def _labels(
    store: Store, timed: Timed, columns: Mapping[str, Any], first: Ints, stall_s: Any
) -> dict[int, str]:
    """By place of the window. A file is read once more, for all that are wanted of it."""
    wanted = np.lexsort(
        (columns["key"][first], columns["begin_ns"][first], -np.nan_to_num(stall_s, nan=-1.0))
    )[:LABELS]
    ends = np.cumsum([0, *np.bincount(timed.node, minlength=len(timed.files))])
    found: dict[int, str] = {}
    for window in wanted.tolist():
        if window not in found:
            file = int(timed.node[first[window]])
            there = timed.window[ends[file] : ends[file + 1]]
            for place, label in zip(
                there.tolist(), _labels_in(store, timed.files[file], len(there)), strict=True
            ):
                found.setdefault(place, label)
    return {window: found[window] for window in wanted.tolist()}


def _labels_in(store: Store, file: Seen, count: int) -> Iterable[str]:
    """Empty where the file went away or was written anew since."""
    try:
        labels = decode(store.read(file.path), ("label",)).rows["label"]
    except (OSError, InputError, BadNodeFile):
        return [""] * count
    return labels if len(labels) == count else [""] * count
