"""Saves near midnight: some of their nodes' rows may be in the one day's files and some in the next
one's. Here they are put together.

A window belongs to the day in which it begins on the job's clock, and so does what its nodes have
of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ckptcost.fleet.kept.node_day import COLUMNS
from ckptcost.fleet.merge.frames import made
from ckptcost.fleet.merge.part import NODES, SUMS, WINDOWS, Part
from ckptcost.fleet.merge.same_save import again_of
from ckptcost.fleet.merge.sums import Bins, Placed, node_sums, stragglers, window_sums

if TYPE_CHECKING:
    from pandas import DataFrame

EDGE_S: Final = 900.0
"""so near midnight rows wait for those of the day beside: three times what a clock may be off"""
_NODE: Final = ["job", "run", "host"]
_S: Final = 1e9


def merged(part: Part) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Windows, nodes and heads with what the edges add to them."""
    heads, edges = _with_offsets_of_other_days(part.heads, part.edges)
    if edges.empty:
        return part.windows, _added(part.nodes), heads
    windows, nodes = _summed(edges)
    return _put_together(part.windows, windows), _added(_put_together(part.nodes, nodes)), heads


def _put_together(some: DataFrame, more: DataFrame) -> DataFrame:
    import pandas as pd

    return pd.concat([some, more], ignore_index=True) if len(some) else more


def _with_offsets_of_other_days(heads: DataFrame, edges: DataFrame) -> tuple[DataFrame, DataFrame]:
    """A node that shares no save on one day may share some on the day beside: its clock is the same
    one."""
    told = heads["offset_windows"].to_numpy() > 0
    if told.all() or not told.any():
        return heads, edges
    keys = list(zip(*(heads[name] for name in _NODE), strict=True))
    known = {key for key, is_told in zip(keys, told.tolist(), strict=True) if is_told}
    lacking = [
        at
        for at, is_told in zip(heads.index, told.tolist(), strict=True)
        if not is_told and keys[at] in known
    ]
    if not lacking:
        return heads, edges
    hosts = set(heads.loc[lacking, "host"])
    by_node = dict(iter(heads[told & heads["host"].isin(hosts).to_numpy()].groupby(_NODE)))
    heads, edges = heads.copy(), edges.copy()
    for at in lacking:
        node, day = tuple(heads.loc[at, _NODE]), np.datetime64(heads.loc[at, "day"])
        near = by_node.get(node)
        if near is None:
            continue
        other = near.iloc[
            int(np.argmin(np.abs(near["day"].to_numpy().astype("datetime64[D]") - day)))
        ]
        offset_ns = round(other["offset_s"] * _S)
        heads.loc[at, ["offset_s", "offset_unsure_s"]] = other["offset_s"], other["offset_unsure_s"]
        for name in ("began_ns", "until_ns", "run_began_ns", "last_kept_ns", "last_mark_ns"):
            if heads.loc[at, name]:
                heads.loc[at, name] -= offset_ns
        same = (edges[[*_NODE, "day"]] == heads.loc[at, [*_NODE, "day"]]).all(axis=1)
        edges.loc[same, "begin_ns"] -= offset_ns
    return heads, edges


def _summed(edges: DataFrame) -> tuple[DataFrame, DataFrame]:
    # within a window by host, as within a day
    rows = edges.sort_values([*_NODE, "load", "key", "begin_ns"], kind="stable", ignore_index=True)
    name = rows.groupby(["job", "run", "load", "key"], sort=False).ngroup().to_numpy(dtype=np.int64)
    host = rows.groupby("host", sort=False).ngroup().to_numpy(dtype=np.int64)
    # a label may come again at the next midnight, and for another node
    rows["again"] = again_of(name, host, rows["begin_ns"].to_numpy())
    window = rows.groupby(["job", "run", "load", "key", "again"], sort=False).ngroup().to_numpy()
    columns: dict[str, Any] = {name: rows[name].to_numpy() for name in COLUMNS if name != "label"}
    placed = Placed(window, int(window.max()) + 1, columns, rows["gpus"].to_numpy())
    waits = stragglers(placed)
    sums = window_sums(placed, waits)
    days = waits.begin_ns.astype("datetime64[ns]").astype("datetime64[D]").astype(str)
    first = np.unique(window, return_index=True)[1]
    one = rows.iloc[first]
    hosts = rows["host"].to_numpy()[waits.slowest]
    labelled = rows[rows["label"] != ""]
    labels = dict(zip(window[labelled.index][::-1].tolist(), labelled["label"][::-1], strict=True))
    windows = made(
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
    return windows, made(
        NODES, {name: named[name].to_numpy() for name in named} | of_nodes, ("slowest",)
    )


def _added(nodes: DataFrame) -> DataFrame:
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
    bins = Bins(place, len(named))
    whole = {"windows", "saves", "slowest", *(f"{line}_windows" for line in SUMS)}
    found: dict[str, Any] = {name: named[name].to_numpy() for name in named}
    for name in NODES:
        if name in whole:
            found[name] = bins.total(nodes[name].to_numpy()).astype(np.int64)
        elif name not in found:
            (found[name],), _ = bins.known(nodes[name].to_numpy())
    return made(NODES, found, ("slowest",))
