"""One job's day from the files of its nodes, and jobs from their days.

    pieces_of    files of a job and day -> the ones that count -> one clock -> sums of windows and
                 nodes
    finish_part  what lies near midnight, where a save may be half in one file and half in the next
                 -> the same sums

The first is a piece of work that any process can do, the second is done once, where all pieces are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ckptcost.first.core.stragglers import Stragglers, stragglers_of
from ckptcost.first.errors import InputError
from ckptcost.first.fleet import frames
from ckptcost.first.fleet.clocks import TimedFiles, on_one_clock
from ckptcost.first.fleet.frames import make_frame
from ckptcost.first.fleet.node_day import COLUMNS, LINES
from ckptcost.first.fleet.node_file import BadNodeFile, decode
from ckptcost.first.fleet.part import NODES, SUMS, WINDOWS, StorePart
from ckptcost.first.fleet.same_save import Ints, again_of
from ckptcost.first.fleet.validate import (
    NEEDED,
    ValidFile,
    day_of,
    one_meter,
    one_of_each,
    read_in,
    verdict,
)

if TYPE_CHECKING:
    from pandas import DataFrame

    from ckptcost.first.fleet.store import Store, StoreEntry


# Arithmetic over rows: what the nodes of a window come to together, and what the windows of a
# node do. Knows no files and no frames. Sums are taken in the order of the rows, so they are the
# same bits on one machine and on many.


Floats = NDArray[np.float64]
Columns = Mapping[str, NDArray[Any]]


class PlacedRows(NamedTuple):
    """Rows of several nodes on the job's clock. `window`: the place of the window of each row."""

    window: Ints
    windows: int
    columns: Columns
    """as node_day.COLUMNS, without labels"""
    gpus: Floats
    """of the row's node"""


class RowBins:
    """What rows come to, by the place that each belongs to."""

    def __init__(self, place: Ints, places: int) -> None:
        self.place, self.places = place, places
        self.rows: Ints = np.bincount(place, minlength=places).astype(np.int64, copy=False)

    def total(self, values: NDArray[Any]) -> Floats:
        """Unknown where one is unknown."""
        return np.asarray(
            np.bincount(self.place, weights=values, minlength=self.places), dtype=np.float64
        )

    def count(self, which: NDArray[np.bool_]) -> Ints:
        if which.all():
            return self.rows
        return np.bincount(self.place[which], minlength=self.places).astype(np.int64, copy=False)

    def known(self, values: NDArray[Any], *ends: NDArray[Any]) -> tuple[list[Floats], Ints]:
        """Sums of the known values, and of their ends; how many they are. Where rows are there and
        none is known, the sum is not: NaN."""
        lacking = np.isnan(values)
        if not lacking.any():
            return [self.total(each) for each in (values, *ends)], self.rows
        if lacking.all():
            unknown = np.where(self.rows > 0, np.nan, 0.0)
            return [unknown.copy() for _ in (values, *ends)], np.zeros(self.places, dtype=np.int64)
        count = self.count(~lacking)
        none = (count == 0) & (self.rows > 0)
        sums = [self.total(np.where(lacking, 0.0, each)) for each in (values, *ends)]
        for each in sums:
            each[none] = np.nan
        return sums, count


def stragglers(rows: PlacedRows) -> Stragglers:
    """A node's watts are those while it stands still for the save."""
    stall_s: Floats = rows.columns["stall_s"]
    watts = _standing_j(rows.columns, "")
    np.divide(watts, stall_s, out=watts, where=stall_s > 0)
    watts[~(stall_s > 0)] = np.nan
    return stragglers_of(
        rows.window, rows.windows, rows.columns["begin_ns"], stall_s, rows.gpus, watts
    )


def _standing_j(columns: Columns, end: str) -> Floats:
    """A host that is not metered is left out; GPUs that are not make it unknown."""
    # ends are kept in half the width, sums are not
    joules: Floats = columns[f"gpu{end}_j"].astype(np.float64)
    metered = ~np.isnan(columns["host_j"])
    return np.add(
        joules, columns[f"host{end}_j"], out=joules, where=True if metered.all() else metered
    )


def window_sums(rows: PlacedRows, waits: Stragglers) -> dict[str, NDArray[Any]]:
    """Columns of part.WINDOWS that are numbers, without those that name something. Bytes, files and
    GPU-seconds that one node does not know are not known of the window; joules are summed over
    those that know them, and how many those are is said.
    """
    columns, bins = rows.columns, RowBins(rows.window, rows.windows)
    found: dict[str, NDArray[Any]] = {
        "failed": bins.count(columns["failed"]) > 0,
        "begin_ns": waits.begin_ns,
        "stall_s": waits.stall_s,
        "drain_s": _drain_s(rows, waits),
        "nodes": bins.rows,
    }
    for name, values in (
        ("bytes", columns["bytes"]),
        ("files", columns["files"]),
        ("own_gpu_s", columns["gpu_s"]),
    ):
        found[name] = bins.total(values)
    found["wait_gpu_s"] = bins.total(waits.wait_gpu_s)
    (found["wait_j"], *sums), found["wait_nodes"] = bins.known(
        waits.wait_j, *_wait_ends_j(rows, waits)
    )
    found["wait_low_j"], found["wait_high_j"] = sums
    for line in LINES:
        names = [f"{line}{end}_j" for end in ("", "_low", "_high")]
        sums, found[f"{line}_nodes"] = bins.known(*(columns[name] for name in names))
        found |= zip(names, sums, strict=True)
    return found


def _wait_ends_j(rows: PlacedRows, waits: Stragglers) -> list[Floats]:
    """Low and high of what each row waits."""
    with np.errstate(invalid="ignore", divide="ignore"):
        times = waits.wait_s / rows.columns["stall_s"]
        found = [_standing_j(rows.columns, end) * times for end in ("_low", "_high")]
    none = waits.wait_s == 0
    for each in found:
        each[none] = 0.0  # whatever the watts, also where they have no high end
    return found


def _drain_s(rows: PlacedRows, waits: Stragglers) -> Floats:
    """From the last return until the last node is safe."""
    found = np.zeros(rows.windows)
    with np.errstate(invalid="ignore"):  # unknown where one is unknown
        np.maximum.at(found, rows.window, rows.columns["drain_s"] - waits.wait_s)
    return found


def node_sums(
    rows: PlacedRows, waits: Stragglers, node: Ints, nodes: int, left_out: NDArray[np.bool_]
) -> dict[str, NDArray[Any]]:
    """Columns of part.NODES that are numbers: of each node, over its windows, but not over those
    that are left out. What is not known of a window is not in the sum; where it is known of none,
    the sum is not known either."""
    columns = rows.columns
    # one place more, for what is left out: quicker than copying every column without it
    place, places = (
        (np.where(left_out[rows.window], nodes, node), nodes + 1)
        if left_out.any()
        else (node, nodes)
    )
    last = waits.slowest[
        (waits.slowest >= 0) & (np.bincount(rows.window, minlength=rows.windows) > 1) & ~left_out
    ]
    bins = RowBins(place, places)
    found: dict[str, NDArray[Any]] = {
        "windows": bins.rows,
        "saves": bins.count(~columns["load"]),
        "slowest": np.bincount(node[last], minlength=places),
    }
    for name, values in (
        ("own_gpu_s", columns["gpu_s"]),
        ("stall_s", columns["stall_s"]),
        ("bytes", columns["bytes"]),
        ("wait_gpu_s", waits.wait_gpu_s),
        ("wait_j", waits.wait_j),
        ("blamed_gpu_s", waits.blamed_gpu_s),
        ("blamed_j", waits.blamed_j),
    ):
        (found[name],), _ = bins.known(values)
    for line in LINES:
        (found[f"{line}_j"],), found[f"{line}_windows"] = bins.known(columns[f"{line}_j"])
    return {name: values[:nodes] for name, values in found.items()}


# Saves near midnight: some of their nodes' rows may be in the one day's files and some in the
# next one's. Here they are put together. A window belongs to the day in which it begins on the
# job's clock, and so does what its nodes have of it.


EDGE_S: Final = 900.0
"""so near midnight rows wait for those of the day beside: three times what a clock may be off"""
_NODE: Final = ["job", "run", "host"]
_S: Final = 1e9


def merge_edges(part: StorePart) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Windows, nodes and heads with what the edges add to them."""
    heads, edges = _with_offsets_of_other_days(part.heads, part.edges)
    if edges.empty:
        return part.windows, _add_nodes(part.nodes), heads
    windows, nodes = _sum_edges(edges)
    return _put_together(part.windows, windows), _add_nodes(_put_together(part.nodes, nodes)), heads


def _put_together(some: DataFrame, more: DataFrame) -> DataFrame:
    import pandas as pd

    return pd.concat([some, more], ignore_index=True) if len(some) else more


def _with_offsets_of_other_days(heads: DataFrame, edges: DataFrame) -> tuple[DataFrame, DataFrame]:
    """A node that shares no save on one day may share some on the day beside: its clock is the same
    one."""
    told = heads["offset_windows"].to_numpy() > 0
    if told.all():
        return heads, edges
    keys = list(zip(*(heads[name] for name in _NODE), strict=True))
    known = {keys[at] for at in np.flatnonzero(told).tolist()}
    lacking = [at for at in np.flatnonzero(~told).tolist() if keys[at] in known]
    if not lacking:
        return heads, edges
    hosts = {keys[at][-1] for at in lacking}
    by_node = dict(iter(heads[told & heads["host"].isin(hosts).to_numpy()].groupby(_NODE)))
    heads, edges = heads.copy(), edges.copy()
    for at in lacking:
        near, day = by_node[keys[at]], np.datetime64(heads.loc[at, "day"])
        days_off = np.abs(near["day"].to_numpy().astype("datetime64[D]") - day)
        other = near.iloc[int(np.argmin(days_off))]
        offset_ns = round(other["offset_s"] * _S)
        heads.loc[at, ["offset_s", "offset_unsure_s"]] = other["offset_s"], other["offset_unsure_s"]
        for name in ("began_ns", "until_ns", "run_began_ns", "last_kept_ns", "last_mark_ns"):
            if heads.loc[at, name]:
                heads.loc[at, name] -= offset_ns
        same = (edges[[*_NODE, "day"]] == heads.loc[at, [*_NODE, "day"]]).all(axis=1)
        edges.loc[same, "begin_ns"] -= offset_ns
    return heads, edges


def _sum_edges(edges: DataFrame) -> tuple[DataFrame, DataFrame]:
    # within a window by host, as within a day
    rows = edges.sort_values([*_NODE, "load", "key", "begin_ns"], kind="stable", ignore_index=True)
    name = rows.groupby(["job", "run", "load", "key"], sort=False).ngroup().to_numpy(dtype=np.int64)
    host = rows.groupby("host", sort=False).ngroup().to_numpy(dtype=np.int64)
    # a label may come again at the next midnight, and for another node
    rows["again"] = again_of(name, host, rows["begin_ns"].to_numpy())
    window = rows.groupby(["job", "run", "load", "key", "again"], sort=False).ngroup().to_numpy()
    columns: dict[str, Any] = {name: rows[name].to_numpy() for name in COLUMNS if name != "label"}
    placed = PlacedRows(window, int(window.max()) + 1, columns, rows["gpus"].to_numpy())
    waits = stragglers(placed)
    sums = window_sums(placed, waits)
    days = waits.begin_ns.astype("datetime64[ns]").astype("datetime64[D]").astype(str)
    first = np.unique(window, return_index=True)[1]
    one = rows.iloc[first]
    hosts = rows["host"].to_numpy()[waits.slowest]
    labelled = rows[rows["label"] != ""]
    labels = dict(zip(window[labelled.index][::-1].tolist(), labelled["label"][::-1], strict=True))
    windows = make_frame(
        WINDOWS,
        sums
        | {name: one[name].to_numpy() for name in ("job", "run", "key", "load")}
        | {
            "day": days,
            "label": [labels.get(place, "") for place in range(len(first))],
            "slowest": np.where(waits.slowest < 0, "", hosts),
        },
    )
    rows["day"] = days[window]
    by_day = rows.groupby([*_NODE, "day"], sort=False)
    node = by_day.ngroup().to_numpy()
    named = rows.iloc[np.unique(node, return_index=True)[1]][[*_NODE, "day"]]
    of_nodes = node_sums(placed, waits, node, len(named), np.zeros(len(first), dtype=bool))
    return windows, make_frame(
        NODES, {name: named[name].to_numpy() for name in named} | of_nodes, ("slowest",)
    )


def _add_nodes(nodes: DataFrame) -> DataFrame:
    """One row a node and day. A row without windows knows all its sums, zero, and leaves the
    unknown ones of another row as they are."""
    place = nodes.groupby([*_NODE, "day"], sort=False).ngroup().to_numpy()
    places = int(place.max()) + 1 if len(place) else 0
    if places == len(nodes):
        return nodes
    some = np.bincount(place, weights=nodes["windows"].to_numpy() > 0, minlength=places) > 0
    nodes = nodes[(nodes["windows"].to_numpy() > 0) | ~some[place]]
    place = nodes.groupby([*_NODE, "day"], sort=False).ngroup().to_numpy()
    named = nodes.iloc[np.unique(place, return_index=True)[1]][[*_NODE, "day"]]
    bins = RowBins(place, len(named))
    whole = {"windows", "saves", "slowest", *(f"{line}_windows" for line in SUMS)}
    found: dict[str, Any] = {name: named[name].to_numpy() for name in named}
    for name in NODES:
        if name in whole:
            found[name] = bins.total(nodes[name].to_numpy()).astype(np.int64)
        elif name not in found:
            (found[name],), _ = bins.known(nodes[name].to_numpy())
    return make_frame(NODES, found, ("slowest",))


LABELS: Final = 200
"""windows of a part whose labels are read: those that took longest"""


def pieces_of(store: Store, entries: Sequence[StoreEntry]) -> frames.PartFrames:
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
    rows = PlacedRows(timed.window, timed.windows, columns, gpus[timed.node])
    waits = stragglers(rows)
    windows = window_sums(rows, waits)
    edge = _near_midnight(waits.begin_ns, timed.files[0].head.day)
    nodes = node_sums(rows, waits, timed.node, len(timed.files), edge)
    first = np.zeros(timed.windows, dtype=np.int64)
    # the last one written stays: the first row of each window
    first[timed.window[::-1]] = np.arange(len(timed.window))[::-1]
    labels = _labels(store, timed, columns, first, windows["stall_s"])
    return frames.PartFrames(
        frames.of_files(files),
        frames.of_heads(timed, *_instants(timed, columns)),
        frames.of_windows(timed, columns, windows, waits.slowest, first, labels, ~edge),
        frames.of_nodes([file.head for file in timed.files], nodes),
        frames.of_edges(timed, columns, np.flatnonzero(edge[timed.window]), labels),
    )


def finish_part(part: StorePart) -> StorePart:
    """Windows near midnight merged over the days, and everything in an order of its own. Done
    twice, it changes nothing."""
    windows, nodes, heads = merge_edges(part)
    return StorePart(
        frames.in_order(part.files, "path"),
        frames.in_order(heads, "job", "run", "host", "day"),
        frames.in_order(windows, "job", "begin_ns", "run", "key", "load"),
        frames.in_order(nodes, "job", "run", "host", "day"),
        part.edges.iloc[:0].reset_index(drop=True),
    )


def _columns(timed: TimedFiles) -> dict[str, Any]:
    """Rows of all files, one after another; each file's own are let go on the way, so that they are
    in memory once."""
    found = {name: np.concatenate([file.rows.pop(name) for file in timed.files]) for name in NEEDED}
    found["begin_ns"] -= timed.offset_ns[timed.node]
    return found


def _near_midnight(begin_ns: Ints, day: str) -> Any:
    first_ns, next_ns = day_of(day)
    slack_ns = int(EDGE_S * _S)
    return (begin_ns < first_ns + slack_ns) | (begin_ns >= next_ns - slack_ns)


def _instants(timed: TimedFiles, columns: Mapping[str, Any]) -> tuple[Ints, Ints, Ints]:
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
    store: Store, timed: TimedFiles, columns: Mapping[str, Any], first: Ints, stall_s: Any
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


def _labels_in(store: Store, file: ValidFile, count: int) -> Iterable[str]:
    """Empty where the file went away or was written anew since."""
    try:
        labels = decode(store.read(file.path), ("label",)).rows["label"]
    except (OSError, InputError, BadNodeFile):
        return [""] * count
    return labels if len(labels) == count else [""] * count
